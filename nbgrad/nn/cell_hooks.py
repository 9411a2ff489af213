"""Hooks of Cells: functions that see, and may change, inputs, outputs and gradients of one Cell.

In: a Cell and a function. Out: a handle that removes the function. Called by cell.py, whose class takes its methods
from here, and by users. Gradients pass through a rule of the identity (`custom_vjp`), so that hooks work in every
transform.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import DtypeError
from ..process.modes import KEEPS, TRACED
from ..record.as_node import as_node
from ..record.tensor import Tensor
from ..transforms.custom import custom_vjp


class HookHandle:
    """The result of a registration; `remove` takes the hook away."""

    def __init__(self, cell: HookedCell, entry: tuple[str, Callable[..., Any]]) -> None:
        self._cell, self._entry = cell, entry

    def remove(self) -> None:
        """Take the hook away; a second call does nothing."""
        self._cell._hooks = tuple([entry for entry in self._cell._hooks if entry is not self._entry])


class HookedCell:
    """The hooks of a Cell, in the order of their registration."""

    _hooks: tuple[tuple[str, Callable[..., Any]], ...] = ()

    def _register(self, kind: str, hook_fn: Callable[..., Any]) -> HookHandle:
        if not callable(hook_fn):
            message = f"A hook must be a function, but got {type(hook_fn).__name__}."
            raise DtypeError(message)
        entry = (kind, hook_fn)
        self._hooks = (*self._hooks, entry)
        return HookHandle(self, entry)

    def register_forward_pre_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call `hook_fn(cell, inputs)` before `construct`; new inputs, if it returns any, take their place.

        Parameters
        ----------
        hook_fn : callable
            Takes the Cell and the tuple of positional arguments; returns None, the new ones as a tuple, or a single
            one.

        Returns
        -------
        HookHandle
            `remove()` takes the hook away.

        Examples
        --------
        >>> import nbgrad as nb
        >>> net = nb.nn.ReLU()
        >>> handle = net.register_forward_pre_hook(lambda cell, inputs: -inputs[0])
        >>> print(net(nb.Tensor([-1.0, 2.0])))
        [1. 0.]
        >>> handle.remove()
        >>> print(net(nb.Tensor([-1.0, 2.0])))
        [0. 2.]
        """
        return self._register("before", hook_fn)

    def register_forward_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call `hook_fn(cell, inputs, output)` after `construct`; a new output, if it returns one, takes its place."""
        return self._register("after", hook_fn)

    def register_backward_pre_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call `hook_fn(cell, grad_output)` with the tuple of cotangents of the outputs.

        Parameters
        ----------
        hook_fn : callable
            Returns None, or new cotangents, with which the backward pass goes on.
        """
        return self._register("gradient of outputs", hook_fn)

    def register_backward_hook(self, hook_fn: Callable[..., Any]) -> HookHandle:
        """Call `hook_fn(cell, grad_input, grad_output)` with the cotangents of inputs and outputs.

        Parameters
        ----------
        hook_fn : callable
            Returns None, or new cotangents of the inputs. It is called where cotangents of the inputs are computed: not
            in a first layer whose inputs are data.

        Examples
        --------
        >>> import nbgrad as nb
        >>> net = nb.nn.ReLU()
        >>> _ = net.register_backward_hook(lambda cell, grad_input, grad_output: (10 * grad_input[0],))
        >>> print(nb.grad(net)(nb.Tensor([-1.0, 2.0])))
        [ 0. 10.]
        """
        return self._register("gradient of inputs", hook_fn)


def hooked_call(
    cell: Any, args: tuple[Any, ...], kwargs: dict[str, Any], compute: Callable[[tuple[Any, ...], dict[str, Any]], Any]
) -> Any:
    """The output of a Cell with its hooks."""
    hooks: dict[str, list[Callable[..., Any]]] = {}
    for kind, hook in cell._hooks:
        hooks.setdefault(kind, []).append(hook)
    for hook in hooks.get("before", ()):
        found = hook(cell, args)
        if found is not None:
            args = found if isinstance(found, tuple) else (found,)
    of_outputs, of_inputs = hooks.get("gradient of outputs", []), hooks.get("gradient of inputs", [])
    if any(isinstance(one, Tensor) and as_node(one).traced & (KEEPS | TRACED) for one in args):
        of_inputs = [*of_inputs, *hooks.get("gradient of module", [])]
    else:  # where no gradients of inputs are computed, there are those of outputs

        def without_inputs(hook: Callable[..., Any]) -> Callable[..., Any]:
            return lambda cell, gradients: hook(cell, (None,) * len(args), gradients) and None

        of_outputs = [*of_outputs, *map(without_inputs, hooks.get("gradient of module", []))]
    arrived: list[tuple[Any, ...]] = []
    if of_inputs:

        def leave(gradients: tuple[Any, ...]) -> tuple[Any, ...]:
            for hook in of_inputs:
                gradients = _instead(hook(cell, gradients, arrived[-1]), gradients)
            return gradients

        args = _through(args, leave)
    output = compute(args, kwargs)
    for hook in hooks.get("after", ()):
        found = hook(cell, args, output)
        output = output if found is None else found
    if not (of_outputs or of_inputs):
        return output

    def arrive(gradients: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in of_outputs:
            gradients = _instead(hook(cell, gradients), gradients)
        arrived.append(gradients)
        return gradients

    return _through(output, arrive) if isinstance(output, tuple) else _through((output,), arrive)[0]


def _through(values: tuple[Any, ...], rule: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> tuple[Any, ...]:
    """Values whose cotangents pass through a rule; other things than Tensors of floats stay as they are."""
    places = [k for k, value in enumerate(values) if isinstance(value, Tensor) and value.dtype.kind in "fc"]
    if not places:
        return values

    def backward(*args: Any) -> tuple[Any, ...]:
        cotangents = args[-1]
        return tuple(rule(cotangents if isinstance(cotangents, tuple) else (cotangents,)))

    passed = custom_vjp(lambda *x: tuple([one * 1 for one in x]), bprop=backward)(*[values[k] for k in places])
    result = list(values)
    for k, value in zip(places, passed, strict=True):
        result[k] = value
    return tuple(result)


def _instead(found: Any, gradients: tuple[Any, ...]) -> tuple[Any, ...]:
    """The cotangents that a hook returned, or those that it got."""
    if found is None:
        return gradients
    new = found if isinstance(found, tuple) else (found,)
    fits = len(new) == len(gradients) and all(
        isinstance(one, Tensor) and one.shape == old.shape for one, old in zip(new, gradients, strict=True)
    )
    if not fits:
        message = (
            f"A backward hook returns cotangents of the shapes that it got, {[g.shape for g in gradients]}, or None, "
            f"but returned {[getattr(g, 'shape', type(g).__name__) for g in new]}."
        )
        raise DtypeError(message)
    return new
