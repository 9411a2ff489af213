"""All launches of a program in one native call.

In: launches whose kernels are loaded, and for each of their pointers which base it counts from. Out: `Launches`, whose
`run` fills in the pointers and calls the driver's launch function for each, without any Python in between: a launch
takes as long as the driver's own call. Called by the runtime's device program.

The driver reads the parameters of a launch before it returns, so one buffer for each launch serves every call. A buffer
is an array of 64-bit words, pointers first.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from ...compiler import cpu
from ..kernels.launches import Launch

BUFFER_POINTER, BUFFER_SIZE = 1, 2
"""cuLaunchKernel's names for entries of the list of extra arguments."""

_IR = """
define i64 @run_launches(ptr %table, i64 %count, ptr %bases, ptr %launch, ptr %stream) {
entry:
  br label %test
test:
  %k = phi i64 [ 0, %entry ], [ %k.next, %launched ]
  %record = phi ptr [ %table, %entry ], [ %record.next, %launched ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %one, label %done
one:
  %words.at = getelementptr i64, ptr %record, i64 5
  %words = load ptr, ptr %words.at
  %patches.at = getelementptr i64, ptr %record, i64 6
  %patches = load i64, ptr %patches.at
  %first = getelementptr i64, ptr %record, i64 7
  br label %patch.test
patch.test:
  %p = phi i64 [ 0, %one ], [ %p.next, %patch ]
  %patch.more = icmp slt i64 %p, %patches
  br i1 %patch.more, label %patch, label %go
patch:
  %two = mul i64 %p, 2
  %base.at = getelementptr i64, ptr %first, i64 %two
  %base = load i64, ptr %base.at
  %offset.at = getelementptr i64, ptr %base.at, i64 1
  %offset = load i64, ptr %offset.at
  %start.at = getelementptr i64, ptr %bases, i64 %base
  %start = load i64, ptr %start.at
  %address = add i64 %start, %offset
  %word.at = getelementptr i64, ptr %words, i64 %p
  store i64 %address, ptr %word.at
  %p.next = add i64 %p, 1
  br label %patch.test
go:
  %function = load ptr, ptr %record
  %blocks.at = getelementptr i64, ptr %record, i64 1
  %blocks.wide = load i64, ptr %blocks.at
  %blocks = trunc i64 %blocks.wide to i32
  %threads.at = getelementptr i64, ptr %record, i64 2
  %threads.wide = load i64, ptr %threads.at
  %threads = trunc i64 %threads.wide to i32
  %shared.at = getelementptr i64, ptr %record, i64 3
  %shared.wide = load i64, ptr %shared.at
  %shared = trunc i64 %shared.wide to i32
  %extra.at = getelementptr i64, ptr %record, i64 4
  %extra = load ptr, ptr %extra.at
  %code = call i32 %launch(ptr %function, i32 %blocks, i32 1, i32 1, i32 %threads, i32 1, i32 1, i32 %shared,
    ptr %stream, ptr null, ptr %extra)
  %good = icmp eq i32 %code, 0
  br i1 %good, label %launched, label %failed
launched:
  %k.next = add i64 %k, 1
  %twice = mul i64 %patches, 2
  %length = add i64 %twice, 7
  %record.next = getelementptr i64, ptr %record, i64 %length
  br label %test
failed:
  %above = add i64 %k, 1
  %shifted = shl i64 %above, 32
  %code.wide = zext i32 %code to i64
  %both = or i64 %shifted, %code.wide
  ret i64 %both
done:
  ret i64 0
}
"""


@cache
def _run_launches() -> Callable[..., int]:
    address = cpu.function_address(cpu.Function("device launches", "run_launches", lambda: _IR))
    kind = ctypes.CFUNCTYPE(
        ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
    )
    return kind(address)


class Launches:
    """Launches in a row.

    Parameters
    ----------
    launches : sequence of (Launch, handle, places)
        With the handle of each kernel, and for each pointer (base, offset in bytes).
    launch_address : int
        The driver's launch function.
    """

    def __init__(self, launches: Sequence[tuple[Launch, int, Sequence[tuple[int, int]]]], launch_address: int) -> None:
        self.keys = tuple([launch.kernel.key for launch, _, _ in launches])
        self._kept: list[np.ndarray] = []
        table: list[int] = []
        for launch, handle, places in launches:
            words = self._array([*[0] * len(places), *launch.numbers])
            size = self._array([words.nbytes])
            extra = self._array([BUFFER_POINTER, words.ctypes.data, BUFFER_SIZE, size.ctypes.data, 0])
            table += [handle, launch.blocks, launch.threads, launch.shared, extra.ctypes.data, words.ctypes.data]
            table += [len(places), *[number for place in places for number in place]]
        self._table = self._array(table)
        self._at = self._table.ctypes.data
        self._launch = launch_address
        self._run = _run_launches()

    def _array(self, words: Sequence[int]) -> np.ndarray:
        array = np.array(words, np.int64)
        self._kept.append(array)
        return array

    def run(self, bases: int, stream: int) -> tuple[str, int] | None:
        """Launch all; `bases` is the address of the bases' addresses. Not to be called by two threads at once.

        Returns
        -------
        (str, int) or None
            The key of a kernel that the driver refused, and its code.
        """
        found = self._run(self._at, len(self.keys), bases, self._launch, stream)
        return (self.keys[(found >> 32) - 1], found & 0xFFFFFFFF) if found else None
