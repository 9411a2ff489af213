"""Machine code of derivatives: operations, statements and whole derivatives, beside Python that runs their text.

Python's own operators and NumPy say what an operation gives; the derivatives themselves are compared with differences
of the kernels by test_adjoints.py, where they run as Python.
"""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any

import numpy as np
import pytest
from numba import njit

import nbgrad as nb
from nbgrad.adjoints import derived
from nbgrad.adjoints.kernel_statements import (
    Alias,
    Block,
    Break,
    Copy,
    Extent,
    For,
    If,
    Load,
    New,
    Op,
    Room,
    Set,
    Store,
    While,
    copied,
)
from nbgrad.adjoints.machine.deciding_values import deciding_values
from nbgrad.adjoints.machine.machine_function import Compiled, MachineFunction, Statements
from nbgrad.adjoints.machine.number_code import UnknownPartError
from nbgrad.adjoints.specializations import Specialization
from nbgrad.compiler import cache

from . import kernels_of_arrays, kernels_of_functions, kernels_of_nests, threaded_kernels
from .adjoint_kernels import ROWS

pytestmark = pytest.mark.unoptimized(but=16)
TABLES = (kernels_of_arrays, kernels_of_functions, kernels_of_nests, threaded_kernels)
"""Modules that put more kernels into the table."""
LEFT = frozenset(["functions_of_matrices"])
"""Kernels with parts of which there is no machine code."""
PARTLY_LEFT = LEFT | {"arrays_in_other_forms", "least_squares"}
"""These, and two of which it is so in one mode only."""
NOT_NUMBERS = (math.nan, math.inf, -math.inf)
FLOATS = (-7.5, -2.0, -0.0, 0.0, 0.5, 3.0)
INTEGERS = (-7, -2, 0, 3, 8)


def run(body: Block, results: tuple[str, ...], **given: Any) -> Any:
    """The results of a block of statements."""
    function = MachineFunction(Statements(list(given), body, (), results), {}, list(given.values()))
    return function(*given.values())


# ----- Operations -----

