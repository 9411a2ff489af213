"""NumPy's Fourier transforms: `np.fft.fft(tensor)`.

In: array-likes, numbers of points, axes, norms. Out: Tensors. Called by users. All are made of the three transforms of
fourier.py; float32 stays single precision, float16 becomes it.

With n points, `norm` says which direction is scaled: "backward" (the default) the inverse one by 1 / n, "forward" the
other one by 1 / n, "ortho" both by 1 / sqrt(n).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, ShapeError
from ...graph.builders import cast, pad, slice_axes
from ...graph.complex_numbers import conjugate, is_complex, pair
from ...graph.ir import Node, zeros
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import (
    FLOAT16,
    FLOAT32,
    array_node,
    axis_of,
    deliver,
    inexact,
    integer,
    integers,
    only,
    real_dtype,
)
from ...record.placement import made_on
from ...record.tensor import Tensor
from ..arrays.result_order import like_argument, like_loop
from ..arrays.shaping import roll
from .fourier import DUAL, Axes, from_half_spectrum, half_spectrum, transform


def operand(a: Any) -> Node:
    node = inexact(array_node(a))
    return cast(node, FLOAT32) if node.dtype == FLOAT16 else node


def checked_norm(norm: Any) -> str:
    only("norm", norm, None, "backward", "ortho", "forward")
    return norm or "backward"


def fitted(node: Node, axis: int, n: int) -> Node:
    """An axis cut, or continued with zeros, to n elements."""
    extent = node.shape[axis]
    if n < extent:
        return slice_axes(node, [(0, n if k == axis else m, 1) for k, m in enumerate(node.shape)])
    return pad(node, [(0, n - extent if k == axis else 0) for k in range(node.ndim)])


def _points(name: str, n: Any, standard: int) -> int:
    count = standard if n is None else integer(n, "n")
    if count < 1:
        message = f"{name} needs at least one point along each axis, but got {count}."
        raise ArgumentError(message)
    return count


def extents_of(name: str, node: Node, s: Any, axes: Any, halved: bool = False) -> tuple[list[int], list[int]]:
    """The number of points of each axis of a transform, and the axes, counted from the front."""
    given = None if s is None else [None if v is None else integer(v, "s") for v in s]
    if axes is None:
        chosen = list(range(node.ndim)) if given is None else list(range(node.ndim - len(given), node.ndim))
    else:
        chosen = [axis_of(axis, node.ndim) for axis in integers(axes, "axes")]
    if (given is not None and len(given) != len(chosen)) or any(axis < 0 for axis in chosen):
        message = f"{name} needs one extent in s for each axis, but got s={s!r} for axes {axes!r} of {node.shape}."
        raise ShapeError(message)
    counts = [node.shape[axis] for axis in chosen]
    if halved and chosen and (given is None or given[-1] is None):
        counts[-1] = 2 * (counts[-1] - 1)
    for k, value in enumerate(given or []):
        if value is not None and value != -1:
            counts[k] = value
    return [_points(name, count, count) for count in counts], chosen


def _from_end(chosen: Sequence[int], ndim: int) -> Axes:
    return tuple([axis - ndim for axis in chosen])


# ----- The three kinds -----


def _complex(name: str, a: Any, s: Any, axes: Any, norm: Any, forward: bool, out: Any) -> Tensor:
    node, scale = operand(a), checked_norm(norm)
    counts, chosen = extents_of(name, node, s, axes)
    if not chosen:  # As in NumPy, nothing happens, not even to the dtype.
        return deliver(node, out)
    if len(set(chosen)) == len(chosen):
        for axis, count in zip(chosen, counts, strict=True):
            node = fitted(node, axis, count)
        return deliver(transform(node, _from_end(chosen, node.ndim), forward, scale), out)
    for axis, count in zip(reversed(chosen), reversed(counts), strict=True):
        node = transform(fitted(node, axis, count), (axis - node.ndim,), forward, scale)
    return deliver(node, out)


def _to_half(name: str, a: Any, s: Any, axes: Any, norm: Any) -> Node:
    node, scale = operand(a), checked_norm(norm)
    if is_complex(node):
        message = f"{name} needs real numbers, but got {node.dtype}. Use the transform without r (or i), or x.real."
        raise DtypeError(message)
    counts, chosen = extents_of(name, node, s, axes)
    _some_axis(name, chosen)
    for axis, count in zip(chosen, counts, strict=True):
        node = fitted(node, axis, count)
    others = [axis for axis in chosen[:-1] if axis != chosen[-1]]
    if len(set(chosen)) == len(chosen):
        return half_spectrum(node, _from_end([*others, chosen[-1]], node.ndim), scale)
    node = half_spectrum(node, (chosen[-1] - node.ndim,), scale)
    for axis, count in zip(reversed(chosen[:-1]), reversed(counts[:-1]), strict=True):
        node = transform(fitted(node, axis, count), (axis - node.ndim,), True, scale)
    return node


def _from_half(name: str, a: Any, s: Any, axes: Any, norm: Any) -> Node:
    given = array_node(a)
    node, scale = operand(a), checked_norm(norm)
    if not is_complex(node):
        node = pair(node, zeros(node.shape, node.dtype))
    counts, chosen = extents_of(name, node, s, axes, halved=True)
    _some_axis(name, chosen)
    if len(set(chosen)) != len(chosen):
        for axis, count in zip(chosen[:-1], counts[:-1], strict=True):
            node = transform(fitted(node, axis, count), (axis - node.ndim,), False, scale)
        chosen, counts = chosen[-1:], counts[-1:]
    for axis, count in zip(chosen[:-1], counts[:-1], strict=True):
        node = fitted(node, axis, count)
    node = fitted(node, chosen[-1], counts[-1] // 2 + 1)
    result = from_half_spectrum(node, counts[-1], _from_end(chosen, node.ndim), scale)
    return cast(result, FLOAT16) if given.dtype == FLOAT16 else result


def _some_axis(name: str, chosen: Sequence[int]) -> None:
    if not chosen:
        message = f"{name} needs at least one axis."
        raise ShapeError(message)


def _single(n: Any) -> Any:
    return None if n is None else (n,)


# ----- NumPy's names -----


@like_argument()
def fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tensor:
    """Discrete Fourier transform along an axis.

    Parameters
    ----------
    a : array-like, real or complex
    n : int, optional
        The number of points: the axis is cut, or continued with zeros. By default its extent.
    axis : int
    norm : {None, "backward", "ortho", "forward"}
        See the head of this module.
    out : Tensor or ndarray, optional

    Returns
    -------
    Tensor, complex

    Raises
    ------
    ArgumentError
        If there are no points, or the norm does not exist.
    ShapeError
        If the axis does not exist.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> np.fft.fft(nb.Tensor(np.array([1.0, 0.0, 0.0, 0.0]))).real.tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _complex("fft", a, _single(n), (axis,), norm, True, out)


