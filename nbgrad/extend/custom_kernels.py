"""Users' own array kernels as functions that compose with everything: `primitive`.

In: functions that read arrays and write arrays (compiled by Numba, or plain NumPy; for CUDA, launchers), the shapes of
the results, and functions that write derivatives. Out: a function on arrays that can be differentiated, compiled,
mapped, and fused around. Called by users. The form of a call in a graph, and its run, are in graph/custom_calls.py and
device/memory/custom_launches.py.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np

from ..errors import ArgumentError, DtypeError, NbgradError, ShapeError
from ..graph.builders import concatenate, reshape
from ..graph.custom_calls import OWN_KERNEL, Call, Kernel, Layout, nodes_of, run_unpacked
from ..graph.host_functions import DEVICE_CALLS, DeviceCall
from ..graph.ir import Node, make, plain_dtype, zeros
from ..graph.shapes import Shape
from ..record.as_node import as_node, lists_hold
from ..record.foreign_arrays import a_full_name, full_name
from ..record.numbers import supported
from ..record.tensor import Tensor
from ..transforms.arguments import name_of
from ..transforms.lent_arrays import kind_of, lends

Launcher = Callable[..., Any]


class Described(NamedTuple):
    """The description of an array, which a shape rule gets in place of it."""

    shape: Shape
    dtype: np.dtype[Any]

    def __str__(self) -> str:
        return f"{self.dtype}{list(self.shape)}"

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))


class Primitive:
    """A function on arrays that is a user's own kernel. Made by `primitive`."""

    def __init__(
        self,
        kernel: Kernel,
        shape: Callable[..., Any] | None,
        vjp: Primitive | None = None,
        jvp: Primitive | None = None,
    ) -> None:
        self.kernel = kernel
        self.shape = shape
        self.rules = {"vjp": vjp, "jvp": jvp}
        self.made_by, self.writes = "nb.primitive", "writes"
        """The words of messages."""
        self.__name__ = kernel.title

    def __repr__(self) -> str:
        return f"<primitive {self.kernel.title}>"

    @lends
    def __call__(self, *arrays: Any, **params: Any) -> Any:
        """Call the kernel.

        Parameters
        ----------
        *arrays : array_like
            Its inputs: at least one. Python numbers are 0-d arrays of float64, int64 or bool.
        **params : hashable
            Given to the kernel, to the rules and to the launchers by keyword. They are not differentiated, and programs
            are compiled for their values.

        Returns
        -------
        array, or tuple of arrays
            As the shape rule says; ndarrays if all inputs are ndarrays or numbers, otherwise Tensors.
        """
        assert self.shape is not None
        return self.call_by(self.shape, arrays, params)

    def call_by(self, shape: Callable[..., Any], arrays: Sequence[Any], params: dict[str, Any]) -> Any:
        """Call the kernel, with a shape rule."""
        if not arrays:
            message = f"{self.kernel.title} was called without arrays; it needs at least one."
            raise ArgumentError(message)
        for position, value in enumerate(arrays):
            if kind_of(value) == "other" and not isinstance(value, list | tuple):
                what = f"Input {position} of {self.kernel.title}"
                message = f"{what} is {a_full_name(value)}, but must be an array or a number."
                raise DtypeError(message)
        if lists_hold(arrays, Tensor):
            nodes = [as_node(value) for value in arrays]
            call, several = self._call(shape, nodes, params)
            found: list[Any] = [Tensor._of(node) for node in self.results(call, nodes)]
        else:
            values = [np.asarray(value) for value in arrays]
            call, several = self._call(shape, values, params)
            found = [array[()] for array in run_unpacked(call, values)]
        return tuple(found) if several else found[0]

    # ----- What is asked for -----

    def _call(
        self, shape: Callable[..., Any], nodes: Sequence[Node | np.ndarray], params: dict[str, Any]
    ) -> tuple[Call, bool]:
        """The call for some inputs, and whether it gives several results: asks the shape rule."""
        for position, node in enumerate(nodes):
            if node.dtype == np.float16 or not supported(node.dtype):
                what = f"Input {position} of {self.kernel.title} has dtype {node.dtype}"
                way = "Convert it: x.astype(np.float32)."
                if node.dtype.names:
                    way = f"Pass its fields as arrays of their own: x[{node.dtype.names[0]!r}]."
                message = f"{what}, which own kernels do not get. {way}"
                raise DtypeError(message)
        for name, value in params.items():
            try:
                hash(value)
            except TypeError:
                message = (
                    f"The keyword argument {name} of {self.kernel.title} is {a_full_name(value)}, but keyword "
                    "arguments are compiled in and must be hashable. Pass arrays by position."
                )
                raise DtypeError(message) from None
        inputs = [Described(node.shape, node.dtype) for node in nodes]
        outputs, several = results_by(shape, self.kernel.title, inputs, params)
        statics = tuple([(name, type(value), value) for name, value in sorted(params.items())])
        return Call(self.kernel, tuple([node.ndim for node in nodes]), outputs, statics), several

    # ----- Graph -----

    def results(self, call: Call, nodes: Sequence[Node]) -> list[Node]:
        """The nodes of all results, with their derivatives."""
        found: dict[int, Node] = {}
        for value in nodes_of(call, nodes):
            if value.dtype.kind in "fc":
                value = make("custom", (value, *nodes), (_Rule(self, call), 0))
            found.update(call.unpacked(value))
        return [found[position] for position in range(len(call.outputs))]

    def cotangents(self, at: Applied, seeds: Sequence[Node], asked: Sequence[bool], why: str) -> list[Node | None]:
        """The cotangents of the inputs, at least of those that are asked for, given those of results of floats."""
        found = iter(self.derivative("vjp", at.call, [*at.inputs, *at.outputs, *seeds], float_layouts(at.inputs), why))
        return [next(found) if _is_float(source) else None for source in at.inputs]

    def tangents(self, at: Applied, moves: Sequence[Node | None], why: str) -> list[Node]:
        """The tangents of the results of floats, given those of the inputs."""
        given = [
            zeros(source.shape, source.dtype) if t is None else t
            for source, t in zip(at.inputs, moves, strict=True)
            if _is_float(source)
        ]
        return self.derivative("jvp", at.call, [*at.inputs, *at.outputs, *given], float_layouts(at.outputs), why)

    def derivative(
        self, which: str, call: Call, nodes: Sequence[Node], wanted: Sequence[Layout], why: str
    ) -> list[Node]:
        """The results of a rule, `which` of "vjp" and "jvp", that must have given shapes and dtypes."""
        rule = self.rules[which]
        if rule is None:
            if self.shape is None:
                instead = f"It is a plain function; to differentiate it, too, give nb.primitive(...) with a {which}"
            else:
                given, made = ("cotangents", "the gradients") if which == "vjp" else ("tangents", "those of results")
                moved = f"{given} and {self.writes} {made}"
                instead = f"Give {self.made_by}(..., {which}=...): a function that gets inputs, results and {moved}"
            message = (
                f"{self.kernel.title} has no {which}, but {why}. {instead} (or cut the derivative off with "
                "nb.stop_gradient)."
            )
            raise ArgumentError(message)
        if rule.shape is None:
            rule_call = Call(rule.kernel, tuple([node.ndim for node in nodes]), tuple(wanted), call.statics)
        else:
            rule_call, _ = rule._call(rule.shape, nodes, call.keywords)
            if list(rule_call.outputs) != list(wanted):
                message = (
                    f"{rule.kernel.title}, the {which} of {call}, has a shape rule that gives "
                    f"{_shown(rule_call.outputs)}, but {_shown(wanted)} is needed: one for each "
                    + ("input of floats." if which == "vjp" else "result of floats.")
                )
                raise ShapeError(message)
        return rule.results(rule_call, nodes)


