"""Functions of PyTorch and of JAX as differentiable functions of nbgrad's.

In: a function, or a PyTorch module, of the other library's arrays. Out: a function of arrays and Tensors that nbgrad's
transforms go through: each derivative, of either mode and of any order, is a function that the other library makes of
the one before (foreign_derivatives.py), called as users' own kernels are. Called by users.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
import optree

from ..extend.custom_kernels import Applied, Primitive, float_layouts
from ..graph.custom_calls import Call, Kernel, Layout
from ..graph.ir import Node, zeros
from ..process.named_objects import NamedObject
from ..record.as_node import as_node
from ..record.container_leaves import flatten
from ..transforms.argument_positions import check_function
from ..transforms.arguments import name_of
from .foreign_derivatives import Flat, Foreign, JaxFunctions, TorchFunctions
from .result_types import write_results

_MOST_KNOWN = 1000
"""Signatures whose results are remembered."""
_PLAIN = (bool, int, str, bytes, type(None))
"""Kinds of arguments that are no arrays, and mean what they are."""


def from_jax(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function of JAX's arrays as a function of arrays that nbgrad differentiates and compiles.

    Parameters
    ----------
    fn : callable
        Takes JAX's arrays by position, or containers of them; returns arrays, or containers of them. JAX compiles it.

    Returns
    -------
    callable
        Takes arrays, Tensors, floats, and containers of them; integers, truth values, strings and None reach `fn` as
        they are. Compiled programs call it back. Derivatives of both modes and of any order are JAX's, by arguments of
        floating-point and complex numbers.

    Raises
    ------
    ImportError
        Without JAX.
    DtypeError
        If `fn` is no function, or its results are no arrays.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> f = nb.interop.from_jax(lambda x: jax.numpy.sum(jax.numpy.tanh(x)))   # doctest: +SKIP
    >>> nb.grad(f)(np.array([0.0]))                                           # doctest: +SKIP
    array([1.])
    """
    check_function(fn, "from_jax")
    return ForeignFunction(fn, JaxFunctions())


