"""A user's function as a graph of its own: what it closes over, recorded values too, becomes further inputs.

In: a function of arrays, and nodes such as those that it gets. Out: a `ClosedFunction`, and the nodes of the values
that it has read from outside. Functions of the same structure are one object, so that their programs are compiled once,
whatever the numbers are. Called by the solvers, which call its programs on plain arrays and differentiate its graph.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from .. import config
from ..errors import ArgumentError, DtypeError, NbgradError, ShapeError, TracedValueError
from ..graph.batch import batch
from ..graph.builders import cast, reduce, reshape
from ..graph.differentiate import jvp, vjp
from ..graph.interpret import interpret
from ..graph.ir import Node, elementwise, make, placeholder, topological, with_inputs, zeros
from ..graph.loops.loop_body import Body, closed, like, real_parts
from ..graph.loops.rolling import roll
from ..graph.products import unit_vectors
from ..graph.trace import recording
from ..record.as_node import as_node
from ..record.tensor import Tensor
from ..runtime.cpu_program import MISSED, Output
from ..runtime.evaluate import make_program
from ..runtime.memory_order import strides_of
from ..transforms.arguments import flatten, name_of
from ..transforms.lent_arrays import kind_of

FLOAT = np.dtype(np.float64)
MOST_KEPT = 500
"""Functions whose programs are kept."""
Check = tuple[Node, str, type[NbgradError]]

LOSSES: dict[str, Callable[[Node], Node]] = {
    "linear": lambda z: z,
    "soft_l1": lambda z: 2.0 * z / (elementwise("sqrt", z + 1.0) + 1.0),
    "huber": lambda z: elementwise(
        "select", elementwise("less_equal", z, 1.0), z, 2.0 * elementwise("sqrt", elementwise("maximum", z, 1.0)) - 1.0
    ),
    "cauchy": lambda z: elementwise("log1p", z),
    "arctan": lambda z: elementwise("arctan", z),
}
"""SciPy's rho(z), of the squares of scaled residuals. B. Triggs et al., "Bundle Adjustment", 1999, appendix."""


def as_float(x: Any) -> np.ndarray:
    """An array as the programs of solvers take it: of float64, in C order."""
    if type(x) is np.ndarray and x.dtype is FLOAT and x.flags.c_contiguous:
        return x
    return np.ascontiguousarray(x, FLOAT).reshape(np.shape(x))


class HostProgram:
    """A compiled graph that is called on plain arrays: on the CPU, by code that is no part of a graph."""

    def __init__(self, outputs: Sequence[Node], arguments: Sequence[Node]) -> None:
        self.outputs, self.arguments = list(outputs), list(arguments)
        self._call: Callable[..., Any] | None = None

    def __call__(self, *arrays: np.ndarray) -> Sequence[np.ndarray]:
        """The values of the outputs."""
        if config.interpret():
            return [np.array(a) for a in interpret(self.outputs, dict(zip(self.arguments, arrays, strict=True)))]
        call = self._call
        if call is None:
            call = self._call = make_program([Output(node) for node in self.outputs], self.arguments, None).call
        found = call(*arrays)
        if found is MISSED:
            pairs = zip(arrays, self.arguments, strict=True)
            found = call(*[np.require(a, n.dtype, ["C", "A"]).reshape(n.shape) for a, n in pairs])
            assert found is not MISSED
        return found


