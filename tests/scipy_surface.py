"""The table of SciPy's functions, and how far each one takes recorded values: `python -m tests.scipy_surface --write`
makes docs/scipy.md of it.

scipy_rows.py and scipy_solver_rows.py say what is known of each name. test_scipy_surface.py checks that no name is
missing, that the rows with calls tell the truth, and that the page is current.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from . import scipy_rows as rows
from . import scipy_solver_rows as more

PAGE = Path(__file__).parent.parent / "docs" / "scipy.md"
NAMESPACES: dict[str, dict[str, str]] = {
    "scipy.special": rows.SPECIAL,
    "scipy.linalg": rows.LINALG,
    "scipy.linalg.lapack": rows.LAPACK,
    "scipy.fft": rows.FFT,
    "scipy.signal": rows.SIGNAL,
    "scipy.ndimage": rows.NDIMAGE,
    "scipy.interpolate": more.INTERPOLATE,
    "scipy.integrate": more.INTEGRATE,
    "scipy.optimize": more.OPTIMIZE,
    "scipy.sparse": more.SPARSE,
    "scipy.sparse.linalg": more.SPARSE_LINALG,
    "scipy.spatial": more.SPATIAL,
    "scipy.spatial.distance": more.DISTANCE,
    "scipy.stats": more.STATS,
    "scipy.cluster.vq": more.CLUSTER,
    "scipy.cluster.hierarchy": more.HIERARCHY,
}
KINDS = {
    "plain": "yes, by `import scipy` alone",
    "source": "in `differentiable_source`",
    "distribution": "in `differentiable_source`",
    "density": "in `differentiable_source`",
    "discrete": "in `differentiable_source`",
}
"""What the page says of each kind that works."""
METHODS = {
    "distribution": ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf", "ppf", "isf"),
    "density": ("logpdf", "pdf"),
    "discrete": ("logpmf", "pmf", "cdf", "sf"),
}


def _line(seed: int, count: int, low: float, high: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    steps = np.linspace(low, high, count) + rng.uniform(-0.2, 0.2, count) * (high - low) / count
    return rng.permutation(steps)


def _samples() -> dict[str, np.ndarray]:
    m = _line(3, 9, -1.0, 1.3).reshape(3, 3) + 2 * np.eye(3)
    return {
        "A": _line(1, 12, -1.9, 2.1).reshape(3, 4),
        "B": np.array([[0.0, 0.3, -0.2, 0.4, 0.1], [3.0, 3.4, 2.9, 3.1, 3.3], [0.2, -0.4, 0.3, 0.2, 0.0]]),
        "D": np.array([[0.4, 1.7, 2.6, -0.8], [0.3, 2.1, 3.8, 1.4]]),
        "D2": np.array([[0.5, 0.7], [1.4, 1.1], [2.3, 1.6]]),
        "H": _line(4, 4, -0.9, 0.8),
        "K": np.array([0, 1, 3, 2, 4]),
        "L": _line(5, 16, -1.4, 1.7),
        "M": m,
        "N": _line(6, 9, -1.2, 1.0).reshape(3, 3),
        "P": _line(7, 12, 0.3, 2.4).reshape(3, 4),
        "R": np.array([0.2, 0.9, 1.6, 2.7, 3.5]),
        "S": m @ m.T + np.diag([0.1, 0.5, 1.3]),
        "U": np.array([0.32, 0.81, 0.17, 0.55, 0.68]),
        "V": _line(8, 5, -1.3, 1.5),
        "V3": np.array([0.7, -1.2, 0.4]),
        "W": _line(9, 5, 0.4, 1.8),
        "W4": np.array([0.5, 0.9, 1.3, 2.0]),
        "Z": np.array([0.6, 1.1, 0.3, 1.7]),
    }


SAMPLES = _samples()


class Row(NamedTuple):
    """The facts about one name: the kind, sample calls or parameters, and a remark."""

    kind: str
    calls: tuple[str, ...]
    remark: str


def _rows(table: dict[str, str]) -> dict[str, Row]:
    found: dict[str, Row] = {}
    for kind, text in table.items():
        joined = re.sub(r"\n +", " ", text.strip())
        for line in [joined.replace("\n", " ")] if kind == "constant" else joined.splitlines():
            names, _, rest = (line, "", "") if kind == "constant" else line.partition(":")
            calls, _, remark = rest.strip().partition(" | ")
            parts = tuple([call.strip() for call in calls.split("; ")]) if kind in ("plain", "source") else (calls,)
            for name in names.split():
                assert name not in found, f"{name} has two rows"
                found[name] = Row(kind, () if kind in ("constant", "no") else parts, calls if kind == "no" else remark)
    return found


TABLES = {namespace: _rows(table) for namespace, table in NAMESPACES.items()}


def module_of(namespace: str) -> ModuleType:
    """A module of SciPy."""
    return import_module(namespace)


def named(namespace: str, name: str) -> Any:
    """The object that a namespace has under a name, also a deprecated one; None if nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(module_of(namespace), name, None)


