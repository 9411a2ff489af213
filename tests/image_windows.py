"""Windows on images and convolutions one number at a time, to compare the primitives with: tables of cases, and NumPy.

In: arrays of images, filters or columns, and windows as the primitives have them. Out: arrays. Called by
test_structural_primitives.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .high_precision import Array

WINDOWS = [
    ((2, 3, 5, 6), ((3, 3), (1, 1), (1, 1), (1, 1), (5, 6))),
    ((2, 1, 7, 5), ((3, 2), (2, 3), (1, 1), (0, 1), (3, 2))),
    ((1, 2, 9, 8), ((2, 3), (1, 2), (3, 2), (2, 1), (8, 3))),
    ((3, 2, 4, 4), ((2, 2), (2, 2), (1, 1), (0, 0), (2, 2))),
    ((2, 2, 1, 40), ((1, 3), (1, 1), (1, 1), (0, 1), (1, 40))),
    ((40, 30, 9, 9), ((3, 3), (2, 2), (1, 1), (1, 1), (5, 5))),
]
"""Shapes of images, with kernel, stride, dilation, padding before and number of windows, for two axes each."""


def _window_places(shape: Any, windows: Any) -> Any:
    """The position of every element of every window, and which of them lie in the image, one by one."""
    (kh, kw), stride, dilation, before, count = windows
    for i, j, y, x in np.ndindex(kh, kw, *count):
        row, column = y * stride[0] + i * dilation[0] - before[0], x * stride[1] + j * dilation[1] - before[1]
        if 0 <= row < shape[2] and 0 <= column < shape[3]:
            yield i, j, y, x, row, column


def windows_of(a: Array, windows: Any) -> Array:
    out = np.zeros((a.shape[1], *windows[0], a.shape[0], *windows[4]), a.dtype)
    for i, j, y, x, row, column in _window_places(a.shape, windows):
        out[:, i, j, :, y, x] = a[:, :, row, column].T
    return out


def windows_added(a: Array, windows: Any, shape: Any) -> Array:
    out = np.zeros(shape, a.dtype)
    for i, j, y, x, row, column in _window_places(shape, windows):
        out[:, :, row, column] += a[:, i, j, :, y, x].T
    return out


CONVOLUTIONS = [
    ((2, 3, 5, 6), (4, 3, 3, 3), WINDOWS[0][1], 1),
    ((2, 4, 7, 5), (6, 2, 3, 2), WINDOWS[1][1], 2),
    ((1, 3, 9, 8), (3, 1, 2, 3), WINDOWS[2][1], 3),
    ((3, 2, 4, 4), (9, 2, 2, 2), WINDOWS[3][1], 1),
    ((2, 2, 1, 40), (1, 2, 1, 3), WINDOWS[4][1], 1),
    ((1, 1, 3, 4), (1, 1, 1, 2), ((1, 2), (3, 4), (1, 1), (2, 5), (2, 3)), 1),
    ((2, 9, 6, 5), (10, 9, 3, 3), ((3, 3), (2, 3), (2, 1), (3, 0), (4, 2)), 1),
]
"""Shapes of images and of filters, windows, and the number of groups."""


def convolved(x: Array, w: Array, windows: Any, groups: int) -> Array:
    columns = windows_of(x, windows).reshape(groups, w.shape[1], *windows[0], x.shape[0], *windows[4])
    filters = w.reshape(groups, -1, *w.shape[1:])
    return np.einsum("gcijnyx,gocij->ngoyx", columns, filters).reshape(x.shape[0], w.shape[0], *windows[4])


def convolved_back(y: Array, w: Array, windows: Any, groups: int, shape: Any) -> Array:
    parts = y.reshape(y.shape[0], groups, -1, *y.shape[2:]), w.reshape(groups, -1, *w.shape[1:])
    columns = np.einsum("ngoyx,gocij->gcijnyx", *parts)
    return windows_added(columns.reshape(shape[1], *windows[0], y.shape[0], *windows[4]), windows, shape)


def convolved_pairs(x: Array, y: Array, windows: Any, groups: int, shape: Any) -> Array:
    columns = windows_of(x, windows).reshape(groups, -1, *windows[0], x.shape[0], *windows[4])
    return np.einsum("gcijnyx,ngoyx->gocij", columns, y.reshape(y.shape[0], groups, -1, *y.shape[2:])).reshape(shape)


def window_maxima(a: Array, windows: Any) -> Array:
    out = np.zeros((*a.shape[:2], *windows[4]), int)
    best = np.full(out.shape, -np.inf)
    if windows[0][0]:
        places = _window_places(a.shape, windows)
    else:
        spans = [
            [range(k * n // m, -(-(k + 1) * n // m)) for k in range(m)]
            for n, m in zip(a.shape[2:], windows[4], strict=True)
        ]
        places = [
            (0, 0, y, x, row, column)
            for y, rows in enumerate(spans[0])
            for x, columns in enumerate(spans[1])
            for row in rows
            for column in columns
        ]
    for _, _, y, x, row, column in places:
        larger = a[:, :, row, column] > best[:, :, y, x]
        out[:, :, y, x] = np.where(larger, row * a.shape[3] + column, out[:, :, y, x])
        best[:, :, y, x] = np.maximum(best[:, :, y, x], a[:, :, row, column])
    return out
