"""`nb.device_function`: the text of a function of numbers and of its gradient gives, as Python, compiled by Numba, and
in kernels of Numba's CUDA simulator, what mpmath and the gradients of arrays give."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import mpmath
import numba
import numpy as np
import pytest
import scipy.special

import nbgrad as nb
from nbgrad.adjoints.device_function import DeviceFunction
from nbgrad.errors import ArgumentError, DtypeError, NbgradError, TracedValueError
from nbgrad.extend import numba_helpers as printed_helpers
from nbgrad.extend.numba_source import printed
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import constant, elementwise, placeholder
from nbgrad.graph.primitives import ANY_UNARY, BINARY, COMPARISON, FLOAT_UNARY

from .simulated import simulated


def energy(r, sigma):
    s = (sigma / r) ** 6
    return 4.0 * (s * s - s) if r < 2.5 else 0.0


def mixture(x, y):
    if x < 0:
        z = math.exp(x * y) - math.cos(y)
    else:
        z = math.sqrt(x + 1) * math.log1p(y * y)
    for k in range(3):
        z = z + math.sin(k * x) / (1 + k)
    return max(z, y) + math.erf(x) * math.lgamma(y * y + 1) + math.atan2(y, x + 3)


exact: Any = mpmath
POINTS = [(0.4, 1.3), (-1.2, 0.7), (2.2, -0.6), (1.7, 2.9)]


def text_made(function: Any) -> Any:
    """The text as a user would store it in a file and decorate it."""
    namespace: dict[str, Any] = {"njit": numba.njit(error_model="numpy")}
    exec(function.source.replace("\ndef ", "\n@njit\ndef "), namespace)
    return namespace[function.__name__]


@pytest.mark.parametrize("function", [energy, mixture])
def test_value_and_gradient_by_every_way(function: Any) -> None:
    whole = nb.device_function(nb.value_and_grad(function, (0, 1)))
    assert whole.__name__ == f"{function.__name__}_value_and_grad"
    ways = [whole, whole.njit(), whole.njit(fastmath=False, inline="always"), text_made(whole)]
    reference = nb.value_and_grad(nb.elementwise(function), (0, 1))
    for x, y in POINTS:
        value, slopes = reference(x, y)
        known = [float(exact.diff(_in_mpmath(function), (x, y), order)) for order in ((0, 0), (1, 0), (0, 1))]
        for way in ways:
            found = way(x, y)
            np.testing.assert_allclose(found, (value, *slopes), rtol=1e-13, atol=1e-14)
            np.testing.assert_allclose(found, known, rtol=1e-11, atol=1e-12)


def _in_mpmath(function: Any) -> Any:
    """The function with mpmath's numbers."""
    replaced: dict[str, Any] = {name: getattr(exact, name) for name in "exp cos sqrt log1p sin erf atan2".split()}
    replaced["lgamma"] = exact.loggamma
    module = type("math", (), {name: staticmethod(value) for name, value in replaced.items()})
    return type(function)(function.__code__, {**function.__globals__, "math": module})


def test_second_derivatives_and_plain_functions() -> None:
    second = nb.device_function(nb.grad(nb.grad(nb.jit(energy))))
    plain = nb.device_function(energy)
    elementwise_too = nb.device_function(nb.grad(nb.elementwise(energy), 1))
    assert (plain.__name__, second.__name__) == ("energy", "energy_grad_grad")
    first = nb.device_function(nb.jit(nb.grad(nb.jit(energy))))
    assert first.__name__ == "energy_grad"
    np.testing.assert_allclose(first(1.4, 1.0), 4 * (-12 * 1.4**-13 + 6 * 1.4**-7), rtol=1e-12)
    for r in (0.9, 1.4, 3.0):
        expected = 4 * (12 * 13 * r**-14 - 6 * 7 * r**-8) if r < 2.5 else 0.0
        np.testing.assert_allclose(second(r, 1.0), expected, rtol=1e-12)
        np.testing.assert_allclose(plain(r, 1.0), energy(r, 1.0), rtol=1e-14)
        np.testing.assert_allclose(elementwise_too(r, 1.0), 4 * (12 * r**-12 - 6 * r**-6) * (r < 2.5), rtol=1e-12)


