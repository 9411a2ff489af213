"""LLVM's work on one module: it is read, changed by passes, and becomes object code.

In: IR text; a pass manager, a module and a builder that was made for this run; a machine. Out: a module; its object
code. Called wherever code is compiled for use: by cpu.py and nbgrad/device/kernels/ptx.py.

Each module has a context of its own, which goes with it: what LLVM keeps of types and names in the context of the
process stays for ever. Modules that share nothing can be compiled by several threads at once, if each has a machine of
its own. llvmlite holds one lock in all calls of LLVM; the two that take long are made without it.
"""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import NewPassManager


class _OwnModule(llvm.ModuleRef):
    """A module that takes its context with it. Python's collector finalizes the objects of a cycle in any order, and a
    module must not outlive its context."""

    context_at: Any
    """LLVM's pointer to the context, whatever has become of llvmlite's object."""

    def _dispose(self) -> None:
        super()._dispose()
        llvm.ffi.lib.LLVMPY_ContextDispose(self.context_at)


def parsed(text: str) -> llvm.ModuleRef:
    """The module of IR text, in a new context.

    Raises
    ------
    RuntimeError
        With LLVM's words, if the text is no IR.
    """
    context = llvm.create_context()
    at, context._owned = context._ptr, True
    try:
        module = llvm.parse_assembly(text, context)
    except RuntimeError:
        context._owned = False
        raise
    vars(module)["context_at"] = at
    module.__class__ = _OwnModule
    return module


def run_passes(passes: llvm.ModulePassManager, module: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    """Run passes on a module, once for each builder, and free them, without the objects that llvmlite leaves behind."""
    _unlocked("LLVMPY_RunNewModulePassManager")(passes, module, builder)
    if type(passes)._dispose is llvm.ffi.ObjectRef._dispose:
        # llvmlite's order of base classes hides the method that frees them: 30 to 100 kB for each module.
        NewPassManager._dispose(passes)
        passes.detach()
    passes.close()


def emitted(module: llvm.ModuleRef, machine: llvm.TargetMachine, text: bool = False) -> bytes:
    """The object code of a module, or its assembly as `text`.

    Raises
    ------
    RuntimeError
        With LLVM's words, if it cannot be made.
    """
    with llvm.ffi.OutputString() as problem:
        buffer = _unlocked("LLVMPY_TargetMachineEmitToMemory")(machine, module, int(not text), problem)
        if not buffer:
            raise RuntimeError(str(problem))
    library: Any = llvm.ffi.lib
    try:
        return ctypes.string_at(library.LLVMPY_GetBufferStart(buffer), library.LLVMPY_GetBufferSize(buffer))
    finally:
        library.LLVMPY_DisposeMemoryBuffer(buffer)


def _unlocked(name: str) -> Any:
    """A function of LLVM without llvmlite's lock."""
    function = getattr(llvm.ffi.lib, name)
    return getattr(function, "_cfn", function)
