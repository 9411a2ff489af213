"""nbgrad beside other libraries: the same work on the same numbers, in turns, results compared, medians and ratios.

    python peers.py [--python LIBRARY=PYTHON ...] [--libraries NAME ...] [--tasks NAME ...] [--cpus 1|2] [--rounds N]
                    [--budget SECONDS] [--json FILE] [--page FILE] [--excerpt FILE]

In: an interpreter for each library that is not installed beside nbgrad (the `peers` extra installs most). Out: two
tables; with --page the same tables between the markers of a page, docs/benchmarks.md, and with --excerpt some lines of
them between the marker `excerpt` of another one, the README. Every library runs each task in a process of
its own (peer_worker.py); the processes of a task stay alive and are timed in turns. With one CPU all are bound to
it and scored by CPU time, which other programs on the machine hardly change; with two by wall time. A library
whose result differs from nbgrad's by more than the task allows makes the run fail.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from benchmarks.by_hand import FUNCTIONS
from benchmarks.cells import CELLS, TEXTS
from benchmarks.tasks import TASKS
from peer_worker import ONCE

HERE = Path(__file__).resolve().parent
TITLES = {
    "nbgrad": "nbgrad",
    "jax": "JAX",
    "torch": "PyTorch",
    "autograd": "autograd",
    "by-hand": "Numba by hand",
    "mindspore": "MindSpore",
    "mindspore-jit": "MindSpore, jit",
}
GROUPS = {
    "benchmarks": [*[t for t in TASKS if TASKS[t].group == "benchmarks"], *ONCE],
    "networks": [*[t for t in TASKS if TASKS[t].group == "networks"], *[t for t in TEXTS if t not in TASKS]],
}
"""The tables, by the name of their markers."""
EXCERPT = (
    "Rosenbrock",
    "logistic",
    "its Hessian",
    "bundle",
    "Allen-Cahn",
    "Runge-Kutta",
    "layer norm",
    "Cholesky",
    "fresh process",
    "compile the",
)
"""How the lines of the README begin."""


def takes_part(library: str, task: str) -> bool:
    """Whether a library has a task."""
    if task in ONCE:
        return library in ONCE[task][1]
    if library == "by-hand":
        return task in FUNCTIONS
    general = task in TASKS and library in ("nbgrad", "jax", "torch", "autograd")
    return (task, library) in CELLS or (general and (task, library) != ("convolution", "autograd"))


class Worker:
    """A process of peer_worker.py."""

    def __init__(self, library: str, task: str, options, folder: str):
        # All libraries may use compiled bytecode, as in any normal installation.
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        cache = Path(folder) / (f"fresh-{time.monotonic_ns()}" if task in ("compile", "chain") else "cache")
        env |= {"NBGRAD_CACHE_DIR": str(cache), "PEER_STARTED": str(time.perf_counter()), "GLOG_v": "4"}
        command = self.command(library, task, options, folder)
        self.log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed with the worker
        # MindSpore leaves files where it runs.
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.log}
        self.process = subprocess.Popen(command, env=env, cwd=folder, text=True, **pipes)

    def command(self, library: str, task: str, options, folder: str) -> list[str]:
        """What is run."""
        python = options.pythons.get(library.removesuffix("-jit"), sys.executable)
        return [python, str(HERE / "peer_worker.py"), library, task, str(options.cpus), folder]

    def answer(self):
        """The next line of the worker, or None if it failed."""
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def round(self, budget: float) -> float:
        """Seconds of a call, measured now."""
        self.process.stdin.write(f"{budget}\n")
        self.process.stdin.flush()
        answer = self.answer()
        if answer is None:
            raise SystemExit(self.failure())
        return answer["seconds"]

    def failure(self) -> str:
        """The end of what a dead worker said."""
        self.process.wait()
        self.log.seek(0)
        return self.log.read().strip()[-600:]

    def close(self):
        self.process.stdin.close()
        self.process.wait()
        self.log.close()


def measure(task: str, libraries: list[str], options, folder: str) -> dict[str, dict]:
    """For each library that has the task: seconds of a call, of the first one, and megabytes."""
    found: dict[str, dict] = {}
    if task in ONCE:
        samples = {library: [] for library in libraries}
        # The first turn fills the caches on disk, and is not counted where they matter.
        for turn in range(3 + (task == "start")):
            for library in libraries:
                worker = Worker(library, task, options, folder)
                answer = worker.answer()
                if answer is None:
                    raise SystemExit(f"{library}, {task}: {worker.failure()}")
                if turn or task != "start":
                    samples[library].append(answer["seconds"])
                worker.close()
        return {library: {"seconds": statistics.median(values)} for library, values in samples.items()}
    workers: dict[str, Worker] = {}
    for library in libraries:
        # Libraries with a cache on disk are started twice: memory and the later calls are those of a second process.
        for again in range(1 + (library in ("nbgrad", "jax"))):
            worker = Worker(library, task, options, folder)
            answer = worker.answer()
            if answer is None:
                raise SystemExit(f"{library}, {task}: {worker.failure()}")
            if again:
                workers[library].close()
                answer |= {"first": found[library]["first"], "first_again": answer["first"]}
            found[library], workers[library] = answer, worker
    compare(task, found, folder)
    samples = {library: [] for library in libraries}
    for turn in range(options.rounds):
        for library in libraries[turn % len(libraries) :] + libraries[: turn % len(libraries)]:
            samples[library].append(workers[library].round(options.budget))
    for library, worker in workers.items():
        worker.close()
        found[library] |= {"seconds": statistics.median(samples[library]), "rounds": samples[library]}
    return found


def compare(task: str, found: dict[str, dict], folder: str, tolerance: float | None = None) -> None:
    """Check that results agree with the first library's, relative to their largest element."""
    results = {}
    for library in found:
        with np.load(Path(folder) / f"{task}-{library}.npz") as stored:
            results[library] = [stored[name] for name in stored.files]
    if tolerance is None:
        tolerance = TASKS[task].tolerance if task in TASKS else 1e-5
    first, *others = results
    for library in others:
        if [a.shape for a in results[library]] != [a.shape for a in results[first]]:
            raise SystemExit(f"{task}: the results of {library} have other shapes than those of {first}.")
        for mine, theirs in zip(results[first], results[library], strict=True):
            error = float(np.max(np.abs(mine - theirs)) / np.max(np.abs(theirs)))
            found[library]["error"] = max(error, found[library].get("error", 0.0))
        if not found[library]["error"] <= tolerance:
            raise SystemExit(f"{task}: {library} and {first} differ by {found[library]['error']:.1e} relative.")


