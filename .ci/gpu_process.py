"""Programs that .ci/gpu starts: what they find, how long they may run, and what is left of them.

In: a command. Out: `Setup`, the folders and the environment of all programs, and `Process`, one that runs in a process
group of its own, so that it ends with everything that it has started. Used by all other parts of .ci/gpu.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SHOWN = 4000
"""So many characters of a program's output are kept."""


class Setup(NamedTuple):
    """Where programs run.

    `work` has what is written on the way, `site` the packages that the interpreter lacks, and nbgrad. `root` is the
    repository, or what stands for it. `stop` is set when everything is to end.
    """

    work: Path
    root: Path
    simulator: bool
    stop: threading.Event

    @property
    def site(self) -> Path:
        return self.work / "site"

    def environment(self, **more: str) -> dict[str, str]:
        """The variables of a program: nothing of the user's own nbgrad, pytest or cache takes part."""
        found = {name: value for name, value in os.environ.items() if not name.startswith(("NBGRAD_", "PYTEST_"))}
        paths = [str(self.site), str(HERE), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
        found["PYTHONPATH"] = os.pathsep.join([path for path in paths if path])
        found |= {"NBGRAD_CACHE_DIR": str(self.work / "cache"), "PYTHONUNBUFFERED": "1"}
        found |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # plugins of the machine have warnings of their own
        if self.simulator:
            found["NBGRAD_CUDA_SIMULATOR"] = "1"
        return found | more


class Process:
    """A program of this interpreter, whose output goes to a file in a folder that it runs in."""

    def __init__(self, setup: Setup, folder: Path, arguments: list[str], **environment: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.output, self.errors = folder / "output.txt", folder / "errors.txt"
        with self.output.open("wb") as output, self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=errors,
                cwd=folder,
                env=setup.environment(**environment),
                start_new_session=True,
            )

    def wait(self, setup: Setup, until: float) -> str:
        """Wait for the end, and say what it was: "ended", "timed out" (and was killed), or "stopped"."""
        while self.process.poll() is None:
            if setup.stop.is_set() or time.monotonic() > until:
                self.kill()
                return "stopped" if setup.stop.is_set() else "timed out"
            time.sleep(0.05)
        return "ended"

    def kill(self) -> None:
        """End it, and all that it has started and not detached."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def told(self) -> str:
        """The end of what it has written, errors last."""
        texts = [path.read_text(errors="replace").strip() for path in (self.output, self.errors)]
        return "\n".join([text for text in texts if text])[-SHOWN:]

    def ending(self) -> str:
        """How it ended, in words."""
        code = self.process.returncode
        if code is not None and code < 0:
            with contextlib.suppress(ValueError):
                return f"was killed by {signal.Signals(-code).name}"
        return f"ended with code {code}"


def run(arguments: list[str], seconds: float, **options: Any) -> subprocess.CompletedProcess[str]:
    """A short program, whose output is returned."""
    return subprocess.run(arguments, capture_output=True, text=True, timeout=seconds, check=False, **options)
