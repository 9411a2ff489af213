"""Differentiation: graph in, graph out, from the one table of derivatives.

In: output nodes, the nodes to differentiate with respect to, and cotangents (`vjp`) or tangents (`jvp`). Out: nodes of
the same graph, or None where a derivative is structurally zero. Called by the transforms. Only what lies between the
requested inputs and the outputs is visited; zeros are never built; no recursion over nodes.

A cotangent that a `select` set to zero stays a `select` while it flows back (`scale`, `transposed`,
`accumulate_cotangent`), so that the infinite slope of a branch that was not taken is never multiplied by zero: `where`
does not leak NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .collection import RareCollection
from .complex_numbers import add_cotangents
from .derivatives import (
    DERIVATIVES,
    Linear,
    Multilinear,
    NoDerivative,
    Partials,
    Row,
    Tangent,
    Transpose,
    linear_in,
)
from .ir import PRIMITIVES, Node, Primitive, elementwise, literal_value, make, placeholder, topological, zeros
from .pieces import Box, assembled, box_of
from .primitives import cast

ALIAS, BROADCAST, CAST, CUSTOM, GATHER, JOIN, LITERAL, SELECT, SLICE = (
    PRIMITIVES[name] for name in "alias broadcast cast custom gather complex literal select slice".split()
)
INDEX_MAPS = frozenset(
    PRIMITIVES[name] for name in ("reshape", "transpose", "slice", "pad", "concatenate", "sum", "scatter_add")
)
"""Linear primitives whose transposes only move elements, so that they move masks too."""
ROWS: dict[Primitive, Row] = {PRIMITIVES[name]: row for name, row in DERIVATIVES.items()}
CUT = frozenset(p for p, row in ROWS.items() if isinstance(row, NoDerivative) and p is not CUSTOM)
"""Primitives through which no derivative passes."""


def differentiable(node: Node) -> bool:
    """Whether the dtype has derivatives at all."""
    return node.dtype.kind in "fc"


def active_nodes(outputs: Sequence[Node], wrt: Sequence[Node]) -> list[Node]:
    """The nodes that depend differentiably on `wrt` and that the outputs need, in topological order."""
    active: set[Node] = {node for node in wrt if differentiable(node)}
    order: list[Node] = []
    for node in topological(outputs):
        if node in active:
            order.append(node)
            continue
        for source in node.inputs:
            if source in active:
                if node.primitive not in CUT and node.dtype.kind in "fc":
                    active.add(node)
                    order.append(node)
                break
    return order


def _is_zero_branch(node: Node) -> bool:
    """Whether a node is a literal zero, possibly broadcast."""
    while node.primitive is BROADCAST:
        node = node.inputs[0]
    return node.primitive is LITERAL and literal_value(node) == 0


def _masked(node: Node) -> bool:
    return node.primitive is SELECT and _is_zero_branch(node.inputs[2])


def scale(g: Node, partial: Node | float | None) -> Node | None:
    """A tangent or cotangent times a partial derivative; a masked one stays masked."""
    if partial is None:
        return None
    if not isinstance(partial, Node) and partial == 1.0:
        return g
    if g.primitive is SELECT and _masked(g):
        condition, inner, zero = g.inputs
        return elementwise("select", condition, _product(inner, partial), zero)
    return _product(g, partial)


def _product(g: Node, partial: Node | float) -> Node:
    return -g if not isinstance(partial, Node) and partial == -1.0 else g * partial


def quotient(g: Node, divisor: Node) -> Node:
    """A tangent or cotangent divided by what partial derivatives share; a masked one stays masked.

    A divisor that is repeated along an axis is inverted before it is repeated.
    """
    if g.primitive is SELECT and _masked(g):
        condition, inner, zero = g.inputs
        return elementwise("select", condition, quotient(inner, divisor), zero)
    return g * (1.0 / divisor) if divisor.primitive is BROADCAST else g / divisor


def transposed(rule: Transpose, g: Node, node: Node) -> Node:
    """A linear primitive's transpose applied to a cotangent; the mask of a masked one moves with it."""
    if g.primitive is not SELECT or not _masked(g):
        return rule(g, node)
    condition, inner, zero = g.inputs
    primitive = node.primitive
    if primitive is SELECT:
        # The rule masks once more: join the masks, so that what it zeroes stays zero.
        outer = rule(g, node)
        both = elementwise("logical_and", outer.inputs[0], condition)
        return elementwise("select", both, inner, zero)
    if primitive is ALIAS or primitive is CAST:
        mask = condition
    elif primitive in INDEX_MAPS:
        mask = rule(condition, node)
    elif primitive is BROADCAST:
        # The transpose is a sum, which for booleans is whether any of them is true.
        mask, inner = rule(condition, node), g
    elif primitive is GATHER:
        mask, inner = elementwise("greater", rule(cast(condition, g.dtype), node), 0), g
    else:
        return rule(g, node)
    moved = rule(inner, node)
    return elementwise("select", mask, moved, zeros(moved.shape, moved.dtype))


