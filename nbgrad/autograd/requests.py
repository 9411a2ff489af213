"""`autograd.backward` and `autograd.grad`: gradients of values, accumulated in leaves or given back.

In: outputs, their cotangents, inputs. Out: gradients, and errors in PyTorch's words. Called by users.
"""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, AutogradError
from ..graph.builders import beside
from ..graph.ir import Node, zeros
from ..record.as_node import as_node
from ..record.tensor import Tensor
from ..remembered import backward as passes
from ..remembered.hooks import seen_by
from ..remembered.leaves import is_leaf, memory_of, remembers, source_of
from ..tensors.remembering_methods import check_outside, inputs_of


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Differentiate values with respect to the leaves that they were computed from, and add to the leaves' `grad`.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensor
    grad_tensors : Tensor or sequence of Tensor or None, optional
        Their cotangents, of their shapes; None stands for 1 beside a single element.
    retain_graph, create_graph, inputs
        As for `Tensor.backward`.
    grad_variables : optional
        An older name of `grad_tensors`.

    Raises
    ------
    AutogradError, ShapeError, DtypeError
        As `Tensor.backward`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> x = nb.tensor(3.0, requires_grad=True)
    >>> nb.autograd.backward([x * x, 2 * x])
    >>> print(x.grad)
    8.0
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            message = (
                "'grad_tensors' and 'grad_variables' (deprecated) arguments both passed to backward(). Please only use "
                "'grad_tensors'."
            )
            raise AutogradError(message)
        grad_tensors = grad_variables
    check_outside("backward()", "autograd.grad(), which gives gradients back")
    outputs = passes.outputs_of(tensors)
    passes.check_outputs(outputs)
    seeds = passes.seeds_of(outputs, grad_tensors, "grad_tensors")
    passes.backward(outputs, seeds, retain_graph, create_graph, None if inputs is None else inputs_of(inputs))


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor | None, ...]:
    """The gradients of values with respect to others that they were computed from.

    Parameters
    ----------
    outputs, inputs : Tensor or sequence of Tensor
        The sum of all outputs is differentiated. Inputs need not be leaves.
    grad_outputs : Tensor or sequence of Tensor or None, optional
        The cotangents of outputs, of their shapes; None stands for 1 beside a single element.
    retain_graph : bool, optional
        Whether another pass may follow; by default as `create_graph`.
    create_graph : bool
        Whether the gradients can be differentiated in turn.
    only_inputs : bool
        PyTorch's older flag; must be true.
    allow_unused : bool, optional
        Whether the gradient of an input that no output depends on is None, instead of an error.
    is_grads_batched : bool
        Whether `grad_outputs` are many along a leading axis, as the gradients then are.
    materialize_grads : bool
        Whether gradients of inputs that no output depends on are zeros.

    Returns
    -------
    tuple of Tensor or None
        One gradient for each input, of its shape and dtype.

    Raises
    ------
    AutogradError
        If an output or input does not remember, an input is not used, or the graph was released.
    ArgumentError, ShapeError, DtypeError
        For arguments that do not fit.

    Examples
    --------
    >>> import nbgrad as nb
    >>> x = nb.tensor([1.0, 2.0], requires_grad=True)
    >>> (g,) = nb.autograd.grad((x**3).sum(), x, create_graph=True)
    >>> print(g, *nb.autograd.grad(g.sum(), x))
    [ 3. 12.] [ 6. 12.]
    """
    if not only_inputs:
        message = (
            "only_inputs argument is deprecated and must be True: use autograd.backward() to accumulate in leaves."
        )
        raise ArgumentError(message)
    if materialize_grads and allow_unused is not None and not allow_unused:
        message = (
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
        raise ArgumentError(message)
    values, wanted = passes.outputs_of(outputs), passes.outputs_of(inputs)
    passes.check_outputs(values)
    if not wanted:
        message = "`inputs` argument to `grad()` cannot be empty."
        raise AutogradError(message)
    places = [source_of(one) for one in wanted]
    if not all(map(remembers, places)):
        message = "One of the differentiated Tensors does not require grad"
        raise AutogradError(message)
    seeds = _batches(values, grad_outputs) if is_grads_batched else passes.seeds_of(values, grad_outputs)
    nodes = [one._node for one in values]
    found, _ = passes.gradients(nodes, seeds, places, create_graph, is_grads_batched)
    if not (create_graph if retain_graph is None else retain_graph):
        passes.release(passes.passed(nodes, places))
    size = next((seed.shape[:1] for seed in seeds if seed is not None), ()) if is_grads_batched else ()
    given: list[Tensor | None] = []
    for position, (place, gradient) in enumerate(zip(places, found, strict=True)):
        if gradient is None and materialize_grads:
            gradient = Tensor._of(beside(zeros((*size, *place.shape), place.dtype), place))
        elif gradient is None and not allow_unused:
            message = (
                "One of the differentiated Tensors appears to not have been used in the graph: that at index "
                f"{position}. Set allow_unused=True if this is the desired behavior."
            )
            raise AutogradError(message)
        given.append(gradient if gradient is None else _hooked(place, gradient))
    return tuple(given)


def _hooked(place: Node, gradient: Tensor) -> Tensor:
    """The gradient of an input, after the hooks of a leaf."""
    tensor = place.owner() if is_leaf(place) and place.owner is not None else None
    hooks = memory_of(tensor).hooks if isinstance(tensor, Tensor) and hasattr(tensor, "_memory") else {}
    return seen_by(hooks.values(), gradient)


def _batches(outputs: list[Tensor], given: Any) -> list[Node | None]:
    """The cotangents of outputs that are many along a leading axis.

    Raises
    ------
    AutogradError
        If they do not fit the outputs, or each other.
    """
    given = [given] if isinstance(given, Tensor) or not isinstance(given, list | tuple) else given
    nodes = [None if one is None else as_node(one) for one in given]
    if len(nodes) != len(outputs) or not any(node is not None for node in nodes):
        message = "If `is_grads_batched=True`, grad_outputs must have one Tensor for each output."
        raise AutogradError(message)
    sizes: set[int] = set()
    for node, output in zip(nodes, outputs, strict=True):
        if node is None:
            continue
        if node.shape[1:] != output.shape or not node.shape:
            message = (
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                "dimension. The sizes of the remaining dimensions are expected to match the shape of corresponding "
                f"output, but a mismatch was detected: grad_output has a shape of {node.shape} and output has a shape "
                f"of {output.shape}."
            )
            raise AutogradError(message)
        sizes.add(node.shape[0])
    if len(sizes) > 1:
        message = f"If `is_grads_batched=True`, all grad_outputs must count the same number, not {sorted(sizes)}."
        raise AutogradError(message)
    return nodes
