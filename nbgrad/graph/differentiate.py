"""Differentiation: graph in, graph out, from the one table of derivatives.

In: output nodes, the nodes to differentiate with respect to, and cotangents (`vjp`) or tangents (`jvp`). Out: nodes of
the same graph, or None where a derivative is structurally zero. Called by the transforms. Only nodes between the
requested inputs and the outputs are visited; zeros are never built; no recursion over nodes.

A cotangent that a `select` set to zero stays a `select` while it flows back (`scale`, `transposed`,
`accumulate_cotangent`), so that the infinite slope of a branch that was not taken is never multiplied by zero: `where`
does not leak NaN. For slopes that may be infinite, masks.py knows the zeros of padded or scattered nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import reduce
from math import inf

from ..errors import TracedValueError
from ..process.gc_pause import RareCollection
from .builders import cast
from .complex_numbers import add_cotangents, is_zero, pair, parts
from .cotangents.shared_rules import Calls, place_of
from .cotangents.slice_cotangents import Box, assembled, box_of, merged
from .ir import BOOL, Earlier, Node, broadcast, elementwise, filled, make, placeholder, topological, zeros
from .loops.loop_derivatives import backward, forward, item_tangent
from .loops.loop_rows import TOKEN
from .loops.origins import walked
from .masks import Mask, Masks, everywhere, for_all, masked, union
from .primitives import PRIMITIVES
from .rows import Linear, Multilinear, NoDerivative, Partials, Tangent, Transpose, linear_in

ADD, ALIAS, ARGSORT, BROADCAST, CAST, CONCATENATE, CUSTOM, GATHER, JOIN = (
    PRIMITIVES[name] for name in "add alias argsort broadcast cast concatenate custom gather complex".split()
)
PAD, SCATTER_ADD, SELECT, SLICE = (PRIMITIVES[name] for name in "pad scatter_add select slice".split())
LOOP, ITEM = PRIMITIVES["loop"], PRIMITIVES["item"]
INDEX_MAPS = frozenset(p for p in PRIMITIVES.values() if isinstance(p.derivative, Linear) and p.derivative.index_map)
"""Linear primitives whose transposes only move elements, so that they move masks too."""
MOVES = INDEX_MAPS | {ALIAS, CAST, GATHER, SELECT}
"""Linear primitives whose tangents are masked where their operands' are."""
CUT = frozenset(p for p in PRIMITIVES.values() if isinstance(p.derivative, NoDerivative) and p is not CUSTOM)
"""Primitives through which no derivative passes."""
INFINITE = frozenset(
    p
    for p in PRIMITIVES.values()
    if isinstance(p.derivative, Partials) and (p.derivative.infinite or p.derivative.divisor is not None)
)
"""Elementwise primitives whose slope may be infinite where their operands are finite."""


def differentiable(node: Node) -> bool:
    """Whether the dtype has derivatives at all."""
    return node.dtype.kind in "fc"


def active_nodes(outputs: Sequence[Node], wrt: Sequence[Node]) -> list[Node]:
    """The nodes that depend differentiably on `wrt` and that the outputs need, in topological order."""
    active: set[Node] = {node for node in wrt if differentiable(node)}
    order: list[Node] = []
    for node in topological(outputs, Earlier(min([node.serial for node in wrt], default=inf))):
        if node in active:
            order.append(node)
            continue
        for source in node.inputs:
            if source in active:
                if node.primitive not in CUT and (node.dtype.kind in "fc" or node.dtype is TOKEN):
                    active.add(node)
                    order.append(node)
                break
    return order


def scale(g: Node, partial: Node | float | None) -> Node | None:
    """A tangent or cotangent times a partial derivative; where either is masked, so is the product."""
    if partial is None:
        return None
    if not isinstance(partial, Node):
        if partial == 1.0:
            return g
    elif partial.primitive is SELECT and masked(partial):
        condition, partial, zero = partial.inputs
        if g.primitive is SELECT and masked(g):
            condition = elementwise("logical_and", condition, g.inputs[0])
            g = g.inputs[1]
        return elementwise("select", condition, _product(g, partial), zero)
    if g.primitive is SELECT and masked(g):
        condition, inner, zero = g.inputs
        return elementwise("select", condition, _product(inner, partial), zero)
    return _product(g, partial)


def _product(g: Node, partial: Node | float) -> Node:
    return -g if not isinstance(partial, Node) and partial == -1.0 else g * partial


