"""The native code that runs loops: turn by turn, it points the body's steps at the arrays of the turn and runs them.

In: the addresses that all kernels get, and a table that loop_plan.py fills. Out: `turns_address()`, a function with the
ABI of all kernels. Called by step_tables.py. As in native.py, the functions under "Native" work on addresses as int64
and cannot run as Python.

The scratch memory of a loop holds, in this order: the addresses that the body's steps start from, room for `run`, two
buffers for each carried value that lives nowhere else, and the arena of the body.
"""

from __future__ import annotations

import ctypes

from .words import invoke, load, native_address, store

# ----- Layouts, in units of 8 bytes -----
# The table of a loop: its head, then the words of its inputs, of what each turn writes, of copies at the end, and of
# copies at the beginning.
TURNS, REVERSE, CONTEXT, TABLE, TEMPLATE, BASES, SCRATCH, ARENA, INPUTS, OUTPUTS, COPIES, WORKSPACE = range(12)
MOVE, RUN, FAILED, BEGINNINGS, MOVING, LOOK, LOOK_EVERY, HEAD = range(12, 20)
# An input: its base, its array among the pointers, bytes from turn to turn; or the base of what carries it on (else 0).
BASE, SOURCE, STRIDE, CARRIES, INPUT_WORDS = range(5)
# What each turn writes: its base and bytes; where it goes to, each the number of a pointer or -1: an array of every
# turn; such an array of the values before each turn; an array for the last turn; and its two buffers (or -1).
SIZE, EVERY, BEFORE, LAST, BUFFERS, OUTPUT_WORDS = range(1, 7)
# A copy at the end: an array among the pointers, the base of what is written to it, bytes. At the beginning, from an
# array among the pointers in place of a base, to the first turn's part of an array.
TARGET, FROM, BYTES, COPY_WORDS = range(4)


# ----- Native -----


def run_turns(pointers: int, sizes: int, begin: int, end: int) -> int:
    """Run all turns of a loop."""
    turns, context = load(sizes + 8 * TURNS), load(sizes + 8 * CONTEXT)
    workspace = load(pointers + 8 * load(sizes + 8 * WORKSPACE))
    template, count = load(sizes + 8 * TEMPLATE), load(sizes + 8 * BASES)
    for k in range(count):
        store(workspace + 8 * k, load(template + 8 * k))
    store(workspace, workspace + load(sizes + 8 * ARENA))
    first_output = sizes + 8 * (HEAD + INPUT_WORDS * load(sizes + 8 * INPUTS))
    first_copy = first_output + 8 * OUTPUT_WORDS * load(sizes + 8 * OUTPUTS)
    scratch = workspace + load(sizes + 8 * SCRATCH)
    if turns > 0:
        spec = first_copy + 8 * COPY_WORDS * load(sizes + 8 * COPIES)
        at = turns - 1 if load(sizes + 8 * REVERSE) != 0 else 0
        for _ in range(load(sizes + 8 * BEGINNINGS)):
            size, source = load(spec + 8 * BYTES), load(pointers + 8 * load(spec + 8 * FROM))
            target = load(pointers + 8 * load(spec)) + at * size
            invoke(load(sizes + 8 * MOVE), target, source, size, 0, 0, 0, 0, 0)
            spec += 8 * COPY_WORDS
    failed = load(sizes + 8 * FAILED)
    look = load(sizes + 8 * LOOK_EVERY)
    for turn in range(turns):
        look -= 1
        if look == 0:
            look = load(sizes + 8 * LOOK_EVERY)
            if invoke(load(sizes + 8 * LOOK), context, 0, 0, 0, 0, 0, 0, 0) != 0:
                return 0
        at, step = turn, 1
        if load(sizes + 8 * REVERSE) != 0:
            at, step = turns - 1 - turn, -1
        place(pointers, sizes, workspace, turn, at)
        spec = first_output
        for _ in range(load(sizes + 8 * OUTPUTS)):
            size, before = load(spec + 8 * SIZE), load(spec + 8 * BEFORE)
            if load(spec + 8 * EVERY) >= 0:
                address = load(pointers + 8 * load(spec + 8 * EVERY)) + at * size
            elif before >= 0 and turn < turns - 1:
                address = load(pointers + 8 * before) + (at + step) * size
            elif load(spec + 8 * LAST) >= 0 and turn == turns - 1:
                address = load(pointers + 8 * load(spec + 8 * LAST))
            else:
                address = workspace + load(spec + 8 * BUFFERS) + (turn & 1) * size
            store(workspace + 8 * load(spec), address)
            spec += 8 * OUTPUT_WORDS
        invoke(load(sizes + 8 * RUN), load(sizes + 8 * TABLE), workspace, scratch, context, 0, 0, 0, 0)
        if load(failed) != 0:
            return 0
    if turns > 0:
        spec = first_copy
        for _ in range(load(sizes + 8 * COPIES)):
            source, target = load(workspace + 8 * load(spec + 8 * FROM)), load(pointers + 8 * load(spec))
            invoke(load(sizes + 8 * MOVE), target, source, load(spec + 8 * BYTES), 0, 0, 0, 0, 0)
            spec += 8 * COPY_WORDS
    return 0


def place(pointers: int, sizes: int, workspace: int, turn: int, at: int) -> int:
    """Point the inputs of the body at the values of a turn; constants, which come last, at the first turn only."""
    spec = sizes + 8 * HEAD
    count = load(sizes + 8 * INPUTS) if turn == 0 else load(sizes + 8 * MOVING)
    for _ in range(count):
        carries = load(spec + 8 * CARRIES)
        if carries == 0 or turn == 0:
            address = load(pointers + 8 * load(spec + 8 * SOURCE)) + at * load(spec + 8 * STRIDE)
        else:
            address = load(workspace + 8 * carries)
        store(workspace + 8 * load(spec), address)
        spec += 8 * INPUT_WORDS
    return 0


# ----- Addresses -----

FUNCTIONS = {run_turns: 4}
"""The functions that are called from outside, each with the number of words that it takes."""


def turns_address() -> int:
    """The address of the function that runs a loop."""
    return native_address(run_turns, FUNCTIONS[run_turns])


def move_address() -> int:
    """The address of C's memmove."""
    found = ctypes.cast(ctypes.memmove, ctypes.c_void_p).value
    assert found is not None
    return found
