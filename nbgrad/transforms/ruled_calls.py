"""The calls of functions with rules of their own: their arguments in order, and the values that they read besides.

In: a function, the arguments of a call as a user writes them, and the nodes that the call has made. Out: all arguments
by their positions, those that rules are about apart from the others, and nodes that stand for what the function has
read from outside. Called by custom.py and custom_jvp.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..graph.ir import Earlier, Node, make, topological, zeros
from ..record.tensor import Tensor
from ..record.zero_dimensional import as_array, is_array

Numbers = int | Sequence[int]
Names = str | Sequence[str]


def checked_numbers(numbers: Numbers, what: str = "nondiff_argnums") -> tuple[int, ...]:
    """The positions of arguments as a tuple.

    Raises
    ------
    DtypeError
        If they are no integers.
    """
    found = tuple(numbers) if isinstance(numbers, list | tuple) else (numbers,)
    if not all(isinstance(one, int) and not isinstance(one, bool) for one in found):
        message = f"{what} must be an int or a tuple of ints, but got {numbers!r}."
        raise DtypeError(message)
    return found  # type: ignore[return-value]


def in_order(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], takers: int) -> tuple[Any, ...]:
    """All arguments of a call by their positions, those with names too; defaults where a rule has parameters for them.

    `takers` is the number of parameters that the rule has for them, or -1 for any number.

    Raises
    ------
    DtypeError
        If the function does not take these arguments, or takes one by its name alone.
    """
    try:
        # Ufuncs have parameters that no rule is about.
        bound = None if isinstance(fn, np.ufunc) else inspect.signature(fn).bind(*args, **kwargs)
    except ValueError:  # a function without a signature
        bound = None
    except TypeError as error:
        message = f"{getattr(fn, '__name__', 'The function')}() cannot be called so: {error}."
        raise DtypeError(message) from None
    if bound is None:
        if kwargs:
            message = f"{fn!r} says no names of its parameters, so its arguments must be given by position."
            raise DtypeError(message)
        return args
    given, by_name = bound.args, bound.kwargs
    bound.apply_defaults()
    if kwargs.keys() & bound.kwargs.keys():
        message = (
            f"{getattr(fn, '__name__', 'The function')}() takes {', '.join(bound.kwargs)} by name alone, but a rule "
            "gets arguments by position. Let it be a parameter that has a position."
        )
        raise DtypeError(message)
    return bound.args if by_name or takers < 0 or takers >= len(bound.args) > len(given) else given


def parameter_count(rule: Callable[..., Any] | None) -> int:
    """The number of positional parameters of a rule; -1 for any number, 0 where it is not known."""
    if rule is None:
        return 0
    try:
        parameters = inspect.signature(rule).parameters.values()
    except (TypeError, ValueError):
        return 0
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return -1
    return sum(one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters)


def positions_of(fn: Callable[..., Any], numbers: Sequence[int], names: Names, count: int) -> tuple[int, ...]:
    """The positions, in order, of arguments that are named or counted, from the end too.

    Raises
    ------
    ArgumentError
        If the function has no such parameter, or the call no such argument.
    """
    found = {number + count if number < 0 else number for number in numbers}
    if names:
        known = list(inspect.signature(fn).parameters)
        listed = [names] if isinstance(names, str) else list(names)
        absent = [name for name in listed if name not in known]
        if absent:
            message = f"nondiff_argnames has {absent[0]!r}, but the parameters are {', '.join(known)}."
            raise ArgumentError(message)
        found.update(map(known.index, listed))
    found = {one for one in found if one < count or not names}
    if any(not 0 <= one < count for one in found):
        message = f"nondiff_argnums is {tuple(numbers)}, but the call has {count} argument{'s' if count != 1 else ''}."
        raise ArgumentError(message)
    return tuple(sorted(found))


class _Outside:
    """The rule of what a function has read from outside: its own rule says nothing of it, so asking is an error."""

    pure = True

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Outside) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """Raise: there are none."""
        raise ArgumentError(self._message())

    def tangent(self, node: Node, tangents: Sequence[Node | None]) -> Node:
        """Raise: there is none."""
        raise ArgumentError(self._message())

    def _message(self) -> str:
        return (
            f"{self.name}() reads a value from outside that is differentiated, but its rule is about its arguments "
            "alone, so this derivative would be lost. Make the value an argument of the function, or cut it off "
            "with nb.stop_gradient."
        )


def read_from_outside(made: Sequence[Node], arguments: Collection[Node], since: float, name: str) -> list[Node]:
    """One node for each differentiable value from before a serial number that nodes are made of.

    Those of `arguments` are left out. The nodes have the same values, and their derivative is an error.
    """
    known = set(arguments)
    found: dict[Node, None] = {}
    earlier = Earlier(since, known)
    for node in topological(made, earlier):
        found.update(dict.fromkeys([source for source in node.inputs if source in earlier]))
    found.update(dict.fromkeys([node for node in made if node in earlier]))
    read = [node for node in found if node not in known and node.traced and node.dtype.kind in "fc"]
    return [make("custom", (node, node), (_Outside(name), 0)) for node in read]


class Arguments:
    """Arguments as a function gets them: each array is a Tensor of a node of its own, so that what the function makes
    of it can be told from what it reads from outside."""

    def __init__(self) -> None:
        self._given: list[tuple[Tensor, Tensor, Node]] = []

    def one(self, leaf: Any) -> Any:
        """A leaf as the function gets it."""
        if not isinstance(leaf, Tensor):
            return leaf
        node = leaf._node
        fresh = make("alias", (node,))
        fresh.weak, fresh.tensor = node.weak, node.tensor
        tensor = as_array(Tensor._of(fresh)) if is_array(leaf) else Tensor._of(fresh)
        self._given.append((leaf, tensor, fresh))
        return tensor

    def write_back(self) -> None:
        """Let the caller's Tensors have what the function has written to its own."""
        for leaf, tensor, fresh in self._given:
            if tensor._node is not fresh:
                leaf._replace(tensor._node)


def zeros_of(nodes: Sequence[Node]) -> list[Node | None]:
    """Zero cotangents of nodes."""
    return [zeros(node.shape, node.dtype) for node in nodes]
