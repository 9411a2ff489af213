"""Elements of arrays that only one thread uses.

In: a kernel as statements, and the axes along which its launch has several threads. Out: the arrays of which several
threads may use the same element. Called by thread_kernels.py. What is added to the elements of other arrays is added
by plain statements; what is added to these, atomically.

A thread owns its elements if every access has the same index along an axis, and that index is the thread's own number
along an axis of the launch, plus what is the same for all threads.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..dataflow import Affine, accesses, affine, definitions
from ..kernel_statements import Block, For, If, Op, Store, Sync, While, assigned, is_name, loaded, walk
from ..reading.kernel_form import ScalarForm
from .launch_sizes import Launch

_NUMBER = re.compile(r"cuda\.(threadIdx|blockIdx|blockDim|gridDim)\.([xyz])$")
_WHOLE = re.compile(r"cuda\.(grid|gridsize)\((\d)\)(?:\[(\d)\])?$")
_RANGE = "{0} + {1} * {2}"
_STEPS = "@steps"
"""A multiple of the number of threads along an axis."""


def common_arrays(form: ScalarForm, launch: Launch) -> set[str]:
    """The arguments and shared arrays of which several threads may use the same element."""
    known = thread_definitions(form.body)
    uniform = {name for name in form.parameters if name not in form.ranks} - assigned(form.body)
    found: set[str] = set()
    for name in (*[one for one in form.parameters if one in form.ranks], *form.shared):
        axes = [n > 1 for n in launch.block] if name in form.shared else launch.several
        if not _is_owned(form, name, [k for k in range(3) if axes[k]], known, uniform):
            found.add(name)
    return found


def refilled_tiles(form: ScalarForm, launch: Launch) -> set[tuple[int, str]]:
    """The loops, by their bodies, and the shared arrays of which each turn writes all elements before it reads any.

    So it is if all threads write the element of their own number, which are all there are, before the first barrier of
    a turn, and all reads come after it.
    """
    known = thread_definitions(form.body)
    found: set[tuple[int, str]] = set()
    for loop in walk(form.body):
        if isinstance(loop, For | While) and Sync() in loop.body:
            first = loop.body[: loop.body.index(Sync())]
            for array, shape in form.shared.items():
                if array not in loaded(first) and _writes_own(first, array, shape, launch, known):
                    found.add((id(loop.body), array))
    return found


def _writes_own(body: Block, array: str, shape: Sequence[int], launch: Launch, known: dict[str, Op]) -> bool:
    """Whether each thread certainly writes the element of its own number, and the block has a thread for each."""
    for statement in body:
        match statement:
            case Store(name, index, _, False) if name == array:
                forms = [affine(one, known) for one in index]
                axes = [next((k for k in range(3) if one == {f"@threadIdx{k}": 1}), 3) for one in forms]
                sizes = [*launch.block, 0]
                rest = [n for k, n in enumerate(launch.block) if k not in axes]
                if len({*axes}) == len(axes) and list(shape) == [sizes[k] for k in axes] and set(rest) <= {1}:
                    return True
            case If(_, then, orelse):
                if all(_writes_own(one, array, shape, launch, known) for one in (then, orelse)):
                    return True
            case _:
                pass
    return False


def thread_definitions(body: Block) -> dict[str, Op]:
    """The operations that give numbers their values, with thread numbers as sums of `@t0`, in the block, and `@b0`."""
    known = definitions(body)
    for name, op in known.items():
        known[name] = _in_threads(op, known)
    return known


def _in_threads(op: Op, known: dict[str, Op]) -> Op:
    found = _NUMBER.match(op.text)
    if found is not None:
        return Op("", (f"@{found[1]}{'xyz'.index(found[2])}",), "{0}")
    found = _WHOLE.match(op.text)
    if found is not None:
        axis = int(found[3] or 0)
        if found[1] == "grid":
            return Op("", (f"@threadIdx{axis}", f"@block{axis}"), "{0} + {1}")
        return Op("", (f"@threads{axis}",), "{0}")
    if op.text == "{0} * {1}":
        pair = [affine(one, known) for one in op.args]
        for one, other in (pair, pair[::-1]):
            for axis in range(3):
                if other == {f"@blockDim{axis}": 1} and one == {f"@blockIdx{axis}": 1}:
                    return Op("", (f"@block{axis}",), "{0}")
                if other == {f"@blockDim{axis}": 1} and one == {f"@gridDim{axis}": 1}:
                    return Op("", (f"@threads{axis}",), "{0}")
    if op.text == _RANGE:
        start, _, step = op.args
        width = affine(step, known)
        for axis in range(3):
            if width == {f"@threads{axis}": 1}:
                return Op("", (start, f"{_STEPS}{axis}"), "{0} + {1}")
    return op


def _is_owned(form: ScalarForm, array: str, axes: Sequence[int], known: dict[str, Op], uniform: set[str]) -> bool:
    indices = accesses(form.body, array)
    if not indices:
        return indices is not None
    in_block = array in form.shared

    def is_own(form: Affine, axis: int) -> bool:
        """Whether an index is another one for each thread along an axis of the launch, and for that axis only."""
        rest = dict(form)
        if rest.pop(f"@threadIdx{axis}", 0) != 1:
            return False
        whole = rest.pop(f"@block{axis}", 0) == 1
        if not whole and not in_block:
            return False
        if rest.pop(f"{_STEPS}{axis}", 0) and not whole:
            return False
        return all(name == "1" or (is_name(name) and name in uniform) for name in rest)

    forms = [[affine(one, known) for one in index] for index in indices]
    return all(
        any(is_own(forms[0][k], axis) and all(one[k] == forms[0][k] for one in forms) for k in range(len(forms[0])))
        for axis in axes
    )
