"""The drivers without a GPU: kernels in the simulator give what NumPy gives, and misuse is an error; the recorder."""

from __future__ import annotations

import ctypes
import inspect
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from nbgrad.device.driver import Driver, driver, using
from nbgrad.device.host_dialect import parameters
from nbgrad.device.launches import DeviceKernel
from nbgrad.device.recorder import Recorder
from nbgrad.device.simulated_memory import SHARED
from nbgrad.device.simulator import LaunchFunction, Simulator
from nbgrad.errors import ArgumentError, DeviceError

ORDERS = ("forward", "reversed")


def kernel(name: str, body: str, arguments: str = "ptr %x, ptr %y") -> DeviceKernel:
    """A kernel whose body knows %t, %b, %k, %g (thread, block, threads, blocks) and %i, the thread in the grid."""
    text = f"""
declare i32 @nbgrad.thread()
declare i32 @nbgrad.block()
declare i32 @nbgrad.threads()
declare i32 @nbgrad.blocks()
declare void @nbgrad.barrier()
declare void @nbgrad.fence()
declare i32 @nbgrad.ballot(i32)
declare ptr @nbgrad.shared()
declare i32 @nbgrad.shuffle.down.i32(i32, i32)
declare i64 @nbgrad.shuffle.down.i64(i64, i32)
declare i32 @nbgrad.shuffle.xor.i32(i32, i32)
declare i64 @nbgrad.shuffle.xor.i64(i64, i32)
declare i32 @nbgrad.shuffle.from.i32(i32, i32)
declare i64 @nbgrad.shuffle.from.i64(i64, i32)
define void @kernel({arguments}) {{
entry:
  %t = call i32 @nbgrad.thread()
  %b = call i32 @nbgrad.block()
  %k = call i32 @nbgrad.threads()
  %g = call i32 @nbgrad.blocks()
  %before = mul i32 %b, %k
  %i = add i32 %before, %t
{body}
}}
"""
    return DeviceKernel(f"test {name} {body} {arguments}", lambda: text)


def run(
    used: DeviceKernel,
    *operands: np.ndarray | int,
    blocks: int = 1,
    threads: int = 32,
    shared: int = 0,
    order: str = "forward",
) -> list[np.ndarray]:
    """Run a kernel with copies of the arrays, which come back."""
    simulator = Simulator(order=order)
    words: list[int] = []
    arrays: list[np.ndarray] = []
    for operand in operands:
        if isinstance(operand, int):
            words.append(operand)
        else:
            words.append(simulator.allocate(operand.nbytes, 0, 0))
            arrays.append(np.empty_like(operand))
            simulator.upload(words[-1], operand, 0)
    simulator.launch(simulator.function(used, 0, shared), blocks, threads, shared, np.array(words), 0)
    for pointer, array in zip(words, arrays, strict=False):
        simulator.download(array, pointer, 0)
        simulator.free(pointer, 0, 0)
    simulator.synchronise(0)
    return arrays


def square(kind: str) -> DeviceKernel:
    """y = x * x over n elements, by a grid of any size."""
    return kernel(
        f"square {kind}",
        f"""
  %start = zext i32 %i to i64
  %all = mul i32 %k, %g
  %step = zext i32 %all to i64
  br label %test
test:
  %e = phi i64 [ %start, %entry ], [ %next, %do ]
  %in = icmp slt i64 %e, %n
  br i1 %in, label %do, label %end
do:
  %p = getelementptr {kind}, ptr %x, i64 %e
  %q = getelementptr {kind}, ptr %y, i64 %e
  %v = load {kind}, ptr %p
  %w = fmul {kind} %v, %v
  store {kind} %w, ptr %q
  %next = add i64 %e, %step
  br label %test
end:
  ret void
""",
        "ptr noalias readonly %x, ptr noalias %y, i64 %n",
    )


SQUARES = {"half": np.float16, "float": np.float32, "double": np.float64}


