"""MindSpore's options of parallel training: in data parallel mode, steps of training sum gradients over all processes.

In: options. Out: their values. Called by users, by context.py, by the steps of training, and under MindSpore's paths
`parallel`, `parallel._utils` and `parallel._auto_parallel_context`. All parallel modes are the same in one process:
each trains on all of the batch with all of the weights. With several, those that split weights are refused.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError
from .process_groups import rank, size

__all__ = [
    "ParallelMode",
    "auto_parallel_context",
    "get_auto_parallel_context",
    "reset_algo_parameters",
    "reset_auto_parallel_context",
    "set_algo_parameters",
    "set_auto_parallel_context",
]


class ParallelMode:
    """The modes of parallel training."""

    STAND_ALONE = "stand_alone"
    DATA_PARALLEL = "data_parallel"
    HYBRID_PARALLEL = "hybrid_parallel"
    SEMI_AUTO_PARALLEL = "semi_auto_parallel"
    AUTO_PARALLEL = "auto_parallel"
    MODE_LIST = (STAND_ALONE, DATA_PARALLEL, HYBRID_PARALLEL, SEMI_AUTO_PARALLEL, AUTO_PARALLEL)


_DEFAULTS: dict[str, Any] = {
    "device_num": 1,
    "global_rank": 0,
    "gradients_mean": False,
    "gradient_fp32_sync": True,
    "loss_repeated_mean": True,
    "parallel_mode": ParallelMode.STAND_ALONE,
    "pipeline_stages": 1,
    "auto_parallel_search_mode": "recursive_programming",
    "search_mode": "recursive_programming",
    "parameter_broadcast": False,
    "strategy_ckpt_load_file": "",
    "strategy_ckpt_save_file": "",
    "group_ckpt_save_file": "",
    "full_batch": False,
    "dataset_strategy": "data_parallel",
    "enable_parallel_optimizer": False,
    "force_fp32_communication": False,
    "parallel_optimizer_config": {},
    "pipeline_config": {},
    "grad_accumulation_step": 1,
    "all_reduce_fusion_config": None,
    "communi_parallel_mode": "all_group_parallel",
    "optimizer_weight_shard_size": -1,
    "optimizer_weight_shard_aggregated_save": False,
    "sharding_propagation": False,
    "enable_alltoall": False,
    "strategy_ckpt_config": {},
    "comm_fusion": {},
    "mirror_mean": False,
}
_PROCESSES = {"device_num": size, "global_rank": rank, "pipeline_stages": lambda: 1}
"""Options that say which processes there are, and their values."""
_SUMMED = (ParallelMode.DATA_PARALLEL, ParallelMode.HYBRID_PARALLEL)
_SPLIT = (ParallelMode.SEMI_AUTO_PARALLEL, ParallelMode.AUTO_PARALLEL)
_ALGORITHM: dict[str, Any] = {
    "fully_use_devices": False,
    "elementwise_op_strategy_follow": False,
    "enable_algo_approxi": False,
    "algo_approxi_epsilon": 0.1,
    "tensor_slice_align_enable": False,
    "tensor_slice_align_size": 16,
}
_options = dict(_DEFAULTS)
_algorithm = dict(_ALGORITHM)


def _known(name: str, options: dict[str, Any], function: str) -> None:
    if name not in options:
        message = f"{function} has no option {name!r}."
        raise ArgumentError(message)


def set_auto_parallel_context(**kwargs: Any) -> None:
    """Set options of parallel training; with one process, they change nothing.

    Parameters
    ----------
    parallel_mode : str, optional
        One of `ParallelMode`. In `DATA_PARALLEL`, steps of training that are made from now on sum the gradients of all
        processes.
    gradients_mean : bool, optional
        Whether they divide the sums by the number of processes.
    device_num, global_rank, pipeline_stages : int, optional
        The number of processes, the rank of this one, and 1.
    **kwargs
        MindSpore's other options, without effect.

    Raises
    ------
    ArgumentError
        For an unknown option or mode, and for numbers of other processes than there are. A mode that splits weights is
        an error of the step of training, if there are several.

    Examples
    --------
    >>> import nbgrad as nb
    >>> from nbgrad.communication import get_group_size
    >>> nb.set_auto_parallel_context(parallel_mode=nb.ParallelMode.DATA_PARALLEL, device_num=get_group_size())
    >>> nb.get_auto_parallel_context("parallel_mode")
    'data_parallel'
    >>> nb.reset_auto_parallel_context()
    """
    for name, value in kwargs.items():
        _known(name, _DEFAULTS, "set_auto_parallel_context")
        if name in _PROCESSES and value != _PROCESSES[name]():
            message = f"{name} must be {_PROCESSES[name]()}, as mpiexec has started this process, but got {value!r}."
            raise ArgumentError(message)
        if name == "parallel_mode" and value not in ParallelMode.MODE_LIST:
            message = f"parallel_mode must be one of {', '.join(ParallelMode.MODE_LIST)}, but got {value!r}."
            raise ArgumentError(message)
    _options.update(kwargs)


def get_auto_parallel_context(attr_key: str) -> Any:
    """The value of an option of parallel training.

    Raises
    ------
    ArgumentError
        For an unknown option.
    """
    _known(attr_key, _DEFAULTS, "set_auto_parallel_context")
    return _PROCESSES[attr_key]() if attr_key in _PROCESSES else _options[attr_key]


def reset_auto_parallel_context() -> None:
    """Give all options of parallel training their defaults."""
    _options.clear()
    _options.update(_DEFAULTS)


def set_algo_parameters(**kwargs: Any) -> None:
    """Set options of the search for a distribution over devices; with one device there is none to find.

    Raises
    ------
    ArgumentError
        For an unknown option.
    """
    for name in kwargs:
        _known(name, _ALGORITHM, "set_algo_parameters")
    _algorithm.update(kwargs)


def get_algo_parameters(attr_key: str) -> Any:
    """The value of an option of the search."""
    _known(attr_key, _ALGORITHM, "set_algo_parameters")
    return _algorithm[attr_key]


def reset_algo_parameters() -> None:
    """Give the options of the search their defaults."""
    _algorithm.update(_ALGORITHM)


class _Context:
    """The options with a method for each: `get_device_num()`, `set_parallel_mode(mode)`."""

    def __getattr__(self, name: str) -> Any:
        verb, _, option = name.partition("_")
        if verb not in ("get", "set") or option not in _DEFAULTS:
            message = f"The context of parallel training has no method {name!r}."
            raise AttributeError(message)
        if verb == "get":
            return lambda: get_auto_parallel_context(option)
        return lambda value: set_auto_parallel_context(**{option: value})

    def get_device_num_is_set(self) -> bool:
        """Whether the number of devices was chosen."""
        return False

    def get_parameter_broadcast_is_set(self) -> bool:
        """Whether it was chosen that weights are sent to all devices."""
        return _options["parameter_broadcast"]

    def reset(self) -> None:
        """Give all options their defaults."""
        reset_auto_parallel_context()

    def set_all_reduce_fusion_split_indices(self, indices: Any, group: str = "") -> None:
        """Note at which weights to cut the list of gradients; nbgrad cuts it by bytes."""
        _options["all_reduce_fusion_config"] = list(indices)

    def get_all_reduce_fusion_split_indices(self, group: str = "") -> Any:
        """The weights that were noted."""
        return _options["all_reduce_fusion_config"]


_context = _Context()


def auto_parallel_context() -> _Context:
    """The options with a method for each, for older scripts.

    Examples
    --------
    >>> from nbgrad.communication.parallel_context import auto_parallel_context
    >>> auto_parallel_context().get_device_num()
    1
    """
    return _context


def _get_parallel_mode() -> str:
    return _options["parallel_mode"]


def _get_gradients_mean() -> bool:
    return _options["gradients_mean"]


def _get_device_num() -> int:
    return size()


def _get_global_rank() -> int:
    return rank()


def _get_parameter_broadcast() -> bool:
    return _options["parameter_broadcast"]


def _get_full_batch() -> bool:
    return _options["full_batch"]


def _get_pipeline_stages() -> int:
    return 1


def _is_in_auto_parallel_mode() -> bool:
    return _options["parallel_mode"] in (ParallelMode.SEMI_AUTO_PARALLEL, ParallelMode.AUTO_PARALLEL)


def sums_gradients() -> bool:
    """Whether steps of training sum the gradients of all processes.

    Raises
    ------
    ArgumentError, NbgradError
        In a mode that splits weights, if there are several processes, and if these are not connected yet.
    """
    mode = _options["parallel_mode"]
    if mode in _SPLIT and size() > 1:
        message = f"nbgrad does not split weights over processes, as {mode!r} does. Use 'data_parallel'."
        raise ArgumentError(message)
    return mode in _SUMMED and size() > 1
