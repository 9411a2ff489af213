"""Object code that comes with the package, in shipped_objects.txt: the native functions of the runtime.

In: a function's section in shipped.ll, its module, and the layout of Python's objects. Out: its object code, if the
file has it, the machine can run it and it is not out of date. Called by nbgrad/runtime/words.py, and by
nbgrad/precompile.py, which writes the file.

These functions are the same in all programs, and making their code takes longer than all the rest of a first small
gradient. They move words and call addresses, so that code for any x86-64 is as good as code for this one. Elsewhere,
and where sources or layouts differ, they are compiled like all other code. Each line has a digest of the sources that
the code is made from, which is part of the symbol of its entry too, and the code in base64.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import sys
from functools import cache
from pathlib import Path

from . import shipped

FILE = Path(__file__).resolve().with_name("shipped_objects.txt")
TRIPLE, CPU = "x86_64-unknown-linux-gnu", "x86-64"


def name_of(section: str, module: str, layout: dict[str, int]) -> str:
    """The digest of what a function's code is made from."""
    whole = "\0".join([section, shipped.digest(module), *[f"{name} {offset}" for name, offset in layout.items()]])
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


def find(section: str, module: str, layout: dict[str, int]) -> tuple[str, bytes] | None:
    """The symbol of a function's entry and its object code, if they are here for this machine."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    try:
        name = name_of(section, module, layout)
    except OSError:  # no sources
        return None
    found = _objects().get(name)
    return None if found is None else (f"exported.{name}", base64.b64decode(found))


@cache
def _objects() -> dict[str, str]:
    """The object code of each function in the file, by what it is made from."""
    try:
        lines = FILE.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return {}
    return dict(line.split() for line in lines if not line.startswith("#") and len(line.split()) == 2)


def written(codes: dict[str, bytes]) -> str:
    """The text of the file, for object code by its name."""
    lines = [f"{name} {base64.b64encode(code).decode()}" for name, code in codes.items()]
    return "\n".join(["# Object code, made by `python -m nbgrad.precompile`. Do not edit.", *lines, ""])
