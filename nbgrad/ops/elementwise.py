"""Elementwise functions under MindSpore's names: arithmetic, comparisons, logic, rounding, clipping, selection.

In: Tensors, ndarrays, numbers, which broadcast. Out: Tensors. Called by users and by class_forms.py. Most are one
ufunc, applied with less Python around it than an operator has, by the operators' rules of promotion
(record/promotion.py). Derivatives at kinks: abs, sign and relu have 0 at 0, both operands of maximum and minimum share
it where they are equal, clamp has 1 at its bounds, and what `where` does not take has 0 even where it is infinite or
NaN.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..functions.elementwise import pointwise as numpy_elementwise
from ..functions.elementwise import special_functions as special
from ..functions.elementwise.ufuncs import apply_ufunc, call
from ..graph.builders import cast as cast_node
from ..graph.ir import BOOL, Node
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import real_dtype
from ..record.promotion import common_dtype, convert, promote
from ..record.tensor import Tensor
from .declarations import also, as_numpy
from .docstrings import documented

_single: Callable[..., Node] = apply_ufunc  # pyright: ignore[reportAssignmentType]
"""`apply_ufunc` of a ufunc with one result."""


def _named(function: Callable[..., Any], name: str, says: str) -> Any:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = says
    return function


def _unary(name: str, ufunc: np.ufunc, says: str) -> Callable[[Any], Tensor]:
    """The function of one operand that is a ufunc."""

    def function(input: Any) -> Tensor:
        return wrap(_single(ufunc, input))

    return _named(function, name, f"{says}, elementwise. As `numpy.{ufunc.__name__}`; gives a Tensor.")


def _binary(name: str, ufunc: np.ufunc, says: str) -> Callable[[Any, Any], Tensor]:
    """The function of two operands, which broadcast, that is a ufunc."""

    def function(input: Any, other: Any) -> Tensor:
        return wrap(_single(ufunc, input, other))

    return _named(function, name, f"{says}, elementwise. As `numpy.{ufunc.__name__}`; gives a Tensor.")


def _binary_xy(name: str, ufunc: np.ufunc, says: str) -> Callable[[Any, Any], Tensor]:
    """`_binary` for the functions whose operands MindSpore calls x and y."""

    def function(x: Any, y: Any) -> Tensor:
        return wrap(_single(ufunc, x, y))

    return _named(function, name, f"{says}, elementwise. As `numpy.{ufunc.__name__}`; gives a Tensor.")


# ----- Arithmetic -----


@documented
def add(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """input + alpha * other, elementwise.

    input, other : Tensor, ndarray or number
        They broadcast.
    alpha : number
    """
    return wrap(_single(np.add, input, other if alpha == 1 else _single(np.multiply, alpha, other)))


@also(other="y")
@documented
def sub(input: Any, other: Any, *, alpha: Any = 1) -> Tensor:
    """input - alpha * other, elementwise.

    input, other : Tensor, ndarray or number
        They broadcast.
    alpha : number
    """
    return wrap(_single(np.subtract, input, other if alpha == 1 else _single(np.multiply, alpha, other)))


subtract = sub
mul = multiply = _binary("mul", np.multiply, "input * other")
floor_div = also(x="input", y="other")(_binary_xy("floor_div", np.floor_divide, "The quotient rounded down"))
floor_divide = _binary("floor_divide", np.floor_divide, "The quotient rounded down")
floor_mod = _binary_xy("floor_mod", np.remainder, "The remainder with the sign of the divisor, as Python's %")
remainder = mod = also(other="divisor")(
    _binary("remainder", np.remainder, "The remainder with the sign of the divisor, as Python's %")
)
fmod = _binary("fmod", np.fmod, "The remainder with the sign of the dividend, as C's fmod")
truncate_mod = _binary_xy("truncate_mod", np.fmod, "The remainder with the sign of the dividend, as C's fmod")
maximum = _binary("maximum", np.maximum, "The greater of two; NaN wins")
minimum = _binary("minimum", np.minimum, "The lesser of two; NaN wins")
fmax = _binary("fmax", np.fmax, "The greater of two; NaN loses")
fmin = _binary("fmin", np.fmin, "The lesser of two; NaN loses")
hypot = _binary("hypot", np.hypot, "sqrt(input**2 + other**2), without overflow")
logaddexp = _binary("logaddexp", np.logaddexp, "log(exp(input) + exp(other)), without overflow")
logaddexp2 = _binary("logaddexp2", np.logaddexp2, "log2(2**input + 2**other), without overflow")
copysign = also(y="other")(_binary_xy("copysign", np.copysign, "The size of x with the sign of y"))
nextafter = _binary("nextafter", np.nextafter, "The next number after input towards other")
atan2 = arctan2 = _binary("atan2", np.arctan2, "The angle of the point (other, input)")

exp = _unary("exp", np.exp, "e to the power of input")
exp2 = _unary("exp2", np.exp2, "2 to the power of input")
expm1 = _unary("expm1", np.expm1, "exp(input) - 1, accurate near 0")
log = _unary("log", np.log, "The natural logarithm")
log2 = _unary("log2", np.log2, "The logarithm to base 2")
log10 = _unary("log10", np.log10, "The logarithm to base 10")
log1p = _unary("log1p", np.log1p, "log(1 + input), accurate near 0")
sqrt = _unary("sqrt", np.sqrt, "The square root")
square = _unary("square", np.square, "input * input")
abs = absolute = _unary("abs", np.absolute, "The absolute value")
neg = negative = _unary("neg", np.negative, "-input")
positive = _unary("positive", np.positive, "The input itself")
sign = _unary("sign", np.sign, "-1, 0 or 1")
sin = _unary("sin", np.sin, "The sine")
cos = _unary("cos", np.cos, "The cosine")
tan = _unary("tan", np.tan, "The tangent")
asin = arcsin = _unary("asin", np.arcsin, "The inverse sine")
acos = arccos = _unary("acos", np.arccos, "The inverse cosine")
atan = arctan = _unary("atan", np.arctan, "The inverse tangent")
sinh = _unary("sinh", np.sinh, "The hyperbolic sine")
cosh = _unary("cosh", np.cosh, "The hyperbolic cosine")
tanh = _unary("tanh", np.tanh, "The hyperbolic tangent")
asinh = arcsinh = _unary("asinh", np.arcsinh, "The inverse hyperbolic sine")
acosh = arccosh = _unary("acosh", np.arccosh, "The inverse hyperbolic cosine")
atanh = arctanh = _unary("atanh", np.arctanh, "The inverse hyperbolic tangent")
floor = _unary("floor", np.floor, "The greatest integer that is not greater; its derivative is 0")
ceil = _unary("ceil", np.ceil, "The least integer that is not less; its derivative is 0")
trunc = fix = _unary("trunc", np.trunc, "The integer part, towards 0; its derivative is 0")
rad2deg = _unary("rad2deg", np.rad2deg, "Radians as degrees")
deg2rad = _unary("deg2rad", np.deg2rad, "Degrees as radians")


@documented
def pow(input: Any, exponent: Any) -> Tensor:
    """`input` to the power of `exponent`, elementwise.

    The derivative of `x ** 0` is 0, at 0 too. That with respect to the exponent is 0 at base 0, NaN at negative bases.

    input, exponent : Tensor, ndarray or number
        They broadcast. Integers to a negative integer power are an error.

    >>> nb.ops.pow(nb.Tensor([2.0, 3.0]), 2).tolist()
    [4.0, 9.0]
    """
    return wrap(_single(np.power, input, exponent))


def _truncated_quotient(x: Any, y: Any) -> Tensor:
    nodes = promote([as_node(x), as_node(y)])
    if nodes[0].dtype.kind == "f":
        return wrap(_single(np.trunc, call(np.divide, *nodes)))
    # Integers: what is left after the remainder divides without rounding.
    return wrap(_single(np.floor_divide, _single(np.subtract, nodes[0], _single(np.fmod, *nodes)), nodes[1]))


@documented
def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Tensor:
    """Quotient, elementwise.

    input, other : Tensor, ndarray or number
        They broadcast.
    rounding_mode : {None, "floor", "trunc"}
        None for the true quotient, which is floating point; or rounded down, or towards 0, in the operands' dtype. The
        rounded ones have derivative 0.
    ArgumentError : If the rounding mode does not exist.

    >>> nb.ops.div(nb.Tensor([-7, 7]), 2, rounding_mode="trunc").tolist()
    [-3, 3]
    """
    if rounding_mode is None:
        return wrap(_single(np.divide, input, other))
    if rounding_mode == "floor":
        return wrap(_single(np.floor_divide, input, other))
    if rounding_mode == "trunc":
        return _truncated_quotient(input, other)
    message = f"rounding_mode must be None, 'floor' or 'trunc', but got {rounding_mode!r}."
    raise ArgumentError(message)


divide = div
true_divide = also(input="dividend", other="divisor")(
    _binary("true_divide", np.divide, "The quotient, which is floating point")
)


def truncate_div(x: Any, y: Any) -> Tensor:
    """The quotient rounded towards 0, elementwise; its derivative is 0."""
    return _truncated_quotient(x, y)


def rsqrt(input: Any) -> Tensor:
    """1 / sqrt(input), elementwise."""
    return call(np.divide, 1, _single(np.sqrt, input))


def reciprocal(input: Any) -> Tensor:
    """1 / input, elementwise; integers give floats."""
    return wrap(_single(np.divide, 1, input))


inv = reciprocal


def frac(x: Any) -> Tensor:
    """The fraction that `trunc` drops, with the sign of x, elementwise; its derivative is 1."""
    return wrap(_single(np.fmod, x, 1))


@as_numpy(numpy_elementwise.round, "To a number of decimals, halves to even, elementwise; its derivative is 0.")
def round(input: Any, *, decimals: int = 0) -> Tensor: ...


def addn(x: Sequence[Any]) -> Tensor:
    """The sum of a list or tuple of Tensors, elementwise."""
    if isinstance(x, Tensor | np.ndarray) or not len(x):
        message = f"addn needs a list or tuple of at least one Tensor, but got {x!r:.80}."
        raise ArgumentError(message)
    total = as_node(x[0])
    for other in x[1:]:
        total = _single(np.add, total, other)
    return wrap(total)


@documented
def lerp(input: Any, end: Any, weight: Any) -> Tensor:
    """input + weight * (end - input), elementwise: a point between two arrays, differentiable in all three.

    input, end, weight : Tensor, ndarray or number
        They broadcast.

    >>> nb.ops.lerp(nb.Tensor([1.0, 2.0]), nb.Tensor([3.0, 6.0]), 0.5).tolist()
    [2.0, 4.0]
    """
    return wrap(_single(np.add, input, _single(np.multiply, weight, _single(np.subtract, end, input))))


def addcmul(input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """input + value * tensor1 * tensor2, elementwise."""
    return wrap(_single(np.add, input, _single(np.multiply, value, _single(np.multiply, tensor1, tensor2))))


def addcdiv(input: Any, tensor1: Any, tensor2: Any, value: Any = 1) -> Tensor:
    """input + value * tensor1 / tensor2, elementwise."""
    return wrap(_single(np.add, input, _single(np.multiply, value, _single(np.divide, tensor1, tensor2))))


@as_numpy(special.xlogy, "input * log(other), elementwise, and 0 where input is 0.")
def xlogy(input: Any, other: Any) -> Tensor: ...


def heaviside(input: Any, values: Any) -> Tensor:
    """0 for negative numbers, 1 for positive ones, `values` at 0, elementwise."""
    return wrap(_single(np.heaviside, input, values))


@as_numpy(
    numpy_elementwise.sinc, "sin(pi x) / (pi x), and 1 at 0, elementwise; all derivatives are exact at 0 as well."
)
def sinc(input: Any) -> Tensor: ...


# ----- Comparisons and logic -----

equal = eq = _binary("equal", np.equal, "Whether two are equal; NaN equals nothing")
not_equal = ne = _binary("not_equal", np.not_equal, "Whether two differ")
less = lt = _binary("less", np.less, "input < other")
less_equal = le = _binary("less_equal", np.less_equal, "input <= other")
greater = gt = _binary("greater", np.greater, "input > other")
greater_equal = ge = _binary("greater_equal", np.greater_equal, "input >= other")
logical_and = _binary("logical_and", np.logical_and, "Whether both are true; numbers are true unless they are 0")
logical_or = _binary("logical_or", np.logical_or, "Whether one is true; numbers are true unless they are 0")
logical_xor = _binary("logical_xor", np.logical_xor, "Whether exactly one is true")
logical_not = _unary("logical_not", np.logical_not, "Whether it is false or 0")
bitwise_and = _binary("bitwise_and", np.bitwise_and, "The bits that both integers have")
bitwise_or = _binary("bitwise_or", np.bitwise_or, "The bits that one of two integers has")
bitwise_xor = _binary("bitwise_xor", np.bitwise_xor, "The bits that exactly one of two integers has")
bitwise_left_shift = _binary("bitwise_left_shift", np.left_shift, "The bits of an integer moved left")
bitwise_right_shift = _binary("bitwise_right_shift", np.right_shift, "The bits of an integer moved right")
isnan = _unary("isnan", np.isnan, "Whether it is NaN")
isinf = _unary("isinf", np.isinf, "Whether it is infinite")
isfinite = _unary("isfinite", np.isfinite, "Whether it is neither infinite nor NaN")
signbit = _unary("signbit", np.signbit, "Whether the sign is negative, of -0.0 too")


@also(other="x2")
@as_numpy(numpy_elementwise.isclose, "Whether elements differ by at most `atol + rtol * abs(other)`.")
def isclose(input: Any, other: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Tensor: ...
@as_numpy(
    numpy_elementwise.allclose, "Whether all elements differ by at most `atol + rtol * abs(other)`; a Python bool."
)
def allclose(input: Any, other: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> bool: ...


@documented
def depend(value: Any, expr: Any) -> Any:
    """`value`; MindSpore's way to say that `expr`, such as an optimizer's update, comes first: here Python's order.

    >>> nb.ops.depend(1.5, "done before")
    1.5
    """
    del expr
    return value


def is_tensor(obj: Any) -> bool:
    """Whether an object is a Tensor."""
    return isinstance(obj, Tensor)


# ----- Limits and selection -----


@documented
def clamp(input: Any, min: Any = None, max: Any = None) -> Tensor:
    """Elements limited to an interval; the derivative is 1 inside and at both bounds, 0 outside.

    min, max : Tensor, ndarray, number or None
        The bounds, which broadcast; None for no bound, but not for both. Where `min` is above `max`, the result is
        `max`.
    ArgumentError : If both bounds are None.

    >>> nb.ops.clamp(nb.Tensor([-2.0, 0.5, 3.0]), min=-1, max=1).tolist()
    [-1.0, 0.5, 1.0]
    """
    if min is None and max is None:
        message = "clamp and clip need a lower bound, an upper bound, or both, but both are None."
        raise ArgumentError(message)
    return numpy_elementwise.clip(input, min, max)


clip = clamp


def clip_by_value(x: Any, clip_value_min: Any = None, clip_value_max: Any = None) -> Any:
    """Elements limited to an interval, as `clamp`; a list or tuple of Tensors gives the same of each."""
    if isinstance(x, list | tuple):
        return type(x)([clamp(value, clip_value_min, clip_value_max) for value in x])
    return clamp(x, clip_value_min, clip_value_max)


@as_numpy(numpy_elementwise.where)
def where(condition: Any, input: Any, other: Any) -> Tensor:
    """Elements of `input` where a condition is true, of `other` elsewhere.

    condition : Tensor, ndarray or bool
        Numbers are true unless they are 0.
    input, other : Tensor, ndarray or number
        All three broadcast. What is not taken has derivative 0, even where it is infinite or NaN.

    >>> x = nb.Tensor([0.0, 1.0])
    >>> nb.ops.where(x > 0, nb.ops.log(x), 0.0).tolist()
    [0.0, 0.0]
    """
    ...


select = where


@documented
def masked_fill(input_x: Any, mask: Any, value: Any) -> Tensor:
    """A value where a mask is true, the array elsewhere; the dtype stays.

    mask : Tensor or ndarray of bool
        It broadcasts with `input_x`.
    value : number or Tensor
        Differentiable.
    DtypeError : If the mask is not boolean, or the value does not fit the array's dtype.

    >>> nb.ops.masked_fill(nb.Tensor([1.0, 2.0]), nb.Tensor([True, False]), -1).tolist()
    [-1.0, 2.0]
    """
    node, chosen, filling = as_node(input_x), as_node(mask), as_node(value)
    if chosen.dtype != BOOL:
        message = f"masked_fill needs a boolean mask, but its dtype is {chosen.dtype}. Use mask != 0."
        raise DtypeError(message)
    if not np.can_cast(common_dtype([node, filling]), node.dtype, "same_kind"):
        message = f"The value {value!r:.40} does not fit an array of {node.dtype}. Cast the array with ops.cast first."
        raise DtypeError(message)
    return numpy_elementwise.where(Tensor._of(chosen), Tensor._of(convert(filling, node.dtype)), Tensor._of(node))


def nan_to_num(input: Any, nan: Any = None, posinf: Any = None, neginf: Any = None) -> Tensor:
    """NaN and infinities replaced by numbers (0 and the largest finite ones), where the derivative is 0."""
    return numpy_elementwise.nan_to_num(input, True, 0.0 if nan is None else nan, posinf, neginf)


@documented
def cast(input: Any, dtype: Any) -> Tensor:
    """The array in another dtype.

    dtype : dtype
        Of nbgrad or NumPy, or its name. Gradients pass between floating dtypes; integers and booleans stop them.

    >>> nb.ops.cast(nb.Tensor([1.7, -1.7]), "int32").tolist()
    [1, -1]
    """
    return wrap(cast_node(as_node(input), real_dtype(dtype)))
