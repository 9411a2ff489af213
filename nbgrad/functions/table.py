"""NumPy's functions, and ours in their place: the whole of `__array_function__`.

In: a NumPy function that was called with a Tensor. Out: the result of our function. Called by Tensor.__array_function__
and by Tensor's methods. `FUNCTIONS` says once where each function is; nothing is ever converted to NumPy silently.

"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..errors import DtypeError
from ..process.private_interfaces import NOT_GIVEN
from ..record.tensor import Tensor

FUNCTIONS: dict[str, str] = {
    "elementwise.pointwise": (
        "where .clip nan_to_num sinc .round around fix isclose allclose array_equal array_equiv isposinf isneginf"
    ),
    "elementwise.complex_parts": "real imag angle real_if_close iscomplex isreal iscomplexobj isrealobj",
    "arrays.taking": ".take take_along_axis put_along_axis .put putmask place fill_diagonal copyto",
    "arrays.inspection": (
        "result_type common_type can_cast min_scalar_type shares_memory may_share_memory array2string array_str "
        "array_repr save savetxt savez savez_compressed"
    ),
    "arrays.reductions": (
        ".sum .prod .max .min amax amin .any .all .argmax .argmin .ptp count_nonzero nansum nanprod nanmax nanmin "
        "nanargmax nanargmin"
    ),
    "analysis.statistics": ".mean .var .std average nanmean nanvar nanstd cov corrcoef bincount",
    "analysis.quantiles": "median quantile percentile nanmedian nanquantile nanpercentile",
    "arrays.cumulative": (
        ".cumsum .cumprod nancumsum nancumprod diff ediff1d trapezoid cumulative_sum cumulative_prod trapz=trapezoid"
    ),
    "arrays.shaping": (
        "reshape .ravel .squeeze expand_dims atleast_1d atleast_2d atleast_3d transpose matrix_transpose "
        "linalg.matrix_transpose .swapaxes moveaxis rollaxis broadcast_to broadcast_arrays flip flipud fliplr roll "
        "rot90 shape ndim size copy astype asarray asanyarray=asarray ascontiguousarray asfortranarray array"
    ),
    "arrays.joining": (
        "lib.stride_tricks.sliding_window_view stack concatenate vstack hstack dstack column_stack append block "
        "split array_split hsplit vsplit dsplit tile .repeat resize unstack"
    ),
    "analysis.padding": "pad insert delete",
    "arrays.creation": (
        "zeros_like ones_like empty_like full_like full diag diagflat .diagonal linalg.diagonal=linalg_diagonal "
        "tril triu linspace logspace geomspace meshgrid vander"
    ),
    "linalg.matrix_products": (
        "matmul linalg.matmul .dot vdot inner outer linalg.outer=linalg_outer tensordot linalg.tensordot vecdot "
        "linalg.vecdot kron cross linalg.cross=linalg_cross linalg.multi_dot linalg.matrix_power .trace "
        "linalg.trace=linalg_trace matvec vecmat"
    ),
    "linalg.factorisations": "linalg.solve linalg.inv linalg.cholesky",
    "linalg.determinants": "linalg.det linalg.slogdet",
    "linalg.eigenvalues": "linalg.eigh linalg.eigvalsh linalg.eig linalg.eigvals",
    "linalg.singular_values": "linalg.svd linalg.svdvals linalg.pinv linalg.matrix_rank",
    "linalg.orthogonal": "linalg.qr",
    "linalg.norms": "linalg.norm linalg.vector_norm linalg.matrix_norm linalg.cond",
    "linalg.least_squares": "linalg.lstsq linalg.tensorsolve linalg.tensorinv",
    "analysis.fft_functions": (
        "fft.fft fft.ifft fft.fftn fft.ifftn fft.fft2 fft.ifft2 fft.rfft fft.irfft fft.rfftn fft.irfftn fft.rfft2 "
        "fft.irfft2 fft.hfft fft.ihfft fft.fftshift fft.ifftshift"
    ),
    "linalg.einsum": "einsum einsum_path",
    "arrays.sorting": (
        "sort .argsort partition .argpartition lexsort .searchsorted .nonzero flatnonzero argwhere extract "
        "compress sort_complex"
    ),
    "arrays.sets": (
        "intersect1d isin setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse unique_values in1d"
    ),
    "arrays.positions": "diag_indices_from ix_ ravel_multi_index tril_indices_from triu_indices_from unravel_index",
    "analysis.selection": "select .choose interp convolve correlate gradient unwrap trim_zeros",
    "elementwise.special_functions": "i0",
    "analysis.applying": "apply_along_axis apply_over_axes piecewise",
    "analysis.histograms": "digitize histogram histogram2d histogram_bin_edges histogramdd",
    "analysis.polynomials": "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots",
}
"""The functions in place of NumPy's, by the module that holds them: `name` for `numpy.name`, and `linalg.name` for
`numpy.linalg.name`; `path=function` where the function has another name here. A dot in front: a method of arrays, too.
All names without a dot are names of `nbgrad.numpy`, unless `NAMES` has them."""

NAMES: dict[str, str] = {
    "elementwise.ufunc_functions": (
        "add subtract multiply divide true_divide power pow remainder mod fmod floor_divide divmod negative "
        "positive absolute abs fabs sign exp exp2 expm1 log log2 log10 log1p sqrt cbrt square reciprocal sin cos "
        "tan arcsin arccos arctan arctan2 sinh cosh tanh arcsinh arccosh arctanh asin acos atan atan2 asinh acosh "
        "atanh hypot logaddexp logaddexp2 floor ceil rint trunc maximum minimum fmax fmin copysign signbit "
        "nextafter equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor "
        "logical_not bitwise_and bitwise_or bitwise_xor invert bitwise_not bitwise_invert left_shift "
        "bitwise_left_shift right_shift bitwise_right_shift isnan isinf isfinite deg2rad rad2deg degrees radians "
        "conj conjugate float_power heaviside"
    ),
    "elementwise.special_functions": (
        "erf erfc gammaln digamma expit sigmoid logit xlogy softplus relu logsumexp softmax log_softmax kaiser"
    ),
    "arrays.creation": "eye identity tri arange indices",
    "arrays.construction": (
        "array asarray asanyarray ascontiguousarray asfortranarray asarray_chkfinite require copy zeros ones empty "
        "full zeros_like ones_like empty_like full_like fromfunction fromiter frombuffer fromstring fromfile "
        "loadtxt genfromtxt bartlett blackman hamming hanning"
    ),
    "arrays.concatenators": "r_ c_ mgrid ogrid broadcast",
    "arrays.element_iteration": "nditer",
    "linalg.matrix_products": "matmul vecdot matvec vecmat multi_dot matrix_power",
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
    "arrays.positions": "ndenumerate",
    "analysis.applying": "vectorize frompyfunc",
    "analysis.fft_functions": "fft.fftfreq fft.rfftfreq",
}
"""Names of `nbgrad.numpy` for which NumPy asks no Tensor: ufuncs, which have a protocol of their own; functions that
make arrays; and functions that NumPy does not have there."""


class Entry(NamedTuple):
    """The place of a function: its module, and its name there."""

    module: str
    name: str


_OF_NUMPY: dict[str, Entry] = {}
"""Path within NumPy -> the function in its place."""
_OF_NAME: dict[str, Entry] = {}
"""Name in `nbgrad.numpy` -> the function."""
METHODS: list[str] = []
"""Functions that arrays have as methods of the same name."""
for _module, _words in FUNCTIONS.items():
    for _word in _words.split():
        _path, _, _name = _word.lstrip(".").partition("=")
        _OF_NUMPY[_path] = Entry(_module, _name or _path.rpartition(".")[2])
        _OF_NAME[_path] = _OF_NUMPY[_path]
        if _word[0] == ".":
            METHODS.append(_path)
for _module, _words in NAMES.items():
    _OF_NAME.update({_path: Entry(_module, _path.rpartition(".")[2]) for _path in _words.split()})

IMPLEMENTATIONS: dict[Callable[..., Any], Callable[..., Any]] = {}
"""NumPy function -> the function in its place, as far as modules were imported."""
_waiting = set(FUNCTIONS)


def home_of(name: str) -> Entry | None:
    """The place of the function that `nbgrad.numpy` has under a name, or under a path like "linalg.norm".

    Names that this version of NumPy does not have, or no longer, are missing in `nbgrad.numpy` too.
    """
    home = _OF_NAME.get(name)
    missing = home is not None and home is _OF_NUMPY.get(name) and "." not in name and not hasattr(np, name)
    return None if missing else home


def names_of_functions() -> list[str]:
    """All names that `nbgrad.numpy` has by this table, as far as NumPy, if it had them once, still has them."""
    return [name for name in _OF_NAME if "." not in name and home_of(name) is not None]


def names_in(submodule: str) -> list[str]:
    """The functions of `nbgrad.numpy.linalg` or `fft`."""
    return [path.partition(".")[2] for path in _OF_NAME if path.partition(".")[0] == submodule]


def function_in(submodule: str, name: str) -> Callable[..., Any]:
    """A function of `nbgrad.numpy.linalg` or `fft`.

    Raises
    ------
    AttributeError
        If there is none of that name.
    """
    home = home_of(f"{submodule}.{name}")
    if home is None:
        message = f"nbgrad.numpy.{submodule} has no {name!r}"
        raise AttributeError(message)
    return getattr(module_of(home.module), home.name)


def module_of(name: str) -> ModuleType:
    """A module of functions, imported when it is first asked for."""
    return import_module(f".{name}", __package__)


def find(function: Callable[..., Any]) -> Callable[..., Any] | None:
    """The function in place of one of NumPy's; None if there is none.

    A module is imported when one of its functions is first asked for, so that the first gradient of a process is fast.
    """
    if function not in IMPLEMENTATIONS and _waiting:
        path = f"{getattr(function, '__module__', '')}.{getattr(function, '__name__', '')}".removeprefix("numpy.")
        likely = _OF_NUMPY.get(path)
        if likely is not None:
            _load(likely.module)
        if function not in IMPLEMENTATIONS:
            load_all()
    return IMPLEMENTATIONS.get(function)


def load_all() -> None:
    """Import all modules of functions."""
    for module in sorted(_waiting):
        _load(module)


def _load(module: str) -> None:
    """Enter the functions of a module; those that this NumPy does not have are left out."""
    _waiting.discard(module)
    found = module_of(module)
    for path, entry in _OF_NUMPY.items():
        if entry.module == module:
            original: Any = np
            for part in path.split("."):
                original = getattr(original, part, None)
            if original is not None:
                IMPLEMENTATIONS[original] = getattr(found, entry.name)


def implementation(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function in place of one of NumPy's that is known to be in the table."""
    found = find(function)
    assert found is not None, function
    return found


REFUSED = {
    **dict.fromkeys(("busday_count", "busday_offset", "datetime_as_string", "is_busday"), "dates"),
    **dict.fromkeys(("packbits", "unpackbits"), "bits in bytes"),
}
"""Functions of NumPy that make no sense for Tensors, and the objects on which they work."""


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
    """The result of a NumPy function of Tensors."""
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
