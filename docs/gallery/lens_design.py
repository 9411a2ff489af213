"""
Design of a lens
================

Rays from far away are traced through a lens whose back side is curved. `nb.optim.levenberg_marquardt` bends it until
they meet in one point 100 mm behind: by the curvature, and by how far the side is from a sphere.
"""

import matplotlib.pyplot as plt
import numpy as np

from nbgrad import optim

index, thickness, focus = 1.5, 30.0, 100.0
heights = np.linspace(0.5, 20.0, 40)


def surface(y, shape):
    """The depth of the back side at a height, and its slope: a conic with its curvature and its constant."""
    curvature, conic = shape["curvature"] / 100.0, shape["conic"]
    root = np.sqrt(1.0 - (1.0 + conic) * curvature**2 * y**2)
    return -curvature * y**2 / (1.0 + root), -curvature * y / root


def misses(shape):
    """The heights at which rays, parallel within the glass, arrive at the focal plane."""
    depth, slope = surface(heights, shape)
    normal = np.arctan(slope)  # of the side, against the axis
    out = np.arcsin(index * np.sin(-normal)) + normal  # Snell's law: the ray is bent towards the axis
    return heights - np.tan(out) * (focus - depth)


sphere = optim.levenberg_marquardt(lambda c: misses({"curvature": c, "conic": 0.0}), 2.0)
best = optim.levenberg_marquardt(misses, {"curvature": 2.0, "conic": 0.0}, ftol=1e-15, xtol=1e-12)
print(f"a sphere misses by {np.abs(sphere.fun).max():.2f} mm, a conic by {np.abs(best.fun).max():.1e} mm: {best.x}")

# %%
# Descartes knew in 1637 that a hyperbola does it: its conic constant is minus the square of the refractive index, and
# the radius follows from the focal length.

np.testing.assert_allclose(best.x["conic"], -(index**2), rtol=1e-6)
np.testing.assert_allclose(100.0 / best.x["curvature"], focus * (index - 1.0), rtol=1e-6)

plt.figure(figsize=(8, 3))
for y, miss in zip(np.append(-heights, heights)[::5], np.append(-best.fun, best.fun)[::5], strict=True):
    plt.plot([-thickness, surface(y, best.x)[0], focus], [y, y, miss], "C1", linewidth=0.7)
edge = np.linspace(-22.0, 22.0, 99)
side = surface(edge, best.x)[0]
plt.fill_betweenx(edge, np.full(99, -thickness), side, color="C0", alpha=0.3)
plt.xlabel("mm")
plt.tight_layout()
plt.show()