def test_inside_compiled_loops() -> None:
    slope = nb.device_function(nb.grad(energy))
    compiled = slope.njit()

    @numba.njit
    def by_object(x):  # type: ignore[no-untyped-def]
        total = 0.0
        for r in x:
            total += slope(r, 1.0)
        return total

    @numba.njit
    def by_dispatcher(x):  # type: ignore[no-untyped-def]
        total = 0.0
        for r in x:
            total += compiled(r, 1.0)
        return total

    x = np.linspace(0.9, 3.0, 50)
    expected = nb.grad(lambda x: np.sum(nb.elementwise(energy)(x, 1.0)))(x).sum()
    np.testing.assert_allclose([by_object(x), by_dispatcher(x)], [expected, expected], rtol=1e-12)


def test_inside_a_kernel_of_a_primitive() -> None:
    whole = nb.device_function(nb.value_and_grad(energy)).njit()

    @numba.njit
    def forward(r, out):  # type: ignore[no-untyped-def]
        for i in range(r.size):
            out[i] = whole(r[i], 1.0)[0]

    @numba.njit
    def backward(r, out, g, grad):  # type: ignore[no-untyped-def]
        for i in range(r.size):
            grad[i] = g[i] * whole(r[i], 1.0)[1]

    own = nb.primitive(forward, shape=lambda r: r, vjp=backward)
    r = np.linspace(0.9, 3.0, 7)
    expected = nb.grad(lambda r: np.sum(nb.elementwise(energy)(r, 1.0) ** 2))(r)
    np.testing.assert_allclose(nb.grad(lambda r: np.sum(own(r) ** 2))(r), expected, rtol=1e-12)


def test_float32_stays_float32() -> None:
    narrow = nb.device_function(nb.value_and_grad(mixture, (0, 1)), dtype=np.float32)
    wide = nb.device_function(nb.value_and_grad(mixture, (0, 1)))
    assert "np.float32(" in narrow.source and "float64" not in narrow.source
    compiled = narrow.njit()
    x, y = np.float32(0.4), np.float32(1.3)
    assert [one.dtype for one in narrow(x, y)] == [np.float32] * 3
    np.testing.assert_allclose(narrow(x, y), wide(x, y), rtol=1e-5)
    np.testing.assert_allclose(compiled(x, y), wide(x, y), rtol=1e-5)
    (signature,) = compiled.nopython_signatures
    assert str(signature.return_type) == "UniTuple(float32 x 3)"


# ----- Every primitive -----

UNARY_POINTS = (-2.5, -1.0, -0.5, -0.0, 0.0, 0.3, 0.49999999999999994, 0.5, 0.75, 1.0, 1.5, 2.5, 7.25, 31.0, 1e20)
PAIRS = [(-2.5, 0.75), (0.75, -2.5), (3.0, 2.0), (2.0, 2.0), (-0.0, 1.0), (7.3, 0.3), (-7.3, 0.3), (0.5, np.nan)]
INTEGERS = [(7, 2), (-7, 2), (5, 3), (0, 1), (6, 6), (12, 5)]
UNARY_TRUTHS = "isnan isinf isfinite signbit logical_not".split()
SIGNED_ZEROS = (
    "sqrt cbrt sin tan arcsin arctan sinh tanh arcsinh arctanh erf expm1 log1p floor ceil trunc rint negative".split()
)
NO_TEXT = {
    *"sinc_derivative nextafter random_bits i0 i1 i0e i1e gcd lcm bit_count frexp_fraction frexp_exponent".split()
}
ONLY_INTEGERS = "invert bitwise_and bitwise_or bitwise_xor left_shift right_shift".split()


def check_text(name: str, dtype: Any, points: Sequence[tuple[Any, ...]], accuracy: float) -> None:
    """The text of a primitive, as Python and compiled, gives at some points what the reference interpreter gives."""
    nodes = [placeholder((), np.dtype(dtype)) for _ in points[0]]
    names = [f"x{k}" for k in range(len(nodes))]
    text = printed("f", list(zip(names, nodes, strict=True)), [elementwise(name, *nodes)], name)
    made = DeviceFunction(text, [np.dtype(dtype)] * len(nodes))
    compiled = made.njit()
    for point in points:
        arrays = [np.array(value, dtype) for value in point]
        expected = interpret([elementwise(name, *[constant(array) for array in arrays])])[0]
        scalars = [array[()] for array in arrays]
        allowed = 1e6 * accuracy if name in ("tan", "sin", "cos", "gammaln") and abs(point[0]) > 1e10 else accuracy
        for found in (made(*scalars), compiled(*scalars)):
            assert np.asarray(made(*scalars)).dtype == expected.dtype
            np.testing.assert_allclose(found, expected, rtol=allowed, atol=allowed, err_msg=f"{name} of {point}")
            if expected == 0 and name in SIGNED_ZEROS:
                assert np.signbit(found) == np.signbit(expected), f"{name} of {point}"


