"""Special kernels that write at computed positions.

In:  pointers to positions (int64, all in range) and updates, and `sizes` = (number of updates, length of the result).
Out: the result.  They run in the order of the updates, on one thread: results are reproducible and repeated positions
behave as in NumPy.  Called by the compiler (special.py).
"""


def scatter_add(index, updates, out, sizes, begin, end):
    """Zeros with every update added at its position."""
    for k in range(sizes[1]):
        out[k] = 0
    for k in range(sizes[0]):
        out[index[k]] += updates[k]
    return 0


def scatter_rows(starts, updates, out, sizes, begin, end):
    """Zeros with every row of updates added from its start on; `sizes` = (rows, length of the result, of a row)."""
    for k in range(sizes[1]):
        out[k] = 0
    length = sizes[2]
    for row in range(sizes[0]):
        start = starts[row]
        for k in range(length):
            out[start + k] += updates[row * length + k]
    return 0


def scatter_sums(starts, places, updates, out, sizes, begin, end):
    """Zeros with the elements of each row of updates added at the same places behind its start.

    `sizes` = (rows, length of the result, of a row).
    """
    for k in range(sizes[1]):
        out[k] = 0
    length = sizes[2]
    for row in range(sizes[0]):
        start = starts[row]
        for k in range(length):
            out[start + places[k]] += updates[row * length + k]
    return 0


def scatter_last(index, out, sizes, begin, end):
    """For each position, the number of the last update that names it, or -1."""
    for k in range(sizes[1]):
        out[k] = -1
    for k in range(sizes[0]):
        out[index[k]] = k
    return 0
