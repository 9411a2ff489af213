"""Model with callbacks, checkpoints and loss scales; mixed precision; hooks of Cells."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import amp, nn, train
from nbgrad.errors import ArgumentError, DtypeError, NbgradError

pytestmark = pytest.mark.unoptimized

X = np.linspace(-1, 1, 8, dtype=np.float32).reshape(8, 1)
Y = 2 * X + 1


def batches(rows: int = 4) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(X[k : k + rows], Y[k : k + rows]) for k in range(0, 8, rows)]


def line() -> Any:
    return nn.Dense(1, 1, "zeros", "zeros")


def model(net: nn.Cell | None = None, rate: float = 0.1, **options: Any) -> train.Model:
    net = line() if net is None else net
    assert net is not None
    return train.Model(net, nn.MSELoss(), nn.SGD(net.trainable_params(), rate), **options)


def descended(steps: int, rate: float = 0.1) -> tuple[float, float]:
    """Weight and bias after steps of gradient descent on the mean square, on paper."""
    w = b = 0.0
    for k in range(steps):
        x, y = (part[:, 0].astype(np.float64) for part in batches()[k % 2])
        error = w * x + b - y
        w, b = w - rate * 2 * (error * x).mean(), b - rate * 2 * error.mean()
    return w, b


class Notes(train.Callback):
    """Writes down what is called."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def __getattribute__(self, name: str) -> Any:
        if name in ("begin", "epoch_begin", "epoch_end", "step_begin", "step_end", "end"):
            object.__getattribute__(self, "events").append(name)
        return object.__getattribute__(self, name)


def test_training_is_gradient_descent() -> None:
    net = line()
    model(net).train(2, batches())
    np.testing.assert_allclose(
        [float(net.weight.asnumpy()[0, 0]), float(net.bias.asnumpy()[0])], descended(4), rtol=1e-5
    )


def test_callbacks_are_called_in_order() -> None:
    notes = Notes()
    model().train(2, batches(), callbacks=[notes])
    epoch = ["epoch_begin", *["step_begin", "step_end"] * 2, "epoch_end"]
    assert notes.events == ["begin", *epoch, *epoch, "end"]
    notes.events.clear()
    model(metrics={"loss"}).eval(batches(), callbacks=notes)
    assert notes.events == ["begin", *epoch, "end"]


def test_the_state_that_callbacks_see() -> None:
    seen: list[Any] = []

    def look(run: Any) -> None:
        state = run.original_args()
        seen.append((state.cur_epoch_num, state.cur_step_num, state.batch_num, float(state.net_outputs)))
        if state.cur_step_num == 3:
            run.request_stop()

    model().train(5, batches(), callbacks=train.LambdaCallback(on_train_step_end=look))
    assert [one[:3] for one in seen] == [(1, 1, 2), (1, 2, 2), (2, 3, 2)]
    assert seen[0][3] == pytest.approx(float((Y[:4] ** 2).mean()), rel=1e-6)
    with pytest.raises(AttributeError, match="has no 'nothing'"):
        _ = train.RunContext(train._InternalCallbackParam(a=1)).original_args().nothing


def test_steps_are_counted_from_one_after_an_initial_epoch() -> None:
    """The numbers of MindSpore 2.10."""
    seen: list[Any] = []

    def look(run: Any) -> None:
        state = run.original_args()
        seen.append((state.cur_epoch_num, state.cur_step_num, state.epoch_num))

    model().train(3, batches(), callbacks=train.LambdaCallback(on_train_step_end=look), initial_epoch=1)
    assert seen == [(2, 1, 2), (2, 2, 2), (3, 3, 2), (3, 4, 2)]


