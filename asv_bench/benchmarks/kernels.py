"""Whole Numba kernels, and their gradients by `nb.kernel`; kernels_beside.py has the ratios, and other libraries."""

import time

import numba
import numpy as np

import nbgrad as nb

from .kernel_programs import KERNELS, prepare, program
from .measured import least


class Kernels:
    """A call of the kernel, of its gradient, and the first gradient of a kernel that Numba has compiled."""

    params = KERNELS
    param_names = ("kernel",)
    timeout = 300

    def setup(self, kernel):
        self.primal, self.gradient = prepare(program(kernel))
        self.primal()
        self.gradient()

    def time_primal(self, kernel):
        self.primal()

    def time_gradient(self, kernel):
        self.gradient()

    def track_ratio(self, kernel):
        return least(self.gradient) / least(self.primal)

    track_ratio.unit = "gradient / kernel"


def compile_times(name):
    """Seconds of processor time for the first call of the kernel, and for its first gradient after that."""
    small = numba.njit(lambda x: x * x)
    small(1.0)
    nb.grad(nb.kernel(_warm))(np.ones(3))
    row = program(name)
    primal, gradient = prepare(row, check="never")
    start = time.process_time()
    primal()
    between = time.process_time()
    gradient()
    return between - start, time.process_time() - between


@numba.njit
def _warm(x):
    total = 0.0
    for value in x:
        total += value * value
    return total
