"""Memory budgets: `jit(f, memory=...)` gives the same numbers in fewer bytes, or says what it needs."""

from __future__ import annotations

import gc
import math
import os
import pickle
import subprocess
import sys
import threading
from collections import namedtuple
from functools import lru_cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nbgrad as nb
from nbgrad.device.memory.chosen_driver import using
from nbgrad.device.simulator.simulator import Simulator
from nbgrad.errors import ArgumentError, DeviceError, NbgradError, OutOfMemoryError
from nbgrad.graph.differentiate import vjp
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import literal, placeholder, topological
from nbgrad.graph.loops import alignment, repetition, rolling
from nbgrad.graph.loops.loop_rewrites import pruned
from nbgrad.graph.loops.segments import Schedule, Tape, scheduled, tapes
from nbgrad.graph.simplify import simplify
from nbgrad.graph.trace import recording
from nbgrad.runtime import cpu_program, tape_files
from nbgrad.runtime.memory_order import strides_of

from .test_random_loops import loops, run

pytestmark = pytest.mark.unoptimized
RNG = np.random.default_rng(0)
X, W, DATA = RNG.normal(size=3), RNG.normal(size=(3, 3)) / 2, RNG.normal(size=(2000, 3))


# ----- Programs of n turns -----


def at_the_end(n):
    """The carried value after the last turn."""
    return lambda x, w: np.sum(nb.scan(lambda c, d: (np.tanh(w @ c + d), None), x, DATA[:n])[0] ** 2)


def of_every_turn(n):
    """Results of every turn."""
    return lambda x, w: np.sum(nb.scan(lambda c, d: (np.tanh(w @ c + d), np.exp(c)), x, DATA[:n])[1] ** 2)


def from_the_end(n):
    """A loop that goes through its arrays from the end."""

    def program(x, w):
        last, every = nb.scan(lambda c, d: (np.tanh(w @ c + d), np.exp(c)), x, DATA[:n], reverse=True)
        return np.sum(last) + np.sum(every * DATA[:n])

    return program


def of_scanned_arrays(n):
    """Cotangents of every turn."""
    ramp = np.sin(np.arange(float(n)))
    return lambda x, w: np.sum(nb.scan(lambda c, d: (np.tanh(w @ c + d), c), x, np.outer(ramp, x))[0] ** 2)


def one_after_the_other(n):
    """Two loops, the second over the results of the first."""

    def program(x, w):
        every = nb.scan(lambda c, d: (np.tanh(w @ c + d), np.exp(c)), x, DATA[:n])[1]
        last, more = nb.scan(lambda c, d: (np.sin(w @ c * d), c * d), x, every, reverse=True)
        return np.sum(last) + np.sum(more * DATA[:n])

    return program


def one_in_the_other(n):
    """A loop in a loop."""

    def program(x, w):
        def outer(c, k):
            c = nb.scan(lambda e, _: (np.sin(w @ e) + k, None), c, length=n)[0]
            return np.tanh(c), np.sum(c)

        last, every = nb.scan(outer, x, np.arange(float(n)) * 0.1)
        return np.sum(last) + np.sum(every)

    return program


def in_python(n):
    """A Python loop, which is rolled."""

    def program(x, w):
        total = 0.0
        for k in range(n):
            x = np.tanh(w @ x + DATA[k]) * np.cos(x)
            total = total + x @ x
        return total

    return program


PROGRAMS = [
    at_the_end,
    of_every_turn,
    from_the_end,
    of_scanned_arrays,
    one_after_the_other,
    one_in_the_other,
    in_python,
]
DERIVATIVES = {"grad": lambda f: nb.grad(f, (0, 1)), "hessian": lambda f: nb.hessian(f, 0)}
SCHEDULES = [
    Schedule(lengths, again, kept)
    for (lengths, kept), again in product(
        [((), 0), ((1,), 0), ((3,), 0), ((4, 2), 0), ((5, 3, 1), 0), ((2, 1), 7)], [False, True]
    )
]


