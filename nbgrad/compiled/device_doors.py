"""Doors of calls whose data are on a device: they read the arrays of Tensors and call the program.

In: a specialization and the arguments of a call. Out: callables for calls like this one, or None. Called by doors.py.
Nothing here imports the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

from .. import config
from ..graph.ir import Node
from ..graph.trace import current_trace
from ..record.foreign_arrays import on_cuda
from ..record.tensor import Tensor
from ..runtime.cpu_program import MISSED
from ..transforms.arguments import flatten
from ..transforms.lent_arrays import Lent
from .device_calls import is_sole
from .signatures import is_constant
from .specialization import Specialization


def device_call(one: Specialization, args: Sequence[Any], fallback: Callable[..., Any]) -> Callable[..., Any] | None:
    """A callable for calls like this one; None if there is none."""
    specs = _specs(one, args)
    if specs is None:
        return None
    call = one.program.call
    plain = one.pure and all(kind == "tensor" for kind in one.returned.kinds)
    plain = plain and all(node.device is not None for node in one.outputs)
    bare = plain and one.returned.treespec.is_leaf() and len(one.outputs) == 1
    several = plain and one.returned.treespec == flatten((0,) * len(one.outputs))[1]

    def short(*given: Any) -> Any:
        values, giver = _read(one, specs, given)
        if values is None:
            return fallback(*given)
        if bare:
            return Tensor._holding(call(*values)[0])
        if several and not giver:
            return tuple([Tensor._holding(value) for value in call(*values)])
        with giver.working() if giver else nullcontext():
            result = one.finished(one.at_home(call(*values)), (), giver)
        return fallback(*given) if result is MISSED else result

    return short


def device_into(one: Specialization, args: Sequence[Any]) -> Callable[[Sequence[Any], Any], bool] | None:
    """A callable that repeats a call like this one with arrays for the results; None if there is none.

    It tells whether it did: that needs a graph of just these arrays, which the program made of earlier calls.
    """
    specs = _specs(one, args)
    if specs is None or not one.pure or any(spec is float or spec.__class__ is _Foreign for spec in specs):
        return None
    results = one.outputs
    single = one.returned.treespec.is_leaf()
    if not single and one.returned.treespec != flatten((0,) * len(results))[1]:
        return None

    def replay(given: Sequence[Any], out: Any) -> bool:
        values, _ = _read(one, specs, given)
        targets = (out,) if single else out
        if values is None or len(targets) != len(results):
            return False
        for tensor, node in zip(targets, results, strict=True):
            held = tensor._node.value if tensor.__class__ is Tensor and is_sole(tensor) else None
            if held is None or held.shape != node.shape or held.dtype != node.dtype:
                return False
            values.append(held)
        return one.program.replay(values)

    return replay


def _specs(one: Specialization, args: Sequence[Any]) -> list[Any] | None:
    """The kind of value at each position of a call: a node for a Tensor, `float`, a `_Foreign`, or the object itself;
    None for arguments of other kinds."""
    nodes = iter(one.arguments)
    specs: list[Any] = []
    for value in args:
        kind = type(value)
        if kind is Tensor:
            specs.append(next(nodes))
        elif kind is float:
            next(nodes)
            specs.append(float)
        elif is_constant(value):
            specs.append(value)
        elif on_cuda(value):
            specs.append(_Foreign(kind, next(nodes)))
        else:
            return None
    return specs


def _read(one: Specialization, specs: Sequence[Any], given: Sequence[Any]) -> tuple[list[Any] | None, Any]:
    """The inputs of the program, and who gives results back; None for a call that is not like those of `specs`."""
    if len(given) != len(specs) or current_trace() is not None or config.interpret() or not one.current():
        return None, False
    values: list[Any] = []
    giver: Any = False
    for value, spec in zip(given, specs, strict=True):
        if spec.__class__ is Node:
            if value.__class__ is not Tensor:
                return None, False
            node = value._node
            if not _alike(node, spec) or node.value is None:
                return None, False
            values.append(node.value)
        elif spec is float:
            if value.__class__ is not float:
                return None, False
            values.append(value)
        elif spec.__class__ is _Foreign:
            if value.__class__ is not spec.kind:
                return None, False
            taken = Lent(value, copy=False)
            if not _alike(taken.node, spec.node):
                return None, False
            values.append(taken.node.value)
            giver = giver or taken.giver
        elif value is not spec:
            return None, False
    for parameter, _ in one.parameters:
        value = parameter._leaf.value
        if value is None:
            return None, False
        values.append(value)
    return values, giver


class _Foreign:
    """A position of a call that holds another library's array, like a node."""

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
