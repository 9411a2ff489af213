"""MindSpore's class forms: options go to the constructor, arrays to the call, as in `ops.ReduceSum(keep_dims=True)(x)`.

In: options. Out: objects to call with Tensors, which do what a function of `nbgrad.ops` does. Used by users, mostly in
code that was written for MindSpore. There is one table, `FORMS`: class name -> function and options; the classes are
made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..errors import ArgumentError, DtypeError, ShapeError
from ..functions.analysis import padding
from ..functions.arrays import creation as numpy_creation
from ..graph.builders import cast, reduce, reshape
from ..graph.ir import elementwise
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import axes_of, axis_of, inexact, integer, keep, only, real_dtype, scalar
from ..record.tensor import Tensor
from . import filled_arrays as creation
from . import linear_algebra
from . import reduction_functions as reductions
from . import shape_functions as shapes
from .elementwise import add, mul, square, sub

REQUIRED = object()
"""The default of an option that has none."""


class Form(NamedTuple):
    """What a class form does: a function, by itself or by its name in `nbgrad.ops`, and the options with defaults."""

    function: str | Callable[..., Any]
    options: Mapping[str, Any]
    fixed: Mapping[str, Any]


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


def _identity(x: Any) -> Tensor:
    """The array itself."""
    return wrap(as_node(x))


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
    """So many parts of equal length along an axis."""
    node, count = as_node(x), integer(output_num, "output_num")
    n = node.shape[axis_of(axis, node.ndim)]
    if count <= 0 or n % count:
        message = f"An axis of extent {n} cannot be split into {count} equal parts."
        raise ShapeError(message)
    return shapes.split(Tensor._of(node), [n // count] * count, axis)


def _unstack(x: Any, axis: int, num: int | None) -> tuple[Tensor, ...]:
    """The arrays along an axis, which disappears."""
    parts = shapes.unstack(x, axis)
    if num is not None and num != len(parts):
        message = f"Unstack was told num={num}, but axis {axis} has extent {len(parts)}."
        raise ShapeError(message)
    return parts


def _positioned(find: Callable[..., tuple[Tensor, Tensor]]) -> Callable[..., tuple[Tensor, Tensor]]:
    def function(x: Any, axis: int, keep_dims: bool) -> tuple[Tensor, Tensor]:
        values, positions = find(x, axis, keep_dims)
        return positions, values

    function.__doc__ = "Positions and values, in this order, of extrema along an axis."
    return function


def _typed(find: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def function(x: Any, axis: int, output_type: Any) -> Tensor:
        return wrap(cast(find(x, axis)._node, real_dtype(output_type)))

    function.__doc__ = "Positions of extrema along an axis, in an integer dtype."
    return function


def _scan(running: Callable[..., Tensor], start: int) -> Callable[..., Tensor]:
    def function(x: Any, axis: int, exclusive: bool, reverse: bool) -> Tensor:
        values = shapes.flip(x, axis) if reverse else Tensor._of(as_node(x))
        result = running(values, axis)
        n = values.shape[axis_of(axis, values.ndim)]
        if exclusive and n:
            first = shapes.narrow(result, axis, 0, 1)
            rest = shapes.narrow(result, axis, 0, n - 1)
            result = shapes.concat((creation.full_like(first, start), rest), axis)
        return shapes.flip(result, axis) if reverse else result

    function.__doc__ = "Running results along an axis; `exclusive` of the element itself, `reverse` from the end."
    return function


def _reduction(name: str) -> Callable[..., Tensor]:
    def function(x: Any, axis: Any = (), *, keep_dims: bool, skip_mode: bool = False) -> Tensor:
        if skip_mode and isinstance(axis, list | tuple) and not axis:
            return wrap(as_node(x))
        return getattr(reductions, name)(x, axis=axis, keep_dims=keep_dims)

    function.__doc__ = f"As `ops.{name}` over axes, or over all of them. With `skip_mode`, axes of () reduce nothing."
    return function


def _padded(x: Any, paddings: Any) -> Tensor:
    """Zeros before and after each axis, as many as its pair says."""
    return padding.pad(x, [tuple(pair) for pair in paddings])


def _grid(inputs: Any, indexing: str) -> tuple[Tensor, ...]:
    """Coordinates of a grid from its 1-d axes, given as one tuple."""
    return shapes.meshgrid(*inputs, indexing=indexing)


# ----- The table -----


def _form(function: str | Callable[..., Any], fixed: Mapping[str, Any] | None = None, **options: Any) -> Form:
    return Form(function, options, fixed or {})


_PLAIN = """
    Add:add Sub:sub Mul:mul Div:div RealDiv:true_divide FloorDiv:floor_div FloorMod:floor_mod Mod:truncate_mod Pow:pow
    TruncateDiv:truncate_div TruncateMod:truncate_mod Exp:exp Expm1:expm1 Log:log Log1p:log1p Sqrt:sqrt Rsqrt:rsqrt
    Square:square Reciprocal:reciprocal Inv:reciprocal Abs:abs Neg:neg Sign:sign Floor:floor Ceil:ceil Round:round
    Trunc:trunc Sin:sin Cos:cos Tan:tan Asin:asin ACos:acos Atan:atan Atan2:atan2 Sinh:sinh Cosh:cosh Tanh:tanh
    Asinh:asinh Acosh:acosh Atanh:atanh Erf:erf Erfc:erfc Lgamma:lgamma Digamma:digamma Maximum:maximum
    Minimum:minimum Hypot:hypot Xlogy:xlogy Lerp:lerp Addcmul:addcmul Addcdiv:addcdiv AddN:addn Equal:equal
    NotEqual:not_equal Less:less LessEqual:less_equal Greater:greater GreaterEqual:greater_equal
    LogicalAnd:logical_and LogicalOr:logical_or LogicalXor:logical_xor LogicalNot:logical_not
    BitwiseAnd:bitwise_and BitwiseOr:bitwise_or BitwiseXor:bitwise_xor IsNan:isnan IsInf:isinf IsFinite:isfinite
    Select:where MaskedFill:masked_fill MaskedSelect:masked_select Cast:cast
    ReLU:relu ReLU6:relu6 SeLU:selu SiLU:silu Sigmoid:sigmoid LogSigmoid:logsigmoid HSwish:hardswish
    HSigmoid:hardsigmoid Mish:mish Softplus:softplus Softsign:softsign PReLU:prelu
    Reshape:reshape Transpose:transpose ExpandDims:expand_dims Tile:tile Shape:shape Rank:rank Size:size
    GatherD:gather_d GatherNd:gather_nd ScatterNd:scatter_nd TensorScatterUpdate:tensor_scatter_update
    TensorScatterAdd:tensor_scatter_add TensorScatterSub:tensor_scatter_sub Slice:slice Unique:unique
    Zeros:zeros Ones:ones ZerosLike:zeros_like OnesLike:ones_like Fill:fill Eye:eye LinSpace:linspace Trace:trace
    Assign:assign AssignAdd:assign_add AssignSub:assign_sub
    Complex:complex Real:real Imag:imag Conj:conj Angle:angle ComplexAbs:complex_abs Polar:polar
