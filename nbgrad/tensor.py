"""Tensor: the array that users hold. It is a lazy value, one graph node, with NumPy's operators, methods and protocols.

In: numbers, lists, ndarrays, or a node (`Tensor._of`). Out: nodes that record what is done with the Tensor; values when
Python needs them. Used by everybody. This file computes nothing: operators and methods call the functions in
`nbgrad.numpy`, which are looked up late because they are made of Tensors.

Writing into a Tensor (`x[i] = v`, `out=x`) replaces its node, so that every holder of the same Tensor sees it and the
gradient follows; basic slices are views, and `asnumpy()` shares the data (aliasing.py). `x += y` binds x anew for
Tensors that users made, as in MindSpore; for those that stand for ndarrays it writes into them, as in NumPy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from . import python_numbers
from .boundary import way_out
from .devices import Movable, moved
from .dtype import dtype_of
from .errors import ArgumentError, DtypeError, ShapeError, TracedValueError
from .exports import Exports, aliasing_module
from .graph.ir import HOST, PRIMITIVES, Node, constant, make, placed
from .graph.trace import CELLS, current_trace, is_being_recorded, note_refusal
from .in_place import InPlace
from .interop import computes_itself
from .runtime.evaluate import concrete
from .runtime.memory_order import kept
from .tensor_methods import add_methods
from .tensor_operators import NOT_GIVEN, Late, binary, reflected, unary, updating

FLOAT32 = np.dtype(np.float32)
_CONSTANT = PRIMITIVES["constant"]


@cache
def _numpy(name: str) -> Any:
    """One module of `nbgrad.numpy`, imported when it is first needed."""
    return import_module(f".numpy.{name}", __package__)


# ----- What operators and methods are made of -----


_SPELLINGS = {"dim": "axis", "keepdim": "keepdims", "keep_dims": "keepdims"}
"""MindSpore's and PyTorch's names of NumPy's parameters."""


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    """The method that calls what the table has for a NumPy function."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Any:
        if kwargs:
            kwargs = {_SPELLINGS.get(name, name): value for name, value in kwargs.items()}
        return (Late.implementations.get(function) or _numpy("numpy_table").find(function))(self, *args, **kwargs)

    method.__name__ = method.__qualname__ = function.__name__
    method.__doc__ = f"As `numpy.{function.__name__}` of this Tensor."
    return method


class Tensor(Exports, InPlace, Movable):
    """An array that records what is done with it.

    Parameters
    ----------
    input_data : Tensor, ndarray, number, or nested lists of them
        Python floats become float32 and Python integers int64; NumPy arrays and scalars keep their dtype. The data is
        copied.
    dtype : dtype, optional
        Anything that `np.dtype` accepts.
    shape, init : shape, and Initializer, number or name of an initializer
        MindSpore's way to make a Tensor of initial values without `input_data`.
    device : str or Device, optional
        "cpu", "cuda", or "cuda:1" and so on; by default where the data is.

    Examples
    --------
    >>> x = Tensor([1.5, -2.0])
    >>> x * 2
    Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+00, -4.00000000e+00])
    """

    __slots__ = ("__weakref__", "_base", "_node", "_views")
    _node: Node
    _base: tuple[Tensor, Any]
    """What it is a view of, and by which key; only set for views."""
    _views: dict[int, Any]
    """Weak references to its views; only set if there were any."""

    def __init__(
        self, input_data: Any = None, dtype: Any = None, shape: Any = None, init: Any = None, *, device: Any = None
    ) -> None:
        if input_data is None:
            input_data = _initial(dtype, shape, init)
        node = _node_of_data(input_data)
        if dtype is not None:
            node = _numpy("operands").promote([node], _numpy("operands").real_dtype(dtype))[0]
        if not node.tensor:
            if node.name != "constant" or isinstance(input_data, Tensor):
                node = make("alias", (node,))
            node.tensor = True
            if node.place is None and node.name == "constant" and node.size > 1:
                node.place = HOST
        self._node = node if device is None else moved(node, device)

    @staticmethod
    def _of(node: Node) -> Tensor:
        """The Tensor of a node."""
        tensor = object.__new__(Tensor)
        tensor._node = node
        return tensor

    @staticmethod
    def _holding(value: Any) -> Tensor:
        """The Tensor of a computed result, an ndarray or a `DeviceArray`."""
        node = Node(_CONSTANT, (), (), value.shape, value.dtype, value)
        node.tensor = True
        if value.__class__ is not np.ndarray and not isinstance(value, np.generic | np.ndarray):
            node.place = value.device
        elif value.size > 1:
            node.place = HOST
        tensor = object.__new__(Tensor)
        tensor._node = node
        return tensor

    # ----- What it is -----

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the axes."""
        return self._node.shape

    @shape.setter
    def shape(self, value: Any) -> None:
        self._reshape_in_place(value)

    @property
    def dtype(self) -> Any:
        """The type of the elements, which equals NumPy's and prints as MindSpore's."""
        return dtype_of(self._node.dtype)

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self._node.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return self._node.size

    @property
    def itemsize(self) -> int:
        """The bytes of one element."""
        return self._node.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The bytes of all elements."""
        return self.size * self.itemsize

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes from one element to the next along each axis, as NumPy's array would have them."""
        return aliasing_module().place_of(self).strides

    @property
    def T(self) -> Tensor:  # noqa: N802
        """The axes in reversed order."""
        return self.transpose()

    @property
    def mT(self) -> Tensor:  # noqa: N802
        """The last two axes swapped."""
        if self.ndim < 2:
            message = f"mT needs at least two axes, but this Tensor has shape {self.shape}."
            raise ShapeError(message)
        return self.swapaxes(-1, -2)

    @property
    def real(self) -> Tensor:
        """The real part; a Tensor that is not complex as it is."""
        return _numpy("complex_parts").real(self)

    @real.setter
    def real(self, value: Any) -> None:
        _numpy("complex_parts").set_part(self, value, 0)

    @property
    def imag(self) -> Tensor:
        """The imaginary part; zeros for a Tensor that is not complex."""
        return _numpy("complex_parts").imag(self)

    @imag.setter
    def imag(self, value: Any) -> None:
        _numpy("complex_parts").set_part(self, value, 1)

    # ----- Its value -----

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

    def asnumpy(self) -> np.ndarray:
        """The value as an ndarray that shares the Tensor's data and does not carry gradients.

        While a function is recorded, for a Parameter, for a slice, and for what lives on a device, it is a copy.
        """
        return aliasing_module().share(self)

    @staticmethod
    def from_numpy(array: np.ndarray) -> Tensor:
        """A Tensor that shares the data of an ndarray."""
        if not isinstance(array, np.ndarray):
            message = f"from_numpy takes an ndarray, but got {type(array).__name__}."
            raise DtypeError(message)
        _node_of_data(array[:0] if array.ndim else array)  # refuses what a Tensor cannot hold
        return aliasing_module().from_numpy(array)

    def numpy(self) -> np.ndarray:
        """As `asnumpy`."""
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

    # ----- NumPy's protocols -----

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "__call__" and not kwargs:
            count = len(inputs)
            found = None
            if count == 1:
                found = Late.quick_unary(ufunc, inputs[0])
            elif count == 2:
                found = Late.quick_binary(ufunc, inputs[0], inputs[1])
            if found is not None:
                return found
        if computes_itself(*inputs):
            return NotImplemented
        return _numpy("ufunc_protocol").array_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if len(types) == 1 and func in Late.implementations:
            for value in kwargs.values():
                if value is NOT_GIVEN:
                    break
            else:
                return Late.implementations[func](*args, **kwargs)
        return _numpy("numpy_table").array_function(func, types, args, kwargs)

    def __array_namespace__(self, api_version: str | None = None) -> Any:
        return import_module(".numpy.standard", __package__).namespace(api_version)

    # ----- Python's protocols -----

    def __len__(self) -> int:
        if not self.shape:
            message = "A 0-d Tensor has no len()."
            raise DtypeError(message)
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            message = "A 0-d Tensor cannot be iterated over."
            raise DtypeError(message)
        return (self[position] for position in range(self.shape[0]))

    def __contains__(self, value: Any) -> bool:
        return bool((self == value).any())

    def __getitem__(self, key: Any) -> Tensor:
        aliasing = aliasing_module()
        if aliasing.is_basic(key):
            return aliasing.view(self, key)
        return _numpy("lifting").wrap(_numpy("indexing").getitem(self._node, key))

    def __setitem__(self, key: Any, value: Any) -> None:
        if not aliasing_module().is_own_view(self, key, value):
            self._replace(_numpy("indexing").setitem(self._node, key, _numpy("lifting").as_node(value)))

    def _replace(self, node: Node) -> None:
        """Write to the Tensor: it becomes another node of the same shape and dtype."""
        self._take(_numpy("lifting").wrap(node)._node)
        if hasattr(self, "_base") or hasattr(self, "_views"):
            aliasing_module().written(self)

    def _take(self, node: Node) -> None:
        """Become another node, and tell nobody but the recording."""
        before = _slot(self)
        place = before.place
        if place is not None and node.place is not place and (node.place is not None or place is not HOST):
            node = placed(node, place)  # what is written goes where the Tensor is
        moved = node.primitive.kind == "movement" and not hasattr(self, "_base")
        if moved or node.layout is not None or before.layout is not None:
            node = kept(node, before)
        trace = current_trace()
        if trace is not None:
            trace.note_write(self, self._node)
        self._node = node
        if trace is None:
            CELLS.token = object()  # a Cell may hold this Tensor

    __hash__ = object.__hash__

    def __copy__(self) -> Tensor:
        return Tensor._of(self._node)

    def __deepcopy__(self, memo: Any) -> Tensor:
        return Tensor._of(self._node)

    def __reduce__(self) -> Any:
        where = () if self._node.device is None else (repr(self._node.device),)
        return _from_array, (self.asnumpy(), *where)

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
            return f"{head} {value.item():g})" if self.dtype.kind == "f" else f"{head} {value})"
        if value.size == 0:
            return head + " )"
        digits = 4 if self.dtype.itemsize == 2 else 8
        formats: Any = {"float_kind": lambda number: f"{number:{digits + 7}.{digits}e}"}
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

    # ----- Operators -----

    __add__, __radd__, __iadd__ = binary(np.add), reflected(np.add), updating(np.add)
    __sub__, __rsub__, __isub__ = binary(np.subtract), reflected(np.subtract), updating(np.subtract)
    __mul__, __rmul__, __imul__ = binary(np.multiply), reflected(np.multiply), updating(np.multiply)
    __truediv__, __rtruediv__, __itruediv__ = binary(np.divide), reflected(np.divide), updating(np.divide)
    __floordiv__, __rfloordiv__ = binary(np.floor_divide), reflected(np.floor_divide)
    __ifloordiv__ = updating(np.floor_divide)
    __mod__, __rmod__, __imod__ = binary(np.remainder), reflected(np.remainder), updating(np.remainder)
    __divmod__, __rdivmod__ = binary(np.divmod), reflected(np.divmod)
    __rpow__, __ipow__ = reflected(np.power), updating(np.power)
    __matmul__, __rmatmul__, __imatmul__ = binary(np.matmul), reflected(np.matmul), updating(np.matmul)
    __and__, __rand__, __iand__ = binary(np.bitwise_and), reflected(np.bitwise_and), updating(np.bitwise_and)
    __or__, __ror__, __ior__ = binary(np.bitwise_or), reflected(np.bitwise_or), updating(np.bitwise_or)
    __xor__, __rxor__, __ixor__ = binary(np.bitwise_xor), reflected(np.bitwise_xor), updating(np.bitwise_xor)
    __lshift__, __rlshift__, __ilshift__ = binary(np.left_shift), reflected(np.left_shift), updating(np.left_shift)
    __rshift__, __rrshift__ = binary(np.right_shift), reflected(np.right_shift)
    __irshift__ = updating(np.right_shift)
    __lt__, __le__ = binary(np.less), binary(np.less_equal)
    __gt__, __ge__ = binary(np.greater), binary(np.greater_equal)
    __neg__, __pos__, __invert__, __abs__ = unary(np.negative), unary(np.positive), unary(np.invert), unary(np.abs)

    def __eq__(self, other: object) -> Any:
        return _numpy("ufuncs").operate(np.equal, self, other)

    def __ne__(self, other: object) -> Any:
        return _numpy("ufuncs").operate(np.not_equal, self, other)

    def __pow__(self, exponent: Any, modulus: Any = None) -> Any:
        if modulus is not None:
            message = "pow() of a Tensor takes no modulus."
            raise DtypeError(message)
        return _numpy("ufuncs").operate(np.power, self, exponent)

    def __round__(self, ndigits: int | None = None) -> Any:
        return int(self.round()) if ndigits is None else self.round(ndigits)

    # ----- Methods: the functions of `nbgrad.numpy` under ndarray's names -----

    sum, prod, mean, var, std = (_method(f) for f in (np.sum, np.prod, np.mean, np.var, np.std))
    max, min, argmax, argmin = (_method(f) for f in (np.max, np.min, np.argmax, np.argmin))
    any, all, ptp, trace, dot = (_method(f) for f in (np.any, np.all, np.ptp, np.trace, np.dot))
    cumsum, cumprod, clip, round = (_method(f) for f in (np.cumsum, np.cumprod, np.clip, np.round))
    ravel, swapaxes, squeeze, diagonal = (_method(f) for f in (np.ravel, np.swapaxes, np.squeeze, np.diagonal))
    argsort, searchsorted, nonzero = (_method(f) for f in (np.argsort, np.searchsorted, np.nonzero))
    take, put, repeat, choose = (_method(f) for f in (np.take, np.put, np.repeat, np.choose))
    argpartition = _method(np.argpartition)
    conj = conjugate = unary(np.conjugate)
    abs = unary(np.abs)

    def reshape(self, *shape: Any, order: str = "C") -> Tensor:
        """The same elements in another shape: `reshape(2, 3)` or `reshape((2, 3))`."""
        return _numpy("numpy_table").find(np.reshape)(self, shape[0] if len(shape) == 1 else shape, order=order)

    def transpose(self, *axes: Any) -> Tensor:
        """Axes permuted (reversed by default): `transpose(1, 0)` or `transpose((1, 0))`."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        return _numpy("numpy_table").find(np.transpose)(self, order)

    permute = transpose

    def flatten(self, order: str = "C") -> Tensor:
        """All elements along one axis, as a copy."""
        return self.ravel(order).copy()

    def astype(self, dtype: Any, copy: bool = True, *, order: str = "K") -> Tensor:
        """The elements in another dtype; gradients flow between float dtypes."""
        return _numpy("shaping").astype(self, dtype, copy=copy, order=order)

    def copy(self, order: str = "C") -> Tensor:
        """Another Tensor with the same value, in an order of memory; writing to one does not change the other."""
        return _numpy("shaping").copy(self, order)

    def compress(self, condition: Any, axis: int | None = None, out: Any = None) -> Tensor:
        """The slices along an axis (the elements, for None) where a 1-d condition is true."""
        return _numpy("numpy_table").find(np.compress)(condition, self, axis, out)

    def float(self) -> Tensor:
        """The elements as float32."""
        return self.astype(np.float32)

    def half(self) -> Tensor:
        """The elements as float16."""
        return self.astype(np.float16)

    def double(self) -> Tensor:
        """The elements as float64."""
        return self.astype(np.float64)

    def int(self) -> Tensor:
        """The elements as int32."""
        return self.astype(np.int32)

    def long(self) -> Tensor:
        """The elements as int64."""
        return self.astype(np.int64)

    def bool(self) -> Tensor:
        """Which elements are not zero."""
        return self.astype(np.bool_)

    def view(self, *shape: Any, **of: Any) -> Tensor:
        """As `reshape`; without arguments, or with its own dtype, this Tensor's memory in another Tensor."""
        return self.reshape(*shape) if _numpy("shaping").is_shape(self, shape, of) else self[...]

    def contiguous(self) -> Tensor:
        """The Tensor itself, whose values are in C order."""
        return self

    def init_data(self, *_: Any, **__: Any) -> Tensor:
        """The Tensor itself: its data is there from the start."""
        return self


