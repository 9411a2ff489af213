"""Records what optax gives: parameters after updates by each method, and values of schedules.

    python record_optax.py

Run where optax is installed. Out: optax.json, with rows of arguments and results, in float64. The tests import
`START` and `gradients` from here and never optax.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("optax.json")
STEPS, COUNTS = 6, 30
START = {"w": np.array([1.0, -2.0, 0.5]), "b": np.array(3.0)}
METHODS: list[tuple[str, dict[str, Any]]] = [
    ("sgd", {"learning_rate": 0.1}),
    ("sgd", {"learning_rate": 0.1, "momentum": 0.9}),
    ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    ("adam", {"learning_rate": 0.1}),
    ("adam", {"learning_rate": 0.1, "b1": 0.8, "b2": 0.9, "eps": 1e-3}),
    ("adam", {"learning_rate": 0.1, "nesterov": True}),
    ("adamw", {"learning_rate": 0.1, "weight_decay": 0.2}),
    ("rmsprop", {"learning_rate": 0.1}),
    ("rmsprop", {"learning_rate": 0.1, "decay": 0.7, "centered": True}),
    ("rmsprop", {"learning_rate": 0.1, "momentum": 0.5, "nesterov": True}),
    ("adagrad", {"learning_rate": 0.1}),
    ("lion", {"learning_rate": 0.1, "weight_decay": 0.1}),
]
SCHEDULES: list[tuple[str, str, list[float], dict[str, Any]]] = [
    ("exponential_decay", "exponential_decay", [1.0, 10, 0.5], {}),
    ("exponential_decay", "exponential_decay", [1.0, 10, 0.5], {"staircase": True}),
    ("polynomial_schedule", "polynomial_schedule", [1.0, 0.1, 3.0, 12, 2], {}),
    ("linear_schedule", "linear_schedule", [0.0, 1.0, 7], {}),
    ("cosine_decay", "cosine_decay_schedule", [1.0, 20, 0.1, 2.0], {}),
    ("warmup_cosine_decay", "warmup_cosine_decay_schedule", [0.1, 1.0, 5, 25, 0.05], {}),
]


def gradients(k: int) -> dict[str, Any]:
    """The gradients of update number k."""
    return {"w": np.cos(np.arange(3.0) + k), "b": np.array(np.sin(2.0 * k + 0.3))}


def record() -> dict[str, Any]:
    """The rows."""
    import jax
    import optax

    jax.config.update("jax_enable_x64", True)

    def after(method: Any) -> dict[str, Any]:
        params = jax.tree.map(jax.numpy.asarray, START)
        state = method.init(params)
        for k in range(STEPS):
            updates, state = method.update(gradients(k), state, params)
            params = optax.apply_updates(params, updates)
        return {name: np.asarray(value).tolist() for name, value in params.items()}

    def values(name: str, args: list[float], options: dict[str, Any]) -> list[float]:
        rate = getattr(optax, name)(*args, **options)
        return [float(rate(k)) for k in range(COUNTS)]

    return {
        "optax": optax.__version__,
        "methods": [[name, options, after(getattr(optax, name)(**options))] for name, options in METHODS],
        "clipped": after(optax.chain(optax.clip_by_global_norm(0.5), optax.clip(0.4), optax.sgd(0.1))),
        "schedules": [[ours, args, options, values(name, args, options)] for ours, name, args, options in SCHEDULES],
    }


if __name__ == "__main__":
    FILE.write_text(json.dumps(record(), indent=1) + "\n", encoding="utf-8")
