"""Every primitive of the table: values against NumPy, derivatives against complex steps and high precision.

The cases below are the domain of each primitive and an independent reference; a primitive without a case fails. A
reference is NumPy's or SciPy's function, or its definition; where it takes complex numbers the derivative is a complex
step, else a difference in extended or multiple precision.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import mpmath
import numpy as np
import pytest
import scipy.special

from nbgrad.graph.derivatives import DERIVATIVES
from nbgrad.graph.differentiate import jvp, vjp
from nbgrad.graph.interpret import PARAMETER_RULES, RULES, interpret
from nbgrad.graph.ir import Node, broadcast, constant, elementwise, make, placeholder
from nbgrad.graph.primitives import (
    BINARY,
    COMPARISON,
    FLOAT_UNARY,
    PRIMITIVES,
    accumulate,
    argsort,
    cast,
    concatenate,
    gather,
    iota,
    matmul,
    pad,
    recurrence,
    reduce,
    reshape,
    scatter_add,
    scatter_last,
    slice_axes,
    transpose,
)
from nbgrad.runtime.evaluate import compute

Array = np.ndarray
Function = Callable[..., Any]
Range = tuple[float, float]

FLOAT = np.dtype(float)
ANYWHERE, POSITIVE, UNIT, PROBABILITY = (-3.0, 3.0), (0.2, 3.0), (-0.9, 0.9), (0.05, 0.95)
SHAPES = [(), (0,), (1,), (7,), (3, 4), (2, 0, 3), (1500,), (40_000,)]
FLOATS = ["float64", "float32", "float16"]
EPSILON = {"float64": 1e-15, "float32": 2.5e-7, "float16": 1e-3}


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings from the references."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


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
    """The n-th derivative of sin(pi x) / (pi x), from its integral representation."""
    order = int(n)
    inside = lambda t: (mpmath.pi * t) ** order * mpmath.cos(mpmath.pi * x * t + order * mpmath.pi / 2)  # noqa: E731
    return mpmath.quad(inside, [0, 0.5, 1])


SCALARS: dict[str, Scalar] = {
    **{
        name: Scalar(getattr(np, name), (ANYWHERE,)) for name in "exp exp2 expm1 sin cos sinh cosh tanh arcsinh".split()
    },
    **{name: Scalar(getattr(np, name), (POSITIVE,)) for name in "log log2 log10 sqrt".split()},
    **{name: Scalar(getattr(np, name), (UNIT,)) for name in "arcsin arccos arctanh tan log1p".split()},
    "cbrt": Scalar(np.cbrt, (POSITIVE,), step="real"),
    "arctan": Scalar(np.arctan, (ANYWHERE,)),
    "arccosh": Scalar(np.arccosh, ((1.2, 4.0),)),
    "erf": Scalar(scipy.special.erf, (ANYWHERE,)),
    "erfc": Scalar(scipy.special.erfc, (ANYWHERE,), wrong_ulps=16),
    "gammaln": Scalar(scipy.special.gammaln, (POSITIVE,), scipy.special.loggamma, wrong_ulps=16),
    "digamma": Scalar(scipy.special.digamma, (POSITIVE,), wrong_ulps=16),
    "expit": Scalar(scipy.special.expit, (ANYWHERE,), lambda x: 1 / (1 + np.exp(-x))),
    "logit": Scalar(scipy.special.logit, (PROBABILITY,), lambda x: np.log(x / (1 - x)), wrong_ulps=16),
    "negative": Scalar(np.negative, (ANYWHERE,)),
    **{
        name: Scalar(getattr(np, name), (ANYWHERE,), step="real")
        for name in "absolute sign floor ceil rint trunc invert".split()
    },
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
        for name in "bitwise_and bitwise_or bitwise_xor left_shift right_shift".split()
    },
    **{name: Scalar(getattr(np, name), (ANYWHERE,) * getattr(np, name).nin, step="real") for name in COMPARISON},
    "select": Scalar(np.where, ((0, 1), ANYWHERE, ANYWHERE), fixed=(0,)),
    "alias": Scalar(np.positive, (ANYWHERE,)),
    "stop_gradient": Scalar(np.positive, (ANYWHERE,), lambda x: x.real),
}
INTEGERS_ONLY = frozenset("invert bitwise_and bitwise_or bitwise_xor left_shift right_shift".split())


def draw(rng: np.random.Generator, domain: Range, shape: Sequence[int], dtype: str = "float64") -> Array:
    """Random numbers in a domain, none of them within 1e-3 of an integer unless the domain is one of integers."""
    if isinstance(domain[0], int):
        return rng.integers(domain[0], domain[1] + 1, shape).astype(dtype)
    values = rng.uniform(*domain, size=shape)
    return np.where(np.abs(values - np.round(values)) < 1e-3, values + 2e-3, values).astype(dtype)


def operands(name: str, shape: Sequence[int], dtype: str = "float64", seed: int = 0) -> list[Array]:
    """Arrays to apply an elementwise primitive to."""
    rng = np.random.default_rng(seed)
    found = [draw(rng, domain, shape, dtype) for domain in SCALARS[name].domains]
    if name == "select":
        found[0] = found[0] > 0.5
    return found


def nodes_of(arrays: Sequence[Array]) -> list[Node]:
    """Placeholders that hold arrays."""
    return [placeholder(a.shape, a.dtype, a) for a in arrays]


def close(got: Array, want: Any, tolerance: float, where: str) -> None:
    """Relative agreement, of NaN and infinities too."""
    want = np.asarray(want)
    assert got.shape == want.shape, f"{where}: shape {got.shape}, not {want.shape}"
    if want.dtype == object:
        want = want.astype(float)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * 1e-1, err_msg=where)


# ----- The tables themselves -----


def test_the_tables_list_the_same_primitives_in_the_same_order() -> None:
    assert list(DERIVATIVES) == list(PRIMITIVES)


def test_every_primitive_has_an_interpretation_and_a_case() -> None:
    sources = ["input", "constant", "literal"]
    for name in PRIMITIVES:
        assert name in sources or name in RULES or name in PARAMETER_RULES, f"{name} cannot be interpreted"
        assert name in sources or name in SCALARS or name in STRUCTURAL or name in ("cast", "custom", "iota"), (
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
    tolerance = EPSILON[dtype] * (case.wrong_ulps if dtype == "float64" else 2)
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


# ----- Elementwise and structural: derivatives -----


def derivative(function: Function, arrays: Sequence[Array], directions: Sequence[Array | None], step: str) -> Array:
    """The derivative of a function along a direction, from its values only."""
    with quiet():
        if step == "complex":
            h = 1e-30
            moved = [a if d is None else a + 1j * h * d for a, d in zip(arrays, directions, strict=True)]
            return np.asarray(function(*moved)).imag / h
        if step == "real":
            h = np.longdouble(2.0**-12)

            def at(k: int) -> Any:
                shifted = [
                    a if d is None else a.astype(np.longdouble) + k * h * d
                    for a, d in zip(arrays, directions, strict=True)
                ]
                return np.asarray(function(*shifted)).astype(np.longdouble)

            return np.asarray((at(-2) - 8 * at(-1) + 8 * at(1) - at(2)) / (12 * h)).astype(float)
        with mpmath.workdps(40):
            h = mpmath.mpf(10) ** -10
            up, down = (
                [a if d is None else a + sign * h * d for a, d in zip(arrays, directions, strict=True)]
                for sign in (1, -1)
            )
            return np.asarray((function(*up) - function(*down)) / (2 * h)).astype(float)


def directions_for(arrays: Sequence[Array], fixed: Sequence[int], seed: int) -> list[Array | None]:
    """Random directions for the operands that are differentiated."""
    rng = np.random.default_rng(seed)
    return [
        None if position in fixed or a.dtype.kind != "f" else np.asarray(rng.normal(size=a.shape))
        for position, a in enumerate(arrays)
    ]


def check_derivatives(
    where: str,
    build: Function,
    slope: Function,
    arrays: Sequence[Array],
    step: str = "complex",
    fixed: Sequence[int] = (),
    evaluate: Function = compute,
    tolerance: float = 1e-10,
) -> None:
    """Both modes against the reference, against each other, and the second derivative in two ways."""
    inputs = nodes_of(arrays)
    output = build(*inputs)
    u, v = directions_for(arrays, fixed, 1), directions_for(arrays, fixed, 2)
    moving = [k for k, d in enumerate(u) if d is not None]
    wrt = [inputs[k] for k in moving]
    along_u, along_v = ([constant(d[k]) for k in moving] for d in (u, v))
    weight = constant(np.asarray(np.random.default_rng(3).normal(size=output.shape)))
    (tangent,) = jvp([output], wrt, along_u)
    cotangents = vjp([output], [weight], wrt)
    want = derivative(slope, arrays, u, step)
    if tangent is None:
        assert all(c is None for c in cotangents), f"{where}: a derivative in reverse mode only"
        close(np.zeros(output.shape), want, 1e-6, f"{where}: no derivative, but")
        return
    firsts = [c for c in cotangents if c is not None]
    # Second order: forward over forward, forward over reverse, reverse over reverse.
    (forward_forward,) = jvp([tangent], wrt, along_v)
    over = jvp(firsts, wrt, along_v)
    directional = [c * d for c, d in zip(cotangents, along_u, strict=True) if c is not None]
    back = vjp(directional, [broadcast(constant(np.array(1.0)), d.shape) for d in directional], wrt)
    flat = [tangent, *firsts, *[n for n in (forward_forward, *over, *back) if n is not None]]
    values = dict(zip(flat, evaluate(flat), strict=True))
    close(values[tangent], want, tolerance, f"{where}: forward mode")

    def inner(parts: Sequence[Node | None], vectors: Sequence[Node]) -> float:
        found = [(n, d.value) for n, d in zip(parts, vectors, strict=True) if n is not None]
        return float(sum(np.sum(values[n] * d) for n, d in found if d is not None))

    assert weight.value is not None
    w = weight.value
    left, right = float(np.sum(w * values[tangent])), inner(cotangents, along_u)
    scale = 1 + float(np.sum(np.abs(w * values[tangent])))
    assert abs(left - right) <= tolerance * scale, f"{where}: <w, J u> = {left}, but <J' w, u> = {right}"
    for c, k in [(c, k) for c, k in zip(cotangents, moving, strict=True) if c is not None]:
        assert (values[c].shape, values[c].dtype) == (arrays[k].shape, arrays[k].dtype), f"{where}: cotangent {k}"
    second = inner(list(over), [d for c, d in zip(cotangents, along_u, strict=True) if c is not None])
    again = inner(back, along_v)
    size = 1 + abs(second) + sum(float(np.abs(values[n]).sum()) for n in (*over, *back) if n is not None)
    assert abs(second - again) <= 1e-9 * size, f"{where}: second derivatives {second} and {again} in two orders"
    h = 1e-4

    def first_at(k: int) -> Array:
        moved = [a if d is None else a + k * h * d for a, d in zip(arrays, v, strict=True)]
        return derivative(slope, moved, u, step)

    difference = (first_at(-2) - 8 * first_at(-1) + 8 * first_at(1) - first_at(2)) / (12 * h)
    got = values[forward_forward] if forward_forward is not None else np.zeros(output.shape)
    bound = 1 + float(np.abs(difference).max(initial=0))
    np.testing.assert_allclose(got, difference, rtol=0, atol=2e-7 * bound, err_msg=f"{where}: second derivative")
    summed = float(np.sum(w * difference))
    assert abs(second - summed) <= 1e-6 * (1 + np.abs(w * difference).sum()), f"{where}: second order, reverse mode"


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


# ----- Structure -----


@dataclass(frozen=True)
class Structure:
    """One use of a primitive with parameters: how to build it, the same in NumPy, and the operands' shapes."""

    build: Function
    reference: Function
    shapes: tuple[tuple[int, ...], ...]
    step: str = "complex"


