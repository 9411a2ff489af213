"""Benchmarks of a project's own gradients: errors, libraries, and the template as asv finds and runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.bench import Gradients
from nbgrad.bench.fresh_process import Growth
from nbgrad.bench.library_gradients import by_differences, in_other_words

TEMPLATE = Path(__file__).resolve().parents[1] / "asv_bench" / "template"
pytestmark = pytest.mark.unoptimized


def half(x: Any) -> Any:
    return 0.5 * x


def wave(parts: Any, weight: Any) -> Any:
    return weight * np.sum(np.sin(half(parts["x"])) * parts["y"])


def corner(parts: Any, weight: Any) -> Any:
    return np.sum(np.abs(parts["x"]).real) * np.abs(weight)


class Suite(Gradients):
    """The gradients of both, and one that is wrong."""

    functions: ClassVar[Mapping[str, Callable[..., Any]]] = {"wave": wave, "corner": corner}
    libraries = ("nbgrad", "differences", "wrong", "nowhere", "unknown")
    wrt = (0, 1)

    def arguments(self, function: str) -> tuple[Any, ...]:
        return {"x": np.array([0.5, -1.0]), "y": np.array([1.0, 2.0], np.float32)}, 3.0

    def gradient(self, function: str, library: str) -> Any:
        if library == "nowhere":
            import_module("nowhere")
        if library == "wrong":
            right = nb.jit(nb.grad(self.functions[function], (0, 1)))
            return lambda *arguments: (right(*arguments)[0], 1.1 * right(*arguments)[1])
        return super().gradient(function, library)


def error(function: str, library: str, steps: str = "complex") -> float:
    suite = type("Other", (Suite,), {"steps": steps})()
    suite.setup(function, library)
    return suite.track_error(function, library)


def test_errors_are_those_of_the_gradient() -> None:
    assert error("wave", "nbgrad") < 1e-7  # y is float32, and so is its slope
    assert 1e-3 < error("wave", "wrong") < 0.1
    assert error("wave", "wrong", "real") == pytest.approx(error("wave", "wrong"), rel=1e-6)
    assert error("corner", "nbgrad", "real") < 1e-9
    with pytest.raises(ValueError, match='Set steps = "real"'):
        error("corner", "nbgrad")
    with pytest.raises(ValueError, match="'complex' or 'real', not 'imaginary'"):
        error("wave", "nbgrad", "imaginary")


def test_differences_are_right_to_half_of_the_digits() -> None:
    slopes, by_weight = by_differences(wave, (0, 1))({"x": np.array([0.5, -1.0]), "y": np.array([1.0, 2.0])}, 3.0)
    np.testing.assert_allclose(slopes["x"], 1.5 * np.cos([0.25, -0.5]) * [1.0, 2.0], rtol=1e-6)
    np.testing.assert_allclose(by_weight, np.sin(0.25) + 2.0 * np.sin(-0.5), rtol=1e-6)


def test_libraries_that_are_missing_or_unknown() -> None:
    assert Suite.params == (("wave", "corner"), Suite.libraries) and Suite.param_names == ("function", "library")
    with pytest.raises(NotImplementedError, match="nowhere is not installed"):
        Suite().setup("wave", "nowhere")
    with pytest.raises(ValueError, match="'unknown', but only nbgrad, differences, jax, autograd are known here"):
        Suite().setup("wave", "unknown")


def test_another_module_in_place_of_numpy() -> None:
    """In the functions that a function calls, too; the originals stay."""
    namespace = SimpleNamespace(sin=lambda x: ("sin", x), sum=lambda x: x)
    other = in_other_words(lambda x: np.sum(np.sin(half(x))), namespace)
    assert other(2.0) == ("sin", 1.0)
    assert wave({"x": np.zeros(2), "y": np.ones(2)}, 1.0) == 0.0
    assert in_other_words(np.sin, namespace) is np.sin


def test_memory_that_was_given_back_counts() -> None:
    growth = Growth()
    np.ones(4_000_000)  # 30.5 MB
    assert 28.0 < growth.megabytes() < 60.0


AS_ASV = """
import json, sys
from asv_runner.discovery import disc_benchmarks, get_benchmark_from_name
from asv_runner._aux import update_sys_path
root = sys.argv[1]
update_sys_path(root)
found = {one.name: [one.type, one.unit, one.params] for one in disc_benchmarks(root) if one.check(root)}
results = {}
for name in ("track_kernels-0", "track_error-1", "track_error-3"):
    one = get_benchmark_from_name(root, f"gradients.Models.{name}")
    results[name] = None if one.do_setup() else one.do_run()
print(json.dumps([found, results]))
"""


def test_asv_finds_and_runs_the_template(tmp_path: Path) -> None:
    pytest.importorskip("asv_runner")
    environment = {**os.environ, "NBGRAD_CACHE_DIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", AS_ASV, str(TEMPLATE / "benchmarks")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    found, results = json.loads(done.stdout.splitlines()[-1])
    kinds = {name.removeprefix("gradients.Models."): tuple(one[:2]) for name, one in found.items()}
    assert kinds == {
        "time_gradient": ("time", "seconds"),
        "time_first_gradient": ("time", "seconds"),
        "time_first_gradient_again": ("time", "seconds"),
        "track_memory": ("track", "MB"),
        "track_kernels": ("track", "kernels"),
        "track_error": ("track", "relative"),
    }
    libraries = ["'nbgrad'", "'differences'", "'autograd'", "'jax'"]
    assert all(params == [["'misfit'", "'roughness'"], libraries] for _, _, params in found.values())
    assert results["track_kernels-0"] >= 1 and 1e-12 < results["track_error-1"] < 1e-4
