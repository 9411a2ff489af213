"""Functions that write their result to their first argument, as `exp_` does; and functions that are methods only.

In: a Tensor, and the arguments of the function without the underscore. Out: the same Tensor. Called by users, mostly as
methods.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy

from ...errors import ArgumentError, DtypeError, ShapeError
from ...functions.elementwise.special_functions import expit
from ...record.as_node import as_node
from ...record.axes_and_dtypes import axis_of, integer, only, write
from ...record.tensor import Tensor
from ..choices import bernoulli
from ..declarations import also, spelled
from ..docstrings import documented
from ..elementwise import clamp, exp, floor, floor_divide, log, masked_fill, remainder, sign, tanh
from ..filled_arrays import full_like
from ..gathering import index_add, index_fill, tensor_scatter_add, tensor_scatter_elements
from ..linear_algebra import addmm
from ..random_tensors import uniform as plain_uniform
from ..ranking import sort
from ..shape_functions import expand, tile
from .special_values import erfinv, value_of

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


def write_result(input: Any, result: Any, name: str) -> Tensor:
    """The Tensor, with the values of a result.

    Raises
    ------
    DtypeError
        If it is no Tensor, or cannot hold them.
    """
    if not isinstance(input, Tensor):
        message = f"{name} writes to a Tensor, but got {type(input).__name__}."
        raise DtypeError(message)
    write(input, as_node(result), name)
    return input


def _in_place(function: Callable[..., Any], name: str = "") -> Callable[..., Tensor]:
    """A function that writes to its first argument what another one computes."""
    name = f"{name or getattr(function, '__name__', '')}_"

    def written(*args: Any, **kwargs: Any) -> Tensor:
        return write_result(args[0], function(*args, **kwargs), name)

    written.__name__ = written.__qualname__ = name
    written.__doc__ = f"Write the result of `{name[:-1]}` to the first argument, which is given back."
    vars(written)["__signature__"] = inspect.signature(function)
    return written


exp_, log_, floor_, sign_, tanh_, erfinv_ = map(_in_place, (exp, log, floor, sign, tanh, erfinv))
clamp_, remainder_, floor_divide_, masked_fill_, addmm_ = map(
    _in_place, (clamp, remainder, floor_divide, masked_fill, addmm)
)
sigmoid_ = _in_place(expit, "sigmoid")


@documented
def fill_diagonal_(input: Any, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write a number to the main diagonal of a Tensor, which is given back.

    input : Tensor
    fill_value : number
    wrap : bool
        Whether the diagonal of a tall matrix goes on after each square.
    """
    return write_result(input, input.fill_diagonal(fill_value, wrap), "fill_diagonal_")


@documented
def masked_scatter_(input: Any, mask: Any, source: Any) -> Tensor:
    """Write the first elements of an array to the places of a Tensor where a mask is true.

    input : Tensor
    mask : Tensor or ndarray of bool
    source : Tensor or ndarray
    """
    return write_result(input, input.masked_scatter(mask, source), "masked_scatter_")


