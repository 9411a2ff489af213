"""The libraries that are measured on GPUs: each as in libraries.py, with its arrays on the device.

In: the name of a library. Out: a `Library` whose `prepare_on_device` makes of a task a call without arguments that only
puts work on the device, and whose `finish` waits for it with the library's own means. Called by device_worker.py in a
process of each library's own. Products of float32 are float32 everywhere: TF32 is off. Where there is no GPU, JAX and
PyTorch take the CPU, which serves to try the command.
"""

from typing import Any

import numpy as np

from .device_tasks import DeviceTask
from .libraries import Jax, Library, NbGrad, Torch, flat

OMITTED = {("cupy", "mlp"), ("cupy", "rows"), ("torch-compiled", "sort"), ("jax", "sort")}
OMITTED |= {(library, task) for library in ("cupy", "torch-compiled") for task in ("heat", "oscillators")}
"""What a library does not do: CuPy does not differentiate; compilers have no sort of their own, and PyTorch's takes
minutes for the turns of a loop."""


class NbGradOnDevice(NbGrad):
    """nbgrad: plain NumPy under `nb.jit`, Tensors on the device."""

    def array(self, x):
        return self.nb.Tensor(x, device="cuda")

    def ndarray(self, x):
        return x.asnumpy()

    def finish(self, result):
        self.nb.cuda.synchronize("cuda")

    def sorted(self, x):
        return np.sort(x)

    def added_at(self, target, places, updates):
        return self.nb.grad(lambda target: np.sum(target[places] * updates))(target)

    def compiled(self, task: DeviceTask, function):
        return self.nb.jit(function if task.wrt is None else self.nb.grad(function, task.wrt))


class Copy(NbGradOnDevice):
    """The driver's own copy of as many bytes as a task reads and writes."""

    def prepare_on_device(self, task: DeviceTask, arrays):
        from nbgrad.device.memory.chosen_driver import driver

        moved = sum(a.nbytes for a in arrays)
        moved += sum(arrays[k].nbytes for k in task.wrt or ())
        words = max(1, moved // 8)
        source, target = [self.nb.Tensor(np.zeros(words, np.float32), device="cuda") for _ in range(2)]
        pointers = [t.__cuda_array_interface__["data"][0] for t in (target, source)]
        self.kept = source, target
        copy, nbytes = driver().copy, 4 * words
        return lambda: copy(*pointers, nbytes, 0)


class JaxOnDevice(Jax):
    """JAX under `jax.jit`."""

    def __init__(self):
        super().__init__()
        self.jax.config.update("jax_enable_x64", False)
        self.jax.config.update("jax_default_matmul_precision", "highest")
        self.sorted = self.jax.numpy.sort

    def finish(self, result):
        self.jax.block_until_ready(result)

    def added_at(self, target, places, updates):
        return target.at[places].add(updates)

    def compiled(self, task, function):
        return self.jax.jit(function if task.wrt is None else self.jax.grad(function, task.wrt))


class TorchOnDevice(Torch):
    """PyTorch, eager."""

    def __init__(self):
        super().__init__()
        torch = self.torch
        self.place = "cuda" if torch.cuda.is_available() else "cpu"
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        self.array = lambda x: torch.from_numpy(x).to(self.place)

    def ndarray(self, x):
        return x.detach().cpu().numpy()

    def finish(self, result):
        if self.place == "cuda":
            self.torch.cuda.synchronize()

    def mean(self, x, axis=None, keepdims=False):
        return self.torch.mean(x) if axis is None else self.torch.mean(x, axis, keepdim=keepdims)

    def pick(self, rows, columns):
        return rows.gather(1, columns[:, None])[:, 0]

    def sorted(self, x):
        return self.torch.sort(x)[0]

    def added_at(self, target, places, updates):
        return target.index_add(0, places, updates)

    def compiled(self, task, function):
        if task.wrt is None:
            return function

        def gradients(*arrays):
            arrays = [x.detach().requires_grad_() if k in task.wrt else x for k, x in enumerate(arrays)]
            return self.torch.autograd.grad(function(*arrays), [arrays[k] for k in task.wrt])

        return gradients


class TorchCompiled(TorchOnDevice):
    """PyTorch, the whole gradient under `torch.compile`."""

    def compiled(self, task, function):
        torch = self.torch
        return torch.compile(function if task.wrt is None else torch.func.grad(function, task.wrt))


class CuPy(Library):
    """CuPy, expressions by hand: each operation is a kernel."""

    def __init__(self, module: Any = None):
        if module is None:
            import cupy
            import cupyx.scipy.special

            module, self.erf = cupy, cupyx.scipy.special.erf
        super().__init__(module)
        self.module, self.sorted, self.array = module, module.sort, module.asarray

    def ndarray(self, x):
        return self.module.asnumpy(x)

    def finish(self, result):
        self.module.cuda.get_current_stream().synchronize()

    def added_at(self, target, places, updates):
        target = target.copy()
        self.module.add.at(target, places, updates)
        return target

    def compiled(self, task, function):
        return lambda *arrays: task.by_hand(self, *arrays)


LIBRARIES = {
    "nbgrad": NbGradOnDevice,
    "copy": Copy,
    "cupy": CuPy,
    "jax": JaxOnDevice,
    "torch": TorchOnDevice,
    "torch-compiled": TorchCompiled,
}
DISTRIBUTIONS = {"copy": ("nbgrad",), "torch-compiled": ("torch",), "cupy": ("cupy-cuda13x", "cupy-cuda12x", "cupy")}
"""Under which names libraries are installed, where it is not their own."""


def prepare(library: Any, task: DeviceTask, arrays: Any) -> Any:
    """A call without arguments that puts a task's work on the device."""
    if hasattr(library, "prepare_on_device"):
        return library.prepare_on_device(task, arrays)
    inputs = [library.array(x) for x in arrays]
    function = library.compiled(task, lambda *a: task.function(library, *a))
    return lambda: function(*inputs)


def samples(library: Any, result: Any, most: int = 100_000) -> list[np.ndarray]:
    """Some elements of each array of a result, as float64."""
    found = []
    for x in flat(result):
        x = library.ndarray(x).reshape(-1)
        found.append(np.asarray(x[:: max(1, x.size // most)], np.float64))
    return found
