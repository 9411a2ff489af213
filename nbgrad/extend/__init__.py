"""Users' own kernels and functions of numbers inside everything else."""
