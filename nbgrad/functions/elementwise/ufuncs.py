"""The ufuncs: NumPy's elementwise functions on Tensors, each one primitive or a short composition of them.

In: a NumPy ufunc (or a SciPy one, known by its name) and array-likes. Out: nodes (`apply_ufunc`) and Tensors (`call`
and the public functions at the end). Called by Tensor's operators, by ufunc_protocol.py and by users. The dtypes are
NumPy's. Every operation of a user's function passes here each time it is recorded, hence the memos.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...errors import ArgumentError, BroadcastError, DtypeError, ShapeError
from ...graph.builders import cast
from ...graph.complex_numbers import conjugate as conjugate_node
from ...graph.formulas import choose
from ...graph.ir import (
    BOOL,
    PRIMITIVES,
    Node,
    Primitive,
    broadcast,
    elementwise,
    literal,
    literal_value,
    placeholder,
    shared,
)
from ...graph.primitives import ANY_UNARY, BINARY, COMPARISON, FLOAT_UNARY
from ...graph.shapes import joint_shape
from ...process.modes import REMEMBERS, attentive
from ...record.as_node import as_node, wrap
from ...record.axes_and_dtypes import write
from ...record.foreign_arrays import computes_itself, on_cuda
from ...record.numbers import FLOAT64, number
from ...record.promotion import COMPARISONS, MOST_NUMBERS, convert, kind_of, loop_dtypes, number_like
from ...record.tensor import Tensor
from ...record.zero_dimensional import ZeroDimensional
from ...runtime.evaluate import LONGEST_CHAIN, require
from ..arrays.result_order import as_loop
from .scipy_ufuncs import COMPLEX_SCIPY_RULES, SCIPY_RULES

Results = Node | tuple[Node, ...]
Rule = Callable[..., Results]
"""From operands that have the loop's dtypes to the result."""


def _primitive(name: str) -> Rule:
    """The rule that is one elementwise primitive: `ir.elementwise` for operands that are all nodes."""

    primitive = PRIMITIVES[name]
    boolean = name in COMPARISON

    def rule(*nodes: Node) -> Node:
        shape = nodes[0].shape
        for node in nodes:
            if node.shape != shape:
                for other in nodes:
                    shape = joint_shape(shape, other.shape)
                nodes = tuple([broadcast(other, shape) for other in nodes])
                break
        return Node(primitive, nodes, (), shape, BOOL if boolean else nodes[-1].dtype)

    return rule


# ----- Compositions -----


@as_loop
def _same(x: Node) -> Node:
    return x


def _always(value: bool) -> Rule:
    return as_loop(lambda x: broadcast(literal(value, BOOL), x.shape))


def _compare(name: str) -> Rule:
    """A comparison; int64 with uint64 is exact, as in NumPy, although no integer dtype holds both."""

    def rule(x: Node, y: Node) -> Node:
        if x.dtype == y.dtype:
            return elementwise(name, x, y)
        unsigned = elementwise(name, cast(x, np.dtype(np.uint64)), cast(y, np.dtype(np.uint64)))
        below, outcome = (x, getattr(np, name)(-1, 0)) if x.dtype.kind == "i" else (y, getattr(np, name)(0, -1))
        return elementwise("select", elementwise("less", below, 0), literal(bool(outcome), BOOL), unsigned)

    return rule


def _square(x: Node) -> Node:
    """x * x; of the length of a vector, or the absolute value of a complex number, without the root."""
    if x.name == "hypot":
        a, b = x.inputs
        return a * a + b * b
    return elementwise("multiply", x, x)


def _power(x: Node, y: Node) -> Node:
    literally = y.name == "literal"
    if literally and literal_value(y) == 2:
        return _square(x)
    if y.dtype.kind == "i":
        known = y.value if y.device is None else None
        lowest = literal_value(y) if literally else np.min(known, initial=0) if known is not None else None
        message = "Integers to a negative integer power are not integers: make the base a float."
        if lowest is None:
            require(elementwise("greater_equal", y, 0), message)
        elif lowest < 0:
            message = f"Integers to the negative integer power {lowest} are not integers: make the base a float."
            raise ArgumentError(message)
    return elementwise("power", x, y)


def _reciprocal(x: Node) -> Node:
    if x.dtype.kind in "fc":
        return elementwise("divide", 1, x)
    one = elementwise("equal", x, 1)
    if x.dtype.kind == "i":
        one = elementwise("logical_or", one, elementwise("equal", x, -1))
    return choose(one, x, 0, x)


