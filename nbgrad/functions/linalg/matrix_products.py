"""Products of matrices and vectors, powers, traces.

In: array-likes. Out: Tensors. Called by users, by Tensor's `@`, and by the ufunc layer (`matmul` and its relatives are
ufuncs). Floating point products of matrices are the `matmul` primitive on (batch, m, k) and (batch, k, n), with the
batch folded into m where the right side has none; products of vectors, integers and booleans are multiply and sum,
which fuse with what surrounds them.
"""

from __future__ import annotations

import math
from typing import Any

from ...errors import ArgumentError, ShapeError
from ...graph import builders
from ...graph.builders import beside, cast, concatenate, reduce, reshape
from ...graph.complex_numbers import conjugate
from ...graph.ir import BOOL, Node, broadcast, elementwise
from ...record.as_node import wrap
from ...record.axes_and_dtypes import (
    FLOAT16,
    FLOAT32,
    array_node,
    axis_of,
    cut,
    deliver,
    filled,
    from_last,
    integer,
    integers,
    real_dtype,
    to_last,
)
from ...record.promotion import promote
from ...record.tensor import Tensor
from ...record.zero_dimensional import as_array
from ...runtime.memory_order import copied, like_copy
from ..arrays.creation import diagonal_node, eye
from ..arrays.reductions import reduce_ufunc
from ..arrays.result_order import like_batches
from ..arrays.shaping import common_shape, swap
from .factorisations import inv

# ----- On nodes: operands have one dtype -----


def batched(a: Node, b: Node) -> Node:
    """`(B, m, k) @ (B, k, n)` for any dtype."""
    if a.dtype == FLOAT16:
        # As NumPy: products of float16 are added in float32.
        return cast(batched(cast(a, FLOAT32), cast(b, FLOAT32)), FLOAT16)
    if a.dtype.kind in "fc":
        return builders.matmul(a, b)
    (count, m, k), n = a.shape, b.shape[2]
    # Whatever the order of its operands, a product is in C order.
    return copied(contract(reshape(a, (count, m, 1, k)), reshape(swap(b, 1, 2), (count, 1, n, k))), "C")


def contract(a: Node, b: Node) -> Node:
    """Multiply, broadcasting, and sum over the last axis; booleans are combined by "and" and "or"."""
    if a.dtype == BOOL:
        product = elementwise("logical_and", a, b)
        return reduce("max", product, (product.ndim - 1,)) if product.shape[-1] else filled(product.shape[:-1], 0, BOOL)
    if a.dtype == FLOAT16:
        return cast(contract(cast(a, FLOAT32), cast(b, FLOAT32)), FLOAT16)
    product = elementwise("multiply", a, b)
    return reduce("sum", product, (product.ndim - 1,))


def matmul_node(a: Node, b: Node) -> Node:
    """`np.matmul` on nodes, with all its rules for the number of axes."""
    a, b = promote([a, b])
    if a.ndim == 0 or b.ndim == 0:
        message = f"matmul needs operands with at least one axis, but the shapes are {a.shape} and {b.shape}; use *."
        raise ShapeError(message)
    k = a.shape[-1]
    other = b.shape[0 if b.ndim == 1 else -2]
    if k != other:
        message = f"matmul cannot multiply the shapes {a.shape} and {b.shape}: {k} is not {other}."
        raise ShapeError(message)
    if a.ndim == 1 and b.ndim == 1:
        return contract(a, b)
    row, column = a.ndim == 1, b.ndim == 1
    operands = a, b = reshape(a, (1, k)) if row else a, reshape(b, (k, 1)) if column else b
    m, n = a.shape[-2], b.shape[-1]
    batch = common_shape([a.shape[:-2], b.shape[:-2]])
    if math.prod(b.shape[:-2]) == 1:
        # Nothing batched on the right: one product of a tall matrix.
        batch_a = broadcast(a, (*batch, m, k))
        result = batched(reshape(batch_a, (1, math.prod(batch) * m, k)), reshape(b, (1, k, n)))
    else:
        count = math.prod(batch)
        result = batched(
            reshape(broadcast(a, (*batch, m, k)), (count, m, k)), reshape(broadcast(b, (*batch, k, n)), (count, k, n))
        )
    cores = (*(() if row else (m,)), *(() if column else (n,)))
    return like_batches(reshape(result, (*batch, *cores)), len(cores), *operands)