def test_monitors_print(capsys: pytest.CaptureFixture[str]) -> None:
    model(metrics={"mae"}).fit(
        1, batches(), batches(), callbacks=[train.LossMonitor(2), train.TimeMonitor(data_time=True)]
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("epoch: 1 step: 2, loss is ")
    assert lines[1].startswith("Eval result: epoch 1, metrics: {'mae': ")
    assert lines[2].startswith("Train epoch time: ")
    assert "data time" in lines[2]
    assert len(lines) == 3


def test_a_loss_that_is_not_finite_stops_the_training() -> None:
    with pytest.raises(ArgumentError, match="epoch 1, step 1, the loss is nan"):
        model().train(1, [(X * np.nan, Y)], callbacks=train.LossMonitor(0))


def test_metrics_of_all_batches() -> None:
    net = nn.Dense(1, 2, nb.Tensor([[1.0], [-1.0]]), "zeros")  # class 0 for positive numbers
    found = train.Model(net, nn.SoftmaxCrossEntropyWithLogits(True, "mean"), metrics={"accuracy", "loss"})
    labels = (X[:, 0] < 0).astype(np.int32)
    labels[0] = 0
    assert found.eval([(X[:5], labels[:5]), (X[5:], labels[5:])])["accuracy"] == 7 / 8
    assert found.predict(nb.Tensor(X)).shape == (8, 2)


def test_early_stopping_restores_the_best_weights() -> None:
    net = line()

    def spoil(run: Any) -> None:
        if run.original_args().cur_epoch_num > 2:
            net.bias.set_data(nb.Tensor([9.0]))

    worse = train.LambdaCallback(on_train_epoch_begin=spoil)
    stop = train.EarlyStopping("eval_loss", patience=2, restore_best_weights=True)
    history = train.History()
    model(net, metrics={"loss"}).fit(9, batches(), batches(), callbacks=[worse, stop, history])
    assert stop.stopped_epoch == 4
    assert history.epoch["epoch"] == [1, 2, 3, 4]
    np.testing.assert_allclose(net.bias.asnumpy(), descended(4)[1], rtol=1e-4)


def test_the_learning_rate_follows_callbacks() -> None:
    net = line()
    optimizer = nn.SGD(net.trainable_params(), 1.0)
    halve = train.LearningRateScheduler(lambda rate, step: rate / 2)
    plateau = train.ReduceLROnPlateau("loss", factor=0.5, patience=1, mode="max", min_lr=0.1)
    train.Model(net, nn.MSELoss(), optimizer).train(1, batches(), callbacks=halve)
    assert float(optimizer.get_lr()) == 0.25
    train.Model(net, nn.MSELoss(), optimizer).train(4, batches(), callbacks=plateau)
    assert float(optimizer.get_lr()) == pytest.approx(0.1)
    fixed = nn.SGD(net.trainable_params(), nn.CosineDecayLR(0.1, 0.2, 3))
    with pytest.raises(ArgumentError, match="schedule already"):
        train.Model(net, nn.MSELoss(), fixed).train(1, batches(), callbacks=halve)


def test_checkpoints_are_written_named_and_forgotten(tmp_path: Path) -> None:
    net = line()
    config = train.CheckpointConfig(save_checkpoint_steps=1, keep_checkpoint_max=2, append_info=["epoch_num", {"a": 1}])
    saver = train.ModelCheckpoint("line", str(tmp_path), config)
    model(net).train(2, batches(), callbacks=saver)
    assert sorted(os.listdir(tmp_path)) == ["line-2_1.ckpt", "line-2_2.ckpt"]
    loaded = nb.load_checkpoint(saver.latest_ckpt_file_name)
    np.testing.assert_array_equal(loaded["weight"].asnumpy(), net.weight.asnumpy())
    assert int(loaded["epoch_num"].asnumpy()) == 2
    # Another training does not write over them.
    model(net).train(1, batches(), callbacks=train.ModelCheckpoint("line", str(tmp_path)))
    assert sorted(os.listdir(tmp_path))[2:] == ["line_1-1_1.ckpt", "line_1-1_2.ckpt"]


def test_a_checkpoint_when_a_training_fails(tmp_path: Path) -> None:
    def rows() -> Iterator[Any]:
        yield batches()[0]
        raise OSError("the disk is gone")

    config = train.CheckpointConfig(save_checkpoint_steps=100, exception_save=True)
    with pytest.raises(OSError, match="the disk is gone"):
        model().train(1, rows(), callbacks=train.ModelCheckpoint("line", str(tmp_path), config))
    assert os.listdir(tmp_path) == ["line-1_1_breakpoint.ckpt"]


def test_a_step_that_fetches_its_batches() -> None:
    seen: list[float] = []
    sink = nb.data_sink(lambda x: seen.append(float(x)) or x, [np.float32(1), np.float32(2), np.float32(3)], 2)
    assert [float(sink()), float(sink())] == [2.0, 1.0]
    assert seen == [1.0, 2.0, 3.0, 1.0]
    assert [float(x) for (x,) in nb.DatasetHelper([nb.Tensor(5.0)])] == [5.0]


# ----- Loss scales and precision -----


def test_a_step_with_an_overflow_changes_nothing_but_the_scale() -> None:
    net = line()
    optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
    rule = nn.DynamicLossScaleUpdateCell(16.0, 2, 100)
    step = nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(net, nn.MSELoss()), optimizer, rule)
    _, overflow, scale = step(nb.Tensor(X), nb.Tensor(Y))
    assert (bool(overflow), float(scale)) == (False, 16.0)
    state = [p.asnumpy().copy() for p in (*optimizer.parameters, *optimizer.get_parameters())]
    x = X.copy()
    x[0] = np.inf
    _, overflow, _ = step(nb.Tensor(x), nb.Tensor(Y))
    assert bool(overflow)
    assert float(step.scale_sense.asnumpy()) == 8.0
    for before, now in zip(state, (*optimizer.parameters, *optimizer.get_parameters()), strict=True):
        np.testing.assert_array_equal(before, now.asnumpy())
    plain = line()
    nn.TrainOneStepCell(nn.WithLossCell(plain, nn.MSELoss()), nn.Momentum(plain.trainable_params(), 0.1, 0.9))(
        nb.Tensor(X), nb.Tensor(Y)
    )
    np.testing.assert_allclose(net.weight.asnumpy(), plain.weight.asnumpy(), rtol=1e-6)


