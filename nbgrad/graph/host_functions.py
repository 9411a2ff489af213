"""Library functions inside graphs, such as an FFT or an eigenvalue problem: a program calls back into Python for them.

In: a function, nodes and static values. Out: a `host` node, the function's result at run time. Called by the functions
of `nbgrad.functions` that rest on NumPy's or SciPy's own routines; they wrap the node in a `custom` one with its
derivative, because a `host` node has none.

The operands of a function share any leading axes and it works on the others, so that a batch is more leading axes. It
gives one array; a function with several results lays them out one after the other in one axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .ir import Node, Params, make
from .shapes import Shape


class HostFunction:
    """One library function.

    Parameters
    ----------
    name : str
        What graphs show of it; a library of a device that has such a function knows it by this name.
    rule : callable
        `rule(inputs, params)` gives shape and dtype of the result.
    run : callable
        `run(*arrays, *params)` gives the result.
    into : callable, optional
        `into(out, *arrays, *params)` writes the result where a program wants it, in C order, instead.
    native : callable, optional
        `native(params, layouts)` gives the IR text of a kernel and its integers, so that programs need no Python for
        it; None where they do. The layouts are the shapes and dtypes of operands and result.
    kernel : str, optional
        A special kernel that does the same for real operands, by its name in compiler/special.py. Python is asked
        where the kernel fails.
    alone : (HostFunction, callable), optional
        Another function, which finds some of the results faster if nothing reads the others, and where they begin:
        `begin(shape, *params)`, of the shape of the first operand.
    ordered : bool, optional
        Whether the calls have an effect, so that each is made once and in its turn (call_order.py).
    """

    __slots__ = ("alone", "into", "kernel", "name", "native", "ordered", "rule", "run")

    def __init__(
        self,
        name: str,
        rule: Callable[[Any, Params], tuple[Shape, np.dtype[Any]]],
        run: Callable[..., Any] | None,
        into: Callable[..., None] | None = None,
        native: Callable[[Params, Sequence[Any]], tuple[str, list[int]] | None] | None = None,
        kernel: str | None = None,
        alone: tuple[HostFunction, Callable[..., int]] | None = None,
        ordered: bool = False,
    ) -> None:
        self.name, self.rule, self.run, self.into = name, rule, run, into
        self.native, self.kernel, self.alone, self.ordered = native, kernel, alone, ordered

    def __repr__(self) -> str:
        return repr(self.name)


DeviceCall = Callable[[Any, Sequence[int], Sequence[tuple[Shape, "np.dtype[Any]"]]], None]
"""`call(context, addresses, layouts)`: the addresses of the operands and then of the result, the shape and the dtype of
each; it puts its work on `context.stream`."""
DEVICE_CALLS: dict[HostFunction, Callable[..., DeviceCall | None]] = {}
"""Library functions that run on a device: `DEVICE_CALLS[function](*params)`, None where the CPU must run them."""


def device_call(params: Params) -> DeviceCall | None:
    """The routine of a device for a `host` node of such params, without the layouts that a program adds; or None."""
    find = DEVICE_CALLS.get(params[0])
    return None if find is None else find(*params[1:])


def host(function: HostFunction, inputs: tuple[Node, ...], *params: Any) -> Node:
    """The result of a library function; `params` are static, hashable values.

    Examples
    --------
    >>> from nbgrad.graph.interpret import interpret
    >>> from nbgrad.graph.ir import constant
    >>> cube_root = HostFunction("cube root", lambda inputs, params: (inputs[0].shape, inputs[0].dtype), np.cbrt)
    >>> interpret([host(cube_root, (constant(np.array([8.0, 27.0])),))])[0]
    array([2., 3.])
    """
    return make("host", inputs, (function, *params))


def is_call(node: Node) -> bool:
    """Whether a node is a call whose order counts, or a loop with such calls."""
    if node.name == "loop":
        return any(map(is_call, node.params[0].nodes))
    return node.name == "host" and node.params[0].ordered


def shape_rule(inputs: tuple[Node, ...], params: Params) -> tuple[Shape, np.dtype[Any]]:
    """The shape rule of the primitive."""
    return params[0].rule(inputs, params[1:])


def run_host(params: Params, *arrays: np.ndarray) -> np.ndarray:
    """The function's value. Warnings of an overflow or a division by zero are off: the numbers show these."""
    with np.errstate(all="ignore"):
        return np.asarray(params[0].run(*arrays, *params[1:]))


def run_host_into(out: np.ndarray, params: Params, *arrays: np.ndarray) -> None:
    """Write the function's value into an array in C order."""
    function = params[0]
    with np.errstate(all="ignore"):
        if function.into is None:
            out[...] = function.run(*arrays, *params[1:])
        else:
            function.into(out, *arrays, *params[1:])
