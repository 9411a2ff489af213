"""`explain`: the compiled code of a function, as text and as a page.

In: a function and arguments. Out: the Python loops that were found, the recorded graph, the fused kernels as readable
loops with their bytes and flops, the memory plan, and the times of compiling and running; on the page also the user's
lines. Called by users and by `python -m nbgrad explain`.
"""

from __future__ import annotations

import inspect
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from ..compiler import cache
from ..errors import ArgumentError
from ..graph.host_functions import is_call
from ..graph.ir import topological
from ..graph.loops.noted import Notes, noting
from ..graph.show import show as show_graph
from ..runtime.cpu_plan import Plan
from ..runtime.cpu_program import Program
from ..runtime.group_times import group_times
from ..transforms.arguments import name_of
from ..transforms.lent_arrays import lent, ndarrays
from .explain_device import explain_device
from .explain_kernels import cost, kernel_text, memory_text
from .explanation import Explanation
from .explanation_page import page, plain_page
from .jit import Jitted, jit
from .loop_report import loop_report
from .signatures import dynamic_kind, flatten_in_order, signature
from .source_lines import Costs, line_costs, lines_table
from .specialization import Specialization

FEWEST_RUNS = 5
"""Timed calls, at least."""
MOST_NODES, MOST_LOOPS, MOST_ARRAYS = 300, 600, 60
"""Lines of the graph, of all kernels, and of the memory plan, above which the printed text leaves out most."""
ENDS = 40, 10
"""Lines of the graph and of a kernel, and kernels and arrays, that it has then."""
MOST_LINES = 15
"""Lines of the source at the head of a text that leaves something out."""


