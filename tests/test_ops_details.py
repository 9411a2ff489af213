"""Functions of nbgrad.ops where MindSpore differs from NumPy: spellings, defaults, pairs, dtypes, errors."""

from __future__ import annotations

import inspect
from importlib import import_module

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import ops
from nbgrad.errors import ArgumentError, DtypeError, NbgradError, RangeError, ShapeError
from nbgrad.ops.declarations import spelled
from nbgrad.ops.docstrings import SPELLINGS

pytestmark = pytest.mark.unoptimized

rng = np.random.default_rng(5)
X = nb.Tensor(rng.normal(size=(2, 3, 4)).astype(np.float32))
M = nb.Tensor(np.array([[1.0, 5.0, 5.0], [7.0, 2.0, 7.0]], np.float32))
NAN = np.nan


def same(got, want, dtype=None):
    got, want = got.asnumpy(), np.asarray(want)
    assert got.shape == want.shape
    assert dtype is None or got.dtype == dtype
    np.testing.assert_allclose(got, want, rtol=1e-6)


# ----- Names and spellings -----


def test_every_name_is_there():
    for module, names in ops.NAMES.items():
        held = import_module(f"nbgrad.ops.{module}")
        for name in names.split():
            assert getattr(ops, name) is getattr(held, name), name
    with pytest.raises(AttributeError, match="no function or class 'summ'"):
        _ = ops.summ
    assert {"add", "erf", "stop_gradient", "grad", "MatMul"} <= set(dir(ops))


def test_no_name_is_held_by_two_modules_or_is_a_module():
    held = [name for names in [*ops.NAMES.values(), *ops.ELSEWHERE.values()] for name in names.split()]
    assert len(held) == len(set(held))
    assert not set(held) & set(ops.NAMES)


@pytest.mark.parametrize("axis", ["axis", "dim"])
@pytest.mark.parametrize("keep", ["keepdims", "keep_dims", "keepdim"])
def test_reductions_take_every_spelling(axis, keep):
    functions = "sum mean prod amax amin max min argmax argmin std var std_mean var_mean logsumexp all any median"
    for name in f"{functions} count_nonzero nansum nanmean aminmax norm reduce_sum reduce_mean".split():
        result = getattr(ops, name)(input=X, **{axis: 1, keep: True})
        for one in result if isinstance(result, tuple) else (result,):
            assert one.shape == (2, 1, 4), name


def test_a_parameter_given_twice_is_an_error():
    with pytest.raises(ArgumentError, match=r"sum\(\) got axis= as well as dim=, but both are its dim"):
        ops.sum(X, dim=1, axis=1)
    with pytest.raises(ArgumentError, match=r"axis= as well as a positional argument"):
        ops.sum(X, 1, axis=1)
    with pytest.raises(TypeError, match="unexpected keyword"):
        ops.sum(X, axes=1)
    assert spelled.__module__ == "nbgrad.ops.declarations"
    assert list(inspect.signature(ops.sum).parameters) == ["input", "dim", "keepdim", "dtype"]
    assert all(len(group) == len(set(group)) for group in SPELLINGS)


# ----- Elementwise -----


def test_operands_are_numbers_arrays_and_tensors():
    same(ops.add(1, [1.0, 2.0]), [2.0, 3.0])
    same(ops.mul(np.ones(2), 3), [3.0, 3.0], np.float64)
    same(ops.exp(0), 1.0)
    same(ops.equal(M, 5), M.asnumpy() == 5, bool)
    assert ops.add(nb.Tensor([1.0], np.float16), 2.5).dtype == np.float16


