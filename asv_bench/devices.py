"""nbgrad on a GPU beside other libraries: times in turns, bandwidths, results compared, and what was to be reached.

    python devices.py [--parts NAME ...] [--python LIBRARY=PYTHON ...] [--libraries NAME ...] [--tasks NAME ...]
                      [--elements N] [--rounds N] [--budget SECONDS] [--json FILE] [--readme FILE] [--needs-gpu]
                      [--simulate]

In: an interpreter for each library that is not installed beside nbgrad, `--python jax=... torch=... cupy=...`. Out: a
table for each part, with --readme also between the markers `devices` of a file. The parts:

    compile      a new fused kernel to machine code, everything else warm (needs no GPU)
    launch       the host's time of a call of a program of ten small kernels, and as a CUDA graph (without a GPU: with a
                 driver that does nothing)
    elementwise  gradients of 1e8 float32, as a share of the bandwidth of the device's own copy
    networks     gradients of an MLP, and of layer norm and GELU
    loops        gradients of 1000 time steps, and the time until the first
    routines     cumsum, sort, scatter-add, and products of matrices
    agreement    the largest difference from the CPU's results in ULP, for every primitive; sums

Each library runs each task in a process of its own (device_worker.py). The processes of a part are started together,
and wait when they are ready; those of a task are timed in turns, while nothing else runs. A
library that is missing is skipped with a line; without a GPU, one line says so and the parts that need none are run
(with --needs-gpu it fails and says why). A library that fails, or whose result differs from nbgrad's by more than the
task allows, is left out of the task with a line, and the command ends with 1. --simulate runs everything on small
arrays in the simulator, to try the command; its numbers mean nothing.
"""

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks import device_costs
from benchmarks.device_libraries import LIBRARIES, OMITTED
from benchmarks.device_tasks import TASKS
from peers import HERE, Worker, between_markers, compare, duration, three_digits

import nbgrad as nb

TITLES = {
    "nbgrad": "nbgrad",
    "copy": "copy",
    "cupy": "CuPy",
    "jax": "JAX",
    "torch": "PyTorch",
    "torch-compiled": "PyTorch, compiled",
}
WITHOUT_A_GPU = ("compile", "launch")
MARKERS = "devices"


class DeviceWorker(Worker):
    """A process of device_worker.py."""

    def command(self, library, task, options, folder):
        python = options.pythons.get(library.removesuffix("-compiled"), sys.executable)
        return [python, str(HERE / "device_worker.py"), library, task, str(options.elements), folder]


# ----- Tasks beside other libraries -----


def started(task: str, options, folder: str) -> dict[str, Worker]:
    """A process for each library that has the task; they prepare it at the same time."""
    return {
        library: DeviceWorker(library, task, options, folder)
        for library in options.libraries
        if (library, task) not in OMITTED and (library != "copy" or TASKS[task].streams)
    }


def answered(task: str, workers: dict[str, Worker], options) -> dict[str, dict]:
    """What the processes say once they are ready; those whose library is missing, or fails, are left out."""
    found: dict[str, dict] = {}
    for library in list(workers):
        answer = workers[library].answer()
        if answer is None:
            drop(task, library, workers, workers[library].failure(), options)
        elif "missing" in answer:
            if library not in options.missing:
                print(f"{TITLES[library]} is skipped: {answer['missing']}", file=sys.stderr)
            options.missing.add(library)
            workers.pop(library).close()
        else:
            found[library] = answer
    return found


def drop(task: str, library: str, workers: dict[str, Worker], why: object, options) -> None:
    """Go on without a library; not without nbgrad."""
    with contextlib.suppress(BrokenPipeError):
        workers.pop(library).close()
    if library == "nbgrad":
        raise SystemExit(f"nbgrad, {task}: {why}")
    print(f"{TITLES[library]}, {task}: {why}", file=sys.stderr)
    options.failed = True


def measure(task: str, workers: dict[str, Worker], found: dict[str, dict], options, folder: str) -> None:
    """Add to the answers of a task's processes the seconds of a call."""
    for library in [name for name in found if name not in ("nbgrad", "copy")]:
        try:  # compilers reorder sums; the limits say by how much
            compare(task, {name: found[name] for name in ("nbgrad", library)}, folder, TASKS[task].tolerance)
        except SystemExit as error:
            found.pop(library)
            drop(task, library, workers, error, options)
    samples = {library: [] for library in workers}
    for turn in range(options.rounds):
        names = list(workers)
        for library in names[turn % len(names) :] + names[: turn % len(names)]:
            try:
                samples[library].append(workers[library].round(options.budget))
            except (SystemExit, BrokenPipeError) as error:
                found.pop(library)
                drop(task, library, workers, error, options)
    for library, worker in workers.items():
        worker.close()
        found[library] |= {"seconds": statistics.median(samples[library]), "rounds": samples[library]}


