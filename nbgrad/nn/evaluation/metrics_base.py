"""Metrics: numbers that are collected from batch to batch; their base, and those of losses and errors.

In: outputs and labels of each batch. Out: one number, or one of each class, for all batches together. Called by users
and by `train.Model`. They are computed by NumPy, outside of compiled steps.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from ...errors import ArgumentError, DtypeError, NameTakenError, NoSamplesError, ShapeError
from ...record.tensor import Tensor

_CLASSES = {
    "accuracy": "Accuracy",
    "acc": "Accuracy",
    "precision": "Precision",
    "recall": "Recall",
    "F1": "F1",
    "topk": "TopKCategoricalAccuracy",
    "top_1_accuracy": "Top1CategoricalAccuracy",
    "top_5_accuracy": "Top5CategoricalAccuracy",
    "mae": "MAE",
    "mse": "MSE",
    "loss": "Loss",
    "dice": "Dice",
    "roc": "ROC",
    "bleu_score": "BleuScore",
    "cosine_similarity": "CosineSimilarity",
    "perplexity": "Perplexity",
    "confusion_matrix": "ConfusionMatrix",
    "confusion_matrix_metric": "ConfusionMatrixMetric",
    "auc": "auc",
    "occlusion_sensitivity": "OcclusionSensitivity",
    "hausdorff_distance": "HausdorffDistance",
    "mean_surface_distance": "MeanSurfaceDistance",
    "root_mean_square_distance": "RootMeanSquareDistance",
}
"""Name of a metric -> its class in `nbgrad.nn`."""


def rearrange_inputs(func: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator for `update` of a Metric: the inputs come in the order that `set_indexes` has chosen.

    Examples
    --------
    >>> import nbgrad as nb
    >>> class Last(nb.nn.Metric):
    ...     def clear(self):
    ...         self.value = None
    ...     @nb.nn.rearrange_inputs
    ...     def update(self, *inputs):
    ...         self.value = inputs
    ...     def eval(self):
    ...         return self.value
    >>> metric = Last().set_indexes([2, 0])
    >>> metric.update("a", "b", "c")
    >>> metric.eval()
    ('c', 'a')
    """

    @functools.wraps(func)
    def update(self: Metric, *inputs: Any) -> Any:
        chosen = self.indexes
        return func(self, *inputs) if chosen is None else func(self, *[inputs[k] for k in chosen])

    return update


class Metric:
    """The base of metrics; subclasses define `clear`, `update` and `eval`."""

    _indexes: list[int] | None = None

    def __init__(self) -> None:
        self.clear()

    @property
    def indexes(self) -> list[int] | None:
        """The places of the inputs among all that `update` gets; None for all of them in order."""
        return self._indexes

    def set_indexes(self, indexes: Sequence[int]) -> Any:
        """Choose which inputs `update` uses, and their order; returns the metric."""
        if not isinstance(indexes, list) or not all(isinstance(k, int) for k in indexes):
            message = f"indexes must be a list of int, but got {indexes!r:.60}."
            raise ArgumentError(message)
        self._indexes = indexes
        return self

    def _convert_data(self, data: Any) -> np.ndarray:
        """An input as an ndarray."""
        if isinstance(data, Tensor):
            return data.asnumpy()
        if isinstance(data, list | np.ndarray):
            return np.asarray(data)
        message = f"{type(self).__name__} takes Tensors, ndarrays and lists, but got {type(data).__name__}."
        raise DtypeError(message)

    def _pair(self, inputs: Sequence[Any]) -> tuple[np.ndarray, np.ndarray]:
        """Predictions and labels as ndarrays."""
        if len(inputs) != 2:
            message = f"{type(self).__name__}.update takes predictions and labels, but got {len(inputs)} inputs."
            raise ArgumentError(message)
        return self._convert_data(inputs[0]), self._convert_data(inputs[1])

    def _checked(self, count: float) -> None:
        """Raise if nothing has been seen."""
        if not count:
            message = f"{type(self).__name__} has seen nothing: call update before eval."
            raise NoSamplesError(message)

    def clear(self) -> None:
        """Forget all batches."""
        raise NotImplementedError

    def update(self, *inputs: Any) -> None:
        """Take a batch."""
        raise NotImplementedError

    def eval(self) -> Any:
        """The metric of all batches."""
        raise NotImplementedError


