"""Neighbours: shifted reads are index maps, so a stencil and its adjoint are one loop each."""

from . import measured
from .tasks import Task


class Tasks(measured.Measured):
    """100 steps on a periodic square, and two convolutions."""

    params = ("stencil", "convolution")


class SecondDifference(measured.Beside):
    """The squared second difference of a long array, and its gradient."""

    params = (1000, 1_000_000)
    param_names = ("n",)

    def task(self, n):
        return Task("", lambda xp, u: xp.sum((u[2:] - 2.0 * u[1:-1] + u[:-2]) ** 2), lambda rng: (rng.random(n),))

    def time_value_and_grad(self, n, library):
        self.call()
