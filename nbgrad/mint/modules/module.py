"""PyTorch's `nn.Module` and `nn.Parameter`: a Cell whose Parameters are differentiable leaves, with PyTorch's methods.

In: subclasses that define `forward`, or Cells. Out: `Module`, `Parameter`; `module_class`, the class of a Cell with
PyTorch's methods. Called by the other files of this folder and, as `torch_names.nn.Module`, by users. A module is in
training when it is made. Cells that become attributes of a module get the methods too.
"""

from __future__ import annotations

import copy
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from ... import nn
from ...autograd.grad_modes import no_grad
from ...dtype import DType, dtype_of
from ...errors import CellError, CheckpointError, NameTakenError
from ...nn.cell import Cell
from ...record.tensor import Tensor
from ...tensors.parameter import Parameter as PlainParameter
from ...tensors.parameter import ParameterTuple
from .default_dtype import get_default_dtype

__all__ = ["Module", "Parameter", "ParameterDict", "ParameterList"]
NAMES = {
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
    "embedding_table": "weight",
    "w": "weight",
}
"""PyTorch's names of Parameters of layers, by their own."""
RENAMED = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm", "GroupNorm", "RMSNorm", "Embedding", "PReLU")
_RENAMED = (*[getattr(nn, name) for name in RENAMED], nn.InstanceNorm1d.__mro__[1])
_STATISTICS = ("moving_mean", "moving_variance")


class StateDictError(CheckpointError, RuntimeError):
    """Values that do not fit a module, in PyTorch's words."""


class Keys(NamedTuple):
    """Names that `load_state_dict` has not found, and those that it had no use for."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class _ParameterClass(type):
    """Any Parameter is an instance of PyTorch's class."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, PlainParameter)


class Parameter(PlainParameter, metaclass=_ParameterClass):
    """A Tensor that a module trains.

    Parameters
    ----------
    data : Tensor or ndarray
    requires_grad : bool

    Examples
    --------
    >>> import nbgrad.mint.torch_names as torch
    >>> w = torch.nn.Parameter(torch.ones(2))
    >>> (w * w).sum().backward()
    >>> print(w.grad)
    [2. 2.]
    """

    __slots__ = ()

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        super().__init__(data.detach() if isinstance(data, Tensor) else data, requires_grad=requires_grad)  # pyright: ignore[reportAttributeAccessIssue]
        as_leaf(self)


def as_leaf(parameter: PlainParameter) -> None:
    """Let uses of a Parameter of floats be remembered while it requires gradients."""
    if parameter.dtype.kind in "fc":
        parameter.remember()


