"""Tensor's methods for values that remember: `requires_grad`, `backward`, `grad`, hooks, under PyTorch's names.

In: a Tensor. Out: the same Tensor as a leaf, its gradient, or a value that is cut off. Called by users.
"""

from __future__ import annotations

import itertools
import operator
import weakref
from collections.abc import Callable
from typing import Any

from ..errors import AutogradError, DtypeError
from ..graph.ir import make
from ..graph.trace import current_trace
from ..process.modes import TRACED
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import write
from ..record.tensor import Tensor, part_of_tensor
from ..remembered import backward as passes
from ..remembered.leaves import NOTED, become_leaf, detached, is_leaf, leaf_of, memory_of, remembers, source_of

_numbers = itertools.count()
RECORDED_HOOKS: list[Callable[[Tensor, Callable[[Tensor], Tensor]], None]] = []
"""The function that lets hooks see cotangents of recorded values; `nbgrad.transforms.custom` puts it here."""


class HookHandle:
    """A registered hook, which `remove()` takes away; also as a `with` block that removes it at its end."""

    __slots__ = ("_hooks", "_number")

    def __init__(self, hooks: dict[int, Callable[..., Any]], hook: Callable[..., Any]) -> None:
        self._hooks, self._number = hooks, next(_numbers)
        hooks[self._number] = hook

    def remove(self) -> None:
        """Take the hook away; a second time does nothing."""
        self._hooks.pop(self._number, None)

    def __enter__(self) -> HookHandle:
        return self

    def __exit__(self, *_: Any) -> None:
        self.remove()


