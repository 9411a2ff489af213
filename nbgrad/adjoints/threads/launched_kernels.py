"""Kernels of `@cuda.jit` with a launch, and their derivatives, on arrays.

In: a kernel, examples of its arguments, a `Launch`. Out: `LaunchedKernel`, which runs the kernel and its derivatives
with that launch, on ndarrays and on arrays of a device. Called by kernel.py.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...device.kernels.settings import SETTINGS
from ...device.memory.custom_launches import numba_cuda
from ...errors import ArgumentError
from ...extend.scalar_code import python_function
from ...process.once import computed_once
from ..agreement import Agreement
from ..cotangents import bar
from ..dataflow import is_float
from ..kernel_rules import DerivedPrimitive
from ..raised_errors import NOTHING
from ..reverse import Adjoint
from ..specializations import Arrays, Specialization
from ..tangent import dot
from .launch_memory import HostMemory, memory, memory_of, using
from .launch_sizes import Launch
from .thread_kernels import ThreadKernel, compiled, for_launches, forward_threads, reverse_threads, second_threads

_MOST_BYTES = 1 << 32
_MOST_LAUNCHES = 1000
_TOTAL = """def total(parts, result):
    sums = cuda.shared.array(32, np.float64)
    k = cuda.threadIdx.x
    mine = 0.0
    for j in range(k, parts.shape[0], 32):
        mine += parts[j]
    sums[k] = mine
    cuda.syncthreads()
    if k == 0:
        for j in range(1, 32):
            mine += sums[j]
        result[0] += mine
