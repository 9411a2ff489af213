"""Arguments and results of `nb.kernel` that are complex, tuples, or named tuples.

Facts are central differences of the kernels themselves, by real and imaginary parts, and NumPy's results.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit

import nbgrad as nb
from nbgrad.errors import ArgumentError, DtypeError

pytestmark = pytest.mark.unoptimized(but=16)
STEP = 1e-6


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels and their derivatives run as Python."""
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")


@njit
def waves(z, w, scale):
    total = 0.0 * scale
    for i in range(len(z)):
        z[i] = z[i] * np.exp(1j * scale) + w * z[i - 1].conjugate()
        total += abs(z[i]) ** 2
    return total, z[0] / w, z[1:] * w


def by_differences(function: Any, z: np.ndarray) -> np.ndarray:
    """dL/dx + i dL/dy by central differences, for each element."""
    found = np.zeros(z.shape, complex)
    for at in np.ndindex(z.shape):
        for unit in (1.0, 1j):
            step = np.zeros(z.shape, complex)
            step[at] = STEP * unit
            found[at] += unit * (function(z + step) - function(z - step)) / (2 * STEP)
    return found


Z = np.array([0.3 + 0.4j, -1.2 + 0.1j, 0.7 - 0.9j])


def weighted(parts: Any) -> Any:
    """A real number that depends on all results of `waves`."""
    after, total, ratio, rest = parts
    return np.sum(abs(after) ** 2) + total + (ratio * (1 + 2j)).real + np.sum(rest.imag * np.arange(1.0, 3.0))


def by_python(z: np.ndarray, w: complex, scale: float) -> Any:
    """The results of the kernel itself."""
    after = z.copy()
    return after, *waves.py_func(after, w, scale)


def test_complex_values_are_those_of_the_kernel() -> None:
    for dtype in (np.complex128, np.complex64):
        z = Z.astype(dtype)
        found = nb.kernel(waves)(z, 0.5 - 0.2j, 0.7)
        for one, other in zip(found, by_python(z, 0.5 - 0.2j, 0.7), strict=True):
            assert np.allclose(one, other, rtol=1e-6)
        assert found[0].dtype == dtype
        assert np.array_equal(z, Z.astype(dtype)), "an argument has changed"


def test_complex_gradients_are_those_of_the_parts() -> None:
    function = nb.kernel(waves)
    w, scale = 0.5 - 0.2j, 0.7
    by_z, by_w, by_scale = nb.grad(lambda z, w, s: weighted(function(z, w, s)), (0, 1, 2))(Z, w, scale)
    assert np.allclose(by_z, by_differences(lambda z: weighted(by_python(z, w, scale)), Z), rtol=1e-7)
    expected = by_differences(lambda one: weighted(by_python(Z, complex(one[0]), scale)), np.array([w]))
    assert np.allclose(by_w, expected[0], rtol=1e-7)
    ends = [weighted(by_python(Z, w, scale + step)) for step in (STEP, -STEP)]
    assert by_scale == pytest.approx((ends[0] - ends[1]) / (2 * STEP), rel=1e-7)


def test_complex_arguments_in_all_modes() -> None:
    function = nb.kernel(waves)

    def loss(z: Any) -> Any:
        return weighted(function(z, 0.5 - 0.2j, 0.7))

    gradient = nb.grad(loss)(Z)
    along = np.array([0.1 + 0.2j, -0.3j, 0.4])
    slope = np.sum((np.conj(gradient) * along).real)
    assert nb.jvp(loss, (Z,), (along,))[1] == pytest.approx(slope, rel=1e-12)
    assert np.allclose(nb.jit(nb.grad(loss))(Z), gradient, rtol=1e-12)
    both = np.stack([Z, 2.0 * Z])
    assert np.allclose(nb.vmap(nb.grad(loss))(both)[0], gradient, rtol=1e-12)
    _, turned = nb.jvp(nb.grad(loss), (Z,), (along,))
    ends = [nb.grad(loss)(Z + step * along) for step in (STEP, -STEP)]
    assert np.allclose(turned, (ends[0] - ends[1]) / (2 * STEP), rtol=1e-6)


class Body(NamedTuple):
    """A body of a simulation."""

    place: Any
    mass: Any
    neighbours: int


@njit
def gathered(pair, body, shape):
    out = np.zeros(shape)
    place, scale = pair
    for i in range(shape[0]):
        for j in range(body.neighbours):
            out[i, j] = place[i] * body.place[j] * scale + body.mass
        body.place[i] = out[i, 0]
    return out


def test_tuples_and_named_tuples() -> None:
    function = nb.kernel(gathered)
    a, b = np.array([0.5, 1.5]), np.array([1.0, 2.0, 3.0])
    place, out = function((a, 2.0), Body(b, 0.25, 2), (2, 3))
    # out[i, j] = 2 a[i] b[j] + 1/4, and then b[i] = out[i, 0]: b[0] = 1.25 before the second row.
    assert np.allclose(out, [[1.25, 2.25, 0.0], [4.0, 6.25, 0.0]], rtol=1e-15)
    assert np.allclose(place, [1.25, 4.0, 3.0], rtol=1e-15)
    by_scale, by_mass = nb.grad(lambda scale, mass: function((a, scale), Body(b, mass, 2), (2, 3))[1][1, 0], (0, 1))(
        2.0, 0.25
    )
    # out[1, 0] = s a1 (s a0 b0 + m) + m.
    assert by_scale == pytest.approx(1.5 * (2 * 0.5 * 2.0 + 0.25), rel=1e-14)
    assert by_mass == pytest.approx(2.0 * 1.5 + 1.0, rel=1e-14)


