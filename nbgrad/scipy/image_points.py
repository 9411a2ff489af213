"""Values of images between their elements: `scipy.ndimage`'s map_coordinates, affine_transform, shift, zoom, rotate.

In: images, coordinates or what gives them, orders 0 to 5, border modes. Out: Tensors, with derivatives by images and
coordinates. Called by code that `differentiable_source` runs, by scipy_table.py. An image becomes coefficients of
B-splines by SciPy's own filter (a `host` node), which is linear; a value is a sum of these, gathered, with weights
that are polynomials of the coordinates (Thevenaz, Blu and Unser 2000).
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy

from .. import numpy as np
from ..errors import ArgumentError, ShapeError
from ..functions.linalg.matrix_batches import with_rule
from ..graph.host_functions import HostFunction, host
from ..graph.ir import Node, broadcast, constant
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import only
from ..record.tensor import Tensor
from .image_filters import MODES, image

_PADDED, _REACH = 12, 6
"""Elements that SciPy adds on each side for modes without an exact filter; more than a spline reaches."""


# ----- Coefficients -----


def _run(x: numpy.ndarray, order: int, mode: str) -> Any:
    from scipy.ndimage import spline_filter1d

    return spline_filter1d(x, order, axis=-1, mode=mode)


SPLINE_FILTER = HostFunction("spline filter", lambda inputs, params: (inputs[0].shape, inputs[0].dtype), _run)
_KINDS = {"reflect": "reflect", "grid-mirror": "reflect", "nearest": "reflect", "grid-wrap": "grid-wrap"}
"""The exact extension that SciPy's filter uses for a mode; "mirror" for all others."""


def _filtered(x: Node, order: int, mode: str) -> Node:
    return with_rule(host(SPLINE_FILTER, (x,), order, mode), _transpose, x, static=(order, mode))


_SHORT = 32
"""Elements up to which SciPy's filter for "reflect" differs from the exact one by more than rounding."""


@cache
def _matrix(n: int, order: int, mode: str) -> numpy.ndarray:
    """SciPy's filter of a line of n elements."""
    return _run(numpy.eye(n), order, mode).T


def _transpose(g: Node, node: Node, x: Node, order: int, mode: str) -> list[Node | None]:
    """The filter inverts a symmetric matrix; that of "mirror" is one whose first and last rows count twice."""
    if mode == "reflect" and x.shape[-1] <= _SHORT:
        return [as_node(np.matmul(wrap(g), _matrix(x.shape[-1], order, mode)))]
    if mode != "mirror" or x.shape[-1] < 2:
        return [_filtered(g, order, mode)]
    ends = numpy.ones(x.shape[-1], g.dtype)
    ends[[0, -1]] = 0.5
    half = broadcast(constant(ends), g.shape)
    return [_filtered(g / half, order, mode) * half]


def spline_filter1d(input: Any, order: int = 3, axis: int = -1, mode: str = "mirror") -> Any:
    """Coefficients of the spline along an axis; their dtype is float64, as in SciPy."""
    only("mode", mode, *MODES)
    x = image("spline_filter1d", input)
    if x.dtype.kind == "c":
        return spline_filter1d(x.real, order, axis, mode) + 1j * spline_filter1d(x.imag, order, axis, mode)
    x = x.astype(numpy.float64)
    if order < 2 or x.shape[axis] < 2:
        return x
    node = as_node(np.moveaxis(x, axis, -1))
    return np.moveaxis(wrap(_filtered(node, operator.index(order), _KINDS.get(mode, "mirror"))), -1, axis)


def spline_filter(input: Any, order: int = 3, mode: str = "mirror") -> Any:
    """Coefficients of the spline along all axes."""
    x = image("spline_filter", input)
    for axis in range(x.ndim):
        x = spline_filter1d(x, order, axis, mode)
    return x


# ----- Values -----


def _weights(fraction: Any, order: int) -> list[Any]:
    """The B-splines of an order that are not zero, from left to right, by the recursion of de Boor."""
    found: list[Any] = [1.0]
    for d in range(1, order + 1):
        left, right = [0.0, *found], [*found, 0.0]
        found = [((fraction + (d - j)) * left[j] + (1 - fraction + j) * right[j]) / d for j in range(d + 1)]
    return found


def _folded(at: Any, n: int, mode: str) -> Any:
    """A coordinate inside of a line of n elements, as the border mode has it."""
    if mode in ("reflect", "grid-mirror"):
        at = np.mod(at + 0.5, 2 * n)
        return np.where(at < n, at, 2 * n - at) - 0.5
    if n == 1 and mode in ("mirror", "wrap"):
        return at * 0
    if mode == "mirror":
        at = np.mod(at, 2 * n - 2)
        return np.where(at <= n - 1, at, 2 * n - 2 - at)
    if mode == "wrap":
        size = n - 1
        below = at + size * (np.floor(-at / size) + 1)
        return np.where(at < 0, below, np.where(at > size, at - size * np.floor(at / size), at))
    if mode == "grid-wrap":
        return np.mod(at, n)
    return np.clip(at, -_REACH, n - 1 + _REACH) if mode == "nearest" else at  # elements beyond the border are its own


