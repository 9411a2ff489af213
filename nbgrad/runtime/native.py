"""The native code that runs programs: written in Python, compiled once by Numba, then loaded from the disk cache.

In: addresses. Out: `context()`, a table of the addresses that the code needs, and `entry_address()`, the function that
CPython calls for a program (METH_FASTCALL). Called by cpu_program.py. The layouts of the tables are the constants
below, shared by this file's native functions and by cpu_program.py that fills the tables.

The functions under "Native" work on addresses as int64. `load`, `store` and `invoke` become machine instructions; they
cannot run as Python. Offsets into CPython's and NumPy's objects are those that object_layout.py measures: calls of its
functions become numbers when the code is compiled for this process.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from functools import cache

import numpy as np

from ..compiler import host_calls
from ..process import object_layout
from ..process.locks import building
from ..process.object_layout import (
    array_data,
    array_dtype,
    array_extents,
    array_flags,
    array_handler,
    array_rank,
    array_strides,
    object_type,
    tuple_items,
)
from . import blocks, threads
from .blocks import LEAST_BLOCK
from .words import invoke, load, load32, native_address, store

# ----- Layouts, in units of 8 bytes -----
# State of a program: what its entry function needs.
CONTEXT, FALLBACK, ARGUMENTS, ARGUMENT_SPECS, OUTPUTS, OUTPUT_SPECS, TABLE, ARENA_BYTES = range(8)
BASES, BASE_COUNT, SCRATCH, RELEASE, STRUCTURE, STRUCTURE_LENGTH, RESULTS, HEADER, MISSED = range(8, 17)
OBJECTS, WRAPPING = range(17, 19)
STATE_LENGTH = 19
# For each argument: its dtype (0: it is a scalar), bytes, NumPy's flags that it needs, rank, its type, of a scalar the
# offset of its value, the address of the strides that it needs (0: the flags say enough), and extents.
DTYPE, BYTES, FLAGS, ARGUMENT_RANK, TYPE, VALUE, ARGUMENT_STRIDES, ARGUMENT_HEAD = range(8)
# For each output: its dtype, bytes, whether it is a scalar, the argument whose memory it takes (or -1), rank, the
# address of its strides (0: C order), extents.
SCALAR, DONOR, RANK, STRIDES, OUTPUT_HEAD = range(2, 7)
# Context: addresses of the process, the number of threads, and the arena that programs share.
(
    ARRAY_TYPE,
    NEW_ARRAY,
    ARRAY_RETURN,
    TUPLE_NEW,
    INCREF,
    DECREF,
    VECTORCALL,
    SAVE_THREAD,
    RESTORE_THREAD,
    ALLOCATE,
    FREE,
    OMP_PARALLEL,
    OMP_THREAD,
    OMP_COUNT,
    THREADS,
    WORKER,
    NO_MEMORY,
    SHARED,
    SHARED_BYTES,
    BUSY,
    BLOCKS,
    TAKE_BLOCK,
    GIVE_BLOCK,
    HANDLER,
    FAILED,
    RAISE,
    ENSURE,
    UNENSURE,
    CHECK_SIGNALS,
    THREAD,
    MAIN_THREAD,
    INTERRUPTED,
    CLOCK,
    CLOCK_KIND,
    SECONDS,
    NANOSECONDS,
    LOOKED,
    CONTEXT_LENGTH,
) = range(38)
LOOK_AGAIN = 20_000_000
"""Nanoseconds after which signals are looked for again: another thread may have to give up the interpreter's lock."""
LARGEST_SHARED = 1 << 28
"""Programs that need more memory than this give it back after each call."""
GROUP_HEAD = 4
"""Words of a group before its steps: number of steps, chunks, parallel, words of all its steps."""
STEP_HEAD = 3
"""Words of a step before its places: function, number of places, sizes."""
PLACE = 4
"""Words of a place: base, offset, bytes down for each chunk, bytes up for each thread."""
GROUP_DATA = 7
"""Words that tell threads what to do, ahead of each thread's pointers."""


