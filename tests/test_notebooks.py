"""Notebooks: what is stored in them, and what `notebooks/run.py`, which runs them in `.ci/run`, says about faults."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def cells(path: Path) -> list[dict[str, Any]]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def printed(cell: dict[str, Any]) -> str:
    return "".join(line for output in cell.get("outputs", []) for line in output.get("text", []))


def test_the_notebook_prints_what_the_documents_print() -> None:
    """MindSpore's documents on GradOperation and grad, in the order of the notebook."""
    text = "".join(printed(cell) for cell in cells(FOLDER / "02_cells_and_weights.ipynb"))
    documents = [
        "[6.]\n",
        "wgrad: [100.]\nbgrad: [1.]\n",
        "(Tensor(shape=[1], dtype=Float32, value= [ 5.00000000e+00]),)\n",
        "[0.6]\n",
        "wgrad: [0.]\nbgrad: [0.]\n",
        "[[1.4100001 1.5999999 6.6      ]\n [1.4100001 1.5999999 6.6      ]]\n",
        "[0. 6.]\n[-2.  6.]\n",
        "12.0 4.0\n",
        (
            "(Tensor(shape=[2], dtype=Float32, value= [ 7.50000000e+01,  7.50000000e+01]), "
            "Tensor(shape=[2], dtype=Float32, value= [ 3.00000000e+01,  3.00000000e+01]))\n"
            "(Tensor(shape=[2], dtype=Float32, value= [ 5.00000000e+00,  5.00000000e+00]),)\n"
        ),
    ]
    for expected in documents:
        before, found, text = text.partition(expected)
        assert found, f"{expected!r} is not in {before!r}"


def test_the_notebook_on_gpus_says_where_it_ran() -> None:
    """What is stored may come from a simulator, and the reader must know. Kernels are in it, and drawn results."""
    _, first, *others = cells(FOLDER / "05_cuda.ipynb")
    assert printed(first).startswith("This runs on ")
    source = "".join("".join(cell["source"]) for cell in others)
    for name in ("device=device", "@cuda.jit", "nb.primitive(", "nb.device_function("):
        assert name in source
    assert sum(o["output_type"] == "display_data" for cell in others for o in cell.get("outputs", [])) == 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_small_and_say_nothing_of_a_machine(path: Path) -> None:
    assert path.stat().st_size < 300_000
    for cell in cells(path):
        for output in cell.get("outputs", []):
            assert output["output_type"] != "error" and output.get("name") != "stderr"
        said = "".join(cell["source"]) + printed(cell)
        assert not re.search(r"/home/|/tmp/|/usr/|\d+(\.\d+)? ?m?s\b", said)


@pytest.mark.parametrize(
    ("source", "stored", "said"),
    [
        ("print(1 + 1)", "2\n", None),
        ("print(1 + 1)", "3\n", "print(1 + 1)\n-- prints --\n2\n\n-- but stored is --\n3"),
        ("number = 1\nnumber / 0", "", "number / 0"),
        ("import warnings\nwarnings.warn('old', DeprecationWarning, stacklevel=1)", "", "DeprecationWarning: old"),
    ],
)
def test_the_runner_finds_faults(tmp_path: Path, source: str, stored: str, said: str | None) -> None:
    for package in ("ipykernel", "nbclient"):
        pytest.importorskip(package, reason="needs the extra 'notebooks'")
    cell = {"cell_type": "code", "id": "one", "metadata": {}, "execution_count": None, "source": source}
    cell["outputs"] = [{"output_type": "stream", "name": "stdout", "text": stored}] if stored else []
    notebook = tmp_path / "small.ipynb"
    notebook.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    command = [sys.executable, str(FOLDER / "run.py"), str(notebook)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if said is None:
        assert done.returncode == 0 and re.fullmatch(r"small\.ipynb: [\d.]+ s\n", done.stdout), done.stderr
    else:
        assert done.returncode == 1 and said in done.stderr and str(notebook) in done.stderr
