"""Callbacks of Model: functions that are called at the beginnings and ends of trainings, epochs and steps.

In: a RunContext, through which a callback sees the training and may stop it. Out: what the callback does. Called by
model.py. Other files hold the callbacks that save (saved_models.py).
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..nn.layer_arguments import positive, whole
from ..nn.optimizer import Optimizer
from ..record.tensor import Tensor
from ..tensors.parameter import Parameter


def say(text: Any) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


EVENTS = "begin epoch_begin epoch_end step_begin step_end end".split()


class _InternalCallbackParam(dict[str, Any]):  # pyright: ignore[reportUnusedClass] - MindSpore's name of it
    """The state of a training: a dict whose keys are attributes too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            message = f"The state of this run has no {name!r}. It has: {', '.join(self)}."
            raise AttributeError(message) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class RunContext:
    """A training or evaluation, as callbacks see it.

    Parameters
    ----------
    original_args : dict
        Its state.
    """

    def __init__(self, original_args: Any) -> None:
        if not isinstance(original_args, dict):
            message = f"original_args must be a dict, but got {type(original_args).__name__}."
            raise DtypeError(message)
        self._original_args = original_args
        self._stop_requested = False

    def original_args(self) -> Any:
        """The state: `cur_epoch_num`, `cur_step_num`, `batch_num`, `net_outputs`, `train_network`, `optimizer`, ..."""
        return self._original_args

    def request_stop(self) -> None:
        """Stop after this step."""
        self._stop_requested = True

    def get_stop_requested(self) -> bool:
        """Whether the run is to stop."""
        return self._stop_requested


class Callback:
    """The base of callbacks: subclasses define the methods of the events that they want.

    Notes
    -----
    `on_train_step_end(run_context)` and its relatives are called while training, `on_eval_...` while evaluating; they
    call the shorter `step_end` and so on, which is called for both.

    Examples
    --------
    >>> import nbgrad as nb
    >>> class StopAt(nb.train.Callback):
    ...     def step_end(self, run_context):
    ...         if run_context.original_args().cur_step_num == 2:
    ...             run_context.request_stop()
    >>> with StopAt() as callback:
    ...     callback.begin(None)
    """

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def begin(self, run_context: Any) -> None:
        """Called before the run."""

    def epoch_begin(self, run_context: Any) -> None:
        """Called before each epoch."""

    def epoch_end(self, run_context: Any) -> None:
        """Called after each epoch."""

    def step_begin(self, run_context: Any) -> None:
        """Called before each step."""

    def step_end(self, run_context: Any) -> None:
        """Called after each step."""

    def end(self, run_context: Any) -> None:
        """Called after the run."""


def _event(kind: str, name: str) -> Callable[..., None]:
    def method(self: Callback, run_context: Any) -> None:
        getattr(self, name)(run_context)

    method.__name__ = f"on_{kind}_{name}"
    method.__doc__ = f"`{name}` of a run of {kind}."
    return method


for _kind in ("train", "eval"):
    for _name in EVENTS:
        setattr(Callback, f"on_{_kind}_{_name}", _event(_kind, _name))


class _CallbackManager(Callback):
    """Several callbacks as one; callbacks of others that lack methods are called where they have them."""

    def __init__(self, callbacks: Any) -> None:
        given = [] if callbacks is None else callbacks if isinstance(callbacks, Iterable) else [callbacks]
        self._callbacks: list[Any] = []
        for callback in given:
            if not isinstance(callback, Callback):
                message = f"callbacks must be Callbacks, but got {type(callback).__name__}."
                raise DtypeError(message)
            self._callbacks.append(callback)

    def __exit__(self, *error: object) -> None:
        for callback in self._callbacks:
            callback.__exit__(*error)

    def __enter__(self) -> _CallbackManager:
        self._callbacks = [callback.__enter__() or callback for callback in self._callbacks]
        return self

    def of_users(self) -> _CallbackManager:
        """Those that users have written: the others follow the training, not evaluations in between."""
        package = __name__.partition(".")[0]
        return _CallbackManager([one for one in self._callbacks if type(one).__module__.partition(".")[0] != package])

    def tell(self, event: str, run_context: RunContext) -> None:
        """Call a method of all callbacks."""
        for callback in self._callbacks:
            getattr(callback, event)(run_context)


class LambdaCallback(Callback):
    """A callback made of functions.

    Parameters
    ----------
    on_train_epoch_begin, on_train_epoch_end, on_train_step_begin, ... : callable, optional
        Take the RunContext.

    Raises
    ------
    ArgumentError
        For an event that does not exist.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.train.LambdaCallback(on_train_begin=lambda run: print("begins")).on_train_begin(None)
    begins
    """

    def __init__(self, **functions: Callable[[Any], Any] | None) -> None:
        for name, function in functions.items():
            if not hasattr(Callback, name):
                message = f"Callbacks have no event {name!r}."
                raise ArgumentError(message)
            if function is not None:
                setattr(self, name, function)


