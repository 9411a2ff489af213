"""Elementwise work on large arrays: how near fused loops come to the limits of arithmetic and of memory."""

import statistics
import time

import numpy as np

import nbgrad as nb

from . import measured, tasks
from .tasks import TASKS, Task


class Tasks(measured.Measured):
    """Transcendental functions, greeks, and quotients of polynomials."""

    params = ("fused", "options", "density")


class Functions(measured.Beside):
    """One function of an array: its values."""

    params = (
        ("exp", "expm1", "log", "log1p", "sin", "tan", "tanh", "arctan", "sqrt", "erf"),
        ("float32", "float64"),
    )
    param_names = ("function", "dtype")
    libraries = ("nbgrad", "numpy", "jax", "torch")

    def task(self, function, dtype):
        def inputs(rng):
            return (rng.uniform(0.1, 3.0, 100_000).astype(dtype),)

        return Task("", lambda xp, x: getattr(xp, function)(x), inputs, what="value")

    def time_100_000_values(self, function, dtype, library):
        self.call()


class Fused:
    """The compiled gradient of a long expression, after its first call."""

    length: int

    def setup(self):
        self.inputs = tasks.pair(self.length)
        self.function = nb.jit(nb.value_and_grad(lambda x, y: TASKS["fused"].function(np, x, y), (0, 1)))
        self.function(*self.inputs)


class Fusion(Fused):
    """What is left of a long expression: kernels over arrays, and arrays between them."""

    length = 100_000

    def track_kernels(self):
        """The partial sums of the chunks are combined by one more, which is small and not counted."""
        return sum(step.kernel.shape[0] >= 100_000 for step in self.function.programs()[0].plan.steps)

    def track_intermediate_bytes(self):
        return self.function.programs()[0].plan.arena_bytes

    track_kernels.unit, track_intermediate_bytes.unit = "kernels", "bytes"


class StackPositions(Fused):
    """The same call from 40 depths of C calls: the time must not depend on where the stack happens to lie."""

    length = 2000

    def track_slowest_to_median(self):
        times = [self.seconds(depth) for depth in range(40)]
        return max(times) / statistics.median(times)

    def seconds(self, depth):
        """The median time of a call that many calls of C code further down."""
        if depth:
            return next(map(self.seconds, (depth - 1,)))
        times = []
        for _ in range(200):
            start = time.perf_counter()
            self.function(*self.inputs)
            times.append(time.perf_counter() - start)
        return statistics.median(times)

    track_slowest_to_median.unit = "ratio"