def test_integer_division():
    a, b = np.array([7, -7, 7, -7]), np.array([2, 2, -2, -2])
    same(ops.div(a, b), a / b)
    same(ops.div(a, b, rounding_mode="floor"), a // b, np.int64)
    same(ops.div(a, b, rounding_mode="trunc"), [3, -3, -3, 3], np.int64)
    same(ops.truncate_div(a, b), [3, -3, -3, 3], np.int64)
    same(ops.truncate_mod(a, b), np.fmod(a, b), np.int64)
    same(ops.floor_mod(a, b), a % b, np.int64)
    with pytest.raises(ArgumentError, match="rounding_mode"):
        ops.div(a, b, rounding_mode="up")


def test_elementwise_errors():
    with pytest.raises(ArgumentError, match="lower bound"):
        ops.clamp(X)
    with pytest.raises(DtypeError, match="boolean mask"):
        ops.masked_fill(M, np.ones((2, 3)), 0.0)
    with pytest.raises(DtypeError, match="does not fit"):
        ops.masked_fill(np.arange(3), np.ones(3, bool), 0.5)
    with pytest.raises(ArgumentError, match="addn"):
        ops.addn([])
    with pytest.raises(ShapeError, match="broadcast"):
        ops.add(np.ones(3), np.ones(4))


def test_selection_keeps_dtypes_and_stops_nan():
    same(ops.masked_fill(nb.Tensor([1.0, 2.0], np.float16), np.array([True, False]), 9), [9.0, 2.0], np.float16)
    same(ops.nan_to_num(nb.Tensor([NAN, np.inf, -np.inf, 1.0]), 2.0, 3.0, 4.0), [2.0, 3.0, 4.0, 1.0])
    x = nb.Tensor([0.0, 2.0])
    found = nb.grad(lambda x: ops.where(x > 0, ops.log(x), ops.zeros_like(x)))(x)
    same(found, [0.0, 0.5])
    same(nb.grad(lambda x: ops.pow(x, 0))(x), [0.0, 0.0])
    low, high = ops.clip_by_value((x, M), 1, 5)
    same(low, [1.0, 2.0])
    assert float(high.asnumpy().max()) == 5.0
    assert ops.is_tensor(x) and not ops.is_tensor(1.0)
    assert ops.allclose(x, x) is True


# ----- Reductions -----


def test_all_axes_are_none_or_empty():
    for axis in (None, (), []):
        same(ops.sum(X, axis), X.asnumpy().sum())
        same(ops.reduce_mean(X, axis), X.asnumpy().mean())
        same(ops.all(M, axis), True)


def test_max_and_min_give_pairs():
    values, places = ops.max(M, 1)
    same(values, [5.0, 7.0], np.float32)
    same(places, [1, 0], np.int64)
    values, places = ops.max(M)
    same(values, 7.0)
    same(places, 0, np.int64)
    same(nb.grad(lambda x: ops.max(x)[0])(M), [[0, 0, 0], [0.5, 0, 0.5]])
    same(nb.grad(lambda x: ops.max(x, 1)[0])(M), [[0, 1, 0], [1, 0, 0]])
    same(ops.min(np.array([[3.0, NAN, 1.0]]), 1)[1], [1])
    same(ops.min(np.array(3.0), 0)[0], 3.0)
    same(ops.max(M, 0, initial=6)[0], [7.0, 6.0, 7.0])
    same(ops.max(M, 0, initial=-9, where=M < 6)[0], [1.0, 5.0, 5.0])
    same(ops.amax(M, initial=-9, where=M < 6), 5.0)
    with pytest.raises(ArgumentError, match="initial"):
        ops.max(M, 0, where=M < 6)
    with pytest.raises(ShapeError, match="no elements"):
        ops.max(np.zeros((0, 3)), 0)


def test_median_and_running_extrema_with_nan():
    values, places = ops.median(np.array([[4.0, NAN, 2.0, 1.0], [4.0, 3.0, 2.0, 1.0]]))
    same(values, [NAN, 2.0])
    same(places, [1, 2], np.int64)
    values, places = ops.cummax(np.array([1.0, 3.0, 3.0, NAN, 5.0]), 0)
    same(values, [1.0, 3.0, 3.0, NAN, NAN])
    same(places, [0, 1, 2, 3, 3])
    same(ops.cummin(np.array([3, 1, 1, 2]), 0)[0], [3, 1, 1, 1], np.int64)
    assert ops.cummax(np.zeros((2, 0)), 1)[1].shape == (2, 0)
    with pytest.raises(ShapeError, match="median"):
        ops.median(np.zeros((0, 3)), 0)


def test_dtypes_of_reductions():
    half = nb.Tensor([1.5, 2.5], np.float16)
    for function in (ops.sum, ops.mean, ops.std, ops.norm, lambda x: ops.logsumexp(x, 0)):
        assert function(half).dtype == np.float16
    same(ops.sum(half, dtype="float64"), 4.0, np.float64)
    same(ops.norm(np.array([3, 4]), dtype=np.float32), 5.0, np.float32)
    same(ops.count_nonzero(M, 1), [3, 3], np.int32)
    same(ops.count_nonzero(M, dtype=np.int64), 6, np.int64)
    same(nb.grad(ops.norm)(nb.Tensor([0.0, 0.0])), [0.0, 0.0])


def test_clip_by_global_norm():
    a, b = nb.Tensor([3.0, 0.0]), nb.Tensor([[4.0]])
    clipped = ops.clip_by_global_norm((a, b), 2.5)
    same(clipped[0], [1.5, 0.0])
    same(clipped[1], [[2.0]])
    same(ops.clip_by_global_norm((a, b), 9.0)[1], [[4.0]])
    for wrong in ((a, 1.0), ((), 1.0), ((a,), 0.0), ((a,), 1.0, 2.0)):
        with pytest.raises(ArgumentError):
            ops.clip_by_global_norm(*wrong)


# ----- Shapes -----


def test_flatten():
    x = np.arange(24.0).reshape(2, 3, 4)
    same(ops.flatten(x), x.reshape(2, 12))
    same(ops.flatten(x, "F"), x.transpose(2, 1, 0).reshape(4, 6))
    same(ops.flatten(x[0, 0]), x[0, 0])
    same(ops.flatten(np.array(3.0)), [3.0])
    with pytest.raises(ArgumentError, match="order"):
        ops.flatten(x, "K")
    with pytest.raises(ShapeError, match="start_dim"):
        ops.flatten(x, start_dim=2, end_dim=1)


def test_facts_about_shapes():
    assert (ops.shape(X), ops.rank(X), ops.size(X), ops.numel(X)) == ((2, 3, 4), 3, 24, 24)


def test_diag_doubles_the_axes():
    x = np.arange(6.0).reshape(2, 3) + 1
    want = np.zeros((2, 3, 2, 3))
    for i, j in np.ndindex(2, 3):
        want[i, j, i, j] = x[i, j]
    same(ops.diag(x), want)
    with pytest.raises(ShapeError, match="0-d"):
        ops.diag(1.0)


def test_broadcast_to_keeps_extents():
    assert ops.broadcast_to(np.ones((3, 1)), (2, -1, 4)).shape == (2, 3, 4)
    assert ops.expand(np.ones((3, 1)), (-1, 4)).shape == (3, 4)
    assert ops.expand_as(np.ones(4), X).shape == (2, 3, 4)
    with pytest.raises(ShapeError, match="lacks"):
        ops.broadcast_to(np.ones(3), (-1, 3))


def test_splits():
    x = np.arange(7.0)
    assert [p.shape[0] for p in ops.split(x, 3)] == [3, 3, 1]
    assert [p.shape[0] for p in ops.split(x, (5, 0, 2))] == [5, 0, 2]
    assert [p.shape[0] for p in ops.chunk(x, 5)] == [2, 2, 2, 1]
    assert [p.shape[0] for p in ops.tensor_split(x, 3)] == [3, 2, 2]
    assert [p.shape for p in ops.chunk(np.zeros((0, 2)), 2)] == [(0, 2), (0, 2)]
    assert [p.shape for p in ops.hsplit(X, 3)] == [(2, 1, 4)] * 3
    for wrong in (0, -1):
        with pytest.raises(ArgumentError):
            ops.split(x, wrong)
    with pytest.raises(ArgumentError):
        ops.chunk(x, 0)
    with pytest.raises(ShapeError, match="add up to 7"):
        ops.split(x, [3, 3])
    with pytest.raises(RangeError):
        ops.narrow(x, 0, 5, 3)


def test_pad_errors():
    x = np.ones((2, 3))
    for padding, mode in (((1,), "constant"), ((1,) * 6, "constant"), ((-2, -2), "constant"), ((3, 0), "reflect")):
        with pytest.raises(ShapeError):
            ops.pad(x, padding, mode)
    for padding, mode in (((4, 0), "circular"), ((-1, 0), "replicate")):
        with pytest.raises(ShapeError):
            ops.pad(x, padding, mode)
    with pytest.raises(ArgumentError, match="modes"):
        ops.pad(x, (1, 1), "edge")
    with pytest.raises(ArgumentError, match="value"):
        ops.pad(x, (1, 1), "reflect", 1.0)
    weight = nb.Tensor([[2.0]])
    same(nb.grad(lambda v: ops.pad(weight, (1, 1), value=v))(nb.Tensor(0.5)), 2.0)


# ----- Creation -----


def test_default_dtypes():
    same(ops.zeros((2,)), [0, 0], np.float32)
    same(ops.ones(2, np.int32), [1, 1], np.int32)
    same(ops.full((2,), 3.5), [3.5, 3.5], np.float32)
    same(ops.full((2,), 3), [3, 3], np.int64)
    same(ops.full(2, True), [True, True], bool)
    same(ops.full(2, np.float64(2)), [2, 2], np.float64)
    same(ops.fill("int32", (2,), 3), [3, 3], np.int32)
    same(ops.arange(3), [0, 1, 2], np.int64)
    same(ops.arange(0.0, 1.0, 0.5), [0, 0.5], np.float32)
    same(ops.arange(5, 1, -2), [5, 3], np.int64)
    same(ops.arange(nb.Tensor(3.0, np.float16)), [0, 1, 2], np.float16)
    same(ops.range(1, 7, 3), [1, 4], np.int64)
    same(ops.linspace(0, 1, 3), [0, 0.5, 1], np.float32)
    same(ops.linspace(np.float64(0), 1, 3), [0, 0.5, 1], np.float64)
    same(ops.logspace(0, 2, 3), [1, 10, 100], np.float32)
    same(ops.logspace(0, 2, 3, 2, dtype=np.float64), [1, 2, 4], np.float64)
    same(ops.eye(2), np.eye(2), np.float32)
    same(ops.eye(2, 3, "int32"), np.eye(2, 3), np.int32)
    same(ops.zeros_like(np.ones(2)), [0, 0], np.float64)
    same(ops.ones_like(M, dtype=np.int32), np.ones((2, 3)), np.int32)
    same(ops.full_like(M, 2), np.full((2, 3), 2.0), np.float32)
    for wrong in ((0, 5, -1), (0, 5, 0)):
        with pytest.raises(ArgumentError):
            ops.arange(*wrong)
    with pytest.raises(ArgumentError, match="maxlen"):
        ops.range(0, 10, 1, 5)


def test_created_arrays_promote_as_tensors_do():
    integers = [ops.arange(3), ops.zeros(2, "int32"), ops.full((2,), 3), ops.eye(2, dtype="int32"), ops.nonzero(M)]
    for made in (*integers, ops.ones_like(np.arange(2)), ops.unique(np.arange(3))[1], ops.max(np.arange(3.0))[1]):
        assert (made * 0.5).dtype == np.float32


def test_created_arrays_differentiate():
    same(nb.grad(lambda v: ops.full((3,), v))(nb.Tensor(2.0)), 3.0)
    same(nb.grad(lambda v: ops.linspace(v, 1.0, 3))(nb.Tensor(0.0)), 1.5)


# ----- Positions -----


def test_gather_with_batch_axes():
    x, i = rng.normal(size=(2, 3, 4, 5)), rng.integers(0, 5, (2, 3, 2, 2))
    want = np.stack([[x[b, c][:, i[b, c]] for c in range(3)] for b in range(2)])
    same(ops.gather(x, i, 3, 2), want)
    want = np.stack([x[b][:, :, i[b]] for b in range(2)])
    same(ops.gather(x, i, 3, batch_dims=1), want)
    nb.check_grads(lambda x: ops.gather(x, i, -1, 2), (x,))
    with pytest.raises(ShapeError, match="batch_dims"):
        ops.gather(x, i, 1, 2)


def test_positions_that_do_not_exist_are_errors():
    x = np.arange(12.0).reshape(3, 4)
    for call in (
        lambda: ops.gather(x, [3], 0),
        lambda: ops.gather_elements(x, 1, [[4]]),
        lambda: ops.gather_nd(x, [[0, 4]]),
        lambda: ops.index_select(x, 0, [5]),
        lambda: ops.tensor_scatter_add(x, [[3, 0]], [1.0]),
        lambda: ops.tensor_scatter_elements(x, [[3]], [[1.0]]),
    ):
        with pytest.raises(RangeError):
            call()
    for call in (
        lambda: ops.gather(x, [0.5], 0),
        lambda: ops.gather_nd(x, [[0.0]]),
        lambda: ops.one_hot(np.array([0.5]), 3),
        lambda: ops.masked_select(x, x),
    ):
        with pytest.raises(DtypeError):
            call()
    for call in (
        lambda: ops.gather(x, [0], 2),
        lambda: ops.gather_elements(x, 0, [[0] * 5]),
        lambda: ops.gather_nd(x, [[0, 0, 0]]),
        lambda: ops.index_select(x, 0, [[0]]),
        lambda: ops.index_add(x, [0], np.ones((2, 4)), 0),
        lambda: ops.index_fill(x, 0, [0], [1.0]),
        lambda: ops.tensor_scatter_update(x, [[0]], [1.0]),
        lambda: ops.tensor_scatter_elements(x, [[0]], [[1.0, 2.0]]),
        lambda: ops.slice(x, (0,), (1,)),
        lambda: ops.slice(x, (0, 3), (1, 2)),
    ):
        with pytest.raises(ShapeError):
            call()
    with pytest.raises(ArgumentError, match="reduction"):
        ops.tensor_scatter_elements(x, [[0]], [[1.0]], reduction="mul")


def test_repeated_positions():
    x = np.zeros(3)
    same(ops.tensor_scatter_update(x, [[1], [1]], [5.0, 6.0]), [0, 6, 0])
    same(ops.tensor_scatter_add(x, [[1], [1]], [5.0, 6.0]), [0, 11, 0])
    same(ops.scatter_nd([[0, 1], [0, 1]], [1, 2], (2, 2)), [[0, 3], [0, 0]], np.int64)
    same(ops.index_add(x, axis=0, indices=[2, 2], y=[1.0, 1.0]), [0, 0, 2])
    same(ops.scatter(x, 0, [1], 7), [0, 7, 0])


def test_one_hot():
    i = np.array([[0, 2], [3, -1]])
    want = (i[..., None] == np.arange(3)).astype(int)
    same(ops.one_hot(i, 3), want, np.int64)
    same(ops.one_hot(i, 3, 1.0, 0.0, axis=0), np.moveaxis(want, -1, 0), np.float32)
    same(ops.one_hot(i, 3, np.float64(5), -1.0, 1), np.where(np.moveaxis(want, -1, 1), 5, -1), np.float64)
    same(nb.grad(lambda v: ops.one_hot(i, 3, v, 0.0))(nb.Tensor(2.0)), 2.0)
    assert ops.one_hot(i, 0).shape == (2, 2, 0)
    with pytest.raises(ArgumentError):
        ops.one_hot(i, -1)


def test_slices():
    x = np.arange(60).reshape(3, 4, 5)
    same(ops.slice(x, (1, 0, 2), (2, -1, 2)), x[1:3, :, 2:4])
    same(ops.strided_slice(x, (0, 3), (3, 0), (2, -1)), x[0:3:2, 3:0:-1])
    same(ops.strided_slice(x, (1, 1), (2, 2), (1, 1), begin_mask=1, end_mask=2), x[:2, 1:])
    same(ops.strided_slice(x, (0, 1), (0, 2), (1, 1), ellipsis_mask=1), x[..., 1:2])
    same(ops.strided_slice(x, (0, 1), (1, 2), (1, 1), new_axis_mask=1, shrink_axis_mask=2), x[None, 1])
    with pytest.raises(ArgumentError):
        ops.strided_slice(x, (0,), (1,), (0,))


def test_searches():
    row, values = np.array([1.0, 3.0, 3.0, NAN]), np.array([[0.0, 3.0], [4.0, NAN]])
    for right in (False, True):
        want = np.searchsorted(row, values, "right" if right else "left")
        same(ops.searchsorted(row, values, right=right), want, np.int64)
        batch = np.stack([row, row])
        same(ops.searchsorted(batch, values, right=right), want, np.int64)
    same(ops.searchsorted(np.array([3, 1]), np.array([2]), sorter=np.array([1, 0]), out_int32=True), [1], np.int32)
    with pytest.raises(ArgumentError, match="contradicts"):
        ops.searchsorted(row, values, right=True, side="left")
    with pytest.raises(ShapeError):
        ops.searchsorted(np.stack([row] * 3), values)
    same(ops.nonzero(np.array([[0, 2], [3, 0]])), [[0, 1], [1, 0]])
    assert len(ops.nonzero(np.ones((2, 3)), as_tuple=True)) == 2
    same(ops.bincount(np.array([1, 1, 3])), [0, 2, 0, 1])


# ----- Sorting -----


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8, bool])
def test_sorting_is_stable_both_ways(dtype):
    x = rng.integers(0, 3, (4, 9)).astype(dtype)
    up = np.argsort(x, axis=1, kind="stable")
    down = np.argsort(-x.astype(int), axis=1, kind="stable")
    for order, descending in ((up, False), (down, True)):
        values, places = ops.sort(x, 1, descending)
        same(places, order, np.int32)
        same(values, np.take_along_axis(x, order, 1), dtype)
        same(ops.argsort(x, descending=descending), order, np.int32)
    values, places = ops.topk(x, 4)
    same(places, down[:, :4], np.int32)
    same(ops.topk(x, 2, 0, largest=False)[1], np.argsort(x, axis=0, kind="stable")[:2], np.int32)


