"""Every primitive of the table: values against NumPy, derivatives against complex steps and high precision.

The cases below are the domain of each primitive and an independent reference; a primitive without a case fails. A
reference is NumPy's or SciPy's function, or its definition; where it takes complex numbers the derivative is a complex
step, else a difference in extended or multiple precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

from nbgrad.graph.differentiate import vjp
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import constant, elementwise, placeholder
from nbgrad.graph.primitives import BINARY, COMPARISON, FLOAT_UNARY, PRIMITIVES
from nbgrad.runtime.evaluate import compute

from .agreement import quiet
from .high_precision import (
    EPSILON,
    FLOAT,
    FLOATS,
    Array,
    Function,
    Range,
    check_derivatives,
    close,
    draw,
    nodes_of,
)
from .test_structural_primitives import STRUCTURAL

pytestmark = pytest.mark.unoptimized

ANYWHERE, POSITIVE, UNIT, PROBABILITY = (-3.0, 3.0), (0.2, 3.0), (-0.9, 0.9), (0.05, 0.95)
SHAPES = [(), (0,), (1,), (7,), (3, 4), (2, 0, 3), (1500,), (40_000,)]


@dataclass(frozen=True)
class Scalar:
    """An elementwise primitive: what it is in NumPy, where to try it, and how its derivative is found.

    `slope` is what is differentiated instead of `reference`, by a complex step, unless `step` says "real" (differences
    of long doubles) or "mpmath". `wrong_ulps` is the error allowed in float64, in units of the last place.
    """

    reference: Function
    domains: tuple[Range, ...]
    slope: Function | None = None
    step: str = "complex"
    fixed: tuple[int, ...] = ()
    wrong_ulps: float = 4


def _mp(function: Function) -> Function:
    """A function of mpmath on arrays."""

    def call(*operands: Any) -> Any:
        with mpmath.workdps(40):
            return np.frompyfunc(lambda *a: function(*[mpmath.mpf(v) for v in a]), len(operands), 1)(*operands)

    return call


def _sinc_derivative(n: Any, x: Any) -> Any:
    """The n-th derivative of sin(pi x) / (pi x), from its Taylor series, which converges everywhere."""
    order = int(n)
    with mpmath.workdps(80):
        z, total, power, k = mpmath.pi * x, mpmath.mpf(0), mpmath.mpf(1), 0
        while k < abs(z) or abs(power) > 1e-60:
            # The cosine of (order + k) pi / 2.
            total += (1, 0, -1, 0)[(order + k) % 4] * power / (order + k + 1)
            k += 1
            power *= z / k
        return mpmath.pi**order * total


def philox(key: int, counter: int) -> int:
    """Philox2x32-10 with Python's integers (Salmon, Moraes, Dror and Shaw 2011, section 3.3)."""
    left, right, key = int(counter) % 2**32, int(counter) >> 32, int(key) % 2**32
    for _ in range(10):
        high, low = divmod(left * 0xD256D193, 2**32)
        left, right, key = high ^ key ^ right, low, (key + 0x9E3779B9) % 2**32
    return left + right * 2**32


