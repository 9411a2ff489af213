"""`.ci/gpu` tells the truth whatever becomes of the tests and benchmarks that it runs: stubs of both fail, hang, die.

One test runs the command itself in the simulator.
"""

from __future__ import annotations

import ast
import json
import os
import signal
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from nbgrad.info import cuda_devices

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / ".ci"))
try:
    import gpu_benchmarks
    import gpu_install
    import gpu_tests
    from gpu_process import Setup
    from gpu_report import Report
finally:
    sys.path.remove(str(ROOT / ".ci"))

LATER = 300.0


def arranged(folder: Path, **files: str) -> Setup:
    """A repository whose tests are these files."""
    root, work = folder / "root", folder / "work"
    (root / "tests").mkdir(parents=True)
    work.mkdir()
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\nmarkers = ["gpu: needs one"]\n')
    for name, text in files.items():
        (root / "tests" / f"{name}.py").write_text(text)
    return Setup(work, root, False, threading.Event())


def results(setup: Setup, limit: float = 60.0, seconds: float = LATER) -> tuple[Report, dict[str, Any]]:
    """The report of a run of all tests, and the entry of each by its function's name."""
    report = Report(setup.work / "out")

    def told(entry: dict[str, Any]) -> None:
        report.add("tests", entry)

    names = report.expect("tests", gpu_tests.collect(setup, told))
    gpu_tests.run_tests(setup, names, time.monotonic() + seconds, limit, 2, told, lambda: report.works(gpu_tests.FIRST))
    report.state("finished")
    return report, {name.rpartition("::")[2]: entry for name, entry in report.content["tests"].items()}


def outcomes(entries: dict[str, Any]) -> dict[str, str]:
    return {name: entry["outcome"] for name, entry in entries.items()}


# ----- Tests -----

TROUBLE = """
import os, signal, time, pytest
pytestmark = pytest.mark.gpu

@pytest.fixture
def broken():
    raise ValueError("no fixture today")

@pytest.fixture
def breaks_at_the_end():
    yield
    raise ValueError("it ended badly")

def test_passes(): pass
def test_fails():
    number = 1 + 1
    assert number == 3
def test_with_a_broken_fixture(broken): pass
def test_with_a_bad_end(breaks_at_the_end): pass
def test_that_kills(): os.kill(os.getpid(), signal.SIGKILL)
def test_after_death(): pass
def test_that_exits():
    print("goodbye", flush=True)
    os._exit(7)
def test_that_hangs(): time.sleep(600)
def test_after_the_hang(): pass
def test_skipped(): pytest.skip("there is no such library")
"""
FINE = """
import pytest
@pytest.mark.gpu
@pytest.mark.parametrize("k", range(3))
def test_each(k): pass
def test_that_needs_no_gpu(): assert False
"""


def test_each_test_has_its_own_result(tmp_path: Path) -> None:
    setup = arranged(tmp_path, test_trouble=TROUBLE, test_fine=FINE, test_other="def test_other(): assert False\n")
    report, entries = results(setup, limit=4.0)
    assert outcomes(entries) == {
        "test_each[0]": "passed",
        "test_each[1]": "passed",
        "test_each[2]": "passed",
        "test_passes": "passed",
        "test_fails": "failed",
        "test_with_a_broken_fixture": "failed",
        "test_with_a_bad_end": "failed",
        "test_that_kills": "died",
        "test_after_death": "passed",
        "test_that_exits": "died",
        "test_that_hangs": "timed out",
        "test_after_the_hang": "passed",
        "test_skipped": "skipped",
    }
    assert "assert 2 == 3" in entries["test_fails"]["why"] and "number = 1 + 1" in entries["test_fails"]["text"]
    assert entries["test_with_a_broken_fixture"]["why"] == "ValueError: no fixture today"
    assert entries["test_with_a_bad_end"]["why"] == "ValueError: it ended badly"
    assert entries["test_that_kills"]["why"] == "the process was killed by SIGKILL"
    assert entries["test_that_exits"]["why"] == "the process ended with code 7"
    assert "goodbye" in entries["test_that_exits"]["text"]
    assert entries["test_that_hangs"]["why"] == "took longer than 4 s"
    assert "in test_that_hangs" in entries["test_that_hangs"]["text"]  # Python's own account of where it was
    assert entries["test_skipped"]["why"] == "there is no such library"
    assert not report.passed()
    assert report.summary() == "tests: 6 passed, 3 failed, 2 died, 1 timed out, 1 skipped; benchmarks: none; finished"
    assert json.loads((report.folder / "report.json").read_text()) == report.content
    page = (report.folder / "report.md").read_text()
    for told in ("assert 2 == 3", "goodbye", "killed by SIGKILL", "there is no such library: 1: "):
        assert told in page


