"""How a convolution is cut for the CPU: pieces of images, planes with zeros around, tables of taps.

In: a node of window_rows.py that convolves. Out: the integers that kernels/convolution.py is called with, the number of
its pieces, and the bytes of its scratch memory. Called by special.py. The cut follows from shapes and the registers of
the CPU alone, so that sums are the same for any number of threads.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from ..graph.ir import Node
from ..graph.shapes import Shape
from . import cache
from .register_tiles import KINDS, Registers, registers

PIECE_BYTES = 384 * 1024
"""Memory of a piece: the second cache holds it, and the weights that go through."""
LONGEST_SUM = 576
"""Products in one sum; the terms of longer ones are summed by blocks of channels."""
FEWEST_PIECES = 4
MOST_OUTPUTS = 64
"""Outputs of a piece; more of them are another piece, with planes of its own."""
SINGLE_ROW = 9
"""Vectors of a tile with one row: the taps of a filter of 3 x 3."""
LENGTH_BYTES = 16 * 1024
"""Cotangents in a tile of a filter's cotangent, which stay in the first cache while pixels go by."""


class Axis(NamedTuple):
    """One spatial axis of a convolution, as a sum over taps at distances on planes.

    Parameters
    ----------
    step, remainders, shift : int
        Element `a` of the plane for a remainder `i` is the pixel `a * step + i - shift`.
    extent : int
        Points at which sums are formed.
    reach : int
        The farthest tap.
    out_step : int
        Distance of the outputs of one phase.
    phases : tuple
        First output, points from and to which outputs are kept, and taps: number, remainder, distance.
    shared : int
        Zeros at the end that can be those at the beginning of what follows.
    """

    step: int
    remainders: int
    shift: int
    extent: int
    reach: int
    out_step: int
    phases: tuple[tuple[int, int, int, tuple[tuple[int, int, int], ...]], ...]
    shared: int


