"""Layers of matrix products and tables, and the ones that only pass on: Dense, Embedding, Flatten, Identity, Dropout.

In: sizes and initial values; then arrays with any leading axes. Out: Cells. Called by users.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, RangeError, ShapeError
from ..functions.linalg.matrix_products import matmul_node
from ..graph.builders import transpose
from ..graph.ir import elementwise
from ..ops.gathering import gather
from ..ops.random_tensors import dropout
from ..ops.shape_functions import flatten
from ..record.as_node import as_node, wrap
from ..record.promotion import promote
from ..record.tensor import Tensor
from .activation_layers import get_activation
from .cell import Cell
from .layer_arguments import default_bias, default_weight, flag, parameter, part, positive, real, whole
from .layer_forms import WithForms


class Dense(WithForms):
    """`activation(x @ weight.T + bias)`, over the last axis.

    Parameters
    ----------
    in_channels, out_channels : int
        The extent of the last axis before and after.
    weight_init, bias_init : str, number, Initializer, Tensor or ndarray, optional
        As `initializer` takes them. By default uniform up to `1 / sqrt(in_channels)`.
    has_bias : bool
    activation : str or Cell, optional
        A name that `get_activation` knows, or a Cell.
    dtype : dtype
        Of the Parameters.

    Attributes
    ----------
    weight : Parameter, shape (out_channels, in_channels)
    bias : Parameter, shape (out_channels,)
        None without bias.

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        For arguments that cannot be used.

    Examples
    --------
    >>> import nbgrad as nb
    >>> net = nb.nn.Dense(2, 3, weight_init="ones", bias_init=nb.Tensor([0.0, 1.0, 2.0]))
    >>> net
    Dense(input_channels=2, output_channels=3, has_bias=True)
    >>> print(net(nb.Tensor([[1.0, 2.0], [3.0, 4.0]])))
    [[3. 4. 5.]
     [7. 8. 9.]]
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        weight_init: Any = None,
        bias_init: Any = None,
        has_bias: bool = True,
        activation: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__()
        self.in_channels = positive(in_channels, "in_channels")
        self.out_channels = positive(out_channels, "out_channels")
        self.has_bias = flag(has_bias, "has_bias")
        if weight_init is None:
            weight_init = default_weight()
        self.weight = parameter(weight_init, (self.out_channels, self.in_channels), dtype)
        self.bias = None
        if has_bias:
            bias_init = default_bias(self.in_channels) if bias_init is None else bias_init
            self.bias = parameter(bias_init, (self.out_channels,), dtype)
        self.activation = _activation(activation)
        self.activation_flag = self.activation is not None

    def construct(self, x: Any) -> Tensor:
        """Apply the layer.

        Parameters
        ----------
        x : array-like, shape (..., in_channels)

        Returns
        -------
        Tensor, shape (..., out_channels)

        Raises
        ------
        ShapeError
            If the last axis has another extent.
        """
        node = as_node(x)
        if not node.shape or node.shape[-1] != self.in_channels:
            message = (
                f"The input of Dense must have {self.in_channels} elements in its last axis (in_channels), but has "
                f"shape {node.shape}."
            )
            raise ShapeError(message)
        y = matmul_node(node, transpose(self.weight._node, (1, 0)))
        if self.bias is not None:
            y = elementwise("add", *promote([y, self.bias._node]))
        return wrap(y) if self.activation is None else self.activation(wrap(y))

    def extend_repr(self) -> str:
        """The sizes."""
        text = f"input_channels={self.in_channels}, output_channels={self.out_channels}, has_bias={self.has_bias}"
        return text if self.activation is None else f"{text}, activation={self.activation}"


def _activation(given: Any) -> Cell | None:
    """The Cell of an activation that is given as a name or as a Cell."""
    if given is None or isinstance(given, Cell):
        return given
    if isinstance(given, str):
        return get_activation(given)
    message = f"activation must be a name or a Cell, such as 'relu' or nn.ReLU(), but got {type(given).__name__}."
    raise DtypeError(message)


