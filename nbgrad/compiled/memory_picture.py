"""The memory of a program over time, as a picture.

In: a `Plan`, and the lines of nodes. Out: SVG: groups of kernels along x, bytes of the arena along y, a rectangle for
each array. Called by explanation_page.py.
"""

from __future__ import annotations

from html import escape

from ..runtime.cpu_plan import Plan
from ..runtime.lifetimes import nbytes
from .page_style import picture, shortened, size_text, text_at
from .source_lines import Costs

WIDE, TALL, LEFT, BELOW = 1015.0, 300.0, 74.0, 34.0
LEAST = 3.0
"""The height of the smallest array."""


def memory_picture(plan: Plan, costs: Costs) -> str:
    """The arena over time."""
    if not plan.lifetimes:
        return "<p class=soft>No intermediate array is stored.</p>"
    groups = 1 + max(last for _, last in plan.lifetimes.values())
    end = max(plan.arena_bytes, 1)
    across, up = (WIDE - LEFT - 10) / groups, TALL / end
    parts: list[str] = []
    for tick in range(5):
        y = 10 + TALL - TALL * tick / 4
        parts.append(f'<line x1="{LEFT}" x2="{WIDE}" y1="{y:.1f}" y2="{y:.1f}" stroke="var(--rule)"/>')
        parts.append(text_at(LEFT - 6, y + 4, size_text(end * tick / 4), "small", "end"))
    step = max(1, -(-groups // 20))
    for group in range(0, groups, step):
        parts.append(text_at(LEFT + across * (group + 0.5), TALL + 26, str(group), "small", "middle"))
    hues: dict[str, int] = {}
    for node, (first, last) in plan.lifetimes.items():
        place = plan.places[node]
        size = (place.shift or nbytes(node)) + place.apart * (plan.slots - 1)
        key = costs.key_of(node)
        hue = hues.setdefault(key.where, (47 * len(hues) + 205) % 360)
        x, wide = LEFT + across * first, across * (last - first + 1)
        tall = max(LEAST, up * size)
        y = 10 + TALL - up * place.offset - tall
        name = f"{node.name} {node.dtype}[{', '.join(map(str, node.shape))}]"
        where = f"{key.where} {key.text}" if key.line else ""
        said = f"{name}, {size:,} bytes, groups {first} to {last}\n{where}\n{plan.reasons.get(node, '')}".strip()
        letters = int(wide / 6.2) - 1
        label = text_at(x + 5, y + tall / 2 + 4, shortened(name, letters), "small") if letters > 4 and tall > 13 else ""
        parts.append(
            f'<g><title>{escape(said)}</title><rect x="{x + 0.5:.1f}" y="{y:.1f}" width="{max(wide - 1, 1):.1f}" '
            f'height="{max(tall - 0.5, 1):.1f}" rx="2" fill="hsl({hue} 60% var(--wash))" '
            f'stroke="hsl({hue} 50% var(--edge))"/>{label}</g>'
        )
    parts.append(
        text_at(LEFT + (WIDE - LEFT) / 2, TALL + BELOW + 10, "groups of kernels, in their order", "small", "middle")
    )
    return picture(WIDE + 10, TALL + BELOW + 20, parts, "memory over time")
