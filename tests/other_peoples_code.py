"""Numerical code as people write it, for NumPy, by nobody who knew nbgrad: the snippets of test_other_peoples_code.py.

Each public function takes one array of parameters and gives a number or an array. What they have in common is what
NumPy's protocols cannot see: arrays made of computed numbers, results written into new arrays, `math`, `float`.
"""

# Code that is as it is.
# ruff: noqa: RUF012, RUF046
from __future__ import annotations

import cmath
import math
from math import cos, exp, log, pi, sin, sqrt

import numpy
import numpy as np
import numpy.linalg as la
from numpy import array, dot, zeros
from numpy.linalg import inv, norm

RNG = np.random.default_rng(7)
DATA = RNG.normal(size=(12, 2))
LABELS = (DATA[:, 0] + 0.3 * DATA[:, 1] > 0).astype(float)
SIGNAL = np.sin(np.linspace(0.0, 4.0, 40)) + 0.1 * RNG.normal(size=40)
IMAGE = RNG.random((9, 10))
TIMES = np.linspace(0.1, 2.0, 7)
GRAVITY = 9.81


# ----- Differential equations -----


def pendulum_euler(p):
    n, h = 12, 0.05
    theta = np.zeros(n + 1)
    omega = np.zeros(n + 1)
    theta[0], omega[0] = p[0], p[1]
    for i in range(n):
        omega[i + 1] = omega[i] - h * GRAVITY / p[2] * np.sin(theta[i])
        theta[i + 1] = theta[i] + h * omega[i + 1]
    return theta[-1] ** 2 + np.max(omega)


def lotka_volterra(z, a, b, c, d):
    return np.array([a * z[0] - b * z[0] * z[1], c * z[0] * z[1] - d * z[1]])


def rk4(f, y0, t, *args):
    y = np.empty((len(t), len(y0)))
    y[0] = y0
    for i in range(len(t) - 1):
        h = t[i + 1] - t[i]
        k1 = f(y[i], *args)
        k2 = f(y[i] + h / 2 * k1, *args)
        k3 = f(y[i] + h / 2 * k2, *args)
        k4 = f(y[i] + h * k3, *args)
        y[i + 1] = y[i] + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y


def predators(p):
    return rk4(lotka_volterra, [1.0, 0.5], np.linspace(0, 2, 21), *p).sum(axis=0)


def heat_explicit(p):
    n, steps = 12, 20
    u = np.zeros(n)
    u[n // 2] = p[0]
    r = p[1]
    for _ in range(steps):
        new = u.copy()
        for j in range(1, n - 1):
            new[j] = u[j] + r * (u[j + 1] - 2 * u[j] + u[j - 1])
        u = new
    return np.sum(u**2) + u[3]


def wave_leapfrog(p):
    nx = 16
    x = np.linspace(0, 1, nx)
    previous = np.exp(-(((x - p[0]) / p[1]) ** 2))
    current = previous.copy()
    for _ in range(10):
        following = np.zeros_like(current)
        following[1:-1] = 2 * current[1:-1] - previous[1:-1] + 0.25 * np.diff(current, 2)
        previous, current = current, following
    return np.sum(current * x)


def crank_nicolson(p):
    n = 8
    A = np.zeros((n, n))
    for i in range(n):
        A[i, i] = 1 + 2 * p[0]
        if i > 0:
            A[i, i - 1] = -p[0]
        if i < n - 1:
            A[i, i + 1] = -p[0]
    u = np.sin(np.pi * np.arange(1, n + 1) / (n + 1)) * p[1]
    for _ in range(3):
        u = np.linalg.solve(A, u)
    return u


def thomas_algorithm(p):
    n = 6
    a, b, c = -np.ones(n - 1) * p[0], np.full(n, 3.0), -np.ones(n - 1) * p[1]
    d = np.arange(1.0, n + 1)
    cp, dp, x = np.zeros(n - 1), np.zeros(n), np.zeros(n)
    cp[0] = c[0] / b[0]
    dp[0] = d[0] / b[0]
    for i in range(1, n):
        m = b[i] - a[i - 1] * cp[i - 1]
        if i < n - 1:
            cp[i] = c[i] / m
        dp[i] = (d[i] - a[i - 1] * dp[i - 1]) / m
    x[-1] = dp[-1]
    for i in range(n - 2, -1, -1):
        x[i] = dp[i] - cp[i] * x[i + 1]
    return x


def jacobi_iteration(p):
    u = np.zeros((6, 6))
    u[0, :] = p[0]
    u[:, -1] = p[1]
    for _ in range(8):
        v = u.copy()
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u = v
    return np.sum(u[2:4, 2:4] ** 2)


# ----- Geometry -----


def rotation_matrix(angle):
    c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s], [s, c]])


