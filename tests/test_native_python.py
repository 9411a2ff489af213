"""Native code run as Python (native_python.py) does what its compiled form does, on real objects, line by line.

Each row is a function and calls of it. It is jitted twice, and both get equal arguments: results, errors, what was
written to the arguments, and the reference counts that are left must be the same.
"""

from __future__ import annotations

import ctypes
import dis
import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import FrameType
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiler import host_calls
from nbgrad.graph.host_functions import HostFunction, host
from nbgrad.graph.trace import recording
from nbgrad.process.modes import REMEMBERS
from nbgrad.runtime import blocks, native, words
from nbgrad.runtime import cpu_program as program
from nbgrad.runtime import native_tensors as tensors

from .native_python import HOLDING, MODULES, PROCESSOR, in_place_of_compiled_code, native_names

T = nb.Tensor
OBJECTS = T | np.ndarray
"""Whose references are counted: small numbers are everywhere."""
X = np.array([0.5, -1.0, 2.0])
LARGE = np.linspace(-1.0, 1.0, 40_000)
WIDE = np.linspace(-1.0, 1.0, 1 << 19)
F = np.array([[0.5, -1.0, 2.0], [1.5, 3.0, -0.25]], order="F")
MOVED = np.moveaxis(np.arange(24.0).reshape(2, 3, 4), 1, 0)
WIDE_F = WIDE.reshape(1 << 9, 1 << 10).T


