"""Further functions, class forms and layers of MindSpore's: values as MindSpore 2.10 gave them, and derivatives.

In: calls of recorded/record_mindspore_further.py.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import scipy.stats

import nbgrad as nb

from .recorded.record_mindspore_further import CALLS, FILE, names, plain

pytestmark = pytest.mark.unoptimized

RECORDED: dict[str, Any] = json.loads(FILE.read_text())


def same(got: Any, want: Any) -> None:
    if isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            same(one, other)
        return
    assert (got["shape"], got["dtype"], got.get("special")) == (want["shape"], want["dtype"], want.get("special"))
    np.testing.assert_allclose(got["data"], want["data"], rtol=3e-5, atol=3e-6)


@pytest.mark.parametrize("call", CALLS)
def test_calls_give_mindspores_values(call: str) -> None:
    same(plain(eval(call, names("nbgrad"))), RECORDED[call])


def test_every_call_is_recorded() -> None:
    assert set(CALLS) == set(RECORDED)


# ----- Derivatives -----

SLOPES = {
    "cartesian_prod": lambda x: nb.ops.cartesian_prod(x[0], x[1]),
    "vecdot": lambda x: nb.ops.vecdot(x, x * x),
    "bidense": lambda x: nb.ops.bidense(x, x, nb.ops.stack((x.T @ x, x.T @ x * 2.0)), x[:, 0]),
    "ldexp": lambda x: nb.ops.ldexp(x, x),
    "rrelu": lambda x: nb.ops.rrelu(-x, 0.25, 0.25),
    "threshold": lambda x: nb.ops.threshold(x, 1.0, 0.3),
    "swiglu": lambda x: nb.ops.swiglu(x, 0),
    "cov": lambda x: nb.ops.cov(x, correction=0, aweights=x[0]),
    "quantile": lambda x: nb.ops.quantile(x, np.array([0.2, 0.7]), 1),
    "embedding": lambda x: nb.ops.embedding(np.array([0, 1, 1]), x, 0)[1:],
    "lp_pool1d": lambda x: nb.ops.lp_pool1d(x, 3, 2, 1),
    "lp_pool2d": lambda x: nb.ops.lp_pool2d(x[None], 2.5, 2, 1),
    "fractional_max_pool2d": lambda x: nb.ops.fractional_max_pool2d(
        x[None], (1, 2), (2, 2), None, False, np.full((1, 1, 2), 0.6)
    ),
    "conv3d_transpose": lambda x: nb.ops.conv3d_transpose(x.reshape(1, 1, 2, 3, 1), x.reshape(1, 1, 2, 3, 1)),
    "trilinear": lambda x: nb.ops.interpolate(x.reshape(1, 1, 2, 3, 1), (3, 4, 2), mode="trilinear"),
    "area": lambda x: nb.ops.interpolate(x[None, None], (1, 2), mode="area"),
    "bicubic": lambda x: nb.ops.interpolate(x[None, None], (3, 4), mode="bicubic"),
    "FFTWithSize": lambda x: nb.ops.FFTWithSize(2, True, True, signal_sizes=(2, 3))(
        nb.ops.FFTWithSize(2, False, True)(x)
    ),
    "CumulativeLogsumexp": lambda x: nb.ops.CumulativeLogsumexp(False, True)(x, nb.Tensor(1)),
    "LuSolve": lambda x: nb.ops.LuSolve()(x[:, :1], x[:, 1:] * np.eye(2) + np.tril(x[:, 1:]), np.array([1, 2])),
    "Lstsq": lambda x: nb.ops.Lstsq(l2_regularizer=0.5)(x, x[:, :1]),
    "TridiagonalMatMul": lambda x: nb.ops.TridiagonalMatMul()(x[:1], x[1:], x[:1], x.T),
    "ReduceStd": lambda x: nb.ops.ReduceStd(1)(x)[0],
    "DiagPart": lambda x: nb.ops.DiagPart()(nb.ops.Diag()(x) ** 2),
    "PadV3": lambda x: nb.ops.PadV3("reflect")(x[None], np.array([1, 1])),
    "SegmentMax": lambda x: nb.ops.SegmentMax()(x, np.array([0, 0])),
    "SegmentProd": lambda x: nb.ops.SegmentProd()(x, np.array([1, 1])),
    "Coalesce": lambda x: nb.ops.Coalesce()(np.array([[0, 0, 1], [1, 1, 0]]), x[0], np.array([2, 2]))[1],
    "RGBToHSV": lambda x: nb.ops.RGBToHSV()(x),
    "HSVToRGB": lambda x: nb.ops.HSVToRGB()(x / 4.0),
    "AdjustHue": lambda x: nb.ops.AdjustHue()(x, nb.Tensor(0.2)),
    "ctc_loss": lambda x: nb.ops.ctc_loss(nb.ops.log_softmax(x[:, None]), np.array([[1]]), (2,), (1,), 0, "sum")[0],
    "TripletMarginLoss": lambda x: nb.ops.TripletMarginLoss()(x, x * 2 + 1, x**2, nb.Tensor(5.0)),
    "FocalLoss": lambda x: nb.nn.FocalLoss(nb.Tensor([0.5, 1.0, 2.0]))(x, np.array([[1], [2]])),
    "MultiClassDiceLoss": lambda x: nb.nn.MultiClassDiceLoss()(x, np.eye(2, 3)),
    "SampledSoftmaxLoss": lambda x: nb.nn.SampledSoftmaxLoss(
        1, 3, sampled_values=(np.array([2]), np.array([[0.5], [0.5]]), np.array([0.3]))
    )(x.T, x[0], np.array([[0], [1]]), x[:, :2]),
    "PoissonNLLLoss": lambda x: nb.nn.PoissonNLLLoss(False, True)(x, np.array([0.0, 2.0, 5.0])),
    "Unflatten": lambda x: nb.nn.Unflatten(0, (2, 1))(x) ** 2,
    "Moments": lambda x: nb.nn.Moments(0)(x)[1],
    "TimeDistributed": lambda x: nb.nn.TimeDistributed(nb.nn.Softmax(), 1, 0)(x[None]),
    "GradAccumulationCell": lambda x: nb.nn.GradAccumulationCell(nb.nn.Softmax(), 2)(x),
    "jet": lambda x: nb.ops.jet(nb.ops.sin, x, nb.ops.stack((x, x * x)))[1],
}
"""Functions of a matrix of 2 rows and 3 columns."""


@pytest.mark.parametrize("name", SLOPES)
def test_derivatives(name: str) -> None:
    x = np.array([[0.7, 1.9, 1.3], [2.2, 0.5, 1.6]])
    nb.check_grads(SLOPES[name], (x,), order=1)
    function = SLOPES[name]
    np.testing.assert_allclose(np.asarray(nb.jit(function)(x)), np.asarray(function(nb.Tensor(x))), rtol=1e-12)


def test_gradients_are_seen_and_changed_on_their_way() -> None:
    seen: list[Any] = []
    hook = nb.ops.HookBackward(seen.append)
    assert float(nb.grad(lambda x: hook(x * 3.0) ** 2)(nb.Tensor(2.0))) == 36.0
    assert len(seen) == 1 and len(seen[0]) == 1 and seen[0][0].shape == ()
    doubled = nb.ops.HookBackward(lambda cotangents: tuple([one * 2.0 for one in cotangents]))
    assert float(nb.grad(lambda x: doubled(x) ** 2)(nb.Tensor(3.0))) == 12.0
    first, second = nb.grad(lambda x, y: doubled(x, y)[0] * y, (0, 1))(nb.Tensor(3.0), nb.Tensor(5.0))
    assert (float(first), float(second)) == (10.0, 3.0)
    clipped = nb.ops.InsertGradientOf(lambda dx: nb.ops.clamp(dx, 0.2, 1.0))
    assert float(nb.grad(lambda x: clipped(x) * 7.0)(nb.Tensor(3.0))) == 1.0


# ----- What MindSpore's CPU does not know -----

X = np.array([[0.5, -1.0, 2.0], [3.0, 0.25, -2.0]])
N = np.array([[0.5, np.nan, 2.0], [3.0, 0.25, -2.0]])
ON_PAPER = {
    "ops.quantile(X, 0.3)": np.quantile(X, 0.3),
    "ops.quantile(X, T([0.1, 0.9]), 1, True)": np.quantile(X, [0.1, 0.9], 1, keepdims=True),
    "ops.nanquantile(N, 0.5, 1)": np.nanquantile(N, 0.5, 1),
    "ops.Quantile(1, True, True)(N, T(0.25))": np.nanquantile(N, 0.25, 1, keepdims=True),
    "ops.swiglu(X, 0)": (X[0] / (1 + np.exp(-X[0])) * X[1])[None],
    "ops.type_as(X, T([1]))": np.trunc(X),
    "ops.t(X)": X.T,
    "ops.tensor_gt(X, 0)": X > 0,
    "ops.scalar_add(2, 3)": np.array(5),
    "ops.SegmentSum()(X, T([0, 0]))": X.sum(0)[None],
    "ops.SegmentMean()(X, T([0, 2]))": np.array([X[0], [0, 0, 0], X[1]]),
    "ops.SegmentMin()(X, T([0, 1]))": X,
    "ops.ScatterAddWithAxis(1)(X, T([[1], [0]]), T([[4.0], [5.0]]))": X + np.array([[0, 4, 0], [5, 0, 0.0]]),
    "ops.SparseSlice()(T([[0, 1], [1, 2], [2, 2]]), X[0], T([3, 4]), T([1, 2]), T([5, 2]))[0]": np.array(
        [[0, 0], [1, 0]]
    ),
    "ops.SparseSlice()(T([[0, 1], [1, 2], [2, 2]]), X[0], T([3, 4]), T([1, 2]), T([5, 2]))[1]": np.array([-1.0, 2.0]),
    "ops.MatrixLogarithm()(X.T @ X + np.eye(3))": scipy.linalg.logm(X.T @ X + np.eye(3)),
    "ops.Cdist(1.0)(X, X)": np.abs(X[:, None] - X[None]).sum(-1),
    "ops.CeLU()(X)": np.where(X > 0, X, np.expm1(X)),
    "ops.CountNonZero([1])(X)": np.array([3, 3]),
    "ops.Roll(1, 0)(X)": X[::-1],
    "ops.MultilabelMarginLoss()(X[0], T([2, -1, 0]))[1]": np.array([0, 0, 1]),
    "ops.PyFunc(lambda x: x * 2, [], [], [X.dtype], [X.shape])((X,))[0]": 2 * X,
    "nn.GradAccumulationCell(nn.ReLU(), 2)(X)": np.maximum(X, 0).sum(0)[None],
    "nn.MatDet()(X @ X.T)": np.linalg.det(X @ X.T),
    "nn.MatInverse()(X @ X.T)": np.linalg.inv(X @ X.T),
    "nn.Roll((1, 1), (0, 1))(X)": np.roll(X, (1, 1), (0, 1)),
    "nn.Jvp(lambda x, y: x * y)(X, X, (X, X * 3))[1]": 4 * X * X,
    "nn.Vjp(lambda x: x * x)(X, X)[1]": 2 * X * X,
}


@pytest.mark.parametrize("call", ON_PAPER)
def test_values_on_paper(call: str) -> None:
    seen = {"X": nb.Tensor(X), "N": nb.Tensor(N), "T": nb.Tensor, "ops": nb.ops, "nn": nb.nn, "np": np}
    got = np.asarray(eval(call, seen))
    np.testing.assert_allclose(got, ON_PAPER[call], rtol=1e-6, atol=1e-12)
    assert got.shape == np.shape(ON_PAPER[call])


def test_numbers_drawn_have_their_distributions() -> None:
    nb.set_seed(2)
    drawn = nb.ops.Cauchy([4000], 1.0, 2.0)()
    assert scipy.stats.kstest(np.asarray(drawn), scipy.stats.cauchy(1.0, 2.0).cdf).pvalue > 1e-3
    logs = np.log(np.asarray(nb.ops.LogNormalReverse(1.0, 0.5)(nb.ops.zeros(4000))))
    assert scipy.stats.kstest(logs, scipy.stats.norm(1.0, 0.5).cdf).pvalue > 1e-3
    x = nb.ops.zeros(4000)
    assert x.normal_(1.0, 2.0) is x
    assert scipy.stats.kstest(np.asarray(x), scipy.stats.norm(1.0, 2.0).cdf).pvalue > 1e-3
    assert scipy.stats.kstest(np.asarray(x.exponential_(2.0)), scipy.stats.expon(scale=0.5).cdf).pvalue > 1e-3
    assert 0.25 < float(x.bernoulli_(0.3).mean()) < 0.35
    slopes = np.asarray(nb.ops.rrelu(nb.ops.full((4000,), -1.0)))
    assert scipy.stats.kstest(-slopes, scipy.stats.uniform(1 / 8, 1 / 3 - 1 / 8).cdf).pvalue > 1e-3
    assert nb.ops.Multinomial(seed=3)(nb.Tensor([0.0, 2.0, 0.0]), 2).tolist() == [1, 1]
    assert nb.nn.SampledSoftmaxLoss(2, 4)(np.ones((4, 3)), np.ones(4), np.array([[1], [2]]), np.ones((2, 3))).shape == (
        2,
    )


def test_low_classes_are_drawn_more_often() -> None:
    nb.set_seed(3)
    drawn, true, sampled = nb.ops.log_uniform_candidate_sampler(nb.Tensor([[0, 3]]), 2, 3000, False, 8)
    chance = np.log(np.arange(2, 10) / np.arange(1, 9)) / np.log(9)
    counts = np.bincount(np.asarray(drawn), minlength=8)
    assert scipy.stats.chisquare(counts, 3000 * chance).pvalue > 1e-3
    np.testing.assert_allclose(true, [3000 * chance[[0, 3]]], rtol=1e-5)
    assert sorted(nb.ops.LogUniformCandidateSampler(1, 5, True, 5)(nb.Tensor([[1]]))[0].tolist()) == [0, 1, 2, 3, 4]
    assert sampled.shape == (3000,)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        ("ops.lp_pool1d(X, 0, 2)", "ArgumentError", "must not be 0"),
        ("ops.lp_pool2d(X, 'two', 2)", "DtypeError", "must be a number"),
        ("ops.fractional_max_pool2d(X[None], 2)", "ArgumentError", "output_size or output_ratio"),
        ("ops.fractional_max_pool2d(X[None], 2, output_ratio=1.5)", "ArgumentError", "between 0 and 1"),
        ("ops.fractional_max_pool2d(X[None], 4, 1)", "ShapeError", "do not fit"),
        ("ops.fractional_max_pool3d(X, 2, 1)", "ShapeError", "takes 4 or 5 axes"),
        ("ops.rrelu(X, 0.5, 0.25)", "ArgumentError", "is above upper"),
        ("ops.rrelu(X, None)", "DtypeError", "must be a number"),
        ("ops.swiglu(X)", "ShapeError", "must be even"),
        ("ops.cartesian_prod()", "ArgumentError", "at least one array"),
        ("ops.cov(X[None])", "ShapeError", "a vector or a matrix"),
        ("ops.cov(X, fweights=X[0])", "DtypeError", "must be integers"),
        ("ops.cov(X, aweights=X[0, :2])", "ShapeError", "each of 3 columns"),
        ("ops.quantile(X, X)", "ShapeError", "has one axis"),
        ("ops.interpolate(X, 2, mode='bicubic')", "ShapeError", "needs an input with 4 axes"),
        ("ops.interpolate(X[None], mode='area')", "ArgumentError", "size or scale_factor"),
        ("ops.CheckNumerics()(X / 0)", "ArgumentError", "a NaN or an infinity"),
        ("ops.CompareAndBitpack()(X, 0.0)", "ShapeError", "multiple of 8"),
        ("ops.DiagPart()(X)", "ShapeError", "the same extents twice"),
        ("ops.PadV3()(X, [1])", "ShapeError", "a pair of widths"),
        ("ops.SegmentSum()(X, T([1, 0]))", "ShapeError", "must not fall"),
        ("ops.RGBToHSV()(X[:, :2])", "ShapeError", "three numbers in the last axis"),
        ("ops.UpsampleNearest3D()(X, None, None)", "ArgumentError", "output_size or scales"),
        ("ops.PyFunc(lambda x: (x, x), [], [], [1], [1])((X,))", "ArgumentError", "returned 2"),
        ("ops.log_uniform_candidate_sampler(T([[1]]), 1, 9, True, 5)", "ArgumentError", "only 5 classes"),
        ("ops.jet(ops.sin, X, X)", "ShapeError", "must have the shape"),
        ("ops.jet(ops.sin, (X, X), (X,))", "ArgumentError", "one curve for each point"),
        ("ops.derivative(ops.sin, X, 0)", "ArgumentError", "at least 1"),
        ("nn.FocalLoss([1.0])", "DtypeError", "must be a Tensor"),
        ("nn.FocalLoss(X)", "ShapeError", "must have one axis"),
        ("nn.FocalLoss()(X, X[0])", "ShapeError", "FocalLoss takes scores"),
        ("nn.MultiClassDiceLoss([1.0])", "DtypeError", "a row for each class"),
        ("nn.MultiClassDiceLoss()(X, X[0])", "ShapeError", "one shape"),
        ("nn.SampledSoftmaxLoss(5, 4)", "ArgumentError", "There are 4 classes"),
        ("nn.SampledSoftmaxLoss(2, 4, sampled_values=3)", "ArgumentError", "must be a tuple"),
        ("nn.L1Regularizer(0.0)", "ArgumentError", "positive and finite"),
        ("nn.Softmax2d()(X)", "ShapeError", "Softmax2d takes images"),
        ("nn.TimeDistributed(len, 1)", "DtypeError", "a Cell or a primitive"),
        ("nn.TimeDistributed(nn.ReLU(), 1)(X)", "ShapeError", "at least three axes"),
        ("nn.TimeDistributed(nn.Flatten(0, 1), 1, 0)(X[None])", "ShapeError", "cannot be taken apart"),
        ("nn.GradAccumulationCell(nn.ReLU(), 3)(X)", "ShapeError", "do not divide"),
        ("nn.Range(1, 2, 0)", "ArgumentError", "must not be 0"),
        ("nn.AdaFactor([P], 0.1)", "ArgumentError", "either a learning_rate"),
        ("nn.AdaFactor([P], 0.1, relative_step=False, warmup_init=True)", "ArgumentError", "which is off"),
        ("nn.AdaFactor([P], eps=0.1)", "ArgumentError", "a pair of numbers"),
    ],
)
def test_messages(call: str, error: str, words: str) -> None:
    weight = nb.Parameter(nb.Tensor([1.0]), name="w")
    seen = {"X": nb.Tensor(X), "T": nb.Tensor, "ops": nb.ops, "nn": nb.nn, "P": weight}
    with np.errstate(all="ignore"), pytest.raises(getattr(nb.errors, error), match=words):
        eval(call, seen)
