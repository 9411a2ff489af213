"""Functions that record equal terms many times: their gradients cost a small multiple of their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.interpolate import BSpline

import nbgrad as nb
from nbgrad.graph.differentiate import vjp
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import broadcast, elementwise, literal, make, placeholder, topological
from nbgrad.graph.simplify import simplify
from nbgrad.record.tensor import Tensor
from nbgrad.transforms import shared_terms
from nbgrad.transforms.shared_terms import shared

pytestmark = pytest.mark.unoptimized

MATRIX = np.random.default_rng(3).normal(size=(5, 5))
COFACTORS = np.linalg.det(MATRIX) * np.linalg.inv(MATRIX).T
KNOTS = np.array([0.0, 0.4, 1.0, 1.3, 2.1, 2.5, 3.2, 4.0])


def determinant(a: Any) -> Any:
    """By cofactors, of minors that are put together anew."""
    if a.shape[0] == 1:
        return a[0, 0]
    total = 0.0
    for j in range(a.shape[0]):
        total = total + (-1) ** j * a[0, j] * determinant(np.concatenate([a[1:, :j], a[1:, j + 1 :]], axis=1))
    return total


def basis(i: int, k: int, x: Any) -> Any:
    """A B-spline's basis of degree k, by the recursion of Cox and de Boor."""
    if k == 0:
        return np.where((KNOTS[i] <= x) & (x < KNOTS[i + 1]), 1.0, 0.0)
    left = (x - KNOTS[i]) / (KNOTS[i + k] - KNOTS[i])
    right = (KNOTS[i + k + 1] - x) / (KNOTS[i + k + 1] - KNOTS[i + 1])
    return left * basis(i, k - 1, x) + right * basis(i + 1, k - 1, x)


def fibonacci(n: int, x: Any) -> Any:
    """Fibonacci's polynomials by their recursion."""
    return x * fibonacci(n - 1, x) + fibonacci(n - 2, x) if n > 1 else np.sin(x)


@pytest.mark.parametrize(
    "derivative",
    [
        nb.grad(determinant),
        nb.jit(nb.grad(determinant)),
        nb.jacrev(determinant),
        lambda a: nb.value_and_grad(determinant)(a)[1],
        lambda a: nb.vjp(determinant, a)[1](1.0)[0],
    ],
    ids=["grad", "jit", "jacrev", "value_and_grad", "vjp"],
)
def test_determinant_by_cofactors(derivative: Callable[[Any], Any]) -> None:
    np.testing.assert_allclose(derivative(MATRIX), COFACTORS, rtol=1e-12)


def test_second_derivatives_of_a_determinant() -> None:
    """Those of log(det) are -inv(A) x inv(A)."""
    a = MATRIX[:4, :4] @ MATRIX[:4, :4].T + np.eye(4)
    found = nb.hessian(lambda a: np.log(determinant(a)))(a)
    inverse = np.linalg.inv(a)
    np.testing.assert_allclose(found, -np.einsum("jk,li->ijkl", inverse, inverse), rtol=1e-9, atol=1e-12)


def test_splines_by_recursion() -> None:
    x = np.linspace(0.1, 3.9, 50)
    found = nb.jit(nb.grad(lambda x: np.sum(basis(1, 5, x) ** 2)))(x)
    known = BSpline.basis_element(KNOTS[1:], extrapolate=False)
    value, slope = np.nan_to_num(known(x)), np.nan_to_num(known.derivative()(x))
    np.testing.assert_allclose(found, 2 * value * slope, rtol=1e-10, atol=1e-13)


def test_nodes_of_a_gradient_are_a_small_multiple_of_those_of_the_value() -> None:
    """The cheap gradient principle: Griewank and Walther, Evaluating Derivatives, 2008, section 3.3."""
    x = placeholder(MATRIX.shape, MATRIX.dtype)
    outputs = [determinant(Tensor._of(x))._node]
    found = [g for g in vjp(shared(outputs, [x], ()), [literal(1.0, MATRIX.dtype)], [x]) if g is not None]
    assert len(topological(simplify(found))) < 5 * len(topological(simplify(outputs)))


