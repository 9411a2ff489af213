"""Calls of compiled functions whose data are on a device: the device, and arrays for results.

In: a graph that `jit` recorded; arrays of `out=`. Out: the device; the memory of a device as out_arguments.py asks for
it. Called by specialize.py and specialization.py. Nothing here imports the driver.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import ArgumentError, DeviceError
from ..graph.ir import Node, constant
from ..record.foreign_arrays import on_cuda
from ..record.tensor import Tensor
from ..runtime.evaluate import computed
from ..tensors.parameter import Parameter
from .out_arguments import OutArrays


def device_of_graph(outputs: Sequence[Node], arguments: Sequence[Node]) -> Any:
    """The device that a recorded function runs on; None for the CPU.

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


# ----- out= -----


class DeviceMemory:
    """Tensors, and other libraries' arrays, on a device; as `out_arguments.Memory`."""

    __slots__ = ("device",)

    def __init__(self, device: Any) -> None:
        self.device = device

    def array_of(self, given: Any, which: str) -> Any:
        """The DeviceArray of a Tensor or of another library's array."""
        device = self.device
        if isinstance(given, Tensor):
            if given._node.device is device:
                return computed(given._node)
        elif on_cuda(given):
            from ..device.exchange import is_writeable, taken

            held = taken(given)
            if held.device is device and held.owner is given and is_writeable(given):
                return held
            message = f"{which} must be in C order, on {device}, and not read-only."
            raise ArgumentError(message)
        where = f" on {given.device}" if isinstance(given, Tensor) else ""
        message = (
            f"The function runs on {device}, so {which} must be a Tensor or another library's array there, but got "
            f"{type(given).__name__}{where}."
        )
        raise ArgumentError(message)

    def share(self, given: Any, held: Any, other: Any, other_held: Any) -> bool:
        """Whether two objects are one, or other libraries' arrays that overlap; a Tensor gets a value of its own."""
        if isinstance(given, Tensor) or isinstance(other, Tensor):
            return given is other
        return _overlap(held, other_held)

    def may_write(self, given: Any, held: Any, others: Iterable[Any], strides: Any) -> bool:
        """Whether nothing else has the array's memory, and it is aligned."""
        from ..runtime.device_turns import ALIGNMENT

        if isinstance(given, Tensor) and not is_sole(given, _ALONE_IN_CALL):
            return False
        if held.pointer % ALIGNMENT:
            return False
        return not any(hasattr(one, "pointer") and _overlap(held, one) for one in others)

    def empty_like(self, held: Any, strides: Any) -> Any:
        """A new DeviceArray."""
        return type(held).empty(held.shape, held.dtype, held.device)

    def copy_to(self, given: Any, held: Any, value: Any) -> None:
        """Give a Tensor a value, or copy it to another library's array."""
        if isinstance(given, Tensor):
            given._replace(constant(value))
        elif held.nbytes:
            driver = held.device.driver
            driver.use(held.device.index)
            driver.copy(held.free_on(value.stream), value.pointer, held.nbytes, value.stream)
            held.stream = value.stream


def _overlap(one: Any, other: Any) -> bool:
    return one.pointer < other.pointer + other.nbytes and other.pointer < one.pointer + one.nbytes


def is_sole(tensor: Tensor, alone: tuple[int, int] | None = None) -> bool:
    """Whether a Tensor is the only one to have its value, so that it may be overwritten; `alone`: if the references to
    its node and its value are as many as these, by default those of a Tensor alone."""
    if hasattr(tensor, "_base") or hasattr(tensor, "_views") or isinstance(tensor, Parameter):
        return False
    return _references(tensor) == (_ALONE if alone is None else alone)


def _references(tensor: Tensor) -> tuple[int, int]:
    """The numbers of references to a Tensor's node and its value."""
    node = tensor._node
    return sys.getrefcount(node), sys.getrefcount(node.value)


class _Value:
    """The attributes of an array that a node asks for."""

    shape, dtype, device, size = (), None, None, 1


def _new_tensor() -> Tensor:
    tensor = object.__new__(Tensor)
    tensor._node = constant(_Value())
    return tensor


class _Count(DeviceMemory):
    """Counts the references where `may_write` asks for them."""

    __slots__ = ("found",)

    def may_write(self, given: Any, held: Any, others: Iterable[Any], strides: Any) -> bool:
        self.found = _references(given)
        return True


def _references_in_call() -> tuple[int, int]:
    """The references to the node and the value of a Tensor in `out` that nothing else has."""
    count = _Count(None)
    tensor = _new_tensor()
    OutArrays([tensor], [tensor._node.value], count).written(())
    return count.found


_ALONE, _ALONE_IN_CALL = _references(_new_tensor()), _references_in_call()
