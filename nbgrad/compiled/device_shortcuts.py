"""The short way of a call whose data are on a device: it reads the arrays of Tensors and calls the program.

In: a path of a jitted function, and the arguments of a call. Out: a callable for calls like this one, or None. Called
by shortcuts.py and jit.py. Nothing here imports the driver.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from .. import config
from ..graph.ir import Node, constant
from ..graph.trace import current_trace
from ..record.foreign_arrays import on_cuda
from ..record.tensor import Tensor
from ..runtime.cpu_program import MISSED
from ..tensors.parameter import Parameter
from ..transforms.arguments import Lent, flatten
from .device_calls import _Value
from .specialization import Path


def device_shortcut(path: Path, args: Sequence[Any], fallback: Callable[..., Any]) -> Callable[..., Any] | None:
    """A callable for calls like this one of a path; None if there is none."""
    program = path.program
    nodes = iter(path.arguments)
    specs: list[Any] = []
    for value in args:
        kind = type(value)
        if kind is Tensor:
            specs.append(next(nodes))
        elif kind is float:
            next(nodes)
            specs.append(float)
        elif kind in (bool, int, str, bytes, type(None)) or isinstance(value, Parameter):
            specs.append(value)
        elif on_cuda(value):
            specs.append(_Foreign(kind, next(nodes)))
        else:
            return None
    if program is None:
        return None
    call, count = program.call, len(specs)
    plain = not (path.guards or path.checks or path.written) and all(kind == "tensor" for kind in path.kinds)
    plain = plain and all(node.device is not None for node in path.outputs)
    bare = plain and path.treespec.is_leaf() and len(path.outputs) == 1
    several = plain and path.treespec == flatten((0,) * len(path.outputs))[1]
    parameters = [parameter for parameter, _ in path.parameters]

    def short(*given: Any) -> Any:
        if len(given) != count or current_trace() is not None or config.interpret() or not path.current():
            return fallback(*given)
        values: list[Any] = []
        giver: Any = False
        for value, spec in zip(given, specs, strict=True):
            if spec.__class__ is Node:
                if value.__class__ is not Tensor:
                    return fallback(*given)
                node = value._node
                if not _alike(node, spec) or node.value is None:
                    return fallback(*given)
                values.append(node.value)
            elif spec is float:
                if value.__class__ is not float:
                    return fallback(*given)
                values.append(value)
            elif spec.__class__ is _Foreign:
                if value.__class__ is not spec.kind:
                    return fallback(*given)
                taken = Lent(value, copy=False)
                if not _alike(taken.node, spec.node):
                    return fallback(*given)
                values.append(taken.node.value)
                giver = giver or taken.giver
            elif value is not spec:
                return fallback(*given)
        for parameter in parameters:
            value = parameter._leaf.value
            if value is None:
                return fallback(*given)
            values.append(value)
        if bare:
            return Tensor._holding(call(*values)[0])
        if several and not giver:
            return tuple([Tensor._holding(value) for value in call(*values)])
        if giver:
            with giver.working():
                result = path.finished(path.at_home(call(*values)), (), giver)
        else:
            result = path.finished(path.at_home(call(*values)), ())
        return fallback(*given) if result is MISSED else result

    return short


def device_replay(path: Path, args: Sequence[Any]) -> Callable[[Sequence[Any], Any], bool] | None:
    """A callable that repeats a call like this one with arrays for the results; None if there is none.

    It tells whether it did: that needs a graph of just these arrays, which the program made of earlier calls.
    """
    program: Any = path.program
    nodes = iter(path.arguments)
    specs = [next(nodes) if type(value) is Tensor else value for value in args]
    known = (bool, int, str, bytes, type(None), Node, Parameter)
    if program is None or path.guards or path.checks or path.written or not all(isinstance(s, known) for s in specs):
        return None
    results = path.outputs
    single = path.treespec.is_leaf()
    if not single and path.treespec != flatten((0,) * len(results))[1]:
        return None
    count = len(specs)
    parameters = [parameter for parameter, _ in path.parameters]

    def replay(given: Sequence[Any], out: Any) -> bool:
        if len(given) != count or current_trace() is not None or config.interpret() or not path.current():
            return False
        values: list[Any] = []
        for value, spec in zip(given, specs, strict=True):
            if spec.__class__ is not Node:
                if value is not spec:
                    return False
                continue
            if value.__class__ is not Tensor or not _alike(value._node, spec):
                return False
            values.append(value._node.value)
        for parameter in parameters:
            values.append(parameter._leaf.value)
        targets = (out,) if single else out
        if len(targets) != len(results):
            return False
        for tensor, node in zip(targets, results, strict=True):
            held = _sole_value(tensor) if tensor.__class__ is Tensor else None
            if held is None or held.shape != node.shape or held.dtype != node.dtype:
                return False
            values.append(held)
        return program.replay(values)

    return replay


def _sole_value(tensor: Tensor) -> Any:
    """The array of a Tensor that is the only one to have it; None if others may read it."""
    node = tensor._node
    if sys.getrefcount(node) != _SOLE_NODE or sys.getrefcount(node.value) != _SOLE_VALUE:
        return None
    return None if hasattr(tensor, "_base") or hasattr(tensor, "_views") else node.value


def _counts_of_sole() -> tuple[int, int]:
    """As many references as `_sole_value` sees to a node and its value that one Tensor has."""
    tensor = object.__new__(Tensor)
    tensor._node = constant(_Value())

    def seen(tensor: Tensor) -> tuple[int, int]:
        node = tensor._node
        return sys.getrefcount(node), sys.getrefcount(node.value)

    return seen(tensor)


_SOLE_NODE, _SOLE_VALUE = _counts_of_sole()


class _Foreign:
    """What a position of a call holds: another library's array, like a node."""

    __slots__ = ("kind", "node")

    def __init__(self, kind: type, node: Node) -> None:
        self.kind, self.node = kind, node


def _alike(node: Node, spec: Node) -> bool:
    """Whether a value fits where a compiled function had another one."""
    return (
        node.place is spec.place
        and node.shape == spec.shape
        and node.dtype is spec.dtype
        and node.weak is spec.weak
        and node.tensor is spec.tensor
    )
