"""Moves: how a view reads its Tensor, for views that are no basic slices: transposed, reshaped, the real part.

In: two nodes of which one is made of the other by moving elements. Out: `Moves`, the operations between them, which can
be repeated on another node or an ndarray, and undone: a node in which the moved part is another one. Called by
shared_memory.py. Which results of NumPy are views and which are copies follows from strides, so these are followed too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiler.views import View, view_through
from ..errors import ArgumentError
from ..graph.builders import concatenate, reshape, transpose
from ..graph.complex_numbers import pair, parts
from ..graph.ir import INT64, Node, constant, make, placeholder
from ..graph.movement_rows import slices_of
from ..graph.shapes import Shape
from ..runtime.memory_order import strides_of, with_strides
from .axes_and_dtypes import cut, gather_axis
from .indexing import getitem, setitem
from .moving_slices import at_first_place
from .tensor import Tensor

MOVING = frozenset(["reshape", "transpose", "slice", "broadcast"])
PARTS = ("real", "imag")
WINDOWS = "windows"
"""The move of `sliding_window_view`, which is no primitive."""
_FEW = 32
"""Up to this extent, windows are slices that are joined; beyond, a gather."""
MOST_MOVES = 8
"""The longest chain that is looked through: no function of NumPy that gives a view takes more operations."""


class Moves(tuple[tuple[str, tuple[Any, ...]], ...]):
    """Operations in order: the name of a primitive, and its parameters."""

    __slots__ = ()


class Unsettled(Moves):
    """Moves of which nothing has asked yet whether NumPy would make a view: it depends on how the elements lie."""

    __slots__ = ()


class InOrder(Unsettled):
    """Moves that give a view only where its elements are side by side in C order."""

    __slots__ = ()


PART_MOVES = tuple([Moves([(name, ())]) for name in PARTS])
"""The moves that make the real and the imaginary part."""


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
        node = _windows_of(node, *params) if name == WINDOWS else make(name, (node,), params)
    return node


def _windows_of(node: Node, extents: Sequence[int], axes: Sequence[int]) -> Node:
    where = View.strided(node.shape, strides_of(node))
    return with_strides(windows_node(node, extents, axes), _windows(where, extents, axes).strides)


def windows_node(node: Node, extents: Sequence[int], axes: Sequence[int]) -> Node:
    """All windows along axes, as new axes at the end."""
    for at, width in zip(axes, extents, strict=True):
        count = node.shape[at] - width + 1
        if 0 < width <= _FEW:
            slices = [cut(node, at, k, count) for k in range(width)]
            node = concatenate([reshape(part, (*part.shape, 1)) for part in slices], node.ndim)
        else:
            place = np.arange(count)[:, None] + np.arange(width)
            picked = gather_axis(node, at, constant(place.ravel().astype(INT64)))
            picked = reshape(picked, (*node.shape[:at], count, width, *node.shape[at + 1 :]))
            order = [k for k in range(picked.ndim) if k != at + 1]
            node = transpose(picked, (*order, at + 1))
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
    if any(name == WINDOWS for name, _ in key):
        message = (
            "The windows of an array are read-only, because they share their elements: write to a copy (x.copy()), or "
            "to the array that they were made of."
        )
        raise ArgumentError(message)
    stages = [node]
    for name, params in key[:-1]:
        stages.append(make(name, (stages[-1],), params))
    for stage, (name, params) in zip(reversed(stages), reversed(key), strict=bool(key)):
        part = _undone(stage, name, params, part)
    return part


def _undone(before: Node, name: str, params: tuple[Any, ...], part: Node) -> Node:
    """`before` with the elements replaced that one operation takes of it."""
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
        whole = _places(key, int)
        return array[whole if any(part is Ellipsis for part in whole) else (*whole, ...)]
    steps = list(key)
    while steps:
        name, params = steps.pop(0)
        if name == "reshape":
            through = layout(View.strided(array.shape, array.strides), [(name, params)])
            if through is None and steps and (part := _diagonal_of(array, params[0], *steps[0])) is not None:
                array = part
                steps.pop(0)
            else:
                array = array.reshape(params[0])
        elif name == "transpose":
            array = array.transpose(params[0])
        elif name == "slice":
            array = array[slices_of(params[0])]
        elif name == "broadcast":
            array = np.broadcast_to(array, params[0])
        elif name == WINDOWS:
            array = np.lib.stride_tricks.sliding_window_view(array, *params)
        else:
            array = np.real(array) if name == "real" else np.imag(array)
    return array


def _places(key: Any, place_of: Callable[[Tensor], int]) -> tuple[Any, ...]:
    """The parts of a key that gives a view, with places that are recorded replaced by known ones."""
    parts = key if key.__class__ is tuple else (key,)
    places = [place_of(part) if isinstance(part, Tensor) else part for part in parts]
    return tuple([at_first_place(part) if isinstance(part, slice) else part for part in places])


def _diagonal_of(array: np.ndarray, flat: Shape, name: str, params: tuple[Any, ...]) -> np.ndarray | None:
    """The diagonal of the last two axes as a view that can be written to; None for other slices of both made flat."""
    where = _diagonal(View.strided(array.shape, array.strides), flat, name, params)
    if where is None or 0 in where.shape:
        return None
    row, column = divmod(params[0][-1][0], array.shape[-1])
    return np.lib.stride_tricks.as_strided(array[..., row:, column:], where.shape, where.strides)


def layout(view: View, key: Any) -> View | None:
    """The layout of the elements of a view; None if NumPy would have to copy them."""
    if not isinstance(key, list | Moves):
        example = placeholder(view.shape, np.dtype(np.float64))
        # A place that is recorded counts as the first one, so that all but the offset is known.
        found = moves_between(example, getitem(example, _places(key, lambda place: 0)))
        assert found is not None, key
        key = found
    shape, steps = view.shape, list(key)
    while steps:
        name, params = steps.pop(0)
        if name in PARTS:
            continue
        if name == WINDOWS:
            view = _windows(view, *params)
            shape = view.shape
            continue
        moved = make(name, (placeholder(shape, np.dtype(np.float64)),), params)
        through = view_through(moved, view)
        if through is None and name == "reshape" and steps:
            through = _diagonal(view, params[0], *steps.pop(0))
            moved = moved if through is None else placeholder(through.shape, np.dtype(np.float64))
        if through is None:
            return None
        view, shape = through, moved.shape
    return view


def _windows(view: View, extents: Sequence[int], axes: Sequence[int]) -> View:
    shape = list(view.shape)
    for at, width in zip(axes, extents, strict=True):
        shape[at] -= width - 1
    strides = (*view.strides, *[view.strides[at] for at in axes])
    return View.strided((*shape, *extents), strides, view.offset)


def _diagonal(view: View, flat: Shape, name: str, params: tuple[Any, ...]) -> View | None:
    """The diagonal of the last two axes, which is read as a slice of both made flat; None for other slices."""
    if name != "slice" or len(flat) + 1 != len(view.shape) or flat[:-1] != view.shape[:-2] or any(view.valid):
        return None
    columns = view.shape[-1]
    *lead, (start, length, step) = params[0]
    if (step != columns + 1 and length > 1) or lead != [(0, n, 1) for n in flat[:-1]]:
        return None
    row, column = view.strides[-2:]
    offset = view.offset + (start // max(columns, 1)) * row + (start % max(columns, 1)) * column
    return View.strided((*flat[:-1], length), (*view.strides[:-2], row + column), offset)
