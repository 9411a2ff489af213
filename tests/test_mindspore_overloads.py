"""Words, orders of parameters and forms of calls of MindSpore 2.10, which its documentation has beside the usual ones.

Expected values are those of MindSpore 2.10 on its CPU, except where a comment says that it has no kernel: then they are
from paper.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import mint, ops
from nbgrad.errors import ArgumentError, DtypeError, NoSamplesError, ShapeError

pytestmark = pytest.mark.unoptimized

M = [[1.0, 2.0], [3.0, 4.0]]
V = np.arange(216.0, dtype=np.float32).reshape(1, 1, 6, 6, 6)
F32: Any = np.float32
F64: Any = np.float64
I32: Any = np.int32
I64: Any = np.int64
U8: Any = np.uint8
CALLS: dict[str, Any] = {
    # ----- Methods of Tensor -----
    "T(M).index_add(0, T([1]), T([[1.0, 1.0]]))": F32([[1, 2], [4, 5]]),
    "T(M).index_add(T([1]), T([[1.0, 1.0]]), 0)": F32([[1, 2], [4, 5]]),
    "T(M).index_add(dim=0, index=T([1]), source=T([[1.0, 1.0]]), alpha=2)": F32([[1, 2], [5, 6]]),
    "T(M).scatter_add(T([[0, 0], [1, 1]]), T([1.0, 2.0]))": F32([[2, 2], [3, 6]]),
    "T(M).scatter_add(indices=T([[0, 0], [1, 1]]), updates=T([1.0, 2.0]))": F32([[2, 2], [3, 6]]),
    "T(M).scatter_(0, T([[1, 0]]), 7.0, reduce='add')": F32([[1, 9], [10, 4]]),  # no kernel
    "T(M).scatter_(0, T([[1, 0]]), T([[7.0, 8.0]]), reduce='multiply')": F32([[1, 16], [21, 4]]),  # no kernel
    "T(M).scatter_(0, T([[1, 0]]), value=7.0)": F32([[1, 7], [7, 4]]),  # no kernel
    "T(M).tile(2, 1)": F32([[1, 2], [3, 4], [1, 2], [3, 4]]),
    "T(M).tile(reps=(2, 1))": F32([[1, 2], [3, 4], [1, 2], [3, 4]]),
    "T([1.0, 2.0]).expand(2, -1)": F32([[1, 2], [1, 2]]),
    "T(M).std(0, 1)": F32([1.41421354, 1.41421354]),
    "T(M).var(0, 1, True)": F32([[2, 2]]),
    "T(M).var(1, False)": F32([0.25, 0.25]),
    "T([5, 6]).remainder(divisor=T([3, 4]))": I64([2, 2]),
    "T([5, 6]).sub(y=T([3, 4]))": I64([2, 2]),
    "T([5.0]).float_power(other=2)": F64([25]),
    "T([5.0]).copysign(other=T([-2.0]))": F32([-5]),
    "T([[3.0, 0.0], [0.0, 2.0]]).nonzero(as_tuple=False)": I64([[0, 0], [1, 1]]),
    "T([3.0, 1.0]).repeat_interleave(repeats=2, dim=0, output_size=None)": F32([3, 3, 1, 1]),
    "T([[3.0, 1.0, 2.0]]).top_k(2, True)": (F32([[3, 2]]), I32([[0, 2]])),
    "T(M).to(other=T([1], ms.int32), non_blocking=True)": I32([[1, 2], [3, 4]]),
    "T([[1.0, 2.0], [3.0, 4.0], [1.0, 1.0]]).qr(some=False)[0].shape": (3, 3),
    # ----- Functions -----
    "ops.argmin(T([3.0, 1.0]))": I32(1),
    "mint.argmin(T([[3.0, 1.0]]), 1, True)": I64([[1]]),
    "ops.top_k(T([[3.0, 1.0, 2.0]]), 2, True)": (F32([[3, 2]]), I32([[0, 2]])),
    "ops.hstack(tensors=(T([1.0]), T([2.0])))": F32([1, 2]),
    "ops.vstack(inputs=(T([1.0]), T([2.0])))": F32([[1], [2]]),
    "ops.atleast_2d(inputs=T([1.0]))": F32([[1]]),
    "ops.tile(T([1.0]), dims=(2,))": F32([1, 1]),
    "ops.transpose(T(M), dims=(1, 0))": F32([[1, 3], [2, 4]]),
    "ops.mv(mat=T(M), vec=T([1.0, 2.0]))": F32([5, 11]),
    "ops.fliplr(input=T(M))": F32([[2, 1], [4, 3]]),
    "ops.true_divide(dividend=T([3]), divisor=T([2]))": F32([1.5]),
    "ops.binary_cross_entropy_with_logits(input=T([0.0, 1.0]), target=T([1.0, 0.0]))": F32(1.0032045),
    "ops.avg_pool3d(T(V[..., :5]), 4, 3, 1, True, False)[0, 0, 1, 1]": F32([148, 150]),
    "ops.avg_pool3d(T(V), 3, 2, 1, True, True)[0, 0, 3, 3, 3]": F32(215.0 / 8),
    "ops.avg_pool3d(T(V), 2, 2, 0, False, True, 3)[0, 0, 0, 0]": F32([172 / 3, 188 / 3, 68]),
    "mint.any(T([False, True]))": np.bool_(True),
    "ops.function.math_func.amax_ext(T(M), dim=1, keepdim=True)": F32([[2], [4]]),
    "ops.auto_generate.narrow_view(T(M), 0, 1, 1)": F32([[3, 4]]),
    "ops.auto_generate.transpose_ext_view(T(M), 0, 1)": F32([[1, 3], [2, 4]]),
    "ops.function.nn_func.glu_ext(T([[1.0, 0.0]]))": F32([[0.5]]),
    "ops.functional_overload.any(T([False, True]))": np.bool_(True),
    "nn.layer.activation.PReLUExt()(T([-1.0]))": F32([-0.25]),
    "ms.jit(function=lambda x: x * 2)(T([1.0]))": F32([2]),
    "ops.auto_generate.kthvalue(T([3.0, 1.0]), 1)": (F32(1), I64(1)),
    "mint.randn((2, 3), ms.float64).dtype": nb.float64,
    "mint.rand((2, 3)).shape": (2, 3),
    "(ms.STRICT, ms.COMPATIBLE, ms.LAX)": (0, 1, 2),
    # ----- Class forms -----
    "ops.MapUniform()(T(np.arange(8)), 4, 2)": I64([0, 4, 1, 5, 2, 6, 3, 7]),
    "ops.DataFormatVecPermute()(T([1, 2, 3, 4]))": I64([1, 4, 2, 3]),
    "ops.DataFormatVecPermute('NCHW', 'NHWC')(T([[1, 2], [3, 4], [5, 6], [7, 8]]))[:, 0]": I64([1, 5, 7, 3]),
    "ops.ResizeArea()(T(V[0, 0, 0, :4, :4, None][None]), [3, 3])[0, 0, :, 0]": F32([1.75, 3.0, 4.25]),
    "ops.ResizeArea(True)(T(V[0, 0, 0, :4, :4, None][None]), [6, 1])[0, :, 0, 0].shape": (6,),
    # ----- Names that NumPy had before -----
    "mnp.trapz(T([1.0, 2.0, 3.0]))": F32(4),
    "mnp.in1d(T([[0, 1], [2, 5]]), T([0, 2]), True)": np.array([False, True, False, True]),
    "mnp.asfarray([1, 2, 3])": F32([1, 2, 3]),
    "mnp.sometrue(T([[True, False], [False, False]]), 1)": np.array([True, False]),
    # ----- Values -----
    "ms.frombuffer(bytearray([1, 2, 3, 4]), ms.uint8, 2, 1)": U8([2, 3]),
    "ms.manual_seed(14).initial_seed()": 14,
    "ms.dtype_to_pytype(ms.bool_)": bool,
    "ms.dtype_to_pytype(ms.float32)": float,
    "ms.dtype_to_pytype(ms.int8)": int,
    "ms.dtype_to_pytype(ms.complex64)": complex,
    "ms.get_py_obj_dtype(1)": nb.int64,
    "ms.get_py_obj_dtype(float)": nb.float64,
    "ms.get_py_obj_dtype(T([1]))": nb.int64,
}


@pytest.mark.parametrize("call", CALLS)
def test_calls_in_mindspores_words(call: str) -> None:
    names = {"T": nb.Tensor, "ms": nb, "nn": nb.nn, "ops": ops, "mint": mint, "mnp": nb.numpy, "np": np}
    found, expected = eval(call, {**names, "M": M, "V": V}), CALLS[call]
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for one, other in pairs:
        if isinstance(other, np.ndarray | np.generic):
            assert one.dtype == other.dtype and one.shape == other.shape
            np.testing.assert_allclose(one.asnumpy(), other, 1e-6)
        else:
            assert one == other


def test_set_dtype_changes_the_tensor_itself() -> None:
    x = nb.Tensor([1.5, 2.5])
    assert x.set_dtype(nb.int32) == nb.int32
    assert x.dtype == nb.int32 and x.tolist() == [1, 2]
    assert x.flush_from_cache() is None
    x.set_init_flag(True)
    assert not x.is_init()


def test_forms_of_calls_that_do_not_exist() -> None:
    x: Any = nb.Tensor(M)
    with pytest.raises(ArgumentError, match=r"\(dim, index, src\), or \(indices, updates\), but got 1"):
        x.scatter_add(0)
    with pytest.raises(ArgumentError, match="reps= as well as a positional argument"):
        x.tile(2, reps=3)
    with pytest.raises(ArgumentError, match="reduce"):
        x.scatter_(0, nb.Tensor([[1, 0]]), 7.0, reduce="mean")
    inner = import_module("nbgrad.mint.inner_names")
    for name in ("nothing_ext", "amax"):
        with pytest.raises(AttributeError, match=name):
            getattr(inner, name)


# ----- Steps of optimizers -----

ROWS = F32([[[0.1, 0.1]], [[0.2, 0.1]], [[0.3, 0.1]]])
STEPS: dict[str, list[Any]] = {
    "ops.FusedSparseLazyAdam()(*p, 0.9, 0.999, 0.001, 0.9, 0.999, 1e-8, ROWS, [0, 1, 0])": [
        [[0.99970287, 0.9997091], [0.9997091, 0.99971217], [1, 1]],
        [[0.94, 0.92], [0.92, 0.91], [1, 1]],
        [[0.99916, 0.99904], [0.99904, 0.99901], [1, 1]],
    ],
    "ops.FusedSparseAdam()(*p, 0.9, 0.999, 0.001, 0.9, 0.999, 1e-8, ROWS, [0, 1, 0])": [
        [[0.99970287, 0.9997091], [0.9997091, 0.99971217], [0.99971527, 0.99971527]],
        [[0.94, 0.92], [0.92, 0.91], [0.9, 0.9]],
        [[0.99916, 0.99904], [0.99904, 0.99901], [0.999, 0.999]],
    ],
}


@pytest.mark.parametrize("step", STEPS)
def test_steps_of_rows(step: str) -> None:
    p = [nb.Parameter(nb.Tensor(np.ones((3, 1, 2), np.float32)), name=name) for name in "wmv"]
    eval(step, {"ops": ops, "p": p, "ROWS": nb.Tensor(ROWS)})
    for one, expected in zip(p, STEPS[step], strict=True):
        np.testing.assert_allclose(one.asnumpy()[:, 0], F32(expected), 1e-6)


def test_rows_without_a_gradient_stay() -> None:
    for kind, count, numbers in (
        ("FusedSparseProximalAdagrad", 2, (0.01, 0.1, 0.2)),
        ("FusedSparseFtrl", 3, ()),
    ):
        options = (0.01, 0.1, 0.2, -0.5) if kind == "FusedSparseFtrl" else ()
        p = [nb.Parameter(nb.Tensor(np.ones((3, 1, 2), np.float32)), name=name) for name in "abc"[:count]]
        form = getattr(ops, kind)(*options)
        form(*p, *numbers, nb.Tensor(ROWS), nb.Tensor([0, 1, 0]))
        for one in p:
            assert (one.asnumpy()[2] == 1).all() and (one.asnumpy()[:2] != 1).all()


def test_the_change_of_a_step_of_adam() -> None:
    m, v = (nb.Parameter(nb.Tensor([[0.1] * 3, [0.2] * 3]), name=name) for name in "mv")
    gradient = nb.Tensor(np.full((2, 3), 0.1, np.float32))
    change = ops.AdamNoUpdateParam()(m, v, 0.9, 0.999, 0.001, 0.9, 0.999, 1e-8, gradient)
    np.testing.assert_allclose(change.asnumpy()[:, 0], [-0.00010004, -0.00013441], 1e-3)


# ----- Initial values -----


def test_dirac_gives_the_input_of_a_convolution() -> None:
    from nbgrad.common.initializer import Dirac, initializer

    expected = ([0, 1, 2, 3, 4, 5], [0, 1, 2, 0, 1, 2], [1] * 6, [1] * 6)
    found = initializer(Dirac(2), (6, 4, 3, 3)).asnumpy()
    assert all(list(one) == other for one, other in zip(found.nonzero(), expected, strict=True)) and found.sum() == 6
    assert np.argwhere(initializer("dirac", (3, 4, 2, 5)).asnumpy()).tolist() == [[k, k, 1, 2] for k in range(3)]
    with pytest.raises(ShapeError, match="three to five axes"):
        initializer("dirac", (3, 4))


@pytest.mark.parametrize("mode", ["fan_in", "fan_out", "fan_avg"])
@pytest.mark.parametrize("distribution", ["truncated_normal", "untruncated_normal", "uniform"])
def test_variances_are_scaled_by_the_fan(mode: str, distribution: str) -> None:
    """The deviation is the root of scale / fan, as MindSpore documents it; its truncated normal is uniform."""
    from nbgrad.common.initializer import VarianceScaling, initializer

    nb.set_seed(3)
    found = initializer(VarianceScaling(2.0, mode, distribution), (200, 50, 2, 3)).asnumpy()
    deviation = np.sqrt(2.0 / {"fan_in": 300, "fan_out": 1200, "fan_avg": 750}[mode])
    assert abs(found.std() / deviation - 1) < 0.02
    largest = {"truncated_normal": 2 / 0.87962566, "untruncated_normal": 9.0, "uniform": np.sqrt(3)}[distribution]
    assert abs(found).max() <= largest * deviation * 1.0001
    with pytest.raises(ArgumentError, match="fan_avg"):
        VarianceScaling(1.0, "fan_mean")


# ----- Options that change nothing -----


def test_options_of_checkpoints(tmp_path: Any) -> None:
    file = str(tmp_path / "x.ckpt")
    values = {"a.w": nb.Tensor([1.0]), "b.w": nb.Tensor([2.0])}
    nb.save_checkpoint(values, file, True, False, {"epoch": 3}, crc_check=True, format="safetensors")
    assert nb.load_checkpoint(file, specify_prefix="a", dec_mode="AES-CBC").keys() == {"a.w"}
    assert nb.load_checkpoint(file, None, False, ["a"], remove_redundancy=True).keys() == {"b.w", "epoch"}
    key: Any = b"0123456789ABCDEF"
    calls = (lambda: nb.save_checkpoint(values, file, enc_key=key), lambda: nb.load_checkpoint(file, dec_key=key))
    for call in calls:
        with pytest.raises(ArgumentError, match="not encrypted"):
            call()


def test_options_are_checked() -> None:
    nb.set_deterministic(True)
    nb.set_recursion_limit(10000)
    for call in (lambda: nb.set_deterministic(1), lambda: nb.set_recursion_limit(0)):  # pyright: ignore
        with pytest.raises(ArgumentError, match="takes"):
            call()


def test_the_state_of_the_default_generator() -> None:
    nb.manual_seed(5)
    state = nb.get_rng_state()
    first = ops.rand(3).asnumpy()
    nb.set_rng_state(state)
    assert (ops.rand(3).asnumpy() == first).all()
    assert nb.seed() == nb.initial_seed()


def test_labels_of_an_evaluation_become_float32() -> None:
    net = nb.nn.WithEvalCell(nb.nn.ReLU(), lambda output, label: (output - label).sum(), add_cast_fp32=True)
    loss, output, label = net(nb.Tensor([1.0], nb.float16), nb.Tensor([0.5], nb.float16))
    assert output.dtype == label.dtype == loss.dtype == nb.float32


def test_scales_of_users() -> None:
    from nbgrad.amp import _grad_scale_map, _grad_unscale_map  # pyright: ignore[reportPrivateUsage]

    scale, inputs = nb.Tensor(4.0), (nb.Tensor([0.5]), nb.Tensor([3.0], nb.float16))
    scaled = _grad_scale_map(scale, inputs)
    assert [one.tolist() for one in scaled] == [[2.0], [12.0]] and scaled[1].dtype == nb.float16
    assert [one.tolist() for one in _grad_unscale_map(scale, scaled)] == [[0.5], [3.0]]


# ----- Networks and files -----


class Scores(nb.nn.Cell):
    """Three scores of an image."""

    def __init__(self, n: int) -> None:
        super().__init__()
        weight = np.random.default_rng(2).normal(size=(3, n)).astype(np.float32)
        self.flat, self.dense = nb.nn.Flatten(), nb.nn.Dense(n, 3, nb.Tensor(weight))

    def construct(self, x: Any) -> Any:
        return self.dense(self.flat(x))


OCCLUDED: dict[str, Any] = {
    "(1, 4), dict()": [0.749, 0.6129, 0.1735, -3.4995],
    "(1, 4), dict(margin=1)": [3.6731, 0.749, -3.0602, -0.5754],
    "(1, 2, 3, 3), dict(margin=1, b_box=[0, 1, 0, 1, 1, 2])": [
        [[2.5392, 2.6322], [2.2828, 2.394]],
        [[-3.2958, 2.7723], [-3.8749, 1.3104]],
    ],
    "(1, 1, 3, 4), dict(margin=2, b_box=[0, 0, 1, 2, 0, 3], n_batch=3)": [[1.1342, 1.1429, 1.2614, 2.9074]] * 2,
}


@pytest.mark.parametrize("case", OCCLUDED)
def test_sensitivity_to_what_is_covered(case: str) -> None:
    shape, options = eval(case)
    metric = nb.train.get_metric_fn("occlusion_sensitivity", **options)
    with pytest.raises(NoSamplesError):
        metric.eval()
    image = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    metric.update(Scores(int(np.prod(shape))), image, np.array(1, np.int32))
    np.testing.assert_allclose(metric.eval(), OCCLUDED[case], atol=6e-5)


def test_what_a_sensitivity_cannot_take() -> None:
    metric, image = nb.train.OcclusionSensitivity(margin=[1, 1]), np.ones((1, 4), np.float32)
    with pytest.raises(ArgumentError, match="got 2 inputs"):
        metric.update(Scores(4), image)
    with pytest.raises(DtypeError, match="got int"):
        metric.update(3, image, [1])
    with pytest.raises(ShapeError, match="one image"):
        metric.update(Scores(4), np.ones((2, 4), np.float32), [1])
    with pytest.raises(ArgumentError, match="margin needs 1 numbers"):
        metric.update(Scores(4), image, [1])


@pytest.mark.filterwarnings("ignore:nbgrad cannot write MindIR")
def test_a_network_is_found_under_mindspores_ending(tmp_path: Any) -> None:
    net = nb.nn.Dense(2, 1, nb.Tensor([[1.0, 2.0]]), nb.Tensor([3.0]))
    nb.export(net, nb.Tensor([[0.0, 0.0]]), file_name=str(tmp_path / "net"), file_format="MINDIR")
    graph = nb.load(str(tmp_path / "net.mindir"))
    assert nb.nn.GraphCell(graph)(nb.Tensor([[10.0, 1.0]])).tolist() == [[15.0]]
    with pytest.raises(FileNotFoundError):
        nb.load(str(tmp_path / "other.mindir"))


# ----- scipy.linalg -----

A = np.array([[9, 3, 1, 5], [3, 7, 5, 1], [1, 5, 9, 2], [5, 1, 2, 6]], np.float32)
B = np.array([3, 1, 3, 4], np.float32)
MATRICES: dict[str, Any] = {
    "cholesky(A, lower=True)[3]": [1.667, -0.272, 0.856, 1.554],
    "cho_solve(cho_factor(A), B)": "np.linalg.solve(A, B)",
    "inv(A)": "np.linalg.inv(A)",
    "eigh(A, eigvals_only=True)": "np.linalg.eigvalsh(A)",
    "lu(A)[2]": [[9, 3, 1, 5], [0, 6, 4.667, -0.667], [0, 0, 5.259, 1.963], [0, 0, 0, 2.415]],
    "lu_factor(A)[1]": [0, 1, 2, 3],
    "solve_triangular(A, B, lower=True, trans='T')": "np.linalg.solve(np.tril(A).T, B)",
    "solve_triangular(A, B, 1, True, True)": "np.linalg.solve(np.tril(A, -1).T + np.eye(4), B)",
    "lstsq(A[:, :2], B)[0]": [0.38, 0.155],
    "block_diag(A[:2, :2], B)": [[9, 3, 0, 0, 0, 0], [3, 7, 0, 0, 0, 0], [0, 0, 3, 1, 3, 4]],
}


@pytest.mark.parametrize("call", MATRICES)
def test_functions_of_matrices(call: str) -> None:
    linalg = import_module("nbgrad.scipy.linalg")
    assert {word.partition("(")[0] for word in MATRICES} | {"cho_factor"} == {*linalg.__all__}
    found = eval(call, {**vars(linalg), "A": nb.Tensor(A), "B": nb.Tensor(B)})
    expected = MATRICES[call]
    np.testing.assert_allclose(
        found.asnumpy(), eval(expected) if isinstance(expected, str) else expected, rtol=1e-4, atol=6e-4
    )
