"""Special kernels on batches of square matrices: factorisations and systems, by LAPACK and BLAS or, if small, in place.

In:  pointers to matrices in C order, some scratch memory, and `sizes`, which begins with the address of the LAPACK or
BLAS routine, the extent n of the matrices, and how many of them a chunk has.  Out: matrices.  The chunks from `begin`
to `end` are done.  Called by the compiler (special.py).  LAPACK reads columns where we have rows, so it sees every
matrix transposed.  All its arguments are pointers: letters and numbers lie in `sizes`, of whose int64 it reads the low
bytes.
"""

from .bits import square_root

N, CHUNK = 1, 2
"""Where `sizes` has the extent, and the number of matrices in a chunk."""
FEW = 16
"""Matrices of at most this many rows are pivoted completely at once."""
GECON, LEAD = 3, 5
"""Where it has the routine that estimates conditions, for `complete_pivots`, and the extent of the leading block."""
UPPER, TRANSPOSED, VECTORS = ord("U"), ord("T"), ord("V")
SMALL = 4
"""Matrices of at most this many rows are factored here: a call of LAPACK takes longer."""
BLOCK = 64
"""So many rows of a triangular system are solved at once."""


def at(pointer, position):
    """The pointer to an element; compiled code only (intrinsics.py)."""
    raise NotImplementedError


def call(address, pointers):
    """Call a routine with a tuple of pointers; compiled code only (intrinsics.py)."""
    raise NotImplementedError


def word(pointer, position):
    """The 32-bit integer at an element; compiled code only (intrinsics.py)."""
    raise NotImplementedError


def lu(a, work, out, sizes, begin, end):
    """a[:, order] = lower @ upper, `upper` with ones on its diagonal: the LU factorisation of the transpose (getrf).

    `out` has n + 2 rows: both factors in one matrix, then `order` and its inverse, counted from 1.  The k-th entry of
    `order` is negative if step k exchanged two columns, so that the product of the signs is that of the permutation.
    """
    n = sizes[N]
    scratch = n // 2 + 2
    for matrix in range(begin * sizes[CHUNK], end * sizes[CHUNK]):
        base = matrix * n * (n + 2)
        order = base + n * n
        pivots = matrix * scratch
        for k in range(n * n):
            out[base + k] = a[matrix * n * n + k]
        if n <= SMALL:
            lu_in_place(out, base, n)
            for k in range(n):
                out[order + n + int(abs(out[order + k])) - 1] = k + 1
            continue
        size = at(sizes, N)
        call(sizes[0], (size, size, at(out, base), size, at(work, pivots), at(work, pivots + scratch - 1)))
        order_of_pivots(out, order, work, pivots, n)
        for k in range(n):
            out[order + n + int(abs(out[order + k])) - 1] = k + 1
    return 0


def lu_in_place(out, base, n):
    """The factors of one matrix, and the order of its columns behind them (Crout)."""
    order = base + n * n
    for k in range(n):
        out[order + k] = k + 1
    for k in range(n):
        chosen, largest = k, -1.0
        for j in range(k, n):
            total = out[base + k * n + j]
            for r in range(k):
                total -= out[base + k * n + r] * out[base + r * n + j]
            out[base + k * n + j] = total
            if abs(total) > largest:
                chosen, largest = j, abs(total) * 1.0
        if chosen != k:
            for i in range(n + 1):
                first, second = base + i * n + k, base + i * n + chosen
                out[first], out[second] = out[second], out[first]
            out[order + k] = -out[order + k]
        pivot = out[base + k * n + k]
        for j in range(k + 1, n):
            out[base + k * n + j] = out[base + k * n + j] / (pivot if pivot != 0 else 1)
        for i in range(k + 1, n):
            total = out[base + i * n + k]
            for r in range(k):
                total -= out[base + i * n + r] * out[base + r * n + k]
            out[base + i * n + k] = total
    return 0


