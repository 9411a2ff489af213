"""Which numbers take the dtype of what they meet: Python's do, what NumPy's functions make of them does not.

NumPy runs the same expressions and says which dtype must come out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import config
from nbgrad.errors import NbgradError
from nbgrad.functions import table as numpy_table

pytestmark = pytest.mark.unoptimized

EXPRESSIONS = """
b * a
(b * 2.0) * a
-b * a
abs(b) * a
b**2 * a
(b + b) * a
divmod(b, 0.3)[1] * a
(b if b > 0 else 1.0) * a
max(b, 0.1) * a
min(b, 0.1) * a
sum([b, b]) * a
float(b) * a
float(b) * 2 * a
(float(b) + b) * a
(float(b) + np.sin(b)) * a
float(a[0]) * a
float(np.sum(a)) * a
complex(b) * a
a[0].item() * a
a.item(0) * a
a.tolist()[0] * a
a[0] * b
a[0] * float(b)
math.sin(b) * a
math.sin(a[0]) * a
math.sqrt(float(a[0])) * a
math.hypot(b, b) * a
math.exp(np.sin(b)) * a
np.sin(b) * a
np.sin(float(b)) * a
np.sin(math.sin(b)) * a
np.add(b, b) * a
np.add(b, a)
np.add(float(b), a)
np.maximum(b, 0.1) * a
np.maximum(b, a)
np.abs(b) * a
np.negative(b) * a
np.positive(b) * a
np.square(b) * a
np.add(float(b), b) * a
np.float64(b) * a
np.float32(b) * a
np.where(b > 0, b, 1.0) * a
np.where(b > 0, b, a)
np.where(a > 0, b, 1.0) * a
np.sum(b) * a
np.max(b) * a
np.mean(b) * a
np.clip(b, 0, 1) * a
np.clip(a, b, 1)
np.clip(a, 0.0, float(b))
np.squeeze(b) * a
np.array(b) * a
np.asarray(float(b)) * a
np.full_like(a, b) * a
np.full(3, b) * a
np.array([b, b, b]) * a
np.stack([b, b, b]) * a
np.real(b) * a
np.multiply.outer(b, b) * a
np.add(b, b, dtype=np.float64) * a
""".strip().splitlines()


def interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as jit's reference interpreter runs it."""

    def call(*args: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(config, "interpret", lambda: True)
            return nb.jit(function)(*args)

    return call


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("b", [0.5, np.float64(0.5), np.float32(0.5)], ids=lambda b: type(b).__name__)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_dtypes_of_numbers(expression: str, b: Any) -> None:
    space = {"np": np, "math": math}
    exec(f"def function(a, b):\n    result = {expression}\n    return np.real(np.sum(result)), result", space)
    function: Any = space["function"]
    a = np.ones(3, np.float32)
    with np.errstate(all="ignore"):
        expected = function(a, b)[1]
    recorded = nb.differentiable_source(function)
    (_, result), _ = nb.value_and_grad(recorded, (0, 1), has_aux=True)(a, b)
    jitted = nb.jit(recorded)
    assert result.dtype == expected.dtype
    # One program for both choices has one dtype: that of NumPy's number and Python's together.
    mixed = expression == "min(b, 0.1) * a" and isinstance(b, np.float64)
    for found in (result, jitted(a, b)[1], jitted(a, b)[1], interpreted(recorded)(a, b)[1]):
        assert found.dtype == expected.dtype or mixed
        np.testing.assert_allclose(found, expected, rtol=1e-6)


ARRAY = np.ones(3, np.float32)
CALLS: tuple[tuple[Any, ...], ...] = ((0.5,), (0.5, 0.25), (0.5, 2), (True, 0.5, 0.25), (0.5, 0.25, 0.75))


def functions_of_numpy() -> dict[str, Any]:
    """All functions of NumPy's that nbgrad has, and all ufuncs."""
    numpy_table.load_all()
    ufuncs = [found for found in map(np.__dict__.get, dir(np)) if isinstance(found, np.ufunc)]
    return {
        f"{f.__module__}.{f.__name__}": f for f in [*numpy_table.IMPLEMENTATIONS, *ufuncs] if hasattr(f, "__module__")
    }


RANK = "numpy.linalg.matrix_rank"  # of vectors it is a Python int in NumPy


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("name", sorted(set(functions_of_numpy()) - {RANK}))
def test_functions_of_numbers_give_numbers_of_their_own_dtype(name: str) -> None:
    function = functions_of_numpy()[name]

    def times_float32(*args: Any) -> Any:
        result = function(*args)
        while isinstance(result, tuple | list):
            result = result[0]
        return result * ARRAY

    for args in CALLS:
        try:
            with np.errstate(all="ignore"):
                expected = times_float32(*args)
        except (TypeError, ValueError, IndexError, AttributeError, NotImplementedError, Warning):
            continue  # these arguments make no sense to NumPy
        if not isinstance(expected, np.ndarray) or expected.dtype.kind not in "fc":
            continue
        where = [k for k, value in enumerate(args) if type(value) is float]

        def of_numbers(*numbers: Any, args: Any = args, where: Any = where) -> Any:
            given = list(args)
            for k, number in zip(where, numbers, strict=True):
                given[k] = number
            result = times_float32(*given)
            return np.real(np.sum(result)), result

        try:
            (_, found), _ = nb.value_and_grad(of_numbers, has_aux=True)(*[args[k] for k in where])
        except NbgradError:
            continue  # refused, which other tests are about
        assert found.dtype == expected.dtype, args


def test_numbers_in_texts_by_the_old_operator() -> None:
    """A message of a fit, `"%g" % loss`, is no reason to refuse a gradient; under jit there is no number yet."""
    shown: list[str] = []

    def loss(x: Any) -> Any:
        value = np.sum(x**2)
        text = "%(name)s "
        text %= {"name": "loss"}
        shown.append(text + "%d: %8.3f" % (3, value))  # noqa: UP031
        return value

    x = np.array([1.0, 2.0])
    for function in (loss, nb.differentiable_source(loss)):
        np.testing.assert_array_equal(nb.grad(function)(x), [2.0, 4.0])
        with pytest.raises(TypeError, match=r"has no number yet.*write f\"\{x:g\}\""):
            nb.jit(nb.grad(function))(x)
    assert shown == ["loss 3:    5.000"] * 2


def test_remainders_of_recorded_numbers_stay_recorded() -> None:
    x = np.array([2.0, 3.0, 0.7])
    gradient = nb.grad(lambda x: 5.5 % x[0] + np.float64(7.0) % x[1] + np.sum(np.arange(3.0) % x[2]))(x)
    np.testing.assert_array_equal(gradient, [-2.0, -2.0, -3.0])
