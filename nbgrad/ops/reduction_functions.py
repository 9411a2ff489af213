"""Reductions and scans under MindSpore's names: sums, means, extrema with their positions, norms, running results.

In: Tensors, ndarrays, numbers, and the axes to reduce: an int, a tuple, or None or () for all. Out: Tensors, or pairs
of values and int64 positions. Called by users and by class_forms.py. Every function takes axis or dim, and keepdims,
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
from ..record.pairs import ValuesAndIndices
from ..record.tensor import Tensor
from .declarations import as_numpy, spelled
from .docstrings import documented


def _axes(axis: Any) -> Any:
    """NumPy's axes: MindSpore takes () for all axes too."""
    return None if isinstance(axis, list | tuple) and not axis else axis


# ----- Sums, products, means -----


@as_numpy(numpy_reductions.sum, dim=_axes)
def sum(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Sum over axes.

    dim : int, tuple of int or None
        The axes to sum over; None or () for all.
    dtype : dtype, optional
        Of the result. Booleans and integers of less than 64 bits are added as 64-bit integers by default.
    ShapeError : If an axis does not exist or appears twice.

    >>> nb.ops.sum(nb.Tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1).tolist()
    [3.0, 7.0]
    """
    ...


@as_numpy(statistics.mean, axis=_axes)
def mean(x: Any, axis: Any = None, keep_dims: bool = False, *, dtype: Any = None) -> Tensor:
    """Arithmetic mean over axes; integers give floats.

    axis : int, tuple of int or None
        The axes to average over; None or () for all.
    dtype : dtype, optional
        The dtype to compute in.

    >>> nb.ops.mean(nb.Tensor([[1.0, 2.0], [3.0, 4.0]]), axis=0, keep_dims=True).tolist()
    [[2.0, 3.0]]
    """
    ...


@as_numpy(numpy_reductions.prod, "Product over axes; its derivative is exact where elements are 0.", axis=_axes)
def prod(input: Any, axis: Any = None, keep_dims: bool = False, dtype: Any = None) -> Tensor: ...
@as_numpy(numpy_reductions.nansum, "Sum over axes of the elements that are not NaN.", axis=_axes)
def nansum(input: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor: ...
@as_numpy(statistics.nanmean, "Mean over axes of the elements that are not NaN.", axis=_axes)
def nanmean(input: Any, axis: Any = None, keepdims: bool = False, *, dtype: Any = None) -> Tensor: ...
@as_numpy(
    numpy_reductions.all, "Whether all elements over axes are true; numbers are true unless they are 0.", axis=_axes
)
def all(input: Any, axis: Any = None, keep_dims: bool = False) -> Tensor: ...
@as_numpy(
    numpy_reductions.any, "Whether any element over axes is true; numbers are true unless they are 0.", axis=_axes
)
def any(input: Any, axis: Any = None, keep_dims: bool = False) -> Tensor: ...


@spelled
def count_nonzero(x: Any, axis: Any = (), keep_dims: bool = False, dtype: Any = "int32") -> Tensor:
    """The number of elements over axes that are not 0, as int32 unless another dtype is given."""
    return wrap(cast(as_node(numpy_reductions.count_nonzero(x, _axes(axis), keepdims=keep_dims)), real_dtype(dtype)))


# ----- Spread -----


@as_numpy(statistics.var, axis=_axes)
def var(input: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Tensor:
    """Variance over axes: the mean of squared deviations from the mean, whose divisor is the count minus `ddof`.

    axis : int, tuple of int or None
        None or () for all.
    ddof : number or bool
        0 for the variance of the elements themselves, 1 for Bessel's correction.

    >>> nb.ops.var(nb.Tensor([1.0, 3.0]), ddof=1).item()
    2.0
    """
    ...


@as_numpy(
    statistics.std,
    "Standard deviation over axes, the root of `var`; its derivative is 0 where all elements are equal.",
    axis=_axes,
)
def std(input: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> Tensor: ...


@spelled
def std_mean(input: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean over axes."""
    return std(input, axis, ddof, keepdims), mean(input, axis, keepdims)


@spelled
def var_mean(input: Any, axis: Any = None, ddof: float = 0, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The variance and the mean over axes."""
    return var(input, axis, ddof, keepdims), mean(input, axis, keepdims)


# ----- Extrema -----


@as_numpy(numpy_reductions.max, axis=_axes)
def amax(input: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = True) -> Tensor:
    """Greatest element over axes; NaN wins, and equal greatest elements share the derivative.

    axis : int, tuple of int or None
        None or () for all.
    initial : number, optional
        The value to start from; needed with `where`.
    where : Tensor or ndarray of bool
        Elements to include.
    ShapeError : If there are no elements and no initial value.

    >>> nb.grad(nb.ops.amax)(nb.Tensor([3.0, 1.0, 3.0])).tolist()
    [0.5, 0.0, 0.5]
    """
    ...


@as_numpy(numpy_reductions.min, "Least element over axes; parameters and conventions as `amax`.", axis=_axes)
def amin(input: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = True) -> Tensor: ...


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

    axis : int or None
        One axis. None for the greatest of all elements, with 0 as its position.
    keepdims : bool
        Whether the axis stays, with extent 1.
    initial : number, optional
        The least value of the result; needed with `where`.
    where : Tensor or ndarray of bool
        Elements to include.
    -> values : Tensor
        The derivative goes to the element at the position, or, without an axis, is shared by equal ones.
    -> positions : Tensor
        int64; the first of several. NaN counts as the greatest.
    ShapeError : If the axis does not exist or has no elements.

    >>> values, positions = nb.ops.max(nb.Tensor([[1.0, 5.0], [7.0, 2.0]]), axis=1)
    >>> values.tolist(), positions.tolist()
    ([5.0, 7.0], [1, 0])
    """
    return _with_position("max", input, axis, keepdims, initial, where)


@spelled
def min(
    input: Any, axis: Any = None, keepdims: bool = False, *, initial: Any = None, where: Any = True
) -> tuple[Tensor, Tensor]:
    """The least elements along an axis and their positions; parameters and conventions as `max`.

    axis : int or None
    """
    return _with_position("min", input, axis, keepdims, initial, where)


@as_numpy(numpy_reductions.argmax)
def argmax(input: Any, dim: Any = None, keepdim: bool = False) -> Tensor:
    """Position of the first greatest element along an axis (of the flat array, if None), as int64; NaN wins.

    dim : int or None
    """
    ...


@as_numpy(numpy_reductions.argmin, result=lambda places: places.astype("int32"))
def argmin(input: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """Position of the first least element along an axis (of the flat array, if None), as int32; NaN wins.

    axis : int or None
    """
    ...


@spelled
def median(input: Any, axis: Any = -1, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The middle elements along an axis and their positions; of an even number of elements, the lower middle one.

    -> values : Tensor
        NaN where an element is NaN.
    -> positions : Tensor
        int64.
    ShapeError : If the axis does not exist or has no elements.

    >>> values, positions = nb.ops.median(nb.Tensor([4.0, 1.0, 3.0, 2.0]))
    >>> values.item(), positions.item()
    (2.0, 3)
    """
    node = as_node(input)
    if node.ndim == 0:
        axis_of(axis, 1)
        return ValuesAndIndices(wrap(node), Tensor(0))
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
    return ValuesAndIndices(wrap(value), wrap(reshape(place, value.shape)))


# ----- Norms -----


@spelled
def norm(
    A: Any, ord: Any = None, dim: Any = None, keepdim: bool = False, *, dtype: Any = None, p: Any = None
) -> Tensor:
    """Norm of vectors or matrices; its derivative where the norm is 0 is 0.

    ord : number, "fro" or None
        For vectors any number, inf and -inf included; for matrices "fro", 1, -1, inf, -inf. None is the root of the
        sum of squares over whatever axes.
    dim : int, tuple of int or None
        One axis means vectors, two mean matrices; None the whole array.
    dtype : dtype, optional
        The dtype to compute in.
    p : number or "fro", optional
        PyTorch's order, which is one of vectors, also of all elements of a matrix.
    ArgumentError : If `ord` does not exist for vectors or matrices.

    >>> nb.ops.norm(nb.Tensor([[3.0, 4.0], [6.0, 8.0]]), dim=1).tolist()
    [5.0, 10.0]
    """
    values = _in_dtype(A, dtype)
    if p is not None:
        return norms.vector_norm(values, axis=_axes(dim), keepdims=keepdim, ord=2 if p == "fro" else p)
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


@as_numpy(
    special.logsumexp,
    "log(sum(exp(input))) over axes, without overflow; -inf where all elements are -inf, with derivative 0.",
    axis=_axes,
)
def logsumexp(input: Any, axis: Any, keep_dims: bool = False) -> Tensor: ...


@documented
def clip_by_global_norm(x: Sequence[Any], clip_norm: float = 1.0, use_norm: Any = None) -> tuple[Tensor, ...]:
    """Tensors scaled together so that the norm of all their elements is at most `clip_norm`.

    x : list or tuple of Tensor
        For example all gradients of a step.
    clip_norm : float
        Positive.
    use_norm : None
        MindSpore has no other value either.
    -> tuple of Tensor
        x * clip_norm / max(norm, clip_norm) (Pascanu, Mikolov, Bengio 2013).
    ArgumentError : If `x` is empty or no list or tuple, if `clip_norm` is not positive, or if `use_norm` is given.

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
    """Running sums along an axis, in the dtype of the elements (int64 for booleans).

    >>> nb.ops.cumsum(nb.Tensor([3.0, 1.0, 2.0]), 0).tolist()
    [3.0, 4.0, 6.0]
    """
    node = as_node(x)
    kept = node.dtype if dtype is None and node.dtype.kind in "iu" and not node.weak else dtype
    return cumulative.cumsum(Tensor._of(node), axis, kept)


@as_numpy(cumulative.cumprod, "Running products along an axis; the derivative is exact where elements are 0.")
def cumprod(input: Any, dim: int, dtype: Any = None) -> Tensor: ...


def _running_extremum(name: str, input: Any, axis: Any) -> tuple[Tensor, Tensor]:
    node = as_node(input)
    if node.ndim == 0:
        axis_of(axis, 1)
        return ValuesAndIndices(wrap(node), Tensor(0))
    at = axis_of(axis, node.ndim)
    rows = to_last(node, at)
    if node.size == 0:
        return wrap(node), wrap(cast(node, INT64))
    hit = elementwise("equal", rows, accumulate(name, rows))
    if rows.dtype.kind == "f":
        hit = elementwise("logical_or", hit, elementwise("isnan", rows))
    here = elementwise("select", hit, positions(rows.shape, rows.ndim - 1), broadcast(literal(0, INT64), rows.shape))
    last = accumulate("maximum", here)
    return ValuesAndIndices(wrap(from_last(take_last(rows, last), at)), wrap(from_last(last, at)))


@spelled
def cummax(input: Any, axis: int) -> tuple[Tensor, Tensor]:
    """Running greatest elements along an axis, and the positions of the last of them as int64; NaN wins."""
    return _running_extremum("maximum", input, axis)


@spelled
def cummin(input: Any, axis: int) -> tuple[Tensor, Tensor]:
    """Running least elements along an axis, and the positions of the last of them as int64; NaN wins."""
    return _running_extremum("minimum", input, axis)


@as_numpy(cumulative.trapezoid, "Integral along an axis by the trapezoidal rule, over positions `x` or steps `dx`.")
def trapz(y: Any, x: Any = None, *, dx: Any = 1.0, dim: int = -1) -> Tensor: ...


# ----- Other names -----

reduce_sum, reduce_mean, reduce_prod, reduce_max, reduce_min = sum, mean, prod, amax, amin
reduce_all, reduce_any = all, any
