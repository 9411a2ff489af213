"""Where values are: a node on a device, or in the CPU's memory.

In: a node, and a device or its name. Out: the node there. A value is moved when it is asked for, so that moving is no
part of graphs: what is being differentiated or compiled must be moved before that. Nothing of `nbgrad.device` is
imported before a device is named. Called by the methods of Tensors that move them, and by functions that make arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import TracedValueError
from ..graph.builders import placed, users_constant
from ..graph.ir import Node, constant, on_host
from ..graph.trace import current_trace
from ..runtime.evaluate import computed, uploaded


def device_of(name: Any) -> Any:
    """The `Device` that a name means; None for the CPU.

    Raises
    ------
    ArgumentError
        If it is no device, or none of this machine.
    DeviceError
        If there is no driver.
    """
    if isinstance(name, str) and name.lower() == "cpu":
        return None
    from ..device.memory.arrays import device_named

    return device_named(name)


def moved(node: Node, device: Any) -> Node:
    """The value of a node on a device, or in the CPU's memory; the node itself if it is there.

    Parameters
    ----------
    node : Node
    device : str or Device

    Raises
    ------
    TracedValueError
        If the value is being differentiated or compiled.
    ArgumentError, DeviceError
        As `device_of`.
    """
    target = device_of(device)
    if node.device is target:
        return node
    if node.traced and current_trace() is not None:
        message = (
            f"A Tensor of shape {node.shape} that is being differentiated or compiled cannot be moved to {device!r}. "
            "Move it before it is passed, or the Parameters before the function is called."
        )
        raise TracedValueError(message)
    value = computed(node)
    if target is None:
        value = on_host(value)
    else:
        value = uploaded(value, target) if isinstance(value, np.ndarray) else value.to(target)
    made = users_constant(value) if node.tensor else constant(value)
    made.weak = node.weak
    return made


def made_on(node: Node, device: Any) -> Node:
    """The node of a new array on the device that a user asked for; None: wherever it will be used.

    Raises
    ------
    ArgumentError, DeviceError
        As `device_of`.
    """
    target = None if device is None else device_of(device)
    return node if target is None else placed(node, target)