ACCURACY = {np.float64: 2e-14, np.float32: 3e-6}


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "name", [n for n in [*FLOAT_UNARY, *ANY_UNARY, *UNARY_TRUTHS] if n not in (*NO_TEXT, "invert")]
)
def test_unary_primitives_on_floats(name: str, dtype: Any) -> None:
    points = (*UNARY_POINTS, np.inf, np.nan) if name == "gammaln" else (*UNARY_POINTS, np.inf, -np.inf, np.nan)
    check_text(name, dtype, [(x,) for x in points], ACCURACY[dtype])


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "name", [n for n in [*BINARY, *COMPARISON] if n not in (*NO_TEXT, *ONLY_INTEGERS, *UNARY_TRUTHS)]
)
def test_binary_primitives_on_floats(name: str, dtype: Any) -> None:
    pairs = [(0.0, 1.3), (1.0, 0.4), (3.0, 2.6), (2.0, -0.7)] if name == "polygamma" else PAIRS
    check_text(name, dtype, pairs, ACCURACY[dtype])


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.bool_])
@pytest.mark.parametrize(
    "name",
    "add multiply maximum minimum bitwise_and bitwise_or bitwise_xor equal not_equal less less_equal greater "
    "greater_equal logical_and logical_or logical_xor logical_not invert subtract remainder floor_divide negative "
    "absolute sign left_shift right_shift floor isnan isfinite".split(),
)
def test_integers_and_truth_values(name: str, dtype: Any) -> None:
    no_booleans = "subtract remainder floor_divide negative absolute sign left_shift right_shift floor isnan isfinite"
    if dtype is np.bool_ and name in no_booleans.split():
        return
    operands = 1 if name in (*ANY_UNARY, *UNARY_TRUTHS) else 2
    check_text(name, dtype, [pair[:operands] for pair in INTEGERS], 0.0)


