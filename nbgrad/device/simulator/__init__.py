"""A driver without a GPU, which runs kernels on this machine and finds their errors."""

from ...moved import forwarding

__getattr__ = forwarding(__name__, "device.simulator.simulator")
