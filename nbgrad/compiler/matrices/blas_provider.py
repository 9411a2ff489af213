"""The library that multiplies matrices, if it is not SciPy's BLAS.

In: the name or the path of a library, from the user. Out: the addresses of its products, and of its functions for the
number of threads. Called by blas_guard.py, blas_routines.py and info.py. It is chosen once, before the first product is
compiled: programs hold addresses, and results must not change their digits while a process runs. Integers are handed
over as 64 bits, of which libraries with short integers read the lower half, so that both kinds of interface are the
same to us.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ...errors import ArgumentError
from ...process.locks import building

LETTERS = {"float64": "d", "float32": "s"}
PRODUCTS = ("gemm", "syrk")
"""The routines: a product of two matrices, and of one with itself transposed."""
PREFIXES = ("scipy_", "")
ROUTINES, FUNCTIONS = ("_64_", "_", ""), ("64_", "")
"""How the names of routines in Fortran and of functions in C end; the former take all by address."""
SEQUENTIAL = 1
"""MKL's number for its layer without threads."""


class Provider(NamedTuple):
    """A library: its name, its products by routine and dtype, and functions that get and set the number of its threads
    (or 0)."""

    name: str
    products: dict[tuple[str, str], int]
    get: int
    set: int


class _State:
    """The choice, and whether a product relies on it."""

    chosen: Provider | None = None
    fixed: bool = False


def set_blas(library: str | os.PathLike[str]) -> None:
    """Choose the library that multiplies matrices in compiled programs.

    Parameters
    ----------
    library : str or path
        "scipy" (the default) or "numpy" for the BLAS that comes with that package, "mkl" for the one of the package
        `mkl`, or the path of a shared library with BLAS's `sgemm`, `dgemm`, `ssyrk` and `dsyrk`, with integers of 32 or
        of 64 bits.

    Raises
    ------
    ArgumentError
        If there is no such library, it has no products, they are wrong, or a product has been compiled with another.

    Notes
    -----
    Factorisations stay with SciPy's LAPACK, and small matrices with code of nbgrad's own. `python -m nbgrad info` shows
    the choice.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.set_blas("scipy")
    """
    if not isinstance(library, str | os.PathLike):
        message = f'set_blas needs the name or the path of a library, such as "numpy", but got {library!r}.'
        raise ArgumentError(message)
    name = os.fspath(library)
    with building.held():
        if name == (_State.chosen.name if _State.chosen else "scipy"):
            return
        if _State.fixed:
            message = f"set_blas({name!r}) comes too late: a product is compiled. Call it before the first one."
            raise ArgumentError(message)
        _State.chosen = None if name == "scipy" else _loaded(name)


def provider() -> Provider | None:
    """The library of all products from now on; None for SciPy's."""
    with building.held():
        _State.fixed = True
        return _State.chosen


def chosen_name() -> str:
    """The name that was chosen."""
    return _State.chosen.name if _State.chosen else "scipy"


# ----- Finding and loading -----


def _loaded(name: str) -> Provider:
    path = _path_of(name)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        message = f"set_blas cannot load {path}: {error}."
        raise ArgumentError(message) from None
    if hasattr(library, "MKL_Set_Threading_Layer"):
        # Our own threads share a product.
        library.MKL_Set_Threading_Layer(SEQUENTIAL)
    products = {
        (routine, dtype): _found(library, f"{letter}{routine}", ROUTINES)
        for routine in PRODUCTS
        for dtype, letter in LETTERS.items()
    }
    if None in products.values():
        message = f"{path} is no BLAS: it lacks sgemm, dgemm, ssyrk or dsyrk."
        raise ArgumentError(message)
    threads = [_found(library, f"openblas_{verb}_num_threads", FUNCTIONS) for verb in ("get", "set")]
    get, set_ = (0, 0) if None in threads else map(_address, threads)
    for dtype in LETTERS:
        _check(path, products["gemm", dtype], dtype)
    return Provider(name, {key: _address(product) for key, product in products.items()}, get, set_)


def _path_of(name: str) -> str:
    """The file that a name stands for."""
    if name not in ("numpy", "mkl"):
        if os.path.basename(name) != name and not os.path.exists(name):
            message = f"set_blas was given the path {name!r}, but there is no such file."
            raise ArgumentError(message)
        return name
    for path in _of_numpy() if name == "numpy" else _of_mkl():
        return str(path)
    remedy = "pip install mkl" if name == "mkl" else "give the path of a library instead"
    message = f"set_blas({name!r}) finds no BLAS that comes with {name}: {remedy}."
    raise ArgumentError(message)


def _of_numpy() -> Iterator[Path]:
    """Wheels of NumPy have their BLAS in a folder beside the package or in it."""
    spec = PathFinder.find_spec("numpy")
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        for place in (Path(folder + ".libs"), Path(folder) / ".dylibs"):
            yield from sorted(place.glob("*openblas*"))


def _of_mkl() -> Iterator[Path]:
    """Its library lies beside Python's own."""
    from importlib.metadata import PackageNotFoundError, files

    try:
        listed = [Path(str(entry.locate())).resolve() for entry in files("mkl") or () if "mkl_rt" in entry.name]
    except PackageNotFoundError:
        listed = []
    for folder in ("lib", "Library/bin"):
        listed += sorted((Path(sys.prefix) / folder).glob("*mkl_rt*"))
    yield from (path for path in listed if path.exists() and path.suffix != ".lib")


def _found(library: ctypes.CDLL, name: str, suffixes: tuple[str, ...]) -> Any:
    """A function under one of its spellings, or None."""
    for prefix in PREFIXES:
        for suffix in suffixes:
            function = getattr(library, f"{prefix}{name}{suffix}", None)
            if function is not None:
                return function
    return None


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def _check(path: str, product: Any, dtype: str) -> None:
    """Refuse a library whose product of two small matrices is wrong."""
    a, b = np.arange(6, dtype=dtype).reshape(2, 3), np.arange(3, 15, dtype=dtype).reshape(3, 4)
    out = np.full((2, 4), np.nan, dtype)
    m, n, k = (ctypes.c_int64(extent) for extent in (2, 4, 3))
    one, zero = np.ones((), dtype), np.zeros((), dtype)
    arrays = [ctypes.c_void_p(array.ctypes.data) for array in (one, b, a, zero, out)]
    alpha, at_b, at_a, beta, at_out = arrays
    product.restype = None
    letter = ctypes.c_char_p(b"N")
    product(
        letter,
        letter,
        *map(ctypes.byref, (n, m, k)),
        alpha,
        at_b,
        ctypes.byref(n),
        at_a,
        ctypes.byref(k),
        beta,
        at_out,
        ctypes.byref(n),
    )
    if not np.array_equal(out, a @ b):
        message = f"{path} multiplies matrices of {dtype} wrongly: its products do not take BLAS's arguments."
        raise ArgumentError(message)
