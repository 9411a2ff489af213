"""Blocks: the memory of large results, used again when NumPy frees the arrays.

In: sizes, and blocks that are no longer needed. Out: blocks. Called by native.py for results of `LEAST_BLOCK` bytes and
more, and by NumPy, which frees each array with the functions that it was given at its making (NEP 49). Fresh memory is
given by the system page by page, at the first touch of each: for a loop over large arrays that takes as long as the
loop. So blocks that were freed are kept, at most 32 of them and 128 MiB, and the next result of that size gets one.

Blocks begin at different places of their pages. A processor tells by the last twelve bits of addresses whether what it
reads may still be on its way to memory, and waits if so; arrays of NumPy begin 16 bytes into a page, and one array of
ours at the same place as another, or shortly behind one of NumPy's, costs a loop over both up to a fifth of its speed.

The functions under "Native" are compiled as those of native.py are. The interpreter's lock is held in all of them.
"""

from __future__ import annotations

import ctypes
import os
import sys

import numpy as np

from .words import invoke, load, native_address, store

LEAST_BLOCK = 1 << 17
"""Results of so many bytes come from blocks.py; NumPy's own allocator is faster for smaller ones."""
# The table of blocks: functions of the C library (0 where there is no such function), how many bytes and blocks are
# kept, how many were made, and address and bytes of each, the youngest first. In front of a block is the address of the
# memory that it lies in.
ALIGNED, RESIZE, FREE, ADVISE, KEPT_BYTES, KEPT, MADE, FIRST_BLOCK = range(8)
MOST_BLOCKS = 32
TABLE_LENGTH = FIRST_BLOCK + 2 * MOST_BLOCKS
MOST_KEPT = 1 << 27
"""How many bytes are kept at most."""
PAGE = 1 << 12
LINE = 64
PLACES, FIRST_PLACE, STRIDE = 48, 8, 11
"""Blocks begin at the lines `FIRST_PLACE + (STRIDE * k) % PLACES` of a page, far from each other for neighbouring k."""
HUGE = 1 << 22
"""From this size on, the system is asked for large pages, as NumPy does."""
HUGE_PAGES = 14
"""MADV_HUGEPAGE of Linux."""


# ----- Native -----


def take(blocks: int, size: int) -> int:
    """Memory for a result: the block of this size that was given back last, or a fresh one; 0 if there is none.

    The interpreter's lock is held here and in `give`.
    """
    size = (size + PAGE - 1) // PAGE * PAGE
    kept = load(blocks + 8 * KEPT)
    at = blocks + 8 * FIRST_BLOCK
    for k in range(kept):
        if load(at + 16 * k + 8) == size:
            block = load(at + 16 * k)
            for later in range(k + 1, kept):
                store(at + 16 * later - 16, load(at + 16 * later))
                store(at + 16 * later - 8, load(at + 16 * later + 8))
            store(blocks + 8 * KEPT, kept - 1)
            store(blocks + 8 * KEPT_BYTES, load(blocks + 8 * KEPT_BYTES) - size)
            return block
    memory = invoke(load(blocks + 8 * ALIGNED), LINE, size + 2 * PAGE, 0, 0, 0, 0, 0, 0)
    if memory == 0:
        return 0
    made = load(blocks + 8 * MADE)
    store(blocks + 8 * MADE, made + 1)
    place = LINE * (FIRST_PLACE + STRIDE * made % PLACES)
    block = (memory + PAGE) // PAGE * PAGE + place
    store(block - 8, memory)
    if size >= HUGE and load(blocks + 8 * ADVISE) != 0:
        begin = (block + PAGE - 1) // PAGE * PAGE
        invoke(load(blocks + 8 * ADVISE), begin, block + size - begin, HUGE_PAGES, 0, 0, 0, 0, 0)
    return block


def give(blocks: int, block: int, size: int) -> int:
    """NumPy frees a result: keep the block, in place of the oldest ones if that is too much."""
    size = (size + PAGE - 1) // PAGE * PAGE
    if size < LEAST_BLOCK or size > MOST_KEPT:
        invoke(load(blocks + 8 * FREE), load(block - 8), 0, 0, 0, 0, 0, 0, 0)
        return 0
    kept, total = load(blocks + 8 * KEPT), load(blocks + 8 * KEPT_BYTES)
    at = blocks + 8 * FIRST_BLOCK
    while kept == MOST_BLOCKS or total + size > MOST_KEPT:
        kept -= 1
        total -= load(at + 16 * kept + 8)
        invoke(load(blocks + 8 * FREE), load(load(at + 16 * kept) - 8), 0, 0, 0, 0, 0, 0, 0)
    for later in range(kept, 0, -1):
        store(at + 16 * later, load(at + 16 * later - 16))
        store(at + 16 * later + 8, load(at + 16 * later - 8))
    store(at, block)
    store(at + 8, size)
    store(blocks + 8 * KEPT, kept + 1)
    store(blocks + 8 * KEPT_BYTES, total + size)
    return 0


def resize(blocks: int, block: int, size: int) -> int:
    """NumPy resizes a result (`ndarray.resize`)."""
    size = (size + PAGE - 1) // PAGE * PAGE
    before = load(block - 8)
    memory = invoke(load(blocks + 8 * RESIZE), before, size + 2 * PAGE, 0, 0, 0, 0, 0, 0)
    if memory == 0:
        return 0
    # What was in the block has moved with it.
    block += memory - before
    store(block - 8, memory)
    return block


def zeroed(blocks: int, count: int, size: int) -> int:
    """NumPy asks for zeros (`numpy.zeros`); nothing allocates with our handler but native.py."""
    return 0


FUNCTIONS = {take: 2, give: 3, resize: 3, zeroed: 3}
"""The native functions, with the number of words that they take."""


# ----- NumPy's handler -----


class _Handler(ctypes.Structure):
    """PyDataMem_Handler of NumPy's C API."""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("context", ctypes.c_void_p),
        *[(name, ctypes.c_void_p) for name in ("malloc", "calloc", "realloc", "free")],
    ]


table = np.zeros(TABLE_LENGTH, np.int64)


def attach() -> tuple[int, int, int, int]:
    """Addresses of the table, of `take` and of `give`, and the handler; zeros where the C library lacks functions."""
    if os.name != "posix":
        return 0, 0, 0, 0
    library = ctypes.CDLL(None)
    for slot, name in ((ALIGNED, "aligned_alloc"), (RESIZE, "realloc"), (FREE, "free"), (ADVISE, "madvise")):
        if hasattr(library, name) and (slot != ADVISE or sys.platform == "linux"):
            table[slot] = ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
    if not table[ALIGNED]:
        return 0, 0, 0, 0
    addresses = {function: native_address(function, count) for function, count in FUNCTIONS.items()}
    functions = [addresses[function] for function in (take, zeroed, resize, give)]
    handler = _Handler(b"nbgrad", 1, table.ctypes.data, *functions)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    name = ctypes.create_string_buffer(b"mem_handler")
    capsule = make(ctypes.addressof(handler), ctypes.addressof(name), None)
    for kept in (handler, name, capsule, table):
        # Arrays are freed to the very end of the process.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    return table.ctypes.data, addresses[take], addresses[give], id(capsule)
