"""Filters of `scipy.ndimage` by neighbours: correlations, convolutions, Gaussian and uniform filters, extrema, medians.

In: images, weights, widths, border modes. Out: Tensors, with derivatives by images and weights. Called by code that
`differentiable_source` runs, by scipy_table.py. An image is extended over its borders once; a result is a weighted sum
of its shifted parts.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from .. import numpy as np
from ..errors import ArgumentError, DtypeError
from ..record.axes_and_dtypes import only
from ..record.tensor import Tensor

MODES = ("reflect", "constant", "nearest", "mirror", "wrap", "grid-mirror", "grid-constant", "grid-wrap")
MOST_TERMS = 64
"""Weights up to which a sum has a term for each; more of them are a product with windows."""


def image(name: str, value: Any) -> Any:
    """An image of floats or complex numbers.

    Raises
    ------
    DtypeError
        For integers, which SciPy rounds to.
    """
    found = np.asarray(value)
    if found.dtype.kind not in "fc":
        message = (
            f"{name} gives {found.dtype} for an image of {found.dtype}, which has no derivative: use x.astype(float)."
        )
        raise DtypeError(message)
    return found


def places(n: int, before: int, after: int, mode: str) -> numpy.ndarray:
    """The elements of a line of n that stand at -before to n + after - 1."""
    at = numpy.arange(-before, n + after)
    if mode in ("reflect", "grid-mirror"):
        at = at % (2 * n)
        return numpy.where(at < n, at, 2 * n - 1 - at)
    if mode == "mirror":
        if n == 1:
            return at * 0
        at = at % (2 * n - 2)
        return numpy.where(at < n, at, 2 * n - 2 - at)
    return at % n if mode in ("wrap", "grid-wrap") else numpy.clip(at, 0, n - 1)


def extended(x: Any, axis: int, before: int, after: int, mode: str, cval: Any) -> Any:
    """An image with elements beyond both ends of an axis."""
    only("mode", mode, *MODES)
    if before < 0 or after < 0:
        message = (
            f"A filter's origin must be inside of it, but would need {before} and {after} elements beyond the ends."
        )
        raise ArgumentError(message)
    if mode in ("constant", "grid-constant"):
        width = [(before, after) if k == axis else (0, 0) for k in range(x.ndim)]
        return np.pad(x, width, constant_values=cval)
    return np.take(x, places(x.shape[axis], before, after, mode), axis=axis)


def _each(value: Any, count: int, name: str) -> list[Any]:
    """One value for each axis."""
    if isinstance(value, str) or (not isinstance(value, list | tuple) and getattr(value, "ndim", 0) == 0):
        return [value] * count
    if len(value) != count:
        message = f"{name} must have one value for each of {count} axes, but has {len(value)}."
        raise ArgumentError(message)
    return [*value]


def _axes(axes: Any, ndim: int) -> list[int]:
    given = range(ndim) if axes is None else [axes] if isinstance(axes, int) else axes
    return [operator.index(axis) % ndim for axis in given]


def _shape(weights: Any) -> tuple[int, ...]:
    return tuple(numpy.shape(weights)) if not isinstance(weights, Tensor) else weights.shape


def _correlated(
    x: Any, weights: Any, axes: Sequence[int], modes: Sequence[str], cval: Any, origins: Sequence[int]
) -> Any:
    """The sum of weights times shifted parts of an image."""
    shape, dtype, sizes = x.shape, x.dtype, _shape(weights)
    for axis, size, mode, origin in zip(axes, sizes, modes, origins, strict=True):
        before = size // 2 + operator.index(origin)
        x = extended(x, axis, before, size - 1 - before, mode, cval)
    if numpy.prod(sizes) > MOST_TERMS:
        windows = np.lib.stride_tricks.sliding_window_view(x, sizes, axis=tuple(axes))
        return np.tensordot(windows, weights, axes=len(sizes)).astype(dtype)
    total: Any = 0.0
    for at in itertools.product(*[range(size) for size in sizes]):
        weight = weights[at]
        if isinstance(weight, Tensor) or weight != 0:
            total = total + x[_part(shape, axes, at)] * weight
    return (total + np.zeros(shape, dtype)).astype(dtype)


def _part(shape: Sequence[int], axes: Sequence[int], at: Sequence[int]) -> tuple[slice, ...]:
    found = [slice(None)] * len(shape)
    for axis, start in zip(axes, at, strict=True):
        found[axis] = slice(start, start + shape[axis])
    return tuple(found)


def _weights(value: Any) -> Any:
    return value if isinstance(value, Tensor) else np.asarray(value) if _holds(value) else numpy.asarray(value)


def _holds(value: Any) -> bool:
    return isinstance(value, list | tuple) and any(isinstance(v, Tensor) or _holds(v) for v in value)


# ----- Along one axis -----


def correlate1d(
    input: Any, weights: Any, axis: int = -1, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> Any:
    """A correlation along an axis."""
    x = image("correlate1d", input)
    return _correlated(x, _weights(weights), _axes(axis, x.ndim), [mode], cval, [origin])


def convolve1d(
    input: Any, weights: Any, axis: int = -1, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> Any:
    """A convolution along an axis."""
    weights = _weights(weights)
    origin = -origin - (1 if _shape(weights)[0] % 2 == 0 else 0)
    return correlate1d(input, weights[::-1], axis, mode, cval, origin)


def uniform_filter1d(
    input: Any, size: int, axis: int = -1, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> Any:
    """Moving averages along an axis."""
    return correlate1d(input, numpy.full(size, 1 / size), axis, mode, cval, origin)


def _gaussian(sigma: Any, order: int, radius: int) -> Any:
    """The weights of a derivative of a Gaussian: a polynomial times it."""
    x = numpy.arange(-radius, radius + 1)
    variance = sigma * sigma
    weights = np.exp(-0.5 / variance * x**2) if isinstance(sigma, Tensor) else numpy.exp(-0.5 / variance * x**2)
    weights = weights / weights.sum()
    factors: list[Any] = [1.0]
    for _ in range(order):
        slopes = [k * factors[k] for k in range(1, len(factors))] + [0.0, 0.0]
        factors = [a - b for a, b in zip(slopes, [0.0, *[f / variance for f in factors]], strict=True)]
    return sum((factor * x**k for k, factor in enumerate(factors)), 0.0) * weights


def gaussian_filter1d(
    input: Any, sigma: Any, axis: int = -1, order: int = 0, mode: str = "reflect", cval: Any = 0.0,
    truncate: float = 4.0, radius: Any = None,
) -> Any:  # fmt: skip
    """A Gaussian filter along an axis.

    Raises
    ------
    ArgumentError
        For a recorded width without a radius: how many elements take part would depend on it.
    """
    if radius is None:
        if isinstance(sigma, Tensor) and sigma._node.traced:
            message = "A Gaussian filter of a recorded sigma needs radius=, how many elements on each side take part."
            raise ArgumentError(message)
        radius = int(truncate * float(sigma) + 0.5)
    return correlate1d(input, _gaussian(sigma, order, radius)[::-1], axis, mode, cval, 0)


# ----- Along several axes -----


def _one_by_one(name: str, input: Any, axes: Any, step: Callable[..., Any], **options: Any) -> Any:
    """A filter along one axis after the other, with options for each."""
    x = image(name, input)
    chosen = _axes(axes, x.ndim)
    given = [_each(value, len(chosen), key) for key, value in options.items()]
    for axis, *values in zip(chosen, *given, strict=True):
        x = step(x, axis, *values)
    return x


def gaussian_filter(
    input: Any, sigma: Any, order: Any = 0, mode: Any = "reflect", cval: Any = 0.0, truncate: float = 4.0,
    radius: Any = None, axes: Any = None,
) -> Any:  # fmt: skip
    """A Gaussian filter along all axes, or some of them."""

    def step(x: Any, axis: int, sigma: Any, order: int, mode: str, radius: Any) -> Any:
        if not isinstance(sigma, Tensor) and not sigma > 1e-15:
            return x
        return gaussian_filter1d(x, sigma, axis, order, mode, cval, truncate, radius)

    return _one_by_one("gaussian_filter", input, axes, step, sigma=sigma, order=order, mode=mode, radius=radius)


def uniform_filter(
    input: Any, size: Any = 3, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, axes: Any = None
) -> Any:
    """Moving averages along all axes, or some of them."""

    def step(x: Any, axis: int, size: int, mode: str, origin: int) -> Any:
        return x if size <= 1 else uniform_filter1d(x, size, axis, mode, cval, origin)

    return _one_by_one("uniform_filter", input, axes, step, size=size, mode=mode, origin=origin)


def _across(input: Any, axis: int, mode: Any, cval: Any, smooth: Sequence[float], name: str) -> Any:
    """Differences along an axis, smoothed along all others."""
    x = image(name, input)
    axis, modes = axis % x.ndim, _each(mode, x.ndim, "mode")
    x = correlate1d(x, [-1, 0, 1], axis, modes[axis], cval)
    for other in range(x.ndim):
        if other != axis:
            x = correlate1d(x, smooth, other, modes[other], cval)
    return x


def sobel(input: Any, axis: int = -1, mode: Any = "reflect", cval: Any = 0.0) -> Any:
    """Sobel's differences."""
    return _across(input, axis, mode, cval, [1, 2, 1], "sobel")


