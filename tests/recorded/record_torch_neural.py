"""Records what PyTorch gives for the functions of neural networks: run it where PyTorch is installed.

Out: torch_neural.json, a list of cases: nbgrad's function, how to make its arrays (`operand`), its other arguments, and
PyTorch's value, gradients and second derivatives in float64. The tests import `operand` from here and never PyTorch.
The gradient is that of sum(weights * value), the second derivative that of sum(direction * gradient).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("torch_neural.json")


def operand(kind: str, shape: Any, seed: int) -> np.ndarray:
    """An array that can be made again anywhere: no two of its elements are equal, if it has at most 2003.

    A "fixed" one is not differentiated.
    """
    kind = kind.removeprefix("fixed ")
    size = int(np.prod(shape))
    spread = ((np.arange(size) * 1277 + seed * 7919 + 345) % 2003 - 1001.5) / 700
    if kind == "float":
        return spread.reshape(shape)
    if kind == "probability":
        return (0.5 + spread / 3.2).reshape(shape)
    if kind == "positive":
        return (2.0 + spread).reshape(shape)
    if kind == "log":
        return (spread - 2.0).reshape(shape)
    if kind == "sign":
        return np.where(spread > 0, 1.0, -1.0).reshape(shape)
    if kind == "mask":
        return (spread > -0.7).reshape(shape)
    assert kind.startswith("class"), kind
    return ((np.arange(size) * 5 + seed) % int(kind[5:])).reshape(shape)


KINKS = [-1000.0, -50.0, -6.0, -3.5, -3.0, -1.0, -0.5, -0.2, 0.0, 0.2, 0.5, 1.0, 3.0, 3.5, 6.0, 19.0, 21.0, 1000.0]
CASES: list[dict[str, Any]] = []


def case(function: str, torch_call: str, arrays: dict[str, Any], kwargs: dict[str, Any] | None = None) -> None:
    """Add a case: per argument (kind, shape) or a list of values, and PyTorch's expression."""
    CASES.append({"function": function, "torch": torch_call, "arrays": dict(arrays), "kwargs": kwargs or {}})


