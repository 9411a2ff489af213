"""Gradients through solvers: nbgrad beside diffrax, jaxopt, optimistix, lineax and jax.experimental.ode.

    python science_beside.py [--python INTERPRETER] [--programs NAME ...] [--rounds N]

In: an interpreter that has JAX and these, if it is not this one. Out: a table of processor times on one CPU: the first
gradient in a fresh process with an empty cache (without imports), the first in a second process, and a later call: both
libraries stay alive and are called in turns, each time with another number, and medians are taken. Values and gradients
are compared. Minimisers and descents alone are in optim_beside.py.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from science_programs import INPUTS, prepared

HERE = Path(__file__).resolve().parent
LIBRARIES = ("nbgrad", "jax")
PEERS = {
    "predators": "diffrax Dopri5",
    "predators, odeint": "jax odeint",
    "robertson": "diffrax Kvaerno5",
    "oscillator": "diffrax Kvaerno5",
    "ridge": "jaxopt LBFGS",
    "logistic": "jaxopt LBFGS",
    "root": "optimistix Newton",
    "fixed point": "optimistix FixedPointIteration",
    "fit": "optimistix LevenbergMarquardt",
    "cg": "lineax CG",
    "gmres": "lineax GMRES",
}
AGREE = {"robertson": 1e-3, "oscillator": 1e-3, "predators": 1e-5, "predators, odeint": 1e-5}
"""How well different methods agree at these tolerances; the others to 1e-6."""


def work(library, name):
    """One process: answer with the first call's seconds and the result, then with a median for each line of input."""
    make, x = prepared(library, name), INPUTS[name]
    start = time.process_time()
    call = make()
    value, gradient = call(x)
    first = time.process_time() - start
    flat = [float(value), *np.asarray(gradient, float).ravel().tolist()]
    print(json.dumps({"first": first, "result": flat}), flush=True)
    count = 0
    for line in sys.stdin:
        samples, spent = [], 0.0
        while len(samples) < 3 or spent < float(line):
            count += 1
            moved = x * (1.0 + 1e-9 * count)  # numbers that were not seen before: nothing can be remembered
            start = time.process_time()
            call(moved)
            samples.append(time.process_time() - start)
            spent += samples[-1]
        print(json.dumps(statistics.median(samples)), flush=True)


class Process:
    """A library at work on a program."""

    def __init__(self, library, name, python, cache):
        command = [python, str(HERE / "science_beside.py"), "--worker", library, name]
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env |= {"NBGRAD_CACHE_DIR": cache, "JAX_COMPILATION_CACHE_DIR": cache, "NUMBA_NUM_THREADS": "1"}
        env |= {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, text=True)

    def answer(self):
        """What it says next."""
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{' '.join(self._process.args[1:])} failed")
        return json.loads(line)

    def ask(self, seconds):
        """The median time of a call, of about so many seconds of calls."""
        print(seconds, file=self._process.stdin, flush=True)
        return self.answer()

    def end(self):
        """Let it end."""
        self._process.stdin.close()
        self._process.wait()


def compare(name, pythons, rounds):
    """Seconds of both libraries: first call, first in a second process, later call."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        alive = {}
        for library in LIBRARIES:
            cache = f"{folder}/{library}"
            once = Process(library, name, pythons[library], cache)
            first = once.answer()
            once.end()
            alive[library] = Process(library, name, pythons[library], cache)
            found[library] = [first["first"], alive[library].answer()["first"], first["result"]]
        samples = {library: [] for library in LIBRARIES}
        for _ in range(rounds):
            for library in LIBRARIES:
                samples[library].append(alive[library].ask(0.3))
        for library in LIBRARIES:
            alive[library].end()
            found[library].append(statistics.median(samples[library]))
    (*_, ours, _), (*_, theirs, _) = found["nbgrad"], found["jax"]
    scale = np.abs(theirs).max()
    if not np.allclose(ours, theirs, rtol=AGREE.get(name, 1e-6), atol=1e-7 * scale):
        sys.exit(f"{name}: results differ by {np.abs(np.subtract(ours, theirs)).max():.2g} of {scale:.2g}")
    return found


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default=sys.executable, help="an interpreter with JAX and its solvers")
    parser.add_argument("--programs", nargs="+", default=[*INPUTS])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if options.worker:
        work(*options.worker)
        return
    pythons = {"nbgrad": sys.executable, "jax": options.python}
    print("| gradient of | peer | first, s: nbgrad | peer | second process, s: nbgrad | peer | ms: nbgrad | peer |")
    print("|---|---|---|---|---|---|---|---|")
    for name in options.programs:
        found = compare(name, pythons, options.rounds)
        (first, again, _, later), (first_peer, again_peer, _, later_peer) = found["nbgrad"], found["jax"]
        cells = [f"{first:.2f} | {first_peer:.2f}", f"{again:.2f} | {again_peer:.2f}"]
        cells.append(f"{later * 1e3:.3g} | {later_peer * 1e3:.3g}")
        print(f"| {name} | {PEERS[name]} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
