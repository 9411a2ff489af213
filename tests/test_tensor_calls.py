"""Compiled calls with Tensors and Parameters: native code reads and makes the objects, so every field must be right.

What a call gives is compared with NumPy's formula; that no Python code took part, with the kind of the callable.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
import tracemalloc
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import nn
from nbgrad.compiled.specialization import Specialization
from nbgrad.graph.ir import constant
from nbgrad.runtime import native_tensors as tensors

from .native_python import PythonCall

pytestmark = pytest.mark.unoptimized(but=16)

X = np.array([0.5, -1.0, 2.0])
W = np.array([3.0, 0.25, -2.0])


def native(f: Any) -> bool:
    """Whether the next call goes to native code, and to which: with arrays only it is another function."""
    return isinstance(f._door.call, types.BuiltinFunctionType | PythonCall)


def plain(tree: Any) -> Any:
    """Tensors as arrays."""
    if isinstance(tree, tuple):
        return tuple([plain(item) for item in tree])
    assert type(tree) is nb.Tensor, type(tree)
    return tree.asnumpy()


# A function, its arguments, and what it gives. Tensors are written as arrays in T(...).
T = nb.Tensor
CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Any]] = {
    "one": (lambda x: x * x, (T(X),), X * X),
    "gradient": (nb.value_and_grad(lambda x: (x**3).sum()), (T(X),), ((X**3).sum(), 3 * X**2)),
    "two": (lambda x, y: x @ y, (T(X), T(W)), X @ W),
    "with an array": (lambda x, y: (x + y, x * y), (T(X), W), (X + W, X * W)),
    "with a float": (lambda x, c: c * x, (T(X), 2.5), 2.5 * X),
    "a float first": (lambda c, x: c * x, (-1.5, T(X)), -1.5 * X),
    "with constants": (lambda x, n, name, flag, none: x**n if flag else x, (T(X), 3, "n", True, None), X**3),
    "nested": (lambda x: ((x, (x + 1,)), (), x - 1), (T(X),), ((X, (X + 1,)), (), X - 1)),
    "a tuple of one": (lambda x: (x * 2,), (T(X),), (X * 2,)),
    "the argument itself": (lambda x: (x, x), (T(X),), (X, X)),
    "many": (lambda x: tuple([x * k for k in range(40)]), (T(X),), tuple([X * k for k in range(40)])),
    "0-d": (lambda x: x * 2, (T(np.float64(1.5)),), np.float64(3.0)),
    "empty": (lambda x: x * 2, (T(np.zeros((0, 3))),), np.zeros((0, 3))),
    "float16": (lambda x: x * 2, (T(X.astype(np.float16)),), X.astype(np.float16) * 2),
    "float32": (lambda x: x * 2, (T(X.astype(np.float32)),), X.astype(np.float32) * 2),
    "integers": (lambda x: x // 2, (T(np.arange(5, dtype=np.int8)),), np.arange(5, dtype=np.int8) // 2),
    "booleans": (lambda x: x > 0, (T(X),), X > 0),
    "large": (lambda x: x + 1, (T(np.ones((300, 300))),), np.full((300, 300), 2.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_calls_without_python(name: str) -> None:
    function, args, expected = CASES[name]
    f = nb.jit(function)
    for k in range(4):
        result = plain(f(*args))
        assert native(f) is (k > 0)
        _same(result, expected)
    assert f.compiled_signatures == 1


def test_the_second_call_goes_through_the_entry_that_it_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    f = nb.jit(lambda x: x * 2 if x.sum() > 0 else -x)
    f(T(X))
    with monkeypatch.context() as patch:
        patch.setattr(Specialization, "run", None)
        np.testing.assert_array_equal(f(T(X)).asnumpy(), 2 * X)
    # A branch that the entry's guards refuse, with an entry that was made before and with one that is made now.
    for x in (-X, X, -X, -X, X):
        np.testing.assert_array_equal(f(T(x)).asnumpy(), 2 * x if x.sum() > 0 else -x)
    other = nb.jit(lambda x: x * 2 if x.sum() > 0 else -x)
    for x in (X, -X, X):
        np.testing.assert_array_equal(other(T(x)).asnumpy(), 2 * x if x.sum() > 0 else -x)
    assert native(other) and len(other.programs()) == 2


def test_calls_of_several_kinds_in_turns() -> None:
    f = nb.jit(lambda x: np.sin(x))
    out = np.empty(3)
    for _ in range(3):
        assert f(X, out=out) is out
        np.testing.assert_allclose(out, np.sin(X))
        np.testing.assert_allclose(f(T(W)).asnumpy(), np.sin(W))
        np.testing.assert_allclose(f(W), np.sin(W))
    assert f.compiled_signatures == 2


def _same(result: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        assert isinstance(result, tuple) and len(result) == len(expected)
        for a, b in zip(result, expected, strict=True):
            _same(a, b)
        return
    assert result.dtype == np.asarray(expected).dtype and result.shape == np.shape(expected)
    np.testing.assert_allclose(result, expected, rtol=1e-15 if result.dtype.itemsize == 8 else 1e-3)


def test_results_are_tensors_as_all_others() -> None:
    f = nb.jit(lambda x: x * 2)
    slow = f(T(X))
    assert not native(f)
    f(T(X))
    assert native(f)
    fast = f(T(X))
    a, b = slow._node, fast._node
    for slot in a.__slots__:
        if slot not in ("value", "serial", "__weakref__"):
            assert getattr(a, slot) == getattr(b, slot), slot
    assert b.serial > a.serial and (T(X) * 2)._node.serial > b.serial
    assert type(b.value) is np.ndarray and b.value.flags.owndata and weakref.ref(b)() is b
    # They differentiate, promote, and can be written to, views included.
    np.testing.assert_array_equal(nb.grad(lambda t: (t * fast).sum())(X), 2 * X)
    view = fast[1:]
    fast[1] = 7.0
    np.testing.assert_array_equal(view.asnumpy(), [7.0, 4.0])
    np.testing.assert_array_equal(slow.asnumpy(), 2 * X)


OTHER: dict[str, tuple[Any, ...]] = {
    "shape": (T(W[:2]), T(X[:2])),
    "dtype": (T(W.astype(np.float32)), T(X.astype(np.float32))),
    "kind": (W, T(X)),
    "float": (2.0, T(X)),
    "integer": (3, T(X)),
    "transposed": (T(np.ones((3, 3))), T(np.arange(9.0).reshape(3, 3).T)),
    "lazy": (T(W), T(X) + 1.0),
    "weak": (T(W), T._of(constant(X, weak=True))),
    "of an array": (T(W), T._of(constant(X))),
    "of numbers": (T(W), T([1.0, 2.0, 3.0])),
    "a Parameter": (nb.Parameter(T(W)), T(X)),
}


@pytest.mark.parametrize("name", OTHER)
def test_what_does_not_fit_goes_to_python(name: str) -> None:
    f = nb.jit(lambda x, y: x * y - y)
    for _ in range(2):
        f(T(W), T(X))
    assert native(f)
    for args in (OTHER[name], (T(W), T(X)), OTHER[name], OTHER[name]):
        x, y = [a.asnumpy() if isinstance(a, T) else a for a in args]
        np.testing.assert_allclose(f(*args).asnumpy(), x * y - y, rtol=1e-6)


def test_tensors_of_numbers_promote_by_their_own_rules() -> None:
    """Integers follow MindSpore's promotion if a user made the Tensor, and NumPy's otherwise."""
    numbers = np.arange(3)
    f = nb.jit(lambda x, y: x + y)
    y = T(np.ones(3, np.float32))
    made, other = T(numbers), T._of(constant(numbers))
    for _ in range(3):
        assert f(made, y).dtype == (made + y).dtype == np.float32
        g = nb.jit(lambda x: x + np.ones(3, np.float32))
        assert g(other).dtype == (other + np.ones(3, np.float32)).dtype
        assert g(made).dtype == (made + np.ones(3, np.float32)).dtype


def test_wrong_calls_are_errors() -> None:
    f = nb.jit(lambda x: x * 2)
    for _ in range(2):
        f(T(X))
    with pytest.raises(TypeError):
        f()
    with pytest.raises(TypeError):
        f(T(X), T(X))
    with pytest.raises(AttributeError):
        f(object.__new__(T))
    np.testing.assert_array_equal(f(T(X)).asnumpy(), 2 * X)


def test_a_call_inside_a_recording_becomes_part_of_it() -> None:
    w = nb.Parameter(T(W))
    f = nb.jit(lambda x: x * x * w)
    x = T(X)
    for _ in range(3):
        f(x)
    assert native(f)
    np.testing.assert_allclose(nb.grad(lambda t: f(t).sum())(x).asnumpy(), 2 * X * W)
    np.testing.assert_allclose(nb.grad(lambda t: (f(x) * t).sum(), None, w)(x).asnumpy(), X**3)
    np.testing.assert_allclose(nb.vmap(f)(T(np.stack([X, W]))).asnumpy(), np.stack([X * X * W, W**3]))
    np.testing.assert_allclose(nb.jit(lambda t: f(t) + 1)(x).asnumpy(), X * X * W + 1)
    np.testing.assert_allclose(f(x).asnumpy(), X * X * W)


def test_the_interpreter_can_be_asked_for_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    module = sys.modules["nbgrad.compiled.specialization"]
    original = module.interpret

    def counting(*args: Any) -> Any:
        calls.append(1)
        return original(*args)

    monkeypatch.setattr(module, "interpret", counting)
    monkeypatch.delenv("NBGRAD_DISABLE_JIT", raising=False)
    f = nb.jit(lambda x: x * 2)
    for _ in range(2):
        f(T(X))
    assert native(f) and not calls
    for value, interpreted in (("1", 1), ("0", 0), ("", 0)):
        monkeypatch.setenv("NBGRAD_DISABLE_JIT", value)
        calls.clear()
        np.testing.assert_array_equal(f(T(X)).asnumpy(), 2 * X)
        assert len(calls) == interpreted
    monkeypatch.delenv("NBGRAD_DISABLE_JIT")
    f(T(X))
    assert native(f) and "NBGRAD_DISABLE_JIT" not in os.environ


# ----- Parameters -----


def test_parameters_are_read_anew() -> None:
    w, b = nb.Parameter(T(W), name="w"), nb.Parameter(T(np.float64(1.0)), name="b")
    f = nb.jit(nb.value_and_grad(lambda x: (w * x + b).sum(), None, [w, b]))
    for k in range(4):
        w.set_data(T(W + k))
        b.set_data(T(np.float64(k)))
        value, (dw, db) = f(T(X))
        np.testing.assert_allclose(value.asnumpy(), ((W + k) * X + k).sum())
        np.testing.assert_array_equal(dw.asnumpy(), X)
        assert db.asnumpy() == 3 and native(f) is (k > 0)
    # Values that are not known yet, of another shape, and of a Parameter that is not trained.
    w[:] = w + 1.0
    assert w._leaf.value is None
    np.testing.assert_allclose(f(T(X))[0].asnumpy(), ((W + 4) * X + 3).sum())
    w.set_data(T(np.float64(2.0)))
    np.testing.assert_allclose(f(T(X))[0].asnumpy(), (2 * X + 3).sum())
    w.requires_grad = False
    assert f(T(X))[1][0].asnumpy() == 0
    w.requires_grad = True
    w.set_data(T(W))
    np.testing.assert_array_equal(f(T(X))[1][0].asnumpy(), X)


def test_a_parameter_as_an_argument_is_this_very_one() -> None:
    f = nb.jit(lambda p, x: p * x)
    first, second = nb.Parameter(T(W)), nb.Parameter(T(X))
    for _ in range(3):
        np.testing.assert_allclose(f(first, T(X)).asnumpy(), W * X)
        np.testing.assert_allclose(f(first, T(X)).asnumpy(), W * X)
        assert native(f)
        np.testing.assert_allclose(f(second, T(X)).asnumpy(), X * X)
    second.set_data(T(W))
    np.testing.assert_allclose(f(second, T(X)).asnumpy(), X * W)


def test_parameters_are_written_natively() -> None:
    w, count = nb.Parameter(T(W), name="w"), nb.Parameter(0, name="count")

    @nb.jit
    def step(x: Any) -> Any:
        before = w * 1.0
        w.set_data(w - 0.5 * x)
        count.set_data(count + 1)
        return before

    held = []
    for k in range(5):
        held.append(w.value())
        np.testing.assert_allclose(step(T(X)).asnumpy(), W - 0.5 * k * X)
        np.testing.assert_allclose(w.asnumpy(), W - 0.5 * (k + 1) * X)
        assert count.asnumpy() == k + 1 and count.dtype == np.int32
        assert k == 0 or native(step)
    for k, value in enumerate(held):
        np.testing.assert_allclose(value.asnumpy(), W - 0.5 * k * X)
    leaf, snapshot = w._held
    slow_leaf, slow_snapshot = w._prepared(np.zeros(3))
    for fast, slow in ((leaf, slow_leaf), (snapshot, slow_snapshot)):
        for slot in fast.__slots__:
            if slot not in ("value", "serial", "owner", "__weakref__"):
                assert getattr(fast, slot) == getattr(slow, slot), slot
        assert fast.owner is slow.owner
    assert leaf.owner is not None and leaf.owner() is w and leaf.value is snapshot.value
    np.testing.assert_array_equal(nb.grad(lambda x: (w * x).sum(), None, w)(T(X)).asnumpy(), X)
    # A value in the user's hands is not the Parameter's any more.
    w.set_data(T(W))
    np.testing.assert_allclose(step(T(X)).asnumpy(), W)


def test_a_cell_is_compiled_again_when_it_changes() -> None:
    net = nn.Dense(3, 2)
    net.set_train(False)
    f = nb.jit(lambda x: net(x) * (2.0 if net.training else 1.0))
    x = np.ones((4, 3), np.float32)
    weight, bias = net.weight.asnumpy(), net.bias.asnumpy()
    expected = x @ weight.T + bias
    for factor in (1.0, 2.0, 1.0, 2.0):
        net.set_train(factor == 2.0)
        for _ in range(3):
            np.testing.assert_allclose(f(T(x)).asnumpy(), factor * expected, rtol=1e-6)
        assert native(f)
    nn.Dense(2, 2)  # changes the version of all Cells, but not this one
    np.testing.assert_allclose(f(T(x)).asnumpy(), 2 * expected, rtol=1e-6)
    assert native(f) and f.compiled_signatures == 1 and len(f.programs()) == 2


def test_a_method_takes_its_object_natively() -> None:
    class Model:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @nb.jit
        def run(self, x: Any) -> Any:
            return x * self.factor

    two, three = Model(2.0), Model(3.0)
    for _ in range(3):
        np.testing.assert_array_equal(two.run(T(X)).asnumpy(), 2 * X)
        np.testing.assert_array_equal(three.run(T(X)).asnumpy(), 3 * X)
        np.testing.assert_array_equal(three.run(X), 3 * X)
    assert native(Model.run)


@pytest.mark.parametrize("lift", [T, np.asarray])
def test_branches_are_guarded_natively(lift: Callable[[np.ndarray], Any]) -> None:
    f = nb.jit(lambda x: (x * 2, x.sum()) if x.sum() > 1 else (x * 3, x.sum()))
    for x in (X, X, X + 1, -W, X, -X, -X, X + 3):
        doubled, total = f(lift(x))
        np.testing.assert_allclose(np.asarray(doubled), x * (2 if x.sum() > 1 else 3))
        assert type(total) is (T if lift is T else np.float64)
        np.testing.assert_allclose(float(total), x.sum())
    assert native(f) and f.compiled_signatures == 1 and len(f.programs()) == 2


def test_a_branch_not_taken_writes_nothing() -> None:
    w = nb.Parameter(T(np.zeros(3)))

    @nb.jit
    def f(x: Any) -> Any:
        w.set_data(w + (1.0 if x[0] > 0 else 10.0))
        return x

    expected = 0.0
    for x in (X, X, -X, X, -X, -X, X):
        f(T(x))
        expected += 1.0 if x[0] > 0 else 10.0
        np.testing.assert_array_equal(w.asnumpy(), [expected] * 3)
    assert native(f)


def test_checks_raise_in_every_call() -> None:
    f = nb.jit(lambda x, k: nb.numpy.take(x, k))
    for _ in range(3):
        for _ in range(3):
            np.testing.assert_array_equal(f(T(X), T(np.array([2, 0]))).asnumpy(), X[[2, 0]])
        assert native(f)
        with pytest.raises(nb.errors.RangeError):
            f(T(X), T(np.array([2, 3])))
    np.testing.assert_array_equal(f(T(X), T(np.array([1, 1]))).asnumpy(), X[[1, 1]])


def test_containers_are_made_in_python() -> None:
    f = nb.jit(lambda x: {"a": x, "b": [x * 2, "text", x.sum()]})
    for x in (X, W, X + 1):
        for lift in (T, np.asarray):
            found = f(lift(x))
            assert type(found["a"]) is (T if lift is T else np.ndarray) and found["b"][1] == "text"
            np.testing.assert_array_equal(np.asarray(found["a"]), x)
            np.testing.assert_array_equal(np.asarray(found["b"][0]), 2 * x)
            np.testing.assert_allclose(float(found["b"][2]), x.sum())
            assert type(found["b"][2]) is (T if lift is T else np.float64)
    f(T(X))
    for _ in range(2):
        np.testing.assert_allclose(nb.grad(lambda t: (f(t)["a"] * f(T(W))["a"]).sum())(X), W)
        np.testing.assert_array_equal(f(T(X[:2]))["a"].asnumpy(), X[:2])


def test_cells_that_change_silently_are_looked_at() -> None:
    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.factors = [2.0]

        def construct(self, x: Any) -> Any:
            return x * self.factors[0]

    net = Net()
    f = nb.jit(net)
    for factor in (2.0, 3.0, 2.0):
        net.factors[0] = factor
        for _ in range(3):
            np.testing.assert_array_equal(f(T(X)).asnumpy(), factor * X)


def test_objects_that_are_laid_out_in_another_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then all is done in Python."""

    def lost(*_: Any) -> Any:
        raise LookupError

    tensors._layout.cache_clear()
    for found in (False, True):
        with monkeypatch.context() as patch:
            if not found:
                patch.setattr(tensors, "slots", lost)
            f = nb.jit(lambda x: x * 2)
            for x in (X, W, X):
                np.testing.assert_array_equal(f(T(x)).asnumpy(), 2 * x)
            assert native(f) is found
        tensors._layout.cache_clear()


