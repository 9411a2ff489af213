"""Layers and losses beside recorded values: names, shapes, text, initial values, modes, randomness, errors."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import Tensor, nn
from nbgrad.errors import ArgumentError, DtypeError, NameTakenError, RangeError, ShapeError

pytestmark = pytest.mark.unoptimized

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4, 3))


def names(net: nn.Cell) -> dict[str, tuple[int, ...]]:
    return {parameter.name: parameter.shape for parameter in net.get_parameters()}


# ----- Parameters -----

PARAMETERS: dict[str, tuple[Any, dict[str, tuple[int, ...]]]] = {
    "Dense": (lambda: nn.Dense(3, 2), {"weight": (2, 3), "bias": (2,)}),
    "Dense without bias": (lambda: nn.Dense(3, 2, has_bias=False), {"weight": (2, 3)}),
    "Embedding": (lambda: nn.Embedding(5, 2), {"embedding_table": (5, 2)}),
    "PReLU": (lambda: nn.PReLU(3), {"w": (3,)}),
    "Conv2d": (lambda: nn.Conv2d(4, 6, (2, 3), group=2), {"weight": (6, 2, 2, 3)}),
    "Conv1d": (lambda: nn.Conv1d(4, 6, 3, has_bias=True), {"weight": (6, 4, 1, 3), "bias": (6,)}),
    "Conv2dTranspose": (
        lambda: nn.Conv2dTranspose(4, 6, 3, group=2, has_bias=True),
        {"weight": (4, 3, 3, 3), "bias": (6,)},
    ),
    "BatchNorm2d": (
        lambda: nn.BatchNorm2d(3),
        {"moving_mean": (3,), "moving_variance": (3,), "gamma": (3,), "beta": (3,)},
    ),
    "LayerNorm": (lambda: nn.LayerNorm([3]), {"gamma": (3,), "beta": (3,)}),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), {"gamma": (4,), "beta": (4,)}),
    "RMSNorm": (lambda: nn.RMSNorm(3), {"gamma": (3,)}),
    "LSTM": (
        lambda: nn.LSTM(3, 2, 2),
        {
            "weight_ih_l0": (8, 3),
            "weight_hh_l0": (8, 2),
            "bias_ih_l0": (8,),
            "bias_hh_l0": (8,),
            "weight_ih_l1": (8, 2),
            "weight_hh_l1": (8, 2),
            "bias_ih_l1": (8,),
            "bias_hh_l1": (8,),
        },
    ),
    "GRU": (
        lambda: nn.GRU(3, 2, has_bias=False, bidirectional=True),
        {
            "weight_ih_l0": (6, 3),
            "weight_hh_l0": (6, 2),
            "weight_ih_l0_reverse": (6, 3),
            "weight_hh_l0_reverse": (6, 2),
        },
    ),
    "RNNCell": (
        lambda: nn.RNNCell(3, 2),
        {"weight_ih": (2, 3), "weight_hh": (2, 2), "bias_ih": (2,), "bias_hh": (2,)},
    ),
    "MultiheadAttention": (
        lambda: nn.MultiheadAttention(4, 2),
        {"in_proj_weight": (12, 4), "in_proj_bias": (12,), "out_proj.weight": (4, 4), "out_proj.bias": (4,)},
    ),
    "MultiheadAttention of other sizes": (
        lambda: nn.MultiheadAttention(4, 2, has_bias=False, kdim=3),
        {"q_proj_weight": (4, 4), "k_proj_weight": (4, 3), "v_proj_weight": (4, 4), "out_proj.weight": (4, 4)},
    ),
}


@pytest.mark.parametrize("case", PARAMETERS)
def test_names_and_shapes_of_parameters(case: str) -> None:
    make, expected = PARAMETERS[case]
    net = make()
    assert {name: parameter.shape for name, parameter in net.parameters_and_names()} == expected
    assert all(parameter.dtype == nb.float32 for parameter in net.get_parameters())
    assert names(nn.SequentialCell(make())) == {f"0.{name}": shape for name, shape in expected.items()}


def test_names_that_mindspore_gives_without_regard_to_the_attribute() -> None:
    assert [p.name for p in nn.BatchNorm1d(2).get_parameters()] == ["mean", "variance", "gamma", "beta"]
    assert [p.name for p in nn.PReLU().get_parameters()] == ["a"]
    # As MindSpore 2.10 lists them: by kind, then by layer and direction.
    assert [p.name for p in nn.GRU(2, 3, 2).get_parameters()] == [
        f"{kind}_l{layer}" for kind in ("weight_ih", "weight_hh", "bias_ih", "bias_hh") for layer in (0, 1)
    ]


def test_which_parameters_are_trained() -> None:
    assert [p.name for p in nn.BatchNorm1d(2).trainable_params()] == ["gamma", "beta"]
    for net in (nn.BatchNorm1d(2, affine=False), nn.GroupNorm(1, 2, affine=False)):
        assert net.trainable_params() == []


@pytest.mark.parametrize(
    ("net", "bound"),
    [
        (nn.Dense(64, 50), 1 / 8),
        (nn.Conv2d(4, 30, 4, has_bias=True), 1 / 8),
        (nn.Conv2d(8, 30, 4, group=2, has_bias=True), 1 / 8),
        (nn.Conv1d(16, 50, 4, has_bias=True), 1 / 8),
        (nn.Conv2dTranspose(30, 4, 4, has_bias=True), 1 / 8),
        (nn.GRU(40, 16), 1 / 4),
    ],
    ids=lambda value: type(value).__name__,
)
def test_initial_values_are_uniform(net: nn.Cell, bound: float) -> None:
    """As PyTorch's: between plus and minus 1 / sqrt(fan_in), or 1 / sqrt(hidden_size)."""
    for parameter in net.get_parameters():
        values = parameter.asnumpy()
        assert np.abs(values).max() <= bound * (1 + 1e-6), parameter.name
        if values.size > 1000:
            assert np.abs(values).max() > 0.98 * bound
            np.testing.assert_allclose(values.std(), bound / np.sqrt(3), rtol=0.05)


