"""One function in NumPy's words and in those of `nb.ops`: NumPy's dispatch must cost nothing."""

import numpy as np

import nbgrad as nb


def in_numpy(w, x, y):
    """A small network and its loss, with NumPy's functions and operators."""
    h = np.tanh(np.matmul(x, w[:5]) + w[5])
    p = np.log(np.exp(h) + np.sqrt(np.abs(h) + 1.0))
    q = np.concatenate([p, np.sin(h) * np.cos(p)], axis=1)
    return np.mean(np.square(np.sum(q, axis=1) - y)) + np.sum(np.maximum(w, 0.0))


def in_ops(w, x, y):
    """The same with functions of `nb.ops`."""
    o = nb.ops
    h = o.tanh(o.matmul(x, w[:5]) + w[5])
    p = o.log(o.exp(h) + o.sqrt(o.abs(h) + 1.0))
    q = o.cat((p, o.sin(h) * o.cos(p)), axis=1)
    return o.mean(o.square(o.sum(q, 1) - y)) + o.sum(o.maximum(w, 0.0))


SPELLINGS = {"numpy": in_numpy, "ops": in_ops}


class Gradients:
    """A gradient of small arrays: recorded at each call, or compiled."""

    params = (("numpy", "ops"), ("recorded", "compiled"))
    param_names = ("words", "call")

    def setup(self, words, call):
        self.function = nb.grad(SPELLINGS[words])
        if call == "compiled":
            self.function = nb.jit(self.function)
        rng = np.random.default_rng(0)
        self.arguments = rng.normal(size=(6, 4)), rng.normal(size=(8, 5)), rng.normal(size=8)
        self.function(*self.arguments)
        self.function(*self.arguments)

    def time_call(self, words, call):
        self.function(*self.arguments)
