"""Kernels for GPUs: s[i] = a[i] * s[i-1] + b[i] along rows.

In:  rows of a and of b in C order and their length.  Out: rows of the same shape.  Tiles are as in device_scan.py.  A
part of a row takes a state s to factor * s + sum, and two parts are one such part again (Blelloch, Prefix sums and
their applications, 1990).  A product of many elements of a may leave the range of floats where every state is in it:
with `scaled`, which is for floats, a factor is m * BIG ** e with 1 <= abs(m) < BIG, or m is 0, infinite or NaN.
A part that does not begin its row and whose sum is 0 leaves it 0 even if a factor is infinite: what comes before is not
known to be 0.  `wide` is as in device_scan.py.  Who calls: nbgrad/device/kernels/scans.py.
"""

from ..device import barrier, block, shared_like, shuffle_from, thread, threads
from .device_scan import ITEMS, MOST_WARPS, load_tile, slot, store_tile

BIG, SMALL = 2.0**60, 2.0**-60


def recurrence_rows(a, b, out, wide, rows, length, reverse):
    """One thread for each row, which must be short."""
    row = block() * threads() + thread()
    if row < rows:
        step = -1 if reverse else 1
        at = row * length + (length - 1 if reverse else 0)
        place = shared_like(wide, 16 * thread())
        place[0] = b[at]
        state = place[0]
        out[at] = b[at]
        for _k in range(1, length):
            at += step
            place[0] = a[at]
            place[1] = b[at]
            state = place[0] * state + place[1]
            out[at] = state
    return 0


def with_scales(scales):
    """Write 1, BIG and SMALL to shared memory, where they have the dtype that is computed with."""
    if thread() == 0:
        scales[0] = 1
        scales[1] = BIG
        scales[2] = SMALL
    return 0


def reduced(m, e, scales, scaled):
    """A factor with its m in range."""
    if scaled:
        one, big, small = scales[0], scales[1], scales[2]
        while abs(m) >= big and m * small != m:
            m *= small
            e += 1
        while abs(m) < one and m * big != m:
            m *= big
            e -= 1
    return m, e


def applied(m, e, state, scales, scaled):
    """A factor times a state: out of range only if the result is."""
    if scaled == 0 or e == 0:
        return m * state
    scale = scales[1]
    if e < 0:
        scale = scales[2]
        m *= scale
        e = -1 - e
    state *= m
    while e > 0 and state * scale != state and state == state:
        state *= scale
        e -= 1
    return state


def recurrence_warp(m, e, s, lane, begins, scales, scaled):
    """The joint effect of the parts up to each lane of a warp, its own included; the warp may begin the row."""
    # A bound that the compiler does not know: five copies of what follows would be a lot of code.
    warp = min(threads(), 32)
    distance = 1
    while distance < warp:
        lower = max(lane - distance, 0)
        m_before = shuffle_from(m, lower)
        e_before = shuffle_from(e, lower)
        s_before = shuffle_from(s, lower)
        if lane >= distance:
            if s_before != 0 or (begins and lane < 2 * distance):
                s += applied(m, e, s_before, scales, scaled)
            m, e = reduced(m * m_before, e + e_before, scales, scaled)
        distance *= 2
    return m, e, s


def recurrence_part(factors, terms, size, begins, scales, scaled):
    """The effect of a thread's part of a tile: (m, e, sum); the tile may begin the row."""
    begin = thread() * ITEMS
    first = slot(min(begin, size - 1))
    m, e = reduced(factors[first], 0, scales, scaled)
    s = terms[first]
    for k in range(begin + 1, min(begin + ITEMS, size)):
        at = slot(k)
        s = factors[at] * s + terms[at] if s != 0 or (begins and begin == 0) else terms[at]
        n, f = reduced(factors[at], 0, scales, scaled)
        m, e = reduced(m * n, e + f, scales, scaled)
    return m, e, s


