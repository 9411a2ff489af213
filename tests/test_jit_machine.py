"""A state machine of jit's specializations: each call of a compiled function gives the result of its plain function.

The rules change what a specialization depends on: the values of Parameters, the mode and attributes of a Cell, shapes,
dtypes and kinds of arguments, the order of dicts, what callers do to results; and they call from other threads.
"""

from __future__ import annotations

import collections
import threading
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

import nbgrad as nb

pytestmark = pytest.mark.unoptimized


class Pair(NamedTuple):
    first: Any
    second: Any


class Model(nb.nn.Cell):
    """A Cell with a Parameter, an attribute, a list and a mode."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nb.Parameter(np.array([1.0, 2.0]), name="weight")
        self.power = 1
        self.offsets = [0.5]

    def construct(self, x: Any) -> Any:
        y = self.weight * x**self.power + sum(self.offsets)
        return y * 10.0 if self.training else y


class Plain:
    """What the Cell means, on ndarrays."""

    def __init__(self) -> None:
        self.weight = np.array([1.0, 2.0])
        self.power, self.offsets, self.training = 1, [0.5], False

    def __call__(self, x: np.ndarray) -> np.ndarray:
        y = self.weight * x**self.power + sum(self.offsets)
        return y * 10.0 if self.training else y


def weighted(values: Any) -> Any:
    """A sum that depends on the order of its terms."""
    total = 0
    for position, value in enumerate(values):
        total = total + (position + 1) * value
    return total


def branches(x: Any, limit: Any) -> Any:
    """Branches on values, a constant beside the results, and the argument itself."""
    kind = "low"
    while np.sum(x) > limit:
        x = x - 1.0
        kind = "high"
    return {"x": x, "kind": kind, "twice": (x, x), "constant": np.zeros(2)}


def of_dict(d: Any) -> Any:
    return {"total": weighted(d.values()), "keys": list(d)}


def of_pair(p: Any, scale: Any) -> Any:
    return type(p)(p.second * scale, [p.first, np.ones(1)])


FUNCTIONS = {"branches": branches, "of_dict": of_dict, "of_pair": of_pair}
numbers = st.integers(-4, 4).map(float)
dtypes = st.sampled_from([np.float64, np.float32, np.int64])
arrays = st.builds(
    lambda values, dtype, order: np.array(values, dtype)[::order],
    st.lists(st.integers(-4, 4), min_size=2, max_size=2) | st.lists(st.integers(-4, 4), min_size=1, max_size=4),
    dtypes,
    st.sampled_from([1, -1]),
)
pairs = st.lists(st.integers(-4, 4), min_size=2, max_size=2).map(lambda values: np.array(values, float))
leaves = arrays | numbers | st.integers(-3, 3) | st.booleans()


def same(got: Any, want: Any) -> None:
    """Equal in structure, types of containers, dtypes and values."""
    if isinstance(want, dict):
        assert list(got) == list(want) and type(got) is type(want)
        for key, value in want.items():
            same(got[key], value)
    elif isinstance(want, list | tuple):
        assert type(got) is type(want) and len(got) == len(want)
        for one, other in zip(got, want, strict=True):
            same(one, other)
    elif isinstance(want, str):
        assert got == want
    else:
        np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=1e-6)
        assert np.asarray(got).dtype == np.asarray(want).dtype


def arrays_in(tree: Any) -> list[np.ndarray]:
    """All ndarrays in nested containers."""
    if isinstance(tree, dict):
        return [array for value in tree.values() for array in arrays_in(value)]
    if isinstance(tree, list | tuple):
        return [array for value in tree for array in arrays_in(value)]
    return [tree] if isinstance(tree, np.ndarray) else []


class Specializations(RuleBasedStateMachine):
    """Compiled functions beside plain ones."""

    def __init__(self) -> None:
        super().__init__()
        self.compiled = {name: nb.jit(function) for name, function in FUNCTIONS.items()}
        self.model, self.plain = Model(), Plain()
        self.forward = nb.jit(self.model)
        self.gradient = nb.jit(nb.grad(lambda x: self.model(x).sum(), None, self.model.weight))

    def check(self, name: str, *args: Any) -> None:
        """One call, in this thread; the caller then overwrites all that he got, and what he gave."""
        want = FUNCTIONS[name](*args)
        kept = [array.copy() for array in arrays_in(args)]
        got = self.compiled[name](*args)
        same(got, want)
        results = arrays_in(got)
        for number, result in enumerate(results):
            result[...] = 77
            assert all(not np.shares_memory(result, other) for other in results[:number])
        for array, before in zip(arrays_in(args), kept, strict=True):
            np.testing.assert_array_equal(array, before)

    # ----- Functions -----

    @rule(x=pairs, limit=numbers)
    def take_a_branch(self, x: np.ndarray, limit: float) -> None:
        self.check("branches", x, limit)

    @rule(
        values=st.lists(leaves, min_size=3, max_size=3),
        order=st.permutations("abc"),
        kind=st.sampled_from([dict, collections.OrderedDict]),
    )
    def pass_a_dict(self, values: list[Any], order: list[str], kind: Any) -> None:
        if any(isinstance(value, np.ndarray) for value in values):
            values = [np.resize(value, 2) if isinstance(value, np.ndarray) else value for value in values]
        else:
            values = [1.5, *values[1:]]
        self.check("of_dict", kind(zip(order, values, strict=True)))

    @rule(first=arrays, second=arrays, scale=numbers | st.integers(-3, 3) | st.booleans())
    def pass_a_named_tuple(self, first: Any, second: Any, scale: Any) -> None:
        self.check("of_pair", Pair(first, second), scale)

    @rule(points=st.lists(st.tuples(pairs, numbers), min_size=2, max_size=4))
    def call_from_threads(self, points: list[Any]) -> None:
        failures: list[BaseException] = []

        def work(x: np.ndarray, limit: float) -> None:
            try:
                self.check("branches", x, limit)
                same(self.forward(nb.Tensor(x)).asnumpy(), self.plain(x))
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=point) for point in points]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures, failures

    # ----- A Cell -----

    @rule(values=pairs)
    def set_the_parameter(self, values: np.ndarray) -> None:
        self.model.weight.set_data(nb.Tensor(values))
        self.plain.weight = values

    @rule(values=pairs)
    def step_in_place(self, values: np.ndarray) -> None:
        self.model.weight += nb.Tensor(values)
        self.plain.weight = self.plain.weight + values

    @rule(mode=st.booleans())
    def set_the_mode(self, mode: bool) -> None:
        self.model.set_train(mode)
        self.plain.training = mode

    @rule(power=st.integers(1, 3))
    def set_the_attribute(self, power: int) -> None:
        self.model.power = self.plain.power = power

    @rule(offset=numbers)
    def change_the_list(self, offset: float) -> None:
        self.model.offsets.append(offset)
        self.plain.offsets.append(offset)
        del self.model.offsets[:-2], self.plain.offsets[:-2]

    @rule(trainable=st.booleans())
    def freeze_the_parameter(self, trainable: bool) -> None:
        self.model.weight.requires_grad = trainable

    @rule(x=pairs, repeat=st.integers(1, 3))
    def call_the_cell(self, x: np.ndarray, repeat: int) -> None:
        for _ in range(repeat):
            same(self.forward(nb.Tensor(x)).asnumpy(), self.plain(x))

    @rule(x=pairs, repeat=st.integers(1, 3))
    def differentiate_the_cell(self, x: np.ndarray, repeat: int) -> None:
        scale = 10.0 if self.plain.training else 1.0
        want = scale * x**self.plain.power if self.model.weight.requires_grad else np.zeros(2)
        for _ in range(repeat):
            same(self.gradient(nb.Tensor(x)).asnumpy(), want)


QUICK = settings(
    max_examples=8,
    stateful_step_count=15,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def test_specializations() -> None:
    run_state_machine_as_test(Specializations, settings=QUICK)


@pytest.mark.slow
def test_more_specializations() -> None:
    longer = settings(QUICK, max_examples=150, stateful_step_count=50, derandomize=False)
    run_state_machine_as_test(Specializations, settings=longer)