def quotient(g: Node, divisor: Node) -> Node:
    """A tangent or cotangent divided by the common divisor of partial derivatives; a masked one stays masked.

    A divisor that is repeated along an axis is inverted before it is repeated.
    """
    if g.primitive is SELECT and masked(g):
        condition, inner, zero = g.inputs
        return elementwise("select", condition, quotient(inner, divisor), zero)
    return g * (1.0 / divisor) if divisor.primitive is BROADCAST else g / divisor


def transposed(rule: Transpose, g: Node, node: Node, source: Node, masks: Masks) -> Node:
    """The transpose of a primitive that is linear in `source`, applied to a cotangent; a mask of that moves with it."""
    primitive = node.primitive

    def moved_mask(mask: Mask) -> Mask:
        return _mask_transposed(rule, mask, node, source)

    if g.primitive is SELECT and masked(g):
        condition, inner, zero = g.inputs
        if primitive is SELECT:
            # The rule masks once more: join the masks, so that its zeros stay zero.
            outer = rule(g, node)
            both = elementwise("logical_and", outer.inputs[0], condition)
            result = elementwise("select", both, inner, zero)
            if g in masks.rules:
                masks.share(result, g)
            return result
        mask = moved_mask(condition)
        if mask is not None:
            moved = rule(inner if primitive in MOVES and primitive not in (BROADCAST, GATHER) else g, node)
            result = elementwise("select", mask, moved, zeros(moved.shape, moved.dtype))
            if g in masks.rules:
                masks.put(result, moved_mask, g)
            return result
    result = rule(g, node)
    if g in masks.rules or primitive is SLICE or (primitive is GATHER and not _is_permutation(node)):
        if primitive is SELECT:
            masks.share(result, g)
        else:
            masks.put(result, moved_mask, g)
    return result


def _mask_transposed(rule: Transpose, mask: Mask, node: Node, source: Node) -> Mask:
    """The mask of the transpose of a primitive that is linear in `source`, applied to a cotangent with this mask."""
    primitive = node.primitive
    if primitive is ALIAS or primitive is CAST:
        return mask
    if primitive is GATHER:
        reached = everywhere(node) if mask is None else mask
        return elementwise("greater", rule(cast(reached, node.dtype), node), 0)
    if primitive is SLICE and mask is None:
        mask = everywhere(node)
    if mask is None:
        return None
    if primitive in INDEX_MAPS:
        # The transpose of a broadcast is a sum, which for booleans is whether any of them is true.
        return rule(mask, node)
    one = for_all(mask)
    return None if one is None else broadcast(one, source.shape)


def _is_permutation(node: Node) -> bool:
    """Whether a gather only puts elements in another order, as sorting does."""
    source, index = node.inputs
    # An order within each row, and where the rows begin; or the order turned around.
    moved = index.primitive is ADD or index.primitive.kind == "movement"
    orders = index.inputs if moved else (index,)
    return source.size == index.size and any(order.primitive is ARGSORT for order in orders)


def accumulate_cotangent(a: Node, b: Node) -> Node:
    """The sum of two cotangents; masks that both have are joined."""
    if a.dtype.kind == "c":
        return add_cotangents(a, b)
    if a.primitive is SELECT and b.primitive is SELECT and masked(a) and masked(b):
        mask = a.inputs[0] if a.inputs[0] is b.inputs[0] else elementwise("logical_or", a.inputs[0], b.inputs[0])
        return elementwise("select", mask, a + b, a.inputs[2])
    return a + b


class _Cotangents:
    """The cotangents of each node: a sum; for those that slices of the node sent back, a sum for each part; for a loop,
    those of its items."""

    def __init__(self, masks: Masks) -> None:
        self.whole: dict[Node, Node] = {}
        self.parts: dict[Node, dict[Box, Node]] = {}
        self.items: dict[Node, dict[tuple[str, int], Node]] = {}
        self.masks = masks

    def add(self, node: Node, g: Node) -> None:
        """One more cotangent of a node."""
        known = self.whole.get(node)
        self.whole[node] = g if known is None else _sum(known, g, self.masks)

    def add_part(self, node: Node, box: Box, g: Node) -> None:
        """One more cotangent of a part of a node."""
        parts = self.parts.setdefault(node, {})
        parts[box] = _sum(parts[box], g, self.masks) if box in parts else g

    def add_item(self, node: Node, g: Node) -> None:
        """The cotangent of an item of a loop."""
        items = self.items.setdefault(node.inputs[0], {})
        known = items.get(node.params)
        items[node.params] = g if known is None else _sum(known, g, self.masks)

    def take(self, node: Node) -> Node | None:
        """All that has arrived at a node."""
        whole = self.whole.pop(node, None)
        parts = self.parts.pop(node, None)
        if parts is None:
            return whole
        g = assembled(parts, node.shape, lambda a, b: a + b)
        known = all(map(masked, parts.values()))
        if known:
            masks = {box: part.inputs[0] for box, part in parts.items()}
            mask = assembled(masks, node.shape, lambda a, b: elementwise("logical_or", a, b))
            g = elementwise("select", mask, g, zeros(g.shape, g.dtype))
            known = self.masks.rules.keys().isdisjoint(parts.values())
        if not known and (whole is None or self.masks.possible(whole)):
            self.masks.put(
                g, lambda *found: _mask_of_parts(dict(zip(parts, found, strict=True)), node), *parts.values()
            )
        return g if whole is None else _sum(whole, g, self.masks)


