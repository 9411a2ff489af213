"""Functions that need plain arrays (SciPy, a simulator) run inside recorded functions.

In: a function, and arguments with Tensors in them. Out: its output, with Tensors in place of arrays. Called by
custom.py, for rules that fail on Tensors. Where the values are known, the function is called at once and its arrays are
constants; where they differ from call to call (in jit, in vmap), the program calls it each time, as a kernel of the
user's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optree

from ..errors import ArgumentError, DtypeError
from ..graph.batch import batch
from ..graph.builders import reshape, slice_axes
from ..graph.custom_calls import Call, Kernel, Layout, nodes_of
from ..graph.ir import PRIMITIVES, Node, by_serial, constant, make, on_host, plain_dtype
from ..graph.loops.loop_rewrites import substituted
from ..graph.trace import current_trace
from ..record.foreign_arrays import a_full_name
from ..record.numbers import supported
from ..record.tensor import Tensor
from ..runtime.evaluate import computed
from .arguments import flatten

INPUT = PRIMITIVES["input"]


@dataclass(frozen=True)
class _Given:
    """In place of a result: the argument of this position, returned as it was."""

    position: int


@dataclass(frozen=True)
class _Array:
    """In place of a result: the array of this position among those that the function made."""

    position: int


@dataclass(frozen=True)
class _Known:
    """The facts about the results that are known before a program runs: their tree, and the layouts of its arrays."""

    tree: Any
    leaves: tuple[Any, ...]
    layouts: tuple[Layout, ...]


class HostCode:
    """A function that gets plain arrays; `title` is its name in messages.

    `sample` gives results of the same structure, shapes and dtypes, for arguments of ones: a program is made of these
    facts. By default it is the function itself, and gets values that are known.
    """

    def __init__(self, function: Callable[..., Any], title: str, sample: Callable[..., Any] | None = None) -> None:
        self.function, self.title, self.sample = function, title, sample
        self.calls: dict[Any, tuple[_Known, Call]] = {}
        """By the facts known of the arguments: those known of the results, and the call that programs do."""

    def __call__(self, *args: Any) -> Any:
        """Call the function; its results for recorded values have no derivative, and asking for one is an error."""
        leaves, tree = flatten(args)
        nodes = [leaf._node for leaf in leaves if isinstance(leaf, Tensor)]
        if not any(source.primitive is INPUT for source in by_serial(nodes)):
            values = [_plain(on_host(computed(node))) for node in nodes]
            known, arrays = self._described(self._run(self.function, leaves, tree, values), values)
            made = [constant(array) for array in arrays]
        else:
            known, call = self._call(leaves, tree, nodes)
            packed = [call.unpacked(node) for node in nodes_of(call, nodes)]
            made = [next(found[k] for found in packed if k in found) for k in range(len(known.layouts))]
        made = [make("custom", (node, *nodes), (_NoDerivative(self.title), 0)) for node in made]
        given = [leaf for leaf in leaves if isinstance(leaf, Tensor)]
        results = [
            given[leaf.position]
            if isinstance(leaf, _Given)
            else Tensor._of(made[leaf.position])
            if isinstance(leaf, _Array)
            else leaf
            for leaf in known.leaves
        ]
        return optree.tree_unflatten(known.tree, results)

    def _run(self, function: Any, leaves: Sequence[Any], tree: Any, values: Sequence[Any]) -> Any:
        """A function's output for these values of the Tensors among its arguments."""
        left = iter(values)
        return function(
            *optree.tree_unflatten(tree, [next(left) if isinstance(leaf, Tensor) else leaf for leaf in leaves])
        )

    def _described(self, returned: Any, values: Sequence[Any]) -> tuple[_Known, list[np.ndarray]]:
        """The description of a call's output, and the arrays that the call made."""
        found, tree = flatten(returned)
        leaves: list[Any] = []
        arrays: list[np.ndarray] = []
        for leaf in found:
            position = next((k for k, value in enumerate(values) if value is leaf), None)
            if position is not None:
                leaves.append(_Given(position))
            elif isinstance(leaf, Tensor | np.ndarray | np.generic | float | complex):
                array = leaf.asnumpy() if isinstance(leaf, Tensor) else np.array(leaf)
                if not supported(array.dtype):
                    message = f"{self.title} has returned an array of dtype {array.dtype}, which Tensors do not hold."
                    raise DtypeError(message)
                leaves.append(_Array(len(arrays)))
                arrays.append(array.astype(plain_dtype(array.dtype), order="C", copy=False))
            else:
                leaves.append(leaf)
        return _Known(tree, tuple(leaves), tuple([(array.shape, array.dtype) for array in arrays])), arrays

    def _call(self, leaves: Sequence[Any], tree: Any, nodes: Sequence[Node]) -> tuple[_Known, Call]:
        """The description of the output of a call, and the call that a program does in its place."""
        statics = [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        key = (tree, tuple([(node.shape, node.dtype) for node in nodes]), tuple([_key(leaf) for leaf in statics]))
        found = self.calls.get(key)
        if found is None:
            if self.sample is None:
                values = [_plain(sample(node)) for node in nodes]
            else:
                values = [_plain(np.ones(node.shape, node.dtype)) for node in nodes]
            known, _ = self._described(self._run(self.sample or self.function, leaves, tree, values), values)
            self._check(known)
            frozen = [Tensor if isinstance(leaf, Tensor) else leaf for leaf in leaves]

            def forward(*arrays: np.ndarray) -> None:
                values = [_plain(array) for array in arrays[: len(nodes)]]
                left = iter(values)
                arguments = [next(left) if leaf is Tensor else leaf for leaf in frozen]
                now, made = self._described(self.function(*optree.tree_unflatten(tree, arguments)), values)
                if now != known:
                    message = (
                        f"{self.title} has returned {now.leaves} with arrays of {now.layouts}, but when it was "
                        f"recorded {known.leaves} with arrays of {known.layouts}. In a compiled program, only the "
                        "numbers in arrays may differ."
                    )
                    raise ArgumentError(message)
                for output, array in zip(arrays[len(nodes) :], made, strict=True):
                    output[...] = array

            call = Call(Kernel(self.title, forward, None, False), tuple([n.ndim for n in nodes]), known.layouts, ())
            found = self.calls[key] = known, call
        return found

    def _check(self, known: _Known) -> None:
        """Raise if a value that a compiled program would keep may differ from call to call."""
        for leaf in known.leaves:
            if not isinstance(leaf, _Given | _Array | bool | int | str | None):
                message = (
                    f"{self.title} has returned {a_full_name(leaf)}, which may differ from call to call, but a "
                    "compiled program passes on arrays only. Return the arrays that it holds."
                )
                raise ArgumentError(message)


def _plain(value: np.ndarray) -> Any:
    """An array that the function may write to, or a NumPy scalar."""
    return np.array(value)[()]


def _key(leaf: Any) -> Any:
    """The key of a constant argument, for a dict."""
    try:
        hash(leaf)
    except TypeError:
        return id(leaf)
    return type(leaf), leaf


def sample(node: Node) -> np.ndarray:
    """A value that a recorded node may have: the first of those that vmap maps, or that of a loop's first turn."""
    trace = current_trace()
    while trace is not None:
        if trace.mapping:
            many = batch([node], trace.mapping, trace.size)[0]
            node = reshape(slice_axes(many, [(0, 1, 1), *[(0, n, 1) for n in node.shape]]), node.shape)
        elif trace.examples is not None:
            node = substituted([node], trace.examples())[0]
        trace = trace.parent
    return on_host(computed(node))


class _NoDerivative:
    """The rule of the results of a function of plain arrays: they have no derivative."""

    pure = True

    def __init__(self, title: str) -> None:
        self.title = title

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NoDerivative) and other.title == self.title

    def __hash__(self) -> int:
        return hash(self.title)

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """Raise: there are none."""
        message = (
            f"{self.title} runs on plain arrays, so that what it computes has no derivative of its own, but one is "
            "asked for: of second order, or in forward mode through a reverse rule. Write it with functions that "
            "nbgrad records, or cut the derivative off with nb.stop_gradient."
        )
        raise ArgumentError(message)
