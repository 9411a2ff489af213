"""Loops that are said (`scan`, `fori_loop`, `map`) against the Python loops that they stand for, in every transform.

The values are NumPy's own; slopes are compared with complex steps or those of the loop written out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

pytestmark = pytest.mark.unoptimized(but=16)

RNG = np.random.default_rng(7)
X, W = RNG.normal(size=3), RNG.normal(size=(3, 3)) / 2
DATA = RNG.normal(size=(6, 3))


def python_scan(
    f: Callable[..., Any], init: Any, xs: Any = None, length: int | None = None, reverse: bool = False
) -> Any:
    """The loop in Python, for arrays and tuples of arrays."""
    count = length if length is not None else len(xs[0] if isinstance(xs, tuple) else xs)
    order = range(count)[::-1] if reverse else range(count)
    results: list[Any] = []
    for k in order:
        part = None if xs is None else tuple(x[k] for x in xs) if isinstance(xs, tuple) else xs[k]
        init, result = f(init, part)
        results.append(result)
    results = results[::-1] if reverse else results
    if not results or results[0] is None:
        return init, None
    if isinstance(results[0], tuple):
        return init, tuple(np.stack(column) for column in zip(*results, strict=True))
    return init, np.stack(results)


def _kalman(scan: Any, x: Any, w: Any) -> Any:
    """A filter: products, a linear system and a determinant in each turn."""

    def step(carry: Any, seen: Any) -> Any:
        mean, cov = carry
        cov = w @ cov @ w.T + np.eye(3)
        mean = w @ mean
        total = cov + 0.5 * np.eye(3)
        gain = np.linalg.solve(total, cov).T
        error = seen - mean
        logdet = np.log(np.linalg.det(total))
        return (mean + gain @ error, cov - gain @ cov), logdet + error @ np.linalg.solve(total, error)

    return np.sum(scan(step, (x, np.eye(3)), DATA)[1])


def _lstm(scan: Any, x: Any, w: Any) -> Any:
    def step(carry: Any, seen: Any) -> Any:
        h, c = carry
        gate = 1 / (1 + np.exp(-(w @ h + seen)))
        c = gate * c + (1 - gate) * np.tanh(w @ seen)
        return (gate * np.tanh(c), c), h

    last, every = scan(step, (x, 0.5 * x), DATA)
    return np.sum(last[0] * x) + np.sum(every[::2] ** 2)


def _backwards(scan: Any, x: Any, w: Any) -> Any:
    last, every = scan(lambda c, s: (np.sin(c @ w) + s, c * s), x, DATA, reverse=True)
    return last @ every[1] + np.sum(every[0])


def _nested(scan: Any, x: Any, w: Any) -> Any:
    def inner(c: Any, s: Any) -> Any:
        return c * 0.9 + np.tanh(s @ w), c[0]

    def outer(c: Any, s: Any) -> Any:
        c, firsts = scan(inner, c + s, DATA[:4])
        return c, np.sum(firsts) * s

    last, every = scan(outer, x, DATA)
    return np.sum(last) + np.sum(every**2)


def _branch(scan: Any, x: Any, w: Any) -> Any:
    """A branch whose slope is infinite where it is not taken."""

    def step(c: Any, s: Any) -> Any:
        return np.where(c > 0, np.sqrt(np.where(c > 0, c, 1.0)) * s, c * 0.5), None

    return np.sum(scan(step, x, DATA)[0] * (w @ x))


def _without_slices(scan: Any, x: Any, w: Any) -> Any:
    return np.sum(scan(lambda c, _: (np.cos(w @ c), c * c), x, None, length=5)[1])


def _swapped(scan: Any, x: Any, w: Any) -> Any:
    """A value that only waits, one that is given on, and one that never changes."""
    last, every = scan(lambda c, s: ((c[1], c[0] * s, c[2]), (c[0], c[2])), (x, w[0], w[1]), DATA)
    return np.sum(last[0] * last[2]) + np.sum(every[0] * every[1])


PROGRAMS = [_kalman, _lstm, _backwards, _nested, _branch, _without_slices, _swapped]


def _rolled(program: Any) -> Callable[..., Any]:
    return lambda x, w: program(nb.scan, x, w)


def _plain(program: Any) -> Callable[..., Any]:
    return lambda x, w: program(python_scan, x, w)


TRANSFORMS: dict[str, Callable[..., Any]] = {
    "value": lambda f: f(X, W),
    "jit": lambda f: nb.jit(f)(X, W),
    "grad": lambda f: nb.grad(f, (0, 1))(X, W),
    "jit of grad": lambda f: nb.jit(nb.value_and_grad(f, (0, 1)))(X, W),
    "jvp": lambda f: nb.jvp(f, (X, W), (np.ones(3), np.eye(3))),
    "jit of jvp": lambda f: nb.jit(lambda x, w: nb.jvp(f, (x, w), (np.ones(3), np.eye(3))))(X, W),
    "hessian": lambda f: nb.hessian(f, 0)(X, W),
    "jvp of grad": lambda f: nb.jvp(nb.grad(f, 0), (X, W), (np.ones(3), np.eye(3))),
    "grad of grad": lambda f: nb.grad(lambda x, w: np.sum(nb.grad(f, 1)(x, w) ** 2), (0, 1))(X, W),
    "vmap": lambda f: nb.vmap(f, (0, None))(np.stack([X, 2 * X, -X]), W),
    "vmap of grad": lambda f: nb.vmap(nb.grad(f, (0, 1)), (None, 0))(X, np.stack([W, -W])),
    "grad of vmap": lambda f: nb.grad(lambda x, w: np.sum(nb.vmap(f, (0, None))(x, w) ** 2), (0, 1))(DATA, W),
}


@pytest.mark.sampled(of=4)
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_scan_is_the_loop_that_it_stands_for(program: Any, transform: str) -> None:
    found = TRANSFORMS[transform](_rolled(program))
    expected = TRANSFORMS[transform](_plain(program))
    for a, b in zip(_flat(found), _flat(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


def _flat(tree: Any) -> list[Any]:
    return [leaf for part in tree for leaf in _flat(part)] if isinstance(tree, tuple) else [tree]


@pytest.mark.parametrize("program", PROGRAMS)
def test_values_are_numpys_own(program: Any) -> None:
    np.testing.assert_allclose(nb.jit(_rolled(program))(X, W), program(python_scan, X, W), rtol=1e-12)


@pytest.mark.parametrize("program", [_lstm, _backwards, _nested, _without_slices, _swapped])
def test_slopes_are_those_of_complex_steps(program: Any) -> None:
    """f(x + ih) = f(x) + ih f'(x) + O(h**2): Squire and Trapp, SIAM Review 40, 1998."""
    found = nb.grad(_rolled(program), 0)(X, W)
    steps = [program(python_scan, X + 1e-30j * unit, W).imag / 1e-30 for unit in np.eye(3)]
    np.testing.assert_allclose(found, steps, rtol=1e-10)


