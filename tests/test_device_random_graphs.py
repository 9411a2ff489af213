"""Random graphs on a device give what the reference interpreter gives.

The graphs are those of test_random_graphs.py: small whole numbers, exact in any order of operations, so every bit must
agree (but for the sign of zero). They reach what no list of cases does: views of views, masks, rows that fuse, kernels
with many results.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

from nbgrad.device.memory.arrays import DeviceArray, device_named
from nbgrad.device.memory.chosen_driver import using
from nbgrad.device.simulator.simulator import Simulator
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import Node, topological
from nbgrad.runtime.cpu_program import Output
from nbgrad.runtime.device_program import DeviceProgram

from .test_random_graphs import LONG, QUICK, assert_same, graphs

pytestmark = pytest.mark.unoptimized

SIMULATORS = {order: Simulator(order=order) for order in ("forward", "reversed")}


def on_device(outputs: list[Node]) -> list[np.ndarray]:
    """The outputs, computed by a program of the current device; unwritten results show as NaN."""
    device = device_named("cuda")
    assert device is not None
    leaves = [node for node in topological(outputs) if node.name == "input"]
    program = DeviceProgram([Output(node) for node in outputs], leaves, device)
    values: list[Any] = [node.value for node in leaves]
    found = program.call(*[DeviceArray.of(np.ascontiguousarray(value), device) for value in values])
    return [array.to_host() for array in found]


def check(outputs: list[Node], order: str) -> None:
    simulator = SIMULATORS[order]
    with using(simulator), np.errstate(all="ignore"):
        assert_same(outputs, on_device(outputs), interpret(outputs))
        simulator.check()


@given(graphs(steps=12))
@QUICK
def test_small_graphs(outputs: list[Node]) -> None:
    check(outputs, "forward")


@given(graphs(steps=8, extents=(1, 2, 3, 33, 64)))
@QUICK
def test_rows_and_columns(outputs: list[Node]) -> None:
    check(outputs, "reversed")


@pytest.mark.slow
@pytest.mark.parametrize("order", ["forward", "reversed"])
@given(outputs=graphs(steps=14, extents=(0, 1, 2, 3, 5, 31, 32, 64)))
@LONG
def test_many_graphs(order: str, outputs: list[Node]) -> None:
    check(outputs, order)
