"""cuBLAS and cuSOLVER without a GPU: recipes of special nodes, done by doubles with the same C arguments.

Facts come from NumPy and SciPy, or from what a decomposition is.
"""

import ctypes
import types
from importlib import import_module

import numpy as np
import pytest

from nbgrad.compiler.fuse import Special, fuse
from nbgrad.compiler.views import View
from nbgrad.device.driver import libraries
from nbgrad.device.driver.cuda_driver import CudaDriver
from nbgrad.device.kernels.launches import Fill, Launch
from nbgrad.device.kernels.settings import SETTINGS
from nbgrad.device.libraries.library_calls import library_recipe
from nbgrad.device.libraries.library_decompositions import DEVICE_ROUTINES
from nbgrad.device.memory.arrays import device_named
from nbgrad.device.memory.chosen_driver import using
from nbgrad.device.simulator import simulated_libraries
from nbgrad.device.simulator.recorder import Recorder
from nbgrad.device.simulator.simulator import Simulator
from nbgrad.errors import DeviceError
from nbgrad.functions.linalg import eigenvalues, factorisations, matrix_functions, orthogonal, singular_values
from nbgrad.functions.linalg.matrix_batches import MatrixError
from nbgrad.graph import builders
from nbgrad.graph.complex_storage import interleaved
from nbgrad.graph.host_functions import DEVICE_CALLS, HostFunction, host, run_host
from nbgrad.graph.interpret import interpret
from nbgrad.graph.ir import constant, make

TABLES = (eigenvalues, factorisations, matrix_functions, orthogonal, singular_values)
"""Modules that fill the table of host functions."""

REALS = ["float32", "float64"]
ALL = [*REALS, "complex64", "complex128"]


@pytest.fixture
def device():
    with using(Simulator()):
        yield device_named("cuda")


