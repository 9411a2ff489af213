"""Two calls share a recording only if the function cannot tell their arguments apart; NumPy gives what is expected."""

from __future__ import annotations

import collections
import dataclasses
import itertools
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import TracedValueError

X = np.array([1.0, 2.0, 3.0])
N = np.arange(3)


@dataclasses.dataclass(frozen=True)
class Scale:
    factor: Any


@dataclasses.dataclass(frozen=True)
class Nested:
    scale: Scale
    powers: tuple[Any, ...] = ()


class Pair(NamedTuple):
    first: Any
    second: Any


class OtherPair(NamedTuple):
    first: Any
    second: Any


def alternating(values: Any) -> Any:
    """A number that depends on the order."""
    return sum(v * (-2) ** k for k, v in enumerate(values))


def by_order(d: Any) -> Any:
    return alternating(d.values())


def by_key(d: Any) -> Any:
    return sum(k * v for k, v in d.items())


ORDERS = [dict(items) for items in itertools.permutations([("a", X), ("b", X * X), ("c", 5.0)])]
EQUAL_BUT_NOT_THE_SAME = {
    "dicts": (by_order, ORDERS),
    "default dicts": (by_order, [collections.defaultdict(list, d) for d in ORDERS]),
    "ordered dicts": (by_order, [collections.OrderedDict(d) for d in ORDERS]),
    "dicts within": (lambda t: by_order(t[0][0]["k"]), [([{"k": d}],) for d in ORDERS]),
    "a tuple of dicts": (lambda p: by_order(p.second), [Pair(1.0, d) for d in ORDERS]),
    "mixed keys": (by_order, [{1: X, "b": 2.0}, {"b": 2.0, 1: X}]),
    "keys of other types": (by_key, [{1: N}, {1.0: N}, {True: N}, {1: N}]),
    "kinds of containers": (lambda c: c[0] * len(type(c).__name__), [[N], (N,), collections.deque([N])]),
    "named tuples": (lambda c: c.first * len(type(c).__name__), [Pair(N, 1.0), OtherPair(N, 1.0)]),
    "default factories": (lambda d: d["a"] + d["b"], [collections.defaultdict(f, a=N) for f in (int, float)]),
    "numbers": (lambda n: N * n, [2, True, 2.0, np.float32(2), 1, False, 0]),
    "dataclasses": (lambda c: N * c.factor, [Scale(2), Scale(2.0), Scale(1), Scale(True), Scale(-0.0), Scale(0.0)]),
    "nested": (
        lambda c: N * c.scale.factor + sum(N * p for p in c.powers),
        [Nested(Scale(1), (1, 2)), Nested(Scale(1), (1, 2.0)), Nested(Scale(1.0), (1, 2)), Nested(Scale(True))],
    ),
    "decimals": (lambda d: N * len(str(d)), [Decimal("1.0"), Decimal("1.00")]),
    "sets": (lambda s: N * sum(s), [frozenset([1]), frozenset([1.0]), frozenset([True])]),
}


@pytest.mark.parametrize("name", EQUAL_BUT_NOT_THE_SAME)
def test_what_a_function_can_tell_apart_is_recorded_apart(name: str) -> None:
    plain, arguments = EQUAL_BUT_NOT_THE_SAME[name]
    compiled = nb.jit(plain)
    for argument in [*arguments, *arguments]:
        got, want = compiled(argument), plain(argument)
        np.testing.assert_array_equal(got, want)
        assert np.asarray(got).dtype == np.asarray(want).dtype
        np.testing.assert_array_equal(np.signbit(got), np.signbit(want))


def test_keywords_come_in_the_callers_order() -> None:
    def plain(**kwargs: Any) -> Any:
        return by_order(kwargs)

    compiled = nb.jit(plain)
    for order in ORDERS:
        np.testing.assert_array_equal(compiled(**order), plain(**order))


def test_equal_arguments_share_a_recording() -> None:
    compiled = nb.jit(lambda d, c: d["a"] * c.factor)
    for scale in (1.0, 2.0):
        compiled({"a": X * scale, "b": 1.0}, Scale(3))
        compiled({"a": X, "b": scale}, Scale(3))
    assert compiled.compiled_signatures == 1


@pytest.mark.parametrize(
    "transform", [nb.grad, lambda f: nb.jit(nb.grad(f)), lambda f: lambda d: nb.vjp(f, d)[1](1.0)[0]]
)
def test_gradients_have_the_callers_order(transform: Any) -> None:
    derivative = transform(lambda d: np.sum(by_order(d)))
    for order in ORDERS:
        got = derivative(order)
        assert list(got) == list(order)
        for (key, value), (_, scale) in zip(got.items(), zip(order, (1, -2, 4), strict=True), strict=True):
            np.testing.assert_array_equal(value, scale * (np.ones(3) if key != "c" else 3.0))


def test_results_have_the_functions_order() -> None:
    compiled = nb.jit(lambda d: {key: 2 * value for key, value in d.items()})
    for order in ORDERS:
        assert list(compiled(order)) == list(order)


# ----- What a function returns besides results -----

TABLE = np.array([1.0, 2.0])


@pytest.mark.parametrize(
    "constant",
    [
        lambda: np.zeros(2),
        lambda: TABLE,
        lambda: np.array([[1.0], [2.0]], order="F"),
        lambda: np.ma.masked_array([1.0, 2.0], [False, True]),
        lambda: np.array([[1.0], None], dtype=object),
        lambda: {1, 2},
        lambda: bytearray(b"ab"),
    ],
)
def test_constants_belong_to_the_caller(constant: Any) -> None:
    def plain(x: Any) -> Any:
        return x * 2, {"constant": constant()}

    def write(value: Any) -> None:
        if isinstance(value, set):
            value.add(3)
        elif isinstance(value, bytearray) or value.dtype != object:
            value[:] = value[:1]
        else:
            value[0][0] = 7.0

    with_aux = nb.jit(nb.value_and_grad(lambda x: (np.sum(x), plain(x)[1]), has_aux=True))
    for function in (nb.jit(plain), lambda x: with_aux(x)[0]):
        for _ in range(4):
            found = function(X)[1]["constant"]
            assert repr(found) == repr(constant())
            write(found)
    assert TABLE[1] == 2.0


def test_constants_are_those_of_the_recording() -> None:
    table = np.array([1.0, 2.0])
    compiled = nb.jit(lambda x: (x * 2, table))
    compiled(X)
    table[:] = 5.0
    np.testing.assert_array_equal(compiled(X)[1], [1.0, 2.0])


def test_no_two_results_share_memory() -> None:
    def twice(x: Any) -> Any:
        y, c = x * 2, np.zeros(3)
        return x, x, y, y, y[:1], c, c, (x * 2,)

    compiled = nb.jit(twice)
    for _ in range(3):
        *results, (last,) = compiled(X)
        for one, other in itertools.combinations([X, *results, last], 2):
            assert not np.shares_memory(one, other)


def test_objects_that_are_no_containers_hide_nothing() -> None:
    class Found:
        def __init__(self, value: Any) -> None:
            self.value = value

    def plain(x: Any) -> Any:
        total = np.sum(x)
        return (x if total > 0 else -x), Found(total)

    with pytest.raises(TracedValueError, match=r"plain\(\) returns a .*Found with a value that jit records"):
        nb.jit(plain)(X)
    constant = nb.jit(lambda x: (x * 2, Found(3.0)))
    assert constant(X)[1].value == constant(X)[1].value == 3.0
