"""Branches and loops while they run, in code that control_flow.py has rewritten.

In: the value that a branch or loop asks for, functions for its sides or turns, and the values of the names that they
set. Out: the values of these names afterwards. A plain value runs Python's own statement. A recorded one that stands
for many (the calls of a compiled function, the values in `vmap`, the turns of a loop) becomes a choice for each
element (sides.py), or `while_loop` (turned_loops.py); where it cannot, `jit` records a way of its own, as it does
without rewriting, and elsewhere an error says why. Called by rewritten code, which finds the functions here under one
global name.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

import numpy as np

from ..errors import TracedValueError
from ..graph.trace import forget_refusal, open_traces
from ..record.as_node import as_node
from ..record.chosen_arrays import chosen_arrays, is_left_to_python
from ..record.tensor import Tensor
from .chosen_values import UNSET, CannotTurn, cannot, may_stay_pythons
from .handled_errors import division
from .sides import Names, State, chosen_result, chosen_state
from .truth_values import NotedConditions, Thunk, and_, is_recorded, not_, or_, truth
from .turned_loops import Turn, staged

__all__ = [
    "UNSET",
    "Names",
    "and_",
    "branch",
    "choose",
    "division",
    "for_",
    "is_staging",
    "leave",
    "not_",
    "or_",
    "range_",
    "values",
    "while_",
]


def is_staging() -> bool:
    """Whether something records one function for many values, so that code with statements as calls makes sense."""
    return any(trace.guards is not None or trace.mapping or trace.turn_ends is not None for trace in open_traces())


def values(*thunks: Thunk) -> State:
    """The values of names, `UNSET` for those that have none."""
    found: list[Any] = []
    for thunk in thunks:
        try:
            found.append(thunk())
        except NameError:
            found.append(UNSET)
    return tuple(found)


def _turned(reason: str | None, code: CodeType, function: Callable[..., Any], *args: Any) -> tuple[Any, str | None]:
    """The result of a statement that is turned into a call, or the reason why it stays Python's."""
    if reason is None and is_left_to_python(code) and may_stay_pythons():
        reason = "it makes a name one of two arrays, of one of which elements are set later"
    if reason is not None:
        return None, reason
    conditions = NotedConditions()
    try:
        return function(*args), None
    except Exception as error:  # the side that is not taken, or a turn too many, may do anything
        conditions.forget_later()
        forget_refusal()
        return None, _described(error)


def _described(error: Exception) -> str:
    text = str(error).rstrip(".")
    return text if isinstance(error, CannotTurn) else f"{type(error).__name__}: {text}"


# ----- Branches -----


def branch(
    test: Any,
    yes: Callable[..., State],
    no: Callable[..., State],
    state: State,
    names: Names,
    given: Sequence[str],
    reason: str | None,
) -> State:
    """A branch: from the values of names to those of `given` ones."""
    if not is_recorded(test):
        return (yes if test else no)(*state)
    found, reason = _turned(reason, yes.__code__, chosen_state, test, yes, no, state, names, given)
    return found if reason is None else (yes if truth(test, reason) else no)(*state)


def leave(
    test: Any,
    yes: Callable[..., Any],
    no: Callable[..., Any],
    state: State,
    names: Names,
    reason: str | None,
) -> Any:
    """A branch both sides of which return something."""
    if not is_recorded(test):
        return (yes if test else no)(*state)
    found, reason = _turned(reason, yes.__code__, chosen_result, test, yes, no, state, names)
    return found if reason is None else (yes if truth(test, reason) else no)(*state)


def choose(test: Any, yes: Thunk, no: Thunk) -> Any:
    """`yes if test else no`."""
    return leave(test, yes, no, (), Names(), None)


# ----- Loops -----


def while_(
    test: Callable[..., Any],
    turn: Turn,
    state: State,
    names: Names,
    reason: str | None,
) -> tuple[Any, State]:
    """A loop by a condition: whether it was left by `break`, and the values at its end."""
    going: Any = True
    code = turn.__code__
    while True:
        question = and_(lambda going=going: going, lambda state=state: test(*state))
        if is_recorded(question):
            found, reason = _turned(reason, code, staged, going, question, test, turn, state, names, code)
            if reason is None:
                return not_(found[0]), found[1]
        if not truth(question, reason):
            return (not going) if isinstance(going, bool) else not truth(going, reason), state
        going, state = turn(*state)


@dataclass
class Counted:
    """A range whose bounds are recorded."""

    start: Any
    stop: Any
    step: int


def range_(kind: Any, *bounds: Any) -> Any:
    """`range(...)`, for recorded bounds too."""
    if kind is not builtins.range or not any(is_recorded(bound) for bound in bounds):
        return kind(*bounds)
    start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    step = int(bounds[2]) if len(bounds) == 3 else 1
    if not step:
        message = "range() arg 3 must not be zero"
        raise ValueError(message)
    return Counted(start, stop, step)


def for_(items: Any, turn: Turn, state: State, names: Names, reason: str | None) -> tuple[Any, State]:
    """A loop over items: whether it was left by `break`, and the values at its end."""
    code = turn.__code__
    if isinstance(items, Counted):
        found, reason = _turned(reason, code, _counted, True, items, turn, state, names, code)
        if reason is None:
            return found
        try:
            items = range(int(items.start), int(items.stop), items.step)
        except TracedValueError:
            truth(_tensor(items.stop), reason)
            raise
    going: Any = True
    for position, item in enumerate(items):
        if is_recorded(going):
            found, reason = _turned(reason, code, _rest, going, items, position, turn, state, names, code)
            if reason is None:
                return found
        if not truth(going, reason):
            break
        going, state = turn(item, *state)
    return not_(going), state


def _tensor(value: Any) -> Tensor:
    """A value as a Tensor."""
    return Tensor._of(as_node(value))


def _rest(
    going: Any, items: Any, position: int, turn: Turn, state: State, names: Names, code: CodeType
) -> tuple[Any, State]:
    """The turns from an item on."""
    if isinstance(items, range):
        left = Counted(items[position], items.stop, items.step)
        return _counted(going, left, turn, state, names, code)
    if not isinstance(items, Tensor | np.ndarray):
        cannot(f"it goes through {type(items).__name__} and may end before its end")
    array = _tensor(items)

    def of_position(k: Any, *inner: Any) -> tuple[Any, State]:
        item = array[k]
        arrays, node = chosen_arrays(), item._node
        arrays.note(item, arrays.origins(array), code, may_stay_pythons())
        found = turn(item, *inner)
        if item._node is not node:
            cannot("elements are set of what it goes through")
        return found

    return _counted(going, Counted(position, len(items), 1), of_position, state, names, code)


def _counted(going: Any, items: Counted, turn: Turn, state: State, names: Names, code: CodeType) -> tuple[Any, State]:
    """A loop over a range, by a counter that is carried."""

    def test(k: Any, *_: Any) -> Any:
        return k < items.stop if items.step > 0 else k > items.stop

    def counted(k: Any, *inner: Any) -> tuple[Any, State]:
        further, after = turn(k, *inner)
        return further, (k + items.step, *after)

    counting = names._replace(set=["", *names.set], bound=["", *names.bound])
    start = items.start if isinstance(items.start, Tensor) else int(items.start)
    question = and_(lambda: going, lambda: test(start))
    if not is_recorded(question) and not question:
        return not_(going), state
    going, (_, *after) = staged(going, question, test, counted, (start, *state), counting, code)
    return not_(going), tuple(after)
