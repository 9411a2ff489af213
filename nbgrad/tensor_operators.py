"""Tensor's operators, made of NumPy's ufuncs.

In: a ufunc. Out: the method that applies it to a Tensor. Called by tensor.py, once for each operator. The functions of
`nbgrad.numpy` are looked up at the first use, because they are made of Tensors themselves, and called directly then:
every operation of a recorded function passes here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

NOT_GIVEN = getattr(np, "_NoValue", object())
"""What NumPy's functions pass on for arguments that they were not given."""


@cache
def _ufuncs() -> Any:
    return import_module(".numpy.ufuncs", __package__)


class Late:
    """What operators call most, in `nbgrad.numpy.ufuncs`: looked up at the first call, and called directly then.

    `implementations` are NumPy's functions and what stands for them here, once numpy_table.py is imported.
    """

    implementations: ClassVar[dict[Any, Callable[..., Any]]] = {}

    @staticmethod
    def operate(ufunc: np.ufunc, left: Any, right: Any) -> Any:
        """As `ufuncs.operate`."""
        Late.operate = _ufuncs().operate
        return Late.operate(ufunc, left, right)

    @staticmethod
    def quick_unary(ufunc: np.ufunc, value: Any) -> Any:
        """As `ufuncs.quick_unary`."""
        Late.quick_unary = _ufuncs().quick_unary
        return Late.quick_unary(ufunc, value)

    @staticmethod
    def quick_binary(ufunc: np.ufunc, left: Any, right: Any) -> Any:
        """As `ufuncs.quick_binary`."""
        Late.quick_binary = _ufuncs().quick_binary
        return Late.quick_binary(ufunc, left, right)


def binary(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """The operator `self ufunc other`."""
    return lambda self, other: Late.operate(ufunc, self, other)


def reflected(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """The operator `other ufunc self`."""
    return lambda self, other: Late.operate(ufunc, other, self)


def updating(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    """The operator that changes `self`, like `+=`."""
    return lambda self, other: _ufuncs().operate_in_place(ufunc, self, other)


def unary(ufunc: np.ufunc) -> Callable[[Any], Any]:
    """The operator `ufunc self`."""

    def operator(self: Any) -> Any:
        found = Late.quick_unary(ufunc, self)
        return _ufuncs().call(ufunc, self) if found is None else found

    return operator