# ----- Native -----


def worker(data: int) -> int:
    """One thread's share of a group of steps."""
    thread = invoke(load(data + 40), 0, 0, 0, 0, 0, 0, 0, 0) & 0xFFFFFFFF
    count = invoke(load(data + 48), 0, 0, 0, 0, 0, 0, 0, 0) & 0xFFFFFFFF
    chunks = load(data + 16)
    begin, end = chunks * thread // count, chunks * (thread + 1) // count
    if begin < end:
        pointers = data + 8 * GROUP_DATA + 8 * thread * load(data + 32)
        run_group(load(data), load(data + 8), load(data + 24), pointers, begin, end, thread)
    return 0


def run_group(at: int, steps: int, bases: int, pointers: int, begin: int, end: int, thread: int) -> int:
    """Chunks `begin` to `end` of a group: all of them with its one step, or one by one with all its steps."""
    chunk = begin
    first = at
    while chunk < end:
        after = end if steps == 1 else chunk + 1
        at = first
        for _ in range(steps):
            function, count, sizes = load(at), load(at + 8), load(at + 16)
            at += 8 * STEP_HEAD
            for k in range(count):
                moved = thread * load(at + 24) - chunk * load(at + 16)
                store(pointers + 8 * k, load(bases + 8 * load(at)) + load(at + 8) + moved)
                at += 8 * PLACE
            invoke(function, pointers, sizes, chunk, after, 0, 0, 0, 0)
        chunk = after
    return 0


def run(table: int, bases: int, scratch: int, context: int) -> int:
    """Run the steps of a program."""
    groups, slots, width = load(table), load(table + 8), load(table + 16)
    at = table + 24
    for _ in range(groups):
        steps, chunks, parallel, words = load(at), load(at + 8), load(at + 16), load(at + 24)
        at += 8 * GROUP_HEAD
        if parallel != 0 and load(context + 8 * THREADS) > 1:
            store(scratch, at)
            store(scratch + 8, steps)
            store(scratch + 16, chunks)
            store(scratch + 24, bases)
            store(scratch + 32, width)
            store(scratch + 40, load(context + 8 * OMP_THREAD))
            store(scratch + 48, load(context + 8 * OMP_COUNT))
            wanted = min(chunks, load(context + 8 * THREADS), slots)
            invoke(load(context + 8 * OMP_PARALLEL), load(context + 8 * WORKER), scratch, wanted, 0, 0, 0, 0, 0)
        else:
            run_group(at, steps, bases, scratch, 0, chunks, 0)
        if stopped(context) != 0:
            return 0
        at += 8 * words
    return 0


def interrupted(context: int) -> int:
    """Let Python handle signals; 1 if a handler has raised an error, as Ctrl-C does, which ends the program.

    Long loops of the main thread, to which alone signals come, call this now and then. The error stays set.
    """
    if invoke(load(context + 8 * THREAD), 0, 0, 0, 0, 0, 0, 0, 0) != load(context + 8 * MAIN_THREAD):
        return 0
    if load(context + 8 * CLOCK) != 0:
        clock = context + 8 * SECONDS
        invoke(load(context + 8 * CLOCK), load(context + 8 * CLOCK_KIND), clock, 0, 0, 0, 0, 0, 0)
        now = 1_000_000_000 * load(clock) + load(context + 8 * NANOSECONDS)
        if now - load(context + 8 * LOOKED) < LOOK_AGAIN:
            return load(context + 8 * INTERRUPTED)
        store(context + 8 * LOOKED, now)
    lock = invoke(load(context + 8 * ENSURE), 0, 0, 0, 0, 0, 0, 0, 0)
    if invoke(load(context + 8 * CHECK_SIGNALS), 0, 0, 0, 0, 0, 0, 0, 0) & 0xFFFFFFFF != 0:
        store(context + 8 * INTERRUPTED, 1)
    invoke(load(context + 8 * UNENSURE), lock & 0xFFFFFFFF, 0, 0, 0, 0, 0, 0, 0)
    return load(context + 8 * INTERRUPTED)


