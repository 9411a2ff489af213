"""Checks of a random program: nbgrad must do what NumPy does, un-jitted, compiled, mapped, and differentiated.

In: a `Program`. Out: None, or a `Finding`, whose text is a script that shows it; and how many calls ended in an error
that nbgrad documents. Called by test_random_programs.py.

NumPy itself runs the text of each program for what is expected: values, shapes, dtypes, containers, and its arguments
after the call. Derivatives in both modes must agree with each other, and with central differences of NumPy where these
agree at two steps. What NumPy itself answers differently after a change of its arguments by rounding errors is no
finding.
"""

from __future__ import annotations

import copy
import linecache
import re
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import NbgradError

from .random_programs import Program

HEAD = """
import numpy as np
import nbgrad as nb
""".strip()

TOTAL = """
def leaves(tree):
    if isinstance(tree, (tuple, list)):
        return [leaf for part in tree for leaf in leaves(part)]
    return leaves(list(tree.values())) if isinstance(tree, dict) else [tree]


def total(*args):
    result = f(*args)
    value = 0.0
    for leaf in leaves(result):
        weights = np.cos(np.arange(float(np.size(leaf)))).reshape(np.shape(leaf))
        if np.issubdtype(np.result_type(leaf), np.complexfloating):
            value = value + np.sum(np.real(leaf) * weights) + np.sum(np.imag(leaf) * weights[::-1])
        elif np.issubdtype(np.result_type(leaf), np.floating):
            value = value + np.sum(leaf * weights)
    return value, result


def ones(tree):
    if isinstance(tree, (tuple, list)):
        return type(tree)([ones(part) for part in tree])
    return {key: ones(part) for key, part in tree.items()} if isinstance(tree, dict) else np.ones_like(tree)[...]
""".strip()
"""One number of all floats in the result, in which each has a weight of its own."""

STYLES = {
    "source": "recorded = nb.differentiable_source(total)",
    "plain": "recorded = total",
    "namespace": "recorded = total  # with `import nbgrad.numpy as np` above f and total",
}

CALLS = ((0, False), (1, True), (0, True), (0, False))
"""Calls of a compiled function: which values, and whether in another memory order."""


@dataclass
class Finding:
    """A program that nbgrad does not run as NumPy does."""

    program: Program
    check: str
    lines: list[str]
    message: str
    compiled: bool

    def __str__(self) -> str:
        setting = [] if self.compiled else ["import os", 'os.environ["NBGRAD_DISABLE_JIT"] = "1"  # not compiled']
        text = [*setting, HEAD, *self.program.make_arguments(), *self.program.function(), TOTAL]
        text += [STYLES[self.program.style], "print(total(*arguments(0)))  # NumPy", *self.lines, "print(found)"]
        return "\n".join([*text, f"# {self.check}: " + self.message.replace("\n", "\n# ")])


class WrongError(AssertionError):
    """nbgrad differs from NumPy."""


