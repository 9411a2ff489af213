"""The facts about the public functions of SciPy's modules: rows, read by scipy_surface.py.

A block belongs to a kind (see `KINDS` there). A row is `names: call; call | remark`: `f` is the function, the other
names are the sample arrays of scipy_surface.py, which become Tensors if they hold floats. Lines that begin with blanks
belong to the row before. The rows of solvers
(scipy.optimize, scipy.integrate, scipy.sparse.linalg) say what works today.
"""

from __future__ import annotations

SPECIAL: dict[str, str] = {}
SPECIAL["plain"] = """
expit log_expit exp10 exp2 expm1 cbrt cosm1 sindg cosdg tandg cotdg erf erfc erfcx erfi dawsn: f(V)
expi exp1 i0 i0e i1 i1e j0 j1 y0 y1 k0 k0e k1 k1e log1p gammaln gamma rgamma psi digamma entr: f(W)
ber bei ker kei berp beip kerp keip exprel spence loggamma: f(W)
erfinv: f(U - 0.5)
erfcinv ndtri logit ellipk ellipe ellipkm1: f(U)
ndtr log_ndtr wrightomega: f(V)
ndtri_exp: f(-W)
xlogy xlog1py rel_entr kl_div powm1: f(W, R)
boxcox boxcox1p: f(R, V)
inv_boxcox inv_boxcox1p: f(V, U * 0.3)
beta betaln binom poch agm huber pseudo_huber: f(W, R)
betainc betaincc betaincinv betainccinv: f(W, R, U)
gammainc gammaincc: f(W, R)
gammaincinv gammainccinv: f(W, U)
stdtr: f(W, V)
stdtrit: f(W + 1.0, U)
chdtr chdtrc: f(R, W)
chdtri: f(R, U)
fdtr fdtrc: f(R, W, W + 0.3)
fdtri: f(R, W, U)
gdtr gdtrc: f(R, W, W + 0.3)
gdtrix: f(R, W, U)
pdtr pdtrc: f(K, W)
bdtr bdtrc nbdtr nbdtrc: f(K, 5, U)
owens_t: f(V, U)
voigt_profile: f(V, W, R)
radian: f(V, W, R)
ellipkinc ellipeinc: f(W, U)
hyp0f1: f(1.5, W)
hyp1f1: f(0.7, 1.5, V)
hyp2f1: f(0.7, 0.4, 1.5, U)
hyperu: f(0.7, 0.4, W)
expn: f(2, W)
zeta: f(2.5, W); f(W + 1.3, W); f(V) | of one argument, by the functional equation below 0
zetac: f(V)
smirnov: f(5, U)
smirnovi: f(5, U)
nctdtr: f(R, V, W)
nctdtrit: f(R + 1.0, V, U)
nctdtridf: f(U * 0.15 + 0.8, 0.5, 3.0)
nctdtrinc: f(2.5, U, W)
ncfdtr: f(2.5, 3.5, R, W) | second derivatives by degrees of freedom NaN
ncfdtri: f(2.5, 3.5, R, U) | second derivatives by degrees of freedom NaN
pro_cv obl_cv: f(1, 3, W)
pro_ang1 obl_ang1: f(1, 3, 1.3, U) | by the argument; by the parameter NaN
pro_ang1_cv: f(1, 3, 1.3, 12.79201144749117, U) | by the argument; by the parameters NaN
obl_ang1_cv: f(1, 3, 1.3, 11.21581901550181, U) | by the argument; by the parameters NaN
pro_rad1: f(1, 3, 1.3, W + 1.0) | by the argument; by the parameter NaN
obl_rad1: f(1, 3, 1.3, W) | by the argument; by the parameter NaN
pro_rad1_cv: f(1, 3, 1.3, 12.79201144749117, W + 1.0) | by the argument; by the parameters NaN
obl_rad1_cv: f(1, 3, 1.3, 11.21581901550181, W) | by the argument; by the parameters NaN
pro_rad2 obl_rad2: f(1, 3, 1.3, W + 2.0) | by the argument; below 2, SciPy itself has few digits
pro_rad2_cv: f(1, 3, 1.3, 12.79201144749117, W + 2.0) | by the argument; below 2, SciPy itself has few digits
obl_rad2_cv: f(1, 3, 1.3, 11.21581901550181, W + 2.0) | by the argument; below 2, SciPy itself has few digits
kelvin: np.real(f(W)[0] + f(W)[3]); np.imag(f(W)[1] + f(W)[2])
modfresnelp modfresnelm: np.real(f(V)[0]); np.imag(f(V)[1])
chndtridf: f(W + 2.0, U * 0.5 + 0.1, 0.7)
jv jn jve yv yve iv ive kv kve struve modstruve: f(1.5, W) | by the argument; by the order NaN
yn kn: f(K, W)
hankel1 hankel2: np.abs(f(1.5, W))
wofz: np.real(f(V + 1j * W))
fresnel sici shichi: f(W)
airy: f(V)
eval_legendre eval_chebyt eval_chebyu eval_laguerre eval_hermite eval_hermitenorm: f(K, U)
eval_gegenbauer eval_genlaguerre: f(K, 0.7, U) | by the argument; by the parameters NaN
eval_jacobi: f(K, 0.7, 0.3, U) | by the argument; by the parameters NaN
lambertw: np.real(f(W))
ellipj: f(V, U)
elliprc: f(W, R)
elliprd elliprf elliprg: f(W, R, U)
elliprj: f(W, R, U, W + 0.1)
eval_chebyc eval_chebys eval_sh_chebyt eval_sh_chebyu eval_sh_legendre: f(K, U)
eval_sh_jacobi: f(K, 2.7, 1.3, U) | by the argument; by the parameters NaN
airye iti0k0 itj0y0 it2i0k0 it2j0y0 itstruve0 it2struve0 itmodstruve0 kolmogorov: f(W)
itairy: f(W)[2]
kolmogi: f(U)
besselpoly: f(W, 1.3, 0.7) | by the first argument; by the others NaN
hankel1e hankel2e: np.abs(f(1.5, W))
lpmv: f(1, 2.3, U) | by the argument; by the degree NaN
wright_bessel log_wright_bessel: f(0.5, 1.2, W) | by the argument; by the parameters NaN
pbdv pbvv pbwa: f(0.7, W) | by the argument; by the order NaN
mathieu_a mathieu_b: f(2, W)
mathieu_cem mathieu_sem mathieu_modcem1 mathieu_modcem2 mathieu_modsem1 mathieu_modsem2: f(2, 1.5, W) | by the
  argument; by the parameter NaN
chndtr: f(W, 1.5, R); f(2.0, W, R)
chndtrix: f(U, 1.5, R)
chndtrinc: f(W + 5.0, 1.5, U * 0.8)
tklmbda: f(V * 0.3, W)
bdtri nbdtri: f(K, 5, U)
bdtrik nbdtrik: f(U, 7.0, 0.4)
bdtrin nbdtrin: f(2.0, U, 0.4)
pdtri: f(K, U)
pdtrik: f(U, W + 3.0)
btdtria: f(U, R, 0.4)
btdtrib: f(R, U, 0.4)
gdtria: f(U, R, W)
gdtrib: f(R, U, W)
stdtridf: f(U * 0.1 + 0.75, W + 1.0)
chdtriv: f(U, W)
fdtridfd: f(3.0, U * 0.1 + 0.6, 1.7)
nrdtrimn: f(U, R, W)
nrdtrisd: f(R, U * 0.3 + 0.6, W + 3.0)
"""
SPECIAL["source"] = """
logsumexp: f(A); f(A, axis=1, b=P); f(A, b=A, return_sign=True, keepdims=True)
softmax log_softmax: f(A, axis=1)
spherical_jn spherical_yn spherical_in spherical_kn: f(K, W) | not with `derivative=True`
polygamma: f(2, W)
multigammaln: f(W + 2.0, 3)
comb perm: f(R + 2.0, W)
factorial: f(W)
diric: f(V, 3)
sinc softplus: f(V)
jvp yvp ivp kvp: f(1.5, W)
legendre_p: f(K, U) | without `diff_n`
assoc_legendre_p: f(K, 1, U); f(4, -2, U, norm=True) | real numbers between -1 and 1, without `diff_n`
sph_legendre_p: f(4, K, W) | without `diff_n`
sph_harm_y: np.real(f(4, K, W, V)); np.imag(f(4, K, 0.0, V)) | without `diff_n`
h1vp h2vp: np.abs(f(1.5, W))
"""
SPECIAL["constant"] = """
errstate geterr seterr round gammasgn bernoulli euler factorial2 factorialk stirling2 ai_zeros bei_zeros beip_zeros
  ber_zeros
berp_zeros bi_zeros erf_zeros fresnel_zeros fresnelc_zeros fresnels_zeros jn_zeros jnjnp_zeros jnp_zeros jnyn_zeros
kei_zeros keip_zeros kelvin_zeros ker_zeros kerp_zeros y0_zeros y1_zeros y1p_zeros yn_zeros ynp_zeros
c_roots cg_roots h_roots he_roots j_roots js_roots l_roots la_roots p_roots ps_roots s_roots t_roots ts_roots u_roots
us_roots roots_chebyc roots_chebys roots_chebyt roots_chebyu roots_gegenbauer roots_genlaguerre roots_hermite
roots_hermitenorm roots_jacobi roots_laguerre roots_legendre roots_sh_chebyt roots_sh_chebyu roots_sh_jacobi
roots_sh_legendre chebyc chebys chebyt chebyu gegenbauer genlaguerre hermite hermitenorm jacobi laguerre legendre
sh_chebyt sh_chebyu sh_jacobi sh_legendre
"""
SPECIAL["no"] = """
ncfdtrinc ncfdtridfn ncfdtridfd: SciPy finds them to four digits; take `nb.solvers.root_scalar` of ncfdtr
mathieu_even_coef mathieu_odd_coef: coefficients of series
assoc_legendre_p_all legendre_p_all sph_harm_y_all sph_legendre_p_all: all degrees and orders at once; the functions of
  single ones take arrays of them
assoc_laguerre ellip_harm ellip_harm_2 ellip_normal lmbda lqmn lqn obl_cv_seq
  pbdn_seq pbdv_seq pbvv_seq pro_cv_seq riccati_jn riccati_yn: compiled code that gives plain numbers
"""

