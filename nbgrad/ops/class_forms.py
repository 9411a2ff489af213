"""MindSpore's class forms: options go to the constructor, arrays to the call, as in `ops.ReduceSum(keep_dims=True)(x)`.

In: options. Out: objects to call with Tensors, which do what a function of `nbgrad.ops` does. Used by users, mostly in
code that was written for MindSpore. The classes are made from the table in class_table.py.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from ..communication import group_calls
from ..control.scan import fori_loop, scan
from ..control.while_loops import while_loop
from ..errors import ArgumentError, DtypeError, ShapeError
from ..functions.analysis import padding
from ..functions.arrays import creation as numpy_creation
from ..graph.builders import cast, reduce, reshape
from ..graph.ir import elementwise
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import axes_of, axis_of, inexact, keep, only, real_dtype, scalar
from ..record.tensor import Tensor
from . import filled_arrays as creation
from . import image_forms, linear_algebra
from . import reduction_functions as reductions
from . import shape_functions as shapes
from .class_table import PLAIN, WITH_OPTIONS
from .elementwise import add, mul, square, sub
from .rarer.further_class_table import REQUIRED, Form

# ----- Functions that only exist as class forms -----


def _turned(x: Any, turn: bool) -> Any:
    return shapes.swapaxes(x, -1, -2) if turn else x


def _matmul(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Tensor:
    """Product of two matrices, one or both transposed first."""
    return linear_algebra.mm(_turned(a, transpose_a), _turned(b, transpose_b))


def _batch_matmul(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> Tensor:
    """Products of matrices in two batches, which broadcast; their last two axes may be exchanged first."""
    return linear_algebra.matmul(_turned(a, transpose_a), _turned(b, transpose_b))


def _bias_add(x: Any, bias: Any, data_format: str) -> Tensor:
    """A vector added along the axis of channels: the second ("NCHW"), or the last ("NHWC")."""
    only("data_format", data_format, "NCHW", "NHWC", "NCDHW")
    node, row = as_node(x), as_node(bias)
    at = node.ndim - 1 if data_format == "NHWC" else 1
    if node.ndim < 2 or row.shape != (node.shape[at],):
        message = f"BiasAdd needs one number per channel (axis {at}) of shape {node.shape}, but got shape {row.shape}."
        raise ShapeError(message)
    return add(node, reshape(row, (row.size,) + (1,) * (node.ndim - at - 1)))


def _squared_difference(x: Any, y: Any) -> Tensor:
    """(x - y) ** 2, elementwise."""
    return square(sub(x, y))


def _half_square(x: Any) -> Tensor:
    """Half the sum of squares."""
    return mul(reductions.sum(square(x)), 0.5)


def _while_loop(cond_func: Any, loop_func: Any, init_val: Any) -> Any:
    """`nbgrad.while_loop`."""
    return while_loop(cond_func, loop_func, init_val)


def _fori_loop(lower: int, upper: int, loop_func: Any, init_val: Any, unroll: bool = True) -> Any:
    """`nbgrad.fori_loop`; `unroll` has no effect."""
    return fori_loop(lower, upper, loop_func, init_val)


def _loop_scan(loop_func: Any, init: Any, xs: Any, length: int | None = None, unroll: bool = True) -> Any:
    """`nbgrad.scan`; `unroll` has no effect. A list is gone through element by element, and its results are a list."""
    if isinstance(xs, list | tuple):
        results: list[Any] = []
        for element in xs[: len(xs) if length is None else length]:
            init, result = loop_func(init, element)
            results.append(result)
        return init, results
    return scan(loop_func, init, xs, length)


def _l2_normalize(x: Any, axis: Any, epsilon: float) -> Tensor:
    """x / sqrt(max(sum(x ** 2), epsilon)), where the sum is over axes."""
    node = inexact(as_node(x))
    axes = axes_of(axis, node.ndim)
    total = reshape(reduce("sum", elementwise("multiply", node, node), axes), keep(node.shape, axes))
    length = elementwise("sqrt", elementwise("maximum", total, scalar(epsilon, node.dtype)))
    return wrap(elementwise("divide", node, length))


def _dropout(x: Any, keep_prob: float, Seed0: int, Seed1: int) -> tuple[Tensor, Tensor]:
    """Each element kept with a probability and divided by it, else 0; and the mask of what was kept."""
    if not 0 < keep_prob <= 1:
        message = f"keep_prob must be above 0 and at most 1, but got {keep_prob!r}."
        raise ArgumentError(message)
    node = as_node(x)
    dropout = import_module(".random_tensors", __package__).dropout
    scaled = as_node(dropout(numpy_creation.ones(node.shape, node.dtype), p=1 - keep_prob, training=True))
    kept = elementwise("not_equal", scaled, 0)
    product = elementwise("select", kept, elementwise("multiply", node, scaled), scaled)
    return wrap(product), wrap(cast(kept, node.dtype))


def _equal_parts(x: Any, axis: int, output_num: int) -> tuple[Tensor, ...]:
    """A number of equal parts along an axis."""
    return shapes.split(x, axis=axis, output_num=output_num)


def _unstack(x: Any, axis: int, num: int | None) -> tuple[Tensor, ...]:
    """The arrays along an axis, which disappears."""
    parts = shapes.unstack(x, axis)
    if num is not None and num != len(parts):
        message = f"Unstack was told num={num}, but axis {axis} has extent {len(parts)}."
        raise ShapeError(message)
    return parts


def _positioned(x: Any, axis: int, keep_dims: bool, find: str) -> tuple[Tensor, Tensor]:
    """Positions and values, in this order, of extrema along an axis."""
    values, positions = getattr(reductions, find)(x, axis, keep_dims)
    return positions, values


def _typed(x: Any, axis: int, output_type: Any, find: str) -> Tensor:
    """Positions of extrema along an axis, in an integer dtype."""
    return wrap(cast(getattr(reductions, find)(x, axis)._node, real_dtype(output_type)))


def _scan(x: Any, axis: int, exclusive: bool, reverse: bool, running: str, start: int) -> Tensor:
    """Running results along an axis; `exclusive` of the element itself, `reverse` from the end."""
    values = shapes.flip(x, axis) if reverse else Tensor._of(as_node(x))
    result = getattr(reductions, running)(values, axis)
    n = values.shape[axis_of(axis, values.ndim)]
    if exclusive and n:
        first = shapes.narrow(result, axis, 0, 1)
        rest = shapes.narrow(result, axis, 0, n - 1)
        result = shapes.concat((creation.full_like(first, start), rest), axis)
    return shapes.flip(result, axis) if reverse else result


def _reduction(x: Any, axis: Any = (), *, keep_dims: bool, name: str, skip_mode: bool = False) -> Tensor:
    """`ops.{name}` over axes, or over all of them. With `skip_mode`, axes of () reduce nothing."""
    if skip_mode and isinstance(axis, list | tuple) and not axis:
        return wrap(as_node(x))
    return getattr(reductions, name)(x, axis=axis, keep_dims=keep_dims)


def _padded(x: Any, paddings: Any) -> Tensor:
    """Zeros before and after each axis, as many as its pair says."""
    return padding.pad(x, [tuple(pair) for pair in paddings])


def _grid(inputs: Any, indexing: str) -> tuple[Tensor, ...]:
    """Coordinates of a grid from its 1-d axes, given as one tuple."""
    return shapes.meshgrid(*inputs, indexing=indexing)


# ----- The classes -----

FORMS: dict[str, Form] = {
    name: Form(function, {}, {}) for name, _, function in (word.partition(":") for word in PLAIN.split())
}
FORMS |= WITH_OPTIONS
"""Class name -> what it does."""


def _own(name: str) -> Any:
    """The function of a class form: with an underscore in the table here, in group_calls.py or image_forms.py, with a
    colon in a module of `rarer`, else in `nbgrad.ops`."""
    if ":" in name:
        module, _, function = name.partition(":")
        return getattr(import_module(f".rarer.{module}", __package__), function)
    if not name.startswith("_"):
        return getattr(import_module(__package__ or ""), name)
    if name in globals():
        return globals()[name]
    of_group = getattr(group_calls, name[1:], None)
    return of_group if getattr(of_group, "__module__", "") == group_calls.__name__ else getattr(image_forms, name[1:])


class Primitive:
    """A function with its options, to be called with arrays; the classes of `FORMS` are made from it.

    Parameters
    ----------
    *args, **kwargs
        The options, in the order of `FORMS` or by name.

    Raises
    ------
    ArgumentError
        If an option does not exist, is missing or is given twice.
    DtypeError
        If an option is an array, or no bool where it says yes or no.

    Examples
    --------
    >>> import nbgrad as nb
    >>> product = nb.ops.MatMul(transpose_b=True)
    >>> product
    MatMul(transpose_a=False, transpose_b=True)
    >>> product(nb.Tensor([[1.0, 2.0]]), nb.Tensor([[3.0, 4.0]])).tolist()
    [[11.0]]
    """

    form: ClassVar[Form | None] = None
    """None for a primitive of a user's, whose only argument is the name of a function of `nbgrad.ops`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.attrs: dict[str, Any] = {}
        if self.form is None:
            self.name = str(args[0] if args else kwargs.get("name", type(self).__name__))
            self._options = {"name": self.name}
            self._keywords: dict[str, Any] = {}
            self._function = None
            return
        self.name = type(self).__name__
        self._options = self._bound(self.form, args, kwargs)
        self._keywords = {**self._options, **self.form.fixed}
        self._function = _own(self.form.function)

    def add_prim_attr(self, name: str, value: Any) -> Primitive:
        """Note an attribute; gives the primitive itself."""
        self.attrs[name] = value
        return self

    def init_prim_io_names(self, inputs: Any, outputs: Any) -> None:
        """Note the names of arguments and results."""
        self.add_prim_attr("input_names", inputs)
        self.add_prim_attr("output_names", outputs)

    def _bound(self, form: Form, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The options by name."""
        options = form.options
        names = list(options)
        given = dict(zip(names, args, strict=False))
        wrong = [name for name in kwargs if name in given or name not in options]
        given.update(kwargs)
        missing = [name for name in names if options[name] is REQUIRED and name not in given]
        if len(args) > len(names) or wrong or missing:
            message = (
                f"{self.name} takes the options ({', '.join(names)})"
                f"{f' and needs {missing}' if missing else ''}, but got {args!r:.60} and {kwargs!r:.60}. "
                "Arrays are given to the object, not to the class."
            )
            raise ArgumentError(message)
        for name, value in given.items():
            if isinstance(value, Tensor | np.ndarray) or (isinstance(options[name], bool) and type(value) is not bool):
                message = (
                    f"{self.name} got {type(value).__name__} as the option {name}. Options are Python values, those "
                    "for yes or no are bool. Arrays are given to the object, not to the class."
                )
                raise DtypeError(message)
        return {name: given.get(name, options[name]) for name in names}

    def __call__(self, *args: Any) -> Any:
        if self._function is None:
            try:
                self._function = _own(self.name)
            except (AttributeError, KeyError):
                message = f"nbgrad.ops has no function {self.name!r} for a primitive of this name. Define __call__."
                raise ArgumentError(message) from None
        return self._function(*args, **self._keywords)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self._options.items())})"

    def __reduce__(self) -> Any:
        return type(self), tuple(self._options.values())


def _words_of(function: str) -> str | None:
    """The docstring of a function that only class forms have; its path, if it lies in `rarer`, unimported."""
    return f"As `nbgrad.ops.rarer.{function.replace(':', '.')}`." if ":" in function else _own(function).__doc__


def _class(name: str, form: Form) -> type[Primitive]:
    shown = ", ".join(key if value is REQUIRED else f"{key}={value!r}" for key, value in form.options.items())
    plain = form.function[0] != "_" and ":" not in form.function
    own = f"As `nbgrad.ops.{form.function}`." if plain else _words_of(form.function)
    says = (own or "").format(**form.fixed)
    body = {"form": form, "__module__": __name__, "__doc__": f"{name}({shown}), to be called with arrays.\n\n{says}"}
    return type(name, (Primitive,), body)


globals().update({_name: _class(_name, _row) for _name, _row in FORMS.items()})
