"""MindSpore's functions and class forms, with MindSpore's names, argument order and defaults: `nb.ops.mean(x, axis=1)`.

In: Tensors, ndarrays, numbers. Out: Tensors. Used by users. `NAMES` lists every function and class by the module that
holds it, `ELSEWHERE` what other parts of nbgrad hold; a module is imported when one of its names is first used, so that
importing nbgrad stays fast. Everything here is thin over `nbgrad.numpy`, which has NumPy's signatures.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from ..mindspore_paths import submodule
from ..record.tensor import Tensor
from .class_table import ELEMENTWISE_OF_SPARSE, PLAIN, WITH_OPTIONS

_HERE = {
    "elementwise": (
        ".add .sub .subtract .mul .multiply .div .divide .true_divide floor_div .floor_divide floor_mod mod "
        ".remainder .fmod truncate_div truncate_mod .pow .exp .exp2 .expm1 .log .log2 .log10 .log1p .sqrt .rsqrt "
        ".square .reciprocal .inv abs .absolute .neg .negative .positive .sign .sin .cos .tan .asin .acos .atan "
        ".atan2 .arcsin .arccos .arctan .arctan2 .sinh .cosh .tanh .asinh .acosh .atanh .arcsinh .arccosh .arctanh "
        ".floor .ceil round .trunc fix .frac .maximum .minimum .fmax .fmin .clamp clip clip_by_value where select "
        ".masked_fill .isnan .isinf .isfinite .equal .eq .ne .not_equal .less .lt .le .less_equal .greater .gt .ge "
        ".greater_equal .logical_and .logical_or .logical_xor .logical_not .bitwise_and .bitwise_or .bitwise_xor "
        ".bitwise_left_shift .bitwise_right_shift .lerp .addcmul .addcdiv addn .hypot .logaddexp .logaddexp2 "
        ".heaviside .nan_to_num .xlogy .rad2deg .deg2rad .sinc cast .isclose .allclose .copysign .nextafter .signbit "
        "is_tensor depend"
    ),
    "reduction_functions": (
        "sum mean prod .amax .amin max min argmax argmin .aminmax std var std_mean var_mean .norm vector_norm "
        "matrix_norm clip_by_global_norm .logsumexp cumsum cumprod .cummax .cummin trapz all any .median "
        ".count_nonzero .nansum .nanmean reduce_sum reduce_mean reduce_max reduce_min reduce_prod reduce_all "
        "reduce_any"
    ),
    "shape_functions": (
        "reshape transpose permute swapaxes .swapdims .moveaxis .movedim .expand_dims .unsqueeze squeeze "
        ".broadcast_to expand .expand_as concat cat stack hstack vstack dstack column_stack .split .tensor_split "
        ".chunk .hsplit .vsplit .dsplit row_stack unstack .unbind tile .repeat_interleave repeat_elements flatten "
        "ravel .flip .fliplr .flipud .roll .rot90 meshgrid atleast_1d atleast_2d atleast_3d .triu .tril .diag "
        "diagonal .narrow shape size rank numel pad .diff"
    ),
    "gathering": (
        ".gather .gather_elements gather_d .gather_nd scatter_nd .scatter tensor_scatter_elements tensor_scatter_add "
        "tensor_scatter_sub tensor_scatter_update .index_select index_add .index_fill .masked_select one_hot nonzero "
        ".argwhere slice strided_slice .bincount searchsorted"
    ),
    "ranking": "sort argsort .topk unique",
    "filled_arrays": "zeros ones full zeros_like ones_like full_like arange linspace logspace eye range fill",
    "linear_algebra": (
        ".matmul .bmm .mm .mv dense dot .inner .outer .ger einsum tensor_dot .addmm .addbmm .baddbmm .addmv .addr "
        ".cross kron trace .matrix_power cdist"
    ),
    "activations": (
        ".relu relu6 leaky_relu elu celu selu gelu silu .sigmoid hardsigmoid hardswish hardtanh .hardshrink "
        "softshrink .soft_shrink mish softplus softsign tanhshrink logsigmoid prelu .softmax .log_softmax softmin glu"
    ),
    "attention": "scaled_dot_product_attention",
    "normalisation": (
        "layer_norm layer_norm_from group_norm batch_norm batch_norm_training instance_norm lrn normalize rms_norm"
    ),
    "losses": (
        "mse_loss l1_loss smooth_l1_loss huber_loss cross_entropy nll_loss binary_cross_entropy "
        "binary_cross_entropy_with_logits softmax_cross_entropy_with_logits kl_div cosine_embedding_loss "
        "margin_ranking_loss cosine_similarity"
    ),
    "convolution": "conv1d conv2d conv_transpose2d .unfold .fold",
    "pooling": (
        "max_pool1d max_pool2d avg_pool1d avg_pool2d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool2d"
    ),
    "random_tensors": (
        "rand randn rand_like randn_like uniform normal standard_normal laplace standard_laplace randint randint_like "
        "randperm shuffle dropout dropout1d dropout2d dropout3d"
    ),
    "choices": "bernoulli .multinomial gumbel_softmax",
    "linear_systems": (
        ".det .matrix_determinant .slogdet .log_matrix_determinant .inverse .cholesky .cholesky_solve "
        ".cholesky_inverse matrix_solve"
    ),
    "decompositions": ".svd .qr eig .eigvals pinv matrix_exp cond .logdet .orgqr .ormqr block_diag toeplitz",
    "spectra": (
        "fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft hfft2 ihfft2 hfftn ihfftn "
        "fftshift ifftshift fftfreq rfftfreq"
    ),
    "complex_values": (
        "real imag conj .angle .is_complex .isreal complex polar view_as_real view_as_complex complex_abs"
    ),
    "parameters": "assign assign_add assign_sub",
    "clipping": "clip_by_norm",
    "volumes": "conv3d conv_transpose3d max_pool3d avg_pool3d",
    "python_values": (
        "dtype identity tuple_to_array scalar_to_tensor scalar_cast make_range tuple_len mixed_precision_cast print_ "
        "float_status summary_ npu_alloc_float_status npu_get_float_status npu_clear_float_status"
    ),
    "image_forms": "bounding_box_encode bounding_box_decode check_valid iou",
    "rarer.special_values": (
        "bessel_j0 bessel_j1 bessel_y0 bessel_y1 bessel_i0 bessel_i1 bessel_k0 bessel_k1 bessel_i0e bessel_i1e "
        "bessel_k0e bessel_k1e .erfinv .igamma .igammac zeta .mvlgamma .xdivy .float_power .gcd .lcm .bitwise_not "
        ".invert population_count .isneginf .isposinf .is_floating_point is_nonzero eps .approximate_equal .logit "
        "fast_gelu .logcumsumexp .i0"
    ),
    "rarer.windows": "bartlett_window blackman_window hamming_window hann_window kaiser_window stft",
    "rarer.written_positions": (
        "unsorted_segment_sum .unsorted_segment_prod .unsorted_segment_max .unsorted_segment_min sparse_segment_mean "
        "tensor_scatter_mul tensor_scatter_div tensor_scatter_max tensor_scatter_min .inplace_update inplace_add "
        "inplace_sub inplace_index_add scatter_update scatter_add scatter_sub scatter_mul scatter_div scatter_max "
        "scatter_min scatter_nd_update scatter_nd_add scatter_nd_sub scatter_nd_mul scatter_nd_div scatter_nd_max "
        "scatter_nd_min"
    ),
    "rarer.diagonals": (
        ".select_scatter .slice_scatter .diagonal_scatter .diag_embed matrix_band_part matrix_diag_part "
        "matrix_set_diag matrix_diag tril_indices triu_indices vander"
    ),
    "rarer.sequences": (
        ".unique_consecutive .unique_with_pad combinations .histc .nanmedian .msort intopk sequence_mask "
        ".reverse_sequence space_to_batch_nd batch_to_space_nd mirror_pad padding channel_shuffle pixel_shuffle "
        "pixel_unshuffle .dist pdist .renorm batch_dot bias_add deepcopy .view_as dyn_shape ctc_greedy_decoder"
    ),
    "rarer.sampled_images": (
        "grid_sample affine_grid crop_and_resize adaptive_avg_pool3d adaptive_max_pool3d adaptive_max_pool1d "
        "max_unpool1d max_unpool2d max_unpool3d"
    ),
    "rarer.random_choices": (
        "random_gamma gamma random_poisson .random_categorical multinomial_with_replacement choice_with_mask "
        "uniform_candidate_sampler log_uniform_candidate_sampler .uniform_ .random_ .normal_ .exponential_ "
        ".bernoulli_"
    ),
    "rarer.margin_losses": (
        "soft_margin_loss hinge_embedding_loss multi_margin_loss multilabel_soft_margin_loss multilabel_margin_loss "
        "triplet_margin_loss gaussian_nll_loss ctc_loss"
    ),
    "rarer.factors": ".lstsq .lu_solve lu_unpack .geqrf",
    "rarer.sparse_tensors": (
        "coo_add coo_concat csr_add csr_softmax csr_to_dense csr_to_coo csr_mm csr_mv csr_mul csr_div csr_reduce_sum "
        "csr_gather coo2csr csr2coo dense_to_sparse_coo "
        "dense_to_sparse_csr "
        + " ".join(f"{_kind}_{_name}" for _kind in ("coo", "csr") for _name in ELEMENTWISE_OF_SPARSE.split())
    ),
    "rarer.forms": ".col2im",
    "rarer.arranged_values": (
        "cartesian_prod .vecdot bidense .adjoint .diagflat t .ldexp .sgn type_as threshold rrelu swiglu bucketize "
        "embedding .cov .quantile .nanquantile"
    ),
    "rarer.written_tensors": (
        ".exp_ .log_ .floor_ .sign_ .tanh_ .erfinv_ .clamp_ .remainder_ .floor_divide_ .masked_fill_ .addmm_ "
        ".sigmoid_ .fill_diagonal_ .masked_scatter_ .index_put_ .index_add_ .index_fill_ .index_copy_ .put_ .scatter_ "
        ".scatter_add_"
    ),
    "rarer.power_windows": "lp_pool1d lp_pool2d fractional_max_pool2d fractional_max_pool3d conv3d_transpose",
    "rarer.language_models": (
        "rotary_position_embedding add_layer_norm add_rms_norm flash_attention_score moe_token_permute "
        "moe_token_unpermute"
    ),
    "rarer.resized_images": "interpolate upsample",
    "rarer.deformed_windows": "deformable_conv2d",
    "rarer.own_primitives": "prim_attr_register PrimitiveWithInfer PrimitiveWithCheck Custom",
}
"""Module -> names; a name with a dot is a method of Tensor too, which is the first argument."""

_ELSEWHERE = {
    "nbgrad.communication.group_calls": "all_gather all_reduce ReduceOp",
    "nbgrad.compiled.compiler_marks": "constexpr add_flags core",
    "nbgrad.transforms.mapped_structures": "HyperMap Map MultitypeFuncGraph partial",
    "nbgrad.transforms.custom": "stop_gradient",
    "nbgrad.transforms.grad": "grad value_and_grad GradOperation get_grad",
    "nbgrad.transforms.jacobians": "vjp jvp jacrev jacfwd hessian",
    "nbgrad.transforms.taylor_series": "jet derivative linearize",
    "nbgrad.transforms.vmap": "vmap",
    "nbgrad.functions.linalg.banded": "solve_banded",
    "nbgrad.functions.linalg.eigenvalues": "eigh eigvalsh",
    "nbgrad.functions.linalg.factorisations": "solve_triangular",
    "nbgrad.functions.linalg.matrix_functions": "expm logm sqrtm solve_sylvester",
    "nbgrad.functions.linalg.triangular_factors": "lu lu_factor cho_factor cho_solve",
    "nbgrad.functions.elementwise.special_functions": ".erf .erfc gammaln .lgamma .digamma expit",
    "nbgrad.functions.elementwise.gamma_functions": "polygamma multigammaln factorial comb",
}

_CLASSES = " ".join(["Primitive", *PLAIN.replace(":", " ").split()[::2], *WITH_OPTIONS])

NAMES = {module: names.replace(".", "") for module, names in _HERE.items()} | {"class_forms": _CLASSES}
"""The names of the modules here: module -> names."""

ELSEWHERE = {module: names.replace(".", "") for module, names in _ELSEWHERE.items()}
"""The names that come from other parts of nbgrad: module -> names."""

_SPELLED_OTHERWISE = {"lgamma": "gammaln"}
_HIDDEN = {
    "_get_cache_prim": (f"{__name__}.python_values", "identity"),
    "tensor_add": (f"{__name__}.elementwise", "add"),
    "tensor_sub": (f"{__name__}.elementwise", "sub"),
    "tensor_mul": (f"{__name__}.elementwise", "mul"),
    "tensor_div": (f"{__name__}.elementwise", "div"),
    "tensor_pow": (f"{__name__}.elementwise", "pow"),
    "pows": (f"{__name__}.elementwise", "pow"),
    "tensor_floordiv": (f"{__name__}.elementwise", "floor_div"),
    **{f"tensor_{_name}": (f"{__name__}.elementwise", _name) for _name in "gt ge lt le exp expm1".split()},
    "tensor_mod": (f"{__name__}.elementwise", "floor_mod"),
    "floordiv": (f"{__name__}.elementwise", "floor_div"),
    "floormod": (f"{__name__}.elementwise", "floor_mod"),
    "float_power_ext": (f"{__name__}.rarer.special_values", "float_power"),
    "diff_ext": (f"{__name__}.shape_functions", "diff"),
    "einsum_ext": (f"{__name__}.linear_algebra", "einsum"),
    "isnan_ext": (f"{__name__}.elementwise", "isnan"),
    "mse_loss_ext": (f"{__name__}.losses", "mse_loss"),
    "baddbmm_ext": (f"{__name__}.linear_algebra", "baddbmm"),
    "adaptive_avg_pool2d_ext": (f"{__name__}.pooling", "adaptive_avg_pool2d"),
    "shape_": (f"{__name__}.shape_functions", "shape"),
    "tensor_slice": (f"{__name__}.gathering", "slice"),
    "bernoulli_ext": (f"{__name__}.rarer.written_tensors", "ones_by_chance"),
    "accumulate_n": (f"{__name__}.elementwise", "addn"),
    "AccumulateNV2": (f"{__name__}.class_forms", "AddN"),
    "coalesce": (f"{__name__}.rarer.further_forms", "positions_once"),
    "scalar_log": ("math", "log"),
    "scalar_uadd": ("operator", "pos"),
    "scalar_usub": ("operator", "neg"),
    "scalar_div": ("operator", "truediv"),
    **{f"scalar_{_name}": ("operator", _name) for _name in "add sub mul floordiv mod pow eq ne lt le gt ge".split()},
    "scalar_max": ("builtins", "max"),
    "scalar_min": ("builtins", "min"),
    "reverse": (f"{__name__}.shape_functions", "flip"),
    "top_k": (f"{__name__}.ranking", "top_k"),
    **{
        _name: (f"{__name__}.rarer.written_tensors", _name)
        for _name in (
            "scatter_reduce filled_with ones_by_chance uniform_like distinct kth_least elements_added slices_added "
            "tiled expanded"
        ).split()
    },
    "prim_arg_register": (f"{__name__}.rarer.own_primitives", "prim_attr_register"),
    "cauchy": (f"{__name__}.rarer.random_choices", "cauchy"),
    "log_normal": (f"{__name__}.rarer.random_choices", "log_normal"),
}
"""Names of MindSpore's packages that its documentation lacks, and that public networks use: module and name."""

