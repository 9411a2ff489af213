"""Methods of Tensor that are functions of `nbgrad.ops` under the same name, with the Tensor as their first argument.

In: the class. Out: the class with those methods. Called once, by tensor.py. The functions are looked up late, because
`nbgrad.ops` itself is made of Tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

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


def _method(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(import_module(".ops", __package__), name)(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"As `nbgrad.ops.{name}` of this Tensor."
    return method


def add_methods(cls: type) -> None:
    """Give a class the methods."""
    for name in NAMES:
        setattr(cls, name, _method(name))
