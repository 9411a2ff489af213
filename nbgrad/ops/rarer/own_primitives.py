"""Users' own primitives in MindSpore's form: classes that note the arguments of their constructors, Python functions.

In: names and attributes. Out: objects. Called by users, mostly in code that was written for MindSpore.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from ...errors import DtypeError
from ...extend.plain_functions import callback
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import only, real_dtype
from ...transforms.custom import custom_vjp
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


class Custom(Primitive):
    """A Python function of ndarrays as an operation, also in compiled functions; `nb.callback` is the same with rules.

    Parameters
    ----------
    func : callable
        Gets ndarrays, and returns one or a tuple of them.
    out_shape, out_dtype : callable, tuple, dtype, or list of them, optional
        Functions of the shapes and of the dtypes of the arguments, or their values; for several results each gives a
        tuple. Without them, `func` is called to find out.
    func_type : {"pyfunc"}
        Kernels in files and in languages of their own are refused.
    bprop : callable, optional
        The derivative: `bprop(*inputs, out, dout)` of Tensors gives the gradient by each input.
    reg_info : {None}

    Raises
    ------
    DtypeError, ArgumentError
        If `func` is no function, or of another type.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def sorted_rows(x):
    ...     return np.sort(x)
    >>> form = nb.ops.Custom(sorted_rows, lambda x: x, lambda x: x, func_type="pyfunc")
    >>> form(nb.Tensor([3.0, 1.0, 2.0])).tolist()
    [1.0, 2.0, 3.0]
    >>> tripled = nb.ops.Custom(lambda x: 3.0 * x, bprop=lambda x, out, dout: (3.0 * dout,))
    >>> nb.grad(lambda x: tripled(x).sum())(nb.Tensor([1.0, 2.0])).tolist()
    [3.0, 3.0]
    """

    def __init__(
        self,
        func: Callable[..., Any],
        out_shape: Any = None,
        out_dtype: Any = None,
        func_type: str = "pyfunc",
        bprop: Callable[..., Any] | None = None,
        reg_info: Any = None,
    ) -> None:
        only("func_type", func_type, "pyfunc")
        only("reg_info", reg_info, None)
        if not callable(func) or (out_shape is None) != (out_dtype is None):
            message = "Custom needs a function, and out_shape together with out_dtype, or neither."
            raise DtypeError(message)
        super().__init__(getattr(func, "__name__", "Custom"))
        self._described: tuple[Any, Any] | None = None if out_shape is None else (out_shape, out_dtype)
        call: Any = callback(self._checked(func), shape=None if out_shape is None else self._results, name=self.name)
        self._operation = call if bprop is None else custom_vjp(call, bprop=bprop)

    def _results(self, *inputs: Any) -> Any:
        """The shapes and dtypes of results."""
        shape, dtype = self._described or ((), np.float32)
        shapes: Any = shape(*[tuple(one.shape) for one in inputs]) if callable(shape) else shape
        dtypes: Any = (
            dtype(*[one.dtype for one in inputs]) if callable(dtype) and not isinstance(dtype, type) else dtype
        )
        if isinstance(dtypes, list | tuple):
            pairs = zip(shapes, dtypes, strict=True)
            return [(tuple(one), np.dtype(real_dtype(other))) for one, other in pairs]
        return tuple(shapes), np.dtype(real_dtype(dtypes))

    def _checked(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with results of the dtypes that were said."""
        if self._described is None:
            return func

        def called(*inputs: Any) -> Any:
            said = self._results(*[np.asarray(one) for one in inputs])
            found = func(*inputs)
            if isinstance(said, list):
                return tuple([np.asarray(one, dtype) for one, (_, dtype) in zip(found, said, strict=True)])
            return np.asarray(found, said[1])

        return called

    def __call__(self, *args: Any) -> Any:
        return self._operation(*[wrap(as_node(one)) for one in args])
