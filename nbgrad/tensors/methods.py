"""Tensor's methods: the functions of NumPy and of MindSpore that have the Tensor as their first argument.

In: a Tensor and the arguments of a function. Out: its result. Called by users.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..functions.arrays import shaping
from ..functions.elementwise import complex_parts
from ..functions.table import IMPLEMENTATIONS, METHODS, implementation
from ..graph.ir import due
from ..record import shared_memory
from ..record.followed import expected
from ..record.pairs import ValuesAndIndices
from ..record.tensor import Tensor, part_of_tensor

_SPELLINGS = {"dim": "axis", "keepdim": "keepdims", "keep_dims": "keepdims"}
"""MindSpore's and PyTorch's names of NumPy's parameters."""
_DTYPE_SECOND = frozenset([np.sum, np.mean, np.prod])
"""Reductions whose second parameter is a dtype; MindSpore's and PyTorch's is whether the axis stays."""
_CORRECTED = frozenset([np.std, np.var])
"""Reductions whose second parameter is a dtype; MindSpore's are `ddof` and whether the axis stays."""


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """The method that calls the table's function in place of one of NumPy's."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 2 and isinstance(args[1], bool) and function in _DTYPE_SECOND:
            args, kwargs = args[:1], {"keepdims": args[1], **kwargs}
        elif len(args) in (2, 3) and isinstance(args[1], int) and function in _CORRECTED:
            args, kwargs = args[:1], {**dict(zip(("ddof", "keepdims"), args[1:], strict=False)), **kwargs}
        if kwargs and function in _CORRECTED:
            for name in kwargs.keys() & {"correction", "unbiased"}:
                kwargs["ddof"] = int(kwargs.pop(name))
        if kwargs:
            kwargs = {_SPELLINGS.get(name, name): value for name, value in kwargs.items()}
        apply = IMPLEMENTATIONS.get(function) or implementation(function)
        return expected.function(apply, (self, *args), kwargs) if due else apply(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = function.__name__
    method.__doc__ = f"As `numpy.{function.__name__}` of this Tensor."
    return method


@part_of_tensor
class Methods(Tensor):
    """The functions of NumPy under ndarray's names."""

    __slots__ = ()

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes from one element to the next along each axis, as NumPy's array would have them."""
        return shared_memory.place_of(self).strides

    @property
    def T(self) -> Tensor:  # noqa: N802
        """The axes in reversed order."""
        return self.transpose()

    @property
    def mT(self) -> Tensor:  # noqa: N802
        """The last two axes swapped."""
        if self.ndim < 2:
            message = f"mT needs at least two axes, but this Tensor has shape {self.shape}."
            raise ShapeError(message)
        return self.swapaxes(-1, -2)

    @property
    def real(self) -> Tensor:
        """The real part; a Tensor that is not complex as it is."""
        return complex_parts.real(self)

    @real.setter
    def real(self, value: Any) -> None:
        complex_parts.set_part(self, value, 0)

    @property
    def imag(self) -> Tensor:
        """The imaginary part; zeros for a Tensor that is not complex."""
        return complex_parts.imag(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        complex_parts.set_part(self, value, 1)

    def reshape(self, *shape: Any, order: str = "C") -> Tensor:
        """The elements in another shape: `reshape(2, 3)` or `reshape((2, 3))`."""
        apply, new = implementation(np.reshape), shape[0] if len(shape) == 1 else shape
        return expected.function(apply, (self, new), {"order": order}) if due else apply(self, new, order=order)

    def transpose(self, *axes: Any) -> Tensor:
        """Axes permuted (reversed by default): `transpose(1, 0)` or `transpose((1, 0))`; two of more are swapped."""
        if len(axes) == 2 and self.ndim > 2 and all(isinstance(axis, int) for axis in axes):
            return self.swapaxes(*axes)
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        apply = implementation(np.transpose)
        return expected.function(apply, (self, order), {}) if due else apply(self, order)

    permute = transpose

    def flatten(self, order: Any = "C", end_dim: Any = None, *, start_dim: Any = None) -> Tensor:
        """All elements along one axis, as a copy; or those of the axes from one to another, MindSpore's
        `flatten(start_dim, end_dim)`."""
        first = start_dim if isinstance(order, str) else order
        if first is None and end_dim is None:
            return self.ravel(order).copy()
        low, high = [range(max(self.ndim, 1))[axis] for axis in (first or 0, -1 if end_dim is None else end_dim)]
        if low > high:
            message = f"flatten takes the axes from {first} to {end_dim}, but the second lies before the first."
            raise ArgumentError(message)
        length = math.prod(self.shape[low : high + 1])
        return self.reshape((*self.shape[:low], length, *self.shape[high + 1 :])).copy()

    def astype(self, dtype: Any, copy: bool = True, *, order: str = "K") -> Tensor:
        """The elements in another dtype; gradients flow between float dtypes."""
        return shaping.astype(self, dtype, copy=copy, order=order)

    def copy(self, order: str = "C") -> Tensor:
        """Another Tensor with the same value, in an order of memory; writing to one does not change the other."""
        return shaping.copy(self, order)

    def nonzero(self, *, as_tuple: bool = True) -> Any:
        """The positions of elements that are not 0, an array for each axis, as ndarray's; one row each if `as_tuple`
        is False, as `nbgrad.ops.nonzero` gives them."""
        apply = implementation(np.nonzero)
        places = expected.function(apply, (self,), {}) if due else apply(self)
        return places if as_tuple else implementation(np.stack)(places, 1)

    def compress(self, condition: Any, axis: int | None = None, out: Any = None) -> Tensor:
        """The slices along an axis (the elements, for None) where a 1-d condition is true."""
        return implementation(np.compress)(condition, self, axis, out)

    def float(self) -> Tensor:
        """The elements as float32."""
        return self.astype(np.float32)

    def half(self) -> Tensor:
        """The elements as float16."""
        return self.astype(np.float16)

    def double(self) -> Tensor:
        """The elements as float64."""
        return self.astype(np.float64)

    def int(self) -> Tensor:
        """The elements as int32."""
        return self.astype(np.int32)

    def long(self) -> Tensor:
        """The elements as int64."""
        return self.astype(np.int64)

    def bool(self) -> Tensor:
        """Whether each element is not zero."""
        return self.astype(np.bool_)

    def view(self, *shape: Any, **of: Any) -> Tensor:
        """`reshape`; without arguments, or with its own dtype, this Tensor's memory in another Tensor."""
        return self.reshape(*shape) if shaping.is_shape(self, shape, of) else self[...]

    def contiguous(self) -> Tensor:
        """The Tensor itself if its elements lie in C order, or else a copy in that order."""
        return self if shared_memory.is_in_order(self) else self.copy()

    def init_data(self, *_: Any, **__: Any) -> Tensor:
        """The Tensor itself: its data is there from the start."""
        return self


for _name in METHODS:
    if _name not in vars(Methods):
        setattr(Tensor, _name, _method(getattr(np, _name)))


def _extremum(name: str) -> Callable[..., Any]:
    """`max` or `min`: with MindSpore's `dim`, `keepdim` or `return_indices`, the positions too."""
    plain = _method(getattr(np, name))

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        by_place = len(args) == 2 and isinstance(args[1], bool)
        asked = by_place or not {"dim", "keepdim", "return_indices"}.isdisjoint(kwargs)
        axis = args[0] if args else kwargs.get("dim", kwargs.get("axis"))
        if not asked or axis is None or not kwargs.pop("return_indices", True):
            return plain(self, *args, **kwargs)
        names = ("keepdim", "keepdims", "keep_dims")
        keep = args[1] if len(args) == 2 else any(kwargs.get(one, False) for one in names)
        found: Any = self
        return ValuesAndIndices(*getattr(found, f"arg{name}_with_value")(axis, keep))

    method.__name__ = method.__qualname__ = name
    method.__doc__ = (
        f"As `numpy.{name}` of this Tensor; with MindSpore's `dim`, `keepdim` or `return_indices`, the positions too."
    )
    return method


setattr(Tensor, "max", _extremum("max"))  # noqa: B010 - pyright knows the attribute as it was
setattr(Tensor, "min", _extremum("min"))  # noqa: B010
