"""A kernel and its derivatives as primitives of the graph.

In: a `Specialization`. Out: `DerivedPrimitive`. Called by kernel.py. Reverse mode gives the reverse kernel, forward
mode the tangent kernel, both as primitives that have derivatives themselves: the tangent of the reverse kernel serves
all second derivatives, in reverse mode along the cotangents, because the Hessian of a result is symmetric.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError
from ..extend.custom_kernels import Applied, Primitive, float_layouts
from ..graph.custom_calls import Call, Kernel
from ..graph.ir import Node, zeros
from .specializations import Specialization

Arrays = Sequence[np.ndarray]


class _OfKernel(Primitive):
    """A kernel or a derivative of one: `run` gets inputs, whose first are the kernel's, and writes into the rest."""

    def __init__(self, spec: Specialization, title: str, run: Callable[..., None]) -> None:
        super().__init__(Kernel(title, run, spec.launcher(run), False), None)
        self.spec = spec
        self.count = len(spec.inputs)

    def rule(self, kind: Callable[..., Any], *names: Sequence[Any]) -> Any:
        """A derivative for some names: the same object each time, so that programs with it are found again."""
        key = (kind, *map(tuple, names))
        if key not in self.spec.rules:
            self.spec.rules[key] = kind(self.spec, *names)
        return self.spec.rules[key]

    def applied(self, nodes: Sequence[Node], layouts: Sequence[Any]) -> list[Node]:
        """The results for some nodes."""
        return self.results(Call(self.kernel, tuple([node.ndim for node in nodes]), tuple(layouts), ()), nodes)

    def gradients_of(self, names: Sequence[str], nodes: Sequence[Node]) -> dict[str, Node]:
        """The results for some nodes, the first of them the kernel's inputs, which are like inputs of some names."""
        by_name = dict(zip(self.spec.inputs, nodes, strict=False))
        layouts = [(by_name[name].shape, by_name[name].dtype) for name in names]
        return dict(zip(names, self.applied(nodes, layouts), strict=True))

    def asked_names(self, asked: Sequence[bool]) -> list[str]:
        """The differentiable inputs of the kernel among those that are asked for."""
        kernel = zip(self.spec.inputs, asked, strict=False)
        return [name for name, one in kernel if one and name in self.spec.differentiable_inputs]

    def moving(self, moves: Sequence[Node | None]) -> dict[str, Node]:
        """The tangents of the kernel's differentiable inputs."""
        kernel = zip(self.spec.inputs, moves, strict=False)
        return {name: t for name, t in kernel if t is not None and name in self.spec.differentiable_inputs}

    def given(self, arrays: Arrays, like: dict[str | int, np.ndarray]) -> dict[str, Any]:
        """The arguments of the kernel by name; those that calls leave out are zeros, of the shapes of some arrays."""
        given = self.spec.present(arrays[: self.count])
        for name in self.spec.left_out:
            given[name] = self.spec.zeros(like[name].shape, self.spec.form.dtypes[name])
        return given

    def cotangents(self, at: Applied, seeds: Sequence[Node], asked: Sequence[bool], why: str) -> list[Node | None]:
        raise self.third()

    def tangents(self, at: Applied, moves: Sequence[Node | None], why: str) -> list[Node]:
        raise self.third()

    def third(self) -> ArgumentError:
        """The error for derivatives that are not made."""
        message = (
            f"{self.spec.form.name}() has first and second derivatives, but a third one is asked for. Differentiate a "
            "kernel twice at most, or give nb.primitive rules of your own."
        )
        return ArgumentError(message)


class DerivedPrimitive(_OfKernel):
    """A kernel; calls of it give the rule for the shapes of its results."""

    def __init__(self, spec: Specialization) -> None:
        super().__init__(spec, spec.form.name, spec.run)

    def cotangents(self, at: Applied, seeds: Sequence[Node], asked: Sequence[bool], why: str) -> list[Node | None]:
        names = self.asked_names(asked)
        found = self.rule(_Reverse, names).apply(at.inputs, seeds) if names else {}
        return [found.get(name) for name in self.spec.inputs]

    def tangents(self, at: Applied, moves: Sequence[Node | None], why: str) -> list[Node]:
        moving, layouts = self.moving(moves), float_layouts(at.outputs)
        if not moving:
            return [zeros(shape, dtype) for shape, dtype in layouts]
        return self.rule(_Forward, list(moving)).apply(at.inputs, list(moving.values()), layouts)


class _Reverse(_OfKernel):
    """Inputs and cotangents of the results of floats; gives the gradients of the wanted inputs."""

    def __init__(self, spec: Specialization, wanted: Sequence[str]) -> None:
        super().__init__(spec, f"the vjp of {spec.form.name}", self.run)
        self.wanted = list(wanted)

    def apply(self, inputs: Sequence[Node], seeds: Sequence[Node]) -> dict[str, Node]:
        """The gradients."""
        return self.gradients_of(self.wanted, [*inputs, *seeds])

    def run(self, *arrays: np.ndarray) -> None:
        """Write the gradients."""
        outputs = self.spec.float_outputs
        cotangents = dict(zip(outputs, arrays[self.count :], strict=False))
        gradients = dict(zip(self.wanted, arrays[self.count + len(outputs) :], strict=True))
        given = self.given(arrays, cotangents)
        self.spec.check.before(self.wanted, given, cotangents)
        self.spec.raise_before(given)
        self.spec.run_reverse(self.wanted, given, cotangents, gradients)
        self.spec.raise_after(given, gradients.values())

    def cotangents(self, at: Applied, seeds: Sequence[Node], asked: Sequence[bool], why: str) -> list[Node | None]:
        """By symmetry of the Hessian: the tangent of the reverse kernel along the cotangents of the gradients."""
        spec, count = self.spec, self.count
        primals, backs = at.inputs[:count], at.inputs[count:]
        names = self.asked_names(asked)
        found = self.rule(_Second, names, self.wanted, []).apply(primals, backs, seeds, []) if names else {}
        by_output: list[Node | None] = [None] * len(backs)
        if any(asked[count:]):
            by_output = list(self.rule(_Forward, self.wanted).apply(primals, seeds, float_layouts(backs)))
        return [*[found.get(name) for name in spec.inputs], *by_output]

    def tangents(self, at: Applied, moves: Sequence[Node | None], why: str) -> list[Node]:
        count, moving = self.count, self.moving(moves)
        backs = {k: t for k, t in enumerate(moves[count:]) if t is not None}
        if not moving and not backs:
            return [zeros(shape, dtype) for shape, dtype in float_layouts(at.outputs)]
        rule = self.rule(_Second, self.wanted, list(moving), list(backs))
        found = rule.apply(at.inputs[:count], at.inputs[count:], list(moving.values()), list(backs.values()))
        return list(found.values())


