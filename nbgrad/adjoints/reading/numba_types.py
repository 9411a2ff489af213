"""The types of all names of a plain function, inferred by Numba.

In: a plain function and Numba's types of its arguments. Out: the type of each name, and of the result. Called by
scalar_form.py. Numba's own passes run as far as its type inference. Functions of `numba.njit` that it calls are typed
in the same way where they are not compiled yet: to ask Numba for the type of a call compiles the function.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Sequence
from types import FunctionType
from typing import Any

import numpy as np

from ...extend.scalar_code import python_function, scalar_code
from ..threads.thread_names import CudaName, is_cuda_function, stand_in
from .jumps import RESULT
from .kernel_choice import chosen_kernel
from .plain_form import PlainFunction, UnsupportedKernelError
from .stencil_kernels import is_stencil, stencil_kernel

_KNOWN: dict[tuple[Any, ...], dict[str, Any]] = {}
"""The types of the kernels of array_kernels.py, by these and the types of their arguments."""
_KERNEL_MODULES = [
    f"{__package__}.{one}_kernels" for one in ("algebra", "array", "counting", "decomposition", "forming", "order")
]


def inferred_types(
    function: PlainFunction, arguments: Sequence[Any], within: frozenset[FunctionType] = frozenset()
) -> dict[str, Any]:
    """Numba's type of each name; names that are assigned values of several types have the one that holds them all.

    `within` are the functions whose types are being inferred because of this one's.

    Raises
    ------
    UnsupportedKernelError
        If Numba cannot infer the types.
    """
    python = function.code.function
    if python.__module__ not in _KERNEL_MODULES:
        return _inferred(function, arguments, within)
    key = (python, *arguments)
    if key not in _KNOWN:
        _KNOWN[key] = _inferred(function, arguments, within)
    return _KNOWN[key]


def _inferred(function: PlainFunction, arguments: Sequence[Any], within: frozenset[FunctionType]) -> dict[str, Any]:
    from numba.core import types
    from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
    from numba.core.compiler_machinery import PassManager
    from numba.core.errors import NumbaError
    from numba.core.registry import cpu_target
    from numba.core.typed_passes import NopythonTypeInference

    class Inference(CompilerBase):
        """Numba's pipeline as far as the types."""

        def define_pipelines(self) -> list[PassManager]:
            passes = DefaultPassBuilder.define_untyped_pipeline(self.state)
            passes.add_pass(NopythonTypeInference, "types")
            passes.finalize()
            return [passes]

        def _compile_core(self) -> None:
            for passes in self.define_pipelines():
                passes.run(self.state)

    context: Any = cpu_target.typing_context
    target: Any = cpu_target.target_context
    context.refresh()
    target.refresh()
    # The flags of njit itself: NumPy's functions that Numba writes in Python are compiled anew for each set of flags.
    flags: Any = Flags()
    cpu_target.options.parse_as_flags(flags, {"nopython": True, "boundscheck": None})
    pipeline = Inference(context, target, None, tuple(arguments), None, flags, {})
    try:
        pipeline.compile_extra(_as_function(function, within))
    except NumbaError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip() and "Failed in" not in line]
        shown = ", ".join(map(str, arguments))
        message = f"Numba cannot compile {function.name}() for ({shown}): {' '.join(lines[:3])}"
        raise UnsupportedKernelError(message) from error
    except KeyError as error:
        message = f"{function.name}() reads a field of records that have none of that name: {error}."
        raise UnsupportedKernelError(message) from error
    found: dict[str, list[Any]] = {}
    for variable, kind in pipeline.state.typemap.items():
        if not variable.startswith("$"):
            found.setdefault(variable.removeprefix("arg.").split(".")[0], []).append(types.unliteral(kind))
    joined: dict[str, Any] = {RESULT: types.none}
    for variable, kinds in found.items():
        whole = context.unify_types(*kinds)
        joined[variable] = whole if whole is not None else kinds[0]
    return joined


def _as_function(function: PlainFunction, within: frozenset[FunctionType]) -> Any:
    """The plain function, made of its text."""
    name = f"plain_{function.name.strip('<>')}"
    inside = within | {function.code.function}
    namespace = {given: _typed_only(found, inside) for given, found in function.objects.items()}
    returns = any(isinstance(node, ast.Name) and node.id == RESULT for one in function.body for node in ast.walk(one))
    text = function.text(name) + (f"    return {RESULT}\n" if returns else "")
    exec(compile(text, f"<plain form of {function.name}>", "exec"), namespace)
    return namespace[name]


class _TypedOnly:
    """An object of which Numba knows a type, and nothing else."""

    def __init__(self, kind: Any) -> None:
        self._numba_type_ = kind


_JOINED = [np.concatenate, np.append, np.hstack, np.vstack, np.where]


def _joined_type(found: Any, given: Sequence[Any], context: Any) -> Any:
    """The type of several arrays as one; None for other functions, and where it depends on their memory order."""
    from numba.core import types

    if not any(found is one for one in _JOINED) or (found is np.where and len(given) == 1):
        return None
    parts = list(getattr(given[0], "types", ())) if found not in (np.append, np.where) else list(given[-2:])
    arrays = [one for one in parts if isinstance(one, types.Array)]
    if not arrays or len(given) > 3 or any(one.layout != "C" for one in arrays if one.ndim > 1):
        return None
    dtype = context.unify_types(*[getattr(one, "dtype", types.unliteral(one)) for one in parts])
    ndim = max(one.ndim for one in arrays)
    return types.Array(dtype, max(2, ndim) if found is np.vstack else ndim, "C")


