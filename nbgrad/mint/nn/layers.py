"""Layers of `mint.nn` without Parameters: functions of `mint.nn.functional` with their options, as Cells.

In: options; then Tensors. Out: Cells. Used by users. A row names the function and the options with their defaults.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, ClassVar

from ...errors import ArgumentError
from ...nn.cell import Cell

REQUIRED = object()
"""The default of an option that has none."""


class FunctionLayer(Cell):
    """A function of arrays with its options; subclasses are made by `_layer`."""

    function: ClassVar[str]
    options: ClassVar[dict[str, Any]]
    fixed: ClassVar[dict[str, Any]]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()
        try:
            bound = inspect.signature(type(self)).bind(*args, **kwargs)
        except TypeError as error:
            message = f"{type(self).__name__} takes the options ({', '.join(self.options)}): {error}."
            raise ArgumentError(message) from None
        bound.apply_defaults()
        object.__setattr__(self, "_names", tuple(bound.arguments))
        for name, value in bound.arguments.items():
            setattr(self, name, value)

    def construct(self, *inputs: Any) -> Any:
        """Apply the function."""
        function = getattr(import_module("nbgrad.mint.nn.functional"), self.function)
        options = {name: getattr(self, name) for name in self._names}
        only_in_training = {"training": self.training} if self.function.startswith("dropout") else {}
        return function(*inputs, **options, **self.fixed, **only_in_training)

    def extend_repr(self) -> str:
        """The options."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names)


def _layer(name: str, function: str, fixed: dict[str, Any] | None = None, **options: Any) -> type[FunctionLayer]:
    parameters = [
        inspect.Parameter(
            option,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if value is REQUIRED else value,
        )
        for option, value in options.items()
    ]
    body = {
        "function": function,
        "options": options,
        "fixed": fixed or {},
        "__module__": __name__,
        "__doc__": f"`mint.nn.functional.{function}` with its options, as a Cell.",
        "__signature__": inspect.Signature(parameters),
    }
    return type(name, (FunctionLayer,), body)


# ----- Activations -----

ReLU = _layer("ReLU", "relu", inplace=False)
ReLU6 = _layer("ReLU6", "relu6", inplace=False)
LeakyReLU = _layer("LeakyReLU", "leaky_relu", negative_slope=0.01)
ELU = _layer("ELU", "elu", alpha=1.0, inplace=False)
GELU = _layer("GELU", "gelu", approximate="none")
SiLU = _layer("SiLU", "silu", inplace=False)
Hardshrink = _layer("Hardshrink", "hardshrink", lambd=0.5)
Softshrink = _layer("Softshrink", "softshrink", lambd=0.5)
Hardsigmoid = _layer("Hardsigmoid", "hardsigmoid")
Hardswish = _layer("Hardswish", "hardswish")
Hardtanh = _layer("Hardtanh", "hardtanh", min_val=-1.0, max_val=1.0, inplace=False)
Threshold = _layer("Threshold", "threshold", threshold=REQUIRED, value=REQUIRED, inplace=False)
Softplus = _layer("Softplus", "softplus", beta=1, threshold=20)
Softmax = _layer("Softmax", "softmax", dim=None)
LogSoftmax = _layer("LogSoftmax", "log_softmax", dim=None)
GLU = _layer("GLU", "glu", dim=-1)
Dropout = _layer("Dropout", "dropout", p=0.5, inplace=False)
Dropout2d = _layer("Dropout2d", "dropout2d", p=0.5, inplace=False)

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
AdaptiveAvgPool1d, AdaptiveAvgPool2d, AdaptiveAvgPool3d = (
    _layer(f"AdaptiveAvgPool{axes}d", f"adaptive_avg_pool{axes}d", output_size=REQUIRED) for axes in (1, 2, 3)
)
AdaptiveMaxPool1d, AdaptiveMaxPool2d = (
    _layer(f"AdaptiveMaxPool{axes}d", f"adaptive_max_pool{axes}d", output_size=REQUIRED, return_indices=False)
    for axes in (1, 2)
)
MaxUnpool2d = _layer("MaxUnpool2d", "max_unpool2d", kernel_size=REQUIRED, stride=None, padding=0)
Flatten = _layer("Flatten", "flatten", start_dim=1, end_dim=-1)
Fold = _layer("Fold", "fold", output_size=REQUIRED, kernel_size=REQUIRED, dilation=1, padding=0, stride=1)
Unfold = _layer("Unfold", "unfold", kernel_size=REQUIRED, dilation=1, padding=0, stride=1)
PixelShuffle = _layer("PixelShuffle", "pixel_shuffle", upscale_factor=REQUIRED)
Upsample = _layer(
    "Upsample",
    "interpolate",
    size=None,
    scale_factor=None,
    mode="nearest",
    align_corners=None,
    recompute_scale_factor=None,
)
UpsamplingNearest2d = _layer("UpsamplingNearest2d", "interpolate", {"mode": "nearest"}, size=None, scale_factor=None)
UpsamplingBilinear2d = _layer(
    "UpsamplingBilinear2d", "interpolate", {"mode": "bilinear", "align_corners": True}, size=None, scale_factor=None
)


class _Padding(FunctionLayer):
    """Borders of the last axes: one width for all ends, or widths from the last axis on."""

    axes: ClassVar[int]

    def construct(self, *inputs: Any) -> Any:
        """The larger array."""
        functional = import_module("nbgrad.mint.nn.functional")
        widths = (self.padding,) * (2 * self.axes) if isinstance(self.padding, int) else tuple(self.padding)
        value = {"value": self.value} if "value" in self._names else {}
        return functional.pad(*inputs, widths, **self.fixed, **value)


def _padding(name: str, axes: int, mode: str, **options: Any) -> type[FunctionLayer]:
    plain = _layer(f"{name}{axes}d", "pad", {"mode": mode}, padding=REQUIRED, **options)
    says = f"Borders of the last {axes} axes, of `mint.nn.functional.pad` with mode {mode!r}."
    body = {**vars(plain), "axes": axes, "__doc__": says}
    return type(plain.__name__, (_Padding,), {key: value for key, value in body.items() if key != "__dict__"})


ConstantPad1d, ConstantPad2d, ConstantPad3d = (
    _padding("ConstantPad", axes, "constant", value=REQUIRED) for axes in (1, 2, 3)
)
ZeroPad1d, ZeroPad2d, ZeroPad3d = (_padding("ZeroPad", axes, "constant") for axes in (1, 2, 3))
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = (_padding("ReflectionPad", axes, "reflect") for axes in (1, 2, 3))
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = (
    _padding("ReplicationPad", axes, "replicate") for axes in (1, 2, 3)
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
