"""Kernels for GPUs on batches of square matrices: factorisations, triangular systems, complete pivoting.

In:  pointers to matrices in C order, and their extent n.  Out: what the kernels in linalg.py give.  A block works on
one matrix, in shared memory if it fits (`in_shared`) and in device memory otherwise; its first `ROOM` bytes of shared
memory are for what warps tell each other.  Warps take rows, and lanes columns.  Who calls:
nbgrad/device/kernels/matrix_recipes.py.
"""

from ..bits import square_root
from ..device import barrier, block, shared_like, shuffle_xor, thread, threads
from ..jacobi import diagonalise
from ..linalg import at

ROOM = 512


def largest(size, where, sizes, wheres):
    """The position of the block's largest number, the lowest one if there are several: every thread gets it."""
    mask = 16
    while mask > 0:
        other = shuffle_xor(size, mask)
        place = shuffle_xor(where, mask)
        if other > size or (other == size and place < where):
            size = other
            where = place
        mask >>= 1
    t = thread()
    if t & 31 == 0:
        sizes[t >> 5] = size
        wheres[t >> 5] = where
    barrier()
    size = sizes[0]
    where = wheres[0]
    for warp in range(1, threads() >> 5):
        if sizes[warp] > size or (sizes[warp] == size and wheres[warp] < where):
            size = sizes[warp]
            where = wheres[warp]
    return where


def exchange(place, first, second, step, count):
    """Exchange two rows or columns: elements `step` apart, from two positions on."""
    k = thread()
    while k < count:
        one, other = first + k * step, second + k * step
        held = place[one]
        place[one] = place[other]
        place[other] = held
        k += threads()
    return 0