def prewitt(input: Any, axis: int = -1, mode: Any = "reflect", cval: Any = 0.0) -> Any:
    """Prewitt's differences."""
    return _across(input, axis, mode, cval, [1, 1, 1], "prewitt")


def laplace(input: Any, mode: Any = "reflect", cval: Any = 0.0, axes: Any = None) -> Any:
    """The sum of second differences along the axes."""
    x = image("laplace", input)
    chosen = _axes(axes, x.ndim)
    modes = _each(mode, len(chosen), "mode")
    return sum(correlate1d(x, [1, -2, 1], axis, mode, cval) for axis, mode in zip(chosen, modes, strict=True))


def _of_each_axis(
    name: str, input: Any, sigma: Any, mode: Any, cval: Any, axes: Any, order: int, **options: Any
) -> Any:
    """Gaussian filters, each of them differentiated along one axis."""
    x = image(name, input)
    chosen = _axes(axes, x.ndim)
    sigmas, modes = _each(sigma, len(chosen), "sigma"), _each(mode, len(chosen), "mode")
    orders = [[order if k == axis else 0 for k in chosen] for axis in chosen]
    return [gaussian_filter(x, sigmas, one, modes, cval, axes=tuple(chosen), **options) for one in orders]


def gaussian_laplace(
    input: Any, sigma: Any, mode: Any = "reflect", cval: Any = 0.0, axes: Any = None, truncate: float = 4.0,
    radius: Any = None,
) -> Any:  # fmt: skip
    """The sum of second derivatives of Gaussian filters."""
    options = {"truncate": truncate, "radius": radius}
    return sum(_of_each_axis("gaussian_laplace", input, sigma, mode, cval, axes, 2, **options))


