"""The IR of a loop nest, by the emitter that suits it.

In: a `Loop`. Out: its IR. Called by step_tables.py. Maps that read arrays across go in tiles, reductions of short rows
in groups of rows, expensive
functions on short rows as on one long row, searches for a first position until they find it, all others as they are
written.
"""

from __future__ import annotations

from ..loops import Loop
from .emit import Emitter
from .first_positions import FirstPositionEmitter
from .narrow_maps import NarrowEmitter
from .short_rows import ShortRowEmitter
from .tiles import TileEmitter


def emit(loop: Loop) -> str:
    """The IR of a loop nest."""
    if loop.turned:
        return TileEmitter(loop).run()
    if loop.narrow:
        return NarrowEmitter(loop).run()
    if loop.first_position:
        return FirstPositionEmitter(loop).run()
    return (ShortRowEmitter if loop.short_rows else Emitter)(loop).run()
