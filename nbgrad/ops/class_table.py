"""MindSpore's class forms as data: the function and the options of each.

In: nothing. Out: `PLAIN` and `WITH_OPTIONS`. Read by `nbgrad.ops` for the names, and by class_forms.py, which makes the
classes. Nothing of nbgrad is imported, because the names are needed at the start.
"""

from __future__ import annotations

from .rarer.further_class_table import FURTHER, REQUIRED, Form
from .rarer.further_class_table import form as _form

_WORLD = "mccl_world_group"
"""The name of the group of all processes."""

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
    DType:dtype ScalarToTensor:scalar_to_tensor ScalarCast:scalar_cast TupleToArray:tuple_to_array
    Print:print_ FloatStatus:float_status NPUAllocFloatStatus:npu_alloc_float_status
    NPUGetFloatStatus:npu_get_float_status NPUClearFloatStatus:npu_clear_float_status Depend:depend GatherV2:gather
    AddV2:add ScalarSummary:summary_ ImageSummary:summary_ TensorSummary:summary_ HistogramSummary:summary_
    BesselI0:bessel_i0 BesselI0e:bessel_i0e BesselI1:bessel_i1 BesselI1e:bessel_i1e BesselJ0:bessel_j0
    BesselJ1:bessel_j1 BesselK0:bessel_k0 BesselK0e:bessel_k0e BesselK1:bessel_k1 BesselK1e:bessel_k1e
    BesselY0:bessel_y0 BesselY1:bessel_y1 Igamma:igamma Igammac:igammac Zeta:zeta Polygamma:polygamma
    Xdivy:xdivy Lcm:lcm Gcd:gcd Invert:invert PopulationCount:population_count Fmax:fmax Fmin:fmin
    Heaviside:heaviside LeftShift:bitwise_left_shift RightShift:bitwise_right_shift
    Ger:ger Cholesky:cholesky CholeskyInverse:cholesky_inverse MatrixDeterminant:matrix_determinant
    LogMatrixDeterminant:log_matrix_determinant Orgqr:orgqr MatrixExp:matrix_exp NonZero:nonzero Eps:eps
    TensorShape:dyn_shape MatrixBandPart:matrix_band_part FastGeLU:fast_gelu FastGelu:fast_gelu
    UnsortedSegmentSum:unsorted_segment_sum UnsortedSegmentMax:unsorted_segment_max
    UnsortedSegmentMin:unsorted_segment_min UnsortedSegmentProd:unsorted_segment_prod
    SparseSegmentMean:sparse_segment_mean TensorScatterMul:tensor_scatter_mul TensorScatterDiv:tensor_scatter_div
    TensorScatterMax:tensor_scatter_max TensorScatterMin:tensor_scatter_min UniqueWithPad:unique_with_pad
    Erfinv:erfinv IsNegInf:isneginf NextAfter:nextafter
