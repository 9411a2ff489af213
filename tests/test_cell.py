"""Cells: registration, names, modes, text, and what compiled functions notice about them."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import Parameter, Tensor, nn
from nbgrad.tensors.initial_values import initializer


class Scale(nn.Cell):
    """x * w."""

    def __init__(self, value=2.0, name=None):
        super().__init__()
        self.w = Parameter(Tensor([value]), name=name)

    def construct(self, x):
        return x * self.w


class Pair(nn.Cell):
    """Two Scales, a bias of its own, a number, and a mode."""

    def __init__(self):
        super().__init__()
        self.bias = Parameter(Tensor([1.0]), name="offset")
        self.first = Scale(2.0)
        self.second = Scale(3.0)
        self.factor = 1.0

    def construct(self, x, shift=0.0, *, flip=False):
        out = self.second(self.first(x)) * self.factor + self.bias + shift
        if self.training:
            out = out + 100.0
        return -out if flip else out


X = Tensor([1.0, 2.0])


# ----- Registration and names -----


def test_names_and_order():
    net = Pair()
    assert [p.name for p in net.get_parameters()] == ["offset", "first.w", "second.w"]
    assert [n for n, _ in net.parameters_and_names()] == ["bias", "first.w", "second.w"]
    assert [n for n, _ in net.parameters_and_names("net")] == ["net.bias", "net.first.w", "net.second.w"]
    assert [p.name for p in net.get_parameters(expand=False)] == ["offset"]
    assert isinstance(net.parameters_dict(), OrderedDict) and list(net.parameters_dict()) == [
        "offset",
        "first.w",
        "second.w",
    ]
    assert list(net.cells()) == [net.first, net.second] and list(net.name_cells()) == ["first", "second"]
    assert [n for n, _ in net.cells_and_names()] == ["", "first", "second"]
    net.update_parameters_name("model.")
    assert [p.name for p in net.get_parameters()] == ["model.bias", "model.first.w", "model.second.w"]


def test_deep_names():
    class Outer(nn.Cell):
        def __init__(self):
            super().__init__()
            self.blocks = nn.CellList([nn.SequentialCell(Scale(), Pair())])

    assert [p.name for p in Outer().get_parameters()] == [
        "blocks.0.0.w",
        "blocks.0.1.bias",
        "blocks.0.1.first.w",
        "blocks.0.1.second.w",
    ]


def test_shared_cells_and_parameters_are_listed_once():
    class Twice(nn.Cell):
        def __init__(self):
            super().__init__()
            self.a = Scale()
            self.b = self.a

        def construct(self, x):
            return self.b(self.a(x))

    net = Twice()
    assert len(net.trainable_params()) == 1 and list(net.name_cells()) == ["a"]
    assert [n for n, _ in net.cells_and_names()] == ["", "a"]
    # d/dw of x w**2 at w = 2
    assert nb.grad(net, None, net.trainable_params())(Tensor([3.0]))[0].tolist() == [12.0]


def test_attributes_change_hands():
    net = Pair()
    net.first = None
    assert list(net.name_cells()) == ["second"] and net.first is None
    net.bias = None
    assert "bias" not in net._params and net.bias is None
    del net.second
    assert not list(net.cells()) and not hasattr(net, "second")
    net.second = Scale()
    net.second = Parameter(Tensor([1.0]))
    assert [p.name for p in net.get_parameters()] == ["second"] and not list(net.cells())


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda net: setattr(net, "bias", 3.0), TypeError, "bias of Pair is a Parameter"),
        (lambda net: setattr(net, "first", 3.0), TypeError, "first of Pair is a Cell"),
        (lambda net: net.nothing, AttributeError, "Pair has no attribute 'nothing'"),
        (lambda net: net.insert_param_to_cell("a.b", net.bias), KeyError, "param_name must be a name without dots"),
        (lambda net: net.insert_param_to_cell("", net.bias), KeyError, "param_name"),
        (lambda net: net.insert_param_to_cell("factor", net.bias), KeyError, "already the name"),
        (lambda net: net.insert_param_to_cell("v", X), TypeError, "param must be a Parameter"),
        (lambda net: net.insert_param_to_cell(3, net.bias), TypeError, "param_name must be a string"),
        (lambda net: net.insert_child_to_cell("bias", Scale()), KeyError, "already the name"),
        (lambda net: net.insert_child_to_cell("c", X), TypeError, "child_cell must be a Cell"),
        (lambda net: net.set_train(1), TypeError, "mode must be a bool"),
        (lambda net: net.to_float(nb.int32), ValueError, "to_float takes float16"),
        (lambda net: net.update_parameters_name(3), TypeError, "prefix must be a string"),
        (lambda net: net(), TypeError, "'x'"),
        (lambda net: nn.Cell()(X), AttributeError, "Cell has no construct method"),
        (lambda net: nn.CellList([Scale(), 3]), TypeError, "CellList holds Cells only, but got int"),
        (lambda net: nn.CellList([Scale()])[1], IndexError, "out of range for 1 Cells"),
        (lambda net: nn.CellList([Scale()])["a"], TypeError, "indexed by integers"),
        (lambda net: nn.CellList([Scale()])(X), AttributeError, "has no construct method"),
        (lambda net: nn.CellDict({"a": Scale()})["b"], KeyError, "There is no Cell 'b'; there are 'a'"),
        (lambda net: nn.SequentialCell(3), TypeError, "takes Cells or a list of Cells"),
    ],
)
def test_bad_use(act, error, text):
    net = Pair()
    with pytest.raises(error, match=text):
        act(net)
    assert [p.name for p in net.get_parameters()] == ["offset", "first.w", "second.w"]


def test_super_init_comes_first():
    class Early(nn.Cell):
        def __init__(self):
            self.w = Parameter(Tensor([1.0]))

    with pytest.raises(AttributeError, match=r"before super\(\).__init__\(\) was called"):
        Early()


# ----- Calling -----


def test_keyword_and_default_arguments():
    net = Pair()
    assert net(X).tolist() == [7.0, 13.0] and net(X, flip=True).tolist() == [-7.0, -13.0]
    assert net(x=X, shift=1.0).tolist() == [8.0, 14.0]
    assert nb.grad(net)(X, shift=1.0, flip=True).tolist() == [-6.0, -6.0]
    shift = Tensor([1.0, 1.0])
    first, second = nb.grad(net, (0, 1))(shift=shift, x=X)
    assert first.tolist() == [6.0, 6.0] and second.tolist() == [1.0, 1.0]


def test_arrays_are_taken():
    assert nb.grad(Pair())(np.array([1.0, 2.0])).tolist() == [6.0, 6.0]


def test_own_derivative():
    class Scaled(nn.Cell):
        def construct(self, x, y):
            return x * y

        def bprop(self, x, y, out, dout):
            return dout * 100, dout + out

    x, y = Tensor([1.0, 2.0]), Tensor([3.0, 4.0])
    first, second = nb.grad(Scaled(), (0, 1))(x, y)
    assert first.tolist() == [100.0, 100.0] and second.tolist() == [4.0, 9.0]
    assert nb.jit(nb.grad(Scaled()))(x, y).tolist() == [100.0, 100.0]

    class ByKeyword(Scaled):
        def bprop(self, x, y, *, out, dout):
            return dout * 10, dout

    assert nb.grad(ByKeyword())(x, y).tolist() == [10.0, 10.0]


def test_to_float():
    net = Scale().to_float(nb.float16)
    assert net(Tensor([1.0], nb.float64)).dtype == nb.float16 and net.w.dtype == nb.float32
    assert net(Tensor([1])).dtype == nb.float16
    gradient = nb.grad(net, None, net.w)(Tensor([3.0]))
    assert gradient.dtype == nb.float32 and gradient.tolist() == [3.0]


def test_apply_is_bottom_up():
    seen = []
    net = Pair()
    assert net.apply(lambda cell: seen.append(cell)) is net and seen == [net.first, net.second, net]


# ----- Compiled -----


def test_compiled_cells_notice_their_mode_and_attributes():
    net = Pair()
    f = nb.jit(net)
    assert f(X).tolist() == [7.0, 13.0]
    net.set_train()
    assert f(X).tolist() == [107.0, 113.0]
    net.set_train(False)
    before = len(f.programs())
    assert f(X).tolist() == [7.0, 13.0] and len(f.programs()) == before == 2
    net.factor = 2.0
    assert f(X).tolist() == [13.0, 25.0]
    net.second = Scale(0.0)
    assert f(X).tolist() == [1.0, 1.0]
    net.second.w = Parameter(Tensor([5.0]))
    assert f(X).tolist() == [21.0, 41.0]
    net.second.w = Tensor([1.0])
    assert f(X).tolist() == [5.0, 9.0]
    assert f.trainable_params() == net.trainable_params() and f.first is net.first


def test_compiled_cells_notice_their_lists_and_dicts():
    class Scaled(nn.Cell):
        def __init__(self):
            super().__init__()
            self.factors, self.options = [2.0, 1.0], {"shift": 0.0}

        def construct(self, x):
            return x * self.factors[0] + self.options["shift"]

    net = Scaled()
    f = nb.jit(net)
    assert f(X).tolist() == [2.0, 4.0]
    net.factors[0] = 3.0
    net.options["shift"] = 1.0
    assert f(X).tolist() == [4.0, 7.0]


def test_compiled_cells_without_parameters_notice_their_mode():
    class Mode(nn.Cell):
        def construct(self, x):
            return x + 1.0 if self.training else x

    net = Mode()
    f = nb.jit(net)
    x = np.array([1.0])
    assert f(x).tolist() == [1.0] and f(x).tolist() == [1.0]
    net.set_train()
    assert f(x).tolist() == [2.0]


def test_compiled_construct_and_method():
    net = Pair()
    assert nb.jit(net.construct)(X).tolist() == [7.0, 13.0]

    class Decorated(Scale):
        @nb.jit
        def construct(self, x):
            return x * self.w

    a, b = Decorated(2.0), Decorated(3.0)
    assert a(X).tolist() == [2.0, 4.0] and b(X).tolist() == [3.0, 6.0]
    a.w = Tensor([5.0])
    assert a(X).tolist() == [5.0, 10.0] and nb.grad(a)(X).tolist() == [5.0, 5.0]


def test_cells_inside_of_functions_are_noticed_too():
    net = Pair()
    f = nb.jit(nb.value_and_grad(lambda x: net(x).sum(), 0, net.trainable_params()))
    value, (gx, _) = f(X)
    assert float(value) == 20.0 and gx.tolist() == [6.0, 6.0]
    net.set_train()
    assert float(f(X)[0]) == 220.0


def test_copies_are_independent():
    net = Pair()
    net.step = nb.jit(net.construct)
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(Scale(7.0)))):
        other.trainable_params()[0].set_data(Tensor([50.0]))
        assert [p.name for p in net.get_parameters()] == ["offset", "first.w", "second.w"]
        assert net(X).tolist() == [7.0, 13.0]
    other = copy.deepcopy(net)
    assert other.bias is other._params["bias"] and other.first is other._cells["first"] and other.first is not net.first
    assert other.step(X).tolist() == [7.0, 13.0]


# ----- Text and containers -----


def test_text():
    class Named(Scale):
        def extend_repr(self):
            return "value=2"

    assert repr(Named()) == "Named(value=2)"
    assert repr(nn.SequentialCell(Named(), nn.CellList([Scale()]))) == (
        "SequentialCell(\n  (0): Named(value=2)\n  (1): CellList(\n    (0): Scale()\n  )\n)"
    )
    assert repr(nn.Dense(2, 3)) == "Dense(input_channels=2, output_channels=3, has_bias=True)"


def test_sequential_cell():
    cells = [Scale(2.0), Scale(3.0), Scale(5.0)]
    net = nn.SequentialCell(cells)
    assert len(net) == 3 and net(X).tolist() == [30.0, 60.0] and net[-1] is cells[2] and list(net) == cells
    assert net[:2](X).tolist() == [6.0, 12.0]
    net.insert(0, Scale(7.0))
    assert net(X).tolist() == [210.0, 420.0] and [p.name for p in net.get_parameters()] == ["0.w", "1.w", "2.w", "3.w"]
    del net[0]
    net[0] = Scale(1.0)
    assert net(X).tolist() == [15.0, 30.0] and net.pop() is cells[2] and len(net) == 2
    net.append(Scale(10.0)).extend([Scale(0.5)])
    assert net(X).tolist() == [15.0, 30.0]
    assert nn.SequentialCell(OrderedDict(a=Scale(2.0), b=Scale(4.0)))(X).tolist() == [8.0, 16.0]
    assert nn.SequentialCell()(X) is X


def test_cell_dict():
    heads = nn.CellDict({"a": Scale(2.0)})
    heads.update([("b", Scale(3.0))])
    assert list(heads) == list(heads.keys()) == ["a", "b"] and "a" in heads and len(heads) == 2
    assert [p.name for p in heads.get_parameters()] == ["a.w", "b.w"] and len(list(heads.items())) == 2
    assert heads.pop("a")(X).tolist() == [2.0, 4.0] and list(heads.values()) == [heads["b"]]
    heads.clear()
    assert len(heads) == 0


def test_initializers():
    nb.set_seed(0)
    shape = (400, 300)
    # The standard deviations that the papers give.
    for name, deviation in [
        ("normal", 0.01),
        ("uniform", 0.07 / 3**0.5),
        ("xavier_uniform", (2 / 700) ** 0.5),
        ("xavier_normal", (2 / 700) ** 0.5),
        ("he_uniform", (2 / 300) ** 0.5),
        ("he_normal", (2 / 300) ** 0.5),
    ]:
        values = np.asarray(initializer(name, shape))
        assert values.dtype == np.float32 and abs(values.mean()) < 4 * deviation / 120000**0.5
        assert abs(values.std() / deviation - 1) < 0.02, name
    assert np.abs(np.asarray(initializer("truncatedNormal", shape))).max() <= 0.02
    q = np.asarray(initializer("orthogonal", shape, nb.float64))
    np.testing.assert_allclose(q.T @ q, np.eye(300), atol=1e-12)
    assert np.asarray(initializer("identity", (2, 2))).tolist() == [[1, 0], [0, 1]]
    nb.set_seed(5)
    first = nn.Dense(3, 3).weight.asnumpy()
    nb.set_seed(5)
    assert (first == nn.Dense(3, 3).weight.asnumpy()).all()
    for bad, error, text in [
        (("nothing", (2,)), ValueError, "There is no initializer 'nothing'"),
        ((Tensor([1.0]), (2,)), ValueError, "have shape"),
        (("zeros",), ValueError, "needs a shape"),
        (("zeros", (-1,)), ValueError, "integers that are not negative"),
        ((object(), (2,)), TypeError, "An initial value"),
        (("xavier_uniform", (2,)), ValueError, "Fans need"),
    ]:
        with pytest.raises(error, match=text):
            initializer(*bad)
