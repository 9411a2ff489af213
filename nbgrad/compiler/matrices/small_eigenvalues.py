"""Eigenvalues of small symmetric matrices, for many matrices at once, by Jacobi's rotations.

In: the kernel that is being written, and the extent. Out: nothing; the algorithm is written into the kernel. Called by
small_factors.py. Each rotation makes one element beside the diagonal 0; a sweep makes one for each, and after three to
six sweeps all are below the last digit (Golub and Van Loan, "Matrix computations", 4th edition, section 8.5). Rotations
that would change nothing are left out lane by lane, so that a result does not depend on the other matrices of a block.
"""

from __future__ import annotations

import numpy as np

from .matrix_lanes import Grid, MatrixLanes, Value

MOST_SWEEPS = 30
LEAST = {8: 2.0**-1000, 4: 2.0**-120}
"""The least size of matrices that are made as large as 1, by the bytes of an element: its reciprocal is a number."""


def negligible_part(dtype: str) -> int:
    """A matrix's size over that of elements beside its diagonal that change no digit of an eigenvalue."""
    return 1 << (np.finfo(dtype).nmant + 6)


def symmetric_eigen(m: MatrixLanes, n: int, columns: int, lower: bool, vectors: bool) -> None:
    """Eigenvalues in ascending order; then the eigenvectors, one after the other, if `vectors`."""
    a, found = m.read(0, n * n, n * n, n), Grid(m, n * (n + 1) if vectors else n, n)
    if not lower:
        for p in range(n):
            for q in range(p):
                a[p, q] = a[q, p]
    unit, scale = _scaled(m, a, n)
    for p in range(n if vectors else 0):
        for q in range(n):
            found[p + 1, q] = m.number(int(p == q))
    negligible = scale / m.number(negligible_part(m.dtype.name))
    for moving in m.until_still(MOST_SWEEPS if n > 1 else 0):
        for q in range(1, n):
            for p in range(q):
                moving.append(_rotate(m, a, found, n, p, q, negligible, vectors))
        if n == 1:
            moving.append(m.number(0) > m.number(0))
    for p in range(n):
        found[0, p] = a[p, p]
    for last in range(n - 1, 0, -1):
        for p in range(last):
            _put_in_order(m, found, n, p, vectors)
    for p in range(n):
        found[0, p] = found[0, p] / unit
    m.write(1, found)


def _scaled(m: MatrixLanes, a: Grid, n: int) -> tuple[Value, Value]:
    """Multiply the lower triangle by a power of 2; gives that, and the largest element then: below 2.

    The power is NaN if an element is none or infinite.
    """
    size, lost = m.number(0), m.number(0)
    for p in range(n):
        for q in range(p + 1):
            size = m.where(abs(a[p, q]) > size, abs(a[p, q]), size)
            lost = lost + a[p, q] * m.number(0)
    least = m.number(LEAST[m.dtype.itemsize])
    unit = m.number(1) / m.power_of_two(m.where(size > least, size, least)) + lost
    for p in range(n):
        for q in range(p + 1):
            a[p, q] = a[p, q] * unit
    return unit, size * unit


def _rotate(m: MatrixLanes, a: Grid, found: Grid, n: int, p: int, q: int, negligible: Value, vectors: bool) -> Value:
    """Make element (q, p) 0; whether it was not negligible. Only the lower triangle is read and written."""
    zero, one, beside = m.number(0), m.number(1), a[q, p]
    moving = abs(beside).not_up_to(negligible)
    twice, gap = beside + beside, a[q, q] - a[p, p]
    length = m.function("sqrt", gap * gap + twice * twice)
    tangent = twice / m.where(zero > gap, gap - length, gap + length)
    tangent = m.where(moving, tangent, zero)
    cosine = one / m.function("sqrt", tangent * tangent + one)
    sine = tangent * cosine
    a[p, p] = a[p, p] - tangent * beside
    a[q, q] = a[q, q] + tangent * beside
    a[q, p] = m.where(moving, zero, beside)
    pairs = [((max(r, p), min(r, p)), (max(r, q), min(r, q))) for r in range(n) if r not in (p, q)]
    for first, second in pairs:
        a[first], a[second] = a[first] * cosine - a[second] * sine, a[first] * sine + a[second] * cosine
    for r in range(n if vectors else 0):
        first, second = (p + 1, r), (q + 1, r)
        one_of, other = found[first], found[second]
        found[first], found[second] = one_of * cosine - other * sine, one_of * sine + other * cosine
    return moving


def _put_in_order(m: MatrixLanes, found: Grid, n: int, p: int, vectors: bool) -> None:
    """Exchange two neighbours, and their vectors, if the first is larger."""
    wrong = found[0, p] > found[0, p + 1]
    pairs = [((0, p), (0, p + 1))] + [((p + 1, r), (p + 2, r)) for r in range(n if vectors else 0)]
    for first, second in pairs:
        one, other = found[first], found[second]
        found[first], found[second] = m.where(wrong, other, one), m.where(wrong, one, other)
