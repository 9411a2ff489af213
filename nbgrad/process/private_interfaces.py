"""Every private interface of CPython, NumPy, Numba, LLVM and SciPy that nbgrad relies on, and how each is checked.

In: nothing. Out: `INTERFACES`, a table; `NOT_GIVEN`, which several modules need; `newer_than_tested`. A test looks for
the patterns in all sources: a use that is not listed here fails, and so does a line here that nothing uses. What native
code needs of objects is measured by object_layout.py, which stands in this table like the others. Called by tests and
by info.py.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NEWEST_TESTED = {"numpy": (2, 4), "numba": (0, 68), "llvmlite": (0, 50), "scipy": (1, 17), "optree": (0, 20)}
"""The newest releases that the tests have been run with; the oldest are the requirements of the package."""

NOT_GIVEN = getattr(np, "_NoValue", object())
"""The value that NumPy's functions pass on for arguments that they were not given."""


class Interface(NamedTuple):
    """One private interface: `pattern` finds its uses in sources, and `files` are all of them."""

    name: str
    pattern: str
    files: str
    relies_on: str
    checked: str


INTERFACES = (
    Interface(
        "layout of objects",
        r"_multiarray_umath|_ARRAY_API",
        "process/object_layout.py",
        "offsets in objects of CPython and NumPy, and positions in NumPy's table of functions",
        "measured at every import; an interpreter that does not fit is refused",
    ),
    Interface(
        "CPython's functions in C",
        r"ctypes\.pythonapi",
        "compiler/matrices/blas_routines.py device/memory/dlpack.py process/object_layout.py runtime/blocks.py "
        "runtime/cpu_program.py runtime/native.py runtime/native_steps.py runtime/native_tensors.py",
        "the stable part of the C interface, METH_FASTCALL, and NEP 49's handlers of memory",
        "looked up by name when native code is first needed",
    ),
    Interface(
        "numbers of references",
        r"\bgetrefcount",
        "compiled/device_calls.py compiled/frozen_arrays.py graph/known_values.py graph/loops/in_place.py "
        "record/shared_memory.py",
        "how many references there are while nothing else holds an array",
        "calibrated at import, by counting an object that nothing else holds",
    ),
    Interface(
        "frames of callers",
        r"sys\._getframe",
        "compiled/explain.py compiled/nan_search.py errors.py graph/loops/noted.py graph/loops/watch.py "
        "record/foreign_arrays.py source/handled_errors.py tensors/protocols.py tensors/values.py",
        "f_back, f_code, f_globals, and names of modules of pandas and scipy.sparse",
        "tests with both libraries; without a match, the general message or way is taken",
    ),
    Interface(
        "kind of globals",
        r"f_globals\.__class__",
        "record/leaks.py source/handled_errors.py tensors/python_numbers.py",
        "converted code has globals of a class of its own (source/rebinding.py)",
        "tests/test_source.py",
    ),
    Interface(
        "positions in bytecode",
        r"f_lasti|co_positions",
        "graph/loops/noted.py graph/trace.py record/leaks.py",
        "the instruction that a frame is at, and its columns in the source",
        "used for messages only; tests/test_error_advice.py",
    ),
    Interface(
        "locks of imports",
        r"_module_locks|_frozen_importlib|\b_imp\.",
        "process/locks.py",
        "importlib's table of locks of modules, and the lock of imports",
        "tests/test_forks.py; without the table a fork waits for nothing",
    ),
    Interface(
        "values that were not given",
        r"_NoValue",
        "process/private_interfaces.py",
        "the object that NumPy passes on",
        "tests of functions that NumPy calls with it",
    ),
    Interface(
        "the environment's table",
        r"environ\._data|encodekey",
        "config.py runtime/native_tensors.py",
        "where os.environ keeps its entries, so that native code sees a change",
        "looked for; without it a call takes the slower way",
    ),
    Interface(
        "Numba's compiled functions",
        r"inspect_llvm|fndesc|numba\.core",
        "adjoints/derived.py adjoints/reading/kernel_form.py adjoints/reading/numba_types.py "
        "adjoints/reading/record_parts.py adjoints/threads/launch_memory.py compiler/lowering.py "
        "extend/scalar_calls.py runtime/words.py",
        "the IR and the calling convention of what Numba has compiled, and the class of its functions",
        "tests/test_text_passes.py; shipped IR needs no Numba",
    ),
    Interface(
        "Numba's type inference",
        r"define_untyped_pipeline|_compile_core|CompileResult\._rebuild|data\._reduce|made\._cache",
        "adjoints/reading/numba_types.py adjoints/derived.py",
        "the types of a kernel's names, and the form in which compiled functions are stored",
        "tests/test_adjoints.py; a stored function that cannot be loaded is compiled anew",
    ),
    Interface(
        "llvmlite's passes and its lock",
        r"NewPassManager|_dispose|_cfn|context\._(?:owned|ptr)",
        "compiler/passes.py",
        "how pass managers, modules and contexts are freed; functions of LLVM in wrappers that take a lock",
        "asked for at each use, and called with the lock where they are not there; tests/test_code_memory.py",
    ),
    Interface(
        "SciPy's pointers to BLAS and LAPACK",
        r"__pyx_capi__",
        "compiler/matrices/blas_routines.py",
        "cython_blas and cython_lapack export their routines by name",
        "looked up by name; their file is found by path, else imported",
    ),
    Interface(
        "SciPy's Fourier transforms",
        r"pypocketfft",
        "functions/analysis/fourier_routines.py",
        "c2c, r2c and c2r of scipy.fft._pocketfft.pypocketfft, and the order of their arguments",
        "called once and compared with NumPy; without them scipy.fft itself is called",
    ),
    Interface(
        "GCC's OpenMP runtime",
        r"GOMP_parallel",
        "runtime/native.py runtime/threads.py",
        "GOMP_parallel and the variable GOMP_SPINCOUNT",
        "looked up by name; without it programs run on one thread",
    ),
)
"""All private interfaces: the files that use each, the facts that it relies on, and the check of these facts."""


def newer_than_tested(package: str, installed: str) -> bool:
    """Whether a version of a package is newer than any that the tests have been run with.

    Examples
    --------
    >>> newer_than_tested("numpy", "2.4.9"), newer_than_tested("numpy", "3.0.0rc1")
    (False, True)
    """
    newest = NEWEST_TESTED.get(package)
    numbers = tuple([int(part) for part in installed.split(".")[:2] if part.isdigit()])
    return newest is not None and numbers > newest
