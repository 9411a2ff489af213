"""Branches and loops while they run, in code that control_flow.py has rewritten.

In: the value that a branch or loop asks for, functions for its sides or turns, and the values of the names that they
set. Out: the values of these names afterwards. A plain value runs Python's own statement. A recorded one that stands
for many (the calls of a compiled function, the values in `vmap`, the turns of a loop) becomes a choice for each
element, or `while_loop`; where it cannot, `jit` records a way of its own, as it does without rewriting, and elsewhere
an error says why. Called by rewritten code, which finds the functions here under one global name.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import optree

from ..control.branches import stands_for_many
from ..control.while_loops import while_loop
from ..errors import TracedValueError
from ..graph.builders import reshape
from ..graph.ir import BOOL, elementwise
from ..graph.trace import current_trace, open_traces, recording
from ..record.as_node import as_node
from ..record.shared_memory import has_relatives
from ..record.tensor import Tensor
from ..record.zero_dimensional import ZeroDimensional, as_array, is_scalar
from ..runtime.memory_order import same_order
from ..transforms.arguments import flatten
from .chosen_values import (
    UNSET,
    CannotTurn,
    Unset,
    cannot,
    condition_of,
    is_number,
    may_stay_pythons,
    refuse_sharing,
    selected,
    shown,
    stays_pythons,
)
from .watched import Watched

State = tuple[Any, ...]
Thunk = Callable[[], Any]
Turn = Callable[..., tuple[Any, State]]


def is_staging() -> bool:
    """Whether something records one function for many values, so that code with statements as calls makes sense."""
    return any(trace.guards is not None or trace.mapping or trace.turn_ends is not None for trace in open_traces())


class Sets(NamedTuple):
    """The names of arrays of which elements are set: in a statement, and anywhere in its function."""

    here: Sequence[str] = ()
    anywhere: Sequence[str] = ()


def values(*thunks: Thunk) -> State:
    """The values of names, `UNSET` for those that have none."""
    found: list[Any] = []
    for thunk in thunks:
        try:
            found.append(thunk())
        except NameError:
            found.append(UNSET)
    return tuple(found)


# ----- Truth values -----


def _is_recorded(value: Any) -> bool:
    return isinstance(value, Tensor) and value.size == 1 and stands_for_many(value._node)


def _truth(value: Any, reason: str | None) -> bool:
    """The truth value that Python's statement goes on with; it becomes a guard of `jit`."""
    try:
        return bool(value)
    except TracedValueError:
        if reason is None:
            raise
        message = f"A branch or loop by a recorded value cannot be turned into cond or while_loop here: {reason}."
        raise TracedValueError(message) from None


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool | np.bool_) or (isinstance(value, Tensor) and value._node.dtype == BOOL)


def _logical(name: str, thunks: Sequence[Thunk], decides: bool) -> Any:
    value = thunks[0]()
    for thunk in thunks[1:]:
        if _is_recorded(value) and _is_truth(value):
            try:
                other = thunk()
            except Exception:
                other = None
            if other is not None and _is_truth(other) and np.size(other) == 1:
                value = Tensor._of(elementwise(name, reshape(as_node(value), ()), reshape(as_node(other), ())))
                continue
        if _truth(value, None) is decides:
            return value
        value = thunk()
    return value


def and_(*thunks: Thunk) -> Any:
    """`a and b and ...`."""
    return _logical("logical_and", thunks, decides=False)


def or_(*thunks: Thunk) -> Any:
    """`a or b or ...`."""
    return _logical("logical_or", thunks, decides=True)


def not_(value: Any) -> Any:
    """`not a`."""
    if not _is_recorded(value):
        return not value
    node = value._node if _is_truth(value) else elementwise("not_equal", value._node, 0)
    return Tensor._of(elementwise("logical_not", node))


def choose(test: Any, yes: Thunk, no: Thunk, anywhere: Sequence[str] = ()) -> Any:
    """`yes if test else no`, in a function that sets elements of arrays with the names `anywhere`."""
    return leave(test, yes, no, (), (), Sets((), anywhere), None)


def min_(kind: Any, *given: Any) -> Any:
    """`min(...)`, of recorded values too."""
    return _extreme(kind, builtins.min, given, lambda a, b: a < b)


def max_(kind: Any, *given: Any) -> Any:
    """`max(...)`, of recorded values too."""
    return _extreme(kind, builtins.max, given, lambda a, b: a > b)


def _extreme(kind: Any, usual: Any, given: Sequence[Any], is_better: Callable[[Any, Any], Any]) -> Any:
    if kind is not usual or len(given) < 2:
        return kind(*given)
    found = given[0]
    for one in given[1:]:
        found = choose(is_better(one, found), lambda one=one: one, lambda found=found: found)
    return found