LINALG: dict[str, str] = {}
LINALG["source"] = """
inv det pinv svdvals expm norm: f(M)
logm sqrtm: f(S)
fractional_matrix_power: f(S, 0.3)
coshm cosm sinhm sinm tanhm tanm: f(M * 0.3)
cholesky pinvh: f(S + S.T)
eigvalsh: f(S + S.T); f(M, S, type=2); f(M, S, type=3, lower=False); f(M, S, subset_by_index=[1, 2])
eigvals: np.abs(f(M))
eigh: f(S + S.T)[0]; f(M, S)[0]; np.abs(f(M, S)[1]); np.abs(f(M, S, type=3)[1]); f(S, eigvals_only=True)
eig: np.abs(f(M)[0])
svd: f(M, compute_uv=False)
qr: np.abs(f(M)[1])
lu: f(M)[1:]; f(M, permute_l=True)
solve: f(M, V3); f(S + N, V3, assume_a="sym"); f(S + S.T, V3, assume_a="pos", lower=True);
  f(M, V3, transposed=True); f(M, V3, assume_a="tridiagonal")
solve_triangular: f(M, V3, lower=True)
lstsq: f(A.T, W4)[0]
cho_factor: np.triu(f(S + S.T)[0])
cho_solve: f((M, True), V3)
lu_factor: f(M)[0]
lu_solve: f((M, np.arange(3)), V3)
solve_sylvester: f(M, S, N)
solve_continuous_lyapunov solve_lyapunov: f(M, S)
solve_discrete_lyapunov: f(M / 9, S)
solve_banded: f((1, 1), B, V)
solveh_banded: f(B[1:], V, lower=True); f(B[:2], V)
cholesky_banded: f(B[1:], lower=True); f(B[:2])
cho_solve_banded: f((B[1:], True), V); f((B[:2], False), V)
solve_toeplitz: f((W + np.eye(5)[0] * 9, V), V); f(W + np.eye(5)[0] * 9, V[:, None])
matmul_toeplitz: f((W, V), V)
solve_circulant: f(W + np.eye(5)[0] * 9, V)
toeplitz hankel: f(W, V); f(V)
circulant companion fiedler fiedler_companion: f(W)
convolution_matrix: f(V, 3)
block_diag: f(M, V, 2.0)
leslie: f(W, U[1:])
khatri_rao: f(M, N)
eigvalsh_tridiagonal: f(V, W[1:])
eigh_tridiagonal: f(V, W[1:])[0]
orthogonal_procrustes: f(M, N)[1]
subspace_angles: f(A.T[:, :1], A.T[:, 1:])
polar: f(M)[0]
expm_frechet: f(M * 0.3, N)
expm_cond: f(M * 0.1)
"""
LINALG["constant"] = """
bandwidth issymmetric ishermitian find_best_blas_type get_blas_funcs get_lapack_funcs hadamard helmert hilbert
  invhilbert
invpascal pascal dft diagsvd
"""
LINALG["no"] = """
eig_banded eigvals_banded: compiled code; make the full matrix and use eigh
schur rsf2csf cdf2rdf hessenberg qz ordqz cossin ldl rq qr_delete qr_insert qr_multiply qr_update matrix_balance:
  LAPACK's factorisations, which have no derivative here
signm funm solve_continuous_are solve_discrete_are: they rest on Schur's form, which has no derivative here
null_space orth: a basis that is not unique
clarkson_woodruff_transform: random and sparse
"""

