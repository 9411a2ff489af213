"""Programs for devices, run by the simulator: every kind of loop, against NumPy, in both orders of threads.

What is checked is the same IR that becomes PTX. Sums are compared to rounding, everything else exactly or to the error
that the scalar kernels state.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.device.driver.kept_blocks import KeptBlocks, in_grains
from nbgrad.device.kernels.launches import Launch
from nbgrad.device.memory.arrays import DeviceArray, device_named, set_allocator, set_stream
from nbgrad.device.memory.chosen_driver import using
from nbgrad.device.simulator.recorder import Recorder
from nbgrad.device.simulator.simulator import Simulator
from nbgrad.errors import DeviceError
from nbgrad.graph.ir import placeholder
from nbgrad.record.tensor import Tensor
from nbgrad.runtime.cpu_program import MISSED, Output
from nbgrad.runtime.device_program import MOST_GRAPHS, DeviceProgram

pytestmark = pytest.mark.unoptimized

TOLERANCE = {"f2": 2e-3, "f4": 2e-6, "f8": 1e-13}


@pytest.fixture(params=["forward", "reversed"])
def simulator(request: Any) -> Iterator[Simulator]:
    """A simulated device, whose threads run in one order or the other."""
    made = Simulator(order=request.param)
    with using(made):
        yield made
        made.check()


def program_of(f: Callable[..., Any], *arrays: np.ndarray) -> DeviceProgram:
    """The program of a function on the current device."""
    device = device_named("cuda")
    assert device is not None
    nodes = [placeholder(a.shape, a.dtype, a) for a in arrays]
    found = f(*[Tensor._of(node) for node in nodes])
    outputs = found if isinstance(found, tuple) else (found,)
    return DeviceProgram([Output(output._node) for output in outputs], nodes, device)


def on_device(f: Callable[..., Any], *arrays: np.ndarray) -> list[np.ndarray]:
    """What a function gives on the current device."""
    program = program_of(f, *arrays)
    return [result.to_host() for result in program.call(*[DeviceArray.of(a, program.device) for a in arrays])]


def check(f: Callable[..., Any], *arrays: np.ndarray) -> None:
    """Compare a function on the device with NumPy's own result."""
    with np.errstate(invalid="ignore"):
        expected = f(*arrays)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for found, wanted in zip(on_device(f, *arrays), map(np.asarray, expected), strict=True):
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        if found.dtype.kind != "f":
            np.testing.assert_array_equal(found, wanted)
        else:
            tolerance = TOLERANCE[found.dtype.str[1:]]
            np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def floats(*shape: int, dtype: Any = np.float64, seed: int = 0) -> np.ndarray:
    """Normal random numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def layer_norm(x: Any) -> Any:
    centered = x - np.mean(x, axis=1, keepdims=True)
    return centered / np.sqrt(np.mean(centered * centered, axis=1, keepdims=True) + 1e-5)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: np.exp(-x * x) * x + 1,
    "several results": lambda x: (x * 2, np.abs(x), x > 0),
    "whole sum": np.sum,
    "sum of squares": lambda x: np.sum(x * x),
    "whole extrema": lambda x: (np.max(x), np.min(x)),
}
MATRICES: dict[str, Callable[[Any], Any]] = {
    "rows": lambda x: np.sum(x, axis=1),
    "columns": lambda x: np.sum(x, axis=0),
    "all kinds at once": lambda x: (np.sum(x, axis=1), np.sum(x), x * 2, np.sum(x, axis=0)),
    "extrema": lambda x: (np.max(x, axis=1), np.min(x, axis=0)),
    "truth": lambda x: (np.any(x > 1, axis=1), np.all(x < 9, axis=0)),
    "broadcast": lambda x: x + x[:, :1] * x[:1],
    "transposed": lambda x: x.T * 2 + x[0, 0],
    "reversed": lambda x: x[::-1, ::-2] * 3,
    "padded": lambda x: np.pad(x, ((1, 2), (3, 0))) * 2,
    "joined": lambda x: np.concatenate([x, x * 2, x], axis=1),
    "stencil": lambda x: x[1:-1, 1:-1] * 4 - x[:-2, 1:-1] - x[2:, 1:-1],
    "gathered": lambda x: x[np.array([1, 0, 1, 1])] + 1,
    "softmax": softmax,
    "layer norm": layer_norm,
}
LENGTHS = [1, 2, 3, 31, 32, 33, 100, 1000, 1001, 1024, 4099]
SHAPES = [(2, 3), (5, 32), (33, 17), (64, 64), (7, 130), (3, 2049), (1030, 4)]


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_lines(simulator: Simulator, name: str, length: int) -> None:
    check(FUNCTIONS[name], floats(length))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", MATRICES)
def test_matrices(simulator: Simulator, name: str, shape: tuple[int, int]) -> None:
    check(MATRICES[name], floats(*shape))


@pytest.mark.parametrize("name", [*FUNCTIONS, *MATRICES])
@pytest.mark.parametrize("dtype", ["f2", "f4"])
def test_narrow_floats(simulator: Simulator, name: str, dtype: str) -> None:
    x = floats(8, 48, dtype=dtype)
    f = (FUNCTIONS | MATRICES)[name]
    # NumPy adds float16 in float16; the exact sum is the one of the same numbers in float64.
    expected = f(x.astype(np.float64))
    expected = expected if isinstance(expected, tuple) else (expected,)
    for found, wanted in zip(on_device(f, x), expected, strict=True):
        tolerance = 5e-3 if dtype == "f2" else 2e-6
        np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"])
def test_whole_numbers(simulator: Simulator, dtype: str) -> None:
    x = np.random.default_rng(1).integers(0, 2 if dtype == "?" else 100, (9, 37)).astype(dtype)

    def f(x: Any) -> Any:
        return np.max(x, axis=1), np.min(x, axis=0), np.sum(x), np.sum(x, axis=0), x == x[:, :1], np.any(x, axis=1)

    check(f, x)


def test_three_axes(simulator: Simulator) -> None:
    x = floats(5, 7, 9)
    check(lambda x: (np.sum(x, axis=1), np.sum(x, axis=(0, 2)), np.transpose(x, (2, 0, 1)) * 2, np.max(x, axis=0)), x)


def test_more_than_one_block_makes_a_sum(simulator: Simulator) -> None:
    x = floats(60_000)
    program = program_of(np.sum, x)
    launches = [planned.action for planned in program.plan.actions if isinstance(planned.action, Launch)]
    assert len(launches) == 2 and launches[0].blocks > 1
    (found,) = program.call(DeviceArray.of(x, program.device))
    # Exactly rounded.
    import math

    assert abs(float(found.to_host()) - math.fsum(x)) <= 1e-12 * np.sum(np.abs(x))
    (again,) = program.call(DeviceArray.of(x, program.device))
    assert float(again.to_host()) == float(found.to_host())


@pytest.mark.parametrize("f", [softmax, layer_norm], ids=["softmax", "layer norm"])
@pytest.mark.parametrize("shape", [(8, 100), (8, 3000)], ids=str)
def test_what_stays_in_its_row_is_one_kernel(simulator: Simulator, f: Any, shape: tuple[int, int]) -> None:
    program = program_of(f, floats(*shape))
    assert len(program.plan.actions) == 1
    assert program.plan.bytes == 0


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4)], ids=str)
def test_nothing_at_all(simulator: Simulator, shape: tuple[int, ...]) -> None:
    x = np.zeros(shape)
    check(lambda x: (np.sum(x), np.sum(x, axis=0), np.prod(x, axis=-1), x * 2), x)


def test_special_values(simulator: Simulator) -> None:
    x = np.array([[np.nan, 1.0, -np.inf], [2.0, np.inf, -0.0], [1.0, 2.0, 3.0]])
    check(lambda x: (np.max(x, axis=1), np.min(x, axis=0), np.signbit(x), np.isnan(x), np.maximum(x, 0.5)), x)
    check(lambda x: np.sum(x, axis=1), np.array([[np.inf, 1.0, 2.0], [-np.inf, 1.0, np.inf], [1.0, np.nan, 1.0]]))


def test_sums_are_compensated(simulator: Simulator) -> None:
    # Added one by one in float32, the ones would be lost beside 2**25.
    x = np.ones(40_000, np.float32)
    x[0] = 2.0**25
    (found,) = on_device(np.sum, x)
    # Two units in the last place, for what the threads of a block add up at the end.
    assert abs(float(found) - (2.0**25 + 39_999)) <= 8.0


def test_numbers_of_the_host_go_with_the_call(simulator: Simulator) -> None:
    device = device_named("cuda")
    assert device is not None
    x, a = placeholder((4,), np.dtype(float)), placeholder((), np.dtype(float))
    program = DeviceProgram([Output((Tensor._of(x) * Tensor._of(a))._node)], [x, a], device)
    for number in (2.0, np.array(-3.0)):
        (found,) = program.call(np.arange(4.0), number)
        np.testing.assert_array_equal(found.to_host(), np.arange(4.0) * number)


def test_addresses_that_are_not_aligned(simulator: Simulator) -> None:
    x = np.arange(9, dtype=np.float32)
    program = program_of(lambda x: x * 2, x[1:])
    whole = DeviceArray.of(x, program.device)
    part = DeviceArray(whole.pointer + 4, (8,), x.dtype, program.device, whole.stream, whole)
    np.testing.assert_array_equal(program.call(part)[0].to_host(), x[1:] * 2)


def test_more_parameters_than_a_launch_can_have(simulator: Simulator) -> None:
    arrays = [floats(4, 5, seed=k) for k in range(120)]

    def f(*x: Any) -> Any:
        # Each operand is read through a view of its own, so that none of the axes become one.
        parts = [a[::-1] * (k + 1) if k % 2 else a.T[:4, :4].T @ np.ones(4) * k for k, a in enumerate(x)]
        return sum(np.sum(part, axis=-1) for part in parts)

    check(f, *arrays)


def test_numbers_in_memory(simulator: Simulator, monkeypatch: pytest.MonkeyPatch) -> None:
    from nbgrad.device.kernels import launch_parameters as parameters

    monkeypatch.setattr(parameters, "MOST_WORDS", 3)
    for f in (MATRICES["all kinds at once"], MATRICES["softmax"], MATRICES["padded"]):
        check(f, floats(8, 100))


# ----- Launches, streams and graphs -----


def test_a_program_is_one_native_call() -> None:
    recorder = Recorder()
    with using(recorder):
        x = floats(6, 5)
        program = program_of(lambda x: (np.sum(x, axis=0), np.exp(x.T) * 2, np.max(x, axis=1)), x)
        assert len(program._segments) == 1
        given = DeviceArray.of(x, program.device)
        recorder.log.clear()
        program.call(given)
        names = [name for name, *_ in recorder.log]
    assert names.count("launch") == len(program.plan.actions) >= 3
    assert not {"synchronise", "download", "upload"} & set(names)


def test_the_same_arrays_again_are_a_graph(simulator: Simulator) -> None:
    x = floats(100)
    program = program_of(lambda x: (x * 2, np.sum(x)), x)
    given = DeviceArray.of(x, program.device)
    targets = [DeviceArray.empty((100,), x.dtype, program.device), DeviceArray.empty((), x.dtype, program.device)]
    for number in range(5):
        given.device.driver.upload(given.pointer, x + number, 0)
        assert program.call_into(given, *targets) is not MISSED
        assert len(program._graphs) == int(number >= 1)
        np.testing.assert_allclose(targets[0].to_host(), (x + number) * 2)
        np.testing.assert_allclose(targets[1].to_host(), np.sum(x + number))
    other = DeviceArray.of(x, program.device)
    program.call_into(other, *targets)
    np.testing.assert_allclose(targets[0].to_host(), x * 2)


class LentBlock:
    """Memory of the simulator that goes back to blocks that are kept, as the real driver does it."""

    def __init__(self, simulator: Simulator, blocks: KeptBlocks, nbytes: int, stream: int) -> None:
        self.blocks, self.stream, size = blocks, stream, in_grains(nbytes)
        self.pointer = blocks.taken(size, stream)
        if not self.pointer:
            self.pointer = simulator.allocate(size, stream, 0)
            blocks.made(self.pointer, size)

    def __del__(self) -> None:
        self.blocks.given(self.pointer, self.stream)


def test_calls_at_the_addresses_of_earlier_ones_are_a_graph(simulator: Simulator) -> None:
    blocks = KeptBlocks()

    def allocate(nbytes: int, stream: int) -> tuple[int, LentBlock]:
        block = LentBlock(simulator, blocks, nbytes, stream)
        return block.pointer, block

    x = floats(100)
    program = program_of(many_intermediates, x)
    set_allocator(program.device, allocate)
    try:
        given = DeviceArray.of(x, program.device)
        for number in range(10):
            given.device.driver.upload(given.pointer, x + number, 0)
            np.testing.assert_allclose(program.call(given)[0].to_host(), many_intermediates(x + number))
        assert len(program._graphs) == 1
        kept = [program.call(given)[0] for _ in range(10)]
        assert len({one.pointer for one in kept}) == 10
        given.device.driver.upload(given.pointer, x, 0)
        del kept[::2]  # in other orders, too
        more = [program.call(given)[0] for _ in range(10)]
        for one in kept:
            np.testing.assert_allclose(one.to_host(), many_intermediates(x + 9))
        for one in more:
            np.testing.assert_allclose(one.to_host(), many_intermediates(x))
        assert len(program._graphs) <= MOST_GRAPHS
    finally:
        set_allocator(program.device, None)


def test_no_block_is_kept_for_the_default_stream_of_each_thread() -> None:
    """By one handle, 2, threads name streams of their own: work of another thread may still use the block."""
    blocks = KeptBlocks()
    blocks.made(512, 512)
    assert not blocks.given(512, 2)
    assert not blocks.taken(512, 2)
    assert not blocks.given(512, 0)


def test_arrays_that_do_not_fit_are_missed(simulator: Simulator) -> None:
    x = floats(10)
    program = program_of(lambda x: x * 2, x)
    given = DeviceArray.of(x, program.device)
    assert program.call_into(given, DeviceArray.empty((9,), x.dtype, program.device)) is MISSED
    assert program.call_into(given, DeviceArray.empty((10,), np.dtype("f4"), program.device)) is MISSED


def test_another_device_is_an_error() -> None:
    with using(Simulator(devices=2)):
        x = floats(10)
        program = program_of(lambda x: x * 2, x)
        other = device_named("cuda:1")
        assert other is not None
        with pytest.raises(DeviceError, match="is on cuda:1, but this program runs on cuda:0"):
            program.call(DeviceArray.of(x, other))


def test_failures_are_told_and_the_next_call_works() -> None:
    simulator = Simulator()
    with using(simulator):
        x = floats(1000)
        program = program_of(lambda x: x * 2, x)
        given = DeviceArray.of(x, program.device)
        simulator.fail("launch")
        with pytest.raises(DeviceError):
            program.call(given)
        simulator.fail("allocate")
        with pytest.raises(DeviceError, match="memory"):
            program.call(given)
        np.testing.assert_array_equal(program.call(given)[0].to_host(), x * 2)


def test_programs_on_two_streams_wait_for_what_they_read(simulator: Simulator) -> None:
    x = floats(1000)
    program = program_of(lambda x: x * 2, x)
    given = DeviceArray.of(x, program.device)
    stream = simulator.new_stream(0)
    set_stream(program.device, stream)
    try:
        (found,) = program.call(given)
        assert (stream, 0) in simulator.waits
        assert found.stream == stream
        np.testing.assert_array_equal(found.to_host(), x * 2)
    finally:
        set_stream(program.device, 0)


def many_intermediates(x: Any) -> Any:
    """A function whose program needs scratch memory."""
    y = np.sort(x)
    for _ in range(3):
        y = np.sort(np.cos(y) * 3)[::-1] + np.cumsum(y)
    return y


def test_programs_of_two_threads_on_one_stream_do_not_share_scratch() -> None:
    with using(Simulator()):
        device = device_named("cuda")
        assert device is not None
        inputs = [floats(60, seed=k) for k in range(2)]
        programs = [program_of(many_intermediates, x) for x in inputs]
        assert all(program.plan.bytes for program in programs)
        wrong: list[int] = []

        def work(k: int) -> None:
            given = DeviceArray.of(inputs[k], device)
            for _ in range(40):
                (found,) = programs[k].call(given)
                if not np.allclose(found.to_host(), many_intermediates(inputs[k])):
                    wrong.append(k)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


def test_a_program_within_a_launcher_has_scratch_of_its_own() -> None:
    inner = nb.jit(many_intermediates)

    def launcher(x: Any, out: Any, stream: Any = None) -> None:
        given = nb.cuda.as_tensor(x) if not isinstance(x, np.ndarray) else nb.Tensor(x, device="cuda")
        inner(nb.Tensor(np.full(60, 7.0), device="cuda"))
        found = inner(given)
        out[...] = found.asnumpy()

    own = nb.primitive(None, shape=lambda x: x, cuda_forward=launcher, name="nested")

    def outer(x: Any) -> Any:
        before = np.sort(x) * 2
        return own(np.sort(np.sin(before))) + np.sort(before)

    x = floats(60)
    with using(Simulator()):
        found = nb.jit(outer)(nb.Tensor(x, device="cuda")).asnumpy()
    np.testing.assert_allclose(found, many_intermediates(np.sort(np.sin(np.sort(x) * 2))) + np.sort(x) * 2)


def test_calls_with_out_are_repeated_by_a_graph_only_where_nobody_else_reads(simulator: Simulator) -> None:
    f = nb.jit(lambda x: (np.sort(x) * 2, np.sum(x)))
    x = nb.Tensor(floats(50), device="cuda")
    out = (nb.Tensor(np.zeros(50), device="cuda"), nb.Tensor(np.zeros(()), device="cuda"))
    for _ in range(5):
        assert f(x, out=out) is out
    (program,) = f.programs()
    assert len(program._graphs) == 1
    before = simulator.launches.total()
    x[0] = 7.0
    expected = x.asnumpy()
    # Another value lies elsewhere, so this is no call of the graph; nor is what others read overwritten.
    kept = out[0] + 1
    f(x, out=out)
    np.testing.assert_array_equal(out[0].asnumpy(), np.sort(expected) * 2)
    assert not np.array_equal(kept.asnumpy(), np.sort(expected) * 2 + 1)
    assert simulator.launches.total() > before
    view = out[0][:3]
    was = view.asnumpy().copy()
    for _ in range(4):
        f(x, out=out)
    np.testing.assert_array_equal(out[0].asnumpy(), np.sort(expected) * 2)
    np.testing.assert_array_equal(was, (np.sort(expected) * 2)[:3])
    with pytest.raises(nb.errors.ShapeError):
        f(x, out=(nb.Tensor(np.zeros(49), device="cuda"), out[1]))
    with pytest.raises(nb.errors.ArgumentError):
        f(x, out=(out[0],))


def test_what_is_written_to_waits_for_those_who_read_it(simulator: Simulator) -> None:
    x = floats(100)
    program = program_of(lambda x: x * 2, x)
    given, target = DeviceArray.of(x, program.device), DeviceArray.empty((100,), x.dtype, program.device)
    readers = simulator.new_stream(0)
    program.call_into(given, target)
    before = set_stream(program.device, readers)
    try:
        (kept,) = program.call(target)
        set_stream(program.device, before)
        simulator.waits.clear()
        program.call_into(given, target)
        assert (0, readers) in simulator.waits
        np.testing.assert_array_equal(kept.to_host(), x * 4)
    finally:
        set_stream(program.device, before)


def kernels_of(program: DeviceProgram) -> set[str]:
    """The kernels in Python of a program, by name."""
    launches = [planned.action for planned in program.plan.actions if isinstance(planned.action, Launch)]
    return {launch.kernel.key.split()[1] for launch in launches if launch.kernel.key.startswith("python")}


def test_settings_hold_for_what_was_compiled_before() -> None:
    index = np.random.default_rng(0).integers(0, 50, 3000)
    values = floats(3000)
    found: list[np.ndarray] = []
    for order in ("forward", "reversed"):
        with using(Simulator(order=order)):
            f = nb.jit(lambda x: nb.ops.tensor_scatter_elements(nb.numpy.zeros(50), index, x, reduction="add"))
            x = nb.Tensor(values, device="cuda")
            f(x)
            (program,) = f.programs()
            assert not any("sort" in name for name in kernels_of(program))
            nb.cuda.deterministic()
            try:
                found.append(f(x).asnumpy())
                assert any("sort" in name for name in kernels_of(program))
            finally:
                nb.cuda.deterministic(False)
            f(x)
            assert not any("sort" in name for name in kernels_of(program))
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], np.bincount(index, values, 50), rtol=1e-12)


def test_graphs_go_with_their_program() -> None:
    recorder = Recorder()
    with using(recorder):
        x = floats(6)
        program = program_of(lambda x: x * 2, x)
        given, target = DeviceArray.of(x, program.device), DeviceArray.empty((6,), x.dtype, program.device)
        for _ in range(3):
            program.call_into(given, target)
        assert "free_graph" not in [name for name, *_ in recorder.log]
        del program
        gc.collect()
        assert [name for name, *_ in recorder.log].count("free_graph") == 1


def test_rows_that_are_written_in_parts(simulator: Simulator) -> None:
    """A row of the stacked array is five parts, each of which begins where the one before ends."""

    def total(x: Any) -> Any:
        scale, parts = np.ones(3), []
        for _ in range(5):
            scale = scale * 0.5 + np.sum(np.cos(x * scale[:, None]), axis=1) * 0.01
            parts.append(np.sin(x) * scale[:, None])
        return np.sum(np.stack(parts, axis=1) ** 2, axis=(1, 2))

    check(total, floats(3, 33))
