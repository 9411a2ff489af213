"""Old paths of modules still work, with a warning that names the new one."""

from __future__ import annotations

import pickle
import subprocess
import sys
from importlib import import_module

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.moved import FUNCTIONS, MOVED


def test_every_new_path_exists() -> None:
    for homes in MOVED.values():
        for home in homes.split():
            assert import_module(f"nbgrad.{home}").__doc__


@pytest.mark.parametrize(
    ("old", "name", "new"),
    [
        ("nbgrad.aliasing", "share", "nbgrad.record.shared_memory"),
        ("nbgrad.tensor", "Tensor", "nbgrad.record.tensor"),
        ("nbgrad.tensor", "from_numpy", "nbgrad.tensors.data"),
        ("nbgrad.jit", "jit", "nbgrad.compiled.jit"),
        ("nbgrad.numpy.ufuncs", "sin", "nbgrad.functions.elementwise.ufunc_functions"),
        ("nbgrad.device.simulator", "Simulator", "nbgrad.device.simulator.simulator"),
        ("nbgrad.graph.host", "run_host", "nbgrad.graph.host_functions"),
    ],
)
def test_an_old_path_warns_and_works(old: str, name: str, new: str) -> None:
    module = import_module(old)
    with pytest.warns(DeprecationWarning, match=f"{old} has moved to {new};"):
        found = getattr(module, name)
    assert found is getattr(import_module(new), name)


def test_a_name_that_never_was_there_is_an_error() -> None:
    with pytest.raises(AttributeError, match=r"has no attribute 'nonsense'; it has moved to nbgrad\.transforms\.grad"):
        _ = import_module("nbgrad.grad").nonsense


def test_functions_stay_functions() -> None:
    code = (
        "import warnings; warnings.simplefilter('ignore')\n"
        + "".join(f"import nbgrad.{name}\n" for name in sorted(FUNCTIONS))
        + "from nbgrad.grad import value_and_grad\nimport nbgrad\n"
        + "".join(f"assert callable(nbgrad.{name}), '{name}'\n" for name in sorted(FUNCTIONS))
        + "print(nbgrad.grad(lambda x: x * x)(3.0))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout.strip() == "6.0", done.stderr


@pytest.mark.filterwarnings("ignore:nbgrad.tensor has moved")
def test_pickles_of_earlier_releases() -> None:
    """What `pickle.dumps(nb.Tensor([1.0, 2.0]), 0)` gave before, with the old path in it."""
    old = pickle.dumps(nb.Tensor(np.array([1.0, 2.0])), 0)
    old = old.replace(b"nbgrad.tensors.data", b"nbgrad.tensor")
    assert b"nbgrad.tensor\n" in old
    assert pickle.loads(old).tolist() == [1.0, 2.0]
