"""Functions with derivatives of their own, in PyTorch's form: a class with `forward` and `backward`.

In: a subclass of `Function`. Out: its `apply`, whose results carry the rule, also under nbgrad's transforms. Called by
users. `custom_vjp` is nbgrad's own form of the same.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import AutogradError, DtypeError, GradientShapeError
from ..graph.builders import beside, cast
from ..graph.cotangents.shared_rules import SharedRule
from ..graph.ir import Node, make, zeros
from ..process.modes import mode
from ..record.as_node import as_node, wrap
from ..record.tensor import Tensor
from ..remembered.leaves import detached, forgetting, is_leaf


class FunctionCtx:
    """The context of one call of a `Function`: what `forward` leaves for `backward`, in attributes of any name."""

    def __init__(self) -> None:
        self._saved: tuple[Any, ...] = ()
        self._given: tuple[Any, ...] | None = None
        self._materialize = True
        self._constant: list[Tensor] = []
        self._dirty: list[Tensor] = []
        self.needs_input_grad: tuple[bool, ...] = ()

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs or outputs for `backward`, which finds them in `saved_tensors`.

        Raises
        ------
        DtypeError
            For anything but Tensors and None.
        """
        for one in tensors:
            if one is not None and not isinstance(one, Tensor):
                message = f"save_for_backward can only save variables, but argument is of type {type(one).__name__}"
                raise DtypeError(message)
        self._saved = tensors

    save_for_forward = save_for_backward

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The Tensors that were saved."""
        return self._saved if self._given is None else self._given

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Say of outputs that no gradient passes through them."""
        self._constant.extend(outputs)

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros for outputs without a cotangent, instead of None."""
        self._materialize = bool(value)

    def mark_dirty(self, *inputs: Tensor) -> None:
        """Say of inputs that `forward` has written to them; it returns them, too."""
        self._dirty.extend(inputs)


class _OwnRule(SharedRule):
    """The rule of one call: runs `backward`."""

    def __init__(self, function: type[Function], ctx: FunctionCtx, places: Sequence[int], count: int) -> None:
        self.function, self.ctx, self.places, self.count = function, ctx, places, count
        self.argument_count = len(places)
        self.tangent = None if function.jvp is Function.jvp else self._tangent
        self.saved: list[tuple[str, int]] = []
        """For each saved Tensor, whether it is an "input" or an "output", and its place among the node's inputs."""
        self.outputs: list[Node | None] = []
        """Those that gradients pass through."""
        self.returned: list[Node | None] = []
        """All outputs; None for those that are no Tensors."""
        self.tensors: list[int] = []
        """The positions of Tensors among the outputs, whose values stand last among the node's inputs."""

    def cotangents_together(self, given: Mapping[int, Node], node: Node) -> list[Node | None]:
        """The cotangents of the inputs."""
        grads: list[Any] = []
        for k, output in enumerate(self.returned):
            if k in given:
                grads.append(wrap(given[k]))
            elif output is None or not self.ctx._materialize:
                grads.append(None)
            else:
                grads.append(Tensor._of(beside(zeros(output.shape, output.dtype), output)))
        own = self.function.vjp is not Function.vjp
        found = self._asked(self.function.vjp if own else self.function.backward, grads, node)
        results = self._checked(found, node.inputs[1 : 1 + self.argument_count])
        return [*results, *[None] * (len(node.inputs) - 1 - self.argument_count)]

    def _asked(self, rule: Callable[..., Any], given: Sequence[Any], node: Node) -> Any:
        """Call a rule, which finds in its context the Tensors that were saved."""
        saved: list[Any] = []
        for kind, place in self.saved:
            if kind == "none":
                saved.append(None)
            elif kind == "output":
                # The output itself, through which second derivatives flow.
                inputs = (node.inputs[1 + self.count + self.tensors.index(place)], *node.inputs[1:])
                same = place == node.params[1]
                saved.append(Tensor._of(node if same else make("custom", inputs, (self, place))))
            else:
                saved.append(Tensor._of(node.inputs[1 + place]))
        self.ctx._given = tuple(saved)
        try:
            return rule(self.ctx, *given)
        finally:
            self.ctx._given = None

    def _tangent(self, node: Node, tangents: Sequence[Node | None]) -> Node:
        """The tangent of one output, by the function's own `jvp`."""
        given: list[Any] = [None] * len(self.ctx.needs_input_grad)
        for place, source, tangent in zip(self.places, node.inputs[1:], tangents[1:], strict=False):
            if tangent is not None:
                given[place] = wrap(tangent)
            elif self.ctx._materialize and source.dtype.kind in "fc":
                given[place] = Tensor._of(beside(zeros(source.shape, source.dtype), source))
        found = self._asked(self.function.jvp, given, node)
        found = found if isinstance(found, tuple) else (found,)
        name = f"{self.function.__name__}.jvp"
        if len(found) != len(self.outputs):
            message = (
                f"{name} returned an incorrect number of tangents (expected {len(self.outputs)}, got {len(found)})"
            )
            raise AutogradError(message)
        one = found[node.params[1]]
        if one is None:
            return zeros(node.shape, node.dtype)
        made = as_node(one)
        if made.shape != node.shape:
            message = f"{name} returned a tangent of shape {made.shape} for an output of shape {node.shape}"
            raise GradientShapeError(message)
        return cast(made, node.dtype)

    def _checked(self, found: Any, arguments: Sequence[Node]) -> list[Node | None]:
        name = f"{self.function.__name__}Backward"
        found = found if isinstance(found, tuple) else (found,)
        expected = len(self.ctx.needs_input_grad)
        if len(found) < expected or any(one is not None for one in found[expected:]):
            message = (
                f"function {name} returned an incorrect number of gradients (expected {expected}, got {len(found)})"
            )
            raise AutogradError(message)
        of_tensor = dict(zip(self.places, arguments, strict=True))
        results: list[Node | None] = []
        for position, one in enumerate(found[:expected]):
            if position not in of_tensor:
                if one is not None:
                    message = (
                        f"function {name} returned a gradient different than None at position {position + 1}, but the "
                        "corresponding forward input was not a Variable"
                    )
                    raise AutogradError(message)
                continue
            argument = of_tensor[position]
            if one is None or argument.dtype.kind not in "fc":
                results.append(None)
                continue
            part = as_node(one)
            if part.shape != argument.shape:
                message = (
                    f"Function {name} returned an invalid gradient at index {position} - got {part.shape} but expected "
                    f"shape compatible with {argument.shape}"
                )
                raise GradientShapeError(message)
            results.append(cast(part, argument.dtype))
        return results