def test_a_step_of_a_users_own() -> None:
    class Step(nn.TrainOneStepWithLossScaleCell):
        """The form that MindSpore's model collections have."""

        def construct(self, *inputs: Any) -> Any:
            loss = self.network(*inputs)
            status, scale = self.start_overflow_check(loss, self.scale_sense)
            filled = nb.ops.ones_like(loss) * nb.ops.cast(scale, nb.ops.dtype(loss))
            gradients = self.grad(self.network, self.weights)(*inputs, filled)
            gradients = self.hyper_map(nb.ops.partial(lambda scale, g: g / scale, scale), gradients)
            gradients = self.grad_reducer(gradients)
            overflow = self.process_loss_scale(self.get_overflow_status(status, gradients))
            if not overflow:
                self.optimizer(gradients)
            return loss, overflow, scale

    net = line()
    step = Step(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1), nb.Tensor(4.0))
    step(nb.Tensor(X[:4]), nb.Tensor(Y[:4]))
    np.testing.assert_allclose(net.bias.asnumpy()[0], descended(1)[1], rtol=1e-5)


def test_a_compiled_step_of_a_users_own() -> None:
    class Step(nn.TrainOneStepCell):
        def construct(self, *inputs: Any) -> Any:
            loss = self.network(*inputs)
            gradients = self.grad(self.network, self.weights)(*inputs, nb.ops.ones_like(loss) * self.sens)
            return nb.ops.depend(loss, self.optimizer(self.grad_reducer(gradients)))

    net = line()
    step = Step(nn.WithLossCell(net, nn.MSELoss()), nn.SGD(net.trainable_params(), 0.1))
    assert float(step(nb.Tensor(X[:4]), nb.Tensor(Y[:4]))) == pytest.approx(float((Y[:4] ** 2).mean()), rel=1e-6)
    np.testing.assert_allclose(net.bias.asnumpy()[0], descended(1)[1], rtol=1e-5)


@pytest.mark.parametrize("level", ["O0", "O1", "O2", "O3", "auto"])
def test_levels_of_mixed_precision(level: str) -> None:
    net = nn.SequentialCell(nn.Dense(1, 4), nn.BatchNorm1d(4), nn.Dense(4, 1))
    before = {name: p.dtype for name, p in net.parameters_dict().items()}
    assert amp.auto_mixed_precision(net, level) is net
    seen: list[Any] = []
    for cell in net:
        cell.register_forward_hook(lambda cell, inputs, output: seen.append(output.dtype))
    assert net(nb.Tensor(X)).dtype == nb.float32
    half = {"O0": "fff", "O1": "fff", "O2": "hhh", "O3": "hhh", "auto": "fff"}[level]
    assert "".join(one.dtype.char for one in seen).replace("e", "h") == half
    assert {name: p.dtype for name, p in net.parameters_dict().items()} == before


