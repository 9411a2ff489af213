"""The float32 functions that GPUs have kernels of their own for: their errors, their special values, their length.

They run in the simulator, whose approximate instructions are as imprecise as NVIDIA's documentation allows: off by the
largest error upwards, downwards, or either way from one operand to the next. What holds then holds on every GPU.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import special

import nbgrad as nb
from nbgrad.compiler.lowering import kernel_module
from nbgrad.compiler.scalars import scalar_ir
from nbgrad.device.kernels import ptx
from nbgrad.device.kernels.device_scalars import device_scalar_ir
from nbgrad.device.kernels.launches import DeviceKernel
from nbgrad.device.memory.chosen_driver import using
from nbgrad.device.simulator import cpu_instructions as host_instructions
from nbgrad.device.simulator import fibers
from nbgrad.device.simulator.simulator import Simulator
from nbgrad.graph.ir import make
from nbgrad.record.tensor import Tensor

from .device_kernels import run
from .test_device_compile import kernels_of

pytestmark = pytest.mark.unoptimized

FLOAT32 = np.dtype(np.float32)
MODES = (None, "up", "down", "mixed")
GENERATIONS = [(7, 5), (8, 0), (9, 0), (10, 0)]


class Function(NamedTuple):
    """What a function is in float64, its largest error in ULP, and how many instructions of PTX it may have."""

    exact: Callable[..., Any]
    limit: float
    instructions: int


FUNCTIONS = {
    "exp": Function(np.exp, 3.7, 9),
    "exp2": Function(np.exp2, 3.5, 9),
    "expm1": Function(np.expm1, 1.6, 21),
    "expit": Function(special.expit, 2.4, 27),
    "log": Function(np.log, 1.0, 25),
    "log2": Function(np.log2, 1.9, 25),
    "log10": Function(np.log10, 2.6, 27),
    "log1p": Function(np.log1p, 1.6, 25),
    "xlogy": Function(special.xlogy, 2.0, 30),
    "sin": Function(np.sin, 1.6, 73),
    "cos": Function(np.cos, 1.6, 73),
    "tan": Function(np.tan, 2.5, 73),
    "arcsin": Function(np.arcsin, 2.4, 25),
    "arccos": Function(np.arccos, 1.3, 30),
    "arctan": Function(np.arctan, 2.5, 18),
    "arctan2": Function(np.arctan2, 2.0, 31),
    "sinh": Function(np.sinh, 1.8, 26),
    "cosh": Function(np.cosh, 1.5, 17),
    "tanh": Function(np.tanh, 3.1, 17),
    "erf": Function(special.erf, 1.8, 20),
    "rsqrt": Function(lambda x: 1 / np.sqrt(x), 3.0, 1),
    "cbrt": Function(np.cbrt, 1.7, 22),
    "power": Function(np.power, 2.4, 109),
}
CIRCULAR = ("sin", "cos", "tan")
"""They have a branch for angles beyond 65536, which converts whole numbers by float64."""
BINARY = ("arctan2", "power", "xlogy")
ORDINARY = [0, 1, 2, 0.5, 3, 2.5, 1.0000001, 0.99999994, 1e-9, 65536, 1e5, 2.0**40]
EDGES = [88.72283, 88.72284, 89.41598, 89.41599, 103.97208, 87.33655, 89, 126, 127, 127.99999, 128, 149, 150, 16.635532]
WHOLE = [8388607, 8388607.5, 16777215, 16777216]
LIMITS = [np.inf, np.nan, 1e-45, 1e-40, 2.0**-126, 3.4e38, 3.4028235e38]
SPECIAL = np.array([*ORDINARY, *EDGES, *WHOLE, *LIMITS], np.float32)
SPECIAL = np.concatenate([SPECIAL, -SPECIAL])


def kernel_of(name: str) -> DeviceKernel:
    """y = f(x) or f(x, z), each thread for 64 elements."""
    count = 1 + (name in BINARY)
    loads = "".join(
        f"  %p{k} = getelementptr float, ptr %x{k}, i64 %e\n  %v{k} = load float, ptr %p{k}\n" for k in range(count)
    )

    def text() -> str:
        symbol, function = device_scalar_ir(name, [FLOAT32] * count, FLOAT32)
        return f"""{function}
