"""Reductions along either axis, scans, and pairs that are reduced at once: values and gradients."""

from . import measured
from .tasks import Task

FORMS = {
    "sum": lambda xp, x: xp.sum(x * x),
    "sum of rows": lambda xp, x: xp.sum(xp.sum(x * x, axis=1) ** 2),
    "sum of columns": lambda xp, x: xp.sum(xp.sum(x * x, axis=0) ** 2),
    "variance of rows": lambda xp, x: xp.sum(xp.var(x, axis=1) ** 2),
    "maximum of rows": lambda xp, x: xp.sum(xp.max(x, axis=1) ** 2),
    "norm": lambda xp, x: xp.linalg.norm(x),
    "cumulative sum": lambda xp, x: xp.sum(xp.cumsum(x, axis=1) ** 2),
    "product of columns": lambda xp, x: xp.sum(xp.prod(x[:8], axis=0)),
}


class Gradients(measured.Beside):
    """Of a matrix 1000x1000."""

    params = (tuple(FORMS), ("float32", "float64"))
    param_names = ("form", "dtype")

    def task(self, form, dtype):
        return Task("", FORMS[form], lambda rng: (rng.uniform(0.5, 1.5, (1000, 1000)).astype(dtype),))

    def time_value_and_grad(self, form, dtype, library):
        self.call()


class Pairs(measured.Measured):
    """All pairs of bodies, without a matrix of pairs in memory."""

    params = ("bodies",)
