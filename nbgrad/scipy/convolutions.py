"""Convolutions and correlations of `scipy.signal`, along any number of axes.

In: two arrays, a mode, a method or border. Out: Tensors. Called by code that `differentiable_source` runs, by
scipy_table.py. Two lines are convolved by `nbgrad.numpy.convolve`; an array with a small one by a sum of its shifted
parts; others by their spectra.
"""

from __future__ import annotations

import itertools
from typing import Any

from .. import numpy as np
from ..errors import ShapeError
from ..record.axes_and_dtypes import only
from .image_filters import MOST_TERMS, extended

fft: Any = np.fft


def _fast(n: int) -> int:
    """The next length from n on with no prime factor above 5."""
    while True:
        left = n
        for prime in (2, 3, 5):
            while left % prime == 0:
                left //= prime
        if left == 1:
            return n
        n += 1


def _by_spectra(a: Any, b: Any, axes: list[int]) -> Any:
    """The whole convolution along some axes; the others broadcast."""
    extents = [a.shape[k] + b.shape[k] - 1 for k in axes]
    sizes = [_fast(n) for n in extents]
    if a.dtype.kind == "c" or b.dtype.kind == "c":
        found = fft.ifftn(fft.fftn(a, sizes, axes) * fft.fftn(b, sizes, axes), sizes, axes)
    else:
        found = fft.irfftn(fft.rfftn(a, sizes, axes) * fft.rfftn(b, sizes, axes), sizes, axes)
    kept = [slice(None)] * found.ndim
    for axis, n in zip(axes, extents, strict=True):
        kept[axis] = slice(0, n)
    return found[tuple(kept)]


def _whole(a: Any, b: Any) -> Any:
    """The whole convolution along all axes."""
    if a.ndim == 1:
        return np.convolve(a, b, "full")
    if min(a.size, b.size) > MOST_TERMS:
        return _by_spectra(a, b, [*range(a.ndim)])
    large, small = (a, b) if a.size >= b.size else (b, a)
    sizes = small.shape
    padded = np.pad(large, [(k - 1, k - 1) for k in sizes])
    shape = [n + k - 1 for n, k in zip(large.shape, sizes, strict=True)]
    total: Any = 0.0
    for at in itertools.product(*[range(k) for k in sizes]):
        part = tuple([slice(k - 1 - i, k - 1 - i + n) for i, k, n in zip(at, sizes, shape, strict=True)])
        total = total + padded[part] * small[at]
    return total


def _operands(name: str, in1: Any, in2: Any) -> tuple[Any, Any]:
    a, b = np.asarray(in1), np.asarray(in2)
    if a.ndim != b.ndim:
        message = f"{name} needs two arrays with as many axes, but the shapes are {a.shape} and {b.shape}."
        raise ShapeError(message)
    if a.dtype.kind not in "fc":
        a = a * 1.0
    return a, b if b.dtype.kind in "fc" else b * 1.0


def _cut(name: str, whole: Any, first: Any, second: Any, mode: str, axes: list[int]) -> Any:
    """The part of a whole convolution that a mode keeps."""
    only("mode", mode, "full", "same", "valid")
    if mode == "full":
        return whole
    kept = [slice(None)] * whole.ndim
    larger, smaller = [first[k] > second[k] for k in axes], [first[k] < second[k] for k in axes]
    if mode == "valid" and any(larger) and any(smaller):
        message = (
            f"{name} with mode='valid' needs one array that is larger along all axes, but got {first} and {second}."
        )
        raise ShapeError(message)
    for axis in axes:
        n, k = first[axis], second[axis]
        if mode == "same":
            start = (k - 1) // 2
            kept[axis] = slice(start, start + n)
        else:
            kept[axis] = slice(min(n, k) - 1, max(n, k))
    return whole[tuple(kept)]


def _flipped(b: Any) -> Any:
    return np.conj(b[tuple([slice(None, None, -1)] * b.ndim)])


def _convolution(name: str, a: Any, b: Any, mode: str) -> Any:
    if a.ndim == 0:
        return a * b
    if a.size == 0 or b.size == 0:
        return np.asarray([])
    return _cut(name, _whole(a, b), a.shape, b.shape, mode, [*range(a.ndim)])


