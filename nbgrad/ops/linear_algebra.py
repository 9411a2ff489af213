"""Products of vectors and matrices under MindSpore's names.

In: Tensors or ndarrays, whose dtypes are promoted. Out: Tensors. Called by users and by class_forms.py. Each is one
product of `nbgrad.numpy`, here with the number of axes that the name promises.
"""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..functions.arrays.creation import zeros_like
from ..functions.arrays.reductions import reduce_ufunc
from ..functions.linalg import matrix_products as linear_algebra
from ..functions.linalg.einsum import einsum as numpy_einsum
from ..functions.linalg.norms import vector_norm
from ..graph.builders import reshape, transpose
from ..graph.ir import Node
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import array_node, axis_of
from ..record.tensor import Tensor
from .declarations import also, as_numpy, spelled
from .docstrings import documented
from .elementwise import add, mul

_DIMENSIONS = {1: "a vector", 2: "a matrix", 3: "a batch of matrices (three axes)"}


def _with_axes(function: str, **operands: tuple[Any, int]) -> list[Node]:
    """The nodes of operands that must have so many axes."""
    nodes = []
    for name, (value, ndim) in operands.items():
        node = array_node(value)
        if node.ndim != ndim:
            message = f"{function} needs {_DIMENSIONS[ndim]} as {name}, but its shape is {node.shape}."
            raise ShapeError(message)
        nodes.append(node)
    return nodes


def _product(a: Node, b: Node) -> Tensor:
    return wrap(linear_algebra.matmul_node(a, b))


# ----- Products -----


@documented
def matmul(input: Any, other: Any) -> Tensor:
    """Product of matrices: over the last axis of `input` and the second to last of `other`; the axes before broadcast.

    input, other : Tensor or ndarray
        At least 1-d: a vector is a row on the left, a column on the right.
    ShapeError : If the inner extents differ, the batches do not broadcast, or an operand is 0-d.

    >>> nb.ops.matmul(nb.Tensor([[1.0, 2.0], [3.0, 4.0]]), nb.Tensor([1.0, 1.0])).tolist()
    [3.0, 7.0]
    """
    return wrap(linear_algebra.matmul_node(array_node(input), array_node(other)))


def bmm(input_x: Any, mat2: Any) -> Tensor:
    """Products of two batches of matrices, each with three axes or more."""
    a, b = array_node(input_x), array_node(mat2)
    if a.ndim < 3 or b.ndim != a.ndim:
        message = f"bmm needs two batches of matrices with as many axes, but the shapes are {a.shape} and {b.shape}."
        raise ShapeError(message)
    return _product(a, b)


def mm(input: Any, mat2: Any) -> Tensor:
    """Product of two matrices."""
    return _product(*_with_axes("mm", input=(input, 2), mat2=(mat2, 2)))


@also(input="mat")
def mv(input: Any, vec: Any) -> Tensor:
    """Product of a matrix and a vector."""
    return _product(*_with_axes("mv", input=(input, 2), vec=(vec, 1)))


@documented
def dense(input: Any, weight: Any, bias: Any = None) -> Tensor:
    """`input @ weight.T + bias`.

    input : Tensor or ndarray, shape (..., C)
    weight : Tensor or ndarray, shape (Cout, C) or (C,)
    bias : Tensor or ndarray, optional

    >>> nb.ops.dense(nb.Tensor([1.0, 2.0]), nb.Tensor([[3.0, 4.0]]), nb.Tensor([0.5])).tolist()
    [11.5]
    """
    w = array_node(weight)
    columns = transpose(w, (1, 0)) if w.ndim == 2 else w
    product = wrap(linear_algebra.matmul_node(array_node(input), columns))
    return product if bias is None else product + wrap(array_node(bias))  # pyright: ignore[reportOperatorIssue]


@as_numpy(
    linear_algebra.dot,
    "Sum of products over the last axis of `input` and the second to last of `other`, for all their other axes.",
)
def dot(input: Any, other: Any) -> Tensor: ...
@as_numpy(linear_algebra.inner, "Sum of products over the last axes.")
def inner(input: Any, other: Any) -> Tensor: ...


def outer(input: Any, vec2: Any) -> Tensor:
    """All products of elements of two vectors."""
    return linear_algebra.outer(*[Tensor._of(n) for n in _with_axes("outer", input=(input, 1), vec2=(vec2, 1))])


ger = outer


@as_numpy(
    linear_algebra.tensordot,
    "Sum of products over axes: the last ones of `x1` and the first ones of `x2`, or two given lists of axes.",
)
def tensor_dot(x1: Any, x2: Any, axes: Any) -> Tensor: ...
@as_numpy(linear_algebra.kron, "Kronecker product: each element of `input` times all of `other`.")
def kron(input: Any, other: Any) -> Tensor: ...