def _heaviside(x: Node, at_zero: Node) -> Node:
    step = choose(elementwise("less", x, 0), 0, choose(elementwise("equal", x, 0), at_zero, 1, x), x)
    return elementwise("select", elementwise("isnan", x), x, step)


def _modf(x: Node) -> Results:
    zero = broadcast(literal(0, x.dtype), x.shape)
    infinite = elementwise("isinf", x)
    fraction = elementwise("select", infinite, elementwise("copysign", zero, x), elementwise("fmod", x, 1))
    return fraction, elementwise("trunc", x)


def _ldexp(x: Node, n: Node) -> Node:
    half = elementwise("floor_divide", n, 2)
    rest = elementwise("subtract", n, half)
    for part in (half, rest):
        x = elementwise("multiply", x, elementwise("exp2", cast(part, x.dtype)))
    return x


def _spacing(x: Node) -> Node:
    """The distance to the next number away from zero, with the sign of x; upwards for float16, as NumPy has it."""
    if x.dtype.itemsize == 2:
        gap = elementwise("nextafter", x, math.inf) - x
        return elementwise("select", elementwise("isinf", x), broadcast(literal(math.nan, x.dtype), x.shape), gap)
    size = elementwise("absolute", x)
    gap = elementwise("nextafter", size, math.inf) - size
    return elementwise("select", elementwise("less", x, 0), -gap, gap)


def _scaled(factor: float) -> Rule:
    return lambda x: elementwise("multiply", x, factor)


RULES: dict[str, Rule] = {
    # ----- Ufuncs that are primitives -----
    **{name: _primitive(name) for name in (*FLOAT_UNARY, *ANY_UNARY, *BINARY, *COMPARISON, "select")},
    **{name: _compare(name) for name in COMPARISONS},
    # ----- Ufuncs that are composed -----
    "power": _power,
    "float_power": _power,
    "positive": _same,
    "conjugate": _same,
    "fabs": _primitive("absolute"),
    "square": _square,
    "reciprocal": _reciprocal,
    "deg2rad": _scaled(math.pi / 180),
    "radians": _scaled(math.pi / 180),
    "rad2deg": _scaled(180 / math.pi),
    "degrees": _scaled(180 / math.pi),
    "heaviside": _heaviside,
    "divmod": lambda x, y: (elementwise("floor_divide", x, y), elementwise("remainder", x, y)),
    "modf": _modf,
    "ldexp": _ldexp,
    "spacing": _spacing,
    "bitwise_count": lambda x: cast(elementwise("bit_count", x), np.dtype(np.uint8)),
    "frexp": lambda x: (elementwise("frexp_fraction", x), cast(elementwise("frexp_exponent", x), np.dtype(np.int32))),
    **SCIPY_RULES,
}
"""By the ufunc's `__name__`."""

BOOL_RULES: dict[str, Rule] = {
    "add": _primitive("logical_or"),
    "multiply": _primitive("logical_and"),
    "maximum": _primitive("logical_or"),
    "minimum": _primitive("logical_and"),
    "fmax": _primitive("logical_or"),
    "fmin": _primitive("logical_and"),
    "bitwise_and": _primitive("logical_and"),
    "bitwise_or": _primitive("logical_or"),
    "bitwise_xor": _primitive("logical_xor"),
    "invert": _primitive("logical_not"),
    **dict.fromkeys(("absolute", "floor", "ceil", "trunc"), _same),
    **{name: _always(False) for name in ("isnan", "isinf")},
    "isfinite": _always(True),
}
"""Rules for booleans, by the ufunc's `__name__`; looked up before `RULES`."""

INTEGER_RULES: dict[str, Rule] = {
    **dict.fromkeys(("floor", "ceil", "trunc"), _same),
    **{name: _always(False) for name in ("isnan", "isinf")},
    "isfinite": _always(True),
}
"""Rules for integers, by the ufunc's `__name__`; looked up before `RULES`."""

UNSIGNED_RULES: dict[str, Rule] = {**INTEGER_RULES, "absolute": _same}

