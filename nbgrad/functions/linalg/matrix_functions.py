"""Functions of square matrices: exponential, logarithm, square root, and Sylvester's equation.

In: array-likes. Out: Tensors. Called by users, as `nb.ops.expm` and its like with SciPy's arguments. Values are SciPy's
(a `host` node of the graph). The reverse derivative of a matrix function f at A is its Frechet derivative L at the
adjoint of A, and derivatives of L are Frechet derivatives of larger matrices:

    f([[A, E], [0, A]]) = [[f(A), L(A, E)], [0, f(A)]].

Sources: Higham, "Functions of matrices", 2008, chapter 3; Al-Mohy and Higham, "Computing the Frechet derivative of the
matrix exponential, with an application to condition number estimation", 2009; Higham and Relton, "Higher order Frechet
derivatives of matrix functions and the level-2 condition number", 2014.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...graph.builders import concatenate
from ...graph.host_functions import HostFunction, host
from ...graph.ir import Node, broadcast, zeros
from ...record.as_node import wrap
from ...record.promotion import promote
from ...record.tensor import Tensor
from ..arrays.shaping import common_shape
from .matrix_batches import (
    MatrixError,
    adjoint,
    batched,
    first_rows,
    last_columns,
    library,
    matrices,
    product,
    square_matrices,
    unbatched,
    with_rule,
)

# ----- The library functions -----


def _of_each(function: Callable[..., np.ndarray], *arrays: np.ndarray) -> np.ndarray:
    """A function of matrices applied to each of a batch, in double precision; the last array has the result's shape."""
    out = np.zeros_like(arrays[-1])
    wide = [array.astype(np.result_type(array.dtype, np.float64), copy=False) for array in arrays]
    for position in np.ndindex(out.shape[:-2]):
        if out[position].size:
            out[position] = function(*[array[position] for array in wide])
    return out


def _expm(a: np.ndarray) -> np.ndarray:
    from scipy.linalg import expm

    return expm(a) if a.size else a


def _in_same_numbers(name: str, found: Any, a: np.ndarray) -> np.ndarray:
    if np.iscomplexobj(found) and not np.iscomplexobj(a):
        message = (
            f"A real matrix whose {name} is complex was given to {name}m. Convert it first, "
            "x.astype(np.complex128), if the complex result is wanted."
        )
        raise MatrixError(message)
    return found


def _logm(a: np.ndarray) -> np.ndarray:
    from scipy.linalg import logm

    return _of_each(lambda x: _in_same_numbers("log", logm(x), x), a)


def _sqrtm(a: np.ndarray) -> np.ndarray:
    from scipy.linalg import sqrtm

    return _of_each(lambda x: _in_same_numbers("sqrt", sqrtm(x), x), a)


SMALL = 16
"""Rows of matrices up to which the exponentials of all block matrices at once are fastest."""


def _expm_frechet(a: np.ndarray, direction: np.ndarray) -> np.ndarray:
    from scipy.linalg import expm, expm_frechet

    n = a.shape[-1]
    if 0 < n <= SMALL and direction.size:
        x, e = [one.astype(np.result_type(one.dtype, np.float64), copy=False) for one in (a, direction)]
        # The direction is scaled to the matrix, or else it would decide how far the exponential is scaled.
        size = np.linalg.norm(e, axis=(-2, -1), keepdims=True)
        scale = np.maximum(np.linalg.norm(x, axis=(-2, -1), keepdims=True), 1.0) / np.where(size == 0, 1.0, size)
        whole = np.zeros((*e.shape[:-2], 2 * n, 2 * n), np.result_type(x, e))
        whole[..., :n, :n], whole[..., n:, n:], whole[..., :n, n:] = x, x, scale * e
        return (expm(whole)[..., :n, n:] / scale).astype(direction.dtype)

    def one(x: np.ndarray, e: np.ndarray) -> Any:
        return expm_frechet(x, e, compute_expm=False)

    return _of_each(one, a, direction)


def _logm_frechet(a: np.ndarray, direction: np.ndarray) -> np.ndarray:
    from scipy.linalg import logm

    def one(x: np.ndarray, e: np.ndarray) -> np.ndarray:
        n, size = len(x), float(np.linalg.norm(e))
        if size == 0:
            return e
        # The direction is scaled to the matrix, so that the block matrix is as well conditioned as it can be.
        scale = float(np.linalg.norm(x)) / size
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            whole: Any = logm(np.block([[x, scale * e], [np.zeros_like(x), x]]))
        return _in_same_numbers("log", whole[:n, n:], x) / scale

    return _of_each(one, a, direction)


def _solve_sylvester(a: np.ndarray, b: np.ndarray, q: np.ndarray) -> np.ndarray:
    from scipy.linalg import solve_sylvester

    return _of_each(solve_sylvester, a, b, q)


_FUNCTIONS = {
    name: library(name, lambda shape, dtype: (shape, dtype), function)
    for name, function in {
        "expm": _expm,
        "logm": _logm,
        "sqrtm": _sqrtm,
        "expm frechet": _expm_frechet,
        "logm frechet": _logm_frechet,
    }.items()
}
"""Functions of matrices, and their derivatives in a direction."""
SOLVE_SYLVESTER = HostFunction(
    "solve_sylvester", lambda inputs, params: (inputs[2].shape, inputs[2].dtype), _solve_sylvester
)


