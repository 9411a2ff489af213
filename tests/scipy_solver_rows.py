"""The facts about the public functions of scipy.interpolate, integrate, optimize, sparse, spatial, stats and cluster:
rows as in scipy_rows.py, read by scipy_surface.py. A function that becomes differentiable gets its row here, in
"source", and leaves "no"."""

from __future__ import annotations

INTERPOLATE: dict[str, str] = {}
INTERPOLATE["source"] = """
CubicSpline: f(R, V)(U); f(R, V, bc_type="natural")(U, 1); f(R, V, bc_type=((1, 0.3), (2, U[0]))).integrate(U[0],
  U[1]); f(R, np.append(V[1:], V[1]), bc_type="periodic")(U)
PchipInterpolator: f(R, V)(U); f(R, V).derivative()(U); f(R, V).antiderivative()(U)
Akima1DInterpolator: f(R, V)(U + 0.2); f(R, V, method="makima")(U + 0.2)
CubicHermiteSpline: f(R, V, W)(U)
pchip_interpolate: f(R, V, U)
PPoly: f(M[:, :2], R[:3])(U); f(M[:, :2], R[:3], extrapolate="periodic")(U); f(M[:, :2], R[:3]).integrate(U[0],
  U[1]); f(M[:, :2], R[:3]).solve(U[0]) | `roots` and `solve` not compiled
BPoly: f(M[:, :2], R[:3])(U); f.from_derivatives(R[:3], M)(U); f(M[:, :2], R[:3]).integrate(U[0], U[1])
BSpline: f(np.concatenate([R - 5, R + 5]), np.append(V, W[0]), 3)(U); f(np.concatenate([R - 5, R + 5]), np.append(V,
  W[0]), 3).derivative()(U); f(np.concatenate([R - 5, R + 5]), np.append(V, W[0]), 3).integrate(U[0], U[1])
make_interp_spline: f(R, V)(U); f(R, V, k=2)(U); f(R, V, bc_type="clamped")(U, 1); f(R, np.append(V[1:], V[1]),
  bc_type="periodic")(U)
make_lsq_spline: f(np.linspace(0.2, 3.5, 16), L, [0.2, 0.2, 0.2, 1.5, 3.5, 3.5, 3.5], 2, w=np.exp(L))(U)
splint: np.asarray(f(U[0], U[1], (np.concatenate([R - 5, R + 5]), np.append(V, W), 3)))
splder splantider: f((np.concatenate([R - 5, R + 5]), np.append(V, W), 3))[1]
splev: f(U, (np.concatenate([R - 5, R + 5]), np.append(V, W), 3)); f(U, (np.concatenate([R - 5, R + 5]),
  np.append(V, W), 3), der=1)
splrep: f(R, V)[1]
UnivariateSpline: f(R, V, s=0)(U); f(R, V, s=0).derivative()(U)
InterpolatedUnivariateSpline: f(R, V)(U); f(R, V, k=2, ext=3)(U - 0.3)
RectBivariateSpline: f(R, W4, np.outer(V, Z))(U[:1], U[1:2]); f(R, W4, np.outer(V, Z)).ev(U, U + 0.4, dx=1)
bisplev: f(R, U[0], [np.concatenate([R - 5, R + 5]), np.concatenate([W4 - 5, W4 + 5]),
  np.outer(np.append(V, W[0]), Z).ravel(), 3, 3]); f(U[0], U[1], [np.concatenate([R - 5, R + 5]),
  np.concatenate([W4 - 5, W4 + 5]), np.outer(np.append(V, W[0]), Z).ravel(), 3, 3], dx=1)
SmoothBivariateSpline: f(*np.mgrid[0:4:5j, 0:4:5j].reshape(2, 25), np.sin(np.arange(25.0))).ev(U, U + 0.4) | made of
  arrays, at recorded points
LSQBivariateSpline: f(*np.mgrid[0:4:5j, 0:4:5j].reshape(2, 25), np.sin(np.arange(25.0)), [2.0], [1.5], kx=2, ky=2)(U[0],
  U[1]) | made of arrays, at recorded points
interp1d: f(R, V, fill_value="extrapolate")(U); f(R, V, "cubic")(U + 0.2); f(R, V, "previous")(U + 0.2) * U
RegularGridInterpolator: f((R, W4), np.outer(V, Z))(D2); f((R, W4), np.outer(V, Z), "pchip")(D2); f((R, W4),
  np.outer(V, Z), "cubic", solver=sparse.linalg.spsolve)(D2) | splines by a direct solver; SciPy's own has five digits
interpn: f((R, W4), np.outer(V, Z), D2); f((R, W4), np.outer(V, Z), D2 + 0.1, "splinef2d")
BarycentricInterpolator: f(R, V)(U); f([0.2, 0.9, 1.6, 2.7, 3.5], V)(R); f(R, np.outer(Z, V), axis=1)(U);
  f(R, V).derivative(U)
KroghInterpolator: f(R, V)(U)
barycentric_interpolate krogh_interpolate: f(R, V, U)
lagrange: f(R[:3], V[:3])(U)
pade: f(W, 2)[0](U)
RBFInterpolator: f(L.reshape(8, 2), np.append(V, W[:3]))(D2 * 0.3); f(L.reshape(8, 2), np.append(V, W[:3]), 6,
  kernel="gaussian", epsilon=W[0], smoothing=W[1])(D2 * 0.3) | at the points themselves, second derivatives of
  "linear" and "thin_plate_spline", which are infinite there, are given as 0
LinearNDInterpolator: f(L.reshape(8, 2), np.append(V, W[:3]), 0.0)(D2 * 0.1); f(L.reshape(8, 2), np.append(V, W[:3]),
  0.0, True)(U * 0.1, V * 0.1)
CloughTocher2DInterpolator: f(np.cos(np.arange(16.0) ** 2).reshape(8, 2), np.append(V, W[:3]), 0.0, 1e-13)(D2 * 0.1);
  f(np.cos(np.arange(16.0) ** 2).reshape(8, 2), A[[0, 1, 2, 0, 1, 2, 1, 0]], 0.0, 1e-13, rescale=True)(U * 0.1, V * 0.1)
  | by values and places; the points are constants
NearestNDInterpolator: f(L.reshape(8, 2), np.append(V, W[:3]))(D2)
griddata: f(np.arange(5.0), V, np.array([0.3, 2.4])); f(L.reshape(8, 2), np.append(V, W[:3]), D2 * 0.1, "linear", 0.0);
  f(L.reshape(8, 2), np.append(V, W[:3]), (U, V), "nearest") | "cubic" by values and places
"""
INTERPOLATE["constant"] = """
generate_knots insert approximate_taylor_polynomial
"""
INTERPOLATE["no"] = """
AAA FloaterHormannInterpolator NdBSpline NdPPoly Rbf make_smoothing_spline
  make_splprep make_splrep: compiled code, or the choice of knots
BivariateSpline LSQSphereBivariateSpline LSQUnivariateSpline RectSphereBivariateSpline SmoothSphereBivariateSpline
  bisplrep spalde
  splprep sproot: FITPACK, compiled; make_interp_spline and splrep
  without smoothing work
interp2d: SciPy has removed it
"""

