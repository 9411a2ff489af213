"""Checkpoints: what is saved comes back, a damaged file or an interrupted save harms nothing, and training goes on."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

import nbgrad as nb
from nbgrad import nn
from nbgrad.errors import ArgumentError, CheckpointError, DtypeError

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(16, 3)).astype(np.float32), rng.normal(size=(16, 1)).astype(np.float32)


class Net(nn.Cell):
    """Two layers."""

    def __init__(self, width: int = 4, dtype: Any = np.float32) -> None:
        super().__init__()
        generator = np.random.default_rng(1)
        self.first = nb.Parameter(generator.normal(size=(3, width)).astype(dtype), name="first")
        self.second = nb.Parameter(generator.normal(size=(width, 1)).astype(dtype), name="second")

    def construct(self, x: Any) -> Any:
        return np.matmul(np.tanh(np.matmul(x, self.first)), self.second)


def training(net: nn.Cell) -> nn.TrainOneStepCell:
    """A step with an optimizer that has state, and a schedule that depends on the step."""
    optimizer = nn.Adam(net.trainable_params(), nn.ExponentialDecayLR(0.1, 0.5, 5), use_amsgrad=True)
    return nn.TrainOneStepCell(nn.WithLossCell(net, lambda out, label: np.mean((out - label) ** 2)), optimizer)


def values(cell: nn.Cell) -> dict[str, np.ndarray]:
    return {name: parameter.asnumpy() for name, parameter in cell.parameters_dict().items()}


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    return a.keys() == b.keys() and all(
        np.array_equal(a[name], b[name]) and a[name].dtype == b[name].dtype for name in a
    )


# ----- There and back -----


def test_every_dtype_and_shape_comes_back(tmp_path: Path) -> None:
    arrays = {f"{d}{k}": np.ones(s, d) for d in DTYPES for k, s in enumerate([(), (0, 3), (2, 3), (1, 1, 4)])}
    arrays |= {"nan": np.array([np.nan, -0.0, np.inf]), "fortran": np.asfortranarray(rng.normal(size=(3, 4)))}
    arrays |= {"strided": rng.normal(size=8)[::2], "swapped": np.arange(3.0).astype(">f8"), "ünï 名": np.ones(1)}
    fortran = np.asfortranarray(rng.normal(size=(2, 3)))
    fortran.flags.writeable = False
    nb.save_checkpoint({**arrays, "tensor": nb.Tensor(fortran)}, tmp_path / "all")
    loaded = nb.load_checkpoint(tmp_path / "all")
    assert loaded.keys() == {*arrays, "tensor"} and (tmp_path / "all.safetensors").is_file()
    for name, array in {**arrays, "tensor": fortran}.items():
        got = loaded[name]
        assert isinstance(got, nb.Parameter) and got.name == name and got.dtype == array.dtype.newbyteorder("=")
        np.testing.assert_array_equal(got.asnumpy(), array, strict=name != "swapped")
    # Another program reads the same.
    for name, array in safetensors.numpy.load_file(tmp_path / "all.safetensors").items():
        np.testing.assert_array_equal(array, arrays.get(name, fortran))


def test_a_file_of_another_program(tmp_path: Path) -> None:
    safetensors.numpy.save_file({"first": np.ones((3, 4), np.float32)}, tmp_path / "weights")
    assert nb.load_checkpoint(tmp_path / "weights")["first"].shape == (3, 4)


def test_lists_extra_values_and_choices(tmp_path: Path) -> None:
    saved = [{"name": "a", "data": nb.Tensor([1.0])}, {"name": "b", "data": nb.Parameter(2.0, name="other")}]
    extra = {"epoch": 7, "rate": 0.1, "done": True}
    nb.save_checkpoint(saved, str(tmp_path / "x.ckpt"), append_dict=extra, choice_func=lambda name: name != "done")
    loaded = nb.load_checkpoint(str(tmp_path / "x.ckpt"))
    assert {name: (p.item(), p.dtype.name) for name, p in loaded.items()} == {
        "a": (1.0, "float32"),
        "b": (2.0, "float32"),
        "epoch": (7, "int64"),
        "rate": (0.1, "float64"),
    }
    assert nb.load_checkpoint(tmp_path / "x.ckpt", filter_prefix=["a", "ep"]).keys() == {"b", "rate"}
    assert nb.load_checkpoint(tmp_path / "x.ckpt", filter_prefix="e", choice_func=lambda n: n != "a").keys() == {
        "b",
        "rate",
    }
    with pytest.raises(CheckpointError, match="none of which"):
        nb.load_checkpoint(tmp_path / "x.ckpt", choice_func=lambda name: False)
    with pytest.raises(ArgumentError, match="filter_prefix"):
        nb.load_checkpoint(tmp_path / "x.ckpt", filter_prefix="")


def test_training_goes_on_where_it_was(tmp_path: Path) -> None:
    step = training(Net())
    for _ in range(3):
        step(nb.Tensor(X), nb.Tensor(Y))
    nb.save_checkpoint(step, tmp_path / "run")
    for _ in range(4):
        loss = step(nb.Tensor(X), nb.Tensor(Y))
    resumed = training(Net(width=4))
    missing, left_over = nb.load_param_into_net(resumed, nb.load_checkpoint(tmp_path / "run"), strict_load=True)
    assert missing == left_over == []
    for _ in range(4):
        resumed_loss = resumed(nb.Tensor(X), nb.Tensor(Y))
    assert same(values(step), values(resumed)) and loss.item() == resumed_loss.item()
    # Weights and the optimizer's state, in files of their own.
    apart = training(Net())
    nb.save_checkpoint(step.network, tmp_path / "net")
    nb.save_checkpoint(step.optimizer, tmp_path / "optimizer")
    nb.load_checkpoint(tmp_path / "net", apart.network, strict_load=True)
    nb.load_checkpoint(tmp_path / "optimizer", apart.optimizer, strict_load=True)
    assert same(values(step), values(apart))


def test_a_compiled_function_sees_loaded_values(tmp_path: Path) -> None:
    net = Net()
    compiled = nb.jit(net)
    before = compiled(X).asnumpy()
    nb.save_checkpoint(net, tmp_path / "net")
    for parameter in net.get_parameters():
        parameter.set_data(parameter * 2)
    assert not np.allclose(compiled(X).asnumpy(), before)
    nb.load_checkpoint(tmp_path / "net", net)
    np.testing.assert_array_equal(compiled(X).asnumpy(), before)


# ----- What does not fit -----


def test_everything_wrong_is_listed_and_nothing_is_changed(tmp_path: Path) -> None:
    net = Net()
    before = values(net)
    good = np.zeros((3, 4), np.float32)
    wrong: list[tuple[dict[str, Any], bool, list[str]]] = [
        ({"first": good, "second": np.zeros((5, 1), "f4")}, False, ["second", r"\(4, 1\)", r"\(5, 1\)"]),
        ({"first": good.T, "second": np.zeros((5, 1), "f4")}, False, [r"\(4, 3\)", r"\(5, 1\)"]),
        ({"first": good, "second": np.zeros((4, 1))}, False, ["float32", "float64"]),
        ({"first": good, "second": np.zeros((4, 1), int)}, False, ["float32", "int64"]),
        ({"first": good}, True, ["missing: 'second'"]),
        ({"first": good, "second": np.zeros((4, 1), "f4"), "third": good}, True, ["left over: 'third'"]),
        ({"first": good, "second": np.zeros((4, 1), "f2")}, True, ["float16"]),
        ({"a": good, "b": good}, False, ["missing: 'first', 'second'", "left over: 'a', 'b'"]),
    ]
    for given, strict, texts in wrong:
        nb.save_checkpoint(given, tmp_path / "wrong")
        for text in texts:
            with pytest.raises(CheckpointError, match=text):
                nb.load_checkpoint(tmp_path / "wrong", net, strict)
        assert same(values(net), before)


def test_what_may_differ_unless_strict() -> None:
    net = Net(dtype=np.float64)
    weight = np.full((3, 4), 0.1, np.float32)
    assert nb.load_param_into_net(net, {"first": weight, "more": np.ones(2)}) == (["second"], ["more"])
    assert net.first.dtype == np.float64
    np.testing.assert_array_equal(net.first.asnumpy(), weight.astype(np.float64))
    assert nb.load_param_into_net(nn.Cell(), {"a": np.ones(1)}) == ([], ["a"])
    many = {f"p{k}": np.ones(1) for k in range(100)}
    with pytest.raises(CheckpointError, match="and 80 more"):
        nb.load_param_into_net(net, many, strict_load=True)


def test_wrong_arguments(tmp_path: Path) -> None:
    twice = nn.Cell()
    twice.a, twice.b = nb.Parameter([1.0], name="same"), nb.Parameter([2.0], name="same")
    calls: list[tuple[Any, type[Exception]]] = [
        (lambda: nb.save_checkpoint(twice, tmp_path / "x"), CheckpointError),
        (lambda: nb.save_checkpoint({"a": 1}, tmp_path / "x", append_dict={"a": 2}), CheckpointError),
        (lambda: nb.save_checkpoint({}, tmp_path / "x"), CheckpointError),
        (lambda: nb.save_checkpoint(nb.Tensor([1.0]), tmp_path / "x"), DtypeError),
        (lambda: nb.save_checkpoint({"a": "text"}, tmp_path / "x"), DtypeError),
        (lambda: nb.save_checkpoint({"a": np.ones(1, complex)}, tmp_path / "x"), DtypeError),
        (lambda: nb.save_checkpoint({1: np.ones(1)}, tmp_path / "x"), DtypeError),
        (lambda: nb.save_checkpoint({"a": 1}, 7), DtypeError),
        (lambda: nb.save_checkpoint({"a": 1}, ""), ArgumentError),
        (lambda: nb.save_checkpoint({"a": 1}, tmp_path / "nowhere" / "x"), FileNotFoundError),
        (lambda: nb.load_checkpoint(tmp_path / "nothing"), FileNotFoundError),
        (lambda: nb.load_checkpoint(tmp_path), FileNotFoundError),
        (lambda: nb.load_param_into_net({}, {}), DtypeError),
        (lambda: nb.load_param_into_net(nn.Cell(), []), DtypeError),
    ]
    for call, error in calls:
        with pytest.raises(error):
            call()
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "folder.ckpt").mkdir()
    with pytest.raises(CheckpointError, match="folder"):
        nb.load_checkpoint(tmp_path / "folder.ckpt")


# ----- Damaged files, interrupted saves -----


def foreign(dtype: str, size: int) -> bytes:
    """A safetensors file with one array of a given dtype."""
    header = json.dumps({"first": {"dtype": dtype, "shape": [2], "data_offsets": [0, size]}}).encode()
    return struct.pack("<Q", len(header)) + header + bytes(size)


def test_complex_numbers(tmp_path: Path) -> None:
    z = np.array([1 + 2j, -0.5j], np.complex64)
    nb.save_checkpoint({"z": z}, tmp_path / "z")
    found = nb.load_checkpoint(tmp_path / "z")["z"].asnumpy()
    assert found.dtype == np.complex64
    np.testing.assert_array_equal(found, z)
    with pytest.raises(DtypeError, match="complex128"):
        nb.save_checkpoint({"z": nb.Tensor(z.astype(complex))}, tmp_path / "w")


def test_damaged_and_foreign_files(tmp_path: Path) -> None:
    net = Net()
    before = values(net)
    path = tmp_path / "net.safetensors"
    nb.save_checkpoint(net, path)
    whole = path.read_bytes()
    damaged = [b"", whole[:-1], whole[: len(whole) // 2], whole[:9], whole[:3], whole + b"more", whole[1:]]
    damaged += [b"PK\x03\x04" + bytes(100), b"\x80\x04\x95" + bytes(50), rng.bytes(1000), b"\xff" * 100]
    damaged += [foreign("BF16", 4), foreign("F8_E4M3", 2), foreign("X", 2)]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=r"net\.safetensors"):
            nb.load_checkpoint(path, net)
        assert same(values(net), before)


@pytest.mark.parametrize("error", [OSError("No space left"), KeyboardInterrupt()])
def test_a_save_that_fails_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    path = tmp_path / "net.safetensors"
    nb.save_checkpoint({"a": np.ones(3)}, path)
    before = path.read_bytes()

    def partly(arrays: Any, name: Any, metadata: Any = None) -> None:
        Path(name).write_bytes(before[:10])
        raise error

    monkeypatch.setattr(safetensors.numpy, "save_file", partly)
    with pytest.raises(type(error)):
        nb.save_checkpoint({"a": np.zeros(3)}, path)
    monkeypatch.undo()
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == [path.name]
    nb.save_checkpoint({"a": np.zeros(3)}, path)
    assert nb.load_checkpoint(path)["a"].tolist() == [0.0] * 3


@pytest.mark.skipif(os.name != "posix", reason="kills a process")
def test_a_killed_save_leaves_a_whole_file(tmp_path: Path) -> None:
    code = (
        "import sys, numpy as np, nbgrad as nb\n"
        "for k in range(10**6):\n"
        "    nb.save_checkpoint({'a': np.full(2_000_000, k % 100.0)}, sys.argv[1])\n"
        "    print(k, flush=True)\n"
    )
    path = tmp_path / "big.safetensors"
    process = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for _ in range(3):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    process.stdout.close()
    values = nb.load_checkpoint(path)["a"].asnumpy()
    assert values.shape == (2_000_000,) and (values == values[0]).all()


def test_a_link_keeps_pointing_and_the_mode_is_the_users(tmp_path: Path) -> None:
    real, link = tmp_path / "real.safetensors", tmp_path / "link.safetensors"
    nb.save_checkpoint({"a": 1}, real)
    link.symlink_to(real)
    nb.save_checkpoint({"a": 2}, link)
    assert link.is_symlink() and nb.load_checkpoint(real)["a"].item() == 2
    other = tmp_path / "plain"
    other.write_bytes(b"")
    assert real.stat().st_mode == other.stat().st_mode
    real.chmod(0o640)
    nb.save_checkpoint({"a": 3}, real)
    assert real.stat().st_mode & 0o777 == 0o640


def test_without_safetensors_the_message_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(CheckpointError, match=r"pip install 'nbgrad\[checkpoint\]'"):
        nb.save_checkpoint({"a": 1}, tmp_path / "x")
    (tmp_path / "x.safetensors").write_bytes(b"")
    with pytest.raises(CheckpointError, match="pip install"):
        nb.load_checkpoint(tmp_path / "x")


def test_import_nbgrad_loads_no_safetensors() -> None:
    code = "import sys, nbgrad; nbgrad.save_checkpoint; print('safetensors' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.strip() == "False"
