"""Activation functions as Cells, and finding them by name.

In: the numbers that shape a function; then arrays. Out: Cells. Called by users, and by layers that take the name of an
activation. Their functions are in `nbgrad.ops.activations`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..errors import ArgumentError, NameTakenError
from ..graph.ir import elementwise
from ..ops import activations as functions
from ..ops.elementwise import tanh
from ..record.as_node import as_node, wrap
from ..record.axes_and_dtypes import inexact
from ..record.tensor import Tensor
from .cell import Cell
from .layer_arguments import flag, parameter, positive, real, whole


class _Activation(Cell):
    """A function of one array, with the numbers that shape it as attributes of their names."""

    function: Callable[..., Tensor]

    def __init__(self, **shape: float) -> None:
        super().__init__()
        object.__setattr__(self, "_shape", tuple(shape))
        for name, value in shape.items():
            setattr(self, name, value)

    def construct(self, x: Any) -> Tensor:
        """Apply the function to every element, or along its axis."""
        return type(self).function(x, **{name: getattr(self, name) for name in self._shape})

    def extend_repr(self) -> str:
        """The numbers."""
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self._shape)


# ----- Rectifiers -----


class ReLU(_Activation):
    """x where it is positive, else 0.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.nn.ReLU()(nb.Tensor([-1.0, 2.0])))
    [0. 2.]
    """

    function = staticmethod(functions.relu)


class ReLU6(_Activation):
    """x limited to the interval from 0 to 6."""

    function = staticmethod(functions.relu6)


class LeakyReLU(_Activation):
    """x where it is positive, else alpha * x.

    Notes
    -----
    Differs from `torch.nn.LeakyReLU`: the default slope is 0.2, as in MindSpore.
    """

    function = staticmethod(functions.leaky_relu)

    def __init__(self, alpha: float = 0.2) -> None:
        super().__init__(alpha=real(alpha, "alpha"))


class PReLU(Cell):
    """x where it is positive, else w * x, with one learned w or one for each channel (He, Zhang, Ren and Sun 2015).

    Parameters
    ----------
    channel : int
        1, or the extent of the input's second axis.
    w : float, list of float, Tensor or ndarray
        The initial weights.
    dtype : dtype

    Attributes
    ----------
    w : Parameter, shape (channel,)

    Raises
    ------
    ArgumentError, DtypeError, ShapeError
        If `w` does not have as many elements as there are channels.
    """

    def __init__(self, channel: int = 1, w: Any = 0.25, dtype: Any = np.float32) -> None:
        super().__init__()
        self.channel = positive(channel, "channel")
        given = w if isinstance(w, Tensor | int | float) else np.asarray(w)
        weight = parameter(given, (self.channel,), dtype)
        weight.name = "a"  # as MindSpore names it
        self.w = weight

    def construct(self, x: Any) -> Tensor:
        """Apply the function to `x` of shape (N, C, ...)."""
        return functions.prelu(x, self.w)

    def extend_repr(self) -> str:
        """The number of weights."""
        return f"channel={self.channel}"


class ELU(_Activation):
    """x where it is positive, else alpha * (exp(x) - 1) (Clevert et al. 2015)."""

    function = staticmethod(functions.elu)

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__(alpha=real(alpha, "alpha"))


class CELU(_Activation):
    """x where it is positive, else alpha * (exp(x / alpha) - 1) (Barron 2017); alpha is not 0."""

    function = staticmethod(functions.celu)

    def __init__(self, alpha: float = 1.0) -> None:
        super().__init__(alpha=real(alpha, "alpha"))
        if alpha == 0:
            message = "alpha of CELU must not be 0, because it divides."
            raise ArgumentError(message)


class SELU(_Activation):
    """The self-normalising unit (Klambauer et al. 2017). MindSpore calls it SeLU."""

    function = staticmethod(functions.selu)


SeLU = SELU


class Hardtanh(_Activation):
    """x limited to the interval from min_val to max_val."""

    function = staticmethod(functions.hardtanh)

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0) -> None:
        super().__init__(min_val=real(min_val, "min_val"), max_val=real(max_val, "max_val"))
        if min_val > max_val:
            message = f"min_val of Hardtanh must be at most max_val, but got {min_val} and {max_val}."
            raise ArgumentError(message)


class HShrink(_Activation):
    """x, but 0 where its absolute value is at most lambd."""

    function = staticmethod(functions.hardshrink)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=real(lambd, "lambd"))


class SoftShrink(_Activation):
    """x moved towards 0 by lambd; 0 where its absolute value is at most lambd."""

    function = staticmethod(functions.softshrink)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__(lambd=real(lambd, "lambd"))


class HSigmoid(_Activation):
    """x / 6 + 1 / 2, limited to the interval from 0 to 1."""

    function = staticmethod(functions.hardsigmoid)


class HSwish(_Activation):
    """x times its `HSigmoid` (Howard et al. 2019)."""

    function = staticmethod(functions.hardswish)


# ----- Smooth ones -----


class GELU(_Activation):
    """x times the probability that a standard normal variable is below x (Hendrycks and Gimpel 2016).

    Parameters
    ----------
    approximate : bool
        Use `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x**3)))`, which is MindSpore's default.
    """

    def __init__(self, approximate: bool = True) -> None:
        super().__init__()
        self.approximate = flag(approximate, "approximate")

    def construct(self, x: Any) -> Tensor:
        """Apply the function to every element."""
        return functions.gelu(x, "tanh" if self.approximate else "none")

    def extend_repr(self) -> str:
        """Whether it is approximated."""
        return f"approximate={self.approximate}"


def _fast_gelu(x: Any) -> Tensor:
    node = inexact(as_node(x))
    return wrap(node * elementwise("expit", node * 1.702))


class FastGelu(_Activation):
    """x * sigmoid(1.702 x), which is close to GELU (Hendrycks and Gimpel 2016)."""

    function = staticmethod(_fast_gelu)


class SiLU(_Activation):
    """x * sigmoid(x), also called swish."""

    function = staticmethod(functions.silu)


class Sigmoid(_Activation):
    """1 / (1 + exp(-x))."""

    function = staticmethod(functions.sigmoid)


class LogSigmoid(_Activation):
    """log(sigmoid(x)), accurate where the sigmoid is tiny."""

    function = staticmethod(functions.logsigmoid)


class Tanh(_Activation):
    """The hyperbolic tangent."""

    function = staticmethod(tanh)


class Tanhshrink(_Activation):
    """x - tanh(x)."""

    function = staticmethod(functions.tanhshrink)


class Softplus(_Activation):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x exceeds the threshold."""

    function = staticmethod(functions.softplus)

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__(beta=real(beta, "beta"), threshold=real(threshold, "threshold"))


