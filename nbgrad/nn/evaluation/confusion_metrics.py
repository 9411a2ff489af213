"""ConfusionMatrixMetric: rates of true and false predictions, by seventeen names.

In: batches of predictions and labels, one-hot along the axis of classes. Out: a rate. Called by users and by Model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import ArgumentError, ShapeError
from ..layer_arguments import flag
from .metrics_base import Metric, rearrange_inputs

Counts = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""True positives, false positives, true negatives, false negatives."""


def _rates(counts: Counts) -> Counts:
    """Of positives and negatives, those found; of found ones, those that are right."""
    tp, fp, tn, fn = counts
    return tp / (tp + fn), tn / (tn + fp), tp / (tp + fp), tn / (tn + fn)


def _prevalence(counts: Counts) -> np.ndarray:
    tpr, tnr, _, _ = _rates(counts)
    return (np.sqrt(tpr * (1 - tnr)) + tnr - 1) / (tpr + tnr - 1)


def _correlation(counts: Counts) -> np.ndarray:
    tp, fp, tn, fn = counts
    return (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))


RATES: dict[str, tuple[str, Callable[[Counts], np.ndarray]]] = {
    "sensitivity": ("recall, hit rate, tpr, true positive rate", lambda c: _rates(c)[0]),
    "specificity": ("selectivity, tnr, true negative rate", lambda c: _rates(c)[1]),
    "precision": ("ppv, positive predictive value", lambda c: _rates(c)[2]),
    "negative predictive value": ("npv", lambda c: _rates(c)[3]),
    "miss rate": ("fnr, false negative rate", lambda c: 1 - _rates(c)[0]),
    "fall out": ("fpr, false positive rate", lambda c: 1 - _rates(c)[1]),
    "false discovery rate": ("fdr", lambda c: 1 - _rates(c)[2]),
    "false omission rate": ("for", lambda c: 1 - _rates(c)[3]),
    "prevalence threshold": ("pt", _prevalence),
    "threat score": ("critical success index, ts, csi", lambda c: c[0] / (c[0] + c[1] + c[3])),
    "accuracy": ("acc", lambda c: (c[0] + c[2]) / sum(c)),
    "balanced accuracy": ("ba", lambda c: (_rates(c)[0] + _rates(c)[1]) / 2),
    "f1 score": ("f1", lambda c: 2 * c[0] / (2 * c[0] + c[1] + c[3])),
    "matthews correlation coefficient": ("mcc", _correlation),
    "fowlkes mallows index": ("fm", lambda c: np.sqrt(_rates(c)[0] * _rates(c)[2])),
    "informedness": ("bookmaker informedness, bm, youden's j statistic", lambda c: _rates(c)[0] + _rates(c)[1] - 1),
    "markedness": ("deltap, mk", lambda c: _rates(c)[2] + _rates(c)[3] - 1),
}
"""Name -> other names, and the rate of counts."""
_BY_NAME = {
    other.replace(" ", ""): rate for name, (others, rate) in RATES.items() for other in (name, *others.split(", "))
}


class ConfusionMatrixMetric(Metric):
    """A rate of true and false predictions.

    Parameters
    ----------
    skip_channel : bool
        Whether the first class is left out, if there are several: MindSpore's documentation says so, while its code
        leaves it out for False.
    metric_name : str
        sensitivity, specificity, precision, negative predictive value, miss rate, fall out, false discovery rate,
        false omission rate, prevalence threshold, threat score, accuracy, balanced accuracy, f1 score, matthews
        correlation coefficient, fowlkes mallows index, informedness, markedness, or a short name: tpr, f1, ...
    calculation_method : bool
        Whether the rate is computed for each row, and the mean of those is the result; else from all counts.
    decrease : {"mean", "sum"}
        With `calculation_method`: rates of a row's classes are averaged, or all rates counted alike.

    Raises
    ------
    ArgumentError, ShapeError
        For other names, and predictions that have not the shape of the labels.

    Examples
    --------
    >>> import nbgrad as nb
    >>> metric = nb.train.ConfusionMatrixMetric(metric_name="tpr")
    >>> metric.update([[1, 0], [0, 1], [1, 0]], [[1, 0], [0, 1], [0, 1]])
    >>> metric.eval()
    array([0.5])
    """

    def __init__(
        self,
        skip_channel: bool = True,
        metric_name: str = "sensitivity",
        calculation_method: bool = False,
        decrease: str = "mean",
    ) -> None:
        self.skip_channel = flag(skip_channel, "skip_channel")
        self.calculation_method = flag(calculation_method, "calculation_method")
        self.metric_name, self.decrease = metric_name, decrease
        if metric_name.lower().replace("_", "").replace(" ", "") not in _BY_NAME:
            message = f"metric_name must be one of {', '.join(RATES)}, or a short name, but is {metric_name!r}."
            raise ArgumentError(message)
        if decrease not in ("mean", "sum"):
            message = f"decrease must be 'mean' or 'sum', since the result is one number, but is {decrease!r}."
            raise ArgumentError(message)
        self._rate = _BY_NAME[metric_name.lower().replace("_", "").replace(" ", "")]
        super().__init__()

    def clear(self) -> None:
        """Forget all batches."""
        self._counts = np.zeros(4)
        self._total, self._seen = 0.0, 0.0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take predictions (N, C, ...) of 0 and 1, and labels of this shape."""
        predicted, label = (np.asarray(one) for one in self._pair(inputs))
        if predicted.shape != label.shape or label.ndim < 2:
            message = (
                f"ConfusionMatrixMetric takes predictions and labels (N, C, ...) of one shape, but got "
                f"{predicted.shape} and {label.shape}."
            )
            raise ShapeError(message)
        if self.skip_channel and label.shape[1] > 1:
            predicted, label = predicted[:, 1:], label[:, 1:]
        found, true = (one.reshape(*label.shape[:2], -1) == 1 for one in (predicted, label))
        places = (found & true, found & ~true, ~found & ~true, ~found & true)
        counts = tuple([one.sum(axis=2).astype(float) for one in places])
        if not self.calculation_method or label.ndim == 2:
            self._counts += [one.sum() for one in counts]
            return
        with np.errstate(divide="ignore", invalid="ignore"):
            rates = self._rate(counts)  # pyright: ignore[reportArgumentType]
            if self.decrease == "mean":
                rates = np.nansum(rates, axis=1) / np.isfinite(rates).sum(axis=1)
        self._total += np.nansum(rates)
        self._seen += np.isfinite(rates).sum()

    def eval(self) -> Any:
        """The rate."""
        if self._seen:
            return self._total / self._seen
        self._checked(int(self._counts.sum()))
        with np.errstate(divide="ignore", invalid="ignore"):
            return self._rate(tuple(self._counts[:, None]))  # pyright: ignore[reportArgumentType]
