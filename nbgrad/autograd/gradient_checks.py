"""`gradcheck` and `gradgradcheck`: gradients of values beside finite differences, with PyTorch's arguments.

In: a function and Tensors, some of which require gradients. Out: True, or an error with both Jacobians. Called by
users. `nb.check_grads` checks functions of arrays, in both modes, along random directions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import ArgumentError, AutogradError, DtypeError
from ..process.modes import within
from ..record.tensor import Tensor
from ..remembered import backward as passes
from ..remembered.leaves import remembers
from . import forward_ad
from .functional import leaf_tensor


class GradcheckError(AutogradError):
    """A gradient disagrees with finite differences."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compare the Jacobians of a function with central differences, for all inputs that require gradients.

    Parameters
    ----------
    func : callable
        Takes the inputs; returns a Tensor or a tuple of them.
    inputs : Tensor or tuple
        Those that require gradients should be float64: differences have half of the digits.
    eps : float
        The step of the differences.
    atol, rtol : float
        The error that is allowed.
    raise_exception : bool
        Whether a mismatch is an error, or gives False.
    nondet_tol : float
        How far gradients may lie apart that are computed twice.
    check_forward_ad, check_backward_ad : bool
        Which modes are checked; forward mode for inputs that are not complex.
    check_undefined_grad, check_grad_dtypes, check_batched_grad, check_batched_forward_grad, fast_mode, masked
        PyTorch's further checks and ways, without effect.

    Returns
    -------
    bool

    Raises
    ------
    GradcheckError
        If they disagree.
    ArgumentError, DtypeError
        If no input requires gradients, or an output is no Tensor.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> x = nb.tensor(np.array([0.5, 2.0]), requires_grad=True)
    >>> nb.autograd.gradcheck(lambda x: x.sin() * x, (x,))
    True
    """
    del check_undefined_grad, check_grad_dtypes, check_batched_grad, check_batched_forward_grad, fast_mode, masked
    points = list(inputs) if isinstance(inputs, tuple | list) else [inputs]
    wanted = [k for k, one in enumerate(points) if isinstance(one, Tensor) and remembers(one._node)]
    if not wanted:
        message = (
            "gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True."
        )
        raise ArgumentError(message)
    modes = [mode for mode, wished in ((_BACKWARD, check_backward_ad), (_FORWARD, check_forward_ad)) if wished]
    for number, output in enumerate(_outputs(func, points)):
        for place in wanted:
            message = _disagreement(func, points, place, number, output, modes, (eps, atol, rtol, nondet_tol))
            if message and raise_exception:
                raise GradcheckError(message)
            if message:
                return False
    return True


_BACKWARD, _FORWARD = "Jacobian", "Jacobian computed with forward mode"


def _disagreement(
    func: Callable[..., Any],
    points: Sequence[Any],
    place: int,
    number: int,
    output: Tensor,
    modes: Sequence[str],
    bounds: tuple[float, float, float, float],
) -> str:
    """The words for the first mode whose Jacobian of one output by one input is wrong; none if all are right."""
    eps, atol, rtol, nondet_tol = bounds
    kind, size = points[place]._node.dtype.kind, points[place]._node.dtype.itemsize
    numerical = _numerical(func, points, place, number, eps)
    for mode in modes:
        if mode == _FORWARD:
            if kind == "c":
                continue
            found = _forward(func, points, place, number)
        else:
            found, again = (_analytical(output, points[place]) for _ in range(2))
            if not np.allclose(found, again, 0.0, nondet_tol, equal_nan=True):
                return (
                    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                    f"gives different values. The tolerance for nondeterminism was {nondet_tol}."
                )
        expected = numerical if found.dtype.kind == "c" else np.real(numerical)
        if not np.allclose(found, expected, rtol, atol):
            hint = "The input should be float64 for differences." if size < 8 else ""
            return (
                f"{mode} mismatch for output {number} with respect to input {place},\nnumerical:{expected}\n"
                f"analytical:{found}\n{hint}"
            )
    return ""


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    **options: Any,
) -> bool:
    """Compare the second derivatives of a function with central differences of its gradients.

    Parameters
    ----------
    func, inputs, eps, atol, rtol, raise_exception
        As for `gradcheck`.
    grad_outputs : Tensor or sequence of Tensor, optional
        The cotangents of the outputs; random ones by default.
    **options
        Those of `gradcheck` without effect.

    Returns
    -------
    bool

    Raises
    ------
    GradcheckError, ArgumentError, DtypeError
        As `gradcheck`.

    Examples
    --------
    >>> import numpy as np, nbgrad as nb
    >>> x = nb.tensor(np.array([0.5, 2.0]), requires_grad=True)
    >>> nb.autograd.gradgradcheck(lambda x: x.sin() * x, (x,))
    True
    """
    del options
    points = list(inputs) if isinstance(inputs, tuple | list) else [inputs]
    outputs = _outputs(func, points)
    if grad_outputs is None:
        rng = np.random.default_rng(0)
        given = [Tensor(rng.standard_normal(one.shape).astype(one._node.dtype)) for one in outputs]
    else:
        given = passes.outputs_of(grad_outputs)
    seeds = [leaf_tensor(one) for one in given]
    count = len(points)

    def slopes(*values: Any) -> Any:
        found = _outputs(func, values[:count])
        wanted = [one for one in values[:count] if isinstance(one, Tensor) and remembers(one._node)]
        pairs = [(one._node, seed._node) for one, seed in zip(found, values[count:], strict=True)]
        pairs = [(node, seed) for node, seed in pairs if remembers(node)]
        made = passes.gradients([n for n, _ in pairs], [s for _, s in pairs], [one._node for one in wanted], True)[0]
        return tuple(one for one in made if one is not None and remembers(one._node))

    return gradcheck(slopes, (*points, *seeds), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception)


def _outputs(func: Callable[..., Any], points: Sequence[Any]) -> list[Tensor]:
    with within(remembers=True):
        returned = func(*points)
    found = list(returned) if isinstance(returned, tuple | list) else [returned]
    if not all(isinstance(one, Tensor) for one in found):
        message = f"gradcheck expects a function that returns Tensors, but it returned {type(returned).__name__}."
        raise DtypeError(message)
    return [one for one in found if one._node.dtype.kind in "fc"]


def _analytical(output: Tensor, point: Tensor) -> np.ndarray:
    """The Jacobian by reverse mode: a column for each element of the output."""
    node = output._node
    columns: list[np.ndarray] = []
    for k in range(node.size):
        for unit in (1, 1j) if node.dtype.kind == "c" else (1,):
            seed = np.zeros(node.shape, node.dtype)
            seed.flat[k] = unit
            found = None
            if remembers(node):
                found = passes.gradients([node], [Tensor(seed)._node], [point._node])[0][0]
            columns.append(np.zeros(point.size, point._node.dtype) if found is None else found.asnumpy().ravel())
    return np.array(columns).reshape(-1, point.size).T


def _forward(func: Callable[..., Any], points: Sequence[Any], place: int, number: int) -> np.ndarray:
    """The Jacobian by forward mode, in the form of `_analytical`."""
    point = points[place].detach()
    rows: list[np.ndarray] = []
    for k in range(point.size):
        direction = np.zeros(point.shape, point._node.dtype)
        direction.flat[k] = 1
        with forward_ad.dual_level():
            given = [one.detach() if isinstance(one, Tensor) else one for one in points]
            given[place] = forward_ad.make_dual(point, Tensor(direction))
            primal, tangent = forward_ad.unpack_dual(_outputs(func, given)[number])
            moved = np.zeros(primal.shape, primal._node.dtype) if tangent is None else tangent.asnumpy()
        rows.append(_real_parts(moved))
    return np.array(rows)


def _numerical(func: Callable[..., Any], points: Sequence[Any], place: int, number: int, eps: float) -> np.ndarray:
    """The Jacobian by central differences, in the form of `_analytical`: d/dx + i d/dy of real and imaginary part."""
    base = points[place].detach().asnumpy()
    rows: list[np.ndarray] = []
    for k in range(base.size):
        total: Any = 0
        for unit in (1, 1j) if base.dtype.kind == "c" else (1,):
            ends: list[np.ndarray] = []
            for sign in (1, -1):
                moved = base.copy()
                moved.flat[k] += sign * eps * unit
                given = list(points)
                given[place] = leaf_tensor(Tensor(moved))
                ends.append(_outputs(func, given)[number].detach().asnumpy().ravel())
            slope = (ends[0] - ends[1]) / (2 * eps)
            total = total + unit * _real_parts(slope)
        rows.append(total)
    return np.array(rows)


def _real_parts(numbers: np.ndarray) -> np.ndarray:
    """Real numbers in a row; of complex ones, real and imaginary parts in turns."""
    parts = [np.real(numbers), np.imag(numbers)] if numbers.dtype.kind == "c" else [numbers]
    return np.stack(parts, -1).ravel()
