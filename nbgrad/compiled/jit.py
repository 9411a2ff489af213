"""`jit`: record a function once per signature, then only run it.

In: a function. Out: a callable with the same arguments. The signature is the structure of the arguments, the shapes and
dtypes of arrays, and the values of everything else; Python floats are run-time inputs. A call like the last one goes
straight to native code: with ndarrays and floats only to the program, otherwise to the path's shortcut
(specialization.py). Branches on values become guards: each path is compiled once, and the path taken last is tried
first. Called by users.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np
import optree

from .. import config
from ..errors import DtypeError, NbgradError, TracedValueError
from ..graph.interpret import interpret
from ..graph.ir import Node, placeholder, plain, topological
from ..graph.trace import CELLS, Trace, current_trace, recording
from ..process.locks import ForkSafeLock
from ..record.foreign_arrays import computes_itself, described_output, full_name
from ..record.shared_memory import strides_in_memory
from ..record.tensor import Tensor
from ..record.written_arguments import Callers, check_store
from ..record.zero_dimensional import is_array
from ..runtime.cpu_program import MISSED, Output, Program, missed
from ..runtime.evaluate import computed, finish_pending, make_program, ready, refuse
from ..transforms.argument_positions import check_function
from ..transforms.arguments import Lent, flatten, kind_of, lent, name_of, node_of, results_as
from .device_calls import device_of_graph, device_targets
from .device_shortcuts import device_replay
from .out_arguments import (
    check_donate,
    check_donated,
    check_targets,
    copy_constants,
    copy_to,
    direct_targets,
    donated_leaves,
)
from .shortcuts import shortcut
from .signatures import dynamic_kind, flatten_in_order, signature
from .specialization import RESULT, Path, Paths, one_callers

MOST_PATHS = 256
_uses = count()


class Jitted:
    """A function that is compiled on first use. Made by `jit`."""

    def __init__(self, fn: Callable[..., Any], donate: tuple[int, ...] = ()) -> None:
        functools.update_wrapper(self, fn, updated=())
        self.fn = fn
        self.donate = donate
        self._own_out = _has_out(fn)
        self._native: Path | None = None
        self._replay: Callable[[Sequence[Any], Any], bool] | None = None
        self._paths: dict[Any, Paths] = {}
        self._lock = ForkSafeLock()
        self._fast: Callable[..., Any] = self._general

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the compiled function; `out` takes arrays for the results, unless the function has its own `out`."""
        try:
            if kwargs:
                if "out" in kwargs and not self._own_out:
                    out = kwargs.pop("out")
                    if out is not None:
                        return self._general_into(out, args, kwargs)
                return self._general(*args, **kwargs)
            return self._fast(*args)
        except MemoryError as error:
            programs = [program for program in self.paths() if isinstance(program, Program)]
            if error.args or not programs:
                raise
            largest = max(programs, key=lambda program: program.needed_bytes)
            lacking = largest.out_of_memory(f"{name_of(self.fn)}()")
            raise lacking from None

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Bind methods, so that `jit` decorates them too."""
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<jit of {name_of(self.fn)}>"

    def __reduce__(self) -> Any:
        """A copy, also in another process, compiles for itself."""
        return Jitted, (self.fn, self.donate)

    def __getattr__(self, name: str) -> Any:
        """What a compiled Cell has, such as `trainable_params`."""
        if name.startswith("_") or name == "fn":
            raise AttributeError(name)
        return getattr(self.fn, name)

    @property
    def compiled_signatures(self) -> int:
        """For how many signatures the function was recorded."""
        return len(self._paths)

    def paths(self) -> list[Program]:
        """The compiled programs, the one used last first."""
        return [path.program for paths in self._paths.values() for path in paths if path.program is not None]

    def _general(self, *args: Any, **kwargs: Any) -> Any:
        """Any call: find or record the path, run it."""
        if current_trace() is not None:
            # Another function is being recorded: become part of it. What this one reads from outside may be what the
            # other one is differentiated with respect to.
            return self.fn(*args, **kwargs)
        return self._find(args, kwargs, None)

    def _general_into(self, out: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Any call with arrays for the results."""
        if current_trace() is not None:
            message = f"{name_of(self.fn)}() is called with out= while it is recorded. Use what it returns instead."
            raise TracedValueError(message)
        if self._replay is not None and not kwargs and self._replay(args, out):
            return out
        path = self._native
        if path is None or kwargs or path.program is None or config.interpret():
            return self._find(args, kwargs, out)
        try:
            targets = self._targets(path, out)
        except NbgradError:
            # Perhaps the arguments are others too.
            return self._find(args, kwargs, out)
        direct = direct_targets(targets, args)
        if path.program.call_into(*args, *direct) is MISSED:
            return self._find(args, kwargs, out)
        copy_to(targets, direct)
        return out

    def _targets(self, path: Path, out: Any) -> list[np.ndarray]:
        leaves = [None if leaf is RESULT else leaf for leaf in path.leaves]
        return check_targets(out, path.treespec, leaves, path.outputs[: path.result_count], name_of(self.fn))

    def _find(self, args: tuple[Any, ...], kwargs: dict[str, Any], out: Any) -> Any:
        leaves, treespec = flatten_in_order((args, kwargs))
        leaves = [lent(leaf) for leaf in leaves]
        if self.donate:
            check_donated(leaves, donated_leaves(self.donate, treespec, name_of(self.fn)), name_of(self.fn))
        key, dynamic = signature(leaves, treespec)
        paths = self._paths_of(key)
        giver = results_as(dynamic)
        if giver and giver is not True:
            with giver.working():
                return self._found(paths, leaves, treespec, dynamic, args, kwargs, out)
        return self._found(paths, leaves, treespec, dynamic, args, kwargs, out)

    def _paths_of(self, key: Any) -> list[Path]:
        """The paths of a signature, which becomes the one used last."""
        paths = self._paths.get(key)
        if paths is None:
            with self._lock.held():
                paths = self._paths.setdefault(key, Paths())
                paths.used = next(_uses)
                while len(self._paths) > config.kept_programs():
                    del self._paths[min(self._paths, key=lambda known: self._paths[known].used)]
        paths.used = next(_uses)
        return paths

    def _found(
        self, paths: list[Path], leaves: Any, treespec: Any, dynamic: Any, args: Any, kwargs: Any, out: Any
    ) -> Any:
        """The path's result, or that of a new path."""
        for path in list(paths):
            if not path.current() or (path.orders is not None and path.orders != orders_of(dynamic)):
                continue
            result = self._run(path, dynamic, out)
            if result is not MISSED:
                self._prefer(paths, path)
                self._shorten(path, args, kwargs)
                return result
        with self._lock.held():
            path = self._record(leaves, treespec)
            paths.insert(0, path)
            del paths[MOST_PATHS:]
        self._shorten(path, args, kwargs)
        return self._run(path, dynamic, out)

    def _shorten(self, path: Path, args: Sequence[Any], kwargs: Any) -> None:
        """Let the next call try this path first, with little or no Python."""
        if path.program is None or kwargs or path.stores:
            return
        if path.orders is not None and not _tells_orders(path, args):
            return
        kinds = tuple([type(value) for value in args])
        if path.native and all(kind is np.ndarray or kind is float for kind in kinds):
            self._fast = path.program.call
            self._native = path
            return
        if path.device is not None:
            self._replay = device_replay(path, args)
        short = shortcut(path, args, self._general)
        if short is not None:
            self._fast = short

    def _prefer(self, paths: list[Path], path: Path) -> None:
        if paths[0] is not path:
            with self._lock.held():
                if path in paths:
                    paths.remove(path)
                    paths.insert(0, path)

    # ----- Running -----

    def _run(self, path: Path, dynamic: Sequence[Any], out: Any) -> Any:
        for position in path.stores:
            check_store(dynamic[position], [*dynamic[:position], *dynamic[position + 1 :]])
        targets = None if out is None or path.device is not None else self._targets(path, out)
        arrays = [_ready(value, node) for value, node in zip(dynamic, path.arguments, strict=False)]
        for parameter, _ in path.parameters:
            value = parameter._leaf.value
            arrays.append(ready(parameter._leaf, path.device) if value is not None else parameter._where_it_is())
        if path.device is not None:
            return self._run_on_device(path, dynamic, arrays, out)
        if path.program is None or config.interpret():
            found = [
                np.array(v)
                for v in interpret(path.outputs, dict(zip(path.arguments, map(np.asarray, arrays), strict=True)))
            ]
        elif not path.native:
            found = path.program.call(*arrays)
        elif targets is None:
            return path.program.call(*arrays)
        else:
            found = direct_targets(targets, arrays)
            path.program.call_into(*arrays, *found)
        result = path.finished(found, dynamic) if targets is None or not path.native else out
        if targets is not None and result is not MISSED:
            copy_to(targets, found[: len(targets)])
            copy_constants(out, [None if leaf is RESULT else leaf for leaf in path.leaves])
            return out
        return result

    def _run_on_device(self, path: Path, dynamic: Sequence[Any], arrays: list[Any], out: Any) -> Any:
        """The same for a program of a device."""
        targets = None
        if out is not None:
            leaves = [None if leaf is RESULT else leaf for leaf in path.leaves]
            nodes = path.outputs[: path.result_count]
            targets = device_targets(out, path.treespec, leaves, nodes, path.device, name_of(self.fn))
        found = path.computed(arrays, targets)
        result = path.finished(found, dynamic, results_as(dynamic))
        if targets is None or result is MISSED:
            return result
        for target, value in zip(targets, found, strict=False):
            target.take(value)
        return out

    # ----- Recording -----

    def _record(self, leaves: Sequence[Any], treespec: Any) -> Path:
        """Record and compile."""
        finish_pending()
        arguments: list[Node] = []
        inputs: list[Any] = []
        callers = Callers()
        floats: set[int] = set()
        lifted: list[Any] = []
        tensors = False
        kind_of_results = "lent" if any(isinstance(leaf, Lent) for leaf in leaves) else "value"
        plain = True
        for leaf in leaves:
            kind = dynamic_kind(leaf)
            if kind is None:
                lifted.append(leaf)
                continue
            source = node_of(leaf)
            node = placeholder(source.shape, source.dtype, computed(source), source.weak)
            node.tensor, node.place = source.tensor, source.place
            node.layout = strides_in_memory(leaf)
            inputs.append(leaf)
            if type(leaf) is float:
                floats.add(len(arguments))
            plain = plain and (type(leaf) is float or type(leaf) is np.ndarray)
            tensors = tensors or kind == "tensor"
            arguments.append(node)
            lifted.append(callers.lend(node, leaf) if kind in ("array", "tensor") else Tensor._of(node))
        args, kwargs = optree.tree_unflatten(treespec, lifted)
        # What another thread changes from now on, the next call finds out.
        version = CELLS.token
        with recording(arguments, jit=True, callers=callers) as trace:
            try:
                output = self.fn(*args, **kwargs)
            finally:
                # The recorded function writes when it runs.
                written = trace.undo_writes()
        _refuse_lost_writes(self.fn, trace)
        assert trace.guards is not None
        out_leaves, out_spec = flatten(output)
        nodes: list[Node] = []
        kinds: list[str] = []
        kept: list[Any] = []
        for leaf in out_leaves:
            if isinstance(leaf, Tensor):
                nodes.append(leaf._node)
                zero_dimensional = kind_of_results == "value" and is_array(leaf)
                kinds.append("tensor" if tensors else "array" if zero_dimensional else kind_of_results)
                kept.append(RESULT)
            else:
                _refuse_hidden(self.fn, leaf, trace)
                kept.append(one_callers(leaf))
        if not nodes and not any(kind_of(leaf) != "other" for leaf in out_leaves):
            given = "nothing (None)" if output is None else described_output(output)
            hint = "Return its .data." if computes_itself(output) else "Is a return statement missing?"
            message = (
                f"{name_of(self.fn)}() returned {given}, but a jitted function must return an array, a number, or a "
                f"tuple, list or dict of them. {hint}"
            )
            raise DtypeError(message)
        guards = [node for node, _ in trace.guards]
        checks = [node for node, _, _ in trace.checks]
        places = {node: k for k, node in enumerate(arguments)}
        stored = [(places[node], callers[node][0]._node) for node in callers.changed()]
        outputs = [*nodes, *guards, *checks, *[node for _, node in written], *[node for _, node in stored]]
        parameters = _parameters(outputs, arguments)
        if (
            not tensors
            and kind_of_results != "lent"
            and (parameters or any(isinstance(key, Tensor) for key in trace.cells))
        ):
            tensors, kinds = True, ["tensor"] * len(kinds)
        device = device_of_graph(outputs, arguments)
        more = guards or checks or tensors or written or stored or parameters or trace.cells
        simple = plain and device is None and not more
        structure = _postfix(out_spec) if all(leaf is RESULT for leaf in kept) else None
        simple = simple and structure is not None
        arguments += [node for _, node in parameters]
        program = None
        if device is not None and not config.interpret():
            program = make_program([Output(node) for node in outputs], arguments, device)
        elif not config.interpret():
            donated: list[int] = []
            if simple and self.donate:
                numbers = [k for k, leaf in enumerate(leaves) if dynamic_kind(leaf) is not None]
                kept_up = donated_leaves(self.donate, treespec, name_of(self.fn))
                donated = [numbers.index(k) for k in kept_up if isinstance(leaves[k], np.ndarray)]
            program = Program(
                [Output(node, k < len(nodes) and kinds[k] in ("value", "lent")) for k, node in enumerate(outputs)],
                arguments,
                frozenset(floats),
                structure if simple else None,
                self._general if simple else missed,
                frozenset(donated),
                max(len(structure or ()), len(nodes) + 1),
            )
        for node in arguments:
            if node.owner is None:
                node.value = None
        return Path(
            program,
            outputs,
            arguments,
            kinds,
            out_spec,
            kept,
            [value for _, value in trace.guards],
            [(message, error) for _, message, error in trace.checks],
            simple,
            structure,
            parameters,
            [parameter for parameter, _ in written],
            dict(trace.cells),
            None if any(cell._changes_silently() for cell in trace.cells) else version,
            device,
            tuple([k for k, _ in stored]),
            orders_of(inputs) if trace.orders else None,
        )


