"""The scalar kernels against mpmath (rounding error), NumPy and SciPy (special values, integers), and LLVM (vectors).

Every kernel of the table is compiled alone and called from Python.  Float errors are in ULP of the result; the bound of
each function is the one that its docstring states, rounded up.
"""

import ast
import inspect
import itertools
import re
import sys

import mpmath
import numpy as np
import pytest
import scipy.special
from nbgrad.kernels import SCALARS, scalar_kernel
from nbgrad.kernels.intrinsics import jit_kernel
from numba import njit

FLOATS = ("float64", "float32")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
POINTS = 120


@pytest.fixture(autouse=True)
def precision():
    """Enough digits for every reference value."""
    with mpmath.workprec(200):
        yield


def uniform(low, high):
    """Sampler of plain uniform numbers."""
    return lambda generator, count: generator.uniform(low, high, count)


def magnitudes(low, high, signs=(-1.0, 1.0)):
    """Sampler of numbers whose magnitude runs through powers of ten."""
    return lambda generator, count: 10.0 ** generator.uniform(low, high, count) * generator.choice(signs, count)


def near(*centres):
    """Sampler of numbers within a few ULP to a thousandth of the centres."""

    def sample(generator, count):
        return generator.choice(centres, count) * (1.0 + magnitudes(-16, -3)(generator, count))

    return sample


def positive(low, high):
    """Sampler of positive numbers whose magnitude runs through powers of ten."""
    return magnitudes(low, high, (1.0,))


def angles(generator, count):
    """The floats next to multiples of pi / 2, and those around the end of the vectorised reduction."""
    multiples = np.round(10.0 ** generator.uniform(0, 15, count)) * (np.pi / 2)
    multiples[:4] = 1e22, 2.0**30, np.nextafter(2.0**30, np.inf), 65536.0
    return multiples


CIRCLE = (uniform(-10, 10), uniform(-1e5, 1e5), magnitudes(-300, 308), magnitudes(-3, 12), angles)
POSITIVE = (uniform(0, 10), near(1.0), positive(-320, 308))
UNIT = (uniform(-1, 1), near(1.0, -1.0, 0.5, -0.5), magnitudes(-300, 0))

# name: (reference, bound in ULP, samplers of the operand)
UNARY = {
    "exp": (mpmath.exp, 1, (uniform(-20, 20), uniform(-745, 709), magnitudes(-300, 0))),
    "exp2": (lambda x: mpmath.mpf(2) ** x, 1, (uniform(-20, 20), uniform(-1074, 1023), magnitudes(-300, 0))),
    "expm1": (mpmath.expm1, 1.5, (uniform(-1, 1), uniform(-40, 709), magnitudes(-320, 0))),
    "log": (mpmath.log, 1, POSITIVE),
    "log2": (lambda x: mpmath.log(x) / mpmath.log(2), 1, POSITIVE),
    "log10": (lambda x: mpmath.log(x) / mpmath.log(10), 1, POSITIVE),
    "log1p": (mpmath.log1p, 1.2, (uniform(-1, 3), near(-1.0), magnitudes(-320, -1), positive(-2, 308))),
    "sin": (mpmath.sin, 1, CIRCLE),
    "cos": (mpmath.cos, 1, CIRCLE),
    "tan": (mpmath.tan, 1.2, CIRCLE),
    "arcsin": (mpmath.asin, 1.2, UNIT),
    "arccos": (mpmath.acos, 1.2, UNIT),
    "arctan": (mpmath.atan, 1.8, (uniform(-3, 3), magnitudes(-300, 300), near(0.4142, 2.4142))),
    "sinh": (mpmath.sinh, 1.2, (uniform(-3, 3), uniform(-710, 710), magnitudes(-320, 0))),
    "cosh": (mpmath.cosh, 1.2, (uniform(-3, 3), uniform(-710, 710), magnitudes(-320, 0))),
    "tanh": (mpmath.tanh, 2, (uniform(-1, 1), uniform(-25, 25), magnitudes(-320, 0))),
    "arcsinh": (mpmath.asinh, 1.5, (uniform(-3, 3), magnitudes(-300, 308))),
    "arccosh": (mpmath.acosh, 1.5, (uniform(1, 3), near(1.0), positive(0, 308))),
    "arctanh": (mpmath.atanh, 1.5, (uniform(-1, 1), near(1.0, -1.0), magnitudes(-300, 0))),
    "sqrt": (mpmath.sqrt, 0.5001, (positive(-320, 308),)),
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x) if x else mpmath.inf, 1.0, (positive(-323, 308),)),
    "cbrt": (lambda x: mpmath.sign(x) * mpmath.root(abs(x), 3), 0.8, (uniform(-9, 9), magnitudes(-320, 308))),
    "erf": (mpmath.erf, 1.5, (uniform(-1.5, 1.5), uniform(-6, 6), magnitudes(-300, 0), near(1.0))),
    "erfc": (mpmath.erfc, 3.2, (uniform(-1.5, 1.5), uniform(-6, 26), magnitudes(-300, 0), near(1.0))),
    "expit": (lambda x: 1 / (1 + mpmath.exp(-x)), 2, (uniform(-10, 10), uniform(-740, 40))),
    "logit": (
        lambda x: mpmath.log(x) - mpmath.log(1 - x),
        1.5,
        (uniform(0, 1), near(0.5), near(1.0), positive(-300, 0)),
    ),
}
WIDE = magnitudes(-300, 300)
BINARY = {
    "power": (
        mpmath.power,
        1.2,
        (
            (positive(-3, 3), uniform(-50, 50)),
            (uniform(0.9, 1.1), uniform(-5000, 5000)),
            (positive(-300, 300), uniform(-1, 1)),
            (near(1.0), magnitudes(3, 17)),
        ),
    ),
    "hypot": (lambda x, y: mpmath.sqrt(x * x + y * y), 0.8, ((uniform(-1, 1), uniform(-1, 1)), (WIDE, WIDE))),
    "arctan2": (
        mpmath.atan2,
        1.8,
        ((uniform(-1, 1), uniform(-1, 1)), (WIDE, WIDE), (near(1.0, -1.0), near(1.0, 0.4142, 2.4142))),
    ),
    "xlogy": (lambda x, y: x * mpmath.log(y), 1.5, ((uniform(-5, 5), uniform(0, 5)),)),
    "fmod": (lambda x, y: x - y * mpmath.mpf(int(x / y)), 0, ((uniform(-9, 9), uniform(-2, 2)),)),
}


