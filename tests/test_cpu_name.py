"""NBGRAD_CPU_NAME: another CPU to compile for, or a sentence if LLVM knows no such CPU of this architecture."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest

SCRIPT = """
import numpy as np, nbgrad as nb
print(nb.grad(lambda x: np.sum(x**3))(np.array([2.0])))
"""
FOREIGN = "cortex-a72" if platform.machine() == "x86_64" else "znver4"


def run(name: str, folder: Path, script: str = SCRIPT) -> subprocess.CompletedProcess[str]:
    settings = {**os.environ, "NBGRAD_CPU_NAME": name, "NBGRAD_CACHE_DIR": str(folder)}
    return subprocess.run([sys.executable, "-c", script], env=settings, capture_output=True, text=True, check=False)


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("name", ["nonsense", FOREIGN, "help", "native", "+avx2", "pentium4"])
def test_names_that_are_none(name: str, tmp_path: Path) -> None:
    """Of no CPU, of another architecture, LLVM's own options, and a CPU that has only 32 bits."""
    done = run(name, tmp_path)
    assert done.returncode == 1, done.stderr
    last = done.stderr.splitlines()[-1]
    assert last.startswith(f"nbgrad.errors.ArgumentError: NBGRAD_CPU_NAME is {name!r}, but LLVM knows no such CPU")
    assert "recognized" not in done.stderr and "LLVM ERROR" not in done.stderr
    assert done.stdout == ""


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("name", [llvm.get_host_cpu_name(), "generic", ""])
def test_names_that_are_known(name: str, tmp_path: Path) -> None:
    done = run(name, tmp_path)
    assert (done.returncode, done.stdout) == (0, "[12.]\n"), done.stderr


def test_what_is_loaded_asks_nobody(tmp_path: Path) -> None:
    """Another process is started only to compile."""
    script = SCRIPT + "import sys\nprint('subprocess' in sys.modules)\n"
    assert [run("generic", tmp_path, script).stdout.split()[-1] for _ in range(2)] == ["True", "False"]


def test_a_bad_name_can_be_mended(tmp_path: Path) -> None:
    """The error can be caught, and says the same again."""
    script = f"for _ in range(2):\n    try:\n        exec({SCRIPT!r})\n    except ValueError as e:\n        print(e)\n"
    done = run("nonsense", tmp_path, script)
    assert done.returncode == 0 and done.stdout.count("NBGRAD_CPU_NAME is 'nonsense'") == 2, done.stderr
