"""Recording for `jit`: a function and the arguments of a call become a specialization.

In: a function and a call's arguments, flattened. Out: a `Specialization` with a compiled program; an error where the
function does something that a compiled one could not do. Called by jit.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import optree

from .. import config
from ..errors import DtypeError, TracedValueError
from ..graph.ir import Node, placeholder, topological
from ..graph.trace import CELLS, Trace, recording
from ..process.modes import KEEPS, leaves_made
from ..process.object_layout import scalar_values
from ..record.call_order import all_waiting
from ..record.chosen_arrays import RecordAgain
from ..record.foreign_arrays import a_full_name, computes_itself, described_output
from ..record.masked_elements import refuse_unknown
from ..record.shared_memory import strides_in_memory
from ..record.tensor import Tensor
from ..record.written_arguments import Callers
from ..record.zero_dimensional import is_array
from ..runtime.budget import Budget, smallest
from ..runtime.cpu_program import Output, Program, missed
from ..runtime.evaluate import computed, finish_pending, make_program, refuse
from ..runtime.front import Orders
from ..runtime.memory_order import order_in_memory, strides_of
from ..transforms.arguments import flatten, name_of, node_of
from ..transforms.lent_arrays import kind_of
from ..transforms.rolled import conditions_of, joint_checks, joint_guards, roll_up
from .device_calls import device_of_graph
from .out_arguments import RESULT, donated_leaves
from .signatures import dynamic_kind, order_of
from .specialization import Conditions, Returned, Specialization, State, one_callers, orders_of


def specialize(
    fn: Callable[..., Any],
    leaves: Sequence[Any],
    treespec: Any,
    donate: tuple[int, ...],
    fallback: Callable[..., Any],
    budget: Budget | None = None,
) -> Specialization:
    """Record a function and compile it.

    Parameters
    ----------
    fn : callable
    leaves, treespec
        A call's arguments, from `flatten_in_order`.
    donate : tuple of int
        Positions of arguments whose memory results may take.
    fallback : callable
        Called by native code with the arguments of calls that it does not serve.
    budget : Budget, optional
        The memory of a call.

    Raises
    ------
    DtypeError
        If the function does not return arrays or numbers.
    TracedValueError
        If it keeps or writes values where a compiled function cannot.
    """
    finish_pending()
    while True:
        inputs = _lifted(leaves)
        arguments, callers = inputs.arguments, inputs.callers
        args, kwargs = optree.tree_unflatten(treespec, inputs.lifted)
        # What another thread changes from now on, the next call finds out.
        version = CELLS.token
        try:
            with recording(arguments, jit=True, callers=callers, rolls=strides_of, of=fn) as trace:
                try:
                    output = fn(*args, **kwargs)
                finally:
                    # The recorded function writes when it runs.
                    written = trace.undo_writes()
            break
        except RecordAgain:
            continue
    _refuse_lost_writes(fn, trace)
    assert trace.guards is not None
    results, kept, out_spec = _results(fn, output, trace, bool(written or callers.changed()))
    orders = [order_of(value) for value in inputs.given]
    lying = [_order_of_result(result) for result in results]
    # All calls whose order counts are made, whether or not anything reads their results.
    nodes = all_waiting([result._node for result in results], trace.tokens[-1] if trace.tokens else None, trace.checks)
    written_nodes = [node for _, node in written]
    roll_up(trace, [*nodes, *conditions_of(trace), *written_nodes, *[node for node, _ in callers.written()]], arguments)
    trace.guards, trace.checks = joint_guards(trace.guards), joint_checks(trace.checks)
    guards = [node for node, _ in trace.guards]
    checks = [node for node, _, _ in trace.checks]
    places = {node: k for k, node in enumerate(arguments)}
    stored = [(places[node], callers[node][0]._node) for node in callers.changed()]
    outputs = [*nodes, *guards, *checks, *written_nodes, *[node for _, node in stored]]
    parameters = _parameters(outputs, arguments)
    kinds = _kinds(results, inputs, bool(parameters) or any(isinstance(key, Tensor) for key in trace.cells))
    device = device_of_graph(outputs, arguments)
    packing = _postfix(out_spec) if all(leaf is RESULT for leaf in kept) else None
    more = guards or checks or written or stored or parameters or trace.cells
    simple = inputs.plain and device is None and packing is not None and not more
    arguments += [node for _, node in parameters]
    budget = smallest([budget, *trace.budgets])
    program = None
    if device is not None and not config.interpret():
        program = make_program([Output(node) for node in outputs], arguments, device, budget)
    elif not config.interpret():
        after = len(outputs) - len(nodes)
        ends = [order if kind in ("array", "value") else None for order, kind in zip(lying, kinds, strict=True)]
        program = Program(
            [Output(node, k < len(nodes) and kinds[k] in ("value", "lent")) for k, node in enumerate(outputs)],
            arguments,
            inputs.scalars,
            packing if simple else None,
            fallback if simple else missed,
            _donated(fn, donate, treespec, inputs) if simple and donate else frozenset(),
            max(len(packing or ()), len(nodes) + 1),
            budget,
            name_of(fn),
            Orders([*orders, *[None] * len(parameters)], [*ends, *[None] * after]) if any([*orders, *ends]) else None,
        )
    for node in arguments:
        if node.owner is None:
            node.value = None
    return Specialization(
        name=name_of(fn),
        program=program,
        device=device,
        native=simple,
        arguments=arguments,
        outputs=outputs,
        parameters=parameters,
        written=[parameter for parameter, _ in written],
        reads_leaves=bool(leaves_made) and _reads_leaves(nodes, trace),
        stores=tuple([k for k, _ in stored]),
        returned=Returned(treespec=out_spec, leaves=kept, kinds=kinds, packing=packing),
        conditions=Conditions(
            guards=[value for _, value in trace.guards],
            checks=[(message, error) for _, message, error in trace.checks],
            cells=dict(trace.cells),
            orders=orders_of(inputs.given) if trace.orders else None,
        ),
        state=State(version=None if any(cell._changes_silently() for cell in trace.cells) else version),
    )


@dataclass
class _Inputs:
    """The arguments of a call, and those of the function that is recorded."""

    lifted: list[Any] = field(default_factory=list)
    """All leaves, with Tensors of nodes in place of the run-time inputs."""
    numbers: list[int] = field(default_factory=list)
    """Of each run-time input, its number among the leaves."""
    given: list[Any] = field(default_factory=list)
    """The run-time inputs."""
    arguments: list[Node] = field(default_factory=list)
    """Their nodes."""
    kinds: list[str] = field(default_factory=list)
    """Their kinds, from `dynamic_kind`."""
    callers: Callers = field(default_factory=Callers)

    @property
    def scalars(self) -> dict[int, type]:
        """The positions of scalars among the run-time inputs, with their types, where native code can read them."""
        return {k: type(value) for k, value in enumerate(self.given) if type(value) in scalar_values()}

    @property
    def plain(self) -> bool:
        """Whether all run-time inputs are of the kinds that programs take."""
        scalars = self.scalars
        return all(k in scalars or type(value) is np.ndarray for k, value in enumerate(self.given))


def _lifted(leaves: Sequence[Any]) -> _Inputs:
    """The arguments of a call as the recorded function gets them."""
    inputs = _Inputs()
    for number, leaf in enumerate(leaves):
        kind = dynamic_kind(leaf)
        if kind is None:
            inputs.lifted.append(leaf)
            continue
        source = node_of(leaf)
        node = placeholder(source.shape, source.dtype, computed(source), source.weak)
        node.tensor, node.place = source.tensor, source.place
        node.layout = strides_in_memory(leaf)
        inputs.numbers.append(number)
        inputs.given.append(leaf)
        inputs.arguments.append(node)
        inputs.kinds.append(kind)
        inputs.lifted.append(inputs.callers.lend(node, leaf) if kind in ("array", "tensor") else Tensor._of(node))
    return inputs


def _results(fn: Callable[..., Any], output: Any, trace: Trace, writes: bool) -> tuple[list[Tensor], list[Any], Any]:
    """The Tensors that a function returned, the leaves of `Returned`, and the structure of both.

    A function that `writes` to Parameters or to arguments may return None.

    Raises
    ------
    DtypeError
        If the function does not return arrays or numbers.
    TracedValueError
        If it returns a recorded value in an object that is no container.
    """
    leaves, structure = flatten(output)
    results: list[Tensor] = []
    kept: list[Any] = []
    for leaf in leaves:
        if isinstance(leaf, Tensor):
            results.append(leaf)
            kept.append(RESULT)
        else:
            refuse_unknown(leaf)
            _refuse_hidden(fn, leaf, trace)
            kept.append(one_callers(leaf))
    if not results and not (output is None and writes) and not any(kind_of(leaf) != "other" for leaf in leaves):
        given = "nothing (None)" if output is None else described_output(output)
        hint = "Return its .data." if computes_itself(output) else "Is a return statement missing?"
        message = (
            f"{name_of(fn)}() returned {given}, but a jitted function must return an array, a number, or a "
            f"tuple, list or dict of them. {hint}"
        )
        raise DtypeError(message)
    return results, kept, structure


def _order_of_result(result: Tensor) -> tuple[int, ...] | None:
    """The order of the axes of NumPy's array in place of a result, the slowest first; None for C order."""
    strides = strides_in_memory(result)
    return None if strides is None else order_in_memory(result.shape, strides)


