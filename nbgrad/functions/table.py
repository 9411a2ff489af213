"""NumPy's functions and what stands for them here: the whole of `__array_function__`.

In: a NumPy function that was called with a Tensor. Out: what our function gives. Called by Tensor.__array_function__
and by Tensor's methods. Each module of `nbgrad.numpy` lists its own functions in `NUMPY`; nothing is ever converted to
NumPy silently.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

import numpy as np

from ..errors import DtypeError
from ..record.tensor import Tensor

NOT_GIVEN = getattr(np, "_NoValue", object())
"""What NumPy's functions pass on for arguments that they were not given."""

NAMES: dict[str, str] = {
    "elementwise.ufunc_functions": (
        "add subtract multiply divide true_divide power pow remainder mod fmod floor_divide divmod negative positive "
        "absolute abs fabs sign exp exp2 expm1 log log2 log10 log1p sqrt cbrt square reciprocal sin cos tan arcsin "
        "arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh asin acos atan atan2 asinh acosh atanh hypot "
        "logaddexp logaddexp2 floor ceil rint trunc maximum minimum fmax fmin copysign signbit nextafter equal "
        "not_equal less less_equal greater greater_equal logical_and logical_or logical_xor logical_not bitwise_and "
        "bitwise_or bitwise_xor invert bitwise_not bitwise_invert left_shift bitwise_left_shift right_shift "
        "bitwise_right_shift isnan isinf isfinite deg2rad rad2deg degrees radians conj conjugate float_power heaviside"
    ),
    "elementwise.pointwise": "where clip nan_to_num sinc round fix isclose allclose array_equal",
    "elementwise.special_functions": (
        "erf erfc gammaln digamma expit sigmoid logit xlogy softplus relu logsumexp softmax log_softmax i0 kaiser"
    ),
    "arrays.reductions": "sum prod max min any all argmax argmin ptp count_nonzero nansum nanprod nanmax nanmin",
    "analysis.statistics": "mean var std average nanmean nanvar nanstd cov corrcoef bincount",
    "analysis.quantiles": "median quantile percentile nanmedian nanquantile nanpercentile",
    "arrays.cumulative": "cumsum cumprod cumulative_sum cumulative_prod diff ediff1d trapezoid",
    "arrays.shaping": (
        "reshape ravel squeeze expand_dims atleast_1d atleast_2d atleast_3d transpose matrix_transpose swapaxes "
        "moveaxis broadcast_to broadcast_arrays flip fliplr flipud roll rot90 astype"
    ),
    "arrays.joining": (
        "concatenate stack vstack hstack dstack column_stack append block split array_split hsplit vsplit dsplit "
        "unstack tile repeat"
    ),
    "analysis.padding": "pad delete insert",
    "arrays.creation": (
        "eye identity diag diagflat diagonal tri tril triu arange linspace logspace geomspace meshgrid indices vander"
    ),
    "arrays.construction": (
        "array asarray asanyarray ascontiguousarray asfortranarray asarray_chkfinite require copy zeros ones empty "
        "full zeros_like ones_like empty_like full_like fromfunction fromiter frombuffer fromstring fromfile loadtxt "
        "genfromtxt bartlett blackman hamming hanning"
    ),
    "arrays.concatenators": "r_ c_ mgrid ogrid broadcast nditer",
    "linalg.matrix_products": (
        "matmul dot vdot inner outer tensordot vecdot matvec vecmat kron cross multi_dot matrix_power trace"
    ),
    "linalg.factorisations": "solve inv inverse solve_triangular cholesky",
    "linalg.determinants": "det slogdet",
    "linalg.eigenvalues": "eigh eigvalsh eig eigvals",
    "linalg.singular_values": "svd svdvals pinv matrix_rank",
    "linalg.orthogonal": "qr",
    "linalg.norms": "norm vector_norm matrix_norm cond",
    "linalg.least_squares": "lstsq tensorsolve tensorinv",
    "linalg.matrix_functions": "expm logm sqrtm solve_sylvester",
    "linalg.triangular_factors": "lu lu_factor lu_solve cho_factor cho_solve",
    "linalg.banded": "solve_banded",
    "linalg.einsum": "einsum",
    "arrays.taking": "take take_along_axis put_along_axis put fill_diagonal",
    "arrays.sorting": (
        "sort argsort argpartition partition lexsort searchsorted nonzero flatnonzero argwhere extract compress "
        "sort_complex"
    ),
    "arrays.sets": (
        "unique unique_all unique_counts unique_inverse unique_values union1d intersect1d setdiff1d setxor1d isin"
    ),
    "arrays.positions": (
        "ix_ ravel_multi_index unravel_index diag_indices_from tril_indices_from triu_indices_from ndenumerate"
    ),
    "analysis.selection": "select choose interp convolve correlate gradient unwrap trim_zeros",
    "analysis.applying": "apply_along_axis apply_over_axes vectorize frompyfunc piecewise",
    "analysis.histograms": "histogram histogram2d histogramdd histogram_bin_edges digitize",
    "analysis.polynomials": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots",
}
"""The functions of `nbgrad.numpy` by the module that holds them."""
_module_of: dict[str, str] = {name: module for module, names in NAMES.items() for name in names.split()}

