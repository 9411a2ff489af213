"""Kernels for GPUs that sort long rows by their digits: stable, NaN last, -0.0 and 0.0 as equals.

In:  rows in C order and their length.  Out: positions in each row, or the elements in that order.  Each pass brings a
row into the order of eight bits of its elements and keeps the order of those that are equal in them, from the lowest
bits to the highest (Knuth, The Art of Computer Programming 3, 5.2.5).  Rows are cut into parts, and these into tiles of
`TILE` elements; a block goes through one part.  `count_digits` counts the digits of each part, `sum_counts` adds up,
for each digit, the counts of the parts before, and `move_on`, `move_last` and `move_values` write each element to its
place.  There a warp ranks its elements by the lanes that have the same digit (Merrill and Grimshaw, High Performance
and Scalable Radix Sorting, 2011; Adinets and Merrill, Onesweep, 2022), and the tile leaves shared memory in the order
of digits, so that neighbours are written together.  Who calls: nbgrad/device/kernels/sorts.py.
"""

import numpy as np

from ..device import (
    atomic_add,
    barrier,
    bits_below,
    block,
    first_bit,
    same_byte,
    shared_like,
    shuffle_from,
    thread,
    threads,
)
from ..sort import rank_byte
from .device_scan import sum_warp
from .device_variants import variant

DIGITS = 256
WARPS = 8
"""Of each block, which has a thread for each digit."""
ITEMS = 15
"""Elements of a tile for each thread."""
TILE = DIGITS * ITEMS


def count_digits(x, counts, length, parts, size, shift):
    """How often each digit is in each of the `parts` parts of each row, which have `size` elements."""
    warps = shared_like(counts, 0)
    t = thread()
    row = block() // parts
    part = block() - row * parts
    start = row * length
    end = start + min(part * size + size, length)
    for warp in range(WARPS):
        warps[warp * DIGITS + t] = 0
    barrier()
    own = (t >> 5) * DIGITS
    k = start + part * size + t
    while k + 3 * DIGITS < end:
        a = x[k]
        b = x[k + DIGITS]
        c = x[k + 2 * DIGITS]
        d = x[k + 3 * DIGITS]
        atomic_add(warps, own + rank_byte(a, shift), 1)
        atomic_add(warps, own + rank_byte(b, shift), 1)
        atomic_add(warps, own + rank_byte(c, shift), 1)
        atomic_add(warps, own + rank_byte(d, shift), 1)
        k += 4 * DIGITS
    while k < end:
        atomic_add(warps, own + rank_byte(x[k], shift), 1)
        k += DIGITS
    barrier()
    total = 0
    for warp in range(WARPS):
        total += warps[warp * DIGITS + t]
    counts[(row * DIGITS + t) * parts + part] = total
    return 0


def joined(first, second):
    """The sum of two counts."""
    return np.int32(first + second)


count_warp = variant(sum_warp, "count_warp", joined=joined)


def before_in_block(value, sums, warps):
    """The sum of the values of the threads before this one, and of all; `sums` is shared, an element for each warp."""
    t = thread()
    warp = t >> 5
    until = count_warp(np.int32(value), t & 31)
    if t & 31 == 31:
        sums[warp] = until
    barrier()
    before = until - value
    total = 0
    for k in range(warps):
        if k < warp:
            before += sums[k]
        total += sums[k]
    return before, total


def sum_counts(counts, totals, parts):
    """The counts of the parts before each part in their place, and the total; a block for each digit of each row."""
    sums = shared_like(counts, 0)
    each = (parts + threads() - 1) // threads()
    start = block() * parts
    first = min(thread() * each, parts)
    last = min(first + each, parts)
    own = 0
    for k in range(first, last):
        own += counts[start + k]
    before, total = before_in_block(own, sums, threads() >> 5)
    for k in range(first, last):
        count = counts[start + k]
        counts[start + k] = before
        before += count
    if thread() == 0:
        totals[block()] = total
    return 0


def read_tile(x, held, begin, size):
    """Elements to shared memory, all reads at once; in place of those that a tile has not, the last one over again."""
    t = thread()
    if size == TILE:
        for k in range(ITEMS):
            held[t + k * DIGITS] = x[begin + t + k * DIGITS]
    else:
        for k in range(ITEMS):
            held[t + k * DIGITS] = x[begin + t + min(k * DIGITS, size - 1 - t)]


def read_positions(positions, places, begin, size):
    """Positions to shared memory."""
    t = thread()
    if size == TILE:
        for k in range(ITEMS):
            places[t + k * DIGITS] = positions[begin + t + k * DIGITS]
    else:
        while t < size:
            places[t] = positions[begin + t]
            t += DIGITS


