"""The functions that users call on Tensors and arrays, one file per family.

In: Tensors, ndarrays, numbers. Out: Tensors. `NAMES` lists every public function by the module that holds it; a
module is
imported when one of its functions is first used, so that importing nbgrad stays fast. NumPy's own functions reach the
same code (numpy_table.py).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

NAMES: dict[str, str] = {
    "ufuncs": (
        "add subtract multiply divide true_divide power pow remainder mod fmod floor_divide divmod negative positive "
        "absolute abs fabs sign exp exp2 expm1 log log2 log10 log1p sqrt cbrt square reciprocal sin cos tan arcsin "
        "arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh asin acos atan atan2 asinh acosh atanh hypot "
        "logaddexp logaddexp2 floor ceil rint trunc maximum minimum fmax fmin copysign signbit nextafter equal "
        "not_equal less less_equal greater greater_equal logical_and logical_or logical_xor logical_not bitwise_and "
        "bitwise_or bitwise_xor invert left_shift right_shift isnan isinf isfinite deg2rad rad2deg degrees radians "
        "float_power heaviside"
    ),
    "elementwise": "where clip nan_to_num sinc round fix isclose allclose array_equal",
    "special": ("erf erfc gammaln digamma expit sigmoid logit xlogy softplus relu logsumexp softmax log_softmax"),
    "reductions": "sum prod max min any all argmax argmin ptp count_nonzero nansum nanprod nanmax nanmin",
    "statistics": "mean var std average nanmean nanvar nanstd cov corrcoef bincount",
    "quantiles": "median quantile percentile nanmedian nanquantile nanpercentile",
    "cumulative": "cumsum cumprod cumulative_sum cumulative_prod diff ediff1d trapezoid",
    "shaping": (
        "reshape ravel squeeze expand_dims atleast_1d atleast_2d atleast_3d transpose matrix_transpose swapaxes "
        "moveaxis broadcast_to broadcast_arrays flip fliplr flipud roll rot90 astype"
    ),
    "joining": (
        "concatenate stack vstack hstack dstack column_stack append block split array_split hsplit vsplit dsplit "
        "unstack tile repeat"
    ),
    "padding": "pad delete insert",
    "creation": (
        "zeros ones empty full zeros_like ones_like empty_like full_like eye identity diag diagflat diagonal tri tril "
        "triu arange linspace logspace geomspace meshgrid vander"
    ),
    "linear_algebra": (
        "matmul dot vdot inner outer tensordot vecdot matvec vecmat kron cross multi_dot matrix_power trace norm"
    ),
    "factorisations": "solve inv inverse solve_triangular cholesky det slogdet",
    "subscripts": "einsum",
    "indexing": "take take_along_axis put_along_axis put fill_diagonal",
    "sorting": "sort argsort partition searchsorted nonzero flatnonzero argwhere unique isin",
    "selection": "select choose piecewise interp convolve correlate gradient unwrap polyval",
}

_module_of: dict[str, str] = {name: module for module, names in NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "stop_gradient":
        return import_module("..custom", __name__).stop_gradient
    module = _module_of.get(name)
    if module is None:
        message = f"nbgrad.numpy has no function {name!r}"
        raise AttributeError(message)
    function = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = function
    return function


def __dir__() -> list[str]:
    return sorted([*_module_of, "stop_gradient"])