def test_equal_operands_share_the_gradient() -> None:
    def f(x: Any) -> Any:
        terms = [np.sin(x) * np.exp(x) for _ in range(40)]
        return np.sum(np.maximum(terms[0], terms[1])) + np.sum(sum(terms))

    x = np.array([0.3, -1.2])
    np.testing.assert_allclose(nb.grad(f)(x), 41 * np.exp(x) * (np.sin(x) + np.cos(x)), rtol=1e-13)


def test_what_stops_gradients_stays_apart() -> None:
    def f(x: Any) -> Any:
        terms = [np.exp(x) for _ in range(60)]
        return np.sum(sum(terms) * nb.ops.stop_gradient(np.exp(x)))

    np.testing.assert_allclose(nb.grad(f)(np.array([0.5])), 60 * np.exp([1.0]), rtol=1e-13)


def sizes(outputs: list[Any], wrt: list[Any]) -> tuple[int, int]:
    """The numbers of nodes before and after."""
    return len(topological(outputs)), len(topological(shared(outputs, wrt, ())))


def test_terms_that_are_recorded_again_are_one() -> None:
    x = placeholder((4,), MATRIX.dtype)
    before, after = sizes([fibonacci(10, Tensor._of(x))._node], [x])
    assert before > 200 and after < 30
    inner = Tensor._of(x)
    pieces = [np.concatenate([inner * k, inner])[: k + 1] * 2.0 for k in range(1, 40)]
    slices = [sum(np.sum(piece) for piece in pieces)._node]
    assert shared(slices, [x], ()) is slices, "no fewer nodes come of it"
    chain = Tensor._of(x)
    for k in range(40):
        chain = np.sin(chain[1:])[: 3 - k % 2] if chain.shape[0] > 3 else np.concatenate([chain, chain * (k + 0.5)])
    one = [chain._node]
    assert shared(one, [x], ()) is one


def test_what_is_differentiated_by_is_no_other_alias_of_the_same_value() -> None:
    x = placeholder((2,), MATRIX.dtype)
    mine, other = make("alias", (x,)), make("alias", (x,))
    terms = [elementwise("sin", node) * elementwise("exp", node) for node in (mine, other) for _ in range(30)]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    outputs = list(shared([total], [mine], ()))
    assert outputs[0] is not total and {mine, other} <= {*topological(outputs)}
    (found,) = vjp(outputs, [broadcast(literal(1.0, MATRIX.dtype), (2,))], [mine])
    at = np.array([0.3, -0.7])
    exact = 30 * np.exp(at) * (np.sin(at) + np.cos(at))
    np.testing.assert_allclose(interpret([found], {x: at})[0], exact, rtol=1e-12)


def test_terms_that_are_not_repeated_stay_as_they_are() -> None:
    x = placeholder((3,), MATRIX.dtype)
    node: Any = Tensor._of(x)
    for k in range(100):
        node = np.sin(node) * (k + 1.5)
    outputs = [node._node]
    assert shared(outputs, [x], ()) is outputs
    repeated = [determinant(Tensor._of(placeholder((4, 4), MATRIX.dtype)))._node]
    assert shared(repeated, [], [x]) is repeated, "recordings of calls keep their order"


def test_a_gradient_in_each_turn_looks_at_its_own_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []
    whole = shared_terms.topological

    def counted(*args: Any) -> Any:
        found = whole(*args)
        looked_at.append(len(found))
        return found

    monkeypatch.setattr(shared_terms, "topological", counted)
    slope = nb.grad(lambda x: np.sum(np.sin(x) ** 2 / (1.0 + x * x)))

    def descent(x: Any) -> Any:
        while np.sum(x) > 0.0 and len(looked_at) < 40:
            x = x - 0.1 * slope(x)
        return np.sum(x)

    nb.jit(descent)(np.array([0.4, 0.9]))
    assert len(looked_at) >= 20
    assert max(looked_at) == min(looked_at)
