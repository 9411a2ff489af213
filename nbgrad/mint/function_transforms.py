"""PyTorch's `torch.func`: transforms of functions with PyTorch's parameters, over those of nbgrad.

In: functions, and which of their arguments count. Out: functions. Used by torch_names.py, as `func`, and through it by
users. `functional_call` is a Cell as a function of its Parameters too, which `vmap` and the others take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy

from ..errors import ArgumentError
from ..graph.trace import current_trace
from ..nn.cell import Cell
from ..transforms import grad as gradients
from ..transforms import jacobians
from ..transforms.vmap import vmap as plain_vmap
from .modules.module import name_in_torch

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""


def grad(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient of a function, and with `has_aux` what else the function gives.

    Parameters
    ----------
    func : callable
    argnums : int or tuple of int
        The arguments that it is taken by.
    has_aux : bool
        Whether the function gives a pair of its value and something else.

    Examples
    --------
    >>> import nbgrad.mint.torch_names as torch
    >>> slope, double = torch.func.grad(lambda x: ((x**2).sum(), 2 * x), has_aux=True)(torch.ones(2))
    >>> print(slope, double)
    [2. 2.] [2. 2.]
    """
    both = grad_and_value(func, argnums, has_aux)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def grad_and_value(func: Callable[..., Any], argnums: Any = 0, has_aux: bool = False) -> Callable[..., Any]:
    """The gradient and the value of a function; with `has_aux`, the value is the pair that the function gives.

    Examples
    --------
    >>> import nbgrad.mint.torch_names as torch
    >>> print(*torch.func.grad_and_value(lambda x: (x**2).sum())(torch.ones(2)))
    [2. 2.] 2.0
    """
    positions = tuple(argnums) if isinstance(argnums, list | tuple) else argnums
    both = gradients.value_and_grad(func, positions, has_aux=has_aux)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return found, value

    return gradient


def vmap(
    func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: Any = None
) -> Callable[..., Any]:
    """A function over a further axis of its arguments; `randomness` and `chunk_size` have no effect."""
    del randomness, chunk_size
    return plain_vmap(func, in_dims, out_dims)


def _by_position(transform: Callable[..., Any]) -> Callable[..., Any]:
    def transformed(func: Callable[..., Any], argnums: Any = 0, **options: Any) -> Callable[..., Any]:
        options = {key: value for key, value in options.items() if key not in ("chunk_size", "randomness")}
        return transform(func, tuple(argnums) if isinstance(argnums, list | tuple) else argnums, **options)

    transformed.__name__ = transformed.__qualname__ = transform.__name__
    transformed.__doc__ = f"`nbgrad.{transform.__name__}` with PyTorch's name of the positions, `argnums`."
    return transformed


jacrev, jacfwd, hessian = map(_by_position, (jacobians.jacrev, jacobians.jacfwd, jacobians.hessian))


@contextmanager
def _with_values(cell: Cell, values: Mapping[str, Any]) -> Iterator[None]:
    """Let the Cells of a tree see other values in place of Parameters, which are named by path or by their own name."""
    replaced: list[tuple[dict[str, Any], str, Any]] = []
    unknown = set(values)
    buffers: list[tuple[dict[str, Any], str]] = []
    for path, inner in list(cell.cells_and_names()):
        before = f"{path}." if path else ""
        for name in inner._kept_buffers():
            if before + name in values:
                unknown.discard(before + name)
                buffers.append((vars(inner), name))
                vars(inner)[name] = values[before + name]
        for name, parameter in inner._params.items():
            for known in (before + name, before + name_in_torch(inner, name), parameter.name):
                if known in values and name in vars(inner):
                    unknown.discard(known)
                    replaced.append((vars(inner), name, vars(inner)[name]))
                    vars(inner)[name] = values[known]
                    break
    try:
        if unknown:
            message = f"{type(cell).__name__} has no Parameters with the names {', '.join(sorted(unknown))}."
            raise ArgumentError(message)
        yield
    finally:
        for attributes, name in buffers:
            del attributes[name]
        for attributes, name, parameter in reversed(replaced):
            attributes[name] = parameter


def functional_call(
    module: Cell, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: Mapping[str, Any] | None = None
) -> Any:
    """The output of a Cell with other values for its Parameters.

    Parameters
    ----------
    module : Cell
    parameter_and_buffer_dicts : dict of str to Tensor, or a tuple of such dicts
        By the names of Parameters; those that are not named keep their values.
    args : tuple, or one argument
    kwargs : dict, optional

    Raises
    ------
    ArgumentError
        If the Cell has no Parameter of a name.

    Examples
    --------
    >>> import nbgrad as nb, nbgrad.mint.torch_names as torch
    >>> net = torch.nn.Linear(2, 1)
    >>> values = {"weight": torch.ones(1, 2), "bias": torch.zeros(1)}
    >>> loss = lambda values, x: torch.func.functional_call(net, values, (x,)).sum()
    >>> each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(values, torch.eye(2))
    >>> print(each["weight"])
    [[[1. 0.]]
    <BLANKLINE>
     [[0. 1.]]]
    """
    given = parameter_and_buffer_dicts
    values = {key: value for one in given for key, value in one.items()} if isinstance(given, tuple | list) else given
    trace = current_trace()
    if trace is not None and trace.guards is not None:
        for _, cell in module.cells_and_names():  # what is compiled depends on the Cells as they are outside
            trace.cells.setdefault(cell, cell._state())
    positional = () if args is None else tuple(args) if isinstance(args, tuple | list) else (args,)
    with _with_values(module, values):
        return module(*positional, **(kwargs or {}))


def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The Parameters, and the buffers, of several modules of one kind, each along a new first axis."""
    listed = list(models)
    states = [(dict(one.named_parameters()), dict(one.named_buffers())) for one in listed]
    first, second = (
        {name: np.stack([state[k][name].detach() for state in states]) for name in states[0][k]} for k in (0, 1)
    )
    return {name: value.requires_grad_() for name, value in first.items()}, second


func = SimpleNamespace(
    functional_call=functional_call,
    grad=grad,
    grad_and_value=grad_and_value,
    hessian=hessian,
    jacfwd=jacfwd,
    jacrev=jacrev,
    jvp=jacobians.jvp,
    stack_module_state=stack_module_state,
    vjp=jacobians.vjp,
    vmap=vmap,
)
"""PyTorch's `torch.func`."""
