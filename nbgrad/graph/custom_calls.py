"""Users' own array kernels inside graphs: one call of one, as a `host` node, and how it runs on the CPU.

In: a `Kernel` (a function that gets arrays and writes its results into the last ones), nodes, and the shapes and dtypes
of the results. Out: nodes of the results. Called by custom_kernels.py, which gives kernels their derivatives, and by
device/memory/custom_launches.py, which runs them on a device.

A `host` node has one result. Results of one dtype are parts of one packed row, each at a multiple of 16 bytes, so that
the kernel runs once for all of them; results of several dtypes are nodes of their own, and the kernel runs for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..errors import ArgumentError, BlockError, DeviceError, NbgradError
from ..process.once import computed_once
from .builders import reshape, slice_axes
from .host_functions import HostFunction, host
from .ir import Node, Params
from .shapes import Shape

Layout = tuple[Shape, "np.dtype[Any]"]
_ALIGNMENT = 16


@dataclass(eq=False)
class Kernel:
    """A user's function for the CPU, a launcher for CUDA, or both; `title` is what messages call it.

    `batched` kernels also take arrays that all have one more axis in front. `checked` remembers the calls that were
    seen to write all of their results.
    """

    title: str
    forward: Callable[..., Any] | None
    cuda: Callable[..., Any] | None
    batched: bool
    checked: set[Any] = field(default_factory=set)

    def __repr__(self) -> str:
        return self.title


@dataclass(frozen=True)
class Packed:
    """The results of one dtype in a row: the start of each, by its position, and the shape of the row.

    A row with one result has that one's shape.
    """

    places: dict[int, int]
    shape: Shape


def _packed(outputs: Sequence[Layout], dtype: np.dtype[Any]) -> Packed:
    step = max(1, _ALIGNMENT // dtype.itemsize)
    places: dict[int, int] = {}
    end = 0
    for position, (shape, other) in enumerate(outputs):
        if other == dtype:
            places[position] = end
            end += -(-math.prod(shape) // step) * step
    return Packed(places, outputs[next(iter(places))][0] if len(places) == 1 else (end,))


@dataclass(frozen=True)
class Call:
    """A kernel with all that is known before it runs: the ranks of its inputs, the results, keyword arguments."""

    kernel: Kernel
    ranks: tuple[int, ...]
    outputs: tuple[Layout, ...]
    statics: tuple[tuple[str, type, Any], ...]

    def __hash__(self) -> int:
        return self.known_hash

    @computed_once
    def known_hash(self) -> int:
        """The hash: a call is looked up at each run."""
        return hash((id(self.kernel), self.ranks, self.outputs, self.statics))

    @computed_once
    def keywords(self) -> dict[str, Any]:
        """The keyword arguments of the kernel."""
        return {name: value for name, _, value in self.statics}

    def __str__(self) -> str:
        return self.kernel.title

    @computed_once
    def packed(self) -> dict[np.dtype[Any], Packed]:
        """The packed rows, by the dtype of results."""
        return {dtype: _packed(self.outputs, dtype) for dtype in dict.fromkeys(dtype for _, dtype in self.outputs)}

    def unpacked(self, packed: Node) -> dict[int, Node]:
        """The results in the node of a dtype, by their positions."""
        places = self.packed[packed.dtype].places
        if len(places) == 1:
            return dict.fromkeys(places, packed)
        found: dict[int, Node] = {}
        for position, start in places.items():
            shape = self.outputs[position][0]
            found[position] = reshape(slice_axes(packed, [(start, math.prod(shape), 1)]), shape)
        return found

    def described(self) -> str:
        """The arguments of the kernel in words, for messages."""
        keywords = "".join(f", {name}={value!r}" for name, _, value in self.statics)
        return f"with {len(self.ranks)} inputs, then {len(self.outputs)} arrays to write to{keywords}"


def nodes_of(call: Call, inputs: Sequence[Node]) -> list[Node]:
    """The `host` nodes of a call, one for each dtype of its results."""
    return [host(OWN_KERNEL, tuple(inputs), call, dtype) for dtype in call.packed]


def _rule(inputs: Sequence[Node], params: Params) -> Layout:
    call, dtype = params
    return (*leading_axes(call, inputs[0].shape), *call.packed[dtype].shape), dtype


def leading_axes(call: Call, first: Shape) -> Shape:
    """The axes that batching has put in front of the first input."""
    return first[: len(first) - call.ranks[0]]


# ----- On the CPU -----


def run_kernel(*arguments: Any) -> np.ndarray:
    """The results of one dtype, packed; for arrays with leading axes, of all of them."""
    first, *_, call, dtype = arguments
    found = np.empty((*leading_axes(call, first.shape), *call.packed[dtype].shape), dtype)
    run_kernel_into(found, *arguments)
    return found


def run_kernel_into(found: np.ndarray, *arguments: Any) -> None:
    """Write the results of one dtype, packed, into an array in C order."""
    *arrays, call, dtype = arguments
    lead = leading_axes(call, arrays[0].shape)
    inputs = [a if a.flags.c_contiguous else np.ascontiguousarray(a) for a in arrays]
    if not lead:
        _run_once(call, dtype, inputs, found)
        return
    count = math.prod(lead)
    inputs = [array.reshape(count, *array.shape[len(lead) :]) for array in inputs]
    packed = call.packed[dtype]
    found = found.reshape(count, *packed.shape)
    if call.kernel.batched and len(packed.places) == 1:
        many = Call(call.kernel, call.ranks, tuple([((count, *shape), d) for shape, d in call.outputs]), call.statics)
        _run_once(many, dtype, inputs, found)
    else:
        for k in range(count):
            _run_once(call, dtype, [array[k, ...] for array in inputs], found[k, ...])


def run_unpacked(call: Call, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """All results of a call whose inputs are ndarrays: no graph is involved."""
    outputs = [np.empty(shape, dtype) for shape, dtype in call.outputs]
    with np.errstate(all="ignore"):
        _execute(call, [np.ascontiguousarray(array).reshape(array.shape) for array in arrays], outputs)
    return outputs


def run_results_into(call: Call, inputs: Sequence[np.ndarray], results: dict[int, np.ndarray]) -> None:
    """Write some results of a call, by their positions, into arrays in C order."""
    with np.errstate(all="ignore"):
        _run_some(call, inputs, results)


def _run_some(call: Call, inputs: Sequence[np.ndarray], results: dict[int, np.ndarray]) -> None:
    _execute(call, inputs, [results[k] if k in results else np.empty(*one) for k, one in enumerate(call.outputs)])


def _run_once(call: Call, dtype: np.dtype[Any], inputs: list[np.ndarray], found: np.ndarray) -> None:
    """Write the packed results of one dtype for one set of arrays."""
    places = call.packed[dtype].places
    if len(places) == 1:
        _run_some(call, inputs, dict.fromkeys(places, found))
        return
    results: dict[int, np.ndarray] = {}
    for position, start in places.items():
        shape, _ = call.outputs[position]
        results[position] = found[start : start + math.prod(shape)].reshape(shape)
    _run_some(call, inputs, results)


def _execute(call: Call, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
    """Call the function for the CPU; the first such call is checked."""
    function = call.kernel.forward
    if function is None:
        message = (
            f"{call} has only a launcher for CUDA, but its arrays are in the CPU's memory. Move them with "
            'x.to("cuda"), or give a function for the CPU, too.'
        )
        raise DeviceError(message)
    first = call not in call.kernel.checked
    before = [array.copy() for array in inputs] if first else []
    if first:
        for output in outputs:
            fill_unwritten(output)
    invoke(call, function, (*inputs, *outputs), call.keywords)
    if first:
        check_written(call, outputs)
        for position, (array, old) in enumerate(zip(inputs, before, strict=True)):
            if array.tobytes() != old.tobytes():
                message = (
                    f"{call} has changed its input {position}. A kernel must write only to the arrays of results, "
                    f"which follow its {len(inputs)} inputs."
                )
                raise ArgumentError(message)
        remember(call)


_MOST_CHECKED = 1000


def remember(call: Call) -> None:
    """The kernel was seen to write all results of such a call."""
    if len(call.kernel.checked) >= _MOST_CHECKED:
        call.kernel.checked.clear()
    call.kernel.checked.add(call)


def invoke(call: Call, function: Callable[..., Any], arrays: Sequence[Any], keywords: dict[str, Any]) -> None:
    """Call a user's function; an error in it becomes one that names the function."""
    try:
        returned = function(*arrays, **keywords)
    except BlockError:
        raise  # it names the function and the block
    except Exception as error:
        if isinstance(error, NbgradError) and str(error).startswith(call.kernel.title):
            raise
        text = str(error).strip() or type(error).__name__
        lines = text.splitlines()
        shown = lines[0] if len(lines) == 1 else f"{lines[0]} [...] {lines[-1]}"
        message = f"{call} has raised {type(error).__name__}: {shown.rstrip('.')}. It was called {call.described()}."
        kind = DeviceError if isinstance(error, DeviceError) else ArgumentError
        raise kind(message) from error
    if returned is not None and not any(returned is array for array in arrays):
        message = (
            f"{call} has returned a {type(returned).__name__}, which is not used: it is called {call.described()}, and "
            "must write its results into these. Write `out[...] = result` instead of returning it."
        )
        raise ArgumentError(message)


