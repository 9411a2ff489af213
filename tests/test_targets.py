"""`out=` and `donate=` of compiled functions: results where the caller wants them."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import errors

X = np.linspace(-2.0, 3.0, 24).reshape(4, 6)


def both(x: Any) -> Any:
    return {"value": np.sum(x**2), "gradients": (2 * x, [x.T, x[1]])}


def empty_like(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: empty_like(value) for key, value in tree.items()}
    if isinstance(tree, tuple | list):
        return type(tree)(empty_like(value) for value in tree)
    return np.full_like(tree, -77)


def flat(tree: Any) -> list[np.ndarray]:
    if isinstance(tree, dict):
        return [part for key in sorted(tree) for part in flat(tree[key])]
    if isinstance(tree, tuple | list):
        return [part for value in tree for part in flat(value)]
    return [np.asarray(tree)]


# Functions of X whose specializations differ: native code with tuples, dicts, guards, checks, Tensors.
FUNCTIONS: dict[str, Any] = {
    "one": lambda x: np.exp(x) + 1,
    "pair": lambda x: (x * 2, np.sum(x)),
    "nested": lambda x: ((x + 1, (x - 1,)), x[0]),
    "dict": both,
    "gradient": nb.value_and_grad(lambda x: np.sum(np.sin(x) @ x.T)),
    "jacobian": nb.jacrev(lambda x: np.sum(x**3, axis=1)),
    "guard": lambda x: x * 2 if np.sum(x) > 0 else x - 1,
    "input": lambda x: (x, x.T),
    "constant": lambda x: (np.zeros((2, 2)) + 1.0, x),
}


@pytest.mark.parametrize("kind", [np.asarray, nb.Tensor], ids=["ndarray", "Tensor"])
@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_results_go_where_they_are_wanted(name: str, kind: Any) -> None:
    function = nb.jit(FUNCTIONS[name])
    for x in (X, X - 5, X + 1):
        expected = nb.jit(FUNCTIONS[name])(x)
        out = empty_like(expected)
        assert function(kind(x), out=out) is out
        for part, wanted in zip(flat(out), flat(expected), strict=True):
            np.testing.assert_array_equal(part, wanted)
        again = function(kind(x))
        for part, wanted in zip(flat(out), flat(again), strict=True):
            np.testing.assert_array_equal(part, np.asarray(wanted))


@pytest.mark.parametrize("first", [True, False])
def test_arrays_that_overlap_arguments(first: bool) -> None:
    function = nb.jit(lambda x: np.cumsum(x[::-1]))
    x = np.arange(9.0)
    if not first:
        function(x)
    memory = np.arange(12.0)
    expected = np.cumsum(memory[1:10][::-1])
    function(memory[1:10], out=memory[3:12])
    np.testing.assert_array_equal(memory[3:12], expected)
    x = np.arange(9.0)
    function(x, out=x)
    np.testing.assert_array_equal(x, np.cumsum(np.arange(9.0)[::-1]))


def test_arrays_in_any_layout() -> None:
    function = nb.jit(lambda x: x * 2)
    for _ in range(2):
        for out in (np.empty((6, 4)).T, np.empty((4, 12))[:, ::2], np.empty((4, 6), ">f8"), np.asfortranarray(X * 0)):
            assert function(X, out=out) is out
            np.testing.assert_array_equal(out, X * 2)
        matrix = np.empty((4, 6)).view(np.matrix)
        assert function(X, out=matrix) is matrix
        np.testing.assert_array_equal(np.asarray(matrix), X * 2)


def test_another_signature_with_out() -> None:
    function = nb.jit(lambda x, s: x * s)
    function(X, 2.0)
    out = np.empty(3, np.float32)
    function(np.ones(3, np.float32), 3.0, out=out)
    np.testing.assert_array_equal(out, np.full(3, 3, np.float32))
    wide = np.empty((4, 6))
    for scale in (2.0, np.float64(4.0)):
        function(X, scale, out=wide)
        np.testing.assert_array_equal(wide, X * scale)
    function(x=X, s=5.0, out=wide)
    np.testing.assert_array_equal(wide, X * 5)
    np.testing.assert_array_equal(function(X, 2.0, out=None), X * 2)


def read_only() -> np.ndarray:
    array = np.empty((4, 6))
    array.flags.writeable = False
    return array


TWICE = np.empty((4, 6))
REFUSED = [
    (np.empty((4, 6)), errors.ArgumentError, "nested like"),
    ((np.empty((4, 6)),), errors.ArgumentError, "nested like"),
    ((np.empty((6, 4)), np.empty((4, 6))), errors.ShapeError, r"shape \(6, 4\)"),
    ((np.empty((4, 6)), np.empty((4, 6), np.float32)), errors.DtypeError, "dtype float32"),
    ((np.empty((4, 6)), read_only()), errors.ArgumentError, "read-only"),
    ((TWICE, TWICE), errors.ArgumentError, "shares memory"),
    ((nb.Tensor(X), TWICE), errors.ArgumentError, "must be an ndarray"),
    ((TWICE, 1.0), errors.ArgumentError, "must be an ndarray"),
]


@pytest.mark.parametrize(("out", "error", "message"), REFUSED)
def test_arrays_that_do_not_fit(out: Any, error: type, message: str) -> None:
    function = nb.jit(lambda x: (x + 1, x * 2))
    for _ in range(2):
        with pytest.raises(error, match=message):
            function(X, out=out)
        function(X)


def test_functions_with_an_out_of_their_own() -> None:
    function = nb.jit(lambda x, out="left": x + 1 if out == "left" else x - 1)
    np.testing.assert_array_equal(function(X, out="right"), X - 1)


def test_out_while_recording() -> None:
    inner = nb.jit(lambda x: x * 2)
    with pytest.raises(errors.TracedValueError, match="while it is recorded"):
        nb.jit(lambda x: inner(x, out=np.empty((4, 6))))(X)


# ----- Donation -----

# Name, function of two arrays, whether the first result takes the first argument's memory.
DONATIONS = [
    ("step", lambda w, g: w - 0.1 * g, True),
    ("two results", lambda w, g: (w - 0.1 * g, np.sum(w * g)), True),
    ("momentum", lambda w, g: (w - 0.1 * (0.9 * g + w), 0.9 * g + w), True),
    ("after a product", lambda w, g: np.tanh(w @ g.T) @ g, True),
    ("shifted", lambda w, g: np.roll(w, 1, axis=0) + g, False),
    ("row sums", lambda w, g: w / np.sum(w * w, axis=1, keepdims=True) + g, None),
    ("turned", lambda w, g: w[::-1] * g, False),
    ("product", lambda w, g: (w @ w.T) @ w + 0 * g, None),
    ("unrelated", lambda w, g: g * 2, None),
    ("smaller", lambda w, g: np.sum(w * g, axis=0), False),
    ("other dtype", lambda w, g: (w * g).astype(np.float32), False),
    ("itself", lambda w, g: w, None),
]


@pytest.mark.parametrize(("function", "taken"), [d[1:] for d in DONATIONS], ids=[d[0] for d in DONATIONS])
@pytest.mark.parametrize("rows", [4, 3000])
def test_donated_arguments(function: Any, taken: bool | None, rows: int) -> None:
    rng = np.random.default_rng(rows)
    w, g = rng.standard_normal((2, rows, 7))
    expected = nb.jit(function)(w, g)
    compiled = nb.jit(function, donate=0)
    for _ in range(3):
        given, other = w.copy(), g.copy()
        found = compiled(given, other)
        for part, wanted in zip(flat(found), flat(expected), strict=True):
            np.testing.assert_array_equal(part, wanted)
        np.testing.assert_array_equal(other, g)
        first = found[0] if isinstance(found, tuple) else found
        if taken is not None:
            assert (first is given) == taken
        if first is not given:
            assert not any(np.may_share_memory(part, given) for part in flat(found))


def test_donated_arguments_that_share_memory() -> None:
    step = nb.jit(lambda w, g: (w - g[::-1], w * g), donate=(0, 1))
    for _ in range(2):
        memory = np.arange(10.0)
        found = step(memory, memory)
        np.testing.assert_array_equal(found[0], np.arange(10.0) - np.arange(10.0)[::-1])
        np.testing.assert_array_equal(found[1], np.arange(10.0) ** 2)
        memory = np.arange(12.0)
        found = step(memory[:10], memory[2:])
        np.testing.assert_array_equal(found[0], np.arange(10.0) - np.arange(2.0, 12.0)[::-1])
        np.testing.assert_array_equal(found[1], np.arange(10.0) * np.arange(2.0, 12.0))


def test_donated_containers() -> None:
    step = nb.jit(lambda p, g: (p[0] - g[0], p[1] - g[1]), donate=0)
    p = (np.ones(3), np.ones((2, 2)))
    for k in range(3):
        found = step(p, (np.ones(3), np.ones((2, 2))))
        assert found[0] is p[0] and found[1] is p[1]
        np.testing.assert_array_equal(p[0], -k * np.ones(3))


def test_donated_arrays_that_are_no_plain_memory() -> None:
    step = nb.jit(lambda w, g: w - g, donate=0)
    memory = np.arange(20.0)
    np.testing.assert_array_equal(step(memory[::2], np.ones(10)), np.arange(0.0, 20.0, 2) - 1)
    np.testing.assert_array_equal(memory, np.arange(20.0))
    step(memory[5:15], np.ones(10))
    np.testing.assert_array_equal(memory, [*range(5), *range(4, 14), *range(15, 20)])
    tensor = nb.Tensor(np.ones(10))
    np.testing.assert_array_equal(step(tensor, np.ones(10)).asnumpy(), np.zeros(10))
    np.testing.assert_array_equal(tensor.asnumpy(), np.ones(10))


def test_read_only_arrays_cannot_be_donated() -> None:
    step = nb.jit(lambda w, g: w - g, donate=0)
    for _ in range(2):
        with pytest.raises(errors.ArgumentError, match="read-only"):
            step(read_only(), X)
        step(X.copy(), X)


@pytest.mark.parametrize("donate", [-1, "0", 1.0, (0, -2), True, None])
def test_positions_that_are_none(donate: Any) -> None:
    with pytest.raises(errors.ArgumentError, match="position of an argument"):
        nb.jit(lambda x: x, donate=donate)


def test_donated_positions_must_exist() -> None:
    with pytest.raises(errors.ArgumentError, match="counted from 0"):
        nb.jit(lambda x, y: x + y, donate=1)(X, y=X)


def double(x: Any) -> Any:
    return x * 2


def test_donation_is_kept() -> None:
    for made in (
        nb.jit(donate=0)(double),
        nb.jit(nb.jit(double), donate=(0,)),
        pickle.loads(pickle.dumps(nb.jit(double, donate=0))),
    ):
        x = X.copy()
        assert made(x) is x
    assert nb.jit(nb.jit(double, donate=0)).donate == (0,)


def test_guards_read_before_anything_is_lost() -> None:
    # Which path is right shows after the program has run: donated arrays must still be there for the other path.
    step = nb.jit(lambda w: w * 2 if np.sum(w) > 0 else w - 1, donate=0)
    for w in (np.ones(5), -np.ones(5), np.ones(5), -np.ones(5)):
        expected = w * 2 if w[0] > 0 else w - 1
        np.testing.assert_array_equal(step(w), expected)


def test_donation_on_many_threads() -> None:
    step = nb.jit(lambda w, g: w - 0.5 * g, donate=0)
    wrong: list[int] = []

    def work(seed: int) -> None:
        w = np.full(40_000, float(seed))
        for k in range(50):
            w = step(w, np.ones(40_000))
            if not np.array_equal(w, np.full(40_000, seed - 0.5 * (k + 1))):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
