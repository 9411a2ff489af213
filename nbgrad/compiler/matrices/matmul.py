"""Matrix products: calls of BLAS, SciPy's unless another one is chosen, cut into pieces that threads can share.

In: the `Special` of a matrix product. Out: its native code, the integers that it is called with, and how many pieces it
has. Called by special.py and by the runtime. BLAS has threads of its own, which spin when they wait and so take the
cores from ours, and whose number changes the last digits of a product. So they are put to rest while a product runs,
and the pieces of a large product are shared by our threads. The pieces follow from the shapes alone: the digits of a
result do not depend on the number of threads.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ...graph.ir import Node
from .. import cpu
from ..fuse import Special
from .blas_guard import GUARD_IR, SET, guard
from .blas_routines import product_address
from .small_products import is_small, layouts, small_ir, small_key, small_pieces, small_sizes

PRODUCTS_PER_MICROSECOND = 30_000
"""Multiplications of float64 that BLAS does on one core; of float32 twice as many."""
BYTES_PER_MICROSECOND = 30_000
"""Bytes that a product of a matrix and a vector reads on one core."""
SHARED_MICROSECONDS = 300
"""Shorter products run in one piece: cutting costs some percent, and waking a thread up to 70 microseconds."""
PIECE_MICROSECONDS = 4000
"""The length of pieces of long products. Short pieces are slow, as BLAS copies its operands for each of them."""
MOST_PIECES = 64
LEAST_ROWS = 64
"""The least rows of a piece, and its least columns where columns are cut because the rows do not suffice."""


class Pieces(NamedTuple):
    """The cut of a product: matrices, pieces down and across each, and the rows and columns of a piece."""

    matrices: int
    down: int
    across: int
    rows: int
    columns: int

    @property
    def total(self) -> int:
        """All pieces."""
        return self.matrices * self.down * self.across


def microseconds(node: Node) -> float:
    """About how long one core takes for a product."""
    batch, m, n = node.shape
    k = node.inputs[0].shape[2]
    size = node.dtype.itemsize
    one = m * n * k * size / 8 / PRODUCTS_PER_MICROSECOND + (m * k + k * n + m * n) * size / BYTES_PER_MICROSECOND
    return batch * (one + 0.02)


def pieces(node: Node) -> Pieces:
    """The cut of a product; the last piece down and across may be smaller."""
    batch, m, n = node.shape
    time = microseconds(node)
    if time < SHARED_MICROSECONDS:
        return Pieces(batch, 1, 1, m, n)
    wanted = -(-min(MOST_PIECES, max(2, round(time / PIECE_MICROSECONDS))) // batch)
    rows, columns = m, n
    down = min(wanted, max(1, m // LEAST_ROWS))
    if down > 1:
        rows = _rounded(m, down)
    across = min(-(-wanted // down), max(1, n // LEAST_ROWS))
    if across > 1:
        columns = _rounded(n, across)
    return Pieces(batch, -(-m // rows), -(-n // columns), rows, columns)


def _rounded(extent: int, count: int) -> int:
    """The length of `count` pieces: a multiple of 16, which is at least one line of the cache."""
    return math.ceil(extent / count / 16) * 16


def matmul_rows(node: Node) -> int:
    """The number of pieces that threads can share."""
    return small_pieces(node) if is_small(node) else pieces(node).total


def shared(node: Node) -> bool:
    """Whether threads share a product."""
    return matmul_rows(node) > 1 and microseconds(node) >= SHARED_MICROSECONDS


def matmul_sizes(kernel: Special) -> list[int]:
    """The integers in the order of `_SIZES`, or those of a small product."""
    node = kernel.node
    if is_small(node):
        return small_sizes(kernel)
    batch, m, n = node.shape
    cut = pieces(node)
    (ta, lda), (tb, ldb) = layouts(kernel)
    letters = [ord("T" if transposed else "N") for transposed in (ta, tb)]
    free = microseconds(node) < 0.1 * batch or not guard()[SET]
    return [
        *[product_address(node.dtype.name), 0 if free else guard().ctypes.data, m, n, node.inputs[0].shape[2]],
        *[letters[0], lda, kernel.views[0].strides[0], 1 if ta else lda],
        *[letters[1], ldb, kernel.views[1].strides[0], ldb if tb else 1],
        *([n, batch * n] if kernel.interleaved else [m * n, n]),
        *[cut.rows, cut.columns, cut.across, cut.down * cut.across],
    ]


_SIZES = "function guard m n k ta lda da sa tb ldb db sb dc ldc rows columns across each".split()
"""For both operands: letter, leading dimension, distance of matrices, distance of rows (of b: columns)."""


# ----- Native code -----


def matmul_function(kernel: Special) -> cpu.Function:
    """The native function of a product."""
    if is_small(kernel.node):
        key = small_key(kernel)
        return cpu.Function(f"small product {key}", "kernel", lambda: small_ir(*key))
    dtype = kernel.node.dtype.name
    return cpu.Function(f"matmul pieces {dtype}", "kernel", lambda: matmul_ir(dtype))


def matmul_ir(dtype: str) -> str:
    """IR that calls gemm once per piece. Row-major C = A B is column-major C' = B' A', which BLAS computes.

    Letters and numbers are handed over as 64 bits, of which a library may read less.
    """
    kind = {"float64": "double", "float32": "float"}[dtype]
    lines = [GUARD_IR, "define void @kernel(ptr %pointers, ptr %sizes, i64 %begin, i64 %end) {", "entry:"]
    for position, name in enumerate(_SIZES):
        lines.append(f"  %{name}.at = getelementptr i64, ptr %sizes, i64 {position}")
        lines.append(f"  %{name} = load i64, ptr %{name}.at")
    lines += [f"  %{name}.slot = alloca i64" for name in "m n k lda ldb ldc ta tb".split()]
    lines += [f"  store i64 %{name}, ptr %{name}.slot" for name in "k lda ldb ldc ta tb".split()]
    for name, value in (("alpha", "1.0"), ("beta", "0.0")):
        lines.append(f"  %{name} = alloca {kind}")
        lines.append(f"  store {kind} {value}, ptr %{name}")
    for position, name in enumerate("abc"):
        lines.append(f"  %{name}.from = getelementptr ptr, ptr %pointers, i64 {position}")
        lines.append(f"  %{name} = load ptr, ptr %{name}.from")
    lines += [
        "  %gemm = inttoptr i64 %function to ptr",
        "  %guarded = icmp ne i64 %guard, 0",
        "  br i1 %guarded, label %hold, label %start",
        "hold:",
        "  call void @hold(i64 %guard)",
        "  br label %start",
        "start:",
        "  br label %test",
        "test:",
        "  %piece = phi i64 [ %begin, %start ], [ %next, %body ]",
        "  %more = icmp slt i64 %piece, %end",
        "  br i1 %more, label %body, label %last",
        "body:",
        "  %matrix = udiv i64 %piece, %each",
        "  %inside = urem i64 %piece, %each",
    ]
    for name, operation, length, extent in (("row", "udiv", "rows", "m"), ("column", "urem", "columns", "n")):
        lines += [
            f"  %{name}.number = {operation} i64 %inside, %across",
            f"  %{name} = mul i64 %{name}.number, %{length}",
            f"  %{name}.rest = sub i64 %{extent}, %{name}",
            f"  %{name}.short = icmp slt i64 %{name}.rest, %{length}",
            f"  %{name}.extent = select i1 %{name}.short, i64 %{name}.rest, i64 %{length}",
            f"  store i64 %{name}.extent, ptr %{extent}.slot",
        ]
    lines += ["  %a.in = mul i64 %row, %sa", "  %b.in = mul i64 %column, %sb"]
    lines += ["  %c.row = mul i64 %row, %ldc", "  %c.in = add i64 %c.row, %column"]
    for name in "abc":
        lines.append(f"  %{name}.first = mul i64 %matrix, %d{name}")
        lines.append(f"  %{name}.offset = add i64 %{name}.first, %{name}.in")
        lines.append(f"  %{name}.piece = getelementptr {kind}, ptr %{name}, i64 %{name}.offset")
    arguments = (
        "ptr %tb.slot, ptr %ta.slot, ptr %n.slot, ptr %m.slot, ptr %k.slot, ptr %alpha, ptr %b.piece, ptr %ldb.slot, "
        "ptr %a.piece, ptr %lda.slot, ptr %beta, ptr %c.piece, ptr %ldc.slot"
    )
    lines += [
        f"  call void %gemm({arguments})",
        "  %next = add i64 %piece, 1",
        "  br label %test",
        "last:",
        "  br i1 %guarded, label %free, label %done",
        "free:",
        "  call void @release(i64 %guard)",
        "  br label %done",
        "done:",
        "  ret void",
        "}",
        "",
    ]
    return "\n".join(lines)
