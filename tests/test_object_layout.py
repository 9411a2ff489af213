"""Where native code finds things in objects: measured, the same as CPython and NumPy say, and refused if not found."""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.compiler.scalars import kernel_module
from nbgrad.process import object_layout
from nbgrad.runtime import native, words


@pytest.fixture(autouse=True)
def measured_anew() -> Iterator[None]:
    object_layout.measured.cache_clear()
    yield
    object_layout.measured.cache_clear()


def at(thing: object, offset: int, kind: Any) -> Any:
    return kind.from_address(id(thing) + offset).value


def test_what_lies_there() -> None:
    """Objects that the measurement has not seen."""
    assert at("text", object_layout.object_type(), ctypes.c_void_p) == id(str)
    items = tuple(object() for _ in range(7))
    for number, item in enumerate(items):
        assert at(items, object_layout.tuple_items() + 8 * number, ctypes.c_void_p) == id(item)
    for array in (np.arange(24.0).reshape(2, 3, 4)[:, ::2], np.zeros(0, np.int8), np.array(1j)):
        assert at(array, object_layout.array_data(), ctypes.c_void_p) == array.ctypes.data
        assert at(array, object_layout.array_rank(), ctypes.c_int32) == array.ndim
        assert at(array, object_layout.array_dtype(), ctypes.c_void_p) == id(array.dtype)
        assert at(array, object_layout.array_flags(), ctypes.c_int32) == array.flags.num
        extents = at(array, object_layout.array_extents(), ctypes.c_void_p)
        assert array.ndim == 0 or list((ctypes.c_int64 * array.ndim).from_address(extents)) == list(array.shape)
    own, view = np.ones(3), np.ones(3)[:]
    assert at(own, object_layout.array_handler(), ctypes.c_void_p)
    assert not at(view, object_layout.array_handler(), ctypes.c_void_p)


def test_tuples_are_what_cpython_says() -> None:
    """Since 3.14 a tuple keeps its hash, in front of its items."""
    assert object_layout.tuple_items() == (32 if sys.version_info >= (3, 14) else 24)


def doctored(monkeypatch: pytest.MonkeyPatch, kind: type, change: Any) -> None:
    """Let objects of a type seem to lie otherwise in memory."""
    memory = object_layout.memory

    def read(thing: object, size: int) -> bytes:
        data = memory(thing, size)
        return change(data) if isinstance(thing, kind) else data

    monkeypatch.setattr(object_layout, "memory", read)


@pytest.mark.parametrize("kind", object_layout.SCALARS)
def test_values_of_scalars(kind: type) -> None:
    """A number that the measurement has not seen."""
    number = kind(1 if kind is np.bool_ else 99)
    value = np.asarray(number)
    assert ctypes.string_at(id(number) + object_layout.scalar_values()[kind], value.nbytes) == value.tobytes()


def test_scalars_whose_value_is_not_found_are_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls with them are right, though slower."""
    object_layout.scalar_values.cache_clear()
    try:
        doctored(monkeypatch, float, lambda data: bytes(len(data)))
        assert float not in object_layout.scalar_values()
        double = nb.jit(lambda x: x * 2.0)
        assert [double(1.5), double(2.5), double.compiled_signatures] == [3.0, 5.0, 1]
    finally:
        object_layout.scalar_values.cache_clear()


@pytest.mark.parametrize("kind", [tuple, np.ndarray])
def test_other_layouts_are_measured(kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """A header that is two words longer."""
    before = object_layout.measured()
    object_layout.measured.cache_clear()
    doctored(monkeypatch, kind, lambda data: data[:16] + b"\1" * 16 + data[16:])
    prefix = "array" if kind is np.ndarray else kind.__name__
    moved = {name: at + 16 if name.startswith(prefix) else at for name, at in before.items()}
    assert object_layout.measured() == moved


@pytest.mark.parametrize(
    ("kind", "missing", "change"),
    [
        (tuple, "the items of tuples", lambda data: data[::-1]),
        (tuple, "the items of tuples", lambda data: data[:-16] + bytes(8) + data[-16:-8]),
        (tuple, "the items of tuples", lambda data: data + data),
        (object_layout._Plain, "types", lambda data: bytes(len(data))),
        (np.ndarray, "the data of arrays", lambda data: data[:16] + bytes(8) + data[24:]),
        (np.ndarray, "the flags of arrays", lambda data: data[:64] + bytes(4) + data[68:]),
        (np.ndarray, "the extents of arrays", lambda data: data[:32] + data[40:48] + data[32:40] + data[48:]),
    ],
)
def test_unknown_layouts_are_refused(kind: type, missing: str, change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    doctored(monkeypatch, kind, change)
    version = re.escape(".".join(map(str, sys.version_info[:3])))
    with pytest.raises(ImportError, match=rf"^nbgrad cannot run on cpython {version}.*{missing} in no place"):
        object_layout.check()


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("abiflags", "t", "no global interpreter lock"),
        ("_is_gil_enabled", lambda: False, "no global interpreter lock"),
        ("implementation", type("Other", (), {"name": "pypy"}), "another implementation"),
    ],
)
def test_other_interpreters_are_refused(name: str, value: Any, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, name, value, raising=False)
    with pytest.raises(ImportError, match=rf"{reason}.*\. Use CPython 3\.10 to 3\.15"):
        object_layout.check()


def test_native_code_has_the_measured_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The IR that is shipped has names in their places, and every name is defined."""
    monkeypatch.setattr(object_layout, "measured", lambda: {name: 8 * k for k, name in enumerate(names)})
    names = [function.__name__ for function in object_layout.OFFSETS]
    text = words.native_ir(native.entry, 3)
    used = set(re.findall(rf"@{object_layout.PREFIX}(\w+)\(", text))
    assert used == set(names)
    assert not re.search(rf"^declare .*{object_layout.PREFIX}", text, re.MULTILINE)
    for number, name in enumerate(names):
        assert f"i64 @{object_layout.PREFIX}{name}() alwaysinline {{ ret i64 {8 * number} }}" in text


def test_no_other_offset_is_in_the_sources() -> None:
    """Objects are reached through names of their own in the native functions: none has a number added to it."""
    from pathlib import Path

    for module in ("native.py", "native_tensors.py", "native_steps.py"):
        text = (Path(str(native.__file__)).parent / module).read_text(encoding="utf-8")
        found = re.findall(r"\b(?:argument|array|made|pair|packed|self|node)\b\)* \+ \d+", text)
        assert not found, module


def test_offsets_are_instructions() -> None:
    words.register()
    known = kernel_module("intrinsics").INTRINSICS
    assert set(object_layout.OFFSETS) <= set(known)


def test_results_of_every_kind_of_object() -> None:
    """Floats, arrays, Tensors, tuples and Parameters go through native code and come out as they should."""
    compiled = nb.jit(lambda x, y: (x * y, (y + 1.0, x)))
    weight = nb.Parameter(np.ones(3), name="w")

    @nb.jit
    def updated(x: nb.Tensor) -> tuple[nb.Tensor, nb.Tensor]:
        weight.set_data(weight * x)
        return weight.sum(), x

    for k in range(4):
        product, (above, same) = compiled(float(k), np.arange(3.0))
        np.testing.assert_array_equal(product, k * np.arange(3.0))
        np.testing.assert_array_equal(above, [1.0, 2.0, 3.0])
        assert same == k
        total, _ = updated(nb.Tensor(np.full(3, 2.0)))
        assert float(total) == 3 * 2.0 ** (k + 1)
    np.testing.assert_array_equal(weight.asnumpy(), np.full(3, 16.0))
