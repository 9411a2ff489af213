"""Special nodes on a device: their recipes run in the simulator and are compared with NumPy and SciPy."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from nbgrad.compiler.fuse import Special, fuse
from nbgrad.compiler.loops import Loop
from nbgrad.compiler.row_scatter import SCATTER_ROWS
from nbgrad.compiler.views import View
from nbgrad.device.driver.driver import Driver
from nbgrad.device.kernels import ptx, scans
from nbgrad.device.kernels.launches import DeviceKernel, Fill, Launch, Recipe, Routine
from nbgrad.device.kernels.python_kernels import python_kernel
from nbgrad.device.kernels.settings import SETTINGS
from nbgrad.device.kernels.transposes import transpose_recipe
from nbgrad.device.memory.arrays import Device
from nbgrad.device.recipes import PYTHON_KERNELS, needed, recipe
from nbgrad.device.simulator.simulator import Simulator
from nbgrad.errors import LibraryError
from nbgrad.graph.interpret import evaluate_node
from nbgrad.graph.ir import Node, filled, make, placeholder

pytestmark = pytest.mark.unoptimized

SIMULATORS: dict[str, Driver] = {
    "forward": Simulator(memory=1 << 26, races=True),
    "reversed": Simulator(memory=1 << 26, order="reversed"),
}
nvjitlink = ptx._linker() is not None
TARGETS = [(7, 5), (8, 0), (9, 0), (10, 0)]


def special(node: Node) -> Special:
    """The kernel of a node whose operands are whole arrays."""
    views = tuple([View.contiguous(source.shape) for source in node.inputs])
    return Special(node, node.inputs, views)


def node_of(name: str, arrays: list[np.ndarray], params: tuple = ()) -> Node:
    """A node on placeholders like some arrays."""
    return make(name, tuple([placeholder(array.shape, array.dtype) for array in arrays]), params)


def run_recipe(found: Recipe, arrays: list[np.ndarray], out: np.ndarray, order: str = "forward") -> np.ndarray:
    """What a recipe makes of arrays; memory that it does not write holds rubbish."""
    driver = SIMULATORS[order]
    operands = [*arrays, out]
    pointers = [driver.allocate(max(1, array.nbytes), 0, 0) for array in operands]
    for pointer, array in zip(pointers, arrays, strict=False):
        driver.upload(pointer, np.ascontiguousarray(array), 0)
    driver.fill(pointers[len(arrays)], 0xA5, out.nbytes, 0)
    for nbytes in found.workspaces:
        pointers.append(driver.allocate(max(1, nbytes), 0, 0))
        driver.fill(pointers[-1], 0x5A, nbytes, 0)
    for action in found.actions:
        if isinstance(action, Launch):
            words = np.array([*[pointers[k] for k in action.pointers], *action.numbers], np.int64)
            function = driver.function(action.kernel, 0, action.shared)
            driver.launch(function, action.blocks, action.threads, action.shared, words, 0)
        elif isinstance(action, Fill):
            driver.fill(pointers[action.pointer], action.byte, action.nbytes, 0)
        else:
            assert isinstance(action, Routine)
            raise AssertionError(action)
    driver.synchronise(0)
    result = np.empty_like(out)
    driver.download(result, pointers[len(arrays)], 0)
    for pointer in pointers:
        driver.free(pointer, 0, 0)
    return result


def result_of(name: str, arrays: list[np.ndarray], params: tuple = (), same: bool = True) -> np.ndarray:
    """What a node's recipe gives; `same`: to the last bit for both orders of threads."""
    node = node_of(name, arrays, params)
    found = recipe(special(node))
    first, second = [run_recipe(found, arrays, np.empty(node.shape, node.dtype), order) for order in SIMULATORS]
    if same:
        assert first.tobytes() == second.tobytes()
    return first


