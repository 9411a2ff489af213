"""Derivatives of functions of JAX's and PyTorch's arrays, as functions of such arrays again.

In: a `Flat` function, from arrays to a list of arrays. Out: the same function of ndarrays, the layouts of its results,
and the two rules, which are `Flat` functions too, so that there are rules of any order. Called by foreign_functions.py.
A rule takes the arguments and the cotangents of all results of floats ("vjp"), or the tangents of the `wanted`
arguments ("jvp").
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..graph.custom_calls import Layout
from ..graph.ir import plain_dtype
from ..record.foreign_arrays import a_full_name
from .result_types import sample_of

Flat = Callable[..., list[Any]]


class Foreign(Protocol):
    """The functions of one library."""

    name: str

    def state(self) -> Any:
        """The settings that results depend on."""
        ...

    def run(self, flat: Flat) -> Callable[..., Sequence[np.ndarray]]:
        """The function of ndarrays."""
        ...

    def layouts(self, flat: Flat, inputs: Sequence[Layout], title: str) -> list[Layout]:
        """The shapes and dtypes of the results."""
        ...

    def vjp(self, flat: Flat, count: int, wanted: Sequence[int], floats: Sequence[int]) -> Flat:
        """The cotangents of the `wanted` ones of `count` arguments, for those of the results at `floats`."""
        ...

    def jvp(self, flat: Flat, count: int, wanted: Sequence[int], floats: Sequence[int]) -> Flat:
        """The tangents of the results at `floats`, for those of the `wanted` ones of `count` arguments."""
        ...


def _checked(found: Sequence[Any], title: str) -> list[Layout]:
    """The shapes and dtypes of results.

    Raises
    ------
    DtypeError
        If one is no array, or has a dtype that Tensors cannot have.
    """
    layouts: list[Layout] = []
    for one in found:
        if not hasattr(one, "shape") or not isinstance(one.dtype, np.dtype) or one.dtype.kind not in "biufc":
            given = f"an array of dtype {one.dtype}" if hasattr(one, "dtype") else a_full_name(one)
            message = f"{title}() has returned {given}: expected arrays of numbers, or containers of them."
            raise DtypeError(message)
        layouts.append((tuple(one.shape), plain_dtype(one.dtype)))
    if not layouts:
        message = f"{title}() has returned nothing: expected arrays of numbers, or containers of them."
        raise DtypeError(message)
    return layouts


class JaxFunctions:
    """Functions of JAX's arrays, which JAX compiles.

    Its cotangents of complex numbers are the conjugates of nbgrad's.
    """

    name = "JAX"

    def __init__(self) -> None:
        import jax  # pyright: ignore[reportMissingImports]

        self.jax: Any = jax

    def __reduce__(self) -> Any:
        return JaxFunctions, ()

    def state(self) -> Any:
        """Whether there are numbers of 64 bits."""
        return self.jax.config.jax_enable_x64

    def run(self, flat: Flat) -> Callable[..., Sequence[np.ndarray]]:
        """The function of ndarrays."""
        compiled = self.jax.jit(flat)
        return lambda *arrays: [np.asarray(one) for one in compiled(*arrays)]

    def layouts(self, flat: Flat, inputs: Sequence[Layout], title: str) -> list[Layout]:
        """The shapes and dtypes of the results."""
        return _checked(self.jax.eval_shape(flat, *[self.jax.ShapeDtypeStruct(*one) for one in inputs]), title)

    def vjp(self, flat: Flat, count: int, wanted: Sequence[int], floats: Sequence[int]) -> Flat:
        """The cotangents of the `wanted` ones of `count` arguments, for those of the results at `floats`."""

        def rule(*given: Any) -> list[Any]:
            of_wanted, points = self._of_wanted(flat, given[:count], wanted, floats)
            outputs, pulled = self.jax.vjp(of_wanted, *points)
            conj = self.jax.numpy.conj
            pairs = zip(outputs, given[count:], strict=True)
            return [conj(one) for one in pulled([conj(seed).astype(output.dtype) for output, seed in pairs])]

        return rule

    def jvp(self, flat: Flat, count: int, wanted: Sequence[int], floats: Sequence[int]) -> Flat:
        """The tangents of the results at `floats`, for those of the `wanted` ones of `count` arguments."""

        def rule(*given: Any) -> list[Any]:
            of_wanted, points = self._of_wanted(flat, given[:count], wanted, floats)
            moves = [move.astype(point.dtype) for move, point in zip(given[count:], points, strict=True)]
            return self.jax.jvp(of_wanted, points, moves)[1]

        return rule

    def _of_wanted(
        self, flat: Flat, arguments: Sequence[Any], wanted: Sequence[int], floats: Sequence[int]
    ) -> tuple[Flat, list[Any]]:
        """The results at `floats` as a function of the `wanted` arguments, and these."""

        def of_wanted(*points: Any) -> list[Any]:
            full = list(arguments)
            for position, point in zip(wanted, points, strict=True):
                full[position] = point
            found = flat(*full)
            return [found[position] for position in floats]

        return of_wanted, [arguments[position] for position in wanted]


class TorchFunctions:
    """Functions of PyTorch's tensors, on the CPU."""

    name = "PyTorch"

    def __init__(self) -> None:
        import torch  # pyright: ignore[reportMissingImports]

        self.torch: Any = torch

    def __reduce__(self) -> Any:
        return TorchFunctions, ()

    def state(self) -> Any:
        """Nothing."""

    def run(self, flat: Flat) -> Callable[..., Sequence[np.ndarray]]:
        """The function of ndarrays."""

        def run(*arrays: np.ndarray) -> list[np.ndarray]:
            # The function may write to its arguments.
            with self.torch.inference_mode(False), self.torch.no_grad():
                found = flat(*[self.torch.from_numpy(array.copy()) for array in arrays])
            return [one.detach().cpu().resolve_conj().resolve_neg().numpy() for one in found]

        return run

    def layouts(self, flat: Flat, inputs: Sequence[Layout], title: str) -> list[Layout]:
        """The shapes and dtypes of the results."""
        from torch._subclasses.fake_tensor import FakeTensorMode  # pyright: ignore[reportMissingImports]

        torch = self.torch
        samples = [torch.from_numpy(sample_of(shape, dtype).reshape(shape)) for shape, dtype in inputs]
        log = logging.getLogger("torch._subclasses.fake_tensor")  # it logs each failure as an error
        before, log.disabled = log.disabled, True
        with torch.inference_mode(False), torch.no_grad():
            try:
                with FakeTensorMode(allow_non_fake_inputs=True) as mode:
                    found = flat(*map(mode.from_tensor, samples))
                    described = [_Described(one) for one in found]
            except Exception:
                # It looks at values, or at something else that a fake tensor has not.
                described = [_Described(one) for one in flat(*samples)]
            finally:
                log.disabled = before
        return _checked([one.found for one in described], title)

    def vjp(self, flat: Flat, count: int, wanted: Sequence[int], floats: Sequence[int]) -> Flat:
        """The cotangents of the `wanted` ones of `count` arguments, for those of the results at `floats`."""
        torch = self.torch

        def rule(*given: Any) -> list[Any]:
            with torch.enable_grad():
                points, outputs = self._recorded(flat, given[:count], wanted, floats)
                return self._pulled(outputs, points, given[count:], any(one.requires_grad for one in given))

        return rule

    def jvp(self, flat: Flat, count: int, wanted: Sequence[int], floats: Sequence[int]) -> Flat:
        """The tangents of the results at `floats`, for those of the `wanted` ones of `count` arguments.

        By reverse mode alone, which every function of PyTorch's has: cotangents of arguments are linear in those of
        results, and the derivative by these, times the tangents, is the product
        (https://j-towns.github.io/2017/06/12/A-new-trick.html).
        """
        torch = self.torch

        def rule(*given: Any) -> list[Any]:
            with torch.enable_grad():
                points, outputs = self._recorded(flat, given[:count], wanted, floats)
                seeds = [torch.zeros_like(one).requires_grad_() for one in outputs]
                pulled = self._pulled(outputs, points, seeds, True)
                return self._pulled(pulled, seeds, given[count:], any(one.requires_grad for one in given), linear=True)

        return rule

    def _recorded(
        self, flat: Flat, arguments: Sequence[Any], wanted: Sequence[int], floats: Sequence[int]
    ) -> tuple[list[Any], list[Any]]:
        """The `wanted` arguments as they are differentiated, and the results at `floats`."""
        full = list(arguments)
        for position in wanted:
            one = full[position]
            # A tensor of its own, so that a function that writes to its argument does not write to a leaf.
            full[position] = one if one.requires_grad else one.detach().clone().requires_grad_()
        points = [full[position] for position in wanted]
        found = flat(*[one.clone() for one in full])
        return points, [found[position] for position in floats]

    def _pulled(
        self, outputs: Sequence[Any], points: Sequence[Any], seeds: Sequence[Any], again: bool, linear: bool = False
    ) -> list[Any]:
        """The cotangents of some points, recorded if they are differentiated `again`.

        Raises
        ------
        ArgumentError
            If the way to the points is cut: an output may be differentiated once only, outputs are `linear` in the
            points and do not depend on them, or cotangents do not depend on seeds.
        """
        pairs = [(o, s.to(o.dtype)) for o, s in zip(outputs, seeds, strict=True) if o.requires_grad]
        if not pairs:
            return [self.torch.zeros_like(point) for point in points]
        ends, starts = zip(*pairs, strict=True)
        if again:
            starts = [one if one.requires_grad else one.detach().requires_grad_() for one in starts]
        found = self.torch.autograd.grad(ends, points, starts, create_graph=again, allow_unused=True)
        cut = any(one.grad_fn.name().endswith("Error") for one in ends if one.grad_fn is not None)
        cut = cut or (linear and all(one is None for one in found))
        if cut or (again and any(one is not None and not one.requires_grad for one in found)):
            message = (
                "The backward of a function of PyTorch's has no derivative itself (once_differentiable, or computed "
                "without a graph), which forward mode and second derivatives need. Use nb.grad or nb.jacrev alone."
            )
            raise ArgumentError(message)
        return [self.torch.zeros_like(p) if one is None else one for p, one in zip(points, found, strict=True)]


class _Described:
    """A tensor's shape and dtype, as NumPy's; or the result as it is if it is no tensor."""

    def __init__(self, value: Any) -> None:
        self.found = self if hasattr(value, "dtype") else value
        if self.found is self:
            self.shape = tuple(value.shape)
            name = str(value.dtype).removeprefix("torch.")
            self.dtype = np.dtype(name) if name != "bfloat16" else name
