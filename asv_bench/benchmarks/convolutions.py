"""Layers of 3x3 convolutions, and a step of a residual network of seven: values and gradients.

In: the shape of the images. Out: `Task`s for any library of libraries.py, and the asv class that measures some. The
gradients are by images and weights of a layer, and by all weights of the network. Called by asv, and by
convolutions_beside.py, which runs other libraries too.
"""

import numpy as np

from .measured import Beside
from .tasks import Task


def layer(count, channels, size, dtype="float32"):
    """One convolution from and to so many channels."""

    def inputs(rng):
        x, y = rng.standard_normal((2, count, channels, size, size))
        kernel = rng.standard_normal((channels, channels, 3, 3)) / (9 * channels) ** 0.5
        return tuple(array.astype(dtype) for array in (x, kernel, y))

    text = f"3x3 convolution of {count} x {channels} x {size} x {size}, {dtype}"
    return Task(text, lambda xp, x, kernel, y: xp.sum(xp.convolve(x, kernel) * y), inputs, (0, 1), tolerance=1e-4)


def residual(count, channels, size, dtype="float32"):
    """Three blocks of two convolutions after a first one."""

    def inputs(rng):
        x, y = (rng.standard_normal((count, c, size, size)) for c in (3, channels))
        widths = [3, *[channels] * 7]
        kernels = [rng.standard_normal((channels, c, 3, 3)) / (9 * c) ** 0.5 for c in widths[:-1]]
        return tuple(array.astype(dtype) for array in (*kernels, *np.zeros((7, channels, 1, 1)), x, y))

    def loss(xp, *arrays):
        kernels, biases, (x, y) = arrays[:7], arrays[7:14], arrays[14:]
        h = xp.relu(xp.convolve(x, kernels[0]) + biases[0])
        for k in (1, 3, 5):
            inside = xp.relu(xp.convolve(h, kernels[k]) + biases[k])
            h = xp.relu(h + xp.convolve(inside, kernels[k + 1]) + biases[k + 1])
        return xp.mean((h - y) ** 2)

    text = f"step of seven convolutions, {count} x {channels} x {size} x {size}, {dtype}"
    return Task(text, loss, inputs, tuple(range(14)), tolerance=1e-4)


LAYERS = {
    "layer 16x16x32x32": layer(16, 16, 32),
    "layer 8x64x16x16": layer(8, 64, 16),
    "layer 8x64x16x16 float64": layer(8, 64, 16, "float64"),
    "residual 16x32x32x32": residual(16, 32, 32),
    "residual 8x64x16x16": residual(8, 64, 16),
}


class Layers(Beside):
    """All of them."""

    params = tuple(LAYERS)
    param_names = ("layer",)
    libraries = ("nbgrad", "jax", "torch")

    def task(self, name):
        return LAYERS[name]

    def time_value_and_grad(self, name, library):
        self.call()

    def peakmem_value_and_grad(self, name, library):
        self.call()
