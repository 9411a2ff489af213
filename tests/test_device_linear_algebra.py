"""Linear algebra of Tensors on a device: values and gradients are those of the CPU, where they are checked themselves.

The matrices are larger than what our own kernels do, so that the libraries do it (their doubles, here).
"""

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.device.memory.chosen_driver import using
from nbgrad.device.simulator.simulator import Simulator

pytestmark = pytest.mark.unoptimized

N = 36
L = np.linalg
W = np.arange(N)


def sampled(*shape, seed=0, kind="f"):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    return values + 1j * rng.standard_normal(shape) if kind == "c" else values


A = sampled(N, N) + 8 * np.eye(N)
Z = sampled(2, N, N, kind="c") + 8 * np.eye(N)
DEFINITE = A @ A.T
HERMITIAN = Z @ np.swapaxes(Z.conj(), 1, 2)
RIGHT = sampled(N, 3, seed=1)


def size(z):
    return (abs(z) ** 2 * np.arange(1.0, z.shape[-1] + 1)).sum()


CASES = {
    "product": (lambda a, b: ((a @ b) ** 2).sum(), A, RIGHT),
    "products of a batch": (lambda a: ((a @ np.swapaxes(a, 1, 2)) ** 2).sum(), sampled(3, N, N)),
    "one matrix for all": (lambda a, b: ((a @ b) ** 2).sum(), sampled(3, N, N), RIGHT),
    "float32": (lambda a, b: ((a @ b) ** 2).sum(), A.astype(np.float32), RIGHT.astype(np.float32)),
    "solve": (lambda a, b: (L.solve(a, b) ** 2).sum(), A, RIGHT),
    "solve complex": (lambda a, b: size(L.solve(a, b)), Z, sampled(2, N, 2, kind="c")),
    "inverse": (lambda a: (L.inv(a) ** 2).sum(), A),
    "determinant": (lambda a: L.slogdet(a)[1].sum(), np.stack([A, A.T + 1])),
    "cholesky": (lambda a: (L.cholesky(a) ** 2 * W).sum(), DEFINITE),
    "cholesky complex": (lambda a: size(L.cholesky(a)), HERMITIAN),
    "qr": (lambda a: (L.qr(a)[1] ** 2 * W).sum(), A),
    "qr, all columns": (lambda a: (L.qr(a[:, :20], "complete")[1] ** 2 * W[:20]).sum(), A),
    "qr complex": (lambda a: size(L.qr(a)[1]), Z),
    "svd": (lambda a: (L.svd(a, full_matrices=False)[0] ** 4 * W[:, None]).sum(), A[:, :20]),
    "svd wide": (lambda a: (L.svd(a, full_matrices=False)[2] ** 4 * W).sum(), A[:20]),
    "svd complex": (lambda a: (L.svd(a)[1] * W).sum(), Z),
    "singular values": (lambda a: (L.svd(a, compute_uv=False) * W).sum(), A),
    "eigh": (lambda a: (L.eigh(a)[1] ** 4 * W[:, None]).sum(), DEFINITE),
    "eigh complex": (lambda a: (L.eigh(a)[0] * W).sum() + size(L.eigh(a)[1]), HERMITIAN),
    "eigvalsh": (lambda a: (L.eigvalsh(a) * W).sum(), np.stack([DEFINITE, 2 * DEFINITE])),
    "on the host: pinv": (lambda a: (L.pinv(a) ** 2).sum(), A),
    "on the host: eigvals": (lambda a: size(L.eigvals(a)), A),
    "on the host: fft": (lambda a: size(np.fft.fft(a)), A),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_the_cpu(name):
    function, *arrays = CASES[name]
    positions = tuple(range(len(arrays)))
    value, gradients = nb.value_and_grad(function, positions)(*[nb.Tensor(a) for a in arrays])
    with using(Simulator()):
        moved = [nb.Tensor(a, device="cuda") for a in arrays]
        found, found_gradients = nb.value_and_grad(function, positions)(*moved)
        if len(arrays) == 1:
            gradients, found_gradients = (gradients,), (found_gradients,)
        pairs = [(value, found), *zip(gradients, found_gradients, strict=True)]
        for expected, got in pairs:
            assert got.device == "cuda"
            wanted = expected.numpy()
            bound = 1e-4 if wanted.dtype == np.float32 else 1e-8
            np.testing.assert_allclose(got.cpu().numpy(), wanted, bound, bound * np.abs(wanted).max())


def test_errors_of_matrices_are_those_of_the_cpu():
    """What NumPy raises for a matrix is raised for one on a device, too, and the device works on."""
    with using(Simulator()):
        for function, matrix in ((L.cholesky, -DEFINITE), (L.inv, np.zeros((N, N)))):
            with pytest.raises(np.linalg.LinAlgError) as on_cpu:
                function(nb.Tensor(matrix))
            with pytest.raises(np.linalg.LinAlgError) as on_device:
                function(nb.Tensor(matrix, device="cuda"))
            assert str(on_device.value).partition(" (at")[0] == str(on_cpu.value).partition(" (at")[0]
        np.testing.assert_allclose(L.inv(nb.Tensor(A, device="cuda")).cpu().numpy(), L.inv(A))
