"""MindSpore's inner names of the functions of `mint`: `ops.function.math_func.amax_ext`, `ops.auto_generate.bmm_ext`.

In: a name with `_ext`, `_view` or `_ext_view` at its end, which MindSpore's own `mint` imports under the name without
it. Out: the function of `nbgrad.mint`. Asked by the modules of mindspore_paths.py, after `nbgrad.ops`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_ENDS = ("_ext_view", "_view", "_ext")
_HOMES = ("mint", "mint.nn.functional", "mint.special", "mint.linalg")

__all__: list[str] = []


def __getattr__(name: str) -> Any:
    package = str(__package__).rpartition(".")[0]
    end = next((end for end in _ENDS if name.endswith(end)), None)
    for home in _HOMES if end else ():
        found = getattr(import_module(f"{package}.{home}"), name.removesuffix(str(end)), None)
        if found is not None:
            return found
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
