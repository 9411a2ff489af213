"""The names of a package of `nbgrad.mint`, found by a table.

In: a table, module -> names. Out: the `__getattr__` and the `__dir__` of the package. Called by the packages. A module
is imported when one of its names is first used; `name=function` has another name in its module.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def homes(table: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Name -> (module, name there)."""
    found = {}
    for module, names in table.items():
        for word in names.split():
            name, _, original = word.partition("=")
            found[name] = module, original or name
    return found


def door(
    package: str, table: Mapping[str, str], globals_of: dict[str, Any], modules: str = ""
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The two functions of a package; `modules` are names of its submodules."""
    home = homes(table)
    inner = modules.split()

    def getattribute(name: str) -> Any:
        if name == "__all__":
            return listed()
        if name in inner:
            return import_module(f"{package}.{name}")
        if name not in home:
            message = f"{package} has no {name!r}"
            raise AttributeError(message)
        module, original = home[name]
        value = globals_of[name] = getattr(import_module(module), original)
        return value

    def listed() -> list[str]:
        return sorted({*home, *inner})

    return getattribute, listed
