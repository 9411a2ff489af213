"""Decorated functions are pickled as plain functions are: by their module and name.

In: an object that stands in a module under a name. Out: that name, for pickle. Called by jit.py, custom.py,
elementwise_functions.py and sparse_derivatives.py, whose objects take the place of the functions that they hold: pickle
would look for the function, find the object, and refuse. Pools of processes pickle what they call.
"""

from __future__ import annotations

import sys
from typing import Any


class NamedObject:
    """An object that is pickled by its module and name, if it stands there; otherwise by its contents."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: Any) -> Any:
        """The name, or what to make a copy of."""
        return name_in_module(self) or super().__reduce_ex__(protocol)


def name_in_module(found: Any) -> str | None:
    """The name under which an object can be found in the module that it says it is of; None if it cannot."""
    module = sys.modules.get(getattr(found, "__module__", ""))
    if module is None:
        return None
    name: str = getattr(found, "__qualname__", "")
    there: Any = module
    for part in name.split("."):
        there = getattr(there, part, None)
    if there is found:
        return name
    return next((other for other, value in vars(module).items() if value is found), None)
