"""What is known of every public function of NumPy's main namespace: one row each, read by numpy_surface.py.

A block belongs to a kind (see `KINDS` there). A row is `name: call; call | remark`: `f` is the function, the other
names are the sample arrays of numpy_surface.py, all of which become Tensors. What NumPy has under several names is one
row.
"""

from __future__ import annotations

MAIN: dict[str, str] = {}
"""Kind -> rows."""

MAIN["derivative"] = """
absolute: f(X); f(C) | 0 at 0
add: f(X, Y); f(X, C); f.reduce(X); f.accumulate(X, axis=1); f.outer(Y, V); f.reduceat(V, [0, 3, 1])
amax: f(X, axis=0) | as max
amin: f(X, axis=0) | as min
angle: f(C); f(C, deg=True) | of real numbers 0 or pi, with derivative 0
append: f(X, V); f(X, Q, axis=0)
apply_along_axis: f(lambda v: v * np.sum(v), 1, X); f(lambda v: v if v[0] > 0 else v * v, 0, X) | jit guards branches
apply_over_axes: f(np.mean, X, (0, 1))
arccos: f(U); f(C)
arccosh: f(P + 1.0); f(C)
arcsin: f(U); f(C)
arcsinh: f(X); f(C)
arctan: f(X); f(C)
arctan2: f(X, Q)
arctanh: f(U); f(C)
array_split: f(X, 3, axis=1); f(X, [1, 2])
asanyarray: f(like=X, a=X) | plain calls, without `like`, need nbgrad.numpy
asarray: f(X, like=X) | plain calls, without `like`, need nbgrad.numpy
ascontiguousarray: f(X, like=X) | plain calls, without `like`, need nbgrad.numpy
asfortranarray: f(X, like=X) | plain calls, without `like`, need nbgrad.numpy
array: f(X, like=X); f([[1.0, 2.0], Y[:2]], like=Y) | plain calls, without `like`, need nbgrad.numpy
astype: f(X, np.float64); f(C, np.complex128)
atleast_1d: f(X, V)
atleast_2d: f(V)
atleast_3d: f(X)
average: f(X, axis=1, weights=Y); f(X, returned=True)
block: f([[X, Q], [Q, X]])
broadcast_arrays: f(X, Y)
broadcast_to: f(Y, (3, 4))
cbrt: f(P)
choose: f([2, 0, 1, 1], X)
clip: f(X, -0.5, 0.8); f(X, Y, None); f(X, None, 1.0) | 1 at the bounds
column_stack: f((X, Q))
compress: f([True, False, True], X, axis=0) | shape depends on values
concatenate: f((X, Q), axis=1); f((X, V), axis=None)
conjugate: f(C); f(X)
convolve: f(V, Y, "full"); f(V, Y, "same"); f(Y, V, "valid"); f(R, T)
copy: f(X)
copysign: f(X, Q)
corrcoef: f(X); f(X, Q, rowvar=False)
correlate: f(V, Y, "full"); f(V, Y, "same"); f(Y, V, "valid"); f(T, R, "full")
cos: f(X); f(C)
cosh: f(X); f(C)
cov: f(X); f(X, Q, bias=True); f(X, aweights=P[0], fweights=J[0]); f(C)
cross: f(M, N); f(M[0], N)
cumprod: f(X, axis=1); f(X)
cumsum: f(X, axis=1); f(C)
cumulative_prod: f(X, axis=1, include_initial=True) | since NumPy 2.1
cumulative_sum: f(X, axis=0, include_initial=True) | since NumPy 2.1
deg2rad: f(X)
degrees: f(X)
delete: f(X, 1, axis=1); f(X, [0, 2], axis=0)
diag: f(Y); f(X, 1)
diagflat: f(X, -1)
diagonal: f(X, 1)
diff: f(X, 2); f(X, prepend=0.0, axis=0)
divide: f(X, P); f(C, D); f(X, C); f.reduce(P)
divmod: f(X, 0.7) | the quotient's is 0
dot: f(X, Y); f(Y, X.T); f(C, D.T)
dsplit: f(A, 3)
dstack: f((X, Q))
ediff1d: f(X, to_end=Y, to_begin=1.0)
einsum: f("ij,j->i", X, Y); f("ij,jk,kl", M, N, M, optimize=True); f(M, [0, 0], [0]); f("...i,i", C, Y)
exp: f(X); f(C)
exp2: f(X); f(C)
expand_dims: f(X, (0, 2))
expm1: f(X); f(C)
extract: f([True, False, True], Y) | shape depends on values
fabs: f(X) | 0 at 0
flip: f(X); f(X, 1)
fliplr: f(X)
flipud: f(X)
float_power: f(P, X)
fmax: f(X, Q) | one half each for equal operands; a NaN has none
fmin: f(X, Q) | one half each for equal operands; a NaN has none
fmod: f(X, 0.7)
frexp: f(X) | the exponent is an integer
full_like: f(X, 2.5); f(X, Y)
geomspace: f(P[0], P[1], 5)
gradient: f(X); f(X, 0.5, axis=1, edge_order=2); f(V, G); f(C, axis=0)
histogram: f(X, [-3, -1, 0, 3], weights=Q); f(X, [-3, 0, 3], weights=P, density=True) | counts are constant
histogram2d: f(V, G, [2, 3], weights=W) | as histogram
histogram_bin_edges: f(X, 4)
histogramdd: f((V, G), 3, weights=W) | as histogram
hsplit: f(X, 2)
hstack: f((X, Q))
hypot: f(X, Q); f.reduce(X) | 0 at (0, 0)
i0: f(X)
imag: f(C); f(X)
inner: f(X, Q); f(Y, Y)
insert: f(X, 1, Y, axis=0); f(V, [1, 3], Y[:2])
interp: f(X, G, V); f(X, G, V, left=-1.0, right=2.0); f(X, G, V, period=3.3) | the slope on the right at a point
kron: f(M, X)
ldexp: f(X, K)
linspace: f(X, Q, 5); f(Y, 2.0, 4, endpoint=False, axis=-1)
log: f(P); f(C)
log10: f(P); f(C)
log1p: f(P); f(C)
log2: f(P); f(C)
logaddexp: f(X, Q); f.reduce(X, axis=1); f.accumulate(V)
logaddexp2: f(X, Q)
logspace: f(U, Y, 3); f(Y, 1.0, 4, base=2.0)
matmul: f(X, Q.T); f(A, M); f(E, E)
matrix_transpose: f(X)
matvec: f(A, M[0]) | since NumPy 2.2
max: f(X); f(X, axis=1, keepdims=True); f(X, where=B, initial=-5.0, axis=0) | shared equally between ties
maximum: f(X, Q); f.reduce(X); f.accumulate(X) | one half each for equal operands
mean: f(X); f(X, axis=(0, 1), keepdims=True); f(X, axis=0, where=B); f(C)
median: f(X); f(X, axis=1)
meshgrid: f(Y, V); f(Y, V, indexing="ij", sparse=True)
min: f(X); f(X, axis=1) | shared equally between ties
minimum: f(X, Q) | one half each for equal operands
modf: f(X) | the whole part's is 0
moveaxis: f(A, 0, -1)
multiply: f(X, Y); f(C, D); f(X, C); f.reduce(X, axis=1); f.reduceat(V, [1, 3])
nan_to_num: f(H)
nancumprod: f(H, axis=1)
nancumsum: f(H, axis=1)
nanmax: f(H, axis=1)
nanmean: f(H, axis=1)
nanmedian: f(H, axis=1)
nanmin: f(H, axis=1)
nanpercentile: f(H, [30.0, 60.0], axis=1)
nanprod: f(H, axis=1)
nanquantile: f(H, 0.4, axis=1)
nanstd: f(H, axis=1, ddof=1)
nansum: f(H, axis=1)
nanvar: f(H, axis=1)
negative: f(X); f(C)
nextafter: f(X, Q) | 1 in the first operand, 0 in the second
ones_like: f(X) * X
outer: f(Y, V); f(X, C)
pad: f(X, 1); f(X, 2, "reflect"); f(X, ((1, 2), (0, 1)), "linear_ramp"); f(X, 3, "symmetric", reflect_type="odd")
partition: f(X, 2) | sorts altogether
percentile: f(X, [25, 60]); f(X, 40.0, axis=1, method="hazen")
permute_dims: f(A, (2, 0, 1))
piecewise: f(X, [X < -1.0, X > 1.0], [lambda v: v ** 2, lambda v: np.exp(v), 0.5])
poly: f(Y); f(M)
poly1d: f(V)(X); (f(V) * f(Y)).deriv()(X) | jit guards leading zeros
polyadd: f(Y, V)
polyder: f(V, 2)
polydiv: f(V, Y) | jit guards zeros at the remainder's front
polyfit: f(G, V, 2); f(G, V, 1, w=W); f(G, V, 1, cov=True)[1] | no warning of a small rank
polyint: f(V, 2, k=Y[:2])
polymul: f(Y, V)
polysub: f(Y, V)
polyval: f(Y, X)
positive: f(X)
power: f(P, X); f(X, 3); f(C, D) | 0 by x at (0, 0)
prod: f(X); f(X, axis=0)
ptp: f(X, axis=1)
quantile: f(X, [0.2, 0.55]); f(X, 0.4, axis=1, method="weibull"); f(X, 0.4, weights=P, method="inverted_cdf")
rad2deg: f(X)
radians: f(X)
ravel: f(X, order="F")
real: f(C); f(X)
real_if_close: f(X)
reciprocal: f(P); f(C)
remainder: f(X, 0.7); f(X, P)
repeat: f(X, 2, axis=0); f(Y, [1, 0, 2, 3])
reshape: f(X, (2, -1)); f(X, (4, 3), order="F")
resize: f(X, (3, 7))
roll: f(X, 5); f(X, (1, 2), axis=(0, 1))
rollaxis: f(A, 2)
roots: f(V) | complex; where roots are simple; jit guards zeros at the ends
rot90: f(X, 1); f(X, 3)
row_stack: f((X, Y)) | as vstack, deprecated
select: f([X < -1.0, X > 1.0], [X ** 2, Q], 0.5)
sin: f(X); f(C)
sinc: f(X); f(np.zeros(3) * X[:, :1])
sinh: f(X); f(C)
sort: f(X); f(X, axis=None); f(C)
sort_complex: f(T)
split: f(X, 2, axis=1)
sqrt: f(P); f(C) | inf at 0
square: f(X); f(C)
squeeze: f(X[:1])
stack: f((X, Q), axis=2)
std: f(X); f(X, axis=1, ddof=1); f(C) | 0 where all elements are equal
subtract: f(X, Y); f(C, X); f.accumulate(V); f.outer(Y, V)
sum: f(X); f(X, axis=1, keepdims=True); f(X, where=B, initial=2.0); f(C, axis=0)
swapaxes: f(A, 0, 2)
take: f(X, [0, 2, 2], axis=1); f(X, [[11, 0]])
take_along_axis: f(X, np.argsort(Q, axis=1), axis=1)
tan: f(X); f(C)
tanh: f(X); f(C)
tensordot: f(A, M, 1); f(X, Q, ((0, 1), (0, 1)))
tile: f(X, (2, 1))
trace: f(X, 1)
transpose: f(X); f(A, (1, 2, 0))
trapezoid: f(V, G); f(X, dx=0.5, axis=0); f(X, Q)
trapz: f(V, G) | as trapezoid, until NumPy 2.3
tril: f(X, 1)
trim_zeros: f(np.concatenate([np.zeros(2), V, np.zeros(1)])) | jit guards the zeros
triu: f(X, -1)
union1d: f(Y, V) | shape depends on values; of equal elements the first has all
intersect1d: f(Y, np.concatenate([Y[1:3], V])) | shape depends on values; the first array's elements have all
setdiff1d: f(Y, V[1:]) | shape depends on values
setxor1d: f(Y, V) | shape depends on values
unique: f(X); f(X, axis=0) | shape depends on values; of equal elements the first has all
unique_values: np.sort(f(X)) | shape depends on values
unstack: f(X, axis=1) | since NumPy 2.1
unwrap: f(X * 4.0); f(X, period=1.5)
vander: f(Y, 3)
var: f(X); f(X, axis=1, ddof=1); f(C) | real, also of complex numbers
vdot: f(Y, Y * 2.0); f(T, R)
vecdot: f(X, Q); f(C, D)
vecmat: f(M[0], A) | since NumPy 2.2
vsplit: f(X, 3)
vstack: f((X, Y))
where: f(B, X, Q); f(X > 0.0, X ** 2, 0.0) | of the branch that was taken
"""

