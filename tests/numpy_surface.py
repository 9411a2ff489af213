"""The table of NumPy's functions, and how far each one works on Tensors: `python -m tests.numpy_surface --write` makes
docs/numpy.md of it.

`public_names` walks NumPy itself; surface_rows.py says what is known of each name. test_numpy_surface.py checks that no
name is missing, that each row tells the truth, and that the page is current.
"""

from __future__ import annotations

import ast
import io
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from . import surface_rows

PAGE = Path(__file__).parent.parent / "docs" / "numpy.md"
NAMESPACES: dict[str, tuple[ModuleType, dict[str, str]]] = {
    "numpy": (np, surface_rows.MAIN),
    "numpy.linalg": (np.linalg, surface_rows.LINALG),
    "numpy.fft": (np.fft, surface_rows.FFT),
}
KINDS = {
    "derivative": "yes, in both modes",
    "zero": "zero",
    "integers": "none: integers or truth values",
    "plain": "none: a fact, a text or a file",
    "in place": "yes: it writes into a Tensor",
    "by name": "yes, as `nbgrad.numpy.{name}`",
    "refused": "**refused**: {remark}",
    "NumPy's own": "not for Tensors: {remark}",
}
"""What the page says of each kind."""


# ----- Sample arrays -----


def _spread(seed: int, shape: tuple[int, ...], low: float, high: float) -> np.ndarray:
    """Numbers that keep apart from each other, in a random order."""
    rng = np.random.default_rng(seed)
    count = int(np.prod(shape))
    steps = np.linspace(low, high, count) + rng.uniform(-0.2, 0.2, count) * (high - low) / count
    return rng.permutation(steps).reshape(shape)


def _samples() -> dict[str, np.ndarray]:
    x, q = _spread(1, (3, 4), -1.9, 2.1), _spread(2, (3, 4), -2.0, 1.7)
    m = _spread(3, (3, 3), -1.0, 1.3) + 2 * np.eye(3)
    c, d = x + 1j * _spread(4, (3, 4), -1.1, 1.2), _spread(5, (3, 4), 0.4, 1.6) + 1j * q
    h = x.copy()
    h[0, 1] = h[2, 3] = np.nan
    integers = np.random.default_rng(6)
    return {
        "A": _spread(7, (2, 3, 3), -1.0, 1.2) + 2 * np.eye(3),
        "B": np.array([[1, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 0]], bool),
        "C": c,
        "D": d,
        "E": m + 1j * _spread(8, (3, 3), -0.8, 0.9),
        "G": np.array([-1.6, -0.7, 0.15, 0.9, 1.5]),
        "H": h,
        "J": integers.integers(1, 9, (3, 4)),
        "K": integers.integers(-3, 4, (3, 4)),
        "M": m,
        "N": _spread(9, (3, 3), -1.2, 1.0),
        "P": _spread(10, (3, 4), 0.3, 2.4),
        "Q": q,
        "R": c[1],
        "S": m @ m.T + np.diag([0.1, 0.5, 1.3]),
        "T": d[0],
        "U": _spread(11, (3, 4), -0.85, 0.8),
        "V": _spread(12, (5,), -1.5, 1.6),
        "W": _spread(13, (5,), 0.4, 1.8),
        "X": x,
        "Y": _spread(14, (4,), -1.3, 1.5),
    }


SAMPLES = _samples()


# ----- Rows -----


class Row(NamedTuple):
    """What is known of one name: the kind, sample calls, and a remark."""

    kind: str
    calls: tuple[str, ...]
    remark: str


def rows(table: dict[str, str]) -> dict[str, Row]:
    """Every row of a namespace by name."""
    found: dict[str, Row] = {}
    for kind, text in table.items():
        for name, row in _block(kind, text):
            assert name not in found, f"{name} has two rows"
            found[name] = row
    return found


def _block(kind: str, text: str) -> Iterator[tuple[str, Row]]:
    if kind == "no arrays":
        for name in text.split():
            yield name, Row(kind, (), "")
        return
    for line in text.strip().splitlines():
        names, _, rest = line.partition(": ")
        if kind == "NumPy's own":
            for name in names.split():
                yield name, Row(kind, (), rest)
            continue
        calls, _, remark = rest.partition(" | ")
        yield names, Row(kind, tuple([call.strip() for call in calls.split("; ")]), remark)


