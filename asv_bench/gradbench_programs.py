"""The objectives of GradBench in NumPy, for gradbench_beside.py.

In: arrays of GradBench's inputs. Out: what its functions give: directions, gradients, Jacobians, made by nbgrad of
functions that are written as a NumPy user would write them. The formulas are those of ADBench (Srajer, Kukelova and
Fitzgibbon 2018) and GradBench.
"""

import numpy as np

import nbgrad as nb
from nbgrad.numpy import array

# ----- k-means: the step of Newton's method -----


def kmeans_cost(centroids, points):
    distances = np.sum((points[:, None, :] - centroids) ** 2, axis=-1)
    return np.sum(np.min(distances, axis=1))


@nb.jit
def kmeans_direction(centroids, points):
    gradient = nb.grad(lambda c: kmeans_cost(c, points))
    slope, curvature = nb.jvp(gradient, (centroids,), (np.ones_like(centroids),))
    return slope / curvature


# ----- Bundle adjustment: the sparse Jacobian -----


def rotated(turn, x):
    """Rodrigues' formula, by the axis times the angle."""
    squared = np.sum(turn * turn, axis=-1, keepdims=True)
    angle = np.sqrt(np.where(squared == 0, 1.0, squared))
    axis = turn / angle
    along = axis * np.sum(axis * x, axis=-1, keepdims=True)
    full = x * np.cos(angle) + np.cross(axis, x) * np.sin(angle) + along * (1 - np.cos(angle))
    return np.where(squared == 0, x + np.cross(turn, x), full)


def reprojection(cameras, points, weights, observed, features):
    """(observations, 2): how far points appear from the features, by cameras of 11 parameters."""
    camera, point = cameras[observed[:, 0]], points[observed[:, 1]]
    local = rotated(camera[:, :3], point - camera[:, 3:6])
    flat = local[:, :2] / local[:, 2:]
    radius = np.sum(flat * flat, axis=1, keepdims=True)
    flat = flat * (1 + camera[:, 9:10] * radius + camera[:, 10:11] * radius**2)
    return weights[:, None] * (flat * camera[:, 6:7] + camera[:, 7:9] - features)


def bundle_jacobian(observed, features):
    def residuals(cameras, points, weights):
        return reprojection(cameras, points, weights, observed, features).ravel(), 1 - weights**2

    return nb.sparse_jacobian(residuals, (0, 1, 2))


# ----- Hand tracking: the Jacobian by 26 parameters, and by two of each point -----


def rotation(v):
    """(3, 3): the rotation about an axis times the angle."""
    angle = np.sqrt(np.sum(v * v))
    x, y, z = v / angle
    s, c = np.sin(angle), np.cos(angle)
    return array(
        [
            [x * x + (1 - x * x) * c, x * y * (1 - c) - z * s, x * z * (1 - c) + y * s],
            [x * y * (1 - c) + z * s, y * y + (1 - y * y) * c, y * z * (1 - c) - x * s],
            [x * z * (1 - c) - y * s, y * z * (1 - c) + x * s, z * z + (1 - z * z) * c],
        ]
    )


def joint(angles):
    """(4, 4): rotations about x, then y, then z, by angles in the order x, z, y."""
    (cx, cz, cy), (sx, sz, sy) = np.cos(angles), np.sin(angles)
    about_x = array([[1.0, 0.0, 0.0], [0.0, cx, -sx], [0.0, sx, cx]])
    about_y = array([[cy, 0.0, sy], [0.0, 1.0, 0.0], [-sy, 0.0, cy]])
    about_z = array([[cz, -sz, 0.0], [sz, cz, 0.0], [0.0, 0.0, 1.0]])
    turn = np.concatenate([about_z @ about_y @ about_x, np.zeros((3, 1))], axis=1)
    return np.concatenate([turn, array([[0.0, 0.0, 0.0, 1.0]])])


def bone_angles(theta, bones):
    """The angles of each bone: of three bones of five fingers, the first of which turn in two ways."""
    angles = [np.zeros(3)] * bones
    place, bone = 6, 2
    for _ in range(5):
        angles[bone] = array([theta[place], theta[place + 1], 0.0])
        angles[bone + 1] = array([theta[place + 2], 0.0, 0.0])
        angles[bone + 2] = array([theta[place + 3], 0.0, 0.0])
        place, bone = place + 4, bone + 4
    return angles


