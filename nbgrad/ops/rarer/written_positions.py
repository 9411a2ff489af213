"""Writing at positions: segments of rows, and arrays and Parameters that are added to, multiplied or limited there.

In: arrays, integer positions and updates. Out: new Tensors; the functions of Parameters write to these as well. Called
by users; class_table.py names some of them. A position that is named several times takes every update of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from ...errors import DtypeError, ShapeError
from ...record.axes_and_dtypes import integer
from ...record.tensor import Tensor
from ...tensors.parameter import Parameter
from ..declarations import spelled
from ..docstrings import documented
from .special_values import value_of

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""

_CHANGES: dict[str, numpy.ufunc] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": np.maximum,
    "min": np.minimum,
}
_SAYS = {
    "add": "added",
    "sub": "subtracted",
    "mul": "multiplied",
    "div": "divided by",
    "max": "the greater one kept",
    "min": "the lesser one kept",
    "update": "written",
}


def _changed(x: Any, kind: str, key: Any, updates: Any) -> Tensor:
    """A copy of an array in which updates have changed the elements of a key."""
    target = value_of(x).copy()
    change = value_of(updates).astype(target.dtype)
    if kind == "update":
        target[key] = change
    else:
        _CHANGES[kind].at(target, key, change)
    return target


def _positions(indices: Any) -> Any:
    places = value_of(indices)
    if places.dtype.kind not in "iu":
        message = f"Positions must be integers, but their dtype is {places.dtype}."
        raise DtypeError(message)
    return places


def _coordinates(indices: Any) -> tuple[Any, ...]:
    """The key of positions whose coordinates are along the last axis."""
    places = _positions(indices)
    return tuple([places[..., k] for k in range(places.shape[-1])])


# ----- Segments -----


def _segments(name: str, kind: str, start: Callable[[Any], float], says: str) -> Callable[[Any, Any, Any], Tensor]:
    def function(x: Any, segment_ids: Any, num_segments: Any) -> Tensor:
        value, ids = value_of(x), _positions(segment_ids)
        count = integer(value_of(num_segments).reshape(()).item(), "num_segments")
        if value.shape[: ids.ndim] != ids.shape:
            message = f"{name} needs a segment for each of the first axes of {value.shape}, but got {ids.shape}."
            raise ShapeError(message)
        rows = value.reshape((ids.size, *value.shape[ids.ndim :]))
        target = np.full((count + 1, *rows.shape[1:]), start(value.dtype), np.dtype(value.dtype.name))
        flat = ids.ravel().astype(np.int64)
        # The row behind the segments takes what belongs to none; a segment too far stays out of range.
        place = np.where(flat < 0, count, flat + (flat >= count))
        return _changed(target, kind, place, rows)[:count]

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""The {says} of the elements of each segment.

    x : Tensor or ndarray
    segment_ids : Tensor or ndarray of int
        The segment of each row, or of each element of the first axes; negative ones belong to none.
    num_segments : int
        The number of segments, the extent of the first axis of the result.
    ShapeError : If there are not as many segments as rows.
    """
    return documented(function)


def _limit(which: str) -> Callable[[Any], Any]:
    def limit(dtype: Any) -> Any:
        found = np.dtype(dtype.name)
        return getattr(np.finfo(found) if found.kind == "f" else np.iinfo(found), which)

    return limit


unsorted_segment_sum = _segments("unsorted_segment_sum", "add", lambda dtype: 0, "sum")
unsorted_segment_prod = _segments("unsorted_segment_prod", "mul", lambda dtype: 1, "product")
unsorted_segment_max = _segments("unsorted_segment_max", "max", _limit("min"), "greatest")
unsorted_segment_min = _segments("unsorted_segment_min", "min", _limit("max"), "least")


@documented
def sparse_segment_mean(x: Any, indices: Any, segment_ids: Any) -> Tensor:
    """The means of chosen rows of each segment; segments without rows have 0.

    x : Tensor or ndarray
    indices, segment_ids : Tensor or ndarray of int, shape (k,)
        The rows, and the segment of each of them, in rising order.
    """
    rows, ids = value_of(x)[_positions(indices)], _positions(segment_ids)
    count = int(np.asarray(ids).max(initial=-1)) + 1
    number = np.bincount(np.asarray(ids), minlength=count).reshape((count,) + (1,) * (rows.ndim - 1))
    total = unsorted_segment_sum(rows, ids, count)
    return total / np.maximum(number, 1).astype(np.dtype(total.dtype.name))


# ----- Tensors -----


def _tensor_scatter(kind: str) -> Callable[[Any, Any, Any], Tensor]:
    def function(input_x: Any, indices: Any, updates: Any) -> Tensor:
        return _changed(input_x, kind, _coordinates(indices), updates)

    function.__name__ = function.__qualname__ = f"tensor_scatter_{kind}"
    function.__doc__ = f"The array with updates {_SAYS[kind]} at positions, whose coordinates are along the last axis."
    return spelled(function)


tensor_scatter_mul, tensor_scatter_div = _tensor_scatter("mul"), _tensor_scatter("div")
tensor_scatter_max, tensor_scatter_min = _tensor_scatter("max"), _tensor_scatter("min")


