"""How precise the elementary functions are, and which of their loops are vectorised: measured, and written as a table.

In: a function's name. Out: its largest error in ULP (units in the last place of the exact result) against mpmath, over
samples, or over every float32; the widths of the vectors in its loop for three kinds of CPU. Called by
test_accuracy.py, and from the command line, which takes some minutes:

    python -m tests.accuracy            # prints the table
    python -m tests.accuracy --write    # writes it to docs/vector-math.md
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import mpmath
import numpy as np
import scipy.special

import nbgrad as nb
from nbgrad.compiler.lowering import kernel_module

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "vector-math.md"
FLOATS = ("float64", "float32")
Sampler = Callable[[np.random.Generator, int], np.ndarray]

# ----- Where the functions are tried -----


def uniform(low: float, high: float) -> Sampler:
    """Sampler of plain uniform numbers."""
    return lambda generator, count: generator.uniform(low, high, count)


def magnitudes(low: float, high: float, signs: Sequence[float] = (-1.0, 1.0)) -> Sampler:
    """Sampler of numbers whose magnitude runs through powers of ten."""
    return lambda generator, count: 10.0 ** generator.uniform(low, high, count) * generator.choice(signs, count)


def near(*centres: float) -> Sampler:
    """Sampler of numbers within a few ULP to a thousandth of the centres."""

    def sample(generator: np.random.Generator, count: int) -> np.ndarray:
        return generator.choice(centres, count) * (1.0 + magnitudes(-16, -3)(generator, count))

    return sample


def positive(low: float, high: float) -> Sampler:
    """Sampler of positive numbers whose magnitude runs through powers of ten."""
    return magnitudes(low, high, (1.0,))


def angles(generator: np.random.Generator, count: int) -> np.ndarray:
    """The floats next to multiples of pi / 2, and those around the end of the vectorised reduction."""
    multiples = np.round(10.0 ** generator.uniform(0, 15, count)) * (np.pi / 2)
    multiples[:4] = 1e22, 2.0**30, np.nextafter(2.0**30, np.inf), 65536.0
    # The float64 that is closest to a multiple of pi / 2.
    multiples[4] = 6381956970095103 * 2.0**797
    return multiples


class Function(NamedTuple):
    """A primitive, what it should be, how far it may be off (in ULP), and where to try it.

    `away` holds the absolute values, for positive and for negative arguments, below which a result is too close to a
    zero of the function to count.
    """

    exact: Callable[..., Any]
    limit: float
    samplers: Sequence[Any]
    away: tuple[float, float] = (0.0, 0.0)


CIRCLE = (uniform(-10, 10), uniform(-1e5, 1e5), magnitudes(-300, 308), magnitudes(-3, 12), angles)
POSITIVE = (uniform(0, 10), near(1.0), positive(-320, 308))
UNIT = (uniform(-1, 1), near(1.0, -1.0, 0.5, -0.5), magnitudes(-300, 0))
HYPERBOLIC = (uniform(-3, 3), uniform(-710, 710), magnitudes(-320, 0), near(18.37, 18.41))
GAMMA = (uniform(0, 4), near(1.0, 2.0, 2.7627, 3.0), positive(-300, 300), uniform(0, 200), uniform(-9, 0))
BESSEL = (uniform(-8, 8), uniform(-100, 100), magnitudes(-300, 4), near(8.0, -8.0))
WIDE = magnitudes(-300, 300)


def _log_gamma(x: Any) -> Any:
    return mpmath.log(abs(mpmath.gamma(x))) if x < 0 else mpmath.loggamma(x)


def _log_add(base: Any) -> Callable[[Any, Any], Any]:
    def exact(x: Any, y: Any) -> Any:
        small, large = sorted((x, y))
        return large + mpmath.log1p(mpmath.mpf(base) ** (small - large)) / mpmath.log(base)

    return exact


UNARY = {
    "exp": Function(mpmath.exp, 2, (uniform(-20, 20), uniform(-745, 709), magnitudes(-300, 0), near(-7.9543, 0.3466))),
    "exp2": Function(lambda x: mpmath.mpf(2) ** x, 2, (uniform(-20, 20), uniform(-1074, 1023), magnitudes(-300, 0))),
    "expm1": Function(mpmath.expm1, 2, (uniform(-1, 1), uniform(-40, 709), magnitudes(-320, 0), near(0.3466))),
    "log": Function(mpmath.log, 2, POSITIVE),
    "log2": Function(lambda x: mpmath.log(x) / mpmath.log(2), 2, POSITIVE),
    "log10": Function(lambda x: mpmath.log(x) / mpmath.log(10), 2, POSITIVE),
    "log1p": Function(mpmath.log1p, 2, (uniform(-1, 3), near(-1.0), magnitudes(-320, -1), positive(-2, 308))),
    "sin": Function(mpmath.sin, 2, CIRCLE),
    "cos": Function(mpmath.cos, 2, CIRCLE),
    "tan": Function(mpmath.tan, 2, CIRCLE),
    "arcsin": Function(mpmath.asin, 2, UNIT),
    "arccos": Function(mpmath.acos, 2, UNIT),
    "arctan": Function(mpmath.atan, 2, (uniform(-3, 3), magnitudes(-300, 300), near(0.41421, 2.4142))),
    "sinh": Function(mpmath.sinh, 2, HYPERBOLIC),
    "cosh": Function(mpmath.cosh, 2, HYPERBOLIC),
    "tanh": Function(mpmath.tanh, 2, (uniform(-1, 1), uniform(-25, 25), magnitudes(-320, 0), near(18.7, 0.64))),
    "arcsinh": Function(mpmath.asinh, 2, (uniform(-3, 3), magnitudes(-300, 308))),
    "arccosh": Function(mpmath.acosh, 2, (uniform(1, 3), near(1.0), positive(0, 308))),
    "arctanh": Function(mpmath.atanh, 2, (uniform(-1, 1), near(1.0, -1.0), magnitudes(-300, 0))),
    "cbrt": Function(
        lambda x: mpmath.sign(x) * mpmath.root(abs(x), 3), 2, (uniform(-9, 9), magnitudes(-320, 308), near(1.0))
    ),
    "erf": Function(mpmath.erf, 2, (uniform(-1.5, 1.5), uniform(-6, 6), magnitudes(-300, 0), near(1.0))),
    "erfc": Function(
        mpmath.erfc, 2, (uniform(-1.5, 1.5), uniform(-6, 26), magnitudes(-300, 0), near(0.75, 0.856, 18.76))
    ),
    "expit": Function(lambda x: 1 / (1 + mpmath.exp(-x)), 2, (uniform(-10, 10), uniform(-740, 40), near(-4.8457))),
    "softplus": Function(
        lambda x: max(x, 0) + mpmath.log1p(mpmath.exp(-abs(x))), 2, (uniform(-10, 10), uniform(-740, 40))
    ),
    "logit": Function(
        lambda x: mpmath.log(x) - mpmath.log1p(-x), 2, (uniform(0, 1), near(0.5), near(1.0), positive(-320, 0))
    ),
    "gammaln": Function(_log_gamma, 4, GAMMA, away=(0.0, 1.0)),
    "digamma": Function(mpmath.digamma, 4, GAMMA, away=(0.25, 1.0)),
    "i0": Function(lambda x: mpmath.besseli(0, x), 4, (uniform(-8, 8), uniform(-700, 700), magnitudes(-300, 2))),
    "i1": Function(lambda x: mpmath.besseli(1, x), 4, (uniform(-8, 8), uniform(-700, 700), magnitudes(-300, 2))),
    "i0e": Function(lambda x: mpmath.besseli(0, x) * mpmath.exp(-abs(x)), 4, BESSEL),
    "i1e": Function(lambda x: mpmath.besseli(1, x) * mpmath.exp(-abs(x)), 4, BESSEL),
}
BINARY = {
    "power": Function(
        mpmath.power,
        4,
        (
            (positive(-3, 3), uniform(-50, 50)),
            (uniform(0.9, 1.1), uniform(-5000, 5000)),
            (positive(-300, 300), uniform(-1, 1)),
            (near(1.0), magnitudes(3, 17)),
        ),
    ),
    "hypot": Function(lambda x, y: mpmath.sqrt(x * x + y * y), 2, ((uniform(-1, 1), uniform(-1, 1)), (WIDE, WIDE))),
    "arctan2": Function(
        mpmath.atan2,
        2,
        ((uniform(-1, 1), uniform(-1, 1)), (WIDE, WIDE), (near(1.0, -1.0), near(1.0, 0.4142, 2.4142))),
    ),
    # Below 0 the terms may cancel: NumPy's function has the same error relative to the larger operand.
    "logaddexp": Function(_log_add(mpmath.e), 2, ((uniform(-1, 50), uniform(0, 50)), (uniform(-700, 0), near(1.0)))),
    "logaddexp2": Function(_log_add(2), 2, ((uniform(-1, 50), uniform(0, 50)), (uniform(-700, 0), near(1.0)))),
    "xlogy": Function(lambda x, y: x * mpmath.log(y), 2, ((uniform(-5, 5), uniform(0, 5)),)),
}
FUNCTIONS = UNARY | BINARY


def own_arithmetic(name: str) -> bool:
    """Whether the float32 function computes in float32; those that are put together of others do."""
    kernels = kernel_module()
    return name not in kernels.SCALARS or ".single" in kernels.scalar_kernel(name, "float32").__module__


def function_of(name: str) -> Callable[..., Any]:
    """The function as users call it."""
    if name in ("i0", "i1", "i0e", "i1e"):
        return lambda x: getattr(scipy.special, name)(x)
    return getattr(nb.numpy, name)


# ----- Errors -----


def ulp_error(value: float, exact: Any, dtype: str) -> float:
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


def sampled_error(name: str, dtype: str, count: int) -> tuple[float, tuple[float, ...]]:
    """The largest error over samples of the operands, and where it is."""
    function = FUNCTIONS[name]
    generator = np.random.default_rng(20)
    compiled = nb.jit(function_of(name))
    largest = float(np.finfo(dtype).max)
    worst: tuple[float, tuple[float, ...]] = (0.0, ())
    for group in function.samplers:
        columns = [sampler(generator, count) for sampler in (group if isinstance(group, tuple) else (group,))]
        operands = [np.clip(column, -largest, largest).astype(dtype) for column in columns]
        with np.errstate(all="ignore"):
            values = np.asarray(compiled(*operands))
        for value, *scalars in zip(values, *operands, strict=True):
            if 0 in scalars:
                continue
            # As many digits as the largest angle has bits.
            with mpmath.workprec(1300 if function.samplers is CIRCLE else 200):
                exact = function.exact(*[mpmath.mpf(float(scalar)) for scalar in scalars])
                if abs(exact) >= function.away[int(min(scalars) < 0)]:
                    worst = max(worst, (ulp_error(value, exact, dtype), tuple(map(float, scalars))))
    return worst


def every_float32(name: str, blocks: Sequence[int] = range(1024)) -> float:
    """The largest error over float32 numbers, all of them or blocks of 2**22, with the float64 function for reference.

    That one is off by a few ULP of float64, which are a millionth of one of float32. Infinity if a special value is
    wrong: where the reference is not finite in float32, both must be the same.
    """
    function, away = function_of(name), np.float32(max(UNARY[name].away))

    def worst(x: Any) -> Any:
        value, exact = function(x), function(x.astype("float64"))
        rounded = exact.astype("float32")
        size = np.abs(rounded)
        unit = np.minimum(np.nextafter(size, np.float32(np.inf)) - size, np.float32(2.0**104))
        error = np.abs(value.astype("float64") - exact) / unit.astype("float64")
        error = np.where(size >= away, error, 0.0)
        same = (value == rounded) | (np.isnan(value) & np.isnan(rounded))
        return np.max(np.where(np.isfinite(rounded), error, np.where(same, 0.0, np.inf)))

    compiled = nb.jit(worst)
    pattern = np.arange(2**22, dtype=np.uint32)
    bits = np.empty_like(pattern)
    found: list[float] = []
    for block in blocks:
        np.add(pattern, np.uint32(block << 22), out=bits)
        found.append(float(compiled(bits.view(np.float32))))
    # A NaN is an error too.
    return float(np.max(np.nan_to_num(found, nan=np.inf)))


def many_float32(name: str, count: int = 2**20) -> float:
    """The largest error over float32 samples for a function of two, with the float64 function for reference."""
    function, generator = function_of(name), np.random.default_rng(21)
    largest = float(np.finfo(np.float32).max)
    compiled, found = nb.jit(function), 0.0
    for group in FUNCTIONS[name].samplers:
        operands = [np.clip(sampler(generator, count), -largest, largest).astype(np.float32) for sampler in group]
        exact = np.asarray(compiled(*[operand.astype(np.float64) for operand in operands]))
        with np.errstate(over="ignore"):
            size = np.abs(exact.astype(np.float32))
        unit = np.minimum(np.nextafter(size, np.float32(np.inf)) - size, np.float32(2.0**104)).astype(np.float64)
        error = np.abs(np.asarray(compiled(*operands)).astype(np.float64) - exact) / unit
        found = max(found, float(error[np.isfinite(size)].max()))
    return found


# ----- Vectors -----

CPUS = ("x86-64-v4", "x86-64-v3", "x86-64")
LIBRARY_FOR_HUGE = {"sin", "cos", "tan", "sinf", "cosf", "tanf"}
"""What may be called for an element beyond 2**30, from functions outside of the loop."""


def compiled_loops() -> dict[str, tuple[int, list[str], bool]]:
    """Per function and dtype: the vectors' width, what the code calls, whether the loop has no scalar arithmetic.

    For the CPU that NBGRAD_CPU_NAME names when the process starts. Nothing is run, so it may be any.
    """
    import llvmlite.binding as llvm

    from nbgrad.compiler import called_scalars, cpu
    from nbgrad.compiler.emitters.loop_ir import emit
    from nbgrad.compiler.fuse import fuse
    from nbgrad.compiler.loops import Loop
    from nbgrad.graph.ir import placeholder
    from nbgrad.graph.simplify import simplify
    from nbgrad.record.tensor import Tensor

    emitted = cpu.emitted
    seen: list[tuple[str, str]] = []

    def watched(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> bytes:
        seen.append((str(module), machine.emit_assembly(module)))
        return emitted(module, machine)

    found = {}
    with patch.object(cpu, "emitted", watched):
        for name in FUNCTIONS:
            for dtype in FLOATS:
                arrays = [np.full(64, 0.5, dtype) for _ in range(1 if name in UNARY else 2)]
                nodes = [placeholder(a.shape, a.dtype, a) for a in arrays]
                result = function_of(name)(*[Tensor._of(node) for node in nodes])
                (step,) = fuse(simplify([result._node])).steps
                assert isinstance(step, Loop)
                called = called_scalars.names_in(cpu.compile_ir(emit(step)))
                if called:
                    widest = max(called, key=lambda name: int(name.partition(".v")[2] or 1))
                    cpu.compile_ir(called_scalars.function_text(widest))
                found[f"{name} {dtype}"] = _facts(*seen[-1])
    return found


def _facts(text: str, assembly: str) -> tuple[int, list[str], bool]:
    calls = re.findall(r"^\s*(?:call|jmp)q?\s+([A-Za-z_][\w.]*)", assembly, re.M)
    block = re.search(r"^vector\.body:.*?(?=^\S|\Z)", text, re.M | re.S)
    body = block[0] if block else text.partition("@scalar_kernel(")[2].partition("\n}")[0]
    widths = [int(width) for width in re.findall(r"= (?:f\w+|(?:tail )?call)[^<\n]*<(\d+) x (?:float|double)>", body)]
    scalar = re.search(r"= f(?:add|sub|mul|div) (?:\w+ )*(?:float|double) ", body)
    return max(widths, default=1), sorted(set(calls)), scalar is None


def loops_on(cpu: str) -> dict[str, tuple[int, list[str], bool]]:
    """`compiled_loops` of a process for another CPU."""
    environment = {**os.environ, "NBGRAD_CPU_NAME": cpu}
    command = [sys.executable, "-c", "import json; from tests.accuracy import *; print(json.dumps(compiled_loops()))"]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def library_calls(name: str, calls: Sequence[str]) -> list[str]:
    """The library functions that code calls, other than outside of the loop for huge angles."""
    allowed = LIBRARY_FOR_HUGE if name in ("sin", "cos", "tan") else set()
    ours = re.compile(r"body$|\w+\.rare|nbgrad\.huge\.")
    return [call for call in calls if not ours.match(call) and call not in allowed]


# ----- The table -----

HEAD = """# Vector mathematics: errors and vectors

