"""Matrix products: calls of BLAS, SciPy's unless another one is chosen, cut into pieces that threads can share.

In: the `Special` of a matrix product. Out: its native code, the integers that it is called with, and how many pieces it
has. Called by special.py and by the runtime. BLAS has threads of its own, which spin when they wait and so take the
cores from ours, and whose number changes the last digits of a product. So they are put to rest while a product runs,
and the pieces of a large product are shared by our threads. The pieces follow from the shapes alone: the digits of a
result do not depend on the number of threads. Of a product of a matrix and its own transpose only one triangle is
computed, and copied into the other one.
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
SYMMETRIC_PIECES = 8
"""Pieces of a long symmetric product, each of which is computed up to its diagonal."""
SYMMETRIC_ROWS = 48
"""About the least rows of such a piece."""
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


def is_symmetric(kernel: Special) -> bool:
    """Whether a product is of matrices in memory and the same ones transposed."""
    batch = kernel.node.shape[0]
    (one, other), (left, right) = kernel.reads, kernel.views
    if one is not other or left.offset != right.offset or left.is_masked or right.is_masked:
        return False
    alike = batch == 1 or left.strides[0] == right.strides[0]
    return alike and left.shape[1] == right.shape[2] and left.strides[1:] == right.strides[:0:-1]


def pieces(node: Node, symmetric: bool = False) -> Pieces:
    """The cut of a product; the last piece down and across may be smaller."""
    batch, m, n = node.shape
    time = microseconds(node)
    if symmetric and time < 4 * SHARED_MICROSECONDS:
        return Pieces(batch, 1, 1, m, n)
    if symmetric:
        wanted = min(MOST_PIECES, max(SYMMETRIC_PIECES, round(time / PIECE_MICROSECONDS)))
        rows = _rounded(m, min(wanted, max(1, m // SYMMETRIC_ROWS)))
        return Pieces(batch, -(-m // rows), 1, rows, n)
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


def matmul_rows(kernel: Special) -> int:
    """The number of pieces that threads can share."""
    node = kernel.node
    return small_pieces(node) if is_small(node) else pieces(node, is_symmetric(kernel)).total


def shared(kernel: Special) -> bool:
    """Whether threads share a product."""
    return matmul_rows(kernel) > 1 and microseconds(kernel.node) >= SHARED_MICROSECONDS


def matmul_sizes(kernel: Special) -> list[int]:
    """The integers in the order of `_SIZES`, or those of a small product."""
    node = kernel.node
    if is_small(node):
        return small_sizes(kernel)
    batch, m, n = node.shape
    symmetric = is_symmetric(kernel)
    cut = pieces(node, symmetric)
    (ta, lda), (tb, ldb) = layouts(kernel)
    letters = [ord("T" if transposed else "N") for transposed in (ta, tb)]
    free = microseconds(node) < 0.1 * batch or not guard()[SET]
    return [
        *[product_address(node.dtype.name), 0 if free else guard().ctypes.data, m, n, node.inputs[0].shape[2]],
        *[letters[0], lda, kernel.views[0].strides[0], 1 if ta else lda],
        *[letters[1], ldb, kernel.views[1].strides[0], ldb if tb else 1],
        *([n, batch * n] if kernel.interleaved else [m * n, n]),
        *[cut.rows, cut.columns, cut.across, cut.down * cut.across],
        product_address(node.dtype.name, "syrk") if symmetric else 0,
    ]


_SIZES = "function guard m n k ta lda da sa tb ldb db sb dc ldc rows columns across each symmetric".split()
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

    A piece of a symmetric product is what lies before its rows' square on the diagonal; syrk computes that square, and
    all is copied to the other side.

    Letters and numbers are handed over as 64 bits, of which a library may read less.
    """
    kind = {"float64": "double", "float32": "float"}[dtype]
    lines = [GUARD_IR, "define void @kernel(ptr %pointers, ptr %sizes, i64 %begin, i64 %end) {", "entry:"]
    for position, name in enumerate(_SIZES):
        lines.append(f"  %{name}.at = getelementptr i64, ptr %sizes, i64 {position}")
        lines.append(f"  %{name} = load i64, ptr %{name}.at")
    lines += [f"  %{name}.slot = alloca i64" for name in "m n k lda ldb ldc ta tb half turned".split()]
    lines += [f"  store i64 %{name}, ptr %{name}.slot" for name in "k lda ldb ldc ta tb".split()]
    for name, value in (("alpha", "1.0"), ("beta", "0.0")):
        lines.append(f"  %{name} = alloca {kind}")
        lines.append(f"  store {kind} {value}, ptr %{name}")
    for position, name in enumerate("abc"):
        lines.append(f"  %{name}.from = getelementptr ptr, ptr %pointers, i64 {position}")
        lines.append(f"  %{name} = load ptr, ptr %{name}.from")
    lines += [
        "  %gemm = inttoptr i64 %function to ptr",
        "  %syrk = inttoptr i64 %symmetric to ptr",
        f"  store i64 {ord('U')}, ptr %half.slot",
        f"  %plain = icmp eq i64 %ta, {ord('N')}",
        f"  %letter = select i1 %plain, i64 {ord('T')}, i64 {ord('N')}",
        "  store i64 %letter, ptr %turned.slot",
        "  %guarded = icmp ne i64 %guard, 0",
        "  br i1 %guarded, label %hold, label %start",
        "hold:",
        "  call void @hold(i64 %guard)",
        "  br label %start",
        "start:",
        "  br label %test",
        "test:",
        "  %piece = phi i64 [ %begin, %start ], [ %next, %after ]",
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
    lines += [
        "  %mirror = icmp ne i64 %symmetric, 0",
        "  %below = add i64 %row, %row.extent",
        "  %width = select i1 %mirror, i64 %row, i64 %column.extent",
        "  store i64 %width, ptr %n.slot",
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
    of_square = (
        "ptr %half.slot, ptr %turned.slot, ptr %m.slot, ptr %k.slot, ptr %alpha, ptr %a.piece, ptr %lda.slot, "
        "ptr %beta, ptr %c.square, ptr %ldc.slot"
    )
    lines += [
        f"  call void %gemm({arguments})",
        "  br i1 %mirror, label %square, label %after",
        "square:",
        f"  %c.square = getelementptr {kind}, ptr %c.piece, i64 %row",
        f"  call void %syrk({of_square})",
        "  br label %reflect",
        *_reflection(kind),
        "after:",
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


def _reflection(kind: str) -> list[str]:
    """IR that copies the rows of a piece, up to their diagonal elements, into the columns above them."""
    return [
        "reflect:",
        f"  %c.matrix = getelementptr {kind}, ptr %c, i64 %c.first",
        "  br label %up",
        "up:",
        "  %j = phi i64 [ 0, %reflect ], [ %j.next, %up.next ]",
        "  %j.more = icmp slt i64 %j, %below",
        "  br i1 %j.more, label %line, label %after",
        "line:",
        "  %j.below = add i64 %j, 1",
        "  %j.low = icmp slt i64 %j, %row",
        "  %i.first = select i1 %j.low, i64 %row, i64 %j.below",
        "  %line.start = mul i64 %j, %ldc",
        "  br label %along",
        "along:",
        "  %i = phi i64 [ %i.first, %line ], [ %i.next, %one ]",
        "  %i.more = icmp slt i64 %i, %below",
        "  br i1 %i.more, label %one, label %up.next",
        "one:",
        "  %i.row = mul i64 %i, %ldc",
        "  %i.at = add i64 %i.row, %j",
        f"  %from.at = getelementptr {kind}, ptr %c.matrix, i64 %i.at",
        f"  %element = load {kind}, ptr %from.at",
        "  %to.at = add i64 %line.start, %i",
        f"  %to = getelementptr {kind}, ptr %c.matrix, i64 %to.at",
        f"  store {kind} %element, ptr %to",
        "  %i.next = add i64 %i, 1",
        "  br label %along",
        "up.next:",
        "  %j.next = add i64 %j, 1",
        "  br label %up",
    ]