# ----- Branches -----


def branch(
    test: Any,
    yes: Callable[..., State],
    no: Callable[..., State],
    state: State,
    names: Sequence[str],
    given: Sequence[str],
    sets: Sets,
    reason: str | None,
) -> State:
    """A branch: from the values of `names` to those of `given`; elements of `sets.here` may be set."""
    if not _is_recorded(test):
        return (yes if test else no)(*state)
    found, reason = _turned(reason, _both, test, yes, no, state, names, given, sets)
    return found if reason is None else (yes if _truth(test, reason) else no)(*state)


def leave(
    test: Any,
    yes: Callable[..., Any],
    no: Callable[..., Any],
    state: State,
    names: Sequence[str],
    sets: Sets,
    reason: str | None,
) -> Any:
    """A branch both sides of which return something."""
    if not _is_recorded(test):
        return (yes if test else no)(*state)
    found, reason = _turned(reason, _returned, test, yes, no, state, names, sets)
    return found if reason is None else (yes if _truth(test, reason) else no)(*state)


def _returned(
    test: Any,
    yes: Callable[..., Any],
    no: Callable[..., Any],
    state: State,
    names: Sequence[str],
    sets: Sets,
) -> Any:
    """Results of both sides, and a choice."""
    results = [_side(one, _copies(state, names, sets), state) for one in (yes, no)]
    if sets.here and not _unchanged(state, names, sets):
        cannot("elements of an array are set before a return")
    name = "what is returned"
    if sets.anywhere and results[0] is not results[1] and may_stay_pythons():
        for side, result in zip((yes, no), results, strict=True):
            refuse_sharing([(name, result)], side)
    return selected(test, results[0], results[1], name, loose=True)


def _turned(reason: str | None, function: Callable[..., Any], *args: Any) -> tuple[Any, str | None]:
    """The result of a statement that is turned into a call, or the reason why it stays Python's."""
    if reason is not None:
        return None, reason
    try:
        with _attempt():
            return function(*args), None
    except Exception as error:  # the side that is not taken, or a turn too many, may do anything
        return None, _described(error)


def _described(error: Exception) -> str:
    text = str(error).rstrip(".")
    return text if isinstance(error, CannotTurn) else f"{type(error).__name__}: {text}"


def _both(
    test: Any,
    yes: Callable[..., State],
    no: Callable[..., State],
    state: State,
    names: Sequence[str],
    given: Sequence[str],
    sets: Sets,
) -> State:
    before = dict(zip(names, state, strict=True))
    copies = [dict(zip(names, _copies(state, names, sets), strict=True)) for _ in range(2)]
    sides = [_side(side, list(own.values()), state) for side, own in zip((yes, no), copies, strict=True)]
    if sets.anywhere and may_stay_pythons():
        for side, results, others in zip((yes, no), sides, reversed(sides), strict=True):
            refuse_sharing([(name, a) for name, a, b in zip(given, results, others, strict=True) if a is not b], side)
    found: list[Any] = []
    contents: list[tuple[Any, Any]] = []
    for name, a, b in zip(given, *sides, strict=True):
        own, other = (copy[name] for copy in copies)
        array = before[name]
        stays = [a is own, b is other]
        if _is_array(array) and name in sets.anywhere and stays[0] != stays[1] and may_stay_pythons():
            cannot(f"{name}, of which elements are set, is another array on one side")
        if name not in sets.here or not _is_array(array):
            found.append(selected(test, a, b, name))
            continue
        if own._node is not array._node or other._node is not array._node:
            contents.append((array, selected(test, own, other, name)))
        found.append(array if all(stays) else selected(test, a, b, name))
    for array, content in contents:  # other names may have the same object
        array[...] = content
    return tuple(found)


def _is_array(value: Any) -> bool:
    return isinstance(value, Tensor) and not is_scalar(value)


def _copies(state: State, names: Sequence[str], sets: Sets) -> list[Any]:
    """The values for one side, which may set elements of its own arrays only."""
    _check_changed(state, names, sets)
    return [
        type(value)._of(value._node) if name in sets.here and _is_array(value) else value
        for name, value in zip(names, state, strict=False)
    ]


def _check_changed(state: State, names: Sequence[str], sets: Sets) -> None:
    """Raise if elements of something else than recorded arrays are set."""
    for name, value in zip(names, state, strict=False):
        kept = value is None or isinstance(
            value, Tensor | np.generic | bool | int | float | complex | str | tuple | Unset
        )
        if name in sets.here and not kept:
            cannot(f"elements of {name} are set, which is {shown(value)}")
        if name in sets.here and isinstance(value, Tensor) and has_relatives(value):
            cannot(f"elements of {name} are set, which shares its memory with another array")


