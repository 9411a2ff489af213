"""One turn of Newton's method in a trust region: conjugate gradients to its edge, and the value at their end.

In: a function with its gradient, products with its Hessian, and the state of an iteration. Out: the next state, and how
the iteration has ended. Called by compiled_minimisers.py inside a compiled loop. T. Steihaug, "The conjugate gradient
method and trust regions in large scale optimization", SIAM J. Numer. Anal. 20, 1983; J. Nocedal and S. Wright,
"Numerical Optimization", 2nd edition, algorithms 4.1 and 7.2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..control.scan import scan
from .endings import FLAT, LOWEST, SMALL_GRADIENT, STEPS

ENOUGH = 0.15
"""A step is taken if the decrease is this part of the predicted one."""


PRODUCTS = 4
"""The products with the Hessian in one turn. A step may take several turns, of which the last one's value counts."""


class Inner(NamedTuple):
    """Conjugate gradients: the step, the Hessian's product with it, the residual, the direction, the residual's square,
    the products so far, and whether there is no more to do."""

    step: Any
    bent: Any
    residual: Any
    direction: Any
    square: Any
    products: Any
    done: Any


class State(NamedTuple):
    """The point, the value, the gradient, the radius of the region, the step that is looked for, and the count of steps
    and of values that counted."""

    x: Any
    value: Any
    gradient: Any
    radius: Any
    inner: Inner
    steps: Any
    values: Any


def start(x: np.ndarray, value: np.ndarray, gradient: np.ndarray, radius: float) -> State:
    """The state at the start."""
    zero = np.array(0.0)
    return State(x, np.array(value), gradient, np.array(radius), _begun(gradient), zero, zero)


def _begun(gradient: Any) -> Inner:
    square = np.sum(gradient * gradient)
    return Inner(*(0.0 * gradient, 0.0 * gradient, gradient, -gradient, square, 0.0 * square, (square == 0) * 1.0))


def turn_with(most: int) -> Any:
    """The turn, for at most so many products with the Hessian in a step."""

    def turn(evaluate: Any, state: State, limits: Any) -> tuple[State, Any]:
        both, product = evaluate
        inner = _inner(product, state, most)
        found = inner.done > 0
        trial = state.x + inner.step
        value, gradient = both(trial)
        predicted = -np.sum(state.gradient * inner.step) - 0.5 * np.sum(inner.step * inner.bent)
        decrease = state.value - value
        # Near the minimum, both decreases are rounding: Conn, Gould and Toint, "Trust-Region Methods", 2000, 17.4.2.
        noise = 1e-15 * np.maximum(np.abs(state.value), 1e-300)
        ratio = (decrease + 10 * noise) / (predicted + 10 * noise)
        good = np.isfinite(value) & (ratio > ENOUGH) & np.all(np.isfinite(gradient))
        size = np.sqrt(np.sum(inner.step**2))
        narrow = ~(np.isfinite(value) & (ratio >= 0.25))
        wide = (ratio > 0.75) & (size >= 0.99 * state.radius)
        radius = np.where(narrow, 0.25 * size, np.where(wide, 2.0 * state.radius, state.radius))
        steps = state.steps + np.where(good, 1.0, 0.0)
        slopes = np.where(good, gradient, state.gradient)
        moved = (np.where(good, trial, state.x), np.where(good, value, state.value), slopes, radius)
        before = (state.x, state.value, state.gradient, state.radius)
        next_inner = Inner(*[np.where(found, new, old) for new, old in zip(_begun(slopes), inner, strict=True)])
        x, lower, slopes, radius = (np.where(found, new, old) for new, old in zip(moved, before, strict=True))
        values = state.values + np.where(found, 1.0, 0.0)
        after = State(x, lower, slopes, radius, next_inner, np.where(found, steps, state.steps), values)
        small = good & (np.max(np.abs(gradient)) <= limits[1])
        # At a kink, only the region's edge makes the predicted decrease small.
        flat = (predicted <= limits[2] * np.abs(state.value)) & (size < 0.99 * state.radius)
        lost = radius <= 1e-15 * np.maximum(1e-300, np.sqrt(np.sum(state.x**2)))
        last = steps >= limits[3]
        end = np.where(small, SMALL_GRADIENT, np.where(flat, FLAT, np.where(lost, LOWEST, np.where(last, STEPS, 0.0))))
        return after, np.where(found, end, 0.0)

    return turn


def _inner(product: Any, state: State, most: int) -> Inner:
    """The step after some of Steihaug's conjugate gradients."""
    size = np.sqrt(np.sum(state.gradient**2))
    limit = np.minimum(0.5, np.sqrt(size)) * size

    def one(inner: Inner, _: Any) -> tuple[Inner, None]:
        bent = product(inner.direction, state.x)
        curvature = np.sum(inner.direction * bent)
        convex = curvature > 0
        length = inner.square / np.where(convex, curvature, 1.0)
        beyond = inner.step + length * inner.direction
        outside = ~convex | (np.sum(beyond**2) >= state.radius**2)
        length = np.where(outside, _to_edge(inner.step, inner.direction, state.radius), length)
        residual = inner.residual + length * bent
        square = np.sum(residual * residual)
        ratio = square / np.where(inner.square > 0, inner.square, 1.0)
        after = Inner(
            *(inner.step + length * inner.direction, inner.bent + length * bent, residual),
            *(ratio * inner.direction - residual, square, inner.products + 1.0),
            (outside | (np.sqrt(square) <= limit) | (inner.products + 1.0 >= most)) * 1.0,
        )
        return Inner(*[np.where(inner.done > 0, a, b) for a, b in zip(inner, after, strict=True)]), None

    return scan(one, state.inner, length=min(most, PRODUCTS))[0]


def _to_edge(step: Any, direction: Any, radius: Any) -> Any:
    """How far along a direction the edge of the region is."""
    a, b = np.sum(direction**2), np.sum(step * direction)
    c = np.maximum(radius**2 - np.sum(step**2), 0.0)
    root = np.sqrt(b * b + a * c)
    # Without cancellation for both signs of b.
    sum_of = b + np.where(b >= 0, root, -root)
    safe = np.where(sum_of == 0, 1.0, sum_of)
    return np.where(b >= 0, c / safe, -sum_of / np.where(a == 0, 1.0, a))
