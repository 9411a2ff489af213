"""Gradients of Numba kernels by `nb.kernel`: what they cost beside the kernels, and beside other libraries.

    python kernels_beside.py [--python LIBRARY=PYTHON ...] [--kernels NAME ...] [--libraries NAME ...]
        [--budget SECONDS]

In: an interpreter for each library that is not installed beside nbgrad. Out: two tables of processor times, one process
each, on one CPU: the kernel, its gradient, their ratio, and the ratio of the times to compile them with an empty cache;
then values and gradients of three kernels with each library that is there. The gradients are compared.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
NAMES = {"nbgrad": "nbgrad (Numba kernel)", "jax": "JAX", "torch": "PyTorch", "warp": "Warp"}


def measured(library, name, budget, folder):
    """In one process: the times of the kernel and of its gradient, and to compile them; a peer's arguments and results
    are in the folder."""
    place = Path(folder)
    from benchmarks.measured import least

    if library == "nbgrad":
        from benchmarks import kernels

        times = kernels.compile_times(name)
        row = kernels.program(name)
        primal, gradient = kernels.prepare(row)
        found = gradient()
        found = found if isinstance(found, tuple) else (found,)
        np.savez(place / "arguments.npz", *row.arguments)
        np.savez(place / "nbgrad.npz", *found)
        size = 1 if name == "lennard-jones" else len(row.arguments[0])
        (place / "row.json").write_text(json.dumps({"wrt": row.wrt, "weights": [size]}))
    else:
        from types import SimpleNamespace

        from kernel_peers import PEERS

        given = np.load(place / "arguments.npz")
        arguments = [x if x.shape else float(x) for x in given.values()]
        row = json.loads((place / "row.json").read_text())
        weights = 1.0 + 0.5 * np.sin(np.arange(math.prod(row["weights"]), dtype=float))
        times = None
        primal, gradient = PEERS[library](name, SimpleNamespace(arguments=arguments, wrt=tuple(row["wrt"])), weights)
        np.savez(place / f"{library}.npz", *gradient())
    return {"primal": least(primal, budget), "gradient": least(gradient, budget), "compile": times}


def in_process(library, name, options, folder):
    """`measured` in a fresh process."""
    python = options.pythons.get(library, sys.executable)
    command = [python, str(HERE / "kernels_beside.py"), "--worker", library, name, folder]
    command += ["--budget", str(options.budget)]
    env = {**os.environ, "NUMBA_NUM_THREADS": "1", "NBGRAD_CACHE_DIR": os.path.join(folder, "cache")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        said = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no message"
        if library != "nbgrad" and "ModuleNotFoundError" in said:
            return None
        sys.exit(f"{library} failed on {name}:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def compare(library, name, folder):
    """Stop where a peer's gradients are not nbgrad's."""
    mine, theirs = (np.load(Path(folder) / f"{one}.npz") for one in ("nbgrad", library))
    for a, b in zip(mine.values(), theirs.values(), strict=True):
        apart = np.max(np.abs(a - b)) / np.max(np.abs(a))
        if not apart < 1e-8:
            sys.exit(f"{name}: {library} and nbgrad differ by {apart:.1e}")


def shown(seconds):
    """Microseconds with two or three digits."""
    return f"{seconds * 1e6:,.0f}" if seconds > 1e-5 else f"{seconds * 1e6:.1f}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="append", default=[], metavar="LIBRARY=PYTHON")
    parser.add_argument("--kernels", nargs="+")
    parser.add_argument("--libraries", nargs="+", default=list(NAMES))
    parser.add_argument("--budget", type=float, default=1.0, help="seconds for each timing")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if options.worker:
        library, name, folder = options.worker
        print(json.dumps(measured(library, name, options.budget, folder)))
        return
    options.pythons = dict(pair.split("=", 1) for pair in options.python)
    from benchmarks.kernel_programs import KERNELS, program
    from kernel_peers import PROGRAMS

    print("| kernel | kernel, us | gradient, us | gradient / kernel | compile: gradient / kernel |")
    print("|---|---|---|---|---|")
    beside = []
    for name in options.kernels or KERNELS:
        with tempfile.TemporaryDirectory() as folder:
            mine = in_process("nbgrad", name, options, folder)
            ratios = mine["gradient"] / mine["primal"], mine["compile"][1] / mine["compile"][0]
            columns = [program(name).text, shown(mine["primal"]), shown(mine["gradient"])]
            print("|", " | ".join([*columns, *(f"{ratio:.1f}" for ratio in ratios)]), "|", flush=True)
            for library in options.libraries:
                theirs = mine
                if library != "nbgrad":
                    if name not in PROGRAMS[library]:
                        continue
                    theirs = in_process(library, name, options, folder)
                    if theirs is None:
                        continue
                    compare(library, name, folder)
                elif not any(name in programs for programs in PROGRAMS.values()):
                    continue
                times = [theirs["primal"], theirs["gradient"]]
                relative = theirs["gradient"] / mine["gradient"]
                columns = [program(name).text, NAMES[library], *map(shown, times)]
                beside.append([*columns, f"{times[1] / times[0]:.1f}", f"{relative:.1f}"])
    print("\n| kernel | library | value, us | gradient, us | gradient / value | gradient / nbgrad's |")
    print("|---|---|---|---|---|---|")
    for columns in beside:
        print("|", " | ".join(columns), "|")


if __name__ == "__main__":
    main()
