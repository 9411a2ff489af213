"""Rows for short programs: loops, branches, recurrences, integrators and solvers, in plain Python and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import nbgrad as nb

from .operation import apart, between, given, operation, real, regular


def branch(x: Any) -> Any:
    """Another formula on each side of 1."""
    return np.sin(x) * x if x > 1 else x**3


def switch(x: Any) -> Any:
    return [np.sin, np.cos, np.tanh][int(np.floor(x)) % 3](x) * x


def while_loop(x: Any) -> Any:
    while np.sum(x * x) < 50:
        x = x * 1.5 + 0.1
    return x


def until_converged(a: Any) -> Any:
    """A square root by Newton's method: the loop ends when the step is small."""
    x = a
    for _ in range(50):
        step = (x * x - a) / (2 * x)
        x = x - step
        if np.all(np.abs(step) < 1e-13):
            break
    return x


def scan(c: Any, xs: Any) -> Any:
    """A carried value and one result per step."""
    outputs = []
    for x in xs:
        c = np.sin(c * np.mean(x)) + c
        outputs.append(np.cos(c) * np.sum(x))
    return c, np.stack(outputs)


def recurrent(w: Any, u: Any, xs: Any, h: Any) -> Any:
    for x in xs:
        h = np.tanh(w @ h + u @ x)
    return h


def runge_kutta(f: Any, y: Any, h: float, steps: int) -> Any:
    """The classical method of fourth order."""
    for _ in range(steps):
        a = f(y)
        b = f(y + h / 2 * a)
        c = f(y + h / 2 * b)
        y = y + h / 6 * (a + 2 * b + 2 * c + f(y + h * c))
    return y


def pendulum(y: Any, friction: Any) -> Any:
    """An angle and its velocity after some time; the right-hand side stacks its parts."""
    return runge_kutta(lambda s: np.stack([s[1], -friction * s[1] - 9.8 * np.sin(s[0])]), y, 0.05, 8)


def oscillator(y: Any, k: Any) -> Any:
    """A complex exponential by steps."""
    return runge_kutta(lambda s: 1j * k * s, y, 0.1, 6)


def swoop(y: Any, a: Any, b: Any) -> Any:
    return runge_kutta(lambda s: np.array([1.0, -0.5]) * s - np.sin(a * s) + b, y, 0.1, 5)


def newton(a: Any, b: Any) -> Any:
    """The root of a nonlinear system, by Newton's method with the Jacobian on paper."""
    x = b * 0.1
    for _ in range(12):
        jacobian = a + 3 * np.diag(x * x)
        x = x - np.linalg.solve(jacobian, a @ x + x**3 - b)
    return x


def conjugate_gradients(a: Any, b: Any) -> Any:
    """The solution of a symmetric positive definite system."""
    a = a @ a.T + np.eye(3)
    x, r = b * 0.0, b
    p, rr = r, r @ r
    for _ in range(3):
        ap = a @ p
        step = rr / (p @ ap)
        x, r = x + step * p, r - step * ap
        rr, old = r @ r, rr
        p = r + rr / old * p
    return x


def alignments(x: Any) -> Any:
    """Minus the log-likelihood of the labels 1, 2 in a sequence of scores, of which 0 is the blank: connectionist
    temporal classification (Graves et al. 2006), by dynamic programming."""
    scores = x - np.log(np.sum(np.exp(x), axis=1, keepdims=True))
    states = np.array([0, 1, 0, 2, 0])
    outside = np.full(1, -1e30)
    level = np.where([True, True, False, False, False], scores[0][states], -1e30)
    for row in scores[1:]:
        one = np.concatenate([outside, level[:-1]])
        two = np.where([False, False, False, True, False], np.concatenate([outside, outside, level[:-2]]), -1e30)
        level = np.logaddexp(np.logaddexp(level, one), two) + row[states]
    return -np.logaddexp(level[-1], level[-2])


def unpooled(x: Any) -> Any:
    """Maxima of pairs, put back to where they were."""
    pairs = x.reshape(3, 2)
    places = np.argmax(pairs, axis=1) + np.array([0, 2, 4])
    z = x * 0.0
    z[places] = np.max(pairs, axis=1) ** 2
    return z


def spread_volume(x: Any, w: Any) -> Any:
    """The transpose of a correlation of volumes, by additions to slices."""
    z = np.pad(x[0, 0, 0] * w * 0.0, ((0, 1), (0, 2), (0, 1)))
    for i in range(2):
        for j in range(3):
            for k in range(2):
                z[i : i + 2, j : j + 2, k : k + 2] += x[i, j, k] * w
    return z


def kalman(f: Any, q: Any, ys: Any) -> Any:
    """The likelihood of a local linear model."""
    m, p, total = np.zeros(2), np.eye(2), 0.0
    h = np.array([1.0, 0.0])
    for y in ys:
        m, p = f @ m, f @ p @ f.T + q * np.eye(2)
        s = h @ p @ h + 0.5
        gain = p @ h / s
        total = total + np.log(s) + (y - h @ m) ** 2 / s
        m, p = m + gain * (y - h @ m), p - np.outer(gain, h @ p)
    return total