def graph_of(function, *args):
    """The simplified graph of a function, and its arguments."""
    compiled = nb.jit(function)
    compiled(*args)
    (known,) = compiled._specializations.values()
    return compiled.programs()[0].graph, known[0].arguments


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("turns", [1, 2, 7, 12, 13])
@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("program", PROGRAMS[:-1], ids=lambda f: f.__name__)
def test_every_schedule_gives_the_same_numbers(program, derivative, turns):
    graph, arguments = graph_of(DERIVATIVES[derivative](program(turns)), X, W)
    at = dict(zip(arguments, (X, W), strict=True))
    expected = interpret(graph, at)
    found = tapes(graph)
    assert bool(found) == (turns > 1)
    for schedule in SCHEDULES:
        rewritten = scheduled(graph, {tape.key: schedule for tape in found})
        for a, b in zip(interpret(rewritten, at), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12, err_msg=str(schedule))


ANY_SCHEDULE = st.builds(
    Schedule,
    st.lists(st.integers(1, 40), max_size=3, unique=True).map(lambda found: tuple(sorted(found, reverse=True))),
    st.booleans(),
    st.sampled_from([0, 0, 5, 20]),
    st.booleans(),
)


def check_schedule(parts, schedule):
    """A schedule changes no number of a program of random loops, nor of its gradient."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (repetition, alignment, rolling):
            patch.setattr(module, "LEAST_NODES", 24)
        arguments = [placeholder((3,), np.dtype(float)) for _ in range(2)]
        with recording(arguments):
            kept = run(parts, *map(nb.Tensor._of, arguments))
            outputs = [sum(np.sum(np.sin(value)) for value in kept)._node]
        rolling.roll(outputs, arguments, strides_of)
        found = [g for g in vjp(outputs, [literal(1.0, np.dtype(float))], arguments) if g is not None]
    graph = pruned(simplify([*outputs, *found]))
    at = dict(zip(arguments, (X, DATA[0]), strict=True))
    rewritten = scheduled(graph, {tape.key: schedule for tape in tapes(graph)})
    for a, b in zip(interpret(rewritten, at), interpret(graph, at), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)


@given(st.lists(loops, min_size=1, max_size=2), ANY_SCHEDULE)
@settings(max_examples=2, deadline=None)
def test_schedules_of_random_loops(parts, schedule):
    check_schedule(parts, schedule)


@pytest.mark.slow
@given(st.lists(loops, min_size=1, max_size=2), ANY_SCHEDULE)
@settings(max_examples=40, deadline=None)
def test_more_schedules_of_random_loops(parts, schedule):
    check_schedule(parts, schedule)


def needed(compiled):
    """Bytes of intermediates and results, by the plan."""
    program = compiled.programs()[0]
    return program.plan.arena_bytes + sum(o.node.size * o.node.dtype.itemsize for o in program.outputs)


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_budgets_are_met_with_the_same_numbers(program):
    turns = 211 if program is one_in_the_other else 509  # primes
    derivative = DERIVATIVES["grad"](program(turns))
    free = nb.jit(derivative)
    expected = free(X, W)
    whole = needed(free)
    for part in (1.0, 0.8, 0.5, 0.3):
        less = nb.jit(derivative, memory=int(part * whole))
        try:
            found = less(X, W)
        except OutOfMemoryError:
            assert part < 0.8 and program not in (at_the_end, in_python)
            continue
        assert needed(less) <= part * whole
        assert bool(less.programs()[0].schedules) == (part < 1.0)
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_of_a_million_turns_a_few_kilobytes_are_stored():
    turns, rate = 1_000_000, 0.7

    def decayed(rate):
        return nb.scan(lambda x, _: (x - rate / turns * x, None), 1.0, length=turns)[0]

    exact = -((1 - rate / turns) ** (turns - 1))
    for memory, most in (("10 MB", 0.0), ("1 MB", 1.0), ("5 kB", 2.0)):
        step = nb.jit(nb.grad(decayed), memory=memory)
        np.testing.assert_allclose(step(rate), exact, rtol=1e-9)
        assert sum(one.schedule.repeated(turns) for one in step.programs()[0].schedules) <= most * turns


TRANSFORMS = {
    "jit of grad": lambda f, **k: nb.jit(nb.grad(f, 1), **k),
    "grad of jit": lambda f, **k: nb.grad(nb.jit(f, **k), 1),
    "decorator": lambda f, **k: nb.jit(**k)(nb.grad(f, 1)),
    "jit of grad of jit": lambda f, **k: nb.jit(nb.grad(nb.jit(f, **k), 1)),
    "jit of jit": lambda f, **k: nb.jit(nb.jit(nb.grad(f, 1)), **k),
    "vjp of jit": lambda f, **k: lambda x, w: nb.vjp(nb.jit(f, **k), x, w)[1](1.0)[1],
    "hessian of jit": lambda f, **k: nb.hessian(nb.jit(f, **k), 0),
    "vmap of grad of jit": lambda f, **k: lambda x, w: nb.vmap(nb.grad(nb.jit(f, **k)), (0, None))(x * w, w),
    "copy": lambda f, **k: pickle.loads(pickle.dumps(nb.jit(with_copies, **k))),
}


def with_copies(x, w):
    """As `at_the_end`; a function that can be copied."""
    return nb.grad(at_the_end(500), 1)(x, w)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_budgets_go_with_functions(transform, monkeypatch):
    made = []
    fitted = cpu_program.fitted
    monkeypatch.setattr(cpu_program, "fitted", lambda *a: made.append(1) or fitted(*a))
    make = TRANSFORMS[transform]
    program = at_the_end(500)
    memory = 30_000 if "hessian" in transform or "vmap" in transform else 10_000
    found = make(program, memory=memory)(X, W)
    assert made
    np.testing.assert_allclose(found, make(program)(X, W), rtol=1e-9, atol=1e-12)


def test_eager_programs_are_kept_apart_by_budget():
    program = at_the_end(300)
    assert nb.grad(program)(X, W) is not None
    with pytest.raises(OutOfMemoryError):
        nb.grad(nb.jit(program, memory=100))(X, W)
    assert nb.grad(nb.jit(program, memory="1 MB"))(X, W) is not None


# ----- Schedules beside the optimum -----


@lru_cache(None)
def by_search(turns, snapshots):
    """The fewest turns to be done without storing anything of them: A. Griewank and A. Walther, "Algorithm 799:
    revolve", 2000; by trying all."""
    if turns <= 1:
        return 0
    if snapshots == 1:
        return turns * (turns - 1) // 2
    return min(m + by_search(turns - m, snapshots - 1) + by_search(m, snapshots) for m in range(1, turns))


