"""Losses of few programs: of rare classes, of overlaps of several classes, of sampled classes, of sizes of weights.

In: options; then predictions and targets. Out: Cells. Called by users.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy

from ...errors import ArgumentError, DtypeError, ShapeError
from ...ops.activations import log_softmax
from ...ops.rarer.random_choices import uniform_candidate_sampler
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import inexact
from ...record.tensor import Tensor
from ..activation_layers import get_activation
from ..cell import Cell
from ..layer_arguments import real, whole
from ..loss_layers import DiceLoss, LossBase

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


def _value(x: Any) -> Any:
    return wrap(as_node(x))


def _floats(x: Any) -> Any:
    return wrap(inexact(as_node(x)))


class FocalLoss(LossBase):
    """`-(1 - p)**gamma * log(p)` of the softmax p, so that classes that are known already count less (Lin et al. 2017).

    Parameters
    ----------
    weight : Tensor, optional, shape (C,)
        Of the classes.
    gamma : float
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    DtypeError, ShapeError
        If the weights are no array of one axis.

    Examples
    --------
    >>> import nbgrad as nb
    >>> loss = nb.nn.FocalLoss(gamma=1.0)
    >>> print(loss(nb.Tensor([[0.0, 0.0]]), nb.Tensor([[1]])).round(4))
    0.3466
    """

    def __init__(self, weight: Any = None, gamma: float = 2.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.gamma = real(gamma, "gamma")
        if weight is not None and not isinstance(weight, Tensor):
            message = f"weight must be a Tensor with a number for each class, but is {type(weight).__name__}."
            raise DtypeError(message)
        if weight is not None and weight.ndim != 1:
            message = f"weight must have one axis, for the classes, but its shape is {weight.shape}."
            raise ShapeError(message)
        object.__setattr__(self, "weight", weight)

    def construct(self, logits: Any, labels: Any) -> Tensor:
        """The loss of scores (N, C, ...) and labels: classes (N, 1, ...), or parts of all classes (N, C, ...)."""
        scores, wanted = _floats(logits), _value(labels)
        if scores.ndim != wanted.ndim or scores.ndim < 2 or wanted.shape[1] not in (1, scores.shape[1]):
            message = (
                f"FocalLoss takes scores (N, C, ...) and labels (N, 1, ...) or (N, C, ...), but got {scores.shape} and "
                f"{wanted.shape}."
            )
            raise ShapeError(message)
        scores = scores.reshape((*scores.shape[:2], -1))
        wanted = wanted.reshape((*wanted.shape[:2], -1))
        logs = log_softmax(scores, 1)
        weights = None if self.weight is None else np.broadcast_to(self.weight[None, :, None], scores.shape)
        by_class = wanted.shape[1] == 1
        if by_class:
            logs = np.take_along_axis(logs, wanted, 1)[:, 0]
            weights = None if weights is None else np.take_along_axis(weights, wanted, 1)[:, 0]
        factor = (1.0 - np.exp(logs)) ** self.gamma
        logs = logs if weights is None else logs * weights
        losses = -factor * logs if by_class else -factor * wanted * logs
        return self.get_loss(np.mean(losses, 1 if by_class else -1))


class MultiClassDiceLoss(LossBase):
    """The mean of `DiceLoss` over classes, each of which is a picture of its own.

    Parameters
    ----------
    weights : Tensor, optional, shape (C, n)
        Of each class; the loss has the shape (n,) then.
    ignore_indiex : int, optional
        A class that is left out; it counts in the mean.
    activation : str, Cell or None
        Applied to the scores first.
    """

    def __init__(self, weights: Any = None, ignore_indiex: int | None = None, activation: Any = "softmax") -> None:
        super().__init__()
        self.binarydiceloss = DiceLoss(1e-5)
        if weights is not None and (not isinstance(weights, Tensor) or weights.ndim != 2):
            message = f"weights must be a Tensor with a row for each class, but is {weights!r:.60}."
            raise DtypeError(message)
        object.__setattr__(self, "weights", weights)
        self.ignore_indiex = None if ignore_indiex is None else whole(ignore_indiex, "ignore_indiex")
        self.activation = get_activation(activation) if isinstance(activation, str) else activation

    def construct(self, logits: Any, label: Any) -> Tensor:
        """The loss of scores and labels (N, C, ...)."""
        scores, wanted = _floats(logits), _value(label)
        if scores.shape != wanted.shape or scores.ndim < 2:
            message = f"Scores and labels have one shape (N, C, ...), but these have {scores.shape} and {wanted.shape}."
            raise ShapeError(message)
        scores = scores if self.activation is None else self.activation(scores)
        total: Any = 0.0
        for k in range(wanted.shape[1]):
            if k != self.ignore_indiex:
                loss = self.binarydiceloss(scores[:, k], wanted[:, k])
                total = total + (loss if self.weights is None else loss * self.weights[k])
        return total / wanted.shape[1]


class SampledSoftmaxLoss(LossBase):
    """Cross entropy of true classes and a sample of others, in place of all of them.

    Parameters
    ----------
    num_sampled, num_classes, num_true : int
        How many classes are drawn, how many there are, and how many of each row are true.
    sampled_values : tuple of three Tensors, optional
        Classes drawn, and how often true and drawn ones are expected; drawn at each call by default.
    remove_accidental_hits : bool
        Whether true classes are not drawn.
    seed : int
    reduction : {"none", "mean", "sum"}
        Has no effect, as in MindSpore: the result has a loss for each row.
    """

    def __init__(
        self,
        num_sampled: int,
        num_classes: int,
        num_true: int = 1,
        sampled_values: Sequence[Any] | None = None,
        remove_accidental_hits: bool = True,
        seed: int = 0,
        reduction: str = "none",
    ) -> None:
        super().__init__(reduction)
        if not 1 <= num_true <= num_classes or num_sampled > num_classes:
            message = (
                f"There are {num_classes} classes: neither {num_sampled} drawn nor {num_true} true ones may be more."
            )
            raise ArgumentError(message)
        if sampled_values is not None and (not isinstance(sampled_values, list | tuple) or len(sampled_values) != 3):
            message = (
                "sampled_values must be a tuple of drawn classes and of how often true and drawn ones are expected."
            )
            raise ArgumentError(message)
        self.num_sampled, self.num_classes, self.num_true, self.seed = num_sampled, num_classes, num_true, seed
        self.remove_accidental_hits = remove_accidental_hits
        object.__setattr__(self, "sampled_values", sampled_values)

    def construct(self, weights: Any, biases: Any, labels: Any, logits: Any) -> Tensor:
        """The losses of rows `logits` (N, n), with rows (C, n) and biases (C,) of classes, and labels (N, num_true)."""
        true = _value(labels).reshape((-1, self.num_true))
        found = self.sampled_values
        if found is None:
            found = uniform_candidate_sampler(
                true,
                self.num_true,
                self.num_sampled,
                True,
                self.num_classes,
                self.seed,
                self.remove_accidental_hits,
            )
        drawn, true_expected, drawn_expected = (_value(one) for one in found)
        rows, shift, x = _floats(weights), _floats(biases), _floats(logits)
        of_true = np.sum(x[:, None, :] * rows[true], -1) + shift[true] - np.log(true_expected)
        of_drawn = x @ np.swapaxes(rows[drawn], 0, 1) + shift[drawn] - np.log(drawn_expected)
        scores = np.concatenate([of_true, of_drawn], 1)
        raised = np.exp(scores - np.max(scores, 1, keepdims=True))
        chances = raised / np.sum(raised, 1, keepdims=True)
        return -np.sum(np.log(chances[:, : self.num_true] + 1e-20), 1) / self.num_true


class L1Regularizer(Cell):
    """A number times the sum of the absolute values of weights.

    Parameters
    ----------
    scale : float
        Positive and finite.

    Raises
    ------
    ArgumentError
        For other numbers.
    """

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = real(scale, "scale")
        if not 0 < self.scale < math.inf:
            message = f"scale must be positive and finite, but is {scale}."
            raise ArgumentError(message)

    def construct(self, weights: Any) -> Tensor:
        """The sum."""
        return np.sum(np.abs(_value(weights))) * self.scale
