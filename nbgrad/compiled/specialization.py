"""Specializations: the record that `jit` keeps of one recording of a function.

In: the results of a recording. Out: `Specialization`: the program, its inputs and outputs, and the conditions under
which it serves a call. Made by specialize.py; called by jit.py and doors.py.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

from .. import config
from ..errors import NbgradError
from ..graph.interpret import interpret
from ..graph.ir import Node, on_host, plain
from ..graph.trace import CELLS
from ..process.object_layout import scalar_values
from ..process.once import computed_once
from ..record.shared_memory import strides_in_memory
from ..record.tensor import Tensor
from ..record.written_arguments import check_store, store
from ..runtime.cpu_program import MISSED
from ..runtime.evaluate import at_home, computed, ready, uploaded
from ..runtime.native_tensors import Entry
from ..transforms.arguments import as_kind
from ..transforms.lent_arrays import Lent, results_as
from .device_calls import DeviceMemory
from .out_arguments import HOST_MEMORY, RESULT, OutArrays, check_out, copy_constants
from .signatures import order_of


@dataclass(kw_only=True)
class Returned:
    """The structure of the results."""

    treespec: Any
    leaves: list[Any]
    """RESULT, or the object that the function returned there and no argument has a part in."""
    kinds: list[str]
    """Of each result, as `arguments.as_kind` takes it."""
    packing: list[int] | None
    """The nesting of the results, for native code that packs them; None if it cannot."""

    def filled(self, values: Sequence[Any]) -> Any:
        """The results in the containers that the function returns, with what else is in there."""
        results = iter(values)
        leaves = [next(results) if leaf is RESULT else one_callers(leaf) for leaf in self.leaves]
        return optree.tree_unflatten(self.treespec, leaves)


@dataclass(kw_only=True)
class Conditions:
    """The conditions of a call, besides its signature."""

    guards: list[np.ndarray]
    """Values of the outputs after the results; another specialization serves a call for which they differ."""
    checks: list[tuple[str, type[NbgradError]]]
    """Errors of the outputs after the guards, raised where one is not true."""
    cells: dict[Any, Any]
    """The state, such as `training`, that the Cells taking part (and Parameters that were differentiated with respect
    to) had in the recording."""
    orders: tuple[Any, ...] | None
    """The strides of the arguments in memory, if the recording depends on them."""


@dataclass(kw_only=True)
class State:
    """The part of a specialization that changes from call to call."""

    version: object | None
    """The token of all Cells for which `Conditions.cells` is known to hold; None if Cells have lists or dicts, which
    change without notice."""
    entry: Entry | None = None
    """The native callable that takes Tensors and Parameters; made at the second call, since it does not pay before."""


@dataclass(kw_only=True)
class Specialization:
    """One recorded way through the function, compiled."""

    name: str
    """The function's name, for messages."""
    program: Any
    """A Program, or a DeviceProgram; None if compilation was switched off."""
    device: Any
    """The device that the program runs on; None for the CPU."""
    native: bool
    """Whether the program takes the caller's arguments, and gives what the caller gets."""
    arguments: list[Node]
    """Nodes of the run-time inputs, then those of `parameters`."""
    outputs: list[Node]
    """Results, guards, checks, new values of `written`, then of `stores`."""
    parameters: list[tuple[Any, Node]]
    """Parameters that the function reads, and the node that stood for each."""
    written: list[Any]
    """Parameters that the function writes to."""
    reads_leaves: bool
    """Whether results depend on differentiable leaves that the function reads from outside."""
    stores: tuple[int, ...]
    """Positions of the arguments that the function writes to."""
    returned: Returned
    conditions: Conditions
    state: State

    @computed_once
    def result_count(self) -> int:
        """Outputs that the caller gets."""
        conditions = self.conditions
        after = len(conditions.guards) + len(conditions.checks) + len(self.written) + len(self.stores)
        return len(self.outputs) - after

    @computed_once
    def pure(self) -> bool:
        """Whether there are no outputs but the results."""
        return self.result_count == len(self.outputs)

    def current(self) -> bool:
        """Whether the Cells and Parameters that took part are still as they were; only values may differ."""
        state = self.state
        if state.version is not CELLS.token:
            now = CELLS.token
            cells = self.conditions.cells
            if any(cell._state() != known for cell, known in cells.items()):
                return False
            if state.version is not None:
                state.version = now
                if state.entry is not None and cells:
                    state.entry.expect(now)
        for parameter, node in self.parameters:
            leaf = parameter._leaf
            if leaf.shape != node.shape or leaf.dtype != node.dtype or leaf.device is not node.device:
                return False
        return True

    def serves(self, inputs: Sequence[Any]) -> bool:
        """Whether a call of the same signature may be tried: only guards can tell more."""
        if not self.current():
            return False
        return self.conditions.orders is None or self.conditions.orders == orders_of(inputs)

    def goes_as(self, other: Specialization) -> bool:
        """Whether it is a record of the same way through the function, for the same Cells and orders of arguments."""
        ours, theirs = self.conditions, other.conditions
        if (ours.orders, ours.cells, len(ours.guards)) != (theirs.orders, theirs.cells, len(theirs.guards)):
            return False
        return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(ours.guards, theirs.guards, strict=True))

    # ----- Running -----

    def run(self, inputs: Sequence[Any], out: Any = None, guarded: bool = True) -> Any:
        """The caller's results, in `out` if that is not None; `MISSED` if a guard differs, where it is `guarded`."""
        for position in self.stores:
            check_store(inputs[position], [*inputs[:position], *inputs[position + 1 :]])
        targets = None if out is None else self.targets(out)
        arrays = self.arrays(inputs)
        if self.program is None or config.interpret():
            found = self._interpreted(arrays)
        elif self.native and targets is None:
            return self.program.call(*arrays)
        else:
            found = self._computed(arrays, targets)
        result = self.finished(found, inputs, results_as(inputs), guarded)
        if targets is None or result is MISSED:
            return result
        targets.take(found)
        copy_constants(out, self.returned.leaves)
        return out

    def arrays(self, inputs: Sequence[Any]) -> list[Any]:
        """The arguments of the program: the run-time inputs, and the Parameters that the function reads."""
        arrays = [_ready(value, node, self.device) for value, node in zip(inputs, self.arguments, strict=False)]
        for parameter, _ in self.parameters:
            known = parameter._leaf.value is not None
            arrays.append(ready(parameter._leaf, self.device) if known else parameter._where_it_is())
        return arrays

    def targets(self, out: Any) -> OutArrays:
        """The arrays that the caller provides for the results; an error if they do not fit."""
        memory = HOST_MEMORY if self.device is None else DeviceMemory(self.device)
        strides = self.program.output_strides if self.program is not None and self.device is None else None
        kept, nodes = self.returned, self.outputs[: self.result_count]
        return check_out(out, kept.treespec, kept.leaves, nodes, self.name, memory, strides)

    def _computed(self, arrays: Sequence[Any], targets: OutArrays | None) -> list[Any]:
        """All outputs, by the program, straight into `targets` where that is possible."""
        if targets is not None and (self.native if self.device is None else self.pure):
            found = targets.written(arrays)
            if self.program.call_into(*arrays, *found) is not MISSED:
                return self.at_home(found)
            assert not self.native
        return self.at_home(self.program.call(*arrays))

    def _interpreted(self, arrays: Sequence[Any]) -> list[Any]:
        """All outputs, without a program."""
        values = [v.to_host() if hasattr(v, "to_host") else np.asarray(v) for v in arrays]
        found = [np.array(v) for v in interpret(self.outputs, dict(zip(self.arguments, values, strict=True)))]
        return found if self.device is None else self.at_home([uploaded(v, self.device) for v in found])

    def at_home(self, found: Sequence[Any]) -> list[Any]:
        """Outputs as a program gives them, those of a device that belong to the CPU copied there."""
        return list(found) if self.device is None else at_home(found, self.outputs)

    def finished(self, found: Sequence[Any], inputs: Sequence[Any], giver: Any = False, guarded: bool = True) -> Any:
        """The caller's results, after guards, checks, Parameters and the caller's arrays, `inputs`, got theirs;
        `MISSED` if a guard differs, where it is `guarded`."""
        count = self.result_count
        conditions = self.conditions
        for value, expected in zip(found[count:], conditions.guards if guarded else (), strict=False):
            if not np.array_equal(on_host(value), expected, equal_nan=True):
                return MISSED
        at = count + len(conditions.guards)
        for value, (message, error) in zip(found[at:], conditions.checks, strict=False):
            if not bool(on_host(value)):
                raise error(message)
        if self.written:
            first = at + len(conditions.checks)
            type(self.written[0])._hold_all(self.written, found[first : first + len(self.written)])
        for position, value in zip(self.stores, found[len(found) - len(self.stores) :], strict=True):
            store(inputs[position], value)
        kinds = [giver if kind == "lent" else kind for kind in self.returned.kinds]
        return self.returned.filled([as_kind(array, kind) for array, kind in zip(found, kinds, strict=False)])


