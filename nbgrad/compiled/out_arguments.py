"""Arrays that the caller provides: `out=` and `donate=` of compiled functions.

In: what the caller gave. Out: arrays that a program may write to, or an error that says what does not fit. Called by
jit.py. A program writes straight into an array that is in C order, aligned, and shares no memory with the arguments;
for others it computes the result elsewhere and copies it, so that `f(x, out=x)` is right too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..graph.ir import Node, plain_dtype
from ..transforms.arguments import flatten, kind_of


def check_targets(out: Any, treespec: Any, leaves: Sequence[Any], nodes: Sequence[Node], name: str) -> list[Any]:
    """The arrays in `out`, one for each result.

    Parameters
    ----------
    out : array, or tuple, list or dict of them
        Nested like the function's result.
    treespec, leaves : the structure of the result, and its leaves; None where a result belongs
    nodes : sequence of nodes
        The results.
    name : str
        The function's name.

    Raises
    ------
    ArgumentError
        For another structure, what is no ndarray, read-only arrays, and arrays that share memory.
    ShapeError, DtypeError
        For an array that a result does not fit.
    """
    given, spec = flatten(out)
    if spec != treespec:
        message = f"out must be nested like the result of {name}(), {treespec}, but got {spec}."
        raise ArgumentError(message)
    targets = [value for value, leaf in zip(given, leaves, strict=True) if leaf is None]
    for number, (target, node) in enumerate(zip(targets, nodes, strict=True)):
        which = f"Array {number} of out" if len(targets) > 1 else "out"
        if not isinstance(target, np.ndarray):
            message = f"{which} must be an ndarray, but got {type(target).__name__}."
            raise ArgumentError(message)
        if target.shape != node.shape:
            message = f"{which} has shape {target.shape}, but the result of {name}() has shape {node.shape}."
            raise ShapeError(message)
        if plain_dtype(target.dtype) != node.dtype:
            message = f"{which} has dtype {target.dtype}, but the result of {name}() has dtype {node.dtype}."
            raise DtypeError(message)
        if not target.flags.writeable:
            message = f"{which} is read-only. Pass an array that may be written to."
            raise ArgumentError(message)
        for other in targets[:number]:
            if np.may_share_memory(target, other):
                message = f"{which} shares memory with another array of out. Each result needs an array of its own."
                raise ArgumentError(message)
    return targets


def direct_targets(targets: Sequence[np.ndarray], inputs: Sequence[Any]) -> list[np.ndarray]:
    """The targets, with new arrays in place of those that a program must not write to."""
    arrays = [value for value in inputs if isinstance(value, np.ndarray)]
    return [
        target if _direct(target, arrays) else np.empty(target.shape, plain_dtype(target.dtype)) for target in targets
    ]


def _direct(target: np.ndarray, arrays: Sequence[np.ndarray]) -> bool:
    plain = target.dtype is plain_dtype(target.dtype) and target.flags.c_contiguous and target.flags.aligned
    return plain and not any(np.may_share_memory(target, array) for array in arrays)


def copy_to(targets: Sequence[np.ndarray], values: Sequence[Any]) -> None:
    """Copy results to where they are wanted, if they are not there yet."""
    for target, value in zip(targets, values, strict=True):
        if value is not target:
            np.copyto(target, value)


def copy_constants(out: Any, leaves: Sequence[Any]) -> None:
    """Copy what a function returns that no argument has a part in; `leaves` as for `check_targets`.

    Raises
    ------
    ShapeError
        For an array that it does not fit.
    """
    for target, leaf in zip(flatten(out)[0], leaves, strict=True):
        if isinstance(target, np.ndarray) and kind_of(leaf) != "other":
            value = leaf.asnumpy() if kind_of(leaf) == "tensor" else np.asarray(leaf)
            if value.shape != target.shape:
                message = f"An array of out has shape {target.shape}, but its result has shape {value.shape}."
                raise ShapeError(message)
            np.copyto(target, value)


def check_donate(donate: Any) -> tuple[int, ...]:
    """The positions of donated arguments as a tuple.

    Raises
    ------
    ArgumentError
        If it is neither a position nor a tuple of positions.
    """
    positions = donate if isinstance(donate, tuple | list) else (donate,)
    for position in positions:
        if isinstance(position, bool) or not isinstance(position, int) or position < 0:
            message = f"donate must be the position of an argument, or a tuple of positions, but got {donate!r}."
            raise ArgumentError(message)
    return tuple(sorted(set(positions)))


def donated_leaves(donate: Sequence[int], treespec: Any, name: str) -> list[int]:
    """The leaves of a call's arguments, by number, that belong to donated arguments.

    Parameters
    ----------
    donate : sequence of int
        Positions of arguments.
    treespec : the structure of (positional arguments, keyword arguments)
    name : str
        The function's name.

    Raises
    ------
    ArgumentError
        If the call has no such positional argument.
    """
    counts = [spec.num_leaves for spec in treespec.children()[0].children()]
    if donate and donate[-1] >= len(counts):
        message = (
            f"donate names argument {donate[-1]} of {name}(), counted from 0, but the call has {len(counts)} arguments "
            "by position. Pass donated arguments by position."
        )
        raise ArgumentError(message)
    return [leaf for p in donate for leaf in range(sum(counts[:p]), sum(counts[: p + 1]))]


def check_donated(leaves: Sequence[Any], numbers: Sequence[int], name: str) -> None:
    """Raise for donated arrays that are read-only.

    Raises
    ------
    ArgumentError
        If one is.
    """
    for number in numbers:
        if isinstance(leaves[number], np.ndarray) and not leaves[number].flags.writeable:
            message = (
                f"{name}() was given a read-only array as a donated argument, whose memory results may take. Pass a "
                "copy, or do not donate it."
            )
            raise ArgumentError(message)
