"""Cells that train: a network with its loss, one step of training, and a network's value with its gradients.

In: a network, a loss function, an optimizer; at each call a batch. Out: losses, outputs, gradients; the step changes
the Parameters. Called by users in their training loops. A step is recorded and compiled as a whole.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from ..compiled.jit import jit
from ..errors import DtypeError
from ..graph.trace import current_trace
from ..ops.python_values import identity, mixed_precision_cast
from ..process.modes import leaves_made
from ..record.container_leaves import map_leaves
from ..record.tensor import Tensor
from ..remembered.leaves import forgetting
from ..tensors.parameter import ParameterTuple
from ..transforms.argument_positions import check_flag
from ..transforms.arguments import Results
from ..transforms.grad import GradOperation, Request, _run, value_and_grad
from ..transforms.mapped_structures import HyperMap
from .cell import Cell
from .data_parallel import DistributedGradReducer, group_to_sum_over, make_equal
from .layer_arguments import flag
from .optimizer import Optimizer, real_number


def _cell(value: Any, name: str, what: type[Any] = Cell) -> Any:
    if not isinstance(value, what):
        message = (
            f"{name} must be {'an' if what is Optimizer else 'a'} {what.__name__}, but got {type(value).__name__}."
        )
        raise DtypeError(message)
    return value


class WithLossCell(Cell):
    """A network followed by its loss.

    Parameters
    ----------
    backbone : Cell
        Computes outputs from data.
    loss_fn : callable
        Computes the loss from outputs and labels.

    Examples
    --------
    >>> import nbgrad as nb
    >>> net = nb.nn.WithLossCell(nb.nn.ReLU(), lambda output, label: (output - label).sum())
    >>> print(net(nb.Tensor([-1.0, 2.0]), nb.Tensor([1.0, 0.5])))
    0.5
    """

    def __init__(self, backbone: Cell, loss_fn: Any) -> None:
        super().__init__(auto_prefix=False)
        self._backbone = _cell(backbone, "backbone")
        self._loss_fn = loss_fn

    def construct(self, data: Any, label: Any) -> Any:
        """The loss of a batch."""
        return self._loss_fn(self._backbone(data), label)

    @property
    def backbone_network(self) -> Cell:
        """The network without its loss."""
        return self._backbone


class WithEvalCell(Cell):
    """A network and its loss, for evaluation: gives the loss, the outputs and the labels.

    Parameters
    ----------
    network : Cell
    loss_fn : callable
    add_cast_fp32 : bool
        Whether outputs and labels of floating-point numbers become float32 for the loss.

    Examples
    --------
    >>> import nbgrad as nb
    >>> net = nb.nn.WithEvalCell(nb.nn.ReLU(), lambda output, label: (output - label).sum())
    >>> print(*net(nb.Tensor([-1.0, 2.0]), nb.Tensor([1.0, 0.5])))
    0.5 [0. 2.] [1.  0.5]
    """

    def __init__(self, network: Cell, loss_fn: Any, add_cast_fp32: bool = False) -> None:
        super().__init__(auto_prefix=False)
        self._network = _cell(network, "network")
        self._loss_fn = loss_fn
        self.add_cast_fp32 = flag(add_cast_fp32, "add_cast_fp32")

    def construct(self, data: Any, label: Any) -> tuple[Any, Any, Any]:
        """The loss, the outputs and the labels of a batch."""
        outputs = self._network(data)
        if self.add_cast_fp32:
            outputs, label = mixed_precision_cast("float32", (outputs, label))
        return self._loss_fn(outputs, label), outputs, label


class TrainOneStepCell(Cell):
    """One step of training: the loss, its gradients and the update of the weights, compiled together.

    Parameters
    ----------
    network : Cell
        Computes the loss, for example a `WithLossCell`.
    optimizer : Optimizer
        Its Parameters are trained.
    sens : number
        The factor of the loss before it is differentiated; the optimizer divides by its `loss_scale`.
    communicator : str or mpi4py.MPI.Comm, optional
        A group of processes that train together, each on its part of a batch, by its name or communicator. By default
        all of them in the mode `DATA_PARALLEL` of `set_auto_parallel_context`, and otherwise this one alone.

    Raises
    ------
    DtypeError
        If an argument is something else.
    ShapeError
        If processes that train together have different networks.

    Notes
    -----
    Processes that train together begin with the weights of the first one. Gradients are summed over all; with the
    option `gradients_mean`, they are divided by the number of processes. The loss that a step gives is that of this
    process.

    The step neither switches the network to training nor back: call `set_train()` first. Subclasses may define
    `construct`, and find `network`, `weights`, `optimizer`, `sens`, `grad`, `grad_reducer` and `hyper_map`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> class Loss(nb.nn.Cell):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.w = nb.Parameter(nb.Tensor([3.0]), name="w")
    ...
    ...     def construct(self, x):
    ...         return ((self.w - x) ** 2).sum()
    >>> net = Loss()
    >>> step = nb.nn.TrainOneStepCell(net, nb.nn.SGD(net.trainable_params(), learning_rate=0.25))
    >>> print(step(nb.Tensor([1.0])), step(nb.Tensor([1.0])), net.w.value())
    4.0 1.0 [1.5]
    """

    def __init__(self, network: Cell, optimizer: Optimizer, sens: float = 1.0, communicator: Any = None) -> None:
        super().__init__(auto_prefix=False)
        self.network = _cell(network, "network")
        self.optimizer = _cell(optimizer, "optimizer", Optimizer)
        self.weights = self.optimizer.parameters
        self.sens = real_number("sens", sens, least=-float("inf"), open_end=True)
        # For subclasses with a construct of their own, as MindSpore's model collections have them.
        self.grad = GradOperation(get_by_list=True, sens_param=True)
        self.hyper_map = HyperMap()
        comm = group_to_sum_over(communicator)
        self.reducer_flag = comm is not None
        self.grad_reducer = DistributedGradReducer(self.weights, group=comm) if self.reducer_flag else identity
        if self.reducer_flag:
            make_equal(self, comm)
        self._compiled = jit(self)

    def __call__(self, *inputs: Any, **kwargs: Any) -> Any:
        """Train on one batch.

        Parameters
        ----------
        *inputs
            The arguments of the network.

        Returns
        -------
        Tensor
            The output of the network: the loss before the step.
        """
        if current_trace() is None:
            self.optimizer._follow()
            with forgetting() if leaves_made else nullcontext():
                return self._compiled(*inputs, **kwargs)
        return super().__call__(*inputs, **kwargs)

    def construct(self, *inputs: Any, **kwargs: Any) -> Any:
        """Forward, backward, update."""

        def scaled(*args: Any, **named: Any) -> tuple[Any, Any]:
            loss = self.network(*args, **named)
            return map_leaves(lambda part: part * self.sens if isinstance(part, Tensor) else part, loss), loss

        (_, loss), gradients = value_and_grad(scaled, None, self.weights, has_aux=True)(*inputs, **kwargs)
        self.optimizer(self.grad_reducer(gradients))
        return loss


class ForwardValueAndGrad(Cell):
    """A network's value together with its gradients.

    Parameters
    ----------
    network : Cell or function
    weights : ParameterTuple or list of Parameter, optional
        The weights of `get_by_list`; all trainable Parameters of the network by default.
    get_all : bool
        Whether to differentiate with respect to all inputs; else to the first one.
    get_by_list : bool
        Whether to differentiate with respect to the weights; without `get_all` only to them.
    sens_param : bool
        Whether the last argument of a call is the cotangent of the output.

    Raises
    ------
    DtypeError
        If the network cannot be called, or a flag is no bool.

    Examples
    --------
    >>> import nbgrad as nb
    >>> w = nb.Parameter(nb.Tensor([2.0]), name="w")
    >>> both = nb.nn.ForwardValueAndGrad(lambda x: x * x * w, [w], get_all=True, get_by_list=True)
    >>> value, ((of_x,), (of_w,)) = both(nb.Tensor([3.0]))
    >>> print(value, of_x, of_w)
    [18.] [12.] [9.]
    """

    def __init__(
        self,
        network: Any,
        weights: Any = None,
        get_all: bool = False,
        get_by_list: bool = False,
        sens_param: bool = False,
    ) -> None:
        super().__init__(auto_prefix=False)
        if not callable(network):
            message = f"network must be a Cell or a function, but got {type(network).__name__}."
            raise DtypeError(message)
        if weights is None and isinstance(network, Cell):
            weights = ParameterTuple(network.trainable_params())
        self.network = network
        self.weights = weights
        self.get_all = check_flag(get_all, "get_all")
        self.get_by_list = check_flag(get_by_list, "get_by_list")
        self.sens_param = check_flag(sens_param, "sens_param")

    def construct(self, *inputs: Any) -> tuple[Any, Any]:
        """The value, and the gradients in the structure that `GradOperation` gives them."""
        request = Request(
            None if self.get_by_list and not self.get_all else 0,
            self.weights if self.get_by_list else None,
            by_list=self.get_by_list,
            sens_param=self.sens_param,
            all_inputs=self.get_all,
            lenient=True,
        )
        results = Results()
        gradients, value, _ = _run(self.network, inputs, {}, request, results, with_value=True)
        return results.fill((value, gradients))[0]
