"""Cell: a function with Parameters and sub-cells.

In: a subclass that makes Parameters and Cells in `__init__` and computes in `construct`. Out: a callable that every
transform takes like a function, and the tree of its Parameters under their names. Called by users and by all layers. A
Cell only keeps books: `construct` is recorded like any other function.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import optree

from ..dtype import DType, dtype_of
from ..errors import ArgumentError, CellError, DtypeError, NameTakenError
from ..graph.trace import CELLS, Trace, current_trace
from ..process.modes import KEEPS
from ..record.tensor import Tensor
from ..runtime.evaluate import compute, finish_pending
from ..tensors.parameter import Parameter, ParameterTuple
from ..transforms.arguments import flatten
from ..transforms.custom import custom_vjp
from ..transforms.recomputed import checkpoint
from .cell_buffers import BufferedCell
from .cell_hooks import HookedCell, hooked_call
from .cell_marks import MarkedCell

_SIMPLE = (bool, int, float, str, type(None), DType)


class _Outermost(threading.local):
    """Whether a Cell of this thread is being called."""

    inside = False


_outermost = _Outermost()


_BOOKS = frozenset(["_params", "_cells", "_with_rule", "_prefix"])
LONGEST_LIST = 256
"""Lists and dicts of at most this many elements are compared by value."""


def _frozen(value: Any, depth: int = 0) -> Any:
    """A form of an attribute that tells later whether it has changed: numbers, texts and small containers by value."""
    if isinstance(value, _SIMPLE):
        return type(value), value
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return _Identity(value._node)
    if type(value) in (list, tuple, dict) and len(value) <= LONGEST_LIST and depth < 3:
        parts = value.items() if isinstance(value, dict) else value
        return type(value), [_frozen(part, depth + 1) for part in parts]
    return _Identity(value)


class _Identity:
    """An attribute that is compared by identity: an array, a function."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.value is other.value

    __hash__ = None  # type: ignore[assignment]


