"""PyTorch's door: values that remember, their gradients, modes, hooks and functions with their own derivatives.

Expected values are derivatives on paper; the programs are those that PyTorch's documentation of autograd describes.
"""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref

import numpy as np
import pytest

import nbgrad as nb
from nbgrad import autograd
from nbgrad.autograd import functional
from nbgrad.errors import AutogradError

pytestmark = pytest.mark.unoptimized(but=16)


def leaf(*values, dtype=np.float64):
    return nb.tensor(np.array(values, dtype), requires_grad=True)


def same(found, expected):
    found = found.asnumpy() if isinstance(found, nb.Tensor) else found
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


# ----- The seed: function differences with torch.autograd -----


def test_backward_of_the_seed():
    x = nb.tensor(2.0, requires_grad=True)
    y = nb.tensor(3.0, requires_grad=True)
    z = x * x * y
    z.backward()
    assert (str(x.grad), str(y.grad)) == ("12.0", "4.0")


def test_grad_of_the_seed():
    x, y = nb.tensor(2.0).requires_grad_(), nb.tensor(3.0).requires_grad_()
    z = x * x * y
    grad_x = autograd.grad(outputs=z, inputs=x)
    assert isinstance(grad_x, tuple) and float(grad_x[0]) == 12.0 and x.grad is None


# ----- Gradients of values -----

PROGRAMS = {
    # name: (function, point, gradient on paper)
    "powers": (lambda x: 3 * x[0] ** 3 - x[1] ** 2, [2.0, 6.0], [36.0, -12.0]),
    "a value used twice": (lambda x: (x * x + x).sum(), [1.0, 2.0], [3.0, 5.0]),
    "a branch on a value": (lambda x: (x**3).sum() if x.sum() > 0 else -x.sum(), [1.0, 2.0], [3.0, 12.0]),
    "np.where": (lambda x: np.where(x > 0, np.sqrt(np.abs(x)), 0.0).sum(), [4.0, -1.0], [0.25, 0.0]),
    "a loop": (lambda x: powers(x), [1.0, 0.5], [4.0, 0.5]),
    "products": (lambda x: x @ np.array([[2.0, 1.0], [1.0, 3.0]]) @ x, [1.0, 2.0], [8.0, 14.0]),
    "a scan": (lambda x: nb.scan(lambda c, _: (c * x, None), x, length=2)[0].sum(), [1.0, 2.0], [3.0, 12.0]),
    "a Cell": (lambda x: nb.nn.ReLU()(x).sum(), [1.0, -2.0], [1.0, 0.0]),
}


def powers(x):
    total = x
    for _ in range(3):
        total = total * x
    return total.sum()