SCALARS: dict[str, Scalar] = {
    **{
        name: Scalar(getattr(np, name), (ANYWHERE,)) for name in "exp exp2 expm1 sin cos sinh cosh tanh arcsinh".split()
    },
    **{name: Scalar(getattr(np, name), (POSITIVE,)) for name in "log log2 log10 sqrt".split()},
    **{name: Scalar(getattr(np, name), (UNIT,)) for name in "arcsin arccos arctanh tan log1p".split()},
    "rsqrt": Scalar(lambda x: 1 / np.sqrt(x), (POSITIVE,)),
    "cbrt": Scalar(np.cbrt, (POSITIVE,), step="real"),
    "arctan": Scalar(np.arctan, (ANYWHERE,)),
    "arccosh": Scalar(np.arccosh, ((1.2, 4.0),)),
    "erf": Scalar(scipy.special.erf, (ANYWHERE,)),
    "erfc": Scalar(scipy.special.erfc, (ANYWHERE,), wrong_ulps=16),
    "gammaln": Scalar(scipy.special.gammaln, (POSITIVE,), scipy.special.loggamma, wrong_ulps=16),
    "digamma": Scalar(scipy.special.digamma, (POSITIVE,), wrong_ulps=16),
    **{
        f"i{order}{scaled}": Scalar(
            getattr(scipy.special, f"i{order}{scaled}"),
            (ANYWHERE,),
            lambda x, order=order, scaled=scaled: (
                scipy.special.iv(order, x) * np.exp(-x * np.sign(np.real(x)) * bool(scaled))
            ),
            wrong_ulps=16,
        )
        for order in (0, 1)
        for scaled in ("", "e")
    },
    "expit": Scalar(scipy.special.expit, (ANYWHERE,), lambda x: 1 / (1 + np.exp(-x))),
    "logit": Scalar(scipy.special.logit, (PROBABILITY,), lambda x: np.log(x / (1 - x)), wrong_ulps=16),
    "negative": Scalar(np.negative, (ANYWHERE,)),
    **{
        name: Scalar(getattr(np, name), (ANYWHERE,), step="real")
        for name in "absolute sign floor ceil rint trunc invert".split()
    },
    "bit_count": Scalar(lambda x: np.bitwise_count(x).astype(x.dtype), (ANYWHERE,), step="real"),
    "frexp_fraction": Scalar(lambda x: np.frexp(x)[0], (ANYWHERE,), step="real"),
    "frexp_exponent": Scalar(lambda x: np.frexp(x)[1].astype(x.dtype), (ANYWHERE,), step="real"),
    **{name: Scalar(getattr(np, name), (ANYWHERE, ANYWHERE)) for name in "add subtract multiply".split()},
    "divide": Scalar(np.divide, (ANYWHERE, POSITIVE)),
    "power": Scalar(np.power, (POSITIVE, ANYWHERE)),
    **{
        name: Scalar(getattr(np, name), (ANYWHERE, POSITIVE), step="real")
        for name in "remainder fmod floor_divide".split()
    },
    **{
        name: Scalar(getattr(np, name), (ANYWHERE, ANYWHERE), step="real")
        for name in "maximum minimum fmax fmin copysign nextafter".split()
    },
    "hypot": Scalar(np.hypot, (ANYWHERE, ANYWHERE), lambda x, y: np.sqrt(x * x + y * y)),
    "arctan2": Scalar(np.arctan2, (ANYWHERE, POSITIVE), lambda y, x: np.arctan(y / x)),
    "logaddexp": Scalar(np.logaddexp, (ANYWHERE, ANYWHERE), lambda x, y: np.log(np.exp(x) + np.exp(y)), wrong_ulps=8),
    "logaddexp2": Scalar(np.logaddexp2, (ANYWHERE, ANYWHERE), lambda x, y: np.log2(2**x + 2**y), wrong_ulps=8),
    "xlogy": Scalar(scipy.special.xlogy, (ANYWHERE, POSITIVE), lambda x, y: x * np.log(y)),
    "polygamma": Scalar(_mp(lambda n, x: mpmath.psi(int(n), x)), ((0, 3), POSITIVE), None, "mpmath", (0,), 32),
    "sinc_derivative": Scalar(_mp(_sinc_derivative), ((0, 4), ANYWHERE), None, "mpmath", (0,), 128),
    **{
        name: Scalar(getattr(np, name), (ANYWHERE, ANYWHERE), step="real")
        for name in "bitwise_and bitwise_or bitwise_xor left_shift right_shift gcd lcm".split()
    },
    **{name: Scalar(getattr(np, name), (ANYWHERE,) * getattr(np, name).nin, step="real") for name in COMPARISON},
    "random_bits": Scalar(np.vectorize(philox, otypes=[np.uint64]), (ANYWHERE, ANYWHERE), step="real"),
    "select": Scalar(np.where, ((0, 1), ANYWHERE, ANYWHERE), fixed=(0,)),
    "alias": Scalar(np.positive, (ANYWHERE,)),
    "stop_gradient": Scalar(np.positive, (ANYWHERE,), lambda x: x.real),
}
INTEGERS_ONLY = frozenset(
    "invert bitwise_and bitwise_or bitwise_xor left_shift right_shift random_bits gcd lcm bit_count".split()
)


def operands(name: str, shape: Sequence[int], dtype: str = "float64", seed: int = 0) -> list[Array]:
    """Arrays to apply an elementwise primitive to."""
    rng = np.random.default_rng(seed)
    found = [draw(rng, domain, shape, dtype) for domain in SCALARS[name].domains]
    if name == "select":
        found[0] = found[0] > 0.5
    return found


# ----- The tables themselves -----


ELSEWHERE = ("cast", "custom", "iota", "complex", "real", "imag", "host", "loop", "item")
"""Primitives with tests of their own: test_complex.py, test_host.py, test_scan.py and others."""


