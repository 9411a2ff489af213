"""Messages sent: by mpi4py for arrays in Python, by the MPI library itself for compiled programs.

In: a `Message`, arrays or their layouts. Out: the result in an array; the code of a kernel that calls the library.
Called by message_nodes.py.

Both ways give the library the memory of the arrays, without a copy, and let other threads of Python run meanwhile. A
signal waits until the call is done.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ..compiler.host_calls import has_failed, keep_failure
from ..errors import NbgradError
from ..graph.ir import Params
from . import call_check
from .communicators import groups, library
from .messages import Layout, Message, elements, is_empty

OPERATIONS = {"sum": "SUM", "prod": "PROD", "max": "MAX", "min": "MIN"}
MOST = 2**31 - 1
"""Elements of a call of the library's functions with C's int."""
_requests: dict[int, tuple[Any, np.ndarray]] = {}
"""Messages under way, by their numbers: the request, and the memory that is sent or filled."""
_numbers = itertools.count(1)


def send_into(message: Message, data: Any, out: Any) -> None:
    """Do a call, as `send`; an array without elements may be None as data, and `out` is the number 0 in its place."""
    if has_failed():
        # The program goes on to its end, but sends nothing more.
        out[...] = 0
        return
    if data is None and message.data is not None:
        data = np.empty(*message.data)
    if not is_empty(message.result):
        send(message, data, out)
    else:
        send(message, data, np.empty(*message.result))
        out[...] = 0


def send(message: Message, data: Any, out: Any) -> None:
    """Do a call of arrays in the memory of the CPU, or of a GPU if MPI takes that (`GpuArray`); `out`, in C order, gets
    its result.

    Raises
    ------
    NbgradError
        If MPI fails; with the user's line.
    """
    if isinstance(data, np.ndarray):
        data = np.ascontiguousarray(data).reshape(data.shape)
    call_check.before(message)
    try:
        _send(message, data, out)
    except library().Exception as error:
        raise failure(message, error) from error


def failure(message: Message, error: Any) -> NbgradError:
    """The error for one of mpi4py in a message."""
    why = library().Get_error_string(error.Get_error_class()).partition(",")[0].rstrip(".")
    return NbgradError(f"MPI has failed in {message}: {why}. The other ranks may wait for it.")


def _send(message: Message, data: Any, out: np.ndarray) -> None:
    mpi, group = library(), groups[message.group]
    comm, kind = group.comm, message.kind
    operation = getattr(mpi, OPERATIONS[message.operation]) if message.operation else None
    peers: Any = [mpi.PROC_NULL if rank < 0 else rank for rank in (message.to, message.source)]
    to, source = peers
    if kind in ("allreduce", "scan"):
        getattr(comm, kind.capitalize())(data, out, operation)
    elif kind == "reduce":
        comm.Reduce(data, out if group.rank == message.root else None, operation, message.root)
        if group.rank != message.root:
            out[...] = 0
    elif kind == "bcast":
        if group.rank == message.root:
            out[...] = data
        comm.Bcast(out, message.root)
    elif kind == "gather":
        comm.Gatherv(data, _parts(out, message.counts) if group.rank == message.root else None, message.root)
        if group.rank != message.root:
            out[...] = 0
    elif kind == "scatter":
        comm.Scatterv(_parts(data, message.counts) if group.rank == message.root else None, out, message.root)
    elif kind == "allgather":
        comm.Allgatherv(data, _parts(out, message.counts))
    elif kind == "reduce_scatter":
        row = int(np.prod(out.shape[1:], dtype=np.int64)) if message.counts else out.size
        comm.Reduce_scatter(data, out, [n * row for n in message.counts or (1,) * group.size], operation)
    elif kind == "alltoall":
        comm.Alltoallv(_parts(data, message.counts), _parts(out, message.given_counts))
    elif kind == "barrier":
        comm.Barrier()
        out[...] = 0
    elif kind == "sendrecv":
        out[...] = 0 if message.source < 0 else out
        _receive(message, out, [comm.Irecv(out, source, message.tag), comm.Isend(data, to, message.tag)])
    elif kind == "send":
        call_check.finish(message, [comm.Isend(data, to, message.tag)])
        out[...] = 0
    elif kind == "recv":
        out[...] = 0 if message.source < 0 else out
        _receive(message, out, [comm.Irecv(out, source, message.tag)])
    elif kind == "isend":
        kept = np.array(data)
        out[...] = number = next(_numbers)
        _requests[number] = comm.Isend(kept, to, message.tag), kept
    elif kind == "irecv":
        assert message.pending is not None
        kept = np.zeros(*message.pending)
        out[...] = number = next(_numbers)
        _requests[number] = comm.Irecv(kept, source, message.tag), kept
    else:
        request, kept = _requests.pop(int(data))
        if kind == "wait_receive":
            _receive(message, kept, [request])
            out[...] = kept
        else:
            call_check.finish(message, [request])
            out[...] = 0


def _receive(message: Message, out: np.ndarray, requests: Sequence[Any]) -> None:
    """Wait for requests, of which the first one fills `out`: MPI takes it for good if the message is shorter."""
    mpi = library()
    status = call_check.finish(message, requests)[0]
    if status.Get_source() != mpi.PROC_NULL and status.Get_count(mpi.BYTE) != out.nbytes:
        raise _short(message)


def _short(message: Message) -> NbgradError:
    """The error for a message with fewer elements than the array that receives it."""
    return NbgradError(
        f"{message} got a message with fewer elements than expected. The array that it is given must have the shape "
        "and dtype of the one that is sent."
    )


def _parts(array: np.ndarray, counts: Sequence[int]) -> list[Any]:
    """An array with the numbers of elements for each rank, as mpi4py takes it; equal parts by default."""
    row = int(np.prod(array.shape[1:], dtype=np.int64))
    if not counts:
        return [array, [row] * len(array)]
    return [array, [n * row for n in counts]]


# ----- From compiled programs -----


@cache
def _functions() -> ctypes.CDLL:
    """The MPI library that mpi4py has loaded."""
    return ctypes.CDLL(library().__file__)


@ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)
def _failed(code: int, number: int) -> None:
    """Note an error of the library, which the program raises at its end."""
    message = _natives[number]
    keep_failure(_short(message) if code == SHORT else failure(message, library().Exception(code)))


SHORT = -1
"""The code of a message with too few elements, for which MPI has none."""
STATUS = 256
"""Bytes that any library's status fits into."""
_natives: list[Message] = []
"""Messages in compiled programs."""
_numbers_of: dict[Message, int] = {}
FUNCTIONS = {
    "allreduce": "Allreduce data out count type operation group",
    "scan": "Scan data out count type operation group",
    "reduce": "Reduce data out count type operation root group",
    "bcast": "Bcast out given given_type root group",
    "gather": "Gather data count type out count type root group",
    "scatter": "Scatter data given given_type out given given_type root group",
    "allgather": "Allgather data count type out count type group",
    "reduce_scatter": "Reduce_scatter_block data out given type operation group",
    "alltoall": "Alltoall data part type out part type group",
    "send": "Send data count type to tag group",
    "recv": "Recv out given given_type source tag group status counter expected",
    "sendrecv": "Sendrecv data count type to tag out given given_type source tag group status counter expected",
    "barrier": "Barrier group",
}
"""The function in C, and its arguments, of the kinds of messages that compiled programs send themselves.

After a status: the function that counts the elements that came, and how many must have come.
"""
MAY_BE_EMPTY = frozenset(["gather", "scatter"])
"""Messages for which ranks other than the root may have no data, or no result."""


