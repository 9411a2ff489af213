"""NumPy's linear algebra under its names: `nbgrad.numpy.linalg` in place of `numpy.linalg`.

In: a name. Out: the function, by functions/table.py. Imported by users.
"""

from __future__ import annotations

from typing import Any

from numpy.linalg import LinAlgError as LinAlgError

from ..functions.table import function_in, names_in
from .drop_in import public


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    found = globals()[name] = public(function_in("linalg", name), ".linalg")
    return found


def __dir__() -> list[str]:
    return sorted(["LinAlgError", *names_in("linalg")])