class _ModuleClass(type):
    """Classes of modules: an object of the Cell that a class stands for is an instance, too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return super().__instancecheck__(instance) or isinstance(instance, cls.__dict__.get("_stands_for", ()))


class Module(Cell, metaclass=_ModuleClass):
    """A function with Parameters and modules inside; subclasses define `forward`.

    Examples
    --------
    >>> import nbgrad.mint.torch_names as torch
    >>> class Line(torch.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.inner = torch.nn.Linear(2, 1)
    ...     def forward(self, x):
    ...         return self.inner(x).sum()
    >>> net = Line()
    >>> optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    >>> before = net.inner.bias.detach()
    >>> net(torch.ones(3, 2)).backward()
    >>> _ = optimizer.step()
    >>> print(before - net.inner.bias.detach(), [name for name, _ in net.named_parameters()])
    [1.5] ['inner.weight', 'inner.bias']
    """

    words: Mapping[str, str] = {}
    """Options of the Cell below by PyTorch's names of them."""
    _passing: tuple[str, ...] = ()
    """Buffers that are in no `state_dict`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        device, dtype = kwargs.pop("device", None), kwargs.get("dtype")
        if dtype is None:
            kwargs.pop("dtype", None)
        given = {self.words.get(name, name): value for name, value in kwargs.items()}
        super().__init__(*args, **given)
        object.__setattr__(self, "training", True)
        for _, cell in self.cells_and_names():
            cell.training = True
        for parameter in self.get_parameters():
            as_leaf(parameter)
        if dtype is None and get_default_dtype() != dtype_of("float32"):
            self._convert(get_default_dtype())
        if device is not None and str(device) != "cpu":
            super().to(device)

    # ----- Computing -----

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The computation; defined by subclasses."""
        if type(self).construct is Cell.construct:
            message = f'Module [{type(self).__name__}] is missing the required "forward" function'
            raise CellError(message)
        return self.construct(*args, **kwargs)

    def _construct(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return super()._construct(args, kwargs) if hasattr(type(self), "bprop") else self.forward(*args, **kwargs)

    # ----- Attributes -----

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(self._own_name(name), value)

    def __getattr__(self, name: str) -> Any:
        own = self._own_name(name)
        return self.__dict__[own] if own != name else super().__getattr__(name)

    def _own_name(self, name: str) -> str:
        """The name of an attribute for PyTorch's name of it."""
        if isinstance(self, _RENAMED):
            for own, other in NAMES.items():
                if other == name and own in self.__dict__:
                    return own
        return name

    def _assign(self, params: Any, cells: Any, name: str, value: Any) -> None:
        if isinstance(value, Cell):
            as_module(value)
        super()._assign(params, cells, name, value)
        for parameter in value if isinstance(value, ParameterTuple) else (value,):
            if isinstance(parameter, PlainParameter):
                as_leaf(parameter)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Add an array that is no Parameter; `state_dict` has it if it is `persistent`."""
        super().register_buffer(name, tensor)
        passing = tuple([one for one in self._passing if one != name])
        object.__setattr__(self, "_passing", passing if persistent else (*passing, name))

    def register_parameter(self, name: str, param: PlainParameter | None) -> None:
        """Add a Parameter under a name; None is an attribute without one."""
        if param is None:
            setattr(self, name, None)
        else:
            self.insert_param_to_cell(name, param)

    def add_module(self, name: str, module: Cell | None) -> None:
        """Add a module under a name; None is an attribute without one."""
        if module is None:
            setattr(self, name, None)
        else:
            self.insert_child_to_cell(name, module)

    register_module = add_module

    # ----- What is inside -----

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, PlainParameter]]:
        """Names and Parameters; shared ones once, unless `remove_duplicate` is false."""
        seen: set[int] = set()
        for path, kept, kind in _entries(self, prefix, recurse):
            if kind == "parameter" and not (remove_duplicate and id(kept) in seen):
                seen.add(id(kept))
                yield path, kept

    def parameters(self, recurse: bool = True) -> Iterator[PlainParameter]:
        """The Parameters, each once."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Names and values of the buffers, among them running statistics; writes to them are kept."""
        seen: set[int] = set()
        for path, kept, kind in _entries(self, prefix, recurse):
            if kind != "parameter" and not (remove_duplicate and id(kept) in seen):
                seen.add(id(kept))
                yield path, kept.data

    def named_children(self) -> Iterator[tuple[str, Cell]]:
        """Names and modules directly inside, each once."""
        yield from self.name_cells().items()

    def children(self) -> Iterator[Cell]:
        """The modules directly inside, each once."""
        yield from self.name_cells().values()

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Cell]]:
        """Names and modules of the whole tree, this one first."""
        seen = set() if memo is None else memo
        for path, cell in _tree(self, prefix):
            if not (remove_duplicate and cell in seen):
                seen.add(cell)
                yield path, cell

    def modules(self) -> Iterator[Cell]:
        """The modules of the whole tree, this one first."""
        for _, cell in self.named_modules():
            yield cell

    def get_submodule(self, target: str) -> Any:
        """The module of a path, such as "encoder.0"."""
        found: Any = self
        for name in target.split(".") if target else ():
            if name not in found._cells:
                message = f"{type(found).__name__} has no attribute `{name}`"
                raise CellError(message)
            found = found._cells[name]
        return found

    def get_parameter(self, target: str) -> PlainParameter:
        """The Parameter of a path."""
        found = dict(self.named_parameters(remove_duplicate=False))
        if target not in found:
            message = f"{type(self).__name__} has no attribute `{target}`"
            raise CellError(message)
        return found[target]

    # ----- State -----

    def state_dict(self, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> OrderedDict[str, Any]:
        """All Parameters and buffers by name: their data, so that writes to them are writes to the module.

        Parameters
        ----------
        destination : dict, optional
            Takes the entries.
        prefix : str
            Put before the names.
        keep_vars : bool
            Whether to give the Parameters themselves.
        """
        found = OrderedDict() if destination is None else destination
        for path, kept, kind in _entries(self, prefix.removesuffix(".")):
            if kind != "passing buffer":
                found[path] = kept if keep_vars else kept.data
        return found

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Keys:
        """Take values of Parameters and buffers by name; arrays of PyTorch's and NumPy's are taken too.

        Parameters
        ----------
        state_dict : dict
        strict : bool
            Whether names must agree.
        assign : bool
            Has no effect.

        Returns
        -------
        named tuple
            `missing_keys` and `unexpected_keys`.

        Raises
        ------
        StateDictError
            If names or shapes do not fit. (A RuntimeError and a ValueError.)
        """
        own = {path: kept for path, kept, kind in _entries(self) if kind != "passing buffer"}
        missing = [path for path in own if path not in state_dict]
        unexpected = [path for path in state_dict if path not in own and not path.endswith("num_batches_tracked")]
        wrong = []
        if strict and unexpected:
            wrong.append(f"Unexpected key(s) in state_dict: {_listed(unexpected)}.")
        if strict and missing:
            wrong.append(f"Missing key(s) in state_dict: {_listed(missing)}.")
        values = {path: _array(state_dict[path]) for path in own if path in state_dict}
        wrong += [
            f"size mismatch for {path}: copying a param with shape {tuple(value.shape)} from checkpoint, the shape in "
            f"current model is {tuple(own[path].shape)}."
            for path, value in values.items()
            if tuple(value.shape) != tuple(own[path].shape)
        ]
        if wrong:
            message = "\n\t".join([f"Error(s) in loading state_dict for {type(self).__name__}:", *wrong])
            raise StateDictError(message)
        for path, value in values.items():
            own[path].set_data(value.astype(own[path].dtype))
        return Keys(missing, unexpected)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all Parameters, or make them zero."""
        for parameter in self.parameters():
            forget_gradient(parameter, set_to_none)

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Set whether the Parameters are trained; returns the module."""
        for parameter in self.parameters():
            parameter.requires_grad = requires_grad
        return self

    def train(self, mode: bool = True) -> Module:
        """Set the whole tree to training or to evaluation; returns the module."""
        if not isinstance(mode, bool):
            message = "training mode is expected to be boolean"
            raise CellError(message)
        self.training = mode
        for cell in self.cells():
            cell.train(mode) if isinstance(cell, Module) else cell.set_train(mode)
        return self

    def eval(self) -> Module:
        """Set the whole tree to evaluation; returns the module."""
        return self.train(False)

    # ----- Dtypes and devices -----

    def _convert(self, dtype: DType) -> Module:
        with no_grad():
            for _, kept, _ in _entries(self):
                if kept.dtype.kind == "f" and kept.dtype != dtype:
                    gradient, kept.grad = kept.grad, None
                    kept.set_dtype(dtype)
                    kept.grad = None if gradient is None else gradient.astype(dtype)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Give all Parameters and buffers of floats a dtype, or move all to a device; returns the module."""
        for given in [*args, *[kwargs.get(name) for name in ("device", "dtype")]]:
            if isinstance(given, Tensor):
                self._convert(dtype_of(given.dtype))
            elif isinstance(given, DType | np.dtype | type):
                self._convert(dtype_of(given))
            elif given is not None and not isinstance(given, bool):
                super().to(given if isinstance(given, str) else str(given))
        return self

    def type(self, dst_type: Any) -> Any:
        """Give all Parameters and buffers of floats a dtype; returns the module."""
        return self._convert(dtype_of(dst_type))

    def double(self) -> Any:
        """Float64 Parameters and buffers; returns the module."""
        return self._convert(dtype_of("float64"))

    def float(self) -> Any:
        """Float32 Parameters and buffers; returns the module."""
        return self._convert(dtype_of("float32"))

    def half(self) -> Any:
        """Float16 Parameters and buffers; returns the module."""
        return self._convert(dtype_of("float16"))

    # ----- Hooks and text -----

    def register_full_backward_hook(self, hook: Callable[..., Any]) -> Any:
        """Call `hook(module, grad_input, grad_output)` in the backward pass; inputs without a gradient have None."""
        return self._register("gradient of module", hook)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any]) -> Any:
        """Call `hook(module, grad_output)` in the backward pass, before the module's own derivative."""
        return self.register_backward_pre_hook(hook)

    def extra_repr(self) -> str:
        """The text of the module besides those inside; for subclasses."""
        return super().extend_repr()

    def extend_repr(self) -> str:
        """The text of the module besides those inside."""
        return self.extra_repr()


Module._stands_for = Cell  # pyright: ignore[reportAttributeAccessIssue]


def _tree(cell: Cell, path: str) -> Iterator[tuple[str, Cell]]:
    """The paths of a tree of Cells, those of shared ones all."""
    yield path, cell
    for name, inner in cell._cells.items():
        yield from _tree(inner, f"{path}.{name}" if path else name)


def _entries(cell: Cell, prefix: str = "", recurse: bool = True) -> Iterator[tuple[str, Any, str]]:
    """Paths, Parameters and kinds ("parameter", "buffer", "passing buffer") of all that a tree of Cells holds."""
    for path, inner in _tree(cell, prefix) if recurse else [(prefix, cell)]:
        before = f"{path}." if path else ""
        last = []
        for name, parameter in inner._params.items():
            entry = before + name_in_torch(inner, name), parameter
            if name in _STATISTICS:
                last.append(entry)
            else:
                yield *entry, "parameter"
        for entry in last:
            yield *entry, "buffer"
        passing = getattr(inner, "_passing", ())
        for name, kept in inner._kept_buffers().items():
            if kept is not None:
                yield before + name, kept, "passing buffer" if name in passing else "buffer"


def name_in_torch(cell: Cell, name: str) -> str:
    """PyTorch's name of an attribute of a layer."""
    return NAMES.get(name, name) if isinstance(cell, _RENAMED) else name


def _listed(names: list[str]) -> str:
    return ", ".join([f'"{name}"' for name in names])


def _array(value: Any) -> Any:
    """A value of a `state_dict` as a Tensor."""
    return value if isinstance(value, Tensor) else Tensor(np.array(value))


def forget_gradient(parameter: Any, set_to_none: bool) -> None:
    """Forget a gradient, or make it zero."""
    if parameter.grad is not None:
        parameter.grad = None if set_to_none else parameter.grad.detach() * 0


_CLASSES: dict[type, type] = {}


def module_class(
    base: type, name: str | None = None, words: Mapping[str, str] | None = None, first: type = Module
) -> type:
    """The class of a Cell's class with PyTorch's methods, always the same one.

    Parameters
    ----------
    base : type
        A class of Cells.
    name : str, optional
        The class's name; by default that of the base.
    words : mapping, optional
        Options of the base by PyTorch's names of them.
    first : type
        A subclass of Module whose members come before those of the base.
    """
    if issubclass(base, Module):
        return base
    if base not in _CLASSES:
        body = {"__doc__": base.__doc__, "__module__": base.__module__, "words": words or {}}
        _CLASSES[base] = _ModuleClass(name or base.__name__, (first, base), body)
    return _CLASSES[base]


def as_module(cell: Cell) -> None:
    """Give a Cell, and those inside, PyTorch's methods, and let uses of their Parameters be remembered."""
    for _, inner in cell.cells_and_names():
        if not issubclass(type(inner), Module):
            inner.__class__ = module_class(type(inner))
        for parameter in inner._params.values():
            as_leaf(parameter)


def copies(module: Cell, count: int) -> list[Any]:
    """Copies of a module with Parameters of their own."""
    return [copy.deepcopy(module) for _ in range(count)]


class ParameterList(Module):
    """A list of Parameters that are found."""

    def __init__(self, values: Any = ()) -> None:
        super().__init__()
        self.extend(values)

    def append(self, value: Any) -> ParameterList:
        """Add one at the end; returns the list."""
        setattr(self, str(len(self)), value if isinstance(value, PlainParameter) else Parameter(value))
        return self

    def extend(self, values: Any) -> ParameterList:
        """Add several at the end; returns the list."""
        for value in values:
            self.append(value)
        return self

    def __len__(self) -> int:
        return len(self._params)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._params.values()))

    def __getitem__(self, index: Any) -> Any:
        return list(self._params.values())[index]

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, list(self._params)[index], value)


class ParameterDict(Module):
    """Parameters by name that are found."""

    def __init__(self, parameters: Any = ()) -> None:
        super().__init__()
        self.update(parameters)

    def update(self, parameters: Any) -> None:
        """Add Parameters from a mapping or from pairs."""
        for name, value in parameters.items() if hasattr(parameters, "items") else parameters:
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        setattr(self, name, value if isinstance(value, PlainParameter) else Parameter(value))

    def __getitem__(self, name: str) -> Any:
        if name not in self._params:
            raise NameTakenError(name)
        return self._params[name]

    def __contains__(self, name: object) -> bool:
        return name in self._params

    def __len__(self) -> int:
        return len(self._params)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._params))

    def keys(self) -> Any:
        """The names."""
        return self._params.keys()

    def values(self) -> Any:
        """The Parameters."""
        return self._params.values()

    def items(self) -> Any:
        """Names and Parameters."""
        return self._params.items()
