"""The derivatives of operations on numbers, from nbgrad's one table of derivatives, as statements.

In: an operation, the name of its result, and a cotangent or tangents. Out: statements, and the atoms of what the
operands get. Called by reverse.py and tangent.py. A rule is asked once for each primitive and each combination of
literal operands: it is recorded as a graph of numbers, simplified, and written with the names of the kernel.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..extend.numba_source import ANY, FLOATS, number_text
from ..graph.differentiate import jvp, vjp
from ..graph.ir import Node, elementwise, literal, literal_value, placeholder, topological
from ..graph.simplify import simplify
from .kernel_statements import UNKNOWN, Atom, Op, Set, Statement, is_name

_F64 = np.dtype(np.float64)
_COMPOSED: dict[str, Callable[..., Node]] = {
    "square": lambda x: x * x,
    "reciprocal": lambda x: elementwise("divide", 1.0, x),
    "degrees": lambda x: x * (180.0 / np.pi),
    "radians": lambda x: x * (np.pi / 180.0),
}
_TRUTHS = frozenset(ANY) - {"select"} | {"isnan", "isinf", "isfinite", "signbit"}
TEXTS = {**FLOATS, **ANY, "power": "{0} ** {1}", "select": "({1} if {0} else {2})", "alias": "{0}"}


_ROOTS = {
    0.5: "math.sqrt({0})",
    1.5: "{0} * math.sqrt({0})",
    -0.5: "1.0 / math.sqrt({0} + 0.0)",
    -1.5: "1.0 / ({0} * math.sqrt({0} + 0.0))",
}
"""Powers by roots; `+ 0.0` makes of a negative zero, whose power is infinite, a positive one."""
_MOST_PRODUCTS = 64


def _power(node: Node) -> str:
    """The text of a power without the general function, which is slow; empty where it takes that."""
    if node.name != "power" or node.inputs[1].name != "literal":
        return ""
    exponent = float(literal_value(node.inputs[1]))
    if exponent.is_integer() and abs(exponent) <= _MOST_PRODUCTS:
        return f"{{0}} ** {int(exponent)}"
    return _ROOTS.get(exponent, "")


@functools.lru_cache(maxsize=4096)
def _rule(name: str, given: tuple[float | None, ...], forward: bool) -> tuple[Any, ...]:
    """The nodes of the operands, the result, the cotangent or the tangents, and of what each operand gives or gets."""
    operands = [placeholder((), _F64) if one is None else literal(one, _F64) for one in given]
    result = _COMPOSED[name](*operands) if name in _COMPOSED else elementwise(name, *operands)
    free = [node for node, one in zip(operands, given, strict=True) if one is None]
    if forward:
        seeds = [placeholder((), _F64) for _ in free]
        found: list[Node | None] = []
        for node, seed in zip(free, seeds, strict=True):
            found += jvp([result], [node], [seed])
    else:
        seeds = [placeholder((), _F64)]
        found = vjp([result], seeds, free)
    kept = [node for node in found if node is not None]
    simple = iter(simplify(kept)) if kept else iter(())
    return operands, result, seeds, [None if node is None else next(simple) for node in found]


def operand_value(atom: Atom) -> float | None:
    """The value of a literal operand; None for a name."""
    if is_name(atom) or atom.startswith(("math.", "-math.", "np.")):
        return None
    return float(eval(atom, {"__builtins__": {}}, {"True": True, "False": False}))


class Partials:
    """Writes derivatives of operations as statements; `fresh(dtype)` gives names for numbers."""

    def __init__(self, fresh: Callable[[str], str]) -> None:
        self.fresh = fresh

    def cotangents(
        self, op: Op, result: Atom, g: Atom, wanted: Sequence[bool], out: list[Statement]
    ) -> list[Atom | None]:
        """The cotangent of each wanted operand, given that of the result, `g`; None for zero."""
        if op.name == "alias":
            return [g if wanted[0] else None]
        if op.name == "select":
            sides: list[Atom | None] = [None, None, None]
            for k, text in ((1, "{0} if {1} else 0.0"), (2, "0.0 if {1} else {0}")):
                if wanted[k]:
                    sides[k] = self.named(Op("select", (g, op.args[0]), text), out)
            return sides
        operands, node, (seed,), found = _rule(op.name, self.literals(op), False)
        return self.written(op, result, operands, node, {seed: g}, found, wanted, out)

    def tangents(
        self, op: Op, result: Atom, tangents: Sequence[Atom | None], out: list[Statement]
    ) -> list[Atom | None]:
        """The part of the result's tangent that comes from the tangent of each operand."""
        if op.name == "alias":
            return [tangents[0]]
        if op.name == "select":
            test = op.args[0]
            return [self.named(Op("select", (test, tangents[1] or "0.0", tangents[2] or "0.0"), TEXTS["select"]), out)]
        operands, node, seeds, found = _rule(op.name, self.literals(op), True)
        free = [k for k, one in enumerate(self.literals(op)) if one is None]
        names = {seed: tangents[k] or "0.0" for seed, k in zip(seeds, free, strict=True)}
        wanted = [one is not None for one in tangents]
        return self.written(op, result, operands, node, names, found, wanted, out)

    def literals(self, op: Op) -> tuple[float | None, ...]:
        """The values of the literal operands."""
        assert op.name != UNKNOWN
        return tuple([operand_value(one) for one in op.args])

    def named(self, op: Op, out: list[Statement]) -> Atom:
        """A name for the result of an operation."""
        name = self.fresh("bool" if op.name in _TRUTHS else "float64")
        out.append(Set(name, op))
        return name

    def written(
        self,
        op: Op,
        result: Atom,
        operands: Sequence[Node],
        node: Node,
        names: dict[Node, Atom],
        found: Sequence[Node | None],
        wanted: Sequence[bool],
        out: list[Statement],
    ) -> list[Atom | None]:
        """Nodes as statements; for each operand the atom of its own."""
        texts: dict[Node, Atom] = {node: result, **names}
        texts.update(zip(operands, op.args, strict=True))
        free = iter(found)
        chosen: list[Atom | None] = []
        for value, asked in zip(self.literals(op), wanted, strict=True):
            node_of = None if value is not None else next(free)
            if node_of is None or not asked:
                chosen.append(None)
                continue
            chosen.append(self.atom(node_of, texts, out))
        return chosen

    def atom(self, node: Node, texts: dict[Node, Atom], out: list[Statement]) -> Atom:
        """The atom of a node, after statements that compute it."""
        for one in topological([node], texts):
            if one in texts:
                continue
            if one.name == "literal":
                texts[one] = number_text(literal_value(one), one.dtype)
            elif one.name in ("select", "logical_and") and texts[one.inputs[0]] == "False":
                texts[one] = texts[one.inputs[2]] if one.name == "select" else "False"
            elif one.name == "logical_and" and texts[one.inputs[1]] == "False":
                texts[one] = "False"
            elif one.name == "rsqrt":
                # The root is mostly known, from the forward run.
                root = self.named(Op("sqrt", (texts[one.inputs[0]],), TEXTS["sqrt"]), out)
                texts[one] = self.named(Op("divide", ("1.0", root), TEXTS["divide"]), out)
            else:
                text = _power(one) or TEXTS[one.name]
                for number in ("2.0", "1.0", "0.5", "0.0", "-1.0", "1.5", "0.25"):
                    text = text.replace(f"<{number}>", number)
                texts[one] = self.named(Op(one.name, tuple([texts[x] for x in one.inputs]), text), out)
        return texts[node]