_module_of: dict[str, str] = {}
for _module, _names in NAMES.items():
    _module_of.update(dict.fromkeys(_names.split(), f"{__name__}.{_module}"))
for _module, _names in ELSEWHERE.items():
    _module_of.update(dict.fromkeys(_names.split(), _module))


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    module = _module_of.get(name)
    if module is None and name in _HIDDEN:
        module, real = _HIDDEN[name]
        return getattr(import_module(module), real)
    message = f"nbgrad.ops has no function or class {name!r}"
    if module is None:
        if (found := submodule("ops", name)) is not None:
            return found
        raise AttributeError(message)
    try:
        value = getattr(import_module(module), _SPELLED_OTHERWISE.get(name, name))
    except ModuleNotFoundError as error:
        if error.name != module:
            raise
        raise AttributeError(message) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_module_of)


# ----- Methods of Tensor -----

OTHER_METHODS = {
    "to_coo": "dense_to_sparse_coo",
    "to_csr": "dense_to_sparse_csr",
    "reverse": "flip",
    "top_k": "top_k",
    "fills": "filled_with",
    "bernoulli": "ones_by_chance",
    "uniform": "uniform_like",
    "unique": "distinct",
    "kthvalue": "kth_least",
    "scatter_add": "elements_added",
    "scatter_reduce": "scatter_reduce",
    "index_add": "slices_added",
    "tile": "tiled",
    "expand": "expanded",
    "cauchy": "cauchy",
    "log_normal": "log_normal",
    **{f"scatter_{_kind}": f"tensor_scatter_{_kind}" for _kind in ("sub", "mul", "div", "max", "min")},
}
"""Method -> the function that it is, where the names differ."""


