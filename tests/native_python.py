"""Runs the native functions of nbgrad/runtime as Python, so that a tracer, a debugger and coverage see their lines.

In: nothing. Out: `Processor.functions`, the functions under "Native" of native.py, native_tensors.py and blocks.py with
ctypes in the place of machine instructions, and `in_place_of_compiled_code()`, which makes every program that is built
meanwhile call them. Called by test_native_python.py, and by conftest.py for `--native-python`. The code objects are
those of the package, only their globals differ. Kernels and functions of CPython and NumPy stay what they are. Threads
run in turn.
"""

from __future__ import annotations

import ast
import ctypes
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from nbgrad.record.tensor import Tensor
from nbgrad.runtime import blocks, native, words
from nbgrad.runtime import cpu_program as program
from nbgrad.runtime import native_tensors as tensors
from nbgrad.tensors.parameter import Parameter

MODULES = (native, tensors, blocks)
INSTRUCTIONS = ("load", "load32", "store", "invoke")
PAGE = 4096
"""No object lies below."""
WORD = ctypes.c_int64
HOLDING = ctypes.PYFUNCTYPE(WORD, *[WORD] * 8)
"""A C function that is called with the interpreter's lock; ctypes raises the error that it leaves."""
RELEASING = ctypes.CFUNCTYPE(WORD, *[WORD] * 8)
"""A C function that is called without the interpreter's lock."""


class Processor:
    """What the instructions do, and the state that they share, for the native functions of some modules."""

    modules: tuple[ModuleType, ...] = MODULES

    def __init__(self) -> None:
        self.error: BaseException | None = None
        """The error that a C function has left, as CPython keeps one for each thread."""
        self.thread, self.threads = 0, 1
        self.pending: BaseException | None = None
        """The error that the handler of a signal will raise."""
        self.calls: dict[str, int] = {}
        """How many times each native function was entered from outside."""
        self.fail: dict[int, int] = {}
        """Addresses of functions that answer 0 once they were called so many times more: memory that runs out."""

    def load(self, address: int) -> int:
        assert address >= PAGE, "native code reads from address 0"
        return WORD.from_address(address).value

    def load32(self, address: int) -> int:
        assert address >= PAGE, "native code reads from address 0"
        return ctypes.c_int32.from_address(address).value

    def store(self, address: int, value: int) -> None:
        assert address >= PAGE, "native code writes to address 0"
        WORD.from_address(address).value = value

    def invoke(self, function: int, *words: int) -> int:
        assert function > 0, "native code calls address 0"
        if function in self.fail:
            self.fail[function] -= 1
            if self.fail[function] < 0:
                del self.fail[function]
                if function in self.interface and function != native.context()[native.ALLOCATE]:
                    self.error = MemoryError()
                return 0
        own = self.meanings.get(function)
        if own is not None:
            return own(*words)
        if function not in self.interface:
            return RELEASING(function)(*words)
        try:
            return HOLDING(function)(*words)
        except BaseException as error:
            self.error = error
            return 0

    @cached_property
    def interface(self) -> set[int]:
        """Functions that need the interpreter's lock."""
        table, layout = native.context(), tensors._layout(Tensor, Parameter)
        known = {int(table[slot]) for slot in (*range(native.NEW_ARRAY, native.OMP_PARALLEL), native.NO_MEMORY)}
        if layout is not None:
            known |= {int(layout[0][slot]) for slot in range(tensors.GET_CONTEXT, tensors.COMPARE)}
        return known

    @cached_property
    def meanings(self) -> dict[int, Callable[..., int]]:
        """Functions that mean something else here: locks that Python code needs, threads, native code itself."""
        table, own = native.context(), self.functions
        found: dict[int, Callable[..., int]] = {
            int(table[native.SAVE_THREAD]): lambda *_: 0,
            int(table[native.RESTORE_THREAD]): lambda *_: 0,
            int(table[native.ENSURE]): lambda *_: 0,
            int(table[native.UNENSURE]): lambda *_: 0,
            int(table[native.CHECK_SIGNALS]): self._check_signals,
            int(table[native.OMP_PARALLEL]): self._in_turn,
            int(table[native.OMP_THREAD]): lambda *_: self.thread,
            int(table[native.OMP_COUNT]): lambda *_: self.threads,
            int(table[native.TAKE_BLOCK]): lambda *words: own["take"](*words[:2]),
            int(table[native.GIVE_BLOCK]): lambda *words: own["give"](*words[:3]),
        }
        found.pop(0, None)
        return found

    @cached_property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """The native functions by their names, with these instructions."""
        made: dict[str, Any] = {name: getattr(self, name) for name in INSTRUCTIONS}
        for module in self.modules:
            scope = dict(vars(module))
            for name in native_names(module):
                made[name] = FunctionType(vars(module)[name].__code__, scope, name)
            scope |= made
        return made

    def _check_signals(self, *_: int) -> int:
        """PyErr_CheckSignals."""
        if self.pending is None:
            return 0
        self.error, self.pending = self.pending, None
        return -1

    def _in_turn(self, function: int, data: int, count: int, *_: int) -> int:
        """GOMP_parallel."""
        assert function == native.context()[native.WORKER]
        self.threads = count
        for self.thread in range(count):
            self.functions["worker"](data)
        self.thread, self.threads = 0, 1
        return 0


def native_names(module: ModuleType) -> list[str]:
    """The functions of a module between the comment "Native" and the next one of its kind."""
    text = inspect.getsource(module)
    first = text[: text.index("# ----- Native -----")].count("\n") + 1
    rest = text.split("\n")[first:]
    last = first + next(k for k, line in enumerate(rest) if line.startswith("# -----"))
    return [n.name for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and first < n.lineno <= last]


PROCESSOR = Processor()


def called(name: str, state: np.ndarray, arguments: tuple[Any, ...], processor: Processor = PROCESSOR) -> Any:
    """What CPython's call of a native function gives; it finds the state in its `self`, and its error is raised."""
    processor.calls[name] = processor.calls.get(name, 0) + 1
    words = (ctypes.c_int64 * max(1, len(arguments)))(*map(id, arguments))
    address = processor.functions[name](id(state), ctypes.addressof(words), len(arguments))
    error, processor.error = processor.error, None
    if address == 0:
        assert error is not None, f"{name} gives neither a result nor an error"
        try:
            raise error
        finally:
            del error  # whose traceback knows this frame
    assert error is None, f"{name} gives a result and an error"
    result = ctypes.cast(address, ctypes.py_object).value
    # The reference that a caller gets is the variable's now.
    ctypes.pythonapi.Py_DecRef(ctypes.py_object(result))
    return result


class PythonCall:
    """What program.native_callable makes, as Python."""

    def __init__(self, address: int, state: np.ndarray, kept: Any) -> None:
        self.name, self.state, self.kept = entries()[address], state, kept

    def __call__(self, *arguments: Any) -> Any:
        # Native code holds the interpreter's lock while it reads and writes what calls share.
        with _lock:
            return called(self.name, self.state, arguments)


_lock = threading.RLock()


@cache
def entries() -> dict[int, str]:
    """The names of what CPython calls, by the addresses of their compiled code."""
    return {
        native.entry_address(False): "entry",
        native.entry_address(True): "entry_into",
        words.native_address(tensors.entry_tensors, 3): "entry_tensors",
    }


@contextmanager
def in_place_of_compiled_code() -> Iterator[Processor]:
    """Programs that are built meanwhile run the native functions as Python, also later."""
    before = program.native_callable
    program.native_callable = tensors.native_callable = PythonCall
    try:
        yield PROCESSOR
    finally:
        program.native_callable = tensors.native_callable = before
