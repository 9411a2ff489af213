"""The types of all names of a plain function, inferred by Numba.

In: a plain function and Numba's types of its arguments. Out: the type of each name, and of the result. Called by
scalar_form.py. Numba's own passes run as far as its type inference; nothing is compiled but the functions that it
calls.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from ..extend.scalar_code import scalar_code
from .jumps import RESULT
from .plain_form import PlainFunction, UnsupportedKernelError
from .threads.thread_names import CudaName, is_cuda_function, stand_in


def inferred_types(function: PlainFunction, arguments: Sequence[Any]) -> dict[str, Any]:
    """Numba's type of each name; names that are assigned values of several types have the one that holds them all.

    Raises
    ------
    UnsupportedKernelError
        If Numba cannot infer the types.
    """
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
    flags: Any = Flags()
    flags.nrt = True
    pipeline = Inference(context, target, None, tuple(arguments), None, flags, {})
    try:
        pipeline.compile_extra(_as_function(function))
    except NumbaError as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip() and "Failed in" not in line]
        shown = ", ".join(map(str, arguments))
        message = f"Numba cannot compile {function.name}() for ({shown}): {' '.join(lines[:3])}"
        raise UnsupportedKernelError(message) from error
    found: dict[str, list[Any]] = {}
    for variable, kind in pipeline.state.typemap.items():
        if not variable.startswith("$"):
            found.setdefault(variable.removeprefix("arg.").split(".")[0], []).append(types.unliteral(kind))
    joined: dict[str, Any] = {}
    for variable, kinds in found.items():
        whole = context.unify_types(*kinds)
        joined[variable] = whole if whole is not None else kinds[0]
    return joined


def _as_function(function: PlainFunction) -> Any:
    """The plain function, made of its text."""
    name = f"plain_{function.name.strip('<>')}"
    namespace = {given: _typed(found) for given, found in function.objects.items()}
    returns = any(isinstance(node, ast.Name) and node.id == RESULT for one in function.body for node in ast.walk(one))
    text = function.text(name) + (f"    return {RESULT}\n" if returns else "")
    exec(compile(text, f"<plain form of {function.name}>", "exec"), namespace)
    return namespace[name]


def _typed(found: Any) -> Any:
    """An object whose type Numba's CPU target knows: CUDA's functions have others in their place."""
    if isinstance(found, CudaName):
        return stand_in(found)
    if is_cuda_function(found):
        import numba

        return numba.njit(_as_function(PlainFunction(scalar_code(found))))
    return found