OPERATIONS = {
    "sums": ("{0} + {1} * ({0} - {1})", (FLOATS, INTEGERS), None),
    "quotients of floats": ("{0} / {1}", (FLOATS, (0.5, -3.0)), None),
    "quotients of integers": ("{0} / {1}", (INTEGERS, (-2, 4)), None),
    "whole quotients of integers": ("{0} // {1}", (INTEGERS, (-3, 5)), None),
    "rests of integers": ("{0} % {1}", (INTEGERS, (-3, 5)), None),
    "whole quotients of floats": ("{0} // {1}", (FLOATS, (-1.3, 0.5, math.inf)), None),
    "rests of floats": ("{0} % {1}", (FLOATS, (-1.3, 0.5, math.inf)), None),
    "integers divided by zero": ("{0} // {1}", (INTEGERS, (0,)), lambda x, y: 0),
    "bits": ("({0} & {1}) + ({0} | {1}) - ({0} ^ {1}) + (~{0}) + ({0} << 2) + ({0} >> 1)", (INTEGERS, INTEGERS), None),
    "squares": ("{0} ** 2 + {0} ** 3", (FLOATS,), None),
    "powers of integers": ("{0} ** 5", (INTEGERS,), None),
    "inverse powers": ("{0} ** (-3)", ((-2.0, 0.5),), None),
    "roots": ("{0} ** 0.5", ((0.0, 2.0),), None),
    "powers": ("{0} ** {1}", ((0.5, 3.0), (-2.5, 0.0, 1.5)), None),
    "greatest": ("max({0}, {1})", (FLOATS, INTEGERS), None),
    "least": ("min({0}, {1}, 2)", (INTEGERS, INTEGERS), None),
    "greatest of what is no number": ("max({0}, {1})", ((1.0,), (math.nan,)), lambda x, y: 1.0),
    "sizes": ("abs({0})", (FLOATS + INTEGERS,), None),
    "signs": ("np.sign({0})", (FLOATS + NOT_NUMBERS[:2],), np.sign),
    "rounded": ("np.round({0})", ((-1.5, -0.5, 0.5, 1.5, 2.4),), None),
    "floors": ("math.floor({0}) + np.floor({0}) + math.ceil({0}) + np.trunc({0})", (FLOATS,), None),
    "casts": ("int({0}) + float({1}) + bool({0})", (FLOATS, INTEGERS), None),
    "comparisons": ("({0} < {1}) + 2 * ({0} == {1}) + 4 * ({0} >= {1})", (FLOATS, INTEGERS), None),
    "what is no number": (
        "{0} != {0} or math.isinf({0}) or not math.isfinite({0})",
        ((1.0, *NOT_NUMBERS),),
        None,
    ),
    "truths": ("not {0} > 0 and ({1} <= 3 or {0} != 0)", (FLOATS, INTEGERS), None),
    "choices": ("{0} if {0} > 0 else {1}", (FLOATS, INTEGERS), None),
    "choices of costly sides": ("math.log({0}) if {0} > 0 else {1} ** 2 + math.exp({0})", (FLOATS, INTEGERS), None),
    "nested choices": ("1.0 if {0} > 1 else math.exp({0}) if {0} > 0 else -1", (FLOATS,), None),
    "constants": ("{0} + math.pi + math.e - np.pi", (FLOATS,), None),
    "copies of signs": ("math.copysign({0}, {1})", (FLOATS, FLOATS), None),
    "angles": ("math.radians({0}) + math.degrees({0})", (FLOATS,), None),
}
FUNCTIONS = (
    "sqrt sin cos tan exp expm1 log log2 log10 log1p sinh cosh tanh asin acos atan asinh acosh atanh erf erfc gamma"
)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations_are_those_of_python(name: str) -> None:
    text, domains, other = OPERATIONS[name]
    for kinds in ((float, float), (int, int), (float, int), (int, float)):
        samples = [[one for one in domain if type(one) is kind] for domain, kind in zip(domains, kinds, strict=False)]
        grid = [[x] for x in samples[0]] if len(samples) == 1 else [[x, y] for x in samples[0] for y in samples[1]]
        if not grid:
            continue
        arguments = dict(zip("xy", grid[0], strict=False))
        program = Statements(list(arguments), (Set("r", Op("", tuple(arguments), text)),), (), ("r",))
        function = MachineFunction(program, {}, grid[0])
        for given in grid:
            expected = other(*given) if other else eval(text.format(*[f"({x!r})" for x in given]), NAMES)
            found = np.float64((function(*given) or (math.nan,))[0])
            assert np.array_equal(found, np.float64(expected), equal_nan=True) or (
                found == pytest.approx(expected, rel=4e-16)
            ), (given, found, expected)


NAMES = {"math": math, "np": np, "nan": math.nan, "inf": math.inf}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_functions_are_those_of_the_library(dtype: Any) -> None:
    names = FUNCTIONS.split()
    lines = [Set(f"y_{name}", Op("", ("x",), f"math.{name}({{0}})")) for name in names]
    function = MachineFunction(Statements(["x"], tuple(lines), (), [one.target for one in lines]), {}, [dtype(0.5)])
    for x in (0.25, 1.0, 1.5):
        found = function(dtype(x)) or ()
        for name, y in zip(names, found, strict=True):
            try:
                expected = getattr(math, name)(x)
            except ValueError:
                assert not math.isfinite(y), name
            else:
                assert y == pytest.approx(expected, rel=2e-15 if dtype is np.float64 else 1e-6), name


def test_single_precision_stays_single() -> None:
    tiny = np.float32(1e-8)
    body = (
        Set("y", Op("", ("x", "one"), "{0} + {1}")),
        Set("z", Op("", ("x", "one"), "{0} * 1.0 + {1}")),
        Set("w", Op("", ("x", "k"), "{0} + {1}")),
    )
    y, z, w = run(body, ("y", "z", "w"), x=tiny, one=np.float32(1.0), k=1)
    assert y == 1.0
    assert z == w == 1.0 + float(tiny)


@pytest.mark.parametrize("text", ["math.frexp({0})", "{0} @ {0}", "np.frexp({0})", "{0} < {0} < {0}", "lambda: 0"])
def test_unknown_operations_are_left_to_numba(text: str) -> None:
    with pytest.raises(UnknownPartError):
        run((Set("y", Op("", ("x",), text)),), ("y",), x=1.0)


