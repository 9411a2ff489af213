"""Paths: what `jit` keeps of one recording of a function.

In: the results of a recording. Out: `Path`: the program, what it takes and gives, and what must hold for it to be taken
again. Called by jit.py and shortcuts.py.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

from .. import config
from ..errors import NbgradError
from ..graph.interpret import interpret
from ..graph.ir import Node, on_host
from ..graph.trace import CELLS
from ..record.written_arguments import store
from ..runtime.cpu_program import MISSED, Program
from ..runtime.evaluate import at_home, uploaded
from ..runtime.native_tensors import Entry
from ..transforms.arguments import as_kind
from .device_calls import Target


@dataclass
class Path:
    """One recorded way through the function."""

    program: Program | None
    outputs: list[Node]
    arguments: list[Node]
    """Nodes of the run-time inputs, then those of `parameters`."""
    kinds: list[str]
    treespec: Any
    leaves: list[Any]
    guards: list[np.ndarray]
    checks: list[tuple[str, type[NbgradError]]]
    native: bool
    """Whether the program takes the caller's arguments, and gives what the caller gets."""
    structure: list[int] | None
    """How results are packed by native code; None if it cannot."""
    parameters: list[tuple[Any, Node]]
    """Parameters that the function reads, and the node that stood for each: inputs after the arguments."""
    written: list[Any]
    """Parameters that the function writes to: their new values are outputs after all others."""
    cells: dict[Any, Any]
    """The state, such as `training`, that the Cells taking part (and Parameters that were differentiated with respect
    to) had when the path was recorded."""
    version: object | None
    """The token of all Cells for which `cells` is known to hold; None if Cells have lists or dicts, which change
    without notice."""
    device: Any = None
    """The device that the program runs on; None for the processor."""
    stores: tuple[int, ...] = ()
    """Which of the arguments the function writes to: their new values are the last outputs."""
    orders: tuple[Any, ...] | None = None
    """How the arguments lay in memory, if what was recorded depends on it."""
    entry: Entry | None = None
    """The native callable that takes Tensors and Parameters, once it was made."""
    repeated: bool = False
    """Whether it was taken more than once, so that such a callable pays."""

    @property
    def result_count(self) -> int:
        """Outputs that the user gets; guards, checks and written Parameters follow them."""
        after = len(self.guards) + len(self.checks) + len(self.written) + len(self.stores)
        return len(self.outputs) - after

    def filled(self, values: Sequence[Any]) -> Any:
        """The results in the containers that the function returns, with what else is in there."""
        results = iter(values)
        leaves = [next(results) if leaf is RESULT else one_callers(leaf) for leaf in self.leaves]
        return optree.tree_unflatten(self.treespec, leaves)

    def current(self) -> bool:
        """Whether the Cells and Parameters that took part are still as they were; only values may differ."""
        if self.version is not CELLS.token:
            now = CELLS.token
            if any(cell._state() != known for cell, known in self.cells.items()):
                return False
            if self.version is not None:
                self.version = now
                if self.entry is not None and self.cells:
                    self.entry.expect(now)
        for parameter, node in self.parameters:
            leaf = parameter._leaf
            if leaf.shape != node.shape or leaf.dtype != node.dtype or leaf.device is not node.device:
                return False
        return True

    def computed(self, arrays: Sequence[Any], targets: Sequence[Target] | None = None) -> list[Any]:
        """All outputs of a program of a device, some of them in `targets`."""
        if self.program is None or config.interpret():
            values = [v.to_host() if hasattr(v, "to_host") else np.asarray(v) for v in arrays]
            known = dict(zip(self.arguments, values, strict=True))
            found: Sequence[Any] = [uploaded(np.array(v), self.device) for v in interpret(self.outputs, known)]
        elif targets is None or self.guards or self.checks or self.written or self.stores:
            found = self.program.call(*arrays)
        else:
            found = [target.array(arrays, targets) for target in targets]
            if self.program.call_into(*arrays, *found) is MISSED:
                found = self.program.call(*arrays)
        return self.at_home(found)

    def at_home(self, found: Sequence[Any]) -> list[Any]:
        """Outputs that a device has computed, those that belong to the processor there."""
        return at_home(found, self.outputs)

    def finished(self, found: Sequence[Any], inputs: Sequence[Any], giver: Any = False) -> Any:
        """What the caller gets, after guards, checks, Parameters and the caller's arrays, `inputs`, got theirs;
        `MISSED` if it was the wrong path."""
        count = self.result_count
        for value, expected in zip(found[count:], self.guards, strict=False):
            if not np.array_equal(on_host(value), expected, equal_nan=True):
                return MISSED
        at = count + len(self.guards)
        for value, (message, error) in zip(found[at:], self.checks, strict=False):
            if not bool(on_host(value)):
                raise error(message)
        if self.written:
            first = at + len(self.checks)
            type(self.written[0])._hold_all(self.written, found[first : first + len(self.written)])
        for position, value in zip(self.stores, found[len(found) - len(self.stores) :], strict=True):
            store(inputs[position], value)
        kinds = [giver if kind == "lent" else kind for kind in self.kinds]
        return self.filled([as_kind(array, kind) for array, kind in zip(found, kinds, strict=False)])


class Paths(list[Path]):
    """The paths of one signature, the one taken last first; `used` is greater the later it was used."""

    used = 0


RESULT = object()
"""Stands for results among the leaves of what the function returns."""


def one_callers(leaf: Any) -> Any:
    """What a function returns and no argument has a part in, as one caller gets it, who may write to it."""
    if isinstance(leaf, np.generic):
        return leaf
    return copy.deepcopy(leaf) if isinstance(leaf, set | bytearray) or hasattr(type(leaf), "__array__") else leaf