@pytest.mark.parametrize("level", ["O2", "O3"])
def test_moving_statistics_in_mixed_precision(level: str) -> None:
    net = nn.SequentialCell(nn.BatchNorm1d(1, momentum=0.5), nn.Dense(1, 1))
    step = amp.build_train_network(net, nn.SGD(net.trainable_params(), 0.01), nn.MSELoss(), level)
    step(nb.Tensor(X[:8]), nb.Tensor(Y[:8]))
    moving = net[0].moving_mean
    assert moving.dtype == nb.float32
    np.testing.assert_allclose(moving.asnumpy(), 0.5 * X[:8].mean(axis=0), rtol=2e-3, atol=1e-3)


def test_managers_choose_the_step() -> None:
    for manager, cell in (
        (amp.FixedLossScaleManager(8.0), nn.TrainOneStepWithLossScaleCell),
        (amp.DynamicLossScaleManager(8.0), nn.TrainOneStepWithLossScaleCell),
        (amp.FixedLossScaleManager(8.0, False), nn.TrainOneStepCell),
    ):
        assert type(model(loss_scale_manager=manager).train_network) is cell


# ----- Hooks -----


def test_hooks_see_and_change() -> None:
    net: Any = nn.Dense(1, 1, "ones", "zeros")
    seen: list[Any] = []
    handles = [
        net.register_forward_pre_hook(lambda cell, inputs: (inputs[0] * 2,)),
        net.register_forward_hook(lambda cell, inputs, output: output + 1),
        net.register_backward_pre_hook(lambda cell, grad_output: (grad_output[0] * 3,)),
        net.register_backward_hook(
            lambda cell, grad_input, grad_output: seen.append((len(grad_input), len(grad_output)))
        ),
    ]
    x = nb.Tensor([[5.0]])
    assert net(x).tolist() == [[11.0]]
    assert nb.grad(net)(x).tolist() == [[6.0]]
    assert seen[0] == (1, 1)
    compiled = nb.jit(nb.grad(net))
    assert compiled(x).tolist() == [[6.0]]
    for handle in handles:
        handle.remove()
        handle.remove()
    assert net(x).tolist() == [[5.0]]
    assert compiled(x).tolist() == [[1.0]]
    net.register_backward_hook(lambda cell, grad_input, grad_output: (nb.Tensor([1.0, 2.0]),))
    with pytest.raises(DtypeError, match="backward hook"):
        nb.grad(net)(x)


@pytest.mark.parametrize(
    "call",
    [
        lambda: train.Model(lambda x: x),
        lambda: train.Model(line(), metrics={"loss"}),
        lambda: train.Model(line(), nn.MSELoss(), metrics={"nothing"}),
        lambda: train.Model(line(), nn.MSELoss(), metrics=3),
        lambda: train.Model(line(), nn.MSELoss()).train(1, batches()),
        lambda: train.Model(line(), nn.MSELoss()).eval(batches()),
        lambda: model().train(0, batches()),
        lambda: model().train(1, batches(), initial_epoch=1),
        lambda: model().train(1, []),
        lambda: model().train(1, [(X,)]),
        lambda: model(metrics={"mae"}).eval([(X, Y, Y)]),
        lambda: model().train(1, batches(), callbacks=[3]),
        lambda: train.CheckpointConfig(0, 0, 0, 0),
        lambda: train.CheckpointConfig(save_checkpoint_steps=-1),
        lambda: train.CheckpointConfig(append_info=["step"]),
        lambda: train.CheckpointConfig(enc_key=b"1"),
        lambda: train.ModelCheckpoint("a/b"),
        lambda: train.LossMonitor(-1),
        lambda: train.LambdaCallback(on_step=print),
        lambda: train.RunContext(3),
        lambda: amp.auto_mixed_precision(line(), "O4"),
        lambda: amp.auto_mixed_precision(line(), "O1", np.float64),
        lambda: amp.custom_mixed_precision(line()),
        lambda: amp.DynamicLossScaler(0.5, 2, 2),
        lambda: amp.all_finite(3),
        lambda: nn.TrainOneStepWithLossScaleCell(line(), nn.SGD(line().trainable_params()), 3.0),
        lambda: line().register_forward_hook(3),
        lambda: nn.DistributedGradReducer([], degree=8),
        lambda: nb.data_sink(lambda x: x, [])(),
        lambda: nb.data_sink(lambda x: x, [X], sink_size=0),
    ],
)
def test_bad_input(call: Any) -> None:
    with pytest.raises(NbgradError):
        call()
