"""Special kernels on the CPU: those that are not loop nests over scalars, one line each.

In: a `Special` of fuse.py. Out: the address of its native code, with the same ABI as a fused loop, and the integers
that it is called with. Called by the runtime, and by precompile.py, which compiles those that the package comes with.
The sources lie in kernels/ and are compiled by Numba, once per dtype; matrix products are in matmul.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..graph.ir import Node
from ..graph.matrix_rows import LAST_BLOCK
from ..graph.shapes import Shape
from ..graph.window_rows import CONVOLUTIONS, multiplications
from . import cpu
from .convolution_plan import cut, tile_of
from .fuse import Special
from .host_calls import SORTER, host_address, native_call
from .matrices.blas_routines import library_address, scratch_extent
from .matrices.matmul import matmul_function, matmul_rows, matmul_sizes, shared
from .matrices.small_eigenvalues import negligible_part
from .matrices.small_factors import block_count, is_small, small_ir, small_key
from .register_tiles import tiles_ir
from .scalars import kernel_module, lower
from .sorted_values import sorts_by_values

NUMBERS, FLOATS, POSITIONS = "int32 int64 float32 float64", "float32 float64", "int64"
SHARED_PRODUCTS = 16_000_000
"""Multiplications of a convolution, times the bytes of a number, from which on threads share it: 80 microseconds."""
SMALL_MATRIX = 64
"""Larger matrices follow one after the other: BLAS shares each among threads."""


@dataclass(frozen=True)
class SpecialKernel:
    """All that the CPU needs to know of a special kernel.

    Parameters
    ----------
    place : str
        "file.function" in kernels/; `{0}` stands for the node's first parameter.
    arrays : str
        The dtypes of its arrays: those of the node's inputs, scratch memory if there is any, the node itself; `*`
        stands for one dtype that varies.
    dtypes : str
        Those for which the package comes with compiled code.
    rows : callable
        The number of independent rows or matrices of a node, which threads can share.
    sizes : callable
        From the node and its rows to the integers that the kernel is called with.
    workspace : callable
        Bytes of scratch memory.
    variants : tuple of str
        What `{0}` may be.
    apart : bool
        Whether each thread has scratch memory of its own, which is then that of one chunk.
    """

    place: str
    arrays: str
    dtypes: str
    rows: Callable[[Node], int]
    sizes: Callable[[Node, int], list[int]]
    workspace: Callable[[Node], int] = lambda node: 0
    variants: tuple[str, ...] = ("",)
    apart: bool = False

    def pointers(self, dtype: str) -> list[str]:
        """The types of its arguments, with a dtype in place of `*`."""
        return [f"*{dtype if part == '*' else part}" for part in self.arrays.split()]

    def dtype_of(self, node: Node) -> str:
        """The dtype that stands in place of `*` for a node; empty if no dtype varies."""
        parts = self.arrays.split()
        return node.inputs[parts.index("*")].dtype.name if "*" in parts else ""


def _lines(node: Node) -> int:
    return node.size // node.shape[-1]


def _one(node: Node) -> int:
    return 1


# ----- Windows of images -----


def _images(node: Node) -> Shape:
    """The shape of the images that a kernel on windows reads or writes."""
    return node.shape if node.name == "fold" else node.inputs[0].shape


def _planes(node: Node) -> int:
    images = _images(node)
    return images[0] * images[1]


def _windows(node: Node, rows: int) -> list[int]:
    return [*_images(node), *[number for pair in node.params[:5] for number in pair]]


def _convolution(place: str) -> SpecialKernel:
    return SpecialKernel(
        f"convolution.{place}",
        "* * * *",
        FLOATS,
        lambda node: cut(node).pieces,
        lambda node, rows: cut(node).sizes,
        workspace=lambda node: cut(node).workspace * node.dtype.itemsize,
        apart=True,
    )


# ----- Batches of matrices -----


def _matrices(node: Node) -> int:
    return node.shape[0] if node.inputs[0].shape[1] <= SMALL_MATRIX else 1


def _batch(routine: str, node: Node, rows: int) -> list[int]:
    """The address of a routine of LAPACK, the extent of a matrix, and the matrices in a chunk."""
    address = library_address(routine, node.dtype.name) if routine else 0
    return [address, node.inputs[0].shape[1], node.shape[0] // rows]


def _pivoting(node: Node, rows: int) -> list[int]:
    """The integers for complete pivoting; half of the digits are left where a condition is good."""
    dtype, n = node.inputs[0].dtype, node.shape[2]
    condition = int(1 / np.sqrt(np.finfo(dtype).eps))
    lead = max(0, n - LAST_BLOCK)
    getrf, gecon = (library_address(name, dtype.name) for name in ("getrf", "gecon"))
    return [getrf, *_batch("", node, rows)[1:], gecon, ord("1"), lead, condition]


def _triangular(node: Node, rows: int) -> list[int]:
    """The integers that kernels/linalg.py takes; letters are those of the transposes."""
    lower, transposed, unit = node.params
    letters = ["R", "U" if lower else "L", "T" if transposed else "N", "U" if unit else "N"]
    one, minus = np.array([1, -1], node.dtype).view(f"int{8 * node.dtype.itemsize}").tolist()
    gemm, trsv = (library_address(name, node.dtype.name) for name in ("gemm", "trsv"))
    tail = [one, gemm, minus, ord("N"), ord("T"), trsv, 1]
    return [*_batch("trsm", node, rows), node.shape[2], *map(ord, letters), *tail]


KERNELS: dict[str, SpecialKernel] = {
    "recurrence": SpecialKernel(
        "scan.recurrence",
        "* * *",
        NUMBERS,
        _lines,
        lambda node, rows: [rows, node.shape[-1], int(node.params[0])],
    ),
    "accumulate": SpecialKernel(
        "scan.running_{0}",
        "* *",
        NUMBERS,
        _lines,
        lambda node, rows: [rows, node.shape[-1]],
        variants=("maximum", "minimum"),
    ),
    "argsort": SpecialKernel(
        "sort.argsort",
        "* int64 int64",
        NUMBERS,
        _lines,
        lambda node, rows: [rows, node.shape[-1]],
        workspace=lambda node: node.size * 24,
    ),
    "argsort by values": SpecialKernel(
        "sort.argsort_by_values",
        "* int64 int64",
        NUMBERS,
        _one,
        lambda node, rows: [_lines(node), node.shape[-1], SORTER, (node.shape[-1] - 1).bit_length()],
        workspace=lambda node: 16 + (node.size + 3 * node.shape[-1]) * 8,
    ),
    "scatter_add": SpecialKernel(
        "scatter.scatter_add", "int64 * *", NUMBERS, _one, lambda node, rows: [node.inputs[0].size, node.size]
    ),
    "scatter_rows": SpecialKernel(
        "scatter.scatter_rows",
        "int64 * *",
        NUMBERS,
        _one,
        lambda node, rows: [node.inputs[0].size, node.size, node.inputs[1].shape[1]],
    ),
    "scatter_sums": SpecialKernel(
        "scatter.scatter_sums",
        "int64 int64 * *",
        NUMBERS,
        _one,
        lambda node, rows: [node.inputs[0].size, node.size, node.inputs[1].size],
    ),
    "scatter_last": SpecialKernel(
        "scatter.scatter_last", "int64 int64", POSITIONS, _one, lambda node, rows: [node.inputs[0].size, node.size]
    ),
    "convolve": _convolution("convolve"),
    "convolve_transposed": _convolution("convolve"),
    "convolve_filters": _convolution("correlate"),
    "unfold": SpecialKernel("windows.unfold", "* *", FLOATS, _planes, _windows),
    "fold": SpecialKernel("windows.fold", "* *", FLOATS, _planes, _windows),
    "window_argmax": SpecialKernel("windows.window_argmax", "* int64", FLOATS, _planes, _windows),
    "lu": SpecialKernel(
        "linalg.lu",
        "* int64 *",
        FLOATS,
        _matrices,
        lambda node, rows: _batch("getrf", node, rows),
        workspace=lambda node: node.shape[0] * (node.shape[2] // 2 + 2) * 8,
    ),
    "cholesky": SpecialKernel(
        "linalg.cholesky",
        "* int64 *",
        FLOATS,
        _matrices,
        lambda node, rows: [*_batch("potrf", node, rows), ord("U")],
        workspace=lambda node: node.shape[0] * 8,
    ),
    "triangular_solve": SpecialKernel(
        "linalg.triangular_solve",
        "* * int64 *",
        FLOATS,
        _matrices,
        _triangular,
        workspace=lambda node: node.shape[0] * 16,
    ),
    "lu_solve": SpecialKernel(
        "linalg.lu_solve",
        "* * * *",
        FLOATS,
        _matrices,
        lambda node, rows: [0, node.shape[1], node.shape[0] // rows, node.shape[2], int(node.params[0])],
        workspace=lambda node: node.size * node.dtype.itemsize,
    ),
    "symmetric_eigen": SpecialKernel(
        "jacobi.symmetric_eigen",
        "* * *",
        FLOATS,
        _matrices,
        lambda node, rows: [*_batch("", node, rows), *map(int, node.params), negligible_part(node.dtype.name)],
        workspace=lambda node: node.inputs[0].size * node.dtype.itemsize,
    ),
    "complete_pivots": SpecialKernel(
        "linalg.complete_pivots",
        "* * int64",
        FLOATS,
        lambda node: node.shape[0],
        _pivoting,
        workspace=lambda node: (
            node.shape[0] * (node.shape[2] ** 2 + 4 * node.shape[2] + 2) * node.inputs[0].dtype.itemsize
        ),
    ),
}
"""By the name of the primitive, or of a variant. Products of matrices (matmul.py) and calls of library functions
(host_calls.py) have code of their own."""


# ----- Library functions -----


def _called_matrices(node: Node) -> tuple[int, int, int]:
    """The matrices in the operand of a library function, their rows and their columns."""
    *lead, m, n = node.params[-1][0][0]
    return math.prod(lead), m, n


def _eigen_sizes(node: Node, rows: int) -> list[int]:
    batch, _, n = _called_matrices(node)
    vectors, dtype = node.params[0].kernel == "eigh", node.dtype.name
    routine = library_address("syevd", dtype)
    letter, triangle = "V" if vectors else "N", node.params[1] if vectors else "L"
    scratch = [1 + 6 * n + 2 * n * n, 3 + 5 * n] if vectors else [2 * n + 1, 1]
    return [0, n, n, batch, routine, ord(letter), ord(triangle), max(scratch[0], 66 * n), scratch[1]]


def _singular_sizes(node: Node, rows: int) -> list[int]:
    batch, m, n = _called_matrices(node)
    k, dtype = min(m, n), node.dtype.name
    full = node.params[1] if node.params[0].kernel == "svd" else None
    letter = "N" if full is None else "A" if full else "S"
    lefts, rights = (0, 0) if full is None else (m, n) if full else (k, k)
    ends = [None, None, max(lefts, m), None, max(rights, 1), None, -1, None, None]
    extent = scratch_extent("gesdd", dtype, letter, m, n, None, m, *ends)
    routine = library_address("gesdd", dtype)
    return [0, m, n, batch, routine, ord(letter), lefts, rights, extent, max(rights, 1)]


def _orthogonal_sizes(node: Node, rows: int) -> list[int]:
    batch, m, n = _called_matrices(node)
    columns, dtype = m if node.params[1] else n, node.dtype.name
    factors, vectors = (library_address(name, dtype) for name in ("geqrf", "orgqr"))
    extent = max(
        scratch_extent("geqrf", dtype, m, n, None, m, None, None, -1, None),
        scratch_extent("orgqr", dtype, m, columns, n, None, m, None, None, -1, None),
    )
    return [0, m, n, batch, factors, vectors, columns, extent]


def _complex_eigen_sizes(node: Node, rows: int) -> list[int]:
    batch, _, n = _called_matrices(node)
    letter, dtype = "V" if node.params[0].kernel == "eig" else "N", node.dtype.name
    extent = scratch_extent("geev", dtype, "N", letter, n, None, n, None, None, None, n, None, n, None, -1, None)
    return [0, n, n, batch, library_address("geev", dtype), ord(letter), ord("N"), extent]


def _scratch(sizes: Callable[[Node, int], list[int]], elements: Callable[[list[int]], int]) -> Callable[[Node], int]:
    """Bytes of scratch memory: so many elements behind those that the kernels keep for numbers that LAPACK says."""
    return lambda node: (kernel_module("linalg").SAVED + elements(sizes(node, 1))) * node.dtype.itemsize


_EIGEN_SCRATCH = _scratch(_eigen_sizes, lambda sizes: sizes[7] + sizes[8] + sizes[1] ** 2)
_SINGULAR_SCRATCH = _scratch(
    _singular_sizes,
    lambda sizes: sizes[8] + 8 * min(sizes[1:3]) + sizes[1] * (sizes[2] + sizes[6]) + sizes[7] * sizes[2],
)
_ORTHOGONAL_SCRATCH = _scratch(
    _orthogonal_sizes, lambda sizes: sizes[7] + sizes[2] + sizes[1] * max(sizes[2], sizes[6])
)
_COMPLEX_EIGEN_SCRATCH = _scratch(_complex_eigen_sizes, lambda sizes: sizes[7] + 2 * sizes[1] * (sizes[1] + 1))
HOST_KERNELS = {
    "eigh": SpecialKernel("linalg.eigh", "* * *", FLOATS, _one, _eigen_sizes, _EIGEN_SCRATCH),
    "eigvalsh": SpecialKernel("linalg.eigh", "* * *", FLOATS, _one, _eigen_sizes, _EIGEN_SCRATCH),
    "eig": SpecialKernel("linalg.eig", "* * *", FLOATS, _one, _complex_eigen_sizes, _COMPLEX_EIGEN_SCRATCH),
    "eigvals": SpecialKernel("linalg.eig", "* * *", FLOATS, _one, _complex_eigen_sizes, _COMPLEX_EIGEN_SCRATCH),
    "svd": SpecialKernel("linalg.svd", "* * *", FLOATS, _one, _singular_sizes, _SINGULAR_SCRATCH),
    "svdvals": SpecialKernel("linalg.svd", "* * *", FLOATS, _one, _singular_sizes, _SINGULAR_SCRATCH),
    "qr": SpecialKernel("linalg.qr", "* * *", FLOATS, _one, _orthogonal_sizes, _ORTHOGONAL_SCRATCH),
}
"""By the name that a library function gives (`HostFunction.kernel`)."""


CHECKED = frozenset([kernel.place for kernel in HOST_KERNELS.values()])
"""The kernels that may fail: then Python's function is called with the same arrays, without scratch memory."""


