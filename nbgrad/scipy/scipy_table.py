"""The table of SciPy's functions and classes that nbgrad has forms of its own for.

In: nothing. Out: `FUNCTIONS` and `CLASSES`, by SciPy's modules. Called by scipy_calls.py. The functions take SciPy's
parameters under SciPy's names, or those of them that are named here, in this order; SciPy's others must have their
default values. Distributions have rows in distribution_forms.py. SciPy's ufuncs know Tensors by NumPy's protocol and
need no row, and functions that SciPy writes in Python by NumPy's run as they are (nbgrad/source/scipy_doors.py).
docs/scipy.md says how far each name works.
"""

from __future__ import annotations

from typing import NamedTuple


class Entry(NamedTuple):
    """The place of a function: its module in nbgrad, its name there, the parameters that it takes; all, if empty."""

    module: str
    name: str
    taken: str = ""


def _all(module: str, names: str, taken: str = "") -> dict[str, Entry]:
    return {name: Entry(module, name, taken) for name in names.split()}


FUNCTIONS: dict[str, dict[str, Entry]] = {
    "scipy.linalg": {
        **_all("numpy.linalg", "inv det pinv svdvals eigvals", "a"),
        **_all(
            "scipy.dense_matrices",
            "eig eigh eigvalsh svd qr cholesky solve lstsq "
            "fractional_matrix_power solve_continuous_lyapunov eigh_tridiagonal eigvalsh_tridiagonal",
        ),
        **_all("numpy.linalg", "norm", "a ord axis keepdims"),
        **_all("numpy", "solve_triangular", "a b trans lower unit_diagonal"),
        **_all("numpy", "cho_factor", "a lower"),
        **_all("numpy", "cho_solve", "c_and_lower b"),
        **_all("numpy", "lu_factor", "a"),
        **_all("numpy", "lu_solve", "lu_and_piv b trans"),
        **_all("numpy", "lu", "a permute_l p_indices"),
        **_all("numpy", "expm logm sqrtm", "A"),
        **_all("numpy", "solve_sylvester", "a b q"),
        **_all("numpy", "solve_banded", "l_and_u ab b"),
        **_all(
            "scipy.structured_matrices",
            "toeplitz circulant hankel block_diag solveh_banded cholesky_banded cho_solve_banded solve_toeplitz",
        ),
    },
    "scipy.linalg.lapack": _all("scipy.structured_matrices", "dgtsv dptsv"),
    "scipy.special": {
        **_all("scipy.special_sums", "logsumexp softmax log_softmax multigammaln"),
        **_all("functions.elementwise.spherical_harmonics", "legendre_p assoc_legendre_p sph_legendre_p sph_harm_y"),
    },
    "scipy.integrate": _all("numpy", "trapezoid", "y x dx axis"),
    "scipy.fft": {
        **_all("numpy.fft", "fft ifft rfft irfft hfft ihfft", "x n axis norm"),
        **_all("numpy.fft", "fft2 ifft2 fftn ifftn rfft2 irfft2 rfftn irfftn", "x s axes norm"),
        **_all("functions.analysis.fft_functions", "hfftn ihfftn", "x s axes norm"),
        "hfft2": Entry("functions.analysis.fft_functions", "hfftn", "x s axes norm"),
        "ihfft2": Entry("functions.analysis.fft_functions", "ihfftn", "x s axes norm"),
        **_all("functions.analysis.cosine_transforms", "dct idct dst idst", "x type n axis norm orthogonalize"),
        **_all("functions.analysis.cosine_transforms", "dctn idctn dstn idstn", "x type s axes norm orthogonalize"),
    },
    "scipy.signal": {
        **_all(
            "scipy.convolutions",
            "convolve correlate fftconvolve oaconvolve convolve2d correlate2d upfirdn",
        ),
        **_all("scipy.recursive_filters", "lfilter lfilter_zi sosfilt sosfilt_zi medfilt medfilt2d"),
    },
    "scipy.ndimage": {
        **_all(
            "scipy.image_filters",
            "correlate1d convolve1d correlate convolve uniform_filter1d uniform_filter gaussian_filter1d "
            "gaussian_filter sobel prewitt laplace gaussian_laplace gaussian_gradient_magnitude maximum_filter "
            "minimum_filter median_filter maximum_filter1d minimum_filter1d rank_filter percentile_filter",
        ),
        **_all(
            "scipy.image_points",
            "spline_filter1d spline_filter map_coordinates affine_transform shift zoom rotate",
        ),
        **_all(
            "scipy.image_masks",
            "distance_transform_edt distance_transform_cdt distance_transform_bf binary_erosion binary_dilation "
            "binary_opening binary_closing binary_propagation binary_fill_holes binary_hit_or_miss label",
        ),
    },
    "scipy.interpolate": {
        **_all("scipy.interpolation.spline_bases", "make_interp_spline make_lsq_spline splev splint splrep"),
        **_all("scipy.interpolation.fitpack_splines", "bisplev"),
        **_all("scipy.interpolation.grids", "interpn"),
        **_all("scipy.interpolation.clough_tocher", "griddata"),
    },
    "scipy.stats": _all("scipy.power_transforms", "yeojohnson yeojohnson_llf boxcox_llf"),
    "scipy.spatial.distance": _all("scipy.distances", "cdist pdist squareform"),
    "scipy.sparse": {
        **_all("scipy.sparse_blocks", "hstack vstack block_diag block_array tril triu diags diags_array kron issparse"),
        **_all("scipy.sparse_blocks", "isspmatrix"),
        "bmat": Entry("scipy.sparse_blocks", "block_array"),
    },
    "scipy.sparse.linalg": {
        **_all("scipy.sparse_systems", "spsolve spsolve_triangular"),
        **_all("scipy.sparse_systems", "splu factorized inv", "A"),
        **_all("scipy.sparse_exponentials", "expm expm_multiply"),
        **_all("scipy.sparse_spectra", "eigsh norm"),
    },
}
"""By SciPy's module and the name there. The solvers' rows (scipy.optimize, integrate, sparse.linalg) belong here."""

