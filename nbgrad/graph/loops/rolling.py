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
from itertools import pairwise

import numpy as np

from ..ir import Node, by_serial
from ..primitives import PRIMITIVES
from .alignment import Stretch, stretches
from .repetition import LEAST_NODES, Recording, best_start, repetitions
from .turn_graph import FEW_PIECES, TurnGraph, joined, part_of

LEAST_DEPTH = 64
"""Graphs that are less deep have no loop worth rolling."""
MOST_PASSES = 4
MOST_KEPT = 1 << 24
"""Bytes of an array of every turn of which only a few turns are read."""
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
        if len(order) < LEAST_NODES or not _pass(Recording.of(order, outside), outputs, settle):
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
    needed = _needed(recording, outputs, found)
    parts = [part for stretch in found for part in _between_kept(recording, stretch, needed)]
    if len(parts) > len(found):
        needed = _needed(recording, outputs, parts)
    rolled = False
    for stretch in sorted(parts, key=lambda one: one.start):
        rolled |= _contract(recording, stretch, np.flatnonzero(needed[stretch.start : stretch.end]), settle)
    return rolled


def _needed(recording: Recording, outputs: Sequence[Node], found: Sequence[Stretch]) -> np.ndarray:
    """The operations that are outputs, or that something reads which is not in the same stretch."""
    count = len(recording.nodes)
    needed = np.zeros(count, bool)
    needed[[place for node in outputs if (place := recording.places[node]) >= 0]] = True
    stretch_of = np.full(count, -1)
    for number, stretch in enumerate(found):
        stretch_of[stretch.start : stretch.end] = number
    inner = recording.operands >= 0
    sources = recording.operands[inner]
    readers = np.repeat(np.arange(count), np.diff(recording.first))[inner]
    needed[sources[stretch_of[sources] != stretch_of[readers]]] = True
    return needed


def _between_kept(recording: Recording, stretch: Stretch, needed: np.ndarray) -> list[Stretch]:
    """A stretch, or its parts that end where something reads a large array of few turns.

    An array of every turn would need more memory than those.
    """
    rows = needed[stretch.start : stretch.end].reshape(stretch.turns, stretch.period)
    cuts: set[int] = set()
    for place in np.flatnonzero(rows.any(0)).tolist():
        node = recording.nodes[stretch.start + place]
        read = np.flatnonzero(rows[:-1, place])
        if len(read) * 4 < stretch.turns and stretch.turns * node.size * node.dtype.itemsize > MOST_KEPT:
            cuts.update((read + 1).tolist())
    return stretch.cut_at(sorted(cuts)) if cuts else [stretch]


def _contract(recording: Recording, stretch: Stretch, needed: np.ndarray, settle: Callable[[Node], object]) -> bool:
    """Put a loop in place of a stretch: the nodes that are needed become parts of what it gives."""
    graph = TurnGraph.of(recording, stretch)
    if graph is None:
        return False
    turns, places = np.divmod(needed, stretch.period)
    nodes = [recording.nodes[stretch.start + int(k)] for k in needed]
    asked = list(zip(turns.tolist(), places.tolist(), strict=True))
    new: list[Node] = []
    for node in nodes:
        if node.size < 2:
            node.layout = None
        elif node.layout is not None:
            settle(node)
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
    _put_in_order(new, recording.nodes[stretch.start], recording.serial_before(stretch.start))
    for node, value in zip(nodes, new, strict=True):
        node.primitive, node.inputs, node.params = value.primitive, value.inputs, value.params
    return True


def _put_in_order(new: Sequence[Node], before: Node, after: float) -> None:
    """Number new nodes, and numbers made meanwhile, so that they come after all they are made of, and before a node.

    `after` is the serial number of the node ahead of that, or one that no other node has.
    """
    fresh: dict[Node, None] = {}
    waiting = list(new)
    for node in waiting:
        if node.serial >= before.serial and node not in fresh:
            fresh[node] = None
            waiting += node.inputs
    step = (before.serial - after) / (len(fresh) + 1)
    for number, node in enumerate(sorted(fresh, key=lambda node: node.serial), 1):
        node.serial = after + number * step


# ----- Lists of results -----


def _join_pieces(order: Sequence[Node]) -> None:
    """Read results that follow each other in one array, where a list of them was put together, in one piece."""
    for ahead, node in pairwise(order):
        if node.primitive is CONCATENATE and len(node.inputs) >= FEW_PIECES:
            pieces = joined(node.inputs, node.params[0])
            if len(pieces) < len(node.inputs):
                _put_in_order(pieces, node, ahead.serial)
                node.inputs = tuple(pieces)
                if len(pieces) == 1:
                    node.primitive, node.params = ALIAS, ()
