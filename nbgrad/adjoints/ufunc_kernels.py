"""Kernels of `numba.guvectorize` and `numba.vectorize`, as kernels with a loop over what they are called for.

In: a ufunc that Numba has made, and what derives a kernel. Out: `UfuncKernel`, a function of the same inputs. Called by
kernel.py. The kernel that is derived is a loop over calls of the ufunc's own function; broadcasting is done around it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, BroadcastError, DtypeError
from ..record.foreign_arrays import a_full_name
from ..record.tensor import Tensor
from ..transforms.lent_arrays import kind_of
from .kernel_text import function_of

Core = tuple[str, ...]


class UfuncKernel:
    """A ufunc of Numba with derivatives. Made by `kernel`.

    Attributes
    ----------
    vjp : object
        `vjp.source` is the text of the reverse kernel for the arguments of the last call.
    """

    def __init__(self, ufunc: Any, derived: Callable[[Any], Any]) -> None:
        import numba

        builder = getattr(ufunc, "gufunc_builder", None)
        if builder is None:
            function = ufunc._dispatcher.py_func
            self.inputs: list[Core] = [()] * ufunc.nin
            self.outputs: list[Core] = [()]
            signatures: list[Any] = []
        else:
            function = builder.py_func
            self.inputs, self.outputs = list(map(tuple, builder.sin)), list(map(tuple, builder.sout))
            signatures = list(builder._sigs)
        self.__name__, self.__doc__ = function.__name__, function.__doc__
        self.ufunc = ufunc
        self.dtypes = [[_dtype(kind) for kind in one.args] for one in signatures]
        kinds = signatures[0].args if signatures else [None] * len(self.inputs)
        names = list(function.__code__.co_varnames[: function.__code__.co_argcount])
        given = [
            f"{name}[i]" if core or not hasattr(kind, "ndim") else f"{name}[i : i + 1]"
            for name, core, kind in zip(names, self.inputs, kinds, strict=False)
        ]
        if builder is None:
            names.append("out" if "out" not in names else "out_of_all")
            call = f"{names[-1]}[i] = each({', '.join(given)})"
        else:
            given += [
                f"{name}[i]" if core else f"{name}[i : i + 1]"
                for name, core in zip(names[len(self.inputs) :], self.outputs, strict=True)
            ]
            call = f"each({', '.join(given)})"
        name = f"{self.__name__}_for_each"
        text = f"def {name}({', '.join(names)}):\n    for i in range({names[-1]}.shape[0]):\n        {call}\n"
        self.kernel = derived(numba.njit(function_of(name, text, {"each": numba.njit(function)})))

    def __repr__(self) -> str:
        return f"<kernel {self.__name__}>"

    def __call__(self, *inputs: Any) -> Any:
        """Call the kernel with the inputs of the ufunc, which are broadcast.

        Returns
        -------
        array, or tuple of arrays
            The results of the ufunc; ndarrays if all inputs are ndarrays or numbers, otherwise Tensors.
        """
        if len(inputs) != len(self.inputs):
            message = f"{self.__name__}() takes {len(self.inputs)} inputs, but got {len(inputs)}; it gives its results."
            raise ArgumentError(message)
        for position, value in enumerate(inputs):
            if kind_of(value) == "other" and not isinstance(value, list | tuple):
                message = f"Input {position} of {self.__name__}() is {a_full_name(value)}. Pass arrays and numbers."
                raise DtypeError(message)
        arrays = [value if isinstance(value, Tensor) else np.asarray(value) for value in inputs]
        lengths, around = self._shapes(arrays)
        dtypes = self._dtypes(arrays)
        count = int(np.prod(around, dtype=np.int64))
        rows: list[Any] = []
        for array, core, dtype in zip(arrays, self.inputs, dtypes, strict=False):
            inner = tuple([lengths[axis] for axis in core])
            found = array if array.dtype == dtype else array.astype(dtype)
            rows.append(np.broadcast_to(found, (*around, *inner)).reshape((count, *inner)))
        shapes = [tuple([lengths[axis] for axis in core]) for core in self.outputs]
        outputs = [np.zeros((count, *shape), dtype) for shape, dtype in zip(shapes, dtypes[len(rows) :], strict=True)]
        found = self.kernel(*rows, *outputs)
        many = found if isinstance(found, tuple) else (found,)
        results = [one.reshape((*around, *shape)) for one, shape in zip(many, shapes, strict=True)]
        results = [one if one.shape or isinstance(one, Tensor) else one[()] for one in results]
        return results[0] if len(results) == 1 else tuple(results)

    def _shapes(self, arrays: Sequence[Any]) -> tuple[dict[str, int], tuple[int, ...]]:
        """The lengths of the ufunc's own axes, and the shape of what it is called for."""
        lengths: dict[str, int] = {}
        around: list[tuple[int, ...]] = []
        for position, (array, core) in enumerate(zip(arrays, self.inputs, strict=True)):
            if array.ndim < len(core):
                message = f"Input {position} of {self.__name__}() needs {len(core)} axes, but has {array.ndim}."
                raise BroadcastError(message)
            outer = array.ndim - len(core)
            around.append(array.shape[:outer])
            for axis, length in zip(core, array.shape[outer:], strict=True):
                if lengths.setdefault(axis, length) != length:
                    message = (
                        f"{self.__name__}() got {length} elements along `{axis}` in input {position}, but "
                        f"{lengths[axis]} before."
                    )
                    raise BroadcastError(message)
        try:
            return lengths, np.broadcast_shapes(*around)
        except ValueError:
            shown = ", ".join(map(str, around))
            message = f"The inputs of {self.__name__}() cannot be broadcast: they are for {shown}."
            raise BroadcastError(message) from None

    def _dtypes(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """The dtypes of inputs and results: of the first signature that takes the inputs."""
        given = [array.dtype for array in arrays]
        for signature in self.dtypes:
            if all(np.can_cast(one, other) for one, other in zip(given, signature, strict=False)):
                return signature
        if self.dtypes:
            shown = ", ".join(map(str, given))
            message = f"{self.__name__}() has no signature for {shown}. Convert the inputs: x.astype(np.float64)."
            raise DtypeError(message)
        if not hasattr(self.ufunc, "gufunc_builder"):
            with np.errstate(all="ignore"):
                return [*given, np.asarray(self.ufunc(*[np.ones((), one) for one in given])).dtype]
        return [*given, *[np.result_type(*given)] * len(self.outputs)]

    @property
    def vjp(self) -> Any:
        """The reverse kernel for the arguments of the last call."""
        return self.kernel.vjp


def _dtype(kind: Any) -> np.dtype[Any]:
    """The dtype of one of Numba's types, of a number or an array."""
    from numba.np.numpy_support import as_dtype

    return as_dtype(getattr(kind, "dtype", kind))