def draw(shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    values = rng.standard_normal(shape)
    return (values + 1j * rng.standard_normal(shape) if dtype.kind == "c" else values).astype(dtype)


def tolerance(dtype):
    return {"f": 1e-4, "d": 1e-11, "F": 1e-4, "D": 1e-11, "e": 2e-2}[np.dtype(dtype).char]


def run_special(kernel, device):
    """The result of a special node whose operands are constants, done by its recipe: what the runtime does."""
    driver, node = device.driver, kernel.node
    recipe = library_recipe(kernel, device)
    assert recipe is not None
    driver.use(device.index)
    blocks = []

    def allocate(nbytes):
        blocks.append(driver.allocate(nbytes, 0, device.index) if nbytes else 0)
        return blocks[-1]

    addresses = []
    for source, view in zip(kernel.reads, kernel.views, strict=True):
        (value,) = interpret([source])
        address = allocate(value.nbytes)
        if address:
            driver.upload(address, np.ascontiguousarray(value), 0)
        addresses.append(address + view.offset * source.dtype.itemsize)
    out = np.empty(node.shape, node.dtype)
    # Workspaces lie anywhere in a program's block of memory.
    addresses += [allocate(out.nbytes), *[allocate(nbytes + 64) + 64 for nbytes in recipe.workspaces]]
    context = types.SimpleNamespace(driver=driver, device=device, stream=0)
    for action in recipe.actions:
        if isinstance(action, Fill):
            driver.fill(addresses[action.pointer], action.byte, action.nbytes, 0)
        else:
            assert not isinstance(action, Launch)
            action.run(context, [addresses[p] for p in action.pointers], *action.params)
    if out.size:
        driver.download(out, addresses[len(kernel.reads)], 0)
    for block in filter(None, blocks):
        driver.free(block, 0, device.index)
    driver.synchronise(0)  # raises what was written beyond an array
    return out


def specials(*outputs):
    return [step for step in fuse(list(outputs)).steps if isinstance(step, Special)]


HOST = {
    function.name: function
    for module in ("determinants", "eigenvalues", "factorisations", "matrix_functions", "orthogonal", "singular_values")
    for value in vars(import_module(f"nbgrad.functions.linalg.{module}")).values()
    for function in (value.values() if isinstance(value, dict) else [value])
    if isinstance(function, HostFunction)
}
"""The library functions of matrices by name."""


def run_host_node(name, arrays, device, *params):
    """The value of a host node on the device, complex arrays as programs have them, and the function's own value."""
    node = host(HOST[name] if isinstance(name, str) else name, tuple([constant(array) for array in arrays]), *params)
    (real,), _ = interleaved([node], [])
    # fuse() would copy what the parts of complex constants are made of; here they are the bytes of the arrays.
    sources = tuple([constant(a.view(a.real.dtype).reshape(*a.shape, 2) if a.dtype.kind == "c" else a) for a in arrays])
    kernel = Special(real, sources, tuple([View.contiguous(source.shape) for source in sources]))
    found = run_special(kernel, device)
    if node.dtype.kind == "c":
        found = np.ascontiguousarray(found).view(node.dtype).reshape(node.shape)
    assert found.dtype == node.dtype and found.shape == node.shape
    return found


# ----- Products -----

PRODUCTS = {
    "plain": lambda a, b: (a(3, 4, 5), b(3, 5, 6)),
    "one matrix": lambda a, b: (a(1, 4, 5), b(1, 5, 6)),
    "transposed left": lambda a, b: (builders.transpose(a(3, 5, 4), (0, 2, 1)), b(3, 5, 6)),
    "transposed right": lambda a, b: (a(3, 4, 5), builders.transpose(b(3, 6, 5), (0, 2, 1))),
    "both transposed": lambda a, b: (
        builders.transpose(a(3, 5, 4), (0, 2, 1)),
        builders.transpose(b(3, 6, 5), (0, 2, 1)),
    ),
    "the same right matrix": lambda a, b: (a(3, 4, 5), make("broadcast", (b(1, 5, 6),), ((3, 5, 6),))),
    "the same left matrix": lambda a, b: (make("broadcast", (a(1, 4, 5),), ((3, 4, 5),)), b(3, 5, 6)),
    "slices": lambda a, b: (
        builders.slice_axes(a(4, 6, 9), [(1, 3, 1), (2, 4, 1), (3, 5, 1)]),
        builders.slice_axes(b(3, 8, 6), [(0, 3, 1), (1, 5, 1), (0, 6, 1)]),
    ),
    "every second matrix, backwards": lambda a, b: (
        builders.slice_axes(a(6, 4, 5), [(5, 3, -2), (0, 4, 1), (0, 5, 1)]),
        b(3, 5, 6),
    ),
    "matrices side by side": lambda a, b: (builders.transpose(a(4, 3, 5), (1, 0, 2)), b(3, 5, 6)),
    "nothing to add up": lambda a, b: (a(3, 4, 0), b(3, 0, 6)),
    "nothing at all": lambda a, b: (a(3, 0, 5), b(3, 5, 6)),
    "large enough for all the workspace": lambda a, b: (a(1, 300, 300), b(1, 300, 300)),
}


@pytest.mark.parametrize("dtype", ["float16", *REALS])
@pytest.mark.parametrize("case", PRODUCTS)
def test_products(case, dtype, device):
    a, b = PRODUCTS[case](lambda *shape: constant(draw(shape, dtype)), lambda *shape: constant(draw(shape, dtype, 1)))
    left, right = interpret([a, b])
    (kernel,) = specials(builders.matmul(a, b))
    wide = np.float32 if dtype == "float16" else dtype
    expected = np.matmul(left.astype(wide), right.astype(wide))
    np.testing.assert_allclose(run_special(kernel, device), expected, tolerance(dtype), tolerance(dtype) * 20)


@pytest.mark.parametrize("dtype", REALS)
def test_products_that_lie_side_by_side(dtype, device):
    """A product that is transposed afterwards is written as it is read."""
    a, b = draw((3, 4, 5), dtype), draw((3, 5, 6), dtype, 1)
    turned = builders.transpose(builders.matmul(constant(a), constant(b)), (1, 0, 2))
    (kernel,) = specials(builders.reshape(turned, (72,)))
    assert kernel.interleaved
    found = run_special(kernel, device)
    np.testing.assert_allclose(found.ravel(), np.matmul(a, b).transpose(1, 0, 2).ravel(), tolerance(dtype))


@pytest.mark.parametrize("dtype", ["int32", "int64", "bool"])
def test_whole_numbers_are_left_to_others(dtype, device):
    ones = constant(np.ones((2, 3, 3), dtype))
    (kernel,) = specials(builders.matmul(ones, ones))
    assert library_recipe(kernel, device) is None


def test_tf32_only_if_asked(device, monkeypatch):
    a, b = draw((1, 8, 8), "float32"), draw((1, 8, 8), "float32", 1)
    (kernel,) = specials(builders.matmul(constant(a), constant(b)))
    exact = np.matmul(a.astype(float), b.astype(float))
    assert np.abs(run_special(kernel, device) - exact).max() < 1e-5
    monkeypatch.setattr(SETTINGS, "allow_tf32", True)
    error = np.abs(run_special(kernel, device) - exact).max()
    assert 1e-5 < error < 1e-1


# ----- Factors -----


def spread(dtype, shape, case):
    """Matrices for the solvers: small ones go together, large ones and single ones one by one."""
    a = draw(shape, dtype)
    if case == "definite":
        n = shape[-1]
        a = a @ np.swapaxes(a.conj(), -1, -2) + n * np.eye(n, dtype=dtype)
    return a


SHAPES = [(1, 4, 4), (5, 4, 4), (3, 1, 1), (2, 7, 7), (2, 300, 300)]


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("shape", SHAPES)
def test_lu(shape, dtype, device):
    a = spread(dtype, shape, "any")
    n = shape[-1]
    if a.dtype.kind == "c":
        found = run_host_node("lu", [a], device)
    else:
        (kernel,) = specials(builders.lu(constant(a)))
        found = run_special(kernel, device)
    both, order, inverse = found[:, :n], found[:, n].real, found[:, n + 1].real
    lower, upper = np.tril(both), np.triu(both, 1) + np.eye(n)
    columns = np.abs(order).astype(int) - 1
    permuted = np.take_along_axis(a, columns[:, None, :], 2)
    np.testing.assert_allclose(lower @ upper, permuted, atol=100 * tolerance(dtype))
    np.testing.assert_array_equal(
        np.take_along_axis(inverse.astype(int) - 1, columns, 1), np.tile(np.arange(n), (len(a), 1))
    )
    signs = np.prod(np.sign(order), axis=1)
    np.testing.assert_array_equal(signs, [np.round(np.linalg.det(np.eye(n)[:, c])) for c in columns])
    # The same bytes as on the CPU, where the pivots are the same and LAPACK is, too.
    np.testing.assert_allclose(found, run_host((HOST["lu"],), a), 1e-3, 100 * tolerance(dtype))


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("shape", SHAPES)
def test_cholesky(shape, dtype, device):
    a = spread(dtype, shape, "definite")
    expected = np.linalg.cholesky(a)
    given = np.tril(a) + 7 * np.triu(np.ones(shape[1:], dtype), 1)  # only the lower triangle is read
    if a.dtype.kind == "c":
        found = run_host_node("cholesky", [given], device)
    else:
        (kernel,) = specials(make("cholesky", (constant(given),)))
        found = run_special(kernel, device)
    np.testing.assert_allclose(found, expected, 10 * tolerance(dtype), 10 * tolerance(dtype))


@pytest.mark.parametrize("batch", [1, 3])
def test_cholesky_of_what_is_not_definite(batch, device):
    a = np.tile(np.eye(3), (batch, 1, 1))
    a[0, 1, 1] = -1
    (kernel,) = specials(make("cholesky", (constant(a),)))
    found = run_special(kernel, device)
    assert np.isnan(found[0][np.tril_indices(3)]).all()
    np.testing.assert_array_equal(found[0][np.triu_indices(3, 1)], 0)
    np.testing.assert_array_equal(found[1:], a[1:])


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("shape", [(1, 4, 3), (4, 5, 2), (3, 4, 1), (2, 300, 3)])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("unit", [False, True])
def test_triangular_solve(shape, dtype, lower, transposed, unit, device):
    n = shape[1]
    scale = n**-0.5 if n > 100 else 0.5
    a = (draw((shape[0], n, n), dtype) * scale * 0.1 + 2 * np.eye(n)).astype(dtype)
    b = draw(shape, dtype, 1)
    whole = np.tril(a) if lower else np.triu(a)
    if unit:
        whole[:, np.arange(n), np.arange(n)] = 1
    operator = np.swapaxes(whole.conj(), 1, 2) if transposed else whole
    if a.dtype.kind == "c":
        found = run_host_node("triangular solve", [a, b], device, lower, transposed, unit)
    else:
        (kernel,) = specials(builders.triangular_solve(constant(a), constant(b), lower, transposed, unit))
        found = run_special(kernel, device)
    np.testing.assert_allclose(operator @ found, b, atol=100 * tolerance(dtype))


def test_a_singular_triangle_gives_infinities(device):
    (kernel,) = specials(
        builders.triangular_solve(constant(np.diag([1.0, 0.0])[None]), constant(np.ones((1, 2, 1))), True)
    )
    np.testing.assert_array_equal(run_special(kernel, device), [[[1], [np.inf]]])


@pytest.mark.parametrize("node", ["lu", "cholesky"])
def test_empty_matrices(node, device):
    for shape in ((0, 3, 3), (2, 0, 0)):
        (kernel,) = specials(make(node, (constant(np.zeros(shape)),)))
        assert run_special(kernel, device).size == 0


# ----- Decompositions -----


def unpack(row, *shapes):
    parts, start = [], 0
    for shape in shapes:
        size = int(np.prod(shape))
        parts.append(row[..., start : start + size].reshape(*row.shape[:-1], *shape))
        start += size
    assert start == row.shape[-1]
    return parts


def adjoint(x):
    return np.swapaxes(x.conj(), -1, -2)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("shape", [(1, 4, 4), (3, 6, 4), (2, 3, 5, 1), (1, 40, 7)])
@pytest.mark.parametrize("complete", [False, True])
def test_qr(shape, dtype, complete, device):
    a = draw(shape, dtype)
    m, n = shape[-2:]
    columns = m if complete else n
    q, r = unpack(run_host_node("qr", [a], device, complete), (m, columns), (n, n))
    np.testing.assert_allclose(q[..., :n] @ r, a, atol=20 * tolerance(dtype))
    np.testing.assert_allclose(
        adjoint(q) @ q, np.broadcast_to(np.eye(columns), (*shape[:-2], columns, columns)), atol=20 * tolerance(dtype)
    )
    np.testing.assert_array_equal(np.tril(r, -1), 0)
    np.testing.assert_allclose(
        r, unpack(run_host((HOST["qr"], complete), a), (m, columns), (n, n))[1], atol=50 * tolerance(dtype)
    )


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("shape", [(1, 4, 4), (3, 6, 4), (2, 3, 4, 6), (1, 1, 5), (1, 30, 7)])
@pytest.mark.parametrize("full", [False, True])
def test_svd(shape, dtype, full, device):
    a = draw(shape, dtype)
    m, n = shape[-2:]
    k = min(m, n)
    u, s, vh = unpack(run_host_node("svd", [a], device, full), (m, m if full else k), (k,), (n if full else k, n))
    np.testing.assert_array_equal(s.imag, 0)
    np.testing.assert_allclose((u[..., :k] * s[..., None, :]) @ vh[..., :k, :], a, atol=20 * tolerance(dtype))
    np.testing.assert_allclose(
        adjoint(u) @ u,
        np.broadcast_to(np.eye(u.shape[-1]), (*shape[:-2], *[u.shape[-1]] * 2)),
        atol=20 * tolerance(dtype),
    )
    np.testing.assert_allclose(
        vh @ adjoint(vh),
        np.broadcast_to(np.eye(vh.shape[-2]), (*shape[:-2], *[vh.shape[-2]] * 2)),
        atol=20 * tolerance(dtype),
    )
    expected = np.linalg.svd(a, compute_uv=False)
    np.testing.assert_allclose(s.real, expected, atol=20 * tolerance(dtype))
    if not full:
        np.testing.assert_allclose(run_host_node("svdvals", [a], device, False), expected, atol=20 * tolerance(dtype))


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("shape", [(1, 4, 4), (3, 5, 5), (2, 2, 1, 1), (1, 40, 40)])
@pytest.mark.parametrize("triangle", ["L", "U"])
def test_eigh(shape, dtype, triangle, device):
    a = draw(shape, dtype)
    n = shape[-1]
    kept = np.tril(a, -1) if triangle == "L" else np.triu(a, 1)
    whole = kept + adjoint(kept) + np.eye(n) * a.real
    values, vectors = unpack(run_host_node("eigh", [a], device, triangle), (n,), (n, n))
    if a.dtype.kind == "f":
        vectors = np.swapaxes(vectors, -1, -2)
    np.testing.assert_array_equal(values.imag, 0)
    np.testing.assert_allclose(whole @ vectors, vectors * values[..., None, :], atol=100 * tolerance(dtype))
    np.testing.assert_allclose(
        adjoint(vectors) @ vectors, np.broadcast_to(np.eye(n), shape), atol=20 * tolerance(dtype)
    )
    assert (np.diff(values.real) >= 0).all()
    alone = run_host_node("eigvalsh", [a], device, triangle)
    np.testing.assert_allclose(alone, values.real, atol=100 * tolerance(dtype))


def test_eigh_without_the_routine_for_batches(device, monkeypatch):
    """Libraries before CUDA 12.6."""
    library = device.driver.library("cusolver", device.index)
    monkeypatch.setattr(library, "has", lambda function: False)
    a = draw((3, 5, 5), "float64")
    expected = run_host((HOST["eigvalsh"], "L"), a)
    np.testing.assert_allclose(run_host_node("eigvalsh", [a], device, "L"), expected, atol=1e-12)
    values = run_host_node("eigh", [a], device, "L")[:, :5]
    np.testing.assert_allclose(values, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "params"), [("svd", (False,)), ("svdvals", (False,)), ("eigh", ("L",)), ("eigvalsh", ("L",))]
)
@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_what_does_not_converge_is_nan(name, params, dtype, device):
    a = draw((3, 4, 4), dtype)
    a[1, 2, 0] = np.nan
    found = run_host_node(name, [a], device, *params)
    assert np.isnan(found[1].real).all() and np.isfinite(found[[0, 2]]).all()


