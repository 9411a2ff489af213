"""Kernel for GPUs: copies in which another axis is the innermost one.

In:  a pointer to what is read, neighbours along one axis side by side, the extents and strides.  Out: the same
elements, neighbours along another axis side by side.  Tiles of 32 by 32 elements go through shared memory, so that both
sides are in order.  Who calls: nbgrad/device/kernels/transposes.py.
"""

from ..device import barrier, block, shared_like, thread, threads

PITCH = 33


def transpose(
    x, out, read, written, read_step, written_step, tiles_read, tiles_written, inner,
    outer_read, outer_written, inner_read, inner_written,
):  # fmt: skip
    """`read` and `written` are the extents of the axes along which memory is read and written in order; `read_step` is
    how far apart elements that are written side by side are read, and the other way round. Around them are two more
    axes, the inner one of extent `inner`."""
    place = shared_like(x, 0)
    rest = block() // tiles_read
    p = (block() - rest * tiles_read) * 32
    above = rest // tiles_written
    q = (rest - above * tiles_written) * 32
    outer = above // inner
    within = above - outer * inner
    source = outer * outer_read + within * inner_read + p + q * read_step
    target = outer * outer_written + within * inner_written + p * written_step + q
    lane = thread() & 31
    step = threads() >> 5
    k = thread() >> 5
    while k < 32:
        if p + lane < read and q + k < written:
            place[k * PITCH + lane] = x[source + k * read_step + lane]
        k += step
    barrier()
    k = thread() >> 5
    while k < 32:
        if p + k < read and q + lane < written:
            out[target + k * written_step + lane] = place[lane * PITCH + k]
        k += step
    return 0