declare i32 @nbgrad.thread()
declare i32 @nbgrad.block()
define void @kernel(ptr %y, {", ".join(f"ptr %x{k}" for k in range(count))}, i64 %n) {{
entry:
  %t = call i32 @nbgrad.thread()
  %b = call i32 @nbgrad.block()
  %s = mul i32 %b, 256
  %i = add i32 %s, %t
  %wide = zext i32 %i to i64
  %start = mul i64 %wide, 64
  %after = add i64 %start, 64
  %short = icmp slt i64 %after, %n
  %stop = select i1 %short, i64 %after, i64 %n
  br label %test
test:
  %e = phi i64 [ %start, %entry ], [ %next, %do ]
  %in = icmp slt i64 %e, %stop
  br i1 %in, label %do, label %end
do:
{loads}  %r = call float @{symbol}({", ".join(f"float %v{k}" for k in range(count))})
  %q = getelementptr float, ptr %y, i64 %e
  store float %r, ptr %q
  %next = add i64 %e, 1
  br label %test
end:
  ret void
}}
"""

    return DeviceKernel(f"device math {name} {host_instructions.ERRORS}", text)


def on_device(name: str, *operands: np.ndarray) -> np.ndarray:
    """The function in the simulator."""
    size = operands[0].size
    arrays = [np.empty(size, np.float32), *operands]
    return run(kernel_of(name), *arrays, size, blocks=-(-size // (256 * 64)), threads=256)[0]


def on_host(name: str, *operands: np.ndarray) -> np.ndarray:
    """The function on the CPU."""

    def function(*tensors: Any) -> Any:
        return Tensor._of(make(name, tuple(tensor._node for tensor in tensors)))

    return np.asarray(nb.jit(function)(*[nb.Tensor(operand) for operand in operands]))


def samples(name: str) -> list[np.ndarray]:
    """Operands of all exponents, and those where a float32 result is ordinary."""
    generator = np.random.default_rng(7)
    if name not in BINARY:
        every = np.arange(0, 2**32, 20011, dtype=np.uint64).astype(np.uint32).view(np.float32)
        return [np.concatenate([SPECIAL, every, generator.uniform(-3, 3, 100_000).astype(np.float32)])]
    left, right = (part.ravel() for part in np.meshgrid(SPECIAL, SPECIAL))
    count = 50_000
    if name == "arctan2":
        sizes = [10.0 ** generator.uniform(-45, 38, count) * generator.choice([-1, 1], count) for _ in range(2)]
        more = [(sizes[0], sizes[1]), (generator.normal(size=count), generator.normal(size=count))]
    else:
        more = [
            (np.exp(generator.uniform(-100, 88, count)), generator.uniform(-2, 2, count)),
            (generator.uniform(0.5, 2, count), generator.uniform(-150, 150, count)),
            (generator.uniform(0.9, 1.1, count), generator.uniform(-900, 900, count)),
            (1 + generator.uniform(-1e-3, 1e-3, count), generator.uniform(-1e5, 1e5, count)),
            (-generator.integers(1, 99, count), generator.integers(-20, 20, count)),
        ]
    if name == "xlogy":
        more = [(second, first) for first, second in more]
    columns = zip((left, right), zip(*more, strict=True), strict=True)
    return [np.concatenate([first, *rest]).astype(np.float32) for first, rest in columns]


def errors(values: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """The distance of float32 numbers from float64 ones in ULP of the latter; infinite if a special value is wrong."""
    rounded = exact.astype(np.float32)
    size = np.abs(rounded)
    unit = np.minimum(np.nextafter(size, np.float32(np.inf)) - size, np.float32(2.0**104))
    error = np.abs(values.astype(np.float64) - exact) / unit
    same = (values == rounded) | (np.isnan(values) & np.isnan(rounded))
    return np.where(np.isfinite(rounded) & np.isfinite(values), error, np.where(same, 0.0, np.inf))


def order(x: np.ndarray) -> np.ndarray:
    """The number of a float32 in the order of all of them."""
    bits = x.view(np.int32).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFFFFFF), bits)


def test_the_table_is_complete() -> None:
    assert set(FUNCTIONS) == set(kernel_module("gpu.device_math").SCALARS)
    for name, kernel in kernel_module("gpu.device_math").SCALARS.items():
        stated = re.search(r": ([\d.]+) ULP", kernel.__doc__)
        assert stated is not None and float(stated[1]) == FUNCTIONS[name].limit, name


@pytest.mark.sampled(of=2)
@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_and_special_values(name: str, mode: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the stated error, and four floats at most from the CPU, whatever the documentation allows."""
    monkeypatch.setattr(host_instructions, "ERRORS", mode)
    operands = samples(name)
    with np.errstate(all="ignore"):
        values = on_device(name, *operands)
        exact = FUNCTIONS[name].exact(*[operand.astype(np.float64) for operand in operands])
        error = errors(values, exact)
    worst = int(np.argmax(error))
    assert error[worst] <= FUNCTIONS[name].limit, [operand[worst] for operand in operands]
    host = on_host(name, *operands)
    apart = np.where((values == host) | (np.isnan(values) & np.isnan(host)), 0, np.abs(order(values) - order(host)))
    worst = int(np.argmax(apart))
    assert apart[worst] <= 4, [operand[worst] for operand in operands]
    zeros = (values == 0) & (host == 0)
    np.testing.assert_array_equal(np.signbit(values[zeros]), np.signbit(host[zeros]))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_kernels_are_ordinary_python(name: str) -> None:
    """As every kernel they run as Python, where instructions are rounded correctly and a product is rounded first."""
    function = kernel_module("gpu.device_math").SCALARS[name]
    for x in (0.25, 0.75, 0.9, -0.5, 0.0, *((1e10, -3e38) if name in CIRCULAR else ())):
        operands = [np.float32(x)] * (1 + (name in BINARY))
        with np.errstate(all="ignore"):
            value = np.float32(function(*operands))
            exact = np.asarray(FUNCTIONS[name].exact(*[np.float64(operand) for operand in operands]))
            assert errors(np.array([value]), exact.reshape(1))[0] <= FUNCTIONS[name].limit + 1, x


