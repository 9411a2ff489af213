"""MindSpore's `experimental.optim`: optimizers with groups of options, and schedulers of learning rates.

Expected values are those of MindSpore 2.10 (recorded/record_mindspore_optim.py).
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import ArgumentError, CellError, DtypeError

from .recorded.record_mindspore_optim import FILE, GRADIENTS, OPTIMIZERS, SCHEDULERS, parameters, scheduled, trained

pytestmark = pytest.mark.unoptimized
optim: Any = import_module("nbgrad.experimental.optim")

RECORDED: dict[str, Any] = json.loads(FILE.read_text())


def test_every_call_is_recorded() -> None:
    assert list(RECORDED) == [*OPTIMIZERS, *SCHEDULERS]
    names = {call.partition("(")[0] for call in RECORDED}
    assert names | {"Optimizer", "LRScheduler"} == {*optim.__all__, *optim.lr_scheduler.__all__}


@pytest.mark.parametrize("call", OPTIMIZERS)
def test_optimizers_make_the_same_steps(call: str) -> None:
    for one, expected in zip(trained(nb, call), RECORDED[call], strict=True):
        np.testing.assert_allclose(one, expected, 2e-5, 2e-5)


@pytest.mark.parametrize("call", SCHEDULERS)
def test_schedulers_set_the_same_rates(call: str) -> None:
    np.testing.assert_allclose(scheduled(nb, call), RECORDED[call], 2e-6, 1e-8)


def test_options_of_groups_change_between_steps() -> None:
    """A step of each rule beside plain momentum in NumPy."""
    p = parameters(nb)
    optimizer = optim.SGD([{"params": p[:1]}, {"params": p[1:], "lr": 0.2}], lr=0.1, momentum=0.5)
    weights, speeds = [one.asnumpy().copy() for one in p], [0.0, 0.0]
    rates, decays, momenta = [0.1, 0.2], [0.0, 0.0], [0.5, 0.5]
    changes: list[tuple[int, str, Any]] = [(0, "lr", 0.3), (1, "weight_decay", 0.1), (0, "momentum", 0.25)]
    for step, gradients in enumerate(GRADIENTS[:4]):
        if step:
            number, name, value = changes[step - 1]
            optimizer.param_groups[number][name] = value
            {"lr": rates, "weight_decay": decays, "momentum": momenta}[name][number] = value
        optimizer(tuple([nb.Tensor(one) for one in gradients]))
        for k, gradient in enumerate(gradients):
            speeds[k] = momenta[k] * speeds[k] + gradient + decays[k] * weights[k]
            weights[k] = weights[k] - rates[k] * speeds[k]
    for one, expected in zip(p, weights, strict=True):
        np.testing.assert_allclose(one.asnumpy(), expected, 1e-5)
    assert [group["lr"].name for group in optimizer.param_groups] == ["learning_rate_group_0", "learning_rate_group_1"]
    assert optimizer.group_start_id == [0, 1, 2] and optimizer.lrs[0] is optimizer.param_groups[0]["lr"]
    lines = ["SGD (", "Parameter Group 0", "    dampening: 0", "    lr: 0.3", "    maximize: False"]
    assert repr(optimizer).splitlines()[:5] == lines


class Plain(optim.Optimizer):
    """Descent, as users write it."""

    def __init__(self, params: Any, lr: float) -> None:
        super().__init__(params, {"lr": lr})

    def construct(self, gradients: Any) -> bool:
        for number, group in enumerate(self.param_groups):
            start = self.group_start_id[number]
            for k, weight in enumerate(group["params"]):
                nb.ops.assign(weight, weight - group["lr"] * gradients[start + k])
        return True


def test_optimizers_of_users_take_further_groups() -> None:
    p = parameters(nb)
    optimizer = Plain(p[:1], 0.1)
    optimizer.add_param_group({"params": p[1], "lr": 0.5})
    optimizer(tuple([nb.Tensor(one) for one in GRADIENTS[0]]))
    for one, before, gradient, rate in zip(p, parameters(nb), GRADIENTS[0], (0.1, 0.5), strict=True):
        np.testing.assert_allclose(one.asnumpy(), before.asnumpy() - rate * gradient, 1e-6)
    with pytest.raises(CellError, match="keeps a state for its weights"):
        optim.Adam(p[:1]).add_param_group({"params": p[1]})


@pytest.mark.parametrize("made", [nb.mint.optim.AdamW, nb.mint.optim.SGD, nb.nn.Adam])
def test_schedulers_change_other_optimizers(made: Any) -> None:
    optimizer = made(parameters(nb), 0.5)
    scheduler = optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    scheduler.step()
    assert float(optimizer.get_lr().asnumpy()) == scheduler.get_last_lr()[0].asnumpy() == 0.25
    grouped = made([{"params": parameters(nb)[:1], "lr": 0.5}, {"params": parameters(nb)[1:]}], 0.1)
    optim.lr_scheduler.ExponentialLR(grouped, 0.5).step()
    np.testing.assert_allclose([float(rate.asnumpy()) for rate in grouped.get_lr()], [0.25, 0.05])


def test_schedulers_at_an_epoch() -> None:
    optimizer = optim.SGD(parameters(nb), lr=0.8)
    scheduler = optim.lr_scheduler.MultiStepLR(optimizer, [1, 3], gamma=0.5)
    for epoch, expected in ((4, 0.2), (1, 0.4), (0, 0.8)):
        scheduler.step(epoch)
        np.testing.assert_allclose(scheduler.get_last_lr()[0].asnumpy(), expected)
    cosine = optim.lr_scheduler.CosineAnnealingLR(optim.SGD(parameters(nb), lr=0.8), T_max=4)
    cosine.step(2)
    np.testing.assert_allclose(cosine.get_last_lr()[0].asnumpy(), 0.4, 1e-6)
    warm = optim.lr_scheduler.CosineAnnealingWarmRestarts(optim.SGD(parameters(nb), lr=0.8), 2)
    warm.step(2.5)
    np.testing.assert_allclose(warm.get_last_lr()[0].asnumpy(), 0.4 * (1 + np.sqrt(0.5)), 1e-6)
    again = optim.lr_scheduler.MultiStepLR(optimizer, [1, 3], gamma=0.5, last_epoch=2)
    np.testing.assert_allclose(again.get_last_lr()[0].asnumpy(), 0.4)


def test_arguments_are_checked() -> None:
    p, schedulers = parameters(nb), optim.lr_scheduler
    o = optim.SGD(p, lr=0.1)
    wrong: list[tuple[type[Exception], str, Any]] = [
        (ArgumentError, "nesterov", lambda: optim.SGD(p, 0.1, nesterov=True)),
        (ArgumentError, "betas", lambda: optim.Adam(p, betas=(0.9, 1.0))),
        (ArgumentError, "etas", lambda: optim.Rprop(p, etas=(1.5, 2.0))),
        (ArgumentError, "the key 'params'", lambda: optim.SGD([{"lr": 0.1}], 0.1)),
        (DtypeError, "got list", lambda: schedulers.StepLR(p, 1)),  # pyright: ignore
        (ArgumentError, "no 'initial_lr'", lambda: schedulers.StepLR(o, 1, last_epoch=3)),
        (ArgumentError, "from -1 on", lambda: schedulers.StepLR(o, 1, last_epoch=-2)),
        (ArgumentError, "2 values for 1 groups", lambda: schedulers.LambdaLR(o, [abs, abs])),
        (ArgumentError, "T_mult", lambda: schedulers.CosineAnnealingWarmRestarts(o, 2, 0)),
        (ArgumentError, "scale_fn", lambda: schedulers.CyclicLR(o, 0.1, 0.2, mode="sine")),
        (ArgumentError, "one milestone", lambda: schedulers.SequentialLR(o, [], [])),
        (ArgumentError, "threshold_mode", lambda: schedulers.ReduceLROnPlateau(o, "least")),
        (CellError, "get_lr", lambda: schedulers.LRScheduler(o)),
    ]
    for kind, message, call in wrong:
        with pytest.raises(kind, match=message):
            call()
