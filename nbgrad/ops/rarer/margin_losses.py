"""Losses of margins, of sequences without alignment, and of normal distributions.

In: predictions and targets. Out: a 0-d Tensor, or the losses of the elements. Called by users and by layers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy

from ...errors import ShapeError
from ...record.axes_and_dtypes import only
from ...record.tensor import Tensor
from ...transforms.grad import grad
from ..activations import log_softmax
from ..docstrings import documented
from .special_values import float_of, value_of

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


def _reduced(loss: Any, reduction: str) -> Tensor:
    only("reduction", reduction, "none", "mean", "sum")
    return loss if reduction == "none" else np.mean(loss) if reduction == "mean" else np.sum(loss)


def _softplus(x: Any) -> Any:
    return np.logaddexp(x, np.zeros_like(x))


@documented
def soft_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * input)), with targets 1 and -1.

    target : Tensor or ndarray
        In the shape of the input.
    """
    return _reduced(_softplus(-value_of(target) * float_of(input)), reduction)


@documented
def hinge_embedding_loss(inputs: Any, targets: Any, margin: float = 1.0, reduction: str = "mean") -> Tensor:
    """The input where the target is 1; where it is -1, the distance up to a margin.

    inputs, targets : Tensor or ndarray
    margin : float
    """
    x = float_of(inputs)
    return _reduced(np.where(value_of(targets) > 0, x, np.maximum(margin - x, 0)), reduction)


@documented
def multi_margin_loss(
    input: Any, target: Any, p: int = 1, margin: float = 1, weight: Any = None, reduction: str = "mean"
) -> Tensor:
    """Means over classes of `max(0, margin - x[target] + x[class]) ** p`, without the target's own.

    input : Tensor or ndarray, shape (N, C)
    target : Tensor or ndarray of int, shape (N,)
    p : {1, 2}
    margin : float
    weight : Tensor, optional, shape (C,)
        Of the targets.
    """
    only("p", p, 1, 2)
    x, classes = float_of(input), value_of(target)
    own = np.take_along_axis(x, classes[:, None], 1)
    distance = np.maximum(margin - own + x, 0) ** p
    if weight is not None:
        distance = distance * value_of(weight)[classes][:, None]
    others = np.arange(x.shape[1]) != classes[:, None]
    return _reduced(np.sum(np.where(others, distance, 0.0), 1) / x.shape[1], reduction)


def margins_of_classes(x: Any, target: Any, weight: Any = None, *, p: int, margin: float, reduction: str) -> Tensor:
    """`multi_margin_loss` by the options of its class form."""
    return multi_margin_loss(x, target, p, margin, weight, reduction)


