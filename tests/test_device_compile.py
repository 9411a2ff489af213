"""What every kernel for a GPU compiles to, without a GPU: PTX and machine code for four generations.

No symbol may be unresolved, no thread may need local memory, and functions are called only where they are long and
rare. Machine code is made where the linker is installed, which reports what it does with registers.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nbgrad.compiler.fuse import fuse
from nbgrad.compiler.lowering import kernel_module
from nbgrad.device.kernels import grid_loops as loops
from nbgrad.device.kernels import ptx, row_passes
from nbgrad.device.kernels.launches import DeviceKernel, Launch
from nbgrad.device.kernels.python_kernels import python_kernel
from nbgrad.device.recipes import PYTHON_KERNELS
from nbgrad.graph.builders import cast
from nbgrad.graph.ir import PRIMITIVES, make, placeholder
from nbgrad.graph.simplify import simplify
from nbgrad.record.tensor import Tensor
from nbgrad.runtime.device_plan import _row_pass, _units

GENERATIONS = [(7, 5), (8, 0), (9, 0), (10, 0)]
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
CALLS = {
    # Angles beyond 2**30, reduced exactly; they need some local memory too.
    **{name: {"sin", "cos", "tan", "nbgrad_$_huge_$"} for name in ("sin", "cos", "tan", "sinc_derivative")},
    # The remainder of numbers whose quotient has more than 53 bits.
    **{name: {"fmod"} for name in ("remainder", "fmod", "floor_divide")},
    "polygamma": {"pow"},
}
"""Primitives that call functions, and which."""
LOCAL = frozenset(["sin", "cos", "tan", "sinc_derivative"])

needs_linker = pytest.mark.skipif(ptx._linker() is None, reason="nvJitLink is not installed")


def kernels_of(f: Callable[..., Any], *arguments: tuple[tuple[int, ...], str]) -> Iterator[DeviceKernel]:
    """The kernels of a function of arrays of given shapes and dtypes, fused loops only."""
    nodes = [placeholder(shape, np.dtype(dtype)) for shape, dtype in arguments]
    found = f(*[Tensor._of(node) for node in nodes])
    outputs = [tensor._node for tensor in (found if isinstance(found, tuple) else (found,))]
    for unit in _units(fuse(simplify(outputs)).steps, 132):
        done = _row_pass(unit, set(), 132)
        recipe = row_passes.row_pass_recipe(done) if done is not None else loops.recipe(unit[0], 132)
        yield from (action.kernel for action in recipe.actions if isinstance(action, Launch))


def called(text: str) -> set[str]:
    """The functions that PTX calls."""
    return set(re.findall(r"^\s*call[.\w]*\s+(?:\([^)]*\),\s*)?([\w$]+)\s*,", text, re.M))


def check(text: str, calls: Collection[str] = (), local: bool = False) -> None:
    """What must hold of PTX."""
    assert ".extern .func" not in text, re.findall(r"\.extern \.func.*", text)
    assert local or ".local" not in text
    wrong = [name for name in called(text) if not any(name.startswith(known) for known in calls)]
    assert not wrong


def compile_primitive(name: str, generations: Callable[[int], list[tuple[int, int]]], linked: int = 1) -> None:
    """Compile a primitive for every dtype, each for the generations that belong to its number; make machine code of the
    first of each `linked` dtypes."""
    count = 0
    for dtype in map(np.dtype, DTYPES):
        try:
            kernel = kernel_module().scalar_kernel(name, "float32" if dtype == np.float16 else dtype.name)
        except KeyError:
            continue
        dtypes = [dtype] * kernel.__code__.co_argcount
        if name == "select":
            dtypes[0] = np.dtype(bool)

        def apply(*tensors: Any) -> Any:
            return Tensor._of(make(name, tuple([tensor._node for tensor in tensors])))

        (made,) = kernels_of(apply, *[((63, 5), d.name) for d in dtypes])
        for generation in generations(count):
            text = ptx.compile_ptx(made.make(), generation)
            check(text, CALLS.get(name, ()), name in LOCAL)
            if count % linked == 0 and ptx._linker() is not None:
                report = ptx.report(ptx.link(text, generation)[1])
                assert report.spilled == 0 or name in LOCAL
                assert report.stack == 0 or name in CALLS
        count += 1
    assert count


PRIMITIVE_NAMES = [name for name in kernel_module().SCALARS if name in PRIMITIVES]


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("name", PRIMITIVE_NAMES)
def test_every_primitive(name: str) -> None:
    """One dtype in two, in turn, for one generation each, in turn."""
    first = PRIMITIVE_NAMES.index(name)

    def generations(number: int) -> list[tuple[int, int]]:
        turn, left_out = divmod(first + number, 2)
        return [] if left_out else [GENERATIONS[turn % len(GENERATIONS)]]

    compile_primitive(name, generations, linked=3)


@pytest.mark.slow
@pytest.mark.parametrize("name", PRIMITIVE_NAMES)
def test_every_primitive_for_every_generation(name: str) -> None:
    compile_primitive(name, lambda _: GENERATIONS)


def test_every_cast() -> None:
    for source in DTYPES:
        for target in DTYPES:
            if source == target:
                continue

            def change(x: Any, target: str = target) -> Any:
                return Tensor._of(cast(x._node, np.dtype(target)))

            for made in kernels_of(change, ((64,), source)):
                check(ptx.compile_ptx(made.make(), (7, 5)))


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


TEMPLATES: dict[str, Callable[[Any], Any]] = {
    "map": lambda x: x * 2 + x * x,
    "broadcast": lambda x: x + x[:, :1] * x[:1],
    "transposed": lambda x: x.T * 2 + x[0, 0],
    "padded": lambda x: np.pad(x, ((1, 2), (3, 0))) * 2,
    "joined": lambda x: np.concatenate([x, x * 2], axis=1) + 1,
    "gathered": lambda x: x[np.array([1, 0, 1, 1])] + 1,
    "rows": lambda x: (np.sum(x, axis=1), np.max(x, axis=1)),
    "columns": lambda x: (np.sum(x, axis=0), np.min(x, axis=0)),
    "whole": lambda x: (np.sum(x), np.prod(x)),
    "several rows": softmax,
}
SHAPES = [(64, 64), (3, 5), (4, 4099), (4099, 4), (1024, 4096)]


def check_template(name: str, generations: Callable[[int], list[tuple[int, int]]]) -> None:
    """Compile the kernels of a function, each for the generations that belong to its number."""
    known: set[str] = set()
    for shape in SHAPES:
        for dtype in ("float16", "float32", "float64"):
            for made in kernels_of(TEMPLATES[name], (shape, dtype)):
                if made.key in known:
                    continue
                for generation in generations(len(known)):
                    text = ptx.compile_ptx(made.make(), generation)
                    check(text)
                    if ptx._linker() is not None:
                        report = ptx.report(ptx.link(text, generation)[1])
                        assert (report.stack, report.spilled) == (0, 0)
                        assert report.registers <= 128
                known.add(made.key)
    assert known


def in_turn(name: str, table: Collection[str]) -> Callable[[int], list[tuple[int, int]]]:
    """One generation for each kernel of a row, and another first one for each row."""
    first = list(table).index(name)
    return lambda number: [GENERATIONS[(first + number) % len(GENERATIONS)]]


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("name", TEMPLATES)
def test_every_template(name: str) -> None:
    """Each of its kernels for one generation, in turn."""
    check_template(name, in_turn(name, TEMPLATES))


@pytest.mark.slow
@pytest.mark.parametrize("name", TEMPLATES)
def test_every_template_for_every_generation(name: str) -> None:
    check_template(name, lambda _: GENERATIONS)


def check_python_kernel(place: str, generations: Callable[[int], list[tuple[int, int]]]) -> None:
    """Compile a kernel in Python for its dtypes, each for the generations that belong to its number."""
    pattern, numbers, dtypes = PYTHON_KERNELS[place]
    for number, dtype in enumerate(dtypes.split()):
        arrays = tuple([dtype if part == "*" else part for part in pattern.split()])
        made = python_kernel(place, arrays, numbers)
        for generation in generations(number):
            text = ptx.compile_ptx(made.make(), generation)
            check(text)
            if ptx._linker() is not None:
                report = ptx.report(ptx.link(text, generation)[1])
                assert (report.stack, report.spilled) == (0, 0)


@pytest.mark.sampled(of=3)
@pytest.mark.parametrize("place", PYTHON_KERNELS)
def test_every_kernel_in_python(place: str) -> None:
    """Each of its dtypes for one generation, in turn."""
    check_python_kernel(place, in_turn(place, PYTHON_KERNELS))


@pytest.mark.slow
@pytest.mark.parametrize("place", PYTHON_KERNELS)
def test_every_kernel_in_python_for_every_generation(place: str) -> None:
    check_python_kernel(place, lambda _: GENERATIONS)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "bool"])
def test_sixteen_bytes_are_read_and_written_at_once(dtype: str) -> None:
    (made,) = kernels_of(lambda x, y: np.maximum(x, y), ((1024,), dtype), ((1024,), dtype))
    text = ptx.compile_ptx(made.make(), (9, 0))
    width = min(8 * np.dtype(dtype).itemsize, 16) * 8
    loads = re.findall(r"ld\.global\.nc\.(?:v(\d)\.)?[bfus](\d+)", text)
    assert [int(count or 1) * int(bits) for count, bits in loads] == [width, width]
    stores = re.findall(r"st\.global\.(?:v(\d)\.)?[bfus](\d+)", text)
    assert [int(count or 1) * int(bits) for count, bits in stores] == [width]


def test_multiply_and_add_become_one() -> None:
    (made,) = kernels_of(lambda x, y: x * y + x, ((64,), "float32"), ((64,), "float32"))
    assert "fma.rn.f32" in ptx.compile_ptx(made.make(), (9, 0))


def test_division_and_roots_are_rounded_correctly() -> None:
    (made,) = kernels_of(lambda x, y: np.sqrt(x) / y, ((64,), "float32"), ((64,), "float32"))
    text = ptx.compile_ptx(made.make(), (9, 0))
    assert "div.rn.f32" in text and "sqrt.rn.f32" in text


def test_elements_are_read_before_anything_is_computed() -> None:
    """Also at one point at a time: a branch of a division would hold back the reads behind it."""
    (made,) = kernels_of(lambda x, y: np.sqrt(x) / x * y, ((7, 5), "float32"), ((5,), "float32"))
    body = made.make().partition("define void @kernel(")[2]
    calls = [line.start() for line in re.finditer(r"call float @", body)]
    reads = [line.start() for line in re.finditer(r"= load float", body)]
    assert len(calls) == 3
    assert len(reads) == 2
    assert max(reads) < min(calls)


def test_blocks_of_heavy_threads_are_smaller() -> None:
    def threads(f: Callable[..., Any]) -> int:
        found = f(Tensor._of(placeholder((4096,), np.dtype(np.float32))))
        (unit,) = _units(fuse(simplify([found._node])).steps, 132)
        (launch,) = loops.recipe(unit[0], 132).actions
        assert isinstance(launch, Launch)
        return launch.threads

    assert threads(lambda x: np.exp(x) + x) == 256
    assert threads(lambda x: np.exp(x) + np.sin(x) * np.tanh(x) + np.log(x)) == 128


@needs_linker
def test_a_kernel_that_is_wrong_says_so() -> None:
    from nbgrad.errors import DeviceError

    with pytest.raises(DeviceError, match="refuses"):
        ptx.link(".version 8.0\n.target sm_90\nnonsense", (9, 0))


def test_devices_that_are_too_old_or_newer_than_known() -> None:
    from nbgrad.errors import DeviceError

    assert ptx.target_of((12, 1)).processor == "sm_120"
    with pytest.raises(DeviceError, match="sm_61"):
        ptx.target_of((6, 1))


def test_what_was_compiled_is_kept_on_disk() -> None:
    (made,) = kernels_of(lambda x: x * 3.25 + 7.125, ((64,), "float32"))
    first = ptx.cubin(made, (9, 0))

    def fail() -> str:
        raise AssertionError

    assert ptx.cubin(DeviceKernel(made.key, fail), (9, 0)) == first


@needs_linker
def test_kernels_that_are_compiled_side_by_side_are_the_same(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("NBGRAD_CACHE_DIR", str(tmp_path))
    kernels = [DeviceKernel(f"ahead {k}", lambda k=k: scaling_by(k)) for k in range(6)]
    compiled: list[str] = []
    own = ptx.compile_ptx

    def noted(text: str, capability: tuple[int, int]) -> str:
        compiled.append(threading.current_thread().name)
        return own(text, capability)

    monkeypatch.setattr(ptx, "compile_ptx", noted)
    ptx.compile_ahead([*kernels, kernels[0]], (9, 0), 3)
    assert len(compiled) == len(kernels) and "nbgrad compiles" in compiled
    before = len(compiled)
    for k, kernel in enumerate(kernels):
        assert ptx.cubin(kernel, (9, 0)) == ptx.link(own(scaling_by(k), (9, 0)), (9, 0))[0]
    assert len(compiled) == before, "nothing is compiled twice"
    assert not ptx._ahead


def scaling_by(number: int) -> str:
    """A kernel that multiplies the first element by a number."""
    return f"""
define void @kernel(ptr %p) {{
  %x = load double, ptr %p
  %y = fmul double %x, {number}.5
  store double %y, ptr %p
  ret void
}}
"""
