"""Metrics of classification: how many predictions are right, for all classes together and for each.

In: scores of classes and labels, batch by batch. Out: accuracy, precision, recall, F-scores. Called by users and, by
name, by `train.Model`. Labels are numbers of classes, or one-hot rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ArgumentError, ShapeError
from ..layer_arguments import flag, positive
from .metrics_base import Metric, rearrange_inputs

_SMALLEST = np.finfo(np.float64).tiny
_TYPES = ("classification", "multilabel")


def _classes(label: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Numbers of classes, from one-hot rows too."""
    if label.ndim == predicted.ndim and np.isin(label, (0, 1)).all() and (label.sum(axis=1) == 1).all():
        return label.argmax(axis=1)
    return label


class _OfClasses(Metric):
    """The base of metrics of predictions `(N, C, ...)`, whose number of classes stays."""

    def __init__(self, eval_type: str = "classification") -> None:
        if eval_type not in _TYPES:
            message = f"eval_type must be one of {', '.join(_TYPES)}, but got {eval_type!r}."
            raise ArgumentError(message)
        self._type = eval_type
        super().__init__()

    def clear(self) -> None:
        """Forget all batches."""
        self._class_num = 0

    def _scores_and_labels(self, inputs: Any) -> tuple[np.ndarray, np.ndarray]:
        predicted, label = self._pair(inputs)
        name = type(self).__name__
        if self._type == "classification":
            label = _classes(label, predicted)
            if predicted.ndim != label.ndim + 1 or predicted.shape[:1] + predicted.shape[2:] != label.shape:
                message = f"{name} takes scores (N, C, ...) and labels (N, ...), got {predicted.shape}, {label.shape}."
                raise ShapeError(message)
        elif predicted.shape != label.shape or predicted.ndim < 2:
            message = f"{name} takes predictions and labels of one shape (N, C), got {predicted.shape}, {label.shape}."
            raise ShapeError(message)
        elif not (np.isin(predicted, (0, 1)).all() and np.isin(label, (0, 1)).all()):
            message = f"{name} of several labels takes zeros and ones."
            raise ArgumentError(message)
        classes = predicted.shape[1]
        if self._class_num not in (0, classes):
            message = f"{name} has seen {self._class_num} classes before, but got {classes}."
            raise ShapeError(message)
        if self._type == "classification" and label.size and not 0 <= label.min() <= label.max() < classes:
            message = f"{name} got scores of {classes} classes, but the labels {label.min()} to {label.max()}."
            raise ArgumentError(message)
        self._class_num = classes
        return predicted, label

    def _rows(self, inputs: Any) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and labels as zeros and ones, a row of classes for each element."""
        predicted, label = self._scores_and_labels(inputs)
        one_hot = np.eye(self._class_num)
        if self._type == "classification":
            return one_hot[predicted.argmax(axis=1).reshape(-1)], one_hot[label.astype(np.int64).reshape(-1)]
        return predicted, label


class Accuracy(_OfClasses):
    """The share of right predictions.

    Parameters
    ----------
    eval_type : {"classification", "multilabel"}
        One class is right, or several; of several, all must be predicted.

    Raises
    ------
    ShapeError, ArgumentError
        In `update`, for shapes and labels that do not fit. (ValueErrors.)
    NoSamplesError
        In `eval`, if there were no batches. (A RuntimeError.)

    Examples
    --------
    >>> import nbgrad as nb
    >>> accuracy = nb.nn.Accuracy()
    >>> accuracy.update(nb.Tensor([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]]), nb.Tensor([1, 0, 1]))
    >>> round(accuracy.eval(), 4)
    0.6667
    """

    def clear(self) -> None:
        """Forget all batches."""
        super().clear()
        self._correct, self._total = 0, 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take scores `(N, C, ...)` and labels `(N, ...)`."""
        predicted, label = self._scores_and_labels(inputs)
        if self._type == "classification":
            right = predicted.argmax(axis=1) == label
        else:
            right = (predicted == label).all(axis=1)
        self._correct += int(right.sum())
        self._total += right.size

    def eval(self) -> float:
        """The share."""
        self._checked(self._total)
        return self._correct / self._total


