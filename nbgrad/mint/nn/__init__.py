"""MindSpore's `mint.nn`: layers with PyTorch's names, parameters and defaults.

In: options; then Tensors. Out: Cells. Used by users. `TABLE` lists every name by the module that holds it.
"""

from __future__ import annotations

from ..named_modules import door

TABLE = {
    "nbgrad.nn": (
        "AdaptiveAvgPool3d BCELoss Cell ConstantPad1d ConstantPad2d ConstantPad3d CosineEmbeddingLoss Identity L1Loss "
        "LogSigmoid MSELoss MaxUnpool2d Mish PixelShuffle ReflectionPad1d ReflectionPad2d ReflectionPad3d "
        "ReplicationPad1d ReplicationPad2d ReplicationPad3d SELU Sigmoid Tanh ZeroPad1d ZeroPad2d ZeroPad3d"
    ),
    "nbgrad.mint.nn.layers": (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveMaxPool1d AdaptiveMaxPool2d AvgPool1d AvgPool2d AvgPool3d "
        "BCEWithLogitsLoss CrossEntropyLoss Dropout Dropout2d ELU Flatten Fold GELU GLU Hardshrink Hardsigmoid "
        "Hardswish Hardtanh KLDivLoss LeakyReLU LogSoftmax MaxPool2d NLLLoss ReLU ReLU6 SiLU SmoothL1Loss "
        "SoftMarginLoss Softmax Softplus Softshrink Threshold Unfold Upsample UpsamplingBilinear2d "
        "UpsamplingNearest2d"
    ),
    "nbgrad.mint.nn.trained_layers": (
        "BatchNorm1d BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose2d Embedding GroupNorm LayerNorm Linear "
        "PReLU SyncBatchNorm"
    ),
}
"""Module -> names."""

MODULES = "functional"

__getattr__, __dir__ = door(__name__, TABLE, globals(), MODULES)
