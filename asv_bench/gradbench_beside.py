"""nbgrad's derivatives of NumPy functions beside the hand-written C++ of GradBench.

    python gradbench_beside.py CHECKOUT [--programs NAME ...] [--seconds S]

In: a checkout of github.com/gradbench/gradbench in which `make -C cpp` and `make -C tools/manual all` were run; its
data of bundle adjustment and of hands. Out: a table with the least wall time of a call of each, on one CPU and in
turns, their ratio, and the processor time of nbgrad's first call with whatever its cache holds (NBGRAD_CACHE_DIR of an
empty folder for the very first). The derivatives are compared, which ends the run where they differ. The gradient
of `ode` is left out: by hand it is a closed formula.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.environ |= dict.fromkeys(["NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"], "1")

import gradbench_programs as programs
import numpy as np

RNG = np.random.default_rng(0)
ROUNDS = 3


def by_hand(options, module, function, data):
    """The result of the C++ program, and its least time of a call, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "input.json"
        path.write_text(json.dumps(data | {"min_runs": 3, "min_seconds": options.seconds}))
        command = [str(options.checkout / "tools/manual/bin" / module), str(path), function]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    times = [json.loads(line) for line in lines[1:]]
    return json.loads(lines[0]), min(t["nanoseconds"] for t in times if t["name"] == "evaluate") * 1e-9


def by_nbgrad(options, call, arguments):
    """The result of a call, and the least time of one, in seconds."""
    least, found, end = math.inf, None, time.perf_counter() + options.seconds
    while time.perf_counter() < end or found is None:
        begin = time.perf_counter()
        found = call(*arguments)
        least = min(least, time.perf_counter() - begin)
    return found, least


def kmeans(options):
    for k, n, d in [(10, 1000, 8), (100, 1000, 8), (100, 10_000, 16), (1000, 10_000, 16)]:
        points = RNG.random((n, d))
        centroids = points[-k:].copy()
        data = {"points": points.tolist(), "centroids": centroids.tolist()}
        yield f"{k} of {n}, {d}-D", "dir", data, programs.kmeans_direction, (centroids, points), np.array


def ba(options):
    for path in sorted((options.checkout / "evals/ba/data").glob("ba[15]_*.txt")):
        sizes, camera, point, weight, feature = path.read_text().splitlines()[:5]
        n, m, p = map(int, sizes.split())
        camera, point, feature = (list(map(float, line.split())) for line in (camera, point, feature))
        observed = np.stack([np.arange(p) % n, np.arange(p) % m], axis=1)
        call = programs.bundle_jacobian(observed, np.tile(feature, (p, 1)))
        arguments = np.tile(camera, (n, 1)), np.tile(point, (m, 1)), np.full(p, float(weight))
        data = {"n": n, "m": m, "p": p, "cam": camera, "x": point, "w": float(weight), "feat": feature}

        def expected(found, n=n, m=m, p=p):
            """The first two rows and the last one, as they are written out."""
            dense = np.zeros((3, 11 * n + 3 * m + p))
            for row in range(2):
                dense[row, found["cols"][15 * row : 15 * row + 15]] = found["vals"][15 * row : 15 * row + 15]
            dense[2, -1] = found["vals"][-1]
            return dense

        yield f"{n} cameras, {p} observations", "jacobian", data, call, arguments, expected


def ht(options):
    for variant, number in [("small", 1), ("small", 6), ("small", 9)]:
        folder = options.checkout / f"evals/ht/data/complicated_{variant}"
        lines = [line.split() for line in next(folder.glob(f"hand{number}_*.txt")).read_text().splitlines()]
        count = int(lines[0][0])
        near = np.array([int(line[0]) for line in lines[1 : count + 1]])
        points, us = (np.array(lines[a : a + count], float) for a in (1, 1 + count))
        theta = np.array(lines[1 + 2 * count :], float).ravel()
        model = hand_model(folder / "model")
        corners = model["triangles"][near]
        written = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in model.items()}
        data = {"theta": theta.tolist(), "us": us.tolist()}
        data["data"] = {"correspondences": near.tolist(), "points": points[:, 1:].tolist(), "model": written}
        call = programs.hand_jacobian(model, points[:, 1:], corners)
        yield f"{count} points", "jacobian", data, call, (theta, us), np.array


