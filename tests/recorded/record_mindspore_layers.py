"""Records what MindSpore computes for layers, losses, optimizers and functions: `python record_mindspore_layers.py`.

In: an interpreter with MindSpore (2.10 on the CPU was used). Out: mindspore_layers.json beside this file. The programs
are written for the interface that MindSpore and nbgrad share; tests/test_mindspore_layers.py runs them on nbgrad.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np


def programs(ms: Any, nn: Any, ops: Any) -> dict[str, Callable[[], Any]]:
    """Every program by name; each gives nested lists and tuples of Tensors, shapes and names."""
    rng = np.random.default_rng(0)

    def data(*shape: int) -> Any:
        return rng.standard_normal(shape).astype(np.float32)

    tensor = ms.Tensor
    rows, series, images = data(4, 6), data(3, 6, 8), data(2, 4, 7, 9)
    other, steps = data(4, 6), series.transpose(0, 2, 1).copy()
    found: dict[str, Callable[[], Any]] = {}

    def filled(net: Any) -> Any:
        values = np.random.default_rng(1)
        for parameter in net.get_parameters():
            if parameter.name not in ("mean", "variance"):
                parameter.set_data(tensor(values.standard_normal(parameter.shape).astype(np.float32)))
        return net

    def layer(name: str, make: Callable[[], Any], *inputs: Any, train: bool = False) -> None:
        def run() -> Any:
            net = filled(make()).set_train(train)
            given = [tensor(value) for value in inputs]
            results = [[(p.name, list(p.shape)) for p in net.get_parameters()], net(*given)]
            results += [p.value() for p in net.get_parameters() if p.name in ("mean", "variance")]

            def loss(*arguments: Any) -> Any:
                output = net(*arguments)
                output = output[0] if isinstance(output, tuple) else output
                return (output * output).sum()

            if inputs[0].dtype == np.float32:
                weights = net.trainable_params()
                results.append(ms.grad(loss, 0, weights)(*given) if weights else ms.grad(loss)(*given))
            return results

        found[name] = run

    layer("Dense", lambda: nn.Dense(6, 3), rows)
    layer("Dense with activation", lambda: nn.Dense(6, 3, activation="relu"), steps)
    for mode in ("same", "valid"):
        layer(f"Conv2d {mode}", lambda mode=mode: nn.Conv2d(4, 6, 3, 2, mode, has_bias=True), images)
        layer(f"Conv2dTranspose {mode}", lambda mode=mode: nn.Conv2dTranspose(4, 6, 3, 2, mode, has_bias=True), images)
        layer(f"MaxPool2d {mode}", lambda mode=mode: nn.MaxPool2d(3, 2, pad_mode=mode), images)
        layer(f"AvgPool2d {mode}", lambda mode=mode: nn.AvgPool2d(3, 2, pad_mode=mode), images)
    layer("Conv2d pad", lambda: nn.Conv2d(4, 6, 3, pad_mode="pad", padding=(1, 2, 0, 1), dilation=2, group=2), images)
    layer("Conv1d", lambda: nn.Conv1d(6, 5, 3, has_bias=True), series)
    layer("AdaptiveAvgPool2d", lambda: nn.AdaptiveAvgPool2d((3, 4)), images)
    layer("BatchNorm1d in training", lambda: nn.BatchNorm1d(6), rows, train=True)
    layer("BatchNorm1d", lambda: nn.BatchNorm1d(6), rows)
    layer("BatchNorm2d in training", lambda: nn.BatchNorm2d(4, momentum=0.8), images, train=True)
    layer("LayerNorm", lambda: nn.LayerNorm((8,)), series)
    layer("LayerNorm of two axes", lambda: nn.LayerNorm((6, 8), 1, 1), series)
    layer("GroupNorm", lambda: nn.GroupNorm(2, 4), images)
    layer("Embedding", lambda: nn.Embedding(7, 3), np.array([[1, 2], [6, 0]], np.int32))
    for name in (
        "ReLU ReLU6 LeakyReLU ELU CELU GELU FastGelu SiLU Sigmoid LogSigmoid Softmax LogSoftmax Softmin Softsign "
        "HSigmoid HSwish Hardtanh HShrink SoftShrink Tanhshrink PReLU"
    ).split():
        layer(name, getattr(nn, name), 3 * rows)
    layer("LSTM", lambda: nn.LSTM(6, 2, num_layers=2, bidirectional=True, batch_first=True), steps)
    layer("MultiheadAttention", lambda: nn.MultiheadAttention(8, 2, batch_first=True), series, series, series)

    positive = np.abs(other) + np.float32(0.1)
    for name in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "KLDivLoss"):

        def loss(name: str = name) -> Any:
            criterion = getattr(nn, name)()
            gradient = ms.grad(lambda p: criterion(p, tensor(positive)).sum())
            return criterion(tensor(rows), tensor(positive)), gradient(tensor(rows))

        found[name] = loss
    labels, classes = (other > 0).astype(np.float32), np.array([0, 5, 2, 3], np.int32)
    signs = np.array([1, -1, 1, -1], np.int32)
    found["BCELoss"] = lambda: nn.BCELoss(reduction="mean")(tensor(1 / (1 + np.exp(-rows))), tensor(labels))
    found["BCEWithLogitsLoss"] = lambda: nn.BCEWithLogitsLoss()(tensor(rows), tensor(labels))
    found["CrossEntropyLoss"] = lambda: [
        nn.CrossEntropyLoss(**options)(tensor(rows), tensor(classes))
        for options in ({}, {"label_smoothing": 0.1}, {"reduction": "none", "ignore_index": 2})
    ]
    found["NLLLoss"] = lambda: nn.NLLLoss()(ops.log_softmax(tensor(rows)), tensor(classes))
    found["SoftmaxCrossEntropyWithLogits"] = lambda: nn.SoftmaxCrossEntropyWithLogits(sparse=True)(
        tensor(rows), tensor(classes)
    )
    found["CosineEmbeddingLoss"] = lambda: nn.CosineEmbeddingLoss()(tensor(rows), tensor(other), tensor(signs))

    def optimizer(name: str, make: Callable[[Any], Any]) -> None:
        def run() -> Any:
            w = ms.Parameter(tensor(np.array([1.0, -2.0, 3.0], np.float32)), name="w")
            b = ms.Parameter(tensor(np.array([[0.5]], np.float32)), name="bias")
            update = make([w, b])
            results = []
            for _ in range(4):
                update(ms.grad(lambda: ((w * w).sum() * b * b).sum(), None, update.parameters)())
                results += [w.value() + 0, b.value() + 0]
            return results

        found[name] = run

    optimizer("SGD", lambda p: nn.SGD(p, 0.01, momentum=0.9, weight_decay=0.1, nesterov=True))
    optimizer("Momentum", lambda p: nn.Momentum(p, 0.01, 0.9, weight_decay=0.1))
    optimizer("Adam", lambda p: nn.Adam(p, 0.1, weight_decay=0.1))
    optimizer("Adam with Nesterov", lambda p: nn.Adam(p, 0.1, use_nesterov=True))
    optimizer("Adam with AMSGrad", lambda p: nn.Adam(p, 0.1, use_amsgrad=True))
    optimizer("AdamWeightDecay", lambda p: nn.AdamWeightDecay(p, 0.1, weight_decay=0.1))
    optimizer("RMSProp", lambda p: nn.RMSProp(p, 0.01, momentum=0.5))
    optimizer("RMSProp centered", lambda p: nn.RMSProp(p, 0.01, centered=True, decay=0.9))
    optimizer("Adagrad", lambda p: nn.Adagrad(p, learning_rate=0.1, weight_decay=0.1))
    optimizer("CosineDecayLR", lambda p: nn.SGD(p, nn.CosineDecayLR(0.001, 0.1, 3)))
    optimizer("ExponentialDecayLR", lambda p: nn.SGD(p, nn.ExponentialDecayLR(0.1, 0.9, 2, True)))
    optimizer("WarmUpLR", lambda p: nn.SGD(p, nn.WarmUpLR(0.1, 2)))
    optimizer("PolynomialDecayLR", lambda p: nn.SGD(p, nn.PolynomialDecayLR(0.1, 0.01, 3, 0.5)))
    optimizer("InverseDecayLR", lambda p: nn.SGD(p, nn.InverseDecayLR(0.1, 0.5, 2)))
    optimizer("a list of rates", lambda p: nn.SGD(p, [0.1, 0.01, 0.001, 0.1]))

    x, y, z = tensor(rows), tensor(series), tensor(images)
    pair, one = tensor(np.array([[0, 1], [2, 3]], np.int32)), tensor(np.array([1, 0], np.int32))
    divisor = tensor(np.float32(0.7))
    found["clipping"] = lambda: [ops.clip_by_norm(x, 1.0), ops.clip_by_global_norm((x, y), 1.0)]
    found["unique"] = lambda: ops.unique(tensor(np.array([3, 1, 3, 2], np.int32)))
    found["sorting"] = lambda: [ops.topk(x, 3), ops.sort(x, descending=True)]
    found["extremes"] = lambda: [ops.max(x), ops.max(x, 1), ops.min(x, axis=0, keepdims=True), ops.median(x, 1)]
    found["reductions"] = lambda: [
        *[ops.std(x), ops.var(x, 1), ops.norm(x), ops.norm(x, dim=1), ops.logsumexp(x, 1)],
        *[ops.prod(x, 1), ops.cumprod(x, 0)],
    ]
    found["shapes"] = lambda: [
        *[ops.diag(x[0]), ops.diag(x[:, :4]), ops.flatten(y), ops.flatten(y, order="F"), ops.flatten(y, start_dim=0)],
        *[ops.split(x, 2, 1), ops.chunk(x, 4, 1), ops.unstack(x)],
    ]
    found["positions"] = lambda: [
        *[ops.gather(x, one, 1), ops.gather_nd(x, pair), ops.gather_elements(x, 1, pair.astype(ms.int64))],
        *[ops.one_hot(one, 4, 1.0, 0.0, -1), ops.index_add(x + 0, one, x[:2], 0), ops.masked_select(x, x > 0)],
        *[ops.nonzero(x > 1), ops.index_select(x, 1, one)],
        ops.tensor_scatter_add(x, pair, tensor(np.array([1.0, 2.0], np.float32))),
    ]
    found["remainders"] = lambda: [
        *[ops.floor_mod(x, divisor), ops.fmod(x, divisor), ops.remainder(x, divisor), ops.Mod()(x, divisor)],
        *[ops.div(x, x + 9, rounding_mode="floor"), ops.round(x * 3)],
    ]
    found["matrices"] = lambda: [ops.inverse(x[:4, :4]), ops.det(x[:4, :4]), ops.cholesky(x @ x.T + 3 * ops.eye(4))]
    found["interpolate"] = lambda: [
        ops.interpolate(z, size=(5, 6), mode="nearest"),
        ops.interpolate(z, size=(14, 18), mode="bilinear", align_corners=True),
    ]
    found["pad"] = lambda: [
        ops.pad(z, [1, 2, 0, 1]),
        ops.pad(z, [1, 2, 1, 1], mode="reflect"),
        ops.pad(z, [1, 2, 1, 1], mode="replicate"),
    ]
    found["class forms"] = lambda: [
        *[ops.ReduceSum(True)(x, 1), ops.Softmax()(x), ops.ArgMaxWithValue(1)(x), ops.L2Normalize(1)(x)],
        *[ops.BatchMatMul(transpose_b=True)(y, y), ops.GeLU()(x), ops.TopK()(x, 2), ops.Elu()(x), ops.HShrink()(x)],
        *[ops.L2Loss()(x), ops.OneHot()(one, 3, tensor(np.float32(1)), tensor(np.float32(0)))],
    ]
    return found


def plain(value: Any) -> Any:
    """Results as JSON holds them: an array is a dict of dtype, shape and values."""
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, str | int):
        return value
    array = np.asarray(value.asnumpy())
    values = [float(f"{v:.7g}") if array.dtype.kind == "f" else v for v in array.ravel().tolist()]
    return {"dtype": array.dtype.name, "shape": list(array.shape), "values": values}


if __name__ == "__main__":
    import mindspore
    import mindspore.nn
    import mindspore.ops

    recorded = {name: plain(run()) for name, run in programs(mindspore, mindspore.nn, mindspore.ops).items()}
    lines = [f"{json.dumps(name)}: {json.dumps(value, separators=(',', ':'))}" for name, value in recorded.items()]
    Path(__file__).with_name("mindspore_layers.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