# ----- Details -----


def test_complex_values_are_carried() -> None:
    turn = np.exp(0.3j)

    def spiral(scan: Any, z: Any) -> Any:
        last, every = scan(lambda c, _: (c * turn * 0.9, c), z, None, length=4)
        return np.sum(np.abs(every) ** 2) + last.real

    z = 1.0 + 2.0j
    assert np.allclose(nb.grad(lambda z: spiral(nb.scan, z))(z), nb.grad(lambda z: spiral(python_scan, z))(z))
    assert np.allclose(nb.scan(lambda c, _: (c * turn, c), z, length=3)[1], z * turn ** np.arange(3))


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_turns(count: int) -> None:
    last, every = nb.scan(lambda c, x: (c + x, c * x), X, DATA[:count])
    np.testing.assert_array_equal(last, X + DATA[:count].sum(0))
    assert every.shape == (count, 3)
    slope = nb.grad(lambda x: np.sum(nb.scan(lambda c, d: (c * d, c), x, DATA[:count])[0]))(X)
    np.testing.assert_allclose(slope, np.prod(DATA[:count], axis=0))


def test_a_number_at_the_start_takes_the_dtype_of_the_turns() -> None:
    last, _ = nb.scan(lambda c, x: (c + np.sum(x), None), 0, DATA)
    assert last.dtype == np.float64 and np.isclose(last, DATA.sum())
    assert nb.fori_loop(0, 5, lambda i, c: c + i, 0).dtype == np.int64


