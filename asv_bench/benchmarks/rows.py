"""Row-wise patterns, which are one pass over rows held in cache: softmax, normalisation."""

import numpy as np

from . import measured, tasks
from .tasks import Task


class Tasks(measured.Measured):
    """Layer normalisation and GELU."""

    params = ("rows",)


class CrossEntropy(measured.Beside):
    """The mean negative log-likelihood of labels, and its gradient."""

    params = ((10, 1000), ("float32", "float64"))
    param_names = ("classes", "dtype")

    def task(self, classes, dtype):
        def inputs(rng):
            return rng.standard_normal((512, classes)).astype(dtype), rng.integers(0, classes, 512)

        return Task("", tasks.cross_entropy, inputs)

    def time_value_and_grad(self, classes, dtype, library):
        self.call()


class Softmax(measured.Beside):
    """Values only."""

    params = (10, 1000, 100_000)
    param_names = ("classes",)
    libraries = ("nbgrad", "numpy", "jax", "torch")

    def task(self, classes):
        def inputs(rng):
            return (rng.standard_normal((1_000_000 // classes, classes)).astype(np.float32),)

        return Task("", lambda xp, x: xp.softmax(x), inputs, what="value")

    def time_values(self, classes, library):
        self.call()
