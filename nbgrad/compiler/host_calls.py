"""Calls from compiled programs back into Python: the `host` nodes.

In: a `Special` of fuse.py whose node is a `host` one. Out: the address of a function with the ABI of all kernels, which
wraps the memory that it is called with in ndarrays and runs the library function. Called by special.py. ctypes takes
the interpreter's lock for the time of the call, whether or not the program has released it.

No exception can pass through a program. What a library function raises is kept, and raised when the program ends.
"""

from __future__ import annotations

import ctypes
import os
import struct
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..graph.custom_calls import run_results_into
from ..graph.host_functions import run_host_into
from ..graph.ir import Node
from .fuse import Special

FAILURES = np.zeros(1, np.int64)
"""The number of threads with an error that is not raised yet."""
_raised: dict[int, BaseException] = {}
"""These errors, by the thread's identifier."""
KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def native_call(node: Node) -> tuple[str, list[int]] | None:
    """The IR text and the integers of a kernel in place of Python's function, if there is one."""
    find = node.params[0].native
    return None if find is None else find(node.params[1:-1], node.params[-1])


def host_address(kernel: Special) -> int:
    """The address of a kernel that calls its library function; the kernel keeps it alive.

    The node's last parameter has the shapes and dtypes of operands and result as the function knows them.
    """
    kernel.call = KERNEL(_caller(kernel))
    address = ctypes.cast(kernel.call, ctypes.c_void_p).value
    assert address is not None
    return address


def _caller(kernel: Special) -> Callable[[int, int, int, int], None]:
    params, layouts = kernel.node.params[:-1], kernel.node.params[-1]
    positions = result_positions(kernel)
    if positions is not None:
        layouts = (*layouts[:-1], *[params[1].outputs[k] for k in positions])
    count = len(kernel.reads)
    pointers = struct.Struct(f"{len(layouts)}q")
    last: tuple[bytes, Sequence[int], list[np.ndarray]] = b"", (), []
    """The addresses of the last call, most of which are often those of the next, and the arrays there."""

    def call(places: int, sizes: int, begin: int, end: int) -> None:
        nonlocal last
        if FAILURES[0] and threading.get_ident() in _raised:
            return  # of a function that has failed there is no result to go on with
        found = ctypes.string_at(places, pointers.size)
        known, before, arrays = last
        if found != known:
            addresses = pointers.unpack(found)
            pairs = enumerate(zip(addresses, layouts, strict=True))
            arrays = [
                arrays[k] if k < len(before) and before[k] == at else _array(at, *layout) for k, (at, layout) in pairs
            ]
            last = found, addresses, arrays
        # Views, since the function may give what it gets another shape.
        views = [array.view() for array in arrays]
        try:
            if positions is None:
                run_host_into(views[-1], params, *views[:-1])
            else:
                run_results_into(params[1], views[:count], dict(zip(positions, views[count:], strict=True)))
        except BaseException as error:
            keep_failure(error)

    return call


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _sorted_rows(at: int) -> None:
    try:
        rows, length = (ctypes.c_int64 * 2).from_address(at)
        _array(at + 16, (rows, length), np.dtype(np.int64)).sort(axis=-1)
    except BaseException as error:
        keep_failure(error)


SORTER = ctypes.cast(_sorted_rows, ctypes.c_void_p).value or 0
"""The address of a function that sorts rows of int64; it gets that of their number, their length, and then the rows."""


def result_positions(kernel: Special) -> list[int] | None:
    """The positions of the results that an own kernel writes apart (results_apart.py); None if there is one array."""
    return None if kernel.targets == (kernel.node,) else [node.params[1] for node in kernel.targets]


def _array(address: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
    """Memory as an ndarray."""
    size = dtype.itemsize
    for extent in shape:
        size *= extent
    if not size or not address:
        return np.empty(shape, dtype)
    memory: Any = (ctypes.c_char * size).from_address(address)
    return np.ndarray(shape, dtype, memory)


def keep_failure(error: BaseException) -> None:
    """Keep the first error of the calls that this thread's program makes, until the program ends."""
    _raised.setdefault(threading.get_ident(), error)
    FAILURES[0] = len(_raised)


def has_failed() -> bool:
    """Whether a call of this thread's program has failed, whose error is raised when the program ends."""
    return bool(FAILURES[0]) and threading.get_ident() in _raised


def raise_failure() -> None:
    """Raise the error of a library function in this thread; called by programs that see `FAILURES` above 0."""
    error = _raised.pop(threading.get_ident(), None)
    FAILURES[0] = len(_raised)
    if error is not None:
        raise error


def _after_fork_in_child() -> None:
    """The errors of other threads are never raised here."""
    error = _raised.pop(threading.get_ident(), None)
    _raised.clear()
    if error is not None:
        _raised[threading.get_ident()] = error
    FAILURES[0] = len(_raised)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
