"""Kernels on batches of matrices around the calls of cuBLAS and cuSOLVER: other layouts, orders, and what failed.

In:  pointers, then integers.  Complex numbers are pairs of real ones: `parts` is 2 for them, else 1.  Out: 0, and what
the last pointers point to.  Called by the device's solvers.  The libraries count columns first, so that a matrix in C
order is to them the transposed one.
"""

from ..device import block, blocks, thread, threads


def copy_strided(source, target, n1, n2, n3, count, s0, s1, s2, s3, t0, t1, t2, t3):
    """Copy an array of four axes, of which n1, n2, n3 are the extents of the last three, between any strides."""
    for k in range(block() * threads() + thread(), count, blocks() * threads()):
        d = k % n3
        rest = k // n3
        c = rest % n2
        rest = rest // n2
        b = rest % n1
        a = rest // n1
        target[a * t0 + b * t1 + c * t2 + d * t3] = source[a * s0 + b * s1 + c * s2 + d * s3]
    return 0


def copy_upper(source, target, n, parts, count, leading, s0, t0):
    """Rows of upper triangles, zeros below, from matrices whose columns are `leading` elements apart."""
    for k in range(block() * threads() + thread(), count, blocks() * threads()):
        part = k % parts
        rest = k // parts
        column = rest % n
        rest = rest // n
        row = rest % n
        matrix = rest // n
        value = source[0] * 0
        if row <= column:
            value = source[(matrix * s0 + column * leading + row) * parts + part]
        target[(matrix * t0 + row * n + column) * parts + part] = value
    return 0


def keep_lower(info, out, n, parts, count):
    """Zeros above the diagonal, and NaN below it in matrices whose factorisation has failed."""
    for k in range(block() * threads() + thread(), count, blocks() * threads()):
        rest = k // parts
        column = rest % n
        rest = rest // n
        row = rest % n
        if column > row:
            out[k] = 0
        elif info[rest // n] != 0:
            out[k] = float("nan")
    return 0


def spoil(info, out, length, count):
    """NaN in rows of a length whose computation has failed: a number would be wrong."""
    for k in range(block() * threads() + thread(), count, blocks() * threads()):
        if info[k // length] != 0:
            out[k] = float("nan")
    return 0


def order_of(pivots, out, n, parts, count):
    """`order` and its inverse from the exchanges of columns, as two rows behind each matrix of n rows.

    As on the CPU (linalg.py): counted from 1, and the k-th entry of `order` is negative if step k exchanged columns.
    """
    for matrix in range(block() * threads() + thread(), count, blocks() * threads()):
        order = (matrix * (n + 2) + n) * n * parts
        inverse = order + n * parts
        for k in range(n):
            out[order + k * parts] = k + 1
            if parts == 2:
                out[order + k * parts + 1] = 0
                out[inverse + k * parts + 1] = 0
        for k in range(n):
            other = pivots[matrix * n + k] - 1
            held = out[order + other * parts]
            out[order + other * parts] = out[order + k * parts]
            out[order + k * parts] = held if other == k else -held
        for k in range(n):
            place = int(abs(out[order + k * parts])) - 1
            out[inverse + place * parts] = k + 1
    return 0


def order_of_long(pivots, out, n, parts, count):
    """The order of rows by `order_of`, for pivots that are int64."""
    return order_of(pivots, out, n, parts, count)


def addresses(out, first, distance, count):
    """The addresses of `count` matrices that lie a distance in bytes apart."""
    for k in range(block() * threads() + thread(), count, blocks() * threads()):
        out[k] = first + k * distance
    return 0