def _element(index: Any, n: int, mode: str) -> Any:
    """The element of a line that stands at an integer position."""
    if mode in ("reflect", "grid-mirror"):
        index = np.mod(index, 2 * n)
        return np.where(index < n, index, 2 * n - 1 - index)
    if mode == "grid-wrap":
        return np.mod(index, n)
    if mode in ("nearest", "grid-constant") or n == 1:
        return np.clip(index, 0, n - 1)
    index = np.mod(index, 2 * n - 2)
    return np.where(index < n, index, 2 * n - 2 - index)


def _values(
    name: str, input: Any, points: Sequence[Any], order: Any, mode: str, cval: Any, prefilter: bool, axes: Sequence[int]
) -> Any:
    """The values at points: a coordinate for each of some axes, which broadcast; the last axes of the result.

    The other axes of the image come first.
    """
    only("mode", mode, *MODES)
    only("order", order, *range(6))
    x = image(name, input)
    if x.dtype.kind == "c":
        cval = complex(cval)
        parts = [(x.real, cval.real), (x.imag, cval.imag)]
        re, im = [_values(name, part, points, order, mode, c, prefilter, axes) for part, c in parts]
        return re + 1j * im
    dtype = x.dtype
    coefficients = x.astype(numpy.float64)
    added = _PADDED if order > 1 and prefilter and mode in ("nearest", "grid-constant") else 0
    if added:
        width = [(added, added) if k in axes else (0, 0) for k in range(x.ndim)]
        options: Any = {"mode": "edge"} if mode == "nearest" else {"constant_values": cval}
        coefficients = np.pad(coefficients, width, **options)
    if prefilter:
        for axis in axes:
            coefficients = spline_filter1d(coefficients, order, axis, mode)
    coefficients = np.moveaxis(coefficients, axes, range(-len(axes), 0))
    lead, sizes = coefficients.shape[: -len(axes)], coefficients.shape[-len(axes) :]
    flat = coefficients.reshape((*lead, math.prod(sizes)))
    outside: Any = False
    terms: list[list[tuple[Any, Any, Any]]] = []
    for at, n, stride in zip(points, sizes, _strides(sizes), strict=True):
        at = np.asarray(at) * 1.0 + added
        if mode == "constant":
            outside = outside | (at < 0) | (at > n - 1)
            at = np.clip(at, 0, n - 1)
        at = _folded(at, n, mode)
        middle = at if order % 2 else at + 0.5
        start = np.floor(middle)
        first = start.astype(numpy.int64) - order // 2
        one: list[tuple[Any, Any, Any]] = []
        for k, weight in enumerate(_weights(middle - start, order)):
            index = first + k
            kept = (index >= 0) & (index < n) if mode == "grid-constant" else None
            one.append((_element(index, n, mode) * stride, weight, kept))
        terms.append(one)
    total: Any = 0.0
    for chosen in itertools.product(*terms):
        place = sum(index for index, _, _ in chosen)
        value = np.take(flat, place, axis=-1)
        for _, _, kept in chosen:
            if kept is not None:
                value = np.where(kept, value, cval)
        total = total + value * math.prod([weight for _, weight, _ in chosen])
    if outside is not False:
        total = np.where(outside, cval, total)
    return total.astype(dtype)


def _strides(sizes: Sequence[int]) -> list[int]:
    return [math.prod(sizes[k + 1 :]) for k in range(len(sizes))]


def map_coordinates(
    input: Any, coordinates: Any, order: int = 3, mode: str = "constant", cval: Any = 0.0, prefilter: bool = True
) -> Any:
    """Values at coordinates."""
    x, coordinates = np.asarray(input), np.asarray(coordinates)
    if coordinates.ndim < 1 or coordinates.shape[0] != x.ndim:
        message = f"map_coordinates needs {x.ndim} rows of coordinates, but their shape is {coordinates.shape}."
        raise ShapeError(message)
    points = [coordinates[k] for k in range(x.ndim)]
    return _values("map_coordinates", x, points, order, mode, cval, prefilter, range(x.ndim))


def _grid(shape: Sequence[int]) -> list[numpy.ndarray]:
    """The positions along each axis, shaped to broadcast."""
    count = len(shape)
    return [numpy.arange(float(n)).reshape([n if k == j else 1 for j in range(count)]) for k, n in enumerate(shape)]


def _for_each_axis(value: Any, ndim: int, name: str) -> list[Any]:
    value = np.asarray(value)
    if value.ndim == 0:
        return [value] * ndim
    if value.shape != (ndim,):
        message = f"{name} must be a number or have {ndim} elements, but its shape is {value.shape}."
        raise ShapeError(message)
    return [value[k] for k in range(ndim)]