def _instructions(text: str) -> int:
    """How many instructions PTX has besides loads, stores, addresses and the return."""
    lines = re.findall(r"^\s+(?:@%p\d+ )?([a-z][\w.:]+)\s[^\n]*;", text, re.M)
    return sum(not line.startswith(("ld.", "st.", "cvta", "mov", "mul.wide", "add.s64", "ret")) for line in lines)


@pytest.mark.parametrize("generation", GENERATIONS, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_short(name: str, generation: tuple[int, int]) -> None:
    """No call, no local memory, hardly any float64, no more instructions than when this was written."""
    count = 1 + (name in BINARY)
    symbol, function = device_scalar_ir(name, [FLOAT32] * count, FLOAT32)
    loads = "".join(
        f"  %p{k} = getelementptr float, ptr %x{k}, i32 %i\n  %v{k} = load float, ptr %p{k}\n" for k in range(count)
    )
    pointers = ", ".join(f"ptr noalias readonly %x{k}" for k in range(count))
    text = f"""{function}
declare i32 @nbgrad.thread()
define void @kernel({pointers}, ptr noalias %y) {{
  %i = call i32 @nbgrad.thread()
{loads}  %r = call float @{symbol}({", ".join(f"float %v{k}" for k in range(count))})
  %q = getelementptr float, ptr %y, i32 %i
  store float %r, ptr %q
  ret void
}}
"""
    compiled = ptx.compile_ptx(text, generation)
    assert ".extern" not in compiled
    assert "call" not in compiled and ".local" not in compiled
    assert ".f64" not in compiled or name in CIRCULAR
    assert _instructions(compiled) <= FUNCTIONS[name].instructions


def test_instructions_are_those_of_the_documentation() -> None:
    found = "".join(
        ptx.compile_ptx(kernel_of(name).make(), (9, 0)) for name in ("exp", "log", "arctan", "rsqrt", "cbrt")
    )
    for instruction in ("ex2.approx.ftz", "lg2.approx.ftz", "rcp.approx.ftz", "rsqrt.approx", "fma.rn.sat"):
        assert f"{instruction}.f32" in found, instruction


def test_other_dtypes_have_the_kernels_of_the_cpu() -> None:
    double = np.dtype(np.float64)
    assert device_scalar_ir("exp", [double], double) == scalar_ir("exp", [double], double)
    assert device_scalar_ir("add", [FLOAT32] * 2, FLOAT32) == scalar_ir("add", [FLOAT32] * 2, FLOAT32)
    for name in FUNCTIONS:
        dtypes = [FLOAT32] * (1 + (name in BINARY))
        assert "approximate" not in scalar_ir(name, dtypes, FLOAT32)[1]
        assert device_scalar_ir(name, dtypes, FLOAT32) != scalar_ir(name, dtypes, FLOAT32)


@pytest.fixture
def simulated(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A simulated device, which compiles all kernels anew: their names do not tell how imprecise instructions are."""
    monkeypatch.setattr(fibers, "_compiled", {})
    made = Simulator()
    with using(made):
        yield
        made.check()


MAGNITUDES = [
    0.0,
    1e-45,
    3e-42,
    2.0**-127,
    2.0**-126,
    2.0**-125,
    2.0**-102,
    2.0**-101,
    2.0**-100,
    1e-20,
    0.1,
    1.0,
    1.9999999,
]
MAGNITUDES += [3.0, 7.0, 1e10, 2.0**100, 2.0**125, 2.0**126, 1.7e38, 2.0**127, 3.4028235e38, np.inf, np.nan]


def by_fours(*parts: np.ndarray) -> list[np.ndarray]:
    """Arrays in which points at a thread are alike, so that a rare one does not hide what the others give."""
    return [np.repeat(part.astype(np.float32), 4) for part in parts]


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_divisions_are_rounded_correctly(simulated: None, mode: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the instruction for inverses is as imprecise as its documentation allows, but for one divisor."""
    monkeypatch.setattr(host_instructions, "ERRORS", mode)
    generator = np.random.default_rng(3)
    every = np.array([*MAGNITUDES, *np.negative(MAGNITUDES)])
    x, y = by_fours(*[part.ravel() for part in np.meshgrid(every, every)])
    bits = generator.integers(0, 2**32, (2, 40_000), dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = generator.uniform(1, 2, (2, 40_000)).astype(np.float32)
    x, y = [np.concatenate([special, *rest]) for special, *rest in zip((x, y), bits, near, strict=True)]
    if mode is not None:
        # The inverse of 2 - 2**-23 must be the one that GPUs give, as NVIDIA's compiler has it too.
        ones = (y.view(np.int32) & 0x7FFFFF) == 0x7FFFFF
        y[ones] = 3
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(bits_of(on_simulated(lambda x, y: x / y, x, y)), bits_of(x / y))
        inverse = on_simulated(lambda y: 1.0 / y, y)
        np.testing.assert_array_equal(bits_of(inverse), bits_of(np.float32(1.0) / y))


def test_roots_are_rounded_correctly(simulated: None) -> None:
    x = np.array([*MAGNITUDES, *np.negative(MAGNITUDES)])
    every = np.arange(0, 2**32, 40009, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = np.concatenate([*by_fours(x), every, np.linspace(1, 4, 40_000, dtype=np.float32)])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(bits_of(on_simulated(lambda x: np.sqrt(x), x)), bits_of(np.sqrt(x)))


@pytest.mark.parametrize("mode", MODES, ids=str)
@pytest.mark.parametrize("name", ["log", "rsqrt", "sin", "cos", "tan"])
def test_ordinary_operands(simulated: None, name: str, mode: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several points at a time, the short forms, which rare operands turn into whole ones, have the stated errors."""
    monkeypatch.setattr(host_instructions, "ERRORS", mode)
    (x,) = samples(name)
    x = np.concatenate([*by_fours(SPECIAL), x])
    with np.errstate(all="ignore"):
        found = on_simulated(lambda x: Tensor._of(make(name, (x._node,))), x)
        error = errors(found, FUNCTIONS[name].exact(x.astype(np.float64)))
    assert error.max() <= FUNCTIONS[name].limit, x[np.argmax(error)]


def bits_of(x: np.ndarray) -> np.ndarray:
    """The bits of float32 numbers; all NaN are the same."""
    return np.where(np.isnan(x), np.float32(np.nan), x).view(np.int32)


def on_simulated(function: Callable[..., Any], *operands: np.ndarray) -> np.ndarray:
    """A function on the current device, compiled, four points to a thread."""
    return np.asarray(nb.jit(function)(*[nb.Tensor(operand, device="cuda") for operand in operands]).asnumpy())


def test_rare_operands_share_a_branch() -> None:
    (made,) = kernels_of(lambda x, y: np.sqrt(x) / y, ((64,), "float32"), ((64,), "float32"))
    text = made.make()
    assert text.count("call float @nbgrad.ordinary.divide(") == text.count("call float @nbgrad.ordinary.sqrt(") == 4
    assert len(re.findall(r"^O\d+\.rare:", text, re.M)) == 2
    assert ptx.compile_ptx(text, (9, 0)).count("rcp.approx.ftz.f32") == 4


def test_an_angle_is_reduced_once_at_each_point() -> None:
    kernels = kernels_of(lambda x: nb.numpy.sin(x) * nb.numpy.cos(x), ((64,), "float32"))
    (text,) = [kernel.make() for kernel in kernels]
    counts = [text.count(f"@nbgrad.device.{name}(float %") for name in ("angle", "sin_at", "cos_at")]
    # Four points of a thread, and each definition.
    assert counts == [5, 5, 5]
    assert len(re.findall(r"call i64 @nbgrad\.ordinary\.nbgrad\.device\.angle\(", text)) == 4