def random(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Numbers of any dtype: small whole ones, or standard normal ones."""
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if np.dtype(dtype).kind == "f":
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(0 if dtype[0] == "u" else -100, 100, shape).astype(dtype)


DTYPES = "bool int8 int32 int64 uint64 float32 float64".split()
WIDE = "int8 int64 uint64 float32 float64".split()
NOT_SHIPPED = frozenset("bool int8 uint64".split())
"""Dtypes whose kernels do not come with the package: Numba takes seconds for each."""


def dtypes(names: list[str], numba: str = "") -> list[Any]:
    """Dtypes of a test; of those that Numba compiles, only some, and the others with `-m slow`."""
    slow = NOT_SHIPPED.difference(numba.split())
    return [pytest.param(name, marks=[pytest.mark.slow] * (name in slow)) for name in names]


ROWS = [(1,), (5,), (16,), (17,), (31,), (33,), (3, 100), (70, 9), (2, 1000), (2, 2048), (2, 2049), (1, 68_000)]


# ----- Along rows -----


def close(got: np.ndarray, expected: np.ndarray, size: float = 1.0, note: str = "") -> None:
    """Equal to rounding, if a float; `size` is that of the terms that were added."""
    if got.dtype.kind == "f":
        limit = 4 * np.finfo(got.dtype).eps * size
        np.testing.assert_allclose(got, expected, rtol=16 * np.finfo(got.dtype).eps, atol=limit, err_msg=note)
    else:
        np.testing.assert_array_equal(got, expected, err_msg=note)


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("dtype", dtypes(WIDE, "int8"))
@pytest.mark.parametrize("reverse", [False, True])
def test_running_sums(dtype: str, reverse: bool) -> None:
    for shape in ROWS:
        x = random(shape, dtype)
        node = make("recurrence", (filled(1, x.dtype, shape), placeholder(shape, x.dtype)), (reverse,))
        found = recipe(special(node))
        got = [run_recipe(found, [np.ones_like(x), x], np.empty_like(x), order) for order in SIMULATORS]
        assert got[0].tobytes() == got[1].tobytes()
        step = -1 if reverse else 1
        wide = "float64" if x.dtype.kind == "f" else dtype
        expected = np.add.accumulate(x[..., ::step], -1, dtype=wide)[..., ::step]
        close(got[0], expected, np.abs(x.astype("float64")).sum(-1).max(), str(shape))


def test_ones_are_not_filled_for_sums() -> None:
    x = placeholder((3, 40), np.dtype("float64"))
    total = make("recurrence", (filled(1, x.dtype, x.shape), x), (False,))
    ones = make("alias", (filled(1, x.dtype, x.shape),))
    for outputs, count in [([total], 1), ([total, ones], 2), ([make("recurrence", (total, x), (False,))], 2)]:
        fused = fuse(outputs)
        assert len(needed(fused.steps, fused.outputs)) == count


def recurrence_in_numpy(a: np.ndarray, b: np.ndarray, reverse: bool) -> np.ndarray:
    """One element of each row after the other."""
    step = -1 if reverse else 1
    a, b = a[..., ::step], b[..., ::step]
    out = b.copy()
    for k in range(1, b.shape[-1]):
        out[..., k] = a[..., k] * out[..., k - 1] + b[..., k]
    return out[..., ::step]


@pytest.mark.parametrize("name", ["products", "maxima"])
def test_carries_of_many_tiles(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """More tiles than their block has threads: as in rows of two million elements, but with a block of one warp."""
    monkeypatch.setattr(scans, "_carrying", lambda _: 32)
    a, b = [np.tanh(random((1, scans.TILE * 66 + 3), "float64", seed)) for seed in (0, 1)]
    a, b = 1.0 + a / 1000.0, np.sign(b)
    if name == "maxima":
        close(result_of("accumulate", [b * a], ("maximum",)), np.maximum.accumulate(b * a, axis=-1))
    else:
        close(result_of("recurrence", [a, b], (False,)), recurrence_in_numpy(a, b, False), 1e5)


@pytest.mark.parametrize("dtype", dtypes(WIDE))
@pytest.mark.parametrize("reverse", [False, True])
def test_recurrences(dtype: str, reverse: bool) -> None:
    for shape in [*ROWS[:-1], (2, 5000)]:
        a, b = random(shape, dtype), random(shape, dtype, 1)
        if a.dtype.kind == "f":
            a = np.tanh(a)
        with np.errstate(all="ignore"):
            expected = recurrence_in_numpy(a, b, reverse)
        close(result_of("recurrence", [a, b], (reverse,)), expected, 500.0, str(shape))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_running_products_whose_parts_are_out_of_range(dtype: str) -> None:
    # The products of the second half of each row are not finite, or zero, but those from the start are.
    big = float(np.finfo(dtype).max) ** 0.9
    rows = np.ones((5, 4100), dtype)
    rows[0] = np.arange(4100)
    rows[1, 5] = big
    rows[1, 6:3000:300] = 1 / big
    rows[1, 7:3000:300] = big
    rows[2, 100:104] = [big, 1 / big, 1 / big, big]
    rows[3, 2040:2060] = big
    rows[3, 3] = 0
    rows[4, 17] = np.inf
    rows[4, 2100] = -1
    first = np.zeros_like(rows)
    first[:, 0] = rows[:, 0]
    with np.errstate(all="ignore"):
        expected = np.multiply.accumulate(rows, -1)
    got = result_of("recurrence", [rows, first], (False,))
    np.testing.assert_allclose(got, expected, rtol=100 * np.finfo(dtype).eps)


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [pytest.param("maximum", dtype, marks=pytest.mark.slow) for dtype in ("bool", "uint64")]
    + [("minimum", "int8")]
    + [(name, dtype) for name in ("maximum", "minimum") for dtype in ("int64", "float32", "float64")],
)
def test_running_extremes(name: str, dtype: str) -> None:
    for shape in ROWS:
        x = random(shape, dtype)
        np.testing.assert_array_equal(result_of("accumulate", [x], (name,)), getattr(np, name).accumulate(x, -1))


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_running_extremes_of_nan_and_zeros(name: str) -> None:
    x = np.tile(np.array([-0.0, 0.0, -0.0]), 700)
    assert result_of("accumulate", [x], (name,)).tobytes() == np.full(2100, -0.0).tobytes()
    x[2070] = np.nan
    x[3] = np.inf
    np.testing.assert_array_equal(result_of("accumulate", [x], (name,)), getattr(np, name).accumulate(x))


# ----- At computed positions -----


def added(size: int, index: np.ndarray, updates: np.ndarray) -> np.ndarray:
    """Zeros with updates added, in NumPy."""
    out = np.zeros(size, updates.dtype)
    np.add.at(out, index, updates)
    return out


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "uint64", "float32", "float64"])
def test_sums_at_positions(dtype: str, deterministic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "deterministic", deterministic)
    for count, size in [(1, 1), (40, 3), (5000, 7), (5000, 300), (33, 1000), (0, 5), (3000, 5000)]:
        index = np.random.default_rng(count).integers(0, size, count)
        updates = random((count,), dtype)
        got = result_of("scatter_add", [index, updates], (size,), same=deterministic or updates.dtype.kind != "f")
        close(got, added(size, index, updates), count / size * 4 + 4, f"{count} {size}")


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64"])
def test_sums_of_rows(dtype: str, deterministic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SETTINGS, "deterministic", deterministic)
    for rows, length, size in [(1, 2, 2), (50, 3, 30), (40, 33, 99), (7, 300, 700), (500, 2, 6)]:
        starts = np.random.default_rng(rows).integers(0, size - length + 1, rows)
        updates = random((rows, length), dtype)
        node = Node(
            SCATTER_ROWS,
            (placeholder((rows,), starts.dtype), placeholder(updates.shape, updates.dtype)),
            (size,),
            (size,),
            updates.dtype,
        )
        found = recipe(special(node))
        got = [run_recipe(found, [starts, updates], np.empty(size, dtype), order) for order in SIMULATORS]
        if deterministic or updates.dtype.kind != "f":
            assert got[0].tobytes() == got[1].tobytes()
        close(got[0], added(size, starts[:, None] + np.arange(length), updates), 100.0)


def test_the_last_update_of_each_position() -> None:
    for count, size in [(1, 1), (1000, 30), (20, 1000), (0, 3)]:
        index = np.random.default_rng(count).integers(0, size, count)
        expected = np.full(size, -1)
        for k, place in enumerate(index):
            expected[place] = k
        np.testing.assert_array_equal(result_of("scatter_last", [index], (size,)), expected)


@pytest.mark.parametrize("dtype", dtypes(DTYPES, "uint64"))
def test_sorting(dtype: str) -> None:
    for shape in [(1,), (2,), (33,), (5, 3), (700, 7), (3, 1000), (1024,), (2, 1025), (5000,), (2, 9000)]:
        x = random(shape, dtype)
        if x.dtype.kind == "f":
            x = np.rint(2 * x)
            x.ravel()[::5] = np.nan
            x.ravel()[1::9] = -np.inf
            x.ravel()[2::9] = -0.0
        got = result_of("argsort", [x])
        np.testing.assert_array_equal(got, np.argsort(x, -1, kind="stable"), err_msg=str(shape))


# ----- Windows -----

WINDOWS = [
    # Shape of the images; kernel, stride, dilation, padding before, number of windows.
    ((1, 1, 4, 4), ((2, 2), (1, 1), (1, 1), (0, 0), (3, 3))),
    ((2, 3, 5, 40), ((3, 2), (1, 1), (1, 1), (1, 1), (5, 40))),
    ((3, 2, 9, 7), ((3, 3), (2, 3), (1, 2), (1, 2), (5, 3))),
    ((2, 2, 1, 300), ((1, 5), (1, 2), (1, 3), (0, 4), (1, 148))),
    ((1, 2, 70, 6), ((4, 3), (3, 1), (2, 1), (5, 0), (25, 4))),
]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize(("shape", "windows"), WINDOWS)
def test_columns_and_their_transpose(shape: tuple[int, ...], windows: tuple, dtype: str) -> None:
    images = random(shape, dtype)
    node = node_of("unfold", [images], windows)
    columns = evaluate_node(node, [images])
    np.testing.assert_array_equal(result_of("unfold", [images], windows), columns)
    weights = random(columns.shape, dtype, 1)
    params = (*windows, shape[2:])
    expected = evaluate_node(node_of("fold", [weights], params), [weights])
    close(result_of("fold", [weights], params), expected, 10.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("shape", "windows"), [*WINDOWS, ((2, 3, 7, 11), ((0, 0), (1, 1), (1, 1), (0, 0), (3, 5)))])
def test_window_maxima(shape: tuple[int, ...], windows: tuple, dtype: str) -> None:
    images = np.rint(2 * random(shape, dtype))
    images.ravel()[::13] = np.nan
    expected = evaluate_node(node_of("window_argmax", [images], windows), [images])
    np.testing.assert_array_equal(result_of("window_argmax", [images], windows), expected)


# ----- Matrices -----


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 5, 31, 32, 33, 100])
def test_factorisations(dtype: str, n: int) -> None:
    a = random((3, n, n), dtype)
    a[1, :, 0] = 0
    size = 40.0 * n
    expected = evaluate_node(node_of("lu", [a]), [a])
    got = result_of("lu", [a])
    close(got[[0, 2]], expected[[0, 2]], size)
    np.testing.assert_array_equal(got[:, n + 1 :][[0, 2]], expected[:, n + 1 :][[0, 2]])
    for matrix, factors in zip(a, got, strict=True):
        lower, upper = np.tril(factors[:n]), np.triu(factors[:n], 1) + np.eye(n, dtype=dtype)
        order = np.abs(factors[n]).astype(int) - 1
        close(lower @ upper, matrix[:, order], size)
        np.testing.assert_array_equal(np.argsort(order) + 1, factors[n + 1])
    positive = a @ a.swapaxes(1, 2) + n * np.eye(n, dtype=dtype)
    positive[2, n // 2, n // 2] = -1
    positive[:, 0, n - 1] += 1 if n > 1 else 0
    expected = evaluate_node(node_of("cholesky", [positive]), [positive])
    close(result_of("cholesky", [positive]), expected, size)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "params", [(low, turned, unit) for low in (False, True) for turned in (False, True) for unit in (False, True)]
)
def test_triangular_systems(dtype: str, params: tuple[bool, bool, bool]) -> None:
    for n, columns in [(1, 1), (3, 1), (32, 40), (33, 7), (90, 2)]:
        a = random((2, n, n), dtype) / n + 2 * np.eye(n, dtype=dtype)
        b = random((2, n, columns), dtype, 1)
        expected = evaluate_node(node_of("triangular_solve", [a, b], params), [a, b])
        close(result_of("triangular_solve", [a, b], params), expected, 40.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("transposed", [False, True])
def test_systems_by_their_factors(dtype: str, transposed: bool) -> None:
    for batch, n, columns in [(3, 1, 1), (2, 5, 3), (70, 4, 4)]:
        a = random((batch, n, n), dtype) / n + 2 * np.eye(n, dtype=dtype)[::-1]
        factors = evaluate_node(node_of("lu", [a]), [a])
        b = random((batch, n, columns), dtype, 1)
        x = result_of("lu_solve", [factors, b], (transposed,))
        close((a.swapaxes(1, 2) if transposed else a) @ x, b, 80.0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 5])
def test_eigenvalues_of_small_matrices(dtype: str, n: int) -> None:
    a = random((70, n, n), dtype)
    for lower in (True, False):
        whole = np.tril(a) if lower else np.triu(a)
        whole = whole + np.swapaxes(whole, 1, 2) * (1 - np.eye(n, dtype=dtype))
        found = result_of("symmetric_eigen", [a], (lower, True))
        close(found[:, :n], np.linalg.eigvalsh(whole), 80.0 * n)
        vectors = found[:, n:].reshape(70, n, n)
        close(vectors @ whole, vectors * found[:, :n, None], 80.0 * n)
        np.testing.assert_array_equal(result_of("symmetric_eigen", [a], (lower, False)), found[:, :n])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 2, 7, 33, 80])
def test_complete_pivots(dtype: str, n: int) -> None:
    a = np.rint(4 * random((4, n, n), dtype))
    a[1] = a[1, :, :1] * a[1, :1]
    a[2] = 0
    a[3, n // 2, n // 3] = np.nan
    expected = evaluate_node(node_of("complete_pivots", [a[:3]]), [a[:3]])
    np.testing.assert_array_equal(result_of("complete_pivots", [a])[:3], expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_products(dtype: str) -> None:
    for batch, m, k, n in [(1, 1, 1, 1), (2, 31, 5, 33), (3, 32, 32, 32), (1, 70, 100, 40), (2, 5, 0, 4)]:
        for left in (False, True):
            for right in (False, True):
                a = random((batch, k, m) if left else (batch, m, k), dtype)
                b = random((batch, n, k) if right else (batch, k, n), dtype, 1)
                views = [View.contiguous(array.shape) for array in (a, b)]
                views = [
                    view.transpose((0, 2, 1)) if flag else view for view, flag in zip(views, (left, right), strict=True)
                ]
                operands = [np.swapaxes(array, 1, 2) if flag else array for array, flag in ((a, left), (b, right))]
                node = node_of("matmul", operands)
                expected = np.matmul(operands[0].astype("float64"), operands[1])
                for interleaved in (False, True):
                    found = recipe(Special(node, node.inputs, tuple(views), interleaved))
                    shape = (m, batch, n) if interleaved else (batch, m, n)
                    got = run_recipe(found, [a, b], np.empty(shape, dtype))
                    close(got.swapaxes(0, 1) if interleaved else got, expected, 4.0 * k)


class WithoutLibraries(Simulator):
    """A machine where cuBLAS and cuSOLVER are not installed."""

    def library(self, name: str, device: int) -> Any:
        """Says so."""
        message = f"{name} is not installed."
        raise LibraryError(message)


def test_libraries_do_what_they_do_better_if_they_are_installed() -> None:
    square = [placeholder((2, n, n), np.dtype("float64")) for n in (32, 33)]
    nodes = [make(name, (a,)) for a in square for name in ("lu", "cholesky")]
    nodes += [make("triangular_solve", (a, a), (True, False, False)) for a in square]
    nodes += [make("matmul", (square[1], square[1]))]
    for node in nodes:
        installed, missing = [
            [type(action) for action in recipe(special(node), Device(driver, 0)).actions]
            for driver in (SIMULATORS["forward"], WithoutLibraries(memory=1 << 20))
        ]
        assert installed == [Launch if node.shape[-1] == 32 else Routine], node
        assert missing == [Launch], node


# ----- Transposes -----


def copying(shape: tuple[int, ...], axes: tuple[int, ...], dtype: str) -> Loop:
    """The loop that transposes an array."""
    node = make("transpose", (placeholder(shape, np.dtype(dtype)),), (axes,))
    (loop,) = fuse([node]).steps
    assert isinstance(loop, Loop)
    return loop


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64"])
def test_transposes(dtype: str) -> None:
    for shape, axes in [
        ((33, 40), (1, 0)),
        ((8, 200), (1, 0)),
        ((3, 20, 50), (0, 2, 1)),
        ((10, 3, 40), (2, 1, 0)),
        ((3, 9, 2, 31), (0, 3, 2, 1)),
        ((3, 9, 2, 31), (2, 3, 0, 1)),
    ]:
        x = random(shape, dtype)
        found = transpose_recipe(copying(shape, axes, dtype))
        assert found is not None, (shape, axes)
        expected = np.ascontiguousarray(x.transpose(axes))
        np.testing.assert_array_equal(run_recipe(found, [x], np.empty_like(expected)), expected)


def test_what_is_no_transpose() -> None:
    x = placeholder((40, 50), np.dtype("float32"))
    for node in (
        make("alias", (x,)),
        make("negative", (make("transpose", (x,), ((1, 0),)),)),
        make("transpose", (placeholder((4, 50), np.dtype("float32")),), ((1, 0),)),
        make("transpose", (make("pad", (x,), (((1, 0), (0, 0)),)),), ((1, 0),)),
        make("sum", (x,), ((0,),)),
    ):
        (loop,) = fuse([node]).steps
        assert isinstance(loop, Loop)
        assert transpose_recipe(loop) is None, node


# ----- Machine code -----


def as_a_gpu_runs(kernel: DeviceKernel, capability: tuple[int, int]) -> None:
    """Compile for a GPU: all threads' memory is in registers, and nothing is called."""
    text = ptx.compile_ptx(kernel.make(), capability)
    assert "call" not in text, kernel.key
    if nvjitlink:
        report = ptx.report(ptx.link(text, capability)[1])
        assert (report.stack, report.spilled) == (0, 0), kernel.key
        assert report.registers <= 128, kernel.key


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("place", [place for place in PYTHON_KERNELS if not place.startswith("gpu.device_linalg.")])
def test_code_for_gpus(place: str) -> None:
    pattern, numbers, dtypes = PYTHON_KERNELS[place]
    for dtype in dtypes.split()[-1:]:
        kernel = python_kernel(place, tuple(pattern.replace("*", dtype).split()), numbers)
        for capability in TARGETS:
            as_a_gpu_runs(kernel, capability)


@pytest.mark.parametrize("dtype", DTYPES)
def test_all_kernels_of_recipes_are_in_the_table(dtype: str) -> None:
    x = placeholder((3, 3000), np.dtype(dtype))
    index = placeholder((9000,), np.dtype("int64"))
    nodes = [
        make("accumulate", (x,), ("maximum",)),
        make("recurrence", (x, x), (False,)),
        make("argsort", (x,)),
        make("scatter_add", (index, placeholder((9000,), x.dtype)), (10,)),
    ]
    for node in nodes:
        for action in recipe(special(node)).actions:
            if isinstance(action, Launch):
                _, place, *dtypes, numbers, _ = action.kernel.key.split()
                pattern, count, _ = PYTHON_KERNELS[place]
                assert (len(dtypes), int(numbers)) == (len(pattern.split()), count)


# ----- On a GPU -----

ON_A_GPU = [
    *[partial(test_running_sums, dtype, reverse) for dtype in ("int64", "float32") for reverse in (False, True)],
    *[partial(test_recurrences, dtype, reverse) for dtype in ("int64", "float64") for reverse in (False, True)],
    partial(test_running_products_whose_parts_are_out_of_range, "float32"),
    *[partial(test_running_extremes, name, "float32") for name in ("maximum", "minimum")],
    partial(test_the_last_update_of_each_position),
    *[partial(test_sorting, dtype) for dtype in ("bool", "int32", "float64")],
    *[partial(test_columns_and_their_transpose, *case, "float32") for case in WINDOWS],
    *[partial(test_window_maxima, *case, "float32") for case in WINDOWS],
    *[partial(test_factorisations, "float64", n) for n in (5, 32, 100)],
    partial(test_triangular_systems, "float64", (True, False, False)),
    partial(test_complete_pivots, "float64", 80),
    partial(test_products, "float32"),
    *[partial(test_transposes, dtype) for dtype in ("bool", "float64")],
]
"""Tests from above, run with NVIDIA's driver in place of both simulators."""


@pytest.mark.gpu
@pytest.mark.parametrize("test", ON_A_GPU, ids=lambda test: f"{test.func.__name__[5:]}-{test.args}")
def test_on_a_gpu(test: partial[None], monkeypatch: pytest.MonkeyPatch) -> None:
    from nbgrad.device.driver.cuda_driver import CudaDriver

    used = CudaDriver()
    used.use(0)
    for order in SIMULATORS:
        monkeypatch.setitem(SIMULATORS, order, used)
    test()


@pytest.mark.gpu
@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("dtype", ["int8", "int64", "float32", "float64"])
def test_sums_on_a_gpu(dtype: str, deterministic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    test_on_a_gpu(partial(test_sums_at_positions, dtype, deterministic, monkeypatch), monkeypatch)
    test_on_a_gpu(partial(test_sums_of_rows, dtype, deterministic, monkeypatch), monkeypatch)
