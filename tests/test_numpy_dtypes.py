"""The sample calls of tests/surface_rows.py with other arrays: every dtype, empty and 0-d ones, views, infinities and
NaN. NumPy and Tensors give the same values, dtypes and shapes, or both raise."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import nbgrad as nb

from .agreement import agree
from .numpy_surface import NAMESPACES, SAMPLES, TABLES, function_of, named, variables
from .rows import Rows

pytestmark = [
    pytest.mark.unoptimized,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.skipif(
        np.lib.NumpyVersion(np.__version__) < "2.3.0", reason="older versions of NumPy differ for empty and 0-d arrays"
    ),
]


def floats(change: Any) -> Any:
    """A change of float arrays only."""
    return lambda array: change(array) if array.dtype.kind == "f" else array


def _integers(dtype: Any) -> Any:
    return floats(lambda array: np.rint(np.nan_to_num(array) * 3).astype(dtype))


def _spoiled(*values: float) -> Any:
    def change(array: np.ndarray) -> np.ndarray:
        array = array.copy()
        if array.dtype.kind in "fc":
            for k, value in enumerate(values):
                array.flat[1 - 2 * k] = value
        return array

    return change


CHANGES = {
    "complex128": floats(lambda array: array + 1j * np.cos(7 * array)),
    "complex64": lambda a: (
        a.astype(np.complex64)
        if a.dtype.kind == "c"
        else floats(lambda array: (array + 1j * np.cos(7 * array)).astype(np.complex64))(a)
    ),
    "float32": floats(lambda array: array.astype(np.float32)),
    "float16": floats(lambda array: array.astype(np.float16)),
    "int64": _integers(np.int64),
    "int8": _integers(np.int8),
    "bool": floats(lambda array: np.nan_to_num(array) > 0),
    "no rows": lambda array: array[:0] if array.ndim == 2 else array,
    "no columns": lambda array: array[..., :0],
    "0-d": lambda array: np.array(array[(0,) * array.ndim]),
    "reversed": lambda array: array[::-1],
    "transposed memory": lambda array: np.asfortranarray(array),
    "NaN": _spoiled(np.nan),
    "infinite": _spoiled(np.inf, -np.inf),
}
TOLERANCE = {"float32": 3e-4, "complex64": 3e-4, "float16": 4e-2}

LINALG = """
cholesky cond det eig eigh eigvals eigvalsh inv lstsq matrix_norm matrix_power matrix_rank norm pinv qr slogdet solve
svd svdvals tensorinv tensorsolve
"""
EXCEPTIONS = {
    ("complex128", "NumPy drops imaginary parts with a warning"): "astype cov interp",
    ("complex64", "NumPy drops imaginary parts with a warning"): "astype cov interp",
    ("complex64", "the remainder's length depends on rounding"): "polydiv",
    ("float16", "NumPy's linear algebra refuses float16"): LINALG + " poly polyfit roots",
    ("float16", "the remainder's length depends on rounding"): "polydiv",
    ("int8", "float16 is rounded in another order"): "logaddexp",
    ("bool", "NumPy does not subtract booleans"): (
        "cross gradient nanpercentile nanquantile pad percentile ptp quantile unwrap"
    ),
    ("bool", "NumPy does not add booleans up, or multiplies them by floats"): "around histogram polydiv round",
    ("no rows", "NumPy raises IndexError; here they are NaN"): "nanpercentile percentile quantile",
    ("no rows", "a diagonal of different extents is an error"): "einsum",
    ("no rows", "NumPy forgets that it is complex"): "cov",
    ("no columns", "NumPy raises IndexError; here they are NaN"): "nanpercentile percentile quantile",
    ("no columns", "NumPy divides by a zero sum of weights"): "average cov",
    ("no columns", "an empty matrix has no norm here"): "matrix_norm",
    ("no columns", "a transform of nothing is zero"): "irfft",
    ("no columns", "NumPy refuses no points before 2.5"): "interp",
    ("0-d", "NumPy counts samples by len()"): "correlate histogram2d histogramdd polyder polyval fftshift fftn",
    ("0-d", "NumPy has no axis 0 here except with where="): "mean",
    ("NaN", "LAPACK fails, or not"): "cholesky cond eigvalsh lstsq matrix_norm matrix_rank norm pinv svd svdvals",
    ("NaN", "the remainder's length depends on what is not finite"): "polydiv",
    ("infinite", "LAPACK fails, or not"): "cond",
    ("infinite", "elimination meets infinities in another order"): (
        "cholesky det eigvalsh inv lstsq matrix_power pinv solve tensorinv"
    ),
    ("infinite", "which infinite and NaN parts a complex product has is open"): (
        "convolve correlate dot expm1 fft2 gradient ifft2 ifftn matmul outer"
    ),
    ("infinite", "NumPy's histogram adds up what lies outside"): "histogram",
    ("infinite", "the remainder's length depends on what is not finite"): "polydiv",
    ("infinite", "the limit is 0"): "sinc",
    ("infinite", "which differences of infinities are met differs"): "interp pad",
    **dict.fromkeys([(change, "NumPy's memory holds anything, NaN too") for change in CHANGES], "empty_like"),
}
"""(change, why) -> the functions that may differ from NumPy."""


def excused(change: str, name: str) -> str | None:
    """Why a function may differ from NumPy."""
    return next((why for (other, why), names in EXCEPTIONS.items() if other == change and name in names.split()), None)


CASES = [
    (namespace, name, call)
    for namespace, (module, _) in NAMESPACES.items()
    for name, row in TABLES[namespace].items()
    for call in row.calls
    if row.kind in ("derivative", "zero", "integers") and named(module, name) is not None
]


@pytest.mark.parametrize("change", CHANGES)
def test_values(change):
    with Rows() as rows:
        for namespace, name, call in CASES:
            if excused(change, name) is not None:
                continue
            with rows.row(f"{namespace}.{name}, {call}"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                arrays = [CHANGES[change](SAMPLES[variable].copy()) for variable in variables(call)]
                function = function_of(call, named(NAMESPACES[namespace][0], name))
                agree(function, *arrays, tolerance=TOLERANCE.get(change, 1e-9))
    assert rows.count > 400


@pytest.mark.parametrize(
    "function", [lambda b: b**2, lambda b: np.log1p(b**2), np.round, lambda b: b**1, lambda b: b**3]
)
def test_truth_values_as_numbers(function):
    b = np.array([True, False])
    found = nb.jit(function)(b)
    assert found.dtype == function(b).dtype
    np.testing.assert_array_equal(found, function(b))
