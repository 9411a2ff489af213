"""Sides of a branch by a recorded value: both are recorded, and the values that they leave are chosen.

In: functions for the sides, and the values that they start from. Out: the values of names after the branch; arrays of
which a side has set elements, under whatever name, hold a choice of elements. A side runs on the arrays themselves, its
writes are noted and undone, and then the arrays are written to once, for both sides. Called by statements.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..graph.ir import Node
from ..graph.trace import recording
from ..record.as_node import as_node
from ..record.journal import undone_writes
from ..record.tensor import Tensor
from ..transforms.arguments import flatten
from .chosen_values import Choice, Unset, cannot, may_stay_pythons, shown
from .watched import Watched

State = tuple[Any, ...]


class Names(NamedTuple):
    """The names that a statement sets, those `here` of which its text sets elements, what these mean before it, and the
    names that it binds anew."""

    set: Sequence[str] = ()
    here: Sequence[str] = ()
    there: State = ()
    bound: Sequence[str] = ()


@dataclass
class Side:
    """A side of a branch, when it has been recorded."""

    result: Any = None
    ends: dict[int, Node] = field(default_factory=dict)
    """The nodes of Tensors in the result at the end of the side, by `id`."""
    was_there: Callable[[Any], bool] = bool
    """Whether an object was there before the side."""
    written: dict[int, tuple[Tensor, Node]] = field(default_factory=dict)
    """The arrays that it has written to, by `id`, with their nodes at the end."""


def chosen_state(
    test: Any,
    yes: Callable[..., State],
    no: Callable[..., State],
    state: State,
    names: Names,
    given: Sequence[str],
) -> State:
    """The values of `given` names after both sides."""
    choice, sides = _both(test, yes, no, state, names)
    values = [choice.between(a, b, name) for name, a, b in zip(given, *[side.result for side in sides], strict=True)]
    _write(choice, sides)
    return tuple(values)


def chosen_result(test: Any, yes: Callable[..., Any], no: Callable[..., Any], state: State, names: Names) -> Any:
    """The result of a function after a branch both sides of which return something."""
    choice, sides = _both(test, yes, no, state, names)
    value = choice.between(sides[0].result, sides[1].result, "what is returned", loose=True)
    _write(choice, sides)
    return value


def _both(
    test: Any, yes: Callable[..., Any], no: Callable[..., Any], state: State, names: Names
) -> tuple[Choice, tuple[Side, Side]]:
    """Both sides, recorded one after the other, and the choice between what they give."""
    refuse_other_objects(names)
    one, other = recorded_side(yes, state), recorded_side(no, state)
    return Choice(test, yes.__code__, (one.ends, other.ends), (one.was_there, other.was_there)), (one, other)


def _write(choice: Choice, sides: tuple[Side, Side]) -> None:
    """Give the arrays that a side has written to their elements, and note what was chosen."""
    yes, no = (side.written for side in sides)
    for key, (tensor, after) in {**yes, **no}.items():
        ends = [side[key][1] if key in side else tensor._node for side in (yes, no)]
        tensor._replace(after if ends[0] is ends[1] else choice.of_nodes(*ends))
    choice.note()


def recorded_side(side: Callable[..., Any], state: State) -> Side:
    """A side, which must change nothing outside but arrays of the recorded function."""
    optional = may_stay_pythons()
    found = Side()
    with recording((), turn=True) as trace:
        trace.optional = optional
        watched = Watched([side, *state])
        found.was_there = watched.has
        try:
            with undone_writes() as journal:
                found.result = side(*state)
                leaves = flatten(found.result)[0]
                found.ends = {id(leaf): as_node(leaf) for leaf in leaves if isinstance(leaf, Tensor)}
        finally:
            parameters = trace.undo_writes()
            changed = watched.restored()
    if changed:
        cannot(f"it changes {changed}")
    if parameters or trace.outside or journal.shares_data:
        cannot("it writes to an array or Parameter from outside")
    found.written = {id(tensor): (tensor, after) for tensor, after in journal.arrays()}
    return found


def refuse_other_objects(names: Names) -> None:
    """Raise if elements of something else than Tensors are set."""
    for name, value in zip(names.here, names.there, strict=True):
        kept = value is None or isinstance(
            value, Tensor | np.generic | bool | int | float | complex | str | tuple | Unset
        )
        if not kept:
            cannot(f"elements of {name} are set, which is {shown(value)}")
