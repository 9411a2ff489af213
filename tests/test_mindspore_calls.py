"""MindSpore's rarer functions, class forms, layers and metrics, and `mint`: values as MindSpore 2.10 gave them.

In: calls of recorded/record_mindspore_calls.py. `DIFFERENT` lists results that nbgrad gives otherwise on purpose.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

from .recorded.record_mindspore_calls import CALLS, FILE, names, plain

pytestmark = pytest.mark.unoptimized

RECORDED: dict[str, Any] = json.loads(FILE.read_text())
DIFFERENT = {
    "ops.hann_window(1)": "float64 in MindSpore, whose other windows are float32 by default",
    "ops.kaiser_window(6, False, 7.0)": "float64 in MindSpore, whose other windows are float32 by default",
}
"""Call -> the reason. Values are compared, dtypes are not."""


def same(got: Any, want: Any, loose: bool = False) -> None:
    if isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            same(one, other, loose)
        return
    assert got["shape"] == want["shape"]
    assert got["dtype"] == want["dtype"] or loose
    assert got.get("special") == want.get("special")
    np.testing.assert_allclose(got["data"], want["data"], rtol=3e-5, atol=3e-6)


@pytest.mark.parametrize("call", CALLS)
def test_calls_give_mindspores_values(call: str) -> None:
    same(plain(eval(call, names("nbgrad"))), RECORDED[call], call in DIFFERENT)


def test_every_call_is_recorded() -> None:
    assert set(CALLS) == set(RECORDED)
    assert {*DIFFERENT} <= {*CALLS}


# ----- Derivatives -----

SLOPES = {
    "bessel_i1e": lambda x: nb.ops.bessel_i1e(x),
    "igamma": lambda x: nb.ops.igamma(np.float64(1.5), x),
    "logit": lambda x: nb.ops.logit(x / 10.0),
    "xdivy": lambda x: nb.ops.xdivy(x, x + 1.0),
    "float_power": lambda x: nb.ops.float_power(x, 3),
    "logcumsumexp": lambda x: nb.ops.logcumsumexp(x, 1),
    "tensor_scatter_max": lambda x: nb.ops.tensor_scatter_max(x, np.array([[0, 1], [1, 2]]), x[0, :2] + 0.3),
    "tensor_scatter_mul": lambda x: nb.ops.tensor_scatter_mul(x, np.array([[0, 1], [0, 1]]), x[0, :2]),
    "unsorted_segment_sum": lambda x: nb.ops.unsorted_segment_sum(x, np.array([1, 1]), 3),
    "unsorted_segment_min": lambda x: nb.ops.unsorted_segment_min(x, np.array([0, 0]), 1),
    "select_scatter": lambda x: nb.ops.select_scatter(x, x[0] * 2, 0, 1),
    "diagonal_scatter": lambda x: nb.ops.diagonal_scatter(x, x[0, :2], 1),
    "diag_embed": lambda x: nb.ops.diag_embed(x),
    "matrix_diag_part": lambda x: nb.ops.matrix_diag_part(x, (-1, 1), 0.0),
    "matrix_diag": lambda x: nb.ops.matrix_diag(x),
    "nanmedian": lambda x: nb.ops.nanmedian(x, 1)[0],
    "reverse_sequence": lambda x: nb.ops.reverse_sequence(x, np.array([2, 3]), 1),
    "space_to_batch_nd": lambda x: nb.ops.space_to_batch_nd(x[None], [1], [[0, 0]]),
    "pixel_shuffle": lambda x: nb.ops.pixel_shuffle(x.reshape(1, 1, 2, 3) * np.ones((1, 4, 1, 1)), 2),
    "pdist": lambda x: nb.ops.pdist(x, 3.0),
    "renorm": lambda x: nb.ops.renorm(x, 2, 0, 1.0),
    "batch_dot": lambda x: nb.ops.batch_dot(x, x, (1, 1)),
    "grid_sample": lambda x: nb.ops.grid_sample(x.reshape(1, 1, 2, 3), x[:, :2].reshape(1, 2, 1, 2) / 4, "bilinear"),
    "affine_grid": lambda x: nb.ops.affine_grid(x[None], (1, 1, 2, 2)),
    "crop_and_resize": lambda x: nb.ops.crop_and_resize(
        x.reshape(1, 2, 3, 1), np.array([[0.1, 0.2, 0.7, 0.9]]), np.array([0]), (2, 2)
    ),
    "adaptive_avg_pool3d": lambda x: nb.ops.adaptive_avg_pool3d(x.reshape(1, 1, 2, 3, 1), (1, 2, 1)),
    "adaptive_max_pool3d": lambda x: nb.ops.adaptive_max_pool3d(x.reshape(1, 1, 2, 3, 1), (1, 2, 1)),
    "max_unpool2d": lambda x: nb.ops.max_unpool2d(x.reshape(1, 1, 2, 3), np.arange(6).reshape(1, 1, 2, 3), 1),
    "multi_margin_loss": lambda x: nb.ops.multi_margin_loss(x, np.array([0, 2])),
    "triplet_margin_loss": lambda x: nb.ops.triplet_margin_loss(x, x * 2 + 1, x**2, 5.0),
    "stft": lambda x: nb.ops.stft(x, 2, 1),
    "coo": lambda x: nb.COOTensor(np.array([[0, 1], [1, 0], [1, 1]]), x[0], (2, 2)).to_dense(),
    "csr": lambda x: nb.CSRTensor(np.array([0, 2, 3]), np.array([0, 1, 1]), x[0], (2, 2)).mm(x),
    "argmax_with_value": lambda x: (x * nb.Tensor(1.0)).argmax_with_value(1)[0],
    "fill_diagonal": lambda x: (x * nb.Tensor(1.0)).fill_diagonal(0.5),
    "index_put": lambda x: (x * nb.Tensor(1.0)).index_put([np.array([0, 0]), np.array([1, 1])], x[0, :2], True),
    "masked_scatter": lambda x: (x * nb.Tensor(1.0)).masked_scatter(np.eye(2, 3, dtype=bool), x[1] ** 2),
    "mint.max": lambda x: nb.mint.max(x, 1)[0],
    "mint.std": lambda x: nb.mint.std(x, 1),
    "mint.threshold": lambda x: nb.mint.nn.functional.threshold(x, 1.0, 0.0),
    "mint.embedding": lambda x: nb.mint.nn.functional.embedding(np.array([0, 1, 1]), x, 0)[1:],
}
"""Functions of a matrix of 2 rows and 3 columns."""


@pytest.mark.parametrize("name", SLOPES)
def test_derivatives(name: str) -> None:
    x = np.array([[0.7, 1.9, 1.3], [2.2, 0.5, 1.6]])
    nb.check_grads(SLOPES[name], (x,), order=1)
    function = SLOPES[name]
    np.testing.assert_allclose(np.asarray(nb.jit(function)(x)), np.asarray(function(nb.Tensor(x))), rtol=1e-12)


# ----- What MindSpore's CPU does not know -----

X = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -2.0]])
ON_PAPER = {
    "mint.std(X, 1)": np.std(X, 1, ddof=1),
    "mint.var(X, (0, 1), correction=0)": np.var(X),
    "mint.var_mean(X, 0)[1]": np.mean(X, 0),
    "mint.std_mean(X)[0]": np.std(X, ddof=1),
    "mint.sort(X, dim=0, descending=True)[1]": np.array([[1, 1, 0], [0, 0, 1]]),
    "mint.argsort(X)": np.argsort(X, -1),
    "mint.topk(X, 2)[0]": np.array([[2.0, 0.5], [3.0, 0.25]]),
    "mint.median(X)": np.array(0.25),
    "mint.median(X, 1)[0]": np.median(X, 1),
    "mint.kthvalue(X, 2, 1, True)[0]": np.array([[0.5], [0.25]]),
    "mint.norm(X, 3, 1)": np.sum(np.abs(X) ** 3, 1) ** (1 / 3),
    "mint.norm(X, 'nuc')": np.linalg.norm(X, "nuc"),
    "mint.linalg.inv(X[:, :2])": np.linalg.inv(X[:, :2]),
    "mint.count_nonzero(X, 1)": np.array([3, 3]),
    "mint.t(X)": X.T,
    "mint.any(X > 2, 1)": np.array([False, True]),
    "mint.all(X > -2, dim=1, keepdim=True)": np.array([[True], [False]]),
    "mint.conv2d(X[None, None], X[None, None])": np.array([[[[np.sum(X * X)]]]]),
    "mint.flatten(X)": X.ravel(),
    "mint.diag(X[0], 1)": np.diag(X[0], 1),
    "mint.take(X, I)": np.take(X, [[1, 0, 4]]),
    "mint.scatter_add(X, 1, J, X[:1])": np.array([[-0.5, 1.5, 2.0], [3.0, 0.25, -2.0]]),
    "mint.vdot(X[0], X[1])": np.vdot(X[0], X[1]),
    "mint.repeat_interleave(X, 2, 1)": np.repeat(X, 2, 1),
    "mint.triangular_solve(X[:, :1], Q)[0]": np.linalg.solve(np.triu([[2.0, 1.0], [5.0, 4.0]]), X[:, :1]),
    "mint.special.log_softmax(X, 1)": X - np.log(np.exp(X).sum(1, keepdims=True)),
    "mint.add(X, 1.0, alpha=3)": X + 3,
    "mint.equal(X, X)": np.array(True),
    "mint.nn.functional.one_hot(K)": np.eye(3, dtype=np.int64)[[0, 2, 1]],
    "mint.nn.functional.leaky_relu(X)": np.where(X > 0, X, 0.01 * X),
    "mint.nn.functional.softmax(X)": np.exp(X) / np.exp(X).sum(1, keepdims=True),
    "mint.nn.functional.threshold(X, 0.4, 7.0)": np.where(X > 0.4, X, 7.0),
    "mint.nn.functional.avg_pool1d(X[None], 3)": X.mean(1).reshape(1, 2, 1),
    "mint.nn.functional.max_pool2d(X[None], (2, 1))": X.max(0).reshape(1, 1, 3),
    "mint.nn.functional.conv1d(X[None], X[None, :, :2], padding=1)": np.sum(
        [np.convolve([0, *row, 0], row[1::-1], "valid") for row in X], 0
    ).reshape(1, 1, 4),
    "mint.nn.functional.kl_div(X, X, 'sum', True)": np.array(0.0),
    "mint.nn.functional.nll_loss(X, K[:2])": np.array(-(0.5 - 2.0) / 2),
    "mint.nn.Threshold(0.4, 7.0)(X)": np.where(X > 0.4, X, 7.0),
    "mint.nn.LayerNorm(3)(X)": (X - X.mean(1, keepdims=True)) / np.sqrt(X.var(1, keepdims=True) + 1e-5),
    "mint.nn.UpsamplingNearest2d(scale_factor=2)(X[None, None])": X.repeat(2, 0).repeat(2, 1)[None, None],
    "mint.nn.Softmax(dim=0)(X)": np.exp(X) / np.exp(X).sum(0),
    "ops.zeta(4.0, 1.0)": np.array(np.pi**4 / 90),
    "ops.adaptive_max_pool1d(X[None], 2)": np.array([[[0.5, 2.0], [3.0, 0.25]]]),
    "ops.multilabel_margin_loss(X[0], T([2, -1, 0]))": np.array((0 + 0) / 3),
    "ops.triplet_margin_loss(X, X, X, 0.5)": np.array(0.5),
    "ops.soft_margin_loss(X, T(1))": np.mean(np.log1p(np.exp(-X))),
    "ops.population_count(T([7, 8, -1]))": np.array([3, 1, 64]),
    "ops.float_power(T([2, 3]), 2)": np.array([4.0, 9.0]),
    "ops.UnsortedSegmentSum()(X, T([1, -1]), 2)": np.array([[0.0, 0, 0], X[0]]),
    "ops.Primitive('square')(X)": X**2,
}


@pytest.mark.parametrize("call", ON_PAPER)
def test_values_on_paper(call: str) -> None:
    seen = {
        "X": nb.Tensor(X),
        "I": nb.Tensor([[1, 0, 4]]),
        "J": nb.Tensor([[1, 0, 1]]),
        "K": nb.Tensor([0, 2, 1]),
        "T": nb.Tensor,
    }
    seen |= {"Q": nb.Tensor([[2.0, 1.0], [5.0, 4.0]]), "mint": nb.mint, "ops": nb.ops}
    got = np.asarray(eval(call, seen))
    np.testing.assert_allclose(got, ON_PAPER[call], rtol=1e-6, atol=1e-12)
    assert got.shape == np.shape(ON_PAPER[call])


def test_names_of_mint_draw_and_fill() -> None:
    nb.set_seed(1)
    mint = nb.mint
    assert mint.randint(3, (2, 5)).shape == (2, 5)
    assert mint.randint_like(nb.Tensor(X), 4).dtype == nb.float64
    assert sorted(mint.randperm(5).tolist()) == [0, 1, 2, 3, 4]
    assert mint.empty(2, 3).shape == mint.empty((2, 3)).shape == mint.empty_like(nb.Tensor(X)).shape
    assert mint.normal(nb.Tensor([1.0, 2.0]), 0.0).tolist() == [1.0, 2.0]
    assert mint.bernoulli(nb.Tensor([0.0, 1.0])).tolist() == [0.0, 1.0]
    assert mint.multinomial(nb.Tensor([0.0, 1.0, 0.0]), 1).tolist() == [1]
    x = nb.Tensor([-1.0, 2.0])
    assert mint.nn.functional.relu_(x) is x and x.tolist() == [0.0, 2.0]
    layer = mint.nn.Dropout(0.5)
    assert layer.set_train(False)(x).tolist() == [0.0, 2.0]
    assert set(layer.set_train()(nb.ops.ones(100)).tolist()) == {0.0, 2.0}
    with pytest.raises(nb.errors.ArgumentError, match="takes the options"):
        mint.nn.Threshold(1.0)
    with pytest.raises(nb.errors.ShapeError, match="at most two axes"):
        mint.t(nb.ops.ones((1, 1, 1)))
    with pytest.raises(AttributeError, match=r"nbgrad\.mint has no 'maxx'"):
        _ = getattr(mint, "maxx")  # noqa: B009 - the checker knows that it is not there


def test_names_of_parameters_are_pytorchs() -> None:
    layers = nb.mint.nn
    norm = layers.BatchNorm2d(2)
    assert sorted(norm.parameters_dict()) == ["bias", "running_mean", "running_var", "weight"]
    y = norm.set_train()(nb.Tensor(np.arange(8.0, dtype=np.float32).reshape(1, 2, 2, 2)))
    np.testing.assert_allclose(np.asarray(norm.running_mean.value()), [0.15, 0.55], rtol=1e-6)
    np.testing.assert_allclose(np.asarray(y).mean((0, 2, 3)), 0.0, atol=1e-6)
    assert layers.Conv2d(2, 4, 3, padding=(1, 0))(nb.ops.ones((1, 2, 5, 5))).shape == (1, 4, 5, 3)
    assert layers.Conv1d(1, 1, 2, padding="same")(nb.ops.ones((1, 1, 4))).shape == (1, 1, 4)
    assert layers.Embedding(4, 3).weight.shape == (4, 3)
    assert layers.Linear(2, 3, bias=False).bias is None


STEPS = {
    # m, v after one step of Kingma and Ba; the gradient is 2 w + weight decay
    "Adam": lambda w, g: w - 0.1 * (g + 0.5 * w) / (np.abs(g + 0.5 * w) + 1e-8),
    "AdamW": lambda w, g: w * (1 - 0.1 * 0.5) - 0.1 * g / (np.abs(g) + 1e-8),
    "SGD": lambda w, g: w - 0.1 * (g + 0.5 * w),
}


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("maximize", [False, True])
def test_optimizers_of_mint(name: str, maximize: bool) -> None:
    start, gradient = np.array([1.0, -3.0]), np.array([0.5, 2.0])
    weight = nb.Parameter(nb.Tensor(start), name="w")
    optimizer = getattr(nb.mint.optim, name)([weight], lr=0.1, weight_decay=0.5, maximize=maximize)
    optimizer([nb.Tensor(gradient)])
    want = STEPS[name](start, -gradient if maximize else gradient)
    np.testing.assert_allclose(np.asarray(weight.value()), want, rtol=1e-7)


def test_members_of_tensor_and_users_primitives() -> None:
    x = nb.Tensor(np.arange(6, dtype=np.int16).reshape(2, 3))
    assert (x.stride(), x.stride(0), x.storage_offset(), x.is_signed(), x.data is x) == ([3, 1], 3, 0, True, True)
    assert nb.Tensor.convert_bytes_to_tensor(x.get_bytes(), x.shape, x.dtype).tolist() == x.tolist()
    assert x.type_as(nb.Tensor(1.0)).dtype == x.type(nb.float32).dtype == nb.float32
    assert x.to_csr().to_dense().tolist() == x.to_coo().to_dense().tolist() == x.tolist()
    assert x.gather(1, nb.Tensor([[0], [2]])).tolist() == [[0], [5]]
    assert 0 <= x.random_(0, 3).asnumpy().min() <= x.asnumpy().max() < 3
    primitive = nb.ops.Primitive("no such function")
    with pytest.raises(nb.errors.ArgumentError, match="no function"):
        primitive(x)


def test_complex_numbers_print_as_in_mindspore() -> None:
    numbers = nb.Tensor(np.array([1.5 + 2j, 1 / 3 - 2e-9j], np.complex64))
    assert repr(numbers) == "Tensor(shape=[2], dtype=Complex64, value= [1.5+2j, 0.333333-2e-09j])"
    assert repr(numbers[0]) == "Tensor(shape=[], dtype=Complex64, value= 1.5+2j)"
    assert repr(nb.Tensor(True)) == "Tensor(shape=[], dtype=Bool, value= True)"


SEGMENTS = {
    # function -> of [1, 2, 3, 4, 5] in the segments [2, 0, 2, -1, 0] of three, and its gradient
    "unsorted_segment_sum": ([7.0, 0.0, 4.0], [1.0, 1.0, 1.0, 0.0, 1.0]),
    "unsorted_segment_max": ([5.0, np.finfo(np.float32).min, 3.0], [0.0, 0.0, 1.0, 0.0, 1.0]),
    "unsorted_segment_prod": ([10.0, 1.0, 3.0], [3.0, 5.0, 1.0, 0.0, 2.0]),
    "unsorted_segment_min": ([2.0, np.finfo(np.float32).max, 1.0], [1.0, 1.0, 0.0, 0.0, 0.0]),
}


@pytest.mark.parametrize("name", SEGMENTS)
def test_segments_that_calls_bring(name):
    function, (expected, slope) = getattr(nb.ops, name), SEGMENTS[name]
    x, ids = nb.Tensor([1.0, 2.0, 3.0, 4.0, 5.0]), nb.Tensor([2, 0, 2, -1, 0])
    assert function(x, ids, 3).tolist() == expected
    compiled = nb.jit(lambda x, ids: function(x, ids, 3))
    assert compiled(x, ids).tolist() == expected
    assert nb.jit(nb.grad(lambda x, ids: function(x, ids, 3)[::2].sum()))(x, ids).tolist() == slope
    with pytest.raises(IndexError):
        function(x, nb.Tensor([0, 0, 0, 0, 3]), 3)


def test_labels_and_lengths_of_alignments_that_calls_bring():
    """Two frames of three classes, one label: the alignments are "1 1", "1 -" and "- 1"."""
    chances = np.array([[[0.5, 0.3, 0.2]], [[0.6, 0.1, 0.3]]])
    loss = nb.jit(lambda x, labels, lengths, sizes: nb.ops.ctc_loss(x, labels, lengths, sizes, 0, "none")[0])
    call = [np.array([[1]]), np.array([2]), np.array([1])]
    expected = -np.log(0.3 * 0.1 + 0.3 * 0.6 + 0.5 * 0.1)
    np.testing.assert_allclose(loss(np.log(chances), *call), [expected], rtol=1e-12)
    call[1] = np.array([1])
    np.testing.assert_allclose(loss(np.log(chances), *call), [-np.log(0.3)], rtol=1e-12)