def test_every_primitive_has_a_name_a_meaning_a_derivative_and_a_case() -> None:
    sources = ["input", "constant", "literal"]
    for name, primitive in PRIMITIVES.items():
        assert primitive.name == name
        assert primitive.derivative is not None, f"{name} has neither a derivative nor a reason"
        assert name in sources or primitive.meaning is not None, f"{name} cannot be interpreted"
        assert name in sources or name in SCALARS or name in STRUCTURAL or name in ELSEWHERE, (
            f"{name} has no case in this file: add its reference and its domain"
        )


# ----- Elementwise: values -----


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [n for n in SCALARS if n not in INTEGERS_ONLY])
def test_values_of_floats(name: str, dtype: str) -> None:
    case = SCALARS[name]
    shapes = SHAPES if dtype == "float64" else [(7,), (1500,)]
    if case.step == "mpmath":
        shapes = [shape for shape in shapes if np.prod(shape, dtype=int) < 100]
    arrays = [operands(name, shape, dtype) for shape in shapes]
    results = [elementwise(name, *nodes_of(a)) for a in arrays]
    if len(case.domains) == 2 and dtype == "float64":
        # One operand repeated along rows, the other along columns.
        x, y = operands(name, (3, 1), dtype)[0], operands(name, (4,), dtype, seed=1)[1]
        arrays.append([x, y])
        results.append(elementwise(name, *nodes_of([x, y])))
    tolerance = EPSILON[dtype] * (case.wrong_ulps if dtype == "float64" else case.wrong_ulps / 2)
    for a, node, got in zip(arrays, results, compute(results), strict=True):
        where = f"{name}, {dtype}, shapes {[v.shape for v in a]}"
        with quiet():
            want = case.reference(*[v.astype(float) if v.dtype.kind == "f" and name != "nextafter" else v for v in a])
        assert got.dtype == node.dtype == (np.bool_ if name in COMPARISON else dtype), where
        close(got, want, tolerance, where)
        if a[0].size < 100:
            close(interpret([node])[0], want, 4 * tolerance, f"{where}, interpreted")


SPECIALS = np.array(
    [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.5, np.inf, -np.inf, np.nan, 1e-310, -1e-310, 1e300, -1e300, 710.0]
)
TOO_SPECIAL = frozenset("polygamma sinc_derivative select alias stop_gradient".split())


@pytest.mark.parametrize("name", [n for n in SCALARS if n not in INTEGERS_ONLY | TOO_SPECIAL])
def test_nan_infinity_and_signed_zero(name: str) -> None:
    if len(SCALARS[name].domains) == 1:
        arrays = [SPECIALS]
    else:
        arrays = [np.ascontiguousarray(a.ravel()) for a in np.meshgrid(SPECIALS, SPECIALS)]
    if name in ("gammaln", "digamma"):
        arrays = [SPECIALS[np.abs(SPECIALS) != 1e-310]]  # SciPy overflows there too early
    if name in ("i0", "i1"):
        arrays = [SPECIALS[np.abs(SPECIALS) != 710.0]]  # and there
    (got,) = compute([elementwise(name, *nodes_of(arrays))])
    with quiet():
        want = np.asarray(SCALARS[name].reference(*arrays))
    for a, one, other in zip(zip(*arrays, strict=True), got, want, strict=True):
        where = f"{name}{tuple(map(float, a))} is {other}, not {one}"
        if want.dtype.kind == "b" or np.isnan(other) or np.isinf(other) or other == 0:
            assert np.array_equal(one, other, equal_nan=True), where
        else:
            assert abs(one - other) <= 1e-13 * abs(other) + 1e-320, where
        if other == 0 and want.dtype.kind == "f" and name not in ("maximum", "minimum", "fmax", "fmin"):
            assert np.signbit(one) == np.signbit(other), where


def integer_operands(name: str, dtype: np.dtype[Any]) -> list[Array]:
    """Pairs of integers, the extreme ones included."""
    if dtype.kind == "b":
        edge = np.array([False, True])
    else:
        limits = np.iinfo(dtype)
        edge = np.array(
            [*range(max(limits.min, -9), 10), limits.min, limits.min + 1, limits.max - 1, limits.max], dtype
        )
    second = edge
    if name in ("left_shift", "right_shift"):
        second = np.arange(8 * dtype.itemsize).astype(dtype)
    if name == "power":
        second = np.arange(6).astype(dtype)
    if SCALARS[name].reference.nin == 1:
        return [edge]
    return [np.ascontiguousarray(a.ravel()) for a in np.meshgrid(edge, second)]


