"""Whether a kernel may write an array into the memory of one that it reads for the last time.

In: a kernel, and pairs of arrays that it writes and reads. Out: yes or no. Called by cpu_plan.py, for every pair that
fits, and by donation.py.
"""

from __future__ import annotations

from ..compiler.fuse import Special
from ..compiler.loops import Loop
from ..graph.ir import Node
from ..graph.primitives import FLOAT_UNARY

ARITHMETIC = frozenset(["add", "subtract", "multiply", "divide", "negative", *FLOAT_UNARY])
"""Operations on floats whose results depend on all operands, whatever LLVM knows of these."""


class Overwriting:
    """The questions about one kernel, which may have dozens of arrays: the answers share what was found for a read.

    Parameters
    ----------
    kernel : Loop or Special
    """

    def __init__(self, kernel: Loop | Special) -> None:
        self.loop = kernel if isinstance(kernel, Loop) else None
        self.accesses: dict[Node, int] = {}
        self.made: dict[int, tuple[bytearray, bytearray] | None] = {}
        if self.loop is None:
            return
        counts: dict[int, int] = {}
        for access in self.loop.accesses:
            counts[access.buffer] = counts.get(access.buffer, 0) + 1
        for position, access in enumerate(self.loop.accesses):
            if access.buffer >= 0 and counts[access.buffer] == 1:
                self.accesses.setdefault(self.loop.buffers[access.buffer], position)

    def may(self, output: Node, argument: Node) -> bool:
        """Whether the kernel writes each element of an array after it has read the same element of another, and never
        again.

        What it writes must be made of what it reads, and nothing else may be, or it must be so by arithmetic on floats:
        the order of the two is then certain, although the code was compiled for arrays that do not overlap. (Of logic
        and selections LLVM could find that they do not depend on the element after all, and write before something
        else reads.)
        """
        read, write = self.accesses.get(argument, -1), self.accesses.get(output, -1)
        if self.loop is None or read < 0 or write < 0:
            return False
        view = self.loop.accesses[read].view
        if view != self.loop.accesses[write].view or view.is_masked:
            return False
        if any(stride == 0 for n, stride in zip(view.shape, view.strides, strict=True) if n > 1):
            return False
        written = [store.value for store in self.loop.stores if store.access == write]
        return len(written) == 1 and self._is_written_last(read, write, written[0])

    def _is_written_last(self, read: int, write: int, written: int) -> bool:
        """Whether a value that is written must wait until an access was read, as `may` wants it."""
        assert self.loop is not None
        if read not in self.made:
            self.made[read] = _made_of(self.loop, read)
        found = self.made[read]
        if found is None:
            return False
        made, surely = found
        if surely[written]:
            return True
        if not made[written]:
            return False
        others = [store.value for store in self.loop.stores if store.access != write]
        others += [reduction.value for reduction in self.loop.reductions]
        return not any(made[value] for value in others)


def _made_of(loop: Loop, read: int) -> tuple[bytearray, bytearray] | None:
    """By positions of values: whether they are made of what an access reads, and whether they are so by arithmetic.

    None if it is read in another way than once.
    """
    made, surely = bytearray(len(loop.values)), bytearray(len(loop.values))
    loads = 0
    for position, (operation, dtype, operands, access, _) in enumerate(loop.values):
        if access == read:
            loads += 1
            if operation != "load" or loads > 1:
                return None
            made[position] = surely[position] = True
            continue
        for operand in operands:
            if made[operand]:
                made[position] = True
                if surely[operand] and operation in ARITHMETIC and dtype.kind == "f":
                    surely[position] = True
    return made, surely
