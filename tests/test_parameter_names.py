"""Names of Parameters in Cells that change: those that MindSpore's containers and optimizers give."""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

import nbgrad as nb
from nbgrad import nn


def dense() -> Any:
    """A Cell with the Parameter `weight` only."""
    return nn.Dense(2, 2, has_bias=False)


def names(cell: Any) -> list[str]:
    return [parameter.name for parameter in cell.get_parameters()]


class Block(nn.Cell):
    """A container as an attribute, with two Cells in it."""

    def __init__(self, container: Any) -> None:
        super().__init__()
        self.layers = container([dense(), dense()])


def _replace(layers: Any) -> None:
    layers[1] = dense()


def _delete(layers: Any) -> None:
    layers.append(dense())
    del layers[0]


def _add(layers: Any) -> None:
    layers += [dense()]


CHANGES: dict[str, tuple[Callable[[Any], Any], int]] = {
    "nothing": (lambda layers: None, 2),
    "append": (lambda layers: layers.append(dense()), 3),
    "extend": (lambda layers: layers.extend([dense(), dense()]), 4),
    "+=": (_add, 3),
    "insert": (lambda layers: layers.insert(0, dense()), 3),
    "replace": (_replace, 2),
    "delete": (_delete, 2),
    "pop": (lambda layers: layers.pop(0), 1),
}


@pytest.mark.parametrize("container", [nn.CellList, nn.SequentialCell])
@pytest.mark.parametrize("change", CHANGES)
def test_a_container_that_is_an_attribute_keeps_its_prefix(change: str, container: Any) -> None:
    act, count = CHANGES[change]
    block = Block(container)
    act(block.layers)
    assert names(block) == [f"layers.{k}.weight" for k in range(count)]
    assert list(block.parameters_dict()) == names(block)

    outer = nn.Cell()
    outer.inner = block  # renamed from the outside, then changed again
    act(block.layers)
    assert names(outer) == [f"inner.layers.{k}.weight" for k in range(len(block.layers))]


def test_an_empty_container_knows_its_name() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.CellList(), nn.SequentialCell()
            for _ in range(2):
                self.first.append(dense())
                self.second.append(dense())

        def construct(self, x: Any) -> Any:
            return self.second(x)

    net = Net()
    assert names(net) == ["first.0.weight", "first.1.weight", "second.0.weight", "second.1.weight"]
    nn.Adam(net.trainable_params())  # which refuses equal names


def test_two_changed_blocks_train_together_and_load_each_others_checkpoints(tmp_path: Any) -> None:
    def changed() -> Any:
        net = nn.Cell()
        net.a, net.b = Block(nn.SequentialCell), Block(nn.SequentialCell)
        net.a.layers.append(nn.ReLU())
        net.a.layers.append(dense())
        net.b.layers.append(dense())
        return net

    def built() -> Any:
        net = nn.Cell()
        net.a, net.b = Block(nn.SequentialCell), Block(nn.SequentialCell)
        net.a.layers = nn.SequentialCell([dense(), dense(), nn.ReLU(), dense()])
        net.b.layers = nn.SequentialCell([dense(), dense(), dense()])
        net.update_parameters_name("")
        return net

    net, same = changed(), built()
    assert names(net) == names(same)
    nn.SGD(net.trainable_params(), 0.1)
    pytest.importorskip("safetensors")
    nb.save_checkpoint(net, str(tmp_path / "net.safetensors"))
    parameters = nb.load_checkpoint(str(tmp_path / "net.safetensors"))
    assert nb.load_param_into_net(same, parameters) == ([], [])


def test_names_that_users_gave_stay() -> None:
    block = nn.Cell()
    block.layers = nn.SequentialCell(OrderedDict([("first", dense()), ("last", dense())]))
    block.layers.append(dense())
    assert names(block) == ["layers.first.weight", "layers.last.weight", "layers.2.weight"]
    del block.layers[0]
    assert names(block) == ["layers.last.weight", "layers.1.weight"]


def test_cells_of_a_dict() -> None:
    block = nn.Cell()
    block.heads = nn.CellDict({"a": dense()})
    block.heads["b"] = dense()
    block.heads.update({"c": dense()})
    assert names(block) == ["heads.a.weight", "heads.b.weight", "heads.c.weight"]


def test_without_prefixes() -> None:
    layers = nn.CellList([dense()], auto_prefix=False)
    layers.append(dense())
    assert names(layers) == ["weight", "weight"]


def test_a_plain_cell_adds_no_prefix_later() -> None:
    # MindSpore's Cell.__setattr__ knows the attribute's name only.
    net = nn.Cell()
    net.block = nn.Cell()
    net.block.late = dense()
    assert names(net) == ["late.weight"]


def test_a_copy_gets_its_own_names() -> None:
    net = Block(nn.CellList)
    net.copied = copy.deepcopy(net.layers)
    net.copied.append(dense())
    assert names(net)[2:] == ["copied.0.weight", "copied.1.weight", "copied.2.weight"]


OPTIMIZERS = {
    "SGD": ([], lambda p: nn.SGD(p, 0.1)),
    "Momentum": (["moments"], lambda p: nn.Momentum(p, 0.1, 0.9)),
    "Adam": (["moment1", "moment2"], lambda p: nn.Adam(p, 0.1)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_renames_its_weights_and_its_state(name: str) -> None:
    # In MindSpore an optimizer holds the weights, too; its tutorials tell optimizers of two nets apart in this way.
    states, make = OPTIMIZERS[name]
    net = dense()
    optimizer = make(net.trainable_params())
    for prefix in ("one.", "two."):  # a new prefix replaces the old one
        optimizer.update_parameters_name(prefix)
        state = [f"{prefix}{one}.weight" for one in states]
        assert names(optimizer) == [f"{prefix}global_step", f"{prefix}learning_rate", *state]
        assert names(net) == [f"{prefix}weight"] == [parameter.name for parameter in optimizer.parameters]
    assert optimizer((nb.Tensor([[1.0, 1.0], [1.0, 1.0]]),))


def test_an_optimizer_that_becomes_an_attribute_leaves_the_weights_names() -> None:
    net = nn.Cell()
    net.layer = dense()
    net.optimizer = nn.SGD(net.trainable_params(), 0.1)
    assert names(net) == ["layer.weight", "optimizer.global_step", "optimizer.learning_rate"]
