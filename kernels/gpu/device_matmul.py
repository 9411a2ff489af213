"""Kernel for GPUs: products of batches of matrices, where no library does them.

In:  pointers to the operands, whose axes have any strides, and the extents.  Out: the product.  Each block makes
`TILE` by `TILE` elements from tiles of the operands in shared memory, each thread four of them.  Who calls:
nbgrad/device/kernels/matrix_recipes.py.
"""

from ..bits import fma
from ..device import barrier, block, shared_like, thread

TILE = 32
PITCH = TILE + 1
THREADS = 256


def load(source, place, start, row, column, row_step, column_step, rows, columns, turned):
    """A tile of a matrix to shared memory, from a row and a column on; zeros outside.  Neighbouring threads take
    neighbours in a row, or in a column if `turned`."""
    t = thread()
    fast = t & (TILE - 1)
    slow = t >> 5
    while slow < TILE:
        i, j = (fast, slow) if turned else (slow, fast)
        if row + i < rows and column + j < columns:
            place[i * PITCH + j] = source[start + (row + i) * row_step + (column + j) * column_step]
        else:
            place[i * PITCH + j] = 0
        slow += THREADS // TILE
    return 0


def matmul(
    a, b, c, m, n, k, down, across, a_matrix, a_row, a_column, a_turned,
    b_matrix, b_row, b_column, b_turned, c_matrix, c_row,
):  # fmt: skip
    """c = a @ b; there are `down` times `across` tiles in each product."""
    left = shared_like(c, 0)
    right = shared_like(c, 8 * TILE * PITCH)
    matrix = block() // (down * across)
    tile = block() - matrix * down * across
    row = tile // across * TILE
    column = (tile - tile // across * across) * TILE
    t = thread()
    x, y = t & 15, t >> 4
    left[t] = 0
    first = second = third = fourth = left[t]
    barrier()
    step = 0
    while step < k:
        load(a, left, matrix * a_matrix, row, step, a_row, a_column, m, k, a_turned)
        load(b, right, matrix * b_matrix, step, column, b_row, b_column, k, n, b_turned)
        barrier()
        for inner in range(TILE):
            upper, under = left[y * PITCH + inner], left[(y + 16) * PITCH + inner]
            near, far = right[inner * PITCH + x], right[inner * PITCH + x + 16]
            first = fma(upper, near, first)
            second = fma(upper, far, second)
            third = fma(under, near, third)
            fourth = fma(under, far, fourth)
        barrier()
        step += TILE
    start = matrix * c_matrix + (row + y) * c_row + column + x
    if row + y < m:
        if column + x < n:
            c[start] = first
        if column + x + 16 < n:
            c[start + 16] = second
    if row + y + 16 < m:
        if column + x < n:
            c[start + 16 * c_row] = third
        if column + x + 16 < n:
            c[start + 16 * c_row + 16] = fourth
    return 0