def test_a_lost_device_costs_one_test(tmp_path: Path) -> None:
    text = """
import sys, types, pytest
pytestmark = pytest.mark.gpu
def fault(): raise RuntimeError("the context is lost")
def test_before(): pass
def test_that_faults():
    sys.modules["nbgrad"] = types.SimpleNamespace(cuda=types.SimpleNamespace(synchronize=fault))
    fault()
def test_next(): assert "nbgrad" not in sys.modules
"""
    _, entries = results(arranged(tmp_path, test_trouble=text))
    assert outcomes(entries) == {"test_before": "passed", "test_that_faults": "failed", "test_next": "passed"}


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    broken = "import there_is_no_such_module\nimport pytest\npytestmark = pytest.mark.gpu\n"
    report, entries = results(arranged(tmp_path, test_broken=broken, test_fine=FINE))
    unread = entries.pop("tests/test_broken.py")
    assert unread["outcome"] == "failed" and "there_is_no_such_module" in unread["why"]
    assert set(outcomes(entries).values()) == {"passed"} and len(entries) == 3 and not report.passed()


def test_a_process_that_dies_after_its_tests(tmp_path: Path) -> None:
    text = "import atexit, os, pytest\n@pytest.mark.gpu\ndef test_it(): atexit.register(os._exit, 11)\n"
    report, _ = results(arranged(tmp_path, test_end=text))
    assert outcomes(report.content["tests"]) == {
        "tests/test_end.py::test_it": "passed",
        "the end of the process after tests/test_end.py::test_it": "died",
    }
    assert not report.passed()


