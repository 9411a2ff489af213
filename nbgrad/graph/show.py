"""Graphs as text, one line a node.

In: output nodes. Out: text. Called by `explain`, and by people who look at what a pass has made.
"""

from __future__ import annotations

from collections.abc import Sequence

from .ir import Node, Params, literal_value, topological


def show_params(params: Params) -> str:
    """Parameters as text; the bytes of a literal are left out (its value is shown instead)."""
    return ", ".join(str(p) for p in params if not isinstance(p, bytes) and not callable(p))


def show(outputs: Sequence[Node], title: str = "graph") -> str:
    """The graph as text, one node a line: `%3 = multiply(%1, %2) : float64[10]`."""
    names: dict[Node, str] = {}
    lines = [f"{title} {{"]
    for node in topological(outputs):
        if node.name == "literal":
            names[node] = str(literal_value(node))
            continue
        names[node] = f"%{len(lines) - 1}"
        arguments = [names[source] for source in node.inputs]
        extra = show_params(node.params)
        if extra:
            arguments.append(extra)
        kind = f"{node.dtype}[{', '.join(map(str, node.shape))}]"
        lines.append(f"  {names[node]} = {node.name}({', '.join(arguments)}) : {kind}")
    lines.append(f"  return {', '.join(names[node] for node in outputs)}")
    lines.append("}")
    return "\n".join(lines)
