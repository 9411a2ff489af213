"""The driver of a GPU: memory, streams, launches, arrays of other libraries."""

from ...moved import forwarding

__getattr__ = forwarding(__name__, "device.driver.driver device.memory.chosen_driver")
