"""Loops by a recorded value as `while_loop`.

In: functions for the condition and for a turn, and the values that both start from. Out: the values at the end. Names
that a turn makes other values are carried; arrays of which it sets elements, under whatever name, stay the arrays that
they are, and their elements are carried. Which arrays these are is known after a turn has been recorded: then it is
recorded again. Called by statements.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import numpy as np
import optree

from ..control.while_loops import while_loop
from ..graph.trace import current_trace, recording
from ..record.as_node import as_node
from ..record.chosen_arrays import chosen_arrays
from ..record.journal import undone_writes
from ..record.shared_memory import owner_of
from ..record.tensor import Tensor
from ..record.zero_dimensional import ZeroDimensional, as_array, is_scalar
from ..runtime.memory_order import same_order
from ..transforms.arguments import flatten
from .chosen_values import UNSET, cannot, condition_of, is_number, may_stay_pythons, shown, stays_pythons
from .sides import Names, State, refuse_other_objects
from .truth_values import NotedConditions, and_
from .watched import Watched

Turn = Callable[..., tuple[Any, State]]


def staged(
    going: Any, question: Any, test: Callable[..., Any], turn: Turn, state: State, names: Names, code: CodeType
) -> tuple[Any, State]:
    """A loop as `while_loop`, from a state on: whether it was not left by `break`, and the state at its end.

    `going` says whether an earlier turn has not left it, `question` whether there is a further turn; `code` is that of
    the statement.
    """
    refuse_other_objects(names)
    first = _with_all_set(turn, state)
    leaves, tree = flatten(first)
    places = [name for name, value in zip(names.set, first, strict=True) for _ in flatten(value)[0]]
    kept = [k for k, leaf in enumerate(leaves) if _is_array(leaf) and places[k] not in names.bound]
    written = [value for name, value in zip(names.here, names.there, strict=True) if name not in names.bound]
    guessed = [owner_of(value) for value in written if _is_array(value)]
    loop = _Loop(test, turn, names, code, first, leaves, tree, places)
    plan = _Plan(frozenset(kept), tuple({id(array): array for array in guessed}.values()))
    tried: set[tuple[Any, ...]] = set()
    while True:
        if plan.key() in tried:
            cannot("a name is one array or another from turn to turn")
        tried.add(plan.key())
        try:
            return _Staged(loop, plan).run(going, question)
        except _Otherwise as otherwise:
            plan = otherwise.plan


@dataclass(frozen=True)
class _Plan:
    """The leaves that stay the arrays that they are, and the arrays whose elements are carried."""

    kept: frozenset[int]
    written: tuple[Tensor, ...]

    def key(self) -> tuple[Any, ...]:
        return self.kept, frozenset(map(id, self.written))


class _Otherwise(BaseException):
    """The recorded turn needs another plan."""

    def __init__(self, plan: _Plan) -> None:
        super().__init__()
        self.plan = plan


@dataclass
class _Loop:
    """A loop, and the values that it starts from: their leaves and structure, and the name of each leaf."""

    test: Callable[..., Any]
    turn: Turn
    names: Names
    code: CodeType
    first: State
    leaves: list[Any]
    tree: Any
    places: list[str]


@dataclass
class _Staged:
    """A loop that is being recorded by a plan."""

    loop: _Loop
    plan: _Plan
    optional: bool = field(default_factory=may_stay_pythons)
    changed: frozenset[int] = frozenset()
    """The arrays of the plan that the last recorded turn has written to, by `id`."""
    stayed: frozenset[int] = frozenset()
    """The carried values that the last recorded turn has left as they were."""
    origins: dict[int, frozenset[int]] = field(default_factory=dict)
    """Of each carried array, the arrays that it may be after some turns (record/chosen_arrays.py)."""

    def __post_init__(self) -> None:
        self.moving = [k for k, leaf in enumerate(self.loop.leaves) if is_number(leaf) and k not in self.plan.kept]

    def run(self, going: Any, question: Any) -> tuple[Any, State]:
        """Whether the loop goes on after it, and the state at its end."""
        leaves = self.loop.leaves
        given = [_argument(leaves[k]) for k in self.moving], [Tensor._of(array._node) for array in self.plan.written]
        start = (*given, _as_truth(question), _as_truth(going))
        values, contents, _, going = while_loop(lambda carried: carried[2], self.body, start)
        for array, content in zip(self.plan.written, contents, strict=True):
            if id(array) in self.changed:
                array._replace(content._node)
        found = dict(zip(self.moving, values, strict=True))
        found.update({k: leaves[k] for k in self.stayed})
        arrays = chosen_arrays()
        for k, origins in self.origins.items():
            arrays.note(found[k], origins, self.loop.code, self.optional)
        return going, self.filled(found)

    def filled(self, carried: dict[int, Any]) -> State:
        """The state with other values in the places of those that are carried."""
        every = list(self.loop.leaves)
        for k, value in carried.items():
            array_without_axes = isinstance(every[k], ZeroDimensional) and isinstance(value, Tensor)
            every[k] = as_array(value) if array_without_axes else value
        return tuple(optree.tree_unflatten(self.loop.tree, every))  # type: ignore[arg-type]

    def body(self, carried: Any) -> Any:
        """A turn, for `while_loop`."""
        values, contents, _, _ = carried
        loop, plan = self.loop, self.plan
        trace = current_trace()
        assert trace is not None
        trace.optional = self.optional
        inside = dict(zip(self.moving, values, strict=True))
        state = self.filled(inside)
        given = flatten(state)[0]
        nodes = {k: given[k]._node for k in self.moving}
        watched = Watched([loop.turn, *state, *loop.leaves])
        try:
            with undone_writes() as journal:
                for array, content in zip(plan.written, contents, strict=True):
                    journal.hold(array, content._node)
                going, after = loop.turn(*state)
                further = and_(lambda: going, lambda after=after: loop.test(*after))
                found, same = flatten(after)
                if same != loop.tree:
                    self.refuse_structure(after)
                ends = [Tensor._of(one._node) if isinstance(one, Tensor) else one for one in found]
                held = contents
                contents = [Tensor._of(array._node) for array in plan.written]
                moved = {k for k in nodes if given[k]._node is not nodes[k]}
        finally:
            changes = watched.restored()
        if journal.shares_data:
            cannot("a turn writes to an array from outside")
        self.changed = frozenset(
            [id(a) for a, one, end in zip(plan.written, held, contents, strict=True) if one._node is not end._node]
        )
        if changes:
            cannot(f"a turn changes {changes}")
        kept = self.kept_instead(given, found, moved)
        self.trace_origins(given, found)
        self.refuse_others(found, ends)
        del after, found  # an array that the turn has made itself is gone now
        known = {*map(id, plan.written), *[id(given[k]) for k in nodes]}
        new = [array for array, _ in journal.arrays() if id(array) not in known]
        if new or kept != plan.kept:
            raise _Otherwise(_Plan(kept, (*plan.written, *new)))
        arrays = chosen_arrays()
        of_written = frozenset[int]().union(*[arrays.origins(array) for array in plan.written])
        for k, origins in self.origins.items():
            if origins & of_written:
                cannot(f"{loop.places[k]} may become an array of which elements are set")
        return [ends[k] for k in self.moving], contents, _as_truth(further), _as_truth(going)

    def refuse_structure(self, after: State) -> None:
        for name, a, b in zip(self.loop.names.set, self.loop.first, after, strict=True):
            if flatten(a)[1] != flatten(b)[1]:
                cannot(f"{name} is {shown(a)} before a turn and {shown(b)} after it")

    def refuse_others(self, found: Sequence[Any], ends: Sequence[Any]) -> None:
        """Raise where a turn gives other objects than arrays and numbers, or arrays that lie otherwise in memory."""
        for k, (before, later) in enumerate(zip(self.loop.leaves, found, strict=True)):
            if k in self.moving:
                if stays_pythons() and np.ndim(before) > 1 and not same_order(as_node(before), as_node(ends[k])):
                    cannot("an array lies in memory in another order after a turn")
            elif before is not later and k not in self.plan.kept:
                cannot(f"a turn changes {self.loop.places[k]}, which is {shown(before)} and no array or number")

    def kept_instead(self, given: Sequence[Any], found: Sequence[Any], moved: set[int]) -> frozenset[int]:
        """The leaves that stay the arrays that they are, by a recorded turn; it has written to `moved` carried ones."""
        loop, plan = self.loop, self.plan
        known = {id(array) for array in plan.written}
        rebound = {k for k in plan.kept if found[k] is not loop.leaves[k]}
        stayed = {k for k in self.moving if found[k] is given[k]}
        self.stayed = frozenset(stayed)
        return (
            (plan.kept - rebound)
            | moved
            | {k for k in stayed if _is_array(loop.leaves[k]) and id(owner_of(loop.leaves[k])) in known}
        )

    def trace_origins(self, given: Sequence[Any], found: Sequence[Any]) -> None:
        """Note the arrays that a carried array may be."""
        arrays = chosen_arrays()
        carried = [k for k in self.moving if k not in self.stayed and not is_scalar(given[k])]
        numbers = {k: arrays.origins(given[k]) for k in self.moving}
        origins = {k: arrays.origins(self.loop.leaves[k]) | arrays.origins(found[k]) for k in carried}
        for _ in carried:  # one turn hands on to the next
            for k, others in origins.items():
                reached = [
                    origins.get(j, arrays.origins(self.loop.leaves[j])) for j, own in numbers.items() if own & others
                ]
                origins[k] = others.union(*reached)
        self.origins = origins


def _is_array(value: Any) -> bool:
    return isinstance(value, Tensor) and not is_scalar(value)


def _as_truth(value: Any) -> Tensor:
    return Tensor._of(condition_of(Tensor._of(as_node(value))))


def _argument(leaf: Any) -> Any:
    return Tensor._of(leaf._node) if isinstance(leaf, Tensor) else leaf


def _with_all_set(turn: Turn, state: State) -> State:
    """The state with numbers, NaN where there are any, for what only a turn sets."""
    if not any(value is UNSET for value in state):
        return state
    conditions = NotedConditions()
    try:
        with recording((), turn=True) as trace:
            watched = Watched([turn, *state])
            try:
                with undone_writes():
                    _, after = turn(*state)
            finally:
                trace.undo_writes()
                watched.restored()
            return tuple([_like(b) if a is UNSET else a for a, b in zip(state, after, strict=True)])
    finally:
        conditions.forget_later()


def _like(value: Any) -> Any:
    """A value in place of one that a turn sets."""
    leaves, tree = flatten(value)
    found: list[Any] = []
    for leaf in leaves:
        if not is_number(leaf):
            found.append(leaf)
            continue
        node = as_node(leaf)
        found.append(np.full(node.shape, np.nan if node.dtype.kind in "fc" else 0, node.dtype)[()])
    return optree.tree_unflatten(tree, found)
