"""The scalar kernels: what each primitive computes on one element.

In:  a primitive's name and a dtype name.  Out: `scalar_kernel` gives a plain Python function on scalars, which runs as
it is and which the compiler turns into machine code (intrinsics.py).  Importing this package compiles nothing and
imports neither Numba nor SciPy.  A kernel's docstring states its error in ULP (units in the last place).
"""

import numpy as np

from . import (
    arithmetic,
    bessel,
    comparison,
    error_function,
    exponential,
    gamma,
    hyperbolic,
    inverse_trigonometric,
    logarithm,
    power,
    random,
    reciprocal_root,
    sinc,
    single,
    single_angles,
    single_hyperbolic,
    trigonometric,
    widened,
)

SCALARS = {
    "add": {"float": arithmetic.add, "int": arithmetic.add, "bool": comparison.either},
    "subtract": {"float": arithmetic.subtract, "int": arithmetic.subtract},
    "multiply": {
        "float": arithmetic.multiply,
        "int": arithmetic.multiply,
        "bool": comparison.both,
    },
    "divide": {"float": arithmetic.divide},
    "power": {
        "float64": power.power,
        "float32": widened.power,
        "int": arithmetic.power_signed,
        "uint": arithmetic.power_unsigned,
    },
    "remainder": {
        "float": arithmetic.remainder_float,
        "int": arithmetic.remainder_signed,
        "uint": arithmetic.remainder_unsigned,
    },
    "fmod": {
        "float": arithmetic.fmod_float,
        "int": arithmetic.fmod_signed,
        "uint": arithmetic.remainder_unsigned,
    },
    "floor_divide": {
        "float": arithmetic.floor_divide_float,
        "int": arithmetic.floor_divide_signed,
        "uint": arithmetic.floor_divide_unsigned,
    },
    "gcd": {"int": arithmetic.gcd_signed, "uint": arithmetic.gcd},
    "lcm": {"int": arithmetic.lcm_signed, "uint": arithmetic.lcm},
    "bit_count": {"int": arithmetic.bit_count_signed, "uint": arithmetic.bit_count},
    "frexp_fraction": {"float": arithmetic.frexp_fraction},
    "frexp_exponent": {"float": arithmetic.frexp_exponent},
    "negative": {"float": arithmetic.negative, "int": arithmetic.negative},
    "positive": arithmetic.positive,
    "absolute": {
        "float": arithmetic.absolute,
        "int": arithmetic.absolute,
        "any": arithmetic.positive,
    },
    "sign": {
        "float": arithmetic.sign_float,
        "int": arithmetic.sign_signed,
        "any": arithmetic.sign_unsigned,
    },
    # Roots, exponentials and logarithms.
    "sqrt": {"float": arithmetic.sqrt},
    "rsqrt": {"float64": reciprocal_root.rsqrt, "float32": reciprocal_root.rsqrt_float32},
    "cbrt": {"float64": power.cbrt, "float32": single.cbrt},
    "exp": {"float64": exponential.exp, "float32": single.exp},
    "exp2": {"float64": exponential.exp2, "float32": single.exp2},
    "expm1": {"float64": exponential.expm1, "float32": single.expm1},
    "log": {"float64": logarithm.log, "float32": single.log},
    "log2": {"float64": logarithm.log2, "float32": single.log2},
    "log10": {"float64": logarithm.log10, "float32": single.log10},
    "log1p": {"float64": logarithm.log1p, "float32": single.log1p},
    "logaddexp": {"float64": logarithm.logaddexp, "float32": single_hyperbolic.logaddexp},
    "logaddexp2": {"float64": logarithm.logaddexp2, "float32": single_hyperbolic.logaddexp2},
    # Circular and hyperbolic functions.
    "sin": {"float64": trigonometric.sin, "float32": single.sin},
    "cos": {"float64": trigonometric.cos, "float32": single.cos},
    "tan": {"float64": trigonometric.tan, "float32": single_angles.tan},
    "arcsin": {"float64": inverse_trigonometric.arcsin, "float32": single_angles.arcsin},
    "arccos": {"float64": inverse_trigonometric.arccos, "float32": single_angles.arccos},
    "arctan": {"float64": inverse_trigonometric.arctan, "float32": single_angles.arctan},
    "arctan2": {"float64": inverse_trigonometric.arctan2, "float32": single_angles.arctan2},
    "sinh": {"float64": hyperbolic.sinh, "float32": single_hyperbolic.sinh},
    "cosh": {"float64": hyperbolic.cosh, "float32": single_hyperbolic.cosh},
    "tanh": {"float64": hyperbolic.tanh, "float32": single.tanh},
    "arcsinh": {"float64": hyperbolic.arcsinh, "float32": single_hyperbolic.arcsinh},
    "arccosh": {"float64": hyperbolic.arccosh, "float32": single_hyperbolic.arccosh},
    "arctanh": {"float64": hyperbolic.arctanh, "float32": single_hyperbolic.arctanh},
    "hypot": {"float64": power.hypot, "float32": widened.hypot},
    # Rounding.
    "floor": {"float": arithmetic.floor, "any": arithmetic.positive},
    "ceil": {"float": arithmetic.ceil, "any": arithmetic.positive},
    "rint": {"float": arithmetic.rint, "any": arithmetic.positive},
    "trunc": {"float": arithmetic.trunc, "any": arithmetic.positive},
    # Extrema, signs, neighbours.
    "maximum": {"any": comparison.maximum, "bool": comparison.either},
    "minimum": {"any": comparison.minimum, "bool": comparison.both},
    "fmax": {"any": comparison.fmax, "bool": comparison.either},
    "fmin": {"any": comparison.fmin, "bool": comparison.both},
    "copysign": {"float": comparison.copysign},
    "signbit": {
        "float64": comparison.signbit_float64,
        "float32": comparison.signbit_float32,
        "int": comparison.signbit_integer,
        "any": comparison.never,
    },
    "nextafter": {
        "float64": comparison.nextafter_float64,
        "float32": comparison.nextafter_float32,
    },
    "maximum_half": {"float32": comparison.maximum_half},
    "minimum_half": {"float32": comparison.minimum_half},
    "nextafter_half": {"float32": comparison.nextafter_half},
    # Comparisons, logic, bits, choice.
    "equal": comparison.equal,
    "not_equal": comparison.not_equal,
    "less": comparison.less,
    "less_equal": comparison.less_equal,
    "greater": comparison.greater,
    "greater_equal": comparison.greater_equal,
    "logical_and": {"any": comparison.logical_and, "bool": comparison.both},
    "logical_or": {"any": comparison.logical_or, "bool": comparison.either},
    "logical_xor": {"any": comparison.logical_xor, "bool": comparison.differ},
    "logical_not": {"any": comparison.logical_not, "bool": comparison.negation},
    "bitwise_and": {"int": comparison.bitwise_and, "bool": comparison.both},
    "bitwise_or": {"int": comparison.bitwise_or, "bool": comparison.either},
    "bitwise_xor": {"int": comparison.bitwise_xor, "bool": comparison.differ},
    "invert": {"int": comparison.invert, "bool": comparison.negation},
    "left_shift": {
        "int": comparison.left_shift,
        "uint": comparison.left_shift_unsigned,
    },
    "right_shift": {
        "int": comparison.right_shift_signed,
        "uint": comparison.right_shift_unsigned,
    },
    "isnan": comparison.isnan,
    "isinf": {"float": comparison.isinf_float, "any": comparison.never},
    "isfinite": {"float": comparison.isfinite_float, "any": comparison.always},
    "select": comparison.select,
    # Special functions.
    "erf": {"float64": error_function.erf, "float32": single.erf},
    "erfc": {"float64": error_function.erfc, "float32": widened.erfc},
    "expit": {"float64": exponential.expit, "float32": single.expit},
    "logit": {"float64": logarithm.logit, "float32": single_hyperbolic.logit},
    "xlogy": {"float64": logarithm.xlogy, "float32": single_hyperbolic.xlogy},
    "gammaln": {"float64": gamma.gammaln, "float32": widened.gammaln},
    "digamma": {"float64": gamma.digamma, "float32": widened.digamma},
    "polygamma": {"float": gamma.polygamma},
    "sinc_derivative": {"float": sinc.sinc_derivative},
    "i0": {"float64": bessel.i0, "float32": widened.i0},
    "i1": {"float64": bessel.i1, "float32": widened.i1},
    "i0e": {"float64": bessel.i0e, "float32": widened.i0e},
    "i1e": {"float64": bessel.i1e, "float32": widened.i1e},
    "random_bits": {"uint64": random.random_bits},
}

OF_HALF = {name: f"{name}_half" for name in ("maximum", "minimum", "nextafter")}
"""Functions that are computed otherwise for float16 than for the float32 numbers that stand for them."""

_FALLBACKS = {"f": ("float",), "i": ("int",), "u": ("uint", "int"), "b": ("bool",)}


def scalar_kernel(name, dtype_name):
    """The kernel of primitive `name` for operands of dtype `dtype_name` (that of the first data operand).

    Looks for the exact dtype, then for its kind ("float", "int", "uint" and then "int", "bool"), then for "any".

    Examples
    --------
    >>> scalar_kernel("multiply", "float32")(2.0, 3.0)
    6.0
    """
    if name not in SCALARS:
        message = f"No scalar kernel is called {name!r}; kernels.SCALARS lists all names."
        raise KeyError(message)
    choices = SCALARS[name]
    if callable(choices):
        return choices
    for key in (dtype_name, *_FALLBACKS.get(np.dtype(dtype_name).kind, ()), "any"):
        if key in choices:
            return choices[key]
    message = f"The scalar kernel {name!r} is not for {dtype_name}, only {', '.join(choices)}; convert first."
    raise KeyError(message)