def _refuse_lost_writes(fn: Callable[..., Any], trace: Trace) -> None:
    """Raise if the recorded function wrote where the compiled one could not."""
    for tensor, _ in trace.outside.values():
        message = (
            f"{name_of(fn)}() writes to a Tensor of shape {tensor.shape} from outside, which only happened while jit "
            "recorded it. Return the new value, or make the Tensor a Parameter: writes to Parameters are compiled."
        )
        raise TracedValueError(message)
    for cell in trace.cells:
        for name, value in getattr(cell, "__dict__", {}).items():
            if type(value) is Tensor and value._node.traced and trace.owns(value._node):
                object.__setattr__(cell, name, None)
                message = (
                    f"{type(cell).__name__} assigns a value that jit records to its attribute {name}, which a compiled "
                    f"call would not do. Make {name} a Parameter (requires_grad=False), or return the value."
                )
                raise TracedValueError(message)


def _refuse_hidden(fn: Callable[..., Any], leaf: Any, trace: Trace) -> None:
    """Raise if what is returned is no container and hides a recorded value: later calls would give it again."""
    if isinstance(leaf, set | frozenset):
        parts = list(leaf)
    else:
        slots = [getattr(leaf, name, None) for name in getattr(type(leaf), "__slots__", ())]
        parts = [*getattr(leaf, "__dict__", {}).values(), *slots]
    if any(isinstance(part, Tensor) and part._node.traced and trace.owns(part._node) for part in flatten(parts)[0]):
        message = (
            f"{name_of(fn)}() returns a {full_name(leaf)} with a value that jit records in it. Return a tuple, list or "
            f"dict of arrays, or register {type(leaf).__name__} as a container (optree.register_pytree_node)."
        )
        raise TracedValueError(message)


