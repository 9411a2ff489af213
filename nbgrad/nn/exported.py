"""Networks as files: the recorded graph of a network, with its Parameters, and back as a GraphCell.

In: a Cell or function, and examples of its arguments. Out: a file; from a file, a Graph, for GraphCell. Called by
users. The format is nbgrad's own (design/0095): a ZIP archive of .npy arrays, as `numpy.load` reads it, and one text
in JSON. It holds arrays and names of operations, and nothing that could be run. MindIR cannot be written.
"""

from __future__ import annotations

import base64
import json
import os
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .. import errors
from ..errors import (
    ArgumentError,
    CheckpointError,
    DtypeError,
    NbgradError,
    ShapeError,
    TracedValueError,
    user_location,
)
from ..graph.ir import Node, constant, literal, literal_value, make, on_host, placeholder, topological
from ..graph.loops.loop_body import Body
from ..graph.trace import recording
from ..record.as_node import as_node, wrap
from ..record.tensor import Tensor
from ..runtime.evaluate import require
from ..tensors.parameter import Parameter
from .cell import Cell

SUFFIX = ".nbgraph"
VERSION = 2
Condition = tuple[Node, str, type[NbgradError]]


class Graph:
    """A network that was read from a file: operations, the numbers of its Parameters, and the shapes of its inputs.

    Parameters
    ----------
    record : dict
        The JSON text of the file.
    arrays : dict
        Parameters and constants by name.
    """

    def __init__(self, record: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        self.record, self.arrays = record, arrays

    @property
    def parameter_names(self) -> list[str]:
        """The names of the Parameters."""
        return list(self.record["parameters"])

    def outputs(self, inputs: Sequence[Any], parameters: dict[str, Any]) -> Any:
        """The outputs for other inputs, with given Parameters.

        Raises
        ------
        ArgumentError, ShapeError, DtypeError
            If there are more or fewer inputs than recorded, or one has another shape or dtype.
        """
        nodes = [as_node(value) for value in inputs]
        wanted = self.record["inputs"]
        if len(nodes) != len(wanted):
            message = f"The network was exported with {len(wanted)} inputs, but got {len(nodes)}."
            raise ArgumentError(message)
        for k, (node, (shape, dtype)) in enumerate(zip(nodes, wanted, strict=True)):
            if node.shape != tuple(shape):
                message = f"Input {k} was exported with the shape {tuple(shape)}, but got {node.shape}."
                raise ShapeError(message)
            if node.dtype != np.dtype(dtype):
                message = f"Input {k} was exported with the dtype {dtype}, but got {node.dtype}."
                raise DtypeError(message)
        reader = _Reader(self, nodes, parameters)
        made = reader.nodes(self.record["nodes"])
        for number, message, error in self.record["conditions"]:
            require(made[number], message, getattr(errors, error))
        return reader.value(self.record["result"], made)


def export(
    net: Any, *inputs: Any, file_name: str | os.PathLike[str], file_format: str = "NBGRAPH", **kwargs: Any
) -> None:
    """Write a network to a file that `nb.load` reads.

    Parameters
    ----------
    net : Cell or callable
    *inputs : Tensor or ndarray
        Examples of the arguments: their shapes and dtypes stay.
    file_name : str or path
        The ending ".nbgraph" is added.
    file_format : {"NBGRAPH", "MINDIR"}
        nbgrad's own format; "MINDIR" writes it too, with a warning.
    **kwargs
        MindSpore's other options have no effect, but `enc_key` is refused.

    Raises
    ------
    ArgumentError
        For other formats, encryption, and networks with functions that have rules of their own: those of `custom_vjp`,
        Fourier transforms, decompositions.
    DtypeError
        If the network cannot be called, or an input is no array.
    TracedValueError
        If the network needs values to decide what it computes.

    Examples
    --------
    >>> import nbgrad as nb, os, tempfile
    >>> net = nb.nn.Dense(2, 1, nb.Tensor([[1.0, 2.0]]), nb.Tensor([3.0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     nb.export(net, nb.Tensor([[0.0, 0.0]]), file_name=os.path.join(folder, "net"))
    ...     graph = nb.load(os.path.join(folder, "net.nbgraph"))
    >>> print(nb.nn.GraphCell(graph)(nb.Tensor([[10.0, 1.0]])))
    [[15.]]
    """
    if not callable(net):
        message = f"net must be a Cell or a function, but got {type(net).__name__}."
        raise DtypeError(message)
    if file_format not in ("NBGRAPH", "MINDIR"):
        message = f'Networks are written as "NBGRAPH", but file_format is {file_format!r}, which nbgrad cannot write.'
        raise ArgumentError(message)
    if kwargs.get("enc_key") is not None:
        message = "Files are not encrypted: leave enc_key out."
        raise ArgumentError(message)
    stand_ins = [placeholder(node.shape, node.dtype) for node in map(as_node, inputs)]
    result, conditions = _recorded(net, stand_ins)
    writer = _Writer(stand_ins)
    written = writer.value(result)
    record = {
        "format": "nbgraph",
        "version": VERSION,
        "inputs": [[list(node.shape), node.dtype.name] for node in stand_ins],
        "parameters": writer.parameters,
        "frozen": writer.frozen,
        "conditions": [[writer.number(node), message, error.__name__] for node, message, error in conditions],
        "nodes": writer.rows,
        "result": written,
    }
    path = os.fspath(file_name)
    path = path if path.endswith(SUFFIX) else path + SUFFIX
    text = np.frombuffer(json.dumps(record).encode(), np.uint8)
    with open(f"{path}.part", "wb") as file:
        np.savez(file, allow_pickle=False, graph=text, **writer.arrays)
    os.replace(f"{path}.part", path)
    if file_format == "MINDIR":
        message = f"nbgrad cannot write MindIR: {path} is in nbgrad's own format{user_location()}. nb.load reads it."
        warnings.warn(message, UserWarning, stacklevel=2)


def load(file_name: str | os.PathLike[str], **kwargs: Any) -> Graph:
    """Read a network that `nb.export` has written.

    Parameters
    ----------
    file_name : str or path
        A name with the ending ".mindir", if there is no such file, is that of the file which `export` has written.
    **kwargs
        MindSpore's options of decryption have no effect.

    Returns
    -------
    Graph
        For `nn.GraphCell`.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    CheckpointError
        If another program wrote it, or it is damaged.
    """
    path = os.fspath(file_name)
    written = path.removesuffix(".mindir") + SUFFIX
    path = written if path.endswith(".mindir") and not os.path.exists(path) and os.path.exists(written) else path
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        record = json.loads(arrays.pop("graph").tobytes())
        known = record["format"] == "nbgraph" and record["version"] == VERSION
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        message = f"{path!r} is no network that nb.export has written, or is damaged: {error}."
        raise CheckpointError(message) from None
    if not known:
        message = f"{path!r} has another version of the format. Write it again with nb.export."
        raise CheckpointError(message)
    return Graph(record, arrays)


class GraphCell(Cell):
    """A network from a file; its Parameters can be trained.

    Parameters
    ----------
    graph : Graph
        From `nb.load`.
    params_init : dict, optional
        Other values of Parameters, by name.
    obf_random_seed : int, optional
        Has no effect.

    Raises
    ------
    DtypeError
        If it is no Graph.
    """

    def __init__(
        self, graph: Graph, params_init: Mapping[str, Any] | None = None, obf_random_seed: int | None = None
    ) -> None:
        super().__init__(auto_prefix=False)
        if not isinstance(graph, Graph):
            message = f"graph must be what nb.load returns, but got {type(graph).__name__}."
            raise DtypeError(message)
        self.graph = graph
        given = params_init or {}
        for name, array in graph.record["parameters"].items():
            value = given.get(name, graph.arrays[array])
            start = value.value() if isinstance(value, Parameter) else value
            own = Parameter(start, name=name, requires_grad=name not in graph.record["frozen"])
            self.insert_param_to_cell(name, own, check_name_contain_dot=False)

    def construct(self, *inputs: Any) -> Any:
        """The outputs; inputs have the shapes and dtypes with which the network was exported."""
        return self.graph.outputs(inputs, dict(self._params))


# ----- Writing -----


def _recorded(net: Any, stand_ins: Sequence[Node]) -> tuple[Any, list[Condition]]:
    """The results of a network for stand-ins of its inputs, and the conditions that must hold in every call."""
    with recording(stand_ins, turn=True) as trace:
        try:
            result = net(*[Tensor._of(node) for node in stand_ins])
        except TracedValueError as error:
            if trace.refused is None and not str(error).startswith("The value of a Tensor"):
                raise
            message = (
                "The network asks for a value that depends on its inputs (in `if`, float() or a library's compiled "
                "code), which a file does not know. Use np.where or nb.cond."
            )
            raise TracedValueError(message) from error
        finally:
            written = trace.undo_writes()
        if written or trace.outside:
            name = f"its Parameter {written[0][0].name}" if written else "a Tensor from outside"
            message = f"The network writes to {name}, which a file cannot do. Export it after set_train(False)."
            raise ArgumentError(message)
        if trace.turn_ends:
            message = "The network has a while_loop that ends by a value, which has no form in a file. Use fori_loop."
            raise ArgumentError(message)
        return result, trace.turn_checks or []


class _Writer:
    """Nodes as rows of JSON: the operation, the numbers of its operands, and its parameters."""

    def __init__(self, inputs: Sequence[Node]) -> None:
        self.rows: list[Any] = []
        self.arrays: dict[str, np.ndarray] = {}
        self.parameters: dict[str, str] = {}
        self.frozen: list[str] = []
        self._owners: dict[str, Parameter] = {}
        self._number: dict[Node, int] = {}
        self._inputs = {node: k for k, node in enumerate(inputs)}

    def _array(self, value: Any) -> str:
        name = f"a{len(self.arrays)}"
        self.arrays[name] = np.asarray(on_host(value))
        return name

    def _leaf(self, node: Node) -> Any:
        """The row of a node without operands that has a value, or stands for an input; None for all others."""
        if node in self._inputs:
            return ["input", self._inputs[node]]
        owner = node.owner and node.owner()
        if isinstance(owner, Parameter):
            name = owner.name
            if self._owners.setdefault(name, owner) is not owner:
                message = f"Two Parameters of the network are called {name!r}. Give them different names."
                raise ArgumentError(message)
            if name not in self.parameters:
                self.parameters[name] = self._array(node.value)
                if not owner.requires_grad:
                    self.frozen.append(name)
            return ["parameter", name]
        if node.name == "literal":
            return ["literal", self.value(literal_value(node)), node.dtype.name, node.weak]
        if node.value is not None:
            return ["constant", self._array(node.value), node.weak]
        return None

    def number(self, root: Node) -> int:
        """The number of a node, after rows for all that it is made of."""
        stop = dict.fromkeys(self._number, True)
        for node in topological([root], stop):
            if node.name == "random_bits":
                message = (
                    "The network draws random numbers, which would be the same in every call of the file. Export it "
                    "after set_train(False)."
                )
                raise ArgumentError(message)
            row = self._leaf(node)
            if row is None:
                operands = [self._number[source] for source in node.inputs]
                row = ["make", node.name, operands, self._params(node)]
            self._number[node] = len(self.rows)
            self.rows.append(row)
        return self._number[root]

    def _params(self, node: Node) -> Any:
        try:
            return [self.value(param) for param in node.params]
        except TypeError as error:
            message = (
                f"The network cannot be exported: its operation {node.name} holds {error}. Functions with rules of "
                "their own, such as custom_vjp and Fourier transforms, have no form in a file."
            )
            raise ArgumentError(message) from None

    def _body(self, body: Body) -> Any:
        """The graph of one turn of a loop."""
        inner = _Writer(body.inputs)
        inner.arrays = self.arrays
        for node in body.nodes:
            inner.number(node)
        groups = (body.carried, body.scanned, body.constants, body.following, body.results, body.nodes)
        numbers = [[inner._number[node] for node in group] for group in groups]
        kinds = [[list(node.shape), node.dtype.name, node.weak] for node in body.inputs]
        return {"body": inner.rows, "inputs": kinds, "groups": numbers, "again": body.again}

    def value(self, value: Any) -> Any:
        """A parameter, or a structure of results, in JSON."""
        if isinstance(value, Tensor):
            return {"tensor": self.number(value._node)}
        if isinstance(value, Body):
            return self._body(value)
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int | np.integer):
            return int(value)
        if isinstance(value, float | np.floating):
            return {"float": float(value).hex()}
        if isinstance(value, complex | np.complexfloating):
            return {"complex": [float(value.real).hex(), float(value.imag).hex()]}
        if isinstance(value, np.bool_):
            return bool(value)
        if isinstance(value, bytes):
            return {"bytes": base64.b64encode(value).decode()}
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        if isinstance(value, slice):
            return {"slice": [self.value(part) for part in (value.start, value.stop, value.step)]}
        if type(value) in (tuple, list):
            return {type(value).__name__: [self.value(part) for part in value]}
        if type(value) is dict:
            return {"dict": [[self.value(key), self.value(part)] for key, part in value.items()]}
        if isinstance(value, np.ndarray):
            return {"array": self._array(value)}
        raise TypeError(repr(value)[:60])


