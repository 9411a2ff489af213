"""Repetition: where a recording does the same again and again.

In: the nodes of a recording in the order of their making. Out: `Recording`, the operations among them as flat arrays,
and `repetitions`: stretches of it in which every operation comes again one period later. Called by rolling.py.

Sources are no operations: numbers and constants are made once, or anew in each turn, as it happens. They are known by
their value ("atoms"). Numbers that may vary from turn to turn, such as the start of a slice, are no part of a label.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..ir import Node, Params
from ..primitives import PRIMITIVES

LEAST_TURNS = 8
LEAST_NODES = 256
"""Shorter repetitions are as fast written out: what passes from turn to turn stays in registers."""
MOST_PERIODS = 24
GRAMS = (4, 16)
"""Lengths of the pieces that are looked for again."""
SMALL_CONSTANT = 64
"""Bytes up to which constants are known by their values."""
BROADCAST, CONSTANT, INPUT, LITERAL, PAD, SLICE, WRITE = (
    PRIMITIVES[name] for name in "broadcast constant input literal pad slice write".split()
)


class _Places(dict[Node, int]):
    """The positions of operations; whatever else is asked for becomes an atom, equal sources one."""

    def __init__(self, atoms: list[Node], outside: Collection[Node]) -> None:
        self.atoms, self.outside = atoms, outside
        self.known: dict[Any, int] = {}

    def __missing__(self, node: Node) -> int:
        key = node if node in self.outside else atom_key(node)
        atom = self.known.get(key)
        if atom is None:
            atom = self.known[key] = -1 - len(self.atoms)
            self.atoms.append(node)
        self[node] = atom
        return atom


@dataclass
class Recording:
    """Operations: `first` and `numbers_from` say where the operands and numbers of each begin, as in sparse matrices.

    An operand is the position of an operation, or -1 - k for atom k.
    """

    nodes: list[Node] = field(default_factory=list)
    atoms: list[Node] = field(default_factory=list)
    labels: Any = None
    first: Any = None
    operands: Any = None
    numbers_from: Any = None
    numbers: Any = None
    places: dict[Node, int] = field(default_factory=dict)

    @staticmethod
    def of(order: Sequence[Node], outside: Collection[Node]) -> Recording:
        """The recording of nodes in the order of their making; those in `outside` are atoms."""
        made = Recording()
        nodes = made.nodes
        made.places = places = _Places(made.atoms, outside)
        known_labels: dict[Any, int] = {}
        labels: list[int] = []
        first, operands = [0], list[int]()
        numbers_from, numbers = [0], list[int]()
        for node in order:
            if node in outside or is_source(node):
                continue
            inputs, primitive, params = node.inputs, node.primitive, node.params
            if primitive is SLICE or primitive is PAD or primitive is WRITE:
                numbers += starts_of(node)
                params = fixed_part(node)
            label = (primitive, params, node.shape, node.dtype.num, len(inputs))
            labels.append(known_labels.setdefault(label, len(known_labels)))
            if len(inputs) == 2:
                operands += (places[inputs[0]], places[inputs[1]])
            elif len(inputs) == 1:
                operands.append(places[inputs[0]])
            else:
                operands += [places[source] for source in inputs]
            places[node] = len(nodes)
            nodes.append(node)
            first.append(len(operands))
            numbers_from.append(len(numbers))
        made.labels, made.first = np.array(labels, np.int64), np.array(first, np.int64)
        made.operands = np.array(operands, np.int64)
        made.numbers_from, made.numbers = np.array(numbers_from, np.int64), np.array(numbers, np.int64)
        return made

    def operands_of(self, start: int, period: int, turns: int) -> np.ndarray:
        """The operands of a repetition: a row for each turn."""
        return _rows(self.operands, self.first, start, period, turns)

    def numbers_of(self, start: int, period: int, turns: int) -> np.ndarray:
        """The numbers of a repetition: a row for each turn."""
        return _rows(self.numbers, self.numbers_from, start, period, turns)


def _rows(values: np.ndarray, begins: np.ndarray, start: int, period: int, turns: int) -> np.ndarray:
    return values[begins[start] : begins[start + period * turns]].reshape(turns, -1)


def fixed_part(node: Node) -> Params:
    """The parameters of a slice, a write or a pad that are the same in all turns: all but where it starts."""
    if node.primitive is PAD:
        return tuple([low + high for low, high in node.params[0]])
    return tuple([(count, step) for _, count, step in node.params[0]])


def starts_of(node: Node) -> list[int]:
    """Where a slice or a write starts, or the widths of a pad before an array, along each axis."""
    return [pair[0] for pair in node.params[0]]


def is_number(node: Node) -> bool:
    """Whether a node is a number that is known while the function is recorded."""
    return not node.shape and (node.primitive is LITERAL or (node.primitive is CONSTANT and type(node.value) is _ARRAY))


_ARRAY = np.ndarray


def repeats_number(node: Node) -> bool:
    """Whether a node is such a number, everywhere."""
    return node.primitive is BROADCAST and is_number(node.inputs[0])


def is_source(node: Node) -> bool:
    """Whether a node is no operation: it has no inputs, or is a number that is repeated."""
    return not node.inputs or repeats_number(node)


def atom_key(node: Node) -> Any:
    """Equal for sources of equal values; of any other node, itself."""
    primitive = node.primitive
    if node.inputs:
        return (primitive, atom_key(node.inputs[0]), node.shape) if repeats_number(node) else node
    value = node.value
    if primitive is CONSTANT and type(value) is np.ndarray and value.nbytes <= SMALL_CONSTANT:
        return (primitive, value.tobytes(), node.dtype.num, node.shape, node.weak)
    if primitive is CONSTANT or primitive is INPUT:
        return node
    return (primitive, node.params, node.dtype.num)


# ----- Periods -----


def repetitions(recording: Recording) -> Iterator[tuple[int, int, int]]:
    """Stretches that repeat themselves, the shortest periods first: (start, period, end).

    From the start to the end less a period, every operation has the label of the one a period later.
    """
    labels = recording.labels
    for period in _periods(labels):
        apart = np.flatnonzero(labels[:-period] != labels[period:])
        edges = np.concatenate([[-1], apart, [len(labels) - period]])
        lengths = np.diff(edges) - 1 + period
        for k in np.flatnonzero(lengths >= max(LEAST_TURNS * period, LEAST_NODES)):
            start = int(edges[k]) + 1
            yield start, period, start + int(lengths[k])


def _periods(labels: np.ndarray) -> list[int]:
    """The distances at which most pieces of the sequence come again."""
    count = len(labels)
    seen: dict[int, int] = {}
    for length in GRAMS:
        if count < LEAST_TURNS * length // 4:
            continue
        pieces = np.zeros(count - length + 1, np.uint64)
        for k in range(length):
            pieces = pieces * np.uint64(0x9E3779B97F4A7C15) + labels[k : count - length + 1 + k].astype(np.uint64)
            pieces += np.uint64(1)
        order = np.argsort(pieces, kind="stable")
        distances = (order[1:] - order[:-1])[pieces[order[1:]] == pieces[order[:-1]]]
        times = np.bincount(distances[(distances > 0) & (distances <= count // LEAST_TURNS)])
        for period in np.flatnonzero(times >= LEAST_TURNS - 2).tolist():
            seen[period] = max(seen.get(period, 0), int(times[period]))
    return sorted(sorted(seen, key=lambda period: -seen[period])[:MOST_PERIODS])


def length_said(labels: np.ndarray) -> int:
    """The length of a sequence of labels and of loops (negative), in which loops around loops are said once."""
    left = np.ones(len(labels), bool)
    for period in _periods(labels):
        apart = np.flatnonzero(labels[:-period] != labels[period:])
        edges = np.concatenate([[-1], apart, [len(labels) - period]])
        for k in np.flatnonzero(np.diff(edges) - 1 >= (LEAST_TURNS - 1) * period):
            second, end = edges[k] + 1 + period, edges[k + 1] + period
            if (labels[second : second + period] < 0).any():
                left[second:end] = False
    return int(left.sum())


def best_start(recording: Recording, start: int, period: int, end: int) -> int:
    """Where turns shall begin: the place at which the fewest values are passed from one turn to the next.

    A loop itself is no value that can be passed, so it stays in the turn of its items.
    """
    middle = start + (end - start) // period // 2 * period
    first, operands = recording.first, recording.operands
    low, high = max(start, middle - 2 * period), min(end, middle + 2 * period)
    used = operands[first[low] : first[high]]
    readers = np.repeat(np.arange(low, high), np.diff(first[low : high + 1]))
    inside = used >= low
    last = np.zeros(high - low, np.int64)
    np.maximum.at(last, used[inside] - low, readers[inside])
    made = np.arange(low, high)
    crossing = np.zeros(high - low + 1, np.int64)
    kept = last > made
    weights = np.array([len(made) if recording.nodes[k].dtype.kind == "O" else 1 for k in made[kept].tolist()], int)
    np.add.at(crossing, made[kept] + 1 - low, weights)
    np.add.at(crossing, last[kept] + 1 - low, -weights)
    counts = np.cumsum(crossing)[middle - low : middle - low + period]
    return start + int(np.argmin(counts))
