"""Calls of MindSpore's rarer functions, class forms, layers, metrics and sparse arrays, and of `mint`.

Run by a Python with MindSpore on a CPU, `python -m tests.recorded.record_mindspore_calls` writes the results to
mindspore_calls.json. test_mindspore_calls.py makes the same calls in nbgrad. Recorded with MindSpore 2.10.0. Calls that
its CPU does not know are not in the file.
"""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("mindspore_calls.json")
RANDOM = np.random.default_rng(104)


def drawn(*shape: int) -> np.ndarray:
    """Normal numbers."""
    return RANDOM.normal(size=shape).astype(np.float32)


ARRAYS: dict[str, np.ndarray] = {
    "X": drawn(2, 3, 4),
    "U": RANDOM.uniform(0.1, 0.9, (2, 3)).astype(np.float32),
    "V": RANDOM.uniform(0.5, 3.0, (2, 3)).astype(np.float32),
    "M": drawn(3, 4),
    "Q": drawn(2, 4, 4),
    "S": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 5.0]], np.float32),
    "I": drawn(1, 2, 4, 5),
    "H": drawn(1, 4, 4, 4),
    "B": drawn(1, 2, 3, 4, 5),
    "G": RANDOM.uniform(-1.3, 1.3, (1, 3, 2, 2)).astype(np.float32),
    "G3": RANDOM.uniform(-1.1, 1.1, (1, 2, 3, 2, 3)).astype(np.float32),
    "W": drawn(3),
    "Z": np.array([0.0, -1.5, 0.0, 2.0], np.float32),
    "Y": np.array([0.0, 2.0, 3.0, 0.0], np.float32),
    "inf": np.array([1.0, np.inf, -np.inf, np.nan], np.float32),
    "k": np.array([0, 2, 1, 2], np.int32),
    "m": np.array([[12, 18, 7], [8, 9, 15]], np.int32),
    "n": np.array([[8, 27, 14], [12, 6, 10]], np.int32),
    "runs": np.array([3, 3, 1, 1, 1, 2, 3], np.int32),
    "rows": np.array([0, 1, 1], np.int32),
    "places": np.array([[0, 1], [2, 3], [0, 1]], np.int32),
    "updates": np.array([1.5, -2.0, 0.5], np.float32),
    "logits": drawn(4, 2, 3),
    "theta": np.array([[[0.9, 0.2, 0.1], [-0.3, 1.1, -0.2]]], np.float32),
    "theta3": np.array([[[0.9, 0.2, 0.1, 0.0], [-0.3, 1.1, -0.2, 0.3], [0.1, 0.0, 0.8, -0.1]]], np.float32),
    "classes": np.array([1, 0, 2], np.int64),
    "two": np.array([1, 0], np.int64),
    "sorted": np.array([[1.0, 2.0, 2.0, 4.0], [0.0, 3.0, 5.0, 5.0]], np.float32),
    "boxes": np.array([[0.1, 0.2, 0.8, 0.9], [0.3, -0.2, 1.2, 0.5]], np.float32),
    "rois": np.array([[0, 0.4, 0.6, 2.8, 3.1], [0, 1.0, 0.0, 3.9, 2.5]], np.float32),
    "scored": np.array(
        [[0, 0, 10, 10, 0.3], [1, 1, 10, 10, 0.9], [20, 20, 30, 30, 0.5], [20, 20, 31, 30, 0.6], [50, 50, 60, 60, 0.1]],
        np.float32,
    ),
    "signs": np.array([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]], np.float32),
}
BESSEL = [f"ops.bessel_{name}(V)" for name in "j0 j1 y0 y1 i0 i0e i1 i1e k0 k0e k1 k1e".split()]
WRITES = [f"ops.tensor_scatter_{kind}(M, places, updates)" for kind in "mul div max min".split()]
ROWS = [f"ops.Scatter{kind}()(P(M), rows, X[1, :3])" for kind in "Update Add Sub Mul Div Max Min".split()]
POINTS = [f"ops.ScatterNd{kind}()(P(M), places, updates)" for kind in "Sub Mul Div Max Min".split()]
SEGMENTS = [f"ops.unsorted_segment_{kind}(S, rows, 3)" for kind in "sum prod max min".split()]
SPARSE = [
    f"ops.{kind}_{name}({kind}).values"
    for kind in ("coo", "csr")
    for name in "abs sin exp relu square sigmoid tanh floor neg".split()
]
STEPS = """
    ApplyGradientDescent()(P(U),0.1,V)
    ApplyMomentum()(P(U),P(V),0.1,V,0.9)
    ApplyAdaMax()(P(U),P(V),P(V),0.9,0.1,0.8,0.9,1e-6,U)
    ApplyAdadelta()(P(U),P(V),P(V),0.1,0.7,1e-3,U)
    ApplyAdagrad()(P(U),P(V),0.1,U)
    ApplyAdagradV2(epsilon=0.01)(P(U),P(V),0.1,U)
    ApplyAddSign()(P(U),P(V),0.1,1.0,0.9,0.8,U)
    ApplyPowerSign()(P(U),P(V),0.1,1.3,0.9,0.8,U)
    ApplyProximalGradientDescent()(P(U),0.1,0.3,0.4,V)
    ApplyProximalAdagrad()(P(U),P(V),0.1,0.3,0.4,U)
""".split()
CALLS = [
    *BESSEL,
    *WRITES,
    *ROWS,
    *POINTS,
    *SEGMENTS,
    *SPARSE,
    *[f"ops.{step}" for step in STEPS],
    "written(P(U), lambda w: ops.Adam()(w, P(V), P(V), 0.9, 0.999, 0.1, 0.9, 0.999, 1e-8, U))",
    "written(P(U), lambda w: ops.AdamWeightDecay()(w, P(V), P(V), 0.1, 0.9, 0.999, 1e-8, 0.3, U))",
    ("written(P(U), lambda w: ops.ApplyAdamWithAmsgradV2()(w, P(V), P(V), P(V), N(0.9), N(0.999),"
    " N(0.1), N(0.9), N(0.999), N(1e-8), U))"),
    "written(P(U), lambda w: ops.ApplyRMSProp()(w, V, signs, 0.1, U, 0.9, 0.5, 1e-3))",
    ("written(P(U), lambda w: ops.ApplyCenteredRMSProp()(w, signs, T(np.full((2, 3), 9, np.float32)), V, U, 0.1, 0.9,"
    " 0.5, 1e-3))"),
    "written(P(U), lambda w: ops.ApplyFtrl()(w, P(V), P(V), U, 0.1, 0.2, 0.3, -0.5))",
    ("written(P(U), lambda w: ops.ApplyAdagradDA()(w, P(V), P(V), U, N(0.1), N(0.2),"
    " N(0.3), T(np.int32(2))))"),
    "ops.SGD(0.1, 0.2)(P(U), U, N(0.1), P(V), N(0.9), P(signs))",
    # ----- Special functions and arithmetic -----
    "ops.igamma(U, V)",
    "ops.igammac(U, V)",
    "ops.Betainc()(V, U, U)",
    "ops.mvlgamma(V + 2, 2)",
    "ops.erfinv(U)",
    "ops.xdivy(Z, Y)",
    "ops.DivNoNan()(Y, Z)",
    "ops.MulNoNan()(inf, Z)",
    "ops.logit(U, 0.3)",
    "ops.gcd(m, n)",
    "ops.lcm(m, n)",
    "ops.Invert()(m)",
    "ops.PopulationCount()(m.astype(dtype.int16))",
    "ops.isneginf(inf)",
    "ops.isposinf(inf)",
    "ops.approximate_equal(U, V, 1.0)",
    "ops.fast_gelu(M)",
    "ops.logcumsumexp(M, 1)",
    "ops.SquareSumAll()(U, V)",
    "ops.eps(U)",
    # ----- Windows -----
    "ops.bartlett_window(T(np.array(6, np.int32)))",
    "ops.blackman_window(T(np.array(5, np.int32)), False)",
    "ops.hamming_window(6, True, 0.6, 0.4)",
    "ops.hann_window(1)",
    "ops.kaiser_window(6, False, 7.0)",
    # ----- Diagonals -----
    "ops.diag_embed(U, 1, 0, 2)",
    "ops.diagonal_scatter(M, U[0], 1)",
    "ops.select_scatter(X, M, 0, 1)",
    "ops.slice_scatter(X, X[:, :2], 1, 0, 3, 2)",
    "ops.matrix_band_part(Q, 1, 0)",
    "ops.matrix_band_part(Q, -1, 2)",
    *[f"ops.MatrixDiagPartV3(align={side!r})(M, T(np.array([-1, 2], np.int32)), N(7))"
      for side in ("LEFT_RIGHT", "RIGHT_LEFT", "LEFT_LEFT", "RIGHT_RIGHT")],
    "ops.matrix_diag_part(M, T(np.array(1, np.int32)), N(7))",
    "ops.matrix_diag(U, T(np.array(1, np.int32)))",
    "ops.matrix_set_diag(M, W, 0)",
    "ops.tril_indices(3, 4, 1)",
    "ops.triu_indices(3, 4, -1)",
    "ops.vander(W, 4)",
    # ----- Sets, order, blocks -----
    "ops.unique_consecutive(runs, True, True)",
    "ops.unique_consecutive(places, False, True, 0)",
    "ops.unique_with_pad(runs, 9)",
    "ops.combinations(W, 2, True)",
    "ops.histc(M, 5, -1.0, 1.0)",
    "ops.nanmedian(inf, 0)",
    "ops.Median(global_median=True)(M)",
    "ops.msort(M)",
    "ops.intopk(M, classes.astype(dtype.int32), 2)",
    "ops.sequence_mask(k, 4)",
    "ops.reverse_sequence(X, two.astype(dtype.int64) + 2, 2, 0)",
    "ops.reverse_sequence(X, T(np.array([2, 1, 3, 0])), 1, 2)",
    "ops.InvertPermutation()((2, 0, 3, 1))",
    "ops.DataFormatDimMap('NCHW', 'NHWC')(T(np.array([0, 1, 2, 3], np.int32)))",
    "ops.space_to_batch_nd(I, [2, 3], [[0, 2], [1, 0]])",
    "ops.batch_to_space_nd(ops.space_to_batch_nd(I, [2, 3], [[0, 2], [1, 0]]), [2, 3], [[0, 1], [1, 0]])",
    "ops.mirror_pad(M, T(np.array([[1, 1], [2, 0]])), 'SYMMETRIC')",
    "ops.padding(M[:, :1], 3)",
    "ops.channel_shuffle(H, 2)",
    "ops.pixel_shuffle(H, 2)",
    "ops.pixel_unshuffle(H, 2)",
    "ops.dist(U, V, 3)",
    "ops.pdist(M, 3.0)",
    "ops.renorm(M, 2, 0, 1.0)",
    "ops.batch_dot(X, X, (1, 1))",
    "ops.bias_add(I, W[:2])",
    "ops.ctc_greedy_decoder(logits, T(np.array([4, 3], np.int32)))",
    "ops.LowerBound()(sorted, sorted[:, 1:3])",
    "ops.UpperBound()(sorted, sorted[:, 1:3])",
    "ops.Bincount()(k, T(np.array(3, np.int32)), T(np.array([0.5, 1.0, 2.0, 4.0], np.float32)))",
    "ops.EqualCount()(k, k)",
    "ops.stft(X[0], 4, 2)",
    # ----- Writing at positions -----
    "ops.sparse_segment_mean(M, rows, rows)",
    "ops.inplace_update(M, X[0, :2], (2, 0))",
    "ops.inplace_add(M, X[0, :2], (2, 0))",
    "ops.inplace_sub(M, X[0, :2], (2, 0))",
    "ops.IndexPut(accumulate=1)(M, updates, [rows, rows])",
    "ops.IndexFill()(M, 1, rows, N(3))",
    "ops.InplaceIndexAdd(axis=1)(P(M), rows, M[:, :3])",
    "ops.EmbeddingLookup()(M, k + 1, 1)",
    # ----- Places in images -----
    *[f"ops.grid_sample(I, G, {mode!r}, {border!r}, {corners})"
      for mode in ("bilinear", "nearest")
      for border in ("zeros", "border", "reflection")
      for corners in (True, False)],
    "ops.grid_sample(B, G3, 'bilinear', 'zeros', False)",
    "ops.grid_sample(B, G3, 'bilinear', 'reflection', True)",
    "ops.affine_grid(theta, (1, 2, 3, 4), True)",
    "ops.affine_grid(theta, (1, 2, 3, 4), False)",
    "ops.affine_grid(theta3, (1, 2, 3, 2, 4), True)",
    "ops.affine_grid(theta3, (1, 2, 3, 2, 4), False)",
    "ops.crop_and_resize(I.transpose(0, 2, 3, 1), boxes, T(np.array([0, 0], np.int32)), (3, 2), 'bilinear', 0.5)",
    "ops.crop_and_resize(I.transpose(0, 2, 3, 1), boxes, T(np.array([0, 0], np.int32)), (1, 3))",
    "ops.NMSWithMask(0.5)(scored)",
    "ops.ROIAlign(2, 3, 0.8, 2)(I, rois)",
    "ops.ROIAlign(2, 2, 1.0, 3, 0)(I, rois)",
    *[f"ops.ResizeBicubic({corners}, {half})(I, T(np.array([6, 3], np.int32)))"
      for corners, half in ((False, False), (True, False), (False, True))],
    "ops.max_unpool1d(T(np.array([[2.0, 4.0]], np.float32)), T(np.array([[1, 3]])), 2)",
    "ops.max_unpool2d(I[:, :, :2, :2], T(np.array([[[[0, 5], [9, 3]]] * 2])), 2)",
    "ops.adaptive_avg_pool3d(B, (2, 3, 2))",
    "ops.adaptive_max_pool3d(B, (2, 3, 2), True)",
    "ops.adaptive_max_pool1d(X, 2)",
    "ops.MaxPoolWithArgmaxV2((2, 2), (1, 2))(I)",
    "ops.Im2Col((2, 3))(I)",
    "ops.col2im(ops.Im2Col((2, 3))(I), T(np.array([4, 5], np.int32)), (2, 3), (1, 1), (0, 0), (1, 1))",
    "ops.Conv2DTranspose(2, 2)(I[:, :, :3, :3], Q[:, :2, :4].reshape(2, 2, 2, 2), (1, 2, 4, 4))",
    # ----- Normalisation, losses -----
    "ops.BatchNorm(is_training=False)(M, W4, W4, W4, W4 * W4)[0]",
    "ops.LayerNorm(begin_norm_axis=1, begin_params_axis=1)(M, W4, W4)",
    "ops.LRN()(I)",
    "ops.multi_margin_loss(M, classes, 2, 1, T(np.array([1, 2, 0.5, 1], np.float32)), 'none')",
    "ops.multi_margin_loss(M, classes)",
    "ops.hinge_embedding_loss(U, signs, 0.5, 'none')",
    "ops.multilabel_soft_margin_loss(U, T(np.array([[1, 0, 1], [0, 0, 1]], np.float32)))",
    "ops.gaussian_nll_loss(U, V, V, True)",
    ("nn.CTCLoss(0, 'none')(ops.log_softmax(logits), T(np.array([[1, 2], [2, 2]], np.int32)),"
    " T(np.array([4, 3], np.int32)), T(np.array([2, 1], np.int32)))"),
    ("ops.CTCLoss()(logits, T(np.array([[0, 0], [0, 1], [1, 0]])), T(np.array([0, 1, 1], np.int32)),"
    " T(np.array([4, 3], np.int32)))"),
    # ----- Factors -----
    "ops.lu_unpack(S, T(np.array([3, 2, 3], np.int32)))",
    "ops.geqrf(M)",
    "ops.lstsq(M.T, X[0].T)",
    "ops.Qr()(S)[1]",
    "ops.MatrixInverse(adjoint=True)(S)",
    # ----- Sparse arrays -----
    "coo.to_dense()",
    "csr.to_dense()",
    "ops.coo_add(coo, coo, N(0.0)).values",
    "ops.coo_concat((coo, coo), 1).indices",
    "ops.csr_add(csr, csr, N(2), N(0.5)).values",
    "ops.csr_softmax(csr, dtype.float32).values",
    "ops.dense_to_sparse_coo(M).indices",
    "ops.dense_to_sparse_csr(M).indptr",
    "ops.SparseTensorDenseMatmul()(places[:2], updates[:2], (3, 4), M.T)",
    "ops.SparseToDense()(places[:2], updates[:2], (3, 4))",
    # ----- Layers -----
    "nn.ReflectionPad1d((1, 2))(M)",
    "nn.ReplicationPad2d(1)(I)",
    "nn.ConstantPad3d((1, 0, 0, 1, 1, 1), 2.5)(B)",
    "nn.ZeroPad2d((1, 0, 2, 1))(I)",
    "nn.Upsample(size=(3, 7), mode='bilinear', align_corners=True)(I)",
    "nn.LBeta()(V, U)",
    "nn.ImageGradients()(I)",
    "nn.TripletMarginWithDistanceLoss(swap=True, reduction='none')(U, V, signs)",
    "nn.LRN()(I)",
    # ----- Metrics -----
    *[f"metric(train.{name})" for name in (
        "ConfusionMatrix(4), k, T(np.array([0, 1, 1, 2], np.int32))",
        "ConfusionMatrix(4, 'target'), k, T(np.array([0, 1, 1, 2], np.int32))",
        "Dice(), U, V",
        "Perplexity(), U, T(np.array([1, 2], np.int32))",
        "CosineSimilarity(reduction='mean'), np.asarray(M.asnumpy())",
        "HausdorffDistance(), m, n, 8",
        "MeanSurfaceDistance(), m, n, 12",
        "RootMeanSquareDistance(True), m, n, 8",
        "BleuScore(2), [['a', 'b', 'c', 'a']], [[['a', 'b', 'a'], ['b', 'c', 'a', 'd', 'e']]]",
    )],
    # ----- mint -----
    "mint.max(M)",
    "mint.max(M, 1)",
    "mint.min(M, 0, True)",
    "mint.max(U, V)",
    "mint.transpose(X, 0, 2)",
    "mint.select(X, 1, 2)",
    "mint.index_add(M, 1, rows, M[:, :3], alpha=2)",
    "mint.unique_consecutive(runs, True)",
    "mint.meshgrid(W, U[0])",
    "mint.nn.Linear(4, 2, weight_init=X[0, :2], bias_init='ones')(M)",
    "mint.nn.functional.binary_cross_entropy_with_logits(U, U, V, 'sum', W)",
    "mint.nn.SmoothL1Loss('sum', 0.5)(U, V)",
    "mint.nn.PReLU(2)(I)",
    "mint.nn.GroupNorm(2, 4)(H)",
    # ----- Members of Tensor -----
    "M.argmax_with_value(1, True)",
    "M.fill_diagonal(2.0)",
    "M.index_put([rows, rows], updates, True)",
    "M.masked_scatter(M > 0, X)",
    "M.add(M, alpha=0.5)",
    "M.mean(0, True)",
    "M.prod(1, True)",
    "M.stride()",
    "m.bitwise_and(n)",
]  # fmt: skip
"""Expressions; `names` says what they see."""


