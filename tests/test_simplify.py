"""Simplification: what becomes smaller, and what must stay because of rounding, NaN, infinity or signed zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nbgrad.compiler.matrices.diagonal_choices import with_diagonals
from nbgrad.graph.builders import cast, concatenate, matmul, pad, reduce, reshape, slice_axes, transpose
from nbgrad.graph.formulas import unslice
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import Node, broadcast, constant, elementwise, literal, make, placeholder, topological, zeros
from nbgrad.graph.rules.elementwise_rules import literal_of
from nbgrad.graph.show import show
from nbgrad.graph.simplify import simplify

FLOAT, SINGLE, INT = np.dtype(float), np.dtype(np.float32), np.dtype(int)
SPECIALS = np.array([0.0, -0.0, 1.5, -2.0, np.inf, -np.inf, np.nan, 1e308, 5e-324])


def x_of(shape: tuple[int, ...] = (9,), dtype: np.dtype[Any] = FLOAT) -> Node:
    return placeholder(shape, dtype, np.resize(SPECIALS, shape).astype(dtype))


def count(node: Node) -> int:
    """Operations, not counting sources and movement."""
    return sum(n.primitive.kind not in ("source", "movement") for n in topological([node]))


SMALLER: dict[str, tuple[Callable[[Node], Node], int]] = {
    "x * 1": (lambda x: x * 1.0, 0),
    "1 * x": (lambda x: 1.0 * x, 0),
    "x + -0": (lambda x: x + -0.0, 0),
    "-x * -y": (lambda x: -x * -elementwise("exp", x), 2),
    "y - -x / y": (lambda x: elementwise("exp", x) - -x / elementwise("exp", x), 3),
    "x / 1": (lambda x: x / 1.0, 0),
    "x - 0": (lambda x: x - 0.0, 0),
    "twice negated": (lambda x: elementwise("negative", -x), 0),
    "x + -y": (lambda x: x + (-elementwise("exp", x)), 2),
    "x * -1": (lambda x: x * -1.0, 1),
    "x / 2 is x * 0.5": (lambda x: x / 2.0, 1),
    "x ** 1": (lambda x: elementwise("power", x, 1.0), 0),
    "x ** 2": (lambda x: elementwise("power", x, 2.0), 1),
    "x ** 0": (lambda x: elementwise("power", x, 0.0), 0),
    "x ** 3": (lambda x: elementwise("power", x, 3.0), 2),
    "x ** 4": (lambda x: elementwise("power", x, 4.0), 2),
    "x ** -1": (lambda x: elementwise("power", x, -1.0), 1),
    "x ** -2": (lambda x: elementwise("power", x, -2.0), 2),
    "select of one": (lambda x: elementwise("select", elementwise("less", x, 0.0), x, x), 0),
    "select by what is not": (
        lambda x: elementwise("select", elementwise("logical_not", elementwise("isnan", x)), x, x * 2.0),
        3,
    ),
    "equal subexpressions": (lambda x: elementwise("sin", x) + elementwise("sin", x), 2),
    "commuted": (lambda x: (x + elementwise("exp", x)) * (elementwise("exp", x) + x), 3),
    "scalars first": (
        lambda x: broadcast(constant(np.array(2.0)), (9,)) * broadcast(constant(np.array(3.0)), (9,)) * x,
        2,
    ),
    "folded": (lambda x: elementwise("sin", broadcast(literal(2.0, FLOAT), (9,))) + 0.0 * x, 2),
    "cast to itself": (lambda x: elementwise("alias", x), 0),
    "slice of pad": (lambda x: slice_axes(pad(x, [(3, 3)]), [(3, 9, 1)]), 0),
    "sum of sum": (lambda x: reduce("sum", reduce("sum", reshape(x, (3, 3)), (0,)), (0,)), 1),
    "sum of a repeated row": (lambda x: reduce("sum", broadcast(x, (5, 9)), (0,)), 1),
}


@pytest.mark.parametrize("name", SMALLER)
def test_becomes_smaller_and_keeps_its_value(name: str) -> None:
    build, want = SMALLER[name]
    node = build(x_of())
    (small,) = simplify([node])
    assert count(small) == want, show([small], name)
    assert (small.shape, small.dtype) == (node.shape, node.dtype)
    if name != "sum of a repeated row":
        np.testing.assert_array_equal(interpret([small])[0], interpret([node])[0], err_msg=name)


def test_what_is_repeated_is_computed_once() -> None:
    """Elementwise operations on rows that are repeated to matrices, or on numbers beside them, work on rows."""
    row, column, number = x_of(), reshape(x_of((5,)), (5, 1)), constant(np.array(3.0))
    shape = (2, 5, 9)

    def over(*nodes: Node) -> Node:
        return elementwise("hypot", *[broadcast(node, shape) for node in nodes])

    for build, size in (
        ((row, number), 9),
        ((row, literal(2.0, FLOAT)), 9),
        ((column, number), 5),
        ((column, reshape(column, (1, 5, 1))), 5),
        ((row, column), 45),
        ((broadcast(row, (5, 9)), row), 9),
        ((reshape(row, (1, 1, 9)), row), 9),
        ((number, number), 1),
    ):
        node = over(*build)
        (small,) = simplify([node])
        sizes = [n.size for n in topological([small]) if n.name == "hypot"]
        assert sizes == [size], show([small])
        assert small.shape == shape
        np.testing.assert_array_equal(interpret([small])[0], interpret([node])[0])
    indices = broadcast(constant(np.arange(9)), (5, 9))
    (small,) = simplify([make("gather", (x_of(), indices))])
    np.testing.assert_array_equal(interpret([small])[0], np.tile(SPECIALS, (5, 1)))


NEIGHBOURS: dict[str, tuple[list[tuple[int, int, int]], int]] = {
    "two": ([(0, 3, 1), (3, 4, 1)], 1),
    "three": ([(1, 1, 1), (2, 1, 1), (3, 5, 1)], 1),
    "all": ([(0, 3, 1), (3, 6, 1)], 0),
    "every other": ([(0, 2, 2), (4, 3, 2)], 1),
    "backwards": ([(8, 2, -1), (6, 3, -1)], 1),
    "a gap": ([(0, 3, 1), (4, 4, 1)], 3),
    "an overlap": ([(0, 3, 1), (2, 4, 1)], 3),
    "other steps": ([(0, 2, 1), (2, 3, 2)], 3),
    "wrong order": ([(3, 3, 1), (0, 3, 1)], 3),
}


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_neighbouring_slices_are_one(name: str) -> None:
    """Slices, and a concatenation if there is still one."""
    ranges, want = NEIGHBOURS[name]
    x = x_of()
    node = concatenate([slice_axes(x, [r]) for r in ranges], 0)
    (small,) = simplify([node])
    assert len(topological([small])) - 1 == want, show([small], name)
    values = [SPECIALS[[start + step * k for k in range(count)]] for start, count, step in ranges]
    np.testing.assert_array_equal(interpret([small])[0], np.concatenate(values))


def test_slices_of_other_arrays_or_rows_stay_apart() -> None:
    x, y = reshape(x_of(), (3, 3)), reshape(x_of(), (3, 3)) * 2.0
    for pieces in (
        [slice_axes(x, [(0, 1, 1), (0, 3, 1)]), slice_axes(y, [(1, 1, 1), (0, 3, 1)])],
        [slice_axes(x, [(0, 1, 1), (0, 2, 1)]), slice_axes(x, [(1, 1, 1), (1, 2, 1)])],
    ):
        node = concatenate(pieces, 0)
        (small,) = simplify([node])
        np.testing.assert_array_equal(interpret([small])[0], interpret([node])[0])
        assert small.name == "concatenate"


STAYS: dict[str, Callable[[Node], Node]] = {
    "x * 0 (NaN, infinity)": lambda x: x * 0.0,
    "x + 0 (minus zero)": lambda x: x + 0.0,
    "0 - x (zero)": lambda x: 0.0 - x,
    "x - x (NaN)": lambda x: x - x,
    "x / x": lambda x: x / x,
    "x / 3 is not x * (1/3)": lambda x: x / 3.0,
    "x - -0": lambda x: x - -0.0,
    "x ** 3": lambda x: elementwise("power", x, 3.0),
    "x ** -1": lambda x: elementwise("power", x, -1.0),
    "x ** -2": lambda x: elementwise("power", x, -2.0),
    "x / 1e-320": lambda x: x / 1e-320,
    "x / 4": lambda x: x / 4.0,
    "x / 2**60": lambda x: x / 2.0**60,
    "x % 1": lambda x: elementwise("remainder", concatenate([x, x * 0.3, x * -1e-20], 0), 1.0),
    "fmod(x, 1)": lambda x: elementwise("fmod", concatenate([x, x * 0.3, x * -1e-20], 0), 1.0),
    "x == x": lambda x: cast(elementwise("equal", x, x), FLOAT),
    "maximum(x, x)": lambda x: elementwise("maximum", x, x),
    "not(x < 0)": lambda x: cast(elementwise("logical_not", elementwise("less", x, 0.0)), FLOAT),
    "narrow and back": lambda x: cast(cast(x, SINGLE), FLOAT),
    "min of a repeated row": lambda x: reduce("min", broadcast(x, (5, 9)), (0,)),
    "prod of a repeated row": lambda x: reduce("prod", broadcast(x, (2, 9)), (0,)),
    "concatenation in concatenation": lambda x: concatenate(
        [concatenate([x, x * 2.0], 0), slice_axes(x, [(0, 0, 1)]), x], 0
    ),
    "slice of a concatenation": lambda x: slice_axes(concatenate([x, x * 2.0], 0), [(8, 3, 1)]),
    "slice in one piece": lambda x: slice_axes(concatenate([x, x * 2.0], 0), [(17, 4, -2)]),
    "slice beside the data of a pad": lambda x: slice_axes(pad(x, [(3, 3)]), [(0, 3, 1)]),
    "slice over the edge of a pad": lambda x: slice_axes(pad(x, [(3, 3)]), [(11, 6, -2)]),
    "transposes": lambda x: transpose(transpose(reshape(x, (3, 1, 3)), (2, 1, 0)), (1, 0, 2)),
    "product of one column": lambda x: matmul(reshape(x, (1, 9, 1)), reshape(x, (1, 1, 9))),
    "product over nothing": lambda x: matmul(zeros((1, 2, 0), FLOAT), zeros((1, 0, 3), FLOAT)),
    "sum of nothing": lambda x: reduce("sum", slice_axes(x, [(0, 0, 1)]), (0,)),
    "prod of nothing": lambda x: reduce("prod", slice_axes(x, [(0, 0, 1)]), (0,)),
}


@pytest.mark.parametrize("name", STAYS)
def test_keeps_special_values(name: str) -> None:
    node = STAYS[name](x_of())
    (small,) = simplify([node])
    assert (small.shape, small.dtype) == (node.shape, node.dtype), name
    got, want = interpret([small])[0], interpret([node])[0]
    np.testing.assert_allclose(got, want, rtol=4e-16, atol=0, err_msg=name)
    zero = (want == 0) & (name != "product of one column")
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]), err_msg=f"{name}: signs of zeros")


def test_power_of_one_half_is_the_square_root() -> None:
    """As NumPy has it, in some versions also for -inf and -0.0, where C's pow gives inf and 0.0."""
    x = x_of()
    (small,) = simplify([elementwise("power", x, 0.5)])
    (root,) = interpret([elementwise("sqrt", x)])
    np.testing.assert_array_equal(interpret([small])[0], root)