def loss_of(outputs: Any) -> Any:
    """The loss among the outputs of a training step, as a float; its mean, if it is no scalar."""
    if isinstance(outputs, tuple | list) and outputs:
        outputs = outputs[0]
    if isinstance(outputs, Tensor | np.ndarray):
        return float(np.mean(np.asarray(outputs)))
    return outputs


class LossMonitor(Callback):
    """Prints the loss; stops the training with an error if it is NaN or infinite.

    Parameters
    ----------
    per_print_times : int
        After how many steps a line is printed; 0 prints none.

    Raises
    ------
    ArgumentError
        While training, if the loss is NaN or infinite. (A ValueError.)
    """

    def __init__(self, per_print_times: int = 1) -> None:
        self._per_print_times = _at_least_0(per_print_times, "per_print_times")
        self._last_print_time = 0

    def step_end(self, run_context: Any) -> None:
        """Print a line, if it is time."""
        state = run_context.original_args()
        loss = loss_of(state.net_outputs)
        epoch = state.get("cur_epoch_num", 1)
        step = (state.cur_step_num - 1) % state.batch_num + 1
        if isinstance(loss, float) and not math.isfinite(loss):
            message = f"In epoch {epoch}, step {step}, the loss is {loss}: training cannot go on."
            raise ArgumentError(message)
        if state.cur_step_num <= self._last_print_time:
            self._last_print_time = 0  # another training
        if self._per_print_times and state.cur_step_num - self._last_print_time >= self._per_print_times:
            self._last_print_time = state.cur_step_num
            say(f"epoch: {epoch} step: {step}, loss is {loss}")

    def on_train_epoch_end(self, run_context: Any) -> None:
        """Print the metrics of an evaluation after this epoch."""
        state = run_context.original_args()
        if state.get("metrics"):
            say(f"Eval result: epoch {state.cur_epoch_num}, metrics: {state.metrics}")


class TimeMonitor(Callback):
    """Prints the time of each epoch, and of its steps on average.

    Parameters
    ----------
    data_size : int, optional
        The steps of an epoch, if the dataset does not know them.
    data_time : bool
        Whether the time is printed for which steps have waited for data.
    """

    def __init__(self, data_size: int | None = None, data_time: bool = False) -> None:
        self.data_size = data_size if data_size is None else positive(data_size, "data_size")
        self.data_time = data_time
        self.epoch_time = time.perf_counter()
        self._waited = 0.0
        self._since = self.epoch_time

    def epoch_begin(self, run_context: Any) -> None:
        """Begin to count."""
        self.epoch_time = self._since = time.perf_counter()
        self._waited = 0.0

    def on_train_step_begin(self, run_context: Any) -> None:
        """Count the time since the last step."""
        self._waited += time.perf_counter() - self._since

    def on_train_step_end(self, run_context: Any) -> None:
        """Begin to wait for data."""
        self._since = time.perf_counter()

    def epoch_end(self, run_context: Any) -> None:
        """Print a line."""
        total = (time.perf_counter() - self.epoch_time) * 1000
        state = run_context.original_args()
        steps = state.get("batch_num") or self.data_size or 1
        line = f"{state.get('mode', '').title()} epoch time: {total:5.3f} ms, per step time: {total / steps:5.3f} ms"
        if self.data_time:
            line += f" (data time: {self._waited * 1000 / steps:5.3f} ms)"
        say(line)


def _at_least_0(value: Any, name: str) -> int:
    if whole(value, name) < 0:
        message = f"{name} must be at least 0, but got {value}."
        raise ArgumentError(message)
    return int(value)


class LearningRateScheduler(Callback):
    """Changes the learning rate at each step.

    Parameters
    ----------
    learning_rate_function : callable
        Takes the learning rate and the number of the step, from 1; returns the new learning rate.
    """

    def __init__(self, learning_rate_function: Callable[[float, int], float]) -> None:
        self.learning_rate_function = learning_rate_function
        self.old_learning_rate: float | None = None

    def step_end(self, run_context: Any) -> None:
        """Set the learning rate of the next step."""
        state = run_context.original_args()
        rate = _rate(state.optimizer)
        old = float(np.asarray(rate.value()))
        new = self.learning_rate_function(old, state.cur_step_num)
        if new != old:
            rate.set_data(Tensor(np.asarray(new, rate.dtype)))


def _rate(optimizer: Any) -> Parameter:
    if not isinstance(optimizer, Optimizer):
        message = "Only a Model with an optimizer has a learning rate to change."
        raise ArgumentError(message)
    rate = optimizer.learning_rate
    if not isinstance(rate, Parameter) or rate.ndim:
        message = "The learning rate is a schedule already; give the optimizer a number to change it by a callback."
        raise ArgumentError(message)
    return rate


class History(Callback):
    """Keeps the loss and the metrics of each epoch in `epoch` and `history`."""

    def __init__(self) -> None:
        self.epoch: dict[str, list[int]] = {"epoch": []}
        self.history: dict[str, list[Any]] = {}

    def begin(self, run_context: Any) -> None:
        """Forget an earlier training."""
        self.epoch, self.history = {"epoch": []}, {}

    def on_train_epoch_end(self, run_context: Any) -> None:
        """Note the loss of the last step, and the metrics of an evaluation."""
        state = run_context.original_args()
        self.epoch["epoch"].append(state.get("cur_epoch_num", 1))
        for name, value in {"net_output": loss_of(state.net_outputs), **(state.get("metrics") or {})}.items():
            self.history.setdefault(name, []).append(value)


