"""Networks through the Cell interface: what a training step costs, and what recording one without jit costs."""

import numpy as np

import nbgrad as nb
from nbgrad import nn

from . import cells
from .measured import needed, prepared
from .tasks import TASKS, perceptron_inputs


class Tasks:
    """What peers.py compares with MindSpore and PyTorch."""

    params = (tuple(cells.TEXTS), ("nbgrad", "torch", "mindspore", "mindspore-jit"))
    param_names = ("task", "library")
    timeout = 300

    def setup(self, task, library):
        needed(library)
        if (task, library) in cells.CELLS:
            self.call, _ = cells.prepare(task, library)
            self.call()
        elif library == "torch" and task in TASKS:
            self.call = prepared(task, library)
        else:
            message = f"{library} has no {task}"
            raise NotImplementedError(message)

    def time_call(self, task, library):
        self.call()


class TrainingStep:
    """Forward, backward and Adam's update in one program; 784-256-128-10, float32."""

    params = (1, 128)
    param_names = ("batch",)

    def setup(self, batch):
        *parameters, x, labels = perceptron_inputs(np.random.default_rng(0), batch)
        net = cells.dense(nb, nn, parameters)
        optimizer = nn.Adam(net.trainable_params())
        self.step = nn.TrainOneStepCell(nn.WithLossCell(net, nn.CrossEntropyLoss()), optimizer)
        self.x, self.y = nb.Tensor(x), nb.Tensor(labels)
        self.step(self.x, self.y)

    def time_step(self, batch):
        self.step(self.x, self.y)

    def peakmem_step(self, batch):
        self.step(self.x, self.y)


class Convolutional:
    """Value and gradients of a small convolutional network with batch normalisation, batch 32, 1x28x28, float32."""

    def setup(self):
        layers = [nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2, 2)]
        layers += [nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(), nn.Dense(1568, 10)]
        net, loss = nn.SequentialCell(layers).set_train(), nn.CrossEntropyLoss()
        *_, x, labels = TASKS["convolution"].arrays()
        self.x, self.y = nb.Tensor(x), nb.Tensor(labels)
        self.gradient = nb.jit(nb.value_and_grad(lambda x, y: loss(net(x), y), None, net.trainable_params()))
        self.gradient(self.x, self.y)

    def time_value_and_grad(self):
        self.gradient(self.x, self.y)
