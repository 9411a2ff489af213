"""Loops that are differentiated, or done for many values at once: new loops over new bodies.

In: a `loop` node, and cotangents, tangents or batches. Out: nodes of another loop. Called by differentiate.py and
batch.py, which pass their own function for the graph of a body.

Reverse mode walks the turns backwards. What its body reads of the turn is either given to it, as results of every turn
of the first loop, or computed again: sums and products are, all that costs more is kept (`_is_kept`), unless the body
says that all is computed `again`. Forward mode and batches go through the turns once more, with the first loop's body
inside a larger one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set

from ..builders import reshape, spread, transpose
from ..ir import Node, topological, zeros
from ..masks import Masks
from ..primitives import PRIMITIVES
from .loop_body import ITEM, LOOP, Body, Extension, LoopNodes, item, like, make_loop
from .loop_masks import with_masks
from .loop_rows import EVERY, LAST

ADD, CUSTOM, GATHER, WRITE = (PRIMITIVES[name] for name in ("add", "custom", "gather", "write"))
MUCH_SMALLER = 16
"""How many times smaller than an array a part of it is that is kept in its place."""
Vjp = Callable[[Sequence[Node], Sequence["Node | None"], Sequence[Node], Masks], "list[Node | None]"]
Jvp = Callable[[Sequence[Node], Sequence[Node], Sequence["Node | None"], Masks], "list[Node | None]"]
BatchFurther = Callable[[Sequence[Node], "dict[Node, Node | None]", int], "list[Node]"]


def _has_derivative(node: Node) -> bool:
    return node.dtype.kind in "fc"


def _active_carried(body: Body, given: Set[Node], moved: Callable[[list[Node]], list[bool]]) -> list[int]:
    """The carried values that something reaches in some turn, from the placeholders in `given`.

    `moved` tells of each of the values after a turn whether something reaches it from these placeholders.
    """
    found = [k for k, node in enumerate(body.carried) if node in given]
    while True:
        active = [*[body.carried[k] for k in found], *[n for n in (*body.scanned, *body.constants) if n in given]]
        more = [k for k, reached in enumerate(moved(active)) if reached and k not in found]
        if not more:
            return sorted(found)
        found += more


# ----- Reverse mode -----


def backward(
    loop: Node, cotangents: Mapping[tuple[str, int], Node], active: Set[Node], vjp: Vjp, masks: Masks
) -> dict[int, Node]:
    """The cotangents of a loop's inputs, by their positions, given those of its items; `masks` are those outside."""
    body, turns, reverse = loop.params
    given = {inside for inside, outside in zip(body.inputs, loop.inputs, strict=True) if outside in active}
    given = {node for node in given if _has_derivative(node)}

    def reached(nodes: list[Node]) -> list[bool]:
        depends = set(nodes)
        for node in topological(body.following, depends):
            if (_has_derivative(node) or node.primitive is LOOP) and not depends.isdisjoint(node.inputs):
                depends.add(node)
        return [node in depends for node in body.following]

    moving = _active_carried(body, given, reached)
    every = {body.nodes[position]: g for (kind, position), g in cotangents.items() if kind == EVERY}
    before = [like(body.carried[k]) for k in moving]
    of_every = {node: like(node) for node in every}
    rest = [n for n in (*body.scanned, *body.constants) if n in given]
    wrt = [*[body.carried[k] for k in moving], *rest]
    outputs, seeds = [body.following[k] for k in moving] + list(every), [*before, *of_every.values()]
    starts = [cotangents.get((LAST, k)) for k in moving]
    seen = [(inside, every[node]) for node, inside in of_every.items()]
    found = with_masks(
        list(zip(before, starts, strict=True)), seen, lambda inner: vjp(outputs, seeds, wrt, inner), masks
    )
    sent = [zeros(n.shape, n.dtype) if g is None else g for n, g in zip(wrt, found.results, strict=True)]
    carried = []
    for inside, start, after in zip(before, starts, sent, strict=False):
        carried.append((inside, zeros(inside.shape, inside.dtype) if start is None else start, after))
    sums: dict[int, int] = {}
    results: dict[int, Node] = {}
    for node, g in zip(rest, sent[len(moving) :], strict=True):
        position = body.inputs.index(node)
        if body.is_scanned(position) or turns == 1:
            results[position] = g
        else:
            total = like(node)
            sums[position] = len(carried)
            carried.append((total, zeros(node.shape, node.dtype), total + g))
    first_mask = len(carried)
    carried += found.carried.values()
    masked = {position: mask for position, g in results.items() if (mask := found.of(g)) is not None}
    wanted = [*results.values(), *masked.values()]
    scanned, constants = _read_back(loop, [after for *_, after in carried] + wanted)
    # What is done again is not computed before the loop either.
    inside, before_all = (constants, {}) if body.again else ((), dict(constants))
    arrays = [*scanned, *seen, *found.scanned]
    made = make_loop(turns, carried, arrays, inside, wanted, not reverse, before_all, body.again)
    places = {k: first_mask + n for n, k in enumerate(found.carried)}
    back: dict[int, Node] = {}
    for position, k in enumerate(moving):
        if body.carried[k] in given:
            back[k] = made.last(position)
            if position in places:
                masks.put(back[k], lambda place=places[position]: made.last(place))
    for position, g in results.items():
        shape = loop.inputs[position].shape
        back[position] = reshape(made.every(g), shape)
        if position in masked:
            masks.put(back[position], lambda mask=masked[position], shape=shape: reshape(made.every(mask), shape))
    back.update({position: made.last(place) for position, place in sums.items()})
    return back


