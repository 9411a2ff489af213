"""Complex numbers: fused arithmetic on pairs of parts, and Fourier transforms by the library."""

import numpy as np

import nbgrad as nb

from . import measured


class Tasks(measured.Measured):
    """Complex exponentials and quotients of a million numbers."""

    params = ("response",)


class Transforms:
    """A spectrum's power and its gradient; the transform itself is SciPy's."""

    params = (64, 1 << 16)
    param_names = ("length",)

    def setup(self, length):
        self.x = np.random.default_rng(0).normal(size=length)
        self.gradient = nb.jit(nb.grad(lambda x: np.sum(np.abs(np.fft.rfft(x)) ** 4)))
        self.gradient(self.x)

    def time_gradient(self, length):
        self.gradient(self.x)

    def time_two_transforms(self, length):
        np.fft.irfft(np.fft.rfft(self.x))
