"""What is not chosen has derivative zero, also where its slope is infinite: extrema, selections, slices, padding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.graph.builders import argsort, gather, slice_axes
from nbgrad.graph.cotangents.slice_cotangents import merged
from nbgrad.graph.differentiate import vjp
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import Node, broadcast, constant, elementwise, literal

from .test_conventions import both_modes

pytestmark = pytest.mark.unoptimized

INF, NAN = np.inf, np.nan
ROOTS = [0.0, 4.0, 1.0]
"""sqrt has the slopes inf, 1/4 and 1/2 there, and the second derivatives -inf, -1/32 and -1/4."""
TRIGAMMA, TETRAGAMMA = np.pi**2 / 6, -2.4041138063191886
"""The derivative of digamma at 1, and the next, which is -2 zeta(3)."""

# Functions of x; x, the first derivative of their sum, the second (of the sum of the first). Derived on paper.
CASES: dict[str, tuple[Callable[[Any], Any], list[float], list[float], list[float]]] = {
    "sqrt of maximum": (lambda x: np.sqrt(np.maximum(0.0, x)), [-1.0, 4.0], [0, 0.25], [0, -1 / 32]),
    "sqrt of minimum": (lambda x: np.sqrt(np.minimum(0.0, -x) * -1), [-1.0, 4.0], [0, 0.25], [0, -1 / 32]),
    "sqrt of fmax": (lambda x: np.sqrt(np.fmax(x, 0.0)), [-1.0, 4.0], [0, 0.25], [0, -1 / 32]),
    "sqrt of fmin": (lambda x: np.sqrt(-np.fmin(-x, 0.0)), [-1.0, 4.0], [0, 0.25], [0, -1 / 32]),
    "sqrt of clip": (lambda x: np.sqrt(np.clip(x, 0.0, 9.0)), [-1.0, 4.0, 10.0], [0, 0.25, 0], [0, -1 / 32, 0]),
    "sqrt of clip from both sides": (
        lambda x: np.sqrt(np.clip(np.clip(x, 0, 9), 0, 8)),
        [-1.0, 4.0],
        [0, 0.25],
        [0, -1 / 32],
    ),
    "sqrt of relu": (lambda x: np.sqrt(nb.ops.relu(x)), [-1.0, 4.0], [0, 0.25], [0, -1 / 32]),
    "sqrt of relu6": (lambda x: np.sqrt(nb.ops.relu6(x)), [-1.0, 4.0, 7.0], [0, 0.25, 0], [0, -1 / 32, 0]),
    "sqrt of where, the number first": (
        lambda x: np.sqrt(np.where(x < 0, 0.0, x)),
        [-1.0, 4.0],
        [0, 0.25],
        [0, -1 / 32],
    ),
    "log of maximum": (lambda x: np.log(np.maximum(x, 0.0) + 0.0), [2.0, 4.0], [0.5, 0.25], [-0.25, -1 / 16]),
    "quotient by maximum": (lambda x: 1 / np.maximum(x, 0.0), [-1.0, 4.0], [0, -1 / 16], [0, 1 / 32]),
    "power of maximum": (lambda x: np.maximum(x, 0.0) ** 0.5, [-1.0, 4.0], [0, 0.25], [0, -1 / 32]),
    "maximum of sqrt": (lambda x: np.maximum(np.sqrt(x), 1.0), [0.0, 4.0], [0, 0.25], [0, -1 / 32]),
    "minimum of log": (lambda x: np.minimum(np.log(x), -1e4) + x, [2.0, 4.0], [1, 1], [0, 0]),
    "fmax of sqrt": (lambda x: np.fmax(np.sqrt(x), 1.0), [0.0, 4.0], [0, 0.25], [0, -1 / 32]),
    "fmin of sqrt": (lambda x: np.fmin(-np.sqrt(x), -1.0), [0.0, 4.0], [0, -0.25], [0, 1 / 32]),
    "maximum of sqrt, a slice": (
        lambda x: np.maximum(np.sqrt(x), 1.0)[1:],
        [0.0, 0.0, 4.0],
        [0, 0, 0.25],
        [0, 0, -1 / 32],
    ),
    "minimum of sqrt, a slice": (lambda x: np.minimum(np.sqrt(x), 1.0)[1:], [0.0, 0.25, 4.0], [0, 1, 0], [0, -2, 0]),
    "max of sqrt": (lambda x: np.max(np.sqrt(x)), ROOTS, [0, 0.25, 0], [0, -1 / 32, 0]),
    "min of -sqrt": (lambda x: np.min(-np.sqrt(x)), ROOTS, [0, -0.25, 0], [0, 1 / 32, 0]),
    "max along an axis": (
        lambda x: np.max(np.outer([0.5, 0.5], np.sqrt(x)), axis=1),
        ROOTS,
        [0, 0.25, 0],
        [0, -1 / 32, 0],
    ),
    "method max": (lambda x: np.sqrt(x).max(keepdims=True), ROOTS, [0, 0.25, 0], [0, -1 / 32, 0]),
    "nanmax": (lambda x: np.nanmax(np.sqrt(x)), ROOTS, [0, 0.25, 0], [0, -1 / 32, 0]),
    "ptp": (lambda x: np.ptp(np.sqrt(x)[1:]), ROOTS, [0, 0.25, -0.5], [0, -1 / 32, 0.25]),
    "maximum.reduce": (lambda x: np.maximum.reduce(np.sqrt(x)), ROOTS, [0, 0.25, 0], [0, -1 / 32, 0]),
    "maximum.accumulate": (lambda x: np.maximum.accumulate(np.sqrt(x))[1:], ROOTS, [0, 0.5, 0], [0, -1 / 16, 0]),
    "one element": (lambda x: np.sqrt(x)[1], ROOTS, [0, 0.25, 0], [0, -1 / 32, 0]),
    "a slice": (lambda x: np.sqrt(x)[1:], ROOTS, [0, 0.25, 0.5], [0, -1 / 32, -0.25]),
    "every second": (lambda x: np.sqrt(x)[::2][1:], ROOTS, [0, 0, 0.5], [0, 0, -0.25]),
    "turned around": (lambda x: np.sqrt(x)[:0:-1], ROOTS, [0, 0.25, 0.5], [0, -1 / 32, -0.25]),
    "two slices": (lambda x: np.sqrt(x)[1:] * 2 + np.sqrt(x)[1], ROOTS, [0, 1, 1], [0, -1 / 8, -0.5]),
    "slices far apart": (
        lambda x: (3 * np.sqrt(x))[0:1] * 0 + np.sqrt(x)[2],
        [9.0, 0.0, 1.0],
        [0, 0, 0.5],
        [0, 0, -0.25],
    ),
    "a loop": (lambda x: sum(np.sqrt(x)[k] for k in range(1, 3)), ROOTS, [0, 0.25, 0.5], [0, -1 / 32, -0.25]),
    "power, a slice": (lambda x: (x**0.5)[1:], [0.0, 4.0], [0, 0.25], [0, -1 / 32]),
    "arctan2, a slice": (lambda x: np.arctan2(0 * x, x)[1:], [0.0, 4.0], [0, 0], [0, 0]),
    "xlogy, a slice": (
        lambda x: nb.ops.xlogy(nb.Tensor([2.0, 2.0], nb.float64), x)[1:],
        [0.0, 4.0],
        [0, 0.5],
        [0, -1 / 8],
    ),
    "gammaln, a slice": (lambda x: nb.ops.lgamma(x)[1:], [0.0, 1.0], [0, -np.euler_gamma], [0, TRIGAMMA]),
    "digamma, a slice": (lambda x: nb.ops.digamma(x)[1:], [0.0, 1.0], [0, TRIGAMMA], [0, TETRAGAMMA]),
    "polygamma, a slice": (lambda x: nb.ops.polygamma(1, x)[1:], [0.0, 1.0], [0, TETRAGAMMA], [0, np.pi**4 / 15]),
    "one of two parts is masked": (
        lambda x: np.append(np.where(x[:1] > 0, x[:1], 0.0), x[1:] * [0, 3] + x[1:] * [2, 0]),
        [1.0, 1.0, 1.0],
        [1, 2, 3],
        [0, 0, 0],
    ),
    "in both branches of a slice": (
        lambda x: np.where(x[1:] < 9, np.sqrt(x)[1:], 2 * np.sqrt(x)[1:])[1:],
        [0.0, 0.0, 4.0],
        [0, 0, 0.25],
        [0, 0, -1 / 32],
    ),
    "through a product": (lambda x: (np.sqrt(x) * 3)[1:], ROOTS, [0, 0.75, 1.5], [0, -3 / 32, -0.75]),
    "through a sum of slices": (
        lambda x: (-np.sqrt(x))[1:] + np.sqrt(x)[1:] * 3,
        ROOTS,
        [0, 0.5, 1],
        [0, -1 / 16, -0.5],
    ),
    "through a move": (lambda x: np.sqrt(x).reshape(3, 1).T[0, 1:], ROOTS, [0, 0.25, 0.5], [0, -1 / 32, -0.25]),
    "through repetition": (lambda x: (np.sqrt(x) * np.ones((2, 3)))[0, 1:], ROOTS, [0, 0.25, 0.5], [0, -1 / 32, -0.25]),
    "chosen positions": (lambda x: np.sqrt(x)[[1, 2, 1]], ROOTS, [0, 0.5, 0.5], [0, -1 / 16, -0.25]),
    "chosen of moved": (lambda x: (2 * np.sqrt(x))[::-1][[0, 1]], ROOTS, [0, 0.5, 1], [0, -1 / 16, -0.5]),
    "a boolean mask": (lambda x: np.sqrt(x)[np.array([False, True, True])], ROOTS, [0, 0.25, 0.5], [0, -1 / 32, -0.25]),
    "take_along_axis": (
        lambda x: np.take_along_axis(np.sqrt(x), np.array([1]), 0),
        ROOTS,
        [0, 0.25, 0],
        [0, -1 / 32, 0],
    ),
    "chosen by argsort": (
        lambda x: np.sqrt(x)[np.argsort(x)[1:]],
        ROOTS,
        [0, 0.25, 0.5],
        [0, -1 / 32, -0.25],
    ),
    "argmax": (lambda x: np.sqrt(x)[np.argmax(x)], ROOTS, [0, 0.25, 0], [0, -1 / 32, 0]),
    "sorted": (lambda x: np.sort(np.sqrt(x))[1:], ROOTS, [0, 0.25, 0.5], [0, -1 / 32, -0.25]),
    "partitioned": (lambda x: np.partition(np.sqrt(x), 2)[2], ROOTS, [0, 0.25, 0], [0, -1 / 32, 0]),
    "median": (lambda x: np.median(np.sqrt(x)), ROOTS, [0, 0, 0.5], [0, 0, -0.25]),
    "quantile": (lambda x: np.quantile(np.sqrt(x), 1.0), ROOTS, [0, 0.25, 0], [0, -1 / 32, 0]),
    "topk": (lambda x: nb.ops.topk(np.sqrt(x), 2)[0], ROOTS, [0, 0.25, 0.5], [0, -1 / 32, -0.25]),
    "padded with zeros": (lambda x: np.sqrt(np.pad(x, 1))[1:-1], [4.0, 1.0], [0.25, 0.5], [-1 / 32, -0.25]),
    "padded, all of it": (lambda x: np.sqrt(np.pad(x, 1)), [4.0, 1.0], [0.25, 0.5], [-1 / 32, -0.25]),
    "beside zeros": (lambda x: np.sqrt(np.concatenate([np.zeros(1), x])), [4.0, 1.0], [0.25, 0.5], [-1 / 32, -0.25]),
    "padded and scaled": (lambda x: np.sqrt(4 * np.pad(x, 1)), [4.0, 1.0], [0.5, 1], [-1 / 16, -0.5]),
    "padded, in another dtype": (
        lambda x: np.sqrt(np.pad(x, 1).astype(np.float32)),
        [4.0, 1.0],
        [0.25, 0.5],
        [-1 / 32, -0.25],
    ),
    "maximum of where": (lambda x: np.maximum(np.where(x > 2, x, 3 * x), 1.0), [1.0, 4.0], [3, 1], [0, 0]),
    "written into zeros": (lambda x: np.sqrt(_written(x)), [4.0, 1.0], [0.25, 0.5], [-1 / 32, -0.25]),
}


def _written(x: Any) -> Any:
    whole = nb.numpy.zeros(3)
    whole[[0, 2]] = x
    return whole


@pytest.mark.parametrize("name", CASES)
def test_what_is_not_chosen_has_derivative_zero(name: str) -> None:
    function, x, first, second = CASES[name]
    at = np.array(x)
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(both_modes(lambda v: np.sum(function(v)), at), first, rtol=1e-13, atol=1e-13)
        gradient = nb.grad(lambda v: np.sum(function(v)))
        over = nb.grad(lambda v: np.sum(gradient(v)))(at)
        np.testing.assert_allclose(over, second, rtol=1e-12, atol=1e-13, err_msg="second order, reverse")
        ahead = nb.jvp(gradient, at, np.ones(len(x)))[1]
        np.testing.assert_allclose(ahead, second, rtol=1e-12, atol=1e-13, err_msg="second order, forward")


def _half_angle(x: Any) -> Any:
    """The tangent of a rotation of Jacobi's: at 0, its slope is the quotient of two infinite numbers."""
    t = 1 / x
    return np.sign(t) / (abs(t) + np.sqrt(t * t + 1))