def _read_back(loop: Node, outputs: Sequence[Node]) -> tuple[list[tuple[Node, Node]], list[tuple[Node, Node]]]:
    """The values of a body that the graph of its derivative reads: for each turn, and for all turns."""
    body = loop.params[0]
    outside = dict(zip(body.inputs, loop.inputs, strict=True))
    constant = set(body.constants)
    scanned: list[tuple[Node, Node]] = []
    constants: list[tuple[Node, Node]] = []
    varying = {*body.carried, *body.scanned}
    for node in topological(body.nodes, varying):
        if not varying.isdisjoint(node.inputs):
            varying.add(node)
    kept = {node for node in body.nodes if node in varying and not body.again and _is_kept(node)}
    for node in topological(outputs, kept):
        if node in constant:
            constants.append((node, outside[node]))
        elif node in outside:
            known = node in body.scanned
            scanned.append((node, outside[node] if known else item(loop, (EVERY, body.position[node]))))
    read = {source for node in topological(outputs, kept) for source in node.inputs if source in kept}
    read.update(node for node in outputs if node in kept)
    scanned += [(node, item(loop, (EVERY, body.position[node]))) for node in body.nodes if node in read]
    return scanned, constants


def _is_kept(node: Node) -> bool:
    """Whether a value is kept for the reverse mode, because it costs more than its memory.

    A small part of a large array costs nothing, but without it the whole array would be kept for every turn.
    Of a loop inside, what it gives at its end is kept. Its turns are done again: so the memory is that of the turns of
    both loops, not of their product. An extremum is found again among values that are computed again: their last bits
    may be others, and none of them would be equal to it.
    """
    if (
        node.name in ("max", "min", "accumulate")
        or node.primitive is LOOP
        or (node.primitive is ITEM and node.params[0] == EVERY)
        or node.dtype.kind == "c"
    ):
        return False
    kind = node.primitive.kind
    if kind == "movement" or node.primitive is GATHER:
        return bool(node.inputs) and node.size * MUCH_SMALLER <= node.inputs[0].size
    if kind == "elementwise":
        return not node.primitive.light
    return kind in ("special", "reduction") and node.primitive is not WRITE


# ----- Forward mode -----


def is_token(node: Node) -> bool:
    """Whether a value of a body is a token (call_order.py), or the sum of some."""
    if node.primitive is ITEM:
        body, (kind, position) = node.inputs[0].params[0], node.params
        return kind == LAST and is_token(body.following[position])
    if node.primitive is ADD:
        return all(map(is_token, node.inputs))
    return node.primitive is CUSTOM and getattr(node.params[0], "gives_token", False)


def forward(loop: Node, tangents: Sequence[Node | None], jvp: Jvp, masks: Masks) -> Node | None:
    """A loop that carries tangents beside the values; its body knows the tangents of all values (`made_from`)."""
    body, turns, reverse = loop.params
    pairs = zip(body.inputs, tangents, strict=True)
    given = {inside: like(inside) for inside, t in pairs if t is not None and _has_derivative(inside)}
    if not given:
        return None

    def reached(nodes: list[Node]) -> list[bool]:
        return [t is not None for t in jvp(body.following, nodes, [like(node) for node in nodes], Masks())]

    moving = _active_carried(body, set(given), reached)
    for k in moving:
        given.setdefault(body.carried[k], like(body.carried[k]))
    moved = [body.carried[k] for k in moving]
    outputs = [*[body.following[k] for k in moving], *body.nodes]
    outside = dict(zip(body.inputs, zip(loop.inputs, tangents, strict=True), strict=True))
    carried = [(n, outside[n][0], after) for n, after in zip(body.carried, body.following, strict=True)]
    parts = [(given[n], t) for n in body.scanned if n in given and (t := outside[n][1]) is not None]
    # Calls whose order counts: those of a turn's tangents come after the turn's, and before those of the next turn.
    tokens = [k for k in moving if is_token(body.following[k])]
    seeds = {**given, **{body.carried[k]: given[body.carried[k]] + body.following[k] for k in tokens}}
    turn = with_masks(
        [(given[node], outside[node][1]) for node in moved],
        parts,
        lambda inner: jvp(outputs, list(seeds), list(seeds.values()), inner),
        masks,
    )
    for k, after in zip(moving, turn.results, strict=False):
        if k in tokens and after is not None:
            carried[k] = (*carried[k][:2], carried[k][2] + after)
    found = dict(zip(body.nodes, turn.results[len(moving) :], strict=True))
    found.update({body.carried[k]: given[body.carried[k]] for k in tokens})
    for node, after in zip(moved, turn.results, strict=False):
        start, nothing = outside[node][1], zeros(node.shape, node.dtype)
        carried.append((given[node], nothing if start is None else start, nothing if after is None else after))
    scanned, constants = ([(n, outside[n][0]) for n in known] for known in (body.scanned, body.constants))
    constants += [(given[n], t) for n in body.constants if n in given and (t := outside[n][1]) is not None]
    carried += turn.carried.values()
    masked = {t: mask for t in found.values() if t is not None and (mask := turn.of(t)) is not None}
    wanted = [*body.nodes, *filter(None, found.values()), *masked.values()]
    made = make_loop(turns, carried, [*scanned, *parts, *turn.scanned], constants, wanted, reverse, again=body.again)
    _note_origin(made, loop, found)
    made.body.masks = {made.inside.get(t, t): made.inside.get(mask, mask) for t, mask in masked.items()}
    there = made.body
    inputs = tuple(map(there.inputs.index, body.inputs))
    nodes = tuple([there.position[made.inside.get(node, node)] for node in body.nodes])
    there.extends = Extension(body, inputs, nodes)
    return made.node


