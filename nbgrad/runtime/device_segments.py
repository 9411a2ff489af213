"""The work of a program on a device in the order of its plan: launches in a row are one native call.

In: the actions of a `DevicePlan`, and a device. Out: `Segments`, which put all of it on a stream once they are told
where every array lies. Called by device_program.py, and by itself for the bodies of loops, whose turns Python walks
through: it has placed all arrays of all turns before, and a turn then takes as long as its launches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..device.driver.launcher import Launches
from ..device.kernels import launch_parameters as parameters
from ..device.kernels.launches import DeviceKernel, Fill, Launch, Routine
from ..device.memory.arrays import Device, DeviceArray
from ..errors import DeviceError
from ..graph.ir import Node
from .device_plan import Planned
from .device_turns import DeviceTurns
from .front import literal_pool
from .threads import get_num_threads

MOST_CAPTURED = 20_000
"""Longer programs are no graphs of the driver, which keep some kilobytes for each launch."""


@dataclass
class Context:
    """The place where a call of a library does its work."""

    driver: Any
    device: Device
    stream: int


class Segments:
    """Work in order.

    Parameters
    ----------
    actions : sequence of Planned
    device : Device
    prepared : bool
        Whether the kernels are compiled, or about to be.
    """

    def __init__(self, actions: Sequence[Planned], device: Device, prepared: bool = False) -> None:
        self.device = device
        prepare = getattr(device.driver, "prepare", None)
        if not prepared and prepare is not None:
            prepare(map(_as_launched, _launches(actions)), device.index, get_num_threads())
        self._kept: list[DeviceArray] = []
        self._parts: list[Launches | Turns | Planned] = []
        self._note = getattr(device.driver, "note", None)
        row: list[tuple[Launch, int, Sequence[tuple[int, int]]]] = []
        for planned in actions:
            if isinstance(planned.action, Launch):
                launch = self._with_room(planned.action)
                handle = device.driver.function(launch.kernel, device.index, launch.shared)
                row.append((launch, handle, planned.operands))
                continue
            self._close(row)
            self._parts.append(Turns(planned, device) if isinstance(planned.action, DeviceTurns) else planned)
        self._close(row)

    def _close(self, row: list[tuple[Launch, int, Sequence[tuple[int, int]]]]) -> None:
        if row:
            self._parts.append(Launches(row, self.device.driver.launch_address))
            row.clear()

    def _with_room(self, launch: Launch) -> Launch:
        """A launch whose integers are in memory, if they are too many for parameters."""
        if parameters.fits(launch):
            return launch
        numbers = DeviceArray.of(np.array(launch.numbers, np.int64), self.device)
        self._kept.append(numbers)
        return launch._replace(kernel=_as_launched(launch), numbers=(numbers.pointer,))

    def __len__(self) -> int:
        return len(self._parts)

    @property
    def constants(self) -> list[DeviceArray]:
        """Arrays that the work reads beside its bases."""
        found = [*self._kept]
        for part in self._parts:
            if isinstance(part, Turns):
                found += [*part.fixed, *part.segments.constants]
        return found

    @property
    def count(self) -> int:
        """How many launches, and calls of other kinds, there are, with all turns of loops."""
        return sum(
            len(part.keys) if isinstance(part, Launches) else part.count if isinstance(part, Turns) else 1
            for part in self._parts
        )

    @property
    def capturable(self) -> bool:
        """Whether it may become a graph of the driver."""
        return self.count <= MOST_CAPTURED and all(
            part.segments.capturable
            if isinstance(part, Turns)
            else not isinstance(part, Planned)
            or not isinstance(part.action, Routine)
            or getattr(part.action.run, "capturable", True)
            for part in self._parts
        )

    def run(self, bases: np.ndarray, stream: int) -> None:
        """Enqueue all; `bases` are the addresses of the bases that the actions' operands count from."""
        driver, at = self.device.driver, bases.ctypes.data
        for part in self._parts:
            if isinstance(part, Launches):
                if self._note is not None:
                    self._note(part.keys)
                refused = part.run(at, stream)
                if refused is not None:
                    self._refused(*refused, stream)
                continue
            if isinstance(part, Turns):
                part.run(bases, stream)
                continue
            addresses = [int(bases[base]) + offset for base, offset in part.operands]
            action = part.action
            if isinstance(action, Fill):
                driver.fill(addresses[0], action.byte, action.nbytes, stream)
            else:
                assert isinstance(action, Routine)
                action.run(Context(driver, self.device, stream), addresses, *action.params)

    def run_rows(self, table: np.ndarray, stream: int) -> None:
        """Enqueue all for each row of bases."""
        if len(self._parts) != 1 or not isinstance(self._parts[0], Launches):
            for bases in table:
                self.run(bases, stream)
            return
        launches, at, width = self._parts[0], table.ctypes.data, table.strides[0]
        if self._note is not None:
            self._note(launches.keys)
        for bases in range(at, at + len(table) * width, width):
            refused = launches.run(bases, stream)
            if refused is not None:
                self._refused(*refused, stream)

    def _refused(self, key: str, code: int, stream: int) -> None:
        """Raise for a launch that the driver refused: with what the driver knows, if it says more than a code."""
        raising = getattr(self.device.driver, "raise_launch_error", None)
        if raising is not None:
            raising(code, key)
        self.device.driver.synchronise(stream)
        message = f"The driver refused to launch the kernel {key[:200]!r}: error {code}."
        raise DeviceError(message)


class Turns:
    """A loop: its body, turn by turn.

    Parameters
    ----------
    planned : Planned
        With a `DeviceTurns` as its action.
    device : Device
    """

    def __init__(self, planned: Planned, device: Device) -> None:
        turns = planned.action
        assert isinstance(turns, DeviceTurns)
        self.turns, self.operands = turns, planned.operands
        self.segments = Segments(turns.plan.actions, device, True)
        self.fixed = fixed_on(turns.front.constants, turns.plan.literals, device)

    @property
    def count(self) -> int:
        """The launches of all turns."""
        return self.turns.count * self.segments.count

    def run(self, bases: np.ndarray, stream: int) -> None:
        """Enqueue all turns."""
        driver = self.segments.device.driver
        pointers = [int(bases[base]) + offset for base, offset in self.operands]
        for target, source, nbytes in self.turns.beginnings(pointers):
            driver.copy(target, source, nbytes, stream)
        last = None
        for table in self.turns.tables(pointers, [array.pointer for array in self.fixed]):
            self.segments.run_rows(table, stream)
            last = table[-1]
        if last is not None:
            for target, source, nbytes in self.turns.endings(pointers, last):
                driver.copy(target, source, nbytes, stream)


def _launches(actions: Sequence[Planned]) -> Iterator[Launch]:
    """All launches, with those in the bodies of loops."""
    for planned in actions:
        if isinstance(planned.action, Launch):
            yield planned.action
        elif isinstance(planned.action, DeviceTurns):
            yield from _launches(planned.action.plan.actions)


def _as_launched(launch: Launch) -> DeviceKernel:
    """The kernel that the driver gets for a launch."""
    return launch.kernel if parameters.fits(launch) else parameters.with_numbers_in_memory(launch.kernel)


def fixed_on(constants: Sequence[Node], literals: Sequence[Node], device: Device) -> list[DeviceArray]:
    """The values of constants on a device, and a pool of literals."""
    arrays: list[DeviceArray] = []
    for node in constants:
        value: Any = node.value
        assert value is not None, node
        arrays.append(value if isinstance(value, DeviceArray) else DeviceArray.of(np.asarray(value), device))
    return [*arrays, DeviceArray.of(literal_pool(literals), device)]
