"""Derivatives of kernels of `@cuda.jit`, as functions that `cuda.jit` compiles.

In: a kernel as statements, the arguments to differentiate by, the axes along which a launch has several threads. Out:
`ThreadKernel`. Called by launched_kernels.py. The derivative of a thread is that of its statements, with the launch of
the kernel: thread numbers, guards and indices are integers; barriers stand where they stood, backwards too; what
threads read together gets its cotangent by atomic additions, from shared arrays too, whose cotangents are shared
arrays; the cotangents of numbers are summed in each block.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...device.memory.custom_launches import numba_cuda
from ...extend.numba_source import helpers_of
from ...process.once import computed_once
from ..cotangents import bar
from ..dataflow import is_float
from ..kernel_statements import Alias, Block, Store, is_name, stored, walk
from ..kernel_text import function_of
from ..reading.kernel_form import ScalarForm
from ..reading.plain_form import UnsupportedKernelError
from ..removal import without_unused
from ..reverse import Adjoint, reverse
from ..tangent import dot, tangent
from .common_additions import functions_in_step
from .launch_sizes import Launch
from .thread_arrays import ThreadArrays, origin, with_thread_arrays
from .thread_counts import Counts
from .thread_ownership import common_arrays, refilled_tiles
from .thread_text import thread_text

_SHARED_BYTES = 48 * 1024


@dataclass
class ThreadKernel:
    """A derivative of a kernel.

    Attributes
    ----------
    text : str
        Its text.
    parameters : list of str
        The names of its arguments: those of the kernel and their derivatives, then what the launch brings.
    numbers : set of str
        The arguments that are numbers, given as arrays of one element.
    added : list of str
        Arrays of floats that threads add to by atomic operations.
    """

    form: ScalarForm
    name: str
    text: str
    parameters: list[str]
    numbers: set[str]
    arrays: ThreadArrays
    added: list[str]
    counts: Counts | None
    moving: list[str] = field(default_factory=list)
    """The arguments with tangents."""

    @computed_once
    def untouched(self) -> set[str]:
        """The arguments that it does not write to."""
        names = {one.array: one.source for one in walk(self.arrays.body) if isinstance(one, Alias)}
        written = stored(self.arrays.body)
        return {*self.parameters} - written - {names[name] for name in written if name in names} - {*self.arrays.sums}

    @computed_once
    def function(self) -> Any:
        """The kernel, which `cuda.jit` compiles when it is launched."""
        return compiled(self.name, self.text, self.form.objects)

    @property
    def source(self) -> str:
        """The text with its decorator."""
        functions = [*helpers_of(self.text), *functions_in_step(self.text, False)]
        helpers = [f"@cuda.jit(device=True)\n{text}" for _, text in functions]
        return "\n\n".join([*helpers, f"@cuda.jit\n{self.text}"])


def compiled(name: str, text: str, objects: Mapping[str, Any], jit: Any = None) -> Any:
    """A function of some text that `cuda.jit` compiles."""
    cuda = numba_cuda()
    namespace: dict[str, Any] = {"np": np, "math": math, "cuda": cuda, **objects}
    helpers: dict[str, Any] = {"math": math, "cuda": cuda}
    simulated = not hasattr(cuda, "shfl_sync")
    for helper, own in [*helpers_of(text), *functions_in_step(text, simulated)]:
        exec(own, helpers)
        namespace[helper] = helpers[helper] = cuda.jit(device=True)(helpers[helper])
    return (jit or cuda.jit)(function_of(name, text, namespace))


def for_launches(form: ScalarForm, launch: Launch) -> ScalarForm:
    """The kernel with what its threads have in common."""
    return replace(form, common=common_arrays(form, launch), refilled=refilled_tiles(form, launch))


def reverse_threads(form: ScalarForm, wanted: Sequence[str], launch: Launch) -> tuple[ThreadKernel, Adjoint]:
    """The reverse kernel: the kernel's arguments and cotangents of arrays; sums are those of wanted numbers."""
    found = reverse(form, list(wanted))
    sums = dict(zip(found.numbers, found.results, strict=True))
    made = _made(form, "vjp", found.body, found.parameters, found.dtypes, found.loops, sums, launch)
    return made, found