LAPACK: dict[str, str] = {}
LAPACK["source"] = """
dgtsv: f(W[1:] * 0.1, W + 2.0, U[1:], V)[3] | the solution; the factors are None
dptsv: f(W + 2.0, U[1:], V)[2] | the solution; the factors are None
"""

FFT: dict[str, str] = {}
FFT["source"] = """
fft ifft hfft fft2 ifft2 fftn ifftn hfft2 hfftn: np.abs(f(A))
rfft ihfft rfft2 rfftn ihfft2 ihfftn: np.abs(f(A))
irfft irfft2 irfftn: f(A)
dct idct dst idst dctn idctn dstn idstn: f(A); f(A, type=3, norm="ortho")
fftshift ifftshift: f(A)
fht ifht: f(W[:4], 0.1, 1.5)
"""
FFT["constant"] = """
fftfreq rfftfreq next_fast_len prev_fast_len fhtoffset get_workers set_workers register_backend set_backend
set_global_backend skip_backend
"""

SIGNAL: dict[str, str] = {}
SIGNAL["source"] = """
convolve correlate: f(L, V); f(L, V, "same"); f(V, L, "valid"); f(A, M); f(A, M, "same", method="fft")
fftconvolve oaconvolve: f(L, V); f(A, M[:, :1], "same", axes=0)
convolve2d correlate2d: f(A, M); f(A, M, "same", "symm"); f(A, M, "full", "wrap"); f(M, A[:2, :2], "valid")
lfilter: f(W, np.append(R[4:], V / 3), L); f(V[:2], np.append(R[4:], U), L, zi=V); f(W[:2], W[4:], A, axis=0)
lfilter_zi: f(V[:3], R[:3])
lfiltic: f(V[:3], R[:3], V[:2])
sosfilt: f([[0.2, 0.4, 0.2, 1.0, -0.5, 0.3]], L); f([[0.2, 0.4, 0.2, 1.0, -0.5, 0.3]], L, zi=H[None, :2])
filtfilt: f([0.2, 0.3], [1.0, -0.4], L); f(U[:2], [1.0, -0.4], L, padtype="even")
sosfiltfilt: f([[0.2, 0.4, 0.2, 1.0, -0.5, 0.3]], L)
sosfilt_zi: f(np.concatenate([V[:3], np.ones(1), U[:2]])[None])
upfirdn: f(V, L, 3, 2)
resample: f(L, 10); f(L, 23)
resample_poly: f(L, 3, 2)
decimate: f(L, 2, n=2, zero_phase=False); f(L, 2, ftype="fir")
savgol_filter: f(L, 5, 2); f(L, 5, 2, mode="nearest")
detrend: f(L); f(L, type="constant")
hilbert: np.abs(f(L))
hilbert2: np.abs(f(A))
envelope: f(L)
medfilt: f(L, 3)
medfilt2d: f(A, 3)
wiener: f(L, 3)
deconvolve: f(L, np.append(R[4:], U[:2]))[0]
welch csd: np.abs(f(L, *[L**2][: f.__name__ == "csd"], nperseg=8)[1])
periodogram: f(L)[1]
coherence: f(L, L**2, nperseg=8)[1]
spectrogram: f(L, nperseg=8)[2]
stft: np.abs(f(L, nperseg=8)[2])
lombscargle: f(np.arange(16.0), L, U)
czt: np.abs(f(V))
zoom_fft: np.abs(f(V, [0.1, 0.4], m=4))
freqz freqs: np.abs(f(W[:2], R[:2], U)[1])
gauss_spline: f(V, 3)
gausspulse: f(V)
chirp: f(U, 1.0, 2.0, 3.0)
sawtooth: f(V)
cspline1d qspline1d: f(L)
minimum_phase: f(W)
bilinear: f(W[:2], R[:2])
tf2zpk: np.abs(f(W[:2], R[:3])[1])
zpk2tf: f(V[:2], W[:2], 1.0)[0]
sos2tf: f(np.concatenate([V[:3], np.ones(1), U[:2]])[None])[0]
ss2tf: f(M[:2, :2], M[:2, 2:], M[2:, :2], M[2:, 2:])[0]
cont2discrete: f((M[:2, :2], M[:2, 2:], M[2:, :2], M[2:, 2:]), 0.1)[0]
lsim: f(([1.0], [1.0, 0.4]), L, np.arange(16.0))[1]
vectorstrength: f(L, 2.0)[0]
"""
SIGNAL["constant"] = """
band_stop_obj bessel besselap buttap butter buttord cheb1ap cheb1ord cheb2ap cheb2ord cheby1 cheby2 check_COLA
  check_NOLA
choose_conv_method closest_STFT_dual_window correlation_lags ellip ellipap ellipord firls firwin firwin2 firwin_2d
gammatone get_window iircomb iirdesign iirfilter iirnotch iirpeak kaiser_atten kaiser_beta kaiserord max_len_seq remez
savgol_coeffs unit_impulse czt_points argrelextrema argrelmax argrelmin find_peaks find_peaks_cwt peak_prominences
peak_widths unique_roots square
"""
SIGNAL["no"] = """
CZT ZoomFFT ShortTimeFFT StateSpace TransferFunction ZerosPolesGain lti dlti: made of constants; their methods take
  recorded signals where SciPy's code for them is Python
symiirorder1 symiirorder2 sepfir2d cspline2d qspline2d cspline1d_eval qspline1d_eval order_filter spline_filter
  istft: compiled code, or arrays that are written from elsewhere
residue residuez invres invresz: they group roots
abcd_normalize bilinear_zpk bode dbode dfreqresp dimpulse dlsim dstep findfreqs freqresp freqs_zpk freqz_sos
  freqz_zpk sosfreqz group_delay impulse step lp2bp lp2bp_zpk lp2bs lp2bs_zpk lp2hp lp2hp_zpk lp2lp lp2lp_zpk
  normalize place_poles sos2zpk ss2zpk tf2sos tf2ss zpk2sos zpk2ss sweep_poly: design and simulation of systems, run
  as SciPy's Python code and not checked here
"""

