"""NumPy's classes as `nbgrad.numpy` has them: `ndarray`, `float64`, `integer`, `generic` and the others.

In: nothing. Out: classes that say of Tensors what NumPy's say of its own arrays and scalars (`isinstance(x,
np.ndarray)`, `isinstance(x[0], np.floating)`), that convert Tensors without cutting the gradient (`np.float64(x)`), and
that are NumPy's classes for everything else: as a dtype, for `np.issubdtype`, in comparisons. NumPy's indexing and
reductions give scalars; their counterparts here are 0-d Tensors. Looked up by the drop-in namespace (`__init__.py`).
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from ..functions.arrays.construction import array, asarray, empty
from ..record.as_node import holds_tensors
from ..record.axes_and_dtypes import array_node
from ..record.numbers import supported
from ..record.tensor import Tensor
from ..record.zero_dimensional import ZeroDimensional
from ..tensors import python_numbers


def is_scalar(value: Any) -> bool:
    """Whether a Tensor stands for a scalar of NumPy's: it is 0-d, and was not made as a 0-d array."""
    return (
        isinstance(value, Tensor)
        and not value.ndim
        and not (
            isinstance(value, ZeroDimensional) or value._node.tensor  # pyright: ignore[reportPrivateUsage]
        )
    )


def scalar_type(value: Tensor) -> type:
    """The type that a scalar Tensor would have in NumPy."""
    return np.dtype(value.dtype).type


class _StandIn(type):
    """A class that stands for one of NumPy's (or Python's), `_original`, and knows Tensors."""

    _original: type

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(getattr(other, "_original", other), cls._original)

    def __eq__(cls, other: object) -> Any:
        return True if other is cls or other is cls._original else NotImplemented  # dtypes know the original

    def __ne__(cls, other: object) -> bool:
        return not cls == other

    def __hash__(cls) -> int:
        return hash(cls._original)

    def __repr__(cls) -> str:
        return repr(cls._original)


class _ArrayType(_StandIn):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, np.ndarray) or (isinstance(value, Tensor) and not is_scalar(value))

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, Tensor) or super().__subclasscheck__(other)

    def __call__(cls, shape: Any, dtype: Any = float, *args: Any, **options: Any) -> Any:
        if args or options:
            return np.ndarray(shape, dtype, *args, **options)
        return empty(shape, dtype)

    def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any], **options: Any) -> Any:
        if any(isinstance(base, _ArrayType) for base in bases):  # a user's subclass is one of NumPy's class
            bases = tuple([np.ndarray if isinstance(base, _ArrayType) else base for base in bases])
            return type(name, bases, members, **options)
        return super().__new__(cls, name, bases, members)

    def __getattr__(cls, name: str) -> Any:
        return getattr(Tensor, name) if hasattr(Tensor, name) else getattr(np.ndarray, name)


class ndarray(metaclass=_ArrayType):  # noqa: N801 - NumPy's name
    """The class of arrays: Tensors and NumPy's own. `ndarray(shape)` is `empty(shape)`."""

    _original = np.ndarray


class _ScalarType(_StandIn):
    def __instancecheck__(cls, value: Any) -> bool:
        if isinstance(value, Tensor):
            return is_scalar(value) and issubclass(scalar_type(value), cls._original)
        return isinstance(value, cls._original)

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if args and holds_tensors(args[0]):
            # Of an array an array, of a scalar a scalar, and both keep their gradient.
            value = asarray(args[0]).astype(np.dtype(cls._original))
            return value if value.ndim else Tensor._of(array_node(value))
        return cls._original(*args, **options)


_ABSTRACT = "generic number integer signedinteger unsignedinteger inexact floating complexfloating".split()


def _held(original: Any) -> bool:
    """Whether Tensors can hold elements of a type."""
    return issubclass(original, np.number | np.bool_) and supported(np.dtype(original))


def stand_in(original: Any) -> Any:
    """The class that stands for one of NumPy's scalar types; other classes as they are."""
    if original.__name__ not in _ABSTRACT and not _held(original):
        return original
    members = {"_original": original, "__module__": __package__, "__doc__": original.__doc__}
    return _ScalarType(original.__name__, (original,), members)


def isscalar(element: Any) -> bool:
    """Whether a value is a number, a string, or a Tensor that stands for a scalar."""
    return is_scalar(element) if isinstance(element, Tensor) else np.isscalar(element)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind ("real floating", "integral", ...), is a dtype, or is one of a tuple of them."""
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return any(np.isdtype(np.dtype(dtype), one if isinstance(one, str) else np.dtype(one)) for one in kinds)


# ----- Python's classes of numbers, of which NumPy's scalars are instances -----


class _NumberType(_StandIn):
    _dtypes: tuple[type, ...]

    def __instancecheck__(cls, value: Any) -> bool:
        if isinstance(value, Tensor):
            return is_scalar(value) and issubclass(scalar_type(value), cls._dtypes)
        return isinstance(value, cls._original)

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if args and isinstance(args[0], Tensor) and cls._original in (float, complex):
            if args[0].size == 1:
                return python_numbers.number(array(args[0], cls._original))
            return cls._original(args[0])  # says what is wrong
        return cls._original(*args, **options)


def _number_type(original: type, dtypes: tuple[type, ...]) -> Any:
    bases = (original,) if original in (float, complex) else ()
    members: dict[str, Any] = {"_original": original, "_dtypes": dtypes}
    members.update(__module__=original.__module__, __doc__=original.__doc__)
    if bases:
        members["dtype"] = np.dtype(original)  # what older NumPy asks to take the class as a dtype
    return _NumberType(original.__name__, bases, members)


PYTHON_NUMBERS: dict[type, Any] = {
    float: _number_type(float, (np.float64,)),
    complex: _number_type(complex, (np.complex128,)),
    numbers.Number: _number_type(numbers.Number, (np.number,)),
    numbers.Complex: _number_type(numbers.Complex, (np.number,)),
    numbers.Real: _number_type(numbers.Real, (np.integer, np.floating)),
    numbers.Integral: _number_type(numbers.Integral, (np.integer,)),
}
"""Python's classes, and their replacements in functions that `differentiable_source` runs."""
