"""MindSpore's `set_context`: accepted, so that its scripts run, and checked, so that none has another meaning here.

In: options. Out: `get_context`. Called by users. nbgrad has one way to run: `GRAPH_MODE` and `PYNATIVE_MODE` give the
same results, and both compile what they run.
"""

from __future__ import annotations

import warnings
from typing import Any

from .communication.parallel_context import ParallelMode as ParallelMode
from .communication.parallel_context import get_auto_parallel_context as get_auto_parallel_context
from .communication.parallel_context import reset_auto_parallel_context as reset_auto_parallel_context
from .communication.parallel_context import set_auto_parallel_context as set_auto_parallel_context
from .errors import ArgumentError, user_location

__all__ = [
    "COMPATIBLE",
    "DEBUG",
    "GRAPH_MODE",
    "LAX",
    "PYNATIVE_MODE",
    "RELEASE",
    "STRICT",
    "ParallelMode",
    "get_auto_parallel_context",
    "get_context",
    "reset_auto_parallel_context",
    "set_auto_parallel_context",
    "set_context",
    "set_deterministic",
    "set_device",
    "set_recursion_limit",
]

GRAPH_MODE = 0
PYNATIVE_MODE = 1
STRICT, COMPATIBLE, LAX = 0, 1, 2
"""Values of the option `jit_syntax_level`, which has no effect: functions are run as they are."""
DEBUG, RELEASE = 1, 0
"""Values of the option `debug_level`, which has no effect."""

_options: dict[str, Any] = {"mode": PYNATIVE_MODE, "device_target": "CPU", "device_id": 0}
_DEVICES = ("CPU", "GPU", "Ascend")
_IGNORED = frozenset(
    "device_id max_call_depth save_graphs save_graphs_path pynative_synchronize deterministic memory_optimize_level "
    "max_device_memory enable_graph_kernel enable_compile_cache compile_cache_path runtime_num_threads "
    "precompile_only check_bprop enable_reduce_precision reserve_class_name_in_scope variable_memory_max_size "
    "print_file_path env_config_path grad_for_scalar mempool_block_size op_timeout ascend_config gpu_config "
    "aoe_tune_mode enable_auto_mixed_precision enable_dump save_dump_path enable_profiling profiling_options "
    "jit_level jit_config jit_syntax_level inter_op_parallel_num graph_kernel_flags save_compile_cache "
    "load_compile_cache disable_format_transform jit_enable_inplace_ops debug_level aoe_config exec_order "
    "auto_tune_mode".split()
)


def set_context(**kwargs: Any) -> None:
    """Set options of MindSpore's context.

    Parameters
    ----------
    mode : {GRAPH_MODE, PYNATIVE_MODE}, optional
        No difference here.
    device_target : {"CPU", "GPU", "Ascend"}, optional
        The devices of MindSpore's scripts; all run on the CPU here, others than it with a warning. Arrays say
        themselves where they are: `nb.Tensor(x, device="cuda")`, `net.to("cuda")`.
    **kwargs
        MindSpore's other options for graphs and devices have no effect.

    Raises
    ------
    ArgumentError
        For an unknown option, mode or device.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.set_context(mode=nb.GRAPH_MODE, device_target="CPU")
    >>> nb.get_context("device_target")
    'CPU'
    >>> nb.set_context(mode=nb.PYNATIVE_MODE)
    """
    for name, value in kwargs.items():
        if name == "mode" and value not in (GRAPH_MODE, PYNATIVE_MODE):
            message = f"mode must be GRAPH_MODE or PYNATIVE_MODE, but got {value!r}."
            raise ArgumentError(message)
        if name == "device_target" and value not in _DEVICES:
            message = f"device_target must be one of {', '.join(_DEVICES)}, but got {value!r}."
            raise ArgumentError(message)
        if name not in _options and name not in _IGNORED:
            message = f"set_context has no option {name!r}."
            raise ArgumentError(message)
    if kwargs.get("device_target", "CPU") != "CPU":
        message = (
            f"device_target={kwargs['device_target']!r} has no effect{user_location()}: nbgrad computes where its "
            'arrays are. Use nb.Tensor(x, device="cuda") or net.to("cuda") for a GPU.'
        )
        warnings.warn(message, UserWarning, stacklevel=2)
        kwargs["device_target"] = "CPU"
    _options.update(kwargs)


def set_device(device_target: str, device_id: int = 0) -> None:
    """Choose the device, as `set_context(device_target=...)`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.set_device("CPU")
    """
    set_context(device_target=device_target, device_id=device_id)


def get_context(attr_key: str) -> Any:
    """The value of an option; None for one that was not set.

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.get_context("mode") == nb.PYNATIVE_MODE
    True
    """
    if attr_key not in _options and attr_key not in _IGNORED:
        message = f"set_context has no option {attr_key!r}."
        raise ArgumentError(message)
    return _options.get(attr_key)


def set_deterministic(deterministic: bool) -> None:
    """Accept the option: results never depend on the order in which threads finish.

    Raises
    ------
    ArgumentError
        If it is no bool.
    """
    if not isinstance(deterministic, bool):
        message = f"set_deterministic takes True or False, but got {deterministic!r}."
        raise ArgumentError(message)


def set_recursion_limit(recursion_limit: int = 1000) -> None:
    """Accept the option: functions are run, and Python's own limit holds (`sys.setrecursionlimit`).

    Raises
    ------
    ArgumentError
        If it is no positive integer.
    """
    if not isinstance(recursion_limit, int) or isinstance(recursion_limit, bool) or recursion_limit < 1:
        message = f"set_recursion_limit takes a positive integer, but got {recursion_limit!r}."
        raise ArgumentError(message)