def axis_of(windows: tuple[int, int, int, int, int, int], transposed: bool) -> Axis:
    """One axis of a convolution from `size` pixels to `count` windows, or of its transpose."""
    kernel, stride, dilation, before, count, size = windows
    places = [(k, *divmod(k * dilation, stride)) for k in range(kernel)]
    reach = max(distance for _, distance, _ in places)
    if not transposed:
        remainders = max(remainder for _, _, remainder in places) + 1
        taps = tuple([(k, remainder, distance) for k, distance, remainder in places])
        phases = [(0, 0, count, taps)]
        step, shift, extent, out_step, pixels = stride, before, count, 1, size
    else:
        ranges = [(-((r - before) // stride), -((r - before - size) // stride)) for r in range(stride)]
        lowest = min(low for low, high in ranges if low < high)
        extent = max(high for low, high in ranges if low < high) - lowest
        phases = [
            (
                stride * lowest + r - before,
                low - lowest,
                high - lowest,
                tuple([(k, 0, reach - distance) for k, distance, remainder in places if remainder == r]),
            )
            for r, (low, high) in enumerate(ranges)
            if low < high
        ]
        step, remainders, shift, out_step, pixels = 1, 1, reach - lowest, stride, count
    zeros = [reach]
    for i in range(remainders):
        first = max(0, -((i - shift) // step))
        behind = max(0, -((i - shift - pixels) // step))
        zeros += [first, max(0, extent + reach - behind)]
    return Axis(step, remainders, shift, extent, reach, out_step, tuple(phases), min(zeros))


class Cut(NamedTuple):
    """The integers of a kernel's call, its pieces, and the elements of its scratch memory."""

    sizes: list[int]
    pieces: int
    workspace: int


def tile_of(node: Node) -> Registers:
    """The tile of registers for a node, with no more rows than its outputs fill."""
    found = registers(node.dtype.name, cache.cpu_features())
    # One row of sums, for channels that are convolved each for itself, is as long as to hide what a multiply-add takes.
    return found._replace(rows=1, vectors=SINGLE_ROW) if _shapes(node)[1][1] <= node.params[6] else found


def cut(node: Node) -> Cut:
    """How a node's work is cut."""
    return _cut(node.name, node.params, *_shapes(node), node.dtype.name, tile_of(node))


def _shapes(node: Node) -> tuple[Shape, Shape]:
    """The shapes of the images that are read, and of those that are computed or stand for the outputs."""
    outputs = node.inputs[1] if node.name == "convolve_filters" else node
    return node.inputs[0].shape, outputs.shape


@lru_cache(1024)
def _cut(name: str, params: tuple[Any, ...], images: Shape, outputs: Shape, dtype: str, tile: Registers) -> Cut:
    *windows, groups = params
    transposed = name == "convolve_transposed"
    vertical, horizontal = [axis_of(tuple([pair[k] for pair in windows]), transposed) for k in range(2)]
    count, depth, produced = images[0], images[1] // groups, outputs[1] // groups
    kh, kw = params[0]
    taps = kh * kw
    remainders = vertical.remainders * horizontal.remainders
    phases = [(v, h) for v in vertical.phases for h in horizontal.phases]
    wide, size = tile.vectors * tile.lanes, KINDS[dtype][1]
    budget = PIECE_BYTES // size
    pitch = horizontal.extent + horizontal.reach - horizontal.shared
    filters = name == "convolve_filters"
    share = _even(produced, MOST_OUTPUTS, tile.rows)
    shares = -(-produced // share)
    padded = -(-share // tile.rows) * tile.rows
    block = _even(depth, max(1, LONGEST_SUM // taps))
    if filters:
        block = _even(depth, min(block, max(1, depth * shares * groups // FEWEST_PIECES)))
        lines = max(1, LENGTH_BYTES // (size * tile.rows * pitch))
    else:
        # Elements of planes and sums for one pixel.
        lines = max(1, budget // ((block * remainders + padded * len(phases)) * pitch))
    spacing = vertical.extent + vertical.reach - vertical.shared
    most, band = 1, vertical.extent
    if lines >= spacing:
        most = min(count, lines // spacing)
        if not filters:
            most = min(most, max(1, -(-count * groups * shares // FEWEST_PIECES)))
        most = _even(count, most)
    elif lines < vertical.extent:
        band = _even(vertical.extent, max(lines - vertical.reach, min(4, lines)))
    if band < vertical.extent:
        spacing = band + vertical.reach
    used = ((most - 1) * spacing + band) * pitch
    length = _apart(-(-used // wide) * wide, size)
    farthest = vertical.reach * pitch + horizontal.reach
    plane = _apart(max(length + farthest, ((most - 1) * spacing + band + vertical.reach) * pitch), size)
    parts = -(-count // most) * -(-vertical.extent // band)
    head = [count, groups, depth, produced, *images[2:], *outputs[2:]]
    head += [vertical.step, horizontal.step, vertical.shift, horizontal.shift, vertical.out_step, horizontal.out_step]
    head += [vertical.remainders, horizontal.remainders, vertical.extent, horizontal.extent, pitch, spacing]
    head += [most, band, block, plane, share, tile.rows, tile.lanes, tile.vectors, length]

    def offset(one: tuple[int, int, int], other: tuple[int, int, int]) -> int:
        return (one[1] * horizontal.remainders + other[1]) * plane + one[2] * pitch + other[2]

    if filters:
        ((_, _, _, down), (_, _, _, right)) = phases[0]
        offsets = [c * remainders * plane + offset(one, other) for c in range(block) for one in down for other in right]
        offsets += offsets[-1:] * (-len(offsets) % tile.vectors)
        one = -(-tile.rows * tile.vectors // tile.lanes) * tile.lanes
        sums = padded // tile.rows * len(offsets) // tile.vectors * one
        workspace = block * remainders * plane + padded * length + sums
        return Cut([*head, taps, 0, 0, 1, *offsets], groups * -(-depth // block) * shares, workspace)
    strides = [taps, produced * taps, depth * produced * taps]
    if name == "convolve":
        strides = [depth * taps, taps, produced * depth * taps]
    table: list[int] = []
    for (first, top, bottom, down), (left, low, high, right) in phases:
        table += [first, left, top, bottom, low, high, len(down) * len(right)]
        table += [offset(one, other) for one in down for other in right]
        table += [one[0] * kw + other[0] for one in down for other in right]
    workspace = block * remainders * plane + len(phases) * padded * length + block * taps * tile.rows
    return Cut([*head, *strides, len(phases), *table], groups * parts * shares, workspace)


def _even(whole: int, most: int, unit: int = 1) -> int:
    """The length of equal parts of at most a length, the last of which may be smaller."""
    part = -(-whole // -(-whole // max(1, most)))
    return min(whole, -(-part // unit) * unit)


def _apart(length: int, size: int) -> int:
    """At least a length, such that many of them do not lie at the same places of the cache."""
    line = 64 // size
    lines = -(-length // line)
    return (lines + (lines % 2 == 0)) * line