MAIN["zero"] = """
around: f(X, 1)
ceil: f(X)
empty_like: f(X) * 0.0 | any values
fix: f(X)
floor: f(X)
floor_divide: f(X, 0.7)
heaviside: f(X, 0.5)
rint: f(X)
round: f(X, 1)
sign: f(X)
spacing: f(X)
trunc: f(X)
zeros_like: f(X)
"""

MAIN["integers"] = """
all: f(X, axis=0)
any: f(X)
argmax: f(X, axis=1)
argmin: f(X)
argpartition: f(X, 1)[:, 1]
argsort: f(X, axis=0); f(C)
argwhere: f(X > 0.0) | shape depends on values
bincount: f(J[0]); f(J[0], minlength=9) | weights differentiate; length depends on values
bitwise_and: f(K, J)
bitwise_count: f(J)
bitwise_or: f(K, J)
bitwise_xor: f(K, J)
count_nonzero: f(X > 0.0, axis=1)
digitize: f(X, [-1.0, 0.0, 1.0])
equal: f(X, Q)
flatnonzero: f(X > 0.0) | shape depends on values
gcd: f(K, J)
greater: f(X, Q)
greater_equal: f(X, Q)
in1d: f(K, [1, 2, 4]) | until NumPy 2.3
invert: f(K)
isclose: f(X, Q)
iscomplex: f(C); f(X)
isfinite: f(H)
isin: f(K, [1, 2, 4])
isinf: f(H)
isnan: f(H)
isneginf: f(H)
isposinf: f(H)
isreal: f(C); f(X)
ix_: f(J[0], K[1])
lcm: f(J, J + 1)
left_shift: f(J, 2)
less: f(X, Q)
less_equal: f(X, Q)
lexsort: f((X[0], Y))
logical_and: f(X, B); f.reduce(B)
logical_not: f(X > 0.0)
logical_or: f(X, B)
logical_xor: f(X > 0.0, B)
nanargmax: f(H, axis=1)
nanargmin: f(H, axis=1)
nonzero: f(X > 0.0) | shape depends on values
not_equal: f(X, Q)
ravel_multi_index: f((J[0], J[1]), (9, 9)); f((K[0], K[1]), (3, 3), mode="wrap")
right_shift: f(J, 1)
searchsorted: f(G, X); f(G, X, side="right")
signbit: f(X)
unique_all: f(K) | shape depends on values; the values differentiate
unique_counts: f(K) | shape depends on values; the values differentiate
unique_inverse: f(K) | shape depends on values; the values differentiate
unravel_index: f(J, (3, 4))
"""

