"""Sorting by digits on a device, beside NumPy: lengths around tiles, extremes of dtypes, orders of the elements."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiler.lowering import kernel_module
from nbgrad.compiler.sorted_values import SORTED_ROWS
from nbgrad.device.kernels import scatters, sorts
from nbgrad.device.kernels.launches import Launch
from nbgrad.device.kernels.settings import SETTINGS
from nbgrad.device.memory.chosen_driver import using
from nbgrad.device.recipes import recipe
from nbgrad.device.simulator.simulator import Simulator
from nbgrad.graph.interpret import evaluate_node
from nbgrad.graph.ir import Node, placeholder
from nbgrad.runtime.device_program import DeviceProgram

from . import test_device_specials as specials
from .test_device_programs import kernels_of, program_of
from .test_device_specials import DTYPES, added, dtypes, node_of, random, result_of, special

pytestmark = pytest.mark.unoptimized

TILE = sorts.RADIX_TILE
SHAPES = [
    (1,),
    (31,),
    (257,),
    (3, 300),
    (TILE - 1,),
    (TILE,),
    (TILE + 1,),
    (2, 2 * TILE),
    (3, 2 * TILE + 17),
    (1, 20_000),
]
NUMBERS = ["int32", "int64", "float32", "float64"]


@pytest.fixture
def by_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows count as long."""
    monkeypatch.setattr(sorts, "LONG", 0)


def places(x: np.ndarray) -> list[str]:
    """The kernels that sort an array, by name, without repetitions."""
    actions = recipe(special(node_of("argsort", [x]))).actions
    return sorted({action.kernel.key.split()[1] for action in actions if isinstance(action, Launch)})


def check_order(x: np.ndarray) -> None:
    """The positions are those of NumPy's stable sort."""
    assert any("radix" in place for place in places(x))
    found, expected = result_of("argsort", [x]), np.argsort(x, -1, kind="stable")
    np.testing.assert_array_equal(found, expected, err_msg=f"{x.dtype} {x.shape}")


def check_values(x: np.ndarray) -> None:
    """Without positions the same elements come out, to the sign of zero and the bits of NaN."""
    node = Node(SORTED_ROWS, (placeholder(x.shape, x.dtype),), (), x.shape, x.dtype)
    made = recipe(special(node))
    expected = evaluate_node(node, [x]).tobytes()
    for order in specials.SIMULATORS:
        assert specials.run_recipe(made, [x], np.empty_like(x), order).tobytes() == expected, f"{x.dtype} {x.shape}"


def with_extremes(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Few different values, so that many are equal; among them the extreme ones and, of floats, NaN and both zeros."""
    x = random(shape, dtype)
    flat = x.reshape(-1)
    if x.dtype.kind == "f":
        flat[:] = np.rint(2 * flat)
        values = [
            np.nan,
            np.inf,
            -np.inf,
            -0.0,
            0.0,
            np.finfo(dtype).max,
            np.finfo(dtype).tiny / 4,
            -np.finfo(dtype).tiny,
        ]
        values.append(-np.float64(np.nan) if dtype == "float64" else -np.float32(np.nan))
    elif x.dtype.kind == "b":
        return x
    else:
        values = [np.iinfo(dtype).min, np.iinfo(dtype).max, 0, np.iinfo(dtype).max - 255]
    for k, value in enumerate(values):
        flat[k :: 3 * len(values)] = value
    return x


@pytest.mark.parametrize("parts", [2048, 3])
@pytest.mark.parametrize("dtype", dtypes([*DTYPES, "int16"], "bool"))
def test_positions_are_those_of_a_stable_sort(
    dtype: str, parts: int, by_digits: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With few parts, a block goes through several tiles. All lengths for words of both widths, and some for others."""
    monkeypatch.setattr(sorts, "MOST_PARTS", parts)
    lengths = SHAPES if dtype in ("int64", "float32") else SHAPES[1::3]
    for shape in lengths if parts > 3 else SHAPES[-3:-1]:
        x = with_extremes(shape, dtype)
        check_order(x)
        check_values(x)


ORDERS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "sorted": np.sort,
    "reversed": lambda x: np.sort(x)[..., ::-1],
    "all equal": lambda x: np.full_like(x, 3),
    "all NaN or zero": lambda x: np.where(x > 0, np.nan, np.where(x > -50, -0.0, 0.0)).astype(x.dtype),
    "one odd": lambda x: np.where(np.arange(x.shape[-1]) == 5000, -7, 3).astype(x.dtype),
    "all bits": lambda x: np.random.default_rng(1).integers(-(2**63), 2**63, x.shape).view(x.dtype)[..., : x.shape[-1]],
}


@pytest.mark.parametrize("dtype", NUMBERS)
@pytest.mark.parametrize("name", ORDERS)
def test_orders_of_the_elements(name: str, dtype: str, by_digits: None) -> None:
    if "NaN" in name and dtype[0] == "i":
        pytest.skip("whole numbers")
    check_order(np.ascontiguousarray(ORDERS[name](random((2, TILE + 1400), dtype))))


