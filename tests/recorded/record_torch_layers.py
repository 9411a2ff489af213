"""Records what PyTorch's layers and losses give: run it where PyTorch is installed, from the folder above `tests`, with
`python -m tests.recorded.record_torch_layers`.

Out: torch_layers.json, a list of cases: nbgrad's layer and its arguments, how to make its inputs and Parameters
(`operand`), and PyTorch's outputs, gradients and second derivatives in float64. The gradient is that of
sum(weights * output) over all outputs, the second derivative that of sum(direction * gradient) over all gradients.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from .record_torch_neural import operand

FILE = Path(__file__).with_name("torch_layers.json")
CASES: list[dict[str, Any]] = []
NAMES = {"running_mean": "moving_mean", "running_var": "moving_variance"}
"""PyTorch's names of Parameters and nbgrad's, where they differ; normalisations have others too."""


def parameter_value(name: str, size: int) -> np.ndarray:
    """What a Parameter is set to, on both sides: like `operand`, but small."""
    values = operand("float", (size,), 17 + sum(map(ord, name))) * 0.4
    return values**2 + 0.5 if "var" in name else values


def case(
    layer: str,
    torch_layer: str,
    inputs: list[Any],
    *args: Any,
    call: str = "module(*inputs)",
    training: bool = False,
    options: dict[str, Any] | None = None,
    **kwargs: Any,
) -> None:
    """Add a case: nbgrad's layer with its arguments, PyTorch's, and the inputs as (kind, shape) each.

    `call` is PyTorch's expression, `options` are keywords of nbgrad's call.
    """
    CASES.append(
        {
            "layer": layer,
            "args": args,
            "kwargs": kwargs,
            "inputs": inputs,
            "options": options or {},
            "training": training,
            "torch": (torch_layer, call),
        }
    )


def products() -> None:
    for shape in ((4, 3), (3,), (2, 5, 3), (0, 3)):
        case("Dense", "nn.Linear(3, 2)", [("float", shape)], 3, 2)
    case("Dense", "nn.Linear(3, 2, bias=False)", [("float", (4, 3))], 3, 2, has_bias=False)
    tanh = "nn.Linear(3, 2)", [("float", (4, 3))]
    case("Dense", *tanh, 3, 2, activation="tanh", call="torch.tanh(module(*inputs))")
    for one_hot in (False, True):
        case("Embedding", "nn.Embedding(5, 3)", [("class5", (2, 4))], 5, 3, use_one_hot=one_hot)
    case("Flatten", "nn.Flatten()", [("float", (2, 3, 4))])
    case("Flatten", "nn.Flatten(0, 1)", [("float", (2, 3, 4))], 0, 1)


def activations() -> None:
    for name, torch_layer, kwargs in [
        ("ReLU", "nn.ReLU()", {}),
        ("ReLU6", "nn.ReLU6()", {}),
        ("LeakyReLU", "nn.LeakyReLU(0.2)", {}),
        ("ELU", "nn.ELU(1.5)", {"alpha": 1.5}),
        ("CELU", "nn.CELU(0.5)", {"alpha": 0.5}),
        ("SELU", "nn.SELU()", {}),
        ("GELU", "nn.GELU('tanh')", {}),
        ("GELU", "nn.GELU()", {"approximate": False}),
        ("SiLU", "nn.SiLU()", {}),
        ("Sigmoid", "nn.Sigmoid()", {}),
        ("LogSigmoid", "nn.LogSigmoid()", {}),
        ("Tanh", "nn.Tanh()", {}),
        ("Softmax", "nn.Softmax(-1)", {}),
        ("LogSoftmax", "nn.LogSoftmax(0)", {"axis": 0}),
        ("Softmin", "nn.Softmin(1)", {"axis": 1}),
        ("Softplus", "nn.Softplus(2.0, 5.0)", {"beta": 2.0, "threshold": 5.0}),
        ("Softsign", "nn.Softsign()", {}),
        ("HSwish", "nn.Hardswish()", {}),
        ("Hardtanh", "nn.Hardtanh(-0.5, 0.7)", {"min_val": -0.5, "max_val": 0.7}),
        ("HShrink", "nn.Hardshrink(0.4)", {"lambd": 0.4}),
        ("SoftShrink", "nn.Softshrink(0.4)", {"lambd": 0.4}),
        ("Mish", "nn.Mish()", {}),
        ("Tanhshrink", "nn.Tanhshrink()", {}),
        ("GLU", "nn.GLU(1)", {"axis": 1}),
    ]:
        case(name, torch_layer, [("float", (3, 4))], **kwargs)
    # PyTorch's own has 1 / 6 in single precision.
    case("HSigmoid", "nn.Identity()", [("float", (3, 4))], call="torch.clamp(inputs[0] / 6 + 0.5, 0, 1)")
    call = "inputs[0] * torch.sigmoid(1.702 * inputs[0])"
    case("FastGelu", "nn.Identity()", [("float", (3, 4))], call=call)
    case("PReLU", "nn.PReLU(3)", [("float", (2, 3, 4))], 3)
    case("PReLU", "nn.PReLU()", [("float", (2, 3, 4))])


def convolutions() -> None:
    x = [("float", (2, 4, 6, 5))]
    pad = {"pad_mode": "pad"}
    case("Conv2d", "nn.Conv2d(4, 2, 3, padding=1)", x, 4, 2, 3, padding=1, has_bias=True, **pad)
    case("Conv2d", "nn.Conv2d(4, 2, 3, padding='same', bias=False)", x, 4, 2, 3)
    case("Conv2d", "nn.Conv2d(4, 2, (2, 3), 2, bias=False)", x, 4, 2, (2, 3), 2, "valid")
    case("Conv2d", "nn.Conv2d(4, 6, 3, 1, (2, 1), 2, 2)", x, 4, 6, 3, 1, "pad", (2, 2, 1, 1), 2, 2, True)
    case("Conv2d", "nn.Conv2d(4, 4, 3, groups=4)", [("float", (4, 5, 5))], 4, 4, 3, 1, "valid", 0, 1, 4, True)
    # ceil(6 / 2) rows need one row of zeros, at the end; ceil(5 / 2) columns need two.
    call = "module(torch.nn.functional.pad(inputs[0], (1, 1, 0, 1)))"
    case("Conv2d", "nn.Conv2d(4, 2, 3, 2, bias=False)", x, 4, 2, 3, 2, call=call)
    case("Conv1d", "nn.Conv1d(4, 2, 3, padding='same')", [("float", (2, 4, 7))], 4, 2, 3, has_bias=True)
    case("Conv1d", "nn.Conv1d(4, 4, 2, 3, 1, 2, 2, False)", [("float", (4, 9))], 4, 4, 2, 3, "pad", 1, 2, 2)
    x = [("float", (2, 4, 3, 4))]
    case("Conv2dTranspose", "nn.ConvTranspose2d(4, 2, 3)", x, 4, 2, 3, pad_mode="valid", has_bias=True)
    case("Conv2dTranspose", "nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, 2)", x, 4, 6, 3, 2, "pad", 1, 1, 1, 2, has_bias=True)
    # Twice the size: the adjoint of a convolution with one row and column of padding, at the end.
    call = "module(*inputs)[..., :6, :8]"
    case("Conv2dTranspose", "nn.ConvTranspose2d(4, 2, 3, 2, bias=False)", x, 4, 2, 3, 2, call=call)


def pools() -> None:
    x = [("float", (2, 3, 7, 6))]
    case("MaxPool2d", "nn.MaxPool2d(2)", x, 2, 2)
    case("MaxPool2d", "nn.MaxPool2d(3, 2, 1, ceil_mode=True)", x, 3, 2, "pad", 1, ceil_mode=True)
    case("MaxPool2d", "nn.MaxPool2d((2, 3), 1, 0, 2)", x, (2, 3), dilation=2)
    # ceil(7 / 2) rows need one more row, ceil(6 / 2) columns none.
    call = "module(torch.nn.functional.pad(inputs[0], (0, 0, 0, 1), value=-1e9))"
    case("MaxPool2d", "nn.MaxPool2d(2)", x, 2, 2, "same", call=call)
    case("AvgPool2d", "nn.AvgPool2d(2, 1)", x, 2)
    odd = [("float", (2, 3, 7, 5))]
    case("AvgPool2d", "nn.AvgPool2d(3, 2, 1, count_include_pad=False)", odd, 3, 2, "same")
    case("AvgPool2d", "nn.AvgPool2d(3, 2, 1, True)", x, 3, 2, "pad", 1, True)
    case("AvgPool2d", "nn.AvgPool2d(3, 2, divisor_override=5)", x, 3, 2, divisor_override=5)
    line = [("float", (2, 3, 7))]
    case("MaxPool1d", "nn.MaxPool1d(3, 2, 1)", line, 3, 2, "pad", 1)
    case("MaxPool1d", "nn.MaxPool1d(3, 2, 1)", line, 3, 2, "same")
    case("AvgPool1d", "nn.AvgPool1d(3, 2, 1, False, False)", line, 3, 2, "same")
    case("AvgPool1d", "nn.AvgPool1d(3, 2)", line, 3, 2)
    case("AdaptiveAvgPool2d", "nn.AdaptiveAvgPool2d((3, None))", x, (3, None))
    case("AdaptiveMaxPool2d", "nn.AdaptiveMaxPool2d(4)", x, 4)
    case("AdaptiveAvgPool1d", "nn.AdaptiveAvgPool1d(4)", line, 4)


def normalisations() -> None:
    for layer, shape in (("BatchNorm1d", (5, 3)), ("BatchNorm1d", (3, 3, 4)), ("BatchNorm2d", (2, 3, 2, 3))):
        for training in (False, True):
            # PyTorch's momentum is 1 minus MindSpore's.
            case(layer, f"nn.{layer}(3, 1e-3, 0.3)", [("float", shape)], 3, 1e-3, 0.7, training=training)
    case("BatchNorm1d", "nn.BatchNorm1d(3, 1e-5, 0.1)", [("float", (5, 3))], 3, use_batch_statistics=True)
    CASES[-1]["torch_training"] = True
    case("LayerNorm", "nn.LayerNorm(4, 1e-7)", [("float", (2, 3, 4))], (4,))
    axes = {"begin_norm_axis": -2, "begin_params_axis": -2}
    case("LayerNorm", "nn.LayerNorm((3, 4), 1e-3)", [("float", (2, 3, 4))], (3, 4), epsilon=1e-3, **axes)
    case("GroupNorm", "nn.GroupNorm(2, 4)", [("float", (2, 4, 3))], 2, 4)
    case("RMSNorm", "nn.RMSNorm(4, 1e-6)", [("float", (2, 3, 4))], 4)


def recurrences() -> None:
    t, n, i, h = 3, 2, 3, 2
    x = ("float", (t, n, i))

    def hidden(count: int) -> tuple[str, tuple[int, ...]]:
        return "float", (count, n, h)

    for name in ("RNN", "GRU"):
        case(name, f"nn.{name}({i}, {h})", [x], i, h)
        case(name, f"nn.{name}({i}, {h}, 2, bidirectional=True)", [x, hidden(4)], i, h, 2, bidirectional=True)
        case(name, f"nn.{name}({i}, {h}, bias=False, batch_first=True)", [x], i, h, has_bias=False, batch_first=True)
    case("RNN", f"nn.RNN({i}, {h}, nonlinearity='relu')", [x, hidden(1)], i, h, nonlinearity="relu")
    case("LSTM", f"nn.LSTM({i}, {h})", [x], i, h)
    state = "module(inputs[0], (inputs[1], inputs[2]))"
    both = [x, hidden(2), hidden(2)]
    case("LSTM", f"nn.LSTM({i}, {h}, 2, batch_first=True)", [x], i, h, 2, batch_first=True)
    case("LSTM", f"nn.LSTM({i}, {h}, bidirectional=True)", both, i, h, bidirectional=True, call=state)
    # Sequences of different lengths: outputs after the end are zero.
    packed = (
        "(lambda p, lengths: [torch.nn.utils.rnn.pad_packed_sequence(p[0], total_length={t})[0], p[1]])"
        "(module(torch.nn.utils.rnn.pack_padded_sequence(inputs[0], [{a}, {b}], enforce_sorted=False){more}), 0)"
    )
    for lengths in ((3, 1), (2, 3)):
        call = packed.format(t=t, a=lengths[0], b=lengths[1], more=", inputs[1]")
        options = {"seq_length": lengths}
        torch_layer = f"nn.GRU({i}, {h}, bidirectional=True)"
        case("GRU", torch_layer, [x, hidden(2)], i, h, bidirectional=True, call=call, options=options)
        call = packed.format(t=t, a=lengths[0], b=lengths[1], more="")
        case("LSTM", f"nn.LSTM({i}, {h}, 2)", [x], i, h, 2, call=call, options=options)
    for shape, state_shape in (((n, i), (n, h)), ((i,), (h,))):
        inputs = [("float", shape), ("float", state_shape)]
        case("RNNCell", f"nn.RNNCell({i}, {h})", inputs, i, h)
        case("RNNCell", f"nn.RNNCell({i}, {h}, False, 'relu')", inputs, i, h, False, "relu")
        case("GRUCell", f"nn.GRUCell({i}, {h})", inputs, i, h)
        case("LSTMCell", f"nn.LSTMCell({i}, {h})", [*inputs, inputs[1]], i, h, call=state)
        case("LSTMCell", f"nn.LSTMCell({i}, {h})", inputs[:1], i, h)


def attentions() -> None:
    q, k = ("float", (3, 2, 4)), ("float", (5, 2, 4))
    case("MultiheadAttention", "nn.MultiheadAttention(4, 2)", [q, k, k], 4, 2)
    other = [q, ("float", (5, 2, 3)), ("float", (5, 2, 2))]
    case("MultiheadAttention", "nn.MultiheadAttention(4, 2, kdim=3, vdim=2)", other, 4, 2, kdim=3, vdim=2)
    first = [("float", (2, 3, 4))] * 3
    heads = {"average_attn_weights": False}
    call = "module(*inputs, average_attn_weights=False)"
    torch_layer = "nn.MultiheadAttention(4, 2, bias=False, batch_first=True)"
    more = {"has_bias": False, "batch_first": True}
    case("MultiheadAttention", torch_layer, first, 4, 2, call=call, options=heads, **more)
    case("MultiheadAttention", "nn.MultiheadAttention(4, 1)", [("float", (3, 4))] * 3, 4, 1)
    padding = [[False, False, True, False, True], [False, True, False, False, False]]
    above = [[False, True, True, True, True], [False, False, True, True, True], [False, False, False, True, True]]
    call = f"module(*inputs, key_padding_mask=torch.tensor({padding}), attn_mask=torch.tensor({above}))"
    options = {"key_padding_mask": padding, "attn_mask": above}
    case("MultiheadAttention", "nn.MultiheadAttention(4, 2)", [q, k, k], 4, 2, call=call, options=options)
    scores = operand("float", (4, 3, 5), 3).tolist()
    call = f"module(*inputs, need_weights=False, attn_mask=torch.tensor({scores}, dtype=torch.float64))[:1]"
    options = {"need_weights": False, "attn_mask": scores}
    case("MultiheadAttention", "nn.MultiheadAttention(4, 2)", [q, k, k], 4, 2, call=call, options=options)


def transformers() -> None:
    """Blocks, stacks and the whole, after the layers of which they are made; masks are booleans and floats."""
    long, short = ("float", (5, 2, 4)), ("float", (3, 2, 4))
    padding = [[False, False, True, False, True], [False, True, False, False, False]]
    above = [[0.0, -1.5, -2.0], [0.3, 0.0, -0.7], [0.0, 0.2, 0.0]]
    sizes = {"dim_feedforward": 6}
    padded = {"src_key_padding_mask": padding}
    masked = {"tgt_mask": above, "memory_key_padding_mask": padding}
    causal = f"tgt_mask=torch.tensor({above}, dtype=torch.float64)"
    shown = f"{causal}, memory_key_padding_mask=torch.tensor({padding})"
    for options in ({}, {"norm_first": True}, {"activation": "gelu"}):
        text = "".join(f", {name}={value!r}" for name, value in options.items())
        layer = f"nn.TransformerEncoderLayer(4, 2, 6{text})"
        call = f"module(*inputs, src_key_padding_mask=torch.tensor({padding}))"
        case("TransformerEncoderLayer", layer, [long], 4, 2, call=call, options=padded, **sizes, **options)
        layer, call = f"nn.TransformerDecoderLayer(4, 2, 6{text})", f"module(*inputs, {shown})"
        case("TransformerDecoderLayer", layer, [short, long], 4, 2, call=call, options=masked, **sizes, **options)
    first = [("float", (2, 5, 4))]
    layer = "nn.TransformerEncoderLayer(4, 1, 6, batch_first=True, layer_norm_eps=0.1)"
    case("TransformerEncoderLayer", layer, first, 4, 1, batch_first=True, layer_norm_eps=0.1, **sizes)
    case("Transformer", "nn.Transformer(4, 2, 1, 2, 6)", [long, short], 4, 2, 1, 2, **sizes)
    call, options = f"module(*inputs, {causal})", {"tgt_mask": above}
    case("Transformer", "nn.Transformer(4, 2, 2, 1, 6)", [long, short], 4, 2, 2, 1, call=call, options=options, **sizes)


def losses() -> None:
    pair = [("float", (3, 4)), ("positive", (3, 4))]
    weight = [0.2, 1.5, 0.7]
    tensor = f"torch.tensor({weight}, dtype=torch.float64)"
    for reduction in ("mean", "sum", "none"):
        shown = {"reduction": reduction}
        text = f"reduction='{reduction}'"
        case("MSELoss", f"nn.MSELoss({text})", pair, **shown)
        case("L1Loss", f"nn.L1Loss({text})", pair, **shown)
        case("SmoothL1Loss", f"nn.SmoothL1Loss(beta=1.3, {text})", pair, 1.3, **shown)
        case("HuberLoss", f"nn.HuberLoss(delta=0.6, {text})", pair, delta=0.6, **shown)
        inputs = [("float", (4, 3)), ("class3", (4,))]
        for smoothing in (0.0, 0.2):
            more = {"weight": weight, "ignore_index": 1, "label_smoothing": smoothing}
            torch_layer = f"nn.CrossEntropyLoss({tensor}, ignore_index=1, label_smoothing={smoothing}, {text})"
            case("CrossEntropyLoss", torch_layer, inputs, **more, **shown)
        rows = [("float", (4, 3)), ("fixed probability", (4, 3))]
        case("CrossEntropyLoss", f"nn.CrossEntropyLoss({text})", rows, **shown)
        case("SoftmaxCrossEntropyWithLogits", f"nn.CrossEntropyLoss({text})", rows, **shown)
        case("SoftmaxCrossEntropyWithLogits", f"nn.CrossEntropyLoss({text})", inputs, True, **shown)
        inputs = [("log", (2, 3, 4)), ("class3", (2, 4))]
        torch_layer = f"nn.NLLLoss({tensor}, ignore_index=2, {text})"
        case("NLLLoss", torch_layer, inputs, weight=weight, ignore_index=2, **shown)
        chances = [("probability", (4, 3)), ("fixed probability", (4, 3))]
        # PyTorch's own derivative adds a small number to the denominator.
        call = f"{tensor} * -(inputs[1] * torch.log(inputs[0]) + (1 - inputs[1]) * torch.log1p(-inputs[0]))"
        call = call if reduction == "none" else f"({call}).{reduction}()"
        case("BCELoss", "nn.BCELoss()", chances, call=call, weight=weight, **shown)
        torch_layer = f"nn.BCEWithLogitsLoss({tensor}, pos_weight=2 * {tensor}, {text})"
        twice = [2 * w for w in weight]
        case("BCEWithLogitsLoss", torch_layer, rows, weight=weight, pos_weight=twice, **shown)
        vectors = [("float", (4, 3)), ("positive", (4, 3)), ("sign", (4,))]
        case("CosineEmbeddingLoss", f"nn.CosineEmbeddingLoss(0.1, {text})", vectors, 0.1, **shown)
        numbers = [("float", (4,)), ("positive", (4,)), ("sign", (4,))]
        case("MarginRankingLoss", f"nn.MarginRankingLoss(0.5, {text})", numbers, 0.5, **shown)
    for reduction in ("mean", "sum", "none", "batchmean"):
        inputs = [("log", (3, 4)), ("fixed probability", (3, 4))]
        case("KLDivLoss", f"nn.KLDivLoss(reduction='{reduction}')", inputs, reduction=reduction)


def made(entry: dict[str, Any]) -> list[np.ndarray]:
    """The inputs of a case."""
    return [operand(kind, tuple(shape), seed) for seed, (kind, shape) in enumerate(entry["inputs"])]


def differentiated(entry: dict[str, Any]) -> list[int]:
    """The positions of the inputs that gradients are taken with respect to."""
    fixed = ("fixed", "class", "sign")
    return [at for at, (kind, _) in enumerate(entry["inputs"]) if not kind.startswith(fixed)]


def output_weights(outputs: list[Any]) -> list[np.ndarray]:
    """What the outputs are multiplied by before they are summed and differentiated."""
    return [operand("float", tuple(value.shape), 11 + at) for at, value in enumerate(outputs)]


def directions(gradients: list[Any]) -> list[np.ndarray]:
    """What the gradients are multiplied by before they are summed and differentiated once more."""
    return [operand("float", tuple(g.shape), 31 + at) for at, g in enumerate(gradients)]


def leaves(value: Any) -> list[Any]:
    """The arrays in nested tuples and lists, without None."""
    if isinstance(value, tuple | list):
        return [leaf for item in value for leaf in leaves(item)]
    return [] if value is None else [value]


def record() -> None:
    """Run all cases in PyTorch and write the file."""
    import torch
    from torch import nn

    def short(values: Any) -> list[float]:
        return [float(f"{v:.13g}") for v in values.detach().ravel().tolist()]

    (
        products(),
        activations(),
        convolutions(),
        pools(),
        normalisations(),
        recurrences(),
        attentions(),
        transformers(),
        losses(),
    )
    for entry in CASES:
        torch_layer, call = entry.pop("torch")
        module = eval(torch_layer, {"nn": nn, "torch": torch}).double().train(entry["training"])
        if entry.pop("torch_training", False):
            module.train()
        affine = {"weight": "gamma", "bias": "beta"} if "Norm" in entry["layer"] else {}
        if "Transformer" in entry["layer"]:
            norms = [name for name, part in module.named_modules() if isinstance(part, nn.LayerNorm)]
            affine = {f"{n}.{old}": f"{n}.{new}" for n in norms for old, new in (("weight", "gamma"), ("bias", "beta"))}
        if entry["layer"] in ("PReLU", "Embedding"):
            affine = {"weight": {"PReLU": "w", "Embedding": "embedding_table"}[entry["layer"]]}
        names = {name: affine.get(name, NAMES.get(name, name)) for name in module.state_dict()}
        names.pop("num_batches_tracked", None)
        for name in [name for name in names if "Loss" in entry["layer"]]:
            names.pop(name)
        with torch.no_grad():
            for name, own in names.items():
                held = module.state_dict()[name]
                held.copy_(torch.tensor(parameter_value(own, held.numel())).reshape(held.shape))
        inputs = [torch.tensor(value) for value in made(entry)]
        floats = [inputs[at].requires_grad_() for at in differentiated(entry)]
        trained = {names[name]: parameter for name, parameter in module.named_parameters()}
        outputs = leaves(eval(call, {"torch": torch, "module": module, "inputs": inputs}))
        entry["parameters"] = list(names.values())
        entry["values"] = [short(value) for value in outputs]
        entry["shapes"] = [list(value.shape) for value in outputs]
        wrt = [*floats, *trained.values()]
        entry["trained"] = list(trained)
        total = sum((torch.tensor(w) * v).sum() for w, v in zip(output_weights(outputs), outputs, strict=True))
        first = torch.autograd.grad(total, wrt, create_graph=True, materialize_grads=True)
        entry["gradients"] = [short(g) for g in first]
        total = sum((torch.tensor(d) * g).sum() for d, g in zip(directions(list(first)), first, strict=True))
        if total.requires_grad:
            try:
                second = torch.autograd.grad(total, wrt, materialize_grads=True)
                entry["second"] = [short(g) for g in second]
            except (RuntimeError, NotImplementedError):
                pass  # PyTorch has no such derivative.
        if "Batch" in entry["layer"]:
            after = {names[name]: module.state_dict()[name] for name in ("running_mean", "running_var")}
            entry["after"] = {name: short(value) for name, value in after.items()}
    with FILE.open("w") as file:
        file.write("[\n" + ",\n".join(json.dumps(entry) for entry in CASES) + "\n]\n")


if __name__ == "__main__":
    record()