_slot = Tensor.__dict__["_node"].__get__
"""The node of a Tensor, without looking at data that it shares."""
add_methods(Tensor)


def tensor(input_data: Any, dtype: Any = None, *, device: Any = None) -> Tensor:
    """A Tensor of data, as `Tensor(input_data, dtype, device=device)`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.tensor([1, 2], nb.float32))
    [1. 2.]
    """
    return Tensor(input_data, dtype, device=device)


from_numpy = Tensor.from_numpy


def _from_array(value: np.ndarray, device: str | None = None) -> Tensor:
    """What pickle calls."""
    return Tensor(value, device=device)


def _initial(dtype: Any, shape: Any, init: Any) -> Tensor:
    """The data of a Tensor that is given by an initializer."""
    if init is None or shape is None:
        message = "A Tensor needs input_data: a Tensor, ndarray, number or list (or shape, dtype and init)."
        raise DtypeError(message)
    initializer = import_module(".common.initializer", __package__).initializer
    return initializer(init, shape, np.float32 if dtype is None else dtype)


def _node_of_data(data: Any) -> Node:
    """The node of what a user gave to `Tensor`, with MindSpore's dtypes for Python numbers."""
    if isinstance(data, Tensor):
        return data._node
    lifting = _numpy("lifting")
    if not isinstance(data, bool | int | float | list | tuple) or isinstance(data, np.generic):
        return lifting.as_node(data)
    if isinstance(data, list | tuple) and lifting.any_tensor(data):
        return lifting.as_node(data)
    try:
        array = np.array(data)
    except ValueError:
        message = "Nested lists must have rows of equal length to become a Tensor."
        raise ShapeError(message) from None
    if not _numpy("lifting").supported(array.dtype):
        message = f"A Tensor holds booleans, integers, floats or complex numbers, not data of dtype {array.dtype}."
        raise DtypeError(message)
    if array.dtype.char in "dD" and not _holds_numpy(data):
        array = array.astype(FLOAT32 if array.dtype.kind == "f" else np.complex64)
    return constant(array)


def _holds_numpy(data: Any) -> bool:
    """Whether nested lists hold a NumPy array or scalar anywhere."""
    stack = [data]
    while stack:
        value = stack.pop()
        if isinstance(value, np.ndarray | np.generic):
            return True
        if isinstance(value, list | tuple):
            stack.extend(value)
    return False