class Loss(nb.nn.Cell):
    """A Cell with a Parameter that its calls read."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nb.Parameter(T(np.array([3.0, 0.25, -2.0])), name="w")

    def construct(self, x: Any) -> Any:
        return (self.w * x).sum()


def training() -> Callable[..., Any]:
    """A step that reads and writes Parameters, and gives them too."""
    net = Loss()
    optimizer = nb.nn.Momentum(net.trainable_params(), 0.1, 0.9)
    gradient = nb.value_and_grad(net, None, optimizer.parameters)

    def step(x: Any) -> Any:
        value, grads = gradient(x)
        optimizer(grads)
        return value, net.w.value() * 1.0

    return step


def refused(x: np.ndarray) -> np.ndarray:
    """Library code that raises for some arguments."""
    if x.min() < 0:
        raise ValueError("negative")
    return x


REFUSED = HostFunction("test refused", lambda inputs, _: (inputs[0].shape, inputs[0].dtype), refused)


def checked(x: Any) -> Any:
    """A function with library code in it; its argument may be an array, which is a Tensor while it is recorded."""
    return T._of(host(REFUSED, ((x * 1.0)._node,))) + 1


# A maker of a function, what jit is told, and the arguments of its calls.
Row = tuple[Callable[[], Callable[..., Any]], dict[str, Any], list[tuple[Any, ...]]]
ROWS: dict[str, Row] = {
    "arrays": (lambda: lambda x, y: (x * y, np.sum(x)), {}, [(X, X + 1)] * 3),
    "a float": (lambda: lambda x, c: x * c, {}, [(X, 2.0), (X, -1.5), (X, 3), (X, np.float64(2)), (X, np.array(2.0))]),
    "scalars": (lambda: nb.value_and_grad(lambda x: np.sum(x**3)), {}, [(X,)] * 3),
    "nested": (lambda: lambda x: ((x, (x + 1,)), (), x - 1), {}, [(X,)] * 3),
    "other shapes": (lambda: lambda x: x + 1, {}, [(X,), (X[:2],), (X[None],), (np.zeros((0, 3)),), (X,)]),
    "other dtypes": (lambda: lambda x: x + x, {}, [(X.astype(d),) for d in "dfeilbD?d"]),
    "other layouts": (
        lambda: lambda x: x + 1,
        {},
        [(X,), (X[::-1],), (np.repeat(X, 2)[::2],), (X.astype(">f8"),), (X,)],
    ),
    "other orders": (
        lambda: lambda x: (x + 1, np.sum(x, axis=0)),
        {},
        [(F,), (F,), (F.copy("C"),), (F,), (F[:, :1],), (F[:, :1].copy("F"),), (MOVED,), (MOVED,), (MOVED.copy("F"),)],
    ),
    "other orders, large": (lambda: lambda x: x * 2, {}, [(WIDE_F,)] * 2),
    "donated in another order": (lambda: lambda w, g: w - g, {"donate": 0}, [(F, F + 1)] * 3),
    "other kinds": (lambda: lambda x: np.sum(x), {}, [(X,), (T(X),), ([0.5, 1.0],), (X.view(np.matrix),), (X,)]),
    "wrong arguments": (
        lambda: lambda x: x @ x,
        {},
        [(X,), (X,), ("x",), (None,), (), (X, X), (np.ones((2, 3)),), (X,)],
    ),
    "a guard": (lambda: lambda x: x * 2 if np.sum(x) > 0 else x - 1, {}, [(X,), (X,), (-X,), (-X,), (X,)]),
    "its argument": (lambda: lambda x: (x, x), {}, [(X,)] * 3),
    "large": (lambda: lambda x: (x + 1, np.sin(x)), {}, [(LARGE,)] * 3),
    "many threads": (lambda: lambda x: (np.sum(np.sin(x)), x * 2), {}, [(WIDE,)] * 2),
    "donated": (lambda: lambda w, g: (w - g, w * g), {"donate": (0, 1)}, [(X, X + 1)] * 3),
    "donated, read-only": (lambda: lambda w, g: w - g, {"donate": 0}, [(X, X), (np.broadcast_to(X, 3), X)]),
    "donated twice": (lambda: lambda w, g: w - g, {"donate": 0}, [(X, X), (X, X + 1), (X, X)]),
    "arrays and constants": (lambda: lambda x, name: (x * 2, np.sum(x)), {}, [(X, "n")] * 4),
    "a library function": (lambda: checked, {}, [(X + 2,)] * 3 + [(X,)] + [(X + 2,)] * 2),
    "Tensors and a library function": (lambda: checked, {}, [(T(X + 2),)] * 4 + [(T(X),), (T(X + 2),)]),
    "weak Tensors": (lambda: lambda x: x * 2, {}, [(T(np.float64(1.5)),)] * 4 + [(T(1.5),)] * 4),
    "a Cell that changes": (lambda: Loss(), {}, [(T(X),)] * 8),
    "settings that change": (lambda: lambda x: x * 2, {}, [(T(X),)] * 8),
    "inside of a recording": (lambda: lambda x: x * 2, {}, [(T(X),)] * 8),
    "Tensors": (lambda: lambda x, y: (x + y, (x * y).sum()), {}, [(T(X), T(X + 1))] * 4),
    "Tensors beside arrays": (lambda: lambda x, y, c: c * x + y, {}, [(T(X), X, 2.0)] * 4 + [(T(X), X, 2)]),
    "Tensors, then others": (
        lambda: lambda x: x * 2,
        {},
        [(T(X),), (T(X),), (T(X),), (X,), (T(X[:2]),), (T(X.astype("f4")),), (T(2.0),), (nb.Parameter(T(X)),), (T(X),)],
    ),
    "Tensors and constants": (
        lambda: lambda x, n, name: x**n,
        {},
        [(T(X), 3, "n")] * 3 + [(T(X), 2, "n"), (T(X), 3, "m"), (T(X), 3), (T(X), 3, "n")],
    ),
    "Tensors and constants that Python has once": (
        lambda: lambda x, n, none: x**n,
        {},
        [(T(X), True, None)] * 3 + [(T(X), False, None), (T(X), 1, None), (T(X), True, "n"), (T(X), True, None)],
    ),
    "an array and integers": (
        lambda: lambda x, n: x * n,
        {},
        [(X, int(text)) for text in ("1000", "1000", "1000", "-1", str(2**70), "1000")] + [(X, True), (X, 1000)],
    ),
    "scalars as arguments": (
        lambda: lambda x, c: (x * c, c + 1),
        {},
        [
            (X, kind(1 if kind is np.bool_ else 3))
            for kind in (float, complex, np.float64, np.float32, np.int64, np.uint8, np.bool_, np.complex64)
            for _ in range(2)
        ],
    ),
    "a guard of Tensors": (
        lambda: lambda x: x * 2 if x.sum() > 0 else x - 1,
        {},
        [(T(k * X),) for k in (1, 1, 1, -1, 1)],
    ),
    "large Tensors": (lambda: lambda x: (x + 1, x * x), {}, [(T(LARGE),)] * 4),
    "Parameters": (lambda: Loss(), {}, [(T(X),), (T(X),), (T(X),), (T(-X),)]),
    "a training step": (training, {}, [(T(X),)] * 5),
}


@contextmanager
def disabled() -> Iterator[None]:
    """Compilation is off."""
    os.environ["NBGRAD_DISABLE_JIT"] = "1"
    try:
        yield
    finally:
        del os.environ["NBGRAD_DISABLE_JIT"]


@contextmanager
def changed(function: Any) -> Iterator[None]:
    """A Cell has another attribute from now on."""
    function.fn.other = 1
    yield


EVENTS: dict[str, Callable[[Any], AbstractContextManager[Any]]] = {
    "a Cell that changes": changed,
    "settings that change": lambda _: disabled(),
    "inside of a recording": lambda _: recording([]),
}
"""Where the sixth call of a row is made."""
for _name, _call in {"read-only": X.copy(), "misaligned": np.zeros(25, np.uint8)[1:].view(np.float64)}.items():
    _call.flags.writeable = False
    ROWS[_name] = (lambda: lambda x: x + 1, {}, [(X,), (X,), (_call,), (X,)])


def copied(value: Any) -> Any:
    """An argument that shares nothing, in the same layout."""
    if isinstance(value, nb.Parameter):
        return nb.Parameter(T(value.asnumpy().copy()))
    if isinstance(value, T):
        return T(value.asnumpy().copy())
    if type(value) is np.ndarray and value.flags.forc and value.flags.writeable:
        return value.copy("K")
    return value


def seen(value: Any) -> Any:
    """All that can be seen of a value, and of an error but its line."""
    if isinstance(value, tuple | list):
        return type(value), [seen(part) for part in value]
    if isinstance(value, BaseException):
        return type(value), str(value).split("\n")[0].split(" (at ")[0]
    if isinstance(value, T):
        return T, seen(value.asnumpy())
    if isinstance(value, np.ndarray | np.generic):
        # The bits, so that NaN and -0.0 are told apart.
        array = np.asarray(value)
        return type(value), array.dtype, array.shape, array.strides, array.flags.writeable, array.tobytes()
    return type(value), value


def calls(name: str) -> Iterator[Any]:
    """What can be seen of each call of a row, one after the other."""
    make, told, arguments = ROWS[name]
    function = nb.jit(make(), **told)
    for k, given in enumerate(arguments):
        fresh = {id(value): copied(value) for value in given}
        args = tuple([fresh[id(value)] for value in given])
        del fresh
        watched = [value for value in args if isinstance(value, OBJECTS)]
        before = [sys.getrefcount(value) for value in watched]
        try:
            with EVENTS[name](function) if k == 5 and name in EVENTS else nullcontext():
                result = function(*args)
        except Exception as error:  # compared with the other one
            result = error.with_traceback(None)
        parts = result if isinstance(result, tuple) else (result,)
        shown, same = seen(result), [any(part is value for value in args) for part in parts]
        counts = [sys.getrefcount(part) for part in parts if isinstance(part, OBJECTS)]
        del result, parts
        # Constants of the program, and Tensors that it has seen first, stay referenced: differences count.
        after = [sys.getrefcount(value) - count for value, count in zip(watched, before, strict=True)]
        yield shown, same, counts, after, seen(args)


@pytest.fixture
def four_threads() -> Iterator[None]:
    """As many threads on every machine."""
    before = nb.get_num_threads()
    nb.set_num_threads(4)
    yield
    nb.set_num_threads(before)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.usefixtures("four_threads")
def test_python_and_compiled_code_agree(name: str) -> None:
    compiled = list(calls(name))
    before = dict(PROCESSOR.calls)
    with in_place_of_compiled_code():
        interpreted = list(calls(name))
    assert PROCESSOR.calls != before, "no native code ran as Python"
    for k, (one, other) in enumerate(zip(interpreted, compiled, strict=True)):
        for part, mine, wanted in zip(("result", "identity", "counts", "left", "arguments"), one, other, strict=True):
            assert mine == wanted, f"call {k}: {part}"


def into(shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Places for the results of the function below."""
    return np.full(shape, 7.0), np.full(shape, 8.0)


