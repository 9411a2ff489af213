"""Object code that comes with the package: the native functions of the runtime, and elementary functions.

In: a function's section in shipped.ll, its module, and the layout of Python's objects; or an elementary function's IR,
and the features of the CPU. Out: its object code, if a file has it, the machine can run it and it is not out of date.
Called by nbgrad/runtime/words.py and by cpu.py, and by nbgrad/precompile.py, which writes the files.

These functions are the same in all programs, and making their code takes longer than all the rest of a first small
gradient. The runtime's, in shipped_objects.txt, move words and call addresses, so that code for any x86-64 is as good
as code for this one. Elementary functions, in shipped_scalars.txt, are there for CPUs with vectors of 256 bits and for
those with vectors of 512 (x86-64-v3 and -v4). Elsewhere, and where sources or layouts differ, they are compiled like
all other code. Each line has a digest of the sources that the code is made from, which is part of the symbol of its
entry too, and the code, compressed, in base64.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import sys
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from . import cache as code_cache
from . import shipped

FILE = Path(__file__).resolve().with_name("shipped_objects.txt")
SCALARS_FILE = FILE.with_name("shipped_scalars.txt")
TRIPLE, CPU = "x86_64-unknown-linux-gnu", "x86-64"
LEVELS = {
    "x86-64-v3": "+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe",
    "x86-64-v4": "+avx2,+bmi,+bmi2,+f16c,+fma,+lzcnt,+movbe,+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl",
}
"""The kinds of CPUs that there is code of elementary functions for, and the features that this code may use."""


def name_of(section: str, module: str, layout: dict[str, int]) -> str:
    """The digest of what a function's code is made from."""
    whole = "\0".join([section, shipped.digest(module), *[f"{name} {offset}" for name, offset in layout.items()]])
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


def find(section: str, module: str, layout: dict[str, int]) -> tuple[str, bytes] | None:
    """The symbol of a function's entry and its object code, if they are here for this machine."""
    try:
        name = name_of(section, module, layout)
    except OSError:  # no sources
        return None
    return _found(FILE, f"exported.{name}")


def cpu_features() -> str:
    """The features of the CPU that code is made for, also where it is one of these kinds by name."""
    return code_cache.cpu_features() or LEVELS.get(code_cache.cpu_name(), "")


def name_of_scalar(level: str, text: str) -> str:
    """The digest of what an elementary function's code is made from."""
    return hashlib.sha256(f"{level}\0{text}".encode()).hexdigest()[:32]


def find_scalar(symbol: str, text: str, features: str) -> tuple[str, bytes] | None:
    """The symbol of an elementary function's entry, which begins with `symbol`, and its object code for this CPU."""
    has = set(features.split(","))
    # Code for narrower vectors would look for wide ones elsewhere than its callers leave them.
    level = "x86-64-v4" if "+avx512f" in has else "x86-64-v3"
    if not has.issuperset(LEVELS[level].split(",")):
        return None
    return _found(SCALARS_FILE, f"{symbol}.{name_of_scalar(level, text)}")


def _found(file: Path, symbol: str) -> tuple[str, bytes] | None:
    """A symbol and its object code, if it is in a file and this is the system for it."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    text = _text(file)
    start = text.find(f"\n{symbol.rpartition('.')[2]} ".encode())
    if start < 0:
        return None
    code = text[text.index(b" ", start) : text.index(b"\n", start + 1)]
    return symbol, zlib.decompress(base64.b64decode(code))


@cache
def _text(file: Path) -> bytes:
    """A file; empty if there is none, or the end of it is missing."""
    try:
        text = file.read_bytes()
    except OSError:
        return b""
    return text if text.endswith(b"\n# end\n") else b""


def written(codes: Mapping[str, bytes]) -> str:
    """The text of a file, for object code by its name."""
    lines = [f"{name} {base64.b64encode(zlib.compress(code, 9)).decode()}" for name, code in codes.items()]
    return "\n".join(["# Object code, made by `python -m nbgrad.precompile`. Do not edit.", *lines, "# end", ""])
