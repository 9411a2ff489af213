"""One kernel for one set of dtypes and ranks, and its derivatives, as primitives of the graph.

In: a kernel and examples of its arguments. Out: `Specialization`, whose `primitive` is what the graph calls. Called
by kernel.py. The primitives' rules are derived when they are asked for: reverse for the arguments that are asked for,
forward for those that move, and the forward rule of the reverse one. Reverse mode through the reverse kernel is its
forward rule: the Hessian of a result is symmetric.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..config import interpret
from ..errors import ArgumentError
from ..extend.custom_kernels import Primitive
from ..extend.scalar_code import python_function
from ..graph.custom_calls import Call, Kernel
from ..graph.ir import Node, zeros
from ..process.once import computed_once
from .agreement import Agreement
from .array_values import View
from .cotangents import bar
from .dataflow import is_float
from .derived import Derived, Forward, extents_kernel, forward_kernel, reverse_kernel, second_kernel
from .kernel_form import ScalarForm
from .reverse import Adjoint
from .scalar_form import scalar_form

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
    """

    def __init__(
        self, function: Any, examples: dict[str, Any], left_out: Sequence[str], constant: Sequence[str], check: str
    ) -> None:
        self.function: Any = python_function(function) if interpret() else function
        self.form: ScalarForm = scalar_form(function, examples)
        self.statics = {name: value for name, value in examples.items() if name not in self.form.parameters}
        self.order = list(examples)
        self.left_out = list(left_out)
        self.constant = frozenset(constant)
        self.inputs = [name for name in self.form.parameters if name not in self.left_out]
        form = self.form
        returned = [k for k, result in enumerate(form.results) if k not in form.same and isinstance(result, str | View)]
        self.outputs: list[str | int] = [*form.written, *returned]
        self.check = Agreement(self, check)
        self.reverses: dict[tuple[str, ...], tuple[Derived, Adjoint]] = {}
        self.forwards: dict[tuple[str, ...], Forward] = {}
        self.seconds: dict[tuple[tuple[str, ...], tuple[str, ...]], Forward] = {}

    # ----- Shapes and dtypes -----

    def dtype_of(self, output: str | int) -> np.dtype[Any]:
        """The dtype of a result."""
        return np.dtype(self.form.dtype_of(output if isinstance(output, str) else self.form.results[output]))

    @property
    def differentiable_inputs(self) -> list[str]:
        """The inputs of floats that are not declared constant."""
        return [name for name in self.inputs if is_float(self.form.dtypes[name]) and name not in self.constant]

    @property
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

    def arguments(self, given: dict[str, Any]) -> list[Any]:
        """The arguments of the kernel, in its order, given those that are numbers and arrays."""
        return [given[name] if name in given else self.statics[name] for name in self.order]

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
        found = self.function(*self.arguments(given))
        parts = found if isinstance(found, tuple) else (found,)
        for output, result in zip(self.outputs, results, strict=True):
            if isinstance(output, int):
                result[...] = parts[output]

    # ----- Derivatives -----

    def reverse(self, asked: Sequence[str]) -> tuple[Derived, Adjoint]:
        """The reverse kernel for some inputs."""
        key = tuple(asked)
        if key not in self.reverses:
            self.reverses[key] = reverse_kernel(self.form, asked)
        return self.reverses[key]

    def forward(self, moved: Sequence[str]) -> Forward:
        """The tangent kernel for some inputs that move."""
        key = tuple(moved)
        if key not in self.forwards:
            self.forwards[key] = forward_kernel(self.form, moved)
        return self.forwards[key]

    def second(self, asked: Sequence[str], moved: Sequence[str]) -> Forward:
        """The tangent of a reverse kernel."""
        key = (tuple(asked), tuple(moved))
        if key not in self.seconds:
            self.seconds[key] = second_kernel(self.form, self.reverse(asked)[1], moved)
        return self.seconds[key]

    def run_reverse(
        self, asked: Sequence[str], given: dict[str, Any], cotangents: dict[str | int, Any], gradients: dict[str, Any]
    ) -> None:
        """Write the gradients of the asked inputs."""
        derived, adjoint = self.reverse(asked)
        bars = self.bars(adjoint, given, cotangents, gradients)
        seeds = [_plain(cotangents[k]) for k in adjoint.seeds]
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
                moves.append(_plain(np.asarray(tangents[name])))
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
        self, adjoint: Adjoint, given: dict[str, Any], cotangents: dict[str | int, Any], gradients: dict[str, Any]
    ) -> list[np.ndarray]:
        """The cotangents of arrays, with those of their final contents in them."""
        found: list[np.ndarray] = []
        for name in adjoint.arrays:
            target = gradients.get(name)
            if target is None:
                target = np.empty(given[name].shape, given[name].dtype)
            target[...] = cotangents.get(name, 0)
            found.append(target)
        for name, target in gradients.items():
            if name not in adjoint.arrays and name not in adjoint.numbers:
                target[...] = 0
        return found

    @computed_once
    def primitive(self) -> DerivedPrimitive:
        """The kernel as a primitive."""
        return DerivedPrimitive(self)


