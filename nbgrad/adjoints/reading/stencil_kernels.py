"""Functions of `numba.stencil` as kernels: loops over all points that have all their neighbours.

In: a stencil, and Numba's types of its arguments. Out: an ordinary kernel in plain loops. Called by
kernel_expressions.py and numba_types.py. The text of a point is the stencil's own, with the point's position added to
the indices; the border gets the stencil's `cval`, as in Numba.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...extend.scalar_code import ScalarCode
from ..kernel_text import function_of
from .plain_form import UnsupportedKernelError

_MADE: dict[tuple[Any, ...], Any] = {}


def is_stencil(function: Any) -> bool:
    """Whether an object is a function of `numba.stencil`."""
    return type(function).__module__ == "numba.stencils.stencil" and hasattr(function, "kernel_ir")


def stencil_kernel(
    stencil: Any, kinds: Sequence[Any], writes: bool, dtype_of: Callable[[Any, Sequence[Any]], str]
) -> Any:
    """The kernel that computes a stencil of arguments of some types.

    Parameters
    ----------
    stencil : object
        A function of `numba.stencil`.
    kinds : sequence of object
        Numba's types of its arguments.
    writes : bool
        Whether it is called with `out=`; the kernel then takes one more argument.
    dtype_of : callable
        `dtype_of(function, kinds)` is the dtype of what a function of numbers gives.
    """
    key = (stencil, writes, *kinds)
    if key in _MADE:
        return _MADE[key]
    import numba

    code = ScalarCode(stencil.kernel_ir.func_id.func)
    ndim = kinds[0].ndim
    places = [f"at_{axis}" for axis in range(ndim)]
    fixed = stencil.options.get("standard_indexing", ())
    arguments = [one.arg for one in code.definition.args.args]
    point = _Point([one for one in arguments if one not in fixed], places, code)
    definition = copy.deepcopy(code.definition)
    assert isinstance(definition, ast.FunctionDef)
    definition.decorator_list = []
    definition.name = f"{code.name}_at"
    definition.args.args += [ast.arg(one) for one in places]
    definition = ast.fix_missing_locations(point.visit(definition))
    lookup = {name: code.lookup(name) for name in code.function.__code__.co_freevars}
    at = numba.njit(
        function_of(definition.name, ast.unparse(definition) + "\n", {**code.function.__globals__, **lookup})
    )
    near = stencil.neighborhood or point.neighborhood()
    given = ", ".join([*arguments, *places])
    first = arguments[0]
    lines = [f"def {code.name}({', '.join([*arguments, *(['out'] if writes else [])])}):"]
    if not writes:
        dtype = dtype_of(at, [*kinds, *[numba.int64] * ndim])
        lines.append(f"    out = np.full({first}.shape, {stencil.options.get('cval', 0)!r}, np.{dtype})")
    elif "cval" in stencil.options:
        lines.append(f"    out[...] = {stencil.options['cval']!r}")
    for axis, (low, high) in enumerate(near):
        bounds = f"{max(0, -low)}, {first}.shape[{axis}] - {max(0, high)}"
        lines.append(f"    {'    ' * axis}for {places[axis]} in range({bounds}):")
    lines.append(f"    {'    ' * ndim}out[{', '.join(places)}] = {definition.name}({given})")
    lines.append("    return out")
    made = numba.njit(function_of(code.name, "\n".join(lines) + "\n", {"np": np, definition.name: at}))
    _MADE[key] = made
    return made


class _Point(ast.NodeTransformer):
    """Adds the position of a point to the indices of arrays."""

    def __init__(self, arrays: Sequence[str], places: Sequence[str], code: ScalarCode) -> None:
        self.arrays, self.places, self.code = arrays, places, code
        self.seen: list[list[int | None]] = []

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """An index of an array that is relative to the point."""
        self.generic_visit(node)
        if not isinstance(node.value, ast.Name) or node.value.id not in self.arrays:
            return node
        given = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if len(given) != len(self.places):
            message = f"{self.code.place(node)} takes a part of an array with other axes than the stencil's first one."
            raise UnsupportedKernelError(message)
        self.seen.append([_number(one) for one in given])
        moved: list[ast.expr] = [
            ast.BinOp(ast.Name(place, ast.Load()), ast.Add(), one)
            for place, one in zip(self.places, given, strict=True)
        ]
        node.slice = moved[0] if len(moved) == 1 else ast.Tuple(moved, ast.Load())
        return node

    def neighborhood(self) -> list[tuple[int, int]]:
        """The smallest and the largest offset along each axis."""
        found: list[tuple[int, int]] = []
        for offsets in zip(*self.seen, strict=True):
            known = [one for one in offsets if one is not None]
            if len(known) < len(offsets):
                message = (
                    f"{self.code.place(self.code.definition)} has indices that are no literals. Pass neighborhood."
                )
                raise UnsupportedKernelError(message)
            found.append((min(known), max(known)))
        return found


def _number(node: ast.expr) -> int | None:
    """The value of a literal integer; None for other expressions."""
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if isinstance(value, int) else None
