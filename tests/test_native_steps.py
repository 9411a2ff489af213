"""Native code that follows loops, run as Python (native_python.py): values, memory that runs out, and references.

The programs are those of test_followed_calls.py, and the oracle is NumPy, bit for bit.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import Node, due
from nbgrad.graph.loops.follower import Followed
from nbgrad.record import followed
from nbgrad.record.tensor import Tensor
from nbgrad.runtime import native_steps as steps
from nbgrad.runtime.words import native_address

from .native_python import Processor, called
from .test_followed_calls import PROGRAMS, X, _short_windows, recorded

FEW = (
    "elements_of_the_argument",
    "a_number_of_every_turn",
    "operands_in_another_order",
    "another_number",
    "every_kind_of_argument",
    "arguments_of_other_kinds_in_some_turns",
    "parts_that_are_views",
    "keys_of_every_kind",
)
__all__ = ["_short_windows"]  # a fixture of all tests here, too
pytestmark = [pytest.mark.unoptimized(but=16), pytest.mark.usefixtures("unseen")]
NAMES = {native_address(function, count): function.__name__ for function, count in steps.FUNCTIONS.items()}


class StepProcessor(Processor):
    """The instructions of the functions that follow loops."""

    modules = (steps,)

    @cached_property
    def meanings(self) -> dict[int, Callable[..., int]]:
        return {}

    @cached_property
    def interface(self) -> set[int]:
        return {int(word) for word in state()[steps.LIST_SIZE : steps.VECTORCALL + 1]}


def state() -> np.ndarray:
    found = steps._state(Tensor, Followed)
    assert found is not None
    return found


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch) -> StepProcessor:
    """Loops are followed by native code as Python."""
    made = StepProcessor()

    def native_callable(address: int, table: np.ndarray, _: Any) -> Callable[..., Any]:
        return lambda *arguments: called(NAMES[address], table, arguments, made)

    monkeypatch.setattr(steps, "native_callable", native_callable)
    expected = followed._Expected()
    for place in ("call", "function", "native", "tables", "_is_known"):
        monkeypatch.setattr(followed.expected, place, getattr(expected, place))
    return made


@pytest.mark.parametrize("name", FEW)
def test_values_have_the_same_bits(name: str, processor: StepProcessor) -> None:
    values = interpret(recorded(PROGRAMS[name]))
    assert all(map(np.array_equal, values, PROGRAMS[name](X.copy())))
    assert processor.calls["expect_call"] > 50


# The function that fails, after so many calls that succeed.
SHORTAGES = {
    "the tuple of operands": (steps.NEW_TUPLE, 20),
    "a node": (steps.NEW_OBJECT, 40),
    "a Tensor": (steps.NEW_OBJECT, 41),
    "a serial number": (steps.NEXT, 20),
    "an element": (steps.NEW_OBJECT, 2),
    "the base of a view": (steps.NEW_TUPLE, 22),
    "a weak reference": (steps.NEW_REFERENCE, 3),
    "the views of an array": (steps.NEW_DICT, 3),
    "the number of a view": (steps.NEW_NUMBER, 3),
}


@pytest.mark.parametrize("name", SHORTAGES)
def test_without_memory(name: str, processor: StepProcessor) -> None:
    """A loop without memory raises MemoryError, and the next one is as ever."""
    slot, after = SHORTAGES[name]

    def program(u: Any) -> list[Any]:
        fixed = u
        for k in range(90):
            if k == 80:
                processor.fail[int(state()[slot])] = after
            u = np.sin(u * fixed[0]) * fixed[1] + fixed[2] * u[::-1]
        return [u]

    with pytest.raises(MemoryError):
        recorded(program)
    processor.fail.clear()
    assert not any(due)
    np.testing.assert_array_equal(interpret(recorded(PROGRAMS[FEW[0]]))[0], PROGRAMS[FEW[0]](X.copy())[0])


@pytest.mark.parametrize(
    "name", ["the_same_in_all_turns", "every_value_is_kept", "every_kind_of_argument", "keys_of_every_kind"]
)
def test_nothing_is_left_behind(name: str) -> None:
    """Compiled native code keeps no node or Tensor, and gives back no reference that is not its own."""

    def alive() -> int:
        gc.collect()
        return sum(isinstance(thing, Node | Tensor) for thing in gc.get_objects())

    recorded(PROGRAMS[name])
    before = alive()
    counts = [sys.getrefcount(one) for one in (Tensor, Followed, Node)]
    for _ in range(3):
        recorded(PROGRAMS[name])
    assert alive() - before < 20
    assert all(
        abs(sys.getrefcount(one) - count) < 20 for one, count in zip((Tensor, Followed, Node), counts, strict=True)
    )
