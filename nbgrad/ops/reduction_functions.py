"""Reductions and scans under MindSpore's names: sums, means, extrema with their positions, norms, running results.

In: Tensors, ndarrays, numbers, and the axes to reduce: an int, a tuple, or None or () for all. Out: Tensors, or pairs
of values and int64 positions. Called by users and by primitives.py. Every function takes axis or dim, and keepdims,
keep_dims or keepdim; its signature shows MindSpore's spelling. Equal extrema share their derivative where only the
value is returned; where positions are returned too, it goes to the element at the position.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError, ShapeError
from ..functions.analysis import statistics
from ..functions.arrays import cumulative
from ..functions.arrays import reductions as numpy_reductions
from ..functions.arrays.sorting import argsort_node
from ..functions.elementwise import special_functions as special
from ..functions.linalg import norms
from ..graph.builders import accumulate, cast, reduce, reshape
from ..graph.ir import INT64, Node, broadcast, elementwise, extent, literal
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import (
    axis_of,
    from_last,
    inexact,
    keep,
    positions,
    real_dtype,
    scalar,
    take_last,
    to_last,
)
from ..record.tensor import Tensor
from .spelling import spelled


def _axes(axis: Any) -> Any:
    """NumPy's axes: MindSpore takes () for all axes too."""
    return None if isinstance(axis, list | tuple) and not axis else axis


# ----- Sums, products, means -----


@spelled
def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Sum over axes.

    Parameters
    ----------
    input : Tensor, ndarray or number
    dim : int, tuple of int or None
        The axes to sum over, also called `axis`; None or () for all.
    keepdim : bool
        Whether the reduced axes stay, with extent 1.
    dtype : dtype, optional
        Of the result. Booleans and integers of less than 64 bits are added as 64-bit integers by default.

    Returns
    -------
    Tensor

    Raises
    ------
    ShapeError
        If an axis does not exist or appears twice.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.ops.sum(nb.Tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1).tolist()
    [3.0, 7.0]
    """
    return numpy_reductions.sum(input, _axes(dim), dtype, None, keepdim)


@spelled
def mean(x: Any, axis: Any = None, keep_dims: bool = False, *, dtype: Any = None) -> Tensor:
    """Arithmetic mean over axes; integers give floats.

    Parameters
    ----------
    x : Tensor, ndarray or number
    axis : int, tuple of int or None
        The axes to average over, also called `dim`; None or () for all.
    keep_dims : bool
        Whether the reduced axes stay, with extent 1.
    dtype : dtype, optional
        The dtype to compute in.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.ops.mean(nb.Tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0, keep_dims=True).tolist()
    [[2.0, 3.0]]
    """
    return statistics.mean(x, _axes(axis), dtype, None, keep_dims)


@spelled
def prod(input: Any, axis: Any = None, keep_dims: bool = False, dtype: Any = None) -> Tensor:
    """Product over axes; its derivative is exact where elements are 0."""
    return numpy_reductions.prod(input, _axes(axis), dtype, None, keep_dims)


@spelled
def nansum(input: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """Sum over axes of the elements that are not NaN."""
    return numpy_reductions.nansum(input, _axes(axis), dtype, None, keepdims)


@spelled
def nanmean(input: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """Mean over axes of the elements that are not NaN."""
    return statistics.nanmean(input, _axes(axis), dtype, None, keepdims)


@spelled
def all(input: Any, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Whether all elements over axes are true; numbers are true unless they are 0."""
    return numpy_reductions.all(input, _axes(axis), None, keep_dims)


@spelled
def any(input: Any, axis: Any = None, keep_dims: bool = False) -> Tensor:
    """Whether any element over axes is true; numbers are true unless they are 0."""
    return numpy_reductions.any(input, _axes(axis), None, keep_dims)


@spelled
def count_nonzero(x: Any, axis: Any = (), keep_dims: bool = False, dtype: Any = "int32") -> Tensor:
    """How many elements over axes are not 0, as int32 unless another dtype is given."""
    return wrap(cast(as_node(numpy_reductions.count_nonzero(x, _axes(axis), keepdims=keep_dims)), real_dtype(dtype)))


# ----- Spread -----