def rotate_points(p):
    return ((rotation_matrix(p[0]) @ DATA.T).T * p[1:3]).sum()


def euler_angles(p):
    cx, sx, cy, sy, cz, sz = cos(p[0]), sin(p[0]), cos(p[1]), sin(p[1]), cos(p[2]), sin(p[2])
    Rx = array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    Ry = array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    Rz = array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    return dot(dot(Rz, Ry), Rx)[0] + Rz.T.dot(Ry)[2]


def rodrigues(p):
    theta = norm(p)
    k = p / theta
    K = array([[0, -k[2], k[1]], [k[2], 0, -k[0]], [-k[1], k[0], 0]])
    R = np.eye(3) + sin(theta) * K + (1 - cos(theta)) * K @ K
    return R @ array([1.0, 2.0, 3.0])


def quaternion_product(p):
    w0, x0, y0, z0 = p / la.norm(p)
    w1, x1, y1, z1 = 0.5, 0.5, -0.5, 0.5
    return np.array(
        [
            -x1 * x0 - y1 * y0 - z1 * z0 + w1 * w0,
            x1 * w0 + y1 * z0 - z1 * y0 + w1 * x0,
            -x1 * z0 + y1 * w0 + z1 * x0 + w1 * y0,
            x1 * y0 - y1 * x0 + z1 * w0 + w1 * z0,
        ],
        dtype=np.float64,
    )


def forward_kinematics(p):
    lengths = [1.0, 0.7, 0.4]
    T = np.eye(3)
    for angle, length in zip(p, lengths):  # noqa: B905
        step = np.eye(3)
        step[:2, :2] = rotation_matrix(angle)
        T = T @ step @ np.array([[1, 0, length], [0, 1, 0], [0, 0, 1]])
    return T[:2, 2]


def polygon_area(p):
    xs, ys = [0.0, p[0], p[1], 0.3], [0.0, 0.1, p[2], 1.0]
    area = 0.0
    for i in range(len(xs)):
        j = (i + 1) % len(xs)
        area += xs[i] * ys[j] - xs[j] * ys[i]
    return abs(area) / 2