_PLANS: dict[tuple[Any, ...], tuple[tuple[np.dtype[Any], ...], Rule]] = {}
"""(ufunc, dtypes or kinds of the operands) -> the loop's dtypes and the rule. A memo."""
_NUMBERS: dict[tuple[type, float], Node] = {}
"""Python numbers that are baked into programs, and their nodes. A memo."""
_COMPLEX_NAMES = (
    "add subtract multiply divide negative absolute sign exp exp2 expm1 log log2 log10 log1p sqrt sin cos tan arcsin "
    "arccos arctan sinh cosh tanh arcsinh arccosh arctanh rint maximum minimum fmax fmin isnan isinf isfinite "
    "logical_and logical_or logical_xor logical_not"
).split()
COMPLEX_RULES: dict[str, Rule] = {
    **{name: as_loop(partial(elementwise, name)) for name in _COMPLEX_NAMES},
    **{name: RULES[name] for name in ("positive", "square", "reciprocal", "power", "float_power", *COMPARISONS)},
    "conjugate": conjugate_node,
    **COMPLEX_SCIPY_RULES,
}
"""The only rules for complex numbers, by the ufunc's `__name__`; complex_numbers.py expands the primitives."""
_BY_KIND = {"b": BOOL_RULES, "i": INTEGER_RULES, "u": UNSIGNED_RULES, "f": {}}
_PRODUCTS = frozenset(["matmul", "vecdot", "matvec", "vecmat"])
_PRODUCT_FUNCTIONS: dict[np.ufunc, Callable[..., Tensor]] = {}
"""The functions in place of these ufuncs, once they were called. A memo."""


def rule_of(ufunc: np.ufunc, kind: str) -> Rule:
    """The rule of a ufunc for operands of a dtype kind."""
    name = ufunc.__name__
    rule = COMPLEX_RULES.get(name) if kind == "c" else _BY_KIND[kind].get(name) or RULES.get(name)
    if rule is None and kind == "c":
        message = f"The ufunc {name} is not defined for complex Tensors. Apply it to x.real, x.imag or np.abs(x)."
        raise DtypeError(message)
    if rule is None:
        message = (
            f"The ufunc {name} has no derivative here. Give it one by nb.callback({name}, vjp=...), or apply it to "
            "x.asnumpy() if its result is a constant of the computation."
        )
        raise DtypeError(message)
    # Both parts are computed apart, in orders that may differ.
    return as_loop(rule) if kind == "c" else rule


def _operand(value: Any) -> Node:
    """`as_node`, faster for the usual operands of operators."""
    kind = type(value)
    if kind is Tensor:
        return value._node
    if kind is float or kind is int:
        known = _NUMBERS.get((kind, value))
        if known is None:
            known = number(value)
            # Zeros are left out: -0.0 equals 0.0, and NaN equals nothing.
            if known.name == "literal" and (value or kind is int) and len(_NUMBERS) < MOST_NUMBERS:
                _NUMBERS[kind, value] = shared(known)
        return known
    return value if isinstance(value, Node) else as_node(value)


def apply_ufunc(ufunc: np.ufunc, *operands: Any, dtype: Any = None, casting: str = "same_kind") -> Results:
    """The results of a ufunc.

    Parameters
    ----------
    ufunc : numpy.ufunc
        NumPy's or SciPy's; known by its `__name__`.
    *operands : array-like or Node
    dtype : dtype, optional
        The dtype to compute in.
    casting : str
        NumPy's casting rule for `dtype`.

    Returns
    -------
    Node or tuple of Node
        Several for ufuncs with several results.
    """
    nodes: list[Node] = []
    key: list[Any] = [ufunc]
    weak = True
    for value in operands:
        node = value._node if value.__class__ is Tensor else _operand(value)
        nodes.append(node)
        if node.weak:
            # The dtype of a comparison with a Python integer depends on its value, so its bytes are part of the key.
            key.append((kind_of(node), node.params))
        else:
            weak = False
            key.append(node.dtype)
            key.append(node.tensor)
    if dtype is None:
        plan = _PLANS.get(tuple(key))
        if plan is None:
            if ufunc.signature is not None:
                return product(ufunc, tuple([Tensor._of(v) if isinstance(v, Node) else v for v in operands]))._node
            dtypes = loop_dtypes(ufunc, nodes)
            if len(_PLANS) > MOST_NUMBERS:
                _PLANS.clear()
            plan = _PLANS[tuple(key)] = dtypes, rule_of(ufunc, dtypes[0].kind)
        dtypes, rule = plan
    else:
        if ufunc.signature is not None:
            return product(ufunc, tuple([Tensor._of(v) if isinstance(v, Node) else v for v in operands]))._node
        dtypes = loop_dtypes(ufunc, nodes, dtype, casting)
        rule = rule_of(ufunc, dtypes[0].kind)
    try:
        results = rule(*[node if node.dtype is d else convert(node, d) for node, d in zip(nodes, dtypes, strict=False)])
    except BroadcastError:
        shapes = " and ".join(str(node.shape) for node in nodes)
        message = f"The shapes {shapes} do not broadcast together in {ufunc.__name__}."
        raise ShapeError(message) from None
    if not weak:
        return results
    for result in results if isinstance(results, tuple) else (results,):
        result.weak = True
    return results


