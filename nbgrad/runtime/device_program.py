"""Programs for devices: a graph compiled for given shapes and dtypes, whose arrays are in a GPU's memory.

In: output nodes, the leaves that vary from call to call, and a device. Out: a `DeviceProgram`, which takes and gives
`DeviceArray`s. Called by evaluate.py where values live on a device; the counterpart of
cpu_program.py.

A call makes the outputs, fills in addresses, and hands all launches to the driver in one native call (launcher.py),
on this thread's current stream; it waits for nothing. Scratch memory belongs to the stream, and all programs that
run on it share it, because they run one after the other. Numbers that the host has (Python floats, 0-d ndarrays) go in
one small copy. A program that is called again with arrays at the same addresses is captured as a graph of the driver,
which takes as long to launch as two kernels: always if it is given arrays to write to, and if it has several small
steps also if it makes its results, since small blocks of memory are soon used again (kept_blocks.py).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..device.kernels.settings import SETTINGS
from ..device.memory.arrays import Device, DeviceArray, Memory
from ..errors import DeviceError
from ..graph.ir import Node
from ..process.gc_pause import RareCollection
from ..process.locks import ForkSafeLock
from .cpu_program import MISSED, Output
from .device_plan import DevicePlan, plan
from .device_segments import Segments, fixed_on
from .device_turns import ALIGNMENT, anywhere, device_front
from .lifetimes import nbytes
from .scratch import scratch_of

SMALL_RESULT, RESULT_ALIGNMENT = 1 << 14, 256
"""Results of at most this many bytes share a block; there each begins at a multiple of the second number."""
SLOT = 16
"""Bytes for a scalar of the CPU."""
REPEATS, MORE_REPEATS = 2, 4
"""After this many calls with the same arrays, the program is captured for them; the second number is for calls that
make their results."""
MOST_GRAPHS = 8
FEWEST_STEPS, SMALL_SCRATCH = 3, 1 << 20
"""Calls that make their results are captured if they have so many steps, and at most so many bytes of scratch memory,
of which each graph has its own."""
MOST_SEEN, MOST_MISSED = 64, 256
"""So many addresses are remembered; after so many calls that no graph serves, new ones take the place of all."""


class DeviceProgram:
    """A compiled graph.

    Parameters
    ----------
    outputs : sequence of Output
    arguments : sequence of nodes
        Leaves in the order of the call's positional arguments.
    device : Device
    """

    def __init__(self, outputs: Sequence[Output], arguments: Sequence[Node], device: Device) -> None:
        start = time.perf_counter()
        self.device = device
        device.driver.use(device.index)
        with RareCollection():
            self._front = device_front([output.node for output in outputs], arguments)
        self.graph = self._front.graph
        self._inputs = arguments
        self.outputs = outputs
        self._shapes = [(output.node.shape, output.node.dtype) for output in outputs]
        self._expected = [(node.shape, node.dtype) for node in arguments]
        self._result_places: list[tuple[int, int]] = []
        self._small_bytes = 0
        for output in outputs:
            size = nbytes(output.node)
            if size > SMALL_RESULT:
                self._result_places.append((-1, size))
            else:
                self._result_places.append((self._small_bytes, size))
                self._small_bytes += -(-size // RESULT_ALIGNMENT) * RESULT_ALIGNMENT
        self._lock = ForkSafeLock()
        self._graphs: dict[tuple[int, ...], tuple[int, Memory]] = {}
        self._prepare()
        self.seconds = time.perf_counter() - start

    def _prepare(self) -> None:
        """Plan and load the program under the settings of now."""
        made = self._front
        self._settings = SETTINGS.state
        with RareCollection():
            self.plan: DevicePlan = plan(
                made.fused, made.arguments, made.constants, self.device, anywhere(made.constants)
            )
        self._free_graphs()
        self._seen: dict[tuple[int, ...], int] = {}
        self._place_bases(self._inputs, made.constants)
        self._segments = Segments(self.plan.actions, self.device)
        self._streams: set[int] = set()
        self._missed = 0
        self._capturable = self._segments.capturable
        steps = self._segments.count
        self._repeats = steps >= FEWEST_STEPS and self.plan.bytes <= SMALL_SCRATCH and self._capturable

    def _free_graphs(self) -> None:
        while self._graphs:
            self.device.driver.free_graph(self._graphs.popitem()[1][0])

    def __del__(self) -> None:
        graphs = getattr(self, "_graphs", None)
        if graphs:
            try:
                self._free_graphs()
            except (DeviceError, AttributeError, TypeError):
                # A device that has failed, or a process that ends, has given everything back.
                graphs.clear()

    def _use(self) -> int:
        """Make the device current, and the program what the settings ask for; gives the current stream.

        Other streams may be at work on the constants still: the first call on each stream lets it wait for them.
        """
        self.device.driver.use(self.device.index)
        if self._settings != SETTINGS.state:
            with self._lock.held():
                self._prepare()
        stream = self.device.stream
        if stream not in self._streams:
            with self._lock.held():
                for array in (*self._kept, *self._segments.constants):
                    array.ready_on(stream)
                self._streams.add(stream)
        return stream

    def _place_bases(self, arguments: Sequence[Node], constants: Sequence[Node]) -> None:
        """The table of bases: scratch, arguments, constants, literals, outputs."""
        self._arguments = len(arguments)
        self._kept = fixed_on(constants, self.plan.literals, self.device)
        fixed = [array.pointer for array in self._kept]
        self._bases = np.zeros(1 + self._arguments + len(fixed) + len(self.outputs), np.int64)
        self._bases[1 + self._arguments : 1 + self._arguments + len(fixed)] = fixed
        self._first_output = 1 + self._arguments + len(fixed)
        self._numbers = np.zeros(max(1, self._arguments) * SLOT, np.uint8)
        self._number_memory: dict[int, Memory] = {}

    # ----- Calls -----

    def call(self, *values: Any) -> tuple[DeviceArray, ...]:
        """Run the program on this thread's current stream; gives new arrays.

        Parameters
        ----------
        *values : DeviceArray, ndarray or number
            One for each argument; what the host has is copied.

        Raises
        ------
        DeviceError
            If the device fails.
        """
        stream = self._use()
        results = self._new_results(stream)
        lock = self._lock.acquire()
        try:
            if self._repeats:
                self._repeat(values, results, stream)
            else:
                self._enqueue(values, results, stream)
        finally:
            lock.release()
        return results

    def _repeat(self, values: Sequence[Any], results: Sequence[DeviceArray], stream: int) -> None:
        """All work of a call, by a graph if the addresses are those of earlier calls."""
        everything = (*values, *results)
        try:
            key = tuple([value.pointer for value in everything])
        except AttributeError:  # a number of the host
            self._enqueue(values, results, stream)
            return
        known = self._graphs.get(key)
        if known is not None:
            self._missed = 0
            self._launch_graph(known, everything, stream)
            return
        self._enqueue(values, results, stream)
        self._missed += 1
        if len(self._graphs) >= MOST_GRAPHS:
            if self._missed > MOST_MISSED:
                self._free_graphs()
            return
        if len(self._seen) >= MOST_SEEN:
            self._seen.clear()
        try:
            self._count(key, everything, MORE_REPEATS)
        except DeviceError:  # nothing of the call depends on it; a device that is lost says so next time
            self._repeats = False

    def _count(self, key: tuple[int, ...], values: Sequence[Any], repeats: int) -> None:
        """Remember the addresses of a call, and make a graph for them if they come back."""
        self._seen[key] = self._seen.get(key, 0) + 1
        if self._seen[key] >= repeats:
            self._capture(key, values)

    def _new_results(self, stream: int) -> tuple[DeviceArray, ...]:
        """Arrays for the results; small ones share a block of memory, because asking for some takes time."""
        device = self.device
        block = Memory(device, self._small_bytes, stream)
        results: list[DeviceArray] = []
        for (shape, dtype), (offset, size) in zip(self._shapes, self._result_places, strict=True):
            if offset < 0:
                memory = Memory(device, size, stream)
                results.append(DeviceArray(memory.pointer, shape, dtype, device, stream, memory))
            else:
                results.append(DeviceArray(block.pointer + offset, shape, dtype, device, stream, block))
        return tuple(results)

    def call_into(self, *values: Any) -> Any:
        """Run like `call`, with a DeviceArray for each result after the arguments; `MISSED` if something does not fit.

        From the third call with the same arrays on, a graph of the driver does all of it.
        """
        count = self._arguments
        inputs, targets = values[:count], values[count:]
        stream = self._use()
        if not self._fits(inputs, targets):
            return MISSED
        key = tuple([value.pointer if isinstance(value, DeviceArray) else -1 for value in values])
        with self._lock.held():
            known = self._graphs.get(key)
            if known is not None:
                self._launch_graph(known, values, stream)
                return targets
            self._enqueue(inputs, targets, stream)
            self._written(targets, stream)
            if -1 not in key and self._capturable:
                self._count(key, values, REPEATS)
        return targets

    def replay(self, values: Sequence[Any]) -> bool:
        """Do again what was captured for these arrays, inputs and then results; tells whether there was such a call.

        The caller has checked shapes and dtypes.
        """
        if any(value.__class__ is not DeviceArray for value in values):
            return False
        stream = self._use()
        lock = self._lock.acquire()
        try:
            known = self._graphs.get(tuple([value.pointer for value in values]))
            if known is None:
                return False
            self._launch_graph(known, values, stream)
        finally:
            lock.release()
        return True

    def _launch_graph(self, known: tuple[int, Memory], values: Sequence[DeviceArray], stream: int) -> None:
        """Launch a graph for inputs and then results."""
        graph, memory = known
        for value in values[: self._arguments]:
            value.ready_on(stream)
        for target in values[self._arguments :]:
            target.free_on(stream)
        memory.used_on(stream)
        self.device.driver.launch_graph(graph, stream)
        self._written(values[self._arguments :], stream)

    def _enqueue(self, inputs: Sequence[Any], results: Sequence[DeviceArray], stream: int) -> None:
        """All work of a call."""
        if not self.plan.bytes:
            kept = self._fill_in(inputs, results, stream)
            self._segments.run(self._bases, stream)
            del kept
            return
        scratch = scratch_of(self.device, stream)
        address = scratch.enter(self.plan.bytes)
        try:
            kept = self._fill_in(inputs, results, stream)
            self._bases[0] = address
            self._segments.run(self._bases, stream)
            del kept
        finally:
            scratch.leave()

    def _fits(self, inputs: Sequence[Any], targets: Sequence[Any]) -> bool:
        for value, (shape, dtype) in zip([*inputs, *targets], [*self._expected, *self._shapes], strict=False):
            given = isinstance(value, DeviceArray)
            if given and (value.shape != shape or value.dtype != dtype or value.device is not self.device):
                return False
        return len(targets) <= len(self._shapes)

    def _written(self, targets: Sequence[DeviceArray], stream: int) -> None:
        for target in targets:
            target.stream = stream

    def _fill_in(self, inputs: Sequence[Any], results: Sequence[DeviceArray], stream: int) -> list[Any]:
        """Write the addresses of a call into the table of bases. Gives what must live until all is enqueued."""
        bases = self._bases
        kept: list[Any] = []
        numbers: list[tuple[int, np.ndarray]] = []
        for position, value in enumerate(inputs):
            if isinstance(value, DeviceArray):
                if value.device is not self.device:
                    message = (
                        f"An argument of shape {value.shape} is on {value.device}, but this program runs on "
                        f"{self.device}. Move it with x.to({str(self.device)!r})."
                    )
                    raise DeviceError(message)
                address = value.ready_on(stream)
                if address % ALIGNMENT:
                    value = self._aligned(value, stream)
                    kept.append(value)
                    address = value.pointer
                bases[1 + position] = address
                continue
            array = np.asarray(value, dtype=self._expected[position][1])
            if array.nbytes <= SLOT:
                numbers.append((position, array))
            else:
                made = DeviceArray.of(array, self.device)
                kept.append(made)
                bases[1 + position] = made.pointer
        if numbers:
            self._upload_numbers(numbers, stream)
        for position, result in enumerate(results):
            bases[self._first_output + position] = result.free_on(stream)
        return kept

    def _aligned(self, value: DeviceArray, stream: int) -> DeviceArray:
        """A copy at an address that kernels can read many elements from at once."""
        made = DeviceArray.empty(value.shape, value.dtype, self.device)
        self.device.driver.copy(made.pointer, value.pointer, value.nbytes, stream)
        return made

    def _upload_numbers(self, numbers: Sequence[tuple[int, np.ndarray]], stream: int) -> None:
        """All numbers of the host in one copy."""
        memory = self._number_memory.get(stream)
        if memory is None:
            memory = self._number_memory[stream] = Memory(self.device, self._numbers.nbytes, stream)
        for slot, (position, array) in enumerate(numbers):
            start = slot * SLOT
            self._numbers[start : start + array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
            self._bases[1 + position] = memory.pointer + start
        self.device.driver.upload(memory.pointer, self._numbers[: len(numbers) * SLOT], stream)

    # ----- Graphs -----

    def _capture(self, key: tuple[int, ...], values: Sequence[Any]) -> None:
        """Make a graph of what the program does with arrays at these addresses; it has scratch memory of its own."""
        if any(value.pointer % ALIGNMENT for value in values[: self._arguments]):
            self._seen[key] = -sys.maxsize  # never: each call makes copies
            return
        driver = self.device.driver
        stream = driver.new_stream(self.device.index)
        memory = Memory(self.device, self.plan.bytes, self.device.stream)
        self._bases[0] = memory.pointer
        for position, value in enumerate(values[: self._arguments]):
            self._bases[1 + position] = value.pointer
        driver.begin_capture(stream)
        try:
            self._segments.run(self._bases, stream)
        finally:
            graph = driver.end_capture(stream)
        while len(self._graphs) >= MOST_GRAPHS:
            oldest = next(iter(self._graphs))
            driver.free_graph(self._graphs.pop(oldest)[0])
        self._graphs[key] = (graph, memory)
        self._seen.clear()
        driver.free_stream(stream)