# ----- Statements -----


def test_indices_count_from_the_end() -> None:
    body = (
        Set("a", Load("x", ("i", "-1"))),
        Set("b", Load("x", ("-1", "j"))),
        Store("x", ("0", "i"), "b"),
        Set("n", Extent("x", 1)),
    )
    for shape in ((2, 3), (3, 6)):
        x = np.arange(float(np.prod(shape))).reshape(shape)
        before = x.copy()
        a, b, n = run(body, ("a", "b", "n"), x=x, i=-2, j=1)
        assert (a, b, n) == (before[-2, -1], before[-1, 1], shape[1])
        assert x[0, -2] == before[-1, 1]


@pytest.mark.parametrize("dtype", ["float32", "int64", "int32", "int16", "int8", "uint32", "uint16", "uint8", "bool"])
def test_elements_of_all_dtypes(dtype: str) -> None:
    body = (
        Set("v", Load("x", ("0",))),
        Set("w", Op("", ("v",), "{0} * 3 - 1")),
        Store("x", ("1",), "w"),
        Store("x", ("2",), "v", True),
    )
    x = np.array([5, 0, 2, 7]).astype(dtype)
    before = x.copy()
    (w,) = run(body, ("w",), x=x)
    assert w == int(before[0]) * 3 - 1
    expected = before.astype(np.int64)
    expected[1], expected[2] = w, before[2] + int(before[0])
    assert np.array_equal(x, expected.astype(dtype))


def test_loops_leave_as_python_does() -> None:
    body = (
        Set("total", copied("0.0")),
        For("i", "n", (Set("i", Op("", ("i",), "{0} + 10")), Set("total", Op("", ("total", "i"), "{0} + {1}")))),
        For("k", "n", (Set("total", Op("", ("total", "k"), "{0} * 10 + {1}")),), backwards=True),
        For("never", "0", (Set("total", copied("7.0")),)),
        Set("turns", copied("0")),
        While(
            (
                Set("turns", Op("", ("turns",), "{0} + 1")),
                Set("done", Op("", ("turns",), "{0} >= 5")),
                If("done", (Break(),), ()),
            )
        ),
    )
    total, i, k, never, turns = run(body, ("total", "i", "k", "never", "turns"), n=3)
    expected = float(sum(range(10, 13)))
    for digit in (2, 1, 0):
        expected = expected * 10 + digit
    assert (total, i, k, never, turns) == (expected, 12, 0, 0, 5)


def test_local_arrays() -> None:
    body = (
        New("zeros", ("2", "n"), "float64", "0.0"),
        New("sevens", ("n",), "int64", "7"),
        New("none", ("minus",), "float64", "0.0"),
        Copy("copy", "x"),
        Alias("same", "x"),
        New("grown", ("0",), "float64"),
        For(
            "i",
            "n",
            (
                Set("length", Op("", ("i",), "{0} + 1")),
                Room("grown", "length", keeps=True),
                Store("grown", ("i",), "i"),
                New("again", ("length",), "float64", "1.0"),
                Store("zeros", ("1", "i"), "length"),
            ),
        ),
        Store("copy", ("0",), "5.0"),
        Store("same", ("1",), "6.0"),
        Set("first", Load("grown", ("1",))),
        Set("last", Load("zeros", ("-1", "-1"))),
        Set("seven", Load("sevens", ("-1",))),
        Set("nothing", Extent("none", 0)),
        Set("bytes", Op("", (), "{0}.nbytes", ("zeros",))),
    )
    x = np.zeros(3)
    found = run(body, ("zeros", "copy", "first", "last", "seven", "nothing", "bytes"), x=x, n=100, minus=-3)
    assert np.array_equal(found[0], [np.zeros(100), np.arange(1, 101)])
    assert np.array_equal(found[1], [5.0, 0.0, 0.0])
    assert np.array_equal(x, [0.0, 6.0, 0.0])
    assert found[2:] == (1.0, 100.0, 7, 0, 1600)


