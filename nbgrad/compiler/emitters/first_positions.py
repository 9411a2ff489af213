"""The first position at which something holds, as of an extremum: loops that end where they have found it.

In: a `Loop` that looks along its innermost axis for the least of the positions at which a condition holds
(`Loop.first_position`). Out: its IR. Called by loop_ir.py. A block of elements is first asked whether the condition
holds anywhere, which takes few instructions; the positions in it are looked at only if it does, and then no later block
is read, because its positions are larger.
"""

from __future__ import annotations

from ..loops import Loop
from .emit import Emitter, register_type

BLOCK = 64
"""Elements of a block."""


class FirstPositionEmitter(Emitter):
    """Writes loops that look for a first position."""

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        (self.sought,) = loop.reductions
        self.condition, _, self.otherwise = loop.values[self.sought.value].operands

    def along(self, variable: str, low: str, high: str) -> None:
        """The points of a row, block by block; what is left over at the end is a shorter block."""
        self.other = self.values_of_row()[self.otherwise]
        whole = self.let(f"and i64 {self.let(f'sub nsw i64 {high}, {low}')}, {-BLOCK}")
        end = self.let(f"add nsw i64 {low}, {whole}")
        mark, first = self.begin_loop(variable, low, end)
        complete = self.block_of(first, self.let(f"add nsw i64 {first}, {BLOCK}"))
        self.put(f"br i1 {complete}, label %{mark}.found, label %{mark}.further")
        self.label(f"{mark}.further")
        self.end_loop(mark, variable, first, stride=str(BLOCK))
        self.branch(self.let(f"icmp slt i64 {end}, {high}"), lambda: self.block_of(end, high))
        self.put(f"br label %{mark}.found")
        self.label(f"{mark}.found")

    def block_of(self, first: str, stop: str) -> str:
        """Look at a block; returns whether no later one matters."""
        kind, register = register_type(self.accumulator(self.sought)), self.registers[self.sought.access]
        found = self.slot("i1", "found")
        inner = self.slot("i64", "k")
        self.store("i1", "false", found)

        def test(index: str) -> None:
            names: list[str] = []
            for value in self.loop.values[: self.condition + 1]:
                names.append(self.value(value, names, index))
            self.store("i1", self.let(f"or i1 {self.let(f'load i1, ptr {found}')}, {names[-1]}"), found)

        self.counted(inner, first, stop, test)
        holds = self.let(f"load i1, ptr {found}")
        self.branch(holds, lambda: self.counted(inner, first, stop, self.point))
        # Elsewhere is what stands for no position; it may be less than positions that are still to come.
        least = self.let(f"load {kind}, ptr {register}")
        either = self.let(f"call {kind} @llvm.smin.{kind}({kind} {least}, {kind} {self.other})")
        self.intrinsics.add(f"declare {kind} @llvm.smin.{kind}({kind}, {kind})")
        self.store(kind, self.let(f"select i1 {holds}, {kind} {least}, {kind} {either}"), register)
        return self.let(f"and i1 {holds}, {self.let(f'icmp sle {kind} {least}, {self.other}')}")

    def values_of_row(self) -> list[str]:
        """The names of the values that all points of a row share; "" for others."""
        names: list[str] = []
        for position, value in enumerate(self.loop.values):
            names.append(self.value(value, names, "0") if position in self.loop.shared_by_row else "")
        return names
