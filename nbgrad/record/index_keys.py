"""The keys between the brackets of `x[...]`: any that NumPy takes, as one entry per axis, checked.

In: a shape and a key. Out: a list of entries, each consuming one axis but for `None`, `...` and `Truth`:
`None` (a new axis), `int`, `range` or `MovingSlice` (a slice), an int64 ndarray or an int64 Node (positions, in range
and not negative), `Truth` (a 0-d boolean: a new axis with one or no element), or `...` (an ellipsis for no axis).
Called by indexing.py. Errors are raised at once; positions that are only known when a compiled program runs are checked
then.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from types import EllipsisType
from typing import Any, TypeGuard

import numpy as np

from ..errors import RangeError, ShapeError, TracedValueError
from ..graph.builders import cast
from ..graph.ir import INT64, Node, elementwise, literal_value
from ..graph.shapes import Shape
from ..graph.trace import current_trace
from ..runtime.evaluate import concrete, require
from .as_node import as_node, lists_hold
from .foreign_arrays import advice, values_of
from .moving_slices import MovingSlice, has_tensors, moving_slice
from .tensor import Tensor
from .zero_dimensional import is_scalar


@dataclass(frozen=True)
class Truth:
    """A 0-d boolean index."""

    value: bool


Entry = None | int | range | MovingSlice | np.ndarray | Node | Truth | EllipsisType


def settled(key: Any) -> Any:
    """A key in which scalars that are integers, NumPy's or Tensors, are Python's: they give views, too.

    Those that are recorded stay, but for ends of slices that have a value; keys with arrays, sequences and booleans
    come back as they are.
    """
    if key.__class__ is not tuple:
        return _settled(key)
    parts = tuple([_settled(part) for part in key])
    return key if all(part is one for part, one in zip(parts, key, strict=True)) else parts


def _settled(part: Any) -> Any:
    if isinstance(part, np.integer) or (isinstance(part, int) and part.__class__ not in (int, bool)):
        return int(part)
    if is_scalar_index(part):
        node = part._node
        if not node.traced and node.device is None:
            return int(concrete(node, "array"))
    if isinstance(part, slice) and has_tensors(part):
        try:
            return slice(*[end if end is None else operator.index(end) for end in (part.start, part.stop, part.step)])
        except TracedValueError:
            return part  # it moves from turn to turn
    return part


def is_scalar_index(part: Any) -> TypeGuard[Tensor]:
    """Whether a part of a key is a Tensor in place of one of NumPy's integers, which are no arrays."""
    return isinstance(part, Tensor) and is_scalar(part) and part._node.dtype.kind in "iu"