def shift(
    input: Any, shift: Any, order: int = 3, mode: str = "constant", cval: Any = 0.0, prefilter: bool = True
) -> Any:
    """An image moved along its axes."""
    x = np.asarray(input)
    points = [at - step for at, step in zip(_grid(x.shape), _for_each_axis(shift, x.ndim, "shift"), strict=True)]
    return _values("shift", x, points, order, mode, cval, prefilter, range(x.ndim))


def zoom(
    input: Any, zoom: Any, order: int = 3, mode: str = "constant", cval: Any = 0.0, prefilter: bool = True,
    grid_mode: bool = False,
) -> Any:  # fmt: skip
    """An image with more or fewer elements along its axes.

    Raises
    ------
    ArgumentError
        For a recorded zoom: the shape of the result would depend on it.
    """
    x = np.asarray(input)
    if isinstance(zoom, Tensor) and zoom._node.traced:
        message = "zoom by a recorded factor would have a shape that depends on it: use affine_transform."
        raise ArgumentError(message)
    factors = [float(v) for v in _for_each_axis(zoom, x.ndim, "zoom")]
    shape = tuple([round(n * factor) for n, factor in zip(x.shape, factors, strict=True)])
    points: list[Any] = []
    for at, n, m in zip(_grid(shape), x.shape, shape, strict=True):
        if grid_mode:
            points.append((at + 0.5) * (n / m if m else 1.0) - 0.5)
        else:
            points.append(at * ((n - 1) / (m - 1) if m > 1 else 1.0))
    return _values("zoom", x, points, order, mode, cval, prefilter, range(x.ndim))


def affine_transform(
    input: Any, matrix: Any, offset: Any = 0.0, output_shape: Any = None, order: int = 3, mode: str = "constant",
    cval: Any = 0.0, prefilter: bool = True,
) -> Any:  # fmt: skip
    """Values at a matrix times the positions, plus an offset."""
    x, matrix = np.asarray(input), np.asarray(matrix)
    n = x.ndim
    if matrix.ndim == 2 and matrix.shape in ((n, n + 1), (n + 1, n + 1)):
        matrix, offset = matrix[:n, :n], matrix[:n, n]
    if matrix.shape not in ((n,), (n, n)):
        message = f"affine_transform needs a matrix for {n} axes, but its shape is {matrix.shape}."
        raise ShapeError(message)
    grid = _grid(x.shape if output_shape is None else tuple(output_shape))
    offsets = _for_each_axis(offset, n, "offset")
    points: list[Any] = []
    for k in range(n):
        if matrix.ndim == 1:
            points.append(matrix[k] * grid[k] + offsets[k])
        else:
            points.append(sum(matrix[k, j] * grid[j] for j in range(n)) + offsets[k])
    return _values("affine_transform", x, points, order, mode, cval, prefilter, range(n))


def rotate(
    input: Any, angle: Any, axes: Any = (1, 0), reshape: bool = True, order: int = 3, mode: str = "constant",
    cval: Any = 0.0, prefilter: bool = True,
) -> Any:  # fmt: skip
    """An image turned in the plane of two axes, by an angle in degrees.

    Raises
    ------
    ArgumentError
        For a recorded angle with `reshape`: the shape of the result would depend on it.
    """
    x = np.asarray(input)
    plane = sorted(operator.index(axis) % x.ndim for axis in axes)
    if len(set(plane)) != 2:
        message = f"rotate needs two different axes, but got {axes}."
        raise ArgumentError(message)
    recorded = isinstance(angle, Tensor) and angle._node.traced
    if recorded and reshape:
        message = "rotate by a recorded angle would have a shape that depends on it: give reshape=False."
        raise ArgumentError(message)
    sizes = [x.shape[axis] for axis in plane]
    out = sizes
    turn = angle * (math.pi / 180) if recorded else math.radians(float(angle))
    c, s = (np.cos(turn), np.sin(turn)) if recorded else _exact(float(angle))
    if reshape:
        iy, ix = sizes
        corners = numpy.array([[c, s], [-s, c]]) @ [[0, 0, iy, iy], [0, ix, 0, ix]]
        out = (numpy.ptp(corners, axis=1) + 0.5).astype(int).tolist()
    rows, columns = _grid(out)
    down, along = rows - (out[0] - 1) / 2, columns - (out[1] - 1) / 2
    points = [c * down + s * along + (sizes[0] - 1) / 2, c * along - s * down + (sizes[1] - 1) / 2]
    found = _values("rotate", x, points, order, mode, cval, prefilter, plane)
    return np.moveaxis(found, (-2, -1), plane)


def _exact(degrees: float) -> tuple[float, float]:
    """Cosine and sine of degrees, exact at multiples of 90."""
    from scipy.special import cosdg, sindg

    return float(cosdg(degrees)), float(sindg(degrees))
