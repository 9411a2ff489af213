"""What the tests that need a GPU share: where they run, and how results are compared.

In: "gpu" or "simulator". Out: a `Place` whose driver is in use. Called by the fixture `place` of conftest.py.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import nbgrad as nb
from nbgrad.device.driver.cuda_driver import CudaDriver
from nbgrad.device.driver.driver import Driver
from nbgrad.device.memory.chosen_driver import using
from nbgrad.device.simulator.simulator import Simulator


class Place(NamedTuple):
    """Where a test runs: with many elements, or with few."""

    real: bool
    driver: Driver

    def size(self, there: int, here: int) -> int:
        return there if self.real else here


_the_driver = functools.cache(CudaDriver)


def places(name: str) -> Iterator[Place]:
    """What the fixture `place` gives: the GPU, or the simulator in its place."""
    if name == "gpu":
        with using(_the_driver()) as driver:
            yield Place(True, driver)
            nb.cuda.synchronize()
        return
    simulator = Simulator(devices=2, memory=1 << 28)
    with using(simulator):
        yield Place(False, simulator)
        simulator.check()


def on(array: Any, device: str = "cuda") -> nb.Tensor:
    return nb.Tensor(np.asarray(array), device=device)


def close(found: Any, expected: Any, bound: float) -> None:
    """Equal to a share of the largest element; exactly, if there are no fractions."""
    found = found.asnumpy() if isinstance(found, nb.Tensor) else np.asarray(found)
    assert found.shape == np.shape(expected)
    scale = float(np.max(np.abs(expected), initial=0.0)) if found.dtype.kind in "fc" else 0.0
    np.testing.assert_allclose(found, expected, rtol=0, atol=bound * scale)
