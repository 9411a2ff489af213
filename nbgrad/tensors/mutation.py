"""Writing to a Tensor: `x[...] = y` underneath, and ndarray's methods that change an array.

In: a Tensor and new values. Out: nothing; the Tensor becomes another node, and all that shares its memory sees it.
`Flat` is the class of `x.flat`, `Flags` that of `x.flags`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..functions.arrays import shaping
from ..functions.table import implementation
from ..graph import builders
from ..graph.builders import placed
from ..graph.ir import HOST, Node
from ..graph.trace import CELLS, current_trace
from ..process.modes import REMEMBERS, TRACED, attentive, leaves_made
from ..record import shared_memory
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import repeated, shape_of
from ..record.indexing import getitem, setitem
from ..record.pairs import ValuesAndIndices
from ..record.tensor import Tensor, node_slot, part_of_tensor
from ..remembered.leaves import check_write, written
from ..runtime.memory_order import kept


@part_of_tensor
class Mutation(Tensor):
    """The methods that change a Tensor."""

    __slots__ = ()

    def _replace(self, node: Node) -> None:
        """Write to the Tensor: it becomes another node of the same shape and dtype."""
        if leaves_made:
            check_write(self)
        self._take(wrap(node)._node)
        if hasattr(self, "_base") or hasattr(self, "_views"):
            shared_memory.written(self)

    def _take(self, node: Node) -> None:
        """Become another node, and tell the recording but no view."""
        before = node_slot(self)
        if before.owner is not None:
            check_write(self)
        if before.traced & REMEMBERS or (attentive and before.traced & TRACED):
            node = written(self, node)
        place = before.place
        if place is not None and node.place is not place and (node.place is not None or place is not HOST):
            node = placed(node, place)  # what is written goes where the Tensor is
        moved = node.primitive.kind == "movement" and not hasattr(self, "_base")
        if moved or node.layout is not None or before.layout is not None:
            node = kept(node, before)
        trace = current_trace()
        if trace is not None:
            trace.note_write(self, self._node)
            if node.value is not None:
                trace.note_made(self, node)
        self._node = node
        if trace is None:
            CELLS.token = object()  # a Cell may hold this Tensor

    def fill(self, value: Any) -> None:
        """Write one number to every element."""
        self[...] = value

    def sort(self, axis: int = -1, **options: Any) -> Any:
        """Sort this Tensor, as `ndarray.sort` does; `np.sort(x)` leaves x alone. With MindSpore's `dim` or `descending`
        it stays, and the result has sorted elements and their positions."""
        if not {"dim", "descending"}.isdisjoint(options):
            return _ordered(self, options.pop("dim", axis), options.pop("descending", False))
        self._replace(implementation(np.sort)(self, axis, **options)._node)
        return None

    def partition(self, kth: Any, axis: int = -1, **options: Any) -> None:
        """Put the k-th smallest element in its place, smaller ones before it; `np.partition(x, k)` leaves x alone."""
        self._replace(implementation(np.partition)(self, kth, axis, **options)._node)

    def resize(self, *new_shape: Any, refcheck: bool = True) -> None:
        """Take another shape; elements beyond the end are dropped, new ones are zero."""
        node = self._node
        shape = shape_of(new_shape[0] if len(new_shape) == 1 else new_shape)
        if self._is_shared() and math.prod(shape) != node.size:
            message = "A Tensor that has views, or is one, cannot be resized. Use np.resize, which gives a new one."
            raise ArgumentError(message)
        flat, size = builders.reshape(node, (node.size,)), math.prod(shape)
        if size < node.size:
            flat = builders.slice_axes(flat, [(0, size, 1)])
        elif size > node.size:
            flat = builders.pad(flat, [(0, size - node.size)])
        self._take(builders.reshape(flat, shape))

    def _reshape_in_place(self, shape: Any) -> None:
        """Do `x.shape = shape`."""
        if self._is_shared():
            message = "The shape of a Tensor that has views, or is one, cannot be set. Use x.reshape(shape)."
            raise ArgumentError(message)
        self._take(shaping.reshape_node(self._node, shape))

    def _is_shared(self) -> bool:
        views = getattr(self, "_views", {}).values()
        return hasattr(self, "_base") or any(reference() is not None for reference in views)

    def setflags(self, write: Any = None, align: Any = None, uic: Any = None) -> None:
        """Take NumPy's flags, which have no effect: a Tensor can always be written to."""
        del write, align, uic

    @property
    def flags(self) -> Flags:
        """The order of the elements in memory, as far as it can be told."""
        return Flags(self)

    @property
    def flat(self) -> Flat:
        """The elements in C order, to be iterated over, indexed and written to."""
        return Flat(self)

    @flat.setter
    def flat(self, value: Any) -> None:
        Flat(self)[...] = value


