"""Tensor itself: construction, values, text, the protocols of Python and NumPy, writing, and no silent constants."""

from __future__ import annotations

import copy
import math
import operator
import pickle

import numpy as np
import pytest

import nbgrad as nb
from nbgrad.errors import ArgumentError, DtypeError, ShapeError, TracedValueError
from nbgrad.graph.differentiate import vjp
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import constant, placeholder
from nbgrad.graph.trace import recording
from nbgrad.record.tensor import Tensor
from nbgrad.transforms.arguments import lift


def traced(values: object) -> Tensor:
    array = np.asarray(values, float)
    return Tensor._of(placeholder(array.shape, array.dtype, array))


# ----- Construction -----


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1, "int64"),
        (1.5, "float32"),
        (True, "bool"),
        ([1, 2], "int64"),
        ([1, 2.5], "float32"),
        ([True, False], "bool"),
        ([[1.0], [2.0]], "float32"),
        ((1, 2), "int64"),
        ([], "float32"),
        (np.array([1.0]), "float64"),
        (np.float64(1.0), "float64"),
        (np.int8(1), "int8"),
        (np.array([1], np.uint16), "uint16"),
        ([np.float64(1.0), 2.0], "float64"),
        ([np.array([1.0])], "float64"),
        (np.array([1.0], ">f8"), "float64"),
    ],
)
def test_dtypes_of_data(data, dtype):
    tensor = Tensor(data)
    assert tensor.dtype == dtype and tensor.dtype.isnative
    np.testing.assert_array_equal(tensor.asnumpy(), np.asarray(data))


def test_given_dtype_and_tensors_inside():
    assert Tensor([1, 2], np.float16).dtype == np.float16
    assert Tensor([1.0], "int32").dtype == np.int32
    assert Tensor(Tensor([1.0])).dtype == np.float32
    x = traced([1.0, 2.0])
    nested = Tensor([x[0], [3.0, x[1]][1], 5.0])
    assert nested.shape == (3,) and nested._node.traced


@pytest.mark.parametrize("data", [None, "text", {"a": 1}, [None], np.array(["a"])])
def test_data_that_is_no_array(data):
    with pytest.raises(TypeError):
        Tensor(data)
    with pytest.raises(TypeError):
        Tensor([1.0], object)


def test_ragged_lists():
    with pytest.raises(ShapeError, match="equal length"):
        Tensor([[1.0], [1.0, 2.0]])


def test_data_is_copied():
    data = np.zeros(3)
    x = Tensor(data)
    y = x + data
    data[:] = 7
    assert x.asnumpy().tolist() == [0, 0, 0] and y.asnumpy().tolist() == [0, 0, 0]
    assert not np.asarray(x).flags.writeable


# ----- Attributes and values -----


def test_attributes():
    x = Tensor(np.zeros((2, 3), np.float32))
    assert (x.shape, x.ndim, x.size, x.itemsize, x.nbytes, x.strides) == ((2, 3), 2, 6, 4, 24, (12, 4))
    assert x.T.shape == (3, 2) and x.mT.shape == (3, 2)
    assert x.real is x and x.imag.shape == (2, 3)
    with pytest.raises(ShapeError):
        _ = Tensor([1.0]).mT
    with pytest.raises(AttributeError):
        x.anything = 1  # pyright: ignore


def test_python_numbers():
    x = Tensor([2.5])
    assert float(x) == 2.5 and int(x) == 2 and bool(x) and x.item() == 2.5 and complex(x) == 2.5
    assert Tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert Tensor([[1, 2], [3, 4]]).item(1, 0) == 3 and Tensor([[1, 2], [3, 4]]).item(3) == 4
    assert operator.index(Tensor(3)) == 3 and [10, 20][Tensor(1)] == 20 and list(range(Tensor(2))) == [0, 1]
    assert math.sin(Tensor(0.0)) == 0.0 and round(Tensor(2.6)) == 3 and round(Tensor(2.66), 1).item() == np.float32(2.7)
    for convert in (float, int, bool):
        with pytest.raises(ArgumentError, match=r"one element.*\(2,\)"):
            convert(Tensor([1.0, 2.0]))
    with pytest.raises(TypeError):
        operator.index(Tensor(1.0))
    with pytest.raises(TypeError):
        operator.index(Tensor([1]))


def test_sequence():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    assert len(x) == 2 and [row.tolist() for row in x] == [[1.0, 2.0], [3.0, 4.0]]
    assert 3.0 in x and 5.0 not in x
    a, b = x
    assert a.shape == b.shape == (2,)
    for act in (len, iter):
        with pytest.raises(TypeError):
            act(Tensor(1.0))


