"""The table of primitives: every operation that a graph can hold, with all that is known of it.

In: the rows of each family. Out: `PRIMITIVES`, by name; the set is closed, and everything else that users call is
composed from it. Called by everything that looks a primitive up.
"""

from __future__ import annotations

from .elementwise_rows import ANY_UNARY, BINARY, CHOICES, COMPARISON, CONVERSIONS, FLOAT_UNARY
from .ir import PRIMITIVES
from .loops.loop_rows import LOOPS
from .matrix_rows import MATRICES
from .movement_rows import GATHER, MOVEMENTS, POSITIONS
from .reduction_rows import REDUCTIONS, SCANS
from .source_rows import CALLS, SOURCES, WRAPPERS
from .window_rows import WINDOWS

__all__ = ["ANY_UNARY", "BINARY", "COMPARISON", "FLOAT_UNARY", "PRIMITIVES"]

for _rows in (
    SOURCES,
    # ----- Elementwise: all operands have one shape -----
    FLOAT_UNARY,
    ANY_UNARY,
    BINARY,
    COMPARISON,
    CHOICES,
    WRAPPERS,
    CONVERSIONS,
    GATHER,
    # ----- Index maps -----
    MOVEMENTS,
    # ----- Reductions over a set of axes, which disappear -----
    REDUCTIONS,
    # ----- Kernels of their own -----
    SCANS,
    POSITIONS,
    MATRICES,
    WINDOWS,
    CALLS,
    LOOPS,
):
    PRIMITIVES.update(_rows)