def native(params: Params, layouts: Sequence[Layout]) -> tuple[str, list[int]] | None:
    """The kernel of a message in compiled programs, if it needs no Python: its IR text and integers."""
    message: Message = params[0]
    name, *words = FUNCTIONS.get(message.kind, "none").split()
    if not words or call_check.is_on() or message.counts or message.given_counts or layouts[0][0]:
        return None
    sizes = [elements(layout) for layout in (message.data, message.result) if layout is not None]
    if max(sizes) > MOST or (0 in sizes and (message.kind not in MAY_BE_EMPTY or not any(sizes))):
        return None
    mpi, group = library(), groups[message.group]
    number = _numbers_of.setdefault(message, len(_natives))
    if number == len(_natives):
        _natives.append(message)
    function = ctypes.cast(_functions()[f"MPI_{name}"], ctypes.c_void_p).value
    failed = ctypes.cast(_failed, ctypes.c_void_p).value
    assert function is not None and failed is not None
    at_root = group.rank == message.root
    given, kind = elements(message.result), mpi.Datatype.fromcode
    bytes_given = given * message.result[1].itemsize
    unwritten = message.source < 0 if "source" in words else message.kind in ("reduce", "gather") and not at_root
    values = {
        "count": sizes[0],
        "part": sizes[0] // group.size,
        "type": kind((message.data or message.result)[1].char).handle,
        "given": given,
        "given_type": kind(message.result[1].char).handle,
        "operation": getattr(mpi, OPERATIONS.get(message.operation, "SUM")).handle,
        "group": group.comm.handle,
        "root": message.root,
        "to": mpi.PROC_NULL if message.to < 0 else message.to,
        "source": mpi.PROC_NULL if message.source < 0 else message.source,
        "tag": message.tag,
        "counter": ctypes.cast(_functions().MPI_Get_count, ctypes.c_void_p).value or 0,
        "expected": 0 if message.source < 0 else given,
    }
    # Handles are unsigned.
    integers = [values[word] - (2**64 if values[word] >= 2**63 else 0) for word in words if word in values]
    copied = bytes_given if message.kind == "bcast" and at_root else 0
    has_data, is_zero = not is_empty(message.data), not given or "out" not in words
    zeroed = bytes_given if unwritten else 0
    return _ir(words, has_data, is_zero), [function, failed, number, copied, zeroed, *integers]


