"""Loops of nbgrad beside JAX's scan, autograd and Numba by hand: first call, steady state, memory.

    python loops_beside.py [--python LIBRARY=PYTHON ...] [--programs NAME ...] [--turns N ...] [--libraries NAME ...]

In: an interpreter for each library that is not installed beside nbgrad. Out: a table of processor times of one process
each, on one CPU: the first call in a process with an empty cache, the first in a second process, a later call, and the
growth of memory from before the first call to its peak. Values and gradients are compared.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from loop_programs import INPUTS, prepared

HERE = Path(__file__).resolve().parent
LIBRARIES = ("nbgrad", "nbgrad-source", "nbgrad-scan", "jax", "autograd", "by-hand")
SLOW = {"autograd": 1000}
"""The most turns of libraries that need seconds for each call."""


def measure(library, name, turns):
    """One process: seconds of the first call and of a later one, memory, and the result."""
    call, inputs = prepared(library, name, turns), INPUTS[name]
    if library != "by-hand":
        prepared(library, "warm", 0)(*INPUTS["rk4"])  # what a process needs once, such as a backend
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    result = call(*inputs)
    first = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    samples = []
    end = time.process_time() + 1.0
    while len(samples) < 5 or (time.process_time() < end and len(samples) < 1000):
        start = time.process_time()
        call(*inputs)
        samples.append(time.process_time() - start)
    value, gradients = result
    flat = [float(np.asarray(value)), *[float(x) for g in gradients for x in np.asarray(g).ravel()]]
    return {"first": first, "steady": statistics.median(samples), "MB": (peak - before) / 1024, "result": flat}


def has(library, name):
    """Whether a library has a program."""
    if name.startswith("particle"):
        return library not in ("autograd", "by-hand")
    return library != "nbgrad-source" and (library != "by-hand" or name == "rk4")


def in_process(library, name, turns, options, cache):
    """`measure` in a fresh process."""
    python = options.pythons.get(library.partition("-")[0], sys.executable)
    command = [python, str(HERE / "loops_beside.py"), "--worker", library, name, str(turns)]
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    env |= {"NBGRAD_CACHE_DIR": cache, "JAX_COMPILATION_CACHE_DIR": cache, "NUMBA_NUM_THREADS": "1"}
    env |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{library} failed on {name}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[], metavar="LIBRARY=PYTHON")
    parser.add_argument("--programs", nargs="+", default=[*INPUTS])
    parser.add_argument("--turns", nargs="+", type=int, default=[10, 100, 1000, 10_000])
    parser.add_argument("--libraries", nargs="+", default=LIBRARIES)
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if options.worker:
        library, name, turns = options.worker
        print(json.dumps(measure(library, name, int(turns))))
        return
    options.pythons = dict(pair.split("=", 1) for pair in options.python)
    print("| program | turns | library | first call, s | in a second process, s | later calls, ms | memory, MB |")
    print("|---|---|---|---|---|---|---|")
    for name in options.programs:
        for turns in options.turns if not name.startswith("particle") else [355]:
            reference = None
            for library in options.libraries:
                if turns > SLOW.get(library, turns) or not has(library, name):
                    continue
                with tempfile.TemporaryDirectory() as cache:
                    found = in_process(library, name, turns, options, cache)
                    again = in_process(library, name, turns, options, cache)
                reference = reference or found["result"]
                if turns <= 1000 and not np.allclose(found["result"], reference, rtol=1e-6, atol=1e-9):
                    sys.exit(f"{library} differs on {name} of {turns} turns")
                numbers = f"{found['first']:.3f} | {again['first']:.3f} | {found['steady'] * 1e3:.3f}"
                print(f"| {name} | {turns} | {library} | {numbers} | {found['MB']:.1f} |", flush=True)


if __name__ == "__main__":
    main()