def convolutions() -> None:
    for x, w, stride, padding, dilation, groups, bias in [
        ((2, 3, 5, 6), (4, 3, 3, 3), 1, 0, 1, 1, True),
        ((2, 2, 7, 5), (2, 2, 3, 2), (2, 1), (1, 0), 1, 1, False),
        ((1, 4, 6, 6), (4, 2, 3, 3), 1, 1, 1, 2, True),
        ((2, 3, 6, 5), (6, 1, 3, 3), 2, 1, 1, 3, False),
        ((1, 2, 9, 8), (3, 2, 2, 3), (1, 2), (2, 1), (3, 2), 1, True),
        ((3, 4, 3, 4), (2, 4, 1, 1), 1, 0, 1, 1, True),
        ((2, 4, 4, 4), (4, 2, 1, 1), 1, 0, 1, 2, False),
        ((2, 3, 5, 5), (2, 3, 1, 1), 2, 0, 1, 1, False),
        ((1, 1, 3, 3), (1, 1, 3, 3), 1, 0, 1, 1, False),
        ((3, 5, 6), (2, 3, 2, 2), 1, 1, 1, 1, True),
    ]:
        arrays = {"input": ("float", x), "weight": ("float", w), **({"bias": ("float", w[:1])} if bias else {})}
        options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        call = f"F.conv2d(**arrays, stride={stride}, padding={padding}, dilation={dilation}, groups={groups})"
        case("conv2d", call, arrays, {**options, "pad_mode": "pad"})
    for x, w in [((1, 2, 5, 6), (2, 2, 3, 3)), ((1, 1, 6, 5), (1, 1, 2, 4))]:
        arrays = {"input": ("float", x), "weight": ("float", w)}
        case("conv2d", "F.conv2d(**arrays, padding='same')", arrays, {"pad_mode": "same"})
    arrays = {"input": ("float", (1, 1, 6, 7)), "weight": ("float", (1, 1, 3, 3))}
    # ceil(6 / 2) rows need one row of zeros, at the end; ceil(7 / 2) columns need two.
    case("conv2d", "F.conv2d(F.pad(input, (1, 1, 0, 1)), weight, stride=2)", arrays, {"pad_mode": "same", "stride": 2})
    call = "F.conv2d(F.pad(input, (3, 0, 1, 2)), weight)"
    case("conv2d", call, arrays, {"pad_mode": "pad", "padding": (1, 2, 3, 0)})
    for x, w, stride, padding, dilation, groups in [
        ((2, 3, 9), (4, 3, 3), 1, 0, 1, 1),
        ((2, 4, 8), (4, 1, 2), 3, 1, 2, 4),
        ((3, 7), (2, 3, 4), 2, 2, 1, 1),
    ]:
        arrays = {"input": ("float", x), "weight": ("float", w), "bias": ("float", w[:1])}
        call = f"F.conv1d(**arrays, stride={stride}, padding={padding}, dilation={dilation}, groups={groups})"
        options = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups, "pad_mode": "pad"}
        case("conv1d", call, arrays, options)
    for x, w, stride, padding, extra, dilation, groups in [
        ((2, 3, 3, 4), (3, 2, 3, 3), 1, 0, 0, 1, 1),
        ((1, 2, 4, 3), (2, 3, 3, 2), 2, 1, 1, 1, 1),
        ((2, 4, 3, 3), (4, 2, 2, 3), (2, 3), (0, 1), (1, 2), 1, 2),
        ((1, 2, 3, 4), (2, 1, 3, 3), (1, 2), (2, 1), (0, 1), (2, 1), 1),
        ((2, 3, 4, 4), (3, 2, 1, 1), 1, 0, 0, 1, 1),
        ((2, 2, 3), (2, 1, 2, 2), 3, 0, 2, 1, 1),
    ]:
        arrays = {"input": ("float", x), "weight": ("float", w), "bias": ("float", (w[1] * groups,))}
        options = {"stride": stride, "padding": padding, "output_padding": extra, "dilation": dilation}
        options["groups"] = groups
        shown = ", ".join(f"{name}={value}" for name, value in options.items())
        case("conv_transpose2d", f"F.conv_transpose2d(**arrays, {shown})", arrays, options)
    for shape, kernel, dilation, padding, stride in [
        ((2, 2, 5, 6), (2, 3), 1, 0, 1),
        ((1, 3, 7, 6), 2, (2, 1), (1, 0), (1, 2)),
        ((2, 4, 5), 3, 1, 1, 2),
    ]:
        options = {"kernel_size": kernel, "dilation": dilation, "padding": padding, "stride": stride}
        case(
            "unfold",
            f"F.unfold(input, {kernel}, {dilation}, {padding}, {stride})",
            {"input": ("float", shape)},
            options,
        )
    for shape, size, kernel, padding, stride in [((2, 8, 12), (4, 5), 2, 0, 1), ((1, 18, 9), (5, 6), 3, 1, 2)]:
        options = {"output_size": size, "kernel_size": kernel, "padding": padding, "stride": stride}
        call = f"F.fold(input, {size}, {kernel}, padding={padding}, stride={stride})"
        case("fold", call, {"input": ("float", shape)}, options)


