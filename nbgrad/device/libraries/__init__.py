"""NVIDIA's libraries: products, factorisations and decompositions on a GPU."""

from ...moved import forwarding

__getattr__ = forwarding(__name__, "device.driver.libraries")
