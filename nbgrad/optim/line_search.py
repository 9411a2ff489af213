"""A line search for the strong Wolfe conditions, one trial a turn and without branches.

In: the value and the slope of a function along a direction at a trial step. Out: the next trial step, or that this one
will do. Called by limited_memory.py inside a compiled loop.

J. J. More and D. J. Thuente, "Line search algorithms with guaranteed sufficient decrease", ACM TOMS 20, 1994; the steps
are those of MINPACK-2's `dcsrch` and `dcstep`, which SciPy has too. All that these choose by `if` is `np.where` here.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

DECREASE, CURVATURE, SHORTEST = 1e-4, 0.9, 1e-14
"""The constants of the sufficient decrease and of the curvature, and the relative width of the last interval."""
FARTHEST = 1e10
"""The largest step."""


class Search(NamedTuple):
    """The state between two trials: the step `at` to try; the ends of the interval with their values and slopes, the
    `best` of lower value; the function and its slope at zero."""

    at: Any
    best: Any
    best_value: Any
    best_slope: Any
    other: Any
    other_value: Any
    other_slope: Any
    bracketed: Any
    refined: Any
    low: Any
    high: Any
    width: Any
    wider: Any
    first_value: Any
    first_slope: Any
    trials: Any


def begun(value: Any, slope: Any, step: Any) -> Search:
    """A search that tries a step first."""
    zero = value * 0.0
    return Search(
        *(step, zero, value, slope, zero, value, slope, zero, zero, zero, 5.0 * step, zero + FARTHEST),
        *(zero + 2 * FARTHEST, value, slope, zero),
    )


def tried(search: Search, value: Any, slope: Any) -> tuple[Search, Any, Any]:
    """The search after the value and the slope at its trial step; whether that will do; whether none can be found."""
    s = search
    finite = np.isfinite(value) & np.isfinite(slope)
    line = DECREASE * s.first_slope
    limit = s.first_value + s.at * line
    refined = (s.refined > 0) | ((value <= limit) & (slope >= 0))
    bracketed = s.bracketed > 0
    flat = np.abs(slope) <= -CURVATURE * s.first_slope
    stuck = bracketed & ((s.at <= s.low) | (s.at >= s.high) | (s.high - s.low <= SHORTEST * s.high))
    # Where no better step can be found, one with a sufficient decrease will do.
    last = stuck | (s.at == FARTHEST) | (s.trials >= 40)
    good = finite & (value <= limit) & (flat | last)
    # In the first stage, the function less the line of sufficient decrease has a minimum to look for.
    tilt = np.where(~refined & (value <= s.best_value) & (value > limit), line, 0.0)
    best = s.best, s.best_value - s.best * tilt, s.best_slope - tilt
    other = s.other, s.other_value - s.other * tilt, s.other_slope - tilt
    ends = np.where(bracketed, s.low, s.best + 1.1 * (s.at - s.best)), s.high
    best, other, at, now = _interval(best, other, (s.at, value - s.at * tilt, slope - tilt), bracketed, *ends)
    best = best[0], best[1] + best[0] * tilt, best[2] + tilt
    other = other[0], other[1] + other[0] * tilt, other[2] + tilt
    apart = np.abs(other[0] - best[0])
    at = np.where(now & (apart >= 0.66 * s.wider), best[0] + 0.5 * (other[0] - best[0]), at)
    low = np.where(now, np.minimum(best[0], other[0]), at + 1.1 * (at - best[0]))
    high = np.where(now, np.maximum(best[0], other[0]), at + 4.0 * (at - best[0]))
    at = np.clip(at, 0.0, FARTHEST)
    closed = now & ((at <= low) | (at >= high) | (high - low <= SHORTEST * high))
    at = np.where(closed, best[0], at)
    wider, width = np.where(now, s.width, s.wider), np.where(now, apart, s.width)
    after = Search(
        *(at, *best, *other, now * 1.0, refined * 1.0, low, high, width, wider),
        *(s.first_value, s.first_slope, s.trials + 1.0),
    )
    # Where the function has no value, the step was too long, and nothing else is known.
    shorter = s._replace(at=s.best + 0.1 * (s.at - s.best), trials=s.trials + 1.0)
    kept = Search(*[np.where(finite, a, b) for a, b in zip(after, shorter, strict=True)])
    return kept, good, ~good & (last & finite | (s.trials >= 40))


Point = tuple[Any, Any, Any]
"""A step, the value there, and the slope."""


def _interval(best: Point, other: Point, trial: Point, bracketed: Any, low: Any, high: Any) -> tuple[Any, ...]:
    """The new ends of the interval, the next trial step, and whether the ends enclose a minimum: `dcstep`."""
    x, fx, dx = best
    y, fy, dy = other
    t, ft, dt = trial
    turned = dt * np.sign(dx) < 0
    higher = ft > fx
    flatter = np.abs(dt) < np.abs(dx)
    theta, gamma = _cubic(fx - ft, dx, dt, t - x)
    # A higher value: the minimum is between; the cubic's if it is nearer to the best, else the mean of both.
    gamma_up = np.where(t < x, -gamma, gamma)
    cubic = x + _ratio((gamma_up - dx) + theta, ((gamma_up - dx) + gamma_up) + dt) * (t - x)
    square = x + _ratio(dx, _ratio(fx - ft, t - x) + dx) / 2 * (t - x)
    first = np.where(np.abs(cubic - x) < np.abs(square - x), cubic, cubic + (square - cubic) / 2)
    # A slope of the other sign: of cubic and secant, the farther from the trial.
    gamma_down = np.where(t > x, -gamma, gamma)
    top = (gamma_down - dt) + theta
    cubic = t + _ratio(top, ((gamma_down - dt) + gamma_down) + dx) * (x - t)
    secant = t + _ratio(dt, dt - dx) * (x - t)
    second = np.where(np.abs(cubic - t) > np.abs(secant - t), cubic, secant)
    # A flatter slope: the cubic may have no minimum there, and the trial goes on.
    share = _ratio(top, (gamma_down + (dx - dt)) + gamma_down)
    edge = np.where(t > x, high, low)
    cubic = np.where((share < 0) & (gamma_down != 0), t + share * (x - t), edge)
    nearer = np.abs(cubic - t) < np.abs(secant - t)
    inner = np.where(nearer, cubic, secant)
    bound = t + 0.66 * (y - t)
    inner = np.where(t > x, np.minimum(bound, inner), np.maximum(bound, inner))
    outer = np.clip(np.where(nearer, secant, cubic), low, high)
    third = np.where(bracketed, inner, outer)
    # A slope as steep: the cubic through the other end, or as far as may be.
    theta, gamma = _cubic(ft - fy, dy, dt, y - t)
    gamma = np.where(t > y, -gamma, gamma)
    cubic = t + _ratio((gamma - dt) + theta, ((gamma - dt) + gamma) + dy) * (y - t)
    fourth = np.where(bracketed, cubic, edge)
    at = np.where(higher, first, np.where(turned, second, np.where(flatter, third, fourth)))
    after = tuple([np.where(higher, c, np.where(turned, a, b)) for a, b, c in zip(best, other, trial, strict=True)])
    before = tuple([np.where(higher, a, c) for a, c in zip(best, trial, strict=True)])
    return before, after, at, bracketed | higher | turned


def _cubic(fall: Any, one: Any, two: Any, apart: Any) -> tuple[Any, Any]:
    """The numbers theta and gamma of the cubic through two points, given the fall of the value and both slopes."""
    theta = 3 * _ratio(fall, apart) + one + two
    size = np.maximum(np.abs(theta), np.maximum(np.abs(one), np.abs(two)))
    inside = _ratio(theta, size) ** 2 - _ratio(one, size) * _ratio(two, size)
    return theta, size * np.sqrt(np.maximum(inside, 0.0))


def _ratio(a: Any, b: Any) -> Any:
    """A quotient; a division by zero, which no chosen step has, gives zero."""
    zero = b == 0
    return np.where(zero, 0.0, a / np.where(zero, 1.0, b))
