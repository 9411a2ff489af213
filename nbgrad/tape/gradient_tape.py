"""`GradientTape`: gradients of what is computed in a block, with respect to the values that the tape watches there.

In: a block of code, and the values to watch. Out: gradients and Jacobians. Called by users. A tape only says what
belongs to it: how values were made is remembered by the values, for as long as Python refers to them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import optree

from ..errors import AutogradError, DtypeError, ShapeError
from ..graph.builders import beside, reshape, transpose
from ..graph.ir import Node, broadcast, zeros
from ..graph.products import unit_vectors
from ..process.modes import Mode, mode
from ..record.container_leaves import flatten, leaves_of
from ..record.tensor import Tensor
from ..remembered.backward import gradients, seeds_of
from ..remembered.leaves import remembers
from ..tensors.parameter import Parameter
from .graph_gradients import check_unconnected, one_each
from .watching import Watching

_ONCE = "A non-persistent GradientTape can only be used to compute one set of gradients (or jacobians)"


class GradientTape:
    """A block in which a tape watches how values are computed.

    Parameters
    ----------
    persistent : bool
        Whether gradients can be asked for several times.
    watch_accessed_variables : bool
        Whether trainable Parameters are watched where they are used.

    Raises
    ------
    AutogradError
        If the tape is entered while it is recording.

    Examples
    --------
    >>> import nbgrad as nb
    >>> x = nb.Tensor(3.0)
    >>> with nb.GradientTape() as outer:
    ...     outer.watch(x)
    ...     with nb.GradientTape() as inner:
    ...         inner.watch(x)
    ...         y = x * x * x
    ...     slope = inner.gradient(y, x)
    >>> print(slope, outer.gradient(slope, x))
    27.0 18.0
    """

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent = persistent
        self._every = watch_accessed_variables
        self._watching: Watching | None = None
        self._used = False

    # ----- The block -----

    def __enter__(self) -> GradientTape:
        if self._watching is not None and self._watching.is_open:
            message = "Tape is already recording."
            raise AutogradError(message)
        if self._watching is None or not self._persistent:
            self._watching = Watching(self._every)
        self._watching.open()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._watching is not None and self._watching.is_open:
            self._watching.close()

    def watch(self, tensor: Any) -> None:
        """Watch a Tensor or Parameter, or all in nested containers, from now on.

        Raises
        ------
        ArgumentError
            For anything else.
        AutogradError
            Outside of the block.
        """
        if self._watching is None or not self._watching.is_open:
            message = "A tape watches within its block: call watch() in `with GradientTape() as tape:`."
            raise AutogradError(message)
        for one in leaves_of(tensor):
            self._watching.watch(one)

    def watched_variables(self) -> tuple[Parameter, ...]:
        """The Parameters that were used while the tape was watching them, in the order of their first use."""
        return () if self._watching is None else tuple(self._watching.parameters)

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """A block within the tape's in which it does not watch.

        Raises
        ------
        AutogradError
            If the tape is not recording.
        """
        if self._watching is None or not self._watching.is_open:
            message = "Tape is not recording."
            raise AutogradError(message)
        self._watching.close()
        try:
            yield
        finally:
            self._watching.open()

    def reset(self) -> None:
        """Forget all that was watched; within the block, the tape watches anew.

        Raises
        ------
        AutogradError
            As on entering.
        """
        is_open = self._watching is not None and self._watching.is_open
        self.__exit__()
        self._watching, self._used = None, False
        if is_open:
            self.__enter__()

    # ----- Gradients -----

    def gradient(
        self,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = "none",
    ) -> Any:
        """The gradients of values that were computed in the block.

        Parameters
        ----------
        target : Tensor, or nested containers of them
            Their sum is differentiated.
        sources : Tensor or Parameter, or nested containers of them
        output_gradients : Tensor or sequence of Tensor, optional
            The cotangents of the targets, of their shapes; ones by default.
        unconnected_gradients : {"none", "zero"}
            Whether the gradient of a source that no target depends on is None or zeros.

        Returns
        -------
        Tensor or None, in containers as `sources`

        Raises
        ------
        AutogradError
            If a tape that is not persistent was used before.
        ArgumentError, DtypeError, ShapeError
            For arguments that do not fit.

        Examples
        --------
        >>> import nbgrad as nb
        >>> x = nb.Tensor([1.0, 2.0])
        >>> with nb.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> print(tape.gradient(y, x))
        [2. 4.]
        """
        zero = check_unconnected(unconnected_gradients)
        watching = self._asked()
        leaves, treespec = flatten(sources)
        targets = leaves_of(target)
        _check_tensors(targets, "target")
        _check_tensors(leaves, "sources")
        seeds = _seeds(targets, output_gradients)
        pairs = [(watching.value_of(one), seed) for one, seed in zip(targets, seeds, strict=True)]
        pairs = [(node, seed) for node, seed in pairs if node.dtype.kind in "fc"]
        found = self._gradients([node for node, _ in pairs], [seed for _, seed in pairs], leaves)
        self._use()
        if zero:
            found = [_zeros(one, one.shape) if g is None else g for g, one in zip(found, leaves, strict=True)]
        return optree.tree_unflatten(treespec, found)

    def jacobian(
        self,
        target: Tensor,
        sources: Any,
        unconnected_gradients: Any = "none",
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The Jacobians of a value that was computed in the block.

        Parameters
        ----------
        target : Tensor
        sources, unconnected_gradients
            As for `gradient`.
        parallel_iterations, experimental_use_pfor
            TensorFlow's choices of cost, without effect: all rows are computed at once.

        Returns
        -------
        Tensor of shape target + source, or None, in containers as `sources`

        Raises
        ------
        AutogradError, ArgumentError, DtypeError
            As `gradient`.

        Examples
        --------
        >>> import nbgrad as nb
        >>> x = nb.Tensor([1.0, 2.0])
        >>> with nb.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> print(tape.jacobian(y, x))
        [[2. 0.]
         [0. 4.]]
        """
        del parallel_iterations, experimental_use_pfor
        zero = check_unconnected(unconnected_gradients)
        watching = self._asked()
        _check_tensors([target], "target")
        leaves, treespec = flatten(sources)
        _check_tensors(leaves, "sources")
        node = watching.value_of(target)
        found: list[Any] = [None] * len(leaves)
        if node.dtype.kind in "fc" and node.size:
            _refuse_complex(node)
            units = reshape(unit_vectors(node.size, node.dtype), (node.size, *node.shape))
            found = self._gradients([node], [units], leaves, batched=True)
        self._use()
        for k, (one, block) in enumerate(zip(leaves, found, strict=True)):
            shape = (*node.shape, *one.shape)
            if block is not None:
                found[k] = Tensor._of(reshape(block._node, shape))
            elif zero:
                found[k] = _zeros(one, shape)
        return optree.tree_unflatten(treespec, found)

    def batch_jacobian(
        self,
        target: Tensor,
        source: Tensor,
        unconnected_gradients: Any = "none",
        parallel_iterations: int | None = None,
        experimental_use_pfor: bool = True,
    ) -> Any:
        """The Jacobian of each row of a value by the same row of a source, on which alone it depends.

        Parameters
        ----------
        target, source : Tensor
            Of the same length along axis 0.
        unconnected_gradients, parallel_iterations, experimental_use_pfor
            As for `jacobian`.

        Returns
        -------
        Tensor of shape `(rows, *row of target, *row of source)`, or None

        Raises
        ------
        ShapeError
            If the lengths differ.
        AutogradError, ArgumentError, DtypeError
            As `gradient`.

        Examples
        --------
        >>> import nbgrad as nb
        >>> x = nb.Tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> with nb.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> print(tape.batch_jacobian(y, x)[1])
        [[6. 0.]
         [0. 8.]]
        """
        del parallel_iterations, experimental_use_pfor
        zero = check_unconnected(unconnected_gradients)
        watching = self._asked()
        _check_tensors([target, source], "target and source")
        node, shape = watching.value_of(target), source.shape
        if not node.shape or not shape or node.shape[0] != shape[0]:
            message = f"Need first dimension of target shape {node.shape} and source shape {shape} to match."
            raise ShapeError(message)
        rows, row, count = node.shape[0], node.shape[1:], node.size // max(node.shape[0], 1)
        found = None
        if node.dtype.kind in "fc" and node.size:
            _refuse_complex(node)
            # One cotangent for each element of a row, the same for all rows.
            units = reshape(unit_vectors(count, node.dtype), (count, 1, *row))
            (found,) = self._gradients([node], [broadcast(units, (count, rows, *row))], [source], batched=True)
        self._use()
        if found is None:
            return _zeros(source, (rows, *row, *shape[1:])) if zero else None
        order = (1, 0, *range(2, 1 + len(shape)))
        return Tensor._of(reshape(transpose(found._node, order), (rows, *row, *shape[1:])))

    # ----- Parts -----

    def _asked(self) -> Watching:
        """The watched values, for one more question."""
        if self._used and not self._persistent:
            raise AutogradError(_ONCE)
        if self._watching is None:
            message = "The tape has recorded nothing: compute within `with GradientTape() as tape:`."
            raise AutogradError(message)
        return self._watching

    def _use(self) -> None:
        self._used = True

    def _gradients(
        self, outputs: Sequence[Node], seeds: Sequence[Node | None], sources: Sequence[Tensor], batched: bool = False
    ) -> list[Tensor | None]:
        """The gradients of nodes with respect to sources; they remember where another tape, or a leaf, asks for it."""
        watching = self._watching
        assert watching is not None
        places = [watching.sources_of(one) for one in sources]
        wanted = [*dict.fromkeys(node for nodes in places for node in nodes)]
        if not outputs or not wanted:
            return [None] * len(sources)
        now = mode()
        lazily = bool(now.tapes) or (now.remembers and any(_requires_grad(one, now) for one in sources))
        outputs, order = watching.recorded(outputs)
        made = gradients(outputs, seeds, wanted, lazily, batched, order)[0]
        known = dict(zip(wanted, made, strict=True))
        return [_total([known[node] for node in nodes]) for nodes in places]


