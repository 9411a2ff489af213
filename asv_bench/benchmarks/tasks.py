"""The work that is measured: objective functions over a NumPy-like namespace, with their inputs.

In: a random generator. Out: `TASKS`, a table of what is differentiated, with respect to what, on which arrays. Used by
the asv classes and by peers.py, so that every library does the same work on the same numbers. A function gets the
namespace `xp` first: NumPy's names as one library has them, and the few that libraries.py adds (`erf`, `relu`,
`softplus`, `sigmoid`, `softmax`, `logsumexp`, `expm`, `pick`, `convolve`, `pool`, `fold`). No library but NumPy is
imported here.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

Arrays = tuple[np.ndarray, ...]


class Task(NamedTuple):
    """A function, its inputs, and which derivative is wanted.

    `what` is "value_and_grad", "grad", "hvp" (the last input is the vector), "jacobian" or "value"; `tolerance`
    is relative to the largest element of a result.
    """

    text: str
    function: Callable[..., Any]
    inputs: Callable[[np.random.Generator], Arrays]
    wrt: tuple[int, ...] = (0,)
    what: str = "value_and_grad"
    tolerance: float = 1e-9
    group: str = "benchmarks"

    def arrays(self) -> Arrays:
        """The inputs, the same in every process."""
        return self.inputs(np.random.default_rng(0))


# ----- Small and elementwise -----


def rosenbrock(xp, x):
    """Rosenbrock's function of any length."""
    return xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def fused(xp, x, y):
    """Transcendental functions of two arrays, summed."""
    return xp.sum(xp.log(xp.exp(x * y) + xp.sin(x) ** 2 + 1.0))


def pair(n: int) -> Arrays:
    """Two arrays of n numbers in (0, 1)."""
    rng = np.random.default_rng(0)
    return rng.random(n), rng.random(n)


def option_values(xp, spot, strike, years, rate, volatility):
    """The sum of European call prices (Black and Scholes 1973); its gradients are the greeks."""
    spread = volatility * xp.sqrt(years)
    upper = (xp.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread

    def normal(z):
        return 0.5 + 0.5 * xp.erf(z * math.sqrt(0.5))

    return xp.sum(spot * normal(upper) - strike * xp.exp(-rate * years) * normal(upper - spread))


def option_inputs(rng, n=1_000_000):
    ranges = [(50.0, 150.0), (50.0, 150.0), (0.1, 2.0), (0.0, 0.08), (0.1, 0.6)]
    return tuple([rng.uniform(low, high, n) for low, high in ranges])


def response(xp, frequency, damping, delay):
    """Power that passes a filter of second order and a delay, at complex frequencies."""
    s = damping + 1j * frequency
    return xp.sum(xp.abs(xp.exp(-delay * s) / (1.0 + s * (0.7 + s))) ** 2)


def response_inputs(rng, n=1_000_000):
    return tuple([rng.uniform(low, high, n) for low, high in [(0.1, 3.0), (0.0, 0.3), (0.1, 2.0)]])


COEFFICIENTS = [(-1.0) ** k / (1.0 + 0.7 * k) for k in range(48)]


def density(xp, salinity, temperature, pressure):
    """An equation of state of sea water's form: a quotient of polynomials of 21 and 27 terms, summed."""
    left = iter(COEFFICIENTS)

    def terms(count):
        """A polynomial of the temperature with the next coefficients, by Horner's rule."""
        first, *others = [next(left) for _ in range(count)]
        value = first
        for coefficient in others:
            value = value * temperature + coefficient
        return value

    root = xp.sqrt(salinity)
    top = terms(5) + salinity * (terms(4) + root * terms(4))
    top = top + pressure * (terms(3) + salinity * terms(2)) + pressure**2 * terms(3)
    bottom = terms(5) + salinity * (terms(5) + root * terms(4) + salinity * terms(1))
    bottom = bottom + pressure * (terms(3) + salinity * terms(2)) + pressure**2 * (terms(3) + salinity * terms(2))
    bottom = bottom + pressure**3 * terms(2)
    return xp.sum(top / (1.0 + 0.1 * bottom))


def density_inputs(rng, n=1_000_000):
    return rng.uniform(0.5, 1.1, n), rng.uniform(-0.1, 1.0, n), rng.uniform(0.0, 1.0, n)


# ----- Matrix products -----


def logistic(xp, w, X, y):
    """Logistic regression with labels 0 and 1, and an L2 penalty."""
    z = X @ w
    return xp.mean(xp.softplus(z) - y * z) + 0.5e-3 * xp.sum(w * w)


def logistic_inputs(rng, n=20_000, d=50):
    X, truth = rng.standard_normal((n, d)), rng.standard_normal(d) * (2.0 / math.sqrt(d))
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(-X @ truth))).astype(np.float64)
    return 0.1 * rng.standard_normal(d), X, y