# ----- Tables -----


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    unit, factor = next(((u, f) for u, f in (("s", 1.0), ("ms", 1e3)) if seconds * f >= 1.0), ("us", 1e6))
    return f"{three_digits(seconds * factor)} {unit}"


def three_digits(number: float) -> str:
    """Without an exponent."""
    text = f"{number:.3g}"
    return str(round(number)) if "e" in text else text


def table(tasks: list[str], measured: dict[str, dict]) -> str:
    """Rows of tasks, a column for each library that has any, ratios to nbgrad in brackets, and memory."""
    tasks = [task for task in tasks if task in measured]
    columns = [library for library in TITLES if any(library in measured[task] for task in tasks)]
    heads = ["task", *[TITLES[c] for c in columns]]
    remembered = [c for c in columns if any("memory" in measured[task].get(c, {}) for task in tasks)]
    remembered = [c for c in remembered if c in ("nbgrad", "jax", "torch", "mindspore")]
    rows = [[*heads, "MB: " + ", ".join(TITLES[c] for c in remembered)], ["---"] * (len(heads) + 1)]
    for task in tasks:
        entries = measured[task]
        text = ONCE[task][0] if task in ONCE else TEXTS[task] if task in TEXTS else TASKS[task].text
        row = [text.replace("*", "\\*")]
        for column in columns:
            if column not in entries:
                row.append("")
                continue
            seconds = entries[column]["seconds"]
            ratio = "" if column == "nbgrad" else f" ({three_digits(seconds / entries['nbgrad']['seconds'])})"
            row.append(duration(seconds) + ratio)
        memory = [entries[c]["memory"] if "memory" in entries.get(c, {}) else None for c in remembered]
        row.append(", ".join("-" if m is None else f"{m:.0f}" for m in memory) if any(memory) else "")
        rows.append(row)
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def between_markers(text: str, name: str, content: str) -> str:
    """A document with something else between its markers."""
    before, rest = text.split(f"<!-- {name} -->")
    after = rest.split(f"<!-- /{name} -->")[1]
    return f"{before}<!-- {name} -->\n{content}\n<!-- /{name} -->{after}"


