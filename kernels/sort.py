"""Special kernels that sort.

In:  a pointer to rows in C order, a workspace of int64, and `sizes`, which begins with (rows, length).  Out: per row,
the positions that sort it: stable, NaN last.  Called by the compiler (special.py).
"""

import numpy as np

from .bits import float64_to_int64
from .linalg import at, call

RUN = 12
"""Elements that are sorted by counting the smaller ones."""
MOST_STEPS = 4
"""Steps for each number of a row that numbers may take to their places one by one."""


def rank_bits(x):
    """An int64 in the order of numbers of one dtype: the same for equal ones, the largest for NaN.

    The meaning, for Python; the compiler has one function for floats and one for integers (intrinsics.py).
    """
    kind = np.asarray(x).dtype.kind
    if kind == "f":
        if np.isnan(x):
            return 2**63 - 1
        pattern = float64_to_int64(float(x) + 0.0)
        return pattern ^ ((pattern >> 63) & (2**63 - 1))
    return int(x) - 2**63 if kind == "u" and x.itemsize == 8 else int(x)


def rank_byte(x, shift):
    """Eight bits, from bit `shift` on, of an unsigned whole number in the order of numbers of one dtype.

    It is as wide as the dtype, the same for equal numbers, the largest for NaN.  The meaning, for Python; the compiler
    has a function for floats and one for integers (intrinsics.py).
    """
    value = np.asarray(x)
    width = 8 * value.itemsize
    if value.dtype.kind == "f":
        pattern = int((value + value.dtype.type(0)).view(f"u{value.itemsize}"))
        ordered = 2**width - 1 - pattern if pattern >> (width - 1) else pattern + 2 ** (width - 1)
        word = 2**width - 1 if np.isnan(value) else ordered
    else:
        word = int(value) + (2 ** (width - 1) if value.dtype.kind == "i" else 0)
    return (word >> shift) & 255


def argsort(x, workspace, out, sizes, begin, end):
    """Merge sort of numbers with their positions, without branches that depend on the numbers.

    The workspace has three numbers for each element.
    """
    length = sizes[1]
    for row in range(begin, end):
        base = row * length
        argsort_row(x, base, at(workspace, 3 * base), at(out, base), length)
    return 0


def argsort_by_values(x, workspace, out, sizes, begin, end):
    """Positions by a sort of numbers alone, whose address `sizes` goes on with, and then a position's bits.

    A position takes the last bits of a number's rank.  Where these were not all zero, numbers that differ only there
    are put in order afterwards, one by one or, if they are many, by a merge sort of the row.  The workspace has two
    numbers that say how many rows of which length follow, these, and three more for each element of one row.
    """
    rows, length, bits = sizes[0], sizes[1], sizes[3]
    mask = (1 << bits) - 1
    workspace[0] = rows
    workspace[1] = length
    keys = at(workspace, 2)
    for row in range(rows):
        base = row * length
        used = 0
        for k in range(base, base + length):
            rank = rank_bits(x[k])
            used |= rank ^ (rank >> 63)
        shift = 0
        while shift < bits and (used >> (62 - shift)) & 1 == 0:
            shift += 1
        lost = 0
        for k in range(length):
            rank = rank_bits(x[base + k]) << shift
            lost |= rank & mask
            keys[base + k] = (rank & ~mask) | k
        out[base] = lost
    call(sizes[2], (at(workspace, 0),))
    for row in range(rows):
        base = row * length
        lost = out[base]
        for k in range(base, base + length):
            out[k] = keys[k] & mask
        if lost != 0 and not put_in_order(x, base, at(out, base), length):
            argsort_row(x, base, at(keys, rows * length), at(out, base), length)
    return 0


def put_in_order(x, base, order, length):
    """Insertion sort of positions that are nearly in order; 0 if that takes too many steps."""
    steps = 0
    last = rank_bits(x[base + order[0]])
    for k in range(1, length):
        position = order[k]
        rank = rank_bits(x[base + position])
        if rank >= last:
            last = rank
        else:
            place = k
            while place > 0 and rank_bits(x[base + order[place - 1]]) > rank:
                order[place] = order[place - 1]
                place -= 1
                steps += 1
            order[place] = position
            if steps > MOST_STEPS * length:
                return 0
    return 1


def argsort_row(x, base, keys, order, length):
    """One row by merging; `keys` is scratch memory for three rows.

    It is parted into 2**levels runs whose lengths differ by one at most.  Two runs are merged from both ends, so that
    neither end looks beyond its run (Knuth, The Art of Computer Programming 3, 5.2.4).
    """
    levels = 0
    while (length >> levels) > RUN:
        levels += 1
    other_keys = at(keys, length)
    other_order = at(keys, 2 * length)
    if levels & 1:
        other_order, order = order, other_order
    for run in range(1 << levels):
        first = (run * length) >> levels
        last = ((run + 1) * length) >> levels
        for k in range(first, last):
            other_keys[k] = rank_bits(x[base + k])
        for k in range(first, last):
            key = other_keys[k]
            place = first
            for j in range(first, k):
                place += 1 + below(key, other_keys[j])
            for j in range(k + 1, last):
                place -= below(other_keys[j], key)
            keys[place] = key
            order[place] = k
    for level in range(levels, 0, -1):
        for run in range(0, 1 << level, 2):
            low = (run * length) >> level
            middle = ((run + 1) * length) >> level
            high = ((run + 2) * length) >> level
            merge(keys, order, other_keys, other_order, low, middle, high)
        keys, other_keys = other_keys, keys
        order, other_order = other_order, order


def merge(keys, order, new_keys, new_order, low, middle, high):
    """Two sorted runs, from `low` to `middle` and from there to `high`, as one."""
    left = low
    right = middle
    last_left = middle - 1
    last_right = high - 1
    steps = min(middle - low, high - middle)
    for k in range(steps):
        later = below(keys[right], keys[left])
        place = left + (later & (right - left))
        new_keys[low + k] = keys[place]
        new_order[low + k] = order[place]
        right -= later
        left += 1 + later
        earlier = below(keys[last_right], keys[last_left])
        place = last_right + (earlier & (last_left - last_right))
        new_keys[high - 1 - k] = keys[place]
        new_order[high - 1 - k] = order[place]
        last_left += earlier
        last_right -= 1 + earlier
    if 2 * steps < high - low:
        place = left if left <= last_left else right
        new_keys[low + steps] = keys[place]
        new_order[low + steps] = order[place]


def below(a, b):
    """-1 if a < b, else 0, from the bits alone: LLVM would make a branch of a comparison, which half the time is
    predicted wrong (Warren, Hacker's Delight, 2-12)."""
    return ((a & ~b) | (~(a ^ b) & (a - b))) >> 63
