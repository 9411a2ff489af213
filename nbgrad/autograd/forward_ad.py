"""Forward mode by dual numbers, as PyTorch's `autograd.forward_ad`: a value carries its tangent along.

In: a Tensor and its tangent. Out: the tangents of what is computed from it, within `dual_level`. Called by users.
`nb.jvp` gives the same for a function.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, NamedTuple

from ..errors import AutogradError, DtypeError
from ..graph.builders import cast
from ..graph.differentiate import jvp
from ..graph.ir import Node
from ..process.modes import mode
from ..record.as_node import as_node
from ..record.tensor import Tensor
from ..remembered.hooks import replaced
from ..remembered.leaves import watched

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """A value and its tangent; None if it has none."""

    primal: Tensor
    tangent: Tensor | None


class _Level:
    """The dual numbers of a level: the nodes that stand for them, with the nodes before and their tangents."""

    def __init__(self) -> None:
        self.plain: dict[Node, Node] = {}
        self.tangents: dict[Node, Node] = {}


_levels: ContextVar[tuple[_Level, ...]] = ContextVar("nbgrad_dual_levels", default=())


def enter_dual_level() -> int:
    """Begin a level of forward mode; its number is given.

    Raises
    ------
    AutogradError
        If there is one: levels do not nest, as in PyTorch.
    """
    if _levels.get():
        message = "Nested forward mode AD is not supported at the moment. Take nb.jvp of nb.jvp."
        raise AutogradError(message)
    _levels.set((_Level(),))
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """End the level: all its tangents are gone.

    Raises
    ------
    AutogradError
        If there is none.
    """
    if not _levels.get() or level not in (None, 0):
        message = "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        raise AutogradError(message)
    _levels.set(())


class dual_level:  # noqa: N801 - PyTorch's name
    """A block with a level of forward mode.

    Examples
    --------
    >>> import nbgrad as nb
    >>> from nbgrad.autograd import forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(nb.Tensor([1.0, 2.0]), nb.Tensor([1.0, 0.5]))
    ...     y = fwAD.unpack_dual(x**3)
    >>> print(y.primal, y.tangent)
    [1. 8.] [3. 6.]
    """

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *_: Any) -> None:
        exit_dual_level()


def make_dual(tensor: Any, tangent: Any, *, level: int | None = None) -> Tensor:
    """A Tensor of the same value that carries a tangent.

    Parameters
    ----------
    tensor, tangent : Tensor
        Of the same shape.

    Raises
    ------
    AutogradError
        Outside of a level, within `no_grad`, and for a tangent of another shape.
    DtypeError
        For anything but Tensors of floating-point or complex numbers.
    """
    del level
    if not _levels.get():
        message = (
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
        raise AutogradError(message)
    if not mode().remembers:
        message = "make_dual within no_grad would lose the tangent with the next operation. Leave the block first."
        raise AutogradError(message)
    if not isinstance(tensor, Tensor) or not isinstance(tangent, Tensor) or tensor._node.dtype.kind not in "fc":
        message = (
            f"Expected primal and tangent to be floating point or complex Tensors, but got: {tensor!r}, {tangent!r}"
        )
        raise DtypeError(message)
    if tensor.shape != tangent.shape:
        message = f"Expected tangent of shape {tensor.shape}, that of the primal, but got: {tangent.shape}"
        raise AutogradError(message)
    found = _levels.get()[-1]
    node = watched(tensor._node)
    found.plain[node] = tensor._node
    found.tangents[node] = cast(as_node(tangent), node.dtype)
    return Tensor._of(node)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value and the tangent of a Tensor; None for a tangent if it depends on no dual one, or without a level."""
    del level
    if not isinstance(tensor, Tensor):
        message = f"unpack_dual takes a Tensor, but got {type(tensor).__name__}."
        raise DtypeError(message)
    if not _levels.get():
        return UnpackedDualTensor(tensor, None)
    found = _levels.get()[-1]
    duals = list(found.tangents)
    (tangent,) = jvp([tensor._node], duals, list(found.tangents.values()))
    if tangent is None:
        return UnpackedDualTensor(tensor, None)
    nodes, _ = replaced(
        [tensor._node, tangent], {node: lambda _, plain=plain: plain for node, plain in found.plain.items()}
    )
    return UnpackedDualTensor(Tensor._of(nodes[0]), Tensor._of(nodes[1]))