@pytest.mark.parametrize("kind", SQUARES)
@pytest.mark.parametrize(("blocks", "threads"), [(1, 1), (1, 32), (3, 100), (40, 256), (400, 256)])
@pytest.mark.parametrize("order", ORDERS)
def test_elements(kind: str, blocks: int, threads: int, order: str) -> None:
    x = np.linspace(-3, 5, 10007).astype(SQUARES[kind])
    _, y = run(square(kind), x, np.zeros_like(x), 10007, blocks=blocks, threads=threads, order=order)
    np.testing.assert_array_equal(y, x * x)


def test_where_a_thread_is() -> None:
    names = kernel(
        "places",
        """
  %ft = mul i32 %t, 1
  %fb = mul i32 %b, 1000
  %fk = mul i32 %k, 1000000
  %fg = mul i32 %g, 100000000
  %s1 = add i32 %ft, %fb
  %s2 = add i32 %s1, %fk
  %s3 = add i32 %s2, %fg
  %p = getelementptr i32, ptr %x, i32 %i
  store i32 %s3, ptr %p
  ret void
""",
        "ptr %x",
    )
    (x,) = run(names, np.zeros(4 * 50, np.int32), blocks=4, threads=50)
    block, thread = np.divmod(np.arange(200), 50)
    np.testing.assert_array_equal(x, thread + 1000 * block + 1_000_000 * 50 + 100_000_000 * 4)


BLOCK_SUM = kernel(
    "block sum",
    """
  %s = call ptr @nbgrad.shared()
  %p = getelementptr float, ptr %x, i32 %i
  %v = load float, ptr %p
  %q = getelementptr float, ptr %s, i32 %t
  store float %v, ptr %q
  call void @nbgrad.barrier()
  br label %loop
loop:
  %twice = phi i32 [ %k, %entry ], [ %half, %next ]
  %half = lshr i32 %twice, 1
  %go = icmp ugt i32 %half, 0
  br i1 %go, label %body, label %end
body:
  %mine = icmp ult i32 %t, %half
  br i1 %mine, label %add, label %next
add:
  %j = add i32 %t, %half
  %r = getelementptr float, ptr %s, i32 %j
  %a = load float, ptr %q
  %c = load float, ptr %r
  %d = fadd float %a, %c
  store float %d, ptr %q
  br label %next
next:
  call void @nbgrad.barrier()
  br label %loop
end:
  %first = icmp eq i32 %t, 0
  br i1 %first, label %put, label %out
put:
  %f = load float, ptr %s
  %yp = getelementptr float, ptr %y, i32 %b
  store float %f, ptr %yp
  br label %out
out:
  ret void
""",
)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("threads", [1, 2, 32, 64, 256, 1024])
def test_sum_of_a_block_by_shared_memory(threads: int, order: str) -> None:
    x = np.arange(5 * threads, dtype=np.float32)
    _, y = run(BLOCK_SUM, x, np.zeros(5, np.float32), blocks=5, threads=threads, shared=4 * threads, order=order)
    np.testing.assert_array_equal(y, x.reshape(5, threads).sum(1))


def shuffled(mode: str, bits: int) -> DeviceKernel:
    """y = the value of another lane, n away."""
    return kernel(
        f"shuffle {mode} {bits}",
        f"""
  %d = trunc i64 %n to i32
  %p = getelementptr i{bits}, ptr %x, i32 %i
  %v = load i{bits}, ptr %p
  %w = call i{bits} @nbgrad.shuffle.{mode}.i{bits}(i{bits} %v, i32 %d)
  %q = getelementptr i{bits}, ptr %y, i32 %i
  store i{bits} %w, ptr %q
  ret void
""",
        "ptr %x, ptr %y, i64 %n",
    )


