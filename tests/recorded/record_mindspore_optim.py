"""Steps of MindSpore's `experimental.optim`, and learning rates that its schedulers set.

Run by a Python with MindSpore on a CPU, `python -m tests.recorded.record_mindspore_optim` writes the results to
mindspore_optim.json. test_grouped_optimizers.py does the same in nbgrad. Recorded with MindSpore 2.10.0.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("mindspore_optim.json")
RANDOM = np.random.default_rng(0)
WEIGHTS = [RANDOM.normal(size=shape).astype(np.float32) for shape in ((3,), (2, 2))]
GRADIENTS = [[RANDOM.normal(size=one.shape).astype(np.float32) for one in WEIGHTS] for _ in range(8)]

OPTIMIZERS = [
    "SGD(p, lr=0.1)",
    "SGD(p, lr=0.1, momentum=0.9)",
    "SGD(p, lr=0.1, momentum=0.9, dampening=0.3, weight_decay=0.1)",
    "SGD(p, lr=0.1, momentum=0.9, nesterov=True, maximize=True)",
    "SGD([{'params': p[:1], 'lr': 0.5, 'momentum': 0.9, 'weight_decay': 0.1}, {'params': p[1:]}], lr=0.1)",
    "Adam(p, lr=0.1, eps=0.1)",
    "Adam(p, lr=0.1, eps=0.1, weight_decay=0.1, maximize=True)",
    "Adam(p, lr=0.1, eps=0.1, amsgrad=True)",
    "Adam([{'params': p[:1], 'betas': (0.5, 0.9)}, {'params': p[1:], 'lr': 0.3}], lr=0.1, eps=0.1)",
    "AdamW(p, lr=0.1, eps=0.1)",
    "AdamW(p, lr=0.1, eps=0.1, weight_decay=0.1, maximize=True)",
    "AdamW(p, lr=0.1, eps=0.1, amsgrad=True)",
    "Adagrad(p, lr=0.1, eps=0.1)",
    "Adagrad(p, lr=0.1, eps=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5)",
    "Adadelta(p, lr=0.5, eps=0.1)",
    "Adadelta(p, lr=0.5, eps=0.1, rho=0.5, weight_decay=0.1, maximize=True)",
    "Adamax(p, lr=0.1, eps=0.1)",
    "Adamax(p, lr=0.1, eps=0.1, weight_decay=0.1)",
    "NAdam(p, lr=0.1, eps=0.1)",
    "NAdam(p, lr=0.1, eps=0.1, weight_decay=0.1, momentum_decay=0.1)",
    "RAdam(p, lr=0.1, eps=0.1)",
    "RAdam(p, lr=0.1, eps=0.1, weight_decay=0.1, betas=(0.5, 0.9))",
    "RMSprop(p, lr=0.1, eps=0.1)",
    "RMSprop(p, lr=0.1, eps=0.1, alpha=0.5, momentum=0.5, weight_decay=0.1)",
    "RMSprop(p, lr=0.1, eps=0.1, centered=True)",
    "Rprop(p, lr=0.1)",
    "Rprop(p, lr=0.1, etas=(0.3, 1.5), step_sizes=(0.05, 0.2), maximize=True)",
    "ASGD(p, lr=0.1)",
    "ASGD(p, lr=0.1, lambd=0.1, alpha=0.5, t0=2.0, weight_decay=0.1)",
]
"""Optimizers of the Parameters p, which make a step with each of GRADIENTS."""

SCHEDULERS = [
    "StepLR(o, step_size=2, gamma=0.5)",
    "LinearLR(o, start_factor=0.5, total_iters=4)",
    "ExponentialLR(o, gamma=0.9)",
    "PolynomialLR(o, total_iters=4, power=2.0)",
    "LambdaLR(o, lr_lambda=[lambda e: 0.9**e, lambda e: 1 / (1 + e)])",
    "MultiplicativeLR(o, lr_lambda=[lambda e: 0.9, lambda e: 0.5])",
    "MultiStepLR(o, milestones=[2, 4], gamma=0.5)",
    "ConstantLR(o, factor=0.5, total_iters=3)",
    "CyclicLR(o, base_lr=0.01, max_lr=0.1, step_size_up=3)",
    "CyclicLR(o, base_lr=0.01, max_lr=[0.1, 0.2], step_size_up=2, step_size_down=3, mode='triangular2')",
    "CyclicLR(o, base_lr=0.01, max_lr=0.1, step_size_up=3, mode='exp_range', gamma=0.9)",
    "CyclicLR(o, base_lr=0.01, max_lr=0.1, step_size_up=3, scale_fn=lambda k: 1 / (1 + k), scale_mode='iterations')",
    "CosineAnnealingWarmRestarts(o, T_0=3, T_mult=2, eta_min=0.01)",
    "CosineAnnealingLR(o, T_max=3, eta_min=0.01)",
    "SequentialLR(o, [S.ConstantLR(o, 0.1, 2), S.ExponentialLR(o, 0.9)], [3])",
    "ReduceLROnPlateau(o, factor=0.5, patience=1)",
    "ReduceLROnPlateau(o, 'max', 0.5, 0, threshold_mode='abs', threshold=0.1, cooldown=1, min_lr=[0.03, 0.05])",
]
"""Schedulers of an optimizer o with two groups, whose rates are noted before each of ten steps."""

METRICS = [1.0, 0.9, 0.95, 0.95, 0.94, 0.99, 0.5, 0.6, 0.7, 0.8]


def parameters(library: Any) -> list[Any]:
    """Two Parameters with the first weights."""
    return [library.Parameter(library.Tensor(one), name=f"w{k}") for k, one in enumerate(WEIGHTS)]


def trained(library: Any, call: str, notice: Callable[[Any], Any] = lambda optimizer: None) -> list[Any]:
    """The weights after some steps of an optimizer."""
    optim = importlib.import_module(f"{library.__name__}.experimental.optim")
    p = parameters(library)
    optimizer = eval(f"optim.{call}", {"optim": optim, "p": p})
    for gradients in GRADIENTS:
        notice(optimizer)
        optimizer(tuple([library.Tensor(one) for one in gradients]))
    return [one.asnumpy().tolist() for one in p]


def scheduled(library: Any, call: str) -> list[Any]:
    """The rates of both groups before each of ten steps of a scheduler."""
    optim = importlib.import_module(f"{library.__name__}.experimental.optim")
    p = parameters(library)
    o = optim.SGD([{"params": [p[0]], "lr": 0.5}, {"params": [p[1]]}], lr=0.1)
    scheduler = eval(f"S.{call}", {"S": optim.lr_scheduler, "o": o})
    rates = []
    for metric in METRICS:
        rates.append([float(group["lr"].asnumpy()) for group in o.param_groups])
        scheduler.step(*([metric] if call.startswith("Reduce") else []))
    return rates


if __name__ == "__main__":
    mindspore = importlib.import_module("mindspore")
    results = {call: trained(mindspore, call) for call in OPTIMIZERS}
    results |= {call: scheduled(mindspore, call) for call in SCHEDULERS}
    FILE.write_text(json.dumps(results, separators=(",", ":")).replace(',"', ',\n"') + "\n")
