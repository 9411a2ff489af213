"""Gathers are reads, and scatter-adds are writes, of the loops that use them; sorting."""

import numpy as np

import nbgrad as nb

from . import measured

FORMS = {
    "rows": lambda table, k: np.sum(table[k] ** 2),
    "columns": lambda table, k: np.sum(table[:, k % 64] ** 2),
    "elements": lambda table, k: np.sum(table[k, k % 64] ** 2),
    "take_along_axis": lambda table, k: np.sum(np.take_along_axis(table, k[:, None] % 64, axis=1) ** 2),
}


class Tasks(measured.Measured):
    """Bundle adjustment: cameras and points are gathered, their gradients scattered."""

    params = ("bundle",)


class Gathers:
    """From a table of 1000 rows of 64: values, and the gradient of the table."""

    params = tuple(FORMS)
    param_names = ("what",)

    def setup(self, what):
        rng = np.random.default_rng(0)
        self.inputs = rng.standard_normal((1000, 64)), rng.integers(0, 1000, 1000)
        self.function = nb.jit(nb.value_and_grad(FORMS[what]))
        self.function(*self.inputs)

    def time_value_and_grad(self, what):
        self.function(*self.inputs)


class Sorting:
    """The sum of the hundred largest of many numbers, and its gradient."""

    def setup(self):
        self.x = np.random.default_rng(0).random(100_000)
        self.function = nb.jit(nb.value_and_grad(lambda x: np.sum(np.sort(x)[-100:] ** 2)))
        self.function(self.x)

    def time_value_and_grad(self):
        self.function(self.x)
