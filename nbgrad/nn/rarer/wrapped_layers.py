"""Cells around others: a layer at each time, gradients of a network, parts of a batch; and small old ones.

In: a Cell or function, and options; then Tensors. Out: Cells. Called by users.
"""

from __future__ import annotations

from typing import Any

import numpy

from ...errors import ArgumentError, DtypeError, ShapeError
from ...ops.class_forms import Primitive
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import axis_of
from ...record.tensor import Tensor
from ...tensors.parameter import ParameterTuple
from ...transforms.grad import GradOperation
from ...transforms.jacobians import jvp, vjp
from ..cell import Cell
from ..layer_arguments import positive, whole
from ..training import WithLossCell, _cell

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


class TimeDistributed(Cell):
    """A layer that is applied to every slice along an axis.

    Parameters
    ----------
    layer : Cell or primitive
    time_axis : int
        The axis of the slices.
    reshape_with_axis : int, optional
        An axis that the slices are joined with for one call of the layer; by default there is one call for each slice.

    Raises
    ------
    DtypeError
        If the layer is neither a Cell nor a primitive.

    Examples
    --------
    >>> import nbgrad as nb
    >>> net = nb.nn.TimeDistributed(nb.nn.Dense(3, 6), time_axis=1, reshape_with_axis=0)
    >>> net(nb.ops.ones((4, 5, 3))).shape
    (4, 5, 6)
    """

    def __init__(self, layer: Any, time_axis: int, reshape_with_axis: int | None = None) -> None:
        super().__init__()
        if not isinstance(layer, Cell | Primitive):
            message = f"layer must be a Cell or a primitive, but got {type(layer).__name__}."
            raise DtypeError(message)
        self.layer = layer
        self.time_axis = whole(time_axis, "time_axis")
        self.reshape_with_axis = None if reshape_with_axis is None else whole(reshape_with_axis, "reshape_with_axis")

    def construct(self, inputs: Any) -> Tensor:
        """The outputs, joined along the same axis."""
        x: Any = wrap(as_node(inputs))
        if x.ndim < 3:
            message = f"TimeDistributed takes arrays of at least three axes, but the shape is {x.shape}."
            raise ShapeError(message)
        time = axis_of(self.time_axis, x.ndim)
        if self.reshape_with_axis is None:
            parts = [self.layer(np.take(x, k, time)) for k in range(x.shape[time])]
            return np.stack(parts, time)
        other = axis_of(self.reshape_with_axis, x.ndim)
        if other == x.ndim - 1:
            beside = x.ndim - 2
        else:
            beside = other + 1 if time > other else other - 1
        first = min(beside, other)
        moved = np.moveaxis(x, time, beside)
        joined = moved.reshape((*moved.shape[:first], -1, *moved.shape[first + 2 :]))
        outputs = self.layer(joined)
        if outputs.shape[first : first + 1] != joined.shape[first : first + 1]:
            message = (
                f"The layer made {outputs.shape} of {joined.shape}, and axis {first} cannot be taken apart. Leave "
                "reshape_with_axis out."
            )
            raise ShapeError(message)
        return outputs.reshape((*outputs.shape[:first], *moved.shape[first : first + 2], *outputs.shape[first + 1 :]))


class WithGradCell(Cell):
    """The gradients of a network's loss by its trainable Parameters.

    Parameters
    ----------
    network : Cell
    loss_fn : callable, optional
        Computes the loss from outputs and labels; by default the network has the loss itself.
    sens : Tensor, optional
        The weights of the outputs; by default their sum is differentiated.

    Examples
    --------
    >>> import nbgrad as nb
    >>> net = nb.nn.WithGradCell(nb.nn.Dense(2, 1, has_bias=False), nb.nn.L1Loss("sum"))
    >>> print(net(nb.Tensor([[1.0, 2.0]]), nb.Tensor([[-99.0]]))[0])
    [[1. 2.]]
    """

    def __init__(self, network: Cell, loss_fn: Any = None, sens: Any = None) -> None:
        super().__init__(auto_prefix=False)
        self.network = _cell(network, "network")
        object.__setattr__(self, "weights", ParameterTuple(network.trainable_params()))
        object.__setattr__(self, "sens", sens)
        self.network_with_loss = network if loss_fn is None else WithLossCell(network, loss_fn)
        self.network_with_loss.set_train()
        self.grad = GradOperation(get_by_list=True, sens_param=sens is not None)

    def construct(self, *inputs: Any) -> Any:
        """A tuple of gradients."""
        with_sens = inputs if self.sens is None else (*inputs, self.sens)
        return self.grad(self.network_with_loss, self.weights)(*with_sens)


class GradAccumulationCell(Cell):
    """A network that takes a batch in parts, and sums its outputs.

    Parameters
    ----------
    network : Cell
    micro_size : int
        The number of parts, which divides the first extent of every input.
    """

    def __init__(self, network: Cell, micro_size: int) -> None:
        super().__init__(auto_prefix=False)
        self.network = _cell(network, "network")
        self.micro_size = positive(micro_size, "micro_size")

    def construct(self, *inputs: Any) -> Any:
        """The sum of the outputs for the parts."""
        arrays: list[Any] = [wrap(as_node(one)) for one in inputs]
        if any(one.shape[0] % self.micro_size for one in arrays):
            message = f"{self.micro_size} parts do not divide the batches {[one.shape for one in arrays]}."
            raise ShapeError(message)
        parts = zip(*[np.split(one, self.micro_size) for one in arrays], strict=True)
        outputs = [self.network(*part) for part in parts]
        total = outputs[0]
        for one in outputs[1:]:
            total = total + one
        return total


# ----- Of older releases -----


class Range(Cell):
    """Numbers from one bound up to another, by a step, as `ops.arange`.

    Parameters
    ----------
    start, limit, delta : number
        With one bound only, numbers begin at 0.
    """

    def __init__(self, start: float, limit: float | None = None, delta: float = 1) -> None:
        super().__init__()
        if delta == 0:
            message = "The step of Range must not be 0."
            raise ArgumentError(message)
        found = numpy.arange(*(0, start) if limit is None else (start, limit), delta)
        kind = numpy.int32 if found.dtype.kind == "i" else numpy.float32
        object.__setattr__(self, "result_tensor", Tensor(found.astype(kind)))

    def construct(self) -> Tensor:
        """The numbers."""
        return self.result_tensor


class Jvp(Cell):
    """`nb.jvp` of a function or Cell: takes its arguments and their tangents, and gives the value and its tangent.

    Parameters
    ----------
    fn : callable
    """

    def __init__(self, fn: Any) -> None:
        super().__init__()
        self.fn = fn

    def construct(self, *args: Any) -> Any:
        """The value and its tangent; the last argument is the tangent, or a tuple of them."""
        *inputs, tangents = args
        return jvp(self.fn, tuple(inputs), tangents)


class Vjp(Cell):
    """`nb.vjp` of a function or Cell: takes its arguments and a cotangent, and gives the value and gradients.

    Parameters
    ----------
    fn : callable
    """

    def __init__(self, fn: Any) -> None:
        super().__init__()
        self.fn = fn

    def construct(self, *args: Any) -> Any:
        """The value and its gradients, one alone as it is; the last argument is the cotangent, or a tuple of them."""
        *inputs, cotangents = args
        value, pull = vjp(self.fn, *inputs)
        found = pull(*cotangents) if isinstance(cotangents, tuple) else pull(cotangents)
        return value, found[0] if len(inputs) == 1 else found
