"""Gradients of values that were computed before: what `backward`, `autograd.grad` and the tape do.

In: outputs, their cotangents, and the values to differentiate with respect to (by default all leaves). Out: gradients,
accumulated in the leaves or given back. The program is found by the structure of the remembered graph, as un-jitted
`grad` finds it. Called by Tensor.backward and by both doors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from ..errors import AutogradError, DtypeError, GradientShapeError
from ..graph.batch import batch
from ..graph.builders import beside, cast
from ..graph.differentiate import CUT, active_nodes, vjp
from ..graph.ir import Node, broadcast, by_serial, literal, placeholder
from ..graph.primitives import PRIMITIVES
from ..graph.rows import Linear
from ..graph.trace import current_trace
from ..process.modes import RELEASED, mode
from ..record.as_node import as_node
from ..record.tensor import Tensor
from ..runtime.evaluate import LINES, compute_remembered, take_value
from .anomalies import check_anomalies
from .hooks import hooked, replaced, restored, seen_by
from .leaves import NOTED, Memory, forgetting, is_leaf, memory_of, remembers, source_of

SECOND_TIME = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)
LINEAR = frozenset(one for one in PRIMITIVES.values() if isinstance(one.derivative, Linear))
"""Primitives whose derivatives need no values, so that a pass leaves them as they are."""

# ----- What is given -----


def outputs_of(tensors: Any) -> list[Tensor]:
    """One Tensor or a sequence of them, as a list.

    Raises
    ------
    DtypeError
        If anything else is among them.
    """
    found = [tensors] if isinstance(tensors, Tensor) else list(tensors) if isinstance(tensors, list | tuple) else None
    if found is None or not all(isinstance(one, Tensor) for one in found):
        message = f"Expected a Tensor, or a tuple or list of Tensors, but got {type(tensors).__name__}."
        raise DtypeError(message)
    return found


def check_outputs(outputs: Sequence[Tensor]) -> None:
    """Refuse values that do not remember.

    Raises
    ------
    AutogradError
        In PyTorch's words.
    """
    for position, output in enumerate(outputs):
        if not remembers(output._node):
            message = (
                f"element {position} of tensors does not require grad and does not have a grad_fn. Call "
                "x.requires_grad_() of what it is computed from, Parameters too, before that."
            )
            raise AutogradError(message)


def seeds_of(outputs: Sequence[Tensor], given: Any, name: str = "grad_outputs") -> list[Node | None]:
    """The cotangents of outputs: None for those of a single element whose cotangent is 1.

    Raises
    ------
    AutogradError, DtypeError, GradientShapeError
        If there are too few or too many, for None beside an output of several elements or a complex one, and for one
        that does not fit.
    """
    if given is None:
        given = [None] * len(outputs)
    elif isinstance(given, Tensor) or not isinstance(given, list | tuple):
        given = [given]
    if len(given) != len(outputs):
        message = f"got {len(outputs)} tensors and {len(given)} gradients: {name} must have one for each output"
        raise AutogradError(message)
    seeds: list[Node | None] = []
    for position, (output, seed) in enumerate(zip(outputs, given, strict=True)):
        if seed is None:
            if output.size != 1:
                message = (
                    "grad can be implicitly created only for scalar outputs: give the cotangent of an output of shape "
                    f"{output.shape}, or take its sum()"
                )
                raise AutogradError(message)
            if output._node.dtype.kind == "c":
                message = (
                    "grad can be implicitly created only for real scalar outputs but got "
                    f"{output._node.dtype}: give the cotangent, or take the real part"
                )
                raise AutogradError(message)
            seeds.append(None)
            continue
        if isinstance(seed, bool | str | bytes) or not (hasattr(seed, "shape") or isinstance(seed, int | float)):
            message = f"gradients can be either Tensors or None, but got {type(seed).__name__}"
            raise DtypeError(message)
        node = as_node(seed)
        if node.shape != output.shape:
            message = (
                f"Mismatch in shape: grad_output[{position}] has a shape of {node.shape} and output[{position}] has a "
                f"shape of {output.shape}."
            )
            raise GradientShapeError(message)
        if node.dtype.kind == "c" and output._node.dtype.kind != "c":
            message = (
                f"For complex Tensors, both grad_output and output are required to have the same dtype: "
                f"grad_output[{position}] is {node.dtype}, output[{position}] is {output.dtype}."
            )
            raise AutogradError(message)
        seeds.append(cast(node, output._node.dtype))
    return seeds


# ----- Gradients -----


def _ones(node: Node) -> Node:
    return broadcast(literal(1, node.dtype), node.shape)


def _vjp(outputs: Sequence[Node], seeds: Sequence[Node | None], wanted: Sequence[Node]) -> list[Node | None]:
    """The nodes of gradients; None where no output depends on one."""
    whole = [_ones(node) if seed is None else seed for node, seed in zip(outputs, seeds, strict=True)]
    found = vjp(outputs, whole, wanted)
    return [None if g is None else beside(cast(g, n.dtype), n) for g, n in zip(found, wanted, strict=True)]


def _batched_vjp(outputs: Sequence[Node], seeds: Sequence[Node | None], wanted: Sequence[Node]) -> list[Node | None]:
    """The nodes of gradients for many seeds along a leading axis, which the gradients have too."""
    stand_ins = [placeholder(node.shape, node.dtype) for node in outputs]
    found = vjp(outputs, stand_ins, wanted)
    mapping = {one: seed for one, seed in zip(stand_ins, seeds, strict=True) if seed is not None}
    size = next(iter(mapping.values())).shape[0]
    made = iter(batch([g for g in found if g is not None], mapping, size))
    return [None if g is None else cast(next(made), node.dtype) for g, node in zip(found, wanted, strict=True)]


def gradients(
    outputs: Sequence[Node],
    seeds: Sequence[Node | None],
    wanted: Sequence[Node] | None = None,
    lazily: bool = False,
    batched: bool = False,
    order: Sequence[Node] | None = None,
) -> tuple[list[Tensor | None], Sequence[Node]]:
    """The gradients of `wanted`, by default of all leaves, which are given too.

    Parameters
    ----------
    outputs : sequence of Node
    seeds : sequence of Node or None
        Their cotangents; None stands for ones.
    wanted : sequence of Node, optional
    lazily : bool
        Whether gradients are values that remember, instead of computed ones.
    batched : bool
        Whether seeds are many along a leading axis.
    order : sequence of Node, optional
        All nodes that the outputs need, and perhaps seeds, as `by_serial` gives them, if they are known.

    Returns
    -------
    list of Tensor or None
        None where no output depends on one.
    sequence of Node
        `wanted`.

    Raises
    ------
    AutogradError
        If a pass has released the graph, and in anomaly mode for NaN.
    """
    for node in outputs:
        if node.traced & RELEASED:
            raise AutogradError(SECOND_TIME)
    now = mode()
    lazily = lazily or current_trace() is not None
    if len(NOTED) or lazily or now.anomaly:
        order = by_serial(outputs) if order is None else order
        wanted = [node for node in order if is_leaf(node)] if wanted is None else wanted
        if now.anomaly and not batched:
            check_anomalies(outputs, seeds, [node for node in order if node in LINES], wanted)
        hooks = {n: hooked(NOTED[n][0].hooks.values()) for n in order if n in NOTED and NOTED[n][0].hooks}
    else:
        hooks = {}
    places = wanted
    before: dict[Node, Node] = {}
    if hooks and wanted is not None:
        outputs, before = replaced(outputs, hooks)
        places = [before.get(node, node) for node in wanted]
    rule = _batched_vjp if batched else _vjp

    def derive(nodes: Sequence[Node]) -> list[Node | None]:
        with nullcontext() if lazily else forgetting():
            return rule(outputs, seeds, nodes)

    if lazily:
        assert places is not None
        made = derive(places)
        made = restored(made, before, outputs) if before else made
        return [None if node is None else Tensor._of(node) for node in made], wanted or ()
    asked = [node for node in outputs if node.value is None]
    given = [seed for seed in seeds if seed is not None]
    others = given if places is None else [*given, *places]
    if hooks or (others and order is not None and not set(order).issuperset(others)):
        order = None
    way = batched, *[seed is None for seed in seeds]
    values, leaves = compute_remembered(asked, [*outputs, *given], derive, places, way, order)
    for node, value in zip(asked, values, strict=False):
        take_value(node, value, False)
    found = [None if value is None else Tensor._holding(value) for value in values[len(asked) :]]
    return found, leaves if wanted is None else wanted


def leaves_of(outputs: Iterable[Node]) -> list[Node]:
    """The leaves that outputs depend on."""
    return [node for node in by_serial(outputs) if is_leaf(node)]


def passed(outputs: Sequence[Node], wanted: Sequence[Node]) -> list[Node]:
    """The nodes that a pass from outputs to `wanted` goes through, each after its inputs."""
    order = active_nodes(outputs, wanted)
    active, ends = set(order), set(wanted)
    return [node for node in order if node not in ends or not active.isdisjoint(node.inputs)]


def entered(outputs: Sequence[Node], order: Sequence[Node]) -> list[Node]:
    """Those of some nodes, each after its inputs, that a pass from outputs to all leaves goes through: not those that
    only a detached value, an integer or a cotangent was made of."""
    active = set(outputs)
    for node in reversed(order):
        if node in active and node.primitive not in CUT and remembers(node):
            active.update(node.inputs)
    return [node for node in order if node in active]


def release(order: Iterable[Node]) -> None:
    """Let a backward pass be the last one of nodes, each after its inputs: what it would need again counts as freed."""
    for node in order:
        if remembers(node) and node.owner is None:
            if node.primitive not in LINEAR:
                node.traced |= RELEASED
                continue
            for source in node.inputs:
                if source.traced & RELEASED:
                    node.traced |= RELEASED
                    break


# ----- Accumulation -----


def _add(memory: Memory, gradient: Tensor, lazily: bool) -> None:
    before = memory.grad
    if before is None:
        memory.grad = gradient
    elif lazily:
        memory.grad = before + gradient
    else:
        one, other = before._node.value, gradient._node.value
        alone = before.__class__ is Tensor and not hasattr(before, "_views") and not hasattr(before, "_base")
        if alone and isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
            before._node = Tensor._holding(np.add(one, other))._node  # the short way, of small arrays above all
        else:
            before._replace((before + gradient)._node)  # pyright: ignore[reportAttributeAccessIssue]


def backward(
    outputs: Sequence[Tensor],
    seeds: Sequence[Node | None],
    retain_graph: bool | None,
    create_graph: bool,
    inputs: Sequence[Tensor] | None = None,
) -> None:
    """Accumulate gradients in leaves (or in `inputs`), and in values that retain theirs."""
    nodes = [output._node for output in outputs]
    order = by_serial([*nodes, *[seed for seed in seeds if seed is not None]])
    retaining = _retaining(order) if len(NOTED) else {}
    wanted: list[Node] | None = None
    holders: dict[Node, Tensor] = {}
    if inputs is not None:
        holders = {source_of(one): one for one in inputs}
        wanted = list(holders)
    if retaining:
        wanted = leaves_of(order) if wanted is None else wanted
        wanted = list(dict.fromkeys([*wanted, *retaining]))
    found, leaves = gradients(nodes, seeds, wanted, create_graph, order=order)
    with nullcontext() if create_graph else forgetting():
        # All hooks run before anything changes, so that one that fails leaves all as it was.
        ready = [
            (node, memory, tensor, seen_by(memory.hooks.values(), gradient) if is_leaf(node) else gradient)
            for node, memory, tensor, gradient in _with_holders(leaves, found, holders, retaining)
        ]
        if not (create_graph if retain_graph is None else retain_graph):
            release(entered(nodes, order) if wanted is None else passed(nodes, wanted))
        for _, memory, tensor, gradient in ready:
            _add(memory, gradient, create_graph)
            for hook in list(memory.after.values()):
                if tensor is not None and hook(tensor) is not None:
                    message = "a post accumulate grad hook should return None"
                    raise AutogradError(message)


def _retaining(order: Sequence[Node]) -> dict[Node, Memory]:
    """The values among nodes that retain their gradients: after a write in place, the new value of a Tensor does."""
    found: dict[Node, Memory] = {}
    for node, (memory, reference) in list(NOTED.items()):
        if memory.retains:
            tensor = reference()
            found[node if tensor is None else tensor._node] = memory
    return {node: found[node] for node in order if node in found}


def _with_holders(
    leaves: Sequence[Node],
    found: Sequence[Tensor | None],
    holders: dict[Node, Tensor],
    retaining: dict[Node, Memory],
) -> Iterator[tuple[Node, Memory, Tensor | None, Tensor]]:
    """Nodes with gradients, each with the Memory and the Tensor that get it; without those that are gone."""
    for node, gradient in zip(leaves, found, strict=True):
        if gradient is None:
            continue
        tensor = holders.get(node)
        if tensor is None and node.owner is not None:
            tensor = node.owner()
            if tensor is not None and not tensor.requires_grad:
                continue  # it ended being a leaf after it was used
        if tensor is not None:
            yield node, memory_of(tensor), tensor, gradient
        elif node in retaining:
            yield node, retaining[node], None, gradient
