"""Moves: how a view reads its Tensor, for views that are no basic slices: transposed, reshaped, the real part.

In: two nodes of which one is made of the other by moving elements. Out: `Moves`, the operations between them, which can
be repeated on another node or an ndarray, and undone: a node in which the moved part is another one. Called by
aliasing.py. Which results of NumPy are views and which are copies follows from strides, so these are followed too.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiler.views import View, view_through
from .errors import ArgumentError
from .graph.complex_numbers import pair, parts
from .graph.interpret import slices_of
from .graph.ir import Node, make, placeholder
from .graph.primitives import reshape, transpose
from .numpy.indexing import getitem, setitem

MOVING = frozenset(["reshape", "transpose", "slice", "broadcast"])
PARTS = ("real", "imag")
MOST_MOVES = 8
"""More operations in a row are not looked through: no function of NumPy that gives a view is so many."""


class Moves(tuple[tuple[str, tuple[Any, ...]], ...]):
    """Operations in order: the name of a primitive, and its parameters."""

    __slots__ = ()


PART_MOVES = tuple([Moves([(name, ())]) for name in PARTS])
"""What makes the real and the imaginary part."""


def moves_between(base: Node, node: Node) -> Moves | None:
    """The operations that make a real node of another one; None if they do more than moving elements."""
    found: list[tuple[str, tuple[Any, ...]]] = []
    while node is not base:
        if node.name not in MOVING or len(found) == MOST_MOVES:
            return None
        found.append((node.name, node.params))
        node = node.inputs[0]
    return Moves(reversed(found))


def read(node: Node, key: Any) -> Node:
    """The part of a node that a view shows: `key` is a basic index or `Moves`."""
    if not isinstance(key, Moves):
        return getitem(node, key)
    for name, params in key:
        node = make(name, (node,), params)
    return node


def replace(node: Node, key: Any, part: Node) -> Node:
    """The node in which the part that a view shows is another one.

    Raises
    ------
    ArgumentError
        If the view repeats elements: such views are read-only, as in NumPy.
    """
    if not isinstance(key, Moves):
        return setitem(node, key, part)
    stages = [node]
    for name, params in key[:-1]:
        stages.append(make(name, (stages[-1],), params))
    for stage, (name, params) in zip(reversed(stages), reversed(key), strict=bool(key)):
        part = _undone(stage, name, params, part)
    return part


def _undone(before: Node, name: str, params: tuple[Any, ...], part: Node) -> Node:
    """`before` with what one operation takes of it replaced."""
    if name == "reshape":
        return reshape(part, before.shape)
    if name == "transpose":
        return transpose(part, tuple(np.argsort(params[0]).tolist()))
    if name == "slice":
        return setitem(before, slices_of(params[0]), part)
    if name == "broadcast":
        message = (
            "A broadcast array is read-only, because elements share memory: write to a copy of it (x.copy()), or to "
            "the array that it was made of."
        )
        raise ArgumentError(message)
    re, im = parts(before)
    return pair(part, im) if name == "real" else pair(re, part)


def part_of(array: np.ndarray, key: Any) -> np.ndarray:
    """The part of an ndarray that a view shows, as a view of it."""
    if not isinstance(key, Moves):
        # With an Ellipsis, integers on all axes give an array too.
        whole = key if key.__class__ is tuple else (key,)
        return array[whole if any(part is Ellipsis for part in whole) else (*whole, ...)]
    for name, params in key:
        if name == "reshape":
            array = array.reshape(params[0])
        elif name == "transpose":
            array = array.transpose(params[0])
        elif name == "slice":
            array = array[slices_of(params[0])]
        elif name == "broadcast":
            array = np.broadcast_to(array, params[0])
        else:
            array = np.real(array) if name == "real" else np.imag(array)
    return array


def layout(view: View, key: Any) -> View | None:
    """Where the elements of a view lie; None if NumPy would have to copy them."""
    if not isinstance(key, Moves):
        example = placeholder(view.shape, np.dtype(np.float64))
        found = moves_between(example, getitem(example, key))
        assert found is not None, key
        key = found
    shape = view.shape
    for name, params in key:
        if name in PARTS:
            continue
        moved = make(name, (placeholder(shape, np.dtype(np.float64)),), params)
        through = view_through(moved, view)
        if through is None:
            return None
        view, shape = through, moved.shape
    return view