def gaussian_gradient_magnitude(
    input: Any, sigma: Any, mode: Any = "reflect", cval: Any = 0.0, axes: Any = None, truncate: float = 4.0,
    radius: Any = None,
) -> Any:  # fmt: skip
    """The length of the gradient of a Gaussian filter."""
    options = {"truncate": truncate, "radius": radius}
    found = _of_each_axis("gaussian_gradient_magnitude", input, sigma, mode, cval, axes, 1, **options)
    return np.sqrt(sum(one * one for one in found))


def correlate(
    input: Any, weights: Any, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, axes: Any = None
) -> Any:
    """A correlation with weights along all axes, or some of them."""
    x, weights = image("correlate", input), _weights(weights)
    chosen = _axes(axes, x.ndim)
    if len(_shape(weights)) != len(chosen):
        message = f"correlate needs weights with {len(chosen)} axes, but they have shape {_shape(weights)}."
        raise ArgumentError(message)
    count = len(chosen)
    return _correlated(x, weights, chosen, _each(mode, count, "mode"), cval, _each(origin, count, "origin"))


def convolve(
    input: Any, weights: Any, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0, axes: Any = None
) -> Any:
    """A convolution with weights along all axes, or some of them."""
    weights = _weights(weights)
    sizes = _shape(weights)
    origins = [
        -o - (1 if size % 2 == 0 else 0) for o, size in zip(_each(origin, len(sizes), "origin"), sizes, strict=True)
    ]
    return correlate(input, weights[tuple([slice(None, None, -1)] * len(sizes))], mode, cval, origins, axes)


