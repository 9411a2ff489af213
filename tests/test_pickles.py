"""Decorated functions are pickled by name, as plain ones are, so that pools of processes can call them."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

pytestmark = pytest.mark.unoptimized
X = np.array([0.3, 0.8, 1.1])


def squares(x: Any) -> Any:
    return np.sum(np.sin(x) ** 2)


@nb.jit
def compiled(x: Any) -> Any:
    return np.sum(np.sin(x) ** 2)


@nb.jit
@nb.grad
def slope(x: Any) -> Any:
    return np.sum(np.sin(x) ** 2)


@nb.custom_vjp
def clipped(x: Any) -> Any:
    return np.exp(x)


clipped.defvjp(lambda x: (np.exp(x), x), lambda x, g: (g * np.minimum(np.exp(x), 1.0),))


@nb.elementwise
def bent(x: float) -> float:
    return x * x if x > 0.5 else x


@nb.sparse_jacobian
def rates(x: Any) -> Any:
    return x * x


another = nb.jit(nb.grad(compiled))


@nb.callback(differences="central", name="a simulator")
def simulated(x: Any) -> Any:
    return x * x


@pytest.mark.parametrize("name", ["compiled", "slope", "clipped", "bent", "rates", "another", "simulated"])
def test_functions_of_modules_are_pickled_by_name(name: str) -> None:
    function = globals()[name]
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.deepcopy(function) is function


def test_others_are_pickled_with_the_function_that_they_hold() -> None:
    again = pickle.loads(pickle.dumps(nb.jit(squares)))
    assert again.fn is squares and again(X) == pytest.approx(np.sum(np.sin(X) ** 2), rel=1e-15)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pickle.dumps(nb.jit(lambda x: x))


@pytest.mark.fork
def test_a_pool_calls_them() -> None:
    with ProcessPoolExecutor(1, get_context("fork")) as pool:
        (found,) = pool.map(slope, [X])
    np.testing.assert_allclose(found, np.sin(2 * X), rtol=1e-13)
