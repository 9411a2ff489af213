"""Tensor's operators, brackets, and NumPy's protocols: all that Python and NumPy call by themselves.

In: Tensors and the values beside them. Out: Tensors. Called by Python for `x + y`, `x[key]`, `x[key] = y`, and by NumPy
for its functions: every operation of a recorded function passes here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np

from ..errors import DtypeError
from ..functions.elementwise.ufunc_protocol import array_ufunc
from ..functions.elementwise.ufuncs import (
    call,
    operate,
    operate_in_general,
    operate_in_place,
    quick,
    quick_binary,
    quick_unary,
)
from ..functions.table import IMPLEMENTATIONS, array_function
from ..graph.ir import due
from ..process.private_interfaces import NOT_GIVEN
from ..record import shared_memory
from ..record.as_node import as_node, wrap
from ..record.followed import expected, look
from ..record.foreign_arrays import computes_itself
from ..record.index_keys import settled
from ..record.indexing import element, getitem, setitem
from ..record.masked_elements import MaskedElements, made, refuse, split, written
from ..record.tensor import Tensor, part_of_tensor


def binary(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """The operator `self ufunc other`."""

    def call(self: Any, other: Any) -> Any:
        found = quick_binary(ufunc, self, other)
        return operate_in_general(ufunc, self, other) if found is None else found

    def operator(self: Any, other: Any) -> Any:
        if due:
            return expected.call(call, self, other)
        found = quick_binary(ufunc, self, other)
        return operate_in_general(ufunc, self, other) if found is None else found

    return operator


def reflected(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """The operator `other ufunc self`."""

    def call(self: Any, other: Any) -> Any:
        found = quick_binary(ufunc, other, self)
        return operate_in_general(ufunc, other, self) if found is None else found

    def operator(self: Any, other: Any) -> Any:
        if due:
            return expected.call(call, self, other)
        found = quick_binary(ufunc, other, self)
        return operate_in_general(ufunc, other, self) if found is None else found

    return operator


def updating(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """The operator that changes `self`, like `+=`."""
    return lambda self, other: operate_in_place(ufunc, self, other)


def unary(ufunc: np.ufunc) -> Callable[[Any], Any]:
    """The operator `ufunc self`."""

    def apply(self: Any, _: None = None) -> Any:
        found = quick_unary(ufunc, self)
        return call(ufunc, self) if found is None else found

    def operator(self: Any) -> Any:
        return expected.call(apply, self, None) if due else apply(self)

    return operator


_power, _conjugate = binary(np.power), unary(np.conjugate)


def _part(self: Any, key: Any) -> Tensor:
    """`self[key]`."""
    if key.__class__ is int and self.__class__ is Tensor:
        node = self._node
        if len(node.shape) == 1 and not node.tensor and node.dtype.kind != "c":
            return wrap(element(node, key))
    if shared_memory.is_basic(key) or shared_memory.gives_view(key):
        return shared_memory.view(self, key)
    return wrap(getitem(self._node, key))


def _beside_mask(self: Any, found: tuple[Tensor, tuple[Any, ...]]) -> Any:
    """The part of a Tensor in which a mask, the first part of a key, chooses: a view by the rest of the key."""
    mask, rest = found
    return self[(*[slice(None)] * mask.ndim, *rest)] if rest else self


@cache
def _call_of(ufunc: np.ufunc) -> Callable[..., Any]:
    """The call of a ufunc by NumPy's protocol."""

    def protocol(*operands: Any) -> Any:
        inputs = operands[: ufunc.nin]
        found = quick(ufunc, *inputs)
        if found is not None:
            return found
        return NotImplemented if computes_itself(*inputs) else array_ufunc(ufunc, "__call__", inputs, {})

    return protocol


@cache
def _call_behind(ufunc: np.ufunc) -> Callable[..., Any]:
    """The call of a ufunc by NumPy's protocol whose first operand is no Tensor; it gets the second one first."""
    call = _call_of(ufunc)
    return lambda second, first: call(first, second)


