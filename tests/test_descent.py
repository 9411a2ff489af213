"""Gradient transformations: optax's recorded results, in containers, compiled, in loops and for many at once."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import optim

from .recorded.record_optax import FILE, START, STEPS, gradients

pytestmark = pytest.mark.unoptimized

RECORDED = json.loads(FILE.read_text(encoding="utf-8"))


def after_updates(method: optim.Transformation, update: Any) -> Any:
    params, state = START, method.init(START)
    for k in range(STEPS):
        updates, state = update(gradients(k), state, params)
        params = optim.apply_updates(params, updates)
    return params


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(("name", "options", "expected"), RECORDED["methods"])
def test_methods_give_what_optax_gives(name: str, options: dict[str, Any], expected: Any, compiled: bool) -> None:
    method = getattr(optim, name)(**options)
    got = after_updates(method, nb.jit(method.update) if compiled else method.update)
    np.testing.assert_allclose(got["w"], expected["w"], rtol=1e-12)
    np.testing.assert_allclose(got["b"], expected["b"], rtol=1e-12)


def test_chains_of_clips_give_what_optax_gives() -> None:
    method = optim.chain(optim.clip_by_global_norm(0.5), optim.clip(0.4), optim.sgd(0.1))
    got = after_updates(method, method.update)
    np.testing.assert_allclose(got["w"], RECORDED["clipped"]["w"], rtol=1e-12)
    np.testing.assert_allclose(got["b"], RECORDED["clipped"]["b"], rtol=1e-12)


@pytest.mark.parametrize(("name", "args", "options", "expected"), RECORDED["schedules"])
def test_schedules_give_what_optax_gives(name: str, args: Any, options: Any, expected: Any) -> None:
    rate = getattr(optim, name)(*args, **options)
    np.testing.assert_allclose([float(rate(k)) for k in range(30)], expected, rtol=2e-7)  # optax computes in float32
    recorded = nb.jit(lambda counts: nb.vmap(rate)(counts))(np.arange(30))
    np.testing.assert_allclose(recorded, [float(rate(k)) for k in range(30)], rtol=1e-14)


METHODS = {
    "sgd": optim.sgd(0.1, momentum=0.5, nesterov=True),
    "adam": optim.adam(optim.cosine_decay(0.1, 50)),
    "adamw": optim.adamw(0.1),
    "rmsprop": optim.rmsprop(0.1, centered=True, momentum=0.2),
    "adagrad": optim.adagrad(0.1),
    "lion": optim.lion(0.1),
    "clipped": optim.chain(optim.clip_by_global_norm(1.0), optim.adam(0.1)),
}


@pytest.mark.parametrize("name", METHODS)
def test_a_loop_gives_what_single_updates_give(name: str) -> None:
    method = METHODS[name]
    slope = nb.grad(lambda p: np.sum((p["x"] - 3.0) ** 2) + p["y"] ** 2)

    def step(carry: Any, _: Any) -> Any:
        params, state = carry
        updates, state = method.update(slope(params), state, params)
        return (optim.apply_updates(params, updates), state), None

    start = {"x": np.array([1.0, -1.0]), "y": 0.5}
    carry: Any = (start, method.init(start))
    for _ in range(7):
        carry = step(carry, None)[0]
    looped = nb.scan(step, (start, method.init(start)), length=7)[0]
    compiled = nb.jit(lambda c: nb.fori_loop(0, 7, lambda _, c: step(c, None)[0], c))((start, method.init(start)))
    for got in (looped, compiled):
        np.testing.assert_allclose(got[0]["x"], carry[0]["x"], rtol=1e-12)
        np.testing.assert_allclose(got[0]["y"], carry[0]["y"], rtol=1e-12)
    many = nb.vmap(lambda x: nb.scan(step, ({"x": x, "y": 0.5}, method.init(start)), length=7)[0][0]["x"])
    np.testing.assert_allclose(many(np.stack([start["x"], start["x"] + 1.0]))[0], carry[0]["x"], rtol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_dtypes_and_objects_stay(name: str) -> None:
    @dataclasses.dataclass
    class Model:
        w: Any
        shift: Any
        count: int = 3
        label: str = "m"

    method = METHODS[name]
    params = Model(np.ones(2, np.float32), np.float64(2.0))
    state = method.init(params)
    for _ in range(2):
        gradient = nb.grad(lambda m: np.sum(m.w**2) + m.shift ** (m.count - 1))(params)
        updates, state = method.update(gradient, state, params)
        params = optim.apply_updates(params, updates)
    assert (params.count, params.label) == (3, "m")
    assert params.w.dtype == np.float32 and np.asarray(params.shift).dtype == np.float64
    assert np.all(params.w < 1) and params.shift < 2


def test_a_descent_is_differentiated_by_its_learning_rate() -> None:
    def last(rate: Any) -> Any:
        method = optim.sgd(lambda count: rate)
        x, state = np.array(1.0), method.init(np.array(1.0))
        for _ in range(5):
            updates, state = method.update(2.0 * x, state)
            x = optim.apply_updates(x, updates)
        return x

    assert float(nb.grad(last)(0.1)) == pytest.approx(-2 * 5 * (1 - 0.2) ** 4, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: optim.adamw(0.1).update([1.0], optim.adamw(0.1).init([1.0])), ValueError, "Weight decay reads"),
        (lambda: optim.chain(np.sin), TypeError, "chain takes transformations, but got a ufunc"),
        (lambda: optim.apply_updates({"a": 1.0}, [1.0]), ValueError, "do not have one structure"),
        (lambda: optim.linear_schedule(1.0, 0.0, 0), ValueError, "transition_steps must be at least 1, but got 0"),
        (lambda: optim.join_schedules([abs], [1]), ValueError, "1 schedules have 0 boundaries, but got 1"),
        (lambda: optim.stateless(1.0), TypeError, "stateless takes a function"),
    ],
)
def test_errors(call: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()