def test_identity_and_copies():
    x = Tensor([1.0, 2.0])
    assert hash(x) == hash(x) and len({x, x, Tensor([1.0, 2.0])}) == 2
    assert (x == Tensor([1.0, 3.0])).tolist() == [True, False]
    for other in (x.copy(), copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        other[0] = 9.0
        assert x.tolist() == [1.0, 2.0] and other.tolist() == [9.0, 2.0]
    assert (x == None) is False  # noqa: E711


def test_dlpack():
    assert np.from_dlpack(Tensor([1.0, 2.0])).tolist() == [1.0, 2.0]


# ----- Text -----


@pytest.mark.parametrize(
    ("tensor", "text"),
    [
        (Tensor([1.5, -2.0]), "Tensor(shape=[2], dtype=Float32, value= [ 1.50000000e+00, -2.00000000e+00])"),
        (Tensor(np.float16([1.5])), "Tensor(shape=[1], dtype=Float16, value= [ 1.5000e+00])"),
        (Tensor([[1, 2], [3, 4]]), "Tensor(shape=[2, 2], dtype=Int64, value=\n[[1, 2],\n [3, 4]])"),
        (Tensor(3.0), "Tensor(shape=[], dtype=Float32, value= 3)"),
        (Tensor(3), "Tensor(shape=[], dtype=Int64, value= 3)"),
        (Tensor([True, False]), "Tensor(shape=[2], dtype=Bool, value= [ True, False])"),
        (Tensor(np.zeros((0, 2))), "Tensor(shape=[0, 2], dtype=Float64, value= )"),
        (Tensor(np.uint8(7)), "Tensor(shape=[], dtype=UInt8, value= 7)"),
    ],
)
def test_repr(tensor, text):
    assert repr(tensor) == text


def test_str_and_format():
    assert str(Tensor([1.5, -2.0])) == "[ 1.5 -2. ]" and str(Tensor(3.0)) == "3.0"
    assert f"{Tensor([1, 2])}" == "[1 2]" and f"{Tensor(2.5):.2f}" == "2.50" and f"{traced(2.5):.1f}" == "2.5"
    assert len(repr(Tensor(np.zeros(5000)))) < 300
    with pytest.raises(DtypeError):
        f"{Tensor([1.0, 2.0]):.2f}"
    assert np.array_repr(Tensor([1, 2])) == "array([1, 2])" and np.array_str(Tensor([1, 2])) == "[1 2]"


def test_text_while_jit_records():
    node = placeholder((2,), np.dtype(float))
    with recording([node], jit=True):
        x = Tensor._of(node) * 2
        assert repr(x) == str(x) == f"{x:.2f}" == "Tensor(shape=[2], dtype=Float64, value= recorded)"


# ----- Operators -----

OPERATORS = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
    operator.eq,
    operator.ne,
    divmod,
]


@pytest.mark.parametrize("function", OPERATORS)
def test_operators_on_either_side(function):
    a, b = np.array([1.5, 2.0, 3.0]), np.array([2.0, 2.0, 0.5])
    x, y = Tensor(a), Tensor(b)
    for left, right in ((x, y), (a, y), (x, b), (x, b.tolist()), (a.tolist(), y)):
        np.testing.assert_allclose(np.asarray(function(left, right)), function(a, b))
    np.testing.assert_allclose(np.asarray(function(Tensor(a), 2.0)), function(a, 2.0))
    np.testing.assert_allclose(np.asarray(function(2.0, Tensor(a))), function(2.0, a))
    np.testing.assert_allclose(np.asarray(function(np.float64(2.0), Tensor(a))), function(2.0, a))


@pytest.mark.parametrize("function", [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift])
def test_integer_operators(function):
    a, b = np.array([6, 5, 1]), np.array([1, 3, 2])
    for left, right in ((Tensor(a), Tensor(b)), (a, Tensor(b)), (Tensor(a), b)):
        np.testing.assert_array_equal(function(left, right), function(a, b))
    np.testing.assert_array_equal(function(Tensor(a), 2), function(a, 2))
    np.testing.assert_array_equal(function(2, Tensor(a)), function(2, a))


def test_unary_operators_and_matmul():
    a = np.array([[1.0, -2.0], [3.0, 4.0]])
    x = Tensor(a)
    np.testing.assert_array_equal(-x, -a)
    np.testing.assert_array_equal(+x, a)
    np.testing.assert_array_equal(abs(x), abs(a))
    np.testing.assert_array_equal(~Tensor([1, 2]), [-2, -3])
    np.testing.assert_array_equal(~Tensor([True]), [False])
    for left, right in ((x, x), (a, x), (x, a), (x, a[0]), (a[0], x), (x, [1.0, 2.0])):
        np.testing.assert_allclose(left @ right, np.asarray(left) @ np.asarray(right))
    with pytest.raises(TypeError):
        pow(x, 2, 3)


