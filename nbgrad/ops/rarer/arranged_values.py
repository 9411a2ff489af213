"""Combinations of arrays, quantiles, covariances, and activations with thresholds or random slopes.

In: array-likes. Out: Tensors. Called by users and layers, and by class forms.
"""

from __future__ import annotations

from typing import Any

import numpy

from ...errors import ArgumentError, DtypeError, ShapeError
from ...record.axes_and_dtypes import axis_of, only
from ...record.tensor import Tensor
from ...transforms.custom import stop_gradient
from ..activations import silu, softmax
from ..docstrings import documented
from ..gathering import gather, searchsorted
from ..linear_algebra import einsum
from ..random_tensors import uniform
from .special_values import float_of, value_of

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


def _dtype(x: Any) -> numpy.dtype[Any]:
    return numpy.dtype(x.dtype.name)


# ----- Products and combinations -----


@documented
def cartesian_prod(*inputs: Any) -> Tensor:
    """All combinations of one element of each array, as rows; the last array changes fastest.

    *inputs : Tensor or ndarray, 1-d

    >>> nb.ops.cartesian_prod(nb.Tensor([1, 2]), nb.Tensor([5, 6])).tolist()
    [[1, 5], [1, 6], [2, 5], [2, 6]]
    """
    if not inputs:
        message = "cartesian_prod takes at least one array."
        raise ArgumentError(message)
    grid = np.meshgrid(*[value_of(one) for one in inputs], indexing="ij")
    return np.stack(grid, -1).reshape((-1, len(inputs)))


@documented
def vecdot(x: Any, y: Any, *, axis: int = -1) -> Tensor:
    """The sums of products along an axis; the first array is conjugated.

    x, y : Tensor or ndarray
        They broadcast.
    axis : int
    """
    return np.sum(np.conj(value_of(x)) * value_of(y), axis)


@documented
def bidense(input1: Any, input2: Any, weight: Any, bias: Any = None) -> Tensor:
    """`input1 @ W @ input2 + bias` for a matrix W of each output.

    input1 : Tensor or ndarray, shape (..., m)
    input2 : Tensor or ndarray, shape (..., n)
    weight : Tensor or ndarray, shape (out, m, n)
    bias : Tensor, optional, shape (out,)
    """
    product = einsum("...i,kij,...j->...k", value_of(input1), value_of(weight), value_of(input2))
    return product if bias is None else product + value_of(bias)


@documented
def adjoint(x: Any) -> Tensor:
    """The last two axes exchanged, and complex numbers conjugated.

    x : Tensor or ndarray, shape (..., m, n)
    """
    return np.conj(np.swapaxes(value_of(x), -1, -2))


@documented
def diagflat(input: Any, offset: int = 0) -> Tensor:
    """A matrix with all elements of an array on a diagonal.

    offset : int
        The number of the diagonal: above the main one if positive.
    """
    return np.diagflat(value_of(input), offset)


@documented
def t(input: Any) -> Tensor:
    """A matrix turned; other arrays as they are."""
    x = value_of(input)
    return np.swapaxes(x, 0, 1) if x.ndim == 2 else x


# ----- Elementwise -----


@documented
def ldexp(x: Any, other: Any) -> Tensor:
    """x * 2 ** other.

    x, other : Tensor, ndarray or number
    """
    first, exponent = value_of(x), value_of(other)
    dtype = first.dtype if first.dtype.kind == "f" else exponent.dtype if exponent.dtype.kind == "f" else np.float32
    return first * np.exp2(exponent.astype(dtype))


@documented
def sgn(input: Any) -> Tensor:
    """The sign; for complex numbers z / abs(z), and 0 for 0."""
    x = value_of(input)
    if x.dtype.kind != "c":
        return np.sign(x)
    length = np.abs(x)
    return x / np.where(length == 0, 1, length)


@documented
def type_as(input: Any, other: Any) -> Tensor:
    """The elements in the dtype of another array."""
    return value_of(input).astype(_dtype(value_of(other)))


@documented
def threshold(input: Any, thr: float, value: float) -> Tensor:
    """x where it is above a threshold, else a value.

    thr, value : float
    """
    x = value_of(input)
    return np.where(x > thr, x, value).astype(_dtype(x))


