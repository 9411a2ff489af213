"""Compiled calls with containers and keywords: Python takes them apart, native code reads the arrays in them.

Each call gives what the plain function gives in NumPy. `served` counts the calls that needed more of Python than that.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytest

import nbgrad as nb

pytestmark = pytest.mark.unoptimized(but=16)

X = np.array([0.5, -1.0, 2.0])
W = np.array([3.0, 0.25, -2.0])


class Pair(NamedTuple):
    first: Any
    second: Any


@contextmanager
def counted(f: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Filled with the calls that have to find their specialization."""
    found: list[Any] = []
    find = f._find
    with monkeypatch.context() as patch:
        patch.setattr(f, "_find", lambda *given: (found.append(given), find(*given))[1])
        # The door that is open has bound the way around it before.
        yield found


def warm(f: Any, *args: Any, **kwargs: Any) -> None:
    for _ in range(3):
        f(*args, **kwargs)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = {
    "tuple": (lambda p, x: p[0] * x + p[1], ((W, X), X), {}),
    "list": (lambda p, x: p[0] * x + p[1], ([W, 2.0], X), {}),
    "dict": (lambda p, x: p["w"] * x + p["b"], ({"w": W, "b": np.float32(0.5)}, X), {}),
    "ordered dict": (lambda p: p["w"] - p["b"], (collections.OrderedDict(w=W, b=X),), {}),
    "named tuple": (lambda p: Pair(p.second, p.first * 2), (Pair(W, X),), {}),
    "nested": (lambda p: p["layers"][1]["w"] * p["layers"][0]["w"], ({"layers": [{"w": W}, {"w": X}]},), {}),
    "empty parts": (lambda p, x: x + len(p[0]), (([], None, ()), X), {}),
    "constants inside": (lambda p, x: x ** p["n"] if p["name"] == "power" else x, ({"n": 3, "name": "power"}, X), {}),
    "keywords": (lambda x, *, scale, shift=0.0: x * scale + shift, (X,), {"scale": W}),
    "keywords and containers": (lambda p, *, x: p["w"] * x, ({"w": W},), {"x": [X, X][0]}),
    "a container as the result": (lambda p: {"sum": p[0] + p[1], "kind": "sum"}, ((W, X),), {}),
    "a guard": (lambda p: p[0] * 2 if np.sum(p[0]) > 0 else p[0] - 1, ((W, X),), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_calls_with_containers(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, args, kwargs = CASES[name]
    f = nb.jit(function)
    warm(f, *args, **kwargs)
    with counted(f, monkeypatch) as found:
        got = f(*args, **kwargs)
    assert not found
    same(got, function(*args, **kwargs))


def same(got: Any, want: Any) -> None:
    """The same values in the same containers."""
    assert type(got) is type(want) or not isinstance(want, tuple | list | dict)
    if isinstance(want, dict):
        assert list(got) == list(want)
        same(list(got.values()), list(want.values()))
    elif isinstance(want, tuple | list):
        assert len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            same(one, other)
    elif isinstance(want, str):
        assert got == want
    else:
        np.testing.assert_allclose(got, want, rtol=1e-15)


def ordered(p: dict[Any, Any]) -> Any:
    """A result that depends on the order of the keys, and on their types."""
    total: Any = 0.0
    for position, (key, value) in enumerate(p.items()):
        total = total + (position + 1) * (2 if type(key) is bool else 1) * value
    return total


OTHERS: dict[str, tuple[Callable[..., Any], Any, list[Any]]] = {
    "order of keys": (ordered, {"a": W, "b": X}, [{"b": W, "a": X}, {"a": W}, {"a": W, "b": X, "c": X}]),
    "types of keys": (ordered, {1: W}, [{True: W}, {1.0: W}]),
    "containers": (lambda p: p[0] + len(p), (W, X), [[W, X], (W,), (W, X, X), (W, (X,)), (W, None)]),
    "shapes": (lambda p: p[0] * 2, (W, X), [(W[:2], X), (np.float64(2.0), X), (np.array(2.0), X), (3.0, X), (3, X)]),
    "dtypes": (lambda p: p[0] * 2, (W,), [(W.astype("f4"),), (W > 0,), (W[::-1],), (np.float32(2),), (1 + 2j,)]),
    "constants": (lambda p: p[0] * p[1], (W, 2), [(W, 3), (W, True), (W, 2.0), (W, 2**40)]),
    "guards": (lambda p: p[0] * 2 if np.sum(p[0]) > 0 else p[0] - 1, (W,), [(-W,), (W,), (np.zeros(3),)]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_calls_unlike_the_last_one(name: str) -> None:
    """The door serves none of them, and still serves its own."""
    function, usual, others = OTHERS[name]
    f = nb.jit(function)
    for other in others:
        warm(f, usual)
        same(f(other), function(other))
        same(f(usual), function(usual))


def test_keywords_in_any_order_and_defaults() -> None:
    def scaled(x: Any, *, a: Any = 1.0, b: Any = 0.0) -> Any:
        return x * a + b

    f = nb.jit(scaled)
    for given in ({"a": W, "b": X}, {"b": X, "a": W}, {"a": W}, {}, {"b": 2}, {"a": W, "b": X}):
        warm(f, X, **given)
        same(f(X, **given), scaled(X, **given))
        same(f(X), X)
    with pytest.raises(TypeError, match="unexpected keyword"):
        f(X, c=W)
    out = np.empty(3)
    assert f(X, a=W, out=out) is out
    same(out, X * W)


def test_tensors_and_parameters_in_containers() -> None:
    weight = nb.Parameter(nb.Tensor(W), name="w")
    f = nb.jit(lambda p, x: (p["w"] * x).sum())
    for value in (nb.Tensor(W), weight, nb.Tensor(2 * W)):
        p = {"w": value}
        warm(f, p, nb.Tensor(X))
        assert float(f(p, nb.Tensor(X))) == float(np.sum(value.asnumpy() * X))
    weight.set_data(nb.Tensor(np.ones(3)))
    assert float(f({"w": weight}, nb.Tensor(X))) == 1.5


def test_leaves_in_containers_get_gradients() -> None:
    f = nb.jit(lambda p, *, x: (p["w"] * x * x).sum())
    w = nb.Tensor(W)
    warm(f, {"w": w}, x=nb.Tensor(X))
    w.requires_grad_()
    f({"w": w}, x=nb.Tensor(X)).backward()
    gradient: Any = w.grad
    same(gradient.asnumpy(), X * X)


def test_inside_of_recordings() -> None:
    f = nb.jit(lambda p, x: np.sum(p["w"] * x))
    warm(f, {"w": W}, X)
    same(nb.grad(lambda w: f({"w": w}, X) ** 2)(W), 2 * np.sum(W * X) * X)
    same(nb.grad(lambda p: f(p, X))({"w": W}), {"w": X})


def test_donated_arrays_in_containers() -> None:
    f = nb.jit(lambda p, g: p["w"] - 0.5 * g, donate=0)
    held = W.copy()
    for k in range(1, 5):
        assert f({"w": held}, np.ones(3)) is held
        same(held, W - 0.5 * k)
    held.flags.writeable = False
    with pytest.raises(nb.errors.ArgumentError, match="read-only"):
        f({"w": held}, np.ones(3))