def test_small_arrays_of_turns_begin_anew_and_are_results() -> None:
    body = (
        New("out", ("n", "2"), "float64", "0.0"),
        For(
            "i",
            "n",
            (
                New("w", ("2", "2"), "float64", "0.0"),
                New("c", ("3",), "int32", "7"),
                Store("w", ("1", "0"), "i", True),
                Store("w", ("-1", "-2"), "2.0", True),
                Set("a", Load("w", ("1", "0"))),
                Set("b", Load("c", ("2",))),
                Store("c", ("2",), "i"),
                Store("out", ("i", "0"), "a"),
                Store("out", ("i", "1"), "b"),
            ),
        ),
        Set("size", Op("", (), "{0}.nbytes", ("w",))),
    )
    out, w, size = run(body, ("out", "w", "size"), n=5)
    assert np.array_equal(out, np.stack([np.arange(5.0) + 2, np.full(5, 7.0)], 1))
    assert np.array_equal(w, [[0.0, 0.0], [6.0, 0.0]]) and size == 32


@pytest.mark.parametrize("side", ["left", "right"])
def test_places_in_sorted_arrays(side: str) -> None:
    x = np.array([0.0, 1.0, 1.0, 2.0])
    body = (Set("k", Op("", ("v",), f"np.searchsorted({{1}}, {{0}}, side='{side}')", ("x",))),)
    for v in (-1.0, 0.0, 1.0, 1.5, 2.0, 3.0):
        assert run(body, ("k",), v=v, x=x) == (np.searchsorted(x, v, side=side),)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(2**60,), (2**40, 2**40)])
def test_without_memory(shape: tuple[int, ...]) -> None:
    names = tuple([f"n{k}" for k in range(len(shape))])
    body = (New("kept", ("3",), "float64"), New("much", names, "float64"), Store("much", ("0",) * len(shape), "1.0"))
    with pytest.raises(MemoryError, match="the derivative of a kernel stores"):
        run(body, (), **dict(zip(names, shape, strict=True)))


def test_arrays_in_any_order_are_written_to() -> None:
    whole = np.arange(24.0).reshape(4, 6)
    given, out = whole[::2, ::3], np.zeros((2, 2), order="F")
    body = (Set("v", Load("x", ("1", "1"))), Store("out", ("0", "1"), "v", True))
    run(body, (), x=given, out=out)
    assert np.array_equal(out, [[0.0, whole[2, 3]], [0.0, 0.0]])


def test_names_of_all_letters() -> None:
    body = (Set("größe", Load("Δx", ("0",))), Set("Δ_394", Op("", ("größe",), "{0} + 1")))
    assert run(body, ("größe", "Δ_394"), Δx=np.array([2.0])) == (2.0, 3.0)


def test_other_names_of_arrays_that_are_made_anew_are_left_to_numba() -> None:
    body = (For("i", "3", (New("a", ("2",), "float64", "0.0"), Alias("b", "a"))),)
    with pytest.raises(UnknownPartError):
        run(body, ())


# ----- Derivatives -----


class Both:
    """A derivative of a row, as machine code and as Python."""

    def __init__(self, name: str) -> None:
        self.seen: list[tuple[list[Any], list[Any]]] = []
        self.name = name

    def __call__(self, one: derived.Derived) -> Any:
        python = one.by_numba()
        assert one.statements is not None
        machine = Compiled(one.statements, one.objects, self.refuse)

        def call(*given: Any) -> Any:
            copies = [np.array(x) if isinstance(x, np.ndarray) else x for x in given]
            found = python(*given)
            again = machine(*copies)
            self.seen.append(([*given, *(found or ())], [*copies, *(again or ())]))
            return found

        return call

    def refuse(self) -> Any:
        raise AssertionError(f"{self.name} is left to Numba")