class Loss(Metric):
    """The mean of the losses of the batches.

    Raises
    ------
    ShapeError
        In `update`, if a loss is no number. (A ValueError.)
    NoSamplesError
        In `eval`, if there were no batches. (A RuntimeError.)

    Examples
    --------
    >>> import nbgrad as nb
    >>> loss = nb.nn.Loss()
    >>> loss.update(nb.Tensor(2.0))
    >>> loss.update(nb.Tensor([4.0]))
    >>> loss.eval()
    3.0
    """

    def clear(self) -> None:
        """Forget all batches."""
        self._sum, self._count = 0.0, 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take the loss of a batch."""
        if len(inputs) != 1:
            message = f"Loss.update takes one input, the loss, but got {len(inputs)}."
            raise ArgumentError(message)
        loss = self._convert_data(inputs[0])
        if loss.ndim > 1 or loss.size != 1:
            message = f"Loss.update takes a loss of one element, but got the shape {loss.shape}."
            raise ShapeError(message)
        self._sum += float(loss.reshape(()))
        self._count += 1

    def eval(self) -> float:
        """The mean."""
        self._checked(self._count)
        return self._sum / self._count


class _Distance(Metric):
    """The mean over samples of a distance of predictions and labels, summed over the elements of a sample."""

    def clear(self) -> None:
        """Forget all batches."""
        self._sum, self._count = 0.0, 0

    def _distances(self, difference: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take predictions and labels."""
        predicted, label = self._pair(inputs)
        self._sum += float(self._distances(label.reshape(predicted.shape) - predicted).sum())
        self._count += label.shape[0]

    def eval(self) -> float:
        """The mean."""
        self._checked(self._count)
        return self._sum / self._count


class MAE(_Distance):
    """The sum of absolute differences of predictions and labels, divided by the number of samples.

    Examples
    --------
    >>> import nbgrad as nb
    >>> error = nb.nn.MAE()
    >>> error.update(nb.Tensor([0.1, 0.2, 0.6, 0.9]), nb.Tensor([0.1, 0.25, 0.7, 0.9]))
    >>> round(error.eval(), 6)
    0.0375
    """

    def _distances(self, difference: np.ndarray) -> np.ndarray:
        return np.abs(difference)


class MSE(_Distance):
    """The sum of squared differences of predictions and labels, divided by the number of samples."""

    def _distances(self, difference: np.ndarray) -> np.ndarray:
        return difference**2


# ----- By name -----


def names() -> list[str]:
    """The names of all metrics.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.train.names()[:3]
    ['F1', 'acc', 'accuracy']
    """
    return sorted(_CLASSES)


def get_metric_fn(name: str, *args: Any, **kwargs: Any) -> Metric:
    """A metric by its name.

    Raises
    ------
    NameTakenError
        If there is none of this name. (A KeyError.)

    Examples
    --------
    >>> import nbgrad as nb
    >>> type(nb.train.get_metric_fn("accuracy")).__name__
    'Accuracy'
    """
    if name not in _CLASSES:
        message = f"There is no metric {name!r}; there are: {', '.join(names())}."
        raise NameTakenError(message)
    return getattr(import_module("nbgrad.nn"), _CLASSES[name])(*args, **kwargs)


def get_metrics(metrics: Any) -> dict[str, Metric]:
    """Metrics by name: from a dict of them, or from names.

    Raises
    ------
    DtypeError
        If it is something else.
    """
    if metrics is None:
        return {}
    if isinstance(metrics, Mapping):
        for name, metric in metrics.items():
            if not isinstance(name, str) or not isinstance(metric, Metric):
                message = f"metrics must map names to Metrics, but got {name!r}: {type(metric).__name__}."
                raise DtypeError(message)
        return dict(metrics)
    if isinstance(metrics, set | list | tuple):
        return {name: get_metric_fn(name) for name in (sorted(metrics) if isinstance(metrics, set) else metrics)}
    message = f"metrics must be a dict or a set, but got {type(metrics).__name__}."
    raise DtypeError(message)
