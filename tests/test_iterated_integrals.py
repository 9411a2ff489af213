"""`dblquad`, `tplquad` and `nquad` of functions of recorded values, beside SciPy and integrals that are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate

import nbgrad as nb
from nbgrad.errors import ArgumentError, ShapeError

from .agreement import check_derivative

pytestmark = pytest.mark.unoptimized

integrate: Any = scipy.integrate
P = np.array([0.7, 1.3, 0.4])
FINE = {"epsabs": 1e-12, "epsrel": 1e-12}

INTEGRALS: dict[str, Callable[[Any], Any]] = {
    "a rectangle": lambda p: integrate.dblquad(lambda y, x: np.exp(-p[0] * x * y), 0.0, 1.0, 0.0, 2.0, **FINE)[0],
    "recorded ends": lambda p: integrate.dblquad(
        lambda y, x: np.cos(p[0] * x + y), p[2], p[1], lambda x: -p[0] * x, lambda x: p[1] + x**2, **FINE
    )[0],
    "further arguments": lambda p: integrate.dblquad(
        lambda y, x, a, b: a * np.sin(b * x * y), 0.0, 1.0, 0.0, lambda x: x, args=(p[0], p[1]), **FINE
    )[0],
    "options of each": lambda p: integrate.nquad(
        lambda x, y: np.exp(-p[0] * x * y), [[0.0, p[1]], [0.0, 1.0]], opts=[lambda y: {"limit": 80}, {"epsabs": 1e-12}]
    )[0],
    "one range": lambda p: integrate.nquad(lambda x, a: np.exp(-a * x * p[1]), [[0.0, 2.0]], args=(p[0],), opts=FINE)[
        0
    ],
}


@pytest.mark.parametrize("name", INTEGRALS)
def test_integrals(name: str) -> None:
    """SciPy's values, and derivatives in both modes and of second order; compiled ones are the same."""
    plain = INTEGRALS[name]
    function = nb.differentiable_source(plain)
    np.testing.assert_allclose(nb.value_and_grad(function)(P)[0], plain(P), rtol=1e-12)
    check_derivative(lambda p: function(p) if isinstance(p, nb.Tensor) else plain(p), P, tolerance=2e-6)
    np.testing.assert_allclose(nb.jit(nb.grad(function))(P), nb.grad(function)(P), rtol=1e-9)


TRIPLE: dict[str, Callable[[Any], Any]] = {
    "a body": lambda p: integrate.tplquad(
        lambda z, y, x: p[0] * z + x * y, 0.0, p[2], 0.0, lambda x: 1.0 + x, 0.0, lambda x, y: x + y
    )[0],
    "three ranges": lambda p: integrate.nquad(
        lambda x, y, z: np.exp(-p[0] * x) * (y + z), [(0.0, 1.0), lambda z: (0.0, z), [p[2], p[1]]]
    )[0],
}


@pytest.mark.parametrize("name", TRIPLE)
def test_triple_integrals(name: str) -> None:
    """SciPy's values, and slopes along a line beside differences of those."""
    plain, line, step = TRIPLE[name], np.array([0.6, -0.3, 0.8]), 1e-4
    value, gradient = nb.value_and_grad(nb.differentiable_source(plain))(P)
    np.testing.assert_allclose(value, plain(P), rtol=1e-12)
    want = (plain(P + step * line) - plain(P - step * line)) / (2 * step)
    np.testing.assert_allclose(gradient @ line, want, rtol=1e-6)


def test_moments_of_exponentials() -> None:
    """The integral is 1 / (a b), as are its derivatives."""
    function = nb.differentiable_source(
        lambda p: integrate.dblquad(lambda y, x: np.exp(-p[0] * x - p[1] * y), 0.0, np.inf, 0.0, np.inf)[0]
    )
    a, b = P[:2]
    np.testing.assert_allclose(nb.grad(function)(P), [-1 / (a * a * b), -1 / (a * b * b), 0.0], rtol=1e-6)
    _, second = nb.jvp(nb.grad(function), (P,), (np.array([1.0, 0.0, 0.0]),))
    np.testing.assert_allclose(second, [2 / (a**3 * b), 1 / (a * b) ** 2, 0.0], rtol=1e-6)


def test_constants_are_integrated_by_scipy() -> None:
    """With all that SciPy has: an option that the recorded form refuses, and the estimate of the error."""
    function = nb.differentiable_source(
        lambda x: x * integrate.nquad(lambda a, b: a * b, [[0, 1], [0, 2]], opts={"points": [0.5]}, full_output=True)[0]
    )
    np.testing.assert_allclose(nb.grad(function)(3.0), 1.0, rtol=1e-12)


ERRORS: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "points": (
        lambda p: integrate.nquad(lambda x, y: p[0] * x, [[0, 1], [0, 1]], opts={"points": [0.5]}),
        ArgumentError,
        "points=; split",
    ),
    "a further output": (
        lambda p: integrate.nquad(lambda x: p[0] * x, [[0, 1]], full_output=True),
        ArgumentError,
        "full_output",
    ),
    "other options": (lambda p: integrate.nquad(lambda x: p[0] * x, [[0, 1]], opts=[{}, {}]), ShapeError, "1 and 2"),
    "no range": (lambda p: integrate.nquad(lambda: p[0], []), ShapeError, "0 and 0"),
    "vectors": (lambda p: integrate.dblquad(lambda y, x: p * x, 0.0, 1.0, 0.0, 1.0), ShapeError, r"shape \(\)"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name: str) -> None:
    function, kind, words = ERRORS[name]
    with pytest.raises(kind, match=words):
        nb.vjp(nb.differentiable_source(lambda p: function(p)[0]), P)
