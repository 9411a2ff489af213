"""0-d arrays: Tensors that NumPy would not give as scalars.

In: nothing. Out: the class of `np.array(1.0)`, `np.zeros(())` and `x[0, ...]`. `x += y` writes into them, and
`isinstance` says that they are arrays; `x[0]` and sums are Tensors like others, of which both say that they are
scalars. A transform returns the former as ndarrays. Used by shared_memory.py, by operators in place
(functions/elementwise/ufuncs.py), by functions that make arrays (functions/arrays/creation.py, ...), and by
arguments.py.
"""

from __future__ import annotations

from ..graph.ir import strong
from .tensor import Tensor


class ZeroDimensional(Tensor):
    """A Tensor without axes that is an array, not a scalar."""

    __slots__ = ()


ZeroDimensional.__name__ = ZeroDimensional.__qualname__ = "Tensor"


def is_array(tensor: Tensor) -> bool:
    """Whether a Tensor is an array without axes, which NumPy would not give as a scalar."""
    return tensor.__class__ is ZeroDimensional


def is_scalar(tensor: Tensor) -> bool:
    """Whether NumPy would give a scalar, which shares memory with nothing, in place of a Tensor."""
    return tensor.__class__ is Tensor and not tensor._node.shape and not tensor._node.tensor


def as_array(tensor: Tensor) -> Tensor:
    """A scalar as a 0-d array, others as they are: for functions that return arrays in NumPy, also without axes."""
    if is_scalar(tensor):
        tensor = Tensor._of(strong(tensor._node))
        tensor.__class__ = ZeroDimensional
    return tensor