class Function:
    """A function with a derivative of its own.

    A subclass has the static methods `forward(ctx, *args)` and `backward(ctx, *cotangents)`; or `forward(*args)`,
    `setup_context(ctx, inputs, output)` and `backward`. It is called by `apply`. `backward` gives one gradient for each
    argument of `forward`, None for those without one.

    Examples
    --------
    >>> import nbgrad as nb
    >>> class Exp(nb.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, i):
    ...         result = i.exp()
    ...         ctx.save_for_backward(result)
    ...         return result
    ...     @staticmethod
    ...     def backward(ctx, grad_output):
    ...         (result,) = ctx.saved_tensors
    ...         return grad_output * result
    >>> x = nb.tensor(0.0, requires_grad=True)
    >>> Exp.apply(x).backward()
    >>> print(x.grad)
    1.0
    """

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """The function; to be written."""
        message = "You must implement the forward function for custom autograd.Function."
        raise NotImplementedError(message)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """The cotangents of the arguments, given those of the outputs; to be written."""
        message = "You must implement either the backward or vjp method for your custom autograd.Function."
        raise NotImplementedError(message)

    @staticmethod
    def vjp(ctx: Any, *grad_outputs: Any) -> Any:
        """Another name of `backward`, to be written instead of it."""
        raise NotImplementedError

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """The tangents of the outputs, given those of the inputs; by default those that `backward` is transposed to."""
        raise NotImplementedError

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Call the function.

        Raises
        ------
        AutogradError, DtypeError, GradientShapeError
            When `backward` is called later, for gradients that do not fit.
        """
        places = [k for k, value in enumerate(args) if isinstance(value, Tensor)]
        nodes = [args[k]._node for k in places]
        ctx = FunctionCtx()
        remembering = mode().remembers
        ctx.needs_input_grad = tuple(
            isinstance(value, Tensor) and bool(value._node.traced) and value._node.dtype.kind in "fc" and remembering
            for value in args
        )
        with forgetting():
            if hasattr(cls, "setup_context"):
                returned = cls.forward(*args)
                cls.setup_context(ctx, args, returned)  # pyright: ignore[reportAttributeAccessIssue]
            else:
                returned = cls.forward(ctx, *args)
        several = isinstance(returned, tuple | list)
        outputs = list(returned) if several else [returned]
        dirty = {id(one) for one in ctx._dirty}
        if not dirty.issubset(map(id, outputs)):
            message = "Some elements marked as dirty during the forward method were not returned as output."
            raise AutogradError(message)
        if not any(ctx.needs_input_grad):
            return returned
        pairs = zip(places, nodes, strict=True)
        if any(is_leaf(node) and node.owner() is args[k] for k, node in pairs if id(args[k]) in dirty):
            message = "a leaf Variable that requires grad has been used in an in-place operation."
            raise AutogradError(message)
        constant = {id(one) for one in ctx._constant}
        raw = [detached(one._node) if isinstance(one, Tensor) else None for one in outputs]
        passing = [
            None if node is None or node.dtype.kind not in "fc" or id(one) in constant else node
            for node, one in zip(raw, outputs, strict=True)
        ]
        rule = _OwnRule(cls, ctx, places, len(nodes))
        rule.outputs, rule.returned = passing, raw
        rule.tensors = [k for k, node in enumerate(raw) if node is not None]
        others = [node for node in raw if node is not None]
        extra = _saved_places(rule, ctx, args, outputs, places)
        rule.count = len(nodes) + len(extra)
        inputs = (*nodes, *extra, *others)
        ctx._saved = ()
        wrapped: list[Any] = []
        for position, (one, node) in enumerate(zip(outputs, passing, strict=True)):
            if node is None:
                wrapped.append(one)
                continue
            made = wrap(make("custom", (node, *inputs), (rule, position)))
            if id(one) in dirty:
                one._replace(made._node)
            wrapped.append(one if id(one) in dirty else made)
        return type(returned)(wrapped) if several else wrapped[0]


def _saved_places(
    rule: _OwnRule, ctx: FunctionCtx, args: Sequence[Any], outputs: Sequence[Any], places: Sequence[int]
) -> list[Node]:
    """Note where saved Tensors are among the inputs of the rule's nodes; those that are neither arguments nor outputs
    are given."""
    extra: list[Node] = []
    for one in ctx._saved:
        if one is None:
            rule.saved.append(("none", 0))
            continue
        argument = next((k for k, place in enumerate(places) if args[place] is one), None)
        output = next((k for k in rule.tensors if outputs[k] is one), None)
        if argument is not None:
            rule.saved.append(("input", argument))
        elif output is not None and rule.outputs[output] is not None:
            rule.saved.append(("output", output))
        else:
            rule.saved.append(("input", len(places) + len(extra)))
            extra.append(one._node)
    return extra


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Say of a `backward` that its results cannot be differentiated: doing so is an error.

    Examples
    --------
    >>> import nbgrad as nb
    >>> class Cube(nb.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x * x
    ...     @staticmethod
    ...     @nb.autograd.once_differentiable
    ...     def backward(ctx, g):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x * x * g
    >>> x = nb.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> print(x.grad)
    12.0
    """

    @functools.wraps(backward)
    def once(ctx: Any, *grads: Any) -> Any:
        with forgetting():
            found = backward(ctx, *grads)
        if not mode().remembers:
            return found
        sources = [one._node for one in (*grads, *ctx.saved_tensors) if isinstance(one, Tensor)]
        found = found if isinstance(found, tuple) else (found,)
        return tuple(
            Tensor._of(make("custom", (one._node, *sources), (_Once(), 0))) if isinstance(one, Tensor) else one
            for one in found
        )

    return once


class _Once:
    """The rule of what cannot be differentiated."""

    def cotangents(self, g: Node, node: Node) -> list[Node | None]:
        """Refused."""
        message = "trying to differentiate twice a function that was marked with @once_differentiable"
        raise AutogradError(message)
