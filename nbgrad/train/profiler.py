"""Profiler: where the time of a program goes.

In: the time between `start` and `stop`. Out: a text in a folder, with the functions that took longest. Called by users,
as `nb.Profiler`. Python's own profiler counts; the machine code of nbgrad appears as the calls that run it, and
`nb.explain` looks into one of them.
"""

from __future__ import annotations

import cProfile
import os
import pstats
from typing import Any

from ..compiler.cache import counters
from ..errors import ArgumentError, DtypeError

__all__ = ["Profiler"]

FILE = "profile.txt"
LINES = 60
"""The number of functions in the file."""


class Profiler:
    """Counts calls and times of functions.

    Parameters
    ----------
    output_path : str or path
        The folder of the result, which is made.
    start_profile : bool
        Whether it begins at once.
    **kwargs
        MindSpore's options of devices have no effect.

    Raises
    ------
    DtypeError
        If the path is none.

    Examples
    --------
    >>> import nbgrad as nb, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     profiler = nb.Profiler(output_path=folder, start_profile=False)
    ...     profiler.start()
    ...     _ = nb.ops.exp(nb.Tensor([1.0]))
    ...     profiler.stop()
    ...     profiler.analyse()
    ...     os.listdir(folder)
    ['profile.txt']
    """

    def __init__(
        self, output_path: str | os.PathLike[str] = "./data", start_profile: bool = True, **kwargs: Any
    ) -> None:
        if not isinstance(output_path, str | os.PathLike):
            message = f"output_path must be a folder, but got {type(output_path).__name__}."
            raise DtypeError(message)
        self._folder = os.fspath(output_path)
        self._profile = cProfile.Profile()
        self._running = self._began = False
        self._before = dict(counters)
        if start_profile:
            self.start()

    def start(self) -> None:
        """Begin, or go on.

        Raises
        ------
        ArgumentError
            If it counts already.
        """
        if self._running:
            message = "The Profiler counts already: stop it before it is started again."
            raise ArgumentError(message)
        self._running = self._began = True
        self._profile.enable()

    def stop(self) -> None:
        """Pause.

        Raises
        ------
        ArgumentError
            If it does not count.
        """
        if not self._running:
            message = "The Profiler does not count: start it before it is stopped."
            raise ArgumentError(message)
        self._running = False
        self._profile.disable()

    def analyse(self, **kwargs: Any) -> None:
        """Stop, and write the result: functions by their own time, and how many kernels were compiled and loaded.

        Raises
        ------
        ArgumentError
            If it was never started.
        """
        if not self._began:
            message = "The Profiler was never started."
            raise ArgumentError(message)
        if self._running:
            self.stop()
        os.makedirs(self._folder, exist_ok=True)
        with open(os.path.join(self._folder, FILE), "w", encoding="utf-8") as file:
            made = {name: counters[name] - self._before[name] for name in ("compiled", "loaded")}
            file.write(f"kernels compiled: {made['compiled']}, loaded from disk: {made['loaded']}\n")
            pstats.Stats(self._profile, stream=file).sort_stats("tottime").print_stats(LINES)
