"""Small programs in PyTorch's words, beside what PyTorch 2.14 gives for them: numbers that it printed, and its errors."""

from __future__ import annotations

import numpy as np
import pytest

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


# ----- Programs and what they give -----

PROGRAMS = [
    (a_detached_value, [[6.0, 4.0], [21.085537, 222.3926]]),
    (a_branch_on_a_value, [[6.0, 33.0]]),
    (a_cotangent_with_a_graph, [[5.0, 44.0]]),
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
