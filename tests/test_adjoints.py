"""Derivatives of whole Numba kernels: `nb.kernel`.

Facts come from the kernels themselves, by central differences, and from paper. Most run as plain Python, which takes no
time to compile; a few run compiled.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numba import njit

import nbgrad as nb
from nbgrad.errors import ArgumentError, DtypeError

from . import (
    kernels_of_arrays,
    kernels_of_forms,
    kernels_of_functions,
    kernels_of_matrices,
    kernels_of_nests,
    threaded_kernels,
)
from .adjoint_kernels import ROWS, Row

pytestmark = pytest.mark.unoptimized
TABLES = (
    kernels_of_arrays,
    kernels_of_forms,
    kernels_of_functions,
    kernels_of_matrices,
    kernels_of_nests,
    threaded_kernels,
)
"""Modules that put more kernels into the table."""
STEP = 1e-5


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels and their derivatives run as Python."""
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")


def floats(arguments: tuple[Any, ...]) -> list[int]:
    """The positions of arguments of floats."""
    return [k for k, one in enumerate(arguments) if np.asarray(one).dtype.kind == "f"]


def total_of(call: Any, row: Row) -> Any:
    """A number that depends on all results of a call, as a function of the arguments of floats."""

    def total(*given: Any) -> Any:
        arguments = [one.copy() if isinstance(one, np.ndarray) else one for one in row.arguments]
        for k, value in zip(floats(row.arguments), given, strict=True):
            arguments[k] = value
        found = call(*arguments)
        parts = found if isinstance(found, tuple) else (found,)
        return sum(np.sum(np.sin(part * (1 + k))) for k, part in enumerate(parts))

    return total


def plain_call(row: Row) -> Any:
    """The kernel itself as a function that gives what it writes and returns."""
    function = row.kernel.py_func
    written = nb_written(ROWS[function.__name__])

    def call(*arguments: Any) -> Any:
        own = [one.copy() if isinstance(one, np.ndarray) else one for one in arguments]
        found = function(*own)
        returned = found if isinstance(found, tuple) else () if found is None else (found,)
        return (*[own[k] for k in written], *returned)

    return call


def nb_written(row: Row) -> list[int]:
    """The positions of arrays that a kernel writes to, seen by running it."""
    own = [one.copy() if isinstance(one, np.ndarray) else one for one in row.arguments]
    row.kernel.py_func(*own)
    return [
        k
        for k, (a, b) in enumerate(zip(own, row.arguments, strict=True))
        if isinstance(a, np.ndarray) and not np.array_equal(a, b)
    ]


def moved(point: list[Any], along: list[Any], step: float) -> list[Any]:
    """A point a step along a direction."""
    return [x + step * v for x, v in zip(point, along, strict=True)]


def slope(function: Any, point: list[Any], along: list[Any]) -> Any:
    """The derivative along a direction, by differences of fourth order."""
    near = [function(*moved(point, along, k * STEP)) for k in (-2, -1, 1, 2)]
    return (near[0] - 8 * near[1] + 8 * near[2] - near[3]) / (12 * STEP)


def gradient(function: Any, point: list[Any]) -> tuple[Any, ...]:
    """The gradient by all arguments."""
    found = nb.grad(function, tuple(range(len(point))))(*point)
    return found if isinstance(found, tuple) else (found,)


def task(name: str) -> tuple[Row, Any, list[Any], list[Any], list[Any]]:
    """A row; a number that depends on all results of its kernel; the point, and two directions from there."""
    row = ROWS[name]
    point = [row.arguments[k] for k in floats(row.arguments)]
    random = np.random.default_rng(3)
    along, across = ([0.1 * random.standard_normal(np.shape(one)) for one in point] for _ in range(2))
    return row, total_of(nb.kernel(row.kernel), row), point, along, across


