"""Tensor: the array that users hold. It is a lazy value: one graph node.

In: a node. Out: its Tensor, with the facts that the node knows without being computed. All else that a Tensor has, its
operators, methods and protocols, is made of functions which are made of Tensors themselves: `nbgrad.tensors`, which
stands above these functions, gives it to the class by `part_of_tensor`. Used by everything from here upwards.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dtype import dtype_of
from ..graph.ir import HOST, Node
from ..graph.primitives import PRIMITIVES
from ..graph.trace import current_trace

_CONSTANT = PRIMITIVES["constant"]


class Tensor:
    """An array that records the operations on it.

    Parameters
    ----------
    input_data : Tensor, ndarray, number, or nested lists of them
        Python floats become float32 and Python integers int64; NumPy arrays and scalars keep their dtype. The data is
        copied.
    dtype : dtype, optional
        Anything that `np.dtype` accepts.
    shape, init : shape, and Initializer, number or name of an initializer
        MindSpore's way to make a Tensor of initial values without `input_data`.
    device : str or Device, optional
        "cpu", "cuda", or "cuda:1" and so on; by default where the data is.

    Examples
    --------
    >>> x = Tensor([1.5, -2.0])
    >>> x * 2
    Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00, -4.00000000e+00])
    """

    __slots__ = ("__weakref__", "_base", "_memory", "_node", "_views")
    _node: Node
    _base: tuple[Tensor, Any]
    """The Tensor that this one is a view of, and the key; only set for views."""
    _memory: Any
    """Its gradient and hooks; only set if there were any."""
    _views: dict[int, Any]
    """Weak references to its views; only set if there were any."""
    _operates_in_place = False
    """Whether `x += y` writes to it, whatever its value was made of."""

    @staticmethod
    def _of(node: Node) -> Tensor:
        """The Tensor of a node."""
        tensor = object.__new__(Tensor)
        tensor._node = node
        return tensor

    @staticmethod
    def _holding(value: Any) -> Tensor:
        """The Tensor of a computed result, an ndarray or a `DeviceArray`."""
        node = Node(_CONSTANT, (), (), value.shape, value.dtype, value)
        node.tensor = True
        if value.__class__ is not np.ndarray and not isinstance(value, np.generic | np.ndarray):
            node.place = value.device
        elif value.size > 1:
            node.place = HOST
        tensor = object.__new__(Tensor)
        tensor._node = node
        return tensor

    # ----- What it is -----

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the axes."""
        return self._node.shape

    @shape.setter
    def shape(self, value: Any) -> None:
        self._reshape_in_place(value)  # pyright: ignore[reportAttributeAccessIssue] - tensors/mutation.py

    @property
    def dtype(self) -> Any:
        """The type of the elements, which equals NumPy's and prints as MindSpore's."""
        return dtype_of(self._node.dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._node.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._node.size

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self._node.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.itemsize

    __hash__ = object.__hash__

    def __copy__(self) -> Tensor:
        made = Tensor._of(self._node)
        trace = current_trace()
        if trace is not None and made._node.value is not None:
            trace.note_made(made, made._node)
        return made


node_slot = Tensor.__dict__["_node"].__get__
"""The node of a Tensor, without looking at data that it shares."""
_OF_EVERY_CLASS = frozenset([*vars(type("Empty", (Tensor,), {"__slots__": ()})), "__hash__", "__annotations__"])


def part_of_tensor(part: type[Tensor]) -> type[Tensor]:
    """Give Tensor the members of a class that stands on functions of Tensors."""
    for name, member in vars(part).items():
        if name not in _OF_EVERY_CLASS:
            setattr(Tensor, name, member)
            if hasattr(member, "__qualname__"):
                member.__qualname__ = f"Tensor.{name}"
    return part
