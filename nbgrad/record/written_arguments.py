"""Arguments that a function writes to: its caller's arrays see it, as they would without nbgrad.

In: the Tensors that stand for a caller's arrays while a function is recorded. Out: those that were written to, and the
values for the arrays behind them; an error at the user's line where an array shares memory with another argument (the
gradient tells arguments apart, so that no value would be right), or is read-only. Called by arguments.py and
vmap.py, and where a compiled function is recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, TracedValueError
from ..graph.ir import Node, constant, on_host
from .shared_memory import share_memory
from .tensor import Tensor
from .zero_dimensional import ZeroDimensional

_new = object.__new__


class Callers(dict[Node, tuple[Tensor, Any]]):
    """By node: the Tensor that a function got, and the caller's ndarray or Tensor that it stands for."""

    __slots__ = ()

    def lend(self, node: Node, value: Any) -> Tensor:
        """The Tensor of a node, which stands for a caller's array."""
        tensor = _new(Tensor)
        tensor._node = node
        if not node.shape and type(value) in (np.ndarray, ZeroDimensional):
            tensor.__class__ = ZeroDimensional
        self[node] = tensor, value
        return tensor

    def behind(self, tensor: Tensor) -> Any:
        """The caller's ndarray or Tensor that a Tensor stands for, if it is one."""
        return next((value for known, value in self.values() if known is tensor), None)

    def check_write(self, node: Node) -> None:
        """Raise if the array behind a node, which the function writes to, must not be written to.

        Raises
        ------
        ArgumentError
            If it shares memory with another argument, or is read-only.
        """
        check_store(self[node][1], [other for known, (_, other) in self.items() if known is not node])

    def written(self) -> list[tuple[Node, Any]]:
        """The writes of the function: each new node, and the caller's array for it."""
        return [(tensor._node, value) for node, (tensor, value) in self.items() if tensor._node is not node]

    def changed(self) -> list[Node]:
        """The nodes of arrays that the function has written to."""
        return [node for node, (tensor, _) in self.items() if tensor._node is not node]

    def stand_for(self, originals: dict[int, Any]) -> None:
        """Let copies stand for the arrays that they were made of, which are given by the copies' ids."""
        for node, (tensor, value) in self.items():
            self[node] = tensor, originals.get(id(value), value)


def check_store(value: Any, others: Sequence[Any]) -> None:
    """Raise if an argument that a function writes to is read-only, or shares memory with another one.

    Raises
    ------
    ArgumentError
    """
    if isinstance(value, np.ndarray) and not value.flags.writeable:
        message = f"The function writes to an argument of shape {value.shape} that is read-only. Pass a copy of it."
        raise ArgumentError(message)
    for other in others:
        if share_memory(value, other):
            message = (
                f"The function writes to an argument of shape {tuple(value.shape)} that shares memory with another "
                "one. Derivatives tell arguments apart: pass a copy of one of them."
            )
            raise ArgumentError(message)


def store(value: Any, result: Any) -> None:
    """Write a result to the caller's ndarray or Tensor.

    Raises
    ------
    TracedValueError
        If the result belongs to another function that is being recorded, and the array is an ndarray.
    """
    if isinstance(value, Tensor):
        node = result._node if isinstance(result, Tensor) else constant(np.asarray(result))
        value._replace(node)
    elif isinstance(result, Tensor):
        message = (
            f"The function writes a recorded value to its argument, an ndarray of shape {value.shape}, which would be "
            "cut off without notice. Pass a Tensor, or a copy of the array made by np.array of nbgrad.numpy."
        )
        raise TracedValueError(message)
    else:
        np.copyto(value, on_host(result))
