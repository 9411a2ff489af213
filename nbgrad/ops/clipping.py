"""Limiting the norm of a gradient: `clip_by_norm`. (`clip_by_value` and `clip_by_global_norm` stand with their kind.)

In: one Tensor, or a list or tuple of them. Out: the same, scaled. Called by users between gradients and optimizer.
Differentiable, like everything that is a composition of norms and products.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..functions.linalg.norms import vector_norm
from ..graph.builders import cast
from ..graph.ir import Node, elementwise
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import demand, inexact
from ..record.tensor import Tensor
from .docstrings import documented

FLOAT64 = np.dtype(np.float64)


@documented
def clip_by_norm(x: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    """Tensors scaled together so that the norm of all their elements is at most `max_norm`.

    x : Tensor, or list or tuple of Tensor
        For example all gradients of a step.
    max_norm : float
        Not negative.
    norm_type : float
        The p of the p-norm; inf for the largest absolute value.
    error_if_nonfinite : bool
        Whether a norm that is infinite or NaN is an error.
    -> Tensor, list or tuple of Tensor
        x * min(1, max_norm / (norm + 1e-6)), as PyTorch's `clip_grad_norm_` has it; shapes and dtypes as given. The
        norm is computed in float64.
    ArgumentError : If there is nothing to clip, or `max_norm` is negative or NaN.
    DtypeError : If something is no array of floating-point numbers.
    RangeError : If `error_if_nonfinite` and the norm is not finite.

    >>> print(*[t.asnumpy().round(4) for t in nb.ops.clip_by_norm([nb.Tensor([3.0]), nb.Tensor([4.0])], 2.5)])
    [1.5] [2.]
    >>> print(nb.ops.clip_by_norm(nb.Tensor([3.0, 4.0]), 10.0))
    [3. 4.]
    """
    if not max_norm >= 0:
        message = f"max_norm must be a number of at least 0, but got {max_norm!r}."
        raise ArgumentError(message)
    several = isinstance(x, list | tuple)
    nodes = [_floats(value) for value in (x if several else [x])]
    if not nodes:
        message = "clip_by_norm got an empty list, so there is nothing to clip."
        raise ArgumentError(message)
    norms = [vector_norm(Tensor._of(cast(node, FLOAT64)), ord=norm_type) for node in nodes]
    total = vector_norm(Tensor._of(as_node(norms)), ord=norm_type)._node
    if error_if_nonfinite:
        demand(
            elementwise("isfinite", total), f"The norm (norm_type={norm_type}) of what is to be clipped is not finite."
        )
    factor = elementwise("minimum", max_norm / (total + 1e-6), 1.0)
    scaled = [wrap(elementwise("multiply", node, cast(factor, node.dtype))) for node in nodes]
    return type(x)(scaled) if several else scaled[0]


def _floats(value: Any) -> Node:
    if not isinstance(value, Tensor | np.ndarray):
        message = f"clip_by_norm takes Tensors, but got {type(value).__name__}."
        raise DtypeError(message)
    return inexact(as_node(value))
