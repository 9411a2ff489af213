"""`jit`: record a function once per signature, then only run it.

In: a function. Out: a callable with the same arguments. The signature is the structure of the arguments, the shapes,
dtypes and memory orders of arrays, and the values of all else; floats, complex numbers and NumPy's scalars are run-time
inputs. A call by position goes through the function's door (doors.py) to the specialization used last: a native
callable, where one can tell by itself whether the call fits. Branches on values become guards: each way through the
function is compiled once, and the one taken last is tried first. Called by users.
"""

from __future__ import annotations

import functools
import inspect
import operator
import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from itertools import count
from typing import Any

import numpy as np
import optree

from .. import config
from ..errors import ArgumentError, DtypeError, TracedValueError
from ..graph.trace import current_trace
from ..process.locks import ForkSafeLock
from ..process.modes import KEEPS, entered, leaves_made, mode
from ..process.named_objects import NamedObject
from ..record.foreign_arrays import host_library
from ..record.tensor import Tensor, node_slot
from ..runtime.budget import Budget, budget_of
from ..runtime.cpu_program import MISSED, Program
from ..tensors.parameter import Parameter
from ..transforms.argument_positions import check_function
from ..transforms.arguments import flatten, name_of
from ..transforms.lent_arrays import by_ndarrays, lent, ndarrays, results_as
from .doors import Door, door, make_entry
from .frozen_arrays import FrozenArrays
from .frozen_draws import watched_draws
from .out_arguments import check_donate, check_donated, donated_leaves
from .signatures import flatten_in_order, signature
from .specialization import Specialization, Specializations
from .specialize import specialize

MOST_SPECIALIZATIONS = 256
_uses = count()


