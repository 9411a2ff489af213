"""The structure of a graph as a key: its computation, apart from the values that it starts from.

In: nodes. Out: a hashable key that equal graphs share, and the leaves (inputs and constants) in the order in which the
key counts them. Called at each un-jitted computation, to find the program that was compiled for the same graph before;
so it is kept short, and most of it is for nodes with one or two inputs, which most are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .ir import Node, by_serial
from .primitives import PRIMITIVES

CUSTOM, CONSTANT, INPUT, LOOP = (PRIMITIVES[name] for name in ("custom", "constant", "input", "loop"))


def structure(nodes: Sequence[Node], custom: list[Node], order: Sequence[Node] | None = None) -> tuple[Any, list[Node]]:
    """The identity of a graph apart from the values of its leaves, and those leaves in order.

    Parameters
    ----------
    nodes : sequence of Node
        The outputs.
    custom : list of Node
        Nodes with a user's rule, which is not part of the identity, are added to it. (Rules that are `pure`, and
        compare equal if they do the same, are part of it.)
    order : sequence of Node, optional
        All nodes that the outputs need, as `by_serial` gives them, if they are known.

    Returns
    -------
    key : hashable
        Equal for graphs that compute the same from leaves of the same shapes and dtypes.
    leaves : list of Node

    Examples
    --------
    >>> import numpy as np
    >>> from nbgrad.graph.ir import constant
    >>> x, y = constant(np.ones(3)), constant(np.zeros(3))
    >>> structure([x * y], [])[0] == structure([y * constant(np.ones(3))], [])[0] != structure([x + y], [])[0]
    True
    """
    number: dict[Node, int] = {}
    of = number.__getitem__
    leaves: list[Node] = []
    key: list[Any] = []
    for position, node in enumerate(by_serial(nodes) if order is None else order):
        inputs = node.inputs
        number[node] = position
        count = len(inputs)
        if node.primitive is CUSTOM:
            if getattr(node.params[0], "pure", False):
                key += (CUSTOM, node.params, *map(of, inputs))
            else:
                key += (CUSTOM, number[inputs[0]])
                custom.append(node)
        elif count == 2:
            first, second = inputs
            key += (node.primitive, node.params, number[first], number[second])
        elif count == 1:
            key += (node.primitive, node.params, number[inputs[0]])
        elif count:
            key += (node.primitive, node.params, *map(of, inputs))
            if node.primitive is LOOP:
                custom += node.params[0].custom
        elif node.primitive is CONSTANT or node.primitive is INPUT:
            key += (node.shape, node.dtype)
            leaves.append(node)
        else:
            key += (node.primitive, node.params, node.dtype)
    # One flat tuple, which is faster than one of tuples. Each entry is a primitive, what it has, and the numbers of its
    # inputs, or the shape and dtype of a leaf: so no two graphs have the same key.
    return (*key, None, *map(of, nodes)), leaves
