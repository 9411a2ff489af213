"""What is installed: the version, packages and data files that pyproject.toml lists, and `python -m nbgrad info`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.metadata import metadata, version
from pathlib import Path
from typing import Any

import pytest

import nbgrad as nb
from nbgrad.__main__ import main

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_there_is_one_version(project: dict[str, Any]) -> None:
    assert version("nbgrad") == project["project"]["version"] == nb.__version__
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(rf"^## \[({re.escape(nb.__version__)}|Unreleased)\]", changes, re.MULTILINE)


def test_every_package_is_listed(project: dict[str, Any]) -> None:
    folders = {p.parent.relative_to(ROOT).as_posix().replace("/", ".") for p in ROOT.glob("nbgrad/**/__init__.py")}
    folders |= {
        "nbgrad." + p.parent.relative_to(ROOT).as_posix().replace("/", ".") for p in ROOT.glob("kernels/**/__init__.py")
    }
    assert set(project["tool"]["setuptools"]["packages"]) == folders


def test_every_data_file_is_listed(project: dict[str, Any]) -> None:
    listed = {
        path
        for package, patterns in project["tool"]["setuptools"]["package-data"].items()
        for pattern in patterns
        for path in ROOT.joinpath(*package.split(".")).glob(pattern)
    }
    present = {p for p in (ROOT / "nbgrad").rglob("*") if p.is_file() and p.suffix not in (".py", ".pyc")}
    assert present == listed
    assert {path.name for path in listed if path.suffix != ".pyi"} == {
        "py.typed",
        "nist_strd.json",
        "shipped.ll",
        "shipped_device.ll",
        "shipped_objects.txt",
        "shipped_scalars.txt",
    }


def test_extras_and_licence() -> None:
    about = metadata("nbgrad")
    extras = {"bench", "checkpoint", "cuda12", "cuda13", "docs", "fft", "mpi", "notebooks", "peers", "plot", "test"}
    assert set(about.get_all("Provides-Extra") or []) == extras
    assert about["License-Expression"] == "BSD-3-Clause"


def test_info_prints_a_line_for_every_fact(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    facts = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert facts["nbgrad"] == version("nbgrad")
    for package in ("numpy", "numba", "llvmlite", "scipy", "optree", "opt_einsum"):
        assert facts[package] == version(package)
    assert {"python", "cpu", "threads", "blas", "cuda", "target", "cache"} <= set(facts)
    assert "nbgrad compiles for the CPU" in facts["cuda"]


def test_info_in_a_new_process_compiles_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    done = subprocess.run(
        [sys.executable, "-m", "nbgrad", "info"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NBGRAD_CACHE_DIR": str(folder)},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert f"{folder} (0 entries, 0.0 MiB)" in done.stdout


def test_info_says_when_no_cache_folder_is_safe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    monkeypatch.setenv("NBGRAD_CACHE_DIR", str(folder))
    assert main(["info"]) == 0
    assert "no folder that is writable and private to the user" in capsys.readouterr().out
