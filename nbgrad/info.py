"""The facts that a report of a problem needs: versions, CPU, threads, BLAS, CUDA and the cache.

In: nothing. Out: `info()`, pairs of a name and a text. Called by `python -m nbgrad info`. It compiles nothing, and it
imports no CUDA package: it only asks whether one is installed and whether the driver answers.
"""

from __future__ import annotations

import ctypes
import os
import platform
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from .compiler import cache
from .compiler.matrices import blas_provider
from .functions.analysis import fourier_routines
from .process import private_interfaces
from .runtime import threads

PACKAGES = ("numpy", "numba", "llvmlite", "scipy", "optree", "opt_einsum")
CUDA_PACKAGES = ("cuda-bindings", "numba-cuda", "cupy", "cupy-cuda12x", "cupy-cuda13x")
VECTOR_FEATURES = "sse4.2 avx avx2 fma f16c avx512f avx512vl avx512fp16 neon sve sve2".split()


def info() -> list[tuple[str, str]]:
    """The facts, in the order in which they are printed."""
    facts = [("nbgrad", installed("nbgrad") or "not installed as a package"), ("python", _python())]
    facts += [(name, _tested(name)) for name in PACKAGES]
    facts += [("cpu", _cpu()), ("cpu features", _features()), ("threads", _threads())]
    facts += [("blas of scipy", _blas("scipy")), ("blas of numpy", _blas("numpy"))]
    facts += [("blas of products", blas_provider.chosen_name()), ("fft", fourier_routines.chosen_name())]
    facts += [("cuda", _cuda()), ("target", f"CPU ({cache.cpu_name()})"), ("cache", _cache())]
    return facts


def installed(name: str) -> str | None:
    """The installed version of a distribution, or None."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _tested(name: str) -> str:
    """The installed version, and whether it is newer than any that nbgrad was tested with."""
    found = installed(name)
    if found is None or not private_interfaces.newer_than_tested(name, found):
        return found or "not installed"
    newest = ".".join(map(str, private_interfaces.NEWEST_TESTED[name]))
    return f"{found} (newer than {newest}, the newest that was tested)"


def _python() -> str:
    return f"{platform.python_version()} ({platform.python_implementation()}, {platform.system()} {platform.machine()})"


def _cpu() -> str:
    name = platform.processor()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            models = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
        name = models[0] if models else name
    except OSError:
        pass
    return f"{name or platform.machine()}, {os.cpu_count()} logical cores"


def _features() -> str:
    present = {feature[1:] for feature in cache.cpu_features().split(",") if feature.startswith("+")}
    known = [feature for feature in VECTOR_FEATURES if feature in present]
    return f"{' '.join(known) or 'no vector instructions known'} ({len(present)} in all)"


def _threads() -> str:
    library = threads.openmp()
    if library is None:
        return "1 (no OpenMP runtime found; install GCC's libgomp for more)"
    return f"{threads.available()} (OpenMP runtime {library._name})"


def _blas(package: str) -> str:
    """The BLAS that a package was built with."""
    if package == "scipy":
        import scipy

        configuration = scipy.show_config(mode="dicts")
    else:
        configuration = np.show_config(mode="dicts")
    found = (configuration or {}).get("Build Dependencies", {}).get("blas", {})
    return f"{found.get('name', 'unknown')} {found.get('version', '')}".strip()


def cuda_devices() -> int | None:
    """The number of devices that the CUDA driver reports; None without a driver, 0 if it cannot be used."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
        count = ctypes.c_int(0)
        failed = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    except (OSError, AttributeError):
        return None
    return 0 if failed else count.value


def _cuda() -> str:
    count = cuda_devices()
    driver = "no driver found" if count is None else f"driver found, {count} device{'s' if count != 1 else ''}"
    packages = [f"{name} {number}" for name in CUDA_PACKAGES if (number := installed(name)) is not None]
    return f"{driver}; {', '.join(packages) or 'no CUDA packages'}; nbgrad compiles for the CPU"


def _cache() -> str:
    folder = cache.folder()
    if folder is None:
        return "no folder that is writable and private to the user: everything is compiled in memory"
    entries, size = cache.usage()
    return f"{folder} ({entries} entries, {size / 2**20:.1f} MiB)"