LANES = np.arange(32)
SOURCES: dict[str, Callable[[int], np.ndarray]] = {
    "down": lambda n: np.where(LANES + n < 32, LANES + n, LANES),
    "xor": lambda n: LANES ^ n,
    "from": lambda n: np.full(32, n),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("mode", SOURCES)
def test_shuffles(mode: str, bits: int, order: str) -> None:
    x = np.random.default_rng(0).integers(-(1 << (bits - 1)), (1 << (bits - 1)) - 1, 192).astype(f"int{bits}")
    for n in (0, 1, 2, 5, 16, 31):
        _, y = run(shuffled(mode, bits), x, np.zeros_like(x), n, blocks=2, threads=96, order=order)
        np.testing.assert_array_equal(y, x.reshape(6, 32)[:, SOURCES[mode](n)].ravel())


@pytest.mark.parametrize("order", ORDERS)
def test_sum_of_warps_by_shuffles(order: str) -> None:
    steps = "".join(
        f"""
  %bits{n} = bitcast double %v{2 * n} to i64
  %other{n} = call i64 @nbgrad.shuffle.xor.i64(i64 %bits{n}, i32 {n})
  %there{n} = bitcast i64 %other{n} to double
  %v{n} = fadd double %v{2 * n}, %there{n}"""
        for n in (16, 8, 4, 2, 1)
    )
    summed = kernel(
        "warp sum",
        f"""
  %p = getelementptr double, ptr %x, i32 %i
  %v32 = load double, ptr %p
{steps}
  %q = getelementptr double, ptr %y, i32 %i
  store double %v1, ptr %q
  ret void
""",
    )
    x = np.arange(256.0)
    _, y = run(summed, x, np.zeros_like(x), blocks=2, threads=128, order=order)
    np.testing.assert_array_equal(y, np.repeat(x.reshape(8, 32).sum(1), 32))


@pytest.mark.parametrize("order", ORDERS)
def test_ballot(order: str) -> None:
    votes = kernel(
        "ballot",
        """
  %p = getelementptr i32, ptr %x, i32 %i
  %v = load i32, ptr %p
  %w = call i32 @nbgrad.ballot(i32 %v)
  %q = getelementptr i32, ptr %y, i32 %i
  store i32 %w, ptr %q
  ret void
""",
    )
    x = np.random.default_rng(1).integers(-1, 2, 128).astype(np.int32)
    _, y = run(votes, x, np.zeros_like(x), blocks=1, threads=128, order=order)
    expected = ((x.reshape(4, 32) != 0).astype(np.uint32) << np.arange(32, dtype=np.uint32)).sum(1, dtype=np.uint32)
    np.testing.assert_array_equal(y.view(np.uint32), np.repeat(expected, 32))


def test_atomic_operations() -> None:
    counted = kernel(
        "histogram",
        """
  %p = getelementptr i32, ptr %x, i32 %i
  %v = load i32, ptr %p
  %q = getelementptr i32, ptr %y, i32 %v
  %old = atomicrmw add ptr %q, i32 1 monotonic
  %r = getelementptr float, ptr %z, i32 %v
  %older = atomicrmw fadd ptr %r, float 0.5 monotonic
  call void @nbgrad.fence()
  ret void
""",
        "ptr %x, ptr %y, ptr %z",
    )
    x = np.random.default_rng(2).integers(0, 10, 640).astype(np.int32)
    _, y, z = run(counted, x, np.zeros(10, np.int32), np.zeros(10, np.float32), blocks=5, threads=128)
    np.testing.assert_array_equal(y, np.bincount(x, minlength=10))
    np.testing.assert_array_equal(z, np.bincount(x, minlength=10) / 2)


def test_functions_of_the_c_library() -> None:
    sines = kernel(
        "sines",
        """
  %p = getelementptr double, ptr %x, i32 %i
  %v = load double, ptr %p
  %w = call double @sin(double %v)
  %q = getelementptr double, ptr %y, i32 %i
  store double %w, ptr %q
  ret void
}
declare double @sin(double)
define double @unused(double %v) {
  ret double %v
""",
    )
    x = np.concatenate([np.linspace(-10, 10, 30), [1e10, 1e300]])
    _, y = run(sines, x, np.zeros_like(x))
    np.testing.assert_allclose(y, np.sin(x), rtol=1e-15)


NEIGHBOUR = """
  %s = call ptr @nbgrad.shared()
  %p = getelementptr i32, ptr %x, i32 %i
  %v = load i32, ptr %p
  %q = getelementptr i32, ptr %s, i32 %t
  store i32 %v, ptr %q
  BARRIER
  %above = add i32 %t, 1
  %j = urem i32 %above, %k
  %r = getelementptr i32, ptr %s, i32 %j
  %w = load i32, ptr %r
  %o = getelementptr i32, ptr %y, i32 %i
  store i32 %w, ptr %o
  ret void
"""
"""Each thread reads what the next one has written."""


def test_a_missing_barrier_shows_in_one_of_both_orders() -> None:
    x = np.arange(1, 129, dtype=np.int32)
    expected = np.roll(x.reshape(2, 64), -1, axis=1).ravel()
    right = kernel("neighbour", NEIGHBOUR.replace("BARRIER", "call void @nbgrad.barrier()"))
    wrong = kernel("neighbour", NEIGHBOUR.replace("BARRIER", ""))
    results = {
        (used is right, order): run(used, x, np.zeros_like(x), blocks=2, threads=64, shared=256, order=order)[1]
        for used in (right, wrong)
        for order in ORDERS
    }
    for order in ORDERS:
        np.testing.assert_array_equal(results[True, order], expected)
    assert (results[False, "forward"] != expected).sum() == 2 * 63
    assert (results[False, "reversed"] != expected).sum() == 2


def test_shared_memory_is_unset_in_every_block() -> None:
    reads = kernel(
        "unset",
        """
  %s = call ptr @nbgrad.shared()
  %q = getelementptr float, ptr %s, i32 %t
  %v = load float, ptr %q
  store float 1.0, ptr %q
  %p = getelementptr float, ptr %x, i32 %i
  store float %v, ptr %p
  ret void
""",
        "ptr %x",
    )
    (x,) = run(reads, np.zeros(96, np.float32), blocks=3, threads=32, shared=128)
    assert np.isnan(x).all()


IF_LOW = """
  %low = icmp ult i32 %t, LIMIT
  br i1 %low, label %one, label %two
one:
  ONE
  br label %end
two:
  TWO
  br label %end
end:
  ret void
"""
WAITS = {
    "barrier": "call void @nbgrad.barrier()",
    "shuffle": "%s = call i32 @nbgrad.shuffle.down.i32(i32 1, i32 1)",
    "ballot": "%v = call i32 @nbgrad.ballot(i32 1)",
    "nothing": "",
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("one", "two", "limit", "threads", "message"),
    [
        ("nothing", "barrier", 40, 64, r"40 threads \(the first is 0\) have ended"),
        ("nothing", "barrier", 32, 64, r"32 threads \(the first is 32\) wait at barrier"),
        ("nothing", "shuffle", 7, 32, r"25 threads \(the first is 7\) wait at shuffle.down.i32"),
        ("ballot", "barrier", 16, 32, r"16 threads \(the first is 0\) wait at ballot"),
        ("ballot", "shuffle", 16, 32, r"in block 0"),
        ("shuffle", "shuffle", 16, 40, r"8 threads \(the first is 32\) wait at shuffle"),
    ],
)
def test_threads_that_wait_in_vain(one: str, two: str, limit: int, threads: int, message: str, order: str) -> None:
    body = IF_LOW.replace("LIMIT", str(limit)).replace("ONE", WAITS[one]).replace("TWO", WAITS[two].replace("%s", "%u"))
    used = kernel("in vain", body)
    if order == "forward":
        with pytest.raises(DeviceError, match=message):
            run(used, np.zeros(4), np.zeros(4), threads=threads)
    else:
        with pytest.raises(DeviceError, match="in vain"):
            run(used, np.zeros(4), np.zeros(4), threads=threads, order=order)


def test_warps_that_part_meet_at_a_barrier() -> None:
    body = IF_LOW.replace("LIMIT", "32").replace("ONE", WAITS["shuffle"] + "\n" + WAITS["barrier"])
    run(kernel("apart", body.replace("TWO", WAITS["barrier"])), np.zeros(4), np.zeros(4), threads=96)


# ----- Memory -----


STORE = kernel("store", "  %q = getelementptr i8, ptr %x, i64 %n\n  store i8 7, ptr %q\n  ret void", "ptr %x, i64 %n")


def launch(simulator: Simulator, used: DeviceKernel, words: Sequence[int], stream: int = 0, device: int = 0) -> None:
    """One block of one thread."""
    simulator.launch(simulator.function(used, device), 1, 1, 0, np.array(words), stream)


ACCESSES = {
    "store i8": ("store i8 7, ptr %q", 1),
    "load i8": ("%v = load i8, ptr %q", 1),
    "load float": ("%v = load float, ptr %q", 4),
    "load pointer": ("%v = load ptr, ptr %q", 8),
    "store pointer": ("store ptr %x, ptr %q, align 8", 8),
    "load vector": ("%v = load <4 x float>, ptr %q, align 4", 16),
    "store struct": ("store {i32, i64} {i32 1, i64 2}, ptr %q, align 4", 16),
    "volatile load": ("%v = load volatile double, ptr %q, align 4", 8),
    "atomic load": ("%v = load atomic i32, ptr %q monotonic, align 4", 4),
    "atomic addition": ("%v = atomicrmw add ptr %q, i32 1 monotonic", 4),
    "atomic float": ("%v = atomicrmw volatile fadd ptr %q, float 1.0 seq_cst, align 4", 4),
    "atomic exchange": ("%v = cmpxchg ptr %q, i64 1, i64 2 monotonic monotonic", 8),
}
"""Instructions, and how many bytes they need."""


def access(instruction: str, waits: bool = False) -> DeviceKernel:
    """An instruction at byte n of x, which the optimiser must not drop."""
    used = (
        instruction.replace("load ", "load volatile ")
        if "tile" not in instruction and "tomic" not in instruction
        else instruction
    )
    barrier = "  call void @nbgrad.barrier()\n" if waits else ""
    return kernel("access", f"{barrier}  %q = getelementptr i8, ptr %x, i64 %n\n  {used}\n  ret void", "ptr %x, i64 %n")


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
    ("instruction", "size"), [("load <4 x float>, ptr %q, align 4", 16), ("load i64, ptr %q, align 1", 8)]
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
        ("load float, ptr %q", 2, 4),
        ("load double, ptr %q", 4, 8),
        ("load <4 x float>, ptr %q, align 16", 4, 16),
        ("load <2 x half>, ptr %q, align 4", 2, 4),
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
    run(used, np.zeros(4), 63, shared=64)
    with pytest.raises(DeviceError, match=f"byte {offset} of the block's 64 bytes of shared memory"):
        run(used, np.zeros(4), offset, shared=64)


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


# ----- Failures -----


def test_failures_on_demand() -> None:
    simulator = Simulator()
    simulator.fail("allocate", after=1)
    pointer = simulator.allocate(32, 0, 0)
    with pytest.raises(DeviceError, match="Out of memory"):
        simulator.allocate(32, 0, 0)
    simulator.allocate(32, 0, 0)

    simulator.fail("fault")
    launch(simulator, STORE, [pointer, 0])
    with pytest.raises(DeviceError, match="illegal address"):
        simulator.synchronise(0)
    launch(simulator, STORE, [pointer, 0])
    simulator.synchronise(0)

    simulator.fail("launch")
    with pytest.raises(DeviceError, match="refuses"):
        launch(simulator, STORE, [pointer, 0])
    for what in ("upload", "download"):
        simulator.fail(what)
        with pytest.raises(DeviceError, match=what):
            getattr(simulator, what)(*((pointer, ARRAY) if what == "upload" else (ARRAY.copy(), pointer)), 0)
    simulator.fail("copy")
    with pytest.raises(DeviceError, match="copy"):
        simulator.copy(pointer, pointer, 8, 0)
    simulator.fail("compile")
    with pytest.raises(DeviceError, match="compiled"):
        simulator.function(square("float"), 0)
    with pytest.raises(ArgumentError, match="what must be one of"):
        simulator.fail("everything")


def test_arguments_of_the_simulator() -> None:
    with pytest.raises(ArgumentError, match="order"):
        Simulator(order="random")
    with pytest.raises(DeviceError, match="no device cuda:2"):
        Simulator(devices=2).use(2)
    assert Simulator(devices=3).count() == 3
    assert Simulator().properties(0).capability == (9, 0)


# ----- Launches -----


@pytest.mark.parametrize(
    ("blocks", "threads", "shared", "words", "message"),
    [
        (0, 1, 0, 2, "blocks"),
        (1 << 31, 1, 0, 2, "blocks"),
        (1, 0, 0, 2, "threads"),
        (1, 1025, 0, 2, "1 to 1024 threads"),
        (1, 1, 50000, 2, "49152 bytes of shared memory were asked for"),
        (1, 1, 0, 3, "2 parameters, but 3 are given"),
    ],
)
def test_impossible_launches(blocks: int, threads: int, shared: int, words: int, message: str) -> None:
    simulator = Simulator()
    function = simulator.function(STORE, 0)
    with pytest.raises(DeviceError, match=message):
        simulator.launch(function, blocks, threads, shared, np.zeros(words, np.int64), 0)
    with pytest.raises(DeviceError, match="no kernel of this driver"):
        simulator.launch(12345, 1, 1, 0, np.zeros(2, np.int64), 0)


def test_much_shared_memory_must_be_asked_for() -> None:
    run(BLOCK_SUM, np.zeros(32, np.float32), np.zeros(1, np.float32), shared=SHARED)
    with pytest.raises(DeviceError, match=f"a block can have {SHARED}"):
        Simulator().function(BLOCK_SUM, 0, SHARED + 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("define void @kernel(ptr noalias align 16 %x, i64 %n) {", ["ptr", "i64"]),
        ("define void @kernel(ptr dereferenceable(8) %x, ptr %y) {", ["ptr", "ptr"]),
        ("define void @kernel() {", []),
    ],
)
def test_parameters_of_a_kernel(text: str, expected: list[str]) -> None:
    assert parameters(text) == expected


