"""Training: losses fall to what is known on paper, and a compiled step is the same as its parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import nn
from nbgrad.errors import ArgumentError, DtypeError

pytestmark = pytest.mark.unoptimized

rng = np.random.default_rng(0)
X = rng.normal(size=(64, 3)).astype(np.float32)
TRUE = np.array([[1.5], [-2.0], [0.5]], np.float32)
Y = X @ TRUE + 0.25


class Linear(nn.Cell):
    """x @ weight + bias, starting at zero."""

    def __init__(self, dtype: Any = np.float32) -> None:
        super().__init__()
        self.weight = nb.Parameter(np.zeros((3, 1), dtype), name="weight")
        self.bias = nb.Parameter(np.zeros(1, dtype), name="bias")

    def construct(self, x: Any) -> Any:
        return np.matmul(x, self.weight) + self.bias


def squared(output: Any, label: Any) -> Any:
    return np.mean((output - label) ** 2)


def logistic(output: Any, label: Any) -> Any:
    """-log of the probability of labels 0 and 1."""
    return np.mean(np.logaddexp(0.0, output) - label * output)


def recordings(cell: Any) -> int:
    """How often a compiled optimizer or step was recorded."""
    return sum(map(len, cell._compiled._specializations.values()))


def stepping(net: nn.Cell, optimizer: nn.Optimizer, loss: Any = squared) -> nn.TrainOneStepCell:
    return nn.TrainOneStepCell(nn.WithLossCell(net, loss), optimizer)


MAKERS: list[tuple[Any, int]] = [
    (lambda p: nn.SGD(p, 0.2), 150),
    (lambda p: nn.Momentum(p, 0.05, 0.8), 250),
    (lambda p: nn.Adam(p, nn.CosineDecayLR(0.0, 0.3, 400)), 400),
    (lambda p: nn.RMSProp(p, nn.CosineDecayLR(0.0, 0.05, 500)), 500),
]


@pytest.mark.parametrize(("make", "steps"), MAKERS)
def test_linear_regression(make: Any, steps: int) -> None:
    net = Linear()
    step = stepping(net, make(net.trainable_params()))
    for _ in range(steps):
        loss = step(nb.Tensor(X), nb.Tensor(Y))
    assert float(loss) < 1e-8
    np.testing.assert_allclose(net.weight.asnumpy(), TRUE, atol=1e-4)
    np.testing.assert_allclose(net.bias.asnumpy(), [0.25], atol=1e-4)
    assert recordings(step) == 1


def test_logistic_regression() -> None:
    """At the minimum, the gradient is zero: sum of (probability - label) * x, computed in NumPy."""
    x = X.astype(np.float64)
    label = (rng.random((64, 1)) < 1 / (1 + np.exp(-(x @ TRUE)))).astype(np.float64)
    net = Linear(np.float64)
    step = stepping(net, nn.Momentum(net.trainable_params(), 1.0, 0.8), logistic)
    losses = [float(step(nb.Tensor(x), nb.Tensor(label))) for _ in range(400)]
    assert losses[-1] < 0.7 * losses[0] and losses[0] == pytest.approx(np.log(2))
    probability = 1 / (1 + np.exp(-(x @ net.weight.asnumpy() + net.bias.asnumpy())))
    np.testing.assert_allclose(x.T @ (probability - label), np.zeros((3, 1)), atol=1e-7)


OPTIMIZERS: list[Any] = [
    lambda p: nn.SGD(p, 0.1, 0.9, 0.1, 0.01),
    lambda p: nn.Adam(p, 0.1, use_amsgrad=True),
    lambda p: nn.AdamW(p, [0.1, 0.2]),
    lambda p: nn.AdamWeightDecay(p, 0.1, weight_decay=0.1),
    lambda p: nn.RMSProp(p, nn.ExponentialDecayLR(0.1, 0.9, 3), centered=True),
    lambda p: nn.Adagrad(p, learning_rate=0.1),
]


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_a_compiled_step_equals_its_parts(make: Any) -> None:
    def trained(way: str) -> list[np.ndarray]:
        net = Linear()
        optimizer = make(net.trainable_params())
        loss_cell = nn.WithLossCell(net, squared)
        gradients = nb.value_and_grad(loss_cell, None, optimizer.parameters)

        def by_hand(x: Any, y: Any) -> Any:
            loss, found = gradients(x, y)
            optimizer(found)
            return loss

        ways = {"cell": stepping(net, optimizer), "jit": nb.jit(by_hand), "parts": by_hand}
        losses = [ways[way](nb.Tensor(X), nb.Tensor(Y)).asnumpy() for _ in range(5)]
        return [*losses, *[p.asnumpy() for p in (*optimizer.parameters, *optimizer.get_parameters())]]

    parts = trained("parts")
    for way in ("cell", "jit"):
        for got, expected in zip(trained(way), parts, strict=True):
            np.testing.assert_allclose(got, expected, rtol=2e-6, atol=1e-7)


def test_a_step_without_tensors_and_with_other_shapes() -> None:
    net = Linear()
    step = stepping(net, nn.SGD(net.trainable_params(), 0.1))
    first = step(X, Y)
    assert isinstance(first, nb.Tensor) and float(first) == pytest.approx(float(np.mean(Y**2)), rel=1e-6)
    assert float(step(nb.Tensor(X[:7]), nb.Tensor(Y[:7]))) < 5.0
    assert int(step.optimizer.global_step) == 2


def test_sens_scales_the_gradient_and_the_optimizer_divides() -> None:
    def weight(sens: float, loss_scale: float) -> float:
        net = Linear()
        optimizer = nn.SGD(net.trainable_params(), 0.1, loss_scale=loss_scale)
        nn.TrainOneStepCell(nn.WithLossCell(net, squared), optimizer, sens)(nb.Tensor(X), nb.Tensor(Y))
        return float(net.bias.asnumpy()[0])

    assert weight(4.0, 4.0) == weight(1.0, 1.0)
    assert weight(2.0, 1.0) == pytest.approx(2 * weight(1.0, 1.0), rel=1e-6)


def test_a_step_sees_the_mode_and_what_is_frozen() -> None:
    class Noisy(Linear):
        def construct(self, x: Any) -> Any:
            return super().construct(x) + (1.0 if self.training else 0.0)

    net = Noisy()
    step = stepping(net, nn.SGD(net.trainable_params(), 0.0))
    plain = float(step(nb.Tensor(X), nb.Tensor(Y)))
    step.set_train()
    assert float(step(nb.Tensor(X), nb.Tensor(Y))) == pytest.approx(np.mean((Y - 1) ** 2), rel=1e-5)
    step.set_train(False)
    assert float(step(nb.Tensor(X), nb.Tensor(Y))) == plain
    net.bias.requires_grad = False
    nb.ops.assign(step.optimizer.learning_rate, 0.1)
    step(nb.Tensor(X), nb.Tensor(Y))
    assert float(net.bias.asnumpy()[0]) == 0.0 and net.weight.asnumpy().any()
    net.bias.requires_grad = True
    step(nb.Tensor(X), nb.Tensor(Y))
    assert net.bias.asnumpy().any()


def test_cells_around_a_network_keep_its_names() -> None:
    net = Linear()
    step = stepping(net, nn.Adam(net.trainable_params()))
    assert [p.name for p in net.get_parameters()] == ["weight", "bias"]
    assert {"weight", "bias", "moment1.weight", "global_step"} < set(step.parameters_dict())
    evaluation = nn.WithEvalCell(net, squared)
    loss, output, label = evaluation(nb.Tensor(X), nb.Tensor(Y))
    assert float(loss) == pytest.approx(float(np.mean(Y**2)), rel=1e-6) and output.shape == label.shape == (64, 1)
    assert nn.WithLossCell(net, squared).backbone_network is net


def test_forward_value_and_grad() -> None:
    """d(w x^2)/dx = 2 w x, d/dw = x^2; the last input is the cotangent with `sens_param`."""
    w = nb.Parameter(nb.Tensor([2.0]), name="w")

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.w = w
            self.calls = 0

        def construct(self, x: Any, y: Any) -> Any:
            self.calls += 1
            return self.w * x * x + y

    x, y, sens = nb.Tensor([3.0]), nb.Tensor([1.0]), nb.Tensor([10.0])

    def result(*inputs: Any, **options: Any) -> Any:
        net = Net()
        value, gradients = nn.ForwardValueAndGrad(net, **options)(*inputs)
        assert value.tolist() == [19.0] and net.calls == 1
        return _lists(gradients)

    assert result(x, y) == [12.0]
    assert result(x, y, get_all=True) == ([12.0], [1.0])
    assert result(x, y, get_by_list=True) == ([9.0],)
    assert result(x, y, get_all=True, get_by_list=True) == (([12.0], [1.0]), ([9.0],))
    assert result(x, y, sens, sens_param=True, get_by_list=True, weights=[w]) == ([90.0],)
    with pytest.raises(DtypeError, match="get_all"):
        nn.ForwardValueAndGrad(Net(), get_all=1)
    with pytest.raises(DtypeError, match="network"):
        nn.ForwardValueAndGrad(3)


def _lists(tree: Any) -> Any:
    return tuple([_lists(part) for part in tree]) if isinstance(tree, tuple) else tree.tolist()


def test_wrong_arguments() -> None:
    net = Linear()
    with pytest.raises(DtypeError, match="Optimizer"):
        nn.TrainOneStepCell(net, net)
    with pytest.raises(DtypeError, match="network must be a Cell"):
        nn.TrainOneStepCell(squared, nn.SGD(net.trainable_params()))
    with pytest.raises(ArgumentError, match="sens"):
        nn.TrainOneStepCell(net, nn.SGD(net.trainable_params()), float("nan"))
    with pytest.raises(DtypeError, match="backbone"):
        nn.WithLossCell(squared, squared)


def test_an_error_in_a_step_changes_nothing() -> None:
    net = Linear()
    step = stepping(net, nn.Adam(net.trainable_params(), 0.1))
    step(nb.Tensor(X), nb.Tensor(Y))
    before = [p.asnumpy() for p in step.get_parameters()]
    with pytest.raises(ValueError, match=r"shape|mismatch"):
        step(nb.Tensor(X[:, :2]), nb.Tensor(Y))
    for parameter, value in zip(step.get_parameters(), before, strict=True):
        np.testing.assert_array_equal(parameter.asnumpy(), value)
