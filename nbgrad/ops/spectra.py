"""Fourier transforms with MindSpore's and PyTorch's names and arguments.

In: Tensors or ndarrays. Out: Tensors. Called by users. All is done, and documented, in `nbgrad.numpy.fft`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph.complex_numbers import conjugate
from ..graph.primitives import cast
from ..numpy import fft as numpy_fft
from ..numpy.fourier import DUAL
from ..numpy.lifting import as_node, wrap
from ..tensor import Tensor
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
    return numpy_fft.fft(input, n, axis, norm)


@spelled
def ifft(input: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor:
    """Inverse of `fft`."""
    return numpy_fft.ifft(input, n, axis, norm)


@spelled
def rfft(input: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor:
    """The first n // 2 + 1 frequencies of real numbers."""
    return numpy_fft.rfft(input, n, axis, norm)


@spelled
def irfft(input: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor:
    """Inverse of `rfft`."""
    return numpy_fft.irfft(input, n, axis, norm)


@spelled
def hfft(input: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor:
    """The real transform of numbers of which half are given, the others being conjugates."""
    return numpy_fft.hfft(input, n, axis, norm)


@spelled
def ihfft(input: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Tensor:
    """Inverse of `hfft`."""
    return numpy_fft.ihfft(input, n, axis, norm)


@spelled
def fftn(input: Any, s: Any = None, axis: Any = None, norm: Any = None) -> Tensor:
    """Discrete Fourier transform along several axes, of s points each."""
    return numpy_fft.fftn(input, s, axis, norm)


@spelled
def ifftn(input: Any, s: Any = None, axis: Any = None, norm: Any = None) -> Tensor:
    """Inverse of `fftn`."""
    return numpy_fft.ifftn(input, s, axis, norm)


@spelled
def rfftn(input: Any, s: Any = None, axis: Any = None, norm: Any = None) -> Tensor:
    """As `fftn`, of real numbers: half of the frequencies along the last axis."""
    return numpy_fft.rfftn(input, s, axis, norm)


@spelled
def irfftn(input: Any, s: Any = None, axis: Any = None, norm: Any = None) -> Tensor:
    """Inverse of `rfftn`."""
    return numpy_fft.irfftn(input, s, axis, norm)


@spelled
def hfftn(input: Any, s: Any = None, axis: Any = None, norm: Any = None) -> Tensor:
    """As `hfft`, along several axes."""
    dual = DUAL.get(norm or "backward", norm)
    return numpy_fft.irfftn(wrap(conjugate(as_node(input))), s, axis, dual)


@spelled
def ihfftn(input: Any, s: Any = None, axis: Any = None, norm: Any = None) -> Tensor:
    """Inverse of `hfftn`."""
    dual = DUAL.get(norm or "backward", norm)
    return wrap(conjugate(numpy_fft.rfftn(input, s, axis, dual)._node))


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
    return numpy_fft.fftshift(input, axis)


@spelled
def ifftshift(input: Any, axis: Any = None) -> Tensor:
    """Inverse of `fftshift`."""
    return numpy_fft.ifftshift(input, axis)


def fftfreq(n: int, d: Any = 1.0, dtype: Any = None) -> Tensor:
    """The frequencies of `fft` of n points with spacing d; float32 unless a dtype is given."""
    return _in(numpy_fft.fftfreq(n, d), dtype)


def rfftfreq(n: int, d: Any = 1.0, dtype: Any = None) -> Tensor:
    """The frequencies of `rfft` of n points with spacing d; float32 unless a dtype is given."""
    return _in(numpy_fft.rfftfreq(n, d), dtype)


def _in(value: Tensor, dtype: Any) -> Tensor:
    return wrap(cast(value._node, np.dtype(np.float32 if dtype is None else dtype)))
