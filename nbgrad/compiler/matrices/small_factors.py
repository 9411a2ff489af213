"""Factors of small matrices and solutions of their systems, for many matrices at once.

In: the `Special` of a factorisation or of a triangular system. Out: whether it gets code of its own here, the IR of its
kernel, and the integers that the kernel is called with. Called by special.py. The results have the layout, the pivots
and the failures of the kernels in kernels/linalg.py, which go through one matrix after the other.
"""

from __future__ import annotations

from collections.abc import Callable

from ...graph.ir import Node
from .matrix_lanes import Grid, MatrixLanes, Place, Value, lanes_of
from .small_eigenvalues import symmetric_eigen

LARGEST = 16
"""The most rows of a matrix, and the most columns of a right-hand side."""
FEWEST = 16
"""Matrices from which on code of its own pays."""
WRITTEN_OUT = 5
"""Rows up to which loops over rows and columns are written out."""


def is_small(node: Node) -> bool:
    """Whether a node gets code of its own."""
    if node.name not in ALGORITHMS or node.shape[0] < FEWEST:
        return False
    return node.inputs[0].shape[2] <= LARGEST and node.inputs[-1].shape[2] <= LARGEST


def block_count(node: Node) -> int:
    """Blocks of matrices, which threads can share."""
    return -(-node.shape[0] // lanes_of(node.inputs[0].dtype.name))


def small_key(node: Node) -> tuple[str, str, int, int, tuple[bool, ...]]:
    """All that the code depends on: primitive, dtype, rows, columns of the result, parameters."""
    return node.name, node.inputs[0].dtype.name, node.inputs[0].shape[2], node.shape[-1], node.params


def small_ir(name: str, dtype: str, n: int, columns: int, params: tuple[bool, ...]) -> str:
    """The IR of the kernel."""
    algorithm, arrays = ALGORITHMS[name]
    return MatrixLanes(dtype, n <= WRITTEN_OUT).kernel(arrays, lambda m: algorithm(m, n, columns, *params))


# ----- Factorisations -----


def lu(m: MatrixLanes, n: int, columns: int) -> None:
    """a[:, order] = lower @ upper, `upper` with ones on its diagonal, by the largest pivot of each row (Crout)."""
    a = m.read(0, n * n, n * n, n, room=n * (n + 2))
    for k in range(n):
        a[n, k] = m.number(k + 1)
    for k in range(n):
        for j in m.range(k, n):
            # Rounded products, or rows that are multiples of each other would leave a small pivot in place of 0.
            a[k, j] = _reduced(a[k, j], [(a[k, r], a[r, j]) for r in range(k)], rounded=True)
        chosen = _largest(m, a, k, n)
        _exchange(m, a, k, n, chosen, range(n))
        _exchange_orders(m, a, n, k, n, chosen)
        # A pivot of 0 is the largest: what is divided by it is 0.
        pivot = m.where(a[k, k].same(m.number(0)), m.number(1), a[k, k])
        for j in m.range(k + 1, n):
            a[k, j] = a[k, j] / pivot
        for i in m.range(k + 1, n):
            a[i, k] = _reduced(a[i, k], [(a[i, r], a[r, k]) for r in range(k)], rounded=True)
    for k in m.range(0, n):
        place = m.number(k + 1)
        found = place
        for j in range(n):
            found = m.where(abs(a[n, j]).same(place), m.number(j + 1), found)
        a[n + 1, k] = found
    m.write(1, a)


def _reduced(value: Value, products: list[tuple[Value, Value]], rounded: bool = False) -> Value:
    """A number less some products, each `rounded` or not."""
    for one, other in products:
        value = value - (one.rounded_product(other) if rounded else one * other)
    return value


def _largest(m: MatrixLanes, a: Grid, k: int, n: int) -> Value:
    """The column of the largest element of row k from the k-th on."""
    best, chosen = Grid(m, 1), Grid(m, 1)
    best[0, 0], chosen[0, 0] = abs(a[k, k]), m.number(k)
    for j in m.range(k + 1, n):
        size = abs(a[k, j])
        larger = size > best[0, 0]
        best[0, 0] = m.where(larger, size, best[0, 0])
        chosen[0, 0] = m.where(larger, m.number(j), chosen[0, 0])
    return chosen[0, 0]


def _exchange(m: MatrixLanes, grid: Grid, k: int, n: int, chosen: Value, lines: range, rows: bool = False) -> None:
    """Exchange the k-th column and the chosen one in some rows of a grid; or `rows`, in some columns."""

    def at(line: int, place: Place) -> tuple[Place, Place]:
        return (place, line) if rows else (line, place)

    held = Grid(m, len(lines))
    for line in lines:
        held[line - lines.start, 0] = grid[at(line, k)]
    for j in m.range(k + 1, n):
        here = chosen.same(m.number(j))
        for line in lines:
            other, first = grid[at(line, j)], held[line - lines.start, 0]
            grid[at(line, j)] = m.where(here, grid[at(line, k)], other)
            held[line - lines.start, 0] = m.where(here, other, first)
    for line in lines:
        grid[at(line, k)] = held[line - lines.start, 0]


def _exchange_orders(m: MatrixLanes, orders: Grid, row: int, k: int, n: int, chosen: Value) -> None:
    """Exchange two positions of an order, and change a sign, unless both are the same."""
    _exchange(m, orders, k, n, chosen, range(row, row + 1))
    orders[row, k] = m.where(chosen.same(m.number(k)), orders[row, k], -orders[row, k])


def complete_pivots(m: MatrixLanes, n: int, columns: int) -> None:
    """The orders of rows and columns in which elimination meets the largest pivots."""
    a, orders = m.read(0, n * n, n * n, n), Grid(m, 2 * n, n)
    for k in range(n):
        orders[0, k] = orders[1, k] = m.number(k + 1)
    best, row, column = (Grid(m, 1) for _ in range(3))
    for k in range(n - 1):
        best[0, 0] = abs(a[k, k])
        row[0, 0] = column[0, 0] = m.number(k)
        for i in m.range(k, n):
            for j in range(k, n):
                size = abs(a[i, j])
                larger = size > best[0, 0]
                best[0, 0] = m.where(larger, size, best[0, 0])
                row[0, 0] = m.where(larger, m.number(i), row[0, 0])
                column[0, 0] = m.where(larger, m.number(j), column[0, 0])
        for number, chosen in enumerate((row[0, 0], column[0, 0])):
            _exchange(m, a, k, n, chosen, range(k, n), rows=number == 0)
            _exchange_orders(m, orders, number, k, n, chosen)
        # A pivot of 0 is the largest: what is divided by it is 0.
        pivot = m.where(a[k, k].same(m.number(0)), m.number(1), a[k, k])
        for i in m.range(k + 1, n):
            factor = a[i, k] / pivot
            for j in range(k + 1, n):
                a[i, j] = a[i, j] - factor.rounded_product(a[k, j])
    m.write(1, orders, integers=True)


def cholesky(m: MatrixLanes, n: int, columns: int) -> None:
    """The lower triangular factor; NaN where the matrix is not positive definite."""
    a = m.read(0, n * n, n * n, n)
    good = m.number(1)
    for k in range(n):
        for i in m.range(k, n):
            a[i, k] = _reduced(a[i, k], [(a[i, j], a[k, j]) for j in range(k)])
        pivot = a[k, k]
        good = m.where(pivot > m.number(0), good, m.number(float("nan")))
        root = m.function("sqrt", pivot)
        a[k, k] = root
        for i in m.range(k + 1, n):
            a[i, k] = a[i, k] / root
            a[k, i] = m.number(0)
    for i in range(n):
        for j in m.range(0, i + 1):
            a[i, j] = a[i, j] * good
    m.write(1, a)


# ----- Systems -----


def triangular_solve(m: MatrixLanes, n: int, columns: int, lower: bool, transposed: bool, unit: bool) -> None:
    """The solution x of a @ x = b, or of a.T @ x = b."""
    a, x = m.read(0, n * n, n * n, n), m.read(1, n * columns, n * columns, columns)
    _substitute(m, a, x, n, columns, lower, transposed, unit)
    m.write(2, x)


def lu_solve(m: MatrixLanes, n: int, columns: int, transposed: bool) -> None:
    """The solution of a system with the result of `lu`."""
    a, x = m.read(0, n * (n + 2), n * (n + 2), n), m.read(1, n * columns, n * columns, columns)
    if transposed:
        x = _reordered(m, x, a, n, n, columns)
        _substitute(m, a, x, n, columns, lower=False, transposed=True, unit=True)
        _substitute(m, a, x, n, columns, lower=True, transposed=True, unit=False)
    else:
        _substitute(m, a, x, n, columns, lower=True, transposed=False, unit=False)
        _substitute(m, a, x, n, columns, lower=False, transposed=False, unit=True)
        x = _reordered(m, x, a, n + 1, n, columns)
    m.write(2, x)


def _substitute(
    m: MatrixLanes, a: Grid, x: Grid, n: int, columns: int, lower: bool, transposed: bool, unit: bool
) -> None:
    """Put the solution in place of the right-hand side, one row after the other."""
    forward = lower != transposed
    for k in range(n) if forward else reversed(range(n)):
        known = range(k) if forward else range(k + 1, n)
        factors = [a[i, k] if transposed else a[k, i] for i in known]
        divisor = None if unit else a[k, k]
        for c in m.range(0, columns):
            value = _reduced(x[k, c], [(factor, x[i, c]) for factor, i in zip(factors, known, strict=True)])
            x[k, c] = value if divisor is None else value / divisor


def _reordered(m: MatrixLanes, x: Grid, a: Grid, order: int, n: int, columns: int) -> Grid:
    """The rows of x in the order that a row of `a` has."""
    found = Grid(m, n * columns, columns)
    for k in m.range(0, n):
        place = abs(a[order, k])
        here = [place.same(m.number(i + 1)) for i in range(n)]
        for c in m.range(0, columns):
            value = x[0, c]
            for i in range(1, n):
                value = m.where(here[i], x[i, c], value)
            found[k, c] = value
    return found


ALGORITHMS: dict[str, tuple[Callable[..., None], int]] = {
    "lu": (lu, 2),
    "cholesky": (cholesky, 2),
    "lu_solve": (lu_solve, 3),
    "triangular_solve": (triangular_solve, 3),
    "complete_pivots": (complete_pivots, 2),
    "symmetric_eigen": (symmetric_eigen, 2),
}
"""By the name of the primitive, each with the number of its arrays."""
