"""Functions of arrays as differentiable functions of PyTorch's tensors.

In: a function of arrays. Out: a function of tensors, which `backward`, `torch.autograd`, `torch.func` and double
backward go through. Called by users. Values and derivatives run as compiled programs: on the CPU the tensors' memory
is read where it is, on a GPU through DLPack.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiled.jit import jit
from ..errors import DtypeError
from ..record.tensor import Tensor
from ..transforms.argument_positions import check_function
from ..transforms.arguments import name_of
from ..transforms.vmap import vmap
from .derivative_rules import floats_of, pullback, pushforward
from .torch_operators import Operated

_MOST_VALUES = 256
"""Combinations of arguments that are no tensors, for which a function is compiled and kept."""


def torch_function(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of PyTorch's tensors that computes, and differentiates, by nbgrad.

    Parameters
    ----------
    fn : callable
        Takes arrays, and other hashable values, for which it is compiled anew; returns an array or a tuple of them.

    Returns
    -------
    callable
        Takes tensors, ndarrays and floats in place of arrays, by position; gives tensors. Differentiable to any order,
        in both modes, and mapped by `torch.func.vmap`.

    Raises
    ------
    ImportError
        Without PyTorch.
    DtypeError
        If `fn` is no function, or does not return arrays when it is called.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> norm = nb.interop.torch_function(lambda x: np.sqrt(np.sum(x * x)))    # doctest: +SKIP
    >>> x = torch.tensor([3.0, 4.0], requires_grad=True)                      # doctest: +SKIP
    >>> norm(x).backward(); x.grad                                            # doctest: +SKIP
    tensor([0.6000, 0.8000])
    """
    check_function(fn, "torch_function")
    import torch  # pyright: ignore[reportMissingImports]
    from torch.utils._python_dispatch import is_in_torch_dispatch_mode  # pyright: ignore[reportMissingImports]

    compiled = jit(fn)
    name = name_of(fn)

    class Called(torch.autograd.Function):
        """The function in PyTorch's graph."""

        @staticmethod
        def forward(*args: Any) -> Any:
            # A mode records operators, such as for torch.func.linearize and torch.export: it must meet one.
            return operated(*args) if is_in_torch_dispatch_mode() else run(*args)

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)
            outputs = output if isinstance(output, tuple) else (output,)
            ctx.mark_non_differentiable(*[one for one in outputs if not _is_differentiable(one)])
            ctx.floats = [_is_differentiable(one) for one in outputs]
            ctx.is_tuple = isinstance(output, tuple)

        @staticmethod
        def backward(ctx: Any, *cotangents: Any) -> Any:
            args = ctx.saved_tensors
            wanted = tuple([k for k, needed in enumerate(ctx.needs_input_grad) if needed])
            rule = rule_of(len(args), wanted)
            found = rule(*args, *[one.contiguous() for one in cotangents])
            grads: list[Any] = [None] * len(args)
            for position, gradient in zip(wanted, found, strict=True):
                grads[position] = gradient
            return tuple(grads)

        @staticmethod
        def jvp(ctx: Any, *tangents: Any) -> Any:
            args = ctx.saved_tensors
            wanted = tuple([k for k, tangent in enumerate(tangents) if tangent is not None])
            found = iter(forward_rule_of(len(args), wanted)(*args, *[tangents[k] for k in wanted]))
            moved = tuple([next(found) if one else None for one in ctx.floats])
            return moved if ctx.is_tuple else moved[0]

        @staticmethod
        def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
            del info
            found = mapped(in_dims)(*args)
            return found, (0,) * len(found) if isinstance(found, tuple) else 0

    @functools.cache
    def rule_of(count: int, wanted: tuple[int, ...]) -> Any:
        return torch_function(pullback(fn, count, wanted))

    @functools.cache
    def forward_rule_of(count: int, wanted: tuple[int, ...]) -> Any:
        return torch_function(pushforward(floats_of(fn), count, wanted))

    @functools.cache
    def mapped(in_dims: Any) -> Callable[..., Any]:
        return torch_function(vmap(fn, in_axes=in_dims))

    def _is_differentiable(value: Any) -> bool:
        return value.is_floating_point() or value.is_complex()

    def _array(value: Any) -> Any:
        value = value.detach()
        if value.is_cuda:
            return value
        try:
            array = value.resolve_conj().resolve_neg().numpy()
        except TypeError as error:
            message = f"nbgrad has no arrays of {value.dtype}, which {name}() got. Pass x.float()."
            raise DtypeError(message) from error
        # PyTorch would not know of a write, and the reverse pass would write again.
        array.flags.writeable = False
        return array

    def _tensor(value: Any, of: str) -> Any:
        if isinstance(value, torch.Tensor):
            return value
        if isinstance(value, Tensor):
            value = value.asnumpy()
        if not isinstance(value, np.ndarray | np.generic | int | float | complex):
            message = (
                f"{of}() must return an array or a tuple of arrays for PyTorch, but returned {type(value).__name__}."
            )
            raise DtypeError(message)
        return torch.as_tensor(value)

    def computed(*tensors: Any) -> Any:
        found = compiled(*[_array(value) for value in tensors])
        return tuple([_tensor(one, name) for one in found]) if isinstance(found, tuple) else _tensor(found, name)

    run: Any = torch.compiler.disable(computed)
    operated = Operated(fn, run, lambda count, wanted: rule_of(count, wanted).operated)
    with_values: dict[Any, Callable[..., Any]] = {}

    def of_tensors(args: tuple[Any, ...]) -> Callable[..., Any]:
        """The function of the tensors among arguments, with the other values in their places."""
        others = {k: value for k, value in enumerate(args) if not isinstance(value, torch.Tensor)}
        key = len(args), tuple([(k, type(value), value) for k, value in others.items()])
        try:
            found = with_values.get(key)
        except TypeError as error:
            message = f"{name}() got an argument that is neither a tensor nor hashable: {error}. Pass a tensor."
            raise DtypeError(message) from error
        if found is None:

            @functools.wraps(fn, updated=())
            def filled(*tensors: Any) -> Any:
                given = iter(tensors)
                return fn(*[others[k] if k in others else next(given) for k in range(len(args))])

            if len(with_values) >= _MOST_VALUES:
                with_values.clear()
            found = with_values[key] = torch_function(filled)
        return found

    def as_tensors(args: tuple[Any, ...]) -> list[Any]:
        """Arguments with tensors for arrays, and for floats, which take the dtype of the others."""
        given = [torch.as_tensor(one) if isinstance(one, np.ndarray | np.generic) else one for one in args]
        kinds = [one.dtype for one in given if isinstance(one, torch.Tensor) and _is_differentiable(one)]
        kind = functools.reduce(torch.promote_types, kinds) if kinds else torch.float64
        return [torch.tensor(one, dtype=kind) if type(one) is float else one for one in given]

    def with_others(args: tuple[Any, ...]) -> Any:
        """A call with arguments that are no tensors, which PyTorch's compiler does not look into."""
        given = as_tensors(args)
        tensors = [one for one in given if isinstance(one, torch.Tensor)]
        return (function if len(tensors) == len(given) else of_tensors(tuple(given)))(*tensors)

    apart: Any = torch.compiler.disable(with_others)

    @functools.wraps(fn, updated=())
    def function(*args: Any) -> Any:
        if not all(isinstance(one, torch.Tensor) for one in args):
            return apart(args)
        return operated(*args) if torch.compiler.is_compiling() and args else Called.apply(*args)

    operated.function = torch.compiler.disable(Called.apply)
    function.operated = operated  # pyright: ignore[reportAttributeAccessIssue]
    return function
