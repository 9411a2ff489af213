"""
A periodic orbit of three bodies
================================

Three equal masses chase each other along one figure of eight. The velocities for which they come back are found by
Newton's method from a guess nearby: the Jacobian of 2000 leapfrog steps by the velocity and the period is one
program.
"""

import matplotlib.pyplot as plt
import numpy as np

import nbgrad as nb

start = np.array([[-0.97000436, 0.24308753], [0.97000436, -0.24308753], [0.0, 0.0]])


def pull(x):
    """Accelerations of three unit masses."""
    apart = x[None, :, :] - x[:, None, :]
    distance = np.sum(apart**2, axis=2) + np.eye(3)
    return np.sum(apart * distance[:, :, None] ** -1.5, axis=1)


def path(unknown, steps):
    """All positions, and the last velocities, of one period."""
    v = np.stack([unknown[:2], unknown[:2], -2.0 * unknown[:2]])
    x, dt, positions = start + 0.0 * v, unknown[2] / steps, []
    for _ in range(steps):
        v = v + 0.5 * dt * pull(x)
        x = x + dt * v
        v = v + 0.5 * dt * pull(x)
        positions.append(x)
    return positions, v


def opening(unknown):
    """The differences between the end and the start: positions of two bodies, and a velocity."""
    positions, v = path(unknown, 2000)
    return np.concatenate([(positions[-1] - start)[:2].ravel(), v[0] - unknown[:2]])


jacobian = nb.jit(nb.jacfwd(opening))
unknown, gaps = np.array([0.468, 0.43, 6.33]), []
for _ in range(6):
    gap = opening(unknown)
    gaps.append(np.abs(gap).max())
    unknown = unknown - np.linalg.lstsq(jacobian(unknown), gap)[0]
print(f"velocity ({unknown[0]:.6f}, {unknown[1]:.6f}), period {unknown[2]:.6f}; gaps {np.array(gaps)}")

# %%
# Chenciner and Montgomery (Annals of Mathematics 152, 2000) print the velocity and the period.

np.testing.assert_allclose(unknown, [0.93240737 / 2, 0.86473146 / 2, 6.32591398], rtol=1e-3)

positions = np.array(path(unknown, 2000)[0])
plt.figure(figsize=(6, 3))
plt.plot(*positions[:, 0].T, "0.7", *positions[::400].reshape(-1, 2).T, "o")
plt.axis("equal")
plt.show()
