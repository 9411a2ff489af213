"""Calls of Numba's CUDA module in kernels: thread numbers, barriers, atomic additions, shared and local arrays.

In: calls of a kernel's text. Out: statements, and values of array_values.py. Called by kernel_expressions.py, whose
class stands upon this one.
"""

from __future__ import annotations

import ast
from typing import Any

from ..kernel_statements import Expression, Op, Sync
from ..reading.array_functions import ArrayFunctions
from ..reading.array_values import Along, Object, Value, View
from .thread_names import NUMBERS


class ThreadCalls(ArrayFunctions):
    """The part of a reader that knows what threads do."""

    def thread_call(self, call: ast.Call, name: str, target: str) -> Value | Expression | None:
        """The value of a call; None if it gives none."""
        if name in NUMBERS:
            return Op("", (), f"cuda.{name}")
        if name in ("grid(1)", "gridsize(1)"):
            return Op("", (), f"cuda.{name}")
        if name.startswith("grid"):
            count = int(name[-2])
            return [self.put(Op("", (), f"cuda.{name}[{k}]"), "int64", "k") for k in range(count)]
        match name:
            case "syncthreads":
                self.out.append(Sync())
                return None
            case "atomic.add" | "atomic.sub":
                return self.atomic(call, name)
            case "shared.array" | "local.array":
                return self.of_block(call, name, target)
            case "const.array_like":
                return self.value(call.args[0])
            case "fma":
                a, b, c = map(self.number, call.args)
                return Op("add", (self.put(Op("multiply", (a, b), "{0} * {1}"), "float64"), c), "{0} + {1}")
            case _:
                test, one, other = map(self.number, call.args)
                return Op("select", (test, one, other), "{1} if {0} else {2}")

    def atomic(self, call: ast.Call, name: str) -> None:
        """An atomic addition: it is `+=`, and the old value is not used."""
        base = self.value(call.args[0])
        if not isinstance(base, View) or len(call.args) != 3:
            self.refuse(call, f"calls cuda.{name}() otherwise than with an array, an index and a number.")
            return
        index = self.value(call.args[1])
        place = self.place(base, index if isinstance(index, list) else [index])
        if place.extents:
            self.refuse(call, f"calls cuda.{name}() with fewer indices than the array has axes.")
            return
        self.form.added.add(place.array)
        self.write(call, place, [], self.number(call.args[2]), "Add" if name == "atomic.add" else "Sub")

    def of_block(self, call: ast.Call, name: str, target: str) -> View:
        """A shared or a local array."""
        given: dict[str, Any] = dict(zip(("shape", "dtype"), call.args, strict=False))
        given |= {str(one.arg): one.value for one in call.keywords}
        extents = self.value(given["shape"])
        shape = [str(one) for one in extents] if isinstance(extents, list) else [str(extents)]
        if not all(one.isdigit() for one in shape):
            self.refuse(call, f"makes an array by cuda.{name}() whose shape is not made of numbers known beforehand.")
        if "0" in shape:
            self.refuse(call, "uses dynamic shared memory, of which no derivative is made. Give the array a shape.")
        found = self.value(given["dtype"])
        dtype = self.dtype(call, found.value if isinstance(found, Object) else found)
        if name == "local.array":
            return self.local(self.frame.prefix + target, shape, dtype, "")
        array = self.fresh(self.frame.prefix + target, dtype)
        self.form.ranks[array] = len(shape)
        self.form.shared[array] = tuple(map(int, shape))
        return View(array, tuple([Along(k) for k in range(len(shape))]), tuple(shape), dtype)
