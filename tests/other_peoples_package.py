"""A module as people write it, with everything that differentiable_source has to find its way through."""

# Code that is as it is.
# ruff: noqa: I001, N818, UP003, UP033
from __future__ import annotations

import abc
import functools
import math
import numbers
from dataclasses import dataclass, field
from math import pi, sin
from typing import NamedTuple

import numba
import numpy
import numpy as np
import numpy.linalg as la
from numpy import array, float64, ndarray
from numpy import zeros as empty_start
from numpy.linalg import norm as length

from . import other_peoples_code
from .other_peoples_code import rotation_matrix

SCALE = 2.0
COUNT = 0
WEIGHTS = np.array([1.0, -2.0])
ACTIVATIONS = {"square": lambda v: np.array([v[0] * v[0], v[1]]), "double": lambda v: np.asarray([2 * v[0], v[1]])}
STEPS = [np.cos, math.tanh]


def imported_names(x):
    a = empty_start(2)
    a[0], a[1] = sin(x[0]) * pi, length(x)
    return array([a[0], a[1] * SCALE]) + la.norm(a)


def first(x, n=2):
    return np.array([x[0], x[1]]) if n == 0 else second(x, n)


def second(x, n):
    return first(np.array([x[1], x[0] * x[1]]), n - 1)


def through_containers(x):
    return ACTIVATIONS["square"](x) + ACTIVATIONS["double"](x) + sum(step(x[0]) for step in STEPS)


def default_function(x, make=np.array, scale=lambda v: np.array([v, 1.0])):
    return make([x[0], x[1]]) * scale(x[0])


def keyword_only(x, *, make=numpy.asarray):
    return make([x[0], x[1] ** 2])


def closure(x):
    factor = np.array([x[0], 2.0])

    def inner(k):
        nonlocal factor
        factor = factor * np.array([k, x[1]])
        return factor if k > 2 else inner(k + 1)

    return inner(1)


def make_counter():
    make = np.array
    calls = 0

    def counter(x):
        nonlocal calls
        calls += 1
        return make([x[0] * calls, x[1]])

    return counter


def imports_inside(x):
    import math as m
    import numpy as num
    import numpy.linalg as linalg
    from math import exp
    from numpy import array as arr
    from numpy import stack

    return arr([x[0], exp(x[1])]) * m.cos(x[0]) + stack([x[0], num.array([x[1]])[0]]) + linalg.norm(arr([x[0], 1.0]))


def relative_import(x):
    from .other_peoples_code import SIGNAL

    return np.array([x[0] * SIGNAL[1], x[1]])


def class_inside(x):
    class Local:
        base = np.array([1.0, 2.0])
        scale: float = SCALE

        def value(self):
            return np.array([x[0] * self.scale, x[1]]) * self.base

    return Local().value()


def generator(x):
    def terms():
        for k in range(3):
            yield np.array([x[0] ** k, x[1] * k])

    return sum(terms())


def comprehension(x):
    return np.array([[math.sin(a * b) for a in x] for b in x]).sum(axis=0)


def counts_calls(x):
    global COUNT
    COUNT += 1
    return np.array([x[0] * COUNT, x[1]])


def tells_types(x):
    facts = [
        isinstance(x, np.ndarray),
        isinstance(x, ndarray) and type(x) is np.ndarray and type(x) == numpy.ndarray,  # noqa: E721
        isinstance(x[0], float),
        isinstance(x[0], (float64, int)),
        isinstance(x[0], numbers.Real) and isinstance(x[0], numbers.Number),
        type(x[0]) is np.float64 and type(x[0]) in (np.float32, np.float64),
        not isinstance(x, float) and not isinstance(x[0], np.ndarray) and not isinstance(x[0], numbers.Integral),
        isinstance(1.5, float) and type(1.5) is float and not isinstance(1, float) and type("") is str,
        isinstance(np.mean(x), float) and np.isscalar(x[0]) and not np.isscalar(x),
        issubclass(np.float64, float) and issubclass(float, float) and isinstance(float, type),
        float("inf") > 1 and float.fromhex("0x1p1") == 2.0 and float(3) == 3.0 and complex(1, 2) == 1 + 2j,
        np.zeros(2, dtype=float).dtype == np.float64 and np.zeros(2, dtype=complex).dtype == complex,
    ]
    return np.array([x[0], x[1]]) * [float(all(facts)), 1.0] if all(facts) else facts.index(False)


