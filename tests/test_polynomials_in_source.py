"""NumPy's polynomials in functions that `differentiable_source` converts: modules, imported names, objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.polynomial import Chebyshev, Polynomial
from numpy.polynomial import polynomial as power_series
from numpy.polynomial.legendre import leggauss, legval

import nbgrad as nb

pytestmark = pytest.mark.unoptimized
X = np.array([0.3, 1.2, 0.5])
KNOWN = Polynomial([1.0, 2.0, 3.0], domain=[0.0, 2.0])


def of_imported_names(x: Any) -> Any:
    p = Polynomial([x[0], x[1], 1.0])
    q = p.deriv() * Polynomial([1.0, x[2]])
    nodes, weights = leggauss(4)
    found = q(0.3) + power_series.polyval(x[1], [1.0, x[0], x[2]]) + legval(0.2, x) + np.sum(weights * p(nodes * x[2]))
    return found + p.integ()(1.0) + power_series.polyfromroots([x[0], 2.0])[0] + isinstance(p, Polynomial)


def of_fits(x: Any) -> Any:
    line = np.linspace(0.0, 1.0, 9)
    return Chebyshev.fit(line, x[0] * line**2, 3)(x[1]) + Chebyshev.interpolate(lambda t: np.exp(x[0] * t), 6)(x[2])


def of_an_object(x: Any) -> Any:
    return KNOWN(x[0]) * x[1] + np.sum(KNOWN.deriv()(x)) + (KNOWN * x[2])(0.5)


@pytest.mark.parametrize("function", [of_imported_names, of_fits, of_an_object])
def test_series_have_the_values_and_derivatives_of_numpys(function: Any) -> None:
    ours = nb.differentiable_source(function)
    for each in (ours, nb.jit(ours)):
        np.testing.assert_allclose(each(X), function(X), rtol=1e-12)
    np.testing.assert_allclose(nb.vmap(ours)(np.stack([X, 1.1 * X]))[1], function(1.1 * X), rtol=1e-12)
    steps = 1e-6 * np.eye(3)
    want = [(function(X + step) - function(X - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(nb.grad(ours)(X), want, rtol=1e-7)
    nb.check_grads(ours, (X,), order=2)


POLYNOMIALS = (np.polynomial.Polynomial, np.polynomial.Chebyshev, np.polynomial.Legendre)


@pytest.mark.parametrize("kind", POLYNOMIALS, ids=lambda kind: kind.__name__)
def test_polynomials_are_divided_for_each_mapped_value(kind: Any) -> None:
    """NumPy asks whether the divisor is zero, to which many values have no one answer."""

    def parts(x: Any) -> Any:
        quotient, rest = divmod(kind([x[0], 1.0, x[1], 2.0]), kind([1.0, x[2]]))
        return np.concatenate([quotient.coef, rest.coef, (kind(x) // kind([2.0])).coef, (kind([x[0]]) % kind(x)).coef])

    rows = np.array([[0.3, 1.2, 0.5], [1.3, -0.2, 0.7]])
    ours, want = nb.differentiable_source(parts), np.stack([parts(row) for row in rows])
    np.testing.assert_allclose(nb.vmap(ours)(rows), want, rtol=1e-12)
    np.testing.assert_allclose(nb.jit(ours)(rows[1]), want[1], rtol=1e-12)
    nb.check_grads(ours, (rows[0],))
    with pytest.raises(ZeroDivisionError):
        nb.differentiable_source(lambda x: (kind(x) // kind([0.0])).coef)(rows[0])
