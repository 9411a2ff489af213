"""Errors of kernels reach their derivatives: of statements, of functions that they call, of divisions by zero."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

import nbgrad as nb
from nbgrad.adjoints import raised_errors
from nbgrad.adjoints.raised_errors import DIVISIONS, NOTHING, STATEMENTS, raises
from nbgrad.errors import ArgumentError

pytestmark = pytest.mark.unoptimized(but=4)


@njit
def positive(value):
    if value < 0.0:
        raise ValueError("negative")
    return np.sqrt(value)


@njit
def sum_of_roots(x):
    total = 0.0
    for k in range(x.size):
        total += positive(x[k])
    return total


@njit
def checked_squares(x):
    if x[0] <= 0.0:
        raise OverflowError("too small")
    return np.sum(x * x)


@njit
def sum_of_inverses(x):
    total = 0.0
    for k in range(x.size):
        total += 1.0 / x[k]
    return total


ROWS = [
    (sum_of_roots, np.array([1.0, 4.0]), [0.5, 0.25], np.array([1.0, -4.0]), "negative"),
    (checked_squares, np.array([1.0, 4.0]), [2.0, 8.0], np.array([-1.0, 4.0]), "too small"),
    (sum_of_inverses, np.array([1.0, 2.0]), [-1.0, -0.25], np.array([1.0, 0.0]), "ZeroDivisionError"),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0].__name__)
@pytest.mark.parametrize("transform", [lambda f: f, nb.jit], ids=["plain", "jit"])
def test_derivatives_raise_what_the_kernel_raises(row: Any, transform: Any) -> None:
    function, good, want, bad, words = row
    kernel = nb.kernel(function)
    gradient = transform(nb.grad(kernel))
    for _ in range(2):  # the first call is checked in another way
        assert np.allclose(gradient(good), want)
        with pytest.raises(ArgumentError, match=words):
            gradient(bad)
    along = transform(lambda x: nb.jvp(kernel, (x,), (np.ones(2),)))
    assert np.allclose(along(good)[1], sum(want))
    with pytest.raises(ArgumentError, match=words):
        along(bad)


def test_derivatives_that_are_not_finite_stay_where_nothing_is_raised() -> None:
    kernel = nb.kernel(njit(lambda x: np.sum(np.sqrt(x)) / x.size))
    assert np.array_equal(nb.grad(kernel)(np.array([0.0, 1.0])), [np.inf, 0.25])


def twice(value: Any) -> Any:
    return value + value


def through_a_module(x: Any) -> Any:
    return raised_errors.raises(x)


def test_what_may_raise() -> None:
    def inner(x: Any) -> Any:
        def local(y: Any) -> Any:
            return y // 2

        return local(x)

    quiet = [twice, lambda x: twice(x), len, njit(lambda x: np.sin(x))]
    assert [raises(one) for one in quiet] == [NOTHING] * 4
    divides = [sum_of_inverses, inner, lambda x: inner(x), lambda x: x % 3]
    assert [raises(one) for one in divides] == [DIVISIONS] * 4
    assert [raises(one) for one in (positive, sum_of_roots, checked_squares, lambda x: sum_of_roots(x))] == [
        STATEMENTS
    ] * 4
    assert raises(through_a_module) == raises(raised_errors.raises)