def cholesky(a, work, out, sizes, begin, end):
    """The lower triangular factor of a symmetric matrix of which the lower triangle is read (potrf).

    NaN if the matrix is not positive definite.  `sizes` goes on with the letter for the triangle.
    """
    n = sizes[N]
    for matrix in range(begin * sizes[CHUNK], end * sizes[CHUNK]):
        base = matrix * n * n
        for i in range(n):
            for j in range(n):
                out[base + i * n + j] = a[base + i * n + j] if j <= i else 0
        work[matrix] = 0
        if n <= SMALL:
            work[matrix] = cholesky_in_place(out, base, n)
        else:
            size = at(sizes, N)
            call(sizes[0], (at(sizes, 3), size, at(out, base), size, at(work, matrix)))
        if work[matrix] != 0:
            for i in range(n):
                for j in range(i + 1):
                    out[base + i * n + j] = float("nan")
    return 0


def cholesky_in_place(out, base, n):
    """The factor of one matrix in its lower triangle; 1 if there is none."""
    for k in range(n):
        total = out[base + k * n + k]
        for r in range(k):
            total -= out[base + k * n + r] * out[base + k * n + r]
        if not total > 0:
            return 1
        root = square_root(total)
        out[base + k * n + k] = root
        for i in range(k + 1, n):
            total = out[base + i * n + k]
            for r in range(k):
                total -= out[base + i * n + r] * out[base + k * n + r]
            out[base + i * n + k] = total / root
    return 0


def triangular_solve(a, b, work, out, sizes, begin, end):
    """The solution x of a @ x = b (trsm).

    `sizes` goes on with the columns of b, four letters, the bits of 1, the address of gemm, the bits of -1, the letters
    N and T, the address of trsv, and 1.  One column is done by trsv.  Large systems are solved one block of rows after
    the other, with products in between, which are faster than trsm.
    """
    n, columns = sizes[N], sizes[3]
    lower, transposed = sizes[5] == UPPER, sizes[6] == TRANSPOSED
    for matrix in range(begin * sizes[CHUNK], end * sizes[CHUNK]):
        base = matrix * n * columns
        for k in range(base, base + n * columns):
            out[k] = b[k]
        if columns == 1:
            other = at(sizes, 11) if transposed else at(sizes, 12)
            matrix_at, vector = at(a, matrix * n * n), at(out, base)
            call(
                sizes[13],
                (at(sizes, 5), other, at(sizes, 7), at(sizes, N), matrix_at, at(sizes, N), vector, at(sizes, 14)),
            )
            continue
        block = BLOCK if n > 2 * BLOCK and columns >= BLOCK else n
        steps = (n + block - 1) // block if n else 0
        width, size, one = at(sizes, 3), at(sizes, N), at(sizes, 8)
        extent, known = at(work, 2 * matrix), at(work, 2 * matrix + 1)
        for step in range(steps):
            if lower != transposed:
                start = step * block
                stop = min(start + block, n)
                first, done = 0, start
            else:
                stop = n - step * block
                start = max(stop - block, 0)
                first, done = stop, n - stop
            work[2 * matrix] = stop - start
            work[2 * matrix + 1] = done
            target = at(out, base + start * columns)
            if done:
                corner = first * n + start if transposed else start * n + first
                factor, solved = at(a, matrix * n * n + corner), at(out, base + first * columns)
                plain, second, minus = at(sizes, 11), at(sizes, 6), at(sizes, 10)
                call(
                    sizes[9],
                    (plain, second, width, extent, known, minus, solved, width, factor, size, one, target, width),
                )
            factor = at(a, matrix * n * n + start * n + start)
            call(
                sizes[0],
                (
                    at(sizes, 4),
                    at(sizes, 5),
                    at(sizes, 6),
                    at(sizes, 7),
                    width,
                    extent,
                    one,
                    factor,
                    size,
                    target,
                    width,
                ),
            )
    return 0