@njit
def unsigned(x, n, out):
    for i in range(len(x)):
        step = n[i] - n[i - 1]
        out[i] = step * x[i] + (-n[i] // 2) * x[i] ** 2
        if n[i] * n[i] < n[i - 1]:
            out[i] += x[i]


@njit
def _ends(x):
    low, high = np.min(x), np.max(x)
    return Ends(low * high, Ends(low, high))


class Ends(NamedTuple):
    low: Any
    high: Any


def test_a_named_tuple_that_a_kernel_makes_comes_back() -> None:
    ends = nb.kernel(_ends)
    found = ends(np.array([2.0, 3.0, 5.0]))
    assert isinstance(found, Ends)
    assert found == Ends(10.0, Ends(2.0, 5.0))
    gradient = nb.jit(nb.grad(lambda x: ends(x).low + ends(x).high.high))(np.array([2.0, 3.0, 5.0]))
    assert np.array_equal(gradient, [5.0, 0.0, 3.0])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_unsigned_integers_are_those_of_numba(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NBGRAD_DISABLE_JIT")
    x, n = np.array([0.5, -0.75, 1.5]), np.array([1, 200, 3], dtype)
    found = nb.grad(lambda x: np.sum(nb.kernel(unsigned, check="never", shape=lambda x, n: x)(x, n)))(x)
    ahead, behind = np.zeros(3), np.zeros(3)
    unsigned(x + 0.25, n, ahead)
    unsigned(x - 0.25, n, behind)
    # Polynomials of second degree: differences of any step are exact.
    assert np.allclose(found, (ahead - behind) / 0.5, rtol=1e-13)


@njit
def unsigned_steps(x, n):
    return np.sum((n[1:] - n[:-1]) * x[1:])


@njit
def doubled(y, rate, out):
    for i in range(len(y)):
        out[i] = 2.0 * rate * y[i]


@njit
def squared(y, rate, out):
    for i in range(len(y)):
        out[i] = rate * y[i] ** 2


@njit
def one_step(slope, y, rate, change):
    slope(y, rate, change)
    return y + 0.5 * change


@njit
def integrated(slope, y, rate, steps):
    change = np.zeros(len(y))
    for _ in range(steps):
        y = one_step(slope, y, rate, change)
    return y


def test_compiled_functions_as_arguments() -> None:
    call, y = nb.kernel(integrated), np.array([0.5, 1.5])
    # y -> y (1 + rate), and y -> y + rate y^2 / 2.
    assert np.allclose(call(doubled, y, 0.1, 3), y * 1.1**3, rtol=1e-14)
    assert nb.grad(lambda rate: call(doubled, y, rate, 3)[0])(0.1) == pytest.approx(0.5 * 3 * 1.1**2, rel=1e-14)
    assert np.allclose(nb.grad(lambda y: np.sum(call(squared, y, 0.1, 1)))(y), 1.0 + 0.1 * y, rtol=1e-14)
    assert np.allclose(nb.grad(lambda y: np.sum(call(doubled, y, 0.1, 1)))(y), 1.1, rtol=1e-14)


@njit
def nested_results(t, x, shape):
    total = 0.0
    for i in range(shape[0]):
        x[i] *= t[0]
        total += x[i] * t[1]
    return total, (t[0] * t[1], (x, shape)), None, (2.0 * x,)


def test_tuples_in_the_tuple_that_a_kernel_returns() -> None:
    call, x = nb.kernel(nested_results), np.array([0.5, 0.7])
    expected = nested_results.py_func((0.3, 0.4), x.copy(), (2, 1))
    total, (product, (written, shape)), none, (doubled,) = call((0.3, 0.4), x, (2, 1))
    assert (total, product, shape, none) == (expected[0], expected[1][0], (2, 1), None)
    assert np.array_equal(written, expected[1][1][0])
    assert np.array_equal(doubled, expected[3][0])

    def objective(a: Any, x: Any) -> Any:
        total, (product, (written, _)), _, (doubled,) = call((a, 0.4), x, (2, 1))
        return total + 10.0 * product + 100.0 * written[0] + 1000.0 * doubled[1]

    by_a, by_x = nb.grad(objective, (0, 1))(0.3, x)
    assert by_a == pytest.approx(0.4 * 1.2 + 4.0 + 50.0 + 1400.0, rel=1e-14)
    assert np.allclose(by_x, [0.3 * 0.4 + 30.0, 0.3 * 0.4 + 600.0], rtol=1e-14)


def test_complex_results_from_real_arguments() -> None:
    @njit
    def turned(angle, out):
        for k in range(len(out)):
            out[k] = np.exp(1j * k * angle)
        return out[1] * 2.0

    function = nb.kernel(turned, shape=lambda angle: ((3,), np.complex128))
    out, double = function(0.5)
    assert np.allclose(out, np.exp(0.5j * np.arange(3)), rtol=1e-15)
    assert isinstance(double, complex)
    # d Im exp(2 i a) / da = 2 cos(2 a)
    assert nb.grad(lambda a: function(a)[0][2].imag)(0.5) == pytest.approx(2 * np.cos(1.0), rel=1e-13)


@njit
def _sorted_complex(z):
    return np.sort(z)[0]


@njit
def _arcsine(z):
    return np.arcsin(z[0]) * z[0]


@njit
def _named_alike(p, p_0):
    return p[0] * p_0


@njit
def _places(x):
    return np.sum(x) * np.diff(np.expand_dims(x, 0), 2)[0, 0]


@njit
def _truncated(x):
    return np.linalg.pinv(np.outer(x, x) + np.diag(x), 0.1)


@njit
def _shifted(x, y):
    for i in range(1, len(x)):
        x[i] += y[i - 1]


@pytest.mark.parametrize(
    ("kernel", "arguments", "message"),
    [
        (_sorted_complex, (Z,), r"calls sort\(\) with complex numbers"),
        (_arcsine, (Z,), "computes arcsin of complex numbers"),
        (unsigned_steps, (np.ones(3), np.ones(3, np.uint8)), r"unsigned integers, .* x.astype\(np.int64\)"),
        (_places, (np.ones(3),), r"calls diff\(\) in a form of which no derivative is known"),
        (_truncated, (np.ones(3),), r"gives pinv\(\) an rcond above 1e-8"),
        (_named_alike, ((1.0, 2.0), 3.0), "an argument `p_0` and a tuple with a part of that name"),
        (gathered, ((Z, object()), 1.0, 2), "got an object as `pair_1`"),
        (waves, (Z.astype(np.clongdouble), 1j, 0.5), "Pass float32, float64, complex64"),
    ],
)
def test_sentences(kernel: Any, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises((ArgumentError, DtypeError), match=message):
        nb.kernel(kernel)(*arguments)


# ----- One array under two names -----


@pytest.mark.parametrize(
    "call",
    [
        lambda f, x: f(x, x),
        lambda f, x: f(x[1:], x[:-1]),
        lambda f, x: nb.grad(lambda z: np.sum(f(z, z)))(x),
        lambda f, x: nb.grad(lambda z: np.sum(f(z[1:], z[:-1])))(x),
        lambda f, x: nb.jit(lambda z: np.sum(f(z[1:], z[:-1])))(x),
        lambda f, x: nb.vmap(lambda z: f(z, z))(np.stack([x, x])),
    ],
)
def test_an_array_that_is_written_to_has_one_name(call: Any) -> None:
    with pytest.raises(ArgumentError, match="writes to `x`, which shares memory with `y`"):
        call(nb.kernel(_shifted), np.arange(4.0))


def test_parts_apart_and_copies_are_arrays_of_their_own() -> None:
    function = nb.kernel(_shifted)
    x = np.arange(6.0)
    # x[i] += y[i - 1], on paper.
    assert np.array_equal(function(x[:3], x[3:]), [0.0, 4.0, 6.0])
    assert np.array_equal(function(x[::2], x[1::2]), [0.0, 3.0, 7.0])
    assert np.array_equal(function(x[:3], x[:3].copy()), [0.0, 1.0, 3.0])
    assert np.array_equal(nb.grad(lambda z: np.sum(function(z[::2], z[1::2])))(x), [1, 1, 1, 1, 1, 0])
    assert np.array_equal(nb.grad(lambda z: np.sum(function(z, z.copy())))(x), [2, 2, 2, 2, 2, 1])


# ----- Functions as arguments of functions -----


@njit
def _applied(f, x, turns=1):
    for _ in range(turns):
        x = f(x)
    return x


@njit
def passed_inner_functions(x):
    low = 0.25

    def cubed(z, s=0.5):
        return s * z**3 + low

    return _applied(cubed, x, 2) * _applied(x=x, f=cubed) + _applied(lambda y: y * y, cubed(x))


def test_inner_functions_go_to_other_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NBGRAD_DISABLE_JIT")

    # f(f(x)) f(x) + f(x)^2 with f(z) = z^3/2 + 1/4, on paper.
    def f(z: float) -> tuple[float, float]:
        return 0.5 * z**3 + 0.25, 1.5 * z * z

    once, slope_once = f(0.7)
    twice, slope_twice = f(once)
    expected = slope_twice * slope_once * once + twice * slope_once + 2.0 * once * slope_once
    function = nb.kernel(passed_inner_functions)
    assert function(0.7) == pytest.approx(twice * once + once * once, rel=1e-15)
    assert nb.grad(lambda x: function(x))(0.7) == pytest.approx(expected, rel=1e-14)
    assert nb.jvp(lambda x: function(x), (0.7,), (1.0,))[1] == pytest.approx(expected, rel=1e-14)
