"""Where a recorded value would leave what nbgrad sees: the one way out that fits the place, for an error's message.

In: the frames of the call, when something asks for a plain number or array. Out: a sentence. Called by Tensor when it
refuses, so that nothing here costs anything before. A place is one of these: code that `differentiable_source` runs,
where only compiled functions and arrays made elsewhere are left; an installed package, or another module, that it could
run; compiled code, which it cannot; and plain code of the user's. docs/errors.md tells the rest.
"""

from __future__ import annotations

import builtins
import dis
import linecache
import re
import sys
from types import FrameType, ModuleType
from typing import Any

import numpy as np

from ..errors import DtypeError, is_installed, users_frame
from ..graph.loops.watch import running_kernel

_WRITES = frozenset(["STORE_SUBSCR", "STORE_SLICE", "INPLACE_ADD", "INPLACE_SUBTRACT", "INPLACE_MULTIPLY"])
_FORMATS = ("BINARY_MODULO", "INPLACE_MODULO")
_PLAIN_MODULES = ("math", "cmath", "builtins", "operator", "numpy")
_SOLVERS = {
    **{n: n for n in "root root_scalar brentq newton minimize least_squares curve_fit fixed_point".split()},
    **{n: n for n in "solve_ivp odeint quad".split()},
    **dict.fromkeys("brenth ridder bisect toms748".split(), "root_scalar"),
    **dict.fromkeys("cg gmres bicgstab".split(), "linear_solve"),
    "fsolve": "root",
}
"""SciPy's solvers, and those of `nbgrad.solvers` that stand for them."""


def way_out(of_number: bool) -> str:
    """The way to write it instead, in one sentence.

    Parameters
    ----------
    of_number : bool
        Whether a Python number was asked for, and not an array.
    """
    frame = users_frame()
    if frame is None:
        return "Use nb.stop_gradient(x) if it is a constant."
    around = _outwards(frame)
    for one in around:
        solver = _SOLVERS.get(one.f_code.co_name)
        if solver and str(one.f_globals.get("__name__")).startswith("scipy."):
            return (
                f"nb.solvers.{solver} has derivatives: call it in place of SciPy's {one.f_code.co_name}, or run the "
                "function by nb.differentiable_source(f), which does."
            )
    converted = [f for f in around if is_converted(f)]
    module = str(frame.f_globals.get("__name__", ""))
    called = called_name(frame)
    function = _found(frame, called)
    if function is np.nditer:
        return "np.nditer iterates over memory, which Tensors do not show: use np.ndindex(x.shape) and x[index]."
    if str(getattr(function, "__module__", "")).startswith("numpy.ma"):
        return f"{called}() keeps plain numbers: keep the mask beside the values, as in np.sum(x, where=~mask)."
    written = _is_written(frame) or (not of_number and (isinstance(function, np.ufunc) or _is_ours(function)))
    if written and _holds_records(frame):
        return "A structured array holds plain numbers: let each field be an array of its own, in a dict or dataclass."
    if written and frame in converted:
        kernel = running_kernel()
        also = f" Or call nb.kernel({kernel.co_name}), which takes plain arrays to write to." if kernel else ""
        return (
            "The array that it is written into is a plain ndarray from elsewhere, or its copy: make that one by "
            f"nbgrad.numpy.zeros, or copy it by np.copy(a) instead of a.copy().{also}"
        )
    if not written and frame not in converted and _is_scipys(function):
        return (
            f"{called}() is compiled code of SciPy: nb.differentiable_source(f) runs what docs/scipy.md lists. Else "
            "give it a derivative by nb.primitive."
        )
    if not written and (frame in converted or _is_compiled(function)):
        what = f"{called}()" if called else "The function that is called there"
        return f"{what} is compiled code, which no gradient passes: give it a derivative by nb.primitive."
    package = module.partition(".")[0] if is_installed(frame.f_code.co_filename) else module
    if converted or is_installed(frame.f_code.co_filename):
        if package == "scipy" and converted:
            return f"{called or 'The function'}() of SciPy has no form for it: give it a derivative by nb.primitive."
        modules = "" if package == "scipy" else f", modules={package!r}"
        return (
            f"{package} is run as it is: nb.differentiable_source(f{modules}) runs it with nbgrad.numpy, which keeps "
            "the gradient."
        )
    if of_number and not written:
        return (
            "Use np.sin(x) instead of math.sin(x), or run the function by nb.differentiable_source(f); a constant is "
            "nb.stop_gradient(x)."
        )
    return (
        "NumPy asks no Tensor when it makes an array or writes into one: use `import nbgrad.numpy as np`, or run the "
        "function by nb.differentiable_source(f); a constant is nb.stop_gradient(x)."
    )


def _outwards(frame: FrameType | None) -> list[FrameType]:
    found: list[FrameType] = []
    while frame is not None:
        found.append(frame)
        frame = frame.f_back
    return found


