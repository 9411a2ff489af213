"""What would lose the gradient silently is an error that names the line and the fix, in every transform.

Each function works with NumPy's arrays. Under a transform it either gives the right value and derivative (checked
against NumPy and its finite differences) or raises an error; the line that is named is the line of the function's body.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import TracedValueError

X = np.array([0.7, 0.3])
Function = Callable[[Any], Any]

CUT: list[Function] = [
    lambda x: np.sum(np.asarray(x) ** 2),
    lambda x: np.sum(np.array(x) ** 2),
    lambda x: np.sum(np.ascontiguousarray(x) ** 2),
    lambda x: np.sum(np.asarray([x[0], x[1]])),
    lambda x: np.sum(np.array([x[0], x[1]])),
    lambda x: np.sum(np.array([x[:1], x[1:]])),
    lambda x: np.sum(np.array([x[0], 2.0])),
    lambda x: np.sum(np.array((2, x[0]))),
    lambda x: np.sum(np.array([[x[0], 1.0], [x[1], 0.0]])),
    lambda x: np.sum(np.array([x[0], x[1]], dtype=float)),
    lambda x: np.sum(np.array([x[0], x[1]], dtype=object)),
    lambda x: np.sum(np.array([x, x], dtype=object)),
    lambda x: np.sum(np.fromiter((x[k] for k in range(2)), float)),
    lambda x: np.sum(np.full(3, x[0])),
    lambda x: np.sum(np.r_[x[0], x]),
    lambda x: np.sum(np.c_[x, x]),
    lambda x: np.float64(x[0]) * 2,
    lambda x: np.sum(np.float64(x)),
    lambda x: np.poly1d([x[0], x[1]])(2.0),
    lambda x: float(x[0]) * 2,
    lambda x: complex(x[0]).real,
    lambda x: x[0].item() * 2,
    lambda x: x[:1].item() * 2,
    lambda x: x.item(0) * 2,
    lambda x: sum(x.tolist()),
    lambda x: sum(list(map(float, x))),
    lambda x: math.sin(x[0]),
    lambda x: math.isclose(x[0], 0.7) * x[0],
    lambda x: np.sum(np.random.default_rng(0).normal(x, 1.0)),
    lambda x: put(np.zeros(3), 0, x[0]),
    lambda x: put(np.zeros(2), slice(None), x),
    lambda x: put(np.zeros(2), np.array([True, True]), x),
    lambda x: put(np.zeros(2), [0, 1], x),
    lambda x: put(np.zeros(2, object), 0, x[0]).astype(float).sum(),
    lambda x: changed(np.zeros(2), lambda a: a.__iadd__(x)),
    lambda x: changed(np.zeros(2), lambda a: np.multiply(x, 2, out=a)),
    lambda x: changed(np.zeros(2), lambda a: np.add(x, 2, out=a, where=np.array([True, False]))),
    lambda x: changed(np.zeros(()), lambda a: np.sum(x, out=a)),
    lambda x: changed(np.zeros(2), lambda a: np.cumsum(x, out=a)),
    lambda x: changed(np.zeros(2), lambda a: np.copyto(a, x)),
    lambda x: changed(np.zeros(2), lambda a: np.put(a, [0], x[0])),
    lambda x: changed(np.zeros(2), lambda a: np.place(a, a == 0, x)),
    lambda x: changed(np.zeros(2), lambda a: np.putmask(a, a == 0, x)),
    lambda x: changed(np.zeros((2, 2)), lambda a: np.fill_diagonal(a, x[0])),
    lambda x: changed(np.zeros(2), lambda a: np.add.at(a, [0, 0], x)),
    lambda x: changed(np.zeros(2), lambda a: a.fill(x[0])),
]
"""Functions that NumPy computes without asking the Tensor, so that the gradient would be lost."""


def put(array: np.ndarray, key: Any, value: Any) -> Any:
    array[key] = value
    return array


def changed(array: np.ndarray, change: Callable[[np.ndarray], Any]) -> Any:
    change(array)
    return np.sum(array)


TRANSFORMS: dict[str, Callable[[Function], Any]] = {
    "grad": lambda f: nb.grad(f)(X),
    "value_and_grad": lambda f: nb.value_and_grad(f)(X),
    "jit": lambda f: nb.jit(f)(X),
    "vmap": lambda f: nb.vmap(f)(np.stack([X, X])),
    "jvp": lambda f: nb.jvp(f, X, np.ones(2)),
    "vjp": lambda f: nb.vjp(f, X),
    "hessian": lambda f: nb.hessian(f)(X),
    "jit of grad": lambda f: nb.jit(nb.grad(f))(X),
    "Tensor": lambda f: nb.grad(f)(nb.Tensor(X)),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("function", CUT, ids=range(len(CUT)))
def test_a_lost_gradient_is_an_error_with_line_and_fix(function: Function, transform: str) -> None:
    with pytest.raises(TracedValueError) as caught:
        TRANSFORMS[transform](function)
    message = str(caught.value)
    place = re.search(r"\(at .*test_bad_input\.py:(\d+)\)$", message)
    assert place is not None, message
    lines, first = inspect.getsourcelines(function)
    inside = range(first, first + len(lines))
    assert int(place[1]) in inside or int(place[1]) in LINES_OF_HELPERS
    assert "differentiable_source" in message or "Leave out= away" in message or "stop_gradient" in message, message


def _lines(function: Any) -> range:
    lines, first = inspect.getsourcelines(function)
    return range(first, first + len(lines))


LINES_OF_HELPERS = {*_lines(put), *_lines(changed)}


def in_objects(x: Any) -> Any:
    """An array of objects holds Tensors as they are: nothing is lost."""
    a = np.zeros(2, dtype=object)
    a[0], a[1] = x[0], x[1] ** 2
    return np.sum(a)


ALLOWED: list[Function] = [
    in_objects,
    lambda x: x[int(x[0] > 0.5)] * int(x[1] + 3),
    lambda x: np.sum(x) if x[0] > 0.5 else np.sum(x**2),
    lambda x: x[0] * round(x[1] * 10),
    lambda x: x[0] * math.floor(x[1] * 10 + 0.5) + x[1] * math.ceil(x[0]) + x[0] * math.trunc(x[1] * 4),
    lambda x: np.sum(x) * len(x) * float(x.size),
    lambda x: np.sum(x * np.array([1.0, 2.0])),
    lambda x: np.sum(np.poly1d([1.0, 2.0])(x)),
    lambda x: sum(v * v for v in x),
    lambda x: max(x) * min(x) + abs(x[0]),
    lambda x: sorted(x)[0] ** 2,
]
"""Functions that look dangerous and are right."""


@pytest.mark.parametrize("function", ALLOWED, ids=range(len(ALLOWED)))
def test_what_is_allowed_is_right(function: Function) -> None:
    h = 1e-6
    slopes = [(function(X + h * e) - function(X - h * e)) / (2 * h) for e in np.eye(2)]
    value, gradient = nb.value_and_grad(function)(X)
    np.testing.assert_allclose(value, function(X))
    np.testing.assert_allclose(gradient, slopes, rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(nb.jvp(function, X, np.ones(2))[1], np.sum(slopes), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(nb.jit(function)(X), function(X))


def test_the_error_names_the_users_line_and_the_library_between() -> None:
    import scipy.linalg

    with pytest.raises(TracedValueError, match=r"\(at .*test_bad_input\.py:\d+, through .*scipy.*\.py:\d+\)"):
        nb.grad(lambda x: np.sum(scipy.linalg.sqrtm(np.eye(2) * x[0])))(X)


def test_where_nothing_is_recorded_values_leave() -> None:
    t = nb.Tensor(X)
    assert np.asarray(t).tolist() == X.tolist() == t.tolist() == [float(t[0]), t[1].item()]
    assert math.sin(t[0]) == math.sin(0.7)
    a = np.zeros(2)
    a[0] = t[0]
    a += t
    assert a.tolist() == [1.4, 0.3]


def test_stop_gradient_and_asnumpy_say_that_a_value_is_a_constant() -> None:
    for constant in (lambda x: np.asarray(nb.stop_gradient(x)), lambda x: x.asnumpy(), lambda x: nb.stop_gradient(x)):
        np.testing.assert_array_equal(nb.grad(lambda x, c=constant: np.sum(x * c(x)))(X), X)
