"""How far results on a GPU are from those on the CPU: every elementwise primitive, and sums.

In: a name from `PRIMITIVES`, a dtype, and how many random elements. Out: the largest difference in ULP (how many floats
lie between two results, plus one). Called by devices.py and by the tests that need a GPU. Half of the arguments are
random bit patterns: all magnitudes, infinities, NaN; the other half have magnitudes at which functions do something.
"""

import math

import numpy as np

import nbgrad as nb
from nbgrad.compiler.lowering import kernel_module
from nbgrad.graph import ir
from nbgrad.graph.primitives import COMPARISON

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
NEAR_ZERO = {"gammaln": 1.0, "digamma": 1.0, "polygamma": 1.0, "sinc_derivative": 32.0}
"""Functions that lose digits next to their zeros on any machine: ULP are those of this magnitude for smaller results.

The error of a derivative of sinc is a share of its largest value, which is 51 for the fifth.
"""
LIMIT = 4.0
"""How many ULP there may be between the results of a GPU and of the CPU."""
FURTHER = {"polygamma": 64.0}
"""Other limits: polygamma's results are exact to 1e-14 on any machine, which is 64 ULP."""


def primitives() -> list[str]:
    """The names of all elementwise primitives."""
    return [name for name in kernel_module().SCALARS if name in ir.PRIMITIVES]


def dtypes_of(name: str) -> list[str]:
    """The dtypes that a primitive takes."""
    found = []
    for dtype in DTYPES:
        try:
            kernel_module().scalar_kernel(name, "float32" if dtype == "float16" else dtype)
        except KeyError:
            continue
        found.append(dtype)
    return found


def arguments(name: str, dtype: str, count: int, seed: int = 0) -> list[np.ndarray]:
    """Random operands of a primitive, the same in every process."""
    rng = np.random.default_rng([seed, *name.encode()])
    kernel = kernel_module().scalar_kernel(name, "float32" if dtype == "float16" else dtype)
    operands = []
    for position in range(kernel.__code__.co_argcount):
        own = "bool" if name == "select" and position == 0 else dtype
        operands.append(_random(rng, np.dtype(own), count))
    if name in ("left_shift", "right_shift"):
        operands[1] %= operands[1].dtype.type(8 * operands[1].itemsize)  # C has no other shifts
    if name in ("polygamma", "sinc_derivative"):
        operands[0] = rng.integers(0, 6, count).astype(dtype)
    return operands


def _random(rng: np.random.Generator, dtype: np.dtype, count: int) -> np.ndarray:
    if dtype.kind == "b":
        return rng.random(count) < 0.5
    found = np.frombuffer(rng.bytes(count * dtype.itemsize), dtype).copy()
    if dtype.kind == "f":
        half = count // 2
        found[:half] = (rng.standard_normal(half) * 10.0 ** rng.uniform(-3, 2, half)).astype(dtype)
    else:
        found[::7] //= dtype.type(max(1, np.iinfo(dtype).max // 7))  # zeros, and equal numbers
    return found


def apart(found: np.ndarray, expected: np.ndarray, near: float = 0.0) -> float:
    """The largest difference in ULP; results of other dtypes than floats are equal (0) or not (infinity).

    NaN is NaN, and zeros are equal. Below the magnitude `near`, ULP are those of `near`.
    """
    assert found.dtype == expected.dtype and found.shape == expected.shape
    if found.dtype.kind != "f":
        return 0.0 if np.array_equal(found, expected) else math.inf
    if not found.size:
        return 0.0
    nan = np.isnan(found), np.isnan(expected)
    if not np.array_equal(*nan):
        return math.inf
    a, b = [_ordered(np.where(nan[0], 0, x).astype(x.dtype)) for x in (found, expected)]
    far = np.where(a > b, a - b, b - a).astype(np.float64)
    if near:
        with np.errstate(all="ignore"):
            wide = np.abs(found.astype(np.float64) - expected.astype(np.float64))
            other = wide / float(np.spacing(found.dtype.type(near)))
        small = np.abs(expected) < near
        far = np.where(small, np.minimum(far, other), far)
    return float(np.max(far))


def _ordered(x: np.ndarray) -> np.ndarray:
    """Unsigned whole numbers in the order of floats, one apart for neighbours; both zeros are the same number."""
    bits = x.view(f"u{x.itemsize}")
    sign = bits.dtype.type(1 << (8 * x.itemsize - 1))
    return np.where(bits & sign, sign - (bits & ~sign), bits | sign)


def on(device: str, name: str, operands: list[np.ndarray]) -> np.ndarray:
    """What a primitive gives on a device, compiled."""
    compiled = nb.jit(lambda *given: nb.Tensor._of(ir.make(name, tuple([tensor._node for tensor in given]))))
    return np.asarray(compiled(*[nb.Tensor(x, device=device) for x in operands]).asnumpy())


def difference(name: str, dtype: str, count: int) -> float:
    """The largest difference of a primitive's results on the device from those on the CPU, in ULP."""
    operands = arguments(name, dtype, count)
    return apart(on("cuda", name, operands), on("cpu", name, operands), NEAR_ZERO.get(name, 0.0))


def sum_error(dtype: str, count: int) -> float:
    """The error of a sum of numbers of both signs, in units of the last place of the sum of their magnitudes."""
    x = np.random.default_rng(0).standard_normal(count).astype(dtype)
    found = float(nb.Tensor(x, device="cuda").sum().asnumpy())
    return abs(found - math.fsum(x)) / float(np.spacing(np.abs(x).sum(dtype=dtype)))


def largest_differences(dtype: str, count: int) -> dict[str, float]:
    """Of every primitive with results of floats."""
    names = [name for name in primitives() if name not in COMPARISON and dtype in dtypes_of(name)]
    return {name: difference(name, dtype, count) for name in names}