def explain(fn: Callable[..., Any], *args: Any) -> Explanation:
    """The graph, the loops, the memory plan and the time of a function, as text and as a page.

    The text is printed; a notebook shows the page, and `nb.explain(...).save("page.html")` writes it to a file. The
    page has the time and the bytes of each line of the source, the flow of data from line to line, the kernels, and
    the memory over time (`docs/explain.md`).

    For a function made by `nb.kernel` it says what its derivative stores and computes again, and for some arguments
    the bytes and the times; without arguments, for the dtypes of the last call.

    For Python loops it says which lines they come from, their turns and operations, and why others were not found. For
    that the function is recorded twice.

    Parameters
    ----------
    fn : callable
        Any function, for example `nb.value_and_grad(loss)`.
    *args : arrays
        The arguments of a call.

    Returns
    -------
    Explanation
        A string. Of large graphs it has the lines of the source that cost most, then the beginning of all else; its
        `full` has everything.

    Raises
    ------
    ArgumentError
        If compilation is switched off.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> print(nb.explain(lambda x: np.sum(np.sin(x)), np.zeros(3)))  # doctest: +ELLIPSIS
    <lambda>: 1 kernel...
    """
    own = getattr(fn, "explained", None)
    if own is not None:
        return _of_text(own(*args))
    before = dict(cache.counters)
    start = time.perf_counter()
    compiled = _fresh(fn)
    compiled(*args)
    first = time.perf_counter() - start
    program = _program_of(compiled)
    runs = 1 + int(min(200, 0.2 / max(first, 1e-6)))
    if any(map(is_call, topological(program.graph))):
        # All processes must send as many messages.
        runs = FEWEST_RUNS
    samples = [_timed(compiled, args) for _ in range(max(runs, FEWEST_RUNS))]
    made = {key: cache.counters[key] - before[key] for key in ("compiled", "loaded")}
    seconds = sorted(samples)[len(samples) // 2]
    if not isinstance(program, Program):
        count = len(program.plan.actions)
        head = [
            f"{name_of(fn)}: {count} action{'s' if count != 1 else ''} on {program.device}",
            f"first call {first * 1e3:.1f} ms, then {seconds * 1e6:.2f} us a call on the host",
        ]
        return _of_text(explain_device(program, head))
    count = len(program.plan.steps)
    flops = sum(cost(step)[1] for step in program.plan.steps)
    moved = sum(cost(step)[0] for step in program.plan.steps)
    head = [
        f"{name_of(fn)}: {count} kernel{'s' if count != 1 else ''}, {flops:,} flops, {moved:,} bytes read and written",
        (
            f"first call {first * 1e3:.1f} ms ({made['compiled']} compiled, {made['loaded']} from the cache), "
            f"then {seconds * 1e6:.2f} us a call"
        ),
        "",
    ]
    noted, notes = _noted(fn, args)
    loops = loop_report(notes)
    head += [*loops, ""] if loops else []
    graph, kernels = show_graph(program.graph).split("\n"), _kernels(program.plan)
    tail = [memory_text(program), *map(str, program.schedules)]
    if program.file is not None:
        tail.append(f"file in {program.file.folder}: {program.file.size:,} bytes")
    full = "\n".join([*head, *graph, "", *[line for kernel in kernels for line in kernel], *tail])
    text = full
    again = noted.program
    if len(graph) > MOST_NODES or _height(kernels) > MOST_LOOPS:
        costs = line_costs(again.plan, notes, noted.arguments, None, seconds)
        text = "\n".join([*head, *_shortened(costs, graph, kernels), *_ends(tail[0]), *tail[1:]])

    def draw(text: str) -> str:
        arrays = noted.arrays(signature(*_flat(args))[1])
        times = group_times(again, arrays)
        costs = line_costs(again.plan, notes, noted.arguments, times, seconds, _names(fn, args))
        return page(name_of(fn), again, costs, seconds, first, text)

    return Explanation(text, full, draw)


def _of_text(text: str) -> Explanation:
    """The explanation that a text is."""
    return Explanation(text, text, plain_page)


def _flat(args: tuple[Any, ...]) -> tuple[list[Any], Any]:
    """The leaves of a call's arguments, and their structure."""
    given, treespec = flatten_in_order((args, {}))
    return [lent(leaf) for leaf in ndarrays(given)], treespec


def _names(fn: Callable[..., Any], args: tuple[Any, ...]) -> list[str]:
    """The names of a call's arrays and numbers in the function, such as `weights[0]`; none if they are not known."""
    leaves, treespec = _flat(args)
    try:
        parameters = [*inspect.signature(fn).bind(*args).arguments.items()]
    except (TypeError, ValueError):
        return []
    if len(parameters) != len(args) or any(p[1] is not a for p, a in zip(parameters, args, strict=True)):
        return []
    found: list[str] = []
    for leaf, accessor in zip(leaves, treespec.accessors(), strict=True):
        if dynamic_kind(leaf) is not None:
            found.append(accessor[2:].codify(parameters[accessor[1].entry][0]))
    return found


def _kernels(plan: Plan) -> list[list[str]]:
    """Lines for each kernel."""
    found: list[list[str]] = []
    for number, group in enumerate(plan.groups):
        share = f"{group.chunks} chunks{', parallel' if group.parallel else ''}" if group.chunks > 1 else "1 chunk"
        lines: list[str] = []
        if len(group.steps) > 1:
            last = len(found) + len(group.steps) - 1
            lines.append(
                f"group {number}: kernels {len(found)} to {last} go through their rows together, a chunk at a time, so "
                "that what passes between them stays in cache"
            )
        for step in group.steps:
            bytes_, work = cost(step)
            lines.append(f"kernel {len(found)} of group {number}: {share}, {work:,} flops, {bytes_:,} bytes")
            found.append([*lines, kernel_text(step, plan), ""])
            lines = []
    return found


def _shortened(costs: Costs, graph: Sequence[str], kernels: Sequence[Sequence[str]]) -> list[str]:
    """The lines of the source that cost most, and the beginnings of a large graph and of its kernels."""
    lines = [*lines_table(costs, MOST_LINES), ""]
    most, least = ENDS
    if len(graph) > MOST_NODES:
        left = len(graph) - most - 2
        graph = [*graph[:most], f"  and {left:,} further lines: print(nb.explain(...).full) shows them", *graph[-2:]]
    shown = kernels if _height(kernels) <= MOST_LOOPS else [[*map(_beginning, one)] for one in kernels[:least]]
    lines += [*graph, "", *[text for kernel in shown for text in kernel]]
    if len(shown) < len(kernels):
        lines += [f"and {len(kernels) - len(shown):,} further kernels: print(nb.explain(...).full) shows them", ""]
    return lines


def _height(kernels: Sequence[Sequence[str]]) -> int:
    """The lines that the texts of kernels have."""
    return sum(text.count("\n") + 1 for kernel in kernels for text in kernel)


def _beginning(text: str) -> str:
    """The first lines of a long kernel."""
    lines = text.split("\n")
    if len(lines) <= ENDS[0] + 1:
        return text
    return "\n".join([*lines[: ENDS[0]], f"  and {len(lines) - ENDS[0]:,} further lines"])


def _ends(memory: str) -> list[str]:
    """The first arrays of a long memory plan."""
    lines = memory.split("\n")
    if len(lines) <= MOST_ARRAYS:
        return lines
    return [*lines[: ENDS[1]], f"  and {len(lines) - ENDS[1]:,} further arrays"]


def _fresh(fn: Callable[..., Any]) -> Jitted:
    """A function that is not compiled yet."""
    return Jitted(fn.fn, (), fn.budget) if isinstance(fn, Jitted) else jit(fn)


def _noted(fn: Callable[..., Any], args: tuple[Any, ...]) -> tuple[Specialization, Notes]:
    """A function recorded again, with the lines of all operations."""
    again = _fresh(fn)
    with noting(sys._getframe()) as notes:  # pyright: ignore[reportPrivateUsage]
        again(*args)
    return again.specializations()[0], notes


def _timed(function: Callable[..., Any], args: tuple[Any, ...]) -> float:
    start = time.perf_counter()
    function(*args)
    return time.perf_counter() - start


def _program_of(compiled: Jitted) -> Any:
    program = next(iter(compiled.programs()), None)
    if program is None:
        message = "Nothing was compiled: NBGRAD_DISABLE_JIT is set. Unset it to see what would be compiled."
        raise ArgumentError(message)
    return program