# ----- Derivatives -----


def _block(a: Node, b: Node | None, c: Node) -> Node:
    """[[a, b], [0, c]]."""
    nothing = zeros(a.shape, a.dtype)
    return concatenate([concatenate([a, b or nothing], 2), concatenate([nothing, c], 2)], 1)


def _function_node(name: str, a: Node) -> Node:
    return with_rule(host(_FUNCTIONS[name], (a,)), _function_formula, a, static=(name,))


def _function_formula(g: Node, value: Node, a: Node, name: str) -> list[Node | None]:
    return [_frechet_node(name, adjoint(a), g)]


def _frechet_node(name: str, a: Node, direction: Node) -> Node:
    """The derivative of a matrix function in a direction."""
    return with_rule(
        host(_FUNCTIONS[f"{name} frechet"], (a, direction)), _frechet_formula, a, direction, static=(name,)
    )


def _frechet_formula(g: Node, value: Node, a: Node, direction: Node, name: str) -> list[Node | None]:
    turned, n = adjoint(a), a.shape[-1]
    whole = _frechet_node(name, _block(turned, adjoint(direction), turned), _block(g, None, g))
    return [first_rows(last_columns(whole, n), n), _frechet_node(name, turned, g)]


def sylvester_node(a: Node, b: Node, q: Node) -> Node:
    """The x of `a @ x + x @ b = q`."""
    return with_rule(host(SOLVE_SYLVESTER, (a, b, q)), _sylvester_formula, a, b, q)


def _sylvester_formula(g: Node, x: Node, a: Node, b: Node, q: Node) -> list[Node | None]:
    w = sylvester_node(adjoint(a), adjoint(b), g)
    return [-product(w, adjoint(x)), -product(adjoint(x), w), w]


def _root_formula(g: Node, root: Node, a: Node) -> list[Node | None]:
    """From X X = A: X dX + dX X = dA (Higham 2008, section 6.1)."""
    turned = adjoint(root)
    return [sylvester_node(turned, turned, g)]


# ----- What users call -----


def expm(A: Any) -> Tensor:
    """Exponentials of square matrices.

    Parameters
    ----------
    A : array-like, shape (..., n, n)

    Returns
    -------
    Tensor, shape (..., n, n)

    Raises
    ------
    ShapeError
        If there are no square matrices.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.numpy.expm(nb.Tensor(np.array([[0.0, 1.0], [0.0, 0.0]]))).tolist()
    [[1.0, 1.0], [0.0, 1.0]]
    """
    node = square_matrices("expm", A)
    return wrap(unbatched(_function_node("expm", batched(node)), node.shape, node))


def logm(A: Any) -> Tensor:
    """Principal logarithms of square matrices without eigenvalues on the negative real axis.

    Parameters
    ----------
    A : array-like, shape (..., n, n)

    Returns
    -------
    Tensor, shape (..., n, n)
        Of the dtype of the matrices: a real matrix whose logarithm is complex has to be converted first.

    Raises
    ------
    ShapeError
        If there are no square matrices.
    MatrixError
        If a real matrix has a complex logarithm.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.numpy.logm(nb.Tensor(np.eye(2))).tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    node = square_matrices("logm", A)
    return wrap(unbatched(_function_node("logm", batched(node)), node.shape, node))


def sqrtm(A: Any) -> Tensor:
    """Principal square roots of square matrices; as `logm` about complex results, and differentiable where regular."""
    node = square_matrices("sqrtm", A)
    matrix = batched(node)
    return wrap(unbatched(with_rule(host(_FUNCTIONS["sqrtm"], (matrix,)), _root_formula, matrix), node.shape, node))


def solve_sylvester(a: Any, b: Any, q: Any) -> Tensor:
    """The x of `a @ x + x @ b = q`.

    Parameters
    ----------
    a : array-like, shape (..., m, m)
    b : array-like, shape (..., n, n)
    q : array-like, shape (..., m, n)
        Leading axes broadcast.

    Returns
    -------
    Tensor, shape (..., m, n)

    Raises
    ------
    ShapeError
        If the shapes do not fit.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.numpy.solve_sylvester(nb.Tensor(np.eye(1)), np.eye(1), np.ones((1, 1))).tolist()
    [[0.5]]
    """
    first, second = square_matrices("solve_sylvester", a), square_matrices("solve_sylvester", b)
    left, right, sides = promote([first, second, matrices("solve_sylvester", q)])
    m, n = sides.shape[-2:]
    if left.shape[-1] != m or right.shape[-1] != n:
        message = (
            f"solve_sylvester needs a q of shape ({left.shape[-1]}, {right.shape[-1]}) for matrices of shapes "
            f"{left.shape} and {right.shape}, but it has shape {sides.shape}."
        )
        raise ShapeError(message)
    lead = common_shape([left.shape[:-2], right.shape[:-2], sides.shape[:-2]])
    wide = [batched(broadcast(node, (*lead, *node.shape[-2:]))) for node in (left, right, sides)]
    return wrap(unbatched(sylvester_node(wide[0], wide[1], wide[2]), (*lead, m, n), sides))
