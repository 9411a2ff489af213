"""Parts of language models under MindSpore's names: attention by heads, rotated positions, experts' tokens, fused sums.

In: Tensors of tokens. Out: Tensors. Called by users. Each is a composition, which `jit` fuses.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...errors import ArgumentError, ShapeError
from ...record.axes_and_dtypes import integers, only
from ...record.tensor import Tensor
from ..activations import softmax
from ..docstrings import documented
from ..normalisation import layer_norm_from
from ..random_tensors import dropout
from .special_values import float_of, value_of

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


def _dtype(x: Any) -> numpy.dtype[Any]:
    return numpy.dtype(x.dtype.name)


# ----- Positions and norms -----


@documented
def rotary_position_embedding(x: Any, cos: Any, sin: Any, mode: int = 0) -> Tensor:
    """Pairs of numbers of each token, turned by angles of its position (Su et al. 2021).

    x : Tensor or ndarray
        With an even last axis.
    cos, sin : Tensor or ndarray
        Of the angles; they broadcast.
    mode : {0, 1}
        Whether pairs are the two halves of the last axis, or neighbours.
    ShapeError : If the last axis is odd.

    >>> one, zero = nb.ops.ones(2), nb.ops.zeros(2)
    >>> print(nb.ops.rotary_position_embedding(nb.Tensor([3.0, 4.0]), zero, one))
    [-4.  3.]
    """
    only("mode", mode, 0, 1)
    tokens = float_of(x)
    if tokens.shape[-1] % 2:
        message = f"rotary_position_embedding turns pairs of the last axis, which is odd in the shape {tokens.shape}."
        raise ShapeError(message)
    if mode == 0:
        first, second = np.split(tokens, 2, -1)
        turned = np.concatenate([-second, first], -1)
    else:
        pairs = tokens.reshape((*tokens.shape[:-1], -1, 2))
        turned = np.stack([-pairs[..., 1], pairs[..., 0]], -1).reshape(tokens.shape)
    return (tokens * value_of(cos) + turned * value_of(sin)).astype(_dtype(tokens))


@documented
def add_layer_norm(
    x1: Any, x2: Any, gamma: Any, beta: Any, epsilon: float = 1e-05, additional_output: bool = False
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """`layer_norm` of a sum over its last axis.

    x1, x2 : Tensor or ndarray
    gamma, beta : Tensor or ndarray, shape of the last axis
    epsilon : float
    additional_output : bool
        Has no effect: the sum is always given.
    -> tuple of four Tensors
        The result, means, one over standard deviations, and the sum.
    """
    del additional_output
    total = float_of(x1) + value_of(x2)
    mean = np.mean(total, -1, keepdims=True)
    inverse = 1.0 / np.sqrt(np.var(total, -1, keepdims=True) + epsilon)
    return layer_norm_from(total, gamma, beta, -1, -1, epsilon), mean, inverse, total


@documented
def add_rms_norm(x1: Any, x2: Any, gamma: Any, epsilon: float = 1e-06) -> tuple[Tensor, Tensor, Tensor]:
    """A sum divided by the root mean square over its last axes, those of gamma, and times gamma.

    x1, x2 : Tensor or ndarray
    gamma : Tensor or ndarray
    epsilon : float
    -> tuple of three Tensors
        The result, one over the root mean squares, and the sum.
    """
    total, scale = float_of(x1) + value_of(x2), value_of(gamma)
    axes = tuple(range(-scale.ndim, 0))
    inverse = 1.0 / np.sqrt(np.mean(total * total, axes, keepdims=True) + epsilon)
    return (total * inverse * scale).astype(_dtype(total)), inverse, total


# ----- Attention -----


def _by_heads(x: Any, layout: str, heads: int) -> Any:
    """Tokens as (B, N, S, D)."""
    if layout in ("BSH", "SBH"):
        x = x.reshape((*x.shape[:2], heads, -1))
        return np.transpose(x, (0, 2, 1, 3) if layout == "BSH" else (1, 2, 0, 3))
    return np.transpose(x, (0, 2, 1, 3)) if layout == "BSND" else x


def _as_given(x: Any, layout: str) -> Any:
    """(B, N, S, D) in the layout of the arguments."""
    if layout == "BNSD":
        return x
    moved = np.transpose(x, (2, 0, 1, 3) if layout == "SBH" else (0, 2, 1, 3))
    return moved if layout == "BSND" else moved.reshape((*moved.shape[:2], -1))


def _hidden(mask: Any, mode: int, rows: int, columns: int, before: int, after: int) -> Any:
    """Which keys a query does not see, or None."""
    at_row, at_column = np.arange(rows)[:, None], np.arange(columns)
    if mode in (2, 3):
        return at_column > at_row + (columns - rows if mode == 3 else 0)
    if mode == 4:
        at_row = at_row + columns - rows
        return (at_column > at_row + after) | (at_column < at_row - before)
    if mask is None:
        return None
    given = value_of(mask) != 0
    return given if mode else given | (at_column > at_row + after) | (at_column < at_row - before)


@documented
def flash_attention_score(
    query: Any,
    key: Any,
    value: Any,
    head_num: int,
    real_shift: Any = None,
    drop_mask: Any = None,
    padding_mask: Any = None,
    attn_mask: Any = None,
    prefix: Any = None,
    actual_seq_qlen: Any = None,
    actual_seq_kvlen: Any = None,
    keep_prob: float = 1.0,
    scalar_value: float = 1.0,
    pre_tokens: int = 2147483647,
    next_tokens: int = 2147483647,
    inner_precise: int = 0,
    input_layout: str = "BSH",
    sparse_mode: int = 0,
) -> Tensor:
    """`dropout(softmax(scalar_value * query @ key.T + real_shift)) @ value` for each head (Vaswani et al. 2017).

    query, key, value : Tensor or ndarray
        Tokens of batches, in the order of `input_layout`; keys may have fewer heads, which several queries share.
    head_num : int
        The number of heads of the query.
    real_shift : Tensor, optional
        Added to scores; broadcasts to (B, N, S1, S2).
    drop_mask : Tensor of uint8, optional, shape (B, N, S1, S2 / 8)
        Bits of the scores that stay, the lowest first; drawn by default, if `keep_prob` is below 1.
    padding_mask, prefix, actual_seq_qlen, actual_seq_kvlen : None
        Other values are refused.
    attn_mask : Tensor, optional
        1 where a query does not see a key; broadcasts to (B, N, S1, S2). Modes 2 to 4 do not read it.
    keep_prob, scalar_value : float
    pre_tokens, next_tokens : int
        How far before and after itself a query sees, in the modes 0 (with a mask) and 4.
    inner_precise : int
        Has no effect.
    input_layout : {"BSH", "BNSD", "SBH", "BSND"}
    sparse_mode : {0, 1, 2, 3, 4}
        The mask and a band; the mask; keys up to the query, counted from the first or from the last ones; a band,
        counted from the last ones.
    -> Tensor, in the shape of the query
        A query that sees no key gets zeros.
    ShapeError, ArgumentError : If heads or shapes do not fit, and for `keep_prob` outside of (0, 1].
    """
    del inner_precise
    refused = (
        ("padding_mask", padding_mask),
        ("prefix", prefix),
        ("actual_seq_qlen", actual_seq_qlen),
        ("actual_seq_kvlen", actual_seq_kvlen),
    )
    for name, given in refused:
        only(name, given, None)
    only("input_layout", input_layout, "BSH", "BNSD", "SBH", "BSND")
    only("sparse_mode", sparse_mode, 0, 1, 2, 3, 4)
    if not 0 < keep_prob <= 1:
        message = f"keep_prob must be above 0 and at most 1, but is {keep_prob}."
        raise ArgumentError(message)
    tokens = float_of(query)
    q = _by_heads(tokens, input_layout, head_num)
    width = q.shape[-1]
    shared = {"BSH": -1, "SBH": -1, "BNSD": 1, "BSND": 2}[input_layout]
    extent = value_of(key).shape[shared]
    heads = extent // width if shared == -1 else extent
    if not heads or head_num % heads or q.shape[1] != head_num:
        message = (
            f"{head_num} heads of queries of shape {tokens.shape} cannot share keys of shape {value_of(key).shape}."
        )
        raise ShapeError(message)
    k, v = (np.repeat(_by_heads(float_of(one), input_layout, heads), head_num // heads, 1) for one in (key, value))
    scores = q @ np.swapaxes(k, -1, -2) * scalar_value
    if real_shift is not None:
        scores = scores + value_of(real_shift)
    hidden = _hidden(attn_mask, sparse_mode, q.shape[2], k.shape[2], pre_tokens, next_tokens)
    if hidden is None:
        weights = softmax(scores, -1)
    else:
        hidden = np.broadcast_to(hidden, scores.shape)
        some = ~np.all(hidden, -1, keepdims=True)
        weights = np.where(some, softmax(np.where(hidden & some, -np.inf, scores), -1), 0.0)
    if drop_mask is not None:
        bits = np.unpackbits(numpy.asarray(value_of(drop_mask)), axis=-1, bitorder="little")
        weights = weights * bits.reshape(weights.shape) / keep_prob
    elif keep_prob < 1:
        weights = dropout(weights, 1 - keep_prob)
    return _as_given(weights @ v, input_layout).astype(_dtype(tokens))


# ----- Experts -----


@documented
def moe_token_permute(
    tokens: Any, indices: Any, num_out_tokens: int | None = None, padded_mode: bool = False
) -> tuple[Tensor, Tensor]:
    """Tokens in the order of their experts, each as often as it has experts.

    tokens : Tensor or ndarray, shape (n, h)
    indices : Tensor or ndarray of int, shape (n,) or (n, k)
        The experts of each token.
    num_out_tokens : int, optional
        How many of them are given; a negative number counts from the end.
    padded_mode : {False}
    -> tuple of two Tensors
        The tokens, and where each token went.
    """
    only("padded_mode", padded_mode, False)
    experts = value_of(indices)
    count = 1 if experts.ndim == 1 else experts.shape[1]
    order = np.argsort(experts.ravel(), stable=True)
    end = math.prod(experts.shape) if not num_out_tokens else integers(num_out_tokens, "num_out_tokens")[0]
    return value_of(tokens)[order[:end] // count], np.argsort(order, stable=True).astype(np.int32)


@documented
def moe_token_unpermute(
    permuted_tokens: Any, sorted_indices: Any, probs: Any = None, padded_mode: bool = False, restore_shape: Any = None
) -> Tensor:
    """Tokens in their own order again; the copies of several experts are added, times their weights.

    permuted_tokens : Tensor or ndarray, shape (n * k, h)
    sorted_indices : Tensor or ndarray of int, shape (n * k,)
        Where each token went.
    probs : Tensor, optional, shape (n, k)
        The weights of the experts.
    padded_mode : {False}
    restore_shape : sequence of int, optional
        Has no effect.
    """
    only("padded_mode", padded_mode, False)
    del restore_shape
    found = value_of(permuted_tokens)[value_of(sorted_indices)]
    if probs is None:
        return found
    weights = value_of(probs)
    return np.sum(found.reshape((*weights.shape, -1)) * weights[..., None], 1).astype(_dtype(found))
