"""MindSpore's `mint.special`: special functions, under PyTorch's names.

In: Tensors. Out: Tensors. Used by users; the functions are those of `nbgrad.ops`.
"""

from __future__ import annotations

from .named_modules import door

TABLE = {
    "nbgrad.ops": "erfc exp2 expm1 log1p round sinc",
    "nbgrad.mint.nn.functional_rows": "log_softmax",
}
"""Module -> names."""

__getattr__, __dir__ = door(__name__, TABLE, globals())
