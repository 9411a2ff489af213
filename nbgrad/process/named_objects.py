"""Decorated functions are pickled as plain functions are: by their module and name.

In: an object that stands in a module under a name. Out: that name, for pickle. Called by jit.py, custom.py,
elementwise_functions.py, sparse_derivatives.py and plain_functions.py, whose objects take the place of the functions
that they hold: pickle would look for the function, find the object, and refuse. Pools of processes pickle what they
call.

Workers of Dask, Ray and joblib run another script, and these libraries send functions of `__main__` by their contents,
with cloudpickle. So an object of `__main__` carries both where that is loaded.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

_CLOUDPICKLES = ("cloudpickle", "joblib.externals.cloudpickle", "ray.cloudpickle")
_under_way: ContextVar[tuple[Any, ...]] = ContextVar("nbgrad_pickled_by_contents", default=())
"""The objects whose contents are being pickled, which may name themselves."""


class NamedObject:
    """An object that is pickled by its module and name, if it stands there; otherwise by its contents."""

    __slots__ = ()

    def with_functions(self, change: Callable[[Any], Any]) -> Any:
        """The object with changed functions in place of those that it holds; itself where none is to be changed, as
        those that run on plain arrays."""
        del change
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        """The name, or what to make a copy of."""
        name = name_in_module(self)
        if name is None or any(one is self for one in _under_way.get()):
            return name or super().__reduce_ex__(protocol)
        cloudpickle = next((sys.modules[one] for one in _CLOUDPICKLES if one in sys.modules), None)
        if cloudpickle is None or getattr(self, "__module__", "") != "__main__":
            return name
        token = _under_way.set((*_under_way.get(), self))
        try:
            contents = cloudpickle.dumps(_Contents(super().__reduce_ex__(protocol)))
        except Exception:
            return name  # its contents cannot be sent, but a process that knows the name needs none
        finally:
            _under_way.reset(token)
        return _of_main, (name, type(self), contents)


class _Contents:
    """An object to pickle by its contents."""

    def __init__(self, reduced: Any) -> None:
        self.reduced = reduced

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.reduced


def _of_main(name: str, kind: type, contents: bytes) -> Any:
    """The object of this name in `__main__`, or one with these contents where another script runs."""
    found: Any = sys.modules.get("__main__")
    for part in name.split("."):
        found = getattr(found, part, None)
    return found if type(found) is kind else pickle.loads(contents)


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
