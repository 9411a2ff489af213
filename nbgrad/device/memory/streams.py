"""Streams: other libraries' and our own, and which one is current.

In: a stream object of any library, a raw handle, or None. Out: its handle; `Stream`, one of ours; `current`, a context
in which work on a device goes to a stream. Called by `nbgrad.cuda` and by exchange.py.
"""

from __future__ import annotations

from typing import Any

from ...errors import ArgumentError
from .arrays import Device, set_stream

LEGACY, PER_THREAD = 1, 2
"""The numbers by which CUDA's protocols name the default stream, and the default stream of each thread."""
_ATTRIBUTES = ("cuda_stream", "ptr", "handle")
"""Attributes with the handle of PyTorch's, CuPy's and Numba's streams."""


_idle: dict[Device, list[int]] = {}
"""Streams that nothing holds any more. They are used again, never destroyed: arrays remember their stream."""
_seen: dict[int, Any] = {}
"""Other libraries' streams that have been current, which must not be destroyed either, by their handles."""


class Stream:
    """A stream of its own, which does not wait for the default stream.

    Parameters
    ----------
    device : Device
    """

    __slots__ = ("__weakref__", "device", "handle")

    def __init__(self, device: Device) -> None:
        self.device = device
        self.handle = 0
        device.driver.use(device.index)
        idle = _idle.setdefault(device, [])
        self.handle = idle.pop() if idle else device.driver.new_stream(device.index)

    def __repr__(self) -> str:
        return f"<stream {self.handle:#x} of {self.device}>"

    def __cuda_stream__(self) -> tuple[int, int]:
        """NVIDIA's protocol: its version, and the handle."""
        return 0, self.handle

    def synchronize(self) -> None:
        """Wait for all work on the stream."""
        self.device.driver.synchronise(self.handle)

    def __del__(self) -> None:
        if self.handle:
            _idle[self.device].append(self.handle)


def handle_of(stream: Any) -> int:
    """The handle of a stream.

    Parameters
    ----------
    stream : int, object, or None
        A raw handle; an object with `__cuda_stream__`, or a stream of PyTorch, CuPy or Numba; None for the default one.

    Returns
    -------
    int
        0 for the default stream.

    Raises
    ------
    ArgumentError
        For anything else.
    """
    if stream is None:
        return 0
    if isinstance(stream, int) and not isinstance(stream, bool):
        if stream < 0:
            message = f"The handle of a stream must not be negative, but is {stream}."
            raise ArgumentError(message)
        return 0 if stream == LEGACY else stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if callable(protocol):
        found: Any = protocol()
        if isinstance(found, tuple) and len(found) == 2 and found[0] == 0:
            return handle_of(int(found[1]))
        message = f"__cuda_stream__() of this {type(stream).__name__} gives {found!r}, but must give (0, handle)."
        raise ArgumentError(message)
    for name in _ATTRIBUTES:
        held = getattr(stream, name, None)
        if held is not None and not callable(held):
            number = getattr(held, "value", held)
            try:
                return handle_of(0 if number is None else int(number))
            except (TypeError, ValueError):
                break
    message = (
        "A stream must be an object with __cuda_stream__, a stream of PyTorch, CuPy or Numba, its handle as an int, or "
        f"None for the default stream, but got {stream!r}."
    )
    raise ArgumentError(message)


def number_of(handle: int) -> int:
    """The number of a stream in the protocols of arrays, where 0 is not allowed."""
    return handle or LEGACY


class current:  # noqa: N801 - a context, used like a function
    """Within it, a stream is this thread's current one on a device."""

    def __init__(self, device: Device, stream: Any) -> None:
        self.device, self.stream, self.handle = device, stream, handle_of(stream)
        if not isinstance(stream, int | Stream | None):
            _seen[self.handle] = stream

    def __enter__(self) -> Any:
        self.before = set_stream(self.device, self.handle)
        return self.stream

    def __exit__(self, *_: object) -> None:
        set_stream(self.device, self.before)