def from_torch(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A function or module of PyTorch's as a function of arrays that nbgrad differentiates and compiles.

    Parameters
    ----------
    fn : callable
        Takes tensors by position, or containers of them; returns tensors, or containers of them. Its results depend on
        nothing else: a gradient calls it again, and programs keep what does not change; so put modules with dropout or
        batch norm into `eval()`. A module's own parameters are constants. Shapes of results are found by PyTorch's fake
        tensors, or by a call with ones where `fn` looks at values.

    Returns
    -------
    callable
        Takes arrays, Tensors, floats, and containers of them; integers, truth values, strings and None reach `fn` as
        they are. Compiled programs call it back. Derivatives of both modes and of any order are PyTorch's, by arguments
        of floating-point and complex numbers.

    Raises
    ------
    ImportError
        Without PyTorch.
    DtypeError
        If `fn` is no function, or its results are no arrays.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> f = nb.interop.from_torch(lambda x: torch.tanh(x).sum())              # doctest: +SKIP
    >>> nb.grad(f)(np.array([0.0]))                                           # doctest: +SKIP
    array([1.])
    """
    check_function(fn, "from_torch")
    return ForeignFunction(fn, TorchFunctions())


class ForeignFunction(NamedObject):
    """A function of another library's arrays that takes part in recordings."""

    def __init__(self, fn: Callable[..., Any], library: Foreign) -> None:
        functools.update_wrapper(self, fn, updated=())
        self.__name__ = name_of(fn)
        self.fn, self.library = fn, library
        self._made: dict[Any, tuple[ForeignPrimitive, Any]] = {}

    def __repr__(self) -> str:
        return f"<{self.library.name} function {self.__name__}>"

    def __reduce__(self) -> Any:
        return ForeignFunction, (self.fn, self.library)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function; results are Tensors if an argument is one, otherwise ndarrays and NumPy's numbers.

        Integers, truth values, strings and None are handed on as they are.
        """
        leaves, treespec = flatten((args, kwargs))
        arrays = [leaf for leaf in leaves if not isinstance(leaf, _PLAIN)]
        layouts = [(type(leaf), leaf) if isinstance(leaf, _PLAIN) else self._layout(leaf) for leaf in leaves]
        key = self.library.state(), treespec, tuple(layouts)
        made = self._made.get(key)
        if made is None:
            made = self._primitive(treespec, leaves)
            if len(self._made) >= _MOST_KNOWN:
                self._made.clear()
            self._made[key] = made
        primitive, structure = made
        found = primitive.call_by(lambda *_: list(primitive.outputs), arrays, {})
        return optree.tree_unflatten(structure, found)

    def _layout(self, leaf: Any) -> Layout:
        """The shape and the dtype of an argument.

        Raises
        ------
        DtypeError
            If it is no array.
        """
        if isinstance(leaf, np.ndarray | np.generic):
            return leaf.shape, leaf.dtype
        node = as_node(leaf)
        return node.shape, node.dtype

    def _primitive(self, treespec: Any, leaves: Sequence[Any]) -> tuple[ForeignPrimitive, Any]:
        """The primitive for arguments like `leaves`, and the structure of the results."""
        structures: list[Any] = []

        def flat(*arrays: Any) -> list[Any]:
            given = iter(arrays)
            full = [leaf if isinstance(leaf, _PLAIN) else next(given) for leaf in plain]
            args, kwargs = cast("tuple[Any, dict[str, Any]]", optree.tree_unflatten(treespec, full))
            found, structure = flatten(self.fn(*args, **kwargs))
            structures[:] = [structure]
            return found

        plain = [leaf if isinstance(leaf, _PLAIN) else 0.0 for leaf in leaves]  # arrays live no longer than a call
        layouts = [self._layout(leaf) for leaf in leaves if not isinstance(leaf, _PLAIN)]
        outputs = self.library.layouts(flat, layouts, self.__name__)
        return ForeignPrimitive(self.library, flat, self.__name__, outputs), structures[0]


class ForeignPrimitive(Primitive):
    """A function of the other library's arrays for arguments and results of known layouts."""

    def __init__(self, library: Foreign, flat: Flat, title: str, outputs: Sequence[Layout]) -> None:
        run = library.run(flat)
        count = len(outputs)

        def forward(*arrays: np.ndarray) -> None:
            inputs, targets = arrays[:-count], arrays[-count:]
            write_results(title, targets, run(*inputs))

        super().__init__(Kernel(title, forward, None, False), None)
        self.library, self.flat, self.outputs = library, flat, tuple(outputs)
        self._rules: dict[Any, ForeignPrimitive] = {}

    def cotangents(self, at: Applied, seeds: Sequence[Node], asked: Sequence[bool], why: str) -> list[Node | None]:
        """The cotangents of the inputs that are asked for."""
        wanted = [position for position, one in enumerate(asked) if one]
        layouts = [(at.inputs[position].shape, at.inputs[position].dtype) for position in wanted]
        rule = self._rule("vjp", tuple(wanted), len(at.inputs), layouts)
        found = dict(zip(wanted, rule._applied([*at.inputs, *seeds]), strict=True))
        return [found.get(position) for position in range(len(at.inputs))]

    def tangents(self, at: Applied, moves: Sequence[Node | None], why: str) -> list[Node]:
        """The tangents of the results of floats, given those of the inputs."""
        pairs = list(zip(at.inputs, moves, strict=True))
        wanted = [position for position, (_, move) in enumerate(pairs) if move is not None]
        given = [move for _, move in pairs if move is not None]
        layouts = float_layouts(at.outputs)
        if not wanted:
            return [zeros(shape, dtype) for shape, dtype in layouts]
        return self._rule("jvp", tuple(wanted), len(at.inputs), layouts)._applied([*at.inputs, *given])

    def _rule(self, which: str, wanted: tuple[int, ...], count: int, layouts: Sequence[Layout]) -> ForeignPrimitive:
        """The derivative by the `wanted` ones of `count` arguments."""
        rule = self._rules.get((which, wanted))
        if rule is None:
            floats = [position for position, (_, dtype) in enumerate(self.outputs) if dtype.kind in "fc"]
            derived = getattr(self.library, which)(self.flat, count, wanted, floats)
            title = f"the {which} of {self.kernel.title}"
            rule = self._rules[which, wanted] = ForeignPrimitive(self.library, derived, title, layouts)
        return rule

    def _applied(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes of the results for some inputs."""
        return self.results(Call(self.kernel, tuple([node.ndim for node in nodes]), self.outputs, ()), nodes)
