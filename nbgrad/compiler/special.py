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

from . import cpu
from .fuse import Special, matrix_layout
from .scalars import kernel_module, lower


def workspace_bytes(kernel: Special) -> int:
    """Bytes of scratch memory that a kernel needs besides its operands and result."""
    return kernel.node.size * 8 if kernel.node.name == "argsort" else 0


def rows_of(kernel: Special) -> int:
    """How many independent rows or matrices a kernel works on: what threads can share."""
    node = kernel.node
    if node.name in ("recurrence", "accumulate", "argsort"):
        return node.size // node.shape[-1]
    return 1


def special_address(kernel: Special) -> int:
    """The address of a special kernel's code."""
    node = kernel.node
    if node.name == "matmul":
        return cpu.function_address(f"matmul {node.dtype.name}", "kernel", lambda: _matmul_ir(node.dtype.name))
    function = {"accumulate": f"running_{node.params[0]}" if node.params else ""}.get(node.name, node.name)
    pointers = [f"*{source.dtype.name}" for source in node.inputs]
    if workspace_bytes(kernel):
        pointers.append("*int64")
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
        case _:
            raise AssertionError(node)


def _special_ir(function: str, pointers: Sequence[str]) -> str:
    modules = [kernel_module(name) for name in ("scan", "scatter", "sort")]
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
    sizes = [blas_address(kernel.node.dtype.name), batch, m, n, k]
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
def blas_address(dtype: str) -> int:
    """The address of gemm, from the pointers that SciPy exports for compiled code."""
    capsules = _cython_blas().__pyx_capi__
    capsule = capsules[{"float64": "dgemm", "float32": "sgemm"}[dtype]]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(get(capsule, name(capsule)))


def _cython_blas() -> ModuleType:
    """SciPy's table of BLAS pointers. Loaded from its file, because importing scipy.linalg takes a quarter second."""
    import importlib

    scipy = PathFinder.find_spec("scipy")
    for folder in (scipy.submodule_search_locations or []) if scipy is not None else []:
        for path in sorted((Path(folder) / "linalg").glob("cython_blas.*")):
            if path.suffix in (".so", ".pyd"):
                spec = spec_from_file_location("scipy.linalg.cython_blas", path)
                if spec is not None and spec.loader is not None:
                    try:
                        module = module_from_spec(spec)
                        spec.loader.exec_module(module)
                    except ImportError:
                        break
                    return module
    return importlib.import_module("scipy.linalg.cython_blas")
