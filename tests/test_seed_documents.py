"""The examples of the documents that define the interface, in their order, with only the module's name changed.

1. "Automatic differentiation", MindSpore's tutorial: GradOperation, weights, sens_param, stop_gradient
2. "Function differences with tf.gradients" and "... with torch.autograd": grad of a Cell inside a Cell
3. `ops.GradOperation`: all its combinations, for the network that its text describes
4. `ops.grad`: positions, has_aux, weights
The printed text is what the documents show.
"""

from __future__ import annotations

import numpy as np
import pytest

import nbgrad
import nbgrad as ms
import nbgrad.nn as nn
import nbgrad.ops as ops
from nbgrad import Parameter, ParameterTuple, Tensor
from nbgrad import dtype as mstype
from nbgrad.ops import grad, stop_gradient

# ----- 1. Automatic differentiation -----


class Line(nn.Cell):
    def __init__(self):
        super(Line, self).__init__()  # noqa: UP008  (as in the document)
        self.w = Parameter(np.array([6.0]), name="w")
        self.b = Parameter(np.array([1.0]), name="b")

    def construct(self, x):
        return self.w * x + self.b


class WeightsGradNet(nn.Cell):
    def __init__(self, net):
        super().__init__()
        self.net = net
        self.params = ParameterTuple(net.trainable_params())
        self.grad_op = ops.GradOperation(get_by_list=True)

    def construct(self, x):
        gradient_function = self.grad_op(self.net, self.params)
        return gradient_function(x)


def test_tutorial_derivative_of_the_input(capsys):
    class GradNet(nn.Cell):
        def __init__(self, net):
            super().__init__()
            self.net = net
            self.grad_op = ops.GradOperation()

        def construct(self, x):
            gradient_function = self.grad_op(self.net)
            return gradient_function(x)

    x = Tensor([100], dtype=mstype.float32)
    output = GradNet(Line())(x)
    print(output)  # noqa: T201
    assert capsys.readouterr().out == "[6.]\n"


def test_tutorial_derivative_of_the_weights():
    x = Tensor([100], dtype=mstype.float32)
    fx = WeightsGradNet(Line())(x)
    assert f"wgrad: {fx[0]}\nbgrad: {fx[1]}" == "wgrad: [100.]\nbgrad: [1.]"


def test_tutorial_weights_that_are_not_trained(capsys):
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(np.array([6], np.float32)), name="w")
            self.b = Parameter(Tensor(np.array([1.0], np.float32)), name="b", requires_grad=False)

        def construct(self, x):
            return x * self.w + self.b

    x = Tensor([5], dtype=mstype.float32)
    fw = WeightsGradNet(Net())(x)
    print(fw)  # noqa: T201
    assert capsys.readouterr().out == "(Tensor(shape=[1], dtype=Float32, value= [ 5.00000000e+00]),)\n"


class FrozenBias(nn.Cell):
    def __init__(self):
        super().__init__()
        self.w = Parameter(Tensor(np.array([6], np.float32)), name="w")
        self.b = Parameter(Tensor(np.array([1.0], np.float32)), name="b", requires_grad=False)

    def construct(self, x):
        return x * self.w + self.b


@pytest.mark.parametrize("Net", [FrozenBias, Line])  # that of the section before, and the page's first one, in float64
def test_tutorial_scaled_gradient(capsys, Net):
    class GradNet(nn.Cell):
        def __init__(self, net):
            super().__init__()
            self.net = net
            self.grad_op = ops.GradOperation(sens_param=True)
            self.grad_wrt_output = Tensor([0.1], dtype=mstype.float32)

        def construct(self, x):
            gradient_function = self.grad_op(self.net)
            return gradient_function(x, self.grad_wrt_output)

    x = Tensor([6], dtype=mstype.float32)
    output = GradNet(Net())(x)
    print(output)  # noqa: T201
    assert capsys.readouterr().out == "[0.6]\n"


def test_tutorial_stopped_gradient():
    class Net(nn.Cell):
        def __init__(self):
            super().__init__()
            self.w = Parameter(Tensor(np.array([6], np.float32)), name="w")
            self.b = Parameter(Tensor(np.array([1.0], np.float32)), name="b")

        def construct(self, x):
            out = x * self.w + self.b
            # Stop updating the gradient. The out does not contribute to gradient calculations.
            return stop_gradient(out)

    x = Tensor([100], dtype=mstype.float32)
    output = WeightsGradNet(Net())(x)
    assert f"wgrad: {output[0]}\nbgrad: {output[1]}" == "wgrad: [0.]\nbgrad: [0.]"


