"""What only a GPU can show: that its results are those of the CPU. `pytest -m gpu` runs these tests.

Without a GPU they skip with one line. Each test also runs in the simulator, with smaller arrays, so that the tests
themselves are known to be right. test_gpu_interop.py and test_gpu_libraries.py have those whose subject is another
library of GPUs.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import nbgrad as nb
from nbgrad.device.kernels.launches import DeviceKernel
from nbgrad.device.memory.chosen_driver import using
from nbgrad.errors import DeviceError
from nbgrad.info import cuda_devices

from .gpu import Place, close, on
from .test_device_linear_algebra import CASES
from .test_device_programs import FUNCTIONS, MATRICES, check, floats

pytestmark = pytest.mark.unoptimized

FOLDER = Path(__file__).resolve().parents[1] / "asv_bench"
sys.path.insert(0, str(FOLDER))
try:
    from benchmarks import device_agreement
finally:
    sys.path.remove(str(FOLDER))


# ----- Numbers -----


@pytest.mark.parametrize("name", device_agreement.primitives())
def test_primitives_agree_with_the_cpu(place: Place, name: str) -> None:
    """Within 4 ULP, over random bit patterns (polygamma: to what it is exact to)."""
    dtypes = device_agreement.dtypes_of(name)
    if not place.real:  # one for all: each compiles two programs
        dtypes = [dtype for dtype in dtypes if dtype == "float32"] or dtypes[-1:]
    found = {d: device_agreement.difference(name, d, place.size(1_000_000, 2000)) for d in dtypes}
    assert max(found.values()) <= device_agreement.FURTHER.get(name, device_agreement.LIMIT), found


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_sums_to_rounding(place: Place, dtype: str) -> None:
    count = place.size(3_000_001, 3001)
    # A sum of float16 is rounded once, when it is done.
    assert device_agreement.sum_error(dtype, min(count, 5000) if dtype == "float16" else count) <= 1.0
    rows, columns = place.size(1027, 13), place.size(2049, 129)
    x = floats(rows, columns, dtype=dtype)
    for axis in (0, 1):
        exact = np.array([math.fsum(line) for line in np.moveaxis(x, axis, 1).astype(float)])
        size = np.abs(x).astype(float).sum(axis)
        found = on(x).sum(axis).asnumpy().astype(float)
        assert np.max(np.abs(found - exact) / np.spacing(size.astype(dtype)).astype(float)) <= 1.0


LOOPS = FUNCTIONS | MATRICES
SHAPES = [(33, 17), (1030, 1001), (3, 40_000), (5000, 4), (257, 4096)]


@pytest.mark.parametrize("name", LOOPS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_loops(place: Place, name: str, dtype: str) -> None:
    for shape in SHAPES if place.real else SHAPES[:1]:
        x = floats(*shape, dtype=dtype)
        x = x if name in MATRICES else x.ravel()
        found, exact = nb.jit(LOOPS[name])(on(x)), LOOPS[name](x.astype(np.longdouble))
        pairs = zip(found, exact, strict=True) if isinstance(exact, tuple) else [(found, exact)]
        for one, other in pairs:
            # Where the parts of a sum cancel, NumPy's own sum is off by a share of their magnitudes.
            bound = 1e-5 if dtype == "float32" else 1e-13 if np.size(other) > 1 else 1e-11
            close(one, np.asarray(other), bound)


def test_whole_numbers(place: Place) -> None:
    for dtype in ("int8", "uint8", "int32", "uint64"):
        x = np.random.default_rng(1).integers(0, 100, (place.size(1500, 9), 337)).astype(dtype)
        check(lambda x: (np.max(x, axis=1), np.sum(x), np.sum(x, axis=0), x // 7, x == x[:, :1]), x)


def test_numbers_of_elements_that_32_bits_do_not_hold(place: Place) -> None:
    if not place.real:
        count = 1000
    elif nb.cuda.memory_info()[0] > 20 << 30:
        count = 2**31 + 1000
    else:
        pytest.skip("less than 20 GiB of memory")
    x = np.zeros(count, np.int8)
    x[[0, count // 2, -1]] = 1, 2, 3
    moved = on(x)
    found = nb.jit(lambda x: (x * 2 + 1, np.max(x), np.sum(x == 3)))(moved)
    assert found[1].asnumpy() == 3 and found[2].asnumpy() == 1
    np.testing.assert_array_equal(found[0][-5:].asnumpy(), [1, 1, 1, 1, 7])


def test_random_numbers_are_those_of_the_cpu(place: Place) -> None:
    found = []
    for x in (on(np.zeros((100, 30))), nb.Tensor(np.zeros((100, 30)))):
        nb.set_seed(3)
        draw = nb.jit(lambda x: x + nb.ops.rand(*x.shape, dtype=nb.float64))
        found.append([draw(x).asnumpy() for _ in range(3)])
    np.testing.assert_array_equal(*found)


# ----- Operations that are no loops -----


def _sorted(x: Any) -> Any:
    return np.sort(x, axis=-1), np.argsort(x, axis=-1, kind="stable")


SPECIALS: dict[str, Any] = {
    "cumsum": lambda x: np.cumsum(x, axis=1),
    "cumsum of all": lambda x: np.cumsum(x.reshape(-1)),
    "cumprod": lambda x: np.cumprod(1 + x / 1000, axis=1),
    "running maximum": lambda x: np.maximum.accumulate(x, axis=1),
    "sort": _sorted,
    "sort of all": lambda x: _sorted(x.reshape(-1)),
    "values in order": lambda x: (np.sort(x, axis=1), np.sort(x.reshape(-1))),
    "median": lambda x: np.median(x, axis=1),
    "transpose": lambda x: (x.T + 0.0, np.swapaxes(np.stack([x, x]), 0, 2) * 1.0),
    "differences": lambda x: (np.diff(x, axis=0), x[:, :-1] * x[:, 1:]),
    "histogram": lambda x: np.bincount((np.abs(x) * 3).astype(int).reshape(-1)[:500], minlength=40),
}


@pytest.mark.parametrize("name", SPECIALS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_operations(place: Place, name: str, dtype: str) -> None:
    for shape in [(5, 33), (70, 3000), (1000, 1000), (2, 600_000), (1, 3_000_000)] if place.real else [(5, 33)]:
        x = floats(*shape, dtype=dtype)
        found, expected = SPECIALS[name](on(x)), SPECIALS[name](x.astype(float))
        pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
        for one, other in pairs:
            # Products of 600,000 factors round so often, each time by half a unit at most.
            bound = shape[-1] * 2.0**-24 if name == "cumprod" else 1e-4
            close(one, other, bound if dtype == "float32" else 1e-11)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_scatter_add(place: Place, dtype: str) -> None:
    count = place.size(2_000_000, 3000)
    rng = np.random.default_rng(2)
    for size in (3, 1000):
        index, updates = rng.integers(0, size, count), rng.standard_normal(count).astype(dtype)
        moved = on(updates)
        add = nb.jit(nb.grad(lambda t, index=index, moved=moved: np.sum(t[index] * moved)))
        target = on(np.zeros(size, dtype))
        expected = np.bincount(index, updates, size)
        bound = (1e-4 if dtype == "float32" else 1e-11) * math.sqrt(count)
        np.testing.assert_allclose(add(target).asnumpy(), expected, rtol=0, atol=bound)
        nb.cuda.deterministic(True)
        try:
            again = nb.jit(nb.grad(lambda t, index=index, moved=moved: np.sum(t[index] * moved)))
            found = [again(target).asnumpy() for _ in range(3)]
        finally:
            nb.cuda.deterministic(False)
        np.testing.assert_allclose(found[0], expected, rtol=0, atol=bound)
        assert found[0].tobytes() == found[1].tobytes() == found[2].tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shapes", [((33, 17), (17, 5)), ((4, 20, 30), (4, 30, 10)), ((1, 500), (500, 1))], ids=str)
def test_products(place: Place, dtype: str, shapes: Any) -> None:
    many = place.size(8, 1)
    a, b = [floats(*s[:-2], s[-2] * many, s[-1] * many, seed=k).astype(dtype) for k, s in enumerate(shapes)]
    if dtype.startswith("c"):
        a, b = a + 1j * a[..., ::-1], b - 2j * b[..., ::-1, :]
    found = on(a) @ on(b)
    assert found.dtype == dtype
    wide = "complex128" if dtype.startswith("c") else "float64"
    # Sums of products; TF32 would be wrong in the fourth digit.
    close(found, a.astype(wide) @ b.astype(wide), 1e-5 if dtype in ("float32", "complex64") else 1e-12)


@pytest.mark.parametrize("name", CASES)
def test_linear_algebra(place: Place, name: str) -> None:
    """Values and gradients are those of the CPU."""
    function, *operands = CASES[name]
    positions = tuple(range(len(operands)))
    both = [
        nb.value_and_grad(function, positions)(*[nb.Tensor(a, device=d) for a in operands]) for d in ("cpu", "cuda")
    ]
    (value, gradients), (found, found_gradients) = both
    if len(operands) == 1:
        gradients, found_gradients = (gradients,), (found_gradients,)
    for one, other in [(found, value), *zip(found_gradients, gradients, strict=True)]:
        assert one.device == "cuda"
        close(one, other.asnumpy(), 1e-3 if other.dtype == np.float32 else 1e-8)


def test_large_matrices_against_scipy(place: Place) -> None:
    n = place.size(700, 20)
    a = floats(n, n)
    definite = a @ a.T + n * np.eye(n)
    x, b = on(definite), on(a[:, :3])
    linalg = np.linalg
    close(linalg.cholesky(x), scipy.linalg.cholesky(definite, lower=True), 1e-12)
    close(linalg.solve(x, b), scipy.linalg.solve(definite, a[:, :3]), 1e-10)
    close(linalg.eigh(x)[0], scipy.linalg.eigvalsh(definite), 1e-12)
    close(linalg.svd(on(a), compute_uv=False), scipy.linalg.svdvals(a), 1e-12)
    q, r = linalg.qr(on(a))
    close(q @ r, a, 1e-12)
    close(q.T @ q, np.eye(n), 1e-12)


# ----- Networks -----


def test_training_is_that_of_the_cpu(place: Place) -> None:
    width = place.size(256, 8)
    x, y = floats(32, width, dtype="float32"), floats(32, 3, dtype="float32", seed=1)
    losses = []
    for device in ("cpu", "cuda"):
        nb.set_seed(4)
        net = nb.nn.SequentialCell(
            nb.nn.Dense(width, width), nb.nn.LayerNorm((width,)), nb.nn.GELU(), nb.nn.Dense(width, 3)
        ).to(device)
        step = nb.nn.TrainOneStepCell(
            nb.nn.WithLossCell(net, nb.nn.MSELoss()), nb.nn.Adam(net.trainable_params(), learning_rate=1e-3)
        )
        given = nb.Tensor(x, device=device), nb.Tensor(y, device=device)
        losses.append([float(step(*given)) for _ in range(5)])
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-3)
    assert losses[1][-1] < losses[1][0]


def test_a_convolution_is_that_of_the_cpu(place: Place) -> None:
    x = floats(place.size(16, 2), 3, 12, 12, dtype="float32")
    kernel = floats(4, 3, 3, 3, dtype="float32", seed=1)

    def f(x: Any, kernel: Any) -> Any:
        return np.sum(nb.ops.max_pool2d(np.tanh(nb.ops.conv2d(x, kernel, pad_mode="same")), 2, 2) ** 2)

    expected = nb.grad(f, (0, 1))(nb.Tensor(x), nb.Tensor(kernel))
    for one, other in zip(nb.grad(f, (0, 1))(on(x), on(kernel)), expected, strict=True):
        close(one, other.asnumpy(), 1e-4)


# ----- Streams, graphs, memory -----


def test_streams_wait_for_what_they_read(place: Place) -> None:
    n = place.size(5_000_000, 500)
    x = on(np.arange(n) % 97.0)
    step = nb.jit(lambda x: np.sqrt(x * x + 1.0))
    expected = np.arange(n) % 97.0
    streams = [nb.cuda.Stream() for _ in range(3)]
    for k in range(9):
        with nb.cuda.stream(streams[k % 3]):
            assert nb.cuda.current_stream() == streams[k % 3].handle
            x = step(x)
        expected = np.sqrt(expected * expected + 1.0)
    close(step(x), np.sqrt(expected * expected + 1.0), 1e-14)


def test_threads_with_streams_of_their_own(place: Place) -> None:
    n = place.size(300_000, 300)
    step = nb.jit(nb.grad(lambda x: np.sum(np.exp(-x * x) * x)))
    wrong: list[Any] = []
    driver = place.driver

    def work(number: int) -> None:
        try:
            with using(driver), nb.cuda.stream(nb.cuda.Stream()):
                x = np.linspace(0.0, 1.0 + number, n)
                moved = on(x)
                for _ in range(place.size(50, 3)):
                    close(step(moved), np.exp(-x * x) * (1 - 2 * x * x), 1e-13)
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong


def test_graphs_give_what_calls_give(place: Place) -> None:
    def f(x: Any) -> Any:
        for _ in range(4):
            x = np.tanh(x) * np.mean(x * x)
        return np.sum(x)

    n = place.size(100_000, 400)
    gradient = nb.jit(nb.grad(f))
    given = on(floats(n))
    out = on(np.zeros(n))
    for number in range(6):
        given[...] = floats(n, seed=number)
        expected = gradient(on(floats(n, seed=number))).asnumpy()
        gradient(given, out=out)
        np.testing.assert_array_equal(out.asnumpy(), expected)


def test_steps_that_repeat(place: Place) -> None:
    """Small arrays soon lie where others lay: calls are repeated by graphs, and give what the CPU gives."""

    def f(x: Any) -> Any:
        for _ in range(3):
            x = np.tanh(x) * np.sqrt(np.mean(x * x) + 1.0)
        return np.sum(x)

    step = nb.jit(lambda x: x - 0.01 * nb.grad(f)(x))
    start = floats(40, 30)
    states = [nb.Tensor(start), on(start)]
    kept: list[Any] = []
    for number in range(place.size(200, 12)):
        states = [step(state) for state in states]
        if number % 7 == 0:
            kept.append(states)
    for state, moved in [*kept, states]:
        close(moved, state.asnumpy(), 1e-13)


def test_an_allocator(place: Place) -> None:
    asked: list[int] = []

    class Held:
        def __init__(self, pointer: int, stream: int) -> None:
            self.pointer, self.stream = pointer, stream

        def __del__(self, ends: Callable[[], bool] = sys.is_finalizing) -> None:
            if not ends():  # scratch memory of a device is held to the end
                place.driver.free(self.pointer, self.stream, 0)

    def allocate(nbytes: int, stream: int) -> tuple[int, Any]:
        asked.append(nbytes)
        pointer = place.driver.allocate(nbytes, stream, 0)
        return pointer, Held(pointer, stream)

    nb.cuda.set_allocator(allocate)
    try:
        x = floats(10_000)
        close(nb.jit(lambda x: np.cumsum(x * 2.0))(on(x)), np.cumsum(2.0 * x), 1e-12)
    finally:
        nb.cuda.set_allocator(None)
    assert len(asked) >= 2


def test_memory_is_used_again(place: Place) -> None:
    n = place.size(10_000_000, 10_000)
    x = on(np.ones(n))
    step = nb.jit(lambda x: x * 1.5 - np.mean(x) * 0.5)
    for _ in range(5):
        x = step(x)
    nb.cuda.synchronize()
    before = nb.cuda.memory_info()[0]
    for _ in range(place.size(200, 20)):
        x = step(x)
    nb.cuda.synchronize()
    assert nb.cuda.memory_info()[0] >= before - 8 * n
    close(x, np.ones(n), 1e-12)


def test_two_devices(place: Place) -> None:
    if nb.cuda.device_count() < 2:
        pytest.skip("one CUDA device only")
    x = floats(1000)
    there = on(x, "cuda:1")
    close((there * 2).to("cuda:0") + on(x), 3 * x, 1e-15)
    assert (there * 2).device == "cuda:1"
    with pytest.raises(DeviceError):
        there + on(x)


# ----- Failures -----


def test_a_full_device_is_an_error_and_work_goes_on(place: Place) -> None:
    x = on(np.ones(1000))
    count = nb.cuda.memory_info()[1] // 16  # half of it
    spread = nb.jit(lambda x: np.broadcast_to(x[:1], (count,)) + 1)
    with pytest.raises(DeviceError, match="memory"):
        held = [spread(x) for _ in range(3)]
        del held
    close(x * 2, 2 * np.ones(1000), 0)
    assert nb.grad(lambda x: x * x)(3.0) == 6.0


FAULT = """
import os
import numpy as np
import nbgrad as nb
from nbgrad.device.memory.chosen_driver import driver
from nbgrad.device.kernels.launches import DeviceKernel
from nbgrad.errors import DeviceError
from nbgrad.info import cuda_devices