def _kernel_of(node: Node) -> SpecialKernel | None:
    """The kernel in kernels/ that does a node's work; None if it has code of another kind."""
    if node.name != "host":
        return KERNELS.get("argsort by values" if sorts_by_values(node) else node.name)
    name, (operand, *_) = node.params[0].kernel, node.params[-1]
    if name is None or operand[1].name not in FLOATS.split() or 0 in operand[0]:
        return None
    return HOST_KERNELS[name]


def shipped() -> Iterator[tuple[str, list[str]]]:
    """The kernels that the package comes with: place in kernels/, and the types of the arguments."""
    kernels = [*KERNELS.values(), *HOST_KERNELS.values()]
    for kernel in {kernel.place: kernel for kernel in kernels}.values():
        for variant in kernel.variants:
            for dtype in kernel.dtypes.split():
                yield kernel.place.format(variant), kernel.pointers(dtype)


# ----- For the runtime -----


def workspace_bytes(kernel: Special) -> int:
    """Bytes of scratch memory that a kernel needs besides its operands and result."""
    known = _kernel_of(kernel.node)
    return 0 if known is None or is_small(kernel.node) else known.workspace(kernel.node)


def rows_of(kernel: Special) -> int:
    """The number of independent rows or matrices of a kernel, which threads can share."""
    node = kernel.node
    if node.name == "matmul":
        return matmul_rows(kernel)
    if is_small(node):
        return block_count(node)
    known = _kernel_of(node)
    return 1 if known is None else known.rows(node)


