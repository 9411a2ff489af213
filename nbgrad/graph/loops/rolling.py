"""Rolling: loops found in what a Python loop has recorded, and put in its place.

In: the outputs of a recording. Out: nothing; the nodes themselves change, so that everything that holds one of them has
the rolled form: a value of one turn is now a part of what the loop gives. Called before a recording is differentiated,
compiled or looked up, by the transforms.

How. repetition.py finds stretches in which every operation comes again one period later. Turn by turn, each operand is
(alignment.py) of the same turn, of a turn before (carried), one value for all turns, or another value in each turn
(scanned). Where a turn breaks this, a stretch ends and another may begin. Inner loops are shorter, so they are found
first; then the sequence, in which each of them is one operation, is looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from ..ir import Node, by_serial
from ..primitives import PRIMITIVES
from .alignment import Stretch, stretches
from .repetition import LEAST_NODES, Recording, best_start, repetitions
from .turn_graph import FEW_PIECES, TurnGraph, joined, part_of

LEAST_DEPTH = 64
"""Graphs that are less deep have no loop worth rolling."""
MOST_PASSES = 4
ALIAS, CONCATENATE = PRIMITIVES["alias"], PRIMITIVES["concatenate"]


def roll(outputs: Sequence[Node], outside: Collection[Node], settle: Callable[[Node], object]) -> None:
    """Put loops in place of what repeats itself in the graph of some outputs.

    Parameters
    ----------
    outputs : sequence of nodes
        All that is wanted of a recording.
    outside : collection of nodes
        Nodes that stay as they are: those that something is differentiated by.
    settle : callable
        Makes a node know how its value lies in memory, which then no longer follows from its operands.
    """
    if max([node.depth for node in outputs], default=0) < LEAST_DEPTH:
        return
    outside = frozenset(outside)
    for _ in range(MOST_PASSES):
        order = by_serial(outputs)
        if len(order) < LEAST_NODES:
            return
        recording = Recording.of(order, outside)
        rolled = _pass(recording, outputs, settle)
        if not rolled:
            return
        _join_pieces(by_serial(outputs))


def _pass(recording: Recording, outputs: Sequence[Node], settle: Callable[[Node], object]) -> bool:
    """Roll stretches that do not overlap; whether there were any."""
    count = len(recording.nodes)
    if count < LEAST_NODES:
        return False
    taken = np.zeros(count, bool)
    found: list[Stretch] = []
    for start, period, end in repetitions(recording):
        if taken[start:end].any():
            continue
        begin = best_start(recording, start, period, end)
        for stretch in stretches(recording, begin, period, (end - begin) // period):
            taken[stretch.start : stretch.end] = True
            found.append(stretch)
    if not found:
        return False
    readers = np.repeat(np.arange(count), np.diff(recording.first))
    wanted = np.zeros(count, bool)
    wanted[[place for node in outputs if (place := recording.places[node]) >= 0]] = True
    rolled = False
    for stretch in sorted(found, key=lambda one: one.start):
        sources = recording.operands
        leaves = (sources >= stretch.start) & (sources < stretch.end)
        leaves &= (readers < stretch.start) | (readers >= stretch.end)
        needed = wanted[stretch.start : stretch.end].copy()
        needed[sources[leaves] - stretch.start] = True
        rolled |= _contract(recording, stretch, np.flatnonzero(needed), settle)
    return rolled


def _contract(recording: Recording, stretch: Stretch, needed: np.ndarray, settle: Callable[[Node], object]) -> bool:
    """Put a loop in place of a stretch: the nodes that are needed become parts of what it gives."""
    graph = TurnGraph.of(recording, stretch)
    if graph is None:
        return False
    turns, places = np.divmod(needed, stretch.period)
    nodes = [recording.nodes[stretch.start + int(k)] for k in needed]
    for node in nodes:
        if node.layout is not None:
            settle(node)
    asked = list(zip(turns.tolist(), places.tolist(), strict=True))
    new: list[Node] = []
    if graph.only_moves:
        whole = graph.at_once({place for _, place in asked})
        new = [part_of(whole[place], turn) for turn, place in asked]
    else:
        read: dict[int, set[int]] = {}
        for turn, place in asked:
            read.setdefault(place, set()).add(turn)
        every = {place for place, those in read.items() if not graph.keeps(place, those)}
        made = graph.loop(sorted(every))
        arrays = {place: made.every(graph.body[place]) for place in every}
        for turn, place in asked:
            number = None if place in every else graph.kept[place, stretch.turns - 1 - turn]
            new.append(part_of(arrays[place], turn) if number is None else made.last(number))
    _put_in_order(new, recording.nodes[stretch.start])
    for node, value in zip(nodes, new, strict=True):
        node.primitive, node.inputs, node.params = value.primitive, value.inputs, value.params
    return True


def _put_in_order(new: Sequence[Node], before: Node) -> None:
    """Number new nodes, and numbers made meanwhile, so that they come after all they are made of, and before a node."""
    fresh: dict[Node, None] = {}
    high = before.serial
    low = high - 1
    waiting = list(new)
    for node in waiting:
        if node.serial < high:
            low = max(low, node.serial)
        elif node not in fresh:
            fresh[node] = None
            waiting += node.inputs
    step = (high - low) / (len(fresh) + 1)
    for number, node in enumerate(sorted(fresh, key=lambda node: node.serial), 1):
        node.serial = low + number * step


# ----- Lists of results -----


def _join_pieces(order: Sequence[Node]) -> None:
    """Read results that follow each other in one array, where a list of them was put together, in one piece."""
    for node in order:
        if node.primitive is CONCATENATE and len(node.inputs) >= FEW_PIECES:
            pieces = joined(node.inputs, node.params[0])
            if len(pieces) < len(node.inputs):
                _put_in_order(pieces, node)
                node.inputs = tuple(pieces)
                if len(pieces) == 1:
                    node.primitive, node.params = ALIAS, ()
