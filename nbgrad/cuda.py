"""`nb.cuda`: the GPUs of this machine, streams, memory, and arrays of other libraries.

In: devices or their names, streams of any library. Out: what they are; contexts in which work goes to another stream.
Called by users. Importing it starts nothing: the driver is looked for by the first function that needs it. Tensors come
to a GPU by `x.to("cuda")` or `nb.Tensor(data, device="cuda")`, and everything that is computed of them stays there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from .device.driver.driver import Properties as Properties
from .device.kernels.settings import SETTINGS
from .device.memory import arrays, chosen_driver, pools, streams
from .device.memory.arrays import Device as Device
from .errors import ArgumentError, DeviceError, DtypeError
from .record.foreign_arrays import device_node
from .record.tensor import Tensor


def is_available() -> bool:
    """Whether there is a CUDA device.

    Examples
    --------
    >>> import nbgrad as nb
    >>> with nb.cuda.simulator():
    ...     nb.cuda.is_available()
    True
    """
    try:
        return chosen_driver.driver().count() > 0
    except DeviceError:
        return False


def device_count() -> int:
    """How many CUDA devices there are; 0 without a driver.

    Examples
    --------
    >>> import nbgrad as nb
    >>> with nb.cuda.simulator(devices=2):
    ...     nb.cuda.device_count()
    2
    """
    return chosen_driver.driver().count() if is_available() else 0


def device(name: Any = "cuda") -> Device:
    """The device that a name or a number means.

    Parameters
    ----------
    name : str, int or Device
        "cuda" is the first one, "cuda:1" and 1 the second.

    Raises
    ------
    ArgumentError
        For another name, "cpu" among them, or a device that this machine does not have.
    DeviceError
        If there is no driver.

    Examples
    --------
    >>> import nbgrad as nb
    >>> with nb.cuda.simulator():
    ...     nb.cuda.device("cuda")
    cuda:0
    """
    found = arrays.device_named(name)
    if found is None:
        message = f"Expected a CUDA device, but got {name!r}."
        raise ArgumentError(message)
    return found


def current_device() -> Device:
    """The device that "cuda" means: the first one."""
    return device("cuda")


def get_device_properties(name: Any = "cuda") -> Properties:
    """Name, compute capability, multiprocessors, bytes of memory, bytes of shared memory, and the driver's version.

    Parameters
    ----------
    name : str, int or Device

    Raises
    ------
    ArgumentError, DeviceError
        As `device`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> with nb.cuda.simulator():
    ...     nb.cuda.get_device_properties().capability >= (7, 5)
    True
    """
    return device(name).properties


def memory_info(name: Any = "cuda") -> tuple[int, int]:
    """The free and the total memory of a device, in bytes.

    Examples
    --------
    >>> import nbgrad as nb
    >>> with nb.cuda.simulator():
    ...     free, total = nb.cuda.memory_info()
    >>> 0 < free <= total
    True
    """
    found = device(name)
    return found.driver.memory(found.index)


# ----- Streams -----


def Stream(name: Any = "cuda") -> streams.Stream:  # noqa: N802 - it makes one, as in other libraries
    """A new stream of a device, which does not wait for the default stream.

    Parameters
    ----------
    name : str, int or Device

    Returns
    -------
    Stream
        Has `handle`, `device`, `synchronize()`, and NVIDIA's protocol `__cuda_stream__`.

    Raises
    ------
    ArgumentError, DeviceError
        As `device`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> with nb.cuda.simulator(), nb.cuda.stream(nb.cuda.Stream()):
    ...     y = nb.Tensor([1.0, 2.0], device="cuda") * 3
    ...     print(y)
    [3. 6.]
    """
    return streams.Stream(device(name))


@contextlib.contextmanager
def stream(of: Any, name: Any = None) -> Iterator[Any]:
    """A context in which this thread's work on a device goes to a stream.

    Parameters
    ----------
    of : stream
        An object with `__cuda_stream__`, a stream of PyTorch, CuPy or Numba, a raw handle as an int, or None for the
        default stream.
    name : str, int or Device, optional
        The device; by default that of the stream if it tells, or else the first one.

    Raises
    ------
    ArgumentError
        If `of` is no stream.

    Notes
    -----
    Arrays that another stream is still writing are waited for on the device, not here.

    Examples
    --------
    >>> import nbgrad as nb
    >>> with nb.cuda.simulator():
    ...     mine = nb.cuda.Stream()
    ...     with nb.cuda.stream(mine):
    ...         nb.cuda.current_stream() == mine.handle
    True
    """
    streams.handle_of(of)  # an error about the stream comes before one about the device
    with streams.current(_device_of_stream(of) if name is None else device(name), of):
        yield of


def _device_of_stream(of: Any) -> Device:
    """The device that a stream tells, or the first one."""
    for attribute in ("device", "device_id"):
        told = getattr(of, attribute, None)
        told = getattr(told, "index", told)
        if isinstance(told, int) and told >= 0:
            return device(int(told))
    return device("cuda")


def current_stream(name: Any = "cuda") -> int:
    """The handle of this thread's current stream on a device; 0 is the default stream."""
    return device(name).stream


