"""Metrics of scores and sequences: ROC curves and their area, perplexity, BLEU.

In: predictions and labels of each batch. Out: numbers or curves for all batches together. Called by users and, by name,
by `train.Model`. They are computed by NumPy.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, ShapeError
from ..layer_arguments import flag, positive
from .metrics_base import Metric, rearrange_inputs


class ROC(Metric):
    """Rates of false and true positives for all thresholds of a score.

    Parameters
    ----------
    class_num : int, optional
        The number of classes; one curve for each, if it is given.
    pos_label : int, optional
        The label that is to be found, 1 by default, if there are no classes.

    Examples
    --------
    >>> import nbgrad as nb
    >>> roc = nb.train.ROC(pos_label=1)
    >>> roc.update(nb.Tensor([0.1, 0.4, 0.8]), nb.Tensor([0, 0, 1]))
    >>> wrong, right, thresholds = roc.eval()
    >>> print(wrong, right, nb.train.auc(wrong, right))
    [0.  0.  0.5 1. ] [0. 1. 1. 1.] 1.0
    """

    def __init__(self, class_num: int | None = None, pos_label: int | None = None) -> None:
        self.class_num = None if class_num is None else positive(class_num, "class_num")
        self.pos_label = pos_label
        super().__init__()

    def clear(self) -> None:
        """Forget all batches."""
        self._scores: list[np.ndarray] = []
        self._labels: list[np.ndarray] = []

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take scores, one for each label or one for each class, and labels."""
        scores, label = self._pair(inputs)
        if self.class_num is not None:
            if scores.ndim != label.ndim + 1 or scores.shape[1] != self.class_num:
                message = f"ROC takes scores (N, {self.class_num}) and labels (N,), got {scores.shape}, {label.shape}."
                raise ShapeError(message)
        elif scores.shape != label.shape:
            message = f"ROC takes a score for each label, but got {scores.shape} and {label.shape}."
            raise ShapeError(message)
        rows = (-1,) if self.class_num is None else (-1, self.class_num)
        self._scores.append(scores.reshape(rows))
        self._labels.append(label.ravel())

    def eval(self) -> tuple[Any, Any, Any]:
        """Rates of false positives, of true positives, and thresholds; lists of them for several classes."""
        self._checked(len(self._labels))
        scores, labels = np.concatenate(self._scores), np.concatenate(self._labels)
        if self.class_num is None:
            wanted = 1 if self.pos_label is None else self.pos_label
            return _curve(scores, labels == wanted)
        curves = [_curve(scores[:, k], labels == k) for k in range(self.class_num)]
        return tuple([list(part) for part in zip(*curves, strict=True)])  # pyright: ignore[reportReturnType]


def _curve(scores: np.ndarray, positive: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    order = np.argsort(-scores, kind="stable")
    scores, positive = scores[order], positive[order]
    last = np.append(np.flatnonzero(np.diff(scores)), scores.size - 1)
    right = np.append(0, np.cumsum(positive)[last])
    wrong = np.append(0, 1 + last) - right
    thresholds = np.append(scores[0] + 1, scores[last])
    return wrong / max(wrong[-1], 1), right / max(right[-1], 1), thresholds


def auc(x: Any, y: Any, reorder: bool = False) -> float:
    """The area under a curve by trapezoids.

    Parameters
    ----------
    x, y : array-like of one axis
    reorder : bool
        Whether the points are sorted by x first.

    Raises
    ------
    ArgumentError
        If x neither rises nor falls.
    """
    first, second = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if reorder:
        order = np.lexsort((second, first))
        first, second = first[order], second[order]
    step = np.diff(first)
    if (step < 0).any() and (step > 0).any():
        message = "auc needs an x that rises or falls. Give reorder=True."
        raise ArgumentError(message)
    area = float((step * (second[1:] + second[:-1])).sum() / 2)
    return -area if (step < 0).any() else area


class Perplexity(Metric):
    """The exponential of minus the mean logarithm of the probability of labels.

    Parameters
    ----------
    ignore_label : int, optional
        A label that does not count.
    """

    def __init__(self, ignore_label: int | None = None) -> None:
        self.ignore_label = ignore_label
        super().__init__()

    def clear(self) -> None:
        """Forget all batches."""
        self._total, self._count = 0.0, 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take probabilities (..., C) and labels (...)."""
        chances, label = self._pair(inputs)
        if chances.shape[:-1] != label.shape:
            message = f"Perplexity takes probabilities (..., C) and labels (...), got {chances.shape}, {label.shape}."
            raise ShapeError(message)
        flat, classes = chances.reshape(-1, chances.shape[-1]), label.astype(int).ravel()
        kept = np.ones(classes.size, bool) if self.ignore_label is None else classes != self.ignore_label
        own = flat[np.arange(classes.size), np.where(kept, classes, 0)][kept]
        self._total -= float(np.log(np.maximum(own, 1e-10)).sum())
        self._count += int(kept.sum())

    def eval(self) -> float:
        """The perplexity."""
        self._checked(self._count)
        return math.exp(self._total / self._count)


class BleuScore(Metric):
    """How much of the runs of words of a text is in one of its references (Papineni et al. 2002).

    Parameters
    ----------
    n_gram : {1, 2, 3, 4}
        The longest runs.
    smooth : bool
        Whether one is added to the counts of runs of two and more words.
    """

    def __init__(self, n_gram: int = 4, smooth: bool = False) -> None:
        self.n_gram = positive(n_gram, "n_gram")
        if self.n_gram > 4:
            message = f"n_gram must be from 1 to 4, but is {n_gram}."
            raise ArgumentError(message)
        self.smooth = flag(smooth, "smooth")
        super().__init__()

    def clear(self) -> None:
        """Forget all batches."""
        self._found, self._all = np.zeros(self.n_gram), np.zeros(self.n_gram)
        self._length = self._wanted = 0

    @rearrange_inputs
    def update(self, *inputs: Any) -> None:
        """Take texts, each a list of words, and for each one a list of references."""
        texts, references = inputs
        if len(texts) != len(references):
            message = f"BleuScore needs references for each of {len(texts)} texts, but got {len(references)}."
            raise ArgumentError(message)
        for words, others in zip(texts, references, strict=True):
            self._length += len(words)
            self._wanted += min([len(other) for other in others], key=lambda n: (abs(n - len(words)), n))
            for n in range(1, self.n_gram + 1):
                own, most = _runs(words, n), Counter()
                for other in others:
                    most |= _runs(other, n)
                self._found[n - 1] += sum((own & most).values())
                self._all[n - 1] += sum(own.values())

    def eval(self) -> float:
        """The score."""
        self._checked(self._length)
        if not self._found.all() and not self.smooth:
            return 0.0
        more = np.arange(self.n_gram) > 0 if self.smooth else np.zeros(self.n_gram)
        parts = (self._found + more) / (self._all + more)
        if not parts.all():
            return 0.0
        short = 1.0 if self._length > self._wanted else math.exp(1 - self._wanted / self._length)
        return float(short * math.exp(np.log(parts).mean()))


def _runs(words: Sequence[Any], n: int) -> Counter[tuple[Any, ...]]:
    return Counter([tuple(words[k : k + n]) for k in range(len(words) - n + 1)])
