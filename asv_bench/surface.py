"""Every function of NumPy, compiled, beside NumPy's own calls and JAX's gradients; docs/speed.md is made of it.

    python surface.py [NAME ...] [--size N ...] [--forms FORM ...] [--again RATIO] [--budget SECONDS] [--values]
        [--write]

In: names of cases of surface_cases.py, all by default. Out: a line for each case, and with `--write` the page, sorted
by the worst ratio; cases that were not measured in this run keep their lines. All libraries run in one process on one
CPU and are timed in turns by processor time; a ratio is the least time of the other library over the least of nbgrad's,
so that 1 is the same speed and more is faster. The gradient is that of sum(abs(f)**2 * w), by all real arrays.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

PAGE = Path(__file__).resolve().parents[1] / "docs" / "speed.md"
FORMS: dict[str, tuple[int, Any, bool]] = {
    "1e3": (1_000, np.float64, False),
    "1e5": (100_000, np.float64, False),
    "float32": (100_000, np.float32, False),
    "transposed": (100_000, np.float64, True),
}
"""The columns of the page: elements, dtype, and whether arrays lie in Fortran's order."""
LONGEST = 2.0
"""Seconds that a call may take to be measured."""

HEAD = """# The speed of NumPy's functions

Written by `python asv_bench/surface.py --write`: the cases are the functions of the table in `tests/surface_rows.py` on
arrays of about 1000 and 100,000 elements, and some programs that combine them (`asv_bench/surface_cases.py` has the
arrays). Each line has the time of NumPy's own call over that of the function compiled by `nb.jit`, and the time of
JAX's compiled gradient of `sum(abs(f)**2 * w)` over that of nbgrad's: 1 is the same speed, 2 is twice as fast as the
other library. One process, one CPU, in turns, least processor times. The columns `float32` and `transposed` (all arrays
in Fortran's order; JAX has its own order) have 100,000 elements. A dash: the other library does not have the call,
NumPy's result is a view of its argument, or one call takes more than two seconds. Lines are sorted by their worst
ratio.

Why some are below 1:

"""
REASONS = {
    "transposed arrays": "library routines, and reshapes that run across the order, copy; gradients of arguments in "
    "Fortran's order turn the weights, which are in C order, as all is in JAX",
    "`lexsort`, `sort_complex`": "one stable sort for each key; NumPy compares all keys at once",
    "`log2`, `log10`, `cbrt` and `power` in float32": "NumPy's functions for AVX-512 were written by hand, with tables "
    "in registers, and are off by up to 2.1, 3.4, 1.9 and 1.0 ULP, [ours](vector-math.md) by 0.9, 0.8, 0.6 and 0.6",
    "`fft`, sorts and convolutions of 1000 elements": "routines of libraries are called from the program, which costs "
    "4 to 6 microseconds",
    "`lstsq`": "by a decomposition with its vectors, which the gradient shares; LAPACK's routine for the value needs "
    "none of them",
    "values of `eigvals`": "LAPACK orders eigenvalues otherwise if it finds no vectors, which a derivative needs",
    "`diag`, `diagflat`": "NumPy gets zeros from the system, which come when they are first touched",
    "`lcm`": "one division after the other, as in NumPy's own loops",
    "gradient of `det`": "right up to the third order whatever the rank is, which takes a second factorisation",
}
"""Physical reasons, by the cases that they are about."""
COLUMNS = [f"{what}, {form}" for what in ("value", "gradient") for form in FORMS]
TABLE = "".join(f"| {title} " for title in ("call", "worst", *COLUMNS)) + "|"


class Line(NamedTuple):
    """A row of the page."""

    name: str
    call: str
    ratios: dict[str, float]

    def worst(self) -> float:
        return min(self.ratios.values(), default=float("inf"))

    def text(self) -> str:
        numbers = [f"{self.ratios[c]:.2f}" if c in self.ratios else "-" for c in COLUMNS]
        worst = f"{self.worst():.2f}" if self.ratios else "-"
        call = self.call.replace("|", "\\|")
        return f"| {self.name}: `{call}` | {worst} | {' | '.join(numbers)} |"


def flat(result: Any) -> list[Any]:
    """The arrays of nested tuples, in order."""
    return [x for part in result for x in flat(part)] if isinstance(result, tuple | list) else [result]


def _time(call: Callable[[], Any], count: int) -> float:
    """The processor time of some calls."""
    start = time.process_time()
    for _ in range(count):
        call()
    return time.process_time() - start