def test_foreign_operands_get_their_turn():
    class Foreign:
        __array_ufunc__ = None

        def __radd__(self, other):
            return "mine"

        __rmul__ = __radd__

    assert Tensor([1.0]) + Foreign() == "mine" and Tensor([1.0]) * Foreign() == "mine"
    with pytest.raises(TypeError):
        _ = Tensor([1.0]) + object()
    x = Tensor([1.0])
    with pytest.raises(TypeError):
        x += "text"


# ----- Writing in place -----


def test_in_place_operators_are_seen_by_aliases():
    # As recorded from an ndarray: NumPy's rules.
    x = lift(np.array([1.0, 2.0, 3.0]))
    alias, identity = x, id(x)
    x += 1
    x *= [2.0, 2.0, 2.0]
    x -= Tensor(np.ones(3))
    x /= 3
    x **= 2
    x //= 1
    x %= 4
    assert id(x) == identity and alias.tolist() == x.tolist()
    plain = np.array([1.0, 2.0, 3.0])
    plain += 1
    plain *= 2
    plain -= 1
    plain /= 3
    plain **= 2
    plain //= 1
    plain %= 4
    assert x.tolist() == plain.tolist()
    n = lift(np.array([5, 6]))
    n <<= 1
    n |= 1
    n &= 13
    n ^= 2
    n >>= 1
    assert n.tolist() == [((((v << 1) | 1) & 13) ^ 2) >> 1 for v in (5, 6)]
    m = lift(np.eye(2))
    m @= np.ones((2, 2))
    assert m.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_in_place_keeps_dtype_and_shape():
    x = lift(np.float32([1.0, 2.0]))
    x += np.array([1.0, 1.0])
    assert x.dtype == np.float32
    n = lift(np.array([1, 2]))
    with pytest.raises(DtypeError, match="float64, which cannot be stored in a Tensor of int64"):
        n += 0.5
    with pytest.raises(ShapeError, match=r"\(2, 2\), which does not fit into a Tensor of shape \(2,\)"):
        x += np.ones((2, 2))


def test_a_0d_tensor_is_bound_anew_like_a_numpy_scalar():
    s = Tensor([1.0, 2.0]).sum()
    before = s
    s += 1.0
    assert before.item() == 3.0 and s.item() == 4.0
    s += np.ones(2)
    assert s.shape == (2,)
    n = Tensor(1)
    n += 0.5
    assert n.item() == 1.5


def test_spellings_of_mindspore_and_pytorch():
    x = Tensor(np.arange(24.0, dtype=np.float32).reshape(2, 3, 4))
    assert x.sum(dim=1, keepdim=True).shape == (2, 1, 4) and x.mean(axis=0, keep_dims=True).shape == (1, 3, 4)
    assert x.permute(2, 0, 1).shape == x.permute((2, 0, 1)).shape == (4, 2, 3)


def test_in_place_operators_bind_the_users_tensors_anew():
    # MindSpore's rule: the recorded case "index-augmented-add-value".
    a = Tensor([1.0, 2.0])
    b = a
    a += 1
    assert a.tolist() == [2.0, 3.0] and b.tolist() == [1.0, 2.0]


def test_results_do_not_share_memory():
    x = Tensor([[1.0, 2.0], [3.0, 4.0]])
    row = x[0] * 1
    row += 10.0
    assert x.tolist() == [[1.0, 2.0], [3.0, 4.0]]
    x[0] += 10.0
    assert x.tolist() == [[11.0, 12.0], [3.0, 4.0]]
    y = x
    y[...] = 0.0
    assert x.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_in_place_differentiates():
    w = placeholder((3,), np.dtype(float), np.array([1.0, 2.0, 3.0]))
    x = Tensor._of(w) * 1.0
    x *= x
    x[0] = 5.0
    x[1:] *= 2.0
    (g,) = vjp([x.sum()._node], [constant(np.array(1.0))], [w])
    assert interpret([g])[0].tolist() == [0.0, 8.0, 12.0]


