"""Neighbours: shifted reads are index maps, so a stencil and its adjoint are one loop each."""

import numpy as np

import nbgrad as nb

from . import measured


class Tasks(measured.Measured):
    """100 steps on a periodic square, and two convolutions."""

    params = ("stencil", "convolution")


class SecondDifference:
    """The squared second difference of a long array, and its gradient."""

    params = (1000, 1_000_000)
    param_names = ("n",)

    def setup(self, n):
        self.u = np.random.default_rng(0).random(n)
        self.function = nb.jit(nb.value_and_grad(lambda u: np.sum((u[2:] - 2.0 * u[1:-1] + u[:-2]) ** 2)))
        self.function(self.u)

    def time_value_and_grad(self, n):
        self.function(self.u)
