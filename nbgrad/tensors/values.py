"""The value of a Tensor: as an ndarray, as Python numbers, as text.

In: a Tensor. Out: its value, computed when it is asked for; an error where a value that is being differentiated would
be cut off from its gradient. Called by users and by Python.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ..errors import ArgumentError, AutogradError, DtypeError, TracedValueError
from ..graph.trace import is_being_recorded, note_refusal
from ..process.modes import REMEMBERS
from ..record import shared_memory
from ..record.leaks import formats_text, way_out
from ..record.tensor import Tensor, part_of_tensor
from ..runtime.evaluate import concrete
from . import python_numbers

_NOT_YET = (
    'It has no number yet that "%g" % x could show: write f"{x:g}", which shows that it is recorded, or print it '
    "outside of nb.jit and nb.vmap."
)


def _complex_text(number: complex) -> str:
    """A complex number as MindSpore prints it."""
    return f"{number.real:g}{number.imag:+g}j"


@part_of_tensor
class Values(Tensor):
    """The methods that give the value of a Tensor."""

    __slots__ = ()

    def _leaving(self, how: str, instead: str = "", of_number: Any = False) -> None:
        """Raise if a value that is being differentiated would become a plain one, which cuts the gradient."""
        node = self._node
        if node.traced and node.dtype.kind in "fc" and is_being_recorded(node):
            message = (
                f"A Tensor of shape {node.shape} that is being differentiated or compiled cannot {how}: it would be "
                f"cut off without notice. {instead or way_out(of_number)}"
            )
            error = TracedValueError(message)
            note_refusal(error)
            raise error

    def _refuse_remembered(self, what: str) -> None:
        """Raise for a value that requires gradients, which a plain copy would cut off.

        Raises
        ------
        AutogradError
            In PyTorch's words.
        """
        if self._node.traced & REMEMBERS and self._node.dtype.kind in "fc":
            message = f"Can't {what} on Tensor that requires grad. Use tensor.detach().numpy() instead."
            raise AutogradError(message)

    def asnumpy(self) -> np.ndarray:
        """The value as an ndarray that shares the Tensor's data and does not carry gradients.

        While a function is recorded, for a Parameter, for a slice, and for a Tensor on a device, it is a copy.
        """
        return shared_memory.share(self)

    def numpy(self) -> np.ndarray:
        """The value as an ndarray, by `asnumpy`; an error if it requires gradients, as in PyTorch."""
        self._refuse_remembered("call numpy()")
        return self.asnumpy()

    def _one(self, reason: str) -> Any:
        """The only element, as a Python number."""
        if self.size != 1:
            message = (
                f"Only a Tensor with one element can become a Python number, but this one has shape {self.shape}; "
                "the truth value of several elements is ambiguous, use any() or all()."
            )
            raise ArgumentError(message)
        return concrete(self._node, reason).item()

    def _number(self, how: str) -> Any:
        self._leaving(how, of_number=True)
        return self._one("int" if self.dtype.kind in "iub" else "float")

    def item(self, *position: Any) -> Any:
        """The only element, or the one at a position, as a Python number."""
        return python_numbers.item(self, position, sys._getframe(1))  # pyright: ignore[reportPrivateUsage]

    def tolist(self) -> Any:
        """The value as nested lists of Python numbers."""
        return python_numbers.tolist(self, sys._getframe(1))  # pyright: ignore[reportPrivateUsage]

    def __float__(self) -> float:
        if self._node.dtype.kind == "c":
            message = f"A complex Tensor of shape {self.shape} cannot become a float. Take x.real, x.imag or abs(x)."
            raise DtypeError(message)
        if self._node.traced and formats_text(sys._getframe(1)):  # pyright: ignore[reportPrivateUsage]
            value = self._text_value()
            if value is not None and value.size == 1:
                return float(value.item())
            self._leaving("become a Python float", _NOT_YET)
        return float(self._number("become a Python float"))

    def __int__(self) -> int:
        return int(self._one("int"))

    def __floor__(self) -> int:
        return int(np.floor(self))

    def __ceil__(self) -> int:
        return int(np.ceil(self))

    def __trunc__(self) -> int:
        return int(self)

    def __bool__(self) -> bool:
        return bool(self._one("bool"))

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            message = f"Only a 0-d Tensor of integers can be an index, but this is {self.dtype} of shape {self.shape}."
            raise DtypeError(message)
        return int(self._one("int"))

    def __complex__(self) -> complex:
        return complex(self._number("become a Python complex number"))

    # ----- Text -----

    def _text_value(self) -> np.ndarray | None:
        """The value if it can be known now."""
        try:
            return concrete(self._node, "array")
        except (TracedValueError, AssertionError):
            return None

    def __str__(self) -> str:
        value = self._text_value()
        return repr(self) if value is None else str(value)

    def __repr__(self) -> str:
        head = f"Tensor(shape={list(self.shape)}, dtype={self.dtype}, value="
        value = self._text_value()
        if value is None:
            return head + " recorded)"
        if value.ndim == 0:
            shown = {"f": "{:g}".format, "c": _complex_text}.get(self.dtype.kind, str)
            return f"{head} {shown(value.item())})"
        if value.size == 0:
            return head + " )"
        digits = 4 if self.dtype.itemsize == 2 else 8
        formats: Any = {
            "float_kind": lambda number: f"{number:{digits + 7}.{digits}e}",
            "complex_kind": _complex_text,
        }
        text = np.array2string(value, separator=", ", formatter=formats, max_line_width=120)
        return f"{head} {text})" if value.ndim == 1 else f"{head}\n{text})"

    def __format__(self, spec: str) -> str:
        value = self._text_value()
        if not spec or value is None:
            return str(self)
        if value.size != 1:
            message = (
                f"Only a Tensor with one element can be formatted by {spec!r}, but this one has shape {self.shape}."
            )
            raise DtypeError(message)
        return format(value.item(), spec)
