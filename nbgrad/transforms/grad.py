"""Reverse-mode gradients with MindSpore's interface: `grad`, `value_and_grad`, `GradOperation`, `get_grad`.

In: a function or a Cell, which of its arguments to differentiate, and optionally weights (Parameters, or other Tensors,
that it uses without being passed). Out: a function of the same arguments that gives gradients. A call records the
function, differentiates the graph and runs value and gradients as one program. Called by users.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..graph.builders import cast, reshape
from ..graph.ir import Node, broadcast, literal, make, topological, zeros
from ..graph.trace import recording
from ..process.modes import TRACED
from ..process.once import computed_once
from ..record.call_order import vjp as node_vjp
from ..record.foreign_arrays import described
from ..record.tensor import Tensor
from ..runtime.evaluate import finish_pending
from ..runtime.memory_order import like_copy, strides_of
from ..tensors.parameter import Parameter
from .argument_positions import Positions, check_flag, check_function, check_positions, with_positions
from .arguments import (
    LEAF,
    Results,
    Wanted,
    differentiable,
    flatten,
    name_of,
    node_of,
    numeric_nodes,
    output_nodes,
    prepare,
    with_zeros,
)
from .lent_arrays import kind_of
from .rolled import conditions_of, nodes_in, roll_up
from .shared_terms import shared

# ----- What is asked for -----


def weight_nodes(weights: Any) -> list[Node]:
    """The nodes of weights; for those that `requires_grad` excludes, a node that nothing depends on.

    A Tensor that is no Parameter holds an alias node from now on: only its use through this Tensor counts.

    Raises
    ------
    DtypeError
        If a weight is not a Tensor of floating-point numbers.
    """
    finish_pending()
    nodes: list[Node] = []
    for weight in weights if isinstance(weights, list | tuple) else [weights]:
        if not isinstance(weight, Tensor) or weight.dtype.kind not in "fc":
            kind = f" of dtype {weight._node.dtype}" if isinstance(weight, Tensor) else ""
            hint = " Give net.trainable_params()." if callable(weight) else ""
            message = (
                "weights must be a floating-point Parameter or Tensor, or a list or tuple of them, but one is "
                f"{type(weight).__name__}{kind}.{hint}"
            )
            raise DtypeError(message)
        if isinstance(weight, Parameter):
            weight._noted()
            nodes.append(weight._differentiated() if weight.requires_grad else make("alias", (weight._leaf,)))
            continue
        if weight._node.name != "alias":
            fresh = make("alias", (weight._node,))
            fresh.traced |= TRACED
            weight._node = fresh
        nodes.append(weight._node)
    return nodes


@dataclass(frozen=True)
class Request:
    """The gradients of a function that are asked for, and their form."""

    grad_position: Positions = 0
    """None for no inputs."""
    weights: Any = None
    by_list: bool = False
    """Whether gradients of weights are asked for; without `weights`, of all trainable Parameters that are used."""
    has_aux: bool = False
    return_ids: bool = False
    sens_param: bool = False
    all_inputs: bool = False
    """GradOperation's get_all: every array among the inputs."""
    lenient: bool = False
    """GradOperation's way: inputs that are no arrays are left out instead of refused."""

    @computed_once
    def positions(self) -> tuple[int, ...]:
        """`grad_position` as a tuple, checked."""
        return check_positions(self.grad_position)


# ----- The functions that users call -----