def tensordot_node(a: Node, b: Node, axes_a: tuple[int, ...], axes_b: tuple[int, ...]) -> Node:
    """Sum of products over pairs of axes; the other axes of `a` come first."""
    a, b = promote([a, b])
    if [a.shape[i] for i in axes_a] != [b.shape[j] for j in axes_b]:
        message = f"The axes {axes_a} of shape {a.shape} and {axes_b} of shape {b.shape} differ in extent."
        raise ShapeError(message)
    left = tuple([i for i in range(a.ndim) if i not in axes_a])
    right = tuple([j for j in range(b.ndim) if j not in axes_b])
    rows, columns = tuple([a.shape[i] for i in left]), tuple([b.shape[j] for j in right])
    k = math.prod(a.shape[i] for i in axes_a)
    m, n = math.prod(rows), math.prod(columns)
    a = builders.transpose(a, left + axes_a)
    if not axes_a:
        return elementwise("multiply", reshape(a, rows + (1,) * len(columns)), b)
    if not left and not right:
        return contract(reshape(a, (k,)), reshape(builders.transpose(b, axes_b), (k,)))
    b = builders.transpose(b, axes_b + right)
    return reshape(batched(reshape(a, (1, m, k)), reshape(b, (1, k, n))), rows + columns)


def dot_node(a: Node, b: Node) -> Node:
    """`np.dot` on nodes: over the last axis of `a` and the second to last of `b`."""
    if a.ndim == 0 or b.ndim == 0:
        return _times_number(a, b)
    return tensordot_node(a, b, (a.ndim - 1,), (0 if b.ndim == 1 else b.ndim - 2,))


def _times_number(a: Node, b: Node) -> Node:
    """An array times a number as a product of arrays: NumPy's is BLAS's for matrices, a ufunc's for all others."""
    array, found = (a if b.ndim == 0 else b), multiply(a, b)
    if found.ndim <= 2 and found.dtype.kind in "fc" and found.dtype.itemsize > 2:
        return copied(found, "C")
    return like_copy(found, array) if found.dtype != array.dtype else found


def common_bool(a: Node, b: Node) -> bool:
    """Whether two nodes multiply as numbers."""
    return not (a.dtype == BOOL and b.dtype == BOOL)


def multiply(a: Node, b: Node) -> Node:
    """Elementwise product in the common dtype."""
    return elementwise("multiply" if common_bool(a, b) else "logical_and", *promote([a, b]))


# ----- Products -----


def matmul(x1: Any, x2: Any, /, out: Any = None, *, dtype: Any = None) -> Tensor:
    """Product of matrices: the last two axes, the others broadcast; 1-d operands are a row or a column.

    Parameters
    ----------
    x1, x2 : array-like
        At least 1-d.
    out : Tensor or ndarray, optional
    dtype : dtype, optional

    Returns
    -------
    Tensor
    """
    nodes = [array_node(x1), array_node(x2)]
    return deliver(matmul_node(*(nodes if dtype is None else promote(nodes, real_dtype(dtype)))), out)


def dot(a: Any, b: Any, out: Any = None) -> Tensor:
    """Sum of products over the last axis of `a` and the second to last of `b`."""
    return deliver(dot_node(array_node(a), array_node(b)), out)


def vdot(a: Any, b: Any, /) -> Tensor:
    """Sum of products of two flat arrays, the first one conjugated."""
    first, second = conjugate(array_node(a)), array_node(b)
    if first.size != second.size:
        message = f"vdot needs arrays of one size, but the shapes are {first.shape} and {second.shape}."
        raise ShapeError(message)
    return wrap(contract(*promote([reshape(first, (first.size,)), reshape(second, (second.size,))])))


def inner(a: Any, b: Any, /) -> Tensor:
    """Sum of products over the last axes."""
    first, second = array_node(a), array_node(b)
    if first.ndim == 0 or second.ndim == 0:
        return wrap(_times_number(first, second))
    return wrap(tensordot_node(first, second, (first.ndim - 1,), (second.ndim - 1,)))


def outer(a: Any, b: Any, out: Any = None) -> Tensor:
    """All products of elements of two flat arrays."""
    first, second = array_node(a), array_node(b)
    if first.ndim == 0 or second.ndim == 0:
        first, second = promote([first, second])
    return deliver(multiply(reshape(first, (first.size, 1)), reshape(second, (1, second.size))), out)


def linalg_outer(x1: Any, x2: Any, /) -> Tensor:
    """All products of elements of two 1-d arrays."""
    for node in (array_node(x1), array_node(x2)):
        if node.ndim != 1:
            message = f"linalg.outer needs 1-d arrays, but a shape is {node.shape}; use outer, which makes them flat."
            raise ShapeError(message)
    return outer(x1, x2)


