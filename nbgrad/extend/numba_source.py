"""A graph of numbers as straight-line Python, which people and Numba, for CPUs and GPUs, can read.

In: nodes with one element, and the names of the arguments. Out: the text of a function that uses `math`, NumPy's scalar
types as casts, and functions of numba_helpers.py, which are copied into it. Called by device_function.py.

One line computes one node, in its dtype: literals of float32 are written `np.float32(0.1)`, because Numba would compute
`0.1 * x` in float64 whatever x is. `{0}` in a template is the first operand, `<2.0>` a literal of the operand's dtype.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..errors import DtypeError
from ..graph.interpret import evaluate_node
from ..graph.ir import Node, literal_value, topological
from . import numba_helpers as printed_helpers

SAME = frozenset("alias stop_gradient reshape transpose broadcast slice sum prod max min custom".split())
"""The primitives that give their operand, if that has one element."""
_RENAMED = {
    **{f"arc{name}": f"a{name}" for name in "sin cos tan sinh cosh tanh".split()},
    "gammaln": "lgamma",
}
_MATH = "exp expm1 log log2 log10 log1p sqrt sin cos tan sinh cosh tanh erf erfc isnan isinf isfinite".split()
FLOATS: dict[str, str] = {
    **{name: f"math.{name}({{0}})" for name in _MATH},
    **{name: f"math.{called}({{0}})" for name, called in _RENAMED.items()},
    "exp2": "math.pow(<2.0>, {0})",
    "rsqrt": "<1.0> / math.sqrt({0})",
    "cbrt": "nbgrad_cbrt({0})",
    "digamma": "nbgrad_digamma({0})",
    "polygamma": "nbgrad_polygamma({0}, {1})",
    "expit": "<1.0> / (<1.0> + math.exp(-{0}))",
    "logit": (
        "<2.0> * math.atanh(<2.0> * {0} - <1.0>) if abs({0} - <0.5>) < <0.25> else math.log({0}) - math.log1p(-{0})"
    ),
    "negative": "-{0}",
    "absolute": "abs({0})",
    "sign": "{0} if {0} != {0} else (<1.0> if {0} > <0.0> else (<-1.0> if {0} < <0.0> else <0.0>))",
    "floor": "{0} // <1.0> if abs({0}) < <4503599627370496.0> else {0}",
    "ceil": "-((-{0}) // <1.0>) if abs({0}) < <4503599627370496.0> else {0}",
    "trunc": "math.copysign(abs({0}) // <1.0>, {0}) if abs({0}) < <4503599627370496.0> else {0}",
    "rint": (
        "math.copysign(abs({0}) // <1.0> + (<1.0> if abs({0}) % <1.0> > <0.5> or abs({0}) % <2.0> == <1.5> else "
        "<0.0>), {0}) if abs({0}) < <4503599627370496.0> else {0}"
    ),
    "add": "{0} + {1}",
    "subtract": "{0} - {1}",
    "multiply": "{0} * {1}",
    "divide": "{0} / {1}",
    "power": "math.pow({0}, {1})",
    "remainder": "{0} % {1}",
    "fmod": "math.copysign(abs({0}) % abs({1}), {0})",
    "floor_divide": "{0} // {1}",
    "maximum": "{0} if {0} >= {1} or {0} != {0} else {1}",
    "minimum": "{0} if {0} <= {1} or {0} != {0} else {1}",
    "fmax": "{0} if {0} >= {1} or {1} != {1} else {1}",
    "fmin": "{0} if {0} <= {1} or {1} != {1} else {1}",
    "copysign": "math.copysign({0}, {1})",
    "hypot": "math.hypot({0}, {1})",
    "arctan2": "math.atan2({0}, {1})",
    "logaddexp": (
        "{0} + <0.6931471805599453> if {0} == {1} else ({0} if {0} > {1} else {1}) + "
        "math.log1p(math.exp(-abs({0} - {1})))"
    ),
    "logaddexp2": (
        "{0} + <1.0> if {0} == {1} else ({0} if {0} > {1} else {1}) + math.log1p(math.pow(<2.0>, -abs({0} - {1}))) * "
        "<1.4426950408889634>"
    ),
    "xlogy": "<0.0> if {0} == <0.0> and {1} == {1} else {0} * math.log({1})",
    "signbit": "math.copysign(<1.0>, {0}) < <0.0>",
}
"""Primitives on floats."""
ANY: dict[str, str] = {
    "equal": "{0} == {1}",
    "not_equal": "{0} != {1}",
    "less": "{0} < {1}",
    "less_equal": "{0} <= {1}",
    "greater": "{0} > {1}",
    "greater_equal": "{0} >= {1}",
    "logical_and": "{0} != 0 and {1} != 0",
    "logical_or": "{0} != 0 or {1} != 0",
    "logical_xor": "({0} != 0) != ({1} != 0)",
    "logical_not": "{0} == 0",
    "select": "{1} if {0} else {2}",
}
"""Primitives on any dtype."""
INTEGERS: dict[str, str] = {
    **{name: FLOATS[name] for name in "negative absolute add subtract multiply remainder floor_divide".split()},
    **dict.fromkeys("floor ceil trunc rint".split(), "{0}"),
    "sign": "1 if {0} > 0 else (-1 if {0} < 0 else 0)",
    "power": "{0} ** {1}",
    "maximum": "{0} if {0} >= {1} else {1}",
    "minimum": "{0} if {0} <= {1} else {1}",
    "fmax": "{0} if {0} >= {1} else {1}",
    "fmin": "{0} if {0} <= {1} else {1}",
    "bitwise_and": "{0} & {1}",
    "bitwise_or": "{0} | {1}",
    "bitwise_xor": "{0} ^ {1}",
    "left_shift": "{0} << {1}",
    "right_shift": "{0} >> {1}",
    "invert": "~{0}",
    "isnan": "False",
    "isinf": "False",
    "isfinite": "True",
    "signbit": "{0} < 0",
}
"""Primitives on integers."""
BOOLEANS: dict[str, str] = {
    "logical_and": "{0} and {1}",
    "logical_or": "{0} or {1}",
    "logical_xor": "{0} != {1}",
    "logical_not": "not {0}",
    "add": "{0} or {1}",
    "maximum": "{0} or {1}",
    "multiply": "{0} and {1}",
    "minimum": "{0} and {1}",
    "bitwise_and": "{0} and {1}",
    "bitwise_or": "{0} or {1}",
    "bitwise_xor": "{0} != {1}",
    "invert": "not {0}",
}
"""Primitives on truth values."""
_LITERAL = re.compile(r"<(-?[0-9.]+)>")
_HELPER = re.compile(r"\b(nbgrad_\w+)\(")


class Printed(NamedTuple):
    """The text of a function; `helpers` are the functions that it calls, each before those that call it."""

    name: str
    body: str
    helpers: tuple[tuple[str, str], ...]

    @property
    def source(self) -> str:
        """All of it, ready to be stored in a file."""
        parts = ["import math\n\nimport numpy as np\n"]
        parts += [f"\n{text}" for _, text in self.helpers]
        return "\n".join([*parts, f"\n{self.body}"])


def printed(name: str, arguments: Sequence[tuple[str, Node]], outputs: Sequence[Node], about: str) -> Printed:
    """The text of a function that computes nodes from its arguments.

    Raises
    ------
    DtypeError
        If a node has more than one element, a dtype other than booleans, integers, float32 and float64, or is made in a
        way that cannot be written in a line.
    """
    writer = _Writer({node: text for text, node in arguments})
    lines = [f"def {name}({', '.join(text for text, _ in arguments)}):", f'    """{about}"""']
    for text, node in arguments:
        cast = f"{text} != 0" if node.dtype == np.bool_ else f"np.{node.dtype}({text})"
        lines.append(f"    {text} = {cast}")
    writer.write(outputs)
    statements, results = writer.finished(outputs)
    lines += [f"    {line}" for line in statements]
    lines.append(f"    return {', '.join(results)}")
    body = "\n".join(lines) + "\n"
    return Printed(name, body, tuple(helpers_of(body)))


def helpers_of(text: str) -> list[tuple[str, str]]:
    """The helpers that a text calls, and those that they call, which come first."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(_HELPER.findall(text)):
        source = inspect.getsource(getattr(printed_helpers, name))
        source = re.sub(r"^def (\w+)\((.*)\) -> float:", _without_types, source)
        own = source.split("\n", 1)[1]
        found.update({inner: code for inner, code in helpers_of(own) if inner not in found})
        found.setdefault(name, source)
    return list(found.items())