@pytest.mark.parametrize("read_first", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_are_those_on_paper(name, read_first):
    function, point, gradient = PROGRAMS[name]
    x = leaf(*point)
    value = function(x)
    before = value.item() if read_first else None
    value.backward()
    same(x.grad, gradient)
    assert before is None or value.item() == before


def test_a_write_to_a_computed_value_is_differentiated():
    x = leaf(2.0, 3.0)
    y = x * x
    y[0] = 5 * x[1]
    y += x
    y.sum().backward()  # y = (5 x1 + x0, x1^2 + x1)
    same(x.grad, [1.0, 12.0])


def test_gradients_accumulate_and_can_be_set():
    x = leaf(1.0, 2.0)
    for _ in range(2):
        (x * x).sum().backward()
    held = x.grad
    same(held, [4.0, 8.0])
    (x * x).sum().backward()
    assert x.grad is held
    same(held, [6.0, 12.0])
    x.grad.zero_()
    x.sum().backward()
    same(x.grad, [1.0, 1.0])
    x.grad = None
    assert x.grad is None
    x.grad = nb.Tensor(np.array([1.0, 1.0]))
    x.sum().backward()
    same(x.grad, [2.0, 2.0])


def test_several_outputs_with_cotangents():
    x = leaf(1.0, 2.0)
    autograd.backward([x * x, x.sum()], [nb.Tensor(np.array([1.0, 10.0])), None])
    same(x.grad, [3.0, 41.0])
    (g,) = autograd.grad(x * x, x, grad_outputs=nb.Tensor(np.array([1.0, 10.0])))
    same(g, [2.0, 40.0])


def test_cotangents_of_one_output_or_of_another():
    x = leaf(3.0)
    two = nb.Tensor(np.array([2.0]))
    for seeds, expected in ([two, None], 15.0), ([None, two], 12.0), ([two, two], 18.0), ([None, None], 9.0):
        same(autograd.grad([x * x, x * 3], x, seeds)[0], [expected])
        x.grad = None
        autograd.backward([x * x, x * 3], seeds)
        same(x.grad, [expected])


def test_higher_orders():
    x = leaf(2.0, 3.0)
    (first,) = autograd.grad((x**4).sum(), x, create_graph=True)
    (second,) = autograd.grad(first.sum(), x, create_graph=True)
    (third,) = autograd.grad(second.sum(), x)
    same(first, [32.0, 108.0])
    same(second, [48.0, 108.0])
    same(third, [48.0, 72.0])
    assert first.requires_grad and not third.requires_grad


def test_backward_with_create_graph():
    x = leaf(3.0)
    (x**3).sum().backward(create_graph=True)
    same(x.grad, [27.0])
    x.grad.sum().backward()
    same(x.grad, [45.0])  # 27 and the second derivative, 18


def test_batched_cotangents():
    x = leaf(1.0, 2.0, 3.0)
    (rows,) = autograd.grad(x * x, x, nb.Tensor(np.eye(3)), is_grads_batched=True)
    same(rows, np.diag([2.0, 4.0, 6.0]))


def test_inputs_that_are_computed_values():
    x, w = leaf(2.0), leaf(5.0)
    y = x * x
    z = y * w
    same(autograd.grad(z.sum(), y, retain_graph=True)[0], [5.0])
    z.sum().backward(inputs=[y, w])
    same(y.grad, [5.0])
    same(w.grad, [4.0])
    assert x.grad is None


def test_what_a_pass_releases():
    x = leaf(2.0)
    y = x * x
    z = (y * y).sum()
    autograd.grad(z, y)  # goes no further than y
    same(autograd.grad(y.sum(), x, retain_graph=True)[0], [4.0])
    with pytest.raises(AutogradError, match="a second time"):
        autograd.grad(z, y)
    total = y.sum() + x.sum()
    for _ in range(2):
        total.backward(retain_graph=True)
    same(x.grad, [10.0])
    linear = x.sum()
    for _ in range(2):
        linear.backward()  # nothing is kept for it, so nothing is freed
    same(x.grad, [12.0])


def test_unused_inputs():
    x, y = leaf(2.0), leaf(3.0)
    z = (x * x).sum()
    with pytest.raises(AutogradError, match="appears to not have been used in the graph"):
        autograd.grad(z, [x, y], retain_graph=True)
    found = autograd.grad(z, [x, y], allow_unused=True, retain_graph=True)
    assert found[1] is None
    same(autograd.grad(z, [x, y], materialize_grads=True)[1], [0.0])


def test_methods_in_place():
    x = leaf(1.0, 2.0)
    y = (x * 1).add_(x).mul_(nb.Tensor(np.array([3.0, 4.0]))).sub_(1.0).div_(2.0)
    y.sum().backward()
    same(x.grad, [3.0, 4.0])
    with nb.no_grad():
        x.sub_(0.5 * x.grad)
    same(x, [-0.5, 0.0])
    x.grad.copy_(np.array([7.0, 7.0])).fill_(2.0)
    x.sum().backward()
    same(x.grad, [3.0, 3.0])


def test_copies_of_leaves():
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other.requires_grad and other.is_leaf
        other.grad = None
        (other * 3).sum().backward()
        same(other.grad, [3.0, 3.0])
    same(x.grad, [2.0, 4.0])
    assert not nb.Tensor(x).is_leaf


def test_complex_values_in_between():
    z = nb.tensor(np.array([1 + 1j, 2.0]), requires_grad=True)
    y, seen = z * z, []
    y.retain_grad()
    y.register_hook(lambda g: seen.append(g.tolist()))
    abs(y).sum().backward()  # |z|^2
    same(y.grad, [1j, 1.0])
    assert len(seen) == 1
    same(z.grad, [2 + 2j, 4.0])
    y = z * 2j
    same(autograd.grad(y.imag.sum(), y)[0], [1j, 1j])


def test_the_new_value_of_a_tensor_written_in_place_retains_its_gradient():
    """PyTorch: what retains is the Tensor, whose gradient is that of the value that it has."""
    x = leaf(1.0, 2.0)
    y = x * 2
    y.retain_grad()
    y.mul_(3.0)
    y.sum().backward()
    same(y.grad, [1.0, 1.0])
    same(x.grad, [6.0, 6.0])


def test_a_leaf_by_itself():
    x = leaf(3.0)
    x.backward()
    same(x.grad, [1.0])
    same(autograd.grad(x, x)[0], [1.0])


def test_complex_leaves():
    z = nb.tensor(np.array([1 + 2j]), requires_grad=True)
    (z * z.conj()).real.sum().backward()
    same(z.grad, [2 + 4j])  # d/dx + i d/dy of x^2 + y^2


# ----- What remembers -----


def test_leaves_and_computed_values():
    x, c = leaf(1.0), nb.Tensor(np.array([1.0]))
    y = x * c
    assert (x.requires_grad, x.is_leaf, x.grad_fn) == (True, True, None)
    assert (c.requires_grad, c.is_leaf) == (False, True)
    assert (y.requires_grad, y.is_leaf, y.grad_fn) == (True, False, "multiply")
    d = y.detach()
    assert (d.requires_grad, d.is_leaf, d.item()) == (False, True, 1.0)
    assert not (x > 0).requires_grad
    x.requires_grad_(False)
    assert not (x * 2).requires_grad and y.requires_grad


def test_detached_values_are_constants():
    x = leaf(3.0)
    (x * x.detach()).sum().backward()
    same(x.grad, [3.0])


def test_graphs_live_as_long_as_references():
    x = leaf(1.0, 2.0)
    y = np.exp(x)
    z = y * x
    gone = weakref.ref(y._node)
    z.sum().backward()
    del y
    gc.collect()
    assert gone() is not None
    del z
    gc.collect()
    assert gone() is None


def test_long_chains():
    x = leaf(1.0)
    y = x
    for _ in range(1200):
        y = y * 1.001
    y.sum().backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 1.001**1200, rtol=1e-10)


