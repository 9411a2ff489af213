"""Derivatives of kernels of `cuda.jit`: `nb.kernel` with a launch.

Facts come from the kernels themselves, run by Numba's simulator in other processes, and from paper. Derived kernels are
compiled for four generations of GPUs where NVVM is installed; a GPU runs the whole table.
"""

from __future__ import annotations

import inspect
import re
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest
from numba import cuda as numba_cuda
from numba import float64

import nbgrad as nb
from nbgrad.adjoints.reading.scalar_form import scalar_form
from nbgrad.adjoints.threads.launch_sizes import Launch, launch_for
from nbgrad.adjoints.threads.thread_arrays import origin
from nbgrad.adjoints.threads.thread_kernels import (
    ThreadKernel,
    for_launches,
    forward_threads,
    reverse_threads,
    second_threads,
)
from nbgrad.errors import ArgumentError

from .cuda_adjoint_kernels import ROWS, check
from .simulated import simulated

cuda: Any = numba_cuda
pytestmark = pytest.mark.unoptimized
OFTEN = ("push", "stencil", "block_sums", "tiled_product", "carried_in_strides")
"""The shapes that users have most; their reverse kernels are compiled for all generations."""
CAPABILITIES = ((7, 5), (8, 0), (8, 9), (9, 0))


# ----- Numbers -----


@pytest.mark.parametrize("every", [2, pytest.param(1, marks=pytest.mark.slow)])
def test_first_and_second_derivatives_are_those_of_the_kernel(every: int) -> None:
    names = [(name, k % (2 * every) == 0) for k, name in enumerate(list(ROWS)[::every])]
    simulated(f"from tests.cuda_adjoint_kernels import check\nfor name, second in {names!r}:\n    check(name, second)")


@pytest.mark.gpu
@pytest.mark.parametrize("name", ROWS)
def test_derivatives_on_a_gpu(name: str) -> None:
    check(name)


def test_on_devices_in_compiled_and_in_batched_functions() -> None:
    simulated(
        """
        import numpy as np, nbgrad as nb
        from tests.cuda_adjoint_kernels import log_gammas, push

        pushed = nb.kernel(push, inout=("x", "u"), launch=lambda x, u, dt, n: ((x.size + 3) // 4, 4))
        x, u = np.linspace(0.2, 0.9, 6), np.linspace(1.0, 0.5, 6)

        def total(x, u, dt):
            a, b = pushed(x, u, dt, 5)
            return np.sum(a * b)

        expected = nb.grad(total, (0, 1, 2))(x, u, 0.3)
        assert [type(one) for one in pushed(x, u, 0.3, 5)] == [np.ndarray, np.ndarray]
        many = nb.vmap(nb.grad(total), in_axes=(0, None, None))(np.stack([x, 2 * x]), u, 0.3)
        np.testing.assert_allclose(many[0], expected[0], rtol=1e-14)
        gammas = nb.kernel(log_gammas, shape=lambda x: x, launch=lambda x, out: (1, out.size))
        slopes = nb.grad(lambda x: np.sum(gammas(x)))(np.array([1.0, 2.0]))
        np.testing.assert_allclose(slopes, [-0.5772156649015329, 0.4227843350984671], rtol=1e-13)
        with nb.cuda.simulator():
            given = [nb.Tensor(one, device="cuda") for one in (x, u, np.array(0.3))]
            for function in (nb.grad(total, (0, 1, 2)), nb.jit(nb.grad(total, (0, 1, 2)))):
                for one, other in zip(function(*given), expected):
                    assert one.device == "cuda"
                    np.testing.assert_allclose(one.cpu().asnumpy(), other, rtol=1e-14)
        """,
        NBGRAD_CUDA_SIMULATOR="0",
    )


def test_a_wrong_gradient_is_seen_at_its_first_use() -> None:
    simulated(
        """
        import numpy as np, nbgrad as nb
        from nbgrad.adjoints.threads.launched_kernels import LaunchedKernel
        from tests.cuda_adjoint_kernels import stencil

        right = LaunchedKernel.run_reverse
        calls = []

        def run_reverse(self, asked, given, cotangents, gradients):
            right(self, asked, given, cotangents, gradients)
            calls.append(self)
            for one in gradients.values():
                one *= 1.01

        LaunchedKernel.run_reverse = run_reverse
        x, w, out = np.linspace(0.2, 0.9, 3), np.ones(3), np.zeros(3)

        def raised(x, check):
            del calls[:]
            try:
                nb.grad(lambda x: np.sum(nb.kernel(stencil[1, 4], check=check)(x, w, out)))(x)
            except nb.errors.ArgumentError as error:
                return "differs from finite differences" in str(error)
            return False

        assert raised(x, "first") and not raised(x, "never")
        assert len(calls) == 1
        with nb.cuda.simulator():
            assert raised(nb.Tensor(x, device="cuda"), "always")
        """
    )