CLASSES: dict[str, dict[str, Entry]] = {
    "scipy.interpolate": {
        **_all(
            "scipy.interpolation.piecewise",
            "PPoly CubicHermiteSpline CubicSpline PchipInterpolator Akima1DInterpolator",
        ),
        **_all("scipy.interpolation.bernstein_polynomials", "BPoly"),
        **_all("scipy.interpolation.spline_bases", "BSpline"),
        **_all("scipy.interpolation.line_interpolation", "interp1d"),
        **_all("scipy.interpolation.interpolating_polynomials", "BarycentricInterpolator"),
        **_all(
            "scipy.interpolation.fitpack_splines",
            "UnivariateSpline InterpolatedUnivariateSpline RectBivariateSpline SmoothBivariateSpline "
            "LSQBivariateSpline",
        ),
        **_all("scipy.interpolation.grids", "RegularGridInterpolator"),
        **_all("scipy.interpolation.radial_bases", "RBFInterpolator"),
        **_all("scipy.interpolation.clough_tocher", "CloughTocher2DInterpolator"),
        **_all("scipy.interpolation.scattered_points", "LinearNDInterpolator NearestNDInterpolator"),
    },
    "scipy.sparse": {
        f"{format}_{kind}": Entry("scipy.sparse_values", f"{format.capitalize()}{kind.capitalize()}")
        for format in ("coo", "csr", "csc", "lil", "dok")
        for kind in ("array", "matrix")
    },
    "scipy.sparse.linalg": {"SuperLU": Entry("scipy.sparse_systems", "Factors")},
    "scipy.stats": {"gaussian_kde": Entry("scipy.density_estimates", "GaussianKde")},
}
"""Classes: `cls(...)` makes an object of ours, and `cls.of(original)` makes one of SciPy's object."""

NEUTRAL = frozenset(
    "overwrite_a overwrite_b overwrite_x overwrite_ab overwrite_data overwrite_d overwrite_dl overwrite_du overwrite_e "
    "overwrite_c overwrite_cb check_finite workers disp lapack_driver driver plan "
    "permc_spec use_umfpack diag_pivot_thresh relax panel_size options overwrite_A".split()
)
"""Parameters that change SciPy's method, but not its result."""