TABLES = {namespace: rows(table) for namespace, (_, table) in NAMESPACES.items()}


def public_names(module: ModuleType) -> list[str]:
    """The functions and classes of a namespace: all public names that can be called, without scalar types, exceptions
    and submodules."""
    scalars = (np.generic, BaseException, bool, int, float, complex, str, bytes)
    found: list[str] = []
    for name in dir(module):
        value = named(module, name)
        scalar = isinstance(value, type) and issubclass(value, scalars)
        if not name.startswith("_") and callable(value) and not isinstance(value, ModuleType) and not scalar:
            found.append(name)
    return found


def named(module: ModuleType, name: str) -> Any:
    """What a namespace has under a name, also a deprecated one; None if nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(module, name, None)


def row_of(namespace: str, name: str) -> tuple[str, Row] | None:
    """The row of a name, or that of another name of the same function; and whose it is."""
    module, _ = NAMESPACES[namespace]
    table = TABLES[namespace]
    if name in table:
        return name, table[name]
    value = named(module, name)
    for other, row in table.items():
        if named(module, other) is value:
            return other, row
    return None


# ----- Sample calls as functions -----


def variables(call: str) -> list[str]:
    """The sample arrays that a call uses."""
    names = {node.id for node in ast.walk(ast.parse(call)) if isinstance(node, ast.Name)}
    return sorted(names & SAMPLES.keys())


def function_of(call: str, f: Any, library: Any = np) -> Callable[..., Any]:
    """A sample call as a function of the arrays that it uses."""
    code, names = compile(call, call, "eval"), variables(call)

    def function(*arrays: Any) -> Any:
        return eval(code, {"np": library, "f": f, "FILE": io.BytesIO(), **dict(zip(names, arrays, strict=True))})

    function.__name__ = function.__qualname__ = f"{getattr(f, '__name__', 'f')} as {call}"
    return function


# ----- The page -----

HEAD = """# NumPy's functions on Tensors

Written by `python -m tests.numpy_surface --write` from the table in `tests/surface_rows.py`. The test
`tests/test_numpy_surface.py` walks NumPy for its public functions and checks that none is missing here, that those that
work give what NumPy gives, that their derivatives agree with differences of NumPy in both modes and to second order,
and that those that are refused say so.

A function that works takes Tensors wherever NumPy takes arrays: `np.sin(x)` with `import numpy as np`. "Derivative"
says what flows through it. Results whose shape depends on values need these values: they work in `nb.grad`, but not on
what differs between the calls of a function that is compiled by `nb.jit`. Functions that NumPy does not ask Tensors
about have a counterpart in `nbgrad.numpy`, which `nb.differentiable_source` uses in code that cannot be changed. Names
that mean the same function share a line.

The last column has the calls that are tested: `f` is the function, a letter an array. X, Q, U (below 1) and P
(positive) are real, of shape (3, 4); H has NaN; B holds booleans, J and K integers, C and D complex numbers of that
shape. Y has shape (4,), R and T too, of complex numbers; V, W (positive) and G (rising) have shape (5,); M, N, S
(symmetric) and E (complex) have shape (3, 3), A has (2, 3, 3).

"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for namespace, table in TABLES.items():
        module = NAMESPACES[namespace][0]
        public = public_names(module)
        parts.append(f"## `{namespace}`\n\n| function | derivative | remarks | checked as |\n|---|---|---|---|\n")
        lines: dict[str, str] = {}
        for name, row in table.items():
            if row.kind == "no arrays":
                continue
            value = named(module, name)
            others = [n for n in public if n not in table and named(module, n) is value]
            names = ", ".join(f"`{n}`" for n in sorted([name, *others], key=str.lower))
            state = KINDS[row.kind].format(name=name, remark=row.remark)
            remark = "" if row.remark in state else row.remark
            calls = "; ".join(f"`{call}`" for call in row.calls).replace("|", "\\|")
            lines[name.lower()] = f"| {names} | {state} | {remark} | {calls} |\n"
        parts.extend(lines[key] for key in sorted(lines))
        without = ", ".join(f"`{name}`" for name, row in sorted(table.items()) if row.kind == "no arrays")
        parts.append(f"\nTake no arrays, so that what they give is a constant of a computation: {without}.\n\n")
    return "".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(page())
    else:
        sys.stdout.write(page())
