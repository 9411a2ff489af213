"""The CPU target: IR text to machine code in memory, through the disk cache.

In: functions, each with a key and a way to make its IR text. Out: a `Code` of each, which knows the entry's address.
Called by the runtime for fused kernels, and for its own native code, which lives as long as the process. The object
code is relocatable, so a second process maps it in without compiling. Code that nothing holds any more is unloaded,
except code that was asked for last (`kept_kernels` of config.py). Functions that are asked for together are compiled
side by side, by as many threads as programs may use.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from itertools import count
from typing import NamedTuple
from weakref import WeakValueDictionary

import llvmlite.binding as llvm

from .. import config
from ..errors import ArgumentError
from ..process.locks import building
from ..process.side_by_side import SideBySide
from . import cache, called_scalars, shipped_objects
from .passes import emitted, parsed, run_passes
from .scalars import RARE
from .texts.float_parts import inlined_late
from .texts.text_passes import FOR_CPU, HINTED, Target
from .texts.text_passes import run as run_text_passes

_linker: llvm.LLJIT | None = None
_numbers = count()
_loaded: WeakValueDictionary[str, Code] = WeakValueDictionary()
_recent: dict[str, Code] = {}
"""The code that was asked for last, the latest at the end: it stays loaded even if nothing else holds it."""
_permanent: dict[str, Code] = {}
_dropped: list[llvm.ResourceTracker] = []
"""Code to unload as soon as no thread builds."""


class Code:
    """A native function. A caller keeps this object as long as it may call it; then the machine code is unloaded."""

    __slots__ = ("__weakref__", "_tracker", "address")

    def __init__(self, tracker: llvm.ResourceTracker, address: int) -> None:
        self._tracker = tracker
        self.address = address

    def __del__(self) -> None:
        if sys.is_finalizing():
            return
        # Python may find time for this anywhere, also in a thread that another one, which builds, waits for.
        _dropped.append(self._tracker)
        taken = building.acquire(0)
        if taken is not None:
            try:
                _unload_dropped()
            finally:
                taken.release()


def _unload_dropped() -> None:
    """Unload code that nothing holds; called with the lock."""
    while _dropped:
        _dropped.pop().close()


class _Machines(threading.local):
    """The machines of a thread: LLVM changes a machine while it makes code for it."""

    def __init__(self) -> None:
        self.by_level: dict[int, llvm.TargetMachine] = {}


_machines = _Machines()


def _target_machine(quick: bool = False) -> llvm.TargetMachine:
    """This thread's machine that code is compiled for; if `quick`, it selects instructions one by one."""
    level = 0 if quick else 3
    found = _machines.by_level.get(level)
    if found is None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        found = _machines.by_level[level] = _new_machine(level)
    return found


def _new_machine(level: int = 3) -> llvm.TargetMachine:
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=cache.cpu_name(), features=cache.cpu_features(), opt=level, reloc="pic", codemodel="small"
    )


@functools.cache
def check_cpu_name(name: str | None) -> None:
    """Refuse a CPU for which LLVM cannot make code for this machine's architecture.

    LLVM says so by ending the process, so that another one is asked: in a few tenths of a second, and only where
    NBGRAD_CPU_NAME is set and something is compiled.

    Raises
    ------
    ArgumentError
        If LLVM does not know the name, or it is a CPU of another architecture.
    """
    if not name:
        return
    import subprocess

    packages = os.path.dirname(os.path.dirname(llvm.__file__))
    command = [sys.executable, "-I", "-c", TRIAL, os.path.dirname(packages), name]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0 or "recognized" in done.stderr:
        machine = llvm.get_default_triple().partition("-")[0]
        message = (
            f"NBGRAD_CPU_NAME is {name!r}, but LLVM knows no such CPU of the architecture {machine}. Leave it unset to "
            f"compile for this machine, {llvm.get_host_cpu_name()!r}."
        )
        raise ArgumentError(message)