def _kinds(results: Sequence[Tensor], inputs: _Inputs, reads_tensors: bool) -> list[str]:
    """The kinds of results, as `arguments.as_kind` takes them; `reads_tensors`: those that are no arguments."""
    lent = "lent" in inputs.kinds
    if "tensor" in inputs.kinds or (reads_tensors and not lent):
        return ["tensor"] * len(results)
    return ["lent" if lent else "array" if is_array(result) else "value" for result in results]


def _donated(fn: Callable[..., Any], donate: tuple[int, ...], treespec: Any, inputs: _Inputs) -> frozenset[int]:
    """The positions of ndarrays among the run-time inputs whose memory results may take."""
    leaves = donated_leaves(donate, treespec, name_of(fn))
    pairs = zip(inputs.numbers, inputs.given, strict=True)
    return frozenset([k for k, (leaf, value) in enumerate(pairs) if leaf in leaves and isinstance(value, np.ndarray)])


def _reads_leaves(nodes: Sequence[Node], trace: Trace) -> bool:
    """Whether results depend on values that remember and were there before."""
    return any(
        node.traced & KEEPS and (node.serial < trace.start or _is_parameter(node)) for node in topological(nodes)
    )


def _is_parameter(node: Node) -> bool:
    """Whether a leaf, made while a function was recorded, stands for a Parameter, which was there before."""
    return node.owner is not None and hasattr(node.owner(), "_held")


