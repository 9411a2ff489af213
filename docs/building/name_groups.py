"""Where the reference shows each public name: groups of `nbgrad` itself, and the public modules.

In: nothing. Out: tables for `api_pages`, which stops where a name of `nbgrad` is in no group, and for
`tests/test_site.py`.
"""

GROUPS = {
    "Derivatives": (
        "Functions that make functions: of a function of arrays, its gradient, Jacobian, or products with it.",
        (
            "grad value_and_grad vjp jvp jacrev jacfwd hessian hvp linearize linear_transpose vmap stop_gradient "
            "custom_vjp custom_jvp custom_root check_grads sparse_jacobian sparse_hessian GradOperation get_grad"
        ),
    ),
    "Compilation": (
        "Compiled functions, their memory, their threads, and reports of them.",
        (
            "jit checkpoint explain find_nan profile counters set_blas set_fft set_num_threads get_num_threads "
            "ms_function recompute jit_class ms_class lazy_inline mutable constexpr"
        ),
    ),
    "Control flow": (
        "Loops and branches as single operations. Python's own loops and branches work too.",
        "scan fori_loop while_loop map associative_scan cond switch",
    ),
    "Code and kernels of others": (
        "Derivatives of code that cannot be changed, and of compiled code.",
        "differentiable_source callback kernel elementwise primitive device_function",
    ),
    "Data larger than memory": (
        "Sums over blocks of files and of arrays of other libraries.",
        "blocks map_reduce",
    ),
    "Arrays and containers": (
        "Tensors, Parameters, containers as vectors, random numbers.",
        (
            "Tensor tensor from_numpy frombuffer from_dlpack is_tensor COOTensor CSRTensor RowTensor Parameter "
            "ParameterTuple ravel Generator set_seed get_seed manual_seed initial_seed seed get_rng_state set_rng_state"
        ),
    ),
    "Values that remember": (
        "Gradients of values, in PyTorch's and TensorFlow's words; `nbgrad.autograd` and `nbgrad.tape` have the rest.",
        (
            "enable_grad no_grad inference_mode set_grad_enabled is_grad_enabled GradientTape ForwardAccumulator "
            "gradients custom_gradient"
        ),
    ),
}
"""Groups of names of `nbgrad`: title -> (one sentence, names)."""

ALIASES = {
    "nbgrad.train": (
        "Callback CheckpointConfig DatasetHelper DynamicLossScaleManager EarlyStopping FixedLossScaleManager History "
        "LambdaCallback LearningRateScheduler LossMonitor LossScaleManager Model ModelCheckpoint Profiler "
        "ReduceLROnPlateau RunContext SummaryCollector SummaryRecord TimeMonitor connect_network_with_dataset "
        "data_sink export load load_checkpoint load_param_into_net save_checkpoint"
    ),
    "nbgrad.context": (
        "COMPATIBLE GRAPH_MODE LAX PYNATIVE_MODE ParallelMode STRICT get_auto_parallel_context get_context "
        "reset_auto_parallel_context "
        "set_auto_parallel_context set_context set_deterministic set_device set_recursion_limit"
    ),
    "nbgrad.dtype": (
        "Type bfloat16 bool_ byte complex128 complex64 double dtype_to_nptype dtype_to_pytype float16 float32 float64 "
        "float_ get_py_obj_dtype half int16 int32 int64 int8 int_ intc pytype_to_dtype short single uint16 uint32 "
        "uint64 uint8"
    ),
}
"""Names of `nbgrad` that a public module has, too, or that belong beside its names."""

MODULES = {
    "nbgrad.solvers": "SciPy's roots, minima, differential equations and integrals, with derivatives.",
    "nbgrad.optim": "Gradient transformations for any container, and minimisers as compiled loops.",
    "nbgrad.interop": "Functions of nbgrad as differentiable functions of PyTorch, JAX and PyTensor.",
    "nbgrad.mpi": "Messages between processes, with derivatives.",
    "nbgrad.cuda": "Devices, streams and events of NVIDIA GPUs.",
    "nbgrad.autograd": "PyTorch's way to ask for gradients.",
    "nbgrad.autograd.functional": "Derivatives of functions, with PyTorch's arguments.",
    "nbgrad.autograd.forward_ad": "PyTorch's dual numbers.",
    "nbgrad.tape": "TensorFlow's tapes.",
    "nbgrad.bench": "Benchmarks of a project's own gradients, for asv.",
    "nbgrad.errors": "The exceptions of nbgrad; each is one of Python's, too.",
    "nbgrad.config": "Options of the process.",
    "nbgrad.dtype": "Element types, with MindSpore's names.",
    "nbgrad.nn": "Cells, layers, losses, optimizers and metrics, with MindSpore's names.",
    "nbgrad.nn.probability.distribution": "Probability distributions as Cells, with MindSpore's names.",
    "nbgrad.nn.probability.bijector": "Bijections of random variables, with MindSpore's names.",
    "nbgrad.ops": "MindSpore's functions and their class forms.",
    "nbgrad.mint": "Functions with PyTorch's parameters and defaults.",
    "nbgrad.mint.nn": "Layers and losses with PyTorch's parameters and defaults.",
    "nbgrad.mint.nn.functional": "Functions of layers and losses.",
    "nbgrad.mint.optim": "Optimizers with PyTorch's parameters and defaults.",
    "nbgrad.mint.linalg": "Linear algebra.",
    "nbgrad.mint.special": "Special functions.",
    "nbgrad.mint.torch_names": "PyTorch's names around autograd, for code that is tried with another module's name.",
    "nbgrad.common": "Tensors, Parameters and initial values under MindSpore's paths.",
    "nbgrad.common.initializer": "Initial values of Parameters.",
    "nbgrad.train": "Model, callbacks, checkpoints and metrics.",
    "nbgrad.amp": "Mixed precision.",
    "nbgrad.dataset": "Data sets, samplers and image files.",
    "nbgrad.communication": "MindSpore's groups of processes, by MPI.",
    "nbgrad.log": "Messages at MindSpore's levels.",
    "nbgrad.context": "MindSpore's options of a process.",
    "nbgrad.numpy": "NumPy's functions on recorded values.",
    "nbgrad.numpy.linalg": "Linear algebra of NumPy.",
    "nbgrad.numpy.fft": "Fourier transforms of NumPy.",
    "nbgrad.numpy.random": "Random numbers with NumPy's names.",
}
"""The public modules besides `nbgrad`, each with one sentence."""

SECTIONS = {
    "Solvers, optimisers, other libraries, devices": "solvers optim interop bench mpi cuda errors config",
    "PyTorch's and TensorFlow's words": "autograd autograd.functional autograd.forward_ad tape",
    "NumPy's names": "numpy numpy.linalg numpy.fft numpy.random",
    "MindSpore's interface": (
        "nn nn.probability.distribution nn.probability.bijector ops mint mint.nn mint.nn.functional mint.optim "
        "mint.linalg mint.special mint.torch_names common common.initializer train amp dataset "
        "communication log context dtype"
    ),
}
"""The order of the modules on the first page of the reference."""

OWN_PAGES = frozenset("nbgrad.solvers nbgrad.optim nbgrad.mpi nbgrad.autograd nbgrad.bench nbgrad.interop".split())
"""Modules whose names have a page each, as those of `nbgrad` have; all others share pages."""

WITH_MEMBERS = frozenset(
    "Tensor Parameter Generator Cell Optimizer Model Callback Initializer GradientTape ForwardAccumulator Function "
    "Transformation Solution Halo Grid Communicator Event Stream Dataset Gradients Distribution "
    "Bijector".split()
)
"""Classes whose methods are shown."""
