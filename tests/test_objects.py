"""Objects of dataclasses and attrs as containers: arguments and results of every transform.

Expected values are analytic: sums of squares, products and powers.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

import attrs
import numpy as np
import pytest

import nbgrad as nb

pytestmark = pytest.mark.unoptimized

X, Y = np.array([1.0, 2.0]), np.array([[3.0], [4.0]])
Kind = TypeVar("Kind")


@dataclasses.dataclass
class Plain:
    w: Any
    b: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    w: Any
    b: Any


@dataclasses.dataclass(slots=True)
class Slots:
    w: Any
    b: Any


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class FrozenSlots:
    w: Any
    b: Any


@dataclasses.dataclass
class Derived(Plain):
    name: str = "derived"
    power: int = 2
    shared: ClassVar[int] = 5


@dataclasses.dataclass(eq=False)
class Typed(Generic[Kind]):
    w: Kind
    b: Kind


@attrs.define
class Defined:
    w: Any
    b: Any


@attrs.frozen
class FrozenDefined:
    w: Any
    b: Any


@attrs.define(slots=False)
class OfDict:
    w: Any
    b: Any


@attrs.define
class DerivedDefined(Defined):
    name: str = "derived"


KINDS: list[Callable[..., Any]] = [
    *(Plain, Frozen, Slots, FrozenSlots, Derived, Typed, Defined, FrozenDefined, OfDict, DerivedDefined)
]


def squares(tree: Any) -> Any:
    return np.sum(tree.w**2) + np.sum(tree.b**2)


TRANSFORMS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda tree: nb.grad(squares)(tree),
    "jit": lambda tree: nb.jit(nb.grad(squares))(tree),
    "value_and_grad": lambda tree: nb.value_and_grad(squares)(tree)[1],
    "vjp": lambda tree: nb.vjp(squares, tree)[1](1.0)[0],
    "jacrev": lambda tree: nb.jacrev(squares)(tree),
    "jacfwd": lambda tree: nb.jacfwd(squares)(tree),
    "hvp": lambda tree: nb.hvp(squares, (tree,), (tree,))[0],
    "jvp": lambda tree: nb.jvp(lambda t: type(t)(w=2 * t.w, b=2 * t.b), (tree,), (tree,))[1],
    "result of jit": lambda tree: nb.jit(lambda t: type(t)(w=2 * t.w, b=t.b + t.b))(tree),
    "scan": lambda tree: nb.scan(lambda t, _: (type(t)(w=t.w * 2, b=t.b * 2), None), tree, length=1)[0],
    "fori_loop": lambda tree: nb.fori_loop(0, 1, lambda _, t: type(t)(w=t.w * 2, b=t.b * 2), tree),
    "cond": lambda tree: nb.cond(True, lambda t: type(t)(w=t.w * 2, b=t.b * 2), lambda t: t, tree),
    "custom_vjp": lambda tree: nb.grad(doubled)(tree),
    "ravel": lambda tree: nb.ravel(tree)[1](2 * nb.ravel(tree)[0]),
}


@nb.custom_vjp
def doubled(tree: Any) -> Any:
    return squares(tree)


doubled.defvjp(lambda tree: (squares(tree), tree), lambda t, g: (type(t)(w=2 * g * t.w, b=2 * g * t.b),))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("name", TRANSFORMS)
def test_derivatives_are_objects_of_the_class(name: str, kind: Callable[..., Any]) -> None:
    tree = kind(w=X, b=Y)
    got = TRANSFORMS[name](tree)
    assert type(got) is type(tree)
    np.testing.assert_array_equal(got.w, 2 * X)
    np.testing.assert_array_equal(got.b, 2 * Y)
    assert tree.w is X and tree.b is Y


def test_vmap_takes_and_gives_objects() -> None:
    got = nb.vmap(lambda t: Frozen(t.w * t.b, np.sum(t.w)))(Plain(np.arange(6.0).reshape(3, 2), np.arange(3.0)))
    np.testing.assert_array_equal(got.w, [[0, 0], [2, 3], [8, 10]])
    np.testing.assert_array_equal(got.b, [1, 5, 9])
    axes = nb.vmap(lambda t: t.w * t.b, in_axes=(Plain(0, None),))(Plain(np.arange(3.0), 2.0))
    np.testing.assert_array_equal(axes, [0, 2, 4])


def test_while_loop_and_check_grads_take_objects() -> None:
    got = nb.while_loop(lambda t: t.b < 5, lambda t: Slots(t.w * 2, t.b + 1), Slots(1.0, 0))
    assert (float(got.w), int(got.b)) == (32.0, 5)
    nb.check_grads(lambda t: np.sin(t.w) * t.b**t.power, (Derived(X, 2.0),), order=2)


def test_objects_inside_of_containers_and_objects() -> None:
    tree = {"layers": [Frozen(X, Defined(Y, (X,))), None], "scale": 2.0}
    gradient = nb.grad(lambda t: t["scale"] * np.sum(t["layers"][0].b.w) * np.sum(t["layers"][0].b.b[0] ** 2), 0)(
        {**tree, "layers": tree["layers"][:1]}
    )
    assert float(gradient["scale"]) == 35.0
    inner = gradient["layers"][0].b
    assert type(inner) is Defined
    np.testing.assert_array_equal(inner.w, np.full((2, 1), 10.0))
    np.testing.assert_array_equal(inner.b[0], 4 * 7 * X)
    np.testing.assert_array_equal(gradient["layers"][0].w, [0, 0])


def test_a_field_without_floats_has_no_derivative() -> None:
    tree = Derived(X, 3.0)
    tree.power = 3
    tree.b = np.array([2, 2])
    for gradient in (nb.grad, lambda f: nb.jit(nb.grad(f))):
        got = gradient(lambda t: np.sum(t.w**t.power * t.b))(tree)
        assert (got.name, got.power, got.b) == ("derived", None, None)
        np.testing.assert_array_equal(got.w, 6 * X**2)
    assert nb.jvp(lambda t: np.sum(t.w**t.power * t.b), (tree,), (got,))[1] == pytest.approx(36 * (1 + 16))
    with pytest.raises(TypeError, match="there are gradients with respect to float"):
        nb.grad(lambda t: t["w"] ** 2)({"w": 1.0, "n": 3})  # a dict says that it wants all


def test_compiled_functions_see_every_field() -> None:
    compiled = nb.jit(lambda t: t.w**t.power if t.name == "power" else t.w)
    tree = Derived(X, 1.0, "power")
    for name, power, expected in (("power", 2, X**2), ("power", 3, X**3), ("none", 3, X), ("power", 2, X**2)):
        tree.name, tree.power = name, power
        np.testing.assert_array_equal(compiled(tree), expected)
    tree.w = X + 1
    np.testing.assert_array_equal(compiled(tree), (X + 1) ** 2)
    assert compiled.compiled_signatures == 3


def test_static_fields_are_never_recorded() -> None:
    @dataclasses.dataclass
    class Options:
        x: Any
        rate: Any = dataclasses.field(default=2.0, metadata={"static": True})

    seen: list[Any] = []

    def scaled(t: Any) -> Any:
        seen.append(t.rate)
        return t.x * t.rate

    compiled = nb.jit(scaled)
    for rate, expected in ((2.0, 2 * X), (2.0, 2 * X), (2, 2 * X), (-0.0, 0 * X), (0.0, 0 * X)):
        np.testing.assert_array_equal(compiled(Options(X, rate)), expected)
    assert list(map(repr, seen)) == ["2.0", "2", "-0.0", "0.0"]
    assert nb.grad(lambda t: np.sum(scaled(t)))(Options(X, 3.0)).rate == 3.0
    carried, _ = nb.scan(lambda t, _: (Options(t.x * t.rate, t.rate), None), Options(X, 3.0), length=2)
    np.testing.assert_array_equal(carried.x, 9 * X)
    with pytest.raises(
        nb.errors.ArgumentError, match="field rate of Options is static, but holds a list, which is not"
    ):
        compiled(Options(X, [1.0]))


def test_objects_are_not_initialised_again() -> None:
    made: list[Any] = []

    @dataclasses.dataclass
    class Scaled:
        x: Any
        start: dataclasses.InitVar[float]
        norm: Any = dataclasses.field(init=False)
        unset: Any = dataclasses.field(init=False, repr=False)

        def __post_init__(self, start: float) -> None:
            made.append(self)
            if np.any(self.x < 0):
                message = "negative"
                raise ValueError(message)
            self.norm = np.sum(self.x) + start

    tree = Scaled(X, 1.0)
    gradient = nb.grad(lambda t: -np.sum(t.x**2) * t.norm)(tree)
    np.testing.assert_array_equal(gradient.x, -2 * X * 4.0)
    assert float(gradient.norm) == -5.0  # a field that holds floats, whatever they were computed from
    assert not hasattr(gradient, "unset")
    assert len(made) == 1 and made[0] is tree


def test_what_is_no_field_is_computed_again() -> None:
    @dataclasses.dataclass
    class Vector:
        x: Any

        @functools.cached_property
        def square(self) -> Any:
            return np.sum(self.x**2)

    tree = Vector(X)
    assert tree.square == 5.0
    np.testing.assert_array_equal(nb.grad(lambda t: t.square)(tree).x, 2 * X)


def test_classes_that_are_values_of_their_own_stay_leaves() -> None:
    class Own:
        def __init__(self) -> None:
            self.x = 1

    @dataclasses.dataclass
    class Point(complex):
        label: str = "p"

    @dataclasses.dataclass
    class Quantity:
        values: Any

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.asarray(self.values, dtype)

    from nbgrad.record.container_leaves import flatten

    for value in (Own(), Point(), Quantity(X), Plain, Frozen):
        assert flatten([value])[0] == [value]
    assert flatten(Plain(X, None))[0] == [X, None]


def test_errors_name_the_field() -> None:
    with pytest.raises(ValueError, match="one structure"):
        nb.jvp(squares, (Plain(X, Y),), (Plain(X, (Y, Y)),))
    with pytest.raises(nb.errors.ShapeError, match=r"b"):
        nb.scan(lambda t, _: (Plain(t.w, t.b[0]), None), Plain(X, Y), length=2)
