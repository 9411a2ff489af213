"""Derivatives of kernels as functions that Numba compiles.

In: kernels as statements, the arguments to differentiate by. Out: `Derived`: a text and a compiled function. Called by
specializations.py. Compiled code is kept in nbgrad's cache on disk, by the text that it is made of.
"""

from __future__ import annotations

import builtins
import functools
import math
import pickle
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..compiler.cache import cpu_features, cpu_name, digest, load, numba_version, store
from ..config import interpret
from ..extend.numba_source import helpers_of
from ..process.once import computed_once
from .common_values import with_common_values
from .cotangents import bar
from .dataflow import is_float
from .kernel_statements import (
    Block,
    Copy,
    Load,
    New,
    Op,
    Room,
    Set,
    Statement,
    Store,
    is_name,
    loaded,
    made,
    walk,
    with_blocks,
)
from .kernel_text import function_of, function_text
from .machine.machine_function import Compiled, Statements
from .reading.array_values import View
from .reading.kernel_form import ScalarForm
from .removal import without_unused
from .reverse import Adjoint, reverse
from .tangent import dot, dot_again, tangent
from .turns.element_sums import with_element_sums
from .turns.first_writes import with_first_writes
from .turns.gathers import with_gathers
from .turns.independence import NewNames
from .turns.loop_order import with_free_sums, with_loops_forward
from .turns.thread_parts import on_one_thread, with_threads

HELPERS = {
    "room": """def room(array, length):
    return np.empty(length + length // 2, array.dtype)
""",
    "kept": """def kept(array, length):
    longer = np.empty(2 * length + 64, array.dtype)
    for k in range(array.shape[0]):
        longer[k] = array[k]
    return longer
""",
    "plus": """def plus(x, y):
    return x + y
""",
    "add_parts": """def add_parts(whole, parts):
    for k in range(parts.shape[0]):
        whole += parts[k]
""",
}
"""Functions that the text of derivatives calls: a longer array, one that keeps the elements that there are, sums in any
order, and the sum of the copies of an array, in order."""
_OPTIONS: dict[str, dict[str, Any]] = {"plus": {"fastmath": {"reassoc"}}}
_FAST: dict[str, Any] = {"error_model": "numpy"}
_INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of functions that only derivatives call."""
_PARALLEL: dict[str, Any] = {**_FAST, "parallel": True}


@functools.cache
def _helper(name: str, plain: bool) -> Any:
    """A function of `HELPERS`, which is compiled once for all derivatives."""
    import numba

    function = function_of(name, HELPERS[name], {"np": np})
    return function if plain else numba.njit(**_OPTIONS.get(name, {}), **_INNER)(function)


def _decorator(options: dict[str, Any]) -> str:
    given = ", ".join(f"{key}={value!r}".replace("'", '"') for key, value in options.items())
    return f"@njit({given})" if given else "@njit"


class _StoredCode:
    """The place of Numba's compiled code: nbgrad's cache on disk. Numba calls these methods of a dispatcher's cache."""

    def __init__(self, text: str) -> None:
        self.text = text

    def key(self, signature: Any) -> str:
        """The name of the code for a signature."""
        return digest("derived kernel", self.text, str(signature), numba_version(), cpu_name(), cpu_features())

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The compiled code for a signature; None if there is none."""
        from numba.core.compiler import CompileResult

        data = load("kernel", self.key(signature))
        if data is None:
            return None
        try:
            target_context.refresh()
            return CompileResult._rebuild(target_context, *pickle.loads(data))
        except Exception:  # whatever is wrong with an entry, it is compiled anew
            return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Keep the compiled code for a signature."""
        from numba.core.serialize import dumps

        if data.lifted or data.objectmode:
            return
        try:
            found = dumps(data._reduce())
        except (pickle.PicklingError, TypeError, AttributeError):
            return  # It is compiled again in the next process.
        store("kernel", self.key(signature), found)

    def enable(self) -> None:
        """Numba asks for it; there is nothing to do."""

    def disable(self) -> None:
        """Numba asks for it; there is nothing to do."""

    def flush(self) -> None:
        """Numba asks for it; there is nothing to do."""


