"""Statistics: mean, var, std, average, covariance, counts.

In: array-likes. Out: Tensors. Called by users and by Tensor's methods. Variances are computed in two passes: the mean
first, then the mean of squared deviations. The derivative of `std` where all elements are equal is 0, as a norm's is.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, ShapeError
from ...graph.builders import cast, reduce, reshape, scatter_add, transpose
from ...graph.complex_numbers import conjugate, is_complex, pair, parts
from ...graph.ir import INT64, PART_OF, Node, broadcast, elementwise, extent
from ...graph.shapes import broadcasts
from ...record.as_node import as_node
from ...record.axes_and_dtypes import (
    FLOAT16,
    FLOAT32,
    Dtype,
    at_least,
    axes_of,
    deliver,
    demand,
    filled,
    inexact,
    integer,
    keep,
    real_dtype,
    safe_sqrt,
    scalar,
)
from ...record.numbers import FLOAT64
from ...record.promotion import float_of, promote
from ...record.tensor import Tensor
from ...record.zero_dimensional import as_array
from ...runtime.evaluate import concrete, require
from ..arrays.creation import diagonal_node
from ..arrays.joining import join
from ..arrays.reductions import mask_of, not_nan, reduce_ufunc
from ..linalg.matrix_products import matmul_node

# ----- On nodes -----


def _dtypes(node: Node, dtype: Any) -> tuple[Dtype, Dtype]:
    """The dtype to compute in and the dtype of the result; float16 is computed in float32."""
    if dtype is not None:
        wanted = real_dtype(dtype)
        return wanted, wanted
    if node.dtype.kind not in "fc":
        return FLOAT64, float_of(node)
    return (FLOAT32 if node.dtype == FLOAT16 else node.dtype), node.dtype


def _count(node: Node, axes: tuple[int, ...], mask: Node | None, keepdims: bool) -> Node:
    """The number of elements that are averaged: 0-d, or with a mask one number per result."""
    dtype = PART_OF.get(node.dtype, node.dtype)
    if mask is None:
        return extent(math.prod(node.shape[axis] for axis in axes), dtype)
    return _total(cast(mask, dtype), axes, keepdims)


def _total(node: Node, axes: tuple[int, ...], keepdims: bool) -> Node:
    total = reduce("sum", node, axes)
    return reshape(total, keep(node.shape, axes)) if keepdims else total


def _mean(node: Node, axes: tuple[int, ...], mask: Node | None, keepdims: bool) -> Node:
    count = _count(node, axes, mask, keepdims)
    if mask is not None:
        node = elementwise("select", mask, node, filled(node.shape, 0.0, node.dtype))
    return _total(node, axes, keepdims) / count


def mean_node(node: Node, axis: Any = None, dtype: Any = None, keepdims: bool = False, where: Any = True) -> Node:
    """The mean over axes, on a node."""
    axes = axes_of(axis, node.ndim)
    work, final = _dtypes(node, dtype)
    if work.kind not in "fc":
        # NumPy divides the integer sum and casts back.
        total = cast(reduce_ufunc("add", node, axes, keepdims, where=where, dtype=work), FLOAT64)
        count = _count(cast(node, FLOAT64), axes, mask_of(where, node), keepdims)
        return cast(total / count, work)
    return cast(_mean(cast(node, work), axes, mask_of(where, node), keepdims), final)


def dropped(node: Node, axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape after a reduction."""
    return tuple([n for axis, n in enumerate(node.shape) if axis not in axes])


def var_node(
    node: Node,
    axis: Any = None,
    dtype: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    where: Any = True,
    mean: Any = None,
) -> Node:
    """The variance over axes, on a node."""
    axes = axes_of(axis, node.ndim)
    work, final = _dtypes(node, dtype)
    mask = mask_of(where, node)
    x = cast(node, work)
    center = _mean(x, axes, mask, True) if mean is None else cast(as_node(mean), work)
    if not broadcasts(center.shape, x.shape):
        message = f"mean has shape {center.shape}, which does not broadcast to the array's shape {x.shape}."
        raise ShapeError(message)
    deviation = x - center
    square = deviation * deviation
    if is_complex(x):
        re, im = parts(deviation)
        square = re * re + im * im
        work, final = square.dtype, PART_OF[final]
    if mask is not None:
        square = elementwise("select", mask, square, filled(x.shape, 0.0, work))
    total = _total(square, axes, keepdims)
    if mask is None:
        size = math.prod(x.shape[axis] for axis in axes)
        degrees = extent(size - ddof if size > ddof else 0.0, work)
    else:
        degrees = elementwise("maximum", _count(x, axes, mask, keepdims) - scalar(ddof, work), 0.0)
    return cast(total / degrees, final)


def _freedom(ddof: float, correction: float | None) -> float:
    if correction is None:
        return ddof
    if ddof != 0:
        message = "Give either ddof or correction, not both: they mean the same."
        raise ArgumentError(message)
    return correction