def results_by(
    rule: Callable[..., Any], title: str, arguments: Sequence[Any], params: dict[str, Any]
) -> tuple[tuple[Layout, ...], bool]:
    """The results of a kernel as its shape rule gives them, and whether it gives a list."""
    try:
        given = rule(*arguments, **params)
    except NbgradError:
        raise
    except Exception as error:
        shown = ", ".join(
            f"{one.dtype}{list(one.shape)}" if isinstance(one, Described) else repr(one) for one in arguments
        )
        message = (
            f"The shape rule of {title} has raised {type(error).__name__}: {str(error).rstrip('.')}. "
            f"It was called with what describes {shown}"
            + (f", and {', '.join(f'{name}={value!r}' for name, value in params.items())}." if params else ".")
        )
        raise ArgumentError(message) from error
    several = isinstance(given, list)
    outputs = tuple([_layout(one, title) for one in (given if several else [given])])
    if not outputs:
        message = f"The shape rule of {title} gives an empty list, but a kernel needs a result."
        raise ArgumentError(message)
    return outputs, several


def _layout(given: Any, title: str) -> Layout:
    """A shape and a dtype in the forms in which a rule may give them."""
    try:
        shape, dtype = (given.shape, given.dtype) if hasattr(given, "dtype") else given
        extents = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        dtype = plain_dtype(np.dtype(dtype))
        if not all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in extents):
            raise TypeError
    except (TypeError, ValueError):
        message = (
            f"The shape rule of {title} must give (shape, dtype), or an object with these, or a list "
            f"of such, one for each result; but it gave {given!r}."
        )
        raise ArgumentError(message) from None
    if any(n < 0 for n in extents):
        message = f"The shape rule of {title} gives the shape {extents}, which is negative."
        raise ShapeError(message)
    if dtype == np.float16 or not supported(dtype):
        message = f"The shape rule of {title} gives {dtype}, a dtype that own kernels do not write."
        raise DtypeError(message)
    return tuple([int(n) for n in extents]), dtype


