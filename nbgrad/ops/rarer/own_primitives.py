"""Users' own primitives in MindSpore's form: classes that note the arguments of their constructors.

In: names and attributes. Out: objects. Called by users, mostly in code that was written for MindSpore.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from ..class_forms import Primitive


def prim_attr_register(fn: Callable[..., None]) -> Callable[..., None]:
    """A constructor whose arguments become attributes of the primitive, also those left out.

    Parameters
    ----------
    fn : callable
        The `__init__` of a subclass of `Primitive`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> class Scaled(nb.ops.PrimitiveWithInfer):
    ...     @nb.ops.prim_attr_register
    ...     def __init__(self, factor, shift=1.0):
    ...         pass
    >>> Scaled(2.0).attrs
    {'factor': 2.0, 'shift': 1.0}
    """
    signature = inspect.signature(fn)

    @wraps(fn)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        bound = signature.bind(self, *args, **kwargs)
        bound.apply_defaults()
        Primitive.__init__(self, type(self).__name__)
        for name, value in list(bound.arguments.items())[1:]:
            self.add_prim_attr(name, value)
            setattr(self, name, value)
        fn(self, *args, **kwargs)

    return init


class PrimitiveWithInfer(Primitive):
    """A primitive of a user's with methods for shapes and dtypes, which nbgrad does not need."""


class PrimitiveWithCheck(Primitive):
    """A primitive of a user's with methods that check arguments."""