def product(ufunc: np.ufunc, operands: tuple[Any, ...]) -> Tensor:
    """A ufunc that works on matrices or vectors: `matmul` and its relatives."""
    function = _PRODUCT_FUNCTIONS.get(ufunc)
    if function is None:
        from ..linalg import matrix_products as linear_algebra

        function = getattr(linear_algebra, ufunc.__name__, None) if ufunc.__name__ in _PRODUCTS else None
        if function is None:
            message = f"The ufunc {ufunc.__name__} does not work on Tensors. Give it a derivative by nb.primitive."
            raise DtypeError(message)
        _PRODUCT_FUNCTIONS[ufunc] = function
    return function(*operands)


def call(ufunc: np.ufunc, *operands: Any) -> Any:
    """A ufunc's results as Tensors."""
    found = quick(ufunc, *operands)
    if found is not None:
        return found
    results = apply_ufunc(ufunc, *operands)
    if isinstance(results, tuple):
        return tuple([wrap(result) for result in results])
    return wrap(results)


# ----- The usual case: float arrays of one dtype, and numbers -----

_PLAIN = frozenset([*FLOAT_UNARY, *ANY_UNARY, *BINARY, *COMPARISON]) - {"power"}
"""Ufuncs that are one primitive for floats."""
_FLOAT_RULES: dict[tuple[np.ufunc, np.dtype[Any]], Primitive | Rule | None] = {}
"""The rule of a ufunc with one result for a float dtype in which it computes itself; None for others. A memo."""
_DOUBLE_RULES: dict[np.ufunc, Primitive | Rule | None] = {}
"""Those for float64, which are found without the hash of a dtype."""


def _float_rule(ufunc: np.ufunc, dtype: np.dtype[Any]) -> Primitive | Rule | None:
    rule = None
    if ufunc.nout == 1 and ufunc.signature is None and dtype.kind == "f":
        try:
            dtypes = loop_dtypes(ufunc, [placeholder((), dtype)] * ufunc.nin)
            if all(d is dtype for d in dtypes[: ufunc.nin]):
                rule = PRIMITIVES[ufunc.__name__] if ufunc.__name__ in _PLAIN else rule_of(ufunc, "f")
        except DtypeError:
            pass  # the general way says what is wrong
    if dtype is FLOAT64:
        _DOUBLE_RULES[ufunc] = rule
    else:
        _FLOAT_RULES[ufunc, dtype] = rule
    return rule


_new = object.__new__
_ARRAYS = frozenset([np.ndarray, np.float64, np.float32])


def quick_binary(ufunc: np.ufunc, left: Any, right: Any) -> Tensor | None:
    """The result for operands that need no promotion: two arrays, or one and a number; None where there is more to
    see to."""
    in_order = left.__class__ is Tensor
    if in_order:
        node: Node = left._node
        other = right
    elif right.__class__ is Tensor:
        node, other = right._node, left
    else:
        return None
    dtype, shape = node.dtype, node.shape
    try:
        rule = _DOUBLE_RULES[ufunc] if dtype is FLOAT64 else _FLOAT_RULES[ufunc, dtype]
    except KeyError:
        rule = _float_rule(ufunc, dtype)
    if rule is None or node.weak:
        return None
    kind = other.__class__
    plain = rule.__class__ is Primitive
    if kind is Tensor or (kind in _ARRAYS and other.dtype is dtype):
        second: Node = other._node if kind is Tensor else as_node(other)
        if second.dtype is not dtype or second.weak:
            return None
        if second.shape != shape:
            try:
                shape = joint_shape(shape, second.shape)
            except BroadcastError:
                return None  # the general way says what is wrong
            node, second = broadcast(node, shape), broadcast(second, shape)
    elif kind is float or kind is int:
        second = number_like(other, dtype, shape if plain else ())
    else:
        return None
    inputs = (node, second) if in_order else (second, node)
    if not plain:
        return wrap(rule(*inputs))  # type: ignore
    node = Node(rule, inputs, (), shape, BOOL if rule.boolean else dtype)  # type: ignore
    if attentive or node.depth > LONGEST_CHAIN:
        return wrap(node)
    tensor = _new(Tensor)
    tensor._node = node
    return tensor


