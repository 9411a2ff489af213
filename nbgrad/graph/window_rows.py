"""Primitives on windows of images: convolutions, columns and their transpose, and positions of window maxima.

In: nothing. Out: a table of rows; also convolutions as products of matrices, for targets without a kernel for them.
Called by primitives.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .builders import matmul, reduce, reshape, spread, spread_all, transpose
from .ir import INT64, Node, Params, broadcast, literal, make, topological, with_inputs
from .rows import INTEGER, Linear, Multilinear, ShapeAndDtype, named, row

Array = np.ndarray
LEAST_PIXELS = 64
"""Pixels of an image from which on products for each image are as fast as one for all, whose operands are turned."""


def _unfolded(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    count, channels = inputs[0].shape[:2]
    return (channels, *params[0], count, *params[4]), inputs[0].dtype


def _folded(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    channels, kh, kw, count, oh, ow = inputs[0].shape
    assert (kh, kw) == params[0] and (oh, ow) == params[4], (inputs, params)
    return (count, channels, *params[5]), inputs[0].dtype


def _positions(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    return (*inputs[0].shape[:2], *params[4]), INT64


def _windows(params: tuple[Any, ...], size: tuple[int, int]) -> Iterator[tuple[int, int, Any, Any, Any, Any]]:
    """Per element (i, j) of the windows: which of them have it inside of the image, and at which rows and columns."""
    (kh, kw), stride, dilation, before, count = params[:5]
    for i in range(kh):
        for j in range(kw):
            inside, at = [], []
            for axis, k in ((0, i), (1, j)):
                place = np.arange(count[axis]) * stride[axis] + k * dilation[axis] - before[axis]
                valid = np.flatnonzero((place >= 0) & (place < size[axis]))
                inside.append(valid)
                at.append(place[valid])
            yield i, j, inside[0][:, None], inside[1], at[0][:, None], at[1]


def _unfold(params: tuple[Any, ...], x: Array) -> Array:
    out = np.zeros((x.shape[1], *params[0], x.shape[0], *params[4]), x.dtype)
    for i, j, y, x_, line, column in _windows(params, x.shape[2:]):
        out[:, i, j, :, y, x_] = np.moveaxis(x[:, :, line, column], (0, 1), (-1, -2))
    return out


def _fold(params: tuple[Any, ...], x: Array) -> Array:
    out = np.zeros((x.shape[3], x.shape[0], *params[5]), x.dtype)
    for i, j, y, x_, line, column in _windows(params, params[5]):
        out[:, :, line, column] += np.moveaxis(x[:, i, j, :, y, x_], (-1, -2), (0, 1))
    return out


def _window_argmax(params: tuple[Any, ...], x: Array) -> Array:
    kernel, stride, dilation, before, count = params
    places: list[list[np.ndarray]] = []
    for axis, size in enumerate(x.shape[2:]):
        many = count[axis]
        places.append(
            [
                np.arange(k * stride[axis], k * stride[axis] + kernel[axis] * dilation[axis], dilation[axis])
                - before[axis]
                if kernel[0]
                else np.arange(k * size // many, -(-(k + 1) * size // many))
                for k in range(many)
            ]
        )
        places[axis] = [p[(p >= 0) & (p < size)] for p in places[axis]]
    out = np.zeros((*x.shape[:2], *count), np.int64)
    for y, rows in enumerate(places[0]):
        for k, columns in enumerate(places[1]):
            at = (rows[:, None] * x.shape[3] + columns).ravel()
            values = x.reshape(*x.shape[:2], -1)[:, :, at]
            nan = np.isnan(values)
            last_nan = values.shape[-1] - 1 - np.argmax(nan[..., ::-1], axis=-1)
            out[:, :, y, k] = at[np.where(nan.any(-1), last_nan, np.argmax(values, axis=-1))]
    return out


def _batched_images(node: Node, operands: Sequence[Node | None], size: int) -> Node:
    """The images of all values beside each other."""
    full = spread(node.inputs[0], operands[0], size)
    many, channels, *extents = node.inputs[0].shape
    return make(node.name, (reshape(full, (size * many, channels, *extents)),), node.params)


def _batched_unfold(node: Node, operands: Sequence[Node | None], size: int) -> Node:
    made = reshape(_batched_images(node, operands, size), (*node.shape[:3], size, *node.shape[3:]))
    return transpose(made, (3, 0, 1, 2, 4, 5, 6))


def _batched_fold(node: Node, operands: Sequence[Node | None], size: int) -> Node:
    full = spread(node.inputs[0], operands[0], size)
    channels, kh, kw, many, oh, ow = node.inputs[0].shape
    moved = transpose(full, (1, 2, 3, 0, 4, 5, 6))
    made = make("fold", (reshape(moved, (channels, kh, kw, size * many, oh, ow)),), node.params)
    return reshape(made, (size, *node.shape))


# ----- Convolutions -----


def _convolved(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    x, weight = inputs
    assert x.shape[1] == weight.shape[1] * params[6] and x.shape[2:] == params[5], (inputs, params)
    assert weight.shape[2:] == params[0] and weight.shape[0] % params[6] == 0, (inputs, params)
    return (x.shape[0], weight.shape[0], *params[4]), x.dtype


def _transposed(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    y, weight = inputs
    assert y.shape[1] == weight.shape[0] and y.shape[2:] == params[4], (inputs, params)
    assert weight.shape[2:] == params[0] and weight.shape[0] % params[6] == 0, (inputs, params)
    return (y.shape[0], weight.shape[1] * params[6], *params[5]), y.dtype


def _filters(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    x, y = inputs
    assert x.shape[0] == y.shape[0] and x.shape[2:] == params[5] and y.shape[2:] == params[4], (inputs, params)
    return (y.shape[1], x.shape[1] // params[6], *params[0]), x.dtype


def product_form(name: str, inputs: Sequence[Node], params: Params) -> Node:
    """A convolution, or one of its transposes, as a product of matrices with the windows in columns."""
    *windows, size, groups = params
    one, other = inputs
    filters = name == "convolve_filters"
    kernel, stride, _, before, extents = windows
    pointwise = kernel == (1, 1) and stride == (1, 1) and before == (0, 0) and extents == size
    count, outputs = one.shape[0], other.shape[filters]
    channels = (one if name != "convolve_transposed" else other).shape[1]
    depth = (channels // groups if filters else other.shape[1]) * kernel[0] * kernel[1]
    pixels = count * extents[0] * extents[1]
    if pointwise and extents[0] * extents[1] >= LEAST_PIXELS:
        return _pointwise_form(name, one, other, groups)

    def columns() -> Node:
        made = transpose(one, (1, 0, 2, 3)) if pointwise else make("unfold", (one,), tuple(windows))
        return reshape(made, (groups, depth, pixels))

    def rows(y: Node) -> Node:
        return reshape(transpose(y, (1, 0, 2, 3)), (groups, outputs // groups, pixels))

    if filters:
        return reshape(matmul(rows(other), transpose(columns(), (0, 2, 1))), (outputs, channels // groups, *kernel))
    weight = reshape(other, (groups, outputs // groups, depth))
    if name == "convolve":
        return transpose(reshape(matmul(weight, columns()), (outputs, count, *extents)), (1, 0, 2, 3))
    product = matmul(transpose(weight, (0, 2, 1)), rows(one))
    if pointwise:
        return transpose(reshape(product, (channels * groups, count, *size)), (1, 0, 2, 3))
    return make("fold", (reshape(product, (channels * groups, *kernel, count, *extents)),), (*windows, size))


def _pointwise_form(name: str, one: Node, other: Node, groups: int) -> Node:
    """A convolution by filters of one pixel as a product for each image, of its pixels as they lie."""
    count, extents = one.shape[0], one.shape[2:]

    def matrices(images: Node) -> Node:
        return reshape(images, (count * groups, images.shape[1] // groups, extents[0] * extents[1]))

    if name == "convolve_filters":
        product = matmul(matrices(other), transpose(matrices(one), (0, 2, 1)))
        each = reshape(product, (count, other.shape[1], one.shape[1] // groups, 1, 1))
        return reduce("sum", each, (0,))
    outputs, channels = other.shape[:2]
    weight = reshape(other, (groups, outputs // groups, channels))
    if name == "convolve_transposed":
        weight = transpose(weight, (0, 2, 1))
    repeated = reshape(broadcast(weight, (count, *weight.shape)), (count * groups, *weight.shape[1:]))
    product = matmul(repeated, matrices(one))
    return reshape(product, (count, weight.shape[1] * groups, *extents))


def without_convolutions(outputs: Sequence[Node]) -> list[Node]:
    """Products of matrices in place of the convolutions of a graph."""
    made: dict[Node, Node] = {}
    for node in topological(outputs):
        inputs = tuple([made[source] for source in node.inputs])
        if node.name in CONVOLUTIONS:
            made[node] = product_form(node.name, inputs, node.params)
        else:
            made[node] = node if inputs == node.inputs else with_inputs(node, inputs)
    return [made[node] for node in outputs]


def multiplications(node: Node) -> int:
    """How many products of numbers a product of matrices or a convolution adds up; 0 for other nodes."""
    if node.name == "matmul":
        return node.size * node.inputs[0].shape[2]
    if node.name not in CONVOLUTIONS:
        return 0
    (kh, kw), *_, (oh, ow), _, _ = node.params
    convolved, weights = (node.inputs[0], node) if node.name == "convolve_filters" else node.inputs
    return convolved.shape[0] * oh * ow * kh * kw * weights.shape[0] * weights.shape[1]


def _convolution(params: tuple[Any, ...], x: Array, weight: Array) -> Array:
    kernel, _, _, _, count, _, groups = params
    depth = weight.shape[1] * kernel[0] * kernel[1]
    columns = _unfold(params[:5], x).reshape(groups, depth, -1)
    y = np.matmul(weight.reshape(groups, -1, depth), columns)
    return np.moveaxis(y.reshape(weight.shape[0], x.shape[0], *count), 0, 1)


def _transposed_convolution(params: tuple[Any, ...], y: Array, weight: Array) -> Array:
    kernel, _, _, _, count, _, groups = params
    depth = weight.shape[1] * kernel[0] * kernel[1]
    rows = np.moveaxis(y, 1, 0).reshape(groups, y.shape[1] // groups, -1)
    columns = np.matmul(weight.reshape(groups, -1, depth).swapaxes(1, 2), rows)
    return _fold(params[:6], columns.reshape(weight.shape[1] * groups, *kernel, y.shape[0], *count))


def _convolution_filters(params: tuple[Any, ...], x: Array, y: Array) -> Array:
    kernel, *_, groups = params
    channels, outputs, pixels = x.shape[1] // groups, y.shape[1], y.shape[0] * y.shape[2] * y.shape[3]
    columns = _unfold(params[:5], x).reshape(groups, channels * kernel[0] * kernel[1], pixels)
    rows = np.moveaxis(y, 1, 0).reshape(groups, outputs // groups, pixels)
    return np.matmul(rows, columns.swapaxes(1, 2)).reshape(outputs, channels, *kernel)


def _batched_convolution(node: Node, operands: Sequence[Node | None], size: int) -> Node:
    """Images of all values one after the other if the filters are the same for all; otherwise groups of channels."""
    *windows, groups = node.params
    one, other = node.inputs
    filters = node.name == "convolve_filters"
    if not size:
        return broadcast(literal(0.0, node.dtype), (0, *node.shape))
    if operands[0] is not None and operands[1] is None and not filters:
        flat = reshape(operands[0], (size * one.shape[0], *one.shape[1:]))
        return reshape(make(node.name, (flat, other), node.params), (size, *node.shape))
    images, second = spread_all(node, operands, size)
    beside = _beside(images)
    second = _beside(second) if filters else reshape(second, (size * other.shape[0], *other.shape[1:]))
    made = make(node.name, (beside, second), (*windows, groups * size))
    if filters:
        return reshape(made, (size, *node.shape))
    count, channels, *extents = node.shape
    return transpose(reshape(made, (count, size, channels, *extents)), (1, 0, 2, 3, 4))


def _beside(images: Node) -> Node:
    """The channels of all values beside each other."""
    size, count, channels, *extents = images.shape
    return reshape(transpose(images, (1, 0, 2, 3, 4)), (count, size * channels, *extents))


CONVOLUTIONS = named(
    convolve=row(
        "special",
        _convolved,
        _convolution,
        Multilinear(
            (
                lambda g, node: make("convolve_transposed", (g, node.inputs[1]), node.params),
                lambda g, node: make("convolve_filters", (node.inputs[0], g), node.params),
            )
        ),
        batch=_batched_convolution,
    ),
    convolve_transposed=row(
        "special",
        _transposed,
        _transposed_convolution,
        Multilinear(
            (
                lambda g, node: make("convolve", (g, node.inputs[1]), node.params),
                lambda g, node: make("convolve_filters", (g, node.inputs[0]), node.params),
            )
        ),
        batch=_batched_convolution,
    ),
    convolve_filters=row(
        "special",
        _filters,
        _convolution_filters,
        Multilinear(
            (
                lambda g, node: make("convolve_transposed", (node.inputs[1], g), node.params),
                lambda g, node: make("convolve", (node.inputs[0], g), node.params),
            )
        ),
        batch=_batched_convolution,
    ),
)
"""The three transposes of one trilinear form, the sum of y * convolve(x, weight): each is linear in two of x, weight
and y and gives what belongs to the third, so that all derivatives are made of them. Their parameters are the windows,
the height and width of x, and the number of groups."""
WINDOWS = CONVOLUTIONS | named(
    unfold=row(
        "special",
        _unfolded,
        _unfold,
        Linear(lambda node: (lambda g, node: make("fold", (g,), (*node.params, node.inputs[0].shape[2:])),)),
        batch=_batched_unfold,
    ),
    fold=row(
        "special",
        _folded,
        _fold,
        Linear(lambda node: (lambda g, node: make("unfold", (g,), node.params[:5]),)),
        batch=_batched_fold,
    ),
    window_argmax=row(
        "special",
        _positions,
        _window_argmax,
        INTEGER,
        batch=lambda node, operands, size: reshape(_batched_images(node, operands, size), (size, *node.shape)),
    ),
)
