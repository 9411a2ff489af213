"""Writing to Parameters: `assign`, `assign_add`, `assign_sub`.

In: a Parameter and a value. Out: the Parameter with its new value, which is returned as a Tensor too. Called by users
and optimizers. In a compiled function these are outputs that every call writes back.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..graph.builders import cast
from ..graph.ir import Node, broadcast, elementwise
from ..graph.shapes import broadcasts
from ..record.as_node import as_node
from ..record.tensor import Tensor
from ..tensors.parameter import Parameter
from .docstrings import documented


@documented
def assign(variable: Parameter, value: Any) -> Tensor:
    """Give a Parameter a new value.

    value : Tensor, ndarray or number
        In the Parameter's shape. Floats are converted to its precision; floats for integers, and integers that may not
        fit, are refused.
    -> Tensor
        The new value, in the Parameter's dtype.
    DtypeError : If `variable` is no Parameter, or the value would be cut off.
    ShapeError : If the value has another shape.
    ArgumentError : If a Python integer does not fit in the Parameter's dtype.

    >>> w = nb.Parameter(nb.Tensor([1.0, 2.0]), name="w")
    >>> print(nb.ops.assign(w, nb.Tensor([3.0, 4.0])), w.value())
    [3. 4.] [3. 4.]
    """
    node = _fitting(variable, value, "assign")
    if node.shape != variable.shape:
        message = (
            f"The Parameter {variable.name} has shape {variable.shape}, but the new value has shape {node.shape}. "
            "Reshape it or broadcast it first; variable.set_data() changes the shape of a Parameter."
        )
        raise ShapeError(message)
    return _written(variable, node)


def assign_add(variable: Parameter, value: Any) -> Tensor:
    """Add a value to a Parameter; it must broadcast to the Parameter's shape. Otherwise as `assign`."""
    return _updated(variable, value, "add")


def assign_sub(variable: Parameter, value: Any) -> Tensor:
    """Subtract a value from a Parameter; it must broadcast to the Parameter's shape. Otherwise as `assign`."""
    return _updated(variable, value, "subtract")


def _updated(variable: Parameter, value: Any, primitive: str) -> Tensor:
    node = _fitting(variable, value, "assign_add" if primitive == "add" else "assign_sub")
    if not broadcasts(node.shape, variable.shape):
        message = (
            f"The Parameter {variable.name} has shape {variable.shape}, to which a value of shape {node.shape} does "
            "not broadcast."
        )
        raise ShapeError(message)
    return _written(variable, elementwise(primitive, variable._node, broadcast(node, variable.shape)))


def _fitting(variable: Any, value: Any, function: str) -> Node:
    """The value in the Parameter's dtype."""
    if not isinstance(variable, Parameter):
        message = (
            f"{function} writes to a Parameter, but got {type(variable).__name__}. Make it with nb.Parameter(...)."
        )
        raise DtypeError(message)
    node = as_node(value)
    own = variable._node.dtype
    if type(value) is int and own.kind in "iu":
        if not np.iinfo(own).min <= value <= np.iinfo(own).max:
            message = f"The integer {value} does not fit in the dtype {own} of the Parameter {variable.name}."
            raise ArgumentError(message)
    elif not np.can_cast(node.dtype, own, "same_kind" if own.kind == "f" else "safe"):
        message = (
            f"The Parameter {variable.name} has dtype {own}, but the value has dtype {node.dtype}, which may not fit. "
            f"Convert it first, for example with .astype({own.name!r})."
        )
        raise DtypeError(message)
    return cast(node, own)


def _written(variable: Parameter, node: Node) -> Tensor:
    variable.set_data(Tensor._of(node))
    return variable.value()