@pytest.mark.sampled(of=4)
@pytest.mark.parametrize("name", ROWS)
def test_first_derivatives_are_those_of_the_kernel(name: str, plain: None) -> None:
    row, total, point, along, _ = task(name)
    expected = total_of(plain_call(row), row)
    before = [np.copy(one) for one in row.arguments]
    assert float(total(*point)) == pytest.approx(float(expected(*point)), rel=1e-14)
    change = slope(expected, point, along)
    found = gradient(total, point)
    dot = sum(np.sum(g * v) for g, v in zip(found, along, strict=True))
    assert dot == pytest.approx(change, rel=1e-8, abs=1e-8)
    _, tangent = nb.jvp(total, tuple(point), tuple(along))
    assert float(tangent) == pytest.approx(dot, rel=1e-12, abs=1e-13)
    for one, other in zip(row.arguments, before, strict=True):
        assert np.array_equal(one, other), "an argument has changed"


@pytest.mark.parametrize(
    "name",
    [
        "conjugate_gradients",
        "line_search",
        "read_after_the_loop",
        "tested_now_and_then",
        "anew_until_it_is_left",
        "returned_from_an_inner_loop",
        "left_in_the_else_of_an_inner_loop",
    ],
)
def test_a_turn_that_has_left_its_loop_ends_there(name: str, plain: None) -> None:
    row, total, point, along, _ = task(name)
    found = gradient(total, point)
    dot = sum(np.sum(g * v) for g, v in zip(found, along, strict=True))
    assert dot == pytest.approx(slope(total_of(plain_call(row), row), point, along), rel=1e-7)


@pytest.mark.sampled(of=5)
@pytest.mark.parametrize("name", ROWS)
def test_second_derivatives_are_those_of_the_first(name: str, plain: None) -> None:
    row, total, point, along, across = task(name)
    before = [np.copy(one) for one in row.arguments]
    _, second = nb.jvp(lambda *x: gradient(total, list(x)), tuple(point), tuple(along))
    numeric = [slope(lambda *x, k=k: gradient(total, list(x))[k], point, along) for k in range(len(point))]
    for one, other in zip(second, numeric, strict=True):
        assert np.allclose(one, other, rtol=1e-6, atol=1e-6)
    _, twice = nb.jvp(lambda *x: nb.jvp(total, x, tuple(across))[1], tuple(point), tuple(along))
    mixed = sum(np.sum(one * v) for one, v in zip(second, across, strict=True))
    assert float(twice) == pytest.approx(float(mixed), rel=1e-9, abs=1e-10)
    weighted = gradient(
        lambda *x: sum(np.sum(g * v) for g, v in zip(gradient(total, list(x)), along, strict=True)), point
    )
    for one, other in zip(weighted, second, strict=True):
        assert np.allclose(one, other, rtol=1e-10, atol=1e-12)
    for one, other in zip(row.arguments, before, strict=True):
        assert np.array_equal(one, other), "an argument has changed"


@pytest.mark.parametrize("name", ["tridiagonal", "jumps", "calls", "repeated", "eigenvectors"])
def test_compiled_derivatives_are_those_of_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = ROWS[name]
    point = [row.arguments[k] for k in floats(row.arguments)]
    compiled = gradient(total_of(nb.kernel(row.kernel), row), point)
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    python = gradient(total_of(nb.kernel(row.kernel), row), point)
    for one, other in zip(compiled, python, strict=True):
        assert np.allclose(one, other, rtol=1e-12, atol=1e-13)


@njit
def log_gammas(x: Any, out: Any) -> None:
    for i in range(len(x)):
        out[i] = math.lgamma(x[i])


def test_special_functions_that_derivatives_bring(plain: None) -> None:
    function = nb.kernel(log_gammas, shape=lambda x: x)
    found = nb.grad(lambda x: np.sum(function(x)))(np.array([1.0, 2.0]))
    assert np.allclose(found, [-0.5772156649015329, 0.4227843350984671], rtol=1e-13, atol=0)
    assert "def nbgrad_digamma(x)" in function.vjp.source


def test_in_compiled_and_batched_functions(plain: None) -> None:
    function = nb.kernel(ROWS["carried"].kernel)
    x = np.array([[0.1, 0.7, 1.1], [0.3, 0.2, 0.9]])

    def total(x: Any) -> Any:
        return np.sum(function(x, np.zeros(3)) ** 2)

    separate = np.stack([nb.grad(total)(one) for one in x])
    assert np.allclose(nb.vmap(nb.grad(total))(x), separate, rtol=1e-14)
    assert np.allclose(nb.jit(nb.grad(total))(x[0]), separate[0], rtol=1e-14)
    hessian = nb.hessian(total)(x[0])
    assert np.allclose(hessian, np.asarray(hessian).T, rtol=1e-12)


