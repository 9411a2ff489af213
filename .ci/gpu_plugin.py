"""The part of .ci/gpu that is inside pytest: chooses tests, and tells what becomes of each as it happens.

In: the variable GPU_TESTS_PLAN names a file of JSON with `tests` (their ids in the order in which they run, or null:
all), `simulator`, and `record`. Out: lines of JSON in the file `record`: `collected` (ids, where all were asked for),
`unread` (a file that cannot be collected), `started`, `ended`. Loaded by `pytest -p gpu_plugin` (gpu_tests.py).
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

PLAN = json.loads(Path(os.environ["GPU_TESTS_PLAN"]).read_text())
KEPT = 4000
"""So many characters of a failure are kept, of its end."""


class _State:
    """What the test that runs has come to, and the session that it runs in."""

    outcome, why, text, seconds = "passed", "", "", 0.0
    session: Any = None


def tell(**fields: Any) -> None:
    """A line for gpu_tests.py; complete even if this process dies next."""
    with Path(PLAN["record"]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(fields) + "\n")


def chosen(item: Any) -> bool:
    """Whether a test is one of `-m gpu`; in the simulator, one of the same tests with the simulator in its place."""
    if PLAN["simulator"]:
        return hasattr(item, "callspec") and item.callspec.params.get("place") == "simulator"
    return item.get_closest_marker("gpu") is not None


def pytest_sessionstart(session: pytest.Session) -> None:
    _State.session = session


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    found = {item.nodeid: item for item in items if chosen(item)}
    if PLAN["tests"] is None:
        tell(collected=list(found))
    items[:] = [found[name] for name in (PLAN["tests"] or found) if name in found]


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        tell(unread=report.nodeid, why=_why(report), text=report.longreprtext[-KEPT:])


def pytest_runtest_logstart(nodeid: str) -> None:
    _State.outcome, _State.why, _State.text, _State.seconds = "passed", "", "", 0.0
    tell(started=nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    _State.seconds += report.duration
    if report.failed or (report.skipped and _State.outcome == "passed"):
        _State.outcome, _State.why, _State.text = report.outcome, _why(report), report.longreprtext[-KEPT:]
    if report.when != "teardown":
        return
    lost = _State.outcome == "failed" and device_is_lost()
    text = _State.text if _State.outcome == "failed" else ""
    tell(ended=report.nodeid, outcome=_State.outcome, why=_State.why, text=text, seconds=round(_State.seconds, 3))
    if lost:  # nothing works in this process any more; the next tests get another one
        _State.session.shouldstop = "the device is lost"


def _why(report: Any) -> str:
    """The message of a failure, or the reason of a skip."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return crash.message
    if isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    lines = [line for line in report.longreprtext.splitlines() if line.startswith("E ")]
    return "\n".join([line[1:].strip() for line in lines]) or report.longreprtext[-300:]


def device_is_lost() -> bool:
    """Whether a kernel has made the process useless for the device."""
    nbgrad = sys.modules.get("nbgrad")
    if nbgrad is None:
        return False
    try:
        nbgrad.cuda.synchronize()
    except Exception:
        return True
    return False
