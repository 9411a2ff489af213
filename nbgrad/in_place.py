"""ndarray's methods that change an array: `sort`, `fill`, `partition`, `resize`, and what is written to `flat`.

In: a Tensor and the arguments of NumPy's method. Out: nothing; the Tensor becomes another node, and what shares its
memory sees it. `InPlace` is a base class of Tensor; `Flat` is what `x.flat` is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import ArgumentError, ShapeError

if TYPE_CHECKING:
    from .graph.ir import Node
    from .tensor import Tensor


@cache
def _numpy(name: str) -> Any:
    return import_module(f".numpy.{name}", __package__)


class InPlace:
    """The methods that write to a Tensor."""

    __slots__ = ()

    if TYPE_CHECKING:
        _node: Node

        def _replace(self, node: Node) -> None: ...

        def _take(self, node: Node) -> None: ...

        def __setitem__(self, key: Any, value: Any) -> None: ...

    def fill(self, value: Any) -> None:
        """Write one number to every element."""
        self[...] = value

    def sort(self, axis: int = -1, **options: Any) -> None:
        """Sort this Tensor, as `ndarray.sort` does; `np.sort(x)` leaves x alone."""
        self._replace(_numpy("numpy_table").find(np.sort)(self, axis, **options)._node)

    def partition(self, kth: Any, axis: int = -1, **options: Any) -> None:
        """Put the k-th smallest element in its place, smaller ones before it; `np.partition(x, k)` leaves x alone."""
        self._replace(_numpy("numpy_table").find(np.partition)(self, kth, axis, **options)._node)

    def resize(self, *new_shape: Any, refcheck: bool = True) -> None:
        """Take another shape; elements beyond the end are dropped, new ones are zero."""
        node = self._node
        shape = _numpy("operands").shape_of(new_shape[0] if len(new_shape) == 1 else new_shape)
        if self._is_shared() and math.prod(shape) != node.size:
            message = "A Tensor that has views, or is one, cannot be resized. Use np.resize, which gives a new one."
            raise ArgumentError(message)
        primitives = import_module(".graph.primitives", __package__)
        flat, size = primitives.reshape(node, (node.size,)), math.prod(shape)
        if size < node.size:
            flat = primitives.slice_axes(flat, [(0, size, 1)])
        elif size > node.size:
            flat = primitives.pad(flat, [(0, size - node.size)])
        self._take(primitives.reshape(flat, shape))

    def _reshape_in_place(self, shape: Any) -> None:
        """What `x.shape = shape` does."""
        if self._is_shared():
            message = "The shape of a Tensor that has views, or is one, cannot be set. Use x.reshape(shape)."
            raise ArgumentError(message)
        self._take(_numpy("shaping").reshape_node(self._node, shape))

    def _is_shared(self) -> bool:
        views = getattr(self, "_views", {}).values()
        return hasattr(self, "_base") or any(reference() is not None for reference in views)

    @property
    def flags(self) -> Flags:
        """How the elements lie in memory, as far as that can be told."""
        return Flags(self)  # type: ignore[arg-type]

    @property
    def flat(self) -> Flat:
        """The elements in C order, to be iterated over, indexed and written to."""
        return Flat(self)  # type: ignore[arg-type]

    @flat.setter
    def flat(self, value: Any) -> None:
        Flat(self)[...] = value  # type: ignore[arg-type]


class Flags:
    """What `x.flags` says of a Tensor: how NumPy's array would lie in memory, and that it can be written to."""

    __slots__ = ("_values",)

    def __init__(self, base: Tensor) -> None:
        aliasing = import_module(".aliasing", __package__)
        c, f = (aliasing.is_in_order(base, order) for order in "CF")
        names = {"c_contiguous": c, "f_contiguous": f, "owndata": not aliasing.is_view(base)}
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
        return import_module(".graph.primitives", __package__).reshape(node, (node.size,))

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self[...])

    def __getitem__(self, key: Any) -> Tensor:
        """The elements that a key of one axis names, as a copy."""
        return _numpy("lifting").wrap(_numpy("indexing").getitem(self._flat_node(), key))

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write values, repeated as needed, to the elements that a key of one axis names."""
        indexing = _numpy("indexing")
        flat, new = self._flat_node(), _numpy("lifting").as_node(value)
        count = indexing.getitem(flat, key).size
        if new.size == 0 and count:
            message = "There must be at least one value to write to the elements of x.flat."
            raise ShapeError(message)
        if count:
            primitives = import_module(".graph.primitives", __package__)
            target = indexing.getitem(flat, key).shape
            new = primitives.reshape(indexing._repeated(new, count), target)
            written = indexing.setitem(flat, key, new)
            self.base._replace(primitives.reshape(written, self.base.shape))

    def copy(self) -> Tensor:
        """All elements, along one axis."""
        return self[...]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self[...].__array__(dtype, copy)
