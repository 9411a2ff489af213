"""The drivers without a GPU: launches, failures, streams and graphs of the simulator, and what the recorder writes."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nbgrad.device.driver.driver import Driver
from nbgrad.device.memory.chosen_driver import driver, using
from nbgrad.device.simulator.recorder import Recorder
from nbgrad.device.simulator.simulated_memory import SHARED
from nbgrad.device.simulator.simulator import Simulator
from nbgrad.errors import ArgumentError, DeviceError

from .device_kernels import BLOCK_SUM, STORE, launch, native_launch, run, square

ARRAY = np.arange(4.0)

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


def test_launches_by_native_code() -> None:
    simulator = Simulator()
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
    recorder.library("cublas", 1).call("cublasSetMathMode", 1, 16)
    back = np.ones(4)
    recorder.download(back, pointer, stream)
    assert not back.any()
    assert recorder.named("launch") == [
        (STORE.key, 3, 64, 16, (pointer, -2), stream),
        (STORE.key, 1, 128, 0, (pointer, 5), stream),
    ]
    assert [entry[0] for entry in recorder.log] == [
        *["new_stream", "allocate", "allocate", "function", "launch", "launch", "cublasSetMathMode", "download"]
    ]
    assert recorder.named("cublasSetMathMode") == [(1, 16)]
    assert recorder.counts == {STORE.key: 1}


def test_the_recorder_counts_natively() -> None:
    recorder = Recorder(native=True)
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


def test_another_driver_within_a_block() -> None:
    simulator, recorder = Simulator(), Recorder()
    with using(simulator):
        assert driver() is simulator
        with using(recorder):
            assert driver() is recorder
        assert driver() is simulator
