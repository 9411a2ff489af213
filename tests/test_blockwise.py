"""Sums over blocks of data: values and derivatives are those of the whole, with one block in memory at a time."""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import ArgumentError, BlockError, ShapeError

RANDOM = np.random.default_rng(5)
X, Y = RANDOM.normal(size=(23, 3)), RANDOM.normal(size=23)
W, V = RANDOM.normal(size=3), RANDOM.normal(size=3)


def loss(w: Any, x: Any, y: Any) -> Any:
    return np.sum(np.log(1 + np.exp(-y * (x @ w))))


def slope(w: np.ndarray) -> np.ndarray:
    """The gradient of the loss of all rows, by hand."""
    return -(Y / (1 + np.exp(Y * (X @ w)))) @ X


def curved(w: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Its Hessian times a vector, by hand."""
    s = 1 / (1 + np.exp(Y * (X @ w)))
    return (Y**2 * s * (1 - s) * (X @ v)) @ X


def arrays_of(kind: str, folder: Path) -> tuple[Any, Any]:
    """The data in a file, in parts, or in memory."""
    if kind == "mapped":
        for name, array in (("x", X), ("y", Y)):
            np.save(folder / f"{name}.npy", array)
        return np.load(folder / "x.npy", mmap_mode="r"), np.load(folder / "y.npy", mmap_mode="r")
    if kind == "zarr":
        zarr = pytest.importorskip("zarr", reason="needs zarr")
        pairs = zip("xy", (X, Y), strict=True)
        stored = [zarr.create_array(store=str(folder / n), data=a, chunks=(4, *a.shape[1:])) for n, a in pairs]
        return stored[0], stored[1]
    if kind == "dask":
        array = pytest.importorskip("dask.array", reason="needs dask")
        return array.from_array(X, chunks=((5, 11, 7), (2, 1))), array.from_array(Y, chunks=8)
    return X, Y


@pytest.mark.parametrize("kind", ["memory", "mapped", "zarr", "dask"])
def test_value_and_gradients_are_those_of_the_whole(kind: str, tmp_path: Path) -> None:
    x, y = arrays_of(kind, tmp_path)
    for rows in (1, 4, 10, 23, 100, None):
        blocks = nb.blocks(x, y, rows=rows)
        assert len(blocks) == (1 if rows is None else -(-23 // rows))
        value, gradient = nb.map_reduce(nb.jit(nb.value_and_grad(loss)), blocks, W)
        np.testing.assert_allclose(value, loss(W, X, Y), rtol=1e-13)
        np.testing.assert_allclose(gradient, slope(W), rtol=1e-12)
    assert np.array_equal(np.concatenate([part for part, _ in nb.blocks(x, y, rows=10)]), X)


@pytest.mark.parametrize("made", [lambda f: f, nb.jit], ids=["as it is", "jit"])
def test_derivatives_of_functions_of_sums(made: Any) -> None:
    blocks = nb.blocks(X, Y, rows=10)

    def root(w: Any) -> Any:
        return np.sqrt(nb.map_reduce(loss, blocks, w))

    value = np.sqrt(loss(W, X, Y))
    first = slope(W) / (2 * value)
    second = curved(W, V) / (2 * value) - slope(W) * (slope(W) @ V) / (4 * value**3)
    for point in (W, W[::-1].copy()) if made is nb.jit else (W,):
        found = made(nb.value_and_grad(root))(point)
        np.testing.assert_allclose(found[0], np.sqrt(loss(point, X, Y)), rtol=1e-13)
    np.testing.assert_allclose(made(nb.grad(root))(W), first, rtol=1e-12)
    np.testing.assert_allclose(made(lambda w, v: nb.jvp(root, w, v))(W, V), (value, first @ V), rtol=1e-12)
    np.testing.assert_allclose(made(lambda w, v: nb.hvp(root, w, v))(W, V), second, rtol=1e-11)
    np.testing.assert_allclose(made(nb.vmap(root))(np.stack([W, V])), [value, np.sqrt(loss(V, X, Y))], rtol=1e-13)


def test_containers_dtypes_and_several_arguments() -> None:
    def parts(w: Any, n: int, block: Any) -> Any:
        return {"sum": np.sum(block @ w) * n, "rows": [block.shape[0], None], "outer": block.T @ block}

    blocks = [X[:5].astype(np.float32), X[5:5].astype(np.float32), X[5:].astype(np.float32)]
    w = W.astype(np.float32)
    found = nb.map_reduce(parts, iter(blocks), w, 2)
    assert found["rows"] == [23, None]
    assert found["outer"].dtype == np.float32
    np.testing.assert_allclose(found["outer"], X.T @ X, rtol=1e-5)

    def back(w: Any, n: int) -> Any:
        out = nb.map_reduce(parts, blocks, w, n)
        assert out["outer"].dtype == np.float32
        assert out["rows"][1] is None
        return out["sum"] + np.sum(out["outer"])

    np.testing.assert_allclose(nb.grad(back)(w, 2), 2 * X.sum(axis=0), rtol=1e-5)
    z = W * (1 + 2j)
    energy = nb.map_reduce(nb.value_and_grad(lambda z, x: np.sum(np.abs(x @ z) ** 2)), nb.blocks(X, rows=9), z)
    np.testing.assert_allclose(energy[1], 2 * X.T @ X @ z, rtol=1e-12)
    recorded = nb.grad(lambda z: nb.map_reduce(lambda z, x: np.abs(x @ z).sum(), nb.blocks(X, rows=9), z) ** 2)(z)
    whole = np.abs(X @ z)
    np.testing.assert_allclose(recorded, 2 * whole.sum() * (X.T @ (X @ z / whole)), rtol=1e-12)
    assert type(nb.map_reduce(lambda w, x: (w * x).sum(), [nb.Tensor([1.0, 2.0])], nb.Tensor([3.0, 4.0]))) is nb.Tensor


def test_no_blocks_and_no_rows() -> None:
    with pytest.raises(ArgumentError, match=r"no blocks.*initial="):
        nb.map_reduce(loss, [], W)
    assert nb.map_reduce(loss, [], W, initial=0.0) == nb.map_reduce(loss, iter([]), W, initial=0.0) == 0.0
    assert nb.map_reduce(loss, [(X, Y)], W, initial=2.0) == 2.0 + loss(W, X, Y)
    np.testing.assert_allclose(
        nb.grad(lambda w: nb.map_reduce(loss, [(X, Y)], w, initial=np.sum(w**2)))(W), slope(W) + 2 * W, rtol=1e-12
    )
    nothing = nb.blocks(X[:0], Y[:0])
    assert [part.shape for part in nothing[0]] == [(0, 3), (0,)]
    value, gradient = nb.map_reduce(nb.value_and_grad(loss), nothing, W)
    assert value == 0.0
    assert gradient.tolist() == [0.0, 0.0, 0.0]


def _one_fails(w: Any, x: Any) -> Any:
    if x[0, 0] == X[20, 0]:
        message = "a bad row"
        raise KeyError(message)
    return np.sum(x @ w)


class _Unreadable:
    shape, dtype = (6, 2), np.dtype(float)

    def __getitem__(self, rows: slice) -> np.ndarray:
        if rows.start >= 4:
            message = "the disk is gone"
            raise OSError(message)
        return np.ones((rows.stop - rows.start, 2))


def _generated() -> Iterator[np.ndarray]:
    yield np.ones((2, 3))
    message = "no more"
    raise RuntimeError(message)


@pytest.mark.parametrize("executor", [False, True])
def test_errors_name_the_block(executor: bool) -> None:
    blocks = nb.blocks(X, rows=10)
    with ThreadPoolExecutor(2) as pool:
        way: dict[str, Any] = {"executor": pool} if executor else {}
        with pytest.raises(
            BlockError, match=r"blocks\[2\] \(rows 20 to 22\) has failed: KeyError: 'a bad row'"
        ) as found:
            nb.map_reduce(_one_fails, blocks, W, **way)
        assert isinstance(found.value.__cause__, KeyError)
        with pytest.raises(BlockError, match=r"blocks\[2\].*disk is gone"):
            nb.map_reduce(np.sum, nb.blocks(_Unreadable(), rows=2), **way)
        with pytest.raises(BlockError, match=r"blocks\[1\] has failed: RuntimeError: no more"):
            nb.map_reduce(lambda x: np.sum(x), _generated(), **way)
        with pytest.raises(
            ShapeError, match=r"blocks\[2\].*of shape \(3,\), but other blocks an array of shape \(10,\)"
        ):
            nb.map_reduce(lambda w, x: x @ w, blocks, W, **way)
        with pytest.raises(ArgumentError, match="gives str"):
            nb.map_reduce(lambda x: "a", blocks, **way)
        for made in (lambda f: f, nb.jit):
            with pytest.raises(BlockError, match=r"blocks\[2\].*a bad row"):
                made(nb.grad(lambda w: nb.map_reduce(_one_fails, blocks, w, **way)))(W)


def test_refused() -> None:
    wrong: Any = 3
    for call, text in (
        (lambda: nb.grad(lambda w: nb.map_reduce(lambda x: loss(w, x, 1.0), [X]))(W), "as an argument"),
        (lambda: nb.grad(lambda w: nb.map_reduce(loss, iter([(X, Y)]), w))(W), "generator"),
        (lambda: nb.map_reduce(wrong, [X]), "a function and an iterable"),
        (lambda: nb.map_reduce(loss, wrong), "a function and an iterable"),
        (lambda: nb.map_reduce(loss, [X], executor=3), "submit"),
        (lambda: nb.map_reduce(loss, [X], at_once=0), "at_once"),
        (lambda: nb.blocks(X, Y[1:]), r"\(23, 3\), \(22,\)"),
        (lambda: nb.blocks(np.float64(3.0)), "number of rows"),
        (lambda: nb.blocks(), "at least one"),
        (lambda: nb.blocks(X, rows=0), "rows must be"),
        (lambda: nb.blocks(X, rows=wrong / 2), "rows must be"),
    ):
        with pytest.raises((ArgumentError, ShapeError), match=text):
            call()


def test_one_block_is_in_memory_at_a_time(tmp_path: Path) -> None:
    rows, width = 4000, 2000
    stored = np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype=np.float64, shape=(rows, width))
    stored[:] = 1.0
    w = np.full(width, 1e-3)
    highest = 0

    def seen(w: Any, x: Any) -> Any:
        nonlocal highest
        facts = Path("/proc/self/status").read_text()
        highest = max(highest, int(facts.split("RssAnon:")[1].split()[0]))
        return np.sum((x @ w) ** 2)

    gradient = nb.value_and_grad(seen)
    nb.map_reduce(gradient, [stored[:100]], w)
    before, highest = highest, 0
    value, found = nb.map_reduce(gradient, nb.blocks(stored, rows=100), w)
    assert highest - before < 8000  # kilobytes; the array has 64,000, a block 1,600
    np.testing.assert_allclose(value, rows * (width * 1e-3) ** 2)
    np.testing.assert_allclose(found, 2 * rows * width * 1e-3)


def test_blocks_of_other_lengths_compile_nothing(tmp_path: Path) -> None:
    gradient = nb.jit(nb.value_and_grad(lambda w, x, y: np.sum(np.cosh(x @ w - y))))
    nb.map_reduce(gradient, nb.blocks(X, Y, rows=20), W)
    before = nb.counters["compiled"]
    nb.map_reduce(gradient, nb.blocks(X, Y, rows=7), W)
    assert nb.counters["compiled"] == before


def test_blocks_for_other_processes(tmp_path: Path) -> None:
    x, y = arrays_of("mapped", tmp_path)
    for a, b in ((x, y), (X, Y), (x[2:], y[2:]), (X[::-1], Y[::-1])):
        blocks = nb.blocks(a, b, rows=4)
        some = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(blocks[1:4]))[1:]))
        assert repr(some) == "<2 blocks of 8 rows>"
        for one, k in zip(some, (2, 3), strict=True):
            assert np.array_equal(one[0], a[4 * k : 4 * k + 4])
            assert np.array_equal(one[1], b[4 * k : 4 * k + 4])
    assert len(pickle.dumps(nb.blocks(np.ones((1000, 100)), rows=10)[3:4])) < 10_000


def test_a_bar_shows_the_blocks(capsys: pytest.CaptureFixture[str]) -> None:
    def slow(x: Any) -> Any:
        time.sleep(0.02)
        return np.sum(x)

    assert nb.map_reduce(slow, nb.blocks(np.ones(9), rows=2), progress=True) == 9.0
    assert "slow()" in (shown := capsys.readouterr().err)
    assert "5/5" in shown
    nb.map_reduce(slow, [np.ones(9)])
    nb.map_reduce(slow, [np.ones(9)], progress=False)
    assert capsys.readouterr().err == ""