@documented
def index_put_(input: Any, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """Write values to positions of a Tensor, given by one array for each axis.

    input : Tensor
    indices : tuple or list of Tensor
    values : Tensor or ndarray
    accumulate : bool
        Whether values are added.
    """
    return write_result(input, input.index_put(indices, values, accumulate), "index_put_")


@documented
def index_add_(input: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Tensor:
    """Add slices times a number to positions of an axis of a Tensor.

    input : Tensor
    dim : int
    source : Tensor or ndarray
    alpha : number
    """
    return write_result(input, index_add(input, index, value_of(source) * alpha, dim), "index_add_")


@documented
def index_fill_(input: Any, dim: int, index: Any, value: Any) -> Tensor:
    """Write a number to positions of an axis of a Tensor.

    input : Tensor
    dim : int
    """
    return write_result(input, index_fill(input, dim, index, value), "index_fill_")


@documented
def index_copy_(input: Any, dim: int, index: Any, tensor: Any) -> Tensor:
    """Write slices to positions of an axis of a Tensor.

    input : Tensor
    dim : int
    tensor : Tensor or ndarray
    """
    at = axis_of(dim, input.ndim)
    key = (*[slice(None)] * at, value_of(index))
    copy: Any = value_of(input).copy()
    copy[key] = value_of(tensor)
    return write_result(input, copy, "index_copy_")


@documented
def put_(input: Any, index: Any, source: Any, accumulate: bool = False) -> Tensor:
    """Write elements to flat positions of a Tensor.

    input : Tensor
    source : Tensor or ndarray
        As many elements as positions.
    accumulate : bool
        Whether elements are added.
    """
    flat: Any = value_of(input).ravel()
    changed = flat.index_put([value_of(index).ravel()], value_of(source).ravel(), accumulate)
    return write_result(input, changed.reshape(input.shape), "put_")


@also(src="value")
@documented
def scatter_(input: Any, dim: int, index: Any, src: Any, *, reduce: str | None = None) -> Tensor:
    """Write elements to positions along an axis of a Tensor, or add or multiply by them.

    input : Tensor
    dim : int
    src : Tensor, ndarray or number
    reduce : {None, "add", "multiply"}
    """
    only("reduce", reduce, None, "add", "multiply")
    if reduce != "multiply":
        changed: Any = tensor_scatter_elements(input, index, src, dim, reduce or "none")
    else:
        changed, places = value_of(input).copy(), value_of(index)
        key = list(np.indices(places.shape, sparse=True))
        key[axis_of(dim, input.ndim)] = places
        np.multiply.at(changed, tuple(key), src)
    return write_result(input, changed, "scatter_")


@documented
def scatter_add_(input: Any, dim: int, index: Any, src: Any) -> Tensor:
    """Add elements to positions along an axis of a Tensor.

    input : Tensor
    dim : int
    """
    return write_result(input, tensor_scatter_elements(input, index, src, dim, "add"), "scatter_add_")


# ----- Methods only -----

_REDUCTIONS: dict[str, tuple[Any, float]] = {
    "sum": (np.add, 0),
    "mean": (np.add, 0),
    "prod": (np.multiply, 1),
    "amax": (np.maximum, -np.inf),
    "amin": (np.minimum, np.inf),
}
"""Name of a reduction -> the ufunc of two elements, and what leaves the other one as it is."""


@documented
def scatter_reduce(input: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True) -> Tensor:
    """The array with elements of `src` put together with those at positions along an axis.

    input : Tensor
    dim : int
    src : Tensor or ndarray
        With as many axes as the positions, none smaller.
    reduce : {"sum", "prod", "mean", "amax", "amin"}
    include_self : bool
        Whether elements of the input count where there are positions.

    >>> nb.Tensor([1.0, 2.0]).scatter_reduce(0, nb.Tensor([0, 0]), nb.Tensor([5.0, 3.0]), "amax").tolist()
    [5.0, 2.0]
    """
    only("reduce", reduce, *_REDUCTIONS)
    result, places, values = value_of(input).copy(), value_of(index), value_of(src)
    place: list[Any] = list(np.indices(places.shape, sparse=True))
    place[axis_of(dim, result.ndim)] = places
    key = tuple(place)
    values = values[tuple(slice(extent) for extent in places.shape)]
    ufunc, neutral = _REDUCTIONS[reduce]
    if not include_self:
        if result.dtype.kind in "iu" and np.isinf(neutral):
            limits = np.iinfo(result.dtype)
            neutral = limits.min if neutral < 0 else limits.max
        result[key] = neutral
    ufunc.at(result, key, values)
    if reduce == "mean":
        count = np.zeros(result.shape, result.dtype) if not include_self else np.ones(result.shape, result.dtype)
        np.add.at(count, key, 1)
        count = np.maximum(count, 1)
        result = result / count if result.dtype.kind in "fc" else result // count
    return result


@spelled
def elements_added(
    input: Any, *place: Any, dim: Any = None, index: Any = None, src: Any = None, updates: Any = None
) -> Tensor:
    """The array with elements added: `(dim, index, src)` at positions along an axis, or `(indices, updates)` at rows of
    positions. Repeated positions add up.

    *place : the arguments of one of both forms
    dim : int
    src, updates : Tensor, ndarray or number
    """
    given = [*place, *[one for one in (dim, index, src, updates) if one is not None]]
    if len(given) == 3:
        return tensor_scatter_elements(input, given[1], given[2], given[0], "add")
    if len(given) == 2:
        return tensor_scatter_add(input, *given)
    message = f"scatter_add takes (dim, index, src), or (indices, updates), but got {len(given)} arguments."
    raise ArgumentError(message)


@documented
def slices_added(input: Any, *place: Any, alpha: Any = 1, **named: Any) -> Tensor:
    """The array with slices added at positions of an axis: `(dim, index, source, alpha=1)` or `(indices, y, axis)`.

    *place : the arguments of one of both forms
    alpha : number
        Multiplies the slices.
    **named : they by their names
    """
    if "source" in named or "dim" in named or (place and isinstance(place[0], int | np.integer)):
        words = [name for name in ("dim", "index", "source") if name in named]
        dim, index, source = (*place, *[named.pop(name) for name in words])
        return index_add(input, index, source if alpha == 1 else value_of(source) * alpha, dim, **named)
    return index_add(input, *place, **named)


def _together(extents: tuple[Any, ...]) -> Any:
    return extents[0] if len(extents) == 1 else extents


@documented
def tiled(input: Any, *counts: Any, **named: Any) -> Tensor:
    """The array repeated as a whole along each axis.

    *counts : int, or one tuple of int
    **named : the tuple as `dims`, `reps` or `multiples`
    """
    return tile(input, *([_together(counts)] if counts else []), **named)


@documented
def expanded(input: Any, *size: Any) -> Tensor:
    """The array broadcast to a shape; -1 keeps an extent.

    *size : int, or one tuple of int
    """
    return expand(input, _together(size))


@documented
def filled_with(input: Any, value: Any) -> Tensor:
    """An array of one number, in the shape and dtype of another."""
    return full_like(input, value)


@documented
def ones_by_chance(input: Any, *, generator: Any = None) -> Tensor:
    """1 where a chance that is an element comes true, else 0."""
    return bernoulli(input, input, generator=generator)


@documented
def uniform_like(input: Any, from_: float = 0.0, to: float = 1.0, generator: Any = None) -> Tensor:
    """Uniform random numbers between two bounds, in the shape and dtype of an array.

    from_, to : float
    """
    x = value_of(input)
    return plain_uniform(x.shape, from_, to, generator=generator).astype(np.dtype(x.dtype.name))


@documented
def distinct(
    input: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The different elements, or slices along an axis, in order.

    sorted : bool
        Has no effect.
    return_inverse, return_counts : bool
        Whether to give the number of each element in the result, and how often each appears.
    dim : int, optional
    -> Tensor, or tuple of Tensor
    """
    del sorted
    x = numpy.asarray(value_of(input))
    found: Any = numpy.unique(
        x, return_index=True, return_inverse=return_inverse, return_counts=return_counts, axis=dim
    )
    first = Tensor(found[1])
    values = np.take(value_of(input).ravel() if dim is None else value_of(input), first, 0 if dim is None else dim)
    others = [Tensor(numpy.asarray(one)) for one in found[2:]]
    if return_inverse and dim is None:
        others[0] = others[0].reshape(x.shape)
    return (values, *others) if others else values


@documented
def kth_least(input: Any, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The k-th least element along an axis, and its position.

    k : int
        From 1.
    dim : int
    ArgumentError : If the axis has less than k elements.
    """
    x = value_of(input)
    if x.ndim == 0:
        message = "kthvalue looks along an axis, but the array has none."
        raise ShapeError(message)
    at = axis_of(dim, x.ndim)
    if not 1 <= integer(k, "k") <= x.shape[at]:
        message = f"kthvalue needs k between 1 and the {x.shape[at]} elements of the axis, but got {k}."
        raise ArgumentError(message)
    values, places = sort(x, at)
    found = np.take(values, [k - 1], at), np.take(places, [k - 1], at).astype(np.int64)
    return found if keepdim else (np.squeeze(found[0], at), np.squeeze(found[1], at))