def test_containers_and_integers_are_carried() -> None:
    def step(carry: Any, x: Any) -> Any:
        return {"best": np.maximum(carry["best"], x), "at": carry["at"] + 1}, carry["at"]

    last, every = nb.scan(step, {"best": np.full(3, -np.inf), "at": 0}, DATA)
    np.testing.assert_array_equal(last["best"], DATA.max(0))
    np.testing.assert_array_equal(every, np.arange(6))
    assert last["at"] == 6


def _summed(carry: Any, part: Any) -> Any:
    carry += part
    return carry, carry * 1.0


def _doubled(carry: Any, part: Any) -> Any:
    part *= 2.0
    return carry + part.sum() * part, part


def _moved(carry: Any, part: Any) -> Any:
    carry[1:] = carry[:-1]
    carry[0] = part[0]
    return carry, part[1:] * carry[1:]


@pytest.mark.parametrize("transform", [lambda f: f, nb.jit], ids=["called", "jit"])
@pytest.mark.parametrize("step", [_summed, _doubled, _moved])
def test_turns_write_to_what_they_get(step: Any, transform: Any) -> None:
    """The arrays of a turn are its own: the caller's stay as they are."""
    start, parts = X.copy(), DATA.copy()
    expected = python_scan(lambda carry, part: step(carry.copy(), part.copy()), X, DATA)
    for found, value in zip(transform(lambda c, xs: nb.scan(step, c, xs))(start, parts), expected, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-14)
    np.testing.assert_array_equal(start, X)
    np.testing.assert_array_equal(parts, DATA)
    slopes = transform(nb.grad(lambda c: nb.scan(step, c, DATA)[0].sum() ** 2))(X)
    for k, slope in enumerate(slopes):
        moved = python_scan(lambda carry, part: step(carry.copy(), part.copy()), X + 1e-30j * np.eye(3)[k], DATA + 0j)
        np.testing.assert_allclose(slope, (moved[0].sum() ** 2).imag / 1e-30, rtol=1e-12, atol=1e-14)


def test_other_loops_write_to_what_they_carry() -> None:
    def counted(k: Any, x: Any) -> Any:
        x[k] += 1.0
        return x

    def grown(x: Any) -> Any:
        x[0] *= 2.0
        return x

    np.testing.assert_array_equal(nb.fori_loop(0, 2, counted, np.zeros(3)), [1.0, 1.0, 0.0])
    np.testing.assert_array_equal(nb.while_loop(lambda x: x[0] < 10.0, grown, np.ones(2)), [16.0, 1.0])
    np.testing.assert_array_equal(nb.map(grown, np.ones((2, 2))), [[2.0, 1.0], [2.0, 1.0]])


def test_the_number_of_turns_compiles_nothing_new() -> None:
    def total(x: Any, count: int) -> Any:
        return nb.scan(lambda c, _: (np.sin(c) * 1.21 + x, None), x, length=count)[0]

    nb.grad(lambda x: np.sum(total(x, 5)))(X)
    before = nb.counters["compiled"]
    for count in (6, 100, 1000):
        nb.grad(lambda x, count=count: np.sum(total(x, count)))(X)
    assert nb.counters["compiled"] == before


