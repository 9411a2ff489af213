"""Differentiation: graph in, graph out, from the one table of derivatives.

In: output nodes, the nodes to differentiate with respect to, and cotangents (`vjp`) or tangents (`jvp`). Out: nodes of
the same graph, or None where a derivative is structurally zero. Called by the transforms. Only what lies between the
requested inputs and the outputs is visited; zeros are never built; no recursion over nodes.

A cotangent that a `select` set to zero stays a `select` while it flows back (`scale`, `transposed`,
`accumulate_cotangent`), so that the infinite slope of a branch that was not taken is never multiplied by zero: `where`
does not leak NaN.
"""

from __future__ import annotations

from collections.abc import Sequence

from .derivatives import (
    DERIVATIVES,
    Linear,
    Multilinear,
    NoDerivative,
    Partials,
    Tangent,
    Transpose,
    linear_in,
    partial_of,
)
from .ir import Node, elementwise, literal_value, make, placeholder, topological, zeros
from .primitives import cast

INDEX_MAPS = frozenset(["reshape", "transpose", "slice", "pad", "concatenate", "sum", "scatter_add"])
"""Linear primitives whose transposes only move elements, so that they move masks too."""


def differentiable(node: Node) -> bool:
    """Whether the dtype has derivatives at all."""
    return node.dtype.kind == "f"


def active_nodes(outputs: Sequence[Node], wrt: Sequence[Node]) -> list[Node]:
    """The nodes that depend differentiably on `wrt` and that the outputs need, in topological order."""
    active: set[Node] = {node for node in wrt if differentiable(node)}
    order: list[Node] = []
    for node in topological(outputs):
        if node in active:
            order.append(node)
        elif (
            differentiable(node)
            and any(source in active for source in node.inputs)
            and (node.name == "custom" or not isinstance(DERIVATIVES[node.name], NoDerivative))
        ):
            active.add(node)
            order.append(node)
    return order


def _is_zero_branch(node: Node) -> bool:
    """Whether a node is a literal zero, possibly broadcast."""
    while node.name == "broadcast":
        node = node.inputs[0]
    return node.name == "literal" and literal_value(node) == 0


def _masked(node: Node) -> bool:
    return node.name == "select" and _is_zero_branch(node.inputs[2])


def scale(g: Node, partial: Node | float | None) -> Node | None:
    """A tangent or cotangent times a partial derivative; a masked one stays masked."""
    if partial is None:
        return None
    if not isinstance(partial, Node) and partial == 1.0:
        return g
    if _masked(g):
        condition, inner, zero = g.inputs
        return elementwise("select", condition, _product(inner, partial), zero)
    return _product(g, partial)


def _product(g: Node, partial: Node | float) -> Node:
    return -g if not isinstance(partial, Node) and partial == -1.0 else g * partial


def transposed(rule: Transpose, g: Node, node: Node) -> Node:
    """A linear primitive's transpose applied to a cotangent; the mask of a masked one moves with it."""
    if not _masked(g):
        return rule(g, node)
    condition, inner, zero = g.inputs
    if node.name == "select":
        # The rule masks once more: join the masks, so that what it zeroes stays zero.
        outer = rule(g, node)
        both = elementwise("logical_and", outer.inputs[0], condition)
        return elementwise("select", both, inner, zero)
    if node.name in ("alias", "cast"):
        mask = condition
    elif node.name in INDEX_MAPS:
        mask = rule(condition, node)
    elif node.name == "broadcast":
        # The transpose is a sum, which for booleans is whether any of them is true.
        mask, inner = rule(condition, node), g
    elif node.name == "gather":
        mask, inner = elementwise("greater", rule(cast(condition, g.dtype), node), 0), g
    else:
        return rule(g, node)
    moved = rule(inner, node)
    return elementwise("select", mask, moved, zeros(moved.shape, moved.dtype))


def accumulate_cotangent(a: Node, b: Node) -> Node:
    """The sum of two cotangents; masks that both have are joined."""
    if _masked(a) and _masked(b):
        mask = a.inputs[0] if a.inputs[0] is b.inputs[0] else elementwise("logical_or", a.inputs[0], b.inputs[0])
        return elementwise("select", mask, a + b, a.inputs[2])
    return a + b


def vjp(outputs: Sequence[Node], cotangents: Sequence[Node | None], wrt: Sequence[Node]) -> list[Node | None]:
    """Reverse mode: the cotangents of `wrt`, given those of the outputs."""
    order = active_nodes(outputs, wrt)
    active = set(order)
    wanted = set(wrt)
    total: dict[Node, Node] = {}

    def add(node: Node, g: Node | None) -> None:
        if g is not None:
            total[node] = accumulate_cotangent(total[node], g) if node in total else g

    for node, g in zip(outputs, cotangents, strict=True):
        if node in active:
            add(node, g)
    for node in reversed(order):
        if node in wanted or node not in total:
            continue
        g = total.pop(node)
        for source, contribution in _operand_cotangents(node, g, active, wanted):
            add(source, contribution)
    return [total.get(node) for node in wrt]


def _operand_cotangents(node: Node, g: Node, active: set[Node], wanted: set[Node]) -> list[tuple[Node, Node | None]]:
    if node.name == "custom":
        results = node.params[0].cotangents(g, node)
        return [(s, r) for s, r in zip(node.inputs[1:], results, strict=True) if s in active]
    row = DERIVATIVES[node.name]
    if isinstance(row, Partials):
        return [
            (source, scale(g, partial_of(row, position, node)))
            for position, source in enumerate(node.inputs)
            if source in active
        ]
    rules = linear_in(row, node)
    if isinstance(row, Tangent) and any(
        source in active and (position >= len(rules) or rules[position] is None)
        for position, source in enumerate(node.inputs)
    ):
        # Build the forward rule on tangents that stand for the active operands, and transpose that linear graph.
        sources = [source for source in dict.fromkeys(node.inputs) if source in active]
        stand_ins = {source: placeholder(source.shape, source.dtype) for source in sources}
        tangent = row.rule(node, [stand_ins.get(source) for source in node.inputs])
        return list(zip(sources, vjp([tangent], [g], list(stand_ins.values())), strict=True))
    contributions: list[tuple[Node, Node | None]] = []
    for source, rule in zip(node.inputs, rules, strict=True):
        if source in active and rule is not None:
            # A mask is of use only where the cotangent goes on.
            found = rule(g, node) if source in wanted else transposed(rule, g, node)
            contributions.append((source, found))
    return contributions


def jvp(outputs: Sequence[Node], wrt: Sequence[Node], tangents: Sequence[Node | None]) -> list[Node | None]:
    """Forward mode: the tangents of the outputs, given those of `wrt`."""
    wanted = set(wrt)
    tangent: dict[Node, Node] = {}
    for node, t in zip(wrt, tangents, strict=True):
        if t is not None and differentiable(node):
            tangent[node] = t
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
    if node.name == "custom":
        return _custom_tangent(node, operands)
    row = DERIVATIVES[node.name]
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
            term = scale(t, partial_of(row, position, node))
        if term is not None:
            total = term if total is None else accumulate_cotangent(total, term)
    return total


def _custom_tangent(node: Node, operands: list[Node | None]) -> Node | None:
    """Forward mode of a user's reverse rule: the rule is linear in the cotangent, so its transpose is the tangent."""
    stand_in = placeholder(node.shape, node.dtype)
    results = node.params[0].cotangents(stand_in, node)
    pairs = [(r, t) for r, t in zip(results, operands[1:], strict=True) if r is not None and t is not None]
    return vjp([r for r, _ in pairs], [t for _, t in pairs], [stand_in])[0]
