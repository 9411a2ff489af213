"""Records functions of `torch.nn.functional`: run it where PyTorch is installed, from the folder above `tests`, with
`python -m tests.recorded.record_torch_functions`.

Out: torch_functions.json: PyTorch's values and gradients in float64 for each case of `CASES`. The gradient is that of
sum(weights * value) by the arguments that `wrt` names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

FILE = Path(__file__).with_name("torch_functions.json")
CASES: list[tuple[str, list[Any], dict[str, Any], tuple[int, ...]]] = []


def case(name: str, *args: Any, wrt: tuple[int, ...] = (0,), **kwargs: Any) -> None:
    """Add a case; a tuple among the arguments is the shape of normal numbers, an ndarray is itself."""
    draws = np.random.default_rng(len(CASES))
    made = [draws.standard_normal(one) if isinstance(one, tuple) else one for one in args]
    CASES.append((name, made, kwargs, wrt))


def weights(shape: Any) -> np.ndarray:
    """Different weights of all elements."""
    size = int(np.prod(shape))
    return np.arange(1, size + 1).reshape(shape) / size


_INTS = np.array
case("softmin", (3, 4), dim=1)
case("rms_norm", (3, 4), [4], (4,), wrt=(0, 2))
case("rms_norm", (3, 4), [4], eps=1e-3)
case("instance_norm", (3, 4, 5))
case("local_response_norm", (2, 6, 5), 3)
case("local_response_norm", (2, 6, 5, 2), 4, 0.1, 0.6, 2.0)
case("max_pool1d", (2, 3, 8), 3, 2, 1)
case("max_pool3d", (1, 2, 4, 4, 4), 2)
case("conv_transpose1d", (2, 4, 5), (4, 3, 3), (6,), stride=2, padding=1, output_padding=1, groups=2, dilation=2,
     wrt=(0, 1, 2))  # fmt: skip
case("conv_transpose1d", (4, 5), (4, 3, 3), wrt=(0, 1))
case("conv_transpose3d", (2, 2, 2, 2, 2), (2, 1, 2, 3, 2), (2,), stride=2, padding=[0, 1, 0], groups=2, wrt=(0, 1, 2))
case("pairwise_distance", (3, 4), (3, 4), wrt=(0, 1))
case("pairwise_distance", (3, 4), (3, 4), p=1.0, keepdim=True, wrt=(0, 1))
case("bilinear", (5, 3), (5, 4), (2, 3, 4), (2,), wrt=(0, 1, 2, 3))
for _mode in ("mean", "sum", "max"):
    case("embedding_bag", _INTS([[0, 1, 1], [3, 3, 2]]), (4, 3), mode=_mode, wrt=(1,))
    case("embedding_bag", _INTS([0, 1, 1, 3, 2]), (4, 3), _INTS([0, 2, 2]), mode=_mode, wrt=(1,))
    case("embedding_bag", _INTS([0, 1, 1, 3, 2]), (4, 3), _INTS([0, 2, 2, 5]), mode=_mode, include_last_offset=True,
         padding_idx=1, wrt=(1,))  # fmt: skip
case("poisson_nll_loss", (4,), np.array([0.0, 1.0, 2.0, 5.0]), full=True)
case("hinge_embedding_loss", (4,), np.array([1.0, -1.0, 1.0, -1.0]))
case("triplet_margin_with_distance_loss", (4, 3), (4, 3), (4, 3), swap=True, wrt=(0, 1, 2))
case("triplet_margin_loss", (4, 3), (4, 3), (4, 3), swap=True, wrt=(0, 1, 2))
case("huber_loss", (4,), (4,), delta=0.5, wrt=(0, 1))
case("gaussian_nll_loss", (4,), (4,), np.array([0.5, 1.0, 2.0, 0.1]), wrt=(0, 2))
case("multi_margin_loss", (3, 4), _INTS([0, 3, 1]))
case("multilabel_soft_margin_loss", (3, 4), np.array([[1.0, 0.0, 1.0, 0.0]] * 3))
case("pixel_unshuffle", (1, 2, 4, 4), 2)
case("lp_pool2d", (1, 2, 6, 6), 2, 3)
case("affine_grid", (2, 2, 3), [2, 3, 2, 3], align_corners=False)
case("scaled_dot_product_attention", (2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), scale=0.3, wrt=(0, 1, 2))
case("scaled_dot_product_attention", (2, 4, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4), enable_gqa=True, wrt=(0, 1, 2))
case("interpolate", (1, 2, 9, 7), size=[4, 3], mode="bilinear", antialias=True)
case("interpolate", (1, 2, 9, 7), size=[4, 10], mode="bicubic", antialias=True)
case("interpolate", (1, 1, 5, 4), scale_factor=0.6, mode="bilinear", antialias=True)
case("interpolate", (1, 1, 6, 7), size=[4, 3], mode="bilinear", antialias=True, align_corners=True)


def record() -> None:
    """Write the file."""
    import torch

    lines = []
    for name, args, kwargs, wrt in CASES:
        given = [torch.tensor(one) if isinstance(one, np.ndarray) else one for one in args]
        for at in wrt:
            given[at].requires_grad_()
        value = getattr(torch.nn.functional, name)(*given, **kwargs)
        total = (value * torch.tensor(weights(tuple(value.shape)))).sum()
        gradients = torch.autograd.grad(total, [given[at] for at in wrt])
        lines.append(json.dumps([name, value.tolist(), [one.flatten().tolist() for one in gradients]]))
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    record()
