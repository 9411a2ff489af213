"""Python loops with a gradient in each turn, of a loop or of many like terms: values are those of the recording without
loops, gradients those of differences."""

from __future__ import annotations

import numpy as np
import pytest

import nbgrad as nb

pytestmark = pytest.mark.unoptimized


@pytest.mark.parametrize(("inner", "turns"), [(40, 60), (35, 100)])
def test_a_gradient_of_a_loop_in_each_turn(inner, turns):
    def energy(z):
        s = 0.0
        for _ in range(inner):
            s = s + np.sin(z[0] * s) + z[1] * 0.1 * np.cos(s * z[2])
        return s

    def descended(z):
        for _ in range(turns):
            z = z - 0.001 * nb.grad(energy)(z)
        return np.sum(z**2)

    # The last one of several loops of the same text, whose derivatives are known.
    first, found = [nb.jit(nb.value_and_grad(descended))(np.array([0.3, 0.5, 0.7])) for _ in range(2)]
    np.testing.assert_array_equal(first[1], found[1])
    start, step = np.array([0.3, 0.5, 0.7]), 1e-6
    numeric = [(descended(start + e) - descended(start - e)) / (2 * step) for e in step * np.eye(3)]
    assert found[0] == pytest.approx(descended(start), rel=1e-12)
    np.testing.assert_allclose(found[1], numeric, rtol=1e-7)


def test_a_gradient_of_many_like_terms_in_each_turn():
    c = np.linspace(0.4, 1.0, 6)

    def basis(t, i, degree):
        if degree == 0:
            return np.sin(t * c[i])
        return (t - c[i]) * basis(t, i, degree - 1) * 0.3 + (c[i + degree] - t) * basis(t, i + 1, degree - 1) * 0.4

    def moved(q, turns):
        for _ in range(turns):
            now = q
            q = q + 0.01 * nb.grad(lambda z, q=now: sum(basis(z[j], 0, 4) * basis(q[j], 0, 4) for j in range(4)))(q)
        return np.sum(q**2)

    q = np.linspace(0.3, 1.0, 6)
    with nb.config.rolled(False):
        expected = nb.grad(moved)(q, 12)
    np.testing.assert_allclose(nb.grad(moved)(q, 12), expected, rtol=1e-12)
    np.testing.assert_allclose(nb.jit(nb.grad(lambda q: moved(q, 12)))(q), expected, rtol=1e-12)
