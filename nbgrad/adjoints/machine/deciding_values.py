"""The values of a derivative on which its branches, indices and loops depend.

In: all blocks of a derivative. Out: the names of these numbers and arrays. Called by program_code.py. They are computed
by the functions that Numba calls, so that a derivative takes the branches that the kernel takes; for all others any
function serves that is as precise, and nbgrad's own become vectors.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable

from ..kernel_statements import Alias, Block, Call, Copy, Load, Op, Part, Set, Store, atoms_of, walk
from ..turns.element_sums import ADDED

_STEPS = re.compile(r"[<>=]=?|!=|//|%|\b(int|bool|floor|ceil|trunc|round|rint|sign|copysign|searchsorted)\b")
"""Operations whose result jumps."""


def deciding_values(blocks: Iterable[Block]) -> frozenset[str]:
    """The numbers and arrays on which something depends that jumps."""
    sources: dict[str, set[str]] = defaultdict(set)
    found: set[str] = set()
    for statement in walk([one for block in blocks for one in block]):
        match statement:
            case Set(_, Op(text=text)) if text == ADDED:
                pass
            case Set(target, Op(_, args, text, arrays)):
                sources[target].update(args, arrays)
                if _STEPS.search(text):
                    found.update(args, arrays)
            case Set(target, Load(array, index)):
                sources[target].add(array)
                found.update(index)
            case Store(array, index, value):
                sources[array].add(value)
                found.update(index)
            case Call("add_parts", (array, parts)):
                sources[array].add(parts)
            case Call():
                pass  # Functions have the names of their callers for what they get.
            case Copy(array, source) | Alias(array, source) | Part(array, _, _, _, source):
                sources[array].add(source)
                sources[source].add(array)
            case _:
                found.update(atoms_of(statement))
    waiting = list(found)
    while waiting:
        more = sources[waiting.pop()] - found
        found |= more
        waiting += more
    return frozenset(found)
