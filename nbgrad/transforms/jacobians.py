"""Functional transforms: `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`, `hvp`, with MindSpore's signatures and results.

In: a function and the point, or a function to transform. Out: derivatives in the kind of the arguments. Each records
the function once and differentiates the graph; Jacobians push a whole basis through one linear graph (batch.py), so
they are single programs, not loops. Called by users.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

from ..errors import ArgumentError, DtypeError, ShapeError
from ..graph.batch import batch
from ..graph.builders import cast, reshape, transpose
from ..graph.complex_numbers import conjugate, is_complex, pair
from ..graph.ir import Node, placeholder
from ..graph.products import unit_vectors
from ..graph.trace import Trace, current_trace, recording
from ..record.call_order import Batch
from ..record.call_order import jvp as node_jvp
from ..record.call_order import vjp as node_vjp
from ..record.foreign_arrays import described
from ..record.tensor import Tensor
from ..runtime.memory_order import strides_of
from .argument_positions import check_flag, check_function, check_positions, with_positions
from .arguments import (
    Call,
    Results,
    flatten,
    kind_as,
    name_of,
    node_of,
    numeric_nodes,
    output_nodes,
    prepare,
    with_zeros,
)
from .grad import grad, mirror, split_aux, weight_nodes
from .lent_arrays import kind_of, lent
from .rolled import conditions_of, nodes_in, roll_up
from .shared_terms import shared


def split(fn: Callable[..., Any], output: Any, has_aux: bool) -> tuple[Any, Any]:
    """(output, aux): the aux is bare if there is one, a tuple if there are several."""
    if not has_aux:
        return output, None
    first, rest = split_aux(fn, output)
    return first, rest[0] if len(rest) == 1 else rest


def vector(value: Any, like: Node, what: str) -> Node:
    """A tangent or cotangent that fits a node.

    Raises
    ------
    DtypeError, ShapeError
        If it is no real array or has another shape.
    """
    if kind_of(value) == "other":
        message = f"{what} must be an array or a number, but got {described(value)}."
        raise DtypeError(message)
    node = node_of(value)
    if like.shape and not (isinstance(value, np.ndarray | Tensor) or kind_of(value) == "lent"):
        given = f"{type(value).__name__} {value!r}"
        message = f"{what} must be a Tensor or an array of shape {like.shape}, but got {given}."
        raise DtypeError(message)
    if node.shape != like.shape:
        message = f"{what} must have the shape {like.shape} of what it belongs to, but has shape {node.shape}."
        raise ShapeError(message)
    return cast(node, like.dtype)


def _cotangent(value: Any, output: Node, what: str) -> Node | None:
    """The cotangent of an output; None for integers or booleans, which do not change when inputs change a little."""
    if output.dtype.kind in "fc":
        return vector(value, output, what)
    if value is not None:
        vector(value, output, what)
    return None


# ----- Products with the Jacobian -----


def vjp(fn: Callable[..., Any], *inputs: Any, weights: Any = None, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of a function and a function that multiplies vectors with its Jacobian from the left.

    Parameters
    ----------
    fn : callable
    *inputs : arrays, floats, or containers of them
        The point; all of them are differentiated.
    weights : Tensor, or list or tuple of Tensors, optional
    has_aux : bool
        If true, only the first element of the returned tuple is differentiated.

    Returns
    -------
    out : as `fn` returns it
    vjp_fn : callable
        Takes one cotangent per output, of integers and booleans too, where it has no effect and may be None; gives a
        tuple with the cotangent of every input (with weights: a pair of tuples).
    aux : only with `has_aux`

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        For inputs and cotangents that do not fit.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> out, vjp_fn = nb.vjp(np.sin, np.array([0.0, 1.0]))
    >>> vjp_fn(np.array([2.0, 0.0]))
    (array([2., 0.]),)
    """
    check_function(fn, "vjp")
    check_flag(has_aux, "has_aux")
    # vjp_fn runs later, when the user may have written to the arrays.
    leaves, treespec = flatten(inputs)
    kept = [np.array(v) if isinstance(v, np.ndarray) else lent(v, copy=True) for v in leaves]
    held: Any = optree.tree_unflatten(treespec, kept)
    call = prepare(fn, held, {}, range(len(inputs)))
    call.callers.stand_for(dict(zip(map(id, kept), leaves, strict=True)))
    weight_list = [] if weights is None else weight_nodes(weights)
    wrt = [*call.nodes, *weight_list]
    with recording(wrt, callers=call.callers, rolls=strides_of, of=fn) as trace:
        output, aux = split(fn, fn(*call.args), has_aux)
        outputs = numeric_nodes(fn, output)
        numeric = [kind_of(leaf) != "other" for leaf in flatten(output)[0]]
        roll_up(trace, [*outputs, *nodes_in(aux), *conditions_of(trace)], wrt)
    tensors = call.tensors or weights is not None
    results = Results(trace.budgets)
    results.store(call.callers)
    slots = results.value(output, tensors), results.value(aux, tensors)
    if current_trace() is None:
        results.wait_for(trace.tokens[-1] if trace.tokens else None)
    filled = results.fill(*slots)

    def vjp_fn(*cotangents: Any) -> Any:
        given = flatten(cotangents)[0]
        if len(given) == len(numeric):
            given = [value for value, one in zip(given, numeric, strict=True) if one]
        if len(given) != len(outputs):
            message = (
                f"{name_of(fn)}() has {len(outputs)} output{'s' if len(outputs) != 1 else ''}, so its vjp takes as "
                f"many cotangents, but got {len(given)}."
            )
            raise ArgumentError(message)
        with recording(wrt) as again:
            again.tokens = trace.tokens
            pairs = zip(given, outputs, strict=True)
            vectors = [_cotangent(value, node, f"Cotangent {k}") for k, (value, node) in enumerate(pairs)]
            found = node_vjp(shared(outputs, wrt, trace.tokens), vectors, wrt)
        parts = iter(with_zeros(found, wrt))
        wanted = Results(trace.budgets)
        by_input = tuple([mirror(wanted, w, parts) for w in call.wanted])
        if weights is None:
            return wanted.fill(by_input)[0]
        by_weight = tuple([wanted.add(node, "tensor") for node in parts])
        return wanted.fill((by_input, by_weight if isinstance(weights, list | tuple) else by_weight[0]))[0]

    return (filled[0], vjp_fn, filled[1]) if has_aux else (filled[0], vjp_fn)


