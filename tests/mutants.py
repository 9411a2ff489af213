"""Mutation testing: `python -m tests.mutants --file graph/simplify --sample 100 --seed 1` changes one operator,
constant or statement of a file at a time, and says which changes no test notices.

A process that has imported all but nbgrad is forked for each mutant. The fork imports nbgrad with the mutated text in
the place of the file, and runs the tests that reach the mutated function, until one fails. Which tests reach it is seen
in a first run without a mutation. Machine code goes to a cache of the run's own.

A mutant that no test kills is equivalent, or changes only speed, or is a missing test. mutants_survivors.txt has those
of the first two kinds, with the reason; they are not run unless `--listed` asks for them. The exit status is 1 if
others survive.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from .mutations import Mutation, mutations

ROOT = Path(__file__).parent.parent
SURVIVORS = Path(__file__).with_name("mutants_survivors.txt")
TESTS: dict[str, str] = {
    "graph/elementwise_rows": "conventions primitives complex masks random",
    "graph/formulas": "conventions reductions primitives structural_primitives complex linear_algebra masks",
    "graph/matrix_rows": "structural_primitives linear_algebra factorisations vmap",
    "graph/movement_rows": "structural_primitives masks complex vmap random_graphs",
    "graph/reduction_rows": "conventions reductions structural_primitives masks vmap side_by_side",
    "graph/window_rows": "structural_primitives ops_convolution vmap",
    "graph/masks": "masks conventions random_slopes",
    "graph/differentiate": "masks conventions quotients pieces custom_rules complex transforms structural_primitives "
    "random_slopes own_kernels",
    "graph/simplify": "simplify_patterns simplify fuse products quotients masks structural_primitives random_graphs",
    "graph/rules/elementwise_rules": "simplify_patterns simplify fuse products quotients masks random_graphs",
    "graph/rules/structural_rules": "simplify_patterns simplify fuse products structural_primitives random_graphs",
    "graph/loops/follower": "followed_calls",
    "graph/loops/repetition": "random_loops rolling",
    "graph/loops/rolling": "random_loops rolling",
    "graph/loops/segments": "memory_budget",
    "record/chosen_arrays": "writes_in_branches control_flow",
    "record/journal": "writes_in_branches control_flow",
    "source/chosen_values": "writes_in_branches control_flow control",
    "source/sides": "writes_in_branches control_flow",
    "source/turned_loops": "writes_in_branches control_flow",
    "solvers/constraints": "constraints",
    "transforms/shared_terms": "shared_terms",
    "sparse/read_elements": "sparse sparse_arguments",
    "compiler/emitters/narrow_maps": "short_rows",
    "compiler/emitters/short_rows": "short_rows",
    "adjoints/common_values": "common_values first_writes adjoints stencil_kernels random_kernels",
    "adjoints/turns/first_writes": "first_writes common_values adjoints stencil_kernels random_kernels",
    "compiler/results_apart": "own_kernels",
    "compiler/moved_operands": "moved_operands simplify fuse arbitrary_fusion",
    "compiler/results_alone": "results_alone",
    "compiler/fuse": "fuse simplify pieces components rows matmul_pieces own_kernels structural_primitives "
    "random_graphs arbitrary_fusion",
    "compiler/movements": "fuse simplify pieces components rows matmul_pieces products structural_primitives "
    "random_graphs arbitrary_fusion",
}
"""Which tests are run for the mutants of a file, in this order: what is fast and telling comes first."""
WARM = (
    "hypothesis.extra.numpy hypothesis.stateful llvmlite.binding mpmath numba numpy.fft numpy.linalg numpy.testing "
    "scipy.fft scipy.integrate scipy.linalg scipy.ndimage scipy.optimize scipy.signal scipy.sparse.linalg "
    "scipy.special scipy.stats"
).split()
"""What the tests import and is no part of the project."""
WARNING = "ignore::pytest.PytestAssertRewriteWarning"
"""Pytest's warning that Hypothesis was imported before."""
SLOWER = 8.0
"""How many times as long as without a mutation a test may take, and `PATIENCE` seconds; then it hangs."""
PATIENCE = 20.0


@dataclass(frozen=True)
class Outcome:
    """The end of one run of tests: pytest's exit status, or a text if there is none; the test that failed, the seconds
    of all and of each test, and without a mutation the functions of the file, by first lines, that each test reached;
    under "" those that imports reached.
    """

    status: int | str
    failed: str
    seconds: float
    reached: Mapping[str, Sequence[int]]
    durations: Mapping[str, float]

    @property
    def killed(self) -> bool:
        return self.status not in (0, 5)


# ----- In the fork -----


