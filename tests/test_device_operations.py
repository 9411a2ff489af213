"""Every operation of the tables on a device, in the simulator: values and gradients are those of the CPU, and
they are on the device. (What the CPU gives is compared with NumPy and with differences in test_operations.py.)"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.device.memory.chosen_driver import using
from nbgrad.device.simulator.simulator import Simulator

from .test_operations import OPERATIONS

OTHERS = {
    "cross_entropy": "uses a Tensor of its own in the CPU's memory",
    "nll_loss": "uses a Tensor of its own in the CPU's memory",
    "margin_ranking_loss": "uses a Tensor of its own in the CPU's memory",
    "ldexp": "takes integers, which become floats beside Tensors of floats",
    "decompositions of empty matrices": "gives arrays without elements, which are nowhere",
}
"""Operations that are not compared, and why."""


def tensors(value: Any) -> list[nb.Tensor]:
    """The Tensors in what a function returned."""
    if isinstance(value, list | tuple):
        return [one for part in value for one in tensors(part)]
    return [value] if isinstance(value, nb.Tensor) else []


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in OPERATIONS if name not in OTHERS])
def test_operations_on_a_device(name: str) -> None:
    row = OPERATIONS[name]
    with using(Simulator()):
        for sample in row.samples:
            rng = np.random.default_rng(zlib.crc32(name.encode()))
            arrays = [argument.array(rng) for argument in sample]

            def arguments(device: str, arrays: list[np.ndarray] = arrays) -> list[Any]:
                return [nb.Tensor(a, device=device) if a.dtype.kind == "f" else a for a in arrays]

            def total(*given: Any) -> Any:
                parts = [part for part in tensors(row.function(*given)) if part.dtype.kind in "fc"]
                return sum((np.abs(part) ** 2).sum() for part in parts)

            compare(row.function(*arguments("cuda")), row.function(*arguments("cpu")), 1e-8)
            positions = tuple([k for k, argument in enumerate(sample) if argument.smooth])
            if row.order >= 1 and positions:
                gradient = nb.grad(total, positions)
                compare(gradient(*arguments("cuda")), gradient(*arguments("cpu")), 1e-6)


def compare(found: Any, expected: Any, tolerance: float) -> None:
    """Assert that results are equal up to rounding, and on the device."""
    for one, other in zip(tensors(found), tensors(expected), strict=True):
        assert one.device == "cuda"
        np.testing.assert_allclose(one.asnumpy(), other.asnumpy(), rtol=tolerance, atol=tolerance)