@pytest.mark.sampled(of=8)
@pytest.mark.parametrize("name", [name for name in ROWS if name not in PARTLY_LEFT])
def test_machine_code_gives_the_numbers_of_python(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    both = Both(name)
    monkeypatch.setattr(derived.Derived, "function", property(both))
    row = ROWS[name]
    places = [k for k, one in enumerate(row.arguments) if np.asarray(one).dtype.kind == "f"]
    call = nb.kernel(row.kernel, check="never")

    def total(*given: Any) -> Any:
        arguments = [one.copy() if isinstance(one, np.ndarray) else one for one in row.arguments]
        for k, value in zip(places, given, strict=True):
            arguments[k] = value
        found = call(*arguments)
        return sum(np.sum(np.sin(part)) for part in (found if isinstance(found, tuple) else (found,)))

    point = tuple([row.arguments[k] for k in places])
    nb.grad(total, tuple(range(len(point))))(*point)
    nb.jvp(total, point, tuple([0.1 * np.ones_like(one) for one in point]))
    assert len(both.seen) >= 2
    for python, machine in both.seen:
        for one, other in zip(python, machine, strict=True):
            assert np.allclose(one, other, rtol=1e-11, atol=1e-12, equal_nan=True)


@njit
def hidden(x, out):
    for i in range(len(x)):
        out[i] = math.lgamma(x[i]) * x[i]


def test_special_functions_of_derivatives() -> None:
    # d/dx x log Gamma(x) at 1 and 2, with digamma(1) = -gamma and digamma(2) = 1 - gamma.
    found = nb.grad(lambda x: np.sum(nb.kernel(hidden, shape=lambda x: x)(x)))(np.array([1.0, 2.0]))
    assert np.allclose(found, [-0.5772156649015329, 2 * 0.4227843350984671], rtol=1e-13, atol=0)


def test_values_that_decide_are_those_of_numba() -> None:
    body = (
        Set("level", Op("", ("x",), "math.log2({0})")),
        Set("k", Op("", ("level",), "math.floor({0})")),
        Set("step", Load("table", ("k",))),
        Set("near", Op("", ("x",), "math.exp({0})")),
        Store("kept", ("0",), "near"),
        Copy("again", "kept"),
        Set("seen", Load("again", ("0",))),
        Set("test", Op("", ("seen", "x"), "{0} < {1}")),
        If("test", (Set("y", Op("", ("x",), "math.sin({0})")),), (Set("y", Op("", ("step",), "math.cos({0})")),)),
        Set("total", copied("0.0")),
        For("i", "n", (Set("total", Op("add", ("total", "y"), "plus({0}, {1})")),)),
    )
    deciding = deciding_values([body])
    assert {"level", "k", "near", "kept", "again", "seen", "test", "n", "x"} <= deciding
    assert {"step", "y", "total", "table", "i"}.isdisjoint(deciding)


def test_powers_of_two_have_whole_logarithms() -> None:
    body = (Set("level", Op("", ("x",), "math.log2({0})")), Set("k", Op("", ("level",), "math.floor({0})")))
    function = MachineFunction(Statements(["x"], body, (), ("k",)), {}, [1.0])
    assert [function(2.0**power) for power in range(-40, 41)] == [(power,) for power in range(-40, 41)]


def reverse(name: str) -> tuple[Specialization, Any]:
    row = ROWS[name]
    given = dict(zip(inspect.signature(row.kernel.py_func).parameters, row.arguments, strict=True))
    return Specialization(row.kernel, given, (), (), "never"), given


def test_machine_code_comes_from_the_disk() -> None:
    counts = []
    for _ in range(2):
        spec, given = reverse("pushed")
        one = spec.reverse(["x"])[0]
        assert one.statements is not None
        arrays = [given.get(name, np.zeros(3)) for name in one.parameters]
        MachineFunction(one.statements, one.objects, arrays)
        counts.append(cache.counters["compiled"])
    assert counts[0] == counts[1]


def test_warnings_of_numpy_do_not_come() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert math.isinf(run((Set("y", Op("", ("x",), "1.0 / {0}")),), ("y",), x=0.0)[0])


@pytest.mark.parametrize("name", sorted(LEFT))
def test_parts_without_machine_code_are_left_to_numba(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRAD_DISABLE_JIT", "1")
    row = ROWS[name]
    places = [k for k, one in enumerate(row.arguments) if np.asarray(one).dtype.kind == "f"]
    both = Both(name)
    monkeypatch.setattr(derived.Derived, "function", property(both))
    with pytest.raises(nb.errors.ArgumentError, match="is left to Numba"):
        nb.grad(nb.kernel(row.kernel, check="never"), places[0])(*row.arguments)
