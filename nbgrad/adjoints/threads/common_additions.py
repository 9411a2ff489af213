"""Additions of the threads of a warp to one element: the warp adds up first, and one of its threads adds atomically.

In: the statements of a derived kernel. Out: which indices are the same in all threads, and the text of the functions
that add there. Called by thread_text.py and thread_kernels.py. A kernel whose threads all go through the same elements,
as one of all pairs does, has a cotangent to add to the same element from 32 threads at a time.

That the threads of a warp are together, and at the same element, is seen when they run; what is found here only says
where it is worth looking. Numba's simulator has no warps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..kernel_statements import Atom, Block, Extent, For, Op, Set, is_name, walk

MOST_AXES = 3
_NAME = "warp_add_"
_CALLED = re.compile(rf"\b{_NAME}(\d)\(")
_ALL = 0xFFFFFFFF


def common_names(body: Block, parameters: Sequence[str], known: Mapping[str, Op]) -> set[str]:
    """The numbers that are the same in all threads.

    Parameters
    ----------
    body : Block
    parameters : sequence of str
        The arguments that are numbers.
    known : mapping
        The operations that give names their values, as `thread_definitions` gives them.
    """
    found = {*parameters}
    found.update([one.target for one in walk(body) if isinstance(one, Set) and isinstance(one.value, Extent)])
    loops = [statement for statement in walk(body) if isinstance(statement, For)]

    def is_common(atom: Atom) -> bool:
        return atom in found or not (is_name(atom) or atom.startswith("@"))

    size = -1
    while size < len(found):
        size = len(found)
        found.update([loop.turn for loop in loops if is_common(loop.count)])
        for name, op in known.items():
            if not op.arrays and "cuda." not in op.text and all(map(is_common, op.args)):
                found.add(name)
    return found


def call_in_step(array: str, index: Sequence[str], value: str) -> str:
    """The text that adds to an element, with the threads of a warp."""
    return f"{_NAME}{len(index)}({array}, {', '.join(index)}, {value})"


def functions_in_step(text: str, simulated: bool) -> list[tuple[str, str]]:
    """The functions of this module that a text calls: names and texts."""
    return [(f"{_NAME}{axes}", _function(int(axes), simulated)) for axes in dict.fromkeys(_CALLED.findall(text))]


def _function(axes: int, simulated: bool) -> str:
    index = ["i", "j", "k"][:axes]
    place = index[0] if axes == 1 else f"({', '.join(index)})"
    head = f"def {_NAME}{axes}(array, {', '.join(index)}, value):\n"
    if simulated:
        return f"{head}    cuda.atomic.add(array, {place}, value)\n"
    same = " & ".join(f"({one} == cuda.shfl_sync({_ALL}, {one}, 0))" for one in index)
    return (
        f"{head}"
        f"    together = cuda.activemask() == {_ALL}\n"
        "    if together:\n"
        f"        together = cuda.all_sync({_ALL}, {same})\n"
        "    if together:\n"
        "        distance = 16\n"
        "        while distance > 0:\n"
        f"            value += cuda.shfl_xor_sync({_ALL}, value, distance)\n"
        "            distance >>= 1\n"
        "        if cuda.laneid == 0:\n"
        f"            cuda.atomic.add(array, {place}, value)\n"
        "    else:\n"
        f"        cuda.atomic.add(array, {place}, value)\n"
    )
