"""Attributes that are computed at their first use.

In: a method. Out: an attribute. Used like `functools.cached_property`, which up to Python 3.11 has one lock for all
objects of a class: a process that forks while another thread computes such an attribute gets the lock closed for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

T = TypeVar("T")


class computed_once(Generic[T]):  # noqa: N801 - used like a function
    """An attribute that a method computes, once for each object; threads at the same time may each compute it.

    Examples
    --------
    >>> class Square:
    ...     def __init__(self, side):
    ...         self.side = side
    ...     @computed_once
    ...     def area(self):
    ...         print("computing")
    ...         return self.side**2
    >>> square = Square(3)
    >>> square.area, square.area
    computing
    (9, 9)
    """

    def __init__(self, method: Callable[[Any], T]) -> None:
        self.method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: Any = None) -> computed_once[T]: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> T: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        # It has no __set__, so Python finds the value in the object from now on.
        return instance.__dict__.setdefault(self.method.__name__, self.method(instance))
