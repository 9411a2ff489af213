"""Programs that run where Numba simulates CUDA.

In: the text of a program, environment variables. Out: what it prints. Called by tests of CUDA kernels. One process
imports nbgrad and Numba, which takes longer than most programs, and forks a child for each program.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import textwrap
import traceback
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory


@cache
def _server() -> subprocess.Popen[str]:
    """The process that forks, until nothing can write to it any more."""
    options = ["-W", "error", "-W", "ignore::DeprecationWarning", "-m", "tests.simulated"]
    server = subprocess.Popen(
        [sys.executable, *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        cwd=Path(__file__).parents[1],
    )
    atexit.register(_end, server)
    return server


def _end(server: subprocess.Popen[str]) -> None:
    assert server.stdin is not None
    server.stdin.close()
    server.wait()


def simulated(code: str, **environment: str) -> str:
    """The text that a program prints."""
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    with TemporaryDirectory() as folder:
        printed, errors = Path(folder, "printed"), Path(folder, "errors")
        request = [textwrap.dedent(code), environment, str(printed), str(errors)]
        print(json.dumps(request), file=server.stdin, flush=True)
        assert server.stdout.readline() == "0\n", errors.read_text()
        return printed.read_text().strip()


def _run(code: str, environment: dict[str, str], *files: str) -> int:
    """The exit status of a program in a child, whose output goes to files."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        for number, file in enumerate(files, start=1):
            os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
        os.environ.update(environment)
        exec(compile(code, "<simulated>", "exec"), {"__name__": "__main__"})
        status = 0
    except BaseException:  # whatever it is, it belongs to the test
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    for module in ("numba.cuda", "nbgrad"):  # once for all children
        import_module(module)
    for line in sys.stdin:
        sys.stdout.write(f"{_run(*json.loads(line))}\n")
        sys.stdout.flush()
