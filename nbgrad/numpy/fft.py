"""NumPy's Fourier transforms under its names: `nbgrad.numpy.fft` in place of `numpy.fft`.

In: a name. Out: the function, by functions/table.py. Imported by users.
"""

from __future__ import annotations

from typing import Any

from ..functions.table import function_in, names_in
from .drop_in import public


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    found = globals()[name] = public(function_in("fft", name), ".fft")
    return found


def __dir__() -> list[str]:
    return sorted([*names_in("fft")])
