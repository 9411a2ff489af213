"""Kernels for GPUs: running sums, maxima and minima along rows.

In:  rows in C order and their length.  Out: rows of the same shape.  `wide` is any pointer to what is computed with:
the dtype of floats, 64 bits for whole numbers.  Short rows have one thread each.  Longer ones are cut into tiles of
`ITEMS` elements for each thread of a block: if a row is one tile, `sum_tiles` alone does it; if not, `sum_totals` gives
the total of each tile, `sum_carries` the totals up to each tile, and `sum_tiles` the rest.  If `reverse`, rows are
walked from their ends.  Who calls: nbgrad/device/kernels/scans.py.
"""

from ..device import barrier, block, shared_like, shuffle_from, thread, threads
from .device_variants import variant

ITEMS = 8
"""Elements of a tile for each thread."""
MOST_WARPS = 32
"""Of a block."""


def joined(first, second):
    """Two neighbouring parts as one: their sum."""
    return first + second


def larger(first, second):
    """The larger one, the first of equal ones; NaN if there is one."""
    return second if second > first or second != second else first


def smaller(first, second):
    """The smaller one, the first of equal ones; NaN if there is one."""
    return second if second < first or second != second else first


def slot(position):
    """Where an element of a tile lies in shared memory: no two threads of a warp meet in one bank."""
    return position + (position >> 5)


def sum_rows(x, out, wide, rows, length, reverse):
    """One thread for each row, which must be short."""
    row = block() * threads() + thread()
    if row < rows:
        step = -1 if reverse else 1
        at = row * length + (length - 1 if reverse else 0)
        place = shared_like(wide, 8 * thread())
        place[0] = x[at]
        state = place[0]
        out[at] = x[at]
        for _k in range(1, length):
            at += step
            place[0] = x[at]
            state = joined(state, place[0])
            out[at] = state
    return 0


def sum_warp(total, lane):
    """Running sums of a warp's values, the own one included."""
    distance = 1
    while distance < 32:
        other = shuffle_from(total, max(lane - distance, 0))
        if lane >= distance:
            total = joined(other, total)
        distance *= 2
    return total


def sum_before(place, warps, size):
    """The sum of a thread's part of a tile, that of the parts before it in the tile, and whether there are any."""
    t = thread()
    lane = t & 31
    begin = t * ITEMS
    state = place[slot(min(begin, size - 1))]
    for k in range(begin + 1, min(begin + ITEMS, size)):
        state = joined(state, place[slot(k)])
    total = sum_warp(state, lane)
    before = shuffle_from(total, max(lane - 1, 0))
    if lane == 31:
        warps[t >> 5] = total
    barrier()
    if t >= 32:
        earlier = warps[0]
        for warp in range(1, t >> 5):
            earlier = joined(earlier, warps[warp])
        before = joined(earlier, before) if lane > 0 else earlier
    return state, before, t > 0


def load_tile(x, place, start, step, size):
    """A tile's elements to shared memory, neighbours by neighbouring threads; all reads of a thread are under way at
    once."""
    for item in range(ITEMS):
        k = item * threads() + thread()
        if k < size:
            place[slot(k)] = x[start + k * step]
    barrier()
    return 0


def store_tile(place, out, start, step, size):
    """A tile's elements from shared memory."""
    for item in range(ITEMS):
        k = item * threads() + thread()
        if k < size:
            out[start + k * step] = place[slot(k)]
    return 0


def sum_totals(x, totals, rows, length, count, reverse):
    """The total of each of the `count` tiles of each row; a block for each."""
    tile_size = threads() * ITEMS
    place = shared_like(totals, 0)
    warps = shared_like(totals, 8 * slot(tile_size))
    row = block() // count
    first = (block() - row * count) * tile_size
    size = min(tile_size, length - first)
    start = row * length + (length - 1 - first if reverse else first)
    load_tile(x, place, start, -1 if reverse else 1, size)
    state, before, some = sum_before(place, warps, size)
    begin = thread() * ITEMS
    if begin < size and size <= begin + ITEMS:
        totals[block()] = joined(before, state) if some else state
    return 0


def sum_carries(totals, rows, count):
    """Totals up to and with each tile, in place of those of the tiles; a block for each row."""
    warps = shared_like(totals, 0)
    t = thread()
    at = block() * count
    state = totals[at]
    first = 0
    while first < count:
        k = min(first + t, count - 1)
        total = sum_warp(totals[at + k], t & 31)
        if t & 31 == 31:
            warps[t >> 5] = total
        barrier()
        if t >= 32:
            earlier = warps[0]
            for warp in range(1, t >> 5):
                earlier = joined(earlier, warps[warp])
            total = joined(earlier, total)
        if first > 0:
            total = joined(state, total)
        if t == threads() - 1:
            warps[MOST_WARPS] = total
        if first + t < count:
            totals[at + k] = total
        barrier()
        state = warps[MOST_WARPS]
        first += threads()
    return 0


def sum_tiles(x, carries, out, rows, length, count, reverse):
    """Rows of `count` tiles, a block for each; `carries` are only read if there are several tiles."""
    tile_size = threads() * ITEMS
    place = shared_like(carries, 0)
    warps = shared_like(carries, 8 * slot(tile_size))
    row = block() // count
    tile = block() - row * count
    first = tile * tile_size
    size = min(tile_size, length - first)
    start = row * length + (length - 1 - first if reverse else first)
    step = -1 if reverse else 1
    load_tile(x, place, start, step, size)
    _state, before, some = sum_before(place, warps, size)
    if tile > 0:
        carry = carries[block() - 1]
        before = joined(carry, before) if some else carry
        some = True
    begin = thread() * ITEMS
    if begin < size:
        state = place[slot(begin)]
        if some:
            state = joined(before, state)
        place[slot(begin)] = state
        for k in range(begin + 1, min(begin + ITEMS, size)):
            state = joined(state, place[slot(k)])
            place[slot(k)] = state
    barrier()
    return store_tile(place, out, start, step, size)


def _extremes(kind, joined):
    """The kernels of running maxima or minima: rows, totals, carries, tiles."""
    warp = variant(sum_warp, f"{kind}_warp", joined=joined)
    before = variant(sum_before, f"{kind}_before", joined=joined, sum_warp=warp)
    called = {"joined": joined, "sum_warp": warp, "sum_before": before}
    return [
        variant(function, function.__name__.replace("sum", kind), **called)
        for function in (sum_rows, sum_totals, sum_carries, sum_tiles)
    ]


maximum_rows, maximum_totals, maximum_carries, maximum_tiles = _extremes("maximum", larger)
minimum_rows, minimum_totals, minimum_carries, minimum_tiles = _extremes("minimum", smaller)
