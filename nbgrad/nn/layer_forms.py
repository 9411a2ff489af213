"""The class forms that MindSpore's layers hold as attributes, for subclasses that write their own `construct`.

In: a layer and a name, such as `conv2d` of nn.Conv2d. Out: the class form of `nbgrad.ops` with the layer's options.
Base of the layers of Dense, convolutions and normalisation. nbgrad's own layers do not use these forms; a layer with
standardised weights, say, computes other weights and then calls `self.conv2d(x, weight)`.
"""

from __future__ import annotations

from typing import Any

from .. import ops
from .cell import Cell


def _convolution(layer: Any) -> Any:
    options = {"pad_mode": layer.pad_mode, "stride": layer.stride, "dilation": layer.dilation, "group": layer.group}
    return ops.Conv2D(layer.out_channels, layer.kernel_size, pad=layer.padding, **options)


def _transposed_convolution(layer: Any) -> Any:
    options = {"pad_mode": layer.pad_mode, "stride": layer.stride, "dilation": layer.dilation, "group": layer.group}
    return ops.Conv2DTranspose(layer.in_channels, layer.kernel_size, pad=layer.padding, **options)


def _batch(layer: Any, training: bool) -> Any:
    return ops.BatchNorm(training, layer.eps, 1.0 - layer.momentum)


FORMS = {
    "Dense": {"matmul": lambda layer: ops.MatMul(transpose_b=True), "bias_add": lambda layer: ops.BiasAdd()},
    "Conv1d": {
        "conv2d": _convolution,
        "bias_add": lambda layer: ops.BiasAdd(),
        "expand_dims": lambda layer: ops.ExpandDims(),
        "squeeze": lambda layer: ops.Squeeze(2),
        "shape": lambda layer: ops.Shape(),
    },
    "Conv2d": {"conv2d": _convolution, "bias_add": lambda layer: ops.BiasAdd()},
    "Conv2dTranspose": {"conv2d_transpose": _transposed_convolution, "bias_add": lambda layer: ops.BiasAdd()},
    "_BatchNorm": {"bn_train": lambda layer: _batch(layer, True), "bn_infer": lambda layer: _batch(layer, False)},
    "LayerNorm": {
        "layer_norm": lambda layer: ops.LayerNorm(layer.begin_norm_axis, layer.begin_params_axis, layer.epsilon)
    },
}
"""Layer -> attribute -> what makes the form."""


class WithForms(Cell):
    """A Cell that has the class forms of its layer as attributes.

    Examples
    --------
    >>> import nbgrad as nb
    >>> class Standardised(nb.nn.Conv2d):
    ...     def construct(self, x):
    ...         weight = self.weight
    ...         return self.conv2d(x, (weight - weight.mean()) / weight.std())
    >>> Standardised(1, 2, 3)(nb.ops.ones((1, 1, 4, 4))).shape
    (1, 2, 4, 4)
    """

    def __getattr__(self, name: str) -> Any:
        for kind in type(self).__mro__:
            made = FORMS.get(kind.__name__, {}).get(name)
            if made is not None:
                return made(self)
        return super().__getattr__(name)