class TopKCategoricalAccuracy(Metric):
    """The share of labels among the `k` highest scores.

    Parameters
    ----------
    k : int

    Examples
    --------
    >>> import nbgrad as nb
    >>> top = nb.nn.TopKCategoricalAccuracy(2)
    >>> top.update(nb.Tensor([[0.1, 0.5, 0.4], [0.7, 0.2, 0.1]]), nb.Tensor([2, 2]))
    >>> top.eval()
    0.5
    """

    def __init__(self, k: int) -> None:
        self.k = positive(k, "k")
        super().__init__()

    def clear(self) -> None:
        """Forget all batches."""
        self._correct, self._total = 0, 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take scores `(N, C)` and labels `(N,)`."""
        predicted, label = self._pair(inputs)
        label = _classes(label, predicted)
        if predicted.ndim != 2 or label.shape != predicted.shape[:1]:
            message = (
                f"{type(self).__name__} takes scores (N, C) and labels (N,), got {predicted.shape}, {label.shape}."
            )
            raise ShapeError(message)
        highest = np.argsort(-predicted, axis=1, kind="stable")[:, : self.k]
        self._correct += int((highest == label[:, None]).any(axis=1).sum())
        self._total += len(label)

    def eval(self) -> float:
        """The share."""
        self._checked(self._total)
        return self._correct / self._total


class Top1CategoricalAccuracy(TopKCategoricalAccuracy):
    """The share of labels with the highest score."""

    def __init__(self) -> None:
        super().__init__(1)


class Top5CategoricalAccuracy(TopKCategoricalAccuracy):
    """The share of labels among the five highest scores."""

    def __init__(self) -> None:
        super().__init__(5)


class _ByClass(_OfClasses):
    """The base of metrics that count, for each class, predictions, labels, and both together."""

    def clear(self) -> None:
        """Forget all batches."""
        super().clear()
        self._counts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take scores `(N, C, ...)` and labels `(N, ...)`."""
        predicted, label = self._rows(inputs)
        axis = 0 if self._type == "classification" else 1
        self._counts.append(((predicted * label).sum(axis), predicted.sum(axis), label.sum(axis)))

    def _score(self, both: np.ndarray, predicted: np.ndarray, label: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def eval(self, average: bool = False) -> Any:
        """One number for each class, or for each sample of several labels; their mean, if `average`."""
        self._checked(len(self._counts))
        join: Any = sum if self._type == "classification" else np.concatenate
        score = self._score(*[join(parts) for parts in zip(*self._counts, strict=True)])
        return score.mean() if flag(average, "average") else score


class Precision(_ByClass):
    """Of the predictions of a class, the share that is right.

    Parameters
    ----------
    eval_type : {"classification", "multilabel"}
        For several labels there is one number for each sample.

    Examples
    --------
    >>> import nbgrad as nb
    >>> precision = nb.nn.Precision()
    >>> precision.update(nb.Tensor([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]]), nb.Tensor([1, 0, 1]))
    >>> precision.eval()
    array([0.5, 1. ])
    """

    def _score(self, both: np.ndarray, predicted: np.ndarray, label: np.ndarray) -> np.ndarray:
        return both / (predicted + _SMALLEST)


class Recall(_ByClass):
    """Of the labels of a class, the share that is predicted; arguments as for `Precision`."""

    def _score(self, both: np.ndarray, predicted: np.ndarray, label: np.ndarray) -> np.ndarray:
        return both / (label + _SMALLEST)


class Fbeta(_ByClass):
    """The weighted harmonic mean of precision and recall.

    Parameters
    ----------
    beta : float
        The weight of recall.

    Examples
    --------
    >>> import nbgrad as nb
    >>> score = nb.nn.Fbeta(1)
    >>> score.update(nb.Tensor([[0.2, 0.5], [0.3, 0.1], [0.9, 0.6]]), nb.Tensor([1, 0, 1]))
    >>> score.eval().round(4)
    array([0.6667, 0.6667])
    """

    def __init__(self, beta: float) -> None:
        if not beta > 0:
            message = f"beta must be greater than 0, but got {beta!r}."
            raise ArgumentError(message)
        self.beta = beta
        super().__init__()

    def _score(self, both: np.ndarray, predicted: np.ndarray, label: np.ndarray) -> np.ndarray:
        square = self.beta**2
        return (1 + square) * both / (square * label + predicted + _SMALLEST)


class F1(Fbeta):
    """The harmonic mean of precision and recall."""

    def __init__(self) -> None:
        super().__init__(1.0)