@pytest.mark.parametrize(
    "text", ["define void @other()", "define void @kernel(i64 %n, ptr %x)", "define void @kernel(i32 %n)"]
)
def test_texts_that_are_no_kernels(text: str) -> None:
    with pytest.raises(DeviceError, match="kernel"):
        parameters(text + " {\n  ret void\n}")


def native_launch(address: int, function: int, words: Sequence[int], threads: int = 1, stream: int = 0) -> int:
    """What the runtime's native code does: the parameters are in one buffer."""
    buffer = np.array(words, np.int64)
    size = ctypes.c_size_t(buffer.nbytes)
    extra = (ctypes.c_void_p * 5)(1, buffer.ctypes.data, 2, ctypes.addressof(size), 0)
    return LaunchFunction(address)(function, 1, 1, 1, threads, 1, 1, 0, stream, None, extra)


def test_launches_by_native_code() -> None:
    simulator = Simulator()
    assert simulator.calls_python
    pointer = simulator.allocate(8, 0, 0)
    function = simulator.function(STORE, 0)
    assert native_launch(simulator.launch_address, function, [pointer, 3]) == 0
    back = np.empty(8, np.int8)
    simulator.download(back, pointer, 0)
    np.testing.assert_array_equal(back, [-1, -1, -1, 7, -1, -1, -1, -1])
    for words, message in [([pointer, 1, 2], "2 parameters"), ([pointer], "2 parameters")]:
        assert native_launch(simulator.launch_address, function, words) != 0
        with pytest.raises(DeviceError, match=message):
            simulator.raise_launch_error(719, STORE.key)
    assert native_launch(simulator.launch_address, 99, [pointer, 1]) != 0
    with pytest.raises(DeviceError, match="no kernel"):
        simulator.download(back, pointer, 0)
    simulator.synchronise(0)
    assert simulator.launches == {STORE.key: 1}


