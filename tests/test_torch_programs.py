"""Small programs in PyTorch's words, beside the numbers that PyTorch 2.14 printed for them, and its errors."""

from __future__ import annotations

import numpy as np
import pytest

import nbgrad as nb
import nbgrad.mint.torch_names as torch
from nbgrad.errors import AutogradError

pytestmark = pytest.mark.unoptimized(but=16)


def leaf(*values, **options):
    return torch.tensor(list(values), requires_grad=True, **options)


# ----- Several passes -----


def a_detached_value():
    """The step of a discriminator, then that of the generator, over one value."""
    x, w = leaf(1.0, 2.0), leaf(3.0, 1.0)
    fake = x * x
    (fake.detach() * w).exp().sum().backward()
    (fake * w).sum().backward()
    return x.grad, w.grad


def a_branch_on_a_value():
    x = leaf(1.0, 2.0)
    f = x * x
    torch.where(f > 2, x, x * 2).sum().backward()
    (f * f).sum().backward()
    return (x.grad,)


def a_cotangent_with_a_graph():
    x = leaf(1.0, 2.0)
    s = x * x * x
    (x * x).backward(s)
    s.sum().backward()
    return (x.grad,)


# ----- Writes without gradients -----


def a_view_of_a_leaf():
    x = leaf(1.0, 2.0, 3.0)
    with torch.no_grad():
        first = x[:2]
        first.mul_(2.0)
    (x * x).sum().backward()
    return x, x.grad


def rows_made_unit_vectors():
    w = leaf([3.0, 4.0], [1.0, 0.0])
    with torch.no_grad():
        for row in w:
            row.div_(row.norm())
    (w * w).sum().backward()
    return w, w.grad


def a_transpose_of_a_leaf():
    w = leaf([3.0, 4.0], [1.0, 0.5])
    with torch.no_grad():
        w.T[0].zero_()
        w.reshape(4)[3:].add_(1.0)
        w.diagonal().mul_(2.0)
    (w * w).sum().backward()
    return w, w.grad


def a_computed_value():
    x = leaf(1.0, 2.0)
    y = x * 2
    with torch.no_grad():
        y.mul_(3.0)
        y[0] = 7.0
    (y * x).sum().backward()
    return y, x.grad


def a_view_that_was_there():
    w = leaf(1.0, 2.0, 3.0)
    rest = w[1:]
    with torch.no_grad():
        for _ in range(3):
            w.mul_(2.0)
    (rest * rest).sum().backward()
    return rest, w.grad


# ----- Hooks and functions -----


def hooks_before_and_after_a_write():
    x = leaf(1.0, 2.0)
    y = x * 1
    seen = []
    y.register_hook(lambda g: seen.append(g) or g * 10)
    y.retain_grad()
    y.mul_(3.0)
    y.register_hook(lambda g: seen.append(g) or g + 1)
    (y * y).sum().backward()
    return *seen, y.grad, x.grad


