"""GPUs: what they cost the host (no GPU is needed), and gradients on one."""

import nbgrad as nb

from . import device_costs, device_libraries, device_tasks
from .measured import needed


class Compile:
    """A new fused kernel, from the plan to PTX and to machine code, with everything else warm."""

    params = (tuple(device_costs.SIZES), ("float32", "float64"))
    param_names = ("size", "dtype")
    timeout = 300
    unit = "s"

    def setup(self, size, dtype):
        self.kernels = device_costs.kernels(dtype, size)

    def track_ptx(self, size, dtype):
        return device_costs.seconds_to_compile(self.kernels, machine_code=False)

    def track_cubin(self, size, dtype):
        if not device_costs.has_linker():
            raise NotImplementedError("nvJitLink is not installed")
        return device_costs.seconds_to_compile(self.kernels)


class HostOfACall:
    """A whole program: what a call costs before a driver does anything."""

    params = (tuple(device_costs.PROGRAMS), (False, True))
    param_names = ("kernels", "out")

    def setup(self, kernels, out):
        self.context = device_costs.recorded()
        self.recorder = self.context.__enter__()
        self.call = device_costs.program(kernels, out)

    def teardown(self, kernels, out):
        self.context.__exit__(None, None, None)

    def time_call(self, kernels, out):
        self.call()


class OnADevice:
    """The tasks of devices.py, a tenth of the size."""

    params = (tuple(device_tasks.TASKS), ("nbgrad", "cupy", "jax", "torch"))
    param_names = ("task", "library")
    timeout = 300

    def setup(self, task, library):
        if not nb.cuda.is_available():
            raise NotImplementedError("no CUDA device")
        needed(library)
        if (library, task) in device_libraries.OMITTED:
            message = f"{library} has no {task}"
            raise NotImplementedError(message)
        work, self.library = device_tasks.TASKS[task], device_libraries.LIBRARIES[library]()
        self.call = device_libraries.prepare(self.library, work, work.arrays(10_000_000))
        self.library.finish(self.call())

    def time_call_and_wait(self, task, library):
        self.library.finish(self.call())


class CallOnADevice:
    """A program of small kernels on a device, not waited for."""

    params = HostOfACall.params
    param_names = HostOfACall.param_names
    number = 200
    warmup_time = 0

    def setup(self, kernels, out):
        if not nb.cuda.is_available():
            raise NotImplementedError("no CUDA device")
        self.call = device_costs.program(kernels, out)

    def teardown(self, kernels, out):
        nb.cuda.synchronize()

    def time_call(self, kernels, out):
        self.call()