TRIAL = """
import sys
sys.path.insert(0, sys.argv[1])
import llvmlite.binding as llvm
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
machine = llvm.Target.from_default_triple().create_target_machine(cpu=sys.argv[2])
machine.emit_object(llvm.parse_assembly("define void @f() { ret void }"))
"""


def _load_object(data: bytes, symbol: str, called: Mapping[str, int]) -> Code:
    """Link object code into the process; `symbol` is that of its entry, which no other object has, and `called` has the
    addresses of the scalar kernels that it calls.

    JITLink lays the parts of an object side by side. LLVM's older linker puts constants wherever there is room, which
    code cannot reach once the process has mapped many gigabytes of arrays in between.
    """
    global _linker
    if _linker is None:
        # Any machine of this architecture: it links, and code that came with the package needs no name of a CPU.
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        machine = llvm.Target.from_default_triple().create_target_machine(reloc="pic", codemodel="small")
        _linker = llvm.create_lljit_compiler(machine, use_jit_link=True)
    object_code = llvm.JITLibraryBuilder().add_object_img(data).add_current_process().export_symbol(symbol)
    for name, address in called.items():
        object_code.import_symbol(name, address)
    # The library's name has no meaning, but must be new: the same code may be loaded again.
    loaded = object_code.link(_linker, f"{symbol} {next(_numbers)}")
    return Code(loaded, loaded[symbol])


def compile_ir(text: str, finished: bool = False, quick: bool = False) -> bytes:
    """Optimise IR text and give its object code.

    If `finished`, the IR was optimised before and is only inlined. If `quick`, nothing is optimised.
    """
    return object_code(text, _target_machine(quick), cache.cpu_features(), finished, quick)


def object_code(
    text: str, machine: llvm.TargetMachine, features: str, finished: bool = False, quick: bool = False
) -> bytes:
    """Optimise IR text for any machine and give its object code; the machine was made with `features`."""
    return emitted(optimized(text, machine, features, finished, quick), machine)


