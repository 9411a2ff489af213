"""The style of explanation pages, and small pieces of HTML and SVG.

In: numbers and texts. Out: texts for pages, with nothing left in them that HTML would read as its own. Called by
explanation_page.py, flow_picture.py and memory_picture.py.
"""

from __future__ import annotations

from html import escape

STYLE = """<style>
.nbgrad { --ink: #1d2430; --soft: #5b6575; --paper: #ffffff; --rule: #d5dae2; --panel: #f4f6f9; --mark: #2c6fbb;
  --wash: 88%; --edge: 45%; color: var(--ink); background: var(--paper); font: 14px/1.45 system-ui, sans-serif;
  padding: 1em 1.5em; max-width: 1080px; margin: 0 auto; }
@media (prefers-color-scheme: dark) {
  .nbgrad { --ink: #e3e7ee; --soft: #9aa5b5; --paper: #14181f; --rule: #333b48; --panel: #1d232c; --mark: #6aa9f0;
    --wash: 24%; --edge: 60%; }
  html:has(> body > .nbgrad) { background: #14181f; } }
.nbgrad h1 { font-size: 1.5em; margin: 0 0 .3em; } .nbgrad h2 { font-size: 1.15em; margin: 1.8em 0 .4em; }
.nbgrad p { margin: .3em 0; } .nbgrad .soft { color: var(--soft); }
.nbgrad .facts { display: flex; flex-wrap: wrap; gap: .6em; margin: .8em 0; }
.nbgrad .facts div { background: var(--panel); border-radius: 6px; padding: .5em .9em; }
.nbgrad .facts b { display: block; font-size: 1.2em; font-weight: 600; }
.nbgrad table { border-collapse: collapse; width: 100%; font-size: 13px; }
.nbgrad th { text-align: left; color: var(--soft); font-weight: 500; }
.nbgrad th, .nbgrad td { padding: .25em .6em; border-bottom: 1px solid var(--rule); vertical-align: top; }
.nbgrad th.n, .nbgrad td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.nbgrad code, .nbgrad pre { font: 12px/1.4 ui-monospace, "DejaVu Sans Mono", monospace; }
.nbgrad td:first-child, .nbgrad td:last-child { white-space: nowrap; }
.nbgrad td code { white-space: pre-wrap; overflow-wrap: anywhere; }
.nbgrad pre { background: var(--panel); padding: .7em 1em; overflow-x: auto; border-radius: 6px; margin: .4em 0; }
.nbgrad details { border-bottom: 1px solid var(--rule); padding: .3em 0; }
.nbgrad summary { cursor: pointer; }
.nbgrad .bar { display: inline-block; height: .7em; background: var(--mark); border-radius: 2px; }
.nbgrad .wide { overflow: auto; max-height: 760px; border: 1px solid var(--rule); border-radius: 6px; }
.nbgrad svg { display: block; } .nbgrad svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
.nbgrad svg .mono { font: 11.5px ui-monospace, "DejaVu Sans Mono", monospace; }
.nbgrad svg .small { font-size: 11px; fill: var(--soft); }
.nbgrad svg .halo { font-size: 10.5px; paint-order: stroke; stroke: var(--paper); stroke-width: 4px; }
.nbgrad svg .box { fill: var(--panel); stroke: var(--rule); }
.nbgrad svg .arrow { fill: none; stroke: var(--soft); } .nbgrad svg .kept { stroke-dasharray: 4 3; }
.nbgrad svg .head { fill: var(--soft); }
</style>"""
HEAD = (
    '<marker id="nbgrad-head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
    'markerUnits="userSpaceOnUse" orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker>'
)
"""The end of an arrow."""


def size_text(count: float) -> str:
    """A number of bytes."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" or count >= 100 else f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} TB"


def time_text(seconds: float) -> str:
    """A time."""
    if seconds < 1e-3:
        digits = 2 if seconds < 1e-5 else 1 if seconds < 1e-4 else 0
        return f"{seconds * 1e6:.{digits}f} us"
    return f"{seconds * 1e3:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def shortened(text: str, most: int) -> str:
    """The beginning of a text."""
    return text if len(text) <= most else text[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"


def table(heads: list[str], rows: list[list[str]], numbers: frozenset[int]) -> str:
    """A table; the columns in `numbers` are aligned at their ends. Cells are HTML."""

    def cells(tag: str, row: list[str]) -> str:
        return "".join(
            f"<{tag}{' class=n' if place in numbers else ''}>{cell}</{tag}>" for place, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table><thead><tr>{cells('th', heads)}</tr></thead><tbody>{body}</tbody></table>"


def facts(pairs: list[tuple[str, str]]) -> str:
    """Numbers with their names, side by side."""
    return f'<div class="facts">{"".join(f"<div><b>{escape(v)}</b>{escape(k)}</div>" for k, v in pairs)}</div>'


def folded(title: str, inside: str, is_open: bool = False) -> str:
    """A part that opens by a click; `title` and `inside` are HTML."""
    return f"<details{' open' if is_open else ''}><summary>{title}</summary>{inside}</details>"


def picture(width: float, height: float, parts: list[str], label: str) -> str:
    """A picture in a frame that scrolls; its arrows have ends of its own."""
    drawn = "".join([f"<defs>{HEAD}</defs>", *parts]).replace("nbgrad-head", f"nbgrad-{label.rpartition(' ')[2]}")
    return (
        f'<div class="wide"><svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}" '
        f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">'
        f"{drawn}</svg></div>"
    )


def text_at(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    """A text in a picture."""
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{kind} text-anchor="{anchor}">{escape(text)}</text>'