def recurrence_totals(a, b, m_totals, s_totals, e_totals, rows, length, count, reverse, scaled):
    """The effect of each of the `count` tiles of each row; a block for each."""
    tile_size = threads() * ITEMS
    factors = shared_like(m_totals, 0)
    terms = shared_like(m_totals, 8 * slot(tile_size))
    scales = shared_like(m_totals, 16 * slot(tile_size))
    warps = shared_like(m_totals, 16 * slot(tile_size) + 32)
    e_warps = shared_like(e_totals, 16 * slot(tile_size) + 32 + 512)
    row = block() // count
    tile = block() - row * count
    first = tile * tile_size
    size = min(tile_size, length - first)
    start = row * length + (length - 1 - first if reverse else first)
    step = -1 if reverse else 1
    with_scales(scales)
    load_tile(a, factors, start, step, size)
    load_tile(b, terms, start, step, size)
    m, e, s = recurrence_part(factors, terms, size, tile == 0, scales, scaled)
    t = thread()
    m, e, s = recurrence_warp(m, e, s, t & 31, tile == 0 and t < 32, scales, scaled)
    last = (size - 1) // ITEMS
    if t == last or ((t & 31) == 31 and t < last):
        warps[t >> 5] = m
        warps[32 + (t >> 5)] = s
        e_warps[t >> 5] = e
    barrier()
    if t == last:
        m, e, s = warps[0], e_warps[0], warps[32]
        for warp in range(1, (t >> 5) + 1):
            sum_before = s
            s = warps[32 + warp]
            if sum_before != 0 or tile == 0:
                s += applied(warps[warp], e_warps[warp], sum_before, scales, scaled)
            m, e = reduced(m * warps[warp], e + e_warps[warp], scales, scaled)
        m_totals[block()] = m
        s_totals[block()] = s
        e_totals[block()] = e
    return 0


def recurrence_carries(m_totals, s_totals, e_totals, rows, count, scaled):
    """The states after each tile, in place of `s_totals`; a block for each row."""
    scales = shared_like(m_totals, 0)
    warps = shared_like(m_totals, 32)
    e_warps = shared_like(e_totals, 32 + 16 * MOST_WARPS + 8)
    with_scales(scales)
    barrier()
    t = thread()
    at = block() * count
    state = s_totals[at]
    first = 0
    while first < count:
        k = at + min(first + t, count - 1)
        begins = first == 0 and t < 32
        m, e, s = recurrence_warp(m_totals[k], e_totals[k], s_totals[k], t & 31, begins, scales, scaled)
        if t & 31 == 31:
            warps[t >> 5] = m
            warps[MOST_WARPS + (t >> 5)] = s
            e_warps[t >> 5] = e
        barrier()
        some = first > 0
        for warp in range(t >> 5):
            after = warps[MOST_WARPS + warp]
            state = applied(warps[warp], e_warps[warp], state, scales, scaled) + after if some else after
            some = True
        if some:
            s += applied(m, e, state, scales, scaled)
        if t == threads() - 1:
            warps[2 * MOST_WARPS] = s
        if first + t < count:
            s_totals[k] = s
        barrier()
        state = warps[2 * MOST_WARPS]
        first += threads()
    return 0


def recurrence_tiles(a, b, carries, out, e_like, rows, length, count, reverse, scaled):
    """Rows of `count` tiles, a block for each; `carries` are only read if there are several tiles."""
    tile_size = threads() * ITEMS
    factors = shared_like(carries, 0)
    terms = shared_like(carries, 8 * slot(tile_size))
    scales = shared_like(carries, 16 * slot(tile_size))
    warps = shared_like(carries, 16 * slot(tile_size) + 32)
    e_warps = shared_like(e_like, 16 * slot(tile_size) + 32 + 512)
    row = block() // count
    tile = block() - row * count
    first = tile * tile_size
    size = min(tile_size, length - first)
    start = row * length + (length - 1 - first if reverse else first)
    step = -1 if reverse else 1
    with_scales(scales)
    load_tile(a, factors, start, step, size)
    load_tile(b, terms, start, step, size)
    m, e, s = recurrence_part(factors, terms, size, tile == 0, scales, scaled)
    t = thread()
    lane = t & 31
    m, e, s = recurrence_warp(m, e, s, lane, tile == 0 and t < 32, scales, scaled)
    if lane == 31:
        warps[t >> 5] = m
        warps[32 + (t >> 5)] = s
        e_warps[t >> 5] = e
    m, e, s = shuffle_from(m, max(lane - 1, 0)), shuffle_from(e, max(lane - 1, 0)), shuffle_from(s, max(lane - 1, 0))
    barrier()
    # The state before this warp, then before this thread; without one, that of the first element is its term.
    some = tile > 0
    state = s
    if some:
        state = carries[block() - 1]
    for warp in range(t >> 5):
        after = warps[32 + warp]
        state = applied(warps[warp], e_warps[warp], state, scales, scaled) + after if some else after
        some = True
    if lane > 0:
        state = applied(m, e, state, scales, scaled) + s if some else s
        some = True
    begin = t * ITEMS
    if begin < size:
        at = slot(begin)
        state = factors[at] * state + terms[at] if some else terms[at]
        terms[at] = state
        for k in range(begin + 1, min(begin + ITEMS, size)):
            at = slot(k)
            state = factors[at] * state + terms[at]
            terms[at] = state
    barrier()
    return store_tile(terms, out, start, step, size)
