"""One gradient in a process of its own: what it compiles, and what memory it takes.

In: the command line: a module, a class of `Gradients` in it, a function and a library. Out: a line of JSON.
Called by the processes that gradient_benchmarks.py starts.
"""

from __future__ import annotations

import json
import sys
from functools import reduce
from importlib import import_module
from pathlib import Path
from typing import Any

from ..compiler.cache import counters

CALLS = 3
"""A second call may take memory that a first one gives back, so that only the peak of some tells."""


def main() -> None:
    """Compute a gradient and print the numbers."""
    module, name, function, library = sys.argv[1:]
    kind: Any = reduce(getattr, name.split("."), import_module(module))
    suite = kind()
    arguments, gradient = suite.arguments(function), suite.gradient(function, library)
    gradient_memory = Growth()
    for _ in range(CALLS):
        gradient(*arguments)
    sys.stdout.write(json.dumps({"kernels": counters["compiled"], "megabytes": gradient_memory.megabytes()}) + "\n")


class Growth:
    """The growth of this process's memory from now on, at its peak."""

    def __init__(self) -> None:
        try:
            Path("/proc/self/clear_refs").write_text("5")  # the peak is that of now
        except OSError:  # a system that forbids it: the peak is that of the whole process
            self.before = memory("VmHWM")
        else:
            self.before = memory("VmRSS")

    def megabytes(self) -> float:
        """The growth up to now."""
        return round((memory("VmHWM") - self.before) / 1024, 2)


def memory(name: str) -> int:
    """A line of the kernel's account of this process, in kB."""
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))
