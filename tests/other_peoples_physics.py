"""More numerical code as people write it, from physics, finance and chemistry: snippets of test_other_peoples_code.py.

Each public function takes one array of parameters and gives a number or an array. What they have in common is what
NumPy's protocols cannot see: arrays made of computed numbers, results written into new arrays, `math`, `float`.
"""

# Code that is as it is.
# ruff: noqa: UP033
from __future__ import annotations

import functools
import math
from collections import namedtuple
from dataclasses import dataclass
from math import exp, sqrt

import numpy as np

RNG = np.random.default_rng(7)
SIGNAL = np.sin(np.linspace(0.0, 4.0, 40)) + 0.1 * RNG.normal(size=40)


# ----- Physics, finance, chemistry -----

Body = namedtuple("Body", ["mass", "position"])


@dataclass
class Orbit:
    a: float
    e: float

    def anomaly(self, M):
        E = M
        for _ in range(6):
            E = E - (E - self.e * math.sin(E) - M) / (1 - self.e * math.cos(E))
        return E

    @property
    def period(self):
        return 2 * math.pi * math.sqrt(self.a**3)

    def position(self, t):
        E = self.anomaly(2 * math.pi * t / self.period)
        return np.array([self.a * (math.cos(E) - self.e), self.a * math.sqrt(1 - self.e**2) * math.sin(E)])


def kepler(p):
    return Orbit(p[0], p[1]).position(0.8)


def n_body_energy(p):
    bodies = [Body(1.0, p[:2]), Body(0.5, p[2:4]), Body(2.0, np.array([0.0, -1.0]))]
    energy = 0.0
    for i, b in enumerate(bodies):
        for other in bodies[i + 1 :]:
            energy -= b.mass * other.mass / np.linalg.norm(b.position - other.position)
    return energy


def lennard_jones_forces(p):
    pos = p.reshape(-1, 2)
    F = np.zeros_like(pos)
    for i in range(len(pos)):
        for j in range(len(pos)):
            if i != j:
                r = pos[i] - pos[j]
                d2 = r @ r
                F[i] += 24 * (2 / d2**7 - 1 / d2**4) * r
    return F


@functools.lru_cache(maxsize=None)
def strikes():
    return np.array([90.0, 100.0, 110.0])


def normal_cdf(x):
    return 0.5 * (1 + math.erf(x / math.sqrt(2)))


def black_scholes(p):
    S, sigma, r, T = p
    prices = np.zeros(3)
    for i, K in enumerate(strikes()):
        d1 = (math.log(S / K) + (r + sigma**2 / 2) * T) / (sigma * math.sqrt(T))
        prices[i] = S * normal_cdf(d1) - K * math.exp(-r * T) * normal_cdf(d1 - sigma * math.sqrt(T))
    return prices


def binomial_tree(p):
    S, sigma = p
    n, dt, r = 12, 1 / 12, 0.03
    up = exp(sigma * sqrt(dt))
    q = (exp(r * dt) - 1 / up) / (up - 1 / up)
    values = np.zeros(n + 1)
    for i in range(n + 1):
        values[i] = max(S * up ** (n - 2 * i) - 100.0, 0)
    for _ in range(n):
        values = exp(-r * dt) * (q * values[:-1] + (1 - q) * values[1:])
    return values[0]


def reaction_rates(p):
    c = np.array([1.0, 0.0, 0.0])
    stoichiometry = np.array([[-1, 1, 0], [0, -1, 1]]).T
    for _ in range(20):
        rates = np.array([p[0] * c[0], p[1] * c[1] ** 2 / (1 + p[2] * c[1])])
        c = c + 0.1 * stoichiometry @ rates
    return c


def transfer_matrix(p):
    M = np.eye(2, dtype=complex)
    for n, d in zip([1.5, 2.0, 1.5], p):  # noqa: B905
        delta = 2 * np.pi * n * d
        M = M @ np.array([[np.cos(delta), 1j * np.sin(delta) / n], [1j * n * np.sin(delta), np.cos(delta)]])
    r = (M[0, 0] + M[0, 1] - M[1, 0] - M[1, 1]) / (M[0, 0] + M[0, 1] + M[1, 0] + M[1, 1])
    return abs(r) ** 2


def truss_stiffness(p):
    nodes = np.array([[0.0, 0.0], [1.0, 0.0], [0.4, p[0]]])
    K = np.zeros((6, 6))
    for i, j in [(0, 1), (1, 2), (0, 2)]:
        d = nodes[j] - nodes[i]
        L = np.sqrt(d @ d)
        c, s = d / L
        k = p[1] / L * np.array([[c * c, c * s], [c * s, s * s]])
        dofs = np.array([2 * i, 2 * i + 1, 2 * j, 2 * j + 1])
        K[np.ix_(dofs, dofs)] += np.block([[k, -k], [-k, k]])
    load = np.zeros(6)
    load[5] = -1.0
    free = [2, 4, 5]
    u = np.zeros(6)
    u[free] = np.linalg.solve(K[np.ix_(free, free)], load[free])
    return u


def ising_transfer(p):
    T = np.array([[np.exp(p[0] + p[1]), np.exp(-p[0])], [np.exp(-p[0]), np.exp(p[0] - p[1])]])
    return np.log(np.trace(np.linalg.matrix_power(T, 6))) / 6


def soil_bucket(p):
    storage, flows = 1.0, []
    for rain in np.abs(SIGNAL[:15]):
        storage += rain
        excess = max(storage - p[0], 0.0)
        storage = min(storage, p[0])
        flow = p[1] * storage
        storage -= flow
        flows.append(flow + excess)
    return np.array(flows)


SNIPPETS = {
    kepler: [1.1, 0.3],
    n_body_energy: [0.3, 0.8, -1.1, 0.4],
    lennard_jones_forces: [0.0, 0.0, 1.1, 0.1, 0.4, 1.2],
    black_scholes: [101.0, 0.25, 0.03, 0.8],
    binomial_tree: [101.3, 0.2],
    reaction_rates: [0.9, 1.4, 0.3],
    transfer_matrix: [0.12, 0.2, 0.31],
    truss_stiffness: [0.8, 2.0],
    ising_transfer: [0.4, 0.2],
    soil_bucket: [1.6, 0.25],
}
"""Each function with parameters to try it at."""
