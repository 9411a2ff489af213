"""The work that is measured on GPUs: gradients of elementwise functions, of networks, and routines of libraries.

In: a random generator, and about how many elements there should be. Out: `TASKS`, a table of what is computed on which
arrays; all floats are float32. Used by devices.py at the side of other libraries. As in tasks.py, a function gets the
namespace `xp` first; device_libraries.py adds `sorted` and `added_at`. `by_hand` is the same written down with
NumPy's functions alone, for libraries that do not differentiate.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from . import tasks

Arrays = tuple[np.ndarray, ...]


class DeviceTask(NamedTuple):
    """A function, its inputs, and with respect to which of them it is differentiated (None: only its value).

    `tolerance` is relative to the largest element of a result. Where all inputs are read once and all results written
    once, and little else is done, `streams` is true: the time is compared with that of a copy.
    """

    text: str
    group: str
    function: Callable[..., Any]
    inputs: Callable[[np.random.Generator, int], Arrays]
    wrt: tuple[int, ...] | None
    tolerance: float
    by_hand: Callable[..., Any] | None = None
    streams: bool = False

    def arrays(self, elements: int) -> Arrays:
        """The inputs, the same in every process."""
        return self.inputs(np.random.default_rng(0), elements)


# ----- Elementwise -----


def light(xp, x, y):
    """One transcendental function."""
    return xp.sum(x * y + xp.tanh(x * y))


def light_by_hand(xp, x, y):
    t = xp.tanh(x * y)
    slope = 2.0 - t * t
    return y * slope, x * slope


def medium_by_hand(xp, x, y):
    """The gradients of tasks.fused."""
    e, s = xp.exp(x * y), xp.sin(x)
    share = 1.0 / (e + s * s + 1.0)
    return share * (y * e + 2.0 * s * xp.cos(x)), share * x * e


def greeks_by_hand(xp, spot, strike, years, rate, volatility):
    """The gradients of tasks.option_values, as in textbooks."""
    root = xp.sqrt(years)
    spread = volatility * root
    upper = (xp.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / spread
    lower = upper - spread
    chance, other = [0.5 + 0.5 * xp.erf(z * math.sqrt(0.5)) for z in (upper, lower)]
    density = xp.exp(-0.5 * upper**2) * (1.0 / math.sqrt(2.0 * math.pi))
    discount = xp.exp(-rate * years)
    theta = spot * density * volatility / (2.0 * root) + rate * strike * discount * other
    return chance, -discount * other, theta, strike * years * discount * other, spot * density * root


def uniform(rng: np.random.Generator, *shape: int, low: float = 0.0, high: float = 1.0) -> np.ndarray:
    """Uniform float32, made without a larger array of float64."""
    found = rng.random(shape, np.float32)
    found *= np.float32(high - low)
    found += np.float32(low)
    return found


def pair(rng, elements):
    return uniform(rng, elements), uniform(rng, elements)


def options(rng, elements):
    ranges = [(50.0, 150.0), (50.0, 150.0), (0.1, 2.0), (0.0, 0.08), (0.1, 0.6)]
    return tuple([uniform(rng, elements, low=low, high=high) for low, high in ranges])


# ----- Networks -----


def perceptron(rng, elements):
    """A batch of 4096 and layers of 1024, 4096, 4096 and 1000, or smaller ones of the same form."""
    width = max(8, min(4096, math.isqrt(elements) // 2))
    return tasks.perceptron_inputs(rng, width, (max(8, width // 4), width, width, max(8, width // 4 - 24)))


def rows(rng, elements):
    """8192 rows of 1024, or fewer."""
    return tasks.normalised_inputs(rng, max(4, min(8192, elements // 8192)), 1024 if elements > 100_000 else 64)


# ----- Loops -----

STEPS = 1000


def heat(xp, u, weights):
    """Time steps on a ring."""
    return xp.sum(xp.fold(lambda u, _: u + 0.2 * (xp.roll(u, 1) + xp.roll(u, -1) - 2.0 * u), u, range(STEPS)) * weights)


def oscillators(xp, start, speeds):
    """Runge-Kutta steps of fourth order for many pendulums."""

    def slope(state):
        angle, speed = state
        return speed, -speeds * xp.sin(angle) - 0.1 * speed

    def moved(state, by, step):
        return tuple([x + step * d for x, d in zip(state, by, strict=True)])

    def step(state, _):
        k1 = slope(state)
        k2 = slope(moved(state, k1, 0.005))
        k3 = slope(moved(state, k2, 0.005))
        k4 = slope(moved(state, k3, 0.01))
        sums = tuple([a + 2.0 * (b + c) + d for a, b, c, d in zip(k1, k2, k3, k4, strict=True)])
        return moved(state, sums, 0.01 / 6.0)

    angle, speed = xp.fold(step, (start, 0.0 * start), range(STEPS))
    return xp.sum(angle * angle) + xp.sum(speed * speed)


def one_thousandth(rng, elements):
    return pair(rng, max(8, elements // 1000))


# ----- Routines of libraries -----


def cumulative(xp, x):
    return xp.cumsum(x, 0)


def ordered(xp, x):
    return xp.sorted(x)


def scattered(xp, target, places, updates):
    """Add numbers at places that occur several times."""
    return xp.added_at(target, places, updates)


def scatter_inputs(rng, elements):
    size = max(1, elements // 100)
    return np.zeros(size, np.float32), rng.integers(0, size, elements // 10), uniform(rng, elements // 10)


def product(xp, a, b):
    return a @ b


def factors(rng, elements):
    n = max(8, min(8192, math.isqrt(elements) // 2))
    return uniform(rng, n, n, low=-1.0), uniform(rng, n, n, low=-1.0)


TASKS = {
    "light": DeviceTask(
        "gradient of x*y + tanh(x*y)", "elementwise", light, pair, (0, 1), 1e-4, light_by_hand, streams=True
    ),
    "medium": DeviceTask(
        "gradient of log(exp(x*y) + sin(x)**2 + 1)",
        "elementwise",
        tasks.fused,
        pair,
        (0, 1),
        1e-4,
        medium_by_hand,
        streams=True,
    ),
    "options": DeviceTask(
        "Black-Scholes, 5 greeks",
        "elementwise",
        tasks.option_values,
        options,
        (0, 1, 2, 3, 4),
        1e-4,
        greeks_by_hand,
        streams=True,
    ),
    "mlp": DeviceTask("MLP of three layers", "networks", tasks.perceptron, perceptron, (0, 1, 2, 3, 4, 5), 1e-3),
    "rows": DeviceTask("layer norm and GELU", "networks", tasks.normalised, rows, (0, 1, 2), 1e-3),
    "heat": DeviceTask("1000 steps of heat on a ring", "loops", heat, one_thousandth, (0, 1), 1e-3),
    "oscillators": DeviceTask("1000 Runge-Kutta steps", "loops", oscillators, one_thousandth, (0, 1), 1e-3),
    "cumsum": DeviceTask(
        "cumsum", "routines", cumulative, lambda rng, n: (uniform(rng, n // 10),), None, 1e-3, cumulative
    ),
    "sort": DeviceTask("sort", "routines", ordered, lambda rng, n: (uniform(rng, n // 10),), None, 0.0, ordered),
    "scatter": DeviceTask("scatter-add", "routines", scattered, scatter_inputs, None, 1e-5, scattered),
    "matmul": DeviceTask("product of matrices", "routines", product, factors, None, 1e-4, product),
}


def described(arrays: Arrays) -> str:
    """Shapes and dtypes, for a table."""
    kinds: dict[str, int] = {}
    for array in arrays:
        name = f"{'x'.join(map(str, array.shape))} {array.dtype}"
        kinds[name] = kinds.get(name, 0) + 1
    return ", ".join(f"{count} of {name}" if count > 1 else name for name, count in kinds.items())
