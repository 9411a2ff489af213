"""Doors of calls whose data are on a device: they read the arrays of Tensors and call the program.

In: a specialization and the arguments of a call. Out: callables for calls like this one, or None. Called by doors.py.
Nothing here imports the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import config
from ..graph.ir import Node
from ..graph.trace import current_trace
from ..record.foreign_arrays import on_cuda
from ..record.tensor import Tensor
from ..runtime.cpu_program import MISSED
from ..tensors.parameter import Parameter
from ..transforms.arguments import Lent, flatten
from .device_calls import is_sole
from .specialization import Specialization


def device_call(one: Specialization, args: Sequence[Any], fallback: Callable[..., Any]) -> Callable[..., Any] | None:
    """A callable for calls like this one; None if there is none."""
    program = one.program
    nodes = iter(one.arguments)
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
    plain = one.pure and all(kind == "tensor" for kind in one.returned.kinds)
    plain = plain and all(node.device is not None for node in one.outputs)
    bare = plain and one.returned.treespec.is_leaf() and len(one.outputs) == 1
    several = plain and one.returned.treespec == flatten((0,) * len(one.outputs))[1]
    parameters = [parameter for parameter, _ in one.parameters]

    def short(*given: Any) -> Any:
        if len(given) != count or current_trace() is not None or config.interpret() or not one.current():
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
                result = one.finished(one.at_home(call(*values)), (), giver)
        else:
            result = one.finished(one.at_home(call(*values)), ())
        return fallback(*given) if result is MISSED else result

    return short


def device_into(one: Specialization, args: Sequence[Any]) -> Callable[[Sequence[Any], Any], bool] | None:
    """A callable that repeats a call like this one with arrays for the results; None if there is none.

    It tells whether it did: that needs a graph of just these arrays, which the program made of earlier calls.
    """
    program: Any = one.program
    nodes = iter(one.arguments)
    specs = [next(nodes) if type(value) is Tensor else value for value in args]
    known = (bool, int, str, bytes, type(None), Node, Parameter)
    if program is None or not one.pure or not all(isinstance(s, known) for s in specs):
        return None
    results = one.outputs
    single = one.returned.treespec.is_leaf()
    if not single and one.returned.treespec != flatten((0,) * len(results))[1]:
        return None
    count = len(specs)
    parameters = [parameter for parameter, _ in one.parameters]

    def replay(given: Sequence[Any], out: Any) -> bool:
        if len(given) != count or current_trace() is not None or config.interpret() or not one.current():
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
            held = tensor._node.value if tensor.__class__ is Tensor and is_sole(tensor) else None
            if held is None or held.shape != node.shape or held.dtype != node.dtype:
                return False
            values.append(held)
        return program.replay(values)

    return replay


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