class Embedding(Cell):
    """A row of a table for every index.

    Parameters
    ----------
    vocab_size, embedding_size : int
        The rows and columns of the table.
    use_one_hot : bool
        Has no effect: rows are looked up, with the result of a product with one-hot vectors.
    embedding_table : str, number, Initializer, Tensor or ndarray
        The initial table.
    dtype : dtype
    padding_idx : int, optional
        A row that starts as zeros.

    Attributes
    ----------
    embedding_table : Parameter, shape (vocab_size, embedding_size)

    Raises
    ------
    ArgumentError, DtypeError, ShapeError, RangeError
        For arguments that cannot be used.

    Notes
    -----
    Differs from `torch.nn.Embedding`: training changes the row `padding_idx` like any other, as in MindSpore.

    Examples
    --------
    >>> import nbgrad as nb
    >>> table = nb.nn.Embedding(3, 2, embedding_table=nb.Tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]))
    >>> print(table(nb.Tensor([2, 0, 2])))
    [[4. 5.]
     [0. 1.]
     [4. 5.]]
    """

    def __init__(
        self,
        vocab_size: int,
        embedding_size: int,
        use_one_hot: bool = False,
        embedding_table: Any = "normal",
        dtype: Any = np.float32,
        padding_idx: int | None = None,
    ) -> None:
        super().__init__()
        self.vocab_size = positive(vocab_size, "vocab_size")
        self.embedding_size = positive(embedding_size, "embedding_size")
        self.use_one_hot = flag(use_one_hot, "use_one_hot")
        self.padding_idx = padding_idx
        table = parameter(embedding_table, (self.vocab_size, self.embedding_size), dtype)
        if padding_idx is not None:
            if not 0 <= whole(padding_idx, "padding_idx") < self.vocab_size:
                message = f"padding_idx must lie between 0 and {self.vocab_size - 1}, but got {padding_idx}."
                raise RangeError(message)
            values = table.asnumpy()
            values[padding_idx] = 0
            table.set_data(values)
        self.embedding_table = table

    def construct(self, ids: Any) -> Tensor:
        """Look rows up.

        Parameters
        ----------
        ids : array-like of int

        Returns
        -------
        Tensor, shape (*ids.shape, embedding_size)

        Raises
        ------
        DtypeError, RangeError
            If indices are no integers, or no rows.
        """
        return gather(self.embedding_table, ids, 0)

    def extend_repr(self) -> str:
        """The sizes."""
        return (
            f"vocab_size={self.vocab_size}, embedding_size={self.embedding_size}, use_one_hot={self.use_one_hot}, "
            f"dtype={self.embedding_table.dtype}, padding_idx={self.padding_idx}"
        )


class Flatten(Cell):
    """Axes made one; by default all but the first, which counts the examples of a batch.

    Parameters
    ----------
    start_dim, end_dim : int

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.nn.Flatten()(nb.ops.ones((2, 3, 4))).shape
    (2, 12)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = whole(start_dim, "start_dim"), whole(end_dim, "end_dim")

    def construct(self, x: Any) -> Tensor:
        """Join the axes."""
        return flatten(x, start_dim=self.start_dim, end_dim=self.end_dim)


class Identity(Cell):
    """The input, unchanged."""

    def construct(self, x: Any) -> Any:
        """Return the input."""
        return x


class Dropout(Cell):
    """While training, elements are set to zero at random and the others scaled such that the mean stays.

    Parameters
    ----------
    keep_prob : float
        MindSpore's older form: the probability that an element stays. Not used if `p` is given.
    p : float, optional
        The probability that an element becomes zero.
    dtype : dtype
        Has no effect: the result has the input's dtype.

    Raises
    ------
    ArgumentError, DtypeError
        If a probability is no number, or not in [0, 1) for `p` and in (0, 1] for `keep_prob`.

    Notes
    -----
    Every call draws anew, also under `jit`. `set_train()` turns the layer on; a new Cell does not train.

    Examples
    --------
    >>> import nbgrad as nb
    >>> layer, x = nb.nn.Dropout(p=0.5), nb.Tensor([1.0, 2.0])
    >>> print(layer(x))
    [1. 2.]
    """

    def __init__(self, keep_prob: float = 0.5, p: float | None = None, dtype: Any = np.float32) -> None:
        super().__init__()
        del dtype
        if p is None:
            self.keep_prob = real(keep_prob, "keep_prob")
            if not 0 < self.keep_prob <= 1:
                message = f"keep_prob must be more than 0 and at most 1, but got {keep_prob!r}."
                raise ArgumentError(message)
            self.p = 1.0 - self.keep_prob
        else:
            self.p = part(p, "p", closed=False)
            self.keep_prob = 1.0 - self.p

    def construct(self, x: Any) -> Tensor:
        """Drop elements, or return the input unless training."""
        if not self.training or self.p == 0:
            return wrap(as_node(x))
        return dropout(x, self.p)

    def extend_repr(self) -> str:
        """The probability."""
        return f"p={self.p}"
