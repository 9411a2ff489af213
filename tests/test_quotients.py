"""Derivatives that are quotients: one division, correctly rounded, and no overflow on the way."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.graph.differentiate import vjp
from nbgrad.graph.ir import placeholder, topological
from nbgrad.graph.simplify import simplify

POINTS = [(0.1, 0.3), (-7.0, 3.0), (1e-3, 1e5), (2.5, -0.7), (1e100, 1e-50)]


@pytest.mark.parametrize(("x", "y"), POINTS)
def test_a_quotient(x: float, y: float) -> None:
    """By its first operand 1 / y, correctly rounded; by its second -x / y**2, within three roundings."""
    by_x, by_y = nb.grad(lambda x, y: x / y, (0, 1))(x, y)
    assert by_x == float(1 / Fraction(y))
    exact = float(-Fraction(x) / Fraction(y) ** 2)
    np.testing.assert_allclose(by_y, exact, rtol=3.4e-16)


SCALED: dict[str, tuple[float, Callable[[Any], Any], float, float]] = {
    # A small factor times a huge slope: the slope alone would be infinite.
    "x / y by x": (1e-300, lambda x: x / 1e-310, 1.0, 1e-300 / 1e-310),
    "log x": (1e-300, lambda x: np.log(x), 1e-310, 1e-300 / 1e-310),
    "sqrt x": (1e-300, lambda x: np.sqrt(x), 1e-300, 0.5 * 1e-150),
    "log1p x": (1e-300, lambda x: np.log1p(x), -0.5, 2e-300),
    "log2 x": (1e-300, lambda x: np.log2(x), 0.25, 4e-300 / np.log(2.0)),
    "arctan x": (3.0, lambda x: np.arctan(x), 3.0, 0.3),
    "arctanh x": (3.0, lambda x: np.arctanh(x), 0.5, 4.0),
    "arcsin x": (4.0, lambda x: np.arcsin(x), 0.6, 5.0),
    "arccos x": (4.0, lambda x: np.arccos(x), 0.6, -5.0),
    "arcsinh x": (5.0, lambda x: np.arcsinh(x), 0.75, 4.0),
    "arccosh x": (3.0, lambda x: np.arccosh(x), 1.25, 4.0),
    "cbrt x": (3.0, lambda x: np.cbrt(x), 8.0, 0.25),
}


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("forward", [False, True])
def test_the_factor_comes_before_the_division(name: str, forward: bool) -> None:
    factor, function, x, want = SCALED[name]
    got = nb.jvp(function, x, factor)[1] if forward else nb.grad(lambda x: factor * function(x))(x)
    np.testing.assert_allclose(got, want, rtol=1e-14 if want > 1e-290 or want < 0 else 1e-11)


def test_one_division_for_both_operands() -> None:
    x, y = placeholder((5,), np.dtype(float)), placeholder((5,), np.dtype(float))
    z = x / y
    found = vjp([z], [placeholder((5,), np.dtype(float))], [x, y])
    order = topological(simplify([z, *[g for g in found if g is not None]]))
    assert sum(node.name == "divide" for node in order) == 2  # the other one is x / y itself


def test_a_repeated_divisor_is_inverted_before_it_is_repeated() -> None:
    """One division a row, not one an element; the values are those of 1 / y to two roundings."""
    y = np.array([[3.0], [7.0], [-0.1]])

    def f(x: Any, y: Any) -> Any:
        return np.sum(x / y)

    x = np.ones((3, 4))
    by_x, by_y = nb.grad(f, (0, 1))(x, y)
    np.testing.assert_allclose(by_x, np.broadcast_to(1.0 / y, (3, 4)), rtol=3e-16)
    np.testing.assert_allclose(by_y, -4.0 / y**2, rtol=1e-15)


def test_quotients_in_branches_that_were_not_taken() -> None:
    def f(x: Any, y: Any) -> Any:
        return np.sum(np.where(y != 0.0, x / y, 0.0))

    by_x, by_y = nb.grad(f, (0, 1))(np.array([1.0, 2.0]), np.array([0.0, 4.0]))
    np.testing.assert_array_equal(by_x, [0.0, 0.25])
    np.testing.assert_array_equal(by_y, [0.0, -0.125])
    t = np.ones(2)
    tangent = nb.jvp(f, (np.array([1.0, 2.0]), np.array([0.0, 4.0])), (t, t))[1]
    assert tangent == 0.125


def test_second_derivatives_of_quotients() -> None:
    hessian = nb.hessian(lambda v: v[0] / v[1])(np.array([3.0, 2.0]))
    np.testing.assert_allclose(hessian, [[0.0, -0.25], [-0.25, 0.75]], rtol=1e-15)
    for function, x, want in ((np.log, 4.0, -1 / 16), (np.sqrt, 4.0, -1 / 32), (np.arctan, 1.0, -0.5)):
        np.testing.assert_allclose(nb.grad(nb.grad(function))(x), want, rtol=4e-16)
