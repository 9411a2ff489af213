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
