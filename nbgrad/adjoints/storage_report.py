"""The storage of a kernel's derivative, as text: `nb.explain` of a kernel.

In: a specialization, and values of its arguments. Out: a text: the values that the reverse kernel stores, the loops
that it runs again, the way to the elements that loops overwrite, and its bytes and time. Called by kernel.py.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from .derived import measuring_kernel
from .kernel_statements import Block, For, While, blocks_in, made
from .reverse import Adjoint
from .specializations import Specialization, plain

_BUDGET = 0.2
"""Seconds for each timing."""
_MOST = 100
"""Runs for each timing."""


def storage_report(spec: Specialization, given: dict[str, Any] | None) -> str:
    """The storage and the loops of the reverse kernel by all inputs; with arguments also bytes and times."""
    derived, adjoint = spec.reverse(spec.differentiable_inputs)
    shown = ", ".join(f"`{name}`" for name in spec.differentiable_inputs) or "nothing"
    lines = [f"{spec.form.name}(): its derivative by {shown}, {len(derived.text.splitlines())} lines of text"]
    sizes = None if given is None else _sizes(spec, adjoint, given)
    lines += ["", *_stored(spec, adjoint, sizes), *_loops(adjoint), *_overwritten(adjoint)]
    if given is not None:
        lines += ["", _times(spec, given)]
    return "\n".join(lines)


def _at(place: str) -> str:
    """The place of a user's loop, without the folder."""
    return f"the loop at {os.path.basename(place)}" if place else "the kernel"


def _amount(count: int) -> str:
    return f"{count:,} bytes"


# ----- Storage -----


def _stored(spec: Specialization, adjoint: Adjoint, sizes: dict[str, int] | None) -> list[str]:
    """The arrays that the derivative makes."""
    groups: dict[tuple[str, str, str], int] = {}
    for array in sorted(made(adjoint.body)):
        size = 0 if sizes is None else sizes.get(array, 0)
        one = adjoint.stored.get(array)
        if one is not None:
            key = one.line, one.of, one.why
        elif array in spec.form.dtypes:
            key = "", array, "an array that the kernel makes itself"
        elif sizes is None or array in sizes:
            key = "", array.removesuffix("_b"), "the cotangent of an array that the kernel makes itself"
        else:
            continue
        groups[key] = groups.get(key, 0) + size
    if not groups:
        return ["stored: nothing; all values are computed again from the arguments"]
    total = "" if sizes is None else f": {_amount(sum(groups.values()))} beside the arguments and their gradients"
    lines = [f"stored{total}"]
    for (line, of, why), size in sorted(groups.items()):
        amount = "" if sizes is None else f": {_amount(size)}"
        lines.append(f"  {of}, {why} ({_at(line)}){amount}")
    return lines


def _sizes(spec: Specialization, adjoint: Adjoint, given: dict[str, Any]) -> dict[str, int]:
    """The bytes of each array that the derivative makes for some arguments."""
    derived, arrays = measuring_kernel(spec.form, adjoint)
    held = np.zeros(max(len(arrays), 1), np.int64)
    derived.function(*_arguments(spec, adjoint, given), held)
    return {name: int(size) for name, size in zip(arrays, held, strict=False)}


def _arguments(spec: Specialization, adjoint: Adjoint, given: dict[str, Any]) -> list[Any]:
    """The arguments of the reverse kernel: cotangents of ones."""
    cotangents = _cotangents(spec, given)
    bars = spec.bars(adjoint, given, cotangents, {})
    seeds = [plain(cotangents[k]) for k in adjoint.seeds]
    return [*[given[name] for name in spec.form.parameters], *bars, *seeds]


def _cotangents(spec: Specialization, given: dict[str, Any]) -> dict[str | int, Any]:
    """Ones for all results of floats."""
    results = spec.values(given)
    return {output: np.ones(np.shape(results[output]), spec.dtype_of(output)) for output in spec.float_outputs}


# ----- Loops -----


def _loops(adjoint: Adjoint) -> list[str]:
    """How the derivative runs the user's loops."""
    found: list[tuple[str, str, int]] = []

    def visit(block: Block, depth: int) -> None:
        for statement in block:
            deeper = depth
            if isinstance(statement, For | While) and statement.line:
                backwards = isinstance(statement, For) and statement.backwards
                found.append((statement.line, "backwards" if backwards else "forward", depth))
                deeper += 1
            for inner in blocks_in(statement):
                visit(inner, deeper)

    visit(adjoint.body, 1)
    if not found:
        return []
    again = Counter(line for line, how, _ in found if how == "forward")
    lines = ["run, in this order; a turn that runs backwards first computes its values again"]
    lines += [f"{'  ' * depth}{_at(line)}, {how}" for line, how, depth in found]
    if not again:
        lines.append("  no loop runs forward: what turns carry is not needed to run them backwards")
    return lines


def _overwritten(adjoint: Adjoint) -> list[str]:
    """How the elements of arrays that loops overwrite are had again."""
    lines = [f"  {array} in {_at(line)}: {why}" for (line, array), why in sorted(adjoint.plans.items())]
    return ["arrays that loops write to, at the start of a turn that runs backwards", *lines] if lines else []


# ----- Times -----


def _times(spec: Specialization, given: dict[str, Any]) -> str:
    """The times of the kernel and of its derivative, and their ratio."""
    wanted = spec.differentiable_inputs
    cotangents = _cotangents(spec, given)
    gradients = {name: np.empty(np.shape(given[name]), spec.form.dtypes[name]) for name in wanted}
    own = dict(given)

    def restore() -> None:
        for name in spec.form.written:
            own[name] = np.array(given[name])

    first = _least(lambda: spec.function(*spec.arguments(own)), restore)
    second = _least(lambda: spec.run_reverse(wanted, given, cotangents, gradients), lambda: None)
    return f"kernel {first * 1e6:,.1f} us, derivative {second * 1e6:,.1f} us: {second / first:.1f} times"


def _least(call: Callable[[], Any], before: Callable[[], None]) -> float:
    """The least time of several calls; the first, which may compile, does not count."""
    before()
    call()
    best, spent, runs = float("inf"), 0.0, 0
    while runs < 3 or (spent < _BUDGET and runs < _MOST):
        before()
        start = time.perf_counter()
        call()
        took = time.perf_counter() - start
        best, spent, runs = min(best, took), spent + took, runs + 1
    return best