def jvp(fn: Callable[..., Any], inputs: Any, v: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The value of a function and the product of its Jacobian with a vector.

    Parameters
    ----------
    fn : callable
    inputs : array, or tuple or list of arrays
        The point: one argument, or a tuple of all.
    v : like `inputs`
        The tangent of each argument.
    has_aux : bool
        If true, only the first element of the returned tuple is differentiated.

    Returns
    -------
    out, tangent : as `fn` returns it
    aux : only with `has_aux`

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        For inputs and tangents that do not fit.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.jvp(np.square, np.array([1.0, 3.0]), np.array([1.0, 10.0]))
    (array([1., 9.]), array([ 2., 60.]))
    """
    check_function(fn, "jvp")
    check_flag(has_aux, "has_aux")
    points = tuple(inputs) if isinstance(inputs, tuple | list) else (inputs,)
    vectors = tuple(v) if isinstance(v, tuple | list) else (v,)
    if len(points) != len(vectors):
        message = f"jvp needs one tangent per input, but got {len(points)} inputs and {len(vectors)} tangents."
        raise ArgumentError(message)
    call = prepare(fn, points, {}, range(len(points)))
    with recording(call.nodes, callers=call.callers, rolls=strides_of, of=fn) as trace:
        try:
            returned = fn(*call.args)
        except TypeError:
            _check_count(fn, points)
            raise
        output, aux = split(fn, returned, has_aux)
        output_nodes(fn, output)
        roll_up(trace, [*nodes_in(output, aux), *conditions_of(trace)], call.nodes)
        tangents = [
            vector(value, node, f"Tangent {position}") for position, (value, node) in enumerate(paired(vectors, call))
        ]
        leaves, treespec = flatten(output)
        nodes = [node_of(leaf) if kind_of(leaf) != "other" else None for leaf in leaves]
        numeric = [node for node in nodes if node is not None]
        found = iter(with_zeros(node_jvp(numeric, call.nodes, tangents), numeric))
    tensors = call.tensors or any(isinstance(leaf, Tensor) for leaf in flatten(vectors)[0])
    results = Results()
    results.store(call.callers)
    slots: list[Any] = []
    for leaf, node in zip(leaves, nodes, strict=True):
        slots.append(leaf if node is None else results.add(next(found), kind_as(tensors)))
    filled = results.fill(
        results.value(output, tensors), optree.tree_unflatten(treespec, slots), results.value(aux, tensors)
    )
    return tuple(filled) if has_aux else tuple(filled[:2])


def _check_count(fn: Callable[..., Any], points: Sequence[Any]) -> None:
    """Raise if a function does not take as many arguments as there are inputs."""
    try:
        inspect.signature(getattr(fn, "construct", fn)).bind(*points)
    except TypeError as error:
        message = (
            f"jvp was given {len(points)} input{'s' if len(points) != 1 else ''} for {name_of(fn)}(): {error}. The "
            "inputs are one Tensor or array, or a tuple of one for each argument of the function."
        )
        raise DtypeError(message) from None
    except ValueError:
        return  # a function without a signature


def paired(vectors: Sequence[Any], call: Call) -> list[tuple[Any, Node]]:
    leaves, structure = flatten(vectors)
    nodes = call.nodes
    if any(wanted.fixed for wanted in call.wanted):
        # A tangent may say None, or anything, where a field holds no floats.
        end, without = 0, set[int]()
        for wanted in call.wanted:
            without |= {end + position for position in wanted.fixed}
            end += wanted.treespec.num_leaves
        if end == structure.num_leaves:
            leaves = [leaf for position, leaf in enumerate(leaves) if position not in without]
    if len(leaves) != len(nodes):
        message = (
            f"The inputs hold {len(nodes)} arrays, but the tangents hold {len(leaves)}. They must have one structure."
        )
        raise ArgumentError(message)
    return list(zip(leaves, nodes, strict=True))


def hvp(fn: Callable[..., Any], inputs: Any, v: Any) -> Any:
    """The product of the Hessian of a function with a vector, without forming the Hessian.

    Parameters
    ----------
    fn : callable
        Its output is summed if it is not a scalar.
    inputs, v : array, or tuple or list of arrays
        The point and the vector.

    Returns
    -------
    array, or tuple of arrays
        Forward over reverse (Pearlmutter 1994): about the cost of two gradients.

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        For inputs and vectors that do not fit.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.hvp(lambda x: np.sum(x**3), np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([ 6., 12.])
    """
    several = isinstance(inputs, tuple | list)
    positions = tuple(range(len(inputs))) if several else 0
    product = jvp(grad(fn, positions), inputs, v)[1]
    return (product,) if several and len(inputs) == 1 else product


# ----- Whole Jacobians -----


def _basis(node: Node) -> Node:
    """All unit vectors of a node's shape along a leading axis; takes no memory."""
    return reshape(unit_vectors(node.size, node.dtype), (node.size, *node.shape))


def _jacobian(
    fn: Callable[..., Any], grad_position: Any, has_aux: bool, forward: bool, holomorphic: bool
) -> Callable[..., Any]:
    check_function(fn, "jacfwd" if forward else "jacrev")
    check_flag(has_aux, "has_aux")
    check_flag(holomorphic, "holomorphic")
    positions = check_positions(grad_position)

    @functools.wraps(fn, updated=())
    def jacobian(*args: Any, **kwargs: Any) -> Any:
        call = prepare(fn, args, kwargs, positions)
        wrt = call.nodes
        with recording(wrt, callers=call.callers, rolls=strides_of, of=fn) as trace:
            output, aux = split(fn, fn(*call.args, **call.kwargs), has_aux)
            output_nodes(fn, output)
            leaves, treespec = flatten(output)
            nodes = [node_of(leaf) for leaf in leaves if kind_of(leaf) != "other"]
            roll_up(trace, [*nodes, *nodes_in(aux), *conditions_of(trace)], wrt)
            if not holomorphic:
                _refuse_complex(fn, nodes, wrt)
            blocks = _forward_blocks(trace, nodes, wrt) if forward else _reverse_blocks(trace, nodes, wrt)
        results = Results(trace.budgets)
        results.store(call.callers)
        rows: list[Any] = []
        for row in blocks:
            parts = iter(row)
            by_position = [mirror(results, w, parts) for w in call.wanted]
            rows.append(by_position[0] if len(by_position) == 1 else tuple(by_position))
        following = iter(rows)
        whole = optree.tree_unflatten(
            treespec, [None if kind_of(leaf) == "other" else next(following) for leaf in leaves]
        )
        filled = results.fill(whole, results.value(aux, call.tensors))
        return tuple(filled) if has_aux else filled[0]

    return jacobian


def _refuse_complex(fn: Callable[..., Any], outputs: Sequence[Node], wrt: Sequence[Node]) -> None:
    """Raise for a Jacobian that takes complex numbers to complex ones: one number says it only if there is an f'."""
    if any(map(is_complex, outputs)) and any(map(is_complex, wrt)):
        message = (
            f"{name_of(fn)}() gives complex numbers of complex arguments. If it is holomorphic, say holomorphic=True; "
            "otherwise differentiate its real and imaginary part, with respect to those of the argument."
        )
        raise ArgumentError(message)


def _reverse_blocks(trace: Trace, outputs: Sequence[Node], wrt: Sequence[Node]) -> list[list[Node]]:
    """Per output and input, the Jacobian of shape output + input, one row of the basis per output element."""
    blocks: list[list[Node]] = []
    for output in outputs:
        stand_in = placeholder(output.shape, output.dtype)
        units = _basis(output)
        many = Batch(trace, {stand_in: units}, output.size)
        terms = shared([output], wrt, trace.tokens)
        found = with_zeros(node_vjp(terms, [stand_in], wrt), wrt)
        batched = many(found)
        calls = many.end() is not None
        row: list[Node] = []
        for node, source, b in zip(wrt, found, batched, strict=True):
            if is_complex(output):
                if calls:
                    _refuse_complex_calls()
                # The cotangent 1 gives the real part's derivative, or the conjugate of f'; i the imaginary part's.
                turned = None if is_complex(node) else batch([source], {stand_in: units * 1j}, output.size)[0]
                b = conjugate(b) if turned is None else pair(b, turned)
            row.append(reshape(b, output.shape + node.shape))
        blocks.append(row)
    return blocks


def _refuse_complex_calls() -> None:
    """Raise for messages in a Jacobian of complex numbers, which would go twice, in no known order."""
    message = (
        "A Jacobian of complex numbers goes through messages between processes, which it would send twice. Take those "
        "of the real and of the imaginary part."
    )
    raise ArgumentError(message)


def _forward_blocks(trace: Trace, outputs: Sequence[Node], wrt: Sequence[Node]) -> list[list[Node]]:
    """Per output and input, the Jacobian of shape output + input, one column of the basis per input element."""
    blocks: list[list[Node]] = [[] for _ in outputs]
    for node in wrt:
        stand_in = placeholder(node.shape, node.dtype)
        units = _basis(node)
        many = Batch(trace, {stand_in: units}, node.size)
        found = with_zeros(node_jvp(outputs, [node], [stand_in]), outputs)
        batched = many(found)
        if many.end() is not None and is_complex(node):
            _refuse_complex_calls()
        for block, output, source, b in zip(blocks, outputs, found, batched, strict=True):
            if is_complex(node) and not is_complex(output):
                b = pair(b, batch([source], {stand_in: units * 1j}, node.size)[0])
            columns = reshape(b, (node.size, output.size))
            block.append(reshape(transpose(columns, (1, 0)), output.shape + node.shape))
    return blocks


@with_positions
def jacrev(
    fn: Callable[..., Any], grad_position: Any = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """A function that computes the Jacobian of `fn` in reverse mode: best with fewer outputs than inputs.

    Parameters
    ----------
    fn : callable
    grad_position : int or tuple of int
        The arguments to differentiate.
    has_aux : bool
        If true, only the first element of the returned tuple is differentiated; the result is `(jacobian, aux)`.
    holomorphic : bool
        Must be true where complex arguments give complex results; the Jacobian is then that of the complex derivatives.
        (Of a real function of z = x + iy it is d/dx + i d/dy, of a complex function of x its derivative by x.)

    Returns
    -------
    callable
        Gives an array of shape `(*output shape, *input shape)`; for several outputs a tuple of them, for several
        positions a tuple of those.

    Raises
    ------
    ArgumentError, DtypeError
        As `grad`.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.jacrev(lambda x: np.array([2.0, 3.0]) * x[0])(np.array([1.0, 5.0]))
    array([[2., 0.],
           [3., 0.]])
    """
    return _jacobian(fn, grad_position, has_aux, forward=False, holomorphic=holomorphic)


@with_positions
def jacfwd(
    fn: Callable[..., Any], grad_position: Any = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """A function that computes the Jacobian of `fn` in forward mode: best with fewer inputs than outputs.

    Parameters
    ----------
    fn, grad_position, has_aux, holomorphic
        As for `jacrev`.

    Returns
    -------
    callable
        As `jacrev`.

    Raises
    ------
    ArgumentError, DtypeError
        As `grad`.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.jacfwd(np.square)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    return _jacobian(fn, grad_position, has_aux, forward=True, holomorphic=holomorphic)


@with_positions
def hessian(fn: Callable[..., Any], grad_position: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that computes the matrix of second derivatives: forward over reverse.

    Parameters
    ----------
    fn : callable
        Returns a scalar (or an array: then one Hessian per element).
    grad_position : int or tuple of int
        The arguments to differentiate, twice.
    has_aux : bool
        If true, only the first element of the returned tuple is differentiated; the result is `(hessian, aux)`.

    Returns
    -------
    callable
        Gives an array of shape `(*output shape, *input shape, *input shape)`; for several positions nested tuples.

    Raises
    ------
    ArgumentError, DtypeError
        As `grad`.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> nb.hessian(lambda x: x[0] ** 2 * x[1])(np.array([3.0, 5.0]))
    array([[10.,  6.],
           [ 6.,  0.]])
    """
    return jacfwd(jacrev(fn, grad_position, has_aux), grad_position, has_aux)
