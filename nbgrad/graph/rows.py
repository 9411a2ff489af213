"""Lines of the tables of primitives: kinds of derivatives, the shapes that most have, and how a line is made.

In: all that is known of a primitive. Out: `Primitive`s. Called by elementwise_rows.py, movement_rows.py and the other
tables. A derivative is one of
- `Partials`: for elementwise primitives, one function per operand of (output, *operands); None for a zero. Gives both
  modes, because the Jacobian is diagonal.
- `Linear`: linear in all its operands together; one transpose per operand.
- `Multilinear`: linear in each operand alone; one transpose per operand.
- `Tangent`: a forward rule built from linear primitives; reverse mode transposes its graph. Transposes may be
  given for operands in which the primitive is linear anyway.
- `NoDerivative`: and why.
- `ByBody`: of loops, differentiated by differentiating their bodies (loop_derivatives.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .ir import BOOL, Node, Params, Primitive, ShapeRule
from .shapes import Shape

Partial = Callable[..., Node | float | None]
Transpose = Callable[[Node, Node], Node]
"""(cotangent, node) -> cotangent of one operand."""
ShapeAndDtype = tuple[Shape, np.dtype[Any]]


@dataclass(frozen=True)
class Partials:
    """Partial derivatives of an elementwise primitive; if there is a `divisor`, over that, which they share.

    `infinite`: a slope may be infinite where the operands are finite, as with a divisor.
    """

    partials: tuple[Partial | None, ...]
    divisor: Callable[..., Node] | None = None
    infinite: bool = False


@dataclass(frozen=True)
class Linear:
    """Linear in all differentiable operands together; None marks operands that are not (an index, a condition).

    `index_map`: the transposes only move elements, so that they move masks too.
    """

    transposes: Callable[[Node], Sequence[Transpose | None]]
    index_map: bool = False


@dataclass(frozen=True)
class Multilinear:
    """Linear in each operand alone."""

    transposes: tuple[Transpose, ...]


@dataclass(frozen=True)
class Tangent:
    """`rule(node, tangents)` builds the output's tangent; a tangent may be None, which is zero."""

    rule: Callable[[Node, Sequence[Node | None]], Node]
    transposes: tuple[Transpose | None, ...] = ()


@dataclass(frozen=True)
class NoDerivative:
    """The derivative is zero or undefined, and why."""

    why: str


@dataclass(frozen=True)
class ByBody:
    """That of a loop follows from that of its body."""


Row = Partials | Linear | Multilinear | Tangent | NoDerivative | ByBody
CONSTANT = NoDerivative("its value does not change when its operands change a little")
INTEGER = NoDerivative("it works on integers or gives booleans")


def linear_in(row: Row, node: Node) -> Sequence[Transpose | None]:
    """The transposes that a row offers for the operands of a node."""
    if isinstance(row, Linear):
        return row.transposes(node)
    if isinstance(row, Multilinear | Tangent):
        return row.transposes
    return ()


def slope(partial: Partial, over: Callable[..., Node] | None = None, infinite: bool = False) -> Partials:
    """The derivative of a primitive of one operand; `over` a divisor."""
    return Partials((partial,), over, infinite)


def slopes(first: Partial | None, second: Partial | None, infinite: bool = False) -> Partials:
    """The derivatives of a primitive of two operands."""
    return Partials((first, second), infinite=infinite)


# ----- Shapes -----


def same(inputs: Sequence[Node], params: Params) -> tuple[Shape, np.dtype[Any]]:
    """Shape and dtype of the last input; every input has them (a select's condition is bool)."""
    last = inputs[-1]
    for node in inputs:
        assert node.shape == last.shape, (node, last)
    return last.shape, last.dtype


def truths(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    """The shape of the inputs, and booleans."""
    return same(inputs, params)[0], BOOL


# ----- Lines -----


def pointwise(
    meaning: Callable[..., Any], derivative: Row, light: bool = False, shape: ShapeRule = same, **facts: Any
) -> Primitive:
    """An elementwise primitive, which its table names."""
    return Primitive("", "elementwise", shape, meaning=meaning, derivative=derivative, light=light, **facts)


def light(meaning: Callable[..., Any], derivative: Row, shape: ShapeRule = same, **facts: Any) -> Primitive:
    """An elementwise primitive of a few instructions."""
    return pointwise(meaning, derivative, light=True, shape=shape, **facts)


def truth_of(meaning: Callable[..., Any]) -> Primitive:
    """An elementwise primitive whose result is boolean."""
    return light(meaning, INTEGER, truths, boolean=True)


def row(
    kind: str,
    shape: ShapeRule,
    meaning: Callable[..., Any] | None,
    derivative: Row,
    takes_params: bool = True,
    **facts: Any,
) -> Primitive:
    """A primitive of another kind; its meaning gets the parameters first."""
    return Primitive("", kind, shape, meaning=meaning, derivative=derivative, takes_params=takes_params, **facts)


def named(**lines: Primitive) -> dict[str, Primitive]:
    """A table: the lines by the names that it gives them."""
    for name, line in lines.items():
        line.name = name
    return lines