OPERATIONS = [
    operation(
        "a branch",
        branch,
        between(1.2, 1.5),
        between(0.3, 0.8),
        peers=(
            "jax:testCondGrad jax:testCondJVP jax:testCondGrad2 jax:test_dce_jaxpr_cond_nontrivial "
            "jax:test_dce_jaxpr_cond_trivial"
        ),
        dtypes=("float32",),
        compiled=False,
    ),
    operation(
        "branches inside where",
        lambda x: np.where(x > 1, np.sin(x) * x, x**3),
        between(1.2, 1.5),
        between(0.3, 0.8),
        peers="jax:testCondGrad",
    ),
    operation(
        "a switch",
        switch,
        given(1.3),
        given(2.6),
        peers="jax:testSwitchGrad jax:testSwitchJVP jax:testSwitchGradWithForwarding",
        compiled=False,
        dtypes=("float32",),
    ),
    operation(
        "a while loop",
        while_loop,
        given([1.0, 2.0]),
        given([[1.0, 2.0, 0.3], [0.5, 0.2, 1.0], [1.0, 1.0, 1.0]]),
        peers="jax:testWhileJVP jax:testWhileJVPViaForiLoop jax:testWhileJVPWithGrowingNonzeroTangents",
        compiled=False,
        dtypes=("float32",),
    ),
    operation(
        "a loop until convergence",
        until_converged,
        given([2.0, 3.0]),
        peers="jax:test_custom_root_scalar jax:sqrt_cubed",
        compiled=False,
        dtypes=(),
    ),
    operation(
        "a scan",
        scan,
        (real(4), real(5, 3)),
        peers="jax:testScanGrad jax:testScanJVP jax:testScanHigherOrderDifferentiation",
        dtypes=("float32",),
    ),
    operation(
        "a recurrent network",
        recurrent,
        (real(3, 3), real(3, 2), real(4, 2), real(3)),
        peers="jax:testScanRnn",
        dtypes=("float32",),
    ),
    operation(
        "a recurrence of products",
        lambda xs, c: [c * np.prod(xs[: k + 1], axis=0) for k in range(3)],
        (real(3, 2), real()),
        peers="jax:test_custom_vjp_scan_batching_edge_case",
        dtypes=("float32",),
    ),
    operation(
        "exponential decay",
        lambda y, a: runge_kutta(lambda s: -np.abs(a) * s, y, 0.1, 6),
        (real(3), real(3)),
        peers="jax:test_decay jax:test_pytree_state jax:test_grad_closure",
        dtypes=("float32",),
    ),
    operation(
        "a pendulum",
        pendulum,
        (real(2), between(0.1, 1)),
        peers="jax:test_pend_grads jax:test_weird_time_pendulum_grads",
        dtypes=("float32",),
    ),
    operation(
        "a swoop",
        swoop,
        (real(2), between(0.1, 1), between(0.1, 1)),
        peers="jax:test_swoop jax:test_swoop_bigger",
        dtypes=("float32",),
    ),
    operation(
        "a complex oscillator", oscillator, (real(2), between(0.1, 1)), peers="jax:test_complex_odeint", dtypes=()
    ),
    operation(
        "a root by Newton's method",
        newton,
        (regular(3, 3), real(3)),
        peers=(
            "jax:test_custom_root_vector_nonlinear jax:test_custom_root_vector_with_solve_closure "
            "jax:test_custom_root_with_aux jax:test_custom_root_with_custom_linear_solve"
        ),
        dtypes=("float32",),
        tolerance=1e-6,
    ),
    operation(
        "conjugate gradients",
        conjugate_gradients,
        (regular(3, 3), real(3)),
        peers=(
            "jax:test_custom_linear_solve_iterative jax:test_custom_linear_solve_without_transpose_solve "
            "jax:test_custom_linear_solve jax:test_custom_linear_solve_lu jax:test_custom_linear_solve_aux "
            "jax:test_custom_linear_solve_new_remat"
        ),
        dtypes=(),
        tolerance=1e-5,
    ),
    operation(
        "a solution by Cholesky's factor",
        lambda a, b: np.linalg.solve(np.linalg.cholesky(a @ a.T + np.eye(2)), b),
        (regular(2, 2), real(2)),
        peers="jax:test_custom_linear_solve_cholesky",
        dtypes=("float32",),
        tolerance=1e-6,
    ),
    operation(
        "a complex system",
        lambda a, b: np.linalg.solve(a + 1j * a.T, b),
        (regular(2, 2), real(2)),
        peers="jax:test_custom_linear_solve_complex",
        dtypes=(),
        tolerance=1e-6,
    ),
    operation(
        "alignments of a sequence", alignments, real(4, 3), peers="torch:nn.functional.ctc_loss", dtypes=("float32",)
    ),
    operation(
        "unpooling",
        unpooled,
        apart(6),
        peers="torch:nn.functional.max_unpool1d torch:nn.functional.max_unpool2d torch:nn.functional.max_unpool3d",
    ),
    operation(
        "a transposed convolution of volumes",
        spread_volume,
        (real(2, 3, 2), real(2, 2, 2)),
        peers="torch:nn.functional.conv_transpose3d",
        complexes=True,
    ),
    operation(
        "a Kalman filter", kalman, (regular(2, 2), between(0.1, 1), real(3)), dtypes=("float32",), tolerance=1e-6
    ),
    operation(
        "maximum and minimum of pairs",
        lambda x, y: (np.maximum(x, y), np.where(x > y, y * x, x)),
        (given([[1.0, 4.0], [2.0, 3.0]]), given([[2.0, 1.0], [5.0, 0.5]])),
        peers="jax:testReducePairGrad",
    ),
    operation(
        "jit inside",
        lambda x, y, z: nb.jit(lambda a, b, c: a * b + np.sin(c))(x, y, z),
        (real(), real(), real()),
        reference=lambda x, y, z: x * y + np.sin(z),
        peers="jax:test_jit_forwarding_correctness",
    ),
    operation(
        "vmap inside",
        lambda x: nb.vmap(lambda r: np.sum(r * np.sin(r)))(x),
        real(3, 4),
        reference=lambda x: np.sum(x * np.sin(x), axis=1),
        peers="jax:test_closure_with_vmap",
    ),
]
