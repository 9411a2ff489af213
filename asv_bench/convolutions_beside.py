"""Convolutions beside another library: processor time of a call, and the memory that the process takes for it.

    python convolutions_beside.py [--python LIBRARY=PYTHON ...] [--libraries NAME ...] [--rounds COUNT]

In: an interpreter for each library that is not installed beside nbgrad. Out: a table, one line for each row of
benchmarks/convolutions.py: the least processor time of a call on one thread, the peak of memory above that of the
process with its inputs, and their ratios to PyTorch's. Libraries take turns, each time in a new process.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def measured(library, name):
    """In one process: milliseconds and megabytes."""
    from benchmarks.convolutions import LAYERS
    from benchmarks.libraries import LIBRARIES
    from benchmarks.measured import least

    if library == "torch":
        import torch

        torch.set_num_threads(1)
    call, _ = LIBRARIES[library]().prepare(LAYERS[name])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    call()
    call()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    return {"ms": least(call, 2.0) * 1e3, "MB": memory / 1024}


def in_process(library, name, pythons):
    """`measured` in a fresh process; None where the library is not installed."""
    command = [pythons.get(library, sys.executable), str(HERE / "convolutions_beside.py"), "--worker", library, name]
    env = {**os.environ, "NBGRAD_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        if "ModuleNotFoundError" in done.stderr and library != "nbgrad":
            return None
        sys.exit(f"{library} failed on {name}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def line(name, rounds):
    """The row of a table: the best of all rounds, and nbgrad's part of what PyTorch takes."""
    best = {
        library: {key: min(run[key] for run in runs) for key in ("ms", "MB")}
        for library, runs in rounds.items()
        if runs
    }
    cells = [f"{best[library]['ms']:.2f} ms, {best[library]['MB']:.0f} MB" for library in best]
    if {"nbgrad", "torch"} <= set(best):
        mine, other = best["nbgrad"], best["torch"]
        cells.append(f"{mine['ms'] / other['ms']:.2f}, {mine['MB'] / max(other['MB'], 1e-9):.2f}")
    return " | ".join(["", name, *cells, ""]).strip()


def main():
    """The table, line by line."""
    options = argparse.ArgumentParser()
    options.add_argument("--python", action="append", default=[], metavar="LIBRARY=PYTHON")
    options.add_argument("--libraries", nargs="*", default=["nbgrad", "torch"])
    options.add_argument("--rounds", type=int, default=2)
    options.add_argument("--worker", nargs=2)
    given = options.parse_args()
    if given.worker:
        sys.stdout.write(json.dumps(measured(*given.worker)) + "\n")
        return
    from benchmarks.convolutions import LAYERS

    pythons = dict(one.split("=", 1) for one in given.python)
    sys.stdout.write(f"| value and gradient | {' | '.join(given.libraries)} | time, memory: nbgrad / torch |\n")
    for name in LAYERS:
        rounds = {library: [] for library in given.libraries}
        for _ in range(given.rounds):
            for library, runs in rounds.items():
                found = in_process(library, name, pythons)
                runs += [] if found is None else [found]
        sys.stdout.write(line(name, rounds) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
