"""The text of derived kernels for threads, as people and Numba's CUDA target read it.

In: statements, the arrays of `ThreadArrays`, the arrays that threads have in common. Out: the text of a function that
`cuda.jit` compiles. Called by thread_kernels.py. Numbers among the arguments are arrays of one element: they may be
in the memory of the device.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping, Sequence

from ..kernel_statements import Atom, New, Statement, Store, atoms_of, is_name, walk
from ..kernel_text import Writer
from .common_additions import MOST_AXES, call_in_step, common_names
from .launch_sizes import Launch
from .thread_arrays import THREAD, ThreadArrays, origin
from .thread_ownership import thread_definitions

_ADD = "cuda.atomic.add("


class ThreadWriter(Writer):
    """Writes the statements of a thread."""

    common: Collection[str] = ()
    arrays: Mapping[str, object] = {}
    same: Collection[str] = ()
    """The numbers that are the same in all threads."""
    atomic = False

    def lines(self, statement: Statement, pad: str, depth: int) -> list[str]:
        match statement:
            case Store(array, index, value, True) if origin(array, self.arrays) in self.common:
                if len(index) <= MOST_AXES and all(not is_name(one) or one in self.same for one in index):
                    return [f"{pad}{call_in_step(array, [self.index([one]) for one in index], self.atom(value))}"]
                place = self.index(index) if len(index) == 1 else f"({self.index(index)})"
                return [f"{pad}{_ADD}{array}, {place}, {self.atom(value)})"]
            case New(array, shape, dtype, fill):
                extents = f"({', '.join(shape)}{',' if len(shape) == 1 else ''})"
                lines = [f"{pad}{array} = cuda.local.array({extents}, {numpy_name(dtype)})"]
                return lines if not fill else lines + filled(array, list(map(int, shape)), self.atom(fill), pad)
            case _:
                return super().lines(statement, pad, depth)


def numpy_name(dtype: str) -> str:
    """The text of a dtype."""
    return "np.bool_" if dtype == "bool" else f"np.{dtype}"


def filled(array: str, shape: Sequence[int], value: Atom, pad: str) -> list[str]:
    """Loops that set all elements of a local array."""
    turns = [f"e{axis}_{array}" for axis in range(len(shape))]
    lines = [
        f"{pad}{'    ' * k}for {turn} in range({n}):" for k, (turn, n) in enumerate(zip(turns, shape, strict=True))
    ]
    return [*lines, f"{pad}{'    ' * len(shape)}{array}[{', '.join(turns)}] = {value}"]


def thread_text(
    name: str,
    parameters: Sequence[str],
    numbers: Collection[str],
    arrays: ThreadArrays,
    common: Collection[str],
    bases: Mapping[str, object],
    launch: Launch,
) -> str:
    """The text of a kernel.

    Parameters
    ----------
    numbers : collection of str
        The parameters that are numbers, and here arrays of one element.
    common : collection of str
        The kernel's arrays of which several threads may use the same element.
    bases : mapping
        All arrays of the kernel.
    launch : Launch
        A launch of the kind that it is for.
    """
    sums = arrays.sums
    writer = ThreadWriter(arrays.body, sums.values())
    writer.common, writer.arrays = common, bases
    writer.same = common_names(arrays.body, [*numbers], thread_definitions(arrays.body))
    body = writer.block(arrays.body, 1)
    read = {one for statement in walk(arrays.body) for one in _reads(statement)} | {*sums.values()}
    head = [f"def {name}({', '.join([f'{one}_at' if one in numbers else one for one in parameters])}):"]
    head += [f"    {one} = {one}_at[0]" for one in parameters if one in numbers and one in read]
    if arrays.columns:
        head.append(f"    {THREAD} = {_thread_of_all(launch)}")
    zeroed: list[str] = []
    for array, (dtype, shape) in arrays.shared.items():
        head.append(f"    {array} = cuda.shared.array({(*shape,)}, {numpy_name(dtype)})")
        if array not in bases:
            zeroed += _zeroed(array, shape, launch)
    if zeroed:
        head += [*zeroed, "    cuda.syncthreads()"]
    text = "\n".join([*head, *body, *_block_sums(sums, launch)])
    return ast.unparse(ast.parse(text if body or sums or zeroed else f"{head[0]}\n    pass")) + "\n"


def _reads(statement: Statement) -> list[str]:
    return [one for one in atoms_of(statement) if is_name(one)]


def _block_of_all(launch: Launch) -> str:
    """The text of a block's number among all blocks."""
    if launch.grid[1:] == (1, 1):
        return "cuda.blockIdx.x"
    return "(cuda.blockIdx.z * cuda.gridDim.y + cuda.blockIdx.y) * cuda.gridDim.x + cuda.blockIdx.x"


def _thread_in_block(launch: Launch) -> str:
    """The text of a thread's number in its block."""
    if launch.block[1:] == (1, 1):
        return "cuda.threadIdx.x"
    return "(cuda.threadIdx.z * cuda.blockDim.y + cuda.threadIdx.y) * cuda.blockDim.x + cuda.threadIdx.x"


def _thread_of_all(launch: Launch) -> str:
    """The text of a thread's number among all threads."""
    if launch.grid[1:] == launch.block[1:] == (1, 1):
        return "cuda.grid(1)"
    return f"({_block_of_all(launch)}) * {launch.threads} + {_thread_in_block(launch)}"


def _zeroed(array: str, shape: Sequence[int], launch: Launch) -> list[str]:
    """The loop in which the threads of a block set a shared array to zero together."""
    size, index = 1, []
    for extent in reversed(shape):
        index.append(f"zero_k // {size} % {extent}" if len(shape) > 1 else "zero_k")
        size *= extent
    place = ", ".join(reversed(index))
    return [
        f"    for zero_k in range({_thread_in_block(launch)}, {size}, {launch.threads}):",
        f"        {array}[{place}] = 0",
    ]


def _block_sums(sums: Mapping[str, Atom], launch: Launch) -> list[str]:
    """The sums of numbers over the threads of a block, in an order that is always the same."""
    if not sums:
        return []
    half, threads = 1, launch.threads
    while 2 * half < threads:
        half *= 2
    lines = [
        f"    sum_parts = cuda.shared.array(({threads},), np.float64)",
        f"    sum_place = {_thread_in_block(launch)}",
        f"    sum_block = {_block_of_all(launch)}",
    ]
    for target, value in sums.items():
        lines += [
            f"    sum_parts[sum_place] = {value}",
            "    cuda.syncthreads()",
            f"    sum_half = {half}",
            "    while sum_half > 0:",
            f"        if sum_place < sum_half and sum_place + sum_half < {threads}:",
            "            sum_parts[sum_place] += sum_parts[sum_place + sum_half]",
            "        cuda.syncthreads()",
            "        sum_half //= 2",
            "    if sum_place == 0:",
            f"        {target}[sum_block] = sum_parts[0]",
            "    cuda.syncthreads()",
        ]
    return lines
