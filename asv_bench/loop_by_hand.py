"""The gradient of Runge-Kutta's method as an expert writes it in Numba: the states are kept, the stages done again."""

import numba
import numpy as np


@numba.njit
def _slope(x, y, z, a, b, c):
    return a * (y - x), x * (b - z) - y, x * y - c * z


@numba.njit
def _pull(x, y, z, a, b, c, g0, g1, g2):
    """The cotangents of a slope's six arguments."""
    gx = -a * g0 + (b - z) * g1 + y * g2
    gy = a * g0 - g1 + x * g2
    gz = -x * g1 - c * g2
    return gx, gy, gz, (y - x) * g0, x * g1, -z * g2


@numba.njit
def rk4_gradient(u, p, turns):
    """The sum of squares of the last state, and its slopes by the first state and the parameters."""
    h = 0.01
    a, b, c = p[0], p[1], p[2]
    kept = np.empty((turns, 3))
    x, y, z = u[0], u[1], u[2]
    for k in range(turns):
        kept[k, 0], kept[k, 1], kept[k, 2] = x, y, z
        a0, a1, a2 = _slope(x, y, z, a, b, c)
        b0, b1, b2 = _slope(x + h / 2 * a0, y + h / 2 * a1, z + h / 2 * a2, a, b, c)
        c0, c1, c2 = _slope(x + h / 2 * b0, y + h / 2 * b1, z + h / 2 * b2, a, b, c)
        d0, d1, d2 = _slope(x + h * c0, y + h * c1, z + h * c2, a, b, c)
        x += h / 6 * (a0 + 2 * b0 + 2 * c0 + d0)
        y += h / 6 * (a1 + 2 * b1 + 2 * c1 + d1)
        z += h / 6 * (a2 + 2 * b2 + 2 * c2 + d2)
    value = x * x + y * y + z * z
    g0, g1, g2 = 2 * x, 2 * y, 2 * z
    ga = gb = gc = 0.0
    for k in range(turns - 1, -1, -1):
        x, y, z = kept[k, 0], kept[k, 1], kept[k, 2]
        a0, a1, a2 = _slope(x, y, z, a, b, c)
        b0, b1, b2 = _slope(x + h / 2 * a0, y + h / 2 * a1, z + h / 2 * a2, a, b, c)
        c0, c1, c2 = _slope(x + h / 2 * b0, y + h / 2 * b1, z + h / 2 * b2, a, b, c)
        s0, s1, s2 = h / 6 * g0, h / 6 * g1, h / 6 * g2
        d = _pull(x + h * c0, y + h * c1, z + h * c2, a, b, c, s0, s1, s2)
        e = _pull(
            x + h / 2 * b0,
            y + h / 2 * b1,
            z + h / 2 * b2,
            a,
            b,
            c,
            2 * s0 + h * d[0],
            2 * s1 + h * d[1],
            2 * s2 + h * d[2],
        )
        m = h / 2
        f = _pull(x + m * a0, y + m * a1, z + m * a2, a, b, c, 2 * s0 + m * e[0], 2 * s1 + m * e[1], 2 * s2 + m * e[2])
        q = _pull(x, y, z, a, b, c, s0 + m * f[0], s1 + m * f[1], s2 + m * f[2])
        g0 += d[0] + e[0] + f[0] + q[0]
        g1 += d[1] + e[1] + f[1] + q[1]
        g2 += d[2] + e[2] + f[2] + q[2]
        ga += d[3] + e[3] + f[3] + q[3]
        gb += d[4] + e[4] + f[4] + q[4]
        gc += d[5] + e[5] + f[5] + q[5]
    return value, (np.array([g0, g1, g2]), np.array([ga, gb, gc]))
