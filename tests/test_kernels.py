"""The scalar kernels against NumPy and SciPy (special values, integers), and mpmath (derivatives of functions).

Every kernel of the table is compiled in a program of its own.  Rounding errors: test_accuracy.py.
"""

import ast
import inspect
import itertools
import sys

import mpmath
import numpy as np
import pytest
import scipy.special
from nbgrad.kernels import SCALARS, scalar_kernel
from nbgrad.kernels.intrinsics import jit_kernel

import nbgrad as nb
from nbgrad.graph.ir import PRIMITIVES, constant, make
from nbgrad.runtime.evaluate import compute

from .accuracy import magnitudes, near, positive, uniform

pytestmark = pytest.mark.unoptimized

FLOATS = ("float64", "float32")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
POINTS = 120


@pytest.fixture(autouse=True)
def precision():
    """Enough digits for every reference value."""
    with mpmath.workprec(200):
        yield


def test_fmod_is_exact():
    kernel = jit_kernel(scalar_kernel("fmod", "float64"))
    generator = np.random.default_rng(20)
    for x, y in zip(generator.uniform(-9, 9, POINTS), generator.uniform(-2, 2, POINTS), strict=True):
        assert kernel(x, y) == mpmath.mpf(x) - mpmath.mpf(y) * mpmath.mpf(int(mpmath.mpf(x) / mpmath.mpf(y)))


SPECIAL = {
    "f": (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -3.0, 1e-40, 3e38, -3e38, np.inf, -np.inf, np.nan),
    "i": (0, 1, -1, 2, 5, -7, 63, 64, 100, 127, -128),
    "u": (0, 1, 2, 5, 7, 63, 64, 100, 200, 255),
    "b": (False, True),
}
# NumPy gives either zero for zeros of both signs, and SciPy is imprecise for subnormal arguments.
EITHER_ZERO = {"maximum", "minimum", "fmax", "fmin"}
ORDERS = {"polygamma", "sinc_derivative"}


def library_function(name):
    """The NumPy or SciPy function of a primitive, if there is one."""
    function = getattr(np, name, None) or getattr(scipy.special, name, None)
    return function if isinstance(function, np.ufunc) or name == "gammaln" else None


def cases(name, dtype):
    """Tuples of operands from the special values of a dtype."""
    kind = np.dtype(dtype)
    values = [kind.type(value) for value in SPECIAL[kind.kind]]
    count = len(inspect.signature(scalar_kernel(name, dtype)).parameters)
    for operands in itertools.product(values, repeat=count):
        if name in {"left_shift", "right_shift"} and operands[1] < 0:
            continue
        if name == "power" and kind.kind == "i" and operands[1] < 0:
            continue
        # NumPy takes square roots here; C's pow differs for -0.0 and -inf.
        if name == "power" and operands[1] == 0.5:
            continue
        yield operands


def has_kernel(name, dtype):
    """Whether the table has the primitive for a dtype."""
    try:
        scalar_kernel(name, dtype)
    except KeyError:
        return False
    # NumPy has none of a boolean; and what is no primitive has no program.
    missing = (dtype == "bool" and name == "sign") or name not in PRIMITIVES
    return library_function(name) is not None and name not in ORDERS and not missing