# ----- Extrema and medians -----


def _neighbours(name: str, input: Any, size: Any, footprint: Any, mode: Any, cval: Any, origin: Any, axes: Any) -> Any:
    """All neighbours of each element, along a new first axis."""
    x = image(name, input)
    chosen = _axes(axes, x.ndim)
    count = len(chosen)
    taking = numpy.ones(_each(size, count, "size"), bool) if footprint is None else numpy.asarray(footprint, bool)
    shape = x.shape
    modes, origins = _each(mode, count, "mode"), _each(origin, count, "origin")
    for axis, extent, one, at in zip(chosen, taking.shape, modes, origins, strict=True):
        before = extent // 2 + at
        x = extended(x, axis, before, extent - 1 - before, one, cval)
    return np.stack([x[_part(shape, chosen, at)] for at in numpy.argwhere(taking).tolist()])


def maximum_filter(
    input: Any, size: Any = None, footprint: Any = None, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0,
    axes: Any = None,
) -> Any:  # fmt: skip
    """The greatest neighbour."""
    return np.max(_neighbours("maximum_filter", input, size, footprint, mode, cval, origin, axes), axis=0)


def minimum_filter(
    input: Any, size: Any = None, footprint: Any = None, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0,
    axes: Any = None,
) -> Any:  # fmt: skip
    """The least neighbour."""
    return np.min(_neighbours("minimum_filter", input, size, footprint, mode, cval, origin, axes), axis=0)


def maximum_filter1d(
    input: Any, size: int, axis: int = -1, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> Any:
    """The greatest neighbour along an axis."""
    return maximum_filter(input, size, None, mode, cval, origin, axis)


def minimum_filter1d(
    input: Any, size: int, axis: int = -1, mode: str = "reflect", cval: Any = 0.0, origin: int = 0
) -> Any:
    """The least neighbour along an axis."""
    return minimum_filter(input, size, None, mode, cval, origin, axis)


def rank_filter(
    input: Any, rank: int, size: Any = None, footprint: Any = None, mode: Any = "reflect", cval: Any = 0.0,
    origin: Any = 0, axes: Any = None,
) -> Any:  # fmt: skip
    """The neighbour of a rank, counted from the least one, or from the greatest one if negative."""
    found = np.sort(_neighbours("rank_filter", input, size, footprint, mode, cval, origin, axes), axis=0)
    count = found.shape[0]
    if not -count <= operator.index(rank) < count:
        message = f"rank_filter of {count} neighbours has no rank {rank}."
        raise ArgumentError(message)
    return found[rank]


def percentile_filter(
    input: Any, percentile: Any, size: Any = None, footprint: Any = None, mode: Any = "reflect", cval: Any = 0.0,
    origin: Any = 0, axes: Any = None,
) -> Any:  # fmt: skip
    """The neighbour below which a percentage of the others lies."""
    found = np.sort(_neighbours("percentile_filter", input, size, footprint, mode, cval, origin, axes), axis=0)
    count, share = found.shape[0], percentile + 100.0 if percentile < 0 else percentile
    if not 0 <= share <= 100:
        message = f"percentile_filter needs a percentage, but got {percentile}."
        raise ArgumentError(message)
    return found[count - 1 if share == 100 else int(count * share / 100.0)]


def median_filter(
    input: Any, size: Any = None, footprint: Any = None, mode: Any = "reflect", cval: Any = 0.0, origin: Any = 0,
    axes: Any = None,
) -> Any:  # fmt: skip
    """The neighbour in the middle, the upper one of an even number."""
    found = np.sort(_neighbours("median_filter", input, size, footprint, mode, cval, origin, axes), axis=0)
    return found[found.shape[0] // 2]