def test_select_and_casts() -> None:
    @nb.device_function
    def casts(x, y):
        n = int(x * 3)
        return np.float32(x) + n if x > y else float(n // 2) - np.int32(y)

    for x, y in POINTS:
        expected = np.float32(x) + np.float64(int(x * 3)) if x > y else float(int(x * 3) // 2) - int(y)
        np.testing.assert_allclose(casts(x, y), expected, rtol=1e-7)
        np.testing.assert_allclose(casts.njit()(x, y), expected, rtol=1e-7)


@pytest.mark.parametrize("name", sorted(NO_TEXT))
def test_a_primitive_without_a_text_is_named(name: str) -> None:
    dtype = np.dtype(np.uint64 if name in ("random_bits", "gcd", "lcm", "bit_count") else np.float64)
    x, y = placeholder((), dtype), placeholder((), dtype)
    with pytest.raises(DtypeError, match=f"cannot have {name} of {dtype}"):
        printed("f", [("x", x), ("y", y)], [elementwise(name, x, y)], name)


def test_the_helpers_against_mpmath_and_scipy() -> None:
    for x in (1e-3, 0.3, 1.4616, 2.5, 9.9, 40.0, -0.5, -3.7):
        known = float(exact.digamma(x))
        assert abs(printed_helpers.nbgrad_digamma(x) - known) < 2e-14 * max(1.0, abs(known))
        for n in (1, 2, 5):
            np.testing.assert_allclose(printed_helpers.nbgrad_polygamma(n, x), float(exact.psi(n, x)), rtol=1e-13)
    np.testing.assert_allclose(printed_helpers.nbgrad_polygamma(25, 3.5), scipy.special.polygamma(25, 3.5), rtol=1e-12)
    for x in (1e-300, 0.1, 27.0, -8.0, 1e300):
        np.testing.assert_allclose(printed_helpers.nbgrad_cbrt(x), np.cbrt(x), rtol=4e-16)


# ----- CUDA -----


def test_in_kernels_of_numbas_simulator() -> None:
    code = """
import numpy as np, nbgrad as nb
from numba import cuda
from tests.test_device_functions import energy, mixture

whole = nb.device_function(nb.value_and_grad(mixture, (0, 1)))
ways = [whole.cuda(cuda.jit), whole.cuda(), whole.cuda(cuda.jit(device=True))]
x, y = np.linspace(-2.0, 2.0, 8), np.linspace(3.0, -1.0, 8)
expected = [whole(a, b) for a, b in zip(x, y)]
for function in ways:
    @cuda.jit
    def kernel(x, y, out):
        i = cuda.grid(1)
        if i < x.shape[0]:
            v, dx, dy = function(x[i], y[i])
            out[i, 0] = v
            out[i, 1] = dx
            out[i, 2] = dy

    out = np.zeros((8, 3))
    kernel[2, 4](x, y, out)
    np.testing.assert_allclose(out, expected, rtol=1e-13)
"""
    simulated(code)


@pytest.mark.gpu
def test_in_a_kernel_on_a_gpu() -> None:
    from numba import cuda as numba_cuda

    cuda: Any = numba_cuda
    slope = nb.device_function(nb.grad(mixture)).cuda(cuda.jit)

    @cuda.jit
    def kernel(x: Any, out: Any) -> None:
        i = cuda.grid(1)
        if i < x.shape[0]:
            out[i] = slope(x[i], 0.7)

    x = np.linspace(-2.0, 2.0, 100)
    out = np.zeros(100)
    kernel[1, 128](x, out)
    np.testing.assert_allclose(out, nb.grad(lambda x: np.sum(nb.elementwise(mixture)(x, 0.7)))(x), rtol=1e-12)


# ----- The text -----


def test_a_branch_that_is_not_taken_does_no_harm() -> None:
    safe = nb.device_function(nb.value_and_grad(lambda x: math.log(x) / x if x > 0 else 0.0))
    for way in (safe, safe.njit()):
        np.testing.assert_allclose(way(0.0), (0.0, 0.0))
        np.testing.assert_allclose(way(-1.0), (0.0, 0.0))
        np.testing.assert_allclose(way(2.0), (math.log(2) / 2, (1 - math.log(2)) / 4))


def test_constants_and_arguments_as_results() -> None:
    several = nb.device_function(lambda x, t1: (x, 3.0, t1 * x, (x > 0)), name="several")
    assert several(2.0, 4.0) == (2.0, 3.0, 8.0, True)
    assert several.njit()(2.0, 4.0) == (2.0, 3.0, 8.0, True)
    special = nb.device_function(lambda x: (x + math.inf, x * -2.5, x + math.nan, x - 1e-30), dtype=np.float32)
    for way in (special, special.njit()):
        np.testing.assert_allclose(way(1.0), (math.inf, -2.5, math.nan, 1.0))


def test_names_and_numbers_of_arguments() -> None:
    defaulted = nb.device_function(nb.grad(lambda x, y=2.0: x * y))
    assert defaulted(3.0) == 2.0
    both = nb.device_function(lambda x, y=2.0: x * y, dtype=(np.float64, np.float64))
    assert both(3.0, 4.0) == 12.0
    many = nb.device_function(lambda *x: x[0] * x[2], dtype=(np.float64,) * 3)
    assert many(3.0, 4.0, 5.0) == 15.0
    assert "def f(x, n):" in nb.device_function(lambda x, n: x * n, dtype=(float, np.int32), name="f").source
    assert repr(both) == "<device function function>"


VECTOR = np.arange(3.0)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: nb.device_function(3), DtypeError, "takes a function of numbers, but got an int"),  # type: ignore
        (lambda: nb.device_function(energy, dtype=np.float16), DtypeError, "dtype must be float32"),
        (lambda: nb.device_function(energy, dtype=complex), DtypeError, "dtype must be float32"),
        (lambda: nb.device_function(energy, dtype="x"), DtypeError, "dtype must be float32"),
        (lambda: nb.device_function(energy, dtype=(float,)), ArgumentError, "dtype has 1 entries, but energy"),
        (lambda: nb.device_function(lambda *x: x[0]), ArgumentError, "How many arguments"),
        (lambda: nb.device_function(energy, name="a b"), ArgumentError, "must be a name in Python"),
        (lambda: nb.device_function(energy, name="return"), ArgumentError, "must be a name in Python"),
        (lambda: nb.device_function(lambda x: None), DtypeError, "returned NoneType"),
        (lambda: nb.device_function(lambda x: x * VECTOR), ArgumentError, "where single numbers"),
        (lambda: nb.device_function(lambda x: np.sum(x)), ArgumentError, "calls sum"),
        (lambda: nb.device_function(energy)(1.0), ArgumentError, "takes 2 numbers, but got 1"),
        (lambda: nb.device_function(energy)(VECTOR, 1.0), DtypeError, "single numbers, but argument 0"),
        (lambda: nb.device_function(energy).cuda(3), DtypeError, "takes a decorator"),
        (lambda: nb.device_function(lambda x: x + 1j), DtypeError, "complex"),
    ],
)
def test_bad_arguments(call: Any, error: type[NbgradError], words: str) -> None:
    with pytest.raises(error, match=words):
        call()


