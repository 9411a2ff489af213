"""Paths: what `jit` keeps of one recording of a function, and the native callable for calls that take it again.

In: the results of a recording. Out: `Path`, and `shortcut`, which makes a native callable where a path's arguments and
results can be read and made by native code. Called by jit.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .errors import NbgradError
from .graph.ir import PRIMITIVES, Node, plain_dtype
from .graph.trace import CELLS
from .lifting import flatten
from .parameter import Parameter
from .runtime.program import Program
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
    """How results are packed by native code; None if it cannot, or if there are guards or checks."""
    parameters: list[tuple[Any, Node]]
    """Parameters that the function reads, and the node that stood for each: inputs after the arguments."""
    written: list[Any]
    """Parameters that the function writes to: their new values are outputs after all others."""
    cells: dict[Any, Any]
    """The state, such as `training`, that the Cells taking part (and Parameters that were differentiated with respect
    to) had when the path was recorded."""
    version: int
    """The version of all Cells for which `cells` is known to hold; -1 if Cells have lists or dicts, which change
    without notice."""
    entry: Entry | None = None
    """The native callable that takes Tensors and Parameters, once it was made."""

    @property
    def result_count(self) -> int:
        """Outputs that the user gets; guards, checks and written Parameters follow them."""
        return len(self.outputs) - len(self.guards) - len(self.checks) - len(self.written)

    def current(self) -> bool:
        """Whether the Cells and Parameters that took part are still as they were; only values may differ."""
        if self.version is not CELLS.number:
            now = CELLS.number
            if any(cell._state() != known for cell, known in self.cells.items()):
                return False
            if self.version >= 0:
                self.version = now
                if self.entry is not None and self.cells:
                    self.entry.expect(now)
        for parameter, node in self.parameters:
            leaf = parameter._leaf
            if leaf.shape != node.shape or leaf.dtype != node.dtype:
                return False
        return True


def shortcut(path: Path, args: Sequence[Any], fallback: Callable[..., Any]) -> Callable[..., Any] | None:
    """A native callable for calls like this one of a path; None if there can be none."""
    if path.entry is None and path.program is not None and path.structure is not None and path.version >= 0:
        positions = _positions(path, args)
        if positions is not None:
            path.entry = _entry(path, path.program, path.structure, positions, fallback)
    return None if path.entry is None else path.entry.call


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
    structure: Sequence[int],
    positions: Sequence[tuple[int, Any, Any]],
    fallback: Callable[..., Any],
) -> Entry | None:
    results: list[Node] = []
    if not path.native:
        if any(kind != "tensor" for kind in path.kinds):
            return None
        results = [_template(node) for node in path.outputs[: path.result_count]]
    new = path.outputs[len(path.outputs) - len(path.written) :]
    held = [p._nodes(node.shape, plain_dtype(node.dtype)) for p, node in zip(path.written, new, strict=True)]
    try:
        return Entry(
            program,
            positions,
            [parameter for parameter, _ in path.parameters],
            path.written,
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
    return made
