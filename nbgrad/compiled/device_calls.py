"""Calls of compiled functions whose data are on a device: which device it is, and arrays for results.

In: what `jit` recorded, and the arguments of a call. Out: the device; `Target`s, which results are written to. Called
by jit.py and specialization.py. Nothing here imports the driver.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError, DeviceError, DtypeError, ShapeError
from ..graph.ir import Node, constant
from ..record.foreign_arrays import on_cuda
from ..record.tensor import Tensor
from ..tensors.parameter import Parameter
from ..transforms.arguments import flatten


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
        from ..runtime.device_program import ALIGNMENT

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
            from ..runtime.evaluate import computed

            return Target(value, computed(value._node))
    elif on_cuda(value):
        from ..device.exchange import is_writeable, taken

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
