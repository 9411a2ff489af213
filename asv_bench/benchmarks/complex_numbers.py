"""Complex numbers: fused arithmetic on pairs of parts, and Fourier transforms by the library."""

import numpy as np

from . import measured
from .tasks import Task


class Tasks(measured.Measured):
    """Complex exponentials and quotients of a million numbers."""

    params = ("response",)


def power(xp, x):
    """A function of a spectrum's power."""
    return xp.sum(xp.abs(xp.fft.rfft(x)) ** 4)


class Transforms(measured.Beside):
    """A spectrum's power and its gradient; the transform itself is SciPy's."""

    params = (64, 1 << 16)
    param_names = ("length",)

    def task(self, length):
        return Task("", power, lambda rng: (rng.normal(size=length),), what="grad")

    def time_gradient(self, length, library):
        self.call()


class TwoTransforms:
    """The transforms of that gradient, by NumPy."""

    params = Transforms.params[0]
    param_names = ("length",)

    def setup(self, length):
        self.x = np.random.default_rng(0).normal(size=length)

    def time_two_transforms(self, length):
        np.fft.irfft(np.fft.rfft(self.x))
