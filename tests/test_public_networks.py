"""Names, attributes and arguments that networks of public collections use, one fact of each.

Expected values are NumPy's, paper's, or documented by MindSpore.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import Tensor, nn, ops
from nbgrad.common import initializer as initial
from nbgrad.errors import ArgumentError, DtypeError, NameTakenError, ShapeError
from nbgrad.train.summaries import masked_crc

pytestmark = pytest.mark.unoptimized


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


# ----- What layers hold -----


class Doubled(nn.Conv2d):
    def construct(self, x: Any) -> Any:
        return self.bias_add(self.conv2d(x, self.weight * 2.0), self.bias * 2.0)


class DoubledImages(nn.Conv2dTranspose):
    def construct(self, x: Any) -> Any:
        shape = (x.shape[0], self.out_channels, x.shape[2] * 2, x.shape[3] * 2)
        return self.conv2d_transpose(x, self.weight * 2.0, shape)


class DoubledSignals(nn.Conv1d):
    def construct(self, x: Any) -> Any:
        return self.squeeze(self.conv2d(self.expand_dims(x, 2), self.weight * 2.0))


class DoubledRows(nn.Dense):
    def construct(self, x: Any) -> Any:
        return self.bias_add(self.matmul(x, self.weight * 2.0), self.bias * 2.0)


@pytest.mark.parametrize(
    ("changed", "plain", "arguments", "shape"),
    [
        (Doubled, nn.Conv2d, (2, 3, 3, 2, "pad", 1, 1, 1, True), (1, 2, 5, 5)),
        (DoubledImages, nn.Conv2dTranspose, (2, 3, 3, 2), (1, 2, 3, 3)),
        (DoubledSignals, nn.Conv1d, (2, 3, 3), (1, 2, 5)),
        (DoubledRows, nn.Dense, (2, 3), (4, 2)),
    ],
)
def test_layers_are_linear_in_the_weights_of_their_forms(changed: Any, plain: Any, arguments: Any, shape: Any) -> None:
    layer, reference = changed(*arguments), plain(*arguments)
    for own, other in zip(layer.get_parameters(), reference.get_parameters(), strict=True):
        own.set_data(other)
    x = Tensor(normal(*shape))
    np.testing.assert_allclose(layer(x).asnumpy(), 2.0 * reference(x).asnumpy(), rtol=1e-5, atol=1e-6)


def test_a_form_of_normalised_batches_writes_moving_statistics() -> None:
    x, layer = normal(4, 2, 3, 3), nn.BatchNorm2d(2)
    layer.bn_train(Tensor(x), layer.gamma, layer.beta, layer.moving_mean, layer.moving_variance)
    np.testing.assert_allclose(layer.moving_mean.asnumpy(), 0.1 * x.mean((0, 2, 3)), rtol=1e-5, atol=1e-7)
    variance = 0.9 + 0.1 * x.var((0, 2, 3), ddof=1)
    np.testing.assert_allclose(layer.moving_variance.asnumpy(), variance, rtol=1e-5)


def test_a_form_of_normalised_layers_gives_means_too() -> None:
    x, layer = normal(3, 4), nn.LayerNorm((4,), epsilon=1e-5)
    y, mean, _ = layer.layer_norm(Tensor(x), layer.gamma, layer.beta)
    np.testing.assert_allclose(mean.asnumpy(), x.mean(1, keepdims=True), rtol=1e-5, atol=1e-6)
    centred = x - x.mean(1, keepdims=True)
    np.testing.assert_allclose(y.asnumpy(), centred / np.sqrt(x.var(1, keepdims=True) + 1e-5), rtol=1e-5, atol=1e-6)


def test_a_transposed_form_is_the_adjoint() -> None:
    x, y, w = normal(1, 2, 5, 5), normal(1, 3, 3, 3), Tensor(normal(3, 2, 3, 3))
    forward = ops.Conv2D(3, 3, pad_mode="same", stride=2)(Tensor(x), w)
    backward = ops.Conv2DBackpropInput(3, 3, pad_mode="pad", pad=1, stride=2)(Tensor(y), w, (1, 2, 5, 5))
    assert np.vdot(forward.asnumpy(), y) == pytest.approx(np.vdot(x, backward.asnumpy()), rel=1e-4)
    with pytest.raises(ShapeError, match=r"must be \(1, 2, 6, 6\), but is \(1, 2, 4, 4\)"):
        ops.Conv2DTranspose(3, 3, pad_mode="same", stride=2)(Tensor(y), w, (1, 2, 4, 4))


# ----- Arguments -----


def test_a_loss_of_one_element_takes_a_scale_without_axes() -> None:
    slope = nb.GradOperation(sens_param=True)(lambda x: x * x)
    np.testing.assert_array_equal(slope(Tensor([5.0]), Tensor(3.0)).asnumpy(), [30.0])
    with pytest.raises(ShapeError, match=r"must have the shape \(2,\)"):
        slope(Tensor([5.0, 1.0]), Tensor(3.0))


def test_split_takes_a_number_of_parts() -> None:
    first, second = Tensor(np.arange(6).reshape(2, 3)).split(axis=0, output_num=2)
    assert (first.tolist(), second.tolist()) == ([[0, 1, 2]], [[3, 4, 5]])
    with pytest.raises(ArgumentError, match="or else their number"):
        ops.split(Tensor([1.0]))


def test_signals_of_another_length() -> None:
    x = Tensor([[[0.0, 3.0]]])
    assert ops.ResizeLinear1D("align_corners")(x, [4]).tolist() == [[[0.0, 1.0, 2.0, 3.0]]]
    assert ops.ResizeLinear1D("half_pixel")(x, [4]).tolist() == [[[0.0, 0.75, 2.25, 3.0]]]
    assert ops.ResizeBilinearV2(True)(x[:, :, None], (1, 4)).tolist() == [[[[0.0, 1.0, 2.0, 3.0]]]]


def test_the_middle_of_images_of_odd_sizes() -> None:
    x = np.arange(15.0, dtype=np.float32).reshape(1, 3, 5)
    np.testing.assert_array_equal(nn.CentralCrop(0.5)(Tensor(x)).asnumpy(), x[:, :, 1:4])
    with pytest.raises(ArgumentError, match="above 0"):
        nn.CentralCrop(0.0)
    with pytest.raises(ShapeError, match=r"\(C, H, W\)"):
        nn.CentralCrop(0.5)(Tensor([1.0]))


def test_initializers_that_fill_arrays_and_have_names() -> None:
    @initial._register("steps")
    class Ramp(initial.Initializer):
        def __init__(self, factor: float = 1.0) -> None:
            super().__init__(factor=factor)
            self.factor = factor

        def _initialize(self, arr: np.ndarray) -> None:
            initial._assignment(arr, self.factor * np.arange(arr.size).reshape(arr.shape))

    assert initial.initializer("steps", (2, 2)).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert nn.Dense(2, 1, weight_init=Ramp(2.0)).weight.tolist() == [[0.0, 2.0]]
    assert initial._calculate_fan_in_and_fan_out((8, 4, 3, 3)) == (36, 72)


def test_targets_of_optimizers_are_known_ones() -> None:
    optimizer = nn.SGD(nn.Dense(1, 1).trainable_params())
    optimizer.target = "CPU"
    assert optimizer.target == "CPU"
    with pytest.raises(ArgumentError, match="target"):
        optimizer.target = "TPU"


def test_bfloat16_has_a_name_only() -> None:
    assert nb.bfloat16 not in (nb.float16, nb.Tensor([1.0]).dtype)
    assert isinstance(nb.float16, nb.Type)
    with pytest.raises(DtypeError, match="Arrays of bfloat16 are not supported"):
        nb.Tensor([1.0]).astype(nb.bfloat16)
    with pytest.raises(DtypeError, match="Arrays of bfloat16 are not supported"):
        nb.Tensor([1.0]).to(nb.bfloat16)


# ----- Buffers -----


class Counter(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", Tensor(0))
        self.register_buffer("nothing", None)

    def construct(self, x: Any) -> Any:
        self.calls = self.calls + 1
        return x * self.calls


def test_buffers_are_written_by_compiled_functions() -> None:
    net = Counter()
    step = nb.jit(net)
    assert [float(step(Tensor(2.0))) for _ in range(2)] == [2.0, 4.0]
    net.calls = Tensor([4, 5])
    assert step(Tensor(2.0)).tolist() == [10.0, 12.0]
    assert net.calls.tolist() == [5, 6]


def test_buffers_have_names_and_are_no_parameters() -> None:
    inner = Counter()
    net = nn.SequentialCell(inner)
    assert [name for name, _ in net.named_buffers()] == ["0.calls"]
    assert len(list(net.buffers())) == 1
    assert not list(net.get_parameters())
    assert float(net.get_buffer("0.calls")) == 0.0
    assert inner.nothing is None
    for name in ("training", "a.b", ""):
        with pytest.raises(NameTakenError):
            net.register_buffer(name, Tensor(1))
    with pytest.raises(DtypeError, match="must be a Tensor or None"):
        net.register_buffer("a", 3)  # pyright: ignore[reportArgumentType]
    with pytest.raises(NameTakenError, match="There is no buffer"):
        net.get_buffer("1")


# ----- Training -----


def test_accumulated_gradients_update_by_their_mean() -> None:
    from nbgrad.boost.grad_accumulation import GradientAccumulation

    w = nb.Parameter(Tensor([1.0]), name="w")
    update = GradientAccumulation(2, nn.SGD([w], learning_rate=1.0))
    seen = []
    for slope in (0.25, 0.5, 1.0, 2.0):
        update(Tensor(0.0), (Tensor([slope]),))
        seen.append(float(w.value()))
    assert seen == [1.0, 0.625, 0.625, -0.875]


class Reset(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.calls = nb.Parameter(Tensor([3], nb.int32), name="calls")

    def construct(self, x: Any) -> Any:
        self.calls = 0
        return x


def test_a_parameter_of_one_element_takes_a_number_in_construct() -> None:
    for compiled in (False, True):
        net = Reset()
        (nb.jit(net) if compiled else net)(Tensor(1.0))
        assert net.calls.tolist() == [0]
        assert net.calls.dtype == nb.int32
    with pytest.raises(DtypeError, match="is a Parameter"):
        net.calls = 0  # pyright: ignore[reportAttributeAccessIssue]


def test_checksums_of_records() -> None:
    crc = 0xE3069283  # CRC-32C of these digits, RFC 3720
    assert masked_crc(b"123456789") == (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


def test_a_summary_is_a_file_of_events(tmp_path: Path) -> None:
    model = nb.Model(nn.Dense(1, 1), nn.MSELoss(), nn.SGD(nn.Dense(1, 1).trainable_params()))
    data = nb.dataset.NumpySlicesDataset((normal(4, 1), normal(4, 1)), ["x", "y"], shuffle=False).batch(1)
    model.train(1, data, callbacks=[nb.SummaryCollector(str(tmp_path), collect_freq=2)])
    (file,) = tmp_path.iterdir()
    content, records = file.read_bytes(), []
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        assert struct.unpack("<I", content[8:12]) == (masked_crc(content[:8]),)
        records.append(content[12 : 12 + length])
        assert struct.unpack("<I", content[12 + length : 16 + length]) == (masked_crc(records[-1]),)
        content = content[16 + length :]
    assert b"brain.Event:2" in records[0]
    assert [(r[10], b"loss" in r) for r in records[1:]] == [(2, True), (4, True)]  # the step follows the time
    with nb.SummaryRecord(str(tmp_path)) as record, pytest.raises(ArgumentError, match="scalars only"):
        record.add_value("image", "x", np.zeros((2, 2)))
    assert not record.record(1)


@pytest.mark.parametrize(
    ("name", "rate"),  # of 3 true and 1 false positive, 4 true and 2 false negatives
    [
        ("sensitivity", 3 / 5), ("tnr", 4 / 5), ("precision", 3 / 4), ("npv", 4 / 6), ("miss rate", 2 / 5),
        ("fall out", 1 / 5), ("fdr", 1 / 4), ("for", 2 / 6), ("threat score", 3 / 6), ("accuracy", 7 / 10),
        ("balanced accuracy", 0.7), ("f1 score", 6 / 9), ("mcc", 10 / 600**0.5), ("fm", (3 / 5 * 3 / 4) ** 0.5),
        ("informedness", 0.4), ("mk", 3 / 4 + 4 / 6 - 1), ("pt", ((3 / 5 / 5) ** 0.5 + 4 / 5 - 1) / 0.4),
    ],
)  # fmt: skip
def test_rates_of_predictions(name: str, rate: float) -> None:
    predicted = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0]).reshape(1, 1, 10)
    label = np.array([1, 1, 1, 0, 0, 0, 0, 0, 1, 1]).reshape(1, 1, 10)
    for by_row in (False, True):
        metric = nb.train.ConfusionMatrixMetric(metric_name=name, calculation_method=by_row)
        metric.update(predicted, label)
        assert float(np.squeeze(metric.eval())) == pytest.approx(rate)


def test_rates_leave_the_first_class_out() -> None:
    x, y = np.array([[[0], [1]], [[1], [0]]]), np.array([[[0], [1]], [[0], [1]]])
    for skip, precision in ((True, 1.0), (False, 0.5)):
        metric = nb.train.ConfusionMatrixMetric(skip, "precision")
        metric.update(x, y)
        assert metric.eval().tolist() == [precision]
    with pytest.raises(ArgumentError, match="metric_name"):
        nb.train.ConfusionMatrixMetric(metric_name="luck")
    with pytest.raises(ArgumentError, match="decrease"):
        nb.train.ConfusionMatrixMetric(decrease="none")
    with pytest.raises(ShapeError, match="of one shape"):
        metric.update(x, y[:, :1])


# ----- Data -----


def test_fashion_mnist_is_read_as_mnist(tmp_path: Path) -> None:
    head = {"images-idx3": (0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2), "labels-idx1": (0, 0, 8, 1, 0, 0, 0, 2)}
    for kind, data in (("images-idx3", (1, 2, 3, 4)), ("labels-idx1", (7, 9))):
        (tmp_path / f"train-{kind}-ubyte").write_bytes(bytes(head[kind] + data))
    data = nb.dataset.FashionMnistDataset(str(tmp_path), "train", shuffle=False)
    assert isinstance(data, nb.dataset.VisionBaseDataset)
    rows = list(data.create_tuple_iterator(output_numpy=True))
    assert [(image.ravel().tolist(), int(label)) for image, label in rows] == [([1, 2], 7), ([3, 4], 9)]


# ----- Optimizers -----


class Descent(nn.Optimizer):
    """Written as those of public collections: with members of the base, and maps over weights and options."""

    def construct(self, gradients: Any) -> Any:
        gradients = self.scale_grad(self.gradients_centralization(self.flatten_gradients(gradients)))
        rates: Any = self.learning_rate
        if self.dynamic_lr:
            rates = tuple([r(self.global_step) for r in rates]) if self.is_group_lr else rates(self.global_step)
        if self._is_dynamic_lr_or_weight_decay():
            self.assignadd(self.global_step, self.global_step_increase_tensor)
        rates = rates if self.is_group_lr else (rates,) * self.param_length
        decays = self.get_weight_decay() if self.is_group else (self.weight_decay,) * self.param_length
        return self.map_(self._one, rates, decays, self._parameters, gradients, self.decay_flags, self.optim_filter)

    @staticmethod
    def _one(rate: Any, decay: Any, weight: Any, gradient: Any, decays: bool, updates: bool) -> Any:
        return ops.assign_sub(weight, rate * (gradient + decay * weight if decays else gradient)) if updates else weight


def weights(*names: str) -> list[nb.Parameter]:
    return [nb.Parameter(Tensor([1.0]), name=name) for name in names]


def stepped(optimizer: nn.Optimizer, *gradients: float) -> list[float]:
    optimizer(tuple([Tensor([gradient]) for gradient in gradients]))
    return [float(weight.value()) for weight in optimizer.parameters]


def test_optimizers_with_a_construct_of_their_own() -> None:
    assert stepped(Descent(0.5, weights("a", "beta"), weight_decay=0.5), 0.5, 0.5) == [0.5, 0.75]
    a, b = weights("a", "b")
    groups = Descent([1.0, 0.5], [{"params": [a]}, {"params": [b], "weight_decay": 0.5}], loss_scale=2.0)
    assert (groups.is_group, groups.is_group_lr, groups.dynamic_lr, groups.decay_flags) == (
        True,
        False,
        True,
        (False, True),
    )
    assert stepped(groups, 1.0, 0.0) == [0.5, 0.5]
    assert stepped(groups, 1.0, 0.0) == [0.25, 0.375]
    assert int(groups.global_step.value()[0]) == 2
    a, b = weights("a", "b")
    rates = Descent([1.0, 0.5], [{"params": [a], "lr": [0.25, 0.5]}, {"params": [b]}])
    assert rates.is_group_lr
    assert stepped(rates, 1.0, 1.0) == [0.75, 0.0]
    assert stepped(rates, 1.0, 1.0) == [0.25, -0.5]
    rates.weight_decay = Tensor(0.5)
    assert not rates.is_group


class Careful(Descent):
    def construct(self, gradients: Any, overflow: Any = False) -> Any:
        if not overflow:
            super().construct(gradients)


def test_optimizers_take_further_arguments() -> None:
    optimizer = Careful(0.5, weights("a"))
    for overflow in (Tensor(True), Tensor(False)):
        optimizer((Tensor([1.0]),), overflow)
    assert optimizer.parameters[0].tolist() == [0.5]
    ops.ScalarSummary()("loss", Tensor(1.0))
    with pytest.raises(DtypeError, match="a name and a Tensor"):
        ops.ScalarSummary()(1, Tensor(1.0))