def _in_place(kind: str) -> Callable[[Any, Any, Any], Tensor]:
    def function(x: Any, v: Any, indices: Any) -> Tensor:
        return _changed(x, kind, np.atleast_1d(value_of(indices)), v)

    function.__name__ = function.__qualname__ = f"inplace_{kind}"
    function.__doc__ = f"""A new array with rows {_SAYS[kind]} at positions of the first axis.

    x, v : Tensor or ndarray
        The array and the rows.
    indices : int or tuple of int
    """
    return documented(function)


inplace_update, inplace_add, inplace_sub = _in_place("update"), _in_place("add"), _in_place("sub")


def rows_written(x: Any, indices: Any, v: Any) -> Tensor:
    """A new array with rows written at positions of the first axis."""
    return inplace_update(x, v, indices)


def placed(x1: Any, x2: Any, indices: Any, accumulate: int) -> Tensor:
    """The array with values written, or added if `accumulate`, at positions given by one array for each axis."""
    key = tuple([_positions(one) for one in indices])
    return _changed(x1, "add" if accumulate else "update", key, x2)


def filled_along(x: Any, dim: Any, index: Any, value: Any) -> Tensor:
    """The array with one value at positions along an axis."""
    array, axis = value_of(x), integer(value_of(dim).reshape(()).item(), "dim")
    key = (*[slice(None)] * (axis % array.ndim), _positions(index))
    shape = array[key].shape
    return _changed(array, "update", key, np.broadcast_to(value_of(value), shape))


# ----- Parameters -----


def _of_parameter(variable: Any, name: str) -> Parameter:
    if not isinstance(variable, Parameter):
        message = f"{name} writes to a Parameter, but got {type(variable).__name__}. Make it with nb.Parameter(...)."
        raise DtypeError(message)
    return variable


def _scatter_rows(kind: str) -> Callable[..., Tensor]:
    def function(input_x: Any, indices: Any, updates: Any, use_locking: bool = False) -> Tensor:
        del use_locking
        variable = _of_parameter(input_x, function.__name__)
        places = _positions(indices)
        shape = (*places.shape, *variable.shape[1:])
        variable.set_data(_changed(variable.value(), kind, places, np.broadcast_to(value_of(updates), shape)))
        return variable.value()

    function.__name__ = function.__qualname__ = f"scatter_{kind}"
    function.__doc__ = f"""A Parameter with updates {_SAYS[kind]} at positions of the first axis; it is written to.

    input_x : Parameter
    use_locking : bool
        MindSpore's; has no effect.
    -> Tensor
        The new value.
    DtypeError : If it is no Parameter.
    """
    return spelled(function)


scatter_update, scatter_add, scatter_sub = _scatter_rows("update"), _scatter_rows("add"), _scatter_rows("sub")
scatter_mul, scatter_div = _scatter_rows("mul"), _scatter_rows("div")
scatter_max, scatter_min = _scatter_rows("max"), _scatter_rows("min")


def _scatter_coordinates(kind: str) -> Callable[..., Tensor]:
    def function(input_x: Any, indices: Any, updates: Any, use_locking: bool = False) -> Tensor:
        del use_locking
        variable = _of_parameter(input_x, function.__name__)
        variable.set_data(_changed(variable.value(), kind, _coordinates(indices), updates))
        return variable.value()

    function.__name__ = function.__qualname__ = f"scatter_nd_{kind}"
    function.__doc__ = f"""A Parameter with updates {_SAYS[kind]} at positions; it is written to.

    input_x : Parameter
    indices : Tensor or ndarray of int
        Coordinates along the last axis.
    use_locking : bool
        MindSpore's; has no effect.
    -> Tensor
        The new value.
    DtypeError : If it is no Parameter.
    """
    return spelled(function)


scatter_nd_update, scatter_nd_add, scatter_nd_sub = (_scatter_coordinates(kind) for kind in ("update", "add", "sub"))
scatter_nd_mul, scatter_nd_div = _scatter_coordinates("mul"), _scatter_coordinates("div")
scatter_nd_max, scatter_nd_min = _scatter_coordinates("max"), _scatter_coordinates("min")


def added_along(variable: Any, indices: Any, updates: Any, axis: int) -> Tensor:
    """A Parameter with slices added at positions of an axis; it is written to."""
    found = _of_parameter(variable, "InplaceIndexAdd")
    key = (*[slice(None)] * (axis % found.ndim), _positions(indices))
    found.set_data(_changed(found.value(), "add", key, updates))
    return found.value()


@documented
def inplace_index_add(var: Any, indices: Any, updates: Any, axis: int) -> Tensor:
    """A Parameter with slices added at positions of an axis; it is written to.

    var : Parameter
    """
    return added_along(var, indices, updates, axis)


def rows_or_zeros(input_params: Any, input_indices: Any, offset: Any) -> Tensor:
    """Rows of a part of a table that begins at row `offset` of the whole; zeros for rows of other parts."""
    table, places = value_of(input_params), _positions(input_indices) - int(value_of(offset).reshape(()).item())
    inside = (places >= 0) & (places < table.shape[0])
    rows = table[np.where(inside, places, 0)]
    mask = inside.reshape(inside.shape + (1,) * (rows.ndim - inside.ndim))
    return np.where(mask, rows, np.zeros_like(rows))