def test_launches_from_many_threads() -> None:
    simulator = Simulator()
    function = simulator.function(BLOCK_SUM, 0, 1024)
    x = np.arange(2560, dtype=np.float32)
    source = simulator.allocate(x.nbytes, 0, 0)
    simulator.upload(source, x, 0)
    targets = [simulator.allocate(40, 0, 0) for _ in range(8)]

    def work(target: int) -> None:
        for _ in range(5):
            simulator.launch(function, 10, 256, 1024, np.array([source, target]), 0)

    workers = [threading.Thread(target=work, args=(target,)) for target in targets]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for target in targets:
        back = np.empty(10, np.float32)
        simulator.download(back, target, 0)
        np.testing.assert_array_equal(back, x.reshape(10, 256).sum(1))


# ----- Streams and graphs -----


def test_streams() -> None:
    simulator = Simulator(devices=2)
    first, second = simulator.new_stream(0), simulator.new_stream(1)
    simulator.wait(first, 0)
    simulator.wait(second, first)
    assert simulator.waits == [(first, 0), (second, first)]
    pointer = simulator.allocate(8, first, 0)
    launch(simulator, STORE, [pointer, 0], first)
    with pytest.raises(DeviceError, match="loaded on cuda:0, but the stream is of cuda:1"):
        launch(simulator, STORE, [pointer, 0], second)
    simulator.free_stream(second)
    for use in (simulator.synchronise, simulator.free_stream, simulator.begin_capture):
        with pytest.raises(DeviceError, match="no stream"):
            use(second)
    with pytest.raises(DeviceError, match="default stream"):
        simulator.free_stream(0)


