"""Messages sent: by mpi4py for arrays in Python, by the MPI library itself for compiled programs.

In: a `Message`, arrays or their layouts. Out: the result in an array; the code of a kernel that calls the library.
Called by message_nodes.py.

Both ways give the library the memory of the arrays, without a copy. mpi4py lets other threads of Python run meanwhile;
a compiled program holds the interpreter's lock or not as for its other kernels. A signal waits until the call is done.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from ..compiler.host_calls import keep_failure
from ..errors import NbgradError
from ..graph.ir import Params
from . import call_check
from .communicators import groups, library
from .messages import Layout, Message, is_empty

OPERATIONS = {"sum": "SUM", "prod": "PROD", "max": "MAX", "min": "MIN"}
MOST = 2**31 - 1
"""Elements of a call of the library's functions with C's int."""
_requests: dict[int, tuple[Any, np.ndarray]] = {}
"""Messages under way, by their numbers: the request, and the memory that is sent or filled."""
_numbers = itertools.count(1)


def send(message: Message, data: np.ndarray | None, out: np.ndarray) -> None:
    """Do a call; `out`, in C order, gets its result.

    Raises
    ------
    NbgradError
        If MPI fails; with the user's line.
    """
    data = None if data is None else np.ascontiguousarray(data).reshape(np.shape(data))
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
        call_check.finish(message, [comm.Irecv(out, source, message.tag), comm.Isend(data, to, message.tag)])
    elif kind == "send":
        call_check.finish(message, [comm.Isend(data, to, message.tag)])
        out[...] = 0
    elif kind == "recv":
        out[...] = 0 if message.source < 0 else out
        call_check.finish(message, [comm.Irecv(out, source, message.tag)])
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
        call_check.finish(message, [request])
        out[...] = kept if kind == "wait_receive" else 0


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


@cache
def _status() -> Any:
    """Memory for a status that is not read."""
    return ctypes.create_string_buffer(256)


@ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64)
def _failed(code: int, number: int) -> None:
    """Note an error of the library, which the program raises at its end."""
    keep_failure(failure(_natives[number], library().Exception(code)))


_natives: list[Message] = []
"""Messages in compiled programs."""
_numbers_of: dict[Message, int] = {}
ARGUMENTS = {
    "allreduce": "data out count type operation group",
    "scan": "data out count type operation group",
    "send": "data count type to tag group",
    "recv": "out count type source tag group status",
    "sendrecv": "data count type to tag out given given_type source tag group status",
    "barrier": "group",
}
"""The C function's arguments, of the kinds of messages that compiled programs send themselves."""
NAMES = {"allreduce": "Allreduce", "scan": "Scan", "send": "Send", "recv": "Recv", "sendrecv": "Sendrecv"}


def native(params: Params, layouts: Sequence[Layout]) -> tuple[str, str, list[int]] | None:
    """The kernel of a message in compiled programs, if it needs no Python: its key, IR text and integers."""
    message: Message = params[0]
    words = ARGUMENTS.get(message.kind, "").split()
    shape, dtype = layouts[-1] if message.data is None else message.data
    size = int(np.prod(shape, dtype=np.int64))
    if not words or call_check.is_on() or -1 in _used(message):
        return None
    if layouts[0][0] or not 0 < size <= MOST or is_empty(message.result):
        return None
    mpi, group = library(), groups[message.group]
    number = _numbers_of.setdefault(message, len(_natives))
    if number == len(_natives):
        _natives.append(message)
    function = ctypes.cast(_functions()[f"MPI_{NAMES.get(message.kind, 'Barrier')}"], ctypes.c_void_p).value
    failed = ctypes.cast(_failed, ctypes.c_void_p).value
    assert function is not None and failed is not None
    values = {
        "count": size,
        "type": mpi.Datatype.fromcode(dtype.char).handle,
        "given": int(np.prod(message.result[0], dtype=np.int64)),
        "given_type": mpi.Datatype.fromcode(message.result[1].char).handle,
        "operation": getattr(mpi, OPERATIONS.get(message.operation, "SUM")).handle,
        "group": group.comm.handle,
        "to": message.to,
        "source": message.source,
        "tag": message.tag,
        "status": ctypes.addressof(_status()),
    }
    # Handles are unsigned.
    integers = [values[word] - (values[word] >> 63 << 64) for word in words if word in values]
    gives = message.result[0] if "out" in words else None
    key = f"mpi {' '.join(words)} {message.data is not None} {gives is None}"
    return key, _ir(words, message.data is not None, gives is None), [function, failed, number, *integers]


def _used(message: Message) -> list[int]:
    """The ranks that a message between two names."""
    words = ARGUMENTS[message.kind].split()
    return [rank for word, rank in (("to", message.to), ("source", message.source)) if word in words]


def _ir(words: Sequence[str], has_data: bool, is_zero: bool) -> str:
    """The text of a kernel that calls a C function, and another one if that fails.

    Integers are passed with 64 bits; functions that take C's int read the lower half.
    """
    places = {"data": 1, "out": 1 + has_data}
    lines = ["define void @kernel(ptr %pointers, ptr %sizes, i64 %begin, i64 %end) {"]
    for name, place in places.items():
        lines += [f"  %at.{name} = getelementptr ptr, ptr %pointers, i64 {place}"] if name == "out" or has_data else []
        lines += [f"  %{name} = load ptr, ptr %at.{name}"] if name == "out" or has_data else []
    arguments: list[str] = []
    count = 3
    for word in words:
        if word in places:
            arguments.append(f"ptr %{word}")
        else:
            lines.append(f"  %place{count} = getelementptr i64, ptr %sizes, i64 {count}")
            lines.append(f"  %word{count} = load i64, ptr %place{count}")
            arguments.append(f"i64 %word{count}")
            count += 1
    for place, name in enumerate(("function", "failed", "number")):
        lines.append(f"  %at.{name} = getelementptr i64, ptr %sizes, i64 {place}")
        lines.append(f"  %{name} = load {'i64' if name == 'number' else 'ptr'}, ptr %at.{name}")
    if is_zero:
        lines.append("  store i64 0, ptr %out")
    lines += [
        f"  %code = call i32 %function({', '.join(arguments)})",
        "  %good = icmp eq i32 %code, 0",
        "  br i1 %good, label %done, label %bad",
        "bad:",
        "  %wide = sext i32 %code to i64",
        "  call void %failed(i64 %wide, i64 %number)",
        "  br label %done",
        "done:",
        "  ret void",
        "}",
    ]
    return "\n".join(lines) + "\n"