def test_integers_wrap_and_booleans_stay() -> None:
    x = placeholder((4,), np.dtype(np.int8), np.array([-128, 127, 0, 5], np.int8))
    cases = {"x * -1": x * -1, "x * 1": x * 1, "twice negated": elementwise("negative", -x), "x + x": x + x}
    for name, node in cases.items():
        np.testing.assert_array_equal(interpret(simplify([node]))[0], interpret([node])[0], err_msg=name)
    b = placeholder((2,), np.dtype(bool), np.array([True, False]))
    for name in ("logical_and", "logical_or", "multiply", "add"):
        node = elementwise(name, b, literal(True, np.dtype(bool)))
        np.testing.assert_array_equal(interpret(simplify([node]))[0], interpret([node])[0], err_msg=name)


def test_literals_are_told_apart_by_their_bits() -> None:
    zero, minus = (broadcast(literal(v, FLOAT), (2,)) for v in (0.0, -0.0))
    x = x_of((2,))
    a, b = simplify([elementwise("copysign", x, zero), elementwise("copysign", x, minus)])
    assert a is not b
    nan = literal(np.nan, FLOAT)
    c, d = simplify([x + nan, x + nan])
    assert c is d
    one, other = simplify([x + 1.0, placeholder((2,), SINGLE, np.ones(2, np.float32)) + 1.0])
    assert one.dtype != other.dtype


