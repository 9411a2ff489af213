"""Files for what loops store for other loops: arrays of a program in a temporary file that is mapped into memory.

In: the kernels of a program and a folder. Out: the arrays that go there, their places, and the file. Called by
cpu_program.py where a budget says so.

The file has no name where the system allows that, so that nothing is left of it whatever ends the process; it goes with
the program. All calls of a program share it, one at a time, and a forked child makes a file of its own.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiler.fuse import Fused, Special
from ..errors import ArgumentError, OutOfMemoryError
from ..graph.ir import Node, constant
from ..graph.loops.loop_body import ITEM, LOOP
from ..graph.loops.loop_rows import EVERY
from ..process.locks import ForkSafeLock
from .lifetimes import aligned, nbytes


def check_folder(offload: Any) -> str:
    """A user's folder as text.

    Raises
    ------
    ArgumentError
        If there is none, or nothing can be written there.
    """
    try:
        folder = os.fsdecode(offload)
    except TypeError:
        folder = ""
    if not os.path.isdir(folder) or not os.access(folder, os.W_OK | os.X_OK):
        message = f"offload is a folder that exists and can be written to, but got {offload!r}."
        raise ArgumentError(message)
    return os.path.abspath(folder)


class TapeFile:
    """The arrays that loops give for every turn to other loops only, in a file.

    Parameters
    ----------
    folder : str
    fused : Fused
        The kernels of a program.
    """

    def __init__(self, folder: str, fused: Fused) -> None:
        self.folder = folder
        self.base: Node = constant(np.zeros(1, np.uint8))
        """The leaf that stands for the file."""
        self.places: dict[Node, int] = {}
        """The byte at which each array begins."""
        self.size = 0
        for node in _between_loops(fused):
            self.places[node] = self.size
            self.size += aligned(nbytes(node))
        self.process = 0
        self.mapped: Any = None
        self._lock = ForkSafeLock()

    @property
    def has_room(self) -> bool:
        """Whether it takes at most half of what is free."""
        return self.size <= shutil.disk_usage(self.folder).free // 2

    def open(self) -> Any:
        """The file's bytes, for this process.

        Raises
        ------
        OutOfMemoryError
            If there is no room.
        """
        try:
            # What is mapped stays there when the file is closed.
            with tempfile.TemporaryFile(prefix="nbgrad-", dir=self.folder) as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, self.size)
                else:
                    file.truncate(self.size)
                self.mapped = np.memmap(file, np.uint8, "r+", shape=(self.size,))
        except OSError as error:
            message = (
                f"Checkpoints of {self.size:,} bytes do not go into a file in {self.folder}: {error.strerror}. Nothing "
                "was lost. Make room there, or give another folder as offload=."
            )
            raise OutOfMemoryError(message) from None
        self.process = os.getpid()
        self.base.value = self.mapped
        return self.mapped

    def guarded(self, call: Callable[..., Any], moved: Callable[[int], None]) -> Callable[..., Any]:
        """A program's call, one at a time; `moved` gets the address of the file that a forked child has made."""

        def alone(*args: Any) -> Any:
            with self._lock.held():
                if self.process != os.getpid():
                    moved(self.open().ctypes.data)
                return call(*args)

        return alone


def _between_loops(fused: Fused) -> list[Node]:
    """The results of loops for every turn that nothing but loops reads."""
    given: dict[Node, None] = {}
    elsewhere = set(fused.outputs)
    for step in fused.steps:
        if isinstance(step, Special) and step.node.primitive is LOOP:
            given.update(dict.fromkeys(step.targets))
        else:
            elsewhere.update(step.buffers)
    return [node for node in given if node not in elsewhere and node.primitive is ITEM and node.params[0] == EVERY]
