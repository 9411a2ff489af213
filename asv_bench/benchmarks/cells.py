"""Networks through MindSpore's interface, for nbgrad and for MindSpore itself, and PyTorch's way to do the same.

In: the name of a task and of a library. Out: a call without arguments, and what turns its result into ndarrays, as from
libraries.py. Called by the asv classes and by peers.py. Libraries run as their users run them: nbgrad under `nb.jit`,
PyTorch eager, MindSpore in its default mode ("mindspore") and compiled ("mindspore-jit").
"""

import numpy as np

from .tasks import TASKS

TEXTS = {
    "mlp": TASKS["mlp"].text,
    "gradnet": "a Cell whose construct is the gradient of a Cell, one element",
    "cell": "not compiled: gradient of a Cell of 20 operations, 8 float32",
}


def modules(name):
    """A library of MindSpore's interface, its layers, and its compiler."""
    if name == "nbgrad":
        import nbgrad as nb

        return nb, nb.nn, nb.jit
    import mindspore as ms

    return ms, ms.nn, ms.jit if name == "mindspore-jit" else lambda function: function


def dense(library, nn, parameters):
    """Dense layers with ReLU in between, from weights (inputs, outputs) and biases in turn."""
    layers = []
    for w, b in zip(parameters[::2], parameters[1::2], strict=True):
        tensors = {"weight_init": library.Tensor(np.ascontiguousarray(w.T)), "bias_init": library.Tensor(b)}
        layers += [nn.Dense(*w.shape, **tensors), nn.ReLU()]
    return nn.SequentialCell(layers[:-1])


def mlp(name):
    """Value and gradients of all weights."""
    library, nn, compile_ = modules(name)
    *parameters, x, labels = TASKS["mlp"].arrays()
    net, loss = dense(library, nn, parameters), nn.CrossEntropyLoss()

    def forward(x, y):  # MindSpore's compiler reads no lambda
        return loss(net(x), y)

    gradient = compile_(library.value_and_grad(forward, None, net.trainable_params()))
    x, y = library.Tensor(x), library.Tensor(labels.astype(np.int32))

    def call():
        value, gradients = gradient(x, y)
        return [value.asnumpy(), *[g.asnumpy() for g in gradients]]

    return call, lambda result: [a.T for a in result]


def gradnet(name):
    """The gradient by an inner Cell; the outer Cell is what is compiled."""
    library, nn, compile_ = modules(name)
    if name == "mindspore-jit":
        library.set_context(mode=library.GRAPH_MODE)

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = library.Parameter(library.Tensor(np.array([6.0], np.float32)), name="w")
            self.b = library.Parameter(library.Tensor(np.array([1.0], np.float32)), name="b")

        def construct(self, x):
            return self.w * x + self.b

    class GradNet(nn.Cell):
        def __init__(self, net):
            super().__init__()
            self.net = net
            self.gradient = library.ops.GradOperation()

        def construct(self, x):
            return self.gradient(self.net)(x)

    net = GradNet(Net())
    call = compile_(net) if name == "nbgrad" else net
    x = library.Tensor(np.array([100.0], np.float32))
    return lambda: call(x).asnumpy(), lambda result: [result]


def cell(name):
    """A gradient that is recorded at each call."""
    library, nn, _ = modules(name)
    ops = library.ops

    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = library.Parameter(library.Tensor(np.linspace(0.5, 1.5, 8).astype(np.float32)), name="w")

        def construct(self, x):
            for _ in range(5):
                x = ops.tanh(ops.sin(x) * self.w + 0.5)
            return x

    gradient = library.grad(Net())
    x = library.Tensor(np.linspace(0.0, 1.0, 8).astype(np.float32))
    return lambda: gradient(x).asnumpy(), lambda result: [result]


def cell_torch(_):
    """The same with PyTorch's tape."""
    import torch

    w = torch.linspace(0.5, 1.5, 8, requires_grad=True)
    start = torch.linspace(0.0, 1.0, 8)

    def call():
        x = first = start.detach().requires_grad_()
        for _ in range(5):
            x = torch.tanh(torch.sin(x) * w + 0.5)
        return torch.autograd.grad(x.sum(), first)[0].numpy()

    return call, lambda result: [result]


CELLS = {
    **{("mlp", name): mlp for name in ("nbgrad", "mindspore", "mindspore-jit")},
    **{("gradnet", name): gradnet for name in ("nbgrad", "mindspore", "mindspore-jit")},
    **{("cell", name): cell for name in ("nbgrad", "mindspore")},
    ("cell", "torch"): cell_torch,
}
"""Who runs what, and how; other pairs of task and library go through libraries.py."""


def prepare(task, name):
    """A call without arguments, and what turns its result into ndarrays."""
    return CELLS[task, name](name)
