"""Compilation: a new gradient in a warm process, long chains, and what needs no compilation at all."""

import contextlib
import os
import tempfile
import time

import numpy as np

import nbgrad as nb

from . import tasks
from .libraries import LIBRARIES
from .measured import needed
from .tasks import Task


@contextlib.contextmanager
def empty_cache():
    """A cache folder of its own, empty at first."""
    before = os.environ.get("NBGRAD_CACHE_DIR")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NBGRAD_CACHE_DIR"] = folder
        try:
            yield
        finally:
            del os.environ["NBGRAD_CACHE_DIR"]
            if before is not None:
                os.environ["NBGRAD_CACHE_DIR"] = before


def seconds_to_compile(library, function, inputs):
    """Seconds of the first call of a gradient with respect to all inputs."""
    task = Task("", function, lambda rng: inputs, tuple(range(len(inputs))), "grad")
    start = time.perf_counter()
    library.prepare(task)[0]()
    return time.perf_counter() - start


class NewGradients:
    """Gradients that were never seen; the scalar operations in them were."""

    params = ("nbgrad", "jax")
    param_names = ("library",)
    timeout = 300

    def setup(self, library):
        needed(library)
        self.library = LIBRARIES[library]()

    def track_twelve_operations(self, library):
        inputs = tasks.pair(100)
        with empty_cache():
            samples = [
                seconds_to_compile(self.library, lambda xp, x, y, v=variant: tasks.twelve(xp, v, x, y), inputs)
                for variant in (0, 1, 6, 2, 3, 4, 5, 7)
            ]
        return float(np.median(samples[3:]))  # the first three hold all operations

    def track_chain_of_2000(self, library):
        inputs = tasks.pair(1000)
        with empty_cache():
            seconds_to_compile(self.library, lambda xp, x, y: tasks.chain(xp, 8, x, y), inputs)
            return seconds_to_compile(self.library, lambda xp, x, y: tasks.chain(xp, 2000, x, y), inputs)

    track_twelve_operations.unit = track_chain_of_2000.unit = "s"


class NewSizes:
    """Another length of an array records anew, and compiles nothing."""

    def setup(self):
        self.function = nb.jit(nb.value_and_grad(lambda x: tasks.rosenbrock(np, x)))
        self.function(np.linspace(0.0, 1.0, 10))

    def track_kernels_compiled(self):
        before = nb.counters["compiled"]
        for n in (11, 50, 1000):
            self.function(np.linspace(0.0, 1.0, n))
        return nb.counters["compiled"] - before

    track_kernels_compiled.unit = "kernels"
