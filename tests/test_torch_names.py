"""Examples as in PyTorch's documentation of autograd, with the module's name changed.

The programs are written anew after its tutorials and notes; expected numbers are derivatives on paper, and those that
PyTorch 2.14 prints.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import nbgrad as nb
import nbgrad.mint.torch_names as torch
from nbgrad.autograd import forward_ad

pytestmark = pytest.mark.unoptimized(but=16)


def same(found, expected):
    np.testing.assert_allclose(found.detach().asnumpy(), expected, rtol=1e-5, atol=1e-6)


def test_a_vector_and_its_cotangent():
    a = torch.tensor([2.0, 3.0], requires_grad=True)
    b = torch.tensor([6.0, 4.0], requires_grad=True)
    q = 3 * a**3 - b**2
    q.backward(gradient=torch.tensor([1.0, 1.0]))
    assert bool((9 * a**2 == a.grad).all()) and bool((-2 * b == b.grad).all())


def test_what_requires_gradients():
    x, y, z = torch.ones(5, 5), torch.zeros(5, 5), torch.rand((5, 5), requires_grad=True)
    assert not (x + y).requires_grad and (x + z).requires_grad
    w = torch.full((2, 2), 3.0, requires_grad=True)
    with torch.no_grad():
        assert not (w * 2).requires_grad
    with torch.inference_mode():
        assert not (w * 2).requires_grad
    with torch.set_grad_enabled(False):
        assert not torch.is_grad_enabled()

    @torch.no_grad()
    def doubled(x):
        return x * 2

    assert not doubled(w).requires_grad and not (w * 2).detach().requires_grad


def test_a_layer():
    x, y = torch.ones(5), torch.zeros(3)
    w, b = torch.ones(5, 3, requires_grad=True), torch.zeros(3, requires_grad=True)
    loss = torch.nn.functional.binary_cross_entropy_with_logits(torch.matmul(x, w) + b, y)
    loss.backward()
    slope = 1 / (1 + math.exp(-5)) / 3
    same(w.grad, np.full((5, 3), slope))
    same(b.grad, np.full(3, slope))


def test_gradients_accumulate():
    given = torch.eye(4, 5, requires_grad=True)
    out = (given + 1).pow(2).t()
    expected = 2 * (np.eye(4, 5) + 1)
    out.backward(torch.ones_like(out), retain_graph=True)
    same(given.grad, expected)
    out.backward(torch.ones_like(out), retain_graph=True)
    same(given.grad, 2 * expected)
    given.grad.zero_()
    out.backward(torch.ones_like(out))
    same(given.grad, expected)


def test_a_sine():
    a = torch.linspace(0.0, 2 * math.pi, steps=25, requires_grad=True)
    (2 * torch.sin(a) + 1).sum().backward()
    same(a.grad, 2 * np.cos(np.linspace(0, 2 * math.pi, 25)))


def test_transforms():
    def f(x):
        return torch.sin(x).sum()

    rows = torch.ones(2, 3)
    same(torch.func.vmap(torch.func.grad(f))(rows), np.cos(np.ones((2, 3))))
    same(torch.func.jacrev(torch.sin)(torch.ones(2)), np.cos(1) * np.eye(2))
    same(torch.func.hessian(f)(torch.ones(2)), -np.sin(1) * np.eye(2))
    same(torch.autograd.functional.jacobian(lambda x: x.pow(2), torch.arange(2.0)), np.diag([0.0, 2.0]))
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(3), torch.full((3,), 2.0))
        same(forward_ad.unpack_dual(torch.exp(dual)).tangent, np.full(3, 2 * math.e))


def test_transforms_have_pytorchs_parameters():
    def f(x, y):
        return (x * y).sum(), 2 * x

    x, y = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    (by_x, by_y), double = torch.func.grad(f, argnums=(0, 1), has_aux=True)(x, y)
    same(by_x, [3.0, 4.0])
    same(by_y, [1.0, 2.0])
    same(double, [2.0, 4.0])
    slope, (value, double) = torch.func.grad_and_value(f, has_aux=True)(x, y)
    same(slope, [3.0, 4.0])
    same(value, 11.0)
    same(double, [2.0, 4.0])
    same(torch.vmap(lambda a, b: a + b.sum(), in_dims=(0, None), out_dims=0)(x, y), [8.0, 9.0])
    same(torch.func.jacrev(lambda x, y: x * y, argnums=1)(x, y), np.diag([1.0, 2.0]))


def test_a_network_as_a_function_of_its_parameters():
    net = nb.nn.SequentialCell(torch.nn.Linear(3, 4), nb.nn.Tanh(), torch.nn.Linear(4, 2))
    start = {name: torch.as_tensor(value.asnumpy()) for name, value in net.parameters_dict().items()}
    x, y = torch.randn(5, 3), torch.tensor([0, 1, 1, 0, 1])

    def loss(values, x, y):
        output = torch.func.functional_call(net, values, (x.unsqueeze(0),))
        return torch.nn.functional.cross_entropy(output, y.unsqueeze(0))

    each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))
    compiled, weights = nb.jit(each), list(net.trainable_params())
    for factor in (1.0, 0.5):
        values = {name: value * factor for name, value in start.items()}
        found, again = each(values, x, y), compiled(values, x, y)
        for weight in weights:
            weight.data = values[weight.name]
        for row in range(5):
            expected = nb.grad(lambda x, y: torch.nn.functional.cross_entropy(net(x), y), None, weights)(
                x[row : row + 1], y[row : row + 1]
            )
            for weight, slope in zip(weights, expected, strict=True):
                same(found[weight.name][row], slope.asnumpy())
                same(again[weight.name][row], slope.asnumpy())
    with pytest.raises(nb.errors.ArgumentError, match="no Parameters with the names other"):
        torch.func.functional_call(net, {"other": x}, x)
    assert all(isinstance(weight, nb.Parameter) for weight in net.get_parameters())


def test_running_statistics_are_written():
    """Those of [[1, 4], [3, 8]] have means 2 and 6 and unbiased variances 2 and 8; a tenth of them comes in."""
    mean, var = torch.zeros(2), torch.ones(2)
    x = torch.tensor([[1.0, 4.0], [3.0, 8.0]], requires_grad=True)
    torch.nn.functional.batch_norm(x, mean, var, training=True).sum().backward()
    same(mean, [0.2, 0.6])
    same(var, [1.1, 1.7])
    assert not mean.requires_grad
    torch.nn.functional.batch_norm(x, mean, var)
    same(mean, [0.2, 0.6])


SCATTERED = [
    # reduction, include_self, elements of [1, 2, 3] with [5, 5, 4] at [0, 0, 2], gradients by both of 1x + 2y + 3z
    ("sum", True, [11, 2, 7], [1, 2, 3], [1, 1, 3]),
    ("sum", False, [10, 2, 4], [0, 2, 0], [1, 1, 3]),
    ("prod", True, [25, 2, 12], [25, 2, 12], [5, 5, 9]),
    ("mean", True, [11 / 3, 2, 3.5], [1 / 3, 2, 1.5], [1 / 3, 1 / 3, 1.5]),
    ("mean", False, [5, 2, 4], [0, 2, 0], [0.5, 0.5, 3]),
    ("amax", True, [5, 2, 4], [0, 2, 0], [0.5, 0.5, 3]),
    ("amin", True, [1, 2, 3], [1, 2, 3], [0, 0, 0]),
    ("amin", False, [5, 2, 4], [0, 2, 0], [0.5, 0.5, 3]),
]


@pytest.mark.parametrize(("reduce", "include_self", "elements", "by_x", "by_src"), SCATTERED)
def test_elements_put_together_at_positions(reduce, include_self, elements, by_x, by_src):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    src, index = torch.tensor([5.0, 5.0, 4.0], requires_grad=True), torch.tensor([0, 0, 2])
    found = torch.scatter_reduce(x, 0, index, src, reduce, include_self=include_self)
    same(found, elements)
    (found * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    same(x.grad, by_x)
    same(src.grad, by_src)
    whole = torch.tensor([1, 2, 3]).scatter_reduce_(0, index, torch.tensor([5, 5, 4]), "amax", include_self=False)
    assert whole.tolist() == [5, 2, 4]


def test_where_a_condition_is_true():
    """Sums of the rows that each of two experts takes."""
    chosen, x = torch.tensor([[0, 1], [1, 2], [0, 2]]), torch.ones(3, 2, requires_grad=True)
    rows, columns = torch.where(chosen == 1)
    assert rows.tolist() == [0, 1] and columns.tolist() == [1, 0]
    torch.zeros(3, 2).index_add(0, rows, x[rows] * 2).sum().backward()
    same(x.grad, [[2.0, 2.0], [2.0, 2.0], [0.0, 0.0]])
    same(torch.where(chosen > 1, 1.0, torch.zeros(())), [[0.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    with pytest.raises(nb.errors.ArgumentError, match="both input and other"):
        torch.where(chosen > 1, 1.0)


def test_matrices_and_transforms():
    """A Gaussian process: its likelihood by a Cholesky factor and by an inverse; and a convolution by transforms."""
    x, y = torch.linspace(0, 1, 5), torch.tensor([1.0, -1.0, 0.5, 2.0, 0.0])
    scale = torch.tensor(0.4, requires_grad=True)

    def likelihood(by_factor):
        covariance = torch.exp(-0.5 * ((x[:, None] - x) / scale) ** 2) + 0.1 * torch.eye(5)
        if not by_factor:
            return y @ torch.linalg.solve(covariance, y) / 2 + torch.linalg.slogdet(covariance)[1] / 2
        factor = torch.linalg.cholesky(covariance)
        whitened = torch.linalg.solve_triangular(factor, y[:, None], upper=False)
        by_right = torch.linalg.solve_triangular(factor.mT, y[None], upper=True, left=False)
        same(by_right.mT, whitened.detach().asnumpy())
        return whitened.pow(2).sum() / 2 + torch.log(torch.diagonal(factor)).sum()

    slopes = [torch.autograd.grad(likelihood(way), scale)[0] for way in (True, False)]
    np.testing.assert_allclose(slopes[0].asnumpy(), slopes[1].asnumpy(), rtol=1e-3)
    kernel = torch.tensor([1.0, 2.0, 0.0, 0.0, 0.0])
    found = torch.fft.irfft(torch.fft.rfft(y) * torch.fft.rfft(kernel), 5)
    same(found, [1.0, 1.0, -1.5, 3.0, 4.0])
    assert {"fft", "rfftfreq"} <= set(dir(torch.fft)) and "svdvals" in dir(torch.linalg)
    for space in (torch.fft, torch.linalg):
        assert all(callable(getattr(space, name)) for name in dir(space))
        with pytest.raises(AttributeError, match="has no 'nothing' here"):
            _ = space.nothing


def test_functions_of_other_modules_are_found():
    same(torch.relu(torch.tensor([-1.0, 2.0])), [0.0, 2.0])
    same(torch.log_softmax(torch.zeros(2), -1), [-math.log(2)] * 2)
    same(torch.det(torch.tensor([[2.0, 1.0], [1.0, 3.0]])), 5.0)
    for name in torch._ALIKE:
        assert callable(getattr(torch, name)), name
    with pytest.raises(AttributeError, match="no attribute 'rot91'"):
        getattr(torch, "rot91")  # noqa: B009


class Linear(torch.autograd.Function):
    @staticmethod
    def forward(given, weight, bias):
        output = given.mm(weight.t())
        output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def setup_context(ctx, inputs, output):
        given, weight, _ = inputs
        ctx.save_for_backward(given, weight)

    @staticmethod
    def backward(ctx, grad_output):
        given, weight = ctx.saved_tensors
        by_given = grad_output.mm(weight) if ctx.needs_input_grad[0] else None
        return by_given, grad_output.t().mm(given), grad_output.sum(0)


def test_an_own_layer():
    inputs = [torch.randn(*size, dtype=torch.float64, requires_grad=True) for size in ((3, 2), (4, 2), (4,))]
    assert torch.autograd.gradcheck(Linear.apply, inputs, eps=1e-6, atol=1e-4)


def test_what_is_made():
    """Sizes one by one or together, dtypes as PyTorch's, leaves that are ready."""
    made = {
        "ones": torch.ones(2, 3),
        "zeros": torch.zeros((2, 3)),
        "rand": torch.rand([2, 3]),
        "randn": torch.randn(2, 3, dtype=torch.float64),
        "full": torch.full((2, 3), 1.5),
        "full_like": torch.full_like(torch.ones(2, 3), 2),
        "eye": torch.eye(2, 3),
        "ones_like": torch.ones_like(torch.zeros(2, 3, dtype=torch.float64)),
        "randint": torch.randint(0, 4, (2, 3)),
    }
    kinds = {"randn": "float64", "ones_like": "float64", "randint": "int64"}
    for name, one in made.items():
        assert one.shape == (2, 3) and str(one.asnumpy().dtype) == kinds.get(name, "float32"), name
    same(made["full"], np.full((2, 3), 1.5))
    same(torch.arange(1, 7, 2), [1, 3, 5])
    assert str(torch.arange(3).asnumpy().dtype) == "int64" and str(torch.arange(3.0).asnumpy().dtype) == "float32"
    assert torch.zeros(requires_grad=True).is_leaf and torch.randint(5, (2,)).shape == (2,)
    assert torch.Tensor is nb.Tensor and torch.allclose(torch.zeros(2), torch.zeros_like(torch.rand(2)))
    with pytest.raises(AttributeError, match="has no attribute 'no_such_name'"):
        _ = torch.no_such_name
