"""TensorFlow's door: tapes, `gradients`, custom gradients, forward accumulators.

Expected values are derivatives on paper, and the arrays of the document that compares MindSpore's grad with
`tf.gradients`; the programs are those that TensorFlow's guides of automatic differentiation describe.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import AutogradError

pytestmark = pytest.mark.unoptimized(but=16)


def tensor(*values):
    return nb.Tensor(np.array(values))


def parameter(*values, name="w", trainable=True):
    return nb.Parameter(nb.Tensor(np.array(values)), name=name, requires_grad=trainable)


def same(found, expected):
    if isinstance(found, list | tuple):
        found = [one.asnumpy() for one in found]
    elif isinstance(found, nb.Tensor):
        found = found.asnumpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


# ----- The seed: function differences with tf.gradients -----


@pytest.mark.parametrize("make", [parameter, tensor])
def test_gradients_of_the_seed(make):
    w1, w2, w3, w4 = ws = [make(1.0, 1.0, 1.0) for _ in range(4)]
    for w in ws:
        w.requires_grad_()
    z1 = w1 + w2 + w3
    z2 = w3 + w4
    grads = nb.gradients([z1, z2], [w1, w2, w3, w4], grad_ys=[tensor(2.0, 2.0, 3.0), tensor(3.0, 2.0, 4.0)])
    assert isinstance(grads, list)
    for found, expected in zip(grads, [[2, 2, 3], [2, 2, 3], [5, 4, 7], [3, 2, 4]], strict=True):
        same(found, expected)


def test_stopped_gradients():
    a = nb.tensor(0.0, requires_grad=True)
    b = 2 * a
    same(nb.gradients(a + b, [a, b], stop_gradients=[a, b]), [1.0, 1.0])
    same(nb.gradients(a + b, [a, b]), [3.0, 1.0])
    c = b.sum() * a
    same(nb.gradients(c, [a], stop_gradients=[b]), [0.0])  # b is 0
    same(nb.gradients(a * a + b * b, [a, b], stop_gradients=b), [0.0, 0.0])


def test_gradients_by_unconnected_values():
    a, b = nb.tensor(2.0, requires_grad=True), nb.tensor(3.0, requires_grad=True)
    assert nb.gradients(a * a, [a, b])[1] is None
    same(nb.gradients(a * a, [a, b], unconnected_gradients="zero"), [4.0, 0.0])


def test_gradients_of_gradients_and_in_compiled_functions():
    a = nb.tensor(2.0, requires_grad=True)
    (first,) = nb.gradients(a**3, a)
    same(nb.gradients(first, a), [12.0])

    @nb.jit
    def slope(x):
        return nb.gradients(x**3, x)[0]

    same(slope(tensor(1.0, 2.0)), [3.0, 12.0])


# ----- Tapes -----


def test_scalars_and_intermediate_values():
    x = tensor(3.0)
    with nb.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        z = y * y
    same(tape.gradient(z, x), [108.0])
    same(tape.gradient(y, x), [6.0])
    same(tape.gradient(z, y), [18.0])
    same(tape.gradient(x, x), [1.0])
    assert not x.requires_grad and x.grad is None


@pytest.mark.parametrize("compiled", [False, True])
def test_a_fixed_parameter_can_be_watched(compiled):
    fixed, other = parameter(1.0, 3.0, trainable=False), parameter(2.0, name="other", trainable=False)

    def function():
        return (fixed * fixed * other).sum()

    with nb.GradientTape() as tape:
        tape.watch(fixed)
        loss = nb.jit(function)() if compiled else function()
    assert tape.watched_variables() == (fixed,)
    found = tape.gradient(loss, [fixed, other])
    same(found[0], [4.0, 12.0])
    assert found[1] is None


def test_parameters_are_watched_where_they_are_used():
    w, b = parameter(1.0, 2.0), parameter(0.5, name="b")
    fixed, unused = parameter(3.0, name="fixed", trainable=False), parameter(1.0, name="unused")
    with nb.GradientTape(persistent=True) as tape:
        loss = ((w * 3.0 + b) * fixed).sum()
    assert tape.watched_variables() == (w, b)
    found = tape.gradient(loss, {"w": w, "b": [b, fixed, unused]})
    same(found["w"], [9.0, 9.0])
    same(found["b"][0], [6.0])
    assert found["b"][1] is None and found["b"][2] is None
    same(tape.gradient(loss, unused, unconnected_gradients="zero"), [0.0])
    assert not (w * 2).requires_grad


def test_control_of_what_is_watched():
    w, x, y = parameter(2.0), tensor(3.0), tensor(10.0)
    with nb.GradientTape(watch_accessed_variables=False, persistent=True) as tape:
        tape.watch([x])
        z = w * x * y
    assert tape.gradient(z, w) is None and tape.gradient(z, y) is None
    same(tape.gradient(z, x), [20.0])
    with nb.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(w)
        z = w * x
    same(tape.gradient(z, w), [3.0])


def test_stopped_recording():
    x = tensor(2.0)
    with nb.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            u = x * x
        z = y + u.sum() + x
    assert tape.gradient(u, x) is None
    same(tape.gradient(z, x), [5.0])


def test_what_is_computed_outside_is_not_recorded():
    x = tensor(2.0)
    with nb.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
    assert tape.gradient(y * 3, x) is None
    assert tape.gradient(x * 3, x) is None
    same(tape.gradient(y, x), [4.0])


def test_a_parameter_that_is_written_to():
    w = parameter(2.0)
    with nb.GradientTape() as tape:
        y = w * w
        w.set_data(tensor(5.0))
        z = y + w
    same(tape.gradient(z, w), [5.0])  # 2 * 2 at its first value, and 1
    same(w, [5.0])


def test_targets_in_containers_and_output_gradients():
    x = tensor(2.0, 3.0)
    with nb.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = {"a": x * x, "b": 1 / x}
    same(tape.gradient(y, x), [4 - 1 / 4, 6 - 1 / 9])
    weights = {"a": tensor(1.0, 0.0), "b": tensor(0.0, 9.0)}
    same(tape.gradient(y, x, output_gradients=weights), [4.0, -1.0])
    assert tape.gradient(nb.Tensor(3), x) is None


def test_higher_orders():
    x = tensor(1.0)
    with nb.GradientTape() as t2:
        t2.watch(x)
        with nb.GradientTape() as t1:
            t1.watch(x)
            y = x * x * x
        first = t1.gradient(y, x)
    same(first, [3.0])
    same(t2.gradient(first, x), [6.0])


def test_input_gradient_regularization():
    w, x = parameter(3.0), tensor(2.0)
    with nb.GradientTape() as t2:
        with nb.GradientTape(watch_accessed_variables=False) as t1:
            t1.watch(x)
            y = (x * x * w).sum()
        g = t1.gradient(y, x)  # 2 x w
        size = (g**2).sum()
    same(t2.gradient(size, w), [96.0])  # 2 (2 x w) 2 x


def test_a_tape_around_grad():
    w = parameter(3.0)
    with nb.GradientTape() as tape:
        slope = nb.grad(lambda x: (x * x * w).sum())(tensor(2.0))
    same(tape.gradient(slope, w), [4.0])


JACOBIANS = {
    # name: (function, point, Jacobian on paper)
    "of a scalar": (lambda x: (x**3).sum(), [1.0, 2.0], [3.0, 12.0]),
    "elementwise": (lambda x: x * x, [1.0, 2.0], [[2.0, 0.0], [0.0, 4.0]]),
    "by a scalar": (lambda x: x * np.array([1.0, 2.0]), 3.0, [1.0, 2.0]),
    "linear": (lambda x: np.array([[1.0, 2.0], [3.0, 4.0]]) @ x, [1.0, 1.0], [[1.0, 2.0], [3.0, 4.0]]),
}


@pytest.mark.parametrize("name", JACOBIANS)
def test_jacobians(name):
    function, point, jacobian = JACOBIANS[name]
    x = nb.Tensor(np.array(point))
    with nb.GradientTape() as tape:
        tape.watch(x)
        y = function(x)
    found = tape.jacobian(y, {"x": x})["x"]
    same(found, jacobian)


def test_batch_jacobian_and_hessian():
    x = nb.Tensor(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    with nb.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = np.stack([x[:, 0] * x[:, 1], x[:, 0], x[:, 1] ** 2], 1)
    expected = [[[b, a], [1, 0], [0, 2 * b]] for a, b in x.asnumpy()]
    same(tape.batch_jacobian(y, x), expected)
    assert tape.batch_jacobian(y, tensor(1.0, 2.0, 3.0)) is None
    point = tensor(1.0, 2.0)
    with nb.GradientTape() as t2:
        t2.watch(point)
        with nb.GradientTape() as t1:
            t1.watch(point)
            value = point[0] ** 2 * point[1]
        slope = t1.gradient(value, point)
    same(t2.jacobian(slope, point), [[4.0, 2.0], [2.0, 0.0]])


def test_training_with_a_cell():
    net = nb.nn.Dense(2, 1)
    rows = nb.Tensor(np.array([[1.0, 2.0], [3.0, -1.0]], np.float32))
    with nb.GradientTape() as tape:
        loss = (net(rows) ** 2).mean()
    expected = nb.grad(lambda: (net(rows) ** 2).mean(), None, net.trainable_params())()
    for found, one in zip(tape.gradient(loss, net.trainable_params()), expected, strict=True):
        np.testing.assert_allclose(found.asnumpy(), one.asnumpy(), rtol=1e-6)


def test_compiled_functions_in_a_tape():
    x = tensor(1.0, 2.0)
    compiled = nb.jit(lambda x: (x**3).sum())
    compiled(x)
    with nb.GradientTape() as tape:
        tape.watch(x)
        y = compiled(x)
    same(tape.gradient(y, x), [3.0, 12.0])


def test_tapes_in_compiled_functions():
    w = parameter(3.0)

    @nb.jit
    def gradients(x):
        with nb.GradientTape() as outer:
            with nb.GradientTape() as tape:
                tape.watch(x)
                y = (x * x * w).sum()
            by_x, by_w = tape.gradient(y, [x, w])
        return by_x, by_w, outer.gradient(by_x, w)

    for x, weight in [(1.0, 3.0), (2.0, 3.0), (2.0, 5.0)]:
        w.set_data(tensor(weight))
        for found, expected in zip(gradients(tensor(x)), [2 * x * weight, x * x, 2 * x], strict=True):
            same(found, [expected])
    assert gradients.compiled_signatures == 1


def test_shared_data_stay_shared():
    data = np.array([1.0, 2.0])
    x = nb.from_numpy(data)
    with nb.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    data[0] = 10.0
    same(tape.gradient(y, x), [2.0, 4.0])
    same(x, [10.0, 2.0])


def test_each_thread_has_its_own_tapes():
    w, seen = parameter(2.0), []
    with nb.GradientTape() as tape:
        thread = threading.Thread(target=lambda: seen.append((w * w).requires_grad))
        thread.start()
        thread.join()
    assert seen == [False] and tape.watched_variables() == ()


# ----- Custom gradients, forward mode -----


@nb.custom_gradient
def log1pexp(x):
    e = np.exp(x)

    def grad(upstream):
        return upstream * (1 - 1 / (1 + e))

    return np.log(1 + e), grad


@nb.custom_gradient
def product(x, y):
    return (x * y, x + y), lambda p, s: (p * y + 10 * s, None)


def test_custom_gradients():
    x = tensor(100.0)
    with nb.GradientTape(persistent=True) as t2:
        t2.watch(x)
        with nb.GradientTape() as t1:
            t1.watch(x)
            y = log1pexp(x)
        g = t1.gradient(y, x)
    same(g, [1.0])
    same(nb.grad(lambda x: log1pexp(x).sum())(tensor(0.0)), [0.5])
    same(t2.gradient(g, x), [0.0])
    a, b = tensor(2.0), tensor(3.0)
    with nb.GradientTape(persistent=True) as tape:
        tape.watch([a, b])
        p, s = product(a, b)
    same(tape.gradient([p, s], a), [13.0])
    assert tape.gradient(p, b) is None
    same(product(a, b)[0], [6.0])


def test_forward_accumulators():
    x, v, w = tensor(1.0, 2.0), tensor(1.0, 10.0), parameter(3.0)
    with nb.ForwardAccumulator(x, v) as acc:
        y = x**3
        z = w * 2
    same(acc.jvp(y), [3.0, 120.0])
    assert acc.jvp(z) is None
    same(acc.jvp(z, unconnected_gradients="zero"), [0.0])
    with nb.ForwardAccumulator([x, w], [v, tensor(2.0)]) as acc:
        y = (x * w).sum()
    same(acc.jvp(y), 3.0 * 11.0 + 2.0 * 3.0)
    with nb.ForwardAccumulator(x, v) as acc:
        with nb.GradientTape() as tape:
            tape.watch(x)
            y = (x**3).sum()
        slope = tape.gradient(y, x)
    same(acc.jvp(slope), [6.0, 120.0])


# ----- Bad input, in TensorFlow's words -----


def used_twice(x):
    with nb.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    tape.jacobian(y, x)


def entered_twice(x):
    with nb.GradientTape() as tape, tape:
        pass


def stopped_twice(x):
    with nb.GradientTape() as tape, tape.stop_recording(), tape.stop_recording():
        pass


def watched_number(x):
    with nb.GradientTape() as tape:
        tape.watch(3.0)


def rows_of_different_lengths(x):
    with nb.GradientTape() as tape:
        tape.watch(x)
        y = x[:1] * 2
    tape.batch_jacobian(y, x)


def asked(ask):
    def wrong(x):
        with nb.GradientTape() as tape:
            tape.watch(x)
            y = x * x
        ask(tape, y, x)

    return wrong


@nb.custom_gradient
def too_few(x, y):
    return x * y, lambda g: g


@nb.custom_gradient
def wrong_shape(x):
    return x * 2, lambda g: g.sum()


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        (used_twice, RuntimeError, "A non-persistent GradientTape can only be used to compute one set of gradients"),
        (entered_twice, RuntimeError, "Tape is already recording"),
        (stopped_twice, RuntimeError, "Tape is not recording"),
        (rows_of_different_lengths, ValueError, "Need first dimension of target shape"),
        (lambda x: nb.GradientTape().watch(x), RuntimeError, "A tape watches within its block"),
        (lambda x: nb.GradientTape().gradient(x, x), RuntimeError, "The tape has recorded nothing"),
        (asked(lambda tape, y, x: tape.gradient(y, x, unconnected_gradients=0)), ValueError, "Unknown value for unc"),
        (asked(lambda tape, y, x: tape.gradient(y, [x, 1.0])), TypeError, "must be Tensors or Parameters"),
        (asked(lambda tape, y, x: tape.gradient(1.0, x)), TypeError, "The target of a tape"),
        (asked(lambda tape, y, x: tape.gradient([y, y], x, output_gradients=[y])), ValueError, "one Tensor for each"),
        (asked(lambda tape, y, x: tape.gradient(y, x, output_gradients=tensor(1.0))), ValueError, "Mismatch in shape"),
        (lambda x: nb.gradients(x * x, x), RuntimeError, "Element 0 of ys does not remember how it was made"),
        (lambda x: nb.gradients(1.0, x), TypeError, "ys must be a Tensor"),
        (lambda x: nb.custom_gradient(lambda x: x)(x), TypeError, "must return a pair"),
        (lambda x: nb.grad(lambda x: wrong_shape(x).sum())(x), ValueError, "has shape"),
        (lambda x: nb.grad(lambda x: too_few(x, x).sum())(x), ValueError, "expected to return 2 gradients"),
        (lambda x: nb.ForwardAccumulator(x, tensor(1.0)), ValueError, "must have this shape"),
        (lambda x: nb.ForwardAccumulator([x, x], [x, x]), ValueError, "specified multiple times"),
        (lambda x: nb.ForwardAccumulator(x, x).jvp(x), RuntimeError, "The accumulator has recorded nothing"),
        (watched_number, ValueError, "Passed in object 3.0 of type 'float'"),
    ],
)
def test_bad_input(wrong, error, message):
    x = tensor(1.0, 2.0)
    with pytest.raises(error, match=message):
        wrong(x)
    assert not x.requires_grad and nb.is_grad_enabled()
    with nb.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    same(tape.gradient(y, x), [2.0, 4.0])


def test_an_error_in_the_block_ends_the_watch():
    x = tensor(1.0)
    with pytest.raises(AutogradError), nb.GradientTape() as tape:
        tape.watch(x)
        raise AutogradError("the user's")
    assert not (x * 2)._node.traced


def test_values_that_remember_stay_on_their_device(place: Any) -> None:
    x = nb.tensor(np.array([1.0, 2.0]), device="cuda", requires_grad=True)
    for _ in range(2):
        (x * x).sum().backward()
    assert x.grad is not None
    with nb.no_grad():
        x -= 0.5 * x.grad
    with nb.GradientTape() as tape:
        tape.watch(y := nb.Tensor(np.array([1.0, 2.0]), device="cuda"))
        z = (y * y).sum()
    for found, expected in (
        (x.grad, np.array([4.0, 8.0])),
        (x.detach(), np.array([-1.0, -2.0])),
        (tape.gradient(z, y), np.array([2.0, 4.0])),
    ):
        assert isinstance(found, nb.Tensor) and found.device == "cuda:0"
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-12, atol=1e-12)
        assert found.dtype == expected.dtype


def test_a_variable_is_its_own_target():
    """As in TensorFlow's guide, where a branch gives a variable itself."""
    v, other = (nb.Parameter(nb.Tensor(2.0), name=name) for name in ("v", "other"))
    with nb.GradientTape(persistent=True) as tape:
        result = v
    found = tape.gradient(result, [v, other])
    assert found[0].asnumpy() == 1.0 and found[1] is None
    with nb.GradientTape(watch_accessed_variables=False) as tape:
        pass
    assert tape.gradient(v, v) is None


def test_custom_gradients_of_variables_and_of_methods():
    w = nb.Parameter(nb.Tensor(3.0), name="w")

    @nb.custom_gradient
    def scaled(x):
        def grad(dy, variables=None):
            assert variables == [w]
            return dy * w * 10, [dy * x * 5]

        return x * w, grad

    x = nb.Tensor(2.0)
    with nb.GradientTape() as tape:
        tape.watch(x)
        y = scaled(x)
    assert [float(g.asnumpy()) for g in tape.gradient(y, [x, w])] == [30.0, 10.0]

    @nb.custom_gradient
    def careless(x):
        return x * w, lambda dy: dy

    with nb.GradientTape(), pytest.raises(TypeError, match="must accept a 'variables' keyword argument"):
        careless(x)

    class Model:
        @nb.custom_gradient
        def both(self, x, y):
            return (x * 2, y * 1), lambda a, b: (a * 7 + b, b * 8)

    slopes = nb.grad(lambda x, y: (lambda a, b: 3 * a + b)(*Model().both(x, y)), (0, 1))(1.0, 2.0)
    assert slopes == (22.0, 8.0)