def test_analytic_values(plain: None) -> None:
    # Kepler's equation E - e sin E = M: dE/dM = 1/(1 - e cos E), dE/de = sin E/(1 - e cos E).
    function = nb.kernel(ROWS["newton"].kernel)
    mean, eccentricity = 0.5, 0.3
    angle = float(function(mean, eccentricity))
    by_mean, by_eccentricity = nb.grad(function, (0, 1))(mean, eccentricity)
    assert by_mean == pytest.approx(1 / (1 - eccentricity * math.cos(angle)), rel=1e-13)
    assert by_eccentricity == pytest.approx(math.sin(angle) / (1 - eccentricity * math.cos(angle)), rel=1e-13)


def test_outputs_that_a_rule_describes(plain: None) -> None:
    function = nb.kernel(ROWS["carried"].kernel, shape=lambda x: x)
    x = np.array([0.1, 0.7, 1.1])
    assert np.array_equal(function(x), function(x, np.zeros(3)))
    assert np.allclose(
        nb.grad(lambda x: np.sum(function(x)))(x), nb.grad(lambda x: np.sum(function(x, np.zeros(3))))(x), rtol=1e-15
    )


def test_constant_arguments_have_no_gradient(plain: None) -> None:
    function = nb.kernel(ROWS["branches"].kernel, constant=("y", "scale"))
    x, y = ROWS["branches"].arguments[:2]
    by_x, by_y, by_scale = nb.grad(lambda x, y, s: function(x, y, s)[0], (0, 1, 2))(x, y, 1.3)
    assert np.any(np.asarray(by_x))
    assert not np.any(np.asarray(by_y))
    assert by_scale == 0.0


def test_float32(plain: None) -> None:
    function = nb.kernel(ROWS["carried"].kernel)
    x = np.array([0.1, 0.7, 1.1], np.float32)
    value = function(x, np.zeros(3, np.float32))
    narrow = nb.grad(lambda x: np.sum(function(x, np.zeros(3, np.float32))))(x)
    wide = nb.grad(lambda x: np.sum(function(x, np.zeros(3))))(x.astype(np.float64))
    assert value.dtype == narrow.dtype == np.float32
    assert np.allclose(narrow, wide, rtol=1e-5)


@pytest.mark.parametrize("size", [0, 1, 2])
def test_short_arrays(size: int, plain: None) -> None:
    for name in ("carried", "overwritten", "dynamic_programming", "gauss_seidel", "whole_arrays", "threads"):
        row = ROWS[name]
        if name in ("threads", "whole_arrays") and size < 2:
            continue
        given = tuple(
            [
                np.full((size,) * one.ndim, 0.7) if isinstance(one, np.ndarray) and name != "threads" else one
                for one in row.arguments
            ]
        )
        short = Row(row.kernel, given)
        point = [given[k] for k in floats(given)]
        along = [np.ones(np.shape(one)) for one in point]
        found = gradient(total_of(nb.kernel(row.kernel), short), point)
        expected = slope(total_of(plain_call(short), short), point, along)
        assert sum(np.sum(one) for one in found) == pytest.approx(expected, rel=1e-8, abs=1e-9)


def test_layouts_and_read_only_arrays(plain: None) -> None:
    function = nb.kernel(ROWS["carried"].kernel)
    x = np.arange(12.0).reshape(6, 2) / 7
    column = x[:, 1]
    frozen = column.copy()
    frozen.flags.writeable = False
    results = [
        nb.grad(lambda x: np.sum(function(x, np.zeros(6)) ** 2))(one)
        for one in (column, frozen, column[::-1][::-1], np.asfortranarray(x)[:, 1])
    ]
    for one in results[1:]:
        assert np.array_equal(one, results[0])


