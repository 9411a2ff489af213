"""Programs whose arguments are not in C order: the values and the strides of NumPy, without copies where it makes none.

The graph in memory order is interpreted, by NumPy, and compared with the graph in C order; compiled functions are
called with arrays in several orders, and with arrays for their results.
"""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiler.fuse import fuse
from nbgrad.compiler.loops import Loop
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import Node, placeholder
from nbgrad.graph.simplify import simplify
from nbgrad.record.tensor import Tensor
from nbgrad.runtime.axis_orders import in_memory_order

pytestmark = pytest.mark.unoptimized(but=16)

rng = np.random.default_rng(5)
X, Y = rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 4, 5))
V = rng.normal(size=5)
MAPS = {
    "map": lambda x, y, v: np.exp(x) * y,
    "row": lambda x, y, v: x + v,
    "column": lambda x, y, v: x * v[:4, None],
    "compared": lambda x, y, v: np.where(x < y, x, v),
    "turned": lambda x, y, v: x.transpose(2, 0, 1) - y.transpose(2, 0, 1),
    "turned once": lambda x, y, v: x.transpose(2, 0, 1) - y.reshape(5, 3, 4),
    "slice": lambda x, y, v: x[1:, ::-1, ::2] + y[:-1, :, :3],
    "element": lambda x, y, v: x[1] * y[2, :, 3:4],
    "joined": lambda x, y, v: np.concatenate([x, y], axis=1),
    "stacked": lambda x, y, v: np.stack([x, y], axis=1),
    "padded": lambda x, y, v: np.pad(x, ((1, 0), (0, 2), (3, 1))) * 2,
    "flat": lambda x, y, v: x.reshape(-1) * y.ravel(),
    "merged": lambda x, y, v: x.reshape(12, 5) + y.reshape(12, 5),
    "split": lambda x, y, v: x.reshape(3, 2, 2, 5) + 1,
    "new axes": lambda x, y, v: x[:, None, :, None, :] * 2,
    "sum": lambda x, y, v: np.sum(x, axis=1),
    "sums": lambda x, y, v: np.sum(x * y, axis=(0, 2)),
    "largest": lambda x, y, v: np.max(x, axis=-1) + np.min(y, axis=-1),
    "product": lambda x, y, v: np.prod(x, axis=(1, 2)),
    "normal": lambda x, y, v: (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True),
    "matrices": lambda x, y, v: x @ y.transpose(0, 2, 1),
    "matrix and vector": lambda x, y, v: x @ v,
    "einsum": lambda x, y, v: np.einsum("ijk,ilk->jl", x, y),
    "sorted": lambda x, y, v: np.sort(x, axis=0),
    "running": lambda x, y, v: np.cumsum(x, axis=1),
    "gathered": lambda x, y, v: np.take(x, [2, 0], axis=2),
    "diagonal": lambda x, y, v: np.diagonal(x, axis1=0, axis2=2),
    "diagonals": lambda x, y, v: np.diagonal(x, -1, 1, 2) * np.diagonal(y, 1, 1, 2)[:, :3],
    "traces": lambda x, y, v: np.trace(x[0]) + np.trace(y[:, 1], 1) + np.trace(x[:, :, 2], -1),
    "flat steps": lambda x, y, v: x.reshape(3, 20)[:, 3::4] + y[0].ravel()[1::9][:1] + y[0].ravel()[16::-4],
    "repeated": lambda x, y, v: np.repeat(x, 2, axis=1) + np.tile(y, (1, 2, 1)),
}
ORDERS = list(permutations(range(3)))


def recorded(function: Any) -> tuple[Node, list[Node]]:
    leaves = [placeholder(a.shape, a.dtype) for a in (X, Y, V)]
    (output,) = simplify([function(*[Tensor._of(leaf) for leaf in leaves])._node])
    return output, leaves


@pytest.mark.parametrize("name", MAPS)
def test_graphs_in_memory_order(name: str) -> None:
    """All orders of both arrays, and for each another order of the result."""
    output, leaves = recorded(MAPS[name])
    expected = MAPS[name](X, Y, V)
    wanted = list(permutations(range(output.ndim)))
    for number, (one, other) in enumerate(product(ORDERS, ORDERS)):
        order = wanted[number % len(wanted)]
        (made,), arrays = in_memory_order([output], [order], leaves, [one, other, None])
        assert [a.shape for a in arrays] == [X.transpose(one).shape, Y.transpose(other).shape, V.shape]
        values = dict(zip(arrays, (X.transpose(one), Y.transpose(other), V), strict=True))
        (found,) = interpret(simplify([made]), values)
        np.testing.assert_allclose(found, expected.transpose(order), rtol=1e-13, atol=1e-13)


WITHOUT_MOVEMENT = ["map", "row", "column", "compared", "turned", "slice", "stacked", "sum", "sums", "new axes"]