def test_dead_code_and_order_of_outputs() -> None:
    x = x_of()
    _unused = elementwise("exp", x)
    a, b, c = simplify([x * 2.0, x, x * 2.0])
    assert a is c and b is x
    assert literal_of(simplify([zeros((3, 4), FLOAT) + 1.0])[0]) == 1.0


def test_very_deep_graphs() -> None:
    node = x_of((2,))
    for _ in range(30_000):
        node = node + 1.0
    (small,) = simplify([node])
    np.testing.assert_allclose(interpret([small])[0][:1], [30_000.0])


def test_a_repeated_complex_number_of_repeated_parts_stays() -> None:
    re, im = (broadcast(x_of((3,)), (2, 3)) for _ in range(2))
    (simple,) = simplify([make("complex", (re, im))])
    assert simple.name == "complex"
    assert [part.name for part in simple.inputs] == ["broadcast", "broadcast"]


DIAGONALS: dict[str, tuple[tuple[int, ...], int, int]] = {
    # The shape of the matrices, and the first row and column of the diagonal.
    "main": ((5, 5), 0, 0),
    "above": ((5, 5), 0, 2),
    "below": ((6, 6), 3, 0),
    "of wide ones": ((3, 7), 0, 1),
    "of tall ones": ((7, 3), 2, 0),
    "of a batch": ((2, 4, 6), 1, 0),
    "of a batch of batches": ((2, 3, 4, 4), 0, 1),
    "of one column": ((4, 1), 1, 0),
}


