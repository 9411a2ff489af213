"""Decompositions and transforms by LAPACK and SciPy, with derivatives."""

import numpy as np

import nbgrad as nb

from . import measured

FUNCTIONS = {
    "svd": lambda a: sum(np.sum(part**2 * np.arange(len(a))) for part in np.linalg.svd(a)),
    "svdvals": lambda a: np.sum(np.linalg.svd(a, compute_uv=False) ** 3),
    "eigvalsh": lambda a: np.sum(np.linalg.eigvalsh(a) ** 3),
    "eigvals": lambda a: np.sum(np.abs(np.linalg.eigvals(a)) ** 3),
    "qr": lambda a: sum(np.sum(part**2 * np.arange(len(a))) for part in np.linalg.qr(a)),
    "pinv": lambda a: np.sum(np.linalg.pinv(a) ** 2),
    "expm": lambda a: np.sum(nb.ops.expm(a / len(a)) ** 2),
    "fft2": lambda a: np.sum(np.abs(np.fft.fft2(a)) ** 3),
    "rfft": lambda a: np.sum(np.abs(np.fft.rfft(a)) ** 3),
}


class Tasks(measured.Measured):
    """Cholesky factors, linear systems, eigenvalue problems."""

    params = ("cholesky", "solve", "eigh")


class Gradients:
    """Small matrices show what a call into Python costs, larger ones the library and the products around it."""

    params = (tuple(FUNCTIONS), (4, 200))
    param_names = ("function", "n")

    def setup(self, function, n):
        self.input = np.random.default_rng(0).standard_normal((n, n))
        self.function = nb.jit(nb.value_and_grad(FUNCTIONS[function]))
        self.function(self.input)

    def time_value_and_grad(self, function, n):
        self.function(self.input)