def accumulate_cotangent(a: Node, b: Node) -> Node:
    """The sum of two cotangents; masks that both have are joined."""
    if a.dtype.kind == "c":
        return add_cotangents(a, b)
    if a.primitive is SELECT and b.primitive is SELECT and _masked(a) and _masked(b):
        mask = a.inputs[0] if a.inputs[0] is b.inputs[0] else elementwise("logical_or", a.inputs[0], b.inputs[0])
        return elementwise("select", mask, a + b, a.inputs[2])
    return a + b


class _Cotangents:
    """What has arrived at each node: a sum, and for what slices of it sent back, a sum for each part."""

    def __init__(self) -> None:
        self.whole: dict[Node, Node] = {}
        self.parts: dict[Node, dict[Box, Node]] = {}

    def add(self, node: Node, g: Node) -> None:
        """One more cotangent of a node."""
        known = self.whole.get(node)
        self.whole[node] = g if known is None else accumulate_cotangent(known, g)

    def add_part(self, node: Node, box: Box, g: Node) -> None:
        """One more cotangent of a part of a node."""
        parts = self.parts.setdefault(node, {})
        parts[box] = accumulate_cotangent(parts[box], g) if box in parts else g

    def take(self, node: Node) -> Node | None:
        """All that has arrived at a node."""
        whole = self.whole.pop(node, None)
        parts = self.parts.pop(node, None)
        if parts is None:
            return whole
        g = assembled(parts, node.shape, lambda a, b: a + b)
        if all(_masked(part) for part in parts.values()):
            masks = {box: part.inputs[0] for box, part in parts.items()}
            mask = assembled(masks, node.shape, lambda a, b: elementwise("logical_or", a, b))
            g = elementwise("select", mask, g, zeros(g.shape, g.dtype))
        return g if whole is None else accumulate_cotangent(whole, g)


def vjp(outputs: Sequence[Node], cotangents: Sequence[Node | None], wrt: Sequence[Node]) -> list[Node | None]:
    """Reverse mode: the cotangents of `wrt`, given those of the outputs."""
    assert all(node.primitive is not JOIN for node in wrt), "make an alias of complex nodes to differentiate by"
    with RareCollection():
        order = active_nodes(outputs, wrt)
        active = set(order)
        wanted = set(wrt)
        total = _Cotangents()
        for node, g in zip(outputs, cotangents, strict=True):
            if node in active and g is not None:
                total.add(node, g)
        for node in reversed(order):
            if node in wanted:
                continue
            g = total.take(node)
            if g is None:
                continue
            if node.primitive is SLICE:
                source = node.inputs[0]
                box = box_of(node.params[0])
                if box is not None:
                    if source in active:
                        total.add_part(source, box, g)
                    continue
            _send_back(node, g, active, wanted, total)
        found = {node: total.take(node) for node in wanted}
        return [found[node] for node in wrt]


def pullback(function: Callable[..., Node], operands: Sequence[Node], g: Node) -> list[Node | None]:
    """The cotangents of operands, given that of what a function makes of them: for rules that are such a function's.

    The function gets nodes of its own, since complex operands may be no single nodes but joined of parts.
    """
    fresh = [make("alias", (node,)) for node in operands]
    return vjp([function(*fresh)], [g], fresh)


