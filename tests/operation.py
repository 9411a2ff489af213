"""What a row of the tables of operations is, and how it is checked against references from outside nbgrad.

In: rows (operations_*.py): a function written in plain NumPy, and descriptions of its arguments. Out: AssertionErrors
that name the sample and the derivative. Called by test_operations.py. Values come from NumPy and SciPy on plain arrays,
derivatives of the first and second order from differences of those values, extrapolated by Richardson's method.
"""

from __future__ import annotations

import os
import warnings
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

import nbgrad as nb
from nbgrad.transforms.arguments import lift

Function = Callable[..., Any]
Values = Sequence[Any]

# ----- Arguments -----


@dataclass(frozen=True)
class Argument:
    """An array argument: its shape, and what draws its values in float64. It is differentiated if `smooth`."""

    shape: tuple[int, ...]
    draw: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
    smooth: bool = True

    def array(self, rng: np.random.Generator, dtype: Any = np.float64) -> np.ndarray:
        """Values of the given dtype; complex ones have independent imaginary parts."""
        values = self.draw(rng, self.shape)
        if not self.smooth:
            return values
        if np.dtype(dtype).kind == "c":
            return (values + 1j * self.draw(rng, self.shape)).astype(dtype)
        return values.astype(dtype)


def real(*shape: int, low: float = -2.0, high: float = 2.0) -> Argument:
    """Numbers between two bounds, none of them near a multiple of one half, where rounding and abs have no slope."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        values = 2 * rng.uniform(low, high, shape)
        return np.asarray((np.floor(values) + 0.2 + 0.6 * (values - np.floor(values))) / 2)

    return Argument(shape, draw)


def between(low: float, high: float, *shape: int) -> Argument:
    """Numbers between two bounds."""
    return Argument(shape, lambda rng, shape: np.asarray(rng.uniform(low, high, shape)))


def apart(*shape: int, shift: float = 0.0, step: float = 0.37) -> Argument:
    """Numbers that differ by at least a step, in random order; those of another shift differ from all of them."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        size = int(np.prod(shape))
        return rng.permutation((np.arange(size) - size // 2) * step + 0.11 + shift).reshape(shape)

    return Argument(shape, draw)


def rising(*shape: int) -> Argument:
    """Rows that increase."""
    return Argument(shape, lambda rng, shape: np.cumsum(rng.uniform(0.3, 1.0, shape), axis=-1))


def regular(*shape: int) -> Argument:
    """Matrices with singular values well above zero and apart, and no element near zero: a growing diagonal, and
    small numbers beside it."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        small = rng.uniform(0.12, 0.3, shape) * rng.choice([-1.0, 1.0], shape)
        return small + np.eye(shape[-2], shape[-1]) * (1.0 + np.arange(shape[-1]))

    return Argument(shape, draw)


def given(values: Any) -> Argument:
    """These values, which are differentiated."""
    array = np.array(values, np.float64)
    return Argument(array.shape, lambda _rng, _shape: array.copy())


def fixed(values: Any) -> Argument:
    """Integers or booleans, which are not differentiated."""
    array = np.array(values)
    return Argument(array.shape, lambda _rng, _shape: array.copy(), smooth=False)


# ----- Rows -----


@dataclass(frozen=True)
class Operation:
    """One operation.

    `function` takes the arguments of each sample and gives an array or several. `reference` says the same in NumPy or
    SciPy, if `function` itself cannot run on arrays. `order` is that of the highest derivative to check; 0 for none.
    `dtypes` are narrow ones whose results must be those of float64 up to rounding, `complexes` says that complex
    arguments work as well, `compiled` that its shapes and branches do not depend on values. `peers` are the names under
    which other libraries differentiate it, `needs` a function that older versions of NumPy do not have.
    """

    name: str
    function: Function
    samples: tuple[tuple[Argument, ...], ...]
    peers: tuple[str, ...] = ()
    reference: Function | None = None
    order: int = 2
    dtypes: tuple[str, ...] = ("float32", "float16")
    complexes: bool = False
    tolerance: float = 1e-7
    compiled: bool = True
    needs: str = ""

    @property
    def plain(self) -> Function:
        """What gives the expected values."""
        return self.reference or self.function

    def arrays(self, sample: int, dtype: Any = np.float64) -> list[np.ndarray]:
        """The arguments of a sample: the same ones in every run, and rounded for narrow dtypes."""
        rng = np.random.default_rng(zlib.crc32(f"{self.name} {sample}".encode()))
        return [argument.array(rng, dtype) for argument in self.samples[sample]]


def operation(name: str, function: Function, *samples: Any, peers: str = "", **options: Any) -> Operation:
    """A row; a sample of one argument need not be a tuple."""
    tuples = tuple([s if isinstance(s, tuple) else (s,) for s in samples])
    return Operation(name, function, tuples, tuple(peers.split()), **options)


# ----- Helpers -----


@contextmanager
def interpreted(on: bool = True) -> Iterator[None]:
    """The reference interpreter runs the graphs, which saves compiling each of them."""
    before = os.environ.get("NBGRAD_DISABLE_JIT")
    os.environ["NBGRAD_DISABLE_JIT"] = "1" if on else "0"
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)
            yield
    finally:
        if before is None:
            del os.environ["NBGRAD_DISABLE_JIT"]
        else:
            os.environ["NBGRAD_DISABLE_JIT"] = before


def results(value: Any) -> list[np.ndarray]:
    """All arrays that a call gave, in order."""
    if isinstance(value, list | tuple):
        return [array for part in value for array in results(part)]
    return [value.asnumpy() if isinstance(value, nb.Tensor) else np.asarray(value)]


def floating(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Those that can have a derivative."""
    return [a for a in arrays if a.dtype.kind in "fc"]


def inner(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> float:
    """The real inner product of lists of real or complex arrays."""
    return float(sum(np.sum(np.real(np.conj(x) * y)) for x, y in zip(a, b, strict=True)))


def directions(rng: np.random.Generator, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Random arrays of the same shapes and dtypes."""
    drawn = []
    for a in arrays:
        d = rng.uniform(-1, 1, a.shape)
        drawn.append((d + 1j * rng.uniform(-1, 1, a.shape) if a.dtype.kind == "c" else d).astype(a.dtype))
    return drawn


def richardson(estimate: Callable[[float], Any], step: float) -> Any:
    """The limit of an estimate with an even error series, from three steps (Richardson 1911)."""
    one, two, four = estimate(step), estimate(step / 2), estimate(step / 4)
    return (64 * four - 20 * two + one) / 45


def close(got: Any, want: Any, tolerance: float, what: str) -> None:
    """Equal up to a tolerance relative to the largest element; NaN and infinities must be the same."""
    want = np.asarray(want)
    finite = np.abs(want[np.isfinite(want)])
    scale = tolerance * max(1.0, float(finite.max(initial=0.0)))
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=scale, err_msg=what)


class Point:
    """An operation at one sample: its derivatives by nbgrad, and by differences of the plain function."""

    def __init__(self, row: Operation, sample: int, dtype: Any = np.float64) -> None:
        self.row, self.arrays = row, row.arrays(sample, dtype)
        self.smooth = [k for k, a in enumerate(self.arrays) if a.dtype.kind in "fc"]
        self.at = [self.arrays[k] for k in self.smooth]
        self.where = f"{row.name}, sample {sample} {[a.shape for a in self.arrays]} {np.dtype(dtype)}"
        with interpreted():
            self.value = results(row.plain(*[a.copy() for a in self.arrays]))
        self.outputs = floating(self.value)
        rng = np.random.default_rng(5)
        self.d, self.e = directions(rng, self.at), directions(rng, self.at)
        self.w = directions(rng, self.outputs)

    def filled(self, smooth: Values) -> list[Any]:
        """All arguments, with these in the places of the differentiated ones."""
        full: list[Any] = list(self.arrays)
        for k, value in zip(self.smooth, smooth, strict=True):
            full[k] = value
        return full

    def call(self, *smooth: Any) -> Any:
        """The function of the differentiated arguments: its floating results as a flat tuple."""
        value = self.row.function(*self.filled(smooth))
        flat: list[Any] = []

        def collect(part: Any) -> None:
            if isinstance(part, list | tuple):
                for p in part:
                    collect(p)
            elif np.dtype(part.dtype).kind in "fc":
                flat.append(part)

        collect(value)
        return tuple(flat)

    def along(self, t: float, direction: Values) -> list[np.ndarray]:
        """The plain function's results at x + t d."""
        moved = [np.asarray(a + t * d) for a, d in zip(self.at, direction, strict=True)]
        return floating(results(self.row.plain(*self.filled(moved))))

    def slope(self) -> list[np.ndarray]:
        """The directional derivative by differences."""

        def central(h: float) -> np.ndarray:
            ahead, behind = self.along(h, self.d), self.along(-h, self.d)
            return np.concatenate([np.ravel((a - b) / (2 * h)) for a, b in zip(ahead, behind, strict=True)])

        flat, parts = richardson(central, 8e-3), []
        for w in self.w:
            parts.append(flat[: w.size].reshape(w.shape))
            flat = flat[w.size :]
        return parts

    def mixed(self) -> float:
        """d/ds d/dt of <w, f(x + t d + s e)> by differences of f."""

        def total(t: float, direction: Values) -> float:
            return inner(self.w, self.along(t, direction))

        plus = [d + e for d, e in zip(self.d, self.e, strict=True)]
        minus = [d - e for d, e in zip(self.d, self.e, strict=True)]

        def second(h: float) -> float:
            across = total(h, plus) + total(-h, plus) - total(h, minus) - total(-h, minus)
            return across / (4 * h * h)

        return richardson(second, 2e-2)

    # What nbgrad gives. All arguments and results are flat tuples.

    def primal(self, *x: Any) -> Any:
        """The value, as a transform gives it."""
        return nb.vjp(self.call, *x)[0]

    def tangent(self, *x: Any) -> Any:
        """J d."""
        return nb.jvp(self.call, x, tuple(self.d))[1]

    def cotangent(self, *x: Any) -> Any:
        """J^H w."""
        return nb.vjp(self.call, *x)[1](*self.w)

    def curved(self, *x: Any) -> Any:
        """The derivative of J^H w along d: forward over reverse."""
        return nb.jvp(self.cotangent, x, tuple(self.d))[1]

    def twice(self, *x: Any) -> Any:
        """The derivative of J d along e: forward over forward."""
        return nb.jvp(self.tangent, x, tuple(self.e))[1]


# ----- Checks -----


def check_value(row: Operation, sample: int, dtype: Any = np.float64) -> None:
    """Value, dtype and shape are those of the plain function."""
    point = Point(row, sample, dtype)
    with interpreted():
        got = results(row.function(*[nb.Tensor(a) if row.reference else as_numpys(a) for a in point.arrays]))
    assert len(got) == len(point.value), point.where
    for one, other in zip(got, point.value, strict=True):
        assert one.shape == other.shape, f"{point.where}: shape {one.shape}, expected {other.shape}"
        if row.reference is None:
            assert one.dtype == other.dtype, f"{point.where}: dtype {one.dtype}, expected {other.dtype}"
        if other.dtype.kind in "fc":
            close(one, other, min(row.tolerance, 1e-9) if other.dtype.itemsize >= 8 else 1e-3, point.where)
        else:
            np.testing.assert_array_equal(one, other, err_msg=point.where)


def as_numpys(array: np.ndarray) -> nb.Tensor:
    """A Tensor that follows NumPy's rules of promotion, as the arguments of a differentiated function do."""
    return lift(array)


def check_first(row: Operation, sample: int, dtype: Any = np.float64) -> None:
    """Forward mode agrees with differences, and reverse mode with forward mode."""
    point = Point(row, sample, dtype)
    with interpreted():
        want = point.slope()
        tangents = results(point.tangent(*point.at))
        cotangents = results(point.cotangent(*point.at))
        for got, expected in zip(tangents, want, strict=True):
            close(got, expected, row.tolerance, f"{point.where}: forward mode")
        for got, x in zip(cotangents, point.at, strict=True):
            assert (got.shape, got.dtype) == (x.shape, x.dtype), f"{point.where}: cotangent {got.dtype}{got.shape}"
        scale = sum(float(np.sum(np.abs(w) * np.abs(t))) for w, t in zip(point.w, want, strict=True))
        error = abs(inner(cotangents, point.d) - inner(point.w, want))
        assert error <= row.tolerance * max(1.0, scale), f"{point.where}: reverse mode is off by {error:.3g}"


def check_second(row: Operation, sample: int, dtype: Any = np.float64) -> None:
    """The derivative of the gradient, and of the tangent, agree with second differences of the plain function."""
    point = Point(row, sample, dtype)
    with interpreted():
        want = point.mixed()
        reverse = inner(results(point.curved(*point.at)), point.e)
        forward = inner(point.w, results(point.twice(*point.at)))
        size = 100 * row.tolerance * max(1.0, abs(want))
        assert abs(reverse - want) <= size, f"{point.where}: forward over reverse gives {reverse}, expected {want}"
        assert abs(forward - want) <= size, f"{point.where}: forward over forward gives {forward}, expected {want}"


def check_narrow(row: Operation, dtype: str) -> None:
    """In a narrow dtype, everything is as in float64 up to rounding, and dtypes are the plain function's."""
    check = np.dtype(dtype)
    whole = np.dtype(np.complex128 if check.kind == "c" else np.float64)
    narrow, wide = Point(row, 0, check), Point(row, 0, whole)
    wide.arrays = [a.astype(whole) if a.dtype == check else a for a in narrow.arrays]
    wide.at = [wide.arrays[k] for k in wide.smooth]
    wide.d = [d.astype(a.dtype) for d, a in zip(narrow.d, wide.at, strict=True)]
    wide.w = [w.astype(v.dtype) for w, v in zip(narrow.w, wide.outputs, strict=True)]
    tolerance = 2e-2 if check == np.float16 else 1e-4
    if not narrow.outputs:
        return
    with interpreted():
        for mode in ("primal", "tangent", "cotangent") if row.order else ("primal",):
            got, want = results(getattr(narrow, mode)(*narrow.at)), results(getattr(wide, mode)(*wide.at))
            expected = [a.dtype for a in (narrow.at if mode == "cotangent" else narrow.outputs)]
            for one, other, kind in zip(got, want, expected, strict=True):
                if row.reference is None or mode == "cotangent":
                    assert one.dtype == kind, f"{narrow.where}: {mode} has dtype {one.dtype}, expected {kind}"
                close(one.astype(other.dtype), other, tolerance, f"{narrow.where}: {mode}")


def check_compiled(row: Operation, dtype: Any = np.float64) -> None:
    """One compiled program gives what the interpreter gives: value, gradient, and the derivative of that.

    It is called three times, with other numbers each time: the first call records, the second one makes the native
    entry, and nothing of the first numbers may be left in the program.
    """
    point = Point(row, 0, dtype)

    def everything(*x: Any) -> Any:
        parts = [row.function(*point.filled(x))]
        if row.order > 0:
            parts.append(point.cotangent(*x))
        if row.order > 1:
            parts.append(point.curved(*x))  # forward mode of that
        return parts

    compiled = nb.jit(everything)
    for step in (0.0, 1e-3, 2e-3):
        at = [np.asarray(a + step * d, a.dtype) for a, d in zip(point.at, point.d, strict=True)]
        with interpreted():
            want = results(everything(*at))
        with interpreted(on=False):
            got = results(compiled(*at))
        for one, other in zip(got, want, strict=True):
            assert (one.shape, one.dtype) == (other.shape, other.dtype), point.where
            close(one, other, 1e-9, f"{point.where}: compiled, moved by {step}")


def check_batched(row: Operation, dtype: Any = np.float64) -> None:
    """`vmap` gives each point's value and cotangents; Jacobians by both modes are the same."""
    point = Point(row, 0, dtype)
    there = [np.asarray(a + 1e-2 * d, a.dtype) for a, d in zip(point.at, point.d, strict=True)]
    both = [np.stack(pair) for pair in zip(point.at, there, strict=True)]

    def everything(*x: Any) -> Any:
        return (point.call(*x), point.cotangent(*x)) if row.order else point.call(*x)

    with interpreted():
        if point.outputs:
            one, two = results(everything(*point.at)), results(everything(*there))
            for k, got in enumerate(results(nb.vmap(everything)(*both))):
                close(got, np.stack([one[k], two[k]]), 1e-9, f"{point.where}: vmap")
        if row.order and np.dtype(dtype).kind == "f" and all(v.dtype.kind == "f" for v in point.outputs):
            positions = tuple(range(len(point.at)))
            forward = results(nb.jacfwd(point.call, positions)(*point.at))
            reverse = results(nb.jacrev(point.call, positions)(*point.at))
            for got, want in zip(forward, reverse, strict=True):
                close(got, want, max(1e-8, row.tolerance), f"{point.where}: Jacobians")


def check_layouts(row: Operation) -> None:
    """Arrays that are not contiguous, or in Fortran's order, give what contiguous ones give."""
    point = Point(row, 0)
    if not any(a.ndim for a in point.at):
        return
    with interpreted():
        want = results(point.cotangent(*point.at))
        for layout in (strided, np.asfortranarray):
            got = results(point.cotangent(*[layout(a) if a.ndim else a for a in point.at]))
            for one, other in zip(got, want, strict=True):
                close(one, other, 1e-12, f"{point.where}: {layout.__name__}")


def strided(array: np.ndarray) -> np.ndarray:
    """The same values with gaps between them, in reversed order in memory."""
    room = np.zeros([2 * n for n in array.shape], array.dtype)
    view = room[tuple([slice(None, None, -2)] * array.ndim)]
    view[...] = array
    return view