"""
"""Adds the sums of the blocks, in an order that is always the same."""


class LaunchedKernel(Specialization):
    """A kernel for arguments of some dtypes and ranks; `with_launch` gives the one that runs.

    Attributes
    ----------
    launch : Launch
        The numbers of blocks and threads.
    """

    launch: Launch

    def __init__(
        self, function: Any, examples: dict[str, Any], left_out: Sequence[str], constant: Sequence[str], check: str
    ) -> None:
        super().__init__(function, examples, left_out, constant, check)
        self.user_kernel = function
        self.launches: dict[Launch, LaunchedKernel] = {}
        self.made: dict[Any, Any] = {}
        """The derivatives, by what they depend on; all launches have the same."""

    def with_launch(self, launch: Launch) -> LaunchedKernel:
        """The kernel with a launch."""
        if launch not in self.launches:
            found = copy.copy(self)
            found.launch = launch
            found.form = for_launches(self.form, launch)
            found.function = found.run_kernel
            found.check = _DeviceAgreement(found, self.check.when)
            found.check.done = self.check.done
            found.rules = {}
            if len(self.launches) >= _MOST_LAUNCHES:
                self.launches.clear()
            self.launches[launch] = found
        return self.launches[launch]

    @computed_once
    def primitive(self) -> DerivedPrimitive:
        """The kernel with a launch as a primitive."""
        return DerivedPrimitive(self)

    def launcher(self, run: Callable[..., None]) -> Callable[..., None]:
        """A function for arrays on a device."""

        def launch(*arrays: Any, stream: Any) -> None:
            with using(memory_of(arrays, stream)):
                run(*arrays)

        return launch

    # ----- The kernel -----

    def zeros(self, shape: Sequence[int], dtype: Any) -> Any:
        found = memory().empty(shape, dtype)
        memory().fill(found, 0)
        return found

    def present(self, inputs: Arrays) -> dict[str, Any]:
        return {
            name: array[()] if isinstance(array, np.ndarray) and name not in self.form.ranks else array
            for name, array in zip(self.inputs, inputs, strict=True)
        }

    def run(self, *arrays: np.ndarray) -> None:
        count = len(self.inputs)
        given = self.present(arrays[:count])
        for output, result in zip(self.outputs, arrays[count:], strict=True):
            memory().fill(result, given.get(str(output), 0))
            given[str(output)] = result
        self.run_kernel(*self.arguments(given))

    @computed_once
    def raised(self) -> int:
        """Kernels of GPUs raise nothing."""
        return NOTHING

    def run_kernel(self, *arguments: Any) -> None:
        """Launch the user's kernel."""
        self.refuse_atomics([name for name in self.form.added if is_float(self.form.dtypes[name])])
        kernel, given = self.user_kernel, list(arguments)
        numbers = [name for name in self.order if name in self.form.dtypes and name not in self.form.ranks]
        if any(not isinstance(given[self.order.index(name)], int | float | np.generic) for name in numbers):
            kernel = self.wrapper(numbers)
            for name in numbers:
                place = self.order.index(name)
                given[place] = memory().element(given[place], self.form.dtypes[name])
        read = [k for k, name in enumerate(self.order) if name not in self.form.written]
        memory().launch(kernel, self.launch.grid, self.launch.block, given, read)

    def wrapper(self, numbers: Sequence[str]) -> Any:
        """The kernel with arrays of one element for numbers, which are in the memory of the device."""
        if "wrapper" not in self.made:
            given = ", ".join(f"{name}[0]" if name in numbers else name for name in self.order)
            text = f"def launched({', '.join(self.order)}):\n    kernel({given})\n"
            function = numba_cuda().jit(device=True)(python_function(self.user_kernel))
            self.made["wrapper"] = compiled("launched", text, {"kernel": function})
        return self.made["wrapper"]

    def refuse_atomics(self, added: Sequence[str]) -> None:
        """Raise if results depend on the order of threads, but must not."""
        if added and SETTINGS.deterministic:
            message = (
                f"{self.form.name}() and its derivatives add to elements of `{min(added)}` in an order that is not the "
                "same each time, which nb.cuda.deterministic() forbids. Switch it off, or give nb.primitive kernels "
                "that add in a fixed order."
            )
            raise ArgumentError(message)

    # ----- Derivatives -----

    def of_launch(self, key: Sequence[Any], make: Callable[[], Any]) -> Any:
        """A derivative, which launches of one kind have in common."""
        whole = (self.launch.kind, *key)
        if whole not in self.made:
            self.made[whole] = make()
        return self.made[whole]

    def thread_reverse(self, asked: Sequence[str]) -> tuple[ThreadKernel, Adjoint]:
        """The reverse kernel for some inputs."""
        return self.of_launch(("reverse", *asked), lambda: reverse_threads(self.form, asked, self.launch))

    def run_reverse(
        self, asked: Sequence[str], given: dict[str, Any], cotangents: dict[str | int, Any], gradients: dict[str, Any]
    ) -> None:
        kernel, adjoint = self.thread_reverse(asked)
        values = dict(given)
        for name in adjoint.arrays:
            target = gradients.get(name)
            values[bar(name)] = self.filled(given[name], cotangents.get(name, 0), target)
        for name, target in gradients.items():
            if name not in adjoint.arrays:
                memory().fill(target, 0)
        self.run_threads(kernel, values, gradients)

    def filled(self, like: Any, value: Any, target: Any = None) -> Any:
        """An array with some content: the target, or a new one like another."""
        found = memory().empty(like.shape, like.dtype) if target is None else target
        memory().fill(found, value)
        return found

    def run_forward(
        self, moved: Sequence[str], given: dict[str, Any], tangents: dict[str, Any], results: dict[str | int, Any]
    ) -> None:
        key = ("forward", *moved)
        kernel: ThreadKernel = self.of_launch(key, lambda: forward_threads(self.form, moved, self.launch))
        values = dict(given)
        for name in self.form.written:
            values[name] = self.filled(given[name], given[name])
        for name in {*kernel.moving, *map(str, results)}:
            if name in self.form.ranks:
                values[dot(name)] = self.filled(given[name], tangents.get(name, 0), results.get(name))
            else:
                values[dot(name)] = tangents[name]
        self.run_threads(kernel, values, {})

    def run_second(
        self,
        asked: Sequence[str],
        given: dict[str, Any],
        cotangents: dict[str | int, Any],
        tangents: dict[str, Any],
        back_tangents: dict[str | int, Any],
        gradients: dict[str, Any],
    ) -> None:
        _, adjoint = self.thread_reverse(asked)
        moved = [*tangents, *[bar(str(o)) for o in back_tangents if o in adjoint.arrays]]
        key = ("second", tuple(asked), tuple(moved))
        kernel: ThreadKernel = self.of_launch(key, lambda: second_threads(self.form, adjoint, moved, self.launch))
        values = {**given, **{dot(name): t for name, t in tangents.items()}}
        for name in adjoint.arrays:
            values[bar(name)] = self.filled(given[name], cotangents.get(name, 0))
            values[dot(bar(name))] = self.filled(given[name], back_tangents.get(name, 0), gradients.get(name))
        for name, target in gradients.items():
            if name not in adjoint.arrays:
                memory().fill(target, 0)
        for name in kernel.moving:
            if dot(name) not in values:
                values[dot(name)] = self.zeros(values[name].shape, values[name].dtype)
        self.run_threads(kernel, values, gradients)

    def run_forward_again(self, *args: Any, **kwargs: Any) -> None:
        message = (
            f"{self.form.name}() is a kernel of cuda.jit, of which forward mode over forward mode is not made. Take "
            "nb.jvp of nb.grad, nb.hessian or nb.hvp."
        )
        raise ArgumentError(message)

    def run_threads(self, kernel: ThreadKernel, values: dict[str, Any], gradients: Mapping[str, Any]) -> None:
        """Launch a derivative; the sums of numbers go into their gradients."""
        self.refuse_atomics(kernel.added)
        place = memory()
        launch, arrays = self.launch, kernel.arrays
        for name in kernel.numbers:
            values[name] = place.element(values[name], self.form.dtypes.get(name, "float64"))
        for name, source in arrays.copies.items():
            values[name] = self.filled(values[source], values[source])
        if kernel.counts is not None:
            lengths = self.lengths(kernel, values)
            for name, dtype in arrays.columns.items():
                values[name] = place.empty((lengths[name], launch.blocks * launch.threads), dtype)
        for name in arrays.sums:
            values[name] = place.empty((launch.blocks,), "float64")
        read = [k for k, name in enumerate(kernel.parameters) if name in kernel.untouched]
        place.launch(kernel.function, launch.grid, launch.block, [values[name] for name in kernel.parameters], read)
        for name in arrays.sums:
            total = self.of_launch(("total",), lambda: compiled("total", _TOTAL, {}))
            if name in arrays.places:
                array, index = arrays.places[name]
                shape = values[array].shape
                if any(k >= n for k, n in zip(index, shape, strict=True)):
                    continue  # no thread has read it
                result = place.element_at(values[array], int(np.ravel_multi_index(index, shape)))
            else:
                target = gradients[name.removesuffix("_sums")]
                result = place.element(target, target.dtype)
            place.launch(total, (1, 1, 1), (32, 1, 1), [values[name], result], [0])

    def lengths(self, kernel: ThreadKernel, values: Mapping[str, Any]) -> dict[str, int]:
        """The lengths of the columns that a launch brings."""
        counts = kernel.counts
        assert counts is not None
        given: list[Any] = []
        for name in self.form.parameters:
            if name not in self.form.ranks:
                given.append(memory().host(values[name])[0] if name in counts.arguments else 0)
            elif name in counts.read:
                given.append(memory().host(values[name]))
            else:
                given.append(np.empty(values[name].shape, self.form.dtypes[name]))
        found = counts.lengths(given, self.launch.grid, self.launch.block)
        size = sum(found[name] * np.dtype(dtype).itemsize for name, dtype in kernel.arrays.columns.items())
        size *= self.launch.blocks * self.launch.threads
        if size > _MOST_BYTES:
            message = (
                f"The derivative of {self.form.name}() needs {size / 2**30:.1f} GiB for what its loops carry or "
                "overwrite in all threads. Launch fewer threads, each with more elements, or split the loop."
            )
            raise ArgumentError(message)
        return found