INTEGRATE: dict[str, str] = {}
INTEGRATE["source"] = """
trapezoid simpson cumulative_trapezoid cumulative_simpson: f(V, dx=0.3); f(V, x=R)
romb: f(V, dx=0.3)
fixed_quad: f(lambda t: np.sin(W * t[:, None]).sum(1), 0.0, U[0])[0]
solve_ivp: f(lambda t, y: -W[0] * y, (0.0, 0.5), [1.0], rtol=1e-9, atol=1e-9).y[:, -1] | as `nb.solvers.solve_ivp`
odeint: f(lambda y, t: -W[0] * y, np.ones(1), np.array([0.0, 0.5]), rtol=1e-10, atol=1e-10)[-1] | as `nb.solvers.odeint`
solve_bvp: f(lambda x, y: np.vstack([y[1], -W[0] * np.sin(y[0])]), lambda a, b: np.array([a[0], b[0] - W[1]]),
  np.linspace(0.0, 1.0, 5), np.ones((2, 5)), tol=1e-8).sol(U)[0] | as SciPy's mesh has it; not in `jit` and `vmap`
quad: np.asarray(f(lambda t: np.sin(W[0] * t), 0.0, 1.0)[0]) | as `nb.solvers.quad`
quad_vec: f(lambda t: np.sin(W * t), 0.0, U[0])[0]; f(lambda t: np.exp(-W[0] * t) * M, 0.0, np.inf, norm="max")[0] | as
  `nb.solvers.quad_vec`
dblquad: np.asarray(f(lambda y, x: np.sin(W[0] * x * y), 0.0, U[0], 0.0, lambda x: W[1] * x)[0]) | by `nb.solvers.quad`
tplquad: np.asarray(f(lambda z, y, x: W[0] * np.sin(x * y + z), 0.0, 1.0, 0.0, 1.0, 0.0, 1.0)[0]) | by
  `nb.solvers.quad`
nquad: np.asarray(f(lambda x, y: np.sin(W[0] * x * y), [lambda y: (0.0, y), (0.0, U[0])])[0]) | by `nb.solvers.quad`
"""
INTEGRATE["constant"] = """
lebedev_rule newton_cotes
"""
INTEGRATE["no"] = """
cubature tanhsinh nsum qmc_quad: adaptive rules in compiled code, or with a
  choice of points by values
ode complex_ode LSODA: compiled solvers
BDF DOP853 RK23 RK45 Radau OdeSolver DenseOutput OdeSolution: solvers' classes, which solve_ivp uses
"""

