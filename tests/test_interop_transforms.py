"""JAX's and PyTorch's transformations of nbgrad's functions: the numbers are those of their own functions."""

from __future__ import annotations

import numpy as np
import pytest

import nbgrad as nb

pytestmark = pytest.mark.unoptimized

X, W = np.array([0.5, 1.0, -2.0]), np.array([1.0, 2.0, 3.0])


def jax_transforms(jax):
    """By name: a computation with a function of two rows of numbers."""
    x, w = jax.numpy.asarray(X), jax.numpy.asarray(W)
    rows = jax.numpy.arange(12.0).reshape(4, 3) / 7

    def floats(found):
        return [one for one in jax.tree.leaves(found) if one.dtype.kind == "f"]

    def energy(f):
        return lambda x, w: sum(jax.numpy.sum(one**2) for one in floats(f(x, w)))

    def turns(f):
        return lambda w: jax.lax.scan(lambda total, row: (total + energy(f)(row, w), row), 0.0, rows)[0]

    def pushed(f):
        return lambda t: jax.vmap(lambda x, t: jax.jvp(lambda x: energy(f)(x, w), (x,), (t,))[1], (0, None))(rows, t)

    return {
        "jvp": lambda f: jax.jvp(f, (x, w), (w, x)),
        "jacfwd": lambda f: jax.jacfwd(lambda x: floats(f(x, w)))(x),
        "jacrev": lambda f: jax.jacrev(lambda x, w: floats(f(x, w)), (0, 1))(x, w),
        "hessian": lambda f: jax.jit(jax.hessian(energy(f), (0, 1)))(x, w),
        "reverse over forward": lambda f: jax.jacrev(jax.jacfwd(energy(f)))(x, w),
        "third": lambda f: jax.jacfwd(jax.hessian(energy(f)))(x, w),
        "vmap": lambda f: jax.vmap(f, (1, 0))(rows.T, rows),
        "vmap twice": lambda f: jax.vmap(jax.vmap(f, (None, 0)), (0, None))(rows, rows),
        "vmap of hessian": lambda f: jax.vmap(jax.hessian(energy(f)), (0, None))(rows, w),
        "grad of vmap": lambda f: jax.grad(lambda w: jax.vmap(energy(f), (0, None))(rows, w).sum())(w),
        "linearize": lambda f: jax.linearize(lambda x: floats(f(x, w)), x)[1](w),
        "transpose of vmap": lambda f: jax.linear_transpose(pushed(f), x)(rows[:, 0]),
        "scan": lambda f: jax.grad(turns(f))(w),
        "scan forward": lambda f: jax.jacfwd(turns(f))(w),
        "checkpoint": lambda f: jax.grad(jax.checkpoint(energy(f)))(x, w),
    }


JAX_NAMES = """jvp, jacfwd, jacrev, hessian, reverse over forward, third, vmap, vmap twice, vmap of hessian,
grad of vmap, linearize, transpose of vmap, scan, scan forward, checkpoint"""


@pytest.mark.parametrize("name", JAX_NAMES.replace("\n", " ").split(", "))
def test_transformations_of_jax(name):
    jax = pytest.importorskip("jax")
    several = lambda x, w: (x * w, (x**3).sum(), x.argmax())  # noqa: E731
    pairs = [
        (nb.interop.jax_function(lambda x, w: np.sin(x) * w * x), lambda x, w: jax.numpy.sin(x) * w * x),
        (nb.interop.jax_function(several), several),
    ]
    with jax.enable_x64(True):
        transform = jax_transforms(jax)[name]
        for ours, own in pairs:
            found, expected = jax.tree.leaves(transform(ours)), jax.tree.leaves(transform(own))
            assert len(found) == len(expected)
            for one, other in zip(found, expected, strict=True):
                assert one.dtype == other.dtype
                if one.dtype != jax.dtypes.float0:
                    np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


def test_functions_that_look_at_values_are_called_for_each_in_vmap():
    jax = pytest.importorskip("jax")
    function = nb.interop.jax_function(lambda x: x * x if x > 0 else -x)
    x = jax.numpy.asarray(X, "float32")
    np.testing.assert_allclose(jax.vmap(function)(x), [0.25, 1.0, 2.0])
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(function)))(x), [1.0, 2.0, -1.0])