@pytest.mark.parametrize("name", DEVICE_ROUTINES)
def test_every_device_routine_is_a_host_function(name):
    assert name in HOST


# ----- What the host does -----


def test_other_functions_run_on_the_host(device):
    a = draw((2, 3, 3), "float64")
    found = run_host_node("expm", [a], device)
    np.testing.assert_array_equal(found, run_host((HOST["expm"],), a))


def test_complex_results_of_the_host(device):
    a = draw((2, 3, 3), "float64")
    np.testing.assert_array_equal(run_host_node("eigvals", [a], device), run_host((HOST["eigvals"],), a))
    z = draw((2, 3, 3), "complex128")
    np.testing.assert_array_equal(run_host_node("expm", [z], device), run_host((HOST["expm"],), z))


def test_errors_of_the_host_are_raised(device):
    with pytest.raises(MatrixError):
        run_host_node("eigvals", [np.full((1, 2, 2), np.nan)], device)
    assert np.isfinite(run_host_node("eigvals", [np.ones((1, 2, 2))], device)).all()


def test_what_is_registered_for_the_device_comes_first(device, monkeypatch):
    seen = []

    def call(context, addresses, layouts):
        seen.append((len(addresses), layouts))
        context.driver.copy(addresses[-1], addresses[0], 24, context.stream)

    made_up = HostFunction("made up", lambda inputs, params: (inputs[0].shape, inputs[0].dtype), None)
    monkeypatch.setitem(DEVICE_CALLS, made_up, lambda number: call if number == 3 else None)
    np.testing.assert_array_equal(run_host_node(made_up, [np.arange(3.0)], device, 3), np.arange(3.0))
    assert seen == [(2, (((3,), np.float64), ((3,), np.float64)))]


