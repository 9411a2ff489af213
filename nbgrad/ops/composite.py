"""MindSpore's older module `ops.composite`: everything that `nbgrad.ops` has, under a second address.

In: a name. Out: its value in `nbgrad.ops`. Called by ported scripts (`from nbgrad.ops import composite as C`).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_ops = import_module("..", __name__)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_ops, name)


def __dir__() -> list[str]:
    return dir(_ops)