kernel = DeviceKernel("a kernel that faults", lambda: TEXT)
x = nb.Tensor(np.ones(100), device="cuda")
device = driver()
function = device.function(kernel, 0)
device.launch(function, 1, 1, 0, np.array([64], np.int64), 0)
for attempt in range(2):
    try:
        print((x * 2).asnumpy().sum())
    except DeviceError as error:
        print("DeviceError", str(error)[:300])
print(nb.grad(lambda x: x * x)(3.0), nb.jit(np.sum)(np.ones(5)))
"""
KERNEL = """
define void @kernel(ptr %p) {
  store i32 1, ptr %p
  ret void
}
"""


def test_after_a_fault_the_cpu_goes_on(place: Place) -> None:
    assert DeviceKernel("x", lambda: KERNEL).make() == KERNEL
    environment = {**os.environ, "NBGRAD_CUDA_SIMULATOR": "0" if place.real else "1"}
    code = FAULT.replace("TEXT", repr(KERNEL))
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    *told, last = done.stdout.splitlines()
    assert told[0].startswith("DeviceError"), done.stdout
    # The simulator's device works on; a GPU's context does not.
    assert told[1].startswith("DeviceError") if place.real else told[1] == "200.0"
    assert last == "6.0 5.0"


# ----- The tests themselves -----


def test_without_a_device_one_line_says_so() -> None:
    if cuda_devices():
        pytest.skip("there is a device")
    here = Path(__file__)
    command = [sys.executable, "-m", "pytest", "-q", "-m", "gpu", "-p", "no:cacheprovider", str(here)]
    command += [str(here.with_name("test_device_driver.py"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=here.parents[1])
    assert done.returncode == 0, done.stdout[-2000:]
    told = [line for line in done.stdout.splitlines() if "SKIPPED" in line]
    assert len(told) == 1 and told[0].endswith("no CUDA device"), textwrap.indent(done.stdout[-2000:], "  ")
