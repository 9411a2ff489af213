"""`gradients(ys, xs)`: symbolic derivatives of values in a graph, as TensorFlow's function of that name.

In: values that remember how they were made (or those of a function that is being recorded), and the values to
differentiate with respect to. Out: a list with one gradient for each of the latter. Called by users.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ArgumentError, AutogradError, DtypeError
from ..graph.builders import beside
from ..graph.ir import Node, zeros
from ..graph.trace import current_trace
from ..process.modes import mode
from ..record.tensor import Tensor
from ..remembered.backward import gradients as gradients_of_nodes
from ..remembered.backward import seeds_of
from ..remembered.hooks import replaced, stopped
from ..remembered.leaves import remembers, source_of, watched


class UnconnectedGradients:
    """The two forms of a gradient by what a value does not depend on."""

    NONE = "none"
    ZERO = "zero"


def check_unconnected(value: Any) -> bool:
    """Whether unconnected gradients are to be zeros.

    Raises
    ------
    ArgumentError
        If it is neither "none" nor "zero".
    """
    if value not in ("none", "zero"):
        message = f"Unknown value for unconnected_gradients: {value!r}. Give 'none' or 'zero'."
        raise ArgumentError(message)
    return value == "zero"


def one_each(values: Sequence[Any], given: Sequence[Any], name: str) -> Sequence[Any]:
    """The values given for each of some others.

    Raises
    ------
    ArgumentError
        If there are not as many.
    """
    if len(values) != len(given):
        message = f"{name} must have one Tensor for each of {len(values)} values, but has {len(given)}."
        raise ArgumentError(message)
    return given


def gradients(
    ys: Any,
    xs: Any,
    grad_ys: Any = None,
    name: str = "gradients",
    gate_gradients: bool = False,
    aggregation_method: Any = None,
    stop_gradients: Any = None,
    unconnected_gradients: Any = "none",
) -> list[Tensor | None]:
    """The derivatives of the sum of values with respect to others that they were computed from.

    Parameters
    ----------
    ys, xs : Tensor, or sequence of Tensor
        Values that remember: made of Tensors or Parameters that require gradients, or in a function that is recorded.
    grad_ys : Tensor or sequence of Tensor or None, optional
        The cotangents of `ys`, of their shapes; ones by default.
    name, gate_gradients, aggregation_method
        TensorFlow's, without effect.
    stop_gradients : Tensor or sequence of Tensor, optional
        Values that count as constants.
    unconnected_gradients : {"none", "zero"}
        Whether the derivative by an x that no y depends on is None or zeros.

    Returns
    -------
    list of Tensor or None
        One for each x, of its shape and dtype. They remember, so that they can be differentiated in turn.

    Raises
    ------
    AutogradError
        If a value in `ys` or `xs` does not remember.
    ArgumentError, DtypeError, ShapeError
        For arguments that do not fit.

    Examples
    --------
    >>> import nbgrad as nb
    >>> a = nb.tensor(3.0, requires_grad=True)
    >>> b = 2 * a
    >>> [float(g) for g in nb.gradients(a + b, [a, b])]
    [3.0, 1.0]
    >>> [float(g) for g in nb.gradients(a + b, [a, b], stop_gradients=[a, b])]
    [1.0, 1.0]
    """
    del name, gate_gradients, aggregation_method
    zero = check_unconnected(unconnected_gradients)
    outputs, wanted = _tensors(ys, "ys"), _tensors(xs, "xs")
    given = [None] * len(outputs) if grad_ys is None else grad_ys if isinstance(grad_ys, list | tuple) else [grad_ys]
    given = one_each(outputs, given, "grad_ys")
    seeds = [None if g is None else seeds_of([y], [g], "grad_ys")[0] for y, g in zip(outputs, given, strict=True)]
    if current_trace() is None:
        for title, values in (("ys", outputs), ("xs", wanted)):
            for position, value in enumerate(values):
                if not remembers(source_of(value)):
                    message = (
                        f"Element {position} of {title} does not remember how it was made. Call x.requires_grad_() "
                        "before the computation, or compute within nb.GradientTape()."
                    )
                    raise AutogradError(message)
    nodes, places = [one._node for one in outputs], [source_of(one) for one in wanted]
    sources = places
    if stop_gradients is not None:
        fresh: dict[Node, Node] = {}

        def cut(node: Node) -> Node:
            """The value without a past; what depends on it still can be differentiated by it."""
            alias = fresh[node] = watched(stopped(node))
            return alias

        stops = [source_of(one) for one in _tensors(stop_gradients, "stop_gradients")]
        nodes, before = replaced(nodes, dict.fromkeys(stops, cut))
        of_stop = {node: fresh[before[node]] for node in stops if node in before}
        sources = [of_stop.get(node, before.get(node, node)) for node in places]
    found, _ = gradients_of_nodes(nodes, seeds, sources, mode().remembers)
    return [
        Tensor._of(beside(zeros(n.shape, n.dtype), n)) if g is None and zero else g
        for g, n in zip(found, places, strict=True)
    ]


def _tensors(values: Any, name: str) -> list[Tensor]:
    listed = list(values) if isinstance(values, list | tuple) else [values]
    for value in listed:
        if not isinstance(value, Tensor):
            message = f"{name} must be a Tensor or a sequence of Tensors, but has a {type(value).__name__}."
            raise DtypeError(message)
    return listed
