"""Gradients of long loops within memory budgets: time beside the primal's, planned bytes, memory of the process.

    python loops_in_memory.py [--programs NAME ...] [--budgets SIZE ...] [--offload FOLDER]

In: budgets as `nb.jit(f, memory=...)` takes them; "none" is without. Out: a table. Each line is measured in a process
of its own, on one CPU: the median processor time of the primal and of the gradient, their ratio, that to the gradient
without a budget, bytes for intermediates by the plan, and the growth of the process's memory by the gradient.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from loop_programs import FIELD, SPEED, wave

HERE = Path(__file__).resolve().parent
BUDGETS = {"recurrence": ["none", "10 MB", "1 MB", "20 kB", "5 kB"], "wave": ["none", "100 MB", "20 MB", "10 MB"]}


def recurrence(nb, rate):
    """1,000,000 turns on one number."""
    return nb.scan(lambda x, _: (x + 1e-6 * rate * x * (1 - x), None), 0.3, length=1_000_000)[0]


def waves(nb, speed):
    """The wave equation on 100 x 100 points, 2000 steps."""
    start = FIELD * FIELD[:, None]
    return nb.numpy.sum(nb.scan(lambda s, _: (wave(nb.numpy, s, speed), None), (start, 0.9 * start), length=2000)[0][0])


PROGRAMS = {"recurrence": (recurrence, 1.1), "wave": (waves, SPEED)}


def seconds(call, *args):
    """The median processor time of a call."""
    samples = []
    end = time.process_time() + 2.0
    while len(samples) < 5 or (time.process_time() < end and len(samples) < 200):
        start = time.process_time()
        call(*args)
        samples.append(time.process_time() - start)
    return statistics.median(samples)


def measure(name, budget, offload):
    """One process: seconds of primal and gradient, and bytes."""
    import nbgrad as nb

    program, at = PROGRAMS[name]
    options = {} if budget == "none" else {"memory": budget, "offload": offload}
    primal = nb.jit(lambda x: program(nb, x))
    gradient = nb.jit(nb.grad(lambda x: program(nb, x)), **options)
    primal(at)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = gradient(at)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    found = {"primal": seconds(primal, at), "gradient": seconds(gradient, at), "MB": grown}
    (planned,) = gradient.programs()
    schedules = [str(one) for one in planned.schedules]
    return found | {"planned": planned.plan.arena_bytes, "sum": float(np.sum(result)), "schedules": schedules}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", nargs="+", default=[*PROGRAMS])
    parser.add_argument("--budgets", nargs="+")
    parser.add_argument("--offload", metavar="FOLDER")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if options.worker:
        name, budget = options.worker
        print(json.dumps(measure(name, budget, options.offload)))
        return
    print("| program | budget | primal, ms | gradient, ms | to the primal | to no budget | planned, MB | grown, MB |")
    print("|---|---|---|---|---|---|---|---|")
    for name in options.programs:
        free = None
        for budget in options.budgets or BUDGETS[name]:
            command = [sys.executable, str(HERE / "loops_in_memory.py"), "--worker", name, budget]
            command += ["--offload", options.offload] if options.offload else []
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                sys.exit(f"{name} failed with {budget}:\n{done.stderr[-2000:]}")
            found = json.loads(done.stdout.splitlines()[-1])
            free = free or found
            if not np.isclose(found["sum"], free["sum"], rtol=1e-8):
                sys.exit(f"{name} differs with {budget}")
            times = f"{found['primal'] * 1e3:.2f} | {found['gradient'] * 1e3:.2f}"
            ratios = f"{found['gradient'] / found['primal']:.2f} | {found['gradient'] / free['gradient']:.2f}"
            print(
                f"| {name} | {budget} | {times} | {ratios} | {found['planned'] / 1e6:.3f} | {found['MB']:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
