"""PyTorch's `nn.utils`: gradients that are limited, Parameters as one vector, weights that are made of others.

In: Parameters or modules. Out: numbers, vectors, or the modules with other Parameters. Called by users, as
`torch_names.nn.utils`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import numpy

from ... import ops
from ...autograd.grad_modes import no_grad
from ...errors import ArgumentError, AutogradError
from ...record.tensor import Tensor
from . import packed_sequences
from .module import Module, Parameter
from .stepping_optimizers import give_value

np: Any = numpy
"""NumPy, whose functions take Tensors, which its types do not know."""

__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "get_total_norm",
    "parameters_to_vector",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]

rnn = packed_sequences


def _with_gradients(parameters: Any) -> list[Any]:
    listed = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    return [one for one in listed if one.grad is not None]


def get_total_norm(
    tensors: Iterable[Any], norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Tensor:
    """The norm of all elements of several arrays together."""
    del foreach
    listed = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not listed:
        return Tensor(0.0)
    norm_type = float(norm_type)
    each = ops.stack([ops.norm(one.detach().reshape(-1), norm_type) for one in listed])
    total = ops.norm(each, norm_type)
    if error_if_nonfinite and not np.isfinite(total.asnumpy()):
        message = (
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be "
            "clipped."
        )
        raise AutogradError(message)
    return total


def clip_grads_with_norm_(parameters: Any, max_norm: float, total_norm: Any, foreach: Any = None) -> None:
    """Scale all gradients such that a norm that is given becomes at most `max_norm`."""
    del foreach
    with no_grad():
        factor = np.minimum(float(max_norm) / (total_norm + 1e-6), 1.0)
        for one in _with_gradients(parameters):
            one.grad.mul_(factor.astype(one.grad.dtype))


def clip_grad_norm_(
    parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: Any = None
) -> Tensor:
    """Scale all gradients such that their norm together is at most `max_norm`.

    Parameters
    ----------
    parameters : iterable of Tensor
    max_norm, norm_type : float
    error_if_nonfinite : bool

    Returns
    -------
    Tensor
        The norm before.

    Examples
    --------
    >>> import nbgrad.mint.torch_names as torch
    >>> w = torch.tensor([3.0, 4.0], requires_grad=True)
    >>> (w * w / 2).sum().backward()
    >>> print(torch.nn.utils.clip_grad_norm_([w], 1.0), w.grad.round(decimals=4))
    5.0 [0.6 0.8]
    """
    chosen = _with_gradients(parameters)
    total = get_total_norm([one.grad for one in chosen], norm_type, error_if_nonfinite, foreach)
    clip_grads_with_norm_(chosen, max_norm, total, foreach)
    return total


clip_grad_norm = clip_grad_norm_


def clip_grad_value_(parameters: Any, clip_value: float, foreach: Any = None) -> None:
    """Limit each element of all gradients to `clip_value` in both directions."""
    del foreach
    with no_grad():
        for one in _with_gradients(parameters):
            one.grad.clamp_(-float(clip_value), float(clip_value))


def parameters_to_vector(parameters: Iterable[Any]) -> Tensor:
    """All Parameters one after the other."""
    return ops.concat([one.reshape(-1) for one in parameters])


def vector_to_parameters(vec: Any, parameters: Iterable[Any]) -> None:
    """Give Parameters the elements of a vector, one after the other."""
    if not isinstance(vec, Tensor):
        message = f"expected a Tensor, but got: {type(vec).__name__}"
        raise ArgumentError(message)
    at = 0
    values = vec.detach()  # pyright: ignore[reportAttributeAccessIssue]
    with no_grad():
        for one in parameters:
            give_value(one, values[at : at + one.size].reshape(one.shape))
            at += one.size


# ----- Weights that are made of others -----


def _handle_of(module: Any, name: str, kind: str) -> Any:
    found = module.__dict__.get("_made_weights", {}).pop((name, kind), None)
    if found is None:
        message = f"{kind} of {name!r} not found in {type(module).__name__}"
        raise ArgumentError(message)
    return found


def _made(module: Module, name: str, kind: str, others: dict[str, Any], make: Callable[[], Any]) -> Module:
    """Let a weight be computed from other Parameters before each call."""
    delattr(module, name)
    for suffix, value in others.items():
        if isinstance(value, Parameter):
            module.register_parameter(f"{name}{suffix}", value)
        else:
            module.register_buffer(f"{name}{suffix}", value)

    def before(cell: Any, inputs: Any) -> None:
        del cell, inputs
        object.__setattr__(module, name, make())

    before(module, ())
    attributes: Any = module.__dict__
    handles = attributes.setdefault("_made_weights", {})
    handles[name, kind] = module.register_forward_pre_hook(before)
    return module


def _removed(module: Module, name: str, kind: str, suffixes: Iterable[str]) -> Module:
    """Let a weight be a Parameter again, with the value that it has."""
    handle = _handle_of(module, name, kind)
    value = getattr(module, name).detach()
    handle.remove()
    attributes: Any = module.__dict__
    del attributes[name]
    for suffix in suffixes:
        full = f"{name}{suffix}"
        if full in module._params:
            delattr(module, full)
        else:
            kept = tuple([pair for pair in module._buffers if pair[0] != full])
            object.__setattr__(module, "_buffers", kept)
    module.register_parameter(name, Parameter(value))
    return module


def _norm_except(v: Any, dim: int | None) -> Any:
    axes = tuple([axis for axis in range(v.ndim) if dim is None or axis != dim % v.ndim])
    return np.sqrt(np.sum(v * v, axis=axes, keepdims=True))


def weight_norm(module: Any, name: str = "weight", dim: int | None = 0) -> Any:
    """Let a weight be a direction `weight_v` times a length `weight_g` (Salimans and Kingma 2016).

    Parameters
    ----------
    module : Module
    name : str
    dim : int, optional
        The axis whose slices have a length each; None for one length.
    """
    value = getattr(module, name).detach()
    length = _norm_except(value, dim)
    others = {"_g": Parameter(length if dim is not None else length.reshape(())), "_v": Parameter(value)}

    def make() -> Any:
        v, g = getattr(module, f"{name}_v"), getattr(module, f"{name}_g")
        return v * (g / _norm_except(v, dim))

    return _made(module, name, "weight_norm", others, make)


def remove_weight_norm(module: Any, name: str = "weight") -> Any:
    """Let a weight be a Parameter again."""
    return _removed(module, name, "weight_norm", ("_g", "_v"))


def _unit(x: Any, eps: float) -> Any:
    return x / np.maximum(np.sqrt(np.sum(x * x)), eps)


def spectral_norm(
    module: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Any:
    """Let a weight be divided by its greatest singular value, which power iterations in training estimate.

    Parameters
    ----------
    module : Module
    name : str
    n_power_iterations : int
        In each call.
    eps : float
        The least norm that is divided by.
    dim : int, optional
        The axis of outputs; by default 1 for transposed convolutions, 0 for others.
    """
    value = getattr(module, name).detach()
    axis = (1 if type(module).__name__.startswith("ConvTranspose") else 0) if dim is None else dim

    def matrix(weight: Any) -> Any:
        order = (axis, *[one for one in range(weight.ndim) if one != axis])
        return weight.transpose(order).reshape(weight.shape[axis], -1)

    rows, columns = matrix(value).shape
    u, v = [_unit(ops.randn(n, dtype="float64").astype(value.dtype), eps) for n in (rows, columns)]
    for _ in range(15):
        v = _unit(matrix(value).T @ u, eps)
        u = _unit(matrix(value) @ v, eps)
    others = {"_orig": Parameter(value), "_u": u, "_v": v}

    def make() -> Any:
        weight = getattr(module, f"{name}_orig")
        flat, u, v = matrix(weight), getattr(module, f"{name}_u"), getattr(module, f"{name}_v")
        if module.training:
            with no_grad():
                for _ in range(n_power_iterations):
                    v = _unit(flat.T @ u, eps).detach()
                    u = _unit(flat @ v, eps).detach()
                setattr(module, f"{name}_u", u)
                setattr(module, f"{name}_v", v)
        return weight / (u @ (flat @ v))

    found = _made(module, name, "spectral_norm", others, lambda: getattr(module, f"{name}_orig"))
    handle = _handle_of(found, name, "spectral_norm")
    handle.remove()

    def before(cell: Any, inputs: Any) -> None:
        del cell, inputs
        object.__setattr__(module, name, make())

    found.__dict__["_made_weights"][name, "spectral_norm"] = found.register_forward_pre_hook(before)
    return found


def remove_spectral_norm(module: Any, name: str = "weight") -> Any:
    """Let a weight be a Parameter again."""
    return _removed(module, name, "spectral_norm", ("_orig", "_u", "_v"))


parametrizations = SimpleNamespace(weight_norm=weight_norm, spectral_norm=spectral_norm)
"""PyTorch's newer home of both; names of the Parameters are the older ones."""
