"""nbgrad beside JAX: the same work, in one run, in turns; medians and ratios.

    python ratios.py [--jax-python PYTHON] [--rounds N] [--readme FILE]

In: two interpreters, one with nbgrad and one with JAX (by default both this one). Out: a table, and with --readme the
same table between the markers of a README. Each measurement runs in a process of its own; the two libraries take turns.
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

HERE = Path(__file__).resolve().parent
MEASUREMENTS = {
    "call": ("value and gradient of Rosenbrock, 10 float64, ndarrays in and out", "us", 1e6),
    "compile": ("compile a new gradient of 12 elementwise operations and a sum, warm process", "ms", 1e3),
    "chain": ("compile the gradient of a chain of 2000 operations", "s", 1.0),
    "fused": ("value and gradients of sum(log(exp(x*y) + sin(x)**2 + 1)), 1e6 float64, 2 threads", "ms", 1e3),
    "start": ("fresh process, warm disk cache: import and first gradient", "ms", 1e3),
}


def worker(library: str, what: str) -> float:
    """One measurement, in seconds, in this process."""
    start = time.perf_counter()
    import numpy as np

    sys.path.insert(0, str(HERE / "benchmarks"))
    import tasks

    if library == "jax":
        import jax
        import jax.numpy as xp

        jax.config.update("jax_enable_x64", True)
        if os.environ.get("RATIOS_CACHE"):
            jax.config.update("jax_compilation_cache_dir", os.environ["RATIOS_CACHE"])
            jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
            jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

        def compiled(function, positions=0, value=False):
            transform = jax.value_and_grad if value else jax.grad
            inner = jax.jit(transform(function, positions))
            return lambda *a: jax.block_until_ready(inner(*a))
    else:
        import nbgrad as nb

        xp = np

        def compiled(function, positions=0, value=False):
            return nb.jit((nb.value_and_grad if value else nb.grad)(function, positions))

    def repeat(function, count):
        before = time.perf_counter()
        for _ in range(count):
            function()
        return (time.perf_counter() - before) / count

    if what == "start":
        compiled(lambda x: xp.sum(xp.sin(x) * x))(np.ones(3))
        return time.perf_counter() - start
    if what == "call":
        function, x = compiled(tasks.rosenbrock(xp), 0, True), np.linspace(0.0, 1.0, 10)
        function(x)
        return statistics.median(repeat(lambda: [np.asarray(v) for v in function(x)], 2000) for _ in range(7))
    if what == "fused":
        function, inputs = compiled(tasks.fused(xp), (0, 1), True), tasks.pair(1_000_000)
        if library == "jax":
            inputs = [xp.asarray(v) for v in inputs]
        function(*inputs)
        return statistics.median(repeat(lambda: function(*inputs), 3) for _ in range(15))
    x, y = tasks.pair(100 if what == "compile" else 1000)
    if what == "compile":
        for variant in (0, 1):
            compiled(tasks.twelve(xp, variant), (0, 1))(x, y)
        samples = []
        for variant in range(2, 8):
            function = compiled(tasks.twelve(xp, variant), (0, 1))
            samples.append(repeat(lambda function=function: function(x, y), 1))
        return statistics.median(samples)
    compiled(tasks.chain(xp, 8))(x, y)
    return repeat(lambda: compiled(tasks.chain(xp, 2000))(x, y), 1)


def measure(python: str, library: str, what: str, cache: str) -> float:
    """A worker's measurement. Compilation starts from an empty object cache, the rest from a warm one."""
    # Both libraries may use compiled bytecode, as in any normal installation.
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    env |= {"NBGRAD_CACHE_DIR": cache, "RATIOS_CACHE": "" if what in ("compile", "chain") else cache}
    if what in ("compile", "chain"):
        for entry in Path(cache).glob("object-*"):
            entry.unlink()
    command = [python, str(HERE / "ratios.py"), "--worker", library, what]
    run = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if run.returncode:
        raise SystemExit(f"{library} {what} failed:\n{run.stderr[-2000:]}")
    return json.loads(run.stdout.splitlines()[-1])


def main() -> None:
    """Run all measurements in turns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax-python", default=sys.executable, help="an interpreter that has JAX")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*", default=list(MEASUREMENTS))
    parser.add_argument("--readme", help="a file with the markers <!-- benchmarks --> and <!-- /benchmarks -->")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        print(json.dumps(worker(*options.worker)))
        return
    rows = []
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        for what in options.only:
            text, unit, factor = MEASUREMENTS[what]
            samples = {"nbgrad": [], "jax": []}
            for turn in range(options.rounds + 1):
                for library, python, cache in (("nbgrad", sys.executable, ours), ("jax", options.jax_python, theirs)):
                    value = measure(python, library, what, cache)
                    if turn:
                        samples[library].append(value)
            a, b = (statistics.median(samples[library]) for library in ("nbgrad", "jax"))
            rows.append(f"| {text} | {a * factor:.3g} {unit} | {b * factor:.3g} {unit} | {b / a:.1f} |")
            print(rows[-1], flush=True)
    table = "\n".join(["| task | nbgrad | JAX | JAX / nbgrad |", "| --- | --- | --- | --- |", *rows])
    print("\n" + table)
    if options.readme:
        path = Path(options.readme)
        before, rest = path.read_text().split("<!-- benchmarks -->")
        after = rest.split("<!-- /benchmarks -->")[1]
        path.write_text(f"{before}<!-- benchmarks -->\n{table}\n<!-- /benchmarks -->{after}")


if __name__ == "__main__":
    main()
