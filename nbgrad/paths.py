"""Paths: what `jit` keeps of one recording of a function, and the native callable for calls that take it again.

In: the results of a recording. Out: `Path`, and `shortcut`, which makes a native callable where a path's arguments and
results can be read and made by native code. Called by jit.py.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

from . import config
from .callers import store
from .device_paths import Target, device_shortcut
from .errors import NbgradError
from .graph.interpret import interpret
from .graph.ir import HOST, PRIMITIVES, Node, on_host, plain_dtype
from .graph.trace import CELLS
from .lifting import as_kind, flatten
from .parameter import Parameter
from .runtime.evaluate import at_home, uploaded
from .runtime.program import MISSED, Program, missed
from .runtime.tensors import OBJECT, PLAIN, TENSOR, Entry
from .tensor import Tensor


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


def shortcut(path: Path, args: Sequence[Any], fallback: Callable[..., Any]) -> Callable[..., Any] | None:
    """A callable for calls like this one of a path, native if possible; None if there is none (yet)."""
    if path.device is not None:
        return device_shortcut(path, args, fallback)
    native = path.structure is not None and path.version is not None
    if path.entry is None and path.program is not None:
        if not path.repeated:
            path.repeated = True
            return None
        positions = _positions(path, args)
        if positions is not None:
            path.entry = _entry(path, path.program, positions, fallback if native else missed)
    if path.entry is None:
        return None
    return path.entry.call if native else functools.partial(_watched, path, path.entry.call, fallback)


def _watched(path: Path, call: Callable[..., Any], fallback: Callable[..., Any], *args: Any) -> Any:
    """A call of which Python does what native code cannot: compare Cells that change silently, and make containers."""
    found: Any = call(*args) if path.version is not None or path.current() else MISSED
    if found is MISSED:
        return fallback(*args)
    return path.filled(found) if path.structure is None else found


def _positions(path: Path, args: Sequence[Any]) -> list[tuple[int, Any, Any]] | None:
    """What native code shall find at each position of a call."""
    nodes = iter(path.arguments)
    positions: list[tuple[int, Any, Any]] = []
    for value in args:
        kind = type(value)
        if kind is Tensor:
            node = next(nodes)
            positions.append((TENSOR, bool(node.weak), bool(node.tensor)))
        elif kind is np.ndarray or kind is float:
            next(nodes)
            positions.append((PLAIN, None, None))
        elif _same_if_identical(value):
            positions.append((OBJECT, value, None))
        else:
            return None
    return positions


def _same_if_identical(value: Any) -> bool:
    """Whether an argument that is part of the signature never comes to mean something else."""
    kind = type(value)
    if kind in _CONSTANT_KINDS or isinstance(value, Parameter):
        return True
    return kind.__hash__ is object.__hash__ and not isinstance(value, Tensor) and flatten(value)[1].is_leaf()


_CONSTANT_KINDS = frozenset([bool, int, str, bytes, type(None)])


def _entry(
    path: Path,
    program: Program,
    positions: Sequence[tuple[int, Any, Any]],
    fallback: Callable[..., Any],
) -> Entry | None:
    count = path.result_count
    # Either all results are Tensors, or none is.
    results = [_template(node) for node in path.outputs[:count]] if "tensor" in path.kinds else []
    guards = path.outputs[count : count + len(path.guards)]
    expected = [np.array(v, node.dtype, order="C") for v, node in zip(path.guards, guards, strict=True)]
    expected += [np.array(True)] * len(path.checks)
    if any(value.shape != node.shape for value, node in zip(expected, guards, strict=False)):
        return None
    structure = [*range(count), -1 - count] if path.structure is None else path.structure
    new = path.outputs[len(path.outputs) - len(path.written) :]
    held = [p._nodes(node.shape, plain_dtype(node.dtype)) for p, node in zip(path.written, new, strict=True)]
    try:
        return Entry(
            program,
            positions,
            [parameter for parameter, _ in path.parameters],
            path.written,
            expected,
            results,
            [leaf for leaf, _ in held],
            [snapshot for _, snapshot in held],
            structure,
            path.version if path.cells else None,
            fallback,
            (Tensor, Parameter),
        )
    except LookupError:
        return None


def _template(node: Node) -> Node:
    """A node as `Tensor._holding` makes it for a result, without its value."""
    made = Node(PRIMITIVES["constant"], (), (), node.shape, plain_dtype(node.dtype))
    made.tensor = True
    if made.size > 1:
        made.place = HOST
    return made
