"""Metrics of masks and matrices: confusion, overlap, distances of surfaces, similarity of rows.

In: predictions and labels of each batch. Out: numbers or matrices for all batches together. Called by users and, by
name, by `train.Model`. They are computed by NumPy and SciPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import ArgumentError, ShapeError
from .layer_arguments import flag, positive, real
from .metrics_base import Metric, rearrange_inputs


class ConfusionMatrix(Metric):
    """How often each class was predicted for each label: a row of predictions for each label.

    Parameters
    ----------
    num_classes : int
    normalize : {"no_norm", "target", "prediction", "all"}
        Whether counts are divided by those of labels, of predictions, or of all.
    threshold : float
        Predictions of probabilities are classes from it on.

    Examples
    --------
    >>> import nbgrad as nb
    >>> metric = nb.train.ConfusionMatrix(2)
    >>> metric.update(nb.Tensor([1, 0, 1]), nb.Tensor([1, 0, 0]))
    >>> print(metric.eval())
    [[1. 1.]
     [0. 1.]]
    """

    def __init__(self, num_classes: int, normalize: str = "no_norm", threshold: float = 0.5) -> None:
        self.num_classes = positive(num_classes, "num_classes")
        if normalize not in ("no_norm", "target", "prediction", "all"):
            message = f"normalize must be no_norm, target, prediction or all, but is {normalize!r}."
            raise ArgumentError(message)
        self.normalize, self.threshold = normalize, real(threshold, "threshold")
        super().__init__()

    def clear(self) -> None:
        """Forget all batches."""
        self._counts = np.zeros((self.num_classes, self.num_classes))
        self._seen = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take predictions, as classes, probabilities or scores (N, C, ...), and labels."""
        predicted, label = self._pair(inputs)
        if predicted.ndim == label.ndim + 1:
            predicted = predicted.argmax(axis=1)
        elif predicted.dtype.kind == "f":
            predicted = (predicted >= self.threshold).astype(int)
        if predicted.shape != label.shape:
            message = (
                f"ConfusionMatrix takes predictions and labels of one shape, got {predicted.shape}, {label.shape}."
            )
            raise ShapeError(message)
        np.add.at(self._counts, (label.astype(int).ravel(), predicted.astype(int).ravel()), 1)
        self._seen += label.size

    def eval(self) -> np.ndarray:
        """The matrix."""
        self._checked(self._seen)
        axis = {"target": 1, "prediction": 0, "all": None}
        if self.normalize == "no_norm":
            return self._counts
        total = self._counts.sum(axis=axis[self.normalize], keepdims=True)
        return np.divide(self._counts, total, out=np.zeros_like(self._counts), where=total != 0)


_RATES = {
    "sensitivity": (lambda tp, fp, tn, fn: (tp, tp + fn), "recall hit_rate tpr true_positive_rate"),
    "specificity": (lambda tp, fp, tn, fn: (tn, tn + fp), "selectivity tnr true_negative_rate"),
    "precision": (lambda tp, fp, tn, fn: (tp, tp + fp), "positive_predictive_value ppv"),
    "negative_predictive_value": (lambda tp, fp, tn, fn: (tn, tn + fn), "npv"),
    "miss_rate": (lambda tp, fp, tn, fn: (fn, fn + tp), "fnr false_negative_rate"),
    "fall_out": (lambda tp, fp, tn, fn: (fp, fp + tn), "fpr false_positive_rate"),
    "false_discovery_rate": (lambda tp, fp, tn, fn: (fp, fp + tp), "fdr"),
    "false_omission_rate": (lambda tp, fp, tn, fn: (fn, fn + tn), "for"),
    "threat_score": (lambda tp, fp, tn, fn: (tp, tp + fn + fp), "ts csi critical_success_index"),
    "accuracy": (lambda tp, fp, tn, fn: (tp + tn, tp + fp + tn + fn), "acc"),
    "f1_score": (lambda tp, fp, tn, fn: (2 * tp, 2 * tp + fn + fp), "f1"),
}
"""Name of a rate -> its numerator and denominator, and further names."""
_RATE_OF = {name: key for key, (_, others) in _RATES.items() for name in (key, *others.split())}