def test_the_text_is_a_rule_for_primitive(plain: None) -> None:
    function = nb.kernel(ROWS["tridiagonal"].kernel)
    arguments = ROWS["tridiagonal"].arguments
    function(*arguments)
    namespace: dict[str, Any] = {}
    exec(function.vjp.source, namespace)
    kernel = ROWS["tridiagonal"].kernel.py_func

    def forward(a: Any, b: Any, c: Any, d: Any, b_out: Any, d_out: Any) -> None:
        b_out[...], d_out[...] = b, d
        kernel(a, b_out, c, d_out)

    by_hand = nb.primitive(forward, shape=lambda a, b, c, d: [b, d], vjp=namespace["tridiagonal_rule"])
    expected = nb.grad(lambda *x: np.sum(function(*x)[1] ** 2), (0, 1, 2, 3))(*arguments)
    found = nb.grad(lambda *x: np.sum(by_hand(*x)[1] ** 2), (0, 1, 2, 3))(*arguments)
    for one, other in zip(found, expected, strict=True):
        assert np.allclose(one, other, rtol=1e-13)


# ----- Errors -----


@njit
def _recursive(x):
    return 1.0 if x < 1 else x * _recursive(x - 1)


@njit
def _drawn(x):
    return x * np.random.rand()


@njit
def _swapped_at_times(a, b, n):
    for _ in range(n):
        for i in range(len(a)):
            b[i] = a[i] * 2
        if b[0] > 1.0:
            a, b = b, a


@njit
def _written_after_its_loop(x, n):
    for _ in range(n):
        x = x + 1.0
    x[0] = 2.0
    return x


@njit
def _masked_among_others(x):
    return np.sum(x[x[:, 0] > 0, 0])


@njit
def _a_list_that_grows(x):
    found = [0.0]
    for one in x:
        found.append(2.0 * one)
    return sum(found)


@njit
def _an_empty_list(x):
    found = []
    for one in x:
        found.append(2.0 * one)
    return sum(found)


@njit
def _made_in_a_loop(x):
    for i in range(len(x)):
        if x[i] > 2.0:
            return x * i
    return x


@njit
def _applied(f, x):
    return f(x)


@njit
def _a_passed_inner_function(x):
    c = 0.5 * x

    def scaled(z):
        return z * c

    return _applied(scaled, x)


@njit
def _an_inner_function_with_keywords(x):
    def scaled(a, b=2.0):
        return a * b

    return scaled(x, b=3.0)


@njit
def _two_functions_of_one_name(x):
    if x > 0.0:
        f = lambda a: a * 2.0  # noqa: E731
    else:
        f = lambda a: a * 3.0  # noqa: E731
    return f(x)


@njit
def _an_inner_function_of_itself(x):
    def down(a):
        return 0.0 if a < 1.0 else down(a - 1.0)

    return down(x)


@njit
def _named_like_a_cotangent(x, x_b):
    return np.sum(x * x_b)


@pytest.mark.parametrize(
    ("kernel", "arguments", "message"),
    [
        (_made_in_a_loop, (np.ones(3),), r"_made_in_a_loop\(\) returns an array, but .* from turn to turn"),
        (_named_like_a_cotangent, (np.ones(3), np.ones(3)), "`x_b`, the name of a derivative of `x`"),
        (_a_list_that_grows, (np.ones(3),), r"changes the length of a list by append\(\)\. Make an array"),
        (_an_empty_list, (np.ones(3),), r"begins an empty list\. Make an array"),
        (_a_passed_inner_function, (2.0,), "passes scaled, which reads `c` of the kernel"),
        (_an_inner_function_with_keywords, (2.0,), "calls scaled with keywords, which Numba loses"),
        (_two_functions_of_one_name, (2.0,), "gives `f` another meaning than the function of that name"),
        (_an_inner_function_of_itself, (2.0,), "calls itself: recursion has no derivative"),
        (_recursive, (2.0,), "recursion has no derivative"),
        (_drawn, (2.0,), r"calls .*rand.*\(\), of which no derivative is known"),
        (_swapped_at_times, (np.ones(2), np.ones(2), 2), "`a` stands for another array from turn to turn"),
        (_written_after_its_loop, (np.ones(2), 2), "a loop has made anew in each turn. Write to a copy"),
        (_masked_among_others, (np.ones((2, 2)),), "by an array of indices or truth values among others"),
        (ROWS["carried"].kernel, (np.ones(2),), "called without `out`"),
        (ROWS["carried"].kernel, ([1.0], np.ones(2)), "Pass arrays and numbers"),
    ],
)
def test_sentences(kernel: Any, arguments: tuple[Any, ...], message: str, plain: None) -> None:
    with pytest.raises((ArgumentError, DtypeError), match=message):
        nb.kernel(kernel)(*arguments)


