"""PyTorch's `optim.lr_scheduler`: learning rates that a call of `step` changes.

In: an optimizer with groups. Out: new learning rates of its groups. Called by users. Most are those of
nn/rarer/rate_schedulers.py, which MindSpore has too; those that it lacks are here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...errors import ArgumentError
from ...nn.rarer import rate_schedulers as _common
from ...nn.rarer.rate_schedulers import (
    ConstantLR,
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    LRScheduler,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    ReduceLROnPlateau,
    SequentialLR,
    StepLR,
)
from .stepping_optimizers import _number

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

_LRScheduler = LRScheduler
"""PyTorch's older name."""


class OneCycleLR(LRScheduler):
    """Rates that go up to `max_lr` and down again, once, while momentum goes down and up (Smith and Topin 2019).

    Parameters
    ----------
    optimizer : Optimizer
    max_lr : number or list of numbers
        For all groups, or one for each.
    total_steps : int, optional
        By default `epochs * steps_per_epoch`.
    epochs, steps_per_epoch : int, optional
    pct_start : float
        The part of the steps that go up.
    anneal_strategy : {"cos", "linear"}
    cycle_momentum : bool
        Whether the momentum, or the first of `betas`, changes too.
    base_momentum, max_momentum : float
    div_factor, final_div_factor : float
        `max_lr` over the first rate, and the first rate over the last one.
    three_phase : bool
        Whether the way down is made in two parts.
    last_epoch : int
    """

    def __init__(
        self,
        optimizer: Any,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            message = "You must define either total_steps OR (epochs AND steps_per_epoch)"
            raise ArgumentError(message)
        if anneal_strategy not in ("cos", "linear"):
            message = f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            raise ArgumentError(message)
        self.total_steps = (epochs or 0) * (steps_per_epoch or 0) if total_steps is None else total_steps
        self.anneal_strategy, self.cycle_momentum = anneal_strategy, cycle_momentum
        up = float(pct_start * self.total_steps) - 1
        ends = [up, 2 * up, self.total_steps - 1] if three_phase else [up, self.total_steps - 1]
        corners = (
            ["initial_lr", "max_lr", "initial_lr", "min_lr"] if three_phase else ["initial_lr", "max_lr", "min_lr"]
        )
        moments = ["max", "base", "max", "max"] if three_phase else ["max", "base", "max"]
        self._phases = list(zip(ends, corners, corners[1:], moments, moments[1:], strict=False))
        self._momenta = {"max": max_momentum, "base": base_momentum}
        groups = optimizer.param_groups
        most = max_lr if isinstance(max_lr, list | tuple) else [max_lr] * len(groups)
        if last_epoch == -1:
            for group, rate in zip(groups, most, strict=True):
                group["max_lr"], group["initial_lr"] = float(rate), float(rate) / div_factor
                group["min_lr"] = group["initial_lr"] / final_div_factor
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, part: float) -> float:
        if self.anneal_strategy == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def get_lr(self) -> list[Any]:
        """The learning rates of all groups in step `last_epoch`."""
        step = self.last_epoch
        if step > self.total_steps:
            message = f"Tried to step {step} times. The total number of steps is {self.total_steps}"
            raise ArgumentError(message)
        found: list[Any] = []
        last = self._phases[-1]
        phase = next((one for one in self._phases if step <= one[0]), last)
        number = self._phases.index(phase)
        begin = float(self._phases[number - 1][0]) if number else 0.0
        end, low, high, before, after = phase
        part = (step - begin) / (end - begin)
        momentum = self._between(self._momenta[before], self._momenta[after], part)
        for group in self.optimizer.param_groups:
            found.append(self._between(group[low], group[high], part))
            if self.cycle_momentum and "betas" in group:
                group["betas"] = (momentum, *group["betas"][1:])
            elif self.cycle_momentum and "momentum" in group:
                group["momentum"] = momentum
        return found


class CyclicLR(_common.CyclicLR):
    """Rates that go up and down in cycles, while momentum goes down and up (Smith 2017).

    Parameters
    ----------
    optimizer : Optimizer
    base_lr, max_lr : number or list of numbers
    step_size_up, step_size_down, mode, gamma, scale_fn, scale_mode
        As in `experimental.optim.lr_scheduler.CyclicLR`.
    cycle_momentum : bool
        Whether the momentum, or the first of `betas`, changes too.
    base_momentum, max_momentum : float
    last_epoch : int
    """

    def __init__(
        self,
        optimizer: Any,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Any = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        groups = optimizer.param_groups
        if cycle_momentum and not any(name in groups[0] for name in ("momentum", "betas")):
            message = "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            raise ArgumentError(message)
        self.cycle_momentum, self._momenta = cycle_momentum, (base_momentum, max_momentum)
        options = (step_size_up, step_size_down, mode, gamma, scale_fn, scale_mode, last_epoch)
        super().__init__(optimizer, base_lr, max_lr, *options)

    def get_lr(self) -> list[Any]:
        """The learning rates of all groups in step `last_epoch`."""
        found = super().get_lr()
        low, high = self._momenta
        for group, rate, base, most in zip(
            self.optimizer.param_groups, found, self.base_lrs, self.max_lrs, strict=True
        ):
            momentum = high - (high - low) * (rate - base) / (most - base)
            if self.cycle_momentum and "betas" in group:
                group["betas"] = (momentum, *group["betas"][1:])
            elif self.cycle_momentum and "momentum" in group:
                group["momentum"] = momentum
        return found


class ChainedScheduler:
    """Several schedulers whose steps are all made, one after the other.

    Parameters
    ----------
    schedulers : list of LRScheduler
    optimizer : Optimizer, optional
        That of the schedulers.
    """

    def __init__(self, schedulers: Sequence[Any], optimizer: Any = None) -> None:
        self._schedulers = list(schedulers)
        self.optimizer = self._schedulers[0].optimizer if optimizer is None else optimizer
        if any(one.optimizer is not self.optimizer for one in self._schedulers):
            message = "ChainedScheduler expects all schedulers to belong to the same optimizer"
            raise ArgumentError(message)

    def step(self) -> None:
        """Set the learning rates of the next epoch."""
        for one in self._schedulers:
            one.step()

    def get_last_lr(self) -> list[float]:
        """The learning rates that the last step has set."""
        return [_number(group["lr"]) for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """The states of all schedulers."""
        return {"_schedulers": [one.state_dict() for one in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the states of an earlier time."""
        for one, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            one.load_state_dict(state)
