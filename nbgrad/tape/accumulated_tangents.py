"""`ForwardAccumulator`: forward mode for what is computed in a block, as TensorFlow's class of that name.

In: values, and their tangents. Out: the tangents of what is computed from them in the block. Called by users. `nb.jvp`
gives the same for a function.
"""

from __future__ import annotations

from typing import Any

import optree

from ..errors import ArgumentError, AutogradError, ShapeError
from ..graph.builders import beside, cast
from ..graph.differentiate import jvp
from ..graph.ir import Node, zeros
from ..record.as_node import as_node, wrap
from ..record.container_leaves import flatten, leaves_of
from ..record.tensor import Tensor
from ..tensors.parameter import Parameter
from .graph_gradients import check_unconnected, one_each
from .watching import Watching


class ForwardAccumulator:
    """A block in which values carry tangents along.

    Parameters
    ----------
    primals : Tensor or Parameter, or nested containers of them
        The values to differentiate with respect to.
    tangents : as `primals`
        Their tangents, of their shapes and dtypes.

    Raises
    ------
    ArgumentError, ShapeError
        If tangents do not fit, and if the same value is given twice.
    AutogradError
        If the block is entered twice.

    Examples
    --------
    >>> import nbgrad as nb
    >>> x = nb.Tensor([1.0, 2.0])
    >>> with nb.ForwardAccumulator(x, nb.Tensor([1.0, 0.5])) as acc:
    ...     y = x**3
    >>> print(acc.jvp(y))
    [3. 6.]
    """

    def __init__(self, primals: Any, tangents: Any) -> None:
        values = leaves_of(primals)
        given = one_each(values, leaves_of(tangents), "tangents")
        if len({id(value) for value in values}) != len(values):
            message = "Tensor was specified multiple times as a primal of a ForwardAccumulator."
            raise ArgumentError(message)
        self._tangents: list[tuple[Tensor, Node]] = []
        for value, tangent in zip(values, given, strict=True):
            if not isinstance(value, Tensor) or value._node.dtype.kind not in "fc":
                message = f"A primal must be a Tensor of floating-point or complex numbers, but got {value!r}."
                raise ArgumentError(message)
            node = as_node(tangent)
            if node.shape != value.shape:
                message = f"The tangent of a value of shape {value.shape} must have this shape, but has {node.shape}."
                raise ShapeError(message)
            self._tangents.append((value, cast(node, value._node.dtype)))
        self._watching: Watching | None = None

    def __enter__(self) -> ForwardAccumulator:
        if self._watching is not None:
            message = (
                "Accumulator is already recording."
                if self._watching.is_open
                else ("A ForwardAccumulator is for one block: make another one.")
            )
            raise AutogradError(message)
        self._watching = Watching(every_parameter=False)
        self._watching.open()
        for value, _ in self._tangents:
            self._watching.watch(value)
        return self

    def __exit__(self, *_: Any) -> None:
        if self._watching is not None and self._watching.is_open:
            self._watching.close()

    def jvp(self, primals: Any, unconnected_gradients: Any = "none") -> Any:
        """The tangents of values that were computed in the block.

        Parameters
        ----------
        primals : Tensor, or nested containers of them
        unconnected_gradients : {"none", "zero"}
            Whether the tangent of what depends on none of the accumulator's values is None or zeros.

        Returns
        -------
        Tensor or None, in containers as `primals`

        Raises
        ------
        ArgumentError
            For anything but Tensors.
        AutogradError
            Before the block.
        """
        zero = check_unconnected(unconnected_gradients)
        watching = self._watching
        if watching is None:
            message = "The accumulator has recorded nothing: compute within `with ForwardAccumulator(...) as acc:`."
            raise AutogradError(message)
        leaves, treespec = flatten(primals)
        for one in leaves:
            if not isinstance(one, Tensor):
                message = f"jvp takes Tensors, but got {type(one).__name__}."
                raise ArgumentError(message)
        nodes, _ = watching.recorded([watching.value_of(one) for one in leaves])
        wanted: list[Node] = []
        tangents: list[Node] = []
        for value, tangent in self._tangents:
            places = watching.sources_of(value)
            wanted += places
            tangents += [tangent] * (1 if not isinstance(value, Parameter) else len(places))
        found = jvp(nodes, wanted, tangents)
        made: list[Tensor | None] = []
        for node, tangent in zip(nodes, found, strict=True):
            if tangent is not None:
                made.append(wrap(tangent))
            else:
                made.append(Tensor._of(beside(zeros(node.shape, node.dtype), node)) if zero else None)
        return optree.tree_unflatten(treespec, made)