class ConfusionMatrixMetric(Metric):
    """A rate of right or wrong predictions of classes, as a mean over samples.

    Parameters
    ----------
    skip_channel : bool
        Whether the first channel, the background, is left out if there are several.
    metric_name : str
        Such as "sensitivity", "tpr", "precision", "accuracy" or "f1_score".
    calculation_method : bool
        Whether each sample has a rate of its own, else the counts of all are added up.
    decrease : {"none", "mean", "sum", "mean_batch", "mean_channel", "sum_batch", "sum_channel"}
        The axes over which rates are averaged or added: "mean" and "mean_batch" are those of samples.
    """

    def __init__(
        self,
        skip_channel: bool = True,
        metric_name: str = "sensitivity",
        calculation_method: bool = False,
        decrease: str = "mean",
    ) -> None:
        name = metric_name.lower().replace(" ", "_")
        if name not in _RATE_OF:
            message = f"metric_name must be one of {', '.join(_RATE_OF)}, but is {metric_name!r}."
            raise ArgumentError(message)
        self.skip_channel = flag(skip_channel, "skip_channel")
        self.rate = _RATES[_RATE_OF[name]][0]
        self.single = flag(calculation_method, "calculation_method")
        self.decrease = decrease
        super().__init__()

    def clear(self) -> None:
        """Forget all batches."""
        self._counts: list[np.ndarray] = []

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take predictions and labels of zeros and ones, (N, C, ...)."""
        predicted, label = self._pair(inputs)
        if predicted.shape != label.shape or predicted.ndim < 2:
            message = f"Predictions and labels have one shape (N, C, ...), but got {predicted.shape}, {label.shape}."
            raise ShapeError(message)
        if self.skip_channel and predicted.shape[1] > 1:
            predicted, label = predicted[:, 1:], label[:, 1:]
        p, y = (one.reshape((*one.shape[:2], -1)).astype(bool) for one in (predicted, label))
        counts = [(p & y), (p & ~y), (~p & ~y), (~p & y)]
        self._counts.append(np.stack([one.sum(axis=2) for one in counts], -1).astype(float))

    def eval(self) -> Any:
        """The rate of each class that is left."""
        self._checked(len(self._counts))
        counts = np.concatenate(self._counts)
        if not self.single:
            counts = counts.sum(axis=0, keepdims=True)
        top, bottom = self.rate(*np.moveaxis(counts, -1, 0))
        rates = np.divide(top, bottom, out=np.full_like(top, np.nan), where=bottom != 0)
        axis = {"none": (), "mean_channel": 1, "sum_channel": 1}.get(self.decrease, 0)
        return np.nansum(rates, axis) if self.decrease.startswith("sum") else np.nanmean(rates, axis)


class Dice(Metric):
    """Twice the product of predictions and labels, divided by the sum of their squares: the mean over batches.

    Parameters
    ----------
    smooth : float
        Added to numerator and denominator.
    """

    def __init__(self, smooth: float = 1e-5) -> None:
        self.smooth = real(smooth, "smooth")
        super().__init__()

    def clear(self) -> None:
        """Forget all batches."""
        self._total, self._batches = 0.0, 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take predictions and labels of one shape."""
        predicted, label = self._pair(inputs)
        if predicted.shape != label.shape:
            message = f"Dice takes predictions and labels of one shape, got {predicted.shape}, {label.shape}."
            raise ShapeError(message)
        common = float((predicted * label).sum())
        single = float((predicted * predicted).sum() + (label * label).sum())
        self._total += 2.0 * common / (single + self.smooth)
        self._batches += 1

    def eval(self) -> float:
        """The mean."""
        self._checked(self._batches)
        return self._total / self._batches


# ----- Surfaces -----