def synchronize(name: Any = None) -> None:
    """Wait for this thread's current stream on a device, or on all devices.

    Parameters
    ----------
    name : str, int or Device, optional

    Raises
    ------
    DeviceError
        If something has failed on the device meanwhile.

    Examples
    --------
    >>> import nbgrad as nb
    >>> with nb.cuda.simulator():
    ...     y = nb.Tensor([1.0], device="cuda") * 2
    ...     nb.cuda.synchronize()
    """
    for found in map(device, range(device_count())) if name is None else [device(name)]:
        found.driver.use(found.index)
        found.driver.synchronise(found.stream)


# ----- Memory -----


def set_allocator(allocator: Callable[[int, int], tuple[int, Any]] | None, name: Any = "cuda") -> None:
    """Take a device's memory from elsewhere from now on.

    Parameters
    ----------
    allocator : callable or None
        `allocator(nbytes, stream)` gives an address, aligned to 256 bytes, and an object that gives the memory back, in
        the order of that stream, when nothing refers to it any more. None: the driver's own pool.
    name : str, int or Device

    Raises
    ------
    DtypeError
        If it cannot be called.

    Examples
    --------
    >>> import nbgrad as nb
    >>> with nb.cuda.simulator():
    ...     nb.cuda.set_allocator(None)
    """
    if allocator is not None and not callable(allocator):
        message = f"An allocator is a function (nbytes, stream) -> (address, owner), or None, but got {allocator!r}."
        raise DtypeError(message)
    arrays.set_allocator(device(name), allocator)


def use_pool(library: str | None, name: Any = "cuda") -> None:
    """Take a device's memory from another library's pool from now on.

    Parameters
    ----------
    library : {"cupy", "torch", "rmm", None}
        None: the driver's own pool.
    name : str, int or Device

    Raises
    ------
    ArgumentError
        For another library.
    DeviceError
        If the library is not installed.
    """
    found = device(name)
    arrays.set_allocator(found, None if library is None else pools.pool(library, found))


# ----- Arrays of other libraries -----


def as_tensor(x: Any) -> Tensor:
    """The Tensor over the memory of another library's array on a GPU.

    Parameters
    ----------
    x : object with `__cuda_array_interface__` or `__dlpack__`
        An array of CuPy, a tensor of PyTorch, a device array of Numba, ...

    Returns
    -------
    Tensor
        Of the same shape and dtype, on its device. An array that is not in C order is copied.

    Raises
    ------
    DtypeError
        If it is no such array, has a mask, or elements that Tensors cannot have.
    ArgumentError
        If it is in the CPU's memory, or requires a gradient in its library.
    DeviceError
        If its memory was freed.

    Examples
    --------
    >>> import nbgrad as nb
    >>> with nb.cuda.simulator():
    ...     x = nb.Tensor([1.0, 2.0], device="cuda")
    ...     print(nb.cuda.as_tensor(x))
    [1. 2.]
    """
    return x if isinstance(x, Tensor) and x.device != "cpu" else Tensor._of(device_node(x, copy=False))


# ----- Settings -----


def allow_tf32(allow: bool = True) -> None:
    """Whether products of float32 matrices may round their factors to 11 bits; off unless asked for.

    Raises
    ------
    DtypeError
        If it is no bool.
    """
    SETTINGS.allow_tf32 = _flag(allow, "allow_tf32")


def deterministic(only: bool = True) -> None:
    """Whether results must be the same bit for bit each time, which sums with atomic additions are not.

    Raises
    ------
    DtypeError
        If it is no bool.
    """
    SETTINGS.deterministic = _flag(only, "deterministic")


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        message = f"{name} takes True or False, but got {value!r}."
        raise DtypeError(message)
    return value


@contextlib.contextmanager
def simulator(devices: int = 1) -> Iterator[Any]:
    """A context in which "cuda" is simulated on this machine's CPU.

    Parameters
    ----------
    devices : int
        How many devices there are.

    Notes
    -----
    For tests, and to try programs without a GPU: it runs the same kernels, slowly, and finds freed memory, writes
    beyond arrays, and wrong streams. Arrays that were made within it can only be used within it. The environment
    variable NBGRAD_CUDA_SIMULATOR=1 does the same for a whole process.

    Examples
    --------
    >>> import nbgrad as nb
    >>> with nb.cuda.simulator():
    ...     print(nb.Tensor([1.0, 2.0], device="cuda").sum())
    3.0
    """
    from .device.simulator.simulator import Simulator

    with chosen_driver.using(Simulator(devices=devices)) as used:
        yield used


__all__ = [
    "Device",
    "Properties",
    "Stream",
    "allow_tf32",
    "as_tensor",
    "current_device",
    "current_stream",
    "deterministic",
    "device",
    "device_count",
    "get_device_properties",
    "is_available",
    "memory_info",
    "set_allocator",
    "simulator",
    "stream",
    "synchronize",
    "use_pool",
]