def optimized(
    text: str, machine: llvm.TargetMachine, features: str, finished: bool = False, quick: bool = False
) -> llvm.ModuleRef:
    """The module that becomes the object code."""
    text = run_text_passes(FOR_CPU, text, Target(machine, features, quick))
    hinted = HINTED in text
    module = parsed(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    # In a loop of much arithmetic there is little left to find for the costlier passes.
    options = llvm.create_pipeline_tuning_options(speed_level=0 if quick else 1 if hinted else 2)
    options.loop_vectorization = not quick
    options.loop_interleaving = not quick
    options.slp_vectorization = False
    if not finished:
        builder = llvm.create_pass_builder(machine, options)
        run_passes(builder.getModulePassManager(), module, builder)
    rare = [function for function in module.functions if RARE in function.name and not function.is_declaration]
    if inlined_late(module) or rare or finished:
        # Inline the vector variants of rare calls (scalars.py) that LLVM chose, and drop the others.
        for function in rare:
            function.linkage = "internal"
        late = llvm.create_new_module_pass_manager()
        late.add_always_inliner_pass()
        late.add_global_dead_code_eliminate_pass()
        run_passes(late, module, llvm.create_pass_builder(machine, options))
    return module


class Function(NamedTuple):
    """A native function, before there is code of it.

    Parameters
    ----------
    key : str
        Its complete description: equal keys mean equal functions.
    symbol : str
        Its name in the IR, where no local name begins with it.
    make_ir : callable
        Makes the IR text, if it is needed.
    finished : bool
        Whether the IR was optimised before and has no loops to vectorise.
    made : callable, optional
        Gives the symbol and the object code where they came with the package, or None.
    """

    key: str
    symbol: str
    make_ir: Callable[[], str]
    finished: bool = False
    made: Callable[[], tuple[str, bytes] | None] = lambda: None


def function_codes(
    functions: Sequence[Function], threads: int = 1, tell: Callable[[int, int], object] | None = None
) -> list[Code]:
    """Native functions: from this process, from the disk, or compiled now.

    Parameters
    ----------
    functions : sequence of Function
    threads : int
        How many threads may compile.
    tell : callable, optional
        Called before each function that must be compiled is waited for, with its number and how many these are.

    Returns
    -------
    list of Code
        Each to be held as long as its address is used.
    """
    kinds = [_kind(function.key, function.finished) for function in functions]
    with building.held():
        found = {key: code for key, _ in kinds if (code := _loaded.get(key)) is not None}
        missing = {
            key: (function, quick) for function, (key, quick) in zip(functions, kinds, strict=True) if key not in found
        }
        if missing:
            _unload_dropped()
            # Threads must not go on after an interrupt, when the lock is open.
            with closing(_objects(missing, threads, tell)) as objects:
                made = [(*one, called_scalars.names_in(one[2])) for one in objects]
            addresses = _called({name for *_, names in made for name in names}, threads)
            for key, symbol, data, names in made:
                found[key] = _loaded[key] = _load_object(data, symbol, {name: addresses[name] for name in names})
        for key, code in found.items():
            _recent.pop(key, None)
            _recent[key] = code
        while len(_recent) > config.kept_kernels():
            _recent.pop(next(iter(_recent)))
    return [found[key] for key, _ in kinds]


def function_code(function: Function) -> Code:
    """`function_codes` of one."""
    return function_codes([function])[0]


def _objects(
    missing: Mapping[str, tuple[Function, bool]], threads: int, tell: Callable[[int, int], object] | None
) -> Generator[tuple[str, str, bytes], None, None]:
    """The key, the symbol and the object code of each function, from the disk or compiled now; with the lock."""
    new: list[tuple[str, str, str, Callable[[], bytes]]] = []
    with SideBySide(min(threads, len(missing)), "nbgrad compiles") as pool:
        for key, (function, quick) in missing.items():
            made = function.made()
            if made is not None:
                yield key, *made
                continue
            name = cache.digest(key)
            symbol = f"{function.symbol}.{name}"
            data = cache.load("object", name)
            if data is not None:
                cache.counters["loaded"] += 1
                yield key, symbol, data
                continue
            check_cpu_name(os.environ.get("NBGRAD_CPU_NAME"))
            text = function.make_ir().replace(f"@{function.symbol}(", f"@{symbol}(")
            new.append((key, name, symbol, pool.begin(compile_ir, text, function.finished, quick)))
        for number, (key, name, symbol, compiled) in enumerate(new, 1):
            if tell is not None:
                tell(number, len(new))
            data = compiled()
            cache.counters["compiled"] += 1
            cache.store("object", name, data)
            yield key, symbol, data


def _called(names: set[str], threads: int) -> dict[str, int]:
    """The addresses of scalar kernels that loops call, by their names; they stay loaded. Called with the lock."""
    kept = {name: _kind(name, False)[0] for name in sorted(names)}
    new = {name: _scalar(name) for name, key in kept.items() if key not in _permanent}
    if new:
        for name, code in zip(new, function_codes(list(new.values()), threads), strict=True):
            _permanent[kept[name]] = code
    return {name: _permanent[key].address for name, key in kept.items()}


def _scalar(name: str) -> Function:
    """A scalar kernel that loops call."""
    symbol, text = called_scalars.SYMBOL, functools.partial(called_scalars.function_text, name)

    def made() -> tuple[str, bytes] | None:
        return shipped_objects.find_scalar(symbol, text(), shipped_objects.cpu_features())

    return Function(name, symbol, text, made=made)


def function_address(function: Function) -> int:
    """The address of a native function that stays loaded."""
    kept, _ = _kind(function.key, function.finished)
    found = _permanent.get(kept)
    if found is None:
        with building.held():
            found = _permanent[kept] = function_code(function)
            _recent.pop(kept, None)
    return found.address


def _kind(key: str, finished: bool) -> tuple[str, bool]:
    """The key of a function as it is compiled now, and whether that is without LLVM's optimisations.

    IR that has them already is always compiled well.
    """
    quick = not finished and not config.optimize()
    return (f"quick {key}" if quick else key), quick