NDIMAGE: dict[str, str] = {}
NDIMAGE["source"] = """
correlate1d convolve1d: f(A, V3, axis=0, mode="mirror", origin=1); f(A, W4, mode="constant", cval=0.3)
correlate convolve: f(A, M, mode="nearest"); f(A, M[:2], mode="wrap", origin=(0, -1))
gaussian_filter1d: f(A, 0.7); f(A, 0.7, axis=0, order=1); f(A, U[0], radius=2)
gaussian_filter: f(A, 0.7, mode="wrap"); f(A, (0.4, 0.8), order=(1, 2))
uniform_filter1d: f(A, 3, mode="constant")
uniform_filter: f(A, (2, 3))
sobel prewitt laplace: f(A)
gaussian_laplace gaussian_gradient_magnitude: f(A, 0.7)
maximum_filter minimum_filter median_filter: f(A, 3)
maximum_filter1d minimum_filter1d: f(A, 2, axis=0)
rank_filter: f(A, 2, (2, 2)); f(A, -1, 3)
percentile_filter: f(A, 30, 3); f(A, 100, 2)
spline_filter: f(A, 3, mode="reflect")
spline_filter1d: f(A, 4, axis=0)
map_coordinates: f(A, D); f(A, D, order=2, mode="nearest"); f(A, D * 3 - 2, mode="nearest", prefilter=False);
  f(A, D, order=5, mode="mirror"); f(A, D, order=1, mode="grid-constant", cval=0.4); f(A, D, mode="grid-wrap")
shift: f(A, U[:2]); f(A, U[:2], order=2, mode="wrap")
zoom: f(A, 1.6); f(A, (0.7, 2.0), order=1, mode="nearest"); f(A, 2.0, grid_mode=True, mode="grid-constant")
affine_transform: f(A, 0.1 * M[:2, :2] + 0.7 * np.eye(2), U[:2] + 0.1, mode="reflect")
rotate: f(A, 30.0); f(A, 30.0 * U[0], reshape=False, mode="mirror")
distance_transform_edt: f(A > 0.2) * A; f(A > 0.2, sampling=(0.5, 2.0), return_indices=True)[0] * A | a constant
distance_transform_cdt distance_transform_bf: f(A > 0.2, "taxicab") * A | a constant
binary_erosion binary_dilation binary_opening binary_closing: f(A > 0.2, np.ones((2, 1)), mask=A < 1.0) * A | a constant
binary_propagation binary_fill_holes binary_hit_or_miss: f(A > 0.2) * A | a constant
label: f(A > 0.2)[0] * A | a constant
mean variance standard_deviation: f(A)
sum: f(A)
center_of_mass: f(P)
"""
NDIMAGE["constant"] = """
find_objects generate_binary_structure histogram iterate_structure value_indices watershed_ift
"""
NDIMAGE["no"] = """
generic_filter generic_filter1d generic_gradient_magnitude generic_laplace geometric_transform vectorized_filter: a
  Python function in a compiled loop, or results written to an array; map_coordinates and numpy do it
fourier_ellipsoid fourier_gaussian fourier_shift fourier_uniform: compiled code; multiply the spectrum by numpy
black_tophat grey_closing grey_dilation grey_erosion grey_opening morphological_gradient morphological_laplace
  white_tophat: compiled code;
  maximum_filter, minimum_filter and median_filter work
extrema labeled_comprehension maximum maximum_position median minimum minimum_position sum_labels: by labels; use
  numpy with the labels as index
"""