def ulp_error(value, exact, dtype):
    """The distance of a computed float from the exact value, in ULP of the exact value."""
    limits = np.finfo(dtype)
    if isinstance(exact, mpmath.mpc) or mpmath.isnan(exact):
        return 0.0 if np.isnan(value) else np.inf
    if abs(exact) >= mpmath.mpf(float(limits.max)) * (1 + mpmath.mpf(2) ** -(limits.nmant + 2)):
        return 0.0 if np.isinf(value) else np.inf
    if not np.isfinite(value):
        return np.inf
    if exact == 0:
        return 0.0 if value == 0 else np.inf
    exponent = max(int(mpmath.floor(mpmath.log(abs(exact), 2))), limits.minexp) - limits.nmant
    return float(abs(mpmath.mpf(float(value)) - exact) / mpmath.mpf(2) ** exponent)


def worst_error(name, dtype, samplers, reference, count=POINTS):
    """The largest error of a kernel over samples of its operands, and where it is."""
    kernel = jit_kernel(scalar_kernel(name, dtype))
    generator = np.random.default_rng(20)
    worst = (0.0, ())
    largest = float(np.finfo(dtype).max)
    for group in samplers:
        columns = [sampler(generator, count) for sampler in (group if isinstance(group, tuple) else (group,))]
        operands = [np.clip(column, -largest, largest).astype(dtype) for column in columns]
        for scalars in zip(*operands, strict=True):
            if len(scalars) > 1 and 0 in scalars:
                continue
            exact = reference(*[mpmath.mpf(float(scalar)) for scalar in scalars])
            value = np.dtype(dtype).type(kernel(*scalars))
            worst = max(worst, (ulp_error(value, exact, dtype), tuple(map(float, scalars))))
    return worst


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*UNARY, *BINARY])
def test_error_in_ulp(name, dtype):
    reference, bound, samplers = (UNARY | BINARY)[name]
    with np.errstate(all="ignore"):
        error, operands = worst_error(name, dtype, samplers, reference)
    native = {"expit": 2.0, "erf": 1.5, "tanh": 1.5}
    bound = bound if dtype == "float64" else native.get(name, max(bound, 1.0))
    assert error <= bound, f"{name}({operands}) is off by {error:.2f} ULP"


def test_hardest_angle():
    # The float64 that is closest to a multiple of pi / 2; here the C library itself is off by up to 15 ULP.
    x = 6381956970095103 * 2.0**797
    for name in ("sin", "cos", "tan"):
        exact = getattr(mpmath, name)(mpmath.mpf(x))
        assert ulp_error(jit_kernel(scalar_kernel(name, "float64"))(x), exact, "float64") <= 16


NATIVE_SINGLE = ("exp", "expm1", "expit", "log", "log1p", "sin", "cos", "tanh", "erf")


def single_error(name, values):
    """The largest error of a float32 kernel over an array, in ULP, with float64 libraries for reference."""
    kernel = jit_kernel(scalar_kernel(name, "float32"))

    @njit(error_model="numpy")
    def apply(operands, results):
        for i in range(operands.size):
            results[i] = kernel(operands[i])

    library = getattr(np, name, None) or getattr(scipy.special, name)
    worst = 0.0
    for block in np.array_split(values, max(1, values.size >> 22)):
        results = np.empty_like(block)
        apply(block, results)
        with np.errstate(all="ignore"):
            exact = library(block.astype(np.float64))
            unit = np.spacing(np.abs(exact.astype(np.float32))).astype(np.float64)
            error = np.abs(results - exact) / unit
            ordinary = np.isfinite(exact.astype(np.float32))
        rounded = exact[~ordinary].astype(np.float32)
        np.testing.assert_array_equal(results[~ordinary], rounded)
        worst = max(worst, float(error[ordinary].max(initial=0.0)))
    return worst


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", NATIVE_SINGLE)
def test_single_precision_sample(name):
    bits = np.arange(0, 2**32, 10007, dtype=np.uint64).astype(np.uint32)
    assert single_error(name, bits.view(np.float32)) <= 2.3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", NATIVE_SINGLE)