def test_sorting_special_cases():
    same(ops.sort(np.array([1.0, NAN, 2.0]), descending=True)[1], [1, 2, 0], np.int32)
    assert ops.sort(np.zeros((2, 0)), 1, True)[0].shape == (2, 0)
    same(ops.sort(3.0)[0], 3.0)
    assert ops.topk(M, 0)[0].shape == (2, 0)
    for wrong in (4, -1):
        with pytest.raises(ArgumentError, match="topk"):
            ops.topk(M, wrong)
    values, places = ops.unique(M)
    # MindSpore's order, in which they first occur.
    same(values, [1, 5, 7, 2])
    same(places, [[0, 1, 1], [2, 3, 2]], np.int32)


# ----- Linear algebra -----


def test_products_check_the_number_of_axes():
    v, m, b = np.ones(3), np.ones((3, 3)), np.ones((2, 3, 3))
    for call in (
        lambda: ops.mm(b, m),
        lambda: ops.mv(m, m),
        lambda: ops.bmm(m, m),
        lambda: ops.outer(m, v),
        lambda: ops.addmm(m, b, m),
        lambda: ops.trace(b),
        lambda: ops.matmul(m, np.ones((2, 2))),
        lambda: ops.cross(np.ones((2, 2)), np.ones((2, 2))),
        lambda: ops.cross(v, np.ones(2)),
        lambda: ops.cdist(m, np.ones((3, 2))),
    ):
        with pytest.raises(ShapeError):
            call()
    assert ops.bmm(np.ones((4, 2, 3, 3)), np.ones((4, 2, 3, 1))).shape == (4, 2, 3, 1)
    same(ops.einsum("ij,j->i", [m, v]), [3.0, 3.0, 3.0])


