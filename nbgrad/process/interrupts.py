"""Ctrl-C at the wrong moment: Numba's import and compilation finish before it takes effect.

In: a block of code. Out: the same, with KeyboardInterrupt raised at its end. Called around Numba, whose half-imported
modules and half-filled tables do not work afterwards. All else survives an interruption anywhere.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def interrupt_later() -> Iterator[None]:
    """Hold back SIGINT until the block ends; only the main thread gets it at all."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    received: list[tuple[Any, ...]] = []
    signal.signal(signal.SIGINT, lambda *arguments: received.append(arguments))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if received:
            handler(*received[-1])