class Case:
    """A program that is run by NumPy and by nbgrad."""

    def __init__(
        self,
        program: Program,
        compiled: bool,
        known: frozenset[str] = frozenset(),
        counts: Counter[str] | None = None,
    ) -> None:
        self.program, self.compiled, self.known = program, compiled, known
        self.counts = Counter() if counts is None else counts
        text = "\n".join([*program.make_arguments(), *program.function(), TOTAL])
        self.single = "float32" in text or "complex64" in text
        self.rtol = 1e-3 if self.single else 1e-8
        code = compile(text, "cpu_program.py", "exec")
        linecache.cache["cpu_program.py"] = (len(text), None, text.splitlines(True), "cpu_program.py")
        self.space: dict[str, Any] = {"np": np, "nb": nb, "__name__": "program"}
        exec(code, self.space)
        self.numpy_total, self.arguments = self.space["total"], self.space["arguments"]
        if program.style == "namespace":
            space: dict[str, Any] = {"np": nb.numpy, "__name__": "program"}
            exec(code, space)
            self.space["recorded"] = space["total"]
        else:
            exec(STYLES[program.style], self.space)
        self.wrt = tuple(
            k for k, arg in enumerate(self.arguments(0)) if all(kind(leaf) in "fc" for leaf in leaves(arg))
        )
        self.position = self.wrt if len(self.wrt) != 1 else min(self.wrt)
        self.shared = any("rng" not in line for line in program.arguments.values())
        self.lines: list[str] = []

    def run(self) -> Finding | None:
        """The first check that fails."""
        expected = self.numpy(0)
        if expected is None:
            return None
        for check in (self.values, self.modes, self.jitted, self.mapped):
            if self.compiled and check == self.mapped:
                continue
            self.lines = []
            try:
                check(expected)
            except NbgradError as error:
                if " (at " not in str(error):
                    return self.finding(check.__name__, f"{type(error).__name__} names no line: {error}")
                place = re.search(r" \(at cpu_program.py:(\d+)", str(error))
                line = linecache.getline("cpu_program.py", int(place[1])).strip() if place else "the call"
                self.counts[f"{check.__name__}: {type(error).__name__}: {str(error)[:160]}\n          {line}"] += 1
                self.counts[f"refused in {check.__name__}"] += 1
                if check == self.values:
                    return None
            except WrongError as error:
                if self.is_stable(0) and self.is_stable(1):
                    return self.finding(check.__name__, str(error))
                self.counts["unstable"] += 1
            except Exception as error:
                place = traceback.extract_tb(error.__traceback__)[-1]
                where = f"{place.filename.rpartition('/')[2]}:{place.lineno}"
                return self.finding(check.__name__, f"{type(error).__name__} in {where}: {error}")
        return None

    def finding(self, check: str, message: str) -> Finding:
        return Finding(self.program, check, self.lines, message, self.compiled)

    def do(self, line: str) -> Any:
        """Run a line, which is part of what a finding prints; what it found."""
        self.lines.append(line)
        with quiet(self.compiled):
            exec(line, self.space)
        return self.space.get("found")

    # ----- The checks -----

    def values(self, expected: Any) -> None:
        """Values, the arguments after the call, and the gradient."""
        self.do("args = arguments(0)")
        (value, result), gradient = self.do(
            f"found = nb.value_and_grad(recorded, {self.position}, has_aux=True)(*args)"
        )
        self.gradient = gradient if len(self.wrt) > 1 else (gradient,)
        self.compare(result, expected[1], "value")
        self.compare(value, np.float64(expected[0]), "total", strict=False)
        self.compare_arguments(expected, 0, False)
        self.differences(expected[0])

    def differences(self, value: float) -> None:
        """The gradient against central differences of NumPy."""
        if self.single:
            return
        found = []
        for step in (2e-6, 1e-6):
            above, below = self.numpy(0, step), self.numpy(0, -step)
            if above is None or below is None:
                return
            if abs(above[0] + below[0] - 2 * value) > 1e-9 * (1 + abs(value)):
                return  # a kink or a jump
            found.append((above[0] - below[0]) / (2 * step))
        scale = max(1.0, abs(found[0]))
        if abs(found[0] - found[1]) > 1e-6 * scale:
            return
        args, moved = self.arguments(0), self.moved(0, 1.0)
        slope = sum(
            np.sum(np.real(np.conj(g) * (np.asarray(y) - x)))
            for g, position in zip(self.gradient, self.wrt, strict=True)
            for g, x, y in zip(leaves(g), leaves(args[position]), leaves(moved[position]), strict=True)
        )
        if not np.isfinite(slope):
            return  # sqrt, log and the like at the border of their domain
        self.counts["differences"] += 1
        if not abs(slope - found[0]) <= 1e-4 * scale:
            message = f"the gradient gives {slope} in the direction from {args} to {moved}; differences give {found[0]}"
            raise WrongError(message)

    def modes(self, expected: Any) -> None:
        """Forward mode against reverse mode, in the direction of ones."""
        names = list(self.program.arguments)
        if "views of plain arrays" in self.known and len(self.wrt) < len(names):
            return  # the others are arrays from outside for the function that is recorded
        inner = ", ".join(name if k in self.wrt else f"args[{k}]" for k, name in enumerate(names))
        some = ", ".join(names[k] for k in self.wrt)
        points = ", ".join(f"args[{k}]" for k in self.wrt)
        self.do("args = arguments(0)")
        value, tangent = self.do(f"found = nb.jvp(lambda {some}: recorded({inner})[0], ({points},), ones(({points},)))")
        self.compare(value, np.float64(expected[0]), "total", strict=False)
        slope = sum(np.sum(np.real(g)) for g in leaves(self.gradient))
        scale = 1 + max(np.max(np.abs(leaf), initial=0.0) for leaf in leaves(self.gradient))
        if np.isnan(tangent):
            return  # an infinite slope, at the border of sqrt or log, times a tangent of zero: not silent
        if np.isfinite(slope) and not abs(tangent - slope) <= max(self.rtol, 1e-7) * scale:
            raise WrongError(f"forward mode gives {tangent}, reverse mode {slope}; the gradient is {self.gradient}")

    def jitted(self, expected: Any) -> None:
        """`jit`, with two sets of values and two memory orders, and results that the caller writes to."""
        self.do(f"transform = nb.value_and_grad(recorded, {self.position}, has_aux=True)")
        self.do("jitted = nb.jit(transform)")
        gradients = {(0, False): self.gradient}
        for seed, again in CALLS:
            wanted = self.numpy(seed, again=again)
            if wanted is None:
                continue
            self.do(f"args = arguments({seed}, {again})")
            (value, result), gradient = self.do("found = jitted(*args)")
            what = f"of jitted(*arguments({seed}, {again}))"
            self.compare(result, wanted[1], f"value {what}")
            self.compare(value, np.float64(wanted[0]), f"total {what}", strict=False)
            self.compare_arguments(wanted, seed, again)
            if (seed, again) not in gradients:
                with quiet(self.compiled):
                    gradients[seed, again] = self.space["transform"](*self.arguments(seed, again))[1]
            unjitted = leaves(gradients[seed, again])
            self.compare(leaves(gradient), unjitted, f"gradient {what}; NumPy stands for un-jitted", strict=False)
            for leaf in leaves(result):
                if isinstance(leaf, np.ndarray) and leaf.flags.writeable:
                    leaf[...] = 7  # results belong to the caller

    def mapped(self, expected: Any) -> None:
        """`vmap` against a loop."""
        args = self.arguments(0)
        axes = tuple(0 if isinstance(arg, np.ndarray) and arg.ndim else None for arg in args)
        if self.shared or any(isinstance(arg, tuple | list | dict) for arg in args) or set(axes) == {None}:
            return
        pairs = list(zip(args, self.arguments(1), axes, strict=True))
        expected = []
        for k in range(2):
            row = self.by_numpy([np.stack([x, y])[k] if axis == 0 else copy.deepcopy(x) for x, y, axis in pairs])
            if row is None:
                return
            expected.append(leaves(row[1]))
        stacked = "[np.stack([x, y]) if axis == 0 else x for x, y, axis in zip(arguments(0), arguments(1), axes)]"
        self.do(f"axes = {axes}")
        found = self.do(f"found = nb.vmap(lambda *args: recorded(*args)[1], axes)(*{stacked})")
        for ours, one, other in zip(leaves(found), *expected, strict=True):
            if np.shape(one) == np.shape(other):
                both = np.stack([one, other])
                branches = any(line.lstrip().startswith(("if ", "elif ")) for line in self.program.function())
                kinds = [np.asarray(value).dtype for value in (ours, one, other)]
                if branches and (np.can_cast(both.dtype, kinds[0]) or (kinds[1] != kinds[2] and kinds[0] in kinds)):
                    both = both.astype(kinds[0])  # that of both sides: a side that is a Python number takes the other's
                self.compare(np.asarray(ours), both, "value under vmap")

    def compare_arguments(self, expected: Any, seed: int, again: bool) -> None:
        """A caller's arrays see what NumPy's function writes to them."""
        wanted = self.arguments(seed, again) if "writes to arguments" in self.known else expected[2]
        self.compare(self.space["args"], wanted, f"argument after the call with arguments({seed}, {again})")

    # ----- Running -----

    def by_numpy(self, args: Any) -> Any:
        """NumPy's results, with the arguments after the call; None if it raises, warns, makes arrays of objects (of a
        dict, say), or numbers are not finite."""
        with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
            warnings.simplefilter("error")
            try:
                result = self.numpy_total(*args)
            except Exception:
                return None
        numbers = [np.asarray(leaf) for leaf in leaves(result)]
        good = all(array.dtype != object and np.all(np.isfinite(array)) for array in numbers)
        return (*result, args) if good else None

    def numpy(self, seed: int, step: float = 0.0, again: bool = False) -> Any:
        """The same at one of the program's arguments."""
        return self.by_numpy(self.moved(seed, step, again) if step else self.arguments(seed, again))

    def moved(self, seed: int, step: float, again: bool = False) -> Any:
        """The arguments, changed where they can be written to; those that share memory share it still."""
        rng = np.random.default_rng(99)

        def move(tree: Any) -> Any:
            if isinstance(tree, tuple | list):
                return type(tree)(move(part) for part in tree)
            if isinstance(tree, dict):
                return {key: move(part) for key, part in tree.items()}
            change = rng.normal(size=np.shape(tree))
            if isinstance(tree, np.ndarray):
                if tree.flags.writeable:
                    tree += tree.dtype.type(step) * change.astype(tree.dtype)
                return tree
            return type(tree)(tree + step * float(change))

        args = self.arguments(seed, again)
        return tuple(move(arg) if k in self.wrt else arg for k, arg in enumerate(args))

    def is_stable(self, seed: int) -> bool:
        """Whether NumPy answers nearly the same after a tiny change of its arguments."""
        expected = self.numpy(seed)
        if expected is None:
            return seed == 1
        for step in (1e-6, -1e-6) if self.single else (1e-12, -1e-12, 3e-12):
            near = self.numpy(seed, step)
            if near is None:
                return False
            try:
                self.compare(near[1], expected[1], "")
            except WrongError:
                return False
        return True

    def compare(self, found: Any, expected: Any, what: str, strict: bool = True) -> None:
        """Raise `WrongError` where two results differ."""
        if isinstance(expected, tuple | list | dict):
            keys = [list(x) if isinstance(x, dict) else list(range(len(x))) for x in (found, expected)]
            if type(found) is not type(expected) or keys[0] != keys[1]:
                raise WrongError(f"{what} is {found!r}; NumPy: {expected!r}")
            for key in keys[0]:
                self.compare(found[key], expected[key], f"{what}[{key!r}]", strict)
            return
        a, b = np.asarray(found), np.asarray(expected)
        if strict and (a.dtype, a.shape) != (b.dtype, b.shape):
            raise WrongError(f"{what} has dtype and shape {a.dtype} {a.shape}; NumPy: {b.dtype} {b.shape}")
        if (
            strict
            and isinstance(expected, np.ndarray | np.generic)
            and isinstance(found, np.ndarray) != isinstance(expected, np.ndarray)
        ):
            raise WrongError(f"{what} is of {type(found)}; NumPy: {type(expected)}")
        with np.errstate(all="ignore"):
            scale = max(1.0, float(np.max(np.abs(np.where(np.isfinite(b), b, 0)), initial=0.0)))
            close = np.allclose(a, b, rtol=self.rtol, atol=self.rtol * scale, equal_nan=True)
        if not close:
            raise WrongError(f"{what} is\n{a!r}\nNumPy:\n{b!r}")