M = np.array([[1.0, 2.0], [3.0, 4.0]])
THROUGH: dict[str, Callable[[Any], Any]] = {
    "a product": lambda x: M @ (np.ones(2) * _half_angle(x)),
    "a product of both": lambda x: (M * _half_angle(x)) @ (M * x),
    "a running sum": lambda x: np.cumsum(np.ones(3) * _half_angle(x)),
    "a linear system": lambda x: np.linalg.solve(M, np.ones(2) * _half_angle(x)),
    "an inverse": lambda x: np.linalg.inv(M + np.ones((2, 2)) * _half_angle(x)),
    "a determinant": lambda x: np.linalg.det(M * (1 + _half_angle(x))),
    "a convolution": lambda x: np.convolve(np.ones(3) * _half_angle(x), [1.0, 2.0]),
    "a Fourier transform": lambda x: np.abs(np.fft.fft(np.ones(3) * _half_angle(x))) ** 2,
    "a filter": lambda x: np.real(np.fft.ifft(np.fft.fft(np.arange(3.0) * _half_angle(x)) * [1.0, 2.0j, 1.0 - 1.0j])),
    "half of a spectrum": lambda x: np.fft.irfft(np.fft.rfft(np.arange(4.0) * _half_angle(x)) * 0.5),
    "a complex linear system": lambda x: np.abs(np.linalg.solve(M * 1j, np.ones(2) * _half_angle(x))) ** 2,
    "elements": lambda x: (M @ nb.numpy.stack([_half_angle(x), x]))[1:] * _half_angle(x),
}