def test_gradient_descent_in_place():
    x = leaf(5.0)
    for _ in range(3):
        (x * x).sum().backward()
        with nb.no_grad():
            x -= 0.25 * x.grad
        x.grad.zero_()
    same(x, [0.625])
    assert x.requires_grad and x.is_leaf


def test_parameters():
    w = nb.Parameter(nb.Tensor(np.array([2.0])), name="w")
    assert not isinstance((w * w).sum().grad_fn, str)
    with nb.enable_grad():
        (w * w).sum().backward()
    same(w.grad, [4.0])
    with nb.enable_grad():
        loss = (w**3).sum()
    same(autograd.grad(loss, [w])[0], [12.0])
    w.requires_grad_()
    (w * w).sum().backward()
    same(w.grad, [8.0])
    w.requires_grad = False
    assert not (w * w).requires_grad


def test_with_transforms():
    x = leaf(2.0, 3.0)
    y = nb.Tensor(np.array([1.0, 4.0]))
    inner = nb.grad(lambda y: (y * y * x).sum())(y)  # 2 x y
    inner.sum().backward()
    same(x.grad, [2.0, 8.0])
    x.grad = None
    nb.jit(lambda a: (a * a).sum())(x).backward()
    same(x.grad, [4.0, 6.0])
    x.grad = None
    closes = nb.jit(lambda a: (a * x).sum())
    for _ in range(2):
        closes(y).backward()
    same(x.grad, [2.0, 8.0])
    with nb.no_grad():
        assert not closes(y).requires_grad and closes(y).item() == 14.0
    x.grad = None
    nb.vmap(lambda a: a * x.sum())(y).sum().backward()
    same(x.grad, [5.0, 5.0])


def test_leaves_that_a_recorded_function_reads_are_constants_for_its_branches():
    x = leaf(1.0, 2.0)

    def f(v):
        return (v * x).sum() * (2.0 if float(x.sum()) > 0 else 1.0)

    for transform in (nb.grad, lambda f: nb.jit(nb.grad(f))):
        same(transform(f)(nb.Tensor(np.ones(2))), [2.0, 4.0])


def test_the_layer_of_the_quick_start():
    w, b = leaf(*np.ones((5, 3))), leaf(0.0, 0.0, 0.0)
    z = nb.ops.matmul(nb.ops.ones(5, nb.float64), w) + b
    ones = nb.ops.ones_like(z)
    nb.ops.binary_cross_entropy_with_logits(z, nb.ops.zeros_like(z), ones, ones).backward()
    same(b.grad, np.full(3, 1 / (1 + np.exp(-5)) / 3))
    same(w.grad, np.full((5, 3), 1 / (1 + np.exp(-5)) / 3))