@part_of_tensor
class Operators(Tensor):
    """The special methods that Python and NumPy call."""

    __slots__ = ()

    # ----- Operators -----

    __add__, __radd__, __iadd__ = binary(np.add), reflected(np.add), updating(np.add)
    __sub__, __rsub__, __isub__ = binary(np.subtract), reflected(np.subtract), updating(np.subtract)
    __mul__, __rmul__, __imul__ = binary(np.multiply), reflected(np.multiply), updating(np.multiply)
    __truediv__, __rtruediv__, __itruediv__ = binary(np.divide), reflected(np.divide), updating(np.divide)
    __floordiv__, __rfloordiv__ = binary(np.floor_divide), reflected(np.floor_divide)
    __ifloordiv__ = updating(np.floor_divide)
    __mod__, __rmod__, __imod__ = binary(np.remainder), reflected(np.remainder), updating(np.remainder)
    __divmod__, __rdivmod__ = binary(np.divmod), reflected(np.divmod)
    __rpow__, __ipow__ = reflected(np.power), updating(np.power)
    __matmul__, __rmatmul__, __imatmul__ = binary(np.matmul), reflected(np.matmul), updating(np.matmul)
    __and__, __rand__, __iand__ = binary(np.bitwise_and), reflected(np.bitwise_and), updating(np.bitwise_and)
    __or__, __ror__, __ior__ = binary(np.bitwise_or), reflected(np.bitwise_or), updating(np.bitwise_or)
    __xor__, __rxor__, __ixor__ = binary(np.bitwise_xor), reflected(np.bitwise_xor), updating(np.bitwise_xor)
    __lshift__, __rlshift__, __ilshift__ = binary(np.left_shift), reflected(np.left_shift), updating(np.left_shift)
    __rshift__, __rrshift__ = binary(np.right_shift), reflected(np.right_shift)
    __irshift__ = updating(np.right_shift)
    __lt__, __le__ = binary(np.less), binary(np.less_equal)
    __gt__, __ge__ = binary(np.greater), binary(np.greater_equal)
    __neg__, __pos__, __invert__, __abs__ = unary(np.negative), unary(np.positive), unary(np.invert), unary(np.abs)

    def __eq__(self, other: object) -> Any:
        return operate(np.equal, self, other)

    def __ne__(self, other: object) -> Any:
        return operate(np.not_equal, self, other)

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            message = "pow() of a Tensor takes no modulus."
            raise DtypeError(message)
        if exponent.__class__ is int and exponent == 2 and self._node.dtype == np.bool_:
            # NumPy's operator is a square then, of whole numbers of 8 bits.
            return np.square(self)
        return _power(self, exponent)

    def __round__(self, ndigits: int | None = None) -> Any:
        return int(self.round()) if ndigits is None else self.round(ndigits)

    def conj(self) -> Any:
        """The conjugate; real arrays of NumPy's rules are their own, as in NumPy."""
        node = self._node
        return self if node.dtype.kind != "c" and not node.tensor else _conjugate(self)

    conjugate = conj
    abs = unary(np.abs)

    # ----- NumPy's protocols -----

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if due:
            if method == "__call__" and not kwargs and ufunc.nin < 3:
                first, second = inputs if ufunc.nin == 2 else (inputs[0], None)
                if first.__class__ is Tensor:
                    return expected.call(_call_of(ufunc), first, second)
                if second.__class__ is Tensor:
                    return expected.call(_call_behind(ufunc), second, first)
            look()
        if method == "__call__" and not kwargs:
            count = len(inputs)
            found = None
            if count == 1:
                found = quick_unary(ufunc, inputs[0])
            elif count == 2:
                found = quick_binary(ufunc, inputs[0], inputs[1])
            if found is not None:
                return found
        if computes_itself(*inputs):
            return NotImplemented
        return array_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if (len(types) == 1 or (len(types) == 2 and np.ndarray in types)) and func in IMPLEMENTATIONS:
            for value in kwargs.values():
                if value is NOT_GIVEN:
                    break
            else:
                if due:
                    return expected.function(IMPLEMENTATIONS[func], args, kwargs)
                return IMPLEMENTATIONS[func](*args, **kwargs)
        if due:
            look()
        return array_function(func, types, args, kwargs)

    # ----- Python's protocols -----

    def __len__(self) -> int:
        if not self.shape:
            message = "A 0-d Tensor has no len()."
            raise DtypeError(message)
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            message = "A 0-d Tensor cannot be iterated over."
            raise DtypeError(message)
        return (self[position] for position in range(self.shape[0]))

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __getitem__(self, key: Any) -> Tensor:
        if not shared_memory.is_basic(key):
            key = settled(key)
            found = split(key)
            if found is not None:
                return MaskedElements(_beside_mask(self, found), found[0])  # type: ignore[return-value]
        if due and self.__class__ is Tensor:
            return expected.call(_part, self, key)
        return _part(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        if made or (key.__class__ is tuple and not shared_memory.is_basic(key)):
            found = split(key)
            if found is not None and found[1]:
                _beside_mask(self, found)[found[0]] = value
                return
            if isinstance(value, MaskedElements):
                if found is None:
                    refuse("Elements of a mask were written elsewhere")
                self._replace(written(self._node, found[0], value))
                return
            key = key if found is None else found[0]
        if not shared_memory.is_own_view(self, key, value):
            self._replace(setitem(self._node, key, as_node(value)))