@documented
def multilabel_soft_margin_loss(input: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Tensor:
    """Means over classes of the cross entropy of logits with targets 0 and 1.

    input, target : Tensor or ndarray, shape (N, C)
    weight : Tensor, optional
        Of the classes.
    """
    x, y = float_of(input), value_of(target)
    loss = y * _softplus(-x) + (1 - y) * _softplus(x)
    return _reduced(np.mean(loss if weight is None else loss * value_of(weight), -1), reduction)


@documented
def multilabel_margin_loss(input: Any, target: Any, reduction: str = "mean") -> Tensor:
    """Sums over pairs of a target and another class of `max(0, 1 - x[target] + x[class])`, divided by the classes.

    input : Tensor or ndarray, shape (C,) or (N, C)
    target : Tensor or ndarray of int
        The targets of each row, and -1 after the last one.
    """
    x, places = np.atleast_2d(float_of(input)), np.atleast_2d(value_of(target))
    chosen = np.cumsum(places < 0, 1) == 0
    safe = np.where(chosen, places, 0)
    one_hot = (np.arange(x.shape[1]) == safe[..., None]) & chosen[..., None]
    others = ~np.any(one_hot, 1)
    distance = np.maximum(1 - np.take_along_axis(x, safe, 1)[:, :, None] + x[:, None, :], 0)
    kept = chosen[:, :, None] & others[:, None, :]
    loss = np.sum(np.where(kept, distance, 0.0), (1, 2)) / x.shape[1]
    return _reduced(loss if float_of(input).ndim == 2 else loss[0], reduction)


@documented
def triplet_margin_loss(
    anchor: Any,
    positive: Any,
    negative: Any,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-06,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, distance to the positive - distance to the negative + margin).

    anchor, positive, negative : Tensor or ndarray
    margin, p : float
    eps : float
        Added to differences.
    swap : bool
        Whether to use the distance between positive and negative where it is less.
    """

    def distance(a: Any, b: Any) -> Any:
        return np.sum(np.abs(a - b + eps) ** p, -1) ** (1.0 / p)

    a, plus, minus = float_of(anchor), float_of(positive), float_of(negative)
    away = distance(a, minus)
    away = np.minimum(away, distance(plus, minus)) if swap else away
    return _reduced(np.maximum(distance(a, plus) - away + margin, 0), reduction)


@documented
def gaussian_nll_loss(
    x: Any, target: Any, var: Any, full: bool = False, eps: float = 1e-06, reduction: str = "mean"
) -> Tensor:
    """Minus the logarithm of a normal density.

    target, var : Tensor or ndarray
    full : bool
        Whether its constant is part of it.
    eps : float
        The least variance.
    """
    spread = np.maximum(float_of(var), eps)
    loss = 0.5 * (np.log(spread) + (float_of(x) - value_of(target)) ** 2 / spread)
    return _reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def poisson_nll_loss(x: Any, target: Any, log_input: bool, full: bool, eps: float, reduction: str) -> Tensor:
    """Minus the logarithm of a Poisson probability, up to the target's own part; with `full` that too, by Stirling.

    Parameters
    ----------
    x, target : Tensor or ndarray
        Logarithms of expected counts, or with `log_input=False` the counts; and the counts seen.
    log_input, full : bool
    eps : float
        Added to counts before their logarithm.
    reduction : {"none", "mean", "sum"}
    """
    rate = float_of(x)
    seen = value_of(target).astype(np.dtype(rate.dtype.name))
    loss = np.exp(rate) - seen * rate if log_input else rate - seen * np.log(rate + eps)
    if full:
        count = np.maximum(seen, 1)
        stirling = (count + 0.5) * np.log(count) - count + 0.5 * math.log(2 * math.pi)
        loss = loss + np.where(seen > 1, stirling, 0)
    return _reduced(loss, reduction)


# ----- Sequences -----

_NEVER = -1e30
"""The logarithm of probability 0 with finite derivatives."""


@documented
def ctc_loss(
    log_probs: Any,
    targets: Any,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> tuple[Tensor, Tensor]:
    """Minus the logarithm of the probability of sequences, over all alignments (Graves et al. 2006).

    log_probs : Tensor or ndarray, shape (T, N, C) or (T, C)
    targets : Tensor or ndarray of int, shape (N, S), or all targets in one axis
    input_lengths, target_lengths : Tensor, ndarray or tuple of int
        The lengths of each row.
    blank : int
        The class between labels.
    reduction : {"none", "mean", "sum"}
        "mean" divides by the lengths of the targets first.
    zero_infinity : bool
        Whether impossible sequences count 0.
    -> tuple of two Tensors
        The loss, and the logarithms of the probabilities of all alignments so far, (N, T, 2 * S + 1) or (T, 2 * S + 1).
    ShapeError : If the lengths do not belong to the rows.
    """
    only("reduction", reduction, "none", "mean", "sum")
    x, sizes = float_of(log_probs), np.atleast_1d(value_of(target_lengths)).astype(int)
    batch = x[:, None] if x.ndim == 2 else x
    losses, paths = alignments(batch, targets, input_lengths, sizes, blank, zero_infinity)
    if x.ndim == 2:
        paths = paths[0]
        losses = losses[0] if reduction != "mean" else losses
    return (
        np.mean(losses / np.maximum(sizes, 1).astype(x.dtype)) if reduction == "mean" else _reduced(losses, reduction)
    ), paths


def loss_of_sequences(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, reduction: str,
    zero_infinity: bool,
) -> Tensor:  # fmt: skip
    """`ctc_loss` without the alignments."""
    return ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, reduction, zero_infinity)[0]


def alignments(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int, zero_infinity: bool
) -> tuple[Any, Any]:
    """The losses of `ctc_loss` for each row, and the logarithms of the probabilities of alignments."""
    x, labels = float_of(log_probs), value_of(targets)
    lengths, sizes = (np.atleast_1d(value_of(one)).astype(int) for one in (input_lengths, target_lengths))
    if x.ndim != 3 or lengths.shape != (x.shape[1],) or sizes.shape != (x.shape[1],):
        message = f"ctc_loss needs log_probs (T, N, C) and one length for each of N rows, but got {x.shape}."
        raise ShapeError(message)
    labels = labels if labels.ndim == 2 else _labels(np.asarray(labels), np.asarray(sizes))
    rows, count = labels.shape
    labels = np.where(np.arange(count) < sizes[:, None], labels, blank).astype(int)
    beyond = np.arange(2 * count + 1) > 2 * sizes[:, None]
    between = np.full((rows, 1), blank)
    states = np.stack([np.broadcast_to(between, (rows, count)), labels], -1).reshape((rows, 2 * count))
    states = np.concatenate([states, between], 1)
    jump = np.pad((states[:, 2:] != states[:, :-2]) & (states[:, 2:] != blank), ((0, 0), (2, 0)))[:, : 2 * count + 1]
    first = np.arange(2 * count + 1) < 2
    alpha = np.where(first, np.take_along_axis(x[0], states, 1), _NEVER)
    steps = [alpha]
    for step in range(1, x.shape[0]):
        one = np.pad(alpha[:, :-1], ((0, 0), (1, 0)), constant_values=_NEVER)
        two = np.where(jump, np.pad(alpha[:, :-2], ((0, 0), (2, 0)), constant_values=_NEVER), _NEVER)
        new = np.logaddexp(np.logaddexp(alpha, one), two) + np.take_along_axis(x[step], states, 1)
        alpha = np.where((step < lengths)[:, None], new, alpha)
        steps.append(alpha)
    end, before = (
        np.take_along_axis(alpha, place[:, None], 1)[:, 0] for place in (2 * sizes, np.maximum(2 * sizes - 1, 0))
    )
    total = np.where(sizes > 0, np.logaddexp(end, before), end)
    paths = np.stack(steps, 1)
    losses = np.where(total < _NEVER / 2, 0.0 if zero_infinity else np.inf, -total)
    return losses, np.where((paths < _NEVER / 2) | beyond[:, None], -np.inf, paths)


def _labels(targets: numpy.ndarray, sizes: numpy.ndarray) -> numpy.ndarray:
    """The targets of each row, as one matrix."""
    if targets.ndim == 2:
        return targets
    matrix = np.zeros((sizes.size, int(sizes.max(initial=0))), targets.dtype)
    for row, (stop, size) in enumerate(zip(np.cumsum(sizes), sizes, strict=True)):
        matrix[row, :size] = targets[stop - size : stop]
    return matrix


def losses_of_sequences(
    x: Any,
    labels_indices: Any,
    labels_values: Any,
    sequence_length: Any,
    preprocess_collapse_repeated: bool,
    ctc_merge_repeated: bool,
    ignore_longer_outputs_than_inputs: bool,
) -> tuple[Tensor, Tensor]:
    """Losses of logits (T, N, C), whose last class is the blank, with sparse labels; and their gradient."""
    only("preprocess_collapse_repeated", preprocess_collapse_repeated, False)
    only("ctc_merge_repeated", ctc_merge_repeated, True)
    logits, places = float_of(x), np.asarray(value_of(labels_indices))
    sizes = np.bincount(places[:, 0], minlength=logits.shape[1])
    labels = np.asarray(value_of(labels_values))

    def losses(logits: Any) -> Any:
        log_probs, blank = log_softmax(logits), logits.shape[2] - 1
        return alignments(log_probs, labels, sequence_length, sizes, blank, ignore_longer_outputs_than_inputs)[0]

    return losses(logits), grad(lambda logits: np.sum(losses(logits)))(logits)