# ----- Lives of objects -----


def _balance(call: Callable[[], Any], watched: list[Any], times: int) -> tuple[list[int], int]:
    """How reference counts of objects, and the bytes in use, change by many calls."""
    for _ in range(100):
        call()
    gc.collect()
    tracemalloc.start()
    try:
        call()
        before, bytes_before = [sys.getrefcount(thing) for thing in watched], tracemalloc.get_traced_memory()[0]
        for _ in range(times):
            call()
        gc.collect()
        after, bytes_after = [sys.getrefcount(thing) for thing in watched], tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    return [b - a for a, b in zip(before, after, strict=True)], bytes_after - bytes_before


def test_many_calls_leave_nothing_behind() -> None:
    x, w = T(X), nb.Parameter(T(W))
    f = nb.jit(nb.value_and_grad(lambda x: (w * x * x).sum(), 0, w))
    step = nb.jit(lambda x, c, n: (w.set_data(w * c), x * w)[1])
    template = f(x)[0]._node
    node = x._node
    shared = [template.primitive, template.shape, template.inputs, template.dtype]
    watched = [x, node, node.value, w, T, type(node), np.ndarray, *shared]
    for call, times in ((lambda: f(x), 30_000), (lambda: step(x, 1.0, 3), 10_000), (lambda: f(T(W[:2])[0]), 300)):
        change, growth = _balance(call, watched, times)
        assert all(abs(count) <= 3 for count in change), change
        assert growth < 20_000
    assert native(step)


