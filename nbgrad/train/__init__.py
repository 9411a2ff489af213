"""MindSpore's `train`: Model, which trains and evaluates networks, and callbacks, which watch it.

In: a network, a loss, an optimizer, a dataset. Out: a trained network, metrics, checkpoints. Called by users. `NAMES`
lists every name by the module that holds it; a module is imported when one of its names is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..mindspore_paths import submodule

NAMES: dict[str, str] = {
    "train.model": "Model",
    "train.callbacks": (
        "Callback RunContext LossMonitor TimeMonitor LambdaCallback LearningRateScheduler History EarlyStopping "
        "ReduceLROnPlateau"
    ),
    "train.saved_models": "CheckpointConfig ModelCheckpoint",
    "train.summaries": "SummaryRecord SummaryCollector",
    "train.sinks": "data_sink DatasetHelper connect_network_with_dataset",
    "amp.loss_scale_managers": "LossScaleManager FixedLossScaleManager DynamicLossScaleManager",
    "amp.precision": "build_train_network auto_mixed_precision",
    "nn.evaluation.metrics_base": "Metric Loss MAE MSE rearrange_inputs names get_metric_fn",
    "nn.evaluation.classification_metrics": (
        "Accuracy TopKCategoricalAccuracy Top1CategoricalAccuracy Top5CategoricalAccuracy Precision Recall Fbeta F1"
    ),
    "nn.evaluation.segmentation_metrics": (
        "ConfusionMatrix Dice MeanSurfaceDistance RootMeanSquareDistance HausdorffDistance CosineSimilarity"
    ),
    "nn.evaluation.confusion_metrics": "ConfusionMatrixMetric",
    "nn.evaluation.occlusion": "OcclusionSensitivity",
    "nn.evaluation.sequence_metrics": "ROC auc Perplexity BleuScore",
    "nn.checkpoint": "save_checkpoint load_checkpoint load_param_into_net",
    "nn.exported": "export load",
}
"""Module -> names, both after `nbgrad.`."""

_module_of = {name: module for module, names in NAMES.items() for name in names.split()}
_HIDDEN = {"_InternalCallbackParam": "train.callbacks", "_CallbackManager": "train.callbacks"}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    module = _module_of.get(name) or _HIDDEN.get(name)
    if module is None:
        if (path := submodule("train", name)) is not None:
            return path
        message = f"nbgrad.train has no {name!r}"
        raise AttributeError(message)
    found = globals()[name] = getattr(import_module(f"nbgrad.{module}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(_module_of)