def test_graphs_are_done_when_they_are_launched() -> None:
    simulator = Simulator()
    stream = simulator.new_stream(0)
    x, y, z = (simulator.allocate(32, stream, 0) for _ in range(3))
    used = simulator.function(square("double"), 0)
    words = np.array([x, y, 4])
    simulator.begin_capture(stream)
    simulator.fill(z, 0, 32, stream)
    simulator.launch(used, 1, 32, 0, words, stream)
    simulator.copy(z, y, 24, stream)
    words[:] = 0
    graph = simulator.end_capture(stream)
    back = np.empty(4)
    simulator.download(back, z, stream)
    assert np.isnan(back).all()
    for value in (ARRAY, ARRAY + 1):
        simulator.upload(x, value, stream)
        simulator.launch_graph(graph, stream)
        simulator.download(back, z, stream)
        np.testing.assert_array_equal(back, [*(value**2)[:3], 0])
    assert simulator.launches == {square("double").key: 2}
    simulator.free(x, stream, 0)
    simulator.launch_graph(graph, stream)
    with pytest.raises(DeviceError, match="has been freed"):
        simulator.synchronise(stream)
    simulator.free_graph(graph)
    for use in (simulator.free_graph, lambda g: simulator.launch_graph(g, stream)):
        with pytest.raises(DeviceError, match="no graph"):
            use(graph)


