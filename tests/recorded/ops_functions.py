"""Cases that nbgrad.ops and PyTorch share, and the recorder: run with PyTorch, it writes ops_functions.json.

A case is the names of its inputs, and a function of the library and the inputs; two functions, PyTorch's first, where
the libraries spell it differently. Recorded are the value, the gradient of the sum of value * weights, and the
derivative of that gradient along a direction.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_suffix(".json")
_rng = np.random.default_rng(11)

INPUTS: dict[str, np.ndarray] = {
    "x": _rng.normal(size=(3, 4)),
    "y": _rng.normal(size=(3, 4)) + 3,
    "row": _rng.normal(size=4),
    "column": _rng.normal(size=(3, 1)),
    "scalar": np.array(0.75),
    "p": _rng.uniform(0.5, 2.0, size=(3, 4)),
    "unit": _rng.uniform(-0.9, 0.9, size=(3, 4)),
    "ties": np.array([[1.0, 3.0, 3.0, 0.0], [2.0, 2.0, 2.0, 2.0], [-1.0, 0.0, 0.0, -2.0]]),
    "zeros": np.array([[2.0, 0.0, 3.0, 1.0], [0.0, 0.0, 5.0, 1.0], [1.0, 2.0, 3.0, 4.0]]),
    "cube": _rng.normal(size=(2, 3, 4)),
    "batch": _rng.normal(size=(2, 4, 3)),
    "matrix": _rng.normal(size=(4, 5)),
    "square": _rng.normal(size=(3, 3)),
    "updates": _rng.normal(size=(2, 4)),
    "image": _rng.normal(size=(2, 3, 5)),
}
INTEGERS: dict[str, np.ndarray] = {
    "places": np.array([2, 0, 2, 1]),
    "rows": np.array([2, 0]),
    "repeated": np.array([2, 2]),
    "grid": np.array([[0, 3, 1], [2, 2, 0]]),
    "short": np.array([[1, 0, 2, 1]]),
    "pairs": np.array([[0, 1], [2, 3]]),
    "mask": np.array([[1, 0, 1, 0], [0, 1, 1, 1], [1, 1, 0, 0]]),
}
"""These are not differentiated; `mask` becomes boolean."""

Case = tuple[Any, ...]


def _both(names: str, *functions: Any) -> Case:
    return (names.split(), functions[0], functions[-1])


CASES: dict[str, Case] = {
    # ----- Elementwise -----
    **{
        name: _both("x row", lambda o, x, y, name=name: getattr(o, name)(x, y))
        for name in "add sub subtract mul multiply maximum minimum fmax fmin hypot logaddexp logaddexp2 atan2".split()
    },
    **{
        name: _both("x p", lambda o, x, y, name=name: getattr(o, name)(x, y))
        for name in "div divide true_divide remainder fmod copysign".split()
    },
    **{
        name: _both("x", lambda o, x, name=name: getattr(o, name)(x))
        for name in (
            "exp exp2 expm1 square abs neg negative sign sin cos tan atan sinh cosh tanh asinh erf erfc floor ceil "
            "round trunc frac sinc rad2deg deg2rad"
        ).split()
    },
    **{
        name: _both("p", lambda o, x, name=name: getattr(o, name)(x))
        for name in "log log2 log10 log1p sqrt rsqrt reciprocal lgamma".split()
    },
    **{name: _both("unit", lambda o, x, name=name: getattr(o, name)(x)) for name in "asin acos atanh arcsin".split()},
    "acosh": _both("p", lambda o, x: o.acosh(x + 1)),
    "floor_divide": _both(
        "x p", lambda o, x, y: o.floor_divide(x.detach(), y.detach()), lambda o, x, y: o.floor_divide(x, y)
    ),
    "pow number": _both("x", lambda o, x: o.pow(x, 3)),
    "pow": _both("p row", lambda o, x, y: o.pow(x, y)),
    "pow of zeros": _both("zeros", lambda o, x: o.pow(x, 2)),
    "div floor": _both("x p", lambda o, x, y: o.div(x, y, rounding_mode="floor")),
    "div trunc": _both("x p", lambda o, x, y: o.div(x, y, rounding_mode="trunc")),
    "round decimals": _both("x", lambda o, x: o.round(x, decimals=1)),
    "lerp": _both("x y p", lambda o, x, y, w: o.lerp(x, y, w)),
    "addcmul": _both("x y p", lambda o, x, y, z: o.addcmul(x, y, z, value=0.5)),
    "addcdiv": _both("x y p", lambda o, x, y, z: o.addcdiv(x, y, z, value=-2)),
    "addn": _both("x y p", lambda o, *a: a[0] + a[1] + a[2], lambda o, *a: o.addn(a)),
    "xlogy": _both("x p", lambda o, x, y: o.xlogy(x, y)),
    "clamp": _both("x", lambda o, x: o.clamp(x, -0.5, 0.5)),
    "clamp at bounds": _both("ties", lambda o, x: o.clamp(x, min=0, max=2)),
    "clip arrays": _both("x unit p", lambda o, x, low, high: o.clip(x, low, high)),
    "clip_by_value": _both("x", lambda o, x: o.clamp(x, max=0.1), lambda o, x: o.clip_by_value(x, clip_value_max=0.1)),
    "where": _both("x row mask", lambda o, x, y, m: o.where(m, x * x, y)),
    "select": _both("x scalar mask", lambda o, x, y, m: o.where(m, x, y * x), lambda o, x, y, m: o.select(m, x, y * x)),
    "masked_fill": _both("x mask", lambda o, x, m: o.masked_fill(x * x, m, 0.5)),
    "masked_fill tensor": _both("x scalar mask", lambda o, x, v, m: o.masked_fill(x, m, v)),
    # ----- Reductions -----
    "sum": _both("cube", lambda o, x: o.sum(x * x, dim=(0, 2))),
    "sum keepdim": _both("cube", lambda o, x: o.sum(x, dim=1, keepdim=True)),
    "mean": _both("cube", lambda o, x: o.mean(x * x, dim=1)),
    "mean all": _both("cube", lambda o, x: o.mean(x)),
    "prod": _both("zeros", lambda o, x: o.prod(x, dim=1)),
    "amax ties": _both("ties", lambda o, x: o.amax(x, 1)),
    "amin ties": _both("ties", lambda o, x: o.amin(x, (0, 1), keepdim=True)),
    "aminmax": _both("x", lambda o, x: tuple(o.aminmax(x, dim=1))),
    "max": _both("ties", lambda o, x: tuple(o.max(x, 1))),
    "max keepdim": _both("x", lambda o, x: tuple(o.max(x * x, dim=0, keepdim=True))),
    "min": _both("x", lambda o, x: tuple(o.min(x, dim=-1))),
    "argmax": _both("x", lambda o, x: (o.argmax(x), o.argmax(x, dim=0, keepdim=True))),
    "argmin": _both("x", lambda o, x: (o.argmin(x), o.argmin(x, dim=1))),
    "var": _both("x", lambda o, x: o.var(x, 1, correction=0), lambda o, x: o.var(x, 1)),
    "var ddof": _both("x", lambda o, x: o.var(x, dim=(0, 1)), lambda o, x: o.var(x, ddof=1)),
    "std": _both("x", lambda o, x: o.std(x, 0, keepdim=True), lambda o, x: o.std(x, 0, True, True)),
    "std_mean": _both("x", lambda o, x: o.std_mean(x, 1, correction=0), lambda o, x: o.std_mean(x, 1)),
    "var_mean": _both("x", lambda o, x: o.var_mean(x, 0, correction=0), lambda o, x: o.var_mean(x, 0)),
    "median odd": _both("x", lambda o, x: tuple(o.median(x, dim=0))),
    "median even": _both("x", lambda o, x: tuple(o.median(x, dim=1, keepdim=True))),
    "norm": _both("x", lambda o, x: o.linalg.norm(x), lambda o, x: o.norm(x)),
    "norm axis": _both("x", lambda o, x: o.linalg.norm(x, 3, dim=1), lambda o, x: o.norm(x, 3, dim=1)),
    "norm inf": _both("x", lambda o, x: o.linalg.norm(x, np.inf), lambda o, x: o.norm(x, np.inf)),
    "norm fro": _both(
        "cube",
        lambda o, x: o.linalg.norm(x, "fro", dim=(0, 2), keepdim=True),
        lambda o, x: o.norm(x, "fro", dim=(0, 2), keepdim=True),
    ),
    "vector_norm": _both("cube", lambda o, x: o.linalg.vector_norm(x, 1, (0, 1, 2)), lambda o, x: o.vector_norm(x, 1)),
    "logsumexp": _both("cube", lambda o, x: o.logsumexp(x, (0, 2), keepdim=True)),
    "cumsum": _both("cube", lambda o, x: o.cumsum(x * x, 1)),
    "cumprod": _both("zeros", lambda o, x: o.cumprod(x, dim=1)),
    "cummax": _both("ties", lambda o, x: tuple(o.cummax(x, 1))),
    "cummin": _both("x", lambda o, x: tuple(o.cummin(x, 0))),
    "trapz": _both("x", lambda o, x: o.trapezoid(x, dx=0.5, dim=0), lambda o, x: o.trapz(x, dx=0.5, dim=0)),
    "nansum": _both("x", lambda o, x: o.nansum(x, 1)),
    "count_nonzero": _both("zeros", lambda o, x: o.count_nonzero(x, dim=1)),
    # ----- Shapes -----
    "reshape": _both("cube", lambda o, x: o.reshape(x, (4, -1)) ** 2),
    "flatten": _both("cube", lambda o, x: o.flatten(x, 1) ** 2, lambda o, x: o.flatten(x) ** 2),
    "flatten dims": _both("cube", lambda o, x: o.flatten(x, start_dim=0, end_dim=1)),
    "permute": _both("cube", lambda o, x: o.permute(x, (2, 0, 1)) ** 2),
    "transpose": _both("cube", lambda o, x: o.permute(x, (0, 2, 1)), lambda o, x: o.transpose(x, (0, 2, 1))),
    "swapdims": _both("cube", lambda o, x: o.swapdims(x, 0, -1)),
    "movedim": _both("cube", lambda o, x: o.movedim(x, (0, 1), (-1, 0))),
    "unsqueeze": _both("x", lambda o, x: o.unsqueeze(x, -1)),
    "squeeze": _both("column", lambda o, x: o.squeeze(x) ** 2),
    "broadcast_to": _both("column", lambda o, x: o.broadcast_to(x, (2, 3, 4)) ** 2),
    "cat": _both("x updates", lambda o, x, y: o.cat((x, y * x[:2]), 0)),
    "stack": _both("x y", lambda o, x, y: o.stack((x, y, x * y), -1)),
    "hstack": _both("x column", lambda o, x, y: o.hstack((x, y))),
    "dstack": _both("x y", lambda o, x, y: o.dstack((x, y))),
    "split": _both("image", lambda o, x: o.split(x * x, 2, -1)),
    "split lengths": _both("image", lambda o, x: o.split(x, [1, 3, 1], 2)),
    "chunk": _both("image", lambda o, x: o.chunk(x, 3, 2)),
    "tensor_split": _both("image", lambda o, x: o.tensor_split(x, 3, dim=2)),
    "tensor_split places": _both("image", lambda o, x: o.tensor_split(x, (1, 4), dim=2)),
    "unbind": _both("cube", lambda o, x: o.unbind(x * x, 1)),
    "tile": _both("x", lambda o, x: o.tile(x, (2, 1, 3))),
    "repeat_interleave": _both("x", lambda o, x: o.repeat_interleave(x, 2, 1)),
    "repeat_interleave counts": _both("x rows", lambda o, x, n: o.repeat_interleave(x[:2], n, 0)),
    "flip": _both("cube", lambda o, x: o.flip(x, (0, 2)) * x),
    "roll": _both("cube", lambda o, x: o.roll(x, (1, -2), (0, 2)) * x),
    "roll flat": _both("x", lambda o, x: o.roll(x, 3) * x),
    "rot90": _both("cube", lambda o, x: o.rot90(x, 1, (1, 2))),
    "meshgrid": _both("row updates", lambda o, x, y: o.meshgrid(x, y[0], indexing="ij")),
    "tril": _both("cube", lambda o, x: o.tril(x, -1)),
    "triu": _both("cube", lambda o, x: o.triu(x, 1)),
    "diag": _both("row", lambda o, x: o.diag(x * x)),
    "diagonal": _both("cube", lambda o, x: o.diagonal(x, 1, 0, 2)),
    "narrow": _both("cube", lambda o, x: o.narrow(x, 2, 1, 2)),
    "diff": _both("cube", lambda o, x: o.diff(x * x, 2)),
    **{
        f"pad {mode}": _both(
            "image",
            lambda o, x, mode=mode: o.nn.functional.pad(x * x, (2, 1), mode),
            lambda o, x, mode=mode: o.pad(x * x, (2, 1), mode),
        )
        for mode in ("reflect", "replicate", "circular")
    },
    "pad constant": _both(
        "image",
        lambda o, x: o.nn.functional.pad(x, (2, -1, -1, 0, 1, 1), value=0.5),
        lambda o, x: o.pad(x, (2, -1, -1, 0, 1, 1), value=0.5),
    ),
    # ----- Positions -----
    "index_select": _both("x places", lambda o, x, i: o.index_select(x * x, 1, i)),
    "gather": _both("x places", lambda o, x, i: (x * x)[i], lambda o, x, i: o.gather(x * x, i, 0)),
    "gather grid": _both("cube grid", lambda o, x, i: (x * x)[:, :, i], lambda o, x, i: o.gather(x * x, i, -1)),
    "gather_elements": _both(
        "x short", lambda o, x, i: o.gather(x * x, 0, i), lambda o, x, i: o.gather_elements(x * x, 0, i)
    ),
    "gather_d part": _both("x grid", lambda o, x, i: o.gather(x, 1, i), lambda o, x, i: o.gather_d(x, 1, i)),
    "gather_nd": _both("x pairs", lambda o, x, i: (x * x)[i[:, 0], i[:, 1]], lambda o, x, i: o.gather_nd(x * x, i)),
    "scatter": _both("x row short", lambda o, x, y, i: o.scatter(x * x, 0, i, y[None] * y)),
    "scatter add": _both(
        "x updates grid",
        lambda o, x, y, i: o.scatter_add(x * x, 1, i, y[:, :3] ** 2),
        lambda o, x, y, i: o.tensor_scatter_elements(x * x, i, y[:, :3] ** 2, axis=1, reduction="add"),
    ),
    "index_add": _both(
        "x updates repeated",
        lambda o, x, y, i: o.index_add(x * x, 0, i, y * y),
        lambda o, x, y, i: o.index_add(x * x, i, y * y, 0),
    ),
    "index_fill": _both("x rows", lambda o, x, i: o.index_fill(x * x, 0, i, 2.0)),
    "tensor_scatter_add": _both(
        "x updates repeated",
        lambda o, x, y, i: o.index_add(x * x, 0, i, y * y),
        lambda o, x, y, i: o.tensor_scatter_add(x * x, i[:, None], y * y),
    ),
    "tensor_scatter_sub": _both(
        "x updates repeated",
        lambda o, x, y, i: o.index_add(x * x, 0, i, -y * y),
        lambda o, x, y, i: o.tensor_scatter_sub(x * x, i[:, None], y * y),
    ),
    "tensor_scatter_update": _both(
        "x row pairs",
        lambda o, x, y, i: o.index_put(x * x, (i[:, 0], i[:, 1]), y[:2] ** 2),
        lambda o, x, y, i: o.tensor_scatter_update(x * x, i, y[:2] ** 2),
    ),
    "scatter_nd": _both(
        "updates repeated",
        lambda o, y, i: o.index_add(o.zeros(5, 4, dtype=y.dtype), 0, i, y * y),
        lambda o, y, i: o.scatter_nd(i[:, None], y * y, (5, 4)),
    ),
    "masked_select": _both("x mask", lambda o, x, m: o.masked_select(x * x, m)),
    "slice": _both("cube", lambda o, x: x[1:, 0:2, 1:4] ** 2, lambda o, x: o.slice(x, (1, 0, 1), (1, 2, -1)) ** 2),
    "sort": _both(
        "ties",
        lambda o, x: tuple(o.sort(x * x, dim=1, descending=True, stable=True)),
        lambda o, x: o.sort(x * x, dim=1, descending=True),
    ),
    "sort axis": _both("cube", lambda o, x: tuple(o.sort(x, dim=1)), lambda o, x: o.sort(x, axis=1)),
    "argsort": _both("ties", lambda o, x: o.argsort(x, dim=0, stable=True), lambda o, x: o.argsort(x, axis=0)),
    "topk": _both("cube", lambda o, x: tuple(o.topk(x * x, 2, dim=1))),
    "topk least": _both("x", lambda o, x: tuple(o.topk(x, 3, largest=False))),
    "unique": _both(
        "ties",
        lambda o, x: tuple(o.unique(x, return_inverse=True))[1],
        lambda o, x: o.argsort(o.argsort(o.unique(x)[0]))[o.unique(x)[1]],  # ours are not sorted
    ),
    # ----- Linear algebra -----
    "matmul": _both("cube matrix", lambda o, x, y: o.matmul(x, y)),
    "matmul vector": _both("cube row", lambda o, x, y: o.matmul(x, y)),
    "bmm": _both("cube batch", lambda o, x, y: o.bmm(x, y)),
    "mm": _both("x matrix", lambda o, x, y: o.mm(x, y)),
    "mv": _both("x row", lambda o, x, y: o.mv(x, y)),
    "inner": _both("x cube", lambda o, x, y: o.inner(x, y)),
    "outer": _both("row", lambda o, x: o.outer(x, x)),
    "dot": _both("x matrix", lambda o, x, y: o.mm(x, y), lambda o, x, y: o.dot(x, y)),
    "tensor_dot": _both(
        "cube x",
        lambda o, x, y: o.tensordot(x, y, dims=((1, 2), (0, 1))),
        lambda o, x, y: o.tensor_dot(x, y, ((1, 2), (0, 1))),
    ),
    "einsum": _both("cube matrix", lambda o, x, y: o.einsum("bij,jk->bik", x, y)),
    "addmm": _both("x square", lambda o, x, y: o.addmm(x, y, x, beta=0.5, alpha=2)),
    "addmv": _both("row x", lambda o, x, y: o.addmv(x[:3], y, x, beta=2, alpha=-1)),
    "addr": _both("x row", lambda o, x, y: o.addr(x, y[:3], y, beta=0.5, alpha=3)),
    "baddbmm": _both("square cube batch", lambda o, x, y, z: o.baddbmm(x[None], y, z, beta=0.5, alpha=2)),
    "addbmm": _both("square cube batch", lambda o, x, y, z: o.addbmm(x, y, z, beta=0.5, alpha=2)),
    "cross": _both("square", lambda o, x: o.linalg.cross(x, x * x, dim=0), lambda o, x: o.cross(x, x * x)),
    "kron": _both("x column", lambda o, x, y: o.kron(x, y)),
    "trace": _both("square", lambda o, x: o.trace(x * x)),
    "matrix_power": _both("square", lambda o, x: o.matrix_power(x, 3)),
    **{
        f"cdist {p}": _both(
            "cube x",
            lambda o, x, y, p=p: o.linalg.vector_norm(x[:, :, None] - y[None], p, -1),
            lambda o, x, y, p=p: o.cdist(x, y, p),
        )
        for p in (2.0, 3.0)
    },
}


def weights_for(shape: tuple[int, ...]) -> np.ndarray:
    """What a result is multiplied with before it is summed."""
    return np.cos(np.arange(int(np.prod(shape)), dtype=float)).reshape(shape) + 1.5


def direction_for(shape: tuple[int, ...]) -> np.ndarray:
    """Along which gradients are differentiated."""
    return np.sin(np.arange(int(np.prod(shape)), dtype=float) + 1).reshape(shape)


def _record() -> None:
    import torch  # pyright: ignore[reportMissingImports]

    def plain(gradient: Any) -> Any:
        """A list, also of PyTorch's zeros without storage."""
        return (torch.zeros(gradient.shape, dtype=gradient.dtype) + gradient).tolist()

    recorded = {}
    for name, (names, function, _) in CASES.items():
        floats = [n for n in names if n in INPUTS]
        tensors = {n: torch.tensor(INPUTS[n], requires_grad=True) for n in floats}
        for n in names:
            if n in INTEGERS:
                tensors[n] = torch.tensor(INTEGERS[n]) if n != "mask" else torch.tensor(INTEGERS[n]) != 0
        result = function(torch, *[tensors[n] for n in names])
        outputs = list(result) if isinstance(result, tuple | list) else [result]
        entry = {"value": [v.tolist() for v in outputs], "gradient": None, "second": None}
        smooth = [v for v in outputs if v.dtype.is_floating_point and v.requires_grad]
        if smooth:
            total = sum((v * torch.tensor(weights_for(tuple(v.shape)))).sum() for v in smooth)
            inputs = [tensors[n] for n in floats]
            found = torch.autograd.grad(total, inputs, create_graph=True, allow_unused=True, materialize_grads=True)
            entry["gradient"] = [plain(g) for g in found]
            along = sum((g * torch.tensor(direction_for(tuple(g.shape)))).sum() for g in found)
            if along.requires_grad:
                second = torch.autograd.grad(along, inputs, allow_unused=True, materialize_grads=True)
                entry["second"] = [plain(g) for g in second]
        recorded[name] = entry

    def short(value):
        if isinstance(value, list):
            return [short(v) for v in value]
        return float(f"{value:.14g}") if isinstance(value, float) else value

    rounded = {name: {key: short(value) for key, value in entry.items()} for name, entry in recorded.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in rounded.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    _record()
