"""Writes the type stubs that editors and type checkers read: `python -m tests.stubs --write`.

In: the tables of names, and the classes and functions as they are when nbgrad is imported. Out: `STUBS`, the text of
each .pyi file. Called by test_stubs.py, which compares them with the files, and from the command line after a function
or a method was added. Doors (`nbgrad.numpy`, `ops`, `nn`) find their names by tables, and Tensor gets its members from
the modules above it, so that a type checker sees neither without stubs.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import nbgrad as nb
from nbgrad import nn, ops
from nbgrad.functions import table
from nbgrad.mint.named_modules import homes
from nbgrad.numpy import OWN
from nbgrad.record.tensor import Tensor

ROOT = Path(__file__).resolve().parents[1]
WRITTEN_BY = '"""Written by `python -m tests.stubs --write`."""\n\n'
_BUILTINS = ("bool", "bytes", "dict", "float", "int", "list", "object", "slice", "str", "tuple", "type")
_KNOWN = re.compile(rf"(?:{'|'.join(_BUILTINS)}|None|Any|Tensor|Node|np\.ndarray|memoryview|[\s|,\[\].])+")


# ----- Members of Tensor -----


def _annotation(annotation: Any) -> str:
    """An annotation as the stub can have it: names of builtins are those of methods there."""
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "Any")
    if not _KNOWN.fullmatch(text):
        return "Any"
    return re.sub(rf"\b({'|'.join(_BUILTINS)})\b", r"_\1", text)


def signature(function: Callable[..., Any], name: str, of: Callable[..., Any] | None = None) -> str:
    """A line for a method; its parameters may be those of a function that it hands the Tensor to."""
    found = inspect.signature(function if of is None else of)
    parameters = list(found.parameters.values())
    if of is not None:
        if not parameters or parameters[0].kind is inspect.Parameter.VAR_POSITIONAL:
            return f"def {name}(self, *args: Any, **kwargs: Any) -> Any: ..."
        parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD), *parameters[1:]]
    words: list[str] = []
    by_name = False
    for place, one in enumerate(parameters):
        stars = {one.VAR_POSITIONAL: "*", one.VAR_KEYWORD: "**"}.get(one.kind, "")
        if one.kind is one.KEYWORD_ONLY and not by_name and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
            words.append("*")
        by_name |= one.kind is one.KEYWORD_ONLY
        default = "" if one.default is one.empty else " = ..."
        plain = one.name == "self" and place == 0
        words.append(stars + one.name + ("" if plain else f": {_annotation(one.annotation)}{default}"))
        after = parameters[place + 1 : place + 2]
        if one.kind is one.POSITIONAL_ONLY and (not after or after[0].kind is not one.POSITIONAL_ONLY):
            words.append("/")
    if words == ["self"] or (name.startswith("__") and len(words) == 2 and "*" not in words[1]):
        words.append("/")  # Python calls operators by position
    result = "None" if name == "__init__" else _annotation(found.return_annotation)
    return f"def {name}({', '.join(words)}) -> {result}: ..."


def _function_behind(name: str, member: Any) -> Callable[..., Any] | None:
    """The function that a method hands its Tensor to, if the method takes whatever that function takes."""
    parameters = inspect.signature(member).parameters
    if list(parameters) != ["self", "args", "kwargs"]:
        return None
    original = getattr(np, name, None)
    own = table.find(original) if original is not None and "numpy" in (member.__doc__ or "") else None
    if name.removesuffix("_") in ops.IN_PLACE.split():
        name = name.removesuffix("_")
    return own or getattr(ops, ops.OTHER_METHODS.get(name, name))


def tensor_stub() -> str:
    """The stub of the class Tensor."""
    lines: list[str] = []
    for name, member in vars(Tensor).items():
        if isinstance(member, staticmethod):
            lines += ["@staticmethod", signature(member.__func__, name)]
        elif isinstance(member, property):
            assert member.fget is not None
            lines += ["@property", signature(member.fget, name)]
            if member.fset is not None:
                lines += [f"@{name}.setter", f"def {name}(self, value: Any) -> None: ..."]
        elif inspect.isfunction(member):
            lines.append(signature(member, name, _function_behind(name, member)))
        elif name.startswith(("__array_p", "__pandas_")):
            lines.append(f"{name}: {_annotation(type(member))}")
    body = "\n".join(f"    {line}" for line in lines)
    used = [name for name in _BUILTINS if re.search(rf"\b_{name}\b", body) or name in ("dict", "int", "tuple")]
    aliases = ", ".join(f"{name} as _{name}" for name in used)
    return (
        f"{WRITTEN_BY}from builtins import {aliases}\nfrom collections.abc import Callable\n"
        "from typing import Any, TypeVar\n\nimport numpy as np\n\nfrom ..graph.ir import Node\n\n"
        "class Tensor:\n    __slots__ = ()\n    _node: Node\n    _base: _tuple[Tensor, Any]\n"
        "    _memory: Any\n"
        "    _views: _dict[_int, Any]\n"
        "    _operates_in_place: _bool\n"
        f"    __hash__: Any\n{body}\n\n"
        "node_slot: Callable[[Tensor], Node]\n\n"
        'Part = TypeVar("Part", bound=type[Tensor])\n\ndef part_of_tensor(part: Part) -> Part: ...\n'
    )


# ----- Doors -----


def names_stub(modules: Mapping[str, str], others: str = "") -> str:
    """The stub of a package whose names are found by a table: module -> names."""
    lines = [f"from {module} import {name} as {name}" for module, names in modules.items() for name in names.split()]
    return WRITTEN_BY + "\n".join(lines) + "\n" + others


def _alias(home: table.Entry, name: str) -> str:
    """The line that gives a function of the table its name."""
    line = f"from ..functions.{home.module} import {home.name} as {home.name}\n"
    return line if home.name == name else f"{line}{name} = {home.name}\n"


def numpy_stub() -> str:
    """The stub of `nbgrad.numpy`: its own functions, and NumPy's names for all else."""
    lines = ""
    known = {"linalg", "fft", "random"}
    for name in table.names_of_functions():
        home = table.home_of(name)
        assert home is not None
        lines += _alias(home, name)
        known.add(name)
    known |= {name for names in OWN.values() for name in names.split()}
    rest = [name for name in dir(nb.numpy) if name not in known and not name.startswith("_") and hasattr(np, name)]
    lines += "".join(f"from numpy import {name} as {name}\n" for name in rest)
    lines += "from . import fft as fft\nfrom . import linalg as linalg\nfrom . import random as random\n"
    own = {f".{module}": names for module, names in OWN.items()}
    return names_stub(own, lines + "from ..transforms.custom import stop_gradient as stop_gradient\n")


