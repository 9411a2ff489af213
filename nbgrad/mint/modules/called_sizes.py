"""PyTorch's `x.size()` beside NumPy's `x.size`: a number of elements that can be called.

In: nothing; `install` is called when `torch_names` is imported. Out: `Tensor.size` gives a `Count`, which is the int
that it is without PyTorch's names, and the shape or an extent when it is called.
"""

from __future__ import annotations

from typing import Any

from ...record.tensor import Tensor


class Count(int):
    """The number of elements of a shape; called, the shape or one of its extents."""

    shape: tuple[int, ...]

    def __call__(self, dim: int | None = None) -> Any:
        return self.shape if dim is None else self.shape[dim]

    def __reduce__(self) -> Any:
        return int, (int(self),)


class _Sized(Tensor):
    """The property in place of Tensor's own."""

    @property
    def size(self) -> int:
        """The number of elements."""
        node = self._node
        made = Count(node.size)
        made.shape = node.shape
        return made


def install() -> None:
    """Let `size` be called, of all Tensors."""
    Tensor.size = _Sized.size  # pyright: ignore[reportAttributeAccessIssue]
