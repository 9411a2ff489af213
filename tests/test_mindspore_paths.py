"""MindSpore's older module paths, options of parallel training and communication: names that scripts import."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any

import pytest

import nbgrad as nb
from nbgrad import communication
from nbgrad.errors import ArgumentError, DtypeError
from nbgrad.mindspore_paths import PATHS

from .imports import SOURCES

NAMES = """
    common.api.jit common.dtype.float32 common.initializer.Normal common.mutable common.parameter.Parameter
    common.seed.set_seed common.tensor.Tensor communication.management.get_rank context.ParallelMode.DATA_PARALLEL
    dataset.config.set_seed dataset.engine.GeneratorDataset dataset.transforms.c_transforms.TypeCast
    dataset.vision.Inter.BICUBIC dataset.vision.c_transforms.Resize dataset.vision.py_transforms.ToTensor
    dataset.vision.c_transforms.RandomCrop nn.layer.CellList nn.layer.activation.get_activation nn.loss.loss.LossBase
    nn.metrics.Accuracy nn.optim.momentum.Momentum nn.optim.optimizer.Optimizer
    nn.wrap.loss_scale.DynamicLossScaleUpdateCell
    ops.composite.HyperMap ops.functional.tuple_to_array ops.operations.DType ops.primitive.constexpr
    parallel._utils._get_device_num parallel._auto_parallel_context.auto_parallel_context parallel.set_algo_parameters
    profiler.Profiler train.callback.LossMonitor train.callback._checkpoint.ModelCheckpoint
    train.loss_scale_manager.FixedLossScaleManager train.model.Model train.model.ParallelMode
    train.serialization.export train.serialization.load_param_into_net
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_an_older_path_has_the_name(name: str) -> None:
    scope: dict[str, object] = {}
    module, _, last = name.rpartition(".")
    if module == "context.ParallelMode" or module == "dataset.vision.Inter":
        module, _, last = module.rpartition(".")
    exec(f"from nbgrad.{module} import {last}", scope)
    assert scope[last] is getattr(import_module(f"nbgrad.{module}"), last)


def test_paths_are_attributes_of_packages() -> None:
    nn: Any = nb.nn
    ops: Any = nb.ops
    assert nn.layer.CellList is nn.CellList
    assert ops.operations.MatMul is ops.MatMul
    assert nb.train.callback.LossMonitor is nb.train.LossMonitor
    assert nb.dataset.vision.Inter.LINEAR == 2


def test_every_path_can_be_imported_and_has_names() -> None:
    for path in PATHS:
        module = import_module(f"nbgrad.{path}")
        assert len(module.__all__) > 0, path
        assert f"nbgrad.{path}" not in SOURCES, "a file would hide it"
        package, _, last = path.rpartition(".")
        if package in ("nn", "ops", "train"):
            assert last not in import_module(f"nbgrad.{package}").__all__, "it would hide a name"


def test_a_path_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(ModuleNotFoundError):
        import_module("nbgrad.train.callbak")
    with pytest.raises(AttributeError, match="its names are those of"):
        _ = import_module("nbgrad.train.callback").LossMonitr
    with pytest.raises(AttributeError):
        _ = getattr(nb.nn, "layr")  # noqa: B009 - the checker knows that it is not there


def test_star_imports_of_an_older_path() -> None:
    scope: dict[str, object] = {}
    exec("from nbgrad.train.callback import *", scope)
    assert scope["LossMonitor"] is nb.LossMonitor


def test_options_of_parallel_training() -> None:
    context = import_module("nbgrad.parallel._auto_parallel_context").auto_parallel_context()
    try:
        nb.context.set_auto_parallel_context(parallel_mode="semi_auto_parallel", gradients_mean=True, device_num=1)
        assert context.get_parallel_mode() == nb.get_auto_parallel_context("parallel_mode") == "semi_auto_parallel"
        assert import_module("nbgrad.parallel._utils")._get_gradients_mean() is True
        context.set_parallel_mode("stand_alone")
        for options in ({"device_num": 8}, {"pipeline_stages": 2}, {"parallel_mode": "all"}, {"unknown": 1}):
            with pytest.raises(ArgumentError):
                nb.set_auto_parallel_context(**options)
        assert nb.get_auto_parallel_context("parallel_mode") == "stand_alone"
    finally:
        nb.reset_auto_parallel_context()
    assert nb.get_auto_parallel_context("gradients_mean") is False


def test_another_device_is_a_warning() -> None:
    with pytest.warns(UserWarning, match="has no effect"):
        nb.set_context(mode=nb.GRAPH_MODE, device_target="Ascend", device_id=3)
    assert nb.get_context("device_target") == "CPU"
    nb.set_context(mode=nb.PYNATIVE_MODE, device_id=0)
    with pytest.raises(ArgumentError, match="device_target"):
        nb.set_context(device_target="Abacus")


def test_one_process() -> None:
    communication.init("mccl")
    assert (communication.get_rank(), communication.get_group_size()) == (0, 1)
    with pytest.raises(ArgumentError, match="create_group"):
        communication.get_rank("team")
    with pytest.raises(ArgumentError, match="from 0 to 0"):
        communication.create_group("team", [0, 1])
    with pytest.raises(ArgumentError, match="backend_name"):
        communication.init("tcp")
    with pytest.raises(DtypeError):
        communication.init(3)  # pyright: ignore[reportArgumentType]
    assert nb.ops.AllReduce()(nb.Tensor([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert nb.ops.AllGather()(nb.Tensor([1.0])).tolist() == [1.0]


def test_log_writes_lines_with_a_level(capsys: pytest.CaptureFixture[str]) -> None:
    from nbgrad import log

    log.info("quiet")
    log.warning("%d of %d", 1, 2)
    line = capsys.readouterr().err
    assert line.startswith("[WARNING]")
    assert "test_mindspore_paths.py" in line
    assert line.endswith("1 of 2\n")
    assert logging.getLogger("nbgrad").level == logging.WARNING
