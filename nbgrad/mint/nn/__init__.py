"""MindSpore's `mint.nn`: layers with PyTorch's names, parameters and defaults.

In: options; then Tensors. Out: Cells. Used by users. `TABLE` lists every name by the module that holds it.
"""

from __future__ import annotations

from ..named_modules import door

TABLE = {
    "nbgrad.nn": "Cell Tanh Sigmoid LogSigmoid SELU Mish Identity MSELoss L1Loss BCELoss CosineEmbeddingLoss",
    "nbgrad.mint.nn.layers": (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d AvgPool1d AvgPool2d "
        "AvgPool3d BCEWithLogitsLoss ConstantPad1d ConstantPad2d ConstantPad3d CrossEntropyLoss Dropout Dropout2d ELU "
        "Flatten Fold GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh KLDivLoss LeakyReLU LogSoftmax MaxPool2d "
        "MaxUnpool2d NLLLoss PixelShuffle ReLU ReLU6 ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d "
        "ReplicationPad2d ReplicationPad3d SiLU SmoothL1Loss SoftMarginLoss Softmax Softplus Softshrink Threshold "
        "Unfold Upsample UpsamplingBilinear2d UpsamplingNearest2d ZeroPad1d ZeroPad2d ZeroPad3d"
    ),
    "nbgrad.mint.nn.trained_layers": (
        "BatchNorm1d BatchNorm2d BatchNorm3d Conv1d Conv2d Conv3d ConvTranspose2d Embedding GroupNorm LayerNorm Linear "
        "PReLU SyncBatchNorm"
    ),
}
"""Module -> names."""

MODULES = "functional"

__getattr__, __dir__ = door(__name__, TABLE, globals(), MODULES)
