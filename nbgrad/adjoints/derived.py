"""Derivatives of kernels as functions that Numba compiles.

In: kernels as statements, the arguments to differentiate by. Out: `Derived`: a text and a compiled function. Called by
specializations.py. Compiled code is kept in nbgrad's cache on disk, by the text that it is made of.
"""

from __future__ import annotations

import hashlib
import linecache
import math
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..compiler.cache import cpu_features, cpu_name, digest, load, numba_version, store
from ..config import interpret
from ..extend.numba_source import helpers_of
from ..process.once import computed_once
from .cotangents import bar
from .dataflow import is_float
from .kernel_statements import Block, is_name, loaded
from .kernel_text import function_text
from .reading.array_values import View
from .reading.kernel_form import ScalarForm
from .removal import without_unused
from .reverse import Adjoint, reverse
from .tangent import dot, tangent

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
}
"""What the text of derivatives calls: a longer array, and one that keeps what the array has."""


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

        if not data.lifted and not data.objectmode:
            store("kernel", self.key(signature), dumps(data._reduce()))

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
    """

    name: str
    text: str
    parameters: list[str]
    objects: dict[str, Any]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def helpers(self) -> list[tuple[str, str]]:
        """The names and texts of the functions that it calls."""
        return [(name, text) for name, text in HELPERS.items() if f"{name}(" in self.text] + helpers_of(self.text)

    @property
    def source(self) -> str:
        """The text with the helpers that it calls."""
        parts = [f"@njit\n{text}" for _, text in self.helpers] + [f'@njit(error_model="numpy")\n{self.text}']
        return "\n\n".join(parts)

    @computed_once
    def function(self) -> Callable[..., Any]:
        """The function, which Numba compiles when it is first called; plain Python with NBGRAD_DISABLE_JIT=1."""
        import numba

        plain = interpret()
        namespace: dict[str, Any] = {"np": np, "math": math, "prange": range if plain else numba.prange, **self.objects}
        for name, text in self.helpers:
            exec(text, namespace)
            namespace[name] = namespace[name] if plain else numba.njit(namespace[name])
        place = f"<derived {self.name} {hashlib.sha256(self.text.encode()).hexdigest()[:12]}>"
        linecache.cache[place] = (len(self.text), None, self.text.splitlines(True), place)
        exec(compile(self.text, place, "exec"), namespace)
        if plain:
            return namespace[self.name]
        made: Any = numba.njit(error_model="numpy", **self.options)(namespace[self.name])
        contents = "".join(
            f"{name}:{value.dtype}{value.shape}{value.tobytes().hex()}" for name, value in self.objects.items()
        )
        made._cache = _StoredCode(f"{self.text}\n{sorted(self.options.items())}\n{contents}")
        return made


@dataclass(frozen=True)
class Forward:
    """A kernel, or its reverse kernel, with tangents: `moving` are the arguments that have one."""

    derived: Derived
    moving: list[str]


def _title(form: ScalarForm, kind: str) -> str:
    return f"{form.name.strip('_<>')}_{kind}"


def reverse_kernel(form: ScalarForm, wanted: Sequence[str]) -> tuple[Derived, Adjoint]:
    """The reverse kernel: the kernel's arguments, cotangents of arrays and results; gives those of numbers."""
    found = reverse(form, list(wanted))
    name = _title(form, "vjp")
    text = function_text(name, found.parameters, found.body, found.results)
    return Derived(name, text, found.parameters, form.objects), found


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
    return _with_tangents(form, "vjp_jvp", adjoint.body, adjoint.parameters, moved, adjoint.results, adjoint.dtypes)


def _with_tangents(
    form: ScalarForm,
    kind: str,
    body: Block,
    parameters: Sequence[str],
    moved: Sequence[str],
    results: Sequence[str],
    dtypes: dict[str, str],
) -> Forward:
    known = {**dtypes, **{bar(one): "float64" for one in form.parameters}}
    found = tangent(form.name, body, moved, known)
    moving = [one for one in parameters if one in found.active]
    given = [dot(one) if is_name(one) and one in found.active else "0.0" for one in results]
    roots = [dot(one) for one in moving] + [one for one in given if is_name(one)]
    kept = without_unused(found.body, roots)
    names = [*parameters, *map(dot, moving)]
    name = _title(form, kind)
    return Forward(Derived(name, function_text(name, names, kept, given), names, form.objects), moving)


def extents_kernel(form: ScalarForm, atoms: Sequence[str]) -> tuple[Derived, set[str]]:
    """The function that computes numbers of a kernel, such as the lengths of results, and the arrays that it reads."""
    kept = without_unused(form.body, [one for one in atoms if is_name(one)])
    name = _title(form, "shape")
    text = function_text(name, form.parameters, kept, list(atoms))
    return Derived(name, text, form.parameters, form.objects), loaded(kept)
