"""Special kernels: those that are not loop nests over scalars.

In: a `Special` of fuse.py. Out: the address of its native code, with the same ABI as a fused loop, and the integers
that it is called with. Called by the runtime. The sources lie in kernels/ and are compiled by Numba, once per dtype;
matrix products are in matmul.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..graph.ir import Node
from ..graph.shapes import Shape
from . import cpu
from .fuse import Special
from .host_calls import host_address
from .matmul import library_address, matmul_ir, matmul_sizes, pieces, shared
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
        case "triangular_solve":
            return node.shape[0] * 16
        case _:
            return 0


def rows_of(kernel: Special) -> int:
    """How many independent rows or matrices a kernel works on: what threads can share."""
    node = kernel.node
    if node.name == "matmul":
        return pieces(node).total
    if node.name in ("recurrence", "accumulate", "argsort"):
        return node.size // node.shape[-1]
    if node.name in WINDOWS:
        images = _images(node)
        return images[0] * images[1]
    if node.name in MATRICES and (node.inputs[0].shape[1] <= SMALL_MATRIX or not MATRICES[node.name]):
        return node.shape[0]
    return 1


def shared_by_threads(kernel: Special) -> bool:
    """Whether a kernel takes long enough that threads share its rows, by a rule of its own."""
    return kernel.node.name == "matmul" and shared(kernel.node)


def special_address(kernel: Special) -> int:
    """The address of a special kernel's code."""
    node = kernel.node
    if node.name == "host":
        return host_address(kernel)
    if node.name == "matmul":
        return cpu.function_address(f"matmul pieces {node.dtype.name}", "kernel", lambda: matmul_ir(node.dtype.name))
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
        case "scatter_rows":
            return [node.inputs[0].size, node.size, node.inputs[1].shape[1]]
        case "matmul":
            return matmul_sizes(kernel)
        case "unfold" | "fold" | "window_argmax":
            return [*_images(node), *[number for pair in node.params[:5] for number in pair]]
        case "lu" | "cholesky" | "triangular_solve" | "complete_pivots":
            return _matrix_sizes(kernel)
        case "host":
            return [0]
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
        one, minus = np.array([1, -1], node.dtype).view(f"int{8 * node.dtype.itemsize}").tolist()
        gemm, trsv = (library_address(name, node.dtype.name) for name in ("gemm", "trsv"))
        return [*sizes, node.shape[2], *map(ord, letters), one, gemm, minus, ord("N"), ord("T"), trsv, 1]
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