class Jitted(NamedObject):
    """A function that is compiled on first use. Made by `jit`."""

    def __init__(self, fn: Callable[..., Any], donate: tuple[int, ...] = (), budget: Budget | None = None) -> None:
        functools.update_wrapper(self, fn, updated=())
        self.fn = fn
        self.donate = donate
        self.budget = budget
        self._own_out = _has_out(fn)
        self._specializations: dict[Any, Specializations] = {}
        self._lock = ForkSafeLock()
        self._reads_leaves = False
        """Whether its results depend on differentiable leaves from outside."""
        self._door = Door(self._general)
        self._doors = {True: self._door, False: self._door}
        """Where a `rolled` block is open: with loops, and written out."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the compiled function; `out` takes arrays for the results, unless the function has its own `out`."""
        try:
            open_now = self._doors[config.roll()] if config.blocks else self._door
            if kwargs:
                if "out" in kwargs and not self._own_out:
                    out = kwargs.pop("out")
                    if out is not None:
                        return self._general_into(out, args, kwargs)
                if not open_now.takes_keywords or (leaves_made and (entered or not open_now.finds_leaves)):
                    return self._general(*args, **kwargs)
                return open_now.call(*args, **kwargs)
            if leaves_made and (entered or not open_now.finds_leaves) and self._remembers(args):
                return self.fn(*args)
            return open_now.call(*args)
        except MemoryError as error:
            programs = [program for program in self.programs() if isinstance(program, Program)]
            if error.args or not programs:
                raise
            largest = max(programs, key=lambda program: program.needed_bytes)
            lacking = largest.out_of_memory(f"{name_of(self.fn)}()")
            raise lacking from None

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind methods, so that `jit` decorates them too."""
        return self if instance is None else functools.partial(self, instance)

    def with_functions(self, change: Callable[[Any], Any]) -> Any:
        """The changed function alone: it runs as a part of another one."""
        return change(self.fn)

    def __repr__(self) -> str:
        return f"<jit of {name_of(self.fn)}>"

    def __reduce__(self) -> Any:
        """A copy, also in another process, compiles for itself."""
        return Jitted, (self.fn, self.donate, self.budget)

    def __getattr__(self, name: str) -> Any:
        """An attribute of the function, such as `trainable_params` of a compiled Cell."""
        if name.startswith("_") or name == "fn":
            raise AttributeError(name)
        return getattr(self.fn, name)

    @property
    def compiled_signatures(self) -> int:
        """The number of signatures for which the function was recorded."""
        return len(self._specializations)

    def programs(self) -> list[Any]:
        """The compiled programs, of each signature the one used last first."""
        return [one.program for one in self.specializations() if one.program is not None]

    def specializations(self) -> list[Specialization]:
        """The records of all recordings, of each signature the one used last first."""
        return [one for listed in self._specializations.values() for one in listed]

    def known_for(self, key: Any) -> list[Specialization]:
        """The records of a signature, the one used last first."""
        return self._specializations.get(key, Specializations())

    def _general(self, *args: Any, **kwargs: Any) -> Any:
        """Any call: find or record the specialization, run it."""
        trace = current_trace()
        if trace is not None:
            if self.budget is not None:
                trace.budgets.append(self.budget)
            # Another function is being recorded: become part of it. What this one reads from outside may be what the
            # other one is differentiated with respect to.
            return self.fn(*args, **kwargs)
        return self._find(args, kwargs, None)

    def _general_into(self, out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Any call with arrays for the results."""
        if current_trace() is not None:
            message = f"{name_of(self.fn)}() is called with out= while it is recorded. Use what it returns instead."
            raise TracedValueError(message)
        into = (self._doors[config.roll()] if config.blocks else self._door).into
        if into is not None and not kwargs and into(args, out):
            return out
        return self._find(args, kwargs, out)

    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
        if leaves_made and out is None and self._remembers((args, kwargs)):
            return self.fn(*args, **kwargs)
        given, treespec = flatten_in_order((args, kwargs))
        if any(map(host_library, given)):
            result = by_ndarrays(functools.partial(self._again, out=out), treespec, given)
            return result if out is None else out
        leaves = [lent(leaf) for leaf in given]
        # None where the leaves are the arguments.
        nested = None if len(given) == len(args) and all(map(operator.is_, given, args)) else treespec
        if self.donate:
            check_donated(leaves, donated_leaves(self.donate, treespec, name_of(self.fn)), name_of(self.fn))
        key, inputs = signature(leaves, treespec)
        rolls = config.roll()
        key = (key, rolls)
        giver = results_as(inputs)
        with nullcontext() if giver is True or not giver else giver.working():
            known = self._known(key)
            for one in list(known):
                if not one.serves(inputs):
                    continue
                if out is None and make_entry(one, given, nested, self._general):
                    # A call that the new entry refuses comes here again, and goes on to `run`.
                    self._open(one, given, nested, rolls)
                    return self._doors[rolls].call(*args, **kwargs)
                result = one.run(inputs, out)
                if result is not MISSED:
                    self._prefer(known, one)
                    self._open(one, given, nested, rolls)
                    return result
            with self._lock.held(), watched_draws(self.fn, given):
                one = specialize(self._recorded(), leaves, treespec, self.donate, self._general, self.budget)
                known[:] = [one, *[other for other in known if not other.goes_as(one)]]
                del known[MOST_SPECIALIZATIONS:]
            if one.reads_leaves:
                self._reads_leaves = True
                # Each call has to ask whether its results remember.
                self._door = Door(self._general)
                self._doors = {True: self._door, False: self._door}
                if out is None and self._remembers(()):
                    return self.fn(*args, **kwargs)
            self._open(one, given, nested, rolls)
            # Python has just gone this way with these inputs. Compiled code may round otherwise and decide otherwise.
            return one.run(inputs, out, guarded=False)

    def _again(self, *args: Any, out: Any, **kwargs: Any) -> Any:
        """A call whose arrays on the CPU that were lent are ndarrays now."""
        if out is None:
            return Jitted.__call__(self, *args, **kwargs)
        given, treespec = flatten(out)
        return self._find(args, kwargs, optree.tree_unflatten(treespec, ndarrays(given)))

    def _recorded(self) -> Callable[..., Any]:
        """The function that is recorded."""
        return self.fn

    def _remembers(self, arguments: tuple[Any, ...]) -> bool:
        """Whether results have to remember how they were made, so that the function itself is called: an argument, or
        something that it reads from outside, depends on a differentiable leaf."""
        if entered:
            now = mode()
            if not now.remembers:
                return False
            if now.parameters or now.tapes:
                return current_trace() is None
        if self._reads_leaves:
            return current_trace() is None
        for argument in arguments:
            if argument.__class__ is Tensor:
                if node_slot(argument).traced & KEEPS:
                    return current_trace() is None
            elif argument.__class__ is not np.ndarray and argument.__class__ is not float and _holds_kept(argument):
                return current_trace() is None
        return False

    def _known(self, key: Any) -> Specializations:
        """The specializations of a signature, which becomes the one used last."""
        known = self._specializations.get(key)
        if known is None:
            with self._lock.held():
                known = self._specializations.setdefault(key, Specializations())
                known.used = next(_uses)
                while len(self._specializations) > config.kept_programs():
                    del self._specializations[min(self._specializations, key=lambda k: self._specializations[k].used)]
        known.used = next(_uses)
        return known

    def _prefer(self, known: Specializations, one: Specialization) -> None:
        """Try a specialization first from now on."""
        if known[0] is not one:
            with self._lock.held():
                if one in known:
                    known.remove(one)
                    known.insert(0, one)

    def _open(self, one: Specialization, leaves: Sequence[Any], treespec: Any, rolls: bool) -> None:
        """Let the next call of this kind try this specialization first, with little or no Python."""
        found = None if self._reads_leaves else door(one, leaves, treespec, self._general)
        if found is not None:
            self._doors[rolls] = found
            if not config.blocks:
                self._door = found