def pools() -> None:
    for shape, kernel, stride, padding, dilation, ceil in [
        ((2, 3, 4, 6), 2, None, 0, 1, False),
        ((2, 2, 7, 5), (3, 2), (2, 1), (1, 1), 1, False),
        ((1, 2, 7, 8), 3, 2, 1, 1, True),
        ((1, 2, 7, 8), 3, 2, 0, 1, True),
        ((1, 1, 9, 9), 3, 1, 1, (2, 3), False),
        ((2, 6, 5), 2, 2, 0, 1, True),
        ((1, 1, 5, 5), 2, 3, 1, 1, True),
    ]:
        options = {"kernel_size": kernel, "stride": stride, "padding": padding, "dilation": dilation, "ceil_mode": ceil}
        call = f"F.max_pool2d(x, {kernel}, {stride}, {padding}, {dilation}, {ceil})"
        case("max_pool2d", call, {"x": ("float", shape)}, options)
        call = f"F.max_pool2d(x, {kernel}, {stride}, {padding}, {dilation}, {ceil}, return_indices=True)[1]"
        case("max_pool2d indices", call, {"x": ("float", shape)}, {**options, "return_indices": True})
    case(
        "max_pool2d", "F.max_pool2d(x, 2)", {"x": [[[[1.0, 1.0, 2.0, 3.0], [1.0, 0.0, 3.0, 3.0]]]]}, {"kernel_size": 2}
    )
    case(
        "max_pool1d",
        "F.max_pool1d(x, 3, 2, 1)",
        {"x": ("float", (2, 3, 8))},
        {"kernel_size": 3, "stride": 2, "padding": 1},
    )
    for shape, kernel, stride, padding, ceil, include, divisor in [
        ((2, 3, 4, 6), 2, 2, 0, False, True, None),
        ((2, 2, 7, 5), (3, 2), (2, 1), (1, 1), False, True, None),
        ((2, 2, 7, 5), (3, 2), (2, 1), (1, 1), False, False, None),
        ((1, 2, 7, 8), 3, 2, 1, True, True, None),
        ((1, 2, 7, 8), 3, 2, 1, True, False, None),
        ((1, 2, 7, 8), 3, 2, 0, True, True, None),
        ((1, 2, 5, 5), 3, 1, 1, False, True, 5),
        ((2, 6, 5), (1, 3), (1, 2), 0, False, True, None),
        ((1, 1, 6, 6), 2, 3, 0, False, True, None),
    ]:
        options = {"kernel_size": kernel, "stride": stride, "padding": padding, "ceil_mode": ceil}
        options["count_include_pad"] = include
        call = f"F.avg_pool2d(input_x, {kernel}, {stride}, {padding}, {ceil}, {include}, {divisor})"
        case("avg_pool2d", call, {"input_x": ("float", shape)}, {**options, "divisor_override": divisor or 0})
    options = {"kernel_size": 3, "stride": 2, "padding": 1, "count_include_pad": False}
    case("avg_pool1d", "F.avg_pool1d(input_x, 3, 2, 1, False, False)", {"input_x": ("float", (2, 3, 7))}, options)
    for shape, size in [((2, 2, 6, 4), (3, 2)), ((1, 2, 7, 5), (3, 4)), ((2, 5, 6), 1), ((1, 2, 3, 4), (5, None))]:
        for name, key in (("avg", "adaptive_avg_pool2d"), ("max", "adaptive_max_pool2d")):
            call = f"F.adaptive_{name}_pool2d(input, {size})"
            case(key, call, {"input": ("float", shape)}, {"output_size": size})
    call = "F.adaptive_avg_pool1d(input, 4)"
    case("adaptive_avg_pool1d", call, {"input": ("float", (2, 3, 7))}, {"output_size": 4})
    for shape, options in [
        ((1, 2, 3, 4), {"size": (6, 8)}),
        ((1, 2, 5, 4), {"size": (3, 7)}),
        ((1, 2, 3, 4), {"scale_factor": 1.7}),
        ((1, 2, 3), {"scale_factor": 2.0}),
        ((1, 2, 3, 4), {"size": (7, 9), "mode": "bilinear", "align_corners": True}),
        ((1, 2, 5, 4), {"size": (3, 7), "mode": "bilinear", "align_corners": False}),
        ((2, 1, 3, 4), {"scale_factor": (2.5, 1.3), "mode": "bilinear", "align_corners": False}),
        ((2, 1, 3, 4), {"scale_factor": 2.6, "mode": "bilinear", "recompute_scale_factor": True}),
        ((2, 1, 5), {"size": 8, "mode": "linear"}),
    ]:
        case("interpolate", "F.interpolate(input, **kwargs)", {"input": ("float", shape)}, options)


