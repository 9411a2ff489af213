"""Schedules: learning rates by the number of updates so far.

In: the constants of a curve. Out: a function of a count, which may be recorded, that gives a number. Called by users,
who give them to the methods in place of a learning rate. Names and parameters are optax's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError
from .transformations import Schedule


def _steps(value: int, name: str) -> int:
    if value < 1:
        message = f"{name} must be at least 1, but got {value}."
        raise ArgumentError(message)
    return value


def exponential_decay(init_value: float, transition_steps: int, decay_rate: float, staircase: bool = False) -> Schedule:
    """`init_value * decay_rate ** (count / transition_steps)`.

    Parameters
    ----------
    init_value, decay_rate : float
    transition_steps : int
    staircase : bool
        Whether the exponent is rounded down.

    Returns
    -------
    callable

    Raises
    ------
    ArgumentError
        For less than one step.

    Examples
    --------
    >>> import nbgrad as nb
    >>> float(nb.optim.exponential_decay(1.0, 10, 0.5)(20))
    0.25
    """
    _steps(transition_steps, "transition_steps")

    def rate(count: Any) -> Any:
        share = count / float(transition_steps)
        return init_value * decay_rate ** (np.floor(share) if staircase else share)

    return rate


def polynomial_schedule(
    init_value: float, end_value: float, power: float, transition_steps: int, transition_begin: int = 0
) -> Schedule:
    """From one value to another, along a power of the part of the way that is left.

    Parameters
    ----------
    init_value, end_value, power : float
    transition_steps : int
    transition_begin : int
        The updates before.

    Returns
    -------
    callable

    Raises
    ------
    ArgumentError
        For less than one step.

    Examples
    --------
    >>> import nbgrad as nb
    >>> float(nb.optim.polynomial_schedule(1.0, 0.0, 2.0, 10)(5))
    0.25
    """
    _steps(transition_steps, "transition_steps")

    def rate(count: Any) -> Any:
        left = 1.0 - np.clip(count - transition_begin, 0, transition_steps) / float(transition_steps)
        return (init_value - end_value) * left**power + end_value

    return rate


def linear_schedule(init_value: float, end_value: float, transition_steps: int, transition_begin: int = 0) -> Schedule:
    """From one value to another along a line, and the last one from there on.

    Parameters
    ----------
    init_value, end_value : float
    transition_steps, transition_begin : int

    Returns
    -------
    callable

    Raises
    ------
    ArgumentError
        For less than one step.

    Examples
    --------
    >>> import nbgrad as nb
    >>> [float(nb.optim.linear_schedule(1.0, 0.0, 4)(k)) for k in (0, 1, 4, 9)]
    [1.0, 0.75, 0.0, 0.0]
    """
    return polynomial_schedule(init_value, end_value, 1.0, transition_steps, transition_begin)


def cosine_decay(init_value: float, decay_steps: int, alpha: float = 0.0, exponent: float = 1.0) -> Schedule:
    """Half a period of a cosine from a value down to its part `alpha`.

    Parameters
    ----------
    init_value, alpha, exponent : float
    decay_steps : int

    Returns
    -------
    callable

    Raises
    ------
    ArgumentError
        For less than one step.

    Notes
    -----
    I. Loshchilov and F. Hutter, "SGDR: stochastic gradient descent with warm restarts", 2017.

    Examples
    --------
    >>> import nbgrad as nb
    >>> float(nb.optim.cosine_decay(1.0, 10)(5).round(12))
    0.5
    """
    _steps(decay_steps, "decay_steps")

    def rate(count: Any) -> Any:
        part = np.clip(count, 0, decay_steps) / float(decay_steps)
        return init_value * ((1 - alpha) * (0.5 * (1 + np.cos(np.pi * part))) ** exponent + alpha)

    return rate


def join_schedules(schedules: Sequence[Schedule], boundaries: Sequence[int]) -> Schedule:
    """Schedules one after the other, each counting from its boundary.

    Parameters
    ----------
    schedules : sequence of callables
    boundaries : sequence of int
        The counts at which the next one begins: one less than schedules.

    Returns
    -------
    callable

    Raises
    ------
    ArgumentError
        If the numbers do not fit.

    Examples
    --------
    >>> import nbgrad as nb
    >>> both = nb.optim.join_schedules([lambda k: 1.0, nb.optim.linear_schedule(0.5, 0.0, 5)], [10])
    >>> float(both(3)), float(both(10)), float(both(15))
    (1.0, 0.5, 0.0)
    """
    if len(schedules) != len(boundaries) + 1:
        message = f"{len(schedules)} schedules have {len(schedules) - 1} boundaries, but got {len(boundaries)}."
        raise ArgumentError(message)

    def rate(count: Any) -> Any:
        found = schedules[0](count)
        for boundary, schedule in zip(boundaries, schedules[1:], strict=True):
            found = np.where(count < boundary, found, schedule(count - boundary))
        return found

    return rate


def warmup_cosine_decay(
    init_value: float, peak_value: float, warmup_steps: int, decay_steps: int, end_value: float = 0.0
) -> Schedule:
    """A line up to the peak, then half a period of a cosine.

    Parameters
    ----------
    init_value, peak_value, end_value : float
    warmup_steps : int
        Of the line.
    decay_steps : int
        Of both together.

    Returns
    -------
    callable

    Raises
    ------
    ArgumentError
        If there are no steps for the cosine.

    Examples
    --------
    >>> import nbgrad as nb
    >>> rate = nb.optim.warmup_cosine_decay(0.0, 1.0, 10, 30)
    >>> [round(float(rate(k)), 6) for k in (5, 10, 20, 30)]
    [0.5, 1.0, 0.5, 0.0]
    """
    alpha = end_value / peak_value if peak_value else 0.0
    down = cosine_decay(peak_value, _steps(decay_steps - warmup_steps, "decay_steps - warmup_steps"), alpha)
    return join_schedules([linear_schedule(init_value, peak_value, warmup_steps), down], [warmup_steps])


def piecewise_constant(init_value: float, boundaries_and_scales: Mapping[int, float]) -> Schedule:
    """A value that is multiplied by a scale at each boundary.

    Parameters
    ----------
    init_value : float
    boundaries_and_scales : mapping
        From a count to the factor that holds after it.

    Returns
    -------
    callable

    Examples
    --------
    >>> import nbgrad as nb
    >>> rate = nb.optim.piecewise_constant(1.0, {10: 0.1, 20: 0.5})
    >>> [float(rate(k)) for k in (10, 11, 21)]
    [1.0, 0.1, 0.05]
    """

    def rate(count: Any) -> Any:
        found = init_value
        for boundary, factor in sorted(boundaries_and_scales.items()):
            found = found * np.where(count > boundary, factor, 1.0)
        return found

    return rate