def test_given_initial_values() -> None:
    net = nn.Dense(2, 2, weight_init=Tensor([[1.0, 2.0], [3.0, 4.0]]), bias_init=0.5, dtype=nb.float64)
    np.testing.assert_array_equal(net(np.array([1.0, 1.0])).asnumpy(), [3.5, 7.5])
    values = np.arange(6.0).reshape(1, 2, 3)
    np.testing.assert_array_equal(nn.Conv1d(2, 1, 3, weight_init=values).weight.asnumpy(), values.reshape(1, 2, 1, 3))
    np.testing.assert_array_equal(nn.PReLU(2, [0.5, 0.25]).w.asnumpy(), [0.5, 0.25])
    table = nn.Embedding(4, 3, embedding_table="ones", padding_idx=1).embedding_table.asnumpy()
    np.testing.assert_array_equal(table[:, 0], [1, 0, 1, 1])
    assert not np.array_equal(nn.Dense(9, 9).weight.asnumpy(), nn.Dense(9, 9).weight.asnumpy())


# ----- Text -----


@pytest.mark.parametrize(
    ("net", "text"),
    [
        (nn.Dense(2, 3), "Dense(input_channels=2, output_channels=3, has_bias=True)"),
        (nn.ReLU(), "ReLU()"),
        (nn.LeakyReLU(), "LeakyReLU(alpha=0.2)"),
        (nn.Softmax(), "Softmax(axis=-1)"),
        (nn.Dropout(p=0.3), "Dropout(p=0.3)"),
        (nn.MaxPool2d(2, 2), "MaxPool2d(kernel_size=(2, 2), stride=(2, 2), pad_mode=VALID)"),
        (nn.LSTM(3, 2, batch_first=True), "LSTM(input_size=3, hidden_size=2, batch_first=True)"),
        (nn.MSELoss("sum"), "MSELoss(reduction='sum')"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_text(net: nn.Cell, text: str) -> None:
    assert repr(net) == text


# ----- Activations -----


def test_activations_by_name() -> None:
    for name, cls in [("relu", nn.ReLU), ("logsoftmax", nn.LogSoftmax), ("fast_gelu", nn.FastGelu)]:
        assert type(nn.get_activation(name)) is cls
        assert type(nn.Dense(2, 3, activation=name).activation) is cls
    assert nn.get_activation(None) is None
    assert nn.SeLU is nn.SELU
    net = nn.Dense(3, 2, activation="prelu")
    assert list(names(net)) == ["weight", "bias", "activation.w"]


def test_numbers_that_shape_an_activation_can_be_changed() -> None:
    net = nn.LeakyReLU(0.5)
    compiled = nb.jit(net)
    x = Tensor([-4.0, 2.0])
    np.testing.assert_array_equal(compiled(x).asnumpy(), [-2, 2])
    net.alpha = 0.25
    np.testing.assert_array_equal(net(x).asnumpy(), [-1, 2])
    np.testing.assert_array_equal(compiled(x).asnumpy(), [-1, 2])


# ----- Dtypes and shapes -----


@pytest.mark.parametrize("dtype", [nb.float16, nb.float32, nb.float64])
def test_dtypes(dtype: Any) -> None:
    image, rows = Tensor(np.ones((2, 4, 6, 6)), dtype), Tensor(np.ones((2, 4)), dtype)
    sequence = Tensor(np.ones((3, 2, 4)), dtype)
    nets = [
        (nn.Dense(4, 2, dtype=dtype), rows),
        (nn.Conv2d(4, 2, 3, has_bias=True, dtype=dtype), image),
        (nn.BatchNorm2d(4, dtype=dtype).set_train(), image),
        (nn.LayerNorm(4, dtype=dtype), rows),
        (nn.GRU(4, 2, dtype=dtype), sequence),
        (nn.MultiheadAttention(4, 2, dtype=dtype), (sequence,) * 3),
        (nn.Dropout(p=0.5).set_train(), rows),
    ]
    for net, x in nets:
        inputs = x if isinstance(x, tuple) else (x,)
        found = net(*inputs)
        found = found if isinstance(found, tuple) else (found,)
        assert all(value.dtype == dtype for value in found), net
        gradients = nb.grad(net, 0, net.trainable_params())(*inputs)
        for g in (gradients[0], *gradients[1]):
            assert g.dtype == dtype and np.isfinite(g.asnumpy()).all(), net


def test_ndarrays_and_integers_are_taken() -> None:
    assert nn.Dense(3, 2)(np.ones((4, 3), np.float32)).dtype == nb.float32
    assert nn.Dense(3, 2)(np.ones((4, 3))).dtype == nb.float64
    assert nn.Dense(3, 2)(Tensor([[1, 2, 3]])).dtype == nb.float32


def test_empty_batches() -> None:
    for net, shape, expected in [
        (nn.Dense(3, 2), (0, 3), (0, 2)),
        (nn.Conv2d(3, 2, 3), (0, 3, 5, 5), (0, 2, 5, 5)),
        (nn.BatchNorm1d(3), (0, 3), (0, 3)),
        (nn.LayerNorm(3), (0, 3), (0, 3)),
        (nn.MaxPool2d(2, 2), (0, 3, 4, 4), (0, 3, 2, 2)),
    ]:
        assert net(nb.ops.ones(shape)).shape == expected
        assert nb.grad(net)(nb.ops.ones(shape)).shape == shape


def test_no_program_for_another_batch_size() -> None:
    net = nn.SequentialCell(nn.Dense(3, 5, activation="gelu"), nn.LayerNorm(5), nn.Dense(5, 1))
    step = nb.grad(net, None, net.trainable_params())
    step(nb.ops.ones((3, 3)))
    before = nb.counters["compiled"]
    step(nb.ops.ones((6, 3)))
    assert nb.counters["compiled"] == before


# ----- Both modes, any order -----


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_recurrences_in_both_modes(name: str) -> None:
    net = getattr(nn, name)(3, 2, bidirectional=True, dtype=nb.float64)
    lengths = np.array([2, 4])
    nb.check_grads(lambda x: net(x, seq_length=lengths)[0], (RNG.normal(size=(4, 2, 3)),), order=2)


@pytest.mark.parametrize("steps", [1, 8, 9, 70])
def test_sequences_of_any_length(steps: int) -> None:
    net = nn.RNN(2, 3, dtype=nb.float64)
    w, u, b, c = [parameter.asnumpy() for parameter in net.get_parameters()]
    x = RNG.normal(size=(steps, 2, 2))
    h, outputs = np.zeros((2, 3)), []
    for t in range(steps):
        h = np.tanh(x[t] @ w.T + b + h @ u.T + c)
        outputs.append(h)
    output, last = net(x)
    np.testing.assert_allclose(output.asnumpy(), outputs, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(last.asnumpy()[0], h, rtol=1e-12, atol=1e-14)
    # The adjoint against finite differences.
    nb.check_grads(lambda x: net(x)[0], (x,), order=1, modes=("rev",))


def test_attention_in_both_modes() -> None:
    net = nn.MultiheadAttention(4, 2, dtype=nb.float64)
    q, k = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(3, 3, 4))
    nb.check_grads(lambda q, k: net(q, k, k * 2.0)[0], (q, k), order=2)


def test_a_query_that_sees_nothing() -> None:
    net = nn.MultiheadAttention(4, 2, has_bias=False)
    q = nb.ops.ones((3, 2, 4))
    mask = np.zeros((3, 3), bool)
    mask[1] = True
    output, weights = net(q, q, q, attn_mask=mask)
    assert weights is not None
    np.testing.assert_array_equal(output.asnumpy()[1], 0)
    np.testing.assert_array_equal(weights.asnumpy()[:, 1], 0)
    np.testing.assert_allclose(weights.asnumpy()[:, [0, 2]].sum(-1), 1, rtol=1e-6)
    assert np.isfinite(nb.grad(lambda q: net(q, q, q, attn_mask=mask)[0])(q).asnumpy()).all()


# ----- Batch normalisation -----


def moved(x: np.ndarray, mean: Any, variance: Any, momentum: float) -> tuple[np.ndarray, np.ndarray]:
    """The moving statistics after one more batch."""
    return momentum * mean + (1 - momentum) * x.mean(0), momentum * variance + (1 - momentum) * x.var(0, ddof=1)


@pytest.mark.parametrize("transform", ["call", "jit", "grad", "jit of grad"])
def test_two_steps_of_moving_statistics(transform: str) -> None:
    net = nn.BatchNorm1d(3, momentum=0.8, dtype=nb.float64).set_train()
    weights = net.trainable_params()
    step = {
        "call": net,
        "jit": nb.jit(net),
        "grad": nb.grad(net, 0, weights),
        "jit of grad": nb.jit(nb.value_and_grad(net, 0, weights)),
    }[transform]
    mean, variance = np.zeros(3), np.ones(3)
    for scale in (1.0, 3.0):
        step(Tensor(X * scale))
        mean, variance = moved(X * scale, mean, variance, 0.8)
        np.testing.assert_allclose(net.moving_mean.asnumpy(), mean, rtol=1e-12)
        np.testing.assert_allclose(net.moving_variance.asnumpy(), variance, rtol=1e-12)
    net.set_train(False)
    for compiled in (net, nb.jit(net), step):
        compiled(Tensor(X))
    np.testing.assert_allclose(net.moving_mean.asnumpy(), mean, rtol=1e-12)
    np.testing.assert_allclose(net(X).asnumpy(), (X - mean) / np.sqrt(variance + 1e-5), rtol=1e-12)


def test_moving_statistics_alone() -> None:
    net = nn.BatchNorm1d(3, use_batch_statistics=False, moving_mean_init=2.0, dtype=nb.float64).set_train()
    np.testing.assert_allclose(net(X).asnumpy(), (X - 2) / np.sqrt(1 + 1e-5), rtol=1e-12)
    np.testing.assert_array_equal(net.moving_mean.asnumpy(), 2)


# ----- Dropout -----


def test_dropout_only_while_training() -> None:
    net = nn.Dropout(p=0.4)
    x = nb.ops.ones((100, 100))
    assert net(x) is not None and np.array_equal(net(x).asnumpy(), x.asnumpy())
    net.set_train()
    y = net(x).asnumpy()
    assert set(np.unique(y).tolist()) == {0.0, float(np.float32(1) / np.float32(0.6))}
    assert abs((y == 0).mean() - 0.4) < 0.02
    assert np.array_equal(nn.Dropout(p=0.0).set_train()(x).asnumpy(), x.asnumpy())
    assert abs((nn.Dropout(keep_prob=0.9).set_train()(x).asnumpy() == 0).mean() - 0.1) < 0.02
    # p counts where both are given.
    assert abs((nn.Dropout(0.9, 0.6).set_train()(x).asnumpy() == 0).mean() - 0.6) < 0.02


@pytest.mark.parametrize("compiled", [False, True])
def test_dropout_draws_anew(compiled: bool) -> None:
    net = nn.Dropout(p=0.5).set_train()
    step = nb.value_and_grad(net)
    step = nb.jit(step) if compiled else step
    x = nb.ops.ones((64,))
    (y, g), (z, _) = step(x), step(x)
    np.testing.assert_array_equal(y.asnumpy(), g.asnumpy())
    assert not np.array_equal(y.asnumpy(), z.asnumpy())


def test_dropout_inside_of_other_layers() -> None:
    x = nb.ops.ones((3, 2, 4))
    for net in (nn.LSTM(4, 8, 2, dropout=0.5), nn.MultiheadAttention(4, 2, dropout=0.5)):

        def output(net: Any = net) -> np.ndarray:
            return net(*([x] if isinstance(net, nn.LSTM) else [x, x, x]))[0].asnumpy()

        np.testing.assert_array_equal(output(), output())
        net.set_train()
        assert not np.array_equal(output(), output())
    # With one layer there is nothing between layers.
    single = nn.LSTM(4, 8, dropout=0.5).set_train()
    np.testing.assert_array_equal(single(x)[0].asnumpy(), single(x)[0].asnumpy())


# ----- Losses -----


def test_a_loss_of_ones_own() -> None:
    class Cubes(nn.LossBase):
        def construct(self, logits: Any, labels: Any) -> Any:
            return self.get_loss((logits - labels) ** 3, weights=np.array([1.0, 2.0]))

    x, y = np.array([2.0, 3.0]), np.array([1.0, 1.0])
    assert [Cubes(r)(x, y).tolist() for r in ("none", "sum", "mean")] == [[1.0, 16.0], 17.0, 8.5]


def test_weights_of_losses_are_tensors_too() -> None:
    x, labels = Tensor(X[:, :3]), Tensor([0, 1, 2, 1])
    weight = np.array([1.0, 2.0, 0.5])
    for given in (Tensor(weight), weight, weight.tolist()):
        loss = nn.CrossEntropyLoss(given, reduction="none")
        log_p = X - np.log(np.exp(X).sum(1, keepdims=True))
        np.testing.assert_allclose(loss(x, labels).asnumpy(), -(log_p * weight)[range(4), [0, 1, 2, 1]], rtol=1e-12)


def test_positions_of_maxima() -> None:
    x = nb.numpy.arange(16.0).reshape(1, 4, 4)
    best, at = nn.MaxPool2d(2, 2, return_indices=True)(x)
    assert (best.tolist(), at.tolist()) == ([[[5, 7], [13, 15]]], [[[5, 7], [13, 15]]])
    best, at = nn.AdaptiveMaxPool2d(1, return_indices=True)(x)
    assert (best.tolist(), at.tolist()) == ([[[15]]], [[[15]]])


# ----- Errors -----

ROWS, IMAGE, SEQUENCE = Tensor(X), nb.ops.ones((1, 3, 5, 5)), nb.ops.ones((5, 4, 3))
LABELS = Tensor([0, 1, 2, 0])

WRONG: list[tuple[Any, type[Exception], str]] = [
    (lambda: nn.Dense(3.5, 2), DtypeError, "in_channels must be an integer, but got 3.5"),
    (lambda: nn.Dense(3, 0), ArgumentError, "out_channels must be at least 1, but got 0"),
    (lambda: nn.Dense(True, 2), DtypeError, "in_channels must be an integer"),
    (lambda: nn.Dense(3, 2, has_bias=1), DtypeError, "has_bias must be a bool, True or False"),
    (lambda: nn.Dense(3, 2, activation="rule"), NameTakenError, "no activation 'rule'"),
    (lambda: nn.Dense(3, 2, activation=3), DtypeError, "activation must be a name or a Cell"),
    (lambda: nn.Dense(3, 2, np.ones((3, 2))), ShapeError, "have shape (3, 2), but the Parameter has shape (2, 3)"),
    (lambda: nn.Dense(3, 2, "no"), ArgumentError, "no initializer 'no'"),
    (lambda: nn.Dense(3, 2, dtype=nb.int32), DtypeError, "must be float16, float32 or float64"),
    (
        lambda: nn.Dense(5, 2)(ROWS),
        ShapeError,
        "must have 5 elements in its last axis (in_channels), but has shape (4, 3)",
    ),
    (lambda: nn.Dense(5, 2)(1.0), ShapeError, "must have 5 elements"),
    (lambda: nn.Embedding(3, 2, padding_idx=3), RangeError, "between 0 and 2, but got 3"),
    (lambda: nn.Embedding(3, 2, padding_idx=0.5), DtypeError, "padding_idx must be an integer"),
    (lambda: nn.Embedding(3, 2)(Tensor([3])), RangeError, "Index 3 is out of range"),
    (lambda: nn.Embedding(3, 2, True)(Tensor([3])), RangeError, "Index 3 is out of range"),
    (lambda: nn.Embedding(3, 2)(Tensor([0.5])), DtypeError, "integers"),
    (lambda: nn.Flatten("a"), DtypeError, "start_dim must be an integer"),
    (lambda: nn.Dropout(p=1.0), ArgumentError, "p must be at least 0 and less than 1"),
    (lambda: nn.Dropout(keep_prob=0), ArgumentError, "keep_prob must be more than 0"),
    (lambda: nn.Dropout(p="a"), DtypeError, "p must be a number"),
    (lambda: nn.ELU("a"), DtypeError, "alpha must be a number"),
    (lambda: nn.CELU(0), ArgumentError, "must not be 0"),
    (lambda: nn.Hardtanh(1, 0), ArgumentError, "at most max_val"),
    (lambda: nn.Softmax(0.5), DtypeError, "axis must be an integer"),
    (lambda: nn.PReLU(2, [1.0, 2.0, 3.0]), ShapeError, "have shape (3,)"),
    (lambda: nn.PReLU(2)(ROWS), ShapeError, "1 or 3 elements"),
    (lambda: nn.Conv2d(3, 4, 3, padding=1), ArgumentError, "only used with pad_mode='pad'"),
    (lambda: nn.Conv2d(3, 4, 3, pad_mode="full"), ArgumentError, "pad_mode must be one of"),
    (lambda: nn.Conv2d(3, 4, 3, group=2), ArgumentError, "group must divide in_channels=3"),
    (lambda: nn.Conv2d(4, 3, 3, group=2), ArgumentError, "group must divide out_channels=3"),
    (lambda: nn.Conv2d(3, 4, (1, 2, 3)), ArgumentError, "kernel_size must be one or two integers"),
    (lambda: nn.Conv2d(3, 4, 3, data_format="NHWC"), ArgumentError, "data_format='NHWC' is not supported"),
    (lambda: nn.Conv2d(4, 2, 3)(IMAGE), ShapeError, "must have 4 channels (in_channels) in axis 1"),
    (lambda: nn.Conv2d(3, 2, 3)(ROWS), ShapeError, "(N, C, H, W) or (C, H, W)"),
    (lambda: nn.Conv2d(3, 2, 7, pad_mode="valid")(IMAGE), ShapeError, "larger than its padded input"),
    (lambda: nn.Conv1d(3, 4, (2, 2)), DtypeError, "kernel_size must be an integer"),
    (lambda: nn.Conv2dTranspose(3, 4, 3, output_padding=1), ArgumentError, "output_padding=1 is only used"),
    (lambda: nn.MaxPool2d(2, padding=1), ArgumentError, "only used with pad_mode='pad'"),
    (lambda: nn.MaxPool2d(2, pad_mode="no"), ArgumentError, "pad_mode must be one of"),
    (lambda: nn.MaxPool2d(2, pad_mode="same", ceil_mode=True), ArgumentError, "ceil_mode=True has no meaning"),
    (lambda: nn.AvgPool1d((2, 2)), DtypeError, "kernel_size must be an integer"),
    (lambda: nn.AvgPool2d(2, divisor_override=0), ArgumentError, "divisor_override must be at least 1"),
    (lambda: nn.MaxPool2d(2, pad_mode="same")(1.0), ShapeError, "(N, C, H, W) or (C, H, W)"),
    (lambda: nn.AdaptiveAvgPool2d((1, 2, 3)), ArgumentError, "wrong number of elements"),
    (lambda: nn.AdaptiveAvgPool1d((1, 2)), ArgumentError, "wrong number of elements"),
    (lambda: nn.AdaptiveMaxPool2d(0), ArgumentError, "output_size must be at least 1"),
    (lambda: nn.BatchNorm1d(3, momentum=2), ArgumentError, "momentum must be at least 0 and at most 1"),
    (
        lambda: nn.BatchNorm1d(3, use_batch_statistics=1),
        DtypeError,
        "use_batch_statistics must be a bool, True or False",
    ),
    (
        lambda: nn.BatchNorm1d(4)(ROWS),
        ShapeError,
        "(N, C) or (N, C, L) with C = 4 (num_features), but has shape (4, 3)",
    ),
    (lambda: nn.BatchNorm2d(3)(ROWS), ShapeError, "(N, C, H, W) with C = 3"),
    (lambda: nn.BatchNorm1d(3).set_train()(ROWS[:1]), ShapeError, "more than one value per channel"),
    (lambda: nn.LayerNorm((2, 3)), ArgumentError, "Pass begin_norm_axis=-2, begin_params_axis=-2"),
    (lambda: nn.LayerNorm(()), ArgumentError, "at least one axis"),
    (lambda: nn.LayerNorm(4)(ROWS), ShapeError, "must have shape (3,), but has (4,)"),
    (lambda: nn.GroupNorm(2, 3), ArgumentError, "num_groups must divide num_channels=3"),
    (lambda: nn.GroupNorm(1, 4)(ROWS), ShapeError, "(N, 4, ...)"),
    (lambda: nn.RMSNorm(4)(ROWS), ShapeError, "does not end in the shape of gamma"),
    (lambda: nn.RNN(3, 2, nonlinearity="elu"), ArgumentError, "must be 'tanh' or 'relu', but got 'elu'"),
    (lambda: nn.LSTM(3, 2, dropout=1.0), ArgumentError, "dropout must be at least 0 and less than 1"),
    (lambda: nn.LSTM(3, 2)(ROWS), ShapeError, "must have 3 axes"),
    (lambda: nn.LSTM(2, 2)(SEQUENCE), ShapeError, "the last has 2 elements (input_size)"),
    (lambda: nn.LSTM(3, 2)(SEQUENCE, ROWS), DtypeError, "tuple (h, c)"),
    (lambda: nn.GRU(3, 2)(SEQUENCE, ROWS), ShapeError, "must have shape (1, 4, 2), but has (4, 3)"),
    (lambda: nn.GRU(3, 2)(SEQUENCE, seq_length=[1, 2]), ShapeError, "one per sequence"),
    (lambda: nn.GRU(3, 2)(SEQUENCE, seq_length=ROWS[:, 0]), DtypeError, "must be integers"),
    (lambda: nn.GRU(3, 2)(SEQUENCE[:0]), ShapeError, "at least one time step"),
    (lambda: nn.GRUCell(3, 2)(SEQUENCE), ShapeError, "1 or 2 axes"),
    (lambda: nn.MultiheadAttention(4, 3), ArgumentError, "num_heads must divide embed_dim=4"),
    (lambda: nn.MultiheadAttention(4, 2, add_bias_kv=True), ArgumentError, "add_bias_kv=True is not supported"),
    (lambda: nn.MultiheadAttention(4, 2, add_zero_attn=True), ArgumentError, "add_zero_attn=True is not supported"),
    (lambda: nn.MultiheadAttention(3, 1)(SEQUENCE, SEQUENCE, ROWS), ShapeError, "(L, N, E) or (L, E)"),
    (lambda: nn.MultiheadAttention(3, 1)(SEQUENCE, SEQUENCE, SEQUENCE[:4]), ShapeError, "as many keys as values"),
    (
        lambda: nn.MultiheadAttention(3, 1)(SEQUENCE, SEQUENCE, SEQUENCE, np.zeros((5, 4), bool)),
        ShapeError,
        "key_padding_mask must have shape (4, 5)",
    ),
    (
        lambda: nn.MultiheadAttention(3, 1)(SEQUENCE, SEQUENCE, SEQUENCE, attn_mask=np.zeros((5, 4), bool)),
        ShapeError,
        "attn_mask must have shape (5, 5) or (4, 5, 5)",
    ),
    (
        lambda: nn.MultiheadAttention(3, 1)(SEQUENCE, SEQUENCE, SEQUENCE, attn_mask=np.zeros((5, 5), int)),
        DtypeError,
        "attn_mask must hold booleans or floats",
    ),
    (lambda: nn.MSELoss("average"), ArgumentError, "one of 'none', 'mean', 'sum', but is 'average'"),
    (lambda: nn.MSELoss("batchmean"), ArgumentError, "but is 'batchmean'"),
    (lambda: nn.MSELoss()(ROWS, nb.ops.ones((5,))), ShapeError, "do not broadcast"),
    (lambda: nn.SmoothL1Loss(-1.0), ArgumentError, "beta must not be negative"),
    (lambda: nn.HuberLoss(delta=-1.0), ArgumentError, "delta must not be negative"),
    (lambda: nn.CrossEntropyLoss(label_smoothing=2), ArgumentError, "label_smoothing must be at least 0 and at most 1"),
    (lambda: nn.CrossEntropyLoss(ignore_index=1.5), DtypeError, "ignore_index must be an integer"),
    (lambda: nn.CrossEntropyLoss([1.0, 2.0])(ROWS, LABELS), ShapeError, "must have shape (3,), one per class"),
    (lambda: nn.CrossEntropyLoss([True, False]), DtypeError, "weight must be an array of numbers"),
    (lambda: nn.CrossEntropyLoss()(ROWS, LABELS + 1), RangeError, "range from 0 to 2"),
    (lambda: nn.SoftmaxCrossEntropyWithLogits()(ROWS, LABELS), ShapeError, "sparse=True"),
    (lambda: nn.CosineEmbeddingLoss(2), ArgumentError, "between -1 and 1"),
    (lambda: nn.MarginRankingLoss("a"), DtypeError, "margin must be a number"),
]


@pytest.mark.parametrize(("make", "error", "text"), WRONG, ids=range(len(WRONG)))
def test_errors(make: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=re.escape(text)):
        make()


def test_no_layer_makes_compiled_functions_look_at_it_anew() -> None:
    # Lists and dicts can change without notice: with one in an attribute, every call would compare it.
    p = [nb.Parameter(np.ones(2, np.float32), name="p")]
    cells = [nn.Dense(2, 2), nn.Conv2d(1, 1, 3), nn.BatchNorm2d(2), nn.LayerNorm([2]), nn.LSTM(2, 2), nn.GRUCell(2, 2)]
    cells += [nn.MultiheadAttention(2, 1), nn.CrossEntropyLoss(), nn.Adam(p), nn.SGD(p, nn.CosineDecayLR(0.1, 0.2, 3))]
    assert [cell for cell in cells if cell._changes_silently()] == []


@pytest.mark.parametrize("layer", [nn.RNN, nn.LSTM, nn.GRU])
def test_another_length_of_sequences_compiles_nothing(layer: Any) -> None:
    net = layer(3, 4, bidirectional=True, num_layers=2, dtype=np.float64)
    step = nb.jit(nb.value_and_grad(lambda x: nb.ops.sum(net(x)[0] ** 2), None, net.trainable_params()))
    step(nb.ops.ones((40, 2, 3)))
    before = nb.counters["compiled"]
    for steps in (50, 33, 60):  # a few, and more than 128 rows, are other kernels
        step(nb.ops.ones((steps, 2, 3)))
    assert nb.counters["compiled"] == before