def stopped(context: int) -> int:
    """1 if what this thread computes was interrupted."""
    if load(context + 8 * INTERRUPTED) == 0:
        return 0
    main = load(context + 8 * MAIN_THREAD)
    return 1 if invoke(load(context + 8 * THREAD), 0, 0, 0, 0, 0, 0, 0, 0) == main else 0


def matches(state: int, arguments: int, count: int) -> int:
    """The guard: 1 if every argument is what the program was compiled for."""
    if count != load(state + 8 * ARGUMENTS):
        return 0
    spec = load(state + 8 * ARGUMENT_SPECS)
    for k in range(count):
        argument = load(arguments + 8 * k)
        if load(argument + object_type()) != load(spec + 8 * TYPE):
            return 0
        if load(spec + 8 * DTYPE) != 0 and fits(argument, spec) == 0:
            return 0
        spec += 8 * (ARGUMENT_HEAD + load(spec + 8 * ARGUMENT_RANK))
    return 1


def fits(array: int, spec: int) -> int:
    """1 if an ndarray is as an argument's words describe it."""
    flags = load(spec + 8 * FLAGS)
    if load(array + array_dtype()) != load(spec + 8 * DTYPE):
        return 0
    rank = load(spec + 8 * ARGUMENT_RANK)
    if load32(array + array_rank()) != rank or load32(array + array_flags()) & flags != flags:
        return 0
    extents = load(array + array_extents())
    for axis in range(rank):
        if load(extents + 8 * axis) != load(spec + 8 * (ARGUMENT_HEAD + axis)):
            return 0
    wanted = load(spec + 8 * ARGUMENT_STRIDES)
    if wanted != 0:
        strides = load(array + array_strides())
        for axis in range(rank):
            if load(strides + 8 * axis) != load(wanted + 8 * axis) and load(extents + 8 * axis) != 1:
                return 0
    return 1


def apart(state: int, arguments: int, count: int, donor: int) -> int:
    """1 if an argument shares no memory with the others, so that it may be written to."""
    spec = load(state + 8 * ARGUMENT_SPECS)
    begin = load(load(arguments + 8 * donor) + array_data())
    end = begin
    for _ in range(donor + 1):
        end = begin + load(spec + 8 * BYTES)
        spec += 8 * (ARGUMENT_HEAD + load(spec + 8 * ARGUMENT_RANK))
    spec = load(state + 8 * ARGUMENT_SPECS)
    for k in range(count):
        if k != donor and load(spec + 8 * DTYPE) != 0:
            other = load(load(arguments + 8 * k) + array_data())
            if other < end and begin < other + load(spec + 8 * BYTES):
                return 0
        spec += 8 * (ARGUMENT_HEAD + load(spec + 8 * ARGUMENT_RANK))
    return 1


def entry(self: int, arguments: int, count: int) -> int:
    """A call from CPython: check, allocate the outputs, run, wrap."""
    state = load(self + array_data())
    context = load(state + 8 * CONTEXT)
    if matches(state, arguments, count) == 0:
        return invoke(load(context + 8 * VECTORCALL), load(state + 8 * FALLBACK), arguments, count, 0, 0, 0, 0, 0)
    return call(state, arguments, count, 0, context)


def entry_into(self: int, arguments: int, count: int) -> int:
    """A call from CPython with arrays for the results as last arguments, which the caller has checked."""
    state = load(self + array_data())
    context = load(state + 8 * CONTEXT)
    inputs = count - load(state + 8 * OUTPUTS)
    if matches(state, arguments, inputs) == 0:
        return invoke(load(context + 8 * VECTORCALL), load(state + 8 * MISSED), 0, 0, 0, 0, 0, 0, 0)
    return call(state, arguments, inputs, arguments + 8 * inputs, context)


