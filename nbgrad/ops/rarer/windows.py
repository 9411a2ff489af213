"""Windows of signals, and their short Fourier transforms.

In: lengths and options. Out: Tensors. Called by users; class_table.py names some of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...errors import ArgumentError, ShapeError
from ...record.axes_and_dtypes import integer, real_dtype
from ...record.tensor import Tensor
from ..docstrings import documented
from .special_values import float_of

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


def _angles(window_length: Any, periodic: bool) -> numpy.ndarray:
    """The places of a window's elements, as parts of its whole length."""
    length = np.asarray(window_length)
    count = integer(length.reshape(()).item() if length.size == 1 else window_length, "window_length")
    if count < 0:
        message = f"window_length must not be negative, but is {count}."
        raise ArgumentError(message)
    whole = count if periodic else count - 1
    return np.arange(count) / whole if count > 1 else np.full(count, 0.5)


def _made(values: numpy.ndarray, dtype: Any) -> Tensor:
    return Tensor(values.astype(np.float32 if dtype is None else np.dtype(real_dtype(dtype))))


@documented
def bartlett_window(window_length: Any, periodic: bool = True, *, dtype: Any = None) -> Tensor:
    """A window that rises and falls in straight lines.

    window_length : int
        The number of elements.
    periodic : bool
        Whether the window goes on with its own beginning; else its two halves are mirrored.
    dtype : dtype, optional
        float32 by default.

    >>> print(nb.ops.bartlett_window(5, periodic=False))
    [0.  0.5 1.  0.5 0. ]
    """
    return _made(1.0 - np.abs(2.0 * _angles(window_length, periodic) - 1.0), dtype)


@documented
def blackman_window(window_length: Any, periodic: bool = True, *, dtype: Any = None) -> Tensor:
    """Blackman's window of three cosines; parameters as `bartlett_window`."""
    turn = 2.0 * np.pi * _angles(window_length, periodic)
    return _made(0.42 - 0.5 * np.cos(turn) + 0.08 * np.cos(2.0 * turn), dtype)


@documented
def hamming_window(
    window_length: Any, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *, dtype: Any = None
) -> Tensor:
    """`alpha - beta * cos`; further parameters as `bartlett_window`.

    alpha, beta : float
    """
    return _made(alpha - beta * np.cos(2.0 * np.pi * _angles(window_length, periodic)), dtype)


@documented
def hann_window(window_length: Any, periodic: bool = True, *, dtype: Any = None) -> Tensor:
    """Hann's window, a cosine that begins at 0; parameters as `bartlett_window`."""
    return hamming_window(window_length, periodic, 0.5, 0.5, dtype=dtype)


@documented
def kaiser_window(window_length: Any, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None) -> Tensor:
    """Kaiser's window; further parameters as `bartlett_window`.

    beta : float
        The greater, the narrower.
    """
    side = 2.0 * _angles(window_length, periodic) - 1.0
    return _made(np.i0(beta * np.sqrt(np.maximum(1.0 - side**2, 0.0))) / np.i0(beta), dtype)


@documented
def stft(
    x: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    center: bool = True,
    pad_mode: str = "REFLECT",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
) -> Tensor:
    """Fourier transforms of parts of signals, one after the other.

    x : Tensor or ndarray, shape (n,) or (batch, n)
    n_fft : int
        The length of a part.
    hop_length : int, optional
        The distance of parts; a quarter of `n_fft` by default.
    win_length : int, optional
        The length of the window; `n_fft` by default.
    window : Tensor, optional
        Ones by default.
    center : bool
        Whether part t has its centre at `t * hop_length`; the signal is then continued on both sides.
    pad_mode : {"REFLECT", "CONSTANT"}
        How it is continued.
    normalized : bool
        Whether values are divided by the root of `n_fft`.
    onesided : bool, optional
        Whether only half of the frequencies are there; by default for real signals.
    return_complex : bool, optional
        Whether the result is complex; by default a last axis holds real and imaginary part of it for real signals.
    -> Tensor, shape (..., frequencies, parts) or (..., frequencies, parts, 2)
    """
    signal = float_of(x)
    if signal.ndim not in (1, 2):
        message = f"stft needs signals (n,) or (batch, n), but the shape is {signal.shape}."
        raise ShapeError(message)
    hop = n_fft // 4 if hop_length is None else integer(hop_length, "hop_length")
    size = n_fft if win_length is None else integer(win_length, "win_length")
    half = onesided if onesided is not None else True
    shape_of_window = np.ones(size, np.float32) if window is None else float_of(window)
    left = (n_fft - size) // 2
    shape_of_window = np.pad(shape_of_window, (left, n_fft - size - left))
    if center:
        ends = [(0, 0)] * (signal.ndim - 1) + [(n_fft // 2, n_fft // 2)]
        signal = np.pad(signal, ends, mode=pad_mode.lower())
    starts = np.arange(0, signal.shape[-1] - n_fft + 1, hop)
    parts = signal[..., starts[:, None] + np.arange(n_fft)] * shape_of_window
    found = np.fft.rfft(parts) if half else np.fft.fft(parts)
    found = np.swapaxes(found, -1, -2)
    if normalized:
        found = found / math.sqrt(n_fft)
    if return_complex:
        return found
    return np.stack([found.real, found.imag], -1)
