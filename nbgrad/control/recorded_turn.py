"""One turn of a loop, recorded once for all turns.

In: a function of users, the values that its first turn gets, and the arrays of which each turn gets a part. Out: a
`Turn`: the graph of one turn, checked to give what the next turn takes. Called by scan.py and while_loops.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import optree

from ..errors import DtypeError, NbgradError, ShapeError, TracedValueError
from ..graph.builders import cast, reduce, reshape, slice_axes
from ..graph.ir import Node, filled, placeholder
from ..graph.loops.loop_body import LoopNodes, like, make_loop, real_parts, turns_of
from ..graph.trace import current_trace, recording
from ..record.call_order import FLOAT64, first_token, last_token
from ..record.foreign_arrays import described_output
from ..record.journal import undone_writes
from ..record.tensor import Tensor
from ..runtime.evaluate import require
from ..runtime.memory_order import like_array
from ..transforms.arguments import Results, flatten, kind_as, name_of, node_of
from ..transforms.lent_arrays import kind_of, lent, results_as
from .turn_bounds import End, check_end

Body = Callable[[Any, Any], tuple[Any, Any]]
"""From what is carried and this turn's part of the arrays to what is carried on, and the results of the turn."""


@dataclass
class Arrays:
    """The arrays and numbers in nested containers: the leaves as the caller gave them, their nodes, the structure."""

    leaves: list[Any]
    nodes: list[Node]
    tree: Any

    @staticmethod
    def of(value: Any, what: str) -> Arrays:
        """The arrays in a value; `what` says in messages where it stands.

        Raises
        ------
        DtypeError
            If it holds anything else. None holds nothing.
        """
        leaves, tree = flatten(value)
        leaves = [lent(leaf) for leaf in leaves]
        nodes: list[Node] = []
        for leaf in leaves:
            if leaf is not None and kind_of(leaf) == "other":
                message = f"{what} holds {described_output(leaf)}: expected arrays and numbers, or containers of them."
                raise DtypeError(message)
            if leaf is not None:
                nodes.append(node_of(leaf))
        return Arrays(leaves, nodes, tree)

    def filled(self, values: Sequence[Any]) -> Any:
        """The containers with other values in place of the arrays."""
        given = iter(values)
        leaves = [None if leaf is None else next(given) for leaf in self.leaves]
        return optree.tree_unflatten(self.tree, leaves)

    def paths(self) -> list[str]:
        """The position of each array in the containers, as it would be written."""
        keys = [repr(list(path))[1:-1].replace(", ", "][") for path in optree.treespec_paths(self.tree)]
        return [f"[{key}]" if key else "" for key, leaf in zip(keys, self.leaves, strict=True) if leaf is not None]


@dataclass
class Turn:
    """One turn: what it starts from, the stand-ins for that, and what comes out."""

    name: str
    first: Arrays
    scanned: Arrays
    following: Arrays
    results: Arrays
    stand_ins: tuple[list[Node], list[Node]]
    checks: list[tuple[Node, str, type[NbgradError]]] = field(default_factory=list)
    ends: list[End] = field(default_factory=list)
    """Of the loops in the turn that end by a value."""
    tokens: tuple[Node, Node] | None = None
    """The token that a turn gets and the one that it leaves, if there are calls whose order counts."""
    token: Node | None = None
    """The token of the last turn."""

    def loop(self, turns: int, reverse: bool = False, more: Sequence[Node] = ()) -> LoopNodes:
        """The loop, which gives the results of every turn, and `more` nodes of it."""
        carried, slices = self.stand_ins
        values = list(zip(carried, self.first.nodes, self.following.nodes, strict=True))
        trace = current_trace()
        if self.tokens is not None:
            before, last = self.tokens
            values.append((before, first_token() if trace is None else last_token(trace), last))
        made = make_loop(
            turns,
            values,
            list(zip(slices, self.scanned.nodes, strict=True)),
            results=[*self.results.nodes, *self.conditions(), *more],
            reverse=reverse,
        )
        self.check(made)
        if self.tokens is not None:
            self.token = made.last(len(carried))
            if trace is not None:
                trace.tokens.append(self.token)
        return made

    def conditions(self) -> list[Node]:
        """The nodes of a turn that `check` reads."""
        of_ends = [node for end in self.ends for node in (end.still, end.count)]
        return [*[condition for condition, _, _ in self.checks], *of_ends]

    def check(self, made: LoopNodes) -> None:
        """Check what must hold in every turn, and that loops in the turns have room for theirs."""
        for condition, message, error in self.checks:
            require(made.every(condition), message, error)
        for end in self.ends if turns_of(made.node) else ():
            still, count = (reduce("max", made.every(node), (0,)) for node in (end.still, end.count))
            check_end(End(still, count, end.place, end.room))

    def at_end(self, values: Sequence[Node]) -> list[Node]:
        """The values that a turn or more has carried on, the first of `values`, as they lie in memory for NumPy."""
        return [like_array(value, after) for value, after in zip(values, self.following.nodes, strict=False)]

    def given_back(self, last: Sequence[Node], every: Sequence[Node]) -> tuple[Any, Any]:
        """The values carried out of the last turn, and the results of every turn, as the caller gets them."""
        tensors = results_as([*self.first.leaves, *self.scanned.leaves])
        results = Results()

        def asked(nodes: Sequence[Node]) -> list[Any]:
            return [results.add(node, kind_as(tensors, "array" if node.ndim else "value")) for node in nodes]

        slots = self.following.filled(asked(last)), self.results.filled(asked(every))
        if current_trace() is None:
            results.wait_for(self.token)
        carried, collected = results.fill(*slots)
        return carried, collected