def lu_solve(a, b, work, out, sizes, begin, end):
    """The solution x of a @ x = b from the result of `lu`; of a.T @ x = b if `sizes` ends with 1.

    No routine: `sizes` begins with 0, and goes on with the columns of b.
    """
    n, columns = sizes[N], sizes[3]
    for matrix in range(begin * sizes[CHUNK], end * sizes[CHUNK]):
        packed, base = matrix * n * (n + 2), matrix * n * columns
        order = packed + n * n
        for k in range(n):
            if sizes[4] != 0:
                source = base + (int(abs(a[order + k])) - 1) * columns
                for c in range(columns):
                    out[base + k * columns + c] = b[source + c]
            else:
                for c in range(columns):
                    work[base + k * columns + c] = b[base + k * columns + c]
        if sizes[4] != 0:
            for k in range(n):
                for i in range(k + 1, n):
                    for c in range(columns):
                        out[base + i * columns + c] -= a[packed + k * n + i] * out[base + k * columns + c]
            for step in range(n):
                k = n - 1 - step
                for c in range(columns):
                    out[base + k * columns + c] /= a[packed + k * n + k]
                for i in range(k):
                    for c in range(columns):
                        out[base + i * columns + c] -= a[packed + k * n + i] * out[base + k * columns + c]
        else:
            for k in range(n):
                for c in range(columns):
                    work[base + k * columns + c] /= a[packed + k * n + k]
                for i in range(k + 1, n):
                    for c in range(columns):
                        work[base + i * columns + c] -= a[packed + i * n + k] * work[base + k * columns + c]
            for step in range(n):
                k = n - 1 - step
                for i in range(k):
                    for c in range(columns):
                        work[base + i * columns + c] -= a[packed + i * n + k] * work[base + k * columns + c]
                target = base + (int(abs(a[order + k])) - 1) * columns
                for c in range(columns):
                    out[target + c] = work[base + k * columns + c]
    return 0


def complete_pivots(a, work, out, sizes, begin, end):
    """An order of rows and of columns whose leading rows and columns are a regular matrix, as many as the rank allows.

    Counted from 1, negative where a step exchanged two rows or columns, as in `lu`.  It is that in which elimination
    meets the largest pivots (complete pivoting), in which the rank shows in front.  That takes many times the time of
    a factorisation of many rows, so `lu` is tried first (getrf): its order of columns is as good where the leading
    block of it is well conditioned (gecon).  `sizes` goes on with the address of gecon, the letter of the norm, the
    extent of the block, and the condition up to which that is so.
    """
    n = sizes[N]
    stride = n * n + 4 * n + 2
    for matrix in range(begin * sizes[CHUNK], end * sizes[CHUNK]):
        out[matrix * 2 * n] = 0
        if n > FEW:
            order_by_columns(a, matrix * n * n, work, matrix * stride, out, matrix * 2 * n, sizes)
    for matrix in range(begin * sizes[CHUNK], end * sizes[CHUNK]):
        if out[matrix * 2 * n] == 0:
            for k in range(n * n):
                work[matrix * stride + k] = a[matrix * n * n + k]
            order_completely(work, matrix * stride, out, matrix * 2 * n, n)
    return 0


def order_by_columns(a, first, work, base, out, rows, sizes):
    """The order of columns of `lu`, if its leading block is well conditioned; else `out` begins with 0.

    `out` is scratch for 32-bit integers of LAPACK until then.
    """
    n, lead = sizes[N], sizes[LEAD]
    columns, extra = rows + n, base + n * n
    for k in range(n * n):
        work[base + k] = a[first + k]
    size = at(sizes, N)
    call(sizes[0], (size, size, at(work, base), size, at(out, rows), at(out, columns + n - 1)))
    order_of_pivots(out, columns, out, rows, n)
    largest = 0.0
    for j in range(lead):
        total = 0.0
        for i in range(lead):
            total += abs(a[first + j * n + abs(out[columns + i]) - 1])
        largest = max(largest, total)
    work[extra] = largest
    work[extra + 1] = 0
    numbers = (at(work, extra), at(work, extra + 1), at(work, extra + 2))
    integers = (at(out, rows), at(out, rows + n - 1))
    call(sizes[GECON], (at(sizes, GECON + 1), at(sizes, LEAD), at(work, base), size, *numbers, *integers))
    is_good = work[extra + 1] * sizes[LEAD + 1] > 1
    for k in range(n):
        out[rows + k] = k + 1 if is_good else 0