class _Forward(_OfKernel):
    """Inputs, and tangents of those that move; gives the tangents of the results of floats."""

    def __init__(self, spec: Specialization, moved: Sequence[str]) -> None:
        super().__init__(spec, f"the jvp of {spec.form.name}", self.run)
        self.moved = list(moved)

    def apply(self, inputs: Sequence[Node], tangents: Sequence[Node], layouts: Sequence[Any]) -> list[Node]:
        """The tangents of the results."""
        return self.applied([*inputs, *tangents], layouts)

    def run(self, *arrays: np.ndarray) -> None:
        """Write the tangents."""
        tangents = dict(zip(self.moved, arrays[self.count :], strict=False))
        results = dict(zip(self.spec.float_outputs, arrays[self.count + len(self.moved) :], strict=True))
        given = self.given(arrays, results)
        self.spec.check.before_forward(self.moved, given, {o: result.shape for o, result in results.items()})
        self.spec.raise_before(given)
        self.spec.run_forward(self.moved, given, tangents, results)
        self.spec.raise_after(given, results.values())

    def cotangents(self, at: Applied, seeds: Sequence[Node], asked: Sequence[bool], why: str) -> list[Node | None]:
        """By symmetry again: along the tangents, the reverse kernel's tangent."""
        spec, count = self.spec, self.count
        primals, tangents = at.inputs[:count], at.inputs[count:]
        names = self.asked_names(asked)
        found = self.rule(_Second, names, self.moved, []).apply(primals, seeds, tangents, []) if names else {}
        moves = self.rule(_Reverse, self.moved).apply(primals, seeds) if any(asked[count:]) else {}
        return [*[found.get(name) for name in spec.inputs], *[moves.get(name) for name in self.moved]]

    def tangents(self, at: Applied, moves: Sequence[Node | None], why: str) -> list[Node]:
        count, again, layouts = self.count, self.moving(moves), float_layouts(at.outputs)
        backs = {name: t for name, t in zip(self.moved, moves[count:], strict=True) if t is not None}
        if not again and not backs:
            return [zeros(shape, dtype) for shape, dtype in layouts]
        rule = self.rule(_ForwardAgain, self.moved, list(again), list(backs))
        return rule.applied([*at.inputs, *again.values(), *backs.values()], layouts)


class _ForwardAgain(_OfKernel):
    """Inputs, tangents, tangents of some inputs and of some tangents; gives the tangents of the tangents of results."""

    def __init__(self, spec: Specialization, moved: Sequence[str], again: Sequence[str], backs: Sequence[str]) -> None:
        super().__init__(spec, f"the second derivative of {spec.form.name}", self.run)
        self.moved, self.again, self.backs = list(moved), list(again), list(backs)

    def run(self, *arrays: np.ndarray) -> None:
        """Write the tangents of the tangents."""
        rest = list(arrays[self.count :])
        tangents, again, of_tangents = [
            {name: rest.pop(0) for name in names} for names in (self.moved, self.again, self.backs)
        ]
        results = dict(zip(self.spec.float_outputs, rest, strict=True))
        given = self.given(arrays, results)
        self.spec.run_forward_again(self.moved, given, tangents, again, of_tangents, results)


class _Second(_OfKernel):
    """Inputs, cotangents, tangents of some inputs and of some cotangents; gives the tangents of the gradients."""

    def __init__(self, spec: Specialization, asked: Sequence[str], moved: Sequence[str], backs: Sequence[int]) -> None:
        super().__init__(spec, f"the second derivative of {spec.form.name}", self.run)
        self.asked, self.moved = list(asked), list(moved)
        self.backs = [spec.float_outputs[k] for k in backs]

    def apply(
        self, inputs: Sequence[Node], seeds: Sequence[Node], tangents: Sequence[Node], backs: Sequence[Node]
    ) -> dict[str, Node]:
        """The tangents of the gradients of the asked inputs."""
        return self.gradients_of(self.asked, [*inputs, *seeds, *tangents, *backs])

    def run(self, *arrays: np.ndarray) -> None:
        """Write the tangents of the gradients."""
        outputs = self.spec.float_outputs
        cotangents = dict(zip(outputs, arrays[self.count :], strict=False))
        rest = arrays[self.count + len(outputs) :]
        tangents = dict(zip(self.moved, rest, strict=False))
        back_tangents = dict(zip(self.backs, rest[len(self.moved) :], strict=False))
        gradients = dict(zip(self.asked, rest[len(self.moved) + len(self.backs) :], strict=True))
        given = self.given(arrays, cotangents)
        self.spec.run_second(self.asked, given, cotangents, tangents, back_tangents, gradients)
