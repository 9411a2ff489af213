"""The type stubs say what is there: they are written from the tables and from the class Tensor."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .stubs import ROOT, STUBS

USES = """
import nbgrad as nb
import nbgrad.numpy as np

x = nb.Tensor([1.0, 2.0])
a: int = x.sum().ndim
b: nb.Tensor = x.reshape(2, 1).T @ x
c: nb.Tensor = np.concatenate([x, x])
d: nb.Tensor = nb.ops.softmax(x, axis=0)
e: nb.nn.Cell = nb.nn.Dense(2, 3)
"""
WRONG = {"np.concatenated(x)": "concatenated", "x.summe()": "summe", "nb.ops.softmin2(x)": "softmin2", "x.cpu(1)": "0"}


@pytest.mark.parametrize("path", STUBS)
def test_stubs_are_up_to_date(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == STUBS[path](), "run python -m tests.stubs --write"


def test_a_checker_knows_methods_and_names(tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    wrong = "\n".join(WRONG)
    (tmp_path / "uses.py").write_text(USES)
    head = "import nbgrad as nb\nimport nbgrad.numpy as np\nx = nb.Tensor([1.0])\n"
    (tmp_path / "wrong.py").write_text(f"{head}{wrong}\n")
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)]}))
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=600).stdout
    errors = [line for line in found.split("\n") if " - error: " in line]
    assert not [line for line in errors if "uses.py" in line]
    assert [len([line for line in errors if f"wrong.py:{4 + k}:" in line]) for k in range(len(WRONG))] == [1, 1, 1, 1]