def calls_with_out() -> Iterator[Any]:
    """What calls with `out=` give, also when the arguments are others than before."""
    function = nb.jit(lambda x: (x + 1, np.exp(x)))
    for x in (X, X, -X, X[:2], T(X), X):
        out = into(x.shape)
        yield function(x, out=out) is out, seen(out)


def test_results_in_the_callers_arrays() -> None:
    compiled = list(calls_with_out())
    before = PROCESSOR.calls.get("entry_into", 0)
    with in_place_of_compiled_code():
        assert list(calls_with_out()) == compiled
    assert PROCESSOR.calls["entry_into"] > before


def run_out_of_shape() -> None:
    """Whoever calls a program with places for its results learns that the arguments are not its own."""
    with in_place_of_compiled_code():
        function = nb.jit(lambda x: x + 1)
        function(X)
        made = next(p for p in function.programs() if isinstance(p, program.Program))
        assert made.call_into(X[:2], np.zeros(2)) is program.MISSED
        assert not PROCESSOR.error


def test_places_for_other_arguments() -> None:
    run_out_of_shape()


def run_busy() -> None:
    """While another thread has the memory that programs share, calls get their own."""
    table = native.context()
    with in_place_of_compiled_code():
        function = nb.jit(lambda x: np.exp(x) + x[::-1])
        expected = seen(function(X))
        table[native.BUSY] = 1
        try:
            assert seen(function(X)) == expected
            assert table[native.BUSY] == 1
        finally:
            table[native.BUSY] = 0


