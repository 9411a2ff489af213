"""Small pieces of LLVM IR text: names, labels, stack variables, counted loops, vectors turned by shuffles.

In: types, values and names as text. Out: lines of IR. Called by all writers of kernels: emit.py for loop nests,
matrices/ for small matrices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


class IRText:
    """The lines of one function, in order."""

    def __init__(self) -> None:
        self.slots: list[str] = []
        self.lines: list[str] = []
        self.block = "entry"
        self.counter = 0

    def put(self, line: str) -> None:
        self.lines.append("  " + line)

    def fresh(self, hint: str = "t") -> str:
        self.counter += 1
        return f"%{hint}.{self.counter}"

    def let(self, expression: str, hint: str = "t") -> str:
        name = self.fresh(hint)
        self.put(f"{name} = {expression}")
        return name

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")
        self.block = name

    def slot(self, kind: str, hint: str) -> str:
        """A stack variable."""
        name = self.fresh(hint)
        self.slots.append(f"  {name} = alloca {kind}")
        return name

    def store(self, kind: str, value: str, slot: str) -> None:
        self.put(f"store {kind} {value}, ptr {slot}")

    def counted(
        self, variable: str, first: str, stop: str, body: Any, hint: str = "", stride: str = "1", until: str = "slt"
    ) -> None:
        """`for variable in range(first, stop, stride): body(value)`, as long as `variable until stop` holds."""
        mark, index = self.begin_loop(variable, first, stop, until)
        body(index)
        self.end_loop(mark, variable, index, hint, stride)

    def begin_loop(self, variable: str, first: str, stop: str, until: str = "slt") -> tuple[str, str]:
        """The head of a counted loop: its mark, for `end_loop`, and the number that it counts."""
        self.counter += 1
        mark = f"L{self.counter}"
        self.store("i64", first, variable)
        self.put(f"br label %{mark}.test")
        self.label(f"{mark}.test")
        index = self.let(f"load i64, ptr {variable}", "i")
        inside = self.let(f"icmp {until} i64 {index}, {stop}")
        self.put(f"br i1 {inside}, label %{mark}.body, label %{mark}.done")
        self.label(f"{mark}.body")
        return mark, index

    def end_loop(self, mark: str, variable: str, index: str, hint: str = "", stride: str = "1") -> None:
        """The end of a counted loop."""
        self.store("i64", self.let(f"add nsw i64 {index}, {stride}"), variable)
        self.put(f"br label %{mark}.test{hint}")
        self.label(f"{mark}.done")

    def branch(self, condition: str, inside: Callable[[], object]) -> None:
        """`if condition: inside()`."""
        self.counter += 1
        mark = f"I{self.counter}"
        self.put(f"br i1 {condition}, label %{mark}.yes, label %{mark}.on")
        self.label(f"{mark}.yes")
        inside()
        self.put(f"br label %{mark}.on")
        self.label(f"{mark}.on")

    def clamped(self, value: str, low: str, high: str) -> str:
        """A bound moved into a range."""
        above = self.let(f"icmp sgt i64 {value}, {low}")
        raised = self.let(f"select i1 {above}, i64 {value}, i64 {low}")
        below = self.let(f"icmp slt i64 {raised}, {high}")
        return self.let(f"select i1 {below}, i64 {raised}, i64 {high}")

    # ----- Vectors -----

    def shuffled(self, kind: str, width: int, first: str, second: str, places: Sequence[int]) -> str:
        """Elements of two vectors of `width` elements, counted through both."""
        mask = ", ".join(f"i32 {place}" for place in places)
        vector = f"<{width} x {kind}>"
        return self.let(f"shufflevector {vector} {first}, {vector} {second}, <{len(places)} x i32> <{mask}>")

    def turned(self, kind: str, width: int, rows: Sequence[str]) -> list[str]:
        """The columns of a square block of which the rows are given; of all blocks side by side, if rows are longer.

        Parts off the diagonal change places, of one element, then of two, then of four (Eklundh 1972).
        """
        parts, step = list(rows), 1
        while step < len(parts):
            for one in [k for k in range(len(parts)) if not k & step]:
                first, second = parts[one], parts[one + step]
                upper = [c if not c & step else width + c - step for c in range(width)]
                lower = [c + step if not c & step else width + c for c in range(width)]
                parts[one] = self.shuffled(kind, width, first, second, upper)
                parts[one + step] = self.shuffled(kind, width, first, second, lower)
            step *= 2
        return parts


def kernel_text(arrays: Sequence[str], lines: Sequence[str]) -> str:
    """A function with the ABI of all kernels, given its body and the attributes of its arrays `%p0`, `%p1`, ..."""
    parameters = [f"ptr noalias {attribute} %p{place}" for place, attribute in enumerate(arrays)]
    signature = ", ".join([*parameters, "ptr noalias readonly %sizes", "i64 %begin", "i64 %end"])
    text = [
        f'define internal void @body({signature}) noinline "prefer-vector-width"="512" {{',
        "entry:",
        *lines,
        "  ret void",
        "}",
        "define void @kernel(ptr %pointers, ptr %sizes, i64 %begin, i64 %end) {",
    ]
    for place in range(len(arrays)):
        text.append(f"  %at{place} = getelementptr ptr, ptr %pointers, i64 {place}")
        text.append(f"  %p{place} = load ptr, ptr %at{place}")
    arguments = ", ".join([*[f"ptr %p{place}" for place in range(len(arrays))], "ptr %sizes"])
    return "\n".join([*text, f"  call void @body({arguments}, i64 %begin, i64 %end)", "  ret void", "}", ""])
