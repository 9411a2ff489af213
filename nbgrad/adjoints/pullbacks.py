"""Pullbacks of functions of numbers, as text for users' own kernels.

In: a function that Numba can compile, of numbers, and their dtypes. Out: the text of its reverse kernel, the dtypes of
the arguments of that, and the global arrays that it reads. Called by device_function.py.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, DtypeError
from ..extend.numba_source import Printed
from ..extend.scalar_code import python_function
from ..record.foreign_arrays import full_name
from .dataflow import is_float
from .derived import reverse_kernel
from .reading.scalar_form import name_of, scalar_form


def pullback(
    function: Callable[..., Any], dtypes: Sequence[np.dtype[Any]], name: str | None
) -> tuple[Printed, list[np.dtype[Any]], dict[str, np.ndarray]]:
    """The text of the pullback of a function, which takes its arguments and the cotangents of its results.

    Raises
    ------
    ArgumentError
        If a part of the function has no derivative, or if it has no argument or no result of floats.
    DtypeError
        If it is no function that Numba compiles, or returns arrays.
    """
    python = python_function(function)
    if python is None:
        message = f"device_function(..., vjp=True) takes a function that Numba compiles, but got {full_name(function)}."
        raise DtypeError(message)
    given = {one: dtype.type(0) for one, dtype in zip(inspect.signature(python).parameters, dtypes, strict=False)}
    form = scalar_form(function, given)
    shown = name_of(function)
    if form.complex:
        message = f"{shown}() computes with complex arguments or results, but a device function has real ones."
        raise DtypeError(message)
    if not all(isinstance(one, str) for one in form.results):
        message = f"{shown}() returns an array, but a device function must return numbers. Use nb.kernel."
        raise DtypeError(message)
    wanted = [one for one in form.parameters if is_float(form.dtypes[one])]
    if not wanted or not any(is_float(form.dtype_of(one)) for one in form.results):
        message = f"{shown}() has no {'result' if wanted else 'argument'} of floats, so that it has no derivative."
        raise ArgumentError(message)
    derived, adjoint = reverse_kernel(form, wanted, threads=False)
    name = name or derived.name
    text = derived.text.replace(f"def {derived.name}(", f"def {name}(", 1)
    if len(wanted) == 1:
        text = text.replace(f"return ({adjoint.results[0]},)", f"return {adjoint.results[0]}")
    seeds = [np.dtype(form.dtype_of(form.results[k])) for k in adjoint.seeds]
    return Printed(name, text, tuple(derived.helpers)), [*dtypes, *seeds], form.objects