# ----- 2. Differences with tf.gradients and torch.autograd -----


class Product(nn.Cell):
    def __init__(self):
        super().__init__()
        self.matmul = ops.MatMul()
        self.z = ms.Parameter(ms.Tensor(np.array([1.0], np.float32)), name="z")

    def construct(self, x, y):
        x = x * self.z
        return self.matmul(x, y)


@pytest.fixture
def x():
    return ms.Tensor([[0.5, 0.6, 0.4], [1.2, 1.3, 1.1]], dtype=ms.float32)


@pytest.fixture
def y():
    return ms.Tensor([[0.01, 0.3, 1.1], [0.1, 0.2, 1.3], [2.1, 1.2, 3.3]], dtype=ms.float32)


WRT_X = np.float32([[1.4100001, 1.5999999, 6.6], [1.4100001, 1.5999999, 6.6]])
"""As both documents print it."""
WRT_Y = np.float32([[1.7, 1.7, 1.7], [1.9, 1.9, 1.9], [1.5, 1.5, 1.5]])
"""The column sums of x, by hand."""


def test_differences_gradient_of_a_cell(x, y, capsys):
    class GradNetWrtX(nn.Cell):
        def __init__(self, net):
            super().__init__()
            self.net = net

        def construct(self, x, y):
            gradient_function = ms.grad(self.net)
            return gradient_function(x, y)

    output = GradNetWrtX(Product())(x, y)
    print(output)  # noqa: T201
    # The last digit of a float32 sum depends on the order of its terms.
    assert np.max(np.abs(np.asarray(output) - WRT_X)) <= 2.4e-7
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("[[1.41") and second.startswith(" [1.41") and second.endswith("]]")


# ----- 3. ops.GradOperation -----


class GradNetWrt(nn.Cell):
    """The networks that the text describes: one combination of flags each."""

    def __init__(self, net, **flags):
        super().__init__()
        self.net = net
        self.params = ParameterTuple(net.trainable_params())
        self.grad_op = ops.GradOperation(**flags)
        self.by_list = flags.get("get_by_list", False)

    def construct(self, *args):
        gradient_function = self.grad_op(self.net, self.params) if self.by_list else self.grad_op(self.net)
        return gradient_function(*args)


def test_grad_operation_of_the_first_input(x, y):
    output = GradNetWrt(Product())(x, y)
    np.testing.assert_allclose(output, WRT_X, rtol=1e-6)


def test_grad_operation_of_all_inputs(x, y):
    output = GradNetWrt(Product(), get_all=True)(x, y)
    assert isinstance(output, tuple) and len(output) == 2
    np.testing.assert_allclose(output[0], WRT_X, rtol=1e-6)
    np.testing.assert_allclose(output[1], WRT_Y, rtol=1e-6)


def test_grad_operation_of_parameters(x, y):
    output = GradNetWrt(Product(), get_by_list=True)(x, y)
    assert isinstance(output, tuple) and len(output) == 1 and output[0].shape == (1,)
    np.testing.assert_allclose(output[0], [1.7 * 1.41 + 1.9 * 1.6 + 1.5 * 6.6], rtol=1e-6)


def test_grad_operation_of_inputs_and_parameters(x, y):
    inputs, parameters = GradNetWrt(Product(), get_all=True, get_by_list=True)(x, y)
    np.testing.assert_allclose(inputs[0], WRT_X, rtol=1e-6)
    np.testing.assert_allclose(inputs[1], WRT_Y, rtol=1e-6)
    assert len(parameters) == 1


def test_grad_operation_with_a_sensitivity(x, y):
    grad_wrt_output = Tensor(np.array([[0.1, 0.6, 0.2], [0.8, 1.3, 1.1]]).astype(np.float32))
    output = GradNetWrt(Product(), get_all=True, sens_param=True)(x, y, grad_wrt_output)
    # sens @ y.T and x.T @ sens, in double precision.
    sens, a, b = (np.asarray(t, np.float64) for t in (grad_wrt_output, x, y))
    np.testing.assert_allclose(output[0], sens @ b.T, rtol=1e-6)
    np.testing.assert_allclose(output[1], a.T @ sens, rtol=1e-6)