def record_turn(body: Body, fn: Callable[..., Any], name: str, init: Any, scanned: Arrays) -> Turn:
    """Record a turn of `fn`; a Python number at the start takes the dtype that the turns give it.

    Raises
    ------
    ShapeError, DtypeError
        If what a turn gives is not what the next one takes.
    TracedValueError
        If it writes to something outside.
    """
    first = Arrays.of(init, f"The first value of {name}()")
    while True:
        turn = _recorded(body, fn, name, first, scanned)
        widened = False
        for k, (before, after) in enumerate(zip(first.nodes, turn.following.nodes, strict=True)):
            if before.weak and before.dtype != after.dtype and before.shape == after.shape:
                first.nodes[k] = cast(before, after.dtype)
                widened = True
        if not widened:
            break
    for path, before, after in zip(first.paths(), first.nodes, turn.following.nodes, strict=True):
        if (before.shape, before.dtype) != (after.shape, after.dtype):
            message = (
                f"{name}() carries a value of shape {before.shape} and dtype {before.dtype} into {name_of(fn)}(), "
                f"which gives one of shape {after.shape} and dtype {after.dtype} for the next turn"
                f"{f', at carry{path}' if path else ''}. Both must be the same in all turns."
            )
            raise ShapeError(message) if before.shape != after.shape else DtypeError(message)
    return turn


def _examples(sources: Sequence[Node], first: Arrays, scanned: Arrays) -> dict[Node, Node]:
    """The values of a turn's placeholders in the first turn; ones where there are no turns."""
    parts = [
        reshape(slice_axes(node, [(0, 1, 1), *[(0, n, 1) for n in node.shape[1:]]]), node.shape[1:])
        if node.shape[0]
        else filled(1, node.dtype, node.shape[1:])
        for node in scanned.nodes
    ]
    return dict(zip(sources, real_parts([*first.nodes, *parts]), strict=False))


def _recorded(body: Body, fn: Callable[..., Any], name: str, first: Arrays, scanned: Arrays) -> Turn:
    carried = [like(node) for node in first.nodes]
    slices = [like(node, node.shape[1:]) for node in scanned.nodes]
    token = placeholder((), FLOAT64)
    sources = [source for node in (*carried, *slices, token) for source in (node.inputs or (node,))]
    with recording(sources, turn=True) as trace:
        trace.tokens.append(token)
        trace.examples = lambda: _examples(sources, first, scanned)
        stand_ins = [like_array(inside, node) for inside, node in zip(carried, first.nodes, strict=True)]
        given = [[Tensor._of(node) for node in nodes] for nodes in (stand_ins, slices)]
        try:
            with undone_writes() as journal:
                found = body(first.filled(given[0]), scanned.filled(given[1]))
                following, results = _ends(found, fn, name, first)  # as the writes of the turn have left them
        finally:
            written = trace.undo_writes()
        if written or trace.outside:
            what = f"the Parameter {written[0][0].name}" if written else "a Tensor from outside"
            message = f"{name_of(fn)}() writes to {what} in a turn of {name}(). Carry it from turn to turn instead."
            raise TracedValueError(message)
    # What the turn has made itself is gone without these.
    del found, given
    following, results = (replace(arrays, leaves=_shape_only(arrays.leaves)) for arrays in (following, results))
    ours = journal.arrays()
    if ours:
        message = (
            f"{name_of(fn)}() writes to a Tensor of shape {ours[0][0].shape} from outside in a turn of {name}(). Carry "
            "it from turn to turn instead."
        )
        raise TracedValueError(message)
    checks, ends = trace.turn_checks or [], trace.turn_ends or []
    tokens = (token, trace.tokens[-1]) if len(trace.tokens) > 1 else None
    return Turn(name, first, scanned, following, results, (carried, slices), checks, ends, tokens)


def _ends(found: Any, fn: Callable[..., Any], name: str, first: Arrays) -> tuple[Arrays, Arrays]:
    """The values that a turn carries on, and its results."""
    if not isinstance(found, tuple | list) or len(found) != 2:
        message = (
            f"{name_of(fn)}() must give a pair to {name}(), what is carried on and the result of the turn, but "
            f"gave {described_output(found)}."
        )
        raise DtypeError(message)
    following = Arrays.of(found[0], f"What {name_of(fn)}() carries on")
    if following.tree != first.tree:
        message = (
            f"{name_of(fn)}() gets {_shown(first)} from {name}() and carries on {_shown(following)}: both must "
            "have the same structure."
        )
        raise ShapeError(message)
    return following, Arrays.of(found[1], f"The result of {name_of(fn)}()")


def _shape_only(leaves: Sequence[Any]) -> list[Any]:
    """Leaves without the arrays: None where there is none."""
    return [None if leaf is None else ... for leaf in leaves]


def _shown(arrays: Arrays) -> str:
    """A structure as it would be written, with stars for the arrays."""
    return str(arrays.tree).removeprefix("PyTreeSpec(").removesuffix(")").removesuffix(", NoneIsLeaf")