OPTIMIZE: dict[str, str] = {}
OPTIMIZE["source"] = """
newton: f(lambda z: z * z - W[0], 1.0) | as `nb.solvers.newton`
bisect brenth brentq ridder toms748: np.asarray(f(lambda z: z * z - W[0], 0.0, 5.0, xtol=1e-14)) | by
  `nb.solvers.root_scalar`
root_scalar: np.asarray(f(lambda z: z * z - W[0], bracket=(0.0, 5.0),
  xtol=1e-14).root) | as `nb.solvers.root_scalar`
fsolve: f(lambda z: z * z - W, np.ones(5), xtol=1e-13) | by `nb.solvers.root`
root: f(lambda z: z * z - W, np.ones(5), tol=1e-13).x | as `nb.solvers.root`
fixed_point: f(lambda z: np.cos(W[0] * z), 0.5, xtol=1e-13) | as `nb.solvers.fixed_point`
minimize: f(lambda z: np.sum((z - W) ** 2 * R), np.zeros(5), jac=lambda z: 2 * (z - W) * R, tol=1e-12).x | as
  `nb.solvers.minimize`
least_squares: f(lambda z: z - W, np.zeros(5)).x | as `nb.solvers.least_squares`
curve_fit: f(lambda t, a: a * t, R, W[0] * R, p0=[1.0])[0] | as `nb.solvers.curve_fit`
minimize_scalar: f(lambda z: np.cosh(z - W[0]) + 0.1 * z * W[1], tol=1e-12).x; f(lambda z, a: (z - a) ** 2,
  bounds=(W[1] - 5.0, 5.0), args=(W[0],), options={"xatol": 1e-12}).x | as `nb.solvers.minimize_scalar`
fminbound: f(lambda z: (z - W[0]) ** 2, -3.0, 3.0, xtol=1e-12) | by `minimize_scalar`
brent golden: f(lambda z: (z - W[0]) ** 2 + z**4, tol=1e-10) | by `minimize_scalar`
fmin: f(lambda z: np.sum((z - W[:2]) ** 2 * R[:2]), np.zeros(2), xtol=1e-9, ftol=1e-16, disp=False) | by `minimize`
fmin_powell: f(lambda z: np.sum((z - W[:2]) ** 2 * R[:2]), np.zeros(2), xtol=1e-9, ftol=1e-16, disp=False) | by
  `minimize`
fmin_bfgs fmin_cg: f(lambda z: np.sum((z - W) ** 2 * R), np.zeros(5), lambda z: 2 * (z - W) * R, gtol=1e-11,
  disp=False) | by `minimize`
fmin_ncg: f(lambda z: np.sum((z - W) ** 2 * R), np.zeros(5), lambda z: 2 * (z - W) * R, fhess=lambda z: np.diag(2 * R),
  avextol=1e-14,
  disp=False) | by `minimize`
fmin_l_bfgs_b: f(lambda z: (np.sum((z - W) ** 2 * R), 2 * (z - W) * R), np.zeros(5), pgtol=1e-12, factr=0.0)[0] | by
  `minimize`
fmin_tnc: f(lambda z: (np.sum((z - W) ** 2 * R), 2 * (z - W) * R), np.zeros(5), messages=0, ftol=1e-30,
  xtol=1e-30, pgtol=1e-12, maxfun=500)[0] | by `minimize`
fmin_slsqp: f(lambda z: np.sum((z - W) ** 2 * R), np.zeros(5), fprime=lambda z: 2 * (z - W) * R, acc=1e-25, iprint=0) |
  by `minimize`, without constraints
basinhopping: f(lambda z: np.sum((z - W) ** 2 * R), np.zeros(5), niter=2, rng=1).x | the minimum that it finds
differential_evolution: f(lambda z: np.sum((z - W[:2]) ** 2), [(-3.0, 3.0)] * 2, rng=1, tol=1e-9).x | the minimum
  that it finds
dual_annealing: f(lambda z: np.sum((z - W[:2]) ** 2), [(-3.0, 3.0)] * 2, rng=1, maxiter=30).x | the minimum
  that it finds
shgo: f(lambda z: np.sum((z - W[:2]) ** 2), [(-3.0, 3.0)] * 2).x | the minimum that it finds
leastsq: f(lambda z: z - W * R, np.zeros(5))[0] | by `least_squares`
nnls: f(M, Z[:3] - 1.0)[0]
lsq_linear: f(M, Z[:3], bounds=(-0.1, 0.4)).x; f(A.T, V[:4]).x
broyden1 broyden2 anderson: f(lambda z: z * R * 0.5 - W, W, f_tol=1e-12) | by `root`
newton_krylov: f(lambda z: z * z - W, np.ones(5), f_tol=1e-12) | by `root`
linearmixing: f(lambda z: W - z * 0.5, W, alpha=1.5, f_tol=1e-12) | by `root`
diagbroyden: f(lambda z: W - z * 0.5, W, alpha=2.0, f_tol=1e-12) | by `root`
excitingmixing: f(lambda z: W - z * 0.5, W, alpha=1.0, f_tol=1e-12) | by `root`
rosen rosen_der: f(W)
rosen_hess: f(W)
rosen_hess_prod: f(W, V)
"""
OPTIMIZE["constant"] = """
OptimizeResult RootResults show_options linprog_verbose_callback Bounds LinearConstraint NonlinearConstraint
"""
OPTIMIZE["no"] = """
fmin_cobyla: with constraints; take `minimize` with SLSQP
bracket line_search brute direct: they stop away from a minimum
isotonic_regression: a fit with ties
linprog milp linear_sum_assignment quadratic_assignment: solutions that jump
approx_fprime check_grad: differences; nbgrad.check_grads has derivatives
BFGS SR1 HessianUpdateStrategy BroydenFirst InverseJacobian KrylovJacobian LbfgsInvHessProduct: parts of solvers
"""