MODULES = [
    "elementwise.pointwise",
    "elementwise.complex_parts",
    "arrays.taking",
    "arrays.inspection",
    "arrays.reductions",
    "analysis.statistics",
    "analysis.quantiles",
    "arrays.cumulative",
    "arrays.shaping",
    "arrays.joining",
    "analysis.padding",
    "arrays.creation",
    "linalg.matrix_products",
    "linalg.factorisations",
    "linalg.determinants",
    "linalg.eigenvalues",
    "linalg.singular_values",
    "linalg.orthogonal",
    "linalg.norms",
    "linalg.least_squares",
    "analysis.fft_functions",
    "linalg.einsum",
    "arrays.sorting",
    "arrays.sets",
    "arrays.positions",
    "analysis.selection",
    "elementwise.special_functions",
    "analysis.applying",
    "analysis.histograms",
    "analysis.polynomials",
]

IMPLEMENTATIONS: dict[Callable[..., Any], Callable[..., Any]] = {}
"""NumPy function -> the function of `nbgrad.numpy`, as far as modules were imported."""
_waiting = list(MODULES)


def home_of(name: str) -> str | None:
    """The module that holds a function of a name."""
    return _module_of.get(name)


def names_of_functions() -> list[str]:
    """All names in the table."""
    return list(_module_of)


def module_of(name: str) -> ModuleType:
    """A module of functions, imported when it is first asked for."""
    return import_module(f".{name}", __package__)


def find(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """What stands for a function of NumPy's, if anything does.

    A module is imported when one of its functions is first asked for, so that the first gradient of a process is fast.
    """
    if function not in IMPLEMENTATIONS and _waiting:
        likely = home_of(getattr(function, "__name__", ""))
        for module in [likely] if likely in _waiting else []:
            _load(module)
        if function not in IMPLEMENTATIONS:
            for module in list(_waiting):
                _load(module)
    return IMPLEMENTATIONS.get(function)


def _load(module: str) -> None:
    IMPLEMENTATIONS.update(module_of(module).NUMPY)
    if module in _waiting:
        _waiting.remove(module)


def implementation(function: Callable[..., Any]) -> Callable[..., Any]:
    """What stands for a function of NumPy's that is known to be in the table."""
    found = find(function)
    assert found is not None, function
    return found


REFUSED = {
    **dict.fromkeys(("busday_count", "busday_offset", "datetime_as_string", "is_busday"), "dates"),
    **dict.fromkeys(("packbits", "unpackbits"), "bits in bytes"),
}
"""Functions of NumPy that make no sense for Tensors, and what they work on."""


def refuse(function: Any) -> NoReturn:
    """Raise for a function of NumPy's that does not work on Tensors, and say why."""
    name, module = function.__name__, getattr(function, "__module__", None) or "numpy"
    if name in REFUSED:
        message = f"{module}.{name} works on {REFUSED[name]}, which Tensors do not hold. Apply it to x.asnumpy()."
    else:
        message = (
            f"{module}.{name} does not work on Tensors. Apply it to x.asnumpy() if its result is a constant of the "
            "computation, or write it with functions that do (docs/numpy.md lists them)."
        )
    raise DtypeError(message)


def array_function(func: Any, types: Sequence[type], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What a NumPy function gives for Tensors."""
    for kind in types:
        if kind is not Tensor and not issubclass(kind, Tensor | np.ndarray):
            return NotImplemented
    implementation = find(func)
    if implementation is None:
        refuse(func)
    if kwargs:
        # NumPy's own functions pass on what they were not given.
        kwargs = {name: value for name, value in kwargs.items() if value is not NOT_GIVEN}
    return implementation(*args, **kwargs)
