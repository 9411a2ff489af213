"""Copies of a Tensor with other elements: JAX's `x.at[k].set(v)`, `add`, `multiply`, `get` and the like.

In: a Tensor, an index and values. Out: a new Tensor; the first stays as it is. Called by users who come from JAX: `at`
is an attribute of every Tensor. Indices that are out of range are an error as everywhere, unless a `mode` says what
becomes of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ..errors import ArgumentError
from ..record.tensor import Tensor, part_of_tensor

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""
_MODES = (None, "promise_in_bounds", "fill", "drop", "clip")


@part_of_tensor
class FunctionalWrites(Tensor):
    """The attribute through which elements are changed in a copy."""

    __slots__ = ()

    @property
    def at(self) -> At:
        """Copies with other elements, as in JAX: `x.at[k].set(v)`."""
        return At(self)


class At:
    """The index of a copy of a Tensor with other elements: `x.at[k]`.

    Parameters
    ----------
    base : Tensor

    Examples
    --------
    >>> import nbgrad.numpy as np
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> x.at[0].set(5.0).tolist(), x.at[[0, 0, 9]].add(1.0, mode="drop").tolist(), x.tolist()
    ([5.0, 2.0, 3.0], [3.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    """

    __slots__ = ("_base",)

    def __init__(self, base: Tensor) -> None:
        self._base = base

    def __getitem__(self, key: Any) -> AtIndex:
        return AtIndex(self._base, key)


def _combining(ufunc: Any, doc: str, by_product: bool = False) -> Callable[..., Any]:
    """A method of `AtIndex` that combines elements with values by a ufunc; `by_product`, with the product of those
    for an element."""

    def combined(
        self: AtIndex,
        values: Any,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
    ) -> Any:
        del indices_are_sorted, unique_indices
        if by_product:
            return ufunc(self._base, AtIndex(np.ones_like(self._base), self._key).multiply(values, mode=mode))
        return self._written(lambda x, key: ufunc.at(x, key, values), mode)

    combined.__doc__ = doc
    return combined


class AtIndex:
    """Some elements of a Tensor, `x.at[k]`, whose methods give copies of it with others in their place.

    All methods take `mode`: what becomes of indices that are out of range. Without it they are an error; "drop" and
    "fill" leave them out (and `get` gives `fill_value` for them), "clip" takes the nearest index.
    `indices_are_sorted` and `unique_indices` have no effect.
    """

    __slots__ = ("_base", "_key")

    def __init__(self, base: Tensor, key: Any) -> None:
        self._base, self._key = base, key

    def get(
        self,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
        fill_value: Any = None,
    ) -> Any:
        """The elements; with the modes "fill" and "drop", `fill_value` (by default NaN) for indices out of range."""
        del indices_are_sorted, unique_indices
        if mode in ("fill", "drop"):
            fill = _filling(self._base.dtype) if fill_value is None else fill_value
            padded, key = self._padded(fill)
            return padded[key]
        return self._base[self._indices(mode)]

    def set(
        self, values: Any, indices_are_sorted: bool = False, unique_indices: bool = False, mode: str | None = None
    ) -> Any:
        """A copy in which the elements are `values`."""
        del indices_are_sorted, unique_indices

        def write(x: Any, key: Any) -> None:
            x[key] = values

        return self._written(write, mode)

    def apply(
        self,
        func: Callable[..., Any],
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: str | None = None,
    ) -> Any:
        """A copy in which `func` was applied to the elements, once if an index is repeated."""
        del indices_are_sorted, unique_indices

        def write(x: Any, key: Any) -> None:
            x[key] = func(x[key])

        return self._written(write, mode)

    add = _combining(
        np.add, "A copy in which `values` are added to the elements, all of them where an index is repeated."
    )
    subtract = _combining(np.subtract, "A copy in which `values` are subtracted from the elements.")
    multiply = mul = _combining(np.multiply, "A copy in which the elements are multiplied by `values`.")
    divide = _combining(np.divide, "A copy in which the elements are divided by `values`.", by_product=True)
    power = _combining(np.power, "A copy in which the elements are raised to the power of `values`.", by_product=True)
    min = _combining(np.minimum, "A copy in which the elements are at most `values`.")
    max = _combining(np.maximum, "A copy in which the elements are at least `values`.")

    def _written(self, write: Callable[[Any, Any], None], mode: str | None) -> Any:
        """A copy that was written to."""
        if mode not in ("fill", "drop"):
            copy: Any = self._base.copy()
            write(copy, self._indices(mode))
            return copy
        padded, key = self._padded(0)
        write(padded, key)
        return padded[tuple([slice(0, size) for size in self._base.shape])]

    def _padded(self, fill: Any) -> tuple[Any, Any]:
        """The array with one more place at the end of each axis that has indices, and an index that puts there what is
        out of range."""
        widths = [0] * self._base.ndim

        def beyond(index: Any, size: int, axis: int) -> Any:
            widths[axis] = 1
            return np.where((index < 0) | (index >= size), size, index)

        key = self._mapped(beyond)
        return np.pad(self._base, [(0, width) for width in widths], constant_values=fill), key

    def _indices(self, mode: str | None) -> Any:
        """The index in range."""
        if mode not in _MODES:
            message = f"mode must be one of {', '.join(map(repr, _MODES[1:]))}, but is {mode!r}."
            raise ArgumentError(message)
        if mode == "clip":
            return self._mapped(lambda index, size, axis: np.clip(index, 0, size - 1))
        return self._key

    def _mapped(self, change: Callable[[Any, int, int], Any]) -> tuple[Any, ...]:
        """The index with its integers changed, given the size and the number of their axis; negative ones count from
        the end before."""
        parts = [*self._key] if isinstance(self._key, tuple) else [self._key]
        parts = [np.asarray(part) if isinstance(part, list) else part for part in parts]
        consumed = sum(_axes_of(part) for part in parts if part is not Ellipsis)
        axis, found = 0, []
        for part in parts:
            if part is Ellipsis:
                axis += self._base.ndim - consumed
            elif _is_integer(part):
                size = self._base.shape[axis]
                part = change(np.where(part < 0, part + size, part), size, axis)
                axis += 1
            else:
                axis += _axes_of(part)
            found.append(part)
        return tuple(found)


def _axes_of(part: Any) -> int:
    """The number of axes that a part of an index is about."""
    if part is None:
        return 0
    dtype = getattr(part, "dtype", None)
    if isinstance(part, bool) or (dtype is not None and dtype.kind == "b"):
        return getattr(part, "ndim", 0)
    return 1


def _is_integer(part: Any) -> bool:
    """Whether a part of an index is an integer, or an array of them."""
    if isinstance(part, slice) or part is None or isinstance(part, bool):
        return False
    return isinstance(part, int) or getattr(getattr(part, "dtype", None), "kind", "") in "iu"


def _filling(dtype: Any) -> Any:
    """JAX's value for elements that are not there: NaN, the lowest integer, the highest without a sign, or True."""
    kind = dtype.kind
    if kind in "iu":
        limits = numpy.iinfo(numpy.dtype(dtype.name))
        return limits.max if kind == "u" else limits.min
    return True if kind == "b" else numpy.nan
