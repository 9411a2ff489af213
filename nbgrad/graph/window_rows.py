"""Primitives on windows of images: columns for convolutions, their transpose, and positions of window maxima.

In: nothing. Out: a table of rows. Called by primitives.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .builders import reshape, spread, transpose
from .ir import INT64, Node, Params, make
from .rows import INTEGER, Linear, ShapeAndDtype, named, row

Array = np.ndarray


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


WINDOWS = named(
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