def test_results_outlive_everything_else() -> None:
    def results() -> Any:
        f = nb.jit(lambda x: (x * 2, x + 1))
        f(T(X))
        f(T(X))
        assert native(f)
        return f(T(X))

    a, b = results()
    gc.collect()
    filler = [np.full(3, 9.0) for _ in range(100)]
    np.testing.assert_array_equal(a.asnumpy(), 2 * X)
    np.testing.assert_array_equal((b * 2).asnumpy(), 2 * (X + 1))
    assert len(filler) == 100
    gone = weakref.ref(a)
    del a
    assert gone() is None


def test_compiled_functions_and_parameters_are_collected() -> None:
    w = nb.Parameter(T(W))
    f = nb.jit(lambda x, p: (p.set_data(p + x), p * x)[1])
    for _ in range(3):
        f(T(X), w)
    assert native(f)
    gone = [weakref.ref(thing) for thing in (f, w)]
    del f, w
    gc.collect()
    assert [thing() for thing in gone] == [None, None]


def test_finalizers_may_do_anything() -> None:
    """The collector runs in the midst of native code where objects are made; what it runs may call us again."""
    w = nb.Parameter(T(np.zeros(3)))
    f = nb.jit(lambda x: (x + w, x - w, x * 2))
    f(T(X))
    calls: list[float] = []

    class Loop:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            calls.append(float(f(T(X))[2].asnumpy().sum()))
            w.set_data(T(np.full(3, float(len(calls)))))

    threshold = gc.get_threshold()
    gc.set_threshold(2)
    try:
        for _ in range(300):
            Loop()
            a, b, c = plain(f(T(X)))
            np.testing.assert_allclose(a + b, 2 * X)
            np.testing.assert_array_equal(c, 2 * X)
            assert len(set((a - X).round(9))) == 1
    finally:
        gc.set_threshold(*threshold)
    assert calls and set(calls) == {2 * X.sum()}


def test_arrays_stay_while_threads_replace_them() -> None:
    """Large programs run without the interpreter's lock: what they read must not be freed meanwhile."""
    size = 400_000
    x, w = T(np.ones(size)), nb.Parameter(T(np.ones(size)))
    f = nb.jit(lambda x: (x * w).sum() / size)
    f(x)
    stop = threading.Event()
    errors: list[BaseException] = []

    def replace() -> None:
        try:
            while not stop.is_set():
                w.set_data(T(np.ones(size)))
                x[:] = 1.0
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=replace)
    thread.start()
    try:
        for _ in range(100):
            assert f(x).asnumpy() == 1.0
    finally:
        stop.set()
        thread.join()
    assert not errors


def test_threads_share_a_function() -> None:
    w = nb.Parameter(T(W))
    f = nb.jit(nb.value_and_grad(lambda x: (w * x).sum()))
    f(T(X))
    wrong: list[Any] = []

    def work(k: int) -> None:
        x = T(X + k)
        for _ in range(2000):
            value, gradient = f(x)
            if abs(float(value.asnumpy()) - ((X + k) * W).sum()) > 1e-12 or (gradient.asnumpy() != W).any():
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