@with_positions
def grad(
    fn: Callable[..., Any],
    grad_position: Positions = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable[..., Any]:
    """A function that computes the gradients of `fn`.

    Parameters
    ----------
    fn : callable
        A function or Cell. Takes arrays (ndarrays, Tensors, floats, or tuples, lists and dicts of them) and any other
        arguments; returns an array or a container of arrays. If the output is not a scalar, the sum of all its
        elements is differentiated; of a complex output, the real part.
    grad_position : int, tuple of int, or None
        The arguments to differentiate. An int or a tuple of one gives one gradient, a longer tuple a tuple of
        gradients; None only differentiates the weights.
    weights : Parameter or Tensor, or list or tuple of them, optional
        Differentiate with respect to these too. A list gives a tuple of gradients, a single one a bare gradient; with
        positions the result is `(gradients of inputs, gradients of weights)`. The gradient with respect to a Parameter
        that is not trainable (`requires_grad=False`) is zero.
    has_aux : bool
        If true, `fn` returns a tuple of which only the first element is differentiated; the result is then
        `(gradients, (the other elements))`.
    return_ids : bool
        If true, every gradient becomes a pair: `(position, gradient)` for inputs, `(name, gradient)` for weights.
        `get_grad` picks from them.
    sens_param : bool
        If true, the call takes the cotangent of the output as its last argument, or as the keyword `sens`.

    Returns
    -------
    callable
        Takes the arguments of `fn`. Each gradient has the structure, shapes, dtypes and kind (ndarray, Tensor,
        float) of the input or weight with respect to which it is taken.

    Raises
    ------
    ArgumentError, DtypeError
        For positions, weights, arguments or outputs that cannot be differentiated.

    Notes
    -----
    Differs from `torch.autograd.grad`: takes a function, not an output. Differs from `jax.grad`: outputs need not be
    scalars, and the gradient with respect to a complex z = x + iy is dL/dx + i dL/dy, as in PyTorch and TensorFlow,
    of which JAX's is the conjugate.

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
    request = _request(grad_position, weights, has_aux, return_ids, sens_param)
    return _gradient(fn, request)


@with_positions
def value_and_grad(
    fn: Callable[..., Any],
    grad_position: Positions = 0,
    weights: Any = None,
    has_aux: bool = False,
    return_ids: bool = False,
    sens_param: bool = False,
) -> Callable[..., Any]:
    """A function that computes the value of `fn` and its gradients in one go.

    Parameters
    ----------
    fn, grad_position, weights, has_aux, return_ids, sens_param
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
    request = _request(grad_position, weights, has_aux, return_ids, sens_param)
    return _value_and_gradient(fn, request)


class GradOperation:
    """MindSpore's older form of `grad`: an object that makes gradient functions.

    Parameters
    ----------
    get_all : bool
        If true, the gradients of all inputs, as a tuple; else that of the first input, bare.
    get_by_list : bool
        If true, the gradients of the weights that are given with the function, as a tuple (without weights: of all
        trainable Parameters that the function uses). With `get_all`: `(gradients of inputs, gradients of weights)`.
    sens_param : bool
        If true, the gradient function takes the cotangent of the output as its last argument, or as the keyword `sens`.

    Raises
    ------
    DtypeError
        If a flag is no bool.

    Notes
    -----
    Inputs that are no arrays are left out of the result; where nothing is left, the result is an empty tuple. The
    gradient with respect to an array of integers is zero.

    Examples
    --------
    >>> import nbgrad as nb
    >>> x, y = nb.Tensor([1.0, 2.0]), nb.Tensor([3.0, 4.0])
    >>> print(nb.GradOperation()(lambda x, y: x * x * y)(x, y))
    [ 6. 16.]
    >>> print(*nb.GradOperation(get_all=True, sens_param=True)(lambda x, y: x * y)(x, y, nb.Tensor([1.0, 10.0])))
    [ 3. 40.] [ 1. 20.]
    """

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False) -> None:
        self.get_all = check_flag(get_all, "get_all")
        self.get_by_list = check_flag(get_by_list, "get_by_list")
        self.sens_param = check_flag(sens_param, "sens_param")

    def __call__(self, fn: Callable[..., Any], weights: Any = None, grad_position: Positions = 0) -> Callable[..., Any]:
        """The gradient function of `fn`, with respect to `weights` too if `get_by_list` is set."""
        if isinstance(weights, Tensor | np.ndarray) and not isinstance(weights, Parameter):
            message = (
                f"GradOperation makes a gradient function of {name_of(fn)}() and its weights, but got "
                f"{type(weights).__name__} as weights. Arguments belong to the second call: GradOperation()(fn)(x)."
            )
            raise DtypeError(message)
        positions = None if self.get_by_list and not self.get_all else grad_position
        request = Request(
            positions,
            weights if self.get_by_list else None,
            by_list=self.get_by_list,
            sens_param=self.sens_param,
            all_inputs=self.get_all,
            lenient=True,
        )
        return _gradient(fn, request)

    def __repr__(self) -> str:
        return f"GradOperation(get_all={self.get_all}, get_by_list={self.get_by_list}, sens_param={self.sens_param})"