def _has_out(fn: Callable[..., Any]) -> bool:
    """Whether a function has a parameter `out` of its own."""
    try:
        return "out" in inspect.signature(fn).parameters
    except (TypeError, ValueError):
        return False


def orders_of(leaves: Sequence[Any]) -> tuple[Any, ...]:
    """How arguments lie in memory, where that may make a difference."""
    return tuple([strides_in_memory(leaf) for leaf in leaves])


def _tells_orders(path: Path, args: Sequence[Any]) -> bool:
    """Whether native code knows arguments that lie otherwise: it takes ndarrays in C order only, but any Tensor."""
    assert path.orders is not None
    return not any(path.orders) and not any(isinstance(leaf, Tensor) for leaf in flatten(args)[0])


def _ready(value: Any, node: Node) -> Any:
    """A run-time input as native code takes it."""
    if isinstance(value, Tensor):
        value = computed(value._node)
    elif isinstance(value, Lent):
        value = value.node.value
    if type(value) is float or node.device is not None:
        return value
    array = plain(np.asarray(value))
    if array.flags.c_contiguous and array.flags.aligned:
        return array
    return np.array(array, order="C", subok=False)


def _parameters(outputs: Sequence[Node], arguments: Sequence[Node]) -> list[tuple[Any, Node]]:
    """The Parameters that a graph reads, with the node of each.

    Raises
    ------
    TracedValueError
        If it reads what another recording has left behind.
    """
    found: list[tuple[Any, Node]] = []
    for node in topological(outputs):
        parameter = node.owner() if node.owner is not None else None
        if parameter is not None and parameter._leaf is node:
            found.append((parameter, node))
        elif node.name == "input" and node.value is None and node not in arguments:
            refuse(node, node)
    return found


