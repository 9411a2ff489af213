"""Programs: a graph compiled for given shapes and dtypes, ready to be called.

In: output nodes, the leaves that vary from call to call, and how the result is built. Out: a `Program`, whose `call` is
a native Python callable: it checks its arguments, allocates the outputs, runs the kernels and wraps the result without
executing any Python code. Called by evaluate.py and jit.py.
"""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compiler.fuse import Special
from ..compiler.sorted_values import without_positions
from ..errors import OutOfMemoryError
from ..graph.host_functions import is_call
from ..graph.ir import Node, plain_dtype
from ..graph.loops.segments import Key, Schedule, scheduled
from ..process.gc_pause import RareCollection
from ..process.object_layout import scalar_values
from ..process.progress import Work
from . import native, threads
from .axis_orders import Order
from .budget import NO_ROOM, Budget, Scheduled, fitted
from .cpu_plan import Plan, plan
from .donation import donors
from .front import Front, Orders, base_words, front
from .lifetimes import Place, nbytes
from .memory_order import contiguous
from .step_tables import kept_array, plan_table
from .tape_files import TapeFile

RELEASE_ELEMENTS = 1 << 15
"""From this much work on, other Python threads may run while a program runs."""


class _MethodDef(ctypes.Structure):
    _fields_ = [
        ("name", ctypes.c_char_p),
        ("method", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


METH_FASTCALL = 0x80
IN_C, ALIGNED, WRITEABLE = 0x1, 0x100, 0x400
"""NumPy's flags."""


@dataclass
class Output:
    """A result and its form: `scalar` turns a 0-d array into a NumPy scalar."""

    node: Node
    scalar: bool = False


class Program:
    """A compiled graph.

    Parameters
    ----------
    outputs : sequence of Output
    arguments : sequence of nodes
        Leaves in the order of the call's positional arguments; every one aligned, and C-contiguous or in its order,
        when called.
    scalars : dict of int to type
        Positions of arguments that are scalars, of Python or NumPy, each with its type (object_layout.SCALARS).
    structure : sequence of int or None
        The nesting of the results, in postfix: k pushes result k, -1 - n packs n values into a tuple. None: a flat
        tuple.
    fallback : callable
        Called with the same arguments when they do not fit the program.
    donated : set of int
        Positions of arguments whose memory results may take: they must be writeable. A result that does so is the
        argument itself.
    packed : int
        The length of the longest other structure that an entry of its own (native_tensors.py) packs results into.
    budget : Budget, optional
        The memory that a call may take.
    name : str, optional
        The name of the function that is compiled.
    orders : Orders, optional
        The orders of axes in which arguments and outputs lie in memory; C order by default.

    Raises
    ------
    OutOfMemoryError
        If it cannot stay within its budget.
    """

    def __init__(
        self,
        outputs: Sequence[Output],
        arguments: Sequence[Node],
        scalars: Mapping[int, type] | None = None,
        structure: Sequence[int] | None = None,
        fallback: Callable[..., Any] | None = None,
        donated: frozenset[int] = frozenset(),
        packed: int = 0,
        budget: Budget | None = None,
        name: str = "",
        orders: Orders | None = None,
    ) -> None:
        start = time.perf_counter()
        head = f"compiling {name}:" if name else "compiling"
        with RareCollection(), Work() as work:
            self.outputs = outputs
            nodes = [output.node for output in outputs]
            self.argument_strides = _strides(arguments, None if orders is None else orders.arguments)
            """Of each argument, its strides in bytes; None for C order."""
            self.output_strides = _strides(nodes, None if orders is None else orders.outputs)
            fused = functools.partial(front, nodes, arguments, without_positions, orders=orders)
            made = fused()
            self.plan: Plan = plan(made.fused, made.arguments, made.constants, threads.available())
            self.schedules: list[Scheduled] = []
            """The tapes of loops that are stored, if there is a budget."""
            self.file: TapeFile | None = None
            """The file that some of it goes into."""
            if budget is not None:
                made = self._within(budget, made, fused)
            self.graph = made.graph
            found = donors(self.plan, made.fused.outputs, made.results, made.arguments, donated)
            mine, theirs = self.output_strides, self.argument_strides
            self.donors = {
                output: donor
                for output, donor in found.items()
                if (nodes[output].shape, mine[output]) == (arguments[donor].shape, theirs[donor])
            }
            self._keep: list[Any] = []
            self._into: Callable[..., Any] | None = None
            if self.file is not None:
                self.file.open()
                made.constants.append(self.file.base)

            def tell(number: int, total: int) -> None:
                work.tell(lambda: f"{head} {number:,} of {total:,} kernels")

            self._build(arguments, made.constants, scalars or {}, structure, fallback or _refuse, packed, tell)
        self.seconds = time.perf_counter() - start

    def _within(self, budget: Budget, made: Front, fused: Callable[..., Front]) -> Front:
        """Plan again until the budget is met."""
        results = sum(nbytes(output.node) for output in self.outputs)
        best = made

        def needs(schedules: Mapping[Key, Schedule]) -> int:
            nonlocal best
            best = fused(lambda graph, leaves: scheduled(graph, schedules))
            leaves, apart = best.constants, None
            if budget.offload is not None:
                self.file = TapeFile(budget.offload, best.fused)
                if not self.file.has_room:
                    return NO_ROOM
                base = 1 + len(best.arguments) + len(leaves)
                apart = {node: Place(base, start) for node, start in self.file.places.items()}
                leaves = [*leaves, self.file.base]
            self.plan = plan(best.fused, best.arguments, leaves, threads.available(), apart)
            return self.plan.arena_bytes + results

        if self.plan.arena_bytes + results > budget.size:
            self.schedules = fitted(budget, made.graph, needs)
            if self.file is not None and not self.file.size:
                self.file = None
                self.plan = plan(best.fused, best.arguments, best.constants, threads.available())
        return best

    def _array(self, words: Sequence[int]) -> np.ndarray:
        """An int64 array that lives as long as the program."""
        return kept_array(words, self._keep)

    def _address(self, strides: Sequence[int] | None) -> int:
        return 0 if strides is None else self._array(strides).ctypes.data

    def _build(
        self,
        arguments: Sequence[Node],
        constants: Sequence[Node],
        scalars: Mapping[int, type],
        structure: Sequence[int] | None,
        fallback: Callable[..., Any],
        packed: int,
        tell: Callable[[int, int], object],
    ) -> None:
        context = native.context()
        template = base_words(len(arguments), constants, self.plan.literals, len(self.outputs), self._keep)

        argument_specs: list[int] = []
        for position, node in enumerate(arguments):
            scalar = scalars.get(position)
            if scalar is not None:
                argument_specs += [0, 0, 0, 0, id(scalar), scalar_values()[scalar], 0]
                continue
            strides = self.argument_strides[position]
            flags = ALIGNED | (IN_C if strides is None else 0)
            flags |= WRITEABLE if position in self.donors.values() else 0
            argument_specs += [
                id(plain_dtype(node.dtype)),
                nbytes(node),
                flags,
                node.ndim,
                id(np.ndarray),
                0,
                self._address(strides),
                *node.shape,
            ]
        output_specs: list[int] = []
        for position, output in enumerate(self.outputs):
            node = output.node
            scalar = output.scalar and node.ndim == 0
            donor = self.donors.get(position, -1)
            strides = self._address(self.output_strides[position])
            dtype = plain_dtype(node.dtype)
            output_specs += [id(dtype), nbytes(node), int(scalar), donor, node.ndim, strides, *node.shape]
        if structure is None:
            structure = [*range(len(self.outputs)), -1 - len(self.outputs)]
        table = plan_table(self.plan, self._keep, threads.get_num_threads(), tell)

        scratch = 8 * len(template)
        pointers = native.GROUP_DATA + table[2] * self.plan.slots
        results = scratch + 8 * pointers
        objects = results + 8 * (2 * len(self.outputs) + max(len(structure), packed) + 2)
        header = -(-(objects + 8 * (len(arguments) + 1)) // 64) * 64

        state = self._array([0] * native.STATE_LENGTH)
        state[native.CONTEXT] = context.ctypes.data
        state[native.FALLBACK] = id(fallback)
        state[native.ARGUMENTS] = len(arguments)
        state[native.ARGUMENT_SPECS] = self._array(argument_specs).ctypes.data
        state[native.OUTPUTS] = len(self.outputs)
        state[native.OUTPUT_SPECS] = self._array(output_specs).ctypes.data
        state[native.TABLE] = self._array(table).ctypes.data
        state[native.ARENA_BYTES] = header + self.plan.arena_bytes + 64
        words = self._array(template)
        state[native.BASES] = words.ctypes.data
        state[native.BASE_COUNT] = len(template)
        state[native.SCRATCH] = scratch
        # A message may wait for another process.
        waits = any(isinstance(step.kernel, Special) and is_call(step.kernel.node) for step in self.plan.steps)
        state[native.RELEASE] = int(waits or self.plan.elements >= RELEASE_ELEMENTS)
        state[native.STRUCTURE] = self._array(list(structure)).ctypes.data
        state[native.STRUCTURE_LENGTH] = len(structure)
        state[native.RESULTS] = results
        state[native.HEADER] = header
        state[native.MISSED] = id(missed)
        state[native.OBJECTS] = objects
        self._keep += [fallback, [node.dtype for node in arguments], [o.node.dtype for o in self.outputs]]
        self.state = state
        self.call = self._callable(state, False)
        if self.file is not None:
            self._file_at = functools.partial(words.__setitem__, len(arguments) + len(constants))
            self.call = self.file.guarded(self.call, self._file_at)

    @property
    def needed_bytes(self) -> int:
        """The memory that a call asks for: intermediates and results."""
        return int(self.state[native.ARENA_BYTES]) + sum(nbytes(output.node) for output in self.outputs)

    def out_of_memory(self, what: str) -> OutOfMemoryError:
        """The error for a call that did not get the memory that it needs; `what` was called."""
        results = {output.node for output in self.outputs}
        arrays = [node for node in (*self.plan.places, *results) if node.name not in ("constant", "input", "literal")]
        message = (
            f"{what} needs {_size(self.needed_bytes)} of memory for its intermediates and results, more than there is."
        )
        if arrays:
            largest = max(arrays, key=nbytes)
            message += (
                f" The largest array is of {largest.name}, of shape {largest.shape} and dtype {largest.dtype}: "
                f"{_size(nbytes(largest))}."
            )
        return OutOfMemoryError(message)

    @property
    def call_into(self) -> Callable[..., Any]:
        """Run like `call`, with an array for each result as further arguments, which get the results.

        They must be as `call` would make them and share no memory with anything else: the caller has checked that.
        Gives `MISSED` if the arguments do not fit.
        """
        if self._into is None:
            self._into = self._callable(self.state, True)
            if self.file is not None:
                self._into = self.file.guarded(self._into, self._file_at)
        return self._into

    def _callable(self, state: np.ndarray, into: bool) -> Callable[..., Any]:
        return native_callable(native.entry_address(into), state, self._keep)


def _strides(nodes: Sequence[Node], orders: Sequence[Order | None] | None) -> list[tuple[int, ...] | None]:
    """The strides in bytes of arrays whose axes lie in some orders; None for C order."""
    if orders is None:
        return [None] * len(nodes)
    pairs = zip(nodes, orders, strict=True)
    return [None if order is None else contiguous(node.shape, node.dtype.itemsize, order) for node, order in pairs]


def native_callable(address: int, state: np.ndarray, kept: Any) -> Callable[..., Any]:
    """A Python callable of a native function, which finds `state` as its `self` and keeps alive what that points to."""
    definition = _MethodDef(b"nbgrad_program", address, METH_FASTCALL, b"A compiled graph.")
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    # The callable keeps `state` alive, and `state` (through this attribute holder) everything that it points to.
    holder = _State(state.shape, state.dtype, state)
    holder.kept = (definition, kept)
    return make(ctypes.addressof(definition), holder, None)


def _size(count: int) -> str:
    """A number of bytes as text."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.3g} {unit}"
        count /= 1024  # type: ignore[assignment]
    return f"{count:.3g} GiB" if count < 1024 else f"{count / 1024:.3g} TiB"


class _State(np.ndarray):
    """The state of a program, which also keeps alive what it points to."""

    kept: Any

    def __new__(cls, shape: Any, dtype: Any, source: np.ndarray) -> _State:
        made = np.ndarray.__new__(cls, shape, dtype, buffer=source)
        made.kept = None
        return made


MISSED = object()
"""The result of a call whose arguments do not fit, if it has no other fallback."""


def missed(*_: Any) -> Any:
    """The fallback that gives `MISSED`."""
    return MISSED


def _refuse(*arguments: Any) -> Any:
    """The fallback of programs whose arguments were made to fit: reaching it is a fault of nbgrad itself."""
    shown = ", ".join(f"{type(a).__name__} {getattr(a, 'dtype', '')}{getattr(a, 'shape', '')}" for a in arguments)
    message = f"internal error: a program was called with arguments that it was not compiled for: {shown}"
    raise AssertionError(message)