# ----- Means and variances -----


def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True
) -> Tensor:
    """Arithmetic mean over axes.

    Parameters
    ----------
    a : array-like
    axis : int, tuple of int or None
        The axes to average over; None for all.
    dtype : dtype, optional
        The dtype to compute in. Default: float64 for integers; float16 is computed in float32 and cast back.
    out : Tensor or ndarray, optional
    keepdims : bool
    where : array-like of bool

    Returns
    -------
    Tensor
    """
    return deliver(mean_node(as_node(a), axis, dtype, keepdims, where), out)


def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Tensor:
    """Variance over axes: the mean of squared deviations from the mean, whose divisor is the count minus `ddof`."""
    return deliver(var_node(as_node(a), axis, dtype, _freedom(ddof, correction), keepdims, where, mean), out)


def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Tensor:
    """Standard deviation over axes, the root of `var`. Its derivative is 0 where all elements are equal."""
    variance = var_node(as_node(a), axis, dtype, _freedom(ddof, correction), keepdims, where, mean)
    return deliver(safe_sqrt(variance), out)


def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: bool = False) -> Any:
    """Weighted mean over axes; with `returned`, also the sum of weights."""
    node = as_node(a)
    axes = axes_of(axis, node.ndim)
    if weights is None:
        result = mean_node(node, axes, keepdims=keepdims)
        if not returned:
            return deliver(result)
        return deliver(result), deliver(filled(result.shape, node.size / (result.size or 1), result.dtype))
    weight = as_node(weights)
    if weight.shape != node.shape:
        if axis is None or weight.shape != tuple([node.shape[a] for a in axes]):
            message = f"weights of shape {weight.shape} fit neither the array's shape {node.shape} nor axis={axis!r}."
            raise ShapeError(message)
        order = sorted(range(len(axes)), key=lambda k: axes[k])
        weight = reshape(
            transpose(weight, tuple(order)), tuple([n if k in axes else 1 for k, n in enumerate(node.shape)])
        )
    node, weight = (inexact(v) for v in promote([node, weight]))
    total = reduce_ufunc("add", weight, axes, keepdims)
    result = reduce_ufunc("add", elementwise("multiply", node, weight), axes, keepdims) / total
    return (deliver(result), deliver(broadcast(total, result.shape))) if returned else deliver(result)


# ----- Without NaN -----


def _number_mask(node: Node, where: Any) -> Any:
    """The `where` of a NaN-ignoring function."""
    numbers, mask = not_nan(node), mask_of(where, node)
    if numbers is None or mask is None:
        found = numbers if numbers is not None else mask
        return True if found is None else Tensor._of(found)
    return Tensor._of(elementwise("logical_and", numbers, mask))


def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False, *, where: Any = True
) -> Tensor:
    """Mean over axes of the elements that are not NaN."""
    node = as_node(a)
    return deliver(mean_node(node, axis, dtype, keepdims, _number_mask(node, where)), out)


def _nan_var(node: Node, axis: Any, dtype: Any, freedom: float, keepdims: bool, where: Any, mean: Any) -> Node:
    """The result of `var_node` without NaNs; too few elements give NaN, as in NumPy."""
    mask = _number_mask(node, where)
    result = var_node(node, axis, dtype, freedom, keepdims, mask, mean)
    if mask is True:
        return result
    count = reduce_ufunc("add", cast(as_node(mask), result.dtype), axis, keepdims)
    enough = elementwise("greater", count, freedom)
    return elementwise("select", enough, result, filled(result.shape, np.nan, result.dtype))


