"""`nb.elementwise`: functions that it refuses, and what the errors say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import ArgumentError, DtypeError, NbgradError, ShapeError, TracedValueError

from .test_elementwise_functions import HALF, TABLE, X, Y, mixed

# ----- Errors -----


def endless(x):
    while x > 1:
        x = x / 2
    return x


def endless_by_break(x):
    while True:
        x = x / 2
        if x < 1:
            break
    return x


def long_range(x):
    total = 0.0
    for k in range(int(x)):
        total += k
    return total


def many_turns(x):
    for _ in range(100_000):
        x = x * 0.5
    return x


def recursive(x):
    return recursive(x - 1) if x > 0 else x


def raising(x):
    if x > 0:
        raise ValueError
    return x


def asserting(x):
    assert x > 0
    return x


def looked_up(x):
    return TABLE[int(x)]


def summed(x):
    return np.sum(x)


def with_array(x):
    return X * x


def shaped(x):
    return x.shape[0]


def opened(x):
    with open("nothing"):
        return x


def listed(x):
    return sum([x * k for k in range(3)])


def stored(x):
    a = [0.0]
    a[0] = x
    return a[0]


def unknown(x):
    return x + no_such_name  # noqa: F821  # pyright: ignore


def sometimes(x):  # noqa: RET503
    if x > 0:
        return x


def text(x):
    return "positive" if x > 0 else "negative"


def two_texts(x):
    kind = "a" if x > 0 else "b"
    return x if kind == "a" else -x


def with_inner(x):
    def square(v):
        return v * v

    return square(x)


def is_one(x):
    return x if x is HALF else -x


def nothing(x):
    x + 1  # pyright: ignore


def before(x):
    y = z + x  # noqa: F821  # pyright: ignore
    z = 1
    return y + z


INSTEAD = "nb.primitive takes such a function"


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (endless, TracedValueError, f"endless.*while loop.*{INSTEAD}"),
        (endless_by_break, TracedValueError, f"while loop.*{INSTEAD}"),
        (long_range, TracedValueError, f"loop whose length depends.*{INSTEAD}"),
        (many_turns, TracedValueError, "more than 10000 turns"),
        (recursive, TracedValueError, "50 calls deep"),
        (raising, TracedValueError, "raises an exception"),
        (asserting, TracedValueError, "asserts something of the value"),
        (looked_up, TracedValueError, "element of a table"),
        (summed, ArgumentError, r"summed\(\) \(.*test_elementwise_errors.py:\d+\) calls sum\(\)"),
        (with_array, ArgumentError, r"an array of shape \(23,\), where single numbers"),
        (shaped, ArgumentError, "attribute 'shape'"),
        (opened, ArgumentError, "statement \\(With\\)"),
        (listed, ArgumentError, "expression \\(ListComp\\)"),
        (stored, ArgumentError, "writes into an array"),
        (unknown, ArgumentError, "name 'no_such_name'"),
        (before, ArgumentError, "name 'z'"),
        (sometimes, ArgumentError, "a value on some paths and none on others"),
        (text, ArgumentError, "variable that is no number"),
        (two_texts, ArgumentError, "variable that is no number"),
        (with_inner, ArgumentError, "defines a function, square"),
        (is_one, TracedValueError, "asks Is of the value"),
        (nothing, DtypeError, "returned a NoneType"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_cannot_be_recorded_is_named(function: Any, error: type[NbgradError], words: str) -> None:
    with pytest.raises(error, match=words):
        nb.elementwise(function)(X)


def test_bad_arguments() -> None:
    for given in (3, np.sum, len, "x", nb.nn.ReLU()):
        with pytest.raises(DtypeError, match="Expected a Python function of numbers"):
            nb.elementwise(given)  # type: ignore[arg-type]
    names: dict[str, Any] = {}
    exec("def made(x): return x", names)
    with pytest.raises(ArgumentError, match="text of made\\(\\) cannot be found"):
        nb.elementwise(names["made"])
    fast = nb.elementwise(mixed)
    with pytest.raises(ShapeError, match="do not broadcast"):
        fast(X, Y[:, 0])
    with pytest.raises(ArgumentError, match="other arguments than it has"):
        fast(X)
    with pytest.raises(DtypeError, match="got an object"):
        fast(X, object())
    assert repr(fast) == "<elementwise mixed>"