def test_in_compiled_functions():
    @nb.jit
    def slope(x):
        x = x.detach().requires_grad_()
        return autograd.grad((x**3).sum(), x)[0]

    same(slope(nb.Tensor(np.array([1.0, 2.0]))), [3.0, 12.0])
    same(slope(nb.Tensor(np.array([2.0, 3.0]))), [12.0, 27.0])


def test_parameters_in_compiled_functions():
    w = nb.Parameter(nb.Tensor(np.array([2.0])), name="w")

    @nb.jit
    def slope(x):
        with nb.enable_grad():
            loss = nb.scan(lambda c, _: (c * w * x, None), x, length=2)[0].sum()  # w^2 x^3
        return autograd.grad(loss, w)[0]

    same(slope(nb.Tensor(np.array([3.0]))), [2 * 2 * 27.0])
    w.set_data(nb.Tensor(np.array([5.0])))
    same(slope(nb.Tensor(np.array([3.0]))), [2 * 5 * 27.0])


# ----- Modes -----


def test_modes():
    x = leaf(1.0)
    assert nb.is_grad_enabled()
    with nb.no_grad():
        assert not nb.is_grad_enabled() and not (x * 2).requires_grad
        with nb.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad and x.requires_grad
    with nb.set_grad_enabled(False):
        assert not (x.sum()).requires_grad
    with nb.inference_mode():
        assert autograd.is_inference_mode_enabled() and not x.exp().requires_grad
    assert nb.is_grad_enabled() and not autograd.is_inference_mode_enabled()
    nb.set_grad_enabled(False)
    try:
        assert not (x * 2).requires_grad
    finally:
        nb.set_grad_enabled(True)
    assert (x * 2).requires_grad


@pytest.mark.parametrize(
    "decorator", [nb.no_grad, lambda f: nb.no_grad()(f), lambda f: nb.set_grad_enabled(False)(f), nb.inference_mode]
)
def test_modes_as_decorators(decorator):
    x = leaf(1.0)
    doubled = decorator(lambda: x * 2)
    assert nb.is_grad_enabled()
    assert not doubled().requires_grad


def test_no_grad_in_recorded_functions():
    def f(x):
        with nb.no_grad():
            y = x * x
        return (x * y).sum()

    same(nb.grad(f)(np.array([2.0])), [4.0])
    same(nb.jit(nb.grad(f))(np.array([2.0])), [4.0])


def test_transforms_in_a_block_without_gradients_still_differentiate():
    x, w = leaf(2.0), leaf(3.0)
    with nb.no_grad():
        for transform in (lambda f: f, nb.jit):
            slope = transform(nb.grad(lambda x: (x * x * w).sum()))(x)
            same(slope, [12.0])
            assert not slope.requires_grad
    assert w.requires_grad


def test_training_steps_in_a_block_with_gradients():
    net = nb.nn.Dense(2, 1)
    rows, wanted = nb.Tensor(np.ones((3, 2), np.float32)), nb.Tensor(np.zeros((3, 1), np.float32))
    losses = []
    with nb.enable_grad():
        step = nb.nn.TrainOneStepCell(nb.nn.WithLossCell(net, nb.nn.MSELoss()), nb.nn.SGD(net.trainable_params(), 0.1))
        for _ in range(2):
            losses.append(step(rows, wanted))
    assert losses[1].item() < losses[0].item() and not losses[0].requires_grad


def test_each_thread_has_its_own_mode():
    found = []
    with nb.no_grad():
        thread = threading.Thread(target=lambda: found.append(nb.is_grad_enabled()))
        thread.start()
        thread.join()
        assert found == [True] and not nb.is_grad_enabled()


# ----- Hooks -----


def test_hooks_on_leaves_and_values():
    x, seen = leaf(1.0, 2.0), []
    y = x * x
    handle = y.register_hook(lambda g: seen.append(g.tolist()) or g * 10)
    y.retain_grad()
    (3 * y).sum().backward()
    same(x.grad, [60.0, 120.0])
    same(y.grad, [30.0, 30.0])
    assert seen == [[3.0, 3.0]] and y.retains_grad
    handle.remove()
    x.grad = None
    with x.register_hook(lambda g: -g):
        (x * x).sum().backward()
    same(x.grad, [-2.0, -4.0])
    (x * x).sum().backward()
    same(x.grad, [0.0, 0.0])