def get_grad(gradients: Any, identifier: int | Parameter) -> Any:
    """Pick one gradient from the result of `grad(..., return_ids=True)`.

    Parameters
    ----------
    gradients : tuple
        Pairs `(position or name, gradient)`, nested as `grad` returns them.
    identifier : int or Parameter
        The position of an input, or a Parameter.

    Returns
    -------
    array
        The gradient.

    Raises
    ------
    ArgumentError
        If there is no gradient for it.
    DtypeError
        If the identifier is neither an int nor a Parameter.

    Examples
    --------
    >>> import nbgrad as nb
    >>> w = nb.Parameter(2.0, name="w")
    >>> pairs = nb.grad(lambda x: x * x * w, 0, [w], return_ids=True)(nb.Tensor(3.0))
    >>> print(nb.get_grad(pairs, 0), nb.get_grad(pairs, w))
    12.0 9.0
    """
    if not isinstance(identifier, int | Parameter) or isinstance(identifier, bool):
        message = f"get_grad takes the position of an input or a Parameter, but got {type(identifier).__name__}."
        raise DtypeError(message)
    wanted = identifier.name if isinstance(identifier, Parameter) else identifier
    known = list(_pairs(gradients))
    for key, gradient in known:
        if type(key) is type(wanted) and key == wanted:
            return gradient
    message = (
        f"There is no gradient for {wanted!r}: there are {', '.join(repr(key) for key, _ in known) or 'none'}. The "
        "gradients must come from grad or value_and_grad with return_ids=True."
    )
    raise ArgumentError(message)