# ----- Methods -----


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.sum(),
        lambda x: x.sum(0),
        lambda x: x.sum(axis=1, keepdims=True),
        lambda x: x.prod(1),
        lambda x: x.mean(0),
        lambda x: x.var(),
        lambda x: x.std(1, ddof=1),
        lambda x: x.max(0),
        lambda x: x.min(),
        lambda x: x.argmax(1),
        lambda x: x.argmin(),
        lambda x: x.any(),
        lambda x: x.all(0),
        lambda x: x.cumsum(1),
        lambda x: x.cumprod(0),
        lambda x: x.reshape(3, 2),
        lambda x: x.reshape((3, 2)),
        lambda x: x.reshape(-1),
        lambda x: x.ravel(),
        lambda x: x.flatten(),
        lambda x: x.flatten("F"),
        lambda x: x.transpose(),
        lambda x: x.transpose(1, 0),
        lambda x: x.transpose((1, 0)),
        lambda x: x.swapaxes(0, 1),
        lambda x: x[:1].squeeze(0),
        lambda x: x.repeat(2, axis=0),
        lambda x: x.take([0, 1], axis=1),
        lambda x: x.clip(0, 2),
        lambda x: x.round(),
        lambda x: x.dot(x.T),
        lambda x: x.trace(),
        lambda x: x.diagonal(),
        lambda x: x.argsort(),
        lambda x: x.nonzero()[1],
        lambda x: x.conj(),
        lambda x: x.astype(np.float32),
        lambda x: x.astype(int),
        lambda x: x.compress([False, True], axis=0),
        lambda x: x[0].searchsorted(2.5),
    ],
)
def test_methods(call):
    a = np.array([[1.0, 0.0, -2.5], [3.5, 2.0, 0.5]])
    ours, theirs = call(Tensor(a)), np.asarray(call(a))
    assert isinstance(ours, Tensor) and ours.shape == theirs.shape and ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours.asnumpy(), theirs)


def test_methods_that_write():
    x, a = Tensor(np.array([3.0, 1.0, 2.0])), np.array([3.0, 1.0, 2.0])
    for array in (x, a):
        assert array.sort() is None
        array.put([0], 9.0)
    assert x.tolist() == a.tolist()
    x.fill(4)
    assert x.tolist() == [4.0, 4.0, 4.0]


# ----- A Tensor that is being differentiated never becomes a constant in silence -----


def _store_element(x):
    out = np.zeros(3)
    out[0] = x[0]


def _store_all(x):
    out = np.zeros(3)
    out[:] = x


@pytest.mark.parametrize(
    "leak",
    [
        _store_element,
        _store_all,
        lambda x: np.array([x[0], 1.0]),
        lambda x: np.array([x[0], x[1]]),
        lambda x: np.array(x),
        lambda x: np.asarray(x),
        lambda x: np.array(x, dtype=np.float32),
        lambda x: np.asarray(x[0]),
        lambda x: math.sin(x[0]),
        lambda x: float(x[0]),
        lambda x: complex(x[0]),
        lambda x: x[0].item(),
        lambda x: x.item(1),
        lambda x: x.tolist(),
        lambda x: list(map(float, x)),
        lambda x: np.add(x, 1, out=np.zeros(3)),
        lambda x: np.copyto(np.zeros(3), x),
        lambda x: np.put(np.zeros(3), [0], x[0]),
        lambda x: np.from_dlpack(x),
        lambda x: np.zeros(3).__iadd__(x),
        lambda x: np.zeros(3).__setitem__([0, 1, 2], x),
        lambda x: np.full(3, x[0]),
        lambda x: np.random.default_rng(0).normal(x),
    ],
)
def test_no_silent_constants(leak):
    x = traced([1.0, 2.0, 3.0])
    with pytest.raises(TracedValueError), recording([x._node]):
        leak(x)
    with pytest.raises(TracedValueError), recording([x._node], jit=True):
        leak(x)


def test_the_error_names_the_remedies():
    remedies = r"nbgrad\.numpy.*differentiable_source.*stop_gradient.*test_tensor\.py"
    with pytest.raises(TracedValueError, match=remedies), recording():
        _store_element(traced([1.0, 2.0]))
    with pytest.raises(TracedValueError, match=remedies), recording():
        _store_all(traced([1.0, 2.0, 3.0]))
    with pytest.raises(TracedValueError, match=r"np\.sin\(x\) instead of math\.sin"), recording():
        math.sin(traced(1.0))


def test_control_flow_integers_and_explicit_values_are_allowed():
    x = traced([3.0, 1.0, 2.0])
    with recording():
        assert x.sum() > 5 and int(x[0]) == 3
        assert x.asnumpy().tolist() == [3.0, 1.0, 2.0]
        assert np.arange(3)[np.argsort(x)].tolist() == [1, 2, 0]
        assert float(x.argmax()) == 0.0 and (x > 1).tolist() == [True, False, True]
        assert repr(x).endswith("[ 3.00000000e+00,  1.00000000e+00,  2.00000000e+00])") and f"{x[0]:.1f}" == "3.0"
    assert np.asarray(x).tolist() == [3.0, 1.0, 2.0]