class Specializations(list[Specialization]):
    """The specializations of one signature, the one used last first; `used` is greater the later it was used."""

    used = 0


def orders_of(leaves: Sequence[Any]) -> tuple[Any, ...]:
    """The strides of arguments in memory, where they may make a difference."""
    return tuple([strides_in_memory(leaf) for leaf in leaves])


def one_callers(leaf: Any) -> Any:
    """An object that a function returns and no argument has a part in, as one caller gets it, who may write to it."""
    if isinstance(leaf, np.generic):
        return leaf
    return copy.deepcopy(leaf) if isinstance(leaf, set | bytearray) or hasattr(type(leaf), "__array__") else leaf


def _ready(value: Any, node: Node, device: Any) -> Any:
    """A run-time input as native code takes it; on the CPU, an ndarray without gaps keeps the order of its axes."""
    if isinstance(value, Tensor):
        value = computed(value._node)
    elif isinstance(value, Lent):
        value = value.node.value
    if node.device is not None or type(value) in scalar_values():
        return value
    array = plain(np.asarray(value))
    if array.flags.c_contiguous and array.flags.aligned:
        return array
    order = None if device is not None else order_of(value)
    if order is None:
        return np.array(array, order="C", subok=False)
    turned = array.transpose(order)
    if not (turned.flags.c_contiguous and turned.flags.aligned):
        array = np.array(turned, order="C", subok=False).transpose(np.argsort(order))
    return array