def _send_back(node: Node, g: Node, active: set[Node], wanted: set[Node], total: _Cotangents) -> None:
    """Add what a node's cotangent means for its operands to theirs."""
    if node.primitive is CUSTOM:
        results = node.params[0].cotangents(g, node)
        for source, result in zip(node.inputs[1:], results, strict=True):
            if result is not None and source in active:
                total.add(source, result)
        return
    row = ROWS[node.primitive]
    if isinstance(row, Partials):
        inputs = node.inputs
        if row.divisor is not None:
            g = quotient(g, row.divisor(node, *inputs))
        for source, partial in zip(inputs, row.partials, strict=True):
            if partial is not None and source in active:
                found = scale(g, partial(node, *inputs))
                if found is not None:
                    total.add(source, found)
        return
    rules = linear_in(row, node)
    if isinstance(row, Tangent) and any(
        source in active and (position >= len(rules) or rules[position] is None)
        for position, source in enumerate(node.inputs)
    ):
        # Build the forward rule on tangents that stand for the active operands, and transpose that linear graph.
        sources = [source for source in dict.fromkeys(node.inputs) if source in active]
        stand_ins = {source: placeholder(source.shape, source.dtype) for source in sources}
        tangent = row.rule(node, [stand_ins.get(source) for source in node.inputs])
        for source, found in zip(sources, vjp([tangent], [g], list(stand_ins.values())), strict=True):
            if found is not None:
                total.add(source, found)
        return
    for source, rule in zip(node.inputs, rules, strict=True):
        if source in active and rule is not None:
            # A mask is of use only where the cotangent goes on.
            total.add(source, rule(g, node) if source in wanted else transposed(rule, g, node))


def jvp(outputs: Sequence[Node], wrt: Sequence[Node], tangents: Sequence[Node | None]) -> list[Node | None]:
    """Forward mode: the tangents of the outputs, given those of `wrt`."""
    assert all(node.primitive is not JOIN for node in wrt), "make an alias of complex nodes to differentiate by"
    wanted = set(wrt)
    tangent: dict[Node, Node] = {}
    for node, t in zip(wrt, tangents, strict=True):
        if t is not None and differentiable(node):
            tangent[node] = t
    with RareCollection():
        for node in active_nodes(outputs, wrt):
            if node in wanted:
                continue
            operands = [tangent.get(source) for source in node.inputs]
            if any(t is not None for t in operands):
                result = _output_tangent(node, operands)
                if result is not None:
                    tangent[node] = result
    return [tangent.get(node) for node in outputs]


def _output_tangent(node: Node, operands: list[Node | None]) -> Node | None:
    if node.primitive is CUSTOM:
        return _custom_tangent(node, operands)
    row = ROWS[node.primitive]
    if isinstance(row, Tangent):
        return row.rule(node, operands)
    if isinstance(row, Linear):
        rules = linear_in(row, node)
        if not any(rule is not None and t is not None for rule, t in zip(rules, operands, strict=True)):
            return None
        filled = [
            source if rule is None else zeros(source.shape, source.dtype) if t is None else t
            for source, rule, t in zip(node.inputs, rules, operands, strict=True)
        ]
        return make(node.name, tuple(filled), node.params)
    total: Node | None = None
    for position, t in enumerate(operands):
        if t is None:
            continue
        if isinstance(row, Multilinear):
            inputs = (*node.inputs[:position], t, *node.inputs[position + 1 :])
            term: Node | None = make(node.name, inputs, node.params)
        else:
            assert isinstance(row, Partials), node
            partial = row.partials[position]
            term = None if partial is None else scale(t, partial(node, *node.inputs))
        if term is not None:
            total = term if total is None else accumulate_cotangent(total, term)
    if total is not None and isinstance(row, Partials) and row.divisor is not None:
        return quotient(total, row.divisor(node, *node.inputs))
    return total


def _custom_tangent(node: Node, operands: list[Node | None]) -> Node | None:
    """Forward mode of a user's reverse rule: the rule is linear in the cotangent, so its transpose is the tangent.

    A rule that has a `tangent` of its own is asked for that.
    """
    own = getattr(node.params[0], "tangent", None)
    if own is not None:
        return own(node, operands)
    stand_in = placeholder(node.shape, node.dtype)
    results = node.params[0].cotangents(stand_in, node)
    pairs = [(r, t) for r, t in zip(results, operands[1:], strict=True) if r is not None and t is not None]
    return vjp([r for r, _ in pairs], [t for _, t in pairs], [stand_in])[0]