def rank_tile(held, slots, warps, goals, sums, goal, size, shift):
    """Write into `slots` which element of a tile comes where by its digit, into `goals` how far each digit moves.

    `warps` has the counts of digits in each warp; `goal` is where this thread's digit goes, and what comes back is
    where it goes after the tile.  Elements from `size` on, which are none, count as the last.
    """
    t = thread()
    lane = t & 31
    warp = t >> 5
    total = 0
    for k in range(WARPS):
        total += warps[k * DIGITS + t]
    before, _all = before_in_block(total, sums, WARPS)
    goals[t] = goal - before
    for k in range(WARPS):
        count = warps[k * DIGITS + t]
        warps[k * DIGITS + t] = before
        before += count
    barrier()
    slot = warp * 32 * ITEMS + lane
    for _k in range(ITEMS):
        digit = rank_byte(held[slot], shift)
        digit = digit if slot < size else DIGITS - 1
        lanes = same_byte(digit)
        rank = bits_below(lanes, lane)
        place = np.int32(0)
        if rank == 0:
            place = atomic_add(warps, warp * DIGITS + digit, bits_below(lanes, 32))
        # The first of the lanes has added for all.
        place = shuffle_from(place, first_bit(lanes))
        slots[place + rank] = slot
        slot += 32
    barrier()
    return goal + total


def move_on(x, positions, counts, totals, keys, new_positions, short, length, parts, size, shift, tile_bytes, first):
    """A pass that another one follows: elements and positions, in 32 bits, in the order of a digit."""
    sizes = length, parts, size, tile_bytes
    return move(x, positions, counts, totals, keys, new_positions, short, sizes, shift, first, True, True)


def move_last(x, positions, counts, totals, out, short, length, parts, size, shift, tile_bytes, first):
    """The last pass: positions in the order of a digit."""
    sizes = length, parts, size, tile_bytes
    return move(x, positions, counts, totals, x, out, short, sizes, shift, first, False, True)


def move_values(x, counts, totals, out, short, length, parts, size, shift, tile_bytes):
    """A pass without positions: elements in the order of a digit."""
    sizes = length, parts, size, tile_bytes
    return move(x, counts, counts, totals, out, counts, short, sizes, shift, True, True, False)


def move(x, positions, counts, totals, keys, new_positions, short, sizes, shift, first, keep, place):
    """Write each element of a part, if `keep`, and its position, if `place`, to where it comes in the order of a digit.

    In the `first` pass elements have their own positions.  `short` is any pointer to int16; `sizes` are the length of a
    row, its parts, the elements of a part, and the bytes of a tile's elements.
    """
    length, parts, size, tile_bytes = sizes
    indices_at = tile_bytes + 4 * TILE if place else tile_bytes
    counts_at = indices_at + 2 * TILE
    held = shared_like(x, 0)
    places = shared_like(counts, tile_bytes)
    slots = shared_like(short, indices_at)
    warps = shared_like(counts, counts_at)
    goals = shared_like(counts, counts_at + 4 * DIGITS * WARPS)
    sums = shared_like(counts, counts_at + 4 * DIGITS * (WARPS + 1))
    t = thread()
    row = block() // parts
    part = block() - row * parts
    start = row * length
    end = min(part * size + size, length)
    before, _all = before_in_block(totals[row * DIGITS + t], sums, WARPS)
    goal = before + counts[(row * DIGITS + t) * parts + part]
    own = (t >> 5) * 32 * ITEMS + (t & 31)
    begin = part * size
    while begin < end:
        here = min(TILE, end - begin)
        for k in range(WARPS):
            warps[k * DIGITS + t] = 0
        read_tile(x, held, start + begin, here)
        if not first:
            read_positions(positions, places, start + begin, here)
        barrier()
        for k in range(ITEMS):
            digit = rank_byte(held[own + 32 * k], shift)
            digit = digit if 32 * k < here - own else DIGITS - 1
            atomic_add(warps, (t >> 5) * DIGITS + digit, 1)
        barrier()
        goal = rank_tile(held, slots, warps, goals, sums, goal, here, shift)
        k = t
        while k < here:
            slot = slots[k] + 0
            key = held[slot]
            to = start + goals[rank_byte(key, shift)] + k
            if keep:
                keys[to] = key
            if place:
                new_positions[to] = begin + slot if first else places[slot]
            k += DIGITS
        barrier()
        begin += TILE
    return 0
