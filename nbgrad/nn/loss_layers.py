"""Losses as Cells.

In: how to combine the losses of elements (`reduction`), weights, margins; then predictions and targets. Out: Cells.
Called by users and by the training Cells. Their functions are in `nbgrad.ops.losses`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..functions.analysis.statistics import mean
from ..functions.arrays.reductions import sum
from ..functions.elementwise.ufunc_functions import multiply
from ..ops import losses as functions
from ..ops.losses import REDUCTIONS
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import inexact
from ..record.tensor import Tensor
from .cell import Cell
from .layer_arguments import flag, part, real, whole


class LossBase(Cell):
    """The base of the losses; subclass it for a loss of your own.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}

    Raises
    ------
    ArgumentError
        If the reduction does not exist.

    Examples
    --------
    >>> import nbgrad as nb
    >>> class FourthPower(nb.nn.LossBase):
    ...     def construct(self, logits, labels):
    ...         return self.get_loss((logits - labels) ** 4)
    >>> FourthPower("sum")(nb.Tensor([1.0, 2.0]), nb.Tensor([0.0, 0.0]))
    Tensor(shape=[], dtype=Float32, value= 17)
    """

    reductions = REDUCTIONS
    """The reductions that a loss has."""

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        if not isinstance(reduction, str) or reduction not in self.reductions:
            message = f"reduction must be one of {', '.join(map(repr, self.reductions))}, but is {reduction!r}."
            raise ArgumentError(message)
        self.reduction = reduction

    def get_axis(self, x: Any) -> tuple[int, ...]:
        """The numbers of all axes."""
        return tuple(range(as_node(x).ndim))

    def get_loss(self, x: Any, weights: Any = 1.0) -> Tensor:
        """The losses of elements times weights, combined as `reduction` says.

        Parameters
        ----------
        x, weights : array-like
            They broadcast.

        Returns
        -------
        Tensor
        """
        loss = multiply(wrap(inexact(as_node(x))), weights)
        if self.reduction == "none":
            return loss
        return mean(loss) if self.reduction == "mean" else sum(loss)

    def extend_repr(self) -> str:
        """The reduction."""
        return f"reduction={self.reduction!r}"


def _floats(value: Any, name: str) -> Any:
    """Weights that a loss keeps.

    Raises
    ------
    DtypeError
        If they are no array.
    """
    if value is not None:
        dtype = as_node(value).dtype
        if dtype.kind not in "fiu":
            message = f"{name} must be an array of numbers or None, but has dtype {dtype}."
            raise DtypeError(message)
    return value


# ----- Regression -----


class MSELoss(LossBase):
    """The squared difference.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.nn.MSELoss()(nb.Tensor([1.0, 2.0]), nb.Tensor([1.0, 4.0]))
    Tensor(shape=[], dtype=Float32, value= 2)
    """

    def construct(self, logits: Any, labels: Any) -> Tensor:
        """The loss; shapes broadcast."""
        return functions.mse_loss(logits, labels, self.reduction)


class L1Loss(LossBase):
    """The absolute difference; its derivative at 0 is 0."""

    def construct(self, logits: Any, labels: Any) -> Tensor:
        """The loss; shapes broadcast."""
        return functions.l1_loss(logits, labels, self.reduction)


class SmoothL1Loss(LossBase):
    """`d**2 / (2 beta)` for differences below beta, else `d - beta / 2`.

    Notes
    -----
    Differs from `torch.nn.SmoothL1Loss`: the default reduction is "none", as in MindSpore.
    """

    def __init__(self, beta: float = 1.0, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.beta = _not_negative(beta, "beta")

    def construct(self, logits: Any, labels: Any) -> Tensor:
        """The loss; shapes broadcast."""
        return functions.smooth_l1_loss(logits, labels, self.beta, self.reduction)


class HuberLoss(LossBase):
    """`d**2 / 2` for differences below delta, else `delta * (d - delta / 2)` (Huber 1964)."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = _not_negative(delta, "delta")

    def construct(self, logits: Any, labels: Any) -> Tensor:
        """The loss; shapes broadcast."""
        return functions.huber_loss(logits, labels, self.reduction, self.delta)


def _not_negative(value: Any, name: str) -> float:
    number = real(value, name)
    if number < 0:
        message = f"{name} must not be negative, but is {value!r}."
        raise ArgumentError(message)
    return number


# ----- Classes -----


class CrossEntropyLoss(LossBase):
    """The cross entropy of a softmax with class indices or probabilities.

    Parameters
    ----------
    weight : array-like, shape (C,), optional
        Of the classes; a mean over class indices is divided by the sum of their weights.
    ignore_index : int
        A class index that does not count.
    reduction : {"mean", "sum", "none"}
    label_smoothing : float
        The part of every target that is spread over all classes.

    Raises
    ------
    ArgumentError, DtypeError
        For arguments that cannot be used.

    Examples
    --------
    >>> import nbgrad as nb
    >>> loss = nb.nn.CrossEntropyLoss(reduction="sum")
    >>> print(loss(nb.Tensor([[1000.0, 0.0], [0.0, 0.0]]), nb.Tensor([0, 1])))
    0.6931472
    """

    def __init__(
        self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean", label_smoothing: float = 0.0
    ) -> None:
        super().__init__(reduction)
        self.weight = _floats(weight, "weight")
        self.ignore_index = whole(ignore_index, "ignore_index")
        self.label_smoothing = part(label_smoothing, "label_smoothing")

    def construct(self, logits: Any, labels: Any) -> Tensor:
        """The loss of logits (N, C, ...) or (C,) and class indices (N, ...), or probabilities of the logits' shape."""
        return functions.cross_entropy(
            logits, labels, self.weight, self.ignore_index, self.reduction, self.label_smoothing
        )


