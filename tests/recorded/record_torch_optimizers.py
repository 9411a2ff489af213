"""Records the trajectories of PyTorch's optimizers: run it where PyTorch is installed.

Out: torch_optimizers.json: for each case PyTorch's optimizer and its arguments, and the weights after each step, in
float64; and gradients clipped by their norm. The tests import `WEIGHTS` and `gradient` from here and never PyTorch.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("torch_optimizers.json")
STEPS = 5
WEIGHTS = [np.linspace(-1.0, 1.5, 6).reshape(3, 2), np.array([0.3, -0.7, 2.0, 0.0]), np.array(0.5)]
TINY = 1e-14
"""An epsilon that does not matter, where its place in the formula differs."""
CASES: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.2}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.2}),
    ("Adam", {"lr": 0.1, "eps": TINY}),
    ("Adam", {"lr": 0.1, "eps": TINY, "betas": [0.5, 0.75], "weight_decay": 0.2}),
    ("Adam", {"lr": 0.1, "eps": TINY, "betas": [0.5, 0.75], "amsgrad": True}),
    ("AdamW", {"lr": 0.1}),
    ("AdamW", {"lr": 0.1, "eps": 0.1, "betas": [0.0, 0.75], "weight_decay": 0.0}),
    ("AdamW", {"lr": 0.1, "eps": 0.1, "betas": [0.5, 0.75], "weight_decay": 0.3, "amsgrad": True}),
    ("RMSprop", {"lr": 0.1, "eps": TINY, "alpha": 0.9}),
    ("RMSprop", {"lr": 0.1, "eps": TINY, "alpha": 0.8, "momentum": 0.5, "centered": True, "weight_decay": 0.2}),
    ("Adagrad", {"lr": 0.1, "eps": TINY, "initial_accumulator_value": 0.1}),
    ("Adagrad", {"lr": 0.1, "eps": TINY, "initial_accumulator_value": 0.5, "weight_decay": 0.2}),
]
CLIPPED: list[tuple[float, float]] = [(1.0, 2.0), (0.5, 1.0), (2.0, 3.0), (0.25, float("inf")), (1000.0, 2.0)]
"""Largest norms and types of norm."""


def gradient(weight: np.ndarray, step: int) -> np.ndarray:
    """A gradient that depends on the weight and changes its direction from step to step."""
    return np.cos(np.arange(weight.size).reshape(weight.shape) + 2.0 * step) + 0.3 * weight


def record() -> None:
    """Write the file."""
    import torch

    cases: list[dict[str, Any]] = []
    for name, arguments in CASES:
        weights = [torch.nn.Parameter(torch.tensor(weight)) for weight in WEIGHTS]
        optimizer = getattr(torch.optim, name)(weights, **arguments)
        trajectory = []
        for step in range(STEPS):
            for weight in weights:
                weight.grad = torch.tensor(gradient(weight.detach().numpy(), step))
            optimizer.step()
            trajectory.append([weight.detach().numpy().tolist() for weight in weights])
        cases.append({"optimizer": name, "arguments": arguments, "weights": trajectory})
    clipped: list[dict[str, Any]] = []
    for largest, kind in CLIPPED:
        given = [torch.nn.Parameter(torch.tensor(weight)) for weight in WEIGHTS]
        for weight in given:
            weight.grad = weight.detach().clone()
        torch.nn.utils.clip_grad_norm_(given, largest, norm_type=kind)
        clipped.append({"max_norm": largest, "norm_type": str(kind), "values": [w.grad.tolist() for w in given]})
    lines = [",\n".join(json.dumps(case) for case in part) for part in (cases, clipped)]
    text = f'{{"torch": "{torch.__version__}", "cases": [\n{lines[0]}\n], "clipped": [\n{lines[1]}\n]}}\n'
    FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    record()
