"""The libraries that are measured, each as a namespace of NumPy's names and as a way to differentiate.

In: the name of a library. Out: a `Library`, whose `prepare` makes of a task a call without arguments, and of the call's
result a list of ndarrays. Called by the asv classes and by peers.py. A library is imported when its class is made, so
that an asv process loads the one that it measures. Libraries run as their users run them: nbgrad and JAX compiled, JAX
with `lax.scan` where the task loops, PyTorch eager, and every library on arrays of its own.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.fft  # NumPy imports it late

from .tasks import TASKS, Task

Prepared = tuple[Callable[[], Any], Callable[[Any], list]]


class Library:
    """NumPy's names from a module, the names that the tasks need beside them, and the transforms."""

    def __init__(self, module):
        # Copies instead of `__getattr__`: a look-up costs what it costs the library's users.
        vars(self).update({k: v for k, v in vars(module).items() if not hasattr(type(self), k) and k[0] != "_"})

    # Names of the tasks.

    def relu(self, x):
        return self.maximum(x, 0)

    def softplus(self, x):
        return self.logaddexp(x, 0.0)

    def sigmoid(self, x):
        return 1.0 / (1.0 + self.exp(-x))

    def logsumexp(self, x, axis):
        top = self.max(x, axis=axis, keepdims=True)
        return self.log(self.sum(self.exp(x - top), axis=axis)) + self.squeeze(top, axis=axis)

    def softmax(self, x):
        """Of rows."""
        powers = self.exp(x - self.max(x, axis=-1, keepdims=True))
        return powers / self.sum(powers, axis=-1, keepdims=True)

    def pick(self, rows, columns):
        """One element of each row."""
        return rows[np.arange(rows.shape[0]), columns]

    def fold(self, step, state, rows):
        """The state after `state = step(state, row)` for each row."""
        for row in rows:
            state = step(state, row)
        return state

    # Arrays and transforms.

    def array(self, x):
        return x

    def wait(self, result):
        return result

    def ndarray(self, x):
        return np.asarray(x)

    def derivative(self, task: Task, function: Callable) -> Callable[..., tuple]:
        """What the task asks for, as a function of the inputs."""
        raise NotImplementedError

    def values(self, function: Callable) -> Callable[..., Any]:
        """The function itself, as users of this library call it."""
        return function

    def function(self, task: Task) -> Callable[..., Any]:
        """The derivative in this library, or the values where the task asks for them."""
        if task.what == "value":
            return self.values(lambda *a: task.function(self, *a))
        return self.derivative(task, lambda *a: task.function(self, *a))

    def prepare(self, task: str | Task) -> Prepared:
        """A call without arguments, and what turns its result into ndarrays."""
        task = TASKS[task] if isinstance(task, str) else task
        inputs = [self.array(x) for x in task.arrays()]
        function = self.function(task)
        return lambda: self.wait(function(*inputs)), lambda result: [self.ndarray(x) for x in flat(result)]


def flat(result) -> list:
    """The arrays of nested tuples, in order."""
    return [x for part in result for x in flat(part)] if isinstance(result, tuple | list) else [result]


class NumPy(Library):
    """NumPy and SciPy alone: values only."""

    def __init__(self):
        import scipy

        super().__init__(np)
        self.erf, self.expm = scipy.special.erf, scipy.linalg.expm


class NbGrad(Library):
    """nbgrad: plain NumPy under `nb.jit`."""

    def __init__(self):
        import nbgrad as nb

        super().__init__(np)
        self.nb, self.erf, self.expm = nb, nb.ops.erf, nb.ops.expm

    def softmax(self, x):
        return self.nb.ops.softmax(x, axis=-1)

    def values(self, function):
        return self.nb.jit(function)

    def convolve(self, x, kernel):
        return self.nb.ops.conv2d(x, kernel, pad_mode="same")

    def pool(self, x):
        return self.nb.ops.max_pool2d(x, 2, 2)

    def derivative(self, task, function):
        nb = self.nb
        if task.what == "hvp":
            return nb.jit(lambda w, *a: nb.hvp(lambda w: function(w, *a[:-1]), w, a[-1]))
        if task.what == "jacobian":
            return nb.jit(nb.jacrev(function))
        return nb.jit((nb.grad if task.what == "grad" else nb.value_and_grad)(function, task.wrt))


