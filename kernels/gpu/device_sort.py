"""Kernels for GPUs that sort: the positions that bring rows into order, equal elements as they were, NaN last.

In:  rows in C order and their length.  Out: positions in each row, and the elements in that order where another pass
follows.  `sort_tiles` sorts tiles of `TILE` elements; a tile has several rows if they are short.  `merge_runs` merges
pairs of sorted runs of `width` elements: each block finds the part of both that is its tile of the result (Green,
McColl and Bader, GPU Merge Path, 2012).  In shared memory, each element finds its place by counting those of the other
run that come before it.  Who calls: nbgrad/device/kernels/sorts.py.
"""

from ..device import barrier, block, shared_like, thread, threads

TILE = 1024
"""Elements that a block sorts, or merges, at once."""


def comes_before(p, q):
    """Whether p must come before q: it is smaller, or only q is NaN."""
    return p < q or (q != q and p == p)


def how_many_before(keys, low, high, key):
    """How many of the sorted elements from `low` to `high` must come before a key."""
    start = low
    while low < high:
        middle = (low + high) >> 1
        if comes_before(keys[middle], key):
            low = middle + 1
        else:
            high = middle
    return low - start


def how_many_not_after(keys, low, high, key):
    """How many of the sorted elements from `low` to `high` need not come after a key."""
    start = low
    while low < high:
        middle = (low + high) >> 1
        if comes_before(key, keys[middle]):
            high = middle
        else:
            low = middle + 1
    return low - start


def sort_tiles(x, out, keys, rows, length, tiles, shift, keep):
    """Sort tiles.  A row has `tiles` of them, or a tile has rows that are 2 ** shift apart; `keep` the elements too."""
    old_keys, new_keys = shared_like(x, 0), shared_like(x, 8 * TILE)
    old, new = shared_like(out, 16 * TILE), shared_like(out, 24 * TILE)
    span = 1 << shift
    each = TILE >> shift
    group = block() // tiles
    first = (block() - group * tiles) * TILE
    size = min(span, length - first)
    here = min(each, rows - group * each)
    start = group * each * length + first
    t = thread()
    k = t
    while k < TILE:
        row = k >> shift
        at = k & (span - 1)
        if row < here and at < size:
            old_keys[k] = x[start + row * length + at]
            old[k] = first + at
        k += threads()
    barrier()
    width = 1
    while width < size:
        k = t
        while k < TILE:
            row = k >> shift
            at = k & (span - 1)
            if row < here and at < size:
                base = row << shift
                low = at & ~(2 * width - 1)
                middle = min(low + width, size)
                high = min(low + 2 * width, size)
                key = old_keys[k]
                goal = base + at
                if at < middle:
                    goal += how_many_before(old_keys, base + middle, base + high, key)
                else:
                    goal += low - middle + how_many_not_after(old_keys, base + low, base + middle, key)
                new_keys[goal] = key
                new[goal] = old[k]
            k += threads()
        barrier()
        old_keys, new_keys = new_keys, old_keys
        old, new = new, old
        width *= 2
    k = t
    while k < TILE:
        row = k >> shift
        at = k & (span - 1)
        if row < here and at < size:
            out[start + row * length + at] = old[k]
            if keep:
                keys[start + row * length + at] = old_keys[k]
        k += threads()
    return 0


def taken_from_left(keys, low, middle, high, wanted):
    """How many of the first `wanted` elements of two merged runs come from the left one."""
    least = max(0, wanted - (high - middle))
    most = min(wanted, middle - low)
    while least < most:
        k = (least + most) >> 1
        if comes_before(keys[middle + wanted - 1 - k], keys[low + k]):
            most = k
        else:
            least = k + 1
    return least


def merge_runs(keys, positions, new_keys, new_positions, length, tiles, width, keep):
    """Merge pairs of runs of `width` elements; a block for each of the `tiles` tiles of each row."""
    here = shared_like(keys, 0)
    splits = shared_like(positions, 8 * TILE)
    row = block() // tiles
    base = row * length
    begin = (block() - row * tiles) * TILE
    end = min(begin + TILE, length)
    low = begin & ~(2 * width - 1)
    middle = min(low + width, length)
    high = min(low + 2 * width, length)
    t = thread()
    if t == 0 or t == 32:
        wanted = begin - low if t == 0 else end - low
        splits[t >> 5] = taken_from_left(keys, base + low, base + middle, base + high, wanted)
    barrier()
    left = splits[0]
    right = begin - low - left
    lefts = splits[1] - left
    count = end - begin
    left += base + low
    right += base + middle
    k = t
    while k < count:
        here[k] = keys[left + k] if k < lefts else keys[right + k - lefts]
        k += threads()
    barrier()
    k = t
    while k < count:
        key = here[k]
        if k < lefts:
            place = k + how_many_before(here, lefts, count, key)
            position = positions[left + k]
        else:
            place = k - lefts + how_many_not_after(here, 0, lefts, key)
            position = positions[right + k - lefts]
        new_positions[base + begin + place] = position
        if keep:
            new_keys[base + begin + place] = key
        k += threads()
    return 0
