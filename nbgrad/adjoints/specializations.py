"""One kernel for one set of dtypes and ranks, with its derivatives, on arrays.

In: a kernel and examples of its arguments. Out: `Specialization`, which runs the kernel, its reverse and its tangent
kernel on arrays. Called by kernel.py and kernel_rules.py. Derivatives are made when they are asked for: reverse
kernels for the arguments that are asked for, tangent kernels for those that move.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..config import interpret
from ..errors import ArgumentError, NbgradError
from ..extend.scalar_code import python_function
from ..process.once import computed_once
from .agreement import Agreement
from .cotangents import bar
from .dataflow import is_float
from .derived import (
    Derived,
    Forward,
    extents_kernel,
    forward_again_kernel,
    forward_kernel,
    reverse_kernel,
    second_kernel,
)
from .raised_errors import DIVISIONS, STATEMENTS, raises
from .reading.array_values import View
from .reading.kernel_form import ScalarForm
from .reading.packed_arguments import leaves_of, read_back, rebuilt, taken_apart
from .reading.scalar_form import scalar_form
from .reverse import Adjoint
from .tangent import dot

Arrays = Sequence[np.ndarray]


class Specialization:
    """A kernel for arguments of some dtypes and ranks.

    Attributes
    ----------
    form : ScalarForm
        The kernel as statements.
    inputs : list of str
        Its arguments that callers give, in order.
    outputs : list
        Names of arguments that it writes to, and positions of results.
    rules : dict
        Its derivatives as primitives, which kernel_rules.py keeps here.
    """

    def __init__(
        self, function: Any, examples: dict[str, Any], left_out: Sequence[str], constant: Sequence[str], check: str
    ) -> None:
        self.function: Any = python_function(function) if interpret() else function
        self.form: ScalarForm = scalar_form(function, examples)
        self.examples, self.order = examples, list(examples)
        self.left_out = list(left_out)
        self.constant = frozenset([leaf for name in constant for leaf, _ in leaves_of(name, examples[name])])
        self.inputs = [name for name in self.form.parameters if name not in self.left_out]
        form = self.form
        returned = [k for k, result in enumerate(form.results) if k not in form.same and isinstance(result, str | View)]
        self.outputs: list[str | int] = [*form.written, *returned]
        self.check = Agreement(self, check)
        self.rules: dict[Any, Any] = {}
        self.reverses: dict[tuple[str, ...], tuple[Derived, Adjoint]] = {}
        self.forwards: dict[tuple[str, ...], Forward] = {}
        self.seconds: dict[tuple[Any, ...], Forward] = {}

    # ----- Shapes and dtypes -----

    def dtype_of(self, output: str | int) -> np.dtype[Any]:
        """The dtype of a result."""
        return np.dtype(self.form.dtype_of(output if isinstance(output, str) else self.form.results[output]))

    @computed_once
    def differentiable_inputs(self) -> list[str]:
        """The inputs of floats that are not declared constant."""
        return [name for name in self.inputs if is_float(self.form.dtypes[name]) and name not in self.constant]

    @computed_once
    def float_outputs(self) -> list[str | int]:
        """The results of floats."""
        return [output for output in self.outputs if self.dtype_of(output).kind == "f"]

    @computed_once
    def _extents(self) -> tuple[list[int], Any, set[str]]:
        views = [k for k in self.outputs if isinstance(k, int) and isinstance(self.form.results[k], View)]
        atoms = [one for k in views for one in self.form.results[k].extents]
        derived, read = extents_kernel(self.form, atoms)
        return views, derived, read

    def result_shapes(
        self, values: dict[str, Any], shapes: dict[str, tuple[int, ...]]
    ) -> dict[str | int, tuple[int, ...]]:
        """The shapes of arrays that the kernel returns, given the numbers and the shapes among its arguments."""
        views, derived, read = self._extents
        if not views:
            return {}
        given: list[Any] = []
        for name in self.form.parameters:
            dtype = np.dtype(self.form.dtypes[name])
            if name in self.form.ranks:
                value = values.get(name)
                if name in read and value is None:
                    message = (
                        f"{self.form.name}() returns an array whose shape depends on the elements of `{name}`, which "
                        "are not known while it is recorded. Let it write to an array that is an argument."
                    )
                    raise ArgumentError(message)
                given.append(np.zeros(shapes[name], dtype) if value is None else value)
            else:
                if name not in values and re.search(rf"\b{name}\b", derived.text.partition("\n")[2]):
                    message = (
                        f"{self.form.name}() returns an array whose shape depends on `{name}`, which is not known "
                        "while it is recorded. Pass a plain integer, or let the kernel write to an argument."
                    )
                    raise ArgumentError(message)
                given.append(dtype.type(values.get(name, 0)))
        lengths = iter(derived.function(*given))
        return {k: tuple([max(0, int(next(lengths))) for _ in self.form.results[k].extents]) for k in views}

    # ----- Running the kernel -----

    def launcher(self, run: Callable[..., None]) -> Callable[..., None] | None:
        """The function that does the same as another one with arrays on a device, if there is one."""
        return None

    def zeros(self, shape: Sequence[int], dtype: Any) -> Any:
        """An array of zeros where the kernel's arrays are."""
        return np.zeros(shape, dtype)

    def arguments(self, given: dict[str, Any]) -> list[Any]:
        """The arguments of the kernel, in its order, given those that are numbers and arrays."""
        return [rebuilt(name, example, given) for name, example in self.examples.items()]

    def called(self, given: dict[str, Any]) -> list[Any]:
        """The results of a call of the kernel, which writes to arrays that are given."""
        arguments = self.arguments(given)
        found = self.function(*arguments)
        for name, argument in zip(self.examples, arguments, strict=True):
            read_back(name, argument, given, self.form.written)
        return self.returned(found)

    def returned(self, found: Any) -> list[Any]:
        """The results of the kernel, as real arrays and numbers."""
        parts = _flat(found)
        return [taken_apart(one) if k in self.form.complex else one for k, one in enumerate(parts)]

    def present(self, inputs: Arrays) -> dict[str, Any]:
        """Arguments by name: numbers for those that the kernel has as numbers."""
        return {
            name: array if name in self.form.ranks else array[()]
            for name, array in zip(self.inputs, inputs, strict=True)
        }

    def run(self, *arrays: np.ndarray) -> None:
        """The kernel: inputs, then arrays for its results."""
        count = len(self.inputs)
        given, results = self.present(arrays[:count]), arrays[count:]
        for output, result in zip(self.outputs, results, strict=True):
            if isinstance(output, str):
                result[...] = given.get(output, 0)
                given[output] = result
        parts = self.called(given)
        for output, result in zip(self.outputs, results, strict=True):
            if isinstance(output, int):
                result[...] = parts[output]

    def values(self, given: dict[str, Any]) -> dict[str | int, Any]:
        """The results of floats; the arguments stay as they are."""
        own = {**given, **{name: np.array(given[name]) for name in self.form.written}}
        parts = self.called(own)
        return {o: own[o] if isinstance(o, str) else parts[o] for o in self.float_outputs}

    @computed_once
    def raised(self) -> int:
        """The kind of code that may raise in the kernel, of which derivatives know nothing."""
        return raises(self.function)

    def raise_before(self, given: dict[str, Any]) -> None:
        """Call a kernel that raises errors of its own, to raise what it raises."""
        if self.raised == STATEMENTS:
            self.values(given)

    def raise_after(self, given: dict[str, Any], derivatives: Iterable[Any]) -> None:
        """Call a kernel that divides where a derivative is not finite, to raise what it raises, as for 1 / 0."""
        if self.raised == DIVISIONS and not all(np.isfinite(one).all() for one in derivatives):
            self.values(given)

    # ----- Derivatives -----

    def derived(self, make: Callable[..., Any], *arguments: Any) -> Any:
        """The result of `make`; a fault of nbgrad's own says so, since users would look for it in their kernel."""
        try:
            return make(self.form, *arguments)
        except NbgradError:
            raise
        except Exception as error:
            message = (
                f"nbgrad has failed to derive {self.form.name}(), which is a fault of its own ({type(error).__name__}: "
                f"{error}). Please report the kernel; nb.primitive takes a rule of your own."
            )
            raise ArgumentError(message) from error

    def reverse(self, asked: Sequence[str]) -> tuple[Derived, Adjoint]:
        """The reverse kernel for some inputs."""
        key = tuple(asked)
        if key not in self.reverses:
            self.reverses[key] = self.derived(reverse_kernel, asked)
        return self.reverses[key]

    def forward(self, moved: Sequence[str]) -> Forward:
        """The tangent kernel for some inputs that move."""
        key = tuple(moved)
        if key not in self.forwards:
            self.forwards[key] = self.derived(forward_kernel, moved)
        return self.forwards[key]

    def second(self, asked: Sequence[str], moved: Sequence[str]) -> Forward:
        """The tangent of a reverse kernel."""
        key = (tuple(asked), tuple(moved))
        if key not in self.seconds:
            self.seconds[key] = self.derived(second_kernel, self.reverse(asked)[1], moved)
        return self.seconds[key]

    def forward_again(self, moved: Sequence[str], again: Sequence[str]) -> Forward:
        """The tangent of a tangent kernel."""
        key = ("again", tuple(moved), tuple(again))
        if key not in self.seconds:
            self.seconds[key] = self.derived(forward_again_kernel, self.forward(moved), again)
        return self.seconds[key]

    def run_reverse(
        self, asked: Sequence[str], given: dict[str, Any], cotangents: dict[str | int, Any], gradients: dict[str, Any]
    ) -> None:
        """Write the gradients of the asked inputs."""
        derived, adjoint = self.reverse(asked)
        bars = self.bars(adjoint, given, cotangents, gradients, derived.filled)
        seeds = [plain(cotangents[k]) for k in adjoint.seeds]
        found = derived.function(*[given[name] for name in self.form.parameters], *bars, *seeds)
        for name, value in zip(adjoint.numbers, found or (), strict=True):
            gradients[name][...] = value

    def run_forward(
        self, moved: Sequence[str], given: dict[str, Any], tangents: dict[str, Any], results: dict[str | int, Any]
    ) -> None:
        """Write the tangents of the results of floats."""
        form = self.form
        forward = self.forward(moved)
        moves: list[Any] = []
        for name in forward.moving:
            if name not in form.ranks:
                moves.append(plain(np.asarray(tangents[name])))
            elif name in results:
                results[name][...] = tangents.get(name, 0)
                moves.append(results[name])
            else:
                moves.append(tangents[name] if name in tangents else np.zeros(given[name].shape, given[name].dtype))
        values = dict(given)
        for name in form.written:
            values[name] = given[name].copy()
            if name in results and name not in forward.moving:
                results[name][...] = 0
        numbers = iter(forward.derived.function(*[values[name] for name in form.parameters], *moves) or ())
        for output, result in results.items():
            if isinstance(output, int):
                result[...] = next(numbers)

    def bars(
        self,
        adjoint: Adjoint,
        given: dict[str, Any],
        cotangents: dict[str | int, Any],
        gradients: dict[str, Any],
        filled: frozenset[str] = frozenset(),
    ) -> list[np.ndarray]:
        """The cotangents of arrays, with those of their final contents in them; `filled` ones may hold anything."""
        found: list[np.ndarray] = []
        for name in adjoint.arrays:
            target = gradients.get(name)
            if target is None and name in cotangents and name not in adjoint.changed:
                found.append(cotangents[name])
                continue
            if target is None:
                target = np.empty(given[name].shape, given[name].dtype)
            if bar(name) not in filled:
                target[...] = cotangents.get(name, 0)
            found.append(target)
        for name, target in gradients.items():
            if name not in adjoint.arrays and name not in adjoint.numbers:
                target[...] = 0
        return found

    def run_second(
        self,
        asked: Sequence[str],
        given: dict[str, Any],
        cotangents: dict[str | int, Any],
        tangents: dict[str, Any],
        back_tangents: dict[str | int, Any],
        gradients: dict[str, Any],
    ) -> None:
        """Write the tangents of the gradients of the asked inputs, given tangents of inputs and of cotangents."""
        form = self.form
        _, adjoint = self.reverse(asked)
        moved = [name for name in tangents if name in form.parameters]
        moved += [bar(o) for o in back_tangents if isinstance(o, str) and o in adjoint.arrays]
        moved += [adjoint.seeds[o] for o in back_tangents if isinstance(o, int) and o in adjoint.seeds]
        second = self.second(asked, moved)
        values: dict[str, Any] = {name: given[name] for name in form.parameters}
        moves: dict[str, Any] = dict(tangents)
        for name in adjoint.arrays:
            shape, dtype = given[name].shape, given[name].dtype
            values[bar(name)] = np.zeros(shape, dtype) + cotangents.get(name, 0)
            target = gradients.get(name)
            moves[bar(name)] = np.zeros(shape, dtype) if target is None else target
            moves[bar(name)][...] = back_tangents.get(name, 0)
        for output, seed in adjoint.seeds.items():
            values[seed] = plain(cotangents[output])
            if output in back_tangents:
                moves[seed] = back_tangents[output]
        for name, target in gradients.items():
            if bar(name) not in second.moving and name not in adjoint.numbers:
                target[...] = back_tangents.get(name, 0) if name in adjoint.arrays else 0
        given_moves = [plain(moves[name]) if name in moves else np.zeros_like(values[name]) for name in second.moving]
        found = second.derived.function(*[values[name] for name in adjoint.parameters], *given_moves) or ()
        for name, value in zip(adjoint.numbers, found, strict=True):
            gradients[name][...] = value

    def run_forward_again(
        self,
        moved: Sequence[str],
        given: dict[str, Any],
        tangents: dict[str, Any],
        again: dict[str, Any],
        of_tangents: dict[str, Any],
        results: dict[str | int, Any],
    ) -> None:
        """Write the tangents of the tangents of the results, given tangents of inputs and of their tangents."""
        form, first = self.form, self.forward(moved)
        moves = {**again, **{dot(name): t for name, t in of_tangents.items() if name in first.moving}}
        second = self.forward_again(moved, list(moves))
        values: dict[str, Any] = {
            name: given[name].copy() if name in form.written else given[name] for name in form.parameters
        }
        for name in first.moving:
            zero = np.zeros(np.shape(given[name]), form.dtypes[name])
            values[dot(name)] = plain(np.array(tangents.get(name, zero)))
        arguments: list[Any] = []
        for name in second.moving:
            zero = np.zeros(np.shape(values[name]), np.asarray(values[name]).dtype)
            arguments.append(plain(np.array(moves.get(name, zero))))
        found = second.derived.function(*[values[name] for name in first.derived.parameters], *arguments) or ()
        written = dict(zip(second.moving, arguments, strict=True))
        numbers = iter(found)
        for output, result in results.items():
            result[...] = next(numbers) if isinstance(output, int) else written.get(dot(output), 0)


def plain(value: Any) -> Any:
    """An array, or the number that an array without axes holds."""
    return value[()] if value.ndim == 0 else value


def _flat(found: Any) -> list[Any]:
    """The results of a kernel, without their tuples."""
    return [leaf for one in found for leaf in _flat(one)] if isinstance(found, tuple) else [found]
