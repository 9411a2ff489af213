"""Elements `x[mask]` for a recorded mask: how many there are is known in no recording that serves many calls.

In: a Tensor and a boolean Tensor, or the positions that `np.where(mask)` stands for. Out: an object that computes with
the elements by computing with all of the array: elementwise operations with single numbers and with elements of the
same mask, sums and other reductions, and `x[mask] = ...`, which chooses. What depends on their number is an error.
Called by Tensor's brackets, by `nonzero` and `where`, and by NumPy's protocols.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from ..errors import ArgumentError, RangeError, TracedValueError
from ..graph.builders import cast, reshape
from ..graph.ir import Node, broadcast, elementwise
from ..graph.trace import stands_for_many
from ..runtime.evaluate import require
from .tensor import Tensor

_ELEMENTWISE = frozenset(
    "clip round around nan_to_num real imag angle sinc conj conjugate where isclose copy zeros_like ones_like "
    "empty_like full_like".split()
)
_REDUCTIONS = frozenset(
    "sum prod mean var std any all max amax min amin nansum nanprod nanmean nanvar nanstd nanmax nanmin".split()
)
_EXTREMA = {**dict.fromkeys(("max", "amax", "nanmax"), -1), **dict.fromkeys(("min", "amin", "nanmin"), 1)}
_NOT_ALL = "Indexed by positions of a mask, not all of them in their order"
_DEEPEST = 200
_MOST_COMPARED = 1000
made: list[None] = []
"""Not empty as soon as there were such elements, so that nothing asks before."""


def _limit(dtype: np.dtype[Any], sign: int) -> Any:
    if dtype.kind == "f":
        return sign * np.inf
    if dtype.kind == "b":
        return sign > 0
    return np.iinfo(dtype).max if sign > 0 else np.iinfo(dtype).min


def _note() -> None:
    if not made:
        made.append(None)


def waits(mask: Any) -> bool:
    """Whether a key is a mask with different elements from call to call."""
    return isinstance(mask, Tensor) and mask._node.dtype.kind == "b" and mask.ndim > 0 and stands_for_many(mask._node)


def refuse(what: str) -> NoReturn:
    """Raise for a use that depends on the number of elements.

    Raises
    ------
    TracedValueError
    """
    message = (
        f"{what}: the shape of x[mask] depends on the values in the mask, which differ from call to call of a compiled "
        "function. Elementwise operations, sums and x[mask] = ... with the same mask are known; else use "
        "np.where(mask, x, otherwise), which keeps the shape."
    )
    raise TracedValueError(message)


def _same(a: Node, b: Node, deepest: int = _DEEPEST) -> bool:
    """Whether two nodes were made in the same way of the same values."""
    if a is b:
        return True
    if deepest == 0 or a.primitive is not b.primitive or a.shape != b.shape or a.dtype != b.dtype:
        return False
    if not a.inputs:
        if a.value is None or b.value is None:
            return a.name == "literal" and a.params == b.params
        return a.size <= _MOST_COMPARED and np.array_equal(a.value, b.value)
    if a.params != b.params or len(a.inputs) != len(b.inputs):
        return False
    return all(_same(x, y, deepest - 1) for x, y in zip(a.inputs, b.inputs, strict=True))


class _Unknown:
    """Elements or positions, as many as a mask has true elements."""

    __slots__ = ("mask",)
    mask: Tensor

    @property
    def shape(self) -> NoReturn:
        """An error: it is not known."""
        refuse("Asked for a shape")

    def __len__(self) -> int:
        refuse("Asked for a length")

    def __iter__(self) -> Any:
        refuse("Iterated")

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        refuse("Asked for an array")

    def __getitem__(self, key: Any) -> Any:
        refuse("Indexed again")

    def __setitem__(self, key: Any, value: Any) -> None:
        refuse("Indexed again")

    def __bool__(self) -> bool:
        refuse("Asked for a truth value")

    def __float__(self) -> float:
        refuse("Asked for a number")


def refuse_unknown(output: Any) -> None:
    """Raise if a function returns such elements or positions."""
    if made and isinstance(output, _Unknown):
        refuse("Returned")


class MaskedPositions(np.lib.mixins.NDArrayOperatorsMixin, _Unknown):
    """The positions along one axis at which a recorded mask is true, as `np.where(mask)` gives them."""

    __slots__ = ("axis",)

    def __init__(self, mask: Tensor, axis: int) -> None:
        self.mask, self.axis = mask, axis

    @property
    def size(self) -> Any:
        """Their number, a Tensor."""
        return np.count_nonzero(self.mask)  # type: ignore[call-overload]

    def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
        refuse("Computed with positions of a mask")

    def __array_function__(self, *args: Any) -> Any:
        refuse("Computed with positions of a mask")


def positions_of(mask: Tensor) -> tuple[MaskedPositions, ...]:
    """The positions that `np.where(mask)` gives for a mask with different elements from call to call."""
    _note()
    own = Tensor._of(mask._node)
    return tuple([MaskedPositions(own, axis) for axis in range(mask.ndim)])


def split(key: Any) -> tuple[Tensor, tuple[Any, ...]] | None:
    """The recorded mask, or its positions, that a key begins with, and the rest of the key, a view; None for
    other keys."""
    parts = key if key.__class__ is tuple else (key,)
    if not parts:
        return None
    if waits(parts[0]):
        return (parts[0], parts[1:]) if all(map(_is_basic, parts[1:])) else None
    if not made:
        return None
    if isinstance(parts[0], tuple) and len(parts[0]) == 1:
        parts = (*parts[0], *parts[1:])  # `x[np.where(mask), 0]`, of a mask of one axis
    count = sum(isinstance(part, MaskedPositions) for part in parts)
    if not count:
        return None
    first = parts[0]
    if not isinstance(first, MaskedPositions) or count != first.mask.ndim:
        refuse(_NOT_ALL)
    for axis, part in enumerate(parts[:count]):
        if not isinstance(part, MaskedPositions) or part.axis != axis or part.mask is not first.mask:
            refuse(_NOT_ALL)
    if not all(map(_is_basic, parts[count:])):
        refuse("Indexed by positions of a mask and other positions")
    return first.mask, parts[count:]


def _is_basic(part: Any) -> bool:
    return part is None or part is Ellipsis or part.__class__ in (int, slice)


def _reduction(name: str) -> Callable[..., Any]:
    def method(self: MaskedElements, axis: Any = None, **options: Any) -> Any:
        return self.reduced(getattr(np, name), axis, **options)

    method.__name__ = name
    method.__doc__ = f"As `numpy.{name}`, of all elements or along the first axis."
    return method


class MaskedElements(np.lib.mixins.NDArrayOperatorsMixin, _Unknown):
    """The elements of an array where a recorded mask is true.

    Parameters
    ----------
    values : Tensor
        All of the array.
    mask : Tensor
        Booleans, of the shape of its first axes.
    """

    __slots__ = ("values",)
    __array_priority__ = 20000.0

    values: Any
    mask: Any

    def __init__(self, values: Any, mask: Any) -> None:
        _note()
        if values.shape[: mask.ndim] != mask.shape:
            message = f"A boolean index of shape {mask.shape} does not match the indexed axes of shape {values.shape}."
            raise RangeError(message)
        # Later writes to either are not seen.
        self.values, self.mask = Tensor._of(values._node), Tensor._of(mask._node)

    @property
    def dtype(self) -> Any:
        """The dtype."""
        return self.values.dtype

    @property
    def ndim(self) -> int:
        """The number of axes: one for all of the mask's."""
        return self.values.ndim - self.mask.ndim + 1

    @property
    def size(self) -> Any:
        """The number of elements, a Tensor."""
        return np.count_nonzero(self._spread())  # type: ignore[call-overload]

    def __repr__(self) -> str:
        return f"MaskedElements(of shape {list(self.values.shape)}, dtype={self.dtype}, mask recorded)"

    def _spread(self) -> Any:
        """The mask, of the shape of the values."""
        mask = self.mask.reshape(self.mask.shape + (1,) * (self.values.ndim - self.mask.ndim))
        return np.broadcast_to(mask, self.values.shape)

    def _beside(self, other: Any) -> Any:
        """Another operand, as it stands beside all of the array."""
        if isinstance(other, MaskedElements):
            if not _same(self.mask._node, other.mask._node):
                refuse("Elements of two masks met")
            if other.values.ndim != self.values.ndim:
                refuse("Elements of arrays with different numbers of axes met")
            return other.values
        if np.ndim(other) >= self.ndim:
            refuse("Elements of a mask met an array of a length of its own")
        return other

    def _among(self, key: Any) -> Tensor:
        """The mask of those elements that a mask of the elements chooses."""
        if not isinstance(key, MaskedElements) or key.dtype != bool or key.ndim != 1:
            refuse("Indexed again")
        return self.mask & self._beside(key)

    def __getitem__(self, key: Any) -> MaskedElements:
        return MaskedElements(self.values, self._among(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        chosen = MaskedElements(self.values, self._among(key))
        new = value.full(chosen.mask, self.values.ndim) if isinstance(value, MaskedElements) else chosen._beside(value)
        self.values = np.where(chosen._spread(), new, self.values).astype(self.dtype)

    def full(self, mask: Tensor, ndim: int) -> Tensor:
        """All of the array, for `x[mask] = self` of an array x with so many axes."""
        if self.values.ndim != ndim:
            refuse("Elements were written to an array with another number of axes")
        if not _same(self.mask._node, mask._node):
            refuse("Elements of one mask were written where another one is true")
        return self.values

    # ----- Elementwise -----

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.pop("out", None)
        if ufunc.signature is not None and out is None and not options:
            return product(*inputs)
        if method != "__call__" or options or (out is not None and (len(out) != 1 or out[0] is not inputs[0])):
            refuse(f"np.{ufunc.__name__} with options")
        found = self._each(ufunc, inputs)
        if out is None:
            return found
        inputs[0].values = found.values.astype(inputs[0].dtype)
        return inputs[0]

    def _each(self, function: Callable[..., Any], inputs: Any, options: Any = None) -> Any:
        """The results of an elementwise function."""
        first = next(one for one in inputs if isinstance(one, MaskedElements))
        named = {name: first._beside(value) for name, value in (options or {}).items()}
        results = function(*[first._beside(one) for one in inputs], **named)
        if isinstance(results, tuple):
            return tuple([MaskedElements(one, first.mask) for one in results])
        return MaskedElements(results, first.mask)

    def astype(self, dtype: Any, **options: Any) -> MaskedElements:
        """The elements in another dtype."""
        return MaskedElements(self.values.astype(dtype, **options), self.mask)

    def copy(self) -> MaskedElements:
        """A copy."""
        return MaskedElements(self.values, self.mask)

    @property
    def real(self) -> MaskedElements:
        """The real parts."""
        return self._each(np.real, (self,))

    @property
    def imag(self) -> MaskedElements:
        """The imaginary parts."""
        return self._each(np.imag, (self,))

    # ----- Reductions -----

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return apply(func, args, kwargs)

    def reduced(self, function: Callable[..., Any], axis: Any = None, **options: Any) -> Any:
        """The sum, product or another reduction, of all elements or along the first axis.

        Raises
        ------
        ArgumentError
            For the largest or smallest of no elements; of a compiled function, in the call that has none.
        """
        name = function.__name__
        if axis not in (None, 0) and not (axis == -1 and self.ndim == 1):
            refuse(f"np.{name} along another axis")
        if name in _EXTREMA:
            message = f"np.{name} of no elements: the mask is true nowhere."
            require(self.mask.any()._node, message, ArgumentError)
            options.setdefault("initial", _limit(self.dtype, _EXTREMA[name]))
        axes = None if axis is None else tuple(range(self.mask.ndim))
        return function(self.values, axis=axes, where=self._spread(), **options)

    sum, prod, mean, var, std = map(_reduction, "sum prod mean var std".split())
    max, min, any, all = map(_reduction, "max min any all".split())


def product(a: Any, b: Any) -> Any:
    """The product of two vectors of chosen elements, or of chosen rows with a vector or matrix."""
    if isinstance(a, MaskedElements) and isinstance(b, MaskedElements) and a.ndim == b.ndim == 1:
        return (a * b).sum()
    rows = isinstance(a, MaskedElements) and a.ndim == 2 and a.mask.ndim == 1
    if not rows or isinstance(b, MaskedElements) or np.ndim(b) not in (1, 2):
        refuse("A product of matrices")
    return MaskedElements(a.values @ b, a.mask)


def apply(function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """A function of NumPy's, or ours of that name, with such elements among its arguments."""
    name = function.__name__
    first = next((one for one in args if isinstance(one, MaskedElements)), None)
    if first is None:
        refuse(f"np.{name}")
    if isinstance(getattr(np, name, None), np.ufunc):
        return getattr(np, name)(*args, **kwargs)
    if name in _REDUCTIONS and args[0] is first and len(args) <= 2:
        return first.reduced(getattr(np, name), *args[1:], **kwargs)
    if name == "count_nonzero" and len(args) == 1 and not kwargs:
        return (first != 0).sum()
    if name in ("dot", "inner", "vdot", "matmul") and len(args) == 2 and not kwargs:
        return product(np.conj(args[0]) if name == "vdot" else args[0], args[1])
    if name == "norm" and len(args) == 1 and first.ndim == 1 and not kwargs:
        return np.sqrt((np.abs(first) ** 2).sum())
    if name == "size" and len(args) == 1:
        return first.size
    if name in ("asarray", "asanyarray", "array", "ascontiguousarray") and args[0] is first:
        dtype = args[1] if len(args) > 1 else kwargs.get("dtype")
        return first.copy() if dtype is None else first.astype(dtype)
    if name in _ELEMENTWISE and (name != "where" or len(args) == 3):
        return first._each(getattr(np, name), args, kwargs)
    refuse(f"np.{name}")


def written(node: Node, mask: Tensor, value: MaskedElements) -> Node:
    """The node after `x[mask] = value` for elements of the same mask."""
    chosen = cast(value.full(mask, node.ndim)._node, node.dtype)
    spread = broadcast(reshape(mask._node, mask.shape + (1,) * (node.ndim - mask.ndim)), node.shape)
    return elementwise("select", spread, broadcast(chosen, node.shape), node)
