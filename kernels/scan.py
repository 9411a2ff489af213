"""Special kernels along rows: recurrences and running extrema.

In:  pointers to rows in C order, and `sizes` = (rows, length, reverse).  Out: rows of the same shape.  The rows from
`begin` to `end` are done, so that rows can be shared among threads.  Called by the compiler (special.py).
"""


def recurrence(a, b, out, sizes, begin, end):
    """s[i] = a[i] * s[i-1] + b[i] along each row, from the last element if `reverse`."""
    length = sizes[1]
    for row in range(begin, end):
        base = row * length
        if length == 0:
            continue
        first = base + length - 1 if sizes[2] else base
        step = -1 if sizes[2] else 1
        state = b[first]
        out[first] = state
        for k in range(1, length):
            at = first + k * step
            state = a[at] * state + b[at]
            out[at] = state
    return 0


def running_maximum(x, out, sizes, begin, end):
    """The largest element so far along each row; NaN stays."""
    length = sizes[1]
    for row in range(begin, end):
        base = row * length
        if length == 0:
            continue
        state = x[base]
        for k in range(length):
            value = x[base + k]
            if value > state or value != value:
                state = value
            out[base + k] = state
    return 0


def running_minimum(x, out, sizes, begin, end):
    """The smallest element so far along each row; NaN stays."""
    length = sizes[1]
    for row in range(begin, end):
        base = row * length
        if length == 0:
            continue
        state = x[base]
        for k in range(length):
            value = x[base + k]
            if value < state or value != value:
                state = value
            out[base + k] = state
    return 0
