"""Loops rewritten: without what nobody asks for, joined with larger ones, or written out turn by turn.

In: output nodes. Out: the same values from other loops, or from none. Called by the front end of programs, and by
whatever has no rule for loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..builders import concatenate, reshape, slice_axes
from ..ir import Node, make, topological, with_inputs, zeros
from .loop_body import ITEM, LOOP, Body, Extension, is_reversed, item, turns_of
from .loop_rows import EVERY, LAST
from .origins import walked


def has_loops(order: Sequence[Node]) -> bool:
    """Whether there is a loop among nodes."""
    return any(node.primitive is LOOP for node in order)


# ----- Loops that others do too -----


def joined(outputs: Sequence[Node]) -> dict[Node, Node]:
    """The items of loops that larger loops of the same graph do too, and the items of these that they equal."""
    order = topological(outputs)
    loops = [node for node in order if node.primitive is LOOP]
    larger: dict[Node, tuple[Node, Extension]] = {}
    for loop in loops:
        known = loop.params[0].extends
        if known is None:
            continue
        inputs = tuple([loop.inputs[k] for k in known.inputs])
        for other in loops:
            same = other.params == (known.body, *loop.params[1:]) and other.inputs == inputs
            if same and other is not loop and other not in topological([loop]):
                larger[other] = (loop, known)
    found: dict[Node, Node] = {}
    for node in order if larger else ():
        if node.primitive is ITEM and node.inputs[0] in larger:
            loop, known = larger[node.inputs[0]]
            kind, position = node.params
            found[node] = item(loop, (kind, known.inputs[position] if kind == LAST else known.nodes[position]))
    return found


# ----- Without what nobody asks for -----


def pruned(outputs: Sequence[Node]) -> list[Node]:
    """The outputs, from loops that compute only what something reads; all other nodes stay the same objects."""
    order = topological(outputs)
    if not has_loops(order):
        return list(outputs)
    live = set(outputs)
    asked: dict[Node, set[tuple[str, int]]] = {}
    bodies: dict[Node, _Needed] = {}
    for node in reversed(order):
        if node not in live:
            continue
        if node.primitive is LOOP:
            needed = bodies[node] = _Needed(node.params[0], asked[node])
            live.update(node.inputs[k] for k in needed.inputs)
        else:
            if node.primitive is ITEM:
                asked.setdefault(node.inputs[0], set()).add(node.params)
            live.update(node.inputs)
    new: dict[Node, Node] = {}
    for node in walked(order):
        if node not in live:
            continue
        if node.primitive is LOOP:
            needed = bodies[node]
            inputs = tuple([new[node.inputs[k]] for k in needed.inputs])
            new[node] = make("loop", inputs, (needed.body, *node.params[1:]))
        elif node.primitive is ITEM:
            new[node] = item(new[node.inputs[0]], bodies[node.inputs[0]].item(node.params))
        else:
            inputs = tuple([new[source] for source in node.inputs])
            new[node] = node if inputs == node.inputs else with_inputs(node, inputs)
    return [new[node] for node in outputs]


class _Needed:
    """The part of a body that some items need: `inputs` are the positions of the inputs that are left."""

    def __init__(self, whole: Body, items: set[tuple[str, int]]) -> None:
        self.whole = whole
        carried = {position for kind, position in items if kind == LAST}
        every = [whole.nodes[position] for kind, position in sorted(items) if kind == EVERY]
        while True:
            read = set(topological([*[whole.following[k] for k in carried], *every]))
            more = {k for k, node in enumerate(whole.carried) if node in read}
            if more <= carried:
                break
            carried |= more
        self.carried = sorted(carried)
        scanned, constants = ([n for n in group if n in read] for group in (whole.scanned, whole.constants))
        kept = [whole.carried[k] for k in self.carried]
        following = [whole.following[k] for k in self.carried]
        self.body = Body(kept, scanned, constants, following, every, whole.again)
        self.inputs = [whole.inputs.index(node) for node in self.body.inputs]

    def item(self, which: tuple[str, int]) -> tuple[str, int]:
        """The item of a loop with this body that one of the whole loop becomes."""
        kind, position = which
        if kind == LAST:
            return kind, self.carried.index(position)
        return kind, self.body.position[self.whole.nodes[position]]


# ----- With other nodes -----


def substituted(outputs: Sequence[Node], replaced: Mapping[Node, Node]) -> list[Node]:
    """The outputs with nodes in place of others, also in the graphs of these."""
    new: dict[Node, Node] = {}
    stack: list[tuple[Node, bool]] = [(node, False) for node in reversed(outputs)]
    while stack:
        node, ready = stack.pop()
        if node in new:
            continue
        better = replaced.get(node)
        sources = node.inputs if better is None else (better,)
        if not ready:
            stack.append((node, True))
            stack += [(source, False) for source in reversed(sources) if source not in new]
        elif better is not None:
            new[node] = new[better]
        else:
            inputs = tuple([new[source] for source in sources])
            new[node] = node if inputs == sources else with_inputs(node, inputs)
    return [new[node] for node in outputs]


# ----- Turn by turn -----


def written_out(outputs: Sequence[Node], which: Callable[[Node], bool] = lambda _: True) -> list[Node]:
    """The outputs without loops, or without those of a kind: the bodies of all turns, one after the other."""
    order = topological(outputs)
    if not any(node.primitive is LOOP and which(node) for node in order):
        return list(outputs)
    new: dict[Node, Node] = {}
    turns: dict[Node, list[dict[Node, Node]]] = {}
    asked: dict[Node, list[Node]] = {}
    for node in order:
        if node.primitive is ITEM and node.params[0] == EVERY:
            body = node.inputs[0].params[0]
            asked.setdefault(node.inputs[0], []).append(body.nodes[node.params[1]])
    for node in order:
        if node.primitive is LOOP and which(node):
            turns[node] = _turns(node, [new[source] for source in node.inputs], asked.get(node, []))
        elif node.primitive is ITEM and node.inputs[0] in turns:
            new[node] = _item(node, turns[node.inputs[0]])
        else:
            inputs = tuple([new[source] for source in node.inputs])
            new[node] = node if inputs == node.inputs else with_inputs(node, inputs)
    return [new[node] for node in outputs]


def _turns(loop: Node, inputs: Sequence[Node], asked: Sequence[Node]) -> list[dict[Node, Node]]:
    """The nodes of each turn by those of the body; at the end, the values that are carried out of the last one."""
    body: Body = loop.params[0]
    count = turns_of(loop)
    known = dict(zip(body.inputs, inputs, strict=True))
    wanted = [*body.following, *asked]
    parts = written_out(wanted)
    order = topological(parts, body.inputs)
    found: list[dict[Node, Node]] = []
    state = list(inputs[: len(body.carried)])
    for turn in range(count):
        at = count - 1 - turn if is_reversed(loop) else turn
        values = dict(zip(body.constants, inputs[len(body.carried) + len(body.scanned) :], strict=True))
        values.update(zip(body.carried, state, strict=True))
        values.update({node: _slice(known[node], at) for node in body.scanned})
        for node in order:
            values[node] = with_inputs(node, tuple([values[source] for source in node.inputs])) if node.inputs else node
        made = {node: values[part] for node, part in zip(wanted, parts, strict=True)}
        found.append({**values, **made})
        state = [made[node] for node in body.following]
    return [*found, dict(zip(body.carried, state, strict=True))]


def _slice(array: Node, at: int) -> Node:
    axes = [(at, 1, 1), *[(0, n, 1) for n in array.shape[1:]]]
    return reshape(slice_axes(array, axes), array.shape[1:])


def _item(node: Node, turns: Sequence[dict[Node, Node]]) -> Node:
    loop = node.inputs[0]
    body: Body = loop.params[0]
    kind, position = node.params
    if kind == LAST:
        return turns[-1][body.carried[position]]
    wanted = body.nodes[position]
    if not turns_of(loop):
        return zeros(node.shape, node.dtype)
    every = [reshape(values[wanted], (1, *wanted.shape)) for values in turns[:-1]]
    return concatenate(every[::-1] if is_reversed(loop) else every, 0)
