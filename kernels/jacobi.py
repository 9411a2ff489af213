"""Special kernel: eigenvalues and eigenvectors of small symmetric matrices by Jacobi's rotations.

In:  pointers to matrices in C order, scratch memory for as many, and `sizes`: 0, the extent n, the matrices in a chunk,
whether the lower triangle is read, whether vectors are asked for, and by what the size of a matrix is divided for the
largest element that is left beside its diagonal.  Out: for each matrix its n eigenvalues in ascending order, then the
vectors, one after the other.  The chunks from `begin` to `end` are done.  Called by the compiler (special.py) for few
matrices, and by gpu/device_matrices.py; many matrices have code of their own, with the same rotations
(nbgrad/compiler/matrices).  Source: Golub and Van Loan, "Matrix computations", 4th edition, section 8.5.
"""

from .bits import square_root

SWEEPS = 30
MOST_DOUBLINGS = 960
"""Elements are multiplied by 2 until the largest is 1, but not more often."""


def symmetric_eigen(a, work, out, sizes, begin, end):
    """Eigenvalues of the matrices of some chunks, and their vectors."""
    n, vectors = sizes[1], sizes[4]
    length = n + n * n if vectors != 0 else n
    for matrix in range(begin * sizes[2], end * sizes[2]):
        diagonalise(a, work, matrix * n * n, out, matrix * length, n, sizes[3], vectors, sizes[5])
    return 0


def diagonalise(a, work, base, out, start, n, lower, vectors, digits):
    """Eigenvalues of one matrix at `base`, from `start` on. Of the scratch memory, the lower triangle is used."""
    size = 0.0
    lost = 0.0
    for p in range(n):
        for q in range(p + 1):
            value = a[base + p * n + q] if lower != 0 else a[base + q * n + p]
            work[base + p * n + q] = value
            if abs(value) > size:
                size = abs(value) * 1.0
            lost += value * 0
    # NaN if an element is none or infinite.
    unit = 1.0 + lost
    if unit == 1.0 and size > 0.0:
        doublings = 0
        while size < 1.0 and doublings < MOST_DOUBLINGS:
            size *= 2.0
            unit *= 2.0
            doublings += 1
        while size >= 2.0:
            size *= 0.5
            unit *= 0.5
    for p in range(n):
        for q in range(p + 1):
            work[base + p * n + q] *= unit
        if vectors != 0:
            for q in range(n):
                out[start + n + p * n + q] = 1 if p == q else 0
    negligible = size / digits
    moving = n > 1
    sweep = 0
    while moving and sweep < SWEEPS:
        moving = False
        sweep += 1
        for q in range(1, n):
            for p in range(q):
                beside = work[base + q * n + p]
                if not abs(beside) <= negligible:
                    moving = True
                    rotate(work, base, out, start + n, n, p, q, vectors)
    for p in range(n):
        out[start + p] = work[base + p * n + p] / unit
    for last in range(n - 1, 0, -1):
        for p in range(last):
            if out[start + p] > out[start + p + 1]:
                held = out[start + p]
                out[start + p] = out[start + p + 1]
                out[start + p + 1] = held
                if vectors != 0:
                    for r in range(start + n + p * n, start + n + p * n + n):
                        held = out[r]
                        out[r] = out[r + n]
                        out[r + n] = held
    return 0


def rotate(work, base, out, rows, n, p, q, vectors):
    """Make element (q, p) of the lower triangle 0, and turn two rows of vectors."""
    first, second, beside = base + p * n + p, base + q * n + q, work[base + q * n + p]
    twice = beside + beside
    gap = work[second] - work[first]
    length = square_root(gap * gap + twice * twice)
    tangent = twice / (gap - length if gap < 0 else gap + length)
    cosine = 1 / square_root(tangent * tangent + 1)
    sine = tangent * cosine
    work[first] -= tangent * beside
    work[second] += tangent * beside
    work[base + q * n + p] = 0
    for r in range(n):
        if r not in (p, q):
            one = base + (r * n + p if r > p else p * n + r)
            other = base + (r * n + q if r > q else q * n + r)
            left, right = work[one], work[other]
            work[one] = left * cosine - right * sine
            work[other] = left * sine + right * cosine
    if vectors != 0:
        for r in range(n):
            left, right = out[rows + p * n + r], out[rows + q * n + r]
            out[rows + p * n + r] = left * cosine - right * sine
            out[rows + q * n + r] = left * sine + right * cosine
    return 0
