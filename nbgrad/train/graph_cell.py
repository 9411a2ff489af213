"""GraphCell: a network from a file, as a Cell.

In: a Graph, which `nb.load` has read. Out: a Cell with its Parameters. Called by users, as `nb.nn.GraphCell`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import DtypeError
from ..nn.cell import Cell
from ..tensors.parameter import Parameter
from .exported import Graph


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
            own = Parameter(value.value() if isinstance(value, Parameter) else value, name=name)
            self.insert_param_to_cell(name, own, check_name_contain_dot=False)

    def construct(self, *inputs: Any) -> Any:
        """The outputs; inputs have the shapes and dtypes with which the network was exported."""
        return self.graph.outputs(inputs, dict(self._params))
