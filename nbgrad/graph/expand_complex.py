"""Primitives on complex nodes: each becomes a graph of real ones, or a function with a derivative of its own.

In: a primitive's name and complex nodes. Out: a node. `ir.make` is told of it when `nbgrad.graph` is imported, and
calls it wherever a primitive meets a complex operand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..errors import DtypeError
from . import ir
from .complex_numbers import COMPLEX, EXPANSIONS, PART_OF, Expansion
from .ir import Node, Params

KEPT = frozenset(["alias", "custom", "host", "input", "constant"])
"""Primitives whose nodes are complex themselves."""


def _functions() -> Mapping[str, Expansion]:
    """The expansions of holomorphic.py, imported at their first use."""
    from .holomorphic import FUNCTIONS

    return FUNCTIONS


def expand(name: str, inputs: Sequence[Node], params: Params) -> Node:
    """A primitive applied to complex nodes.

    Raises
    ------
    DtypeError
        If it is not defined for complex numbers.
    """
    expansion = EXPANSIONS.get(name) or _functions().get(name)
    if expansion is None:
        message = f"{name} is not defined for complex numbers. Apply it to x.real, x.imag or np.abs(x)."
        raise DtypeError(message)
    return expansion(tuple(inputs), params)


def complex_literal(value: complex, dtype: np.dtype) -> Node:
    """A complex number baked into the program."""
    re, im = (ir.literal(float(part), PART_OF[dtype]) for part in (value.real, value.imag))
    return Node(COMPLEX, (re, im), (), (), dtype)


ir.install_complex(KEPT, expand, complex_literal)
