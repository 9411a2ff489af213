"""The CPU target: IR text to machine code in memory, through the disk cache.

In: IR text (or a function that makes it) and the name of its entry function. Out: the entry's address. Called by
emit.py for fused kernels and by the runtime for its own native code. The object code is relocatable, so a second
process maps it in without compiling. Loaded code lives as long as the process.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import llvmlite.binding as llvm

from . import cache
from .half import CONVERSIONS
from .locks import ForkSafeLock

_lock = ForkSafeLock()
_machine: llvm.TargetMachine | None = None
_engines: list[llvm.ExecutionEngine] = []
_loaded: dict[str, int] = {}


def _target_machine() -> llvm.TargetMachine:
    """The machine that code is compiled for."""
    global _machine
    if _machine is None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        _machine = _new_machine()
    return _machine


def _new_machine() -> llvm.TargetMachine:
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=cache.cpu_name(), features=cache.cpu_features(), opt=3, reloc="pic", codemodel="small"
    )


def _load_object(data: bytes, symbol: str) -> int:
    """Link object code into the process; the address of `symbol`."""
    _target_machine()
    # An engine owns its module and its machine. One per object, because all objects use the same names.
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _new_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(data))
    engine.finalize_object()
    address = engine.get_function_address(symbol)
    _engines.append(engine)
    return address


def compile_ir(text: str) -> tuple[bytes, str]:
    """Optimise IR text; returns object code and, for reading, the optimised module's text."""
    machine = _target_machine()
    module = llvm.parse_assembly(text + CONVERSIONS if " half " in text else text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = True
    options.loop_interleaving = True
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    if ".rare" in text:
        # Inline the vector variants of rare calls (scalars.py) that LLVM chose, and drop the others.
        kept = re.sub(r"^@llvm.compiler.used = .*$", "", str(module), flags=re.M)
        module = llvm.parse_assembly(kept)
        late = llvm.create_new_module_pass_manager()
        late.add_always_inliner_pass()
        late.add_global_dead_code_eliminate_pass()
        late.run(module, builder)
    return machine.emit_object(module), str(module)


def function_address(key: str, symbol: str, make_ir: Callable[[], str]) -> int:
    """The address of a native function: from this process, from the disk, or compiled now.

    Parameters
    ----------
    key : str
        What the function is, completely: equal keys mean equal functions.
    symbol : str
        Its name in the IR.
    make_ir : callable
        Makes the IR text, if it is needed.
    """
    address = _loaded.get(key)
    if address is not None:
        return address
    with _lock.held():
        if key in _loaded:
            return _loaded[key]
        name = cache.digest(key)
        data = cache.load("object", name)
        if data is None:
            data, _ = compile_ir(make_ir())
            cache.counters["compiled"] += 1
            cache.store("object", name, data)
        else:
            cache.counters["loaded"] += 1
        address = _load_object(data, symbol)
        _loaded[key] = address
    return address