def optimum(turns, snapshots):
    """The same by the binomial formula of that paper."""
    repeats = 0
    while math.comb(snapshots + repeats, snapshots) < turns:
        repeats += 1
    return repeats * turns - math.comb(snapshots + repeats, repeats - 1)


def test_the_formula_is_what_a_search_finds():
    for turns in (2, 5, 10, 33, 60):
        for snapshots in (1, 2, 3, 5, 8):
            assert optimum(turns, snapshots) == by_search(turns, snapshots)


@pytest.mark.parametrize(
    ("turns", "levels", "ratio"),
    [
        (100, 1, 1.15),
        (1000, 1, 1.1),
        (1000, 2, 1.2),
        (10**6, 1, 1.01),
        (10**6, 2, 1.02),
        (10**6, 3, 1.1),
        (10**6, 8, 1.7),
    ],
)
def test_repeated_turns_are_close_to_the_optimum(turns, levels, ratio):
    class Scalar(Tape):
        carried = given = property(lambda self: 8)  # type: ignore[assignment]

    schedules = [one for one in Scalar((None, 0), turns).schedules() if len(one.lengths) == levels]
    (schedule,) = schedules
    states = schedule.stored(turns, 8, 8) // 8
    # A reader does each turn once more in any case, which the optimum counts.
    done = schedule.repeated(turns) + turns
    assert optimum(turns, states) <= done <= ratio * optimum(turns, states)


def test_what_a_schedule_says_is_what_loops_do():
    """Turns counted in the rewritten graph."""
    turns = 101
    graph, _ = graph_of(nb.grad(at_the_end(turns)), X, W)
    (tape,) = tapes(graph)

    def executed(nodes, factor=1):
        total = 0
        for node in nodes:
            if node.name != "loop":
                continue
            body, count, _ = node.params
            inner = any(one.name == "loop" for one in body.nodes)
            total += executed(body.nodes, factor * count) if inner else factor * count
        return total

    before = executed(topological(graph))
    for lengths in ((10,), (7,), (30, 5), (50, 20, 3)):
        schedule = Schedule(lengths)
        after = executed(topological(scheduled(graph, {tape.key: schedule})))
        assert after - before == schedule.repeated(turns)


