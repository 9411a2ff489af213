"""
Registration of two images
==========================

One image is the other, turned, shifted and stretched. `scipy.ndimage.map_coordinates` is differentiated by the places
that it samples, so that Gauss-Newton steps find the six numbers of the map. The function is plain SciPy;
`nb.differentiable_source` runs it on recorded values.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage

import nbgrad as nb

size = 48
grid = np.mgrid[:size, :size] - size / 2.0
inner = (slice(8, -8), slice(8, -8))


def cells(places):
    """Something to look at, at any places: a smooth picture of rings and stripes."""
    y, x = places
    return np.cos(0.5 * np.hypot(x - 3.0, y + 2.0)) + np.sin(0.45 * x + 0.1 * y)


def moved(image, p):
    """An image, sampled at other places by cubic splines."""
    y, x = grid
    places = [size / 2.0 + p[0] * y + p[1] * x + p[2], size / 2.0 + p[3] * y + p[4] * x + p[5]]
    return ndimage.map_coordinates(image, places, order=3)


c, s = 1.05 * np.cos(0.2), 1.05 * np.sin(0.2)
truth = np.array([c, -s, 1.5, s, c, -2.0])
image = cells(grid)
other = cells(np.tensordot(truth.reshape(2, 3)[:, :2], grid, 1) + truth[[2, 5], None, None])


def misfit(p):
    """Differences of brightness, without the border: many, by six numbers, so that forward mode is the one to take."""
    return (moved(image, p) - other)[inner].ravel()


jacobian = nb.jit(nb.jacfwd(nb.differentiable_source(misfit)))
p, sizes = np.array([1.0, 0.0, 0.0, 0.0, 1.0, 0.0]), []
for _ in range(12):
    sizes.append(np.linalg.norm(misfit(p)))
    p = p - np.linalg.lstsq(jacobian(p), misfit(p))[0]
print(p.round(3), truth.round(3), sep="\n")
np.testing.assert_allclose(p, truth, atol=5e-3)

figure, axes = plt.subplots(1, 4, figsize=(9, 2.6))
pictures = {"image": image, "other": other, "image, moved": moved(image, p)}
for axis, title in zip(axes, pictures, strict=False):
    axis.imshow(pictures[title])
    axis.set_title(title)
axes[3].semilogy(sizes)
figure.tight_layout()
plt.show()