@pytest.mark.parametrize("name", THROUGH)
def test_a_branch_that_is_not_taken_has_derivative_zero_through(name: str) -> None:
    def chosen(x: Any) -> Any:
        return np.where(x == 0, 2 * x, THROUGH[name](x).sum())

    with np.errstate(all="ignore"):
        assert nb.grad(chosen)(0.0) == 2.0
        assert nb.hessian(chosen)(0.0) == 0.0
    assert np.isfinite(nb.grad(chosen)(0.5))


def test_a_sum_with_a_branch_that_is_not_taken() -> None:
    """Turns that go on with a matrix as it is, or turn it: each adds to the cotangents of the one before."""

    def turned(a: Any) -> Any:
        for _ in range(3):
            t = _half_angle(a[0, 1])
            a = np.where(a[0, 1] == 0, a, (nb.numpy.stack([nb.numpy.stack([t, -t]), nb.numpy.stack([t, t])]) @ a) * t)
        return a.sum()

    np.testing.assert_array_equal(nb.jit(nb.grad(turned))(np.diag([1.0, 3.0])), np.ones((2, 2)))


def test_half_of_an_infinite_slope_is_infinite() -> None:
    assert both_modes(lambda x: np.sqrt(np.maximum(x, 0.0)), 0.0) == INF
    assert both_modes(lambda x: np.maximum(np.sqrt(x), 0.0), 0.0) == INF
    np.testing.assert_array_equal(nb.grad(lambda x: np.max(np.sqrt(x)))(np.zeros(2)), [INF, INF])