class _Loader(SourceFileLoader):
    """Loads a file with another text."""

    def __init__(self, name: str, path: Path, text: str) -> None:
        super().__init__(name, str(path))
        self.text = text

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.text, self.path, "exec")


class _Finder(MetaPathFinder):
    """Finds the mutated module."""

    def __init__(self, loader: _Loader) -> None:
        self.loader = loader

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname != self.loader.name:
            return None
        return spec_from_file_location(fullname, self.loader.path, loader=self.loader)


class Plugin:
    """Selects tests, and notes how long each took, which failed, and which reached which functions of a file."""

    def __init__(self, path: Path, selected: Mapping[str, float] | None) -> None:
        self.path = str(path)
        self.selected = selected
        self.failed = ""
        self.durations: dict[str, float] = {}
        self.reached: dict[str, set[int]] = {}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        selected = self.selected
        if selected is not None:
            chosen = [item for item in items if item.nodeid in selected]
            items[:] = sorted(chosen, key=lambda item: selected[item.nodeid])

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.durations[report.nodeid] = self.durations.get(report.nodeid, 0.0) + report.duration
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def watch(self, test: str) -> None:
        """From now on, note the functions that are called for a test, or for the imports if it is empty."""
        lines = self.reached.setdefault(test, set())
        path = self.path

        def called(frame: FrameType, event: str, _: Any) -> None:
            if event == "call" and frame.f_code.co_filename == path:
                lines.add(frame.f_code.co_firstlineno)

        sys.settrace(called)

    def pytest_runtest_setup(self, item: Any) -> None:
        if self.selected is None:
            self.watch(item.nodeid)
        else:
            # Nothing handles the signal, so that it ends the process.
            signal.setitimer(signal.ITIMER_REAL, SLOWER * self.selected[item.nodeid] + PATIENCE)

    def pytest_runtest_teardown(self, item: Any) -> None:
        if self.selected is None:
            self.watch("")
        else:
            signal.setitimer(signal.ITIMER_REAL, PATIENCE)


def _run(path: Path, text: str, files: Sequence[Path], selected: Mapping[str, float] | None) -> dict[str, Any]:
    """Run tests, all or those selected (with the seconds that they take), with a text in the place of a file."""
    import pytest

    name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    sys.meta_path.insert(0, _Finder(_Loader(name, path, text)))
    plugin = Plugin(path, selected)
    if selected is None:
        plugin.watch("")
    else:
        signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    status: int | str = 5
    for file in files:
        chosen = [] if selected is None else [n for n in selected if n.startswith(f"{file.relative_to(ROOT)}::")]
        if selected is None or chosen:
            options = ["-q", "-x", "-p", "no:cacheprovider", "--tb=short", "-W", WARNING, f"--rootdir={ROOT}"]
            got = int(pytest.main([*options, str(file)], plugins=[plugin]))
            status = got if got != 5 or status == 5 else status
            if status not in (0, 5):
                break
    reached = {test: sorted(lines) for test, lines in plugin.reached.items()}
    return {"status": status, "failed": plugin.failed, "reached": reached, "durations": plugin.durations}


# ----- Around it -----