def activations() -> None:
    same = "relu relu6 selu silu hardsigmoid hardswish mish softsign sigmoid tanhshrink".split()
    for name in [*same, "logsigmoid"]:
        key = "x" if name in ("relu6", "mish", "softsign", "logsigmoid") else "input_x" if name == "selu" else "input"
        # PyTorch's own derivative of hardsigmoid is rounded to float32.
        call = "F.relu6(input + 3) / 6" if name == "hardsigmoid" else f"F.{name}({key})"
        for values in (KINKS, ("float", (3, 4))):
            case(name, call, {key: values})
    for name, key, call, options in [
        ("leaky_relu", "input", "F.leaky_relu(input, 0.2)", {}),
        ("leaky_relu", "input", "F.leaky_relu(input, 0.03)", {"alpha": 0.03}),
        ("elu", "input_x", "F.elu(input_x, 1.5)", {"alpha": 1.5}),
        ("celu", "x", "torch.where(x > 0, x, 0.7 * torch.expm1(x.clamp(max=0) / 0.7))", {"alpha": 0.7}),
        ("gelu", "input", "F.gelu(input)", {}),
        ("gelu", "input", "F.gelu(input, approximate='tanh')", {"approximate": "tanh"}),
        ("hardtanh", "input", "F.hardtanh(input, -0.5, 3.0)", {"min_val": -0.5, "max_val": 3.0}),
        ("hardshrink", "x", "F.hardshrink(x, 0.5)", {}),
        ("softshrink", "input", "F.softshrink(input, 0.5)", {}),
        ("softplus", "input", "F.softplus(input)", {}),
        ("softplus", "input", "F.softplus(input, 2.0, 5.0)", {"beta": 2.0, "threshold": 5.0}),
        ("softmax", "input", "F.softmax(input, -1)", {}),
        ("log_softmax", "logits", "F.log_softmax(logits, 0)", {"axis": 0}),
        ("softmin", "x", "F.softmin(x, -1)", {}),
    ]:
        for values in (KINKS, ("float", (3, 4))):
            case(name, call, {key: values}, options)
    for shape, weights in [((2, 3, 4), (3,)), ((5,), (1,)), ((2, 3), (1,))]:
        case("prelu", "F.prelu(x, weight)", {"x": ("float", shape), "weight": ("float", weights)})
    case("glu", "F.glu(x, 1)", {"x": ("float", (2, 4, 3))}, {"axis": 1})
    arrays = {"query": ("float", (2, 3, 4)), "key": ("float", (2, 5, 4)), "value": ("float", (2, 5, 2))}
    call = "F.scaled_dot_product_attention(query, key, value{})"
    case("scaled_dot_product_attention", call.format(""), arrays)
    case("scaled_dot_product_attention", call.format(", is_causal=True"), arrays, {"is_causal": True})
    for kind in ("float", "mask"):
        more = {**arrays, "attn_mask": (kind, (3, 5))}
        case("scaled_dot_product_attention", call.format(", attn_mask"), more)


