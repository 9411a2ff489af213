"""Derivatives of kernels as machine code: number_code.py, statement_code.py, machine_function.py."""
