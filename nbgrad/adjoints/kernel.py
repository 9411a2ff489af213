"""Users' Numba kernels as functions with derivatives: `nb.kernel`.

In: a kernel that Numba compiles, unchanged. Out: a function of the same arguments that gives what the kernel writes
and returns, with derivatives of first and second order. Called by users. A kernel is read when it is called with
arrays of new dtypes or ranks: specializations.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..extend.custom_kernels import Described, results_by
from ..extend.scalar_code import python_function
from ..graph.custom_calls import Layout
from ..graph.ir import literal_value
from ..record.as_node import as_node
from ..record.foreign_arrays import a_full_name
from ..record.tensor import Tensor
from ..transforms.lent_arrays import kind_of, lends
from .kernel_rules import DerivedPrimitive
from .reading.array_values import Object
from .reading.packed_arguments import (
    is_packed,
    is_records,
    joined,
    leaves_of,
    parts_of,
    records_example,
    taken_apart,
)
from .reading.scalar_form import name_of
from .shared_arguments import refuse_shared
from .specializations import Specialization
from .threads.launch_sizes import launch_for, with_configuration
from .threads.launched_kernels import LaunchedKernel, ThreadText
from .threads.thread_names import is_cuda_function
from .ufunc_kernels import UfuncKernel

_CHECKS = ("first", "always", "never")
_DTYPES = [np.dtype(one) for one in ("float32", "float64", "complex64", "complex128")]


class KernelFunction:
    """A Numba kernel with derivatives. Made by `kernel`.

    Attributes
    ----------
    vjp : object
        `vjp.source` is the text of the reverse kernel for the arguments of the last call.
    """

    def __init__(
        self,
        function: Any,
        inout: tuple[str, ...],
        constant: tuple[str, ...],
        shape: Callable[..., Any] | None,
        check: str,
        launch: Any = None,
    ) -> None:
        self.function = function
        self.launch = launch
        self.inout, self.constant, self.shape, self.check = inout, constant, shape, check
        python = python_function(function)
        assert python is not None
        self.signature = inspect.signature(python)
        self.__name__ = name_of(function)
        self.__doc__ = python.__doc__
        self._known: dict[Any, DerivedPrimitive] = {}
        self._last: Specialization | None = None
        for name in (*inout, *constant):
            if name not in self.signature.parameters:
                message = (
                    f"{self.__name__}() has no argument `{name}`; it takes {', '.join(self.signature.parameters)}."
                )
                raise ArgumentError(message)

    def __repr__(self) -> str:
        return f"<kernel {self.__name__}>"

    @lends
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the kernel with its own arguments.

        Returns
        -------
        array, number, or tuple of these
            The arrays that the kernel writes to, in the order of its arguments, and then the values that it returns.
            The arrays of the caller stay as they are. ndarrays if all arguments are ndarrays and numbers, otherwise
            Tensors.
        """
        given = self._bound(args, kwargs)
        left_out = self._left_out(given)
        primitive, inputs = self._primitive(given, left_out)
        if isinstance(primitive.spec, LaunchedKernel):
            described = {name: _described(one) for name, one in given.items()}
            described.update({name: Described(shape, dtype) for name, (shape, dtype) in left_out.items()})
            sizes = launch_for(self.launch, self.__name__, [described[name] for name in self.signature.parameters])
            primitive = primitive.spec.with_launch(sizes).primitive
        spec = self._last = primitive.spec
        if spec.form.written:
            leaves = [leaf for name, value in given.items() for leaf in leaves_of(name, value)]
            refuse_shared(self.__name__, leaves, spec.form.written)
        found = primitive.call_by(self._shape_rule(spec, inputs, left_out), inputs, {})
        return self._returned(spec, found)

    def _bound(self, args: Sequence[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The arguments by name; those that `shape` stands for may be left out."""
        try:
            bound = self.signature.bind_partial(*args, **kwargs)
        except TypeError as error:
            message = f"{self.__name__}() was called with arguments that it does not take: {error}."
            raise ArgumentError(message) from None
        found: dict[str, Any] = {}
        for name, parameter in self.signature.parameters.items():
            if name in bound.arguments:
                found[name] = bound.arguments[name]
            elif parameter.default is not inspect.Parameter.empty:
                found[name] = parameter.default
            elif self.shape is None:
                message = (
                    f"{self.__name__}() was called without `{name}`. Pass all arguments of the kernel, or give "
                    "nb.kernel(..., shape=) a rule for the arrays that it writes to."
                )
                raise ArgumentError(message)
        return found

    def _primitive(self, given: dict[str, Any], left_out: dict[str, Layout]) -> tuple[DerivedPrimitive, list[Any]]:
        """The primitive for some arguments, and those of them that are arrays and numbers."""
        key: list[Any] = []
        inputs: list[Any] = []
        for argument, packed in given.items():
            if is_records(packed):
                example = records_example(argument, packed)
                key.append((argument, str(example.dtype), example.ndim))
                self._refuse_records_of_devices(argument, example)
            elif is_packed(packed):
                key.append((argument, type(packed), len(packed)))
            for name, value in leaves_of(argument, packed):
                if _is_static(value):
                    key.append((name, type(value), value if _hashable(value) else repr(value)))
                    continue
                array = self._checked(name, value)
                inputs.append(taken_apart(value) if array.dtype.kind == "c" else value)
                key.append((name, array.dtype.str, array.ndim))
        key += [(name, dtype.str, len(shape), "left out") for name, (shape, dtype) in left_out.items()]
        found = self._known.get(tuple(key))
        if found is None:
            examples = {name: _example(name, value) for name, value in given.items()}
            examples.update({name: np.zeros((1,) * len(shape), dtype) for name, (shape, dtype) in left_out.items()})
            ordered = {name: examples[name] for name in self.signature.parameters}
            kind = LaunchedKernel if is_cuda_function(self.function) else Specialization
            spec = kind(self.function, ordered, list(left_out), self.constant, self.check)
            self._check_written(spec)
            found = self._known[tuple(key)] = DerivedPrimitive(spec)
        return found, inputs

    def _checked(self, name: str, value: Any) -> Any:
        """An argument as an array or a node, if it has a dtype that kernels have."""
        if kind_of(value) == "other":
            message = f"{self.__name__}() got {a_full_name(value)} as `{name}`. Pass arrays and numbers."
            raise DtypeError(message)
        array = as_node(value) if isinstance(value, Tensor) else np.asarray(value)
        dtype = array.dtype
        if dtype.kind == "c" and is_cuda_function(self.function):
            message = f"{self.__name__}() got `{name}` of {dtype}. Pass the real and imaginary parts as two arrays."
            raise DtypeError(message)
        if dtype not in _DTYPES and dtype.kind not in "biu":
            message = (
                f"{self.__name__}() got `{name}` of {dtype}, of which no derivative is made. Pass float32, float64, "
                "complex64, complex128, integers or booleans."
            )
            raise DtypeError(message)
        return array

    def _refuse_records_of_devices(self, name: str, example: Any) -> None:
        if is_cuda_function(self.function):
            message = (
                f"{self.__name__}() got structured arrays, of which kernels of cuda.jit have no derivative. Let it "
                f"take the fields as arrays of their own: {name}[{example.dtype.names[0]!r}]."
            )
            raise DtypeError(message)

    def _check_written(self, spec: Specialization) -> None:
        written = spec.form.written
        for name in self.inout:
            if not any(leaf in written for leaf, _ in leaves_of(name, spec.examples.get(name))):
                shown = ", ".join(f"`{one}`" for one in written) or "none"
                message = f"{self.__name__}() does not write to `{name}`, which inout= names; it writes to {shown}."
                raise ArgumentError(message)
        for name in spec.left_out:
            if name not in written:
                message = f"{self.__name__}() was called without `{name}`, which it reads. Pass it."
                raise ArgumentError(message)

    def _left_out(self, given: dict[str, Any]) -> dict[str, Layout]:
        """The shapes and dtypes of the arrays that are left out of the call, by the rule."""
        names = [name for name in self.signature.parameters if name not in given]
        if not names:
            return {}
        assert self.shape is not None
        layouts, _ = results_by(self.shape, f"{self.__name__}()", [_described(one) for one in given.values()], {})
        if len(layouts) != len(names):
            message = (
                f"The shape rule of {self.__name__}() gives {len(layouts)} arrays, but {len(names)} were left out of "
                f"the call: {', '.join(names)}."
            )
            raise ArgumentError(message)
        return dict(zip(names, layouts, strict=True))

    def _shape_rule(
        self, spec: Specialization, inputs: Sequence[Any], left_out: dict[str, Layout]
    ) -> Callable[..., Any]:
        """The shapes and dtypes of the results, for the graph."""
        values = {
            name: found
            for name, value in zip(spec.inputs, inputs, strict=True)
            if (found := _known_value(value)) is not None
        }

        def rule(*inputs: Any) -> Any:
            shapes = {name: tuple(one.shape) for name, one in zip(spec.inputs, inputs, strict=True)}
            for name, (shape, _) in left_out.items():
                shapes[name] = (*shape, 2) if name in spec.form.complex else shape
            by_result = spec.result_shapes(values, shapes)
            found = []
            for output in spec.outputs:
                shape = shapes[output] if isinstance(output, str) else by_result.get(output, ())
                found.append((shape, spec.dtype_of(output)))
            return found

        return rule

    def _returned(self, spec: Specialization, found: Any) -> Any:
        """The results in the form in which callers get them."""
        if not spec.outputs:
            return None
        same, complex_ones = spec.form.same, spec.form.complex
        values = dict(zip(spec.outputs, found, strict=True))
        values = {output: joined(one)[()] if output in complex_ones else one for output, one in values.items()}
        results, structure = spec.form.results, spec.form.structure

        def of(place: Any) -> Any:
            if isinstance(place, tuple):
                parts = [of(one) for one in place]
                return type(place)(*parts) if hasattr(place, "_fields") else tuple(parts)
            one = results[place]
            return one.value if isinstance(one, Object) else values[same.get(place, place)]  # pyright: ignore[reportArgumentType]

        returned = of(structure if isinstance(structure, tuple) else (structure,))
        parts = [values[o] for o in spec.outputs if isinstance(o, str) and o not in same.values()]
        if not parts and hasattr(returned, "_fields"):
            return returned
        parts += returned
        return parts[0] if len(parts) == 1 else tuple(parts)

    def explained(self, *args: Any, **kwargs: Any) -> str:
        """The text of `nb.explain`: the storage of the derivative for some arguments, or for those of the last call."""
        from .storage_report import storage_report

        if is_cuda_function(self.function):
            message = (
                f"{self.__name__}() is a kernel of cuda.jit: the memory of its derivative comes with the launch. Read "
                "the arguments of its text: print(kernel.vjp.source)."
            )
            raise ArgumentError(message)
        if not args and not kwargs:
            return storage_report(self._of_last_call(), None)
        self(*args, **kwargs)
        spec, bound = self._of_last_call(), self._bound(args, kwargs)
        leaves = [leaf for name, value in bound.items() for leaf in leaves_of(name, value)]
        given = {
            name: np.asarray(taken_apart(value) if name in spec.form.complex else value)
            for name, value in leaves
            if name in spec.form.parameters
        }
        for name, (shape, dtype) in self._left_out(bound).items():
            given[name] = spec.zeros(shape, dtype)
        return storage_report(
            spec, {name: given[name] if name in spec.form.ranks else given[name][()] for name in spec.form.parameters}
        )

    def _of_last_call(self) -> Specialization:
        if self._last is None:
            message = f"Call {self.__name__}() once, so that the dtypes of its arguments are known."
            raise ArgumentError(message)
        return self._last

    @property
    def vjp(self) -> Any:
        """The reverse kernel for the arguments of the last call."""
        from .rule_text import RuleText

        spec = self._of_last_call()
        return ThreadText(spec) if isinstance(spec, LaunchedKernel) else RuleText(spec)


def _is_static(value: Any) -> bool:
    """Whether a kernel is read anew for each value of an argument; compiled functions are among these."""
    if hasattr(value, "py_func"):
        return True
    return value is None or (isinstance(value, str | type | np.dtype | tuple) and not is_packed(value))


def _described(value: Any) -> Any:
    """An argument as shape rules get it: a description of an array, or the number."""
    if _is_static(value):
        return value
    array = as_node(value) if isinstance(value, Tensor) else np.asarray(value)
    return Described(array.shape, array.dtype) if array.shape else value


def _example(name: str, value: Any) -> Any:
    """A small value of the dtype and rank of an argument."""
    if is_records(value):
        return records_example(name, value)
    if is_packed(value):
        parts = [_example(inner, one) for inner, one in parts_of(name, value)]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if _is_static(value):
        return value
    array = as_node(value) if isinstance(value, Tensor) else np.asarray(value)
    return np.zeros((1,) * array.ndim, array.dtype) if array.shape else array.dtype.type(0)


def _hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _known_value(value: Any) -> Any:
    """The value of an argument, where it is known while a function is recorded."""
    if isinstance(value, Tensor):
        node = as_node(value)
        if node.name == "literal":
            return literal_value(node)
        return np.asarray(node.value) if node.name == "constant" else None
    return None if _is_static(value) else (np.asarray(value) if np.ndim(value) else value)


def kernel(
    function: Any = None,
    /,
    *,
    inout: str | Sequence[str] = (),
    constant: str | Sequence[str] = (),
    shape: Callable[..., Any] | None = None,
    check: str = "first",
    launch: Any = None,
) -> Any:
    """A Numba kernel as a function with derivatives, which follow from the kernel's own, unchanged text.

    Parameters
    ----------
    function : callable
        A function compiled by `numba.njit`, `numba.guvectorize`, `numba.vectorize` or `numba.cuda.jit`, or a plain one
        that Numba can compile. Without it, the result is a decorator.
    inout : str or sequence of str
        Arguments that the kernel both reads and writes, for readers of your code: that they are written is checked.
    constant : str or sequence of str
        Arguments by which nothing is differentiated, such as masks and grids.
    shape : callable, optional
        `shape(*arguments)` gives `(shape, dtype)` of the array that the kernel writes to, or a list of these; arrays
        are described by `shape`, `dtype`, `ndim` and `size`. These arrays are then left out of calls, and begin as
        zeros.
    check : str
        When the derived gradient is compared with differences of the kernel: at the "first" gradient for each set of
        dtypes (about ten calls of the kernel), "always" or "never".
    launch : tuple or callable, optional
        For kernels of `cuda.jit`: the blocks and the threads in a block, as in `kernel[blocks, threads]`, or a function
        of all arguments that gives them; arrays are described as for `shape`. Derivatives are launched like the
        kernel. `nb.kernel(f[blocks, threads])` says the same.

    Returns
    -------
    KernelFunction
        Takes the kernel's arguments. It gives the arrays that the kernel writes to, in the order of its arguments, and
        then what the kernel returns; the caller's arrays stay as they are. A structured array may be given as a dict of
        its fields, of which the written ones come back.

    Raises
    ------
    ArgumentError, DtypeError
        If the kernel has a part of which no derivative can be made; the error names the line. If the derived gradient
        differs from finite differences.

    Notes
    -----
    The scheme is that of store and recompute for structured programs (Griewank and Walther, Evaluating Derivatives,
    2008, chapters 4 and 12): straight-line code is computed again, numbers that a loop carries are stored for each
    turn, and overwritten elements of arrays are logged. Memory is the sum of the lengths of nested loops.

    Examples
    --------
    >>> import math
    >>> import numpy as np, nbgrad as nb
    >>> from numba import njit
    >>> @njit
    ... def smooth(x, out):
    ...     carry = 0.0
    ...     for i in range(len(x)):
    ...         carry = 0.5 * carry + math.sin(x[i])
    ...         out[i] = carry
    >>> smoothed = nb.kernel(smooth)
    >>> x = np.array([0.0, 1.0, 2.0])
    >>> smoothed(x, np.zeros(3)).round(4)
    array([0.    , 0.8415, 1.33  ])
    >>> nb.grad(lambda x: np.sum(smoothed(x, np.zeros(3))))(x).round(4)
    array([ 1.75  ,  0.8105, -0.4161])
    """
    if function is None:
        return lambda given: kernel(given, inout=inout, constant=constant, shape=shape, check=check, launch=launch)
    function, launch = with_configuration(function, launch)
    is_ufunc = hasattr(function, "gufunc_builder") or hasattr(function, "_dispatcher")
    if isinstance(function, np.ufunc) and not is_ufunc:
        message = (
            f"nb.kernel got {function.__name__}, a ufunc that does not know the function that it is made of, as all of "
            'target="parallel". Make it with target="cpu", or give nb.kernel a function of numba.njit.'
        )
        raise DtypeError(message)
    if not is_ufunc and python_function(function) is None:
        message = f"nb.kernel takes a function that Numba compiles, but got {a_full_name(function)}."
        raise DtypeError(message)
    if check not in _CHECKS:
        message = f'check must be "first", "always" or "never", but got {check!r}.'
        raise ArgumentError(message)
    if shape is not None and not callable(shape):
        message = f"shape must be a function, but is {a_full_name(shape)}."
        raise DtypeError(message)
    names = [(one,) if isinstance(one, str) else tuple(one) for one in (inout, constant)]
    if is_ufunc:
        return UfuncKernel(function, lambda looped: KernelFunction(looped, (), names[1], None, check))
    if not hasattr(function, "py_func"):
        import numba

        function = numba.njit(function)
    return KernelFunction(function, names[0], names[1], shape, check, launch)
