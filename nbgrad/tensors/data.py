"""From users' data to Tensors: `Tensor(data)`, `nb.tensor`, `Tensor.from_numpy`, pickles.

In: numbers, nested lists, ndarrays, Tensors, initializers. Out: Tensors; Python floats become float32, as in MindSpore.
Called by users.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DtypeError, ShapeError
from ..graph.builders import users_leaf
from ..graph.ir import Node, constant, make
from ..graph.trace import current_trace
from ..record import shared_memory
from ..record.as_node import as_node, lists_hold
from ..record.axes_and_dtypes import real_dtype
from ..record.numbers import supported
from ..record.placement import moved
from ..record.promotion import promote
from ..record.tensor import Tensor, part_of_tensor
from ..remembered.leaves import become_leaf, is_leaf
from .initial_values import initializer

FLOAT32 = np.dtype(np.float32)


@part_of_tensor
class Construction(Tensor):
    """The methods that make Tensors of data, and pickle them."""

    __slots__ = ()

    def __init__(
        self, input_data: Any = None, dtype: Any = None, shape: Any = None, init: Any = None, *, device: Any = None
    ) -> None:
        if input_data is None:
            input_data = _initial(dtype, shape, init)
        node = _node_of_data(input_data, dtype is not None)
        if dtype is not None:
            node = promote([node], real_dtype(dtype))[0]
        if not node.tensor:
            if node.name == "constant" and not isinstance(input_data, Tensor):
                node = users_leaf(_own(node))
            else:
                node = make("alias", (node,))
                node.tensor = True
        self._node = node if device is None else moved(node, device)

    @staticmethod
    def from_numpy(array: np.ndarray) -> Tensor:
        """A Tensor that shares the data of an ndarray."""
        if not isinstance(array, np.ndarray):
            message = f"from_numpy takes an ndarray, but got {type(array).__name__}."
            raise DtypeError(message)
        _node_of_data(array[:0] if array.ndim else array)  # refuses what a Tensor cannot hold
        return shared_memory.from_numpy(array)

    def __reduce__(self) -> Any:
        where = None if self._node.device is None else repr(self._node.device)
        remembers = is_leaf(self._node)
        given = (self.asnumpy(), where, True) if remembers else (self.asnumpy(), where) if where else (self.asnumpy(),)
        return _from_array, given


def tensor(input_data: Any, dtype: Any = None, *, device: Any = None, requires_grad: bool = False) -> Tensor:
    """A Tensor of data, as `Tensor(input_data, dtype, device=device)`; a differentiable leaf if it `requires_grad`.

    Raises
    ------
    AutogradError
        If integers or booleans are to be differentiable.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.tensor([1, 2], nb.float32))
    [1. 2.]
    """
    made = Tensor(input_data, dtype, device=device)
    if requires_grad:
        become_leaf(made)
    return made


from_numpy = Tensor.from_numpy


def frombuffer(buffer: Any, dtype: Any, count: int = -1, offset: int = 0) -> Tensor:
    """A 1-d Tensor that shares the memory of an object with Python's buffer interface.

    Parameters
    ----------
    buffer : bytes-like
    dtype : dtype
    count : int
        The number of elements; -1 for all.
    offset : int
        In bytes.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.frombuffer(bytearray([1, 2, 3]), nb.uint8, offset=1))
    [2 3]
    """
    return from_numpy(np.frombuffer(buffer, np.dtype(dtype), count, offset))


def _from_array(value: np.ndarray, device: str | None = None, requires_grad: bool = False) -> Tensor:
    """The Tensor that pickle makes of an array."""
    return tensor(value, device=device, requires_grad=requires_grad)


def _initial(dtype: Any, shape: Any, init: Any) -> Tensor:
    """The data of a Tensor that is given by an initializer."""
    if init is None or shape is None:
        message = "A Tensor needs input_data: a Tensor, ndarray, number or list (or shape, dtype and init)."
        raise DtypeError(message)
    return initializer(init, shape, np.float32 if dtype is None else dtype)


def _own(node: Node) -> Node:
    """A constant that nothing else uses: in a recording, an array that was met before is the same one (`as_node`)."""
    if current_trace() is None or not isinstance(node.value, np.ndarray):
        return node
    own = constant(node.value.copy(), node.weak)
    own.layout = node.layout
    return own


def _node_of_data(data: Any, exact: bool = False) -> Node:
    """The node of an argument of `Tensor`, with MindSpore's dtypes for Python numbers, or with NumPy's (`exact`)."""
    if isinstance(data, Tensor):
        return data._node
    if not isinstance(data, bool | int | float | complex | list | tuple) or isinstance(data, np.generic):
        return as_node(data)
    if isinstance(data, list | tuple) and lists_hold(data, Tensor):
        return as_node(data)
    try:
        array = np.array(data)
    except ValueError:
        message = "Nested lists must have rows of equal length to become a Tensor."
        raise ShapeError(message) from None
    if not supported(array.dtype):
        message = f"A Tensor holds booleans, integers, floats or complex numbers, not data of dtype {array.dtype}."
        raise DtypeError(message)
    if not exact and array.dtype.char in "dD" and not lists_hold(data, (np.ndarray, np.generic)):
        array = array.astype(FLOAT32 if array.dtype.kind == "f" else np.complex64)
    return constant(array)