def public_names(namespace: str) -> list[str]:
    """The functions, classes and distributions of a namespace, without exceptions and submodules."""
    module = module_of(namespace)
    found: list[str] = []
    for name in getattr(module, "__all__", []):
        value = named(namespace, name)
        error = isinstance(value, type) and issubclass(value, BaseException)
        if not name.startswith("_") and callable(value) and not isinstance(value, ModuleType) and not error:
            found.append(name)
    return found


def variables(call: str) -> list[str]:
    """The sample arrays that a call uses."""
    names = {node.id for node in ast.walk(ast.parse(call)) if isinstance(node, ast.Name)}
    return sorted(names & SAMPLES.keys())


def function_of(namespace: str, name: str, call: str) -> Callable[..., Any]:
    """A sample call as a function of the arrays of floats that it uses, with globals of its own."""
    used = [one for one in variables(call) if SAMPLES[one].dtype.kind == "f"]
    scope = {
        "np": np,
        "f": named(namespace, name),
        "K": SAMPLES["K"],
        "sparse": module_of("scipy.sparse"),
        "__name__": "rows_of_scipy",
    }
    exec(f"def function({', '.join(used)}):\n    return {call}", scope)
    return scope["function"]


HEAD = """# SciPy's functions on recorded values

Written by `python -m tests.scipy_surface --write` from the tables in `tests/scipy_rows.py` and
`tests/scipy_solver_rows.py`. The test `tests/test_scipy_surface.py` walks SciPy for its public functions and checks
that none is missing here, that calls give SciPy's values, and that their derivatives agree with differences of SciPy
in both modes; those of ufuncs and of forms of nbgrad's own to second order, too.

SciPy's ufuncs take recorded values as they are. All other functions do so in code that `nb.differentiable_source` runs,
which needs no option for that: a call whose arguments hold no recorded value goes to SciPy itself; other calls go to a
form of nbgrad's own, or to SciPy's Python code with nbgrad's NumPy. Objects that SciPy made of plain arrays (splines,
frozen distributions) may be used there, too. What ends in compiled code is an error that names the function:
`nb.primitive` gives it a derivative.

```python
>>> import numpy as np, nbgrad as nb, scipy.ndimage
>>> moved = lambda image, step: np.sum(scipy.ndimage.shift(image, step, mode="nearest") ** 2)
>>> nb.grad(nb.differentiable_source(moved), 1)(np.array([0.0, 1.0, 3.0, 2.0, 0.0]), 0.25).round(4)
np.float64(-0.9416)

```

The last column has the calls that are tested: `f` is the function, the other letters are arrays (`SAMPLES` in
`tests/scipy_surface.py`). Functions that are not in these tables give integers, truth values, plain constants such as
windows and filters, or graphs, and belong to the constants of a computation.

"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for namespace, table in TABLES.items():
        parts.append(f"## `{namespace}`\n\n")
        lines: dict[tuple[Any, ...], list[str]] = {}
        for name, row in table.items():
            if row.kind in KINDS:
                lines.setdefault((row.kind, row.calls, row.remark), []).append(name)
        if lines:
            parts.append("| functions | works | remarks | checked as |\n|---|---|---|---|\n")
        for (kind, calls, remark), names in lines.items():
            shown = "; ".join(f"`{call}`" for call in calls).replace("|", "\\|")
            if kind in METHODS:
                remark = f"{', '.join(METHODS[kind])} by all parameters"
                shown = f"shape parameters {calls[0]}" if calls[0] else "location and scale"
            parts.append(f"| {', '.join(f'`{n}`' for n in sorted(names))} | {KINDS[kind]} | {remark} | {shown} |\n")
        reasons: dict[str, list[str]] = {}
        for name, row in table.items():
            if row.kind == "no":
                reasons.setdefault(row.remark, []).append(name)
        if reasons:
            parts.append("\n| not for recorded values | why |\n|---|---|\n")
            parts += [f"| {', '.join(f'`{n}`' for n in sorted(names))} | {why} |\n" for why, names in reasons.items()]
        constants = sorted(name for name, row in table.items() if row.kind == "constant")
        if constants:
            parts.append(f"\nConstants of a computation: {', '.join(f'`{name}`' for name in constants)}.\n")
        parts.append("\n")
    return "".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    if "--write" in sys.argv:
        PAGE.write_text(page())
    else:
        sys.stdout.write(page())