@pytest.mark.parametrize("name", WITHOUT_MOVEMENT)
def test_nothing_is_turned_where_all_lie_alike(name: str) -> None:
    """Each kernel goes through all arrays along their memory, or in steps of the three coordinates of a point."""
    output, leaves = recorded(MAPS[name])
    result = (0, 2, 1) if name == "turned" else tuple(range(output.ndim))[::-1]
    (made,), _ = in_memory_order([output], [result], leaves, [(2, 1, 0), (2, 1, 0), None])
    for loop in fuse(simplify([made])).steps:
        assert isinstance(loop, Loop)
        assert not loop.turned
        assert all(abs(a.view.strides[-1]) <= 3 for a in loop.accesses if a.buffer >= 0 and a.view.strides)


LAYOUTS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "moved": lambda a: np.moveaxis(np.ascontiguousarray(np.moveaxis(a, 0, -1)), -1, 0),
    "every other of F": lambda a: np.repeat(a, 2, axis=0).copy("F")[::2],
    "repeated": lambda a: np.broadcast_to(a[:1], a.shape),
}


def steps(array: np.ndarray) -> list[int]:
    """The strides of an array along axes of more than one element."""
    return [s for s, n in zip(array.strides, array.shape, strict=True) if n > 1]


@pytest.mark.parametrize("name", MAPS)
def test_compiled_functions(name: str) -> None:
    """Values and strides, by Python and by native code."""
    function = MAPS[name]
    compiled = nb.jit(lambda x, y, v: function(x, y, v))
    for layout in ("C", "F", "moved"):
        x, y = LAYOUTS[layout](X), LAYOUTS[layout](Y)
        expected = function(x, y, V)
        found = compiled(x, y, V)
        for _ in range(2):
            np.testing.assert_array_equal(compiled(x, y, V), found)
        np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)
        if expected.base is None and name not in ("stacked", "repeated", "gathered", "diagonals"):
            assert steps(found) == steps(expected)
        out = np.empty_like(expected)
        for target in (out, np.empty(out.shape, out.dtype), np.empty((*out.shape, 2), out.dtype)[..., 0]):
            assert compiled(x, y, V, out=target) is target
            np.testing.assert_array_equal(target, found)


def test_one_function_for_all_layouts() -> None:
    compiled = nb.jit(lambda x, y: (x * y, np.sum(x, axis=0), x @ y.transpose(0, 2, 1)))
    for _ in range(2):
        for one, other in product(LAYOUTS.values(), repeat=2):
            x, y = one(X), other(Y)
            for found, expected in zip(compiled(x, y), compiled.fn(x, y), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-13)
                if 0 not in (*x.strides, *y.strides):
                    assert found.strides == expected.strides


@pytest.mark.parametrize("layout", LAYOUTS)
def test_gradients_lie_as_their_arguments(layout: str) -> None:
    x = LAYOUTS[layout](X)
    gradient = nb.jit(nb.grad(lambda x, y: np.sum(np.sin(x) * y)))(x, Y)
    np.testing.assert_allclose(gradient, np.cos(x) * Y, rtol=1e-13)
    if layout != "repeated":
        assert gradient.strides == x.copy("K").strides


def test_donated_arrays_keep_their_order() -> None:
    """A result takes the memory of an argument only if it lies as that does."""
    square = rng.normal(size=(6, 6))
    half, turned = nb.jit(lambda w: w * 0.5, donate=0), nb.jit(lambda w: w.T * 0.5, donate=0)
    for make in (np.ascontiguousarray, np.asfortranarray):
        for _ in range(2):
            w = make(square.copy())
            assert half(w) is w
            np.testing.assert_array_equal(w, square * 0.5)
            np.testing.assert_array_equal(turned(make(square.copy())), square.T * 0.5)


@pytest.mark.parametrize("shape", [(0, 3), (1, 4), (4, 1), (1, 1), (2, 0, 3), (3, 1, 2)], ids=str)
def test_axes_of_one_element_or_none(shape: tuple[int, ...]) -> None:
    x = np.asfortranarray(rng.normal(size=shape))
    compiled = nb.jit(lambda x: (x * 2, x.sum(0), x.T + 1))
    for given in (x, x, np.ascontiguousarray(x), x[::-1], x[..., ::-1]):
        for found, expected in zip(compiled(given), compiled.fn(given), strict=True):
            np.testing.assert_array_equal(found, expected)


def test_complex_numbers_in_fortran_order() -> None:
    z = np.asfortranarray(X[0] + 1j * Y[0])
    compiled = nb.jit(lambda z: (z * z, np.conj(z).T, np.abs(z), z @ z.T, np.sum(z, axis=0)))
    for _ in range(2):
        for found, expected in zip(compiled(z), compiled.fn(z), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-13)
            assert found.strides == expected.strides