def call(state: int, arguments: int, count: int, given: int, context: int) -> int:
    """Run a program and pack its results, which go to the arrays at `given`, or to new ones if that is 0."""
    block = acquire(state, context)
    if block == 0:
        return invoke(load(context + 8 * NO_MEMORY), 0, 0, 0, 0, 0, 0, 0, 0)
    result = 0
    if compute(state, arguments, count, given, context, block) != 0:
        results = (block + 63) // 64 * 64 + load(state + 8 * RESULTS)
        if scalars(state, results, context) != 0:
            code, length = load(state + 8 * STRUCTURE), load(state + 8 * STRUCTURE_LENGTH)
            result = pack(code, length, results, load(state + 8 * OUTPUTS), context)
        if result == 0:
            drop(state, results, context)
    release(block, context)
    return result


def compute(state: int, arguments: int, count: int, given: int, context: int, block: int) -> int:
    """Run a program in a block of memory, and put its results in there; 0 after an error."""
    arena = (block + 63) // 64 * 64
    bases = arena
    scratch = arena + load(state + 8 * SCRATCH)
    results = arena + load(state + 8 * RESULTS)
    template = load(state + 8 * BASES)
    for k in range(load(state + 8 * BASE_COUNT)):
        store(bases + 8 * k, load(template + 8 * k))
    store(bases, arena + load(state + 8 * HEADER))
    spec = load(state + 8 * ARGUMENT_SPECS)
    for k in range(count):
        argument = load(arguments + 8 * k)
        is_scalar = load(spec + 8 * DTYPE) == 0
        value = argument + load(spec + 8 * VALUE) if is_scalar else load(argument + array_data())
        store(bases + 8 * (k + 1), value)
        spec += 8 * (ARGUMENT_HEAD + load(spec + 8 * ARGUMENT_RANK))
    outputs = load(state + 8 * OUTPUTS)
    spec = load(state + 8 * OUTPUT_SPECS)
    first = load(state + 8 * BASE_COUNT) - outputs
    complete = 1
    for k in range(outputs):
        donor = load(spec + 8 * DONOR)
        made = 0
        if given != 0:
            made = load(given + 8 * k)
        elif donor >= 0 and apart(state, arguments, count, donor) != 0:
            made = load(arguments + 8 * donor)
        if made != 0:
            invoke(load(context + 8 * INCREF), made, 0, 0, 0, 0, 0, 0, 0)
        else:
            made = new_array(spec, context)
            if made == 0:
                complete = 0
        store(results + 8 * k, made)
        if made != 0:
            store(bases + 8 * (first + k), load(made + array_data()))
        spec += 8 * (OUTPUT_HEAD + load(spec + 8 * RANK))
    if complete != 0:
        if load(state + 8 * RELEASE) != 0:
            thread = invoke(load(context + 8 * SAVE_THREAD), 0, 0, 0, 0, 0, 0, 0, 0)
            run(load(state + 8 * TABLE), bases, scratch, context)
            invoke(load(context + 8 * RESTORE_THREAD), thread, 0, 0, 0, 0, 0, 0, 0)
        else:
            run(load(state + 8 * TABLE), bases, scratch, context)
        if stopped(context) != 0:
            store(context + 8 * INTERRUPTED, 0)
            complete = 0
        elif load(load(context + 8 * FAILED)) != 0:
            # A library function has raised, perhaps in this thread.
            answer = invoke(load(context + 8 * VECTORCALL), load(context + 8 * RAISE), 0, 0, 0, 0, 0, 0, 0)
            if answer == 0:
                complete = 0
            else:
                invoke(load(context + 8 * DECREF), answer, 0, 0, 0, 0, 0, 0, 0)
    if complete == 0:
        drop(state, results, context)
    return complete


def release(block: int, context: int) -> None:
    """Give back what `acquire` gave."""
    if block == load(context + 8 * SHARED):
        store(context + 8 * BUSY, 0)
    else:
        invoke(load(context + 8 * FREE), block, 0, 0, 0, 0, 0, 0, 0)