@documented
def rrelu(input: Any, lower: float = 1.0 / 8, upper: float = 1.0 / 3) -> Tensor:
    """x where it is positive, else x times a random slope between two numbers (Xu et al. 2015).

    lower, upper : float
    DtypeError : If a bound is no number.
    ArgumentError : If the lower bound is above the upper one.
    """
    for name, bound in (("lower", lower), ("upper", upper)):
        if isinstance(bound, bool) or not isinstance(bound, int | float):
            message = f"{name} of rrelu must be a number, but is {bound!r:.40}."
            raise DtypeError(message)
    if lower > upper:
        message = f"rrelu draws slopes from lower to upper, but lower={lower} is above upper={upper}."
        raise ArgumentError(message)
    x = float_of(input)
    slopes = uniform(x.shape, np.float32(lower), np.float32(upper)).astype(_dtype(x))
    return np.where(x > 0, x, slopes * x)


@documented
def swiglu(input: Any, dim: int = -1) -> Tensor:
    """The second half of an axis times the SiLU of the first half (Shazeer 2020).

    dim : int
        An axis of even extent.
    """
    x = float_of(input)
    if x.shape[axis_of(dim, x.ndim)] % 2:
        message = f"swiglu halves axis {dim}, whose extent must be even, but the shape is {x.shape}."
        raise ShapeError(message)
    first, second = np.split(x, 2, dim)
    return silu(first) * second


# ----- Places and rows -----


@documented
def bucketize(input: Any, boundaries: Any, *, right: bool = False) -> Tensor:
    """The numbers of the intervals between sorted boundaries in which elements lie.

    boundaries : list of number
        Sorted.
    right : bool
        Whether an element that equals a boundary lies after it.
    -> Tensor of int32

    >>> nb.ops.bucketize(nb.Tensor([0.5, 3.0, 9.0]), [1.0, 3.0, 5.0]).tolist()
    [0, 1, 3]
    """
    x = value_of(input)
    dtype = np.float64 if x.dtype == np.float64 else np.float32
    edges = Tensor(numpy.asarray(value_of(boundaries)).astype(dtype))
    return searchsorted(edges, x.astype(dtype), out_int32=True, right=right)


def intervals(x: Any, boundaries: Any) -> Tensor:
    """`bucketize` by the options of its class form: an element that equals a boundary lies after it."""
    return bucketize(x, boundaries, right=True)


@documented
def embedding(
    input: Any,
    weight: Any,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
) -> Tensor:
    """Rows of a table.

    input : Tensor or ndarray of int
        The positions of the rows.
    weight : Tensor or ndarray, shape (rows, n)
    padding_idx : int, optional
        A row that takes no derivative.
    max_norm, scale_grad_by_freq : {None, False}
        Other values are refused.
    norm_type : float
        Has no effect.
    """
    only("max_norm", max_norm, None)
    only("scale_grad_by_freq", scale_grad_by_freq, False)
    del norm_type
    rows = gather(weight, input, 0)
    if padding_idx is None:
        return rows
    fixed = axis_of(padding_idx, value_of(weight).shape[0])
    return np.where((value_of(input) == fixed)[..., None], stop_gradient(rows), rows)


# ----- Statistics -----


def _weights(value: Any, name: str, kinds: str, count: int) -> Any:
    """Weights of observations.

    Raises
    ------
    DtypeError, ShapeError
        If they have another kind of numbers, or another length.
    """
    if value is None:
        return None
    found = value_of(value)
    if found.dtype.kind not in kinds:
        message = f"{name} of cov must be {'integers' if 'i' in kinds else 'floats'}, but have dtype {found.dtype}."
        raise DtypeError(message)
    if found.ndim > 1 or found.size != count:
        message = f"{name} of cov must have one number for each of {count} columns, but their shape is {found.shape}."
        raise ShapeError(message)
    return found


@documented
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Tensor:
    """The covariances of variables, which are rows, over observations, which are columns.

    input : Tensor or ndarray, shape (n, m) or (m,)
    correction : int
        Subtracted from the number of observations.
    fweights : Tensor of int, optional, shape (m,)
        How often each observation counts.
    aweights : Tensor of float, optional, shape (m,)
        How much each observation counts.
    -> Tensor, shape (n, n), or 0-d for one variable
    ShapeError : For more than two axes.

    >>> print(nb.ops.cov(nb.Tensor([[0.0, 1.0, 2.0], [2.0, 0.0, 1.0]])))
    [[ 1.  -0.5]
     [-0.5  1. ]]
    """
    x = float_of(input)
    if x.ndim > 2:
        message = f"cov takes a vector or a matrix of variables, but the shape is {x.shape}."
        raise ShapeError(message)
    rows = x.reshape((1, -1)) if x.ndim < 2 else x
    rows = rows.astype(np.float32) if _dtype(rows).itemsize < 4 else rows
    count = rows.shape[1]
    often, much = _weights(fweights, "fweights", "iu", count), _weights(aweights, "aweights", "f", count)
    weights = often if much is None else much if often is None else often * much
    if weights is None:
        total, centre, weighted = count, np.sum(rows, 1, keepdims=True) / count, 1
    else:
        weighted = weights.astype(_dtype(rows))
        total = np.sum(weighted)
        centre = np.sum(rows * weighted, 1, keepdims=True) / total
    less: Any = correction
    if much is not None and correction:
        less = correction * np.sum(weighted * much.astype(_dtype(rows))) / total
    distance = rows - centre
    found = (distance * weighted) @ np.conj(np.swapaxes(distance, 0, 1)) / np.maximum(total - less, 0)
    return found.reshape(()) if found.size == 1 else found