@like_argument()
def ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tensor:
    """Inverse of `fft`."""
    return _complex("ifft", a, _single(n), (axis,), norm, False, out)


@like_argument()
def fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Tensor:
    """Discrete Fourier transform along several axes; `s` has the number of points of each (-1 for the whole axis)."""
    return _complex("fftn", a, s, axes, norm, True, out)


@like_argument()
def ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Tensor:
    """Inverse of `fftn`."""
    return _complex("ifftn", a, s, axes, norm, False, out)


@like_argument()
def fft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Tensor:
    """Discrete Fourier transform along two axes."""
    return _complex("fft2", a, s, axes, norm, True, out)


@like_argument()
def ifft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Tensor:
    """Inverse of `fft2`."""
    return _complex("ifft2", a, s, axes, norm, False, out)


@like_argument()
def rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tensor:
    """Discrete Fourier transform of real numbers: the first n // 2 + 1 frequencies; the others are their conjugates."""
    return deliver(_to_half("rfft", a, _single(n), (axis,), norm), out)


@like_argument()
def irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tensor:
    """Inverse of `rfft`: real numbers, by default 2 (m - 1) of them for m frequencies.

    The imaginary parts of frequencies that are their own conjugates do not count.
    """
    return deliver(_from_half("irfft", a, _single(n), (axis,), norm), out)