@contextmanager
def quiet(compiled: bool) -> Iterator[None]:
    """Warnings of NumPy's interpreter are none of nbgrad's; programs run in it unless they are compiled."""
    patch = pytest.MonkeyPatch()
    patch.setattr("nbgrad.config.interpret", lambda: not compiled)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            yield
    finally:
        patch.undo()


def leaves(tree: Any) -> list[Any]:
    """The arrays and numbers of containers in containers."""
    if isinstance(tree, tuple | list):
        return [leaf for part in tree for leaf in leaves(part)]
    return leaves(list(tree.values())) if isinstance(tree, dict) else [tree]


def kind(leaf: Any) -> str:
    """The letter of a leaf's dtype: one of "fciub"."""
    return np.asarray(leaf).dtype.kind


def shrunk(finding: Finding, known: frozenset[str] = frozenset()) -> Finding:
    """The same difference shown by fewer statements."""
    found = True
    while found:
        found = False
        for candidate in smaller(finding.program):
            try:
                again = Case(candidate, finding.compiled, known).run()
            except Exception:
                continue  # NumPy does not run it
            if again is not None and again.check == finding.check and signature(again) == signature(finding):
                finding, found = again, True
                break
    return finding


def signature(finding: Finding) -> str:
    """What stays the same while a program shrinks: the type and place of an error, or that a value is wrong."""
    first = finding.message.split("\n")[0]
    return first.split(":")[0] if "Error" in first else ""


