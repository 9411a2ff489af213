"""Elements of what LAPACK finds, which machine code of derivatives asks for.

In: the address, shape and dtype of a matrix, and the place of an element. Out: the element, as Numba's own call of the
same routine finds it. Called by machine_function.py, which passes its address to machine code; LAPACK comes with
SciPy, as Numba's does. The vectors of the last matrix are kept, since elements are asked for one after the other.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any, NamedTuple

import numpy as np

TEXTS = {
    "np.linalg.eigh({2})[1][{0}, {1}]": 0,
    "np.linalg.svd({2})[2][{0}, {1}]": 1,
    "np.linalg.svd({2})[0][{0}, {1}]": 2,
    "np.linalg.eig({2})[1][{0}, {1}]": 3,
}
"""The operations that are known here, with their numbers."""
_ASKED = ctypes.CFUNCTYPE(ctypes.c_double, *[ctypes.c_int64] * 7)


class _Found(NamedTuple):
    """The vectors of a matrix."""

    key: tuple[int, bool, int, int, bytes]
    vectors: np.ndarray


_last: list[_Found] = []


def _vectors(kind: int, matrix: np.ndarray) -> np.ndarray:
    """The vectors of a matrix, by the routine that Numba calls."""
    from scipy.linalg import lapack

    letter = "d" if matrix.dtype == np.float64 else "s"
    if kind == 0:
        return getattr(lapack, f"{letter}syevd")(matrix, compute_v=1, lower=1)[1]
    if kind == 3:
        return getattr(lapack, f"{letter}geev")(matrix, compute_vl=0, compute_vr=1)[3]
    found = getattr(lapack, f"{letter}gesdd")(matrix, compute_uv=1, full_matrices=1)
    return found[2 if kind == 1 else 0]


def _element(kind: int, data: int, wide: int, rows: int, columns: int, row: int, column: int) -> float:
    """An element of the vectors of a matrix in C order."""
    memory = ctypes.string_at(data, rows * columns * (8 if wide else 4))
    key = (kind, bool(wide), rows, columns, memory)
    found = _last[-1] if _last else None
    if found is None or found.key != key:
        matrix = np.frombuffer(memory, np.float64 if wide else np.float32).reshape(rows, columns)
        found = _Found(key, _vectors(kind, matrix))
        _last[:] = [found]
    return float(found.vectors[row, column])


@functools.cache
def asked() -> Any:
    """The function that machine code calls, which stays for the life of the process."""
    return _ASKED(_element)
