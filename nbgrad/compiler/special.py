"""Special kernels: those that are not loop nests over scalars.

In: a `Special` of fuse.py. Out: the address of its native code, with the same ABI as a fused loop, and the integers
that it is called with. Called by the runtime. The sources lie in kernels/ and are compiled by Numba, once per dtype;
matrix products call the BLAS that SciPy provides.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np

from ..graph.ir import Node, Shape
from . import cpu
from .fuse import Special, matrix_layout
from .scalars import kernel_module, lower

WINDOWS = frozenset(["unfold", "fold", "window_argmax"])
MATRICES = {"lu": "getrf", "cholesky": "potrf", "triangular_solve": "trsm", "complete_pivots": ""}
"""Kernels on batches of matrices, and the routines that they call."""
SMALL_MATRIX = 64
"""Larger matrices are done one after the other: BLAS shares each among threads."""


def workspace_bytes(kernel: Special) -> int:
    """Bytes of scratch memory that a kernel needs besides its operands and result."""
    node = kernel.node
    match node.name:
        case "argsort":
            return node.size * 8
        case "complete_pivots":
            return node.inputs[0].size * node.inputs[0].dtype.itemsize
        case "lu":
            return node.shape[0] * (node.shape[2] // 2 + 2) * 8
        case "cholesky":
            return node.shape[0] * 8
        case _:
            return 0


def rows_of(kernel: Special) -> int:
    """How many independent rows or matrices a kernel works on: what threads can share."""
    node = kernel.node
    if node.name in ("recurrence", "accumulate", "argsort"):
        return node.size // node.shape[-1]
    if node.name in WINDOWS:
        images = _images(node)
        return images[0] * images[1]
    if node.name in MATRICES and (node.inputs[0].shape[1] <= SMALL_MATRIX or not MATRICES[node.name]):
        return node.shape[0]
    return 1


def special_address(kernel: Special) -> int:
    """The address of a special kernel's code."""
    node = kernel.node
    if node.name == "matmul":
        return cpu.function_address(f"matmul {node.dtype.name}", "kernel", lambda: _matmul_ir(node.dtype.name))
    function = {"accumulate": f"running_{node.params[0]}" if node.params else ""}.get(node.name, node.name)
    pointers = [f"*{source.dtype.name}" for source in node.inputs]
    if workspace_bytes(kernel):
        pointers.append(f"*{node.inputs[0].dtype.name}" if node.name == "complete_pivots" else "*int64")
    pointers.append(f"*{node.dtype.name}")
    key = f"special {function} {' '.join(pointers)}"
    return cpu.function_address(key, "kernel", lambda: _special_ir(function, pointers))


def special_sizes(kernel: Special) -> list[int]:
    """The integers that a special kernel is called with."""
    node = kernel.node
    match node.name:
        case "recurrence":
            return [rows_of(kernel), node.shape[-1], int(node.params[0])]
        case "accumulate" | "argsort":
            return [rows_of(kernel), node.shape[-1]]
        case "scatter_add" | "scatter_last":
            return [node.inputs[0].size, node.size]
        case "matmul":
            return _matmul_sizes(kernel)
        case "unfold" | "fold" | "window_argmax":
            return [*_images(node), *[number for pair in node.params[:5] for number in pair]]
        case "lu" | "cholesky" | "triangular_solve" | "complete_pivots":
            return _matrix_sizes(kernel)
        case _:
            raise AssertionError(node)