def _postfix(treespec: Any) -> list[int] | None:
    """How nested tuples are built, for native code; None if there is anything but tuples."""
    code: list[int] = []
    count = 0

    def visit(spec: Any) -> bool:
        nonlocal count
        if spec.is_leaf(strict=True):
            code.append(count)
            count += 1
            return True
        if spec.type is not tuple:
            return False
        if not all(visit(child) for child in spec.children()):
            return False
        code.append(-1 - spec.num_children)
        return True

    return code if visit(treespec) else None


def jit(fn: Callable[..., Any] | None = None, *, donate: int | tuple[int, ...] = (), **options: Any) -> Any:
    """Compile a function: it is recorded once per signature, and later calls run native code only.

    Parameters
    ----------
    fn : callable
        Takes arrays, floats, containers of them, and other hashable values (which are part of the signature); returns
        arrays. May itself use `grad` and all other transforms. Left out, `jit` gives a decorator.
    donate : int or tuple of int
        Positions of arguments that the caller gives up: results of the same shape and dtype may take their memory, and
        are then these very arrays. Their values are lost; ndarrays must be writeable, and Tensors are left alone. In a
        method, `self` is argument 0.
    **options
        MindSpore's options of its own compiler (`capture_mode`, `jit_level`, `mode`, `input_signature`, ...) have no
        effect.

    Returns
    -------
    Jitted
        A callable with the same arguments. ndarrays in, ndarrays out; if any argument is a Tensor, or the function uses
        Parameters, Tensors out. With `out=`, arrays nested like the result, it writes the results there and gives
        `out` back (unless the function has a parameter `out` of its own).

    Raises
    ------
    DtypeError
        For what is no function, or an option that MindSpore does not have.
    ArgumentError
        For `donate` that is no position, donated arrays that are read-only, and `out` that does not fit the result
        (also ShapeError and DtypeError).
    TracedValueError
        If the function needs the value of an array as a number. Truth values and integers are allowed: they become
        guards, and each path through the function is compiled once.

    Notes
    -----
    What the function reads from outside (global arrays, closures, configuration objects, names of Parameters) is frozen
    when it is recorded, and side effects happen only then. Parameters are the exception: each call reads their values,
    and writes those that the function writes. Cells are recorded anew when their mode, Parameters, sub-cells or plain
    attributes have changed.

    What it returns belongs to the caller: no two results share memory, nor does one with an argument (unless that was
    donated), and constants among them are copied for each call.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> f = nb.jit(nb.value_and_grad(lambda x: np.sum(x**2)))
    >>> f(np.array([1.0, 2.0]))
    (np.float64(5.0), array([2., 4.]))

    A step of gradient descent in place, and a result in an array that exists:

    >>> step = nb.jit(lambda w, g: w - 0.5 * g, donate=0)
    >>> w = np.array([1.0, 2.0])
    >>> step(w, np.array([2.0, 2.0])) is w, w
    (True, array([0., 1.]))
    >>> step(w, np.array([2.0, 2.0]), out=np.empty(2))
    array([-1.,  0.])
    """
    unknown = set(options) - _MINDSPORE_OPTIONS
    if unknown:
        message = f"jit has no option {', '.join(sorted(unknown))}."
        if any(name.startswith("static_") for name in unknown):
            message += " Arguments that are no arrays are static by themselves: leave it out."
        raise DtypeError(message)
    positions = check_donate(donate)
    if fn is None:
        return functools.partial(jit, donate=positions)
    check_function(fn, "jit")
    if isinstance(fn, Jitted):
        return fn if not positions or fn.donate == positions else Jitted(fn.fn, positions)
    return Jitted(fn, positions)


ms_function = jit
"""MindSpore's older name."""

_MINDSPORE_OPTIONS = frozenset(
    "capture_mode jit_level dynamic fullgraph backend mode input_signature hash_args jit_config compile_once".split()
)