def coupled(xp, x, A, B):
    """A vector function of a vector, whose Jacobian is dense."""
    return xp.tanh(A @ x) + xp.sin(B @ x) * x


def coupled_inputs(rng, n=50):
    A, B = rng.standard_normal((2, n, n)) / math.sqrt(n)
    return rng.standard_normal(n), A, B


def mixture(xp, weights, means, shapes, x, places, below):
    """The negative log-likelihood of a Gaussian mixture, without its constants, with a Wishart prior.

    The inverse covariances have factors: exp of the first columns of `shapes` on the diagonal, the other columns below
    it; `places` says where, and `below` is 1 there and 0 elsewhere. The problem is ADBench's (Srajer et al. 2018).
    """
    d = x.shape[1]
    logarithms, others = shapes[:, :d], shapes[:, d:]
    diagonal, total = xp.exp(logarithms), xp.sum(logarithms, axis=1)
    factors = others[:, places] * below
    centred = x[:, None, :] - means[None, :, :]
    whitened = diagonal * centred + xp.einsum("kij,nkj->nki", factors, centred)
    likelihood = xp.sum(xp.logsumexp(weights + total - 0.5 * xp.sum(whitened**2, axis=2), 1))
    prior = 0.5 * (xp.sum(diagonal**2) + xp.sum(others**2))
    return likelihood - x.shape[0] * xp.logsumexp(weights, 0) + prior


def mixture_inputs(rng, d=10, k=25, n=1000):
    column, row = np.triu_indices(d, 1)
    places = np.zeros((d, d), np.int64)
    places[row, column] = np.arange(row.size)
    shapes = rng.standard_normal((k, d + row.size))
    points = (rng.standard_normal(k), rng.random((k, d)), shapes, rng.standard_normal((n, d)))
    return (*points, places, np.tril(np.ones((d, d)), -1))


# ----- Rows -----


def cross_entropy(xp, scores, labels):
    """The mean negative log-likelihood of the labels."""
    return xp.mean(xp.logsumexp(scores, 1) - xp.pick(scores, labels))


def normalised(xp, x, scale, shift, weight):
    """Layer normalisation of rows, GELU, and a weighted sum."""
    centred = x - xp.mean(x, axis=1, keepdims=True)
    spread = xp.sqrt(xp.mean(centred * centred, axis=1, keepdims=True) + 1e-5)
    h = centred / spread * scale + shift
    return xp.sum(weight * (0.5 * h) * (1.0 + xp.erf(h * math.sqrt(0.5))))


def normalised_inputs(rng, rows=512, d=1024):
    x, weight = rng.standard_normal((2, rows, d))
    arrays = (x, 1.0 + 0.1 * rng.standard_normal(d), 0.1 * rng.standard_normal(d), weight)
    return tuple([a.astype(np.float32) for a in arrays])


# ----- Networks -----


def perceptron(xp, W1, b1, W2, b2, W3, b3, x, labels):
    """Three dense layers with ReLU in between, and the cross entropy."""
    h = xp.relu(x @ W1 + b1)
    h = xp.relu(h @ W2 + b2)
    return cross_entropy(xp, h @ W3 + b3, labels)


