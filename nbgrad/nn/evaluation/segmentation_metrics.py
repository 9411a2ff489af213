"""Metrics of masks and matrices: confusion, overlap, distances of surfaces, similarity of rows.

In: predictions and labels of each batch. Out: numbers or matrices for all batches together. Called by users and, by
name, by `train.Model`. They are computed by NumPy and SciPy.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentError, ShapeError
from ..layer_arguments import flag, positive, real
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


class Dice(Metric):
    """Twice the product of predictions and labels, divided by the sum of their squares.

    It is summed over batches, and divided by the number of rows.

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
        self._total, self._rows = 0.0, 0

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
        self._rows += len(label)

    def eval(self) -> float:
        """The overlap."""
        self._checked(self._rows)
        return self._total / self._rows


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
        rows = self._convert_data(inputs)
        rows = rows if rows.dtype.kind == "f" else rows.astype(float)
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