def check_integers(name: str, dtype: np.dtype[Any]) -> None:
    """The primitive on integers or booleans is NumPy's ufunc, bit for bit."""
    arrays = integer_operands(name, dtype)
    ufunc = SCALARS[name].reference
    try:
        with quiet():
            want = ufunc(*arrays)
    except TypeError:
        return
    if want.dtype not in (dtype, np.bool_):
        return
    nodes = nodes_of(arrays)
    node = elementwise(name, *nodes)
    for how, got in (("compiled", compute([node])[0]), ("interpreted", interpret([node])[0])):
        assert got.dtype == want.dtype, f"{name}, {dtype}, {how}"
        wrong = got != want
        shown = [f"{name}({', '.join(map(str, v))})" for v in np.transpose([a[wrong] for a in arrays])[:3]]
        assert not wrong.any(), f"{dtype}, {how}: {shown} is {want[wrong][:3]}, not {got[wrong][:3]}"


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
@pytest.mark.parametrize("name", [n for n in SCALARS if isinstance(SCALARS[n].reference, np.ufunc)])
def test_values_of_integers(name: str, dtype: str) -> None:
    if n_is_float_only(name):
        return
    check_integers(name, np.dtype(dtype))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("name", [n for n in SCALARS if isinstance(SCALARS[n].reference, np.ufunc)])
def test_values_of_all_integers(name: str, dtype: str) -> None:
    if n_is_float_only(name):
        return
    check_integers(name, np.dtype(dtype))


def n_is_float_only(name: str) -> bool:
    """Functions that NumPy computes in floating point whatever it is given."""
    return name in FLOAT_UNARY or name in ("alias", "stop_gradient")


# ----- Derivatives -----


@pytest.mark.parametrize("name", [n for n in SCALARS if n not in INTEGERS_ONLY and n not in COMPARISON])
def test_derivatives_of_elementwise_primitives(name: str) -> None:
    case = SCALARS[name]
    slope = case.slope or case.reference
    build = lambda *nodes: elementwise(name, *nodes)  # noqa: E731
    for shape in [(), (0,), (1,), (3, 4)]:
        evaluate = compute if shape == (3, 4) else interpret
        arrays = operands(name, shape, seed=4)
        check_derivatives(f"{name}, float64, shape {shape}", build, slope, arrays, case.step, case.fixed, evaluate)
    if len(case.domains) == 2:
        arrays = [operands(name, (3, 1))[0], operands(name, (4,), seed=1)[1]]
        check_derivatives(f"{name}, float64, (3, 1) and (4,)", build, slope, arrays, case.step, case.fixed, interpret)


@pytest.mark.parametrize("dtype", ["float32", pytest.param("float16", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [n for n in SCALARS if n not in INTEGERS_ONLY and n not in COMPARISON])
def test_derivatives_keep_narrow_dtypes(name: str, dtype: str) -> None:
    """The derivative in a narrow dtype is that in float64, up to that dtype's rounding."""
    case = SCALARS[name]
    arrays = operands(name, (9,), dtype, seed=4)
    wide = [a.astype(float) if a.dtype.kind == "f" else a for a in arrays]
    found = []
    for values in (arrays, wide):
        inputs = nodes_of(values)
        wrt = [n for k, n in enumerate(inputs) if k not in case.fixed and n.dtype.kind == "f"]
        output = elementwise(name, *inputs)
        found.append([g for g in vjp([output], [constant(np.ones(9, output.dtype))], wrt) if g is not None])
    for position, (got, want) in enumerate(zip(compute(found[0]), interpret(found[1]), strict=True)):
        where = f"{name}, {dtype}, operand {position}"
        assert got.dtype == dtype, where
        np.testing.assert_allclose(
            got.astype(float), want, rtol=30 * EPSILON[dtype], atol=10 * EPSILON[dtype], err_msg=where
        )


def test_binary_primitives_broadcast_scalars() -> None:
    x = placeholder((3,), FLOAT, np.array([1.0, 2.0, 3.0]))
    for name in ("add", "multiply", "power", "maximum"):
        assert name in BINARY
        ufunc = getattr(np, name)
        for operands_, want in (((x, 2.5), ufunc([1.0, 2.0, 3.0], 2.5)), ((2.5, x), ufunc(2.5, [1.0, 2.0, 3.0]))):
            np.testing.assert_allclose(compute([elementwise(name, *operands_)])[0], want, rtol=4e-16, err_msg=name)
