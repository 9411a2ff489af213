"""Complex numbers with MindSpore's names: parts, conjugates, angles, polar coordinates.

In: array-likes. Out: Tensors. Called by users. The functions differentiate: the gradient with respect to a complex
z = x + iy is dL/dx + i dL/dy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DtypeError
from ..functions.elementwise import complex_parts
from ..functions.elementwise.ufuncs import call
from ..graph.builders import concatenate, reshape
from ..graph.complex_numbers import from_real, pair, parts
from ..graph.ir import Node, broadcast, elementwise
from ..graph.shapes import joint_shape
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import inexact
from ..record.promotion import promote
from ..record.tensor import Tensor
from .declarations import as_numpy, spelled
from .docstrings import documented


@as_numpy(complex_parts.real, "The real part, elementwise.")
def real(input: Any) -> Tensor: ...
@as_numpy(complex_parts.imag, "The imaginary part, elementwise; zeros for real arrays.")
def imag(input: Any) -> Tensor: ...


@spelled
def conj(input: Any) -> Tensor:
    """The complex conjugate, elementwise."""
    return call(np.conjugate, input)


@as_numpy(complex_parts.angle, "The angle in the plane, in radians, elementwise.")
def angle(input: Any) -> Tensor: ...


@spelled
def is_complex(input: Any) -> bool:
    """Whether the dtype is complex."""
    return complex_parts.iscomplexobj(input if isinstance(input, Tensor) else wrap(as_node(input)))


@as_numpy(complex_parts.isreal, "Whether each element has an imaginary part of zero.")
def isreal(input: Any) -> Tensor: ...


@documented
def complex(real: Any, imag: Any) -> Tensor:
    """Complex numbers of their real and imaginary parts.

    real, imag : array-like
        Real; they broadcast together.
    -> Tensor
        complex64 if both are at most float32, else complex128.
    DtypeError : If a part is complex.

    >>> nb.ops.complex(nb.Tensor([1.0, 2.0]), nb.Tensor([0.0, -1.0])).tolist()
    [(1+0j), (2-1j)]
    """
    return wrap(pair(*_real_operands("complex", real, imag)))


@documented
def polar(abs: Any, angle: Any) -> Tensor:
    """Complex numbers of their absolute values and angles (in radians), which broadcast together.

    >>> import numpy as np, nbgrad as nb
    >>> nb.ops.polar(np.array([2.0]), np.array([0.0])).tolist()
    [(2+0j)]
    """
    size, turn = _real_operands("polar", abs, angle)
    return wrap(pair(size * elementwise("cos", turn), size * elementwise("sin", turn)))


@documented
def view_as_real(input: Any) -> Tensor:
    """The real and the imaginary part along a new last axis of length 2.

    DtypeError : If the array is not complex.
    """
    node = as_node(input)
    if node.dtype.kind != "c":
        message = f"view_as_real needs a complex array, but got {node.dtype}."
        raise DtypeError(message)
    return wrap(concatenate([reshape(part, (*node.shape, 1)) for part in parts(node)], node.ndim))


@documented
def view_as_complex(input: Any) -> Tensor:
    """The inverse of `view_as_real`: real numbers in pairs along the last axis as complex ones.

    DtypeError : If the array is complex already, or its last axis does not have length 2.
    """
    node = inexact(as_node(input))
    if node.dtype.kind == "c" or node.shape[-1:] != (2,):
        message = f"view_as_complex needs real numbers with a last axis of length 2, but got {node}."
        raise DtypeError(message)
    both = Tensor._of(node)
    return complex(both[..., 0], both[..., 1])


def complex_abs(input: Any) -> Tensor:
    """Absolute values of complex numbers."""
    node = as_node(input)
    return wrap(elementwise("absolute", node if node.dtype.kind == "c" else from_real(node, np.dtype(np.complex128))))


def _real_operands(name: str, *values: Any) -> list[Node]:
    nodes = promote([inexact(as_node(value)) for value in values])
    for node in nodes:
        if node.dtype.kind == "c":
            message = f"{name} needs real numbers, but one argument has dtype {node.dtype}."
            raise DtypeError(message)
    shape = joint_shape(*[node.shape for node in nodes])
    return [broadcast(node, shape) for node in nodes]
