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
    """The graph as text, one node a line: `%3 = multiply(%1, %2) : float64[10]`; a loop has its body below it."""
    names: dict[Node, str] = {}
    lines = [f"{title} {{", *_lines(outputs, names, "%", "  ")]
    lines.append(f"  return {', '.join(names[node] for node in outputs)}")
    lines.append("}")
    return "\n".join(lines)


def _lines(outputs: Sequence[Node], names: dict[Node, str], prefix: str, indent: str) -> list[str]:
    """A line for each node that has no name yet; all get one."""
    lines: list[str] = []
    count = 0
    bodies: dict[Node, dict[Node, str]] = {}
    for node in topological(outputs, names):
        if node.name == "literal":
            names[node] = str(literal_value(node))
            continue
        name = names[node] = f"{prefix}{count}"
        count += 1
        arguments = [names[source] for source in node.inputs]
        if node.name == "loop":
            inside = bodies[node] = _body_names(node)
            lines += _loop_lines(node, name, arguments, inside, indent)
            continue
        extra = show_params(node.params) if node.name != "item" else _item_text(node, bodies[node.inputs[0]])
        if extra:
            arguments.append(extra)
        kind = f"{node.dtype}[{', '.join(map(str, node.shape))}]"
        lines.append(f"{indent}{name} = {node.name}({', '.join(arguments)}) : {kind}")
    return lines


def _body_names(loop: Node) -> dict[Node, str]:
    """The names of a body's inputs."""
    body = loop.params[0]
    groups = (("carried", body.carried), ("part", body.scanned), ("constant", body.constants))
    return {node: f"{word}{k}" for word, nodes in groups for k, node in enumerate(nodes)}


def _loop_lines(loop: Node, name: str, arguments: list[str], inside: dict[Node, str], indent: str) -> list[str]:
    """A loop: its turns, the values that its body starts from, the body, and the values that it carries on."""
    body, turns, reverse = loop.params
    given = ", ".join(f"{inside[node]} = {value}" for node, value in zip(body.inputs, arguments, strict=True))
    head = f"{indent}{name} = {turns} turns{', from the end' if reverse else ''} ({given}) {{"
    lines = _lines([*body.following, *body.results], inside, f"{name}.", indent + "  ")
    last = f"{indent}  carry {', '.join(inside[node] for node in body.following)}"
    return [head, *lines, last, f"{indent}}}"]


def _item_text(node: Node, inside: dict[Node, str]) -> str:
    """The result of a loop that an item is."""
    kind, position = node.params
    body = node.inputs[0].params[0]
    return f"carried{position} at the end" if kind == "last" else f"{inside.get(body.nodes[position])} of every turn"