def compiled(name, *arrays):
    """A primitive of arrays by a compiled program."""
    (result,) = compute([make(name, tuple([constant(array) for array in arrays]))])
    return result


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "int64", "uint8", "uint64", "bool"])
def test_special_values(dtype):
    wrong = []
    for name in SCALARS:
        if not has_kernel(name, dtype):
            continue
        operands = list(cases(name, dtype))
        columns = [np.array(column) for column in zip(*operands, strict=True)]
        library = library_function(name)
        assert library is not None
        with np.errstate(all="ignore"):
            expected = np.asarray(library(*columns))
        computed = compiled(name, *columns).astype(expected.dtype)
        tolerance = 4 * np.finfo(dtype).eps if np.dtype(dtype).kind == "f" else 0
        tolerance = 1e-14 if name == "digamma" and dtype == "float64" else tolerance
        same = np.isclose(computed, expected, rtol=tolerance, atol=0, equal_nan=True)
        if expected.dtype.kind == "f" and name not in EITHER_ZERO:
            same &= np.isnan(expected) | (np.signbit(computed) == np.signbit(expected))
        for k in np.flatnonzero(~same):
            wrong.append(f"{name}{operands[k]} = {computed[k]}, not {expected[k]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_division_never_traps(dtype):
    limits = np.iinfo(dtype)
    kind = np.dtype(dtype)
    for name in ("floor_divide", "remainder", "fmod"):
        kernel = jit_kernel(scalar_kernel(name, dtype))
        for x, y in itertools.product((limits.min, limits.max, 0, 7), (0, kind.type(-1 if limits.min else 1), 3)):
            with np.errstate(all="ignore"):
                expected = getattr(np, name)(kind.type(x), kind.type(y))
            computed = np.array(int(kernel(kind.type(x), kind.type(y))) & (2**64 - 1), np.uint64).astype(kind)
            assert computed == expected, (name, x, y)


def test_negative_integer_exponent():
    power = jit_kernel(scalar_kernel("power", "int64"))
    assert [power(x, -3) for x in (-2, -1, 0, 1, 2)] == [0, -1, 0, 1, 0]


def test_select():
    for dtype in (*FLOATS, *INTEGERS):
        kernel = jit_kernel(scalar_kernel("select", dtype))
        one, two = np.dtype(dtype).type(1), np.dtype(dtype).type(2)
        assert (kernel(True, one, two), kernel(False, one, two)) == (1, 2)


@pytest.mark.parametrize("name", ["gammaln", "digamma"])
def test_gamma_family(name):
    # Next to the zeros too the error is small, compared with the larger of the terms that cancel there.
    exact = {"gammaln": lambda x: mpmath.log(abs(mpmath.gamma(x))), "digamma": mpmath.digamma}[name]
    generator = np.random.default_rng(3)
    for sampler in (uniform(0, 3), uniform(-20, 0), positive(-10, 2), near(1.0, 2.0, 1.4616321449683623)):
        points = np.array(sampler(generator, POINTS))
        for x, value in zip(points, compiled(name, points), strict=True):
            reference = exact(mpmath.mpf(x))
            assert abs(value - reference) <= 2e-15 * max(0.1, abs(reference), x < 0), x


@pytest.mark.parametrize("order", [1, 2, 3, 7, 20])
def test_polygamma(order):
    kernel = jit_kernel(scalar_kernel("polygamma", "float64"))
    generator = np.random.default_rng(4)
    for sampler in (uniform(0, 3), uniform(-8, 0), positive(0, 5)):
        for x in sampler(generator, 25):
            reference = mpmath.psi(order, mpmath.mpf(x))
            assert abs(kernel(float(order), x) - reference) <= 2e-14 * abs(reference), x
    expected = scipy.special.polygamma(order, [0.0, np.inf])
    np.testing.assert_array_equal(np.abs([kernel(float(order), x) for x in (0.0, np.inf)]), np.abs(expected))


def exact_sinc_derivative(order, x):
    """The derivative by its Taylor series or, away from zero, the recurrence in enough digits."""
    if abs(x) < 1e-3:
        scaled = mpmath.pi * mpmath.mpf(x)
        terms = (
            mpmath.cos(mpmath.pi * (order + k) / 2) * scaled**k / (mpmath.factorial(k) * (order + k + 1))
            for k in range(12)
        )
        return mpmath.pi**order * sum(terms)
    with mpmath.workdps(60 + 4 * order):
        z = mpmath.pi * mpmath.mpf(x)
        value = mpmath.sin(z) / z
        for k in range(1, order + 1):
            value = (mpmath.sin(z + k * mpmath.pi / 2) - k * value) / z
        return mpmath.pi**order * value


@pytest.mark.parametrize("order", [0, 1, 2, 3, 8, 20])
def test_sinc_derivative(order):
    kernel = jit_kernel(scalar_kernel("sinc_derivative", "float64"))
    generator = np.random.default_rng(5)
    for sampler in (uniform(-1, 1), uniform(-12, 12), magnitudes(-18, 4)):
        for x in (*sampler(generator, 40), 0.0, 1.0, -7.0, 0.5):
            exact = exact_sinc_derivative(order, float(x))
            size = max(abs(exact), mpmath.pi**order / (order + 1)) if abs(x) > 1e-3 else abs(exact)
            assert abs(kernel(float(order), float(x)) - exact) <= 3e-15 * size + 1e-30, x
    assert np.isnan(kernel(float(order), np.inf))


@pytest.mark.parametrize("dtype", FLOATS)
def test_logaddexp(dtype):
    generator = np.random.default_rng(6)
    epsilon = np.finfo(dtype).eps
    for name, base in (("logaddexp", mpmath.e), ("logaddexp2", 2)):
        points = generator.uniform(-50, 50, (2, POINTS)).astype(dtype)
        for x, y, value in zip(*points, compiled(name, *points), strict=True):
            exact = mpmath.log(base ** mpmath.mpf(float(x)) + base ** mpmath.mpf(float(y)), base)
            assert abs(float(value) - exact) <= 2 * epsilon * max(abs(x), abs(y), 1)


def test_kernels_run_as_ordinary_python():
    operands = {1: ((0.3,), (-0.7,), (25.0,)), 2: ((0.3, 0.7), (2.0, -1.5)), 3: ((True, 0.3, 0.7),)}
    for name, dtype in itertools.product(SCALARS, FLOATS):
        choices = SCALARS[name]
        of_floats = not isinstance(choices, dict) or not choices.keys().isdisjoint({"any", "float", dtype})
        if name not in PRIMITIVES or not of_floats:
            continue
        function = scalar_kernel(name, dtype)
        points = operands[len(inspect.signature(function).parameters)]
        if name in ORDERS:
            points = [(2.0, x) for _, x in points]
        columns = [np.array(column, bool if column[0] is True else dtype) for column in zip(*points, strict=True)]
        with np.errstate(all="ignore"):
            plain = [float(function(*scalars)) for scalars in zip(*columns, strict=True)]
            plain, result = np.array(plain), compiled(name, *columns)
            plain = plain.astype(result.dtype)
        np.testing.assert_allclose(plain, result, rtol=8 * np.finfo(dtype).eps, atol=0, err_msg=f"{name} {dtype}")


@pytest.mark.parametrize("dtype", "int8 int16 int32 int64 uint8 uint16 uint32 uint64".split())
def test_divisors_and_bits_of_integers_of_any_size(dtype):
    info = np.iinfo(dtype)
    generator = np.random.default_rng(7)
    x, y = generator.integers(info.min, info.max, (2, 500), dtype, endpoint=True)
    x[:5], y[:5] = [0, info.min, info.max, info.min, 0], [0, 0, info.min, info.min, info.max]
    with np.errstate(all="ignore"):
        for function in (np.gcd, np.lcm):
            np.testing.assert_array_equal(nb.jit(function)(x, y), function(x, y))
            small = nb.jit(function)(x, y % 7)
            np.testing.assert_array_equal(small, function(x, y % 7))
    np.testing.assert_array_equal(nb.jit(np.bitwise_count)(x), np.bitwise_count(x))


@pytest.mark.parametrize("dtype", "float16 float32 float64".split())
def test_fractions_and_exponents_of_all_sizes(dtype):
    info = np.finfo(dtype)
    x = np.exp2(np.linspace(info.minexp - info.nmant, info.maxexp - 0.01, 997)).astype(dtype)
    x = np.concatenate([x, -x, [0.0, -0.0, np.inf, -np.inf, np.nan, info.max, info.smallest_subnormal]]).astype(dtype)
    for found, expected in zip(nb.jit(np.frexp)(x), np.frexp(x), strict=True):
        np.testing.assert_array_equal(found, expected)
        assert found.dtype == expected.dtype
    points = np.array([3.0, 0.1, -7.0, 0.0], dtype)
    slopes = nb.grad(lambda x: np.sum(np.frexp(x)[0]))(points)
    np.testing.assert_array_equal(slopes, [0.25, 8.0, 0.125, 1.0])


def test_kernel_modules_import_only_the_standard_scalars():
    functions = [f for choice in SCALARS.values() for f in (choice.values() if isinstance(choice, dict) else [choice])]
    for module in {function.__module__ for function in functions}:
        for node in ast.walk(ast.parse(inspect.getsource(sys.modules[module]))):
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= {"math", "numpy"}, module
            if isinstance(node, ast.ImportFrom):
                assert node.level == 1, module


def test_missing_kernels_are_named():
    with pytest.raises(KeyError, match="No scalar kernel is called 'sine'"):
        scalar_kernel("sine", "float64")
    with pytest.raises(KeyError, match="'divide' is not for int64, only float"):
        scalar_kernel("divide", "int64")
