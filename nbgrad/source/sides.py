"""Sides of a branch by a recorded value: both are recorded, and the values that they leave are chosen.

In: functions for the sides, and the values that they start from. Out: the values of names after the branch; arrays of
which a side has set elements, under whatever name, hold a choice of elements. A side runs on the arrays themselves, its
writes are noted and undone, and then the arrays are written to once, for both sides. Called by statements.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ..graph.ir import Node
from ..graph.trace import Trace, current_trace, recording
from ..record.as_node import as_node
from ..record.chosen_arrays import begin_journal
from ..record.shared_memory import is_view, shares_data
from ..record.tensor import Tensor
from ..transforms.arguments import flatten
from .chosen_values import Choice, Unset, cannot, may_stay_pythons, shown
from .watched import Watched

State = tuple[Any, ...]


class Names(NamedTuple):
    """The names that a statement sets, those `here` of which its text sets elements, and those that it binds anew."""

    set: Sequence[str]
    here: Sequence[str] = ()
    bound: Sequence[str] = ()


@dataclass
class Side:
    """A side of a branch, when it has been recorded."""

    result: Any = None
    ends: dict[int, Node] = field(default_factory=dict)
    """The nodes of Tensors in the result at the end of the side, by `id`."""
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
    refuse_other_objects(names, state)
    sides = recorded_side(yes, state), recorded_side(no, state)
    choice = Choice(test, yes.__code__, (sides[0].ends, sides[1].ends))
    values = [choice.between(a, b, name) for name, a, b in zip(given, *[side.result for side in sides], strict=True)]
    _write(choice, sides)
    return tuple(values)


def chosen_result(test: Any, yes: Callable[..., Any], no: Callable[..., Any], state: State, names: Names) -> Any:
    """What a function returns after a branch both sides of which return something."""
    refuse_other_objects(names, state)
    sides = recorded_side(yes, state), recorded_side(no, state)
    choice = Choice(test, yes.__code__, (sides[0].ends, sides[1].ends))
    value = choice.between(sides[0].result, sides[1].result, "what is returned", loose=True)
    _write(choice, sides)
    return value


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
    with recording((), turn=True) as trace:
        trace.optional = optional
        begin_journal()
        watched = Watched([side, *state])
        found = Side()
        written: list[tuple[Tensor, Node]] = []
        try:
            found.result = side(*state)
            leaves = flatten(found.result)[0]
            found.ends = {id(leaf): as_node(leaf) for leaf in leaves if isinstance(leaf, Tensor)}
        finally:
            written, shared = undone(trace)
            parameters = trace.undo_writes()
            changed = watched.restored()
    if changed:
        cannot(f"it changes {changed}")
    if parameters or trace.outside or shared:
        cannot("it writes to an array or Parameter from outside")
    found.written = {id(tensor): (tensor, after) for tensor, after in written}
    return found


def undone(trace: Trace) -> tuple[list[tuple[Tensor, Node]], bool]:
    """Undo the writes of a recording to Tensors: those that own their memory and were there before it, with their nodes
    at its end, and whether any shares its data with a plain array."""
    noted = trace.undo_journal()
    before = [one for one in noted if one.before.serial < trace.began and not is_view(one.tensor)]
    return [(one.tensor, one.after) for one in before], any(shares_data(one.kind) for one in noted)


@contextmanager
def without_writes() -> Iterator[list[Tensor]]:
    """A block whose writes to Tensors are undone at its end; the list has those Tensors then."""
    trace = current_trace()
    assert trace is not None
    before, trace.journal = trace.journal, {}
    found: list[Tensor] = []
    try:
        yield found
    finally:
        found += [one.tensor for one in trace.undo_journal()]
        trace.journal = before


def refuse_other_objects(names: Names, state: State) -> None:
    """Raise if elements of something else than Tensors are set."""
    for name, value in zip(names.set, state, strict=False):
        kept = value is None or isinstance(
            value, Tensor | np.generic | bool | int | float | complex | str | tuple | Unset
        )
        if name in names.here and not kept:
            cannot(f"elements of {name} are set, which is {shown(value)}")