class Jax(Library):
    """JAX under `jax.jit`, with 64-bit numbers."""

    def __init__(self):
        import jax

        jax.config.update("jax_enable_x64", True)
        super().__init__(jax.numpy)
        self.jax, self.erf, self.wait = jax, jax.scipy.special.erf, jax.block_until_ready
        self.expm, self.softmax, self.values = jax.scipy.linalg.expm, jax.nn.softmax, jax.jit
        self.array, self.softplus, self.sigmoid, self.relu = (
            jax.numpy.asarray,
            jax.nn.softplus,
            jax.nn.sigmoid,
            jax.nn.relu,
        )

    def logsumexp(self, x, axis):
        return self.jax.scipy.special.logsumexp(x, axis=axis)

    def fold(self, step, state, rows):
        rows = self.arange(len(rows)) if isinstance(rows, range) else rows
        return self.jax.lax.scan(lambda state, row: (step(state, row), None), state, rows)[0]

    def convolve(self, x, kernel):
        layout = ("NCHW", "OIHW", "NCHW")
        return self.jax.lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=layout)

    def pool(self, x):
        window = (1, 1, 2, 2)
        return self.jax.lax.reduce_window(x, -np.inf, self.jax.lax.max, window, window, "VALID")

    def derivative(self, task, function):
        jax = self.jax
        if task.what == "hvp":
            gradient = jax.grad(function)
            return jax.jit(lambda w, *a: jax.jvp(lambda w: gradient(w, *a[:-1]), (w,), (a[-1],))[1])
        if task.what == "jacobian":
            return jax.jit(jax.jacrev(function))
        return jax.jit((jax.grad if task.what == "grad" else jax.value_and_grad)(function, task.wrt))


class Torch(Library):
    """PyTorch, eager."""

    def __init__(self):
        import torch

        super().__init__(torch)
        self.torch, self.array, functional = torch, torch.from_numpy, torch.nn.functional
        self.softplus, self.sigmoid, self.relu, self.erf = functional.softplus, torch.sigmoid, torch.relu, torch.erf
        self.logsumexp, self.expm = torch.logsumexp, torch.linalg.matrix_exp
        self.softmax = lambda x: torch.softmax(x, -1)
        self.sort = lambda x: torch.sort(x).values
        self.max = lambda x, axis, keepdims=False: torch.amax(x, axis, keepdim=keepdims)
        self.var = lambda x, axis: torch.var(x, axis, correction=0)
        self.take_along_axis = lambda x, k, axis: torch.take_along_dim(x, k, axis)
        self.convolve = lambda x, kernel: functional.conv2d(x, kernel, padding=1)
        self.pool = lambda x: functional.max_pool2d(x, 2)

    def ndarray(self, x):
        return x.detach().numpy()

    def derivative(self, task, function):
        torch = self.torch
        if task.what == "jacobian":
            return torch.func.jacrev(function)

        def hvp(w, *a):
            w = w.detach().requires_grad_()
            (gradient,) = torch.autograd.grad(function(w, *a[:-1]), w, create_graph=True)
            return torch.autograd.grad(gradient, w, a[-1])

        def value_and_gradients(*a):
            a = [x.detach().requires_grad_() if k in task.wrt else x for k, x in enumerate(a)]
            value = function(*a)
            gradients = torch.autograd.grad(value, [a[k] for k in task.wrt])
            return gradients if task.what == "grad" else (value, *gradients)

        return hvp if task.what == "hvp" else value_and_gradients


class Autograd(Library):
    """HIPS autograd: a tape over NumPy."""

    def __init__(self):
        import autograd
        import autograd.numpy
        import autograd.scipy.special

        super().__init__(autograd.numpy)
        self.autograd, self.erf = autograd, autograd.scipy.special.erf

    def relu(self, x):
        return x * (x > 0)  # its maximum turns float32 into float64

    def logsumexp(self, x, axis):
        return self.autograd.scipy.special.logsumexp(x, axis=axis)

    def derivative(self, task, function):
        autograd = self.autograd
        if task.what == "hvp":
            gradient = autograd.grad(function)
            return autograd.grad(lambda w, *a: self.dot(gradient(w, *a[:-1]), a[-1]))
        if task.what == "jacobian":
            return autograd.jacobian(function)
        return (autograd.grad if task.what == "grad" else autograd.value_and_grad)(function, task.wrt)


LIBRARIES = {"nbgrad": NbGrad, "numpy": NumPy, "jax": Jax, "torch": Torch, "autograd": Autograd}
