"""What users of Cells, Parameters and `jit` may rely on.

Right results are those of the same program without `jit`, or MindSpore 2.10's.
"""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import Parameter, ParameterTuple, Tensor, nn, ops
from nbgrad.errors import NbgradError, TracedValueError

X = Tensor(np.arange(12.0, dtype=np.float32).reshape(4, 3) / 7 - 0.5)


def agree(compiled: Any, plain: Any) -> None:
    np.testing.assert_allclose(compiled(X).asnumpy(), plain(X).asnumpy(), rtol=1e-5, atol=1e-6)


def test_parameters_of_a_parameter_tuple_belong_to_the_cell() -> None:
    """As in MindSpore: they are found under their names, with the prefix of the Cell's attribute."""

    class Scaled(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.scales = ParameterTuple([Parameter(Tensor([1.0]), name="a"), Parameter(Tensor([2.0]), name="b")])

        def construct(self, x: Any) -> Any:
            return x * self.scales[0] * self.scales[1]

    class Outer(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Scaled()

        def construct(self, x: Any) -> Any:
            return self.inner(x)

    assert [p.name for p in Scaled().trainable_params()] == ["a", "b"]
    assert [p.name for p in Outer().trainable_params()] == ["inner.a", "inner.b"]


class Loop(nn.Cell):
    """Calls the Cells in a container, which is not called itself."""

    def __init__(self, container: Any) -> None:
        super().__init__()
        self.container = container

    def construct(self, x: Any) -> Any:
        for cell in self.container.cells():
            x = cell(x)
        return x


@pytest.mark.parametrize(
    ("container", "change"),
    [
        (nn.CellList([nn.Dense(3, 3)]), lambda c: c.append(nn.Dense(3, 3))),
        (nn.CellList([nn.Dense(3, 3)]), lambda c: c.insert(0, nn.Dense(3, 3))),
        (nn.CellList([nn.Dense(3, 3)]), lambda c: c.__setitem__(0, nn.Dense(3, 3))),
        (nn.CellList([nn.Dense(3, 3), nn.Dense(3, 3)]), lambda c: c.__delitem__(0)),
        (nn.CellDict({"a": nn.Dense(3, 3)}), lambda c: c.update({"b": nn.Dense(3, 3)})),
        (nn.CellDict({"a": nn.Dense(3, 3)}), lambda c: c.clear()),
        (nn.SequentialCell(nn.Dense(3, 3)), lambda c: c.append(nn.Tanh())),
    ],
)
def test_compiled_cells_notice_changed_containers(container: Any, change: Any) -> None:
    net = Loop(container)
    compiled = nb.jit(net)
    agree(compiled, net)
    change(container)
    agree(compiled, net)


def test_compiled_cells_notice_attributes_of_cells_that_are_not_called() -> None:
    class Tied(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(3, 3)
            self.table.scale = 2.0

        def construct(self, x: Any) -> Any:
            return ops.matmul(x, self.table.embedding_table) * self.table.scale

    net = Tied()
    compiled = nb.jit(net)
    agree(compiled, net)
    net.table.scale = 3.0
    agree(compiled, net)
    net.table.embedding_table = Parameter(Tensor(np.eye(3, dtype=np.float32)))
    agree(compiled, net)


def test_compiled_cells_notice_writes_to_their_tensors() -> None:
    class Masked(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.mask = Tensor([1.0, 0.0, 1.0])

        def construct(self, x: Any) -> Any:
            return x * self.mask

    net = Masked()
    compiled = nb.jit(net)
    agree(compiled, net)
    net.mask[0] = 5.0
    agree(compiled, net)


def test_a_compiled_cell_with_a_tensor_as_state_is_right_or_refused() -> None:
    class Total(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.total = Tensor(np.zeros(3, np.float32))

        def construct(self, x: Any) -> Any:
            self.total = self.total + x.sum(0)
            return self.total * 1

    plain, compiled = Total(), nb.jit(Total())
    for factor in (1.0, 2.0, 3.0):
        expected = plain(X * factor)
        try:
            found = compiled(X * factor)
        except NbgradError:
            return
        np.testing.assert_allclose(found.asnumpy(), expected.asnumpy(), rtol=1e-5)


@pytest.mark.parametrize("transform", [nb.jit, nb.vmap], ids=["jit", "vmap"])
def test_tensors_that_a_recorded_function_writes_to_stay_usable(transform: Any) -> None:
    """MindSpore's compiled functions leave the caller's Tensor alone; an error at the write would do as well."""
    outside = Tensor([1.0, 2.0, 3.0])

    def f(x: Any) -> Any:
        outside[0] = x.sum()
        return outside * x

    with contextlib.suppress(NbgradError):
        transform(f)(X)
    assert (outside + 0).tolist() == [1.0, 2.0, 3.0]


def test_what_leaks_from_a_recording_says_so() -> None:
    leaked: list[Any] = []

    def f(x: Any) -> Any:
        leaked.append(x.sum())
        return x * 2

    nb.jit(f)(X)
    with pytest.raises(TracedValueError, match="record"):
        nb.jit(lambda x: x * leaked[0])(X)
    with pytest.raises(TracedValueError, match="record"):
        nb.grad(lambda x: (x * leaked[0]).sum())(X)


@pytest.mark.parametrize(("name", "expected"), [("equal", False), ("not_equal", True), ("less", True), ("ge", False)])
def test_comparing_two_python_numbers(name: str, expected: bool) -> None:
    assert bool(getattr(ops, name)(2, 3)) is expected


def test_a_parameter_that_is_an_argument_of_a_compiled_function_can_be_written() -> None:
    w = Parameter(Tensor([1.0, 2.0]), name="w")
    nb.jit(lambda p: ops.assign_add(p, Tensor([1.0, 1.0])))(w)
    assert w.value().tolist() == [2.0, 3.0]


def test_a_parameter_that_is_not_trainable_and_an_argument_of_a_compiled_function() -> None:
    w = Parameter(Tensor([1.0, 2.0, 3.0]), name="w", requires_grad=False)

    def gradient(x: Any, p: Any) -> Any:
        return nb.grad(lambda y: (y * p).sum(), None, p)(x)

    np.testing.assert_array_equal(nb.jit(gradient)(X, w).asnumpy(), gradient(X, w).asnumpy())


def test_a_cell_without_super_init_says_what_is_missing() -> None:
    class Forgot(nn.Cell):
        def __init__(self) -> None:
            self.factor = 3

        def construct(self, x: Any) -> Any:
            return x * self.factor

    with pytest.raises(NbgradError, match=r"super\(\).__init__\(\)"):
        Forgot()(X)


def test_norms_of_float16_do_not_overflow() -> None:
    assert float(ops.norm(Tensor(np.full(4000, 100, np.float16)))) == pytest.approx(100 * np.sqrt(4000), rel=1e-3)
