"""Derivatives as whole programs of LLVM IR: a function, the parts of its loops, and the entry that Python calls.

In: the statements of a derivative, and the dtypes and ranks of its arguments. Out: `program_text`, and the kinds
of the results. Called by machine_function.py. The entry gets the addresses of NumPy's arrays, numbers, a place for the
results, the number of threads, the address of OpenMP's function that starts them, and that of lapack_elements.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ...compiler.scalars import merge
from ...process.object_layout import PREFIX, definitions
from ..kernel_statements import Atom, Block
from ..turns.thread_parts import Turns
from .array_code import Facts, Layout, kind_of
from .deciding_values import deciding_values
from .number_code import BOOL, FLOAT32, FLOAT64, INT, Number
from .number_definitions import DEFINITIONS
from .statement_code import FunctionCode

_LIBRARY = """
@nbgrad.lapack = internal global ptr null
declare noalias ptr @malloc(i64)
declare noalias ptr @calloc(i64, i64)
declare noalias ptr @realloc(ptr, i64)
declare void @free(ptr)
declare {i64, i1} @llvm.smul.with.overflow.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
define internal void @nbgrad.threads(ptr %worker, ptr %frame, i64 %threads, ptr %start) {
  %several = icmp sgt i64 %threads, 1
  br i1 %several, label %many, label %one
many:
  %count = trunc i64 %threads to i32
  call void %start(ptr %worker, ptr %frame, i32 %count, i32 0)
  ret void
one:
  call void %worker(ptr %frame)
  ret void
}
"""


class Program:
    """The functions of a derivative, which are written until the kinds of their variables are known."""

    def __init__(self, turns: Sequence[Turns]) -> None:
        self.bodies: dict[str, tuple[Sequence[str], Block]] = {one.name: (one.parameters, one.body) for one in turns}
        self.facts: dict[str, Facts] = {}
        self.deciding: frozenset[str] = frozenset()

    def functions(self, symbol: str, results: Sequence[Atom]) -> list[FunctionCode]:
        """A function and those that it calls, when nothing is found out about their variables any more."""
        while True:
            before = self.state()
            found: dict[str, FunctionCode] = {}
            waiting = [(symbol, list(results))]
            while waiting:
                name, returned = waiting.pop()
                if name not in found:
                    found[name] = self.function(name, returned)
                    waiting += [(called, []) for called, _ in found[name].calls]
            if self.state() == before:
                return list(found.values())

    def function(self, symbol: str, results: list[Atom]) -> FunctionCode:
        """One function; notes the arguments of those that it calls."""
        parameters, body = self.bodies[symbol]
        code = FunctionCode(symbol, parameters, body, results, self.facts[symbol], self.deciding)
        for name, names, inner in code.loops:
            self.bodies[name] = (names, inner)
        for name, given in code.calls:
            facts = self.facts.setdefault(name, Facts())
            for parameter, one in zip(self.bodies[name][0], given, strict=True):
                if isinstance(one, Number):
                    facts.set_number(parameter, one)
                else:
                    facts.set_array(parameter, code.facts.layout(one))
        return code

    def state(self) -> dict[str, object]:
        """All that is known of the functions."""
        return {name: facts.state() for name, facts in self.facts.items()}


def program_text(
    symbol: str,
    parameters: Sequence[str],
    body: Block,
    turns: Sequence[Turns],
    results: Sequence[Atom],
    given: Mapping[str, Layout],
) -> tuple[str, list[str | Layout]]:
    """The IR of a derivative, and the kinds or layouts of its results; among `given`, numbers have rank -1."""
    main = f"{symbol}.main"
    program = Program(turns)
    program.bodies[main] = (parameters, body)
    program.deciding = deciding_values([block for _, block in program.bodies.values()])
    facts = program.facts[main] = Facts()
    for name in parameters:
        if given[name].rank < 0:
            facts.set_number(name, Number("", kind_of(given[name].dtype)))
        else:
            facts.set_array(name, given[name])
    functions = program.functions(main, results)
    texts = [DEFINITIONS, _LIBRARY, definitions(), _entry(symbol, functions[0], given)]
    texts += [one.definition for one in functions]
    texts += [_worker(name, names, program.facts[name]) for one in functions for name, names, _ in one.loops]
    declared = {name: line for one in functions for name, line in one.declared.items()}
    texts += [line for line in declared.values() if f"{line.partition('(')[0]}(" not in DEFINITIONS]
    # Names of Python may have letters that those of LLVM may not.
    scalars = {symbol: text for one in functions for symbol, text in one.scalars.items()}
    whole = merge(["\n".join(texts), *scalars.values()])
    text = re.sub(r"[^\x00-\x7f]", lambda letter: f"${ord(letter[0]):x}", whole)
    return text, functions[0].returned


def _entry(symbol: str, main: FunctionCode, given: Mapping[str, Layout]) -> str:
    """The function that Python calls."""
    parameters, lines, passed = [], [], []
    for name in main.parameters:
        rank = given[name].rank
        kind = main.facts.kinds.get(name, "")
        if rank < 0:
            parameters.append(f"{FLOAT64 if kind in (FLOAT32, FLOAT64) else INT} %{name}.in")
            conversions = {BOOL: f"icmp ne i64 %{name}.in, 0", FLOAT32: f"fptrunc double %{name}.in to float"}
            if kind in conversions:
                lines.append(f"%{name}.number = {conversions[kind]}")
            passed.append(f"{kind} %{name}.{'number' if kind in conversions else 'in'}")
            continue
        parameters.append(f"ptr %{name}.object")
        for field, offset in (("data", "array_data"), ("extents", "array_extents")):
            lines += [
                f"%{name}.{field}.offset = call i64 @{PREFIX}{offset}()",
                f"%{name}.{field}.place = getelementptr i8, ptr %{name}.object, i64 %{name}.{field}.offset",
                f"%{name}.{field} = load ptr, ptr %{name}.{field}.place",
            ]
        passed.append(f"ptr %{name}.data")
        for axis in range(rank):
            lines += [
                f"%{name}.place{axis} = getelementptr i64, ptr %{name}.extents, i64 {axis}",
                f"%{name}.extent{axis} = load i64, ptr %{name}.place{axis}",
            ]
            passed.append(f"i64 %{name}.extent{axis}")
    parameters += ["ptr %results", "ptr %give", "i64 %threads", "ptr %start", "ptr %lapack"]
    passed += [*(["ptr %results", "ptr %give"] if main.results else []), "i64 %threads", "ptr %start"]
    lines.append("store ptr %lapack, ptr @nbgrad.lapack")
    lines += [f"%status = call i32 @{main.symbol}({', '.join(passed)})", "ret i32 %status"]
    body = "\n".join([f"  {line}" for line in lines])
    return f"define i32 @{symbol}({', '.join(parameters)}) {{\n{body}\n}}\n"


def _worker(name: str, parameters: Sequence[str], facts: Facts) -> str:
    """The function of one thread: turns of a parallel loop, as long as there are any."""
    lines, passed = [], ["i64 %turn"]
    cell = 3

    def get(kind: str) -> str:
        nonlocal cell
        lines.append(f"%place{cell} = getelementptr i64, ptr %frame, i64 {cell}")
        lines.append(f"%cell{cell} = load {kind}, ptr %place{cell}")
        cell += 1
        return f"{kind} %cell{cell - 1}"

    for one in parameters[1:]:
        layout = facts.layouts.get(one)
        passed += [get(facts.kinds[one])] if layout is None else [get("ptr"), *[get(INT) for _ in range(layout.rank)]]
    body = "\n".join([f"  {line}" for line in lines])
    return f"""define internal void @{name}.worker(ptr %frame) {{
entry:
{body}
  %failed = getelementptr i64, ptr %frame, i64 1
  %last = getelementptr i64, ptr %frame, i64 2
  %count = load i64, ptr %last
  br label %next
next:
  %turn = atomicrmw add ptr %frame, i64 1 monotonic
  %more = icmp slt i64 %turn, %count
  br i1 %more, label %run, label %end
run:
  %status = call i32 @{name}({", ".join(passed)}, i64 1, ptr null)
  %bad = icmp ne i32 %status, 0
  br i1 %bad, label %note, label %next
note:
  store atomic i64 1, ptr %failed monotonic, align 8
  br label %next
end:
  ret void
}}
"""
