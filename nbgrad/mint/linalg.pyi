"""Written by `python -m tests.stubs --write`."""

from nbgrad.ops import inverse as inverse
inv = inverse
from nbgrad.ops import matrix_norm as matrix_norm
from nbgrad.ops import norm as norm
from nbgrad.ops import qr as qr
from nbgrad.ops import vector_norm as vector_norm