def _method(name: str) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return (globals().get(name) or __getattr__(name))(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"As `nbgrad.ops.{name}` of this Tensor."
    return method


IN_PLACE = (
    "abs absolute acos acosh addbmm addcdiv addcmul addmv addr arccos arccosh arcsin arcsinh arctan arctanh asin "
    "asinh atan atan2 atanh baddbmm bitwise_and bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift "
    "bitwise_xor ceil clip copysign cos cosh cumprod cumsum deg2rad digamma div divide erf erfc exp2 expm1 "
    "float_power fmod frac gcd heaviside hypot i0 igamma igammac lcm ldexp lerp lgamma log10 log1p log2 logical_and "
    "logical_not logical_or logical_xor logit multiply mvlgamma nan_to_num neg negative nextafter polygamma pow "
    "rad2deg reciprocal relu renorm round rsqrt scatter_reduce sgn sin sinc sinh sqrt square subtract tan tril triu "
    "true_divide trunc xlogy"
)
"""Functions that Tensor has as methods with `_` after the name, which write their result to the Tensor."""


def _method_in_place(name: str) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        into = import_module(f"{__name__}.rarer.written_tensors").write_result
        return into(self, (globals().get(name) or __getattr__(name))(self, *args, **kwargs), f"{name}_")

    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"Write the result of `nbgrad.ops.{name}` to this Tensor, which is given back."
    return method


for _after_dot in " ".join([*_HERE.values(), *_ELSEWHERE.values()]).split(".")[1:]:
    _name = _after_dot.partition(" ")[0]
    setattr(Tensor, _name, _method(_name))
for _name, _function in OTHER_METHODS.items():
    setattr(Tensor, _name, _method(_function))
for _name in IN_PLACE.split():
    setattr(Tensor, f"{_name}_", _method_in_place(_name))
