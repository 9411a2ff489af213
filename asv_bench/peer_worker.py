"""One library on one task in one process.

    python peer_worker.py LIBRARY TASK CPUS FOLDER

In: names from the tables of benchmarks/, the number of CPUs (with one, the process stays on it and time is
CPU time), and a folder for results. On standard input, a line with seconds asks for one more round of calls of
about that length; the end of the input ends the process. Out: one line of JSON for the start and for each round.
Started by peers.py.
"""

import json
import os
import statistics
import sys
import time
from importlib.metadata import version
from pathlib import Path

DISTRIBUTIONS = {"by-hand": "numba", "mindspore-jit": "mindspore"}


def new_gradients(library) -> float:
    """Seconds to compile a new gradient of twelve operations and a sum, while everything else is warm."""
    from benchmarks import tasks

    x, y = tasks.pair(100)
    samples = []
    for variant in (0, 1, 6, 2, 3, 4, 5, 7):
        task = tasks.Task("", lambda xp, x, y, v=variant: tasks.twelve(xp, v, x, y), lambda rng: (x, y), (0, 1), "grad")
        samples.append(first_call(library, task))
    return statistics.median(samples[3:])


def new_chain(library) -> float:
    """Seconds to compile the gradient of a chain of 2000 operations."""
    from benchmarks import tasks

    inputs = tasks.pair(1000)
    samples = []
    for length in (8, 2000):
        task = tasks.Task("", lambda xp, x, y, n=length: tasks.chain(xp, n, x, y), lambda rng: inputs, (0,), "grad")
        samples.append(first_call(library, task))
    return samples[1]


def first_call(library, task) -> float:
    """Seconds from a function to the values of its derivative."""
    start = clock()
    call, _ = library.prepare(task)
    call()
    return clock() - start


ONCE = {
    "start": ("fresh process, warm disk cache: import and first gradient", ("nbgrad", "jax", "torch", "autograd")),
    "compile": ("compile a new gradient of 12 operations and a sum", ("nbgrad", "jax")),
    "chain": ("compile the gradient of a chain of 2000 operations", ("nbgrad", "jax")),
}
"""What is measured once in a process, and by whom."""


def peak_megabytes() -> float:
    """The most memory that this process has had."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def one_round(call, budget: float) -> float:
    """The median time of a call; short ones are timed many at once."""
    begin, samples, count = time.perf_counter(), [], 1
    while not samples or time.perf_counter() < begin + budget:
        start = clock()
        for _ in range(count):
            call()
        seconds = (clock() - start) / count
        if count == 1 and seconds < 1e-3:  # too short for the clock
            count = min(10_000, int(2e-3 / max(seconds, 1e-7)))
            continue
        samples.append(seconds)
    return statistics.median(samples)


def main(name: str, task: str, folder: str) -> None:
    """Prepare, report, and then time whenever asked."""
    # Libraries may print; the answers go to the pipe that was standard output.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**fields) -> None:
        print(json.dumps(fields), file=answers, flush=True)

    from benchmarks import cells

    by_cells = (task, name) in cells.CELLS
    if by_cells:
        cells.modules(name) if name != "torch" else __import__("torch")
    elif name == "by-hand":
        from benchmarks.by_hand import ByHand

        library = ByHand()
    else:
        from benchmarks.libraries import LIBRARIES

        if name == "jax" and task not in ("compile", "chain"):
            import jax

            jax.config.update("jax_compilation_cache_dir", folder)
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
            jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        library = LIBRARIES[name]()
    if task in ONCE:
        if task == "start":
            library.prepare("rosenbrock")[0]()
            answer(seconds=clock() - STARTED)
        else:
            answer(seconds=(new_gradients if task == "compile" else new_chain)(library))
        return
    before, start = peak_megabytes(), clock()
    call, outputs = cells.prepare(task, name) if by_cells else library.prepare(task)
    result = call()
    first = clock() - start
    for _ in range(3 if first < 5.0 else 1):
        call()
    memory = peak_megabytes() - before
    import numpy as np

    np.savez(Path(folder) / f"{task}-{name}.npz", *outputs(result))
    answer(first=first, memory=memory, version=version(DISTRIBUTIONS.get(name, name)))
    for line in sys.stdin:
        answer(seconds=one_round(call, float(line)))


if __name__ == "__main__":
    library_name, task_name, cpus, results = sys.argv[1:]
    if cpus == "1":
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        clock, STARTED = time.process_time, 0.0
    else:
        clock, STARTED = time.perf_counter, float(os.environ["PEER_STARTED"])
    main(library_name, task_name, results)
