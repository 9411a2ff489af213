"""What recording remembers: values that control flow asks for, numbers, and how seldom garbage is collected."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.graph import interpret as interpreter
from nbgrad.graph.graph_key import structure
from nbgrad.graph.ir import placeholder, topological
from nbgrad.graph.trace import recording
from nbgrad.process.modes import attentive, leaves_made
from nbgrad.record import as_node
from nbgrad.record.tensor import Tensor
from nbgrad.runtime.memory_order import strides_of
from nbgrad.transforms.rolled import nodes_in, roll_up


def root_of(a: Any) -> Any:
    """Newton's iteration for a root, as long as it makes progress."""
    x = a
    while True:
        better = 0.5 * (x + a / x)
        if np.abs(better - x) < 1e-12 * x:
            return better
        x = better


@pytest.mark.parametrize("transform", [nb.grad, lambda f: nb.jit(nb.grad(f)), nb.jacfwd])
def test_a_loop_until_converged(transform: Any) -> None:
    np.testing.assert_allclose(transform(root_of)(9.0), 1 / 6, rtol=1e-12)
    np.testing.assert_allclose(transform(root_of)(1e6), 5e-4, rtol=1e-12)


@pytest.mark.parametrize("transform", [nb.grad, lambda f: nb.jit(nb.grad(f))])
def test_turns_of_a_loop_are_computed_once(transform: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn asks for a truth value: the operations that are evaluated are as many as there are."""
    evaluated = []
    evaluate = interpreter.evaluate_node
    monkeypatch.setattr(
        interpreter, "evaluate_node", lambda node, values: [evaluated.append(node), evaluate(node, values)][1]
    )

    def f(x: Any) -> Any:
        for _ in range(50):
            x = x * 0.5 + 1.0
            if np.sum(x) > 1e9:
                break
        return np.sum(x)

    np.testing.assert_allclose(transform(f)(np.ones(3)), 0.5**50 * np.ones(3))
    assert len(evaluated) < 50 * 8, len(evaluated)


def test_branches_of_branches_keep_their_own_values() -> None:
    """The inner function's argument is another node at each call, with another value."""

    def inner(y: Any) -> Any:
        return y * y if y > 2.0 else 3.0 * y

    def outer(x: Any) -> Any:
        slope = nb.grad(inner)(x)
        return slope * x if slope > 3.5 else x + nb.grad(inner)(2.0 * x)

    assert nb.grad(outer)(3.0) == 12.0  # slope 2 x, so 2 x**2
    assert nb.grad(outer)(1.5) == 5.0  # slope 3, so x + 2 (2 x)


def test_jit_records_each_number_once() -> None:
    """A number that is no simple one is read from memory: one place for all its uses."""

    def constants(jit: bool) -> int:
        x = placeholder((3,), np.dtype(float), np.ones(3))
        with recording([x], jit=jit):
            y: Any = Tensor._of(x)
            for _ in range(5):
                y = np.sin(y * 0.3) + 0.3
        return sum(node.name == "constant" and node.value == 0.3 for node in topological([y._node]))

    assert constants(jit=True) == 1
    assert constants(jit=False) == 10


def test_numbers_of_other_calls_do_not_get_mixed_up() -> None:
    """Un-jitted gradients share one program, whether two numbers are equal or not."""

    def f(a: float, b: float) -> Any:
        return nb.grad(lambda x: np.sum(x * a + x * x * b))(np.array([1.0, 2.0]))

    for a, b in ((0.3, 0.3), (0.3, 0.7), (0.0, -0.0), (np.nan, 1.0), (2.0, 2.0), (2, 2.0), (True, 1)):
        np.testing.assert_array_equal(f(a, b), a + 2.0 * b * np.array([1.0, 2.0]))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_signs_of_zeros_and_infinities_in_numbers(dtype: Any) -> None:
    x = np.array([1.0, -2.0], dtype)
    for number in (0.0, -0.0, np.inf, -np.inf, 1e-320, 0.1, 7, -7):
        with np.errstate(all="ignore"):
            want = [x * number, number - x, x / number, x + number]
        got = nb.jit(lambda x, number=number: (x * number, number - x, x / number, x + number))(x)
        for g, w in zip(got, want, strict=True):
            assert g.dtype == w.dtype == dtype
            np.testing.assert_array_equal(g, w)
            np.testing.assert_array_equal(np.signbit(g), np.signbit(w))


def test_the_collector_is_as_before() -> None:
    usual = gc.get_threshold()
    seen = []

    def f(x: Any, turns: int, divisor: int) -> Any:
        for _ in range(turns):
            x = x * x
        seen.append(gc.get_threshold()[0])
        return np.sum(x) + 1 // divisor

    nb.grad(f)(np.ones(3), 1500, 1)
    assert seen == [100_000]
    assert gc.get_threshold() == usual
    with pytest.raises(ZeroDivisionError):
        nb.grad(f)(np.ones(3), 1500, 0)
    assert gc.get_threshold() == usual
    gc.set_threshold(0)
    try:
        nb.grad(f)(np.ones(3), 1500, 1)
        assert seen[-1] == 0
        assert gc.get_threshold()[0] == 0
    finally:
        gc.set_threshold(*usual)


def test_the_key_of_a_graph() -> None:
    x, y = placeholder((3,), np.dtype(float)), placeholder((3,), np.dtype(float))
    single = placeholder((3,), np.dtype(np.float32))
    assert structure([x * y + x, x], [])[1] == [x, y]
    assert structure([x * y], [])[0] == structure([y * placeholder((3,), np.dtype(float))], [])[0]
    keys = [structure(nodes, [])[0] for nodes in ([x + x], [x + y], [x * y], [x + 1.0], [x + 2.0], [single + 1.0])]
    assert len(set(keys)) == len(keys)


def python_calls(call: Callable[[], Any]) -> list[str]:
    """The files of nbgrad whose functions a call enters, one for each time; native code may run as Python here."""
    root, entered = str(Path(nb.__file__).parent), []

    def note(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(root) and not file.endswith(NATIVE):
            entered.append(file)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(before)
    return entered


NATIVE = ("native.py", "native_tensors.py", "blocks.py")


@pytest.fixture
def nothing_remembers() -> Iterator[None]:
    """As in a process that has made no differentiable leaf, whatever other tests did."""
    before = leaves_made[:], attentive[:]
    leaves_made.clear()
    attentive.clear()
    yield
    leaves_made[:], attentive[:] = before


@pytest.mark.parametrize(
    ("argument", "most", "files"), [(np.ones(3), 40, 12), (nb.Tensor(np.ones(3)), 47, 13)], ids=["array", "Tensor"]
)
@pytest.mark.usefixtures("nothing_remembers")
def test_a_warm_gradient_takes_few_calls(argument: Any, most: int, files: int) -> None:
    """From the user's call to the program and back; an operation is three calls."""
    slope = nb.grad(lambda x: np.sum(np.sin(x) * x))
    slope(argument)
    # The fewest of some: a search for garbage may come in between.
    entered = min([python_calls(lambda: slope(argument)) for _ in range(3)], key=len)
    assert len(entered) <= most
    assert len(set(entered)) <= files


WIDE = np.random.default_rng(3).normal(size=(6, 6)) / 3
CHANGES: dict[str, Callable[[np.ndarray], None]] = {
    "nothing": lambda w: None,
    "an element": lambda w: w.__setitem__((2, 3), 0.25),
    "the sign of a zero": lambda w: w.__setitem__(w == 0, -0.0),
    "all": lambda w: w.__setitem__(..., w * 0.5),
    "a value that equals nothing": lambda w: w.__setitem__((0, 0), np.nan),
}
"""How an array is written to between two operations."""
KINDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "in C order": np.copy,
    "in Fortran order": np.asfortranarray,
    "every second element": lambda w: np.repeat(np.repeat(w, 2, 0), 2, 1)[::2, ::-2],
    "complex": lambda w: w * (1 + 0.5j),
    "of single precision": lambda w: w.astype(np.float32),
    "of booleans": lambda w: w > 0,
}


@pytest.mark.parametrize("copied", [0, 4096])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", CHANGES)
def test_an_array_counts_as_it_is_when_it_is_used(
    kind: str, change: str, copied: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also one that was met before in the same recording; `copied` is the size up to which copies are compared."""
    monkeypatch.setattr(as_node, "COPIED", copied)
    wide = KINDS[kind](np.where(WIDE > 0.5, 0.0, WIDE))

    def f(x: Any, w: Any) -> list[Any]:
        found = [w * x, np.copysign(x, np.real(w))]
        CHANGES[change](w)
        return [*found, w * x, np.copysign(x, np.real(w))]

    expected = f(WIDE[0], wide.copy())
    found = nb.jit(lambda x: f(x, wide))(WIDE[0])
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_tensor_of_an_array_is_of_its_own() -> None:
    """Its rules and later values concern no operation on the array."""
    wide = WIDE.astype(np.float32)

    def f(x: Any) -> Any:
        before = wide + x
        made = nb.Tensor(wide)
        made.asnumpy()[0] = 100.0
        made[1] = 200.0
        nb.numpy.array(wide).asnumpy()[2] = 300.0
        assert not (wide + x)._node.tensor
        return before, wide + x, made

    x = np.arange(6.0)
    for one, other in zip(nb.jit(f)(x)[:2], [wide + x] * 2, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
def test_an_array_may_change_its_shape_while_it_is_known() -> None:
    wide = WIDE.copy()

    def f(x: Any, w: np.ndarray) -> Any:
        w.shape = (6, 6)
        first = w * x
        w.shape = (36,)
        return np.sum(first, 0), np.sum(w * x[0])

    for one, other in zip(nb.jit(lambda x: f(x, wide))(WIDE[0]), f(WIDE[0], wide.copy()), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-13)


@pytest.mark.parametrize("used", [lambda w, x: w @ x, lambda w, x: w * x, lambda w, x: x[:, None] - w])
def test_an_array_of_all_turns_is_one_constant(used: Callable[[Any, Any], Any]) -> None:
    """A loop had an array of as many copies of the matrix as it had turns."""

    def f(x: Any) -> Any:
        for _ in range(400):
            y = used(WIDE, x)
            x = np.tanh(y if y.ndim == 1 else np.sum(y, 0)) + 0.1 * x
        return np.sum(x)

    argument = placeholder((6,), np.dtype(float), WIDE[0])
    with recording([argument], rolls=strides_of) as trace:
        output = f(Tensor._of(argument))
        roll_up(trace, nodes_in(output), [argument])
    constants = [node for node in topological(nodes_in(output)) if node.name == "constant"]
    assert sum(node.size for node in constants) <= 2 * WIDE.size
    np.testing.assert_allclose(interpreter.interpret(nodes_in(output))[0], f(WIDE[0]), rtol=1e-11)


def test_equal_numbers_are_one_array_and_stay_two_inputs() -> None:
    """The memo of numbers does not tie them: another call of the same function may have two values."""
    slope = nb.grad(lambda x, a, b: np.sum((x * a) * (x * b)))
    for a, b in ((1.1, 1.1), (1.1, 2.3), (-0.0, 0.0), (np.nan, 1.1)):
        np.testing.assert_array_equal(slope(np.array([2.0]), a, b), [2 * a * b * 2.0])
