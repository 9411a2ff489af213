"""Where Tensors are: `x.device`, and the methods that move them, `to`, `cpu`, `cuda` and `to_device`.

In: a Tensor, and a device or its name. Out: a Tensor there. Called by users.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..record.placement import device_of, moved
from ..record.tensor import Tensor, part_of_tensor


def _is_device(target: Any) -> bool:
    """Whether an argument of `to` names a device, not a dtype."""
    if isinstance(target, str):
        return target.lower().partition(":")[0] in ("cpu", "cuda", "gpu")
    return type(target) is int or type(target).__name__ == "Device"


@part_of_tensor
class Devices(Tensor):
    """The properties and methods of Tensors that concern devices."""

    __slots__ = ()

    @property
    def device(self) -> Any:
        """Where the elements are: "cpu", or a `Device`, which equals its name."""
        place = self._node.device
        return "cpu" if place is None else place

    def to(
        self,
        *target: Any,
        device: Any = None,
        dtype: Any = None,
        copy: bool = False,
        other: Any = None,
        non_blocking: bool = False,
    ) -> Tensor:
        """The Tensor on a device, or in a dtype, or both; itself if it is that already.

        Parameters
        ----------
        *target
            A device or its name ("cpu", "cuda", "cuda:1"), a dtype, both, or a Tensor whose device and dtype are meant.
        device, dtype
            The same by name.
        copy : bool
            Whether to make a copy in any case.
        other : Tensor, optional
            A Tensor whose device and dtype are meant.
        non_blocking : bool
            Has no effect: a copy to a device is awaited where it is read.

        Returns
        -------
        Tensor
            It does not depend on this one: gradients are not passed from device to device. Move first, then
            differentiate.

        Raises
        ------
        ArgumentError
            For anything else, or a device that this machine does not have.
        DeviceError
            If there is no CUDA driver.
        TracedValueError
            If it would have to be moved while it is being differentiated or compiled.

        Examples
        --------
        >>> import nbgrad as nb
        >>> x = nb.Tensor([1.5, 2.5])
        >>> x.to("cpu") is x, x.to(nb.float64).dtype == nb.float64
        (True, True)
        >>> with nb.cuda.simulator():
        ...     y = x.to("cuda")
        ...     print(y.device, y * 2)
        cuda:0 [3. 5.]
        """
        del non_blocking
        for one in target if other is None else (*target, other):
            if isinstance(one, Tensor):
                given: tuple[Any, Any] = (one.device, one._node.dtype)
            else:
                given = (one, None) if _is_device(one) else (None, _dtype(one))
            if (given[0] is not None and device is not None) or (given[1] is not None and dtype is not None):
                message = f"to() takes one device and one dtype, but got {target!r}."
                raise ArgumentError(message)
            device = given[0] if given[0] is not None else device
            dtype = given[1] if given[1] is not None else dtype
        if device is None and dtype is None and not copy:
            message = "to() needs a device, a dtype, or a Tensor that has them."
            raise ArgumentError(message)
        result: Any = self
        if device is not None:
            node = moved(self._node, device)
            result = self if node is self._node else self._of(node)
        if dtype is not None and result._node.dtype != _dtype(dtype):
            result = result.astype(_dtype(dtype))
        return result.copy() if copy and result is self else result

    def cpu(self) -> Tensor:
        """The Tensor in the CPU's memory; itself if it is there. Waits until it is computed."""
        return self.to("cpu")

    def cuda(self, device: Any = "cuda") -> Tensor:
        """The Tensor on a GPU; itself if it is there."""
        return self.to(device)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """The Tensor on a device, as the array API standard has it; itself if it is there.

        Parameters
        ----------
        device : str or Device
        stream : optional
            A stream on which the copy is made, as `nb.cuda.stream` takes it.

        Raises
        ------
        ArgumentError
            For another device, or a stream where none of the two devices has streams.
        """
        target = device_of(device)
        place = self._node.device if target is None else target
        if stream is not None and place is None:
            message = f"The CPU has no streams, but stream={stream!r} was given."
            raise ArgumentError(message)
        if stream is None:
            return self.to(device)
        from ..device.memory.streams import current

        with current(place, stream):
            return self.to(device)


def _dtype(given: Any) -> np.dtype[Any]:
    try:
        if given is None:
            raise TypeError
        return np.dtype(getattr(given, "dtype", given) if not isinstance(given, str | type) else given)
    except DtypeError:
        raise
    except TypeError:
        message = f'to() takes a device ("cpu", "cuda", "cuda:1"), a dtype or a Tensor, but got {given!r}.'
        raise ArgumentError(message) from None
