"""IR that comes with the package: the scalar and special kernels as Numba compiled them once, in shipped.ll.

In: the name of a function. Out: its IR text, if the file has it and it is not out of date. Called by scalars.py and
lowering.py, which compile with Numba what is not found here. Written by `python -m nbgrad.precompile`.

The kernels of GPUs are in a file of their own, shipped_device.ll, so that programs without one never read it.

The files are text. Each function is a section with a line `;; name module row` above it, where `module` is the file of
kernels that it comes from and `row` a digest of the primitive's row in the table of scalar kernels. Lines `; digest
module hex` at the top tell the state of each of these files when the IR was made: the function counts only as long as
the row, the file, the files that it imports, and the code that lowers it are still the same. The IR depends neither on
the machine nor on Python's version; it can be read by the LLVM that wrote it and later ones.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from .cache import kernels_folder

HERE = Path(__file__).resolve().parent
FILE = HERE / "shipped.ll"
DEVICE_FILE = HERE / "shipped_device.ll"
KERNELS = "nbgrad.kernels."
LOWERING = ("lowering.py", "conversions.py")
"""Files of this folder that decide the form of the IR."""


def scalar_name(name: str, dtypes: Sequence[np.dtype[Any]], result: np.dtype[Any]) -> str:
    """The symbol of a primitive's IR function, which is the name of its section too."""
    return ".".join(["nbgrad", name, *[dtype.name for dtype in dtypes], result.name])


def function_name(function: Callable[..., Any], arguments: Sequence[str], result: str) -> str:
    """The name of the section of a function that is no primitive on scalars."""
    return f"{function.__module__}.{function.__qualname__}({','.join(arguments)}){result}"


def file_of(name: str) -> Path:
    """The file that a function, or those of a module, belong to."""
    return DEVICE_FILE if name.startswith(f"{KERNELS}gpu.") else FILE


def find(name: str) -> str | None:
    """The IR of a function; None if it is not in its file, or not made from the sources as they are now."""
    text = _text(file_of(name))
    start = text.find(f"\n;; {name} ")
    if start < 0:
        return None
    first = text.index("\n", start + 1)
    module, *made_of = text[start + 1 : first].split()[2:]
    if not _current(module) or made_of != [row(name)]:
        return None
    return text[first + 1 : text.index("\n;; ", first) + 1]


def row(name: str) -> str:
    """The digest of the row of a section's primitive in the table of scalar kernels; "-" for special kernels."""
    if "(" in name:
        return "-"
    table = _table()[0]
    start = table.find(f'\n    "{name.split(".")[1]}": ')
    text = re.split(r"\n(?=    [\"#])", table[start + 1 :], maxsplit=1)[0] if start >= 0 else ""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def _table() -> tuple[str, str]:
    """The table of scalar kernels, and the text after it in its file."""
    text = (kernels_folder() / "__init__.py").read_text(encoding="utf-8")
    _, _, rest = text.partition("\nSCALARS = {")
    table, _, rest = rest.partition("\n}\n")
    return table, rest


@cache
def _text(file: Path) -> str:
    """A file; empty if there is none for this LLVM."""
    try:
        text = file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""
    version = re.search(r"^; llvm (\d+)$", text, re.MULTILINE)
    known = version is not None and int(version[1]) <= llvm.llvm_version_info[0]
    return text if known and text.endswith("\n;; end\n") else ""


@cache
def _current(module: str) -> bool:
    try:
        return f"\n; digest {module} {digest(module)}\n" in _text(file_of(module))
    except OSError:
        return False


def forget() -> None:
    """Read the file and the sources anew."""
    for cached in (_text, _table, _current, digest):
        cached.cache_clear()


def stale() -> list[str]:
    """The modules and functions of the files that are out of date; a file's name if there is none for this LLVM."""
    found: list[str] = []
    for file in (FILE, DEVICE_FILE):
        modules = re.findall(r"^; digest (\S+) ", _text(file), re.MULTILINE)
        names = re.findall(r"^;; (\S+) ", _text(file), re.MULTILINE)
        found += [module for module in modules if not _current(module)]
        found += [name for name in names if find(name) is None]
        found += [] if modules else [file.name]
    return found


@cache
def digest(module: str) -> str:
    """The digest of all that a module's IR is made from: its source, that of kernels it imports, and of the lowering.

    Line endings do not count.
    """
    total = hashlib.sha256()
    for path in [*[HERE / name for name in LOWERING], *_sources(module)]:
        total.update(path.name.encode() + b"\0")
        data = _table()[1].encode() if path.name == "__init__.py" else path.read_bytes().replace(b"\r\n", b"\n")
        total.update(data + b"\0")
    return total.hexdigest()[:32]


def _sources(module: str) -> list[Path]:
    """A module's file, and those of the kernels that it needs, in order of their names."""
    folder = kernels_folder()
    found: set[Path] = set()
    own = folder.joinpath(*module.removeprefix(KERNELS).split(".")).with_suffix(".py")
    if not module.startswith(KERNELS):
        own = HERE.parents[1].joinpath(*module.split(".")).with_suffix(".py")
        # Native functions of the runtime may call those of native.py, and all are written in the language of words.py.
        found |= {own, own.with_name("native.py"), own.with_name("words.py")}
    # The table of scalar kernels counts row by row; these are its readers.
    todo = [folder / "__init__.py", folder / "intrinsics.py", *([own] if own not in found else [])]
    while todo:
        path = todo.pop()
        if path in found:
            continue
        found.add(path)
        if path.name != "__init__.py":
            text = path.read_text(encoding="utf-8")
            for dots, source, names in re.findall(r"^from (\.+)(\w*) import ([\w, ]*)", text, re.MULTILINE):
                above = path.parents[len(dots) - 1]
                todo += [above / f"{name.split()[0]}.py" for name in ([source] if source else names.split(","))]
    return sorted(found, key=lambda path: path.name)
