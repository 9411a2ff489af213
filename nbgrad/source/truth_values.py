"""Truth values in code that control_flow.py has rewritten: `and`, `or`, `not`, and the questions of branches and loops.

In: values, recorded ones among them, and functions for operands that may not be needed. Out: a recorded truth value, or
Python's. Called by statements.py, turned_loops.py and rewritten code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import TracedValueError
from ..graph.builders import reshape
from ..graph.ir import BOOL, elementwise
from ..graph.trace import current_trace, stands_for_many
from ..record.as_node import as_node
from ..record.journal import undone_writes
from ..record.tensor import Tensor

Thunk = Callable[[], Any]


class NotedConditions:
    """The guards and checks that the recording has noted so far."""

    def __init__(self) -> None:
        trace = current_trace()
        lists: Any = () if trace is None else (trace.guards, trace.checks)
        self._lengths = [(one, len(one)) for one in lists if one is not None]

    def forget_later(self) -> None:
        """Take back those that were noted since."""
        for one, length in self._lengths:
            del one[length:]


def is_recorded(value: Any) -> bool:
    """Whether a value is one element that stands for many."""
    return isinstance(value, Tensor) and value.size == 1 and stands_for_many(value._node)


def truth(value: Any, reason: str | None) -> bool:
    """The truth value that Python's statement goes on with; it becomes a guard of `jit`."""
    try:
        return bool(value)
    except TracedValueError:
        if reason is None:
            raise
        message = f"A branch or loop by a recorded value cannot be turned into cond or while_loop here: {reason}."
        raise TracedValueError(message) from None


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool | np.bool_) or (isinstance(value, Tensor) and value._node.dtype == BOOL)


def _logical(name: str, thunks: Sequence[Thunk], decides: bool) -> Any:
    value = thunks[0]()
    for thunk in thunks[1:]:
        if is_recorded(value) and _is_truth(value):
            with undone_writes() as journal:
                try:
                    other = thunk()
                except Exception:
                    other = None
            if not journal.arrays() and other is not None and _is_truth(other) and np.size(other) == 1:
                value = Tensor._of(elementwise(name, reshape(as_node(value), ()), reshape(as_node(other), ())))
                continue
        if truth(value, None) is decides:
            return value
        value = thunk()
    return value


def and_(*thunks: Thunk) -> Any:
    """`a and b and ...`."""
    return _logical("logical_and", thunks, decides=False)


def or_(*thunks: Thunk) -> Any:
    """`a or b or ...`."""
    return _logical("logical_or", thunks, decides=True)


def not_(value: Any) -> Any:
    """`not a`."""
    if not is_recorded(value):
        return not value
    node = value._node if _is_truth(value) else elementwise("not_equal", value._node, 0)
    return Tensor._of(elementwise("logical_not", node))
