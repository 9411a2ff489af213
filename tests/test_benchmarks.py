"""The work that asv_bench measures is right: against NumPy, between libraries, and in forked processes; on GPUs too,
for which the simulator stands in."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.special

import nbgrad as nb
from nbgrad.info import cuda_devices

FOLDER = Path(__file__).resolve().parents[1] / "asv_bench"
sys.path.insert(0, str(FOLDER))
try:
    import devices
    import kernel_peers
    import peers
    from benchmarks import (
        by_hand,
        cells,
        convolutions,
        device_agreement,
        device_costs,
        device_libraries,
        device_tasks,
        kernel_programs,
        spellings,
    )
    from benchmarks import devices as device_benchmarks
    from benchmarks.libraries import Library, NbGrad
    from benchmarks.tasks import TASKS
finally:
    sys.path.remove(str(FOLDER))


pytestmark = pytest.mark.unoptimized


class Plain(Library):
    """NumPy and SciPy alone, in float64."""

    def __init__(self) -> None:
        super().__init__(np)
        self.erf = scipy.special.erf

    def convolve(self, x: Any, kernel: Any) -> Any:
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
        return np.einsum("bchwij,ocij->bohw", windows, kernel)

    def pool(self, x: Any) -> Any:
        b, c, h, w = x.shape
        return x.reshape(b, c, h // 2, 2, w // 2, 2).max(axis=(3, 5))


SMALL = {"layer": convolutions.layer(2, 3, 5, "float64"), "residual": convolutions.residual(1, 2, 4, "float64")}
LONG = {"ode": pytest.mark.slow}  # a thousand steps are compiled as one program
BY_HAND = {"stencil": pytest.mark.slow}  # Numba compiles it for ten seconds


@pytest.mark.sampled(of=10)
@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG.get(name, ())) for name in TASKS])
def test_results_of_tasks_are_those_of_differences(name: str) -> None:
    """Values are NumPy's; derivatives along a random direction are central differences."""
    task, plain = TASKS[name], Plain()
    call, outputs = NbGrad().prepare(name)
    found = [np.asarray(x, np.float64) for x in outputs(call())]
    inputs = [np.asarray(x, np.float64) if x.dtype.kind == "f" else x for x in task.arrays()]
    rng = np.random.default_rng(1)
    ways = [rng.standard_normal(inputs[k].shape) for k in task.wrt]

    def moved(step: float) -> Any:
        there = list(inputs)
        for k, way in zip(task.wrt, ways, strict=True):
            there[k] = inputs[k] + step * way
        return task.function(plain, *(there[:-1] if task.what == "hvp" else there))

    if task.what == "value_and_grad":
        np.testing.assert_allclose(found.pop(0), moved(0.0), rtol=max(task.tolerance, 1e-12))
    if task.what == "hvp":
        ways = [inputs[-1]]
        want = (moved(1e-3) - 2.0 * moved(0.0) + moved(-1e-3)) / 1e-6
    else:
        step = 1e-6 if name in ("mlp", "convolution") else 1e-5  # a small step does not cross the bends of ReLU
        want = (moved(step) - moved(-step)) / (2.0 * step)
    along = (
        found[0] @ ways[0] if task.what == "jacobian" else sum(np.vdot(g, w) for g, w in zip(found, ways, strict=True))
    )
    np.testing.assert_allclose(along, want, rtol=max(10 * task.tolerance, 1e-5))


@pytest.mark.parametrize("name", SMALL)
def test_convolutions_are_those_of_differences(name: str) -> None:
    task, plain = SMALL[name], Plain()
    call, outputs = NbGrad().prepare(task)
    value, *gradients = outputs(call())
    inputs, rng = task.arrays(), np.random.default_rng(2)
    ways = [rng.standard_normal(inputs[k].shape) for k in task.wrt]

    def moved(step: float) -> Any:
        there = [x + step * way for x, way in zip(inputs, ways, strict=False)]
        return task.function(plain, *there, *inputs[len(ways) :])

    np.testing.assert_allclose(value, moved(0.0), rtol=1e-12)
    along = sum(np.vdot(g, way) for g, way in zip(gradients, ways, strict=True))
    np.testing.assert_allclose(along, (moved(1e-6) - moved(-1e-6)) / 2e-6, rtol=1e-6)


@pytest.mark.parametrize("name", [pytest.param(name, marks=BY_HAND.get(name, ())) for name in by_hand.FUNCTIONS])
def test_gradients_by_hand_agree(name: str) -> None:
    (call, outputs), (other, others) = NbGrad().prepare(name), by_hand.ByHand().prepare(name)
    for mine, theirs in zip(outputs(call()), others(other()), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9 * np.max(np.abs(theirs)))


