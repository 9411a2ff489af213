"""NumPy's namespace for recorded values: `import nbgrad.numpy as np` in place of `import numpy as np`.

In: Tensors, arrays, numbers, nested lists of them. Out: Tensors. It has every public name of NumPy's. `NAMES` lists the
functions that are nbgrad's own by the module that holds them; a module is imported when one of its functions is first
used, so that importing nbgrad stays fast. All other names are found by drop_in.py: constants, dtypes, files and
settings are NumPy's.

NumPy's own functions reach the same code by NumPy's protocols (numpy_table.py), so that most functions differentiate
with `import numpy as np`. What NumPy does not ask Tensors about needs this namespace: arrays made of recorded values,
`np.array([x[0], x[1]])`; recorded values written into new arrays, `a = np.zeros(3); a[0] = x[0]`; and
`isinstance(x, np.ndarray)`. Its functions give Tensors also where nothing is recorded. These print and compute like
arrays; `np.asarray` of NumPy itself, `float(x)` and `x.item()` give their values. `nb.differentiable_source` runs code
that cannot be changed with this namespace.

Examples
--------
>>> import nbgrad as nb, nbgrad.numpy as np
>>> def rotated(angle, x):
...     c, s = np.cos(angle), np.sin(angle)
...     return np.sum(np.array([[c, -s], [s, c]]) @ x * np.array([1.0, 0.0]))
>>> nb.grad(rotated)(0.0, np.array([1.0, 2.0]))
np.float64(-2.0)
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as _numpy

NAMES: dict[str, str] = {
    "ufuncs": (
        "add subtract multiply divide true_divide power pow remainder mod fmod floor_divide divmod negative positive "
        "absolute abs fabs sign exp exp2 expm1 log log2 log10 log1p sqrt cbrt square reciprocal sin cos tan arcsin "
        "arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh asin acos atan atan2 asinh acosh atanh hypot "
        "logaddexp logaddexp2 floor ceil rint trunc maximum minimum fmax fmin copysign signbit nextafter equal "
        "not_equal less less_equal greater greater_equal logical_and logical_or logical_xor logical_not bitwise_and "
        "bitwise_or bitwise_xor invert bitwise_not bitwise_invert left_shift bitwise_left_shift right_shift "
        "bitwise_right_shift isnan isinf isfinite deg2rad rad2deg degrees radians conj conjugate float_power heaviside"
    ),
    "elementwise": "where clip nan_to_num sinc round fix isclose allclose array_equal",
    "special": (
        "erf erfc gammaln digamma expit sigmoid logit xlogy softplus relu logsumexp softmax log_softmax i0 kaiser"
    ),
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
    "standard": "__array_api_version__ __array_namespace_info__ finfo from_dlpack iinfo",
    "creation": (
        "eye identity diag diagflat diagonal tri tril triu arange linspace logspace geomspace meshgrid indices vander"
    ),
    "construction": (
        "array asarray asanyarray ascontiguousarray asfortranarray asarray_chkfinite require copy zeros ones empty "
        "full zeros_like ones_like empty_like full_like fromfunction fromiter frombuffer fromstring fromfile loadtxt "
        "genfromtxt bartlett blackman hamming hanning"
    ),
    "concatenators": "r_ c_ mgrid ogrid broadcast nditer",
    "scalar_types": "ndarray isscalar isdtype",
    "linear_algebra": (
        "matmul dot vdot inner outer tensordot vecdot matvec vecmat kron cross multi_dot matrix_power trace"
    ),
    "factorisations": "solve inv inverse solve_triangular cholesky",
    "determinants": "det slogdet",
    "eigenvalues": "eigh eigvalsh eig eigvals",
    "singular_values": "svd svdvals pinv matrix_rank",
    "orthogonal": "qr",
    "norms": "norm vector_norm matrix_norm cond",
    "least_squares": "lstsq tensorsolve tensorinv",
    "matrix_functions": "expm logm sqrtm solve_sylvester",
    "triangular_factors": "lu lu_factor lu_solve cho_factor cho_solve",
    "banded": "solve_banded",
    "subscripts": "einsum",
    "indexing": "take take_along_axis put_along_axis put fill_diagonal",
    "sorting": "sort argsort argpartition partition lexsort searchsorted nonzero flatnonzero argwhere extract compress "
    "sort_complex",
    "sets": "unique unique_all unique_counts unique_inverse unique_values union1d intersect1d setdiff1d setxor1d isin",
    "positions": "ix_ ravel_multi_index unravel_index diag_indices_from tril_indices_from triu_indices_from "
    "ndenumerate",
    "selection": "select choose interp convolve correlate gradient unwrap trim_zeros",
    "applying": "apply_along_axis apply_over_axes vectorize frompyfunc piecewise",
    "histograms": "histogram histogram2d histogramdd histogram_bin_edges digitize",
    "polynomials": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots",
}

_module_of: dict[str, str] = {name: module for module, names in NAMES.items() for name in names.split()}


def home_of(name: str) -> str | None:
    """The module that holds a function of a name."""
    return _module_of.get(name)


def __getattr__(name: str) -> Any:
    # Builtins that NumPy has names for (any, max, bool, ...) may be hidden here.
    if name == "stop_gradient":
        return import_module("..custom", __name__).stop_gradient
    if name == "__all__":
        return __dir__()
    module = _module_of.get(name)
    if module is None and not hasattr(_numpy, name):  # also what Python asks before it imports a file of this folder
        message = f"Neither nbgrad.numpy nor NumPy has {name!r}."
        raise AttributeError(message)
    drop_in = import_module(".drop_in", __name__)
    if module is None:
        found = drop_in.counterpart(name)
    else:
        found = drop_in.own(import_module(f".{module}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    drop_in = import_module(".drop_in", __name__)
    return sorted({*_module_of, "stop_gradient", *drop_in.public_names()})