def _defined_in(path: str) -> set[str]:
    """The names of classes and functions that a file defines in its text."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}


def submodule_stub(name: str) -> str:
    """The stub of `nbgrad.numpy.linalg` or `fft`."""
    lines = "from numpy.linalg import LinAlgError as LinAlgError\n" if name == "linalg" else ""
    for function in table.names_in(name):
        home = table.home_of(f"{name}.{function}")
        assert home is not None
        lines += _alias(home, function)
    return WRITTEN_BY + lines


def ops_stub() -> str:
    """The stub of `nbgrad.ops`."""
    own = {f".{module}": names for module, names in ops.NAMES.items()}
    made = [name for name in ops.NAMES["class_forms"].split() if name not in _defined_in("nbgrad/ops/class_forms.py")]
    own[".class_forms"] = " ".join(name for name in ops.NAMES["class_forms"].split() if name not in made)
    classes = "".join(f"class {name}(Primitive): ...\n" for name in made)
    for module, names in ops.ELSEWHERE.items():
        own["." + module.removeprefix("nbgrad")] = names.replace("lgamma", "").strip()
    return names_stub(own, "\nlgamma = gammaln\n\n" + classes)


def door_stub(path: str) -> str:
    """The stub of a package of `nbgrad.mint`: its names from the modules of its table."""
    package = import_module(path)
    lines = ""
    for name, (module, original) in sorted(homes(package.TABLE).items()):
        lines += f"from {module} import {original} as {original}\n"
        lines += "" if name == original else f"{name} = {original}\n"
    for name in getattr(package, "MODULES", "").split():
        lines += f"from {path} import {name} as {name}\n"
    return WRITTEN_BY + lines


DOORS = {
    "nbgrad.mint": "nbgrad/mint/__init__.pyi",
    "nbgrad.mint.linalg": "nbgrad/mint/linalg.pyi",
    "nbgrad.mint.special": "nbgrad/mint/special.pyi",
    "nbgrad.mint.nn": "nbgrad/mint/nn/__init__.pyi",
    "nbgrad.mint.nn.functional": "nbgrad/mint/nn/functional.pyi",
}
STUBS: dict[str, Callable[[], str]] = {
    "nbgrad/record/tensor.pyi": tensor_stub,
    "nbgrad/numpy/__init__.pyi": numpy_stub,
    "nbgrad/numpy/fft.pyi": lambda: submodule_stub("fft"),
    "nbgrad/numpy/linalg.pyi": lambda: submodule_stub("linalg"),
    "nbgrad/ops/__init__.pyi": ops_stub,
    "nbgrad/nn/__init__.pyi": lambda: names_stub(
        {f".{module}": names for module, names in nn.NAMES.items()} | {".": "probability"}
    ),
    **{path: partial(door_stub, package) for package, path in DOORS.items()},
}
"""The files, and what makes their text."""


if __name__ == "__main__":
    for path, text in STUBS.items():
        if "--write" in sys.argv:
            (ROOT / path).write_text(text(), encoding="utf-8")
        elif (ROOT / path).read_text(encoding="utf-8") != text():
            sys.exit(f"{path} is out of date: python -m tests.stubs --write")