MAIN["plain"] = """
allclose: f(X, X); f(X, Q) | a truth value; in jit it is checked at every call
array2string: f(X)
array_equal: f(X, X) | a truth value
array_equiv: f(X, X) | a truth value
array_repr: f(X)
array_str: f(X)
can_cast: f(X.dtype, np.float64)
common_type: f(X, K)
diag_indices_from: f(M)
einsum_path: f("ij,jk,kl", M, N, M)[0]
from_dlpack: f(X) | an ndarray of values
iscomplexobj: f(X); f(C)
isrealobj: f(X)
may_share_memory: f(X, Q)
min_scalar_type: f(X)
ndim: f(X)
result_type: f(X, np.float32)
save: f(FILE, X) | values without gradient
savetxt: f(FILE, X) | values without gradient
savez: f(FILE, X) | values without gradient
savez_compressed: f(FILE, X) | values without gradient
shape: f(X)
shares_memory: f(X, Q)
size: f(X); f(X, 1)
tril_indices_from: f(X)
triu_indices_from: f(X)
"""

MAIN["in place"] = """
copyto: f(X, Q); f(X, Y, where=B)
fill_diagonal: f(X, Y[0])
place: f(X, [[True, False, False, True]] * 3, V)
put: f(X, [0, 5, 5], V[:3])
put_along_axis: f(X, np.argsort(Q, axis=1), Q, axis=1)
putmask: f(X, B, Q)
"""

