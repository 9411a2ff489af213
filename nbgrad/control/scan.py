"""Loops that are said: `scan`, `fori_loop`, `map`, with JAX's signatures.

In: a function of one turn, and what it starts from. Out: the results of all turns, as values or, while something is
being recorded, as recorded values. The function is recorded once, whatever the number of turns. Called by users.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..graph.loops.loop_body import LoopNodes
from ..record.tensor import Tensor
from ..transforms.argument_positions import check_function
from ..transforms.arguments import name_of
from .recorded_turn import Arrays, Body, Turn, record_turn
from .turn_bounds import with_room
from .while_loops import while_loop


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int | bool = 1,
) -> tuple[Any, Any]:
    """Carry a value through a loop, and collect a result of every turn.

    Parameters
    ----------
    f : callable
        `f(carry, x)` gives `(carry, y)`: from the carried value and a part of `xs` to the next carried value, of the
        same shapes and dtypes, and the result of the turn.
    init : array, number, or containers of them
        The carried value that the first turn gets.
    xs : array or containers of arrays, optional
        Each turn gets a part along the first axis of each.
    length : int, optional
        The number of turns; needed where there are no `xs`.
    reverse : bool
        Whether to go through `xs` from its end; the results stand where their part of `xs` does.
    unroll : int or bool
        Accepted for code written for JAX; it has no effect.

    Returns
    -------
    carry : as `init`
        What the last turn carries on.
    ys : as the results of `f`
        The results of all turns along a new first axis.

    Raises
    ------
    ShapeError, DtypeError
        If `f` gives other shapes or dtypes than it gets, or the arrays of `xs` have different lengths.
    TracedValueError
        If `f` needs the value of an array as a number, or writes to something outside.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def decay(x, rate):
    ...     x = x - rate * x
    ...     return x, x**2
    >>> nb.scan(decay, 1.0, np.array([0.5, 0.5, 0.0]))
    (np.float64(0.25), array([0.25  , 0.0625, 0.0625]))
    >>> nb.grad(lambda x: nb.scan(decay, x, np.full(3, 0.5))[0])(1.0)
    np.float64(0.125)
    """
    check_function(f, "scan")
    return _run(f, f, "scan", init, xs, length, reverse)


def fori_loop(lower: int, upper: int, body_fun: Callable[[Any, Any], Any], init_val: Any, unroll: Any = None) -> Any:
    """Carry a value through a loop over integers.

    Parameters
    ----------
    lower, upper : int, or array of one integer
        The first index, and the one after the last. They may differ for each value under `vmap`, and for each turn of a
        loop around.
    body_fun : callable
        `body_fun(i, value)` gives the value for the next turn, of the same shapes and dtypes.
    init_val : array, number, or containers of them
        The value that the first turn gets.
    unroll : int or bool, optional
        Accepted for code written for JAX; it has no effect.

    Returns
    -------
    as `init_val`
        The value after the last turn.

    Raises
    ------
    ShapeError, DtypeError
        If `body_fun` gives other shapes or dtypes than it gets.
    TracedValueError
        If it needs the value of an array as a number, or writes to something outside.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.fori_loop(1, 6, lambda i, product: product * i, 1)
    np.int64(120)
    >>> nb.grad(lambda x: nb.fori_loop(0, 3, lambda i, y: y * x, 1.0))(2.0)
    np.float64(12.0)
    """
    check_function(body_fun, "fori_loop")
    try:
        first, after = (integer(bound, "fori_loop") for bound in (lower, upper))
    except DtypeError:
        if not (_is_integer(lower) and _is_integer(upper)):
            raise
        return _counted(lower, upper, body_fun, init_val)  # the bounds stand for many integers
    indices = np.arange(first, max(first, after))
    return _run(lambda value, i: (body_fun(i, value), None), body_fun, "fori_loop", init_val, indices, None, False)[0]


def _is_integer(bound: Any) -> bool:
    """Whether a bound is an integer, or an array of one, whose value may not be known."""
    if isinstance(bound, Tensor):
        return bound.dtype.kind in "iu" and not bound.shape
    return hasattr(bound, "__index__")


def _counted(lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    """A loop over integers whose number of turns is not known when it is recorded."""

    @functools.wraps(body_fun, updated=())
    def turn(state: Any) -> Any:
        index, value = state
        return index + 1, body_fun(index, value)

    start = lower if isinstance(lower, Tensor) else integer(lower, "fori_loop")
    return while_loop(lambda state: state[0] < upper, turn, (start, init_val))[1]


def map(f: Callable[[Any], Any], xs: Any, batch_size: int | None = None) -> Any:
    """Apply a function to every part of arrays, one after the other.

    Parameters
    ----------
    f : callable
        A function of a part.
    xs : array or containers of arrays
        Each turn gets a part along the first axis of each.
    batch_size : int, optional
        Accepted for code written for JAX; it has no effect.

    Returns
    -------
    as the results of `f`
        The results of all turns along a new first axis.

    Raises
    ------
    ShapeError
        If the arrays of `xs` have different lengths.
    TracedValueError
        If `f` needs the value of an array as a number, or writes to something outside.

    See Also
    --------
    vmap : for all parts at once, which is faster where memory allows it.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.map(np.cumsum, np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[1., 3.],
           [3., 7.]])
    """
    check_function(f, "map")
    return _run(lambda nothing, x: (nothing, f(x)), f, "map", (), xs, None, False)[1]


def _run(
    body: Body, fn: Callable[..., Any], name: str, init: Any, xs: Any, length: int | None, reverse: bool
) -> tuple[Any, Any]:
    scanned = Arrays.of(xs, f"xs of {name}()")
    turns = _turns(scanned, length, name, fn)

    def made() -> tuple[Turn, LoopNodes]:
        turn = record_turn(body, fn, name, init, scanned)
        return turn, turn.loop(turns, reverse)

    turn, loop = with_room(made)
    last = turn.at_end(loop.at_end()) if turns else turn.first.nodes
    return turn.given_back(last, [loop.every(node) for node in turn.results.nodes])


def _turns(scanned: Arrays, length: int | None, name: str, fn: Callable[..., Any]) -> int:
    """The number of turns."""
    lengths: list[int] = []
    for path, node in zip(scanned.paths(), scanned.nodes, strict=True):
        if not node.shape:
            message = f"{name}() of {name_of(fn)}() takes parts of arrays, but xs{path} is a number."
            raise ShapeError(message)
        lengths.append(node.shape[0])
    if length is not None:
        lengths.append(integer(length, name))
    if not lengths:
        message = f"{name}() of {name_of(fn)}() has no xs, so it needs the number of turns: length=..."
        raise ArgumentError(message)
    if min(lengths) < 0:
        message = f"{name}() of {name_of(fn)}() cannot have {min(lengths)} turns."
        raise ArgumentError(message)
    if len(set(lengths)) > 1:
        message = (
            f"{name}() of {name_of(fn)}() needs one number of turns, but xs and length say {sorted(set(lengths))}."
        )
        raise ShapeError(message)
    return lengths[0]


def integer(value: Any, name: str) -> int:
    """A number of turns, or an index, as an int; an error if it is none."""
    try:
        return operator.index(value)
    except TypeError:
        message = f"{name}() counts turns by integers, but got {value!r}."
        raise DtypeError(message) from None
