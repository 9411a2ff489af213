"""
An image from diffraction patterns
==================================

A camera sees intensities only; the phases are lost. From five patterns, each taken through another random mask, the
complex image comes back by a gradient through `np.fft.fft2`. Gradients by complex numbers z = x + iy are dL/dx + i
dL/dy.
"""

import matplotlib.pyplot as plt
import numpy as np

import nbgrad as nb
from nbgrad import optim

rng = np.random.default_rng(0)
size = 32
y, x = np.mgrid[:size, :size] / size - 0.5
truth = (np.hypot(x, y) < 0.35) * (1.0 + 0.5 * np.sin(20.0 * x)) * np.exp(2j * np.cos(9.0 * y))
masks = np.exp(2j * np.pi * rng.random((5, size, size)))


def patterns(image):
    """The intensities of all patterns."""
    return np.abs(np.fft.fft2(masks * image, norm="ortho")) ** 2


seen = patterns(truth)


def misfit(parts):
    """The mean square of the differences; real and imaginary part are the unknowns."""
    return np.mean((patterns(parts[0] + 1j * parts[1]) - seen) ** 2)


fit = optim.lbfgs(misfit, 0.1 * rng.standard_normal((2, size, size)), maxiter=400)
image = fit.x[0] + 1j * fit.x[1]
image = image * np.exp(1j * np.angle(np.vdot(image, truth)))  # one phase of the whole image cannot be seen
print(f"{fit.nfev} evaluations, largest difference {np.abs(image - truth).max():.1e}")
assert np.abs(image - truth).max() < 1e-2

# %%
# The gradient by the complex image itself is that of a difference quotient along any direction.

z, way = truth + 0.3, rng.standard_normal((size, size)) + 1j * rng.standard_normal((size, size))
loss = lambda z: np.mean((patterns(z) - seen) ** 2)  # noqa: E731
slope = (loss(z + 1e-5 * way) - loss(z - 1e-5 * way)) / 2e-5
np.testing.assert_allclose(np.vdot(nb.grad(loss)(z), way).real, slope, rtol=1e-6)

figure, axes = plt.subplots(1, 3, figsize=(8, 2.8))
for axis, shown, title in zip(
    axes, (np.log1p(seen[0]), np.abs(image), np.angle(image)), ("a pattern", "modulus", "phase"), strict=True
):
    axis.imshow(shown)
    axis.set_title(title)
    axis.axis("off")
plt.show()
