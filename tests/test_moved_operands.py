"""Movements of maps that are done on the operands instead, and slices of lines: values are NumPy's, loops are fewer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import nbgrad as nb
from nbgrad.compiler.fuse import Special, fuse
from nbgrad.compiler.loops import Loop
from nbgrad.compiler.moved_operands import with_moved_operands
from nbgrad.graph.builders import pad, reduce, reshape, slice_axes, transpose
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import Node, broadcast, elementwise, literal, placeholder
from nbgrad.graph.simplify import simplify

RNG = np.random.default_rng(11)
FLOAT = np.dtype(np.float64)


def array(*shape: int) -> Node:
    return placeholder(shape, FLOAT)


def kernels(*outputs: Node) -> list[Loop | Special]:
    """The kernels of a graph whose operands are moved, which has the values of the graph itself."""
    graph = simplify(outputs)
    moved = with_moved_operands(graph)
    inputs = {node: RNG.uniform(0.5, 2.0, node.shape) for node in _all(list(outputs)) if node.name == "input"}
    for one, other in zip(interpret(outputs, inputs), interpret(moved, inputs), strict=True):
        assert_allclose(one, other, rtol=1e-14)
    return fuse(moved).steps


def _all(outputs: list[Node]) -> set[Node]:
    found: set[Node] = set()
    stack = outputs[:]
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack.extend(node.inputs)
    return found


# ----- Transposes and reversals -----


def test_the_transpose_of_a_map_of_a_transpose_is_one_loop_that_reads_in_order() -> None:
    x, w = array(60, 70), array(70, 60)
    (loop,) = kernels(transpose(elementwise("exp", transpose(x, (1, 0))) * w, (1, 0)))
    assert isinstance(loop, Loop)
    assert loop.shape == (60, 70)
    assert sorted(a.view.strides for a in loop.accesses) == [(1, 60), (70, 1), (70, 1)]


def test_a_map_of_more_arrays_in_order_is_turned_itself() -> None:
    a, b, c = array(60, 70), array(60, 70), array(60, 70)
    assert len(kernels(transpose(a * b + c, (1, 0)))) == 2


def test_what_something_else_reads_is_not_moved() -> None:
    x, w = array(60, 70), array(70, 60)
    product = elementwise("exp", transpose(x, (1, 0))) * w
    assert len(kernels(product, transpose(product, (1, 0)))) == 2


def test_a_node_that_is_read_twice_by_the_map_is_part_of_it() -> None:
    x, w = array(60, 70), array(70, 60)
    inner = elementwise("exp", transpose(x, (1, 0))) * w
    assert len(kernels(transpose(inner + inner * inner, (1, 0)))) == 1


def test_maps_of_a_row_and_a_number_are_moved() -> None:
    x, row = array(60, 70), array(60)
    map_ = transpose(x, (1, 0)) * broadcast(row, (70, 60)) + broadcast(literal(3.0, FLOAT), (70, 60))
    assert len(kernels(transpose(map_, (1, 0)))) == 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("shape", [(46, 47, 48), (1, 9, 33), (0, 4, 5), (9, 8, 3)])
def test_values_of_turned_maps(shape: tuple[int, ...], dtype: Any) -> None:
    x = RNG.integers(-9, 9, shape).astype(dtype)
    w = RNG.integers(-9, 9, (shape[2], shape[0], shape[1])).astype(dtype)

    def f(x: Any, w: Any) -> Any:
        return np.transpose((np.transpose(x, (2, 0, 1)) * w - 3)[::-1], (1, 2, 0))

    for layout in (np.ascontiguousarray, np.asfortranarray):
        given = layout(x), layout(w)
        assert_array_equal(nb.jit(f)(*given), f(*given))


@pytest.mark.parametrize("turns", [0, 1, 2, 3, -1])
def test_gradient_through_a_rotation(turns: int) -> None:
    x = RNG.uniform(-1, 1, (40, 70))
    w = RNG.uniform(-1, 1, np.rot90(x, turns).shape)
    found = nb.jit(nb.grad(lambda x, w: np.sum(np.rot90(x, turns) ** 2 * w)))(x, w)
    assert_allclose(found, 2 * x * np.rot90(w, -turns), rtol=1e-15)


def test_nan_and_infinities_stay_where_they_are() -> None:
    x = np.ones((20, 30))
    x[3, 4], x[5, 6], x[7, 8] = np.nan, np.inf, -np.inf
    w = np.arange(600.0).reshape(30, 20)
    found = nb.jit(lambda x, w: (x.T * w).T + 0.0)(x, w)
    assert_array_equal(found, x * w.T)


# ----- Slices -----


def test_what_a_slice_leaves_out_is_not_computed() -> None:
    x, y = array(1000), array(1000)
    (loop,) = kernels(slice_axes(elementwise("exp", x) * y, [(10, 5, 3)]))
    assert isinstance(loop, Loop)
    assert loop.shape == (5,)


def test_a_map_of_several_arrays_that_are_computed_anyway_stays_with_them() -> None:
    x, y = array(1000), array(1000)
    one, other = elementwise("exp", x), elementwise("sin", y)
    sums = [reduce("sum", one, (0,)), reduce("sum", other, (0,))]
    first, copy = kernels(*sums, slice_axes(one * other, [(0, 999, 1)]))
    assert isinstance(first, Loop)
    assert isinstance(copy, Loop)
    assert [value.operation for value in first.values] == ["load", "exp", "load", "sin", "multiply"]
    assert len(first.stores) == 1
    assert [value.operation for value in copy.values] == ["load"]


def test_the_gradient_of_a_diagonal_reads_a_diagonal() -> None:
    v, w = RNG.uniform(-1, 1, 30), RNG.uniform(-1, 1, (30, 30))
    w[0, 1] = np.nan
    gradient = nb.jit(nb.grad(lambda v, w: np.sum((np.diagflat(v) * w)[np.arange(30), np.arange(30)] ** 2)))
    assert_allclose(gradient(v, w), 2 * v * np.diag(w) ** 2, rtol=1e-14)
    square = nb.jit(nb.grad(lambda v, w: np.sum(np.diagflat(v) ** 2 * w)))
    assert_allclose(square(v, w), 2 * v * np.diag(w), rtol=1e-15)
    assert " 60 flops" in nb.explain(square, v, w)


LINES = [
    ((4, 5, 6), (20, 6), ((3, 1, 1), (1, 4, 1))),
    ((4, 5, 6), (20, 6), ((2, 4, 5), (1, 1, 1))),
    ((4, 5, 6), (20, 6), ((0, 5, 1), (3, 1, 1))),
    ((4, 5, 6), (20, 6), ((19, 20, -1), (3, 1, 1))),
    ((4, 5, 6), (120,), ((119, 4, -30),)),
    ((4, 5, 6), (120,), ((1, 5, 6),)),
    ((4, 5, 6), (120,), ((7, 1, 1),)),
    ((120,), (10, 12), ((0, 10, 1), (11, 1, 1))),
    ((120,), (2, 5, 12), ((1, 1, 1), (4, 5, -1), (3, 1, 1))),
    ((1, 12), (12, 1, 1), ((2, 5, 2), (0, 1, 1), (0, 1, 1))),
]


@pytest.mark.parametrize(("shape", "seen", "ranges"), LINES)
def test_slices_of_lines(shape: tuple[int, ...], seen: tuple[int, ...], ranges: Any) -> None:
    x = array(*shape)
    (found,) = simplify([slice_axes(reshape(x, seen), ranges)])
    value = np.arange(float(np.prod(shape))).reshape(shape)
    expected = value.reshape(seen)
    for axis, (start, count, step) in enumerate(ranges):
        expected = np.take(expected, start + step * np.arange(count), axis)
    assert_array_equal(interpret([found], {x: value})[0], expected)


def test_a_column_of_a_padded_array_is_the_array() -> None:
    x = array(7)
    padded = reshape(pad(reshape(x, (7, 1)), [(0, 0), (0, 3)]), (28,))
    (found,) = simplify([slice_axes(padded, [(0, 7, 4)])])
    assert found is x


# ----- Positions in runs -----

REMOVED = [1, 0, 3, -1, [1], [0, 1], [2, 5], [1, 2, 6], slice(2, 5), slice(None, None, 2), []]


@pytest.mark.parametrize("removed", REMOVED, ids=str)
def test_deleted_positions_and_their_gradient(removed: Any) -> None:
    x = RNG.uniform(-1, 1, (5, 9))
    expected = np.delete(x, removed, axis=1)
    w = RNG.uniform(-1, 1, expected.shape)
    assert_array_equal(nb.jit(lambda x: np.delete(x, removed, axis=1))(x), expected)
    found = nb.jit(nb.grad(lambda x: np.sum(np.delete(x, removed, axis=1) ** 2 * w)))(x)
    gradient = np.zeros_like(x)
    gradient[:, np.delete(np.arange(9), removed)] = 2 * expected * w
    assert_allclose(found, gradient, rtol=1e-15)


def test_a_deleted_column_leaves_two_slices() -> None:
    x = np.ones((20, 400))
    text = str(nb.explain(nb.jit(lambda x: np.delete(x, 1, axis=1) * 2.0), x))
    assert "(0, 1, 1)" in text
    assert "(2, 398, 1)" in text
    assert "gather" not in text


@pytest.mark.parametrize("at", [0, 1, 7, 9])
def test_an_inserted_row_is_written_once(at: int) -> None:
    x, row = RNG.uniform(size=(9, 40)), RNG.uniform(size=40)
    inserted = nb.jit(lambda x, row: np.insert(x, at, row, axis=0))
    assert_array_equal(inserted(x, row), np.insert(x, at, row, axis=0))
    assert "arena 0 bytes" in str(nb.explain(inserted, x, row))


@pytest.mark.parametrize("shape", [(0,), (3,), (6,), (2, 3), (7,), (4, 3), (5, 5), (1, 1)])
def test_resized_arrays(shape: tuple[int, ...]) -> None:
    x = np.arange(6.0).reshape(2, 3)
    assert_array_equal(nb.jit(lambda x: np.resize(x, shape))(x), np.resize(x, shape))
    w = np.arange(1.0, 1 + np.prod(shape)).reshape(shape)
    expected = np.bincount(np.arange(w.size) % 6, w.ravel(), 6).reshape(2, 3)
    assert_array_equal(nb.jit(nb.grad(lambda x: np.sum(np.resize(x, shape) * w)))(x), expected)


# ----- Differences along axes -----


@pytest.mark.parametrize("edge_order", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, 2, -1])
def test_differences_along_any_axis(axis: int, edge_order: Any) -> None:
    x = RNG.uniform(-1, 1, (4, 5, 6))
    grid = np.cumsum(RNG.uniform(0.5, 1.5, x.shape[axis]))
    for spacing in ((), (0.3,), (grid,)):
        found = nb.jit(lambda x, s=spacing: np.gradient(x, *s, axis=axis, edge_order=edge_order))(x)
        assert_allclose(found, np.gradient(x, *spacing, axis=axis, edge_order=edge_order), rtol=1e-13, atol=1e-13)
        nb.check_grads(lambda x, s=spacing: np.gradient(x, *s, axis=axis, edge_order=edge_order), (x,), order=1)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(7,), (2, 3), (3, 4, 5), (1, 1)])
def test_flat_positions_along_each_axis(shape: tuple[int, ...], order: Any) -> None:
    index = RNG.permutation(int(np.prod(shape)))
    found = nb.jit(lambda i: np.unravel_index(i, shape, order))(index)
    for one, other in zip(found, np.unravel_index(index, shape, order), strict=True):
        assert_array_equal(one, other)
