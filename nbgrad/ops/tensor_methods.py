"""Methods of Tensor that are functions of `nbgrad.ops` under the same name, with the Tensor as their first argument.

In: the functions by name, which are imported when a method is first called. Out: the methods of Tensor. Called once, by
`nbgrad.ops`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..record.tensor import Tensor

NAMES = """
    add sub subtract mul multiply div divide true_divide floor_divide remainder pow maximum minimum addcmul addcdiv lerp
    exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal sign neg negative absolute sin cos tan asin acos
    atan atan2 sinh cosh tanh asinh acosh atanh erf erfc floor ceil trunc isnan isinf isfinite clamp where
    masked_fill masked_select eq ne lt le gt ge equal not_equal less less_equal greater greater_equal logical_and
    logical_or logical_not logical_xor amax amin norm logsumexp cummax cummin median count_nonzero sigmoid relu softmax
    log_softmax expand_dims unsqueeze broadcast_to expand expand_as split chunk unbind tile flip roll narrow
    triu tril diag gather gather_elements index_select index_add argwhere topk matmul bmm mm mv inner outer cross det
    inverse cholesky swapdims moveaxis
""".split()


def add_methods(function_of: Callable[[str], Any]) -> None:
    """Give Tensor the methods."""
    for name in NAMES:
        setattr(Tensor, name, _method(name, function_of))


def _method(name: str, function_of: Callable[[str], Any]) -> Callable[..., Any]:
    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        return function_of(name)(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"As `nbgrad.ops.{name}` of this Tensor."
    return method