def tasks_part(group: str, options, measured: dict) -> list[list[str]]:
    """Rows of tasks, with ratios to nbgrad in brackets; bandwidths where a task only streams."""
    names = [name for name in options.tasks if TASKS[name].group == group]
    with tempfile.TemporaryDirectory() as folder:
        workers = {name: started(name, options, folder) for name in names}
        for name in names:  # all are ready before the first is timed
            measured[name] = answered(name, workers[name], options)
        for name in names:
            measure(name, workers[name], measured[name], options, folder)
    columns = [library for library in TITLES if any(library in measured[name] for name in names)]
    streams = any(TASKS[name].streams for name in names)
    rows = [["task", *[TITLES[c] for c in columns], *(["GB/s of nbgrad", "of the copy's"] if streams else [])]]
    for name in names:
        entries = measured[name]
        base = entries["nbgrad"]["seconds"]
        row = [f"{TASKS[name].text}; {entries['nbgrad']['arrays'].partition(',')[0]}".replace("*", "\\*")]
        for library in columns:
            seconds = entries.get(library, {}).get("seconds")
            ratio = "" if library == "nbgrad" or seconds is None else f" ({three_digits(seconds / base)})"
            row.append("" if seconds is None else duration(seconds) + ratio)
        if streams:
            share = f"{100 * entries['copy']['seconds'] / base:.0f} %" if "copy" in entries else ""
            row += [f"{entries['nbgrad']['moved'] / base / 1e9:.0f}", share]
        rows.append(row)
    if group == "loops":
        for name in names:
            seconds = {library: entry["first"] for library, entry in measured[name].items()}
            ratios = {
                k: "" if k == "nbgrad" else f" ({three_digits(s / seconds['nbgrad'])})" for k, s in seconds.items()
            }
            cells = [duration(seconds[c]) + ratios[c] if c in seconds else "" for c in columns]
            rows.append([f"{TASKS[name].text}, the first time", *cells])
    return rows


def goals_of_tasks(measured: dict) -> list[tuple[str, float | None, float]]:
    """(what, the number, the most that it should be)."""
    goals: list[tuple[str, float | None, float]] = []

    def ratio(task: str, library: str) -> float | None:
        entries = measured.get(task, {})
        if library not in entries or "nbgrad" not in entries:
            return None
        return entries["nbgrad"]["seconds"] / entries[library]["seconds"]

    for name, task in TASKS.items():
        limits: dict[str, float] = {}
        if task.group == "elementwise":
            limits = {"copy": 1 / 0.85, "cupy": 0.5, "jax": 1.0, "torch-compiled": 1.0}
        elif task.group == "loops":
            limits = {"jax": 1.0, "torch": 1.0}
        elif task.group == "networks":
            limits = {"torch": 1.1, "torch-compiled": 1.1}
        for library, limit in limits.items():
            goals.append((f"{name}: time relative to {TITLES[library]}", ratio(name, library), limit))
    return goals


# ----- Parts of nbgrad alone -----


def compile_part(options, measured: dict) -> list[list[str]]:
    """Rows of kernels."""
    linker = device_costs.has_linker()
    if not linker:
        print("nvJitLink is not installed: the times are those of PTX.", file=sys.stderr)
    rows = [["compile a fused gradient, warm", "float32", "float64"]]
    for size, operations in device_costs.SIZES.items():
        row = [f"{operations} operation{'s' if operations > 1 else ''}"]
        for dtype in ("float32", "float64"):
            seconds = device_costs.seconds_to_compile(device_costs.kernels(dtype, size), linker)
            measured[f"compile {size} {dtype}"] = seconds
            row.append(duration(seconds))
        rows.append(row)
    return rows


def launch_part(options, measured: dict) -> list[list[str]]:
    """Rows of programs by the number of their kernels."""
    driver = "" if options.gpu else " (with a driver that does nothing)"
    rows = [[f"a call of a program{driver}", "host", "called and waited for", "as a graph", "called and waited for"]]
    for count in device_costs.PROGRAMS:
        row = [f"{count} kernel{'s' if count > 1 else ''} on 100 float32"]
        for into in (False, True):
            if options.gpu:
                call, wait = device_costs.program(count, into), lambda: nb.cuda.synchronize("cuda")
                seconds = [device_costs.seconds_of_a_call(call, wait, each) for each in (False, True)]
            else:
                with device_costs.recorded():
                    seconds = [device_costs.seconds_of_a_call(device_costs.program(count, into), lambda: None), None]
            measured[f"launch {count}{' graph' if into else ''}"] = seconds
            row += ["" if s is None else duration(s) for s in seconds]
        rows.append(row)
    return rows