def _sum(a: Node, b: Node, masks: Masks) -> Node:
    """The sum of two cotangents or tangents; where both are masked, so is it."""
    total = accumulate_cotangent(a, b)
    if masks.rules and masks.possible(a) and masks.possible(b):
        masks.put(total, union, a, b)
    return total


def _mask_of_parts(parts: Mapping[Box, Mask], node: Node) -> Mask:
    """The mask of a cotangent that is put together of those of parts of a node, given their masks."""
    whole = merged([box for box, mask in parts.items() if mask is None], node.ndim)
    if any(box == tuple([(0, n) for n in node.shape]) for box in whole):
        return None
    masks = {box: mask for box, mask in parts.items() if mask is not None}
    for box in whole:
        masks[box] = filled(True, BOOL, tuple([end - start for start, end in box]))
    return assembled(masks, node.shape, lambda a, b: elementwise("logical_or", a, b))


def vjp(
    outputs: Sequence[Node], cotangents: Sequence[Node | None], wrt: Sequence[Node], masks: Masks | None = None
) -> list[Node | None]:
    """Reverse mode: the cotangents of `wrt`, given those of the outputs; if they go on, `masks` takes their masks.

    Nodes of `wrt` may depend on others of them.
    """
    assert all(node.primitive is not JOIN for node in wrt), "make an alias of complex nodes to differentiate by"
    with RareCollection():
        order = active_nodes(outputs, wrt)
        active = set(order)
        wanted = set(wrt)
        ends = {node for node in wanted if active.isdisjoint(node.inputs)}
        last = ends if masks is None else frozenset()
        masks = Masks() if masks is None else masks
        total = _Cotangents(masks)
        for node, g in zip(outputs, cotangents, strict=True):
            if node in active and g is not None:
                total.add(node, g)
        result: dict[Node, Node | None] = {}
        calls: Calls | None = None
        for node in walked(reversed(order), derivative=True):
            if node in ends:
                continue
            if node.primitive is LOOP:
                for position, found in backward(node, total.items.pop(node, {}), active, vjp, masks).items():
                    total.add(node.inputs[position], found)
                continue
            g = total.take(node)
            if node in wanted:
                result[node] = g
            if node.primitive is CUSTOM:
                place = place_of(node)
                if place is not None:
                    calls = Calls(order, lambda a, b: _sum(a, b, masks)) if calls is None else calls
                    found = calls.cotangents(node, place, g)
                    if found is not None:
                        _add_of_rule(node, found, active, total)
                    continue
            if g is None:
                continue
            if node.primitive is ITEM:
                total.add_item(node, g)
                continue
            if node.primitive is SLICE:
                source = node.inputs[0]
                box = box_of(node.params[0])
                if box is not None:
                    if source in active:
                        total.add_part(source, box, g)
                    continue
            _send_back(node, g, active, last, total)
        for node in wanted.difference(result):
            result[node] = total.take(node)
        return [result[node] for node in wrt]


def pullback(function: Callable[..., Node], operands: Sequence[Node], g: Node) -> list[Node | None]:
    """The cotangents of operands, given that of a function's value: for rules that are such a function's.

    The function gets nodes of its own, since complex operands may be no single nodes but joined of parts.
    """
    fresh = [make("alias", (node,)) for node in operands]
    return vjp([function(*fresh)], [g], fresh)


def _kept(g: Node, result: Node | None) -> Node | None:
    """The result of a rule for a cotangent; zero if that is of a branch that was not taken."""
    one = None if result is None or result.dtype.kind not in "fc" else _branch_of(g)
    if one is None or result is None:
        return result
    chosen = [
        elementwise("select", broadcast(one, result.shape), part, zeros(part.shape, part.dtype))
        for part in (parts(result) if result.dtype.kind == "c" else (result,))
    ]
    return pair(*chosen) if len(chosen) == 2 else chosen[0]