# ----- Reading -----


class _Reader:
    """Rows as nodes."""

    def __init__(self, graph: Graph, inputs: Sequence[Node], parameters: dict[str, Any]) -> None:
        self._arrays, self._inputs, self._parameters = graph.arrays, inputs, parameters
        self._moved: dict[Node, list[int]] = {}

    def nodes(self, rows: Sequence[Any]) -> list[Node]:
        """A node for each row."""
        made: list[Node] = []
        for kind, *row in rows:
            made.append(_KINDS[kind](self, made, *row))
        return made

    def input(self, made: list[Node], number: int) -> Node:
        """One of the inputs."""
        return self._inputs[number]

    def parameter(self, made: list[Node], name: str) -> Node:
        """A Parameter."""
        return as_node(self._parameters[name])

    def literal(self, made: list[Node], value: Any, dtype: str, weak: bool) -> Node:
        """A number."""
        return literal(self.value(value, made), np.dtype(dtype), weak)

    def constant(self, made: list[Node], name: str, weak: bool) -> Node:
        """An array."""
        return constant(self._arrays[name], weak)

    def make(self, made: list[Node], name: str, operands: list[int], params: list[Any]) -> Node:
        """An operation."""
        inputs = tuple([made[k] for k in operands])
        values = tuple([self.value(param, made) for param in params])
        if name == "item":
            # The place of a node in a body may be another one than when the body was written.
            values = (values[0], self._moved[inputs[0]][values[1]]) if values[0] != "last" else values
        node = make(name, inputs, values)
        if name == "loop":
            self._moved[node] = values[0].places
        return node

    def _body(self, record: dict[str, Any]) -> Body:
        inputs = [placeholder(tuple(shape), np.dtype(dtype), weak=weak) for shape, dtype, weak in record["inputs"]]
        inner = _Reader(Graph({}, self._arrays), inputs, {})
        made = inner.nodes(record["body"])
        *groups, order = [[made[k] for k in group] for group in record["groups"]]
        body = Body(*groups, again=record["again"])
        body.places = [body.position[node] for node in order]  # pyright: ignore[reportAttributeAccessIssue]
        return body

    def value(self, value: Any, made: list[Node]) -> Any:
        """A parameter, or a structure of results, from JSON."""
        if not isinstance(value, dict):
            return value
        if "body" in value:
            return self._body(value)
        ((kind, part),) = value.items()
        if kind in ("tuple", "list"):
            return (tuple if kind == "tuple" else list)([self.value(one, made) for one in part])
        if kind == "dict":
            return {self.value(key, made): self.value(one, made) for key, one in part}
        if kind == "slice":
            return slice(*[self.value(one, made) for one in part])
        return _VALUES[kind](self, part, made)


_KINDS: dict[str, Callable[..., Node]] = {
    "input": _Reader.input,
    "parameter": _Reader.parameter,
    "literal": _Reader.literal,
    "constant": _Reader.constant,
    "make": _Reader.make,
}
_VALUES: dict[str, Callable[[_Reader, Any, list[Node]], Any]] = {
    "tensor": lambda reader, part, made: wrap(made[part]),
    "float": lambda reader, part, made: float.fromhex(part),
    "complex": lambda reader, part, made: complex(*[float.fromhex(one) for one in part]),
    "bytes": lambda reader, part, made: base64.b64decode(part),
    "dtype": lambda reader, part, made: np.dtype(part),
    "array": lambda reader, part, made: reader._arrays[part],
}