class _Surfaces(Metric):
    """The base of distances between the surfaces of a class in predictions and in labels."""

    def __init__(self, symmetric: bool = False, distance_metric: str = "euclidean") -> None:
        if distance_metric not in ("euclidean", "chessboard", "taxicab"):
            message = f"distance_metric must be euclidean, chessboard or taxicab, but is {distance_metric!r}."
            raise ArgumentError(message)
        self.symmetric, self.distance_metric = flag(symmetric, "symmetric"), distance_metric
        super().__init__()

    def clear(self) -> None:
        """Forget all batches."""
        self._masks: tuple[np.ndarray, np.ndarray] | None = None

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take predictions, labels, and the number of the class."""
        if len(inputs) != 3:
            message = (
                f"{type(self).__name__}.update takes predictions, labels and a class, but got {len(inputs)} inputs."
            )
            raise ArgumentError(message)
        predicted, label = self._pair(inputs[:2])
        self._masks = predicted == inputs[2], label == inputs[2]

    def _distances(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """The distance of each element of the first surface to the second one."""
        from scipy import ndimage

        edges = [mask ^ ndimage.binary_erosion(mask) for mask in (first, second)]
        if not edges[1].any():
            return np.full(int(edges[0].sum()), np.inf)
        if self.distance_metric == "euclidean":
            away = ndimage.distance_transform_edt(~edges[1])
        else:
            away = ndimage.distance_transform_cdt(~edges[1], metric=self.distance_metric)
        return np.asarray(away, dtype=float)[edges[0]]

    def _all(self) -> np.ndarray:
        self._checked(self._masks is not None)
        assert self._masks is not None
        there = self._distances(*self._masks)
        return np.concatenate([there, self._distances(*self._masks[::-1])]) if self.symmetric else there


class MeanSurfaceDistance(_Surfaces):
    """The mean distance of the surface of a class in predictions to that in labels.

    Parameters
    ----------
    symmetric : bool
        Whether distances in the other direction count, too.
    distance_metric : {"euclidean", "chessboard", "taxicab"}
    """

    def eval(self) -> float:
        """The mean."""
        return float(self._all().mean())


class RootMeanSquareDistance(_Surfaces):
    """The root of the mean square of the distances; parameters as `MeanSurfaceDistance`."""

    def eval(self) -> float:
        """The root."""
        return float(np.sqrt((self._all() ** 2).mean()))


class HausdorffDistance(_Surfaces):
    """The greatest distance between the surfaces of a class in predictions and labels.

    Parameters
    ----------
    distance_metric : {"euclidean", "chessboard", "taxicab"}
    percentile : float, optional
        The part of distances, in percent, that are at most as great as the result, instead of all.
    directed : bool
        Whether only distances from predictions to labels count.
    crop : bool
        MindSpore's; has no effect.
    """

    def __init__(
        self,
        distance_metric: str = "euclidean",
        percentile: float | None = None,
        directed: bool = False,
        crop: bool = True,
    ) -> None:
        flag(crop, "crop")
        self.percentile, self.directed = percentile, flag(directed, "directed")
        super().__init__(False, distance_metric)

    def eval(self) -> float:
        """The distance."""
        self._checked(self._masks is not None)
        assert self._masks is not None
        ways = [self._masks] if self.directed else [self._masks, self._masks[::-1]]
        part = 100.0 if self.percentile is None else self.percentile
        return max([float(np.percentile(self._distances(*masks), part)) for masks in ways])


class CosineSimilarity(Metric):
    """The cosines between the rows of a matrix.

    Parameters
    ----------
    similarity : {"cosine", "dot"}
        "dot" for products that are not divided by lengths.
    reduction : {"none", "sum", "mean"}
        Over the last axis.
    zero_diagonal : bool
    """

    def __init__(self, similarity: str = "cosine", reduction: str = "none", zero_diagonal: bool = True) -> None:
        if similarity not in ("cosine", "dot") or reduction not in ("none", "sum", "mean"):
            message = f"similarity is cosine or dot, reduction none, sum or mean; got {similarity!r}, {reduction!r}."
            raise ArgumentError(message)
        self.similarity, self.reduction = similarity, reduction
        self.zero_diagonal = flag(zero_diagonal, "zero_diagonal")
        super().__init__()

    def clear(self) -> None:
        """Forget all batches."""
        self._matrix: np.ndarray | None = None

    @rearrange_inputs
    def update(self, inputs: Any) -> None:
        """Take the rows."""
        rows = self._convert_data(inputs).astype(float)
        if self.similarity == "cosine":
            rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        self._matrix = rows @ rows.T

    def eval(self) -> np.ndarray:
        """The cosines."""
        self._checked(self._matrix is not None)
        assert self._matrix is not None
        found = self._matrix.copy()
        if self.zero_diagonal:
            np.fill_diagonal(found, 0)
        return found if self.reduction == "none" else getattr(found, self.reduction)(axis=-1)
