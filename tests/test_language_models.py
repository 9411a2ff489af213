"""Parts of language models under MindSpore's names, and functions of sparse matrices, beside NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.special

import nbgrad as nb
from nbgrad import ops

pytestmark = pytest.mark.unoptimized

rng = np.random.default_rng(12)
B, S1, S2, N, D = 2, 5, 7, 4, 3
Q, K, V = rng.normal(size=(B, N, S1, D)), rng.normal(size=(B, 2, S2, D)), rng.normal(size=(B, 2, S2, D))
SHIFT = rng.normal(size=(1, N, S1, S2))
MASK = (rng.random((S1, S2)) < 0.3).astype(np.uint8)
MASK[2] = 1
EARLIER = np.tril(np.ones((S1, S2), bool))
DISTANCE = np.arange(S2) - np.arange(S1)[:, None]


def attention(hidden: Any = None, shift: Any = 0.0, scale: float = 0.5) -> np.ndarray:
    """Each query by itself, in NumPy; heads 0 and 1 share the first keys, 2 and 3 the second ones."""
    result = np.zeros((B, N, S1, D))
    for b, n, i in np.ndindex(B, N, S1):
        scores = scale * K[b, n // 2] @ Q[b, n, i] + np.broadcast_to(shift, (1, N, S1, S2))[0, n, i]
        seen = np.ones(S2, bool) if hidden is None else ~np.broadcast_to(hidden, (B, N, S1, S2))[b, n, i].astype(bool)
        if seen.any():
            result[b, n, i] = scipy.special.softmax(scores[seen]) @ V[b, n // 2][seen]
    return result


CASES: dict[str, tuple[dict[str, Any], np.ndarray]] = {
    "plain": ({}, attention()),
    "shifted": ({"real_shift": SHIFT}, attention(shift=SHIFT)),
    "mask": ({"attn_mask": MASK}, attention(MASK)),
    "mask alone": ({"attn_mask": MASK, "sparse_mode": 1, "pre_tokens": 0}, attention(MASK)),
    "mask and band": (
        {"attn_mask": MASK, "pre_tokens": 1, "next_tokens": 2},
        attention(MASK | (DISTANCE < -1) | (DISTANCE > 2)),
    ),
    "causal": ({"attn_mask": MASK, "sparse_mode": 2}, attention(~EARLIER)),
    "causal from the end": ({"sparse_mode": 3}, attention(DISTANCE > S2 - S1)),
    "band from the end": (
        {"sparse_mode": 4, "pre_tokens": 2, "next_tokens": 0},
        attention((DISTANCE > S2 - S1) | (DISTANCE < S2 - S1 - 2)),
    ),
}
LAYOUTS: dict[str, Any] = {
    "BNSD": lambda x: x,
    "BSND": lambda x: x.transpose(0, 2, 1, 3),
    "BSH": lambda x: x.transpose(0, 2, 1, 3).reshape(B, x.shape[2], -1),
    "SBH": lambda x: x.transpose(2, 0, 1, 3).reshape(x.shape[2], B, -1),
}


@pytest.mark.parametrize("case", CASES)
def test_attention(case: str) -> None:
    given, wanted = CASES[case]
    options: dict[str, Any] = {name: nb.Tensor(one) if name[-1] in "kt" else one for name, one in given.items()}
    got = ops.flash_attention_score(Q, K, V, N, scalar_value=0.5, input_layout="BNSD", **options)
    np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-9)
    nb.check_grads(
        lambda q, k, v: ops.flash_attention_score(q, k, v, N, scalar_value=0.5, input_layout="BNSD", **options),
        (Q, K, V),
        order=1,
    )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str) -> None:
    turn = LAYOUTS[layout]
    got = ops.flash_attention_score(turn(Q), turn(K), turn(V), N, scalar_value=0.5, input_layout=layout)
    np.testing.assert_allclose(got, turn(CASES["plain"][1]), rtol=1e-6, atol=1e-9)


def test_weights_that_are_dropped() -> None:
    q, k = np.zeros((1, 1, 2, 1)), np.zeros((1, 1, 8, 1))
    v = 2.0 ** np.arange(8).reshape(1, 1, 8, 1)
    kept = nb.Tensor(np.array([[[[0b10000001], [0b00000110]]]], np.uint8))
    got = ops.flash_attention_score(q, k, v, 1, drop_mask=kept, keep_prob=0.5, input_layout="BNSD")
    np.testing.assert_allclose(np.asarray(got).ravel(), [129 / 8 / 0.5, 6 / 8 / 0.5])
    nb.set_seed(1)
    many = ops.flash_attention_score(
        np.zeros((1, 1, 400, 1)), k, np.ones((1, 1, 8, 1)), 1, keep_prob=0.25, input_layout="BNSD"
    )
    assert 0.8 < float(many.mean()) < 1.2


def test_positions_turn_pairs() -> None:
    x, angle = rng.normal(size=(2, 3, 4)), rng.normal(size=(3, 2))
    pairs = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
    got = ops.rotary_position_embedding(x, np.cos(angle).repeat(2, -1), np.sin(angle).repeat(2, -1), 1)
    np.testing.assert_allclose(got, np.stack([pairs.real, pairs.imag], -1).reshape(x.shape))
    halves = (x[..., :2] + 1j * x[..., 2:]) * np.exp(1j * angle)
    both = np.concatenate([angle, angle], -1)
    got = ops.rotary_position_embedding(x, np.cos(both), np.sin(both))
    np.testing.assert_allclose(got, np.concatenate([halves.real, halves.imag], -1))
    for mode in (0, 1):
        nb.check_grads(lambda y, m=mode: ops.rotary_position_embedding(y, np.cos(both), np.sin(both), m), (x,), order=1)


def test_norms_of_sums() -> None:
    x, y, gamma, beta = rng.normal(size=(2, 3, 4)), rng.normal(size=(2, 3, 4)), rng.normal(size=4), rng.normal(size=4)
    result, mean, inverse, total = ops.add_layer_norm(x, y, gamma, beta, 1e-3)
    spread = np.sqrt((x + y).var(-1, keepdims=True) + 1e-3)
    np.testing.assert_allclose(mean, (x + y).mean(-1, keepdims=True))
    np.testing.assert_allclose(inverse, 1 / spread)
    np.testing.assert_allclose(total, x + y)
    np.testing.assert_allclose(result, (x + y - (x + y).mean(-1, keepdims=True)) / spread * gamma + beta)
    scale = rng.normal(size=(3, 4))
    result, inverse, total = ops.add_rms_norm(x, y, scale, 1e-3)
    root = np.sqrt(((x + y) ** 2).mean((1, 2), keepdims=True) + 1e-3)
    np.testing.assert_allclose(result, (x + y) / root * scale)
    np.testing.assert_allclose(inverse, 1 / root)
    nb.check_grads(lambda a, b: ops.add_rms_norm(a, b, gamma)[0] * ops.add_layer_norm(a, b, gamma, beta)[0], (x, y))


def test_tokens_go_to_experts_and_back() -> None:
    tokens, experts = rng.normal(size=(4, 3)), np.array([[2, 0], [1, 2], [0, 1], [2, 1]])
    sorted_tokens, places = ops.moe_token_permute(tokens, experts)
    np.testing.assert_array_equal(sorted_tokens, tokens[[0, 2, 1, 2, 3, 0, 1, 3]])
    np.testing.assert_array_equal(np.asarray(sorted_tokens)[np.asarray(places)], tokens.repeat(2, 0))
    chances = rng.random((4, 2))
    back = ops.moe_token_unpermute(sorted_tokens, places, chances)
    np.testing.assert_allclose(back, tokens * chances.sum(1, keepdims=True))
    assert ops.moe_token_permute(tokens, experts[:, 0], 3)[0].shape == (3, 3)
    np.testing.assert_array_equal(ops.moe_token_unpermute(*ops.moe_token_permute(tokens, experts[:, 0])), tokens)
    nb.check_grads(lambda x, p: ops.moe_token_unpermute(*ops.moe_token_permute(x, experts), p), (tokens, chances))


def test_sparse_matrices() -> None:
    dense, other = rng.normal(size=(4, 5)) * (rng.random((4, 5)) < 0.4), rng.uniform(1, 2, (4, 5))
    rows = scipy.sparse.csr_matrix(dense)
    made = nb.CSRTensor(rows.indptr, rows.indices, nb.Tensor(rows.data), rows.shape)
    at = rows.nonzero()
    vector = rng.normal(size=(5, 1))
    np.testing.assert_allclose(ops.csr_mv(made, vector), rows @ vector)
    np.testing.assert_allclose(ops.csr_mul(made, other), (dense * other)[at])
    np.testing.assert_allclose(ops.csr_div(made, other[:1]), (dense / other[:1])[at])
    np.testing.assert_allclose(ops.csr_reduce_sum(made, 1), dense.sum(1, keepdims=True))
    np.testing.assert_allclose(ops.csr_gather(rows.indptr, rows.indices, other, (4, 5)), other[at])
    np.testing.assert_array_equal(ops.coo2csr(at[0], 4), rows.indptr)
    np.testing.assert_array_equal(ops.csr2coo(rows.indptr, rows.nnz), at[0])


X = nb.Tensor(rng.normal(size=(3, 4)))
FORMS = {
    "SplitV([1, -1], 1, 2)(X)[1]": np.asarray(X)[:, 1:],
    "ConfusionMatrix(3)(T([0, 2, 2]), T([1, 2, 2]))": np.array([[0, 1, 0], [0, 0, 0], [0, 0, 2]]),
    "ConfusionMatrix(2, dtype='float32')(T([0, 1]), T([1, 1]), T([0.5, 2.0]))": np.array([[0, 0.5], [0, 2.0]]),
    "EuclideanNorm(True)(X, (0, 1))": np.sqrt((np.asarray(X) ** 2).sum(keepdims=True)),
    "NuclearNorm()(X)": np.linalg.norm(np.asarray(X), "nuc"),
    "tensor_slice(X, (1, 0), (2, 3))": np.asarray(X)[1:, :3],
    "shape_(X)": np.array([3, 4]),
}


@pytest.mark.parametrize("call", FORMS)
def test_forms(call: str) -> None:
    got = np.asarray(eval(f"ops.{call}", {"ops": ops, "X": X, "T": nb.Tensor}))
    np.testing.assert_allclose(got, FORMS[call], rtol=1e-6)
    assert got.shape == np.shape(FORMS[call])


def test_messages() -> None:
    q = np.zeros((1, 2, 12))
    with pytest.raises(nb.errors.ShapeError, match="cannot share keys"):
        ops.flash_attention_score(q, np.zeros((1, 2, 9)), np.zeros((1, 2, 9)), 4)
    with pytest.raises(nb.errors.ArgumentError, match="input_layout='TND'"):
        ops.flash_attention_score(q, q, q, 4, input_layout="TND")
    with pytest.raises(nb.errors.ArgumentError, match="keep_prob must be above 0"):
        ops.flash_attention_score(q, q, q, 4, keep_prob=0.0)
    with pytest.raises(nb.errors.ArgumentError, match="prefix"):
        ops.flash_attention_score(q, q, q, 4, prefix=(1,))
    with pytest.raises(nb.errors.ShapeError, match="which is odd"):
        ops.rotary_position_embedding(np.zeros(3), 1.0, 0.0)
    with pytest.raises(nb.errors.ShapeError, match="was told num_split=2"):
        ops.SplitV([1, 1, 1], 0, 2)(X)
    assert ops.Assert()(True, [X]) is None
    with pytest.raises(nb.errors.ArgumentError, match=r"begin with \[1, 2\]; \[4\]"):
        ops.Assert(2)(nb.Tensor(False), [nb.Tensor([1, 2, 3]), nb.Tensor([4])])