def nanvar(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Tensor:
    """Variance over axes of the elements that are not NaN."""
    return deliver(_nan_var(as_node(a), axis, dtype, _freedom(ddof, correction), keepdims, where, mean), out)


def nanstd(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    ddof: float = 0,
    keepdims: bool = False,
    *,
    where: Any = True,
    mean: Any = None,
    correction: float | None = None,
) -> Tensor:
    """Standard deviation over axes of the elements that are not NaN."""
    variance = _nan_var(as_node(a), axis, dtype, _freedom(ddof, correction), keepdims, where, mean)
    return deliver(safe_sqrt(variance), out)


# ----- Several variables -----


def _covariance(
    m: Any, y: Any, rowvar: bool, ddof: float, dtype: Any, fweights: Any = None, aweights: Any = None
) -> Node:
    first = as_node(m)
    if first.ndim > 2 or (y is not None and as_node(y).ndim > 2):
        message = f"A covariance is between the rows of a matrix, but the shape is {first.shape}."
        raise ShapeError(message)
    if ddof != int(ddof):
        message = f"The ddof of a covariance must be an integer, but is {ddof}."
        raise ArgumentError(message)
    work = np.result_type(first.dtype, *([] if y is None else [as_node(y).dtype]), np.float64)
    work = work if dtype is None else real_dtype(dtype)

    def rows(node: Node) -> Node:
        turned = node.ndim == 2 and not rowvar
        return at_least(transpose(node, (1, 0)) if turned else node, 2)

    x = cast(rows(first), work)
    if y is not None:
        x = join([x, cast(rows(as_node(y)), work)], 0)
    n = x.shape[1]
    weight, divisor = _sample_weights(fweights, aweights, n, ddof)
    if weight is None:
        x = x - _mean(x, (1,), None, True)
        return matmul_node(x, transpose(conjugate(x), (1, 0))) / extent(n - ddof if n > ddof else 0.0, work)
    weight, divisor = cast(weight, work), cast(divisor, work)
    mean = reduce("sum", x * broadcast(weight, x.shape), (1,)) / reduce("sum", weight, (0,))
    x = x - reshape(mean, (x.shape[0], 1))
    return matmul_node(x, transpose(conjugate(x * broadcast(weight, x.shape)), (1, 0))) / divisor


def _sample_weights(fweights: Any, aweights: Any, n: int, ddof: float) -> tuple[Node | None, Node]:
    """The weight of each sample, None for none; and the divisor of their sum of products."""
    given: list[Node] = []
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is None:
            continue
        node = cast(as_node(weights), FLOAT64)
        if node.shape != (n,):
            message = f"{name} must have shape {(n,)}, one weight for each sample, but it has {node.shape}."
            raise ShapeError(message)
        negative = elementwise("less", node, 0.0)
        require(elementwise("logical_not", negative), f"{name} must not be negative.", ArgumentError)
        if name == "fweights":
            whole = elementwise("equal", node, elementwise("rint", node))
            require(whole, "fweights count samples, so they must be integers.", DtypeError)
        given.append(node)
    if not given:
        return None, extent(n - ddof, FLOAT64)
    weight = given[0] if len(given) == 1 else given[0] * given[1]
    total = reduce("sum", weight, (0,))
    if ddof == 0:
        divisor = total
    elif aweights is None:
        divisor = total - ddof
    else:
        divisor = total - elementwise("divide", reduce("sum", weight * given[-1], (0,)) * ddof, total)
    return weight, elementwise("maximum", divisor, 0.0)


def _squeezed(node: Node) -> Node:
    return reshape(node, tuple([n for n in node.shape if n != 1]))


def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: float | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Tensor:
    """Covariances between the rows of a matrix (its columns, without `rowvar`) and those of `y`.

    Parameters
    ----------
    m, y : array-like with one or two axes
        Variables and their samples.
    rowvar : bool
    bias : bool
        Whether to divide by the number of samples, instead of one less.
    ddof : int, optional
        The number to subtract from the number of samples; takes precedence over `bias`.
    fweights : array-like of int, optional
        How often each sample counts.
    aweights : array-like, optional
        The weight of each sample; differentiable.
    dtype : dtype, optional
        Float64 by default, even for float32, as in NumPy.

    Returns
    -------
    Tensor
    """
    freedom = ddof if ddof is not None else 0 if bias else 1
    return as_array(deliver(_squeezed(_covariance(m, y, rowvar, freedom, dtype, fweights, aweights))))


def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Tensor:
    """Correlations between the rows of a matrix (its columns, without `rowvar`) and those of `y`."""
    c = _covariance(x, y, rowvar, 1, dtype)
    n = c.shape[0]
    variances = diagonal_node(c, 0, 0, 1)
    deviation = cast(elementwise("sqrt", parts(variances)[0]), c.dtype)
    c = c / reshape(deviation, (n, 1)) / deviation
    c = pair(*map(_within_one, parts(c))) if is_complex(c) else _within_one(c)
    return deliver(_squeezed(c))


def _within_one(node: Node) -> Node:
    return elementwise("minimum", elementwise("maximum", node, -1.0), 1.0)


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> Tensor:
    """The count of each number from 0 on in a 1-d array of integers, or the sum of its weights."""
    node = as_node(x)
    if node.ndim != 1 or node.dtype.kind not in "iub":
        message = f"bincount needs a 1-d array of integers, but got {node.dtype} of shape {node.shape}."
        raise DtypeError(message)
    # The greatest number is the length of the result, so it must be known; the counts may still vary.
    top = int(concrete(reduce_ufunc("maximum", node, None, initial=0), "int")) + 1 if node.size else 0
    demand(elementwise("greater_equal", node, 0), "bincount needs numbers of 0 or more.")
    size = max(top, integer(minlength, "minlength"))
    if weights is None:
        return deliver(scatter_add(size, cast(node, INT64), filled(node.shape, 1, INT64)))
    weight = cast(as_node(weights), FLOAT64)
    if weight.shape != node.shape:
        message = f"bincount needs as many weights as numbers, but the shapes are {weight.shape} and {node.shape}."
        raise ShapeError(message)
    return deliver(scatter_add(size, cast(node, INT64), weight))
