"""Python numbers of Tensors: `x.item()`, `x.tolist()`, `float(x)` and `math.sin(x)` in code that is converted.

In: a Tensor, and the frame that asks. Out: numbers and lists of them. A value that is being differentiated would be cut
off from its gradient, which is an error, but for code that `differentiable_source` runs: there `float(x)` is a 0-d
Tensor, and so are these. As Python's numbers, they take the dtype of what they meet. Called by Tensor's methods, and
for `float`, `complex` and `math`.
"""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..graph.ir import make
from ..graph.trace import is_being_recorded
from ..runtime.evaluate import concrete

if TYPE_CHECKING:
    from ..record.tensor import Tensor


def _stays(tensor: Tensor, frame: FrameType) -> bool:
    """Whether a value stays a Tensor: it is recorded, and converted code asks, which has globals of its own kind."""
    node = tensor._node
    recorded = node.traced and node.dtype.kind in "fc" and frame.f_globals.__class__ is not dict
    return bool(recorded) and is_being_recorded(node)


def number(tensor: Tensor) -> Tensor:
    """The only element, as a Tensor that stands for a Python number."""
    element = tensor.reshape(-1)[0]
    wide = element.astype(np.complex128 if tensor._node.dtype.kind == "c" else np.float64)
    node = make("alias", (wide._node,))
    node.weak = True
    return type(element)._of(node)


def item(tensor: Tensor, position: tuple[Any, ...], frame: FrameType) -> Any:
    """The only element of a Tensor, or the one at a position."""
    if position:
        key = position if len(position) > 1 else next(iter(position))
        tensor = tensor[key] if isinstance(key, tuple) else tensor.ravel()[key]
    if tensor.size == 1 and _stays(tensor, frame):
        return number(tensor)
    return tensor._number("become a Python number by item()")


def tolist(tensor: Tensor, frame: FrameType) -> Any:
    """The value of a Tensor as nested lists."""
    if _stays(tensor, frame):
        return _nested(tensor)
    tensor._leaving("become a list", "Say that it is a constant by x.asnumpy().tolist() or nb.stop_gradient(x).")
    return concrete(tensor._node, "array").tolist()


def _nested(tensor: Tensor) -> Any:
    return [_nested(part) for part in tensor] if tensor.ndim else number(tensor)
