"""MindSpore's `experimental.optim.lr_scheduler`: learning rates that a call of `step` changes.

In: an optimizer with groups (`experimental.optim`, `mint.optim`, `nn`). Out: new learning rates of its groups, which
compile nothing. Called by users, mostly once in each epoch.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, CellError, DtypeError
from ...record.tensor import Tensor
from ...tensors.parameter import Parameter
from ..optimizer import Optimizer, real_number
from .grouped_optimizers import Group, groups_of

__all__ = [
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
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


def _number(rate: Any) -> float:
    return float(np.asarray(rate)) if not isinstance(rate, Tensor) else float(rate.asnumpy())


def _groups(optimizer: Any) -> list[Group]:
    if not isinstance(optimizer, Optimizer):
        own = getattr(optimizer, "param_groups", None)
        if isinstance(own, list):
            return own
        message = f"A scheduler changes the learning rates of an optimizer, but got {type(optimizer).__name__}."
        raise DtypeError(message)
    return groups_of(optimizer)


def _rates(groups: Sequence[Any]) -> list[Any]:
    """The learning rates of groups: Tensors, or numbers of optimizers that keep numbers."""
    return [group["lr"].value() if isinstance(group["lr"], Parameter) else group["lr"] for group in groups]


def _kept(scheduler: Any) -> dict[str, Any]:
    """The state of a scheduler, without its optimizer and without functions."""
    own = {name: value for name, value in vars(scheduler).items() if name not in ("optimizer", "_groups")}
    return {name: value for name, value in own.items() if not callable(value) and name != "lr_lambdas"}


class _Resumed:
    """The state of a scheduler, from which another one goes on."""

    def state_dict(self) -> dict[str, Any]:
        """The state, without the optimizer and without functions."""
        return _kept(self)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the state of another scheduler of this kind, or of an earlier time."""
        vars(self).update(state_dict)


def _for_each(value: Any, groups: Sequence[Any], name: str) -> list[Any]:
    """One value for each group, from one for all or as many as there are."""
    if not isinstance(value, list | tuple):
        return [value] * len(groups)
    if len(value) != len(groups):
        message = f"{name} has {len(value)} values for {len(groups)} groups."
        raise ArgumentError(message)
    return list(value)


