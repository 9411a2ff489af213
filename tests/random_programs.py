"""Random programs: the text of plain NumPy functions and of their arguments, as users write them.

In: a seed. Out: a `Program`, which prints itself as a script. Each statement is drawn from the tables of
program_rows.py and tried with NumPy at once; what raises, warns, or leaves the range of moderate numbers is thrown
away, so that the tables need not know which shapes and dtypes fit. Called by test_random_programs.py;
program_checks.py runs the programs.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .program_rows import (
    ARGUMENTS,
    BLOCKS,
    EXPRESSIONS,
    KNOWN_DIFFERENCES,
    RELAYOUTS,
    SHARING,
    STATEMENTS,
    WORDS,
    WRITES,
)

MOST = 60
"""Elements of an array, so that programs run fast."""


@dataclass
class Program:
    """A function and its arguments, as text."""

    arguments: dict[str, str] = field(default_factory=dict)
    relayouts: dict[str, str] = field(default_factory=dict)
    body: list[str] = field(default_factory=list)
    result: str = ""
    style: str = "source"
    """How nbgrad is used: by "source" (differentiable_source), "plain" functions of NumPy, or its own "namespace"."""

    def make_arguments(self) -> list[str]:
        """The lines of the function that makes the arguments."""
        lines = ["def arguments(seed, again=False):", "    rng = np.random.default_rng(seed)"]
        lines += [f"    {name} = {text}" for name, text in self.arguments.items()]
        if self.relayouts:
            lines += ["    if again:", *[f"        {name} = {text}" for name, text in self.relayouts.items()]]
        return [*lines, f"    return {', '.join(self.arguments)},"]

    def function(self) -> list[str]:
        """The lines of the function itself."""
        lines = [line for statement in self.body for line in statement.split("\n")]
        return [
            f"def f({', '.join(self.arguments)}):",
            *[f"    {line}" for line in lines],
            f"    return {self.result}",
        ]

    def without(self, position: int) -> Program:
        """The program with one statement less; of a block, first the statements in it."""
        return replace(self, body=self.body[:position] + self.body[position + 1 :])


class NoSuchArrayError(Exception):
    """A row asks for an array that there is not."""


class Writer:
    """Writes one program."""

    def __init__(self, seed: int, known: frozenset[str] = frozenset()) -> None:
        self.random = random.Random(seed)
        self.known = known
        hidden = [KNOWN_DIFFERENCES[name] for name in known]

        def rows(table: str) -> list[str]:
            return [row for row in table.strip().splitlines() if not any(p and p.search(row) for p in hidden)]

        self.statements, self.writes = rows(STATEMENTS), rows(WRITES)
        self.program = Program()
        self.values: dict[str, Any] = {}
        self.names = 0
        self.drawn = ""

    def write(self) -> Program:
        """The whole program."""
        self.draw_arguments()
        wanted = self.random.randint(2, 9)
        for _ in range(60):
            if len(self.program.body) >= wanted:
                break
            self.add(self.block() if self.random.random() < 0.12 else self.statement())
        self.program.result = self.draw_result()
        text = "\n".join(self.program.body)
        makes = re.search(
            r"np\.(zeros|array|asarray|full|ones|eye|arange|linspace|ascontiguousarray|asfortranarray|require|vectorize)\(|float\(",
            text,
        )
        self.program.style = self.random.choice(
            ["source"] * 5 + ([] if "float(" in text else ["namespace"] * 2) + ([] if makes else ["plain"] * 3)
        )
        return self.program

    # ----- Arguments and results -----

    def draw_arguments(self) -> None:
        count = self.random.choice([1, 2, 2, 2, 3, 3])
        for name in "abc"[:count]:
            others = [n for n, v in self.values.items() if isinstance(v, np.ndarray) and v.ndim]
            if others and "writes to arguments" not in self.known and self.random.random() < 0.1:
                self.drawn = self.random.choice(others)
                text = self.random.choice(SHARING.strip().splitlines()).replace("{x}", self.drawn)
            else:
                text = self.fill(self.random.choice(ARGUMENTS.strip().splitlines()))
            before = self.program
            self.program = replace(before, arguments={**before.arguments, name: text})
            if not self.run() or ("0-d arguments" in self.known and self.has_zero_dimensional(name)):
                self.program = replace(before, arguments={**before.arguments, name: "rng.normal(size=(2, 3))"})
                self.run()
        if not any(np.asarray(v).dtype.kind in "fc" for _, v in self.leaves()):
            self.program.arguments["a"] = "rng.normal(size=(3, 2))"
            self.run()
        shared = {n for n, t in self.program.arguments.items() if "rng" not in t}
        for name, value in self.values.items():
            if isinstance(value, np.ndarray) and value.ndim and not shared and self.random.random() < 0.5:
                text = self.random.choice(RELAYOUTS.strip().splitlines())
                self.program.relayouts[name] = text.replace("{x}", name)

    def has_zero_dimensional(self, name: str) -> bool:
        """Whether an argument is an array without axes, or holds one."""
        parts = [part for leaf, part in self.leaves() if leaf == name or leaf.startswith(f"{name}[")]
        return any(isinstance(part, np.ndarray) and not part.ndim for part in parts)

    def draw_result(self) -> str:
        names = [name for name, value in self.values.items() if isinstance(value, np.ndarray | np.generic)]
        made = [n for n in names if n not in self.program.arguments]
        chosen = made[-1:] + [n for n in names if self.random.random() < 0.6 and n != (made or [""])[-1]]
        chosen = chosen or names[:1] or ["np.float64(1.0)"]
        draw = self.random.random()
        if len(chosen) == 1:
            return chosen[0]
        if draw < 0.6:
            return ", ".join(chosen)
        if draw < 0.8:
            return "{" + ", ".join(f'"{chr(122 - k)}": {name}' for k, name in enumerate(chosen)) + "}"
        return f"[{chosen[0]}, ({', '.join(chosen[1:])},)]"

    # ----- Statements -----

    def statement(self) -> str | None:
        return self.fill(self.random.choice(self.writes if self.random.random() < 0.33 else self.statements))

    def add(self, text: str | None) -> bool:
        """Append a statement if NumPy runs it."""
        if text is None:
            return False
        self.program.body.append(text)
        if self.run():
            return True
        self.program.body.pop()
        return False

    def block(self) -> str | None:
        """A loop, a branch or a function, which holds what would be statements at this place."""
        kind = self.random.choice(BLOCKS.strip().splitlines())
        before, values = len(self.program.body), self.values
        head = ""
        if kind == "lists":
            return self.fill("rows = []\nfor i in range(2):\n    rows.append({f} * (i + 1.5))\n{to} = np.stack(rows)")
        if kind == "while":
            loop = "while np.sum({to_again} ** 2) > 0.5:\n    {to_again} = {to_again} * 0.6 + 0.01"
            return self.fill("{to} = np.clip({f}, -9.0, 9.0)\n" + loop)
        arrays = [name for name, value in self.leaves() if isinstance(value, np.ndarray)]
        if not arrays:
            return None
        one, other = self.random.choice(arrays), self.random.choice(arrays)
        if kind == "def":
            head = f"p = {one}\nq = {other}"
        elif kind.startswith("for"):
            head = "i = 1"
        else:
            head = "pass"
        self.program.body.append(head)
        self.run()
        for _ in range(6):
            if len(self.program.body) < before + 1 + self.random.randint(1, 3):
                self.add(self.statement())
        inside = self.program.body[before + 1 :]
        del self.program.body[before:]
        made = [n for n in self.values if n not in values and n not in "pqi"]
        self.values = values
        if not inside:
            return None
        lines = ["    " + line for statement in inside for line in statement.split("\n")]
        if kind == "def":
            self.names += 1
            lines = [f"def g{self.names}(p, q):", *lines, f"    return {made[-1] if made else 'p * 1.0'}"]
            return "\n".join([*lines, f"w{self.names} = g{self.names}({one}, {other})"])
        if kind.startswith("if"):
            condition = self.fill(kind)
            if condition is None:
                return None
            first = [f"{name} = {self.random.choice(['0.5', 'np.float64(0.25)'])}" for name in made]
            return "\n".join([*first, condition, *lines])
        return "\n".join([self.fill(kind) or "for i in range(2):", *lines])

    # ----- Filling in -----

    def fill(self, row: str) -> str | None:
        """A row with everything drawn; None if there is no such array."""
        try:
            return re.sub(r"\{([a-z_0-9]+)\}", lambda found: self.draw(found[1]), row)
        except NoSuchArrayError:
            return None

    def draw(self, word: str) -> str:
        if word in WORDS:
            text = self.random.choice(WORDS[word].split(" "))
            if word == "size":
                self.last_size = text
            return text
        return str(getattr(self, f"draw_{word}")())

    def leaves(self) -> Iterator[tuple[str, Any]]:
        """Arrays and numbers in sight, and how to write them."""
        for name, value in self.values.items():
            if isinstance(value, dict):
                yield from ((f'{name}["{key}"]', part) for key, part in value.items())
            elif isinstance(value, tuple | list):
                yield from ((f"{name}[{k}]", part) for k, part in enumerate(value))
            elif not callable(value):
                yield name, value

    def array(self, kinds: str, ndim: int | None = None) -> str:
        found = [
            name
            for name, value in self.leaves()
            if isinstance(value, np.ndarray)
            and value.dtype.kind in kinds
            and (value.ndim == ndim if ndim is not None else True)
        ]
        if not found:
            raise NoSuchArrayError
        self.drawn = self.random.choice(found + found[-3:])
        return self.drawn

    def subject(self) -> Any:
        return np.asarray(dict(self.leaves()).get(self.drawn, 0.0))

    def draw_x(self) -> str:
        return self.array("fffciub")

    def draw_w(self) -> str:
        name = self.array("fffciub")
        if not self.subject().flags.writeable:  # `ufunc.at` of NumPy does not look
            raise NoSuchArrayError
        return name

    def draw_f(self) -> str:
        return self.array("f")

    def draw_c(self) -> str:
        return self.array("c")

    def draw_k(self) -> str:
        return self.array("iu")

    def draw_b(self) -> str:
        return self.array("b")

    def draw_v(self) -> str:
        return self.array("fc", 1)

    def draw_m(self) -> str:
        return self.array("fc", 2)

    def draw_same(self) -> str:
        return self.drawn

    def draw_size_again(self) -> str:
        return self.last_size

    def draw_s(self) -> str:
        numbers = [n for n, v in self.leaves() if isinstance(v, np.floating | float) or (n == "i")]
        if numbers and self.random.random() < 0.5:
            return self.random.choice(numbers)
        return self.random.choice(["0.5", "-0.75", "2.0", "1", "0.1"])

    def draw_e(self) -> str:
        drawn = self.drawn
        text = self.fill(self.random.choice(EXPRESSIONS.strip().splitlines()))
        self.drawn = drawn
        if text is None:
            raise NoSuchArrayError
        return text

    def draw_to(self) -> str:
        made = [n for n in self.values if n[0] in "vabc" and n != "i"]
        if made and self.random.random() < 0.12:
            self.target = self.random.choice(made)
        else:
            self.names += 1
            self.target = f"v{self.names}"
        return self.target

    def draw_to_again(self) -> str:
        return self.target

    def draw_axis(self) -> int:
        return self.random.randrange(-1, max(1, self.subject().ndim))

    def draw_axes(self) -> tuple[int, ...]:
        axes = list(range(self.subject().ndim))
        self.random.shuffle(axes)
        return tuple(axes)

    def draw_shape(self) -> tuple[int, ...]:
        size = self.subject().size
        first = self.random.choice([k for k in (1, 2, 3, 4, 6) if size % k == 0])
        return self.random.choice([(first, -1), (-1, first), (size // first, first), (size,), (1, -1, first)])

    def draw_condition(self) -> str:
        drawn = [(name, v) for name, v in self.leaves() if isinstance(v, np.ndarray) and v.dtype.kind == "f" and v.size]
        if not drawn:
            raise NoSuchArrayError
        name, _ = self.random.choice(drawn)
        how = self.random.choice(["np.sum({})", "{}.max()", "{}.flat[0]", "np.mean({} ** 2)"]).format(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            now = float(eval(how, {"np": np}, self.values))
        return f"{how} {self.random.choice('<>')} {now + self.random.choice([-0.3, 0.3]):.2f}"

    def draw_basic(self) -> str:
        return self.key(self.random, self.subject().shape, advanced=False)

    def draw_index(self) -> str:
        return self.key(self.random, self.subject().shape, advanced=True)

    def key(self, draws: random.Random, shape: tuple[int, ...], advanced: bool) -> str:
        """A key that fits a shape."""
        if not shape:
            return draws.choice(["...", "()", "None"])
        parts: list[str] = []
        for n in shape:
            at = draws.randrange(-n, n) if n else 0
            choices = [":", "::-1", "1:", ":-1", "::2", str(at), str(at), f"{min(1, n)}:{n}"]
            if advanced:
                choices += [f"[{at}, 0]", "[0, -1]", f"[{at}]", "np.array([[0, 1], [1, 0]])"]
                choices.append(f"[{', '.join(str(draws.random() < 0.6) for _ in range(n))}]")
            parts.append(draws.choice(choices))
            if draws.random() < 0.1:
                parts.append("None")
        if draws.random() < 0.3:
            parts = parts[: draws.randint(1, len(parts))]
        elif draws.random() < 0.15:
            parts[draws.randrange(len(parts))] = "..."
        if advanced and draws.random() < 0.05:
            return f"{self.drawn} > 0.1"
        return ", ".join(parts)

    # ----- Trying -----

    def run(self) -> bool:
        """Run the program so far with NumPy; whether it runs and its numbers are moderate."""
        text = "\n".join(self.program.make_arguments())
        space: dict[str, Any] = {"np": np}
        try:
            with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
                warnings.simplefilter("error")
                exec(text, space)
                space = {"np": np, **dict(zip(self.program.arguments, space["arguments"](0), strict=True))}
                exec("\n".join(self.program.body), space)
        except Exception:
            return False
        hidden = {"np", "__builtins__", "rows", "row"}
        values = {name: value for name, value in space.items() if name not in hidden and not callable(value)}
        kept, self.values = self.values, values
        for _, value in self.leaves():
            array = np.asarray(value)
            if array.dtype.kind not in "fciub" or not array.size or array.size > MOST or array.ndim > 4:
                self.values = kept
                return False
            if array.dtype == np.float16 or not np.all(np.abs(array.astype(complex)) < 1e3):
                self.values = kept
                return False
        return True


def write_program(seed: int, known: frozenset[str] = frozenset()) -> Program:
    """The program of a seed."""
    return Writer(seed, known).write()
