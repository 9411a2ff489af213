"""Derivatives of functions, with the arguments and results of PyTorch's `autograd.functional`.

In: a function of Tensors and the Tensors. Out: Jacobians, Hessians, and their products with vectors; a Tensor, or
tuples as inputs and outputs are. Called by users. nbgrad's own transforms (`nb.jacrev`, `nb.hvp`, ...) take arrays and
containers too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import AutogradError, DtypeError
from ..graph.builders import beside, reshape
from ..graph.ir import Node, make, zeros
from ..graph.products import unit_vectors
from ..process.modes import within
from ..record.tensor import Tensor
from ..remembered import backward as passes
from ..remembered.leaves import detached, leaf_of, remembers

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def jacobian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """The Jacobian of a function of Tensors.

    Parameters
    ----------
    func : callable
        Takes the inputs; returns a Tensor or a tuple of them.
    inputs : Tensor or tuple of Tensor
    create_graph : bool
        Whether the result can be differentiated in turn.
    strict : bool
        Whether an output that does not depend on an input is an error, instead of zeros.
    vectorize, strategy
        PyTorch's choices of cost, without effect: all rows are computed at once.

    Returns
    -------
    Tensor, or tuples of Tensor
        Of shape output + input; a tuple for several outputs, of tuples for several inputs.

    Raises
    ------
    AutogradError, DtypeError
        For what cannot be differentiated.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.autograd.functional.jacobian(lambda x: x * x, nb.Tensor([1.0, 2.0])))
    [[2. 0.]
     [0. 4.]]
    """
    del vectorize, strategy
    leaves, outputs, several = _called(func, inputs, create_graph, "jacobian")
    rows: list[tuple[Tensor, ...]] = []
    for position, output in enumerate(outputs):
        rows.append(tuple(jacobian_of(output, leaves, create_graph, position if strict else None)))
    found = [row if isinstance(inputs, tuple) else row[0] for row in rows]
    return tuple(found) if several else found[0]


def jacobian_of(
    output: Tensor, wanted: Sequence[Tensor], lazily: bool = False, strict: int | None = None
) -> list[Tensor]:
    """The Jacobians of one value that remembers; zeros where it does not depend on one of `wanted`."""
    node, places = output._node, [one._node for one in wanted]
    found: list[Tensor | None] = [None] * len(places)
    if node.dtype.kind == "c":
        message = "A Jacobian of complex values is none here. Take nb.jacrev, or their real and imaginary parts."
        raise AutogradError(message)
    if remembers(node):
        units = reshape(unit_vectors(node.size, node.dtype), (node.size, *node.shape))
        found = passes.gradients([node], [units], places, lazily, batched=True)[0] if node.size else found
    blocks: list[Tensor] = []
    for position, (place, block) in enumerate(zip(places, found, strict=True)):
        if block is None and strict is not None:
            message = (
                f"Output {strict} of the user-provided function is independent of input {position}. This is not "
                "allowed in strict mode."
            )
            raise AutogradError(message)
        shape = (*node.shape, *place.shape)
        rows = beside(zeros(shape, place.dtype), place) if block is None else reshape(block._node, shape)
        blocks.append(Tensor._of(rows))
    return blocks


def hessian(
    func: Callable[..., Any],
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """The Hessian of a function of Tensors with one value.

    Parameters
    ----------
    func, inputs, create_graph, strict, vectorize
        As for `jacobian`; `func` returns one element.
    outer_jacobian_strategy : str
        Without effect.

    Returns
    -------
    Tensor, or tuple of tuples of Tensor
        Of shape input + input.

    Raises
    ------
    AutogradError, DtypeError
        If `func` returns several elements, or what cannot be differentiated.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.autograd.functional.hessian(lambda x: (x**3).sum(), nb.Tensor([1.0, 2.0])))
    [[ 6.  0.]
     [ 0. 12.]]
    """
    del vectorize, outer_jacobian_strategy
    several = isinstance(inputs, tuple)

    def slope(*points: Tensor) -> Any:
        found = _gradient(func, points, "hessian", strict)
        return tuple(found) if several else found[0]

    return jacobian(slope, inputs, create_graph, strict)


def vjp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs of a function, and the product of a vector with its Jacobian.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As for `jacobian`.
    v : Tensor or tuple of Tensor, optional
        One for each output, of its shape; may be left out for one element.

    Returns
    -------
    outputs, products : Tensor or tuple of Tensor

    Raises
    ------
    AutogradError, DtypeError, ShapeError
        For vectors that do not fit, and what cannot be differentiated.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(*nb.autograd.functional.vjp(lambda x: x * x, nb.Tensor([1.0, 2.0]), nb.Tensor([1.0, 10.0])))
    [1. 4.] [ 2. 40.]
    """
    leaves, outputs, several = _called(func, inputs, create_graph, "vjp")
    seeds = _vectors(outputs, v, "vjp")
    products = _products(outputs, seeds, leaves, create_graph, strict)
    values = [Tensor._of(one._node if create_graph else detached(one._node)) for one in outputs]
    return _as(values, several), _as(products, isinstance(inputs, tuple))


def jvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The outputs of a function, and the product of its Jacobian with a vector, by differentiating twice in reverse.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As for `jacobian`.
    v : Tensor or tuple of Tensor, optional
        One for each input, of its shape; may be left out for one element.

    Returns
    -------
    outputs, products : Tensor or tuple of Tensor

    Raises
    ------
    AutogradError, DtypeError, ShapeError
        For vectors that do not fit, and what cannot be differentiated.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(*nb.autograd.functional.jvp(lambda x: x * x, nb.Tensor([1.0, 2.0]), nb.Tensor([1.0, 10.0])))
    [1. 4.] [ 2. 40.]
    """
    leaves, outputs, several = _called(func, inputs, create_graph, "jvp")
    tangents = _vectors(leaves, v, "jvp")
    seeds = [leaf_tensor(Tensor._of(zeros(one.shape, one._node.dtype))) for one in outputs]
    back = _products(outputs, [seed._node for seed in seeds], leaves, True, strict)
    products = _products(back, tangents, seeds, create_graph, False)
    values = [Tensor._of(one._node if create_graph else detached(one._node)) for one in outputs]
    return _as(values, several), _as(products, several)


def vhp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of a function with one element, and the product of a vector with its Hessian.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As for `hessian`.
    v : Tensor or tuple of Tensor, optional
        One for each input, of its shape.

    Returns
    -------
    output : Tensor
    products : Tensor or tuple of Tensor

    Raises
    ------
    AutogradError, DtypeError, ShapeError
        As `hessian`, and for vectors that do not fit.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(*nb.autograd.functional.vhp(lambda x: (x**3).sum(), nb.Tensor([1.0, 2.0]), nb.Tensor([1.0, 1.0])))
    9.0 [ 6. 12.]
    """
    return _product_with_hessian(func, inputs, v, create_graph, strict, "vhp")


