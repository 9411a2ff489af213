"""Random numbers that are drawn while a compiled function is recorded, and then stay what they are.

In: the function, and the leaves of its arguments. Out: a `FrozenDrawWarning` if a generator of NumPy's or of Python's
has drawn meanwhile: the global ones, those that the function names, and those among its arguments. Called by jit.py.
"""

from __future__ import annotations

import inspect
import pickle
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType, MethodType
from typing import Any

from ..errors import FrozenDrawWarning, is_installed, users_line
from ..transforms.arguments import name_of
from .frozen_arrays import named_values

MOST_FUNCTIONS = 100
"""Functions in which generators are looked for."""
_PACKAGE = f"{__name__.partition('.')[0]}."


@contextmanager
def watched_draws(fn: Callable[..., Any], leaves: Sequence[Any]) -> Iterator[None]:
    """A block that records a function, after which draws are told."""
    before = _states(fn, leaves)
    yield
    after = _states(fn, leaves)
    drawn = [name for name, state in before.items() if after.get(name, state) != state]
    if not drawn:
        return
    message = (
        f"{name_of(fn)}() has drawn random numbers by {drawn[0]} while jit recorded it: later calls have the same "
        "ones. Draw them outside and pass them, or take nb.Generator and the random functions of nb.ops."
    )
    filename, number, module = users_line() or ("<unknown>", 0, "")
    warnings.warn_explicit(message, FrozenDrawWarning, filename, number, module or None)


def _states(fn: Callable[..., Any], leaves: Sequence[Any]) -> dict[str, Any]:
    """The states of the generators that the function may draw from, by name."""
    found: dict[str, Any] = {}
    if threading.active_count() == 1:  # otherwise, other threads may have drawn
        if "random" in sys.modules:
            found["random"] = sys.modules["random"].getstate()
        if "numpy.random" in sys.modules:
            found["numpy.random"] = pickle.dumps(sys.modules["numpy.random"].get_state(legacy=False))
    given = [(f"an argument of type {type(leaf).__name__}", leaf) for leaf in leaves]
    for name, value in (*_named(fn, set()), *given):
        state = _state_of(value)
        if state is not None:
            found[name] = state
    return found


def _named(fn: Any, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """The values that a function names, that functions do which it names, and that are attributes of its object."""
    seen.add(id(fn))
    owner = getattr(inspect.unwrap(fn), "__self__", None)
    found = [*named_values(fn), *[(f"self.{name}", value) for name, value in getattr(owner, "__dict__", {}).items()]]
    yield from found
    for _, value in found:
        is_new = isinstance(value, FunctionType | MethodType) and id(value) not in seen and len(seen) < MOST_FUNCTIONS
        if is_new and not is_installed(value.__code__.co_filename) and not str(value.__module__).startswith(_PACKAGE):
            yield from _named(value, seen)


def _state_of(value: Any) -> bytes | None:
    """The state of a generator; None for other values."""
    kind = type(value)
    if any(base.__module__.startswith("numpy.random") for base in kind.__mro__):
        bits = getattr(value, "bit_generator", None) or getattr(value, "_bit_generator", None)
        return None if bits is None else pickle.dumps(bits.state)
    return pickle.dumps(value.getstate()) if kind.__module__ == "random" and hasattr(value, "getstate") else None