def _shown(layouts: Sequence[Layout]) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for shape, dtype in layouts) or "nothing"


def _is_float(node: Node) -> bool:
    return node.dtype.kind in "fc"


def float_layouts(nodes: Sequence[Node]) -> list[Layout]:
    """The shapes and dtypes of those nodes that hold floats or complex numbers."""
    return [(node.shape, node.dtype) for node in nodes if _is_float(node)]


@dataclass(frozen=True)
class Applied:
    """A call with the nodes of its inputs and of all its results."""

    call: Call
    inputs: Sequence[Node]
    outputs: Sequence[Node]


@dataclass(frozen=True)
class _Rule:
    """The derivative of the results of one dtype of a call, which are packed in one node."""

    primitive: Primitive
    call: Call
    pure = True

    def _outputs(self, node: Node) -> list[Node]:
        """All results, those of this node's dtype by means of the node."""
        found = dict(enumerate(self.primitive.results(self.call, node.inputs[1:])))
        found.update(self.call.unpacked(node))
        return [found[position] for position in range(len(found))]

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """The cotangents of the inputs, by the kernel's own vjp."""
        return self.cotangents_of(g, node, [True] * (len(node.inputs) - 1))

    def cotangents_of(self, g: Node, node: Node, asked: Sequence[bool]) -> list[Node | None]:
        """The cotangents of those inputs that are asked for; of all, if the rule gives them at once."""
        inputs, outputs = node.inputs[1:], self._outputs(node)
        given = self.call.unpacked(g)
        seeds = [
            given[position] if position in given else zeros(output.shape, output.dtype)
            for position, output in enumerate(outputs)
            if _is_float(output)
        ]
        floats = [_is_float(source) for source in inputs]
        if not any(floats):
            return [None] * len(inputs)
        why = "its gradient is asked for"
        at = Applied(self.call, inputs, outputs)
        return self.primitive.cotangents(at, seeds, [a and b for a, b in zip(asked, floats, strict=True)], why)

    def tangent(self, node: Node, tangents: Sequence[Node | None]) -> Node:
        """The tangent of the node, by the kernel's own jvp."""
        inputs, outputs = node.inputs[1:], self._outputs(node)
        why = "a derivative in forward mode (jvp, jacfwd, hessian, hvp) goes through it"
        found = iter(self.primitive.tangents(Applied(self.call, inputs, outputs), tangents[1:], why))
        by_position = {position: next(found) for position, output in enumerate(outputs) if _is_float(output)}
        return self._packed(by_position, node)

    def _packed(self, found: dict[int, Node], node: Node) -> Node:
        """Values of results in the form of the node that holds them."""
        row = self.call.packed[node.dtype]
        places = row.places
        if len(places) == 1:
            return found[next(iter(places))]
        parts: list[Node] = []
        end = 0
        for position, start in places.items():
            if start > end:
                parts.append(zeros((start - end,), node.dtype))
            parts.append(reshape(found[position], (found[position].size,)))
            end = start + found[position].size
        if row.shape[0] > end:
            parts.append(zeros((row.shape[0] - end,), node.dtype))
        return concatenate(parts, 0)


