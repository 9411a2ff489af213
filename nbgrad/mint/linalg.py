"""MindSpore's `mint.linalg`: norms, inverses and factors of matrices, under PyTorch's names.

In: Tensors. Out: Tensors. Used by users; the functions are those of `nbgrad.ops`.
"""

from __future__ import annotations

from .named_modules import door

TABLE = {
    "nbgrad.ops": "inv=inverse vector_norm matrix_norm norm qr",
}
"""Module -> names; `name=function` has another name there."""

__getattr__, __dir__ = door(__name__, TABLE, globals())
