"""`nb.elementwise`: functions of numbers with branches and loops agree with Python, one number at a time, and their
derivatives with differences of it; what was not taken never shows; what cannot be recorded is named."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import nbgrad as nb

pytestmark = pytest.mark.unoptimized

X = np.linspace(-2.013, 2.9, 23)
Y = np.linspace(2.97, -1.04, 7)[:, None]
HALF = 0.5
TABLE = (1.0, -2.0, 0.25)


def ladder(x, y):
    if x < -1:
        return -x * y
    elif x < 0:
        z = x * x
    elif x > 1 and y > 0:
        z = 1 / x
    else:
        z = math.sin(x)
    return z + y


def nested(x, y):
    z = 0.0
    if x > 0:
        if y > 0:
            z = x * y
        else:
            if y < -0.5:
                return x
            z = y
    else:
        z = x - y
    z += 1
    return z * x


def conditional(x, y):
    a = x if x > y else y
    return (a if a > 0.1 else -a) * (2.0 if y > 0 else 0.5)


def logic(x, y):
    if (x > 0 and y > 0) or not (x < -1):
        return x * 2
    return (x > 1.03) + (y > 1.03) + (x > 1.03) * y


def values_of_logic(x, y):
    return (x > 0 and y) + (max(x, 0.0) or y * y)


def chain(x, y):
    return x * y if -1 < x <= y < 2.5 else x - y


def series(x, y):
    total = 0.0
    term = 1.0
    for k in range(1, 9):
        total += term
        term *= x / k
        if k % 3 == 0:
            continue
        term += 0.01 * y
    return total


def newton(x, y):
    z = 1.0 + abs(x)
    for _ in range(12):
        step = (z * z - x * x - 0.3) / (2 * z)
        z -= step
        if abs(step) < 1e-3:
            break
    else:
        z = y
    return z


def find(x, y):
    for a in (0.5, 1.0, 1.5):
        for b in (1.1, 0.9):
            if a * b > abs(x):
                return a + x * b
            if y < -1:
                break
    return y * x


def skipping(x, y):
    total = 0.0
    for k in range(5):
        if x * k > 2.01:
            continue
        total = total + k * y
        if total > 3:
            total = total - x
    return total


def counted_while(x, y):
    n = 0
    while n < 4:
        n += 1
        x = x * 0.5 + y if x > 0.2 else x - 0.1
    return x


@numba.njit
def _helper(x, n=3):
    if x > 1:
        return x**n
    return x * HALF


def calls(x, y):
    return _helper(x) + _helper(y, n=2) + abs(min(x, y, 0.7)) - max((x, y))


def functions_of_math(x, y):
    a = math.exp(-x * x) + math.log1p(abs(y)) + math.atan2(y, x) + math.hypot(x, y) + math.copysign(x, y)
    b = math.erf(x) + math.pow(abs(x) + 1, y) + math.fabs(y) + math.tanh(x) + math.sqrt(abs(x) + 0.2)
    return a + b + math.lgamma(x * x + 0.5) + math.fmod(x, 0.7) + x % 0.75


def functions_of_numpy(x, y):
    a = np.where(x > y, np.exp(-x), np.sqrt(np.abs(y))) + np.maximum(x, y) + np.clip(x, -1.0, 1.0) + np.sign(y) * x
    return a + np.float64(0.1) * x + np.arctan(y)


def whole_numbers(x, y):
    n = int(x * 3)
    m = math.floor(y)
    return x * n + y * m + round(x) * y + float(n) + n // 2 + math.ceil(y) + math.trunc(x)


def tables(x, y):
    total = 0.0
    for k, c in enumerate(TABLE):
        total = total * x + c + 0 * k
    for c, d in zip(TABLE, reversed(TABLE), strict=True):
        total += c * d * y
    return total + TABLE[-1] + len(TABLE)


def assigned(x, y):
    a, b = x, y
    a, b = b, a
    (c, d), e = (a * b, a), 2.0
    c: float
    if (w := c + d) > 0:
        e *= w
    return e


def pair(x, y):
    if x > y:
        return x, y * y
    return y, x * 1.0


def constant(x, y):
    return 3.0 if HALF > 0 else x


FUNCTIONS = [
    ladder,
    nested,
    conditional,
    logic,
    values_of_logic,
    chain,
    series,
    newton,
    find,
    skipping,
    counted_while,
    calls,
    functions_of_math,
    functions_of_numpy,
    whole_numbers,
    tables,
    assigned,
    constant,
]


def each(function: Any, *arrays: Any) -> np.ndarray:
    """Python's own values, one number at a time."""
    return np.vectorize(lambda *numbers: float(function(*map(float, numbers))), otypes=[float])(*arrays)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_values_and_gradients(function: Any) -> None:
    fast = nb.elementwise(function)
    expected = each(function, X, Y)
    np.testing.assert_allclose(fast(X, Y), expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(fast(nb.Tensor(X), nb.Tensor(Y)).asnumpy(), expected, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(nb.jit(lambda x, y: fast(x, y) * 2)(X, Y), expected * 2, rtol=1e-13, atol=1e-13)
    np.testing.assert_allclose(nb.vmap(fast, (None, 0))(X, Y[:, 0]), expected, rtol=1e-13, atol=1e-13)
    found = nb.jit(nb.grad(lambda x, y: np.sum(fast(x, y)), (0, 1)))(X, Y)
    step = 1e-6
    by_x = (each(function, X + step, Y) - each(function, X - step, Y)) / (2 * step)
    by_y = (each(function, X, Y + step) - each(function, X, Y - step)) / (2 * step)
    np.testing.assert_allclose(found[0], by_x.sum(0), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found[1], by_y.sum(1, keepdims=True), rtol=1e-6, atol=1e-6)
    moves = (np.cos(X), np.sin(Y))
    _, tangent = nb.jvp(fast, (X, Y), moves)
    np.testing.assert_allclose(tangent, by_x * moves[0] + by_y * moves[1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("function", [ladder, nested, series, newton, find, counted_while, functions_of_math])
def test_second_derivatives(function: Any) -> None:
    first = nb.grad(lambda x: np.sum(nb.elementwise(function)(x, 0.4)))
    step = 1e-6
    expected = (first(X + step) - first(X - step)) / (2 * step)
    np.testing.assert_allclose(nb.grad(lambda x: np.sum(first(x)))(X), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "function", [ladder, nested, series, find, skipping, counted_while, calls], ids=lambda f: f.__name__
)
def test_as_numba_compiles_it(function: Any) -> None:
    compiled: Any = numba.njit(function)
    found = nb.elementwise(compiled)(X, Y)
    expected = np.array([[compiled(x, y) for x in X] for y in Y[:, 0]])
    np.testing.assert_allclose(found, expected, rtol=1e-13, atol=1e-13)


def test_a_function_for_numba_vectorize() -> None:
    vectorize: Any = numba.vectorize
    vectorized = vectorize(["float64(float64, float64)"])(ladder)
    np.testing.assert_allclose(nb.elementwise(vectorized)(X, Y), vectorized(X, Y), rtol=1e-13)


def test_several_results() -> None:
    first, second = nb.elementwise(pair)(X, Y)
    np.testing.assert_array_equal(first, np.maximum(X, Y))
    np.testing.assert_allclose(second, np.where(X > Y, Y * Y, X))


def test_it_is_one_loop() -> None:
    text = nb.explain(nb.grad(lambda x: np.sum(nb.elementwise(series)(x, 0.5) ** 2)), X)
    assert text.splitlines()[0].startswith("<lambda>: 1 kernel,")


# ----- What was not taken -----


def root(x):
    return math.sqrt(x) * math.log(x) if x > 0 else 0.0


def reciprocal(x):
    if x == 0:
        return 1.0
    return math.sin(x) / x


def power(x):
    if x <= 0:
        y = 0.0
    else:
        y = x**0.5 + 1 / x + math.log(x)
    return y


def overflow(x):
    if x > 50:
        return x
    return math.log(1 + math.exp(x))


def left_by_break(x):
    z = x
    for _ in range(3):
        if z <= 0:
            break
        z = math.sqrt(z) - 0.5
    return z


@pytest.mark.parametrize(
    ("function", "slope"),
    [
        (root, lambda x: (math.log(x) / 2 + 1) / math.sqrt(x) if x > 0 else 0.0),
        (reciprocal, lambda x: 0.0 if x == 0 else (x * math.cos(x) - math.sin(x)) / x**2),
        (power, lambda x: 0.0 if x <= 0 else 0.5 * x**-0.5 - x**-2 + 1 / x),
        (overflow, lambda x: 1.0 if x > 50 else 1 / (1 + math.exp(-x))),
        (left_by_break, None),
    ],
)
def test_a_branch_that_is_not_taken_contributes_zero(function: Any, slope: Any) -> None:
    x = np.array([-3.0, 0.0, 0.5, 2.0, 1000.0])
    fast = nb.elementwise(function)
    np.testing.assert_allclose(fast(x), [float(function(v)) for v in x], rtol=1e-14)
    first = nb.grad(lambda x: np.sum(fast(x)))
    second = nb.grad(lambda x: np.sum(first(x)))
    if slope is not None:
        np.testing.assert_allclose(first(x), [slope(v) for v in x], rtol=1e-13)
        np.testing.assert_allclose(nb.jvp(fast, (x,), (np.ones(5),))[1], first(x), rtol=1e-13)
    for gradient in (first, second, nb.jit(first), nb.jit(second)):
        assert np.all(np.isfinite(gradient(x)))


# ----- Dtypes and arguments -----


def mixed(x, y):
    if x > 1:
        return x + y
    return 0.5 * math.exp(x) if y > 0 else -x


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.float16])
def test_dtypes_are_numpys(dtype: Any) -> None:
    x = np.array([0, 2, 1, 3], dtype)
    y = np.array([1, -2, -1, 0.0], dtype)
    expected = np.where(x > 1, x + y, np.where(y > 0, 0.5 * np.exp(x), -x))
    found = nb.elementwise(mixed)(x, y)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-3 if dtype is np.float16 else 1e-6)


def test_python_numbers_do_not_widen() -> None:
    scale = nb.elementwise(lambda x: (1.0 if x > 0 else -1.0) * x)
    assert scale(X.astype(np.float32)).dtype == np.float32
    assert nb.elementwise(mixed)(X.astype(np.float32), 0.3).dtype == np.float32
    assert nb.elementwise(mixed)(nb.Tensor(X, nb.float32), 1).dtype == nb.float32


def test_numbers_give_numbers() -> None:
    assert nb.elementwise(mixed)(2.0, 0.5) == 2.5
    assert isinstance(nb.elementwise(mixed)(2.0, 0.5), np.float64)
    assert nb.grad(nb.elementwise(mixed))(0.0, 1.0) == 0.5


def test_static_arguments_and_defaults() -> None:
    @nb.elementwise
    def polynomial(x, n, scale=2.0, *, kind="sum"):
        total = 0.0 if kind == "sum" else 1.0
        for k in range(n):
            total = total + x**k if kind == "sum" else total * (x + k)
        return scale * total

    np.testing.assert_allclose(polynomial(X, 3), 2 * (1 + X + X**2))
    np.testing.assert_allclose(polynomial(X, 2, 1.0, kind="product"), X * (X + 1))
    np.testing.assert_allclose(nb.grad(lambda s: np.sum(polynomial(X, 3, s)))(1.5), np.sum(1 + X + X**2))


def test_closures_globals_and_lambdas() -> None:
    factor = 3.0

    def scaled(x):
        return factor * x if x > HALF else helper(x)

    def helper(x):
        return -x

    np.testing.assert_allclose(nb.elementwise(scaled)(X), np.where(X > 0.5, 3 * X, -X))
    np.testing.assert_allclose(nb.elementwise(lambda x: x if x > 0 else 0.0)(X), np.maximum(X, 0))
    again = nb.elementwise(nb.elementwise(scaled))
    np.testing.assert_allclose(nb.elementwise(lambda x: again(x) * 2)(X), 2 * np.where(X > 0.5, 3 * X, -X))


def test_casts_of_numpy_and_numba() -> None:
    found = nb.elementwise(lambda x: np.float32(x) + numba.float32(0.25))(X)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, X.astype(np.float32) + np.float32(0.25))