def forked(work: Callable[[], Mapping[str, Any]], folder: Path) -> Outcome:
    """What a function gives in a fork of this process, whose output goes to a file in a folder."""
    began, answer = time.monotonic(), folder / "answer.json"
    answer.unlink(missing_ok=True)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        try:
            os.setsid()
            output = os.open(folder / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(output, 1)
            os.dup2(output, 2)
            answer.write_text(json.dumps(work()))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with suppress(ProcessLookupError):
        # Processes that the tests have started.
        os.killpg(child, signal.SIGKILL)
    seconds = time.monotonic() - began
    status = "a hang" if ended == -signal.SIGALRM else "the end of the process"
    found: dict[str, Any] = {"status": status, "failed": "", "reached": {}, "durations": {}}
    if answer.exists():
        found = json.loads(answer.read_text())
    return Outcome(**found, seconds=seconds)


class Runner:
    """Mutants of one file, and the tests for them."""

    def __init__(self, name: str, tests: Sequence[Path], folder: Path) -> None:
        self.path, self.tests, self.folder = ROOT / "nbgrad" / f"{name}.py", tests, folder
        self.text = self.path.read_text()
        digest = hashlib.sha256("".join([p.read_text() for p in (self.path, *tests)]).encode()).hexdigest()[:16]
        kept = folder / f"plain-{digest}.json"
        if kept.exists():
            self.plain = Outcome(**json.loads(kept.read_text()))
            return
        self.plain = forked(lambda: _run(self.path, self.text, tests, None), folder)
        if self.plain.status != 0:
            output = (folder / "output.txt").read_text()
            sys.exit(f"The tests of {name} fail without a mutation: {self.plain.failed}\n{output[-3000:]}")
        kept.write_text(json.dumps(asdict(self.plain)))

    def outcome(self, mutation: Mutation) -> Outcome:
        """The tests that reach a mutation, the fast ones of each file first."""
        compile(mutation.text, str(self.path), "exec")  # A mutant that is no Python is an error of this script.
        reached, durations = self.plain.reached, self.plain.durations
        line = mutation.runs_with
        if line in reached[""]:
            line = 0  # The function runs at import.
        selected = {test: durations[test] for test, lines in reached.items() if test and (not line or line in lines)}
        return forked(lambda: _run(self.path, mutation.text, self.tests, selected), self.folder)


def listed() -> dict[tuple[str, str, str], str]:
    """(file, function, change) -> reason: the mutants that are known to survive.

    A block of the file is a line `file, function`, the changes, each four columns to the right, and the reason, which
    begins with its kind, `equivalent` or `speed`. A line of the function in the place of a change stands for all
    changes of the line, and `*` for all changes of the function.
    """
    found: dict[tuple[str, str, str], str] = {}
    for block in SURVIVORS.read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        if lines:
            file, _, function = lines[0].partition(", ")
            changes = [line[4:] for line in lines[1:] if line.startswith("    ")]
            reason = " ".join(lines[1 + len(changes) :])
            found.update({(file, function, change): reason for change in changes})
    return found


def entries(name: str, mutation: Mutation) -> list[tuple[str, str, str]]:
    """The keys of `listed` that stand for a mutation of a file."""
    return [(name, mutation.function, change) for change in (mutation.change, mutation.line, "*")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run mutants, print the survivors and a table of numbers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--file", action="append", choices=list(TESTS), help="mutate this file; all if left out")
    parser.add_argument("--sample", type=int, help="so many mutants of each file, chosen at random; all if left out")
    parser.add_argument("--seed", type=int, default=0, help="of the choice")
    parser.add_argument("--only", default="", help="mutants with this text in their function or change")
    parser.add_argument("--listed", action="store_true", help="run those of mutants_survivors.txt, and no others")
    parser.add_argument("--tests", nargs="+", type=Path, help="run these files of tests instead of the row's")
    parser.add_argument("--show", action="store_true", help="print the mutants and run none")
    parser.add_argument("--folder", type=Path, help="keep machine code and the run without a mutation here")
    options = parser.parse_args(arguments)
    known, unexplained = listed(), 0
    with tempfile.TemporaryDirectory(prefix="nbgrad-mutants-") as temporary:
        folder = options.folder or Path(temporary)
        os.environ["NBGRAD_CACHE_DIR"] = str(folder / "cache")
        (folder / "cache").mkdir(mode=0o700, parents=True, exist_ok=True)
        if not options.show:
            for module in WARM:
                with suppress(ImportError):
                    importlib.import_module(module)
            gc.freeze()
        for name in options.file or TESTS:
            chosen = [
                m
                for m in mutations((ROOT / "nbgrad" / f"{name}.py").read_text())
                if options.only in f"{m.function}: {m.change}"
                and any(entry in known for entry in entries(name, m)) == options.listed
            ]
            if options.sample is not None and options.sample < len(chosen):
                chosen = random.Random(options.seed).sample(chosen, options.sample)
            if options.show:
                say("\n".join(f"{name}, {m.function}\n    {m.change}" for m in chosen))
            elif chosen:
                tests = options.tests or [ROOT / "tests" / f"test_{test}.py" for test in TESTS[name].split()]
                unexplained += _report(name, chosen, Runner(name, [test.resolve() for test in tests], folder))
    return 1 if unexplained and not options.listed else 0


def _report(name: str, chosen: Sequence[Mutation], runner: Runner) -> int:
    """Run mutants of a file and print what becomes of them; how many survive."""
    say(f"{name}: {len(chosen)} mutants; without mutation {runner.plain.seconds:.1f} s")
    began, ends = time.monotonic(), Counter[str]()
    for mutation in chosen:
        if "emitters/" in name:
            # Machine code is kept by the loop that it is of: a mutant of what writes it must write it.
            shutil.rmtree(runner.folder / "cache")
            (runner.folder / "cache").mkdir(mode=0o700)
        outcome = runner.outcome(mutation)
        end = "killed" if outcome.killed else "survives"
        ends[end] += 1
        by = f" by {outcome.failed or outcome.status}" if outcome.killed else ""
        say(f"{end} in {outcome.seconds:.1f} s{by}\n{name}, {mutation.function}\n    {mutation.change}")
    each = (time.monotonic() - began) / len(chosen)
    say(f"{name}: {ends['killed']} of {len(chosen)} killed, {ends['survives']} survive, {each:.1f} s each")
    return ends["survives"]


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
