"""Functions of nbgrad inside of PyTorch and JAX. The derivatives are those that these libraries find for themselves."""

from __future__ import annotations

import gc
import pickle
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import ArgumentError, DtypeError, ShapeError

pytestmark = pytest.mark.unoptimized(but=16)


def energy(x, w):
    return np.sum(np.sin(x) * w * x)


def pair(x, w):
    return x * w, np.sum(x**3)


X, W = np.array([0.5, 1.0, -2.0]), np.array([1.0, 2.0, 3.0])


def test_torch_functions():
    torch = pytest.importorskip("torch")
    of_torch = nb.interop.torch_function(energy)
    x, w = (torch.tensor(value, requires_grad=True) for value in (X, W))
    of_torch(x, w).backward()
    same = torch.tensor(X, requires_grad=True), torch.tensor(W, requires_grad=True)
    (torch.sin(same[0]) * same[1] * same[0]).sum().backward()
    for found, expected in zip((x.grad, w.grad), (same[0].grad, same[1].grad), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert torch.autograd.gradcheck(of_torch, (x, w)) and torch.autograd.gradgradcheck(of_torch, (x, w))
    assert torch.autograd.gradcheck(nb.interop.torch_function(pair), (x, w))
    wide = torch.autograd.grad(nb.interop.torch_function(lambda x: 2 * x)(x).sum(), x)[0]
    np.testing.assert_allclose(wide, [2.0, 2.0, 2.0])
    slope = torch.func.grad(of_torch)(x, w)
    np.testing.assert_allclose(slope.detach(), same[0].grad, rtol=1e-12)
    rows = torch.stack([x, 2 * x]).detach()
    mapped = torch.func.vmap(torch.func.grad(of_torch), in_dims=(0, None))(rows, w.detach())
    np.testing.assert_allclose(mapped[0], same[0].grad, rtol=1e-12)
    assert nb.interop.torch_function(lambda x, power: x**power)(x.detach(), 2).dtype == torch.float64


def test_jax_functions():
    jax = pytest.importorskip("jax")
    of_jax = nb.interop.jax_function(energy)
    x, w = jax.numpy.asarray(X, "float32"), jax.numpy.asarray(W, "float32")

    def own(x, w):
        return jax.numpy.sum(jax.numpy.sin(x) * w * x)

    for transform in (jax.grad, lambda f: jax.jit(jax.grad(f, 1)), lambda f: jax.jacrev(jax.grad(f))):
        np.testing.assert_allclose(transform(of_jax)(x, w), transform(own)(x, w), rtol=1e-5, atol=1e-6)
    rows = jax.numpy.stack([x, 2 * x])
    found = jax.vmap(jax.grad(of_jax), (0, None))(rows, w)
    np.testing.assert_allclose(found, jax.vmap(jax.grad(own), (0, None))(rows, w), rtol=1e-5)
    product, total = nb.interop.jax_function(pair)(x, w)
    np.testing.assert_allclose(product, X * W, rtol=1e-6)
    np.testing.assert_allclose(total, np.sum(X**3), rtol=1e-6)


def test_functions_of_others():
    torch = pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    functions = [
        (nb.interop.from_torch(lambda x, w: torch.sin(x) * w * x), X, W, 1e-12),
        (nb.interop.from_jax(lambda x, w: jax.numpy.sin(x) * w * x), X.astype("f"), W.astype("f"), 1e-5),
    ]
    for function, x, w, rtol in functions:
        check_beside(function, lambda x, w: np.sin(x) * w * x, x, w, rtol)


def test_whole_jacobians_of_functions_of_others():
    torch = pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    own = lambda x: np.sin(x) * x  # noqa: E731
    energy = lambda f: lambda x: np.sum(f(x) ** 2)  # noqa: E731
    transforms = [
        nb.jacrev,
        nb.jacfwd,
        nb.vmap,
        lambda f: nb.jit(nb.hessian(energy(f))),
        lambda f: lambda x: nb.jvp(nb.grad(energy(f)), (x,), (x,))[1],
        lambda f: nb.jacfwd(nb.jacrev(nb.jacfwd(f))),
    ]
    for function, rtol in (
        (nb.interop.from_torch(lambda x: torch.sin(x) * x), 1e-12),
        (nb.interop.from_jax(lambda x: jax.numpy.sin(x) * x), 2e-5),
    ):
        for transform in transforms:
            np.testing.assert_allclose(transform(function)(X), transform(own)(X), rtol=rtol, atol=rtol)


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_containers_indices_and_several_results_of_functions_of_others(library):
    module = pytest.importorskip(library)
    m = module if library == "torch" else module.numpy
    make = getattr(nb.interop, f"from_{library}")
    taken = make(lambda p, i, power=1: (p["x"][i] ** power, {"sum": m.sum(p["x"] * p["w"]), "next": i + 1}))
    x = X.astype("f")
    first, rest = taken({"x": x, "w": x}, np.array([0, 2]), power=2)
    np.testing.assert_allclose(first, [0.25, 4.0])
    np.testing.assert_array_equal(rest["next"], [1, 3])

    def loss(p):
        first, rest = taken(p, np.array([0, 2]), power=2)
        return np.sum(first) + 3 * rest["sum"]

    found = nb.grad(loss)({"x": x, "w": 2 * x})
    np.testing.assert_allclose(found["x"], 6 * x + 2 * x * [1, 0, 1], rtol=1e-6)
    np.testing.assert_allclose(found["w"], 3 * x, rtol=1e-6)
    again = pickle.loads(pickle.dumps(make(np.square)))
    assert repr(again) == repr(make(np.square))
    with pytest.raises(DtypeError, match="returned a NoneType"):
        make(lambda x: None)(x)
    assert isinstance(make(lambda x: 2 * x)(nb.Tensor(x)), nb.Tensor)
    assert nb.grad(lambda x: np.sum(make(lambda x: 2 * x)(x)))(x[:0]).shape == (0,)


def test_modules_that_change_when_they_are_called():
    """Shapes are found without a call, which would change the running means of a batch norm."""
    torch = pytest.importorskip("torch")
    norm = torch.nn.BatchNorm1d(3)
    function = nb.interop.from_torch(norm)
    rows = np.arange(12.0, dtype="f").reshape(4, 3)
    twin = torch.nn.BatchNorm1d(3)
    np.testing.assert_allclose(function(rows), twin(torch.from_numpy(rows)).detach(), rtol=1e-6)
    np.testing.assert_allclose(norm.running_mean, twin.running_mean)
    branches = nb.interop.from_torch(lambda x: x * x if x.sum() > 0 else -x)
    np.testing.assert_allclose(nb.grad(lambda x: np.sum(branches(x)))(np.array([1.0, -3.0])), [-1.0, -1.0])


def test_backwards_without_a_derivative_are_refused():
    """Zeros would be wrong: PyTorch drops what it cannot differentiate."""
    torch = pytest.importorskip("torch")

    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return torch.sin(x)

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            return g * torch.cos(ctx.saved_tensors[0])

    class Cut(Once):
        @staticmethod
        def backward(ctx, g):
            with torch.no_grad():
                return g * torch.cos(ctx.saved_tensors[0])

    for kind in (Once, Cut):
        function = nb.interop.from_torch(kind.apply)
        np.testing.assert_allclose(nb.jacrev(function)(X), np.diag(np.cos(X)))
        for transform in (nb.jacfwd, lambda f: nb.hessian(lambda x: np.sum(f(x)))):
            with pytest.raises(ArgumentError, match="has no derivative itself"):
                transform(function)(X)
    linear = nb.interop.from_torch(lambda x: 3 * x)
    np.testing.assert_allclose(nb.jacfwd(linear)(X), 3 * np.eye(3))
    np.testing.assert_array_equal(nb.hessian(lambda x: np.sum(linear(x)))(X), np.zeros((3, 3)))


def test_results_that_depend_on_values_are_no_other_results():
    torch = pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    x = np.array([-1.0, 0.0, -3.0])
    for function in (lambda x: x[x > 0], torch.nonzero, lambda x: x if x[0] > 0 else 1j * x):
        with pytest.raises(ShapeError, match="when its shapes were found"):
            nb.interop.from_torch(function)(x)
    for function in (lambda x: np.sum(x) if x[0] < 0 else x, lambda x: x * 1j if x[0] < 0 else x):
        with pytest.raises(Exception, match="when its shapes were found"):
            jax.block_until_ready(nb.interop.jax_function(function)(jax.numpy.asarray(x)))


def test_modes_and_settings_of_other_libraries():
    torch = pytest.importorskip("torch")
    jax = pytest.importorskip("jax")
    with torch.inference_mode():
        found = nb.grad(lambda v: np.sum(nb.interop.from_torch(torch.sin)(v)))(X)
    np.testing.assert_allclose(found, np.cos(X))
    tripled = nb.interop.jax_function(lambda x: x * np.array([3.0, 3.0, 3.0]))
    for wide in (False, True, False):
        with jax.enable_x64(wide):
            assert tripled(jax.numpy.ones(3, "float32")).dtype == ("float64" if wide else "float32")
    powers = nb.interop.jax_function(lambda x, n: x * n)
    assert powers(jax.numpy.ones(3, "float16"), 2.0).dtype == "float16"


def test_layouts_and_writes_in_functions_of_torch():
    torch = pytest.importorskip("torch")
    z = torch.tensor([1 + 2j])
    np.testing.assert_array_equal(nb.interop.torch_function(lambda z: z.imag)(z.conj()), [-2.0])

    def written(x):
        x *= 2
        return np.sum(x)

    x = torch.ones(2, requires_grad=True)
    with pytest.raises(ArgumentError, match="read-only"):
        nb.interop.torch_function(written)(x)
    with pytest.raises(DtypeError, match="bfloat16"):
        nb.interop.torch_function(np.sin)(torch.ones(2).bfloat16())
    scaled = nb.interop.torch_function(lambda x, factor, shift: x * factor + shift)
    for factor in (2.0, 3.0):
        found = scaled(x, factor, np.ones(2, "f"))
        np.testing.assert_array_equal(found.detach(), [factor + 1] * 2)
        assert found.dtype == torch.float32
    with pytest.raises(DtypeError, match="neither a tensor nor hashable"):
        nb.interop.torch_function(lambda x, n: x)(x, [1])


def test_eager_functions_of_jax_are_forgotten():
    jax = pytest.importorskip("jax")

    def held():
        def function(x):
            return np.sum(x)

        nb.interop.jax_function(function)(jax.numpy.ones(3))
        return weakref.ref(function)

    found = held()
    jax.clear_caches()
    gc.collect()
    assert found() is None


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_functions_of_others_called_with_tensors_name_the_way_in(library):
    module = pytest.importorskip(library)
    m = module if library == "torch" else module.numpy
    for function in (lambda x: m.sum(m.sin(x)), lambda x: m.stack([x, x])):
        for transform in (nb.grad, nb.jit):
            with pytest.raises(DtypeError, match=rf"nb\.interop\.from_{library}\(f\)"):
                transform(function)(X)


def check_beside(function, own, x, w, rtol):
    """First and second derivatives of a function, beside those of one that nbgrad records."""
    for transform in (lambda f: f, nb.jit):
        found, expected = (
            transform(nb.grad(lambda x, w, f=f: np.sum(f(x, w) ** 2), (0, 1)))(x, w) for f in (function, own)
        )
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=rtol)
        twice, expected = (
            transform(nb.grad(lambda x, f=f: np.sum(nb.grad(lambda x: np.sum(f(x, w)))(x) * w)))(x)
            for f in (function, own)
        )
        np.testing.assert_allclose(twice, expected, rtol=rtol, atol=rtol)