class ClosedFunction:
    """A graph over `variables`, which its caller gives, and `captured`, which it has read from outside.

    `checks` are conditions that must hold in every call, with the errors that say so. Functions made of it, such as its
    derivatives, are kept by it (`made`).
    """

    def __init__(
        self, variables: Sequence[Node], captured: Sequence[Node], outputs: Sequence[Node], checks: Sequence[Check] = ()
    ) -> None:
        self.variables, self.captured, self.outputs = tuple(variables), tuple(captured), tuple(outputs)
        self.checks = tuple(checks)
        self.is_elementwise = False
        """Whether each element of the output was seen to depend on that element of the first variable alone."""
        self._made: dict[Hashable, Any] = {}

    @property
    def inputs(self) -> tuple[Node, ...]:
        """All placeholders."""
        return (*self.variables, *self.captured)

    def at(self, values: Sequence[Node]) -> list[Node]:
        """The outputs for nodes in place of the inputs."""
        new = dict(zip(self.inputs, values, strict=True))
        for node in topological(self.outputs, new.copy()):
            inputs = tuple([new[source] for source in node.inputs])
            new[node] = with_inputs(node, inputs) if inputs != node.inputs else node
        return [new[node] for node in self.outputs]

    def made(self, name: Hashable, how: Callable[[], Any]) -> Any:
        """Something made of this function, once."""
        if name not in self._made:
            self._made[name] = how()
        return self._made[name]

    def program(self) -> HostProgram:
        """The values of the outputs, then those of the conditions."""
        conditions = [node for node, _, _ in self.checks]
        return self.made("program", lambda: HostProgram([*self.outputs, *conditions], self.inputs))

    def call(self, *arrays: np.ndarray) -> Sequence[np.ndarray]:
        """The outputs for plain arrays.

        Raises
        ------
        NbgradError
            If a condition does not hold.
        """
        found = self.program()(*arrays)
        if self.checks:
            for (_, message, error), holds in zip(self.checks, found[len(self.outputs) :], strict=True):
                if not holds.all():
                    raise error(message)
        return found[: len(self.outputs)]

    # ----- Derivatives, as further such functions -----

    def derived(self, name: Hashable, how: Callable[[], tuple[Sequence[Node], Sequence[Node]]]) -> ClosedFunction:
        """A function made of this one: `how` gives further variables, which come first, and the outputs."""

        def built() -> ClosedFunction:
            variables, outputs = how()
            return ClosedFunction(variables, self.inputs, outputs, self.checks)

        return self.made(name, built)

    def tangent(self) -> ClosedFunction:
        """The derivative by the first variable along a tangent, the new first variable."""

        def how() -> tuple[list[Node], list[Node]]:
            moves = like(self.variables[0])
            found = jvp(self.outputs, [self.variables[0]], [moves])
            return [moves], [_or_zeros(t, node) for t, node in zip(found, self.outputs, strict=True)]

        return self.derived("tangent", how)

    def with_tangent(self) -> ClosedFunction:
        """The first output and its derivative along a tangent, the new first variable."""

        def how() -> ClosedFunction:
            made = self.tangent()
            variables = (*made.variables, *self.variables)
            return ClosedFunction(variables, self.captured, [self.outputs[0], made.outputs[0]], self.checks)

        return self.made("with tangent", how)

    def cotangent(self) -> ClosedFunction:
        """The cotangent of the first variable, given those of the outputs, the new first variables."""

        def how() -> tuple[list[Node], list[Node]]:
            given = [like(node) for node in self.outputs]
            found = vjp(self.outputs, given, [self.variables[0]])[0]
            return given, [_or_zeros(found, self.variables[0])]

        return self.derived("cotangent", how)

    def jacobian(self) -> ClosedFunction:
        """The matrix of the derivative of the first output by the first variable, each of one axis."""

        def how() -> tuple[list[Node], list[Node]]:
            return [], [jacobian_at(self.outputs[0], self.variables[0])]

        return self.derived("jacobian", how)

    def gradient(self) -> ClosedFunction:
        """The function's gradient by its first variable; the function gives one number."""
        return self._alike("gradient", lambda: [self._slopes()])

    def with_gradient(self) -> ClosedFunction:
        """The function's number, and its gradient."""
        return self._alike("with gradient", lambda: [self.outputs[0], self._slopes()])

    def cost(self, loss: str = "linear", scale: float = 1.0) -> ClosedFunction:
        """Half the sum of the losses of the first output, of one axis, in units of a scale: by default, of squares."""

        def how() -> ClosedFunction:
            scaled = self.outputs[0] * (1.0 / scale)
            total = reduce("sum", LOSSES[loss](scaled * scaled), (0,)) * (0.5 * scale * scale)
            return ClosedFunction(self.variables, self.captured, [total], self.checks)

        return self.made(("cost", loss, scale), how)

    def minus_variable(self) -> ClosedFunction:
        """The first output minus the first variable, of the same shape."""
        return self._alike("minus variable", lambda: [self.outputs[0] - self.variables[0]])

    def within_bounds(self) -> ClosedFunction:
        """The first output; where the first variable lies on a bound, its distance from that.

        The lower and the upper ends are captured, in front.
        """

        def how() -> ClosedFunction:
            x, inner = self.variables[0], self.outputs[0]
            low, high = like(x), like(x)
            outer = elementwise("select", elementwise("greater_equal", x, high), x - high, inner)
            found = elementwise("select", elementwise("less_equal", x, low), x - low, outer)
            return ClosedFunction(self.variables, [low, high, *self.captured], [found], self.checks)

        return self.made("within bounds", how)

    def _slopes(self) -> Node:
        one = make("alias", (_ones(self.outputs[0]),))
        return _or_zeros(vjp(self.outputs[:1], [one], [self.variables[0]])[0], self.variables[0])

    def _alike(self, name: str, how: Callable[[], Sequence[Node]]) -> ClosedFunction:
        """A function of the same inputs."""
        return self.made(name, lambda: ClosedFunction(self.variables, self.captured, how(), self.checks))


