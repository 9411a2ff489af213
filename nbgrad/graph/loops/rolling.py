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

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np

from ..ir import Earlier, Node, by_serial
from ..primitives import PRIMITIVES
from .alignment import Stretch, stretches
from .fills import fill
from .growth import Growing, items_of
from .in_place import Settle, become, put_before, settled
from .loop_body import LoopNodes
from .mixed_graph import MixedGraph
from .mixed_turns import Mixture, mixtures
from .noted import current_notes
from .repetition import LEAST_NODES, LEAST_TURNS, Recording, best_start, length_said, repetitions
from .scanned_parts import FEW_PIECES, joined, part_of
from .turn_graph import MOST_KEPT, TurnGraph

MOST_PASSES = 4
MUCH_MORE = 4
"""How many times fewer operations turns of several kinds must have than what else is left of them."""
ALIAS, CONCATENATE = PRIMITIVES["alias"], PRIMITIVES["concatenate"]


def roll(outputs: Sequence[Node], outside: Collection[Node], settle: Settle, since: float = -inf) -> None:
    """Put loops in place of what repeats itself in the graph of some outputs.

    Parameters
    ----------
    outputs : sequence of nodes
        All that is wanted of a recording.
    outside : collection of nodes
        Nodes that stay as they are: those that something is differentiated by.
    settle : callable
        See `Settle`.
    since : float, optional
        The serial number after which the recording began. Earlier nodes stay as they are.
    """
    outside, earlier = frozenset(outside), Earlier(since)
    for _ in range(MOST_PASSES):
        _join_pieces(by_serial(outputs, earlier))
        order = by_serial(outputs, earlier)
        if len(order) < LEAST_NODES or not _pass(Recording.of(order, outside), outputs, settle):
            return


def _pass(recording: Recording, outputs: Sequence[Node], settle: Settle) -> bool:
    """Roll stretches that do not overlap; whether there were any."""
    if len(recording.nodes) < LEAST_NODES:
        return False
    found = stretches_in(recording)
    if contract_mixed(recording, mixed_in(recording, found), outputs, settle):
        return True
    return contract(recording, found, outputs, settle) is not None if found else False


