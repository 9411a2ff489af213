"""Buffers of Cells: arrays that belong to a Cell and are no Parameters of it, such as positions or counts.

In: a name and a Tensor. Out: an attribute that is read and assigned. The base of Cell, which it asks for attributes
that are not there. A buffer is kept in a Parameter without a gradient, so that a compiled function reads its value
anew and writes what is assigned to it back; it is in no list of Parameters.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import DtypeError, NameTakenError
from ..graph.trace import CELLS
from ..record.tensor import Tensor
from ..tensors.parameter import Parameter


class BufferedCell:
    """The methods of Cells about buffers."""

    _cells: Any
    _buffers: tuple[tuple[str, Parameter | None], ...]
    """Names and Parameters: a tuple, by whose elements compiled functions notice another buffer."""

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add a buffer, or replace it.

        Parameters
        ----------
        name : str
            Of the attribute.
        tensor : Tensor or None
            None is an attribute without an array.
        persistent : bool
            MindSpore's: whether `state_dict` has it; has no effect.

        Raises
        ------
        NameTakenError
            If the name is empty, has a dot, or is another attribute's. (A KeyError.)
        DtypeError
            If `tensor` is no Tensor. (A TypeError.)

        Examples
        --------
        >>> import nbgrad as nb
        >>> class Counter(nb.nn.Cell):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.register_buffer("calls", nb.Tensor(0))
        ...     def construct(self, x):
        ...         self.calls = self.calls + 1
        ...         return x * self.calls
        >>> net = Counter()
        >>> step = nb.jit(net)
        >>> print(step(nb.Tensor(2)), step(nb.Tensor(2)), net.calls, net.trainable_params())
        2 4 2 []
        """
        if not isinstance(name, str) or not name or "." in name:
            message = f"The name of a buffer must be a text without dots, but is {name!r}."
            raise NameTakenError(message)
        buffers = self._kept_buffers()
        if name not in buffers and hasattr(self, name):
            message = f"{name!r} is already the name of another attribute of {type(self).__name__}."
            raise NameTakenError(message)
        if tensor is not None and not isinstance(tensor, Tensor):
            message = f"The buffer {name!r} must be a Tensor or None, but got {type(tensor).__name__}."
            raise DtypeError(message)
        kept = None if tensor is None else Parameter(tensor, name=name, requires_grad=False)
        object.__setattr__(self, "_buffers", tuple({**buffers, name: kept}.items()))
        CELLS.token = object()

    def _kept_buffers(self) -> dict[str, Parameter | None]:
        """The Parameters of the buffers."""
        return dict(self.__dict__.get("_buffers", ()))

    def _value_of_buffer(self, name: str) -> Tensor | None:
        """The value of a buffer."""
        kept = self._kept_buffers()[name]
        return None if kept is None else kept.value()

    def _assigned_buffer(self, name: str, value: Any) -> bool:
        """Give a buffer a new value; whether the name is one of a buffer."""
        if "_buffers" not in self.__dict__ or name not in (buffers := self._kept_buffers()):
            return False
        kept = buffers[name]
        if kept is None or value is None or value.shape != kept.shape or value.dtype != kept.dtype:
            self.register_buffer(name, value)
        else:
            kept.set_data(value)
        return True

    def named_buffers(self, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Tensor]]:
        """Names and values of the buffers, and of those of Cells inside."""
        for name, kept in self._kept_buffers().items():
            if kept is not None:
                yield f"{prefix}.{name}" if prefix else name, kept.value()
        for name, cell in self._cells.items() if recurse else ():
            if cell is not None:
                yield from cell.named_buffers(f"{prefix}.{name}" if prefix else name)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """The buffers, and those of Cells inside."""
        for _, value in self.named_buffers(recurse=recurse):
            yield value

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of a name, with those of the Cells that it is in, by dots.

        Raises
        ------
        NameTakenError
            If there is none. (A KeyError.)
        """
        found = dict(self.named_buffers())
        if target not in found:
            message = f"There is no buffer {target!r}; there are {', '.join(found) or 'none'}."
            raise NameTakenError(message)
        return found[target]