def is_converted(frame: FrameType) -> bool:
    """Whether `differentiable_source` runs the code: it has globals of its own kind."""
    return frame.f_globals.__class__.__module__.startswith("nbgrad.source.")


def _is_written(frame: FrameType) -> bool:
    """Whether the frame is writing into an array: `a[0] = x`, or `a += x`."""
    code = frame.f_code.co_code
    name = dis.opname[code[frame.f_lasti]]
    # From Python 3.11 on, in-place operators are those from number 13 on.
    return name in _WRITES or (name == "BINARY_OP" and code[frame.f_lasti + 1] >= 13)


def _holds_records(frame: FrameType) -> bool:
    """Whether a variable that a frame names is an array with named fields, or a row or a field of one."""
    outer = [_found(frame, name) for name in frame.f_code.co_names]
    return any(
        isinstance(value, np.ndarray | np.void) and value.dtype.names is not None
        for value in (*frame.f_locals.values(), *outer)
    )


def formats_text(frame: FrameType) -> bool:
    """Whether the frame that asks for a number puts it into a text: `"%g" % x`.

    It is the frame that Python calls `__float__` from, so that the operator is that of texts: numbers and arrays leave
    theirs to the Tensor.
    """
    code = frame.f_code.co_code
    name = dis.opname[code[frame.f_lasti]]
    # From Python 3.11 on, numbers 6 and 19 are the operators % and %=.
    return name in _FORMATS or (name == "BINARY_OP" and code[frame.f_lasti + 1] in (6, 19))


def called_name(frame: FrameType) -> str:
    """The name of the function that a frame is calling, as its text has it; empty if that is no plain name."""
    text = linecache.getline(frame.f_code.co_filename, frame.f_lineno)
    if hasattr(frame.f_code, "co_positions"):
        places: Any = list(frame.f_code.co_positions())  # pyright: ignore[reportAttributeAccessIssue]
        first, _, begin, _ = places[frame.f_lasti // 2]
        if first is not None and begin is not None:
            text = linecache.getline(frame.f_code.co_filename, first).encode()[begin:].decode(errors="replace")
    found = re.search(r"([A-Za-z_][\w.]*)\(", text)
    return found[1] if found else ""


def _found(frame: FrameType, name: str) -> Any:
    """The object that a dotted name means in a frame; None if that cannot be seen."""
    first, *rest = name.split(".")
    value: Any = None
    for names in (frame.f_locals, frame.f_globals, vars(builtins)):
        try:
            value = names[first]
            break
        except KeyError:
            continue
    for part in rest:
        value = getattr(value, part, None) if isinstance(value, ModuleType) else None
    return value


def _is_ours(function: Any) -> bool:
    """Whether something is a function of `nbgrad.numpy`, which asks for an ndarray only to write to `out`."""
    modules = (getattr(function, "__module__", None) or "", type(function).__module__)
    return any(module.startswith("nbgrad.") for module in modules)


def _is_compiled(function: Any) -> bool:
    """Whether something is a function in C, Fortran or Cython; not one of those that Python's numbers have."""
    if function is None or isinstance(function, type | np.ufunc) or not callable(function):
        return False
    module = getattr(function, "__module__", None) or ""
    return not hasattr(function, "__code__") and module.partition(".")[0] not in _PLAIN_MODULES


def _is_scipys(function: Any) -> bool:
    """Whether something is a compiled function that a module of SciPy holds: Fortran's functions name no module."""
    if not _is_compiled(function):
        return False
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("scipy.")]
    return any(function is held for module in modules for held in list(vars(module).values()))


# ----- Numba -----


def refuse_numba(frame: FrameType) -> None:
    """Raise for a Tensor that is given to a function of Numba, if it is Numba that asks.

    Raises
    ------
    DtypeError
    """
    caller: FrameType | None = frame
    while caller is not None and str(caller.f_globals.get("__name__", "")).partition(".")[0] in ("numba", "functools"):
        compiled = getattr(caller.f_locals.get("self"), "py_func", None)
        if compiled is not None:
            raise DtypeError(numba_message(compiled.__name__))
        caller = caller.f_back
    if str(frame.f_globals.get("__name__", "")).startswith("numba."):
        raise DtypeError(numba_message(""))


def numba_message(name: str, is_ufunc: bool = False) -> str:
    """The message about a function, or a ufunc, that Numba has compiled, with the way to use it."""
    what = f"{name}() is compiled by Numba" if name else "This function is compiled by Numba"
    given = name or "f"
    ways = f"Call nb.elementwise({given}) instead."
    if not is_ufunc:
        ways = f"Call nb.kernel({given}) instead, or nb.elementwise({given}) if it is a function of numbers."
    return f"{what}, which knows no Tensors. {ways} Their derivatives follow from its text."
