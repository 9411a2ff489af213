"""MindSpore's module `mint`: functions with PyTorch's parameters and defaults: `nb.mint.max(x, dim=1)`.

In: Tensors, ndarrays, numbers. Out: Tensors. Used by users. `TABLE` lists every name by the module that holds it: most
are functions of `nbgrad.ops`, which take `dim` and `keepdim` too; the others are rows over them.
"""

from __future__ import annotations

from .named_modules import door

TABLE = {
    "nbgrad.ops": (
        "abs absolute acos acosh add addbmm addcdiv addcmul addmm addmv all allclose amax amin any arange arccos "
        "arccosh arcsin arcsinh arctan arctan2 arctanh argmax asin asinh atan atan2 atanh baddbmm bincount "
        "bitwise_and bitwise_not bitwise_or bitwise_xor bmm broadcast_to cat ceil chunk clamp concat cos cosh cross "
        "cummax cummin cumprod cumsum diff div divide dot dstack einsum eq erf erfc erfinv exp exp2 expm1 eye flip "
        "float_power floor floor_divide fmod frac full full_like gather=gather_elements gcd ge greater "
        "greater_equal gt histc hstack imag index_select inverse isclose isfinite isinf isnan isneginf isposinf le "
        "lerp less less_equal linspace log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or "
        "logical_xor logsumexp lt masked_select matmul maximum mean minimum mm mul multiply mv nan_to_num nansum "
        "narrow ne neg negative nonzero not_equal ones_like outer permute polar pow prod ravel real reciprocal "
        "remainder repeat_interleave reshape roll round rsqrt scatter searchsorted sigmoid sign sin sinc sinh softmax "
        "split sqrt square squeeze stack sub swapaxes sum tan tanh tile trace tril triu trunc unbind "
        "unique_consecutive unsqueeze vstack xlogy zeros_like"
    ),
    "nbgrad.mint.nn.functional_rows": "conv2d",
    "nbgrad.mint.own_parameters": (
        "argmin argsort bernoulli cdist clone count_nonzero diag empty empty_like equal flatten index_add kthvalue max "
        "median meshgrid min multinomial norm normal ones rand rand_like randint randint_like randn randn_like "
        "randperm scatter_add select sort std std_mean t take topk transpose triangular_solve "
        "var var_mean vdot where zeros"
    ),
}
"""Module -> names; `name=function` has another name there."""

MODULES = "linalg nn optim special"

__getattr__, __dir__ = door(__name__, TABLE, globals(), MODULES)
