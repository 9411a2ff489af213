"""NumPy's ufuncs as functions of `nbgrad.numpy`: the usual call, and all of a ufunc's options.

In: array-likes, and the options of a ufunc. Out: Tensors; of xarray's objects, xarray's. Called by users.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...graph.ir import strong
from ...record.as_node import wrap
from ...record.foreign_arrays import computes_itself
from ...record.tensor import Tensor
from .ufunc_protocol import array_ufunc
from .ufuncs import call, quick


def _public(ufunc: np.ufunc) -> Callable[..., Any]:
    def function(*operands: Any, **options: Any) -> Any:
        found = None if options else quick(ufunc, *operands)
        if found is not None:
            return found
        if computes_itself(*operands):
            return ufunc(*operands, **options)
        if not options:
            found = call(ufunc, *operands)
            return wrap(strong(found._node)) if found.__class__ is Tensor and found._node.weak else found
        return array_ufunc(ufunc, "__call__", operands, options)

    function.__name__ = function.__qualname__ = ufunc.__name__
    function.__doc__ = (
        f"As `numpy.{ufunc.__name__}`, elementwise, with its options; gives Tensors (of xarray's objects, xarray's)."
    )
    return function


exp, exp2, expm1, log, log2, log10, log1p = map(
    _public, (np.exp, np.exp2, np.expm1, np.log, np.log2, np.log10, np.log1p)
)
logaddexp, logaddexp2, sqrt, cbrt, square = map(_public, (np.logaddexp, np.logaddexp2, np.sqrt, np.cbrt, np.square))
sin, cos, tan, arcsin, arccos, arctan = map(_public, (np.sin, np.cos, np.tan, np.arcsin, np.arccos, np.arctan))
sinh, cosh, tanh, arcsinh, arccosh, arctanh = map(
    _public, (np.sinh, np.cosh, np.tanh, np.arcsinh, np.arccosh, np.arctanh)
)
arctan2, hypot, deg2rad, rad2deg, radians, degrees = map(
    _public, (np.arctan2, np.hypot, np.deg2rad, np.rad2deg, np.radians, np.degrees)
)
asin, acos, atan, asinh, acosh, atanh, atan2 = arcsin, arccos, arctan, arcsinh, arccosh, arctanh, arctan2
add, subtract, multiply, divide, power = map(_public, (np.add, np.subtract, np.multiply, np.divide, np.power))
true_divide, pow = divide, power
floor_divide, remainder, fmod, divmod, float_power = map(
    _public, (np.floor_divide, np.remainder, np.fmod, np.divmod, np.float_power)
)
mod = remainder
negative, positive, absolute, fabs, sign, reciprocal = map(
    _public, (np.negative, np.positive, np.absolute, np.fabs, np.sign, np.reciprocal)
)
abs = absolute
conjugate = conj = _public(np.conjugate)
floor, ceil, trunc, rint, modf, ldexp, spacing = map(
    _public, (np.floor, np.ceil, np.trunc, np.rint, np.modf, np.ldexp, np.spacing)
)
maximum, minimum, fmax, fmin, heaviside = map(_public, (np.maximum, np.minimum, np.fmax, np.fmin, np.heaviside))
copysign, nextafter, signbit = map(_public, (np.copysign, np.nextafter, np.signbit))
isnan, isinf, isfinite = map(_public, (np.isnan, np.isinf, np.isfinite))
equal, not_equal, less, less_equal, greater, greater_equal = map(
    _public, (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)
)
logical_and, logical_or, logical_xor, logical_not = map(
    _public, (np.logical_and, np.logical_or, np.logical_xor, np.logical_not)
)
bitwise_and, bitwise_or, bitwise_xor, invert = map(_public, (np.bitwise_and, np.bitwise_or, np.bitwise_xor, np.invert))
left_shift, right_shift = map(_public, (np.left_shift, np.right_shift))
bitwise_not = bitwise_invert = invert
bitwise_left_shift, bitwise_right_shift = left_shift, right_shift