def _unchanged(state: State, names: Sequence[str], sets: Sets) -> bool:
    return not any(name in sets.here and _is_array(value) for name, value in zip(names, state, strict=False))


def _written_back(before: Any, after: Any, changed: bool) -> Any:
    """An array whose elements were set: the same object, which other names may have."""
    if not (changed and _is_array(before) and isinstance(after, Tensor)):
        return after
    if after is not before and after._node is not before._node:
        before[...] = after
    return before


@contextmanager
def _attempt() -> Iterator[None]:
    """Without effect where it fails."""
    trace = current_trace()
    lists = [] if trace is None else [one for one in (trace.guards, trace.checks) if one is not None]
    lengths = [len(one) for one in lists]
    try:
        yield
    except Exception:
        for one, length in zip(lists, lengths, strict=True):
            del one[length:]
        raise


def _side(side: Callable[..., Any], given: Sequence[Any], state: State) -> Any:
    """The result of a side, which must write to nothing outside: of what it is given, only to copies of the state's."""
    optional = may_stay_pythons()
    with recording((), turn=True) as trace:
        trace.optional = optional
        pairs = list(zip(given, state, strict=True))
        watched = Watched([side, *[value for value, original in pairs if value is original]])
        _refuse_names([original for value, original in pairs if value is not original], watched)
        try:
            found = side(*given)
        finally:
            written = trace.undo_writes()
            changed = watched.restored()
    if changed:
        cannot(f"it changes {changed}")
    if written or trace.outside:
        cannot("it writes to an array or Parameter from outside")
    return found


def _refuse_names(arrays: Sequence[Any], watched: Watched) -> None:
    """Raise if arrays, in place of which code gets others to write to, can be reached by it under another name too."""
    if any(watched.has(array) for array in arrays) or len({id(array) for array in arrays}) < len(arrays):
        cannot("elements of an array are set that has another name")


# ----- Loops -----


def while_(
    test: Callable[..., Any],
    turn: Turn,
    state: State,
    names: Sequence[str],
    sets: Sets,
    reason: str | None,
) -> tuple[Any, State]:
    """A loop by a condition: whether it was left by `break`, and the values at its end."""
    going: Any = True
    while True:
        question = and_(lambda going=going: going, lambda state=state: test(*state))
        if _is_recorded(question):
            found, reason = _turned(reason, _staged, question, test, turn, state, names, sets)
            if reason is None:
                return found
        if not _truth(question, reason):
            return (not going) if isinstance(going, bool) else not _truth(going, reason), state
        going, state = turn(*state)


@dataclass
class Counted:
    """A range whose bounds are recorded."""

    start: Any
    stop: Any
    step: int


def range_(kind: Any, *bounds: Any) -> Any:
    """`range(...)`, for recorded bounds too."""
    if kind is not builtins.range or not any(_is_recorded(bound) for bound in bounds):
        return kind(*bounds)
    start, stop = (0, bounds[0]) if len(bounds) == 1 else bounds[:2]
    step = int(bounds[2]) if len(bounds) == 3 else 1
    if not step:
        message = "range() arg 3 must not be zero"
        raise ValueError(message)
    return Counted(start, stop, step)


def for_(
    items: Any, turn: Turn, state: State, names: Sequence[str], sets: Sets, reason: str | None
) -> tuple[Any, State]:
    """A loop over items: whether it was left by `break`, and the values at its end."""
    if isinstance(items, Counted):
        found, reason = _turned(reason, _counted, True, items, turn, state, names, sets)
        if reason is None:
            return found
        try:
            items = range(int(items.start), int(items.stop), items.step)
        except TracedValueError:
            _truth(_tensor(items.stop), reason)
            raise
    going: Any = True
    for position, item in enumerate(items):
        if _is_recorded(going):
            found, reason = _turned(reason, _rest, going, items, position, turn, state, names, sets)
            if reason is None:
                return found
        if not _truth(going, reason):
            break
        going, state = turn(item, *state)
    return not_(going), state


def _tensor(value: Any) -> Tensor:
    """A value as a Tensor."""
    return Tensor._of(as_node(value))


def _rest(
    going: Any, items: Any, position: int, turn: Turn, state: State, names: Sequence[str], sets: Sets
) -> tuple[Any, State]:
    """The turns from an item on."""
    if isinstance(items, range):
        left = Counted(items[position], items.stop, items.step)
        return _counted(going, left, turn, state, names, sets)
    if not isinstance(items, Tensor | np.ndarray):
        cannot(f"it goes through {type(items).__name__} and may end before its end")
    array = _tensor(items)

    def of_position(k: Any, *inner: Any) -> tuple[Any, State]:
        return turn(array[k], *inner)

    return _counted(going, Counted(position, len(items), 1), of_position, state, names, sets)