def test_beta_of_zero_leaves_the_array_out():
    same(ops.addmm(np.full((2, 1), NAN), np.eye(2), np.eye(2), beta=0), np.eye(2))
    assert (
        ops.addmm(np.ones(2, np.float32), np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32)).dtype == np.float32
    )


def test_cdist_of_equal_rows():
    same(nb.grad(lambda x: ops.cdist(x, x))(nb.Tensor(np.zeros((2, 3)))), np.zeros((2, 3)))


def test_arrays_without_elements_and_without_axes():
    empty, zero = np.zeros((0, 3), np.float32), np.float32(2.0)
    same(ops.add(empty, 1), empty, np.float32)
    same(ops.sum(empty, 0), np.zeros(3))
    same(ops.prod(empty, 0), np.ones(3))
    same(ops.cumsum(empty, 1), empty)
    same(ops.logsumexp(empty, 0), np.full(3, -np.inf))
    same(ops.norm(empty), 0.0)
    same(ops.concat((empty, np.ones((1, 3), np.float32))), np.ones((1, 3)), np.float32)
    same(ops.flatten(np.zeros((0, 2, 3))), np.zeros((0, 6)))
    same(ops.pad(empty, (1, 0, 2, 0)), np.zeros((2, 4)))
    same(ops.matmul(empty, np.ones((3, 2), np.float32)), np.zeros((0, 2)), np.float32)
    same(ops.gather(np.ones((2, 3)), np.zeros(0, int), 0), np.zeros((0, 3)))
    same(ops.gather_elements(np.ones((2, 3)), 0, np.zeros((0, 3), int)), np.zeros((0, 3)))
    same(ops.tensor_scatter_add(np.ones((2, 3)), np.zeros((0, 1), int), np.zeros((0, 3))), np.ones((2, 3)))
    same(ops.one_hot(np.zeros((0, 2), int), 3), np.zeros((0, 2, 3)))
    same(ops.masked_select(empty, empty > 0), np.zeros(0))
    same(ops.argsort(empty), np.zeros((0, 3)))
    same(ops.unique(empty)[0], np.zeros(0))
    assert [part.shape for part in ops.split(empty, 2)] == [(0, 3)]
    for function in (ops.sum, ops.mean, ops.prod, ops.amax, ops.std, ops.norm, ops.exp, ops.square, ops.round):
        assert function(zero).shape == ()
    same(ops.max(zero)[0], 2.0, np.float32)
    same(ops.max(zero, 0)[1], 0)
    same(ops.median(zero)[0], 2.0)
    same(ops.cumsum(np.ones(1), 0), [1.0])
    same(nb.grad(lambda x: ops.median(x)[0] + ops.max(x, 0)[0] + ops.sort(x)[0])(nb.Tensor(2.0)), 3.0)


def test_errors_name_the_line():
    with pytest.raises(NbgradError, match=r"test_ops_details\.py"):
        ops.sum(X, 7)
