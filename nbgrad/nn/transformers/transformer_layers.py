"""Transformers: a block of an encoder or a decoder, stacks of blocks, and the whole network.

In: sizes; then sequences and masks. Out: Cells. Called by users. The blocks are those of Vaswani et al., Attention is
all you need (2017), with layer norms after each part, or before it with `norm_first` (Xiong et al. 2020). Masks are as
for `MultiheadAttention`: booleans that are true where nothing is looked at, or floats that are added to the scores.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import ArgumentError, ShapeError
from ...functions.arrays.creation import triu
from ...ops.activations import gelu, relu
from ...record.tensor import Tensor
from ..cell import Cell
from ..containers import CellList
from ..dense import Dense, Dropout
from ..layer_arguments import flag, positive
from ..normalisation_layers import LayerNorm
from .multihead_attention import MultiheadAttention

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {"relu": relu, "gelu": gelu}


def activation_of(activation: Any) -> Callable[[Any], Any]:
    """The function of a name; a function, or a Cell, is itself.

    Raises
    ------
    ArgumentError
        For anything else.
    """
    if callable(activation):
        return activation
    if isinstance(activation, str) and activation in ACTIVATIONS:
        return ACTIVATIONS[activation]
    message = f'activation must be "relu", "gelu" or a function, but is {activation!r}.'
    raise ArgumentError(message)


class _Block(Cell):
    """The parts that both kinds of blocks have: attention of a sequence to itself, and two layers for each element."""

    parts = 2
    """Layer norms, each with a part of the block."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__()
        size, middle = positive(d_model, "d_model"), positive(dim_feedforward, "dim_feedforward")
        self.norm_first = flag(norm_first, "norm_first")
        self.activation = activation_of(activation)
        options = {"dropout": dropout, "batch_first": batch_first, "dtype": dtype}
        self.self_attn = MultiheadAttention(size, nhead, **options)
        if self.parts == 3:
            self.multihead_attn = MultiheadAttention(size, nhead, **options)
        self.linear1 = Dense(size, middle, dtype=dtype)
        self.dropout = Dropout(p=dropout)
        self.linear2 = Dense(middle, size, dtype=dtype)
        for number in range(1, self.parts + 1):
            setattr(self, f"norm{number}", LayerNorm((size,), epsilon=layer_norm_eps, dtype=dtype))
            setattr(self, f"dropout{number}", Dropout(p=dropout))

    def _after(self, number: int, x: Any, part: Callable[[Any], Any]) -> Any:
        """A sequence with what a part makes of it added, and normalised before or after."""
        norm, dropout = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        return x + dropout(part(norm(x))) if self.norm_first else norm(x + dropout(part(x)))

    def _fed_forward(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Block):
    """A block of an encoder: attention of a sequence to itself, then two layers for each of its elements.

    Parameters
    ----------
    d_model : int
        The size of an element of a sequence.
    nhead : int
        The heads of attention; divides `d_model`.
    dim_feedforward : int
        The size between the two layers.
    dropout : float
        The probability with which an element is dropped while training.
    activation : {"relu", "gelu"} or callable
        Between the two layers.
    layer_norm_eps : float
    batch_first : bool
        Whether arrays are (N, S, E) instead of (S, N, E).
    norm_first : bool
        Whether sequences are normalised before attention and layers instead of after them.
    dtype : dtype

    Raises
    ------
    ArgumentError, DtypeError
        For arguments that cannot be used.

    Examples
    --------
    >>> import nbgrad as nb
    >>> layer = nb.nn.TransformerEncoderLayer(4, 2, dim_feedforward=8)
    >>> layer(nb.ops.ones((5, 3, 4))).shape
    (5, 3, 4)
    """

    def construct(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None) -> Tensor:
        """Apply the block.

        Parameters
        ----------
        src : array-like, shape (S, N, E), or (S, E)
            (N, S, E) with `batch_first`.
        src_mask : array-like, shape (S, S) or (N * nhead, S, S), optional
        src_key_padding_mask : array-like, shape (N, S), or (S,), optional

        Returns
        -------
        Tensor, of the shape of `src`

        Raises
        ------
        ShapeError, DtypeError
            If shapes or masks do not fit.
        """
        x = self._after(1, src, lambda x: self.self_attn(x, x, x, src_key_padding_mask, False, src_mask)[0])
        return self._after(2, x, self._fed_forward)


class TransformerDecoderLayer(_Block):
    """A block of a decoder: attention to itself, attention to the encoder's sequence, then two layers for each element.

    Parameters are those of `TransformerEncoderLayer`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> layer = nb.nn.TransformerDecoderLayer(4, 2, dim_feedforward=8)
    >>> layer(nb.ops.ones((2, 3, 4)), nb.ops.ones((5, 3, 4))).shape
    (2, 3, 4)
    """

    parts = 3

    def construct(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
    ) -> Tensor:
        """Apply the block.

        Parameters
        ----------
        tgt : array-like, shape (T, N, E), or (T, E)
            (N, T, E) with `batch_first`.
        memory : array-like, shape (S, N, E), or (S, E)
            What the encoder gives.
        tgt_mask : array-like, shape (T, T) or (N * nhead, T, T), optional
        memory_mask : array-like, shape (T, S) or (N * nhead, T, S), optional
        tgt_key_padding_mask : array-like, shape (N, T), or (T,), optional
        memory_key_padding_mask : array-like, shape (N, S), or (S,), optional

        Returns
        -------
        Tensor, of the shape of `tgt`

        Raises
        ------
        ShapeError, DtypeError
            If shapes or masks do not fit.
        """
        x = self._after(1, tgt, lambda x: self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask)[0])
        x = self._after(
            2,
            x,
            lambda x: self.multihead_attn(x, memory, memory, memory_key_padding_mask, False, memory_mask)[0],
        )
        return self._after(3, x, self._fed_forward)


