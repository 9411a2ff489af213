"""PyTorch's `nn.utils.rnn`: sequences of different lengths in one Tensor.

In: padded sequences and their lengths. Out: `PackedSequence`, which recurrent modules take and give, and sequences of
one length. Called by users, by module_tools.py and by recurrent_modules.py. A PackedSequence here keeps the padded
Tensor; `data` and `batch_sizes` are PyTorch's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ... import ops
from ...errors import ShapeError
from ...record.tensor import Tensor

__all__ = [
    "PackedSequence",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpad_sequence",
]


class PackedSequence:
    """Sequences of different lengths.

    Parameters
    ----------
    padded : Tensor, shape (T, N, ...)
    lengths : ndarray of int, shape (N,)
    order : ndarray of int, shape (N,)
        The sequences from the longest on.
    """

    def __init__(self, padded: Any, lengths: Any, order: Any) -> None:
        self.padded, self.lengths, self._order = padded, lengths, order

    def _steps(self) -> tuple[Any, Any]:
        """The step and the sequence of each row of `data`."""
        longest = int(self.lengths.max(initial=0))
        pairs = [(t, n) for t in range(longest) for n in self._order if self.lengths[n] > t]
        return np.array([t for t, _ in pairs], np.int64), np.array([n for _, n in pairs], np.int64)

    @property
    def data(self) -> Any:
        """All elements: first those of step 0 from the longest sequence on, then those of step 1."""
        return self.padded[self._steps()]

    @property
    def batch_sizes(self) -> Tensor:
        """How many sequences reach each step."""
        longest = int(self.lengths.max(initial=0))
        return Tensor(np.array([int((self.lengths > t).sum()) for t in range(longest)], np.int64))

    @property
    def sorted_indices(self) -> Tensor:
        """The sequences from the longest on."""
        return Tensor(np.array(self._order))

    @property
    def unsorted_indices(self) -> Tensor:
        """Where each sequence is among them."""
        return Tensor(np.argsort(self._order))

    def with_padded(self, padded: Any) -> PackedSequence:
        """Other values of the same lengths."""
        return PackedSequence(padded, self.lengths, self._order)


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Sequences (T, N, ...), or (N, T, ...), with their lengths.

    Parameters
    ----------
    input : Tensor
    lengths : Tensor of int or list of int, shape (N,)
    batch_first : bool
        Whether the first axis is that of sequences.
    enforce_sorted : bool
        Whether lengths must fall.

    Raises
    ------
    ShapeError
        If lengths rise in spite of `enforce_sorted`, or one is not positive.
    """
    counts = np.asarray(lengths.asnumpy() if isinstance(lengths, Tensor) else lengths).astype(np.int64)
    if counts.min(initial=1) <= 0:
        message = "Length of all samples has to be greater than 0"
        raise ShapeError(message)
    if enforce_sorted and (np.diff(counts) > 0).any():
        message = (
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence."
        )
        raise ShapeError(message)
    padded = ops.swapaxes(input, 0, 1) if batch_first else input
    return PackedSequence(padded, counts, np.argsort(-counts, kind="stable"))


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Tensor]:
    """The padded sequences and their lengths."""
    longest = int(sequence.lengths.max(initial=0))
    x = sequence.padded[:longest]
    shape = (longest, len(sequence.lengths), *[1] * (x.ndim - 2))
    reached = np.arange(longest)[:, None] < sequence.lengths
    x = ops.where(Tensor(reached.reshape(shape)), x, Tensor(np.array(padding_value)).astype(x.dtype))
    if total_length is not None:
        if total_length < longest:
            message = f"Expected total_length to be at least {longest}, but got total_length={total_length}"
            raise ShapeError(message)
        x = ops.pad(x, (*[0] * (2 * x.ndim - 1), total_length - longest), value=padding_value)
    return ops.swapaxes(x, 0, 1) if batch_first else x, Tensor(sequence.lengths)


def pad_sequence(
    sequences: Sequence[Any], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    """Sequences (T, ...) of different lengths, filled up to the longest."""
    longest = max(one.shape[0] for one in sequences)

    def widths(one: Any) -> tuple[int, ...]:
        ends = (0, longest - one.shape[0]) if padding_side == "right" else (longest - one.shape[0], 0)
        return (*[0] * (2 * (one.ndim - 1)), *ends)

    return ops.stack([ops.pad(one, widths(one), value=padding_value) for one in sequences], 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """The single sequences of padded ones."""
    rows = padded_sequences if batch_first else ops.swapaxes(padded_sequences, 0, 1)
    return [row[: int(length)] for row, length in zip(rows, lengths, strict=True)]


def pack_sequence(sequences: Sequence[Any], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences (T, ...) of different lengths."""
    lengths = [one.shape[0] for one in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)
