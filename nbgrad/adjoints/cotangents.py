"""The values of a kernel that is run backwards: their names, and which of them have a cotangent.

In: names of the kernel's numbers. Out: `Values`, which gives new names and adds to cotangents, and `Scope`. Called by
reverse.py and reverse_loops.py.

Every value has one cotangent, named after it with `_b`. It is begun where the value's own block is run backwards, or,
if only blocks inside add to it, set to zero before these.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace

from .array_plans import Arrays
from .dataflow import active_names, is_float
from .kernel_statements import Atom, Block, Op, Set, Statement, copied, is_name
from .lasting import Known
from .partials import Partials
from .reading.kernel_form import ScalarForm


@dataclass
class Scope:
    """The values of one block, and those that have a cotangent."""

    parent: Scope | None = None
    mine: set[str] = field(default_factory=set)
    open: set[str] = field(default_factory=set)
    demanded: dict[str, None] = field(default_factory=dict)

    def is_open(self, name: str) -> bool:
        """Whether a value has a cotangent here."""
        return name in self.open or (name not in self.mine and self.parent is not None and self.parent.is_open(name))


@dataclass(frozen=True)
class Stored:
    """The content of an array from which a backward run gets values again.

    Attributes
    ----------
    of : str
        The number or array of the kernel.
    why : str
        The values of it that are stored.
    line : str
        The place of the user's loop.
    loop : Block, optional
        The body of the loop, if it is a tape: one number for each turn.
    nest : int
        The identity of the outermost loop around it.
    is_log : bool
        Whether it grows with what is overwritten.
    """

    of: str
    why: str
    line: str = ""
    loop: Block | None = None
    nest: int = 0
    is_log: bool = False


Names = dict[str, Atom]
"""The present value of each number."""
Backward = Callable[[list[Statement]], None]
"""Writes the backward run of a statement."""


def bar(name: str) -> str:
    """The name of a cotangent."""
    return f"{name}_b"


def zero_of(dtype: str) -> Atom:
    return "0.0" if is_float(dtype) else "False" if dtype == "bool" else "0"


class Values:
    """The names and cotangents of all values of a kernel."""

    def __init__(self, form: ScalarForm, wanted: list[str], taped: Collection[int] = frozenset()) -> None:
        self.form = form
        self.wanted = wanted
        self.dtypes = dict(form.dtypes)
        self.ranks = dict(form.ranks)
        self.active = active_names(form.body, wanted, form.dtypes)
        self.taped = taped
        """The nests of loops, by identity, that store values on tapes."""
        self.outermost = 0
        """The identity of the outermost loop at hand."""
        self.known = Known(form.body)
        self.values: dict[str, str] = {}
        """The number of the kernel that each new name is a value of."""
        self.count = 0
        self.depth = 0
        self.logs: dict[str, int] = {}
        self.sums: set[str] = set()
        """The cotangents that are sums."""
        self.head: list[Statement] = []
        self.stored: dict[str, Stored] = {}
        """The arrays that have values for the backward run."""
        self.plans: dict[tuple[str, str], str] = {}
        """How the array of a user's loop is had again, by the loop's place and the array."""
        self.doubtful: dict[str, str] = {}
        """Old elements that cannot be put back, because threads have added to them meanwhile, and their arrays."""
        self.partials = Partials(lambda dtype: self.new("g", dtype))

    # ----- Names -----

    def new(self, base: str, dtype: str) -> str:
        """A new name of a number."""
        name = base
        while name in self.dtypes:
            self.count += 1
            name = f"{base}_{self.count}"
        self.dtypes[name] = dtype
        return name

    def value_of(self, base: str) -> str:
        """A new name for a value of a number of the kernel."""
        name = self.new(base, self.form.dtypes[base])
        self.values[name] = base
        if base in self.active:
            self.active.add(name)
        return name

    def is_active(self, atom: Atom) -> bool:
        """Whether a value carries a derivative."""
        return atom in self.active and is_float(self.dtypes.get(atom))

    def store_as(self, array: str, stored: Stored) -> None:
        """Note what an array stores."""
        self.stored[array] = replace(stored, nest=self.outermost)

    def snapshot(self) -> tuple[int, dict[str, str], set[str], list[Statement], dict[str, int]]:
        """All that writing statements changes."""
        return self.count, dict(self.dtypes), set(self.active), list(self.head), dict(self.logs)

    # ----- Cotangents -----

    def add(self, value: Atom, g: Atom, scope: Scope, out: list[Statement]) -> None:
        """Add to the cotangent of a value."""
        if not is_name(value) or not self.is_active(value):
            return
        name = bar(value)
        self.dtypes[name] = "float64"
        if not scope.is_open(value):
            if value in scope.mine:
                scope.open.add(value)
                out.append(Set(name, copied(g)))
                return
            scope.demanded[value] = None
        self.sums.add(name)
        out.append(Set(name, Op("add", (name, g), "{0} + {1}")))

    def require(self, values: dict[str, None], scope: Scope, out: list[Statement]) -> None:
        """Let values have a cotangent here, to which a block inside adds."""
        for value in values:
            if scope.is_open(value):
                continue
            if value in scope.mine:
                scope.open.add(value)
                out.append(Set(bar(value), copied("0.0")))
            else:
                scope.demanded[value] = None

    @abstractmethod
    def block(self, body: Block, ver: Names, state: Arrays, scope: Scope, out: list[Statement]) -> Backward:
        """Run a block forward; gives what runs it backwards."""
