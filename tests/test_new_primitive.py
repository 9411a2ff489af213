"""The worked examples of CONTRIBUTING.md: two primitives are added to a copy of nbgrad, compiled and differentiated."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
PLACE = re.compile(r"# (\S+\.py), (in|before|at the end) ?(.*)\n")


def examples() -> list[str]:
    """The blocks of code of the section on primitives."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text[text.index("## Adding a primitive") : text.index("## Adding a function of NumPy")]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


def additions() -> list[tuple[str, str, str, str]]:
    """(file, where, anchor, lines) of everything that the examples add."""
    found: list[tuple[str, str, str, str]] = []
    for block in examples():
        places = list(PLACE.finditer(block))
        for place, after in zip(places, [*places[1:], None], strict=False):
            lines = block[place.end() : after.start() if after else len(block)]
            found.append((place[1], place[2], place[3], lines))
    return found


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(ROOT / "nbgrad", folder / "nbgrad", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "kernels", folder / "nbgrad" / "kernels", ignore=shutil.ignore_patterns("__pycache__"))
    for name, where, anchor, lines in additions():
        path = folder / (name if name.startswith("nbgrad") else f"nbgrad/{name}")
        text = path.read_text(encoding="utf-8")
        assert text.count(f"{anchor}\n") >= 1, (name, anchor)
        if where == "at the end":
            text += "\n\n" + lines
        else:
            at = text.index(f"\n{anchor}\n") + 1
            at += len(anchor) + 1 if where == "in" else 0
            text = text[:at] + lines + text[at:]
        path.write_text(text, encoding="utf-8")
    return folder


def test_an_elementwise_primitive_takes_three_files_and_a_special_one_three() -> None:
    files = [name for name, *_ in additions()]
    assert len({*files[:3]}) == 3
    assert len({*files[3:]}) == 3


def test_new_primitives_work(copy: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(copy), "NBGRAD_CACHE_DIR": str(copy / "cache")}
    command = [sys.executable, "-c", examples()[-1]]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300, cwd=copy)
    assert done.returncode == 0, done.stderr
    found = np.array([float(number) for number in re.findall(r"-?\d+\.\d*(?:e-?\d+)?", done.stdout)])
    x, w = np.array([0.5, -1.0, 2.0]), np.array([1.0, 10.0, 100.0])
    sums = np.array([0.5, -0.5, 1.0])
    np.testing.assert_allclose(found, [*1 / np.cosh(x), *sums, *np.outer(w, sums).ravel()], rtol=1e-7)