Written by `python -m tests.accuracy --write`, which measures all of it; `tests/test_accuracy.py` checks that the
functions are not worse than it says.

The elementary functions are branch-free source in `kernels/`, which LLVM vectorises inside fused loops. Errors are the
largest ones found, in ULP (units in the last place of the exact result; correct rounding is 0.5): float64 against
mpmath over samples of the whole range and next to hard cases. A float32 function is its float64 function, rounded once,
or has arithmetic of its own (marked with an asterisk): then over every float32. Zeros, infinities, NaN, subnormal
numbers and huge arguments are among them. The last columns are the numbers of elements that a loop computes side by
side, in one vector or several, for float64 / float32.

For negative arguments the errors of gammaln and digamma count where the result is above 1 in magnitude: next to the
zeros they are those of the terms that cancel. Next to digamma's positive zero they count from 1/4 on. Those of
logaddexp count where the larger operand is not negative: below, its terms may cancel. Single elements beyond 2**30
(2**16 in float32) of sin, cos and tan are computed by a function of their own, outside of the vector loop.

"""


def table(count: int = 600) -> str:
    """The whole page."""
    loops = {cpu: loops_on(cpu) for cpu in CPUS}
    lines = ["| function | float64 | float32 | limit | AVX-512 | AVX2 | x86-64 |", "|---|---|---|---|---|---|---|"]
    for name, function in FUNCTIONS.items():
        wide = sampled_error(name, "float64", count)[0]
        narrow = sampled_error(name, "float32", count)[0]
        if own_arithmetic(name):
            narrow = max(narrow, every_float32(name) if name in UNARY else many_float32(name))
        row = [f"`{name}`", f"{_up(wide):.2f}", f"{_up(narrow):.2f}{'*' * own_arithmetic(name)}", f"{function.limit:g}"]
        for cpu in CPUS:
            widths = [str(loops[cpu][f"{name} {dtype}"][0]) for dtype in FLOATS]
            row.append(" / ".join(widths))
        lines.append(f"| {' | '.join(row)} |")
        sys.stderr.write(lines[-1] + "\n")
    return HEAD + "\n".join(lines) + "\n"


def _up(error: float) -> float:
    """Rounded up to hundredths."""
    return float(np.ceil(error * 100 - 1e-6) / 100)


def documented() -> dict[str, dict[str, float]]:
    """The errors that the page states."""
    rows = re.findall(r"^\| `(\w+)` \| ([\d.]+) \| ([\d.]+)\*? \|", PAGE.read_text(), re.M)
    return {name: {"float64": float(wide), "float32": float(narrow)} for name, wide, narrow in rows}


if __name__ == "__main__":
    page = table()
    if "--write" in sys.argv:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page)
    else:
        sys.stdout.write(page)
