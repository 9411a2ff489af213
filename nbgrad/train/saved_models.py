"""Checkpoints while training: when they are written, under which names, and how many are kept.

In: a CheckpointConfig. Out: files `prefix-epoch_step.ckpt`. Called by users, as callbacks of Model. Files
are in the format of `nb.save_checkpoint` (safetensors), and `nb.load_checkpoint` reads them.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ArgumentError, DtypeError
from ..nn.cell import Cell
from ..nn.checkpoint import save_checkpoint
from ..nn.layer_arguments import flag, whole
from .callbacks import Callback


def _count(value: Any, name: str) -> int:
    if value is None:
        return 0
    if whole(value, name) < 0:
        message = f"{name} must be at least 0, or None, but got {value}."
        raise ArgumentError(message)
    return int(value)


class CheckpointConfig:
    """When checkpoints are written, and how many are kept.

    Parameters
    ----------
    save_checkpoint_steps : int
        One is written after so many steps; 0 for none.
    save_checkpoint_seconds : int
        One is written after so many seconds, if steps are 0.
    keep_checkpoint_max : int
        How many files are kept; the oldest ones are removed. 0 for all.
    keep_checkpoint_per_n_minutes : int
        Of so many minutes one file is kept, if `keep_checkpoint_max` is 0.
    integrated_save, async_save : bool
        They have no effect: files are complete when a step ends.
    saved_network : Cell, optional
        Saved instead of the network that is trained.
    append_info : list, optional
        "epoch_num", "step_num", and dicts of names and numbers: saved too.
    exception_save : bool
        Whether one is written when the training ends by an error.
    **kwargs
        Encryption (`enc_key`) is refused; MindSpore's other options have no effect.

    Raises
    ------
    ArgumentError, DtypeError
        If all four numbers are 0, or something has another type.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.train.CheckpointConfig(save_checkpoint_steps=100, keep_checkpoint_max=10).keep_checkpoint_max
    10
    """

    def __init__(
        self,
        save_checkpoint_steps: int | None = 1,
        save_checkpoint_seconds: int | None = 0,
        keep_checkpoint_max: int | None = 5,
        keep_checkpoint_per_n_minutes: int | None = 0,
        integrated_save: bool = True,
        async_save: bool | str = False,
        saved_network: Cell | None = None,
        append_info: list[Any] | None = None,
        enc_key: bytes | None = None,
        enc_mode: str = "AES-GCM",
        exception_save: bool = False,
        **kwargs: Any,
    ) -> None:
        self.save_checkpoint_steps = _count(save_checkpoint_steps, "save_checkpoint_steps")
        self.save_checkpoint_seconds = _count(save_checkpoint_seconds, "save_checkpoint_seconds")
        self.keep_checkpoint_max = _count(keep_checkpoint_max, "keep_checkpoint_max")
        self.keep_checkpoint_per_n_minutes = _count(keep_checkpoint_per_n_minutes, "keep_checkpoint_per_n_minutes")
        chosen = (self.save_checkpoint_steps, self.save_checkpoint_seconds)
        if not any((*chosen, self.keep_checkpoint_max, self.keep_checkpoint_per_n_minutes)):
            message = "Of save_checkpoint_steps, save_checkpoint_seconds and the numbers to keep, one must not be 0."
            raise ArgumentError(message)
        if saved_network is not None and not isinstance(saved_network, Cell):
            message = f"saved_network must be a Cell, but got {type(saved_network).__name__}."
            raise DtypeError(message)
        if enc_key is not None:
            message = "Checkpoints are not encrypted: leave enc_key out."
            raise ArgumentError(message)
        self.integrated_save, self.async_save, self.saved_network = integrated_save, async_save, saved_network
        self.exception_save = flag(exception_save, "exception_save")
        self.append_info = list(append_info or [])
        for entry in self.append_info:
            if entry not in ("epoch_num", "step_num") and not isinstance(entry, Mapping):
                message = f'append_info may have "epoch_num", "step_num" and dicts, but got {entry!r:.60}.'
                raise ArgumentError(message)

    def get_checkpoint_policy(self) -> dict[str, int]:
        """The four numbers."""
        names = "save_checkpoint_steps save_checkpoint_seconds keep_checkpoint_max keep_checkpoint_per_n_minutes"
        return {name: getattr(self, name) for name in names.split()}


class ModelCheckpoint(Callback):
    """Writes checkpoints while training.

    Parameters
    ----------
    prefix : str or callable
        The beginning of the files' names. If files of this prefix are in the folder already, a number is added. A
        function gets the state of the training and returns the whole name, without a suffix.
    directory : str or callable, optional
        The folder, which is made; by default the current one.
    config : CheckpointConfig, optional

    Raises
    ------
    ArgumentError
        If the prefix has a slash.

    Examples
    --------
    >>> import nbgrad as nb, os, tempfile
    >>> net = nb.nn.Dense(1, 1)
    >>> model = nb.Model(net, nb.nn.MSELoss(), nb.nn.SGD(net.trainable_params(), 0.1))
    >>> data = nb.dataset.NumpySlicesDataset(([[1.0], [2.0]], [[1.0], [2.0]]), ["x", "y"], shuffle=False).batch(1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.train(2, data, callbacks=nb.train.ModelCheckpoint("line", folder))
    ...     sorted(os.listdir(folder))
    ['line-1_1.ckpt', 'line-1_2.ckpt', 'line-2_1.ckpt', 'line-2_2.ckpt']
    """

    def __init__(
        self,
        prefix: str | Callable[[Any], str] = "CKP",
        directory: str | Callable[[Any], str] | None = None,
        config: CheckpointConfig | None = None,
    ) -> None:
        if not callable(prefix) and (not isinstance(prefix, str) or "/" in prefix):
            message = f"prefix must be a name without '/', but got {prefix!r}."
            raise ArgumentError(message)
        if config is not None and not isinstance(config, CheckpointConfig):
            message = f"config must be a CheckpointConfig, but got {type(config).__name__}."
            raise DtypeError(message)
        self._prefix, self._directory = prefix, directory
        self._config = config or CheckpointConfig()
        self._last_step = 0
        self._last_time = self._kept_since = time.time()
        self._written: list[str] = []
        self._latest = ""
        self._state: Any = None

    @property
    def latest_ckpt_file_name(self) -> str:
        """The path of the last file."""
        return self._latest

    def begin(self, run_context: Any) -> None:
        """Make the folder, and choose a prefix that no file in it has."""
        self._state = run_context.original_args()
        self._last_step, self._last_time = self._state.get("cur_step_num", 0), time.time()
        folder = self._folder(self._state)
        if isinstance(self._prefix, str):
            own = self._prefix
            taken = [name for name in os.listdir(folder) if name.startswith(own) and name.endswith(".ckpt")]
            numbers = [found[1] for name in taken if (found := re.match(rf"{re.escape(own)}(?:_(\d+))?-", name))]
            if numbers and not self._written:
                self._prefix = f"{own}_{max(int(number or 0) for number in numbers) + 1}"

    def _folder(self, state: Any) -> str:
        folder = self._directory(state) if callable(self._directory) else self._directory or os.getcwd()
        os.makedirs(folder, exist_ok=True)
        return folder

    def step_end(self, run_context: Any) -> None:
        """Write a file, if it is time."""
        self._state = state = run_context.original_args()
        config = self._config
        if config.save_checkpoint_steps:
            due = state.cur_step_num >= self._last_step + config.save_checkpoint_steps
        else:
            due = 0 < config.save_checkpoint_seconds < time.time() - self._last_time
        if due:
            self._save(state)

    def end(self, run_context: Any) -> None:
        """Write a file of the last step, if there is none."""
        state = run_context.original_args()
        if self._last_step != state.cur_step_num and (
            self._config.save_checkpoint_steps or self._config.save_checkpoint_seconds
        ):
            self._save(state)

    def __exit__(self, *error: object) -> None:
        if error and error[0] is not None and self._config.exception_save and self._state is not None:
            self._save(self._state, "_breakpoint")

    def _save(self, state: Any, mark: str = "") -> None:
        config, folder = self._config, self._folder(state)
        step = (state.cur_step_num - 1) % state.batch_num + 1
        if callable(self._prefix):
            name = self._prefix(state)
        else:
            name = f"{self._prefix}-{state.cur_epoch_num}_{step}{mark}"
        path = os.path.join(folder, f"{name}.ckpt")
        extra: dict[str, Any] = {}
        for entry in config.append_info:
            extra.update(entry if isinstance(entry, Mapping) else {})
        extra |= {"epoch_num": state.cur_epoch_num} if "epoch_num" in config.append_info else {}
        extra |= {"step_num": state.cur_step_num} if "step_num" in config.append_info else {}
        save_checkpoint(config.saved_network or state.train_network, path, append_dict=extra or None)
        self._forget(path)
        self._latest, self._last_step, self._last_time = path, state.cur_step_num, time.time()

    def _forget(self, path: str) -> None:
        """Remove files that are not to be kept, now that there is another one."""
        config = self._config
        if path in self._written:
            return
        removed: list[str] = []
        if config.keep_checkpoint_max:
            removed = self._written[: max(len(self._written) + 1 - config.keep_checkpoint_max, 0)]
        elif config.keep_checkpoint_per_n_minutes:
            if time.time() - self._kept_since < 60 * config.keep_checkpoint_per_n_minutes:
                removed = self._written[-1:]
            else:
                self._kept_since = time.time()
        for old in removed:
            self._written.remove(old)
            with contextlib.suppress(FileNotFoundError):  # other processes may remove it, too
                os.remove(old)
        self._written.append(path)
