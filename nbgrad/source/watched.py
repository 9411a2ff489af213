"""Objects that a side of a branch, or a turn of a loop, must leave as they are while it is recorded.

In: functions and values. Out: `Watched`, which knows the attributes and elements of all objects that these refer to,
and puts them back; writes to Tensors are noted by the recording. Called by sides.py and turned_loops.py: a side that is
not taken in the end, and a turn that is recorded once for all turns, must have no effect on them.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..record.chosen_arrays import is_same_container
from ..record.tensor import Tensor

_MOST = 500
"""Objects that are watched."""
_MOST_BYTES = 1 << 20
"""Larger arrays from outside are not."""
_PLAIN = (Tensor, np.generic, np.dtype, int, float, complex, str, bytes, type, ModuleType, type(None))


class Watched:
    """The attributes and elements of objects.

    Examples
    --------
    >>> seen = [1]
    >>> watched = Watched([seen])
    >>> seen.append(2)
    >>> watched.restored(), seen
    ('a list', [1])
    """

    def __init__(self, roots: Iterable[Any]) -> None:
        self.known: list[tuple[Any, Any]] = []
        seen: set[int] = set()
        waiting = list(roots)
        for value in waiting:
            if isinstance(value, _PLAIN) or id(value) in seen:
                continue
            seen.add(id(value))
            if len(self.known) >= _MOST:
                break
            if isinstance(value, np.ndarray):
                if value.flags.writeable and value.nbytes <= _MOST_BYTES:
                    self.known.append((value, value.copy()))
            elif isinstance(value, FunctionType):
                waiting += [cell.cell_contents for cell in value.__closure__ or () if not is_empty(cell)]
            elif isinstance(value, MethodType):
                waiting += [value.__self__, value.__func__]
            elif isinstance(value, tuple):
                waiting += value
            elif type(value) in (list, dict, set):
                self.known.append((value, value.copy()))
                waiting += list(value.values()) if isinstance(value, dict) else list(value)
            elif isinstance(attributes := getattr(value, "__dict__", None), dict):
                self.known.append((value, dict(attributes)))
                waiting += list(attributes.values())

    def has(self, value: Any) -> bool:
        """Whether an object is among them."""
        return any(one is value for one, _ in self.known)

    def restored(self) -> str | None:
        """Put everything back; a word for what had changed, None if nothing had."""
        changed = None
        for value, before in self.known:
            if isinstance(value, np.ndarray):
                if value.tobytes() != before.tobytes():
                    value[...] = before
                    changed = changed or "an array from outside"
                continue
            now = value if type(value) in (list, dict, set) else value.__dict__
            if is_same_container(now, before):
                continue
            changed = changed or ("a " + type(value).__name__ if now is value else f"attributes of {_name(value)}")
            if isinstance(now, list):
                now[:] = before
            else:
                now.clear()
                now.update(before)
        return changed


def is_empty(cell: Any) -> bool:
    """Whether a variable of an outer function is not set."""
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return True
    return False


def _name(value: Any) -> str:
    return type(value).__name__
