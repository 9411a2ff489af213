"""Loops that end by a value: `while_loop`.

In: a condition, a function of one turn, and the value that both start from. Out: the value for which the condition is
first false. The turns are counted first, some at a time and without a gradient; then it is a loop of so many turns,
with all that loops have. Where one number of turns has to serve many values (`vmap`, the turns of another loop, the
calls of a compiled function), a boolean is carried beside, and a value that has reached its end stays as it is
(turn_bounds.py). Called by users.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..errors import DtypeError, ShapeError, TracedValueError
from ..graph.builders import cast, reduce, reshape
from ..graph.ir import BOOL, INT64, Node, broadcast, constant, elementwise, literal, on_host, placeholder
from ..graph.loops.loop_body import LoopNodes, make_loop
from ..graph.trace import current_trace
from ..record.tensor import Tensor
from ..runtime.evaluate import compute, computed
from ..transforms.argument_positions import check_function
from ..transforms.arguments import name_of
from . import turn_bounds
from .recorded_turn import Arrays, Turn, record_turn
from .turn_bounds import End, MoreTurns, Room, check_end, guard_room, place_of, rounded, with_room

MANY = 1 << 14
"""The most turns that are counted at once."""


def while_loop(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> Any:
    """Carry a value through a loop for as long as a condition holds.

    Parameters
    ----------
    cond_fun : callable
        `cond_fun(value)` gives one truth value.
    body_fun : callable
        `body_fun(value)` gives the value for the next turn, of the same shapes and dtypes.
    init_val : array, number, or containers of them
        The value that the condition sees first.

    Returns
    -------
    as `init_val`
        The first value for which the condition is false.

    Raises
    ------
    ShapeError, DtypeError
        If `body_fun` gives other shapes or dtypes than it gets, or `cond_fun` no single truth value.
    TracedValueError
        If `body_fun` needs the value of an array as a number, or writes to something outside.

    Notes
    -----
    The derivative is that of the turns that were made: reverse mode works whatever their number. The turns are counted
    first. Inside `vmap` and in the turns of another loop, all values get as many turns as the one that needs the most,
    and those at their end stay as they are. A compiled function serves all calls that need between half of its room
    and all of it, room being a power of two; another one is recorded again, which compiles nothing.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def root(a):
    ...     return nb.while_loop(lambda x: abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), a)
    >>> round(root(2.0), 12), round(nb.grad(root)(2.0), 12)
    (np.float64(1.414213562373), np.float64(0.353553390593))
    """
    check_function(cond_fun, "while_loop")
    check_function(body_fun, "while_loop")
    turn, last = with_room(lambda: _made(cond_fun, body_fun, init_val))
    return turn.given_back(last, [])[0]


def _made(cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any) -> tuple[Turn, list[Node]]:
    """The recorded turn, and the values at the end."""
    met: list[Node] = []

    def body(value: Any, _: Any) -> tuple[Any, Any]:
        following = body_fun(value)
        met[:] = [_condition(cond_fun, following)]
        return following, None

    turn = record_turn(body, body_fun, "while_loop", init_val, Arrays.of(None, ""))
    if turn.tokens is not None:
        message = (
            f"{name_of(body_fun)}() sends messages between processes in a while_loop, which also does turns that do "
            "not count. Use fori_loop or scan, with the number of turns."
        )
        raise TracedValueError(message)
    first = _condition(cond_fun, turn.first.filled([Tensor._of(node) for node in turn.first.nodes]))
    place = place_of(cond_fun, body_fun)
    trace = current_trace()
    room = turn_bounds.room_of(place)
    made = _until(turn, met[0], turn.first.nodes, first, room)
    if turn_bounds.serves_many(made.still) or turn_bounds.serves_many(made.count):
        made.check(turn)
        check_end(End(made.still, made.count, place, room))
        return turn, made.state
    turns = _count(turn, met[0], first)
    if trace is None or trace.guards is None or not trace.varies(made.still):
        return turn, turn.at_end(turn.loop(turns).at_end()) if turns else turn.first.nodes
    room = rounded(turns)
    made = _until(turn, met[0], turn.first.nodes, first, room)
    made.check(turn)
    guard_room(trace, made.still, made.count, room)
    return turn, made.state


def _condition(cond_fun: Callable[[Any], Any], value: Any) -> Node:
    """The node of the condition on a value."""
    found = Arrays.of(cond_fun(value), f"The condition {name_of(cond_fun)}() of while_loop()")
    if len(found.nodes) != 1 or found.nodes[0].size != 1:
        shapes = [node.shape for node in found.nodes]
        message = (
            f"{name_of(cond_fun)}(), the condition of while_loop(), must give one truth value, not shapes {shapes}."
        )
        raise ShapeError(message)
    (node,) = found.nodes
    if node.dtype != BOOL:
        message = (
            f"{name_of(cond_fun)}(), the condition of while_loop(), gives {node.dtype}, not a truth value. Compare it "
            "with a number."
        )
        raise DtypeError(message)
    return reshape(node, ())


@dataclass
class _Until:
    """A loop whose values stay as they are once the condition is false."""

    loop: LoopNodes
    state: list[Node]
    still: Node
    """Whether there would be more turns."""
    count: Node
    """The turns that were made."""
    checked: Turn
    """The turn, with the conditions that must hold in the turns that are made."""

    def check(self, turn: Turn) -> None:
        """Check what must hold in the turns that are made."""
        self.checked.check(self.loop)


def _until(turn: Turn, condition: Node, start: Sequence[Node], first: Node, room: int) -> _Until:
    """A loop of at most so many turns from a state on."""
    active, count = placeholder((), BOOL), placeholder((), INT64)

    def kept(after: Node, before: Node) -> Node:
        return elementwise("select", broadcast(active, before.shape), after, before)

    inactive = elementwise("logical_not", active)
    checks = [
        (elementwise("logical_or", condition, broadcast(inactive, condition.shape)), message, error)
        for condition, message, error in turn.checks
    ]
    zero = literal(0, INT64)
    ends = [
        End(elementwise("logical_and", end.still, active), kept(end.count, zero), end.place, end.room)
        for end in turn.ends
    ]
    checked = replace(turn, checks=checks, ends=ends)
    carried = [
        (inside, value, kept(after, inside))
        for inside, value, after in zip(turn.stand_ins[0], start, turn.following.nodes, strict=True)
    ]
    carried.append((active, first, elementwise("logical_and", active, condition)))
    carried.append((count, zero, elementwise("add", count, cast(active, INT64))))
    made = make_loop(room, carried, results=checked.conditions())
    *state, still, counted = made.at_end()
    return _Until(made, turn.at_end(state), still, counted, checked)


def _count(turn: Turn, condition: Node, first: Node) -> int:
    """The number of turns: the first after which the condition is false.

    Raises
    ------
    MoreTurns
        If a loop inside needs more room.
    """
    state = [constant(on_host(computed(node))) for node in turn.first.nodes]
    going: Node = constant(on_host(computed(first)))
    done, size = 0, turn_bounds.FEW
    while True:
        made = _until(turn, condition, state, going, size)
        of_ends = [reduce("max", made.loop.every(end.still), (0,)) for end in made.checked.ends]
        still, count, *found = map(on_host, compute([made.still, made.count, *of_ends, *made.state]))
        for end, short in zip(made.checked.ends, found, strict=False):
            if bool(short):
                raise MoreTurns(end.place, Room(4 * end.room))
        done += int(count)
        if not bool(still):
            return done
        size = min(4 * size, MANY)
        state = [constant(value) for value in found[len(of_ends) :]]
        going = constant(still)
