"""Records the losses and Parameters of training scripts: run it where PyTorch is installed, from the folder above
`tests`, with `python -m tests.recorded.record_torch_scripts`.

Out: torch_scripts.json: for each script of tests/torch_scripts.py and torch_scripts_further.py the losses in float64,
the names of Parameters, and of each the sum and the sum of its squares.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from .. import torch_scripts_further
from ..torch_scripts import SCRIPTS

FILE = Path(__file__).with_name("torch_scripts.json")
assert torch_scripts_further


def summary(result: tuple[list[float], list[tuple[str, Any]]]) -> dict[str, Any]:
    """What is recorded of a script's result."""
    losses, parameters = result
    return {
        "losses": [float(loss) for loss in losses],
        "parameters": {
            f"{k} {name}": [*value.shape, float(np.sum(value)), float(np.sum(value * value))]
            for k, (name, value) in enumerate(parameters)
        },
    }


def record() -> None:
    """Write the file."""
    import torch

    torch.set_default_dtype(torch.float64)
    lines = [f"{json.dumps(name)}: {json.dumps(summary(run(torch)))}" for name, run in SCRIPTS.items()]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    record()