def test_nan_is_not_masked() -> None:
    for function in (np.maximum, np.minimum):
        assert np.isnan(nb.grad(lambda x, f=function: np.sqrt(f(x, 0.0)))(NAN))
    for function in (np.max, np.min):
        assert np.isnan(nb.grad(lambda x, f=function: f(np.sqrt(x)))(np.array([1.0, NAN]))).all()
        rows = nb.grad(lambda x, f=function: np.sum(f(x, axis=1)))(np.array([[1.0, NAN], [2.0, 3.0]]))
        np.testing.assert_array_equal(np.isnan(rows), [[True, True], [False, False]])


def test_a_zero_cotangent_that_is_no_construction_stays_a_product() -> None:
    """sqrt(x)**2 has the derivative 1 at 0: a zero there would be wrong, 0 * inf says that it is not known."""
    assert np.isnan(nb.grad(lambda x: np.sum(np.sqrt(x)[[0]] ** 2))(np.array([0.0, 1.0]))[0])


def test_masks_of_a_long_loop_need_no_recursion() -> None:
    def function(x: Any) -> Any:
        y = np.sqrt(x)
        z = y
        for _ in range(3000):
            z = np.reshape(z + 0.0, (2, -1) if z.ndim == 1 else (-1,))
        return z[1:].sum() if z.ndim == 1 else z[1].sum()

    np.testing.assert_allclose(nb.grad(function)(np.array([0.0, 4.0])), [0, 0.25])