def test_arrays_of_a_device_stay_there() -> None:
    """The way of real devices, with Numba's arrays of its simulator over the memory of nbgrad's."""
    simulated(
        """
        import ctypes
        import numpy as np, nbgrad as nb
        from numba import cuda
        from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray
        from nbgrad.device.memory import custom_launches
        from tests.cuda_adjoint_kernels import ROWS

        class Stream(int):
            pass

        class Array(FakeCUDAArray):
            def __getitem__(self, index):
                found = self._ary[index]
                return Array(found) if isinstance(found, np.ndarray) else found

        def as_cuda_array(one, sync):
            assert isinstance(one, custom_launches.KernelArray)
            memory = (ctypes.c_char * one.nbytes).from_address(one.address)
            return Array(np.ndarray(one.shape, one.dtype, memory))

        cuda.external_stream, cuda.as_cuda_array = Stream, as_cuda_array
        custom_launches.kernel_array = lambda device, at, layout: custom_launches.KernelArray(at, *layout, device)

        # Simulated device functions want blocks of one thread.
        for name, one in (("push", (7, 1)), ("carried_in_strides", (3, 1))):
            kernel, _, moving, arguments = ROWS[name]
            function = nb.kernel(kernel, launch=one)

            def total(*given):
                own = list(arguments)
                for k, value in zip(moving, given):
                    own[k] = value
                found = function(*own)
                return sum(np.sum(np.sin(part)) for part in (found if isinstance(found, tuple) else (found,)))

            point = [np.asarray(arguments[k]) for k in moving]
            expected = nb.grad(total, tuple(range(len(point))))(*point)
            _, tangent = nb.jvp(total, tuple(point), tuple(point))
            with nb.cuda.simulator():
                given = [nb.Tensor(x, device="cuda") for x in point]
                arguments = [
                    nb.Tensor(x, device="cuda") if isinstance(x, np.ndarray) else x for x in arguments
                ]
                found = nb.grad(total, tuple(range(len(point))))(*given)
                for one, other in zip(found, expected):
                    np.testing.assert_allclose(one.cpu().asnumpy(), other, rtol=1e-13)
                _, moved = nb.jvp(total, tuple(given), tuple(given))
                np.testing.assert_allclose(moved.cpu().asnumpy(), tangent, rtol=1e-13)
        """
    )


# ----- Text -----


def examples(name: str) -> tuple[Any, dict[str, Any], list[str], Launch]:
    """A kernel of the table, its arguments by name, the names of what is differentiated, its launch."""
    row = ROWS[name]
    names = list(inspect.signature(row.kernel.py_func).parameters)
    given = {one: np.asarray(value)[()] for one, value in zip(names, row.arguments, strict=True)}
    return row.kernel, given, [names[k] for k in row.moving], launch_for(row.launch, name, [])


def derived(kernel: Any, given: dict[str, Any], wanted: list[str], launch: Launch) -> list[ThreadKernel]:
    """The reverse kernel, the tangent kernel, and the tangent of the reverse kernel."""
    form = for_launches(scalar_form(kernel, given), launch)
    reverse, adjoint = reverse_threads(form, wanted, launch)
    return [reverse, forward_threads(form, wanted, launch), second_threads(form, adjoint, wanted, launch)]


def signature(kernel: ThreadKernel) -> tuple[Any, ...]:
    """Numba's types of the arguments of a derived kernel."""
    form, arrays = kernel.form, kernel.arrays
    found: list[Any] = []
    for name in kernel.parameters:
        base = origin(name, dict.fromkeys(form.parameters))
        dtype = arrays.columns.get(name) or ("float64" if base is None else form.dtypes[base])
        ndim = 2 if name in arrays.columns else form.ranks.get(str(base), 1)
        found.append(numba.types.Array(numba.from_dtype(np.dtype(dtype)), ndim, "C"))
    return tuple(found)


def nvvm_is_installed() -> bool:
    """Whether Numba can compile for GPUs here."""
    try:
        from numba.cuda.cudadrv import nvvm

        nvvm.NVVM()
    except Exception:
        return False
    return True


