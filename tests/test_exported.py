"""Networks as files: export, load, GraphCell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import nn
from nbgrad.errors import ArgumentError, CheckpointError, DtypeError, RangeError, ShapeError, TracedValueError

pytestmark = pytest.mark.unoptimized


class Net(nn.Cell):
    """Convolutions, a recurrent layer, a loop, and outputs in a structure."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.pool = nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.MaxPool2d(2, 2)
        self.dense, self.lstm = nn.Dense(18, 4), nn.LSTM(2, 3, 1, batch_first=True)

    def construct(self, x: Any) -> Any:
        h = nb.ops.relu(self.dense(nb.ops.flatten(self.pool(self.norm(self.conv(x))))))
        s = h
        for _ in range(30):
            s = np.sin(s) * 0.9
        return {"lstm": self.lstm(h.reshape(1, 4, 2))[0], "others": (h, [nb.ops.softmax(s), 3, None])}


def test_a_network_comes_back_with_its_parameters(tmp_path: Path) -> None:
    nb.set_seed(0)
    net = Net().set_train(False)
    x = nb.Tensor(np.random.default_rng(0).normal(size=(2, 1, 6, 6)).astype(np.float32))
    nb.export(net, x, file_name=tmp_path / "net")
    again = nn.GraphCell(nb.load(tmp_path / "net.nbgraph"))
    want, got = net(x), again(x)
    for one, other in zip(
        (want["lstm"], want["others"][0], want["others"][1][0]),
        (got["lstm"], got["others"][0], got["others"][1][0]),
        strict=True,
    ):
        np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())
    assert got["others"][1][1:] == [3, None]
    assert {*again.parameters_dict()} == {*net.parameters_dict()}
    loss = [
        nb.grad(lambda x, cell=cell: cell(x)["lstm"].sum(), None, [cell.parameters_dict()["conv.weight"]])(x)[
            0
        ].asnumpy()
        for cell in (net, again)
    ]
    np.testing.assert_allclose(loss[1], loss[0], rtol=1e-6)
    nb.load_param_into_net(again, {"dense.bias": nb.Tensor(np.zeros(4, np.float32))})
    assert not np.array_equal(again(x)["others"][0].asnumpy(), want["others"][0].asnumpy())
    with pytest.raises(ShapeError, match="exported with the shape"):
        again(x[:1])
    with pytest.raises(DtypeError, match="exported with the dtype"):
        again(x.astype(np.float64))
    with pytest.raises(ArgumentError, match="1 inputs"):
        again(x, x)


def test_functions_and_values_of_all_kinds(tmp_path: Path) -> None:
    table = np.array([1.0, np.nan, -np.inf])

    def function(x: Any) -> Any:
        picked = nb.numpy.where(x > 0, x, table)[::-1]
        return picked, np.sort(x), x * 2j + 1, x.astype(np.int32) // 2, (x[1:] * 1e-300).sum()

    x = np.array([0.5, -1.5, 2.5])
    nb.export(function, x, file_name=tmp_path / "f.nbgraph")
    for one, other in zip(
        nn.GraphCell(nb.load(tmp_path / "f.nbgraph"))(nb.Tensor(x)), function(nb.Tensor(x)), strict=True
    ):
        np.testing.assert_array_equal(one.asnumpy(), other.asnumpy())
        assert one.dtype == other.dtype


def test_mindir_is_written_in_the_own_format_with_a_warning(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="cannot write MindIR"):
        nb.train.serialization.export(
            nn.ReLU(), nb.Tensor([1.0]), file_name=str(tmp_path / "net"), file_format="MINDIR"
        )
    assert nn.GraphCell(nb.load(tmp_path / "net.nbgraph"))(nb.Tensor([-1.0])).tolist() == [0.0]


def test_bad_files_and_arguments(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="ONNX"):
        nb.export(nn.ReLU(), nb.Tensor([1.0]), file_name=tmp_path / "net", file_format="ONNX")
    with pytest.raises(ArgumentError, match="rules of their own"):
        nb.export(np.fft.rfft, np.ones(4), file_name=tmp_path / "net")
    with pytest.raises(DtypeError):
        nb.export(3, file_name=tmp_path / "net")
    with pytest.raises(DtypeError):
        nn.GraphCell({})  # pyright: ignore[reportArgumentType]
    with pytest.raises(FileNotFoundError):
        nb.load(tmp_path / "nothing.nbgraph")
    for name, content in (("text", b"no archive"), ("empty", b"")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(CheckpointError, match="is no network"):
            nb.load(tmp_path / name)
    np.savez(tmp_path / "other.npz", a=np.ones(2))
    with pytest.raises(CheckpointError, match="is no network"):
        nb.load(tmp_path / "other.npz")
    assert not (tmp_path / "net.nbgraph").exists()


def test_conditions_and_branches_are_kept(tmp_path: Path) -> None:
    table = nn.Embedding(3, 2)

    def function(ids: Any, x: Any) -> Any:
        return nb.cond(np.sum(x) > 0, lambda v: v * 2, lambda v: -v, x), table(ids)

    nb.export(function, nb.Tensor([0, 2]), nb.Tensor([1.0, 2.0]), file_name=tmp_path / "net")
    again = nn.GraphCell(nb.load(tmp_path / "net.nbgraph"))
    for ids, x, chosen in (([1, 1], [3.0, 1.0], [6.0, 2.0]), ([2, 0], [-3.0, 1.0], [3.0, -1.0])):
        branch, rows = again(nb.Tensor(ids), nb.Tensor(x))
        assert branch.tolist() == chosen
        np.testing.assert_array_equal(rows.asnumpy(), table.embedding_table.asnumpy()[ids])
    with pytest.raises(RangeError, match="out of range"):
        again(nb.Tensor([0, 3]), nb.Tensor([1.0, 2.0]))


def test_parameters_stay_frozen(tmp_path: Path) -> None:
    net = nn.BatchNorm1d(2).set_train(False)
    nb.export(net, nb.Tensor([[1.0, 2.0]]), file_name=tmp_path / "net")
    again = nn.GraphCell(nb.load(tmp_path / "net.nbgraph"))
    assert [p.name for p in again.trainable_params()] == ["gamma", "beta"]


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (nn.BatchNorm1d(2).set_train(), ArgumentError, "writes to its Parameter"),
        (nn.Dropout(p=0.5).set_train(), ArgumentError, "random"),
        (lambda x: nb.while_loop(lambda s: s.sum() < 9, lambda s: s * 2, x), ArgumentError, "while_loop"),
        (lambda x: x if x.sum() > 0 else -x, TracedValueError, "asks for a value"),
    ],
)
def test_networks_that_no_file_can_hold(function: Any, error: type[Exception], text: str, tmp_path: Path) -> None:
    before = [p.asnumpy().copy() for p in function.get_parameters()] if isinstance(function, nn.Cell) else []
    with pytest.raises(error, match=text):
        nb.export(function, nb.Tensor([[1.0, 2.0], [3.0, 4.0]]), file_name=tmp_path / "net")
    after = [p.asnumpy() for p in function.get_parameters()] if isinstance(function, nn.Cell) else []
    assert all(np.array_equal(one, other) for one, other in zip(before, after, strict=True))
