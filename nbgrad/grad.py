"""Reverse-mode gradients with MindSpore's interface: `grad` and `value_and_grad`.

In: a function, which of its arguments to differentiate, and optionally weights (Tensors that it uses without being
passed). Out: a function of the same arguments that gives gradients. A call records the function, differentiates the
graph and runs value and gradients as one program. Called by users.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import optree

from .errors import ArgumentError, DtypeError
from .graph.differentiate import vjp as node_vjp
from .graph.ir import Node, broadcast, literal, make
from .graph.trace import recording
from .lifting import Results, Wanted, name_of, output_nodes, prepare, with_zeros
from .tensor import Tensor

Positions = int | tuple[int, ...] | None


def check_positions(grad_position: Any, weights: Any = ()) -> tuple[int, ...]:
    """The positions as a tuple.

    Raises
    ------
    ArgumentError
        If there is nothing to differentiate, or a position is negative or repeated.
    DtypeError
        If it is neither an int nor a tuple of ints.
    """
    if grad_position is None:
        if weights is None:
            message = (
                "grad_position and weights are both None, so there is nothing to differentiate with respect to. "
                "Give a position, a tuple of positions, or weights."
            )
            raise ArgumentError(message)
        return ()
    positions = grad_position if isinstance(grad_position, tuple) else (grad_position,)
    for position in positions:
        if not isinstance(position, int):
            message = (
                f"grad_position must be an int, a tuple of ints or None, but got {grad_position!r} of type "
                f"{type(grad_position).__name__}."
            )
            raise DtypeError(message)
        if position < 0:
            message = f"grad_position must not be negative, but got {grad_position!r}. Positions count from 0."
            raise ArgumentError(message)
    if len(set(positions)) != len(positions):
        message = f"grad_position names an argument twice: {grad_position!r}."
        raise ArgumentError(message)
    return tuple([int(position) for position in positions])


def check_flag(value: Any, name: str) -> bool:
    """A flag that must be a bool.

    Raises
    ------
    DtypeError
        If it is not.
    """
    if not isinstance(value, bool):
        message = f"{name} must be True or False, but got {value!r} of type {type(value).__name__}."
        raise DtypeError(message)
    return value


def weight_nodes(weights: Any) -> list[Node]:
    """The nodes of weights, which from now on are alias nodes: only their use through these Tensors counts.

    Raises
    ------
    DtypeError
        If a weight is not a Tensor of floating-point numbers.
    """
    nodes: list[Node] = []
    for weight in weights if isinstance(weights, list | tuple) else [weights]:
        if not isinstance(weight, Tensor) or weight.dtype.kind != "f":
            message = (
                "weights must be a floating-point Tensor or a list or tuple of them, but one is "
                f"{type(weight).__name__}{f' of dtype {weight.dtype}' if isinstance(weight, Tensor) else ''}."
            )
            raise DtypeError(message)
        if weight._node.name != "alias":
            fresh = make("alias", (weight._node,))
            fresh.traced = True
            weight._node = fresh
        nodes.append(weight._node)
    return nodes


def grad(
    fn: Callable[..., Any], grad_position: Positions = 0, weights: Any = None, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that computes the gradients of `fn`.

    Parameters
    ----------
    fn : callable
        Takes arrays (ndarrays, Tensors, floats, or tuples, lists and dicts of them) and any other arguments; returns an
        array or a container of arrays. If the output is not a scalar, the sum of all its elements is differentiated.
    grad_position : int, tuple of int, or None
        The arguments to differentiate. An int or a tuple of one gives one gradient, a longer tuple a tuple of
        gradients; None only differentiates the weights.
    weights : Tensor, or list or tuple of Tensors, optional
        Differentiate with respect to these too. A list gives a tuple of gradients, a single Tensor one gradient; with
        positions the result is `(gradients of inputs, gradients of weights)`.
    has_aux : bool
        If true, `fn` returns a tuple of which only the first element is differentiated; the result is then
        `(gradients, (the other elements))`.

    Returns
    -------
    callable
        Takes the arguments of `fn`. Each gradient has the structure, shapes, dtypes and kind (ndarray, Tensor,
        float) of what it is taken with respect to.

    Raises
    ------
    ArgumentError, DtypeError
        For positions, weights, arguments or outputs that cannot be differentiated.

    Notes
    -----
    Differs from `torch.autograd.grad`: takes a function, not an output. Differs from `jax.grad`: outputs need not be
    scalars.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def f(x, y):
    ...     return np.sum(x * np.sin(y))
    >>> nb.grad(f)(np.array([1.0, 2.0]), np.array([0.0, np.pi / 2]))
    array([0., 1.])
    >>> nb.grad(f, (0, 1))(2.0, 0.0)
    (np.float64(0.0), np.float64(2.0))
    """
    check_flag(has_aux, "has_aux")
    positions = check_positions(grad_position, weights)

    @functools.wraps(fn)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        results = Results()
        gradients, _, aux = _run(fn, args, kwargs, positions, grad_position, weights, has_aux, results, False)
        return results.fill((gradients, aux) if has_aux else gradients)[0]

    return gradient


