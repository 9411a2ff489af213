"""Fusion: which kernels a graph becomes, and that awkward graphs become right ones."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable

import numpy as np
import pytest

from nbgrad.compiler.emitters.loop_ir import emit
from nbgrad.compiler.fuse import Special, fuse
from nbgrad.compiler.loops import Loop
from nbgrad.graph.builders import cast, concatenate, gather, iota, matmul, pad, reduce, reshape, slice_axes, transpose
from nbgrad.graph.formulas import unslice
from nbgrad.graph.ir import Node, broadcast, elementwise, literal, placeholder
from nbgrad.graph.simplify import simplify
from nbgrad.runtime.evaluate import compute

FLOAT = np.dtype(float)


def array(*shape: int, dtype: str = "float64") -> Node:
    """A placeholder that holds 1, 2, 3, ..."""
    return placeholder(shape, np.dtype(dtype), np.arange(1.0, 1 + np.prod(shape)).reshape(shape).astype(dtype))


def value(node: Node) -> np.ndarray:
    """The example value of a placeholder."""
    assert node.value is not None
    return node.value


def kernels(*outputs: Node) -> list[Loop | Special]:
    """The kernels of a graph."""
    return fuse(simplify(outputs)).steps


def only_loop(*outputs: Node) -> Loop:
    """The one loop that a graph becomes."""
    (step,) = kernels(*outputs)
    assert isinstance(step, Loop)
    return step


# ----- How many kernels -----


def test_a_chain_and_its_sum_are_one_kernel_without_intermediates() -> None:
    x, y = array(1000), array(1000)
    loop = only_loop(reduce("sum", elementwise("log", elementwise("exp", x * y) + elementwise("sin", x)), (0,)))
    assert list(loop.stores) == []
    assert len(loop.reductions) == 1
    assert {node.name for node in loop.buffers} == {"input", "sum"}


def test_several_outputs_of_one_domain_are_one_kernel() -> None:
    x = array(50)
    loop = only_loop(elementwise("sin", x), elementwise("cos", x), reduce("sum", x * x, (0,)))
    assert (len(loop.stores), len(loop.reductions)) == (2, 1)


def test_movement_is_never_a_kernel_of_its_own() -> None:
    x = array(8, 6)
    moved = slice_axes(pad(transpose(x, (1, 0)), [(1, 0), (0, 2)]), [(6, 7, -1), (0, 5, 2)])
    only_loop(elementwise("exp", moved))


def test_a_stencil_and_a_sum_of_padded_arrays_are_one_kernel_each() -> None:
    u = array(100)
    left, middle, right = (slice_axes(u, [(start, 98, 1)]) for start in (0, 1, 2))
    only_loop(left - 2.0 * middle + right)
    g = array(98)
    only_loop(pad(g, [(0, 2)]) - 2.0 * pad(g, [(1, 1)]) + pad(g, [(2, 0)]))


@pytest.mark.parametrize(
    ("shape", "parts"),
    [
        ((200,), [((1, 100, 2),)]),
        ((200,), [((0, 100, 2),), ((199, 100, -2),)]),
        ((201,), [((0, 100, 2),), ((1, 100, 2),), ((2, 100, 2),)]),
        ((20, 40), [((0, 10, 2), (1, 20, 2)), ((1, 10, 2), (0, 20, 2)), ((1, 10, 2), (1, 20, 2))]),
        ((300,), [((2, 90, 3),), ((31, 90, 3),)]),
    ],
)
def test_cotangents_of_strided_slices_are_loops_over_long_axes(
    shape: tuple[int, ...], parts: list[tuple[tuple[int, int, int], ...]]
) -> None:
    values = [array(*[length for _, length, _ in ranges]) for ranges in parts]
    expected = np.zeros(shape)
    for v, ranges in zip(values, parts, strict=True):
        expected[tuple([slice(a, None if a + n * s < 0 else a + n * s, s) for a, n, s in ranges])] += value(v)
    cotangent = functools.reduce(operator.add, [unslice(v, shape, r) for v, r in zip(values, parts, strict=True)])
    np.testing.assert_array_equal(compute([cotangent])[0], expected)
    assert all(step.shape[-1] > 3 for step in kernels(cotangent) if isinstance(step, Loop))


def test_a_pairwise_intermediate_is_not_stored() -> None:
    x = array(40)
    row, column = reshape(x, (1, 40)), reshape(x, (40, 1))
    loop = only_loop(reduce("sum", elementwise("exp", -elementwise("absolute", column - row)), (1,)))
    assert max(node.size for node in loop.buffers) == 40


def test_equal_kernels_of_other_sizes_have_one_identity() -> None:
    first, second = (only_loop(reduce("sum", elementwise("exp", array(n)) * array(n), (0,))) for n in (10, 999))
    assert first.identity == second.identity
    assert emit(first) == emit(second)


def ends_of(x: Node) -> Node:
    """An array but for its first two elements, less all but its last two."""
    n = x.shape[0] - 2
    return slice_axes(x, [(2, n, 1)]) - slice_axes(x, [(0, n, 1)])


def times_sum(x: Node, of: Node) -> Node:
    """An array times the sum of another."""
    return x * broadcast(reduce("sum", of, (0,)), x.shape)


REASONS: dict[str, tuple[Callable[[Node], Node], str]] = {
    "a sum": (lambda x: times_sum(x, x), "its loop ends before it is known"),
    "an operand of a product of matrices": (
        lambda x: matmul(reshape(elementwise("exp", x), (1, 5, 20)), reshape(x, (1, 20, 5))),
        "a kernel that is no loop reads it",
    ),
    "exponentials, moved": (
        lambda x: ends_of(elementwise("exp", x)),
        "it is read at other points than it is computed at",
    ),
    "exponentials in two loops": (
        lambda x: times_sum(elementwise("exp", x), elementwise("exp", x)),
        "several kernels read it, and it is too much to compute again",
    ),
    "sums in two loops": (
        lambda x: times_sum(x + 1.0, elementwise("exp", x + 1.0)),
        "not stored: computed again in 2 kernels, from an array that they read",
    ),
    "negatives, moved": (
        lambda x: ends_of(-x),
        "not stored: computed again in a kernel, at each point it is read from, from an array that they read",
    ),
}


@pytest.mark.parametrize("name", REASONS)
def test_why_an_array_is_stored_or_not(name: str) -> None:
    build, reason = REASONS[name]
    assert reason in fuse(simplify([build(array(100))])).reasons.values()


# ----- Graphs that were once compiled wrongly -----


def test_two_gathers_from_one_array() -> None:
    x, i, j = array(5), iota(5), elementwise("remainder", iota(5) * 3, 5)
    (got,) = compute([gather(x, i) + gather(x, j)])
    np.testing.assert_array_equal(got, value(x) + value(x)[np.arange(5) * 3 % 5])


@pytest.mark.parametrize("m", [0, 1, 3])
def test_a_matrix_product_over_nothing_is_zero(m: int) -> None:
    a, b = array(2, m, 0), array(2, 0, 4)
    (got,) = compute([matmul(a, b)])
    np.testing.assert_array_equal(got, np.zeros((2, m, 4)))


def test_float64_rounds_to_float16_once() -> None:
    halves = np.arange(65536, dtype=np.uint16).view(np.float16)
    exact = np.sort(halves[np.isfinite(halves)].astype(float))
    middle = (exact[:-1] + exact[1:]) / 2
    values = np.concatenate([exact, middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf)])
    values = np.concatenate([values, [np.inf, -np.inf, np.nan, 1e300, 65519.99999, 65520.0, 5e-324, -5e-324]])
    (got,) = compute([cast(placeholder(values.shape, FLOAT, values), np.dtype(np.float16))])
    with np.errstate(over="ignore"):
        want = values.astype(np.float16)
    np.testing.assert_array_equal(got.view(np.uint16), want.view(np.uint16))


def test_a_concatenation_of_many_pieces() -> None:
    x = array(2, 3)
    pieces = [x, x * 2.0, slice_axes(x, [(1, 1, 1), (0, 3, 1)]), x - 1.0, array(1, 3), transpose(array(3, 2), (1, 0))]
    (got,) = compute([concatenate(pieces, 0)])
    a = value(x)
    want = [a, a * 2, a[1:2], a - 1, value(pieces[4]), np.arange(1.0, 7).reshape(3, 2).T]
    np.testing.assert_array_equal(got, np.concatenate(want))


@pytest.mark.parametrize("number", [3.7, -1.0, np.nan, np.inf, -0.0])
def test_literals_in_padding(number: float) -> None:
    padded = pad(elementwise("add", array(3) * 0.0, literal(number, FLOAT)), [(1, 1)])
    (got,) = compute([padded])
    np.testing.assert_array_equal(got, np.pad(np.full(3, 0.0 + number), 1))


def test_one_value_as_two_outputs() -> None:
    x = array(4)
    y = x + 1.0
    for got in compute([y, y, x, x]):
        assert got.flags.owndata
    first, second, third, _ = compute([y, y, x, x])
    first += 10
    np.testing.assert_array_equal(second, value(x) + 1)
    np.testing.assert_array_equal(third, [1, 2, 3, 4])


def test_a_number_beside_what_it_is_made_of() -> None:
    """Of a leaf, a sum and an exponential of one number."""
    x, y = array(6), array()
    total, exponential = reduce("sum", x, (0,)), elementwise("exp", y)
    (got,) = compute([elementwise("divide", x, broadcast(total, (6,))) + broadcast(exponential, (6,))])
    np.testing.assert_allclose(got, value(x) / 21 + np.e, rtol=1e-15)