def test_hooks_of_computed_values_see_all_of_a_gradient_once():
    x, seen = leaf(2.0), []
    y = x * x
    y.register_hook(lambda g: seen.append(float(g[0])))
    (y * 3 + y * y).sum().backward()
    assert seen == [11.0]
    same(x.grad, [44.0])


def test_hooks_after_accumulation():
    x, seen = leaf(1.0), []
    x.register_post_accumulate_grad_hook(lambda one: seen.append(one.grad.item()))
    for _ in range(2):
        (2 * x).sum().backward()
    assert seen == [2.0, 4.0]


def test_a_hook_that_fails_leaves_all_as_it_was():
    x, y = leaf(1.0), leaf(2.0)
    y.register_hook(lambda g: g.reshape(1, 1))
    z = (x * y).sum()
    with pytest.raises(AutogradError, match="has changed the size of value"):
        z.backward()
    assert x.grad is None and y.grad is None and z.requires_grad


def test_empty_arrays():
    x = nb.tensor(np.zeros((0, 2)), requires_grad=True)
    (x * x).sum().backward()
    assert x.grad.shape == (0, 2)
    same(functional.jacobian(lambda x: x * 2, nb.Tensor(np.zeros(0))), np.zeros((0, 0)))


def test_shared_data_and_views():
    data = np.array([1.0, 2.0])
    x = nb.from_numpy(data).requires_grad_()
    y = x[1:] * 3
    y.sum().backward()
    same(x.grad, [0.0, 3.0])
    values = (x * 2).asnumpy()
    values[0] = 100.0
    same(x * 2, [2.0, 4.0])


HOOKED = {
    # What a hook makes of a gradient: first, second and third derivatives, as PyTorch 2.14 gives them.
    "twice": (lambda g: g * 2, [[88.0, 704.0, 2376.0], [544.0, 2176.0, 4896.0], [1920.0, 3840.0, 5760.0]]),
    "nothing": (lambda g: None, [[32.0, 256.0, 864.0], [96.0, 384.0, 864.0], [192.0, 384.0, 576.0]]),
    "squared": (
        lambda g: g * g * 1e-3,
        [[8.0322561, 66.11406, 241.03786], [0.0970369, 2.671917, 20.086981], [0.0655691, 1.129927, 6.502148]],
    ),
}


@pytest.mark.parametrize("name", HOOKED)
def test_hooks_see_each_pass_of_higher_order_once(name):
    hook, expected = HOOKED[name]
    x, seen = leaf(1.0, 2.0, 3.0), []
    y = x * 2
    z = y * y
    for value in (y, z):
        value.register_hook(lambda g: seen.append(1) or hook(g))
    found = (z * y * x).sum()
    for order, values in enumerate(expected, 1):
        (slope,) = nb.autograd.grad(found, x, create_graph=True)
        np.testing.assert_allclose(slope.asnumpy(), values, rtol=2e-6)
        assert len(seen) == 2 * order
        found = slope.sum()


def test_hooks_of_a_value_that_is_asked_for():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    y.register_hook(lambda g: g * 3)
    (slope,) = nb.autograd.grad((y**3).sum(), y, create_graph=True)
    same(slope, [36.0, 144.0, 324.0])
    same(nb.autograd.grad(slope.sum(), x)[0], [216.0, 432.0, 648.0])


def test_generators_without_gradients():
    """Modes hold while a generator runs, and not in between."""
    x, closed = leaf(1.0), []

    @nb.no_grad()
    def values(count):
        try:
            for k in range(count):
                try:
                    got = yield (x * k).requires_grad, nb.is_grad_enabled()
                except KeyError:
                    got = "thrown"
                closed.append(got)
        finally:
            closed.append(nb.is_grad_enabled())
        return "done"

    def through():
        found.append((yield from values(2)))

    found = []
    made = through()
    assert next(made) == (False, False) and nb.is_grad_enabled() and (x * 2).requires_grad
    assert made.send("sent") == (False, False)
    with pytest.raises(StopIteration):
        made.throw(KeyError())
    assert found == ["done"] and closed == ["sent", "thrown", False] and nb.is_grad_enabled()
    made = values(3)
    next(made)
    made.close()
    assert closed[3:] == [False]