class NLLLoss(LossBase):
    """The negative log-likelihood of class indices, from logarithms of probabilities.

    Parameters
    ----------
    weight, ignore_index, reduction
        As in `CrossEntropyLoss`.
    """

    def __init__(self, weight: Any = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = _floats(weight, "weight")
        self.ignore_index = whole(ignore_index, "ignore_index")

    def construct(self, logits: Any, labels: Any) -> Tensor:
        """The loss of log-probabilities (N, C, ...) or (C,) and class indices (N, ...)."""
        return functions.nll_loss(logits, labels, self.weight, self.ignore_index, self.reduction)


class SoftmaxCrossEntropyWithLogits(LossBase):
    """The cross entropy of each row of logits with a class index (`sparse`) or with probabilities.

    Parameters
    ----------
    sparse : bool
        Whether labels are class indices.
    reduction : {"none", "mean", "sum"}
    """

    def __init__(self, sparse: bool = False, reduction: str = "none") -> None:
        super().__init__(reduction)
        self.sparse = flag(sparse, "sparse")

    def construct(self, logits: Any, labels: Any) -> Tensor:
        """The loss of logits (N, C)."""
        return functions.softmax_cross_entropy_with_logits(logits, labels, self.sparse, self.reduction)


# ----- Yes or no -----


class BCELoss(LossBase):
    """The cross entropy of probabilities with labels between 0 and 1.

    Parameters
    ----------
    weight : array-like, optional
        Of the losses; broadcasts.
    reduction : {"mean", "sum", "none"}
    """

    def __init__(self, weight: Any = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.weight = _floats(weight, "weight")

    def construct(self, logits: Any, labels: Any) -> Tensor:
        """The loss; `logits` are probabilities, in spite of their name."""
        return functions.binary_cross_entropy(logits, labels, self.weight, self.reduction)


class BCEWithLogitsLoss(LossBase):
    """The cross entropy of `sigmoid(logits)` with labels between 0 and 1, without overflow.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
    weight : array-like, optional
        Of the losses; broadcasts.
    pos_weight : array-like, optional
        Of the positive labels; broadcasts.
    """

    def __init__(self, reduction: str = "mean", weight: Any = None, pos_weight: Any = None) -> None:
        super().__init__(reduction)
        self.weight = _floats(weight, "weight")
        self.pos_weight = _floats(pos_weight, "pos_weight")

    def construct(self, logits: Any, labels: Any) -> Tensor:
        """The loss."""
        return functions.binary_cross_entropy_with_logits(logits, labels, self.weight, self.pos_weight, self.reduction)


# ----- Distributions, vectors, order -----


class KLDivLoss(LossBase):
    """The Kullback-Leibler divergence `labels * (log(labels) - logits)`; logits are logarithms of probabilities.

    Parameters
    ----------
    reduction : {"mean", "sum", "none", "batchmean"}
        "batchmean" divides by the extent of the first axis.
    """

    reductions = (*REDUCTIONS, "batchmean")

    def construct(self, logits: Any, labels: Any) -> Tensor:
        """The loss."""
        return functions.kl_div(logits, labels, self.reduction)


class CosineEmbeddingLoss(LossBase):
    """1 - cos for pairs of vectors that belong together (label 1), max(0, cos - margin) for others (label -1).

    Parameters
    ----------
    margin : float
        Between -1 and 1.
    reduction : {"mean", "sum", "none"}
    """

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = real(margin, "margin")
        if not -1 <= self.margin <= 1:
            message = f"margin must lie between -1 and 1, but is {margin!r}."
            raise ArgumentError(message)

    def construct(self, logits_x1: Any, logits_x2: Any, labels: Any) -> Tensor:
        """The loss of vectors (N, D) and labels (N,)."""
        return functions.cosine_embedding_loss(logits_x1, logits_x2, labels, self.margin, self.reduction)


class MarginRankingLoss(LossBase):
    """max(0, margin - target * (input1 - input2)): target 1 asks for the first to be larger, -1 for the second."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = real(margin, "margin")

    def construct(self, input1: Any, input2: Any, target: Any) -> Tensor:
        """The loss; shapes broadcast."""
        return functions.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class MAELoss(L1Loss):
    """The absolute difference, under its older name."""


class RMSELoss(LossBase):
    """The root of the mean of squared differences."""

    def __init__(self) -> None:
        super().__init__()

    def construct(self, logits: Any, label: Any) -> Tensor:
        """The loss; shapes broadcast."""
        return np.sqrt(functions.mse_loss(logits, label))  # pyright: ignore[reportReturnType]


class SoftMarginLoss(LossBase):
    """`log(1 + exp(-labels * logits))`, for labels of 1 and -1."""

    def construct(self, logits: Any, labels: Any) -> Tensor:
        """The loss; shapes are the same."""
        x: Any = wrap(inexact(as_node(logits)))
        return self.get_loss(np.logaddexp(-x * labels, 0.0))


class DiceLoss(LossBase):
    """1 minus the Dice coefficient: `1 - (2 * sum(p * y) + smooth) / (sum(p * p) + sum(y * y) + smooth)`.

    Parameters
    ----------
    smooth : float
        Positive.
    """

    def __init__(self, smooth: float = 1e-5) -> None:
        super().__init__()
        self.smooth = _not_negative(smooth, "smooth")

    def construct(self, logits: Any, label: Any) -> Tensor:
        """The loss of probabilities and labels of one shape."""
        p: Any = wrap(inexact(as_node(logits)))
        y: Any = wrap(as_node(label))
        both, total = np.sum(p * y), np.sum(p * p) + np.sum(y * y)
        return 1.0 - (2.0 * both + self.smooth) / (total + self.smooth)
