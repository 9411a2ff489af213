"""
Hamiltonian Monte Carlo
=======================

A sampler follows the gradient of a log density. The density is plain NumPy, the leapfrog steps are a Python loop that
`nb.jit` compiles, and `nb.vmap` runs 200 chains side by side.
"""

import matplotlib.pyplot as plt
import numpy as np

import nbgrad as nb


def energy(q):
    """Minus the log density of a banana: y is normal around x squared."""
    return 0.5 * q[0] ** 2 + 0.5 * ((q[1] - q[0] ** 2) / 0.5) ** 2


force = nb.grad(energy)


def proposal(q, p, step):
    """A state after 25 leapfrog steps, and the change of the total energy."""
    before = energy(q) + 0.5 * np.sum(p**2)
    p = p - 0.5 * step * force(q)
    for _ in range(25):
        q = q + step * p
        p = p - step * force(q)
    p = p + 0.5 * step * force(q)
    return q, energy(q) + 0.5 * np.sum(p**2) - before


chains = nb.jit(nb.vmap(proposal, in_axes=(0, 0, None)))
rng = np.random.default_rng(0)
q, samples, taken = np.zeros((200, 2)), [], []
for _ in range(600):
    new, change = chains(q, rng.standard_normal((200, 2)), 0.1 * rng.uniform(0.7, 1.3))
    accepted = np.log(rng.random(200)) < -change
    q = np.where(accepted[:, None], new, q)
    samples.append(q)
    taken.append(accepted.mean())
samples = np.concatenate(samples[100:])
print(f"{np.mean(taken):.0%} accepted, {len(samples)} samples")

# %%
# Moments on paper: x is standard normal; y has the mean 1 and the variance 2.25.

np.testing.assert_allclose(samples.mean(axis=0), [0.0, 1.0], atol=0.05)
np.testing.assert_allclose(samples.var(axis=0), [1.0, 2.25], rtol=0.1)

plt.figure(figsize=(5, 4))
plt.plot(*samples[::20].T, ".", markersize=2, alpha=0.5)
plt.xlabel("x")
plt.ylabel("y")
plt.show()
