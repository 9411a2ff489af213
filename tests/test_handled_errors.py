"""Errors of Python's arithmetic in `try` statements: converted code goes on where Python does."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

pytestmark = pytest.mark.unoptimized


def logarithm(x: Any) -> Any:
    try:
        return math.log(x)
    except ValueError:
        return -2.0 * x


def any_error(x: Any) -> Any:
    try:
        return math.sqrt(x - 2)
    except:  # noqa: E722
        return 7.0 * x


def _cosine(x: Any) -> Any:
    return math.acos(x)


def of_a_call(x: Any) -> Any:
    try:
        return _cosine(x)
    except (TypeError, ValueError):
        return 3.0 * x


def too_large(x: Any) -> Any:
    try:
        return math.exp(x) + math.pow(x, 3.0)
    except OverflowError:
        return 2.0 * x


def pole_or_too_large(x: Any) -> Any:
    try:
        return math.gamma(x)
    except OverflowError:
        return 2.0 * x
    except ValueError:
        return 4.0 * x


def power(x: Any) -> Any:
    try:
        return math.pow(x, 0.5) + math.pow(x, -1.0)
    except ValueError:
        return 5.0 * x


def quotient(x: Any) -> Any:
    try:
        return 1.0 / x + x % (x + 1.0)
    except ZeroDivisionError:
        return 5.0 * x + 1.0


def in_place(x: Any) -> Any:
    y = x
    try:
        y /= x - 2.0
        y = y // x
    except ArithmeticError:
        y = 11.0 * x

    def inner(z: Any) -> Any:
        try:
            return z / (x - 2.0)
        except Exception:
            return 13.0 * z

    return y + inner(x)


def nested(x: Any) -> Any:
    total = 0.0
    for k in range(4):
        try:
            try:
                total += math.log(x - k)
            except OverflowError:
                total += 1000.0
        except ValueError:
            total += x * k
            break
    return total


def elements(x: Any) -> Any:
    values = np.array([x, 0.0])
    try:
        return np.where(values > 0, values[0] / (values + 1.0), 0.0).sum()
    except ZeroDivisionError:
        return -1.0


SLOPES: dict[Callable[[Any], Any], dict[float, float]] = {
    logarithm: {-1.0: -2, 0.0: -2, 3.0: 1 / 3},
    any_error: {1.0: 7, 6.0: 0.25},
    of_a_call: {-2.0: 3, 0.5: -1 / math.sqrt(0.75)},
    too_large: {1000.0: 2, 1.5: math.exp(1.5) + 6.75, 1e200: 2},
    pole_or_too_large: {200.0: 2, 0.0: 4, -1.0: 4, 2.5: 1.329340388179137 * 0.7031566406452432},
    power: {0.0: 5, -4.0: 5, 4.0: 0.25 - 1 / 16},
    quotient: {0.0: 5, -1.0: 5, 3.0: 1 - 1 / 9},
    in_place: {2.0: 24, 3.5: -2 / 2.25},
    nested: {2.5: 1 / 2.5 + 1 / 1.5 + 1 / 0.5 + 3, 9.0: 1 / 9 + 1 / 8 + 1 / 7 + 1 / 6},
    elements: {2.0: 1 / 9},
}
"""By function: its derivative at some points."""


@pytest.mark.parametrize("function", SLOPES)
@pytest.mark.parametrize("compiled", [False, True])
def test_code_goes_on_where_python_does(function: Any, compiled: bool) -> None:
    converted = nb.value_and_grad(nb.differentiable_source(function))
    call = nb.jit(converted) if compiled else converted
    for x, slope in SLOPES[function].items():
        assert call(x) == pytest.approx((function(x), slope), rel=1e-13)


def test_divisions_of_numpys_numbers_raise_nothing() -> None:
    with np.errstate(all="ignore"):
        assert quotient(np.float64(0.0)) == np.inf
        assert nb.differentiable_source(quotient)(nb.Tensor(0.0, nb.float64)) == np.inf
        assert nb.value_and_grad(nb.differentiable_source(quotient))(np.float64(0.0))[0] == np.inf


def _swallowed(x: Any) -> Any:
    try:
        return math.exp(x)
    except Exception:
        return -1.0


@pytest.mark.parametrize(
    "transform",
    [
        nb.grad,
        nb.value_and_grad,
        nb.jit,
        nb.hessian,
        lambda f: nb.vmap(nb.grad(f)),
        lambda f: lambda x: nb.jvp(f, x, x),
    ],
)
def test_an_error_that_code_catches_is_raised_at_the_end(transform: Any) -> None:
    x = np.ones(2) if "vmap" in str(transform.__code__.co_names) else 1.0
    message = r"Use np\.sin\(x\).*The function caught this error; with plain values there is none\. \(at .*handled_err"
    with pytest.raises(nb.errors.TracedValueError, match=message):
        transform(_swallowed)(x)


def test_what_catches_it_is_converted() -> None:
    assert nb.grad(nb.differentiable_source(_swallowed))(1.0) == pytest.approx(math.e, rel=1e-15)
