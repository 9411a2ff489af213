"""Derivatives at points where there is none, or where formulas break down: the documented conventions."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.functions import table

pytestmark = pytest.mark.unoptimized

INF, NAN = np.inf, np.nan


def both_modes(function: Callable[[Any], Any], x: Any) -> np.ndarray:
    """The derivative of an elementwise or scalar function, which forward and reverse mode agree on."""
    x = np.asarray(x, float)
    reverse = nb.grad(function)(x)
    columns = []
    for k in range(x.size):
        unit = np.zeros(x.size)
        unit[k] = 1
        columns.append(np.sum(nb.jvp(function, x, unit.reshape(x.shape))[1]))
    np.testing.assert_allclose(np.array(columns).reshape(x.shape), reverse, rtol=1e-13, err_msg="the modes disagree")
    np.testing.assert_array_equal(nb.jit(nb.grad(function))(x), reverse, err_msg="jit disagrees")
    return reverse


UNARY: dict[str, tuple[Callable[[Any], Any], float, float]] = {
    "abs at 0": (np.abs, 0.0, 0.0),
    "abs at -0": (np.abs, -0.0, 0.0),
    "sign at 0": (np.sign, 0.0, 0.0),
    "floor at 1": (np.floor, 1.0, 0.0),
    "ceil at 1": (np.ceil, 1.0, 0.0),
    "rint at 0.5": (np.rint, 0.5, 0.0),
    "trunc at 1": (np.trunc, 1.0, 0.0),
    "sqrt at 0": (np.sqrt, 0.0, INF),
    "log at 0": (np.log, 0.0, INF),
    "log1p at -1": (np.log1p, -1.0, INF),
    "cbrt at 0": (np.cbrt, 0.0, INF),
    "arcsin at 1": (np.arcsin, 1.0, INF),
    "arccos at 1": (np.arccos, 1.0, -INF),
    "arctanh at 1": (np.arctanh, 1.0, INF),
    "arccosh at 1": (np.arccosh, 1.0, INF),
    "square at 0": (np.square, 0.0, 0.0),
    "x**2 at 0": (lambda x: x**2, 0.0, 0.0),
    "x**1 at 0": (lambda x: x**1, 0.0, 1.0),
    "x**0 at 0": (lambda x: x**0, 0.0, 0.0),
    "x**0. at 0": (lambda x: x**0.0, 0.0, 0.0),
    "x**0.5 at 0": (lambda x: x**0.5, 0.0, INF),
    "x**3 at -2": (lambda x: x**3, -2.0, 12.0),
    "x**-1 at -2": (lambda x: x**-1.0, -2.0, -0.25),
    "x**2.5 at 0": (lambda x: x**2.5, 0.0, 0.0),
    "2**x at 3": (lambda x: 2.0**x, 3.0, 8 * np.log(2)),
    "0**x at 2": (lambda x: 0.0**x, 2.0, 0.0),
    "0**x at 0": (lambda x: 0.0**x, 0.0, 0.0),
    "exp at -inf": (np.exp, -INF, 0.0),
    "tanh at inf": (np.tanh, INF, 0.0),
    "arctan at inf": (np.arctan, INF, 0.0),
    "sinc at 0": (np.sinc, 0.0, 0.0),
    "sinc at 1e-9": (np.sinc, 1e-9, -(np.pi**2) / 3 * 1e-9),
    "sinc at 1": (np.sinc, 1.0, -1.0),
    "clip inside": (lambda x: np.clip(x, -1, 1), 0.5, 1.0),
    "clip above": (lambda x: np.clip(x, -1, 1), 1.5, 0.0),
    "clip below": (lambda x: np.clip(x, -1, 1), -1.5, 0.0),
    "fmod at a multiple": (lambda x: np.fmod(x, 2.0), 4.0, 1.0),
    "remainder at a multiple": (lambda x: np.remainder(x, 2.0), 4.0, 1.0),
    "nan_to_num of a number": (np.nan_to_num, 2.0, 1.0),
    "nan_to_num of NaN": (np.nan_to_num, NAN, 0.0),
    "nan_to_num of inf": (np.nan_to_num, INF, 0.0),
    "relu at 0, by where": (lambda x: np.where(x > 0, x, 0.0), 0.0, 0.0),
    "hypot(x, 0) at 0": (lambda x: np.hypot(x, 0.0), 0.0, 0.0),
    "maximum(x, x)": (lambda x: np.maximum(x, x), 3.0, 1.0),
    "x - x at inf by stop": (lambda x: nb.stop_gradient(x) * 0 + x, 5.0, 1.0),
}


@pytest.mark.parametrize("name", UNARY)
def test_one_argument(name: str) -> None:
    function, x, want = UNARY[name]
    np.testing.assert_allclose(both_modes(function, x), want, rtol=1e-12, atol=1e-300, err_msg=name)


BINARY: dict[str, tuple[Callable[[Any, Any], Any], float, float, float, float]] = {
    "maximum at a tie": (np.maximum, 2.0, 2.0, 0.5, 0.5),
    "minimum at a tie": (np.minimum, 2.0, 2.0, 0.5, 0.5),
    "fmax at a tie": (np.fmax, 2.0, 2.0, 0.5, 0.5),
    "fmin at a tie": (np.fmin, 2.0, 2.0, 0.5, 0.5),
    "maximum at an infinite tie": (np.maximum, INF, INF, 0.5, 0.5),
    "maximum with NaN": (np.maximum, NAN, 2.0, NAN, NAN),
    "fmax with NaN": (np.fmax, NAN, 2.0, 0.0, 1.0),
    "fmax with NaN right": (np.fmax, 2.0, NAN, 1.0, 0.0),
    "fmin with NaN": (np.fmin, NAN, 2.0, 0.0, 1.0),
    "fmin with NaN right": (np.fmin, 2.0, NAN, 1.0, 0.0),
    "hypot(0, 0)": (np.hypot, 0.0, 0.0, 0.0, 0.0),
    "hypot of tiny": (np.hypot, 3e-200, 4e-200, 0.6, 0.8),
    "hypot of huge": (np.hypot, 3e200, 4e200, 0.6, 0.8),
    "arctan2 of tiny": (np.arctan2, 1e-200, 1e-200, 5e199, -5e199),
    "logaddexp(-inf, -inf)": (np.logaddexp, -INF, -INF, 0.5, 0.5),
    "logaddexp(-inf, 0)": (np.logaddexp, -INF, 0.0, 0.0, 1.0),
    "logaddexp(inf, 0)": (np.logaddexp, INF, 0.0, 1.0, 0.0),
    "logaddexp(1000, 1000)": (np.logaddexp, 1000.0, 1000.0, 0.5, 0.5),
    "logaddexp2(-inf, -inf)": (np.logaddexp2, -INF, -INF, 0.5, 0.5),
    "power(0, 0)": (np.power, 0.0, 0.0, 0.0, 0.0),
    "power(0, 2)": (np.power, 0.0, 2.0, 0.0, 0.0),
    "power(0, 1)": (np.power, 0.0, 1.0, 1.0, 0.0),
    "power(0, -1)": (np.power, 0.0, -1.0, -INF, -INF),
    "power(-2, 3)": (np.power, -2.0, 3.0, 12.0, NAN),
    "power(2, 0)": (np.power, 2.0, 0.0, 0.0, np.log(2)),
    "copysign at 3, -1": (np.copysign, 3.0, -1.0, -1.0, 0.0),
    "copysign at 0, 1": (np.copysign, 0.0, 1.0, 0.0, 0.0),
    "remainder(7, 3)": (np.remainder, 7.0, 3.0, 1.0, -2.0),
    "remainder(-7, 3)": (np.remainder, -7.0, 3.0, 1.0, 3.0),
    "fmod(-7, 3)": (np.fmod, -7.0, 3.0, 1.0, 2.0),
    "floor_divide": (np.floor_divide, 7.0, 3.0, 0.0, 0.0),
    "xlogy(0, 0)": (lambda x, y: nb.numpy.xlogy(x, y), 0.0, 0.0, -INF, 0.0),
}


@pytest.mark.parametrize("name", BINARY)
def test_two_arguments(name: str) -> None:
    function, x, y, of_x, of_y = BINARY[name]
    with np.errstate(all="ignore"):
        got = nb.grad(function, (0, 1))(x, y)
        forward = (nb.jvp(function, (x, y), (1.0, 0.0))[1], nb.jvp(function, (x, y), (0.0, 1.0))[1])
    np.testing.assert_allclose(got, (of_x, of_y), rtol=1e-12, err_msg=name)
    for mode, one, other in zip((0, 1), forward, got, strict=True):
        if np.isfinite([of_x, of_y]).all():
            np.testing.assert_allclose(one, other, rtol=1e-12, err_msg=f"{name}, forward mode, argument {mode}")


# ----- Ties and zeros in reductions -----


def test_extrema_share_ties() -> None:
    x = np.array([1.0, 3.0, 3.0, 2.0, 3.0])
    np.testing.assert_allclose(both_modes(np.max, x), [0, 1 / 3, 1 / 3, 0, 1 / 3], rtol=1e-15)
    np.testing.assert_allclose(both_modes(np.min, -x), [0, 1 / 3, 1 / 3, 0, 1 / 3], rtol=1e-15)
    rows = np.array([[1.0, 1.0], [0.0, 5.0]])
    np.testing.assert_array_equal(both_modes(lambda v: np.max(v, axis=1), rows), [[0.5, 0.5], [0, 1]])
    np.testing.assert_array_equal(both_modes(np.max, np.array([INF, INF])), [0.5, 0.5])
    np.testing.assert_array_equal(both_modes(np.max, np.array([-INF, -INF])), [0.5, 0.5])


def test_prod_with_zeros() -> None:
    np.testing.assert_array_equal(both_modes(np.prod, [2.0, 3.0, 4.0]), [12, 8, 6])
    np.testing.assert_array_equal(both_modes(np.prod, [2.0, 0.0, 4.0]), [0, 8, 0])
    np.testing.assert_array_equal(both_modes(np.prod, [0.0, 0.0, 4.0]), [0, 0, 0])
    np.testing.assert_array_equal(both_modes(np.prod, [5.0]), [1])
    np.testing.assert_array_equal(nb.hessian(np.prod)(np.array([0.0, 0.0, 4.0])), [[0, 4, 0], [4, 0, 0], [0, 0, 0]])


def test_cumprod_with_zeros() -> None:
    x = np.array([2.0, 0.0, 3.0, 0.0, 5.0])
    want = np.array([[1, 0, 0, 0, 0], [0, 2, 0, 0, 0], [0, 6, 0, 0, 0], [0] * 5, [0] * 5], float)
    np.testing.assert_array_equal(nb.jacrev(np.cumprod)(x), want)
    np.testing.assert_array_equal(nb.jacfwd(np.cumprod)(x), want)
    np.testing.assert_array_equal(nb.grad(np.cumprod)(x), want.sum(0))


def test_std_and_norm_of_constants() -> None:
    """The deviation of equal numbers has no derivative; a finite subgradient or NaN, but the same in both modes."""
    x = np.full(4, 2.0)
    np.testing.assert_array_equal(both_modes(np.var, x), np.zeros(4))
    with np.errstate(all="ignore"):
        std, norm = nb.grad(np.std)(x), nb.grad(np.linalg.norm)(np.zeros(3))
    np.testing.assert_array_equal(std, nb.jit(nb.grad(np.std))(x))
    np.testing.assert_array_equal(norm, np.zeros(3))


# ----- where does not leak -----

SAFE: dict[str, tuple[Callable[[Any], Any], list[float], list[float], list[float]]] = {
    "sqrt": (lambda x: np.where(x > 0, np.sqrt(x), 0.0), [0.0, 4.0, -1.0], [0, 0.25, 0], [0, -1 / 32, 0]),
    "log": (lambda x: np.where(x > 0, np.log(x), 0.0), [0.0, 2.0, -1.0], [0, 0.5, 0], [0, -0.25, 0]),
    "division": (lambda x: np.where(x != 0, 1 / x, 7.0), [0.0, 2.0], [0, -0.25], [0, 0.25]),
    "through more operations": (
        lambda x: np.where(x > 0, np.exp(np.log(x) * 2) + np.sqrt(x) * x, -x),
        [0.0, 4.0, -3.0],
        [-1, 8 + 3, -1],
        [0, 2 + 0.375, 0],
    ),
    "other branch": (lambda x: np.where(x == 0, 1.0, np.sin(x) / x), [0.0, np.pi], [0, -1 / np.pi], [0, 2 / np.pi**2]),
    "both branches": (
        lambda x: np.where(x > 1, np.log(x - 1), np.where(x < 1, np.log(1 - x), 0.0)),
        [1.0, 3.0, -1.0],
        [0, 0.5, -0.5],
        [0, -0.25, -0.25],
    ),
    "after the choice": (lambda x: np.where(x > 0, np.sqrt(x), 1.0) ** 2, [0.0, 4.0, -1.0], [0, 1, 0], [0, 0, 0]),
    "norm by hand": (
        lambda x: np.where(x == 0, 0.0, np.sqrt(np.where(x == 0, 1.0, x * x))),
        [0.0, -3.0],
        [0, -1],
        [0, 0],
    ),
    "one choice inside another": (
        lambda x: np.where(x > 0, np.where(x < 10, np.sqrt(x), 1.0), 0.0),
        [0.0, 4.0, -1.0, 20.0],
        [0, 0.25, 0, 0],
        [0, -1 / 32, 0, 0],
    ),
    "negated": (lambda x: np.where(x > 0, 2 - np.negative(np.sqrt(x)), 0.0), [0.0, 4.0], [0, 0.25], [0, -1 / 32]),
    "overflow": (lambda x: np.where(x < 700, np.exp(x), x), [1.0, 1000.0], [np.e, 1], [np.e, 0]),
    "sum of both": (
        lambda x: np.where(x > 0, np.sqrt(x), 0.0) + np.where(x > 0, np.log(x), 0.0),
        [0.0, 4.0],
        [0, 0.5],
        [0, -1 / 32 - 1 / 16],
    ),
}


@pytest.mark.parametrize("name", SAFE)
def test_where_does_not_leak(name: str) -> None:
    function, x, first, second = SAFE[name]
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(both_modes(function, np.array(x)), first, rtol=1e-13, atol=1e-13, err_msg=name)
        over = nb.grad(lambda v: nb.grad(function)(v).sum())(np.array(x))
        np.testing.assert_allclose(over, second, rtol=1e-12, atol=1e-13, err_msg=f"{name}, second order, reverse")
        ahead = nb.jvp(nb.grad(function), np.array(x), np.ones(len(x)))[1]
        np.testing.assert_allclose(ahead, second, rtol=1e-12, atol=1e-13, err_msg=f"{name}, second order, forward")


def test_where_does_not_leak_through_indexing_and_movement() -> None:
    x = np.array([0.0, 4.0, -1.0, 9.0])

    def moved(v: Any) -> Any:
        root = np.sqrt(v)[::-1].reshape(2, 2).T
        return np.where(v[::-1].reshape(2, 2).T > 0, root, 0.0)

    def broadcast(v: Any) -> Any:
        return np.where((v > 0)[:, None], np.sqrt(v)[:, None] * np.ones(3), 0.0) / 3

    def gathered(v: Any) -> Any:
        index = np.array([0, 1, 2, 3])
        return np.where(v[index] > 0, np.sqrt(v)[index], 0.0)

    def in_pieces(v: Any) -> Any:
        root = np.concatenate([np.sqrt(v[:1]), np.sqrt(v[1:])])
        return np.where(v > 0, root, 0.0)

    def of_sums(v: Any) -> Any:
        return np.where(v > 0, np.sqrt(v[None, :] * np.ones((2, 1))).sum(0) / 2, 0.0)

    def summed(v: Any) -> Any:
        return np.where(v > 0, np.sqrt(v), 0.0).sum() ** 2

    with np.errstate(all="ignore"):
        for function in (moved, broadcast, gathered, in_pieces, of_sums):
            got = both_modes(function, x)
            np.testing.assert_allclose(got, [0, 0.25, 0, 1 / 6], rtol=1e-7, err_msg=function.__name__)
        np.testing.assert_allclose(both_modes(summed, x), [0, 2.5, 0, 10 / 6], rtol=1e-14)


def test_sinc_at_zero_to_high_order() -> None:
    """The Taylor coefficients: the n-th derivative at 0 is (-1)^(n/2) pi^n / (n + 1) for even n."""
    derivative: Any = np.sinc
    for n in range(7):
        want = 0.0 if n % 2 else (-1) ** (n // 2) * np.pi**n / (n + 1)
        np.testing.assert_allclose(derivative(0.0), want, rtol=1e-12, atol=1e-12, err_msg=f"order {n}")
        derivative = nb.grad(derivative)


def test_logsumexp_and_softmax_do_not_overflow() -> None:
    x = np.array([1000.0, 1000.0, -1000.0])
    np.testing.assert_allclose(both_modes(nb.numpy.logsumexp, x), [0.5, 0.5, 0], atol=1e-300)
    np.testing.assert_allclose(both_modes(lambda v: np.logaddexp.reduce(v), x), [0.5, 0.5, 0], atol=1e-300)


@pytest.mark.parametrize(
    "function", [np.exp, np.log, np.sin, np.sqrt, np.tanh, np.abs, np.square, np.cbrt, np.arctan, np.log1p, np.sinh]
)
def test_a_nan_operand_gives_a_nan_derivative(function: Callable[[Any], Any]) -> None:
    assert np.isnan(nb.grad(function)(NAN)), function
    assert np.isnan(nb.grad(function)(np.array([NAN, 1.0]))[0]), function
    assert not np.isnan(nb.grad(function)(np.array([NAN, 0.5]))[1]), function


def test_mixed_second_derivative_of_xlogy_at_zero():
    # d2/dx dy of x log(y) is 1 / y, at x = 0 too.
    mixed = nb.grad(nb.grad(lambda x, y: nb.ops.xlogy(x, y), 1), 0)
    assert mixed(0.0, 2.0) == 0.5 and mixed(3.0, 4.0) == 0.25


def test_functions_are_not_hidden_by_modules_of_their_name():
    np.sum(nb.Tensor([1.0]))  # imports all of NumPy's functions
    for name in table.names_of_functions():
        assert not isinstance(getattr(nb.numpy, name), ModuleType), name
    for name in (name for names in nb.ops.NAMES.values() for name in names.split()):
        assert callable(getattr(nb.ops, name)), name
