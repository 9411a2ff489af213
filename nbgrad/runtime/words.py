"""The language of native code: functions on words, written in Python and compiled by Numba for this process.

In: a function of int64 words. Out: its address. `load`, `store` and `invoke` become machine instructions; they cannot
run as Python. Offsets into CPython's and NumPy's objects are those that object_layout.py measures: calls of its
functions become numbers when the code is compiled. Called by native.py, native_tensors.py, native_steps.py and
blocks.py.
"""

from __future__ import annotations

import hashlib
import re
import sys
from functools import cache, partial
from pathlib import Path
from typing import Any

from ..compiler import cpu, shipped_objects
from ..compiler.scalars import kernel_module, lower
from ..compiler.shipped import function_name
from ..process import object_layout

# ----- Instructions -----

NATIVE_ONLY = "This is a machine instruction: it runs only in compiled code."


def load(address: int) -> int:
    """The int64 at an address."""
    raise TypeError(NATIVE_ONLY)


def load32(address: int) -> int:
    """The int32 at an address."""
    raise TypeError(NATIVE_ONLY)


def store(address: int, value: int) -> None:
    """Write an int64."""
    raise TypeError(NATIVE_ONLY)


def invoke(function: int, a: int, b: int, c: int, d: int, e: int, f: int, g: int, h: int) -> int:
    """Call a C function with up to eight word-sized arguments; those it does not take are ignored."""
    raise TypeError(NATIVE_ONLY)


# ----- Compiling -----


def register() -> None:
    """Give the instructions their meaning to Numba."""
    from llvmlite import ir
    from llvmlite.binding import add_symbol
    from numba import types
    from numba.core.cgutils import get_or_insert_function
    from numba.extending import intrinsic

    word = ir.IntType(64)

    def pointer(builder: Any, address: Any, kind: Any) -> Any:
        return builder.inttoptr(address, ir.PointerType(kind))

    @intrinsic
    def native_load(typing: Any, address: Any) -> Any:
        return types.int64(types.int64), lambda c, b, s, a: b.load(pointer(b, a[0], word), align=8)

    @intrinsic
    def native_load32(typing: Any, address: Any) -> Any:
        half = ir.IntType(32)
        return types.int64(types.int64), lambda c, b, s, a: b.sext(b.load(pointer(b, a[0], half), align=4), word)

    @intrinsic
    def native_store(typing: Any, address: Any, value: Any) -> Any:
        def generate(c: Any, b: Any, s: Any, a: Any) -> Any:
            b.store(a[1], pointer(b, a[0], word), align=8)
            return c.get_dummy_value()

        return types.none(types.int64, types.int64), generate

    @intrinsic
    def native_invoke(
        typing: Any, function: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any
    ) -> Any:
        kind = ir.FunctionType(word, [word] * 8)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.call(pointer(builder, arguments[0], kind), arguments[1:])

        return types.int64(*[types.int64] * 9), generate

    def native_offset(name: str) -> Any:
        # Numba links what it compiles, though only the IR is used: LLVM ends the process if a name has no address.
        add_symbol(name, 1)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            function = get_or_insert_function(builder.module, ir.FunctionType(word, []), name)
            function.attributes.add("readnone")
            function.attributes.add("nounwind")
            return builder.call(function, [])

        return intrinsic(lambda typing: (types.int64(), generate))

    meanings = {load: native_load, load32: native_load32, store: native_store, invoke: native_invoke}
    for offset in object_layout.OFFSETS:
        meanings[offset] = native_offset(object_layout.PREFIX + offset.__name__)
    kernel_module("intrinsics").INTRINSICS.update(meanings)


def native_ir(function: Any, arguments: int) -> str:
    """IR with an external function `name` on words."""
    text = lower(function, ["int64"] * arguments, "int64", "native", register)
    text = re.sub(rf"^declare i64 @{re.escape(object_layout.PREFIX)}.*\n", "", text, flags=re.MULTILINE)
    text += object_layout.definitions()
    parameters = ", ".join(f"i64 %a{k}" for k in range(arguments))
    outside = f"define i64 @exported({parameters}) {{\n  %r = call i64 @native({parameters})\n  ret i64 %r\n}}\n"
    return text + outside


def native_address(function: Any, arguments: int) -> int:
    """The address of a native function of so many words."""
    layout = object_layout.measured()
    key = f"native {function.__name__} {_source_digest(function.__module__)} {layout}"

    def made() -> tuple[str, bytes] | None:
        section = function_name(function, ["int64"] * arguments, "int64")
        return shipped_objects.find(section, function.__module__, layout)

    ir = partial(native_ir, function, arguments)
    return cpu.function_address(cpu.Function(key, "exported", ir, finished=True, made=made))


@cache
def _source_digest(module: str) -> str:
    """A digest of the sources of a module's native functions: its file, and this one."""
    total = hashlib.sha256()
    for name in dict.fromkeys([__name__, module]):
        file = sys.modules[name].__file__
        assert file is not None
        total.update(Path(file).read_bytes())
    return total.hexdigest()