def dtype_given(function: Any, kinds: Sequence[Any]) -> str:
    """The dtype of what a function of numbers gives."""
    return str(inferred_types(PlainFunction(scalar_code(function)), kinds)[RESULT])


def _stencil_template(found: Any) -> Any:
    """The types of calls of a stencil."""
    from numba.core.typing.templates import AbstractTemplate, signature

    class StencilCall(AbstractTemplate):
        """The type of a call."""

        key = found

        def generic(self, args: Any, kws: Any) -> Any:
            """The signature for arguments of some types."""
            given = (*args, *kws.values())
            kernel = stencil_kernel(found, args, bool(kws), dtype_given)
            return signature(inferred_types(PlainFunction(scalar_code(kernel)), given)[RESULT], *given)

    return StencilCall


def _kernel_template(found: Any) -> Any:
    """The types of calls of a function of NumPy that is taken apart as a kernel of array_kernels.py.

    Numba's own types of such a call take the compilation of its implementation.
    """
    import numba
    from numba.core import types
    from numba.core.typing.templates import AbstractTemplate, signature

    from .array_kernels import OF_COMPLEX

    def rank(kind: Any) -> int | None:
        return (
            None
            if isinstance(kind, types.NoneType | types.UnicodeType | types.StringLiteral)
            else getattr(kind, "ndim", 0)
        )

    class KernelCall(AbstractTemplate):
        """The type of a call."""

        key = found

        def generic(self, args: Any, kws: Any) -> Any:
            """The signature for arguments of some types."""
            given = (*args, *kws.values())
            joined = _joined_type(found, given, self.context)
            if joined is not None:
                return signature(joined, *given)
            chosen = chosen_kernel(found, args, kws, rank, numba.typeof)
            if found not in OF_COMPLEX and any(isinstance(getattr(one, "dtype", one), types.Complex) for one in given):
                chosen = None
            if chosen is None:
                return self.context.resolve_function_type(self.context.resolve_value_type(found), args, kws)
            kernel, arguments = chosen
            inner = [
                types.unliteral(arguments[name]) if name in arguments else numba.typeof(one.default)
                for name, one in inspect.signature(kernel).parameters.items()
            ]
            kinds = inferred_types(PlainFunction(scalar_code(kernel)), inner)
            return signature(kinds.get(RESULT, types.none), *given)

    return KernelCall


def _number_template(found: Any) -> Any:
    """The type of calls of a function that gives a number of float64."""
    from numba.core import types
    from numba.core.typing.templates import AbstractTemplate, signature

    class NumberCall(AbstractTemplate):
        """The type of a call."""

        key = found

        def generic(self, args: Any, kws: Any) -> Any:
            """The signature for arguments of some types."""
            return signature(types.float64, *args)

    return NumberCall


def _typed_only(found: Any, within: frozenset[FunctionType]) -> Any:
    """The stand-in for a compiled function while types are inferred; most objects stand for themselves.

    Numba's CPU target knows no types of CUDA's functions, and those of others only when it has compiled them.
    """
    import numba
    from numba.core import types
    from numba.core.dispatcher import Dispatcher
    from numba.core.typing.templates import AbstractTemplate, signature

    from .array_kernels import ARRAY_KERNELS
    from .decomposition_kernels import LAPACK_ELEMENTS

    if any(found is one for one in LAPACK_ELEMENTS):
        return _TypedOnly(types.Function(_number_template(found)))
    if isinstance(found, CudaName):
        return stand_in(found)
    if any(found is one for one in (*_JOINED, *[function for function, _ in ARRAY_KERNELS])):
        return _TypedOnly(types.Function(_kernel_template(found)))
    if is_stencil(found):
        return _TypedOnly(types.Function(_stencil_template(found)))
    python = python_function(found)
    if not (isinstance(found, Dispatcher) or is_cuda_function(found)) or python is None or python in within:
        return found
    function: Any = found

    class Call(AbstractTemplate):
        """The type of a call."""

        key = function

        def generic(self, args: Any, kws: Any) -> Any:
            """The signature for arguments of some types."""
            bound = inspect.signature(python).bind(*args, **kws)
            for name, one in bound.signature.parameters.items():
                if name not in bound.arguments:
                    bound.arguments[name] = numba.typeof(one.default)
            given = [bound.arguments[name] for name in bound.signature.parameters]
            known = function.overloads.get(tuple(given)) if isinstance(found, Dispatcher) else None
            if known is not None:
                return known.signature
            try:
                kinds = inferred_types(PlainFunction(scalar_code(function)), given, within)
            except UnsupportedKernelError:
                if not isinstance(found, Dispatcher):
                    raise
                template, _, given, named = function.get_call_template(args, kws)
                return template(self.context).apply(given, named)
            return signature(kinds[RESULT], *given)

    return _TypedOnly(types.Function(Call))
