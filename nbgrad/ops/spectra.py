"""Fourier transforms with MindSpore's and PyTorch's names and arguments.

In: Tensors or ndarrays. Out: Tensors. Called by users. All is done, and documented, in `nbgrad.numpy.fft`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..functions.analysis import fft_functions
from ..graph.builders import cast
from ..record.as_node import wrap
from ..record.tensor import Tensor
from .spelling import spelled


@spelled
def fft(input: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor:
    """Discrete Fourier transform along an axis.

    Parameters
    ----------
    input : array-like, real or complex
    n : int, optional
        The number of points: the axis is cut, or continued with zeros.
    axis : int
    norm : {None, "backward", "ortho", "forward"}
        Which direction is scaled by 1 / n (the inverse one, both by the root of it, this one).

    Returns
    -------
    Tensor, complex

    Raises
    ------
    ArgumentError, ShapeError
        If there are no points, or the norm or the axis does not exist.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.ops.fft(nb.Tensor([1.0, 0.0])).real.tolist()
    [1.0, 1.0]
    """
    return fft_functions.fft(input, n, axis, norm)


@spelled
def ifft(input: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor:
    """Inverse of `fft`."""
    return fft_functions.ifft(input, n, axis, norm)


@spelled
def rfft(input: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor:
    """The first n // 2 + 1 frequencies of real numbers."""
    return fft_functions.rfft(input, n, axis, norm)


@spelled
def irfft(input: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor:
    """Inverse of `rfft`."""
    return fft_functions.irfft(input, n, axis, norm)


@spelled
def hfft(input: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor:
    """The real transform of numbers of which half are given, the others being conjugates."""
    return fft_functions.hfft(input, n, axis, norm)


@spelled
def ihfft(input: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor:
    """Inverse of `hfft`."""
    return fft_functions.ihfft(input, n, axis, norm)


@spelled
def fftn(input: Any, s: Any = None, axis: Any = None, norm: Any = None) -> Tensor:
    """Discrete Fourier transform along several axes, of s points each."""
    return fft_functions.fftn(input, s, axis, norm)


@spelled
def ifftn(input: Any, s: Any = None, axis: Any = None, norm: Any = None) -> Tensor:
    """Inverse of `fftn`."""
    return fft_functions.ifftn(input, s, axis, norm)


@spelled
def rfftn(input: Any, s: Any = None, axis: Any = None, norm: Any = None) -> Tensor:
    """As `fftn`, of real numbers: half of the frequencies along the last axis."""
    return fft_functions.rfftn(input, s, axis, norm)


@spelled
def irfftn(input: Any, s: Any = None, axis: Any = None, norm: Any = None) -> Tensor:
    """Inverse of `rfftn`."""
    return fft_functions.irfftn(input, s, axis, norm)


@spelled
def hfftn(input: Any, s: Any = None, axis: Any = None, norm: Any = None) -> Tensor:
    """As `hfft`, along several axes."""
    return fft_functions.hfftn(input, s, axis, norm)


@spelled
def ihfftn(input: Any, s: Any = None, axis: Any = None, norm: Any = None) -> Tensor:
    """Inverse of `hfftn`."""
    return fft_functions.ihfftn(input, s, axis, norm)


@spelled
def fft2(input: Any, s: Any = None, axis: Any = (-2, -1), norm: Any = None) -> Tensor:
    """Discrete Fourier transform along two axes."""
    return fftn(input, s, axis, norm)


@spelled
def ifft2(input: Any, s: Any = None, axis: Any = (-2, -1), norm: Any = None) -> Tensor:
    """Inverse of `fft2`."""
    return ifftn(input, s, axis, norm)


@spelled
def rfft2(input: Any, s: Any = None, axis: Any = (-2, -1), norm: Any = None) -> Tensor:
    """As `fft2`, of real numbers."""
    return rfftn(input, s, axis, norm)


@spelled
def irfft2(input: Any, s: Any = None, axis: Any = (-2, -1), norm: Any = None) -> Tensor:
    """Inverse of `rfft2`."""
    return irfftn(input, s, axis, norm)


@spelled
def hfft2(input: Any, s: Any = None, axis: Any = (-2, -1), norm: Any = None) -> Tensor:
    """As `hfft`, along two axes."""
    return hfftn(input, s, axis, norm)


@spelled
def ihfft2(input: Any, s: Any = None, axis: Any = (-2, -1), norm: Any = None) -> Tensor:
    """Inverse of `hfft2`."""
    return ihfftn(input, s, axis, norm)


@spelled
def fftshift(input: Any, axis: Any = None) -> Tensor:
    """Frequency 0 moved to the middle of axes (of all, by default)."""
    return fft_functions.fftshift(input, axis)


@spelled
def ifftshift(input: Any, axis: Any = None) -> Tensor:
    """Inverse of `fftshift`."""
    return fft_functions.ifftshift(input, axis)


def fftfreq(n: int, d: Any = 1.0, dtype: Any = None) -> Tensor:
    """The frequencies of `fft` of n points with spacing d; float32 unless a dtype is given."""
    return _in(fft_functions.fftfreq(n, d), dtype)


def rfftfreq(n: int, d: Any = 1.0, dtype: Any = None) -> Tensor:
    """The frequencies of `rfft` of n points with spacing d; float32 unless a dtype is given."""
    return _in(fft_functions.rfftfreq(n, d), dtype)


def _in(value: Tensor, dtype: Any) -> Tensor:
    return wrap(cast(value._node, np.dtype(np.float32 if dtype is None else dtype)))
