"""PyTorch's recurrent modules, attention and transformers: those of `nbgrad.nn` with PyTorch's options and calls.

In: options; then Tensors, or packed sequences. Out: modules. Called by users, as names of `torch_names.nn`.
"""

from __future__ import annotations

from typing import Any

from ... import nn, ops
from ...errors import ArgumentError
from ...record.tensor import Tensor
from .module import Module
from .packed_sequences import PackedSequence

_WORDS = {"bias": "has_bias"}


def _states(hx: Any, change: Any) -> Any:
    """The states of a layer, each of them changed; None stays."""
    if hx is None:
        return None
    return tuple([change(one) for one in hx]) if isinstance(hx, tuple | list) else change(hx)


class _Recurrent(Module):
    """Recurrent modules, which take one sequence, a batch of them, or packed ones."""

    words = _WORDS
    batch_first: bool
    _names: tuple[tuple[str, ...], ...]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in [name for names in self._names for name in names]:
            if name in self._params:
                self._params.move_to_end(name)  # PyTorch lists the weights of one layer before those of the next

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Run over sequences.

        Parameters
        ----------
        input : Tensor, shape (T, N, input_size), (N, T, input_size) with `batch_first`, or (T, input_size)
            Or a PackedSequence.
        hx : Tensor, or a pair of them for an LSTM, optional
            The state to begin with; zeros by default.

        Returns
        -------
        output, hx
            The outputs of all steps, and the last state.
        """
        if isinstance(input, PackedSequence):
            padded = ops.swapaxes(input.padded, 0, 1) if self.batch_first else input.padded
            output, last = self.construct(padded, hx, Tensor(input.lengths))
            return input.with_padded(ops.swapaxes(output, 0, 1) if self.batch_first else output), last
        if input.ndim != 2:
            return self.construct(input, hx)
        axis = 0 if self.batch_first else 1
        output, last = self.construct(ops.unsqueeze(input, axis), _states(hx, lambda one: one[:, None]))
        return output.squeeze(axis), _states(last, lambda one: one[:, 0])


class LSTM(_Recurrent, nn.LSTM):
    """Long short-term memory.

    Parameters
    ----------
    input_size, hidden_size : int
    num_layers : int
    bias, batch_first : bool
    dropout : float
        Between layers.
    bidirectional : bool
    """


class GRU(_Recurrent, nn.GRU):
    """Gated recurrent units; parameters as `LSTM`."""


class RNN(_Recurrent, nn.RNN):
    """The recurrence of Elman; parameters as `LSTM`, and `nonlinearity` ("tanh" or "relu") after `num_layers`."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            input_size,
            hidden_size,
            num_layers,
            bias,
            batch_first,
            dropout,
            bidirectional,
            nonlinearity=nonlinearity,
            device=device,
            dtype=dtype,
        )


class _Step(Module):
    """One step of a recurrence, of one example or a batch."""

    words = _WORDS

    def forward(self, input: Any, hx: Any = None) -> Any:
        """One step from a state; zeros by default."""
        if input.ndim == 1:
            found = self.construct(input[None], _states(hx, lambda one: one[None]))
            return _states(found, lambda one: one[0])
        return self.construct(input, hx)


class LSTMCell(_Step, nn.LSTMCell):
    """One step of an LSTM: `LSTMCell(input_size, hidden_size, bias=True)`."""


class GRUCell(_Step, nn.GRUCell):
    """One step of a GRU: `GRUCell(input_size, hidden_size, bias=True)`."""


class RNNCell(_Step, nn.RNNCell):
    """One step of an RNN: `RNNCell(input_size, hidden_size, bias=True, nonlinearity="tanh")`."""


class MultiheadAttention(Module, nn.MultiheadAttention):
    """Attention of several heads side by side; `nbgrad.nn.MultiheadAttention` says more.

    Parameters
    ----------
    embed_dim, num_heads : int
    dropout : float
    bias : bool
    add_bias_kv, add_zero_attn : {False}
    kdim, vdim : int, optional
    batch_first : bool
    """

    words = _WORDS

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Any:
        """Attend: the output, and the weights or None; `is_causal` is a hint about `attn_mask`, which it needs."""
        if is_causal and attn_mask is None:
            message = "Need attn_mask if specifying the is_causal hint."
            raise ArgumentError(message)
        return self.construct(query, key, value, key_padding_mask, need_weights, attn_mask, average_attn_weights)


class _Hinted(Module):
    """Modules whose calls have hints about masks."""

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The output; hints (`is_causal`) say what a mask is, and have no effect."""
        return self.construct(*args, **{key: value for key, value in kwargs.items() if not key.endswith("is_causal")})


class TransformerEncoderLayer(_Hinted, nn.TransformerEncoderLayer):
    """A block of an encoder; parameters as `nbgrad.nn.TransformerEncoderLayer`."""


class TransformerDecoderLayer(_Hinted, nn.TransformerDecoderLayer):
    """A block of a decoder; parameters as `nbgrad.nn.TransformerDecoderLayer`."""


class TransformerEncoder(_Hinted, nn.TransformerEncoder):
    """Copies of a block of an encoder, one after the other.

    Parameters
    ----------
    encoder_layer : Module
    num_layers : int
    norm : Module, optional
    enable_nested_tensor, mask_check
        PyTorch's; have no effect.
    """

    def __init__(
        self,
        encoder_layer: Any,
        num_layers: int,
        norm: Any = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        del enable_nested_tensor, mask_check
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool | None = None
    ) -> Any:
        """Apply the blocks."""
        del is_causal
        return self.construct(src, mask, src_key_padding_mask)


class TransformerDecoder(_Hinted, nn.TransformerDecoder):
    """Copies of a block of a decoder, one after the other; parameters as `TransformerEncoder`."""


class Transformer(_Hinted, nn.Transformer):
    """An encoder and a decoder; parameters as `nbgrad.nn.Transformer`."""

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """Minus infinity for keys later than the query, 0 for the others."""
        del device
        rows = ops.arange(sz)
        mask = ops.where(rows[None, :] > rows[:, None], Tensor(float("-inf")), Tensor(0.0))
        return mask if dtype is None else mask.astype(dtype)
