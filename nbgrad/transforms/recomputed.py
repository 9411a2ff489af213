"""`checkpoint`: a function whose inner values are computed again in the backward pass instead of stored.

In: a function. Out: the same function, whose recorded operations are put into a loop of one turn
(graph/loops/loop_body.py) that is marked to be done `again`: the reverse mode makes another loop of it, which gets
nothing but what the function started from. Called by users.

The function runs as any other code in the recording does, so that writes, guards and Parameters are those of the
recording. Afterwards all that was recorded since it began, and that its results are made of, moves into the body.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from .. import config
from ..graph.builders import reshape
from ..graph.ir import Earlier, Node, next_serial, topological, with_inputs
from ..graph.loops.loop_body import like, make_loop
from ..graph.loops.origins import walked
from ..graph.loops.rolling import roll
from ..graph.trace import current_trace
from ..record.tensor import Tensor
from ..record.zero_dimensional import ZeroDimensional
from ..runtime.memory_order import strides_of
from .argument_positions import check_function
from .arguments import flatten
from .lent_arrays import lends


def checkpoint(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function whose inner values are computed again in the backward pass, not stored.

    Derivatives of the result keep what `fn` reads and what it returns; all in between is computed a second time when
    the cotangents arrive. That costs one more run of `fn`, and saves the memory of its intermediate values.

    Parameters
    ----------
    fn : callable
        A function or Cell of any arguments, which returns anything.

    Returns
    -------
    callable
        Takes the arguments of `fn` and gives its results. Outside of `grad`, `jit` and the other transforms it is `fn`.

    Raises
    ------
    DtypeError
        For what is no function.

    Notes
    -----
    As `jax.checkpoint` and `torch.utils.checkpoint`. The idea is that of A. Griewank, "Achieving logarithmic growth of
    temporal and spatial complexity in reverse automatic differentiation" (1992). What a caller stores of a chain of n
    functions is least if pieces of about sqrt(n) of them are checkpointed together. On a GPU, where loops are written
    out, values are kept as without `checkpoint`.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> @nb.checkpoint
    ... def layer(x, w):
    ...     return np.tanh(w @ np.exp(-x))
    >>> def net(x, w):
    ...     for _ in range(3):
    ...         x = layer(x, w)
    ...     return np.sum(x)
    >>> w = np.array([[0.5, -1.0], [0.25, 0.5]])
    >>> nb.grad(net)(np.array([0.1, 0.2]), w).round(6)
    array([-0.07129 ,  0.352873])
    """
    check_function(fn, "checkpoint")

    @lends
    @functools.wraps(fn, updated=())
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        if current_trace() is None:
            return fn(*args, **kwargs)
        start = next_serial()
        output = fn(*args, **kwargs)
        made = [leaf for leaf in flatten(output)[0] if type(leaf) in _KINDS and leaf._node.serial > start]
        made = [tensor for tensor in made if tensor._node.inputs]
        nodes = list(dict.fromkeys([tensor._node for tensor in made]))
        again = dict(zip(nodes, _as_one(nodes, start), strict=True))
        for tensor in made:
            tensor._node = again[tensor._node]
        return output

    return checkpointed


def recompute(block: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A block's results, whose inner values are computed again in the backward pass: MindSpore's form of `checkpoint`.

    Parameters
    ----------
    block : callable
        A Cell or function.
    *args, **kwargs
        Its arguments.

    Returns
    -------
    as `block`

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.grad(lambda x: nb.recompute(np.sin, x))(0.0)
    np.float64(1.0)
    """
    return checkpoint(block)(*args, **kwargs)


_KINDS = frozenset([Tensor, ZeroDimensional])


def _as_one(outputs: Sequence[Node], start: float) -> Sequence[Node]:
    """The outputs as those of one turn that is done again: of all that was recorded from a node number on."""
    inside: dict[Node, Node] = {}
    read: list[tuple[Node, Node]] = []
    for node in walked(topological(outputs, Earlier(start))):
        if not node.inputs and node.name not in ("constant", "input"):
            inside[node] = node
            continue
        for source in node.inputs or (node,):
            if source not in inside:
                inside[source] = source
                if source.inputs or source.name in ("constant", "input"):
                    inside[source] = like(source)
                    read.append((inside[source], source))
        if node.inputs:
            inside[node] = with_inputs(node, tuple([inside[source] for source in node.inputs]))
    if not read:
        return outputs
    results = [inside[node] for node in outputs]
    if config.roll():
        roll(results, [placeholder for placeholder, _ in read], strides_of)
    loop = make_loop(1, (), (), read, results, again=True)
    found: list[Node] = []
    for node, result in zip(outputs, results, strict=True):
        value = reshape(loop.every(result), node.shape)
        value.traced, value.tensor, value.weak, value.place = node.traced, node.tensor, node.weak, node.place
        found.append(value)
    return found
