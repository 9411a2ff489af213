"""Einstein sums: any subscripts agree with NumPy's, and derivatives with differences of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nbgrad as nb
from nbgrad.errors import ArgumentError, NbgradError

from .agreement import agree, check_derivative, lift, quiet

pytestmark = pytest.mark.unoptimized

rng = np.random.default_rng(11)


def normal(*shape):
    return rng.normal(size=shape)


SUBSCRIPTS = [
    ("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    ("ij,jk,kl,lm->im", (2, 3), (3, 4), (4, 2), (2, 3)),
    ("a,b,c,d->abcd", (2,), (3,), (2,), (2,)),
    ("a,a,a,a->", (5,), (5,), (5,), (5,)),
    ("ijk,ilm,njm,nlk,abc->", (2, 3, 4), (2, 2, 3), (2, 3, 3), (2, 2, 4), (1, 2, 2)),
    ("ii", (3, 3)),
    ("ii->i", (3, 3)),
    ("iij->j", (3, 3, 2)),
    ("iij,jii->ij", (3, 3, 2), (2, 3, 3)),
    ("iiii->", (2, 2, 2, 2)),
    ("ijij->ji", (2, 3, 2, 3)),
    ("ba", (2, 3)),
    ("Ba,aC", (2, 3), (3, 2)),
    ("...ij,...jk", (4, 2, 3), (3, 2)),
    ("...ij,...jk->...ik", (4, 1, 2, 3), (5, 3, 2)),
    ("i...,i...->...i", (2, 3), (2, 1)),
    ("...,...", (2, 3), (3,)),
    ("...->...", (2, 3)),
    ("...i->i...", (2, 3, 4)),
    ("i...i->...", (3, 2, 3)),
    ("ij...,j...->i...", (2, 3, 4), (3, 4)),
    ("b...n,bn...->b...", (2, 3, 4), (2, 4, 3)),
    (",ij->ij", (), (2, 3)),
    (",,->", (), (), ()),
    ("i,->i", (4,), ()),
    ("ij,ij,ij->ij", (2, 3), (2, 3), (2, 3)),
    ("ij,jk->", (2, 3), (3, 4)),
    ("ij,kl->", (2, 3), (3, 4)),
    ("ij,kl->ik", (2, 3), (3, 4)),
    (" i j , j k -> i k ", (2, 3), (3, 4)),
    ("ij,jk->ik", (2, 1), (3, 4)),
    ("ij,jk->ijk", (2, 1), (3, 4)),
    ("ij,j->i", (0, 3), (3,)),
    ("ij,jk->ik", (2, 0), (0, 4)),
    ("ijkl,ijmn->klmn", (2, 3, 2, 2), (2, 3, 3, 2)),
    ("ikjl,imjn->klmn", (2, 3, 2, 2), (2, 3, 2, 2)),
    ("abcdefghij,j->abcdefghi", (1, 2, 1, 2, 1, 2, 1, 2, 1, 3), (3,)),
]


@pytest.mark.parametrize(("subscripts", "shapes"), [(s, shapes) for s, *shapes in SUBSCRIPTS])
def test_subscripts(subscripts, shapes):
    operands = [normal(*shape) for shape in shapes]
    for optimize in (False, True, "greedy", "optimal"):
        agree(np.einsum, subscripts, *operands, optimize=optimize)
    agree(np.einsum, subscripts, *[x.astype(np.float32) for x in operands])
    agree(np.einsum, subscripts, *[(9 * x).astype(np.int64) for x in operands])
    agree(np.einsum, subscripts, *[x > 0 for x in operands])
    check_derivative(lambda *xs: np.einsum(subscripts, *xs), *operands, second=len(shapes) > 1)


@st.composite
def einsums(draw):
    """Subscripts and shapes: repeated labels, ellipses, broadcasting, any number of operands."""
    extents = {label: draw(st.integers(1, 3)) for label in "abcdeXY"}
    dots = [draw(st.integers(1, 2)) for _ in range(draw(st.integers(0, 2)))]
    terms, shapes, ellipsis = [], [], False
    for _ in range(draw(st.integers(1, 4))):
        labels = draw(st.lists(st.sampled_from("abcdeXY"), max_size=4))
        shape = [1 if draw(st.integers(0, 7)) == 0 else extents[label] for label in labels]
        # NumPy's diagonals do not broadcast.
        shape = [extents[label] if labels.count(label) > 1 else n for label, n in zip(labels, shape, strict=True)]
        text = "".join(labels)
        if dots and draw(st.booleans()):
            ellipsis = True
            place = draw(st.integers(0, len(labels)))
            here = dots[draw(st.integers(0, len(dots) - 1)) :]
            shape[place:place] = here
            text = text[:place] + "..." + text[place:]
        terms.append(text)
        shapes.append(tuple(shape))
    subscripts = ",".join(terms)
    if draw(st.booleans()):
        known = sorted(set(subscripts) - set(".,"))
        output = draw(st.permutations(draw(st.lists(st.sampled_from(known), unique=True)) if known else []))
        subscripts += "->" + ("..." if ellipsis else "") + "".join(output)
    return subscripts, shapes


@given(einsums())
def test_random_subscripts(case):
    subscripts, shapes = case
    operands = [normal(*shape) for shape in shapes]
    agree(np.einsum, subscripts, *operands, tolerance=1e-10)


def test_interleaved():
    a, b = normal(2, 3), normal(3, 4)
    agree(np.einsum, a, [0, 1], b, [1, 2])
    agree(np.einsum, a, [0, 1], b, [1, 2], [2, 0])
    agree(np.einsum, a, [Ellipsis, 1], b, [1, 2], [Ellipsis, 2])
    agree(np.einsum, a, [51, 26], b, [26, 3])
    agree(np.einsum, a, (0, 1))
    check_derivative(lambda a, b: np.einsum(a, [0, 1], b, [1, 2], [2, 0]), a, b)


def test_paths():
    operands = [normal(2, 3), normal(3, 4), normal(4, 5), normal(5, 2)]
    text = "ij,jk,kl,lm->im"
    for path in (
        ["einsum_path", (0, 1), (0, 1), (0, 1)],
        ["einsum_path", (1, 2), (0, 2), (0, 1)],
        ["einsum_path", (0, 1, 2, 3)],
        ["einsum_path", (0, 2, 3), (0, 1)],
        ("greedy", 100),
    ):
        agree(np.einsum, text, *operands, optimize=path)
    for how in ("greedy", "optimal", True, False):
        got, shown = np.einsum_path(text, *map(lift, operands), optimize=how)
        want, text_of = np.einsum_path(text, *operands, optimize=how)
        assert (got, shown) == (want, text_of)
        agree(np.einsum, text, *operands, optimize=got)
    # A chain of products is not multiplied out.
    long = [normal(30, 30) for _ in range(12)]
    letters = "abcdefghijklm"
    chain = ",".join(letters[k : k + 2] for k in range(12)) + "->am"
    np.testing.assert_allclose(np.einsum(chain, *map(lift, long)), np.linalg.multi_dot(long), rtol=1e-9)


@pytest.mark.parametrize("optimize", ["fastest", 3, ["einsum_path", (0, 5)], ["einsum_path", ()], (1.5, 2), []])
def test_wrong_paths(optimize):
    x = lift(normal(2, 2))
    with pytest.raises(NbgradError):
        np.einsum("ij,jk,kl", x, x, x, optimize=optimize)


@pytest.mark.parametrize(
    "arguments",
    [
        ("ij,jk", (2, 3), (2, 3)),
        ("ij", (2, 3, 4)),
        ("ijk", (2, 3)),
        ("ij,jk", (2, 3)),
        ("ij->ik", (2, 3)),
        ("ij->ii", (2, 3)),
        ("i.j", (2, 3)),
        ("i....j", (2, 3)),
        ("ij->i->j", (2, 3)),
        ("i1", (2, 3)),
        ("ii", (2, 3)),
        ("...i->i", (2, 3)),
    ],
    ids=str,
)
def test_wrong_subscripts(arguments):
    subscripts, *shapes = arguments
    agree(np.einsum, subscripts, *[normal(*shape) for shape in shapes])


def test_options():
    a, b = normal(2, 3), normal(3, 4)
    agree(np.einsum, "ij,jk", a.astype(np.float32), b, dtype=np.float64)
    agree(np.einsum, "ij->j", a > 0, dtype=np.int64, casting="unsafe")
    out = nb.Tensor(np.zeros((2, 4)))
    assert np.einsum("ij,jk", lift(a), b, out=out) is out
    np.testing.assert_allclose(out, a @ b)
    with pytest.raises(ArgumentError, match="at least one"):
        nb.numpy.einsum("->")


def test_compiled_and_batched():
    a, b, c = normal(5, 2, 3), normal(3, 4), normal(5, 4)
    want = np.stack([np.einsum("ij,jk,k->i", a[k], b, c[k]) for k in range(5)])
    np.testing.assert_allclose(nb.vmap(lambda a, c: np.einsum("ij,jk,k->i", a, b, c))(a, c), want)
    compiled = nb.jit(nb.grad(lambda x: np.sum(np.einsum("ij,jk,ik->", x, b, x @ b))))
    with quiet():
        np.testing.assert_allclose(compiled(a[0]), 2 * a[0] @ b @ b.T)
