"""Checkpoints of all ranks: each writes its part, and all of them together are one checkpoint or none.

In: arrays that are equal on all ranks, blocks of grids, arrays of single ranks. Out: a folder with a file of each rank
in the safetensors format, and an index. Called by users.

The index, `checkpoint.json`, names the files, and tells which part of which array lies in which of them. It is replaced
last, as a whole: before that, a reader finds the checkpoint before this one. So a run may be interrupted at any time.
An array may be read by other numbers of ranks than have written it, since its parts say where they lie in the whole.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError, CheckpointError
from ..record.array_files import opened, replaced, safetensors, write_arrays
from ..record.foreign_arrays import described
from ..record.numbers import supported
from ..record.tensor import Tensor
from .agreed_errors import Agreement
from .communicators import group_of
from .grid import Grid

INDEX = "checkpoint.json"
FORMAT = "nbgrad checkpoint of ranks, 1"
_WRITTEN = re.compile(r"\.?[0-9a-f]{12}-\d+\.safetensors(\.[0-9a-f]{12}\.part)?")
"""Names of files of checkpoints, complete or not."""
_PARTS = re.compile(r"\.checkpoint\.json\.[0-9a-f]{12}\.part")


def save_checkpoint(
    folder: str | os.PathLike[str],
    shared: Any = None,
    *,
    blocks: Mapping[str, Any] | None = None,
    grid: Grid | None = None,
    own: Mapping[str, Any] | None = None,
    comm: Any = None,
) -> None:
    """Write a checkpoint of all ranks; all of them call it.

    Parameters
    ----------
    folder : str or path
        Of this checkpoint alone, and seen by all ranks; made if it is missing. A checkpoint that is in it is replaced
        as a whole; if saving fails or is interrupted, it stays.
    shared : Cell or dict, optional
        Parameters, arrays and numbers by name that are the same on all ranks. Rank 0 writes its own.
    blocks : dict, optional
        This rank's blocks of arrays that lie on a grid; further axes may follow those of the grid.
    grid : Grid, optional
        The grid of `blocks`.
    own : dict, optional
        Arrays and numbers of this rank alone, such as the place in its data. As many ranks can read them.
    comm : mpi4py.MPI.Comm, optional

    Raises
    ------
    CheckpointError
        On all ranks, if one of them has failed to write, or if they save other names.
    ArgumentError
        If there is nothing to save, or if something is no array.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from nbgrad import mpi
    >>> grid = mpi.Grid((6,))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mpi.save_checkpoint(folder, {"step": 3}, blocks={"u": np.arange(6.0)[grid.slices]}, grid=grid)
    ...     found = mpi.load_checkpoint(folder, grid=grid)
    >>> found["step"], found["u"]
    (array(3), array([0., 1., 2., 3., 4., 5.]))
    """
    group = group_of(comm)
    comm, rank = group.comm, group.rank
    arrays: dict[str, np.ndarray] = {}
    facts: dict[str, dict[str, Any]] = {}
    with Agreement(comm, CheckpointError, "no checkpoint is saved"):
        path = os.fspath(folder)
        facts = _facts(shared, blocks, grid, own, arrays, rank)
        safetensors()
        if rank == 0:
            os.makedirs(path, exist_ok=True)
    first, token = comm.bcast((facts, os.urandom(6).hex()))
    every = comm.gather(facts)
    file_name = os.path.join(path, _file(token, rank))
    try:
        with Agreement(comm, CheckpointError, "no checkpoint is saved"):
            _check_names(facts, first, rank)
            if arrays:
                write_arrays(file_name, arrays)
    except Exception:
        with contextlib.suppress(OSError):
            os.unlink(file_name)
        raise
    with Agreement(comm, CheckpointError, "no checkpoint is saved"):
        if rank == 0:
            index = {"format": FORMAT, "save": token, "ranks": group.size, "arrays": _joined(every)}
            with replaced(os.path.join(path, INDEX)) as temporary, open(temporary, "w", encoding="utf-8") as file:
                json.dump(index, file)
            _remove_others(path, token)


def _facts(
    shared: Any, blocks: Any, grid: Grid | None, own: Any, arrays: dict[str, np.ndarray], rank: int
) -> dict[str, dict[str, Any]]:
    """The facts about the parts of this rank, whose arrays are added to `arrays`.

    Raises
    ------
    ArgumentError
        If something cannot be saved.
    """
    if hasattr(shared, "parameters_dict"):
        shared = shared.parameters_dict()
    kinds = {"shared": shared or {}, "blocks": blocks or {}, "own": own or {}}
    for kind, values in kinds.items():
        if not isinstance(values, Mapping) or not all(isinstance(name, str) and name for name in values):
            message = f"{kind} must be a dict of names and arrays, but got {described(values)}."
            raise ArgumentError(message)
    names = [name for values in kinds.values() for name in values]
    if not names:
        message = "There is nothing to save: give shared, blocks or own."
        raise ArgumentError(message)
    if len(names) > len({*names}):
        twice = next(name for name in names if names.count(name) > 1)
        message = f"Two things to save are called {twice!r}. Give them different names."
        raise ArgumentError(message)
    if kinds["blocks"] and not isinstance(grid, Grid):
        message = f"blocks need their grid: give grid=mpi.Grid(...), but got {described(grid)}."
        raise ArgumentError(message)
    facts: dict[str, dict[str, Any]] = {}
    for kind, values in kinds.items():
        for name, value in values.items():
            array = _array(name, value)
            shape, start = list(array.shape), [0] * array.ndim
            if kind == "blocks":
                assert grid is not None
                if array.shape[: len(grid.local)] != grid.local:
                    message = f"{name} must be this rank's block, of shape {grid.local}, but has shape {array.shape}."
                    raise ArgumentError(message)
                shape[: len(grid.local)] = grid.shape
                start[: len(grid.local)] = [part.start for part in grid.slices]
            facts[name] = {"kind": kind, "dtype": array.dtype.name, "shape": shape, "start": start}
            facts[name]["part"] = list(array.shape)
            if kind != "shared" or rank == 0:
                # The format has no complex128: a further axis has both parts.
                pair = array.dtype == np.complex128
                arrays[name] = np.ascontiguousarray(array).view(np.float64).reshape(*array.shape, 2) if pair else array
    return facts


def _array(name: str, value: Any) -> np.ndarray:
    if isinstance(value, Tensor | np.ndarray | np.generic | bool | int | float | complex):
        array = np.array(value.asnumpy() if isinstance(value, Tensor) else value, order="C")
        if supported(array.dtype):
            return array.astype(array.dtype.newbyteorder("="))
    message = f"{name} must be an array, a Tensor or a number, but got {described(value)}."
    raise ArgumentError(message)


def _check_names(facts: dict[str, dict[str, Any]], of_first: dict[str, dict[str, Any]], rank: int) -> None:
    """Raise unless this rank saves what rank 0 does."""
    for name in {**of_first, **facts}:
        own, first = facts.get(name), of_first.get(name)
        same = ("kind", "dtype") if own is not None and own["kind"] == "own" else ("kind", "dtype", "shape")
        if own is None or first is None or any(own[key] != first[key] for key in same):
            message = f"Rank {rank} saves {name!r} as {_shown(own)}, but rank 0 as {_shown(first)}."
            raise CheckpointError(message)


def _shown(fact: dict[str, Any] | None) -> str:
    return "nothing" if fact is None else f"{fact['kind']}, {fact['dtype']} of shape {tuple(fact['shape'])}"


def _joined(every: list[dict[str, dict[str, Any]]]) -> dict[str, Any]:
    """The index of all arrays: their kind, dtype and shape, and the places of their parts."""
    found: dict[str, Any] = {}
    for name, fact in every[0].items():
        holders = every[:1] if fact["kind"] == "shared" else every
        parts = [[rank, facts[name]["start"], facts[name]["part"]] for rank, facts in enumerate(holders)]
        found[name] = {key: fact[key] for key in ("kind", "dtype", "shape")} | {"parts": parts}
    return found


def _file(token: str, rank: int) -> str:
    return f"{token}-{rank}.safetensors"


def _remove_others(path: str, token: str) -> None:
    """Remove files of earlier checkpoints, and of those that were interrupted."""
    for name in os.listdir(path):
        if (_WRITTEN.fullmatch(name) and not name.startswith(token)) or _PARTS.fullmatch(name):
            os.unlink(os.path.join(path, name))


def load_checkpoint(
    folder: str | os.PathLike[str], grid: Grid | None = None, own: bool = True, comm: Any = None
) -> dict[str, np.ndarray]:
    """Read a checkpoint that ranks have written together, on any number of ranks.

    Parameters
    ----------
    folder : str or path
    grid : Grid, optional
        Of which this rank gets its block of all arrays that were saved in blocks, whatever blocks these were. Without
        it, it gets whole arrays.
    own : bool
        Whether to read arrays of single ranks, which needs as many ranks as have saved.
    comm : mpi4py.MPI.Comm, optional

    Returns
    -------
    dict
        Names and arrays, for example for `nb.load_param_into_net`.

    Raises
    ------
    FileNotFoundError
        If there is no checkpoint.
    CheckpointError
        If it is damaged or incomplete, or does not fit the grid or the number of ranks.

    Examples
    --------
    >>> import nbgrad as nb, tempfile
    >>> from nbgrad import mpi
    >>> net = nb.nn.Dense(2, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mpi.save_checkpoint(folder, {**net.parameters_dict(), "epoch": 2})
    ...     nb.load_param_into_net(net, mpi.load_checkpoint(folder))
    ([], ['epoch'])
    """
    group = group_of(comm)
    path = os.fspath(folder)
    index = _index(path)
    found: dict[str, np.ndarray] = {}
    files: dict[int, dict[str, Any]] = {}
    for name, fact in index["arrays"].items():
        shape, start = list(fact["shape"]), [0] * len(fact["shape"])
        if fact["kind"] == "own":
            if not own:
                continue
            if index["ranks"] != group.size:
                message = (
                    f"{name!r} in {path!r} is an array of single ranks, of which {index['ranks']} have saved, but "
                    f"there are {group.size}. Run as many, or leave such arrays out with own=False."
                )
                raise CheckpointError(message)
            fact["parts"] = [part for part in fact["parts"] if part[0] == group.rank]
            shape = fact["parts"][0][2]
        elif fact["kind"] == "blocks" and grid is not None:
            if tuple(shape[: len(grid.shape)]) != grid.shape:
                message = f"{name!r} in {path!r} lies on a grid of shape {tuple(shape)}, but grid is {grid}."
                raise CheckpointError(message)
            shape[: len(grid.shape)] = grid.local
            start[: len(grid.shape)] = [part.start for part in grid.slices]
        found[name] = np.empty(shape, fact["dtype"])
        for rank, begin, part in fact["parts"]:
            files.setdefault(rank, {})[name] = (start, begin, part)
    for rank, wanted in files.items():
        _fill(found, wanted, os.path.join(path, _file(index["save"], rank)))
    return found


def _index(path: str) -> dict[str, Any]:
    """The index of a checkpoint.

    Raises
    ------
    FileNotFoundError, CheckpointError
        If there is none, or none of this format.
    """
    name = os.path.join(path, INDEX)
    if not os.path.isfile(name):
        message = f"There is no checkpoint of ranks in {path!r}: {INDEX} is missing."
        raise FileNotFoundError(message)
    try:
        with open(name, encoding="utf-8") as file:
            found = json.load(file)
        if found["format"] == FORMAT:
            return found
    except (ValueError, KeyError, TypeError):
        pass
    message = f"{name!r} is no index of a checkpoint of ranks: it is damaged, or another program wrote it."
    raise CheckpointError(message)


def _fill(found: dict[str, np.ndarray], wanted: dict[str, Any], name: str) -> None:
    """Fill arrays from the parts of them that are in a file.

    Raises
    ------
    CheckpointError
        If the file is missing or damaged.
    """
    spans = {key: _overlap(found[key].shape, *places) for key, places in wanted.items()}
    if not any(span is not None for span in spans.values()):
        return
    if not os.path.isfile(name):
        message = f"{name!r} is missing: its checkpoint is incomplete. Do all ranks see one folder?"
        raise CheckpointError(message)
    with opened(name) as file:
        for key, span in spans.items():
            if span is None:
                continue
            here, there = span
            array = found[key]
            part = file.get_slice(key)[there] if there else file.get_tensor(key)
            pair = array.dtype == np.complex128
            array[here] = np.ascontiguousarray(part).view(np.complex128)[..., 0] if pair else part


def _overlap(
    shape: tuple[int, ...], start: list[int], begin: list[int], part: list[int]
) -> tuple[tuple[slice, ...], tuple[slice, ...]] | None:
    """The place of a part in an array that begins at `start`, and that of the array in the part; None if they miss."""
    here, there = [], []
    for n, first, at, count in zip(shape, start, begin, part, strict=True):
        low, high = max(first, at), min(first + n, at + count)
        if low >= high:
            return None
        here.append(slice(low - first, high - first))
        there.append(slice(low - at, high - at))
    return tuple(here), tuple(there)