SPARSE: dict[str, str] = {}
SPARSE["constant"] = """
bsr_array bsr_matrix dia_array dia_matrix expand_dims eye eye_array find get_index_dtype identity
issparse isspmatrix isspmatrix_bsr isspmatrix_coo isspmatrix_csc isspmatrix_csr isspmatrix_dia isspmatrix_dok
isspmatrix_lil kronsum load_npz permute_dims rand random random_array safely_cast_index_arrays
save_npz sparray spdiags spmatrix swapaxes
"""
SPARSE["source"] = """
coo_array coo_matrix csr_array csr_matrix csc_array csc_matrix: f((V, (K, K // 2)), shape=(5, 3)).toarray();
  f(M).tocsr() @ f(A).tocsc() @ Z; f(M).tocsr()[1:, [2, 0]].sum(axis=1); (f(M) - 2.0 * f(S).T).diagonal() | values by
  entries, and what is done with them: [sparse.md](sparse.md)
lil_array lil_matrix dok_array dok_matrix: f(M).tocsr() @ f(A).tocsc() @ Z; (f(M) - 2.0 * f(S).T).diagonal() | elements
  can be set to recorded values
hstack vstack: f([sparse.csr_array(M), S, sparse.eye_array(3)]).toarray()
block_diag: f([A, M]).toarray()
block_array bmat: f([[M, None], [S, N]]).toarray()
tril triu: f(M, 1).toarray()
diags diags_array: f([V, V[1:]], offsets=[0, 1]).toarray()
kron: f(A, D2).toarray()
"""
SPARSE_LINALG: dict[str, str] = {}
SPARSE_LINALG["constant"] = """
LaplacianNd LinearOperator SuperLU aslinearoperator is_sptriangular spbandwidth spilu use_solver
"""
SPARSE_LINALG["source"] = """
cg: f(S @ S + np.eye(3), V3, rtol=1e-13)[0] | by `nb.solvers.linear_solve`
minres: f(S + S.T, V3, rtol=1e-15)[0] | by `nb.solvers.linear_solve`
gmres bicgstab cgs tfqmr lgmres gcrotmk bicg qmr: f(np.array([[4.0, 1.0, 0.0], [0.5, 3.0, 1.0], [0.0, 0.2, 5.0]]), V3,
  rtol=1e-13)[0] | by
  `nb.solvers.linear_solve`
spsolve: f(M, V3); f(M, N) | by SuperLU, whose factors the derivative uses again
lsqr lsmr: f(A, W[:3], atol=1e-14, btol=1e-14)[0]; f(A.T, W[:4], atol=1e-14, btol=1e-14)[0]; f(A.T, W[:4], W[4],
  atol=1e-14, btol=1e-14)[0] | the shortest fit, where there are fewer equations than unknowns
inv: f(sparse.csc_array(M)).toarray() | a matrix of all elements
expm: f(sparse.csc_array(M)).toarray() | of the full matrix
expm_multiply: f(sparse.csc_array(M), V3); f(sparse.eye_array(3, format="csc") * 0.7, V3); f(M, N, 0.1, 0.9, 3) | of the
  full matrix, if that is recorded
splu: f(M).solve(V3); f(M).solve(N, "T")
factorized: f(M)(V3)
eigsh: f(S + S.T, 2)[0]; f(S + S.T, 1, which="SA")[1] ** 2 | of simple eigenvalues; values alone need no system
norm: f(sparse.csr_array(M)); f(sparse.csr_array(A), 1); f(sparse.csr_array(A), axis=1); f(sparse.csr_array(M), 2)
spsolve_triangular: f(np.tril(M), V3); f(np.triu(M), V3, lower=False)
"""
SPARSE_LINALG["no"] = """
eigs lobpcg svds: ARPACK and LOBPCG, compiled
funm_multiply_krylov matrix_power onenormest: functions of sparse matrices; a product of a sparse matrix with a Tensor
  works
"""

