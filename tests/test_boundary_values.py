"""`scipy.integrate.solve_bvp` of recorded values, beside solutions that are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import nbgrad as nb
from nbgrad.errors import ArgumentError, TracedValueError

pytestmark = pytest.mark.unoptimized

MESH, PLACES = np.linspace(0.0, 1.0, 6), np.array([0.2, 0.55, 0.9])
solve_bvp: Any = scipy.integrate.solve_bvp


def oscillation(x: Any, **options: Any) -> Any:
    """y'' = -k**2 y from 0 to a height: height sin(k t) / sin(k)."""
    k, height = x
    return solve_bvp(
        lambda t, y: [y[1], -k * k * y[0]],
        lambda ya, yb: np.array([ya[0], yb[0] - height]),
        MESH,
        np.ones((2, MESH.size)),
        **{"tol": 1e-8, **options},
    )


def frequency(a: Any) -> Any:
    """The lowest p with y'' = -(p**2 + a) y, and y = 0 at both ends: p**2 = pi**2 - a."""

    def slope(t: Any, y: Any, p: Any) -> Any:
        return np.vstack((y[1], -(p[0] ** 2 + a) * y[0]))

    def ends(ya: Any, yb: Any, p: Any) -> Any:
        return np.array([ya[0], yb[0], ya[1] - 1.0])

    guess = np.stack([np.sin(np.pi * MESH) / np.pi, np.cos(np.pi * MESH)])
    return solve_bvp(slope, ends, MESH, guess, p=[3.0], tol=1e-7).p[0]


def test_a_solution_has_the_derivatives_of_its_formula() -> None:
    x = np.array([2.0, 0.7])
    k, height = x
    value = nb.differentiable_source(lambda x: oscillation(x).sol(PLACES)[0])
    slope = nb.differentiable_source(lambda x: oscillation(x).sol(PLACES, 1)[0])
    np.testing.assert_allclose(nb.vjp(value, x)[0], height * np.sin(k * PLACES) / np.sin(k), rtol=1e-8)
    wave, turned, whole, other = np.sin(k * PLACES), np.cos(k * PLACES), np.sin(k), np.cos(k)
    by_k = height * (PLACES * turned * whole - wave * other) / whole**2
    for jacobian in (nb.jacrev, nb.jacfwd):
        np.testing.assert_allclose(jacobian(value)(x), np.stack([by_k, wave / whole], axis=1), rtol=1e-7)
    np.testing.assert_allclose(nb.jacrev(slope)(x)[:, 1], k * turned / whole, rtol=1e-7)
    at_nodes = nb.differentiable_source(lambda x: np.sum(oscillation(x).y[1]) + oscillation(x).yp[0, -1])
    mesh = oscillation(x).x
    want = np.sum(k * np.cos(k * mesh)) / whole + k * other / whole
    np.testing.assert_allclose(nb.grad(at_nodes)(x)[1], want, rtol=1e-7)
    # height does not enter the second derivative by itself.
    twice = nb.hessian(lambda x: value(x)[1])(x)
    np.testing.assert_allclose(twice[1], [by_k[1] / height, 0.0], rtol=1e-6, atol=1e-8)


def test_a_parameter_that_is_found_has_a_derivative() -> None:
    ours, a = nb.differentiable_source(frequency), 1.3
    p = np.sqrt(np.pi**2 - a)
    assert nb.vjp(ours, a)[0] == pytest.approx(p, rel=1e-8)
    assert nb.grad(ours)(a) == pytest.approx(-0.5 / p, rel=1e-7)
    assert nb.grad(nb.grad(ours))(a) == pytest.approx(-0.25 / p**3, rel=1e-6)


def test_fields_are_scipys() -> None:
    seen: list[Any] = []

    def recorded(x: Any) -> Any:
        found = oscillation(x)
        seen.append((found.success, found.status, found.niter, found.p, found.x.shape, found.message))
        return found.y[0, 0]

    nb.grad(nb.differentiable_source(recorded))(np.array([2.0, 0.7]))
    found = oscillation(np.array([2.0, 0.7]))
    assert seen == [(True, 0, found.niter, None, found.x.shape, found.message)]


def test_errors() -> None:
    x = np.array([2.0, 0.7])
    value = nb.differentiable_source(lambda x: oscillation(x).sol(0.3)[0])
    for transformed in (nb.jit(value), lambda x: nb.vmap(value)(x[None])):
        with pytest.raises(TracedValueError, match="does not know how many points its mesh has"):
            transformed(x)
    with pytest.raises(RuntimeError, match="has not converged: The maximum number of mesh nodes"):
        nb.grad(nb.differentiable_source(lambda x: oscillation(x, max_nodes=6).sol(0.3)[0]))(x)
    with pytest.raises(ArgumentError, match="no singular term"):
        nb.grad(nb.differentiable_source(lambda x: oscillation(x, S=np.zeros((2, 2))).sol(0.3)[0]))(x)
