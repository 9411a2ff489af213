"""MindSpore's class forms as data: the function and the options of each.

In: nothing. Out: `PLAIN` and `WITH_OPTIONS`. Read by `nbgrad.ops` for the names, and by class_forms.py, which makes the
classes. Nothing of nbgrad is imported, because the names are needed at the start.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REQUIRED = object()
"""The default of an option that has none."""
_WORLD = "mccl_world_group"
"""The name of the group of all processes."""


class Form:
    """A class form: its function in `nbgrad.ops` (with an underscore: in class_forms.py), options with their defaults,
    and arguments that the function gets from every object."""

    __slots__ = ("fixed", "function", "options")

    def __init__(self, function: str, options: Mapping[str, Any], fixed: Mapping[str, Any]) -> None:
        self.function, self.options, self.fixed = function, options, fixed


def _form(function: str, fixed: Mapping[str, Any] | None = None, **options: Any) -> Form:
    return Form(function, options, fixed or {})


PLAIN = """
    Add:add Sub:sub Mul:mul Div:div RealDiv:true_divide FloorDiv:floor_div FloorMod:floor_mod Mod:truncate_mod Pow:pow
    TruncateDiv:truncate_div TruncateMod:truncate_mod Exp:exp Expm1:expm1 Log:log Log1p:log1p Sqrt:sqrt Rsqrt:rsqrt
    Square:square Reciprocal:reciprocal Inv:reciprocal Abs:abs Neg:neg Sign:sign Floor:floor Ceil:ceil Round:round
    Trunc:trunc Sin:sin Cos:cos Tan:tan Asin:asin ACos:acos Atan:atan Atan2:atan2 Sinh:sinh Cosh:cosh Tanh:tanh
    Asinh:asinh Acosh:acosh Atanh:atanh Erf:erf Erfc:erfc Lgamma:lgamma Digamma:digamma Maximum:maximum
    Minimum:minimum Hypot:hypot Xlogy:xlogy Lerp:lerp Addcmul:addcmul Addcdiv:addcdiv AddN:addn Equal:equal
    NotEqual:not_equal Less:less LessEqual:less_equal Greater:greater GreaterEqual:greater_equal
    LogicalAnd:logical_and LogicalOr:logical_or LogicalXor:logical_xor LogicalNot:logical_not
    BitwiseAnd:bitwise_and BitwiseOr:bitwise_or BitwiseXor:bitwise_xor IsNan:isnan IsInf:isinf IsFinite:isfinite
    Select:where MaskedFill:masked_fill MaskedSelect:masked_select Cast:cast
    ReLU:relu ReLU6:relu6 SeLU:selu SiLU:silu Sigmoid:sigmoid LogSigmoid:logsigmoid HSwish:hardswish
    HSigmoid:hardsigmoid Mish:mish Softplus:softplus Softsign:softsign PReLU:prelu
    Reshape:reshape Transpose:transpose ExpandDims:expand_dims Tile:tile Shape:shape Rank:rank Size:size
    GatherD:gather_d GatherNd:gather_nd ScatterNd:scatter_nd TensorScatterUpdate:tensor_scatter_update
    TensorScatterAdd:tensor_scatter_add TensorScatterSub:tensor_scatter_sub Slice:slice Unique:unique
    Zeros:zeros Ones:ones ZerosLike:zeros_like OnesLike:ones_like Fill:fill Eye:eye LinSpace:linspace Trace:trace
    Assign:assign AssignAdd:assign_add AssignSub:assign_sub
    Complex:complex Real:real Imag:imag Conj:conj Angle:angle ComplexAbs:complex_abs Polar:polar
    DType:dtype Identity:identity ScalarToTensor:scalar_to_tensor ScalarCast:scalar_cast TupleToArray:tuple_to_array
    Print:print_ FloatStatus:float_status Depend:depend GatherV2:gather AddV2:add
