"""The pages on clusters and on large data: their scripts run, on local clusters, and print what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DOCS = Path(__file__).parent.parent / "docs"
SCRIPTS = re.findall(r"```python\n(.*?)```\n\n```\n(.*?)```", (DOCS / "clusters.md").read_text(), re.DOTALL)
LONGEST = 100
"""Seconds of a script on a machine that does other things, too."""


def _name(script: str) -> str:
    words = ("dask.distributed", "import ray", "joblib", "counters")
    return next((word.split()[-1] for word in words if word in script), "pool")


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize(("script", "printed"), SCRIPTS, ids=[_name(script) for script, _ in SCRIPTS])
def test_the_page_on_clusters(script: str, printed: str, tmp_path: Path) -> None:
    package = _name(script).removeprefix("dask.")
    if package not in ("pool", "counters") and find_spec(package) is None:
        pytest.skip(f"needs {package}")
    (tmp_path / "script.py").write_text(script)
    root = str(DOCS.parent)
    surroundings = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")])),
        "NBGRAD_OPTIMIZE": "0",
        "NBGRAD_NUM_THREADS": "1",
        "RAY_AUTH_MODE": "disabled",
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    command = [sys.executable, "script.py"]
    done = subprocess.run(
        command, cwd=tmp_path, env=surroundings, capture_output=True, text=True, timeout=LONGEST, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout == printed, done.stderr[-3000:]


def test_the_page_on_clusters_has_a_script_for_each() -> None:
    assert [_name(script) for script, _ in SCRIPTS] == ["pool", "dask.distributed", "ray", "joblib", "counters"]


def test_the_page_on_large_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space: dict[str, Any] = {}
    for part in (DOCS / "large-data.md").read_text().split("```python\n")[1:]:
        exec(part.split("```")[0], space)
    x = np.load("x.npy")
    weights = np.array([1.0, -2.0, 0.5])
    np.testing.assert_allclose(space["gradient"], -2 * x.T @ x @ weights)
    root = np.sqrt(np.sum((x @ weights) ** 2) / 1000)
    np.testing.assert_allclose(space["slope"], -x.T @ x @ weights / 1000 / root)
    np.testing.assert_allclose(space["fit"].x, weights, rtol=1e-5)