class CheckedJitted(Jitted):
    """A compiled function that looks at each call whether arrays from outside still hold what was recorded."""

    def __init__(self, fn: Callable[..., Any], donate: tuple[int, ...] = (), budget: Budget | None = None) -> None:
        super().__init__(fn, donate, budget)
        self._frozen = FrozenArrays(fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the compiled function, if nothing has changed that it froze."""
        if current_trace() is None:
            self._frozen.check()
        found = super().__call__(*args, **kwargs)
        if self._frozen.met:
            self._frozen.take()
        return found

    def __reduce__(self) -> Any:
        return CheckedJitted, (self.fn, self.donate, self.budget)

    def _recorded(self) -> Callable[..., Any]:
        met = self._frozen.begin()

        @functools.wraps(self.fn, updated=())
        def noted(*args: Any, **kwargs: Any) -> Any:
            trace = current_trace()
            assert trace is not None
            trace.met = met
            return self.fn(*args, **kwargs)

        return noted


def _holds_kept(argument: Any) -> bool:
    """Whether an argument has a Tensor or Parameter in it that depends on a differentiable leaf."""
    for one in flatten(argument)[0]:
        if isinstance(one, Tensor):
            kept = one._is_remembered() if isinstance(one, Parameter) else node_slot(one).traced & KEEPS
            if kept:
                return True
    return False


def _has_out(fn: Callable[..., Any]) -> bool:
    """Whether a function has a parameter `out` of its own."""
    try:
        return "out" in inspect.signature(fn).parameters
    except (TypeError, ValueError):
        return False


def jit(
    fn: Callable[..., Any] | None = None,
    *,
    donate: int | tuple[int, ...] = (),
    memory: int | str | None = None,
    offload: str | os.PathLike[str] | None = None,
    frozen: str = "trust",
    **options: Any,
) -> Any:
    """Compile a function: it is recorded once per signature, and later calls run native code only.

    Parameters
    ----------
    fn : callable
        Takes arrays, floats, containers of them, and other hashable values (which are part of the signature); returns
        arrays. May itself use `grad` and all other transforms. Left out, `jit` gives a decorator.
    donate : int or tuple of int
        Positions of arguments that the caller gives up: results of the same shape and dtype may take their memory, and
        are then these very arrays. Their values are lost; ndarrays must be writeable, and Tensors are left alone. In a
        method, `self` is argument 0.
    memory : int or str, optional
        The bytes that a call may take for its intermediates and results, such as `"10 MB"` or `"2 GiB"`. Where the
        reverse mode of loops would store more, it stores checkpoints, and does turns again from these
        (`docs/loops.md`); `nb.explain` tells which. Also holds where the function becomes part of another one that is
        differentiated or compiled.
    offload : path, optional
        A folder. What is stored for the reverse mode of loops beyond the budget goes into a temporary file there,
        which is mapped into memory, and which nothing is left of when the program is dropped or Python ends.
    frozen : {"trust", "check"}
        With "check", each call compares the arrays that the function has read from outside, and those that its text
        names, with what was recorded, and raises if one has changed in place or was replaced. A comparison reads the
        arrays once. Not where the function becomes part of another one.
    **options
        MindSpore's options of its own compiler (`capture_mode`, `jit_level`, `mode`, `input_signature`, ...) have no
        effect.

    Returns
    -------
    Jitted
        A callable with the same arguments. ndarrays in, ndarrays out; if any argument is a Tensor, or the function uses
        Parameters, Tensors out. With `out=`, arrays nested like the result, it writes the results there and gives
        `out` back (unless the function has a parameter `out` of its own).

    Raises
    ------
    DtypeError
        For what is no function, or an option that MindSpore does not have.
    ArgumentError
        For `donate` that is no position, donated arrays that are read-only, and `out` that does not fit the result
        (also ShapeError and DtypeError). For `memory` that is no size, and `offload` that is no folder.
    OutOfMemoryError
        If a call cannot stay within `memory`; the message has the smallest figure. If there is no room on the disk.
    TracedValueError
        With `frozen="check"`, if an array from outside has changed. If the function needs the value of an array as a
        number. Truth values and integers are allowed: they become guards, and each way through the function is
        compiled once.

    Notes
    -----
    What the function reads from outside (global arrays, closures, configuration objects, names of Parameters) is frozen
    when it is recorded, and side effects happen only then. Parameters are the exception: each call reads their values,
    and writes those that the function writes. Cells are recorded anew when their mode, Parameters, sub-cells or plain
    attributes have changed.

    What it returns belongs to the caller: no two results share memory, nor does one with an argument (unless that was
    donated), and constants among them are copied for each call. Arrays lie in memory as NumPy's would: each order of
    the arguments' axes is a signature of its own.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> f = nb.jit(nb.value_and_grad(lambda x: np.sum(x**2)))
    >>> f(np.array([1.0, 2.0]))
    (np.float64(5.0), array([2., 4.]))

    A step of gradient descent in place, and a result in an array that exists:

    >>> step = nb.jit(lambda w, g: w - 0.5 * g, donate=0)
    >>> w = np.array([1.0, 2.0])
    >>> step(w, np.array([2.0, 2.0])) is w, w
    (True, array([0., 1.]))
    >>> step(w, np.array([2.0, 2.0]), out=np.empty(2))
    array([-1.,  0.])

    The gradient of a hundred thousand turns, for which 800 kB would be stored:

    >>> def decayed(rate):
    ...     return nb.scan(lambda x, _: (x - 1e-5 * rate * x, None), 1.0, length=100_000)[0]
    >>> round(nb.jit(nb.grad(decayed), memory="20 kB")(1.0), 5)
    np.float64(-0.36788)
    """
    fn = options.pop("function", fn)
    unknown = set(options) - _MINDSPORE_OPTIONS
    if unknown:
        message = f"jit has no option {', '.join(sorted(unknown))}."
        if any(name.startswith("static_") for name in unknown):
            message += " Arguments that are no arrays are static by themselves: leave it out."
        raise DtypeError(message)
    positions = check_donate(donate)
    budget = budget_of(memory, offload)
    if frozen not in ("trust", "check"):
        message = f"frozen must be 'trust' or 'check', but got {frozen!r}."
        raise ArgumentError(message)
    if fn is None:
        return functools.partial(jit, donate=positions, memory=memory, offload=offload, frozen=frozen)
    check_function(fn, "jit")
    if isinstance(fn, Jitted):
        positions, budget = positions or fn.donate, budget or fn.budget
        kind = CheckedJitted if frozen == "check" else type(fn)
        same = (positions, budget, kind) == (fn.donate, fn.budget, type(fn))
        return fn if same else kind(fn.fn, positions, budget)
    return (CheckedJitted if frozen == "check" else Jitted)(fn, positions, budget)


ms_function = jit
"""MindSpore's older name."""

_MINDSPORE_OPTIONS = frozenset(
    "capture_mode jit_level dynamic fullgraph backend mode input_signature hash_args jit_config compile_once".split()
)
