"""Functions of arrays within programs that `torch.compile` makes: one operator of PyTorch's that calls them by number.

In: a function of tensors that computes by nbgrad, that of arrays behind it, and the function of its cotangents. Out: a
function of tensors that PyTorch's compiler takes as an operator, with its shapes and its derivative. Called by
torch_functions.py, for calls that are being compiled. One operator serves all functions, since PyTorch never forgets
one; functions that no program of its compiler has are forgotten with what `torch_function` has given.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from .result_types import result_types

_numbers = itertools.count()
_operated: WeakValueDictionary[str, Operated] = WeakValueDictionary()
"""By number: the functions that the operator calls."""
_compiled: dict[str, Operated] = {}
"""Those that are part of a program of PyTorch's compiler, which holds their numbers alone and does not say when it is
gone."""


class Layouts(NamedTuple):
    """The results of a function: their shapes and dtypes, and whether they came as a tuple."""

    types: list[Any]
    is_tuple: bool


class Operated:
    """A function that the operator calls.

    Parameters
    ----------
    fn : callable
        The function of arrays.
    run : callable
        The function of tensors, without derivatives.
    pulled : callable
        From the number of arguments and the positions of some to the `Operated` that gives their cotangents.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        run: Callable[..., Any],
        pulled: Callable[[int, tuple[int, ...]], Operated],
    ) -> None:
        self.fn, self.run, self.pulled = fn, run, pulled
        self.number = str(next(_numbers))  # a text, which PyTorch's compiler takes as it is
        self.operator = operator()
        self.function: Callable[..., Any] | None = None
        """The function in PyTorch's own graph, once there is one; it has a forward mode, which operators have not."""
        self.known: dict[Any, Layouts] = {}
        _operated[self.number] = self

    def layouts(self, tensors: Sequence[Any]) -> Layouts:
        """Those of the results for tensors of which the shapes and dtypes are known."""
        arguments = tuple([(tuple(map(int, one.shape)), _dtype_of(one)) for one in tensors])
        if arguments not in self.known:
            self.known[arguments] = Layouts(*result_types(self.fn, arguments))
        return self.known[arguments]

    def __call__(self, *tensors: Any) -> Any:
        """The results, by the operator. PyTorch's compiler reads this, and must find nothing else to go into."""
        found = self.operator(list(tensors), self.number)
        return tuple(found[:-1]) if len(found) > 1 else found[0]


def _dtype_of(tensor: Any) -> np.dtype[Any]:
    return np.dtype(str(tensor.dtype).removeprefix("torch."))


@functools.cache
def operator() -> Any:
    """The operator: tensors and the number of a function, and out come its results; behind those that came as a tuple
    stands one more, which is empty."""
    import torch  # pyright: ignore[reportMissingImports]
    from torch._library.autograd import make_autograd_impl  # pyright: ignore[reportMissingImports]
    from torch.autograd import forward_ad  # pyright: ignore[reportMissingImports]

    def call(tensors: list[torch.Tensor], number: str) -> list[torch.Tensor]:
        found = _operated[number].run(*tensors)
        # An operator may not give its arguments themselves, and its fake results have no gaps.
        given = {one.data_ptr() for one in tensors}
        listed = (*found, tensors[0].new_empty(0)) if isinstance(found, tuple) else (found,)
        return [one.clone() if one.data_ptr() in given else one.contiguous() for one in listed]

    # The types are read, and not as text.
    call.__annotations__ = {"tensors": list[torch.Tensor], "number": str, "return": list[torch.Tensor]}
    made = torch.library.custom_op("nbgrad::call", call, mutates_args=())

    def shapes(tensors: Any, number: str) -> Any:
        operated = _compiled.setdefault(number, _operated[number])
        types, is_tuple = operated.layouts(tensors)
        found = [tensors[0].new_empty(shape, dtype=getattr(torch, dtype.name)) for shape, dtype in types]
        return [*found, tensors[0].new_empty(0)] if is_tuple else found

    def remember(ctx: Any, inputs: Any, output: Any) -> None:
        tensors, number = inputs
        ctx.operated = _operated[number]
        ctx.save_for_backward(*tensors)
        ctx.count = max(1, len(output) - 1)

    def backward(ctx: Any, cotangents: Any) -> Any:
        tensors = ctx.saved_tensors
        wanted = tuple([k for k, one in enumerate(tensors) if one.is_floating_point() or one.is_complex()])
        rule = ctx.operated.pulled(len(tensors), wanted)
        found = rule(*tensors, *[one.contiguous() for one in cotangents[: ctx.count]])
        grads: list[Any] = [None] * len(tensors)
        for position, gradient in zip(wanted, found, strict=True):
            grads[position] = gradient
        return grads, None

    made.register_fake(shapes)
    made.register_autograd(backward, setup_context=remember)
    # PyTorch drops the tangents of an operator's arguments without a word.
    usual = make_autograd_impl(made._opoverload, made)

    def with_tangents(keyset: Any, *args: Any, **kwargs: Any) -> Any:
        tensors, number = args
        moving = forward_ad._current_level >= 0 and any(
            forward_ad.unpack_dual(one).tangent is not None for one in tensors
        )
        function = _operated[number].function
        if not moving or function is None:
            return usual(keyset, *args, **kwargs)
        found = function(*tensors)
        return [*found, tensors[0].new_empty(0)] if isinstance(found, tuple) else [found]

    made._lib.impl(made._name, with_tangents, "Autograd", with_keyset=True)
    return made