# ----- The libraries themselves -----


def test_a_missing_library_names_its_package(monkeypatch):
    def load(name):
        message = f"{name} not found"
        raise RuntimeError(message)

    monkeypatch.setattr(libraries, "import_module", lambda name: types.SimpleNamespace(load_nvidia_dynamic_lib=load))
    with pytest.raises(
        DeviceError, match=r'cusolver, which is not installed.*nvidia-cusolver-cu12.*"nbgrad\[cuda13\]"'
    ):
        libraries.open_library("cusolver")


def test_a_missing_finder_names_the_extra(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(libraries, "import_module", missing)
    with pytest.raises(DeviceError, match=r'cuda-pathfinder.*"nbgrad\[cuda13\]"'):
        libraries.open_library("cublas")


@pytest.mark.parametrize(
    ("name", "status", "text"),
    [
        ("cublas", 1, "cublasCreate_v2 has failed with CUBLAS_STATUS_NOT_INITIALIZED: it cannot start on this device"),
        ("cusolver", 2, "cusolverDnCreate has failed with CUSOLVER_STATUS_ALLOC_FAILED: there is not enough memory"),
        ("cusolver", 77, "cusolverDnCreate has failed with CUSOLVER_STATUS_77"),
    ],
)
def test_a_status_becomes_an_error(name, status, text):
    with pytest.raises(DeviceError, match=text):
        libraries.Library(name, lambda function: lambda *arguments: status).start()


def test_streams_and_workspaces_are_set_when_they_change():
    log = []

    def find(function):
        def call(*arguments):
            if function == "cublasCreate_v2":
                simulated_libraries.vector(arguments[0], np.uint64, 1)[0] = 5
            else:
                log.append((function, *arguments))
            return 0

        return call

    library = libraries.Library("cublas", find)
    for stream, workspace in ((7, 512), (7, 512), (7, 1024), (8, 1024), (8, 0)):
        with library.on(stream, workspace, 4096 if workspace else 0) as handle:
            assert handle == 5
    stream, workspace = "cublasSetStream_v2", "cublasSetWorkspace_v2"
    assert log == [
        ("cublasSetMathMode", 5, 16),
        (stream, 5, 7),
        (workspace, 5, 512, 4096),
        (stream, 5, 7),
        (workspace, 5, 1024, 4096),
        (stream, 5, 8),
        (workspace, 5, 1024, 4096),
        (stream, 5, 8),
    ]


def test_a_product_as_cublas_gets_it():
    """C' = B' A' with columns first, so (n, m, k) and the right operand in front; numbers from cublas_api.h."""
    recorder = Recorder()
    with using(recorder):
        device = device_named("cuda")
        a = builders.transpose(constant(np.zeros((3, 5, 4), np.float32)), (0, 2, 1))
        b = make("broadcast", (constant(np.zeros((1, 5, 6), np.float32)),), ((3, 5, 6),))
        (kernel,) = specials(builders.matmul(a, b))
        recipe = library_recipe(kernel, device)
        (action,) = recipe.actions
        assert recipe.workspaces == ((1 << 20) + 256,)
        context = types.SimpleNamespace(driver=recorder, device=device, stream=7)
        action.run(context, [0x100, 0x200, 0x300, 0x401], *action.params)
    ((_, handle, *arguments),) = [entry for entry in recorder.log if entry[0] == "cublasGemmStridedBatchedEx_64"]
    transpose_a, plain, float32, compute_32 = 1, 0, 0, 68
    alpha, beta = arguments.pop(5), arguments.pop(13)
    ones = [np.ctypeslib.as_array((ctypes.c_float * 1).from_address(at))[0] for at in (alpha, beta)]
    assert ones == [1, 0]
    assert arguments == [
        *[plain, transpose_a, 6, 4, 5],
        *[0x200, float32, 6, 0, 0x100, float32, 4, 20, 0x300, float32, 6, 24],
        *[3, compute_32, -1],
    ]
    assert recorder.named("cublasSetStream_v2") == [(handle, 7)]
    assert recorder.named("cublasSetWorkspace_v2") == [(handle, 0x500, 1 << 20)]


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["matmul", "lu", "cholesky", "triangular_solve"])
@pytest.mark.parametrize("shape", [(1, 500, 500), (20, 50, 50)])
@pytest.mark.parametrize("dtype", REALS)
def test_libraries_on_a_gpu_agree_with_the_doubles(name, shape, dtype, device):
    a = draw(shape, dtype)
    a = a @ np.swapaxes(a, 1, 2) + shape[1] * np.eye(shape[1], dtype=dtype)
    operands = (constant(a),) * (2 if name in ("matmul", "triangular_solve") else 1)
    params = (True, False, False) if name == "triangular_solve" else ()
    (kernel,) = specials(make(name, operands, params))
    expected = run_special(kernel, device)
    with using(CudaDriver()):
        found = run_special(kernel, device_named("cuda"))
    np.testing.assert_allclose(found, expected, 100 * tolerance(dtype), 100 * tolerance(dtype))


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(1, 100, 60), (5, 20, 20)])
@pytest.mark.parametrize("dtype", ALL)
def test_decompositions_on_a_gpu(shape, dtype):
    a = draw(shape, dtype)
    m, n = shape[1:]
    with using(CudaDriver()):
        device = device_named("cuda")
        u, s, vh = unpack(run_host_node("svd", [a], device, False), (m, n), (n,), (n, n))
        np.testing.assert_allclose((u * s[:, None]) @ vh, a, atol=100 * tolerance(dtype))
        q, r = unpack(run_host_node("qr", [a], device, False), (m, n), (n, n))
        np.testing.assert_allclose(q @ r, a, atol=100 * tolerance(dtype))
        square = adjoint(a) @ a
        values = run_host_node("eigvalsh", [square], device, "L")
        np.testing.assert_allclose(values, s.real[:, ::-1] ** 2, 1e-3, 1000 * tolerance(dtype))


def test_a_product_is_captured_and_replayed(device):
    driver = device.driver
    a, b = draw((1, 4, 5), "float64"), draw((1, 5, 6), "float64", 1)
    (kernel,) = specials(builders.matmul(constant(a), constant(b)))
    recipe = library_recipe(kernel, device)
    stream = driver.new_stream(0)
    addresses = [driver.allocate(n, stream, 0) for n in (a.nbytes, b.nbytes, 4 * 6 * 8, *recipe.workspaces)]
    driver.upload(addresses[0], a, stream)
    driver.upload(addresses[1], b, stream)
    context = types.SimpleNamespace(driver=driver, device=device, stream=stream)
    (action,) = recipe.actions
    driver.begin_capture(stream)
    action.run(context, addresses, *action.params)
    graph = driver.end_capture(stream)
    for factor in (1.0, 2.0):
        driver.upload(addresses[0], a * factor, stream)
        driver.launch_graph(graph, stream)
        out = np.empty((1, 4, 6))
        driver.download(out, addresses[2], stream)
        np.testing.assert_allclose(out, factor * a @ b)
