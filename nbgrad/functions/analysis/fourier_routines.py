"""Fourier transforms of arrays by a library, written into memory that exists, without the time of its checks.

In: arrays, axes counted from the end, NumPy's names of norms. Out: arrays, or an array that is given, written; and
`set_fft`, which chooses the library. Called by fourier.py and by users. `scipy.fft` needs 10 microseconds to look at
its arguments, as long as a transform of 1000 numbers takes; its routines in C++ are called as it calls them. The
package ducc0, by the same author, has the same routines, which take a third to all of their time. Where neither has
what it had, `scipy.fft` itself is called.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from ...errors import ArgumentError

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


def _of_ducc0() -> Any:
    return import_module("ducc0").fft


def _of_scipy() -> Any:
    return import_module("scipy.fft._pocketfft.pypocketfft")


LIBRARIES: dict[str, Callable[[], Any]] = {"ducc0": _of_ducc0, "scipy": _of_scipy}
"""By the name of a library: what imports its routines. The first is taken that exists."""
_chosen: list[str] = []
"""The library that `set_fft` was given, if any."""


def set_fft(library: str) -> None:
    """Choose the library of Fourier transforms on the CPU.

    Parameters
    ----------
    library : str
        "ducc0" (`pip install "nbgrad[fft]"`), which is used where it is installed, or "scipy".

    Raises
    ------
    ArgumentError
        If there is no such library, or it gives wrong numbers.

    Notes
    -----
    Both transform by mixed radices and Bluestein's algorithm, with errors of the same size, but not the same roundings.
    Compiled functions use the library that is chosen when they are called. `python -m nbgrad info` shows the choice.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.set_fft("scipy")
    """
    if not isinstance(library, str) or library not in LIBRARIES:
        message = f'set_fft needs "ducc0" or "scipy", but got {library!r}.'
        raise ArgumentError(message)
    if library == "ducc0" and _routines(library) is None:
        message = 'set_fft("ducc0") needs the package ducc0: pip install "nbgrad[fft]".'
        raise ArgumentError(message)
    _chosen[:] = [library]


def routines() -> Any:
    """The module of the routines; None if no library gives the numbers of NumPy when it is called in this way."""
    if _chosen:
        return _routines(_chosen[0])
    return _installed()


@cache
def _installed() -> Any:
    found = map(_routines, LIBRARIES)
    return next((one for one in found if one is not None), None)


def chosen_name() -> str:
    """The name of the library that transforms."""
    return next((name for name in LIBRARIES if _routines(name) is not None and _routines(name) is routines()), "scipy")


@cache
def _routines(library: str) -> Any:
    """The routines of a library, if they are what they were."""
    x = np.array([[1.0, 2.0, 4.0], [3.0, 0.0, 5.0]])
    half, whole, back = np.full((2, 2), np.nan + 0j), np.full((2, 3), np.nan + 0j), np.full((2, 3), np.nan)
    try:
        found = LIBRARIES[library]()
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
