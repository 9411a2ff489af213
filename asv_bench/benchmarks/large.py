"""Large arrays: how near fused loops come to the arithmetic and memory limits."""

import numpy as np

import nbgrad as nb

from . import tasks


class Fused:
    """Value and both gradients of a transcendental sum; one kernel, no intermediate array."""

    params = (100_000, 1_000_000)
    param_names = ("n",)

    def setup(self, n):
        self.inputs = tasks.pair(n)
        self.function = nb.jit(nb.value_and_grad(tasks.fused(np), (0, 1)))
        self.function(*self.inputs)

    def time_value_and_grad(self, n):
        self.function(*self.inputs)

    def track_kernels(self, n):
        """Kernels over arrays; the partial sums of the chunks are combined by one more."""
        return sum(step.kernel.shape[0] >= n for step in self.function.paths()[0].plan.steps)

    def track_intermediate_bytes(self, n):
        """Bytes of intermediate arrays."""
        return self.function.paths()[0].plan.arena_bytes
