"""The rows that random programs are made of: statements, writes, arguments.

In a row, `{x}` is an array that exists, `{f}` a real, `{c}` a complex, `{k}` an integer, `{b}` a truth-valued one,
`{v}` a vector, `{m}` a matrix, `{w}` one that may be written to, `{s}` a number; `{e}` is a small expression, `{to}` a
name to bind (mostly a new one). `{same}`, `{index}`, `{basic}`, `{axis}`, `{shape}`, `{axes}` belong to the array drawn
last before them. Rows need not fit all shapes and dtypes: what NumPy refuses is thrown away. Read by
random_programs.py.
"""

from __future__ import annotations

import re

STATEMENTS = """
{to} = np.{unary}({x})
{to} = np.{unary}({e})
{to} = np.{positive}(np.abs({x}) + 0.3)
{to} = np.{binary}({x}, {e})
{to} = {x} {operator} {e}
{to} = {e} {operator} {x}
{to} = {f} / (1.5 + np.abs({f}))
{to} = -{x} + {e}
{to} = {f} ** 2 + {s}
{to} = np.where({b}, {e}, {e})
{to} = np.where({f} > {f}, {f}, {e})
{to} = {f} > {s}
{to} = ({f} > {s}) & ({f} < {f})
{to} = np.clip({f}, -0.4, {s})
{to} = np.{reduction}({x})
{to} = np.{reduction}({x}, axis={axis})
{to} = np.{reduction}({x}, axis={axis}, keepdims=True)
{to} = {x}.{method}(axis={axis})
{to} = {x}.{method}()
{to} = np.{real_reduction}({f}, axis={axis})
{to} = {x} @ {e}
{to} = {m} @ {m}.T
{to} = np.dot({x}, {e})
{to} = np.outer({x}, {e})
{to} = np.tensordot({m}, {m}, axes=({axis}, {axis}))
{to} = np.einsum("ij,jk->ik", {m}, {m})
{to} = np.einsum("ij->ji", {m}) + {s}
{to} = np.einsum("ij->ji", {m})
{to} = np.einsum("ii->i", {m})
{to} = np.einsum("ij,i->j", {m}, {v})
{to} = np.einsum("ij,ij->", {m}, {m})
{to} = np.einsum("i,j->ij", {v}, {v})
{to} = np.linalg.solve({m} @ {same}.T + 2.0 * np.eye({same}.shape[0]), {e})
{to} = np.linalg.inv({m} @ {same}.T + np.eye({same}.shape[0]))
{to} = np.linalg.det({m} @ {same}.T + np.eye({same}.shape[0]))
{to} = np.linalg.cholesky({m} @ {same}.T + np.eye({same}.shape[0]))
{to} = np.linalg.norm({f} + 2.0)
{to} = {x}[{index}]
{to} = {x}[{index}]
{to} = {x}[{basic}]
{to} = {x}[{basic}]
{to} = {x}[{index}] * {s}
{to} = np.take({x}, [1, 0, -1], axis={axis})
{to} = np.take_along_axis({f}, np.argsort({same}, axis={axis}, kind="stable"), axis={axis})
{to} = np.nonzero({f} > {s})[0]
{to} = {x}.reshape({shape})
{to} = {x}.reshape({shape}, order={order})
{to} = np.reshape({x}, {shape}, order={order})
{to} = {x}.reshape(-1)
{to} = {x}.ravel()
{to} = np.ravel({x}, order={order})
{to} = {x}.flatten(order={order})
{to} = {x}.flatten()
{to} = {x}.T
{to} = {x}.T
{to} = {x}.mT
{to} = np.transpose({x}, {axes})
{to} = np.swapaxes({x}, 0, {axis})
{to} = np.moveaxis({x}, 0, {axis})
{to} = {x}.swapaxes({axis}, 0)
{to} = np.diagonal({x})
{to} = np.diag({x})
{to} = np.flip({x}, axis={axis})
{to} = np.flip({x})
{to} = np.rot90({m})
{to} = np.roll({x}, 1, axis={axis})
{to} = np.squeeze({x})
{to} = {x}[None]
{to} = np.expand_dims({x}, {axis})
{to} = np.atleast_2d({x})
{to} = np.atleast_1d({x})
{to} = np.broadcast_to({x}, (2, *{same}.shape))
{to} = np.tile({x}, 2)
{to} = np.repeat({x}, 2, axis={axis})
{to} = {c}.real
{to} = {c}.imag
{to} = {x}.real
{to} = np.real({x})
{to} = np.conj({x})
{to} = np.abs({c})
{to} = {f} + 1j * {f}
{to} = np.copy({x})
{to} = {x}.copy()
{to} = {x}.copy(order={order})
{to} = np.copy({x}, order={order})
{to} = {x}.astype({dtype})
{to} = {x}.astype({dtype}, order={order})
{to} = np.array({x})
{to} = np.array({x}, order={order})
{to} = np.asarray({x})
{to} = np.asarray({x}, order={forc})
{to} = np.ascontiguousarray({x})
{to} = np.asfortranarray({x})
{to} = np.require({x}, requirements="F")
{to} = np.{like}({x})
{to} = np.{like}({x}, order={order})
{to} = np.{like}({x}, dtype={dtype})
{to} = np.full_like({f}, {s})
{to} = np.empty_like({x}); {to_again}.fill(0); {to_again}[...] = {s}
{to} = np.zeros({x}.shape); {to_again}[...] = {e}
{to} = np.zeros({f}.shape, order={forc}); {to_again} += {same}
{to} = np.zeros(3); {to_again}[1] = {s}
{to} = np.full((2, 3), 0.5)
{to} = np.ones((3, 2), order="F")
{to} = np.eye(3)
{to} = np.arange(3.0)
{to} = np.arange(6).reshape(2, 3)
{to} = np.linspace(0.0, {s}, 3)
{to} = np.array([{s}, {s}, 0.5])
{to} = np.array([{v}, {v}])
{to} = np.concatenate([{x}, {e}], axis={axis})
{to} = np.stack([{x}, {same} * 2.0])
{to} = np.stack([{x}, {x}], axis=-1)
{to} = np.hstack([{x}, {x}])
{to} = np.vstack([{x}, {x}])
{to} = np.column_stack([{v}, {v}])
{to} = np.block([[{m}, {same}], [{same}, {same}]])
{to} = np.pad({x}, 1)
{to} = np.pad({f}, ((1, 0), (0, 2)), mode="edge")
{to}, {to} = np.split({x}, 2)
{to} = np.split({x}, [1])[1]
{to}, {to} = {x}[0], {same}[1]
{to} = np.sort({f}, axis={axis})
{to} = np.sort({k}, axis=None)
{to} = np.argsort({f}, axis={axis}, kind="stable")
{to} = np.argmax({f}, axis={axis})
{to} = np.searchsorted(np.sort({v}), {s})
{to} = np.cumsum({x}, axis={axis})
{to} = np.cumprod({x}, axis={axis})
{to} = np.cumsum({x})
{to} = np.diff({x}, axis={axis})
{to} = np.trapezoid({f}, axis={axis})
{to} = np.gradient({f}, axis={axis})
{to} = np.cross({v}, {v})
{to} = np.kron({x}, {e})
{to} = np.convolve({v}, {v})
{to} = np.interp({f}, np.array([-2.0, 0.1, 2.0]), {v})
{to} = np.triu({m})
{to} = np.trace({m})
{to} = np.vander({v}, 3)
{to} = np.meshgrid({v}, {v})[1]
{to} = np.median({f}, axis={axis})
{to} = np.fft.fft({x})
{to} = np.fft.irfft({x})
{to} = np.unravel_index(2, {m}.shape)[0] * {s}
{to} = np.select([{b}, ~{same}], [{e}, {e}])
{to} = np.piecewise({f}, [{same} > 0.1], [lambda t: t * 2, 0.5])
{to} = np.vectorize(lambda t: t * t)({f})
{to} = np.apply_along_axis(lambda t: t * np.sum(t), {axis}, {f})
{to} = np.array([t * t for t in {v}])
{to} = sum({v})
{to} = max({v})
{to} = float({s}) * {f}
{to} = [{x}, {x}][{k}.size % 2]
{to} = {f} * {same}.size + {same}.ndim
{to} = {f} * (2.0 if {x}.flags.c_contiguous else 3.0)
{to} = {f} * (2.0 if {x}.flags.f_contiguous else 3.0)
{to} = {f} * (2.0 if {x}.flags["C"] else 3.0)
{to} = {f} + sum(step for step, extent in zip({x}.strides, {same}.shape) if extent > 1) / 64
{to} = {f} * (1.5 if np.may_share_memory({x}, {x}) else 2.5)
{to} = {f} * (1.5 if {x}.dtype == {dtype} else 2.5)
{to} = {x}
"""

