"""Calls of compiled functions whose data are on a device: which device it is, arrays for results, and the short way.

In: what `jit` recorded, and the arguments of a call. Out: the device; `Target`s, which results are written to; a
callable for calls like the last one, which does little more than read the arrays of Tensors and call the program.
Called by jit.py and paths.py. Nothing here imports the driver.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from . import config
from .errors import ArgumentError, DeviceError, DtypeError, ShapeError
from .graph.ir import Node, constant
from .graph.trace import current_trace
from .interop import on_cuda
from .lifting import Lent, flatten
from .parameter import Parameter
from .runtime.program import MISSED
from .tensor import Tensor

if TYPE_CHECKING:
    from .paths import Path


def device_of_graph(outputs: Sequence[Node], arguments: Sequence[Node]) -> Any:
    """The device that a recorded function runs on; None for the processor.

    Raises
    ------
    DeviceError
        If it uses several.
    """
    found = {node.device: None for node in (*arguments, *outputs)}
    devices = [device for device in found if device is not None]
    if len(devices) > 1:
        names = " and ".join(map(repr, devices))
        message = f"A compiled function runs on one device, but this one has arrays on {names}. Compile one for each."
        raise DeviceError(message)
    return devices[0] if devices else None


# ----- Arrays for results -----


class Target:
    """An array that the caller provides for a result: a Tensor, or another library's array, on the device."""

    def __init__(self, given: Any, held: Any) -> None:
        self.given, self.held = given, held

    def array(self, inputs: Sequence[Any], targets: Sequence[Target]) -> Any:
        """What the program writes to: the memory of the target itself, unless somebody else reads that, too, or it is
        not aligned."""
        from .runtime.device_program import ALIGNMENT

        others = [value for value in inputs if hasattr(value, "pointer")]
        others += [target.held for target in targets if target is not self]
        free = not isinstance(self.given, Tensor) or _is_only_holder(self.given)
        free = free and self.held.pointer % ALIGNMENT == 0
        if free and not any(_overlap(self.held, other) for other in others):
            return self.held
        return type(self.held).empty(self.held.shape, self.held.dtype, self.held.device)

    def take(self, value: Any) -> None:
        """Let the target have a result, which may be in its memory already."""
        if value is self.held:
            return
        if isinstance(self.given, Tensor):
            self.given._replace(constant(value))
            return
        held, driver = self.held, self.held.device.driver
        if held.nbytes:
            driver.use(held.device.index)
            driver.copy(held.free_on(value.stream), value.pointer, held.nbytes, value.stream)
            held.stream = value.stream


def _overlap(one: Any, other: Any) -> bool:
    return one.pointer < other.pointer + other.nbytes and other.pointer < one.pointer + one.nbytes


def _is_only_holder(tensor: Tensor) -> bool:
    """Whether nobody but a Tensor has its value, so that it may be written over."""
    if hasattr(tensor, "_base") or hasattr(tensor, "_views") or isinstance(tensor, Parameter):
        return False
    node = tensor._node
    return sys.getrefcount(node) == _ALONE_NODE and sys.getrefcount(node.value) == _ALONE_VALUE


def _counts_alone() -> tuple[int, int]:
    """As many references as there are to a node and its value that one Tensor and one Target have."""
    tensor = object.__new__(Tensor)
    tensor._node = constant(_Value())
    target = Target(tensor, tensor._node.value)
    node = tensor._node
    counts = sys.getrefcount(node), sys.getrefcount(node.value)
    del target
    return counts


class _Value:
    """Something with what a node asks of an array."""

    shape, dtype, device, size = (), None, None, 1


_ALONE_NODE, _ALONE_VALUE = _counts_alone()


def device_targets(
    out: Any, treespec: Any, leaves: Sequence[Any], nodes: Sequence[Node], device: Any, name: str
) -> list[Target]:
    """The arrays in `out`, one for each result of a function that runs on a device; as `targets.check_targets`.

    Raises
    ------
    ArgumentError
        For another structure, and for what is no array on that device or cannot be written to.
    ShapeError, DtypeError
        For an array that a result does not fit.
    """
    given, spec = flatten(out)
    if spec != treespec:
        message = f"out must be nested like the result of {name}(), {treespec}, but got {spec}."
        raise ArgumentError(message)
    chosen = [value for value, leaf in zip(given, leaves, strict=True) if leaf is None]
    targets = [_target(value, device) for value in chosen]
    for target, node in zip(targets, nodes, strict=True):
        held = target.held
        if held.shape != node.shape:
            message = f"out has shape {held.shape}, but the result of {name}() has shape {node.shape}."
            raise ShapeError(message)
        if held.dtype != node.dtype:
            message = f"out has dtype {held.dtype}, but the result of {name}() has dtype {node.dtype}."
            raise DtypeError(message)
    if len({id(value) for value in chosen}) != len(chosen):
        message = "An array appears twice in out. Each result needs an array of its own."
        raise ArgumentError(message)
    return targets


def _target(value: Any, device: Any) -> Target:
    if isinstance(value, Tensor):
        if value._node.device is device:
            from .runtime.evaluate import computed

            return Target(value, computed(value._node))
    elif on_cuda(value):
        from .device.exchange import is_writeable, taken

        held = taken(value)
        if held.device is device and held.owner is value and is_writeable(value):
            return Target(value, held)
        message = f"out must be in C order, on {device}, and not read-only."
        raise ArgumentError(message)
    where = f" on {value.device}" if isinstance(value, Tensor) else ""
    message = (
        f"The function runs on {device}, so out must be a Tensor or another library's array there, but got "
        f"{type(value).__name__}{where}."
    )
    raise ArgumentError(message)


# ----- The short way -----


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