def _scattered(size: int, index: Array) -> Function:
    def scatter(x: Array) -> Array:
        out = np.zeros(size, x.dtype)
        np.add.at(out, index, x)
        return out

    return scatter


def _recurred(reverse: bool) -> Function:
    def recur(a: Array, b: Array) -> Array:
        a, b = np.asarray(a), np.asarray(b)
        out = np.zeros(b.shape, np.result_type(a, b))
        state: Any = 0.0
        for i in reversed(range(b.shape[-1])) if reverse else range(b.shape[-1]):
            state = a[..., i] * state + b[..., i]
            out[..., i] = state
        return out

    return recur


def _reduced(name: str, axes: tuple[int, ...]) -> tuple[Function, Function]:
    return lambda x: reduce(name, x, axes), lambda x: getattr(np, name)(x, axis=axes)


INDEX = np.array([[2, 0, 2], [5, 5, 1]])
STRUCTURAL: dict[str, list[Structure]] = {
    "gather": [
        Structure(lambda x: gather(x, constant(INDEX)), lambda x: x[INDEX], ((6,),)),
        Structure(lambda x: gather(x, constant(np.array(3))), lambda x: x[3], ((6,),)),
        Structure(lambda x: gather(x, constant(INDEX[:0])), lambda x: x[INDEX[:0]], ((6,),)),
    ],
    "reshape": [
        Structure(lambda x: reshape(x, (3, 4)), lambda x: np.reshape(x, (3, 4)), ((2, 6),)),
        Structure(lambda x: reshape(x, ()), lambda x: np.reshape(x, ()), ((1, 1),)),
        Structure(lambda x: reshape(x, (0, 2)), lambda x: np.reshape(x, (0, 2)), ((3, 0),)),
    ],
    "transpose": [
        Structure(lambda x: transpose(x, (2, 0, 1)), lambda x: np.transpose(x, (2, 0, 1)), ((2, 3, 4),)),
        Structure(lambda x: transpose(x, (1, 0)), lambda x: x.T, ((300, 200),)),
    ],
    "broadcast": [
        Structure(lambda x: broadcast(x, (2, 3, 4)), lambda x: np.broadcast_to(x, (2, 3, 4)), ((3, 1),)),
        Structure(lambda x: broadcast(x, (5,)), lambda x: np.broadcast_to(x, (5,)), ((),)),
        Structure(lambda x: broadcast(x, (0, 4)), lambda x: np.broadcast_to(x, (0, 4)), ((1, 4),)),
    ],
    "slice": [
        Structure(lambda x: slice_axes(x, [(7, 4, -2), (1, 2, 2)]), lambda x: x[7:0:-2, 1:4:2], ((8, 5),)),
        Structure(lambda x: slice_axes(x, [(3, 4, -1)]), lambda x: x[3::-1], ((8,),)),
        Structure(lambda x: slice_axes(x, [(2, 0, 1)]), lambda x: x[2:2], ((8,),)),
        Structure(lambda x: slice_axes(x, [(0, 3, 3)]), lambda x: x[0:7:3], ((9,),)),
    ],
    "pad": [
        Structure(lambda x: pad(x, [(1, 2), (0, 3)]), lambda x: np.pad(x, [(1, 2), (0, 3)]), ((2, 3),)),
        Structure(lambda x: pad(x, [(2, 2)]), lambda x: np.pad(x, [(2, 2)]), ((0,),)),
    ],
    "concatenate": [
        Structure(
            lambda x, y: concatenate([x, y, x], 1),
            lambda x, y: np.concatenate([x + 0 * y.sum(), y + 0 * x.sum(), x + 0 * y.sum()], 1),
            ((2, 3), (2, 1)),
        ),
        Structure(
            lambda *xs: concatenate(xs, 0),
            lambda *xs: np.concatenate(np.broadcast_arrays(*[x + 0 * sum(v.sum() for v in xs) for x in xs])),
            ((3,), (3,), (3,), (3,), (3,), (3,)),
        ),
    ],
    "sum": [
        Structure(*_reduced("sum", axes), (shape,))
        for shape, axes in [
            ((7,), (0,)),
            ((1500,), (0,)),
            ((40_000,), (0,)),
            ((3, 4), (0,)),
            ((3, 4), (0, 1)),
            ((2, 3, 4), (0, 2)),
            ((200, 300), (0,)),
            ((200, 300), (1,)),
            ((0,), (0,)),
            ((3, 0), (1,)),
            ((0, 3), (1,)),
            ((1, 5), (0,)),
        ]
    ],
    "prod": [
        Structure(*_reduced("prod", axes), (shape,))
        for shape, axes in [
            ((5,), (0,)),
            ((1,), (0,)),
            ((3, 4), (0,)),
            ((2, 3, 2), (0, 2)),
            ((3, 0), (1,)),
            ((0, 3), (1,)),
        ]
    ],
    **{
        name: [
            Structure(*_reduced(name, axes), (shape,), "real")
            for shape, axes in [
                ((7,), (0,)),
                ((1990,), (0,)),
                ((40_000,), (0,)),
                ((3, 4), (0,)),
                ((2, 3, 4), (0, 2)),
                ((0, 3), (1,)),
            ]
        ]
        for name in ("max", "min")
    },
    "recurrence": [
        Structure(lambda a, b, r=r: recurrence(a, b, r), _recurred(r), (shape, shape))
        for shape in [(5,), (2, 4), (1,), (2, 0)]
        for r in (False, True)
    ],
    "accumulate": [
        Structure(
            lambda x, n=n: accumulate(n, x), lambda x, n=n: getattr(np, n).accumulate(x, axis=-1), (shape,), "real"
        )
        for shape in [(6,), (3, 5), (2, 0)]
        for n in ("maximum", "minimum")
    ],
    "scatter_add": [
        Structure(lambda x: scatter_add(7, constant(INDEX), x), _scattered(7, INDEX), ((2, 3),)),
        Structure(lambda x: scatter_add(3, constant(INDEX[:0]), x), _scattered(3, INDEX[:0]), ((0, 3),)),
    ],
    "scatter_last": [
        Structure(
            lambda x: scatter_last(4, cast(x, np.dtype(int))),
            lambda x: np.array(
                [
                    np.flatnonzero(x.real.astype(int).ravel() == k)[-1:].sum() - (not (x.real.astype(int) == k).any())
                    for k in range(4)
                ]
            ),
            ((5,),),
        )
    ],
    "argsort": [
        Structure(argsort, lambda x: np.argsort(x.real, axis=-1, kind="stable"), (shape,))
        for shape in [(9,), (3, 40), (2, 0), (1,), (700, 60)]
    ],
    "matmul": [
        Structure(matmul, np.matmul, ((2, 3, 4), (2, 4, 5))),
        Structure(
            lambda a, b: matmul(transpose(a, (0, 2, 1)), b),
            lambda a, b: np.swapaxes(a, 1, 2) @ b,
            ((1, 3, 4), (1, 3, 2)),
        ),
        Structure(
            lambda a, b: matmul(a, transpose(b, (2, 1, 0))),
            lambda a, b: a @ np.transpose(b, (2, 1, 0)),
            ((2, 3, 4), (3, 4, 2)),
        ),
        Structure(matmul, np.matmul, ((1, 3, 1), (1, 1, 2))),
        Structure(matmul, np.matmul, ((1, 1, 6), (1, 6, 1))),
        Structure(matmul, np.matmul, ((1, 2, 0), (1, 0, 3))),
        Structure(matmul, np.matmul, ((2, 0, 3), (2, 3, 2))),
    ],
}
USES = [(name, position) for name, cases in STRUCTURAL.items() for position in range(len(cases))]


