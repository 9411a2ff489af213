"""Learning rates that change from step to step: Cells of the global step, and lists with one number a step.

In: the constants of a formula. Out: a `LearningRateSchedule`, which an optimizer evaluates inside its update, or a list
of floats, which it takes as well. Called by users. Each formula is written once, for numbers and Tensors alike; Cells
give it steps, lists give it epochs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..record.tensor import Tensor
from .cell import Cell
from .layer_arguments import flag, positive
from .optimizer import real_number

# ----- The formulas: of the time t and the time n that a decay takes -----


def _exponential(rate: float, decay: float, stair: bool, t: Any, n: int) -> Any:
    return rate * decay ** (np.floor(t / n) if stair else t / n)


def _natural(rate: float, decay: float, stair: bool, t: Any, n: int) -> Any:
    return rate * np.exp(-decay * (np.floor(t / n) * n if stair else t))


def _inverse(rate: float, decay: float, stair: bool, t: Any, n: int) -> Any:
    return rate / (1.0 + decay * (np.floor(t / n) if stair else t / n))


def _cosine(low: float, high: float, t: Any, n: int) -> Any:
    return low + 0.5 * (high - low) * (1.0 + np.cos(math.pi * (np.minimum(t, n) / n)))


def _polynomial(rate: float, end: float, power: float, restart: bool, t: Any, n: int) -> Any:
    whole = n * np.maximum(np.ceil(t / n), 1.0) if restart else n
    done = t / whole if restart else np.minimum(t, n) / n
    return (rate - end) * (1.0 - done) ** power + end


def _warm_up(rate: float, t: Any, n: int) -> Any:
    return rate * (np.minimum(t, n) / n)


# ----- Arguments -----


def _decay_constants(learning_rate: Any, decay_rate: Any, is_stair: Any) -> tuple[float, float, bool]:
    rate = real_number("learning_rate", learning_rate, open_end=True)
    return rate, real_number("decay_rate", decay_rate, open_end=True), flag(is_stair, "is_stair")


def _cosine_constants(min_lr: Any, max_lr: Any) -> tuple[float, float]:
    low, high = real_number("min_lr", min_lr), real_number("max_lr", max_lr, open_end=True)
    if low >= high:
        message = f"max_lr must be greater than min_lr, but got min_lr {low} and max_lr {high}."
        raise ArgumentError(message)
    return low, high


def _polynomial_constants(rate: Any, end: Any, power: Any, update: Any, name: str) -> tuple[float, float, float, bool]:
    return (
        real_number("learning_rate", rate, open_end=True),
        real_number("end_learning_rate", end),
        real_number("power", power, open_end=True),
        flag(update, name),
    )


# ----- Cells -----


class LearningRateSchedule(Cell):
    """A learning rate as a function of the global step; subclasses define `construct(self, global_step)`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> class Halving(nb.nn.LearningRateSchedule):
    ...     def construct(self, global_step):
    ...         return 0.5 ** global_step.astype(nb.float32)
    >>> w = nb.Parameter(nb.Tensor([0.0]), name="w")
    >>> optimizer = nb.nn.SGD([w], learning_rate=Halving())
    >>> _ = [optimizer([nb.Tensor([-1.0])]) for _ in range(3)]
    >>> print(w.value())
    [1.75]
    """


class _OfSteps(LearningRateSchedule):
    """A formula of the step and of the number of steps that a decay takes."""

    def __init__(self, formula: Callable[..., Any], constants: tuple[Any, ...], name: str, steps: Any) -> None:
        super().__init__()
        self._formula = formula
        self._constants = constants
        self._steps = positive(steps, name)

    def construct(self, global_step: Any) -> Tensor:
        """The learning rate at a step (counted from 0): float32, in the shape of the step."""
        step = global_step if isinstance(global_step, Tensor) else Tensor(global_step)
        return self._formula(*self._constants, step.astype(np.float64), self._steps).astype(np.float32)

    def extend_repr(self) -> str:
        """The constants."""
        return ", ".join(map(str, (*self._constants, self._steps)))


class ExponentialDecayLR(_OfSteps):
    """`learning_rate * decay_rate**p`, where p = step / decay_steps, rounded down if `is_stair`.

    Parameters
    ----------
    learning_rate, decay_rate : float
        Positive.
    decay_steps : int
        Positive.
    is_stair : bool

    Raises
    ------
    ArgumentError, DtypeError
        For numbers out of range, and for what is no number.

    Examples
    --------
    >>> import nbgrad as nb
    >>> rate = nb.nn.ExponentialDecayLR(0.5, 0.25, decay_steps=4)
    >>> print(rate(nb.Tensor(2, nb.int32)), rate(nb.Tensor(4, nb.int32)))
    0.25 0.125
    """

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        constants = _decay_constants(learning_rate, decay_rate, is_stair)
        super().__init__(_exponential, constants, "decay_steps", decay_steps)


class NaturalExpDecayLR(_OfSteps):
    """`learning_rate * exp(-decay_rate * step)`; if `is_stair`, of the last multiple of `decay_steps`."""

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        constants = _decay_constants(learning_rate, decay_rate, is_stair)
        super().__init__(_natural, constants, "decay_steps", decay_steps)


class InverseDecayLR(_OfSteps):
    """`learning_rate / (1 + decay_rate * p)`, where p = step / decay_steps, rounded down if `is_stair`."""

    def __init__(self, learning_rate: float, decay_rate: float, decay_steps: int, is_stair: bool = False) -> None:
        constants = _decay_constants(learning_rate, decay_rate, is_stair)
        super().__init__(_inverse, constants, "decay_steps", decay_steps)


class CosineDecayLR(_OfSteps):
    """`min_lr + (max_lr - min_lr) * (1 + cos(pi * step / decay_steps)) / 2`, and `min_lr` after `decay_steps`."""

    def __init__(self, min_lr: float, max_lr: float, decay_steps: int) -> None:
        super().__init__(_cosine, _cosine_constants(min_lr, max_lr), "decay_steps", decay_steps)


class PolynomialDecayLR(_OfSteps):
    """`(learning_rate - end_learning_rate) * (1 - step / decay_steps)**power + end_learning_rate`.

    After `decay_steps` the end is kept; with `update_decay_steps` the decay takes the next multiple of `decay_steps`
    instead, so that the learning rate jumps up and decays again.
    """

    def __init__(
        self,
        learning_rate: float,
        end_learning_rate: float,
        decay_steps: int,
        power: float,
        update_decay_steps: bool = False,
    ) -> None:
        constants = _polynomial_constants(
            learning_rate, end_learning_rate, power, update_decay_steps, "update_decay_steps"
        )
        super().__init__(_polynomial, constants, "decay_steps", decay_steps)


class WarmUpLR(_OfSteps):
    """`learning_rate * step / warmup_steps`, and `learning_rate` after `warmup_steps`."""

    def __init__(self, learning_rate: float, warmup_steps: int) -> None:
        super().__init__(_warm_up, (real_number("learning_rate", learning_rate),), "warmup_steps", warmup_steps)


# ----- Lists -----


def _by_epoch(
    formula: Callable[..., Any],
    constants: tuple[Any, ...],
    total_step: Any,
    step_per_epoch: Any,
    epochs: Any,
    name: str = "decay_epoch",
) -> list[float]:
    """A formula at the epoch of each step."""
    steps = np.arange(positive(total_step, "total_step"))
    epoch = np.floor(steps / positive(step_per_epoch, "step_per_epoch"))
    return formula(*constants, epoch, positive(epochs, name)).tolist()


def piecewise_constant_lr(milestone: Sequence[int], learning_rates: Sequence[float]) -> list[float]:
    """Learning rates that are kept up to milestones.

    Parameters
    ----------
    milestone : list or tuple of int
        Increasing steps; the k-th learning rate is used before the k-th of them.
    learning_rates : list or tuple of float

    Returns
    -------
    list of float
        One for each step, up to the last milestone.

    Raises
    ------
    ArgumentError
        If the lists differ in length, or a milestone is not greater than the one before.
    DtypeError
        If they are no lists of numbers.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.nn.piecewise_constant_lr([2, 5], [0.1, 0.05])
    [0.1, 0.1, 0.05, 0.05, 0.05]
    """
    if not isinstance(milestone, list | tuple) or not isinstance(learning_rates, list | tuple):
        message = (
            f"milestone and learning_rates must be lists or tuples, but got {type(milestone).__name__} and "
            f"{type(learning_rates).__name__}."
        )
        raise DtypeError(message)
    if len(milestone) != len(learning_rates):
        message = (
            f"There must be as many learning rates as milestones, but got {len(learning_rates)}, {len(milestone)}."
        )
        raise ArgumentError(message)
    rates: list[float] = []
    for position, (end, rate) in enumerate(zip(milestone, learning_rates, strict=True)):
        if positive(end, f"milestone[{position}]") <= len(rates):
            message = f"Milestones must increase, but milestone[{position}] is {end} after {len(rates)}."
            raise ArgumentError(message)
        rates += [real_number(f"learning_rates[{position}]", rate)] * (end - len(rates))
    return rates


def exponential_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """The learning rates of `ExponentialDecayLR` for `total_step` steps, which change from epoch to epoch.

    Parameters
    ----------
    learning_rate, decay_rate : float
        Positive.
    total_step, step_per_epoch, decay_epoch : int
        Positive: how many steps there are, how many make an epoch, and in how many epochs the decay rate applies once.
    is_stair : bool

    Returns
    -------
    list of float

    Raises
    ------
    ArgumentError, DtypeError
        For numbers out of range, and for what is no number.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.nn.exponential_decay_lr(1.0, 0.25, total_step=6, step_per_epoch=2, decay_epoch=2)
    [1.0, 1.0, 0.5, 0.5, 0.25, 0.25]
    """
    constants = _decay_constants(learning_rate, decay_rate, is_stair)
    return _by_epoch(_exponential, constants, total_step, step_per_epoch, decay_epoch)


def natural_exp_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """The learning rates of `NaturalExpDecayLR`, of epochs instead of steps; arguments as `exponential_decay_lr`."""
    constants = _decay_constants(learning_rate, decay_rate, is_stair)
    return _by_epoch(_natural, constants, total_step, step_per_epoch, decay_epoch)


def inverse_decay_lr(
    learning_rate: float,
    decay_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    is_stair: bool = False,
) -> list[float]:
    """The learning rates of `InverseDecayLR`, of epochs instead of steps; arguments as `exponential_decay_lr`."""
    constants = _decay_constants(learning_rate, decay_rate, is_stair)
    return _by_epoch(_inverse, constants, total_step, step_per_epoch, decay_epoch)


def cosine_decay_lr(
    min_lr: float, max_lr: float, total_step: int, step_per_epoch: int, decay_epoch: int
) -> list[float]:
    """The learning rates of `CosineDecayLR`, of epochs instead of steps."""
    return _by_epoch(_cosine, _cosine_constants(min_lr, max_lr), total_step, step_per_epoch, decay_epoch)


def polynomial_decay_lr(
    learning_rate: float,
    end_learning_rate: float,
    total_step: int,
    step_per_epoch: int,
    decay_epoch: int,
    power: float,
    update_decay_epoch: bool = False,
) -> list[float]:
    """The learning rates of `PolynomialDecayLR`, of epochs instead of steps."""
    constants = _polynomial_constants(learning_rate, end_learning_rate, power, update_decay_epoch, "update_decay_epoch")
    return _by_epoch(_polynomial, constants, total_step, step_per_epoch, decay_epoch)


def warmup_lr(learning_rate: float, total_step: int, step_per_epoch: int, warmup_epoch: int) -> list[float]:
    """The learning rates of `WarmUpLR`, of epochs instead of steps."""
    constants = (real_number("learning_rate", learning_rate),)
    return _by_epoch(_warm_up, constants, total_step, step_per_epoch, warmup_epoch, "warmup_epoch")