def hand_model(folder):
    """The model of a hand: bones with their parents and transforms, vertices with their weights, triangles."""
    bones = [line.split(":") for line in (folder / "bones.txt").read_text().splitlines()]
    transforms = np.array([bone[2:34] for bone in bones], float).reshape(-1, 2, 4, 4)
    positions, weights = [], []
    for line in (folder / "vertices.txt").read_text().splitlines():
        parts = line.split(":")
        positions.append([*map(float, parts[:3]), 1.0])
        weights.append(np.zeros(len(bones)))
        for k in range(int(parts[8])):
            weights[-1][int(parts[9 + 2 * k])] = float(parts[10 + 2 * k])
    return {
        "bone_names": [bone[0] for bone in bones],
        "parents": [int(bone[1]) for bone in bones],
        "base_relatives": transforms[:, 0],
        "inverse_base_absolutes": transforms[:, 1],
        "base_positions": np.array(positions),
        "weights": np.array(weights),
        "triangles": np.loadtxt(folder / "triangles.txt", int, delimiter=":"),
        "is_mirrored": False,
    }


def gmm(options):
    for d, k, n in [(2, 5, 1000), (10, 25, 1000), (20, 50, 1000), (10, 50, 10_000)]:
        parts = {"alpha": RNG.normal(size=k), "mu": RNG.random((k, d)), "q": RNG.normal(size=(k, d))}
        parts |= {"l": RNG.normal(size=(k, d * (d - 1) // 2)), "x": RNG.normal(size=(n, d))}
        data = {name: value.tolist() for name, value in parts.items()}
        data |= {"d": d, "k": k, "n": n, "gamma": 1.0, "m": 0}
        arguments = (*parts.values(), 1.0, 0, 0.0)

        def expected(found):
            return [np.array(found[name]) for name in ("alpha", "mu", "q", "l")]

        yield f"{d}-D, {k} of {n}", "jacobian", data, programs.mixture_gradient, arguments, expected


def lstm(options):
    for layers, steps, b in [(2, 1024, 14), (4, 1024, 14), (2, 4096, 14)]:
        main, extra, state = (RNG.random(shape) for shape in [(2 * layers, 4 * b), (3, b), (2 * layers, b)])
        sequence = RNG.integers(0, 2, (steps, b)).astype(float)
        names = "main_params extra_params state sequence".split()
        data = {name: value.tolist() for name, value in zip(names, (main, extra, state, sequence), strict=True)}

        def expected(found, main=main, extra=extra):
            flat = np.array(found)
            return [flat[: main.size].reshape(main.shape), flat[main.size :].reshape(extra.shape)]

        arguments = main, extra, state, sequence
        yield f"{layers} layers, {steps} steps", "jacobian", data, programs.recurrent_gradient, arguments, expected


def llsq(options):
    for n in (1024, 16_392):
        x = RNG.random(128)
        yield f"{n} by 128", "gradient", {"x": x.tolist(), "n": n}, programs.least_squares_gradient(n), (x,), np.array


def lse(options):
    for n in (2500, 80_000, 1_280_000):
        x = RNG.random(n)
        yield f"{n}", "gradient", {"x": x.tolist()}, programs.logsumexp_gradient, (x,), np.array


def det(options):
    for n in (5, 6):
        a = RNG.random((n, n))
        data = {"A": a.ravel().tolist(), "ell": n}
        yield f"{n} by {n}", "gradient", data, programs.determinant_gradient, (a,), lambda f, n=n: np.reshape(f, (n, n))


PROGRAMS: dict[str, Any] = {f.__name__: f for f in (kmeans, ba, ht, gmm, lstm, llsq, lse, det)}


def same(found, expected):
    """Whether derivatives agree to rounding."""
    if isinstance(expected, list):
        return all(same(one, other) for one, other in zip(found, expected, strict=True))
    if hasattr(found, "tocsr"):
        found = found.tocsr()[[0, 1, -1]].toarray()
    found = np.asarray(found).reshape(np.shape(expected))
    return np.allclose(found, expected, rtol=1e-7, atol=1e-9 * max(1.0, float(np.abs(expected).max())))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--programs", nargs="+", default=list(PROGRAMS), choices=list(PROGRAMS))
    parser.add_argument("--seconds", type=float, default=0.5, help="for each of three timings of each")
    options = parser.parse_args()
    print(
        "| program | input | C++ by hand, ms | nbgrad, ms | nbgrad / C++ | first call, s |\n|---|---|---|---|---|---|"
    )
    for name in options.programs:
        for title, function, data, call, arguments, expected in PROGRAMS[name](options):
            begin = time.process_time()
            call(*arguments)
            first = time.process_time() - begin
            theirs = ours = math.inf
            for _ in range(ROUNDS):
                known, seconds = by_hand(options, name, function, data)
                theirs = min(theirs, seconds)
                found, seconds = by_nbgrad(options, call, arguments)
                ours = min(ours, seconds)
                if not same(found, expected(known)):
                    sys.exit(f"{name}, {title}: the derivatives differ")
            numbers = f"{theirs * 1e3:.3f} | {ours * 1e3:.3f} | {ours / theirs:.2f} | {first:.2f}"
            print(f"| {name} | {title} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
