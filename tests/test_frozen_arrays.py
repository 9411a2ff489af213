"""`jit(f, frozen="check")`: a call after an array from outside has changed is an error, not an old value."""

from __future__ import annotations

import pickle
import random
import threading
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

pytestmark = pytest.mark.unoptimized

X = np.array([1.0, 2.0])
TABLE = np.array([10.0, 20.0])
LARGE = np.arange(5000.0)
HELD = {"table": np.array([5.0, 6.0])}


def by_global(x: Any) -> Any:
    return x * TABLE


def by_element(x: Any) -> Any:
    return x * float(TABLE[0])


def by_plain_numpy(x: Any) -> Any:
    return x * np.sqrt(TABLE)[0]


def by_view(x: Any) -> Any:
    return x + LARGE[10:12]


def by_object(x: Any) -> Any:
    return x + HELD["table"][::-1]


def inside_of_a_gradient(x: Any) -> Any:
    return nb.grad(lambda y: np.sum(y * y * TABLE))(x)


GENERATOR, OLDER, PYTHONS = np.random.default_rng(0), np.random.RandomState(1), random.Random(2)


class Noisy:
    def __init__(self) -> None:
        self.rng = np.random.default_rng(0)

    def __call__(self, x: Any) -> Any:
        return x + self.rng.normal()

    def shifted(self, x: Any) -> Any:
        return x + self.rng.normal(size=2)


def scattered(x: Any) -> Any:
    return x + GENERATOR.normal(size=2)


DRAWS: dict[str, tuple[Any, str, tuple[Any, ...]]] = {
    "NumPy's": (lambda x: x + np.random.normal(size=2), r"numpy\.random", ()),
    "Python's": (lambda x: x * random.random(), "by random", ()),
    "a generator": (scattered, "GENERATOR", ()),
    "an older generator": (lambda x: x * OLDER.rand(), "OLDER", ()),
    "an object of Python's": (lambda x: x * PYTHONS.random(), "PYTHONS", ()),
    "an argument": (lambda x, rng: x * rng.normal(), "an argument of type Generator", (GENERATOR,)),
    "a helper": (lambda x: scattered(x) ** 2, "GENERATOR", ()),
    "a method": (Noisy().shifted, r"self\.rng", ()),
    "converted code": (nb.differentiable_source(lambda x: np.sum(x) * GENERATOR.random()), "GENERATOR", ()),
}


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("derived", [False, True])
def test_draws_while_jit_records_warn(name: str, derived: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    function, said, further = DRAWS[name]
    # Other tests may have left threads, which could draw from what all threads share.
    monkeypatch.setattr(threading, "active_count", lambda: 1)
    compiled = nb.jit(nb.grad(function) if derived else function)
    with pytest.warns(nb.errors.FrozenDrawWarning, match=said) as found:
        first = compiled(X, *further)
    assert len(found) == 1 and found[0].filename == __file__
    np.testing.assert_array_equal(compiled(X, *further), first)  # as it was said


def test_draws_outside_and_of_nbgrads_generators_do_not_warn() -> None:
    rng = np.random.default_rng(0)

    def noisy(x: Any, noise: Any) -> Any:
        return x + noise + nb.ops.standard_normal((2,)) + np.random.default_rng(1).normal()

    compiled = nb.jit(noisy)
    assert not np.array_equal(compiled(X, rng.normal(size=2)), compiled(X, rng.normal(size=2)))


FUNCTIONS = {
    "global": (by_global, TABLE),
    "an element": (by_element, TABLE),
    "a result of NumPy's": (by_plain_numpy, TABLE),
    "a view": (by_view, LARGE),
    "a dict": (by_object, HELD["table"]),
    "a gradient inside": (inside_of_a_gradient, TABLE),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_changes_in_place_are_noticed(name: str) -> None:
    function, array = FUNCTIONS[name]
    compiled = nb.jit(function, frozen="check")
    for _ in range(4):
        np.testing.assert_array_equal(compiled(X), function(X))
    kept = array.copy()
    try:
        array += 1.0
        with pytest.raises(nb.errors.TracedValueError, match=r"has changed in place since. Make it an argument of"):
            compiled(X)
        array -= 1.0
        np.testing.assert_array_equal(compiled(X), function(X))
        array[10 if array is LARGE else 0] = np.nan
        with pytest.raises(nb.errors.TracedValueError, match=function.__name__):
            compiled(x=X)
    finally:
        array[:] = kept


def test_closures_and_names_that_mean_others() -> None:
    scale = np.array([3.0, 4.0])

    @nb.jit(frozen="check")
    def scaled(x: Any) -> Any:
        return x * scale

    np.testing.assert_array_equal(scaled(X), [3, 8])
    scale = np.array([3.0, 4.0])  # another array with the same values
    np.testing.assert_array_equal(scaled(X), [3, 8])
    scale = np.array([0.0, 4.0])
    with pytest.raises(nb.errors.TracedValueError, match="scale is another value since"):
        scaled(X)


def test_what_the_function_makes_itself_is_not_looked_at() -> None:
    def own(x: Any) -> Any:
        weights = np.arange(2.0)
        weights[0] = 5.0
        return x * weights + np.arange(4.0).reshape(2, 2)[1]

    compiled = nb.jit(own, frozen="check")
    for _ in range(3):
        np.testing.assert_array_equal(compiled(X), [7.0, 5.0])
    assert not compiled._frozen._kept


def test_every_signature_and_copies() -> None:
    compiled = nb.jit(by_global, frozen="check")
    assert nb.jit(compiled) is compiled
    compiled(X)
    compiled(np.float32(2.0))
    copy = pickle.loads(pickle.dumps(compiled))
    np.testing.assert_array_equal(copy(X), [10, 40])
    TABLE[0] += 1.0
    try:
        with pytest.raises(nb.errors.TracedValueError):
            compiled(np.float32(2.0))
        with pytest.raises(nb.errors.TracedValueError):
            copy(X)
        np.testing.assert_array_equal(nb.jit(by_global)(X), [11, 40])
    finally:
        TABLE[0] -= 1.0


def test_without_the_check_values_stay() -> None:
    held = np.array([1.0])
    compiled = nb.jit(lambda x: x * held)
    assert compiled(np.ones(1))[0] == 1.0
    held[0] = 2.0
    assert compiled(np.ones(1))[0] == 1.0
    with pytest.raises(ValueError, match="frozen must be 'trust' or 'check', but got 'often'"):
        nb.jit(np.sin, frozen="often")


def test_an_array_behind_a_view_is_noticed_by_its_only_other_holder() -> None:
    """The view is gone after the recording, and the array is held by one variable."""
    held = [np.arange(5000.0)]
    compiled = nb.jit(lambda x: x + held[0][10:12], frozen="check")
    np.testing.assert_array_equal(compiled(X), [11.0, 13.0])
    held[0][10] = 0.5
    with pytest.raises(nb.errors.TracedValueError, match="changed in place"):
        compiled(X)


def test_names_in_functions_that_are_differentiated() -> None:
    data = np.ones(3)

    def product(x: Any) -> Any:
        return np.sum(data * x)

    compiled = nb.jit(nb.grad(product), frozen="check")
    np.testing.assert_array_equal(compiled(np.ones(3)), data)
    data = np.full(3, 7.0)
    with pytest.raises(nb.errors.TracedValueError, match="data is another value"):
        compiled(np.ones(3))