@spelled
def var(input: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """Variance over axes: the mean of squared deviations from the mean, whose divisor is the count minus `ddof`.

    Parameters
    ----------
    input : Tensor, ndarray or number
    axis : int, tuple of int or None
        None or () for all.
    ddof : number or bool
        0 for the variance of the elements themselves, 1 for Bessel's correction.
    keepdims : bool

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.ops.var(nb.Tensor([1.0, 3.0]), ddof=1).item()
    2.0
    """
    return statistics.var(input, _axes(axis), ddof=ddof, keepdims=keepdims)


@spelled
def std(input: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """Standard deviation over axes, the root of `var`; its derivative is 0 where all elements are equal."""
    return statistics.std(input, _axes(axis), ddof=ddof, keepdims=keepdims)


@spelled
def std_mean(input: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean over axes."""
    return std(input, axis, ddof, keepdims), mean(input, axis, keepdims)


@spelled
def var_mean(input: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The variance and the mean over axes."""
    return var(input, axis, ddof, keepdims), mean(input, axis, keepdims)


# ----- Extrema -----


@spelled
def amax(input: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = True) -> Tensor:
    """Greatest element over axes; NaN wins, and equal greatest elements share the derivative.

    Parameters
    ----------
    input : Tensor, ndarray or number
    axis : int, tuple of int or None
        None or () for all.
    keepdims : bool
    initial : number, optional
        What to start from; needed with `where`.
    where : Tensor or ndarray of bool
        Elements to include.

    Returns
    -------
    Tensor

    Raises
    ------
    ShapeError
        If there are no elements and no initial value.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.grad(nb.ops.amax)(nb.Tensor([3.0, 1.0, 3.0])).tolist()
    [0.5, 0.0, 0.5]
    """
    return numpy_reductions.max(input, _axes(axis), None, keepdims, initial, where)


@spelled
def amin(input: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = True) -> Tensor:
    """Least element over axes; parameters and conventions as `amax`."""
    return numpy_reductions.min(input, _axes(axis), None, keepdims, initial, where)


@spelled
def aminmax(input: Any, *, axis: Any = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The least and the greatest elements along an axis (of all elements, if it is None) that are not NaN."""
    return numpy_reductions.nanmin(input, axis, None, keepdims), numpy_reductions.nanmax(input, axis, None, keepdims)


def _take_kept(node: Node, at: int, place: Node, keepdims: bool) -> Node:
    """The elements at one position per row; `place` has extent 1 along the axis."""
    found = from_last(take_last(to_last(node, at), to_last(place, at)), at)
    return found if keepdims else reshape(found, found.shape[:at] + found.shape[at + 1 :])


def _with_position(name: str, input: Any, axis: Any, keepdims: bool, initial: Any, where: Any) -> tuple[Tensor, Tensor]:
    """Extrema ("max" or "min") and their positions."""
    node = as_node(input)
    if where is not True and where is not None:
        if initial is None:
            message = f"{name} with where= needs an initial value for what is left out."
            raise ArgumentError(message)
        node = as_node(_chosen(where, node, initial))
    if axis is None:
        value = numpy_reductions.reduce_ufunc(name + "imum", node, None, initial=initial)
        return wrap(value), Tensor(0)
    at = axis_of(axis, builtins.max(node.ndim, 1))
    place = numpy_reductions.extremum_position(node, axis, True, name)
    if node.ndim == 0:
        return wrap(node), wrap(place)
    value = _take_kept(node, at, place, keepdims)
    if initial is not None:
        value = elementwise(name + "imum", value, cast(as_node(initial), value.dtype))
    return wrap(value), wrap(place if keepdims else reshape(place, value.shape))


def _chosen(where: Any, node: Node, initial: Any) -> Tensor:
    from ..functions.elementwise.pointwise import where as choose

    return choose(where, Tensor._of(node), Tensor._of(cast(as_node(initial), node.dtype)))


@spelled
def max(
    input: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = True
) -> tuple[Tensor, Tensor]:
    """The greatest elements along an axis and their positions.

    Parameters
    ----------
    input : Tensor, ndarray or number
    axis : int or None
        One axis, also called `dim`. None for the greatest of all elements, with 0 as its position.
    keepdims : bool
        Whether the axis stays, with extent 1.
    initial : number, optional
        The least value of the result; needed with `where`.
    where : Tensor or ndarray of bool
        Elements to include.

    Returns
    -------
    values : Tensor
        The derivative goes to the element at the position, or, without an axis, is shared by equal ones.
    positions : Tensor
        int64; the first of several. NaN counts as the greatest.

    Raises
    ------
    ShapeError
        If the axis does not exist or has no elements.

    Examples
    --------
    >>> import nbgrad as nb
    >>> values, positions = nb.ops.max(nb.Tensor([[1.0, 5.0], [7.0, 2.0]]), axis=1)
    >>> values.tolist(), positions.tolist()
    ([5.0, 7.0], [1, 0])
    """
    return _with_position("max", input, axis, keepdims, initial, where)


@spelled
def min(
    input: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = True
) -> tuple[Tensor, Tensor]:
    """The least elements along an axis and their positions; parameters and conventions as `max`."""
    return _with_position("min", input, axis, keepdims, initial, where)


@spelled
def argmax(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Position of the first greatest element along an axis (of the flat array, if None), as int64; NaN wins."""
    return numpy_reductions.argmax(input, dim, keepdims=keepdim)


@spelled
def argmin(input: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Position of the first least element along an axis (of the flat array, if None), as int64; NaN wins."""
    return numpy_reductions.argmin(input, axis, keepdims=keepdims)


@spelled
def median(input: Any, axis: Any = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The middle elements along an axis and their positions; of an even number of elements, the lower middle one.

    Parameters
    ----------
    input : Tensor, ndarray or number
    axis : int
    keepdims : bool

    Returns
    -------
    values : Tensor
        NaN where an element is NaN.
    positions : Tensor
        int64.

    Raises
    ------
    ShapeError
        If the axis does not exist or has no elements.

    Examples
    --------
    >>> import nbgrad as nb
    >>> values, positions = nb.ops.median(nb.Tensor([4.0, 1.0, 3.0, 2.0]))
    >>> values.item(), positions.item()
    (2.0, 3)
    """
    node = as_node(input)
    if node.ndim == 0:
        axis_of(axis, 1)
        return wrap(node), Tensor(0)
    at = axis_of(axis, node.ndim)
    n = node.shape[at]
    if n == 0:
        message = f"The median of no elements does not exist: the shape is {node.shape} and the axis is {at}."
        raise ShapeError(message)
    order = argsort_node(node, at)
    kept = keep(node.shape, (at,))
    middle = broadcast(extent((n - 1) // 2, INT64), kept)
    numbers = numpy_reductions.not_nan(node)
    if numbers is not None:
        # NaN sorts last: the first one stands after all numbers.
        count = reshape(reduce("sum", cast(numbers, INT64), (at,)), kept)
        middle = elementwise("select", elementwise("equal", count, extent(n, INT64)), middle, count)
    place = _take_kept(order, at, middle, True)
    value = _take_kept(node, at, place, keepdims)
    return wrap(value), wrap(reshape(place, value.shape))


# ----- Norms -----


@spelled
def norm(A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Norm of vectors or matrices; its derivative where the norm is 0 is 0.

    Parameters
    ----------
    A : Tensor, ndarray or number
    ord : number, "fro" or None
        For vectors any number, inf and -inf included; for matrices "fro", 1, -1, inf, -inf. None is the root of the
        sum of squares over whatever axes.
    dim : int, tuple of int or None
        One axis means vectors, two mean matrices; None the whole array.
    keepdim : bool
    dtype : dtype, optional
        The dtype to compute in.

    Returns
    -------
    Tensor

    Raises
    ------
    ArgumentError
        If `ord` does not exist for vectors or matrices.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.ops.norm(nb.Tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1).tolist()
    [5.0, 10.0]
    """
    values = _in_dtype(A, dtype)
    if ord is None:
        return norms.vector_norm(values, axis=_axes(dim), keepdims=keepdim)
    return norms.norm(values, ord, _axes(dim), keepdim)


@spelled
def vector_norm(x: Any, ord: Any = 2, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """Norm of the elements over axes, as of one vector; its derivative where the norm is 0 is 0."""
    return norms.vector_norm(_in_dtype(x, dtype), axis=_axes(axis), keepdims=keepdims, ord=ord)


@spelled
def matrix_norm(A: Any, ord: Any = "fro", axis: Any = (-2, -1), keepdims: bool = False, *, dtype: Any = None) -> Tensor:
    """Norm of the matrices in two axes: "fro", 1, -1, inf or -inf."""
    return norms.norm(_in_dtype(A, dtype), ord, axis, keepdims)


def _in_dtype(values: Any, dtype: Any) -> Any:
    return values if dtype is None else Tensor._of(cast(as_node(values), real_dtype(dtype)))


@spelled
def logsumexp(input: Any, axis: Any, keep_dims: bool = False) -> Tensor:
    """log(sum(exp(input))) over axes, without overflow; -inf where all elements are -inf, with derivative 0."""
    return special.logsumexp(input, _axes(axis), keep_dims)


def clip_by_global_norm(x: Sequence[Any], clip_norm: float = 1.0, use_norm: Any = None) -> tuple[Tensor, ...]:
    """Tensors scaled together so that the norm of all their elements is at most `clip_norm`.

    Parameters
    ----------
    x : list or tuple of Tensor
        For example all gradients of a step.
    clip_norm : float
        Positive.
    use_norm : None
        MindSpore has no other value either.

    Returns
    -------
    tuple of Tensor
        x * clip_norm / max(norm, clip_norm) (Pascanu, Mikolov, Bengio 2013).

    Raises
    ------
    ArgumentError
        If `x` is empty or no list or tuple, if `clip_norm` is not positive, or if `use_norm` is given.

    Examples
    --------
    >>> import nbgrad as nb
    >>> [t.tolist() for t in nb.ops.clip_by_global_norm((nb.Tensor([3.0]), nb.Tensor([4.0])), 10.0)]
    [[3.0], [4.0]]
    """
    if not isinstance(x, list | tuple) or not x:
        message = f"clip_by_global_norm needs a list or tuple of at least one Tensor, but got {x!r:.60}."
        raise ArgumentError(message)
    if use_norm is not None or not clip_norm > 0:
        message = f"clip_norm must be positive and use_norm None, but got {clip_norm!r} and {use_norm!r}."
        raise ArgumentError(message)
    nodes = [inexact(as_node(value)) for value in x]
    total = vector_norm(Tensor._of(as_node([vector_norm(Tensor._of(node)) for node in nodes])))._node
    limit = scalar(clip_norm, total.dtype)
    factor = elementwise("divide", limit, elementwise("maximum", total, limit))
    return tuple([wrap(elementwise("multiply", node, cast(factor, node.dtype))) for node in nodes])


# ----- Scans -----


@spelled
def cumsum(x: Any, axis: int, dtype: Any = None) -> Tensor:
    """Running sums along an axis.

    Parameters
    ----------
    x : Tensor or ndarray
    axis : int
        Also called `dim`.
    dtype : dtype, optional
        Of the result.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.ops.cumsum(nb.Tensor([3.0, 1.0, 2.0]), 0).tolist()
    [3.0, 4.0, 6.0]
    """
    return cumulative.cumsum(x, axis, dtype)


@spelled
def cumprod(input: Any, dim: int, dtype: Any = None) -> Tensor:
    """Running products along an axis; the derivative is exact where elements are 0."""
    return cumulative.cumprod(input, dim, dtype)


def _running_extremum(name: str, input: Any, axis: Any) -> tuple[Tensor, Tensor]:
    node = as_node(input)
    if node.ndim == 0:
        axis_of(axis, 1)
        return wrap(node), Tensor(0)
    at = axis_of(axis, node.ndim)
    rows = to_last(node, at)
    if node.size == 0:
        return wrap(node), wrap(cast(node, INT64))
    hit = elementwise("equal", rows, accumulate(name, rows))
    if rows.dtype.kind == "f":
        hit = elementwise("logical_or", hit, elementwise("isnan", rows))
    here = elementwise("select", hit, positions(rows.shape, rows.ndim - 1), broadcast(literal(0, INT64), rows.shape))
    last = accumulate("maximum", here)
    return wrap(from_last(take_last(rows, last), at)), wrap(from_last(last, at))


@spelled
def cummax(input: Any, axis: int) -> tuple[Tensor, Tensor]:
    """Running greatest elements along an axis, and the positions of the last of them as int64; NaN wins."""
    return _running_extremum("maximum", input, axis)


@spelled
def cummin(input: Any, axis: int) -> tuple[Tensor, Tensor]:
    """Running least elements along an axis, and the positions of the last of them as int64; NaN wins."""
    return _running_extremum("minimum", input, axis)


@spelled
def trapz(y: Any, x: Any = None, *, dx: Any = 1.0, dim: int = -1) -> Tensor:
    """Integral along an axis by the trapezoidal rule, over positions `x` or steps `dx`."""
    return cumulative.trapezoid(y, x, dx, dim)


# ----- Other names -----

reduce_sum, reduce_mean, reduce_prod, reduce_max, reduce_min = sum, mean, prod, amax, amin
reduce_all, reduce_any = all, any