def _plain(value: Any) -> Any:
    return value[()] if value.ndim == 0 else value


class DerivedPrimitive(Primitive):
    """A kernel whose rules are derived when they are asked for."""

    def __init__(self, spec: Specialization) -> None:
        super().__init__(Kernel(spec.form.name, spec.run, None, False), None)
        self.spec = spec

    def shaped(self, shape: Callable[..., Any]) -> DerivedPrimitive:
        """The same primitive with a rule for the shapes of its results."""
        found = DerivedPrimitive(self.spec)
        found.kernel, found.shape = self.kernel, shape
        return found

    def cotangents(
        self,
        call: Call,
        inputs: Sequence[Node],
        outputs: Sequence[Node],
        seeds: Sequence[Node],
        asked: Sequence[bool],
        why: str,
    ) -> list[Node | None]:
        spec = self.spec
        wanted = [n for n, one in zip(spec.inputs, asked, strict=True) if one and n in spec.differentiable_inputs]
        if not wanted:
            return [None] * len(inputs)
        rule = ReverseRule(spec, wanted)
        found = dict(zip(wanted, rule.apply(inputs, seeds), strict=True))
        return [found.get(name) for name in spec.inputs]

    def tangents(
        self, call: Call, inputs: Sequence[Node], outputs: Sequence[Node], moves: Sequence[Node | None], why: str
    ) -> list[Node]:
        spec = self.spec
        moving = {
            name: t
            for name, t in zip(spec.inputs, moves, strict=True)
            if t is not None and name in spec.differentiable_inputs
        }
        layouts = [(output.shape, output.dtype) for output in outputs if output.dtype.kind == "f"]
        if not moving:
            return [zeros(shape, dtype) for shape, dtype in layouts]
        return ForwardRule(spec, list(moving)).apply(inputs, list(moving.values()), layouts)


class _RulePrimitive(Primitive):
    """A derivative of a kernel as a primitive itself."""

    def __init__(self, spec: Specialization, title: str) -> None:
        super().__init__(Kernel(title, self.run, None, False), None)
        self.spec = spec
        self.layouts: list[Any] = []

    def run(self, *arrays: np.ndarray) -> None:
        """Write the results."""
        raise NotImplementedError

    def made(self, nodes: Sequence[Node], layouts: Sequence[Any]) -> list[Node]:
        """The results for some nodes."""
        call = Call(self.kernel, tuple([node.ndim for node in nodes]), tuple(layouts), ())
        return self.results(call, nodes)

    def third(self) -> Any:
        """Raise the error for derivatives that are not made."""
        message = (
            f"{self.spec.form.name}() has first and second derivatives, but a third one is asked for. Differentiate a "
            "kernel twice at most, or give nb.primitive rules of your own."
        )
        raise ArgumentError(message)

    def cotangents(
        self,
        call: Call,
        inputs: Sequence[Node],
        outputs: Sequence[Node],
        seeds: Sequence[Node],
        asked: Sequence[bool],
        why: str,
    ) -> list[Node | None]:
        return self.third()

    def tangents(
        self, call: Call, inputs: Sequence[Node], outputs: Sequence[Node], moves: Sequence[Node | None], why: str
    ) -> list[Node]:
        return self.third()


