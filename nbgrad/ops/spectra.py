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
from .declarations import as_numpy


@as_numpy(fft_functions.fft)
def fft(input: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor:
    """Discrete Fourier transform along an axis.

    input : array-like, real or complex
    n : int, optional
        The number of points: the axis is cut, or continued with zeros.
    norm : {None, "backward", "ortho", "forward"}
        The direction that is scaled by 1 / n (the inverse one, both by the root of it, this one).
    -> Tensor, complex
    ArgumentError, ShapeError : If there are no points, or the norm or the axis does not exist.

    >>> nb.ops.fft(nb.Tensor([1.0, 0.0])).real.tolist()
    [1.0, 1.0]
    """
    ...


@as_numpy(fft_functions.ifft, "Inverse of `fft`.")
def ifft(input: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor: ...
@as_numpy(fft_functions.rfft, "The first n // 2 + 1 frequencies of real numbers.")
def rfft(input: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor: ...
@as_numpy(fft_functions.irfft, "Inverse of `rfft`.")
def irfft(input: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor: ...
@as_numpy(fft_functions.hfft, "The real transform of numbers of which half are given, the others being conjugates.")
def hfft(input: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor: ...
@as_numpy(fft_functions.ihfft, "Inverse of `hfft`.")
def ihfft(input: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor: ...
@as_numpy(fft_functions.fftn, "Discrete Fourier transform along several axes, of s points each.")
def fftn(input: Any, s: Any = None, axis: Any = None, norm: Any = None) -> Tensor: ...
@as_numpy(fft_functions.ifftn, "Inverse of `fftn`.")
def ifftn(input: Any, s: Any = None, axis: Any = None, norm: Any = None) -> Tensor: ...
@as_numpy(fft_functions.rfftn, "As `fftn`, of real numbers: half of the frequencies along the last axis.")
def rfftn(input: Any, s: Any = None, axis: Any = None, norm: Any = None) -> Tensor: ...
@as_numpy(fft_functions.irfftn, "Inverse of `rfftn`.")
def irfftn(input: Any, s: Any = None, axis: Any = None, norm: Any = None) -> Tensor: ...
@as_numpy(fft_functions.hfftn, "As `hfft`, along several axes.")
def hfftn(input: Any, s: Any = None, axis: Any = None, norm: Any = None) -> Tensor: ...
@as_numpy(fft_functions.ihfftn, "Inverse of `hfftn`.")
def ihfftn(input: Any, s: Any = None, axis: Any = None, norm: Any = None) -> Tensor: ...
@as_numpy(fftn, "Discrete Fourier transform along two axes.")
def fft2(input: Any, s: Any = None, axis: Any = (-2, -1), norm: Any = None) -> Tensor: ...
@as_numpy(ifftn, "Inverse of `fft2`.")
def ifft2(input: Any, s: Any = None, axis: Any = (-2, -1), norm: Any = None) -> Tensor: ...
@as_numpy(rfftn, "As `fft2`, of real numbers.")
def rfft2(input: Any, s: Any = None, axis: Any = (-2, -1), norm: Any = None) -> Tensor: ...
@as_numpy(irfftn, "Inverse of `rfft2`.")
def irfft2(input: Any, s: Any = None, axis: Any = (-2, -1), norm: Any = None) -> Tensor: ...
@as_numpy(hfftn, "As `hfft`, along two axes.")
def hfft2(input: Any, s: Any = None, axis: Any = (-2, -1), norm: Any = None) -> Tensor: ...
@as_numpy(ihfftn, "Inverse of `hfft2`.")
def ihfft2(input: Any, s: Any = None, axis: Any = (-2, -1), norm: Any = None) -> Tensor: ...
@as_numpy(fft_functions.fftshift, "Frequency 0 moved to the middle of axes (of all, by default).")
def fftshift(input: Any, axis: Any = None) -> Tensor: ...
@as_numpy(fft_functions.ifftshift, "Inverse of `fftshift`.")
def ifftshift(input: Any, axis: Any = None) -> Tensor: ...


def fftfreq(n: int, d: Any = 1.0, dtype: Any = None) -> Tensor:
    """The frequencies of `fft` of n points with spacing d; float32 unless a dtype is given."""
    return _in(fft_functions.fftfreq(n, d), dtype)


def rfftfreq(n: int, d: Any = 1.0, dtype: Any = None) -> Tensor:
    """The frequencies of `rfft` of n points with spacing d; float32 unless a dtype is given."""
    return _in(fft_functions.rfftfreq(n, d), dtype)


def _in(value: Tensor, dtype: Any) -> Tensor:
    return wrap(cast(value._node, np.dtype(np.float32 if dtype is None else dtype)))
