"""PyTorch's door: functions with their own derivatives, `functional`, dual numbers, anomalies, checks, bad input.

Expected values are derivatives on paper; the programs are those that PyTorch's documentation of autograd describes.
"""

from __future__ import annotations

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import autograd
from nbgrad.autograd import forward_ad as fw
from nbgrad.autograd import functional
from nbgrad.errors import AutogradError

from .test_autograd import leaf, same

pytestmark = pytest.mark.unoptimized(but=16)


# ----- Functions with their own derivatives -----


class Cubed(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class Exp(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        result = np.exp(x)
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class Scaled(autograd.Function):
    @staticmethod
    def forward(x, factor):
        return x * factor, x.sum()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, g, _):
        assert ctx.needs_input_grad == (True, False)
        return g * ctx.factor, None


class Host(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        values = x.detach().numpy()
        ctx.save_for_backward(x)
        return nb.Tensor(np.sort(values) ** 2)

    @staticmethod
    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]


def test_functions():
    x = leaf(1.0, 2.0)
    Cubed.apply(x).sum().backward()
    same(x.grad, [3.0, 12.0])
    (g,) = autograd.grad(Cubed.apply(x).sum(), x, create_graph=True)
    same(autograd.grad(g.sum(), x)[0], [6.0, 12.0])
    (g,) = autograd.grad(Exp.apply(x).sum(), x, create_graph=True)
    same(autograd.grad(g.sum(), x)[0], np.exp([1.0, 2.0]))
    y, total = Scaled.apply(x, 5.0)
    assert y.requires_grad and not total.requires_grad
    same(autograd.grad(y.sum(), x)[0], [5.0, 5.0])
    same(autograd.grad(Host.apply(x).sum(), x)[0], [2.0, 4.0])
    assert not Cubed.apply(x.detach()).requires_grad


@pytest.mark.parametrize("function", [Cubed, Exp])
def test_functions_under_transforms(function):
    x = np.array([0.5, 1.0])
    expected = {Cubed: 3 * x * x, Exp: np.exp(x)}[function]
    same(nb.grad(lambda x: function.apply(x).sum())(nb.Tensor(x)), expected)
    same(nb.jit(nb.grad(lambda x: function.apply(x).sum()))(nb.Tensor(x)), expected)


def returning(found):
    class Wrong(autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return found(g)

    return Wrong


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (lambda g: g, r"incorrect number of gradients \(expected 2, got 1\)"),
        (lambda g: (g.sum(), None), "returned an invalid gradient at index 0"),
        (lambda g: (g, g), "different than None at position 2"),
    ],
)
def test_wrong_results_of_backward(found, message):
    x = leaf(1.0, 2.0)
    with pytest.raises((AutogradError, ValueError), match=message):
        returning(found).apply(x, 2.0).sum().backward()
    assert x.grad is None


def test_once_differentiable():
    class Once(Cubed):
        backward = staticmethod(autograd.once_differentiable(Cubed.backward))

    x = leaf(2.0)
    (g,) = autograd.grad(Once.apply(x).sum(), x, create_graph=True)
    same(g, [12.0])
    with pytest.raises(AutogradError, match="differentiate twice"):
        autograd.grad(g.sum(), x)


