"""Functions of arrays and of a block that give a vector, and their derivatives, which are such functions again.

In: a function of arguments and a block; the derivatives of a sum ask for further ones. Out: objects that pools of
processes can send. Called by map_reduce.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import optree

from ..record.tensor import Tensor
from ..transforms.arguments import flatten, has_floats, name_of, node_of
from ..transforms.jacobians import jvp, vjp
from ..transforms.lent_arrays import kind_of


def _joined(parts: list[Any]) -> Any:
    """Arrays as one vector."""
    flat = [Tensor._of(node_of(part)).reshape(-1) for part in parts]
    return np.concatenate(flat) if len(flat) > 1 else flat[0] if flat else np.zeros(0)


class Vector:
    """The arrays that a function gives for a block, as one vector.

    Parameters
    ----------
    f : callable
        The user's function.
    others : list
        The leaves of its arguments, with None in place of arrays.
    taken : list of int
        The places of the arrays among them.
    tree
        The structure of the arguments.
    """

    def __init__(self, f: Callable[..., Any], others: list[Any], taken: list[int], tree: Any) -> None:
        self.f, self.others, self.taken, self.tree_of_arguments = f, others, taken, tree
        self.__name__ = name_of(f)
        self.tree: Any = None
        self.layouts: list[tuple[tuple[int, ...], Any] | None] | None = None
        """The shapes and dtypes of the arrays, when the function has run here; None for other leaves."""

    def __call__(self, *given: Any) -> Any:
        """The vector, for arrays and a block."""
        leaves, count = list(self.others), len(self.taken)
        for place, x in zip(self.taken, given[:count], strict=True):
            leaves[place] = x
        arguments = optree.tree_unflatten(self.tree_of_arguments, leaves)
        found, self.tree = flatten(self.f(*arguments, *given[count:]))
        parts = [leaf for leaf in found if kind_of(leaf) != "other"]
        nodes = [None if kind_of(leaf) == "other" else node_of(leaf) for leaf in found]
        self.layouts = [None if node is None else (node.shape, node.dtype) for node in nodes]
        return _joined(parts)


class Cotangents:
    """The cotangents of arrays, as one vector, for that of the vector that a function gives.

    Parameters
    ----------
    vector : callable
        A function of arrays and a block that gives a vector.
    count : int
        The number of its arrays; that of the cotangent comes after them.
    """

    def __init__(self, vector: Callable[..., Any], count: int) -> None:
        self.vector, self.count = vector, count
        self.__name__ = name_of(vector)

    def __call__(self, *given: Any) -> Any:
        """The vector, for arrays, a cotangent and a block."""
        xs, g, block = given[: self.count], given[self.count], given[self.count + 1 :]
        f, some = _of_floats(self.vector, xs, block)
        return _joined(list(vjp(f, *some)[1](g)))


class Tangents(Cotangents):
    """The tangent of the vector that a function gives, for those of its arrays of floating-point numbers."""

    def __call__(self, *given: Any) -> Any:
        """The vector, for arrays, tangents and a block."""
        xs, count = given[: self.count], self.count + sum(map(has_floats, given[: self.count]))
        f, some = _of_floats(self.vector, xs, given[count:])
        return jvp(f, tuple(some), tuple(given[self.count : count]))[1]


def _of_floats(vector: Callable[..., Any], xs: Any, block: Any) -> tuple[Callable[..., Any], list[Any]]:
    """A function of those arrays alone that have floating-point numbers, and these arrays."""
    floats = [k for k, x in enumerate(xs) if has_floats(x)]

    def of(*some: Any) -> Any:
        every = list(xs)
        for k, x in zip(floats, some, strict=True):
            every[k] = x
        return vector(*every, *block)

    return of, [xs[k] for k in floats]
