"""Gradients through solvers, the same for nbgrad and for JAX's libraries of solvers.

In: the name of a library and of a program. Out: a compiled function that gives a value and its gradient, and the
program's input. Called by science_beside.py. A program is a function of parameters; `SOLVERS` has, for each library,
what solves. Imports are done before a function is made, and are not measured.
"""

import numpy as np

RNG = np.random.default_rng(0)
POINTS, CHECKS = RNG.normal(size=(200, 20)), RNG.normal(size=(100, 20))
TRUTH = RNG.normal(size=20)
LABELS = np.sign(POINTS @ TRUTH + RNG.normal(size=200))
CHECK_LABELS = np.sign(CHECKS @ TRUTH + RNG.normal(size=100))
TARGETS, CHECK_TARGETS = POINTS @ TRUTH + RNG.normal(size=200), CHECKS @ TRUTH + RNG.normal(size=100)
TIMES = np.linspace(0.0, 4.0, 100)
MEASURED = 5.0 * np.exp(-0.7 * TIMES) + 0.5 + 0.01 * RNG.normal(size=100)
MATRIX = RNG.normal(size=(50, 50)) / np.sqrt(50)
LOAD = RNG.normal(size=1000)
INPUTS = {
    "predators": np.array([1.1, 0.4, 0.1, 0.4]),
    "predators, odeint": np.array([1.1, 0.4, 0.1, 0.4]),
    "robertson": np.array([0.04, 3e7, 1e4]),
    "oscillator": np.array(100.0),
    "ridge": np.array(0.5),
    "logistic": np.array(0.5),
    "root": np.linspace(0.5, 1.5, 50),
    "fixed point": np.linspace(-1.0, 1.0, 50),
    "fit": MEASURED,
    "cg": np.linspace(1.0, 2.0, 1000),
    "gmres": np.linspace(1.0, 2.0, 1000),
}


# ----- What is solved: the same text for both, `np` being NumPy or jax.numpy -----


def predators(p, y):
    return [p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]]


def robertson(p, y):
    slow, fast, back = p[0] * y[0], p[1] * y[1] ** 2, p[2] * y[1] * y[2]
    return [back - slow, slow - back - fast, fast]


def oscillator(p, y):
    return [y[1], p * (1.0 - y[0] ** 2) * y[1] - y[0]]


def ridge(np, w, rate):
    return np.mean((POINTS @ w - TARGETS) ** 2) + np.exp(-rate) * np.sum(w**2)


def logistic(np, w, rate):
    return np.mean(np.log1p(np.exp(-LABELS * (POINTS @ w)))) + np.exp(-rate) * np.sum(w**2)


def ridge_check(np, w):
    return np.mean((CHECKS @ w - CHECK_TARGETS) ** 2)


def logistic_check(np, w):
    return np.mean(np.log1p(np.exp(-CHECK_LABELS * (CHECKS @ w))))


def broyden(np, x, p):
    """Broyden's tridiagonal function, of 1965, with coefficients as parameters."""
    zero = np.zeros(1)
    return (3.0 - p * x) * x - np.concatenate([zero, x[:-1]]) - 2.0 * np.concatenate([x[1:], zero]) + 1.0


def layer(np, x, p):
    return np.tanh(0.3 * (MATRIX @ x) + p)


def residuals(np, x, data):
    return x[0] * np.exp(-x[1] * TIMES) + x[2] - data


def springs(np, v, k):
    inside = k[1:] * (v[1:] - v[:-1])
    zero = np.zeros(1)
    return v + np.concatenate([zero, inside]) - np.concatenate([inside, zero])


def carried(np, v, k):
    """Diffusion with a stream: no symmetric matrix."""
    return springs(np, v, k) + 0.5 * np.concatenate([v[1:], np.zeros(1)])


DIFFERENTIAL = {
    "predators": (predators, [10.0, 5.0], 20.0, 1e-8, 1e-8),
    "predators, odeint": (predators, [10.0, 5.0], 20.0, 1e-8, 1e-8),
    "robertson": (robertson, [1.0, 0.0, 0.0], 1e4, 1e-6, 1e-10),
    "oscillator": (oscillator, [2.0, 0.0], 60.0, 1e-6, 1e-8),
}
"""The right-hand side, the start, the last time, and the tolerances."""
MINIMISED = {"ridge": (ridge, ridge_check), "logistic": (logistic, logistic_check)}
LINEAR = {"cg": springs, "gmres": carried}


# ----- Who solves it -----