@pytest.mark.parametrize("name", DIAGONALS)
def test_matrices_with_a_diagonal_are_a_choice_at_each_element(name: str) -> None:
    (*batch, height, width), row, column = DIAGONALS[name]
    length = min(height - row, width - column)
    values = np.resize(SPECIALS, (*batch, length))
    node = placeholder(values.shape, FLOAT, values)
    ranges = [(0, n, 1) for n in batch]
    flat = unslice(node, (*batch, height * width), [*ranges, (row * width + column, length, width + 1)])
    found = reshape(flat, (*batch, height, width))
    expected = np.zeros(found.shape)
    for at in range(length):
        expected[..., row + at, column + at] = values[..., at]
    (simple,) = with_diagonals(simplify([found]))
    np.testing.assert_array_equal(interpret([simple])[0], expected)
    if length > 1:
        assert "select" in show([simple]) and "slice" not in show([simple])


@pytest.mark.parametrize("step", [2, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("first", [0, 3, 4, 11])
def test_other_strides_are_no_diagonals(first: int, step: int) -> None:
    """Of six columns, a diagonal has steps of seven, and does not run over the last column."""
    expected = np.zeros(24)
    length = expected[first::step].size
    expected[first::step] = np.arange(1, length + 1)
    flat = unslice(placeholder((length,), FLOAT, np.arange(1.0, length + 1)), (24,), [(first, length, step)])
    for shape in [(4, 6), (24,), (2, 12), (2, 2, 6)]:
        (simple,) = with_diagonals(simplify([reshape(flat, shape)]))
        np.testing.assert_array_equal(interpret([simple])[0], expected.reshape(shape))