def _pairs(tree: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(tree, tuple) and len(tree) == 2 and isinstance(tree[0], int | str):
        yield tree
    elif isinstance(tree, tuple | list):
        for part in tree:
            yield from _pairs(part)


# ----- How they work -----


def _request(grad_position: Positions, weights: Any, has_aux: bool, return_ids: bool, sens_param: bool) -> Request:
    check_flag(has_aux, "has_aux")
    check_flag(return_ids, "return_ids")
    check_flag(sens_param, "sens_param")
    check_positions(grad_position, weights)
    return Request(grad_position, weights, weights is not None, has_aux, return_ids, sens_param)


def _like(fn: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Name and text of a function, without the attributes of a Cell."""
    return functools.wraps(fn, updated=())


def _gradient(fn: Callable[..., Any], request: Request) -> Callable[..., Any]:
    """The gradient function; its `of_another` makes one of another function, `with_value` one with the value too."""

    check_function(fn, "grad")

    @_like(fn)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        results = Results()
        gradients, _, aux = _run(fn, args, kwargs, request, results, False)
        return results.fill((gradients, aux) if request.has_aux else gradients)[0]

    gradient.of_another = functools.partial(_gradient, request=request)  # type: ignore[attr-defined]
    gradient.with_value = functools.partial(_value_and_gradient, fn, request)  # type: ignore[attr-defined]
    return gradient


def _value_and_gradient(fn: Callable[..., Any], request: Request) -> Callable[..., Any]:
    check_function(fn, "value_and_grad")

    @_like(fn)
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        results = Results()
        gradients, value, _ = _run(fn, args, kwargs, request, results, True)
        return results.fill((value, gradients))[0]

    value_and_gradient.of_another = functools.partial(_value_and_gradient, request=request)  # type: ignore[attr-defined]
    return value_and_gradient


def _run(
    fn: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    request: Request,
    results: Results,
    with_value: bool,
) -> tuple[Any, Any, Any]:
    """Record, differentiate, and ask `results` for (gradients, value, aux)."""
    if not callable(fn):
        message = f"Expected a callable, a function or a Cell, to differentiate, but got {type(fn).__name__}."
        raise DtypeError(message)
    if isinstance(request.grad_position, tuple) and not request.grad_position:
        message = "grad_position is an empty tuple, so there is nothing to differentiate with respect to."
        raise ArgumentError(message)
    sens = None
    if request.sens_param:
        args, kwargs, sens = _split_sens(fn, args, kwargs)
    positions = _positions(request, args) if request.all_inputs or request.lenient else request.positions
    call = prepare(fn, args, kwargs, positions)
    weights = request.weights
    weight_list = [] if weights is None else weight_nodes(weights)
    if request.by_list and weights is None:
        finish_pending()  # a Parameter that waits for its value cannot be told from what it will be
    wrt = [*call.nodes, *weight_list]
    with recording(wrt, callers=call.callers, rolls=strides_of, of=fn) as trace:
        output = fn(*call.args, **call.kwargs)
        differentiated, aux = split_aux(fn, output) if request.has_aux else (output, ())
        outputs = output_nodes(fn, differentiated)
        if request.by_list and weights is None:
            weights = _used_parameters(fn, outputs)
            weight_list = [weight._differentiated() for weight in weights]
            wrt = [*call.nodes, *weight_list]
        seeds = None if sens is None else _sensitivities(fn, sens, numeric_nodes(fn, differentiated))
        if trace.is_long():
            written = [node for node, _ in call.callers.written()]
            roll_up(trace, [*outputs, *nodes_in(output), *written, *conditions_of(trace)], wrt)

    def derive() -> list[Node]:
        with recording(wrt) as again:
            again.tokens = trace.tokens
            terms = shared(outputs, wrt, trace.tokens)
            found = with_zeros(node_vjp(terms, _ones(outputs) if seeds is None else seeds, wrt), wrt)
            return [like_copy(gradient, node) for gradient, node in zip(found, wrt, strict=True)]

    results.budgets = trace.budgets
    results.sources, results.derive = [*outputs, *(seeds or ()), *wrt, *trace.tokens[-1:]], derive
    results.store(call.callers)
    parts: Iterator[None] = itertools.repeat(None)
    tensors = call.tensors or request.by_list
    by_position: list[Any] = []
    for wanted in call.wanted:
        by_position.append(mirror(results, wanted, parts))
    if request.all_inputs:
        by_position = _inputs(args, positions, by_position, results)
    by_weight = [results.add(None, "tensor") for _ in weight_list] if weight_list else []
    if request.return_ids:
        by_position = [*zip(positions, by_position, strict=True)]
        listed = weights if isinstance(weights, list | tuple) else [weights]
        by_weight = [(getattr(w, "name", k), part) for k, (w, part) in enumerate(zip(listed, by_weight, strict=False))]
    of_inputs = by_position[0] if len(by_position) == 1 and not request.all_inputs else tuple(by_position)
    shaped = _with_weights(request, weights, of_inputs, tuple(by_weight)) if request.by_list else of_inputs
    value = results.value(output, tensors) if with_value else None
    return shaped, value, results.value(aux, tensors) if request.has_aux else ()


def _positions(request: Request, args: Sequence[Any]) -> tuple[int, ...]:
    """The positions of a GradOperation's arguments that can be differentiated."""
    if request.all_inputs:
        return tuple([position for position, value in enumerate(args) if differentiable(value)])
    return tuple([p for p in request.positions if p < len(args) and differentiable(args[p])])


def _inputs(args: Sequence[Any], positions: Sequence[int], found: list[Any], results: Results) -> list[Any]:
    """The gradients of all inputs, for `get_all`: with zeros for arrays of integers in between."""
    by_position = dict(zip(positions, found, strict=True))
    complete: list[Any] = []
    for position, value in enumerate(args):
        if position in by_position:
            complete.append(by_position[position])
        elif isinstance(value, Tensor | np.ndarray) and value.dtype.kind in "iub":
            kind = kind_of(value)
            complete.append(results.add(zeros(tuple(value.shape), np.dtype(value.dtype)), kind))
    return complete


def _used_parameters(fn: Any, outputs: Sequence[Node]) -> tuple[Parameter, ...]:
    """The trainable Parameters that outputs depend on: a Cell's in its own order, others in that of their use."""
    used: dict[Parameter, None] = {}
    for node in topological(outputs):
        parameter = node.owner() if node.owner is not None else None
        if isinstance(parameter, Parameter) and parameter._differentiated() is node and node.dtype.kind in "fc":
            parameter._noted()
            if parameter.requires_grad:
                used[parameter] = None
    own = [p for p in getattr(fn, "trainable_params", list)() if p in used]
    return tuple(dict.fromkeys([*own, *used]))


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


def _ones(outputs: Sequence[Node]) -> list[Node]:
    """The seeds of the sum of all outputs' elements."""
    return [broadcast(literal(1, node.dtype), node.shape) for node in outputs]


def _split_sens(fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any], Any]:
    """The function's own arguments, and the cotangent: the keyword `sens`, or else the last argument."""
    if "sens" in kwargs:
        rest = dict(kwargs)
        return args, rest, (rest.pop("sens"),)
    if not args:
        message = (
            f"With sens_param=True, the gradient of {name_of(fn)}() takes the cotangent of its output as the last "
            "argument or as the keyword sens, but got no arguments."
        )
        raise DtypeError(message)
    return args[:-1], kwargs, (args[-1],)


def _sensitivities(fn: Callable[..., Any], sens: Any, outputs: Sequence[Node]) -> list[Node]:
    """The user's cotangents, one per output, in its dtype; those of integers and booleans have no effect and are left
    out.

    Raises
    ------
    ArgumentError, ShapeError, DtypeError
        If there are too few or too many, or one does not have the shape or dtype of its output.
    """
    given = flatten(sens)[0]
    if len(given) != len(outputs):
        message = (
            f"{name_of(fn)}() has {len(outputs)} output{'s' if len(outputs) != 1 else ''}, so sens must be as many "
            f"arrays, but got {len(given)}."
        )
        raise ArgumentError(message)
    seeds: list[Node] = []
    for position, (value, output) in enumerate(zip(given, outputs, strict=True)):
        what = f"sens {position} of {name_of(fn)}()" if len(outputs) > 1 else f"sens of {name_of(fn)}()"
        kind = kind_of(value)
        number = isinstance(value, int | float | complex)
        if value is None and output.dtype.kind not in "fc":
            continue
        if kind == "other":
            message = f"{what} must be an array, but got {described(value)}."
            raise DtypeError(message)
        node = node_of(value)
        if output.dtype.kind not in "fc":
            continue
        fits = node.dtype.kind in "fc" and (node.dtype.kind == "f" or output.dtype.kind == "c")
        # As in MindSpore, a Tensor must not lose digits.
        fits = fits and (kind != "tensor" or np.can_cast(node.dtype, output.dtype))
        if not number and not fits:
            message = f"{what} must fit into the dtype {output.dtype} of the output, but has dtype {node.dtype}."
            raise DtypeError(message)
        if node.size == output.size == 1:  # a loss of shape (1,) with a scale of shape (), or the other way round
            node = reshape(node, output.shape)
        if node.shape != output.shape:
            message = f"{what} must have the shape {output.shape} of the output, but has shape {node.shape}."
            raise ShapeError(message)
        seeds.append(cast(node, output.dtype))
    return seeds


def mirror(results: Results, wanted: Wanted, parts: Any) -> Any:
    """The next gradients in the structure of one argument."""
    if wanted.treespec is LEAF:
        return results.add(next(parts), wanted.kinds[0])
    slots = [results.add(next(parts), kind) for kind in wanted.kinds]
    return wanted.filled(slots)


def _with_weights(request: Request, weights: Any, of_inputs: Any, by_weight: tuple[Any, ...]) -> Any:
    """MindSpore's rules for gradients in tuples and bare ones."""
    of_weights = by_weight if isinstance(weights, list | tuple) else (by_weight[0] if by_weight else ())
    return of_weights if request.grad_position is None else (of_inputs, of_weights)