class _Stack(Cell):
    """Copies of a block, one after the other."""

    def __init__(self, layer: Cell, num_layers: int, norm: Cell | None = None) -> None:
        super().__init__()
        self.num_layers = positive(num_layers, "num_layers")
        self.layers = CellList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.norm = norm

    def _through(self, x: Any, *others: Any) -> Any:
        for layer in self.layers:
            x = layer(x, *others)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """Several blocks of an encoder, which begin as copies of one.

    Parameters
    ----------
    encoder_layer : TransformerEncoderLayer
    num_layers : int
    norm : Cell, optional
        Applied at the end.

    Examples
    --------
    >>> import nbgrad as nb
    >>> encoder = nb.nn.TransformerEncoder(nb.nn.TransformerEncoderLayer(4, 2, 8), 3)
    >>> encoder(nb.ops.ones((5, 3, 4))).shape, len(encoder.trainable_params())
    ((5, 3, 4), 36)
    """

    def __init__(self, encoder_layer: Cell, num_layers: int, norm: Cell | None = None) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def construct(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None) -> Tensor:
        """Apply the blocks; arguments are those of `TransformerEncoderLayer`."""
        return self._through(src, src_mask, src_key_padding_mask)


class TransformerDecoder(_Stack):
    """Several blocks of a decoder, which begin as copies of one.

    Parameters
    ----------
    decoder_layer : TransformerDecoderLayer
    num_layers : int
    norm : Cell, optional
        Applied at the end.

    Examples
    --------
    >>> import nbgrad as nb
    >>> decoder = nb.nn.TransformerDecoder(nb.nn.TransformerDecoderLayer(4, 2, 8), 2)
    >>> decoder(nb.ops.ones((2, 3, 4)), nb.ops.ones((5, 3, 4))).shape
    (2, 3, 4)
    """

    def __init__(self, decoder_layer: Cell, num_layers: int, norm: Cell | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def construct(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
    ) -> Tensor:
        """Apply the blocks; arguments are those of `TransformerDecoderLayer`."""
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return self._through(tgt, memory, *masks)


class Transformer(Cell):
    """An encoder and a decoder that attends to what the encoder gives.

    Parameters
    ----------
    d_model, nhead : int
        As for `TransformerEncoderLayer`.
    num_encoder_layers, num_decoder_layers : int
        The blocks of each.
    dim_feedforward, dropout, activation : int, float, and str or callable
        As for `TransformerEncoderLayer`.
    custom_encoder, custom_decoder : Cell, optional
        In place of those made by the other arguments.
    layer_norm_eps, batch_first, norm_first : float and bool
        As for `TransformerEncoderLayer`.
    dtype : dtype

    Examples
    --------
    >>> import nbgrad as nb
    >>> net = nb.nn.Transformer(4, 2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=8)
    >>> causal = net.generate_square_subsequent_mask(2)
    >>> net(nb.ops.ones((5, 3, 4)), nb.ops.ones((2, 3, 4)), tgt_mask=causal).shape
    (2, 3, 4)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Any = "relu",
        custom_encoder: Cell | None = None,
        custom_decoder: Cell | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__()
        block = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, dtype)

        def norm() -> LayerNorm:
            return LayerNorm((d_model,), epsilon=layer_norm_eps, dtype=dtype)

        if custom_encoder is None:
            custom_encoder = TransformerEncoder(TransformerEncoderLayer(*block), num_encoder_layers, norm())
        if custom_decoder is None:
            custom_decoder = TransformerDecoder(TransformerDecoderLayer(*block), num_decoder_layers, norm())
        self.encoder, self.decoder = custom_encoder, custom_decoder
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def construct(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
    ) -> Tensor:
        """Encode `src`, and decode `tgt` beside it.

        Parameters
        ----------
        src : array-like, shape (S, N, E), or (S, E)
            (N, S, E) with `batch_first`; `tgt` likewise.
        tgt : array-like, shape (T, N, E), or (T, E)
        src_mask, tgt_mask, memory_mask : array-like, optional
            For pairs (S, S), (T, T) and (T, S); also one for each batch and head.
        src_key_padding_mask, tgt_key_padding_mask, memory_key_padding_mask : array-like, optional
            For keys: (N, S), (N, T) and (N, S).

        Returns
        -------
        Tensor, of the shape of `tgt`

        Raises
        ------
        ShapeError, DtypeError
            If shapes or masks do not fit.
        """
        shapes = np.shape(src), np.shape(tgt)
        if any(len(shape) not in (2, 3) or shape[-1] != self.d_model for shape in shapes):
            message = (
                f"{self.cls_name} needs src and tgt of shape (S, N, E) or (S, E) with E = {self.d_model}, its d_model, "
                f"but got {shapes[0]} and {shapes[1]}."
            )
            raise ShapeError(message)
        memory = self.encoder(src, src_mask, src_key_padding_mask)
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return self.decoder(tgt, memory, *masks)

    @staticmethod
    def generate_square_subsequent_mask(sz: int) -> Tensor:
        """A mask with which each element of a sequence looks at those before it, and at itself.

        Parameters
        ----------
        sz : int
            The length of the sequence.

        Returns
        -------
        Tensor, shape (sz, sz)
            float32: 0, and -inf above the diagonal.
        """
        return triu(np.full((sz, sz), -np.inf, np.float32), 1)
