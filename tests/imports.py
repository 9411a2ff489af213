"""Who imports whom in nbgrad: read from the text of every module, wherever in it an import stands.

In: the sources. Out: `arrows`, module -> the modules of nbgrad that it imports; `dynamic`, the modules that import by a
name that is computed. An import inside a function, under `TYPE_CHECKING`, or by `import_module("name")` counts like one
at the top. All is read at the first call, not where tests are collected. Called by test_import_rules.py.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def sources() -> dict[str, Path]:
    """Every module of the package by its name once installed."""
    found: dict[str, Path] = {}
    for top, folder in (("nbgrad", ROOT / "nbgrad"), ("nbgrad.kernels", ROOT / "kernels")):
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            found[".".join([top, *[part for part in parts if part != "__init__"]])] = path
    return found


SOURCES = sources()
COMPUTED = "a computed name"


@cache
def trees() -> dict[str, ast.Module]:
    """The text of each module, parsed."""
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in SOURCES.items()}


def _absolute(package: str, level: int, name: str | None) -> str:
    """The full name of `name` with so many dots in front, in a package."""
    above = package.split(".")[: len(package.split(".")) - level + 1] if level else []
    return ".".join([*above, *([name] if name else [])])


def _name(function: ast.expr) -> str:
    """The last part of a function's name."""
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _imports(name: str, tree: ast.Module) -> Iterator[str]:
    """The modules that a module imports; `COMPUTED` for a name that its text does not tell."""
    package = name if SOURCES[name].stem == "__init__" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(package, node.level, node.module)
            for alias in node.names:
                submodule = f"{base}.{alias.name}"
                yield submodule if submodule in SOURCES else base
        elif isinstance(node, ast.Call) and _name(node.func).endswith("import_module"):
            wanted = node.args[0]
            if isinstance(wanted, ast.Constant):
                text = str(wanted.value)
                anchor = name if len(node.args) > 1 and ast.unparse(node.args[1]) == "__name__" else package
                level = len(text) - len(text.lstrip("."))
                yield _absolute(anchor, level, text.lstrip(".")) if level else text
            else:
                yield COMPUTED


@cache
def imports() -> dict[str, list[str]]:
    """The modules that each module imports, not only those of nbgrad."""
    return {name: list(_imports(name, tree)) for name, tree in trees().items()}


@cache
def arrows() -> dict[str, set[str]]:
    """The modules of nbgrad that each module imports."""
    return {
        name: {target for target in targets if target in SOURCES and target != name}
        for name, targets in imports().items()
    }


def dynamic() -> set[str]:
    """The modules that import by a name that is computed."""
    return {name for name, targets in imports().items() if COMPUTED in targets}


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other, by Tarjan's algorithm (SIAM J. Comput. 1, 1972)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    waiting: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        waiting.append(name)
        for target in sorted(graph.get(name, ())):
            if target not in number:
                visit(target)
                lowest[name] = min(lowest[name], lowest[target])
            elif target in waiting:
                lowest[name] = min(lowest[name], number[target])
        if lowest[name] == number[name]:
            at = waiting.index(name)
            group = waiting[at:]
            del waiting[at:]
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(graph):
        if name not in number:
            visit(name)
    return found
