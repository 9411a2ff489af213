"""Packages without a network: a folder of wheels, and what of it a machine needs.

In: a folder. Out: `wheels` fills it from a package index, on a machine that has one; `install` puts what an interpreter
lacks, and nbgrad itself, into a folder for PYTHONPATH. The interpreter's own packages stay as they are. Called by
.ci/gpu.
"""

from __future__ import annotations

import importlib
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from gpu_process import ROOT, run

SMALL = ("optree", "opt_einsum", "hypothesis", "mpmath", "pytest", "tqdm")
"""Packages of a few megabytes that a machine with CUDA libraries may lack."""
LARGE = ("numpy", "numba", "llvmlite", "scipy", "cuda-bindings", "cuda-pathfinder")
"""What it probably has; the folder gets them if they are named."""
MINUTES = 10
"""How long pip may take for one thing."""


def requirements(root: Path = ROOT) -> dict[str, str]:
    """What nbgrad and its tests for GPUs import, by name, with the versions of pyproject.toml."""
    try:
        toml: Any = importlib.import_module("tomllib")
    except ModuleNotFoundError:  # Python 3.10
        toml = importlib.import_module("pip._vendor.tomli")
    project = toml.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = [*project["dependencies"], *project["optional-dependencies"]["test"]]
    found = {re.split(r"[^\w-]", text, maxsplit=1)[0]: text.partition(";")[0] for text in listed}
    # Either major version does: the driver's decides.
    return {name: found[name] for name in (*SMALL, *LARGE)} | {name: name for name in LARGE if name.startswith("cuda")}


def platforms(machine: str) -> list[str]:
    """The tags of Linux wheels from glibc 2.39 down; pip wants each of them."""
    return [*[f"manylinux_2_{n}_{machine}" for n in range(39, 4, -1)], f"manylinux2014_{machine}", f"linux_{machine}"]


def wheels(folder: Path, python: str, machine: str, more: list[str]) -> str:
    """Fill a folder with the wheels of `SMALL`, what these need, and more packages by name.

    Returns a sentence that says how many there are and their size. Raises SystemExit with pip's words if it fails.
    """
    known = requirements()
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--only-binary=:all:", "--implementation", "cp", "--python-version", python, "--dest", str(folder)]
    for platform in platforms(machine):
        command += ["--platform", platform]
    done = run([*command, *[known[name] for name in SMALL], *[known.get(name, name) for name in more]], 60 * MINUTES)
    if done.returncode:
        raise SystemExit(f"pip could not fetch the wheels:\n{done.stderr.strip()}")
    files = sorted(folder.glob("*.whl"))
    return f"{len(files)} wheels, {sum(file.stat().st_size for file in files) / 2**20:.1f} MiB, in {folder}"


def missing(folder: Path | None, wanted: list[str]) -> tuple[list[str], str]:
    """The packages that pip would install for some requirements, as NAME==VERSION; or pip's reason why it cannot."""
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--disable-pip-version-check"]
    command += ["--no-index", "--report", "-", *(["--find-links", str(folder)] if folder else [])]
    done = run([*command, *wanted], 60 * MINUTES)
    if done.returncode:
        errors = [line for line in done.stderr.splitlines() if line.startswith("ERROR:")] or [done.stderr.strip()]
        return [], errors[-1].removeprefix("ERROR: ")
    packages = [entry["metadata"] for entry in json.loads(done.stdout)["install"]]
    return [f"{package['name']}=={package['version']}" for package in packages], ""


def install(site: Path, folder: Path | None, root: Path = ROOT, wanted: dict[str, str] | None = None) -> dict[str, Any]:
    """Put what is missing into `site`, from a folder of wheels, and nbgrad as an installation does.

    Parameters
    ----------
    site : Path
        Will be on PYTHONPATH.
    folder : Path or None
        The wheels; without, only what is not there is found out.
    root : Path
        The repository.
    wanted : dict, optional
        Requirements by name; those of pyproject.toml by default.

    Returns `packages`, what was installed, and `unmet`, a sentence for each requirement that cannot be met: the tests
    run all the same, and show what it is needed for.
    """
    site.mkdir(parents=True, exist_ok=True)
    listed = list((wanted or requirements(root)).values())
    packages, problem = missing(folder, listed)
    unmet: list[str] = []
    if problem:
        for requirement in listed:
            found, problem = missing(folder, [requirement])
            packages += [package for package in found if package not in packages]
            unmet += [f"{requirement}: {problem}"] if problem else []
    if packages:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index"]
        command += ["--find-links", str(folder), "--no-deps", "--no-compile", "--target", str(site), *packages]
        done = run(command, 60 * MINUTES)
        if done.returncode:
            unmet.append(done.stderr.strip())
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(root / "nbgrad", site / "nbgrad", ignore=ignore, dirs_exist_ok=True)
    shutil.copytree(root / "kernels", site / "nbgrad" / "kernels", ignore=ignore, dirs_exist_ok=True)
    return {"folder": folder and str(folder), "packages": packages, "unmet": unmet}
