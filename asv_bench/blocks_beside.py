"""The gradient of a sum over data on disk, block by block, beside that of the whole array in memory.

In: nothing. Out: seconds (the least of three) and the memory of arrays (RssAnon) that each way adds, printed. Called by
hand: `python blocks_beside.py --rows 400000`; Zarr and dask are measured where they are installed. Each way runs in a
process of its own, after a gradient of a few rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import nbgrad as nb

WIDTH = 200


def loss(w: Any, x: Any) -> Any:
    """Of rows, the last column of which is the label."""
    return np.sum(np.log1p(np.exp(-x[:, -1] * (x[:, :-1] @ w))))


def memory() -> float:
    """Megabytes of this process that are no pages of files."""
    return int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0]) / 1024


def measured(way: str, folder: Path) -> tuple[float, float]:
    """Seconds and megabytes of one way."""
    w = np.full(WIDTH - 1, 1e-3)
    gradient = nb.jit(nb.value_and_grad(loss))
    gradient(w, np.ones((64, WIDTH)))
    stored: Any = np.load(folder / "x.npy", mmap_mode="r")
    if way == "zarr":
        import zarr

        stored = zarr.open_array(folder / "x.zarr", mode="r")
    elif way == "dask":
        import dask.array

        chunks: Any = (20_000, WIDTH)
        stored = dask.array.from_array(stored, chunks=chunks)

    def call() -> Any:
        if way == "whole":
            return gradient(w, np.load(folder / "x.npy"))
        return nb.map_reduce(gradient, nb.blocks(stored), w)

    highest, done = 0.0, threading.Event()

    def watch() -> None:
        nonlocal highest
        while not done.wait(0.002):
            highest = max(highest, memory())

    before = memory()
    threading.Thread(target=watch).start()
    times = []
    for _ in range(3):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    done.set()
    return min(times), highest - before


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--way", nargs=2)
    asked = parser.parse_args()
    if asked.way:
        print(json.dumps(measured(asked.way[0], Path(asked.way[1]))))
        sys.exit()
    with tempfile.TemporaryDirectory() as name:
        array = np.lib.format.open_memmap(f"{name}/x.npy", "w+", np.float64, (asked.rows, WIDTH))
        for low in range(0, asked.rows, 20_000):
            array[low : low + 20_000] = np.random.default_rng(low).normal(size=array[low : low + 20_000].shape)
        ways = ["whole", "mapped", "dask"]
        try:
            import zarr
        except ImportError:
            pass
        else:
            zarr.create_array(store=f"{name}/x.zarr", data=array, chunks=(20_000, WIDTH))
            ways.append("zarr")
        print(f"{array.nbytes >> 20} MB")
        for way in ways:
            done = subprocess.run([sys.executable, __file__, "--way", way, name], capture_output=True, text=True)
            print(
                way, *([f"{x:.3g}" for x in json.loads(done.stdout)] if not done.returncode else [done.stderr[-300:]])
            )
