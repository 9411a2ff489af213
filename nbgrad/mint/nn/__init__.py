"""MindSpore's `mint.nn`: layers with PyTorch's names, parameters and defaults.

In: options; then Tensors. Out: Cells. Used by users. `TABLE` lists every name by the module that holds it.
"""

from __future__ import annotations

from ..named_modules import door

TABLE = {
    "nbgrad.nn": (
        "AdaptiveAvgPool3d AdaptiveMaxPool3d BCELoss Cell ChannelShuffle ConstantPad1d ConstantPad2d ConstantPad3d "
        "CosineEmbeddingLoss FractionalMaxPool2d FractionalMaxPool3d Identity L1Loss LPPool1d LPPool2d LogSigmoid "
        "MSELoss MaxUnpool1d MaxUnpool2d MaxUnpool3d PixelShuffle PixelUnshuffle ReflectionPad1d ReflectionPad2d "
        "ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d Sigmoid Softmax2d Tanh ZeroPad1d "
        "ZeroPad2d ZeroPad3d"
    ),
    "nbgrad.mint.nn.layers": (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveMaxPool1d AdaptiveMaxPool2d AvgPool1d AvgPool2d AvgPool3d "
        "BCEWithLogitsLoss CrossEntropyLoss Dropout Dropout2d ELU Flatten Fold GELU GLU Hardshrink Hardsigmoid "
        "Hardswish Hardtanh KLDivLoss LeakyReLU LogSoftmax MaxPool2d Mish NLLLoss ReLU ReLU6 SELU SiLU SmoothL1Loss "
        "SoftMarginLoss Softmax Softplus Softshrink Threshold Unfold Upsample UpsamplingBilinear2d "
        "UpsamplingNearest2d"
    ),
    "nbgrad.mint.nn.trained_layers": (
        "BatchNorm1d BatchNorm2d BatchNorm3d Embedding GroupNorm LayerNorm Linear PReLU SyncBatchNorm"
    ),
    "nbgrad.mint.nn.layers_of_torch": (
        "AlphaDropout Bilinear CELU CTCLoss CircularPad1d CircularPad2d CircularPad3d Conv1d Conv2d Conv3d "
        "ConvTranspose1d ConvTranspose2d ConvTranspose3d CosineSimilarity Dropout1d Dropout3d EmbeddingBag "
        "FeatureAlphaDropout GaussianNLLLoss HingeEmbeddingLoss HuberLoss InstanceNorm1d InstanceNorm2d "
        "InstanceNorm3d LocalResponseNorm MarginRankingLoss MaxPool1d MaxPool3d MultiLabelMarginLoss "
        "MultiLabelSoftMarginLoss MultiMarginLoss PairwiseDistance PoissonNLLLoss RMSNorm RReLU Softmin Softsign "
        "Tanhshrink TripletMarginLoss TripletMarginWithDistanceLoss"
    ),
}
"""Module -> names."""

MODULES = "functional"

__getattr__, __dir__ = door(__name__, TABLE, globals(), MODULES)
