"""Memory of simulated devices: what kernels, copies and launches must not touch is an error that says where."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import numpy as np
import pytest

from nbgrad.device.kernels.launches import DeviceKernel
from nbgrad.device.simulator.simulator import Simulator
from nbgrad.errors import DeviceError

from .device_kernels import ORDERS, STORE, kernel, launch, run

pytestmark = pytest.mark.unoptimized

ACCESSES = {
    "store i8": ("store i8 7, ptr %q", 1),
    "load i8": ("%v = load volatile i8, ptr %q", 1),
    "load float": ("%v = load volatile float, ptr %q", 4),
    "load pointer": ("%v = load volatile ptr, ptr %q", 8),
    "store pointer": ("store ptr %x, ptr %q, align 8", 8),
    "load vector": ("%v = load volatile <4 x float>, ptr %q, align 4", 16),
    "store struct": ("store {i32, i64} {i32 1, i64 2}, ptr %q, align 4", 16),
    "volatile load": ("%v = load volatile double, ptr %q, align 4", 8),
    "atomic load": ("%v = load atomic i32, ptr %q monotonic, align 4", 4),
    "atomic addition": ("%v = atomicrmw add ptr %q, i32 1 monotonic", 4),
    "atomic float": ("%v = atomicrmw volatile fadd ptr %q, float 1.0 seq_cst, align 4", 4),
    "atomic exchange": ("%v = cmpxchg ptr %q, i64 1, i64 2 monotonic monotonic", 8),
}
"""Instructions, and how many bytes they need."""


def access(instruction: str, waits: bool = False) -> DeviceKernel:
    """An instruction at byte n of x, which may be behind a barrier."""
    barrier = "  call void @nbgrad.barrier()\n" if waits else ""
    return kernel(
        "access", f"{barrier}  %q = getelementptr i8, ptr %x, i64 %n\n  {instruction}\n  ret void", "ptr %x, i64 %n"
    )


@pytest.mark.parametrize("name", ACCESSES)
@pytest.mark.parametrize("waits", [False, True])
def test_accesses_beyond_an_array(name: str, waits: bool) -> None:
    instruction, size = ACCESSES[name]
    used = access(instruction, waits)
    simulator = Simulator()
    for nbytes in (96, 64 + size):
        pointer = simulator.allocate(nbytes, 0, 0)
        assert pointer % 256 == 0
        for offset in (0, nbytes - size):
            launch(simulator, used, [pointer, offset])
            simulator.synchronise(0)
        for offset in (-8 * size, -size, nbytes, nbytes + 7 * size, nbytes + 8000):
            launch(simulator, used, [pointer, offset])
            message = (
                rf"accessed {size} bytes at 0x\w+ \(block 0, thread 0\), which is not its own: that is byte {offset} of"
            )
            with pytest.raises(DeviceError, match=message if offset < nbytes + 8000 else "not its own"):
                simulator.synchronise(0)


@pytest.mark.parametrize(
    ("instruction", "size"),
    [("load volatile <4 x float>, ptr %q, align 4", 16), ("load volatile i64, ptr %q, align 1", 8)],
)
def test_accesses_partly_beyond_an_array(instruction: str, size: int) -> None:
    simulator = Simulator()
    for nbytes in (100, 103):
        pointer = simulator.allocate(nbytes, 0, 0)
        used = access(f"%v = {instruction}")
        step = 4 if size == 16 else 1
        for offset in range(-size - 3 * step, nbytes + size, step):
            launch(simulator, used, [pointer, offset])
            if 0 <= offset <= nbytes - size:
                simulator.synchronise(0)
            else:
                with pytest.raises(DeviceError, match="not its own"):
                    simulator.synchronise(0)


@pytest.mark.parametrize(
    ("instruction", "offset", "align"),
    [
        ("load volatile float, ptr %q", 2, 4),
        ("load volatile double, ptr %q", 4, 8),
        ("load volatile <4 x float>, ptr %q, align 16", 4, 16),
        ("load volatile <2 x half>, ptr %q, align 4", 2, 4),
        ("atomicrmw add ptr %q, i64 1 monotonic", 4, 8),
    ],
)
def test_accesses_that_are_not_aligned(instruction: str, offset: int, align: int) -> None:
    simulator = Simulator()
    pointer = simulator.allocate(64, 0, 0)
    used = access(f"%v = {instruction}")
    launch(simulator, used, [pointer, 2 * align])
    simulator.synchronise(0)
    launch(simulator, used, [pointer, offset])
    with pytest.raises(DeviceError, match=f"not a multiple of {align}"):
        simulator.synchronise(0)


@pytest.mark.parametrize("order", ORDERS)
def test_the_thread_that_made_a_wrong_access(order: str) -> None:
    simulator = Simulator(order=order)
    pointer = simulator.allocate(4 * 150, 0, 0)
    store = "  %q = getelementptr i32, ptr %x, i32 %i\n  store i32 0, ptr %q\n  ret void"
    for barrier in ("", "  call void @nbgrad.barrier()\n"):
        function = simulator.function(kernel("thread", barrier + store, "ptr %x"), 0)
        simulator.launch(function, 3, 50, 0, np.array([pointer]), 0)
        simulator.synchronise(0)
        simulator.launch(function, 3, 64, 0, np.array([pointer]), 0)
        found = "block 2, thread 22" if order == "forward" else "block 2, thread 63"
        with pytest.raises(DeviceError, match=found):
            simulator.synchronise(0)


def test_accesses_to_nothing() -> None:
    simulator = Simulator()
    launch(simulator, STORE, [0, 0])
    with pytest.raises(DeviceError, match="no memory is there"):
        simulator.synchronise(0)
    first, second = simulator.allocate(8, 0, 0), simulator.allocate(8, 0, 0)
    simulator.free(second, 0, 0)
    launch(simulator, STORE, [first, second - first])
    with pytest.raises(DeviceError, match="byte 0 of an array of 8 bytes, which has been freed"):
        simulator.synchronise(0)


@pytest.mark.parametrize("offset", [-1, 64, 100, 5000])
def test_accesses_beyond_shared_memory(offset: int) -> None:
    body = "  %s = call ptr @nbgrad.shared()\n  %q = getelementptr i8, ptr %s, i64 %n\n  store i8 7, ptr %q\n  ret void"
    used = kernel("store shared", body, "ptr %x, i64 %n")
    run(used, np.zeros(4), 63, threads=1, shared=64)
    with pytest.raises(DeviceError, match=f"byte {offset} of the block's 64 bytes of shared memory"):
        run(used, np.zeros(4), offset, threads=1, shared=64)


def test_local_memory_and_constants_are_free() -> None:
    table = kernel(
        "table",
        """
  %local = alloca [4 x i32]
  %l = getelementptr [4 x i32], ptr %local, i32 0, i32 2
  %c = getelementptr [4 x i32], ptr @constants, i32 0, i32 %t
  %v = load i32, ptr %c
  store volatile i32 %v, ptr %l
  %w = load volatile i32, ptr %l
  %q = getelementptr i32, ptr %x, i32 %t
  store i32 %w, ptr %q
  ret void
}
@constants = private constant [4 x i32] [i32 3, i32 1, i32 4, i32 1]
define internal void @unused() {
  ret void
""",
        "ptr %x",
    )
    (x,) = run(table, np.zeros(4, np.int32), threads=4)
    np.testing.assert_array_equal(x, [3, 1, 4, 1])


@pytest.mark.parametrize("offset", [-1, -200, 100, 103, 350])
def test_writes_beyond_an_array_by_others(offset: int) -> None:
    """Libraries and the host's own copies do not ask before they write."""
    simulator = Simulator()
    pointer = simulator.allocate(100, 0, 0)
    launch(simulator, STORE, [pointer, 99])
    simulator.synchronise(0)
    for find in (
        lambda: simulator.synchronise(0),
        lambda: simulator.download(np.zeros(100, np.int8), pointer, 0),
        lambda: simulator.free(pointer, 0, 0) or simulator.synchronise(0),
    ):
        ctypes.memset(pointer + offset, 7, 1)
        with pytest.raises(DeviceError, match=r"written outside of the memory.* test store"):
            find()
    simulator.synchronise(0)


def test_memory_is_unset_at_first() -> None:
    simulator = Simulator()
    back = np.zeros(10)
    simulator.download(back, simulator.allocate(80, 0, 0), 0)
    assert np.isnan(back).all()


ARRAY = np.arange(4.0)
USES: dict[str, Callable[[Simulator, int, int], None]] = {
    "upload": lambda s, bad, _: s.upload(bad, ARRAY, 0),
    "download": lambda s, bad, _: s.download(np.empty(4), bad, 0),
    "copy from": lambda s, bad, good: s.copy(good, bad, 32, 0),
    "copy to": lambda s, bad, good: s.copy(bad, good, 32, 0),
    "fill": lambda s, bad, _: s.fill(bad, 0, 32, 0),
    "launch": lambda s, bad, _: launch(s, STORE, [bad, 0]),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", ["freed", "foreign", "small"])
def test_memory_that_cannot_be_used(use: str, kind: str) -> None:
    simulator = Simulator()
    good, bad = simulator.allocate(32, 0, 0), simulator.allocate(32, 0, 0)
    message = {"freed": "has been freed", "foreign": "in no memory of a device", "small": "ends after 24"}[kind]
    if kind == "freed":
        simulator.free(bad, 0, 0)
        assert simulator.owner_of(bad) is None
        with pytest.raises(DeviceError, match="has been freed before"):
            simulator.free(bad, 0, 0)
    elif kind == "foreign":
        bad = ARRAY.ctypes.data
        assert simulator.owner_of(bad) is None
        with pytest.raises(DeviceError, match="no block"):
            simulator.free(bad, 0, 0)
    else:
        bad += 8
        assert simulator.owner_of(bad) == 0
        if use == "launch":
            return
    with pytest.raises(DeviceError, match=message):
        USES[use](simulator, bad, good)
        simulator.synchronise(0)
    simulator.synchronise(0)
    simulator.upload(good, ARRAY, 0)


def test_arrays_of_the_host_must_be_in_order() -> None:
    simulator = Simulator()
    pointer = simulator.allocate(64, 0, 0)
    with pytest.raises(DeviceError, match="C order"):
        simulator.upload(pointer, np.zeros((2, 4)).T, 0)


def test_copies_and_fills() -> None:
    simulator = Simulator(devices=2)
    first, second = simulator.allocate(32, 0, 0), simulator.allocate(32, 0, 1)
    simulator.upload(first, ARRAY, 0)
    simulator.copy(second, first, 32, 0)
    simulator.fill(second + 16, 0, 8, 0)
    back = np.empty(4)
    simulator.download(back, second, 0)
    np.testing.assert_array_equal(back, [0, 1, 0, 3])
    assert simulator.owner_of(second) == 1


def test_memory_of_another_device() -> None:
    simulator = Simulator(devices=2)
    pointer = simulator.allocate(8, 0, 1)
    launch(simulator, STORE, [pointer, 0], device=0)
    with pytest.raises(DeviceError, match="on cuda:0 uses memory of cuda:1"):
        simulator.synchronise(0)
    with pytest.raises(DeviceError, match="cuda:0"):
        simulator.free(pointer, 0, 0)


def test_out_of_memory() -> None:
    simulator = Simulator(memory=1000)
    pointer = simulator.allocate(600, 0, 0)
    assert simulator.memory(0) == (400, 1000)
    with pytest.raises(DeviceError, match="Out of memory on cuda:0: 500 bytes were asked for, 400 of 1000 are free"):
        simulator.allocate(500, 0, 0)
    simulator.free(pointer, 0, 0)
    assert simulator.memory(0) == (1000, 1000)
    simulator.allocate(500, 0, 0)


def test_memory_that_is_used_again() -> None:
    """Freed blocks are kept for a while, but not for ever."""
    simulator = Simulator()
    first = simulator.allocate(1 << 20, 0, 0)
    simulator.free(first, 0, 0)
    for _ in range(100):
        simulator.free(simulator.allocate(1 << 20, 0, 0), 0, 0)
    assert len(simulator.memories._starts) < 70
    kept = [simulator.allocate(1 << 20, 0, 0) for _ in range(5)]
    assert [simulator.owner_of(pointer + 5) for pointer in kept] == [0] * 5