def _ordered(x: Any, axis: int, descending: bool) -> tuple[Any, Any]:
    """Elements in order along an axis, equal ones in theirs, and their positions as int32."""
    array: Any = np
    turned = array.flip(x, axis) if descending else x
    places = array.argsort(turned, axis, stable=True)
    if descending:
        places = x.shape[axis] - 1 - array.flip(places, axis)
    return ValuesAndIndices(array.take_along_axis(x, places, axis), places.astype(np.int32))


class Flags:
    """The flags of a Tensor, `x.flags`: how NumPy's array would lie in memory, and that it can be written to."""

    __slots__ = ("_values",)

    def __init__(self, base: Tensor) -> None:
        c, f = (shared_memory.is_in_order(base, order) for order in "CF")
        names = {"c_contiguous": c, "f_contiguous": f, "owndata": not shared_memory.is_view(base)}
        names |= {"contiguous": c, "fortran": f, "fnc": f and not c, "forc": f or c}
        object.__setattr__(self, "_values", {**names, "writeable": True, "aligned": True})

    def __getattr__(self, name: str) -> bool:
        try:
            return self._values[name]
        except KeyError:
            message = f"The flags of a Tensor are {', '.join(self._values)}, not {name!r}."
            raise AttributeError(message) from None

    def __setattr__(self, name: str, value: Any) -> None:
        message = f"The flag {name} of a Tensor cannot be set."
        raise ArgumentError(message)

    def __getitem__(self, name: str) -> bool:
        return getattr(self, _LETTERS.get(name, name.lower()))


_LETTERS = {"C": "c_contiguous", "F": "f_contiguous", "O": "owndata", "W": "writeable", "A": "aligned"}
"""NumPy's short names of flags."""


class Flat:
    """The elements of a Tensor in C order.

    Parameters
    ----------
    base : Tensor

    Examples
    --------
    >>> import nbgrad.numpy as np
    >>> x = np.zeros((2, 3))
    >>> x.flat[1:5] = [1.0, 2.0]                 # values are repeated
    >>> x.tolist()
    [[0.0, 1.0, 2.0], [1.0, 2.0, 0.0]]
    """

    __slots__ = ("base",)

    def __init__(self, base: Tensor) -> None:
        self.base = base

    def _flat_node(self) -> Node:
        node = self.base._node
        return builders.reshape(node, (node.size,))

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self[...])

    def __getitem__(self, key: Any) -> Tensor:
        """The elements that a key of one axis names, as a copy."""
        return wrap(getitem(self._flat_node(), key))

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write values, repeated as needed, to the elements that a key of one axis names."""
        flat, new = self._flat_node(), as_node(value)
        count = getitem(flat, key).size
        if new.size == 0 and count:
            message = "There must be at least one value to write to the elements of x.flat."
            raise ShapeError(message)
        if count:
            target = getitem(flat, key).shape
            new = builders.reshape(repeated(new, count), target)
            written = setitem(flat, key, new)
            self.base._replace(builders.reshape(written, self.base.shape))

    def copy(self) -> Tensor:
        """All elements, along one axis."""
        return self[...]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self[...].__array__(dtype, copy)
