"""All that a Tensor has beyond its node: importing this package gives it to the class."""

from . import (
    data,
    devices,
    functional_writes,
    further_members,
    methods,
    mutation,
    operators,
    protocols,
    remembering_methods,
    values,
)

__all__ = [
    "data",
    "devices",
    "functional_writes",
    "further_members",
    "methods",
    "mutation",
    "operators",
    "protocols",
    "remembering_methods",
    "values",
]