# ----- What users see -----


def test_explain_shows_the_schedule():
    step = nb.jit(nb.grad(at_the_end(1000)), memory="20 kB")
    text = nb.explain(step, X, W)
    assert "loop of 1,000 turns: checkpoints every" in text
    assert "bytes stored instead of" in text and "turns done again" in text
    assert "done again" not in nb.explain(nb.grad(at_the_end(1000)), X, W)


def test_the_smallest_figure_can_be_met():
    f = nb.grad(at_the_end(1000))
    with pytest.raises(OutOfMemoryError, match=r"need at least [\d,]+ bytes. Give memory=\d+ or more") as caught:
        nb.jit(f, memory=200)(X, W)
    least = int(str(caught.value).partition("memory=")[2].partition("memory=")[2].split()[0])
    step = nb.jit(f, memory=least)
    np.testing.assert_allclose(step(X, W), f(X, W), rtol=1e-10)
    with pytest.raises(OutOfMemoryError):
        nb.jit(f, memory=least - 1)(X, W)


def test_programs_without_loops_have_a_smallest_figure_too():
    with pytest.raises(OutOfMemoryError, match=r"need at least 8,000,000 bytes"):
        nb.jit(lambda x: np.sin(x) * 2.0, memory="1 MB")(np.zeros(1_000_000))
    assert nb.jit(lambda x: np.sin(x), memory="1 MB")(np.zeros(3)).shape == (3,)


@pytest.mark.parametrize("turns", [0, 1, 2])
def test_few_turns(turns):
    f = nb.grad(at_the_end(turns))
    np.testing.assert_allclose(nb.jit(f, memory="1 kB")(X, W), f(X, W), rtol=1e-12)


SIZES = {"10 MB": 10_000_000, "2 GiB": 2**31, "1.5kb": 1500, " 7 ": 7, 12: 12, "3 TB": 3 * 10**12, "5 B": 5}


@pytest.mark.parametrize("text", SIZES)
def test_sizes(text):
    assert nb.jit(np.sin, memory=text).budget.size == SIZES[text]


@pytest.mark.parametrize("bad", ["2 XB", "", "MB", "-1 MB", "0 MB", "1e3", -1, 0, True, 1.5, [10], b"1 MB"])
def test_what_is_no_size(bad):
    with pytest.raises(ArgumentError, match=r"memory is a number of bytes or a text such as") as caught:
        nb.jit(np.sin, memory=bad)
    assert repr(bad) in str(caught.value)


def test_devices_have_no_budgets():
    """Loops are written out there, also those of `checkpoint`."""
    with using(Simulator()):
        x = nb.Tensor(X.astype(np.float32), device="cuda")

        def f(x):
            return nb.numpy.sum(nb.checkpoint(nb.numpy.exp)(x))

        np.testing.assert_allclose(nb.jit(nb.grad(f))(x).asnumpy(), np.exp(X), rtol=1e-5)
        for way in (nb.jit(nb.grad(f), memory="1 GB"), nb.grad(nb.jit(f, memory="1 GB"))):
            with pytest.raises(DeviceError, match=r"loops keep all turns. Leave out memory="):
                way(x)


# ----- Files -----


def filed(program, folder, memory=5_000):
    """The gradient of a program with its checkpoints in a file."""
    return nb.jit(nb.grad(program, (0, 1)), memory=memory, offload=folder)


@pytest.mark.parametrize("program", [at_the_end, in_python], ids=lambda f: f.__name__)
def test_checkpoints_in_files(program, tmp_path):
    step = filed(program(1000), tmp_path)
    expected = nb.grad(program(1000), (0, 1))(X, W)
    for _ in range(2):
        for a, b in zip(step(X, W), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)
    assert needed(step) <= 5_000
    file = step.programs()[0].file
    assert file.size >= 1000 * X.nbytes and isinstance(file.mapped, np.memmap)
    assert f"file in {tmp_path}: {file.size:,} bytes" in nb.explain(step, X, W)
    out = (np.empty(3), np.empty((3, 3)))
    step(X, W, out=out)
    np.testing.assert_allclose(out[1], expected[1], rtol=1e-10)
    assert list(tmp_path.iterdir()) == []  # the file has no name


