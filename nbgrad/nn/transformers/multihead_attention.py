"""Attention with several heads as a layer.

In: sizes; then queries, keys and values. Out: a Cell. Called by users. The attention itself is
`nbgrad.ops.attention.scaled_dot_product_attention`; here are the projections, the heads and the masks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, ShapeError
from ...functions.analysis.statistics import mean
from ...functions.arrays.creation import eye
from ...functions.linalg.matrix_products import matmul_node
from ...graph.builders import cast, reshape, transpose
from ...graph.ir import BOOL, Node, elementwise
from ...ops.attention import scaled_dot_product_attention
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import cut, inexact, scalar
from ...record.promotion import promote
from ...record.tensor import Tensor
from ..cell import Cell
from ..dense import Dense
from ..layer_arguments import default_weight, flag, parameter, part, positive


class MultiheadAttention(Cell):
    """Attention of several heads side by side (Vaswani et al. 2017).

    Parameters
    ----------
    embed_dim : int
        The size of queries and outputs.
    num_heads : int
        Divides `embed_dim`.
    dropout : float
        The probability with which a weight is dropped while training.
    has_bias : bool
    add_bias_kv, add_zero_attn : bool
        Not supported: they must be false.
    kdim, vdim : int, optional
        The sizes of keys and values; `embed_dim` by default.
    batch_first : bool
        Whether arrays are (N, L, E) instead of (L, N, E).
    dtype : dtype

    Attributes
    ----------
    in_proj_weight : Parameter, shape (3 * embed_dim, embed_dim)
        For queries, keys and values below one another. With `kdim` or `vdim` there are `q_proj_weight`,
        `k_proj_weight` and `v_proj_weight` instead.
    in_proj_bias : Parameter, shape (3 * embed_dim,)
    out_proj : Dense

    Raises
    ------
    ArgumentError, DtypeError
        For arguments that cannot be used.

    Examples
    --------
    >>> import nbgrad as nb
    >>> net = nb.nn.MultiheadAttention(4, 2, batch_first=True)
    >>> x = nb.ops.ones((3, 5, 4))
    >>> output, weights = net(x, x, x)
    >>> output.shape, weights.shape
    ((3, 5, 4), (3, 5, 5))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        has_bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__()
        self.embed_dim = positive(embed_dim, "embed_dim")
        self.num_heads = positive(num_heads, "num_heads")
        if self.embed_dim % self.num_heads:
            message = f"num_heads must divide embed_dim={embed_dim}, but is {num_heads}."
            raise ArgumentError(message)
        for name, value in (("add_bias_kv", add_bias_kv), ("add_zero_attn", add_zero_attn)):
            if flag(value, name):
                message = (
                    f"{name}=True is not supported. Join what it adds to key and value yourself, with nb.ops.concat."
                )
                raise ArgumentError(message)
        self.dropout = part(dropout, "dropout", closed=False)
        self.has_bias = flag(has_bias, "has_bias")
        self.kdim = self.embed_dim if kdim is None else positive(kdim, "kdim")
        self.vdim = self.embed_dim if vdim is None else positive(vdim, "vdim")
        self.batch_first = flag(batch_first, "batch_first")
        self.head_dim = self.embed_dim // self.num_heads
        self.in_proj_bias = None
        self._together = self.kdim == self.vdim == self.embed_dim
        if self._together:
            self.in_proj_weight = parameter("xavier_uniform", (3 * self.embed_dim, self.embed_dim), dtype)
        else:
            self.q_proj_weight = parameter("xavier_uniform", (self.embed_dim, self.embed_dim), dtype)
            self.k_proj_weight = parameter("xavier_uniform", (self.embed_dim, self.kdim), dtype)
            self.v_proj_weight = parameter("xavier_uniform", (self.embed_dim, self.vdim), dtype)
        if has_bias:
            self.in_proj_bias = parameter("zeros", (3 * self.embed_dim,), dtype)
        self.out_proj = Dense(self.embed_dim, self.embed_dim, default_weight(), "zeros", has_bias=has_bias, dtype=dtype)

    def construct(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend.

        Parameters
        ----------
        query : array-like, shape (L, N, embed_dim), or (L, embed_dim)
            (N, L, embed_dim) with `batch_first`; keys and values likewise.
        key : array-like, shape (S, N, kdim), or (S, kdim)
        value : array-like, shape (S, N, vdim), or (S, vdim)
        key_padding_mask : array-like, shape (N, S), or (S,), optional
            Booleans: true where a key is not looked at. Floats: added to the scores.
        need_weights : bool
            Whether to give the weights too.
        attn_mask : array-like, shape (L, S) or (N * num_heads, L, S), optional
            As `key_padding_mask`, for pairs of query and key.
        average_attn_weights : bool
            Whether the weights are the mean over heads.

        Returns
        -------
        output : Tensor, of the shape of `query`
        weights : Tensor, shape (N, L, S), or (N, num_heads, L, S) without `average_attn_weights`
            Before dropout. None without `need_weights`; without N if the query has none.

        Raises
        ------
        ShapeError, DtypeError
            If shapes or masks do not fit.
        """
        q, k, v = promote([inexact(as_node(x)) for x in (query, key, value)])
        sizes = (self.embed_dim, self.kdim, self.vdim)
        many = q.ndim == 3
        if q.ndim not in (2, 3) or any(
            x.ndim != q.ndim or x.shape[-1] != n for x, n in zip((q, k, v), sizes, strict=True)
        ):
            message = (
                f"{self.cls_name} needs query, key and value of shape (L, N, E) or (L, E) with last axes of {sizes}, "
                f"but got {q.shape}, {k.shape} and {v.shape}."
            )
            raise ShapeError(message)
        if not many:
            q, k, v = [reshape(x, (1, *x.shape)) for x in (q, k, v)]
        elif not self.batch_first:
            q, k, v = [transpose(x, (1, 0, 2)) for x in (q, k, v)]
        if not q.shape[0] == k.shape[0] == v.shape[0] or k.shape[1] != v.shape[1]:
            message = (
                f"{self.cls_name} needs equally many batches of query, key and value, and as many keys as values, but "
                f"got {np.shape(query)}, {np.shape(key)} and {np.shape(value)}."
            )
            raise ShapeError(message)
        q, k, v = [self._heads(x, at) for at, x in enumerate((q, k, v))]
        mask = self._mask(key_padding_mask, attn_mask, (q.shape[0], q.shape[2], k.shape[2]), many, q)
        dropped = self.dropout if self.training else 0.0
        found = scaled_dot_product_attention(wrap(q), wrap(k), wrap(v), mask, dropped)
        joined = reshape(transpose(as_node(found), (0, 2, 1, 3)), (q.shape[0], q.shape[2], self.embed_dim))
        output = as_node(self.out_proj(wrap(joined)))
        if not many:
            output = reshape(output, output.shape[1:])
        elif not self.batch_first:
            output = transpose(output, (1, 0, 2))
        if not need_weights:
            return wrap(output), None
        # Attention to the identity matrix is the weights; nothing is computed unless they are used.
        weights = scaled_dot_product_attention(wrap(q), wrap(k), eye(k.shape[2], dtype=k.dtype), mask)
        if average_attn_weights:
            weights = mean(weights, axis=1)
        return wrap(output), weights if many else weights[0]

    def _heads(self, x: Node, at: int) -> Node:
        """The projection of queries (0), keys (1) or values (2) as (N, heads, L, head_dim)."""
        rows = (at * self.embed_dim, self.embed_dim)
        if self._together:
            weight = cut(self.in_proj_weight._node, 0, *rows)
        else:
            weight = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)[at]._node
        y = matmul_node(x, transpose(weight, (1, 0)))
        if self.in_proj_bias is not None:
            y = elementwise("add", *promote([y, cut(self.in_proj_bias._node, 0, *rows)]))
        y = reshape(y, (*x.shape[:2], self.num_heads, self.head_dim))
        return transpose(y, (0, 2, 1, 3))

    def _mask(
        self, key_padding_mask: Any, attn_mask: Any, sizes: tuple[int, int, int], many: bool, like: Node
    ) -> Tensor | None:
        """Both masks as one that is added to the scores, (N or 1, heads or 1, L or 1, S); None without any."""
        batch, queries, keys = sizes
        total: Node | None = None
        if key_padding_mask is not None:
            node = as_node(key_padding_mask)
            wanted = (batch, keys) if many else (keys,)
            if node.shape != wanted:
                message = f"key_padding_mask must have shape {wanted}, but has {node.shape}."
                raise ShapeError(message)
            total = reshape(_added(node, like, "key_padding_mask"), (batch, 1, 1, keys))
        if attn_mask is not None:
            node = as_node(attn_mask)
            shapes = {
                (queries, keys): (1, 1, queries, keys),
                (batch * self.num_heads, queries, keys): (batch, self.num_heads, queries, keys),
            }
            if node.shape not in shapes:
                message = f"attn_mask must have shape {' or '.join(map(str, shapes))}, but has {node.shape}."
                raise ShapeError(message)
            pairs = reshape(_added(node, like, "attn_mask"), shapes[node.shape])
            total = pairs if total is None else elementwise("add", total, pairs)
        return None if total is None else wrap(total)

    def extend_repr(self) -> str:
        """The sizes."""
        return f"embed_dim={self.embed_dim}, num_heads={self.num_heads}"


def _added(mask: Node, like: Node, name: str) -> Node:
    """A mask as numbers that are added to scores.

    Raises
    ------
    DtypeError
        If it holds neither booleans nor floats.
    """
    if mask.dtype == BOOL:
        return elementwise("select", mask, scalar(-np.inf, like.dtype), scalar(0.0, like.dtype))
    if mask.dtype.kind != "f":
        message = f"{name} must hold booleans or floats, but has dtype {mask.dtype}."
        raise DtypeError(message)
    return cast(mask, like.dtype)
