"""The functions that kernels may call on numbers, and nbgrad's primitives for them.

In: a Python object, such as `math.sin`. Out: the primitive and the text of the call. Called by kernel_expressions.py
and array_parts.py. Functions are recognised by identity, under whatever name a kernel has them.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from ..kernel_statements import UNKNOWN


class Known(NamedTuple):
    """A function of numbers: the primitive that it is (empty: its derivative is zero), and its text."""

    primitive: str
    text: str


_MATH = (
    "sin cos tan sinh cosh tanh exp expm1 log log2 log10 log1p sqrt erf erfc hypot copysign pow atan2 asin acos atan "
    "asinh acosh atanh lgamma fabs gamma degrees radians fmod"
)
_PRIMITIVES = {
    "pow": "power",
    "atan2": "arctan2",
    "lgamma": "gammaln",
    "fabs": "absolute",
    **{f"a{name}": f"arc{name}" for name in "sin cos tan sinh cosh tanh".split()},
    "gamma": UNKNOWN,
    "degrees": "degrees",
    "radians": "radians",
}
_NUMPY = (
    "sin cos tan sinh cosh tanh exp exp2 expm1 log log2 log10 log1p sqrt cbrt hypot copysign power arctan2 arcsin "
    "arccos arctan arcsinh arccosh arctanh absolute fabs add subtract multiply divide true_divide negative maximum "
    "minimum fmax fmin remainder mod fmod floor_divide square reciprocal logaddexp logaddexp2 deg2rad rad2deg radians "
    "degrees"
)
_ALSO = {
    "true_divide": "divide",
    "mod": "remainder",
    "fabs": "absolute",
    "deg2rad": "radians",
    "rad2deg": "degrees",
}
_SYMBOLS = {
    "radians": "math.radians({0})",
    "degrees": "math.degrees({0})",
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "divide": "{0} / {1}",
    "negative": "-{0}",
    "absolute": "abs({0})",
    "maximum": "max({0}, {1})",
    "minimum": "min({0}, {1})",
    "remainder": "{0} % {1}",
    "floor_divide": "{0} // {1}",
    "square": "{0} * {0}",
    "reciprocal": "1.0 / {0}",
    "power": "{0} ** {1}",
}
_FLAT = "floor ceil trunc rint sign isnan isinf isfinite signbit"
"""Functions whose derivative is zero."""


@functools.cache
def known_functions() -> dict[Any, Known]:
    """All of them, by the functions themselves."""
    found: dict[Any, Known] = {}
    for name in _MATH.split():
        count = 2 if name in ("hypot", "copysign", "pow", "atan2", "fmod") else 1
        text = f"math.{name}({', '.join(f'{{{k}}}' for k in range(count))})"
        found[getattr(math, name)] = Known(_PRIMITIVES.get(name, name), text)
    for name in _NUMPY.split():
        function = getattr(np, name)
        primitive = _ALSO.get(name, name)
        operands = ", ".join(f"{{{k}}}" for k in range(function.nin))
        found[function] = Known(primitive, _SYMBOLS.get(primitive, f"np.{name}({operands})"))
    for name in _FLAT.split():
        found[getattr(np, name)] = Known("", f"np.{name}({{0}})")
    for name in "floor ceil trunc isnan isinf isfinite".split():
        found[getattr(math, name)] = Known("", f"math.{name}({{0}})")
    found[abs] = found[np.abs] = Known("absolute", "abs({0})")
    found[pow] = Known("power", "{0} ** {1}")
    found[round] = found[np.round] = Known("", "np.round({0})")
    for name in "logical_and logical_or logical_not logical_xor".split():
        function = getattr(np, name)
        found[function] = Known("", f"np.{name}({', '.join(f'{{{k}}}' for k in range(function.nin))})")
    return found


OPERATORS: dict[str, Known] = {
    "Add": Known("add", "{0} + {1}"),
    "Sub": Known("subtract", "{0} - {1}"),
    "Mult": Known("multiply", "{0} * {1}"),
    "Div": Known("divide", "{0} / {1}"),
    "FloorDiv": Known("floor_divide", "{0} // {1}"),
    "Mod": Known("remainder", "{0} % {1}"),
    "Pow": Known("power", "{0} ** {1}"),
    "USub": Known("negative", "-{0}"),
    "UAdd": Known("alias", "+{0}"),
    "Not": Known("", "not {0}"),
    "Invert": Known("", "~{0}"),
    "BitAnd": Known("", "{0} & {1}"),
    "BitOr": Known("", "{0} | {1}"),
    "BitXor": Known("", "{0} ^ {1}"),
    "LShift": Known("", "{0} << {1}"),
    "RShift": Known("", "{0} >> {1}"),
    "Lt": Known("", "{0} < {1}"),
    "LtE": Known("", "{0} <= {1}"),
    "Gt": Known("", "{0} > {1}"),
    "GtE": Known("", "{0} >= {1}"),
    "Eq": Known("", "{0} == {1}"),
    "NotEq": Known("", "{0} != {1}"),
    "Is": Known("", "{0} is {1}"),
    "IsNot": Known("", "{0} is not {1}"),
}
"""Python's operators."""