def converts(x):
    return np.array([float(x[0]) ** 2, complex(x[1], 0).real if isinstance(x[1], complex) else x[1]])


def items(x):
    total = x[0].item() * x[:1].item() + x.item(1) + x.reshape(1, 2).item(0, 1)
    rows = np.array([[x[0], 1.0], [2.0, x[1]]]).tolist()
    assert isinstance(x[0].item(), float) and isinstance(rows[0][0], float)
    return np.array([total, math.sin(rows[0][0]) + rows[1][0] * rows[1][1], *x.tolist()])


def checked(function):
    @functools.wraps(function)
    def wrapper(x):
        assert np.array(x).ndim == 1
        return function(np.array([x[1], x[0]]))

    return wrapper


@checked
def decorated(x):
    return np.array([x[0] ** 2, x[1]])


@functools.lru_cache(maxsize=None)
def basis(n):
    return np.eye(n)[::-1]


def uses_cache(x):
    return basis(2) @ np.array([x[0], x[1] ** 2])


@numba.njit
def compiled(x):
    out = np.zeros(2)
    for i in range(2):
        out[i] = math.sin(x[i]) * (i + 1)
    return out


def uses_compiled(x):
    return compiled(x)


uses_partial = functools.partial(default_function, scale=lambda v: np.array([1.0, v]))
vectorized = np.vectorize(lambda v: math.sin(v) if v > 0.5 else v**2)


def other_module(x):
    return rotation_matrix(x[0]) @ x


def other_module_by_name(x):
    return other_peoples_code.rotation_matrix(x[0]) @ x


GENERATOR = np.random.default_rng(5)


def draws(x):
    from numpy.random import RandomState, default_rng

    w = default_rng(1).normal(size=2) + RandomState(2).rand(2)
    w[0] *= x[0]
    w += x[1] * GENERATOR.standard_normal(2) * 0
    return w


class Shape(abc.ABC):
    """A class with all that classes have."""

    made = 0
    unit = np.array([1.0, 1.0])

    def __init__(self, x):
        type(self).made += 1
        self.points = np.array([x[0], x[1]])

    @abc.abstractmethod
    def area(self):
        """What subclasses define."""

    def areas(self):
        return np.array([self.area(), 2 * self.area()]) * Shape.unit


class Box(Shape):
    __hash__ = None

    def __init__(self, x, scale):
        super().__init__(x)
        self.scale = scale

    def area(self):
        return self.corner[0] * self.corner[1] * self.scale

    @property
    def corner(self):
        return np.array([math.exp(self.points[0]), self.points[1]])

    @functools.cached_property
    def cached(self):
        return np.array([self.points[0], 3.0])

    @staticmethod
    def twice(x):
        return np.array([2 * x[0], x[1]])

    @classmethod
    def unit_box(cls, x):
        return cls(np.array([x[1], x[0]]), 1.0)

    def __call__(self, x):
        return np.array([self.scale * x[0], x[1]])

    def __eq__(self, other):
        return isinstance(other, Box) and self.scale == other.scale


def uses_classes(x):
    box = Box(x, 2.0)
    assert isinstance(box, Shape) and isinstance(box, Box) and box == GLOBAL_BOX and type(box) is Box
    return box.areas() + box.cached + Box.twice(x) + Box.unit_box(x).areas() + GLOBAL_BOX(x)


class Slotted:
    __slots__ = ("k",)

    def __init__(self, k):
        self.k = k

    def times(self, x):
        return np.array([x[0] * self.k, x[1]])


class Pair(NamedTuple):
    a: float
    b: float


@dataclass
class Settings:
    rate: float = 0.5
    names: list[str] = field(default_factory=list)


class TooLarge(Exception):
    pass


def data_classes(x):
    pair, settings = Pair(x[0], x[1]), Settings()
    try:
        if pair.a > 0.1:
            raise TooLarge(str(settings))
    except TooLarge:
        pass
    assert type(settings) is Settings
    return np.array([pair.a * settings.rate, pair.b]) + SLOTTED.times(x)


def takes_objects(x, box, function):
    assert isinstance(box, Box)
    return box.areas() + function(x)


GLOBAL_BOX = Box([1.0, 2.0], 2.0)
SLOTTED = Slotted(3.0)