def new_array(spec: int, context: int) -> int:
    """An array for an output; large ones in a block that comes back when NumPy frees the array."""
    descriptor, size, rank = load(spec + 8 * DTYPE), load(spec + 8 * BYTES), load(spec + 8 * RANK)
    extents = spec + 8 * OUTPUT_HEAD
    data = 0
    flags = 0
    if size >= LEAST_BLOCK and load(context + 8 * HANDLER) != 0:
        data = invoke(load(context + 8 * TAKE_BLOCK), load(context + 8 * BLOCKS), size, 0, 0, 0, 0, 0, 0)
        flags = 0x501
        if data == 0:
            return invoke(load(context + 8 * NO_MEMORY), 0, 0, 0, 0, 0, 0, 0, 0)
    invoke(load(context + 8 * INCREF), descriptor, 0, 0, 0, 0, 0, 0, 0)
    kind = load(context + 8 * ARRAY_TYPE)
    strides = load(spec + 8 * STRIDES)
    made = invoke(load(context + 8 * NEW_ARRAY), kind, descriptor, rank, extents, strides, data, flags, 0)
    if data != 0:
        if made == 0:
            invoke(load(context + 8 * GIVE_BLOCK), load(context + 8 * BLOCKS), data, size, 0, 0, 0, 0, 0)
        else:
            # The array owns its data (flag 4), and frees it with our handler.
            handler = load(context + 8 * HANDLER)
            invoke(load(context + 8 * INCREF), handler, 0, 0, 0, 0, 0, 0, 0)
            store(made + array_handler(), handler)
            store(made + array_flags(), load(made + array_flags()) | 4)
    return made


def acquire(state: int, context: int) -> int:
    """Memory for one run: the block that all programs share, or a fresh one while another thread has it.

    The interpreter's lock is held here, so that only a thread that runs a large program without it can be in the way.
    """
    size = load(state + 8 * ARENA_BYTES)
    if load(context + 8 * BUSY) != 0 or size > LARGEST_SHARED:
        return invoke(load(context + 8 * ALLOCATE), size, 0, 0, 0, 0, 0, 0, 0)
    if load(context + 8 * SHARED_BYTES) < size:
        invoke(load(context + 8 * FREE), load(context + 8 * SHARED), 0, 0, 0, 0, 0, 0, 0)
        store(context + 8 * SHARED_BYTES, 0)
        block = invoke(load(context + 8 * ALLOCATE), size, 0, 0, 0, 0, 0, 0, 0)
        store(context + 8 * SHARED, block)
        if block == 0:
            return 0
        store(context + 8 * SHARED_BYTES, size)
    store(context + 8 * BUSY, 1)
    return load(context + 8 * SHARED)


def drop(state: int, results: int, context: int) -> None:
    """Forget results, as far as there are any."""
    for k in range(load(state + 8 * OUTPUTS)):
        made = load(results + 8 * k)
        if made != 0:
            invoke(load(context + 8 * DECREF), made, 0, 0, 0, 0, 0, 0, 0)


def scalars(state: int, results: int, context: int) -> int:
    """Turn 0-d results into scalars where asked; 0 after an error."""
    spec = load(state + 8 * OUTPUT_SPECS)
    for k in range(load(state + 8 * OUTPUTS)):
        if load(spec + 8 * SCALAR) != 0:
            scalar = invoke(load(context + 8 * ARRAY_RETURN), load(results + 8 * k), 0, 0, 0, 0, 0, 0, 0)
            store(results + 8 * k, scalar)
            if scalar == 0:
                return 0
        spec += 8 * (OUTPUT_HEAD + load(spec + 8 * RANK))
    return 1


def pack(code: int, length: int, results: int, outputs: int, context: int) -> int:
    """Build the result's tuples, in the words after the results; 0 after an error.

    The tuples take the results, in whose place nothing is left.
    """
    # Postfix: k >= 0 pushes output k, -1 - n packs the last n into a tuple.
    top = results + 8 * outputs
    stack = top
    for k in range(length):
        word = load(code + 8 * k)
        if word >= 0:
            store(top, load(results + 8 * word))
            store(results + 8 * word, 0)
            top += 8
        else:
            size = -1 - word
            packed = invoke(load(context + 8 * TUPLE_NEW), size, 0, 0, 0, 0, 0, 0, 0)
            if packed == 0:
                while top > stack:
                    top -= 8
                    invoke(load(context + 8 * DECREF), load(top), 0, 0, 0, 0, 0, 0, 0)
                return 0
            top -= 8 * size
            for item in range(size):
                store(packed + tuple_items() + 8 * item, load(top + 8 * item))
            store(top, packed)
            top += 8
    return load(stack)