@part_of_tensor
class Remembering(Tensor):
    """The methods that differentiate values instead of functions."""

    __slots__ = ()

    @property
    def requires_grad(self) -> bool:
        """Whether the value is, or depends on, a differentiable leaf; setting it makes a leaf, or ends being one."""
        return remembers(self._node)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Make this Tensor a differentiable leaf, whose gradient `backward` leaves in `grad`; or no leaf any more.

        Raises
        ------
        AutogradError
            For integers and booleans, and for False where the value was computed from a leaf.
        """
        if requires_grad:
            become_leaf(self)
        elif remembers(self._node):
            if not is_leaf(self._node):
                message = (
                    "you can only change requires_grad flags of leaf variables. If you want to use a computed variable "
                    "in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
                )
                raise AutogradError(message)
            self._node = detached(self._node)
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether the value was not computed from a differentiable leaf; only leaves keep their gradients."""
        node = self._node
        return not remembers(node) or (is_leaf(node) and node.owner is not None and node.owner() is self)

    @property
    def grad_fn(self) -> str | None:
        """The name of the operation that made the value, if it was computed from a differentiable leaf."""
        return None if self.is_leaf else self._node.name

    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` has accumulated; None before. It can be set, to None as well."""
        memory = getattr(self, "_memory", None)
        return None if memory is None else memory.grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is self:
            message = "can't assign Variable as its own grad"
            raise AutogradError(message)
        if value is not None and not isinstance(value, Tensor):
            message = f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
            raise DtypeError(message)
        if value is not None and value.shape != self.shape:
            message = f"assigned grad has data of a different size: {value.shape} instead of {self.shape}"
            raise AutogradError(message)
        if value is not None and value.dtype != self.dtype:
            message = f"assigned grad has data of a different type: {value.dtype} instead of {self.dtype}"
            raise AutogradError(message)
        memory_of(self).grad = value

    @grad.deleter
    def grad(self) -> None:
        memory_of(self).grad = None

    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Differentiate this value with respect to the leaves that it was computed from, and add to their `grad`.

        Parameters
        ----------
        gradient : Tensor, optional
            The cotangent of this value, of its shape; may be left out for one element.
        retain_graph : bool, optional
            Whether another pass may follow; by default as `create_graph`.
        create_graph : bool
            Whether the gradients can be differentiated in turn.
        inputs : Tensor or sequence of Tensor, optional
            Accumulate in these only; they need not be leaves.

        Raises
        ------
        AutogradError
            If the value does not remember, was released by a pass before, or has several elements and no `gradient`.
        ShapeError, DtypeError
            If `gradient` does not fit.

        Examples
        --------
        >>> import nbgrad as nb
        >>> x = nb.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        Tensor(shape=[2], dtype=Float32, value= [ 2.00000000e+00,  4.00000000e+00])
        """
        check_outside("backward()", "autograd.grad(), which gives gradients back")
        passes.check_outputs([self])
        given = None if inputs is None else inputs_of(inputs)
        passes.backward([self], passes.seeds_of([self], gradient, "gradient"), retain_graph, create_graph, given)

    def detach(self) -> Tensor:
        """The value as another Tensor that does not remember how it was made, and is a constant to transforms."""
        node = self._node
        if node.traced & TRACED and node.dtype.kind in "fc":
            node = make("stop_gradient", (node,))
            node.traced &= TRACED
            return Tensor._of(node)
        return Tensor._of(detached(node))

    def clone(self) -> Tensor:
        """A copy through which gradients flow."""
        return self.copy()  # pyright: ignore[reportAttributeAccessIssue]

    def retain_grad(self) -> None:
        """Let `backward` leave the gradient of this computed value in its `grad` too.

        Raises
        ------
        AutogradError
            If the value does not remember.
        """
        if not remembers(self._node):
            message = "can't retain_grad on Tensor that has requires_grad=False"
            raise AutogradError(message)
        if not is_leaf(self._node):
            memory_of(self).retains = True
            _note(self)

    @property
    def retains_grad(self) -> bool:
        """Whether this is a computed value that retains its gradient."""
        memory = getattr(self, "_memory", None)
        return memory is not None and memory.retains

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> HookHandle:
        """Let a function see the gradient of this value at each backward pass, and give another one, or None.

        In a function that is differentiated (`nb.grad`), it sees the gradient of all that uses the value after this.

        Returns
        -------
        HookHandle
            Its `remove()` takes the hook away.

        Raises
        ------
        AutogradError
            If the value does not remember.
        """
        if current_trace() is not None and not self.requires_grad and callable(hook):
            hooks: dict[int, Callable[..., Any]] = {}
            handle = HookHandle(hooks, hook)
            RECORDED_HOOKS[0](self, lambda gradient: _seen(gradient, hooks))
            return handle
        _check_hook(self, hook)
        if not self.is_leaf:
            memory = memory_of(self)
            if memory.hooks and self._node not in NOTED:
                self._memory = memory.of_next_value()
            _note(self)
        return HookHandle(memory_of(self).hooks, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> HookHandle:
        """Let a function get this leaf after each backward pass that has changed its `grad`.

        Raises
        ------
        AutogradError
            If this is no differentiable leaf.
        """
        _check_hook(self, hook)
        if not self.is_leaf:
            message = "post accumulate grad hooks cannot be registered on non-leaf tensors"
            raise AutogradError(message)
        return HookHandle(memory_of(self).after, hook)

    def __deepcopy__(self, memo: Any) -> Tensor:
        made = self.__copy__()
        if is_leaf(self._node):
            made._node = leaf_of(made, detached(self._node))
            if self.grad is not None:
                memory_of(made).grad = Tensor._of(detached(self.grad._node))
        return made

    def copy_(self, other: Any) -> Tensor:
        """Write the values of another array to this Tensor."""
        write(self, as_node(other), "copy_")
        return self

    def fill_(self, value: Any) -> Tensor:
        """Write one number to every element."""
        self.fill(value)  # pyright: ignore[reportAttributeAccessIssue]
        return self

    def mul_(self, other: Any) -> Tensor:
        """Write the product with another array to this Tensor."""
        write(self, as_node(operator.mul(self, other)), "mul_")
        return self

    def detach_(self) -> Tensor:
        """Forget how this Tensor was made, which becomes a constant to transforms."""
        self._node = self.detach()._node
        return self

    def zero_(self) -> Tensor:
        """Write zero to every element."""
        self.fill(0)  # pyright: ignore[reportAttributeAccessIssue]
        return self


def _in_place(function: Callable[[Any, Any], Any], name: str) -> Callable[..., Tensor]:
    def method(self: Tensor, other: Any, *, alpha: Any = None) -> Tensor:
        scaled = other if alpha is None else wrap(as_node(other)) * alpha  # pyright: ignore[reportOperatorIssue]
        write(self, as_node(function(self, scaled)), name)
        return self

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Write the result of `{name[:-1]}` with another array, times `alpha`, to this Tensor."
    return method


for _name in ("add", "sub"):
    setattr(Tensor, f"{_name}_", _in_place(getattr(operator, _name), f"{_name}_"))


def _seen(gradient: Tensor, hooks: dict[int, Callable[..., Any]]) -> Tensor:
    """A gradient after hooks, those that are left."""
    for hook in list(hooks.values()):
        found = hook(gradient)
        gradient = gradient if found is None else found
    return gradient


def _note(tensor: Tensor) -> None:
    """Let backward passes find a computed value."""
    NOTED[tensor._node] = memory_of(tensor), weakref.ref(tensor)


def _check_hook(tensor: Tensor, hook: Any) -> None:
    if not tensor.requires_grad:  # pyright: ignore[reportAttributeAccessIssue]
        message = "cannot register a hook on a tensor that doesn't require gradient"
        raise AutogradError(message)
    if not callable(hook):
        message = f"A hook is a function of the gradient, but got {type(hook).__name__}."
        raise DtypeError(message)


def inputs_of(inputs: Any) -> list[Tensor]:
    """The inputs of a backward pass as a list.

    Raises
    ------
    AutogradError, DtypeError
        If there are none, or one does not remember.
    """
    found = passes.outputs_of(inputs)
    if not found:
        message = "'inputs' argument to backward() cannot be empty."
        raise AutogradError(message)
    if not all(remembers(source_of(one)) for one in found):
        message = "One of the differentiated Tensors does not require grad"
        raise AutogradError(message)
    return found


def check_outside(how: str, instead: str) -> None:
    """Refuse to change gradients of Tensors while a function is recorded.

    Raises
    ------
    AutogradError
        Always there.
    """
    if current_trace() is not None:
        message = f"{how} accumulates gradients in Tensors, which a function that is recorded cannot do. Use {instead}."
        raise AutogradError(message)
