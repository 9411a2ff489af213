"""Values that derivatives read again instead of computing them: only where nothing has changed in between, and in
branches of the same test too. Gradients are those of the formulas; the texts show what is computed once."""

import math
import re
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import ArgumentError


def two_branches(x: Any, out: Any) -> None:
    """tan(x) for positive elements, and x cosh(x) for others."""
    for i in range(len(x)):
        if x[i] > 0.0:
            c, s = math.cos(x[i]), math.sin(x[i])
        else:
            c, s = 1.0 / math.cosh(x[i]), x[i]
        out[i] = s / c


def test_a_backward_branch_reads_the_forward_one() -> None:
    kernel = nb.kernel(numba.njit(two_branches))
    x = np.array([0.3, -0.7, 1.1, -1.2])
    expected = np.where(x > 0, 1 / np.cos(x) ** 2, np.cosh(x) + x * np.sinh(x))
    np.testing.assert_allclose(nb.grad(lambda x: np.sum(kernel(x, np.zeros(4))))(x), expected, rtol=1e-14)
    text = kernel.vjp.source
    assert [text.count(f"math.{name}(") for name in ("cos", "sin", "cosh")] == [1, 1, 1]


def overwritten(x: Any, out: Any) -> None:
    """The second read of an element is another one."""
    for i in range(1, len(x)):
        first = x[i]
        x[i] = first * x[i - 1]
        second = x[i]
        out[i] = math.sin(first) * math.sin(second)


def changed_in_a_loop(x: Any, out: Any) -> None:
    """The same operation on a number that a loop, or one branch, has changed."""
    for i in range(len(x)):
        y = x[i]
        a = math.exp(y)
        for _ in range(3):
            y = 0.5 * y + 0.1
        b = math.exp(y)
        if x[i] > 0.5:
            y = 2.0 * y
        c = math.exp(y)
        out[i] = a * b + c


def swapped(x: Any, out: Any) -> None:
    """Names change places."""
    for i in range(len(x)):
        a, b = x[i], 1.0 + x[i] * x[i]
        p = a / b
        a, b = b, a
        q = a / b
        a, b = b, a
        out[i] = p * p + q * (a / b)


def whole_and_real(x: Any, out: Any) -> None:
    """A number that is an integer in one branch, and an integer of the same value that is an index."""
    for i in range(len(x) - 1):
        k = i + 1
        where = i + 1 if x[i] > 0.5 else 0.25
        out[i] = where * x[k] * x[i]


def real_and_whole(x: Any, out: Any) -> None:
    """The other way round: the integer that is an index comes second."""
    for i in range(len(x) - 1):
        if x[i] > 0.5:
            where = i + 1
            k = i + 1
            out[i] = where * x[k] * x[i]
        else:
            where = 0.25
            out[i] = where * x[i] * x[i]


def same_test_after_a_change(x: Any, out: Any) -> None:
    """A test of another value of the same name."""
    for i in range(len(x)):
        t = x[i] > 0.5
        if t:
            a = math.sin(x[i])
        else:
            a = 2.0 * x[i]
        t = x[i] > 0.7
        if t:
            b = math.sin(x[i])
        else:
            b = 3.0 * x[i]
        out[i] = a * b


def same_element_again(x: Any, out: Any) -> None:
    """Several additions to the gradient of one element, some of which others stand between."""
    for i in range(1, len(x)):
        out[i] = x[i] * x[0] + x[i] * x[i] * x[i - 1] + math.sqrt(x[i] + 4.0) / x[0]


KERNELS = [
    overwritten,
    changed_in_a_loop,
    swapped,
    whole_and_real,
    real_and_whole,
    same_test_after_a_change,
    same_element_again,
]


@pytest.mark.parametrize("plain", KERNELS, ids=lambda one: one.__name__)
def test_gradients_are_differences(plain: Callable[..., None]) -> None:
    x = np.array([0.9, 0.6, 0.2, 0.8, 0.4, 0.65])
    weights = np.cos(np.arange(6.0))
    inout = ("x",) if plain is overwritten else ()
    kernel = nb.kernel(numba.njit(plain), inout=inout)

    def loss(x: Any) -> Any:
        found = kernel(x, np.zeros(6))
        return np.sum(weights * found[-1]) + np.sum(found[0] ** 2) if inout else np.sum(weights * found)

    def by_hand(x: np.ndarray) -> float:
        x, out = x.copy(), np.zeros(6)
        plain(x, out)
        return float(np.sum(weights * out) + (np.sum(x**2) if inout else 0.0))

    steps = [1e-6 * one for one in np.eye(6)]
    expected = [(by_hand(x + step) - by_hand(x - step)) / 2e-6 for step in steps]
    for gradient in (nb.grad(loss), nb.jit(nb.grad(loss))):
        np.testing.assert_allclose(gradient(x), expected, rtol=1e-7, atol=1e-8)
    along = np.sin(np.arange(6.0))
    np.testing.assert_allclose(nb.jvp(loss, (x,), (along,))[1], np.dot(expected, along), rtol=1e-7)


def damped(x: Any, out: Any) -> None:
    for i in range(len(x)):
        out[i] = math.exp(-x[i]) * math.sin(x[i])


def test_additions_to_one_element_are_one() -> None:
    kernel = nb.kernel(numba.njit(damped))
    x = np.array([0.3, -0.7, 1.1])
    found = nb.grad(lambda x: np.sum(kernel(x, np.zeros(3))))(x)
    np.testing.assert_allclose(found, np.exp(-x) * (np.cos(x) - np.sin(x)), rtol=1e-14)
    writes = re.findall(r"x_b\[\w+\] \+?= (.+)", kernel.vjp.source)
    assert len([value for value in writes if value != "0.0"]) == 1


def test_the_text_of_the_interpreter_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.array([0.3, -0.7, 1.1])
    compiled = nb.grad(lambda x: np.sum(nb.kernel(numba.njit(two_branches))(x, np.zeros(3))))(x)
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    plain = nb.grad(lambda x: np.sum(nb.kernel(numba.njit(two_branches))(x, np.zeros(3))))(x)
    np.testing.assert_allclose(compiled, plain, rtol=1e-15)


def same_in_both(x: Any, scale: float) -> None:
    """The same operation in both branches of a test outside of loops."""
    if x[0] > 0.0:
        x[0] += math.sin(scale) * 2.0
    else:
        x[1] = math.sin(scale) * x[0]


@pytest.mark.parametrize(("first", "slope"), [(0.5, 2.0), (-0.5, -0.5)])
def test_a_value_of_one_branch_is_not_looked_for_in_the_other(first: float, slope: float) -> None:
    kernel = nb.kernel(numba.njit(same_in_both))
    found = nb.grad(lambda scale: np.sum(kernel(np.array([first, 0.6]), scale)))(0.7)
    assert found == pytest.approx(slope * math.cos(0.7), rel=1e-14)


def test_a_fault_of_nbgrad_is_not_put_on_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: Any) -> Any:
        raise KeyError("g_21")

    monkeypatch.setattr("nbgrad.adjoints.specializations.reverse_kernel", fails)
    kernel = nb.kernel(numba.njit(damped), check="never")
    with pytest.raises(ArgumentError, match=r"failed to derive damped\(\), .* fault of its own .*KeyError: 'g_21'"):
        nb.grad(lambda x: np.sum(kernel(x, np.zeros(3))))(np.ones(3))