def value_and_grad(
    fn: Callable[..., Any], grad_position: Positions = 0, weights: Any = None, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that computes the value of `fn` and its gradients in one go.

    Parameters
    ----------
    fn, grad_position, weights, has_aux
        As for `grad`.

    Returns
    -------
    callable
        Gives `(value, gradients)`; with `has_aux` the value is the whole tuple that `fn` returned.

    Raises
    ------
    ArgumentError, DtypeError
        As `grad`.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    (np.float64(5.0), array([2., 4.]))
    """
    check_flag(has_aux, "has_aux")
    positions = check_positions(grad_position, weights)

    @functools.wraps(fn)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        results = Results()
        gradients, value, _ = _run(fn, args, kwargs, positions, grad_position, weights, has_aux, results, True)
        return results.fill((value, gradients))[0]

    return value_and_gradient


def _run(
    fn: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    positions: Sequence[int],
    grad_position: Positions,
    weights: Any,
    has_aux: bool,
    results: Results,
    with_value: bool,
) -> tuple[Any, Any, Any]:
    """Record, differentiate, and ask `results` for (gradients, value, aux)."""
    if not callable(fn):
        message = f"Expected a function or a Cell to differentiate, but got {type(fn).__name__}."
        raise DtypeError(message)
    if grad_position == ():
        message = "grad_position is an empty tuple, so there is nothing to differentiate with respect to."
        raise ArgumentError(message)
    call = prepare(fn, args, kwargs, positions)
    weight_list = [] if weights is None else weight_nodes(weights)
    wrt = [*call.nodes, *weight_list]
    with recording(wrt):
        output = fn(*call.args, **call.kwargs)
        differentiated, aux = split_aux(fn, output) if has_aux else (output, ())
        gradients = gradients_of(output_nodes(fn, differentiated), wrt)
    parts = iter(gradients)
    tensors = call.tensors or weights is not None
    by_position = tuple([mirror(results, wanted, parts) for wanted in call.wanted])
    by_weight = tuple([results.add(node, "tensor") for node in parts])
    shaped = _structure(grad_position, weights, by_position, by_weight)
    return shaped, results.value(output, tensors) if with_value else None, results.value(aux, tensors)


def split_aux(fn: Callable[..., Any], output: Any) -> tuple[Any, tuple[Any, ...]]:
    """The first element of a returned tuple, and the rest.

    Raises
    ------
    ArgumentError
        If the function did not return a tuple of at least two elements.
    """
    if not isinstance(output, tuple) or len(output) < 2:
        given = f"a tuple of {len(output)}" if isinstance(output, tuple) else f"a {type(output).__name__}"
        message = (
            f"With has_aux=True, {name_of(fn)}() must return a tuple of at least two elements, the first of which is "
            f"differentiated, but it returned {given}."
        )
        raise ArgumentError(message)
    return output[0], output[1:]


def gradients_of(outputs: Sequence[Node], wrt: Sequence[Node]) -> list[Node]:
    """The gradients of the sum of all outputs' elements; zeros where nothing depends on a node."""
    seeds = [broadcast(literal(1, node.dtype), node.shape) for node in outputs]
    return with_zeros(node_vjp(outputs, seeds, wrt), wrt)


def mirror(results: Results, wanted: Wanted, parts: Any) -> Any:
    """The next gradients in the structure of one argument."""
    slots = [results.add(next(parts), kind) for kind in wanted.kinds]
    return optree.tree_unflatten(wanted.treespec, slots)


def _structure(grad_position: Positions, weights: Any, inputs: tuple[Any, ...], by_weight: tuple[Any, ...]) -> Any:
    """MindSpore's rules for what is a tuple and what is bare."""
    of_inputs = inputs[0] if len(inputs) == 1 else inputs
    of_weights = by_weight if isinstance(weights, list | tuple) else (by_weight[0] if by_weight else ())
    if weights is None:
        return of_inputs
    return of_weights if grad_position is None else (of_inputs, of_weights)