def _ir(words: Sequence[str], has_data: bool, is_zero: bool) -> str:
    """The text of a kernel that calls a C function, and another one if that fails or fewer elements come than expected.

    Before, bytes of the data are copied to the result, or set to zero. Integers are passed with 64 bits; functions that
    take C's int read the lower half.
    """
    pointers, counts = ("data", "out", "status"), "status" in words
    lines = ["define void @kernel(ptr %pointers, ptr %sizes, i64 %begin, i64 %end) {"]
    for name, place in (("data", 1), ("out", 1 + has_data)):
        lines.append(f"  %at.{name} = getelementptr ptr, ptr %pointers, i64 {place}")
        lines.append(f"  %{name} = load ptr, ptr %at.{name}")
    numbers = [word for word in words if word not in pointers]
    for place, name in enumerate(("function", "failed", "number", "copied", "zeroed", *numbers)):
        known = f"{name}{place}" if place > 4 else name
        lines.append(f"  %at.{known} = getelementptr i64, ptr %sizes, i64 {place}")
        lines.append(f"  %{known} = load {'ptr' if place < 2 else 'i64'}, ptr %at.{known}")
    places = iter(range(5, 5 + len(numbers)))
    values = [f"ptr %{word}" if word in pointers else f"i64 %{word}{next(places)}" for word in words]
    arguments, (counter, expected) = (values[:-2], values[-2:]) if counts else (values, ("", ""))
    kind = next((value for value, word in zip(values, words, strict=True) if word == "given_type"), "")
    lines += [
        f"  %status = alloca [{STATUS} x i8], align 16" if counts else "",
        "  %came = alloca i32" if counts else "",
        "  call void @llvm.memcpy.p0.p0.i64(ptr %out, ptr %data, i64 %copied, i1 false)",
        "  call void @llvm.memset.p0.i64(ptr %out, i8 0, i64 %zeroed, i1 false)",
        "  store i64 0, ptr %out" if is_zero else "",
        f"  %code = call i32 %function({', '.join(arguments)})",
        "  %good = icmp eq i32 %code, 0",
        f"  br i1 %good, label %{'arrived' if counts else 'done'}, label %bad",
    ]
    if counts:
        lines += [
            "arrived:",
            f"  %counts = inttoptr {counter} to ptr",
            f"  %uncounted = call i32 %counts(ptr %status, {kind}, ptr %came)",
            "  %elements = load i32, ptr %came",
            "  %wide.elements = sext i32 %elements to i64",
            f"  %whole = icmp eq {expected}, %wide.elements",
            "  br i1 %whole, label %done, label %bad",
        ]
    lines += [
        "bad:",
        f"  %reason = phi i32 [ %code, %0 ]{f', [ {SHORT}, %arrived ]' if counts else ''}",
        "  %wide = sext i32 %reason to i64",
        "  call void %failed(i64 %wide, i64 %number)",
        "  br label %done",
        "done:",
        "  ret void",
        "}",
        "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
        "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    ]
    return "\n".join(lines) + "\n"
