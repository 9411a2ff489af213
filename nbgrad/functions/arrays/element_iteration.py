"""NumPy's iteration over the elements of arrays side by side, in the order of memory: `nditer`.

In: Tensors and arrays, and nditer's flags. Out: an iterator with nditer's attributes, whose elements are arrays without
axes; those of operands that may be written to are views. Called by users as a name of `nbgrad.numpy`. NumPy's own
iterator goes over arrays of positions that lie in memory as the operands do, so that NumPy orders and broadcasts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...record.as_node import holds_tensors
from ...record.shared_memory import is_in_order, strides_in_memory
from ...record.tensor import Tensor
from .construction import asarray, empty
from .inspection import result_type

_COUNTING = ("c_index", "external_loop", "f_index", "multi_index", "ranged", "zerosize_ok")
_WITHOUT_EFFECT = (
    "buffered",
    "common_dtype",
    "copy_if_overlap",
    "delay_bufalloc",
    "grow_inner",
    "reduce_ok",
    "refs_ok",
)


def nditer(
    op: Any,
    flags: Any = None,
    op_flags: Any = None,
    op_dtypes: Any = None,
    order: Any = "K",
    casting: Any = "safe",
    op_axes: Any = None,
    itershape: Any = None,
    buffersize: int = 0,
) -> Any:
    """`numpy.nditer`: the elements of arrays that are broadcast together, in the order of memory.

    Parameters
    ----------
    op : array-like, or sequence of array-like and None
        In place of None, a Tensor is made.
    flags, op_flags, op_dtypes, order, casting, op_axes, itershape, buffersize
        As NumPy's. Flags about buffers have no effect where an operand is a Tensor.

    Returns
    -------
    numpy.nditer or ElementIteration
        NumPy's where no operand is a Tensor.

    Examples
    --------
    >>> import nbgrad.numpy as np
    >>> with np.nditer([np.array([1.0, 2.0]), None]) as it:
    ...     for x, y in it:
    ...         y[...] = x**2
    ...     print(it.operands[1])
    [1. 4.]
    """
    if not holds_tensors(op):
        return np.nditer(op, flags, op_flags, op_dtypes, order, casting, op_axes, itershape, buffersize)
    return ElementIteration(op, flags or (), op_flags, op_dtypes, order, op_axes, itershape)


class ElementIteration:
    """`numpy.nditer` over operands of which at least one is a Tensor."""

    def __init__(
        self, op: Any, flags: Any, op_flags: Any, op_dtypes: Any, order: str, op_axes: Any, itershape: Any
    ) -> None:
        self._several = isinstance(op, list | tuple)
        given = list(op) if self._several else [op]
        for flag in flags:
            if flag not in _COUNTING + _WITHOUT_EFFECT:
                message = f"nditer over Tensors knows the flags {', '.join(_COUNTING)}, but got {flag!r}."
                raise ArgumentError(message)
        self._written = _are_written(op_flags, given)
        operands: list[Any] = [
            one if one is None or (write and isinstance(one, np.ndarray)) else asarray(one)
            for one, write in zip(given, self._written, strict=True)
        ]
        known = [k for k, one in enumerate(operands) if one is not None]
        dtypes = list(op_dtypes) if isinstance(op_dtypes, list | tuple) else [op_dtypes] * len(given)
        common = result_type(*[operands[k] for k in known])
        counting = [flag for flag in flags if flag in _COUNTING]

        def over(places: list[int]) -> Any:
            axes = {} if op_axes is None else {"op_axes": [op_axes[k] for k in places]}
            extents = {} if itershape is None else {"itershape": itershape}
            positions = [_positions(operands[k]) for k in places]
            return np.nditer(positions, counting, [["readonly"]] * len(places), order=order, **axes, **extents)  # type: ignore[arg-type, call-overload]

        if len(known) < len(given):
            if op_axes is not None:
                message = "Where nditer gets op_axes and a Tensor, each operand must be given, but one of them is None."
                raise ArgumentError(message)
            shape = itershape or np.broadcast_shapes(*[tuple(operands[k].shape) for k in known])
            operands = [
                empty(shape, common if dtype is None else dtype) if one is None else one
                for one, dtype in zip(operands, dtypes, strict=True)
            ]
        for k in known:
            dtype = common if dtypes[k] is None and "common_dtype" in flags else dtypes[k]
            if dtype is not None and operands[k].dtype != dtype:
                if self._written[k]:
                    message = (
                        f"Operand {k} of nditer has {result_type(operands[k])} elements, and is written to as {dtype}."
                    )
                    raise ArgumentError(message)
                operands[k] = operands[k].astype(dtype)
        self.operands = tuple(operands)
        self._inner = over(list(range(len(operands))))

    def __getattr__(self, name: str) -> Any:
        """NumPy's own state: `multi_index`, `index`, `finished`, `iternext`, `shape` and the like."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    def _part(self, place: int) -> Any:
        """The current element of an operand, or the current elements with `external_loop`."""
        operand, positions = self.operands[place], self._inner[place]
        if positions.ndim == 0:
            return operand[(*np.unravel_index(int(positions), operand.shape), ...)]
        if not self._written[place]:
            return operand.reshape(-1)[positions.copy()]
        step = int(positions[1] - positions[0]) if len(positions) > 1 else 1
        if step <= 0 or not (is_in_order(operand) if isinstance(operand, Tensor) else operand.flags.c_contiguous):
            message = (
                f"With external_loop, nditer writes to arrays in C order without broadcasting, but operand {place} of "
                f"shape {tuple(operand.shape)} is another one. Leave the flag out."
            )
            raise ArgumentError(message)
        return operand.reshape(-1)[int(positions[0]) : int(positions[-1]) + 1 : step]

    @property
    def value(self) -> Any:
        """The current elements: a tuple, or the only one."""
        return self[:] if self._several else self._part(0)

    @property
    def dtypes(self) -> tuple[Any, ...]:
        """The dtypes of the operands."""
        return tuple([result_type(operand) for operand in self.operands])

    def __len__(self) -> int:
        return len(self.operands)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return tuple([self._part(k) for k in range(*key.indices(len(self)))])
        return self._part(range(len(self))[key])

    def __setitem__(self, key: int, value: Any) -> None:
        self[key][...] = value

    def __iter__(self) -> ElementIteration:
        return self

    def __next__(self) -> Any:
        next(self._inner)
        return self.value

    def __enter__(self) -> ElementIteration:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Has no effect: elements are written at once."""


def _are_written(op_flags: Any, given: list[Any]) -> list[bool]:
    """For each operand, whether its elements may be written to."""
    if op_flags is None:
        return [one is None for one in given]
    each = [op_flags] * len(given) if all(isinstance(flag, str) for flag in op_flags) else op_flags
    return [one is None or "readwrite" in kinds or "writeonly" in kinds for kinds, one in zip(each, given, strict=True)]


def _positions(operand: Any) -> np.ndarray:
    """The position of each element of an operand in C order, in an array that lies in memory as the operand does."""
    shape = tuple(operand.shape)
    positions = np.arange(int(np.prod(shape))).reshape(shape)
    strides = strides_in_memory(operand)
    if strides is None or positions.size == 0:
        return positions
    slowest_first = sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))
    moved = np.ascontiguousarray(positions.transpose(slowest_first)).transpose(np.argsort(slowest_first))
    turned = tuple([slice(None, None, -1 if stride < 0 else 1) for stride in strides])
    return moved[turned].copy("K")[turned]