def forward_threads(form: ScalarForm, moved: Sequence[str], launch: Launch) -> ThreadKernel:
    """The tangent kernel: the kernel's arguments, then tangents."""
    return _with_tangents(form, "jvp", form.body, form.parameters, moved, {}, form.dtypes, {}, launch)


def second_threads(form: ScalarForm, adjoint: Adjoint, moved: Sequence[str], launch: Launch) -> ThreadKernel:
    """The tangent of a reverse kernel; sums are the tangents of those of wanted numbers."""
    sums = dict(zip(adjoint.numbers, adjoint.results, strict=True))
    parameters, dtypes = adjoint.parameters, adjoint.dtypes
    return _with_tangents(form, "vjp_jvp", adjoint.body, parameters, moved, sums, dtypes, adjoint.loops, launch)


def _with_tangents(
    form: ScalarForm,
    kind: str,
    body: Block,
    parameters: Sequence[str],
    moved: Sequence[str],
    sums: Mapping[str, str],
    dtypes: Mapping[str, str],
    loops: Mapping[str, Block],
    launch: Launch,
) -> ThreadKernel:
    known = {**dtypes, **{bar(one): "float64" for one in (*form.parameters, *form.shared)}}
    found = tangent(form.name, body, moved, known)
    moving = [one for one in parameters if one in found.active]
    given = {k: dot(one) if is_name(one) and one in found.active else "0.0" for k, one in sums.items()}
    kept = without_unused(found.body, [*map(dot, moving), *filter(is_name, given.values())])
    made = _made(form, kind, kept, [*parameters, *map(dot, moving)], found.dtypes, loops, given, launch)
    return replace(made, moving=moving)


def _made(
    form: ScalarForm,
    kind: str,
    body: Block,
    parameters: Sequence[str],
    dtypes: Mapping[str, str],
    loops: Mapping[str, Block],
    sums: Mapping[str, str],
    launch: Launch,
) -> ThreadKernel:
    arrays = with_thread_arrays(form, body, dtypes, loops)
    arrays.sums.update({f"{name}_sums": atom for name, atom in sums.items() if is_name(atom)})
    kept = [one for one in parameters if origin(one, form.ranks) not in (None, one)] + [*arrays.sums.values()]
    arrays.body = without_unused(arrays.body, kept)
    bases = {**form.ranks, **form.shared}
    numbers = {one for one in parameters if origin(one, form.ranks) is None}
    given = [*parameters, *arrays.copies, *arrays.columns, *arrays.sums]
    name = f"{form.name.strip('_<>')}_{kind}"
    text = thread_text(name, given, numbers, arrays, form.common, bases, launch)
    _check_shared(form, arrays, launch.threads if arrays.sums else 0)
    added = [
        base
        for one in walk(arrays.body)
        if isinstance(one, Store) and one.add and is_float(dtypes.get(one.array, "float64"))
        if (base := origin(one.array, bases)) in form.common and one.array not in arrays.private
    ]
    counts = Counts(form, [*arrays.columns], loops) if arrays.columns else None
    return ThreadKernel(form, name, text, given, numbers, arrays, sorted({*map(str, added)}), counts)


def _check_shared(form: ScalarForm, arrays: ThreadArrays, threads: int) -> None:
    """Raise if a block would need more shared memory than it can have."""
    size = threads * 8 + sum(math.prod(shape) * np.dtype(dtype).itemsize for dtype, shape in arrays.shared.values())
    if size > _SHARED_BYTES:
        message = (
            f"The derivative of {form.name}() needs {size} bytes of shared memory in a block, of which there are "
            f"{_SHARED_BYTES}: a shared array has a cotangent of the same size. Use smaller blocks."
        )
        raise UnsupportedKernelError(message)
