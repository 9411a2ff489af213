"""Arguments and results in tuples, lists, dicts and the like: gradients mirror the structure."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, namedtuple
from typing import Any, NamedTuple

import numpy as np
import optree
import pytest

import nbgrad as nb

pytestmark = pytest.mark.unoptimized

X, Y = np.array([1.0, 2.0]), np.array([[3.0], [4.0]])


class Layer(NamedTuple):
    """A named tuple as networks use it."""

    w: Any
    b: Any


Pair = namedtuple("Pair", ["first", "second"])


def total(tree: Any) -> Any:
    """The sum of the squares of all leaves."""
    return sum(np.sum(leaf**2) for leaf in optree.tree_leaves(tree))


CONTAINERS: dict[str, Any] = {
    "tuple": (X, Y),
    "list": [X, Y],
    "dict": {"b": X, "a": Y},
    "nested": {"layers": [Layer(X, Y), Layer(Y, (X,))], "scale": 2.0},
    "named tuple": Pair(X, [Y]),
    "ordered dict": OrderedDict([("z", X), ("a", Y)]),
    "default dict": defaultdict(list, {"k": X}),
    "empty list inside": {"a": [], "b": X},
    "tuple of one": (X,),
    "floats": [1.5, np.float32(2.5), np.float64(3.5)],
    "mixed dtypes": (X.astype(np.float32), X.astype(np.float16), X),
    "Tensors": [nb.Tensor(X), Y],
    "0-d": (np.array(2.0),),
}


def check_mirrors(got: Any, tree: Any, where: str) -> None:
    assert optree.tree_structure(got) == optree.tree_structure(tree), where
    assert type(got) is type(tree), where
    for one, leaf in zip(optree.tree_leaves(got), optree.tree_leaves(tree), strict=True):
        plain = leaf.asnumpy() if isinstance(leaf, nb.Tensor) else np.asarray(leaf)
        assert isinstance(one, nb.Tensor) == isinstance(leaf, nb.Tensor), where
        assert isinstance(one, np.ndarray) == isinstance(leaf, np.ndarray), where
        value = one.asnumpy() if isinstance(one, nb.Tensor) else np.asarray(one)
        assert (value.shape, value.dtype) == (plain.shape, plain.dtype), where
        np.testing.assert_array_equal(value, 2 * plain, err_msg=where)


@pytest.mark.parametrize("name", CONTAINERS)
def test_gradients_mirror_containers(name: str) -> None:
    tree = CONTAINERS[name]
    check_mirrors(nb.grad(total)(tree), tree, f"grad of {name}")
    check_mirrors(nb.value_and_grad(lambda k, t: total(t) * k, 1)(1.0, tree)[1], tree, f"position 1 of {name}")
    if name not in ("Tensors", "0-d"):  # jit gives Tensors only or NumPy only, and scalars for 0-d arrays
        check_mirrors(nb.jit(nb.grad(total))(tree), tree, f"jit of {name}")
    check_mirrors(nb.grad(lambda *, t: total(t))(t=tree), tree, f"keyword {name}")
    both = nb.grad(lambda a, b: total(a) + total(b), (1, 0))(tree, X)
    check_mirrors(both[1], tree, f"second of two: {name}")
    _, vjp_fn = nb.vjp(total, tree)
    check_mirrors(vjp_fn(np.asarray(1.0, _dtype_of_total(tree)))[0], tree, f"vjp of {name}")


def _dtype_of_total(tree: Any) -> np.dtype[Any]:
    return np.result_type(*[leaf.dtype if hasattr(leaf, "dtype") else np.float64 for leaf in optree.tree_leaves(tree)])


def test_tangents_have_the_structure_of_the_inputs() -> None:
    tree = {"a": X, "b": [Y]}
    out, tangent = nb.jvp(total, (tree,), ({"a": X, "b": [Y]},))
    assert (out, tangent) == (30.0, 60.0)
    product = nb.hvp(total, (tree,), (tree,))
    check_mirrors(product[0], tree, "hvp")
    with pytest.raises(ValueError, match="2 arrays, but the tangents hold 1"):
        nb.jvp(total, (tree,), ({"a": X},))


def test_jacobians_of_containers() -> None:
    tree = {"a": X, "b": Y}
    jacobian = nb.jacrev(lambda t: t["a"] * t["b"])(tree)
    assert list(jacobian) == ["a", "b"]
    np.testing.assert_array_equal(jacobian["a"], Y[:, :, None] * np.eye(2)[None])
    np.testing.assert_array_equal(jacobian["b"][..., 0], X[None, :, None] * np.eye(2)[:, None, :])
    outputs = nb.jacfwd(lambda x: {"sum": x.sum(), "rest": (x * 2, x[0])})(X)
    np.testing.assert_array_equal(outputs["sum"], np.ones(2))
    np.testing.assert_array_equal(outputs["rest"][0], 2 * np.eye(2))
    np.testing.assert_array_equal(outputs["rest"][1], [1, 0])


def test_values_keep_the_structure_of_what_the_function_returned() -> None:
    def fn(x: Any) -> Any:
        return {"loss": x.sum(), "parts": [x, (x * 2,)], "name": "n", "none": None, "layer": Layer(x, 3)}

    for transform in (lambda f: nb.value_and_grad(f)(X)[0], lambda f: nb.jit(f)(X), lambda f: nb.vjp(f, X)[0]):
        value = transform(fn)
        assert list(value) == ["loss", "parts", "name", "none", "layer"]
        assert isinstance(value["loss"], np.float64) and isinstance(value["parts"], list)
        assert (value["name"], value["none"], value["layer"].b) == ("n", None, 3)
        assert isinstance(value["layer"], Layer)
        np.testing.assert_array_equal(value["parts"][1][0], 2 * X)


class Line(NamedTuple):
    slope: Any
    offset: Any
    bound: Any = None


def test_none_in_a_container_is_nothing_to_differentiate() -> None:
    def energy(line: Line) -> Any:
        assert line.bound is None
        return np.sum(line.slope**3) * line.offset["b"]

    line = Line(X, {"a": None, "b": 2.0})
    slope, offset, bound = nb.grad(energy)(line)
    np.testing.assert_allclose(slope, 6.0 * X**2)
    assert offset == {"a": None, "b": np.sum(X**3)} and bound is None
    assert nb.jit(nb.grad(energy))(line).bound is None
    value, tangent = nb.jvp(energy, (line,), (line,))
    np.testing.assert_allclose(tangent, 4.0 * value)  # homogeneous of degree 4
    second = nb.hessian(energy)(line)
    assert second.slope.slope.shape == X.shape * 2 and second.slope.bound is second.bound is second.offset["a"] is None
    np.testing.assert_allclose(second.offset["b"].slope, 3.0 * X**2)
    rows = nb.vmap(nb.grad(energy))(Line(np.stack([X, 2.0 * X]), {"a": None, "b": np.array([2.0, 3.0])}))
    np.testing.assert_allclose(rows.slope[0], slope)
    with pytest.raises(TypeError, match=r"\['a'\].*NoneType"):
        nb.grad(lambda d: 1.0)({"a": None})


def test_jacobians_have_none_for_results_that_are_no_numbers() -> None:
    jacobian = nb.jacrev(lambda x: {"y": x**2, "none": None, "what": "text"})(np.array([1.0, 3.0]))
    np.testing.assert_allclose(jacobian.pop("y"), np.diag([2.0, 6.0]))
    assert jacobian == {"none": None, "what": None}


def test_the_auxiliary_value_of_a_hessian() -> None:
    for transform in (nb.hessian, lambda f, **options: nb.jit(nb.hessian(f, **options))):
        second, aux = transform(lambda x: (np.sum(x**3), {"x": x, "n": 3}), has_aux=True)(np.array([1.0, 2.0]))
        np.testing.assert_allclose(second, np.diag([6.0, 12.0]))
        np.testing.assert_allclose(aux["x"], [1.0, 2.0])
        assert aux["n"] == 3


def test_a_container_is_not_changed() -> None:
    tree = {"a": X, "b": [Y, Y]}

    def changes(t: Any) -> Any:
        t["a"] = t["a"] * 2
        t["b"].append(t["a"])
        return total(t["b"])

    gradient = nb.grad(changes)(tree)
    assert list(gradient) == ["a", "b"] and len(gradient["b"]) == 2
    np.testing.assert_array_equal(gradient["a"], 8 * X)
    assert len(tree["b"]) == 2 and tree["a"] is X


def test_the_same_array_in_two_places() -> None:
    gradient = nb.grad(lambda t: np.sum(t["a"] ** 2 * t["b"]))({"a": X, "b": X})
    np.testing.assert_array_equal(gradient["a"], 2 * X * X)
    np.testing.assert_array_equal(gradient["b"], X**2)