def test_pytest_that_does_not_begin(tmp_path: Path) -> None:
    setup = arranged(tmp_path, test_fine=FINE)
    names = gpu_tests.collect(setup, lambda entry: None)
    (setup.root / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = ['--no-such-option']\n")
    told: list[dict[str, Any]] = []
    gpu_tests.run_tests(setup, names, time.monotonic() + LATER, 60.0, 1, told.append, lambda: True)
    assert [entry["outcome"] for entry in told] == ["not run"] * 3
    assert told[0]["why"] == "pytest ended with code 4 before its first test" and "--no-such-option" in told[0]["text"]
    told.clear()
    assert gpu_tests.collect(setup, told.append) == []
    assert told[0]["outcome"] == "died" and "--no-such-option" in told[0]["text"]


def test_the_time_is_up(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    slow = f"""
import time, pathlib, pytest
pytestmark = pytest.mark.gpu
def test_slow():
    pathlib.Path({str(begun)!r}).touch()
    time.sleep(600)
def test_next(): pass
"""
    setup = arranged(tmp_path, test_slow=slow)

    def stop() -> None:
        while not begun.exists():
            time.sleep(0.02)
        setup.stop.set()

    threading.Thread(target=stop, daemon=True).start()
    report, entries = results(setup)
    assert outcomes(entries) == {"test_slow": "not run", "test_next": "not run"} and not report.passed()
    assert entries["test_slow"]["why"].startswith("cut off after ") and "turn" in entries["test_next"]["why"]
    report, entries = results(setup._replace(stop=threading.Event()), seconds=-1.0)
    assert [entry["why"] for entry in entries.values()] == ["its turn did not come"] * 2 and not report.passed()


def test_what_passed_before_is_not_run_again(tmp_path: Path) -> None:
    first, _ = results(arranged(tmp_path / "a", test_fine=FINE.replace("k): pass", "k): assert k")))
    second = Report(tmp_path / "out")
    with pytest.raises(SystemExit, match="report of a GPU"):
        second.earlier(first.folder / "report.json", simulator=True)
    second.earlier(first.folder / "report.json", simulator=False)
    names = [f"tests/test_fine.py::test_each[{k}]" for k in range(4)]
    assert second.expect("tests", names) == [names[0], names[3]]
    for name in (names[0], names[3]):
        assert not second.passed()
        second.add("tests", {"id": name, "outcome": "passed"})
    second.state("finished")
    assert second.passed() and second.counts("tests") == {"passed": 4}


def test_where_nothing_works_no_time_is_spent(tmp_path: Path) -> None:
    marked = "import pytest\npytestmark = pytest.mark.gpu\n"
    first = marked + "def test_a(): raise ValueError('no driver (at x.py:3)')\n"
    first += "def test_b(): raise ValueError('no driver (at x.py:4)')\n"
    setup = arranged(tmp_path, test_gpu_smoke=first, test_fine=FINE)
    report, entries = results(setup)
    assert [*outcomes(entries).values()] == ["not run"] * 3 + ["failed"] * 2
    assert entries["test_each[0]"]["why"] == gpu_tests.NOTHING
    assert report.page().count("failed: ValueError: no driver\n  2: ") == 1  # the same failure, at two places
    (setup.root / "tests" / "test_gpu_smoke.py").write_text(first + "def test_c(): pass\n")
    _, entries = results(setup)
    assert [*outcomes(entries).values()].count("passed") == 4


# ----- The order -----


def test_the_order_names_tests_that_exist() -> None:
    files = {path.name for path in gpu_tests.candidates(ROOT / "tests")}
    assert {"test_gpu.py", "test_gpu_smoke.py", "test_own_kernels.py"} <= files
    for start in [gpu_tests.FIRST.removeprefix("tests/"), *gpu_tests.ORDER]:
        file, _, function = start.partition("::")
        assert file in files and f"def {function}" in (ROOT / "tests" / file).read_text()
    for part in gpu_tests.ALONE:
        assert part in (ROOT / "tests" / "test_gpu.py").read_text()


def test_smoke_first_and_what_fills_the_device_last() -> None:
    names = ["test_new.py::test_x", "test_gpu.py::test_a_full_device_is_an_error_and_work_goes_on[gpu]"]
    names += ["test_gpu.py::test_primitives[gpu-add]", "test_gpu.py::test_loops[gpu]", "test_gpu_smoke.py::test_a_map"]
    names = [f"tests/{name}" for name in names]
    assert gpu_tests.batches(names) == ([names[4]], [[names[3], names[2], names[0]]], [[names[1]]])
    many = [f"tests/test_gpu.py::test_primitives[{k}]" for k in range(100)]
    assert [name for batch in gpu_tests.batches(many)[1] for name in batch] == many


# ----- Benchmarks -----

DEVICES = """
import json, sys, time
assert sys.argv.pop(1) == "--needs-gpu"
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
part, task = given["--parts"], given.get("--tasks", "")
print("CuPy is skipped: No module named 'cupy'", file=sys.stderr)
if task == "rows":
    sys.exit("nbgrad, rows: out of memory")
if task == "cumsum":
    sys.exit()
print("| task | nbgrad |\\n| --- | --- |\\n| it | 1 ms |")
print("reached  the least: 1 (at most 2)" if part == "launch" else "MISSED   the most: 3 (at most 2)", flush=True)
if task == "mlp":
    time.sleep(600)
with open(given["--json"], "w") as file:
    json.dump({part: {"nbgrad": {"seconds": 1e-3}}}, file)
"""


def test_benchmarks(tmp_path: Path) -> None:
    setup = arranged(tmp_path)
    (setup.root / "asv_bench").mkdir()
    (setup.root / "asv_bench" / "devices.py").write_text(DEVICES)
    report = Report(tmp_path / "out")
    steps = report.expect(
        "benchmarks", ["launch", "elementwise light", "networks rows", "networks mlp", "routines cumsum"]
    )
    until = time.monotonic() + LATER
    gpu_benchmarks.run_benchmarks(setup, steps, until, 4.0, lambda entry: report.add("benchmarks", entry))
    gpu_benchmarks.run_benchmarks(setup, ["compile"], 0.0, 4.0, lambda entry: report.add("benchmarks", entry))
    report.state("finished")
    entries = report.content["benchmarks"]
    assert list(outcomes(entries).values()) == ["ran", "ran", "failed", "timed out", "failed", "not run"]
    assert entries["launch"]["measured"] == {"launch": {"nbgrad": {"seconds": 1e-3}}}
    assert entries["networks rows"]["why"] == "nbgrad, rows: out of memory"
    assert entries["routines cumsum"]["why"] == "nothing was measured"
    assert entries["networks mlp"]["table"][-1] == "| it | 1 ms |"  # measured before it hung
    assert "goals: 1 of 3 reached" in report.summary() and not report.passed()
    page = report.page()
    assert "- MISSED   the most: 3 (at most 2)" in page and page.count("CuPy is skipped") == 1


# ----- Packages -----


def test_requirements_cover_what_the_tests_import() -> None:
    waiting = [*gpu_tests.candidates(ROOT / "tests"), ROOT / "tests" / "conftest.py"]
    read: set[Path] = set()
    imported: set[str] = set()
    while waiting:
        path = waiting.pop()
        read.add(path)
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Import):
                imported |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add(str(node.module).partition(".")[0])
            elif isinstance(node, ast.ImportFrom):
                names = [node.module] if node.module else [alias.name for alias in node.names]
                waiting += [file for name in names if (file := path.with_name(f"{name}.py")) not in read]
    assert {"numpy", "pytest", "hypothesis"} <= imported and len(read) > 9
    assert imported - set(sys.stdlib_module_names) - {"nbgrad"} <= set(gpu_install.requirements())


@pytest.mark.slow
def test_wheels_are_installed_where_they_are_missing(tmp_path: Path) -> None:
    wheels, site = tmp_path / "wheels", tmp_path / "site"
    wheels.mkdir()
    about = "nbgrad_stub-1.5.dist-info"
    with zipfile.ZipFile(wheels / "nbgrad_stub-1.5-py3-none-any.whl", "w") as wheel:
        wheel.writestr("nbgrad_stub.py", "")
        wheel.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: nbgrad-stub\nVersion: 1.5\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    assert gpu_install.missing(wheels, ["pytest", "nbgrad-stub>=1"]) == (["nbgrad-stub==1.5"], "")
    for name in ("nbgrad", "kernels"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text("")
    wanted = {"nbgrad_stub": "nbgrad_stub>=1", "numpy": "numpy>=999"}
    done = gpu_install.install(site, wheels, tmp_path, wanted)
    assert done["packages"] == ["nbgrad-stub==1.5"] and [text[:10] for text in done["unmet"]] == ["numpy>=999"]
    assert (site / "nbgrad_stub.py").exists() and (site / "nbgrad" / "kernels" / "__init__.py").exists()


# ----- The command -----


def started(folder: Path, *more: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(ROOT / ".ci" / "gpu"), "--simulator", "--out", str(folder), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the simulator is for x86-64")
def test_the_command_in_the_simulator(tmp_path: Path) -> None:
    process = started(tmp_path / "out", "--only", "tests", "--match", r"smoke.py::test_(a_map|a_sum)\[")
    told, _ = process.communicate(timeout=300)
    assert process.returncode == 0, told
    assert "tests: 2 passed; benchmarks: none; finished" in told
    found = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [entry["outcome"] for entry in found["tests"].values()] == ["passed"] * 2
    assert found["facts"]["device"] == "simulated" and found["facts"]["packages"]["numpy"]
    assert (tmp_path / "out" / "report.md").read_text().startswith("# nbgrad on the simulator")


@pytest.mark.skipif(bool(cuda_devices()), reason="there is a CUDA device")
def test_without_a_device_it_says_so(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / ".ci" / "gpu"), "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 2 and "There is no CUDA device" in done.stderr, done.stderr
    assert json.loads((tmp_path / "report.json").read_text())["state"].startswith("not begun: ")


def test_a_command_that_is_cut_off_leaves_a_report(tmp_path: Path) -> None:
    process = started(tmp_path / "out", "--only", "tests")
    path = tmp_path / "out" / "report.json"
    while not path.exists():
        assert process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    told, _ = process.communicate(timeout=300)
    assert process.returncode == 1 and "interrupted while " in told
    assert json.loads(path.read_text())["state"].startswith("interrupted while ")