def outputs_without_gradients():
    given = []

    class Parts(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            large, triple = x > 1, x * 3
            ctx.mark_non_differentiable(large, triple)
            return x * 2, large, triple, 5

        @staticmethod
        def backward(ctx, g, *others):
            given.extend(others)
            return g * 2 + others[1]

    x = leaf(1.0, 2.0)
    double, large, triple, _ = Parts.apply(x)
    assert double.requires_grad and not large.requires_grad and not triple.requires_grad
    double.sum().backward()
    return *given, x.grad


# ----- Leaves -----


def a_leaf_no_more():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    total = (x * w).sum()
    x.requires_grad_(False)
    total.backward()
    return x.grad, w.grad


# ----- Data -----


def data_is_a_constant():
    w = leaf(1.0, 2.0)
    y = w * 3
    (y * y.data + w.data).sum().backward()
    return (w.grad,)


def writes_to_the_data_of_a_leaf():
    w = leaf(1.0, 2.0)
    (w * w).sum().backward()
    w.data.sub_(w.grad, alpha=0.1)
    w.data -= 0.1 * w.grad
    w.data.mul_(2.0)
    w.grad.data.zero_()
    (w**3).sum().backward()
    assert w.is_leaf
    return w, w.grad


def other_data():
    w = leaf(1.0, 2.0)
    w.data = torch.tensor([3.0, 4.0])
    (w**2).sum().backward()
    return (w.grad,)


def a_value_that_is_detached():
    w = leaf(1.0, 2.0)
    y = (w * 3).detach_()
    assert not y.requires_grad
    (w * y).sum().backward()
    return (w.grad,)


# ----- Programs and what they give -----

PROGRAMS = [
    (a_detached_value, [[6.0, 4.0], [21.085537, 222.3926]]),
    (a_branch_on_a_value, [[6.0, 33.0]]),
    (a_cotangent_with_a_graph, [[5.0, 44.0]]),
    (a_view_of_a_leaf, [[2.0, 4.0, 3.0], [4.0, 8.0, 6.0]]),
    (rows_made_unit_vectors, [[[0.6, 0.8], [1.0, 0.0]], [[1.2, 1.6], [2.0, 0.0]]]),
    (a_transpose_of_a_leaf, [[[0.0, 4.0], [0.0, 3.0]], [[0.0, 8.0], [0.0, 6.0]]]),
    (a_computed_value, [[7.0, 12.0], [9.0, 16.0]]),
    (hooks_before_and_after_a_write, [[6.0, 12.0], [21.0, 39.0], [7.0, 13.0], [210.0, 390.0]]),
    (outputs_without_gradients, [[False, False], [0.0, 0.0], None, [2.0, 2.0]]),
    (a_leaf_no_more, [None, [1.0, 2.0]]),
    (a_view_that_was_there, [[16.0, 24.0], [0.0, 32.0, 48.0]]),
    (data_is_a_constant, [[9.0, 18.0]]),
    (writes_to_the_data_of_a_leaf, [[1.2, 2.4], [4.32, 17.28]]),
    (other_data, [[6.0, 8.0]]),
    (a_value_that_is_detached, [[3.0, 6.0]]),
]


@pytest.mark.parametrize(("program", "expected"), PROGRAMS, ids=lambda one: getattr(one, "__name__", ""))
def test_programs_give_pytorchs_numbers(program, expected):
    found = program()
    assert len(found) == len(expected)
    for one, numbers in zip(found, expected, strict=True):
        if numbers is None:
            assert one is None
        else:
            np.testing.assert_allclose(one.detach().asnumpy(), numbers, rtol=1e-5)


def test_a_value_that_a_pass_went_through_is_still_released():
    x = leaf(1.0, 2.0)
    f = x * x
    total = (f * f).sum()
    total.backward()
    with pytest.raises(AutogradError, match="backward through the graph a second time"):
        total.backward()


def test_a_complex_value_has_no_implicit_cotangent():
    z = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    for ask in (lambda y: y.backward(), lambda y: torch.autograd.grad(y, z)):
        with pytest.raises(AutogradError, match="grad can be implicitly created only for real scalar outputs but got"):
            ask((z * z).sum())
    (z * z).sum().backward(torch.tensor(1 + 0j))
    np.testing.assert_array_equal(z.grad.asnumpy(), [2 - 4j, 6 + 2j])


def test_a_complex_number_is_complex64():
    assert torch.tensor(1 + 2j).dtype == torch.tensor([1 + 2j]).dtype == torch.complex64


MADE = {
    # name: (what is made, its elements, its dtype)
    "a double": (lambda: torch.tensor(0.1, dtype=torch.float64), 0.1, "float64"),
    "a list of doubles": (lambda: torch.tensor([0.1, 1], dtype=torch.float64), [0.1, 1.0], "float64"),
    "a complex double": (lambda: torch.tensor([0.1 + 0.2j], dtype=torch.complex128), [0.1 + 0.2j], "complex128"),
    "a range": (lambda: torch.arange(0, 0.4, 0.1, dtype=torch.float64), [0, 0.1, 0.2, 0.30000000000000004], "float64"),
    "points": (lambda: torch.linspace(0, 1, 11, dtype=torch.float64)[1:3], [0.1, 0.2], "float64"),
    "whole points": (lambda: torch.linspace(0, 10, 4, dtype=torch.int64), [0, 3, 6, 10], "int64"),
    "full of doubles": (lambda: torch.full((2,), 0.1, dtype=torch.float64), [0.1, 0.1], "float64"),
    "full of large integers": (lambda: torch.full((1,), 2**53 + 1, dtype=torch.int64), [2**53 + 1], "int64"),
    "full of integers": (lambda: torch.full((2,), 3), [3, 3], "int64"),
    "full of truth": (lambda: torch.full((1, 1), True), [[True]], "bool"),
    "full of complex numbers": (lambda: torch.full((1,), 1 + 1j), [1 + 1j], "complex64"),
}


@pytest.mark.parametrize("name", MADE)
def test_numbers_keep_the_digits_of_their_dtype(name):
    make, elements, dtype = MADE[name]
    found = make().asnumpy()
    assert found.dtype == dtype and found.tolist() == elements


IN_PLACE = {
    # an expression of t = [1.5, -2.25, 4] and o = [2, 3, -1], and what it gives
    "t.add_(o, alpha=2)": [5.5, 3.75, 2.0],
    "t.sub_(o, alpha=-0.5)": [2.5, -0.75, 3.5],
    "t.addcmul_(o, o, value=0.5)": [3.5, 2.25, 4.5],
    "t.addcdiv_(o, o + 3, value=-2)": [0.7, -3.25, 5.0],
    "t.lerp_(o, 0.25)": [1.625, -0.9375, 2.75],
    "t.div_(o, rounding_mode='floor')": [0.0, -1.0, -4.0],
    "t.pow_(2)": [2.25, 5.0625, 16.0],
    "t.round_()": [2.0, -2.0, 4.0],
    "t.neg_()": [-1.5, 2.25, -4.0],
    "t.cumsum_(0)": [1.5, -0.75, 3.25],
    "t.relu_()": [1.5, 0.0, 4.0],
    "t.clip_(-1, 1)": [1.0, -1.0, 1.0],
    "t.addmv_(torch.eye(3), o)": [3.5, 0.75, 3.0],
    "t.atan2_(o)": [0.6435011, -0.6435011, 1.8157749],
    "t.reciprocal_()": [0.6666667, -0.44444445, 0.25],
}


@pytest.mark.parametrize("expression", IN_PLACE)
def test_methods_that_write_to_their_tensor(expression):
    t, o = torch.tensor([1.5, -2.25, 4.0]), torch.tensor([2.0, 3.0, -1.0])
    found = eval(expression, {"torch": torch}, {"t": t, "o": o})
    assert found is t
    np.testing.assert_allclose(t.asnumpy(), IN_PLACE[expression], rtol=1e-6)


def test_every_method_that_writes_has_its_function():
    for name in nb.ops.IN_PLACE.split():
        assert callable(getattr(nb.ops, name)) and callable(getattr(nb.Tensor, f"{name}_")), name


EXACT = [
    # options of the mode "nearest-exact" on [0, 1, 2, 3, 4], and its elements
    ({"size": 3}, [0, 2, 4]),
    ({"size": 7}, [0, 1, 1, 2, 3, 3, 4]),
    ({"scale_factor": 1.7}, [0, 0, 1, 2, 2, 3, 3, 4]),
]


@pytest.mark.parametrize(("options", "elements"), EXACT)
def test_the_element_of_the_centre(options, elements):
    x = torch.arange(5.0).reshape(1, 1, 5)
    found = torch.nn.functional.interpolate(x, mode="nearest-exact", **options)
    assert found.asnumpy().ravel().tolist() == elements


SIZES = [
    # options of a bicubic interpolation, its elements
    ({"size": (2, 5)}, [0.1784, 0.3263, 0.6359, 1.1322, 1.5928, 5.2748, 6.2915, 7.7516, 9.3983, 10.7276]),
    ({"size": (2, 5), "align_corners": True}, [0, 0.0457, 0.2125, 0.5449, 0.9, 6.4, 7.5145, 9.0125, 10.6762, 12.1]),
    ({"scale_factor": (1.5, 0.7)}, [-0.1393, -0.0021, 0.4139, 1.1218, 2.5993, 4.2611, 5.9944, 8.4011]),
    (
        {"scale_factor": (1.5, 0.7), "recompute_scale_factor": True},
        [-0.1163, 0.4143, 0.6901, 2.2735, 4.0052, 7.2343, 7.4397, 11.7216],
    ),
]


@pytest.mark.parametrize(("options", "elements"), SIZES)
def test_cubic_curves_through_pixels(options, elements):
    x = (torch.arange(12.0) ** 2 / 10).reshape(1, 1, 3, 4)
    for resized in (
        torch.nn.functional.interpolate(x, mode="bicubic", **options),
        torch.nn.Upsample(mode="bicubic", **options)(x),
    ):
        np.testing.assert_allclose(resized.asnumpy().ravel(), elements, atol=6e-5)


VECTOR = torch.tensor([1.0, 2.0])
OF_INTEGERS = [
    lambda module, x: module.jacobian(lambda y: y * 2, x),
    lambda module, x: module.jacobian(lambda y: y * 2, x, vectorize=True, strategy="forward-mode"),
    lambda module, x: module.jacobian(lambda y, at: y[at], (VECTOR, x)),
    lambda module, x: module.hessian(lambda y: (y * 2).sum(), x),
    lambda module, x: module.vjp(lambda y: y * 2, x, VECTOR),
    lambda module, x: module.jvp(lambda y: y * 2, x, VECTOR),
    lambda module, x: module.hvp(lambda y: (y * 2).sum(), x, VECTOR),
    lambda module, x: module.vhp(lambda y: (y * 2).sum(), x, VECTOR),
]


@pytest.mark.parametrize("ask", OF_INTEGERS)
@pytest.mark.parametrize("integers", [[0, 1], [True, False]])
def test_there_are_no_derivatives_by_integers(ask, integers):
    with pytest.raises(AutogradError, match="only Tensors of floating point and complex dtype can require gradients"):
        ask(torch.autograd.functional, torch.tensor(integers))


def straight_through(x):
    """Rounded, with the gradient of what it is rounded from."""
    return ((x + (torch.round(x) - x).detach()) ** 2).sum()


@pytest.mark.parametrize("compiled", [False, True])
def test_detach_in_a_function_that_is_differentiated(compiled):
    function = torch.func.grad(lambda x: (x.detach() * x).sum())
    rounded, rows = torch.func.grad(straight_through), torch.func.jacfwd(lambda x: x.detach() * x)
    if compiled:
        function, rounded, rows = nb.jit(function), nb.jit(rounded), nb.jit(rows)
    x = torch.tensor([1.25, 2.5])
    np.testing.assert_array_equal(function(x).asnumpy(), [1.25, 2.5])
    np.testing.assert_array_equal(rounded(x).asnumpy(), [2.0, 4.0])
    np.testing.assert_array_equal(rows(x).asnumpy(), [[1.25, 0.0], [0.0, 2.5]])
    np.testing.assert_array_equal(torch.func.vmap(lambda row: row.detach() * 2)(x).asnumpy(), [2.5, 5.0])


@pytest.mark.parametrize("compiled", [False, True])
def test_a_write_without_gradients_in_a_function_that_is_differentiated(compiled):
    def function(x):
        y = x * 2
        for _ in range(2):
            with torch.no_grad():
                y[:1].mul_(3.0)
                y.add_(1.0)
            y = y * x
        return y.sum()

    slope = torch.func.grad(function)
    x = torch.tensor([1.0, 0.5])
    np.testing.assert_allclose((nb.jit(slope) if compiled else slope)(x).asnumpy(), [31.0, 3.5], rtol=1e-6)
    np.testing.assert_allclose((nb.jit(function) if compiled else function)(x).asnumpy(), 23.0)