def _matrix_sizes(kernel: Special) -> list[int]:
    """(routine, extent, matrices in a chunk, and what kernels/linalg.py says). Letters are those of the transposes."""
    node = kernel.node
    routine = MATRICES[node.name]
    address = library_address(routine, node.dtype.name) if routine else 0
    sizes = [address, node.inputs[0].shape[1], node.shape[0] // rows_of(kernel)]
    if node.name == "cholesky":
        return [*sizes, ord("U")]
    if node.name == "triangular_solve":
        lower, transposed, unit = node.params
        letters = ["R", "U" if lower else "L", "T" if transposed else "N", "U" if unit else "N"]
        one = np.ones(1, node.dtype).view(f"int{8 * node.dtype.itemsize}")
        return [*sizes, node.shape[2], *map(ord, letters), int(one[0])]
    return sizes


def _images(node: Node) -> Shape:
    """The shape of the images that a kernel on windows reads or writes."""
    return node.shape if node.name == "fold" else node.inputs[0].shape


def _special_ir(function: str, pointers: Sequence[str]) -> str:
    modules = [kernel_module(name) for name in ("scan", "scatter", "sort", "windows", "linalg")]
    found = next(getattr(module, function) for module in modules if hasattr(module, function))
    text = lower(found, [*pointers, "*int64", "int64", "int64"], "int64", "special")
    lines = [text, "define void @kernel(ptr %pointers, ptr %sizes, i64 %begin, i64 %end) {"]
    for position in range(len(pointers)):
        lines.append(f"  %at{position} = getelementptr ptr, ptr %pointers, i64 {position}")
        lines.append(f"  %p{position} = load ptr, ptr %at{position}")
    arguments = ", ".join([*[f"ptr %p{position}" for position in range(len(pointers))], "ptr %sizes"])
    lines.append(f"  %status = call i64 @special({arguments}, i64 %begin, i64 %end)")
    lines += ["  ret void", "}", ""]
    return "\n".join(lines)


# ----- Matrix products -----


def _matmul_sizes(kernel: Special) -> list[int]:
    """(function, batch, m, n, k, then per operand: letter, leading dimension, distance between matrices)."""
    batch, m, n = kernel.node.shape
    k = kernel.node.inputs[0].shape[2]
    sizes = [library_address("gemm", kernel.node.dtype.name), batch, m, n, k]
    for view in kernel.views:
        layout = matrix_layout(view)
        assert layout is not None
        transposed, leading = layout
        sizes += [ord("T" if transposed else "N"), leading, view.strides[0]]
    return [*sizes, m * n]


def _matmul_ir(dtype: str) -> str:
    """IR that calls gemm once per matrix. Row-major C = A B is column-major C' = B' A', which is what BLAS computes."""
    kind = {"float64": "double", "float32": "float"}[dtype]
    names = "function batch m n k ta lda da tb ldb db dc".split()
    lines = ["define void @kernel(ptr %pointers, ptr %sizes, i64 %begin, i64 %end) {", "entry:"]
    for position, name in enumerate(names):
        lines.append(f"  %{name}.at = getelementptr i64, ptr %sizes, i64 {position}")
        lines.append(f"  %{name} = load i64, ptr %{name}.at")
    for name in ("m", "n", "k", "lda", "ldb"):
        lines.append(f"  %{name}.slot = alloca i32")
        lines.append(f"  %{name}.32 = trunc i64 %{name} to i32")
        lines.append(f"  store i32 %{name}.32, ptr %{name}.slot")
    for name in ("ta", "tb"):
        lines.append(f"  %{name}.slot = alloca i8")
        lines.append(f"  %{name}.8 = trunc i64 %{name} to i8")
        lines.append(f"  store i8 %{name}.8, ptr %{name}.slot")
    for name, value in (("alpha", "1.0"), ("beta", "0.0")):
        lines.append(f"  %{name} = alloca {kind}")
        lines.append(f"  store {kind} {value}, ptr %{name}")
    for position, name in enumerate("abc"):
        lines.append(f"  %{name}.at = getelementptr ptr, ptr %pointers, i64 {position}")
        lines.append(f"  %{name} = load ptr, ptr %{name}.at")
    lines += [
        "  %gemm = inttoptr i64 %function to ptr",
        "  br label %test",
        "test:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %body ]",
        "  %more = icmp slt i64 %i, %batch",
        "  br i1 %more, label %body, label %done",
        "body:",
    ]
    for name in "abc":
        lines.append(f"  %{name}.off = mul i64 %i, %d{name}")
        lines.append(f"  %{name}.i = getelementptr {kind}, ptr %{name}, i64 %{name}.off")
    arguments = (
        "ptr %tb.slot, ptr %ta.slot, ptr %n.slot, ptr %m.slot, ptr %k.slot, ptr %alpha, ptr %b.i, ptr %ldb.slot, "
        "ptr %a.i, ptr %lda.slot, ptr %beta, ptr %c.i, ptr %n.slot"
    )
    lines += [
        f"  call void %gemm({arguments})",
        "  %next = add i64 %i, 1",
        "  br label %test",
        "done:",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)


@cache
def library_address(routine: str, dtype: str) -> int:
    """The address of a routine of BLAS or LAPACK, from the pointers that SciPy exports for compiled code."""
    capsules = _exported("cython_blas" if routine in ("gemm", "trsm") else "cython_lapack").__pyx_capi__
    capsule = capsules[{"float64": "d", "float32": "s"}[dtype] + routine]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, name(capsule)))


@cache
def _exported(module_name: str) -> ModuleType:
    """A table of pointers of SciPy's. Loaded from its file, because importing scipy.linalg takes a quarter second."""
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