def test_errors_name_the_line(plain: None) -> None:
    with pytest.raises(ArgumentError, match=r"_drawn\(\) \(.*test_adjoints\.py:\d+\)"):
        nb.kernel(_drawn)(2.0)


def test_a_wrong_derivative_is_found(plain: None, monkeypatch: pytest.MonkeyPatch) -> None:
    function = nb.kernel(ROWS["branches"].kernel)
    arguments = ROWS["branches"].arguments
    function(*arguments)
    spec = function._last
    derived, adjoint = spec.reverse(spec.differentiable_inputs)
    derived.text = derived.text.replace("math.exp", "2.0 * math.exp").replace("scale)", "scale * 1.1)")
    assert derived.text != spec.reverse(["x"])[0].text
    spec.reverses[tuple(spec.differentiable_inputs)] = derived, adjoint
    with pytest.raises(ArgumentError, match="differs from finite differences"):
        nb.grad(lambda *x: function(*x)[0], (0, 1, 2))(*arguments)


def test_a_third_derivative_is_refused(plain: None) -> None:
    function = nb.kernel(ROWS["branches"].kernel)
    arguments = ROWS["branches"].arguments
    with pytest.raises(ArgumentError, match="first and second derivatives, but a third one is asked for"):
        nb.grad(nb.grad(nb.grad(lambda scale: function(*arguments[:2], scale)[1])))(0.5)


