"""Layers of `mint.nn` without Parameters: functions of `mint.nn.functional` with their options, as Cells.

In: options; then Tensors. Out: Cells. Used by users. A row names the function and the options with their defaults.
"""

from __future__ import annotations

from functools import partial

from ...nn.function_layers import REQUIRED, UPSAMPLE, function_layer

_layer = partial(function_layer, home="nbgrad.mint.nn.functional")

# ----- Activations -----

ReLU = _layer("ReLU", "relu", inplace=False)
ReLU6 = _layer("ReLU6", "relu6", inplace=False)
LeakyReLU = _layer("LeakyReLU", "leaky_relu", negative_slope=0.01, inplace=False)
ELU = _layer("ELU", "elu", alpha=1.0, inplace=False)
GELU = _layer("GELU", "gelu", approximate="none")
SiLU = _layer("SiLU", "silu", inplace=False)
Hardshrink = _layer("Hardshrink", "hardshrink", lambd=0.5)
Softshrink = _layer("Softshrink", "softshrink", lambd=0.5)
Hardsigmoid = _layer("Hardsigmoid", "hardsigmoid", inplace=False)
Hardswish = _layer("Hardswish", "hardswish", inplace=False)
Mish = _layer("Mish", "mish", inplace=False)
SELU = _layer("SELU", "selu", inplace=False)
Hardtanh = _layer("Hardtanh", "hardtanh", min_val=-1.0, max_val=1.0, inplace=False)
Threshold = _layer("Threshold", "threshold", threshold=REQUIRED, value=REQUIRED, inplace=False)
Softplus = _layer("Softplus", "softplus", beta=1, threshold=20)
Softmax = _layer("Softmax", "softmax", dim=None)
LogSoftmax = _layer("LogSoftmax", "log_softmax", dim=None)
GLU = _layer("GLU", "glu", dim=-1)
Dropout = _layer("Dropout", "dropout", {"training": True}, p=0.5, inplace=False)
Dropout2d = _layer("Dropout2d", "dropout2d", {"training": True}, p=0.5, inplace=False)

# ----- Windows and shapes -----

MaxPool2d = _layer(
    "MaxPool2d",
    "max_pool2d",
    kernel_size=REQUIRED,
    stride=None,
    padding=0,
    dilation=1,
    return_indices=False,
    ceil_mode=False,
)
AvgPool1d = _layer(
    "AvgPool1d", "avg_pool1d", kernel_size=REQUIRED, stride=None, padding=0, ceil_mode=False, count_include_pad=True
)
AvgPool2d, AvgPool3d = (
    _layer(
        f"AvgPool{axes}d",
        f"avg_pool{axes}d",
        kernel_size=REQUIRED,
        stride=None,
        padding=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=None,
    )
    for axes in (2, 3)
)
AdaptiveAvgPool1d, AdaptiveAvgPool2d = (
    _layer(f"AdaptiveAvgPool{axes}d", f"adaptive_avg_pool{axes}d", output_size=REQUIRED) for axes in (1, 2)
)
AdaptiveMaxPool1d, AdaptiveMaxPool2d = (
    _layer(f"AdaptiveMaxPool{axes}d", f"adaptive_max_pool{axes}d", output_size=REQUIRED, return_indices=False)
    for axes in (1, 2)
)
Flatten = _layer("Flatten", "flatten", start_dim=1, end_dim=-1)
Fold = _layer("Fold", "fold", output_size=REQUIRED, kernel_size=REQUIRED, dilation=1, padding=0, stride=1)
Unfold = _layer("Unfold", "unfold", kernel_size=REQUIRED, dilation=1, padding=0, stride=1)
Upsample = _layer("Upsample", "interpolate", **UPSAMPLE)
UpsamplingNearest2d = _layer("UpsamplingNearest2d", "interpolate", {"mode": "nearest"}, size=None, scale_factor=None)
UpsamplingBilinear2d = _layer(
    "UpsamplingBilinear2d", "interpolate", {"mode": "bilinear", "align_corners": True}, size=None, scale_factor=None
)


# ----- Losses -----

BCEWithLogitsLoss = _layer(
    "BCEWithLogitsLoss", "binary_cross_entropy_with_logits", weight=None, reduction="mean", pos_weight=None
)
CrossEntropyLoss = _layer(
    "CrossEntropyLoss", "cross_entropy", weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0
)
NLLLoss = _layer("NLLLoss", "nll_loss", weight=None, ignore_index=-100, reduction="mean")
KLDivLoss = _layer("KLDivLoss", "kl_div", reduction="mean", log_target=False)
SmoothL1Loss = _layer("SmoothL1Loss", "smooth_l1_loss", reduction="mean", beta=1.0)
SoftMarginLoss = _layer("SoftMarginLoss", "soft_margin_loss", reduction="mean")
