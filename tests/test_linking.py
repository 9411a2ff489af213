"""Native code in processes with very much memory: compiled functions reach their constants wherever arrays lie."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import mmap
import numpy as np, nbgrad as nb

x = np.linspace(0.1, 1.0, 100)
kept = []
functions = [np.sin, np.exp, np.tanh, np.cos, np.log1p, np.sqrt, np.arctan, np.sinh, np.cosh, np.expm1]
flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0x4000)
for k, f in enumerate(functions):
    # Three gigabytes of address space, none of which is used, and a small block in which constants would fit.
    kept.append(mmap.mmap(-1, 3 << 30, flags=flags))
    kept.append(mmap.mmap(-1, 1 << 14, flags=flags))
    g = functions[(7 * k + 3) % 10]
    value, slope = nb.jit(nb.value_and_grad(lambda x: np.sum(f(g(x)) * (k + 0.5) - x**k)))(x)
    step = 1e-6
    def total(x):
        return np.sum(f(g(x)) * (k + 0.5) - x**k)
    expected = (total(x + step) - total(x - step)) / (2 * step)
    assert abs(slope.sum() - expected) < 1e-6 * abs(expected) + 1e-6, (k, slope.sum(), expected)
print("done")
"""


def test_code_and_constants_stay_together_between_huge_arrays(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "NBGRAD_CACHE_DIR": str(tmp_path)},
    )
    assert done.stdout.strip() == "done", done.stderr[-2000:]
