"""Derivatives of kernels as functions that Numba compiles.

In: a kernel, examples of its arguments, the arguments to differentiate by. Out: `Derived`: a compiled function and its
text. Called by kernel.py.
"""

from __future__ import annotations

import linecache
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..process.once import computed_once
from .kernel_text import function_text
from .reverse import Adjoint, reverse
from .scalar_form import ScalarForm, scalar_form

HELPERS = '''
def room(array, length):
    return np.empty(length + length // 2, array.dtype)


def kept(array, length):
    longer = np.empty(2 * length + 64, array.dtype)
    longer[: array.shape[0]] = array
    return longer
'''
"""What the text of derivatives calls: a longer array, and one that keeps what the array has."""


@dataclass
class Derived:
    """A derivative as text and as a function."""

    name: str
    text: str
    objects: dict[str, Any]
    options: dict[str, Any]

    @property
    def source(self) -> str:
        """The text with all that it needs, ready to be stored in a file."""
        helpers = "".join(
            f"\n\n@njit\ndef {one.strip()}\n" for one in HELPERS.split("\ndef ")[1:] if one.split("(")[0] + "(" in self.text
        )
        imports = "import math\n\nimport numpy as np\nfrom numba import njit, prange\n"
        return f"{imports}{helpers}\n\n@njit(error_model=\"numpy\")\n{self.text}"

    @computed_once
    def compiled(self) -> Callable[..., Any]:
        """The function, which Numba compiles when it is called."""
        import numba

        namespace: dict[str, Any] = {"np": np, "math": math, "prange": numba.prange, **self.objects}
        exec(HELPERS, namespace)
        for helper in ("room", "kept"):
            namespace[helper] = numba.njit(namespace[helper])
        place = f"<{self.name}>"
        linecache.cache[place] = (len(self.text), None, self.text.splitlines(True), place)
        exec(compile(self.text, place, "exec"), namespace)
        return numba.njit(error_model="numpy", **self.options)(namespace[self.name])


def derived_reverse(form: ScalarForm, wanted: list[str]) -> tuple[Derived, Adjoint]:
    """The reverse kernel of a kernel."""
    found = reverse(form, wanted)
    name = f"{form.name.strip('_')}_vjp"
    text = function_text(name, found.parameters, found.body, found.results)
    return Derived(name, text, form.objects, {}), found


__all__ = ["Derived", "derived_reverse", "scalar_form"]
