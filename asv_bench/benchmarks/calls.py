"""The cost of one call of a compiled gradient: guard, outputs, kernels. Small arrays, so overhead dominates."""

import numpy as np

import nbgrad as nb

from . import tasks


def rosenbrock(x):
    return tasks.rosenbrock(np, x)


class Compiled:
    """Value and gradient of Rosenbrock's function, compiled, ndarrays in and out."""

    params = (3, 10, 100, 1000)
    param_names = ("n",)

    def setup(self, n):
        self.x = np.linspace(0.0, 1.0, n)
        self.function = nb.jit(nb.value_and_grad(rosenbrock))
        self.function(self.x)

    def time_call(self, n):
        self.function(self.x)


class ManyArguments:
    """The same cost by the number of arrays that go in and come out."""

    params = (1, 4, 16)
    param_names = ("arrays",)

    def setup(self, arrays):
        self.inputs = [np.full(8, float(k + 1)) for k in range(arrays)]
        self.function = nb.jit(nb.grad(lambda *a: sum(np.sum(x * x) for x in a), tuple(range(arrays))))
        self.function(*self.inputs)

    def time_call(self, arrays):
        self.function(*self.inputs)


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


class Recorded:
    """The same without jit: recorded, differentiated and looked up at every call."""

    def setup(self):
        self.x = np.linspace(0.0, 1.0, 10)
        self.function = nb.value_and_grad(rosenbrock)
        self.function(self.x)

    def time_call(self):
        self.function(self.x)