"""
"""Class forms without options, as Class:function."""

FORMS: dict[str, Form] = {
    **{name: _form(function) for name, _, function in (word.partition(":") for word in _PLAIN.split())},
    # ----- Products -----
    "MatMul": _form(_matmul, transpose_a=False, transpose_b=False),
    "BatchMatMul": _form(_batch_matmul, transpose_a=False, transpose_b=False),
    "BiasAdd": _form(_bias_add, data_format="NCHW"),
    "SquaredDifference": _form(_squared_difference),
    "L2Loss": _form(_half_square),
    "L2Normalize": _form(_l2_normalize, axis=0, epsilon=1e-4),
    "Identity": _form(_identity),
    # ----- Activations -----
    "Softmax": _form("softmax", axis=-1),
    "LogSoftmax": _form("log_softmax", axis=-1),
    "GeLU": _form("gelu", {"approximate": "tanh"}),
    "Elu": _form("elu", alpha=1.0),
    "HShrink": _form("hardshrink", lambd=0.5),
    "SoftShrink": _form("softshrink", lambd=0.5),
    "Dropout": _form(_dropout, keep_prob=0.5, Seed0=0, Seed1=0),
    # ----- Reductions and scans -----
    "ReduceSum": _form(_reduction("reduce_sum"), keep_dims=False, skip_mode=False),
    "ReduceMean": _form(_reduction("reduce_mean"), keep_dims=False),
    "ReduceMax": _form(_reduction("reduce_max"), keep_dims=False),
    "ReduceMin": _form(_reduction("reduce_min"), keep_dims=False),
    "ReduceProd": _form(_reduction("reduce_prod"), keep_dims=False),
    "ReduceAll": _form(_reduction("reduce_all"), keep_dims=False),
    "ReduceAny": _form(_reduction("reduce_any"), keep_dims=False),
    "Argmax": _form(_typed(reductions.argmax), axis=-1, output_type="int32"),
    "Argmin": _form(_typed(reductions.argmin), axis=-1, output_type="int32"),
    "ArgMaxWithValue": _form(_positioned(reductions.max), axis=0, keep_dims=False),
    "ArgMinWithValue": _form(_positioned(reductions.min), axis=0, keep_dims=False),
    "CumSum": _form(_scan(reductions.cumsum, 0), exclusive=False, reverse=False),
    "CumProd": _form(_scan(reductions.cumprod, 1), exclusive=False, reverse=False),
    # ----- Shapes -----
    "Flatten": _form("flatten"),
    "Squeeze": _form("squeeze", axis=()),
    "BroadcastTo": _form("broadcast_to", shape=REQUIRED),
    "Concat": _form("concat", axis=0),
    "Stack": _form("stack", axis=0),
    "Unstack": _form(_unstack, axis=0, num=None),
    "Split": _form(_equal_parts, axis=0, output_num=1),
    "ReverseV2": _form("flip", axis=REQUIRED),
    "Meshgrid": _form(_grid, indexing="xy"),
    "Tril": _form("tril", diagonal=0),
    "Triu": _form("triu", diagonal=0),
    "Pad": _form(_padded, paddings=REQUIRED),
    # ----- Positions -----
    "Gather": _form("gather", batch_dims=0),
    "OneHot": _form("one_hot", axis=-1),
    "StridedSlice": _form(
        "strided_slice", begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0, shrink_axis_mask=0
    ),
    "Sort": _form("sort", axis=-1, descending=False),
    "TopK": _form("topk", sorted=True),
    "Range": _form("range", maxlen=1000000),
}


# ----- The classes -----


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

    form: ClassVar[Form]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.name = type(self).__name__
        self._options = self._bound(args, kwargs)
        self._keywords = {**self._options, **self.form.fixed}
        function = self.form.function
        self._function = getattr(import_module(__package__ or ""), function) if isinstance(function, str) else function

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The options by name."""
        options = self.form.options
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
        return self._function(*args, **self._keywords)

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(f'{name}={value!r}' for name, value in self._options.items())})"

    def __reduce__(self) -> Any:
        return type(self), tuple(self._options.values())


def _class(name: str, form: Form) -> type[Primitive]:
    shown = ", ".join(key if value is REQUIRED else f"{key}={value!r}" for key, value in form.options.items())
    says = f"As `nbgrad.ops.{form.function}`." if isinstance(form.function, str) else form.function.__doc__
    body = {"form": form, "__module__": __name__, "__doc__": f"{name}({shown}), to be called with arrays.\n\n{says}"}
    return type(name, (Primitive,), body)


globals().update({_name: _class(_name, _row) for _name, _row in FORMS.items()})