def structural_operands(case: Structure, dtype: str = "float64") -> list[Array]:
    rng = np.random.default_rng(8)
    if case.step == "real":
        # Extrema: no two elements close to each other.
        return [((rng.permutation(np.prod(n, dtype=int)) + 0.5) % 2000).reshape(n).astype(dtype) for n in case.shapes]
    return [draw(rng, (0.3, 3.3), shape, dtype) * rng.choice([-1, 1], shape).astype(dtype) for shape in case.shapes]


@pytest.mark.parametrize("dtype", [*FLOATS, "int32"])
@pytest.mark.parametrize(("name", "position"), USES)
def test_values_of_structural_primitives(name: str, position: int, dtype: str) -> None:
    case = STRUCTURAL[name][position]
    if dtype == "int32" and name in ("matmul", "recurrence"):
        return  # for floating point only; integers take other ways
    arrays = structural_operands(case, dtype)
    if name == "scatter_last":
        arrays = [np.abs(a) for a in arrays]
    node = case.build(*nodes_of(arrays))
    with quiet():
        want = np.asarray(case.reference(*[a.astype(float) if dtype != "int32" else a for a in arrays]))
    where = f"{name}, {dtype}, shapes {case.shapes}"
    scale = EPSILON.get(dtype, 0) * (1 + max(a.size for a in arrays) ** 0.5) * 4
    for how, got in (("compiled", compute([node])[0]), ("interpreted", interpret([node])[0])):
        assert got.dtype == node.dtype, where
        if node.dtype.kind == "f":
            close(got, want, scale, f"{where}, {how}")
        else:
            np.testing.assert_array_equal(got, want.astype(node.dtype), err_msg=f"{where}, {how}")


