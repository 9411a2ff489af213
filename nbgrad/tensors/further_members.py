"""Members of MindSpore's Tensor: dtypes under short names, facts about memory, positions of extrema, bytes.

In: a Tensor. Out: Tensors, Python values. Called by users.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..graph.shapes import broadcasts
from ..process.modes import within
from ..record.shared_memory import is_in_order
from ..record.tensor import Tensor, part_of_tensor
from ..remembered.leaves import remembers
from .own_data import Data


@part_of_tensor
class FurtherMembers(Tensor):
    """The members that neither ndarray nor the functions of `nbgrad.ops` have."""

    __slots__ = ()

    # ----- The Tensor itself -----

    @property
    def data(self) -> Tensor:
        """The Tensor itself; of one that remembers how it was made, its values alone.

        Writes to it are writes to this Tensor, and `x.data = y` gives it other values. Both are allowed on a
        differentiable leaf, which stays one.
        """
        return Data.of(self) if remembers(self._node) else self

    @data.setter
    def data(self, value: Any) -> None:
        with within(remembers=False):
            self.assign_value(value)

    def value(self) -> Tensor:
        """The Tensor itself; of a Parameter, its value."""
        return self

    @property
    def has_init(self) -> bool:
        """Whether the value is still to be made, which it never is."""
        return False

    def is_init(self) -> bool:
        """Whether the value is still to be made, which it never is."""
        return False

    def set_init_flag(self, flag: bool = False) -> None:
        """Nothing: values are made at once."""
        del flag

    def move_to(self, to: str, blocking: bool = True) -> Tensor:
        """The Tensor on a device: "CPU".

        Raises
        ------
        ArgumentError
            For other devices; `to` knows them.
        """
        del blocking
        if to != "CPU":
            message = f"move_to knows the device 'CPU' only, but got {to!r}. Use Tensor.to for a GPU."
            raise ArgumentError(message)
        return self

    def flush_from_cache(self) -> None:
        """Nothing: values are in no cache."""

    def set_dtype(self, dtype: Any) -> Any:
        """Take the elements in another dtype, in place of them; gives the dtype."""
        self._replace(self.astype(dtype)._node)
        return self.dtype

    def assign_value(self, data: Any = None, slice_shape: bool = False, *, value: Any = None) -> Any:
        """Take the value, shape and dtype of another Tensor; gives the Tensor itself. `slice_shape` has no effect."""
        del slice_shape
        data = value if data is None else data
        self._replace(data._node if isinstance(data, Tensor) else Tensor(data)._node)
        return self

    def unflatten(self, dim: int, sizes: Any) -> Any:
        """An axis as several; one of the sizes may be -1."""
        at = dim % self.ndim
        this: Any = self
        return this.reshape((*self.shape[:at], *sizes, *self.shape[at + 1 :]))

    def new_tensor(self, data: Any, dtype: Any = None, requires_grad: bool = False) -> Any:
        """A Tensor of data in this one's dtype, unless another one is given."""
        found: Any = Tensor(np.asarray(data))
        found = found.astype(self.dtype if dtype is None else dtype)
        return found.requires_grad_() if requires_grad else found

    def element_size(self) -> int:
        """The bytes of one element."""
        return self.itemsize

    # ----- Dtypes -----

    def byte(self) -> Tensor:
        """The elements as uint8."""
        return self.astype(np.uint8)

    def short(self) -> Tensor:
        """The elements as int16."""
        return self.astype(np.int16)

    def bfloat16(self) -> Tensor:
        """Refuse: nbgrad has no bfloat16.

        Raises
        ------
        DtypeError
            Always.
        """
        message = "nbgrad computes in float16, float32 and float64, not in bfloat16. Use half() or float()."
        raise DtypeError(message)

    def type(self, dtype: Any = None) -> Any:
        """The dtype; with one given, the elements in it."""
        return self.dtype if dtype is None else self.astype(dtype)

    def type_as(self, other: Tensor) -> Tensor:
        """The elements in the dtype of another Tensor."""
        return self.astype(other.dtype)

    def is_signed(self) -> bool:
        """Whether the elements may be negative."""
        return self.dtype.kind in "ifc"

    # ----- Memory -----

    def stride(self, dim: int | None = None) -> Any:
        """The elements from one element to the next along each axis, or along one axis."""
        steps = [step // self.itemsize for step in self.strides]
        return steps if dim is None else steps[dim]

    def storage_offset(self) -> int:
        """The elements before the first one in the memory of the array that this one is a view of: 0, if of none."""
        array = self.asnumpy()
        base = array
        while isinstance(base.base, np.ndarray):
            base = base.base
        first, start = array.__array_interface__["data"][0], base.__array_interface__["data"][0]
        return (first - start) // self.itemsize

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self.asnumpy().__array_interface__["data"][0]

    def is_pinned(self) -> bool:
        """Whether the memory is page-locked, which nbgrad's is not."""
        return False

    def is_shared(self) -> bool:
        """Whether processes share the memory, which nbgrad's do not."""
        return False

    def get_bytes(self) -> bytes:
        """The bytes of the elements in C order."""
        return self.asnumpy().tobytes()

    @staticmethod
    def convert_bytes_to_tensor(bytes_str: bytes, dims: Sequence[int], type: Any) -> Tensor:
        """A Tensor from the bytes of its elements.

        Raises
        ------
        DtypeError
            If they are no bytes.
        """
        if not isinstance(bytes_str, bytes | bytearray):
            message = f"convert_bytes_to_tensor takes bytes, but got {bytes_str!r:.40}."
            raise DtypeError(message)
        return Tensor(np.frombuffer(bytes_str, np.dtype(getattr(type, "name", type))).reshape(tuple(dims)).copy())

    # ----- Extrema and positions -----

    def argmax_with_value(self, axis: int | None = 0, keep_dims: bool = False) -> tuple[Tensor, Tensor]:
        """The greatest elements along an axis, and their positions."""
        return self._extremum(self.argmax(axis), axis, keep_dims)

    def argmin_with_value(self, axis: int | None = 0, keep_dims: bool = False) -> tuple[Tensor, Tensor]:
        """The least elements along an axis, and their positions."""
        return self._extremum(self.argmin(axis), axis, keep_dims)

    def _extremum(self, place: Any, axis: int | None, keep_dims: bool) -> tuple[Tensor, Tensor]:
        if axis is None:
            return self.ravel()[place], Tensor(0)
        at: Any = np.expand_dims(place, axis)
        value: Any = np.take_along_axis(self, at, axis)  # pyright: ignore[reportCallIssue, reportArgumentType]
        return (value, at) if keep_dims else (value.squeeze(axis), place)

    def itemset(self, *args: Any) -> Tensor:
        """The array with one number written at a position: `itemset((0, 1), 4)`, `itemset(3, 4)` for a flat one, or
        `itemset(4)` for one element.

        Raises
        ------
        ArgumentError
            For other numbers of arguments.
        """
        if len(args) not in (1, 2) or (len(args) == 1 and self.size != 1):
            message = "itemset takes a position and a number, or a number alone for an array of one element."
            raise ArgumentError(message)
        target: Any = self.copy()
        if len(args) == 2 and isinstance(args[0], tuple):
            target[args[0]] = args[1]
        else:
            target.flat[args[0] if len(args) == 2 else 0] = args[-1]
        return target

    def fill_diagonal(self, fill_value: Any, wrap: bool = False) -> Tensor:
        """The array with a value on its main diagonal; with `wrap` again after each square of a tall matrix."""
        target: Any = self.copy()
        np.fill_diagonal(target, fill_value, wrap)
        return target

    def index_put(self, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Tensor:
        """The array with values written, or added, at positions given by one array for each axis."""
        target: Any = self.copy()
        key = tuple(indices)
        if accumulate:
            np.add.at(target, key, values)
        else:
            target[key] = values
        return target

    def masked_scatter(self, mask: Any, source: Any) -> Tensor:
        """The array with the first elements of another one where a mask, whose values must be known, is true."""
        target: Any = self.copy()
        chosen: Any = np.broadcast_to(np.asarray(mask), self.shape)
        wanted: Any = source if isinstance(source, Tensor) else Tensor(source)
        target[chosen] = wanted.ravel()[: int(chosen.sum())]
        return target

    # ----- Choices -----

    def where(self, condition: Any, y: Any) -> Tensor:
        """The elements where a condition is true, and those of `y` elsewhere."""
        return np.where(condition, self, y)  # pyright: ignore[reportReturnType, reportCallIssue, reportArgumentType]

    def select(self, condition: Any, y: Any) -> Tensor:
        """`where`; given two integers, the part at a position of an axis."""
        kinds = int | np.integer
        if isinstance(condition, kinds) and isinstance(y, kinds) and not isinstance(condition, bool):
            return self.take(y, condition)
        return self.where(condition, y)

    # ----- Shapes -----

    def dim(self) -> int:
        """The number of axes."""
        return self.ndim

    def ndimension(self) -> int:
        """The number of axes."""
        return self.ndim

    def numel(self) -> int:
        """The number of elements."""
        return self.size

    nelement = numel

    def t(self) -> Tensor:
        """A matrix turned; an array of at most one axis itself.

        Raises
        ------
        ShapeError
            For more than two axes.
        """
        if self.ndim > 2:
            message = f"t() turns arrays of at most two axes, but the shape is {self.shape}. Use swapaxes."
            raise ShapeError(message)
        return self.T

    @property
    def H(self) -> Tensor:  # noqa: N802
        """A matrix turned and conjugated."""
        return np.conj(self.t())  # pyright: ignore[reportReturnType, reportCallIssue, reportArgumentType]

    @property
    def mH(self) -> Tensor:  # noqa: N802
        """The last two axes swapped, and complex numbers conjugated."""
        return np.conj(self.mT)  # pyright: ignore[reportReturnType, reportCallIssue, reportArgumentType, reportAttributeAccessIssue]

    def reshape_as(self, other: Tensor) -> Tensor:
        """The elements in the shape of another array."""
        return self.reshape(other.shape)

    def sum_to_size(self, *size: Any) -> Tensor:
        """Sums over the axes that broadcasting from a shape would have repeated.

        Raises
        ------
        ShapeError
            If the shape does not broadcast to this one.
        """
        wanted = tuple(size[0]) if len(size) == 1 and not isinstance(size[0], int) else size
        if not broadcasts(wanted, self.shape):
            message = f"An array of shape {self.shape} cannot be summed to {wanted}, which does not broadcast to it."
            raise ShapeError(message)
        more = self.ndim - len(wanted)
        repeated = [k + more for k, n in enumerate(wanted) if n == 1 != self.shape[k + more]]
        return self.sum(axis=(*range(more), *repeated), keepdims=True).reshape(wanted)

    def new_zeros(self, size: Any, dtype: Any = None) -> Tensor:
        """Zeros of a shape, in the dtype of this array by default."""
        return Tensor(np.zeros(size, self.dtype if dtype is None else dtype))

    def new_ones(self, size: Any, dtype: Any = None) -> Tensor:
        """Ones of a shape, in the dtype of this array by default."""
        return Tensor(np.ones(size, self.dtype if dtype is None else dtype))

    def new_empty(self, size: Any, dtype: Any = None, device: Any = None) -> Tensor:
        """Zeros of a shape, in the dtype of this array by default; `device` has no effect."""
        del device
        return Tensor(np.zeros(size, self.dtype if dtype is None else dtype))

    def new_full(self, size: Any, fill_value: Any, *, dtype: Any = None) -> Tensor:
        """One number in a shape, in the dtype of this array by default."""
        return Tensor(np.full(size, fill_value, self.dtype if dtype is None else dtype))

    @property
    def is_meta(self) -> bool:
        """Whether the array has no memory, which no Tensor is without."""
        return False

    def set_const_arg(self, const_arg: bool = True) -> Tensor:
        """The Tensor itself; arguments are told apart by `jit`."""
        del const_arg
        return self

    def is_contiguous(self) -> bool:
        """Whether the elements lie in C order, as NumPy's array would."""
        return is_in_order(self)
