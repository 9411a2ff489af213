"""The number of points that a thread does at once.

In: a `Loop`. Out: a `Variant`. Called by grid_loops.py and row_passes.py. As many as 16 bytes hold, where every array
is laid out for it: then a warp reads 512 bytes with one instruction.
"""

from __future__ import annotations

import math

from ...compiler.loops import Loop
from .emitter import LINEAR_LIMIT, Variant, weight

THREADS = 256
"""Of a block."""
VECTOR_BYTES = 16
MOST_AT_ONCE = 8
HEAVIEST = 704
"""Weight of the operations that a thread does in one step; heavier points are done fewer at a time."""


def variant_of(loop: Loop, group: int = 1, split: bool = False, rows: bool = False) -> Variant:
    """The division of a loop's points among threads; `rows`: points done at once never cross the first axis."""
    wide = math.prod(loop.shape) >= LINEAR_LIMIT
    plain = Variant(1, False, wide, group, split)
    along = [a for p, a in enumerate(loop.accesses) if a.kind == "c" and a.buffer >= 0 and p not in loop.gathered]
    if not along or loop.is_single or (rows and len(loop.shape) == 1):
        return plain
    vector = min(MOST_AT_ONCE, VECTOR_BYTES // max(access.dtype.itemsize for access in along))
    while vector > 1 and vector * weight(loop) > HEAVIEST:
        vector //= 2
    aligned = all(
        stride % vector == 0 for access in along for stride in (*access.view.strides[:-1], access.view.offset)
    )
    tail = loop.shape[-1] % vector != 0
    if vector == 1 or not aligned or loop.shape[-1] < vector or (tail and len(loop.shape) > 1):
        return plain
    return Variant(vector, tail, wide, group, split)
