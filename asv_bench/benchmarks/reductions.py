"""Reductions along either axis, scans, and pairs that are reduced at once: values and gradients."""

import numpy as np

import nbgrad as nb

from . import measured

FORMS = {
    "sum": lambda x: np.sum(x * x),
    "sum of rows": lambda x: np.sum(np.sum(x * x, axis=1) ** 2),
    "sum of columns": lambda x: np.sum(np.sum(x * x, axis=0) ** 2),
    "variance of rows": lambda x: np.sum(np.var(x, axis=1) ** 2),
    "maximum of rows": lambda x: np.sum(np.max(x, axis=1) ** 2),
    "norm": lambda x: np.linalg.norm(x),
    "cumulative sum": lambda x: np.sum(np.cumsum(x, axis=1) ** 2),
    "product of columns": lambda x: np.sum(np.prod(x[:8], axis=0)),
}


class Gradients:
    """Of a matrix 1000x1000."""

    params = (tuple(FORMS), ("float32", "float64"))
    param_names = ("form", "dtype")

    def setup(self, form, dtype):
        self.x = np.random.default_rng(0).uniform(0.5, 1.5, (1000, 1000)).astype(dtype)
        self.function = nb.jit(nb.value_and_grad(FORMS[form]))
        self.function(self.x)

    def time_value_and_grad(self, form, dtype):
        self.function(self.x)


class Pairs(measured.Measured):
    """All pairs of bodies, without a matrix of pairs in memory."""

    params = ("bodies",)