MAKERS = [getattr(nb.interop, name) for name in nb.interop.__all__]


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_no_function(make):
    with pytest.raises(TypeError, match=make.__name__):
        make(3)


def test_complex_cotangents_of_jax():
    """JAX's cotangents are the conjugates of nbgrad's."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    x = jnp.array([0.3, 0.7])
    inside = nb.interop.jax_function(lambda z: np.sum(np.imag(z * z) + np.real(z)))
    outside = nb.interop.jax_function(lambda x: np.exp(1j * x))
    ours = lambda x: inside(outside(x))  # noqa: E731
    own = lambda x: jnp.sum(jnp.imag(jnp.exp(1j * x) ** 2) + jnp.cos(x))  # noqa: E731
    for order in (1, 2):
        np.testing.assert_allclose(jax.grad(ours)(x), jax.grad(own)(x), rtol=1e-5)
        if order == 1:
            ours, own = (lambda x, f=f: jnp.sum(jax.grad(f)(x)) for f in (ours, own))
    back = nb.interop.from_jax(lambda z: jnp.sum(jnp.imag(z * z) + z.real))
    found = nb.grad(lambda x: back(np.exp(1j * x)))(np.array([0.3, 0.7]))
    np.testing.assert_allclose(found, 2 * np.cos(2 * np.array([0.3, 0.7])) - np.sin([0.3, 0.7]), rtol=1e-5)


def test_jax_functions_may_look_at_values():
    jax = pytest.importorskip("jax")
    a = jax.numpy.array([[2.0, 0.5], [0.5, 1.0]])
    np.testing.assert_allclose(nb.interop.jax_function(np.linalg.inv)(a), np.linalg.inv(a), rtol=1e-6)
    found = jax.jit(jax.grad(lambda a: nb.interop.jax_function(np.linalg.inv)(a).sum()))(a)
    expected = jax.grad(lambda a: jax.numpy.linalg.inv(a).sum())(a)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    taken = nb.interop.jax_function(lambda x, i: x[i])(jax.numpy.arange(4.0), jax.numpy.array([1, 2]))
    np.testing.assert_array_equal(taken, [1.0, 2.0])


def test_networks_inside_of_torch():
    torch = pytest.importorskip("torch")
    net = nb.nn.Dense(3, 1)
    x = torch.ones(2, 3, requires_grad=True)
    nb.interop.torch_function(lambda x: net(x))(x).sum().backward()
    np.testing.assert_allclose(x.grad, np.tile(net.weight.asnumpy(), (2, 1)), rtol=1e-6)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_programs_of_torchs_compiler(backend):
    torch = pytest.importorskip("torch")
    function = nb.interop.torch_function(pair)

    def loss(x, w):
        first, second = function(x * 2, w)
        return first.sum() + second

    compiled = torch.compile(loss, fullgraph=True, backend=backend)
    for size in (3, 5):
        x, w = (torch.linspace(1, 2, size, dtype=torch.float64).requires_grad_() for _ in range(2))
        compiled(x, w).backward()
        np.testing.assert_allclose(x.grad, (2 * w + 6 * (2 * x) ** 2).detach())
        np.testing.assert_allclose(w.grad, (2 * x).detach())
    power = nb.interop.torch_function(lambda x, n: x**n)
    with torch.no_grad():
        np.testing.assert_allclose(torch.compile(lambda x: power(x, 3) + 1, backend=backend)(x), x**3 + 1)
    same = nb.interop.torch_function(lambda x: x)
    assert torch.compile(lambda x: same(x), fullgraph=True, backend=backend)(x.detach()) is not x


def test_calls_from_programs_of_jax():
    """Kinds of numbers, empty arrays, maps, loops, errors; on the CPU by a foreign function of XLA's."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy
    kinds = nb.interop.jax_function(lambda x, n: (x > 0, x.astype(np.int32), x * n, x.astype(np.float16), x * 1j))
    x = jnp.array([1.0, -2.0])
    found = jax.jit(kinds)(x, jnp.int32(3))
    for one, expected in zip(found, (x > 0, x.astype(int), x * 3, x.astype("float16"), x * 1j), strict=True):
        np.testing.assert_array_equal(one, expected)
        assert one.dtype == expected.dtype
    assert nb.interop.jax_function(lambda x: x[2:])(x).shape == (0,)
    sine = nb.interop.jax_function(lambda x: np.sin(x))
    rows = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(jax.jit(jax.vmap(jax.grad(lambda x: sine(x).sum())))(rows), np.cos(rows), rtol=1e-6)
    total, _ = jax.lax.scan(lambda carried, row: (carried + sine(row).sum(), row), 0.0, rows)
    np.testing.assert_allclose(total, np.sin(rows).sum(), rtol=1e-6)
    with pytest.raises(Exception, match="inv needs a regular matrix"):
        jax.block_until_ready(jax.jit(nb.interop.jax_function(np.linalg.inv))(jnp.zeros((2, 2))))
    with ThreadPoolExecutor(4) as pool:
        for one, row in zip(pool.map(jax.jit(sine), list(rows) * 8), list(rows) * 8, strict=True):
            np.testing.assert_allclose(one, np.sin(row), rtol=1e-6)


def test_integer_results_in_derivatives_of_jax():
    jax = pytest.importorskip("jax")
    function = nb.interop.jax_function(lambda x: (np.sin(x), np.argmax(x), x > 0))
    x = jax.numpy.array([0.3, 0.4])
    np.testing.assert_allclose(jax.grad(lambda x: jax.numpy.sum(function(x)[0]))(x), np.cos(x), rtol=1e-6)


def test_a_function_that_a_program_of_torchs_compiler_alone_holds():
    torch = pytest.importorskip("torch")

    def loss(x):
        function = nb.interop.torch_function(lambda x: np.sum(np.sin(x)))
        return torch.compile(lambda x: function(x), backend="aot_eager")(x)

    x = torch.linspace(0, 1, 3, dtype=torch.float64).requires_grad_()
    value = loss(x)
    gc.collect()
    np.testing.assert_allclose(torch.autograd.grad(value, x)[0], torch.cos(x.detach()))