def least_in_turns(calls: list[Callable[[], Any]], budget: float) -> list[float]:
    """The least processor time of each call; the calls take turns, short ones many at once."""
    counts, best = [], [float("inf")] * len(calls)
    for call in calls:
        call()
        count = 1
        while _time(call, count) < 5e-4:
            count *= 2
        counts.append(count)
    end, rounds = time.perf_counter() + budget * len(calls), 0
    while rounds < 3 or time.perf_counter() < end:
        best = [min(least, _time(c, n) / n) for least, c, n in zip(best, calls, counts, strict=True)]
        rounds += 1
        if sum(best) > LONGEST / 4:
            break
    return best


class Sides:
    """One case on arrays of one form: its calls in the three libraries."""

    def __init__(self, case: Any, size: int, dtype: Any, transposed: bool, jax: Any):
        from surface_cases import NAMESPACES, arrays, named

        import nbgrad as nb

        self.nb = nb
        samples = arrays(size, dtype, transposed)
        used = {node.id for node in ast.walk(ast.parse(case.call)) if isinstance(node, ast.Name)}
        self.names = [name for name in samples if name in used]
        self.given = [samples[n] for n in self.names]
        self.case, self.size, self.jax = case, size, jax
        self.module = NAMESPACES[case.space][0]
        self.named = named

    def function(self, np_: Any, f: Any) -> Callable[..., Any]:
        """The call as a function of its arrays."""
        code = compile(self.case.call, self.case.call, "eval")
        size = {"POWER": 2 ** int(np.log2(self.size))}
        return lambda *arrays: eval(code, {"np": np_, "f": f, **size, **dict(zip(self.names, arrays, strict=True))})

    def of_numpy(self) -> Callable[..., Any]:
        return self.function(np, self.named(self.module, self.case.function) if self.case.function else None)

    def value(self, budget: float) -> float | None:
        """NumPy's time over nbgrad's."""
        theirs = self.of_numpy()
        want = theirs(*self.given)
        if any(isinstance(r, np.ndarray) and np.may_share_memory(r, a) for r in flat(want) for a in self.given):
            return None
        mine = self.nb.jit(theirs)
        agree(flat(mine(*self.given)), flat(want), self.given)
        return ratio(lambda: theirs(*self.given), lambda: mine(*self.given), budget)

    def loss(self, np_: Any, function: Callable[..., Any], split: int) -> Callable[..., Any]:
        """The sum of weighted squares of a function's results, whose last arguments are the weights."""

        def loss(*a: Any) -> Any:
            results = [r for r in flat(function(*a[:split])) if np.dtype(r.dtype).kind in "fc"]
            squares = [np_.real(r) ** 2 + np_.imag(r) ** 2 if np.dtype(r.dtype).kind == "c" else r**2 for r in results]
            return sum(np_.sum(s * w) for s, w in zip(squares, a[split:], strict=True))

        return loss

    def gradient(self, budget: float) -> float | None:
        """JAX's time over nbgrad's."""
        jnp = self.jax.numpy
        module = {"numpy": jnp, "numpy.linalg": jnp.linalg, "numpy.fft": jnp.fft}[self.case.space]
        if self.case.function and not hasattr(module, self.case.function):
            return None
        results = [np.asarray(r) for r in flat(self.of_numpy()(*self.given))]
        weights = [
            np.cos(np.arange(r.size)).reshape(r.shape).astype(r.real.dtype) for r in results if r.dtype.kind in "fc"
        ]
        wrt = tuple(k for k, a in enumerate(self.given) if a.dtype.kind == "f")
        if not wrt or not weights:
            return None
        split = len(self.given)
        mine = self.nb.jit(self.nb.grad(self.loss(np, self.of_numpy(), split), wrt))
        f = getattr(module, self.case.function) if self.case.function else None
        theirs = self.jax.jit(self.jax.grad(self.loss(jnp, self.function(jnp, f), split), wrt))
        their_arrays = [jnp.asarray(x) for x in [*self.given, *weights]]
        arrays = [*self.given, *weights]
        agree(flat(mine(*arrays)), flat(theirs(*their_arrays)), arrays)
        return ratio(lambda: self.jax.block_until_ready(theirs(*their_arrays)), lambda: mine(*arrays), budget)


