"""The shape of the source: who may import whom, what an import must not load, and how long a file may be.

kernels <- graph/ir, graph/shapes, graph/primitives, graph/host <- graph <- compiler <- device <- runtime <- everything
that users call <- the command line.
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
LONGEST_FILE = 600
SHARED = {"nbgrad.errors", "nbgrad.config"}
CUDA = ("cuda", "cupy", "numba.cuda", "numba_cuda")
MAY_IMPORT_CUDA = ("nbgrad.device", "nbgrad.interop")
LAYERS = [
    ("nbgrad.kernels",),
    ("nbgrad.graph.ir", "nbgrad.graph.shapes", "nbgrad.graph.primitives", "nbgrad.graph.host"),
    ("nbgrad.graph",),
    ("nbgrad.compiler",),
    ("nbgrad.device",),
    ("nbgrad.runtime",),
    ("nbgrad",),
    ("nbgrad.nist", "nbgrad.info", "nbgrad.__main__"),
]
"""From the bottom up; a module belongs to the layer with the longest name that fits it."""


def sources() -> dict[str, Path]:
    """Every module of the package by its name once installed."""
    found: dict[str, Path] = {}
    for top, folder in (("nbgrad", ROOT / "nbgrad"), ("nbgrad.kernels", ROOT / "kernels")):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join([top, *[part for part in parts if part != "__init__"]])] = path
    return found


SOURCES = sources()


@cache
def imports(name: str) -> list[str]:
    """The modules that a module imports, wherever in its text it does."""
    return list(_imports(name))


def _imports(name: str) -> Iterator[str]:
    path = SOURCES[name]
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    for node in ast.walk(parsed(name)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *([node.module] if node.module else [])])
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                yield submodule if submodule in SOURCES else base


@cache
def parsed(name: str) -> ast.Module:
    """A module's syntax tree."""
    return ast.parse(SOURCES[name].read_text(encoding="utf-8"))


def inside(module: str, package: str) -> bool:
    """Whether a module is a package or lies in it."""
    return module == package or module.startswith(package + ".")


def layer(module: str) -> int:
    """The number of a module's layer, from the bottom."""
    fits = [(len(name), number) for number, names in enumerate(LAYERS) for name in names if inside(module, name)]
    return max(fits)[1]


def test_the_rule_sees_every_module() -> None:
    assert len(SOURCES) > 40
    assert layer("nbgrad.kernels.exponential") == 0
    assert layer("nbgrad.graph.primitives") == 1
    assert layer("nbgrad.graph.simplify") == 2
    assert layer("nbgrad.numpy.ufuncs") == layer("nbgrad.tensor") == 6
    assert "nbgrad.compiler.scalars" in set(imports("nbgrad.compiler.emit"))
    assert "nbgrad.graph.ir" in set(imports("nbgrad.runtime.program"))


def test_imports_point_downwards() -> None:
    wrong = {
        name: targets
        for name in SOURCES
        if (targets := [t for t in imports(name) if inside(t, "nbgrad") and t not in SHARED and layer(t) > layer(name)])
    }
    assert not wrong, f"modules import what stands above them: {wrong}"


def test_kernels_import_nothing_of_nbgrad_but_kernels() -> None:
    kernels = [name for name in SOURCES if inside(name, "nbgrad.kernels")]
    assert len(kernels) > 20
    wrong = [
        (name, target)
        for name in kernels
        for target in imports(name)
        if inside(target, "nbgrad") and not inside(target, "nbgrad.kernels")
    ]
    assert not wrong


def test_cuda_packages_are_imported_in_few_places() -> None:
    users = {name for name in SOURCES for target in imports(name) if any(inside(target, package) for package in CUDA)}
    assert users, "the rule sees no import of CUDA"
    wrong = [name for name in users if not name.startswith(MAY_IMPORT_CUDA)]
    assert not wrong


def test_modules_open_with_a_docstring_and_end_in_time() -> None:
    silent = [name for name in SOURCES if not ast.get_docstring(parsed(name))]
    assert not silent, f"modules without a docstring: {silent}"
    lengths = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in SOURCES.items()}
    wrong = {name: length for name, length in lengths.items() if length > LONGEST_FILE}
    assert not wrong, f"modules of more than {LONGEST_FILE} lines: {wrong}"


def fresh(code: str, **environment: str) -> str:
    """What a new Python process prints."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_import_nbgrad_is_light() -> None:
    heavy = ["numba", "scipy", "matplotlib", "cuda", "setuptools"]
    assert fresh(f"import sys, nbgrad; print([name for name in {heavy} if name in sys.modules])") == "[]"


def test_a_gradient_that_was_compiled_before_needs_neither_numba_nor_scipy(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np, nbgrad as nb;"
        "print(float(nb.grad(lambda x: np.sum(np.sin(x) ** 2))(np.array([0.25]))[0]),"
        "'numba' in sys.modules, 'scipy' in sys.modules)"
    )
    folder = str(tmp_path / "cache")
    first = fresh(code, NBGRAD_CACHE_DIR=folder).split()
    second = fresh(code, NBGRAD_CACHE_DIR=folder).split()
    # sin(0.5), to 16 digits.
    assert float(first[0]) == float(second[0]) == pytest.approx(0.479425538604203, rel=1e-15)
    assert second[1:] == ["False", "False"]


def test_work_on_the_processor_loads_nothing_of_devices() -> None:
    code = (
        "import sys, numpy as np, nbgrad as nb;"
        "nb.jit(nb.grad(lambda x: np.sum(np.sort(x) @ np.ones(3))))(np.ones(3));"
        "nb.nn.Dense(3, 2)(nb.Tensor(np.ones((1, 3), np.float32))).asnumpy();"
        "print([name for name in sys.modules if name.startswith(('nbgrad.device.', 'nbgrad.cuda', 'cuda'))])"
    )
    assert fresh(code) == "[]"
