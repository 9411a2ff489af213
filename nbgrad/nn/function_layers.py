"""Layers that are a function with its options: borders, pooling, shapes, losses of margins.

In: options; then Tensors. Out: Cells. Called by users; `mint.nn` makes its layers by `function_layer`, too. A row names
the function and the options with their defaults.
"""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any, ClassVar

from ..errors import ArgumentError
from .cell import Cell

REQUIRED = object()
"""The default of an option that has none."""


class FunctionLayer(Cell):
    """A function of arrays with its options; subclasses are made by `function_layer`."""

    home: ClassVar[str]
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
        options = {name: getattr(self, name) for name in self._names}
        if "training" in self.fixed:
            options["training"] = self.training
        return self._apply(*inputs, **{**self.fixed, **options})

    def _apply(self, *inputs: Any, **options: Any) -> Any:
        return getattr(import_module(self.home), self.function)(*inputs, **options)

    def extend_repr(self) -> str:
        """The options."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names)


def function_layer(
    name: str,
    function: str,
    fixed: dict[str, Any] | None = None,
    home: str = "nbgrad.ops",
    base: type[FunctionLayer] = FunctionLayer,
    **options: Any,
) -> type[Any]:
    """A layer that is a function of a module.

    Parameters
    ----------
    name : str
        Of the class.
    function, home : str
        The function, and the module that has it.
    fixed : dict, optional
        Arguments that every object gives; `training` is that of the object.
    base : type
    **options
        The arguments of the constructor with their defaults, `REQUIRED` for none.
    """
    nothing = inspect.Parameter.empty
    parameters = [
        inspect.Parameter(
            option, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=nothing if value is REQUIRED else value
        )
        for option, value in options.items()
    ]
    body = {
        "home": home,
        "function": function,
        "options": options,
        "fixed": fixed or {},
        "__module__": home.replace("nbgrad.ops", __name__).replace("nn.functional", "nn.layers"),
        "__doc__": f"`{home.removeprefix('nbgrad.')}.{function}` with its options, as a Cell.",
        "__signature__": inspect.Signature(parameters),
    }
    return type(name, (base,), body)


# ----- Borders -----


class _Padding(FunctionLayer):
    """Borders of the last axes: one width for all ends, or widths from the last axis on."""

    def construct(self, *inputs: Any) -> Any:
        """The larger array."""
        count = 2 * int(type(self).__name__[-2])
        widths = (self.padding,) * count if isinstance(self.padding, int) else tuple(self.padding)
        value = {"value": self.value} if "value" in self._names else {}
        return self._apply(*inputs, widths, **self.fixed, **value)


def _padding(name: str, mode: str, **options: Any) -> tuple[type[Any], ...]:
    return tuple(
        [
            function_layer(f"{name}{axes}d", "pad", {"mode": mode}, base=_Padding, padding=REQUIRED, **options)
            for axes in (1, 2, 3)
        ]
    )


ConstantPad1d, ConstantPad2d, ConstantPad3d = _padding("ConstantPad", "constant", value=REQUIRED)
ZeroPad1d, ZeroPad2d, ZeroPad3d = _padding("ZeroPad", "constant")
ReflectionPad1d, ReflectionPad2d, ReflectionPad3d = _padding("ReflectionPad", "reflect")
ReplicationPad1d, ReplicationPad2d, ReplicationPad3d = _padding("ReplicationPad", "replicate")

# ----- Windows and shapes -----

AdaptiveAvgPool3d = function_layer("AdaptiveAvgPool3d", "adaptive_avg_pool3d", output_size=REQUIRED)
AdaptiveMaxPool1d = function_layer("AdaptiveMaxPool1d", "adaptive_max_pool1d", output_size=REQUIRED)
AdaptiveMaxPool3d = function_layer(
    "AdaptiveMaxPool3d", "adaptive_max_pool3d", output_size=REQUIRED, return_indices=False
)
MaxUnpool1d, MaxUnpool2d, MaxUnpool3d = (
    function_layer(f"MaxUnpool{n}d", f"max_unpool{n}d", kernel_size=REQUIRED, stride=None, padding=0) for n in (1, 2, 3)
)
UPSAMPLE: dict[str, Any] = {
    "size": None,
    "scale_factor": None,
    "mode": "nearest",
    "align_corners": None,
    "recompute_scale_factor": None,
}
"""The options of `Upsample`, here and in mint, with their defaults."""
Upsample = function_layer("Upsample", "interpolate", **UPSAMPLE)
PixelShuffle = function_layer("PixelShuffle", "pixel_shuffle", upscale_factor=REQUIRED)
PixelUnshuffle = function_layer("PixelUnshuffle", "pixel_unshuffle", downscale_factor=REQUIRED)
ChannelShuffle = function_layer("ChannelShuffle", "channel_shuffle", groups=REQUIRED)
LRN = function_layer("LRN", "lrn", depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region="ACROSS_CHANNELS")

LPPool1d, LPPool2d = (
    function_layer(
        f"LPPool{n}d", f"lp_pool{n}d", norm_type=REQUIRED, kernel_size=REQUIRED, stride=None, ceil_mode=False
    )
    for n in (1, 2)
)
FractionalMaxPool2d, FractionalMaxPool3d = (
    function_layer(
        f"FractionalMaxPool{n}d",
        f"fractional_max_pool{n}d",
        kernel_size=REQUIRED,
        output_size=None,
        output_ratio=None,
        return_indices=False,
        _random_samples=None,
    )
    for n in (2, 3)
)
Unflatten = function_layer(
    "Unflatten", "unflattened", home="nbgrad.ops.rarer.arranged_values", axis=REQUIRED, unflattened_size=REQUIRED
)
Roll = function_layer("Roll", "rolled", home="nbgrad.ops.rarer.arranged_values", shift=REQUIRED, axis=REQUIRED)
Moments = function_layer(
    "Moments", "mean_and_variance", home="nbgrad.ops.rarer.arranged_values", axis=None, keep_dims=None
)
MatrixDiag = function_layer("MatrixDiag", "matrix_diag")
LGamma = function_layer("LGamma", "lgamma")
DiGamma = function_layer("DiGamma", "digamma")
IGamma = function_layer("IGamma", "igamma")
MatDet = function_layer("MatDet", "det")
MatInverse = function_layer("MatInverse", "inverse")

# ----- Losses -----

MultiMarginLoss = function_layer("MultiMarginLoss", "multi_margin_loss", p=1, margin=1.0, reduction="mean", weight=None)
MultilabelMarginLoss = function_layer("MultilabelMarginLoss", "multilabel_margin_loss", reduction="mean")
MultiLabelSoftMarginLoss = function_layer(
    "MultiLabelSoftMarginLoss", "multilabel_soft_margin_loss", weight=None, reduction="mean"
)
HingeEmbeddingLoss = function_layer("HingeEmbeddingLoss", "hinge_embedding_loss", margin=1.0, reduction="mean")
GaussianNLLLoss = function_layer("GaussianNLLLoss", "gaussian_nll_loss", full=False, eps=1e-6, reduction="mean")
TripletMarginLoss = function_layer(
    "TripletMarginLoss", "triplet_margin_loss", p=2, swap=False, eps=1e-6, reduction="mean", margin=1.0
)
CTCLoss = function_layer(
    "CTCLoss",
    "loss_of_sequences",
    home="nbgrad.ops.rarer.margin_losses",
    blank=0,
    reduction="mean",
    zero_infinity=False,
)

PoissonNLLLoss = function_layer(
    "PoissonNLLLoss",
    "poisson_nll_loss",
    home="nbgrad.ops.rarer.margin_losses",
    log_input=True,
    full=False,
    eps=1e-8,
    reduction="mean",
)

# ----- Activations -----

RReLU = function_layer("RReLU", "rrelu", lower=1 / 8, upper=1 / 3)
Softmax2d = function_layer("Softmax2d", "softmax_of_channels", home="nbgrad.ops.rarer.arranged_values")
Threshold = function_layer(
    "Threshold", "above", home="nbgrad.ops.rarer.arranged_values", threshold=REQUIRED, value=REQUIRED
)

# ----- Sparse arrays -----

SparseTensorDenseMatmul = function_layer(
    "SparseTensorDenseMatmul",
    "product_with_dense",
    home="nbgrad.ops.rarer.sparse_tensors",
    adjoint_st=False,
    adjoint_dt=False,
)
