"""The page of an explanation: summary, lines, flow, kernels, and memory over time.

In: a program, the notes of its recording, and times. Out: HTML with pictures in it, which needs no network and runs
nothing. Called by explain.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ..graph.ir import Node, topological
from ..runtime.cpu_program import Program
from .explain_kernels import cost, kernel_text
from .flow_picture import flow_picture, node_picture
from .memory_picture import memory_picture
from .page_style import STYLE, facts, folded, size_text, table, time_text
from .source_lines import Costs, Line

MOST_NODES = 200
"""Nodes of a graph that is drawn."""
MOST_LINES = 25
MOST_KERNELS = 200
_NUMBERS = frozenset([2, 3, 4, 5])
"""Columns of the table of lines."""


def plain_page(text: str) -> str:
    """The page of a text alone, whose first lines are the summary."""
    head, _, rest = text.partition("\n\n")
    title, _, more = head.partition("\n")
    inside = f"<h1>{escape(title)}</h1><p class=soft>{escape(more)}</p><pre>{escape(rest)}</pre>"
    return f'{STYLE}<div class="nbgrad">{inside}</div>'


def page(name: str, program: Program, costs: Costs, seconds: float, first: float, text: str) -> str:
    """The page of a program on the CPU.

    Parameters
    ----------
    name : str
        That of the function.
    program : Program
    costs : Costs
    seconds, first : float
        Times of a call, and of the first one.
    text : str
        The explanation as text.
    """
    plan = program.plan
    order = topological(program.graph)
    count = _nodes(order)
    moved = sum(cost(step)[0] for step in plan.steps)
    said = "measured, each group of kernels alone" if costs.measured else "a model of cost, times the time of a call"
    parts = [
        f"<h1>{escape(name)}</h1>",
        facts(
            [
                ("a call", time_text(seconds)),
                ("the first call", time_text(first)),
                ("kernels", f"{len(plan.steps):,}"),
                ("operations", f"{sum(line.operations for line in costs.lines.values()):,}"),
                ("read and written", size_text(moved)),
                ("for intermediates", size_text(plan.arena_bytes)),
                ("nodes", f"{count:,}"),
            ]
        ),
        "<h2>Time and bytes by line</h2>",
        _lines(costs),
        f"<p class=soft>Time: {said}.</p>",
        "<h2>Flow from line to line</h2>",
        flow_picture(costs),
        "<p class=soft>Arrows carry bytes through memory; dashed ones stay in registers of one kernel.</p>",
    ]
    if len(order) <= MOST_NODES:
        drawn = node_picture(program.graph, costs)
        parts.append(folded("The nodes of the graph, each loop as one", drawn, count <= 12))
    else:
        parts.append(f"<p class=soft>The graph of {count:,} nodes is not drawn; the text below has all of it.</p>")
    parts += ["<h2>Memory over time</h2>", memory_picture(plan, costs), _memory_words(program)]
    parts += ["<h2>Kernels</h2>", *_kernels(program, costs)]
    parts += ["<h2>All of it as text</h2>", folded("Graph, kernels and memory plan", f"<pre>{escape(text)}</pre>")]
    return f'{STYLE}<div class="nbgrad">{"".join(parts)}</div>'


def _nodes(order: Sequence[Node]) -> int:
    """The operations of a graph, those in the bodies of loops counted once."""
    inside = sum(_nodes(node.params[0].nodes) for node in order if node.name == "loop")
    return inside + len([node for node in order if node.primitive.kind != "source"])


def _lines(costs: Costs) -> str:
    ranked = [line for line in costs.ranked() if line.operations or line.bytes or line.seconds > 0]
    heads = ["line", "text", "operations", "kernels", "bytes", "time", "share"]
    rows = [_row(line, costs) for line in ranked]
    found = table(heads, rows[:MOST_LINES], _NUMBERS)
    if len(rows) > MOST_LINES:
        more = table(heads, rows[MOST_LINES:], _NUMBERS)
        found += folded(f"{len(rows) - MOST_LINES} further lines", more)
    return found


def _row(line: Line, costs: Costs) -> list[str]:
    key = line.key
    said = " <span class=soft>derivative</span>" if key.derivative else ""
    share = costs.share(line)
    return [
        f"{escape(key.where)}{said}",
        f"<code>{escape(key.text)}</code>",
        f"{line.operations:,}",
        f"{len(line.kernels):,}",
        f'<span title="{line.bytes:,} bytes">{size_text(line.bytes)}</span>',
        f"{time_text(line.seconds)}",
        f'<span class="bar" style="width: {max(1, round(80 * share))}px"></span> {share:.0%}',
    ]


def _memory_words(program: Program) -> str:
    plan = program.plan
    shared = f"{size_text(plan.arena_bytes)} for intermediates, {size_text(plan.unshared_bytes)} if none shared memory"
    given = f"{len(plan.bases)} inputs and constants, {len(program.outputs)} outputs have memory of their own"
    return f"<p class=soft>{shared}; {given}.</p>"


def _kernels(program: Program, costs: Costs) -> Sequence[str]:
    """A part for each kernel."""
    plan = program.plan
    parts: list[str] = []
    number = 0
    for place, group in enumerate(plan.groups):
        for step in group.steps:
            if number == MOST_KERNELS:
                return [*parts, f"<p class=soft>and {len(plan.steps) - number:,} further ones, in the text below.</p>"]
            moved, flops = cost(step)
            work = costs.kernels[number]
            ranked = sorted(work, key=lambda key: -work[key])
            lines = ", ".join(dict.fromkeys(key.where for key in ranked[:4]))
            more = f" and {len(ranked) - 4} more" if len(ranked) > 4 else ""
            shared = ", parallel" if group.parallel else ""
            title = (
                f"kernel {number} of group {place}: {time_text(costs.seconds[number])}, {flops:,} flops, "
                f"{size_text(moved)}, {group.chunks} chunk{'s' if group.chunks > 1 else ''}{shared} "
                f"<span class=soft>{escape(lines)}{more}</span>"
            )
            parts.append(folded(title, f"<pre>{escape(kernel_text(step, plan))}</pre>", len(plan.steps) <= 2))
            number += 1
    return parts