@like_argument()
def rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Tensor:
    """Discrete Fourier transform of real numbers along several axes, halved along the last of them."""
    return deliver(_to_half("rfftn", a, s, axes, norm), out)


@like_argument()
def irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Tensor:
    """Inverse of `rfftn`."""
    return deliver(_from_half("irfftn", a, s, axes, norm), out)


@like_argument()
def rfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Tensor:
    """Discrete Fourier transform of real numbers along two axes, halved along the second."""
    return deliver(_to_half("rfft2", a, s, axes, norm), out)


@like_argument()
def irfft2(a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None) -> Tensor:
    """Inverse of `rfft2`."""
    return deliver(_from_half("irfft2", a, s, axes, norm), out)


def hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tensor:
    """Discrete Fourier transform, which is real, of numbers of which half are given, the others being conjugates."""
    node = array_node(a)
    return _hfft(wrap(like_loop(conjugate(node), [node])), n, axis, norm, out)


@like_argument()
def _hfft(a: Tensor, n: Any, axis: int, norm: Any, out: Any) -> Tensor:
    return deliver(_from_half("hfft", a, _single(n), (axis,), DUAL[checked_norm(norm)]), out)


@like_argument()
def ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Tensor:
    """Inverse of `hfft`."""
    return deliver(conjugate(_to_half("ihfft", a, _single(n), (axis,), DUAL[checked_norm(norm)])), out)


def hfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Tensor:
    """`hfft` along several axes; SciPy has it, NumPy does not."""
    return irfftn(wrap(conjugate(as_node(a))), s, axes, DUAL[checked_norm(norm)])


def ihfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Tensor:
    """Inverse of `hfftn`."""
    return wrap(conjugate(rfftn(a, s, axes, DUAL[checked_norm(norm)])._node))


# ----- Orders of frequencies -----


def _shifted(x: Any, axes: Any, part: Callable[[int], int]) -> Tensor:
    node = as_node(x)
    chosen = range(node.ndim) if axes is None else [axis_of(axis, node.ndim) for axis in integers(axes, "axes")]
    return roll(x, tuple([part(node.shape[axis]) for axis in chosen]), tuple(chosen))


def fftshift(x: Any, axes: Any = None) -> Tensor:
    """Frequency 0 moved to the middle of axes (of all, by default)."""
    return _shifted(x, axes, lambda n: n // 2)


def ifftshift(x: Any, axes: Any = None) -> Tensor:
    """Inverse of `fftshift`."""
    return _shifted(x, axes, lambda n: -(n // 2))


def _frequencies(n: Any, d: Any, positions: Callable[[int], np.ndarray], device: Any, dtype: Any) -> Tensor:
    count = _points("fftfreq", n, 1)
    spacing = d if isinstance(d, Tensor) else wrap(as_node(d))
    found = positions(count).astype(np.float64) * (1.0 / (count * spacing))
    found = found if dtype is None else found.astype(real_dtype(dtype))
    return wrap(made_on(found._node, device))


def fftfreq(n: Any, d: Any = 1.0, device: Any = None, *, dtype: Any = None) -> Tensor:
    """The frequencies of `fft` of n points with spacing d, which may be differentiated with respect to d.

    `dtype` is of the array API standard, which NumPy does not have.
    """
    return _frequencies(
        n, d, lambda k: np.concatenate([np.arange((k + 1) // 2), np.arange(-(k // 2), 0)]), device, dtype
    )


def rfftfreq(n: Any, d: Any = 1.0, device: Any = None, *, dtype: Any = None) -> Tensor:
    """The frequencies of `rfft` of n points with spacing d."""
    return _frequencies(n, d, lambda k: np.arange(k // 2 + 1), device, dtype)
