"""Written by `python -m tests.stubs --write`."""

from numpy.linalg import LinAlgError as LinAlgError
from ..functions.arrays.shaping import matrix_transpose as matrix_transpose
from ..functions.arrays.creation import linalg_diagonal as linalg_diagonal
diagonal = linalg_diagonal
from ..functions.linalg.matrix_products import matmul as matmul
from ..functions.linalg.matrix_products import linalg_outer as linalg_outer
outer = linalg_outer
from ..functions.linalg.matrix_products import tensordot as tensordot
from ..functions.linalg.matrix_products import vecdot as vecdot
from ..functions.linalg.matrix_products import linalg_cross as linalg_cross
cross = linalg_cross
from ..functions.linalg.matrix_products import multi_dot as multi_dot
from ..functions.linalg.matrix_products import matrix_power as matrix_power
from ..functions.linalg.matrix_products import linalg_trace as linalg_trace
trace = linalg_trace
from ..functions.linalg.factorisations import solve as solve
from ..functions.linalg.factorisations import inv as inv
from ..functions.linalg.factorisations import cholesky as cholesky
from ..functions.linalg.determinants import det as det
from ..functions.linalg.determinants import slogdet as slogdet
from ..functions.linalg.eigenvalues import eigh as eigh
from ..functions.linalg.eigenvalues import eigvalsh as eigvalsh
from ..functions.linalg.eigenvalues import eig as eig
from ..functions.linalg.eigenvalues import eigvals as eigvals
from ..functions.linalg.singular_values import svd as svd
from ..functions.linalg.singular_values import svdvals as svdvals
from ..functions.linalg.singular_values import pinv as pinv
from ..functions.linalg.singular_values import matrix_rank as matrix_rank
from ..functions.linalg.orthogonal import qr as qr
from ..functions.linalg.norms import norm as norm
from ..functions.linalg.norms import vector_norm as vector_norm
from ..functions.linalg.norms import matrix_norm as matrix_norm
from ..functions.linalg.norms import cond as cond
from ..functions.linalg.least_squares import lstsq as lstsq
from ..functions.linalg.least_squares import tensorsolve as tensorsolve
from ..functions.linalg.least_squares import tensorinv as tensorinv