@pytest.mark.parametrize("flag", ["get_all", "get_by_list", "sens_param"])
def test_grad_operation_takes_flags_only(flag):
    with pytest.raises(TypeError, match=f"{flag} must be a bool"):
        ops.GradOperation(**{flag: 1})


# ----- 4. ops.grad -----


def test_grad_cell_with_two_positions(capsys):
    class Net(nn.Cell):
        def construct(self, x, y, z):
            return x * y * z

    x = Tensor([1, 2], nbgrad.float32)
    y = Tensor([-2, 3], nbgrad.float32)
    z = Tensor([0, 3], nbgrad.float32)
    net = Net()
    output = grad(net, grad_position=(1, 2))(x, y, z)
    print(output)  # noqa: T201
    # The document breaks this line in two.
    assert capsys.readouterr().out == (
        "(Tensor(shape=[2], dtype=Float32, value= [ 0.00000000e+00,  6.00000000e+00]), "
        "Tensor(shape=[2], dtype=Float32, value= [-2.00000000e+00,  6.00000000e+00]))\n"
    )


def test_grad_function_with_aux(capsys):
    def fn(x, y, z):
        res = x * ops.exp(y) * ops.pow(z, 2)
        return res, z

    x = Tensor([3, 3], nbgrad.float32)
    y = Tensor([0, 0], nbgrad.float32)
    z = Tensor([5, 5], nbgrad.float32)
    gradient, aux = grad(fn, (1, 2), None, True)(x, y, z)
    print(gradient)  # noqa: T201
    print(aux)  # noqa: T201
    assert capsys.readouterr().out == (
        "(Tensor(shape=[2], dtype=Float32, value= [ 7.50000000e+01,  7.50000000e+01]), "
        "Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+01,  3.00000000e+01]))\n"
        "(Tensor(shape=[2], dtype=Float32, value= [ 5.00000000e+00,  5.00000000e+00]),)\n"
    )


@pytest.fixture
def regression():
    rng = np.random.default_rng(0)
    net = nn.Dense(10, 1)
    loss_fn = nn.MSELoss()

    def forward(inputs, labels):
        logits = net(inputs)
        loss = loss_fn(logits, labels)
        return loss, logits

    inputs = Tensor(rng.standard_normal((16, 10)).astype(np.float32))
    labels = Tensor(rng.standard_normal((16, 1)).astype(np.float32))
    return net.trainable_params(), forward, inputs, labels


def test_grad_case_1_inputs(regression):
    _, forward, inputs, labels = regression
    grad_fn = grad(forward, grad_position=(0, 1), weights=None, has_aux=True)
    inputs_gradient, (aux_logits,) = grad_fn(inputs, labels)
    assert len(inputs_gradient) == 2
    assert aux_logits.shape == (16, 1)


def test_grad_case_2_weights(regression):
    weights, forward, inputs, labels = regression
    grad_fn = grad(forward, grad_position=None, weights=weights, has_aux=True)
    params_gradient, (aux_logits,) = grad_fn(inputs, labels)
    assert (len(weights), len(params_gradient)) == (2, 2)
    assert aux_logits.shape == (16, 1)
    # The gradient of the mean square by hand, in double precision.
    residual = np.asarray(aux_logits, np.float64) - np.asarray(labels, np.float64)
    np.testing.assert_allclose(params_gradient[0], 2 / 16 * residual.T @ np.asarray(inputs), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(params_gradient[1], 2 / 16 * residual.sum(0), rtol=1e-4, atol=1e-6)


def test_grad_case_3_inputs_and_weights(regression):
    weights, forward, inputs, labels = regression
    grad_fn = grad(forward, grad_position=0, weights=weights, has_aux=False)
    inputs_gradient, params_gradient = grad_fn(inputs, labels)
    assert inputs_gradient.shape == (16, 10)
    assert (len(weights), len(params_gradient)) == (2, 2)


def test_grad_of_nothing_is_an_error():
    with pytest.raises(ValueError, match="both None"):
        grad(lambda x: x, None)