def shared_by_threads(kernel: Special) -> bool:
    """Whether a kernel takes long enough that threads share its rows, by a rule of its own."""
    node = kernel.node
    if node.name in CONVOLUTIONS:
        return multiplications(node) * node.dtype.itemsize >= SHARED_PRODUCTS
    return node.name == "matmul" and shared(kernel)


def works_apart(kernel: Special) -> bool:
    """Whether each thread has scratch memory of its own."""
    known = _kernel_of(kernel.node)
    return known is not None and known.apart


def special_sizes(kernel: Special) -> list[int]:
    """The integers that a special kernel is called with."""
    node = kernel.node
    if node.name == "matmul":
        return matmul_sizes(kernel)
    if is_small(node):
        return [node.shape[0]]
    known = _kernel_of(node)
    if known is None:
        native = native_call(node)
        return [0] if native is None else native[1]
    sizes = known.sizes(node, rows_of(kernel))
    return [host_address(kernel), *sizes[1:]] if node.name == "host" else sizes


def special_address(kernel: Special) -> int:
    """The address of a special kernel's code."""
    node = kernel.node
    if node.name == "host" and native_call(node) is None and _kernel_of(node) is None:
        return host_address(kernel)
    return cpu.function_address(special_function(kernel))


def special_function(kernel: Special) -> cpu.Function:
    """A special kernel that is not host code."""
    node = kernel.node
    native = native_call(node) if node.name == "host" else None
    if native is not None:
        text = native[0]
        return cpu.Function(f"host {text}", "kernel", lambda: text)
    if node.name == "matmul":
        return matmul_function(kernel)
    if is_small(node):
        key = small_key(node)
        return cpu.Function(f"small {key}", "kernel", lambda: small_ir(*key))
    known = _kernel_of(node)
    assert known is not None
    place, pointers = known.place.format(*node.params), known.pointers(known.dtype_of(node))
    key = f"special {place} {' '.join(pointers)}"
    if node.name in CONVOLUTIONS:
        tile, dtype = tile_of(node), node.dtype.name
        # All loops of many turns are written in vectors.
        return cpu.Function(
            f"{key} {tile}", "kernel", lambda: special_ir(place, pointers, tiles_ir(dtype, tile)), finished=True
        )
    return cpu.Function(key, "kernel", lambda: special_ir(place, pointers))