class ReverseRule(_RulePrimitive):
    """Inputs and cotangents of the results of floats; gives the gradients of the wanted inputs."""

    def __init__(self, spec: Specialization, wanted: Sequence[str]) -> None:
        super().__init__(spec, f"the vjp of {spec.form.name}")
        self.wanted = list(wanted)

    def apply(self, inputs: Sequence[Node], seeds: Sequence[Node]) -> list[Node]:
        """The gradients."""
        by_name = dict(zip(self.spec.inputs, inputs, strict=True))
        return self.made([*inputs, *seeds], [(by_name[n].shape, by_name[n].dtype) for n in self.wanted])

    def split(self, arrays: Arrays) -> tuple[dict[str, Any], dict[str | int, Any], Arrays]:
        """The arguments of the kernel, the cotangents by output, and the rest."""
        spec = self.spec
        count = len(spec.inputs)
        given = spec.present(arrays[:count])
        ends = count + len(spec.float_outputs)
        cotangents = dict(zip(spec.float_outputs, arrays[count:ends], strict=True))
        for name in spec.left_out:
            given[name] = np.zeros(cotangents[name].shape, spec.form.dtypes[name])
        return given, cotangents, arrays[ends:]

    def run(self, *arrays: np.ndarray) -> None:
        given, cotangents, results = self.split(arrays)
        self.spec.check.before(self.wanted, given, cotangents)
        self.spec.run_reverse(self.wanted, given, cotangents, dict(zip(self.wanted, results, strict=True)))

    def cotangents(
        self,
        call: Call,
        inputs: Sequence[Node],
        outputs: Sequence[Node],
        seeds: Sequence[Node],
        asked: Sequence[bool],
        why: str,
    ) -> list[Node | None]:
        """By symmetry of the Hessian: the tangent of the reverse kernel along the cotangents of the gradients."""
        spec = self.spec
        count = len(spec.inputs)
        primals, backs = inputs[:count], inputs[count:]
        names = [
            n for n, one in zip(spec.inputs, asked[:count], strict=True) if one and n in spec.differentiable_inputs
        ]
        found: dict[str, Node] = {}
        if names:
            rule = SecondRule(spec, names, self.wanted, [])
            found = dict(zip(names, rule.apply(primals, backs, list(seeds), []), strict=True))
        by_output: list[Node | None] = [None] * len(backs)
        if any(asked[count:]):
            layouts = [(back.shape, back.dtype) for back in backs]
            by_output = list(ForwardRule(spec, self.wanted).apply(primals, list(seeds), layouts))
        return [*[found.get(name) for name in spec.inputs], *by_output]

    def tangents(
        self, call: Call, inputs: Sequence[Node], outputs: Sequence[Node], moves: Sequence[Node | None], why: str
    ) -> list[Node]:
        spec = self.spec
        count = len(spec.inputs)
        moving = {
            name: t
            for name, t in zip(spec.inputs, moves[:count], strict=True)
            if t is not None and name in spec.differentiable_inputs
        }
        backs = {k: t for k, t in enumerate(moves[count:]) if t is not None}
        layouts = [(output.shape, output.dtype) for output in outputs if output.dtype.kind == "f"]
        if not moving and not backs:
            return [zeros(shape, dtype) for shape, dtype in layouts]
        rule = SecondRule(spec, self.wanted, list(moving), list(backs))
        return rule.apply(inputs[:count], inputs[count:], list(moving.values()), list(backs.values()))


