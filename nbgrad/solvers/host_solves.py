"""A solver's run inside a graph: the compiled program calls back into Python for SciPy's algorithm.

In: a `HostSolve` (a function of plain arrays with a key that says what it does) and nodes. Out: the nodes of its result
and of numbers that describe the run, such as SciPy's status. Called by the solvers, which wrap the result in a `custom`
node with its derivative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import NbgradError, user_location
from ..graph.builders import reshape, slice_axes
from ..graph.host_functions import HostFunction, host
from ..graph.ir import Node
from ..process.locks import ForkSafeLock
from .closed_functions import FLOAT

Shape = tuple[int, ...]


_places: dict[Hashable, str] = {}
MOST_PLACES = 1000


class HostSolve:
    """A function of plain arrays whose results are a row of numbers: of a solution, then `fields`.

    Parameters
    ----------
    title : str
        Its name in messages.
    key : hashable
        Runs with equal keys do the same.
    ranks : sequence of int
        The number of axes of each input; more axes in front are those of a batch.
    shape : tuple of int
        The shape of the solution.
    fields : sequence of str
        The names of the numbers after the solution; a "message" is a text.
    run : callable
        `run(*arrays)` gives the solution and a mapping with the fields.
    """

    def __init__(
        self,
        title: str,
        key: Hashable,
        ranks: Sequence[int],
        shape: Shape,
        fields: Sequence[str],
        run: Callable[..., tuple[Any, Mapping[str, Any]]],
    ) -> None:
        self.title, self.ranks, self.shape, self.fields, self.run = title, tuple(ranks), shape, tuple(fields), run
        self._key = (title, key, self.ranks, shape)
        self._hash = hash(self._key)
        if len(_places) > MOST_PLACES:
            _places.clear()
        _places[self._key] = user_location()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, HostSolve) and self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return self.title

    @property
    def place(self) -> str:
        """The user's line that asked for such a run last."""
        return _places.get(self._key, "")

    @property
    def size(self) -> int:
        """The number of elements of the solution."""
        return math.prod(self.shape)

    def row(self, *arrays: np.ndarray) -> np.ndarray:
        """The solution and the fields for one set of plain arrays."""
        solution, fields = self.run(*[np.array(array) for array in arrays])
        values = np.asarray(solution, FLOAT).reshape(-1)
        numbers = [number_of(fields[name]) if name == "message" else float(fields[name]) for name in self.fields]
        return np.concatenate([values, numbers])

    def nodes(self, inputs: Sequence[Node]) -> tuple[Node, Node]:
        """The solution and the row of fields, in a graph."""
        row = host(SOLVER, tuple(inputs), self)
        solution = reshape(slice_axes(row, [(0, self.size, 1)]), self.shape)
        return solution, slice_axes(row, [(self.size, len(self.fields), 1)])


def _rule(inputs: Sequence[Node], params: tuple[Any, ...]) -> tuple[Shape, np.dtype[Any]]:
    (solve,) = params
    return (*_lead(solve, inputs[0].shape), solve.size + len(solve.fields)), FLOAT


def _lead(solve: HostSolve, shape: Shape) -> Shape:
    return shape[: len(shape) - solve.ranks[0]]


def _run(*arguments: Any) -> np.ndarray:
    *arrays, solve = arguments
    lead = _lead(solve, arrays[0].shape)
    if not lead:
        return solve.row(*arrays)
    flat = [array.reshape(-1, *array.shape[len(lead) :]) for array in arrays]
    rows = [solve.row(*[array[k] for array in flat]) for k in range(math.prod(lead))]
    return np.array(rows).reshape(*lead, solve.size + len(solve.fields))


SOLVER = HostFunction("solver", _rule, _run)
"""The runs of all solvers; which one it is, is a parameter."""


def said(title: str, place: str) -> str:
    """A solver's name, with the line that it was called from where that is not the line of the error."""
    return f"{title}()" if place == user_location() else f"{title}(){place}"


class ConvergenceError(NbgradError, RuntimeError):
    """A solver has not converged, where its result is needed as a solution."""


_texts: dict[str, int] = {"": 0}
"""The messages of runs so far, and their numbers, which stand for them in rows."""


MOST_TEXTS = 10_000
_lock = ForkSafeLock()


def number_of(text: Any) -> int:
    """The number of a message."""
    found = _texts.get(text) if isinstance(text, str) else None
    if found is not None:
        return found
    shown = " ".join(str(text).split())
    with _lock.held():
        return _texts.setdefault(shown, len(_texts)) if len(_texts) < MOST_TEXTS else _texts.get(shown, 0)


def text_of(number: int) -> str:
    """The message with a number."""
    return next((text for text, known in _texts.items() if known == number), "")


def check_converged(title: str, fields: np.ndarray) -> None:
    """Raise unless a run was a success: `fields` begin with that, the status and the message."""
    if not fields[0]:
        status, text = int(fields[1]), text_of(int(fields[2])).rstrip(".")
        message = (
            f"{title}() has not converged (SciPy's status {status}{text and ': '}{text}), so that its result has no "
            "derivative. Look at its `success`, and choose another start, method or tolerance."
        )
        raise ConvergenceError(message)