WRITES = """
{x}[{index}] = +({e})
{x}[{basic}] = {e}
{x}[...] = {e}
{x}[{index}] += {e}
{x}[{index}] *= {s}
{x}[{basic}] -= {e}
{x}[{same} > 0.2] = {s}
{x} += {e}
{x} *= {e}
{x} -= {s}
{x} /= 2.5
{x} **= 2
{x}.T[{basic}] = {e}
{x}.reshape(-1)[1] = {s}
{x}.ravel()[{s0}] = {s}
{x}.flat[1] = {s}
{x}.flat = {e} + 0
{m}.T[0] = {e}
{x}[0], {same}[1] = {same}[1].copy(), {same}[0].copy()
{x}.fill({s})
{f}.sort()
{f}.sort(axis={axis})
np.copyto({x}, {e})
np.copyto({x}, {e}, where=np.copy({b}))
np.put({x}, [0, 2], {e})
np.put({x}, [1], {s})
np.putmask({x}, {same} > 0.1, {e})
np.place({f}, {same} > 0.1, [{s}, 0.25])
np.fill_diagonal({x}, {s})
np.add.at({w}, [0, 1, 0], {e})
np.multiply.at({w}, [0, 0], {s})
np.subtract.at({w}, ([0, 1], [1, 1]), {e})
np.{binary}({x}, {e}, out={x})
np.{unary}({x}, out={x})
np.multiply({x}, {e}, out={same})
np.add({x}, {e}, out={same}, where={b})
np.sum({x}, axis={axis}, out={x})
np.cumsum({x}, axis={axis}, out={same})
np.matmul({x}, {x}, out={x})
np.dot({m}, {m}, out={m})
np.take({x}, [1, 0], axis=0, out={x})
np.clip({f}, -0.5, 0.6, out={same})
np.concatenate([{x}.copy(), {x}.copy()], out={x})
np.put_along_axis({m}, np.array([[0], [1]]), {s}, axis=1)
{c}.real[...] = {e}
{c}.imag = {e}
{c}.real *= 2.0
for row in {m}: row *= {s}
for i, row in enumerate({x}): row[i] = {s}
"""