MAIN["no arrays"] = """
bartlett base_repr binary_repr blackman broadcast_shapes busdaycalendar datetime_data diag_indices dtype errstate eye
finfo format_float_positional format_float_scientific get_include get_printoptions getbufsize geterr geterrcall hamming
hanning identity iinfo indices info isdtype issubdtype mask_indices mintypecode ndindex ones empty
printoptions promote_types set_printoptions setbufsize seterr seterrcall show_config show_runtime test tri tril_indices
triu_indices typename ufunc zeros
"""

MAIN["by name"] = """
arange: f(X[0, 0], 5.0)
asarray_chkfinite: f(X)
fromfunction: f(lambda i, j: X, (3, 4)) | works as it is where the function returns Tensors
fromiter: f(iter(Y), float)
frompyfunc: f(lambda x: x * x, 1, 1)(X) | works as it is: NumPy asks Tensors
full: f(3, Y[0])
isscalar: f(X[0, 0]) | False for Tensors
iterable: f(X) | works as it is
kaiser: f(5, P[0, 0])
ndenumerate: [v for _, v in f(X)]
nditer: [v for v in f(X)]
require: f(X)
vectorize: f(lambda x: x * x if x > 0 else x)(X)
c_: f[V, V]
mgrid: f[0:3, 0:2]
ogrid: f[0:3]
r_: f[V, 1.0, V]
"""

