"""Cotangents of slices: put together instead of padded and added, with the same values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.graph.cotangents.slice_cotangents import assembled, box_of
from nbgrad.graph.differentiate import vjp
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import Node, placeholder, topological
from nbgrad.graph.simplify import simplify
from nbgrad.graph.trace import recording
from nbgrad.record.tensor import Tensor

pytestmark = pytest.mark.unoptimized(but=16)

X = np.arange(1.0, 13.0)
A = X.reshape(3, 4)


def steps(y: np.ndarray) -> np.ndarray:
    """The transpose of np.diff."""
    return np.concatenate([[-y[0]], y[:-1] - y[1:], [y[-1]]])


ONES = np.ones(12)
GRADIENTS: dict[str, tuple[Callable[[Any], Any], np.ndarray, np.ndarray]] = {
    # Linear functions: the gradient is the transpose, written down.
    "every element": (lambda x: sum(float(k) * x[k] for k in range(12)), X, np.arange(12.0)),
    "every other element": (lambda x: sum(float(k) * x[k] for k in range(0, 12, 2)), X, np.arange(12.0) * ([1, 0] * 6)),
    "the same element twice": (lambda x: 2.0 * x[3] + 5.0 * x[3], X, 7.0 * np.eye(12)[3]),
    "negative positions": (lambda x: x[-1] + 2.0 * x[-12], X, np.eye(12)[11] + 2.0 * np.eye(12)[0]),
    "neighbours": (lambda x: np.sum(X[1:] * (x[1:] - x[:-1])), X, steps(X[1:])),
    "a circle": (lambda x: np.sum(X * np.roll(x, 5)), X, np.roll(X, -5)),
    "two circles": (
        lambda x: np.sum(X * (np.roll(x, 1) - 2.0 * np.roll(x, -1))),
        X,
        np.roll(X, -1) - 2 * np.roll(X, 1),
    ),
    "thirds": (
        lambda x: np.sum(x[:4] * 2.0) + np.sum(x[4:8] * 3.0) + np.sum(x[8:] * 4.0),
        X,
        np.repeat([2.0, 3, 4], 4),
    ),
    "reversed halves": (lambda x: np.sum(X[:6] * x[5::-1]) + np.sum(x[6:]), X, np.append(X[5::-1], ONES[6:])),
    "odd and even": (lambda x: np.sum(x[::2] * 3.0) - np.sum(x[1::2]), X, np.array([3.0, -1.0] * 6)),
    "overlapping windows": (
        lambda x: sum(np.sum(x[k : k + 4]) for k in range(9)),
        X,
        np.array([1.0, 2, 3, 4, 4, 4, 4, 4, 4, 3, 2, 1]),
    ),
    "nothing": (lambda x: np.sum(x[3:3]) + x[0], X, np.eye(12)[0]),
    "rows": (lambda a: np.sum(a[0]) + 2.0 * np.sum(a[1]) + 3.0 * np.sum(a[2]), A, np.repeat([[1.0], [2], [3]], 4, 1)),
    "columns": (lambda a: sum(float(k) * np.sum(a[:, k]) for k in range(4)), A, np.tile(np.arange(4.0), (3, 1))),
    "elements of a matrix": (
        lambda a: sum(float(4 * i + j) * a[i, j] for i in range(3) for j in range(4)),
        A,
        np.arange(12.0).reshape(3, 4),
    ),
    "a corner and a row": (
        lambda a: np.sum(a[:2, :2]) + np.sum(a[1]),
        A,
        np.array([[1.0, 1, 0, 0], [2, 2, 1, 1], [0] * 4]),
    ),
    "inner part": (
        lambda a: np.sum(a[1:-1, 1:-1] * 4.0 - a[2:, 1:-1] - a[:-2, 1:-1] - a[1:-1, 2:] - a[1:-1, :-2]),
        A,
        np.array([[0.0, -1, -1, 0], [-1, 3, 3, -1], [0, -1, -1, 0]]),
    ),
}


@pytest.mark.parametrize("name", GRADIENTS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16])
def test_gradients_of_slices(name: str, dtype: Any) -> None:
    function, x, want = GRADIENTS[name]
    got = nb.grad(function)(x.astype(dtype))
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, want.astype(dtype), err_msg=name)


@pytest.mark.parametrize("name", GRADIENTS)
def test_second_derivatives_through_slices(name: str) -> None:
    """The gradient of f(x * x) is 2 x f', so that of its product with v is 2 v f' for a linear f."""
    function, x, want = GRADIENTS[name]
    inner = nb.grad(lambda x: function(x * x))
    v = np.cos(x)
    got = nb.grad(lambda x: np.sum(v * inner(x)))(x)
    np.testing.assert_allclose(got, 2.0 * v * want, rtol=1e-14, atol=1e-14, err_msg=name)


def recorded(function: Callable[[Any], Any], n: int) -> tuple[Node, list[Node]]:
    x = placeholder((n,), np.dtype(float), np.arange(1.0, n + 1))
    with recording([x]):
        output: Any = function(Tensor._of(x))
    (gradient,) = vjp([output._node], [output._node * 0.0 + 1.0], [x])
    assert gradient is not None
    return gradient, simplify([gradient])


def kinds(nodes: list[Node]) -> Counter[str]:
    return Counter(node.name for node in topological(nodes))


def test_a_loop_over_elements_is_linear_in_their_number() -> None:
    """Neither a padded array nor a sum of arrays for each element."""
    for n in (10, 100):
        _, simple = recorded(lambda x, n=n: sum(x[k] * x[k] for k in range(n)), n)
        found = kinds(simple)
        assert found["pad"] == 0, found
        assert found["concatenate"] == 1, found
        assert sum(node.size for node in topological(simple) if node.ndim and node.name != "input") < 20 * n, found


def test_a_part_read_often_is_added_while_it_is_small() -> None:
    _, simple = recorded(lambda x: sum(np.sum(np.sin(x[:2] * float(k))) for k in range(1, 30)), 1000)
    large = [node for node in topological(simple) if node.size == 1000 and node.name != "input"]
    assert len(large) == 1, kinds(simple)


def test_masks_survive_slices() -> None:
    """The slope of a branch that was not taken is infinite at 0, but not taken."""

    def f(x: Any) -> Any:
        y = np.where(x > 0.0, np.sqrt(x), 0.0)
        return np.sum(y[:2] * 2.0) + np.sum(y[2:])

    np.testing.assert_array_equal(nb.grad(f)(np.array([0.0, 4.0, 0.0, 1.0])), [0.0, 0.5, 0.0, 0.5])


def test_jacobians_and_batches_of_slices() -> None:
    def f(x: Any) -> Any:
        return np.stack([x[0] * x[1], x[1] * x[2], x[2] * x[0]])

    x = np.array([2.0, 3.0, 5.0])
    want = np.array([[3.0, 2.0, 0.0], [0.0, 5.0, 3.0], [5.0, 0.0, 2.0]])
    np.testing.assert_array_equal(nb.jacrev(f)(x), want)
    np.testing.assert_array_equal(nb.jacfwd(f)(x), want)
    want = np.array([[0.0, 1, 1], [1, 0, 1], [1, 1, 0]])
    np.testing.assert_array_equal(nb.hessian(lambda x: np.sum(f(x)))(x), want)
    many = nb.vmap(nb.grad(lambda x: x[0] * x[1] * x[2]))(np.stack([x, 2.0 * x]))
    np.testing.assert_array_equal(many, [[15.0, 10.0, 6.0], [60.0, 40.0, 24.0]])


@pytest.mark.parametrize("seed", range(20))
def test_random_boxes(seed: int) -> None:
    """Against adding each part to an array of zeros."""
    random = np.random.default_rng(seed)
    shape = tuple(random.integers(1, 6, random.integers(1, 4)).tolist())
    want = np.zeros(shape)
    parts: dict[Any, Node] = {}
    for _ in range(random.integers(1, 12)):
        box = tuple([tuple(sorted(random.choice(n + 1, 2, replace=False).tolist())) for n in shape])
        value = random.integers(-9, 9, [end - start for start, end in box]).astype(float)
        if box in parts:
            continue
        parts[box] = placeholder(value.shape, value.dtype, value)
        want[tuple([slice(*span) for span in box])] += value
    total = assembled(parts, shape, lambda a, b: a + b)
    assert total.shape == shape
    np.testing.assert_array_equal(interpret([total])[0], want)


def test_boxes() -> None:
    assert box_of([(2, 3, 1), (4, 1, -1)]) == ((2, 5), (4, 5))
    assert box_of([(2, 3, 2)]) is None
    assert box_of([(2, 3, -1)]) is None
    assert box_of([(2, 0, 1)]) is None