BLOCKS = """
for i in range({n}):
for i in range({n}):
if {condition}:
if {condition}:
def
def
lists
while
"""
"""What holds other statements."""

EXPRESSIONS = """
{s}
{s}
{x}
{x}
{x}
{f}
{f} * 0.5
np.sin({f})
{x}[{basic}]
{x}.T
{x}[::-1]
np.array([0.5, -1.5, 2.5])
{f}[{basic}] * {s}
np.arange(3)
True
"""

ARGUMENTS = """
rng.normal(size={size})
rng.normal(size={size})
rng.normal(size={size})
rng.uniform(0.5, 1.5, {size})
np.asfortranarray(rng.normal(size={size}))
rng.normal(size={size}).T
rng.normal(size={size})[::-1]
rng.normal(size={size})[..., ::-1]
rng.normal(size=(6, 4))[::2, 1:]
rng.normal(size=(4, 3))[1:, None, ::-2]
rng.normal(size=(2, 3, 2)).transpose(2, 0, 1)
np.broadcast_to(rng.normal(size=3), (2, 3))
np.diagonal(rng.normal(size=(3, 3)))
rng.normal(size={size}).astype(np.float32)
np.asfortranarray(rng.normal(size={size}).astype(np.float32))
rng.normal(size={size}) + 1j * rng.normal(size={size_again})
(rng.normal(size={size}) + 1j * rng.normal(size={size_again})).T
(rng.normal(size={size}) + 1j).astype(np.complex64)
rng.integers(-2, 3, size={size})
rng.integers(-2, 3, size={size}).T
rng.integers(0, 3, size={size}).astype(np.int32)
rng.normal(size={size}) > 0.0
np.array(rng.normal())
np.float64(rng.normal())
float(rng.normal())
float(rng.normal())
np.float32(rng.normal())
complex(rng.normal(), 0.5)
{"p": rng.normal(size={size}), "q": rng.normal(size={size})}
(rng.normal(size={size}), float(rng.normal()))
[rng.normal(size={size}).T, rng.normal(size={size})]
"""

SHARING = """
{x}
{x}[1:]
{x}[::-1]
{x}.T
{x}[:2]
{x}.reshape(-1)
{x}[..., 0]
"""
"""Arguments that share memory with one before them."""

RELAYOUTS = """
np.asfortranarray({x})
np.ascontiguousarray({x})
np.flip(np.flip({x}).copy())
{x}.copy()
np.repeat({x}, 2, axis=-1)[..., ::2]
"""
"""The same values in another memory order."""

WORDS = {
    "unary": "sin cos tanh exp square negative abs sign floor sqrt log1p reciprocal positive isfinite logical_not rint",
    "positive": "sqrt log reciprocal log1p cbrt exp2 arctan sinh",
    "binary": "add subtract multiply maximum minimum arctan2 hypot fmax logaddexp divide power copysign equal less mod",
    "operator": "+ - * / ** // % < >= + - *",
    "reduction": "sum mean max min prod std var all any ptp sum mean",
    "method": "sum mean max min prod std var any cumsum argmin",
    "real_reduction": "max min argmax ptp median nansum std count_nonzero",
    "like": "zeros_like ones_like",
    "dtype": "np.float64 np.float32 np.int64 np.complex128 bool float np.float64",
    "order": '"C" "F" "A" "K"',
    "forc": '"C" "F"',
    "n": "2 3",
    "s0": "0 -1 1",
    "size": "3 3 4 (2,3) (3,2) (3,3) (2,2) (3,3) (2,2,3) (2,3,2) (1,3) (3,1) ()",
}

KNOWN_DIFFERENCES = {
    "memory order": re.compile(
        r"reshape|ravel|flatten|flags|strides|order=|\.flat\b|require|contiguous|asfort|may_share|copy\(.F"
    ),
    "writes to arguments": None,
    "orders of diagonals": re.compile(r"np\.diag"),
    "0-d arguments": None,
    "views of plain arrays": None,
    "einsum views": re.compile(r'einsum\("(ij->ji|ii->i)|sliding_window'),
}
"""What differs from NumPy until it is mended, and the rows that show it; tests give the names that still hold."""
