"""One of two values of a name, by a recorded truth value.

In: the values that a name has on both sides of a branch. Out: the value of which each element is chosen; or
`CannotTurn`, the reason why the statement must stay Python's. Called by sides.py; loops raise `CannotTurn`, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any, NoReturn

import numpy as np
import optree

from ..graph.builders import reshape
from ..graph.ir import BOOL, Node, broadcast, elementwise
from ..graph.trace import open_traces
from ..record.as_node import as_node
from ..record.chosen_arrays import chosen_arrays
from ..record.promotion import promote
from ..record.tensor import Tensor
from ..record.zero_dimensional import ZeroDimensional, as_array
from ..runtime.memory_order import like_array, same_order
from ..transforms.arguments import flatten


class Unset:
    """The value of a name that is not set."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        message = "A variable is read before it is set."
        raise UnboundLocalError(message)

    def __repr__(self) -> str:
        return "a variable that is not set"


UNSET = Unset()


class CannotTurn(Exception):  # noqa: N818 - the reason why a statement stays Python's
    """Why a statement stays Python's."""


def cannot(why: str) -> NoReturn:
    raise CannotTurn(why)


def stays_pythons() -> bool:
    """Whether a statement may stay Python's: `jit` records a way of its own, where no value stands for many."""
    return not any(trace.mapping or trace.turn_ends is not None for trace in open_traces())


def may_stay_pythons() -> bool:
    """Whether a statement, or the one around it, may stay Python's."""
    return not any(trace.mapping or (trace.turn_ends is not None and not trace.optional) for trace in open_traces())


def _is_array_without_axes(value: Any) -> bool:
    return isinstance(value, ZeroDimensional) or (isinstance(value, np.ndarray) and not value.ndim)


@dataclass
class Choice:
    """A choice between what two sides of a branch give, by a recorded truth value.

    `ends` has the node of each Tensor at the end of its side, by `id`: what a side has written is undone since then.
    """

    test: Any
    code: CodeType
    ends: tuple[dict[int, Node], dict[int, Node]]
    outside: tuple[Callable[[Any], bool], Callable[[Any], bool]]
    """Whether an object was there before a side."""
    optional: bool = field(default_factory=may_stay_pythons)
    containers: list[Any] = field(default_factory=list)
    """Lists and dicts that were chosen, and from which, where one of these was there before."""
    made: list[tuple[Tensor, Any, Any]] = field(default_factory=list)
    """The chosen values, with those of both sides."""

    def between(self, yes: Any, no: Any, name: str, loose: bool = False) -> Any:
        """One of two values of a name."""
        if yes is no:
            return yes
        leaves, tree = flatten(yes)
        others, same = flatten(no)
        if tree != same:
            cannot(f"{name} is {shown(yes)} on one side and {shown(no)} on the other")
        found = [self._leaf(a, b, name, loose) for a, b in zip(leaves, others, strict=True)]
        result = optree.tree_unflatten(tree, found)
        sources = [list(_containers(value)) for value in (yes, no)]
        if any(outside(one) for outside, ours in zip(self.outside, sources, strict=True) for one in ours):
            self.containers += [*_containers(result), *sources[0], *sources[1]]
        return result

    def of_nodes(self, a: Node, b: Node) -> Node:
        """One of two nodes of the same shape and dtype."""
        return elementwise("select", broadcast(condition_of(self.test), a.shape), a, b)

    def note(self) -> None:
        """Note the arrays that were chosen: a later write to one must be seen by another."""
        arrays = chosen_arrays()
        for found, yes, no in self.made:
            arrays.note(found, arrays.origins(yes) | arrays.origins(no), self.code, self.optional)
        for container in self.containers:
            arrays.note_container(container, self.code, self.optional)

    def _leaf(self, yes: Any, no: Any, name: str, loose: bool) -> Any:
        if yes is no:
            return yes
        if yes is UNSET or no is UNSET:
            if loose:
                return no if yes is UNSET else yes
            cannot(f"{name} is set on one side only")
        if not (is_number(yes) and is_number(no)):
            if type(yes) is type(no) and not is_number(yes) and yes == no:
                return yes
            cannot(f"{name} is {shown(yes)} on one side and {shown(no)} on the other")
        if type(yes) is type(no) and isinstance(yes, bool | int | str) and yes == no:
            return yes
        a, b = (ends.get(id(value)) or as_node(value) for ends, value in zip(self.ends, (yes, no), strict=True))
        if a.shape != b.shape or (a.dtype == BOOL) != (b.dtype == BOOL):
            both = [f"{node.dtype}{list(node.shape)}" for node in (a, b)]
            cannot(f"{name} is {both[0]} on one side and {both[1]} on the other")
        if stays_pythons() and not (_becomes(a, b) or _becomes(b, a)):
            cannot(f"{name} is of {a.dtype} on one side and of {b.dtype} on the other")
        a, b = promote([a, b])
        same = same_order(a, b)
        if stays_pythons():
            if _is_array_without_axes(yes) != _is_array_without_axes(no):
                cannot(f"{name} is an array without axes on one side and a number on the other")
            if not same:
                cannot(f"{name} lies in memory in another order on one side")
        node = self.of_nodes(a, b)
        found = Tensor._of(like_array(node, a) if same else node)
        found = as_array(found) if _is_array_without_axes(yes) or _is_array_without_axes(no) else found
        self.made.append((found, yes, no))
        return found


def _containers(value: Any) -> Iterator[Any]:
    """The lists and dicts in nested containers."""
    if isinstance(value, list | dict):
        yield value
    if isinstance(value, list | tuple | dict):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _containers(part)


def shown(value: Any) -> str:
    if value is None or value is UNSET:
        return repr(value)
    return f"of {type(value).__name__}"


def is_number(value: Any) -> bool:
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.kind in "biufc"
    return isinstance(value, Tensor | bool | int | float | complex)


def _becomes(a: Node, b: Node) -> bool:
    """Whether a value can be handed on in the dtype of another one: it has it, or is Python's and loses nothing."""
    return a.dtype == b.dtype or (a.weak and np.can_cast(a.dtype, b.dtype))


def condition_of(test: Any) -> Any:
    node = reshape(test._node, ())
    return node if node.dtype == BOOL else elementwise("not_equal", node, 0)