MAIN["refused"] = """
busday_count: f(K, K) | dates
busday_offset: f(K, K) | dates
datetime_as_string: f(K) | dates
is_busday: f(K) | dates
isnat: f(K) | dates
packbits: f(B) | bits in bytes
unpackbits: f(K.astype(np.uint8)) | bits in bytes
"""

MAIN["NumPy's own"] = """
asmatrix bmat matrix: matrices of NumPy's old kind; Tensors have two axes and the operator @
broadcast flatiter nested_iters: iterate over memory; use np.ndindex, or nbgrad.numpy.ndenumerate
chararray: text
frombuffer fromfile fromregex fromstring genfromtxt load loadtxt memmap: read files and memory; the arrays are constants
isfortran: asks for the order of memory
ndarray: NumPy's arrays
recarray record: named fields
index_exp s_: keys of slices
"""

LINALG: dict[str, str] = {}
"""The same for `numpy.linalg`."""

LINALG["derivative"] = """
cholesky: f(S); f(S, upper=True); f(E @ np.conj(E).T)
cond: f(M); f(M, 1)
cross: f(M, N)
det: f(M); f(A); f(E)
diagonal: f(A, offset=1)
eig: np.sort(np.real(f(S)[0])) | real where NumPy's are (complex in `vmap`); where eigenvalues differ; of length one
eigh: f(S)[0]; f(S)[1] ** 2; f(E @ np.conj(E).T)[0] | vectors where eigenvalues differ
eigvals: np.sort(np.real(f(S))) | real where NumPy's are (complex under `vmap`); where eigenvalues differ
eigvalsh: f(S); f(S, UPLO="U")
inv: f(M); f(A); f(E)
lstsq: f(X, M[0])[0]; f(X.T, Y)[:2]; f(C.T, T)[0]
matmul: f(A, M)
matrix_norm: f(A); f(M, ord=2); f(M, ord=1)
matrix_power: f(M, 3); f(M, -2); f(E, -1)
matrix_transpose: f(A)
multi_dot: f([M, X, Y])
norm: f(X); f(X, axis=1); f(X, 1, axis=0); f(M, 2); f(M, "nuc"); f(Y, 3); f(C) | 0 at 0
outer: f(Y, V)
pinv: f(X); f(X.T); f(C)
qr: f(M)[1]; f(X.T)[0]; f(X, mode="r")
slogdet: f(M)[1]; f(A)[1]; f(E)
solve: f(M, X); f(A, M[0][:, None]); f(E, E)
svd: f(X, full_matrices=False)[1]; f(X, compute_uv=False) | vectors where singular values differ
svdvals: f(X); f(C)
tensordot: f(A, M, axes=1)
tensorinv: f(A.reshape(2, 3, 3)[0].reshape(3, 3), ind=1)
tensorsolve: f(M, Y[:3])
trace: f(A)
vecdot: f(X, Q)
vector_norm: f(X); f(X, axis=1, ord=3)
"""

LINALG["integers"] = """
matrix_rank: f(X)
"""

LINALG["no arrays"] = """
test
"""

FFT: dict[str, str] = {}
"""The same for `numpy.fft`."""

FFT["derivative"] = """
fft: f(X); f(C, 5, axis=0, norm="ortho")
fft2: f(X); f(C, (4, 3))
fftn: f(A); f(A, (2, 4), axes=(0, 2), norm="forward")
fftshift: f(X); f(C, axes=1)
hfft: f(C); f(C, 5)
ifft: f(C); f(X, 3)
ifft2: f(C)
ifftn: f(C)
ifftshift: f(X, axes=1)
ihfft: f(X); f(X, 6, axis=0)
irfft: f(C); f(C, 5)
irfft2: f(C)
irfftn: f(C, (3, 5), axes=(0, 1))
rfft: f(X); f(X, 6, norm="ortho")
rfft2: f(X)
rfftn: f(A)
"""

FFT["no arrays"] = """
fftfreq rfftfreq test
"""