def quick_unary(ufunc: np.ufunc, value: Any) -> Tensor | None:
    """The result for an operand that needs no promotion; None where there is more to see to."""
    if value.__class__ is not Tensor:
        return None
    node: Node = value._node
    dtype = node.dtype
    try:
        rule = _DOUBLE_RULES[ufunc] if dtype is FLOAT64 else _FLOAT_RULES[ufunc, dtype]
    except KeyError:
        rule = _float_rule(ufunc, dtype)
    if rule is None or node.weak:
        return None
    if rule.__class__ is not Primitive:
        return wrap(rule(node))  # type: ignore
    node = Node(rule, (node,), (), node.shape, BOOL if rule.boolean else dtype)  # type: ignore
    if attentive or node.depth > LONGEST_CHAIN:
        return wrap(node)
    tensor = _new(Tensor)
    tensor._node = node
    return tensor


def quick(ufunc: np.ufunc, *inputs: Any) -> Tensor | None:
    """A ufunc without options, as NumPy's protocol hands it over, if that is simple."""
    if len(inputs) == 1:
        return quick_unary(ufunc, *inputs)
    return quick_binary(ufunc, *inputs) if len(inputs) == 2 else None


# ----- Operators -----

_USUAL = frozenset([Tensor, float, int])
_OPERANDS = (Tensor, bool, int, float, complex, np.ndarray, np.generic, list, tuple)


def _usable(value: Any) -> bool:
    """Whether an operator takes a value; otherwise Python asks the value's own operator."""
    return (
        isinstance(value, _OPERANDS)
        or (
            hasattr(value, "__array__")
            and getattr(value, "__array_ufunc__", True) is not None
            and not computes_itself(value)
        )
        or on_cuda(value)
    )


_PYTHONS = {
    np.add: operator.add,
    np.subtract: operator.sub,
    np.multiply: operator.mul,
    np.divide: operator.truediv,
    np.power: operator.pow,
}


def _is_box(value: Any) -> bool:
    """Whether a value is what NumPy makes of an object that is no number: an array without axes that holds it."""
    return type(value) is np.ndarray and value.dtype.kind == "O" and not value.ndim


def operate(ufunc: np.ufunc, left: Any, right: Any) -> Any:
    """The result of an operator."""
    found = quick_binary(ufunc, left, right)
    return operate_in_general(ufunc, left, right) if found is None else found


def operate_in_general(ufunc: np.ufunc, left: Any, right: Any) -> Any:
    """The result of an operator, where `quick_binary` has none."""
    if _is_box(left) or _is_box(right):
        inside = [value.item() if _is_box(value) else value for value in (left, right)]
        return _PYTHONS[ufunc](*inside) if ufunc in _PYTHONS else NotImplemented
    if not (right.__class__ in _USUAL and left.__class__ in _USUAL) and not (_usable(left) and _usable(right)):
        from ..linalg.sparse_products import beside_sparse

        return beside_sparse(ufunc, left, right)
    if ufunc.signature is not None:
        return product(ufunc, (left, right))
    results = apply_ufunc(ufunc, left, right)
    return tuple([wrap(result) for result in results]) if isinstance(results, tuple) else wrap(results)


def operate_in_place(ufunc: np.ufunc, target: Tensor, other: Any) -> Any:
    """The result of `x += y`: x itself with a new value, as for an ndarray. Tensors that the user made are bound anew,
    as MindSpore does it, unless they are differentiable leaves or the data of others, and so are 0-d Tensors, like
    NumPy's scalars."""
    if not _usable(other):
        return NotImplemented
    node = target._node
    is_leaf = target._operates_in_place or (node.owner is not None and node.traced & REMEMBERS)
    bound_anew = node.tensor or (target.ndim == 0 and target.__class__ is not ZeroDimensional)
    if bound_anew and not is_leaf:
        return call(ufunc, target, other)
    result = apply_ufunc(ufunc, target, other)
    assert isinstance(result, Node)
    write(target, result, f"{ufunc.__name__} in place")
    return target
