"""The benchmarks beside other libraries of GPUs, one at a time, so that each leaves what it has measured.

In: a `Setup`, how long it may take, and a function that gets each result. Out: nothing. Called by .ci/gpu. Each is one
run of asv_bench/devices.py with one part, and one task where the part has tasks.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from gpu_process import Process, Setup

STEPS = (
    "launch",
    "elementwise light",
    "networks rows",
    "elementwise medium",
    "networks mlp",
    "loops heat",
    "loops oscillators",
    "routines matmul",
    "elementwise options",
    "routines cumsum",
    "routines sort",
    "routines scatter",
    "compile",
    "agreement",
)
"""Parts and tasks of devices.py in the order in which they are run."""
FEWEST = 10.0
"""With fewer seconds left, none is begun."""


def run_benchmarks(
    setup: Setup, steps: list[str], until: float, limit: float, told: Callable[[dict[str, Any]], None]
) -> None:
    """Run benchmarks until the time is up.

    Parameters
    ----------
    steps : list of str
        Some of `STEPS`.
    until : float
        When the time is up, by `time.monotonic`.
    limit : float
        Seconds that one may take.
    told : callable
        Gets each result: a dict with `id`, `outcome` (ran, failed, timed out, not run), `seconds`, `why`, `measured`
        (what devices.py wrote as JSON), `table`, `goals` (its lines "reached" and "MISSED") and `notes`.
    """
    for step in steps:
        if setup.stop.is_set() or until - time.monotonic() < FEWEST:
            told({"id": step, "outcome": "not run", "why": "the time was up"})
        else:
            told(_run(setup, step, until, limit))


def _run(setup: Setup, step: str, until: float, limit: float) -> dict[str, Any]:
    part, _, task = step.partition(" ")
    folder = setup.work / f"benchmark-{step.replace(' ', '-')}"
    measured = folder / "measured.json"
    arguments = [str(setup.root / "asv_bench" / "devices.py"), "--needs-gpu", "--parts", part]
    arguments += ["--json", str(measured), *(["--tasks", task] if task else [])]
    arguments += ["--simulate", "--rounds", "1", "--budget", "0.02"] if setup.simulator else []
    begin = time.monotonic()
    process = Process(setup, folder, arguments)
    try:
        how = process.wait(setup, min(until, begin + limit))
    finally:
        process.kill()
    lines = process.output.read_text(errors="replace").splitlines()
    errors = process.errors.read_text(errors="replace").strip()
    found = {
        "id": step,
        "outcome": {"timed out": "timed out", "stopped": "not run"}.get(how, "ran"),
        "seconds": round(time.monotonic() - begin, 1),
        "why": "",
        "table": [line for line in lines if line.startswith("|")],
        "goals": [line for line in lines if line.startswith(("reached", "MISSED"))],
        "notes": [line for line in errors.splitlines() if " is skipped: " in line],
        "measured": json.loads(measured.read_text()) if measured.exists() else {},
    }
    if how == "timed out":
        found["why"] = f"took longer than {found['seconds']:.0f} s"
    elif how == "ended" and process.process.returncode:
        found |= {"outcome": "failed", "why": (errors.splitlines() or [process.ending()])[-1]}
    elif how == "ended" and not found["table"]:
        found |= {"outcome": "failed", "why": "nothing was measured"}
    if found["outcome"] != "ran":
        found["text"] = process.told()
    return found