def _quantile(function: Any, input: Any, q: Any, axis: int | None, keepdims: bool) -> Tensor:
    x = float_of(input)
    parts = value_of(q)
    if parts.ndim > 1:
        message = f"q of a quantile is a number or has one axis, but its shape is {parts.shape}."
        raise ShapeError(message)
    return function(x, parts.astype(_dtype(x)), axis=axis, keepdims=keepdims).astype(_dtype(x))


@documented
def quantile(input: Any, q: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The numbers below which some part of the elements lies, by straight lines between them.

    q : float, Tensor or ndarray
        Parts between 0 and 1; an axis of them becomes the first axis.
    axis : int, optional
        All elements by default.

    >>> print(nb.ops.quantile(nb.Tensor([1.0, 2.0, 4.0]), 0.75))
    3.0
    """
    return _quantile(np.quantile, input, q, axis, keepdims)


@documented
def nanquantile(input: Any, q: Any, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """`quantile` without NaN.

    q : float, Tensor or ndarray
    axis : int, optional
    """
    return _quantile(np.nanquantile, input, q, axis, keepdims)


def deviations_and_means(x: Any, axis: Any, unbiased: bool, keep_dims: bool) -> tuple[Tensor, Tensor]:
    """Standard deviations and means along axes."""
    numbers = float_of(x)
    axes = tuple(axis) or None if isinstance(axis, tuple | list) else axis
    spread = np.std(numbers, axes, ddof=int(unbiased), keepdims=keep_dims)
    return spread, np.mean(numbers, axes, keepdims=keep_dims)


def quantile_of(x: Any, q: Any, dim: int | None, keep_dims: bool, ignore_nan: bool) -> Tensor:
    """`quantile` or `nanquantile` by the options of its class form."""
    return (nanquantile if ignore_nan else quantile)(x, q, dim, keep_dims)


# ----- Layers -----


def above(x: Any, threshold: float, value: float) -> Tensor:
    """`threshold` by the options of its layer."""
    x = value_of(x)
    return np.where(x > threshold, x, value).astype(_dtype(x))


def rolled(x: Any, shift: Any, axis: Any) -> Tensor:
    """Elements moved along axes."""
    return np.roll(value_of(x), shift, axis)


def softmax_of_channels(x: Any) -> Tensor:
    """The softmax over the channels of images (N, C, H, W) or (C, H, W).

    Raises
    ------
    ShapeError
        For other numbers of axes.
    """
    images = float_of(x)
    if images.ndim not in (3, 4):
        message = f"Softmax2d takes images (N, C, H, W) or (C, H, W), but the shape is {images.shape}."
        raise ShapeError(message)
    return softmax(images, -3)


def unflattened(input: Any, axis: int, unflattened_size: Any) -> Tensor:
    """One axis as several ones of these extents."""
    x = value_of(input)
    at = axis_of(axis, x.ndim)
    return x.reshape((*x.shape[:at], *unflattened_size, *x.shape[at + 1 :]))


def mean_and_variance(x: Any, axis: Any, keep_dims: bool | None) -> tuple[Tensor, Tensor]:
    """Means and variances over axes, or over all of them; float16 is summed up in float32."""
    numbers = float_of(x)
    wide = numbers.astype(np.float32) if _dtype(numbers).itemsize < 4 else numbers
    axes = None if axis is None or axis == () else axis
    found = np.mean(wide, axes, keepdims=bool(keep_dims)), np.var(wide, axes, keepdims=bool(keep_dims))
    return found[0].astype(_dtype(numbers)), found[1].astype(_dtype(numbers))


# ----- Names that NumPy had before -----


def float_array(a: Any, dtype: Any = "float32") -> Tensor:
    """An array-like as an array of floating-point numbers."""
    return value_of(a).astype(dtype)


def elements_in(ar1: Any, ar2: Any, invert: bool = False) -> Tensor:
    """Whether each element of the flat array is in another; `invert` for not."""
    return np.isin(value_of(ar1).ravel(), value_of(ar2), invert=invert)