def test_memory_of_its_own() -> None:
    run_busy()


def run_odd_nodes() -> None:
    """A Tensor whose node is not as it was goes to Python, which may refuse it."""

    def weak(x: Any) -> None:
        x._node.weak = True

    def array(x: Any) -> None:
        x._node.tensor = False

    def other(x: Any) -> None:
        x._node = ()

    def empty(x: Any) -> None:
        del x._node.value

    def remembers(x: Any) -> None:
        x._node.traced = REMEMBERS

    with in_place_of_compiled_code():
        function = nb.jit(lambda x: x * 2)
        for _ in range(3):
            function(T(X))
        for change in (weak, array, other, empty, remembers):
            x, before = T(X), PROCESSOR.calls["entry_tensors"]
            change(x)
            try:
                function(x)
            except AttributeError:
                assert change in (other, empty)
            for _ in range(4):
                function(T(X))
            assert PROCESSOR.calls["entry_tensors"] > before


def test_odd_nodes() -> None:
    run_odd_nodes()


def run_beside_an_error() -> None:
    """Library code has raised in another thread: this call goes on."""
    with in_place_of_compiled_code():
        function = nb.jit(lambda x: x * 2)
        expected = seen(function(X))
        host_calls.FAILURES[0] = 1
        assert seen(function(X)) == expected
        assert host_calls.FAILURES[0] == 0


def test_errors_of_other_threads() -> None:
    run_beside_an_error()