def _branch_of(g: Node) -> Node | None:
    """A truth value without which a cotangent is zero by construction; None if there is none."""
    found: list[Node] = []
    for part in parts(g) if g.dtype.kind == "c" else (g,):
        if g.dtype.kind == "c" and is_zero(part):
            continue
        one = for_all(part.inputs[0]) if masked(part) else None
        if one is None:
            return None
        found.append(one)
    return reduce(lambda one, other: elementwise("logical_or", one, other), dict.fromkeys(found)) if found else None


def _add_of_rule(node: Node, results: Sequence[Node | None], active: set[Node], total: _Cotangents) -> None:
    """Add the cotangents that a user's rule gives to those of what its node was given."""
    for source, result in zip(node.inputs[1:], results, strict=True):
        if result is not None and source in active:
            total.add(source, result)


def _send_back(node: Node, g: Node, active: set[Node], last: Set[Node], total: _Cotangents) -> None:
    """Add a node's cotangent, sent back, to those of its operands; from operands in `last` it goes no further."""
    masks = total.masks
    if node.primitive is CUSTOM:
        rule = node.params[0]
        if hasattr(rule, "cotangents_of"):
            results = rule.cotangents_of(g, node, [source in active for source in node.inputs[1:]])
        else:
            results = rule.cotangents(g, node)
        _add_of_rule(node, [_kept(g, result) for result in results], active, total)
        return
    row = node.primitive.derivative
    if isinstance(row, Partials):
        inputs = node.inputs
        if g in masks.rules and node.primitive in INFINITE:
            g = masks.applied(g)
        if row.divisor is not None:
            g = quotient(g, row.divisor(node, *inputs))
        for source, partial in zip(inputs, row.partials, strict=True):
            if partial is not None and source in active:
                found = scale(g, partial(node, *inputs))
                if found is not None:
                    if g in masks.rules:
                        masks.share(found, g)
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
        for source, found in zip(sources, vjp([tangent], [g], list(stand_ins.values()), masks), strict=True):
            if found is not None:
                total.add(source, found)
        return
    for source, rule in zip(node.inputs, rules, strict=True):
        if source in active and rule is not None:
            # A mask is of use only where the cotangent goes on.
            total.add(source, rule(g, node) if source in last else transposed(rule, g, node, source, masks))


def jvp(
    outputs: Sequence[Node], wrt: Sequence[Node], tangents: Sequence[Node | None], masks: Masks | None = None
) -> list[Node | None]:
    """Forward mode: the tangents of the outputs, given those of `wrt`; `masks` has theirs, and takes all others."""
    assert all(node.primitive is not JOIN for node in wrt), "make an alias of complex nodes to differentiate by"
    wanted = set(wrt)
    masks = Masks() if masks is None else masks
    tangent: dict[Node, Node] = {}
    for node, t in zip(wrt, tangents, strict=True):
        if t is not None and differentiable(node):
            tangent[node] = t
    with RareCollection():
        for node in walked(_needed(active_nodes(outputs, wrt), outputs), derivative=True):
            if node in wanted:
                continue
            operands = [tangent.get(source) for source in node.inputs]
            if any(t is not None for t in operands):
                result = _output_tangent(node, operands, masks)
                if result is not None:
                    tangent[node] = result
    return [tangent.get(node) for node in outputs]


def _needed(order: Sequence[Node], outputs: Sequence[Node]) -> list[Node]:
    """The nodes of `order` whose tangents those of the outputs are made of: a custom rule needs only its arguments'."""
    needed = set(outputs)
    for node in reversed(order):
        if node in needed:
            if node.primitive is CUSTOM:
                count = getattr(node.params[0], "argument_count", len(node.inputs))
                needed.update(node.inputs[1 : 1 + count])
            else:
                needed.update(node.inputs)
    return [node for node in order if node in needed]


def _output_tangent(node: Node, operands: list[Node | None], masks: Masks) -> Node | None:
    if node.primitive is LOOP:
        return forward(node, operands, jvp, masks)
    if node.primitive is ITEM:
        return item_tangent(node, operands[0], masks)
    if node.primitive is CUSTOM or node.primitive is JOIN:
        # Rules of complex functions look for masks in both parts.
        operands = [None if t is None else masks.applied(t) for t in operands]
    if node.primitive is CUSTOM:
        return _custom_tangent(node, operands)
    row = node.primitive.derivative
    if isinstance(row, Tangent):
        return row.rule(node, operands)
    if isinstance(row, Linear):
        return _linear_tangent(node, operands, linear_in(row, node), masks)
    total: Node | None = None
    for position, t in enumerate(operands):
        if t is None:
            continue
        if isinstance(row, Multilinear):
            inputs = (*node.inputs[:position], t, *node.inputs[position + 1 :])
            term: Node | None = make(node.name, inputs, node.params)
        else:
            assert isinstance(row, Partials), node
            if t in masks.rules and node.primitive in INFINITE:
                t = masks.applied(t)
            partial = row.partials[position]
            term = None if partial is None else scale(t, partial(node, *node.inputs))
            if term is not None and t in masks.rules:
                masks.share(term, t)
        if term is not None:
            total = term if total is None else _sum(total, term, masks)
    if total is not None and isinstance(row, Partials) and row.divisor is not None:
        return quotient(total, row.divisor(node, *node.inputs))
    return total