def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """Sum of products over axes: the last ones of `a` and the first ones of `b`, or two given lists of axes."""
    first, second = array_node(a), array_node(b)
    if isinstance(axes, list | tuple):
        if len(axes) != 2:
            message = f"axes must be a number or two lists of axes, but got {axes!r}."
            raise ArgumentError(message)
        left = tuple([axis_of(k, first.ndim) for k in integers(axes[0], "axes")])
        right = tuple([axis_of(k, second.ndim) for k in integers(axes[1], "axes")])
        if len(left) != len(right):
            message = f"The two lists of axes differ in length: {axes!r}."
            raise ShapeError(message)
    else:
        count = integer(axes, "axes")
        if not 0 <= count <= min(first.ndim, second.ndim):
            message = f"axes={count} is more axes than the shapes {first.shape} and {second.shape} have."
            raise ShapeError(message)
        left, right = tuple(range(first.ndim - count, first.ndim)), tuple(range(count))
    return as_array(wrap(tensordot_node(first, second, left, right)))


def vecdot(x1: Any, x2: Any, /, out: Any = None, *, axis: int = -1) -> Tensor:
    """Sum of products along an axis, of which the first factor is conjugated; the other axes broadcast."""
    a, b = promote([conjugate(array_node(x1)), array_node(x2)])
    if a.ndim == 0 or b.ndim == 0:
        message = "vecdot needs operands with at least one axis."
        raise ShapeError(message)
    a, b = to_last(a, axis_of(axis, a.ndim)), to_last(b, axis_of(axis, b.ndim))
    if a.shape[-1] != b.shape[-1]:
        message = f"vecdot needs axes of one extent, but they are {a.shape[-1]} and {b.shape[-1]}."
        raise ShapeError(message)
    common_shape([a.shape, b.shape])
    return deliver(contract(a, b), out)


def matvec(x1: Any, x2: Any, /, out: Any = None) -> Tensor:
    """Matrices times vectors; the axes before them broadcast."""
    a, b = array_node(x1), array_node(x2)
    if a.ndim < 2 or b.ndim < 1:
        message = f"matvec needs a matrix and a vector, but the shapes are {a.shape} and {b.shape}."
        raise ShapeError(message)
    product = matmul_node(a, b if b.ndim == 1 else reshape(b, (*b.shape, 1)))
    return deliver(product if b.ndim == 1 else reshape(product, product.shape[:-1]), out)


def vecmat(x1: Any, x2: Any, /, out: Any = None) -> Tensor:
    """Conjugated vectors times matrices; the axes before them broadcast."""
    a, b = conjugate(array_node(x1)), array_node(x2)
    if a.ndim < 1 or b.ndim < 2:
        message = f"vecmat needs a vector and a matrix, but the shapes are {a.shape} and {b.shape}."
        raise ShapeError(message)
    product = matmul_node(a if a.ndim == 1 else reshape(a, (*a.shape[:-1], 1, a.shape[-1])), b)
    return deliver(product if a.ndim == 1 else reshape(product, (*product.shape[:-2], product.shape[-1])), out)


def kron(a: Any, b: Any) -> Tensor:
    """Kronecker product: each element of `a` times all of `b`."""
    first, second = promote([array_node(a), array_node(b)])
    ndim = max(first.ndim, second.ndim)
    left = (1,) * (ndim - first.ndim) + first.shape
    right = (1,) * (ndim - second.ndim) + second.shape
    spread_left = tuple([n for extent in left for n in (extent, 1)])
    spread_right = tuple([n for extent in right for n in (1, extent)])
    product = multiply(reshape(first, spread_left), reshape(second, spread_right))
    return wrap(reshape(product, tuple([n * m for n, m in zip(left, right, strict=True)])))


