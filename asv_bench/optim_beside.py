"""Minimisers and descents of `nb.optim`, beside SciPy, and beside jaxopt and optax where they are.

    python optim_beside.py [--budget SECONDS] [--python INTERPRETER]

In: an interpreter with jaxopt and optax, if it is not this one. Out: a table: for each problem, medians of the times of
a whole run in one process, the number of evaluations, the lowest value, and the ratio to SciPy's time. SciPy gets
compiled values and gradients by nbgrad (`nb.jit(nb.value_and_grad(f))`), not plain Python.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

TIMES = np.linspace(0.0, 4.0, 200)
START = np.array([1.0, 0.1, 0.0, 1.0])
NEAR = np.array([4.0, 0.5, 0.0, 1.0])
"""A start from which Gauss-Newton steps converge too."""
DATA = 5.0 * np.exp(-0.7 * TIMES) + 0.5 * np.cos(2.0 * TIMES)
POINTS = np.random.default_rng(0).normal(size=(500, 50))
LABELS = np.sign(POINTS @ np.linspace(-1.0, 1.0, 50) + 0.1)
STEPS = 1000
LIMITS = {"gtol": 1e-6, "maxiter": 10_000}


def rosenbrock(x, np=np):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def logistic(w, np=np):
    return np.mean(np.log1p(np.exp(-LABELS * (POINTS @ w)))) + 1e-3 * np.sum(w**2)


def misfit(p, np=np):
    return p[0] * np.exp(-p[1] * TIMES) + p[2] + p[3] * np.cos(2.0 * TIMES) - DATA


def median(call, budget):
    """The median of the times of calls that take so long together, of at least three; and the last result."""
    found = call()
    times, end = [], time.perf_counter() + budget
    while len(times) < 3 or time.perf_counter() < end:
        begin = time.perf_counter()
        found = call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times), found


def with_nbgrad_and_scipy(budget):
    """Rows of nbgrad and SciPy: problem, library, seconds, evaluations, lowest value."""
    from scipy.optimize import least_squares, minimize

    import nbgrad as nb

    for name, f, start in (
        ("rosenbrock 10", rosenbrock, np.zeros(10)),
        ("rosenbrock 1000", rosenbrock, np.zeros(1000)),
        ("logistic", logistic, np.zeros(50)),
    ):
        both = nb.jit(nb.value_and_grad(f))
        product = nb.jit(lambda x, v, f=f: nb.hvp(f, x, v))
        for label, call in (
            ("nbgrad lbfgs", lambda f=f, s=start: nb.optim.lbfgs(f, s, **LIMITS)),
            (
                "SciPy L-BFGS-B",
                lambda g=both, s=start: minimize(
                    g, s, jac=True, method="L-BFGS-B", options={**LIMITS, "maxfun": 40_000, "ftol": 1e-13}
                ),
            ),
            ("nbgrad newton_cg", lambda f=f, s=start: nb.optim.newton_cg(f, s, **LIMITS)),
            (
                "SciPy trust-ncg",
                lambda g=both, h=product, s=start: minimize(
                    g, s, jac=True, hessp=h, method="trust-ncg", options=LIMITS
                ),
            ),
        ):
            seconds, found = median(call, budget)
            yield name, label, seconds, int(found.nfev), float(found.fun)
    slope = nb.jit(nb.jacfwd(misfit))
    residuals = nb.jit(misfit)
    for label, call in (
        ("nbgrad levenberg_marquardt", lambda: nb.optim.levenberg_marquardt(misfit, START)),
        ("nbgrad gauss_newton, near", lambda: nb.optim.gauss_newton(misfit, NEAR)),
        (
            "SciPy least_squares lm",
            lambda: least_squares(residuals, START, jac=slope, method="lm", xtol=1e-12, ftol=1e-14, gtol=1e-12),
        ),
    ):
        seconds, found = median(call, budget)
        yield "exponential", label, seconds, int(found.nfev), float(found.cost)
    method = nb.optim.adam(0.05)
    gradient = nb.grad(logistic)

    def step(carry, _):
        params, state = carry
        updates, state = method.update(gradient(params), state)
        return (nb.optim.apply_updates(params, updates), state), None

    run = nb.jit(lambda w: nb.scan(step, (w, method.init(w)), length=STEPS)[0][0])
    seconds, found = median(lambda: run(np.zeros(50)), budget)
    yield "descent", "nbgrad adam", seconds, STEPS, float(logistic(found))


def with_jax(budget):
    """Rows of jaxopt and optax."""
    import jax
    import jax.numpy as jnp
    import jaxopt
    import optax

    jax.config.update("jax_enable_x64", True)
    for name, f, start in (
        ("rosenbrock 10", rosenbrock, jnp.zeros(10)),
        ("rosenbrock 1000", rosenbrock, jnp.zeros(1000)),
        ("logistic", logistic, jnp.zeros(50)),
    ):
        solver = jaxopt.LBFGS(lambda x, f=f: f(x, jnp), maxiter=10_000, tol=1e-6, linesearch="zoom")
        run = jax.jit(solver.run)
        seconds, found = median(lambda r=run, s=start: jax.block_until_ready(r(s)), budget)
        yield name, "jaxopt LBFGS", seconds, int(found.state.num_fun_eval), float(found.state.value)
    solver = jaxopt.LevenbergMarquardt(lambda p: misfit(p, jnp), maxiter=500, tol=1e-12)
    run = jax.jit(solver.run)
    seconds, found = median(lambda: jax.block_until_ready(run(jnp.array(START))), budget)
    yield "exponential", "jaxopt LevenbergMarquardt", seconds, int(found.state.iter_num), float(found.state.value)
    method = optax.adam(0.05)
    gradient = jax.grad(lambda w: logistic(w, jnp))

    def step(carry, _):
        params, state = carry
        updates, state = method.update(gradient(params), state)
        return (optax.apply_updates(params, updates), state), None

    descend = jax.jit(lambda w: jax.lax.scan(step, (w, method.init(w)), length=STEPS)[0][0])
    seconds, found = median(lambda: jax.block_until_ready(descend(jnp.zeros(50))), budget)
    yield "descent", "optax adam", seconds, STEPS, float(logistic(np.asarray(found)))


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=float, default=1.0, help="seconds for each row")
    parser.add_argument("--python", help="an interpreter with jaxopt and optax")
    parser.add_argument("--jax", action="store_true", help="print the rows of jaxopt and optax as JSON")
    options = parser.parse_args()
    if options.jax:
        print(json.dumps(list(with_jax(options.budget))))
        return
    rows = list(with_nbgrad_and_scipy(options.budget))
    peer = [options.python or sys.executable, str(Path(__file__).resolve()), "--jax", f"--budget={options.budget}"]
    done = subprocess.run(peer, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        rows += json.loads(done.stdout.splitlines()[-1])
    else:
        print("without jaxopt and optax:", done.stderr.strip().splitlines()[-1:])
    scipy = {}
    for name, label, seconds, _, _ in rows:
        if label.startswith("SciPy"):
            scipy.setdefault(name, seconds)
    print(f"{'problem':16s} {'method':27s} {'ms':>9s} {'evaluations':>12s} {'lowest':>12s} {'of SciPy':>9s}")
    for name, label, seconds, count, lowest in sorted(rows, key=lambda row: row[0]):
        ratio = f"{seconds / scipy[name]:9.2f}" if name in scipy else ""
        print(f"{name:16s} {label:27s} {1e3 * seconds:9.3f} {count:12d} {lowest:12.4g} {ratio}")


if __name__ == "__main__":
    main()