def agreement_part(options, measured: dict) -> list[list[str]]:
    """Rows of primitives that differ at all, the largest first."""
    from benchmarks import device_agreement

    count = 1000 if options.simulate else 4_000_000
    found = {d: device_agreement.largest_differences(d, count) for d in ("float32", "float64")}
    measured["agreement"] = found
    measured["sums"] = {d: device_agreement.sum_error(d, count) for d in ("float32", "float64")}
    rows = [["ULP between the results of the GPU and of the CPU", *found]]
    largest = {name: max(by.get(name, 0.0) for by in found.values()) for by in found.values() for name in by}
    for name in sorted(largest, key=lambda name: (-largest[name], name)):
        if largest[name]:
            rows.append([name, *[three_digits(by[name]) if name in by else "" for by in found.values()]])
    rows.append([f"the other {sum(not value for value in largest.values())} primitives", "0", "0"])
    rows.append(["error of a sum, in ULP of the sum of magnitudes", *[f"{e:.2g}" for e in measured["sums"].values()]])
    return rows


PARTS = {
    "compile": compile_part,
    "launch": launch_part,
    **{
        group: lambda options, measured, g=group: tasks_part(g, options, measured)
        for group in ("elementwise", "networks", "loops", "routines")
    },
    "agreement": agreement_part,
}


def goals(measured: dict) -> list[tuple[str, float | None, float]]:
    """Everything that was to be reached: what, the number or None, the most that it should be."""
    found = [("compile, 6 operations of float32, ms", measured.get("compile medium float32"), 60.0)]
    found += [("call of 10 kernels, us", (measured.get("launch 10") or [None])[0], 15.0)]
    found += [("the same as a graph, us", (measured.get("launch 10 graph") or [None])[0], 8.0)]
    scaled = [(text, n and n * factor, limit) for (text, n, limit), factor in zip(found, (1e3, 1e6, 1e6), strict=True)]
    agreement = [n for by in measured.get("agreement", {}).values() for name, n in by.items() if name != "polygamma"]
    scaled += [("largest difference from the CPU but for polygamma, ULP", max(agreement, default=None), 4.0)]
    scaled += [("largest error of a sum, ULP", max(measured.get("sums", {}).values(), default=None), 1.0)]
    return scaled + goals_of_tasks(measured)


def markdown(rows: list[list[str]]) -> str:
    """A table."""
    rows = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def conditions(options, measured: dict) -> str:
    """Which device, and which libraries."""
    versions = {
        TITLES[name].partition(",")[0]: entry["version"]
        for entries in measured.values()
        if isinstance(entries, dict)
        for name, entry in entries.items()
        if isinstance(entry, dict) and "version" in entry and name not in ("nbgrad", "copy")
    }
    device = nb.cuda.get_device_properties().name if options.gpu else "no GPU"
    beside = "".join(f", {name} {version}" for name, version in versions.items())
    return f"Medians of wall times; {device}{beside}. In brackets: times relative to nbgrad's."


def main() -> None:
    """Run the parts and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--python", nargs="*", default=[], help="LIBRARY=PYTHON: an interpreter that has it")
    parser.add_argument("--libraries", nargs="*", default=list(LIBRARIES), choices=list(LIBRARIES))
    parser.add_argument("--tasks", nargs="*", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--elements", type=int, default=100_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--budget", type=float, default=0.5, help="seconds of a library in a round")
    parser.add_argument("--json", help="a file for everything that was measured")
    parser.add_argument("--readme", help=f"a file with the markers <!-- {MARKERS} --> and <!-- /{MARKERS} -->")
    parser.add_argument("--needs-gpu", action="store_true", help="fail where there is none")
    parser.add_argument("--simulate", action="store_true", help="run everything in the simulator, to try the command")
    options = parser.parse_args()
    options.libraries = ["nbgrad", *[name for name in options.libraries if name != "nbgrad"]]
    options.pythons = dict(given.split("=", 1) for given in options.python)
    if options.simulate:
        os.environ["NBGRAD_CUDA_SIMULATOR"] = "1"
        options.elements = min(options.elements, 4000)
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # else JAX's process takes most of the device's memory
    options.failed, options.missing = False, set()
    if options.needs_gpu:
        nb.cuda.get_device_properties()  # raises a DeviceError with the reason
    options.gpu = nb.cuda.is_available()
    parts = [part for part in options.parts if options.gpu or part in WITHOUT_A_GPU]
    if not options.gpu:
        print("No CUDA device: only the parts that need none are run (compile, launch).", file=sys.stderr)
    measured: dict = {}
    tables = []
    for part in parts:
        rows = PARTS[part](options, measured)
        if len(rows) > 1:
            tables.append(markdown(rows))
            print(f"{tables[-1]}\n", flush=True)
        if options.json:  # also if it is cut off later
            Path(options.json).write_text(json.dumps(measured, indent=1))
    for text, number, limit in [] if options.simulate else goals(measured):
        if number is not None:
            print(
                f"{'reached' if number <= limit else 'MISSED '}  {text}: {three_digits(number)} (at most {limit:.3g})"
            )
    tables.append(conditions(options, measured))
    print(f"\n{tables[-1]}")
    if options.readme:
        path = Path(options.readme)
        path.write_text(between_markers(path.read_text(), MARKERS, "\n\n".join(tables)))
    if options.failed:
        sys.exit(1)


if __name__ == "__main__":
    main()
