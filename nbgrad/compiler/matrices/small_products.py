"""Products of small matrices: code of their own, which keeps the right operand in registers.

In: the `Special` of a matrix product, and its cut into pieces. Out: whether its matrices are small, the IR of its
kernel and the integers that the kernel is called with. Called by matmul.py. A call of BLAS takes 20 nanoseconds beside
the product itself, which for 3 x 3 takes 6. Here a row of the result is a vector, the sum of the rows of the right
operand, each times an element of the left one; extents are part of the code, distances are not.
"""

from __future__ import annotations

from ...graph.ir import Node
from ..fuse import Special
from ..ir_text import IRText, kernel_text
from ..scalars import LLVM_TYPES
from ..views import matrix_layout

LARGEST = 16
"""The most rows and columns of the right operand."""
FEWEST_ROWS = 128
"""Rows of a result from which on code of its own pays; fewer cost BLAS less than a compilation."""
FEWEST_MATRICES = 8
"""So many products pay with fewer rows too: each is a call of BLAS."""
ROWS = 256
"""Rows of a piece where there is only one matrix."""
SIZES = "m total da sa ka db lb dc ldc".split()
"""Rows of a piece, and of all pieces; from piece to piece, from row to row and along the sum in the left operand; from
piece to piece and the leading dimension in the right one; both in the result."""


def is_small(node: Node) -> bool:
    """Whether a product gets code of its own."""
    batch, m, n = node.shape
    k = node.inputs[0].shape[2]
    pays = batch >= FEWEST_MATRICES or batch * m >= FEWEST_ROWS
    return n <= LARGEST and 0 < k <= LARGEST and pays and (batch == 1 or m <= 4 * LARGEST)


def small_pieces(node: Node) -> int:
    """The number of pieces: a matrix each, or some rows of the only one."""
    batch, m, _ = node.shape
    return batch if batch > 1 else -(-m // ROWS)


def small_sizes(kernel: Special) -> list[int]:
    """The integers in the order of `SIZES`."""
    batch, m, n = kernel.node.shape
    (ta, lda), (_, ldb) = layouts(kernel)
    row, step = (1, lda) if ta else (lda, 1)
    da, db = (view.strides[0] for view in kernel.views)
    dc, ldc = (n, batch * n) if kernel.interleaved else (m * n, n)
    if batch == 1:
        return [ROWS, m, ROWS * row, row, step, 0, ldb, ROWS * ldc, ldc]
    return [m, batch * m, da, row, step, db, ldb, dc, ldc]


def layouts(kernel: Special) -> list[tuple[bool, int]]:
    """Whether each operand is transposed, and its leading dimension."""
    found = [matrix_layout(view) for view in kernel.views]
    return [layout for layout in found if layout is not None]


def small_key(kernel: Special) -> tuple[str, int, int, bool]:
    """All that the code depends on: dtype, length of the sums, columns, whether the right operand is transposed."""
    node = kernel.node
    return node.dtype.name, node.inputs[0].shape[2], node.shape[2], layouts(kernel)[1][0]


def small_ir(dtype: str, k: int, n: int, transposed: bool) -> str:
    """The IR of the kernel."""
    return _Product(LLVM_TYPES[dtype], k, n, transposed).run()


class _Product(IRText):
    """Writes the kernel for one dtype and one shape of the right operand."""

    def __init__(self, kind: str, k: int, n: int, transposed: bool) -> None:
        super().__init__()
        self.kind, self.k, self.n, self.transposed = kind, k, n, transposed
        self.vector = f"<{n} x {kind}>"
        self.align = 8 if kind == "double" else 4
        self.add = f"@llvm.fmuladd.v{n}f{8 * self.align}"

    def run(self) -> str:
        """The text of the module."""
        self.counted(self.slot("i64", "piece"), "%begin", "%end", self.piece)
        head = [f"  %{name}.at = getelementptr i64, ptr %sizes, i64 {place}" for place, name in enumerate(SIZES)]
        head += [f"  %{name} = load i64, ptr %{name}.at" for name in SIZES]
        return "\n".join(
            [
                f"declare {self.vector} {self.add}({self.vector}, {self.vector}, {self.vector})",
                kernel_text(["readonly", "readonly", ""], [*self.slots, *head, *self.lines]),
            ]
        )

    def piece(self, piece: str) -> None:
        """Some rows of one matrix."""
        first = self.let(f"mul nsw i64 {piece}, %m")
        rest = self.let(f"sub nsw i64 %total, {first}")
        rows = self.let(f"call i64 @llvm.smin.i64(i64 {rest}, i64 %m)")
        a, b, c = (
            self.at(f"%p{place}", self.let(f"mul nsw i64 {piece}, %d{name}")) for place, name in enumerate("abc")
        )
        right = [self.right(b, step) for step in range(self.k)]

        def line(row: str) -> None:
            left = self.at(a, self.let(f"mul nsw i64 {row}, %sa"))
            total = ""
            for step, other in enumerate(right):
                element = self.at(left, self.let(f"mul nsw i64 %ka, {step}"))
                one = self.let(f"load {self.kind}, ptr {element}")
                single = self.let(f"insertelement {self.vector} poison, {self.kind} {one}, i64 0")
                all_of = f"{self.vector} {single}, {self.vector} poison, <{self.n} x i32> zeroinitializer"
                spread = self.let(f"shufflevector {all_of}")
                if step:
                    operands = ", ".join(f"{self.vector} {value}" for value in (spread, other, total))
                    total = self.let(f"call {self.vector} {self.add}({operands})")
                else:
                    total = self.let(f"fmul {self.vector} {spread}, {other}")
            target = self.at(c, self.let(f"mul nsw i64 {row}, %ldc"))
            self.put(f"store {self.vector} {total}, ptr {target}, align {self.align}")

        self.counted(self.slot("i64", "row"), "0", rows, line)

    def right(self, b: str, step: int) -> str:
        """A row of the right operand."""
        if not self.transposed:
            start = self.at(b, self.let(f"mul nsw i64 %lb, {step}"))
            return self.let(f"load {self.vector}, ptr {start}, align {self.align}")
        row = "poison"
        for column in range(self.n):
            place = self.let(f"add nsw i64 {self.let(f'mul nsw i64 %lb, {column}')}, {step}")
            element = self.let(f"load {self.kind}, ptr {self.at(b, place)}")
            row = self.let(f"insertelement {self.vector} {row}, {self.kind} {element}, i64 {column}")
        return row

    def at(self, start: str, distance: str) -> str:
        """The address of an element."""
        return self.let(f"getelementptr {self.kind}, ptr {start}, i64 {distance}")