def normalisations() -> None:
    for shape, normal in [((2, 3, 4), (4,)), ((2, 3, 4), (3, 4)), ((5,), (5,))]:
        arrays = {"input": ("float", shape), "weight": ("float", normal), "bias": ("float", normal)}
        case("layer_norm", f"F.layer_norm(input, {normal}, weight, bias)", arrays, {"normalized_shape": normal})
    case(
        "layer_norm",
        "F.layer_norm(input, (4,), eps=0.1)",
        {"input": ("float", (3, 4))},
        {"normalized_shape": 4, "eps": 0.1},
    )
    for shape, groups in [((2, 4, 3, 2), 2), ((2, 6, 3), 3), ((2, 4), 1)]:
        arrays = {"input": ("float", shape), "weight": ("float", shape[1:2]), "bias": ("float", shape[1:2])}
        case("group_norm", f"F.group_norm(input, {groups}, weight, bias)", arrays, {"num_groups": groups})
        if len(shape) > 2:
            case("instance_norm", "F.instance_norm(input, weight=weight, bias=bias)", arrays)
        arrays = {"input_x": ("float", shape), "running_mean": ("fixed float", shape[1:2])}
        arrays |= {
            "running_var": ("fixed positive", shape[1:2]),
            "weight": ("float", shape[1:2]),
            "bias": ("float", shape[1:2]),
        }
        call = "F.batch_norm(input_x, running_mean, running_var, weight, bias)"
        case("batch_norm", call, arrays)
        arrays = {key: how for key, how in arrays.items() if not key.startswith("running")}
        more = {"running_mean": None, "running_var": None, "training": True}
        case("batch_norm", "F.batch_norm(input_x, None, None, weight, bias, True)", arrays, more)
    for p in (2.0, 1.0, 3.0):
        case("normalize", f"F.normalize(input, {p})", {"input": ("float", (3, 4))}, {"p": p})
    arrays = {"x": ("float", (2, 3, 4)), "gamma": ("float", (4,))}
    case("rms_norm", "F.rms_norm(x, (4,), gamma, 1e-6)", arrays)
    call = "F.local_response_norm(x, 5, alpha=5 * 0.3, beta=0.75, k=2.0)"
    case("lrn", call, {"x": ("float", (2, 6, 2, 3))}, {"depth_radius": 2, "alpha": 0.3, "beta": 0.75, "bias": 2.0})


def losses() -> None:
    for reduction in ("mean", "sum", "none"):
        pairs = {"input": ("float", (3, 4)), "target": ("positive", (3, 4))}
        for name, extra in [
            ("mse_loss", {}),
            ("l1_loss", {}),
            ("smooth_l1_loss", {"beta": 1.3}),
            ("smooth_l1_loss", {"beta": 0.0}),
            ("huber_loss", {"delta": 1.7}),
        ]:
            shown = "".join(f", {key}={value}" for key, value in extra.items())
            case(
                name,
                f"F.{name}(input, target, reduction='{reduction}'{shown})",
                pairs,
                {"reduction": reduction, **extra},
            )
        for shape, classes in [((4, 3), (4,)), ((2, 3, 4), (2, 4)), ((2, 3, 2, 2), (2, 2, 2)), ((3,), ())]:
            for smoothing in (0.0, 0.2):
                for weighted in (False, True):
                    for ignore in (-100, 1):
                        if reduction != "mean" and shape != (4, 3):
                            continue
                        arrays = {"input": ("float", shape), "target": ("class3", classes)}
                        if weighted:
                            arrays["weight"] = ("fixed positive", (3,))
                        options = {"reduction": reduction, "label_smoothing": smoothing, "ignore_index": ignore}
                        case("cross_entropy", "F.cross_entropy(**arrays, **kwargs)", arrays, options)
        for shape in ((4, 3), (2, 3, 4), (3,)):
            arrays = {"input": ("float", shape), "target": ("probability", shape), "weight": ("fixed positive", (3,))}
            for smoothing in (0.0, 0.1):
                options = {"reduction": reduction, "label_smoothing": smoothing}
                case("cross_entropy", "F.cross_entropy(**arrays, **kwargs)", arrays, options)
        arrays = {"inputs": ("log", (2, 3, 4)), "target": ("class3", (2, 4)), "weight": ("fixed positive", (3,))}
        options = {"reduction": reduction, "ignore_index": 2}
        case("nll_loss", "F.nll_loss(inputs, target, weight, **kwargs)", arrays, options)
        arrays = {
            "logits": ("probability", (3, 4)),
            "labels": ("probability", (3, 4)),
            "weight": ("fixed positive", (4,)),
        }
        # PyTorch's own derivative adds a small number to the denominator.
        call = "-weight * (labels * torch.log(logits) + (1 - labels) * torch.log1p(-logits))"
        call = call if reduction == "none" else f"({call}).{reduction}()"
        case("binary_cross_entropy", call, arrays, {"reduction": reduction})
        arrays = {"logits": ("float", (3, 4)), "label": ("probability", (3, 4)), "weight": ("fixed positive", (4,))}
        arrays["pos_weight"] = ("fixed positive", (4,))
        call = (
            f"F.binary_cross_entropy_with_logits(logits, label, weight, pos_weight=pos_weight, reduction='{reduction}')"
        )
        case("binary_cross_entropy_with_logits", call, arrays, {"reduction": reduction})
        arrays = {"logits": KINKS, "label": [k % 2.0 for k in range(len(KINKS))]}
        call = f"F.binary_cross_entropy_with_logits(logits, label, reduction='{reduction}')"
        case("binary_cross_entropy_with_logits", call, arrays, {"reduction": reduction})
        arrays = {"input1": ("float", (4, 3)), "input2": ("positive", (4, 3)), "target": ("sign", (4,))}
        call = f"F.cosine_embedding_loss(input1, input2, target, 0.1, reduction='{reduction}')"
        case("cosine_embedding_loss", call, arrays, {"margin": 0.1, "reduction": reduction})
        arrays = {"input1": ("float", (4,)), "input2": ("positive", (4,)), "target": ("sign", (4,))}
        call = f"F.margin_ranking_loss(input1, input2, target, 0.5, reduction='{reduction}')"
        case("margin_ranking_loss", call, arrays, {"margin": 0.5, "reduction": reduction})
    for reduction in ("mean", "sum", "none", "batchmean"):
        arrays = {"logits": ("log", (3, 4)), "labels": ("probability", (3, 4))}
        case("kl_div", f"F.kl_div(logits, labels, reduction='{reduction}')", arrays, {"reduction": reduction})
    for first, second, dim in [((3, 4), (3, 4), 1), ((2, 3, 4), (3, 4), 1), ((4,), (4,), 0)]:
        arrays = {"x1": ("float", first), "x2": ("positive", second)}
        case("cosine_similarity", f"F.cosine_similarity(x1, x2, {dim})", arrays, {"dim": dim})


