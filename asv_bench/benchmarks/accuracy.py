"""Accuracy over time: errors in units of the last place, of sums, and the digits of certified regressions."""

import math

import numpy as np

import nbgrad as nb
from nbgrad.nist import datasets, report

from .libraries import LIBRARIES
from .measured import needed
from .tasks import Task

RANGES = {
    "exp": (-80.0, 80.0),
    "expm1": (-3.0, 3.0),
    "log": (1e-30, 1e30),
    "log1p": (-0.9, 10.0),
    "sin": (-100.0, 100.0),
    "cos": (-100.0, 100.0),
    "tan": (-100.0, 100.0),
    "tanh": (-5.0, 5.0),
    "sinh": (-20.0, 20.0),
    "arctan": (-10.0, 10.0),
    "arcsinh": (-10.0, 10.0),
    "cbrt": (-1e5, 1e5),
}


class Functions:
    """The largest error of 200 000 values against NumPy's next wider type."""

    params = (tuple(RANGES), ("float32", "float64"), ("nbgrad", "numpy", "jax", "torch"))
    param_names = ("function", "dtype", "library")
    unit = "ULP"

    def setup(self, function, dtype, library):
        needed(library)
        if dtype == "float64" and np.finfo(np.longdouble).nmant <= 52:
            raise NotImplementedError("there is no wider type here")
        if library == "torch" and function == "cbrt":
            raise NotImplementedError("PyTorch has no cbrt")
        x = np.random.default_rng(0).uniform(*RANGES[function], 200_000).astype(dtype)
        task = Task("", lambda xp, x: getattr(xp, function)(x), lambda rng: (x,), what="value")
        call, outputs = LIBRARIES[library]().prepare(task)
        self.x, (self.found,) = x, outputs(call())

    def track_largest_error(self, function, dtype, library):
        wide = np.float64 if dtype == "float32" else np.longdouble
        right = getattr(np, function)(self.x.astype(wide))
        return round(float(np.max(np.abs(self.found - right) / np.spacing(np.abs(self.found)).astype(wide))), 3)


class Sums:
    """The error of a sum of a million numbers of one sign, in units of the last place of the result."""

    params = ("float32", "float64")
    param_names = ("dtype",)
    unit = "ULP"

    def track_error(self, dtype):
        x = np.random.default_rng(0).random(1_000_000).astype(dtype)
        found, right = nb.jit(np.sum)(x), math.fsum(x)
        return round(float(abs(float(found) - right) / np.spacing(found)), 3)


class Certified:
    """The fewest digits of NIST's certified values that a fit agrees with (eleven are certified)."""

    params = tuple(dataset.name for dataset in datasets.load())
    param_names = ("dataset",)
    unit = "digits"
    timeout = 120

    def track_digits(self, name):
        dataset = next(d for d in datasets.load() if d.name == name)
        result = report.report(dataset)
        return round(min(agree for found in result.fits for *_, agree in report.rows(result, found)), 2)