class LRScheduler(_Resumed):
    """The base of schedulers; subclasses define `get_lr`, which gives the rates of all groups in epoch `last_epoch`.

    Parameters
    ----------
    optimizer : Optimizer
    last_epoch : int
        -1 to begin; if not, the groups have an `initial_lr`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> from nbgrad.experimental import optim
    >>> class Halved(optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [rate * 0.5**self.last_epoch for rate in self.base_lrs]
    >>> optimizer = optim.SGD([nb.Parameter(nb.Tensor([1.0]), name="w")], lr=1.0)
    >>> scheduler = Halved(optimizer)
    >>> _ = scheduler.step(), scheduler.step()
    >>> print(scheduler.get_last_lr()[0])
    0.25
    """

    def __init__(self, optimizer: Any, last_epoch: int = -1) -> None:
        self.optimizer, self._groups = optimizer, _groups(optimizer)
        if not isinstance(last_epoch, int) or last_epoch < -1:
            message = f"last_epoch must be an integer from -1 on, but got {last_epoch!r}."
            raise ArgumentError(message)
        for number, group in enumerate(self._groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", self.rate_of(group))
            elif "initial_lr" not in group:
                message = (
                    f"Group {number} has no 'initial_lr', which a scheduler needs to go on after epoch {last_epoch}."
                )
                raise ArgumentError(message)
        self.base_lrs: list[float] = [_number(group["initial_lr"]) for group in self._groups]
        self.last_epoch = last_epoch
        self.step()

    @staticmethod
    def rate_of(group: Group) -> float:
        """The learning rate that a group has now."""
        return _number(group["lr"])

    def rates(self) -> list[float]:
        """The learning rates of all groups now."""
        return [self.rate_of(group) for group in self._groups]

    def get_lr(self) -> list[Any]:
        """The learning rates of all groups in epoch `last_epoch`."""
        message = f"{type(self).__name__} has no get_lr method, which gives the rates of all groups."
        raise CellError(message)

    def get_last_lr(self) -> list[Any]:
        """The learning rates that the last step has set."""
        return _rates(self._groups)

    def step(self, epoch: int | None = None) -> bool:
        """Set the learning rates of the next epoch, or of one that is given; True."""
        if epoch is None:
            self.last_epoch += 1
            found = self.get_lr()
        else:
            self.last_epoch = int(epoch)
            found = getattr(self, "rates_in_epoch", self.get_lr)()
        for group, rate in zip(self._groups, found, strict=True):
            group["lr"] = _number(rate)
        return True


class _ByFactor(LRScheduler):
    """Schedulers whose rate is the last one times a factor of the epoch."""

    def factor(self, epoch: int) -> float:
        """The factor of an epoch: 1, unless a scheduler has another one."""
        del epoch
        return 1.0

    def get_lr(self) -> list[Any]:
        """The learning rates of all groups in epoch `last_epoch`."""
        factor = self.factor(self.last_epoch)
        return [rate * factor for rate in self.rates()]

    def rates_in_epoch(self) -> list[float]:
        """The rates in an epoch, from the initial ones."""
        factor = math.prod(self.factor(epoch) for epoch in range(int(self.last_epoch) + 1))
        return [rate * factor for rate in self.base_lrs]


class StepLR(_ByFactor):
    """Rates times `gamma` after every `step_size` epochs.

    Examples
    --------
    >>> import nbgrad as nb
    >>> from nbgrad.experimental import optim
    >>> optimizer = optim.Adam([nb.Parameter(nb.Tensor([1.0]), name="w")], lr=0.5)
    >>> scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> for epoch in range(3):
    ...     print(scheduler.get_last_lr()[0], scheduler.step())
    0.5 True
    0.5 True
    0.25 True
    """

    def __init__(self, optimizer: Any, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """`gamma` after every `step_size` epochs."""
        return self.gamma if epoch and epoch % self.step_size == 0 else 1.0


class MultiStepLR(_ByFactor):
    """Rates times `gamma` in the epochs of a list."""

    def __init__(self, optimizer: Any, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """`gamma`, as often as the epoch is in the list."""
        return self.gamma ** self.milestones[epoch]


class ConstantLR(_ByFactor):
    """Rates times a factor, until `total_iters` epochs are over."""

    def __init__(self, optimizer: Any, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        self._factor, self.total_iters = real_number("factor", factor, below=1.0000001), total_iters
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """The factor at the start, and its inverse at the end."""
        return self._factor if epoch == 0 else 1.0 / self._factor if epoch == self.total_iters else 1.0


class LinearLR(_ByFactor):
    """Rates times a factor that goes from one number to another in `total_iters` epochs."""

    def __init__(
        self,
        optimizer: Any,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        self.start_factor = real_number("start_factor", start_factor, below=1.0000001, open_end=True)
        self.end_factor = real_number("end_factor", end_factor, below=1.0000001)
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _at(self, epoch: int) -> float:
        part = min(epoch, self.total_iters) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * part

    def factor(self, epoch: int) -> float:
        """The quotient of the factors of this epoch and of the one before."""
        return self._at(epoch) / self._at(epoch - 1) if epoch else self._at(0)


class ExponentialLR(_ByFactor):
    """Rates times `gamma` in each epoch."""

    def __init__(self, optimizer: Any, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """`gamma`, but in the first epoch."""
        return self.gamma if epoch else 1.0


class PolynomialLR(_ByFactor):
    """Rates that fall to 0 in `total_iters` epochs, as a power of those that are left."""

    def __init__(self, optimizer: Any, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def factor(self, epoch: int) -> float:
        """The power of the quotient of what is left in this epoch and in the one before."""
        if epoch == 0 or epoch > self.total_iters:
            return 1.0
        return ((self.total_iters - epoch) / (self.total_iters - epoch + 1)) ** self.power


class _ByFunctions(LRScheduler):
    def __init__(self, optimizer: Any, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.lr_lambdas: list[Callable[[int], float]] = _for_each(lr_lambda, _groups(optimizer), "lr_lambda")
        super().__init__(optimizer, last_epoch)

    def _factors(self) -> list[float]:
        return [_number(function(self.last_epoch)) for function in self.lr_lambdas]


class LambdaLR(_ByFunctions):
    """Initial rates times a function of the epoch, one for all groups or one for each."""

    def get_lr(self) -> list[Any]:
        """The learning rates of all groups in epoch `last_epoch`."""
        return [rate * factor for rate, factor in zip(self.base_lrs, self._factors(), strict=True)]


class MultiplicativeLR(_ByFunctions):
    """Rates times a function of the epoch, one for all groups or one for each."""

    def get_lr(self) -> list[Any]:
        """The learning rates of all groups in epoch `last_epoch`."""
        if self.last_epoch == 0:
            return self.rates()
        return [rate * factor for rate, factor in zip(self.rates(), self._factors(), strict=True)]


class CosineAnnealingLR(LRScheduler):
    """Rates that follow a cosine down to `eta_min` in `T_max` epochs, and up again (Loshchilov and Hutter 2017)."""

    def __init__(self, optimizer: Any, T_max: float, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The learning rates of all groups in epoch `last_epoch`."""
        epoch, least, half = self.last_epoch, self.eta_min, math.pi / self.T_max
        if epoch == 0:
            return self.rates()
        if (epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            pairs = zip(self.rates(), self.base_lrs, strict=True)
            return [rate + (base - least) * (1 - math.cos(half)) / 2 for rate, base in pairs]
        factor = (1 + math.cos(half * epoch)) / (1 + math.cos(half * (epoch - 1)))
        return [factor * (rate - least) + least for rate in self.rates()]

    def rates_in_epoch(self) -> list[float]:
        """The rates in an epoch, from the initial ones."""
        part = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Rates that follow a cosine down to `eta_min` in T_0 epochs, then again in T_mult times as many, and so on."""

    def __init__(self, optimizer: Any, T_0: int, T_mult: int = 1, eta_min: float = 0, last_epoch: int = -1) -> None:
        for name, value in (("T_0", T_0), ("T_mult", T_mult)):
            if not isinstance(value, int) or value < 1:
                message = f"{name} must be a positive integer, but got {value!r}."
                raise ArgumentError(message)
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The learning rates of all groups in epoch `last_epoch`, which may be a fraction."""
        passed, length = float(max(self.last_epoch, 0)), float(self.T_0)
        while passed >= length:
            passed, length = passed - length, length * self.T_mult
        part = (1 + math.cos(math.pi * passed / length)) / 2
        return [self.eta_min + (base - self.eta_min) * part for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> bool:
        """Set the learning rates of the next epoch, or of one that is given and may be a fraction; True."""
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        for group, rate in zip(self._groups, self.get_lr(), strict=True):
            group["lr"] = _number(rate)
        return True


class CyclicLR(LRScheduler):
    """Rates that go up from `base_lr` to `max_lr` and down again, in cycles (Smith 2017).

    Parameters
    ----------
    optimizer : Optimizer
    base_lr, max_lr : number or list of numbers
        For all groups, or one for each.
    step_size_up, step_size_down : int
        The steps up, and down (as many, if None).
    mode : {"triangular", "triangular2", "exp_range"}
        Whether cycles are alike, halved each time, or shrink by `gamma` in each step.
    gamma : float
    scale_fn : callable, optional
        The height of a cycle in place of `mode`: a function of the cycle's number, or of the step.
    scale_mode : {"cycle", "iterations"}
        What `scale_fn` is given.
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
        scale_fn: Callable[[Any], Any] | None = None,
        scale_mode: str = "cycle",
        last_epoch: int = -1,
    ) -> None:
        groups = _groups(optimizer)
        scales = {
            "triangular": (lambda cycle: 1.0, "cycle"),
            "triangular2": (lambda cycle: 0.5 ** (cycle - 1.0), "cycle"),
            "exp_range": (lambda epoch: gamma**epoch, "iterations"),
        }
        if scale_fn is None and mode not in scales:
            message = f"mode must be one of {', '.join(scales)}, but got {mode!r}. Or give scale_fn."
            raise ArgumentError(message)
        self.scale_fn, self.scale_mode = scales[mode] if scale_fn is None else (scale_fn, scale_mode)
        least = _for_each(base_lr, groups, "base_lr")
        self.max_lrs = [_number(rate) for rate in _for_each(max_lr, groups, "max_lr")]
        self.total_step_size = step_size_up + (step_size_up if step_size_down is None else step_size_down)
        self.step_up_ratio = step_size_up / self.total_step_size
        if last_epoch == -1:
            for rate, group in zip(least, groups, strict=True):
                group["lr"] = group["initial_lr"] = _number(rate)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        """The learning rates of all groups in epoch `last_epoch`."""
        cycle = math.floor(1 + self.last_epoch / self.total_step_size)
        x = 1.0 + self.last_epoch / self.total_step_size - cycle
        height = x / self.step_up_ratio if x <= self.step_up_ratio else (x - 1) / (self.step_up_ratio - 1)
        height *= _number(self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch))
        return [base + (most - base) * height for base, most in zip(self.base_lrs, self.max_lrs, strict=True)]


class SequentialLR:
    """Several schedulers, one after the other.

    Parameters
    ----------
    optimizer : Optimizer
    schedulers : list of LRScheduler
    milestones : list of int
        The epochs in which the next one begins.
    last_epoch : int
    """

    def __init__(
        self, optimizer: Any, schedulers: Sequence[Any], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        if len(milestones) != len(schedulers) - 1 or any(one.optimizer is not optimizer for one in schedulers):
            message = (
                f"SequentialLR needs schedulers of its optimizer and one milestone between each two of them, but got "
                f"{len(schedulers)} schedulers and {len(milestones)} milestones."
            )
            raise ArgumentError(message)
        self.optimizer, self._schedulers, self._milestones = optimizer, list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        for group in _groups(optimizer):
            group["lr"] = _number(group["initial_lr"])
        for one in self._schedulers:
            one.last_epoch -= 1
        self._schedulers[0].step()

    def step(self) -> bool:
        """Set the learning rates of the next epoch; True."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        starts = number > 0 and self._milestones[number - 1] == self.last_epoch
        return self._schedulers[number].step(*([0] if starts else []))

    def get_last_lr(self) -> list[Any]:
        """The learning rates that the last step has set."""
        return _rates(_groups(self.optimizer))

    def state_dict(self) -> dict[str, Any]:
        """The state, and those of all schedulers."""
        states = [one.state_dict() for one in self._schedulers]
        return {"last_epoch": self.last_epoch, "_milestones": self._milestones, "_schedulers": states}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take the state of another one, or of an earlier time."""
        self.last_epoch, self._milestones = state_dict["last_epoch"], state_dict["_milestones"]
        for one, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            one.load_state_dict(state)


class ReduceLROnPlateau(_Resumed):
    """Rates times a factor where a number has not become better for some epochs.

    Parameters
    ----------
    optimizer : Optimizer
    mode : {"min", "max"}
        Whether less is better, or more.
    factor : float
        Below 1.
    patience : int
        The epochs without improvement that are let pass.
    threshold : float
        The least improvement that counts.
    threshold_mode : {"rel", "abs"}
        Whether it is a part of the best number, or a difference.
    cooldown : int
        The epochs after a change that are not counted.
    min_lr : number or list of numbers
    eps : float
        Changes that are not greater are left out.

    Examples
    --------
    >>> import nbgrad as nb
    >>> from nbgrad.experimental import optim
    >>> optimizer = optim.SGD([nb.Parameter(nb.Tensor([1.0]), name="w")], lr=1.0)
    >>> scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=0)
    >>> _ = scheduler.step(3.0), scheduler.step(4.0)
    >>> print(scheduler.get_last_lr()[0])
    0.5
    """

    def __init__(
        self,
        optimizer: Any,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if mode not in ("min", "max") or threshold_mode not in ("rel", "abs"):
            message = (
                f"mode must be 'min' or 'max', threshold_mode 'rel' or 'abs', but got {mode!r}, {threshold_mode!r}."
            )
            raise ArgumentError(message)
        self.optimizer, self._groups = optimizer, _groups(optimizer)
        self.mode, self.factor, self.patience = mode, real_number("factor", factor, below=1.0), patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        self.min_lrs = [_number(rate) for rate in _for_each(min_lr, self._groups, "min_lr")]
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = self.last_epoch = 0

    def _is_better(self, current: float) -> bool:
        margin = self.threshold * (abs(self.best) if self.threshold_mode == "rel" else 1.0)
        if not math.isfinite(self.best):
            return current < self.best if self.mode == "min" else current > self.best
        return current < self.best - margin if self.mode == "min" else current > self.best + margin

    def step(self, metrics: Any) -> bool:
        """Look at the number of an epoch; True."""
        current, self.last_epoch = _number(metrics), self.last_epoch + 1
        if self._is_better(current):
            self.best, self.num_bad_epochs = current, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown_counter - 1, 0
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            for group, least in zip(self._groups, self.min_lrs, strict=True):
                before = _number(group["lr"])
                after = max(before * self.factor, least)
                if before - after > self.eps:
                    group["lr"] = after
        return True

    @property
    def in_cooldown(self) -> bool:
        """Whether epochs are not counted now."""
        return self.cooldown_counter > 0

    def get_last_lr(self) -> list[Any]:
        """The learning rates that the last step has set."""
        return _rates(self._groups)