def test_streams_that_take_part_in_a_graph() -> None:
    simulator = Simulator()
    first, second = simulator.new_stream(0), simulator.new_stream(0)
    pointer = simulator.allocate(32, 0, 0)
    simulator.fill(pointer, 1, 32, 0)
    simulator.begin_capture(first)
    simulator.wait(second, first)
    simulator.fill(pointer, 0, 32, second)
    simulator.wait(first, second)
    with pytest.raises(DeviceError, match="cannot wait"):
        simulator.wait(first, 0)
    graph = simulator.end_capture(first)
    back = np.empty(32, np.int8)
    simulator.download(back, pointer, second)
    assert (back == 1).all()
    simulator.launch_graph(graph, second)
    simulator.download(back, pointer, second)
    assert (back == 0).all()


def test_graphs_in_graphs() -> None:
    simulator = Simulator()
    stream = simulator.new_stream(0)
    pointer = simulator.allocate(8, 0, 0)
    simulator.begin_capture(stream)
    simulator.fill(pointer, 3, 8, stream)
    inner = simulator.end_capture(stream)
    simulator.begin_capture(stream)
    simulator.launch_graph(inner, stream)
    outer = simulator.end_capture(stream)
    simulator.launch_graph(outer, 0)
    back = np.empty(8, np.int8)
    simulator.download(back, pointer, 0)
    assert (back == 3).all()