def special_ir(place: str, pointers: Sequence[str], called: str = "") -> str:
    """The IR of a kernel, with the ABI of a fused loop, and of functions that it calls."""
    module, _, name = place.partition(".")
    text = lower(getattr(kernel_module(module), name), [*pointers, "*int64", "int64", "int64"], "int64", "special")
    for name in re.findall(r"^(?:define|declare) [^@]*@([\w.]+)\(", called, re.MULTILINE):
        text = re.sub(rf"^declare [^@]*@{re.escape(name)}\(.*\n", "", text, flags=re.MULTILINE)
    lines = [text, called, "define void @kernel(ptr %pointers, ptr %sizes, i64 %begin, i64 %end) {"]
    for position in range(len(pointers)):
        lines.append(f"  %at{position} = getelementptr ptr, ptr %pointers, i64 {position}")
        lines.append(f"  %p{position} = load ptr, ptr %at{position}")
    arguments = ", ".join([*[f"ptr %p{position}" for position in range(len(pointers))], "ptr %sizes"])
    lines.append(f"  %status = call i64 @special({arguments}, i64 %begin, i64 %end)")
    if place in CHECKED:
        lines += [
            "  %failed = icmp ne i64 %status, 0",
            "  br i1 %failed, label %python, label %done",
            "python:",
            f"  %arrays = alloca [{len(pointers)} x ptr]",
        ]
        for number, position in enumerate([*range(len(pointers) - 2), len(pointers) - 1]):
            lines.append(f"  %to{number} = getelementptr ptr, ptr %arrays, i64 {number}")
            lines.append(f"  store ptr %p{position}, ptr %to{number}")
        lines += [
            "  %function = load ptr, ptr %sizes",
            "  call void %function(ptr %arrays, ptr %sizes, i64 %begin, i64 %end)",
            "  br label %done",
            "done:",
        ]
    lines += ["  ret void", "}", ""]
    return "\n".join(lines)