def test_cells_do_the_same_work() -> None:
    (call, outputs), (other, others) = cells.prepare("mlp", "nbgrad"), NbGrad().prepare("mlp")
    for mine, theirs in zip(outputs(call()), others(other()), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)
    assert cells.prepare("gradnet", "nbgrad")[0]().tolist() == [6.0]
    x, w = np.linspace(0.0, 1.0, 8), np.linspace(0.5, 1.5, 8)
    slope = np.ones(8)
    for _ in range(5):
        slope *= np.cos(x) * w * (1.0 - np.tanh(np.sin(x) * w + 0.5) ** 2)
        x = np.tanh(np.sin(x) * w + 0.5)
    np.testing.assert_allclose(cells.prepare("cell", "nbgrad")[0](), slope, rtol=1e-5)


# ----- The comparison with other libraries -----


def test_a_table_is_written_between_the_markers(tmp_path: Path) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(
        "a\n<!-- benchmarks -->\nold\n<!-- /benchmarks -->\nb\n<!-- networks -->\nkept\n<!-- /networks -->\n"
    )
    readme = tmp_path / "README.md"
    readme.write_text("a\n<!-- excerpt -->\nold\n<!-- /excerpt -->\n")
    command = [sys.executable, str(FOLDER / "peers.py"), "--libraries", "nbgrad", "by-hand", "--rounds", "1"]
    command += ["--budget", "0.01", "--tasks", "rosenbrock", "start", "--page", str(page)]
    command += ["--excerpt", str(readme)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = page.read_text().splitlines()
    assert lines[:3] == ["a", "<!-- benchmarks -->", "| task | nbgrad | Numba by hand | MB: nbgrad |"]
    assert lines[4].startswith("| Rosenbrock, 10 float64 | ") and "(" in lines[4]
    assert lines[5].startswith("| fresh process")
    assert "kept" in lines and "old" not in lines
    assert readme.read_text().splitlines()[4] == "| " + " | ".join(lines[4][2:-2].split(" | ")[:5]) + " |"


def test_units_ratios_and_gaps() -> None:
    measured = {
        "rosenbrock": {"nbgrad": {"seconds": 5e-7, "memory": 7.4}, "jax": {"seconds": 1.2345e-5, "memory": 24.0}},
        "fused": {"nbgrad": {"seconds": 0.01, "memory": 8.0}},
        "chain": {"nbgrad": {"seconds": 2.0}, "jax": {"seconds": 0.9999}},
    }
    assert peers.table(["rosenbrock", "fused", "chain", "ode"], measured).splitlines() == [
        "| task | nbgrad | JAX | MB: nbgrad, JAX |",
        "| --- | --- | --- | --- |",
        "| Rosenbrock, 10 float64 | 0.5 us | 12.3 us (24.7) | 7, 24 |",
        "| sum(log(exp(x\\*y) + sin(x)\\*\\*2 + 1)), 1e6 | 10 ms |  | 8, - |",
        "| compile the gradient of a chain of 2000 operations | 2 s | 1000 ms (0.5) |  |",
    ]


def test_results_that_differ_stop_the_run(tmp_path: Path) -> None:
    for library, value in (("nbgrad", 1.0), ("jax", 1.0 + 1e-11), ("torch", 1.1)):
        np.savez(tmp_path / f"ode-{library}.npz", np.array([value]))
    peers.compare("ode", {"nbgrad": {}, "jax": {}}, str(tmp_path))
    with pytest.raises(SystemExit, match="ode: torch and nbgrad differ by 9"):
        peers.compare("ode", {"nbgrad": {}, "torch": {}}, str(tmp_path))


def test_the_page_has_the_markers_and_the_readme_its_lines() -> None:
    page = (FOLDER.parent / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for group in peers.GROUPS:
        assert page.count(f"<!-- {group} -->") == page.count(f"<!-- /{group} -->") == 1
    readme = (FOLDER.parent / "README.md").read_text(encoding="utf-8")
    assert peers.between_markers(readme, "excerpt", peers.excerpt(page)) == readme
    assert peers.excerpt(page).count("\n") == len(peers.EXCERPT) + 1


# ----- Whole kernels -----


@pytest.mark.sampled(of=5)
@pytest.mark.parametrize("name", kernel_programs.KERNELS)
def test_gradients_of_kernels_are_those_of_differences(name: str) -> None:
    """Along a random direction, of the kernel itself: Numba's results, nothing of nbgrad's."""
    row = kernel_programs.program(name)
    _, gradient = kernel_programs.prepare(row)
    found = gradient()
    found = found if isinstance(found, tuple) else (found,)
    rng = np.random.default_rng(1)
    ways = [rng.standard_normal(g.shape) for g in found]
    written = {"push": 0, "dynamic": 3, "tridiagonal": 3}.get(name, -1)

    def moved(step: float) -> Any:
        there = [x.copy() if isinstance(x, np.ndarray) else x for x in row.arguments]
        for k, way in zip(row.wrt, ways, strict=True):
            there[k] += step * way
        returned = row.kernel(*there)
        result = there[written] if returned is None else np.asarray(returned)
        return np.sum(kernel_programs.weights(result.shape) * result)

    want = (moved(1e-6) - moved(-1e-6)) / 2e-6
    np.testing.assert_allclose(sum(np.vdot(g, w) for g, w in zip(found, ways, strict=True)), want, rtol=1e-5)


def test_peers_compute_what_the_kernels_compute() -> None:
    """Their formulas, with NumPy."""
    for name in kernel_peers.PROGRAMS["jax"]:
        row = kernel_programs.program(name)
        given = [x.copy() if isinstance(x, np.ndarray) else x for x in row.arguments]
        found = row.kernel(*given)
        if name == "lennard-jones":
            want = kernel_peers.lennard_jones(np, given[0], *np.triu_indices(len(given[0]), 1))
        elif name == "spline":
            found, want = given[-1], kernel_peers.spline(np, *given[:-1])
        else:
            number, omega, *layers, found = given
            state = kernel_peers.start(np, number, *layers[1:])
            for m in range(len(layers[0]) - 2, -1, -1):
                state = kernel_peers.layer(np, state, [x[m] for x in layers], number, omega)
            want = state[0]
        np.testing.assert_allclose(found, want, rtol=1e-9)


def test_the_command_for_kernels() -> None:
    command = [sys.executable, str(FOLDER / "kernels_beside.py"), "--kernels", "recursion", "--budget", "0.01"]
    done = subprocess.run([*command, "--libraries", "nbgrad"], capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [line.split(" | ") for line in done.stdout.splitlines() if line.startswith("| recursion")]
    assert [len(row) for row in rows] == [5, 6] and rows[1][1] == "nbgrad (Numba kernel)"


# ----- GPUs -----


@pytest.mark.parametrize("name", [name for name, task in device_tasks.TASKS.items() if task.by_hand])
def test_what_is_written_by_hand_is_what_is_differentiated(name: str) -> None:
    task = device_tasks.TASKS[name]
    arrays = task.arrays(2000)
    module = SimpleNamespace(**{name: getattr(np, name) for name in dir(np) if name[:1] != "_"}, asnumpy=np.asarray)
    plain = device_libraries.CuPy(module)
    plain.erf = scipy.special.erf
    wide = [a.astype(float) if a.dtype.kind == "f" else a for a in arrays]
    expected = device_libraries.samples(plain, device_libraries.prepare(plain, task, wide)())
    with nb.cuda.simulator():
        ours = device_libraries.NbGradOnDevice()
        found = device_libraries.samples(ours, device_libraries.prepare(ours, task, arrays)())
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=max(task.tolerance, 1e-5) * np.max(np.abs(other)))


def test_floats_between_two_numbers() -> None:
    one = np.array([1.0, -0.0, np.nan, -1.0, np.inf], np.float32)
    other = np.array([np.nextafter(np.float32(1), np.float32(2)), 0.0, np.nan, -1.0, np.inf], np.float32)
    assert device_agreement.apart(one, other) == 1.0 and device_agreement.apart(one, one) == 0.0
    smallest = np.float32([1e-45])
    assert device_agreement.apart(smallest, -smallest) == 2.0
    assert device_agreement.apart(smallest, -smallest, near=1.0) < 1e-30
    assert device_agreement.apart(np.float16([np.inf]), np.float16([65504])) == 1.0
    assert device_agreement.apart(one, np.nan_to_num(one)) == math.inf
    assert device_agreement.apart(np.arange(3), np.arange(1, 4)) == math.inf


def test_the_programs_have_so_many_kernels() -> None:
    for count in device_costs.PROGRAMS:
        with device_costs.recorded() as recorder:
            call = device_costs.program(count, into=False)
            before = sum(recorder.counts.values())
            call()
            assert sum(recorder.counts.values()) == before + count


def test_what_was_to_be_reached() -> None:
    measured = {
        "launch 10": [2e-5, 3e-5],
        "agreement": {"float32": {"exp": 3.0, "polygamma": 9.0}},
        "light": {"nbgrad": {"seconds": 1.0}, "copy": {"seconds": 0.9}, "jax": {"seconds": 0.5}},
    }
    found = {text: (number, limit) for text, number, limit in devices.goals(measured) if number is not None}
    assert found["call of 10 kernels, us"] == (pytest.approx(20.0), 15.0)
    assert found["largest difference from the CPU but for polygamma, ULP"] == (3.0, 4.0)
    assert found["light: time relative to copy"] == (pytest.approx(1 / 0.9), 1 / 0.85)
    assert found["light: time relative to JAX"] == (2.0, 1.0)
    assert len(found) == 4


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Times in the simulator mean nothing."""
    monkeypatch.setenv("NBGRAD_OPTIMIZE", "0")


@pytest.mark.slow
@pytest.mark.usefixtures("quick")
def test_the_command_for_gpus_in_the_simulator(tmp_path: Path) -> None:
    readme, measured = tmp_path / "README.md", tmp_path / "measured.json"
    readme.write_text("a\n<!-- devices -->\nold\n<!-- /devices -->\nb\n")
    command = [sys.executable, str(FOLDER / "devices.py"), "--simulate", "--rounds", "1", "--budget", "0.01"]
    command += ["--parts", "launch", "elementwise", "routines", "--tasks", "light", "cumsum"]
    command += ["--libraries", "nbgrad", "copy", "cupy", "--readme", str(readme), "--json", str(measured)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = readme.read_text().splitlines()
    assert lines[0] == "a" and lines[-1] == "b" and "old" not in lines
    assert any(line.startswith("| gradient of x\\*y + tanh(x\\*y); 2 of 4000 float32 | ") for line in lines)
    assert any(line.startswith("| cumsum; 400 float32 | ") for line in lines)
    assert json.loads(measured.read_text())["light"]["copy"]["seconds"] > 0
    assert "CuPy is skipped" in done.stderr or "CuPy" in lines[8]


@pytest.mark.usefixtures("quick")
def test_a_library_that_fails_is_left_out(tmp_path: Path) -> None:
    """Here its interpreter ends at once; nbgrad's times are there all the same."""
    measured = tmp_path / "measured.json"
    command = [sys.executable, str(FOLDER / "devices.py"), "--simulate", "--rounds", "1", "--budget", "0.01"]
    command += ["--parts", "elementwise", "--tasks", "light", "--libraries", "nbgrad", "torch"]
    command += ["--python", "torch=false", "--json", str(measured)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 1 and done.stderr.startswith("PyTorch, light: "), done.stderr[-3000:]
    assert list(json.loads(measured.read_text())["light"]) == ["nbgrad"]


@pytest.mark.skipif(bool(cuda_devices()), reason="there is a CUDA device")
def test_the_command_for_gpus_without_one() -> None:
    command = [sys.executable, str(FOLDER / "devices.py"), "--parts", "launch", "elementwise", "agreement"]
    environment = {name: value for name, value in os.environ.items() if name != "NBGRAD_CUDA_SIMULATOR"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stderr.splitlines() == ["No CUDA device: only the parts that need none are run (compile, launch)."]
    assert "10 kernels on 100 float32" in done.stdout and "tanh" not in done.stdout
    done = subprocess.run([*command, "--needs-gpu"], capture_output=True, text=True, timeout=240, env=environment)
    assert done.returncode == 1 and "nbgrad.errors.DeviceError: " in done.stderr and not done.stdout
    with pytest.raises(NotImplementedError, match="no CUDA device"):
        device_benchmarks.OnADevice().setup("light", "nbgrad")
    with pytest.raises(NotImplementedError, match="no CUDA device"):
        device_benchmarks.CallOnADevice().setup(1, False)


# ----- asv forks -----

FORKED = f"""
import os, sys
sys.path.insert(0, {str(FOLDER)!r})
import numpy as np, nbgrad as nb
from benchmarks import libraries
nb.set_num_threads(2)
library = libraries.NbGrad()
call, outputs = library.prepare("fused")
before = outputs(call())
for name in ("hvp", "bodies"):
    child = os.fork()
    if child == 0:
        try:
            assert all(np.array_equal(a, b) for a, b in zip(before, outputs(call())))
            again, others = library.prepare(name)
            assert all(np.isfinite(a).all() for a in others(again()))
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print(nb.counters["compiled"])
"""


@pytest.mark.fork
def test_tasks_in_children_of_a_process_that_has_compiled(tmp_path: Path) -> None:
    """As asv's fork server does: kernels are loaded, threads are used, the cache is on, and then the process forks.

    What a child compiles is in the cache for the next process.
    """
    environment = {**os.environ, "NBGRAD_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=240, env=environment
        )
        assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip() == "0"


def test_both_spellings_of_a_function_have_one_gradient() -> None:
    rng = np.random.default_rng(0)
    arguments = rng.normal(size=(6, 4)), rng.normal(size=(8, 5)), rng.normal(size=8)
    one, other = (nb.grad(spellings.SPELLINGS[words])(*arguments) for words in ("numpy", "ops"))
    np.testing.assert_allclose(one, other, rtol=1e-12)
    nb.check_grads(spellings.in_numpy, arguments, order=1)
