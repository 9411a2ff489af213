"""Model: a network with its loss, optimizer and metrics, which trains, evaluates and predicts.

In: datasets. Out: trained Parameters, metrics, predictions. Called by users. A step is a Cell of `nn`, compiled as a
whole; what happens between steps is in callbacks.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from typing import Any

import numpy as np

from ..amp.precision import auto_mixed_precision, build_train_network
from ..communication.parallel_context import ParallelMode
from ..errors import ArgumentError, DtypeError
from ..nn.cell import Cell
from ..nn.evaluation.metrics_base import Loss, Metric, get_metrics
from ..nn.layer_arguments import positive, whole
from ..nn.optimizer import Optimizer
from ..nn.training import WithEvalCell, WithLossCell
from ..record.tensor import Tensor
from .callbacks import RunContext, _CallbackManager, _InternalCallbackParam, loss_of


def _batches(dataset: Any) -> Iterable[tuple[Any, ...]]:
    """The batches of a dataset, or of any iterable, as tuples of Tensors."""
    source = dataset.create_tuple_iterator() if hasattr(dataset, "create_tuple_iterator") else dataset
    for batch in source:
        if isinstance(batch, Mapping):
            batch = tuple(batch.values())
        parts = tuple(batch) if isinstance(batch, tuple | list) else (batch,)
        yield tuple([Tensor(part) if isinstance(part, np.ndarray) else part for part in parts])


def _length(dataset: Any) -> int:
    """The number of batches in an epoch; 0 if it is not known."""
    if hasattr(dataset, "get_dataset_size"):
        return dataset.get_dataset_size()
    return len(dataset) if hasattr(dataset, "__len__") else 0


class Model:
    """A network, trained and evaluated.

    Parameters
    ----------
    network : Cell
    loss_fn : callable, optional
        Takes outputs and labels; without it, the network computes the loss.
    optimizer : Optimizer, optional
        Needed for training, unless the network is a whole training step.
    metrics : dict, set or list, optional
        Names of metrics, such as {"accuracy", "loss"}, or a dict of names and Metrics.
    eval_network : Cell, optional
        Computes loss, outputs and labels for metrics; made from network and loss by default.
    eval_indexes : list of int, optional
        The places of loss, outputs and labels among the results of `eval_network`.
    amp_level : {"O0", "O1", "O2", "O3", "auto"}
        As for `amp.auto_mixed_precision`.
    boost_level : str
        Has no effect.
    loss_scale_manager : LossScaleManager, optional
    keep_batchnorm_fp32 : bool, optional
        As for `amp.build_train_network`.

    Raises
    ------
    DtypeError, ArgumentError
        If an argument has another type, a metric does not exist, or there is neither a loss nor an `eval_network` for
        metrics.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(8, 1)
    >>> data = nb.dataset.NumpySlicesDataset((x, 2 * x + 1), ["x", "y"], shuffle=False).batch(4)
    >>> net = nb.nn.Dense(1, 1, "zeros", "zeros")
    >>> model = nb.Model(net, nb.nn.MSELoss(), nb.nn.SGD(net.trainable_params(), 0.3), metrics={"loss"})
    >>> model.train(50, data)
    >>> model.eval(data)["loss"] < 1e-5, model.predict(nb.Tensor([[3.0]])).asnumpy().round(2)
    (True, array([[7.]], dtype=float32))
    """

    def __init__(
        self,
        network: Cell,
        loss_fn: Callable[..., Any] | None = None,
        optimizer: Optimizer | None = None,
        metrics: Any = None,
        eval_network: Cell | None = None,
        eval_indexes: list[int] | None = None,
        amp_level: str = "O0",
        boost_level: str = "O0",
        *,
        loss_scale_manager: Any = None,
        keep_batchnorm_fp32: bool | None = None,
    ) -> None:
        for value, kind, name in ((network, Cell, "network"), (optimizer, Optimizer, "optimizer")):
            if not isinstance(value, kind) and (value is not None or name == "network"):
                message = f"{name} must be a {kind.__name__}, but got {type(value).__name__}."
                raise DtypeError(message)
        if loss_fn is not None and not callable(loss_fn):
            message = f"loss_fn must be a Cell or a function, but got {type(loss_fn).__name__}."
            raise DtypeError(message)
        self._network, self._loss_fn, self._optimizer = network, loss_fn, optimizer
        self._metric_fns: dict[str, Metric] = get_metrics(metrics)
        self._eval_indexes = eval_indexes
        if self._metric_fns and loss_fn is None and eval_network is None:
            message = "Metrics need outputs and labels: give loss_fn, or an eval_network that returns them."
            raise ArgumentError(message)
        if eval_indexes is not None and len(eval_indexes) != 3:
            message = f"eval_indexes must be the places of loss, outputs and labels, but got {eval_indexes!r}."
            raise ArgumentError(message)
        if optimizer is not None:
            self._train_network = build_train_network(
                network,
                optimizer,
                loss_fn,
                amp_level,
                loss_scale_manager=loss_scale_manager,
                keep_batchnorm_fp32=keep_batchnorm_fp32,
            )
        else:
            auto_mixed_precision(network, amp_level)
            self._train_network = network if loss_fn is None else WithLossCell(network, loss_fn)
        self._eval_network = eval_network
        if eval_network is None and loss_fn is not None:
            self._eval_network = WithEvalCell(network, loss_fn)

    @property
    def train_network(self) -> Cell:
        """The training step."""
        return self._train_network

    @property
    def eval_network(self) -> Cell | None:
        """The network that computes loss, outputs and labels."""
        return self._eval_network

    @property
    def predict_network(self) -> Cell:
        """The network itself."""
        return self._network

    def _state(self, mode: str, dataset: Any, epochs: int, callbacks: _CallbackManager) -> Any:
        return _InternalCallbackParam(
            mode=mode,
            network=self._network,
            train_network=self._train_network,
            eval_network=self._eval_network,
            loss_fn=self._loss_fn,
            optimizer=self._optimizer,
            epoch_num=epochs,
            batch_num=_length(dataset),
            train_dataset=dataset if mode == "train" else None,
            valid_dataset=dataset if mode == "eval" else None,
            list_callback=callbacks,
            dataset_sink_mode=False,
            device_number=1,
            parallel_mode=ParallelMode.STAND_ALONE,
            cur_epoch_num=0 if mode == "train" else 1,
            cur_step_num=0,
            net_outputs=None,
        )

    def train(
        self,
        epoch: int,
        train_dataset: Any,
        callbacks: Any = None,
        dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
    ) -> None:
        """Train for some epochs.

        Parameters
        ----------
        epoch : int
            The number of the last epoch.
        train_dataset : Dataset or iterable
            Gives batches: the arguments of the network and, with a loss, the labels.
        callbacks : Callback or list of Callback, optional
        dataset_sink_mode : bool
            Has no effect, as on MindSpore's CPU: callbacks see every step.
        sink_size : int
            Has no effect.
        initial_epoch : int
            How many epochs were trained before.

        Raises
        ------
        ArgumentError, DtypeError
            If a number is out of range, or the dataset is empty.
        """
        self.fit(epoch, train_dataset, None, 1, callbacks, dataset_sink_mode, False, sink_size, initial_epoch)

    def fit(
        self,
        epoch: int,
        train_dataset: Any,
        valid_dataset: Any = None,
        valid_frequency: int | list[int] = 1,
        callbacks: Any = None,
        dataset_sink_mode: bool = False,
        valid_dataset_sink_mode: bool = False,
        sink_size: int = -1,
        initial_epoch: int = 0,
    ) -> None:
        """Train as `train` does, and evaluate in between.

        Parameters
        ----------
        epoch, train_dataset, callbacks, dataset_sink_mode, sink_size, initial_epoch
            As for `train`.
        valid_dataset : Dataset or iterable, optional
            As for `eval`.
        valid_frequency : int or list of int
            After how many epochs, or after which ones, to evaluate.
        valid_dataset_sink_mode : bool
            Has no effect.
        """
        if not 0 <= whole(initial_epoch, "initial_epoch") < positive(epoch, "epoch"):
            message = f"initial_epoch must be at least 0 and less than epoch, but got {initial_epoch} and {epoch}."
            raise ArgumentError(message)
        if self._optimizer is None and self._loss_fn is not None:
            message = "A Model without an optimizer cannot be trained: give Model(network, loss_fn, optimizer)."
            raise ArgumentError(message)
        with ExitStack() as stack:
            manager = stack.enter_context(_CallbackManager(callbacks))
            # As in MindSpore, steps are counted from 1 also after other epochs, and epoch_num are those that are left.
            state = self._state("train", train_dataset, epoch - initial_epoch, manager)
            run = RunContext(state)
            state.cur_epoch_num = initial_epoch
            manager.tell("on_train_begin", run)
            for number in range(initial_epoch + 1, epoch + 1):
                state.cur_epoch_num = number
                self._epoch(train_dataset, state, run, manager)
                if valid_dataset is not None and _is_due(number, valid_frequency):
                    inner = self._state("eval", valid_dataset, 1, manager)
                    inner.update(train_network=state.train_network, cur_epoch_num=number)
                    state.metrics = self._evaluated(valid_dataset, inner, manager.of_users())
                    state.eval_results = inner.eval_results
                else:
                    state.metrics = state.eval_results = None
                manager.tell("on_train_epoch_end", run)
                if run.get_stop_requested():
                    break
            manager.tell("on_train_end", run)

    def _epoch(self, dataset: Any, state: Any, run: RunContext, manager: _CallbackManager) -> None:
        self._train_network.set_train()
        manager.tell("on_train_epoch_begin", run)
        steps = 0
        for batch in _batches(dataset):
            steps += 1
            state.cur_step_num += 1
            state.train_dataset_element = batch
            manager.tell("on_train_step_begin", run)
            self._check(batch)
            state.net_outputs = self._train_network(*batch)
            if not state.batch_num:
                state.batch_num = _Unknown()
            manager.tell("on_train_step_end", run)
            if run.get_stop_requested():
                break
        if not steps:
            message = "The dataset has no batches. Is it used up, or is a batch larger than it, with drop_remainder?"
            raise ArgumentError(message)
        if isinstance(state.batch_num, _Unknown):
            state.batch_num = steps

    def _check(self, batch: tuple[Any, ...]) -> None:
        """Raise unless a batch has data and labels, where there is a loss."""
        if self._loss_fn is not None and len(batch) != 2:
            message = f"A Model with a loss_fn takes batches of data and labels, but got {len(batch)} columns."
            raise ArgumentError(message)

    def eval(self, valid_dataset: Any, callbacks: Any = None, dataset_sink_mode: bool = False) -> dict[str, Any]:
        """The metrics of a dataset.

        Parameters
        ----------
        valid_dataset : Dataset or iterable
            Gives batches of data and labels.
        callbacks : Callback or list of Callback, optional
        dataset_sink_mode : bool
            Has no effect.

        Returns
        -------
        dict
            Names and values of the metrics.

        Raises
        ------
        ArgumentError
            If the Model has no metrics.
        """
        if not self._metric_fns:
            message = 'A Model without metrics evaluates nothing: give Model(..., metrics={"accuracy"}).'
            raise ArgumentError(message)
        with ExitStack() as stack:
            manager = stack.enter_context(_CallbackManager(callbacks))
            return self._evaluated(valid_dataset, self._state("eval", valid_dataset, 1, manager), manager)

    def _evaluated(self, dataset: Any, state: Any, manager: _CallbackManager) -> dict[str, Any]:
        network = self._eval_network
        if network is None:
            message = "A Model evaluates by its loss_fn, or by an eval_network: give one of them."
            raise ArgumentError(message)
        for metric in self._metric_fns.values():
            metric.clear()
        run = RunContext(state)
        losses: list[float] = []
        was_training = self._network.training
        network.set_train(False)
        try:
            manager.tell("on_eval_begin", run)
            manager.tell("on_eval_epoch_begin", run)
            for batch in _batches(dataset):
                state.cur_step_num += 1
                manager.tell("on_eval_step_begin", run)
                if isinstance(network, WithEvalCell):
                    self._check(batch)
                outputs = state.net_outputs = network(*batch)
                manager.tell("on_eval_step_end", run)
                losses.append(loss_of(outputs))
                self._update_metrics(outputs)
                if run.get_stop_requested():
                    break
            state.metrics = {name: metric.eval() for name, metric in self._metric_fns.items()}
            state.eval_results = {**state.metrics, "eval_loss": float(np.mean(losses)) if losses else float("nan")}
            manager.tell("on_eval_epoch_end", run)
            manager.tell("on_eval_end", run)
        finally:
            network.set_train(was_training)
        return state.metrics

    def _update_metrics(self, outputs: Any) -> None:
        parts = outputs if isinstance(outputs, tuple | list) else (outputs,)
        for metric in self._metric_fns.values():
            if metric.indexes is not None:
                metric.update(*parts)
            elif self._eval_indexes is not None or isinstance(metric, Loss):
                loss, output, label = self._eval_indexes or (0, 1, 2)
                metric.update(*([parts[loss]] if isinstance(metric, Loss) else [parts[output], parts[label]]))
            else:
                metric.update(*(parts[1:3] if len(parts) >= 3 else parts))

    def predict(self, *predict_data: Any) -> Any:
        """The outputs of the network, which computes as for evaluation.

        Parameters
        ----------
        *predict_data : Tensor
            The arguments of the network.
        """
        was_training = self._network.training
        self._network.set_train(False)
        try:
            return self._network(*predict_data)
        finally:
            self._network.set_train(was_training)

    def build(self, *args: Any, **kwargs: Any) -> None:
        """Does nothing: steps compile when they are first run."""


class _Unknown(int):
    """The length of an epoch that is not known before its end: a step counts from the beginning of the training."""

    def __new__(cls) -> _Unknown:
        return super().__new__(cls, 2**62)


def _is_due(epoch: int, frequency: int | Iterable[int]) -> bool:
    if isinstance(frequency, int):
        return epoch % positive(frequency, "valid_frequency") == 0
    return epoch in list(frequency)