def torch_transforms(torch):
    """By name: a computation with a function of two rows of numbers."""
    func, forward = torch.func, torch.autograd.forward_ad
    x, w = torch.as_tensor(X), torch.as_tensor(W)
    rows = torch.arange(12, dtype=torch.float64).reshape(4, 3) / 7

    def floats(f):
        def found(x, w):
            results = f(x, w)
            return tuple(one for one in (results if isinstance(results, tuple) else (results,)) if one.dtype == x.dtype)

        return found

    def energy(f):
        return lambda x, w: sum((one**2).sum() for one in floats(f)(x, w))

    def dual(f):
        with forward.dual_level():
            return [forward.unpack_dual(one).tangent for one in floats(f)(forward.make_dual(x, w), w)]

    return {
        "jvp": lambda f: func.jvp(floats(f), (x, w), (w, x)),
        "dual numbers": dual,
        "jacfwd": lambda f: func.jacfwd(floats(f), (0, 1))(x, w),
        "hessian": lambda f: func.hessian(energy(f), (0, 1))(x, w),
        "forward twice": lambda f: func.jacfwd(func.jacfwd(energy(f)))(x, w),
        "reverse over forward": lambda f: func.jacrev(func.jacfwd(energy(f)))(x, w),
        "vmap of hessian": lambda f: func.vmap(func.hessian(energy(f)), (0, None))(rows, w),
        "hvp": lambda f: torch.autograd.functional.hvp(lambda x: energy(f)(x, w), x, w),
    }


TORCH_NAMES = "jvp, dual numbers, jacfwd, hessian, forward twice, reverse over forward, vmap of hessian, hvp"


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:FutureWarning")
@pytest.mark.parametrize("name", TORCH_NAMES.split(", "))
def test_transformations_of_torch(name):
    torch = pytest.importorskip("torch")
    several = lambda x, w: (x * w, (x**3).sum(), x.argmax())  # noqa: E731
    transform = torch_transforms(torch)[name]
    for ours, own in (
        (nb.interop.torch_function(lambda x, w: np.sin(x) * w * x), lambda x, w: torch.sin(x) * w * x),
        (nb.interop.torch_function(several), several),
    ):
        torch.testing.assert_close(transform(ours), transform(own))


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_graphs_that_torch_traces_hold_the_call():
    """They would hold the numbers of the traced call else."""
    torch = pytest.importorskip("torch")
    from torch.fx.experimental.proxy_tensor import make_fx

    function = nb.interop.torch_function(lambda x, w: np.sin(x) * w * x)
    x, w = torch.as_tensor(X), torch.as_tensor(W)
    expected = torch.sin(w) * x * w
    torch.testing.assert_close(make_fx(lambda x, w: function(x, w))(x, w)(w, x), expected)
    cubes = nb.interop.torch_function(lambda x, n: x**n)
    torch.testing.assert_close(make_fx(torch.func.grad(lambda x: cubes(x, 3).sum()))(x)(w), 3 * w**2)
    slope = torch.func.linearize(lambda x: function(x, w), x)[1](torch.ones(3, dtype=torch.float64))
    torch.testing.assert_close(slope, w * (torch.sin(x) + x * torch.cos(x)))

    class Module(torch.nn.Module):
        def forward(self, x, w):
            return function(x, w)

    torch.testing.assert_close(torch.export.export(Module(), (x, w), strict=False).module()(w, x), expected)


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning", "ignore::DeprecationWarning")
def test_derivatives_inside_of_torchs_compiler():
    torch = pytest.importorskip("torch")
    function = nb.interop.torch_function(lambda x: np.sum(np.sin(x)))
    x = torch.as_tensor(X)
    programs = {
        "jvp": lambda x: torch.func.jvp(lambda x: function(x), (x,), (x,))[1],
        "jacfwd": lambda x: torch.func.jacfwd(lambda x: function(x))(x),
        "grad": lambda x: torch.func.grad(lambda x: function(x))(x),
    }
    expected = {"jvp": (x * torch.cos(x)).sum(), "jacfwd": torch.cos(x), "grad": torch.cos(x)}
    for name, program in programs.items():
        torch.testing.assert_close(torch.compile(program, backend="aot_eager")(x), expected[name])
