"""Compilation: a new gradient in a warm process, long chains, and what needs no compilation at all."""

import os
import tempfile
import time

import numpy as np

import nbgrad as nb

from . import tasks


class NewGradients:
    """Seconds to compile gradients that were never seen, with an empty cache but warm scalar kernels."""

    unit = "s"
    timeout = 300

    def track_new_gradient(self):
        x, y = tasks.pair(100)
        with tempfile.TemporaryDirectory() as folder:
            os.environ["NBGRAD_CACHE_DIR"] = folder
            try:
                nb.jit(nb.grad(lambda x, y: tasks.twelve(np, 0)(x, y) + tasks.twelve(np, 1)(x, y), (0, 1)))(x, y)
                samples = []
                for variant in range(2, 8):
                    start = time.perf_counter()
                    nb.jit(nb.grad(tasks.twelve(np, variant), (0, 1)))(x, y)
                    samples.append(time.perf_counter() - start)
            finally:
                del os.environ["NBGRAD_CACHE_DIR"]
        return float(np.median(samples))

    def track_chain_2000(self):
        x, y = tasks.pair(1000)
        with tempfile.TemporaryDirectory() as folder:
            os.environ["NBGRAD_CACHE_DIR"] = folder
            try:
                nb.jit(nb.grad(tasks.chain(np, 8)))(x, y)
                start = time.perf_counter()
                nb.jit(nb.grad(tasks.chain(np, 2000)))(x, y)
                return time.perf_counter() - start
            finally:
                del os.environ["NBGRAD_CACHE_DIR"]

    def track_kernels_compiled_for_new_lengths(self):
        function = nb.jit(nb.value_and_grad(tasks.rosenbrock(np)))
        function(np.linspace(0.0, 1.0, 10))
        before = nb.counters["compiled"]
        for n in (11, 50, 1000):
            function(np.linspace(0.0, 1.0, n))
        return nb.counters["compiled"] - before

    track_kernels_compiled_for_new_lengths.unit = "kernels"