def entries_of(shape: Shape, key: Any) -> list[Entry]:
    """The entries of a key; together they consume every axis of `shape`."""
    parts = list(key) if isinstance(key, tuple) else [key]
    parts = [_as_array(part) for part in parts]
    consumed = sum(_axes_taken(part) for part in parts)
    dots = [position for position, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        message = "An index can only have a single ellipsis (`...`)."
        raise RangeError(message)
    if consumed > len(shape):
        message = f"Too many indices: the Tensor has {len(shape)} axes, but {consumed} were indexed."
        raise RangeError(message)
    fill = [slice(None)] * (len(shape) - consumed)
    if dots:
        # An ellipsis for no axis stays: it still separates index arrays.
        parts[dots[0] : dots[0] + 1] = fill or [Ellipsis]
    else:
        parts += fill
    entries: list[Entry] = []
    axis = 0
    for part in parts:
        taken = _axes_taken(part)
        if taken and isinstance(part, np.ndarray) and part.dtype == np.bool_:
            entries.extend(_mask_positions(part, shape, axis))
        else:
            entries.append(_entry(part, shape[axis] if taken else 0, axis))
        axis += taken
    return entries


def _as_array(part: Any) -> Any:
    """Sequences and Tensors as ndarrays where their value may be used, else as nodes."""
    if part is None or part is Ellipsis or isinstance(part, int | slice | np.generic):
        return part
    if isinstance(part, list | tuple | range):
        if lists_hold(part, Tensor):
            part = Tensor._of(as_node(part))
        else:
            array = np.asarray(part)
            part = array.astype(np.int64) if array.size == 0 else array
    if isinstance(part, Tensor):
        node = part._node
        if node.dtype.kind == "b":
            return mask_value(node)
        if node.dtype.kind not in "iu":
            _refuse(node.dtype)
        return node if node.traced or node.device is not None else concrete(node, "array")
    return part if isinstance(part, np.ndarray) or not advice(part) else values_of(part)


def mask_value(node: Node) -> np.ndarray:
    """The value of a boolean mask, on which the shape of the result depends."""
    try:
        return concrete(node, "array")
    except TracedValueError:
        message = (
            "The shape of x[mask] depends on the values in the mask, which differ from call to call of a compiled "
            "function. Use np.where(mask, x, otherwise), or x[mask] = value, which keep their shape."
        )
        raise TracedValueError(message) from None


def _refuse(dtype: np.dtype[Any]) -> None:
    message = f"Arrays that are used as indices must hold integers or booleans, not {dtype}."
    raise RangeError(message)


def _axes_taken(part: Any) -> int:
    if part is None or part is Ellipsis or isinstance(part, bool | np.bool_):
        return 0
    if isinstance(part, np.ndarray) and part.dtype == np.bool_:
        return part.ndim
    return 1


def _mask_positions(mask: np.ndarray, shape: Shape, axis: int) -> list[Entry]:
    expected = shape[axis : axis + mask.ndim]
    # As in NumPy, an axis of extent 0 fits any: nothing is chosen.
    if mask.ndim != len(expected) or any(m not in (0, n) for m, n in zip(mask.shape, expected, strict=True)):
        message = (
            f"A boolean index of shape {mask.shape} does not match the indexed axes, whose extents are {expected}."
        )
        raise RangeError(message)
    return [positions.astype(np.int64, copy=False) for positions in np.nonzero(mask)]


def _entry(part: Any, extent: int, axis: int) -> Entry:
    if part is None or part is Ellipsis:
        return part
    if isinstance(part, bool | np.bool_):
        return Truth(bool(part))
    if isinstance(part, np.ndarray) and part.ndim == 0 and part.dtype == np.bool_:
        return Truth(bool(part))
    if isinstance(part, slice):
        try:
            named = range(*part.indices(extent))
        except TracedValueError:
            return moving_slice(part, extent, axis)
        # The step of no element, or of one, says nothing.
        return named if len(named) > 1 else range(named[0], named[0] + 1) if named else range(0)
    if isinstance(part, Node):
        return checked_node(part, extent, axis)
    if isinstance(part, np.ndarray):
        if part.dtype.kind not in "iu":
            _refuse(part.dtype)
        return int(checked_array(part, extent, axis)) if part.ndim == 0 else checked_array(part, extent, axis)
    try:
        position = operator.index(part)
    except TypeError:
        message = (
            "Only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are "
            f"valid indices, but got {type(part).__name__}."
        )
        raise RangeError(message) from None
    return checked_position(position, extent, axis)


# ----- Range checks -----


def checked_position(position: int, extent: int, axis: int) -> int:
    """One position counted from the front."""
    if not -extent <= position < extent:
        raise RangeError(_out_of_range(position, extent, axis))
    return position + extent if position < 0 else position


def _out_of_range(position: int, extent: int, axis: int) -> str:
    return f"Index {position} is out of range for axis {axis} with size {extent}."


def checked_array(positions: np.ndarray, extent: int, axis: int) -> np.ndarray:
    """Positions counted from the front, as int64."""
    if positions.size:
        low, high = int(positions.min()), int(positions.max())
        if low < -extent or high >= extent:
            raise RangeError(_out_of_range(low if low < -extent else high, extent, axis))
        if low < 0:
            positions = np.where(positions < 0, positions + extent, positions)
    return positions.astype(np.int64)


def checked_node(positions: Node, extent: int, axis: int) -> Node:
    """Positions that are not known yet, counted from the front; the check is part of the program if need be."""
    known = bounds(positions)
    positions = cast(positions, INT64)
    if known is not None and known[0] >= 0 and known[1] < extent:
        return positions
    if positions.size:
        inside = elementwise(
            "logical_and", elementwise("greater_equal", positions, -extent), elementwise("less", positions, extent)
        )
        require(inside, f"An index is out of range for axis {axis} with size {extent}.")
    if known is None or known[0] < 0:
        positions = elementwise("select", elementwise("less", positions, 0), positions + extent, positions)
    trace = current_trace()
    if positions.traced and trace is not None and trace.guards is not None and extent:
        # The compiled program finds out that the check fails after it has read or written there.
        return elementwise("maximum", elementwise("minimum", positions, extent - 1), 0)
    return positions


def bounds(node: Node, depth: int = 16) -> tuple[int, int] | None:
    """The least and greatest value that integers can have, where the graph tells; None where it does not."""
    name = node.name
    if name == "literal":
        return int(literal_value(node)), int(literal_value(node))
    if name in ("iota", "argsort"):
        return 0, max(node.shape[-1] - 1, 0)
    if node.value is not None and node.size and not node.traced and node.device is None:
        return int(node.value.min()), int(node.value.max())
    if depth == 0:
        return None
    if name in ("reshape", "transpose", "broadcast", "slice", "gather", "min", "max", "alias") and node.size:
        return bounds(node.inputs[0], depth - 1) if node.inputs[0].size else None
    if name == "cast" and node.inputs[0].dtype.kind in "iub":
        return (0, 1) if node.inputs[0].dtype.kind == "b" else bounds(node.inputs[0], depth - 1)
    if name in ("select", "write", "concatenate"):
        values = node.inputs[1:] if name == "select" else node.inputs[:2] if name == "write" else node.inputs
        sides = [bounds(source, depth - 1) for source in values]
        known = [side for side in sides if side is not None]
        if len(known) == len(sides):
            return min(low for low, _ in known), max(high for _, high in known)
    return None


# ----- Advanced keys -----


def is_advanced(entry: Entry) -> bool:
    """Whether an entry makes the key an advanced one."""
    return isinstance(entry, np.ndarray | Node | Truth)


def has_positions(entries: Sequence[Entry]) -> bool:
    """Whether the elements that a key names are found by their positions: it has arrays, or slices that move."""
    return any(is_advanced(entry) or isinstance(entry, MovingSlice) for entry in entries)


def broadcast_positions(entries: Sequence[Entry]) -> tuple[list[np.ndarray | Node], Shape]:
    """The integer and array entries, 0-d booleans as zeros, and the shape to which they broadcast."""
    arrays: list[np.ndarray | Node] = []
    for entry in entries:
        if isinstance(entry, int):
            arrays.append(np.array(entry, np.int64))
        elif isinstance(entry, Truth):
            arrays.append(np.zeros(int(entry.value), np.int64))
        elif isinstance(entry, np.ndarray | Node):
            arrays.append(entry)
    try:
        return arrays, np.broadcast_shapes(*[array.shape for array in arrays])
    except ValueError:
        shapes = " and ".join(str(array.shape) for array in arrays)
        message = f"The index arrays have shapes {shapes}, which do not broadcast together."
        raise ShapeIndexError(message) from None


class ShapeIndexError(ShapeError, IndexError):
    """Index arrays that do not broadcast: NumPy raises IndexError here."""


def merged(shape: Shape, entries: Sequence[Entry]) -> tuple[Shape, list[Entry]]:
    """Neighbouring axes that are taken whole as one axis, so that positions need less arithmetic."""
    extents: list[int] = []
    result: list[Entry] = []
    axis = 0
    joinable = False
    for entry in entries:
        if entry is None or entry is Ellipsis or isinstance(entry, Truth):
            result.append(entry)
            joinable = False
            continue
        extent = shape[axis]
        axis += 1
        whole = entry == range(extent) if isinstance(entry, range) else False
        if whole and joinable:
            extents[-1] *= extent
            result[-1] = range(extents[-1])
        else:
            extents.append(extent)
            result.append(entry)
        joinable = whole
    return tuple(extents), result