def _note_origin(made: LoopNodes, loop: Node, found: Mapping[Node, Node | None]) -> None:
    body = loop.params[0]
    for node, position in body.position.items():
        there = found.get(node)
        made.body.made_from[position] = None if there is None else made.inside.get(there, there)


def item_tangent(node: Node, loop: Node | None, masks: Masks) -> Node | None:
    """The tangent of an item of a loop, given the loop of tangents; None if it has none."""
    found = transformed_item(node, loop)
    if found is not None and loop is not None:
        body: Body = loop.params[0]
        kind, position = found.params
        mask = body.masks.get(body.carried[position] if kind == LAST else body.nodes[position])
        if mask is not None and (kind == EVERY or mask in body.carried):
            place = body.carried.index(mask) if kind == LAST else body.position[mask]
            masks.put(found, lambda: item(loop, (kind, place)))
    return found


def transformed_item(node: Node, loop: Node | None) -> Node | None:
    """An item of a loop, taken from the loop that was made of it; None if that has none."""
    if loop is None:
        return None
    kind, position = node.params
    body: Body = loop.params[0]
    old: Body = node.inputs[0].params[0]
    where = position if kind == EVERY else old.position[old.carried[position]]
    there = body.made_from[where]
    if there is None:
        return None
    return item(loop, (LAST, body.carried.index(there)) if kind == LAST else (EVERY, body.position[there]))


# ----- Many values at once -----


def batched_loop(loop: Node, operands: Sequence[Node | None], size: int, batch_further: BatchFurther) -> Node:
    """The loop for many values at once: each turn does that of all of them."""
    body, turns, reverse = loop.params
    given = {
        inside: like(inside, (size, *inside.shape))
        for inside, t in zip(body.inputs, operands, strict=True)
        if t is not None
    }

    def batched(nodes: list[Node]) -> dict[Node, Node | None]:
        known: dict[Node, Node | None] = dict.fromkeys(body.inputs)
        known.update({node: given.setdefault(node, like(node, (size, *node.shape))) for node in nodes})
        batch_further(body.nodes, known, size)
        return known

    moving = _active_carried(body, set(given), lambda nodes: [batched(nodes)[n] is not None for n in body.following])
    known = batched([*[body.carried[k] for k in moving], *[n for n in (*body.scanned, *body.constants) if n in given]])
    outside = dict(zip(body.inputs, zip(loop.inputs, operands, strict=True), strict=True))
    carried = []
    for k, (node, after) in enumerate(zip(body.carried, body.following, strict=True)):
        one, many = outside[node]
        if k in moving:
            carried.append((given[node], spread(one, many, size), spread(after, known[after], size)))
        else:
            carried.append((node, one, after))
    scanned, constants = [], []
    for node in body.scanned:
        one, many = outside[node]
        turned = None if many is None else transpose(many, (1, 0, *range(2, many.ndim)))
        scanned.append((node, one) if turned is None else (given[node], turned))
    for node in body.constants:
        one, many = outside[node]
        constants.append((node, one) if many is None else (given[node], many))
    found = {node: known[node] or node for node in body.nodes}
    made = make_loop(turns, carried, scanned, constants, list(found.values()), reverse, again=body.again)
    _note_origin(made, loop, found)
    made.body.unchanged = frozenset([body.position[node] for node, made_of in found.items() if made_of is node])
    return made.node


def batched_item(node: Node, loop: Node, size: int) -> Node:
    """An item of a loop for many values at once."""
    made = transformed_item(node, loop)
    assert made is not None
    kind, position = node.params
    body: Body = node.inputs[0].params[0]
    where = position if kind == EVERY else body.position[body.carried[position]]
    if where in loop.params[0].unchanged:
        return spread(made, None, size)
    return made if kind == LAST else transpose(made, (1, 0, *range(2, made.ndim)))
