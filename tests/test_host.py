"""Library functions called from compiled programs: values, batches, threads, and errors that must not be lost."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.graph.host_functions import HostFunction, host


def _same(inputs, params):  # type: ignore[no-untyped-def]
    return inputs[0].shape, inputs[0].dtype


def _refuse(x: np.ndarray) -> np.ndarray:
    if np.any(x < 0):
        message = f"negative number {x.min():g}"
        raise ValueError(message)
    return x


def _interrupt(x: np.ndarray) -> np.ndarray:
    raise KeyboardInterrupt


FUNCTIONS = {
    "test cumsum": HostFunction("test cumsum", _same, lambda x: np.cumsum(x, axis=-1)),
    "test refuse": HostFunction("test refuse", _same, _refuse),
    "test interrupt": HostFunction("test interrupt", _same, _interrupt),
}


def apply(name: str, x: nb.Tensor) -> nb.Tensor:
    return nb.Tensor._of(host(FUNCTIONS[name], (x._node,)))


X = np.linspace(0.0, 1.0, 24).reshape(2, 3, 4)


@pytest.mark.parametrize("x", [X, X.T, X[:, ::2, ::-1], X.astype(np.float32), X[:0], X[0, 0, 0]], ids=str)
def test_a_library_function_reads_any_layout_and_is_fused_around(x: np.ndarray) -> None:
    if not x.ndim:
        x = x.reshape(1)
    found = nb.jit(lambda x: apply("test cumsum", x * 2) + 1)(x)
    np.testing.assert_allclose(found, np.cumsum(x * 2, axis=-1) + 1, rtol=1e-6)
    assert found.dtype == x.dtype


def test_vmap_gives_the_function_leading_axes() -> None:
    np.testing.assert_allclose(nb.vmap(lambda x: apply("test cumsum", x))(X), np.cumsum(X, axis=-1))


@pytest.mark.parametrize("shape", [(2,), (300, 300)])
def test_what_the_function_raises_is_raised_by_the_call(shape: tuple[int, ...]) -> None:
    compiled = nb.jit(lambda x: apply("test refuse", x * 1.0) + 1)
    np.testing.assert_array_equal(compiled(np.ones(shape)), np.full(shape, 2.0))
    for _ in range(2):
        with pytest.raises(ValueError, match="negative number -1"):
            compiled(np.full(shape, -1.0))
    np.testing.assert_array_equal(compiled(np.ones(shape)), np.full(shape, 2.0))


def test_an_interrupt_is_not_lost() -> None:
    with pytest.raises(KeyboardInterrupt):
        nb.jit(lambda x: apply("test interrupt", x) + 1)(np.ones(3))


def test_an_error_belongs_to_its_thread() -> None:
    compiled = nb.jit(lambda x: apply("test refuse", x * 1.0) + 1)
    compiled(np.ones(50_000))
    outcomes: dict[int, list[str]] = {0: [], 1: []}

    def run(number: int) -> None:
        x = np.full(50_000, -1.0 if number else 1.0)
        for _ in range(50):
            try:
                compiled(x)
                outcomes[number].append("fine")
            except ValueError:
                outcomes[number].append("error")

    workers = [threading.Thread(target=run, args=(number,)) for number in (0, 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert set(outcomes[0]) == {"fine"} and set(outcomes[1]) == {"error"}


def test_tensors_raise_too() -> None:
    compiled = nb.jit(lambda x: apply("test refuse", x * 1.0) + 1)
    assert compiled(nb.Tensor([1.0])).tolist() == [2.0]
    for _ in range(2):
        with pytest.raises(ValueError, match="negative"):
            compiled(nb.Tensor([-1.0]))


def test_explain_names_the_function() -> None:
    assert "library function test cumsum(" in nb.explain(lambda x: apply("test cumsum", x) + 1, X)
