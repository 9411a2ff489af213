"""Addresses of BLAS's and LAPACK's routines.

In: the name of a routine, and a dtype. Out: an address: of the library that the user has chosen for products, or of the
one that SciPy exports for compiled code; the scratch memory that a routine wants. Called by matmul.py, blas_guard.py
and special.py.
"""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np

from ...process.locks import building
from .blas_provider import provider


def product_address(dtype: str, routine: str = "gemm") -> int:
    """The address of the product of matrices, or of one with itself transposed ("syrk")."""
    chosen = provider()
    return library_address(routine, dtype) if chosen is None else chosen.products[routine, dtype]


@cache
def library_address(routine: str, dtype: str) -> int:
    """The address of a routine of BLAS or LAPACK, from the pointers that SciPy exports for compiled code."""
    capsules = exported("cython_blas" if routine in ("gemm", "syrk", "trsm", "trsv") else "cython_lapack").__pyx_capi__
    capsule = capsules[{"float64": "d", "float32": "s"}[dtype] + routine]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, name(capsule)))


@cache
def scratch_extent(routine: str, dtype: str, *arguments: int | str | None) -> int:
    """The elements of scratch memory with which a routine of LAPACK is fastest.

    Parameters
    ----------
    routine, dtype : str
    *arguments : int, str or None
        All of its arguments: extents and letters, None for arrays, -1 behind that of the scratch memory, which is the
        last array before an extent of -1.
    """
    numbers = [np.array([a], np.int64) if isinstance(a, int) else np.zeros(8) for a in arguments]
    for k, a in enumerate(arguments):
        if isinstance(a, str):
            numbers[k] = np.array([ord(a)], np.int64)
    call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(numbers))(library_address(routine, dtype))
    call(*[number.ctypes.data for number in numbers])
    return int(numbers[arguments.index(-1) - 1].view(dtype)[0])


def exported(module_name: str) -> ModuleType:
    """The module of a table of pointers of SciPy's, which can be loaded only once."""
    with building.held():
        return _loaded(module_name)


@cache
def _loaded(module_name: str) -> ModuleType:
    """The table from its file, because importing scipy.linalg takes a quarter second."""
    import importlib

    scipy = PathFinder.find_spec("scipy")
    for folder in (scipy.submodule_search_locations or []) if scipy is not None else []:
        for path in sorted((Path(folder) / "linalg").glob(f"{module_name}.*")):
            if path.suffix in (".so", ".pyd"):
                spec = spec_from_file_location(f"scipy.linalg.{module_name}", path)
                if spec is not None and spec.loader is not None:
                    try:
                        module = module_from_spec(spec)
                        spec.loader.exec_module(module)
                    except ImportError:
                        break
                    return module
    return importlib.import_module(f"scipy.linalg.{module_name}")