# ----- Compiling -----


# ----- Addresses -----

FUNCTIONS = {entry: 3, entry_into: 3, worker: 1, run: 4, interrupted: 1}
"""The functions that are called from outside, each with the number of words that it takes."""


def entry_address(into: bool = False) -> int:
    """The address of the function that CPython calls for a program, with or without arrays for the results."""
    function = entry_into if into else entry
    return native_address(function, FUNCTIONS[function])


def run_address() -> int:
    """The address of the function that runs a table of steps."""
    return native_address(run, FUNCTIONS[run])


def interrupted_address() -> int:
    """The address of the function that long loops call now and then, with the address of the context."""
    return native_address(interrupted, FUNCTIONS[interrupted])


def context() -> np.ndarray:
    """The table of the process's addresses; the number of threads in it may change."""
    with building.held():
        return _context()


@cache
def _context() -> np.ndarray:
    api = ctypes.pythonapi

    def address(library: ctypes.CDLL | ctypes.PyDLL, name: str) -> int:
        found = ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        assert found is not None, name
        return found

    numpy_api = object_layout.numpy_table()
    table = np.zeros(CONTEXT_LENGTH, np.int64)
    table[ARRAY_TYPE] = id(np.ndarray)
    # Positions in NumPy's C API table, which are part of its ABI.
    table[NEW_ARRAY] = numpy_api[94]
    table[ARRAY_RETURN] = numpy_api[76]
    for slot, name in (
        (TUPLE_NEW, "PyTuple_New"),
        (INCREF, "Py_IncRef"),
        (DECREF, "Py_DecRef"),
        (VECTORCALL, "PyObject_VectorcallDict"),
        (SAVE_THREAD, "PyEval_SaveThread"),
        (RESTORE_THREAD, "PyEval_RestoreThread"),
        (ALLOCATE, "PyMem_RawMalloc"),
        (FREE, "PyMem_RawFree"),
        (NO_MEMORY, "PyErr_NoMemory"),
        (ENSURE, "PyGILState_Ensure"),
        (UNENSURE, "PyGILState_Release"),
        (CHECK_SIGNALS, "PyErr_CheckSignals"),
        (THREAD, "PyThread_get_thread_ident"),
    ):
        table[slot] = address(api, name)
    runtime = threads.openmp()
    if runtime is not None:
        for slot, name in (
            (OMP_PARALLEL, "GOMP_parallel"),
            (OMP_THREAD, "omp_get_thread_num"),
            (OMP_COUNT, "omp_get_num_threads"),
        ):
            table[slot] = address(runtime, name)
        table[WORKER] = native_address(worker, 1)
    clock = getattr(ctypes.CDLL(None), "clock_gettime", None) if os.name == "posix" else None
    if clock is not None:
        table[CLOCK], table[CLOCK_KIND] = ctypes.cast(clock, ctypes.c_void_p).value or 0, time.CLOCK_MONOTONIC
    table[MAIN_THREAD] = threading.main_thread().ident or 0
    table[FAILED], table[RAISE] = host_calls.FAILURES.ctypes.data, id(host_calls.raise_failure)
    table[BLOCKS], table[TAKE_BLOCK], table[GIVE_BLOCK], table[HANDLER] = blocks.attach()
    threads.attach(table[THREADS : THREADS + 1])
    return table


def _after_fork_in_child() -> None:
    """The thread that has forked is the main one of the child; an interruption of the parent is none here."""
    if _context.cache_info().currsize:
        table = _context()
        table[MAIN_THREAD], table[INTERRUPTED] = threading.get_ident(), 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
