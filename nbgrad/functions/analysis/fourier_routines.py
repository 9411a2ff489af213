"""SciPy's Fourier transforms of arrays, written into memory that exists, without the time of its checks.

In: arrays, axes counted from the end, NumPy's names of norms. Out: arrays, or an array that is given, written. Called
by fourier.py. `scipy.fft` needs 10 microseconds to look at its arguments, as long as a transform of 1000 numbers
takes; its routines in C++ are called as it calls them. Where they are not what they were, `scipy.fft` itself is.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

Axes = tuple[int, ...]

DTYPES = "fdFD"
"""Of the arrays that the routines take as they are."""
SCALES = {"backward": (0, 2), "forward": (2, 0), "ortho": (1, 1)}
"""How the routines call the factor of the transform and of the way back: none, the square root of 1 / n, or 1 / n."""


def half_shape(shape: tuple[int, ...], axes: Axes) -> tuple[int, ...]:
    """The shape of the first half of the spectrum."""
    axis = len(shape) + axes[-1]
    return (*shape[:axis], shape[axis] // 2 + 1, *shape[axis + 1 :])


def whole_shape(shape: tuple[int, ...], n: int, axes: Axes) -> tuple[int, ...]:
    """The shape of an array of n elements along the last of the axes, of the half of its spectrum."""
    axis = len(shape) + axes[-1]
    return (*shape[:axis], n, *shape[axis + 1 :])


@cache
def routines() -> Any:
    """SciPy's module of routines; None if it does not give the numbers of NumPy when it is called in this way."""
    x = np.array([[1.0, 2.0, 4.0], [3.0, 0.0, 5.0]])
    half, whole, back = np.full((2, 2), np.nan + 0j), np.full((2, 3), np.nan + 0j), np.full((2, 3), np.nan)
    try:
        found = import_module("scipy.fft._pocketfft.pypocketfft")
        found.c2c(x + 0j, (-1, -2), True, 2, whole, 1)
        found.r2c(x, (-1,), True, 1, half, 1)
        found.c2r(half, (-1,), 3, False, 1, back, 1)
    except (ImportError, AttributeError, TypeError, ValueError, RuntimeError):
        return None
    known = (np.fft.fft2(x, norm="forward"), np.fft.rfft(x, norm="ortho"), x)
    return found if all(map(np.allclose, (whole, half, back), known)) else None


def _direct(x: np.ndarray, out: np.ndarray | None) -> Any:
    """The routines, if they can transform such an array and write such a result."""
    fits = x.dtype.char in DTYPES and x.dtype.isnative and (out is None or out.dtype.isnative)
    return routines() if fits else None


def _given(found: np.ndarray, out: np.ndarray | None) -> np.ndarray:
    if out is None or found is out:
        return found
    out[...] = found
    return out


def complex_transform(x: np.ndarray, axes: Axes, forward: bool, norm: str, out: np.ndarray | None = None) -> np.ndarray:
    """All frequencies of a real or complex array along axes, or the way back."""
    if not x.size:
        return _given(x, out)
    direct = _direct(x, out)
    found: Any
    if direct is not None:
        found = direct.c2c(x, axes, forward, SCALES[norm][not forward], out, 1)
    else:
        from scipy import fft

        result: Any = (fft.fftn if forward else fft.ifftn)(x, axes=axes, norm=norm)
        found = _given(result, out)
    if x.dtype.kind == "f":
        # One half is mirrored, which makes zeros negative; NumPy's are positive.
        found.imag += 0.0
    return found


def to_half(x: np.ndarray, axes: Axes, norm: str, out: np.ndarray | None = None) -> np.ndarray:
    """The frequencies of a real array; of the last of the axes the first half only."""
    if not x.size:
        return _given(np.zeros(half_shape(x.shape, axes)), out)
    direct = _direct(x, out)
    if direct is not None:
        return direct.r2c(x, axes, True, SCALES[norm][0], out, 1)
    from scipy import fft

    result: Any = fft.rfftn(x, axes=axes, norm=norm)
    return _given(result, out)


def from_half(x: np.ndarray, n: int, axes: Axes, norm: str, out: np.ndarray | None = None) -> np.ndarray:
    """The real array, of n elements along the last of the axes, whose frequencies have a given first half."""
    if not x.size:
        return _given(np.zeros(whole_shape(x.shape, n, axes)), out)
    direct = _direct(x, out)
    if direct is not None:
        return direct.c2r(x, axes, n, False, SCALES[norm][1], out, 1)
    from scipy import fft

    result: Any = fft.irfftn(x, s=[*[x.shape[axis] for axis in axes[:-1]], n], axes=axes, norm=norm)
    return _given(result, out)