def test_a_singular_system_in_some_turn_is_an_error() -> None:
    systems = np.stack([np.eye(3), np.zeros((3, 3)), np.eye(3)])
    for run in (lambda f: f, nb.jit):
        with pytest.raises(np.linalg.LinAlgError, match=r"[Ss]ingular"):
            run(lambda x: nb.scan(lambda c, a: (np.linalg.solve(a, c), None), x, systems)[0])(X)


# ----- Errors -----


def test_a_carried_value_must_keep_its_shape() -> None:
    with pytest.raises(nb.errors.ShapeError, match=r"shape \(3,\).*shape \(4,\).*carry\[1\]"):
        nb.scan(lambda c, _: ((c[0], np.append(c[1], 1.0)), None), (X, X), length=3)


def test_a_carried_value_must_keep_its_dtype() -> None:
    with pytest.raises(nb.errors.DtypeError, match=r"dtype int64.*dtype float64"):
        nb.scan(lambda c, _: (c / 2, None), np.arange(3), length=3)


def test_a_carried_value_must_keep_its_structure() -> None:
    with pytest.raises(nb.errors.ShapeError, match="same structure"):
        nb.scan(lambda c, _: ([c], None), X, length=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: nb.scan(f, X), "number of turns"),
        (lambda f: nb.scan(f, X, length=-1), "-1 turns"),
        (lambda f: nb.scan(f, X, DATA, length=4), r"\[4, 6\]"),
        (lambda f: nb.scan(f, X, (DATA, DATA[:2])), r"\[2, 6\]"),
        (lambda f: nb.scan(f, X, 3.0), "a number"),
        (lambda f: nb.scan(f, X, length=2.5), "integers"),
        (lambda f: nb.scan(3, X, length=2), "scan"),
        (lambda f: nb.scan(f, "abc", length=2), "first value"),
        (lambda f: nb.scan(lambda c, _: (c, "abc"), X, length=2), "result"),
        (lambda f: nb.scan(lambda c, _: c, 1.0, length=2), "must give a pair"),
    ],
)
def test_calls_that_cannot_be(call: Any, message: str) -> None:
    with pytest.raises(nb.errors.NbgradError, match=message):
        call(lambda c, _: (c, None))


def test_a_branch_by_value_is_refused() -> None:
    with pytest.raises(nb.errors.TracedValueError, match="one turn of a loop"):
        nb.scan(lambda c, _: (c if np.sum(c) > 0 else -c, None), X, length=3)


def test_writes_to_the_outside_are_refused_and_undone() -> None:
    outside = nb.Tensor(np.zeros(3))
    weight = nb.Parameter(np.ones(3), name="weight")

    def writes(c: Any, _: Any) -> Any:
        outside[0] = c[0]
        return c, None

    def assigns(c: Any, _: Any) -> Any:
        weight.set_data(weight * c)
        return c, None

    with pytest.raises(nb.errors.TracedValueError, match="a Tensor from outside"):
        nb.scan(writes, X, length=3)
    with pytest.raises(nb.errors.TracedValueError, match="Parameter weight"):
        nb.scan(assigns, X, length=3)
    np.testing.assert_array_equal(outside.asnumpy(), np.zeros(3))
    np.testing.assert_array_equal(weight.asnumpy(), np.ones(3))


# ----- Slices that move from turn to turn -----

