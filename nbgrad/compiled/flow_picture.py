"""Pictures of a program's data flow: lines of source as boxes, and the nodes of a graph.

In: the `Costs` of lines; output nodes. Out: SVG. Called by explanation_page.py. Lines stand below each other as in the
text, their derivatives beside them, so that values flow down on the left and cotangents up on the right. Arrows have
the bytes that they carry: through memory, or, dashed, in registers within one kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from math import log10

from ..graph.ir import Node, literal_value, topological
from ..graph.show import show_params
from .page_style import picture, shortened, size_text, text_at
from .source_lines import Costs, Flow, Key, Line

BOX, TALL, STEP = 330, 54, 92
"""Width and height of a box, and the distance from row to row."""
LEFT, RIGHT = 130, 620
"""Where the boxes of lines and of their derivatives begin."""
MOST_ROWS = 40
MOST_LABELS = 24
"""Arrows that show their bytes; all do where a pointer rests on them."""
LETTERS = 44
"""Letters of a line's text in a box."""
LAYER, GAP = 58, 18
"""The distance from row to row of nodes, and between nodes side by side."""


def flow_picture(costs: Costs) -> str:
    """The flow of data from line to line."""
    ranked = [line for line in costs.ranked() if line.key.line]
    shown = {line.key for line in ranked}
    places = {(key.filename, key.line, key.function) for key in shown}
    if len(places) > MOST_ROWS:
        places = set(list(dict.fromkeys([line.key[:3] for line in ranked]))[:MOST_ROWS])
    rows = sorted(places)
    if not rows:
        return "<p class=soft>No line of the text is known.</p>"
    tops = _tops(rows)
    boxes = {
        line.key: (RIGHT if line.key.derivative else LEFT, tops[line.key[:3]])
        for line in ranked
        if line.key[:3] in places
    }
    parts: list[str] = []
    for before, row in pairwise([("", 0, ""), *rows]):
        if (before[0], before[2]) != (row[0], row[2]):
            parts.append(text_at(LEFT, tops[row] - 8, f"{row[2]}, {Key(*row).where.rpartition(':')[0]}", "small"))
    width = RIGHT + BOX + 130 if any(key.derivative for key in boxes) else LEFT + BOX + 60
    if any(key.derivative for key in boxes):
        parts.append(text_at(RIGHT, 16, "derivatives", "small"))
    inside, between = _flows(costs, boxes)
    lanes: dict[tuple[float, bool], int] = {}
    widest = sorted([flow.total for flow in between.values()], reverse=True)
    least = widest[min(len(widest), MOST_LABELS) - 1] if widest else 0
    for (start, end), flow in between.items():
        parts.append(_arrow(start, end, flow, boxes, lanes, flow.total >= least))
    for line in ranked:
        if line.key in boxes:
            parts.append(_box(line, boxes[line.key], costs, inside.get(line.key, "")))
    return picture(width, max(tops.values()) + STEP, parts, "data that flows from line to line")


def _tops(rows: Sequence[tuple[str, int, str]]) -> dict[tuple[str, int, str], float]:
    """Where the boxes of lines begin; a function has a title above its first line."""
    found: dict[tuple[str, int, str], float] = {}
    at, before = 0.0, ("", 0, "")
    for row in rows:
        at += 34 if (before[0], before[2]) != (row[0], row[2]) else 0
        found[row] = at
        at, before = at + STEP, row
    return found


def _flows(costs: Costs, boxes: dict[Key, tuple[int, float]]) -> tuple[dict[Key, str], dict[tuple[Key, Key], Flow]]:
    """For each line, the arguments and results that it reads and gives, in words; and the flow between boxes."""
    read: dict[Key, list[str]] = {}
    given: dict[Key, list[str]] = {}
    between: dict[tuple[Key, Key], Flow] = {}
    for (start, end), flow in costs.flows.items():
        if isinstance(start, Key) and isinstance(end, Key):
            if start in boxes and end in boxes:
                between[start, end] = flow
        elif isinstance(end, Key):
            read.setdefault(end, []).append(f"{start} ({size_text(flow.stored)})")
        elif isinstance(start, Key):
            given.setdefault(start, []).append(f"{end} ({size_text(flow.stored)})")
    words: dict[Key, str] = {}
    for key in boxes:
        texts = [f"reads {', '.join(read[key])}"] if key in read else []
        words[key] = "; ".join([*texts, *[f"gives {', '.join(given[key])}" for _ in given.get(key, ())[:1]]])
    return words, between


