"""Library functions inside graphs: what a program calls back into Python for, such as an FFT or an eigenvalue problem.

In: a name, nodes and static values. Out: a `host` node, the function's result at run time. Called by the functions of
`nbgrad.numpy` that rest on NumPy's or SciPy's own routines; they wrap the node in a `custom` one with its derivative,
because a `host` node has none. `HOST` is the table of such functions: by name, a shape rule and a function on arrays.

The operands of a function share any leading axes and it works on the others, so that a batch is more leading axes. It
gives one array; what has several results lays them out one after the other in one axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .ir import Node, Params, make
from .shapes import Shape


class HostFunction(NamedTuple):
    """One library function. `rule(inputs, params)` gives shape and dtype of the result, `run(*arrays, *params)` the
    result."""

    rule: Callable[[Any, Params], tuple[Shape, np.dtype[Any]]]
    run: Callable[..., np.ndarray]


HOST: dict[str, HostFunction] = {}
"""Every library function by name; filled by the modules that use them."""

DeviceCall = Callable[[Any, Sequence[int], Sequence[tuple[Shape, "np.dtype[Any]"]]], None]
"""`call(context, addresses, layouts)`: the addresses of the operands and then of the result, the shape and the dtype of
each; it puts its work on `context.stream`."""
DEVICE_CALLS: dict[str, Callable[..., DeviceCall | None]] = {}
"""What does a function of `HOST` on a device: `DEVICE_CALLS[name](*params)`, None where the host must do it."""


def device_call(params: Params) -> DeviceCall | None:
    """What does a `host` node with such params, without the layouts that a program adds, on a device; None: nothing."""
    find = DEVICE_CALLS.get(params[0])
    return None if find is None else find(*params[1:])


def host(name: str, inputs: tuple[Node, ...], *params: Any) -> Node:
    """The result of a function of `HOST`; `params` are static, hashable values.

    Examples
    --------
    >>> from nbgrad.graph.interpret import interpret
    >>> from nbgrad.graph.ir import constant
    >>> HOST["cube root"] = HostFunction(lambda inputs, params: (inputs[0].shape, inputs[0].dtype), np.cbrt)
    >>> interpret([host("cube root", (constant(np.array([8.0, 27.0])),))])[0]
    array([2., 3.])
    """
    return make("host", inputs, (name, *params))


def shape_rule(inputs: tuple[Node, ...], params: Params) -> tuple[Shape, np.dtype[Any]]:
    """The shape rule of the primitive."""
    return HOST[params[0]].rule(inputs, params[1:])


def run_host(params: Params, *arrays: np.ndarray) -> np.ndarray:
    """The function's value; what it warns of (an overflow, a division by zero) shows in the numbers."""
    with np.errstate(all="ignore"):
        return np.asarray(HOST[params[0]].run(*arrays, *params[1:]))
