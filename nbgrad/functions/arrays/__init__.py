"""Functions that make arrays, join, shape, index, reduce and sort them."""
