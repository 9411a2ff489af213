"""Functions of arrays as operations of JAX's, with everything that JAX asks of one.

In: a function of arrays. Out: an `Operation`, and the primitive of JAX's that runs operations: their shapes, their
derivatives in both modes, their transposes, maps of them, and their code. Called by jax_functions.py. Each of these is
an operation again, so that JAX's transformations nest in any order; see
https://docs.jax.dev/en/latest/jax-primitives.html for the rules.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from ..compiled.jit import jit
from ..errors import NbgradError
from ..transforms.arguments import name_of
from ..transforms.vmap import vmap
from .derivative_rules import floats_of, pullback, pushforward
from .jax_calls import Called
from .result_types import result_types, write_results

Axes = tuple[int | None, ...]


class Operation:
    """A function of arrays, compiled, with the operations that are derived from it.

    Parameters
    ----------
    fn : callable
        Gives an array or a tuple of them.
    transposed : Operation, optional
        For a function that is linear in its arguments from `count` on: from those before and cotangents of the results
        to cotangents of the others.
    """

    def __init__(self, fn: Callable[..., Any], transposed: Operation | None = None, count: int = 0) -> None:
        self.fn, self.transposed, self.count = fn, transposed, count
        self.compiled = jit(fn)
        self._program: Any = None
        self.by_xla = Called(self.compiled, name_of(fn))
        # JAX's programs know it as long as it lives, and so long live those that are derived from it.
        self._results = cache(self._found)
        self.tangents = cache(self._tangents)
        self.mapped = cache(self._mapped)

    def results(self, layouts: Any) -> tuple[list[Any], bool]:
        """The shapes and dtypes of the results as JAX has them, which makes float32 of float64 by default; and whether
        they are a tuple."""
        import jax  # pyright: ignore[reportMissingImports]

        settings: Any = jax.config
        return self._results(layouts, settings.jax_enable_x64)

    def program(self, *args: Any) -> Any:
        """The results outside of other programs."""
        import jax  # pyright: ignore[reportMissingImports]

        if self._program is None:
            # It must not hold this operation, which JAX would keep for ever.
            held = weakref.ref(self)
            self._program = jax.jit(lambda *args: primitive().bind(*args, operation=held()))
        return self._program(*args)

    def _found(self, layouts: Any, wide: bool) -> tuple[list[Any], bool]:
        import jax  # pyright: ignore[reportMissingImports]

        del wide  # part of the key
        types, is_tuple = result_types(self.fn, layouts)
        return [jax.ShapeDtypeStruct(shape, jax.dtypes.canonicalize_dtype(dtype)) for shape, dtype in types], is_tuple

    def _tangents(self, count: int, wanted: tuple[int, ...]) -> Operation:
        """From all arguments and tangents of the `wanted` ones to tangents of the results."""

        floats = floats_of(self.fn)
        pulled = pullback(floats, count, wanted)

        def transposed(*given: Any) -> tuple[Any, ...]:
            # JAX's cotangents of complex numbers are the conjugates of nbgrad's and PyTorch's.
            return tuple([np.conj(one) for one in pulled(*given[:count], *map(np.conj, given[count:]))])

        return Operation(pushforward(floats, count, wanted), Operation(transposed), count)

    def _mapped(self, axes: Axes) -> Operation:
        """The operation for many values at once, which lie along these axes of the arguments."""
        mapped = vmap(self.fn, in_axes=axes)
        if self.transposed is None:
            return Operation(mapped)
        back, count = self.transposed.fn, self.count

        def transposed(*given: Any) -> tuple[Any, ...]:
            found = vmap(back, in_axes=(*axes[:count], *[0] * (len(given) - count)))(*given)
            pairs = zip(found, axes[count:], strict=True)
            return tuple([np.sum(one, 0) if axis is None else np.moveaxis(one, 0, axis) for one, axis in pairs])

        return Operation(mapped, Operation(transposed), count)


def _layouts(arrays: Sequence[Any]) -> Any:
    return tuple([(tuple(one.shape), np.dtype(one.dtype)) for one in arrays])


@cache
def primitive() -> Any:
    """The primitive of JAX's that runs operations: `bind(*arguments, operation=...)` gives a list of results."""
    import jax  # pyright: ignore[reportMissingImports]
    from jax.core import ShapedArray  # pyright: ignore[reportMissingImports]
    from jax.extend.core import Primitive  # pyright: ignore[reportMissingImports]
    from jax.interpreters import ad, batching, mlir  # pyright: ignore[reportMissingImports]

    made = Primitive("nbgrad")
    made.multiple_results = True

    def code(*args: Any, operation: Operation) -> list[Any]:
        wanted, _ = operation.results(_layouts(args))

        def host(*values: Any) -> Any:
            found = operation.compiled(*[np.asarray(value) for value in values])
            results = [np.empty(like.shape, like.dtype) for like in wanted]
            write_results(name_of(operation.fn), results, found if isinstance(found, tuple) else (found,))
            return results

        def by_callback(*values: Any) -> Any:
            return jax.pure_callback(host, wanted, *values)

        def by_xla(*values: Any) -> Any:
            return operation.by_xla(wanted, *values)

        return list(jax.lax.platform_dependent(*args, default=by_callback, cpu=by_xla))

    lowered = mlir.lower_fun(code, multiple_results=True)

    def lower(context: Any, *args: Any, operation: Operation) -> Any:
        context.module_context.add_keepalive(operation)  # the code knows its number alone
        return lowered(context, *args, operation=operation)

    def differentiate(primals: Any, tangents: Any, *, operation: Operation) -> Any:
        outputs = made.bind(*primals, operation=operation)
        kinds = [np.dtype(one.dtype).kind for one in primals]
        wanted = tuple([k for k, one in enumerate(tangents) if type(one) is not ad.Zero and kinds[k] in "fc"])
        floats = [k for k, one in enumerate(outputs) if np.dtype(one.dtype).kind in "fc"]
        moved = [ad.Zero(jax.typeof(one).to_tangent_aval()) for one in outputs]
        if wanted and floats:
            along = operation.tangents(len(primals), wanted)
            found = made.bind(*primals, *[tangents[k] for k in wanted], operation=along)
            for position, one in zip(floats, found, strict=True):
                moved[position] = one
        return outputs, moved

    def transpose(cotangents: Any, *args: Any, operation: Operation) -> Any:
        assert operation.transposed is not None
        known = args[: operation.count]
        given = [ad.instantiate_zeros(one) for one in cotangents]
        return [None] * len(known) + made.bind(*known, *given, operation=operation.transposed)

    def batch(args: Any, axes: Any, *, operation: Operation) -> Any:
        mapped = operation.mapped(tuple(axes))
        try:
            mapped.results(_layouts(args))
        except NbgradError:  # it looks at values, which differ
            fronts = [a if axis is None else jax.numpy.moveaxis(a, axis, 0) for a, axis in zip(args, axes, strict=True)]
            rows = [one for one, axis in zip(fronts, axes, strict=True) if axis is not None]

            def one(row: Any) -> Any:
                parts = iter(row)
                pairs = zip(fronts, axes, strict=True)
                return made.bind(*[a if axis is None else next(parts) for a, axis in pairs], operation=operation)

            found = jax.lax.map(one, rows)
        else:
            found = made.bind(*args, operation=mapped)
        return found, [0] * len(found)

    def described(*avals: Any, operation: Operation) -> list[Any]:
        return [ShapedArray(one.shape, one.dtype) for one in operation.results(_layouts(avals))[0]]

    made.def_impl(lambda *args, operation: operation.program(*args))
    made.def_abstract_eval(described)
    mlir.register_lowering(made, lower)
    ad.primitive_jvps[made] = differentiate
    ad.primitive_transposes[made] = transpose
    batching.primitive_batchers[made] = batch
    return made
