"""Recipes of matrices without a library: factorisations, triangular systems, complete pivoting, products.

In: a `Special` whose node is one of `MATRICES` or a "matmul". Out: its recipe. Called by recipes.py, for small
matrices always and for others where the libraries are not installed. Kernels: kernels/gpu/device_matrices.py and
kernels/gpu/device_matmul.py.
"""

from __future__ import annotations

from collections.abc import Callable

from ...compiler.fuse import Special
from ...compiler.matrices.small_eigenvalues import negligible_part
from ...graph.ir import Node
from .launches import Fill, Launch, Recipe
from .python_kernels import KernelTable
from .python_launches import THREADS, launch, power_of_two, whole_warps

MATRICES = ("lu", "cholesky", "triangular_solve")
SMALL = 32
"""Up to this extent a warp does a matrix, faster than a call of a library."""
ROOM = 512
"""Shared memory besides the matrix, as in kernels/gpu/device_matrices.py."""
MOST_SHARED = 48 << 10
"""Bytes that a block of every device can share without asking for more."""
TILE, PITCH = 32, 33
"""Rows of a tile, and their distance in shared memory; kernels/gpu/device_matmul.py has the same numbers."""


def is_small(kernel: Special) -> bool:
    """Whether our own kernels are better than a library's."""
    return kernel.node.name in MATRICES and kernel.node.inputs[0].shape[1] <= SMALL


def _grid(node: Node, n: int) -> tuple[int, int, bool]:
    """Threads, shared bytes, and whether a matrix lies there."""
    nbytes = n * n * node.inputs[0].dtype.itemsize
    inside = nbytes + ROOM <= MOST_SHARED
    return whole_warps(n if n <= SMALL else THREADS), ROOM + (nbytes if inside else 0), inside


def _launch(node: Node, operands: list[tuple[int, str]]) -> Launch:
    batch, n = node.inputs[0].shape[:2]
    threads, shared, inside = _grid(node, n)
    place = f"gpu.device_matrices.{node.name}"
    return launch(place, operands, [n, int(inside)], batch, threads, shared, readonly=1)


def complete_pivots_recipe(kernel: Special) -> Recipe:
    """The orders of rows and columns."""
    node = kernel.node
    source = node.inputs[0]
    dtype = source.dtype.name
    done = _launch(node, [(0, dtype), (2, dtype), (1, "int64")])
    inside = _grid(node, source.shape[1])[2]
    return Recipe((done,), (8 if inside else source.size * source.dtype.itemsize,))


def lu_recipe(kernel: Special) -> Recipe:
    """Both factors, the order and its inverse."""
    dtype = kernel.node.dtype.name
    return Recipe((_launch(kernel.node, [(0, dtype), (1, dtype), (1, "int64")]),))


def cholesky_recipe(kernel: Special) -> Recipe:
    """The lower triangular factor."""
    dtype = kernel.node.dtype.name
    return Recipe((_launch(kernel.node, [(0, dtype), (1, dtype)]),))


def triangular_solve_recipe(kernel: Special) -> Recipe:
    """The solutions of triangular systems."""
    node = kernel.node
    batch, n, columns = node.shape
    width = min(power_of_two(columns), 32)
    pieces = -(-columns // width)
    numbers = [n, columns, pieces, width.bit_length() - 1, *map(int, node.params)]
    operands = [(k, node.dtype.name) for k in range(3)]
    threads = whole_warps(n * width)
    return Recipe(
        (launch("gpu.device_matrices.triangular_solve", operands, numbers, batch * pieces, threads, readonly=2),)
    )


def lu_solve_recipe(kernel: Special) -> Recipe:
    """The solutions of systems by their factors: a column of a right-hand side for each thread."""
    node = kernel.node
    dtype = node.dtype.name
    batch, n, columns = node.shape
    operands = [(0, dtype), (1, dtype), (3, dtype), (2, dtype)]
    numbers = [n, columns, batch, int(node.params[0])]
    blocks = -(-batch * columns // THREADS)
    done = launch("gpu.device_matrices.lu_solve", operands, numbers, blocks, THREADS, readonly=2)
    return Recipe((done,), (node.size * node.dtype.itemsize,))


def symmetric_eigen_recipe(kernel: Special) -> Recipe:
    """Eigenvalues of small matrices: a matrix for each thread."""
    node = kernel.node
    source, dtype = node.inputs[0], node.dtype.name
    batch, n, _ = source.shape
    numbers = [n, batch, *map(int, node.params), negligible_part(dtype)]
    operands = [(0, dtype), (2, dtype), (1, dtype)]
    blocks = -(-batch // THREADS)
    done = launch("gpu.device_matrices.symmetric_eigen", operands, numbers, blocks, THREADS, readonly=1)
    return Recipe((done,), (source.size * source.dtype.itemsize,))


def matmul_recipe(kernel: Special) -> Recipe:
    """Products of matrices of any strides."""
    node = kernel.node
    batch, m, n = node.shape
    k = node.inputs[0].shape[2]
    if k == 0:
        return Recipe((Fill(2, 0, node.size * node.dtype.itemsize),))
    down, across = -(-m // TILE), -(-n // TILE)
    numbers = [m, n, k, down, across]
    for view in kernel.views:
        numbers += [*view.strides, int(view.strides[2] != 1)]
    numbers += (n, batch * n) if kernel.interleaved else (m * n, n)
    operands = [(position, node.dtype.name) for position in range(3)]
    blocks, shared = batch * down * across, 16 * TILE * PITCH
    return Recipe((launch("gpu.device_matmul.matmul", operands, numbers, blocks, THREADS, shared, readonly=2),))


KERNELS: KernelTable = {
    "gpu.device_matrices.complete_pivots": ("* * int64", 2, "float32 float64"),
    "gpu.device_matrices.lu": ("* * int64", 2, "float32 float64"),
    "gpu.device_matrices.cholesky": ("* *", 2, "float32 float64"),
    "gpu.device_matrices.triangular_solve": ("* * *", 7, "float32 float64"),
    "gpu.device_matrices.lu_solve": ("* * * *", 4, "float32 float64"),
    "gpu.device_matrices.symmetric_eigen": ("* * *", 5, "float32 float64"),
    "gpu.device_matmul.matmul": ("* * *", 15, "float32 float64"),
}
"""The functions in kernels/ that are launched here, as python_kernels.py has them."""
RECIPES: dict[str, Callable[[Special], Recipe]] = {
    "matmul": matmul_recipe,
    "lu": lu_recipe,
    "cholesky": cholesky_recipe,
    "triangular_solve": triangular_solve_recipe,
    "lu_solve": lu_solve_recipe,
    "symmetric_eigen": symmetric_eigen_recipe,
    "complete_pivots": complete_pivots_recipe,
}
"""By the name of the primitive."""
