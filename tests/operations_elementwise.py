"""Rows for NumPy's elementwise functions, and for those of other libraries that are one line of them."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from .operation import Argument, Operation, apart, between, fixed, given, operation, real

SHAPES = [(3, 4), (), (2, 1, 4), (0, 3)]


def unary(name: str, peers: str = "", low: float = -2.0, high: float = 2.0, **options: Any) -> Operation:
    """A ufunc of one operand, on several shapes."""
    samples = [real(*shape, low=low, high=high) for shape in SHAPES]
    return operation(name, getattr(np, name), *samples, peers=peers, **options)


def pairs(first: Argument, second: Argument) -> list[tuple[Argument, Argument]]:
    """Two operands of shapes that broadcast in all ways."""
    shapes = [((3, 4), (3, 4)), ((3, 1), (1, 4)), ((), (4,)), ((2, 3, 4), (2, 1, 4)), ((0, 3), (3,))]
    return [(Argument(a, first.draw), Argument(b, second.draw)) for a, b in shapes]


def binary(name: str, peers: str, first: Argument | None = None, second: Argument | None = None, **options: Any):
    """A ufunc of two operands, on shapes that broadcast."""
    x, y = first or real(), second or first or real()
    return operation(name, getattr(np, name), *pairs(x, y), peers=peers, **options)


POSITIVE = between(0.3, 2.5)

UNARY = [
    unary("negative", "jax:neg jax:negative jax:__neg__ torch:neg", complexes=True),
    unary("positive", "jax:positive jax:__pos__ torch:positive", complexes=True),
    unary("absolute", "jax:abs jax:__abs__ torch:abs", complexes=True),
    unary("fabs", "jax:fabs"),
    unary("sign", "jax:sign torch:sign"),
    unary("floor", "jax:floor torch:floor"),
    unary("ceil", "jax:ceil torch:ceil"),
    unary("rint", "jax:rint"),
    unary("trunc", "jax:trunc torch:trunc"),
    unary("exp", "jax:exp torch:exp", complexes=True),
    unary("exp2", "jax:exp2 torch:exp2", complexes=True),
    unary("expm1", "jax:expm1 torch:expm1", complexes=True),
    unary("log", "jax:log torch:log", low=0.0, complexes=True),
    unary("log2", "jax:log2 torch:log2", low=0.0, complexes=True),
    unary("log10", "jax:log10 torch:log10", low=0.0, complexes=True),
    unary("log1p", "jax:log1p torch:log1p", low=-0.5, complexes=True),
    unary("sqrt", "jax:sqrt torch:sqrt", low=0.0, complexes=True),
    unary("cbrt", "jax:cbrt"),
    unary("square", "jax:square torch:square", complexes=True),
    unary("reciprocal", "jax:reciprocal torch:reciprocal", low=0.5, complexes=True),
    unary("sin", "jax:sin torch:sin", complexes=True),
    unary("cos", "jax:cos torch:cos", complexes=True),
    unary("tan", "jax:tan torch:tan", low=-1, high=1, complexes=True),
    unary("arcsin", "jax:asin jax:arcsin torch:asin", low=-0.8, high=0.8, complexes=True),
    unary("arccos", "jax:acos jax:arccos torch:acos", low=-0.8, high=0.8, complexes=True),
    unary("arctan", "jax:atan jax:arctan torch:atan", complexes=True),
    unary("sinh", "jax:sinh torch:sinh", complexes=True),
    unary("cosh", "jax:cosh torch:cosh", complexes=True),
    unary("tanh", "jax:tanh torch:tanh", complexes=True),
    unary("arcsinh", "jax:arcsinh jax:asinh torch:asinh", complexes=True),
    unary("arccosh", "jax:arccosh jax:acosh torch:acosh", low=1.5, high=4, complexes=True, tolerance=1e-6),
    unary("arctanh", "jax:arctanh jax:atanh torch:atanh", low=-0.8, high=0.8, complexes=True, tolerance=1e-6),
    unary("deg2rad", "jax:deg2rad torch:deg2rad"),
    unary("rad2deg", "jax:rad2deg torch:rad2deg"),
    unary("conjugate", "jax:conj jax:conjugate torch:conj torch:conj_physical torch:resolve_conj", complexes=True),
    unary("sinc", "jax:sinc torch:sinc", complexes=True),
    unary("i0", "jax:i0 torch:i0", dtypes=("float32",)),
    unary("nan_to_num", "torch:nan_to_num"),
    unary("real", "jax:real torch:real", complexes=True),
    unary("imag", "jax:imag torch:imag", complexes=True, order=1),
    unary("angle", "jax:angle torch:angle", complexes=True),
    unary("fix", ""),
    unary("copy", "torch:clone torch:contiguous torch:to torch:alias_copy torch:resolve_neg", complexes=True),
]

PREDICATES = [
    *[
        unary(name, f"jax:{name}", order=0)
        for name in "isfinite isinf isnan isneginf isposinf signbit logical_not iscomplex isreal".split()
    ],
    operation("isrealobj", lambda x: np.asarray(np.isrealobj(x)), real(3), peers="jax:isrealobj", order=0, dtypes=()),
    operation("spacing", np.spacing, real(3, 4), real(), peers="jax:spacing", order=0),
    *[
        binary(name, f"jax:{name} {more}", order=0)
        for name, more in {
            "equal": "jax:__eq__",
            "not_equal": "jax:__ne__",
            "less": "jax:__lt__",
            "less_equal": "jax:__le__",
            "greater": "jax:__gt__",
            "greater_equal": "jax:__ge__",
            "logical_and": "",
            "logical_or": "",
            "logical_xor": "",
            "isclose": "",
        }.items()
    ],
    operation(
        "comparisons by operators",
        lambda x, y: (x == y, x != y, x < y, x <= y, x > y, x >= y),
        (given([1.0, 2.0, 3.0]), given([1.0, 3.0, 2.0])),
        peers="jax:__eq__ jax:__ne__ jax:__lt__ jax:__le__ jax:__gt__ jax:__ge__",
        order=0,
        dtypes=(),
    ),
    operation(
        "array_equal",
        lambda x, y: np.asarray(np.array_equal(x, y)),
        (real(3), real(3)),
        peers="jax:array_equal",
        order=0,
        dtypes=(),
    ),
    operation(
        "array_equiv",
        lambda x, y: np.asarray(np.array_equiv(x, y)),
        (real(3), real(3)),
        peers="jax:array_equiv",
        order=0,
        dtypes=(),
    ),
]

BINARY = [
    binary("add", "jax:add jax:__add__ torch:add", complexes=True),
    binary("subtract", "jax:sub jax:subtract jax:__sub__ torch:sub", complexes=True),
    binary("multiply", "jax:mul jax:multiply jax:__mul__ torch:mul", complexes=True),
    binary("divide", "jax:div jax:divide torch:div torch:true_divide", second=POSITIVE, complexes=True),
    binary("true_divide", "jax:true_divide jax:__truediv__ torch:true_divide", second=POSITIVE, complexes=True),
    binary("power", "jax:pow jax:power jax:__pow__ torch:pow", POSITIVE, between(-2, 2), complexes=True),
    binary("float_power", "jax:float_power torch:float_power", POSITIVE, between(-2, 2), complexes=True, dtypes=()),
    binary("maximum", "jax:max jax:maximum torch:maximum", apart(), apart(shift=0.17)),
    binary("minimum", "jax:min jax:minimum torch:minimum", apart(), apart(shift=0.17)),
    binary("fmax", "jax:fmax torch:fmax", apart(), apart(shift=0.17)),
    binary("fmin", "jax:fmin torch:fmin", apart(), apart(shift=0.17)),
    binary("hypot", "jax:hypot torch:hypot"),
    binary("arctan2", "jax:atan2 jax:arctan2 torch:atan2"),
    binary("copysign", "jax:copysign torch:copysign"),
    binary("logaddexp", "jax:logaddexp torch:logaddexp"),
    binary("logaddexp2", "jax:logaddexp2 torch:logaddexp2"),
    binary("heaviside", "jax:heaviside"),
    binary("nextafter", "jax:nextafter torch:nextafter"),
    *[
        operation(
            name,
            function,
            (given([[7.3, -5.2, 4.1], [-3.7, 9.9, 0.8]]), given([2.0, 3.1, -1.5])),
            (given(7.3), given([2.0, 3.1])),
            peers=peers,
            tolerance=1e-6,
        )
        for name, function, peers in [
            ("remainder", np.remainder, "jax:remainder jax:mod jax:__mod__ torch:remainder"),
            ("fmod", np.fmod, "jax:fmod jax:rem torch:fmod"),
            ("floor_divide", np.floor_divide, "jax:floor_divide jax:__floordiv__"),
            ("divmod", np.divmod, "jax:divmod"),
        ]
    ],
    operation(
        "ldexp",
        lambda x: np.ldexp(x, np.array([-2, 0, 3, 1])),
        real(3, 4),
        peers="jax:testGradLdexp jax:ldexp torch:ldexp",
    ),
    operation("frexp", np.frexp, real(3, 4), real(), peers="jax:testGradFrexp torch:frexp"),
    operation("modf", np.modf, real(3, 4), real(), peers="jax:modf torch:frac"),
]

OPERATORS = [
    operation(
        f"operator {function.__name__}",
        lambda x, y, f=function: (f(x, y), f(x, 2.0), f(3.0, y)),
        (between(0.6, 2.4, 3, 4), between(0.6, 2.4, 4)),
        peers=peers,
        complexes=function not in (operator.mod, operator.floordiv),
        tolerance=1e-6,
    )
    for function, peers in [
        (operator.add, "jax:__add__ jax:__radd__ torch:__radd__"),
        (operator.sub, "jax:__sub__ jax:__rsub__ torch:__rsub__ torch:rsub"),
        (operator.mul, "jax:__mul__ jax:__rmul__ torch:__rmul__"),
        (operator.truediv, "jax:__truediv__ jax:__rtruediv__ torch:__rdiv__"),
        (operator.pow, "jax:__pow__ jax:__rpow__ torch:__rpow__"),
    ]
] + [
    operation(
        f"operator {function.__name__}",
        lambda x, y, f=function: (f(x, y), f(x, 1.6), f(7.1, y)),
        (given([7.3, -5.2, 4.1]), given([2.0, 3.1, -1.5])),
        peers=peers,
        tolerance=1e-6,
    )
    for function, peers in [
        (operator.mod, "jax:__mod__ jax:__rmod__ torch:__rmod__"),
        (operator.floordiv, "jax:__floordiv__ jax:__rfloordiv__"),
    ]
]

_INTEGERS, _OTHERS = fixed([[6, -4, 9], [12, 7, 0]]), fixed([4, 3, 2])
INTEGERS = [
    *[
        operation(name, getattr(np, name), _INTEGERS, peers=peers, order=0, dtypes=())
        for name, peers in [
            ("invert", "jax:invert jax:bitwise_invert jax:bitwise_not jax:__invert__"),
            ("bitwise_count", "jax:bitwise_count"),
        ]
    ],
    *[
        operation(name, getattr(np, name), (_INTEGERS, _OTHERS), peers=peers, order=0, dtypes=())
        for name, peers in [
            ("bitwise_and", "jax:bitwise_and"),
            ("bitwise_or", "jax:bitwise_or"),
            ("bitwise_xor", "jax:bitwise_xor"),
            ("left_shift", "jax:__lshift__ jax:__rlshift__"),
            ("right_shift", "jax:__rshift__ jax:__rrshift__"),
            ("gcd", "jax:gcd"),
            ("lcm", "jax:lcm"),
        ]
    ],
]

COMPOSED = [
    operation(
        "around",
        lambda x: (np.round(x), np.round(x, 1)),
        given([0.71, -1.41, 2.31]),
        peers="jax:round torch:round",
        tolerance=1e-6,
    ),
    operation("clip", lambda x: np.clip(x, -1, 1), real(3, 4), real(), peers="torch:clamp"),
    operation("clip from below", lambda x: np.clip(x, -1, None), real(3, 4), peers="torch:clamp_min"),
    operation("clip from above", lambda x: np.clip(x, None, 1), real(3, 4), peers="torch:clamp_max"),
    operation(
        "clip between arrays",
        np.clip,
        (apart(2, 3), apart(3, shift=-1.03), apart(3, shift=1.17)),
        (given(0.3), given(-1.0), given(1.0)),
        peers="jax:clamp torch:clamp",
    ),
    operation(
        "where",
        lambda x, y: np.where([[True, False, True, False]], x * x, y),
        (real(3, 4), real(4)),
        (real(), real(4)),
        peers="jax:testSelectGrad torch:where",
        complexes=True,
    ),
    operation(
        "where of a comparison",
        lambda x, y: np.where(x > y, x * y, y),
        (apart(3, 4), apart(4, shift=0.17)),
        peers="torch:where",
    ),
    operation(
        "rsqrt", lambda x: 1 / np.sqrt(x), real(3, 4, low=0), real(low=0), peers="jax:rsqrt torch:rsqrt", complexes=True
    ),
    operation("frac", lambda x: x - np.trunc(x), real(3, 4), real(), peers="torch:frac"),
    operation("sgn", lambda x: x / np.abs(x), real(3, 4), real(), peers="torch:sgn", complexes=True),
    operation(
        "logistic",
        lambda x: 1 / (1 + np.exp(-x)),
        real(3, 4),
        real(),
        peers="jax:logistic torch:sigmoid",
        complexes=True,
    ),
    operation(
        "lerp",
        lambda a, b, w: a + w * (b - a),
        (real(3, 4), real(4), between(0, 1, 3, 1)),
        peers="torch:lerp",
        complexes=True,
    ),
    operation(
        "addcmul",
        lambda a, b, c: a + 0.5 * b * c,
        (real(3, 4), real(4), real(3, 1)),
        peers="torch:addcmul",
        complexes=True,
    ),
    operation(
        "addcdiv",
        lambda a, b, c: a - 2 * b / c,
        (real(3, 4), real(4), real(3, 1, low=0.5)),
        peers="torch:addcdiv",
        complexes=True,
    ),
    operation(
        "complex of parts",
        lambda a, b: a + 1j * b,
        (real(3, 1), real(4)),
        (real(), real()),
        peers="jax:complex torch:complex",
        dtypes=(),
    ),
    operation(
        "polar form", lambda r, t: r * np.exp(1j * t), (real(3, low=0.5), real(3)), peers="torch:polar", dtypes=()
    ),
    operation(
        "real and imaginary parts",
        lambda z: np.stack([z.real, z.imag], -1),
        real(3),
        peers="torch:view_as_real",
        complexes=True,
    ),
    operation(
        "pairs as complex numbers",
        lambda p: p[..., 0] + 1j * p[..., 1],
        real(3, 2),
        peers="torch:view_as_complex",
        dtypes=(),
    ),
    operation(
        "conversions of dtype",
        lambda x: (x.astype(np.float64) * 2, x.astype(np.float32).astype(np.float64), x.astype(np.complex128) * 1j),
        real(2, 3),
        peers=(
            "jax:testConvertElementTypeGrad torch:float torch:double torch:half torch:cfloat torch:cdouble torch:chalf"
        ),
        dtypes=(),
        order=1,
        tolerance=1e-4,
    ),
    operation(
        "product of two dtypes",
        lambda x, y: x.astype(np.float32) * y,
        (real(2, 3, 4), real(2, 1, 4)),
        peers="jax:testOpGradOutDtype",
        dtypes=(),
        order=1,
        tolerance=1e-4,
    ),
    operation(
        "special values",
        lambda x: (
            np.sinh(x),
            np.cosh(x),
            np.tanh(x),
            np.sin(x),
            np.cos(x),
            np.tan(x),
            np.arcsin(x),
            np.arccos(x),
            np.arctan(x),
            np.arcsinh(x),
            np.arctanh(x),
            np.sinc(x),
        ),
        given(0.0),
        given([0.0, 0.0]),
        peers="jax:testOpGradSpecialValue",
        dtypes=(),
    ),
    operation("angle in degrees", lambda x: np.angle(x, deg=True), real(3, 4), peers="jax:angle", complexes=True),
    operation(
        "large and small numbers",
        lambda x: (np.log1p(x * 1e7), np.expm1(x * 20), np.expm1(x * 1e-8), np.log1p(x * 1e-8), np.tanh(x * 50)),
        real(3, 4, low=0),
        peers="jax:expm1 jax:log1p",
        dtypes=("float32",),
    ),
    operation("arccosh away from 1", np.arccosh, given([2.0, 3.0]), peers="jax:testOpGradSpecialValue"),
]

OPERATIONS = [*UNARY, *PREDICATES, *BINARY, *OPERATORS, *INTEGERS, *COMPOSED]