def _refuse_lost_writes(fn: Callable[..., Any], trace: Trace) -> None:
    """Raise if the recorded function wrote where the compiled one could not."""
    for tensor, _ in trace.outside.values():
        message = (
            f"{name_of(fn)}() writes to a Tensor of shape {tensor.shape} from outside, which only happened while jit "
            "recorded it. Return the new value, or make the Tensor a Parameter: writes to Parameters are compiled."
        )
        raise TracedValueError(message)
    for cell in trace.cells:
        for name, value in getattr(cell, "__dict__", {}).items():
            if type(value) is Tensor and value._node.traced and trace.owns(value._node):
                object.__setattr__(cell, name, None)
                message = (
                    f"{type(cell).__name__} assigns a value that jit records to its attribute {name}, which a compiled "
                    f"call would not do. Make {name} a Parameter (requires_grad=False), or return the value."
                )
                raise TracedValueError(message)


def _refuse_hidden(fn: Callable[..., Any], leaf: Any, trace: Trace) -> None:
    """Raise if what is returned is no container and hides a recorded value: later calls would give it again."""
    if isinstance(leaf, set | frozenset):
        parts = list(leaf)
    else:
        slots = [getattr(leaf, name, None) for name in getattr(type(leaf), "__slots__", ())]
        parts = [*getattr(leaf, "__dict__", {}).values(), *slots]
    if any(isinstance(part, Tensor) and part._node.traced and trace.owns(part._node) for part in flatten(parts)[0]):
        message = (
            f"{name_of(fn)}() returns {a_full_name(leaf)} with a value that jit records in it. Return a tuple, list or "
            f"dict of arrays, or register {type(leaf).__name__} as a container (optree.register_pytree_node)."
        )
        raise TracedValueError(message)


def _parameters(outputs: Sequence[Node], arguments: Sequence[Node]) -> list[tuple[Any, Node]]:
    """The Parameters that a graph reads, with the node of each.

    Raises
    ------
    TracedValueError
        If it reads what another recording has left behind.
    """
    found: list[tuple[Any, Node]] = []
    for node in topological(outputs):
        parameter = node.owner() if node.owner is not None else None
        if getattr(parameter, "_leaf", None) is node:
            found.append((parameter, node))
        elif node.name == "input" and node.value is None and node not in arguments:
            refuse(node, node)
    return found


def _postfix(treespec: Any) -> list[int] | None:
    """The structure of nested tuples as native code builds them; None if there is anything but tuples."""
    code: list[int] = []
    count = 0

    def visit(spec: Any) -> bool:
        nonlocal count
        if spec.is_leaf(strict=True):
            code.append(count)
            count += 1
            return True
        if spec.type is not tuple:
            return False
        if not all(visit(child) for child in spec.children()):
            return False
        code.append(-1 - spec.num_children)
        return True

    return code if visit(treespec) else None
