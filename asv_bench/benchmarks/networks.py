"""Networks through the Cell interface: what a training step costs, and what recording one without jit costs."""

import itertools

import numpy as np

import nbgrad as nb
from nbgrad import nn


def mlp(sizes, rng):
    """Dense layers with ReLU in between."""
    layers = []
    for k, (n, m) in enumerate(itertools.pairwise(sizes)):
        weight = nb.Tensor((rng.standard_normal((m, n)) / np.sqrt(n)).astype(np.float32))
        layers += [nn.Dense(n, m, weight_init=weight), nn.ReLU()] if k < len(sizes) - 2 else [nn.Dense(n, m)]
    return nn.SequentialCell(layers)


class Perceptron:
    """Value and gradients of all weights, and a whole training step with Adam; 784-256-128-10, float32."""

    params = (1, 128)
    param_names = ("batch",)

    def setup(self, batch):
        rng = np.random.default_rng(0)
        net, loss = mlp((784, 256, 128, 10), rng), nn.CrossEntropyLoss()
        self.x = nb.Tensor(rng.standard_normal((batch, 784)).astype(np.float32))
        self.y = nb.Tensor(rng.integers(0, 10, batch))
        self.gradient = nb.jit(nb.value_and_grad(lambda x, y: loss(net(x), y), None, net.trainable_params()))
        self.step = nn.TrainOneStepCell(nn.WithLossCell(net, loss), nn.Adam(net.trainable_params()))
        self.gradient(self.x, self.y)
        self.step(self.x, self.y)

    def time_value_and_grad(self, batch):
        self.gradient(self.x, self.y)

    def peakmem_value_and_grad(self, batch):
        self.gradient(self.x, self.y)

    def time_training_step(self, batch):
        self.step(self.x, self.y)


class Convolutional:
    """Value and gradients of a small convolutional network, batch 64, 1x28x28, float32."""

    def setup(self):
        rng = np.random.default_rng(0)
        net = nn.SequentialCell(
            nn.Conv2d(1, 16, 3),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2, 2),
            nn.Conv2d(16, 32, 3),
            nn.ReLU(),
            nn.MaxPool2d(2, 2),
            nn.Flatten(),
            nn.Dense(32 * 7 * 7, 10),
        ).set_train()
        loss = nn.CrossEntropyLoss()
        self.x = nb.Tensor(rng.standard_normal((64, 1, 28, 28)).astype(np.float32))
        self.y = nb.Tensor(rng.integers(0, 10, 64))
        self.gradient = nb.jit(nb.value_and_grad(lambda x, y: loss(net(x), y), None, net.trainable_params()))
        self.gradient(self.x, self.y)

    def time_value_and_grad(self):
        self.gradient(self.x, self.y)


class RecordedCell:
    """The gradient of a Cell of 20 small operations, recorded at every call."""

    def setup(self):
        class Net(nn.Cell):
            def __init__(self):
                super().__init__()
                self.w = nb.Parameter(np.linspace(0.5, 1.5, 8).astype(np.float32), name="w")

            def construct(self, x):
                for _ in range(5):
                    x = nb.ops.tanh(nb.ops.sin(x) * self.w + 0.5)
                return x

        self.gradient = nb.grad(Net())
        self.x = nb.Tensor(np.linspace(0.0, 1.0, 8).astype(np.float32))
        self.gradient(self.x)

    def time_gradient(self):
        self.gradient(self.x)
