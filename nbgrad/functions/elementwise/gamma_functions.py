"""Functions of `scipy.special` around the gamma function that are not ufuncs, so that SciPy cannot hand them over.

In: array-likes. Out: Tensors. Called by users, as `nb.ops.polygamma` and so on; the ufuncs of `scipy.special` (`gamma`,
`beta`, `binom`, ...) work on Tensors as they are.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import RangeError
from ...graph.builders import cast
from ...graph.formulas import choose
from ...graph.ir import Node, elementwise
from ...graph.shapes import joint_shape
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import filled, inexact, integer
from ...record.promotion import convert, loop_dtypes
from ...record.tensor import Tensor
from .scipy_functions import apply


def polygamma(n: int, x: Any) -> Tensor:
    """The n-th derivative of `digamma`, elementwise; 0 for `digamma` itself.

    Parameters
    ----------
    n : int
        Not negative.
    x : array-like

    Returns
    -------
    Tensor

    Raises
    ------
    RangeError
        If n is negative.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.grad(lambda x: nb.ops.polygamma(0, x))(np.float64(1.0)).round(9)    # pi**2 / 6
    np.float64(1.644934067)
    """
    order = integer(n, "n")
    if order < 0:
        message = f"polygamma needs an order of 0 or more, but got {order}."
        raise RangeError(message)
    node = inexact(as_node(x))
    if order == 0:
        return wrap(elementwise("digamma", node))
    return wrap(elementwise("polygamma", filled(node.shape, float(order), node.dtype), node))


def multigammaln(a: Any, d: int) -> Tensor:
    """The logarithm of the gamma function of dimension d, elementwise, for `a` above (d - 1) / 2.

    Parameters
    ----------
    a : array-like
    d : int
        At least 1.

    Returns
    -------
    Tensor
        NaN where `a` is too small.

    Raises
    ------
    RangeError
        If d is less than 1.

    Notes
    -----
    The logarithm of pi**(d (d-1) / 4) times the product of gamma(a - k/2) for k below d (Anderson, An Introduction to
    Multivariate Statistical Analysis, 7.2).

    Examples
    --------
    >>> import nbgrad as nb
    >>> round(float(nb.ops.multigammaln(2.0, 1)), 12)
    0.0
    """
    count = integer(d, "d")
    if count < 1:
        message = f"multigammaln needs a dimension of 1 or more, but got {count}."
        raise RangeError(message)
    node = inexact(as_node(a))
    total = elementwise("gammaln", node)
    for k in range(1, count):
        total = total + elementwise("gammaln", node - 0.5 * k)
    total = total + count * (count - 1) / 4 * math.log(math.pi)
    return wrap(choose(elementwise("less_equal", node, 0.5 * (count - 1)), math.nan, total, node))


def factorial(n: Any) -> Tensor:
    """gamma(n + 1), elementwise, also between the integers; 0 where n is negative, as in SciPy.

    Examples
    --------
    >>> import nbgrad as nb
    >>> float(nb.ops.factorial(4.0))
    24.0
    """
    node = inexact(as_node(n))
    negative = elementwise("less", node, 0)
    return wrap(choose(negative, 0, apply("gamma", choose(negative, 1, node, node) + 1), node))


def comb(N: Any, k: Any) -> Tensor:
    """The number of ways to choose k of N, elementwise, also between the integers; 0 where there is none.

    Examples
    --------
    >>> import nbgrad as nb
    >>> float(nb.ops.comb(5.0, 2.0))
    10.0
    """
    total, part = as_node(N), as_node(k)
    dtype = loop_dtypes(np.divide, [total, part])[0]
    shape = joint_shape(total.shape, part.shape)
    nodes: list[Node] = [cast(convert(node, dtype), dtype) for node in (total, part)]
    some = elementwise(
        "logical_and", elementwise("less_equal", nodes[1], nodes[0]), elementwise("greater_equal", nodes[1], 0)
    )
    some = elementwise("logical_and", some, elementwise("greater_equal", nodes[0], 0))
    inside = [choose(some, node, 0, node) for node in nodes]
    value = apply("binom", *inside)
    assert value.shape == shape
    return wrap(choose(some, value, 0, value))
