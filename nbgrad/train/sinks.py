"""Steps that fetch their batches themselves.

In: a function of a batch and a dataset. Out: a function without arguments, for one or several steps. Called by users of
MindSpore's `data_sink`; DatasetHelper iterates over a dataset for loops written by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..compiled.jit import jit
from ..errors import ArgumentError
from ..nn.layer_arguments import positive
from .model import _batches, _length


def _endless(dataset: Any) -> Iterator[tuple[Any, ...]]:
    """The batches of epoch after epoch."""
    while True:
        found = False
        for batch in _batches(dataset):
            found = True
            yield batch
        if not found:
            message = "The dataset has no batches."
            raise ArgumentError(message)


def data_sink(
    fn: Callable[..., Any], dataset: Any, sink_size: int = 1, jit_config: Any = None, input_signature: Any = None
) -> Callable[[], Any]:
    """A function that takes the next batches of a dataset and calls another one with each.

    Parameters
    ----------
    fn : callable
        Takes the columns of a batch.
    dataset : Dataset or iterable
        Begins again at its end.
    sink_size : int
        The number of batches of a call.
    jit_config : object, optional
        Where it is given, the function is compiled.
    input_signature : object, optional
        Has no effect.

    Returns
    -------
    callable
        Without parameters; it returns the result of the last batch.

    Examples
    --------
    >>> import nbgrad as nb
    >>> data = nb.dataset.NumpySlicesDataset([1.0, 2.0, 3.0], shuffle=False)
    >>> step = nb.data_sink(lambda x: x * 10, data, sink_size=2)
    >>> print(step(), step())
    20.0 10.0
    """
    count = positive(sink_size, "sink_size")
    call = fn if jit_config is None else jit(fn)
    batches = _endless(dataset)

    def sink(*args: Any) -> Any:
        result = None
        for _ in range(count):
            result = call(*next(batches))
        return result

    return sink


class DatasetHelper:
    """Iterates over the batches of a dataset.

    Parameters
    ----------
    dataset : Dataset or iterable
    dataset_sink_mode, sink_size, epoch_num
        They have no effect.

    Examples
    --------
    >>> import nbgrad as nb
    >>> helper = nb.DatasetHelper(nb.dataset.NumpySlicesDataset([1.0, 2.0], shuffle=False), dataset_sink_mode=False)
    >>> [float(x) for (x,) in helper]
    [1.0, 2.0]
    """

    def __init__(self, dataset: Any, dataset_sink_mode: bool = True, sink_size: int = -1, epoch_num: int = 1) -> None:
        self._dataset = dataset

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return iter(_batches(self._dataset))

    def sink_size(self) -> int:
        """The number of batches."""
        return _length(self._dataset)

    def stop_send(self) -> None:
        """Does nothing: batches are made when they are asked for."""

    def release(self) -> None:
        """Does nothing: batches are made when they are asked for."""


def connect_network_with_dataset(network: Any, dataset_helper: DatasetHelper) -> Any:
    """The network itself: batches are given to it by the loop."""
    return network