def complete_pivots(a, work, out, n, in_shared):
    """The orders of rows and columns in which elimination meets the largest pivots."""
    t = thread()
    lane = t & 31
    each = threads() >> 5
    base = block() * n * n
    place = shared_like(work, ROOM) if in_shared else at(work, base)
    sizes = shared_like(work, 0)
    wheres = shared_like(out, ROOM // 2)
    rows = block() * 2 * n
    columns = rows + n
    k = t
    while k < n * n:
        place[k] = a[base + k]
        k += threads()
    k = t
    while k < n:
        out[rows + k] = k + 1
        out[columns + k] = k + 1
        k += threads()
    barrier()
    for k in range(n - 1):
        size = abs(place[k * n + k])
        where = k * n + k
        i = k + (t >> 5)
        while i < n:
            j = k + lane
            while j < n:
                value = abs(place[i * n + j])
                if value > size:
                    size = value
                    where = i * n + j
                j += 32
            i += each
        where = largest(size, where, sizes, wheres)
        row = where // n
        column = where - row * n
        if row != k:
            exchange(place, k * n, row * n, 1, n)
        barrier()
        if column != k:
            exchange(place, k, column, n, n)
        if t == 0:
            held = out[rows + row]
            out[rows + row] = out[rows + k]
            out[rows + k] = held if row == k else -held
            held = out[columns + column]
            out[columns + column] = out[columns + k]
            out[columns + k] = held if column == k else -held
        barrier()
        pivot = place[k * n + k]
        if pivot != 0:
            i = k + 1 + (t >> 5)
            while i < n:
                factor = place[i * n + k] / pivot
                j = k + 1 + lane
                while j < n:
                    place[i * n + j] -= factor * place[k * n + j]
                    j += 32
                i += each
        barrier()
    return 0


def lu(a, out, orders, n, in_shared):
    """a[:, order] = lower @ upper, then `order` and its inverse; `orders` is any pointer to int64."""
    t = thread()
    lane = t & 31
    each = threads() >> 5
    first = block() * n * n
    base = block() * n * (n + 2)
    order = base + n * n
    place = shared_like(out, ROOM) if in_shared else at(out, base)
    sizes = shared_like(out, 0)
    wheres = shared_like(orders, ROOM // 2)
    k = t
    while k < n * n:
        place[k] = a[first + k]
        k += threads()
    k = t
    while k < n:
        out[order + k] = k + 1
        k += threads()
    barrier()
    for k in range(n):
        size = abs(place[k * n + k])
        where = k
        i = k + t
        while i < n:
            value = abs(place[k * n + i])
            if value > size:
                size = value
                where = i
            i += threads()
        where = largest(size, where, sizes, wheres)
        if where != k:
            exchange(place, k, where, n, n)
            if t == 0:
                held = out[order + where]
                out[order + where] = out[order + k]
                out[order + k] = -held
        barrier()
        pivot = place[k * n + k]
        if pivot != 0:
            i = k + 1 + t
            while i < n:
                place[k * n + i] /= pivot
                i += threads()
        barrier()
        j = k + 1 + (t >> 5)
        while j < n:
            factor = place[j * n + k]
            i = k + 1 + lane
            while i < n:
                place[j * n + i] -= factor * place[k * n + i]
                i += 32
            j += each
        barrier()
    k = t
    while k < n:
        out[order + n + int(abs(out[order + k])) - 1] = k + 1
        k += threads()
    if in_shared:
        k = t
        while k < n * n:
            out[base + k] = place[k]
            k += threads()
    return 0


def cholesky(a, out, n, in_shared):
    """The lower triangular factor of a symmetric matrix of which the lower triangle is read; NaN if there is none."""
    t = thread()
    lane = t & 31
    warp = t >> 5
    each = threads() >> 5
    base = block() * n * n
    place = shared_like(out, ROOM) if in_shared else at(out, base)
    i = warp
    while i < n:
        j = lane
        while j < n:
            place[i * n + j] = a[base + i * n + j]
            j += 32
        i += each
    barrier()
    regular = True
    for k in range(n):
        pivot = place[k * n + k]
        regular = regular and pivot > 0
        root = square_root(pivot)
        barrier()
        i = k + t
        while i < n:
            place[i * n + k] = place[i * n + k] / root if i > k else root
            i += threads()
        barrier()
        i = k + 1 + warp
        while i < n:
            factor = place[i * n + k]
            j = k + 1 + lane
            while j <= i:
                place[i * n + j] -= factor * place[j * n + k]
                j += 32
            i += each
        barrier()
    i = warp
    while i < n:
        j = lane
        while j < n:
            if j > i:
                out[base + i * n + j] = 0
            elif regular:
                out[base + i * n + j] = place[i * n + j]
            else:
                out[base + i * n + j] = float("nan")
            j += 32
        i += each
    return 0


def triangular_solve(a, b, out, n, columns, pieces, shift, lower, transposed, unit):
    """The x of a @ x = b.  A block has 2 ** shift columns, of which there are `pieces` such parts."""
    t = thread()
    step = threads() >> shift
    matrix = block() // pieces
    column = ((block() - matrix * pieces) << shift) + (t & ((1 << shift) - 1))
    mine = t >> shift
    base = matrix * n * columns + column
    first = matrix * n * n
    down = n if transposed == 0 else 1
    across = 1 if transposed == 0 else n
    forward = lower != transposed
    here = column < columns
    if here:
        i = mine
        while i < n:
            out[base + i * columns] = b[base + i * columns]
            i += step
    for k in range(n):
        i = k if forward else n - 1 - k
        barrier()
        if here and mine == 0 and unit == 0:
            out[base + i * columns] /= a[first + i * (n + 1)]
        barrier()
        if here:
            known = out[base + i * columns]
            row = i + 1 + mine if forward else mine
            end = n if forward else i
            while row < end:
                out[base + row * columns] -= a[first + row * down + i * across] * known
                row += step
    return 0


def lu_solve(a, b, work, out, n, columns, batch, transposed):
    """The x of a @ x = b, or of a.T @ x = b, from the result of `lu`: a column of b for each thread."""
    index = block() * threads() + thread()
    matrix = index // columns
    if matrix < batch:
        base = matrix * n * columns + index - matrix * columns
        packed = matrix * n * (n + 2)
        order = packed + n * n
        for k in range(n):
            source = base + (int(abs(a[order + k])) - 1 if transposed != 0 else k) * columns
            work[base + k * columns] = b[source]
        for k in range(n):
            if transposed == 0:
                work[base + k * columns] /= a[packed + k * (n + 1)]
            known = work[base + k * columns]
            for i in range(k + 1, n):
                at_factor = packed + (k * n + i if transposed != 0 else i * n + k)
                work[base + i * columns] -= a[at_factor] * known
        for step in range(n):
            k = n - 1 - step
            if transposed != 0:
                work[base + k * columns] /= a[packed + k * (n + 1)]
            known = work[base + k * columns]
            for i in range(k):
                at_factor = packed + (k * n + i if transposed != 0 else i * n + k)
                work[base + i * columns] -= a[at_factor] * known
            target = k if transposed != 0 else int(abs(a[order + k])) - 1
            out[base + target * columns] = known
    return 0


def symmetric_eigen(a, work, out, n, batch, lower, vectors, digits):
    """Eigenvalues of a matrix for each thread, and its vectors."""
    matrix = block() * threads() + thread()
    if matrix < batch:
        length = n + n * n if vectors != 0 else n
        diagonalise(a, work, matrix * n * n, out, matrix * length, n, lower, vectors, digits)
    return 0