class _Watching(Callback):
    """A callback that follows the loss, or a metric of an evaluation, from epoch to epoch."""

    def __init__(self, monitor: str, patience: int, mode: str, min_delta: float) -> None:
        if mode not in ("auto", "min", "max"):
            message = f'mode must be "auto", "min" or "max", but got {mode!r}.'
            raise ArgumentError(message)
        self.monitor, self.patience = monitor, _at_least_0(patience, "patience")
        falls = any(word in monitor.lower() for word in ("loss", "error", "mae", "mse"))
        rises = mode == "max" or (mode == "auto" and not falls)
        self.sign = -1.0 if rises else 1.0
        self.min_delta = abs(min_delta)
        self.best = math.inf
        self.wait = 0

    def _value(self, state: Any) -> float | None:
        if self.monitor == "loss":
            return loss_of(state.net_outputs)
        return (state.get("eval_results") or {}).get(self.monitor)

    def _is_better(self, value: float) -> bool:
        better = self.sign * value < self.best - self.min_delta
        if better:
            self.best, self.wait = self.sign * value, 0
        else:
            self.wait += 1
        return better


class EarlyStopping(_Watching):
    """Stops when the loss, or a metric, has not become better for some epochs.

    Parameters
    ----------
    monitor : str
        "loss", or "eval_loss" or the name of a metric, which `Model.fit` computes.
    min_delta : float
        A smaller change is none.
    patience : int
        After how many epochs without a change it stops.
    verbose : bool
        Whether it prints a line then.
    mode : {"auto", "min", "max"}
        The better direction; by default down for losses and errors.
    baseline : float, optional
        Epochs count that are not better than it.
    restore_best_weights : bool
        Whether the network gets the weights of the best epoch then.
    """

    def __init__(
        self,
        monitor: str = "eval_loss",
        min_delta: float = 0,
        patience: int = 0,
        verbose: bool = False,
        mode: str = "auto",
        baseline: float | None = None,
        restore_best_weights: bool = False,
    ) -> None:
        super().__init__(monitor, patience, mode, min_delta)
        self.verbose, self.restore_best_weights = verbose, restore_best_weights
        self.stopped_epoch = 0
        self._weights: dict[str, np.ndarray] = {}
        if baseline is not None:
            self.best = self.sign * baseline

    def on_train_epoch_end(self, run_context: Any) -> None:
        """Compare this epoch with the best one."""
        state = run_context.original_args()
        value = self._value(state)
        if value is None:
            return
        if self._is_better(value):
            if self.restore_best_weights:
                parameters = state.train_network.parameters_dict()
                self._weights = {name: one.asnumpy().copy() for name, one in parameters.items()}
        elif self.wait >= max(self.patience, 1):
            self.stopped_epoch = state.cur_epoch_num
            run_context.request_stop()
            for name, weight in self._weights.items():
                state.train_network.parameters_dict()[name].set_data(Tensor(weight))
            if self.verbose:
                say(f"Epoch {self.stopped_epoch}: early stopping")


class ReduceLROnPlateau(_Watching):
    """Lowers the learning rate when the loss, or a metric, has not become better for some epochs.

    Parameters
    ----------
    monitor, patience, verbose, mode, min_delta
        As for `EarlyStopping`.
    factor : float
        The factor of the learning rate, below 1.
    cooldown : int
        The epochs after a change that do not count.
    min_lr : float
        The learning rate does not fall below it.
    """

    def __init__(
        self,
        monitor: str = "eval_loss",
        factor: float = 0.1,
        patience: int = 10,
        verbose: bool = False,
        mode: str = "auto",
        min_delta: float = 1e-4,
        cooldown: int = 0,
        min_lr: float = 0.0,
    ) -> None:
        super().__init__(monitor, patience, mode, min_delta)
        if not 0 < factor < 1:
            message = f"factor must be above 0 and below 1, but got {factor!r}."
            raise ArgumentError(message)
        self.factor, self.verbose, self.min_lr = factor, verbose, min_lr
        self.cooldown, self._cooling = _at_least_0(cooldown, "cooldown"), 0

    def on_train_epoch_end(self, run_context: Any) -> None:
        """Compare this epoch with the best one."""
        state = run_context.original_args()
        value = self._value(state)
        if value is None:
            return
        if self._cooling:
            self._cooling -= 1
            self.wait = 0
        if self._is_better(value) or self._cooling or self.wait < max(self.patience, 1):
            return
        rate = _rate(state.optimizer)
        old = float(np.asarray(rate.value()))
        new = max(old * self.factor, self.min_lr)
        self._cooling, self.wait = self.cooldown, 0
        if new < old:
            rate.set_data(Tensor(np.asarray(new, rate.dtype)))
            if self.verbose:
                say(f"Epoch {state.cur_epoch_num}: the learning rate is {new:g} now")