def _on_device(call: Call, dtype: np.dtype[Any], positions: Sequence[int] | None = None) -> DeviceCall | None:
    """The launcher that does a call on a device, for a packed row or for results apart; None if there is none."""
    if call.kernel.cuda is None:
        return None
    from ..device.memory.custom_launches import launcher_call

    return launcher_call(call, dtype, positions)


DEVICE_CALLS[OWN_KERNEL] = _on_device


@overload
def primitive(
    forward: Launcher | None,
    *,
    shape: Callable[..., Any],
    vjp: Launcher | Primitive | None = None,
    jvp: Launcher | Primitive | None = None,
    name: str | None = None,
    batched: bool = False,
    cuda_forward: Launcher | None = None,
    cuda_vjp: Launcher | None = None,
    cuda_jvp: Launcher | None = None,
) -> Primitive: ...
@overload
def primitive(
    *,
    shape: Callable[..., Any],
    vjp: Launcher | Primitive | None = None,
    jvp: Launcher | Primitive | None = None,
    name: str | None = None,
    batched: bool = False,
    cuda_forward: Launcher | None = None,
    cuda_vjp: Launcher | None = None,
    cuda_jvp: Launcher | None = None,
) -> Any: ...
def primitive(
    forward: Any = None,
    *,
    shape: Any = None,
    vjp: Any = None,
    jvp: Any = None,
    name: str | None = None,
    batched: bool = False,
    cuda_forward: Any = None,
    cuda_vjp: Any = None,
    cuda_jvp: Any = None,
) -> Any:
    """A function on arrays that is your own kernel: it composes with `grad`, `jit`, `vmap` and with fusion around it.

    Parameters
    ----------
    forward : callable, optional
        `forward(*inputs, *outputs, **params)` reads ndarrays in C order and writes its results into the last ones,
        whose elements are undefined before. It returns nothing. A function compiled by `numba.njit`, or any other.
        Without it, and without `cuda_forward`, the result is a decorator.
    shape : callable
        `shape(*inputs, **params)` gets objects with `shape`, `dtype`, `ndim` and `size` and gives `(shape, dtype)` of
        the result, or an object that has both, such as one of its arguments; a list of these if there are several
        results.
    vjp : callable or primitive, optional
        The reverse rule: `vjp(*inputs, *outputs, *cotangents, *gradients, **params)` writes, for each input of floats
        or complex numbers, the gradient of the sum of all elements of `cotangent * output`. There is a cotangent for
        each output of floats. A plain function has no derivative itself; for second derivatives give a primitive,
        whose own inputs are those, and whose results are the gradients.
    jvp : callable or primitive, optional
        The forward rule: `jvp(*inputs, *outputs, *tangents, *output_tangents, **params)`, with a tangent for each input
        of floats, writes one for each output of floats.
    name : str, optional
        Its name in messages; by default the name of the function.
    batched : bool
        Whether `forward` and the rules (plain functions and launchers) may also be called with arrays that all have one
        more axis in front. If not, `vmap` calls them once for each value.
    cuda_forward, cuda_vjp, cuda_jvp : callable, optional
        The same on a CUDA device: plain Python functions that launch kernels, of Numba, CuPy or cuda.core. They get
        arrays with `__cuda_array_interface__`, and as the keyword `stream` an object with `__cuda_stream__`, whose
        handle is `int(stream)`: all work must be put on that stream. If there are none, arrays on a device are copied
        to the CPU and back.

    Returns
    -------
    callable
        Takes the inputs by position and `params`, hashable values, by keyword.

    Raises
    ------
    ArgumentError, DtypeError
        If there is no kernel or no shape rule, or they are not callable. Calls raise errors with the primitive's name
        for errors in a kernel, results that it does not write, inputs that it changes, and rules that are missing.

    Notes
    -----
    Inputs and results are booleans, integers, floats and complex numbers of 32 or 64 bits a part, not float16. Whether
    all results are written, and all inputs left as they are, is checked at the first call for each combination of
    shapes. Results of different dtypes are computed by one call of the kernel for each dtype.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> def smooth(x, out):                         # could be compiled by numba.njit
    ...     out[0] = x[0]
    ...     for i in range(1, len(x)):
    ...         out[i] = 0.5 * out[i - 1] + x[i]
    >>> def smooth_vjp(x, out, g, grad):
    ...     carry = 0.0
    ...     for i in range(len(x) - 1, -1, -1):
    ...         carry = g[i] + 0.5 * carry
    ...         grad[i] = carry
    >>> smoothed = nb.primitive(smooth, shape=lambda x: x, vjp=smooth_vjp)
    >>> smoothed(np.array([1.0, 1.0, 1.0]))
    array([1.  , 1.5 , 1.75])
    >>> nb.grad(lambda x: np.sum(smoothed(x * x)))(np.array([1.0, 1.0, 1.0]))
    array([3.5, 3. , 2. ])
    """
    if shape is None or not callable(shape):
        message = (
            "nb.primitive needs a shape rule: shape=lambda x: (x.shape, x.dtype), for example, which gives shape and "
            f"dtype of the result; but got {'none' if shape is None else full_name(shape)}."
        )
        raise ArgumentError(message)
    if forward is None and cuda_forward is None:
        if cuda_vjp is not None or cuda_jvp is not None:
            message = "nb.primitive got rules for CUDA, but no kernel: give cuda_forward, too."
            raise ArgumentError(message)
        return lambda given: primitive(given, shape=shape, vjp=vjp, jvp=jvp, name=name, batched=batched)
    given = {
        "forward": forward,
        "vjp": vjp,
        "jvp": jvp,
        "cuda_forward": cuda_forward,
        "cuda_vjp": cuda_vjp,
        "cuda_jvp": cuda_jvp,
    }
    for argument, value in given.items():
        if value is not None and not callable(value):
            message = f"{argument} of nb.primitive must be a function, but is {a_full_name(value)}."
            raise DtypeError(message)
    title = name if name is not None else name_of(forward if forward is not None else cuda_forward)
    if not isinstance(title, str) or not title:
        message = f"The name of a primitive must be a string that is not empty, but got {name!r}."
        raise ArgumentError(message)
    rules: dict[str, Primitive | None] = {}
    for which in ("vjp", "jvp"):
        on_host, on_device = given[which], given[f"cuda_{which}"]
        if isinstance(on_host, Primitive):
            if on_device is not None:
                message = f"{which} of {title} is a primitive, which has a launcher of its own: leave out cuda_{which}."
                raise ArgumentError(message)
            rules[which] = on_host
        elif on_host is None and on_device is None:
            rules[which] = None
        else:
            rules[which] = Primitive(Kernel(f"the {which} of {title}", on_host, on_device, batched), None)
    return Primitive(Kernel(title, forward, cuda_forward, batched), shape, rules["vjp"], rules["jvp"])
