"""What GPUs cost the host: compilation of kernels, and calls of programs. Neither needs a GPU.

In: a dtype and a size of kernels, or how many kernels a program has. Out: lists of kernels to compile, and calls
without arguments. Called by devices.py and by the asv classes of benchmarks/devices.py. Programs are made for
`Counting`, which collects kernels, or for nbgrad's recorder, whose launches are counted by native code; nothing is
computed.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

import nbgrad as nb
from nbgrad.device.kernels import ptx
from nbgrad.device.kernels.launches import DeviceKernel
from nbgrad.device.memory.chosen_driver import using
from nbgrad.device.simulator.recorder import Recorder

from . import tasks

GENERATION = (9, 0)
SIZES = {"small": 1, "medium": 6, "large": 24}
"""Sizes of kernels, in operations that are differentiated."""


class Counting(Recorder):
    """A recorder that keeps the kernels."""

    def __init__(self) -> None:
        super().__init__(native=True)
        self.kernels: list[DeviceKernel] = []

    def function(self, kernel: DeviceKernel, device: int, shared: int = 0) -> int:
        self.kernels.append(kernel)
        return super().function(kernel, device, shared)


def operations(variant: int, count: int, x, y):
    """As tasks.twelve, of any length; each variant is another function."""
    steps = [np.sin, np.exp, np.tanh, lambda v: v * v, np.sqrt, lambda v: 1.0 / (1.0 + v * v), np.log1p, np.cos]
    for position in range(count):
        x = steps[(position * (variant + 1) + variant) % 8](x * y + (position + variant))
    return np.sum(x)


def kernels(dtype: str, size: str, variants: Iterator[int] | range = range(4)) -> list[DeviceKernel]:
    """A fused kernel for each variant: both gradients of a function, elementwise."""
    x, y = [a.astype(dtype) for a in tasks.pair(100_000)]
    found = []
    for variant in variants:
        with using(Counting()) as counting:
            gradient = nb.grad(lambda x, y, v=variant: operations(v, SIZES[size], x, y), (0, 1))
            nb.jit(gradient)(nb.Tensor(x, device="cuda"), nb.Tensor(y, device="cuda"))
        assert isinstance(counting, Counting)
        found.append(counting.kernels[-1])
    return found


def seconds_to_compile(found: list[DeviceKernel], machine_code: bool = True) -> float:
    """The median time to write the IR of kernels and compile it, after the first was compiled twice."""
    samples = []
    for kernel in [found[0], *found]:
        start = time.perf_counter()
        text = ptx.compile_ptx(kernel.make(), GENERATION)
        if machine_code:
            ptx.link(text, GENERATION)
        samples.append(time.perf_counter() - start)
    return statistics.median(samples[1:])


def has_linker() -> bool:
    """Whether machine code can be made here."""
    return ptx._linker() is not None


def chained(x):
    """Sums of which each needs the one before, so that the gradient is ten kernels."""
    for _ in range(5):
        x = np.tanh(x) * np.sum(x * x)
    return np.sum(x)


PROGRAMS: dict[int, Callable] = {1: lambda x: np.exp(-x * x) * x, 10: nb.grad(chained)}
"""Functions by the number of their kernels."""


def program(count: int, into: bool, elements: int = 100) -> Callable[[], object]:
    """A call of a compiled program of so many kernels on the current device, warm; `into` the same array each time."""
    function = nb.jit(PROGRAMS[count])
    x = nb.Tensor(np.linspace(0.1, 0.2, elements, dtype=np.float32), device="cuda")
    out = nb.Tensor(np.zeros(elements, np.float32), device="cuda")
    call = (lambda: function(x, out=out)) if into else (lambda: function(x))
    for _ in range(8):  # the graph is made by one of them
        call()
    return call


@contextmanager
def recorded() -> Iterator[Recorder]:
    """A context in which "cuda" is a device that does nothing."""
    with using(Recorder(native=True)) as recorder:
        assert isinstance(recorder, Recorder)
        yield recorder


def seconds_of_a_call(call: Callable[[], object], wait: Callable[[], None], each: bool = False) -> float:
    """The median time of a call on the host, over runs of 50; with `each`, every call is waited for."""
    samples = []
    for _ in range(40):
        start = time.perf_counter()
        for _ in range(50):
            call()
            if each:
                wait()
        samples.append((time.perf_counter() - start) / 50)
        wait()
    return statistics.median(samples)