def test_tensors_in_and_out(tmp_path):
    step = filed(at_the_end(500), tmp_path)
    expected = nb.grad(at_the_end(500), (0, 1))(X, W)
    for _ in range(4):
        found = step(nb.Tensor(X), nb.Tensor(W))
        np.testing.assert_allclose(found[1].asnumpy(), expected[1], rtol=1e-10)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_files_go_with_their_programs(tmp_path):
    def mine():
        with open("/proc/self/maps") as maps:
            return sum(str(tmp_path) in line for line in maps)

    step = filed(at_the_end(500), tmp_path)
    step(X, W)
    assert mine() == 1
    del step
    gc.collect()
    assert mine() == 0


def test_nothing_is_left_when_python_ends(tmp_path):
    program = (
        "import os, sys, numpy as np, nbgrad as nb\n"
        "f = lambda x: nb.scan(lambda c, _: (np.sin(c) * 1.5, None), x, length=1000)[0]\n"
        f"print(nb.jit(nb.grad(f), memory=2000, offload={str(tmp_path)!r})(0.5), flush=True)\n"
        "os._exit(0)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert float(done.stdout) == float(done.stdout)
    assert list(tmp_path.iterdir()) == []


def test_threads_share_a_file_one_at_a_time(tmp_path):
    step = filed(at_the_end(2000), tmp_path)
    points = [X * k for k in range(1, 9)]
    expected = [nb.grad(at_the_end(2000), (0, 1))(x, W)[1] for x in points]
    step(X, W)
    found = {}

    def work(k):
        for _ in range(5):
            found[k] = step(points[k], W)[1]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(points))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, value in enumerate(expected):
        np.testing.assert_allclose(found[k], value, rtol=1e-10)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # JAX warns at a fork, once imported
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_children_have_files_of_their_own(tmp_path):
    step = filed(at_the_end(500), tmp_path)
    expected = step(X, W)[1]
    program = step.programs()[0]
    address = program.file.mapped.ctypes.data
    child = os.fork()
    if child == 0:
        good = np.array_equal(step(X, W)[1], expected) and program.file.mapped.ctypes.data != address
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    np.testing.assert_array_equal(step(X, W)[1], expected)


@pytest.mark.parametrize("bad", ["no/such/folder", 3, __file__])
def test_what_is_no_folder(bad):
    with pytest.raises(ArgumentError, match=r"offload is a folder that exists and can be written to"):
        nb.jit(np.sin, memory="1 MB", offload=bad)


def test_a_folder_needs_a_budget(tmp_path):
    with pytest.raises(ArgumentError, match=r"offload= needs a budget beside it"):
        nb.jit(np.sin, offload=tmp_path)


Disk = namedtuple("Disk", "total used free")


def test_small_disks_get_checkpoints_only(tmp_path, monkeypatch):
    monkeypatch.setattr(tape_files.shutil, "disk_usage", lambda folder: Disk(10**6, 0, 20_000))
    step = filed(at_the_end(1000), tmp_path, 30_000)
    for a, b in zip(step(X, W), nb.grad(at_the_end(1000), (0, 1))(X, W), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)
    (one,) = step.programs()[0].schedules
    assert one.schedule.lengths and step.programs()[0].file.size <= 10_000


def test_full_disks(tmp_path, monkeypatch):
    monkeypatch.setattr(tape_files.shutil, "disk_usage", lambda folder: Disk(10**6, 10**6, 0))
    with pytest.raises(OutOfMemoryError, match=r"no room on the disk"):
        filed(at_the_end(1000), tmp_path)(X, W)
    monkeypatch.undo()

    def refuse(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tape_files.tempfile, "TemporaryFile", refuse)
    step = filed(at_the_end(1000), tmp_path)
    with pytest.raises(NbgradError, match=r"No space left on device. Nothing was lost"):
        step(X, W)
    monkeypatch.undo()
    np.testing.assert_allclose(step(X, W)[0], nb.grad(at_the_end(1000))(X, W), rtol=1e-10)