class _DeviceAgreement(Agreement):
    """The comparison with differences, in this machine's memory: Numba copies its arrays to the device."""

    def before(self, wanted: Sequence[str], given: dict[str, Any], cotangents: dict[str | int, Any]) -> None:
        if self.is_due(("reverse", *wanted)):
            shown = {o: np.empty(g.shape) for o, g in cotangents.items()}
            given = self.downloaded(given)
            with using(HostMemory()):
                super().before(wanted, given, shown)

    def before_forward(self, moved: Sequence[str], given: dict[str, Any], shapes: dict[str | int, Any]) -> None:
        if self.is_due(("forward", *moved)):
            given = self.downloaded(given)
            with using(HostMemory()):
                super().before_forward(moved, given, shapes)

    def is_due(self, key: tuple[str, ...]) -> bool:
        """Whether a comparison may come."""
        return self.when == "always" or (self.when == "first" and key not in self.done)

    def downloaded(self, given: dict[str, Any]) -> dict[str, Any]:
        """Arguments in this machine's memory."""
        return {name: memory().host(value) for name, value in given.items()}


class ThreadText:
    """The reverse kernel as text.

    Attributes
    ----------
    source : str
        A file of Python: the reverse kernel, and in words the arguments that its launch brings.
    """

    def __init__(self, spec: LaunchedKernel) -> None:
        self.spec = spec

    def __repr__(self) -> str:
        return self.source

    @property
    def source(self) -> str:
        """The text."""
        spec = self.spec
        kernel, adjoint = spec.thread_reverse(spec.differentiable_inputs)
        arrays = kernel.arrays
        lines = [
            f"`{bar(n)}` has the cotangent of `{n}` after the kernel, and gets that before." for n in adjoint.arrays
        ]
        lines += [f"`{name}_at` is an array of one element." for name in kernel.parameters if name in kernel.numbers]
        lines += [f"`{name}` is a copy of `{source}`." for name, source in arrays.copies.items()]
        lines += [f"`{name}` has a column for each thread, of {dtype}." for name, dtype in arrays.columns.items()]
        for name in arrays.sums:
            target = f"`{name.removesuffix('_sums')}`"
            if name in arrays.places:
                array, index = arrays.places[name]
                target = f"the gradient at `{array}[{', '.join(map(str, index))}]`"
            lines.append(f"`{name}` has an element for each block; their sum belongs to {target}.")
        head = (
            f"The reverse kernel of {spec.form.name}(), written by nbgrad for blocks of {spec.launch.threads} threads."
        )
        about = "\n".join([f'"""{head}', *[f"\n{line}" for line in lines[:1]], *lines[1:], '"""'])
        return f"{about}\n\nimport math\n\nimport numpy as np\nfrom numba import cuda\n\n\n{kernel.source}"