CAPTURED: dict[str, Callable[[Simulator, int, int], Any]] = {
    "allocate": lambda s, stream, _: s.allocate(8, stream, 0),
    "free": lambda s, stream, pointer: s.free(pointer, stream, 0),
    "upload": lambda s, stream, pointer: s.upload(pointer, ARRAY, stream),
    "download": lambda s, stream, pointer: s.download(np.empty(4), pointer, stream),
    "synchronise": lambda s, stream, _: s.synchronise(stream),
    "free_stream": lambda s, stream, _: s.free_stream(stream),
    "begin_capture": lambda s, stream, _: s.begin_capture(stream),
}


@pytest.mark.parametrize("use", CAPTURED)
def test_what_cannot_be_captured(use: str) -> None:
    simulator = Simulator()
    stream = simulator.new_stream(0)
    pointer = simulator.allocate(32, stream, 0)
    with pytest.raises(DeviceError, match="default stream"):
        simulator.begin_capture(0)
    simulator.begin_capture(stream)
    with pytest.raises(DeviceError, match="captured"):
        CAPTURED[use](simulator, stream, pointer)
    simulator.free_graph(simulator.end_capture(stream))
    with pytest.raises(DeviceError, match="is not being captured"):
        simulator.end_capture(stream)
    simulator.upload(pointer, ARRAY, stream)


# ----- The recorder, and the interface -----


def test_the_recorder_writes_down() -> None:
    recorder = Recorder(devices=2)
    stream = recorder.new_stream(1)
    pointer = recorder.allocate(100, stream, 1)
    other = recorder.allocate(100, stream, 0)
    assert pointer % 256 == other % 256 == 0
    assert [recorder.owner_of(p) for p in (pointer, pointer + 99, other, 17, other + 4096)] == [1, 1, 0, None, None]
    function = recorder.function(STORE, 1)
    assert recorder.function(STORE, 1) == function
    recorder.launch(function, 3, 64, 16, np.array([pointer, -2]), stream)
    assert native_launch(recorder.launch_address, function, [pointer, 5], 128, stream) == 0
    assert native_launch(recorder.launch_address, 0, [pointer, 5]) != 0
    recorder.library("cublas", 1).gemm(1, 2, alpha=3)
    back = np.ones(4)
    recorder.download(back, pointer, stream)
    assert not back.any()
    assert recorder.named("launch") == [
        (STORE.key, 3, 64, 16, (pointer, -2), stream),
        (STORE.key, 1, 128, 0, (pointer, 5), stream),
    ]
    assert [entry[0] for entry in recorder.log] == [
        *["new_stream", "allocate", "allocate", "function", "launch", "launch", "cublas.gemm", "download"]
    ]
    assert recorder.named("cublas.gemm") == [(1, 2, {"alpha": 3})]
    assert recorder.counts == {STORE.key: 1}


def test_the_recorder_counts_natively() -> None:
    recorder = Recorder(native=True)
    assert not recorder.calls_python
    function, other = recorder.function(STORE, 0), recorder.function(BLOCK_SUM, 0)
    for handle in (function, other, function):
        assert native_launch(recorder.launch_address, handle, [1, 2]) == 0
    assert recorder.counts == {STORE.key: 2, BLOCK_SUM.key: 1}
    assert recorder.named("launch") == []


@pytest.mark.parametrize("kind", [Simulator, Recorder])
def test_drivers_have_what_is_asked_of_a_driver(kind: type) -> None:
    for name, method in inspect.getmembers(Driver, inspect.isfunction):
        if not name.startswith("_"):
            own = inspect.signature(getattr(kind, name))
            assert list(own.parameters) == list(inspect.signature(method).parameters), name
    made: Driver = kind()
    assert made.name == kind.__name__.lower()
    assert made.launch_address > 0
    assert made.calls_python


def test_another_driver_within_a_block() -> None:
    simulator, recorder = Simulator(), Recorder()
    with using(simulator):
        assert driver() is simulator
        with using(recorder):
            assert driver() is recorder
        assert driver() is simulator
