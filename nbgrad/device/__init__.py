"""The CUDA target: kernels for NVIDIA GPUs, the compiler that makes them, and the driver that runs them."""
