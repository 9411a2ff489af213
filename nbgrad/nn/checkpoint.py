"""Checkpoints: Parameters in a file, and back.

In: a Cell (an optimizer is one too), or Parameters and Tensors by name. Out: a file in the safetensors format, which
holds arrays and nothing that could be run; from a file, Parameters by name, or a Cell with new values. Called by users.
A file is replaced as a whole or not at all, and a Cell is written to only after everything was checked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from ..errors import ArgumentError, CheckpointError, DtypeError
from ..record.array_files import read_arrays, write_arrays
from ..record.numbers import supported
from ..record.tensor import Tensor
from ..tensors.parameter import Parameter
from .cell import Cell

SUFFIX = ".safetensors"
MOST_LISTED = 20
"""The most names that a message lists."""


def save_checkpoint(
    save_obj: Any,
    ckpt_file_name: str | os.PathLike[str],
    integrated_save: bool = True,
    async_save: Any = False,
    append_dict: Mapping[str, Any] | None = None,
    enc_key: None = None,
    enc_mode: str = "AES-GCM",
    choice_func: Callable[[str], bool] | None = None,
    crc_check: bool = False,
    format: str = "ckpt",
) -> None:
    """Write Parameters to a file.

    Parameters
    ----------
    save_obj : Cell, dict, or list of dict
        A Cell means all its Parameters, under their names; a dict maps names to Parameters, Tensors or ndarrays; a list
        has dicts with the keys "name" and "data".
    ckpt_file_name : str or path
        A name without a suffix gets ".safetensors". A file of that name is replaced; if saving fails or is interrupted,
        it stays as it was.
    integrated_save, async_save, enc_mode, crc_check, format
        MindSpore's; they have no effect: the file is there when the call returns, and its format is safetensors.
    append_dict : dict, optional
        More names and values, such as the number of the epoch: numbers, Tensors or ndarrays.
    enc_key : None
        Other values are refused, since files are not encrypted.
    choice_func : callable, optional
        Takes a name, and returns whether to save the value with this name.

    Raises
    ------
    CheckpointError
        If a name is taken by two different things, or there is nothing to save.
    DtypeError
        If something is no array and no number.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import nbgrad as nb, os, tempfile
    >>> net = nb.nn.SequentialCell(nb.nn.ReLU())
    >>> net.w = nb.Parameter(nb.Tensor([1.0, 2.0]), name="w")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nb.save_checkpoint(net, os.path.join(folder, "net"), append_dict={"epoch": 3})
    ...     net.w = nb.Tensor([0.0, 0.0])
    ...     loaded = nb.load_checkpoint(os.path.join(folder, "net"))
    >>> nb.load_param_into_net(net, loaded)
    ([], ['epoch'])
    >>> print(net.w.value(), loaded["epoch"].value())
    [1. 2.] 3
    """
    del integrated_save, async_save, enc_mode, crc_check, format
    _not_encrypted("enc_key", enc_key)
    arrays: dict[str, np.ndarray] = {}
    for name, value in [*_named(save_obj), *(append_dict or {}).items()]:
        if choice_func is not None and not choice_func(name):
            continue
        if name in arrays:
            message = f"Two things to save are called {name!r}. Give Parameters different names before they are saved."
            raise CheckpointError(message)
        arrays[name] = _array(name, value)
    if not arrays:
        message = f"There is nothing to save in {os.fspath(ckpt_file_name)}: no Parameters were given or chosen."
        raise CheckpointError(message)
    write_arrays(_with_suffix(ckpt_file_name), arrays)


def _not_encrypted(name: str, key: Any) -> None:
    if key is not None:
        message = f"nbgrad's checkpoints are not encrypted. Leave {name} out, and encrypt the file by another program."
        raise ArgumentError(message)


def load_checkpoint(
    ckpt_file_name: str | os.PathLike[str],
    net: Cell | None = None,
    strict_load: bool = False,
    filter_prefix: str | Iterable[str] | None = None,
    dec_key: None = None,
    dec_mode: str = "AES-GCM",
    specify_prefix: str | Iterable[str] | None = None,
    choice_func: Callable[[str], bool] | None = None,
    crc_check: bool = False,
    remove_redundancy: bool = False,
    format: str = "ckpt",
) -> dict[str, Parameter]:
    """Read Parameters from a file.

    Parameters
    ----------
    ckpt_file_name : str or path
        As for `save_checkpoint`.
    net : Cell, optional
        Gets the values, as `load_param_into_net` does it.
    strict_load : bool
        As for `load_param_into_net`.
    filter_prefix : str, or list or tuple of str, optional
        Names that start with one of them are left out.
    dec_key : None
        Other values are refused, since files are not encrypted.
    dec_mode, crc_check, remove_redundancy, format
        MindSpore's; they have no effect.
    specify_prefix : str, or list or tuple of str, optional
        Only names that start with one of them are read.
    choice_func : callable, optional
        Takes a name, and returns whether to load the value with this name.

    Returns
    -------
    dict
        Names and Parameters.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    CheckpointError
        If it is no checkpoint, is damaged, or holds nothing that was asked for; or does not fit `net`.

    Examples
    --------
    >>> import nbgrad as nb, os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nb.save_checkpoint({"a": nb.Tensor([1.0]), "b": nb.Tensor([2.0])}, os.path.join(folder, "pair"))
    ...     nb.load_checkpoint(os.path.join(folder, "pair"), filter_prefix="b")
    {'a': Parameter (name=a, shape=(1,), dtype=Float32, requires_grad=True)}
    """
    del dec_mode, crc_check, remove_redundancy, format
    _not_encrypted("dec_key", dec_key)
    path = _existing(ckpt_file_name)
    left_out = _prefixes("filter_prefix", filter_prefix)
    wanted = _prefixes("specify_prefix", specify_prefix) or ("",)
    found = read_arrays(path)
    chosen: dict[str, Parameter] = {}
    for name, array in found.items():
        if name.startswith(wanted) and not name.startswith(left_out) and (choice_func is None or choice_func(name)):
            chosen[name] = Parameter(array, name=name)
    if not chosen:
        message = (
            f"{path} holds {_listing(found)}, none of which was asked for. Check filter_prefix, specify_prefix and "
            "choice_func."
        )
        raise CheckpointError(message)
    if net is not None:
        load_param_into_net(net, chosen, strict_load)
    return chosen


def _prefixes(name: str, given: Any) -> tuple[str, ...]:
    """A string or several as a tuple."""
    found = (given,) if isinstance(given, str) else tuple(given or ())
    if not all(isinstance(prefix, str) and prefix for prefix in found):
        message = f"{name} must be a string that is not empty, or a list of them, but got {given!r}."
        raise ArgumentError(message)
    return found


def load_param_into_net(
    net: Cell, parameter_dict: Mapping[str, Any], strict_load: bool = False, remove_redundancy: bool = False
) -> tuple[list[str], list[str]]:
    """Give the Parameters of a Cell the values that go by their names.

    Parameters
    ----------
    net : Cell
        A network, an optimizer, or a Cell that holds both.
    parameter_dict : dict
        Names and Parameters (or Tensors or ndarrays), as `load_checkpoint` returns them.
    strict_load : bool
        Whether names and dtypes must agree exactly. If not, Parameters may be missing or left over, and values may be
        widened to the dtype of the Parameter (float32 to float64), but never narrowed.
    remove_redundancy : bool
        MindSpore's; has no effect.

    Returns
    -------
    tuple of list of str
        The Parameters of the Cell that got no value, and the names that the Cell does not have.

    Raises
    ------
    CheckpointError
        If shapes or dtypes do not fit, if no name fits, or, with `strict_load`, if anything is missing or left over. It
        lists everything that is wrong; the Cell is unchanged.
    DtypeError
        If the arguments are no Cell and no dict of arrays.

    Examples
    --------
    >>> import nbgrad as nb
    >>> net = nb.nn.Dense(2, 1)
    >>> nb.load_param_into_net(net, {"weight": nb.Tensor([[1.0, 2.0]])})
    (['bias'], [])
    >>> print(net.weight.value())
    [[1. 2.]]
    """
    if not isinstance(net, Cell) or not isinstance(parameter_dict, Mapping):
        message = (
            "load_param_into_net takes a Cell and a dict of Parameters, but got "
            f"{type(net).__name__} and {type(parameter_dict).__name__}."
        )
        raise DtypeError(message)
    wanted = dict(_named(net))
    given = {name: _array(name, value) for name, value in parameter_dict.items()}
    missing = [name for name in wanted if name not in given]
    left_over = [name for name in given if name not in wanted]
    wrong: list[str] = []
    for name, parameter in wanted.items():
        if name in given:
            wrong += _misfits(name, parameter, given[name], strict_load)
    if strict_load or (wanted and given and len(missing) == len(wanted)):
        wrong += [f"missing: {_listing(missing)}"] if missing else []
        wrong += [f"left over: {_listing(left_over)}"] if left_over else []
    if wrong:
        shown = [*wrong[:MOST_LISTED], f"and {len(wrong) - MOST_LISTED} more"] if len(wrong) > MOST_LISTED else wrong
        message = f"The Parameters do not fit {net.cls_name}, which is unchanged: {'; '.join(shown)}."
        raise CheckpointError(message)
    for name, parameter in wanted.items():
        if name in given:
            parameter.set_data(Tensor(given[name]))
    return missing, left_over


# ----- Values and names -----


def _named(values: Any) -> list[tuple[str, Any]]:
    """Names and values of all that can be saved; DtypeError for anything else, CheckpointError for names that clash."""
    if isinstance(values, Cell):
        by_name: dict[str, Parameter] = {}
        for path, parameter in values.parameters_and_names():
            if by_name.setdefault(parameter.name, parameter) is not parameter:
                message = (
                    f"Two different Parameters of {values.cls_name} have the name {parameter.name!r} (one is at "
                    f"{path}), so that a checkpoint cannot tell them apart. Rename one of them."
                )
                raise CheckpointError(message)
        return list(by_name.items())
    if isinstance(values, Mapping):
        pairs = list(values.items())
    elif isinstance(values, list) and all(isinstance(v, Mapping) and {"name", "data"} <= v.keys() for v in values):
        pairs = [(value["name"], value["data"]) for value in values]
    else:
        message = (
            "What is saved must be a Cell, a dict of names and arrays, or a list of dicts with the keys 'name' and "
            f"'data', but got {type(values).__name__}."
        )
        raise DtypeError(message)
    for name, _ in pairs:
        if not isinstance(name, str) or not name:
            message = f"Names in a checkpoint must be strings that are not empty, but got {name!r}."
            raise DtypeError(message)
    return pairs


def _array(name: str, value: Any) -> np.ndarray:
    """A value as an array in C order."""
    if isinstance(value, Tensor | np.ndarray | np.generic | bool | int | float | complex):
        array = np.array(value.asnumpy() if isinstance(value, Tensor) else value, order="C")
        if array.dtype == np.complex128:
            message = (
                f"{name} is complex128, which the safetensors format does not have. Save x.real and x.imag, or "
                "x.astype(np.complex64)."
            )
            raise DtypeError(message)
        if supported(array.dtype):
            return array.astype(array.dtype.newbyteorder("="))
    message = f"{name} must be a Parameter, Tensor, ndarray or number, but got {type(value).__name__}."
    raise DtypeError(message)


def _misfits(name: str, parameter: Parameter, value: np.ndarray, strict: bool) -> list[str]:
    """Why a Parameter cannot take a value."""
    problems: list[str] = []
    if parameter.shape != value.shape:
        problems.append(f"{name} has shape {parameter.shape}, but the value has shape {value.shape}")
    own = parameter.dtype.dtype
    if own != value.dtype and (strict or not np.can_cast(value.dtype, own, "safe")):
        problems.append(f"{name} has dtype {own}, but the value has dtype {value.dtype}")
    return problems


def _listing(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - MOST_LISTED} more" if len(listed) > MOST_LISTED else ""
    return (", ".join(map(repr, listed[:MOST_LISTED])) or "nothing") + more


# ----- Files -----


def _with_suffix(name: str | os.PathLike[str]) -> str:
    """A file name with a suffix."""
    if not isinstance(name, str | os.PathLike):
        message = f"ckpt_file_name must be a string or a path, but got {type(name).__name__}."
        raise DtypeError(message)
    path = os.fspath(name)
    if not os.path.basename(path):
        message = f"ckpt_file_name must be the name of a file, but got {path!r}."
        raise ArgumentError(message)
    return path if os.path.splitext(path)[1] else path + SUFFIX


def _existing(name: str | os.PathLike[str]) -> str:
    """The file that a name means."""
    path = _with_suffix(name)
    if not os.path.isfile(path):
        path = next((p for p in (os.fspath(name), path) if os.path.isfile(p)), path)
    if not os.path.exists(path):
        message = f"There is no checkpoint {path!r}."
        raise FileNotFoundError(message)
    if not os.path.isfile(path):
        message = f"{path!r} is a folder, not a checkpoint."
        raise CheckpointError(message)
    return path
