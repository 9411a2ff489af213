"""The cost of one call of a compiled gradient: guard, outputs, kernels. Small arrays, so overhead dominates."""

import numpy as np

import nbgrad as nb

from . import tasks
from .measured import Beside
from .tasks import Task


def rosenbrock(x):
    return tasks.rosenbrock(np, x)


class Compiled(Beside):
    """Value and gradient of Rosenbrock's function, compiled, ndarrays in and out."""

    params = (3, 10, 100, 1000)
    param_names = ("n",)

    def task(self, n):
        return Task("", tasks.rosenbrock, lambda rng: (np.linspace(0.0, 1.0, n),))

    def time_call(self, n, library):
        self.call()


class ManyArguments(Beside):
    """The same cost by the number of arrays that go in and come out."""

    params = (1, 4, 16)
    param_names = ("arrays",)

    def task(self, arrays):
        def squares(xp, *a):
            return sum(xp.sum(x * x) for x in a)

        def inputs(rng):
            return tuple([np.full(8, float(k + 1)) for k in range(arrays)])

        return Task("", squares, inputs, tuple(range(arrays)), "grad")

    def time_call(self, arrays, library):
        self.call()


class KindsOfArguments:
    """The same cost by what is passed beside the array: numbers of all kinds, and containers."""

    params = ("float", "complex", "float64", "float32", "int64", "bool_", "int", "bool", "tuple", "list", "dict")
    param_names = ("kind",)

    def setup(self, kind):
        self.x = np.ones(8)
        of_parts = {"tuple": (self.x, self.x), "list": [self.x, self.x], "dict": {"a": self.x, "b": self.x}}
        number = getattr(np, kind, None) or {"float": float, "complex": complex, "int": int, "bool": bool}.get(kind)
        self.other = of_parts[kind] if kind in of_parts else number(1)
        product = {dict: lambda x, p: x * p["a"], tuple: lambda x, p: x * p[0], list: lambda x, p: x * p[0]}
        self.function = nb.jit(product.get(type(self.other), lambda x, c: x * c))
        for _ in range(3):
            self.function(self.x, self.other)

    def time_call(self, kind):
        self.function(self.x, self.other)


class Recorded(Beside):
    """The same without jit: recorded, differentiated and looked up at every call, as PyTorch and autograd do it."""

    libraries = ("nbgrad", "torch", "autograd")

    def task(self):
        return Task("", tasks.rosenbrock, lambda rng: (np.linspace(0.0, 1.0, 10),))

    def setup(self, library):
        super().setup(library)
        if library == "nbgrad":
            (x,), function = self.task().arrays(), nb.value_and_grad(rosenbrock)
            self.call = lambda: function(x)
            self.call()

    def time_call(self, library):
        self.call()