def test_built_in_functions_that_cannot_be_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jupyter has an input() of its own."""
    monkeypatch.setattr("builtins.input", lambda *args: "")

    @njit
    def doubled(x):
        return 2.0625 * np.sum(x)

    assert nb.grad(nb.kernel(doubled))(np.ones(2)).tolist() == [2.0625, 2.0625]


def test_a_kink_is_no_disagreement(plain: None) -> None:
    @njit
    def kink(x):
        s = 0.0
        for i in range(len(x)):
            s += abs(x[i]) + max(x[i], 0.0) + min(x[i], x[0])
        return s

    assert np.all(np.isfinite(nb.grad(nb.kernel(kink))(np.array([0.0, 1.0, 0.0]))))


def test_wrong_names() -> None:
    kernel = ROWS["carried"].kernel
    with pytest.raises(ArgumentError, match="no argument `y`"):
        nb.kernel(kernel, inout="y")
    with pytest.raises(ArgumentError, match="does not write to `x`"):
        nb.kernel(kernel, inout="x")(np.ones(2), np.ones(2))
    with pytest.raises(ArgumentError, match="check must be"):
        nb.kernel(kernel, check="sometimes")
    with pytest.raises(DtypeError, match="takes a function that Numba compiles"):
        nb.kernel(3)


@njit
def prefix_sums(x):
    x[1:] += x[:-1]


@njit
def turned_sums(x):
    x += x[::-1]


def test_parts_of_an_array_that_overlap_are_added_element_by_element() -> None:
    # Numba adds each element before it reads the next one; NumPy would read all of them first.
    x, w = np.array([1.0, 2.0, 4.0, 8.0]), np.array([1.0, 10.0, 100.0, 1000.0])
    sums, turned = (nb.kernel(one, check="never") for one in (prefix_sums, turned_sums))
    assert np.array_equal(sums(x), [1.0, 3.0, 7.0, 15.0])
    assert np.array_equal(nb.grad(lambda x: np.sum(w * sums(x)))(x), [1111.0, 1110.0, 1100.0, 1000.0])
    # y0 = x0 + x3, y1 = x1 + x2, y2 = x2 + y1, y3 = x3 + y0.
    assert np.array_equal(turned(x), [9.0, 6.0, 10.0, 17.0])
    assert np.array_equal(nb.grad(lambda x: np.sum(w * turned(x)))(x), [1001.0, 110.0, 210.0, 2001.0])
    assert float(nb.jvp(lambda x: np.sum(w * turned(x)), (x,), (np.ones(4),))[1]) == 3322.0


@njit
def written_out(a, b):
    total = 0.0
    for k, value in enumerate((a, b)):
        b = 2.0 * b + k
        total += value * value
    return total * b


def test_a_written_out_sequence_has_its_values_before_the_first_turn(plain: None) -> None:
    # (a^2 + b^2) (4 b + 1)
    call = nb.kernel(written_out, check="never")
    assert call(0.5, 2.0) == pytest.approx(4.25 * 9.0, rel=1e-15)
    assert nb.grad(call, (0, 1))(0.5, 2.0) == pytest.approx((9.0, 4.0 * 9.0 + 4.0 * 4.25), rel=1e-15)


@njit
def _order_of_equal_elements(keys, y):
    order = np.argsort(keys)
    total = 0.0
    for k in range(len(order)):
        total += y[order[k]] * (k + 1)
    return total


def test_equal_elements_have_the_order_of_numba() -> None:
    keys, y = np.array([2.0, 1.0, np.nan, 0.5, 1.0, 2.0] * 9), np.arange(54.0)
    places = np.empty(54)
    for k in range(54):
        places[k] = _order_of_equal_elements(keys, np.eye(54)[k])
    assert np.array_equal(nb.grad(nb.kernel(_order_of_equal_elements), 1)(keys, y), places)


@njit
def _sum_of_inverses(x):
    total = 0.0
    for i in range(len(x) - 1):
        total += 1.0 / (x[i + 1] - x[i])
    return total


@pytest.mark.parametrize("transform", [lambda f: f, nb.jit])
def test_where_the_kernel_divides_by_zero_its_derivatives_raise(transform: Any) -> None:
    kernel, bad = nb.kernel(_sum_of_inverses), np.array([1.0, 2.0, 2.0, 3.0])
    gradient = transform(nb.grad(kernel))
    assert np.allclose(gradient(np.array([1.0, 2.0, 4.0])), [1.0, -0.75, -0.25])
    with pytest.raises(ArgumentError, match="ZeroDivisionError"):
        gradient(bad)
    with pytest.raises(ArgumentError, match="ZeroDivisionError"):
        transform(lambda x: nb.jvp(kernel, (x,), (np.arange(4.0),)))(bad)


@njit
def _narrow_and_wide(x, m):
    power = np.linalg.matrix_power(m, 2)
    clipped = np.clip(x, 0.7, 1.0)
    return (
        (x * 2.0, x * 2, x * np.arange(3), x * x[0], np.maximum(x, 1.0), x**2),
        (m @ m, m @ x, np.outer(x, x), np.cross(x, x), np.kron(m, m), np.convolve(x, x), power),
        (np.where(x > 1.0, x, x * x), np.where(x > 1.0, x, 0.5), clipped, np.array([x[0], x[1]]), np.sinc(x)),
    )


def test_arrays_of_float32_become_float64_where_those_of_numba_do() -> None:
    x, m = np.linspace(0.5, 1.5, 3, dtype=np.float32), np.eye(3, dtype=np.float32)
    found, expected = nb.kernel(_narrow_and_wide)(x, m), _narrow_and_wide(x, m)
    assert [[one.dtype for one in part] for part in found] == [[one.dtype for one in part] for part in expected]
    for part, other in zip(found, expected, strict=True):
        for one, wanted in zip(part, other, strict=True):
            assert np.array_equal(one, wanted)


@njit
def _masked_by_literals(x):
    return np.sum(x[np.array([True, False, True])] ** 2)


def test_an_array_of_truth_values_is_a_mask(plain: None) -> None:
    x = np.array([3.0, 4.0, 5.0])
    assert np.array_equal(nb.grad(nb.kernel(_masked_by_literals))(x), [6.0, 0.0, 10.0])