def test_arguments_that_may_be_left_out_and_tuples() -> None:
    @nb.elementwise
    def shifted(x, by=None, line=(1.0, 0.0)):
        if by is not None:
            x = x + by
        return line[0] * x + line[1]

    np.testing.assert_allclose(shifted(X), X)
    np.testing.assert_allclose(shifted(X, 2.0), X + 2)
    np.testing.assert_allclose(shifted(X, Y, (3.0, 1.0)), 3 * (X + Y) + 1)


def test_the_arguments_are_not_changed() -> None:
    @nb.elementwise
    def increased(x):
        x += 1
        return x

    for x in (X.copy(), nb.Tensor(X)):
        np.testing.assert_allclose(increased(x), X + 1)
        np.testing.assert_array_equal(x, X)


def test_complex_numbers() -> None:
    fast = nb.elementwise(lambda z: z * z if abs(z) < 1 else z.conjugate())
    np.testing.assert_allclose(fast(np.array([0.5j, 2 + 1j])), [-0.25, 2 - 1j])


def test_integers() -> None:
    def collatz(n):
        for _ in range(4):
            n = n // 2 if n % 2 == 0 else 3 * n + 1
        return n ^ 1

    n = np.arange(20)
    np.testing.assert_array_equal(nb.elementwise(collatz)(n), [collatz(int(v)) for v in n])


def test_on_a_simulated_device() -> None:
    code = """
import numpy as np, nbgrad as nb
from tests.test_elementwise_functions import X, Y, each, ladder
fast = nb.elementwise(ladder)
x, y = nb.Tensor(X, device="cuda"), nb.Tensor(Y, device="cuda")
found = fast(x, y)
assert found.device == "cuda"
np.testing.assert_allclose(found.cpu().asnumpy(), each(ladder, X, Y), rtol=1e-13)
on_host = nb.grad(lambda x: np.sum(fast(x, Y)))(X)
np.testing.assert_allclose(nb.grad(lambda x: np.sum(fast(x, y)))(x).cpu().asnumpy(), on_host, rtol=1e-12)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NBGRAD_CUDA_SIMULATOR": "1"},
        timeout=600,
        cwd=Path(__file__).parents[1],
    )
    assert done.returncode == 0, done.stderr
