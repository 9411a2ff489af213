"""MindSpore's older module paths, and PyTorch's below `torch_names`: where the names of each are in nbgrad.

In: a path after `nbgrad.`, such as "train.callback". Out: modules that have its names. Read by moved.py, which makes
the modules when Python imports them, and by `submodule`, which serves them as attributes of packages (`nn.layer`).
Ported scripts change only the first word of `from mindspore.train.callback import LossMonitor`.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

_NN = """
    layer layer.activation layer.basic layer.combined layer.container layer.conv layer.embedding layer.image layer.math
    layer.normalization layer.pooling layer.rnns layer.rnn_cells layer.timedistributed loss loss.loss
    optim optim.ada_grad optim.adadelta optim.adafactor optim.adam optim.adamax optim.asgd optim.ftrl optim.lamb
    optim.lars optim.lazyadam optim.momentum optim.optimizer optim.proximal_ada_grad optim.rmsprop optim.rprop optim.sgd
    wrap wrap.cell_wrapper wrap.grad_reducer wrap.loss_scale metrics metrics.accuracy metrics.error metrics.fbeta
    metrics.loss metrics.metric metrics.precision metrics.recall metrics.topk metrics.confusion_matrix
    learning_rate_schedule dynamic_lr
"""
_OPS = """
    functional operations composite primitive composite.base composite.math_ops composite.multitype_ops
    operations.array_ops operations.comm_ops operations.image_ops operations.math_ops
    operations.nn_ops operations.other_ops operations.random_ops operations.inner_ops _primitive_cache
"""
_FUNCTIONS = """
    function function.array_func function.clip_func function.grad function.linalg_func function.math_func
    function.nn_func function.parameter_func function.random_func auto_generate auto_generate.gen_ops_def
    auto_generate.gen_ops_prim
"""
_OPTIM = """
    . optim optim.optimizer optim.adadelta optim.adagrad optim.adam optim.adamax optim.adamw optim.asgd optim.nadam
    optim.radam optim.rmsprop optim.rprop optim.sgd
"""
_ROWS = {
    "nn": (("nn", _NN),),
    "ops": (("ops", _OPS), ("ops mint.inner_names mint", _FUNCTIONS), ("mint ops", "functional_overload")),
    "common": (
        (". common", "api parameter seed tensor"),
        ("dtype", "dtype"),
    ),
    "train": (
        ("train . nn.checkpoint", "serialization"),
        (
            "train",
            """
            callback callback._callback callback._checkpoint callback._loss_monitor callback._time_monitor
            callback._lr_scheduler_callback callback._summary_collector loss_scale_manager dataset_helper summary
            summary.summary_record
            """,
        ),
        ("nn", "metrics metrics.metric"),
        ("amp", "amp"),
    ),
    "experimental": (("nn.rarer.torch_optimizers", _OPTIM), ("nn.rarer.rate_schedulers", "optim.lr_scheduler")),
    "mint": (
        ("mint.modules.network", "torch_names.nn torch_names.nn.modules"),
        ("mint.modules.module", "torch_names.nn.parameter"),
        ("mint.nn.functional", "torch_names.nn.functional"),
        ("mint.modules.initial_weights", "torch_names.nn.init"),
        ("mint.modules.module_tools", "torch_names.nn.utils torch_names.nn.utils.parametrizations"),
        ("mint.modules.packed_sequences", "torch_names.nn.utils.rnn"),
        ("mint.modules.optimizer_names", "torch_names.optim"),
        ("mint.modules.scheduled_rates", "torch_names.optim.lr_scheduler"),
        ("mint.modules.further_tools", "torch_names.utils"),
        ("mint.modules.data_loading", "torch_names.utils.data"),
        ("mint.modules.recomputed_blocks", "torch_names.utils.checkpoint"),
        ("cuda", "torch_names.cuda"),
        ("mint.modules.mixed_precision", "torch_names.amp torch_names.cuda.amp"),
        ("mint.modules.random_laws", "torch_names.distributions"),
        ("autograd", "torch_names.autograd"),
    ),
    "scipy": (("ops.rarer.matrix_names", "linalg"),),
    "communication": (("communication", "management _comm_helper"),),
    "parallel": (("communication.parallel_context", ". _utils _auto_parallel_context"),),
    "mindrecord": (("dataset.record_files", "."),),
    "boost": (("train.gradient_sums", ". grad_accumulation"),),
    "_checkparam": (("common.argument_checks", "."),),
    "_extends": (("compiled.compiler_marks", "."),),
    "profiler": (("train.profiler", ". profiling"),),
    "dataset": (
        ("dataset", "engine engine.datasets engine.samplers core"),
        ("dataset.dataset_config", "config engine.config core.config"),
        (
            "dataset.vision_transforms dataset.random_images dataset.image_tones dataset.image_motions",
            "vision vision.c_transforms vision.py_transforms vision.transforms vision.utils",
        ),
        (
            "dataset.text_transforms dataset.tokenizers dataset.vocabulary",
            "text text.transforms text.utils",
        ),
        (
            "dataset.array_transforms",
            "transforms transforms.c_transforms transforms.py_transforms transforms.transforms",
        ),
    ),
}
"""Package -> pairs of the modules that have the names ("." for nbgrad itself) and of the paths under the package."""

PATHS = {
    f"{package}.{path}".removesuffix(".."): homes
    for package, rows in _ROWS.items()
    for homes, paths in rows
    for path in paths.split()
}
"""Path -> the modules that have its names, all after `nbgrad.`."""


def submodule(package: str, name: str) -> ModuleType | None:
    """The module of a path of MindSpore's, asked for as an attribute of a package ("" is nbgrad); None for others."""
    path = f"{package}.{name}" if package else name
    return import_module(f"nbgrad.{path}") if path in PATHS else None