"""
"""Class forms without options, as Class:function."""

ELEMENTWISE_OF_SPARSE = (
    "abs acos acosh asin asinh atan atanh ceil cos cosh exp expm1 floor inv isfinite isinf isnan log log1p neg relu "
    "relu6 round sigmoid sin sinh softsign sqrt square tan tanh"
)
"""Functions that sparse arrays have as `coo_name` and `csr_name`."""

WITH_OPTIONS: dict[str, Form] = {
    **FURTHER,
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
    "IOU": _form("_iou", mode="iou"),
    "BoundingBoxEncode": _form("_bounding_box_encode", means=(0.0, 0.0, 0.0, 0.0), stds=(1.0, 1.0, 1.0, 1.0)),
    "BoundingBoxDecode": _form(
        "_bounding_box_decode",
        max_shape=REQUIRED,
        means=(0.0, 0.0, 0.0, 0.0),
        stds=(1.0, 1.0, 1.0, 1.0),
        wh_ratio_clip=0.016,
    ),
    "CheckValid": _form("_check_valid"),
    # ----- Others -----
    "Rint": _form("_rint"),
    "Einsum": _form("_einsum_of", equation=REQUIRED),
    "LpNorm": _form("_lp_norm", axis=REQUIRED, p=2, keep_dims=False, epsilon=1e-12),
    "ScatterNdUpdate": _form("_written", {"kind": "update"}, use_locking=True),
    "ScatterNdAdd": _form("_written", {"kind": "add"}, use_locking=False),
    # ----- Rarer functions -----
    "Betainc": _form("special_values:beta_integral"),
    "DivNoNan": _form("special_values:quotient_or_zero"),
    "MulNoNan": _form("special_values:product_or_zero"),
    "Mvlgamma": _form("mvlgamma", p=REQUIRED),
    "Logit": _form("logit", eps=-1.0),
    "ApproximateEqual": _form("approximate_equal", tolerance=1e-5),
    "IsClose": _form("isclose", rtol=1e-5, atol=1e-8, equal_nan=False),
    "SquareSumAll": _form("special_values:square_sums"),
    "GLU": _form("glu", axis=-1),
    "Cross": _form("forms:product_across", dim=-65530),
    "Cummax": _form("cummax", axis=REQUIRED),
    "Cummin": _form("cummin", axis=REQUIRED),
    "LogSpace": _form("forms:powers", steps=10, base=10, dtype="float32"),
    "BartlettWindow": _form("bartlett_window", periodic=True, dtype="float32"),
    "BlackmanWindow": _form("blackman_window", periodic=True, dtype="float32"),
    "HammingWindow": _form("forms:hamming", periodic=True, alpha=0.54, beta=0.46, dtype="float32"),
    "STFT": _form(
        "forms:short_transforms",
        n_fft=REQUIRED,
        hop_length=REQUIRED,
        win_length=REQUIRED,
        normalized=REQUIRED,
        onesided=REQUIRED,
        return_complex=REQUIRED,
    ),
    # ----- Factors -----
    "Eig": _form("factors:eigen_pairs", compute_v=False),
    "Svd": _form("factors:singular_factors", full_matrices=False, compute_uv=True),
    "Qr": _form("factors:orthogonal_factors", full_matrices=False),
    "MatrixInverse": _form("factors:inverse_of", adjoint=False),
    "MatrixSolve": _form("matrix_solve", adjoint=False),
    "Pdist": _form("pdist", p=2.0),
    "Renorm": _form("sequences:row_norms", p=REQUIRED, dim=REQUIRED, maxnorm=REQUIRED),
    # ----- Diagonals and triangles -----
    "MatrixDiagV3": _form("matrix_diag", align="RIGHT_LEFT"),
    "MatrixDiagPartV3": _form("matrix_diag_part", align="RIGHT_LEFT"),
    "MatrixSetDiagV3": _form("matrix_set_diag", align="RIGHT_LEFT"),
    "TrilIndices": _form(
        "diagonals:triangle_positions", {"upper": False}, row=REQUIRED, col=REQUIRED, offset=0, dtype="int32"
    ),
    "TriuIndices": _form(
        "diagonals:triangle_positions", {"upper": True}, row=REQUIRED, col=REQUIRED, offset=0, dtype="int32"
    ),
    # ----- Sets, order, blocks -----
    "UniqueConsecutive": _form("unique_consecutive", return_inverse=False, return_counts=False, dim=None),
    "Median": _form("sequences:median_of", global_median=False, axis=0, keep_dims=False, ignore_nan=False),
    "InTopK": _form("intopk", k=REQUIRED),
    "Bincount": _form("forms:counts"),
    "EqualCount": _form("sequences:equal_count"),
    "InvertPermutation": _form("sequences:inverse_permutation"),
    "DataFormatDimMap": _form("sequences:other_format", src_format="NHWC", dst_format="NCHW"),
    "ReverseSequence": _form("reverse_sequence", seq_dim=REQUIRED, batch_dim=0),
    "SpaceToBatchND": _form("space_to_batch_nd", block_size=REQUIRED, paddings=REQUIRED),
    "BatchToSpaceND": _form("batch_to_space_nd", block_shape=REQUIRED, crops=REQUIRED),
    "ChannelShuffle": _form("channel_shuffle", groups=REQUIRED),
    "MirrorPad": _form("mirror_pad", mode="REFLECT"),
    "Padding": _form("padding", pad_dim_size=8),
    "ParallelConcat": _form("forms:joined"),
    "FillV2": _form("forms:filled"),
    "SearchSorted": _form("forms:search_by_order", dtype="int64", right=False),
    "LowerBound": _form("forms:search", {"right": False}, out_type="int32"),
    "UpperBound": _form("forms:search", {"right": True}, out_type="int32"),
    "CTCGreedyDecoder": _form("ctc_greedy_decoder", merge_repeated=True),
    "EditDistance": _form("forms:edit_distances", normalize=True),
    "NoRepeatNGram": _form("forms:without_repeated_runs", ngram_size=1),
    # ----- Writing at positions -----
    "IndexAdd": _form("index_add", axis=REQUIRED, use_lock=True, check_index_bound=True),
    "IndexFill": _form("written_positions:filled_along"),
    "IndexPut": _form("written_positions:placed", accumulate=0),
    "InplaceAdd": _form("inplace_add", indices=REQUIRED),
    "InplaceSub": _form("inplace_sub", indices=REQUIRED),
    "InplaceUpdate": _form("inplace_update", indices=REQUIRED),
    "InplaceUpdateV2": _form("written_positions:rows_written"),
    "InplaceIndexAdd": _form("written_positions:added_along", axis=REQUIRED),
    "EmbeddingLookup": _form("written_positions:rows_or_zeros"),
    **{
        f"Scatter{name}": _form(f"written_positions:scatter_{name.lower()}", use_locking=name == "Update")
        for name in "Update Add Sub Mul Div Max Min".split()
    },
    **{
        f"ScatterNd{name}": _form(f"scatter_nd_{name.lower()}", use_locking=False)
        for name in "Sub Mul Div Max Min".split()
    },
    # ----- Places in images -----
    "AffineGrid": _form("affine_grid", align_corners=False),
    "GridSampler2D": _form("forms:sampled", interpolation_mode="bilinear", padding_mode="zeros", align_corners=False),
    "GridSampler3D": _form("forms:sampled", interpolation_mode="bilinear", padding_mode="zeros", align_corners=False),
    "CropAndResize": _form("crop_and_resize", method="bilinear", extrapolation_value=0.0),
    "ROIAlign": _form(
        "sampled_images:aligned_regions",
        pooled_height=REQUIRED,
        pooled_width=REQUIRED,
        spatial_scale=REQUIRED,
        sample_num=2,
        roi_end_mode=1,
    ),
    "ResizeBicubic": _form("sampled_images:resize_bicubic", align_corners=False, half_pixel_centers=False),
    "ResizeBilinearV2": _form("forms:resized_bilinear", align_corners=False, half_pixel_centers=False),
    "ResizeLinear1D": _form("forms:resized_linear", coordinate_transformation_mode="align_corners"),
    "ResizeNearestNeighborV2": _form("forms:resized_nearest", align_corners=False, half_pixel_centers=False),
    "MaxUnpool2D": _form(
        "sampled_images:put_back_2d", ksize=REQUIRED, strides=0, pads=0, output_shape=(), data_format="NCHW"
    ),
    "MaxUnpool3D": _form(
        "sampled_images:put_back_3d", ksize=REQUIRED, strides=0, pads=0, output_shape=(), data_format="NCDHW"
    ),
    "MaxPoolWithArgmaxV2": _form(
        "forms:maxima_and_places",
        kernel_size=REQUIRED,
        strides=None,
        pads=0,
        dilation=(1, 1),
        ceil_mode=False,
        argmax_type="int64",
    ),
    "MaxPoolWithArgmax": _form(
        "forms:maxima_and_places_padded", kernel_size=1, strides=1, pad_mode="valid", data_format="NCHW"
    ),
    "MaxPool3DWithArgmax": _form(
        "forms:maxima_and_places_3d",
        ksize=REQUIRED,
        strides=REQUIRED,
        pads=REQUIRED,
        dilation=(1, 1, 1),
        ceil_mode=False,
        data_format="NCDHW",
        argmax_type="int64",
    ),
    "AdaptiveAvgPool3D": _form("adaptive_avg_pool3d", output_size=REQUIRED),
    "Im2Col": _form("forms:columns", ksizes=REQUIRED, strides=1, dilations=1, pads=0),
    "Col2Im": _form("forms:images_of", kernel_size=REQUIRED, dilation=1, padding=0, stride=1),
    "Conv2DTranspose": _form(
        "forms:transposed_convolution",
        out_channel=REQUIRED,
        kernel_size=REQUIRED,
        pad_mode="valid",
        pad=0,
        pad_list=None,
        mode=1,
        stride=1,
        dilation=1,
        group=1,
        data_format="NCHW",
    ),
    "Conv2DBackpropInput": _form(
        "forms:transposed_convolution",
        out_channel=REQUIRED,
        kernel_size=REQUIRED,
        pad_mode="valid",
        pad=0,
        pad_list=None,
        mode=1,
        stride=1,
        dilation=1,
        group=1,
        data_format="NCHW",
    ),
    "NMSWithMask": _form("forms:separate_boxes", iou_threshold=0.5),
    # ----- Normalisation and losses -----
    "BatchNorm": _form("forms:normalized_batch", is_training=False, epsilon=1e-5, momentum=0.1, data_format="NCHW"),
    "LayerNorm": _form("forms:normalized_layer", begin_norm_axis=1, begin_params_axis=1, epsilon=1e-7),
    "LRN": _form("lrn", depth_radius=5, bias=1.0, alpha=1.0, beta=0.5, norm_region="ACROSS_CHANNELS"),
    "Dropout2D": _form("forms:dropped_images", keep_prob=0.5),
    "Dropout3D": _form("forms:dropped_volumes", keep_prob=0.5),
    "MultiMarginLoss": _form("margin_losses:margins_of_classes", p=1, margin=1.0, reduction="mean"),
    "SoftMarginLoss": _form("soft_margin_loss", reduction="mean"),
    "CTCLoss": _form(
        "margin_losses:losses_of_sequences",
        preprocess_collapse_repeated=False,
        ctc_merge_repeated=True,
        ignore_longer_outputs_than_inputs=False,
    ),
    # ----- Recurrences -----
    "LSTM": _form(
        "recurrences:lstm_of_one_vector",
        input_size=REQUIRED,
        hidden_size=REQUIRED,
        num_layers=REQUIRED,
        has_bias=REQUIRED,
        bidirectional=REQUIRED,
        dropout=REQUIRED,
        proj_size=0,
    ),
    "DynamicRNN": _form(
        "recurrences:ascend_lstm",
        cell_type="LSTM",
        direction="UNIDIRECTIONAL",
        cell_depth=1,
        use_peephole=False,
        keep_prob=1.0,
        cell_clip=-1.0,
        num_proj=0,
        time_major=True,
        activation="tanh",
        forget_bias=0.0,
        is_training=True,
    ),
    "DynamicGRUV2": _form(
        "recurrences:ascend_gru",
        direction="UNIDIRECTIONAL",
        cell_depth=1,
        keep_prob=1.0,
        cell_clip=-1.0,
        num_proj=0,
        time_major=True,
        activation="tanh",
        gate_order="rzh",
        reset_after=True,
        is_training=True,
    ),
    # ----- Random choices -----
    "Bernoulli": _form("random_choices:likely", seed=-1, offset=0),
    "MultinomialWithReplacement": _form("multinomial_with_replacement", numsamples=REQUIRED, replacement=False),
    "RandomCategorical": _form("random_choices:classes_drawn", dtype="int64"),
    "RandomChoiceWithMask": _form("random_choices:places_drawn", count=256, seed=0, seed2=0),
    "RandomGamma": _form("random_choices:gamma_numbers", seed=0, seed2=0),
    "RandomPoisson": _form("random_choices:poisson_counts", seed=0, seed2=0, dtype="int64"),
    "Randperm": _form("random_choices:order_with_rest", max_length=1, pad=-1, dtype="int32"),
    "RandpermV2": _form("random_choices:order", seed=0, offset=0, dtype="int64"),
    "RandomShuffle": _form("random_choices:shuffled", seed=0, seed2=0),
    "StandardLaplace": _form("random_choices:laplace_numbers", seed=0, seed2=0),
    "UniformCandidateSampler": _form(
        "random_choices:candidates_drawn",
        num_true=REQUIRED,
        num_sampled=REQUIRED,
        unique=REQUIRED,
        range_max=REQUIRED,
        seed=0,
        remove_accidental_hits=False,
    ),
    # ----- Sparse arrays -----
    "SparseToDense": _form("sparse_tensors:dense_of"),
    "SparseTensorDenseAdd": _form("sparse_tensors:added_to_dense"),
    "SparseTensorDenseMatmul": _form("sparse_tensors:product_with_dense", adjoint_st=False, adjoint_dt=False),
    # ----- Steps of optimizers -----
    "ApplyGradientDescent": _form("optimizer_steps:descent"),
    "ApplyMomentum": _form("optimizer_steps:momentum_step", use_nesterov=False, use_locking=False, gradient_scale=1.0),
    "SGD": _form("optimizer_steps:sgd_step", dampening=0.0, weight_decay=0.0, nesterov=False),
    "Adam": _form("optimizer_steps:adam_step", use_locking=False, use_nesterov=False),
    "ApplyAdamWithAmsgradV2": _form("optimizer_steps:amsgrad_step", use_locking=False),
    "AdamWeightDecay": _form("optimizer_steps:decayed_step", use_locking=False),
    "ApplyAdaMax": _form("optimizer_steps:adamax_step"),
    "ApplyAdadelta": _form("optimizer_steps:adadelta_step"),
    "ApplyAdagrad": _form("optimizer_steps:adagrad_step", update_slots=True),
    "ApplyAdagradV2": _form("optimizer_steps:adagrad_step_with_epsilon", epsilon=REQUIRED, update_slots=True),
    "ApplyAdagradDA": _form("optimizer_steps:averaged_step", use_locking=False),
    "ApplyRMSProp": _form("optimizer_steps:rms_step", use_locking=False),
    "ApplyCenteredRMSProp": _form("optimizer_steps:centered_rms_step", use_locking=False),
    "ApplyAddSign": _form("optimizer_steps:added_sign_step"),
    "ApplyPowerSign": _form("optimizer_steps:power_sign_step"),
    "ApplyProximalGradientDescent": _form("optimizer_steps:proximal_step"),
    "ApplyProximalAdagrad": _form("optimizer_steps:proximal_adagrad_step", use_locking=False),
    "ApplyFtrl": _form("optimizer_steps:ftrl_step", use_locking=False),
    "SparseApplyFtrl": _form(
        "optimizer_steps:ftrl_rows", lr=REQUIRED, l1=REQUIRED, l2=REQUIRED, lr_power=REQUIRED, use_locking=False
    ),
    "SparseApplyAdagradV2": _form(
        "optimizer_steps:adagrad_rows", lr=REQUIRED, epsilon=REQUIRED, use_locking=False, update_slots=True
    ),
    # ----- Control -----
    "Identity": _form("forms:copied"),
    "Partial": _form("forms:partially"),
    "StopGradient": _form("forms:stopped"),
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