SPATIAL: dict[str, str] = {}
SPATIAL["source"] = """
distance_matrix minkowski_distance minkowski_distance_p: f(A, P)
procrustes: f(A, P)[2]
geometric_slerp: f(V3 / np.sqrt(V3 @ V3), np.eye(3)[0], np.array([0.2, 0.7]))
"""
SPATIAL["constant"] = """
ConvexHull Delaunay HalfspaceIntersection KDTree Rectangle SphericalVoronoi Voronoi cKDTree convex_hull_plot_2d
delaunay_plot_2d tsearch voronoi_plot_2d
"""
DISTANCE: dict[str, str] = {}
DISTANCE["source"] = """
cdist: f(A, P); f(A, P, "cosine"); f(A, P, "correlation"); f(A, P, "minkowski", p=3.0, w=Z); f(A, P, "mahalanobis",
  VI=np.eye(4)); f(P, P + 0.1, "jensenshannon"); f(A, P, "seuclidean"); f(A, P, "canberra"); f(A, P, "chebyshev")
pdist: f(A); f(A, "sqeuclidean"); f(A, "cityblock"); f(P, "braycurtis")
squareform: f(f(V3)); f(V3)
braycurtis canberra chebyshev cityblock correlation cosine euclidean jensenshannon minkowski sqeuclidean:
  np.asarray(f(W, R))
mahalanobis: np.asarray(f(V3, U[:3], np.eye(3)))
seuclidean: np.asarray(f(W, R, [1.0, 2.0, 1.0, 3.0, 1.0]))
"""
DISTANCE["constant"] = """
dice directed_hausdorff hamming is_valid_dm is_valid_y jaccard num_obs_dm num_obs_y rogerstanimoto russellrao
  sokalsneath
yule
"""
CLUSTER: dict[str, str] = {}
CLUSTER["source"] = """
whiten: f(A)
"""
CLUSTER["constant"] = """
kmeans kmeans2 vq
"""
HIERARCHY: dict[str, str] = {}
HIERARCHY["constant"] = """
ClusterNode DisjointSet average centroid complete cophenet correspond cut_tree dendrogram fcluster fclusterdata
from_mlab_linkage inconsistent is_isomorphic is_monotonic is_valid_im is_valid_linkage leaders leaves_list linkage
maxRstat maxdists maxinconsts median num_obs_linkage optimal_leaf_ordering set_link_color_palette single
  to_mlab_linkage
to_tree ward weighted
"""

