"""Attention: weighted means of values, where queries and keys give the weights.

In: queries, keys and values with any leading axes. Out: Tensors. Called by users and by nbgrad.nn. A composition of two
matrix products and a softmax.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from ..functions.arrays import creation, reductions, shaping
from ..functions.elementwise import pointwise as elementwise
from ..functions.elementwise import special_functions as special
from ..functions.linalg import matrix_products as linear_algebra
from ..graph.ir import BOOL
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import inexact
from ..record.promotion import promote
from ..record.tensor import Tensor
from .docstrings import documented


@documented
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
) -> Tensor:
    """`softmax(query @ key.T / sqrt(E)) @ value` (Vaswani et al. 2017).

    query : array-like, shape (..., L, E)
    key : array-like, shape (..., S, E)
    value : array-like, shape (..., S, V)
    attn_mask : array-like, optional
        Broadcasts to (..., L, S). Booleans: the keys that a query sees. Floats: added to the scores.
    dropout_p : float
        The probability with which a weight is dropped. There is no training mode here: pass 0 to evaluate.
    is_causal : bool
        Query i sees the keys up to i only; not together with `attn_mask`.
    -> Tensor, shape (..., L, V)
        A query that sees no key gets zeros.
    ShapeError, ArgumentError : If shapes do not fit, or both kinds of masks are given.

    >>> import numpy as np, nbgrad as nb
    >>> q = nb.numpy.zeros((2, 3))
    >>> nb.ops.scaled_dot_product_attention(q, q, np.array([[1.0], [3.0]]), is_causal=True).asnumpy()
    array([[1.],
           [2.]])
    """
    q, k, v = [wrap(node) for node in promote([inexact(as_node(x)) for x in (query, key, value)])]
    if min(q.ndim, k.ndim, v.ndim) < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        message = (
            "Attention needs a query of shape (..., L, E), a key of shape (..., S, E) and a value of shape "
            f"(..., S, V), but got {q.shape}, {k.shape} and {v.shape}."
        )
        raise ShapeError(message)
    if is_causal and attn_mask is not None:
        message = "Give attention either attn_mask or is_causal=True, not both."
        raise ArgumentError(message)
    scores = linear_algebra.matmul(q * (1.0 / math.sqrt(max(1, q.shape[-1]))), shaping.swapaxes(k, -1, -2))
    if is_causal:
        attn_mask = creation.tri(q.shape[-2], k.shape[-2], 0, dtype=np.bool_)
    if attn_mask is None:
        weights = special.softmax(scores)
    else:
        weights = _masked_softmax(scores, attn_mask)
    if dropout_p:
        from .random_tensors import dropout

        weights = dropout(weights, dropout_p)
    return linear_algebra.matmul(weights, v)


def _masked_softmax(scores: Tensor, mask: Any) -> Tensor:
    """Softmax over the last axis of what a mask leaves; zeros where it leaves nothing."""
    given = wrap(as_node(mask))
    widths = zip(reversed(given.shape), reversed(scores.shape), strict=False)
    if given.ndim > scores.ndim or any(n not in (1, m) for n, m in widths):
        message = f"attn_mask has shape {given.shape}, which does not broadcast to that of the scores, {scores.shape}."
        raise ShapeError(message)
    if given.dtype != BOOL:
        scores = scores + given.astype(scores.dtype)
        seen = scores != -np.inf
    else:
        seen = shaping.broadcast_to(given, scores.shape)
    some = reductions.any(seen, axis=-1, keepdims=True)
    scores = elementwise.where(seen, scores, -np.inf)
    weights = special.softmax(elementwise.where(some, scores, 0.0))
    return elementwise.where(some, weights, 0.0)
