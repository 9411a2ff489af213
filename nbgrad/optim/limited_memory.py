"""One turn of L-BFGS: one value and gradient, of a step of a line search or of the start of the next one.

In: a function with its gradient and the state of an iteration. Out: the next state, and how the iteration has ended.
Called by compiled_minimisers.py inside a compiled loop. J. Nocedal, "Updating quasi-Newton matrices with limited
storage", Math. Comp. 35, 1980; J. Nocedal and S. Wright, "Numerical Optimization", 2nd edition, algorithms 7.4 and 7.5.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import line_search
from .endings import FLAT, LOWEST, SMALL_GRADIENT, STEPS
from .line_search import Search


class Memory(NamedTuple):
    """The last steps and differences of gradients, shape (m, n), the newest last, with one over their products (0 for
    none); and the scale of the first matrix."""

    steps: Any
    changes: Any
    inverses: Any
    scale: Any


class State(NamedTuple):
    """The point, the value, the gradient and the direction, the memory, the line search, and the counts of steps and of
    the last of them that decreased the value by next to nothing."""

    x: Any
    value: Any
    gradient: Any
    direction: Any
    memory: Memory
    search: Search
    steps: Any
    idle: Any


def start(x: np.ndarray, value: np.ndarray, gradient: np.ndarray, pairs: int) -> State:
    """The state at the start, for a memory of so many pairs."""
    n = x.size
    memory = Memory(np.zeros((pairs, n)), np.zeros((pairs, n)), np.zeros(pairs), np.array(1.0))
    square = float(gradient @ gradient)
    step = np.array(min(1.0, 1.0 / np.sqrt(square)) if square > 0 else 1.0)
    search = line_search.begun(np.array(value), np.array(-square), step)
    zero = np.array(0.0)
    return State(x, np.array(value), gradient, -gradient, memory, search, zero, zero)


def turn(evaluate: Any, state: State, limits: Any) -> tuple[State, Any]:
    """One trial. `limits` are the most trials, that of the gradient, that of the relative decrease, the most steps."""
    trial = state.x + state.search.at * state.direction
    value, gradient = evaluate(trial)
    slope = np.sum(gradient * state.direction)
    search, good, hopeless = line_search.tried(state.search, value, slope)
    step, change = trial - state.x, gradient - state.gradient
    memory = _remembered(state.memory, step, change)
    direction = -_product(memory, gradient)
    downhill = np.sum(direction * gradient)
    # Rounding may leave a direction that leads nowhere: then it is the gradient's, and nothing is remembered.
    lost = ~(downhill < 0)
    direction = np.where(lost, -gradient, direction)
    downhill = np.where(lost, -np.sum(gradient * gradient), downhill)
    memory = Memory(*[np.where(lost, old * 0.0, new) for old, new in zip(memory, memory, strict=True)])
    memory = memory._replace(scale=np.where(lost, 1.0, memory.scale))
    decrease = state.value - value
    relative = decrease <= limits[2] * np.maximum(np.maximum(np.abs(state.value), np.abs(value)), 1e-300)
    idle = np.where(relative, state.idle + 1.0, 0.0)
    moved = State(
        *(trial, value, gradient, direction, memory),
        *(line_search.begun(value, downhill, 1.0 + 0.0 * value), state.steps + 1.0, idle),
    )
    # A search that fails begins again along the gradient, once.
    square = np.sum(state.gradient * state.gradient)
    first = 1.0 / np.maximum(1.0, np.sqrt(square))
    empty = Memory(*[part * 0.0 for part in state.memory])._replace(scale=1.0 + 0.0 * value)
    again = state._replace(
        direction=-state.gradient, memory=empty, search=line_search.begun(state.value, -square, first)
    )
    was_along_gradient = np.sum(state.memory.inverses) == 0
    kept = _chosen(good, moved, _chosen(hopeless, again, state._replace(search=search)))
    small = np.max(np.abs(gradient)) <= limits[1]
    # The decrease that the whole step promises is less than the value's own rounding.
    rounding = -state.search.first_slope <= 1e-14 * np.abs(state.value)
    end = np.where(
        good,
        np.where(small, SMALL_GRADIENT, np.where(idle >= 2, FLAT, np.where(state.steps + 1 >= limits[3], STEPS, 0.0))),
        np.where(hopeless & rounding, FLAT, np.where(hopeless & was_along_gradient, LOWEST, 0.0)),
    )
    return kept, end


def _chosen(test: Any, yes: State, no: State) -> State:
    """One of two states."""
    memory = Memory(*[np.where(test, a, b) for a, b in zip(yes.memory, no.memory, strict=True)])
    search = Search(*[np.where(test, a, b) for a, b in zip(yes.search, no.search, strict=True)])
    pairs = {name: np.where(test, getattr(yes, name), getattr(no, name)) for name in ("x", "value", "gradient")}
    direction = np.where(test, yes.direction, no.direction)
    counts = {name: np.where(test, getattr(yes, name), getattr(no, name)) for name in ("steps", "idle")}
    return State(**pairs, direction=direction, memory=memory, search=search, **counts)


def _remembered(memory: Memory, step: Any, change: Any) -> Memory:
    """The memory with another pair, if the function is convex along the step."""
    product, square = np.sum(step * change), np.sum(change * change)
    convex = product > 2.2e-16 * square
    inverse = np.where(convex, 1.0 / np.where(convex, product, 1.0), 0.0)
    newer = Memory(
        np.concatenate([memory.steps[1:], step[None]]),
        np.concatenate([memory.changes[1:], change[None]]),
        np.concatenate([memory.inverses[1:], inverse[None]]),
        product / np.where(convex, square, 1.0),
    )
    return Memory(*[np.where(convex, new, old) for new, old in zip(newer, memory, strict=True)])


def _product(memory: Memory, gradient: Any) -> Any:
    """The inverse of the approximate Hessian times the gradient, by the recursion in two loops."""
    left = gradient
    parts: list[Any] = []
    for k in reversed(range(memory.steps.shape[0])):
        part = memory.inverses[k] * np.sum(memory.steps[k] * left)
        left = left - part * memory.changes[k]
        parts.append(part)
    left = memory.scale * left
    for k, part in enumerate(reversed(parts)):
        back = memory.inverses[k] * np.sum(memory.changes[k] * left)
        left = left + (part - back) * memory.steps[k]
    return left
