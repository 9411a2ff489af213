"""Kernels in the simulator give what NumPy gives, and threads that wait in vain are found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from nbgrad.device.kernels.launches import DeviceKernel
from nbgrad.device.simulator.cpu_dialect import parameters
from nbgrad.errors import DeviceError

from .device_kernels import BLOCK_SUM, ORDERS, kernel, run, square

pytestmark = pytest.mark.unoptimized

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


def of_words(function: str) -> DeviceKernel:
    """A function of the dialect from a word to a word, applied to each element."""
    return kernel(
        function,
        f"""
  %p = getelementptr i32, ptr %x, i32 %i
  %v = load i32, ptr %p
  %w = call i32 @nbgrad.{function}(i32 %v)
  %q = getelementptr i32, ptr %y, i32 %i
  store i32 %w, ptr %q
  ret void
""",
    )


@pytest.mark.parametrize("order", ORDERS)
def test_ballot(order: str) -> None:
    x = np.random.default_rng(1).integers(-1, 2, 128).astype(np.int32)
    _, y = run(of_words("ballot"), x, np.zeros_like(x), blocks=1, threads=128, order=order)
    expected = ((x.reshape(4, 32) != 0).astype(np.uint32) << np.arange(32, dtype=np.uint32)).sum(1, dtype=np.uint32)
    np.testing.assert_array_equal(y.view(np.uint32), np.repeat(expected, 32))


@pytest.mark.parametrize("order", ORDERS)
def test_match(order: str) -> None:
    rng = np.random.default_rng(1)
    x = rng.choice([0, 1, 2, 4, 8, 16, 32, 64, 128, 255, -1, 256, 511], 256).astype(np.int32)
    x[:32], x[32:64] = 7, np.arange(32)
    _, y = run(of_words("match"), x, np.zeros_like(x), blocks=2, threads=128, order=order)
    lanes = (x & 255).reshape(8, 32)
    same = lanes[:, :, None] == lanes[:, None, :]
    expected = (same.astype(np.uint32) << np.arange(32, dtype=np.uint32)).sum(2, dtype=np.uint32)
    np.testing.assert_array_equal(y.view(np.uint32), expected.ravel())


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
    results: dict[tuple[bool, str], np.ndarray] = {}
    for used in (right, wrong):
        for order in ORDERS:
            sizes = {"blocks": 2, "threads": 64, "shared": 256}
            results[used is right, order] = run(used, x, np.zeros_like(x), **sizes, order=order, races=used is right)[1]
    for order in ORDERS:
        np.testing.assert_array_equal(results[True, order], expected)
        with pytest.raises(DeviceError, match="race: in block"):
            run(wrong, x, np.zeros_like(x), blocks=2, threads=64, shared=256, order=order)
    assert (results[False, "forward"] != expected).sum() == 2 * 63
    assert (results[False, "reversed"] != expected).sum() == 2


READ, WRITE, ADD = (
    "%v = load volatile i32, ptr %q",
    "store i32 %t, ptr %q",
    "%v = atomicrmw add ptr %q, i32 1 monotonic",
)
BARRIER = "call void @nbgrad.barrier()"
BALLOT = "%z = call i32 @nbgrad.ballot(i32 1)"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("first", "between", "second", "races"),
    [
        (READ, "", READ, False),
        (READ, "", WRITE, True),
        (WRITE, "", READ, True),
        (WRITE, "", WRITE, True),
        (WRITE, BARRIER, READ, False),
        (READ, BARRIER, WRITE, False),
        (WRITE, BALLOT, READ, True),
        (ADD, "", ADD, False),
        (ADD, "", READ, True),
        (ADD, BARRIER, READ, False),
        (WRITE, "", ADD, True),
    ],
)
def test_races_between_two_threads(first: str, between: str, second: str, races: bool, order: str) -> None:
    """Thread 3 does one thing to a word of shared memory, thread 5 another one."""
    one, two = ("  call void @nbgrad.fence()\n  " + text for text in (first, second.replace("%v", "%u")))
    used = kernel(
        "two threads",
        f"""
  %q = call ptr @nbgrad.shared()
  %is.one = icmp eq i32 %t, 3
  br i1 %is.one, label %one, label %middle
one:
{one}
  br label %middle
middle:
  {between}
  %is.two = icmp eq i32 %t, 5
  br i1 %is.two, label %two, label %end
two:
{two}
  br label %end
end:
  ret void
""",
    )
    if races:
        with pytest.raises(DeviceError, match=r"race: in block 0, thread [35] accesses byte 0 of the block's 4 bytes"):
            run(used, np.zeros(1), np.zeros(1), shared=4, order=order)
    else:
        run(used, np.zeros(1), np.zeros(1), shared=4, order=order)


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