@dataclass
class Derived:
    """A derivative as text and as a function.

    Attributes
    ----------
    name : str
        The name of the function.
    text : str
        Its text.
    parameters : list of str
        The names of its arguments.
    objects : dict
        Global arrays that it reads, by name.
    options : dict
        Options of `numba.njit`.
    parts : dict of str to str
        The texts of the functions that run parts of its loops, by name.
    statements : Statements, optional
        The statements that the text says.
    filled : frozenset of str
        Arrays of cotangents that are zeros at the start, of which it writes all elements before it reads any.
    """

    name: str
    text: str
    parameters: list[str]
    objects: dict[str, Any]
    options: dict[str, Any] = field(default_factory=lambda: dict(_FAST))
    parts: dict[str, str] = field(default_factory=dict)
    statements: Statements | None = None
    filled: frozenset[str] = frozenset()

    @property
    def whole(self) -> str:
        """The text with those of its parts."""
        return "\n\n".join([*self.parts.values(), self.text])

    @property
    def helpers(self) -> list[tuple[str, str]]:
        """The names and texts of the functions that it calls."""
        used = [(name, text) for name, text in HELPERS.items() if f"{name}(" in self.whole]
        return used + helpers_of(self.whole)

    @property
    def source(self) -> str:
        """The text with the helpers that it calls."""
        texts = [f"{_decorator(_OPTIONS.get(name, {}))}\n{text}" for name, text in self.helpers]
        texts += [f"{_decorator(_FAST)}\n{text}" for text in self.parts.values()]
        return "\n\n".join([*texts, f"{_decorator(self.options)}\n{self.text}"])

    @computed_once
    def function(self) -> Callable[..., Any]:
        """The function, which is compiled when it is first called; plain Python with NBGRAD_DISABLE_JIT=1."""
        if interpret() or self.statements is None:
            return self.by_numba()
        return Compiled(self.statements, self.objects, self.by_numba)

    def by_numba(self) -> Callable[..., Any]:
        """The function of the text."""
        import numba

        plain = interpret()
        # Numba imports the module of this name where it loads compiled code; of modules it keeps the names only, but of
        # a dict of built-in functions all of them, and Jupyter's input() cannot be stored.
        namespace: dict[str, Any] = {"__builtins__": builtins, "__name__": __name__, "np": np, "math": math}
        namespace.update(self.objects)
        namespace["prange"] = range if plain else numba.prange

        def add(name: str, text: str, options: dict[str, Any]) -> Any:
            function = function_of(name, text, namespace)
            if not plain:
                namespace[name] = numba.njit(**options)(function)
            return namespace[name]

        for name, text in self.helpers:
            if name in HELPERS:
                namespace[name] = _helper(name, plain)
            else:
                add(name, text, _INNER)
        for name, text in self.parts.items():
            add(name, text, {**_FAST, **_INNER})
        made = add(self.name, self.text, {**self.options, "no_cfunc_wrapper": True})
        if not plain:
            contents = "".join(
                f"{name}:{value.dtype}{value.shape}{value.tobytes().hex()}" for name, value in self.objects.items()
            )
            made._cache = _StoredCode(f"{self.whole}\n{sorted(self.options)}\n{contents}")
        return made


@dataclass(frozen=True)
class Forward:
    """A kernel, or a derivative of it, with tangents: `moving` are the arguments that have one."""

    derived: Derived
    moving: list[str]
    body: Block
    results: list[str]
    dtypes: Mapping[str, str]


def _derived(
    form: ScalarForm,
    kind: str,
    parameters: list[str],
    body: Block,
    results: Sequence[str],
    dtypes: Mapping[str, str],
    sums: Iterable[str] = (),
    cotangents: Collection[str] = (),
    zeroed: Sequence[str] = (),
) -> Derived:
    """A derivative whose statements are given, its cotangents that are sums, and its arrays of cotangents.

    `zeroed` are the arrays that are zeros at its start.
    """
    name = f"{form.name.strip('_<>')}_{kind}"
    after = [one for one in results if is_name(one)]
    body = with_loops_forward(with_gathers(body, after), after)
    body = with_common_values(body, after, dtypes)
    body, more = with_element_sums(body, cotangents, [*parameters, *dtypes])
    body, filled = with_first_writes(body, zeroed, [*parameters, *dtypes])
    body = with_free_sums(body, frozenset([*more, *sums]))
    body, turns = with_threads(body, after, dtypes, name)
    parts = {one.name: function_text(one.name, one.parameters, one.body, ()) for one in turns}
    text = function_text(name, parameters, body, results)
    unsigned = any(isinstance(one, Set) and dtypes.get(one.target) == "uint64" for one in walk(form.body))
    # Machine code of its own computes integers with a sign.
    statements = None if unsigned else Statements(parameters, body, turns, results)
    options = _PARALLEL if parts else _FAST
    return Derived(name, text, parameters, form.objects, options, parts, statements, frozenset(filled))


