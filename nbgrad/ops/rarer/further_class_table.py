"""The form of rows of class forms, and the rows of rarer ones.

In: nothing. Out: `Form`, `form`, and `FURTHER`, the rows. Read by class_table.py, which has the other rows, and by
class_forms.py, which makes the classes. Nothing of nbgrad is imported, because the names are needed at the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REQUIRED = object()
"""The default of an option that has none."""


class Form:
    """A class form: its function in `nbgrad.ops` (with an underscore: in class_forms.py; with a colon: in a module of
    `rarer`), options with their defaults, and arguments that the function gets from every object."""

    __slots__ = ("fixed", "function", "options")

    def __init__(self, function: str, options: Mapping[str, Any], fixed: Mapping[str, Any]) -> None:
        self.function, self.options, self.fixed = function, options, fixed


def form(function: str, fixed: Mapping[str, Any] | None = None, **options: Any) -> Form:
    """A row: the function, arguments that are always the same, and the options with their defaults."""
    return Form(function, options, fixed or {})


FURTHER = {
    # ----- Steps of optimizers -----
    "AdamNoUpdateParam": form("sparse_steps:adam_change", use_locking=False, use_nesterov=False),
    "FusedSparseAdam": form("sparse_steps:adam_of_rows", use_locking=False, use_nesterov=False),
    "FusedSparseLazyAdam": form("sparse_steps:lazy_adam_of_rows", use_locking=False, use_nesterov=False),
    "FusedSparseFtrl": form(
        "sparse_steps:ftrl_of_rows", lr=REQUIRED, l1=REQUIRED, l2=REQUIRED, lr_power=REQUIRED, use_locking=False
    ),
    "FusedSparseProximalAdagrad": form("sparse_steps:proximal_adagrad_of_rows", use_locking=False),
    "SparseApplyProximalAdagrad": form("sparse_steps:proximal_adagrad_of_rows", use_locking=False),
    # ----- Numbers and images in another order -----
    "MapUniform": form("further_forms:dealt_out"),
    "DataFormatVecPermute": form("further_forms:extents_in_order", src_format="NHWC", dst_format="NCHW"),
    "ResizeArea": form("resized_images:means_of_areas", align_corners=False),
    # ----- Gradients -----
    "HookBackward": form("further_forms:hooked", hook_fn=REQUIRED, cell_id=""),
    "InsertGradientOf": form("further_forms:with_gradient", f=REQUIRED),
    # ----- Transforms, products, equations -----
    "FFTWithSize": form(
        "further_forms:transform_of_size",
        signal_ndim=REQUIRED,
        inverse=REQUIRED,
        real=REQUIRED,
        norm="backward",
        onesided=True,
        signal_sizes=(),
    ),
    "Conv3D": form(
        "further_forms:convolution_3d",
        out_channel=REQUIRED,
        kernel_size=REQUIRED,
        mode=1,
        pad_mode="valid",
        pad=0,
        stride=1,
        dilation=1,
        group=1,
        data_format="NCDHW",
    ),
    "Conv3DTranspose": form(
        "further_forms:transposed_convolution_3d",
        in_channel=REQUIRED,
        out_channel=REQUIRED,
        kernel_size=REQUIRED,
        mode=1,
        pad_mode="valid",
        pad=0,
        stride=1,
        dilation=1,
        group=1,
        output_padding=0,
        data_format="NCDHW",
    ),
    "CholeskySolve": form("cholesky_solve", upper=False),
    "MatrixTriangularSolve": form("further_forms:triangular_solution", lower=True, adjoint=False),
    "LuSolve": form("factors:lu_solve"),
    "LuUnpack": form("lu_unpack", unpack_data=True, unpack_pivots=True),
    "Lstsq": form("further_forms:least_squares", fast=True, l2_regularizer=0.0),
    "MatrixPower": form("matrix_power", n=REQUIRED),
    "MatrixLogarithm": form("logm"),
    "TridiagonalMatMul": form("further_forms:banded_product"),
    "ConjugateTranspose": form("further_forms:turned_conjugate"),
    # ----- Numbers -----
    "Bucketize": form("arranged_values:intervals", boundaries=REQUIRED),
    "Histogram": form("further_forms:counts_of_bins", bins=100, min=0.0, max=0.0),
    "CumulativeLogsumexp": form("further_forms:running_logarithm", exclusive=False, reverse=False),
    "ReduceStd": form("arranged_values:deviations_and_means", axis=(), unbiased=True, keep_dims=False),
    "CountNonZero": form("further_forms:numbers_not_zero", dims=None),
    "Quantile": form("arranged_values:quantile_of", dim=None, keep_dims=False, ignore_nan=False),
    "CeLU": form("celu", alpha=1.0),
    "Cdist": form("cdist", p=2.0),
    "Sinc": form("sinc"),
    "NanToNum": form("nan_to_num", nan=None, posinf=None, neginf=None),
    "CheckNumerics": form("further_forms:finite_numbers"),
    "CompareAndBitpack": form("further_forms:packed_bits"),
    "ListDiff": form("further_forms:without_others", out_idx="int32"),
    "SubAndFilter": form("further_forms:shifted_and_chosen"),
    "RaggedRange": form("further_forms:ragged_ranges", Tsplits=REQUIRED),
    # ----- Shapes and positions -----
    "Diag": form("further_forms:on_diagonal"),
    "DiagPart": form("further_forms:diagonal_part"),
    "FillDiagonal": form("further_forms:filled_diagonal", fill_value=REQUIRED, wrap=False),
    "UnravelIndex": form("further_forms:coordinates"),
    "IdentityN": form("further_forms:as_tuple"),
    "TensorToTuple": form("further_forms:numbers_of"),
    "Roll": form("roll", shifts=REQUIRED, dims=()),
    "PadV3": form("further_forms:border", mode="constant", paddings_contiguous=True),
    "TensorScatterElements": form("further_forms:written_elements", axis=0, reduction="none"),
    "ScatterAddWithAxis": form("further_forms:added_elements", axis=0),
    **{
        f"Segment{name}": form(f"further_forms:segment_{name.lower()}")
        for name in ("Sum", "Mean", "Prod", "Max", "Min")
    },
    "SplitV": form("further_forms:parts_of_sizes", size_splits=REQUIRED, split_dim=REQUIRED, num_split=REQUIRED),
    "ConfusionMatrix": form("further_forms:pairs_of_classes", num_classes=REQUIRED, dtype="int32"),
    "EuclideanNorm": form("further_forms:length", keep_dims=False),
    "NuclearNorm": form("further_forms:sum_of_singular_values", dim=None, keepdim=False),
    "Assert": form("further_forms:demanded", summarize=3),
    # ----- Sparse arrays, boxes -----
    "Coalesce": form("further_forms:positions_once"),
    "SparseSlice": form("further_forms:sparse_part"),
    "NonMaxSuppressionWithOverlaps": form("further_forms:boxes_apart"),
    # ----- Images -----
    "RGBToHSV": form("tinted_images:hue_saturation_value"),
    "HSVToRGB": form("tinted_images:red_green_blue"),
    "AdjustHue": form("tinted_images:turned_hue"),
    "AdjustSaturation": form("tinted_images:scaled_saturation"),
    "AdaptiveMaxPool2D": form("tinted_images:maxima_2d", output_size=REQUIRED),
    "AdaptiveMaxPool3D": form("tinted_images:maxima_3d"),
    "UpsampleNearest3D": form("tinted_images:repeated_volumes"),
    "UpsampleTrilinear3D": form("tinted_images:smooth_volumes", align_corners=False),
    "FractionalMaxPoolWithFixedKsize": form(
        "power_windows:fractional_maxima_2d", ksize=REQUIRED, output_shape=REQUIRED, data_format="NCHW"
    ),
    "FractionalMaxPool3DWithFixedKsize": form(
        "power_windows:fractional_maxima_3d", ksize=REQUIRED, output_shape=REQUIRED, data_format="NCDHW"
    ),
    # ----- Losses, random numbers, functions of Python -----
    "CTCLossV2": form("further_forms:losses_with_paths", blank=0, reduction="none", zero_infinity=False),
    "TripletMarginLoss": form("further_forms:loss_of_triplets", p=2, swap=False, eps=1e-6, reduction="mean"),
    "MultilabelMarginLoss": form("further_forms:loss_and_targets", reduction="mean"),
    "Multinomial": form("random_choices:drawn_classes", seed=0, seed2=0, dtype="int32"),
    "Cauchy": form("random_choices:cauchy_numbers", size=REQUIRED, median=0.0, sigma=1.0),
    "LogNormalReverse": form("random_choices:lognormal_numbers", mean=1.0, std=2.0),
    "LogUniformCandidateSampler": form(
        "random_choices:rank_candidates", num_true=1, num_sampled=5, unique=True, range_max=5, seed=0
    ),
    "PyFunc": form(
        "further_forms:results_of_python",
        fn=REQUIRED,
        in_types=REQUIRED,
        in_shapes=REQUIRED,
        out_types=REQUIRED,
        out_shapes=REQUIRED,
        stateful=True,
    ),
}
"""Class name -> its row."""