def test_single_precision_all(name):
    for start in range(0, 2**32, 2**26):
        bits = np.arange(start, start + 2**26, dtype=np.uint64).astype(np.uint32)
        assert single_error(name, bits.view(np.float32)) <= 2.3


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
    # NumPy has neither of a boolean.
    missing = dtype == "bool" and name in {"positive", "sign"}
    return library_function(name) is not None and name not in ORDERS and not missing


@pytest.mark.parametrize("dtype", ["float64", "float32", "int8", "int64", "uint8", "uint64", "bool"])
def test_special_values(dtype):
    wrong = []
    for name in SCALARS:
        if not has_kernel(name, dtype):
            continue
        kernel = jit_kernel(scalar_kernel(name, dtype))
        library = library_function(name)
        for operands in cases(name, dtype):
            with np.errstate(all="ignore"):
                expected = np.asarray(library(*operands))
                computed = kernel(*operands)
                # The compiler truncates integers to the dtype.
                if expected.dtype.kind in "iu":
                    computed = np.array(int(computed) & 0xFFFFFFFFFFFFFFFF, np.uint64)
                computed = np.asarray(computed).astype(expected.dtype)
            tolerance = 4 * np.finfo(dtype).eps if np.dtype(dtype).kind == "f" else 0
            tolerance = 1e-14 if name == "digamma" and dtype == "float64" else tolerance
            same = np.allclose(computed, expected, rtol=tolerance, atol=0, equal_nan=True)
            if same and expected.dtype.kind == "f" and not np.isnan(expected) and name not in EITHER_ZERO:
                same = np.signbit(computed) == np.signbit(expected)
            if not same:
                wrong.append(f"{name}{operands} = {computed}, not {expected}")
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
    exact = {"gammaln": lambda x: mpmath.log(abs(mpmath.gamma(x))), "digamma": mpmath.digamma}[name]
    kernel = jit_kernel(scalar_kernel(name, "float64"))
    generator = np.random.default_rng(3)
    for sampler in (uniform(0, 3), uniform(-20, 0), positive(-10, 2), near(1.0, 2.0, 1.4616321449683623)):
        for x in sampler(generator, POINTS):
            reference = exact(mpmath.mpf(x))
            assert abs(kernel(x) - reference) <= 5e-15 * max(1, abs(reference)), x


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
        kernel = jit_kernel(scalar_kernel(name, dtype))
        for x, y in generator.uniform(-50, 50, (POINTS, 2)).astype(dtype):
            exact = mpmath.log(base ** mpmath.mpf(float(x)) + base ** mpmath.mpf(float(y)), base)
            assert abs(float(kernel(x, y)) - exact) <= 2 * epsilon * max(abs(x), abs(y), 1)


def test_kernels_run_as_ordinary_python():
    operands = {1: ((0.3,), (-0.7,), (25.0,)), 2: ((0.3, 0.7), (2.0, -1.5)), 3: ((True, 0.3, 0.7),)}
    for name, dtype in itertools.product(SCALARS, FLOATS):
        if name.startswith(("bitwise", "invert", "left", "right", "random")):
            continue
        function = scalar_kernel(name, dtype)
        for arguments in operands[len(inspect.signature(function).parameters)]:
            if name in ORDERS:
                arguments = (2.0, arguments[1])
            scalars = [value if isinstance(value, bool) else np.dtype(dtype).type(value) for value in arguments]
            with np.errstate(all="ignore"):
                plain, compiled = float(function(*scalars)), float(jit_kernel(function)(*scalars))
            tolerance = 8 * np.finfo(dtype).eps
            assert np.isclose(plain, compiled, rtol=tolerance, atol=0, equal_nan=True), (name, dtype, arguments)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["exp", "expm1", "log", "log1p", "sin", "tanh", "erf", "expit", "power", "remainder"])
def test_loops_vectorise(name, dtype):
    kernel = jit_kernel(scalar_kernel(name, dtype))

    @njit(error_model="numpy")
    def one(x, y, out):
        for i in range(x.size):
            out[i] = kernel(x[i])

    @njit(error_model="numpy")
    def two(x, y, out):
        for i in range(x.size):
            out[i] = kernel(x[i], y[i])

    loop = two if name in {"power", "remainder"} else one
    operand = np.ones(4, dtype)
    loop(operand, operand, operand.copy())
    (text,) = loop.inspect_llvm().values()
    element = "float" if dtype == "float32" and name not in {"power", "remainder"} else "double"
    assert re.search(rf"= tail call <\d+ x {element}> @llvm\.fm", text), f"the loop over {name} is not vectorised"


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
