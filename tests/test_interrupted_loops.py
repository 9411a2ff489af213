"""Ctrl-C while native code runs a long loop: the loop ends at once, and everything works afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")

LONG = {
    "a few scalars": (
        "nb.jit(lambda x, n: repeated(lambda v: v * 0.5 + 1, x, n))",
        "(1.0, 20_000_000_000), (1.0, 100), 2.0",
    ),
    "kernels": (
        "nb.jit(lambda x, n: np.sum(repeated(lambda v: np.sin(v) * 0.5, x, n)))",
        "(np.ones(3000), 30_000_000), (np.ones(3000), 100), 0.0",
    ),
    "products of matrices": (
        "nb.jit(lambda x, n: np.sum(repeated(lambda v: v @ x, x, n)))",
        "(np.eye(200), 30_000_000), (np.eye(200), 5), 200.0",
    ),
    "a loop in a loop": (
        "nb.jit(lambda x, n: repeated(lambda v: repeated(lambda w: w * 0.5 + 1, v, 50), x, n))",
        "(1.0, 30_000_000), (1.0, 5), 2.0",
    ),
    "a condition": (
        "lambda x, end: np.sum(nb.while_loop(lambda v: v[0] < end, lambda v: 0.5 * v + 1, x))",
        "(np.ones(500), 2.5), (np.ones(500), 1.9), 500 * 1.9375",
    ),
    "a gradient": (
        "nb.jit(nb.grad(lambda x, n: repeated(lambda v: np.sin(v) + v, x, n)), memory='20 MB')",
        "(3.141592653589793, 400_000_000), (0.0, 3), 8.0",
    ),
    "a loop of Python": ("nb.jit(walk)", "(np.ones(400_000), 3000), (np.zeros(400_000), 300), 0.0"),
}
CHILD = '''
import os, signal, sys, threading, time
import numpy as np
import nbgrad as nb

# A process that a shell runs in the background ignores Ctrl-C, and those that it starts do.
signal.signal(signal.SIGINT, signal.default_int_handler)

def when_native(then, thread=threading.main_thread):
    """Call a function when a thread has run no Python for 0.2 seconds."""
    def watch():
        ident, seen, same = thread().ident, None, 0
        while same < 10:
            time.sleep(0.02)
            frame = sys._current_frames()[ident]
            now = frame.f_code, frame.f_lasti
            seen, same = now, same + 1 if now == seen else 0
        then()
    threading.Thread(target=watch).start()

def ready():
    begun.append(time.process_time())
    print("ready", flush=True)

begun = []

def repeated(turn, x, n):
    return nb.scan(lambda v, _: (turn(v), None), x, length=n)[0]

def walk(x, n):
    for _ in range(n):
        x = np.sin(x) + np.sin(2 * x) * np.cos(x)
    return np.sum(x)
'''


def child(code: str) -> list[str]:
    """What a new process prints, which gets SIGINT when it has printed "ready"."""
    running = subprocess.Popen([sys.executable, "-c", CHILD + code], stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        running.send_signal(signal.SIGINT)
        output, _ = running.communicate(timeout=120)
    finally:
        running.kill()
    assert running.returncode == 0, output
    return output.split()


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("name", LONG)
def test_a_long_loop_ends_at_once(name: str) -> None:
    function, cases = LONG[name]
    found = child(f"""
function, (long, short, expected) = {function}, ({cases})
assert abs(function(*short) - expected) < 1e-12
when_native(ready)
try:
    function(*long)
except KeyboardInterrupt as error:
    assert time.process_time() - begun[0] < 5  # of this process, however busy the machine is
    print("interrupted", error.__traceback__.tb_frame.f_code.co_name)
for _ in range(3):
    assert abs(function(*short) - expected) < 1e-12
    assert abs(nb.grad(lambda x: nb.fori_loop(0, 9, lambda k, v: v * x, x))(1.0) - 10) < 1e-12
print("right")
""")
    assert found == ["interrupted", "<module>", "right"]


def test_a_handler_that_returns_lets_the_loop_go_on() -> None:
    found = child("""
signal.signal(signal.SIGINT, lambda *_: print("handled", flush=True))
function = nb.jit(lambda x: repeated(lambda v: v * 0.5 + 1, x, 1_000_000_000))
when_native(ready)
print(function(1.0))
""")
    assert found == ["handled", "2.0"]


def test_a_loop_in_another_thread_goes_on() -> None:
    found = child("""
function = nb.jit(lambda x: repeated(lambda v: v * 0.5 + 1, x, 1_000_000_000))
thread = threading.Thread(target=lambda: print(function(1.0), flush=True))
thread.start()
when_native(ready, lambda: thread)
try:
    time.sleep(60)
except KeyboardInterrupt:
    print("interrupted", flush=True)
thread.join()
""")
    assert found == ["interrupted", "2.0"]


def test_a_child_is_interrupted_like_its_parent() -> None:
    found = child("""
function = nb.jit(lambda x, n: repeated(lambda v: v * 0.5 + 1, x, n))
function(1.0, 10)
def forked():
    pid = os.fork()
    if pid:
        os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    when_native(lambda: os.kill(os.getpid(), signal.SIGINT))
    try:
        function(1.0, 20_000_000_000)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    os._exit(0)
signal.signal(signal.SIGINT, lambda *_: None)
print("ready", flush=True)
time.sleep(0.5)
signal.signal(signal.SIGINT, signal.default_int_handler)
thread = threading.Thread(target=forked)
thread.start()
thread.join()
""")
    assert found == ["interrupted"]