def convolve(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The convolution of two arrays."""
    only("method", method, "auto", "direct", "fft")
    return _convolution("convolve", *_operands("convolve", in1, in2), mode)


def correlate(in1: Any, in2: Any, mode: str = "full", method: str = "auto") -> Any:
    """The correlation of two arrays."""
    only("method", method, "auto", "direct", "fft")
    a, b = _operands("correlate", in1, in2)
    return _convolution("correlate", a, _flipped(b) if b.ndim else np.conj(b), mode)


def fftconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """The convolution along some axes, by spectra; the others broadcast."""
    a, b = _operands("fftconvolve", in1, in2)
    if a.ndim == 0:
        return a * b
    if a.size == 0 or b.size == 0:
        return np.asarray([])
    chosen = [*range(a.ndim)] if axes is None else [k % a.ndim for k in ([axes] if isinstance(axes, int) else axes)]
    return _cut("fftconvolve", _by_spectra(a, b, chosen), a.shape, b.shape, mode, chosen)


def oaconvolve(in1: Any, in2: Any, mode: str = "full", axes: Any = None) -> Any:
    """`fftconvolve`: the parts in which SciPy computes it are of no concern for its value."""
    return fftconvolve(in1, in2, mode, axes)


_BOUNDARIES = {"fill": "constant", "pad": "constant", "wrap": "wrap", "circular": "wrap", "symm": "reflect",
               "symmetric": "reflect"}  # fmt: skip


def convolve2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """The convolution of two matrices, of which the first continues beyond its borders."""
    return _in_a_plane("convolve2d", in1, in2, mode, boundary, fillvalue, False)


def correlate2d(in1: Any, in2: Any, mode: str = "full", boundary: str = "fill", fillvalue: Any = 0) -> Any:
    """The correlation of two matrices, of which the first continues beyond its borders."""
    return _in_a_plane("correlate2d", in1, in2, mode, boundary, fillvalue, True)


def _in_a_plane(name: str, in1: Any, in2: Any, mode: str, boundary: str, fillvalue: Any, correlates: bool) -> Any:
    a, b = _operands(name, in1, in2)
    only("boundary", boundary, *_BOUNDARIES)
    only("mode", mode, "full", "same", "valid")
    if a.ndim != 2 or a.size == 0 or b.size == 0:
        message = f"{name} needs two matrices with elements, but the shapes are {a.shape} and {b.shape}."
        raise ShapeError(message)
    if correlates:
        b = _flipped(b)
    if mode == "valid":
        return _cut(name, _whole(a, b), a.shape, b.shape, mode, [0, 1])
    sizes, shape = b.shape, a.shape
    for axis, k in enumerate(sizes):
        a = extended(a, axis, k - 1, k - 1, _BOUNDARIES[boundary], fillvalue)
    found = _cut(name, _whole(a, b), a.shape, b.shape, "valid", [0, 1])
    if mode == "full":
        return found
    starts = [(k - 1) // 2 if not correlates else k // 2 for k in sizes]
    return found[tuple([slice(start, start + n) for start, n in zip(starts, shape, strict=True)])]


def upfirdn(h: Any, x: Any, up: int = 1, down: int = 1, axis: int = -1) -> Any:
    """Every `down`-th element of the convolution of a filter with a signal that has up - 1 zeros after each element."""
    h, x = _operands("upfirdn", np.ravel(np.asarray(h)), np.ravel(np.asarray(h)))[0], np.asarray(x)
    line = np.moveaxis(x, axis, -1)
    n = line.shape[-1]
    spread = np.pad(line[..., None], [(0, 0)] * line.ndim + [(0, up - 1)])
    spread = spread.reshape((*line.shape[:-1], n * up))[..., : (n - 1) * up + 1]
    if spread.ndim == 1:
        whole = np.convolve(spread, h, "full")
    else:
        whole = _by_spectra(spread, h.reshape((1,) * (spread.ndim - 1) + (h.shape[0],)), [spread.ndim - 1])
    return np.moveaxis(whole[..., ::down], -1, axis)