class Cell(HookedCell, MarkedCell, BufferedCell):
    """A function with Parameters and sub-cells; subclasses define `construct`.

    Parameters
    ----------
    auto_prefix : bool
        Whether Parameters of sub-cells take the attribute's name before their own.
    flags : dict, optional
        Attributes to set, MindSpore's `add_flags`.

    Notes
    -----
    A Parameter or Cell that is assigned to an attribute is registered. A Tensor that is assigned to a registered
    Parameter becomes its value. Parameters in plain lists and dicts are not found: use `CellList`, `ParameterTuple`.

    Examples
    --------
    >>> import nbgrad as nb
    >>> class Line(nb.nn.Cell):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.w = nb.Parameter(nb.Tensor([6.0]), name="w")
    ...         self.b = nb.Parameter(nb.Tensor([1.0]), name="b")
    ...
    ...     def construct(self, x):
    ...         return self.w * x + self.b
    >>> net = Line()
    >>> print(net(nb.Tensor([100.0])), *nb.grad(net, None, net.trainable_params())(nb.Tensor([100.0])))
    [601.] [100.] [1.]
    """

    _params: OrderedDict[str, Parameter]
    _cells: OrderedDict[str, Cell]
    _compute_dtype: Any
    _again = False
    """Whether what it computes inside is computed again in the backward pass."""
    _with_rule: custom_vjp | None
    _prefix: str
    """The prefix of the names of its Parameters, as the last Cell that took this one has named them."""
    training: bool
    requires_grad: bool

    def __init__(self, auto_prefix: bool = True, flags: dict[str, Any] | None = None) -> None:
        put = object.__setattr__
        put(self, "_params", OrderedDict())
        put(self, "_cells", OrderedDict())
        put(self, "_auto_prefix", auto_prefix)
        put(self, "_compute_dtype", None)
        put(self, "_with_rule", None)
        put(self, "_prefix", "")
        put(self, "training", False)
        put(self, "requires_grad", False)
        for name, value in (flags or {}).items():
            setattr(self, name, value)

    # ----- Computing -----

    def construct(self, *args: Any, **kwargs: Any) -> Any:
        """The computation of the Cell; defined by subclasses."""
        message = f"{type(self).__name__} has no construct method. Define construct(self, ...) to say what it computes."
        raise CellError(message)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run `construct`; outside of recordings, the output of the outermost Cell is computed at once."""
        trace = current_trace()
        if trace is not None:
            return self._called(args, kwargs) if trace.guards is None else self._recorded(trace, args, kwargs)
        if _outermost.inside:
            return self._called(args, kwargs)
        _outermost.inside = True
        try:
            return _computed(self._called(args, kwargs))
        finally:
            _outermost.inside = False

    def _recorded(self, trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call that `jit` records: it depends on the state of the whole tree, whether its Cells are called or not."""
        if self in trace.cells:
            return self._called(args, kwargs)
        for _, cell in self.cells_and_names():
            trace.cells.setdefault(cell, None)
        result = self._called(args, kwargs)
        for _, cell in self.cells_and_names():
            trace.cells[cell] = cell._state()
        return result

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        compute = checkpoint(self._cast_and_called) if self._again else self._cast_and_called
        return hooked_call(self, args, kwargs, compute) if self._hooks else compute(args, kwargs)

    def _cast_and_called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if self._compute_dtype is not None:
            args, kwargs = _cast(args, self._compute_dtype), _cast(kwargs, self._compute_dtype)
            with self._cast_parameters(self._compute_dtype):
                return self._construct(args, kwargs)
        return self._construct(args, kwargs)

    def _construct(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if hasattr(type(self), "bprop"):
            if self._with_rule is None:
                self._with_rule = custom_vjp(self.construct, bprop=self._backward)
            return self._with_rule(*args, **kwargs)
        return self.construct(*args, **kwargs)

    @contextmanager
    def _cast_parameters(self, dtype: Any) -> Iterator[None]:
        """Let `construct` see this Cell's Parameters in another dtype."""

        def convert(parameter: Parameter) -> Tensor:
            return parameter.astype(dtype) if parameter.dtype.kind == "f" else parameter

        attributes = self.__dict__
        own = {name: value for name, value in attributes.items() if isinstance(value, Parameter | ParameterTuple)}
        for name, value in own.items():
            attributes[name] = tuple(map(convert, value)) if isinstance(value, ParameterTuple) else convert(value)
        try:
            yield
        finally:
            attributes.update(own)

    def _backward(self, *args: Any) -> Any:
        """The Cell's own derivative, whose last two arguments are the output and its cotangent."""
        return self.bprop(*args[:-2], out=args[-2], dout=args[-1]) if _by_keyword(self.bprop) else self.bprop(*args)

    # ----- Attributes -----

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            params, cells = self._params, self._cells
        except AttributeError:
            if isinstance(value, Parameter | Cell):
                message = (
                    f"Cannot assign {name} to {type(self).__name__} before super().__init__() was called. Call it "
                    "first in __init__."
                )
                raise CellError(message) from None
            object.__setattr__(self, name, value)
            return
        try:
            self._assign(params, cells, name, value)
        finally:
            CELLS.token = object()

    def _assign(self, params: Any, cells: Any, name: str, value: Any) -> None:
        if self._assigned_buffer(name, value):
            return
        if isinstance(value, ParameterTuple):
            known = {id(parameter) for parameter in params.values()}
            for parameter in value:
                if id(parameter) not in known:
                    self._insert_unnamed(parameter, name)
        elif isinstance(value, Parameter):
            if not value.is_named:
                value.name = name
            cells.pop(name, None)
            params[name] = value
        elif isinstance(value, Cell):
            if self._auto_prefix:
                value._name_parameters(self._prefix_of_children() + name + ".")
            params.pop(name, None)
            cells[name] = value
        elif name in params:
            # In `construct` a number is a value, as in MindSpore's graph mode.
            inside = _outermost.inside or current_trace() is not None
            if inside and isinstance(value, int | float) and params[name].size == 1:
                value = Tensor(value).astype(params[name].dtype).reshape(params[name].shape)
            if isinstance(value, Tensor):
                params[name].set_data(value)
                return
            if value is not None:
                message = (
                    f"{name} of {type(self).__name__} is a Parameter; it takes a Parameter or a Tensor, but got "
                    f"{type(value).__name__}. Use Tensor({value!r}), or del the attribute first."
                )
                raise DtypeError(message)
            del params[name]
        elif name in cells:
            if value is not None:
                message = (
                    f"{name} of {type(self).__name__} is a Cell; it takes another Cell, but got "
                    f"{type(value).__name__}. Delete the attribute first to use the name for something else."
                )
                raise DtypeError(message)
            del cells[name]
        object.__setattr__(self, name, value)

    def _insert_unnamed(self, parameter: Parameter, name: str) -> None:
        """Register a Parameter of a ParameterTuple, under its own name."""
        if not parameter.is_named:
            parameter.name = f"{name}.{len(self._params)}"
        if parameter.name in self._params:
            message = (
                f"{type(self).__name__} has two different Parameters with the name {parameter.name!r}. Give "
                "each its own name."
            )
            raise NameTakenError(message)
        self._params[parameter.name] = parameter

    def __delattr__(self, name: str) -> None:
        self._params.pop(name, None)
        self._cells.pop(name, None)
        try:
            object.__delattr__(self, name)
        finally:
            CELLS.token = object()

    def __getattr__(self, name: str) -> Any:
        if name in self._kept_buffers():
            return self._value_of_buffer(name)
        message = f"{type(self).__name__} has no attribute {name!r}."
        if name in ("_params", "_cells", "_compute_dtype", "_with_rule", "training"):
            message = f"{type(self).__name__}.__init__() must call super().__init__() before it uses the Cell."
        raise CellError(message)

    def _state(self) -> dict[str, Any]:
        """The state that guards a compiled function: the Cell's attributes, without the values of its Parameters."""
        return {name: _frozen(value) for name, value in self.__dict__.items() if name not in _BOOKS}

    def _changes_silently(self) -> bool:
        """Whether attributes can change without being assigned to."""
        return any(type(value) in (list, dict) for name, value in self.__dict__.items() if name not in _BOOKS)

    def insert_param_to_cell(self, param_name: str, param: Parameter, check_name_contain_dot: bool = True) -> None:
        """Register a Parameter under a name.

        Parameters
        ----------
        param_name : str
        param : Parameter
        check_name_contain_dot : bool
            Whether a name with a dot is refused.

        Raises
        ------
        NameTakenError
            If the name is empty, has a dot, or is taken by another attribute. (A KeyError.)
        DtypeError
            If `param` is no Parameter.
        """
        if not isinstance(param_name, str):
            message = f"param_name must be a string, but got {type(param_name).__name__}."
            raise DtypeError(message)
        if not param_name or (check_name_contain_dot and "." in param_name):
            message = f"param_name must be a name without dots, but got {param_name!r}."
            raise NameTakenError(message)
        if hasattr(self, param_name) and param_name not in self._params:
            message = f"param_name {param_name!r} is already the name of another attribute of {type(self).__name__}."
            raise NameTakenError(message)
        if not isinstance(param, Parameter):
            message = f"param must be a Parameter, but got {type(param).__name__}."
            raise DtypeError(message)
        setattr(self, param_name, param)

    def insert_child_to_cell(self, child_name: str, child_cell: Cell) -> None:
        """Register a Cell under a name.

        Raises
        ------
        NameTakenError
            If the name is empty or taken. (A KeyError.)
        DtypeError
            If `child_cell` is no Cell.
        """
        if not isinstance(child_name, str) or not child_name:
            message = f"child_name must be a name, but got {child_name!r}."
            raise NameTakenError(message)
        if hasattr(self, child_name) and child_name not in self._cells:
            message = f"child_name {child_name!r} is already the name of another attribute of {type(self).__name__}."
            raise NameTakenError(message)
        if not isinstance(child_cell, Cell):
            message = f"child_cell must be a Cell, but got {type(child_cell).__name__}."
            raise DtypeError(message)
        setattr(self, child_name, child_cell)

    # ----- Parameters -----

    def parameters_and_names(self, name_prefix: str = "", expand: bool = True) -> Iterator[tuple[str, Parameter]]:
        """Every Parameter with its path; a shared one once, under its first path.

        Parameters
        ----------
        name_prefix : str
            Put before every path.
        expand : bool
            Whether sub-cells are visited.
        """
        seen: set[int] = set()
        cells = self.cells_and_names(name_prefix) if expand else iter([(name_prefix, self)])
        for path, cell in cells:
            for name, parameter in cell._params.items():
                if id(parameter) not in seen:
                    seen.add(id(parameter))
                    yield (f"{path}.{name}" if path else name), parameter

    def get_parameters(self, expand: bool = True) -> Iterator[Parameter]:
        """Every Parameter once: the Cell's own first, then those of its sub-cells (unless `expand` is false)."""
        return (parameter for _, parameter in self.parameters_and_names(expand=expand))

    def trainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The Parameters with `requires_grad`."""
        return [parameter for parameter in self.get_parameters(recurse) if parameter.requires_grad]

    def untrainable_params(self, recurse: bool = True) -> list[Parameter]:
        """The Parameters without `requires_grad`."""
        return [parameter for parameter in self.get_parameters(recurse) if not parameter.requires_grad]

    def parameters_dict(self, recurse: bool = True) -> OrderedDict[str, Parameter]:
        """Every Parameter by its own name."""
        return OrderedDict((parameter.name, parameter) for parameter in self.get_parameters(recurse))

    def update_parameters_name(self, prefix: str = "", recurse: bool = True) -> None:
        """Name every Parameter by its path in this Cell, after a prefix.

        Raises
        ------
        DtypeError
            If the prefix is no string.
        """
        if not isinstance(prefix, str):
            message = f"prefix must be a string, but got {type(prefix).__name__}."
            raise DtypeError(message)
        self._name_parameters(prefix, recurse)

    def _name_parameters(self, prefix: str, recurse: bool = True) -> None:
        """Put a prefix before the names of any Cell's Parameters, by their paths."""
        for path, parameter in self.parameters_and_names(expand=recurse):
            parameter.name = prefix + path
        for path, cell in self.cells_and_names() if recurse else [("", self)]:
            object.__setattr__(cell, "_prefix", f"{prefix}{path}." if path else prefix)

    def _prefix_of_children(self) -> str:
        """The prefix of the Parameters' names of Cells that become attributes later: as in MindSpore, none."""
        return ""

    def init_parameters_data(self, auto_parallel_mode: bool = False) -> dict[Parameter, Parameter]:
        """Every Parameter, mapped to itself: the data is there from the start."""
        del auto_parallel_mode
        return {parameter: parameter.init_data() for parameter in self.get_parameters()}

    # ----- Sub-cells -----

    def cells(self) -> Any:
        """The direct sub-cells."""
        return self._cells.values()

    def name_cells(self) -> OrderedDict[str, Cell]:
        """The direct sub-cells by attribute, each once."""
        named: OrderedDict[str, Cell] = OrderedDict()
        for name, cell in self._cells.items():
            if cell not in named.values():
                named[name] = cell
        return named

    def cells_and_names(self, name_prefix: str = "") -> Iterator[tuple[str, Cell]]:
        """The whole tree with paths, this Cell first; a shared Cell once, under its first path."""
        seen: set[Cell] = {self}
        stack: list[tuple[str, Cell]] = [(name_prefix, self)]
        while stack:
            path, cell = stack.pop()
            yield path, cell
            found: list[tuple[str, Cell]] = []
            for name, child in cell._cells.items():
                if child not in seen:
                    seen.add(child)
                    found.append((f"{path}.{name}" if path else name, child))
            stack.extend(reversed(found))

    def apply(self, fn: Callable[[Cell], Any]) -> Cell:
        """Call a function on every Cell of the tree, children first.

        Returns
        -------
        Cell
            This one.
        """
        for cell in self.cells():
            cell.apply(fn)
        fn(self)
        return self

    # ----- Modes -----

    def set_train(self, mode: bool = True) -> Cell:
        """Set the whole tree to training or, with `mode=False`, to evaluation; returns this Cell.

        Raises
        ------
        DtypeError
            If the mode is no bool.
        """
        if not isinstance(mode, bool):
            message = f"mode must be a bool, but got {mode!r} of type {type(mode).__name__}."
            raise DtypeError(message)
        for _, cell in self.cells_and_names():
            cell.training = mode
        return self

    def to(self, device: Any) -> Cell:
        """Move all Parameters of the tree to a device, or to the CPU.

        Parameters
        ----------
        device : str or Device
            "cuda", "cuda:1", "cpu".

        Returns
        -------
        Cell
            This one. Optimizers follow when they are called next.

        Raises
        ------
        ArgumentError, DeviceError
            If there is no such device.
        TracedValueError
            While a function is recorded.

        Examples
        --------
        >>> import nbgrad as nb
        >>> with nb.cuda.simulator():
        ...     net = nb.nn.Dense(3, 2).to("cuda")
        ...     net.weight.device
        cuda:0
        """
        for parameter in self.get_parameters():
            parameter._move(device)
        return self

    def cpu(self) -> Cell:
        """Move all Parameters to the CPU's memory; returns this Cell."""
        return self.to("cpu")

    def cuda(self, device: Any = "cuda") -> Cell:
        """Move all Parameters to a GPU; returns this Cell."""
        return self.to(device)

    def set_grad(self, requires_grad: bool = True) -> Cell:
        """Set `requires_grad` of this Cell alone, as MindSpore does; returns the Cell."""
        self.requires_grad = requires_grad
        return self

    def to_float(self, dst_type: Any) -> Cell:
        """Compute in a dtype: inputs and Parameters of this Cell and of its sub-cells are cast before `construct`.

        Parameters
        ----------
        dst_type : dtype
            float16, float32 or float64.

        Returns
        -------
        Cell
            This one.

        Raises
        ------
        ArgumentError
            For another dtype.
        """
        dtype = dtype_of(dst_type)
        if dtype.kind != "f":
            message = f"to_float takes float16, float32 or float64, but got {dtype}."
            raise ArgumentError(message)
        for _, cell in self.cells_and_names():
            cell._compute_dtype = dtype
        return self

    def recompute(self, **kwargs: Any) -> None:
        """Compute what is inside again in the backward pass, instead of storing it, as `nb.checkpoint` does."""
        object.__setattr__(self, "_again", True)

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Does nothing: calls compile by themselves. (`nb.jit(cell)` freezes the Cell.)"""

    # ----- Text -----

    @property
    def cls_name(self) -> str:
        """The name of the class."""
        return type(self).__name__

    def extend_repr(self) -> str:
        """The text of the Cell besides its sub-cells; for subclasses."""
        return ""

    def __repr__(self) -> str:
        extra = self.extend_repr()
        if not self._cells:
            return f"{self.cls_name}({extra})"
        lines = [extra] if extra else []
        lines += [f"({name}): {cell!r}" for name, cell in self._cells.items()]
        inner = "\n".join(lines).replace("\n", "\n  ")
        return f"{self.cls_name}(\n  {inner}\n)"


def _computed(result: Any) -> Any:
    """The Tensors that a Cell returned, all computed by one program; those that remember stay as they are."""
    leaves, treespec = flatten(result)
    lazy = [leaf for leaf in leaves if type(leaf) is Tensor and leaf._node.value is None]
    lazy = [leaf for leaf in lazy if not leaf._node.traced & KEEPS]
    if not lazy:
        finish_pending()
        return result
    values = iter(compute([leaf._node for leaf in lazy]))
    known = [Tensor._holding(next(values)) if any(leaf is one for one in lazy) else leaf for leaf in leaves]
    return optree.tree_unflatten(treespec, known)


def _cast(values: Any, dtype: Any) -> Any:
    """Floating-point Tensors among arguments in another dtype."""

    def convert(value: Any) -> Any:
        return value.astype(dtype) if isinstance(value, Tensor) and value.dtype.kind == "f" else value

    if isinstance(values, dict):
        return {name: convert(value) for name, value in values.items()}
    return tuple([convert(value) for value in values])


def _by_keyword(bprop: Callable[..., Any]) -> bool:
    """Whether a rule takes `out` and `dout` by keyword only."""
    code = getattr(bprop, "__code__", None)
    if code is None:
        return False
    return "dout" in code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
