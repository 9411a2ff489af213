"""Kernels by hand, and ways to run them, for the tests of the drivers without a GPU."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from nbgrad.device.kernels.launches import DeviceKernel
from nbgrad.device.simulator.simulator import LaunchFunction, Simulator

ORDERS = ("forward", "reversed")


def kernel(name: str, body: str, arguments: str = "ptr %x, ptr %y") -> DeviceKernel:
    """A kernel whose body knows %t, %b, %k, %g (thread, block, threads, blocks) and %i, the thread in the grid."""
    text = f"""
declare i32 @nbgrad.thread()
declare i32 @nbgrad.block()
declare i32 @nbgrad.threads()
declare i32 @nbgrad.blocks()
declare void @nbgrad.barrier()
declare void @nbgrad.fence()
declare i32 @nbgrad.ballot(i32)
declare i32 @nbgrad.match(i32)
declare ptr @nbgrad.shared()
declare i32 @nbgrad.shuffle.down.i32(i32, i32)
declare i64 @nbgrad.shuffle.down.i64(i64, i32)
declare i32 @nbgrad.shuffle.xor.i32(i32, i32)
declare i64 @nbgrad.shuffle.xor.i64(i64, i32)
declare i32 @nbgrad.shuffle.from.i32(i32, i32)
declare i64 @nbgrad.shuffle.from.i64(i64, i32)
define void @kernel({arguments}) {{
entry:
  %t = call i32 @nbgrad.thread()
  %b = call i32 @nbgrad.block()
  %k = call i32 @nbgrad.threads()
  %g = call i32 @nbgrad.blocks()
  %before = mul i32 %b, %k
  %i = add i32 %before, %t
{body}
}}
"""
    return DeviceKernel(f"test {name} {body} {arguments}", lambda: text)


def run(
    used: DeviceKernel,
    *operands: np.ndarray | int,
    blocks: int = 1,
    threads: int = 32,
    shared: int = 0,
    order: str = "forward",
    races: bool = True,
) -> list[np.ndarray]:
    """Run a kernel with copies of the arrays, which come back."""
    simulator = Simulator(order=order, races=races)
    words: list[int] = []
    arrays: list[np.ndarray] = []
    for operand in operands:
        if isinstance(operand, int):
            words.append(operand)
        else:
            words.append(simulator.allocate(operand.nbytes, 0, 0))
            arrays.append(np.empty_like(operand))
            simulator.upload(words[-1], operand, 0)
    simulator.launch(simulator.function(used, 0, shared), blocks, threads, shared, np.array(words), 0)
    for pointer, array in zip(words, arrays, strict=False):
        simulator.download(array, pointer, 0)
        simulator.free(pointer, 0, 0)
    simulator.synchronise(0)
    return arrays


def square(kind: str) -> DeviceKernel:
    """y = x * x over n elements, by a grid of any size."""
    return kernel(
        f"square {kind}",
        f"""
  %start = zext i32 %i to i64
  %all = mul i32 %k, %g
  %step = zext i32 %all to i64
  br label %test
test:
  %e = phi i64 [ %start, %entry ], [ %next, %do ]
  %in = icmp slt i64 %e, %n
  br i1 %in, label %do, label %end
do:
  %p = getelementptr {kind}, ptr %x, i64 %e
  %q = getelementptr {kind}, ptr %y, i64 %e
  %v = load {kind}, ptr %p
  %w = fmul {kind} %v, %v
  store {kind} %w, ptr %q
  %next = add i64 %e, %step
  br label %test
end:
  ret void
""",
        "ptr noalias readonly %x, ptr noalias %y, i64 %n",
    )


BLOCK_SUM = kernel(
    "block sum",
    """
  %s = call ptr @nbgrad.shared()
  %p = getelementptr float, ptr %x, i32 %i
  %v = load float, ptr %p
  %q = getelementptr float, ptr %s, i32 %t
  store float %v, ptr %q
  call void @nbgrad.barrier()
  br label %loop
loop:
  %twice = phi i32 [ %k, %entry ], [ %half, %next ]
  %half = lshr i32 %twice, 1
  %go = icmp ugt i32 %half, 0
  br i1 %go, label %body, label %end
body:
  %mine = icmp ult i32 %t, %half
  br i1 %mine, label %add, label %next
add:
  %j = add i32 %t, %half
  %r = getelementptr float, ptr %s, i32 %j
  %a = load float, ptr %q
  %c = load float, ptr %r
  %d = fadd float %a, %c
  store float %d, ptr %q
  br label %next
next:
  call void @nbgrad.barrier()
  br label %loop
end:
  %first = icmp eq i32 %t, 0
  br i1 %first, label %put, label %out
put:
  %f = load float, ptr %s
  %yp = getelementptr float, ptr %y, i32 %b
  store float %f, ptr %yp
  br label %out
out:
  ret void
""",
)


STORE = kernel("store", "  %q = getelementptr i8, ptr %x, i64 %n\n  store i8 7, ptr %q\n  ret void", "ptr %x, i64 %n")


def launch(simulator: Simulator, used: DeviceKernel, words: Sequence[int], stream: int = 0, device: int = 0) -> None:
    """One block of one thread."""
    simulator.launch(simulator.function(used, device), 1, 1, 0, np.array(words), stream)


def native_launch(address: int, function: int, words: Sequence[int], threads: int = 1, stream: int = 0) -> int:
    """What the runtime's native code does: the parameters are in one buffer."""
    buffer = np.array(words, np.int64)
    size = ctypes.c_size_t(buffer.nbytes)
    extra = (ctypes.c_void_p * 5)(1, buffer.ctypes.data, 2, ctypes.addressof(size), 0)
    return LaunchFunction(address)(function, 1, 1, 1, threads, 1, 1, 0, stream, None, extra)