def cross(a: Any, b: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> Tensor:
    """Cross product of vectors with three elements (or two, whose third is 0)."""
    if axis is not None:
        axisa = axisb = axisc = axis
    first, second = promote([array_node(a), array_node(b)])
    first, second = to_last(first, axis_of(axisa, first.ndim)), to_last(second, axis_of(axisb, second.ndim))
    if first.shape[-1] not in (2, 3) or second.shape[-1] not in (2, 3):
        message = f"cross needs vectors of 2 or 3 elements, but they have {first.shape[-1]} and {second.shape[-1]}."
        raise ShapeError(message)
    shape = common_shape([first.shape[:-1], second.shape[:-1]])

    def parts(node: Node) -> list[Node | None]:
        elements = [reshape(cut(node, node.ndim - 1, k, 1), node.shape[:-1]) for k in range(node.shape[-1])]
        return [broadcast(e, shape) for e in elements] + [None] * (3 - len(elements))

    x, y = parts(first), parts(second)

    def minor(i: int, j: int) -> Node:
        plus, minus = _times(x[i], y[j]), _times(x[j], y[i])
        if plus is None or minus is None:
            return plus if plus is not None else -minus if minus is not None else filled(shape, 0, first.dtype)
        return elementwise("subtract", plus, minus)

    if x[2] is None and y[2] is None:
        return as_array(wrap(copied(minor(0, 1), "C")))
    rows = [reshape(v, (*shape, 1)) for v in (minor(1, 2), minor(2, 0), minor(0, 1))]
    return wrap(from_last(copied(concatenate(rows, len(shape)), "C"), axis_of(axisc, len(shape) + 1)))


def _times(a: Node | None, b: Node | None) -> Node | None:
    return None if a is None or b is None else elementwise("multiply", a, b)


def linalg_cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """Cross product of vectors with three elements along an axis."""
    return cross(x1, x2, axis=axis)


def multi_dot(arrays: Any, *, out: Any = None) -> Tensor:
    """Product of several matrices in the cheapest order; the first and the last may be vectors."""
    nodes = [array_node(a) for a in arrays]
    if len(nodes) < 2:
        message = f"multi_dot needs at least two arrays, but got {len(nodes)}."
        raise ArgumentError(message)
    for position, node in enumerate(nodes):
        if node.ndim != 2 and not (node.ndim == 1 and position in (0, len(nodes) - 1)):
            message = f"multi_dot needs matrices (the first and last may be vectors), but a shape is {node.shape}."
            raise ShapeError(message)
    row, column = nodes[0].ndim == 1, nodes[-1].ndim == 1
    nodes[0] = reshape(nodes[0], (1, nodes[0].size)) if row else nodes[0]
    nodes[-1] = reshape(nodes[-1], (nodes[-1].size, 1)) if column else nodes[-1]
    result = _chain(promote(nodes))
    m, n = result.shape
    return deliver(reshape(result, (*(() if row else (m,)), *(() if column else (n,)))), out)


def _chain(nodes: list[Node]) -> Node:
    """The product of a chain of matrices by the order with the fewest multiplications."""
    count = len(nodes)
    extents = [node.shape[0] for node in nodes] + [nodes[-1].shape[1]]
    cost = [[0] * count for _ in range(count)]
    best = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            options = [
                (cost[i][k] + cost[k + 1][j] + extents[i] * extents[k + 1] * extents[j + 1], k) for k in range(i, j)
            ]
            cost[i][j], best[i][j] = min(options)

    def product(i: int, j: int) -> Node:
        return nodes[i] if i == j else matmul_node(product(i, best[i][j]), product(best[i][j] + 1, j))

    return product(0, count - 1)


def matrix_power(a: Any, n: int) -> Tensor:
    """A square matrix to an integer power, by repeated squaring (of its inverse, if the power is negative)."""
    node, power = array_node(a), integer(n, "n")
    if node.ndim < 2 or node.shape[-1] != node.shape[-2]:
        message = f"matrix_power needs square matrices, but the shape is {node.shape}."
        raise ShapeError(message)
    if power < 0:
        node, power = inv(a)._node, -power
    if power == 0:
        return wrap(beside(broadcast(eye(node.shape[-1], dtype=node.dtype)._node, node.shape), node))
    result: Node | None = None
    square = node
    while power:
        if power & 1:
            result = square if result is None else matmul_node(result, square)
        power >>= 1
        square = matmul_node(square, square) if power else square
    assert result is not None
    return wrap(result)


# ----- Traces -----


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Tensor:
    """Sum of a diagonal."""
    node = array_node(a)
    if node.ndim < 2:
        message = f"trace needs at least two axes, but the shape is {node.shape}."
        raise ShapeError(message)
    line = diagonal_node(node, integer(offset, "offset"), axis_of(axis1, node.ndim), axis_of(axis2, node.ndim))
    return deliver(reduce_ufunc("add", line, -1, dtype=dtype), out)


def linalg_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Tensor:
    """Sum of a diagonal of the last two axes."""
    return trace(x, offset, -2, -1, dtype)