@pytest.mark.parametrize("dtype", ["int32", "float64"])
def test_long_rows(dtype: str) -> None:
    """Without any setting: the length from which on rows are sorted by digits."""
    passes = np.dtype(dtype).itemsize
    length = passes * sorts.LONG
    assert places(np.empty(length - 1, dtype)) == ["gpu.device_sort.merge_runs", "gpu.device_sort.sort_tiles"]
    check_order(random((length + 5,), dtype))


def test_many_parts_are_added_up(by_digits: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread of `sum_counts` has several parts, and some threads have none."""
    monkeypatch.setattr(sorts, "whole_warps", lambda count: 32)
    check_order(random((39 * TILE + 3,), "int32"))


FUNCTIONS: dict[str, tuple[Callable[..., Any], bool]] = {
    # The function, and whether it needs positions.
    "sort": (lambda x: np.sort(x), False),
    "sort of columns": (lambda x: np.sort(x, axis=0), False),
    "sort of all": (lambda x: np.sort(x, axis=None), False),
    "median": (lambda x: np.median(x, axis=-1), False),
    "quantile": (lambda x: np.quantile(x, 0.3), False),
    "sorted twice": (lambda x: np.sort(x) + np.sort(x)[..., ::-1], False),
    "sort and positions": (lambda x: (np.sort(x), np.argsort(x, kind="stable")), True),
    "positions": (lambda x: np.argsort(x, kind="stable"), True),
    "halved positions": (lambda x: x.ravel()[np.argsort(x.ravel(), kind="stable") // 2], True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("missing", [False, True])
def test_programs_that_need_no_positions_make_none(name: str, missing: bool, by_digits: None) -> None:
    function, needs = FUNCTIONS[name]
    x = random((16, 33), "float64")
    x[:, :9] = np.rint(x[:, :9])
    if missing:
        x[3, 4] = np.nan
    with using(Simulator()):
        compiled = nb.jit(function)
        found, expected = compiled(nb.Tensor(x, device="cuda")), function(x)
        pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
        for one, other in pairs:
            np.testing.assert_allclose(one.asnumpy(), other, rtol=1e-14)
        (program,) = compiled.programs()
        assert isinstance(program, DeviceProgram)
        names = [name.rpartition(".")[2] for name in kernels_of(program)]
    assert ("move_values" in names, "move_last" in names) == (not needs, needs)


def test_elements_are_sorted_once(by_digits: None) -> None:
    with using(Simulator()):
        program = program_of(FUNCTIONS["sorted twice"][0], random((600,), "int32"))
        launches = [planned.action for planned in program.plan.actions if isinstance(planned.action, Launch)]
    assert sum("move_values" in launch.kernel.key for launch in launches) == 4


def test_derivatives_pass_to_where_elements_came_from(by_digits: None) -> None:
    x, w = random((700,), "float64"), random((700,), "float64", 1)
    with using(Simulator()):
        found = nb.jit(nb.grad(lambda x: np.sum(np.sort(x) * w)))(nb.Tensor(x, device="cuda")).asnumpy()
    expected = np.empty_like(x)
    expected[np.argsort(x)] = w
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("size", [1, 2, 200, 256, 257, 70_000])
def test_ordered_sums_need_the_lowest_bits_only(size: int, by_digits: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Positions are below the size of the result."""
    monkeypatch.setattr(SETTINGS, "deterministic", True)
    index = np.random.default_rng(size).integers(0, size, 9000)
    updates = random((9000,), "float64")
    actions = recipe(special(node_of("scatter_add", [index, updates], (size,)))).actions
    moves = [action for action in actions if isinstance(action, Launch) and ".move_" in action.kernel.key]
    assert len(moves) == max(1, -(-(size - 1).bit_length() // 8))
    found = result_of("scatter_add", [index, updates], (size,))
    np.testing.assert_allclose(found, added(size, index, updates), rtol=1e-10, atol=1e-10)
    assert scatters.sorting is sorts.sorting


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int16", *NUMBERS, "uint32", "uint64"])
def test_ranks_of_numbers_in_python(dtype: str) -> None:
    """The digits of numbers, put together, are in the order of the numbers."""
    x = with_extremes((400,), dtype)
    rank_byte = kernel_module("sort").rank_byte
    ranks = [sum(rank_byte(value, 8 * k) << (8 * k) for k in range(x.itemsize)) for value in x]
    np.testing.assert_array_equal(np.argsort(np.array(ranks, "uint64"), kind="stable"), np.argsort(x, kind="stable"))


@pytest.mark.gpu
@pytest.mark.parametrize("parts", [2048, 3])
@pytest.mark.parametrize("dtype", NUMBERS)
def test_positions_on_a_gpu(dtype: str, parts: int, by_digits: None, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = partial(test_positions_are_those_of_a_stable_sort, dtype, parts, by_digits, monkeypatch)
    specials.test_on_a_gpu(rows, monkeypatch)
    for name in ORDERS:
        if "NaN" not in name or dtype[0] == "f":
            specials.test_on_a_gpu(partial(test_orders_of_the_elements, name, dtype, by_digits), monkeypatch)
