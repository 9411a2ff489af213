"""The cost of one call of a compiled gradient: guard, outputs, kernels. Small arrays, so overhead dominates."""

import numpy as np

import nbgrad as nb

from . import tasks


class SmallCalls:
    """Value and gradient of Rosenbrock's function, compiled, ndarrays in and out."""

    params = (3, 10, 100, 1000)
    param_names = ("n",)

    def setup(self, n):
        self.x = np.linspace(0.0, 1.0, n)
        self.function = nb.jit(nb.value_and_grad(tasks.rosenbrock(np)))
        self.function(self.x)

    def time_call(self, n):
        self.function(self.x)


class RecordedCalls:
    """The same without jit: recorded, differentiated and looked up at every call."""

    def setup(self):
        self.x = np.linspace(0.0, 1.0, 10)
        self.function = nb.value_and_grad(tasks.rosenbrock(np))
        self.function(self.x)

    def time_call(self):
        self.function(self.x)
