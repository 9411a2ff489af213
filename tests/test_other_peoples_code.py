"""Other people's NumPy code, unmodified: its value is NumPy's own, its derivative that of finite differences.

Under `differentiable_source` all snippets differentiate, in both modes. Plainly, with NumPy's protocols alone, each
either gives the same or raises an error that names the line in the snippet and says what helps.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import TracedValueError

from . import other_peoples_code as code
from . import other_peoples_physics as physics

pytestmark = pytest.mark.unoptimized

PARAMETERS: dict[Callable[[Any], Any], list[float]] = {**code.SNIPPETS, **physics.SNIPPETS}
SNIPPETS = list(PARAMETERS)
NAMES = [function.__name__ for function in SNIPPETS]
PLAIN = set("horner polygon_area newton_root lagrange_interpolation one_hot_softmax n_body_energy".split())
"""Snippets that need nothing but NumPy's protocols."""


def parameters(function: Callable[[Any], Any]) -> np.ndarray:
    return np.array(PARAMETERS[function])


def weighted(value: Any) -> Any:
    """One number of a result, in which each element has another weight."""
    flat = value.reshape(-1) if hasattr(value, "reshape") else [value]
    return sum(np.cos(k + 0.5) * flat[k] for k in range(len(flat)))


def slopes(function: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    """The gradient by central differences, of order four."""
    found = []
    for unit in np.eye(len(x)):
        h = 1e-3
        values = [weighted(function(x + k * h * unit)) for k in (-2, -1, 1, 2)]
        found.append((values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * h))
    return np.array(found)


def test_there_are_many_snippets() -> None:
    assert len(SNIPPETS) >= 40
    public = [
        f
        for module in (code, physics)
        for _, f in inspect.getmembers(module, inspect.isfunction)
        if f.__module__ == module.__name__
    ]
    helpers = {"lotka_volterra", "rk4", "rotation_matrix", "normal_cdf"}
    assert {f.__name__ for f in public} - helpers == set(NAMES) - {"strikes"}


@pytest.mark.parametrize("function", SNIPPETS, ids=NAMES)
def test_differentiated_unmodified(function: Callable[[Any], Any]) -> None:
    x = parameters(function)
    converted = nb.differentiable_source(function)
    expected = function(x)
    np.testing.assert_allclose(np.asarray(converted(x)), expected, rtol=1e-12, atol=1e-14)
    value, gradient = nb.value_and_grad(lambda x: weighted(converted(x)))(x)
    np.testing.assert_allclose(value, weighted(expected), rtol=1e-12, atol=1e-14)
    numeric = slopes(function, x)
    np.testing.assert_allclose(gradient, numeric, rtol=2e-7, atol=1e-8 * max(1, np.max(np.abs(numeric))))
    tangent = nb.jvp(lambda x: weighted(converted(x)), x, np.cos(x))[1]
    np.testing.assert_allclose(tangent, gradient @ np.cos(x), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("function", SNIPPETS, ids=NAMES)
def test_plainly_the_same_or_an_error_with_the_line(function: Callable[[Any], Any]) -> None:
    x = parameters(function)
    gradient: Any = None
    error: str | None = None
    try:
        gradient = nb.grad(lambda x: weighted(function(x)))(x)
    except TracedValueError as caught:
        error = str(caught)
    if error is not None:
        assert function.__name__ not in PLAIN
        assert re.search(r"other_peoples_\w+\.py:(\d+)\)$", error) is not None, error
        assert "differentiable_source" in error
    else:
        numeric = slopes(function, x)
        np.testing.assert_allclose(gradient, numeric, rtol=2e-7, atol=1e-8 * max(1, np.max(np.abs(numeric))))