def made(arrays: dict[str, Any]) -> dict[str, np.ndarray]:
    """The arrays of a case."""
    return {
        name: np.array(how) if isinstance(how[0], float | list) else operand(how[0], tuple(how[1]), seed)
        for seed, (name, how) in enumerate(arrays.items())
    }


def differentiated(arrays: dict[str, Any]) -> list[str]:
    """The arguments that gradients are taken with respect to."""
    return [
        name
        for name, how in arrays.items()
        if str(how[0]).split()[0] not in ("fixed", "mask", "sign") and "class" not in str(how[0])
    ]


def record() -> None:
    """Run all cases in PyTorch and write the file."""
    import torch
    import torch.nn.functional as F  # noqa: N812

    def short(tensor: Any) -> Any:
        return [float(f"{v:.13g}") for v in tensor.detach().ravel().tolist()]

    convolutions(), pools(), activations(), normalisations(), losses()
    for entry in CASES:
        arrays = {name: torch.tensor(value) for name, value in made(entry["arrays"]).items()}
        floats = [arrays[name].requires_grad_() for name in differentiated(entry["arrays"])]
        scope = {"torch": torch, "F": F, "arrays": arrays, "kwargs": entry["kwargs"], **arrays}
        value = eval(entry.pop("torch"), scope)
        entry["shape"], entry["value"] = list(value.shape), short(value)
        if not value.is_floating_point():
            continue
        weights = torch.tensor(operand("float", tuple(value.shape), 11))
        first = torch.autograd.grad((weights * value).sum(), floats, create_graph=True, allow_unused=True)
        entry["gradients"] = [None if g is None else short(g) for g in first]
        try:
            terms = [(torch.tensor(operand("float", tuple(g.shape), 13)) * g).sum() for g in first if g is not None]
            second = torch.autograd.grad(sum(terms), floats, allow_unused=True)
            entry["second"] = [None if g is None else short(g) for g in second]
        except (RuntimeError, NotImplementedError):
            entry["second"] = None
    with FILE.open("w") as file:
        file.write("[\n" + ",\n".join(json.dumps(entry) for entry in CASES) + "\n]\n")


if __name__ == "__main__":
    record()
