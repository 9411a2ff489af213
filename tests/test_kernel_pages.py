"""The pages on Numba kernels: the layer for PyTorch of `kernels-elsewhere.md`, and the counts of `real-kernels.md`."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
ELSEWHERE = DOCS / "kernels-elsewhere.md"


def test_the_layer_for_pytorch(tmp_path: Path) -> None:
    """Where PyTorch is not installed, its text compiles."""
    blocks = re.findall(r"```python\n(.*?)```", ELSEWHERE.read_text(encoding="utf-8"), re.DOTALL)
    (script,) = [block for block in blocks if ">>>" not in block]
    compile(script, "layer.py", "exec")
    if importlib.util.find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    (tmp_path / "layer.py").write_text(script)
    done = subprocess.run([sys.executable, str(tmp_path / "layer.py")], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]


def test_the_list_of_real_kernels_is_counted() -> None:
    text = (DOCS / "real-kernels.md").read_text(encoding="utf-8")
    taken, refused = text.split("\n## Refused")
    rows = [line.strip("| ").split(" | ") for line in taken.splitlines() if line.startswith("| ")][1:]
    kernels, repositories = len(rows), len({row[0] for row in rows})
    assert f"on {kernels} kernels of {repositories} public repositories" in text
    assert all(len(row) == 7 for row in rows) and len({tuple(row[:5]) for row in rows}) == kernels
    assert all(row[6] == "exact" or float(row[6]) < 1e-7 for row in rows)
    assert all(line.count(" | ") == 3 for line in refused.splitlines() if line.startswith("| "))
