"""Work for a few threads that the thread which holds a lock of the compiler waits for.

In: how many threads; functions with their arguments. Out: for each a function that waits for the result. Called where
code is compiled: compiler/cpu.py and device/kernels/ptx.py.

The executors of `concurrent.futures` take a lock of the whole process for each piece of work, and keep it over forks: a
thread that forks has it and waits until nothing is compiled, and the thread that compiles would wait for that lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any


class SideBySide:
    """Threads that end with a `with` block: work that has not begun then is left undone.

    The thread that waits for results is one of them.
    """

    def __init__(self, threads: int, name: str) -> None:
        self._others = threads - 1
        self._name = name
        self._threads: list[threading.Thread] = []
        self._work: SimpleQueue[_Work | None] = SimpleQueue()
        self._is_over = False

    def __enter__(self) -> SideBySide:
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over = True
        for _ in self._threads:
            self._work.put(None)
        for thread in self._threads:
            thread.join()

    def begin(self, function: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
        """Hand a call to the threads; the result waits for it, and gives its result or raises its error."""
        work = _Work(function, arguments)
        self._work.put(work)
        if len(self._threads) < self._others:
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            # Python is about to end, or the system allows no more threads: whoever waits does the work.
            with suppress(RuntimeError):
                thread.start()
                self._threads.append(thread)
        return partial(self._result, work)

    def _result(self, work: _Work) -> Any:
        with suppress(Empty):
            while not work.is_done():
                other = self._work.get_nowait()
                if other is not None:
                    other.do()
                    if not isinstance(other.error, Exception | None):
                        raise other.error
        return work.result()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            if not self._is_over:
                work.do()


class _Work:
    """One call."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self._function = function
        self._arguments = arguments
        self._done = threading.Event()
        self._value: Any = None
        self.error: BaseException | None = None

    def do(self) -> None:
        """Make the call."""
        try:
            self._value = self._function(*self._arguments)
        except BaseException as error:
            self.error = error
        finally:
            self._done.set()

    def is_done(self) -> bool:
        """Whether the call has ended."""
        return self._done.is_set()

    def result(self) -> Any:
        """Wait for the call: its value, or its error."""
        self._done.wait()
        if self.error is not None:
            raise self.error
        return self._value
