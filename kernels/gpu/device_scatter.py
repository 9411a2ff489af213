"""Kernels for GPUs that write at computed positions.

In:  pointers to positions (int64, all in range) and updates.  Out: sums at each position, or the last update of each.
`add`, `add_shared` and `add_rows` add to a result that was set to zero before, in no particular order; `sum_sorted` and
`sum_sorted_long` write all of it, and each sum is in the order of the updates.  Who calls:
nbgrad/device/kernels/scatters.py.
"""

from ..device import atomic_add, atomic_max, barrier, block, blocks, shared_like, shuffle_down, thread, threads


def add(index, updates, out, count):
    """Add every update at its position."""
    k = block() * threads() + thread()
    while k < count:
        atomic_add(out, index[k], updates[k])
        k += blocks() * threads()
    return 0


def add_shared(index, updates, out, count, size):
    """Additions at few positions: blocks add up in shared memory first."""
    sums = shared_like(out, 0)
    k = thread()
    while k < size:
        sums[k] = 0
        k += threads()
    barrier()
    k = block() * threads() + thread()
    while k < count:
        atomic_add(sums, index[k], updates[k])
        k += blocks() * threads()
    barrier()
    k = thread()
    while k < size:
        value = sums[k]
        if value != 0:
            atomic_add(out, k, value)
        k += threads()
    return 0


def add_rows(starts, updates, out, rows, length, shift):
    """Add every row of updates from its start on; 2 ** shift threads for each row."""
    lanes = 1 << shift
    lane = thread() & (lanes - 1)
    each = threads() >> shift
    row = block() * each + (thread() >> shift)
    while row < rows:
        start = starts[row]
        first = row * length
        k = lane
        while k < length:
            atomic_add(out, start + k, updates[first + k])
            k += lanes
        row += blocks() * each
    return 0


def first_at_least(index, order, count, bound):
    """How many of the positions, in their order, are below a bound."""
    low = 0
    high = count
    while low < high:
        middle = (low + high) >> 1
        if index[order[middle]] < bound:
            low = middle + 1
        else:
            high = middle
    return low


def sum_sorted(starts, updates, order, out, wide, rows, length, size):
    """Sums of rows of updates, which begin at `starts`; `order` sorts these.  A thread for each element."""
    k = block() * threads() + thread()
    while k < size:
        total = shared_like(wide, 8 * thread())
        total[0] = 0
        state = total[0]
        for at in range(first_at_least(starts, order, rows, k - length + 1), rows):
            row = order[at]
            start = starts[row]
            if start > k:
                break
            total[0] = updates[row * length + k - start]
            state += total[0]
        out[k] = state
        k += blocks() * threads()
    return 0


def sum_sorted_long(starts, updates, order, out, wide, rows, length, size):
    """Ordered additions, a block for each element: its threads take turns, their sums are added in a fixed order."""
    sums = shared_like(wide, 0)
    t = thread()
    k = block()
    while k < size:
        sums[t] = 0
        state = sums[t]
        low = first_at_least(starts, order, rows, k - length + 1)
        high = first_at_least(starts, order, rows, k + 1)
        at = low + t
        while at < high:
            row = order[at]
            sums[t] = updates[row * length + k - starts[row]]
            state += sums[t]
            at += threads()
        distance = 16
        while distance > 0:
            state += shuffle_down(state, distance)
            distance >>= 1
        barrier()
        if t & 31 == 0:
            sums[t >> 5] = state
        barrier()
        if t == 0:
            for warp in range(1, threads() >> 5):
                state += sums[warp]
            out[k] = state
        barrier()
        k += blocks()
    return 0


def narrow(wide, out, size):
    """Sums in their own dtype."""
    k = block() * threads() + thread()
    while k < size:
        out[k] = wide[k]
        k += blocks() * threads()
    return 0


def last(index, out, count):
    """Raise the element at each position to the number of the update; there was -1 before."""
    k = block() * threads() + thread()
    while k < count:
        atomic_max(out, index[k], k)
        k += blocks() * threads()
    return 0