def haversine(p):
    lat1, lon1, lat2, lon2 = map(math.radians, [p[0], p[1], 40.7, -74.0])
    h = math.sin((lat2 - lat1) / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin((lon2 - lon1) / 2) ** 2
    return 2 * math.asin(math.sqrt(h))


# ----- Statistics and filters -----


def kalman_filter(p):
    F, H = np.array([[1, p[0]], [0, 1]]), np.array([[1.0, 0.0]])
    Q, R = np.eye(2) * p[1], np.array([[p[2]]])
    x, P = np.zeros((2, 1)), np.eye(2)
    estimates = np.zeros(len(SIGNAL[:10]))
    loglik = 0.0
    for k, z in enumerate(SIGNAL[:10]):
        x = F @ x
        P = F @ P @ F.T + Q
        y = z - H @ x
        S = H @ P @ H.T + R
        K = P @ H.T @ inv(S)
        x = x + K @ y
        P = (np.eye(2) - K @ H) @ P
        estimates[k] = x[0, 0]
        loglik += -0.5 * (log(la.det(S)) + float((y.T @ inv(S) @ y)[0, 0]))
    return np.sum(estimates**2) + loglik


def gp_likelihood(p):
    n = len(TIMES)
    K = np.zeros((n, n))
    for i in range(n):
        for j in range(n):
            K[i, j] = p[0] ** 2 * math.exp(-((TIMES[i] - TIMES[j]) ** 2) / (2 * p[1] ** 2))
    K += p[2] ** 2 * np.identity(n)
    L = np.linalg.cholesky(K)
    alpha = np.linalg.solve(L.T, np.linalg.solve(L, np.sin(TIMES)))
    return -0.5 * np.sin(TIMES).dot(alpha) - np.log(np.diag(L)).sum() - n / 2 * log(2 * pi)


def mixture_loglik(p):
    weights = np.exp(p[:2]) / np.exp(p[:2]).sum()
    total = 0.0
    for x in DATA[:, 0]:
        density = 0.0
        for k in range(2):
            density += weights[k] * math.exp(-0.5 * (x - p[2 + k]) ** 2) / sqrt(2 * pi)
        total += math.log(density)
    return total


def ar_residuals(p):
    e = np.zeros(len(SIGNAL))
    for t in range(2, len(SIGNAL)):
        e[t] = SIGNAL[t] - p[0] * SIGNAL[t - 1] - p[1] * SIGNAL[t - 2] - p[2] * e[t - 1]
    return (e**2).mean()


def garch(p):
    omega, alpha, beta = p
    var = np.full(20, SIGNAL.var())
    for t in range(1, 20):
        var[t] = omega + alpha * SIGNAL[t - 1] ** 2 + beta * var[t - 1]
    return 0.5 * np.sum(np.log(var) + SIGNAL[:20] ** 2 / var)


def hmm_forward(p):
    a, b = 1 / (1 + np.exp(-p[:2]))
    A = np.array([[a, 1 - a], [1 - b, b]])
    alpha = np.array([0.5, 0.5])
    loglik = 0
    for s in SIGNAL[:8]:
        like = np.array([exp(-((s - m) ** 2)) for m in (p[2], p[3])])
        alpha = (alpha @ A) * like
        c = alpha.sum()
        alpha /= c
        loglik += np.log(c)
    return loglik


def exponential_smoothing(p):
    level, out = SIGNAL[0], []
    for s in SIGNAL[:12]:
        level = p[0] * s + (1 - p[0]) * level
        out.append(level)
    return np.asarray(out) * p[1]


# ----- Learning -----


class Layer:
    def __init__(self, weights, bias, activation):
        self.weights = np.array(weights)
        self.bias = bias
        self.activation = activation

    def __call__(self, x):
        return self.activation(x @ self.weights + self.bias)


class Network:
    activations = {"tanh": np.tanh, "sigmoid": lambda z: 1 / (1 + np.exp(-z))}

    def __init__(self, p):
        self.layers = [
            Layer(p[:4].reshape(2, 2), p[4:6], self.activations["tanh"]),
            Layer([[p[6]], [p[7]]], p[8], Network.activations["sigmoid"]),
        ]

    def predict(self, x):
        for layer in self.layers:
            x = layer(x)
        return x[:, 0]

    @staticmethod
    def cross_entropy(q, y):
        return -np.mean(y * np.log(q) + (1 - y) * np.log(1 - q))


def neural_network(p):
    network = Network(p)
    return network.cross_entropy(network.predict(DATA), LABELS)


def one_hot_softmax(p):
    logits = DATA @ p.reshape(2, 3)
    shifted = logits - logits.max(axis=1, keepdims=True)
    probabilities = np.exp(shifted) / np.exp(shifted).sum(axis=1, keepdims=True)
    target = np.zeros((len(DATA), 3))
    target[np.arange(len(DATA)), np.arange(len(DATA)) % 3] = 1
    return -np.sum(target * np.log(probabilities)) / len(DATA)


def recurrent_cell(p):
    h = np.zeros((1, 2))
    W = np.vstack([p[:2], p[2:4]])
    states = np.zeros((6, 2))
    for t in range(6):
        h = np.tanh(h @ W + SIGNAL[t] * p[4])
        states[t, :] = h
    return states.mean(axis=0)


def kmeans_cost(p):
    centers = p.reshape(2, 2)
    cost = 0.0
    for x in DATA:
        distances = np.array([np.sum((x - c) ** 2) for c in centers])
        k = np.argmin(distances)
        cost += distances[k]
    return cost / len(DATA)


def gradient_descent_inside(p):
    w = np.zeros(2)
    for _ in range(5):
        w -= p[0] * DATA.T @ (DATA @ w - LABELS) / len(DATA) + p[1] * w
    return w


# ----- Images and signals -----


def blur(p):
    kernel = np.array([[p[0], p[1], p[0]], [p[1], p[2], p[1]], [p[0], p[1], p[0]]])
    kernel = kernel / kernel.sum()
    out = np.zeros((IMAGE.shape[0] - 2, IMAGE.shape[1] - 2))
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = np.sum(IMAGE[i : i + 3, j : j + 3] * kernel)
    return out.var()


def sobel_energy(p):
    img = IMAGE * p[0] + p[1] * IMAGE**2
    gx, gy = numpy.zeros_like(img), numpy.zeros_like(img)
    gx[:, 1:-1] = (img[:, 2:] - img[:, :-2]) / 2
    gy[1:-1, :] = (img[2:, :] - img[:-2, :]) / 2
    return numpy.hypot(gx, gy).sum()


def bilinear_sample(p):
    total = 0.0
    for y, x in [(p[0], p[1]), (p[0] + 2, p[1] + 3)]:
        i, j = int(math.floor(y)), int(np.floor(x))
        fy, fx = y - i, x - j
        corners = IMAGE[i : i + 2, j : j + 2]
        total += float(np.array([1 - fy, fy]) @ corners @ np.array([1 - fx, fx]))
    return total


def iir_filter(p):
    b, a = [p[0], p[1]], [1.0, p[2]]
    y = np.zeros(20)
    for n in range(20):
        y[n] = b[0] * SIGNAL[n]
        if n >= 1:
            y[n] += b[1] * SIGNAL[n - 1] - a[1] * y[n - 1]
    return y @ y


def discrete_fourier(p):
    x = p[0] * SIGNAL[:8] ** 2 + p[1]
    power = np.zeros(8)
    for k in range(8):
        total = 0j
        for n in range(8):
            total += x[n] * cmath.exp(-2j * cmath.pi * k * n / 8)
        power[k] = abs(total) ** 2
    return power


# ----- Polynomials, quadrature, root finding -----


def horner(p):
    result = 0.0
    for c in reversed(p):
        result = result * 1.7 + c
    return result


def chebyshev_series(p):
    x = 0.3
    T = [1.0, x]
    for _ in range(len(p) - 2):
        T.append(2 * x * T[-1] - T[-2])
    return np.dot(np.array(T), p)


def lagrange_interpolation(p):
    xs, total = np.linspace(0, 1, len(p)), 0
    for j, y in enumerate(p):
        basis = np.prod([(0.37 - m) / (xs[j] - m) for i, m in enumerate(xs) if i != j])
        total = total + y * basis
    return total


def simpson(p):
    x = np.linspace(0, p[0], 21)
    y = np.array([sin(p[1] * t) * exp(-t) for t in x])
    h = (x[-1] - x[0]) / 20
    return h / 3 * (y[0] + y[-1] + 4 * y[1:-1:2].sum() + 2 * y[2:-1:2].sum())


def gauss_legendre(p):
    nodes, weights = np.polynomial.legendre.leggauss(8)
    return sum(w * math.tanh(p[0] * t) * t**2 + w * math.erf(p[1] * t) ** 2 for t, w in zip(nodes, weights))  # noqa: B905


def newton_root(p):
    x = 1.0
    for _ in range(12):
        f = x**3 + p[0] * x - p[1]
        if abs(f) < 1e-13:
            break
        x = x - f / (3 * x**2 + p[0])
    return x


def bisection_then_polish(p):
    low, high = 0.0, 3.0
    while high - low > 1e-3:
        middle = 0.5 * (low + high)
        if middle * math.exp(middle) > p[0]:
            high = middle
        else:
            low = middle
    w = middle
    for _ in range(3):
        w = w - (w * math.exp(w) - p[0]) / (math.exp(w) * (w + 1))
    return w


def cubic_spline_second_derivatives(p):
    n = len(p)
    A, rhs = zeros((n, n)), zeros(n)
    A[0, 0] = A[-1, -1] = 1
    for i in range(1, n - 1):
        A[i, i - 1 : i + 2] = [1, 4, 1]
        rhs[i] = 6 * (p[i + 1] - 2 * p[i] + p[i - 1])
    return la.solve(A, rhs)


SNIPPETS = {
    pendulum_euler: [0.5, 0.1, 1.2],
    predators: [1.1, 0.4, 0.1, 0.4],
    heat_explicit: [1.5, 0.2],
    wave_leapfrog: [0.4, 0.15],
    crank_nicolson: [0.4, 1.3],
    thomas_algorithm: [0.7, 1.1],
    jacobi_iteration: [1.0, -0.5],
    rotate_points: [0.6, 1.2, -0.7],
    euler_angles: [0.3, -0.4, 1.1],
    rodrigues: [0.4, -0.2, 0.9],
    quaternion_product: [0.8, 0.1, -0.3, 0.5],
    forward_kinematics: [0.2, -0.7, 0.4],
    polygon_area: [1.0, 1.2, 0.9],
    haversine: [51.5, -0.1],
    kalman_filter: [0.9, 0.1, 0.3],
    gp_likelihood: [1.1, 0.5, 0.2],
    mixture_loglik: [0.1, -0.2, -1.0, 0.8],
    ar_residuals: [0.5, 0.2, 0.1],
    garch: [0.1, 0.15, 0.6],
    hmm_forward: [0.4, 0.9, -0.5, 0.7],
    exponential_smoothing: [0.3, 2.0],
    neural_network: [0.3, -0.5, 0.8, 0.2, 0.1, -0.1, 0.7, -0.4, 0.05],
    one_hot_softmax: [0.2, -0.1, 0.4, 0.3, 0.0, -0.6],
    recurrent_cell: [0.5, -0.3, 0.2, 0.4, 0.9],
    kmeans_cost: [-0.5, 0.1, 0.9, 0.2],
    gradient_descent_inside: [0.1, 0.05],
    blur: [1.0, 2.0, 4.0],
    sobel_energy: [0.8, 0.3],
    bilinear_sample: [2.3, 4.6],
    iir_filter: [0.4, 0.3, -0.2],
    discrete_fourier: [0.7, 0.2],
    horner: [1.0, -0.5, 0.25, 2.0],
    chebyshev_series: [0.5, -1.0, 0.3, 0.2, 0.9],
    lagrange_interpolation: [0.2, 0.5, -0.3, 1.0],
    simpson: [2.0, 3.0],
    gauss_legendre: [1.3, 0.6],
    newton_root: [2.0, 5.0],
    bisection_then_polish: [2.5],
    cubic_spline_second_derivatives: [0.0, 0.5, 0.2, 0.9, 1.0],
}
"""Each function with parameters to try it at."""