def _ones(node: Node) -> Node:
    return zeros(node.shape, node.dtype) + 1.0


def _or_zeros(found: Node | None, node: Node) -> Node:
    return zeros(node.shape, node.dtype) if found is None else found


def jacobian_at(output: Node, variable: Node) -> Node:
    """The Jacobian, shape (elements of the output, elements of the variable); by rows or columns, the fewer."""
    rows, columns = output.size, variable.size
    if columns <= rows:
        moves = placeholder(variable.shape, variable.dtype)
        moved = _or_zeros(jvp([output], [variable], [moves])[0], output)
        basis = reshape(unit_vectors(columns, variable.dtype), (columns, *variable.shape))
        every = reshape(batch([moved], {moves: basis}, columns)[0], (columns, rows))
        return make("transpose", (every,), ((1, 0),))
    given = placeholder(output.shape, output.dtype)
    back = _or_zeros(vjp([output], [given], [variable])[0], variable)
    basis = reshape(unit_vectors(rows, output.dtype), (rows, *output.shape))
    return reshape(batch([back], {given: basis}, rows)[0], (rows, columns))


# ----- Recording -----

_known: dict[Any, ClosedFunction] = {}


def recorded(
    fn: Callable[..., Any], given: Sequence[Node], title: str, shapes: Callable[[Sequence[Node]], Sequence[Node]]
) -> tuple[ClosedFunction, list[Node]]:
    """A function closed over what it reads, and the nodes of that.

    Parameters
    ----------
    fn : callable
        Gets Tensors like the nodes `given`.
    given : sequence of nodes
    title : str
        The solver's name in messages.
    shapes : callable
        Gets the nodes of the function's output and gives those that are wanted, in the shapes and dtypes that are
        wanted; raises what is wrong with them.

    Raises
    ------
    TracedValueError
        If the function branches by the values of what it gets, or writes to something outside.
    DtypeError
        If it returns anything but real numbers.
    """
    name = name_of(fn)
    variables = [placeholder(node.shape, node.dtype) for node in given]
    with recording(variables, turn=True) as trace:
        trace.examples = lambda: dict(zip(variables, given, strict=True))
        try:
            output = fn(*[Tensor._of(node) for node in variables])
        except TracedValueError as error:
            if trace.refused is None and not str(error).startswith("The value of a Tensor"):
                raise
            message = (
                f"{title}() records {name}() once, for all values, but it asks for a value (in `if`, float() or a "
                "library's compiled code). Use np.where or nb.cond, or run your function by nb.differentiable_source."
            )
            raise TracedValueError(message) from error
        finally:
            written = trace.undo_writes()
        if written or trace.outside:
            message = f"{name}() writes to a Parameter or Tensor from outside, which {title}() would do many times."
            raise TracedValueError(message)
        if trace.turn_ends:
            message = f"{name}() has a while_loop inside {title}(), where the number of turns is not known. Use scan."
            raise ArgumentError(message)
        outputs = list(shapes(_numbers(output, name, title)))
        checks = trace.turn_checks or []
    conditions = [node for node, _, _ in checks]
    if config.roll():
        roll([*outputs, *conditions], variables, strides_of)
    wanted = [*outputs, *conditions]
    inside, fresh = closed(wanted, variables, {})
    values, stand_ins = real_parts(list(fresh)), real_parts(list(fresh.values()))
    nodes = [inside.get(node, node) for node in wanted]
    body = Body((), (), [*variables, *stand_ins], (), nodes)
    texts = tuple([(message, error) for _, message, error in checks])
    body_key = (body, len(outputs), texts)
    found = None if body.custom else _known.get(body_key)
    if found is None:
        count = len(outputs)
        inner = [(node, *text) for node, text in zip(nodes[count:], texts, strict=True)]
        found = ClosedFunction(variables, stand_ins, nodes[:count], inner)
        if not body.custom:
            if len(_known) >= MOST_KEPT:
                for old in list(_known)[: MOST_KEPT // 8]:
                    _known.pop(old, None)
            _known[body_key] = found
    return found, values


def _numbers(output: Any, name: str, title: str) -> list[Node]:
    """The nodes of a function's output: an array, or a tuple of them; a list is an array."""
    leaves = list(output) if isinstance(output, tuple) and all(_is_array(one) for one in output) else [output]
    nodes: list[Node] = []
    for leaf in leaves:
        if leaf is None or any(kind_of(one) == "other" for one in flatten(leaf)[0]):
            message = f"{name}() must return numbers or arrays to {title}(), but returned {type(leaf).__name__}."
            raise DtypeError(message)
        node = as_node(leaf)
        if node.dtype.kind == "c":
            way = "give b as complex numbers" if title == "linear_solve" else "give both parts"
            message = f"{name}() returned complex numbers to {title}(), which solves for real ones here: {way}."
            raise DtypeError(message)
        nodes.append(cast(node, FLOAT))
    return nodes


def _is_array(value: Any) -> bool:
    return isinstance(value, Tensor | np.ndarray) and value.ndim > 0


def one_output(name: str, title: str, shape: tuple[int, ...] | None) -> Callable[[Sequence[Node]], Sequence[Node]]:
    """For `recorded`: the one output, of a shape, or of any number of elements along one axis if None."""

    def check(nodes: Sequence[Node]) -> list[Node]:
        node = nodes[0] if len(nodes) == 1 else None
        if node is not None and shape is None:
            return [reshape(node, (node.size,))]
        if node is None or node.size != int(np.prod(shape or ())) or (node.ndim > 1 and node.shape != shape):
            given = " and ".join([str(one.shape) for one in nodes])
            message = f"{name}() must return an array of shape {shape} to {title}(), but returned {given}."
            raise ShapeError(message)
        return [reshape(node, shape or ())]

    return check


def bound(fn: Callable[..., Any], args: Any) -> Callable[..., Any]:
    """A function with SciPy's `args` after its own arguments, under its own name."""
    given = args if isinstance(args, tuple) else (args,)
    if not given:
        return fn

    def called(*variables: Any) -> Any:
        return fn(*variables, *given)

    called.__name__ = name_of(fn)
    return called


def first_of(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function that gives a pair, such as a value and SciPy's `jac`, as one that gives the first."""

    def first(*variables: Any) -> Any:
        return fn(*variables)[0]

    first.__name__ = name_of(fn)
    return first
