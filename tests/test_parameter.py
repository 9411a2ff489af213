"""Parameters: what they hold, who sees their changes, and what compiled programs do with them."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import Parameter, ParameterTuple, Tensor


def weight(values=(2.0, 3.0), name="w", **options):
    return Parameter(Tensor(np.array(values, np.float32)), name=name, **options)


# ----- The object -----


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (3, "int32", ()),
        (2.5, "float32", ()),
        ([1, 2], "int64", (2,)),
        ([[1.0], [2.0]], "float32", (2, 1)),
        (np.array([6.0]), "float64", (1,)),
        (np.zeros((0, 3), np.float16), "float16", (0, 3)),
        (np.arange(6.0).reshape(2, 3).T[::-1], "float64", (3, 2)),
        (np.array([1.0, 2.0], ">f8"), "float64", (2,)),
    ],
)
def test_data(data, dtype, shape):
    p = Parameter(data)
    assert p.dtype == dtype and p.shape == shape
    np.testing.assert_array_equal(np.asarray(p), np.asarray(data))


def test_names():
    assert weight(name="  w ").name == "w" and weight(name="w").is_named
    a, b = Parameter(1.0), Parameter(1.0, name=" ")
    assert a.name != b.name and a.name.startswith("Parameter#") and not b.is_named
    with pytest.raises(ValueError, match="name of a Parameter must be a string or None, but got 3"):
        Parameter(1.0, name=3)
    with pytest.raises(TypeError, match="requires_grad must be True or False"):
        Parameter(1.0, requires_grad=1)
    with pytest.raises(TypeError):
        Parameter(None)
    with pytest.raises(TypeError):
        Parameter("text")


def test_text():
    assert str(weight()) == repr(weight()) == "Parameter (name=w, shape=(2,), dtype=Float32, requires_grad=True)"


def test_what_was_computed_from_a_parameter_stays():
    w = weight()
    lazy, value, other = w * 2, w.value(), Tensor(w)
    w.set_data(Tensor([7.0, 7.0]))
    assert lazy.tolist() == [4.0, 6.0] and value.tolist() == other.tolist() == [2.0, 3.0]
    assert (w * 2).tolist() == [14.0, 14.0]


def test_asnumpy_is_a_copy():
    w = weight()
    w.asnumpy()[0] = 50.0
    assert np.asarray(w).tolist() == [2.0, 3.0]


def test_set_data():
    w = weight()
    assert w.set_data(np.array([3, 4])) is w and w.dtype == nb.float32
    assert w.set_data(1.5).shape == ()
    with pytest.raises(TypeError, match="has dtype int32, but the new data has dtype float"):
        Parameter(np.array([1, 2], np.int32), name="n").set_data(2.5)
    w[...] = 4.0
    assert w.asnumpy().tolist() == 4.0
    v = weight()
    v[0] = 9.0
    assert v.asnumpy().tolist() == [9.0, 3.0]


def test_clone_copy_pickle():
    w = weight(requires_grad=False)
    for other in (w.clone(), copy.copy(w), copy.deepcopy(w), pickle.loads(pickle.dumps(w))):
        assert type(other) is Parameter and other.name == "w" and not other.requires_grad
        other.set_data(Tensor([0.0, 0.0]))
        assert w.asnumpy().tolist() == [2.0, 3.0]
    assert w.clone(init="zeros").asnumpy().tolist() == [0.0, 0.0]
    assert w.clone(init=1.5).asnumpy().tolist() == [1.5, 1.5]


def test_parameter_tuple():
    a, b = weight(name="a"), weight(name="b")
    t = ParameterTuple(p for p in (a, b, a))
    assert isinstance(t, tuple) and t[2] is a
    with pytest.raises(ValueError, match="two different Parameters with the name 'a'"):
        ParameterTuple([a, weight(name="a")])
    with pytest.raises(TypeError, match="element 1 is of type Tensor"):
        ParameterTuple([a, Tensor([1.0])])


# ----- Gradients -----


def test_gradients_and_their_order():
    w, b = weight(), weight((1.0,), "b")
    x = Tensor([4.0, 5.0])
    gb, gw = nb.grad(lambda x: w * x * x + b, None, (b, w))(x)
    assert gb.tolist() == [2.0] and gw.tolist() == [16.0, 25.0]
    assert nb.grad(lambda x: w * x, None, w)(x).tolist() == [4.0, 5.0]
    assert nb.grad(lambda x: w * x, None, [])(x) == ()
    first, second = nb.grad(lambda x: w * x, None, [w, w])(x)
    assert first.tolist() == second.tolist() == [4.0, 5.0]


def test_a_parameter_that_is_not_trained_or_not_used_has_gradient_zero():
    w, frozen, unused = weight(), weight(name="f", requires_grad=False), weight(name="u")
    got = nb.grad(lambda x: w * frozen * x, None, [frozen, unused, w])(Tensor([1.0, 1.0]))
    assert [g.tolist() for g in got] == [[0.0, 0.0], [0.0, 0.0], [2.0, 3.0]]


def test_second_derivatives_with_respect_to_a_parameter():
    # d2/dw2 of w**3 x is 6 w x.
    w = weight()
    x = Tensor([4.0, 5.0])
    inner = nb.grad(lambda x: w**3 * x, None, w)
    assert nb.grad(inner, None, w)(x).tolist() == [48.0, 90.0]
    # and mixed with the input: 3 w**2
    assert nb.grad(inner, 0)(x).tolist() == [12.0, 27.0]


def test_weights_of_every_kind_are_checked():
    for bad in (3, "w", [3], {"w": 1}, [np.ones(2)]):
        with pytest.raises(TypeError, match="weights must be"):
            nb.grad(lambda x: x, None, bad)(Tensor([1.0]))
    with pytest.raises(TypeError, match="int32"):
        nb.grad(lambda x: x, None, Parameter(3))(Tensor([1.0]))


def test_all_used_parameters_are_found():
    a, b, frozen, unused = weight(name="a"), weight(name="b"), weight(name="f", requires_grad=False), weight(name="u")
    operation = nb.GradOperation(get_by_list=True)
    got = operation(lambda x: b * x * frozen + a)(Tensor([1.0, 10.0]))
    assert [g.tolist() for g in got] == [[2.0, 30.0], [1.0, 1.0]]
    del unused


def test_get_grad():
    w = weight()
    pairs = nb.grad(lambda x, y: w * x * y, (0, 1), [w], return_ids=True)(Tensor([1.0, 2.0]), Tensor([3.0, 4.0]))
    assert nb.get_grad(pairs, 1).tolist() == [2.0, 6.0] and nb.get_grad(pairs, w).tolist() == [3.0, 8.0]
    with pytest.raises(ValueError, match="There is no gradient for 5: there are 0, 1, 'w'"):
        nb.get_grad(pairs, 5)
    with pytest.raises(TypeError, match="position of an input or a Parameter"):
        nb.get_grad(pairs, "w")


# ----- Compiled programs -----


def test_a_new_value_changes_the_result_and_compiles_nothing():
    w = weight()
    f = nb.jit(lambda x: w * x)
    x = Tensor([1.0, 1.0])
    # The second call loads what calls with Tensors share.
    assert f(x).tolist() == f(x).tolist() == [2.0, 3.0]
    before = dict(nb.counters)
    w.set_data(Tensor([5.0, 6.0]))
    assert f(x).tolist() == [5.0, 6.0] and nb.counters == before
    assert f.compiled_signatures == 1 and len(f.programs()) == 1


def test_another_shape_or_another_trainability_is_recorded_anew():
    w = weight()
    f = nb.jit(nb.grad(lambda x: (w * x).sum(), None, [w]))
    x = Tensor([1.0, 4.0])
    assert f(x)[0].tolist() == [1.0, 4.0]
    w.requires_grad = False
    assert f(x)[0].tolist() == [0.0, 0.0]
    w.requires_grad = True
    w.set_data(Tensor([[1.0, 1.0], [1.0, 1.0]]))
    assert f(x)[0].tolist() == [[1.0, 4.0], [1.0, 4.0]]


def test_a_compiled_function_writes():
    w = weight((1.0,))
    calls = []

    @nb.jit
    def step(x):
        calls.append(1)
        value, gradient = nb.value_and_grad(lambda x: (w * w * x).sum(), None, w)(x)
        w.set_data(w - 0.25 * gradient)
        return value

    # w <- w - 0.5 w x
    assert [float(step(Tensor([1.0]))) for _ in range(3)] == [1.0, 0.25, 0.0625]
    assert w.asnumpy().tolist() == [0.125] and len(calls) == 1


def test_a_compiled_function_that_writes_may_return_nothing():
    w, total = weight(), np.zeros(2)

    @nb.jit
    def step(x):
        w.set_data(w * x)

    @nb.jit
    def add(array, x):
        array += x

    assert step(2.0) is None and step(3.0) is None
    np.testing.assert_array_equal(w.asnumpy(), [12.0, 18.0])
    add(total, np.array([1.0, 2.0]))
    add(total, np.array([1.0, 3.0]))
    np.testing.assert_array_equal(total, [2.0, 5.0])
    with pytest.raises(nb.errors.DtypeError, match="returned nothing"):
        nb.jit(lambda x: None if x[0] > 0 else x)(np.ones(2))


def test_a_write_is_read_back_within_one_recording():
    w = weight((3.0,))

    def f(x):
        w.set_data(w * 2)
        return w * x

    assert f(Tensor([1.0])).tolist() == [6.0] and w.asnumpy().tolist() == [6.0]
    assert nb.jit(f)(Tensor([1.0])).tolist() == [12.0] and w.asnumpy().tolist() == [12.0]
    value, gradient = nb.value_and_grad(f)(Tensor([1.0]))
    assert value.tolist() == [24.0] and gradient.tolist() == [24.0] and w.asnumpy().tolist() == [24.0]


def test_writes_during_a_gradient_do_not_pile_up():
    state = weight((0.0,), requires_grad=False)

    def f(x):
        state.set_data(state + x)
        return (x * x).sum()

    g = nb.grad(f)
    for _ in range(1200):
        g(Tensor([1.0]))
    assert state._leaf.value is not None and state.asnumpy().tolist() == [1200.0]


def test_an_error_while_recording_leaves_the_parameter_alone():
    w = weight()

    @nb.jit
    def f(x):
        w.set_data(w * 2)
        return x.nothing

    with pytest.raises(AttributeError):
        f(Tensor([1.0]))
    assert w.asnumpy().tolist() == [2.0, 3.0] and (w * 1).tolist() == [2.0, 3.0]


def test_a_compiled_function_inside_a_gradient_is_differentiated():
    w = weight()
    f = nb.jit(lambda x: w * x)
    x = Tensor([4.0, 5.0])
    f(x)  # compiled before
    assert nb.grad(f, None, w)(x).tolist() == [4.0, 5.0]
    assert nb.grad(lambda x: f(x) * 2, (0,), [w])(x)[1][0].tolist() == [8.0, 10.0]


def test_a_parameter_as_argument():
    w = weight()
    assert nb.grad(lambda w, x: (w * w * x).sum())(w, Tensor([1.0, 10.0])).tolist() == [4.0, 60.0]
    assert nb.jit(lambda w, x: w * x)(w, Tensor([1.0, 10.0])).tolist() == [2.0, 30.0]


def test_assign():
    w = weight()
    assert nb.ops.assign(w, Tensor([1.0, 2.0])).tolist() == [1.0, 2.0]
    nb.ops.assign_add(w, Tensor([1.0, 1.0]))
    nb.ops.assign_sub(w, 0.5)
    assert w.asnumpy().tolist() == [1.5, 2.5]


ASKED = {
    "float": lambda w: float(w),
    "bool": lambda w: bool(w[0] > 0.0),
    "sum": lambda w: float(np.sum(w)),
    "asnumpy": lambda w: w.asnumpy(),
    "nothing": lambda w: None,
}


@pytest.mark.parametrize("asked", ASKED)
def test_a_parameter_stays_one_after_its_new_value_was_asked_for(asked: str) -> None:
    """What was written to it is computed late; asking for that value must not make a constant of the Parameter."""
    w = nb.Parameter(nb.Tensor(np.array([2.0])), name="w")
    w[0] = w[0] * 2.0 + 1.0
    ASKED[asked](w)
    f = nb.jit(lambda x: x * w)
    assert f(np.ones(1)).tolist() == [5.0]
    w.set_data(np.array([7.0]))
    assert f(np.ones(1)).tolist() == [7.0]
    w[0] = 1.0
    ASKED[asked](w)
    assert f(np.ones(1)).tolist() == [1.0]
    w[0] = w[0] * 3.0
    ASKED[asked](w)
    (slope,) = nb.GradOperation(get_by_list=True)(lambda x: np.sum(x * w * w))(nb.Tensor(np.ones(1)))
    assert slope.asnumpy().tolist() == [6.0]


def test_writes_to_data_are_writes_to_the_parameter():
    weight = Parameter(Tensor([1.0, 2.0]), name="weight")
    data = weight.data
    data.sub_(Tensor([1.0, 1.0]))
    weight.data[0] = 7.0
    assert weight.asnumpy().tolist() == data.asnumpy().tolist() == [7.0, 1.0]
    weight.data = np.array([3.0, 4.0], np.float32)
    weight.data -= 1.0
    weight.data.view(2, 1).mul_(2.0)
    assert weight.asnumpy().tolist() == data.tolist() == [4.0, 6.0] and weight.name == "weight"
    assert type(pickle.loads(pickle.dumps(data))) is Tensor
    layer = nb.nn.Dense(2, 1)
    layer.weight.data.fill_(0.5)
    layer.bias.data.zero_()
    assert layer(Tensor([[1.0, 2.0]])).tolist() == [[1.5]]

    @nb.jit
    def step(x):
        weight.data.sub_(x)
        return weight.sum()

    assert [float(step(Tensor([1.0, 1.0]))) for _ in range(2)] == [8.0, 6.0]
    assert weight.asnumpy().tolist() == [2.0, 4.0]
