"""Records gradients of functions of matrices and of transforms as JAX and PyTorch give them, in linear_algebra.json.

Run with an interpreter that has both: `python tests/recorded/record_linear_algebra.py`. JAX's gradients by complex
numbers are conjugated, so that both, and nbgrad, have the convention dL/dx + i dL/dy. What is differentiated does not
depend on the signs, phases and order of vectors.
"""

import json
from pathlib import Path

import numpy as np


def matrices(kind, *shape):
    """The inputs, which the test makes in the same way."""
    rng = np.random.RandomState(42)
    found = rng.uniform(-1, 1, shape)
    return found + 1j * rng.uniform(-1, 1, shape) if kind == "complex" else found


CASES = {
    "eigvalsh": ("h = x + adjoint(x); sum(linalg.eigvalsh(h) ** 3)", (3, 3)),
    "eigh": ("h = x + adjoint(x); w, v = linalg.eigh(h); sum(abs(v) ** 2 * weight) + sum(w ** 2)", (3, 3)),
    "eigvals": ("w = linalg.eigvals(x); sum(abs(w) ** 3)", (3, 3)),
    "svdvals": ("sum(svdvals(x) ** 3)", (4, 3)),
    "svd": ("u, s, vh = svd(x); sum(abs(u) ** 2 * weight) + sum(s) + sum(abs(vh) ** 4)", (4, 3)),
    "qr": ("q, r = linalg.qr(x); sum(abs(q) ** 2 * weight) + sum(abs(r) ** 3)", (4, 3)),
    "pinv": ("sum(abs(linalg.pinv(x)) ** 2)", (4, 3)),
    "cholesky": ("h = x @ adjoint(x) + 2 * eye; sum(abs(linalg.cholesky(h)) ** 3)", (3, 3)),
    "solve": ("sum(abs(linalg.solve(x, x @ x)) ** 3) + sum(abs(linalg.inv(x)))", (3, 3)),
    "det": ("abs(linalg.det(x)) ** 2 + linalg.slogdet(x)[1]", (3, 3)),
    "nuclear norm": ("linalg.norm(x, 'nuc') + linalg.norm(x, 2) + linalg.norm(x, 'fro')", (4, 3)),
    "power": ("sum(abs(linalg.matrix_power(x, -2)))", (3, 3)),
    "expm": ("sum(abs(expm(x)) ** 2)", (3, 3)),
    "fft": ("sum(abs(fft.fft(x)) ** 3 * weight)", (4, 3)),
    "ifftn": ("sum(abs(fft.ifftn(x)) ** 3 * weight)", (4, 3)),
    "irfft": ("sum(fft.irfft(x, 5) ** 3)", (4, 3)),
    "hfft": ("sum(fft.hfft(x) ** 3)", (4, 3)),
}


def with_jax(function, x, weight):
    """Value and gradient by JAX."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    words = {
        "linalg": jnp.linalg,
        "fft": jnp.fft,
        "sum": jnp.sum,
        "abs": jnp.abs,
        "adjoint": lambda a: jnp.conj(a.T),
        "svd": lambda a: jnp.linalg.svd(a, full_matrices=False),
        "svdvals": lambda a: jnp.linalg.svd(a, compute_uv=False),
        "expm": jax.scipy.linalg.expm,
        "eye": jnp.eye(3),
        "weight": weight,
    }
    value, g = jax.value_and_grad(lambda a: function(a, words))(jnp.asarray(x))
    return float(value), np.conj(np.asarray(g)), jax.__version__


def with_torch(function, x, weight):
    """Value and gradient by PyTorch."""
    import torch

    words = {
        "linalg": torch.linalg,
        "fft": torch.fft,
        "sum": torch.sum,
        "abs": torch.abs,
        "adjoint": lambda a: a.mH,
        "svd": lambda a: torch.linalg.svd(a, full_matrices=False),
        "svdvals": torch.linalg.svdvals,
        "expm": torch.linalg.matrix_exp,
        "eye": torch.eye(3, dtype=torch.float64),
        "weight": torch.tensor(weight),
    }
    a = torch.tensor(x, requires_grad=True)
    value = function(a, words)
    value.backward()
    return value.item(), a.grad.resolve_conj().numpy(), torch.__version__


def evaluate(text, x, words):
    """The value of a case: assignments, and an expression after the last semicolon."""
    *steps, last = text.split("; ")
    names = {**words, "x": x}
    for step in steps:
        exec(step, names)
    return eval(last, names)


def main():
    """Write the file."""
    found, versions = {}, {}
    for name, (text, shape) in CASES.items():
        for kind in ("real", "complex"):
            x = matrices(kind, *shape)
            weight = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
            record = {"text": text, "shape": shape}
            for library, gradient in {"Jax": with_jax, "Torch": with_torch}.items():
                value, g, versions[library.lower()] = gradient(
                    lambda a, words, t=text: evaluate(t, a, words), x, weight
                )
                entry = {"value": value, "real": np.real(g).tolist()}
                if kind == "complex":
                    entry["imag"] = np.imag(g).tolist()
                record[library] = entry
            found[f"{name}, {kind}"] = record
    Path(__file__).with_name("linear_algebra.json").write_text(
        json.dumps({"versions": versions, "cases": found}, indent=1)
    )


if __name__ == "__main__":
    main()