def test_loops_over_values_are_named() -> None:
    def endless(x):  # type: ignore[no-untyped-def]
        while x > 1:
            x = x / 2
        return x

    with pytest.raises(TracedValueError, match="while loop"):
        nb.device_function(nb.grad(endless))


def test_the_value_beside_the_gradient() -> None:
    def f(x: Any, y: Any) -> Any:
        return x * x * y

    # f = 12, df/dx = 2 x y = 12, df/dy = x^2 = 4.
    for gradient in (nb.grad(f, (0, 1)), nb.jit(nb.grad(f, (0, 1)))):
        assert nb.device_function(gradient)(2.0, 3.0) == (12.0, 4.0)
        assert nb.device_function(gradient, value=True)(2.0, 3.0) == (12.0, 12.0, 4.0)
    with pytest.raises(ArgumentError, match="value=True is for what grad"):
        nb.device_function(f, value=True)


# ----- Pullbacks -----


def polar(x: Any, y: Any) -> Any:
    return math.hypot(x, y), math.atan2(y, x)


@numba.njit
def root_and_more(a: Any, turns: Any) -> Any:
    x = 1.0
    for _ in range(turns):
        x = 0.5 * (x + a / x)
    if x > 2.0:
        return x * x, x
    return x, a


def test_pullbacks_have_the_derivatives_of_formulas() -> None:
    pullback = nb.device_function(polar, vjp=True)
    for x, y, radius, angle in [(3.0, 4.0, 1.0, 0.0), (3.0, 4.0, 0.0, 1.0), (-1.0, 0.5, 2.0, -3.0)]:
        r = math.hypot(x, y)
        expected = radius * x / r - angle * y / r**2, radius * y / r + angle * x / r**2
        np.testing.assert_allclose(pullback(x, y, radius, angle), expected, rtol=1e-15)
    single = nb.device_function(polar, vjp=True, dtype=np.float32, name="polar_back")
    assert single.__name__ == "polar_back" and "nbgrad" not in single.source
    np.testing.assert_allclose(single(3.0, 4.0, 1.0, 0.0), (0.6, 0.8), rtol=1e-6)


def test_pullbacks_keep_loops_and_branches_inside_of_kernels() -> None:
    pullback = nb.device_function(root_and_more, vjp=True, dtype=(np.float64, np.int64))
    assert "for " in pullback.source and "    if " in pullback.source

    @numba.njit
    def kernel(a: Any, out: Any) -> None:
        for i in range(a.shape[0]):
            out[i] = pullback(a[i], 30, 1.0, 0.5)

    a = np.array([2.0, 3.0, 9.0])
    out = np.empty(3)
    kernel(a, out)
    np.testing.assert_allclose(out, [0.5 / math.sqrt(2) + 0.5, 0.5 / math.sqrt(3) + 0.5, 1.0 + 0.25 / 3.0], rtol=1e-13)


@pytest.mark.parametrize(
    ("function", "options", "kind", "message"),
    [
        (3, {}, DtypeError, "takes a function of numbers, but got an int"),
        (lambda x: np.zeros(3) * x, {}, DtypeError, r"returns an array.*nb\.kernel"),
        (polar, {"value": True}, ArgumentError, "value=True is for what grad"),
        (polar, {"name": "not a name"}, ArgumentError, "must be a name in Python"),
        (lambda n: 1.0 * n, {"dtype": np.int64}, ArgumentError, "has no argument of floats"),
        (lambda x: x > 0, {}, ArgumentError, "has no result of floats"),
    ],
)
def test_pullbacks_of_what_has_none(function: Any, options: dict[str, Any], kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message):
        nb.device_function(function, vjp=True, **options)