def agree(mine: list[Any], theirs: list[Any], arrays: list[Any]) -> None:
    """Stops where results differ by more than a thousand roundings of the largest element."""
    narrow = any(a.dtype in (np.float32, np.complex64) for a in arrays)
    for one, other in zip(mine, theirs, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        if one.shape != other.shape:
            raise AssertionError(f"shapes {one.shape} and {other.shape}")
        if one.size and one.dtype.kind in "fc":
            scale = np.max(np.abs(np.nan_to_num(other, posinf=0.0, neginf=0.0)), initial=1e-30)
            apart = np.max(
                np.abs(np.nan_to_num(one, posinf=0.0, neginf=0.0) - np.nan_to_num(other, posinf=0.0, neginf=0.0))
            )
            if not apart <= (3e-2 if narrow else 1e-6) * scale:
                raise AssertionError(f"results differ by {apart:.1e} of {scale:.1e}")


def ratio(theirs: Callable[[], Any], mine: Callable[[], Any], budget: float) -> float | None:
    """The least time of theirs over the least of mine."""
    start = time.process_time()
    theirs()
    mine()
    if time.process_time() - start > LONGEST:
        return None
    other, own = least_in_turns([theirs, mine], budget)
    return other / own


def measure(case: Any, forms: dict[str, tuple[int, Any, bool]], jax: Any, budget: float) -> Line:
    """All ratios of a case."""
    ratios: dict[str, float] = {}
    for form, how in forms.items():
        for what in ("value", "gradient") if case.differentiable and jax is not None else ("value",):
            try:
                sides = Sides(case, *how, jax)
                found = getattr(sides, what)(budget)
            except Exception as error:  # a case that the other library refuses has no ratio
                found = None
                print(f"    {case.name}, {what}, {form}: {type(error).__name__}: {str(error)[:150]!r}", file=sys.stderr)
            if found is not None:
                ratios[f"{what}, {form}"] = found
    return Line(case.name, case.call, ratios)


def read_page() -> dict[str, Line]:
    """The lines of the page as it is."""
    found = {}
    for text in PAGE.read_text().splitlines() if PAGE.exists() else ():
        if text.startswith("| ") and ": `" in text:
            label, _, rest = text[2:].replace("\\|", "\0").partition(" | ")
            name, _, call = label.partition(": `")
            numbers = [part.strip() for part in rest.rstrip(" |").split("|")][1:]
            ratios = {c: float(n) for c, n in zip(COLUMNS, numbers, strict=True) if n != "-"}
            found[name] = Line(name, call.rstrip("`").replace("\0", "|"), ratios)
    return found


def page(lines: dict[str, Line]) -> str:
    """The page's text."""
    ordered = sorted(lines.values(), key=lambda line: (round(line.worst(), 2), line.name))
    ruler = "|---" * (TABLE.count("|") - 1) + "|"
    reasons = [
        "| calls | reason |",
        "|---|---|",
        *[f"| {calls} | {reason} |" for calls, reason in REASONS.items()],
        "",
        "",
    ]
    return HEAD + "\n".join([*reasons, TABLE, ruler, *[line.text() for line in ordered]]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--size", type=float, nargs="+", help="other numbers of elements, as 1e6")
    parser.add_argument("--again", type=float, help="only what the page has below this ratio")
    parser.add_argument("--forms", nargs="+", default=list(FORMS), choices=list(FORMS))
    parser.add_argument("--budget", type=float, default=0.05, help="seconds for each timing")
    parser.add_argument("--values", action="store_true", help="values alone")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    if "OPENBLAS_NUM_THREADS" not in os.environ:
        # Before NumPy is loaded: threads of BLAS that wait for each other on one CPU take milliseconds.
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    jax = None
    if not options.values:
        import jax

        jax.config.update("jax_enable_x64", True)
    from surface_cases import CASES

    forms = {name: FORMS[name] for name in options.forms}
    if options.size:
        forms = {f"{size:.0e}": (int(size), np.float64, False) for size in options.size}
    lines = {name: line for name, line in read_page().items() if name in CASES}
    chosen = [c for c in CASES.values() if not options.names or any(n in (c.name, c.function) for n in options.names)]
    if options.again:
        chosen = [c for c in chosen if c.name in lines and lines[c.name].worst() < options.again]
    for case in chosen:
        line = measure(case, forms, jax, options.budget)
        known = lines[case.name].ratios if case.name in lines and lines[case.name].call == case.call else {}
        lines[case.name] = Line(case.name, case.call, {**known, **line.ratios})
        shown = ", ".join(f"{k}: {v:.2f}" for k, v in line.ratios.items())
        print(f"{case.name:32} {line.worst():5.2f}  {shown}", flush=True)
        if options.write:
            PAGE.write_text(page({name: lines[name] for name in CASES if name in lines}))


if __name__ == "__main__":
    main()
