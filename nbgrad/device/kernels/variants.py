"""The number of points that a thread does at once.

In: a `Loop`. Out: a `Variant`. Called by grid_loops.py and row_passes.py. As many as 16 bytes hold, where every array
is laid out for it: then a warp reads 512 bytes with one instruction.
"""

from __future__ import annotations

import math

import numpy as np

from ...compiler.loops import Loop
from .emitter import LINEAR_LIMIT, Variant, weight

THREADS = 256
"""Of a block."""
HEAVY_THREADS = 128
"""Of a block whose threads have many registers: more of these blocks fit, and each one ends earlier."""
HEAVY = 192
"""Weight of the operations of such a thread, more than this."""
VECTOR_BYTES = 16
MOST_AT_ONCE = 8
HEAVIEST = 352
HEAVIEST_DOUBLE = 192
"""Weight of the operations that a thread does in one step; heavier points are done fewer at a time.

One of float64 takes twice the registers, and many more instructions. On an H200, the five greeks of an option take
1.01 ms with two points at a time, 1.10 with four (93 registers, twice the code to compile) and 1.19 with one.
"""


def threads_of(loop: Loop, variant: Variant) -> int:
    """The threads of a block that only stores."""
    return HEAVY_THREADS if variant.vector * weight(loop) > HEAVY else THREADS


def variant_of(loop: Loop, group: int = 1, split: bool = False, rows: bool = False) -> Variant:
    """The division of a loop's points among threads; `rows`: points done at once never cross the first axis."""
    wide = math.prod(loop.shape) >= LINEAR_LIMIT
    plain = Variant(1, False, wide, group, split)
    along = [a for p, a in enumerate(loop.accesses) if a.kind == "c" and a.buffer >= 0 and p not in loop.gathered]
    if not along or not loop.together or loop.is_single or (rows and len(loop.shape) == 1):
        return plain
    vector = min(MOST_AT_ONCE, VECTOR_BYTES // max(access.dtype.itemsize for access in along))
    most = HEAVIEST_DOUBLE if any(value.dtype.num == np.dtype(np.float64).num for value in loop.values) else HEAVIEST
    while vector > 1 and vector * weight(loop) > most:
        vector //= 2
    aligned = all(
        stride % vector == 0 for access in along for stride in (*access.view.strides[:-1], access.view.offset)
    )
    tail = loop.shape[-1] % vector != 0
    if vector == 1 or not aligned or loop.shape[-1] < vector or (tail and len(loop.shape) > 1):
        return plain
    return Variant(vector, tail, wide, group, split)