@pytest.mark.sampled(of=5)
@pytest.mark.skipif(not nvvm_is_installed(), reason="NVVM is not installed")
@pytest.mark.parametrize("name", ROWS)
@pytest.mark.filterwarnings("ignore")
def test_derivatives_compile_for_gpus(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from numba.cuda import dispatcher

    kernels = derived(*examples(name))
    most = CAPABILITIES if name in OFTEN else CAPABILITIES[1:2]
    for kernel, capabilities in zip(kernels, (most, CAPABILITIES[-1:], CAPABILITIES[:1]), strict=True):
        for capability in capabilities:
            device = SimpleNamespace(compute_capability=capability)
            monkeypatch.setattr(dispatcher, "get_current_device", lambda device=device: device)
            text, _ = cuda.compile_ptx(kernel.function.py_func, signature(kernel), cc=capability)
            assert f".target sm_{capability[0]}{capability[1]}" in text
            adds = "atomic.add" in kernel.text or "warp_add_" in kernel.text
            assert bool(re.search(r"\b(atom|red)\.", text)) == adds
            assert ("shfl.sync" in text) == ("warp_add_" in kernel.text)


TEXTS = [
    # Threads add to elements of their own by plain statements, and bring copies of what they overwrite.
    ("push", ["x_b[i_3] +=", "x_w[i_3] +="], ["atomic", "shared.array((6,)"]),
    ("in_place_on_a_grid", ["u_b[k_2_6, k_1_5] += ", "cuda.atomic.add(k_b, ("], ["atomic.add(u_b"]),
    # Elements that all threads read are summed in blocks, as numbers are.
    ("carried_in_strides", ["rate_b_0 +=", "x_b[i_", "tape_v_"], ["atomic", "local.array"]),
    ("stencil", ["tile_b = cuda.shared.array((6,)", "w_b_2 +=", "atomic.add(tile_b"], ["atomic.add(w_b"]),
    ("scattered", ["atomic.add(weight_b, ", "weight_b_2_sums"], ["atomic.add(x_b"]),
    # The number of turns is written in the kernel.
    ("stored_in_local_arrays", ["cuda.local.array((5,), np.float64)", "cuda.local.array((3,)"], ["this_thread"]),
    # A reduction is linear: nothing of it is computed again.
    ("block_sums", ["atomic.add(parts_b, "], [" parts = cuda.shared"]),
    # Each turn fills its tiles: nothing is logged.
    ("tiled_product", ["rows_b", "cuda.syncthreads()"], ["log", "for k"]),
    ("steps_in_a_tile", ["log_tile"], []),
    # All threads add to the element of the turn: warps add up first.
    ("all_pairs", ["warp_add_2(x_b, back_", "cuda.atomic.add(x_b, (i_"], []),
]


@pytest.mark.parametrize(("name", "there", "absent"), TEXTS, ids=[one[0] for one in TEXTS])
def test_text(name: str, there: list[str], absent: list[str]) -> None:
    text = derived(*examples(name))[0].text
    assert all(one in text for one in there), text
    assert not any(one in text for one in absent), text


def test_the_text_is_the_users() -> None:
    code = """
    import numpy as np, nbgrad as nb
    from tests.cuda_adjoint_kernels import block_sums

    total = nb.kernel(block_sums[2, 4])
    total(np.ones(7), np.zeros(1))
    print(total.vjp.source)
    """
    found = simulated(code)
    assert "from numba import cuda" in found and "@cuda.jit\ndef block_sums_vjp(x, out, x_b, out_b, tape_half_" in found
    assert "has a column for each thread" in found


# ----- What is not differentiated -----


@cuda.jit
def largest(x, out):
    cuda.atomic.max(out, 0, x[cuda.grid(1)])


@cuda.jit
def compared(x, out):
    cuda.atomic.compare_and_swap(out, 0, x[cuda.grid(1)])


@cuda.jit
def counted(x, out, count):
    k = cuda.atomic.add(count, 0, 1)
    out[k] = x[cuda.grid(1)]


@cuda.jit
def voted(x, out):
    out[0] = cuda.syncthreads_count(x[cuda.grid(1)] > 0.0)


@cuda.jit
def dynamic(x, out):
    tile = cuda.shared.array(0, float64)
    tile[cuda.threadIdx.x] = x[cuda.grid(1)]


@cuda.jit
def of_any_rank(x, out, n):
    out[0] = x[cuda.grid(n)]


@cuda.jit
def of_any_length(x, out, n):
    tile = cuda.shared.array(n, float64)
    tile[0] = x[0]


@cuda.jit
def large(x, out):
    tile = cuda.shared.array(5000, float64)
    tile[cuda.threadIdx.x] = x[cuda.grid(1)]
    cuda.syncthreads()
    out[cuda.grid(1)] = tile[0] * x[0]


@cuda.jit
def added_in_between(x, out):
    total = cuda.shared.array(1, float64)
    total[0] = 1.0
    for k in range(3):
        cuda.atomic.add(total, 0, x[k])
        cuda.syncthreads()
        out[k] = total[0] ** 2
        cuda.syncthreads()


@cuda.jit
def counted_while_running(x, out, count):
    i = cuda.grid(1)
    count[i] = 3
    v = x[i]
    for _ in range(count[i]):
        v = v * v
    out[i] = v


@cuda.jit
def until_small(x, out):
    i = cuda.grid(1)
    v = x[i]
    while v > 0.3:
        v = v * v
    out[i] = v


@cuda.jit
def of_rounded_length(x, out):
    i = cuda.grid(1)
    v = x[i]
    for _ in range(int(v * 3.0)):
        v = v * v
    out[i] = v


ONE = {"x": np.ones(4), "out": np.ones(4)}
REFUSED = [
    (largest, ONE, "largest\\(\\) \\(.*py:\\d+\\) uses cuda.atomic.max\\(\\): which thread has won"),
    (compared, ONE, "uses cuda.atomic.compare_and_swap\\(\\): which thread has won"),
    (counted, {**ONE, "count": np.zeros(1, int)}, "uses the old value that cuda.atomic.add\\(\\) gives"),
    (voted, ONE, "uses cuda.syncthreads_count, of which no derivative is known"),
    (dynamic, ONE, "uses dynamic shared memory"),
    (of_any_rank, {**ONE, "n": 1}, "calls cuda.grid\\(\\) with something else than the number 1, 2 or 3"),
    (of_any_length, {**ONE, "n": 1}, "whose shape is not made of numbers known beforehand"),
    (large, ONE, "needs 80032 bytes of shared memory in a block, of which there are 49152"),
    (added_in_between, ONE, "adds to `total` by atomic operations in a loop, and its derivative needs"),
    (until_small, ONE, "and floats decide how often it runs, which a device may round otherwise"),
    (of_rounded_length, ONE, "and floats decide how often it runs"),
    (counted_while_running, {**ONE, "count": np.zeros(4, int)}, "depends on `count`, which the kernel itself writes"),
]


@pytest.mark.parametrize(("kernel", "given", "message"), REFUSED, ids=[one[0].py_func.__name__ for one in REFUSED])
def test_refusals(kernel: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        found = derived(kernel, {k: np.asarray(v)[()] for k, v in given.items()}, ["x"], launch_for((1, 4), "f", []))
        assert found[0].counts is not None
        assert found[0].counts.derived


LAUNCHES = [
    ({}, "needs the launch of a kernel of cuda.jit: nb.kernel\\(f\\[blocks, threads\\]\\), or launch=, a function"),
    ({"launch": 128}, "must give the blocks and the threads in a block, such as \\(80, 128\\)"),
    ({"launch": (0, 4)}, "but gave \\(0, 4\\)"),
    ({"launch": lambda x, u, dt, n: (x.nothing, 4)}, "launch= of push\\(\\) has raised AttributeError"),
]


@pytest.mark.parametrize(("options", "message"), LAUNCHES)
def test_launches(options: dict[str, Any], message: str) -> None:
    row = ROWS["push"]
    with pytest.raises(ArgumentError, match=message):
        nb.kernel(row.kernel, **options)(*row.arguments)


def test_a_launch_is_for_kernels_of_cuda() -> None:
    def plain(x: Any, out: Any) -> None:
        out[0] = x[0]

    with pytest.raises(ArgumentError, match=r"launch= of nb\.kernel is for kernels of cuda\.jit"):
        nb.kernel(plain, launch=(1, 1))


def test_what_depends_on_the_order_of_threads_is_no_deterministic_result() -> None:
    code = """
    import numpy as np, nbgrad as nb
    from tests.cuda_adjoint_kernels import ROWS

    nb.cuda.deterministic(True)
    for name in ("carried_in_strides", "scattered"):
        kernel, launch, moving, arguments = ROWS[name]
        function = nb.kernel(kernel, launch=launch)
        try:
            nb.grad(lambda x: np.sum(function(x, *arguments[1:])))(arguments[0])
            print(name, "is the same each time")
        except nb.errors.ArgumentError as error:
            print(error)
    """
    found = simulated(code).splitlines()
    assert found[0] == "carried_in_strides is the same each time"
    assert "add to elements of `out` in an order that is not the same each time" in found[1]