def _linear_tangent(
    node: Node, operands: list[Node | None], rules: Sequence[Transpose | None], masks: Masks
) -> Node | None:
    """The tangent of a linear primitive: itself, of the tangents."""
    given = [t if rule is not None else None for rule, t in zip(rules, operands, strict=True)]
    if not any(t is not None for t in given):
        return None
    if node.primitive is SELECT and (given[1] is None or given[2] is None):
        return _selected_tangent(node, given, masks)
    filled_in = [
        source if rule is None else zeros(source.shape, source.dtype) if t is None else t
        for source, rule, t in zip(node.inputs, rules, given, strict=True)
    ]
    result = make(node.name, tuple(filled_in), node.params)
    if (
        node.primitive is PAD
        or node.primitive is SCATTER_ADD
        or (node.primitive is CONCATENATE and any(t is None for t in given))
        or (node.primitive in MOVES and any(t is not None and masks.possible(t) for t in given))
    ):
        present = [t for t in given if t is not None]
        masks.put(result, lambda *found: _mask_moved(node, given, dict(zip(present, found, strict=True))), *present)
    return result


def _selected_tangent(node: Node, tangents: Sequence[Node | None], masks: Masks) -> Node:
    """The tangent of a choice of which one branch has none: masked by the condition."""
    condition, (_, yes, no) = node.inputs[0], tangents
    t = no if yes is None else yes
    assert t is not None
    if yes is None:
        condition = elementwise("logical_not", condition)
    inner = t
    if masked(t):
        condition, inner = elementwise("logical_and", condition, t.inputs[0]), t.inputs[1]
    result = elementwise("select", condition, inner, zeros(node.shape, node.dtype))
    if t in masks.rules:
        masks.share(result, t)
    return result


def _mask_moved(node: Node, tangents: Sequence[Node | None], masks: Mapping[Node, Mask]) -> Mask:
    """The mask of a linear primitive's tangent, given those of its operands' tangents."""
    operands: list[Node] = []
    for source, t in zip(node.inputs, tangents, strict=True):
        if t is not None:
            mask = masks[t]
            operands.append(everywhere(source) if mask is None else mask)
        else:
            # An index or a condition, or the zero tangent of a constant.
            operands.append(filled(False, BOOL, source.shape) if source.dtype.kind == "f" else source)
    if node.primitive is ALIAS or node.primitive is CAST:
        return operands[0]
    if node.primitive is SCATTER_ADD:
        index, reached = operands
        return elementwise("greater", make("scatter_add", (index, cast(reached, node.dtype)), node.params), 0)
    return make(node.name, tuple(operands), node.params)


def _custom_tangent(node: Node, operands: list[Node | None]) -> Node | None:
    """Forward mode of a user's reverse rule: the rule is linear in the cotangent, so its transpose is the tangent.

    A rule that has a `tangent` of its own is asked for that.
    """
    own = getattr(node.params[0], "tangent", None)
    if own is not None:
        return own(node, operands)
    stand_in = placeholder(node.shape, node.dtype)
    try:
        results = node.params[0].cotangents(stand_in, node)
    except TracedValueError as error:
        raise TracedValueError(_not_transposed(node, "asks for the value of a cotangent")) from error
    pairs = [(r, t) for r, t in zip(results, operands[1:], strict=True) if r is not None and t is not None]
    found = vjp([r for r, _ in pairs], [t for _, t in pairs], [stand_in])[0]
    if found is not None and stand_in in topological([found], Earlier(stand_in.serial)):
        raise TracedValueError(_not_transposed(node, "is not linear in the cotangents"))
    return found


def _not_transposed(node: Node, why: str) -> str:
    name = getattr(node.params[0], "name", "")
    rule = f"the reverse rule of {name}()" if name else "a reverse rule"
    return (
        f"Forward mode (jvp, jacfwd, hessian) transposes {rule}, which {why}. "
        "Use reverse mode: nb.jacrev, and nb.jacrev of nb.grad for a Hessian."
    )