def test_values_are_unknown_while_jit_records():
    node = placeholder((2,), np.dtype(float), np.array([1.0, 2.0]))
    with recording([node], jit=True) as trace:
        x = Tensor._of(node)
        with pytest.raises(TracedValueError, match="jit"):
            x.asnumpy()
        assert x.sum() > 0
        assert len(trace.guards or []) == 1


def test_functions_without_a_counterpart_are_errors():
    with pytest.raises(TypeError, match=r"numpy\.packbits"):
        np.packbits(Tensor([1]))
    with pytest.raises(TypeError, match=r"numpy\.busday_count"):
        np.busday_count(Tensor([1]), Tensor([2]))


def test_long_chains():
    x = Tensor(0.0)
    for _ in range(2000):
        x = x + 1.0
    assert x.item() == 2000.0 and x._node.depth <= 501


def test_namespace():
    assert Tensor([1.0]).__array_namespace__().__name__ == "nbgrad.numpy"


def test_bytes_positions_and_choices(tmp_path):
    x = np.array([3.0, 1.0, 2.0])
    t = Tensor(x)
    assert t.tobytes() == x.tobytes()
    t.tofile(tmp_path / "x")
    np.testing.assert_array_equal(np.fromfile(tmp_path / "x"), x)
    assert t.argpartition(1).tolist() == x.argpartition(1).tolist()
    k = np.array([0, 1, 0])
    np.testing.assert_array_equal(Tensor(k).choose([x, -x]).asnumpy(), k.choose([x, -x]))
    with pytest.raises(TracedValueError), recording():
        traced([1.0]).tobytes()


def test_members_of_other_systems() -> None:
    """MindSpore's and PyTorch's names for what NumPy says otherwise."""
    x, m = Tensor(np.array([0.3, -0.7, 1.2])), np.arange(6.0).reshape(2, 3)
    t = Tensor(m)
    np.testing.assert_array_equal(x.where(x > 0, Tensor(np.full(3, 9.0))), [0.3, 9.0, 1.2])
    np.testing.assert_array_equal(x.select(x > 0, 9.0), [0.3, 9.0, 1.2])
    for zero, one in ((0, 1), (np.int64(0), np.int32(1))):
        assert float(x.select(zero, one)) == -0.7
        np.testing.assert_array_equal(t.select(one, zero), m[:, 0])
    np.testing.assert_array_equal(t.t(), m.T)
    np.testing.assert_array_equal(Tensor(m * 1j).H, -1j * m.T)
    assert (t.dim(), t.numel(), t.is_contiguous()) == (2, 6, True)
    assert not t.T.is_contiguous() and t.T.contiguous().is_contiguous() and t.contiguous() is t
    np.testing.assert_array_equal(t.T.contiguous(), m.T)
    slope = nb.grad(lambda a: (a.T.contiguous() * m.T).sum())
    np.testing.assert_array_equal(slope(t), m)
    assert t.reshape_as(t.t()).shape == (3, 2)
    np.testing.assert_array_equal(t.sum_to_size(1, 3), m.sum(0, keepdims=True))
    np.testing.assert_array_equal(t.sum_to_size((3,)), m.sum(0))
    np.testing.assert_array_equal(Tensor(np.ones((4, 2, 3))).sum_to_size(2, 1), np.full((2, 1), 12.0))
    assert t.new_zeros((2,)).dtype == np.float64 and t.new_ones(3, np.int32).tolist() == [1, 1, 1]
    with pytest.raises(ShapeError, match="cannot be summed to"):
        t.sum_to_size(4)
    with pytest.raises(ShapeError, match="at most two axes"):
        Tensor(np.ones((2, 2, 2))).t()


@pytest.mark.parametrize(
    ("shape", "axes", "flat"),
    [
        ((2, 3), (), (6,)),
        ((2, 3, 4), (1,), (2, 12)),
        ((2, 3, 4), (0, 1), (6, 4)),
        ((2, 3, 4), (-2, -1), (2, 12)),
        ((0, 2), (1,), (0, 2)),
        ((), (0,), (1,)),
    ],
)
def test_axes_are_flattened(shape: tuple[int, ...], axes: tuple[int, ...], flat: tuple[int, ...]) -> None:
    x = np.arange(float(np.prod(shape))).reshape(shape)
    np.testing.assert_array_equal(Tensor(x).flatten(*axes), x.reshape(flat))
    with pytest.raises(ArgumentError, match="the second lies before the first"):
        Tensor(np.ones((2, 3))).flatten(1, 0)