def mark_of(dtype: np.dtype[Any]) -> int:
    """Every byte of results before the first call: a NaN in dtypes of floats, an unlikely number in the others."""
    return 0xFF if dtype.kind in "fc" else 0xA5


def fill_unwritten(array: np.ndarray) -> None:
    """Mark every element of an array in C order as not written."""
    if array.size:
        array.reshape(-1).view(np.uint8)[:] = mark_of(array.dtype)


def check_written(call: Call, outputs: Sequence[np.ndarray]) -> None:
    """Raise if a kernel has left elements of a result as they were.

    The mark of floats is a NaN that no computation gives unless it reads one; the mark of integers may be a result, so
    that only results of which nothing was written are found.
    """
    for position, output in enumerate(outputs):
        if not output.size:
            continue
        left = (output.reshape(-1, 1).view(np.uint8) == mark_of(output.dtype)).all(axis=1)
        if left.any() if output.dtype.kind in "fc" else left.all():
            message = (
                f"{call} has not written {int(left.sum())} of the {output.size} elements of its result {position}, of "
                f"shape {output.shape} (or has added to them: what they hold before is undefined). It is called "
                f"{call.described()}."
            )
            raise ArgumentError(message)


OWN_KERNEL = HostFunction("own kernel", _rule, run_kernel, run_kernel_into)
"""Calls of all kernels of users; which one it is, is a parameter."""
