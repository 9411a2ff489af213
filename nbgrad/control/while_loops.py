"""Loops that end by a value: `while_loop`.

In: a condition, a function of one turn, and the value that both start from. Out: the value for which the condition is
first false. The turns are counted first, some at a time and without a gradient; then it is a loop of so many turns,
with all that loops have. While `jit` records, the conditions that were met become a guard: another number of turns is
recorded again, and compiles nothing. Called by users.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import DtypeError, ShapeError, TracedValueError
from ..graph.ir import BOOL, Node, constant, on_host
from ..graph.loops.loop_body import LoopNodes, make_loop
from ..graph.trace import Trace, current_trace
from ..record.tensor import Tensor
from ..runtime.evaluate import compute, computed, concrete
from ..transforms.argument_positions import check_function
from ..transforms.arguments import name_of
from .recorded_turn import Arrays, Turn, record_turn

FEW, MANY = 16, 1 << 14
"""Turns that are counted at once: first, and at most."""


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
        Inside `vmap`, where each value would have its own number of turns, and inside another loop's turn.

    Notes
    -----
    The derivative is that of the turns that were made: reverse mode works whatever their number. The function runs up
    to twice: once to count the turns.

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
    nothing = Arrays.of(None, "")
    met: list[Node] = []

    def body(value: Any, _: Any) -> tuple[Any, Any]:
        following = body_fun(value)
        met[:] = [_condition(cond_fun, following)]
        return following, None

    turn = record_turn(body, body_fun, "while_loop", init_val, nothing)
    first = _condition(cond_fun, turn.first.filled([Tensor._of(node) for node in turn.first.nodes]))
    trace = current_trace()
    _refuse_many(trace, body_fun)
    if not bool(concrete(first, "bool")):
        return turn.given_back(turn.first.nodes, [])[0]
    turns = _count(turn, met[0])
    made = turn.loop(turns, more=met)
    conditions = made.every(met[0])
    if trace is not None and trace.guards is not None and trace.varies(conditions):
        expected = np.ones(conditions.shape, bool)
        expected[-1] = False
        trace.guards.append((conditions, expected))
    return turn.given_back(made.at_end(), [])[0]


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
    return node


def _refuse_many(trace: Trace | None, fn: Callable[..., Any]) -> None:
    """Raise where one number of turns would have to serve several values."""
    while trace is not None:
        if trace.mapping or trace.turn_checks is not None:
            where = "vmap" if trace.mapping else "a turn of another loop"
            message = (
                f"while_loop() of {name_of(fn)}() inside {where} would have another number of turns for each value. "
                "Use fori_loop() with the largest number, and np.where for what shall not change any more."
            )
            raise TracedValueError(message)
        trace = trace.parent


def _count(turn: Turn, condition: Node) -> int:
    """The number of turns, at least one: the first after which the condition is false.

    Turns beyond it may compute anything; nobody sees that.
    """
    state = [constant(on_host(computed(node))) for node in turn.first.nodes]
    done, size = 0, FEW
    while True:
        made = _loop_from(turn, state, size, condition)
        met, *following = compute([made.every(condition), *made.at_end()])
        ended = np.flatnonzero(~np.asarray(on_host(met)).reshape(size))
        if ended.size:
            return done + int(ended[0]) + 1
        done += size
        size = min(4 * size, MANY)
        state = [constant(on_host(value)) for value in following]


def _loop_from(turn: Turn, state: list[Node], turns: int, condition: Node) -> LoopNodes:
    """So many turns from a state on, with their conditions."""
    carried = list(zip(turn.stand_ins[0], state, turn.following.nodes, strict=True))
    return make_loop(turns, carried, results=[condition])
