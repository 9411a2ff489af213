"""Real and imaginary parts, conjugates and angles of complex arrays.

In: array-likes, real or complex. Out: Tensors. Called by users, by `np.real(tensor)` and its like, and by Tensor's
attributes. Of a real array the real part is the array itself and the imaginary part is zero.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import DtypeError
from ...graph.builders import beside, cast, reduce
from ...graph.complex_numbers import is_complex, pair, parts
from ...graph.formulas import choose
from ...graph.ir import Node, elementwise, zeros
from ...record.as_node import as_node, wrap
from ...record.indexing import fitted
from ...record.numbers import number
from ...record.promotion import float_of
from ...record.tensor import Tensor
from ...record.zero_dimensional import as_array, is_array, is_scalar
from ...runtime.evaluate import concrete
from ..arrays.result_order import like_argument
from ..arrays.viewing import sharing


def real(val: Any) -> Tensor:
    """The real part, elementwise; of a complex Tensor a view, which can be written to.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> np.real(nb.Tensor(np.array([1 + 2j, 3j]))).tolist()
    [1.0, 0.0]
    """
    val = sharing(val)
    return _part(val, 0) if isinstance(val, Tensor) else wrap(parts(as_node(val))[0])


def imag(val: Any) -> Tensor:
    """The imaginary part, elementwise; of a complex Tensor a view; zeros for real arrays."""
    val = sharing(val)
    return _part(val, 1) if isinstance(val, Tensor) else wrap(parts(as_node(val))[1])


@like_argument(order="A")
def _no_part(tensor: Tensor) -> Tensor:
    if tensor._node.weak:
        return wrap(number(0.0))
    zero = wrap(beside(zeros(tensor.shape, tensor._node.dtype), tensor._node))
    return as_array(zero) if is_array(tensor) else zero


def _part(tensor: Tensor, side: int) -> Tensor:
    if tensor.dtype.kind != "c":
        return _no_part(tensor) if side else tensor
    if is_scalar(tensor):
        return wrap(parts(tensor._node)[side])
    from ...record.shared_memory import view
    from ...record.view_chain import PART_MOVES

    return view(tensor, PART_MOVES[side])


def set_part(target: Tensor, value: Any, side: int) -> None:
    """Write the real (0) or the imaginary part (1) of a Tensor: `z.real = x`."""
    node, new = target._node, as_node(value)
    if is_complex(new):
        message = f"The {'imaginary' if side else 'real'} part must be real, but got {new.dtype}."
        raise DtypeError(message)
    if not is_complex(node):
        if side:
            message = f"A Tensor of {node.dtype} has no imaginary part to write to."
            raise DtypeError(message)
        target[...] = value
        return
    both = list(parts(node))
    both[side] = fitted(cast(new, both[side].dtype), node.shape)
    target._replace(pair(both[0], both[1]))


def angle(z: Any, deg: bool = False) -> Tensor:
    """The angle of complex numbers in the plane, in radians, or degrees if `deg`.

    Parameters
    ----------
    z : array-like
    deg : bool
        Whether the result is in degrees.

    Returns
    -------
    Tensor
        In (-pi, pi]; 0 or pi for real numbers, whose angle has derivative 0.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> np.angle(nb.Tensor(np.array([1j, 1 + 1j])), deg=True).tolist()
    [90.0, 45.0]
    """
    node = as_node(z)
    if is_complex(node):
        re, im = parts(node)
        found = elementwise("arctan2", im, re)
        return wrap(found * (180 / math.pi) if deg else found)
    node = cast(node, float_of(node))
    turned = choose(elementwise("signbit", node), 180.0 if deg else math.pi, 0.0, node)
    return wrap(elementwise("select", elementwise("isnan", node), node, turned))


def iscomplex(x: Any) -> Tensor:
    """Whether each element has an imaginary part that is not zero."""
    return wrap(_has_imaginary_part(as_node(x)))


@like_argument(order="A")
def isreal(x: Any) -> Tensor:
    """Whether each element has an imaginary part of zero."""
    return wrap(elementwise("logical_not", _has_imaginary_part(as_node(x))))


def _has_imaginary_part(node: Node) -> Node:
    if not is_complex(node):
        return beside(zeros(node.shape, np.dtype(np.bool_)), node)
    return elementwise("not_equal", parts(node)[1], 0)


def real_if_close(a: Any, tol: float = 100) -> Tensor:
    """The real part where all imaginary parts are within `tol` rounding errors of zero (or `tol`, if less than 1).

    Whether they are is found out now; under `jit`, each of both outcomes is compiled once.
    """
    node = as_node(a)
    if not is_complex(node):
        return as_array(real(a))
    re, im = parts(node)
    if not node.size:
        return wrap(re)
    bound = tol * float(np.finfo(re.dtype).eps) if tol > 1 else tol
    near = reduce("min", elementwise("less", elementwise("absolute", im), bound), range(node.ndim))
    return as_array(wrap(re if bool(concrete(near, "bool")) else node))


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex."""
    return is_complex(x._node) if isinstance(x, Tensor) else np.iscomplexobj(x)


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex."""
    return not iscomplexobj(x)