def _requires_grad(source: Tensor, now: Mode) -> bool:
    """Whether a source is a differentiable leaf, or depends on one, without the tape too."""
    return source._is_leaf(now) if isinstance(source, Parameter) else remembers(source._node)


def _total(parts: Sequence[Tensor | None]) -> Tensor | None:
    """The sum of the gradients of all values that a Parameter had."""
    present = [part for part in parts if part is not None]
    return sum(present[1:], present[0]) if present else None


def _seeds(targets: Sequence[Tensor], given: Any) -> list[Node | None]:
    """The cotangents of targets: None for ones."""
    if given is None:
        return [None] * len(targets)
    listed = one_each(targets, leaves_of(given), "output_gradients")
    found: list[Node | None] = []
    for target, seed in zip(targets, listed, strict=True):
        found.append(None if seed is None else seeds_of([target], [seed], "output_gradients")[0])
    return found


def _check_tensors(values: Sequence[Any], what: str) -> None:
    for value in values:
        if not isinstance(value, Tensor):
            message = f"The {what} of a tape must be Tensors or Parameters, but one is of type {type(value).__name__}."
            raise DtypeError(message)


def _refuse_complex(node: Node) -> None:
    if node.dtype.kind == "c":
        message = "A Jacobian of complex values is none here. Take nb.jacrev, or their real and imaginary parts."
        raise AutogradError(message)


def _zeros(like: Tensor, shape: tuple[int, ...]) -> Tensor:
    node = like._node
    return Tensor._of(beside(zeros(shape, node.dtype), node))