def smaller(program: Program) -> Iterator[Program]:
    """Programs with one thing less."""
    for k in reversed(range(len(program.body))):
        yield program.without(k)
    for k, statement in enumerate(program.body):
        lines = statement.split("\n")
        for j in range(1, len(lines)) if len(lines) > 1 else ():
            fewer = "\n".join(lines[:j] + lines[j + 1 :])
            yield replace(program, body=[*program.body[:k], fewer, *program.body[k + 1 :]])
        if len(lines) > 1 and all(line.startswith("    ") for line in lines[1:]):
            flat = [line[4:] for line in lines[1:]]
            yield replace(program, body=[*program.body[:k], *flat, *program.body[k + 1 :]])
    for name in program.relayouts:
        yield replace(program, relayouts={n: t for n, t in program.relayouts.items() if n != name})
    for name in program.arguments:
        if len(program.arguments) > 1:
            others = {n: t for n, t in program.arguments.items() if n != name}
            relayouts = {n: t for n, t in program.relayouts.items() if n != name}
            yield replace(program, arguments=others, relayouts=relayouts)
    for name in sorted(set(re.findall(r"\b[a-w]\w*\b", program.result))):
        if name != program.result:
            yield replace(program, result=name)
    if program.style != "plain":
        yield replace(program, style="plain")