def reverse_kernel(form: ScalarForm, wanted: Sequence[str], threads: bool = True) -> tuple[Derived, Adjoint]:
    """The reverse kernel: the kernel's arguments, cotangents of arrays and results; gives those of numbers.

    With `threads` the cotangents of arrays that are no results are zeros at its start, or `filled` by it.
    """
    found = reverse(form, list(wanted), short=True, nests=True)
    body = found.body if threads else on_one_thread(found.body)
    zeroed = [bar(one) for one in found.arrays if one not in form.written] if threads else []
    bars = _bars(form, found)
    return _derived(form, "vjp", found.parameters, body, found.results, found.dtypes, found.sums, bars, zeroed), found


def _bars(form: ScalarForm, adjoint: Adjoint) -> list[str]:
    """The arrays of a reverse kernel that are cotangents."""
    return [bar(one) for one in (*form.parameters, *made(form.body)) if one not in adjoint.numbers]


def measuring_kernel(form: ScalarForm, adjoint: Adjoint) -> tuple[Derived, list[str]]:
    """The reverse kernel on one thread, which writes the bytes of the arrays that it makes to a last argument."""
    body = on_one_thread(adjoint.body)
    held = NewNames(body, adjoint.parameters).new("held")
    arrays = sorted(made(body))
    dtypes = dict(adjoint.dtypes)

    def measured(block: Block) -> Block:
        found: list[Statement] = []
        for statement in block:
            found.append(with_blocks(statement, measured))
            if isinstance(statement, New | Copy | Room):
                place = (str(arrays.index(statement.array)),)
                now, most, before = f"{held}_now", f"{held}_most", f"{held}_before"
                found += [
                    Set(now, Op("", (), "{0}.nbytes", (statement.array,))),
                    Set(before, Load(held, place)),
                    Set(most, Op("", (now, before), "max({0}, {1})")),
                    Store(held, place, most),
                ]
        return tuple(found)

    parameters = [*adjoint.parameters, held]
    return _derived(form, "vjp_bytes", parameters, measured(body), adjoint.results, dtypes), arrays


def forward_kernel(form: ScalarForm, moved: Sequence[str]) -> Forward:
    """The tangent kernel: the kernel's arguments, then tangents; gives those of the numbers that the kernel returns."""
    results = [
        one.array if isinstance(one, View) else one
        for k, one in enumerate(form.results)
        if k not in form.same and isinstance(one, str | View) and is_float(form.dtype_of(one))
    ]
    return _with_tangents(form, "jvp", form.body, form.parameters, moved, results, form.dtypes)


def second_kernel(form: ScalarForm, adjoint: Adjoint, moved: Sequence[str]) -> Forward:
    """The tangent of a reverse kernel: `moved` are arguments of it; gives the tangents of what it returns."""
    sums, bars = [*adjoint.sums, *map(dot, adjoint.sums)], _bars(form, adjoint)
    return _with_tangents(
        form,
        "vjp_jvp",
        adjoint.body,
        adjoint.parameters,
        moved,
        adjoint.results,
        adjoint.dtypes,
        sums,
        [*bars, *map(dot, bars)],
    )


def forward_again_kernel(form: ScalarForm, first: Forward, moved: Sequence[str]) -> Forward:
    """The tangent of a tangent kernel: `moved` are arguments of it; gives the tangents of what it returns."""
    parameters = first.derived.parameters
    return _with_tangents(form, "jvp_jvp", first.body, parameters, moved, first.results, first.dtypes, named=dot_again)


def _with_tangents(
    form: ScalarForm,
    kind: str,
    body: Block,
    parameters: Sequence[str],
    moved: Sequence[str],
    results: Sequence[str],
    dtypes: Mapping[str, str],
    sums: Iterable[str] = (),
    cotangents: Collection[str] = (),
    named: Callable[[str], str] = dot,
) -> Forward:
    known = {**dtypes, **{bar(one): "float64" for one in form.parameters}}
    found = tangent(form.name, body, moved, known, named)
    moving = [one for one in parameters if one in found.active]
    given = [named(one) if is_name(one) and one in found.active else "0.0" for one in results]
    roots = [named(one) for one in moving] + [one for one in given if is_name(one)]
    kept = without_unused(found.body, roots)
    names = [*parameters, *map(named, moving)]
    return Forward(
        _derived(form, kind, names, kept, given, found.dtypes, sums, cotangents), moving, kept, given, found.dtypes
    )


def extents_kernel(form: ScalarForm, atoms: Sequence[str]) -> tuple[Derived, set[str]]:
    """The function that computes numbers of a kernel, such as the lengths of results, and the arrays that it reads."""
    kept = without_unused(form.body, [one for one in atoms if is_name(one)])
    return _derived(form, "shape", form.parameters, kept, list(atoms), form.dtypes), loaded(kept)
