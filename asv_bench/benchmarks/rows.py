"""Row-wise patterns, which are one pass over rows held in cache: softmax, normalisation."""

import numpy as np

import nbgrad as nb

from . import measured, tasks
from .libraries import NbGrad


class Tasks(measured.Measured):
    """Layer normalisation and GELU."""

    params = ("rows",)


class CrossEntropy:
    """The mean negative log-likelihood of labels, and its gradient."""

    params = ((10, 1000), ("float32", "float64"))
    param_names = ("classes", "dtype")

    def setup(self, classes, dtype):
        rng, xp = np.random.default_rng(0), NbGrad()
        self.inputs = rng.standard_normal((512, classes)).astype(dtype), rng.integers(0, classes, 512)
        self.function = nb.jit(nb.value_and_grad(lambda x, y: tasks.cross_entropy(xp, x, y)))
        self.function(*self.inputs)

    def time_value_and_grad(self, classes, dtype):
        self.function(*self.inputs)


class Softmax:
    """Values only."""

    params = (10, 1000, 100_000)
    param_names = ("classes",)

    def setup(self, classes):
        self.x = np.random.default_rng(0).standard_normal((1_000_000 // classes, classes)).astype(np.float32)
        self.function = nb.jit(lambda x: nb.ops.softmax(x, axis=-1))
        self.function(self.x)

    def time_values(self, classes):
        self.function(self.x)