class Softsign(_Activation):
    """x / (1 + abs(x))."""

    function = staticmethod(functions.softsign)


class Mish(_Activation):
    """x * tanh(log(1 + exp(x))) (Misra 2019)."""

    function = staticmethod(functions.mish)


# ----- Along an axis -----


class Softmax(_Activation):
    """exp(x) divided by its sum along an axis, without overflow.

    Examples
    --------
    >>> import nbgrad as nb
    >>> print(nb.nn.Softmax()(nb.Tensor([[1000.0, 1000.0]])))
    [[0.5 0.5]]
    """

    function = staticmethod(functions.softmax)

    def __init__(self, axis: int = -1) -> None:
        super().__init__(axis=whole(axis, "axis"))


class LogSoftmax(_Activation):
    """The logarithm of `Softmax`, accurate where it is tiny."""

    function = staticmethod(functions.log_softmax)

    def __init__(self, axis: int = -1) -> None:
        super().__init__(axis=whole(axis, "axis"))


class Softmin(_Activation):
    """`Softmax` of -x."""

    function = staticmethod(functions.softmin)

    def __init__(self, axis: int = -1) -> None:
        super().__init__(axis=whole(axis, "axis"))


class GLU(_Activation):
    """The first half of an axis times the sigmoid of the second half (Dauphin et al. 2017)."""

    function = staticmethod(functions.glu)

    def __init__(self, axis: int = -1) -> None:
        super().__init__(axis=whole(axis, "axis"))


# ----- By name -----

BY_NAME: dict[str, type[Cell]] = {
    "softmax": Softmax,
    "softmin": Softmin,
    "logsoftmax": LogSoftmax,
    "relu": ReLU,
    "relu6": ReLU6,
    "silu": SiLU,
    "tanh": Tanh,
    "gelu": GELU,
    "fast_gelu": FastGelu,
    "elu": ELU,
    "celu": CELU,
    "selu": SELU,
    "sigmoid": Sigmoid,
    "prelu": PReLU,
    "leakyrelu": LeakyReLU,
    "hswish": HSwish,
    "hsigmoid": HSigmoid,
    "logsigmoid": LogSigmoid,
    "softplus": Softplus,
    "softsign": Softsign,
    "softshrink": SoftShrink,
    "hshrink": HShrink,
    "hardtanh": Hardtanh,
    "mish": Mish,
    "tanhshrink": Tanhshrink,
    "glu": GLU,
}


def get_activation(name: str | None, prim_name: str | None = None) -> Cell | None:
    """A new Cell of the activation with a name.

    Parameters
    ----------
    name : str or None
        Such as "relu"; None or an empty name gives None.
    prim_name : str, optional
        The name of the caller, for the message.

    Returns
    -------
    Cell or None

    Raises
    ------
    NameTakenError
        If no activation has the name. (A KeyError.)

    Examples
    --------
    >>> import nbgrad as nb
    >>> nb.nn.get_activation("leakyrelu")
    LeakyReLU(alpha=0.2)
    """
    if name is None or name == "":
        return None
    if name not in BY_NAME:
        where = f" for {prim_name}" if prim_name else ""
        message = f"There is no activation {name!r}{where}; there are {', '.join(BY_NAME)}."
        raise NameTakenError(message)
    return BY_NAME[name]()