def hand_vertices(theta, model):
    absolute = []
    for k, angles in enumerate(bone_angles(theta, len(model["parents"]))):
        relative = model["base_relatives"][k] @ joint(angles)
        parent = model["parents"][k]
        absolute.append(relative if parent == -1 else absolute[parent] @ relative)
    transforms = np.stack(absolute) @ model["inverse_base_absolutes"]
    moved = np.einsum("bij,vj,vb->vi", transforms[:, :3], model["base_positions"], model["weights"])
    return moved @ rotation(theta[:3]).T + theta[3:6]


def hand_jacobian(model, points, corners):
    """By what moves all barycentric coordinates alike, as each row depends on its own, and by the pose."""

    def residuals(z, us):
        vertices, u = hand_vertices(z[2:], model), us + z[:2]
        first, second, third = (vertices[corners[:, k]] for k in range(3))
        return points - (u[:, :1] * first + u[:, 1:] * second + (1 - u[:, :1] - u[:, 1:]) * third)

    return nb.jit(lambda theta, us: nb.jacfwd(residuals)(np.concatenate([np.zeros(2), theta]), us))


# ----- A mixture of Gaussians -----


def logsumexp(x):
    top = np.max(x, axis=-1, keepdims=True)
    return np.log(np.sum(np.exp(x - top), axis=-1)) + top[..., 0]


def mixture(alpha, mu, q, below, x, gamma, m, constant):
    """The logarithm of the posterior; `below` has the elements under the diagonals, column by column."""
    k, d = mu.shape
    count = d * (d - 1) // 2
    columns, rows = np.triu_indices(d, 1)
    where = np.full((d, d), count)
    where[rows, columns] = np.arange(count)
    extended = np.concatenate([below, np.zeros((k, 1))], axis=1)
    factor = extended[:, where] + np.exp(q)[:, :, None] * np.eye(d)
    scaled = np.einsum("kij,nkj->nki", factor, x[:, None, :] - mu)
    sums = np.sum(q, axis=1)
    likelihood = np.sum(logsumexp(alpha + sums - 0.5 * np.sum(scaled**2, axis=-1))) - len(x) * logsumexp(alpha)
    prior = 0.5 * gamma**2 * (np.sum(np.exp(q) ** 2) + np.sum(below**2)) - m * np.sum(sums)
    return constant + likelihood - prior


mixture_gradient = nb.jit(nb.grad(mixture, (0, 1, 2, 3)))

# ----- A recurrent network, least squares, logarithms of sums, determinants -----


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def recurrent_loss(main, extra, state, sequence):
    layers, b = len(main) // 2, sequence.shape[1]
    states = [(state[2 * k], state[2 * k + 1]) for k in range(layers)]
    total = 0.0
    for t in range(len(sequence) - 1):
        out = sequence[t] * extra[0]
        for k in range(layers):
            hidden, cell = states[k]
            w, bias = main[2 * k].reshape(4, b), main[2 * k + 1].reshape(4, b)
            forget, ingate = sigmoid(out * w[0] + bias[0]), sigmoid(hidden * w[1] + bias[1])
            outgate, change = sigmoid(out * w[2] + bias[2]), np.tanh(hidden * w[3] + bias[3])
            cell = cell * forget + ingate * change
            out = outgate * np.tanh(cell)
            states[k] = out, cell
        predicted = out * extra[1] + extra[2]
        total = total + np.sum(sequence[t + 1] * (predicted - np.log(np.sum(np.exp(predicted)) + 2)))
    return -total / ((len(sequence) - 1) * b)


recurrent_gradient = nb.jit(nb.grad(recurrent_loss, (0, 1)))


def least_squares(x, n):
    t = -1 + np.arange(n) * 2 / (n - 1)
    powers = t[:, None] ** np.arange(len(x))
    return 0.5 * np.sum((np.sign(t) - powers @ x) ** 2)


def least_squares_gradient(n):
    return nb.jit(nb.grad(lambda x: least_squares(x, n)))


logsumexp_gradient = nb.jit(nb.grad(logsumexp))


def determinant(a):
    """By the minors of the first row."""
    n = len(a)
    if n == 1:
        return a[0, 0]
    total = 0.0
    for j in range(n):
        minor = np.concatenate([a[1:, :j], a[1:, j + 1 :]], axis=1)
        total = total + (-1) ** j * a[0, j] * determinant(minor)
    return total


determinant_gradient = nb.jit(nb.grad(determinant))