@spelled
def cross(input: Any, other: Any, dim: int | None = None) -> Tensor:
    """Cross product of vectors of three elements along an axis; by default the first axis of extent 3."""
    a, b = array_node(input), array_node(other)
    if dim is None:
        shared = [axis for axis, n in enumerate(a.shape) if n == 3]
        if not shared:
            message = f"cross needs an axis of extent 3, but the shape is {a.shape}."
            raise ShapeError(message)
        dim = shared[0]
    for node in (a, b):
        if node.shape[axis_of(dim, node.ndim)] != 3:
            message = f"cross needs vectors of 3 elements along axis {dim}, but a shape is {node.shape}."
            raise ShapeError(message)
    return linear_algebra.cross(Tensor._of(a), Tensor._of(b), axis=dim)


@documented
def einsum(equation: str, *operands: Any) -> Tensor:
    """Einstein sum of operands, which may be one list or tuple.

    equation : str
        Such as "ij,jk->ik"; with ellipses and repeated labels.
    *operands : Tensor or ndarray
    ArgumentError : If the equation does not fit the number of operands.
    ShapeError : If it does not fit their shapes.

    >>> nb.ops.einsum("ij->j", nb.Tensor([[1.0, 2.0], [3.0, 4.0]])).tolist()
    [4.0, 6.0]
    """
    if len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = tuple(operands[0])
    return numpy_einsum(equation, *operands)


# ----- A product added to an array -----


def _added(input: Any, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    scaled = mul(product, alpha)
    if type(beta) in (int, float) and beta == 0:
        # Only its shape and dtype count, so that its NaN does not spread.
        input, beta = zeros_like(input), 1
    return add(mul(input, beta), scaled)


def addmm(input: Any, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2); `input` broadcasts, and counts as zeros where beta is 0."""
    return _added(input, _product(*_with_axes("addmm", mat1=(mat1, 2), mat2=(mat2, 2))), beta, alpha)


def addmv(input: Any, mat: Any, vec: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * (mat @ vec); `input` broadcasts, and counts as zeros where beta is 0."""
    return _added(input, _product(*_with_axes("addmv", mat=(mat, 2), vec=(vec, 1))), beta, alpha)


def addr(x: Any, vec1: Any, vec2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * x + alpha * outer(vec1, vec2); `x` broadcasts, and counts as zeros where beta is 0."""
    return _added(x, outer(vec1, vec2), beta, alpha)


def baddbmm(input: Any, batch1: Any, batch2: Any, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * (batch1 @ batch2), for each matrix of the batches; `input` broadcasts."""
    return _added(input, _product(*_with_axes("baddbmm", batch1=(batch1, 3), batch2=(batch2, 3))), beta, alpha)


def addbmm(input: Any, batch1: Any, batch2: Any, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * the sum over the batch of batch1 @ batch2; `input` broadcasts."""
    product = _product(*_with_axes("addbmm", batch1=(batch1, 3), batch2=(batch2, 3)))
    return _added(input, wrap(reduce_ufunc("add", product._node, 0)), beta, alpha)


# ----- Others -----


def trace(input: Any) -> Tensor:
    """Sum of the diagonal of a matrix."""
    (node,) = _with_axes("trace", input=(input, 2))
    return linear_algebra.trace(Tensor._of(node))


@as_numpy(linear_algebra.matrix_power, "A square matrix, or each of a batch, to a power of 0 or more.")
def matrix_power(input: Any, n: int) -> Tensor: ...


@documented
def cdist(x1: Any, x2: Any, p: float = 2.0) -> Tensor:
    """Distances between all rows of two matrices, or of two batches of them.

    x1 : Tensor or ndarray
        Of shape (..., n, d).
    x2 : Tensor or ndarray
        Of shape (..., m, d); the axes before broadcast.
    p : float
        The order of the norm of the difference; inf included. Its derivative at distance 0 is 0.
    -> Tensor
        Of shape (..., n, m).
    ShapeError : If an operand has less than two axes, or the rows differ in length.

    >>> nb.ops.cdist(nb.Tensor([[0.0, 0.0]]), nb.Tensor([[3.0, 4.0], [0.0, 1.0]])).tolist()
    [[5.0, 1.0]]
    """
    a, b = as_node(x1), as_node(x2)
    if a.ndim < 2 or b.ndim < 2 or a.shape[-1] != b.shape[-1]:
        message = f"cdist needs matrices with rows of one length, but the shapes are {a.shape} and {b.shape}."
        raise ShapeError(message)
    rows = reshape(a, (*a.shape[:-1], 1, a.shape[-1]))
    columns = reshape(b, (*b.shape[:-2], 1, *b.shape[-2:]))
    difference = Tensor._of(rows) - Tensor._of(columns)
    return vector_norm(difference, axis=-1, ord=p)
