"""Mixed precision: Cells that compute in float16 where it is safe, and in float32 elsewhere.

In: a network and a level. Out: the same network, whose Cells cast what they get. Called by users, and by `train.Model`,
which takes `build_train_network`. Parameters stay in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import nn
from ..dtype import dtype_of
from ..errors import ArgumentError, DtypeError
from ..nn.cell import Cell
from ..nn.loss_scaling import TrainOneStepWithLossScaleCell
from ..nn.training import TrainOneStepCell, WithLossCell
from ..ops.python_values import mixed_precision_cast
from .loss_scale_managers import DynamicLossScaleManager, LossScaleManager

_FAST = "Conv1d Conv2d Conv3d Conv1dTranspose Conv2dTranspose Conv3dTranspose Dense LSTMCell RNNCell GRUCell".split()
_EXACT = "BatchNorm1d BatchNorm2d BatchNorm3d LayerNorm".split()
LEVELS = ("O0", "O1", "O2", "O3", "auto")


def get_white_list() -> list[type[Cell]]:
    """The Cells that level "O1" computes in float16: products and convolutions.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.nn.Dense in nb.amp.get_white_list(), nb.nn.LayerNorm in nb.amp.get_white_list()
    (True, False)
    """
    return [getattr(nn, name) for name in _FAST]


def get_black_list() -> list[type[Cell]]:
    """The Cells that level "O2" computes in float32: normalisations."""
    return [getattr(nn, name) for name in _EXACT]


def _returns(cell: Cell, dtype: Any) -> None:
    """Let a Cell cast its outputs."""
    cell.register_forward_hook(lambda cell, inputs, output: mixed_precision_cast(dtype, output))


def _half(dtype: Any) -> Any:
    if np.dtype(dtype) != np.float16:
        message = f"Mixed precision computes in float16, but got {dtype}."
        raise ArgumentError(message)
    return dtype_of(dtype)


def _network(network: Any) -> Cell:
    if not isinstance(network, Cell):
        message = f"network must be a Cell, but got {type(network).__name__}."
        raise DtypeError(message)
    return network


def _only(network: Cell, fast: Sequence[type[Cell]], dtype: Any) -> None:
    """Some kinds of Cells in float16; they get and give float32."""
    for _, cell in network.cells_and_names():
        if isinstance(cell, tuple(fast)):
            cell.to_float(dtype)
            _returns(cell, np.float32)


def _all_but(network: Cell, exact: Sequence[type[Cell]], dtype: Any) -> None:
    """All Cells in float16 but for some kinds, which compute in float32 and give float16."""
    network.to_float(dtype)
    for _, cell in network.cells_and_names():
        if isinstance(cell, tuple(exact)):
            cell.to_float(np.float32)
            _returns(cell, dtype)
    _returns(network, np.float32)


def auto_mixed_precision(network: Cell, amp_level: str = "O0", dtype: Any = np.float16) -> Cell:
    """Let a network compute in float16 and float32.

    Parameters
    ----------
    network : Cell
        Its Cells are changed.
    amp_level : {"O0", "O1", "O2", "O3", "auto"}
        "O0" changes nothing; "O1" computes convolutions and products in float16 (`get_white_list`), "auto" too;
        "O2" computes all but normalisations in it (`get_black_list`); "O3" all.
    dtype : dtype
        float16.

    Returns
    -------
    Cell
        The network, whose outputs are float32.

    Raises
    ------
    DtypeError, ArgumentError
        If the network is no Cell, or level or dtype do not exist.

    Examples
    --------
    >>> import nbgrad as nb
    >>> net = nb.nn.SequentialCell(nb.nn.Dense(2, 2), nb.nn.LayerNorm((2,)), nb.nn.Dense(2, 1))
    >>> net = nb.amp.auto_mixed_precision(net, "O2")
    >>> print(net(nb.Tensor([[1.0, 2.0]])).dtype, net[0](nb.Tensor([[1.0, 2.0]])).dtype, net[0].weight.dtype)
    Float32 Float16 Float32
    """
    if amp_level not in LEVELS:
        message = f"amp_level must be one of {', '.join(LEVELS)}, but got {amp_level!r}."
        raise ArgumentError(message)
    _network(network)
    half = _half(dtype)
    if amp_level in ("O1", "auto"):
        _only(network, get_white_list(), half)
    elif amp_level in ("O2", "O3"):
        _all_but(network, get_black_list() if amp_level == "O2" else [Unlisted], half)
    return network


class Unlisted(Cell):
    """A kind of Cell that no network has."""


def custom_mixed_precision(
    network: Cell,
    *,
    white_list: Sequence[type[Cell]] | None = None,
    black_list: Sequence[type[Cell]] | None = None,
    dtype: Any = np.float16,
) -> Cell:
    """Let the Cells of one list compute in float16, or all but those of the other list.

    Parameters
    ----------
    network : Cell
    white_list, black_list : list of type, optional
        One of them.
    dtype : dtype
        float16.

    Raises
    ------
    ArgumentError
        If both lists are given, or none.
    """
    if (white_list is None) == (black_list is None):
        message = "custom_mixed_precision takes white_list or black_list: one of them."
        raise ArgumentError(message)
    _network(network)
    if white_list is not None:
        _only(network, white_list, _half(dtype))
    else:
        _all_but(network, black_list or [Unlisted], _half(dtype))
    return network


def build_train_network(
    network: Cell,
    optimizer: nn.Optimizer,
    loss_fn: Any = None,
    level: str = "O0",
    boost_level: str = "O0",
    *,
    loss_scale_manager: LossScaleManager | None = None,
    keep_batchnorm_fp32: bool | None = None,
    cast_model_type: Any = None,
) -> Cell:
    """A training step of a network with its loss, in mixed precision.

    Parameters
    ----------
    network : Cell
    optimizer : Optimizer
    loss_fn : callable, optional
        Without it, the network computes the loss.
    level : {"O0", "O1", "O2", "O3", "auto"}
        As for `auto_mixed_precision`.
    boost_level : str
        Has no effect.
    loss_scale_manager : LossScaleManager, optional
        "O2" has a `DynamicLossScaleManager` by default.
    keep_batchnorm_fp32 : bool, optional
        Whether normalisations of "O2" and "O3" compute in float32; "O2" does, by default.
    cast_model_type : dtype, optional
        Has no effect: the level says it.

    Returns
    -------
    Cell
        A `TrainOneStepCell`, or a `TrainOneStepWithLossScaleCell`, in the mode of training.

    Examples
    --------
    >>> import nbgrad as nb
    >>> net = nb.nn.Dense(1, 1, "zeros", "zeros")
    >>> step = nb.amp.build_train_network(net, nb.nn.SGD(net.trainable_params(), 0.5), nb.nn.MSELoss())
    >>> print(step(nb.Tensor([[1.0]]), nb.Tensor([[1.0]])), net.bias.value())
    1.0 [1.]
    """
    if level in ("O2", "O3") and keep_batchnorm_fp32 is not None:
        level = "O2" if keep_batchnorm_fp32 else "O3"
    if level == "O2" and loss_scale_manager is None:
        loss_scale_manager = DynamicLossScaleManager()
    network = auto_mixed_precision(network, level)
    if loss_fn is not None:
        network = WithLossCell(network, loss_fn)
    sens = 1.0
    if loss_scale_manager is not None:
        rule = loss_scale_manager.get_update_cell()
        if rule is not None:
            return TrainOneStepWithLossScaleCell(network, optimizer, rule).set_train()
        sens = loss_scale_manager.get_loss_scale()
    return TrainOneStepCell(network, optimizer, sens).set_train()
