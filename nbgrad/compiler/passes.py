"""LLVM's passes over a module, without the objects that llvmlite leaves behind.

In: a pass manager, a module and a builder that was made for this run. Out: the module is changed. Called wherever code
is compiled for use: by cpu.py and nbgrad/device/kernels/ptx.py.
"""

from __future__ import annotations

import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import NewPassManager


def run_passes(passes: llvm.ModulePassManager, module: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    """Run passes on a module, once for each builder, and free them."""
    passes.run(module, builder)
    if type(passes)._dispose is llvm.ffi.ObjectRef._dispose:
        # llvmlite's order of base classes hides the method that frees them: 30 to 100 kB for each module.
        NewPassManager._dispose(passes)
        passes.detach()
    passes.close()