def metric(made: Any, *inputs: Any) -> Any:
    """The value of a metric after one batch."""
    made.clear()
    made.update(*inputs)
    return made.eval()


def written(parameter: Any, change: Any) -> Any:
    """A Parameter after a change."""
    change(parameter)
    return parameter.value()


def names(library: str) -> dict[str, Any]:
    """The names that calls use: arrays as Tensors, and the modules of `mindspore` or `nbgrad`."""
    root = importlib.import_module(library)
    found: dict[str, Any] = {name: root.Tensor(array.copy()) for name, array in ARRAYS.items()}
    found["W4"] = root.Tensor(ARRAYS["M"][0].copy())
    made = iter(range(1000))
    found["P"] = lambda array: root.Parameter(root.Tensor(array.asnumpy().copy()), name=f"p{next(made)}")
    found["T"] = root.Tensor
    found["N"] = lambda number: root.Tensor(np.float32(number))
    places = root.Tensor(np.array([[0, 1], [1, 2], [2, 0]], np.int64))
    values = root.Tensor(np.array([1.5, -2.0, 0.5], np.float32))
    found["coo"] = root.COOTensor(places, values, (3, 4))
    pointers = root.Tensor(np.array([0, 2, 2, 3], np.int32))
    found["csr"] = root.CSRTensor(pointers, root.Tensor(np.array([0, 3, 1], np.int32)), values, (3, 4))
    for module in ("ops", "nn", "mint", "train", "dtype"):
        found[module] = importlib.import_module(f"{library}.{module}") if module != "dtype" else root.dtype
    importlib.import_module(f"{library}.mint.nn.functional")
    return {**found, "np": np, "metric": metric, "written": written}


def plain(value: Any) -> Any:
    """A result as JSON can hold it."""
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    array = value.asnumpy() if hasattr(value, "asnumpy") else np.asarray(value)
    data = np.where(np.isfinite(array), array, 0) if array.dtype.kind == "f" else array
    special = {str(k): str(x) for k, x in enumerate(array.ravel().tolist()) if x != x or x in (np.inf, -np.inf)}
    digits = [float(f"{x:.9g}") for x in data.ravel().tolist()] if array.dtype.kind == "f" else data.ravel().tolist()
    found = {"shape": list(array.shape), "dtype": array.dtype.name, "data": digits}
    return {**found, "special": special} if special else found


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
