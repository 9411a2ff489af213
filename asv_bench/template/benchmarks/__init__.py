"""The benchmarks of our gradients: asv looks into each module of this folder."""
