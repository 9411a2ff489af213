"""Arrays that the caller provides: `out=` and `donate=` of compiled functions.

In: the caller's objects. Out: arrays that a program may write to, or an error that says which one does not fit. Called
by jit.py and specialization.py; device_calls.py has the memory of devices. A program writes straight into
an array that lies as its result does, is aligned, and shares no memory with the arguments; for others it computes the
result elsewhere and copies it, so that `f(x, out=x)` is right too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any, Protocol

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..graph.ir import Node, plain_dtype
from ..runtime.memory_order import Strides
from ..transforms.arguments import flatten
from ..transforms.lent_arrays import kind_of

RESULT = object()
"""Stands for results among the leaves of the function's return value."""

# ----- out= -----


class Memory(Protocol):
    """The memory of a target, the CPU or a device: its arrays, as far as `out=` needs to know them."""

    def array_of(self, given: Any, which: str) -> Any:
        """The array in this memory of the caller's object; raises ArgumentError if there is none to write to."""

    def share(self, given: Any, held: Any, other: Any, other_held: Any) -> bool:
        """Whether two of the caller's objects, each with its array, are the same memory to the caller."""
        ...

    def may_write(self, given: Any, held: Any, others: Iterable[Any], strides: Strides | None) -> bool:
        """Whether a program may write straight into an array: with these strides (None: in C order), as programs need
        it, and apart from the others."""
        ...

    def empty_like(self, held: Any, strides: Strides | None) -> Any:
        """A new array that a program may write to."""

    def copy_to(self, given: Any, held: Any, value: Any) -> None:
        """Let the caller's object, whose array is `held`, have a value."""


class HostMemory:
    """ndarrays."""

    def array_of(self, given: Any, which: str) -> np.ndarray:
        """The ndarray itself."""
        if not isinstance(given, np.ndarray):
            message = f"{which} must be an ndarray, but got {type(given).__name__}."
            raise ArgumentError(message)
        if not given.flags.writeable:
            message = f"{which} is read-only. Pass an array that may be written to."
            raise ArgumentError(message)
        return given

    def share(self, given: Any, held: np.ndarray, other: Any, other_held: np.ndarray) -> bool:
        """Whether two arrays overlap."""
        return np.may_share_memory(held, other_held)

    def may_write(self, given: Any, held: np.ndarray, others: Iterable[Any], strides: Strides | None) -> bool:
        """Whether an array is plain, has the strides, is aligned, and apart from the others."""
        for one in others:
            if isinstance(one, np.ndarray) and np.may_share_memory(held, one):
                return False
        flags = held.flags
        lies = flags.c_contiguous if strides is None else held.strides == strides
        return held.dtype is plain_dtype(held.dtype) and lies and flags.aligned

    def empty_like(self, held: np.ndarray, strides: Strides | None) -> np.ndarray:
        """A new ndarray."""
        return np.ndarray(held.shape, plain_dtype(held.dtype), strides=strides)

    def copy_to(self, given: Any, held: np.ndarray, value: Any) -> None:
        """Copy a value to the array."""
        np.copyto(held, value)


HOST_MEMORY = HostMemory()


class OutArrays:
    """The arrays that the caller provides for the results of one call.

    Parameters
    ----------
    given : list
        The caller's objects, one for each result.
    held : list
        Their arrays.
    memory : Memory
    strides : sequence of (tuple of int or None), optional
        The strides that a program gives to each result; C order by default.
    """

    __slots__ = ("given", "held", "memory", "strides")

    def __init__(
        self, given: list[Any], held: list[Any], memory: Memory, strides: Sequence[Strides | None] | None = None
    ) -> None:
        self.given, self.held, self.memory = given, held, memory
        self.strides = [None] * len(held) if strides is None else strides

    def written(self, inputs: Sequence[Any]) -> list[Any]:
        """The arrays that a program with these inputs writes to: new ones in place of those that it must not."""
        memory, made = self.memory, []
        for k, held in enumerate(self.held):
            others = inputs if len(self.held) == 1 else chain(inputs, self.held[:k], self.held[k + 1 :])
            free = memory.may_write(self.given[k], held, others, self.strides[k])
            made.append(held if free else memory.empty_like(held, self.strides[k]))
        return made

    def take(self, values: Sequence[Any]) -> None:
        """Let the caller's objects have the results, which may be in their memory already."""
        for given, held, value in zip(self.given, self.held, values, strict=False):
            if value is not held:
                self.memory.copy_to(given, held, value)


def check_out(
    out: Any,
    treespec: Any,
    leaves: Sequence[Any],
    nodes: Sequence[Node],
    name: str,
    memory: Memory,
    strides: Sequence[Strides | None] | None = None,
) -> OutArrays:
    """The arrays in `out`, one for each result.

    Parameters
    ----------
    out : array, or tuple, list or dict of them
        Nested like the function's result.
    treespec, leaves : the structure of the result, and its leaves; RESULT where a result belongs
    nodes : sequence of nodes
        The results.
    name : str
        The function's name.
    memory : Memory
        The memory that the function runs in.
    strides : sequence of (tuple of int or None), optional
        Those of each result; C order by default.

    Raises
    ------
    ArgumentError
        For another structure, for objects that are no arrays in this memory or read-only, and arrays that share memory.
    ShapeError, DtypeError
        For an array that a result does not fit.
    """
    given, spec = flatten(out)
    if spec != treespec:
        message = f"out must be nested like the result of {name}(), {treespec}, but got {spec}."
        raise ArgumentError(message)
    chosen = [value for value, leaf in zip(given, leaves, strict=True) if leaf is RESULT]
    arrays: list[Any] = []
    for number, (value, node) in enumerate(zip(chosen, nodes, strict=True)):
        which = f"Array {number} of out" if len(chosen) > 1 else "out"
        held = memory.array_of(value, which)
        if held.shape != node.shape:
            message = f"{which} has shape {held.shape}, but the result of {name}() has shape {node.shape}."
            raise ShapeError(message)
        if plain_dtype(held.dtype) != node.dtype:
            message = f"{which} has dtype {held.dtype}, but the result of {name}() has dtype {node.dtype}."
            raise DtypeError(message)
        for k in range(number):
            if memory.share(value, held, chosen[k], arrays[k]):
                message = f"{which} shares memory with another array of out. Each result needs an array of its own."
                raise ArgumentError(message)
        arrays.append(held)
    return OutArrays(chosen, arrays, memory, strides)


def copy_constants(out: Any, leaves: Sequence[Any]) -> None:
    """Copy what a function returns that no argument has a part in; `leaves` as for `check_out`.

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


# ----- donate= -----


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