def perceptron_inputs(rng, batch=128, sizes=(784, 256, 128, 10)):
    parameters = []
    for n, m in pairwise(sizes):
        parameters += [rng.standard_normal((n, m)) * math.sqrt(2.0 / n), 0.01 * rng.standard_normal(m)]
    arrays = [*parameters, rng.standard_normal((batch, sizes[0]))]
    return (*[a.astype(np.float32) for a in arrays], rng.integers(0, sizes[-1], batch))


def convolutional(xp, k1, b1, k2, b2, W, b, x, labels):
    """Two convolutions, each with ReLU and a maximum over 2x2, a dense layer, and the cross entropy."""
    h = xp.pool(xp.relu(xp.convolve(x, k1) + b1[:, None, None]))
    h = xp.pool(xp.relu(xp.convolve(h, k2) + b2[:, None, None]))
    return cross_entropy(xp, h.reshape(h.shape[0], -1) @ W + b, labels)


def convolutional_inputs(rng, batch=32):
    shapes = [((16, 1, 3, 3), 9), ((16,), 1e4), ((32, 16, 3, 3), 144), ((32,), 1e4), ((1568, 10), 1568), ((10,), 1e4)]
    arrays = [rng.standard_normal(shape) * math.sqrt(2.0 / fan) for shape, fan in shapes]
    arrays.append(rng.standard_normal((batch, 1, 28, 28)))
    return (*[a.astype(np.float32) for a in arrays], rng.integers(0, 10, batch))


def recurrent(xp, gates, readout, state, rows):
    """The loss of an LSTM whose weights are diagonal, predicting each row from those before (ADBench's problem).

    `gates` and `state` hold two rows a layer: weights and biases of the four gates, and hidden and cell state.
    """
    width, count = rows.shape[1], state.shape[0]

    def step(carried, gold):
        *state, x, total = carried
        x = x * readout[0]
        for k in range(0, count, 2):
            hidden, cell = state[k], state[k + 1]
            z = xp.concatenate([x, hidden, x, hidden]) * gates[k] + gates[k + 1]
            opened = xp.sigmoid(z[: 3 * width])
            cell = cell * opened[:width] + opened[width : 2 * width] * xp.tanh(z[3 * width :])
            x = opened[2 * width :] * xp.tanh(cell)
            state[k], state[k + 1] = x, cell
        score = x * readout[1] + readout[2]
        return (*state, gold, total + xp.sum(gold * (score - xp.log(2.0 + xp.sum(xp.exp(score))))))

    start = (*[state[k] for k in range(count)], rows[0], 0.0 * xp.sum(rows[0]))
    return -xp.fold(step, start, rows[1:])[-1] / ((rows.shape[0] - 1) * width)


def recurrent_inputs(rng, layers=2, width=14, length=50):
    gates, readout = rng.uniform(-1.0, 1.0, (2 * layers, 4 * width)), rng.uniform(-1.0, 1.0, (3, width))
    state, rows = rng.uniform(-0.5, 0.5, (2 * layers, width)), rng.random((length, width)) < 0.5
    return gates, readout, state, rows.astype(np.float64)


# ----- Steps in time, neighbours, indices -----


def predators(xp, rates, start, target):
    """The squared distance from a target after 1000 Runge-Kutta steps of Lotka and Volterra's equations."""
    a, b, c, d = [rates[k] for k in range(4)]
    h = 0.01

    def slope(prey, hunters):
        return prey * (a - b * hunters), hunters * (c * prey - d)

    def step(state, _):
        prey, hunters = state
        p1, q1 = slope(prey, hunters)
        p2, q2 = slope(prey + 0.5 * h * p1, hunters + 0.5 * h * q1)
        p3, q3 = slope(prey + 0.5 * h * p2, hunters + 0.5 * h * q2)
        p4, q4 = slope(prey + h * p3, hunters + h * q3)
        return prey + h / 6.0 * (p1 + 2.0 * (p2 + p3) + p4), hunters + h / 6.0 * (q1 + 2.0 * (q2 + q3) + q4)

    prey, hunters = xp.fold(step, (start[0], start[1]), range(1000))
    return (prey - target[0]) ** 2 + (hunters - target[1]) ** 2