def _counted(
    going: Any, items: Counted, turn: Turn, state: State, names: Sequence[str], sets: Sets
) -> tuple[Any, State]:
    """A loop over a range, by a counter that is carried."""

    def test(k: Any, *_: Any) -> Any:
        return k < items.stop if items.step > 0 else k > items.stop

    def counted(k: Any, *inner: Any) -> tuple[Any, State]:
        further, after = turn(k, *inner)
        return further, (k + items.step, *after)

    start = items.start if isinstance(items.start, Tensor) else int(items.start)
    question = and_(lambda: going, lambda: test(start))
    if not _is_recorded(question) and not question:
        return not_(going), state
    left, (_, *after) = _staged(question, test, counted, (start, *state), ("", *names), sets)
    return left, tuple(after)


def _staged(
    question: Any, test: Callable[..., Any], turn: Turn, state: State, names: Sequence[str], sets: Sets
) -> tuple[Any, State]:
    """A loop as `while_loop`, from a state on; the condition on that is known."""
    _check_changed(state, names, sets)
    first = _with_all_set(turn, state)
    leaves, tree = flatten(first)
    moving = [k for k, leaf in enumerate(leaves) if is_number(leaf)]
    stays, optional = stays_pythons(), may_stay_pythons()
    others: set[str] = set()
    rest = [value for name, value in zip(names, state, strict=True) if name not in sets.here]
    here = [value for name, value in zip(names, state, strict=True) if name in sets.here and _is_array(value)]
    _refuse_names(here, Watched([turn, *rest]))

    def filled(carried: Sequence[Any]) -> State:
        every = list(leaves)
        for k, value in zip(moving, carried, strict=True):
            every[k] = as_array(value) if isinstance(leaves[k], ZeroDimensional) else value
        return tuple(optree.tree_unflatten(tree, every))  # type: ignore[arg-type]

    def body(carried: Any) -> Any:
        trace = current_trace()
        assert trace is not None
        trace.optional = optional
        watched = Watched([turn, *leaves])
        inside = filled(carried[0])
        nodes = [getattr(value, "_node", None) for value in inside]
        try:
            going, after = turn(*inside)
        finally:
            changes = watched.restored()
        if changes:
            cannot(f"a turn changes {changes}")
        for name, value, node, result in zip(names, inside, nodes, after, strict=True):
            if not _is_array(value):
                continue
            if value._node is not node and (value is not result or name not in sets.here):
                cannot(f"elements of {name} are set by another name, or before it becomes another array")
            if value is not result:
                others.add(name)
        if optional and sets.anywhere:
            refuse_sharing(zip(names, after, strict=True), turn)
        further = and_(lambda: going, lambda: test(*after))
        found, same = flatten(after)
        if same != tree:
            for name, a, b in zip(names, first, after, strict=True):
                if flatten(a)[1] != flatten(b)[1]:
                    cannot(f"{name} is {shown(a)} before a turn and {shown(b)} after it")
        for k, (before, later) in enumerate(zip(leaves, found, strict=True)):
            if k not in moving and before is not later:
                cannot(f"a turn changes {shown(before)}, which is no array or number")
            if stays and k in moving and np.ndim(before) > 1 and not same_order(as_node(before), as_node(later)):
                cannot("an array lies in memory in another order after a turn")
        return [found[k] for k in moving], _as_truth(further), _as_truth(going)

    given = [[_argument(leaves[k]) for k in moving], _as_truth(question), _as_truth(True)]
    last, _, going = while_loop(lambda carried: carried[1], body, tuple(given))
    found = filled(last)
    back = [
        _written_back(before, after, name in sets.here and name not in others)
        for name, before, after in zip(names, state, found, strict=True)
    ]
    return not_(going), tuple(back)


def _as_truth(value: Any) -> Tensor:
    return Tensor._of(condition_of(_tensor(value)))


def _argument(leaf: Any) -> Any:
    return Tensor._of(leaf._node) if isinstance(leaf, Tensor) else leaf


def _with_all_set(turn: Turn, state: State) -> State:
    """The state with numbers, NaN where there are any, for what only a turn sets."""
    if not any(value is UNSET for value in state):
        return state
    with _undone(), recording((), turn=True) as trace:
        watched = Watched([turn, *state])
        try:
            _, after = turn(*state)
        finally:
            trace.undo_writes()
            watched.restored()
        return tuple([_like(b) if a is UNSET else a for a, b in zip(state, after, strict=True)])


@contextmanager
def _undone() -> Iterator[None]:
    """Without guards of what happens inside."""
    trace = current_trace()
    lists = [] if trace is None else [one for one in (trace.guards, trace.checks) if one is not None]
    lengths = [len(one) for one in lists]
    try:
        yield
    finally:
        for one, length in zip(lists, lengths, strict=True):
            del one[length:]


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