def run_interrupted() -> None:
    """A handler of signals has raised an error in the main thread, which ends the call; other threads go on."""
    table = native.context()
    with in_place_of_compiled_code():
        function, look = nb.jit(lambda x: x * 2), PROCESSOR.functions["interrupted"]
        expected = seen(function(X))
        main = int(table[native.MAIN_THREAD])
        try:
            table[native.LOOKED] = 0
            assert look(table.ctypes.data) == 0
            table[native.LOOKED], PROCESSOR.pending = 0, KeyboardInterrupt()
            # The second time it is too early to look again.
            assert look(table.ctypes.data) == look(table.ctypes.data) == 1
            # CPython keeps an error for each thread.
            table[native.MAIN_THREAD], error, PROCESSOR.error = 0, PROCESSOR.error, None
            assert look(table.ctypes.data) == 0
            assert seen(function(X)) == expected
            table[native.MAIN_THREAD], PROCESSOR.error = main, error
            with pytest.raises(KeyboardInterrupt):
                function(X)
            assert table[native.INTERRUPTED] == table[native.BUSY] == 0
            assert seen(function(X)) == expected
        finally:
            table[native.MAIN_THREAD], table[native.INTERRUPTED], PROCESSOR.pending = main, 0, None


def test_signals() -> None:
    run_interrupted()


# ----- Memory that runs out -----

# The row, the table and the slot of the function that fails, after so many calls that succeed.
SHORTAGES = {
    "intermediates": ("arrays", native, native.ALLOCATE, 0),
    "the first result": ("arrays", native, native.NEW_ARRAY, 0),
    "the second result": ("arrays", native, native.NEW_ARRAY, 1),
    "a block": ("large", native, native.TAKE_BLOCK, 0),
    "an array for a block": ("large", native, native.NEW_ARRAY, 1),
    "a scalar": ("arrays", native, native.ARRAY_RETURN, 0),
    "the tuple of results": ("arrays", native, native.TUPLE_NEW, 0),
    "an inner tuple": ("nested", native, native.TUPLE_NEW, 1),
    "the outermost tuple": ("nested", native, native.TUPLE_NEW, 3),
    "the tuple of Tensors": ("Tensors", native, native.TUPLE_NEW, 0),
    "intermediates of Tensors": ("Tensors", native, native.ALLOCATE, 0),
    "the first result of Tensors": ("Tensors", native, native.NEW_ARRAY, 0),
    "a node": ("Tensors", tensors, tensors.NEW_OBJECT, 0),
    "a Tensor": ("Tensors", tensors, tensors.NEW_OBJECT, 1),
    "another node": ("Tensors", tensors, tensors.NEW_OBJECT, 2),
    "a serial number": ("Tensors", tensors, tensors.NEXT, 0),
    "a Parameter's first node": ("a training step", tensors, tensors.NEW_OBJECT, 4),
    "a Parameter's second node": ("a training step", tensors, tensors.NEW_OBJECT, 5),
    "a Parameter's pair": ("a training step", native, native.TUPLE_NEW, 0),
}


def run_short(name: str) -> None:
    """A call without memory raises MemoryError, keeps nothing, writes nothing; the next call is as before."""
    row, module, slot, after = SHORTAGES[name]
    make, told, arguments = ROWS[row]
    table = native.context()
    words = table if module is native else tensors._layout(T, nb.Parameter)[0]
    with in_place_of_compiled_code():
        function = nb.jit(make(), **told)
        expected = [seen(function(*map(copied, arguments[0]))) for _ in range(4)]
        args = tuple(map(copied, arguments[0]))
        before = [sys.getrefcount(value) for value in args]
        if slot == native.ALLOCATE and module is native:
            # The block that programs share is too small now.
            table[native.SHARED_BYTES] = 0
        PROCESSOR.fail[int(words[slot])] = after
        try:
            function(*args)
        except MemoryError:
            pass
        else:
            pytest.fail(f"there was memory: {PROCESSOR.fail}")
        finally:
            PROCESSOR.fail.clear()
        # The error's traceback is gone with its cycles.
        gc.collect()
        assert table[native.BUSY] == 0
        assert [sys.getrefcount(value) for value in args] == before
        assert seen(args) == seen(arguments[0])
        if row != "a training step":
            assert seen(function(*args)) == expected[-1]