def _box(line: Line, at: tuple[int, float], costs: Costs, words: str) -> str:
    x, y = at
    key = line.key
    text = f"{key.line}  {key.text}"
    numbers = f"{line.operations:,} operations, {costs.share(line):.0%} of the time"
    share = max(2.0, BOX * costs.share(line))
    return (
        f"<g><title>{escape(f'{key.where} {key.text}')}\n{escape(numbers)}\n{escape(words)}</title>"
        f'<rect class="box" x="{x}" y="{y:.1f}" width="{BOX}" height="{TALL}" rx="5"/>'
        f'<rect x="{x}" y="{y + TALL - 3:.1f}" width="{share:.1f}" height="3" fill="var(--mark)"/>'
        + text_at(x + 8, y + 16, shortened(text, LETTERS), "mono")
        + text_at(x + 8, y + 31, numbers, "small")
        + text_at(x + 8, y + 45, shortened(words, 56), "small")
        + "</g>"
    )


def _arrow(
    start: Key,
    end: Key,
    flow: Flow,
    boxes: dict[Key, tuple[int, float]],
    lanes: dict[tuple[float, bool], int],
    labelled: bool,
) -> str:
    """An arrow from box to box, with its bytes if it is `labelled`."""
    (x0, y0), (x1, y1) = boxes[start], boxes[end]
    if x0 != x1:
        # Across, from the side that faces the other box.
        a, b = (x0 + BOX, x1) if x0 < x1 else (x0, x1 + BOX)
        lane = lanes[y0, True] = lanes.get((y0, True), -1) + 1
        ya, yb = y0 + 12 + 9 * (lane % 4), y1 + 12 + 9 * (lane % 4)
        bend = (b - a) / 2
        path = f"M{a} {ya:.1f}C{a + bend} {ya:.1f} {b - bend} {yb:.1f} {b} {yb:.1f}"
        # Near the beginning, where few arrows meet: a point of the curve.
        t = 0.2 + 0.09 * (lane % 3)
        at = (_curve(t, a, a + bend, b - bend, b), _curve(t, ya, ya, yb, yb) + 3)
    elif abs(y1 - y0) <= STEP + 34 and abs(y1 - y0) > 0:
        # To the neighbour, straight.
        lane = lanes[min(y0, y1), x0 == RIGHT] = lanes.get((min(y0, y1), x0 == RIGHT), -1) + 1
        x = x0 + BOX / 2 + (60 if y1 < y0 else -60) * (1 + lane // 2)
        ya, yb = (y0 + TALL, y1) if y1 > y0 else (y0, y1 + TALL)
        path, at = f"M{x:.1f} {ya:.1f}L{x:.1f} {yb:.1f}", (x, (ya + yb) / 2 + 3)
    else:
        # Past others, along the outer side.
        side = -1 if x0 == LEFT else 1
        x = x0 if x0 == LEFT else x0 + BOX
        lane = lanes[float(side), False] = lanes.get((float(side), False), -1) + 1
        out = x + side * min(110, 24 + 14 * (abs(y1 - y0) / STEP) + 5 * (lane % 5))
        ya, yb = y0 + TALL * 0.7, y1 + TALL * 0.3
        path = f"M{x} {ya:.1f}C{out:.1f} {ya:.1f} {out:.1f} {yb:.1f} {x} {yb:.1f}"
        t = 0.25 + 0.12 * (lane % 5)
        at = (_curve(t, x, out, out, x), _curve(t, ya, ya, yb, yb) + 3)
    kind = "arrow" if flow.stored else "arrow kept"
    wide = 0.8 + 0.3 * log10(max(flow.total, 1))
    label = text_at(*at, size_text(flow.total), "halo", "middle") if labelled else ""
    said = f"{size_text(flow.stored)} through memory, {size_text(flow.kept)} in registers"
    title = f"line {start.line} to line {end.line}: {said}"
    return (
        f'<g><title>{title}</title><path class="{kind}" stroke-width="{wide:.1f}" marker-end="url(#nbgrad-head)" '
        f'd="{path}"/>{label}</g>'
    )


def _curve(t: float, a: float, b: float, c: float, d: float) -> float:
    """A coordinate of a point of a Bezier curve."""
    s = 1 - t
    return s * s * s * a + 3 * s * s * t * b + 3 * s * t * t * c + t * t * t * d


# ----- Nodes -----


def node_picture(outputs: Sequence[Node], costs: Costs) -> str:
    """The nodes of a graph in layers, each below its operands."""
    order = [node for node in topological(outputs) if node.name != "literal"]
    layer: dict[Node, int] = {}
    for node in order:
        layer[node] = max([layer[source] + 1 for source in node.inputs if source in layer], default=0)
    for node in reversed(order):
        # Arguments stand right above their first reader.
        if not node.inputs:
            readers = [layer[other] for other in order if node in other.inputs]
            layer[node] = min(readers, default=1) - 1
    lowest = min(layer.values(), default=0)
    rows: dict[int, list[Node]] = {}
    for node in order:
        rows.setdefault(layer[node] - lowest, []).append(node)
    middle: dict[Node, float] = {}
    boxes: dict[Node, tuple[float, float, float]] = {}
    widest = 300.0
    for number in sorted(rows):
        wanted = {
            node: sum(known) / len(known) if (known := [middle[s] for s in node.inputs if s in middle]) else 150.0
            for node in rows[number]
        }
        right = 10.0
        for node in sorted(rows[number], key=lambda node: wanted[node]):
            width = 24 + 6.6 * max(map(len, _words(node)))
            x = max(right, wanted[node] - width / 2)
            boxes[node] = (x, 10.0 + LAYER * number, width)
            middle[node], right = x + width / 2, x + width + GAP
            widest = max(widest, right)
    parts = [_line(boxes[source], boxes[node]) for node in order for source in node.inputs if source in boxes]
    ends = set(outputs)
    for node, (x, y, width) in boxes.items():
        name, kind = _words(node)
        key = costs.key_of(node)
        where = f"{key.where}{' (derivative)' if key.derivative else ''} {key.text}" if node.inputs else ""
        edge = ' style="stroke: var(--mark); stroke-width: 2px"' if node in ends else ""
        parts.append(
            f'<g><title>{escape(f"{name} {kind}")}\n{escape(where)}</title><rect class="box" x="{x:.1f}" y="{y:.1f}" '
            f'width="{width:.1f}" height="36" rx="5"{edge}/>{text_at(x + 8, y + 15, name, "mono")}'
            f"{text_at(x + 8, y + 29, kind, 'small')}</g>"
        )
    return picture(widest, 20 + LAYER * (max(rows, default=0) + 1), parts, "the nodes of the graph")


def _words(node: Node) -> tuple[str, str]:
    """The operation of a node with its numbers, and its dtype and shape."""
    if node.name == "loop":
        return f"{node.params[1]:,} turns", f"{len(node.params[0].nodes)} nodes"
    numbers = [f"{literal_value(source):.6g}" for source in node.inputs if source.name == "literal"]
    if node.name in ("sum", "prod", "max", "min", "transpose", "cast"):
        numbers.append(show_params(node.params))
    name = f"{node.name} {', '.join(numbers)}" if numbers else node.name
    return shortened(name, 28), f"{node.dtype}[{', '.join(map(str, node.shape))}]"


def _line(start: tuple[float, float, float], end: tuple[float, float, float]) -> str:
    x0, y0 = start[0] + start[2] / 2, start[1] + 36
    x1, y1 = end[0] + end[2] / 2, end[1]
    bend = max(12.0, (y1 - y0) / 2)
    return (
        f'<path class="arrow" marker-end="url(#nbgrad-head)" '
        f'd="M{x0:.1f} {y0:.1f}C{x0:.1f} {y0 + bend:.1f} {x1:.1f} {y1 - bend:.1f} {x1:.1f} {y1:.1f}"/>'
    )
