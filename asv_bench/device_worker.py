"""One library on one task on a GPU, in one process.

    python device_worker.py LIBRARY TASK ELEMENTS FOLDER

In: names from the tables of benchmarks/device_libraries.py and device_tasks.py, about how many elements the arrays
have, and a folder for results. On standard input, a line with seconds asks for one more round of calls of about that
length; the end of the input ends the process. Out: one line of JSON for the start and for each round. Started by
devices.py.
"""

import json
import os
import statistics
import sys
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from benchmarks import device_libraries, device_tasks


def one_round(call, finish, budget: float) -> float:
    """The median time of a call, where many are put on the device before it is waited for."""
    finish(call())
    start = time.perf_counter()
    finish(call())
    once = time.perf_counter() - start
    count = max(1, min(50, int(0.2 * budget / once)))
    begin, samples = time.perf_counter(), []
    while not samples or time.perf_counter() < begin + budget:
        start = time.perf_counter()
        for _ in range(count):
            result = call()
        finish(result)
        samples.append((time.perf_counter() - start) / count)
    return statistics.median(samples)


def installed(name: str) -> str:
    """The version of a library."""
    for distribution in device_libraries.DISTRIBUTIONS.get(name, (name,)):
        try:
            return version(distribution)
        except PackageNotFoundError:
            continue
    return "unknown"


def main(name: str, task_name: str, elements: int, folder: str) -> None:
    """Prepare, report, and then time whenever asked."""
    # Libraries may print; the answers go to the pipe that was standard output.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def answer(**fields) -> None:
        print(json.dumps(fields), file=answers, flush=True)

    task = device_tasks.TASKS[task_name]
    try:
        library = device_libraries.LIBRARIES[name]()
    except ImportError as error:
        answer(missing=str(error))
        return
    arrays = task.arrays(elements)
    start = time.perf_counter()
    call = device_libraries.prepare(library, task, arrays)
    result = call()
    library.finish(result)
    first = time.perf_counter() - start
    if name != "copy":
        np.savez(Path(folder) / f"{task_name}-{name}.npz", *device_libraries.samples(library, result))
    moved = sum(a.nbytes for a in arrays) + sum(arrays[k].nbytes for k in task.wrt or ())
    text = device_tasks.described(arrays)
    del result, arrays
    answer(first=first, version=installed(name), moved=moved, arrays=text)
    for line in sys.stdin:
        answer(seconds=one_round(call, library.finish, float(line)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
