"""The native callable for calls that take a path again.

In: a path of a jitted function and the arguments of a call. Out: a callable for calls like this one where native code
can read the arguments and make the results; else None. Called by jit.py.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..graph.ir import HOST, PRIMITIVES, Node, plain_dtype
from ..record.tensor import Tensor
from ..runtime.cpu_program import MISSED, Program, missed
from ..runtime.native_tensors import OBJECT, PLAIN, TENSOR, Entry
from ..tensors.parameter import Parameter
from ..transforms.arguments import flatten
from .device_shortcuts import device_shortcut
from .specialization import Path


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
