"""Calls of further functions, class forms and layers of MindSpore's that few programs use.

Run by a Python with MindSpore on a CPU, `python -m tests.recorded.record_mindspore_further` writes the results to
mindspore_further.json. test_mindspore_further.py makes the same calls in nbgrad. Recorded with MindSpore 2.10.0.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from .record_mindspore_calls import names as names_of_calls
from .record_mindspore_calls import plain as plain_real

FILE = Path(__file__).with_name("mindspore_further.json")
RANDOM = np.random.default_rng(210)


def drawn(*shape: int) -> np.ndarray:
    """Normal numbers."""
    return RANDOM.normal(size=shape).astype(np.float32)


ARRAYS: dict[str, np.ndarray] = {
    "A": drawn(1, 3, 7, 8),
    "A3": drawn(1, 3, 4, 5, 6),
    "R": RANDOM.uniform(size=(1, 3, 2)).astype(np.float32),
    "R3": RANDOM.uniform(size=(1, 3, 3)).astype(np.float32),
    "K3": drawn(3, 2, 2, 3, 2),
    "L3": drawn(4, 3, 2, 3, 2),
    "C": (drawn(3, 4) + 1j * drawn(3, 4)).astype(np.complex64),
    "whole": np.array([[3, 6, 9], [1, 0, 4]], np.int32),
    "often": np.array([1, 2, 1, 3], np.int32),
    "much": np.array([0.5, 1.5, 1.0, 2.0], np.float32),
    "LU": np.array([[2.0, 1.0, 1.0], [0.5, 1.0, 1.5], [0.5, 0.2, 2.5]], np.float32),
    "piv": np.array([2, 2, 3], np.int32),
    "rgb": RANDOM.uniform(size=(3, 4, 3)).astype(np.float32),
    "lower": np.tril(drawn(4, 4)) + 3 * np.eye(4, dtype=np.float32),
    "onehot": np.array([[0, 1, 0], [1, 0, 0], [0, 0, 1]], np.float32),
    "scores": drawn(3, 3),
    "labels": np.array([[1], [0], [2]], np.int32),
    "picture": drawn(2, 3, 4),
    "table": drawn(7, 5),
    "overlaps": RANDOM.uniform(size=(5, 5)).astype(np.float32),
    "heights": np.array([0.2, 0.9, 0.3, 0.85, 0.5], np.float32),
}

CALLS = [
    # ----- Combinations, statistics -----
    "ops.cartesian_prod(W, U[0], Z)",
    "ops.vecdot(M, M * 2.0)",
    "ops.vecdot(X, X, axis=1)",
    "ops.bidense(U, V, X[:, :, :3], W[:2])",
    "ops.adjoint(X)",
    "ops.adjoint(C)",
    "ops.diagflat(U, -2)",
    "ops.ldexp(M, whole[0, :1])",
    "ops.ldexp(whole, whole)",
    "ops.sgn(Z)",
    "ops.sgn(C)",
    "ops.threshold(M, 0.2, -3)",
    "ops.bucketize(whole, [1.0, 3.0, 5.0, 9.0])",
    "ops.bucketize(whole, [1.0, 3.0, 5.0, 9.0], right=True)",
    "ops.Bucketize([1.0, 3.0, 5.0, 9.0])(whole)",
    "ops.cov(M)",
    "ops.cov(M[0])",
    "ops.cov(M, correction=0, fweights=often)",
    "ops.cov(M, aweights=much)",
    "ops.cov(M, fweights=often, aweights=much)",
    "ops.float_power(whole, 2)",
    "ops.float_power(U, V)",
    "ops.float_power(C, 2)",
    "ops.upsample(A, size=(3, 4))",
    "ops.row_stack((M, M))",
    "ops.i0(U)",
    "ops.soft_shrink(M, 0.3)",
    # ----- Windows -----
    "ops.lp_pool1d(ops.abs(A[0]), 3, 3)",
    "ops.lp_pool1d(ops.abs(A[0]), 1.5, 4, 3, True)",
    "ops.lp_pool2d(ops.abs(A), 2, (3, 2), (2, 3), True)",
    "ops.fractional_max_pool2d(A, (2, 3), (4, 5), None, True, R)",
    "ops.fractional_max_pool2d(A, 2, None, (0.5, 0.6), True, R)",
    "ops.fractional_max_pool2d(A[0], 2, None, 0.5, True, R[:1])",
    "ops.fractional_max_pool3d(A3, (2, 3, 2), (2, 2, 4), None, True, R3)",
    "ops.FractionalMaxPoolWithFixedKsize(2, (4, 5))(A, R)",
    "ops.FractionalMaxPool3DWithFixedKsize(2, (2, 3, 4))(A3, R3)",
    "ops.conv3d_transpose(A3, K3)",
    "ops.conv3d_transpose(A3, K3, 'pad', 1, 2, 1, 1, 1)",
    "ops.Conv3D(4, (2, 3, 2))(A3, L3)",
    "ops.Conv3D(4, (2, 3, 2), stride=(1, 2, 1), pad_mode='pad', pad=1)(A3, L3)",
    "ops.Conv3D(4, (2, 3, 2), pad_mode='same')(A3, L3)",
    "ops.Conv3DTranspose(3, 2, (2, 3, 2), stride=2)(A3, K3)",
    "ops.interpolate(A3, size=(3, 4, 5), mode='trilinear')",
    "ops.interpolate(A3, size=(3, 4, 9), mode='trilinear', align_corners=True)",
    "ops.interpolate(A3, size=(3, 4, 9))",
    "ops.interpolate(A, size=(4, 5), mode='area')",
    "ops.interpolate(A, size=(12, 7), mode='bicubic')",
    "ops.interpolate(A, size=(12, 7), mode='bicubic', align_corners=True)",
    "ops.UpsampleNearest3D()(A3, [3, 4, 9], None)",
    "ops.UpsampleTrilinear3D(True)(A3, [3, 4, 9], None)",
    "ops.AdaptiveMaxPool2D((2, 3))(A)",
    "ops.AdaptiveMaxPool3D()(A3, T(np.array([2, 3, 4], np.int32)))",
    # ----- Transforms, equations -----
    "ops.FFTWithSize(2, False, True)(M)",
    "ops.FFTWithSize(1, False, True, 'ortho')(M)",
    "ops.FFTWithSize(2, True, False, 'forward')(C)",
    "ops.FFTWithSize(1, True, True, signal_sizes=(6,))(C)",
    "ops.FFTWithSize(2, False, False)(C)",
    "ops.CholeskySolve()(S[:, :2], LU)",
    "ops.CholeskySolve(True)(S[:, :2], ops.transpose(LU, (1, 0)))",
    "ops.MatrixTriangularSolve(True, False)(lower, Q[0])",
    "ops.MatrixTriangularSolve(True, True)(lower, Q[0])",
    "ops.LuSolve()(S[:, :2], LU, piv)",
    "ops.lu_solve(S[:, :2], LU, piv)",
    "ops.LuUnpack()(LU, piv)",
    "ops.Lstsq()(S, S[:, :2])",
    "ops.MatrixPower(3)(Q)",
    "ops.CumulativeLogsumexp(True, True)(M, T(1))",
    "ops.CumulativeLogsumexp(False, True)(M, T(0))",
    "ops.CumulativeLogsumexp(True, False)(M, T(0))",
    "ops.TridiagonalMatMul()(U[:1], U[1:], V[:1], scores)",
    "ops.ConjugateTranspose()(C, (1, 0))",
    # ----- Positions, counts, sparse arrays -----
    "ops.ReduceStd(1, False, True)(M)",
    "ops.ReduceStd()(M)",
    "ops.Histogram(5)(M)",
    "ops.Histogram(4, -1.0, 1.0)(M)",
    "ops.CheckNumerics()(M)",
    "ops.CompareAndBitpack()(ops.reshape(X, (3, 8)), N(0.1))",
    "ops.ListDiff()(runs, k)",
    "ops.RaggedRange(dtype.int64)(k, k + 3, T(np.array([1, 1, 2, 2], np.int32)))",
    "ops.Diag()(U)",
    "ops.DiagPart()(ops.Diag()(U))",
    "ops.FillDiagonal(3.0)(M)",
    "ops.FillDiagonal(3.0, True)(table)",
    "ops.UnravelIndex()(k, T(np.array([2, 2], np.int32)))",
    "ops.IdentityN()([M, U])",
    "ops.PadV3('constant')(M, T(np.array([1, 0, 2, 1])), N(1.5))",
    "ops.PadV3('constant', False)(M, T(np.array([1, 0, 2, 1])), N(1.5))",
    "ops.PadV3('reflect')(picture, T(np.array([1, 2])))",
    "ops.PadV3('edge')(picture, T(np.array([1, 2])))",
    "ops.TensorScatterElements(1, 'add')(M, places, U[:1, :2] + ops.zeros((3, 2), dtype.float32))",
    "ops.Coalesce()(T(np.array([[0, 0, 1], [1, 1, 2]])), updates, T(np.array([3, 3])))",
    "ops.NonMaxSuppressionWithOverlaps()(overlaps, heights, T(np.int32(4)), N(0.6), N(0.25))",
    "ops.SubAndFilter()(whole[0], 6, 3)",
    # ----- Colours -----
    "ops.RGBToHSV()(rgb[None])",
    "ops.HSVToRGB()(rgb[None])",
    "ops.AdjustHue()(rgb, N(0.3))",
    "ops.AdjustSaturation()(rgb, N(1.7))",
    # ----- Losses and layers -----
    ("ops.ctc_loss(ops.log_softmax(logits), T(np.array([[1, 2], [2, 2]], np.int32)), T(np.array([4, 4], np.int32)), "
     "T(np.array([2, 1], np.int32)))[0]"),
    "nn.FocalLoss(W, 1.5)(scores, labels)",
    "nn.FocalLoss(gamma=2.0, reduction='none')(scores, onehot)",
    "nn.FocalLoss(W, 2.0, 'sum')(picture, T(np.array([[[1, 0, 2, 2]], [[0, 0, 1, 2]]], np.int32)))",
    "nn.MultiClassDiceLoss()(scores, onehot)",
    "nn.MultiClassDiceLoss(scores, 1, 'relu')(U, V)",
    ("nn.SampledSoftmaxLoss(3, 7, 1, (T(np.array([5, 0, 2], np.int32)), U[:, :1] * 0 + 0.5, W * 0 + 0.4))("
     "table, table[:, 0], T(np.array([1, 3], np.int32)), table[:2])"),
    "nn.L1Regularizer(0.5)(M)",
    "nn.PoissonNLLLoss()(U, V)",
    "nn.PoissonNLLLoss(False, True, 1e-6, 'sum')(V, whole)",
    "nn.PoissonNLLLoss(True, True, reduction='none')(U, whole)",
    "nn.Unflatten(1, (2, -1))(ops.reshape(X, (2, 12)))",
    "nn.Softmax2d()(picture)",
    "nn.Threshold(0.1, 20)(M)",
    "nn.LPPool2d(2, 3, 2)(ops.abs(A))",
    "nn.FractionalMaxPool3d(2, output_ratio=(0.5, 0.5, 0.6), return_indices=True, _random_samples=R3)(A3)",
    "nn.Moments((1, 2), True)(X)",
    "nn.Moments()(M)",
    "nn.Range(1, 8, 2)()",
    "nn.LGamma()(V)",
    "nn.DiGamma()(V)",
    "nn.IGamma()(U, V)",
    "nn.TimeDistributed(nn.Softmax(0), 1)(X)",
    "nn.TimeDistributed(nn.Softmax(-1), 1, 0)(X)",
    "nn.TimeDistributed(nn.Dense(3, 2, 'ones', 'zeros'), 2, 0)(X)",
    "nn.WithGradCell(nn.Dense(4, 2, 'ones', 'zeros'), nn.MSELoss())(M, M[:, :2])",
    "nn.WithGradCell(nn.Dense(4, 2, 'ones', 'zeros'), None, M[:, :2])(M)",
    "adafactor({})",
    "adafactor(dict(warmup_init=True))",
    "adafactor(dict(beta1=None, scale_parameter=False))",
    "adafactor(dict(learning_rate=0.1, relative_step=False, weight_decay=0.1))",
    "adafactor(dict(compression=True, clip_threshold=0.5, decay_rate=0.6))",
    # ----- Derivatives along curves -----
    "jet((U, ops.stack((U, V, U))))",
    "ops.derivative(jet_of, U, 3)",
    "ops.linearize(jet_of, U)[1](V)",
]  # fmt: skip
"""Expressions; `names` says what they see."""


def names(library: str) -> dict[str, Any]:
    """The names that calls use: those of record_mindspore_calls.py, and arrays and functions of these calls."""
    found = names_of_calls(library)
    root, ops, nn = importlib.import_module(library), found["ops"], found["nn"]
    found |= {name: root.Tensor(array.copy()) for name, array in ARRAYS.items()}

    def trained(options: dict[str, Any]) -> list[Any]:
        """Parameters after three steps of AdaFactor."""
        source = np.random.default_rng(7)
        shapes = (3, 4), (5,), (2, 3, 4)
        weights = [
            root.Parameter(root.Tensor(source.normal(size=shape).astype(np.float32)), name=f"p{k}")
            for k, shape in enumerate(shapes)
        ]
        step = nn.AdaFactor(weights, **options)
        for _ in range(3):
            step(tuple(root.Tensor(source.normal(size=shape).astype(np.float32)) for shape in shapes))
        return [weight.value() for weight in weights]

    def curve(x: Any) -> Any:
        """A function with derivatives of all orders."""
        return ops.exp(ops.sin(x))

    return {**found, "adafactor": trained, "jet_of": curve, "jet": lambda given: ops.jet(curve, *given)}


def plain(value: Any) -> Any:
    """A result as JSON can hold it; a complex array as its real and imaginary part."""
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    array: Any = value.asnumpy() if hasattr(value, "asnumpy") else np.asarray(value)
    return plain_real([array.real, array.imag] if array.dtype.kind == "c" else array)


if __name__ == "__main__":
    results = {}
    for call in CALLS:
        for again in (True, False):  # MindSpore's first arithmetic of a process may fail
            try:
                results[call] = plain(eval(call, names("mindspore")))
                break
            except Exception as error:
                if not again:
                    raise RuntimeError(call) from error
    FILE.write_text(json.dumps(results, separators=(",", ":")).replace(',"', ',\n"') + "\n")