def order_of_pivots(out, order, pivots, first, n):
    """The order of columns that the pivots of getrf say, negative where a step exchanged two."""
    for k in range(n):
        out[order + k] = k + 1
    for k in range(n):
        # Two 32-bit pivots lie in each element.
        other = ((pivots[first + k // 2] >> (32 * (k % 2))) & 0xFFFFFFFF) - 1
        held = out[order + other]
        out[order + other] = out[order + k]
        out[order + k] = held if other == k else -held


def order_completely(work, base, out, rows, n):
    """The order of complete pivoting; elimination in place."""
    columns = rows + n
    for k in range(n):
        out[rows + k] = k + 1
        out[columns + k] = k + 1
    for k in range(n - 1):
        best, row, column = abs(work[base + k * n + k]), k, k
        for i in range(k, n):
            for j in range(k, n):
                size = abs(work[base + i * n + j])
                if size > best:
                    best, row, column = size, i, j
        if row != k:
            for j in range(n):
                first, second = base + k * n + j, base + row * n + j
                work[first], work[second] = work[second], work[first]
            out[rows + k], out[rows + row] = -out[rows + row], out[rows + k]
        if column != k:
            for i in range(n):
                first, second = base + i * n + k, base + i * n + column
                work[first], work[second] = work[second], work[first]
            out[columns + k], out[columns + column] = -out[columns + column], out[columns + k]
        pivot = work[base + k * n + k]
        if pivot != 0:
            for i in range(k + 1, n):
                factor = work[base + i * n + k] / pivot
                for j in range(k + 1, n):
                    work[base + i * n + j] -= factor * work[base + k * n + j]


# ----- Decompositions -----

# Their `sizes` begin with the address of a function that does the same, which the compiler calls where 1 is returned,
# because LAPACK has found nothing, or some element is infinite or undefined.  Rows, columns, the number of matrices and
# the address of LAPACK's routine follow.  LAPACK gets the matrices in columns, as from NumPy, so that vectors have the
# signs of NumPy's.
MATRICES, ROUTINE = 3, 4
"""Where `sizes` has the number of matrices and the routine; letters and the extents of scratch memory follow."""
SAVED = 8
"""Elements of the scratch memory in front, for numbers that LAPACK says."""


def eigh(a, work, out, sizes, begin, end):
    """Eigenvalues in ascending order, then the vectors one after the other if they are asked for (syevd).

    `sizes` goes on with the letters of what is wanted and of the triangle, and the extents of both scratch memories.
    """
    n = sizes[1]
    vectors = sizes[5] == VECTORS
    length = n + n * n if vectors else n
    size, matrix_work = at(sizes, 1), SAVED + sizes[7] + sizes[8]
    for matrix in range(sizes[MATRICES]):
        base, line = matrix * n * n, matrix * length
        if not all_finite(a, base, n * n):
            return 1
        target = at(out, line + n) if vectors else at(work, matrix_work)
        in_columns(a, base, target, 0, n, n)
        scratch = (at(work, SAVED), at(sizes, 7), at(work, SAVED + sizes[7]), at(sizes, 8), at(work, 0))
        call(sizes[ROUTINE], (at(sizes, 5), at(sizes, 6), size, target, size, at(out, line), *scratch))
        if word(work, 0) != 0:
            return 1
    return 0


def svd(a, work, out, sizes, begin, end):
    """Left vectors in columns, singular values in descending order, right vectors in rows; or the values alone (gesdd).

    `sizes` goes on with the letter of what is wanted, the numbers of left and of right vectors, the extent of the first
    scratch memory, and the leading extent of the right vectors.
    """
    m, n, lefts, rights = sizes[1], sizes[2], sizes[6], sizes[7]
    k = min(m, n)
    matrix_work = SAVED + sizes[8] + 8 * k
    left = matrix_work + m * n
    right = left + m * lefts
    for matrix in range(sizes[MATRICES]):
        line = matrix * (m * lefts + k + rights * n)
        values = line + m * lefts
        if not all_finite(a, matrix * m * n, m * n):
            return 1
        in_columns(a, matrix * m * n, work, matrix_work, m, n)
        vectors = (at(work, left), at(sizes, 1), at(work, right), at(sizes, 9))
        scratch = (at(work, SAVED), at(sizes, 8), at(work, SAVED + sizes[8]), at(work, 0))
        extents = (at(sizes, 1), at(sizes, 2), at(work, matrix_work), at(sizes, 1))
        call(sizes[ROUTINE], (at(sizes, 5), *extents, at(out, values), *vectors, *scratch))
        if word(work, 0) != 0:
            return 1
        in_columns(work, left, out, line, lefts, m)
        in_columns(work, right, out, values + k, n, rights)
    return 0


def qr(a, work, out, sizes, begin, end):
    """Orthonormal columns, then the upper triangle, of matrices with at least as many rows as columns (geqrf, orgqr).

    `sizes` goes on with the second routine, the number of orthonormal columns, and the extent of the scratch memory.
    """
    m, n, columns = sizes[1], sizes[2], sizes[6]
    matrix_work = SAVED + sizes[7] + n
    last = (at(work, SAVED), at(sizes, 7), at(work, 0))
    factors = at(work, SAVED + sizes[7])
    target, rows = at(work, matrix_work), at(sizes, 1)
    for matrix in range(sizes[MATRICES]):
        line = matrix * (m * columns + n * n)
        if not all_finite(a, matrix * m * n, m * n):
            return 1
        in_columns(a, matrix * m * n, work, matrix_work, m, n)
        call(sizes[ROUTINE], (rows, at(sizes, 2), target, rows, factors, *last))
        if word(work, 0) != 0:
            return 1
        for i in range(n):
            for j in range(n):
                out[line + m * columns + i * n + j] = work[matrix_work + j * m + i] if j >= i else 0
        call(sizes[5], (rows, at(sizes, 6), at(sizes, 2), target, rows, factors, *last))
        if word(work, 0) != 0:
            return 1
        in_columns(work, matrix_work, out, line, columns, m)
    return 0


def eig(a, work, out, sizes, begin, end):
    """Eigenvalues, then the vectors in columns if they are asked for: complex numbers, of real matrices (geev).

    `sizes` goes on with the letter of what is wanted, that of what is not, and the extent of the scratch memory.
    """
    n = sizes[1]
    vectors = sizes[5] == VECTORS
    length = 2 * (n + n * n) if vectors else 2 * n
    real = SAVED + sizes[7]
    imaginary, right, matrix_work = real + n, real + 2 * n, real + 2 * n + n * n
    size, nothing = at(sizes, 1), at(sizes, 6)
    for matrix in range(sizes[MATRICES]):
        line = matrix * length
        if not all_finite(a, matrix * n * n, n * n):
            return 1
        in_columns(a, matrix * n * n, work, matrix_work, n, n)
        found = (at(work, real), at(work, imaginary), at(work, right), size, at(work, right), size)
        scratch = (at(work, SAVED), at(sizes, 7), at(work, 0))
        call(sizes[ROUTINE], (nothing, at(sizes, 5), size, at(work, matrix_work), size, *found, *scratch))
        if word(work, 0) != 0:
            return 1
        for j in range(n):
            out[line + 2 * j] = work[real + j]
            out[line + 2 * j + 1] = work[imaginary + j]
            if vectors:
                # A pair of conjugate vectors: the real part in the first column, the imaginary one in the second.
                part = work[imaginary + j]
                first = right + (j - 1 if part < 0 else j) * n
                sign = 1 if part > 0 else -1 if part < 0 else 0
                for i in range(n):
                    place = line + 2 * (n + i * n + j)
                    out[place] = work[first + i]
                    out[place + 1] = sign * work[first + n + i] if sign != 0 else 0
    return 0


def all_finite(source, first, count):
    """Whether no element is infinite or undefined: LAPACK complains of those on its own, or does not end."""
    lost = 0.0
    for k in range(first, first + count):
        lost += source[k] * 0
    return lost == 0.0


def in_columns(source, first, target, start, rows, columns):
    """Write the transpose of a matrix."""
    for i in range(rows):
        for j in range(columns):
            target[start + j * rows + i] = source[first + i * columns + j]