def predators_inputs(rng):
    return np.array([1.1, 0.4, 0.1, 0.4]), np.array([10.0, 5.0]), np.array([2.0, 3.0])


def phases(xp, u, target):
    """The misfit after 100 explicit steps of Allen and Cahn's equation on a periodic square."""

    def step(u, _):
        around = xp.roll(u, 1, 0) + xp.roll(u, -1, 0) + xp.roll(u, 1, 1) + xp.roll(u, -1, 1)
        return u + 0.2 * (around - 4.0 * u) + 0.05 * (u - u**3)

    return 0.5 * xp.sum((xp.fold(step, u, range(100)) - target) ** 2)


def phases_inputs(rng, n=128):
    return tuple(rng.uniform(-1.0, 1.0, (2, n, n)))


def potential(xp, places, masses):
    """The softened gravitational energy of all pairs of bodies."""
    apart = places[:, None, :] - places[None, :, :]
    pairs = masses[:, None] * masses[None, :] / xp.sqrt(xp.sum(apart**2, axis=2) + 0.01)
    return -0.5 * (xp.sum(pairs) - 10.0 * xp.sum(masses**2))


def potential_inputs(rng, n=1000):
    return rng.standard_normal((n, 3)), rng.uniform(0.5, 2.0, n)


def bundle(xp, cameras, points, weights, which_camera, which_point, seen):
    """Bundle adjustment: squared reprojection errors of weighted observations (ADBench's problem, summed).

    A camera is a rotation vector, a centre, a focal length, a principal point and two radial distortions.
    """
    camera = cameras[which_camera]
    x = points[which_point] - camera[:, 3:6]
    turn = camera[:, :3]
    angle = xp.sqrt(xp.sum(turn**2, axis=1, keepdims=True))
    k = turn / angle
    crossed = [k[:, i - 2] * x[:, i - 1] - k[:, i - 1] * x[:, i - 2] for i in range(3)]
    along = xp.sum(k * x, axis=1, keepdims=True)
    x = x * xp.cos(angle) + xp.stack(crossed, axis=1) * xp.sin(angle) + k * along * (1.0 - xp.cos(angle))
    flat = x[:, :2] / x[:, 2:]
    squared = xp.sum(flat**2, axis=1, keepdims=True)
    bent = flat * (1.0 + camera[:, 9:10] * squared + camera[:, 10:11] * squared**2)
    error = weights[:, None] * (bent * camera[:, 6:7] + camera[:, 7:9] - seen)
    return 0.5 * xp.sum(error**2) + xp.sum((1.0 - weights**2) ** 2)


def bundle_inputs(rng, cameras=50, points=2000, observations=10_000):
    turns, centres = rng.normal(0.0, 0.2, (cameras, 3)), rng.normal(0.0, 0.3, (cameras, 3))
    parts = [turns, centres, rng.uniform(0.8, 1.2, (cameras, 1)), rng.normal(0.0, 0.01, (cameras, 4))]
    places = np.concatenate([rng.uniform(-1.0, 1.0, (points, 2)), rng.uniform(4.0, 8.0, (points, 1))], axis=1)
    which = rng.integers(0, cameras, observations), rng.integers(0, points, observations)
    return (
        np.concatenate(parts, axis=1),
        places,
        rng.uniform(0.5, 1.5, observations),
        *which,
        rng.normal(0.0, 0.1, (observations, 2)),
    )


# ----- Linear algebra -----


def symmetric(x):
    """The symmetric part: some libraries read one triangle, others both."""
    return 0.5 * (x + x.T)


def cholesky(xp, x, weight):
    """A weighted sum of a Cholesky factor."""
    return xp.sum(weight * xp.linalg.cholesky(symmetric(x)))


def system(xp, x, b):
    """The squared length of the solution of a linear system."""
    return xp.sum(xp.linalg.solve(x, b) ** 2)