class ForwardRule(_RulePrimitive):
    """Inputs, and tangents of those that move; gives the tangents of the results of floats."""

    def __init__(self, spec: Specialization, moved: Sequence[str]) -> None:
        super().__init__(spec, f"the jvp of {spec.form.name}")
        self.moved = list(moved)

    def apply(self, inputs: Sequence[Node], tangents: Sequence[Node], layouts: Sequence[Any]) -> list[Node]:
        """The tangents of the results."""
        self.layouts = list(layouts)
        return self.made([*inputs, *tangents], layouts)

    def run(self, *arrays: np.ndarray) -> None:
        spec, form = self.spec, self.spec.form
        count = len(spec.inputs)
        given = spec.present(arrays[:count])
        ends = count + len(self.moved)
        tangents = dict(zip(self.moved, arrays[count:ends], strict=True))
        results = dict(zip(spec.float_outputs, arrays[ends:], strict=True))
        for name in spec.left_out:
            given[name] = np.zeros(results[name].shape, form.dtypes[name])
        spec.check.before_forward(self.moved, given, {o: result.shape for o, result in results.items()})
        spec.run_forward(self.moved, given, tangents, results)

    def cotangents(
        self,
        call: Call,
        inputs: Sequence[Node],
        outputs: Sequence[Node],
        seeds: Sequence[Node],
        asked: Sequence[bool],
        why: str,
    ) -> list[Node | None]:
        """By symmetry again: along the tangents, the reverse kernel's tangent."""
        spec = self.spec
        count = len(spec.inputs)
        primals, tangents = inputs[:count], inputs[count:]
        names = [
            n for n, one in zip(spec.inputs, asked[:count], strict=True) if one and n in spec.differentiable_inputs
        ]
        found: dict[str, Node] = {}
        if names:
            rule = SecondRule(spec, names, self.moved, [])
            found = dict(zip(names, rule.apply(primals, seeds, list(tangents), []), strict=True))
        moves: dict[str, Node] = {}
        if any(asked[count:]):
            moves = dict(zip(self.moved, ReverseRule(spec, self.moved).apply(primals, seeds), strict=True))
        return [*[found.get(name) for name in spec.inputs], *[moves.get(name) for name in self.moved]]


class SecondRule(_RulePrimitive):
    """Inputs, cotangents, tangents of some inputs and of some cotangents; gives the tangents of the gradients."""

    def __init__(self, spec: Specialization, asked: Sequence[str], moved: Sequence[str], backs: Sequence[int]) -> None:
        super().__init__(spec, f"the second derivative of {spec.form.name}")
        self.asked, self.moved, self.backs = list(asked), list(moved), list(backs)

    def apply(
        self, inputs: Sequence[Node], seeds: Sequence[Node], tangents: Sequence[Node], backs: Sequence[Node]
    ) -> list[Node]:
        """The tangents of the gradients of the asked inputs."""
        by_name = dict(zip(self.spec.inputs, inputs, strict=True))
        layouts = [(by_name[name].shape, by_name[name].dtype) for name in self.asked]
        return self.made([*inputs, *seeds, *tangents, *backs], layouts)

    def run(self, *arrays: np.ndarray) -> None:
        spec, form = self.spec, self.spec.form
        given, cotangents, rest = ReverseRule.split(self, arrays)  # type: ignore[arg-type]
        tangents: dict[str, Any] = dict(zip(self.moved, rest, strict=False))
        rest = rest[len(self.moved) :]
        outputs = [spec.float_outputs[k] for k in self.backs]
        back_tangents: dict[str | int, Any] = dict(zip(outputs, rest, strict=False))
        gradients = dict(zip(self.asked, rest[len(self.backs) :], strict=True))
        _, adjoint = spec.reverse(self.asked)
        moved = [name for name in self.moved if name in form.parameters]
        moved += [bar(o) for o in outputs if isinstance(o, str) and o in adjoint.arrays]
        moved += [adjoint.seeds[o] for o in outputs if isinstance(o, int) and o in adjoint.seeds]
        second = spec.second(self.asked, moved)
        values: dict[str, Any] = {name: given[name] for name in form.parameters}
        moves: dict[str, Any] = dict(tangents)
        for name in adjoint.arrays:
            shape, dtype = given[name].shape, given[name].dtype
            values[bar(name)] = np.zeros(shape, dtype) + cotangents.get(name, 0)
            target = gradients.get(name)
            moves[bar(name)] = np.zeros(shape, dtype) if target is None else target
            moves[bar(name)][...] = back_tangents.get(name, 0)
        for output, seed in adjoint.seeds.items():
            values[seed] = _plain(cotangents[output])
            if output in back_tangents:
                moves[seed] = back_tangents[output]
        for name, target in gradients.items():
            if bar(name) not in second.moving and name not in adjoint.numbers:
                target[...] = back_tangents.get(name, 0) if name in adjoint.arrays else 0
        given_moves = [_plain(moves[name]) if name in moves else np.zeros_like(values[name]) for name in second.moving]
        found = second.derived.function(*[values[name] for name in adjoint.parameters], *given_moves) or ()
        for name, value in zip(adjoint.numbers, found, strict=True):
            gradients[name][...] = value
