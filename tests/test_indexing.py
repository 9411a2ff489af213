"""Reading and writing `x[key]`: NumPy's elements for any key, and gradients that go where the elements came from."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import nbgrad as nb
from nbgrad.errors import ArgumentError, DtypeError, RangeError, ShapeError, TracedValueError
from nbgrad.graph.differentiate import jvp, vjp
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import Node, constant, placeholder
from nbgrad.graph.trace import recording
from nbgrad.record.index_keys import bounds
from nbgrad.record.tensor import Tensor

pytestmark = pytest.mark.unoptimized

A = np.arange(24.0).reshape(2, 3, 4)

KEYS: list[Any] = [
    0,
    -1,
    (),
    ...,
    None,
    slice(None),
    slice(1, None),
    slice(None, None, -1),
    (0, 1, 2),
    (slice(None), 1),
    (..., 1),
    (..., None, 1),
    (None, 0, None, ..., slice(None, None, 2)),
    (slice(None, None, -1), slice(2, None, -2), slice(3, 0, -1)),
    (slice(5, 2), slice(0, 0)),
    (slice(0, 1, -(2**70)), slice(0, 0, 2**70)),
    (slice(None), slice(None, None, 3), slice(1, None, 2)),
    [0, 1, 1],
    [],
    [[0], [1]],
    np.array([1, -1]),
    np.array([], int),
    np.uint8(1),
    np.array(1),
    ([0, 1], [2, 0]),
    (slice(None), [0, 2, 2]),
    (slice(None), [0, 2], [1, 3]),
    ([0, 1], slice(None), [1, 3]),
    (0, slice(None), [1, 3]),
    (slice(None), 0, [1, 3]),
    (slice(None), [0, 1], None, [1, 3]),
    (slice(None), [0, 1], ..., [1, 3]),
    (slice(None), None, [2, 1]),
    ([0, 1], ..., [1, 3]),
    (..., [3, 0, 0]),
    (np.array([[0], [1]]), np.array([[0, 2]])),
    (slice(None, None, -1), [[0, 1], [2, 0]], slice(1, 3)),
    A > 11,
    (A > 11).tolist(),
    A[..., 0] > 5,
    (slice(None), np.array([True, False, True])),
    ([True, False], slice(None), [0, 3]),
    (slice(None), A[0] > 5),
    (0, A[0] > 5),
    np.zeros((2, 3, 4), bool),
    True,
    False,
    np.array(True),
    (True, [0, 1]),
    (0, True),
    (..., np.array([False, True, True, False]), None),
    (slice(None), range(2)),
]


def same(ours: Tensor, theirs: Any) -> None:
    theirs = np.asarray(theirs)
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    np.testing.assert_array_equal(ours.asnumpy(), theirs)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_reading(key):
    same(Tensor(A)[key], A[key])


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_gradient_of_reading(key):
    x = placeholder(A.shape, A.dtype, A)
    result = Tensor._of(x)[key]
    weights = np.random.default_rng(0).normal(size=result.shape)
    (g,) = vjp([result._node], [constant(weights)], [x])
    expected = np.zeros(A.shape)
    np.add.at(expected, key if not isinstance(key, list) else np.asarray(key, None if key else int), weights)
    np.testing.assert_allclose(np.zeros(A.shape) if g is None else interpret([g])[0], expected)


@pytest.mark.parametrize("key", KEYS, ids=str)
@pytest.mark.parametrize("kind", ["number", "full", "row", "integers"])
def test_writing(key, kind):
    shape = A[key].shape
    full = -1.5 - np.arange(np.prod(shape, dtype=int)).reshape(shape)
    value = {"number": 7.5, "full": full, "row": full[:1] if full.ndim else full, "integers": full.astype(int)}[kind]
    target, plain = Tensor(A), A.copy()
    target[key] = Tensor(value) if isinstance(value, np.ndarray) and kind != "row" else value
    plain[key] = value
    same(target, plain)
    ints, plain_ints = Tensor(A.astype(int)), A.astype(int)
    ints[key] = value
    plain_ints[key] = value
    same(ints, plain_ints)


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_gradient_of_writing(key):
    """Which elements of the value and of the old array remain: read off by numbering all of them."""
    shape = A[key].shape
    values = np.ones(shape)
    x, v = placeholder(A.shape, A.dtype, A), placeholder(shape, A.dtype, values)
    target = Tensor._of(x)
    target[key] = Tensor._of(v)
    weights = np.random.default_rng(0).normal(size=A.shape)
    gx, gv = vjp([target._node], [constant(weights)], [x, v])
    origin = np.full(A.shape, -1)
    origin[key] = np.arange(values.size).reshape(shape)
    np.testing.assert_allclose(zero_or(gx, A.shape), np.where(origin < 0, weights, 0.0))
    expected = np.zeros(values.size)
    expected[origin[origin >= 0]] = weights[origin >= 0]
    np.testing.assert_allclose(zero_or(gv, shape), expected.reshape(shape))


def zero_or(node: Node | None, shape: tuple[int, ...]) -> np.ndarray:
    return np.zeros(shape) if node is None else interpret([node])[0]


# ----- Any key -----


def both_refuse(array: np.ndarray, key: Any) -> bool:
    """Whether NumPy finds a position out of range; then so do we."""
    try:
        array[key]
    except IndexError:
        with pytest.raises(IndexError):
            Tensor(array)[key]
        return True
    return False


@st.composite
def keyed_arrays(draw: st.DrawFn) -> tuple[np.ndarray, Any]:
    shape = draw(hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=4))
    array = np.arange(float(np.prod(shape))).reshape(shape)
    if draw(st.booleans()):
        return array, draw(hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    kind = draw(st.sampled_from(["mask", "mixed", "arrays"]))
    if kind == "mask":
        axes = draw(st.integers(1, len(shape)))
        return array, draw(hnp.arrays(bool, shape[:axes]))
    if kind == "arrays" and 0 not in shape:
        return array, draw(hnp.integer_array_indices(shape, result_shape=hnp.array_shapes(max_dims=2, max_side=3)))
    parts: list[Any] = []
    together = draw(hnp.array_shapes(min_dims=0, max_dims=2, max_side=3))
    for extent in shape:
        choice = draw(st.sampled_from(["slice", "array", "int", "new", "stop"]))
        if choice == "stop":
            break
        if choice == "new":
            parts.append(None)
        if choice in ("slice", "new") or extent == 0:
            parts.append(draw(st.slices(extent)))
        elif choice == "int":
            parts.append(draw(st.integers(-extent, extent - 1)))
        else:
            parts.append(draw(hnp.arrays(np.int64, together, elements=st.integers(-extent, extent - 1))))
    if draw(st.booleans()):
        parts.insert(draw(st.integers(0, len(parts))), ...)
    return array, tuple(parts)


@settings(max_examples=300, deadline=None)
@given(keyed_arrays())
def test_any_key_reads_like_numpy(case):
    array, key = case
    if both_refuse(array, key):
        return
    x = placeholder(array.shape, array.dtype, array)
    with recording([x]):
        result = Tensor._of(x)[key]
        same(result, array[key])
    weights = np.arange(1.0, result.size + 1).reshape(result.shape)
    (g,) = vjp([result._node], [constant(weights)], [x])
    expected = np.zeros(array.shape)
    np.add.at(expected, key, weights)
    np.testing.assert_allclose(zero_or(g, array.shape), expected)


@settings(max_examples=300, deadline=None)
@given(keyed_arrays(), st.booleans())
def test_any_key_writes_like_numpy(case, scalar):
    array, key = case
    if both_refuse(array, key):
        return
    value = np.float64(-1.0) if scalar else -1.0 - np.arange(float(array[key].size)).reshape(array[key].shape)
    target, plain = Tensor(array), array.copy()
    target[key] = value
    plain[key] = value
    same(target, plain)
    target, plain = Tensor(array), array.copy()
    target[key] += value
    plain[key] += value
    same(target, plain)


# ----- Positions that depend on an argument -----


def traced(values: np.ndarray) -> Tensor:
    return Tensor._of(placeholder(values.shape, values.dtype, values))


def test_traced_positions_read_write_and_differentiate():
    x = placeholder(A.shape, A.dtype, A)
    index = traced(np.array([1, -1, 0]))
    with recording([x]):
        result = Tensor._of(x)[:, index, 0]
        same(result, A[:, [1, -1, 0], 0])
    (g,) = vjp([result._node], [constant(np.ones(result.shape))], [x])
    expected = np.zeros(A.shape)
    expected[:, :, 0] = 1.0
    np.testing.assert_allclose(interpret([g])[0], expected)
    target = Tensor(A)
    target[:, index] = 5.0
    plain = A.copy()
    plain[:, [1, -1, 0]] = 5.0
    same(target, plain)
    assert Tensor(A)[traced(np.array(1))].shape == (3, 4)


def test_traced_positions_are_checked():
    with pytest.raises(RangeError, match="out of range for axis 1 with size 3"):
        Tensor(A)[:, traced(np.array([0, 3]))]
    node = placeholder((2,), np.dtype(np.int64), np.array([0, 1]))
    with recording([node], jit=True) as trace:
        _ = Tensor(A)[Tensor._of(node)]
        assert len(trace.checks) == 1 and "out of range for axis 0" in trace.checks[0][1]


def test_positions_that_the_graph_bounds_are_not_checked():
    x = traced(np.array([3.0, 1.0, 2.0]))
    order = np.argsort(x)
    assert bounds(order._node) == (0, 2)
    with recording([x._node], jit=True) as trace:
        result = x[order]
        assert trace.checks == []
    same(result, np.array([1.0, 2.0, 3.0]))


def test_masks():
    x = placeholder(A.shape, A.dtype, A)
    kept = Tensor._of(x)[Tensor._of(x) > 20]
    same(kept, A[A > 20])
    with recording([x], jit=True):
        tensor = Tensor._of(x)
        with pytest.raises(TracedValueError, match=r"np\.where"):
            len(tensor[tensor > 20])
        tensor[tensor > 20] = 0.0
        tensor[Tensor._of(x)[:, :, 0] > 100] = np.ones(4)
        assert tensor.shape == A.shape
    np.testing.assert_array_equal(interpret([tensor._node])[0], np.where(A > 20, 0.0, A))


# ----- Errors -----


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (2, "Index 2 is out of range for axis 0 with size 2"),
        ((0, -4), "Index -4 is out of range for axis 1 with size 3"),
        ((0, 0, 0, 0), "3 axes, but 4 were indexed"),
        (([0], [3]), "Index 3 is out of range for axis 1 with size 3"),
        ((..., ...), "single ellipsis"),
        (1.5, "got float"),
        ("a", "got str"),
        (np.array([0.5]), "integers or booleans, not float64"),
        (Tensor([0.5]), "integers or booleans, not float32"),
        (np.ones((3, 3), bool), r"shape \(3, 3\) does not match"),
        (([0, 1], [0, 1, 2]), r"\(2,\) and \(3,\), which do not broadcast"),
    ],
)
def test_errors_at_once(key, message):
    for act in (lambda: Tensor(A)[key], lambda: Tensor(A).__setitem__(key, 1.0)):
        with pytest.raises(IndexError, match=message + ".*test_indexing.py"):
            act()


def test_values_that_do_not_fit():
    with pytest.raises(ShapeError, match=r"\(5,\) does not broadcast to the shape \(3, 4\)"):
        Tensor(A)[0] = np.ones(5)
    target = Tensor(A)
    target[0] = np.ones((1, 1, 3, 4))
    assert target[0].sum().item() == 12.0
    with pytest.raises(ShapeError):
        Tensor(A)[[0, 1]] = np.ones((3, 3, 4))


# ----- Functions -----


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_take(axis, mode):
    indices = np.array([[0, 1], [1, 0]]) if mode == "raise" else np.array([-30, 1, 50])
    same(np.take(Tensor(A), indices, axis=axis, mode=mode), np.take(A, indices, axis=axis, mode=mode))
    if axis is not None:
        same(np.take(Tensor(A), traced(indices), axis=axis, mode=mode), np.take(A, indices, axis=axis, mode=mode))


def test_take_details():
    assert np.array_equal(np.take(A, Tensor([1, 0]), 0), A[[1, 0]])
    same(Tensor(A).take(3), A.take(3))
    same(np.take(Tensor(A), [], axis=1), np.take(A, np.array([], int), axis=1))
    with pytest.raises(RangeError, match="Index 9 is out of range for axis 1"):
        np.take(Tensor(A), [9], axis=1)
    with pytest.raises(RangeError, match="size 0"):
        np.take(Tensor(np.zeros(0)), [0], mode="clip")
    with pytest.raises(ArgumentError, match="mode"):
        np.take(Tensor(A), [0], mode="other")
    with pytest.raises(DtypeError, match="integers"):
        np.take(Tensor(A), [0.5])


@pytest.mark.parametrize("axis", [0, 1, 2, None])
def test_along_axis(axis):
    order = np.argsort(-A, axis=axis)
    same(np.take_along_axis(Tensor(A), order, axis), np.take_along_axis(A, order, axis))
    target, plain = Tensor(A), A.copy()
    first = order[:1] if axis in (None, 0) else order[:, :1] if axis == 1 else order[..., :1]
    for array in (target, plain):
        np.put_along_axis(array, first, -1.0, axis)
    same(target, plain)
    if axis is not None:
        same(np.take_along_axis(Tensor(A), order[:1, :1, :1], axis), np.take_along_axis(A, order[:1, :1, :1], axis))


def test_along_axis_errors_and_gradient():
    with pytest.raises(ShapeError, match="1 axes, but the array has 3"):
        np.take_along_axis(Tensor(A), [0], 0)
    with pytest.raises(IndexError, match="integers"):
        np.take_along_axis(Tensor(A), A, 0)
    x = placeholder((3,), np.dtype(float), np.array([3.0, 1.0, 2.0]))
    tensor = Tensor._of(x)
    result = np.take_along_axis(tensor, np.argsort(tensor), -1)
    (g,) = vjp([result._node], [constant(np.array([1.0, 2.0, 3.0]))], [x])
    assert interpret([g])[0].tolist() == [3.0, 1.0, 2.0]


def test_functions_that_write():
    value = np.array([10.0, 20.0, 30.0])
    cases = [
        lambda a: np.put(a, [0, -1, 5], value),
        lambda a: np.put(a, [0, 1, 2, 3, 0], value),
        lambda a: np.put(a, [99, -99], value, mode="clip"),
        lambda a: np.put(a, [99, -99], value, mode="wrap"),
        lambda a: np.put(a, [0], []),
        lambda a: np.putmask(a, A > 5, value),
        lambda a: np.putmask(a, A > 5, -A),
        lambda a: np.place(a, A > 5, value),
        lambda a: np.place(a, A > 500, value),
        lambda a: np.copyto(a, value[:1]),
        lambda a: np.copyto(a, A[0], where=A > 3),
    ]
    for function in cases:
        target, plain = Tensor(A), A.copy()
        function(target)
        function(plain)
        same(target, plain)
    for shape, wrap in (((3, 3), False), ((5, 3), False), ((7, 3), True), ((3, 5), False), ((2, 2, 2), False)):
        target, plain = Tensor(np.zeros(shape)), np.zeros(shape)
        for array in (target, plain):
            np.fill_diagonal(array, [1.0, 2.0], wrap)
        same(target, plain)
    with pytest.raises(ShapeError):
        np.fill_diagonal(Tensor(np.zeros(3)), 1.0)
    with pytest.raises(ArgumentError):
        np.place(Tensor(A), A > 5, [])
    with pytest.raises(ShapeError):
        np.putmask(Tensor(A), [True], value)
    plain = np.zeros(3)
    np.put(plain, [1], Tensor([2.0]))
    np.copyto(plain[:1], Tensor([5.0]))
    assert plain.tolist() == [5.0, 2.0, 0.0]


def test_put_differentiates():
    v = placeholder((2,), np.dtype(float), np.array([1.0, 2.0]))
    target = Tensor(np.zeros(4))
    np.put(target, [3, 0], Tensor._of(v))
    (t,) = jvp([target._node], [v], [constant(np.array([1.0, 5.0]))])
    assert interpret([t])[0].tolist() == [5.0, 0.0, 0.0, 1.0]


def test_a_loop_that_fills_an_array_differentiates():
    x = placeholder((), np.dtype(float), np.array(2.0))
    u = Tensor(np.zeros(6))
    u[0] = 1.0
    for i in range(1, 6):
        u[i] = u[i - 1] * Tensor._of(x)
    (g,) = vjp([u[5]._node], [constant(np.array(1.0))], [x])
    assert interpret([g])[0] == 5 * 2.0**4
    u[1:] += u[:-1] * Tensor._of(x)
    assert u.asnumpy().tolist() == [1, 4, 8, 16, 32, 64]


@pytest.mark.parametrize("far", [3, -4, 10**13, -(10**13)])
def test_compiled_functions_neither_read_nor_write_out_of_range(far):
    def written(x, k):
        y = x * 1.0
        y[k] = 7.0
        return y

    for function in (lambda x, k: x[k] * 2, nb.grad(lambda x, k: (x[k] ** 2).sum()), written):
        compiled = nb.jit(function)
        compiled(np.arange(3.0), np.array([1, -1]))
        with pytest.raises(IndexError, match="out of range"):
            compiled(np.arange(3.0), np.array([1, far]))


@pytest.mark.parametrize(
    ("shape", "index", "axis"),
    [
        ((1, 4), [[0, 3], [1, 1], [2, 0]], 1),
        ((3, 4), [[1, 0]], 1),
        ((3, 1), [[2, 0, 0, 1]], 0),
        ((2, 1, 3), [[[0], [2]]], 2),
        ((1, 3, 1), np.array([[[0, 1]], [[2, 2]]]), 1),
    ],
)
def test_along_an_axis_arrays_and_indices_broadcast(shape: Any, index: Any, axis: int) -> None:
    a, index = np.arange(float(np.prod(shape))).reshape(shape), np.array(index)
    want = np.take_along_axis(a, index, axis)
    np.testing.assert_array_equal(nb.jit(lambda x: np.take_along_axis(x, index, axis))(a), want)
    weights = np.random.default_rng(0).normal(size=want.shape)
    gradient = nb.grad(lambda x: np.sum(np.take_along_axis(x, index, axis) * weights))(a)
    for k in range(a.size):
        direction = np.eye(a.size)[k].reshape(shape)
        slope = np.sum(np.take_along_axis(direction, index, axis) * weights)
        np.testing.assert_allclose(gradient.ravel()[k], slope)
    changed, ours = a.copy(), nb.Tensor(a)
    np.put_along_axis(changed, index, -1.0, axis)
    np.put_along_axis(ours, index, -1.0, axis)
    np.testing.assert_array_equal(ours.asnumpy(), changed)
    with pytest.raises((ValueError, IndexError)):
        np.take_along_axis(nb.Tensor(np.ones((3, 4))), np.zeros((2, 2), int), 1)