"""
"""Class forms without options, as Class:function."""

WITH_OPTIONS = {
    # ----- Products -----
    "MatMul": _form("_matmul", transpose_a=False, transpose_b=False),
    "BatchMatMul": _form("_batch_matmul", transpose_a=False, transpose_b=False),
    "BiasAdd": _form("_bias_add", data_format="NCHW"),
    "SquaredDifference": _form("_squared_difference"),
    "L2Loss": _form("_half_square"),
    "L2Normalize": _form("_l2_normalize", axis=0, epsilon=1e-4),
    # ----- Loops -----
    "WhileLoop": _form("_while_loop"),
    "ForiLoop": _form("_fori_loop"),
    "Scan": _form("_loop_scan"),
    # ----- Activations -----
    "Softmax": _form("softmax", axis=-1),
    "LogSoftmax": _form("log_softmax", axis=-1),
    "GeLU": _form("gelu", {"approximate": "tanh"}),
    "Elu": _form("elu", alpha=1.0),
    "HShrink": _form("hardshrink", lambd=0.5),
    "SoftShrink": _form("softshrink", lambd=0.5),
    "Dropout": _form("_dropout", keep_prob=0.5, Seed0=0, Seed1=0),
    # ----- Reductions and scans -----
    "ReduceSum": _form("_reduction", {"name": "reduce_sum"}, keep_dims=False, skip_mode=False),
    "ReduceMean": _form("_reduction", {"name": "reduce_mean"}, keep_dims=False),
    "ReduceMax": _form("_reduction", {"name": "reduce_max"}, keep_dims=False),
    "ReduceMin": _form("_reduction", {"name": "reduce_min"}, keep_dims=False),
    "ReduceProd": _form("_reduction", {"name": "reduce_prod"}, keep_dims=False),
    "ReduceAll": _form("_reduction", {"name": "reduce_all"}, keep_dims=False),
    "ReduceAny": _form("_reduction", {"name": "reduce_any"}, keep_dims=False),
    "Argmax": _form("_typed", {"find": "argmax"}, axis=-1, output_type="int32"),
    "Argmin": _form("_typed", {"find": "argmin"}, axis=-1, output_type="int32"),
    "ArgMaxWithValue": _form("_positioned", {"find": "max"}, axis=0, keep_dims=False),
    "ArgMinWithValue": _form("_positioned", {"find": "min"}, axis=0, keep_dims=False),
    "CumSum": _form("_scan", {"running": "cumsum", "start": 0}, exclusive=False, reverse=False),
    "CumProd": _form("_scan", {"running": "cumprod", "start": 1}, exclusive=False, reverse=False),
    # ----- Shapes -----
    "Flatten": _form("flatten"),
    "Squeeze": _form("squeeze", axis=()),
    "BroadcastTo": _form("broadcast_to", shape=REQUIRED),
    "Concat": _form("concat", axis=0),
    "Stack": _form("stack", axis=0),
    "Unstack": _form("_unstack", axis=0, num=None),
    "Split": _form("_equal_parts", axis=0, output_num=1),
    "ReverseV2": _form("flip", axis=REQUIRED),
    "Meshgrid": _form("_grid", indexing="xy"),
    "Tril": _form("tril", diagonal=0),
    "Triu": _form("triu", diagonal=0),
    "Pad": _form("_padded", paddings=REQUIRED),
    # ----- Positions -----
    "Gather": _form("gather", batch_dims=0),
    "OneHot": _form("one_hot", axis=-1),
    "StridedSlice": _form(
        "strided_slice", begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0
    ),
    "Sort": _form("sort", axis=-1, descending=False),
    "TopK": _form("topk", sorted=True),
    "Range": _form("range", maxlen=1000000),
    # ----- Images -----
    "Conv2D": _form(
        "_convolution_2d",
        out_channel=REQUIRED,
        kernel_size=REQUIRED,
        mode=1,
        pad_mode="valid",
        pad=0,
        stride=1,
        dilation=1,
        group=1,
        data_format="NCHW",
    ),
    "MaxPool": _form("_max_pool", kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW"),
    "AvgPool": _form("_avg_pool", kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW"),
    "MaxPool3D": _form(
        "_max_pool_3d", kernel_size=1, strides=1, pad_mode="valid", pad_list=0, ceil_mode=None, data_format="NCDHW"
    ),
    "AvgPool3D": _form(
        "_avg_pool_3d",
        kernel_size=1,
        strides=1,
        pad_mode="valid",
        pad=0,
        ceil_mode=False,
        count_include_pad=True,
        divisor_override=0,
        data_format="NCDHW",
    ),
    "AdaptiveAvgPool2D": _form("adaptive_avg_pool2d", output_size=REQUIRED),
    "ResizeBilinear": _form("_resize_bilinear", size=REQUIRED, align_corners=False, half_pixel_centers=False),
    "ResizeNearestNeighbor": _form("_resize_nearest", size=REQUIRED, align_corners=False, half_pixel_centers=False),
    "DepthToSpace": _form("_depth_to_space", block_size=REQUIRED),
    "SpaceToDepth": _form("_space_to_depth", block_size=REQUIRED),
    # ----- Random numbers -----
    "UniformReal": _form("_uniform_real", seed=0, seed2=0),
    "StandardNormal": _form("_standard_normal_of", seed=0, seed2=0),
    "UniformInt": _form("_uniform_int", seed=0, seed2=0),
    # ----- Losses -----
    "SmoothL1Loss": _form("smooth_l1_loss", beta=1.0, reduction="none"),
    "SoftmaxCrossEntropyWithLogits": _form("_softmax_cross_entropy"),
    "SparseSoftmaxCrossEntropyWithLogits": _form("_sparse_softmax_cross_entropy", is_grad=False),
    "SigmoidCrossEntropyWithLogits": _form("_sigmoid_cross_entropy"),
    "BCEWithLogitsLoss": _form("_cross_entropy_with_logits", reduction="mean"),
    "BinaryCrossEntropy": _form("_cross_entropy_of_probabilities", reduction="mean"),
    "KLDivLoss": _form("kl_div", reduction="mean"),
    "NLLLoss": _form("_negative_log_likelihood", reduction="mean", ignore_index=-100),
    # ----- Boxes -----
    "IOU": _form("_intersection_over_union", mode="iou"),
    "BoundingBoxEncode": _form("_encoded_boxes", means=(0.0, 0.0, 0.0, 0.0), stds=(1.0, 1.0, 1.0, 1.0)),
    "BoundingBoxDecode": _form(
        "_decoded_boxes",
        max_shape=REQUIRED,
        means=(0.0, 0.0, 0.0, 0.0),
        stds=(1.0, 1.0, 1.0, 1.0),
        wh_ratio_clip=0.016,
    ),
    "CheckValid": _form("_boxes_inside"),
    # ----- Others -----
    "Rint": _form("_rint"),
    "Einsum": _form("_einsum_of", equation=REQUIRED),
    "LpNorm": _form("_lp_norm", axis=REQUIRED, p=2, keep_dims=False, epsilon=1e-12),
    "ScatterNdUpdate": _form("_written", {"kind": "update"}, use_locking=True),
    "ScatterNdAdd": _form("_written", {"kind": "add"}, use_locking=False),
    # ----- Other processes -----
    "AllReduce": _form("all_reduce", op="sum", group=_WORLD),
    "AllGather": _form("all_gather", group=_WORLD),
    "ReduceScatter": _form("_reduce_scatter", op="sum", group=_WORLD),
    "Broadcast": _form("_broadcast", root_rank=REQUIRED, group=_WORLD),
    "Reduce": _form("_reduce", dest_rank=REQUIRED, op="sum", group=_WORLD),
    "AlltoAll": _form("_all_to_all", split_count=REQUIRED, split_dim=REQUIRED, concat_dim=REQUIRED, group=_WORLD),
    "Barrier": _form("_barrier", group=_WORLD),
    "CollectiveScatter": _form("_collective_scatter", src_rank=0, group=_WORLD),
    "CollectiveGather": _form("_collective_gather", dest_rank=REQUIRED, group=_WORLD),
    "Send": _form("_send", sr_tag=REQUIRED, dest_rank=REQUIRED, group=_WORLD, group_back=_WORLD),
    "Receive": _form(
        "_receive",
        sr_tag=REQUIRED,
        src_rank=REQUIRED,
        shape=REQUIRED,
        dtype=REQUIRED,
        group=_WORLD,
        group_back=_WORLD,
    ),
}