@pytest.mark.parametrize(("name", "position"), USES)
def test_derivatives_of_structural_primitives(name: str, position: int) -> None:
    case = STRUCTURAL[name][position]
    if name in ("argsort", "scatter_last"):
        return  # integers
    arrays = structural_operands(case)
    large = max(a.size for a in arrays) > 1000
    if large and case.step == "real":
        arrays = [a + 2000.0 * (np.arange(a.size).reshape(a.shape) // 2000) for a in arrays]
    check_derivatives(
        f"{name}, float64, shapes {case.shapes}",
        case.build,
        case.reference,
        arrays,
        case.step,
        evaluate=compute,
        tolerance=1e-8 if large else 1e-10,
    )


@pytest.mark.parametrize("name", ["sum", "prod", "max", "min", "accumulate", "argsort"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_reductions_propagate_nan_and_infinity(name: str, dtype: str) -> None:
    rows = np.array([[1, np.nan, 2, -3], [np.inf, 1, 2, 3], [np.inf, -np.inf, 1, 0], [-0.0, 0.0, -np.inf, 5]], dtype)
    case = {
        "accumulate": (lambda x: accumulate("maximum", x), lambda a: np.maximum.accumulate(a, axis=-1)),
        "argsort": (argsort, lambda a: np.argsort(a, axis=-1, kind="stable")),
    }.get(name, _reduced(name, (1,)))
    (got,) = compute([case[0](nodes_of([rows])[0])])
    with quiet():
        np.testing.assert_array_equal(got, case[1](rows), err_msg=f"{name}, {dtype}")


def test_sums_are_as_exact_as_pairwise_ones() -> None:
    """The root mean square of the error over many arrays is no larger than NumPy's."""
    for dtype in ("float32", "float64"):
        ours, numpys = [], []
        for seed in range(20):
            values = np.random.default_rng(seed).normal(size=30_001).astype(dtype)
            exact = math.fsum(values.astype(float))
            (got,) = compute([reduce("sum", nodes_of([values])[0], (0,))])
            ours.append(float(got) - exact)
            numpys.append(float(values.sum()) - exact)
        assert np.sqrt(np.mean(np.square(ours))) <= 1.1 * np.sqrt(np.mean(np.square(numpys))), dtype


# ----- Casts, iota, custom -----

CASTS = "float64 float32 float16 int64 int32 int8 uint8 uint64 bool".split()


@pytest.mark.parametrize("source", CASTS)
def test_casts(source: str) -> None:
    """To every dtype, as NumPy converts it, in the range where that is defined."""
    values = np.array([0, 1, 2, 3, 100, 0.5, 1.5, 99.9]) if source != "bool" else np.array([False, True])
    values = values.astype(source)
    if np.dtype(source).kind in "fi":
        values = np.concatenate([values, -values])
    if np.dtype(source).kind == "f":
        values = np.concatenate([values, [np.nan, np.inf, -np.inf, 60000, 1 / 3]]).astype(source)
    for target in CASTS:
        usable = values
        if np.dtype(target).kind in "iu" and np.dtype(source).kind == "f":
            usable = values[np.isfinite(values) & (np.abs(values) < 120)]
            usable = usable[usable >= 0] if target.startswith("u") else usable
        x = nodes_of([usable])[0]
        (got,) = compute([make("cast", (x,), (np.dtype(target),))])
        with quiet():
            np.testing.assert_array_equal(got, usable.astype(target), err_msg=f"cast of {source} to {target}")


def test_cast_is_linear_between_floats_and_stops_at_integers() -> None:
    x = placeholder((3,), FLOAT, np.array([1.5, 2.5, 3.5]))
    ones = constant(np.ones(3, np.float32))
    (g,) = vjp([cast(x, np.dtype(np.float32))], [ones], [x])
    assert g is not None and g.dtype == FLOAT
    np.testing.assert_array_equal(compute([g])[0], np.ones(3))
    through = cast(cast(x, np.dtype(int)), FLOAT)
    assert vjp([through], [constant(np.ones(3))], [x]) == [None]
    assert jvp([through], [x], [constant(np.ones(3))]) == [None]


@pytest.mark.parametrize("length", [0, 1, 5, 40_000])
def test_iota(length: int) -> None:
    (got,) = compute([iota(length)])
    np.testing.assert_array_equal(got, np.arange(length))
    assert got.dtype == np.int64


def test_custom_is_its_first_input_and_calls_the_rule() -> None:
    class Rule:
        def cotangents(self, g: Node, node: Node) -> list[Node | None]:
            return [g * 10.0, None]

    x, y = nodes_of([np.array([1.0, 2.0]), np.array([3.0, 4.0])])
    node = make("custom", (elementwise("exp", x), x, y), (Rule(), 0))
    np.testing.assert_allclose(compute([node])[0], np.exp([1.0, 2.0]), rtol=1e-15)
    weight = constant(np.array([1.0, -1.0]))
    assert [None if g is None else list(compute([g])[0]) for g in vjp([node], [weight], [x, y])] == [[10, -10], None]
    (tangent,) = jvp([node], [x, y], [weight, weight])
    assert tangent is not None
    np.testing.assert_array_equal(compute([tangent])[0], [10, -10])


def test_sort_is_argsort_and_gather() -> None:
    values = np.array([[3.0, np.nan, 1.0, -np.inf], [2.0, 2.0, -0.0, 0.0]])
    (got,) = compute([argsort(nodes_of([values])[0])])
    np.testing.assert_array_equal(np.take_along_axis(values, got, -1), np.sort(values, axis=-1))


def test_binary_primitives_broadcast_scalars() -> None:
    x = placeholder((3,), FLOAT, np.array([1.0, 2.0, 3.0]))
    for name in ("add", "multiply", "power", "maximum"):
        assert name in BINARY
        ufunc = getattr(np, name)
        for operands_, want in (((x, 2.5), ufunc([1.0, 2.0, 3.0], 2.5)), ((2.5, x), ufunc(2.5, [1.0, 2.0, 3.0]))):
            np.testing.assert_allclose(compute([elementwise(name, *operands_)])[0], want, rtol=4e-16, err_msg=name)