@pytest.mark.parametrize("name", SHORTAGES)
def test_without_memory(name: str) -> None:
    run_short(name)


# ----- Blocks -----


@pytest.mark.skipif(os.name != "posix", reason="NumPy's own allocator is used")
def test_blocks() -> None:
    """The same blocks come back, and the same ones are kept, whatever sizes are taken and given back."""
    native.context()
    compiled = {f.__name__: HOLDING(words.native_address(f, count)) for f, count in blocks.FUNCTIONS.items()}
    histories = []
    for functions in (compiled, PROCESSOR.functions):
        rng = np.random.default_rng(1)
        table = blocks.table.copy()
        table[[blocks.KEPT_BYTES, blocks.KEPT]] = 0
        at = table.ctypes.data
        known: list[int] = []
        held: list[tuple[int, int]] = []
        history: list[Any] = []

        def word(name: str, *words: int, functions: dict[str, Any] = functions) -> int:
            return (
                functions[name](*words, *[0] * (8 - len(words))) if functions is compiled else functions[name](*words)
            )

        for _ in range(300):
            if held and rng.random() < 0.5:
                block, size = held.pop(int(rng.integers(len(held))))
                word("give", at, block, size)
            else:
                size = int(rng.choice([1 << 12, 1 << 17, (1 << 17) + 1, 1 << 22, 1 << 24, 1 << 26, (1 << 27) + 1]))
                kept = set(table[blocks.FIRST_BLOCK :: 2][: table[blocks.KEPT]].tolist())
                block = word("take", at, size)
                assert block % 64 == 0
                history.append(block in kept and known[::-1].index(block))
                known.append(block)
                held.append((block, size))
            sizes = table[blocks.FIRST_BLOCK + 1 :: 2][: table[blocks.KEPT]].tolist()
            assert sum(sizes) == table[blocks.KEPT_BYTES] <= blocks.MOST_KEPT
            history.append(sizes)
        grown = word("resize", at, held[0][0], 1 << 13)
        held[0] = grown, 1 << 13
        assert word("zeroed", at, 1, 8) == 0
        # More than there is; the block stays.
        assert word("take", at, 1 << 60) == word("resize", at, grown, 1 << 60) == 0
        rest = table[blocks.FIRST_BLOCK :: 2][: table[blocks.KEPT]].tolist()
        for block in [*rest, *[block for block, _ in held]]:
            memory = ctypes.c_int64.from_address(block - 8).value
            assert memory < block <= memory + 2 * blocks.PAGE
            HOLDING(int(table[blocks.FREE]))(memory, *[0] * 7)
        histories.append(history)
    assert histories[0] == histories[1]


# ----- Every line -----


@pytest.mark.skipif(sys.gettrace() is not None, reason="another tracer runs")
@pytest.mark.usefixtures("four_threads")
def test_every_line_of_native_code_runs() -> None:
    """The rows above leave no line of native code out."""
    wanted = {
        (name, line)
        for module in MODULES
        for name in native_names(module)
        for _, line in dis.findlinestarts(vars(module)[name].__code__)
        if line and line != vars(module)[name].__code__.co_firstlineno
    }
    names, ran = {name for name, _ in wanted}, set()
    files = {module.__file__ for module in MODULES}

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if code.co_filename not in files or code.co_name not in names:
            return None
        ran.add((code.co_name, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with in_place_of_compiled_code():
            for name in ROWS:
                list(calls(name))
            list(calls_with_out())
        for name in SHORTAGES:
            run_short(name)
        test_blocks()
        run_out_of_shape()
        run_busy()
        run_odd_nodes()
        run_beside_an_error()
        run_interrupted()
    finally:
        sys.settrace(before)
    missing = sorted(f"{name}, line {line}" for name, line in wanted - ran)
    assert not missing, "\n".join(missing)