def _without_types(match: re.Match[str]) -> str:
    return f"def {match[1]}({match[2].replace(': float', '')}):"


def number_text(value: Any, dtype: np.dtype[Any]) -> str:
    """A number of a dtype."""
    if dtype == np.bool_:
        return str(bool(value))
    if dtype.kind in "iu":
        return (
            f"({value})"
            if dtype == np.int64 and value < 0
            else str(value)
            if dtype == np.int64
            else _cast(value, dtype)
        )
    if np.isnan(value) or np.isinf(value):
        text = "math.nan" if np.isnan(value) else "math.inf" if value > 0 else "(-math.inf)"
        return text if dtype == np.float64 else _cast(text, dtype)
    if dtype == np.float64:
        return f"({float(value)!r})" if np.signbit(value) else repr(float(value))
    return _cast(np.format_float_scientific(value, trim="0") if 0 < abs(value) < 1e-4 else str(value), dtype)


def _cast(text: Any, dtype: np.dtype[Any]) -> str:
    return f"np.{dtype}({text})"


class _Writer:
    """Writes the lines, and remembers the text of each node: a variable, or a literal."""

    def __init__(self, texts: dict[Node, str]) -> None:
        self.texts = texts
        self.lines: list[tuple[str, str]] = []
        self.known: dict[Node, np.ndarray] = {}
        """Values of nodes that depend on no argument."""
        taken = set(texts.values())
        self.prefix = "t"
        while any(text.startswith(self.prefix) for text in taken):
            self.prefix = f"_{self.prefix}"

    def write(self, outputs: Sequence[Node]) -> None:
        for node in topological(outputs):
            if node not in self.texts:
                self.texts[node] = self.text_of(node)

    def text_of(self, node: Node) -> str:
        _check(node)
        value = self.value_of(node)
        if value is not None:
            self.known[node] = value
            return number_text(value.reshape(-1)[0], node.dtype)
        operands = [self.texts[source] for source in node.inputs]
        if node.name in SAME:
            return operands[0]
        if node.name == "select" and node.inputs[0] in self.known:
            return operands[1 if self.known[node.inputs[0]] else 2]
        variable = f"{self.prefix}{len(self.lines) + 1}"
        self.lines.append((variable, self.expression(node, operands)))
        return variable

    def finished(self, outputs: Sequence[Node]) -> tuple[list[str], list[str]]:
        """The lines that the outputs need, with their variables counted anew, and the texts of the outputs."""
        variable = re.compile(rf"\b{self.prefix}[0-9]+\b")
        results = [self.texts[node] for node in outputs]
        needed = set(results)
        kept: list[tuple[str, str]] = []
        for name, expression in reversed(self.lines):
            if name in needed:
                kept.append((name, expression))
                needed.update(variable.findall(expression))
        numbers = {name: f"{self.prefix}{k}" for k, (name, _) in enumerate(reversed(kept), 1)}

        def renamed(text: str) -> str:
            return variable.sub(lambda match: numbers.get(match[0], match[0]), text)

        return [f"{renamed(n)} = {renamed(e)}" for n, e in reversed(kept)], [renamed(text) for text in results]

    def value_of(self, node: Node) -> np.ndarray | None:
        """The value of a node that depends on no argument."""
        if node.name == "literal":
            return np.asarray(literal_value(node))
        if node.name in ("constant", "iota"):
            return np.asarray(node.value) if node.name == "constant" else np.zeros(1, np.int64)
        values = [self.known.get(source) for source in node.inputs]
        decides = {"logical_and": False, "logical_or": True}.get(node.name)
        if decides is not None and any(value is not None and bool(value) is decides for value in values):
            return np.asarray(decides)
        if not values or any(value is None for value in values):
            return None
        with np.errstate(all="ignore"):
            return evaluate_node(node, [value for value in values if value is not None])

    def expression(self, node: Node, operands: Sequence[str]) -> str:
        if node.name == "cast":
            return f"{operands[0]} != 0" if node.dtype == np.bool_ else _cast(operands[0], node.dtype)
        dtype = node.inputs[-1].dtype
        tables = {"f": (FLOATS, ANY), "b": (BOOLEANS, INTEGERS, ANY)}.get(dtype.kind, (INTEGERS, ANY))
        template = next((table[node.name] for table in tables if node.name in table), None)
        if template is None:
            message = (
                f"A device function cannot have {node.name} of {dtype}, which Python's math has no counterpart of. "
                "Compute it outside, and pass it as an argument."
            )
            raise DtypeError(message)
        replace: Callable[[re.Match[str]], str] = lambda match: number_text(dtype.type(float(match[1])), dtype)  # noqa: E731
        text = _LITERAL.sub(replace, template).format(*operands)
        narrow = node.dtype.kind in "iu" and node.dtype != np.int64
        return _cast(text, node.dtype) if narrow or (_HELPER.search(text) and node.dtype == np.float32) else text


def _check(node: Node) -> None:
    if node.size != 1:
        message = (
            f"A device function works with single numbers, but here {node.name} gives an array of shape {node.shape}. "
            "Write it for numbers, or use nb.primitive for kernels of arrays."
        )
        raise DtypeError(message)
    if node.dtype.kind not in "biuf" or node.dtype == np.float16:
        message = (
            f"A device function works with booleans, integers, float32 and float64, but here {node.name} gives a "
            f"{node.dtype}."
        )
        raise DtypeError(message)
