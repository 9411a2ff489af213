"""Cases of MindSpore's optimizers, class forms, layers, metrics, loss scales and image transforms.

Run by a Python with MindSpore on a CPU, `python -m tests.recorded.record_mindspore_world` writes its results to
mindspore_world.json. The same functions run in nbgrad in test_mindspore_world.py. Recorded with MindSpore 2.10.0.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("mindspore_world.json")

RANDOM = np.random.default_rng(0)


def drawn(*shape: int) -> np.ndarray:
    """Normal numbers."""
    return RANDOM.normal(size=shape).astype(np.float32)


WEIGHTS = [np.array([0.5, -1.0, 2.0], np.float32), np.array([[1.0, -0.25], [0.75, 3.0]], np.float32)]
IMAGES, VOLUMES, BLOCKS, PIXELS = drawn(1, 2, 3, 4), drawn(1, 2, 3, 4, 5), drawn(1, 8, 2, 2), drawn(1, 2, 4, 4)
KERNEL, VOLUME_KERNEL, TRANSPOSED, ROW_KERNEL = (
    drawn(3, 2, 2, 2),
    drawn(4, 2, 2, 3, 2),
    drawn(2, 3, 2, 3, 2),
    drawn(2, 3, 3),
)
LOGITS = drawn(3, 4)
SHARES = RANDOM.uniform(size=(3, 4)).astype(np.float32)
SHARES /= SHARES.sum(1, keepdims=True)
CLASSES = np.array([1, 0, 3], np.int32)
ANCHORS = np.array([[0, 0, 10, 12], [5, 5, 20, 25], [3, 2, 8, 30]], np.float32)
TRUTH = np.array([[1, 1, 9, 9], [6, 2, 18, 28], [4, 4, 9, 20]], np.float32)
DELTAS = drawn(3, 4) * np.float32(0.5)
DELTAS[0, 2] = 9
INSIDE = np.array(
    [[0, 0, 10, 12], [-1, 0, 3, 3], [0, 0, 23, 3], [0, 0, 24, 3], [0, 0, 3, 36], [0, 0, 3, 35]], np.float32
)
SCORES = RANDOM.uniform(size=(6, 3)).astype(np.float32)
LABELS = np.array([0, 1, 2, 2, 1, 0], np.int32)
SEVERAL = (RANDOM.uniform(size=(6, 3)) > 0.5).astype(np.float32)
PICTURE = RANDOM.integers(0, 256, (5, 7, 3)).astype(np.uint8)

SEQUENCES, STATES, GATES = drawn(3, 2, 3), drawn(4, 2, 2), drawn(88, 1, 1)
WINDOWS, SHIFTS = drawn(4, 1, 3, 2), drawn(1, 36, 3, 2)
EVEN = np.ascontiguousarray(SEQUENCES[..., :2])
EXTRA = np.random.default_rng(1)
PHOTOGRAPHS = EXTRA.uniform(size=(2, 1, 2, 20, 23)).astype(np.float32)

LARGER = (EXTRA.normal(100, 30, (24, 30, 3))).clip(0, 255).astype(np.uint8)

OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("Adadelta", {"learning_rate": 0.5, "rho": 0.8, "epsilon": 1e-3}),
    ("Adadelta", {"learning_rate": 1.0, "weight_decay": 0.1}),
    ("AdaMax", {"learning_rate": 0.1, "beta1": 0.8, "beta2": 0.9, "eps": 1e-3}),
    ("ASGD", {"learning_rate": 0.1, "lambd": 0.05, "alpha": 0.6, "t0": 1.0}),
    ("FTRL", {"learning_rate": 0.1}),
    ("FTRL", {"learning_rate": 0.2, "initial_accum": 0.3, "l2": 0.2}),
    ("LazyAdam", {"learning_rate": 0.1, "beta1": 0.8, "beta2": 0.9, "eps": 1e-3}),
    ("ProximalAdagrad", {"learning_rate": 0.2, "accum": 0.3, "l1": 0.1, "l2": 0.2}),
    ("Rprop", {"learning_rate": 0.1, "etas": (0.5, 1.3), "step_sizes": (1e-3, 0.2)}),
]
FORMS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], tuple[Any, ...]]] = {
    "nearest": ("ResizeNearestNeighbor", ((2, 2),), {}, (IMAGES,)),
    "nearest, aligned": ("ResizeNearestNeighbor", ((4, 7),), {"align_corners": True}, (IMAGES,)),
    "depth to space": ("DepthToSpace", (2,), {}, (BLOCKS,)),
    "space to depth": ("SpaceToDepth", (2,), {}, (PIXELS,)),
    "convolution": ("Conv2D", (3, 2), {"pad_mode": "same", "stride": 2}, (IMAGES, KERNEL)),
    "maxima": ("MaxPool", (2, 2, "same"), {}, (IMAGES,)),
    "means": ("AvgPool", (2, 2, "same"), {}, (IMAGES,)),
    "maxima of volumes": ("MaxPool3D", ((2, 2, 3), (1, 2, 2), "valid"), {}, (VOLUMES,)),
    "maxima of volumes, same": ("MaxPool3D", ((2, 2, 3), (1, 2, 2), "same"), {}, (VOLUMES,)),
    "means of volumes": ("AvgPool3D", ((2, 2, 3), (1, 2, 2), "valid"), {}, (VOLUMES,)),
    "means of volumes, same": ("AvgPool3D", ((2, 2, 3), (1, 2, 2), "same"), {}, (VOLUMES,)),
    "smooth l1": ("SmoothL1Loss", (0.5,), {}, (LOGITS, SHARES)),
    "softmax": ("SoftmaxCrossEntropyWithLogits", (), {}, (LOGITS, SHARES)),
    "sparse softmax": ("SparseSoftmaxCrossEntropyWithLogits", (), {}, (LOGITS, CLASSES)),
    "its gradient": ("SparseSoftmaxCrossEntropyWithLogits", (), {"is_grad": True}, (LOGITS, CLASSES)),
    "sigmoid": ("SigmoidCrossEntropyWithLogits", (), {}, (LOGITS, SHARES)),
    "probabilities": ("BinaryCrossEntropy", (), {}, (SHARES, (SHARES > 0.3).astype(np.float32))),
    "with logits": ("BCEWithLogitsLoss", ("sum",), {}, (LOGITS, SHARES, SHARES, np.ones(4, np.float32))),
    "likelihood": ("NLLLoss", ("mean",), {}, (LOGITS, CLASSES, np.array([1.0, 2.0, 3.0, 4.0], np.float32))),
    "divergence": ("KLDivLoss", ("mean",), {}, (LOGITS, SHARES)),
    "iou": ("IOU", (), {}, (ANCHORS, TRUTH[:2])),
    "iof": ("IOU", ("iof",), {}, (ANCHORS, TRUTH[:2])),
    "encoded boxes": (
        "BoundingBoxEncode",
        (),
        {"means": (0.0, 0.1, 0.0, 0.2), "stds": (1.0, 2.0, 1.0, 0.5)},
        (ANCHORS, TRUTH),
    ),
    "decoded boxes": (
        "BoundingBoxDecode",
        (),
        {"max_shape": (24, 18), "means": (0.0, 0.1, 0.0, 0.2), "stds": (1.0, 2.0, 1.0, 0.5)},
        (ANCHORS, DELTAS),
    ),
    "boxes inside": ("CheckValid", (), {}, (INSIDE, np.array([24, 16, 1.5], np.float32))),
    "rounded": ("Rint", (), {}, (np.array([0.5, 1.5, -2.5, 0.4], np.float32),)),
    "norm": ("LpNorm", ([0], 3), {}, (LOGITS,)),
    "maxima and places": ("MaxPoolWithArgmax", (2, 2, "same"), {}, (IMAGES,)),
    "maxima and places of volumes": ("MaxPool3DWithArgmax", ((2, 2, 3), 2, 1), {}, (VOLUMES,)),
    "lstm, one layer": ("LSTM", (3, 2, 1, True, False, 0.0), {}, (SEQUENCES, STATES[:1], STATES[1:2], GATES[:48])),
    "lstm, two layers": ("LSTM", (2, 2, 2, True, False, 0.0), {}, (EVEN, STATES[:2], STATES[2:], GATES[:80])),
    "lstm, both ways": ("LSTM", (3, 2, 1, False, True, 0.0), {}, (SEQUENCES, STATES[:2], STATES[2:], GATES[:80])),
}
LAYERS: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], tuple[Any, ...]]] = {
    "same volumes": ("Conv3d", (2, 4, (2, 3, 2)), {"stride": (1, 2, 2), "weight_init": VOLUME_KERNEL}, (VOLUMES,)),
    "valid volumes": (
        "Conv3d",
        (2, 4, (2, 3, 2)),
        {"stride": (1, 2, 2), "pad_mode": "valid", "weight_init": VOLUME_KERNEL},
        (VOLUMES,),
    ),
    "same transposed": ("Conv3dTranspose", (2, 3, (2, 3, 2)), {"stride": 2, "weight_init": TRANSPOSED}, (VOLUMES,)),
    "valid transposed": (
        "Conv3dTranspose",
        (2, 3, (2, 3, 2)),
        {"stride": 2, "pad_mode": "valid", "weight_init": TRANSPOSED},
        (VOLUMES,),
    ),
    "padded transposed": (
        "Conv3dTranspose",
        (2, 3, (2, 3, 2)),
        {"stride": 2, "pad_mode": "pad", "padding": 1, "output_padding": 1, "weight_init": TRANSPOSED},
        (VOLUMES,),
    ),
    "same rows": ("Conv1dTranspose", (2, 3, 3), {"stride": 2, "weight_init": ROW_KERNEL}, (IMAGES[:, :, 0],)),
    "valid rows": (
        "Conv1dTranspose",
        (2, 3, 3),
        {"stride": 2, "pad_mode": "valid", "weight_init": ROW_KERNEL},
        (IMAGES[:, :, 0],),
    ),
    "padded rows": (
        "Conv1dTranspose",
        (2, 3, 3),
        {"stride": 2, "pad_mode": "pad", "padding": 1, "weight_init": ROW_KERNEL},
        (IMAGES[:, :, 0],),
    ),
    "batches of volumes": ("BatchNorm3d", (2,), {}, (VOLUMES,)),
    "reflected": ("Pad", (((1, 0), (2, 1)), "REFLECT"), {}, (LOGITS,)),
    "symmetric": ("Pad", (((1, 0), (2, 1)), "SYMMETRIC"), {}, (LOGITS,)),
    "absolute": ("MAELoss", (), {}, (LOGITS, SHARES)),
    "root": ("RMSELoss", (), {}, (LOGITS, SHARES)),
    "dice": ("DiceLoss", (), {}, (SHARES, np.ascontiguousarray(SHARES[::-1]))),
    "log sum exp": ("ReduceLogSumExp", (1,), {}, (LOGITS,)),
}
DEFORMED = (IMAGES, WINDOWS, SHIFTS, (3, 2), (1, 1, 1, 2), (1, 1, 2, 0))
"""The arguments of `deformable_conv2d`, up to the padding."""
METRICS: dict[str, tuple[str, tuple[Any, ...], tuple[Any, Any]]] = {
    "Accuracy": ("Accuracy", (), (SCORES, LABELS)),
    "top 2": ("TopKCategoricalAccuracy", (2,), (SCORES, LABELS)),
    "Precision": ("Precision", (), (SCORES, LABELS)),
    "Recall": ("Recall", (), (SCORES, LABELS)),
    "Fbeta": ("Fbeta", (2.0,), (SCORES, LABELS)),
    "F1": ("F1", (), (SCORES, LABELS)),
    "Accuracy of several": ("Accuracy", ("multilabel",), ((SCORES > 0.5).astype(np.float32), SEVERAL)),
    "Precision of several": ("Precision", ("multilabel",), ((SCORES > 0.5).astype(np.float32), SEVERAL)),
    "Recall of several": ("Recall", ("multilabel",), ((SCORES > 0.5).astype(np.float32), SEVERAL)),
    "MAE": ("MAE", (), (LOGITS, SHARES)),
    "MSE": ("MSE", (), (LOGITS, SHARES)),
}
TRANSFORMS: dict[str, tuple[str, tuple[Any, ...]]] = {
    "Resize": ("Resize", ((3, 10),)),
    "Resize of the shorter side": ("Resize", (4,)),
    "Resize, nearest": ("Resize", ((3, 10), 0)),
    "Resize, cubic": ("Resize", ((8, 10), 3)),
    "CenterCrop": ("CenterCrop", ((3, 9),)),
    "Normalize": ("Normalize", ([100.0, 110.0, 120.0], [50.0, 60.0, 70.0])),
    "Rescale": ("Rescale", (1 / 255.0, 0.5)),
    "HWC2CHW": ("HWC2CHW", ()),
    "ToTensor": ("ToTensor", ()),
    "Pad": ("Pad", ([1, 2, 3, 4], 7)),
    "HorizontalFlip": ("HorizontalFlip", ()),
    "AutoContrast": ("AutoContrast", ()),
    "AutoContrast, without ends": ("AutoContrast", (10.0, [200, 50])),
    "Equalize": ("Equalize", ()),
    "Invert": ("Invert", ()),
    "Posterize": ("Posterize", (3,)),
    "Solarize": ("Solarize", ((60, 190),)),
    "Solarize from a number on": ("Solarize", (100,)),
    "AdjustSharpness, blurred": ("AdjustSharpness", (0.0,)),
    "AdjustSharpness": ("AdjustSharpness", (2.5,)),
    "AdjustSaturation": ("AdjustSaturation", (0.4,)),
    "AdjustContrast": ("AdjustContrast", (1.7,)),
    "AdjustBrightness": ("AdjustBrightness", (1.3,)),
    "Rotate": ("Rotate", (30.0,)),
    "Rotate, by straight lines": ("Rotate", (30.0, 2)),
    "Rotate, as large as needed": ("Rotate", (90.0, 0, True)),
    "Rotate about a corner": ("Rotate", (-20.0, 0, False, (0, 0), 9)),
    "Affine": ("Affine", (15.0, (0.2, -0.1), 1.3, (5.0, -10.0), 0, 50)),
    "RandomRotation by one angle": ("RandomRotation", ((45.0, 45.0),)),
    "RandomSharpness by one factor": ("RandomSharpness", ((1.5, 1.5),)),
    "RandomColor by one factor": ("RandomColor", ((0.5, 0.5),)),
    "RandomPosterize": ("RandomPosterize", ((2, 2),)),
    "RandomAffine": ("RandomAffine", ((20.0, 20.0), None, (1.1, 1.1), (10.0, 10.0, 5.0, 5.0), 0, 3)),
}
OVERFLOWS = (False, False, False, True, False, True, True, True, True, False, False)


def gradient(weight: np.ndarray, step: int) -> np.ndarray:
    """A gradient that turns its sign now and then."""
    return (np.cos(weight * (step + 1)) - 0.3 * weight * (1 if step != 2 else -1)).astype(np.float32)


class Cases:
    """The cases, in MindSpore or in nbgrad: functions by name."""

    def __init__(self, library: str) -> None:
        self.library = library
        names = ("nn", "ops", "train", "amp", "dataset.vision")
        self.nn, self.ops, self.train, self.amp, self.vision = (
            importlib.import_module(f"{library}.{n}") for n in names
        )
        top = importlib.import_module(library)
        self.tensor, self.parameter = top.Tensor, top.Parameter
        self.all: dict[str, Callable[[], Any]] = {}
        for name, options in OPTIMIZERS:
            given = ", ".join(f"{key}={value}" for key, value in options.items())
            self.all[f"{name}({given})"] = lambda name=name, options=options: self.optimized(name, options)
        for kind, table, module in (("form", FORMS, self.ops), ("layer", LAYERS, self.nn)):
            for name, row in table.items():
                self.all[f"{kind}: {name}"] = lambda module=module, row=row: self.called(module, *row)
        for name, row in METRICS.items():
            self.all[f"metric: {name}"] = lambda row=row: self.measured(*row)
        for name, (cls, options) in TRANSFORMS.items():
            self.all[f"image: {name}"] = lambda cls=cls, options=options: self.pictured(cls, options)
        self.all["deformed windows"] = self.deformed
        for name in ("LayerOfSSIM", "LayerOfMSSSIM"):
            self.all[name] = lambda name=name: self.similarity(name.removeprefix("LayerOf"))
        self.all["scale: DynamicLossScaler"] = self.scaler
        self.all["scale: DynamicLossScaleManager"] = self.manager
        self.all["scale: DynamicLossScaleUpdateCell"] = self.update_cell

    def optimized(self, name: str, options: dict[str, Any]) -> Any:
        """The weights after each of four steps."""
        weights = [self.parameter(self.tensor(w.copy()), name=f"w{k}") for k, w in enumerate(WEIGHTS)]
        optimizer = getattr(self.nn, name)(weights, **options)
        found: list[Any] = []
        for step in range(4):
            optimizer(tuple([self.tensor(gradient(w.asnumpy(), step)) for w in weights]))
            found.append([w.asnumpy().copy() for w in weights])
        return found

    def called(self, module: Any, cls: str, args: Any, options: dict[str, Any], arrays: Any) -> Any:
        """The output of a class form or a layer."""
        wrapped = {k: self.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        made = getattr(module, cls)(*args, **wrapped)
        if cls.startswith("BatchNorm"):
            made.set_train()
        found = made(*[self.tensor(array) for array in arrays])
        return found[:3] if cls == "LSTM" else found  # without what its derivative reuses

    def measured(self, cls: str, args: Any, arrays: Any) -> Any:
        """A metric of one batch, or of two where classes are counted."""
        metric = getattr(self.train, cls)(*args)
        metric.clear()
        scores, labels = arrays
        metric.update(self.tensor(scores), self.tensor(labels))
        if args != ("multilabel",):
            metric.update(self.tensor(np.ascontiguousarray(scores[::-1])), self.tensor(labels))
        return metric.eval()

    def pictured(self, cls: str, options: Any) -> Any:
        """A transformed image."""
        if cls == "Resize" and len(options) == 2:
            options = (options[0], [self.vision.Inter.NEAREST, 0, 0, self.vision.Inter.CUBIC][options[1]])
        if cls in ("Rotate", "Affine", "RandomAffine") and len(options) > 1:
            at = {"Rotate": 1, "Affine": 4, "RandomAffine": 4}[cls]
            way = self.vision.Inter.BILINEAR if options[at] == 2 else self.vision.Inter.NEAREST
            options = (*options[:at], way, *options[at + 1 :])
        return getattr(self.vision, cls)(*options)(LARGER if cls == "Equalize" else PICTURE)

    def deformed(self) -> Any:
        """A convolution of two groups of channels, which are moved apart."""
        arrays = [self.tensor(one) if isinstance(one, np.ndarray) else one for one in DEFORMED]
        bias = self.tensor(np.arange(4, dtype=np.float32))
        return self.ops.deformable_conv2d(*arrays, bias, (1, 1, 1, 2), 2, 2)

    def similarity(self, cls: str) -> Any:
        """The similarity of images; MindSpore's layers run compiled only."""
        layer = self.nn.SSIM(2.0, 7, 1.0, 0.02, 0.05) if cls == "SSIM" else self.nn.MSSSIM(1.0, (0.3, 0.7), 5)
        set_mode = importlib.import_module(self.library).set_context
        if self.library == "mindspore":
            set_mode(mode=0)
        found = layer(*[self.tensor(one) for one in PHOTOGRAPHS])
        if self.library == "mindspore":
            set_mode(mode=1)
        return found

    def scaler(self) -> Any:
        """The scale after each step."""
        scaler = self.amp.DynamicLossScaler(8, 2, 2)
        return [scaler.adjust(self.tensor(not one)) and float(scaler.scale_value.asnumpy()) for one in OVERFLOWS]

    def manager(self) -> Any:
        """The scale after each step."""
        manager = self.amp.DynamicLossScaleManager(8, 2, 2)
        return [manager.update_loss_scale(one) or float(manager.get_loss_scale()) for one in OVERFLOWS]

    def update_cell(self) -> Any:
        """The scale after each step."""
        cell = self.nn.DynamicLossScaleUpdateCell(8, 2, 2)
        scale = self.parameter(self.tensor(np.array(8.0, np.float32)), name="s")
        found: list[float] = []
        for one in OVERFLOWS:
            cell(scale, self.tensor(one))
            found.append(float(scale.asnumpy()))
        return found


def plain(value: Any) -> Any:
    """Arrays as lists of numbers."""
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    array = np.asarray(value.asnumpy() if hasattr(value, "asnumpy") else value)
    return array.astype(float).round(7).tolist()


def recorded(case: Callable[[], Any]) -> Any:
    """A result; the first kernel of a process that calls back into Python may fail once."""
    try:
        return plain(case())
    except SystemError:
        return plain(case())


if __name__ == "__main__":
    FILE.write_text(json.dumps({name: recorded(case) for name, case in Cases("mindspore").all.items()}) + "\n")