def test_gradcheck():
    class Wrong(Cubed):
        backward = staticmethod(lambda ctx, g: 2 * g)

    x, y = leaf(0.5, 2.0), leaf(1.5, 0.7)
    assert autograd.gradcheck(lambda a, b: (a * np.sin(b), a.sum()), (x, y))
    assert autograd.gradgradcheck(lambda a, b: a * np.sin(b), (x, y))
    assert autograd.gradcheck(Exp.apply, (x,)) and autograd.gradgradcheck(Exp.apply, (x,))
    z = nb.tensor(np.array([0.3 + 0.4j]), requires_grad=True)
    assert autograd.gradcheck(lambda z: z * z, (z,))
    with pytest.raises(autograd.GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        autograd.gradcheck(Wrong.apply, (x,))
    assert not autograd.gradcheck(Wrong.apply, (x,), raise_exception=False)
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        autograd.gradcheck(np.sin, (x.detach(),))


class Normalised(autograd.Function):
    """Two outputs, whose cotangents are divided by their common norm."""

    @staticmethod
    def forward(ctx, x, y):
        return x * 1, y * 1

    @staticmethod
    def backward(ctx, a, b):
        size = ((a * a).sum() + (b * b).sum()) ** 0.5
        return a / size, b / size


def test_backward_gets_the_gradients_of_all_outputs_at_once():
    x, y = leaf(3.0, 0.0), leaf(0.0, 4.0)
    a, b = Normalised.apply(x, y)
    ((a * a).sum() + (b * b).sum()).backward()
    same(x.grad, [0.6, 0.0])
    same(y.grad, [0.0, 0.8])
    x.grad = None
    Normalised.apply(x, y)[0].sum().backward()
    np.testing.assert_allclose(x.grad.asnumpy(), np.full(2, 0.5**0.5), rtol=1e-6)


class Tripled(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x *= 3
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 3


class Forgotten(autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x * 2

    @staticmethod
    def vjp(ctx, g):
        return g


def test_functions_write_to_their_inputs():
    a = leaf(1.0, 2.0)
    b = a.clone()
    assert Tripled.apply(b) is b
    same(b, [3.0, 6.0])
    (b * b).sum().backward()
    same(a.grad, [18.0, 36.0])
    with pytest.raises(AutogradError, match="a leaf Variable that requires grad has been used in an in-place"):
        Tripled.apply(leaf(1.0))
    with pytest.raises(AutogradError, match="marked as dirty during the forward method were not returned"):
        Forgotten.apply(a.clone())


class OwnTangent(autograd.Function):
    """Rules that differ on purpose, so that their use shows."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        ctx.save_for_forward(x)
        return x * x, x * factor

    @staticmethod
    def vjp(ctx, g, h):
        (x,) = ctx.saved_tensors
        return 2 * x * g + ctx.factor * h, None

    @staticmethod
    def jvp(ctx, t, _):
        (x,) = ctx.saved_tensors
        return 5 * t * x, 7 * t


def test_forward_mode_by_a_functions_own_rule():
    with fw.dual_level():
        one, other = OwnTangent.apply(fw.make_dual(nb.tensor([1.0, 2.0]), nb.tensor([1.0, 1.0])), 4.0)
        same(fw.unpack_dual(one).tangent, [5.0, 10.0])
        same(fw.unpack_dual(other).tangent, [7.0, 7.0])
    x = leaf(1.0, 2.0)
    one, other = OwnTangent.apply(x, 4.0)
    (one.sum() + other.sum()).backward()
    same(x.grad, [6.0, 8.0])


# ----- functional, forward mode, anomalies -----

A = np.array([[1.0, 2.0], [3.0, 4.0]])
X, V = np.array([0.5, 2.0]), np.array([1.0, 10.0])


def test_functional():
    x, v = nb.Tensor(X), nb.Tensor(V)
    same(functional.jacobian(lambda x: A @ (x * x), x), A * (2 * X))
    both = functional.jacobian(lambda x, y: (x * y, x.sum()), (x, v))
    same(both[0][0], np.diag(V))
    same(both[0][1], np.diag(X))
    same(both[1][0], [1.0, 1.0])
    same(both[1][1], [0.0, 0.0])
    same(functional.hessian(lambda x: (x**3).sum(), x), np.diag(6 * X))
    mixed = functional.hessian(lambda x, y: (x * x * y).sum(), (x, v))
    same(mixed[0][0], np.diag(2 * V))
    same(mixed[0][1], np.diag(2 * X))
    same(mixed[1][1], np.zeros((2, 2)))
    for found, expected in [
        (functional.vjp(lambda x: A @ x, x, v), (A @ X, A.T @ V)),
        (functional.jvp(lambda x: A @ x, x, v), (A @ X, A @ V)),
        (functional.jvp(lambda x: x * x, x, v), (X * X, 2 * X * V)),
        (functional.vhp(lambda x: (x**3).sum(), x, v), ((X**3).sum(), 6 * X * V)),
        (functional.hvp(lambda x: (x**3).sum(), x, v), ((X**3).sum(), 6 * X * V)),
    ]:
        same(found[0], expected[0])
        same(found[1], expected[1])
        assert not found[1].requires_grad


def test_functional_with_create_graph_and_strict():
    x = leaf(*X)
    jacobian = functional.jacobian(lambda x: x**3, x, create_graph=True)
    jacobian.sum().backward()
    same(x.grad, 6 * X)
    with pytest.raises(AutogradError, match="independent of input 1"):
        functional.jacobian(lambda x, y: x * 2, (x, nb.Tensor(V)), strict=True)
    with pytest.raises(AutogradError, match="should contain a single element"):
        functional.hvp(lambda x: x, x, nb.Tensor(V))


def test_dual_numbers():
    with fw.dual_level():
        x = fw.make_dual(nb.Tensor(X), nb.Tensor(V))
        y = fw.unpack_dual(np.sin(x) * x)
        assert fw.unpack_dual(nb.Tensor(X)).tangent is None
    same(y.primal, np.sin(X) * X)
    same(y.tangent, (np.cos(X) * X + np.sin(X)) * V)
    assert fw.unpack_dual(x).tangent is None
    with pytest.raises(AutogradError, match="no level exists"):
        fw.make_dual(nb.Tensor(X), nb.Tensor(V))
    with fw.dual_level(), pytest.raises(AutogradError, match="Expected tangent of shape"):
        fw.make_dual(nb.Tensor(X), nb.Tensor(1.0))


def test_dual_numbers_of_leaves():
    x = leaf(*X)
    with fw.dual_level():
        tangent = fw.unpack_dual(fw.make_dual(x, nb.Tensor(V)) ** 3).tangent  # 3 x^2 v
    tangent.sum().backward()
    same(x.grad, 6 * X * V)


def test_anomalies_name_the_line():
    x = leaf(0.0, 1.0)
    with autograd.detect_anomaly():
        y = np.sqrt(x)
        z = (y * x).sum()
        with pytest.raises(AutogradError, match="'SqrtBackward0' returned nan values in its 0th output") as caught:
            z.backward()
        line = test_anomalies_name_the_line.__code__.co_firstlineno + 3
        assert f"test_autograd_functions.py:{line};" in str(caught.value)
        (x * x).sum().backward()
    assert x.grad is not None
    (np.sqrt(x) * x).sum().backward()
    assert np.isnan(x.grad.asnumpy()[0])


# ----- Bad input, in PyTorch's words -----


def twice(x):
    y = (x * x).sum()
    y.backward()
    y.backward()


def through_a_released_graph(x):
    y = x * x
    y.sum().backward()
    (y * 2).sum().backward()


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (twice, RuntimeError, "Trying to backward through the graph a second time"),
        (through_a_released_graph, RuntimeError, "Trying to backward through the graph a second time"),
        (lambda x: (x * x).backward(), RuntimeError, "grad can be implicitly created only for scalar outputs"),
        (lambda x: x.detach().sum().backward(), RuntimeError, "element 0 of tensors does not require grad"),
        (lambda x: nb.Tensor(1.0).backward(), RuntimeError, "does not have a grad_fn"),
        (lambda x: (x * x).backward(nb.Tensor([1.0])), RuntimeError, "Mismatch in shape: grad_output"),
        (
            lambda x: x.numpy(),
            RuntimeError,
            r"Can't call numpy\(\) on Tensor that requires grad. Use",
        ),
        (lambda x: np.array([x[0] * 2, x[1]]), RuntimeError, r"Can't call numpy\(\) on Tensor that requires grad"),
        (lambda x: np.from_dlpack(x), RuntimeError, "that requires grad"),
        (lambda x: x.sum().backward("1"), TypeError, "gradients can be either Tensors or None"),
        (lambda x: x.sum().backward(inputs=[]), RuntimeError, "cannot be empty"),
        (lambda x: x.__setitem__(0, 1.0), RuntimeError, "a leaf Variable that requires grad is being used in an in-pl"),
        (lambda x: x.__iadd__(1.0), RuntimeError, "a leaf Variable that requires grad is being used in an in-place"),
        (lambda x: x[:1].fill(0.0), RuntimeError, "a view of a leaf Variable that requires grad"),
        (lambda x: x.sort(), RuntimeError, "a leaf Variable that requires grad is being used in an in-place operation"),
        (lambda x: x.resize(3), RuntimeError, "a leaf Variable that requires grad is being used in an in-place"),
        (lambda x: setattr(x, "shape", (2, 1)), RuntimeError, "a leaf Variable that requires grad is being used in"),
        (lambda x: x.add_(1.0), RuntimeError, "a leaf Variable that requires grad is being used in an in-place"),
        (lambda x: nb.tensor([1, 2], requires_grad=True), RuntimeError, "only Tensors of floating point and complex"),
        (lambda x: (x * 2).requires_grad_(False), RuntimeError, "you can only change requires_grad flags of leaf"),
        (
            lambda x: nb.Tensor(1.0).register_hook(print),
            RuntimeError,
            "cannot register a hook on a tensor that",
        ),
        (lambda x: x.register_hook(None), TypeError, "A hook is a function"),
        (lambda x: (2 * x).register_post_accumulate_grad_hook(print), RuntimeError, "cannot be registered on non-leaf"),
        (lambda x: nb.Tensor(1.0).retain_grad(), RuntimeError, "can't retain_grad on Tensor that has requires_grad=F"),
        (lambda x: setattr(x, "grad", 1.0), TypeError, "assigned grad expected to be a Tensor or None"),
        (lambda x: setattr(x, "grad", nb.Tensor(1.0)), RuntimeError, "assigned grad has data of a different size"),
        (lambda x: setattr(x, "grad", x), RuntimeError, "can't assign Variable as its own grad"),
        (
            lambda x: autograd.grad(x.sum(), nb.Tensor(1.0)),
            RuntimeError,
            "Tensors does not require grad",
        ),
        (lambda x: autograd.grad(x.sum(), []), RuntimeError, "cannot be empty"),
        (lambda x: autograd.grad([x.sum()], x, [None, None]), RuntimeError, "got 1 tensors and 2 gradients"),
        (lambda x: autograd.grad(3.0, x), TypeError, "Expected a Tensor"),
        (lambda x: autograd.grad(x, x, nb.Tensor([[1.0]]), is_grads_batched=True), RuntimeError, "batch dimension"),
        (lambda x: nb.grad(lambda y: (y * y).sum().backward())(1.0), RuntimeError, "a function that is recorded"),
        (lambda x: nb.set_grad_enabled(1), TypeError, "takes True or False"),
        (lambda x: autograd.Function.apply(x), NotImplementedError, "must implement the forward function"),
        (lambda x: functional.jacobian(np.sin, 1.0), TypeError, "must be either a Tensor or a tuple of Tensors"),
        (lambda x: functional.jacobian(lambda x: 1.0, x), TypeError, "outputs of the user-provided function"),
    ],
)
def test_bad_input(wrong, error, message):
    x = leaf(1.0, 2.0)
    with pytest.raises(error, match=message):
        wrong(x)
    same(x, [1.0, 2.0])
    before = 0 if x.grad is None else np.array(x.grad.asnumpy())
    x.sum().backward()
    same(x.grad, before + 1.0)
    assert nb.is_grad_enabled()


class Unsteady(autograd.Function):
    """A backward that gives other values each time."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        Unsteady.calls += 1
        return g * (2 + 1e-4 * Unsteady.calls)


def test_checks_of_both_modes_and_of_steadiness():
    x = nb.tensor(np.array([0.5, 2.0]), requires_grad=True)
    assert autograd.gradcheck(lambda x: (x.sin() * x, x.sum()), (x,), check_forward_ad=True)
    assert autograd.gradcheck(lambda x: x * (1 + 2j), (x,), check_forward_ad=True, check_batched_forward_grad=True)
    wrong = lambda x: OwnTangent.apply(x, 4.0)[0]  # noqa: E731
    assert autograd.gradcheck(wrong, (x,))
    with pytest.raises(autograd.GradcheckError, match="forward mode mismatch for output 0"):
        autograd.gradcheck(wrong, (x,), check_forward_ad=True)
    assert not autograd.gradcheck(wrong, (x,), check_forward_ad=True, raise_exception=False)
    with pytest.raises(autograd.GradcheckError, match="not reentrant"):
        autograd.gradcheck(Unsteady.apply, (x,), atol=1.0)
    assert autograd.gradcheck(Unsteady.apply, (x,), atol=1.0, nondet_tol=1.0)


def test_anomalies_of_given_cotangents():
    x = leaf(1.0, 2.0)
    with autograd.detect_anomaly():
        y = x * 3
        with pytest.raises(AutogradError, match="'MultiplyBackward0' returned nan values"):
            y.backward(nb.tensor([float("nan"), 1.0]))
    assert x.grad is None