def by_nbgrad(name):
    """The program by SciPy's names, and of nbgrad.optim where it has compiled minimisers."""
    import scipy.integrate
    import scipy.optimize
    import scipy.sparse.linalg  # noqa: F401

    from nbgrad import optim, solvers

    if name == "predators, odeint":
        f, y0, last, rtol, atol = DIFFERENTIAL[name]
        times = np.array([0.0, last])
        return lambda p: np.sum(solvers.odeint(lambda y, t: f(p, y), y0, times, rtol=rtol, atol=atol)[-1])
    if name in DIFFERENTIAL:
        f, y0, last, rtol, atol = DIFFERENTIAL[name]
        more = {"method": "RK45" if name == "predators" else "Radau", "t_eval": [last], "rtol": rtol, "atol": atol}
        return lambda p: np.sum(solvers.solve_ivp(lambda t, y: f(p, y), (0.0, last), y0, **more).y[:, -1])
    if name in MINIMISED:
        f, check = MINIMISED[name]
        return lambda p: check(np, optim.lbfgs(lambda w: f(np, w, p), np.zeros(20), gtol=1e-8).x)
    if name == "root":
        return lambda p: np.sum(solvers.root(lambda x: broyden(np, x, p), -np.ones(50), tol=1e-10).x ** 2)
    if name == "fixed point":
        found = solvers.fixed_point
        return lambda p: np.sum(found(lambda x: layer(np, x, p), np.zeros(50), xtol=1e-10, method="iteration") ** 2)
    if name == "fit":
        found, tight = optim.levenberg_marquardt, {"gtol": 1e-10, "ftol": 1e-10, "xtol": 1e-10}
        return lambda data: np.sum(found(lambda x: residuals(np, x, data), np.ones(3), **tight).x ** 2)
    return lambda k: np.sum(solvers.linear_solve(lambda v: LINEAR[name](np, v, k), LOAD, method=name) ** 2)


def by_jax(name):
    """The program by diffrax, jax.experimental.ode, jaxopt, optimistix or lineax."""
    import diffrax
    import jax
    import jax.numpy as jnp
    import jaxopt
    import lineax
    import optimistix
    from jax.experimental.ode import odeint

    if name == "predators, odeint":
        f, y0, last, rtol, atol = DIFFERENTIAL[name]
        slope = lambda y, t, p: jnp.stack(f(p, y))  # noqa: E731
        times = jnp.array([0.0, last])
        return lambda p: jnp.sum(odeint(slope, jnp.array(y0), times, p, rtol=rtol, atol=atol)[-1])
    if name in DIFFERENTIAL:
        f, y0, last, rtol, atol = DIFFERENTIAL[name]
        term = diffrax.ODETerm(lambda t, y, p: jnp.stack(f(p, y)))
        control = diffrax.PIDController(rtol=rtol, atol=atol)
        solver = diffrax.Dopri5() if name == "predators" else diffrax.Kvaerno5()
        start = {"y0": jnp.array(y0), "stepsize_controller": control}
        return lambda p: jnp.sum(diffrax.diffeqsolve(term, solver, 0.0, last, None, args=p, **start).ys[-1])
    if name in MINIMISED:
        f, check = MINIMISED[name]
        solver = jaxopt.LBFGS(lambda w, p: f(jnp, w, p), tol=1e-8, maxiter=500, implicit_diff=True)
        return lambda p: check(jnp, solver.run(jnp.zeros(20), p).params)
    if name == "root":
        newton = optimistix.Newton(rtol=1e-10, atol=1e-10)
        found = optimistix.root_find
        return lambda p: jnp.sum(found(lambda x, p: broyden(jnp, x, p), newton, -jnp.ones(50), p).value ** 2)
    if name == "fixed point":
        plain = optimistix.FixedPointIteration(rtol=1e-10, atol=1e-10)
        found = optimistix.fixed_point
        return lambda p: jnp.sum(found(lambda x, p: layer(jnp, x, p), plain, jnp.zeros(50), p).value ** 2)
    if name == "fit":
        marquardt = optimistix.LevenbergMarquardt(rtol=1e-10, atol=1e-10)
        found = optimistix.least_squares
        return lambda data: jnp.sum(found(lambda x, d: residuals(jnp, x, d), marquardt, jnp.ones(3), data).value ** 2)
    tags = lineax.positive_semidefinite_tag if name == "cg" else ()
    solver = lineax.CG(rtol=1e-10, atol=0.0) if name == "cg" else lineax.GMRES(rtol=1e-10, atol=0.0, restart=50)
    shape = jax.ShapeDtypeStruct((1000,), jnp.float64)

    def solved(k):
        operator = lineax.FunctionLinearOperator(lambda v: LINEAR[name](jnp, v, k), shape, tags)
        return jnp.sum(lineax.linear_solve(operator, jnp.array(LOAD), solver).value ** 2)

    return solved


def prepared(library, name):
    """A function that makes the compiled gradient, and one that waits for its result; all is imported."""
    if library == "nbgrad":
        import nbgrad as nb

        nb.jit(nb.value_and_grad(lambda x: np.sum(np.sin(x) * x)))(np.ones(3))  # what a process needs once
        by_nbgrad(name)
        return lambda: nb.jit(nb.value_and_grad(by_nbgrad(name)))
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    jax.jit(jax.value_and_grad(lambda x: jnp.sum(jnp.sin(x) * x)))(jnp.ones(3))
    by_jax(name)

    def make():
        call = jax.jit(jax.value_and_grad(by_jax(name)))
        return lambda x: jax.block_until_ready(call(x))

    return make