def hvp(
    func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """The value of a function with one element, and the product of its Hessian with a vector: as `vhp`.

    Parameters
    ----------
    func, inputs, v, create_graph, strict
        As for `vhp`.

    Returns
    -------
    output, products
        As of `vhp`: the Hessian of a function with continuous second derivatives is symmetric.

    Raises
    ------
    AutogradError, DtypeError, ShapeError
        As `vhp`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(*nb.autograd.functional.hvp(lambda x: (x**3).sum(), nb.Tensor([1.0, 2.0]), nb.Tensor([1.0, 1.0])))
    9.0 [ 6. 12.]
    """
    return _product_with_hessian(func, inputs, v, create_graph, strict, "hvp")


# ----- Common parts -----


def _product_with_hessian(
    func: Callable[..., Any], inputs: Any, v: Any, create_graph: bool, strict: bool, name: str
) -> tuple[Any, Any]:
    """The value of a function, and the product of a vector with its Hessian, which is symmetric."""
    leaves, outputs, _ = _called(func, inputs, create_graph, name)
    _check_one(outputs, name)
    slopes = _products(outputs, [None], leaves, True, strict)
    products = _products(slopes, _vectors(leaves, v, name), leaves, create_graph, strict)
    value = Tensor._of(outputs[0]._node if create_graph else detached(outputs[0]._node))
    return value, _as(products, isinstance(inputs, tuple))


def leaf_tensor(tensor: Tensor, linked: bool = False) -> Tensor:
    """A Tensor of the same value that requires gradients of its own; `linked` to the graph of the first one or not."""
    if linked and remembers(tensor._node):
        return Tensor._of(make("alias", (tensor._node,)))
    leaf = Tensor._of(detached(tensor._node))
    leaf._node = leaf_of(leaf, leaf._node)
    return leaf


def _called(
    func: Callable[..., Any], inputs: Any, create_graph: bool, name: str
) -> tuple[list[Tensor], list[Tensor], bool]:
    """The inputs as leaves, the outputs of a function of them, and whether these were a tuple."""
    points = list(inputs) if isinstance(inputs, tuple) else [inputs]
    for position, one in enumerate(points):
        if not isinstance(one, Tensor):
            at = f"Value at index {position}" if isinstance(inputs, tuple) else "The value"
            message = (
                f"The inputs given to {name} must be either a Tensor or a tuple of Tensors. {at} has type "
                f"{type(one).__name__}."
            )
            raise DtypeError(message)
        if one._node.dtype.kind not in "fc":
            message = (
                "only Tensors of floating point and complex dtype can require gradients, but the input of "
                f"{name} at index {position} has the dtype {one._node.dtype}: convert it, x.astype(nb.float32)"
            )
            raise AutogradError(message)
    leaves = [leaf_tensor(one, create_graph) for one in points]
    with within(remembers=True):
        returned = func(*leaves)
    several = isinstance(returned, tuple)
    outputs = list(returned) if several else [returned]
    if not outputs or not all(isinstance(one, Tensor) for one in outputs):
        given = type(returned).__name__
        message = (
            f"The outputs of the user-provided function given to {name} must be either a Tensor or a tuple of Tensors, "
            f"but it returned {given}."
        )
        raise DtypeError(message)
    return leaves, outputs, several


def _check_one(outputs: Sequence[Tensor], name: str) -> None:
    if len(outputs) != 1 or outputs[0].size != 1:
        message = f"The Tensor returned by the function given to {name} should contain a single element"
        raise AutogradError(message)


def _gradient(func: Callable[..., Any], points: Sequence[Tensor], name: str, strict: bool) -> list[Tensor]:
    """The gradients of a function with one value, which remember."""
    returned = func(*points)
    outputs = list(returned) if isinstance(returned, tuple) else [returned]
    if not all(isinstance(one, Tensor) for one in outputs):
        message = f"The function given to {name} must return a Tensor, but it returned {type(returned).__name__}."
        raise DtypeError(message)
    _check_one(outputs, name)
    return _products(outputs, [None], list(points), True, strict)


def _vectors(like: Sequence[Tensor], v: Any, name: str) -> list[Node | None]:
    """The vectors that go with Tensors, checked."""
    if v is None and not all(one.size == 1 for one in like):
        message = (
            f"The vector v can only be None if the user-provided function of {name} returns, or takes, a single Tensor "
            "with a single element."
        )
        raise AutogradError(message)
    return passes.seeds_of(like, v, "v")


def _products(
    outputs: Sequence[Tensor], seeds: Sequence[Node | None], wanted: Sequence[Tensor], lazily: bool, strict: bool
) -> list[Tensor]:
    """The gradients of outputs with respect to leaves: zeros where there are none, or an error if `strict`."""
    places = [one._node for one in wanted]
    pairs = [(one._node, seed) for one, seed in zip(outputs, seeds, strict=True) if remembers(one._node)]
    found: Sequence[Tensor | None] = [None] * len(places)
    if pairs:
        with within(remembers=True):
            found = passes.gradients([node for node, _ in pairs], [seed for _, seed in pairs], places, lazily)[0]
    made: list[Tensor] = []
    for position, (place, gradient) in enumerate(zip(places, found, strict=True)):
        if gradient is None and strict:
            message = (
                f"The output of the user-provided function is independent of input {position}. This is not allowed in "
                "strict mode."
            )
            raise AutogradError(message)
        made.append(Tensor._of(beside(zeros(place.shape, place.dtype), place)) if gradient is None else gradient)
    return made


def _as(values: Sequence[Tensor], several: bool) -> Any:
    """One value, or all of them as a tuple."""
    return tuple(values) if several else values[0]