STATS: dict[str, str] = {}
STATS["distribution"] = """
norm uniform expon cauchy laplace logistic gumbel_r gumbel_l rayleigh maxwell halfnorm halfcauchy halflogistic wald
hypsecant arcsine levy moyal:
gamma: 2.3
erlang: 2.0
chi2: 3.3
chi: 2.5
beta: 1.7 2.6
t: 3.4
f: 3.0 5.0
lognorm: 0.7
weibull_min weibull_max powerlaw: 1.7
pareto lomax fisk invgamma: 2.2
triang: 0.4
genpareto genextreme: 0.3
loguniform reciprocal: 0.4 6.0
truncnorm: -0.7 2.1
truncexpon: 3.0
skewnorm: 1.3
invgauss: 0.8
nakagami loggamma: 1.4
gennorm: 1.6
johnsonsu: 0.4 1.3
gompertz: 0.7
burr12: 1.6 2.1
nct: 3.3 0.6
ncx2: 3.3 0.8
"""
STATS["density"] = """
vonmises: 1.4
rice: 0.8
exponnorm: 1.3
"""
STATS["discrete"] = """
poisson: 2.3
bernoulli geom: 0.3
nbinom: 3.0 0.4
binom: 5.0 0.4
zipf: 2.3
"""
STATS["source"] = """
multivariate_normal: f.logpdf(A[:, :3], V3, S + np.eye(3)); f(V3, S + np.eye(3)).pdf(A[:, :3])
dirichlet: f.logpdf(np.array([0.2, 0.3, 0.5]), W[:3])
gaussian_kde: f(L)(U); f(A)(A[:, :2] + 0.1); f(L, 0.4).logpdf(U)
multivariate_t: f.logpdf(V3, np.zeros(3), np.eye(3), df=4)
multinomial: f.logpmf([1, 2, 1], 4, W[:3] / np.sum(W[:3]))
wishart: f.logpdf(S + np.eye(3), 4, np.eye(3))
ncf: f.logpdf(W, 3.0, 4.0, 1.0); f.cdf(W, 3.0, 4.0, R); f.ppf(U, 3.0, 4.0, R)
alpha: f.pdf(W, 2.0)
cosine: f.logpdf(V)
dgamma: f.logpdf(V, 1.3)
betabinom: f.logpmf(2, 5, W, 1.0)
mielke: f.cdf(W, 1.2, 2.0)
foldnorm: f.pdf(W, 0.3)
laplace_asymmetric: f.logpdf(V, 1.2)
zscore skew kurtosis sem variation circmean circvar iqr median_abs_deviation: f(L)
gmean hmean entropy gstd gzscore: f(W)
pmean: f(W, 3)
moment: f(V, 3)
kstat: f(L, 2)
boxcox: f(W, 0.3)
boxcox_llf: f(0.3, W); f(0.3, A, axis=1, keepdims=True)
yeojohnson: f(V, 0.3)
yeojohnson_llf: f(0.3, V); f(1.3, A, axis=None)
tmean tvar tstd: f(V, (-9, 9))
trim_mean: f(L, 0.1)
zmap: f(V, W)
expectile: f(L, 0.3)
wasserstein_distance: f(V, W)
pearsonr: f(V, W)[0]
linregress: f(R, V).slope
ttest_1samp: f(V, 0.1).statistic
ttest_ind f_oneway: f(V, W).statistic
describe: f(V).variance
differential_entropy: f(L)
lmoment: f(L)
scoreatpercentile: f(L, 30)
quantile: f(L, 0.3)
"""
STATS["constant"] = """
BootstrapMethod CensoredData MonteCarloMethod PermutationMethod rv_continuous rv_discrete rv_histogram
  random_correlation
random_table ortho_group special_ortho_group unitary_group uniform_direction
"""
STATS["no"] = """
Binomial Covariance Logistic Mixture Normal Uniform abs exp log make_distribution truncate order_statistic: the new
  infrastructure of distributions, whose objects hold plain arrays
anglit argus betanbinom betaprime boltzmann bradford burr crystalball dlaplace dpareto_lognorm dweibull exponpow
  exponweib fatiguelife foldcauchy gausshyper genexpon gengamma genhalflogistic genhyperbolic geninvgauss
  genlogistic gibrat halfgennorm hypergeom invweibull irwinhall jf_skew_t johnsonsb kappa3 kappa4 ksone kstwo
  kstwobign landau levy_l levy_stable loglaplace logser nchypergeom_fisher nchypergeom_wallenius nhypergeom
  norminvgauss pearson3 planck poisson_binom powerlognorm powernorm randint rdist recipinvgauss rel_breitwigner
  semicircular skellam skewcauchy studentized_range trapezoid truncpareto truncweibull_min tukeylambda vonmises_line
  wrapcauchy yulesimon zipfian: run as SciPy's Python code where that knows no compiled function, and not
  checked here
dirichlet_multinomial invwishart matrix_normal matrix_t multivariate_hypergeom normal_inverse_gamma vonmises_fisher:
  run as SciPy's Python code where that knows no compiled function, and not checked here
alexandergovern anderson anderson_ksamp ansari barnard_exact bartlett bayes_mvs binomtest boschloo_exact
  brunnermunzel bws_test chi2_contingency chisquare combine_pvalues cramervonmises cramervonmises_2samp dunnett
  epps_singleton_2samp false_discovery_control fisher_exact fligner friedmanchisquare goodness_of_fit jarque_bera
  kendalltau kruskal logrank ks_1samp ks_2samp kstest kurtosistest levene mannwhitneyu median_test monte_carlo_test
  mood multiscale_graphcorr mvsdist normaltest page_trend_test permutation_test poisson_means_test power
  power_divergence quantile_test ranksums shapiro skewtest somersd spearmanr spearmanrho tiecorrect
  ttest_ind_from_stats ttest_rel tukey_hsd weightedtau wilcoxon chatterjeexi: tests, whose statistics run as SciPy's
  Python code where they are smooth
binned_statistic binned_statistic_2d binned_statistic_dd bootstrap boxcox_normmax boxcox_normplot circstd cumfreq
  directional_stats ecdf energy_distance fit kstatvar mode obrientransform percentileofscore pointbiserialr ppcc_max
  ppcc_plot probplot rankdata relfreq siegelslopes sigmaclip sobol_indices theilslopes tmax tmin trim1 trimboth tsem
  wasserstein_distance_nd yeojohnson_normmax yeojohnson_normplot: ranks, counts, searches, or
  sampling; not checked here
"""