PICKED = np.array([2, 0, 1])
MOVING: dict[str, Callable[[Any, Any], Any]] = {
    "x[k:k + 3]": lambda x, k: x[k : k + 3],
    "x[2 * k:2 * (k + 1)]": lambda x, k: x[2 * k : 2 * (k + 1)],
    "x[k // 2:k // 2 + 3]": lambda x, k: x[k // 2 : k // 2 + 3],
    "x[-k - 4:-k - 1]": lambda x, k: x[-k - 4 : -k - 1],
    "x[k + 2:k:-1]": lambda x, k: x[k + 2 : k : -1],
    "x[:, k:k + 3:2, 2]": lambda x, k: x[:, k : k + 3 : 2, 2],
    "x[k:k + 2, None, ..., k + 1:k + 3]": lambda x, k: x[k : k + 2, None, ..., k + 1 : k + 3],
    "x[k, :, k:k + 2]": lambda x, k: x[k, :, k : k + 2],
    "x[picked, :, k:k + 2]": lambda x, k: x[PICKED, :, k : k + 2],
    "x[picked, k:k + 2, picked]": lambda x, k: x[PICKED, k : k + 2, PICKED],
    "x[k + 1:k]": lambda x, k: x[k + 1 : k],
    "of a view": lambda x, k: x.transpose(2, 0, 1)[k : k + 3].T.reshape(-1)[k : k + 7],
}


@pytest.mark.sampled(of=4)
@pytest.mark.parametrize("name", MOVING)
def test_slices_of_one_length_move_from_turn_to_turn(name: str) -> None:
    """Read and written in turns, and under vmap, beside NumPy's with plain numbers."""
    piece = MOVING[name]
    x, turns = np.sin(np.arange(7.0 * 5 * 6)).reshape(7, 5, 6), np.arange(1, 3)
    expected = np.stack([piece(x, k) for k in turns])
    weights = np.cos(np.arange(expected.size)).reshape(expected.shape)

    def read(x: Any) -> Any:
        return nb.map(lambda k: piece(x, k), turns)

    def changed(x: Any, k: Any) -> Any:
        y = x.copy()
        part = piece(y, k)
        part *= 2.0
        part[...] = part + 1.0
        return y

    np.testing.assert_array_equal(nb.jit(read)(x), expected)
    np.testing.assert_array_equal(nb.vmap(lambda k, x: piece(x, k), in_axes=(0, None))(turns, x), expected)
    places, slopes = np.arange(x.size).reshape(x.shape), np.zeros(x.size)
    for k, part in zip(turns, weights, strict=True):
        np.add.at(slopes, piece(places, k), part)
    found = nb.grad(lambda x: np.sum(read(x) * weights))(x)
    np.testing.assert_allclose(found.ravel(), slopes, atol=1e-15)
    written = nb.jit(lambda x: nb.map(lambda k: changed(x, k), turns))(x)
    np.testing.assert_array_equal(written, np.stack([changed(x, k) for k in turns]))


def test_arange_of_one_length_moves_from_turn_to_turn() -> None:
    turns = np.arange(4)
    found = nb.map(lambda k: nb.numpy.arange(k, k + 5, 2, dtype=np.float32), turns)
    np.testing.assert_array_equal(found, np.stack([np.arange(k, k + 5, 2, dtype=np.float32) for k in turns]))


@pytest.mark.parametrize("piece", [lambda x, k: x[k : k + 3], lambda x, k: x[k - 1 : k + 2], lambda x, k: x[k : k + 9]])
def test_slices_that_reach_out_of_an_array_in_some_turn_are_errors(piece: Callable[[Any, Any], Any]) -> None:
    """NumPy gives fewer elements there."""
    summed = nb.jit(lambda x, turns: nb.map(lambda k: np.sum(piece(x, k)), turns))
    with pytest.raises(nb.errors.RangeError, match="reaches out of axis 0 with size 7"):
        summed(np.ones(7), np.arange(6))


def test_slices_between_integers_that_overflow_have_no_known_length() -> None:
    """NumPy's `x[k:k + 3]` is empty for the byte 254, whose sum with 3 is 1."""
    with pytest.raises(nb.errors.TracedValueError, match="length of a slice"):
        nb.map(lambda k: nb.numpy.arange(300.0)[k : k + 3], np.array([254], np.uint8))


def test_slices_of_several_lengths_say_what_to_write_instead() -> None:
    with pytest.raises(nb.errors.TracedValueError, match=r"np\.where\(np\.arange\(n\) < k"):
        nb.fori_loop(0, 5, lambda k, total: total + np.sum(nb.numpy.ones(7)[:k]), 0.0)
