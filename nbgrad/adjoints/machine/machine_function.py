"""Derivatives of kernels as functions of machine code, without Numba's compiler.

In: the statements of a derivative. Out: `Compiled`, which is called with NumPy's arrays and numbers as the function
that Numba would compile. Called by derived.py. The kinds of all variables are known, so that IR can be written at once:
compiling takes a third of Numba's time. Arguments that are not laid out in C order are copied, and copied back if they
are written to. Derivatives with a part that is not known here are compiled by Numba.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...compiler.cpu import Code, Function, function_code
from ...runtime.threads import get_num_threads, start_of_threads
from ..kernel_statements import Atom, Block, stored
from ..turns.thread_parts import Turns
from .array_code import ELEMENTS, Layout
from .lapack_elements import asked
from .number_code import FLOAT64, INT, UnknownPartError
from .program_code import program_text

_SYMBOL = "nbgrad_derived"
_C_TYPES: dict[str, Any] = {"f": ctypes.c_double, **dict.fromkeys("iub", ctypes.c_int64)}
_SHORT = 4
_GIVE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64))


class Statements(NamedTuple):
    """A derivative as statements; `turns` are the functions of parts of its loops."""

    parameters: Sequence[str]
    body: Block
    turns: Sequence[Turns]
    results: Sequence[Atom]


class MachineFunction:
    """A derivative for arguments of some dtypes and ranks: `given` are examples of them.

    Raises
    ------
    UnknownPartError
        If it has a part of which no machine code is made here.
    """

    def __init__(self, program: Statements, objects: Mapping[str, Any], given: Sequence[Any]) -> None:
        self.objects = list(objects.values())
        self.layouts = [_layout(one) for one in (*given, *self.objects)]
        names = [*program.parameters, *objects]
        written = stored(program.body).union(*[stored(one.body) for one in program.turns])
        self.written = [name in written for name in names]
        layouts = dict(zip(names, self.layouts, strict=True))
        text, self.kinds = program_text(_SYMBOL, names, program.body, program.turns, program.results, layouts)
        self.code: Code = function_code(Function(text, _SYMBOL, lambda: text))
        types = [_C_TYPES[np.dtype(one.dtype).kind] if one.rank < 0 else ctypes.py_object for one in self.layouts]
        places = [ctypes.c_void_p, _GIVE, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p]
        prototype = ctypes.CFUNCTYPE(ctypes.c_int32, *types, *places)
        self.entry = prototype(self.code.address)
        self.start = start_of_threads() if program.turns else None
        if program.turns and self.start is None:
            raise UnknownPartError  # threads, which Numba has here

    def __call__(self, *given: Any) -> tuple[Any, ...] | None:
        """Run it; gives the numbers that it returns."""
        arguments: list[Any] = []
        back: list[tuple[np.ndarray, np.ndarray]] = []
        for one, layout, written in zip((*given, *self.objects), self.layouts, self.written, strict=True):
            if layout.rank < 0:
                arguments.append(float(one) if layout.dtype.startswith("float") else int(one))
            elif one.flags.c_contiguous and one.flags.aligned:
                arguments.append(one)
            else:
                arguments.append(np.array(one, order="C"))
                if written:
                    back.append((one, arguments[-1]))
        numbers = np.empty(len(self.kinds) or 1)
        made: dict[int, np.ndarray] = {}
        threads = get_num_threads() if self.start is not None else 1
        lapack = ctypes.cast(asked(), ctypes.c_void_p).value
        if self.entry(*arguments, numbers.ctypes.data, self.giver(made), threads, self.start, lapack):
            message = "There is no memory for the numbers that the derivative of a kernel stores."
            raise MemoryError(message)
        for one, changed in back:
            one[...] = changed
        cells = {FLOAT64: numbers, INT: numbers.view(np.int64)}
        found = [made[k] if isinstance(kind, Layout) else cells[kind][k] for k, kind in enumerate(self.kinds)]
        return tuple(found) if found else None

    def giver(self, made: dict[int, np.ndarray]) -> Any:
        """The function that machine code calls for the memory of an array that it returns."""
        layouts = {k: kind for k, kind in enumerate(self.kinds) if isinstance(kind, Layout)}
        if not layouts:
            return _GIVE()

        def give(k: int, extents: Any) -> int | None:
            made[k] = np.empty(extents[: layouts[k].rank], layouts[k].dtype)
            return made[k].ctypes.data

        return _GIVE(give)


class Compiled:
    """A derivative that is compiled when it is called: as machine code, or by Numba where that is not known to do."""

    def __init__(
        self, program: Statements, objects: Mapping[str, Any], by_numba: Callable[[], Callable[..., Any]]
    ) -> None:
        self.program, self.objects, self.by_numba = program, objects, by_numba
        self.functions: dict[Any, Callable[..., Any]] = {}

    def __call__(self, *given: Any) -> tuple[Any, ...] | None:
        """Run the derivative."""
        key = tuple([(one.dtype, _short_axis(one)) if isinstance(one, np.ndarray) else type(one) for one in given])
        found = self.functions.get(key)
        if found is None:
            try:
                found = MachineFunction(self.program, self.objects, given)
            except UnknownPartError:
                found = self.by_numba()
            self.functions[key] = found
        return found(*given)


def _layout(given: Any) -> Layout:
    """The dtype and rank of an argument."""
    if not isinstance(given, np.ndarray):
        return Layout(np.asarray(given).dtype.name, -1)
    if not given.dtype.isnative or given.dtype.name not in ELEMENTS:
        raise UnknownPartError
    return Layout(given.dtype.name, given.ndim, _short_axis(given))


def _short_axis(given: np.ndarray) -> int:
    """The length of the last axis, if code for just this length is worth while: points in space, and the like."""
    return given.shape[-1] if given.ndim > 1 and given.shape[-1] <= _SHORT else 0