def test_slices_that_cover_an_array_need_no_mask() -> None:
    assert merged([((0, 4),), ((1, 5),)], 1) == {((0, 5),)}
    assert merged([((0, 2), (0, 1)), ((0, 2), (1, 3)), ((2, 4), (0, 3))], 2) == {((0, 4), (0, 3))}
    assert merged([((0, 1),), ((2, 3),)], 1) == {((0, 1),), ((2, 3),)}

    def neighbours(x: Any) -> Any:
        root = np.sqrt(x)
        return np.sum(root[1:] * root[:-1])

    graph, _ = str(nb.explain(nb.grad(neighbours), np.ones(100))).split("kernel 0")
    assert "rsqrt" in graph and "select" not in graph


def gradient_of_root(x: list[float], chosen: Callable[[Node], Node]) -> np.ndarray:
    """The derivative of the sum of what is chosen of the square roots of numbers, in a graph."""
    at = constant(np.array(x))
    output = chosen(elementwise("sqrt", at))
    (gradient,) = vjp([output], [broadcast(literal(1.0, output.dtype), output.shape)], [at])
    assert gradient is not None
    with np.errstate(all="ignore"):
        return interpret([gradient])[0]


def test_a_slice_of_all_elements_has_no_mask_of_its_own() -> None:
    """Its cotangent is that of the whole array: the rule for its mask would ask for itself."""
    found = gradient_of_root([4.0], lambda root: slice_axes(root, [(0, 1, -1)]))
    np.testing.assert_array_equal(found, [0.25])


def test_indices_made_of_an_order_may_leave_elements_out() -> None:
    found = gradient_of_root([4.0, 1.0, 0.0], lambda root: gather(root, elementwise("minimum", argsort(root), 1)))
    np.testing.assert_array_equal(found, [0.25, 1.0, 0.0])


@pytest.mark.parametrize(
    "move", ["z.T", "z[::-1]", "z.reshape(3, 2)", "np.concatenate([z, z])", "z[[1, 0]]", "z * 2.0"]
)
def test_masks_of_complex_numbers_move_in_forward_mode(move: str) -> None:
    """The slope of the square root at the zeros of a triangle is infinite, and counts for nothing."""

    def f(z: Any) -> Any:
        return np.sqrt(eval(move, {"z": np.triu(z), "np": np}))

    z = np.array([[1.0, 4.0, 9.0], [2.0, 3.0, 5.0]]) + 1j
    tangent = nb.jvp(f, z, np.ones_like(z))[1]
    step = 1e-6
    difference = (f(z + step) - f(z - step)) / (2 * step)
    np.testing.assert_allclose(tangent, difference, rtol=1e-8)


def test_second_derivatives_through_extrema_in_turns_of_two_kinds() -> None:
    """Where an extremum's operand loses, its slope counts for nothing, in derivatives of loops of derivatives too."""

    def upwind(height: Any, turns: int = 15) -> Any:
        for k in range(turns):
            back = np.maximum(height - np.roll(height, 1), 0.0)
            ahead = np.maximum(np.roll(height, -1) - height, 0.0)
            height = height - 0.02 * np.sqrt(back**2 + ahead**2 + 1e-8)
            if k % 5 == 4:
                height = height - 0.01 * height
        return np.sum(height**2)

    height, direction = np.array([0.19, -0.52, -0.41]), np.array([-2.44, 1.8, 1.14])
    slope = nb.grad(upwind)
    second = nb.grad(lambda height: np.sum(slope(height) * direction))(height)
    step = 1e-6
    by_steps = (slope(height + step * direction) - slope(height - step * direction)) / (2 * step)
    np.testing.assert_allclose(second, by_steps, rtol=1e-6)
    np.testing.assert_allclose(nb.jvp(slope, height, direction)[1], second, rtol=1e-12)


def test_where_an_infinite_slope_is_not_chosen() -> None:
    """The slope of 1 / sqrt(x) at 0 is infinite."""
    x = constant(np.array([0.0, 4.0]))
    chosen = elementwise("select", elementwise("greater", x, 0.0), elementwise("rsqrt", x), 0.0)
    (slope,) = vjp([chosen], [constant(np.ones(2))], [x])
    assert slope is not None
    np.testing.assert_array_equal(interpret([slope])[0], [0.0, -0.0625])


def test_slopes_of_bessel_functions_at_zero() -> None:
    """I1'(0) = 1/2, and (exp(-|x|) I1(x))' there too."""
    for name in ("i1", "i1e"):
        x = constant(np.zeros(1))
        (slope,) = vjp([elementwise(name, x)], [constant(np.ones(1))], [x])
        assert slope is not None
        np.testing.assert_array_equal(interpret([slope])[0], [0.5])
