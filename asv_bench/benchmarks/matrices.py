"""Decompositions and transforms by LAPACK and SciPy, with derivatives."""

from . import measured
from .tasks import Task, symmetric


def weighted(xp, parts):
    """The squares of all parts, each column with another weight."""
    return sum(xp.sum(part**2 * xp.arange(part.shape[-1])) for part in parts)


FUNCTIONS = {
    "svd": lambda xp, a: weighted(xp, xp.linalg.svd(a, full_matrices=False)),
    "svdvals": lambda xp, a: xp.sum(xp.linalg.svd(a, compute_uv=False) ** 3),
    "eigvalsh": lambda xp, a: xp.sum(xp.linalg.eigvalsh(symmetric(a)) ** 3),
    "eigvals": lambda xp, a: xp.sum(xp.abs(xp.linalg.eigvals(a)) ** 3),
    "qr": lambda xp, a: weighted(xp, xp.linalg.qr(a)),
    "pinv": lambda xp, a: xp.sum(xp.linalg.pinv(a) ** 2),
    "expm": lambda xp, a: xp.sum(xp.expm(a / len(a)) ** 2),
    "fft2": lambda xp, a: xp.sum(xp.abs(xp.fft.fft2(a)) ** 3),
    "rfft": lambda xp, a: xp.sum(xp.abs(xp.fft.rfft(a)) ** 3),
}
BY_OTHER_NAMES = {("svdvals", "torch"): lambda xp, a: xp.sum(xp.linalg.svdvals(a) ** 3)}


class Tasks(measured.Measured):
    """Cholesky factors, linear systems, eigenvalue problems."""

    params = ("cholesky", "solve", "eigh")


class Gradients(measured.Beside):
    """Small matrices show what a call into Python costs, larger ones the library and the products around it."""

    params = (tuple(FUNCTIONS), (4, 200))
    param_names = ("function", "n")

    def task(self, function, n):
        return Task("", FUNCTIONS[function], lambda rng: (rng.standard_normal((n, n)),))

    def setup(self, function, n, library):
        task = self.task(function, n)
        other = BY_OTHER_NAMES.get((function, library), task.function)
        self.call = measured.prepared(task._replace(function=other), library)

    def time_value_and_grad(self, function, n, library):
        self.call()