def conditions(measured: list[dict], cpus: int) -> str:
    """How the tables came about, in one sentence."""
    versions = {}
    for entries in measured:
        versions |= {TITLES[k].removesuffix(", jit"): v["version"] for k, v in entries.items() if "version" in v}
    versions = {("Numba" if k == "Numba by hand" else k): v for k, v in versions.items() if k != "nbgrad"}
    info = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":")[1].strip() for line in info if line.startswith("model name")), platform.machine())
    scored = "CPU time of a call on one core" if cpus == 1 else "wall time of a call on all cores"
    listed = ", ".join(f"{k} {v}" for k, v in versions.items())
    return f"Medians of the {scored} of an {model}, with Python {platform.python_version()}, {listed}."


def excerpt(page: str) -> str:
    """The lines of a page's first table that the README shows, without the columns of memory and of code by hand."""
    lines = page.split("<!-- benchmarks -->\n")[1].split("\n\n")[0].splitlines()
    chosen = [line for line in lines[2:] if line.startswith(tuple(f"| {task}" for task in EXCERPT))]
    rows = [line[2:-2].split(" | ") for line in (lines[0], lines[1], *chosen)]
    return "\n".join("| " + " | ".join(row[:5]) + " |" for row in rows)


def main() -> None:
    """Run all tasks and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", nargs="*", default=[], help="LIBRARY=PYTHON: an interpreter that has it")
    parser.add_argument("--libraries", nargs="*", default=["nbgrad", "jax", "torch", "autograd", "by-hand"])
    parser.add_argument("--tasks", nargs="*", default=[task for tasks in GROUPS.values() for task in tasks])
    parser.add_argument("--cpus", type=int, default=1, choices=(1, 2))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=0.1, help="seconds of a library in a round")
    parser.add_argument("--json", help="a file for everything that was measured")
    parser.add_argument("--page", help="a file with the markers <!-- benchmarks --> and <!-- networks -->")
    parser.add_argument("--excerpt", help="a file with the marker <!-- excerpt -->, for some lines of the page")
    options = parser.parse_args()
    options.pythons = dict(given.split("=", 1) for given in options.python)
    measured: dict[str, dict] = {}
    with tempfile.TemporaryDirectory() as folder:
        for task in options.tasks:
            libraries = [library for library in options.libraries if takes_part(library, task)]
            measured[task] = measure(task, libraries, options, folder)
            print(table([task], measured).splitlines()[-1], flush=True)
    if options.json:
        Path(options.json).write_text(json.dumps(measured, indent=1))
    text = Path(options.page).read_text() if options.page else ""
    for group, tasks in GROUPS.items():
        if not any(task in measured for task in tasks):
            continue
        content = (
            f"{table(tasks, measured)}\n\n{conditions([measured[t] for t in tasks if t in measured], options.cpus)}"
        )
        print(f"\n{content}")
        if options.page:
            text = between_markers(text, group, content)
    if options.page:
        Path(options.page).write_text(text)
    if options.page and options.excerpt:
        path = Path(options.excerpt)
        path.write_text(between_markers(path.read_text(), "excerpt", excerpt(text)))


if __name__ == "__main__":
    main()
