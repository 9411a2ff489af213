"""Neural networks: Cells, layers, losses, optimizers, with MindSpore's names.

In: Tensors. Out: Cells. `NAMES` lists every public name by the module that holds it; a module is imported when one of
its names is first used, so that importing nbgrad stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ..mindspore_paths import submodule

NAMES: dict[str, str] = {
    "cell": "Cell",
    "containers": "SequentialCell CellList CellDict",
    "dense": "Dense Embedding Flatten Identity Dropout",
    "activation_layers": (
        "ReLU ReLU6 LeakyReLU PReLU ELU CELU SELU SeLU GELU FastGelu SiLU Sigmoid LogSigmoid Tanh Softmax LogSoftmax "
        "Softmin Softplus Softsign HSigmoid HSwish Hardtanh HShrink SoftShrink Mish Tanhshrink GLU get_activation"
    ),
    "convolution_layers": "Conv1d Conv2d Conv2dTranspose",
    "pooling_layers": "MaxPool1d MaxPool2d AvgPool1d AvgPool2d AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveMaxPool2d",
    "normalisation_layers": (
        "BatchNorm1d BatchNorm2d BatchNorm3d SyncBatchNorm LayerNorm GroupNorm RMSNorm InstanceNorm1d InstanceNorm2d "
        "InstanceNorm3d"
    ),
    "recurrent": "RNN LSTM GRU RNNCell LSTMCell GRUCell",
    "transformers.multihead_attention": "MultiheadAttention",
    "transformers.transformer_layers": (
        "TransformerEncoderLayer TransformerDecoderLayer TransformerEncoder TransformerDecoder Transformer"
    ),
    "loss_layers": (
        "LossBase MSELoss L1Loss SmoothL1Loss HuberLoss CrossEntropyLoss NLLLoss BCELoss BCEWithLogitsLoss KLDivLoss "
        "CosineEmbeddingLoss MarginRankingLoss SoftmaxCrossEntropyWithLogits MAELoss RMSELoss SoftMarginLoss DiceLoss"
    ),
    "optimizer": "Optimizer opt_init_args_register",
    "volume_layers": "Conv3d Conv3dTranspose Conv1dTranspose MaxPool3d AvgPool3d",
    "small_layers": (
        "Pad ResizeBilinear OneHot Norm ClipByNorm MatMul ReduceLogSumExp Tril Triu Unfold PSNR Dropout1d Dropout2d "
        "Dropout3d Conv2dBnAct DenseBnAct CentralCrop"
    ),
    "image_similarity": "SSIM MSSSIM",
    "rarer.factored_optimizer": "AdaFactor",
    "adaptive_optimizers": "Adadelta AdaMax ASGD FTRL LARS Lamb LazyAdam ProximalAdagrad Rprop",
    "optimizers": "SGD Momentum Adam AdamWeightDecay AdamW RMSProp Adagrad",
    "schedules": (
        "LearningRateSchedule ExponentialDecayLR NaturalExpDecayLR InverseDecayLR CosineDecayLR PolynomialDecayLR "
        "WarmUpLR piecewise_constant_lr exponential_decay_lr natural_exp_decay_lr inverse_decay_lr cosine_decay_lr "
        "polynomial_decay_lr warmup_lr"
    ),
    "training": "TrainOneStepCell WithLossCell WithEvalCell ForwardValueAndGrad",
    "data_parallel": "DistributedGradReducer",
    "loss_scaling": ("TrainOneStepWithLossScaleCell DynamicLossScaleUpdateCell FixedLossScaleUpdateCell"),
    "function_layers": (
        "ConstantPad1d ConstantPad2d ConstantPad3d ZeroPad1d ZeroPad2d ZeroPad3d ReflectionPad1d ReflectionPad2d "
        "ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d AdaptiveAvgPool3d AdaptiveMaxPool1d "
        "AdaptiveMaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d Upsample PixelShuffle PixelUnshuffle ChannelShuffle LRN "
        "LPPool1d LPPool2d FractionalMaxPool2d FractionalMaxPool3d Unflatten RReLU Softmax2d Threshold Roll Moments "
        "MatrixDiag LGamma DiGamma IGamma MatDet MatInverse PoissonNLLLoss "
        "MultiMarginLoss MultilabelMarginLoss MultiLabelSoftMarginLoss HingeEmbeddingLoss GaussianNLLLoss "
        "TripletMarginLoss CTCLoss SparseTensorDenseMatmul"
    ),
    "further_layers": (
        "BiDense EmbeddingLookup ImageGradients LBeta SparseToDense ParameterUpdate TripletMarginWithDistanceLoss"
    ),
    "rarer.rarer_losses": "FocalLoss MultiClassDiceLoss SampledSoftmaxLoss L1Regularizer",
    "rarer.wrapped_layers": "TimeDistributed WithGradCell GradAccumulationCell Range Jvp Vjp",
    "evaluation.segmentation_metrics": (
        "ConfusionMatrix Dice MeanSurfaceDistance RootMeanSquareDistance HausdorffDistance CosineSimilarity"
    ),
    "evaluation.confusion_metrics": "ConfusionMatrixMetric",
    "evaluation.occlusion": "OcclusionSensitivity",
    "evaluation.sequence_metrics": "ROC auc Perplexity BleuScore",
    "exported": "GraphCell",
    "evaluation.metrics_base": "Metric Loss MAE MSE rearrange_inputs names get_metric_fn",
    "evaluation.classification_metrics": (
        "Accuracy TopKCategoricalAccuracy Top1CategoricalAccuracy Top5CategoricalAccuracy Precision Recall Fbeta F1"
    ),
}

_HIDDEN = {"_Loss": "LossBase"}
"""Names of MindSpore's earlier releases that losses of public collections derive from, and the names now."""

_WITH_END = {
    "nbgrad.mint.nn": (
        "AvgPool1d AvgPool2d AvgPool3d Dropout Dropout2d Embedding L1Loss LayerNorm LogSoftmax MaxPool2d PReLU"
    ),
}
"""Module -> layers that MindSpore's `nn` has too, with `Ext` after the name."""
_ends: dict[str, tuple[str, str]] = {
    f"{name}Ext": (module, name) for module, names in _WITH_END.items() for name in names.split()
}

_module_of: dict[str, str] = {name: module for module, names in NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return __dir__()
    if name in _HIDDEN:
        return __getattr__(_HIDDEN[name])
    if name in _ends:
        module, name = _ends[name]
        return getattr(import_module(module), name)
    if name == "probability":
        return import_module(".probability", __name__)
    module = _module_of.get(name)
    if module is None and (path := submodule("nn", name)) is not None:
        return path
    if module is None:
        message = f"nbgrad.nn has no {name!r}"
        raise AttributeError(message)
    found = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(_module_of)