def spectrum(xp, x, weight):
    """A function of all eigenvalues and eigenvectors that does not depend on the vectors' signs."""
    values, vectors = xp.linalg.eigh(symmetric(x))
    return xp.sum(values**2) + xp.sum(weight * vectors**2)


def matrix_inputs(rng, n=500):
    """A positive definite matrix with eigenvalues 1, 2, ..., n, and another matrix."""
    q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return (q * np.arange(1.0, n + 1.0)) @ q.T, rng.standard_normal((n, n))


# ----- What is compiled anew -----


def twelve(xp, variant, x, y):
    """Twelve elementwise operations and a sum; each variant is another function, so that nothing is cached."""
    steps = [xp.sin, xp.exp, xp.tanh, lambda v: v * v, xp.sqrt, lambda v: 1.0 / (1.0 + v * v), xp.log1p, xp.cos]
    for position in range(6):
        x = steps[(position * (variant + 1) + variant) % 8](x * y + (position + variant))
    return xp.sum(x)


def chain(xp, length, x, y):
    """A chain of `length` operations on an array."""
    for _ in range(length // 4):
        x = xp.sin(x) * y + 0.1 * x
    return xp.sum(x)


def _with_vector(rng):
    w, X, y = logistic_inputs(rng)
    return w, X, y, rng.standard_normal(w.size)


TASKS = {
    "rosenbrock": Task("Rosenbrock, 10 float64", rosenbrock, lambda rng: (rng.uniform(-1.5, 1.5, 10),)),
    "fused": Task("sum(log(exp(x*y) + sin(x)**2 + 1)), 1e6", fused, lambda rng: pair(1_000_000), (0, 1)),
    "options": Task("Black-Scholes, 5 greeks, 1e6", option_values, option_inputs, (0, 1, 2, 3, 4), "grad"),
    "response": Task("complex frequency response, 1e6", response, response_inputs, (0, 1, 2)),
    "density": Task("equation of state, 48 terms, 1e6", density, density_inputs, (0, 1), "grad"),
    "logistic": Task("logistic regression, 20000x50", logistic, logistic_inputs),
    "hvp": Task("its Hessian times a vector", logistic, _with_vector, (0,), "hvp"),
    "jacobian": Task("Jacobian, 50x50", coupled, coupled_inputs, (0,), "jacobian"),
    "mixture": Task("Gaussian mixture, d 10, K 25, N 1000", mixture, mixture_inputs, (0, 1, 2)),
    "bundle": Task("bundle adjustment, 10000 observations", bundle, bundle_inputs, (0, 1, 2)),
    "bodies": Task("potential of 1000 bodies", potential, potential_inputs),
    "stencil": Task("Allen-Cahn, 128x128, 100 steps", phases, phases_inputs),
    "ode": Task("Runge-Kutta, 1000 steps", predators, predators_inputs, (0, 1), tolerance=1e-8),
    "lstm": Task("LSTM, 2 layers of 14, 50 steps", recurrent, recurrent_inputs, (0, 1)),
    "rows": Task("layer norm and GELU, 512x1024 float32", normalised, normalised_inputs, (0, 1, 2), tolerance=3e-4),
    "cholesky": Task("Cholesky factor, 500x500", cholesky, matrix_inputs),
    "solve": Task("linear system, 500x500", system, lambda rng: (matrix_inputs(rng)[0], np.ones(500)), (0, 1)),
    "eigh": Task("eigenvalues and eigenvectors, 500x500", spectrum, matrix_inputs),
    "mlp": Task(
        "MLP 784-256-128-10, batch 128, float32",
        perceptron,
        perceptron_inputs,
        (0, 1, 2, 3, 4, 5),
        tolerance=1e-4,
        group="networks",
    ),
    "convolution": Task(
        "two convolutions, batch 32, 28x28 float32",
        convolutional,
        convolutional_inputs,
        (0, 1, 2, 3, 4, 5),
        tolerance=3e-4,
        group="networks",
    ),
}
