"""Rows of loops: a `loop` node runs one body again and again, and its `item` nodes are what comes out of it.

In: nothing. Out: a table of rows. Called by primitives.py. Bodies are made by loop_body.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..interpret import interpret_order
from ..ir import Node, Params, topological
from ..rows import ByBody, ShapeAndDtype, named, row

TOKEN = np.dtype(object)
"""The dtype of a `loop` node, which is no array."""
LAST, EVERY = "last", "every"
"""Kinds of items: a carried value after the last turn; a value of the body for every turn."""


def _loop(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    body, turns, _ = params
    assert len(inputs) == len(body.inputs)
    for position, (inside, outside) in enumerate(zip(body.inputs, inputs, strict=True)):
        expected = (turns, *inside.shape) if body.is_scanned(position) else inside.shape
        assert (outside.shape, outside.dtype) == (expected, inside.dtype), (position, outside, inside)
    return (), TOKEN


def _item(inputs: Sequence[Node], params: Params) -> ShapeAndDtype:
    body, turns, _ = inputs[0].params
    kind, position = params
    if kind == LAST:
        return body.carried[position].shape, body.carried[position].dtype
    node = body.nodes[position]
    return (turns, *node.shape), node.dtype


class Run:
    """The meaning of a loop: turn by turn. The carried values of all turns are kept; all else is computed if asked."""

    def __init__(self, params: Params, arrays: Sequence[np.ndarray]) -> None:
        self.body, self.turns, reverse = params
        carried, scanned = len(self.body.carried), len(self.body.scanned)
        self.constants = dict(zip(self.body.constants, arrays[carried + scanned :], strict=True))
        self.scanned = arrays[carried : carried + scanned]
        self.order = range(self.turns)[::-1] if reverse else range(self.turns)
        self.states: list[Sequence[np.ndarray]] = [arrays[:carried]]
        order = topological(self.body.following, self.body.inputs)
        for at in self.order:
            self.states.append(self._values(at, self.states[-1], self.body.following, order))

    def _values(
        self, at: int, state: Sequence[np.ndarray], nodes: Sequence[Node], order: Sequence[Node]
    ) -> list[np.ndarray]:
        """Values of the body in one turn, given those that are carried into it."""
        known = dict(self.constants)
        known.update(zip(self.body.carried, state, strict=True))
        known.update(zip(self.body.scanned, [array[at] for array in self.scanned], strict=True))
        return interpret_order(order, known, nodes)

    def item(self, kind: str, position: int) -> np.ndarray:
        """The value of an item."""
        if kind == LAST:
            return self.states[-1][position]
        node = self.body.nodes[position]
        found = np.empty((self.turns, *node.shape), node.dtype)
        order = topological([node], self.body.inputs)
        for at, state in zip(self.order, self.states, strict=False):
            found[at] = self._values(at, state, [node], order)[0]
        return found


def _run(params: Params, *arrays: np.ndarray) -> np.ndarray:
    token = np.empty((), TOKEN)
    token[()] = Run(params, arrays)
    return token


def _taken(params: Params, token: Any) -> np.ndarray:
    return token[()].item(*params)


LOOPS = named(
    loop=row("special", _loop, _run, ByBody()),
    item=row("special", _item, _taken, ByBody()),
)
