"""Stand-ins for arrays of CuPy, PyTorch and Numba in a simulated device, and the device itself.

In: ndarrays. Out: objects with what nbgrad asks of those libraries' arrays. Used by test_device_interop.py and
test_device_streams.py; `simulated` is a fixture of every test there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.device.memory import dlpack
from nbgrad.device.memory.arrays import DeviceArray
from nbgrad.device.memory.chosen_driver import using
from nbgrad.device.simulator.simulator import Simulator

A = np.random.default_rng(8).normal(size=(3, 4))
B = np.random.default_rng(9).normal(size=(3, 4))


class Foreign:
    """Memory on a device, with `__cuda_array_interface__`; `changes` says what it says otherwise."""

    def __init__(self, array: Any, device: int = 0, stream: int = 0, **changes: Any) -> None:
        array = np.asarray(array)
        driver = nb.cuda.device(device).driver
        self.held = DeviceArray.of(array, nb.cuda.device(device))
        self.strides = array.strides
        if not array.flags.c_contiguous:
            # As it lies in memory.
            self.held = DeviceArray.of(np.ascontiguousarray(array.T), nb.cuda.device(device)).reshape(array.shape)
        self.shape, self.dtype, self.stream, self.changes = array.shape, array.dtype, stream, changes
        self.driver = driver

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        described = {
            "version": 3,
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.held.pointer, False),
            "strides": None if self.strides == np.empty(self.shape, self.dtype).strides else self.strides,
            "stream": self.stream or 1,
        }
        described.update(self.changes)
        return described

    @property
    def values(self) -> np.ndarray:
        return self.held.to_host()


class Cupy(Foreign):
    __module__ = "cupy._core.core"


class Numba(Foreign):
    __module__ = "numba.cuda.cudadrv.devicearray"


class Torch(Foreign):
    """PyTorch's tensors say neither their stream nor a version above 2, and raise if they require a gradient."""

    __module__ = "torch"
    is_cuda = True
    requires_grad = False

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self.requires_grad:
            raise RuntimeError("Can't get __cuda_array_interface__ on Variable that requires grad.")
        return {**super().__cuda_array_interface__, "version": 2, "stream": None}


def reading(kind: type[Foreign]) -> Callable[..., Foreign]:
    """A library's function that makes its array of another one by `__cuda_array_interface__`."""

    def make(other: Any, **_: Any) -> Foreign:
        described = other.__cuda_array_interface__
        made = kind.__new__(kind)
        made.held = other.array
        made.shape, made.dtype = described["shape"], np.dtype(described["typestr"])
        made.strides = np.empty(made.shape, made.dtype).strides
        made.stream, made.changes = described["stream"], {}
        return made

    return make


def from_dlpack(other: Any) -> Torch:
    kind, index = other.__dlpack_device__()
    assert kind == 2
    taken, _ = dlpack.taken(other, nb.cuda.device(index))
    made = Torch.__new__(Torch)
    made.held, made.shape, made.dtype, made.changes = taken, taken.shape, taken.dtype, {}
    made.strides, made.stream = np.empty(taken.shape, taken.dtype).strides, taken.stream
    return made


TORCH_STREAM = [0]


@pytest.fixture(autouse=True)
def simulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[Simulator]:
    library: Any
    for name, members in (
        ("cupy", {"asarray": reading(Cupy)}),
        ("numba.cuda", {"as_cuda_array": reading(Numba)}),
        (
            "torch",
            {
                "from_dlpack": from_dlpack,
                "cuda": SimpleNamespace(current_stream=lambda _: SimpleNamespace(cuda_stream=TORCH_STREAM[0])),
            },
        ),
    ):
        library = ModuleType(name)
        vars(library).update(members)
        monkeypatch.setitem(sys.modules, name, library)
    TORCH_STREAM[0] = 0
    with using(Simulator(devices=2)) as simulator:
        assert isinstance(simulator, Simulator)
        yield simulator


KINDS = [Cupy, Numba, Torch]


def f(x: Any, y: Any) -> Any:
    return np.sum(np.sin(x) * y)