def stretches_in(recording: Recording) -> list[Stretch]:
    """Stretches of a recording that can be loops, in their order; they do not overlap."""
    taken = np.zeros(len(recording.nodes), bool)
    found: list[Stretch] = []
    for first, period, after in repetitions(recording):
        start, end = _free(taken, first, period, after)
        if end - start < max(LEAST_TURNS * period, LEAST_NODES) or taken[start:end].any():
            continue
        begin = best_start(recording, start, period, end)
        for stretch in stretches(recording, begin, period, (end - begin) // period):
            taken[stretch.start : stretch.end] = True
            found.append(stretch)
    return sorted(found, key=lambda one: one.start)


def _free(taken: np.ndarray, start: int, period: int, end: int) -> tuple[int, int]:
    """A repetition without the few operations at its ends that are those of another loop, too."""
    head, tail = taken[start : start + period], taken[end - period : end]
    if head.any():
        start += int(np.flatnonzero(head)[-1]) + 1
    if tail.any():
        end -= period - int(tail.argmax())
    return start, end


def may_be_mixed(recording: Recording, found: Sequence[Stretch]) -> bool:
    """Whether stretches that are whole do the same in different numbers of turns, but are too few to tell kinds."""
    if _left(recording, found, 0, len(recording.nodes)) > 2 * _least_left(found):
        return False
    turns: dict[bytes, int] = {}
    for stretch in found:
        if stretch.end + stretch.period <= len(recording.nodes):
            labels = np.sort(recording.labels[stretch.start : stretch.start + stretch.period])
            if turns.setdefault(labels.tobytes(), stretch.turns) != stretch.turns:
                return True
    return False


def mixed_in(recording: Recording, found: Sequence[Stretch]) -> list[MixedGraph]:
    """Loops of turns of several kinds, where `found` stretches of turns that are alike leave much more."""
    if _left(recording, found, 0, len(recording.nodes)) < _least_left(found):
        return []
    ways: list[list[Mixture]] = []
    for way in mixtures(recording):
        ways.append([one for one in way if _says_more(recording, found, one)])
        graphs = list(filter(None, [MixedGraph.of(recording, one, keeps_all=False) for one in ways[-1]]))
        if graphs:
            return graphs
    for way in ways:
        graphs = list(filter(None, [MixedGraph.of(recording, one, keeps_all=True) for one in way]))
        if graphs:
            return graphs
    return []


def _says_more(recording: Recording, found: Sequence[Stretch], mixture: Mixture) -> bool:
    """Whether stretches leave much more to be said than turns of several kinds."""
    left = _left(recording, found, mixture.start, mixture.end)
    return left > max(LEAST_NODES, MUCH_MORE * mixture.operations(recording))


def contract_mixed(
    recording: Recording, graphs: Sequence[MixedGraph], outputs: Sequence[Node], settle: Settle
) -> list[Mixture]:
    """Put loops in place of turns of several kinds; those for which it was possible."""
    needed = _needed(recording, outputs, [graph.mixture for graph in graphs])
    return [graph.mixture for graph in graphs if _contract_mixed(recording, graph, needed, settle)]


def _contract_mixed(recording: Recording, graph: MixedGraph, needed: np.ndarray, settle: Settle) -> bool:
    mixture = graph.mixture
    positions = (mixture.start + np.flatnonzero(needed[mixture.start : mixture.end])).tolist()
    values = graph.values(positions)
    if values is None:
        return False
    nodes = [recording.nodes[k] for k in positions]
    settled(nodes, settle)
    put_before(values, recording.nodes[mixture.start].serial)
    become(nodes, values)
    notes = current_notes()
    if notes is not None:
        notes.mix(recording, mixture)
    return True


def _least_left(found: Sequence[Stretch]) -> int:
    """The least number of operations that stretches must leave for turns of several kinds to leave much less."""
    return max(LEAST_NODES, MUCH_MORE * max([stretch.period for stretch in found], default=0))


def _left(recording: Recording, found: Sequence[Stretch], start: int, end: int) -> int:
    """The operations of a part of a recording that are left to be said: one turn of each stretch, and all others.

    Where the same stretches come again and again, there will be a loop around them.
    """
    tokens: list[int] = []
    bodies: dict[bytes, int] = {}
    at = start
    labels = recording.labels
    for stretch in found:
        begin, after = max(start, stretch.start), min(end, stretch.end)
        if after - begin >= stretch.period:
            tokens += labels[at:begin].tolist()
            body = labels[stretch.start : stretch.start + stretch.period].tobytes()
            tokens.append(-1 - hash((body, stretch.turns)) % (1 << 40))
            bodies[body] = stretch.period
            at = after
    tokens += labels[at:end].tolist()
    return sum(bodies.values()) + length_said(np.array(tokens, np.int64))


def contract(
    recording: Recording,
    found: Sequence[Stretch],
    outputs: Sequence[Node],
    settle: Settle,
    goes_on: Stretch | None = None,
) -> Contracted | None:
    """Put loops in place of stretches, of which one may go on; the last one, None if there is none that pays."""
    needed = _needed(recording, outputs, found)
    parts = [part for stretch in found for part in _between_kept(recording, stretch, needed)]
    if len(parts) > len(found):
        needed = _needed(recording, outputs, parts)
    last: Contracted | None = None
    for stretch in parts:
        asked = np.flatnonzero(needed[stretch.start : stretch.end])
        last = _contract(recording, stretch, asked, settle, stretch is not goes_on) or last
    return last


def _needed(recording: Recording, outputs: Sequence[Node], found: Sequence[Stretch | Mixture]) -> np.ndarray:
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
    carried = dict.fromkeys(range(stretch.period), 1)
    for kind, place in zip(stretch.kinds, stretch.places, strict=True):
        carried[place] = max(carried[place], kind)
    cuts: set[int] = set()
    for place in np.flatnonzero(rows.any(0)).tolist():
        node = recording.nodes[stretch.start + place]
        read = np.flatnonzero(rows[: -carried[place], place])
        if len(read) * 4 < stretch.turns and stretch.turns * node.size * node.dtype.itemsize > MOST_KEPT:
            cuts.update((read + 1).tolist())
    return stretch.cut_at(sorted(cuts)) if cuts else [stretch]


@dataclass
class Contracted:
    """A stretch in whose place there is a loop now, which may grow; None if the stretch has only moved elements."""

    stretch: Stretch
    growing: Growing | None


def _contract(
    recording: Recording, stretch: Stretch, needed: np.ndarray, settle: Settle, ends: bool
) -> Contracted | None:
    """Put a loop in place of a stretch: the nodes that are needed become parts of what it gives.

    If it `ends`, there will be no more turns.
    """
    graph = TurnGraph.of(recording, stretch)
    if graph is None:
        return None
    numbers, places = np.divmod(needed, stretch.period)
    nodes = [recording.nodes[stretch.start + int(k)] for k in needed]
    asked = list(zip(numbers.tolist(), places.tolist(), strict=True))
    before = recording.nodes[stretch.start].serial
    growing: Growing | None = None
    made: LoopNodes | None = None
    if graph.only_moves:
        whole = graph.at_once({place for _, place in asked})
        settled(nodes, settle)
        new = [part_of(whole[place], turn) for turn, place in asked]
    else:
        growing = Growing(graph, settle)
        every = graph.of_all_turns(asked, stretch.turns)
        for place in sorted(every):
            turns = [turn for turn, other in asked if other == place]
            if turns == [stretch.turns - 1] and graph.body[place].dtype.kind != "O":
                every.remove(place)
                graph.carry(place)
        made = graph.loop(sorted(every))
        settled(nodes, settle)
        new = graph.values(made, asked, stretch.turns, every)
    put_before(new, before)
    become(nodes, new)
    if growing is not None and made is not None:
        growing.begin(made, asked, nodes)
        if ends:
            fill(made.node, items_of(made.node, nodes))
    notes = current_notes()
    if notes is not None:
        notes.begin(recording, stretch, growing)
    return Contracted(stretch, growing)


# ----- Lists of results -----


def _join_pieces(order: Sequence[Node]) -> None:
    """Read results that follow each other in one array, where a list of them was put together, in one piece."""
    for node in order:
        if node.primitive is CONCATENATE and len(node.inputs) >= FEW_PIECES:
            pieces = joined(node.inputs, node.params[0])
            if len(pieces) < len(node.inputs):
                put_before(pieces, node.serial)
                node.inputs = tuple(pieces)
                if len(pieces) == 1:
                    node.primitive, node.params = ALIAS, ()
